// Planner of the gradients of recurrent layers. The steps are computed anew, and all that their gradients need is kept
// in scratch memory; then the steps follow in the opposite order. Each way, a step is a GEMM with R and a kernel
// (rnn_backward.comp), or two of each, as in rnn_vulkan.cpp. What does not depend on the step before is one GEMM for
// all steps: products of the input, and the gradients by the input and by weights, whose sums go over steps and
// sequences.
//
// A batch whose steps take more than 512 MiB is computed in parts, which add to the gradients by weights.
//
// TUFF_RNN_VARIANT=gpu or cpu in the environment forces the workgroups of that kind of device, for tests.
#include <algorithm>
#include <array>

#include "kernels/common/check.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/rnn/rnn_backward.hpp"
#include "kernels/rnn/rnn_plan.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/log.hpp"
#include "shaders/rnn_backward.hpp"
#include "shaders/rnn_sequences.hpp"

namespace tuff {
namespace rnn {
namespace {

constexpr uint64_t kMaxScratchNumbers = uint64_t{1} << 30;  // of scratch memory, which kernels number in 32 bits

// A matrix, or one for each direction: `stride` elements from one to the next.
struct Matrix {
  Buffer buffer;
  uint64_t ld = 0, stride = 0;
  bool transposed = false;
};

// The gradients of a call, part of its sequences at a time.
class Backward {
 public:
  Backward(Recorder& recorder, const RnnBackwardArgs& call)
      : recorder_(recorder), call_(call), all_(call.layer), part_(call.layer), layer_(recorder, part_, 0, all_.batch) {}

  // Fails if the device cannot compute the call; otherwise takes scratch memory.
  void prepare();
  void record();

 private:
  struct Regions {
    Region x, sums, extra, h, c, dy, product, dh, dc, dp, ones;  // of a part
    Region bias, peepholes, w, r, projection;                    // in f32
    Region dw, dr, dbias_w, dbias_r, dpeepholes, dprojection;    // in f32, if the results are of another type
  };

  bool lstm() const { return all_.cell == TUFF_RNN_CELL_LSTM; }
  bool projected() const { return all_.proj_size != 0; }
  bool has_extra() const { return all_.cell == TUFF_RNN_CELL_GRU || projected(); }
  bool adds_to_dh() const { return all_.cell == TUFF_RNN_CELL_GRU || all_.lengths != nullptr; }
  uint64_t directions() const { return all_.directions(); }
  uint64_t step_rows() const { return all_.steps * part_.batch; }
  // Numbers of a sequence in scratch memory.
  uint64_t numbers_of_sequence() const;
  void require_ranges() const;

  Buffer at(const Region& region, uint64_t first) const {
    return layer_.region({region.first + first, region.count - first});
  }
  // A result, or its region in f32.
  Buffer result(const Buffer* wanted, const Region& region, uint64_t first) const {
    return all_.dtype == TUFF_F32 ? moved(wanted, first, TUFF_F32) : at(region, first);
  }
  // In f32: a caller's operand, or its copy.
  Buffer weights(const Buffer* given, const Region& copy, uint64_t first) const {
    return all_.dtype == TUFF_F32 ? moved(given, first, TUFF_F32) : at(copy, first);
  }
  // Rows of step t (and of all later ones) of each direction. The directions' strides are positive, whatever their
  // steps.
  Matrix step_of(const Region& region, uint64_t width, uint64_t columns_from, const std::array<uint64_t, 2>& t,
                 uint64_t steps) const;
  std::array<uint64_t, 2> times(uint64_t i) const { return {layer_.step_of(0, i), layer_.step_of(1, i)}; }
  std::array<uint64_t, 2> slots_before(uint64_t i) const { return slots(i, 0); }
  std::array<uint64_t, 2> slots_after(uint64_t i) const { return slots(i, 1); }
  std::array<uint64_t, 2> slots(uint64_t i, uint64_t after) const {
    std::array<uint64_t, 2> found = times(i);
    for (uint64_t d = 0; d < 2; ++d) found[d] += all_.reversed(d) ? 1 - after : after;
    return found;
  }

  // C = op(A) op(B) + beta C for each direction.
  void multiply(const Matrix& a, const Matrix& b, const Matrix& c, uint64_t m, uint64_t n, uint64_t k, double beta,
                uint64_t count) const;
  void zeros(const Region& region) const {
    if (region.count != 0) record_fill(recorder_, layer_.region(region), 0, region.count * sizeof(float), {});
  }
  void record_constants() const;
  void record_part(uint64_t first);
  // Between a caller's rows and dense f32.
  void record_sequences(const Buffer* rows, const std::array<uint64_t, 3>& strides, const Region& dense,
                        uint64_t directions, uint64_t columns, bool store) const;
  void record_state(const Buffer* given, const Region& region, uint64_t width, bool slots, uint64_t first) const;
  void record_stage(int stage, uint64_t i) const;
  void record_forward(uint64_t i) const;
  void record_backward(uint64_t i) const;
  void record_gradients(bool more) const;
  void record_results() const;

  Recorder& recorder_;
  const RnnBackwardArgs& call_;
  const RnnArgs& all_;
  RnnArgs part_;
  Buffer x_, dy_, dx_, lengths_;
  Layer layer_;
  uint64_t sequences_ = 0;  // of a part
  uint64_t skipped_ = 0;    // of these, the first ones, belong to the part before
  Regions in_;
};

uint64_t Backward::numbers_of_sequence() const {
  const uint64_t d = directions(), h = all_.hidden_size, p = all_.state_size(), t = all_.steps;
  const uint64_t of_step = all_.gate_rows() + (has_extra() ? h : 0) + p;
  return t * (d * of_step + all_.input_size + 1) + (t + 1) * d * (p + (lstm() ? h : 0)) +
         d * (all_.gate_rows() + p + 4 * h);
}

void Backward::require_ranges() const {
  const DeviceTraits& traits = recorder_.traits();
  const auto require = [&](uint64_t elements, uint64_t bytes, const char* name) {
    require_range(traits, elements, bytes, name);
  };
  if (all_.steps == 0 || all_.batch == 0) return;
  const uint64_t size = dtype_size(all_.dtype);
  require(all_.x_elements(), size, "x");
  require(call_.dy != nullptr ? all_.y_elements() : 0, size, "dy");
  require(call_.dx != nullptr ? call_.dx_elements() : 0, size, "dx");
  require(call_.w_elements(), sizeof(float), "w");
  require(call_.r_elements(), sizeof(float), "r");
  require(call_.projection_elements(), sizeof(float), "projection");
  require(layer_.has_bias() ? (directions() - 1) * all_.bias_stride + all_.gate_rows() : 0, size, "bias_w");
}

void Backward::prepare() {
  const DeviceTraits& traits = recorder_.traits();
  require_storage(traits, all_.dtype);
  require_sizes(all_);
  require_ranges();
  const uint64_t d = directions(), h = all_.hidden_size, p = all_.state_size(), t = all_.steps;
  // 2^31 steps of sizes up to 2^26 stay below 2^64.
  const uint64_t each = numbers_of_sequence();
  const uint64_t in_range = (traits.max_range - kDescriptorSlack) / sizeof(float);
  const uint64_t most = traits.addresses ? kMaxScratchNumbers : std::min(kMaxScratchNumbers, in_range);
  const bool runs = t != 0 && all_.batch != 0, cast = all_.dtype != TUFF_F32;
  // What does not depend on the number of sequences, and the ends of thirteen regions.
  const uint64_t fixed = 13 * kAligned + (layer_.has_bias() ? d * layer_.bias_rows() * h : 0) +
                         (all_.peepholes != nullptr ? call_.peephole_elements() : 0);
  const uint64_t room = std::min(most - std::min(most, fixed), kMaxNumbers);
  sequences_ = std::min(all_.batch, std::max<uint64_t>(room / each, 1));
  Space space;
  const auto take = [&space](uint64_t count) { return space.take(count); };
  const uint64_t rows = sequences_ * t, states = sequences_ * (t + 1);
  in_.dh = take(d * sequences_ * p), in_.dc = take(lstm() ? d * sequences_ * h : 0);
  if (runs) {
    // What a kernel reads or writes by its number comes first.
    in_.sums = take(d * rows * all_.gate_rows());
    in_.extra = take(has_extra() ? d * rows * h : 0);
    in_.h = take(d * states * p), in_.c = take(lstm() ? d * states * h : 0);
    in_.dy = take(d * rows * p), in_.product = take(d * sequences_ * all_.gate_rows());
    in_.dp = take(call_.dpeepholes != nullptr ? d * sequences_ * 3 * h : 0);
    in_.bias = take(layer_.has_bias() ? d * layer_.bias_rows() * h : 0);
    in_.peepholes = take(all_.peepholes != nullptr ? call_.peephole_elements() : 0);
    in_.x = take(rows * all_.input_size), in_.ones = take(rows);
    if (space.used >= most) {
      fail(TUFF_ERROR_UNSUPPORTED,
           "steps={} input_size={} hidden_size={}: the gradients of {} sequences need {} numbers, fewer than {} are "
           "possible",
           t, all_.input_size, h, sequences_, space.used, most);
    }
    in_.w = take(cast ? call_.w_elements() : 0), in_.r = take(cast ? call_.r_elements() : 0);
    in_.projection = take(cast ? call_.projection_elements() : 0);
  }
  const auto sums = [&](const Buffer* wanted, uint64_t count) { return take(cast && wanted != nullptr ? count : 0); };
  in_.dw = sums(call_.dw, call_.w_elements()), in_.dr = sums(call_.dr, call_.r_elements());
  const uint64_t bias = d * all_.gate_rows();
  in_.dbias_w = sums(call_.dbias_w, bias), in_.dbias_r = sums(call_.dbias_r, bias);
  in_.dpeepholes = sums(call_.dpeepholes, call_.peephole_elements());
  in_.dprojection = sums(call_.dprojection, call_.projection_elements());
  layer_.bias = in_.bias;
  if (space.used != 0) layer_.scratch = recorder_.scratch(space.used * sizeof(float), Scratch::outer);
}

Matrix Backward::step_of(const Region& region, uint64_t width, uint64_t columns_from, const std::array<uint64_t, 2>& t,
                         uint64_t steps) const {
  const uint64_t row = part_.batch * width, first = t[0] * row;
  return {at(region, first + columns_from), width, steps * row + t[1] * row - first};
}

void Backward::multiply(const Matrix& a, const Matrix& b, const Matrix& c, uint64_t m, uint64_t n, uint64_t k,
                        double beta, uint64_t count) const {
  GemmArgs args{};
  args.a_type = args.b_type = args.c_type = args.accumulate = TUFF_F32;
  args.precision = TUFF_PRECISION_DEFAULT;
  args.ta = a.transposed ? TUFF_TRANS : TUFF_NO_TRANS, args.tb = b.transposed ? TUFF_TRANS : TUFF_NO_TRANS;
  args.m = m, args.n = n, args.k = k;
  args.alpha = 1, args.beta = beta;
  args.a = &a.buffer, args.b = &b.buffer, args.c = &c.buffer;
  args.lda = a.ld, args.ldb = b.ld, args.ldc = c.ld;
  args.stride_a = a.stride, args.stride_b = b.stride, args.stride_c = c.stride;
  args.batch_count = count;
  record_gemm(recorder_, args);
}

void Backward::record_sequences(const Buffer* rows, const std::array<uint64_t, 3>& strides, const Region& dense,
                                uint64_t directions, uint64_t columns, bool store) const {
  const uint64_t items = directions * step_rows() * columns, size = dtype_size(all_.dtype);
  const uint64_t reach =
      (all_.steps - 1) * strides[0] + (part_.batch - 1) * strides[1] + (directions - 1) * strides[2] + columns;
  const bool wide = needs_wide(reach);
  const uint32_t threads = layer_.device.workgroup;
  KernelRequest kernel =
      shaders::RnnSequences::request({.lengths = all_.lengths != nullptr, .store = store, .type = all_.dtype});
  kernel.streaming().constant(0, threads).wide(wide);
  const Buffer numbers = layer_.region(dense);
  Dispatch dispatch("rnn_backward");
  dispatch.operand(rows, 0, reach * size, store ? Access::write : Access::read)
      .operand(part_.lengths, 0, part_.batch * sizeof(int32_t), Access::read)
      .operand(&numbers, 0, items * sizeof(float), store ? Access::read : Access::write);
  const auto fill = [&](auto push) {
    using Index = decltype(push.step);
    push.step = static_cast<Index>(strides[0]);
    push.sequence = static_cast<Index>(part_.batch > 1 ? strides[1] : 0);
    push.direction = static_cast<Index>(directions > 1 ? strides[2] : 0);
    push.items = static_cast<uint32_t>(items);
    push.steps = static_cast<uint32_t>(all_.steps);
    push.batch = static_cast<uint32_t>(part_.batch);
    push.columns = static_cast<uint32_t>(columns);
    push.skipped = static_cast<uint32_t>(skipped_);
    dispatch.push(push);
  };
  if (wide) {
    fill(shaders::RnnSequences::Push<uint64_t>{});
  } else {
    fill(shaders::RnnSequences::Push<uint32_t>{});
  }
  dispatch.groups_linear(ceil_div(items, threads), recorder_.traits())
      .work(static_cast<double>(items * (size + sizeof(float))), 0);
  recorder_.dispatch(kernel, dispatch);
}

// Initial states and gradients of final ones, or zeros. With slots, those before each direction's first step.
void Backward::record_state(const Buffer* given, const Region& region, uint64_t width, bool slots,
                            uint64_t first) const {
  const uint64_t each = part_.batch * width;
  for (uint64_t direction = 0; direction < directions(); ++direction) {
    const uint64_t slot =
        !slots ? direction : direction * (all_.steps + 1) + (all_.reversed(direction) ? all_.steps : 0);
    const Region place{region.first + slot * each, each};
    if (given == nullptr) {
      zeros(place);
      continue;
    }
    const Buffer from = moved(given, (direction * all_.batch + first) * width, all_.dtype), to = layer_.region(place);
    record_cast(recorder_, {all_.dtype, TUFF_F32, &from, &to, each});
  }
}

void Backward::record_stage(int stage, uint64_t i) const {
  const uint32_t threads = layer_.device.workgroup;
  KernelRequest kernel = shaders::RnnBackward::request({.after = all_.linear_before_reset,
                                                        .bias = layer_.has_bias(),
                                                        .cell = all_.cell,
                                                        .clip = all_.clip > 0,
                                                        .exact_arithmetic = recorder_.traits().cpu,
                                                        .keeps = adds_to_dh(),
                                                        .lengths = all_.lengths != nullptr,
                                                        .onnx = all_.gate_order == TUFF_RNN_GATES_ONNX,
                                                        .peepholes = all_.peepholes != nullptr,
                                                        .projected = projected(),
                                                        .slopes = call_.dpeepholes != nullptr,
                                                        .stage = stage});
  kernel.streaming().constant(0, threads);
  shaders::RnnBackward::Push push{};
  const auto place = [](const Region& region) { return static_cast<uint32_t>(region.first); };
  push.sums = place(in_.sums), push.extra = place(in_.extra), push.h = place(in_.h), push.c = place(in_.c);
  push.dy = place(in_.dy), push.dh = place(in_.dh), push.dc = place(in_.dc), push.product = place(in_.product);
  push.dp = place(in_.dp), push.bias = place(in_.bias), push.peepholes = place(in_.peepholes);
  for (uint64_t d = 0; d < directions(); ++d) {
    push.t[d] = static_cast<uint32_t>(times(i)[d]);
    push.backwards |= all_.reversed(d) ? 1u << d : 0u;
  }
  push.rows = static_cast<uint32_t>(directions() * part_.batch);
  push.steps = static_cast<uint32_t>(all_.steps);
  push.batch = static_cast<uint32_t>(part_.batch);
  push.hidden = static_cast<uint32_t>(all_.hidden_size);
  push.width = static_cast<uint32_t>(all_.state_size());
  push.skipped = static_cast<uint32_t>(skipped_);
  push.clip = static_cast<float>(all_.clip);
  const uint64_t units = stage == 3 || stage == 4 ? all_.state_size() : all_.hidden_size, items = push.rows * units;
  const Buffer numbers = layer_.region({0, in_.x.first});
  Dispatch dispatch("rnn_backward");
  dispatch.operand(&numbers, 0, in_.x.first * sizeof(float), Access::read_write)
      .operand(part_.lengths, 0, part_.batch * sizeof(int32_t), Access::read)
      .push(push)
      .groups_linear(ceil_div(items, threads), recorder_.traits())
      .work(static_cast<double>(8 * items * (all_.gates() + 2)), static_cast<double>(40 * items * all_.gates()));
  recorder_.dispatch(kernel, dispatch);
}

void Backward::record_forward(uint64_t i) const {
  const uint64_t h = all_.hidden_size, p = all_.state_size(), batch = part_.batch, d = directions(),
                 rows = all_.gate_rows(), first_rows = layer_.first_rows();
  const Matrix before = step_of(in_.h, p, 0, slots_before(i), all_.steps + 1);
  const auto product = [&](uint64_t columns) { return Matrix{at(in_.product, 0), columns, batch * columns}; };
  const auto transposed = [&](const Buffer& buffer, uint64_t ld, uint64_t stride) {
    return Matrix{buffer, ld, stride, true};
  };
  multiply(before, transposed(weights(all_.r, in_.r, 0), p, rows * p), product(first_rows), batch, first_rows, p, 0, d);
  if (all_.resets_first()) {
    record_stage(1, i);
    const Matrix reset = step_of(in_.extra, h, 0, times(i), all_.steps);
    multiply(reset, transposed(weights(all_.r, in_.r, first_rows * p), p, rows * p), product(h), batch, h, h, 0, d);
    return record_stage(2, i);
  }
  record_stage(0, i);
  if (!projected()) return;
  const Matrix given = step_of(in_.extra, h, 0, times(i), all_.steps),
               after = step_of(in_.h, p, 0, slots_after(i), all_.steps + 1);
  multiply(given, transposed(weights(all_.projection, in_.projection, 0), h, p * h), after, batch, p, h, 0, d);
  if (all_.lengths != nullptr) record_stage(3, i);
}

void Backward::record_backward(uint64_t i) const {
  const uint64_t h = all_.hidden_size, p = all_.state_size(), batch = part_.batch, d = directions(),
                 rows = all_.gate_rows();
  const Matrix one{at(in_.product, 0), h, batch * h}, dh{at(in_.dh, 0), p, batch * p};
  if (projected()) {
    record_stage(4, i);
    const Matrix dy = step_of(in_.dy, p, 0, times(i), all_.steps);
    multiply(dy, {weights(all_.projection, in_.projection, 0), h, p * h}, one, batch, h, p, 0, d);
  }
  record_stage(5, i);
  const Matrix sums = step_of(in_.sums, rows, 0, times(i), all_.steps);
  const Matrix r{weights(all_.r, in_.r, 0), p, rows * p};
  if (all_.resets_first()) {
    const Matrix of_new = step_of(in_.sums, rows, 2 * h, times(i), all_.steps);
    multiply(of_new, {weights(all_.r, in_.r, 2 * h * p), p, rows * p}, one, batch, h, h, 0, d);
    record_stage(6, i);
  }
  multiply(sums, r, dh, batch, p, layer_.first_rows(), adds_to_dh() ? 1 : 0, d);
}

// All steps of a part at once. more: the results have those of other parts already.
void Backward::record_gradients(bool more) const {
  const uint64_t h = all_.hidden_size, p = all_.state_size(), n = all_.input_size, d = directions(),
                 rows = all_.gate_rows(), k = step_rows();
  const double beta = more ? 1 : 0;
  const bool after = all_.linear_before_reset;
  // The gradients by the sums whose products with W come from columns of `sums`, and of a GRU those of its new gate.
  const uint64_t first_of_w = after ? 2 * h : rows, first_of_r = layer_.first_rows();
  const auto sums = [&](uint64_t from) { return Matrix{at(in_.sums, from), rows, k * rows, true}; };
  const Matrix extra = has_extra() ? Matrix{at(in_.extra, 0), h, k * h, true} : Matrix{};
  const auto not_transposed = [](Matrix matrix) {
    matrix.transposed = false;
    return matrix;
  };
  const Matrix x{at(in_.x, 0), n, 0};
  if (call_.dw != nullptr) {
    multiply(sums(0), x, {result(call_.dw, in_.dw, 0), n, rows * n}, first_of_w, n, k, beta, d);
    if (after) multiply(extra, x, {result(call_.dw, in_.dw, 2 * h * n), n, rows * n}, h, n, k, beta, d);
  }
  if (call_.dr != nullptr) {
    // h before each step, of which the reverse direction has the first one at the end.
    const uint64_t each = part_.batch * p, first = all_.reversed(0) ? each : 0;
    const Matrix before{at(in_.h, first), p, (all_.steps + 1) * each + (d > 1 ? each : 0)};
    multiply(sums(0), before, {result(call_.dr, in_.dr, 0), p, rows * p}, first_of_r, p, k, beta, d);
    if (all_.resets_first()) {
      multiply(sums(2 * h), not_transposed(extra), {result(call_.dr, in_.dr, 2 * h * p), p, rows * p}, h, p, k, beta,
               d);
    }
  }
  const Matrix ones{at(in_.ones, 0), k, 0};
  const uint64_t bias_stride = all_.dtype == TUFF_F32 ? all_.bias_stride : rows;
  if (call_.dbias_w != nullptr) {
    multiply(ones, not_transposed(sums(0)), {result(call_.dbias_w, in_.dbias_w, 0), first_of_w, bias_stride}, 1,
             first_of_w, k, beta, d);
    if (after) {
      multiply(ones, not_transposed(extra), {result(call_.dbias_w, in_.dbias_w, 2 * h), h, bias_stride}, 1, h, k, beta,
               d);
    }
  }
  if (call_.dbias_r != nullptr) {
    multiply(ones, not_transposed(sums(0)), {result(call_.dbias_r, in_.dbias_r, 0), rows, bias_stride}, 1, rows, k,
             beta, d);
  }
  if (call_.dprojection != nullptr) {
    multiply({at(in_.dy, 0), p, k * p, true}, not_transposed(extra),
             {result(call_.dprojection, in_.dprojection, 0), h, p * h}, p, h, k, beta, d);
  }
  if (call_.dpeepholes != nullptr) {
    multiply({at(in_.ones, 0), part_.batch, 0}, {at(in_.dp, 0), 3 * h, part_.batch * 3 * h},
             {result(call_.dpeepholes, in_.dpeepholes, 0), 3 * h, 3 * h}, 1, 3 * h, part_.batch, beta, d);
  }
  if (call_.dx == nullptr) return;
  // In the place of x, which is not needed any more. Both directions add to it.
  for (uint64_t direction = 0; direction < d; ++direction) {
    const uint64_t of_sums = direction * k * rows, of_w = direction * rows * n;
    multiply({at(in_.sums, of_sums), rows}, {weights(all_.w, in_.w, of_w), n}, x, k, n, first_of_w, direction, 1);
    if (!after) continue;
    multiply({at(in_.extra, direction * k * h), h}, {weights(all_.w, in_.w, of_w + 2 * h * n), n}, x, k, n, h, 1, 1);
  }
  record_sequences(&dx_, {call_.dx_strides[0], call_.dx_strides[1], 0}, in_.x, 1, n, true);
}

void Backward::record_constants() const {
  layer_.record_bias();
  const auto copy = [&](const Buffer* given, const Region& to) {
    if (to.count == 0) return;
    const Buffer numbers = layer_.region(to);
    record_cast(recorder_, {all_.dtype, TUFF_F32, given, &numbers, to.count});
  };
  copy(all_.peepholes, in_.peepholes);
  copy(all_.w, in_.w), copy(all_.r, in_.r), copy(all_.projection, in_.projection);
  constexpr uint32_t kOne = 0x3f800000;
  record_fill(recorder_, layer_.region(in_.ones), 0, in_.ones.count * sizeof(float), {kOne, kOne, kOne, kOne});
}

void Backward::record_part(uint64_t first) {
  // All parts have the same size, so that each finds scratch memory divided alike: the last one begins early.
  const uint64_t end = std::min(first + sequences_, all_.batch);
  skipped_ = first - (end - sequences_);
  first -= skipped_;
  part_.batch = sequences_;
  const bool more = end > sequences_;
  const int32_t dtype = all_.dtype;
  const uint64_t h = all_.hidden_size, p = all_.state_size(), d = directions(), rows = all_.gate_rows();
  record_state(call_.dhn, in_.dh, p, false, first);
  if (lstm()) record_state(call_.dcn, in_.dc, h, false, first);
  if (all_.steps != 0) {
    x_ = moved(all_.x, first * all_.x_strides[1], dtype), part_.x = &x_;
    dy_ = moved(call_.dy, first * all_.y_strides[1], dtype), dx_ = moved(call_.dx, first * call_.dx_strides[1], dtype);
    lengths_ = moved(all_.lengths, first, TUFF_I32);
    if (all_.lengths != nullptr) part_.lengths = &lengths_;
    // For rows below 16 bytes, GEMM's operand for both directions begins with more than what a step has written.
    if (d > 1 && part_.batch * p < 4) zeros(in_.h);
    if (d > 1 && part_.batch * h < 4) zeros(in_.extra);
    record_state(all_.h0, in_.h, p, true, first);
    if (lstm()) record_state(all_.c0, in_.c, h, true, first);
    zeros(in_.dp);
    record_sequences(&x_, {all_.x_strides[0], all_.x_strides[1], 0}, in_.x, 1, all_.input_size, false);
    if (call_.dy != nullptr) {
      record_sequences(&dy_, all_.y_strides, in_.dy, d, p, false);
    } else {
      zeros(in_.dy);
    }
    multiply({at(in_.x, 0), all_.input_size},
             {weights(all_.w, in_.w, 0), all_.input_size, rows * all_.input_size, true},
             {at(in_.sums, 0), rows, step_rows() * rows}, step_rows(), rows, all_.input_size, 0, d);
    for (uint64_t i = 0; i < all_.steps; ++i) record_forward(i);
    for (uint64_t i = all_.steps; i-- > 0;) record_backward(i);
    record_gradients(more);
  }
  const auto give = [&](const Region& region, uint64_t width, const Buffer* wanted) {
    const uint64_t count = (part_.batch - skipped_) * width;
    for (uint64_t direction = 0; direction < d && wanted != nullptr; ++direction) {
      const Buffer from = at(region, (direction * part_.batch + skipped_) * width),
                   to = moved(wanted, (direction * all_.batch + first + skipped_) * width, dtype);
      record_cast(recorder_, {TUFF_F32, dtype, &from, &to, count});
    }
  };
  give(in_.dh, p, call_.dh0);
  give(in_.dc, h, call_.dc0);
}

// The gradients by weights: rounds sums, or writes those of no steps.
void Backward::record_results() const {
  const bool none = all_.steps == 0 || all_.batch == 0;
  const uint64_t d = directions(), rows = all_.gate_rows();
  const auto give = [&](const Buffer* wanted, const Region& region, uint64_t pieces, uint64_t count, uint64_t stride) {
    if (wanted == nullptr) return;
    if (none && region.count != 0) zeros(region);
    for (uint64_t i = 0; i < pieces; ++i) {
      const Buffer to = moved(wanted, i * stride, all_.dtype);
      if (all_.dtype != TUFF_F32) {
        const Buffer from = at(region, i * count);
        record_cast(recorder_, {TUFF_F32, all_.dtype, &from, &to, count});
      } else if (none) {
        record_fill(recorder_, to, 0, count * sizeof(float), {});
      }
    }
  };
  give(call_.dw, in_.dw, 1, call_.w_elements(), 0);
  give(call_.dr, in_.dr, 1, call_.r_elements(), 0);
  give(call_.dbias_w, in_.dbias_w, d, rows, all_.bias_stride);
  give(call_.dbias_r, in_.dbias_r, d, rows, all_.bias_stride);
  give(call_.dpeepholes, in_.dpeepholes, 1, call_.peephole_elements(), 0);
  give(call_.dprojection, in_.dprojection, 1, call_.projection_elements(), 0);
}

void Backward::record() {
  log(TUFF_LOG_DISPATCH, "rnn_backward {} batch={} steps={} {}->{}: {} sequences at once, groups of {}",
      dtype_name(all_.dtype), all_.batch, all_.steps, all_.input_size, all_.hidden_size, sequences_,
      layer_.device.workgroup);
  if (all_.steps != 0 && all_.batch != 0) record_constants();
  for (uint64_t first = 0; first < all_.batch; first += sequences_) record_part(first);
  record_results();
}

}  // namespace
}  // namespace rnn

void record_rnn_backward(Recorder& recorder, const RnnBackwardArgs& args) {
  rnn::Backward backward(recorder, args);
  backward.prepare();
  backward.record();
}

}  // namespace tuff
