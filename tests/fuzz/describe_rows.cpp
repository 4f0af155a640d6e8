// Operations along rows or on single elements: reductions, softmax, normalisations, unary and binary functions.
#include <algorithm>
#include <bit>
#include <cmath>

#include "fuzz/draft.hpp"
#include "fuzz/epilogue.hpp"
#include "fuzz/numbers.hpp"
#include "support/bounds.hpp"

namespace tuff_fuzz {
namespace {

using tuff_test::gamma;
using tuff_test::kU;

// Any axis may be the longest.
std::vector<uint64_t> draw_rows(Draft& d, uint64_t most) {
  std::vector<uint64_t> shape = draw_shape(d, most, 40);
  std::swap(shape[d.shape.below(shape.size())], shape[0]);
  return shape;
}

void set_shape(Draft& d, const std::vector<uint64_t>& shape) {
  d.set("rank", shape.size());
  d.list("shape", shape);
}

// The element types of each family, by its table; operations that take integers.
#define UNARY_TYPE(NAME) TUFF_##NAME,
constexpr int32_t kUnaryTypes[] = {
#include "kernels/elementwise/unary.def"
};
#define BINARY_TYPE(NAME) TUFF_##NAME,
constexpr int32_t kBinaryTypes[] = {
#include "kernels/elementwise/binary.def"
};
#define REDUCE_TYPE(NAME) TUFF_##NAME,
constexpr int32_t kReduceTypes[] = {
#include "kernels/reduce/reduce.def"
};
#define SCAN_TYPE(NAME) TUFF_##NAME,
constexpr int32_t kScanTypes[] = {
#include "kernels/scan/scan.def"
};
#define SOFTMAX_TYPE(NAME) TUFF_##NAME,
constexpr int32_t kSoftmaxTypes[] = {
#include "kernels/softmax/softmax.def"
};
#define NORM_TYPE(NAME) TUFF_##NAME,
constexpr int32_t kNormTypes[] = {
#include "kernels/norm/norm.def"
};

struct Op {
  int32_t op;
  bool integers;
};
#define UNARY(number, ...) number,
constexpr int32_t kUnaryOps[] = {
#include "kernels/elementwise/unary.def"
};
#define BINARY(number, NAME, name, python, file, ulps, measured, measured_gpu, flops, integers, ...) \
  {number, integers != 0},
constexpr Op kBinaryOps[] = {
#include "kernels/elementwise/binary.def"
};
enum class Gives : uint8_t { same, sum, real, place, truth, count };
struct ReduceOp {
  int32_t op;
  Gives gives;
  bool empty;
};
#define REDUCE(number, NAME, name, gathers, result, output, prepare, center, empty, ...) \
  {number, Gives::output, empty != 0},
constexpr ReduceOp kReduceOps[] = {
#include "kernels/reduce/reduce.def"
};

bool is_integer(int32_t dtype) { return spacing(dtype, 1) == 0; }

// f32 twice as often as each of the others.
int32_t draw_type(Draw& draw, std::span<const int32_t> types) {
  const uint64_t drawn = draw.below(types.size() + 1);
  return types[drawn == 0 ? 0 : drawn - 1];
}

// One of the operations that take the type.
int32_t draw_op(Draw& draw, std::span<const Op> ops, int32_t dtype) {
  const Op* op = nullptr;
  do op = &ops[draw.below(ops.size())];
  while (is_integer(dtype) && !op->integers);
  return op->op;
}

// No product of `length` elements, in any order, exceeds this.
double product_of_any(const Seen& seen, uint64_t length) {
  return std::min(seen.product, std::pow(seen.most, static_cast<double>(length)));
}

// The types of a reduction's results, the first of which is usual: the table in tuff.h.
std::vector<int32_t> reduced_types(Gives gives, int32_t dtype) {
  const bool integer = is_integer(dtype);
  switch (gives) {
    case Gives::same: return {dtype};
    case Gives::place: return {TUFF_U32, TUFF_I64};
    case Gives::truth: return {TUFF_BOOL};
    case Gives::count: return {TUFF_I64, TUFF_I32, TUFF_U32, TUFF_U64};
    case Gives::sum:
      if (!integer) break;
      return {dtype == TUFF_BOOL ? int32_t{TUFF_I32} : dtype,
              TUFF_I64,
              TUFF_U64,
              TUFF_I32,
              TUFF_U32,
              TUFF_I16,
              TUFF_U16,
              TUFF_I8,
              TUFF_U8};
    case Gives::real: break;
  }
  if (dtype == TUFF_F64) return {TUFF_F64};
  if (integer) return {TUFF_F32, TUFF_F64};
  return {dtype, TUFF_F32, TUFF_F64};
}

// The difference of two standard deviations whose squares differ by `off`.
double off_by(double deviation, double off) { return std::min(off / std::max(deviation, 1e-300), std::sqrt(off)); }

void draw_reduce(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(draw, kReduceTypes);
  const ReduceOp& row = kReduceOps[draw.below(std::size(kReduceOps))];
  const int32_t op = row.op;
  std::vector<uint64_t> shape = draw_rows(d, 2000);
  const uint64_t axis = draw.below(shape.size());
  uint64_t axes = 1;
  if (d.has("axis_count") && draw.one_in(3)) axes = draw.between(1, shape.size() - axis);
  uint64_t length = 1, results = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = i >= axis && i < axis + axes;
    if (!row.empty && reduced && shape[i] == 0) shape[i] = 3;
    (reduced ? length : results) *= shape[i];
  }
  d.set("dtype", dtype), d.set("op", op), d.set("axis", axis);
  set_shape(d, shape);
  if (axes > 1) d.set("axis_count", axes);
  const std::vector<int32_t> types = reduced_types(row.gives, dtype);
  int32_t type = types[0];
  if (d.has("output_type") && draw.one_in(2)) d.set("output_type", type = types[draw.below(types.size())]);
  const auto n = static_cast<double>(length);
  double correction = 0;
  const bool spreads = op == TUFF_REDUCE_VAR || op == TUFF_REDUCE_STD;
  if (spreads && d.has("correction") && length > 2) {
    correction = draw.of({0.0, 1.0, 0.5, -1.0});
    d.real("correction", correction);
  }
  const bool integer = is_integer(dtype), multiplies = op == TUFF_REDUCE_PROD;
  const bool exact = integer && row.gives != Gives::real;  // whatever the values
  d.input("input", dtype, product(shape),
          exact        ? multiplies && dtype != TUFF_BOOL ? Fill::odd : Fill::anything
          : multiplies ? Fill::powers
                       : Fill::integers);
  Operand& output = d.output("output", type, results);
  const double correct = n / std::max(n - correction, 0.5);
  switch (op) {
    // The sum is exact; the division may use a reciprocal with an error of 4 ULP.
    case TUFF_REDUCE_MEAN:
    case TUFF_REDUCE_L2: output.allowed = [type](uint64_t, double y) { return rounded(type, 5, y); }; break;
    // The mean is off by at most m = 8 u most. That shifts each square by less than 2 m most, and the sum of squares of
    // up to (2 most)^2 has an error of its own.
    case TUFF_REDUCE_VAR:
    case TUFF_REDUCE_STD:
      output.allowed = [&d, type, op, n, correct](uint64_t, double y) {
        const double most = d.of("input").seen.most;
        const double off = correct * most * most * (gamma(n + 8) * 4 + 40 * kU);
        return rounded(type, 8, y) + (op == TUFF_REDUCE_VAR ? off : off_by(y, off));
      };
      break;
    // exp of differences, which are exact, to 4 ULP; a sum of n such terms; the logarithm, and the sum with the
    // maximum.
    case TUFF_REDUCE_LOGSUMEXP:
      output.allowed = [type, n](uint64_t, double y) {
        return std::isinf(y) ? 0 : rounded(type, 4, y) + 2 * gamma(n + 16) + 8 * kU * std::fabs(y);
      };
      break;
    default: break;
  }
  if (exact) return;
  d.suits = [&d, op, length, n] {
    const Seen& seen = d.of("input").seen;
    switch (op) {
      case TUFF_REDUCE_SUM:
      case TUFF_REDUCE_MEAN:
      case TUFF_REDUCE_L1: return seen.integral && seen.most * n < 0x1p24;
      case TUFF_REDUCE_SUM_SQUARES:
      case TUFF_REDUCE_L2:
      case TUFF_REDUCE_VAR:
      case TUFF_REDUCE_STD: return seen.integral && seen.most * seen.most * n < 0x1p24;
      case TUFF_REDUCE_LOGSUMEXP: return seen.integral && seen.most < 0x1p20;
      // In any order of multiplication, no intermediate result exceeds that product.
      case TUFF_REDUCE_PROD: return seen.integral && product_of_any(seen, length) < 0x1p24;
      default: return true;
    }
  };
}

// Inputs are integers, so that additions and products are exact in any order. Those of integer types wrap.
enum class Scan : uint8_t { sum, product, best };
template <Scan scan>
void draw_scan(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(draw, kScanTypes);
  const std::vector<uint64_t> shape = draw_rows(d, 2000);
  const uint64_t axis = draw.below(shape.size()), length = shape[axis];
  d.set("dtype", dtype), d.set("axis", axis);
  d.set("exclusive", draw.below(2)), d.set("reverse", draw.below(2));
  set_shape(d, shape);
  const bool integer = is_integer(dtype), products = scan == Scan::product;
  d.input("input", dtype, product(shape),
          integer    ? products ? Fill::odd : Fill::anything
          : products ? Fill::powers
                     : Fill::integers);
  Operand& output = d.output("output", dtype, product(shape));
  if (d.free.one_in(4)) output.same = 0;
  if (integer || scan == Scan::best) return;  // exact, whatever the values
  d.suits = [&d, length] {
    const Seen& seen = d.of("input").seen;
    const auto n = static_cast<double>(length);
    return seen.integral && (scan == Scan::product ? product_of_any(seen, length) : seen.most * n) < 0x1p24;
  };
}

void draw_unary(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(draw, kUnaryTypes), op = kUnaryOps[draw.below(std::size(kUnaryOps))];
  const uint64_t n = d.volume(draw_size(draw, draw.one_in(3) ? 1500 : 70), 2);
  d.set("dtype", dtype), d.set("op", op), d.set("n", n);
  if ((op == TUFF_UNARY_LEAKY_RELU || op == TUFF_UNARY_ELU) && draw.one_in(2))
    d.real("alpha", draw.of({0.5, 2.0, 1e-60}));
  // The results at the two zeros are different infinities, and earlier results are zeros of either sign.
  const bool pole = op == TUFF_UNARY_RECIPROCAL || op == TUFF_UNARY_RSQRT || op == TUFF_UNARY_DIGAMMA;
  d.input("input", dtype, n, pole || d.free.one_in(4) ? Fill::positive : Fill::integers, 8);
  d.operands[0].keep_values = true;
  Operand& output = d.output("output", dtype, n);
  if (d.free.one_in(4)) output.same = 0;
  const bool bits = op == TUFF_UNARY_RELU || op == TUFF_UNARY_ABS || op == TUFF_UNARY_NEG;
  if (promised_ulps(op, 1) != 0) {
    output.allowed = [&d, dtype, op](uint64_t i, double y) {
      return rounded(dtype, promised_ulps(op, d.operands[0].values[i]), y);
    };
  }
  d.suits = [&d, bits, pole] {
    const Seen& seen = d.of("input").seen;
    return bits || (seen.integral && seen.most < 0x1p20 && (seen.positive || !pole));
  };
}

void draw_binary(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(draw, kBinaryTypes), op = draw_op(draw, kBinaryOps, dtype);
  d.set("dtype", dtype), d.set("op", op);
  uint64_t n = d.volume(draw_size(draw, draw.one_in(3) ? 1500 : 70), 2), left = n, right = n;
  if (d.has("rank") && draw.one_in(2)) {
    std::vector<uint64_t> shape = draw_rows(d, 1500), a = shape, b = shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (draw.one_in(3)) (draw.one_in(2) ? a : b)[i] = 1;
    }
    left = product(a), right = product(b), n = 1;
    for (size_t i = 0; i < shape.size(); ++i) n *= a[i] == 1 ? b[i] : b[i] == 1 ? a[i] : shape[i];
    d.set("rank", shape.size());
    d.list("a_shape", a), d.list("b_shape", b);
    d.set("n", draw.one_in(2) ? 0 : n);
    if (n == 0) left = right = 0;
  } else {
    d.set("n", n);
  }
  const bool power = op == TUFF_BINARY_POW, ratio = op == TUFF_BINARY_DIV;
  const bool integer = is_integer(dtype);
  d.input("a", dtype, left, integer ? Fill::anything : power || d.free.one_in(4) ? Fill::positive : Fill::integers, 8);
  d.input("b", dtype, right, integer ? Fill::anything : ratio ? Fill::positive : Fill::integers, 8);
  Operand& output = d.output("output", dtype, n);
  if (left == n && d.free.one_in(5))
    output.same = 0;
  else if (right == n && d.free.one_in(5))
    output.same = 1;
  if (power || ratio) {
    output.allowed = [dtype, power](uint64_t, double y) {
      return std::isinf(y) ? 0 : rounded(dtype, power ? 4 : 4, y);
    };
  }
  if (integer) return;  // exact, whatever the values
  d.suits = [&d, power, op] {
    const Seen &a = d.of("a").seen, &b = d.of("b").seen;
    if (op == TUFF_BINARY_MAX || op == TUFF_BINARY_MIN) return true;
    if (power && (a.most > 64 || b.most > 20)) return false;
    return a.integral && b.integral && a.most < 0x1p11 && b.most < 0x1p11;
  };
}

// Where in which sequence n random numbers are; some of them where the number of 32 bits ends.
void set_sequence(Draft& d, uint64_t n) {
  Draw& free = d.free;
  d.set("seed", free.one_in(2) ? free.below(9) : free.below(UINT64_MAX));
  d.set("sequence", free.one_in(2) ? 0 : free.below(UINT64_MAX));
  d.set("offset", free.one_in(2)   ? free.below(9)
                  : free.one_in(2) ? free.below(UINT64_MAX - n)
                                   : 0xfffffffau + free.below(9));
}

// Devices and the host compute the same bits.
void draw_random(Draft& d) {
  Draw& draw = d.shape;
  const int32_t distribution = static_cast<int32_t>(draw.between(TUFF_RANDOM_BITS, TUFF_RANDOM_EXPONENTIAL));
  const bool integers =
      distribution < TUFF_RANDOM_BERNOULLI || (distribution == TUFF_RANDOM_BERNOULLI && draw.one_in(2));
  const int32_t dtype = integers ? draw.of({TUFF_I32, TUFF_U32, TUFF_I8, TUFF_U8}) : draw_float(draw);
  const uint64_t n = d.volume(draw_size(draw, draw.one_in(3) ? 1500 : 70), 1);
  d.set("dtype", dtype), d.set("distribution", distribution), d.set("n", n);
  Draw& free = d.free;
  set_sequence(d, n);
  d.real("low", free.of({0.0, -3.0, 2.5})), d.real("high", free.of({2.5, 7.0, 1e6}));
  d.real("mean", free.of({0.0, -3.0, 1e3})), d.real("deviation", free.of({0.0, 1e-3, 7.0}));
  d.real("scale", free.of({0.0, 0.25, 1e9})), d.real("probability", free.of({0.0, 0.25, 0.7, 1.0}));
  const bool narrow = dtype == TUFF_I8 || dtype == TUFF_U8, negative = dtype == TUFF_I32 || dtype == TUFF_I8;
  const int64_t least = negative ? -static_cast<int64_t>(free.below(100)) : static_cast<int64_t>(free.below(100));
  const int64_t highest = dtype == TUFF_U32   ? 0xffffffff
                          : dtype == TUFF_I32 ? 0x7fffffff
                          : dtype == TUFF_U8  ? 255
                                              : 127;
  const int64_t most = free.one_in(3) ? highest : least + static_cast<int64_t>(free.below(narrow ? 100 : 100'000));
  d.set("least", static_cast<uint64_t>(least)), d.set("most", static_cast<uint64_t>(std::min(most, highest)));
  d.output("output", dtype, n).moved = true;
}

// Devices and the host compute the same bits, whatever the parameters hold.
void draw_variates(Draft& d) {
  Draw& draw = d.shape;
  const int32_t distribution = static_cast<int32_t>(draw.between(TUFF_VARIATES_GAMMA, TUFF_VARIATES_ZIPF));
  const int32_t dtype = distribution < TUFF_VARIATES_POISSON ? TUFF_F32 : TUFF_I32;
  const bool whole = distribution == TUFF_VARIATES_HYPERGEOMETRIC, binomial = distribution == TUFF_VARIATES_BINOMIAL;
  const uint64_t n = d.volume(draw_size(draw, draw.one_in(3) ? 1500 : 70), 1);
  d.set("dtype", dtype), d.set("distribution", distribution), d.set("n", n);
  Draw& free = d.free;
  set_sequence(d, n);
  d.set("offset", free.one_in(2) ? free.below(9) : free.below((uint64_t{1} << 56) - n));
  const char* names[] = {"first", "second", "third"};
  const char* values[] = {"first_value", "second_value", "third_value"};
  const int count = whole ? 3 : binomial ? 2 : 1;
  d.output("output", dtype, n).moved = true;
  for (int p = 0; p < count; ++p) {
    const bool integers = whole || (binomial && p == 0);
    const int32_t type = integers ? TUFF_I32 : TUFF_F32;
    if (draw.one_in(2)) {
      d.input(names[p], type, n, free.one_in(3) ? Fill::anything : Fill::positive);
    } else if (integers) {
      d.real(values[p], free.of({0.0, 1.0, 7.0, 40.0, 3000.0, 1e9}));
    } else {
      d.real(values[p], free.of({0.0, 0.3, 1.0, 2.5, 40.0, 1e9, -1.0}));
    }
  }
}

// Which elements are dropped is the same everywhere. The product and its rounding are correct ones.
void draw_dropout(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  const uint64_t n = d.volume(draw_size(draw, draw.one_in(3) ? 1500 : 70), 1);
  d.set("dtype", dtype), d.set("n", n);
  Draw& free = d.free;
  set_sequence(d, n);
  d.real("probability", free.of({0.0, 0.5, 0.75, 1.0}));  // of which 1 / (1 - p) is a power of two
  d.input("input", dtype, n, Fill::integers);
  Operand& output = d.output("output", dtype, n);
  if (free.one_in(4)) output.same = 0;
  if (draw.one_in(2)) d.output("mask", TUFF_U8, n);
  d.suits = [&d] {
    const Seen& seen = d.of("input").seen;
    return seen.integral && seen.most < 0x1p8;
  };
}

// Sums of exponentials of numbers of moderate size; the result's error is relative to the terms and the largest
// element.
void draw_logarithms(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw.of({TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64});
  const std::vector<uint64_t> shape = draw_rows(d, 2000);
  const uint64_t axis = draw.below(shape.size()), length = shape[axis];
  d.set("dtype", dtype), d.set("axis", axis);
  d.set("exclusive", draw.below(2)), d.set("reverse", draw.below(2));
  set_shape(d, shape);
  d.input("input", dtype, product(shape), Fill::integers);
  Operand& output = d.output("output", dtype, product(shape));
  if (d.free.one_in(4)) output.same = 0;
  output.allowed = [&d, dtype, length](uint64_t, double y) {
    if (std::isinf(y)) return 0.0;
    return rounded(dtype, 1, y) + 0x1p-20 * (static_cast<double>(length) + std::fabs(y) + d.of("input").seen.most);
  };
  d.suits = [&d] {
    const Seen& seen = d.of("input").seen;
    return seen.integral && seen.most < 0x1p20;
  };
}

// The axes of a transform: one in three or so, at least one. `least` is the smallest size of a transformed axis. Sizes
// that are transformed are small more often than not, because each of them is a kernel.
struct Transformed {
  std::vector<uint64_t> shape;
  uint64_t axes;
};
Transformed draw_transformed(Draft& d, uint64_t most, uint64_t least) {
  Draw& draw = d.shape;
  std::vector<uint64_t> shape = draw_rows(d, most);
  const size_t rank = shape.size();
  uint64_t axes = draw.one_in(3) ? 0 : uint64_t{1} << draw.below(rank);
  if (axes != 0 && draw.one_in(3)) axes |= uint64_t{1} << draw.below(rank);
  d.set("axes", axes);
  if (axes == 0) axes = uint64_t{1} << (rank - 1);
  for (size_t i = 0; i < rank; ++i) {
    if ((axes >> i & 1) != 0) shape[i] = std::max(shape[i], least);
  }
  set_shape(d, shape);
  return {shape, axes};
}

// Axes in the opposite order, with gaps, where `strided`. Returns the operand's axes, whose footprint is that of its
// numbers.
std::vector<Axis> place_numbers(Draft& d, const std::vector<uint64_t>& sizes, bool strided, const char* name) {
  Draw& loose = d.loose();
  const size_t rank = sizes.size();
  std::vector<Axis> placed(rank);
  uint64_t next = strided ? loose.between(1, 2) : 1;
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = strided ? i : rank - 1 - i;
    placed[axis] = {sizes[axis], next};
    next = next * std::max<uint64_t>(sizes[axis], 1) + (strided ? loose.below(3) : 0);
  }
  if (strided) {
    std::vector<uint64_t> strides;
    for (const Axis& axis : placed) strides.push_back(axis.stride);
    d.list(name, strides);
  }
  return placed;
}

void draw_fft(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw.of({TUFF_F32, TUFF_F16, TUFF_BF16});
  const int32_t kind = static_cast<int32_t>(draw.between(TUFF_FFT_COMPLEX, TUFF_FFT_TO_REAL));
  const int32_t norm = static_cast<int32_t>(draw.between(TUFF_FFT_NORM_NONE, TUFF_FFT_NORM_ROOT));
  d.set("dtype", dtype), d.set("kind", kind), d.set("norm", norm);
  d.set("inverse", draw.below(2));
  const auto [shape, axes] = draw_transformed(d, 1500, 1);
  double length = 1;
  size_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if ((axes >> i & 1) != 0) length *= static_cast<double>(shape[i]), last = i;
  }
  std::vector<uint64_t> from = shape, to = shape;
  if (kind == TUFF_FFT_TO_REAL) from[last] = from[last] / 2 + 1;
  if (kind == TUFF_FFT_REAL) to[last] = to[last] / 2 + 1;
  const bool strided = d.loose().one_in(3);
  const auto operand = [&](std::vector<Axis>& placed, uint64_t elements) {
    const uint64_t count = footprint(placed) * elements;
    for (Axis& axis : placed) axis.stride *= elements;
    if (elements == 2) placed.push_back({2, 1});
    return count;
  };
  std::vector<Axis> in = place_numbers(d, from, strided, "input_strides");
  std::vector<Axis> out = place_numbers(d, to, strided, "output_strides");
  d.input("input", dtype, operand(in, kind == TUFF_FFT_REAL ? 1 : 2), Fill::integers, 8);
  const uint64_t count = operand(out, kind == TUFF_FFT_TO_REAL ? 1 : 2);
  Operand& output = d.output("output", dtype, count);
  if (strided) output.axes = out;
  if (!strided && kind == TUFF_FFT_COMPLEX && d.free.one_in(4)) output.same = 0;
  // The header's bound on the result's Euclidean norm, which is at most length sqrt(2) times the largest element.
  const double scale = norm == TUFF_FFT_NORM_SIZE ? 1 / length : norm == TUFF_FFT_NORM_ROOT ? 1 / std::sqrt(length) : 1;
  const double relative = 12 * std::max(std::log2(length), 1.0) * kU * length * std::sqrt(2.0) * scale;
  output.allowed = [&d, dtype, relative](uint64_t, double y) {
    return relative * d.of("input").seen.most + rounded(dtype, 0, y);
  };
  // Sums stay in f16's range.
  d.suits = [&d, length, scale] {
    const Seen& seen = d.of("input").seen;
    return seen.integral && seen.most * 2 * length * scale < 30000 && seen.most < 0x1p20;
  };
}

void draw_dct(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw.of({TUFF_F32, TUFF_F16, TUFF_BF16});
  const int32_t kind = static_cast<int32_t>(draw.between(TUFF_DCT_1, TUFF_DST_4));
  const int32_t norm = static_cast<int32_t>(draw.between(TUFF_FFT_NORM_NONE, TUFF_FFT_NORM_ROOT));
  d.set("dtype", dtype), d.set("kind", kind), d.set("norm", norm), d.set("orthogonal", draw.below(2));
  const auto [shape, axes] = draw_transformed(d, 600, kind == TUFF_DCT_1 ? 2 : 1);
  // The product of N, and the digits that are lost.
  double length = 1, digits = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if ((axes >> i & 1) == 0) continue;
    const double size = 2 * static_cast<double>(shape[i]) + (kind == TUFF_DCT_1 ? -2 : kind == TUFF_DST_1 ? 2 : 0);
    length *= size, digits += 12 * std::log2(size) + 8;
  }
  const bool strided = d.loose().one_in(3);
  const std::vector<Axis> in = place_numbers(d, shape, strided, "input_strides");
  const std::vector<Axis> out = place_numbers(d, shape, strided, "output_strides");
  d.input("input", dtype, footprint(in), Fill::integers, 8);
  Operand& output = d.output("output", dtype, footprint(out));
  if (strided) output.axes = out;
  if (!strided && d.free.one_in(4)) output.same = 0;
  // The header's bound on the result's Euclidean norm: each axis multiplies that by sqrt(N) or, with kinds that are not
  // orthogonal, by up to twice that. The norm of a line is at most sqrt(n) <= sqrt(N) times its largest element.
  const double scale = norm == TUFF_FFT_NORM_SIZE ? 1 / length : norm == TUFF_FFT_NORM_ROOT ? 1 / std::sqrt(length) : 1;
  const double most = std::exp2(std::popcount(axes)) * length * scale;
  output.allowed = [&d, dtype, relative = digits * kU * most](uint64_t, double y) {
    return relative * d.of("input").seen.most + rounded(dtype, 0, y);
  };
  // Sums stay in f16's range.
  d.suits = [&d, most] {
    const Seen& seen = d.of("input").seen;
    return seen.integral && seen.most * most < 30000 && seen.most < 0x1p20;
  };
}

void draw_softmax(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(draw, kSoftmaxTypes);
  const std::vector<uint64_t> shape = draw_rows(d, 1500);
  const uint64_t axis = draw.below(shape.size()), all = product(shape), length = shape[axis];
  uint64_t before = 1, behind = 1;
  for (size_t i = 0; i < shape.size(); ++i) (i < axis ? before : behind) *= i == axis ? 1 : shape[i];
  d.set("dtype", dtype), d.set("axis", axis);
  set_shape(d, shape);
  double scale = 1;
  bool logarithm = false, masked = false;
  if (d.has("scale")) {
    scale = draw.of({0.0, 1.0, 0.5, -2.0});
    d.real("scale", scale);
    if (scale == 0) scale = 1;
    logarithm = draw.one_in(3);
    d.set("logarithm", int32_t{logarithm});
  }
  d.input("input", dtype, all, Fill::integers, 8);
  Operand& output = d.output("output", dtype, all);
  if (d.free.one_in(4)) output.same = 0;
  // exp to 4 ULP of the difference, which is exact; a sum of `length` such terms; the quotient. The logarithm's
  // absolute error is that relative one plus its own. Rescaling to another maximum costs an exp and a product for each
  // block.
  const double relative = gamma(3 * static_cast<double>(length) + 40);
  output.allowed = [dtype, relative, logarithm](uint64_t, double y) {
    if (std::isinf(y)) return 0.0;
    return rounded(dtype, 4, y) + (logarithm ? relative * 2 + 8 * kU * (8 + std::fabs(y)) : relative * std::fabs(y));
  };
  if (d.has("scale") && draw.one_in(2)) {
    const bool bytes = draw.one_in(2);
    const uint64_t repeat = before > 0 && draw.one_in(3) ? draw.between(1, 3) : 0;
    const uint64_t rows = draw.one_in(2) ? 0 : draw.between(1, std::max<uint64_t>(before, 1));
    d.set("mask_repeat", repeat), d.set("mask_rows", rows);
    if (bytes) d.set("mask_type", TUFF_U8);
    d.input("mask", bytes ? int32_t{TUFF_U8} : dtype, all == 0 ? 0 : (rows == 0 ? before : rows) * length * behind,
            bytes ? Fill::booleans : Fill::integers, 4);
    masked = true;
  }
  d.suits = [&d, masked] {
    const Seen& input = d.of("input").seen;
    return input.integral && input.most < 256 &&
           (!masked || (d.of("mask").seen.integral && d.of("mask").seen.most < 256));
  };
}

// The error for rows of `length` integers of magnitude up to `most`: means are off by at most E, variances as
// docs/accuracy.md says. With an epsilon of at least 0.25 the standard deviation is at least 0.5, so nothing is
// magnified further.
double norm_error(double length, double most, double weight, double epsilon) {
  const double sigma = std::sqrt(epsilon), shift = gamma(length + 8) * most, variance = most * most;
  const double off = gamma(length + 8) * variance + 12 * shift * most + 12 * shift * shift;
  const double scale = 0.5 * off / (epsilon) + 8 * kU;
  return weight * (shift / sigma * 2 + 2 * most / sigma * scale) + 16 * kU * (weight * 2 * most / sigma + 8);
}

void finish_norm(Draft& d, int32_t dtype, double length, double epsilon, const char* bias) {
  const auto error = [&d, length, epsilon] {
    double weight = 1, most = 0;
    for (const Operand& operand : d.operands) {
      const std::string_view name = operand.name;
      if (name == "weight" && operand.elements != 0) weight = std::max(weight, operand.seen.most);
      if (name == "input" || name == "residual" || name == "mean") most += operand.seen.most;
    }
    return norm_error(length, std::max(most, 1.0), weight, epsilon);
  };
  for (Operand& operand : d.operands) {
    if (operand.written && std::string_view(operand.name) == "output") {
      operand.allowed = [dtype, error](uint64_t, double y) { return error() + rounded(dtype, 8, y); };
    }
  }
  d.suits = [&d, bias] {
    for (const Operand& operand : d.operands) {
      if (!operand.read || operand.elements == 0) continue;
      if (!operand.seen.integral || operand.seen.most > 32) return false;
      if (std::string_view(operand.name) == "variance" && !operand.seen.positive) return false;
    }
    return bias != nullptr;
  };
}

constexpr double kEpsilons[] = {0.25, 1.0, 4.0};

void draw_row_norm(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(draw, kNormTypes);
  const uint64_t rows = d.extent(draw_size(draw, 20)), cols = std::max<uint64_t>(d.extent(draw_size(draw, 80)), 1),
                 all = rows * cols;
  const double epsilon = kEpsilons[draw.below(3)];
  d.set("dtype", dtype), d.set("rows", rows), d.set("cols", cols), d.real("epsilon", epsilon);
  int32_t weights = dtype;
  if (d.has("weight_type") && draw.one_in(2)) d.set("weight_type", weights = draw.of<int32_t>({TUFF_F32, dtype}));
  d.input("input", dtype, all);
  Operand output{"output", 0, dtype, all, false, true};
  if (d.free.one_in(4)) output.same = 0;
  d.operands.push_back(output);
  if (draw.one_in(2)) d.input("weight", weights, rows == 0 ? 0 : cols);
  if (d.has("bias") && draw.one_in(2)) d.input("bias", weights, rows == 0 ? 0 : cols);
  if (d.has("residual") && draw.one_in(2) && all != 0) {
    d.input("residual", dtype, all);
    if (draw.one_in(2)) {
      Operand& sum = d.output("sum", dtype, all);
      const int residual = d.index_of("residual");
      const uint64_t way = d.free.below(3);
      if (way == 1) sum.same = residual;
      if (way == 2 && d.operands[1].same < 0) sum.same = 0;
    }
  }
  finish_norm(d, dtype, static_cast<double>(cols), epsilon, "bias");
}

void draw_channel_norm(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_type(draw, kNormTypes);
  const bool group = d.has("groups");
  const uint64_t batch = d.extent(draw_size(draw, 4), 0, 4), groups = d.extent(draw.between(1, 4), 1, 4);
  const uint64_t channels = groups * d.extent(draw.between(1, 4), 1);
  const uint64_t inner =
      d.extent(group ? std::max<uint64_t>(draw_size(draw, 40), 1) : draw_size(draw, 40), group ? 1 : 0);
  const uint64_t all = batch * channels * inner;
  const double epsilon = kEpsilons[draw.below(3)];
  d.set("dtype", dtype), d.set("batch", batch), d.set("channels", channels), d.set("inner", inner);
  d.real("epsilon", epsilon);
  const bool instance = group && d.has("weight_type") && draw.one_in(4);
  if (group) d.set("groups", instance ? 0 : groups);
  int32_t weights = dtype;
  if (d.has("weight_type") && draw.one_in(2)) d.set("weight_type", weights = draw.of<int32_t>({TUFF_F32, dtype}));
  const uint64_t used = all == 0 ? 0 : channels;
  d.input("input", dtype, all);
  Operand output{"output", 0, dtype, all, false, true};
  if (d.free.one_in(4)) output.same = 0;
  d.operands.push_back(output);
  if (!group) d.input("mean", weights, used), d.input("variance", weights, used, Fill::positive);
  if (draw.one_in(2)) d.input("weight", weights, used);
  if (draw.one_in(2)) d.input("bias", weights, used);
  finish_norm(d, dtype, static_cast<double>(instance ? inner : channels / groups * inner), epsilon, "bias");
}

constexpr Description kRows[] = {
    {"tuff_reduce", "reduce", draw_reduce},
    {"tuff_reduce_ex", "reduce", draw_reduce},
    {"tuff_cumsum", "scan", draw_scan<Scan::sum>},
    {"tuff_cumprod", "scan", draw_scan<Scan::product>},
    {"tuff_cummax", "scan", draw_scan<Scan::best>},
    {"tuff_cummin", "scan", draw_scan<Scan::best>},
    {"tuff_unary", "elementwise", draw_unary},
    {"tuff_unary_ex", "elementwise", draw_unary},
    {"tuff_binary", "elementwise", draw_binary},
    {"tuff_binary_ex", "elementwise", draw_binary},
    {"tuff_random", "random", draw_random},
    {"tuff_fft", "fft", draw_fft},
    {"tuff_dct", "fft", draw_dct},
    {"tuff_dropout", "random", draw_dropout},
    {"tuff_variates", "random", draw_variates},
    {"tuff_cumlogsumexp", "scan", draw_logarithms},
    {"tuff_softmax", "softmax", draw_softmax},
    {"tuff_softmax_ex", "softmax", draw_softmax},
    {"tuff_layer_norm", "norm", draw_row_norm},
    {"tuff_layer_norm_ex", "norm", draw_row_norm},
    {"tuff_rms_norm", "norm", draw_row_norm},
    {"tuff_rms_norm_ex", "norm", draw_row_norm},
    {"tuff_group_norm", "norm", draw_channel_norm},
    {"tuff_group_norm_ex", "norm", draw_channel_norm},
    {"tuff_batch_norm", "norm", draw_channel_norm},
    {"tuff_batch_norm_ex", "norm", draw_channel_norm},
};

}  // namespace

std::span<const Description> describe_rows() { return kRows; }

}  // namespace tuff_fuzz
