// Draws the arguments of products, convolutions, attention, and operations on images and elements, and lists all
// operations. The sizes of operands are those that tuff.h requires, computed here independently.
#include <algorithm>

#include "kernels/attention/attention.hpp"
#include "kernels/attention/attention_backward.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/conv/conv_backward.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/pool/pool_backward.hpp"
#include "kernels/position/rope.hpp"
#include "kernels/resize/resize.hpp"
#include "planners/draw.hpp"
#include "planning/backend_kernels.hpp"

namespace tuff_test {
namespace {

using tuff::Buffer;
using tuff::dtype_size;

// --- gemm --------------------------------------------------------------------------------------------------------

struct Stored {
  uint64_t rows, cols, ld, stride;
  uint64_t matrix() const { return rows == 0 || cols == 0 ? 0 : plus(times(rows - 1, ld), cols); }
  uint64_t batch(uint64_t count) const {
    return matrix() == 0 || count == 0 ? 0 : plus(times(count - 1, stride), matrix());
  }
  bool dense(uint64_t count) const {
    return (rows == 1 || ld == cols) && (count == 1 || stride == 0 || stride == matrix());
  }
};

// Draws a leading dimension and a stride between matrices.
Stored store(Call& call, uint64_t rows, uint64_t cols, bool may_repeat) {
  Numbers& n = call.numbers;
  Stored stored{rows, cols, cols, 0};
  if (n.coin(3)) stored.ld = plus(cols, n.coin(16) ? call.size() : n.below(20));
  if (n.coin(8)) stored.ld = times(plus(stored.ld, 7) / 8, 8);
  stored.stride = times(rows, stored.ld);
  const uint64_t kind = n.below(8);
  if (kind == 0) stored.stride = stored.matrix();
  if (kind == 1) stored.stride = plus(stored.stride, n.below(40));
  if (kind == 2) stored.stride = plus(stored.stride, call.size());
  if (kind > 5 && may_repeat) stored.stride = 0;
  return stored;
}

constexpr const char* kGemmVariants[] = {"panels",
                                         "skinny",
                                         "tiny_lanes",
                                         "tiny_columns",
                                         "tile_128x128",
                                         "tile_128x128x8x8",
                                         "tile_128x64",
                                         "tile_64x64x8",
                                         "tile_64x64",
                                         "tile_64x64x32",
                                         "tile_32x32",
                                         "subgroup_4x2",
                                         "subgroup_2x2",
                                         "subgroup_4x1",
                                         "subgroup_2x1",
                                         "subgroup_1x1",
                                         "subgroup_2x1_swapped",
                                         "subgroup_1x1_swapped",
                                         "matrix_128x128",
                                         "matrix_128x64",
                                         "matrix_64x64",
                                         "matrix_64x64x32",
                                         "matrix_64x16",
                                         "matrix_16x64"};

// Creates a table whose only choice is for this GEMM.
void tune(Call& call, const tuff::GemmArgs& args) {
  Numbers& n = call.numbers;
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  const std::string form = fmt::format("{}{} {} {} {}{}", ta ? 't' : 'n', tb ? 't' : 'n', tuff::dtype_name(args.a_type),
                                       tuff::dtype_name(args.b_type), tuff::dtype_name(args.c_type),
                                       args.precision == TUFF_PRECISION_ALLOW_F16    ? " allow_f16"
                                       : args.precision == TUFF_PRECISION_ALLOW_BF16 ? " allow_bf16"
                                       : args.precision == TUFF_PRECISION_ALLOW_TF32 ? " allow_tf32"
                                                                                     : "");
  const char* const variant = kGemmVariants[n.below(std::size(kGemmVariants))];
  const uint64_t slices = n.coin(3) ? 0 : n.coin() ? n.below(257) : 1 + n.below(9);
  tuff::TuningDevice device;
  device.uuid = "00", device.name = device.driver = "a", device.library = "0";
  call.tell("tuned", fmt::format("{} with split-K {}", variant, slices));
  call.tuned = std::make_unique<tuff::TuningTable>(
      fmt::format(R"({{"tuff_tuning": 1, "devices": [{{"uuid": "00", "name": "a", "driver": "a", "driver_version": 0,
                   "library": "0", "choices": [{{"operation": "gemm", "form": "{}", "sizes": [{}, {}, {}, {}],
                   "variant": "{}", "slices": {}}}]}}]}})",
                  form, args.m, args.n, args.k, args.batch_count, variant, slices),
      device);
}

void draw_product(Call& call, bool batched) {
  Numbers& n = call.numbers;
  tuff::GemmArgs& args = call.keep(tuff::GemmArgs{});
  static constexpr int32_t kTypes[] = {TUFF_F32, TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64, TUFF_I8};
  args.a_type = args.b_type = kTypes[n.below(6)];
  args.c_type = args.a_type == TUFF_I8 ? TUFF_I32 : args.a_type;
  const bool floats = args.a_type != TUFF_F64 && args.a_type != TUFF_I8;
  if (floats && n.coin(4)) args.b_type = call.float_type();
  if (args.a_type != TUFF_F64 && n.coin(3)) args.c_type = call.float_type();
  args.accumulate = args.sum_type();
  if (args.a_type == TUFF_F16 && args.b_type == TUFF_F16 && n.coin()) args.accumulate = TUFF_F16;
  if (args.a_type == TUFF_F32 && args.b_type == TUFF_F32) {
    constexpr int32_t kPrecisions[] = {TUFF_PRECISION_DEFAULT, TUFF_PRECISION_ALLOW_F16, TUFF_PRECISION_ALLOW_BF16,
                                       TUFF_PRECISION_ALLOW_TF32};
    args.precision = kPrecisions[n.below(std::size(kPrecisions))];
  }
  args.ta = static_cast<int32_t>(n.below(3)), args.tb = static_cast<int32_t>(n.below(3));
  const auto extent = [&] { return n.coin(4) ? 16 * (1 + n.below(80)) : call.size(); };
  args.m = extent(), args.n = extent(), args.k = extent();
  args.alpha = n.coin(8) ? 0 : n.coin() ? 1 : 3, args.beta = n.coin() ? 0 : n.coin() ? 1 : -2;
  args.batch_count = batched ? (n.coin() ? 1 + n.below(40) : call.size()) : 1;
  const uint64_t count = args.batch_count;
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  const Stored a = store(call, ta ? args.k : args.m, ta ? args.m : args.k, true);
  const Stored b = store(call, tb ? args.n : args.k, tb ? args.k : args.n, true);
  const Stored c = store(call, args.m, args.n, false);
  args.lda = a.ld, args.ldb = b.ld, args.ldc = c.ld;
  args.stride_a = a.stride, args.stride_b = b.stride, args.stride_c = c.stride;
  call.tell("types", fmt::format("{} {} {} sums {}", args.a_type, args.b_type, args.c_type, args.accumulate));
  call.tell("precision", args.precision);
  call.tell("ta", args.ta), call.tell("tb", args.tb);
  call.tell("m", args.m), call.tell("n", args.n), call.tell("k", args.k), call.tell("batch", count);
  call.tell("alpha", args.alpha), call.tell("beta", args.beta);
  call.tell("ld", fmt::format("{} {} {}", a.ld, b.ld, c.ld));
  call.tell("strides", fmt::format("{} {} {}", a.stride, b.stride, c.stride));
  const uint64_t c_size = dtype_size(args.c_type);
  const bool arrays = batched && count >= 1 && count <= 60 && n.coin(4);
  const bool writes = args.k != 0 && args.alpha != 0;
  tuff::GemmEpilogue& epilogue = args.epilogue;
  if (n.coin()) epilogue.activation = static_cast<int32_t>(n.below(args.c_type == TUFF_I32 ? 2 : 6));
  const bool residual = n.coin(3);
  const bool stores = writes || args.beta != 1 || epilogue.activation != 0;
  if (arrays) {
    auto& each = call.keep(std::array<std::vector<const Buffer*>, 3>{});
    for (uint64_t i = 0; i < count; ++i) {
      each[0].push_back(i > 0 && a.stride == 0 ? each[0][0] : call.input("a", a.matrix(), dtype_size(args.a_type)));
      each[1].push_back(i > 0 && b.stride == 0 ? each[1][0] : call.input("b", b.matrix(), dtype_size(args.b_type)));
      each[2].push_back(call.output("c", c.matrix(), c_size, false));
      if (!stores || args.m == 0 || args.n == 0) continue;
      call.has_to_be(each[2].back(), 0, args.n);
      call.has_to_be(each[2].back(), (args.m - 1) * args.ldc, args.n);
    }
    args.a_array = each[0].data(), args.b_array = each[1].data(), args.c_array = each[2].data();
    args.stride_a = args.stride_b = args.stride_c = 0;
  } else {
    args.a = call.input("a", a.batch(count), dtype_size(args.a_type));
    args.b = call.input("b", b.batch(count), dtype_size(args.b_type));
    args.c = call.output("c", c.batch(count), c_size, false);
  }
  const bool some = args.m != 0 && args.n != 0 && count != 0, reads = writes && some;
  const auto has_to_read = [&](const Buffer* buffer, const Stored& stored, uint64_t matrices) {
    if (stored.matrix() == 0) return;
    call.has_to_read(buffer, 0, stored.cols);
    call.has_to_read(buffer, stored.batch(matrices) - stored.cols, stored.cols);
  };
  for (uint64_t i = 0; i < (arrays ? count : 1); ++i) {
    if (!writes) call.not_used(arrays ? args.a_array[i] : args.a), call.not_used(arrays ? args.b_array[i] : args.b);
    if (!reads || !a.dense(arrays ? 1 : count)) call.read_partly(arrays ? args.a_array[i] : args.a);
    if (!reads || !b.dense(arrays ? 1 : count)) call.read_partly(arrays ? args.b_array[i] : args.b);
    if (reads) has_to_read(arrays ? args.a_array[i] : args.a, a, arrays ? 1 : count);
    if (reads) has_to_read(arrays ? args.b_array[i] : args.b, b, arrays ? 1 : count);
  }
  if (n.coin(3)) {
    epilogue.bias_axis = n.coin() ? TUFF_BIAS_ROWS : TUFF_BIAS_COLUMNS;
    const uint64_t length = epilogue.bias_axis == TUFF_BIAS_ROWS ? args.m : args.n;
    epilogue.stride_bias = n.coin() ? 0 : n.coin() ? length : length + n.below(9);
    const Stored bias{1, length, length, epilogue.stride_bias};
    epilogue.bias = call.input("bias", bias.batch(count), c_size);
    if (!bias.dense(count)) call.read_partly(epilogue.bias);
    if (some) has_to_read(epilogue.bias, bias, count);
  }
  if (residual) {
    Stored r = store(call, args.m, args.n, true);
    if (!arrays && n.coin()) {
      r = c;
      epilogue.residual = n.coin() ? args.c : call.input("residual", r.batch(count), c_size);
    } else {
      epilogue.residual = call.input("residual", r.batch(count), c_size);
    }
    epilogue.ld_residual = r.ld, epilogue.stride_residual = r.stride;
    if (!r.dense(count)) call.read_partly(epilogue.residual);
    if (some) has_to_read(epilogue.residual, r, count);
  }
  call.tell("activation", epilogue.activation), call.tell("bias_axis", epilogue.bias_axis);
  call.tell("residual", fmt::format("{} {}", epilogue.ld_residual, epilogue.stride_residual));
  if (!arrays && (stores || !epilogue.none()) && args.m != 0 && args.n != 0 && count != 0 &&
      times(c.batch(count), c_size) < kMaxOperandBytes) {
    for (const uint64_t i : {uint64_t{0}, count / 2, count - 1}) {
      for (const uint64_t row : {uint64_t{0}, args.m / 2, args.m - 1}) {
        call.has_to_be(args.c, i * c.stride + row * c.ld, args.n);
      }
    }
  }
  if (n.coin(8) && args.m != 0 && args.n != 0 && args.k != 0 && count != 0) tune(call, args);
  set(call, batched ? tuff::operations::batched_gemm : tuff::operations::gemm, args);
}

void draw_gemm(Call& call) { draw_product(call, false); }
void draw_batched_gemm(Call& call) { draw_product(call, true); }

// --- convolution -------------------------------------------------------------------------------------------------

uint64_t elements(const tuff::ConvShape& shape) {
  return product(std::array{shape.outer[0], shape.outer[1], shape.extents[0], shape.extents[1], shape.extents[2]});
}

// All but the operands. The number of dispatches that strides in its output take is returned.
double draw_shapes(Call& call, tuff::ConvArgs& args, uint32_t rank, bool transposed) {
  Numbers& n = call.numbers;
  args.rank = rank, args.transposed = transposed;
  args.dtype = call.float_type();
  args.layout = n.coin() ? TUFF_LAYOUT_NCHW : TUFF_LAYOUT_NHWC;
  const bool plain = n.coin(3);  // a convolution that has special variants
  const bool depthwise = !plain && n.coin(4);
  args.groups = plain ? 1 : depthwise ? 1 + call.size() : n.coin() ? 1 : 1 + n.below(6);
  const uint64_t channels = depthwise ? 1 : n.coin(8) ? call.size() : n.coin(3) ? 16 * (1 + n.below(9)) : n.below(9);
  const uint64_t filters = depthwise   ? 1 + n.below(2)
                           : n.coin(8) ? call.size()
                           : n.coin(3) ? 16 * (1 + n.below(9))
                                       : n.below(9);
  args.in_shape.outer = {n.coin(8) ? call.size() : n.below(9), times(args.groups, channels)};
  args.filter_shape.outer = {times(args.groups, filters), channels};
  if (transposed) args.filter_shape.outer = {args.in_shape.outer[1], filters};
  args.out_shape.outer = {args.in_shape.outer[0], times(args.groups, filters)};
  double phases = 1;
  for (uint32_t axis = tuff::kConvAxes - rank; axis < tuff::kConvAxes; ++axis) {
    const uint64_t taps = plain ? 3 : n.coin(16) ? call.size() : 1 + n.below(7);
    const uint64_t stride = plain ? 1 : n.coin(12) ? plus(1, call.size()) : 1 + n.below(4);
    const uint64_t dilation = plain ? 1 : n.coin(12) ? plus(1, call.size()) : 1 + n.below(3);
    const uint64_t in = call.size(), front = n.coin(12) ? call.size() : n.below(4);
    const uint64_t back = n.coin() ? front : n.coin(12) ? call.size() : n.below(4);
    const uint64_t span = plus(times(dilation, taps - std::min<uint64_t>(taps, 1)), 1);
    const uint64_t around = plus(front, back), padded = plus(in, around);
    args.in_shape.extents[axis] = in, args.filter_shape.extents[axis] = taps;
    args.stride[axis] = stride, args.dilation[axis] = dilation;
    args.padding[axis] = front, args.padding_end[axis] = back;
    uint64_t out = 0;
    if (transposed) {
      args.output_padding[axis] = n.coin() ? 0 : n.below(std::max(stride, dilation));
      const uint64_t whole = in == 0 ? 0 : plus(times(in - 1, stride), plus(span, args.output_padding[axis]));
      out = whole < around ? 0 : whole - around;
    } else {
      out = padded < span ? 0 : (padded - span) / stride + 1;
    }
    args.out_shape.extents[axis] = out;
    phases *= static_cast<double>(stride);
  }
  args.activation = static_cast<int32_t>(n.below(6));
  args.precision = n.coin() ? TUFF_PRECISION_DEFAULT : TUFF_PRECISION_ALLOW_WINOGRAD;
  const auto tell = [&](const char* name, const tuff::ConvShape& shape) {
    call.tell(name, std::array{shape.outer[0], shape.outer[1], shape.extents[0], shape.extents[1], shape.extents[2]});
  };
  call.tell("dtype", args.dtype), call.tell("layout", args.layout), call.tell("groups", args.groups);
  tell("in", args.in_shape), tell("filter", args.filter_shape), tell("out", args.out_shape);
  call.tell("stride", args.stride), call.tell("dilation", args.dilation), call.tell("padding", args.padding);
  call.tell("padding_end", args.padding_end), call.tell("output_padding", args.output_padding);
  call.tell("activation", args.activation), call.tell("precision", args.precision);
  return phases;
}

constexpr double kMaxPhases = 1e4;  // each is a separate dispatch

void draw_conv(Call& call, uint32_t rank, bool transposed) {
  tuff::ConvArgs& args = call.keep(tuff::ConvArgs{});
  if (draw_shapes(call, args, rank, transposed) > kMaxPhases && transposed) return;
  const uint64_t size = dtype_size(args.dtype), outputs = elements(args.out_shape);
  args.input = call.input("input", elements(args.in_shape), size);
  args.filter = call.input("filter", elements(args.filter_shape), size);
  if (elements(args.in_shape) == 0) call.read_partly(args.filter);
  if (transposed) call.read_partly(args.input);  // a phase may have no taps
  args.bias = call.perhaps("bias", args.out_shape.outer[1], size);
  args.residual = call.perhaps("residual", outputs, size);
  // The phases of a transposed convolution are written one by one, each with gaps.
  args.output = call.output_or(args.residual, "output", outputs, size, true);
  set(call,
      transposed  ? tuff::operations::conv_transpose2d
      : rank == 1 ? tuff::operations::conv1d
      : rank == 2 ? tuff::operations::conv2d
                  : tuff::operations::conv3d,
      args);
}

void draw_conv1d(Call& call) { draw_conv(call, 1, false); }
void draw_conv2d(Call& call) { draw_conv(call, 2, false); }
void draw_conv3d(Call& call) { draw_conv(call, 3, false); }
void draw_conv_transpose2d(Call& call) { draw_conv(call, 2, true); }

tuff::ConvBackwardArgs& draw_gradient(Call& call, double& phases) {
  tuff::ConvBackwardArgs& args = call.keep(tuff::ConvBackwardArgs{});
  phases = draw_shapes(call, args.conv, static_cast<uint32_t>(1 + call.numbers.below(3)), false);
  args.conv.activation = TUFF_ACTIVATION_NONE, args.conv.precision = TUFF_PRECISION_DEFAULT;
  return args;
}

void draw_conv_backward_data(Call& call) {
  double phases = 1;
  tuff::ConvBackwardArgs& args = draw_gradient(call, phases);
  if (phases > kMaxPhases) return;
  const uint64_t size = dtype_size(args.conv.dtype);
  args.doutput = call.input("doutput", elements(args.conv.out_shape), size);
  args.conv.filter = call.input("filter", elements(args.conv.filter_shape), size);
  // Phases may have no taps, and windows may lie in the padding.
  call.read_partly(args.doutput), call.read_partly(args.conv.filter);
  args.dinput = call.output("dinput", elements(args.conv.in_shape), size, true);
  set(call, tuff::operations::conv_backward_data, args);
}

void draw_conv_backward_filter(Call& call) {
  double phases = 1;
  tuff::ConvBackwardArgs& args = draw_gradient(call, phases);
  Numbers& n = call.numbers;
  const uint64_t size = dtype_size(args.conv.dtype), filters = args.conv.filters();
  const uint64_t outputs = elements(args.conv.out_shape), inputs = elements(args.conv.in_shape);
  const bool filter = n.coin(4) ? n.coin() : true, bias = !filter || n.coin();
  args.doutput = call.input("doutput", outputs, size);
  if (filter) {
    args.conv.input = call.input("input", outputs != 0 ? inputs : 0, size);
    args.dfilter = call.output("dfilter", elements(args.conv.filter_shape), size, true);
    if (elements(args.conv.filter_shape) == 0 || outputs == 0) call.read_partly(args.conv.input);
    if (!bias && (elements(args.conv.filter_shape) == 0 || inputs == 0)) call.read_partly(args.doutput);
  }
  if (bias) args.dbias = call.output("dbias", filters, size, true);
  set(call, tuff::operations::conv_backward_filter, args);
}

// --- attention ---------------------------------------------------------------------------------------------------

// Draws attention's sizes and numbers, and whether it is as in networks: many rows without gaps, and nothing that is
// added to the scores or hides some of them.
bool draw_attention_sizes(Call& call, tuff::AttentionArgs& args) {
  Numbers& n = call.numbers;
  args.dtype = call.float_type();
  args.batch = n.coin(4) ? call.size() : 1 + n.below(5);
  args.kv_heads = n.coin(6) ? call.size() : 1 + n.below(8);
  args.heads = times(args.kv_heads, 1 + n.below(n.coin() ? 1 : 9));
  args.seq_q = n.coin(3) ? 1 : call.size(), args.seq_kv = n.coin(8) ? args.seq_q : call.size();
  const bool plain = n.coin(4);
  if (plain) args.seq_q = 32 + n.below(4096), args.seq_kv = n.coin() ? args.seq_q : 1 + n.below(4096);
  const auto dim = [&] {
    return plain || n.coin() ? n.one_of<uint64_t>({8, 16, 32, 64, 64, 80, 96, 128, 128, 192, 256, 512, 576})
                             : call.size();
  };
  args.head_dim = dim(), args.head_dim_v = n.coin() ? args.head_dim : std::max<uint64_t>(dim(), 1);
  args.causal = static_cast<int32_t>(n.below(3));
  args.scale = n.coin() ? 0.125 : 1;
  args.softcap = !plain && n.coin(4) ? 30 : 0;
  if (n.coin(4)) args.window_left = 1 + call.size();
  if (n.coin(4)) args.window_right = 1 + call.size();
  args.bias_type = args.dtype;
  call.tell("dtype", args.dtype), call.tell("batch", args.batch), call.tell("heads", args.heads);
  call.tell("kv_heads", args.kv_heads), call.tell("seq_q", args.seq_q), call.tell("seq_kv", args.seq_kv);
  call.tell("head_dim", args.head_dim), call.tell("head_dim_v", args.head_dim_v), call.tell("causal", args.causal);
  call.tell("softcap", args.softcap);
  call.tell("window", fmt::format("{} {}", args.window_left, args.window_right));
  return plain;
}

// Rows of so many heads, and their strides: grouped by head, or heads grouped by row, with or without gaps.
struct AttentionRows {
  uint64_t heads, rows, length;
};
tuff::AttentionStrides draw_attention_strides(Call& call, bool plain, const AttentionRows& of,
                                              bool may_repeat = false) {
  Numbers& n = call.numbers;
  tuff::AttentionStrides s;
  const uint64_t gap = plain ? 0 : n.coin(3) ? n.below(9) : n.coin(4) ? 8 * n.below(3) : 0;
  if (n.coin()) {
    s.row = plus(of.length, gap), s.head = times(of.rows, s.row), s.batch = times(of.heads, s.head);
  } else {
    s.head = plus(of.length, gap), s.row = times(of.heads, s.head), s.batch = times(of.rows, s.row);
  }
  if (n.coin(8)) s.batch = plus(s.batch, call.size());
  if (may_repeat) {
    if (n.coin(3)) s.batch = 0;
    if (n.coin(3)) s.head = 0;
    if (n.coin(3)) s.row = 0;
  }
  return s;
}
uint64_t span_of(uint64_t batch, const tuff::AttentionStrides& s, const AttentionRows& of) {
  if (batch == 0 || of.heads == 0 || of.rows == 0 || of.length == 0) return 0;
  return plus(plus(times(batch - 1, s.batch), times(of.heads - 1, s.head)), plus(times(of.rows - 1, s.row), of.length));
}

const tuff::Buffer* attention_input(Call& call, const tuff::AttentionArgs& args, const char* name,
                                    const tuff::AttentionStrides& s, const AttentionRows& of) {
  call.tell(fmt::format("{}_strides", name).c_str(), std::array{s.batch, s.head, s.row});
  return call.input(name, span_of(args.batch, s, of), dtype_size(args.dtype));
}
const tuff::Buffer* attention_output(Call& call, const tuff::AttentionArgs& args, const char* name,
                                     const tuff::AttentionStrides& s, const AttentionRows& of) {
  call.tell(fmt::format("{}_strides", name).c_str(), std::array{s.batch, s.head, s.row});
  const uint64_t elements = span_of(args.batch, s, of);
  const tuff::Buffer* output = call.output(name, elements, dtype_size(args.dtype), false);
  if (elements != 0) call.has_to_be(output, 0, of.length), call.has_to_be(output, elements - of.length, of.length);
  return output;
}

// Bias, mask and lengths.
void draw_attention_options(Call& call, tuff::AttentionArgs& args, bool plain) {
  Numbers& n = call.numbers;
  const AttentionRows scores{args.heads, args.seq_q, args.seq_kv};
  const auto option = [&](const char* name, tuff::AttentionStrides& s, uint64_t size) {
    s = draw_attention_strides(call, plain, scores, true);
    call.tell(fmt::format("{}_strides", name).c_str(), std::array{s.batch, s.head, s.row});
    return call.input(name, span_of(args.batch, s, scores), size);
  };
  if (!plain && n.coin(4)) {
    if (n.coin()) args.bias_type = TUFF_F32;
    args.bias = option("bias", args.bias_strides, dtype_size(args.bias_type));
  }
  if (!plain && n.coin(4)) args.mask = option("mask", args.mask_strides, 1);
  if (n.coin(6)) args.q_lengths = call.input("q_lengths", args.batch, 4);
  if (n.coin(6)) args.kv_lengths = call.input("kv_lengths", args.batch, 4);
}

// How keys and values are stored. Rows in blocks of 32 consist of whole ones.
void draw_attention_stored(Call& call, tuff::AttentionArgs& args) {
  Numbers& n = call.numbers;
  if (!n.coin(3)) return;
  const auto stored = [&] {
    return n.one_of<int32_t>({TUFF_F8_E4M3, TUFF_F8_E5M2, TUFF_QUANT_Q4_0, TUFF_QUANT_Q8_0, TUFF_QUANT_Q8_0});
  };
  args.k_stored.as = n.coin(8) ? 0 : stored();
  args.v_stored.as = n.coin() ? args.k_stored.as : n.coin(8) ? 0 : stored();
  if (args.k_stored.as >= TUFF_QUANT_Q4_0) args.head_dim = 32 * (1 + n.below(9));
  if (args.v_stored.as >= TUFF_QUANT_Q4_0) args.head_dim_v = 32 * (1 + n.below(9));
  if (args.head_dim_v == 0) args.head_dim_v = args.head_dim;  // as a call would be completed
  call.tell("k_stored", args.k_stored.as), call.tell("v_stored", args.v_stored.as);
  call.tell("head_dim", args.head_dim), call.tell("head_dim_v", args.head_dim_v);
}

// Keys or values.
const tuff::Buffer* draw_attention_keys(Call& call, const tuff::AttentionArgs& args, const char* name, int32_t stored,
                                        tuff::AttentionStrides& s, const AttentionRows& of) {
  if (stored == 0) return attention_input(call, args, name, s, of);
  const bool blocks = stored >= TUFF_QUANT_Q4_0;
  for (uint64_t* stride : {&s.batch, &s.head, &s.row}) {
    if (blocks) *stride = times(plus(*stride, 31) / 32, 32);
  }
  call.tell(fmt::format("{}_strides", name).c_str(), std::array{s.batch, s.head, s.row});
  const uint64_t numbers = span_of(args.batch, s, of);
  if (!blocks) return call.input(name, numbers, 1);
  return call.input(name, times(plus(numbers, 31) / 32, stored == TUFF_QUANT_Q4_0 ? 9 : 17), 2);
}
const tuff::Buffer* draw_attention_scales(Call& call, const tuff::AttentionArgs& args, const char* name, int32_t stored,
                                          tuff::AttentionStrides& s) {
  if (stored == 0 || stored >= TUFF_QUANT_Q4_0 || call.numbers.coin()) return nullptr;
  const AttentionRows of{args.kv_heads, args.seq_kv, 1};
  s = draw_attention_strides(call, false, of, true);
  call.tell(fmt::format("{}_strides", name).c_str(), std::array{s.batch, s.head, s.row});
  return call.input(name, span_of(args.batch, s, of), 4);
}

void draw_attention(Call& call) {
  tuff::AttentionArgs& args = call.keep(tuff::AttentionArgs{});
  const bool plain = draw_attention_sizes(call, args);
  draw_attention_stored(call, args);
  const AttentionRows q{args.heads, args.seq_q, args.head_dim}, k{args.kv_heads, args.seq_kv, args.head_dim},
      v{args.kv_heads, args.seq_kv, args.head_dim_v}, o{args.heads, args.seq_q, args.head_dim_v};
  args.q_strides = draw_attention_strides(call, plain, q), args.k_strides = draw_attention_strides(call, plain, k);
  args.v_strides = draw_attention_strides(call, plain, v), args.o_strides = draw_attention_strides(call, plain, o);
  args.q = attention_input(call, args, "q", args.q_strides, q);
  args.k = draw_attention_keys(call, args, "k", args.k_stored.as, args.k_strides, k);
  args.v = draw_attention_keys(call, args, "v", args.v_stored.as, args.v_strides, v);
  args.k_stored.scales = draw_attention_scales(call, args, "k_scales", args.k_stored.as, args.k_stored.scale_strides);
  args.v_stored.scales = draw_attention_scales(call, args, "v_scales", args.v_stored.as, args.v_stored.scale_strides);
  args.o = attention_output(call, args, "o", args.o_strides, o);
  draw_attention_options(call, args, plain);
  if (call.numbers.coin(3)) args.lse = call.output("lse", product(std::array{args.batch, args.heads, args.seq_q}), 4);
  set(call, tuff::operations::attention, args);
}

void draw_attention_backward(Call& call) {
  Numbers& n = call.numbers;
  tuff::AttentionBackwardArgs& args = call.keep(tuff::AttentionBackwardArgs{});
  tuff::AttentionArgs& forward = args.forward;
  const bool plain = draw_attention_sizes(call, forward);
  const AttentionRows q{forward.heads, forward.seq_q, forward.head_dim},
      k{forward.kv_heads, forward.seq_kv, forward.head_dim}, v{forward.kv_heads, forward.seq_kv, forward.head_dim_v},
      o{forward.heads, forward.seq_q, forward.head_dim_v};
  const auto read = [&](const char* name, const tuff::Buffer*& buffer, tuff::AttentionStrides& s,
                        const AttentionRows& of) {
    s = draw_attention_strides(call, plain, of);
    buffer = attention_input(call, forward, name, s, of);
  };
  read("q", forward.q, forward.q_strides, q), read("k", forward.k, forward.k_strides, k);
  read("v", forward.v, forward.v_strides, v), read("o", forward.o, forward.o_strides, o);
  read("d_o", args.d_o, args.d_o_strides, o);
  forward.lse = call.input("lse", product(std::array{forward.batch, forward.heads, forward.seq_q}), 4);
  const uint64_t wanted = 1 + n.below(7);  // a bit for each gradient
  const auto written = [&](uint64_t bit, const char* name, const tuff::Buffer*& buffer, tuff::AttentionStrides& s,
                           const AttentionRows& of) {
    s = draw_attention_strides(call, plain, of);
    if ((wanted >> bit & 1) != 0) buffer = attention_output(call, forward, name, s, of);
  };
  written(0, "dq", args.dq, args.dq_strides, q), written(1, "dk", args.dk, args.dk_strides, k);
  written(2, "dv", args.dv, args.dv_strides, v);
  draw_attention_options(call, forward, plain);
  if (forward.bias != nullptr && n.coin()) {
    const tuff::AttentionStrides& bias = forward.bias_strides;
    const AttentionRows scores{args.bias_heads(), args.bias_rows(), forward.seq_kv};
    tuff::AttentionStrides& s = args.dbias_strides = draw_attention_strides(call, plain, scores);
    if (bias.batch == 0) s.batch = 0;
    if (bias.head == 0) s.head = 0;
    if (bias.row == 0) s.row = 0;
    call.tell("dbias_strides", std::array{s.batch, s.head, s.row});
    const uint64_t elements = span_of(args.bias_batch(), s, scores);
    args.dbias = call.output("dbias", elements, dtype_size(forward.bias_type), false);
    if (elements != 0) {
      call.has_to_be(args.dbias, 0, scores.length), call.has_to_be(args.dbias, elements - scores.length, scores.length);
    }
    if (forward.batch == 0 || forward.heads == 0) {  // zeros are all that is written
      for (const tuff::Buffer* const unread : {forward.q_lengths, forward.kv_lengths}) {
        if (unread != nullptr) call.read_partly(unread);
      }
    }
  }
  set(call, tuff::operations::attention_backward, args);
}

// --- planes ------------------------------------------------------------------------------------------------------

// All but the operands.
void draw_windows(Call& call, tuff::PoolArgs& args) {
  Numbers& n = call.numbers;
  args.dtype = call.float_type(), args.maximum = n.coin();
  args.batch = n.coin(3) ? call.size() : n.below(5), args.channels = n.coin(3) ? call.size() : 1 + n.below(5);
  args.spatial = static_cast<uint32_t>(1 + n.below(3));
  args.adaptive = n.coin(3) ? 1 : 0;
  args.ceil_mode = args.adaptive == 0 ? static_cast<int32_t>(n.below(2)) : 0;
  args.count_include_pad = args.adaptive == 0 && !args.maximum ? static_cast<int32_t>(n.below(2)) : 0;
  args.in_shape = args.out_shape = args.kernel = args.stride = args.padding = args.dilation = {};
  for (uint32_t i = 0; i < args.spatial; ++i) {
    const uint64_t in = args.in_shape[i] = call.size();
    if (args.adaptive != 0) {
      args.out_shape[i] = n.coin(3) ? 1 : call.size();
      continue;
    }
    const uint64_t kernel = args.kernel[i] = n.coin(8) ? in : n.coin(8) ? call.size() : 1 + n.below(6);
    const uint64_t stride = args.stride[i] = n.coin(12) ? call.size() : n.below(4);
    const uint64_t dilation = args.dilation[i] = args.maximum ? n.coin(12) ? call.size() : n.below(3) : 0;
    const uint64_t span = plus(times(std::max<uint64_t>(dilation, 1), std::max<uint64_t>(kernel, 1) - 1), 1);
    args.padding[i] = n.coin(12) ? call.size() : n.below(std::min<uint64_t>(span / 2 + 1, 1000));
    const uint64_t padded = plus(in, times(2, args.padding[i])),
                   step = std::max<uint64_t>(stride == 0 ? kernel : stride, 1);
    uint64_t out = padded < span ? 0 : plus(padded - span, args.ceil_mode != 0 ? step - 1 : 0) / step + 1;
    if (args.ceil_mode != 0 && out != 0 && times(out - 1, step) >= plus(in, args.padding[i])) --out;
    args.out_shape[i] = out;
  }
  call.tell("dtype", args.dtype), call.tell("maximum", args.maximum), call.tell("batch", args.batch);
  call.tell("channels", args.channels), call.tell("spatial", args.spatial), call.tell("adaptive", args.adaptive);
  call.tell("ceil", args.ceil_mode), call.tell("include", args.count_include_pad), call.tell("in", args.in_shape);
  call.tell("out", args.out_shape), call.tell("kernel", args.kernel), call.tell("stride", args.stride);
  call.tell("padding", args.padding), call.tell("dilation", args.dilation);
}

uint64_t elements(const tuff::PoolArgs& args, const std::array<uint64_t, 3>& shape) {
  return times(times(args.batch, args.channels), product({shape.data(), args.spatial}));
}

void draw_pool(Call& call) {
  tuff::PoolArgs& args = call.keep(tuff::PoolArgs{});
  draw_windows(call, args);
  args.input = call.input("input", elements(args, args.in_shape), dtype_size(args.dtype));
  args.output = call.output("output", elements(args, args.out_shape), dtype_size(args.dtype));
  if (args.maximum && call.numbers.coin()) {
    args.indices = call.output("indices", elements(args, args.out_shape), 4);
  }
  set(call, args.maximum ? tuff::operations::max_pool : tuff::operations::avg_pool, args);
}

void draw_pool_backward(Call& call) {
  tuff::PoolBackwardArgs& args = call.keep(tuff::PoolBackwardArgs{});
  tuff::PoolArgs& pool = args.pool;
  draw_windows(call, pool);
  const uint64_t size = dtype_size(pool.dtype), in = elements(pool, pool.in_shape),
                 out = elements(pool, pool.out_shape);
  args.doutput = call.input("doutput", out, size);
  if (pool.maximum && call.numbers.coin()) {
    pool.indices = call.input("indices", out, 4);
  } else if (pool.maximum) {
    pool.input = call.input("input", in, size);
  }
  args.dinput = call.output("dinput", in, size);
  set(call, tuff::operations::pool_backward, args);
}

void draw_resize(Call& call) {
  Numbers& n = call.numbers;
  tuff::ResizeArgs& args = call.keep(tuff::ResizeArgs{});
  args.dtype = call.float_type(),
  args.mode = static_cast<int32_t>(TUFF_RESIZE_NEAREST + static_cast<int32_t>(n.below(3)));
  args.layout = n.coin() ? TUFF_LAYOUT_NCHW : TUFF_LAYOUT_NHWC;
  args.batch = n.coin(3) ? call.size() : n.below(5), args.channels = n.coin(3) ? call.size() : 1 + n.below(5);
  args.spatial = static_cast<uint32_t>(1 + n.below(3));
  args.align_corners = args.mode == TUFF_RESIZE_LINEAR ? static_cast<int32_t>(n.below(2)) : 0;
  args.in_shape = args.out_shape = {};
  args.scale = {};
  for (uint32_t i = 0; i < args.spatial; ++i) {
    args.in_shape[i] = call.size(), args.out_shape[i] = n.coin(3) ? args.in_shape[i] : call.size();
    static constexpr double kScales[] = {0, 0, 1, 0.5, 2, 1.5, 0.3, 1e-8, 0x1.000001p-29, 1e8, 5e8};
    if (args.align_corners == 0) args.scale[i] = kScales[n.below(std::size(kScales))];
  }
  const auto elements = [&](const std::array<uint64_t, 3>& shape) {
    return times(times(args.batch, args.channels), product({shape.data(), args.spatial}));
  };
  call.tell("dtype", args.dtype), call.tell("mode", args.mode), call.tell("layout", args.layout);
  call.tell("batch", args.batch), call.tell("channels", args.channels), call.tell("spatial", args.spatial);
  call.tell("align_corners", args.align_corners), call.tell("in", args.in_shape), call.tell("out", args.out_shape);
  call.tell("scale", args.scale);
  args.input = call.input("input", elements(args.in_shape), dtype_size(args.dtype));
  args.output = call.output("output", elements(args.out_shape), dtype_size(args.dtype));
  set(call, tuff::operations::resize, args);
}

// --- positions, elements -----------------------------------------------------------------------------------------

void draw_rope(Call& call) {
  Numbers& n = call.numbers;
  tuff::RopeArgs& args = call.keep(tuff::RopeArgs{});
  args.dtype = call.float_type();
  args.batch = n.coin(3) ? call.size() : 1 + n.below(4), args.heads = n.coin(3) ? call.size() : 1 + n.below(8);
  args.seq = call.size(), args.head_dim = n.coin() ? 8 * (1 + n.below(32)) : call.size();
  args.rotary_dim = n.coin() ? args.head_dim / 2 * 2 : n.below(args.head_dim / 2 + 1) * 2;
  args.interleaved = static_cast<int32_t>(n.below(2));
  const auto strides = [&](bool may_repeat) {
    std::array<uint64_t, 3> s{};
    const uint64_t gap = n.coin() ? 0 : n.below(9);
    if (n.coin()) {
      s[2] = plus(args.head_dim, gap), s[1] = times(args.seq, s[2]), s[0] = times(args.heads, s[1]);
    } else {
      s[1] = plus(args.head_dim, gap), s[2] = times(args.heads, s[1]), s[0] = times(args.seq, s[2]);
    }
    if (n.coin(8)) s[0] = plus(s[0], call.size());
    if (may_repeat && n.coin()) s[n.below(3)] = 0;
    return s;
  };
  args.input_strides = strides(n.coin(8));
  args.output_strides = n.coin() ? args.input_strides : strides(false);
  const auto span = [&](const std::array<uint64_t, 3>& s) {
    if (args.batch == 0 || args.heads == 0 || args.seq == 0 || args.head_dim == 0) return uint64_t{0};
    return plus(plus(times(args.batch - 1, s[0]), times(args.heads - 1, s[1])),
                plus(times(args.seq - 1, s[2]), args.head_dim));
  };
  args.offset = n.coin() ? 0 : static_cast<int64_t>(n.below(1000)) - 500;
  if (n.coin(16)) args.offset = n.coin() ? INT32_MAX : INT32_MIN;
  args.base = 10000;
  call.tell("dtype", args.dtype), call.tell("batch", args.batch), call.tell("heads", args.heads);
  call.tell("seq", args.seq), call.tell("head_dim", args.head_dim), call.tell("rotary_dim", args.rotary_dim);
  call.tell("interleaved", args.interleaved), call.tell("offset", args.offset);
  call.tell("input_strides", args.input_strides), call.tell("output_strides", args.output_strides);
  const uint64_t outputs = span(args.output_strides), size = dtype_size(args.dtype);
  args.input = call.input("input", span(args.input_strides), size);
  if (span(args.input_strides) != product(std::array{args.batch, args.heads, args.seq, args.head_dim})) {
    call.read_partly(args.input);
  }
  args.output =
      call.output_or(args.input_strides == args.output_strides ? args.input : nullptr, "output", outputs, size, false);
  if (outputs != 0 && (args.output != args.input || args.rotary_dim == args.head_dim)) {
    call.has_to_read(args.input, 0, args.head_dim);
    call.has_to_read(args.input, span(args.input_strides) - args.head_dim, args.head_dim);
    call.has_to_be(args.output, 0, args.head_dim);
    call.has_to_be(args.output, outputs - args.head_dim, args.head_dim);
  }
  if (n.coin(3)) {
    args.positions_stride = n.coin() ? 0 : n.coin() ? args.seq : n.below(40);
    call.tell("positions_stride", args.positions_stride);
    const uint64_t positions = args.batch == 0 ? 0 : plus(times(args.batch - 1, args.positions_stride), args.seq);
    args.positions = call.input("positions", positions, 4);
    if (args.positions_stride > args.seq) call.read_partly(args.positions);
    if (positions != 0 && outputs != 0 && args.rotary_dim != 0) {
      call.has_to_read(args.positions, 0, args.seq), call.has_to_read(args.positions, positions - args.seq, args.seq);
    }
  }
  set(call, tuff::operations::rope, args);
}

void draw_unary(Call& call) {
  Numbers& n = call.numbers;
  tuff::UnaryArgs& args = call.keep(tuff::UnaryArgs{});
  args.dtype = call.type_of(tuff::elementwise::kUnaryTypes);
  args.op = tuff::elementwise::kUnaryOps[n.below(std::size(tuff::elementwise::kUnaryOps))].op;
  args.n = n.coin() ? call.size() : times(call.size(), call.size());
  call.tell("dtype", args.dtype), call.tell("op", args.op), call.tell("n", args.n);
  args.input = call.input("input", args.n, dtype_size(args.dtype));
  args.output = call.output_or(args.input, "output", args.n, dtype_size(args.dtype));
  set(call, tuff::operations::unary, args);
}

void draw_binary(Call& call) {
  Numbers& n = call.numbers;
  tuff::BinaryArgs& args = call.keep(tuff::BinaryArgs{});
  const tuff::elementwise::BinaryOp& op =
      tuff::elementwise::kBinaryOps[n.below(std::size(tuff::elementwise::kBinaryOps))];
  args.dtype = call.type_of(op.types()), args.op = op.op;
  call.tell("dtype", args.dtype), call.tell("op", args.op);
  uint64_t a = 0, b = 0, count = 0;
  if (n.coin(3)) {
    a = b = count = args.n = n.coin() ? call.size() : times(call.size(), call.size());
    call.tell("n", args.n);
  } else {
    Shape& of_a = draw_shape(call);
    Shape& of_b = call.keep(of_a);
    const bool repeats = !n.coin(4);
    for (uint32_t i = 0; i < of_a.rank; ++i) {
      if (repeats && n.coin(3)) (n.coin() ? of_a : of_b).sizes[i] = 1;
    }
    call.tell("a_shape", of_a.span()), call.tell("b_shape", of_b.span());
    args.rank = of_a.rank, args.a_shape = of_a.sizes.data(), args.b_shape = of_b.sizes.data();
    a = of_a.elements(), b = of_b.elements();
    std::array<uint64_t, 8> sizes{};
    for (uint32_t i = 0; i < of_a.rank; ++i) sizes[i] = of_a.sizes[i] == 1 ? of_b.sizes[i] : of_a.sizes[i];
    count = product({sizes.data(), of_a.rank});
  }
  args.a = call.input("a", a, dtype_size(args.dtype));
  args.b = n.coin(8) && a == b ? args.a : call.input("b", b, dtype_size(args.dtype));
  args.output = call.output_or(n.coin() ? args.a : args.b, "output", count, dtype_size(args.dtype));
  set(call, tuff::operations::binary, args);
}

// Operations that backends record themselves.
void draw_fill(Call& call) {
  Numbers& n = call.numbers;
  const uint64_t words = n.coin() ? call.size() : times(call.size(), call.size()), first = n.below(40);
  call.tell("words", words), call.tell("first", first);
  const Buffer* const output = call.output("output", plus(first, words), 4, false);
  call.has_to_be(output, first, words);
  call.not_used(output);  // nothing checks it
  if (times(plus(words, first), 4) >= kMaxOperandBytes) return;
  call.check = [] {};
  call.record = [=](tuff::Recorder& recorder) {
    tuff::backend_kernels.fill(recorder, *output, first * 4, words * 4, {1, 2, 3, 4});
  };
}

void draw_copy(Call& call) {
  Numbers& n = call.numbers;
  const uint64_t bytes = n.coin() ? call.size() : times(call.size(), call.size() * 4);
  const uint64_t from = n.below(40), to = n.coin() ? from : n.below(40);
  call.tell("bytes", bytes), call.tell("from", from), call.tell("to", to);
  const Buffer* const input = call.input("input", plus(from, bytes), 1);
  const Buffer* const output = call.output("output", plus(to, bytes), 1, false);
  call.not_used(input), call.not_used(output);  // nothing checks them
  if (plus(bytes, 40) >= kMaxOperandBytes) return;
  call.check = [] {};
  call.record = [=, &call](tuff::Recorder& recorder) {
    if (tuff::backend_kernels.copy(recorder, *output, to, *input, from, bytes)) call.has_to_be(output, to, bytes);
  };
}

constexpr DrawnOperation kOperations[] = {
    {"gemm", 12, draw_gemm},
    {"batched_gemm", 12, draw_batched_gemm},
    {"conv1d", 4, draw_conv1d},
    {"conv2d", 10, draw_conv2d},
    {"conv3d", 4, draw_conv3d},
    {"conv_transpose2d", 6, draw_conv_transpose2d},
    {"conv_backward_data", 6, draw_conv_backward_data},
    {"conv_backward_filter", 6, draw_conv_backward_filter},
    {"attention", 12, draw_attention},
    {"attention_backward", 8, draw_attention_backward},
    {"reduce", 8, draw_reduce},
    {"scan", 6, draw_scan},
    {"sort", 6, draw_sort},
    {"expression", 8, draw_expression},
    {"softmax", 6, draw_softmax},
    {"norm", 6, draw_norm},
    {"batch_norm", 3, draw_batch_norm},
    {"norm_backward", 8, draw_norm_backward},
    {"batch_norm_training", 5, draw_batch_norm_training},
    {"pool", 6, draw_pool},
    {"pool_backward", 4, draw_pool_backward},
    {"resize", 6, draw_resize},
    {"rope", 4, draw_rope},
    {"random", 2, draw_random},
    {"dropout", 1, draw_dropout},
    {"variates", 2, draw_variates},
    {"fft", 6, draw_fft},
    {"dct", 6, draw_dct},
    {"rnn", 6, draw_rnn},
    {"rnn_backward", 6, draw_rnn_backward},
    {"optimizer_step", 6, draw_optimizer_step},
    {"gradient_norm", 3, draw_gradient_norm},
    {"cross_entropy", 5, draw_cross_entropy},
    {"softmax_backward", 5, draw_softmax_backward},
    {"quantize", 5, draw_quantize},
    {"dequantize", 5, draw_dequantize},
    {"qgemm", 5, draw_qgemm},
    {"unary", 2, draw_unary},
    {"binary", 6, draw_binary},
    {"permute", 5, draw_permute},
    {"slice", 5, draw_slice},
    {"concat", 4, draw_concat},
    {"gather", 5, draw_gather},
    {"scatter", 6, draw_scatter},
    {"select", 5, draw_select},
    {"pad", 4, draw_pad},
    {"copy_strided", 5, draw_copy_strided},
    {"cast", 3, draw_cast},
    {"cholesky", 4, draw_cholesky},
    {"lu", 5, draw_lu},
    {"triangular_solve", 5, draw_triangular_solve},
    {"lu_solve", 3, draw_lu_solve},
    {"lu_determinant", 2, draw_lu_determinant},
    {"qr", 5, draw_qr},
    {"eigh", 4, draw_eigh},
    {"eig", 4, draw_eig},
    {"svd", 4, draw_svd},
    {"spmm", 6, draw_spmm},
    {"sparse_convert", 6, draw_sparse_convert},
    {"sddmm", 6, draw_sddmm},
    {"spgemm", 6, draw_spgemm},
    {"sparse_triangular_solve", 6, draw_sparse_triangular_solve},
    {"fill", 1, draw_fill},
    {"copy", 1, draw_copy},
};

}  // namespace

std::span<const DrawnOperation> drawn_operations() { return kOperations; }

}  // namespace tuff_test
