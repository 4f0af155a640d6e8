// Planner of Fourier transforms: along one axis after the other, passes of fft_pass.comp.
//
//   direct      A size whose prime factors are at most 31 is cut into the fewest radices of at most 64 on CPU devices,
//               elsewhere of 16, or of 32 for f32 and up to 4,096 numbers. On CPU devices each takes a pass. Elsewhere
//               the lanes of a workgroup exchange numbers through shared memory, so that a pass has several: all of a
//               line of at most 4,096 numbers, those of a product of at most 256 of a longer one.
//   real        Real numbers of an even size n are the transform of n / 2 complex ones and a step that separates them.
//               It is part of the only pass, if there is one, and otherwise a pass of its own, instead of which CPU
//               devices compute imaginary zeros. On the way to real numbers it is part of the first pass.
//   Bluestein   Other sizes n become a circular convolution of a power of two, m >= 2 n - 1: the passes of a transform
//               of m numbers, those of the inverse, and once for all lines those of the chirp.
//
// What is between two passes is in scratch memory, as f32 or f64. The batch is cut into pieces whose scratch memory is
// bounded; each piece takes all of its passes before the next. The inverse is the conjugate of the transform of the
// conjugate, and the first and the last pass change the signs.
//
// TUFF_FFT_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>

#include "kernels/common/check.hpp"
#include "kernels/common/kernels_for.hpp"
#include "kernels/common/sort_few.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/common/workgroup.hpp"
#include "kernels/fft/fft.hpp"
#include "kernels/fft/fft_words.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/fft_pass.hpp"

namespace tuff {
namespace {

constexpr uint32_t kMaxPasses = 96;
constexpr uint64_t kMaxLanes = 1u << 30;  // of a dispatch
constexpr uint64_t kAlignment = 256;      // of the parts of scratch memory

// As in fft_pass.comp.
enum class Load : uint8_t { numbers, real, mirrored, chirp, product, pairs, from_half, from_pairs };
enum class Store : uint8_t { numbers, half, real, pairs, half_of_pairs };
enum class Chirp : uint8_t { none, read, written };

// How a pass of several radices uses a workgroup: the lanes of a column, and its columns.
struct Together {
  uint32_t lanes, columns;
};
constexpr uint32_t kTogether = 256;          // invocations, where a column does not take more
constexpr uint32_t kTogetherNumbers = 4096;  // of a column
static_assert(kTogetherNumbers <= 1u << fft::kMaxSteps);

struct Pass {
  uint32_t axis, radix;    // radix: the product of those that it takes
  uint64_t passed;         // product of the earlier radices
  uint64_t length;         // of the line that is transformed
  uint64_t n;              // of the axis
  uint64_t read, written;  // numbers of a line in the input and the output of the pass
  Load load;
  Store store;
  Chirp chirp;
  double scale;
  uint64_t factor;  // Load::product: where in scratch memory its factors are, in numbers
  Together group{0, 1};
  const std::shared_ptr<const KernelBody>* body = nullptr;
};

// Where the numbers of a pass are.
struct Place {
  const Buffer* buffer;
  int32_t dtype;
  uint32_t elements;  // of a number
  uint64_t first;     // number
  std::array<uint64_t, 8> strides;
};

class Planner {
 public:
  Planner(Recorder& recorder, const FftArgs& args)
      : recorder_(recorder),
        args_(args),
        shape_(fft::shape_of(args)),
        device_(stream_device(recorder.traits(), forced_variant<"TUFF_FFT_VARIANT">(), dtype_size(args.dtype))),
        value_(computed_type(args.dtype)) {}

  void record() {
    if (shape_.output.span == 0) return;
    plan();
    reserve();
    for (uint32_t axis = 0; axis < args_.rank; ++axis) record_chirp(axis);
    pieces_->for_each(
        [&](const std::array<uint64_t, 8>& at, const std::array<uint64_t, 8>& batch) { record_piece(at, batch); });
  }

 private:
  // With 32 numbers of f32 in registers, lines of 257 to 1,024 numbers take two steps in shared memory instead of
  // three.
  uint32_t largest_radix(uint64_t n) const {
    if (device_.cpu) return fft::kMaxRadix;
    return value_ != TUFF_F64 && n > 32 && n <= kTogetherNumbers ? 32 : 16;
  }
  uint64_t number_bytes() const { return 2 * dtype_size(value_); }
  bool transforms(uint32_t axis) const { return (shape_.axes >> axis & 1) != 0; }
  static uint64_t circle_of(uint64_t n) { return std::bit_ceil(2 * n - 1); }

  // The fewest radices whose product is n, the largest of them as small as possible.
  struct Radices {
    std::array<uint32_t, 32> radix;
    uint32_t count = 0;
  };
  Radices radices_of(uint64_t n) const {
    Radices radices;
    if (n == 1) {
      radices.radix[radices.count++] = 1;
      return radices;
    }
    uint32_t largest = largest_radix(n);
    for (uint32_t p = largest + 1; p <= fft::kMaxPrime; ++p) {
      if (n % p == 0 && is_prime(p)) largest = p;
    }
    for (uint32_t count = 1; !cut(n, count, largest, radices); ++count) {
    }
    return radices;
  }
  static bool is_prime(uint32_t p) {
    return p == 17 || p == 19 || p == 23 || p == 29 || p == 31;  // of those above 16
  }
  // Into `count` radices of at most `largest`.
  static bool cut(uint64_t n, uint32_t count, uint32_t largest, Radices& radices) {
    if (count == 1) {
      if (n > largest) return false;
      radices.radix[radices.count++] = static_cast<uint32_t>(n);
      return true;
    }
    // From the smallest radix whose power reaches n.
    auto least = static_cast<uint32_t>(std::ceil(std::pow(static_cast<double>(n), 1.0 / count) * (1 - 1e-12)));
    for (uint32_t radix = std::max(least, 2u); radix <= largest; ++radix) {
      if (n % radix != 0) continue;
      const uint32_t before = radices.count;
      radices.radix[radices.count++] = radix;
      if (cut(n / radix, count - 1, radix, radices)) return true;
      radices.count = before;
    }
    return false;
  }

  // No columns if the device cannot do it. The radices are of one length, so their product is below 2^32.
  Together together(std::span<const uint32_t> radices) const {
    uint32_t size = 1, smallest = radices[0];
    for (const uint32_t radix : radices) size *= radix, smallest = std::min(smallest, radix);
    const uint32_t lanes = size / smallest, along_x = max_along_x(recorder_.traits());
    if (device_.cpu || size > kTogetherNumbers || lanes > along_x) return {0, 0};
    const uint32_t column_bytes = fft::line_of(size) * static_cast<uint32_t>(number_bytes());
    const uint32_t held = recorder_.traits().shared_bytes / column_bytes, wanted = std::max(kTogether / lanes, 1u);
    return {lanes, std::bit_floor(std::min({held, wanted, along_x / lanes}))};
  }
  // How many of the radices from this one on a pass takes.
  uint32_t taken(const Radices& radices, uint32_t from) const {
    const auto fits = [&](uint32_t count) { return together({radices.radix.data() + from, count}).columns != 0; };
    if (from == 0 && radices.count > 1 && fits(radices.count)) return radices.count;
    uint32_t count = 1;
    for (uint64_t product = radices.radix[from]; from + count < radices.count; ++count) {
      product *= radices.radix[from + count];
      if (product > 256 || !fits(count + 1)) break;
    }
    return count;
  }

  void add(const Pass& pass) {
    require_room(count_, kMaxPasses, "passes of a Fourier transform");
    passes_[count_++] = pass;
  }

  // The passes of lines of `length` numbers; `whole` is what holds for all of them together.
  void add_passes(const Pass& whole) {
    const Radices radices = radices_of(whole.length);
    uint64_t passed = 1;
    for (uint32_t i = 0, count = 0; i < radices.count; i += count) {
      count = taken(radices, i);
      const std::span<const uint32_t> steps(radices.radix.data() + i, count);
      Pass pass = whole;
      pass.radix = 1;
      for (const uint32_t radix : steps) pass.radix *= radix;
      if (count > 1) pass.group = together(steps);
      pass.body = &fft::codelet(steps, value_ == TUFF_F64);
      const bool first = i == 0, last = i + count == radices.count, only = first && last;
      pass.passed = passed;
      if (!first) pass.read = whole.length, pass.load = Load::numbers;
      if (!last) pass.written = whole.length, pass.store = Store::numbers, pass.scale = 1;
      if (whole.chirp == (first ? Chirp::written : Chirp::read) && !only) pass.chirp = Chirp::none;
      if (!first && !last) pass.chirp = Chirp::none;
      const bool separates = last && !only && whole.store == Store::half_of_pairs;
      if (separates) pass.written = whole.length, pass.store = Store::numbers;
      passed *= pass.radix;
      add(pass);
      if (separates) add_separation(whole);
    }
  }
  // The first half of a transform of n real numbers, from that of n / 2 complex ones.
  void add_separation(const Pass& whole) {
    constexpr uint32_t kOne[] = {1};
    Pass pass = whole;
    pass.radix = 1, pass.passed = 1;
    pass.read = whole.length, pass.length = pass.written = whole.length + 1;
    pass.load = Load::from_pairs, pass.store = Store::numbers;
    pass.body = &fft::codelet(kOne, value_ == TUFF_F64);
    add(pass);
  }

  void add_axis(uint32_t axis) {
    const uint64_t n = args_.shape[axis];
    const bool ends = axis == shape_.last;
    const bool real = args_.kind == TUFF_FFT_REAL;
    const uint64_t half = n / 2;
    // A pass that only separates costs a CPU device more than half of the transform.
    const bool slower = real && device_.cpu && half > fft::kMaxRadix;
    if (ends && args_.kind != TUFF_FFT_COMPLEX && n % 2 == 0 && n > 2 && fft::is_direct(half) && !slower) {
      if (real) {
        add_passes({axis, 0, 0, half, n, n, half + 1, Load::pairs, Store::half_of_pairs, Chirp::none, 1, 0});
      } else {
        add_passes({axis, 0, 0, half, n, half + 1, n, Load::from_half, Store::pairs, Chirp::none, 1, 0});
      }
      return;
    }
    const Load load = ends && args_.kind == TUFF_FFT_REAL      ? Load::real
                      : ends && args_.kind == TUFF_FFT_TO_REAL ? Load::mirrored
                                                               : Load::numbers;
    const Store store = ends && args_.kind == TUFF_FFT_REAL      ? Store::half
                        : ends && args_.kind == TUFF_FFT_TO_REAL ? Store::real
                                                                 : Store::numbers;
    const uint64_t read = load == Load::mirrored ? n / 2 + 1 : n, written = store == Store::half ? n / 2 + 1 : n;
    if (fft::is_direct(n)) {
      add_passes({axis, 0, 0, n, n, read, written, load, store, Chirp::none, 1, 0});
      return;
    }
    const uint64_t m = circle_of(n);
    add_passes({axis, 0, 0, m, n, read, m, load, Store::numbers, Chirp::read, 1, 0});
    add_passes({axis, 0, 0, m, n, m, written, Load::product, store, Chirp::written, 1 / static_cast<double>(m),
                factors_[axis]});
  }

  void plan() {
    // The factors of Bluestein's algorithm are the first in scratch memory.
    for (uint32_t axis = 0; axis < args_.rank; ++axis) {
      if (!transforms(axis) || fft::is_direct(args_.shape[axis])) continue;
      factors_[axis] = scratch_numbers_;
      scratch_numbers_ += round_up(circle_of(args_.shape[axis]), kAlignment);
      largest_ = std::max(largest_, circle_of(args_.shape[axis]));
    }
    if (args_.kind != TUFF_FFT_TO_REAL) add_axis(shape_.last);
    for (uint32_t axis = args_.rank; axis-- > 0;) {
      if (transforms(axis) && axis != shape_.last) add_axis(axis);
    }
    if (args_.kind == TUFF_FFT_TO_REAL) add_axis(shape_.last);
    passes_[count_ - 1].scale *= shape_.scale;
  }

  // Cuts the batch, and takes scratch memory for the numbers of a piece between two passes, twice.
  void reserve() {
    // The largest piece between passes, for each element of the batch.
    uint64_t each = 1;
    if (count_ > 1) {
      std::array<uint64_t, 8> sizes = shape_.input.sizes;
      each = 0;
      for (uint32_t i = 0; i + 1 < count_; ++i) {
        sizes[passes_[i].axis] = passes_[i].written;
        uint64_t numbers = 1;
        for (uint32_t axis = 0; axis < args_.rank; ++axis) {
          if (transforms(axis)) numbers = checked_mul(numbers, sizes[axis], "shape");
        }
        each = std::max(each, numbers);
      }
    }
    uint64_t lanes = 1;  // of a pass, at most
    for (uint32_t axis = 0; axis < args_.rank; ++axis) {
      if (transforms(axis)) lanes = checked_mul(lanes, args_.shape[axis], "shape");
    }
    // At most 1,024 pieces, or twice as many if they do not fit the batch's sizes.
    uint64_t all = lanes;
    for (uint32_t axis = 0; axis < args_.rank; ++axis) {
      if (!transforms(axis)) all = checked_mul(all, args_.shape[axis], "shape");
    }
    const uint64_t most = std::max(device_.cpu ? fft::kPieceCpu : fft::kPiece, all / 1024);
    const uint64_t fits = std::max<uint64_t>(std::min(count_ > 1 ? most / each : kMaxLanes, kMaxLanes / lanes), 1);
    pieces_.emplace(args_.shape, args_.rank, shape_.axes, fits);
    const uint64_t batch = pieces_->batch();
    require_lanes(batch);
    if (count_ > 1 || scratch_numbers_ != 0) {
      const uint64_t half = std::max(count_ > 1 ? checked_mul(each, batch, "shape") : 0, largest_);
      halves_[0] = scratch_numbers_;
      halves_[1] = checked_add(halves_[0], checked_mul(ceil_div(half, kAlignment), kAlignment, "shape"), "shape");
      const uint64_t numbers = checked_add(halves_[1], half, "shape");
      scratch_ = &recorder_.scratch(checked_mul(numbers, number_bytes(), "shape"));
    }
  }

  // Before anything is recorded.
  void require_lanes(uint64_t batch) const {
    std::array<uint64_t, 8> sizes = shape_.input.sizes;
    for (uint32_t i = 0; i < count_; ++i) {
      const Pass& pass = passes_[i];
      uint64_t lanes = checked_mul(batch, pass.length / pass.radix, "shape");
      for (uint32_t axis = 0; axis < args_.rank; ++axis) {
        if (transforms(axis) && axis != pass.axis) lanes = checked_mul(lanes, sizes[axis], "shape");
      }
      if (lanes > kMaxLanes) {
        fail(TUFF_ERROR_UNSUPPORTED, "a pass of the transform has {} columns of {} numbers, at most {} are possible",
             lanes, pass.radix, kMaxLanes);
      }
      sizes[pass.axis] = pass.written;
    }
  }

  Place scratch_place(uint64_t first, const std::array<uint64_t, 8>& sizes) const {
    Place place{scratch_, value_, 2, first, {}};
    uint64_t next = 1;
    for (uint32_t axis = args_.rank; axis-- > 0; next *= sizes[axis]) place.strides[axis] = next;
    return place;
  }

  // The transform of conj(c) in a circle of m numbers.
  void record_chirp(uint32_t axis) {
    if (!transforms(axis) || fft::is_direct(args_.shape[axis])) return;
    const uint64_t m = circle_of(args_.shape[axis]);
    const uint32_t before = count_;
    add_passes({axis, 0, 0, m, args_.shape[axis], m, m, Load::chirp, Store::numbers, Chirp::none, 1, 0});
    std::array<uint64_t, 8> sizes{};
    sizes.fill(1);
    sizes[axis] = m;
    for (uint32_t i = before; i < count_; ++i) {
      const Place input = i == before ? Place{nullptr, value_, 2, 0, {}} : scratch_place(halves_[i % 2], sizes);
      const Place output = scratch_place(i + 1 == count_ ? factors_[axis] : halves_[(i + 1) % 2], sizes);
      record_pass(passes_[i], input, output, sizes, 1, 1);
    }
    count_ = before;
  }

  void record_piece(const std::array<uint64_t, 8>& at, const std::array<uint64_t, 8>& batch) {
    std::array<uint64_t, 8> sizes = shape_.input.sizes;
    const auto outer = [&](const Buffer* buffer, const fft::Operand& operand) {
      Place place{buffer, args_.dtype, static_cast<uint32_t>(operand.elements), 0, operand.strides};
      for (uint32_t axis = 0; axis < args_.rank; ++axis) place.first += at[axis] * operand.strides[axis];
      return place;
    };
    for (uint32_t axis = 0; axis < args_.rank; ++axis) {
      if (!transforms(axis)) sizes[axis] = batch[axis];
    }
    Place input = outer(args_.input, shape_.input);
    for (uint32_t i = 0; i < count_; ++i) {
      const Pass& pass = passes_[i];
      const bool first = i == 0, last = i + 1 == count_;
      std::array<uint64_t, 8> after = sizes;
      after[pass.axis] = pass.written;
      const Place output = last ? outer(args_.output, shape_.output) : scratch_place(halves_[i % 2], after);
      const float sign = args_.inverse != 0 ? -1 : 1;
      record_pass(pass, input, output, sizes, first ? sign : 1, last ? sign : 1);
      input = output, sizes = after;
    }
  }

  // An axis of lanes.
  struct Axis {
    uint64_t size, input, output;
    uint64_t near;  // the smaller axes are the inner ones
    bool column, place;
  };

  // Numbers from the first to the last that a pass accesses.
  uint64_t span_of(const Place& place, const std::array<uint64_t, 8>& sizes, uint32_t axis, uint64_t line) const {
    if (place.buffer == nullptr) return 0;
    uint64_t span = 1;
    for (uint32_t i = 0; i < args_.rank; ++i) span += ((i == axis ? line : sizes[i]) - 1) * place.strides[i];
    return span;
  }

  // Whether real numbers that are side by side in lines lie so in memory, and each pair at a multiple of its size.
  bool are_pairs(const Place& place, uint32_t line) const {
    if (place.first % 2 != 0 || place.strides[line] != 1) return false;
    for (uint32_t axis = 0; axis < args_.rank; ++axis) {
      if (axis != line && args_.shape[axis] > 1 && place.strides[axis] % 2 != 0) return false;
    }
    return true;
  }
  // How pairs are accessed: as in fft_pass.comp. `line` is the axis whose real numbers are taken as pairs, if there is
  // one.
  int pairs_of(const Place& place, bool real_pairs, uint32_t line) const {
    const uint64_t pair = 2 * dtype_size(place.dtype);
    if (place.buffer == nullptr || place.buffer->offset % pair != 0) return 0;
    if (place.elements == 1 && !(real_pairs && are_pairs(place, line))) return 0;
    const DeviceTraits& traits = recorder_.traits();
    return place.dtype == TUFF_F32 ? vector_mode(traits, true) : 1;
  }

  // What the columns of a pass are spread over, as the kernel takes it.
  struct Lanes {
    uint64_t count = 1;
    uint32_t rank = 0, column = 8, place = 8;  // 8: no axis
    uint64_t input = 0, output = 0;            // the innermost axis's strides, if there is one
    fft::Table table;
  };

  // `sizes` are those of the input.
  Lanes lanes_of(const Pass& pass, const Place& input, const Place& output,
                 const std::array<uint64_t, 8>& sizes) const {
    const uint64_t columns = pass.length / pass.radix;
    const uint64_t input_stride = input.strides[pass.axis];
    const uint64_t output_stride = output.strides[pass.axis] * (pass.store == Store::pairs ? 2 : 1);
    Lanes lanes;
    std::array<Axis, 10> axes{};
    const auto append = [&](const Axis& axis) {
      if (axis.size > 1) axes[lanes.rank++] = axis;
    };
    for (uint32_t i = 0; i < args_.rank; ++i) {
      if (i != pass.axis) append({sizes[i], input.strides[i], output.strides[i], 0, false, false});
    }
    // What is read is not at its column's place.
    const bool elsewhere = pass.load == Load::mirrored || pass.load >= Load::pairs;
    const uint64_t step = elsewhere ? 0 : input_stride;
    append({columns / pass.passed, pass.passed * step, pass.passed * pass.radix * output_stride, 0, true, false});
    append({pass.passed, step, output_stride, 0, false, true});
    for (uint32_t i = 0; i < lanes.rank; ++i) {
      axes[i].near = std::max(axes[i].column && step == 0 ? input_stride : axes[i].input, axes[i].output);
    }
    sort_few(std::span(axes.data(), lanes.rank), [](const Axis& a, const Axis& b) { return a.near < b.near; });

    fft::Table& table = lanes.table;
    table.add64(columns * input_stride);
    table.add64(pass.passed * output_stride);
    table.add64(input_stride);
    table.add64(output.strides[pass.axis]);
    lanes.rank = merge(axes, lanes.rank);
    for (uint32_t i = 0; i < lanes.rank; ++i) {
      const Axis& axis = axes[i];
      table.add_axis(static_cast<uint32_t>(axis.size), axis.input, axis.output);
      if (axis.column) lanes.column = i;
      if (axis.place) lanes.place = i;
      lanes.count *= axis.size;
    }
    lanes.input = axes[0].input, lanes.output = axes[0].output;
    return lanes;
  }

  shaders::FftPass::Push push_of(const Pass& pass, const Lanes& lanes) const {
    const uint64_t span = pass.passed * pass.radix;
    shaders::FftPass::Push push{};
    push.lanes = static_cast<uint32_t>(lanes.count);
    push.rank = lanes.rank;
    push.column_axis = lanes.column;
    push.place_axis = lanes.place;
    push.columns = static_cast<uint32_t>(pass.length / pass.radix);
    push.passed = static_cast<uint32_t>(pass.passed);
    push.span = static_cast<uint32_t>(span);
    push.quarter = 4 / static_cast<float>(span);
    fft::set_angle(push.angle, span, value_);
    fft::set_number(push.scale, pass.scale, value_);
    push.n = static_cast<uint32_t>(pass.n);
    push.chirp_quarter = 2 / static_cast<float>(pass.n);
    fft::set_angle(push.chirp_angle, 2 * pass.n, value_);
    return push;
  }

  // `sizes` are those of the input.
  void record_pass(const Pass& pass, const Place& input, const Place& output, const std::array<uint64_t, 8>& sizes,
                   float input_sign, float output_sign) {
    const Lanes lanes = lanes_of(pass, input, output, sizes);
    const uint64_t columns = pass.length / pass.radix;
    const uint64_t read = span_of(input, sizes, pass.axis, pass.read),
                   written = span_of(output, sizes, pass.axis, pass.written);
    const uint64_t run = device_.cpu ? device_.items_each(lanes.count, 16) : 1;
    const Together group = pass.group;
    // Neighbouring columns rather than neighbouring numbers of a column, where they are nearer.
    const bool several = group.columns > 1 && lanes.rank > 0;
    const bool read_across = several && lanes.input < columns * input.strides[pass.axis];
    const bool write_across = several && lanes.output < pass.passed * output.strides[pass.axis];
    const uint32_t workgroup = group.lanes != 0 ? group.lanes * group.columns : device_.workgroup;
    KernelRequest kernel =
        shaders::FftPass::request({.chirp = static_cast<int>(pass.chirp),
                                   .columns = group.columns,
                                   .input = input.dtype,
                                   .input_pairs = pairs_of(input, pass.load == Load::pairs, pass.axis),
                                   .lanes = group.lanes,
                                   .load = static_cast<int>(pass.load),
                                   .output = output.dtype,
                                   .output_pairs = pairs_of(output, pass.store == Store::pairs, pass.axis),
                                   .read_across = read_across,
                                   .run = device_.fixed_run(run),
                                   .store = static_cast<int>(pass.store),
                                   .twiddles = pass.passed > 1,
                                   .write_across = write_across});
    kernel.streaming()
        .constant(0, workgroup)
        .wide(needs_wide(std::max(read * input.elements, written * output.elements)))
        .body(*pass.body);
    shaders::FftPass::Push push = push_of(pass, lanes);
    push.run = static_cast<uint32_t>(run);
    push.input_sign = input_sign;
    push.output_sign = output_sign;

    const uint64_t input_bytes = input.elements * dtype_size(input.dtype),
                   output_bytes = output.elements * dtype_size(output.dtype);
    const uint32_t table_bytes = 4 * lanes.table.count;
    const bool factors = pass.load == Load::product;
    const double numbers = static_cast<double>(lanes.count) * pass.radix;
    Dispatch dispatch("fft");
    dispatch.operand(input.buffer, input.first * input_bytes, read * input_bytes, Access::read)
        .operand(output.buffer, output.first * output_bytes, written * output_bytes, Access::write)
        .operand(factors ? scratch_ : nullptr, pass.factor * number_bytes(), factors ? pass.length * number_bytes() : 0,
                 Access::read)
        .operand(&recorder_.parameters(lanes.table.words.data(), table_bytes), 0, table_bytes, Access::read)
        .push(push)
        .groups_linear(ceil_div(lanes.count, group.lanes != 0 ? group.columns : device_.workgroup * run),
                       recorder_.traits())
        .work(numbers * static_cast<double>(input_bytes + output_bytes), 5 * numbers * std::log2(pass.radix + 1));
    log(TUFF_LOG_DISPATCH, "fft {}: {}, {} of {} numbers, radix {} after {}, {} columns{}", dtype_name(args_.dtype),
        kernels_for(device_.cpu), pass.chirp != Chirp::none || factors ? "Bluestein" : "direct", pass.length,
        pass.radix, pass.passed, lanes.count,
        group.lanes != 0 ? fmt::format(", {} in each workgroup", group.columns)
        : run > 1        ? fmt::format(", {} each", run)
                         : "");
    recorder_.dispatch(kernel, dispatch);
  }

  // Merges each axis of the batch with the next inner one where they are contiguous in both operands.
  static uint32_t merge(std::array<Axis, 10>& axes, uint32_t rank) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rank; ++i) {
      const Axis& axis = axes[i];
      if (kept > 0) {
        Axis& inner = axes[kept - 1];
        if (!axis.column && !axis.place && !inner.column && !inner.place && axis.input == inner.input * inner.size &&
            axis.output == inner.output * inner.size) {
          inner.size *= axis.size;
          continue;
        }
      }
      axes[kept++] = axis;
    }
    return kept;
  }

  Recorder& recorder_;
  const FftArgs& args_;
  const fft::Shape shape_;
  const StreamDevice device_;
  const int32_t value_;  // the type that numbers are computed in

  std::array<Pass, kMaxPasses> passes_;
  uint32_t count_ = 0;
  std::optional<fft::Pieces> pieces_;
  std::array<uint64_t, 8> factors_{};  // Bluestein: where the factors of each axis are in scratch memory, in numbers
  uint64_t scratch_numbers_ = 0, largest_ = 0;
  std::array<uint64_t, 2> halves_{};
  const Buffer* scratch_ = nullptr;
};

}  // namespace

void record_fft(Recorder& recorder, const FftArgs& args) {
  require_storage(recorder.traits(), args.dtype);
  if (args.dtype == TUFF_F64 && !recorder.traits().f64) {
    fail(TUFF_ERROR_UNSUPPORTED, "dtype is f64, which the device does not compute");
  }
  Planner(recorder, args).record();
}

}  // namespace tuff
