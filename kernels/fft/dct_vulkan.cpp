// Planner of cosine and sine transforms: along one axis after the other, dct_before.comp, a Fourier transform
// (fft_vulkan.cpp) and dct_after.comp, with what is between them in scratch memory as f32 or f64. So is what is between
// two axes. The batch is cut into pieces as that of a Fourier transform; each takes all of its steps before the next.
//
// TUFF_FFT_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/common/check.hpp"
#include "kernels/common/kernels_for.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/common/workgroup.hpp"
#include "kernels/fft/dct.hpp"
#include "kernels/fft/fft_words.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/dct_after.hpp"
#include "shaders/dct_before.hpp"

namespace tuff {
namespace {

using Sizes = std::array<uint64_t, 8>;

// TUFF_FORM of dct.glsl.
enum class Form : uint8_t { mirrored, second, third, pairs, whole };
Form form_of(int32_t kind, uint64_t n) {
  static constexpr Form kForms[] = {Form::mirrored, Form::second, Form::third};
  const int32_t number = dct::number_of(kind);
  return number < 4 ? kForms[number - 1] : n % 2 == 0 ? Form::pairs : Form::whole;
}

// A line's Fourier transform: of `length` numbers, from `given` ones of which each is `given_elements`, to `made` ones.
struct Inner {
  Form form;
  int32_t kind;
  uint64_t length, given, made;
  uint32_t given_elements, made_elements;
  uint64_t before_span, after_span;  // of the roots before and after; 1: there are none
  uint64_t results;                  // lanes that write a line
};
Inner inner_of(int32_t kind, uint64_t n) {
  const Form form = form_of(kind, n);
  const uint64_t mirrored = dct::norm_size(kind, n), half = n / 2;
  switch (form) {
    case Form::mirrored:
      return {form, TUFF_FFT_COMPLEX, mirrored / 2, mirrored / 2, mirrored / 2, 2, 2, 1, mirrored, n};
    case Form::second: return {form, TUFF_FFT_REAL, n, n, half + 1, 1, 2, 1, 4 * n, half + 1};
    case Form::third: return {form, TUFF_FFT_TO_REAL, n, half + 1, n, 2, 1, 4 * n, 1, n};
    case Form::pairs: return {form, TUFF_FFT_COMPLEX, half, half, half, 2, 2, 2 * n, 8 * n, half};
    case Form::whole: return {form, TUFF_FFT_COMPLEX, n, n, n, 2, 2, 4 * n, 8 * n, n};
  }
  fail(TUFF_ERROR_INTERNAL, "form {}", static_cast<int>(form));
}

// Real numbers that are not dense, or not all of a buffer: of the input, of the output or between two axes.
struct Lines {
  const Buffer* buffer;
  int32_t dtype;
  uint64_t first;
  Sizes strides;
};

class DctPlanner {
 public:
  DctPlanner(Recorder& recorder, const DctArgs& args)
      : recorder_(recorder),
        args_(args),
        shape_(dct::shape_of(args)),
        device_(stream_device(recorder.traits(), forced_variant<"TUFF_FFT_VARIANT">(), dtype_size(args.dtype))),
        value_(computed_type(args.dtype)) {}

  void record() {
    if (shape_.output.span == 0) return;
    const fft::Pieces pieces = reserve();
    pieces.for_each([&](const Sizes& at, const Sizes& sizes) { record_piece(at, sizes); });
  }

 private:
  bool transforms(uint32_t axis) const { return (shape_.axes >> axis & 1) != 0; }
  uint64_t bytes_of(uint64_t elements) const { return checked_mul(elements, dtype_size(value_), "shape"); }

  // Cuts the batch, and takes scratch memory for a piece: between two axes, and on both sides of a Fourier transform.
  fft::Pieces reserve() {
    uint64_t all = 1, given = 0, made = 0, numbers = 1;
    for (uint32_t axis = 0; axis < args_.rank; ++axis) {
      all = checked_mul(all, args_.shape[axis], "shape");
      if (transforms(axis)) numbers *= args_.shape[axis], last_ = axis;
    }
    for (uint32_t axis = 0; axis < args_.rank; ++axis) {
      if (!transforms(axis)) continue;
      const Inner inner = inner_of(args_.kind, args_.shape[axis]);
      const uint64_t others = numbers / args_.shape[axis];
      given = std::max(given, others * inner.given * inner.given_elements);
      made = std::max(made, others * inner.made * inner.made_elements);
    }
    const uint64_t most = std::max(device_.cpu ? fft::kPieceCpu : fft::kPiece, all / 1024);
    const uint64_t fits = std::max<uint64_t>(std::min(most, dct::kMaxNumbers) / numbers, 1);
    const fft::Pieces pieces(args_.shape, args_.rank, shape_.axes, fits);
    const uint64_t batch = pieces.batch(), between = (shape_.axes & (shape_.axes - 1)) != 0 ? numbers : 0;
    take_scratch(recorder_,
                 {{&between_, bytes_of(checked_mul(between, batch, "shape"))},
                  {&given_, bytes_of(checked_mul(given, batch, "shape"))},
                  {&made_, bytes_of(checked_mul(made, batch, "shape"))}},
                 Scratch::outer);
    return pieces;
  }

  static Sizes dense(const Sizes& sizes, uint32_t rank) {
    Sizes strides{};
    uint64_t next = 1;
    for (uint32_t axis = rank; axis-- > 0; next *= sizes[axis]) strides[axis] = next;
    return strides;
  }

  void record_piece(const Sizes& at, const Sizes& sizes) {
    const auto outer = [&](const Buffer* buffer, const fft::Operand& operand) {
      Lines lines{buffer, args_.dtype, 0, operand.strides};
      for (uint32_t axis = 0; axis < args_.rank; ++axis) lines.first += at[axis] * operand.strides[axis];
      return lines;
    };
    Lines from = outer(args_.input, shape_.input);
    for (uint32_t axis = 0; axis < args_.rank; ++axis) {
      if (!transforms(axis)) continue;
      const Lines to =
          axis == last_ ? outer(args_.output, shape_.output) : Lines{&between_, value_, 0, dense(sizes, args_.rank)};
      const Inner inner = inner_of(args_.kind, sizes[axis]);
      Sizes given = sizes, made = sizes;
      given[axis] = inner.given, made[axis] = inner.made;
      record_step<shaders::DctBefore>(inner, from, given_, given, inner.given, sizes, axis);
      record_fourier(inner, sizes, axis);
      record_step<shaders::DctAfter>(inner, to, made_, made, inner.results, sizes, axis);
      from = to;
    }
  }

  void record_fourier(const Inner& inner, const Sizes& sizes, uint32_t axis) {
    Sizes shape = sizes;
    shape[axis] = inner.length;
    static constexpr uint64_t kDense[8] = {};
    record_fft(recorder_, {value_, inner.kind, inner.kind == TUFF_FFT_TO_REAL ? 1 : 0, TUFF_FFT_NORM_NONE, &given_,
                           &made_, shape.data(), kDense, kDense, args_.rank, 1u << axis});
  }

  // The axes of lanes: those of the piece, of which the line's has `along` lanes.
  struct Lanes {
    uint64_t count = 1;
    uint32_t rank = 0, line = 8;
    fft::Table table;
  };
  Lanes lanes_of(const Lines& lines, const Sizes& dense_strides, uint64_t along, const Sizes& sizes,
                 uint32_t axis) const {
    Lanes lanes;
    lanes.table.add64(lines.strides[axis]);
    lanes.table.add64(dense_strides[axis]);
    for (uint32_t i = args_.rank; i-- > 0;) {
      uint64_t size = i == axis ? along : sizes[i];
      if (size == 1) continue;
      const uint64_t stride = lines.strides[i], dense_stride = dense_strides[i];
      // Axes of the batch that follow each other in both are one.
      for (; i != axis && i > 0 && i - 1 != axis && lines.strides[i - 1] == stride * size &&
             dense_strides[i - 1] == dense_stride * size;
           --i) {
        size *= sizes[i - 1];
      }
      if (i == axis) lanes.line = lanes.rank;
      lanes.table.add_axis(static_cast<uint32_t>(size), stride, dense_stride);
      ++lanes.rank;
      lanes.count *= size;
    }
    return lanes;
  }

  template <typename Shader>
  static KernelRequest request_of(const Lines& lines, int form, int sine, int ends, int64_t run) {
    if constexpr (std::is_same_v<Shader, shaders::DctBefore>) {
      return Shader::request({.ends = ends, .form = form, .input = lines.dtype, .run = run, .sine = sine});
    } else {
      return Shader::request({.ends = ends, .form = form, .output = lines.dtype, .run = run, .sine = sine});
    }
  }

  // From lines to a dense operand of a Fourier transform, or from that to lines. `dense_sizes` are its own.
  template <typename Shader>
  void record_step(const Inner& inner, const Lines& lines, const Buffer& memory, const Sizes& dense_sizes,
                   uint64_t along, const Sizes& sizes, uint32_t axis) {
    constexpr bool before = std::is_same_v<Shader, shaders::DctBefore>;
    typename Shader::Push push{};
    const Lanes of = lanes_of(lines, dense(dense_sizes, args_.rank), along, sizes, axis);
    const fft::Table& table = of.table;
    const uint64_t lanes = of.count;
    const uint64_t run = device_.cpu ? device_.items_each(lanes, 16) : 1;
    const uint64_t span = before ? inner.before_span : inner.after_span;
    push.lanes = static_cast<uint32_t>(lanes);
    push.run = static_cast<uint32_t>(run);
    push.n = static_cast<uint32_t>(sizes[axis]);
    push.mirrored = static_cast<uint32_t>(dct::norm_size(args_.kind, sizes[axis]));
    push.span = static_cast<uint32_t>(span);
    push.quarter = 4 / static_cast<float>(span);
    fft::set_angle(push.angle, span, value_);
    fft::set_number(push.scale, axis == last_ ? shape_.scale : 1, value_);

    uint64_t reach = 1, numbers = 1;
    for (uint32_t i = 0; i < args_.rank; ++i) {
      reach += (sizes[i] - 1) * lines.strides[i];
      numbers *= dense_sizes[i];
    }
    const uint32_t elements = before ? inner.given_elements : inner.made_elements, table_bytes = 4 * table.count;
    const uint64_t size = dtype_size(lines.dtype), bytes = numbers * elements * dtype_size(value_);
    KernelRequest kernel =
        request_of<Shader>(lines, static_cast<int>(inner.form), dct::is_sine(args_.kind) ? 1 : 0,
                           args_.orthogonal != 0 ? 1 : 0, device_.fixed_run(static_cast<uint64_t>(run)));
    kernel.streaming()
        .constant(0, device_.workgroup)
        .constant(1, of.rank)
        .constant(2, of.line)
        .wide(needs_wide(std::max(reach, numbers * elements)));
    Dispatch dispatch("dct");
    const auto operand = [&] {
      dispatch.operand(lines.buffer, lines.first * size, reach * size, before ? Access::read : Access::write);
    };
    if (before) operand();
    dispatch.operand(&memory, 0, bytes, before ? Access::write : Access::read);
    if (!before) operand();
    dispatch.operand(&recorder_.parameters(table.words.data(), table_bytes), 0, table_bytes, Access::read)
        .push(push)
        .groups_linear(ceil_div(lanes, device_.workgroup * run), recorder_.traits())
        .work(static_cast<double>(bytes) + static_cast<double>(lanes * size), 20 * static_cast<double>(lanes));
    log(TUFF_LOG_DISPATCH, "dct {}: {}, form {} {} a transform of {} numbers, {} lanes{}", dtype_name(args_.dtype),
        kernels_for(device_.cpu), static_cast<int>(inner.form), before ? "before" : "after", inner.length, lanes,
        run > 1 ? fmt::format(", {} each", run) : "");
    recorder_.dispatch(kernel, dispatch);
  }

  Recorder& recorder_;
  const DctArgs& args_;
  const dct::Shape shape_;
  const StreamDevice device_;
  const int32_t value_;  // the type that numbers are computed in
  uint32_t last_ = 0;    // of the transformed axes
  Buffer between_, given_, made_;
};

}  // namespace

void record_dct(Recorder& recorder, const DctArgs& args) {
  require_storage(recorder.traits(), args.dtype);
  if (args.dtype == TUFF_F64 && !recorder.traits().f64) {
    fail(TUFF_ERROR_UNSUPPORTED, "dtype is f64, which the device does not compute");
  }
  DctPlanner(recorder, args).record();
}

}  // namespace tuff
