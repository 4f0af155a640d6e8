// Draws the arguments of operations along axes: reductions, scans, sorting, transforms, softmax, norms; and of random
// numbers and formulas.
#include <algorithm>
#include <string>

#include "kernels/expression/expression.hpp"
#include "kernels/fft/dct.hpp"
#include "kernels/fft/fft.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/norm/norm_backward.hpp"
#include "kernels/random/dropout.hpp"
#include "kernels/random/random.hpp"
#include "kernels/random/variates.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_ops.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/softmax/softmax.hpp"
#include "kernels/sort/sort.hpp"
#include "planners/draw.hpp"

namespace tuff_test {

using tuff::Buffer;
using tuff::dtype_size;

void draw_reduce(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::ReduceArgs& args = call.keep(tuff::ReduceArgs{});
  args.op = static_cast<int32_t>(1 + n.below(std::size(tuff::reduce::table::kOps)));
  args.dtype = call.type_of(tuff::reduce::kTypes);
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  const tuff::reduce::Op& op = *tuff::reduce::find(args.op);
  if (n.coin(4)) args.axis_count = static_cast<uint32_t>(n.below(shape.rank - shape.axis + 1));
  if (n.coin()) args.output_type = call.type_of(tuff::reduce::output_types(op, args.dtype).all);
  if (op.center == TUFF_REDUCE_MEAN && n.coin()) args.correction = static_cast<double>(n.below(3)) / 2;
  const uint32_t end = shape.axis + std::max(args.axis_count, 1u);
  uint64_t outputs = 1;
  const auto kept = [&](uint32_t i) { return i < shape.axis || i >= end; };
  for (uint32_t i = 0; i < shape.rank; ++i) outputs = kept(i) ? times(outputs, shape.sizes[i]) : outputs;
  for (uint32_t i = 0; i < shape.rank; ++i) outputs = kept(i) && shape.sizes[i] == 0 ? 0 : outputs;
  call.tell("dtype", args.dtype), call.tell("op", args.op), call.tell("axis_count", args.axis_count);
  call.tell("output_type", args.output_type);
  args.input = call.input("input", shape.elements(), dtype_size(args.dtype));
  args.output = call.output("output", outputs, dtype_size(tuff::reduce::output_type(op, args.dtype, args.output_type)));
  set(call, tuff::operations::reduce, args);
}

void draw_scan(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::ScanArgs& args = call.keep(tuff::ScanArgs{});
  args.op = static_cast<tuff::ScanOp>(1 + n.below(5));
  args.dtype = call.type_of(args.op == tuff::ScanOp::log_sum_exp ? tuff::scan::kLogTypes : tuff::scan::kTypes);
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  args.exclusive = n.coin(), args.reverse = n.coin();
  call.tell("dtype", args.dtype), call.tell("exclusive", args.exclusive), call.tell("reverse", args.reverse);
  args.input = call.input("input", shape.elements(), dtype_size(args.dtype));
  args.output = call.output_or(args.input, "output", shape.elements(), dtype_size(args.dtype));
  const tuff::OperationOf<tuff::ScanArgs>* const operations[] = {&tuff::operations::cumsum, &tuff::operations::cumprod,
                                                                 &tuff::operations::cummax, &tuff::operations::cummin,
                                                                 &tuff::operations::cumlogsumexp};
  set(call, *operations[static_cast<int>(args.op) - 1], args);
}

void draw_sort(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::SortArgs& args = call.keep(tuff::SortArgs{});
  args.dtype = call.any_type();
  args.index_type = n.one_of<int32_t>({TUFF_U32, TUFF_I32, TUFF_U64, TUFF_I64});
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  args.descending = n.coin();
  const uint64_t length = shape.sizes[shape.axis];
  if (n.coin()) args.k = n.coin() ? std::min<uint64_t>(length, 1 + n.below(300)) : n.below(length + 1);
  Shape result = shape;
  if (args.k != 0) result.sizes[shape.axis] = args.k;
  call.tell("dtype", args.dtype), call.tell("index_type", args.index_type), call.tell("k", args.k);
  args.input = call.input("input", shape.elements(), dtype_size(args.dtype));
  const bool both = n.coin(), values = n.coin();
  if (both || values) args.values = call.output("values", result.elements(), dtype_size(args.dtype));
  if (both || !values) args.indices = call.output("indices", result.elements(), dtype_size(args.index_type));
  set(call, tuff::operations::sort, args);
}

void draw_random(Call& call) {
  Numbers& n = call.numbers;
  tuff::RandomArgs& args = call.keep(tuff::RandomArgs{});
  args.distribution = static_cast<int32_t>(1 + n.below(6));
  const bool integers =
      args.distribution < TUFF_RANDOM_BERNOULLI || (args.distribution == TUFF_RANDOM_BERNOULLI && n.coin());
  args.dtype = integers ? n.one_of<int32_t>({TUFF_I32, TUFF_U32, TUFF_I8, TUFF_U8}) : call.float_type();
  args.n = call.size();
  args.offset = n.coin() ? n.below(5) : n.next();
  args.most = 5, args.probability = 0.5;
  call.tell("dtype", args.dtype), call.tell("distribution", args.distribution), call.tell("offset", args.offset);
  args.output = call.output("output", args.n, dtype_size(args.dtype));
  set(call, tuff::operations::random, args);
}

void draw_dropout(Call& call) {
  Numbers& n = call.numbers;
  tuff::DropoutArgs& args = call.keep(tuff::DropoutArgs{});
  args.dtype = call.float_type();
  args.n = call.size();
  args.offset = n.coin() ? n.below(5) : n.next();
  args.probability = 0.5;
  call.tell("dtype", args.dtype), call.tell("offset", args.offset);
  args.input = call.input("input", args.n, dtype_size(args.dtype));
  args.output = call.output_or(args.input, "output", args.n, dtype_size(args.dtype));
  if (n.coin()) args.mask = call.output("mask", args.n, 1);
  set(call, tuff::operations::dropout, args);
}

void draw_variates(Call& call) {
  Numbers& n = call.numbers;
  tuff::VariatesArgs& args = call.keep(tuff::VariatesArgs{});
  args.distribution = static_cast<int32_t>(TUFF_VARIATES_GAMMA + static_cast<int32_t>(n.below(7)));
  args.dtype = args.distribution < TUFF_VARIATES_POISSON ? TUFF_F32 : TUFF_I32;
  args.n = call.size();
  args.offset = n.coin() ? n.below(5) : n.next() >> 9;
  call.tell("dtype", args.dtype), call.tell("distribution", args.distribution), call.tell("offset", args.offset);
  args.output = call.output("output", args.n, 4);
  const char* names[] = {"first", "second", "third"};
  for (uint32_t p = 0; p < tuff::variates::parameters_of(args.distribution); ++p) {
    if (n.coin()) args.parameters[p] = call.input(names[p], args.n, 4);
    args.values[p] = 1;
  }
  set(call, tuff::operations::variates, args);
}

void draw_fft(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::FftArgs& args = call.keep(tuff::FftArgs{});
  args.dtype = n.coin(6) ? int32_t{TUFF_F64} : call.float_type();
  args.kind = static_cast<int32_t>(TUFF_FFT_COMPLEX + static_cast<int32_t>(n.below(3)));
  args.inverse = static_cast<int32_t>(n.below(2)), args.norm = static_cast<int32_t>(n.below(3));
  args.rank = shape.rank, args.axes = n.coin() ? 1u << shape.axis : static_cast<uint32_t>(n.below(1u << shape.rank));
  const uint32_t axes = args.axes != 0 ? args.axes : 1u << (shape.rank - 1);
  uint32_t last = 0;
  for (uint32_t i = 0; i < shape.rank; ++i) last = (axes >> i & 1) != 0 ? i : last;
  args.shape = shape.sizes.data();
  call.tell("dtype", args.dtype), call.tell("kind", args.kind), call.tell("axes", args.axes);
  // A number of zeros stands for a dense operand.
  struct Numbered {
    std::array<uint64_t, 8> strides{};
    uint64_t elements = 1;
    bool dense = true;
  };
  const auto place = [&](int32_t real, int32_t half, bool may_repeat) {
    Numbered& numbered = call.keep(Numbered{});
    std::array<uint64_t, 8> sizes = shape.sizes;
    if (args.kind == half) sizes[last] = sizes[last] / 2 + 1;
    const uint64_t elements = args.kind == real ? 1 : 2;
    uint64_t numbers = 1, next = 1;
    for (uint32_t i = 0; i < shape.rank; ++i) numbers = sizes[i] == 0 ? 0 : times(numbers, sizes[i]);
    for (uint32_t i = 0; i < shape.rank; ++i) numbers = sizes[i] == 0 ? 0 : numbers;
    numbered.elements = times(numbers, elements);
    if (n.coin(3) && numbers != 0) {
      numbered.dense = false;
      next = 1 + n.below(2);
      uint64_t reach = 0;
      for (uint32_t i = 0; i < shape.rank; ++i) {
        const bool repeated = may_repeat && i + 1 == shape.rank && shape.rank > 1 && n.coin(4);
        numbered.strides[i] = repeated ? 0 : next;
        reach = plus(reach, times(sizes[i] - 1, numbered.strides[i]));
        next = plus(times(next, sizes[i]), n.below(3));
      }
      numbered.elements = times(plus(reach, 1), elements);
      call.tell("strides", numbered.strides);
    }
    return &numbered;
  };
  const Numbered* const input = place(TUFF_FFT_REAL, TUFF_FFT_TO_REAL, true);
  const Numbered* const output = place(TUFF_FFT_TO_REAL, TUFF_FFT_REAL, false);
  args.input_strides = input->strides.data(), args.output_strides = output->strides.data();
  args.input = call.input("input", input->elements, dtype_size(args.dtype));
  if (!input->dense) call.read_partly(args.input);
  const bool in_place = args.kind == TUFF_FFT_COMPLEX && input->dense && output->dense;
  args.output = in_place ? call.output_or(args.input, "output", output->elements, dtype_size(args.dtype))
                         : call.output("output", output->elements, dtype_size(args.dtype), output->dense);
  set(call, tuff::operations::fft, args);
}

void draw_dct(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::DctArgs& args = call.keep(tuff::DctArgs{});
  args.dtype = n.coin(6) ? int32_t{TUFF_F64} : call.float_type();
  args.kind = static_cast<int32_t>(TUFF_DCT_1 + static_cast<int32_t>(n.below(8)));
  args.orthogonal = static_cast<int32_t>(n.below(2)), args.norm = static_cast<int32_t>(n.below(3));
  args.rank = shape.rank, args.axes = n.coin() ? 1u << shape.axis : static_cast<uint32_t>(n.below(1u << shape.rank));
  args.shape = shape.sizes.data();
  call.tell("dtype", args.dtype), call.tell("kind", args.kind), call.tell("axes", args.axes);
  // A number of zeros stands for a dense operand.
  struct Numbered {
    std::array<uint64_t, 8> strides{};
    uint64_t elements = 1;
    bool dense = true;
  };
  const auto place = [&](bool may_repeat) {
    Numbered& numbered = call.keep(Numbered{});
    uint64_t numbers = 1;
    for (uint32_t i = 0; i < shape.rank; ++i) numbers = times(numbers, std::max<uint64_t>(shape.sizes[i], 1));
    for (uint32_t i = 0; i < shape.rank; ++i) numbers = shape.sizes[i] == 0 ? 0 : numbers;
    numbered.elements = numbers;
    if (n.coin(3) && numbers != 0) {
      numbered.dense = false;
      uint64_t reach = 0, next = 1 + n.below(2);
      for (uint32_t i = 0; i < shape.rank; ++i) {
        const bool repeated = may_repeat && i + 1 == shape.rank && shape.rank > 1 && n.coin(4);
        numbered.strides[i] = repeated ? 0 : next;
        reach = plus(reach, times(shape.sizes[i] - 1, numbered.strides[i]));
        next = plus(times(next, shape.sizes[i]), n.below(3));
      }
      numbered.elements = plus(reach, 1);
      call.tell("strides", numbered.strides);
    }
    return &numbered;
  };
  const Numbered* const input = place(true);
  const Numbered* const output = place(false);
  args.input_strides = input->strides.data(), args.output_strides = output->strides.data();
  args.input = call.input("input", input->elements, dtype_size(args.dtype));
  if (!input->dense) call.read_partly(args.input);
  args.output = input->dense && output->dense
                    ? call.output_or(args.input, "output", output->elements, dtype_size(args.dtype))
                    : call.output("output", output->elements, dtype_size(args.dtype), output->dense);
  set(call, tuff::operations::dct, args);
}

// A reduction of a formula of two inputs, over any axes, of which each input may be repeated along any.
void draw_reduced_expression(Call& call) {
  Numbers& n = call.numbers;
  struct Types {
    const char* name;
    int32_t a, b, y;
  };
  const Types types = n.one_of<Types>({{"sum", TUFF_F32, TUFF_F32, TUFF_F32},
                                       {"mean", TUFF_F16, TUFF_BF16, TUFF_F16},
                                       {"max", TUFF_F32, TUFF_I8, TUFF_F32},
                                       {"prod", TUFF_I8, TUFF_I16, TUFF_I32},
                                       {"sum_squares", TUFF_I64, TUFF_F64, TUFF_F64},
                                       {"count_nonzero", TUFF_U8, TUFF_BOOL, TUFF_I64},
                                       {"any", TUFF_F32, TUFF_F32, TUFF_BOOL}});
  Shape& shape = draw_shape(call);
  std::array<bool, 8> reduced{};
  std::string axes;
  for (uint32_t d = 0; d < shape.rank; ++d) {
    reduced[d] = n.coin();
    if (reduced[d]) axes += std::to_string(d) + ", ";
  }
  if (axes.empty()) reduced.fill(true);
  tuff::expression::Formula formula;
  formula.text = std::string(types.name) + "(a * a + b" + (axes.empty() ? "" : ", axis=(" + axes + ")") + ")";
  formula.inputs = {{"a", types.a}, {"b", types.b}};
  formula.outputs = {{"y", types.y}};
  tuff::ExpressionArgs& args = call.keep(tuff::ExpressionArgs{});
  args.expression = &call.keep(tuff::Expression(formula));
  args.shape = shape.sizes.data(), args.rank = shape.rank;
  struct Operands {
    std::array<tuff::ExpressionOperand, 2> inputs;
    tuff::ExpressionOperand output;
    std::array<std::array<int64_t, 8>, 2> strides;
  };
  Operands& operands = call.keep(Operands{});
  args.inputs = operands.inputs.data(), args.outputs = &operands.output;
  const uint64_t count = shape.elements();
  call.tell("dtype", types.a);
  for (size_t i = 0; i < 2; ++i) {
    const bool repeats = count != 0 && n.coin();
    uint64_t elements = repeats ? 1 : count;
    for (uint32_t d = shape.rank; repeats && d-- > 0;) {
      if (n.coin(3)) continue;
      operands.strides[i][d] = static_cast<int64_t>(elements);
      elements = times(elements, shape.sizes[d]);
    }
    operands.inputs[i].buffer = call.input(i == 0 ? "a" : "b", elements, dtype_size(i == 0 ? types.a : types.b));
    if (repeats) operands.inputs[i].strides = operands.strides[i].data();
  }
  uint64_t results = 1;
  for (uint32_t d = 0; d < shape.rank; ++d) results = reduced[d] ? results : times(results, shape.sizes[d]);
  for (uint32_t d = 0; d < shape.rank; ++d) results = !reduced[d] && shape.sizes[d] == 0 ? 0 : results;
  operands.output.buffer = call.output("y", results, dtype_size(types.y));
  set(call, tuff::operations::expr, args);
}

// A formula of two inputs, a scalar and two outputs, of which each input may be repeated along any axes.
void draw_expression(Call& call) {
  Numbers& n = call.numbers;
  if (n.coin()) return draw_reduced_expression(call);
  struct Types {
    int32_t a, b, y, z;
  };
  const Types types = n.one_of<Types>({{TUFF_F32, TUFF_F32, TUFF_F32, TUFF_BOOL},
                                       {TUFF_F16, TUFF_BF16, TUFF_F16, TUFF_U8},
                                       {TUFF_I8, TUFF_I16, TUFF_I32, TUFF_I16},
                                       {TUFF_I64, TUFF_F64, TUFF_F64, TUFF_I64}});
  tuff::expression::Formula formula;
  formula.text = "y = a * s + b; z = y < a";
  formula.inputs = {{"a", types.a}, {"s", TUFF_F32, true}, {"b", types.b}};
  formula.outputs = {{"y", types.y}, {"z", types.z}};
  tuff::ExpressionArgs& args = call.keep(tuff::ExpressionArgs{});
  args.expression = &call.keep(tuff::Expression(formula));
  Shape& shape = draw_shape(call);
  args.shape = shape.sizes.data(), args.rank = shape.rank;
  struct Operands {
    std::array<tuff::ExpressionOperand, 3> inputs;
    std::array<tuff::ExpressionOperand, 2> outputs;
    std::array<std::array<int64_t, 8>, 2> strides;
  };
  Operands& operands = call.keep(Operands{});
  args.inputs = operands.inputs.data(), args.outputs = operands.outputs.data();
  const uint64_t count = shape.elements();
  call.tell("dtype", types.a);
  for (size_t i = 0; i < 2; ++i) {
    const bool repeats = count != 0 && n.coin();
    uint64_t elements = repeats ? 1 : count;
    for (uint32_t d = shape.rank; repeats && d-- > 0;) {
      if (n.coin(3)) continue;
      operands.strides[i][d] = static_cast<int64_t>(elements);
      elements = times(elements, shape.sizes[d]);
    }
    tuff::ExpressionOperand& input = operands.inputs[2 * i];
    input.buffer = call.input(i == 0 ? "a" : "b", elements, dtype_size(i == 0 ? types.a : types.b));
    if (repeats) input.strides = operands.strides[i].data();
  }
  const bool in_place = types.a == types.y && operands.inputs[0].strides == nullptr;
  operands.outputs[0].buffer = in_place ? call.output_or(operands.inputs[0].buffer, "y", count, dtype_size(types.y))
                                        : call.output("y", count, dtype_size(types.y));
  operands.outputs[1].buffer = call.output("z", count, dtype_size(types.z));
  set(call, tuff::operations::expr, args);
}

void draw_softmax(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::SoftmaxArgs& args = call.keep(tuff::SoftmaxArgs{});
  args.dtype = call.type_of(tuff::softmax::kTypes);
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  args.scale = n.coin() ? 1 : -0.5;
  args.logarithm = static_cast<int32_t>(n.below(2));
  args.mask = {nullptr, args.dtype, 0, 1};
  call.tell("dtype", args.dtype), call.tell("logarithm", args.logarithm);
  args.input = call.input("input", shape.elements(), dtype_size(args.dtype));
  args.output = call.output_or(args.input, "output", shape.elements(), dtype_size(args.dtype));
  if (n.coin(3)) {
    args.mask.type = n.coin() ? args.dtype : static_cast<int32_t>(TUFF_U8);
    args.mask.rows = n.coin() ? 0 : n.coin() ? 1 + n.below(5) : call.size();
    args.mask.repeat = n.coin() ? 1 : n.coin() ? 1 + n.below(5) : std::max<uint64_t>(call.size(), 1);
    if (n.coin(16)) args.mask.repeat = uint64_t{1} << n.one_of({31, 32, 62, 63});
    const uint64_t outer = product({shape.sizes.data(), shape.axis});
    const uint64_t row = product({shape.sizes.data() + shape.axis, shape.rank - shape.axis});
    call.tell("mask_type", args.mask.type), call.tell("mask_rows", args.mask.rows);
    call.tell("mask_repeat", args.mask.repeat);
    args.mask.buffer =
        call.input("mask", times(args.mask.rows != 0 ? args.mask.rows : outer, row), dtype_size(args.mask.type));
    call.read_partly(args.mask.buffer);
  }
  set(call, tuff::operations::softmax, args);
}

// --- normalisation -----------------------------------------------------------------------------------------------

namespace {

// Groups, and channels that they divide.
void draw_groups(Call& call, uint64_t& groups, uint64_t& channels) {
  Numbers& n = call.numbers;
  groups = n.coin() ? 1 + n.below(8) : std::max<uint64_t>(call.size(), 1);
  channels = times(groups, 1 + n.below(9));
  if (n.coin(4)) groups = channels;
}

}  // namespace

void draw_norm(Call& call) {
  Numbers& n = call.numbers;
  tuff::NormArgs& args = call.keep(tuff::NormArgs{});
  args.dtype = call.type_of(tuff::norm::kTypes);
  args.weight_type = n.coin() ? args.dtype : static_cast<int32_t>(TUFF_F32);
  args.grouped = n.coin();
  args.centred = args.grouped || n.coin();
  args.rows = call.size(), args.channels = call.size(), args.inner = args.grouped ? call.size() : 1;
  args.groups = 1;
  if (args.grouped && n.coin()) draw_groups(call, args.groups, args.channels);
  args.epsilon = 1e-5;
  const uint64_t count = product(std::array{args.rows, args.channels, args.inner}), size = dtype_size(args.dtype);
  const uint64_t weight = dtype_size(args.weight_type);
  call.tell("dtype", args.dtype), call.tell("weight_type", args.weight_type), call.tell("centred", args.centred);
  call.tell("rows", args.rows), call.tell("channels", args.channels), call.tell("inner", args.inner);
  call.tell("groups", args.groups);
  args.input = call.input("input", count, size);
  args.residual = n.coin(3) ? call.input("residual", count, size) : nullptr;
  args.output =
      call.output_or(args.residual != nullptr && n.coin() ? args.residual : args.input, "output", count, size);
  if (args.residual != nullptr && n.coin()) {
    const Buffer* const same = args.output == args.residual || n.coin() ? args.input : args.residual;
    args.sum = call.output_or(same == args.output ? nullptr : same, "sum", count, size);
  }
  args.weight = call.perhaps("weight", args.channels, weight), args.bias = call.perhaps("bias", args.channels, weight);
  set(call,
      args.grouped   ? tuff::operations::group_norm
      : args.centred ? tuff::operations::layer_norm
                     : tuff::operations::rms_norm,
      args);
}

void draw_batch_norm(Call& call) {
  Numbers& n = call.numbers;
  tuff::BatchNormArgs& args = call.keep(tuff::BatchNormArgs{});
  args.dtype = call.type_of(tuff::norm::kTypes);
  args.weight_type = n.coin() ? args.dtype : static_cast<int32_t>(TUFF_F32);
  args.batch = call.size(), args.channels = call.size(), args.inner = call.size();
  args.epsilon = 1e-5;
  const uint64_t count = product(std::array{args.batch, args.channels, args.inner}), size = dtype_size(args.dtype);
  const uint64_t weight = dtype_size(args.weight_type);
  call.tell("dtype", args.dtype), call.tell("weight_type", args.weight_type), call.tell("batch", args.batch);
  call.tell("channels", args.channels), call.tell("inner", args.inner);
  args.input = call.input("input", count, size);
  args.output = call.output_or(args.input, "output", count, size);
  args.mean = call.input("mean", args.channels, weight), args.variance = call.input("variance", args.channels, weight);
  args.weight = call.perhaps("weight", args.channels, weight), args.bias = call.perhaps("bias", args.channels, weight);
  set(call, tuff::operations::batch_norm, args);
}

void draw_norm_backward(Call& call) {
  Numbers& n = call.numbers;
  tuff::NormBackwardArgs& args = call.keep(tuff::NormBackwardArgs{});
  args.dtype = call.type_of(tuff::norm::kTypes), args.kind = static_cast<int32_t>(n.below(4));
  args.weight_type = n.coin() ? args.dtype : static_cast<int32_t>(TUFF_F32);
  args.statistics_type = n.coin() ? args.weight_type : static_cast<int32_t>(TUFF_F32);
  const bool of_rows = args.kind == TUFF_NORM_LAYER || args.kind == TUFF_NORM_RMS;
  args.batch = call.size(), args.channels = call.size(), args.inner = of_rows || n.coin(4) ? 1 : call.size();
  if (args.kind == TUFF_NORM_GROUP) draw_groups(call, args.groups, args.channels);
  args.epsilon = 1e-5;
  const uint64_t count = product(std::array{args.batch, args.channels, args.inner}), size = dtype_size(args.dtype);
  const uint64_t weight = dtype_size(args.weight_type), used = count == 0 ? 0 : args.channels;
  call.tell("dtype", args.dtype), call.tell("kind", args.kind), call.tell("weight_type", args.weight_type);
  call.tell("batch", args.batch), call.tell("channels", args.channels), call.tell("inner", args.inner);
  call.tell("groups", args.groups);
  args.input = call.input("input", count, size), args.output_gradient = call.input("output_gradient", count, size);
  const uint64_t wanted = 1 + n.below(7);
  const bool of_input = (wanted & 1) != 0 || (args.kind == TUFF_NORM_RMS && (wanted & 2) == 0);
  const bool of_weight = (wanted & 2) != 0, of_bias = (wanted & 4) != 0 && args.kind != TUFF_NORM_RMS;
  const bool given = args.kind == TUFF_NORM_BATCH && n.coin();
  args.frozen = given && n.coin() ? 1 : 0;
  args.weight = call.perhaps("weight", used, weight);
  if (given) {
    const uint64_t statistic = dtype_size(args.statistics_type);
    args.mean = call.input("mean", used, statistic), args.variance = call.input("variance", used, statistic);
  }
  if (of_input) {
    args.input_gradient = call.output_or(n.coin(3)   ? args.input
                                         : n.coin(3) ? args.output_gradient
                                                     : nullptr,
                                         "input_gradient", count, size);
  }
  if (of_weight) args.weight_gradient = call.output("weight_gradient", args.channels, weight);
  if (of_bias) args.bias_gradient = call.output("bias_gradient", args.channels, weight);
  // What some gradients do not depend on is not read.
  if (args.weight != nullptr && (!of_input || args.input_gradient == nullptr)) call.read_partly(args.weight);
  if (args.frozen != 0 && !of_weight && !of_bias) call.read_partly(args.input);
  set(call, tuff::operations::norm_backward, args);
}

void draw_batch_norm_training(Call& call) {
  Numbers& n = call.numbers;
  tuff::BatchNormTrainingArgs& args = call.keep(tuff::BatchNormTrainingArgs{});
  args.dtype = call.type_of(tuff::norm::kTypes);
  args.weight_type = n.coin() ? args.dtype : static_cast<int32_t>(TUFF_F32);
  args.batch = std::max<uint64_t>(call.size(), 2), args.channels = call.size();
  args.inner = n.coin(3) ? 1 : std::max<uint64_t>(call.size(), 1);
  args.epsilon = 1e-5, args.momentum = 0.1;
  const uint64_t count = product(std::array{args.batch, args.channels, args.inner}), size = dtype_size(args.dtype);
  const uint64_t weight = dtype_size(args.weight_type);
  call.tell("dtype", args.dtype), call.tell("weight_type", args.weight_type), call.tell("batch", args.batch);
  call.tell("channels", args.channels), call.tell("inner", args.inner);
  args.input = call.input("input", count, size);
  const uint64_t wanted = 1 + n.below(7);
  if ((wanted & 1) != 0) {
    args.weight = call.perhaps("weight", args.channels, weight),
    args.bias = call.perhaps("bias", args.channels, weight);
    args.output = call.output_or(n.coin(3) ? args.input : nullptr, "output", count, size);
  }
  if ((wanted & 2) != 0) {
    args.mean = call.output("mean", args.channels, 4), args.variance = call.output("variance", args.channels, 4);
  }
  if ((wanted & 4) != 0) {
    args.running_mean = call.output("running_mean", args.channels, weight);
    args.running_variance = call.output("running_variance", args.channels, weight);
  }
  set(call, tuff::operations::batch_norm_training, args);
}

}  // namespace tuff_test
