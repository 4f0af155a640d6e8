// Reductions of every element type to every type of result, compared with loops over integers modulo 2^64 and over long
// double.
#include <cfloat>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "support/axis_shape.hpp"
#include "support/bounds.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::reduce_types_test {
namespace {

constexpr int32_t kTypes[] = {TUFF_F32, TUFF_F16, TUFF_BF16, TUFF_F64, TUFF_I8,  TUFF_U8,  TUFF_I16,
                              TUFF_U16, TUFF_I32, TUFF_U32,  TUFF_I64, TUFF_U64, TUFF_BOOL};
constexpr int32_t kIntegers[] = {TUFF_I8, TUFF_U8, TUFF_I16, TUFF_U16, TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64};
constexpr const char* kNames[] = {"",       "sum",    "max", "min", "mean",          "prod",
                                  "argmax", "argmin", "any", "all", "count_nonzero", "sum_squares",
                                  "l1",     "l2",     "var", "std", "logsumexp"};
constexpr int32_t kOps = 16;

bool is_float(int32_t dtype) {
  return dtype == TUFF_F32 || dtype == TUFF_F16 || dtype == TUFF_BF16 || dtype == TUFF_F64;
}
bool is_signed(int32_t dtype) {
  return dtype == TUFF_I8 || dtype == TUFF_I16 || dtype == TUFF_I32 || dtype == TUFF_I64;
}

// An integer, extended to 64 bits by its sign; a bool as 0 or 1.
uint64_t integer(int32_t dtype, const Bytes& bytes, uint64_t i) {
  const uint64_t size = size_of(dtype);
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + i * size, size);
  if (dtype == TUFF_BOOL) return word != 0 ? 1 : 0;
  const int unused = static_cast<int>(64 - 8 * size);
  return is_signed(dtype) ? static_cast<uint64_t>(static_cast<int64_t>(word << unused) >> unused) : word;
}
uint64_t lowest_bits(int32_t dtype, uint64_t word) {
  return dtype == TUFF_BOOL ? uint64_t{word != 0} : word & ~uint64_t{0} >> (64 - 8 * size_of(dtype));
}
long double number(int32_t dtype, const Bytes& bytes, uint64_t i) {
  if (is_float(dtype)) return element(dtype, bytes, i);
  const uint64_t word = integer(dtype, bytes, i);
  return is_signed(dtype) ? static_cast<long double>(static_cast<int64_t>(word)) : static_cast<long double>(word);
}

// The types of results, the usual one first.
std::vector<int32_t> outputs_of(int32_t op, int32_t dtype) {
  switch (op) {
    case TUFF_REDUCE_MAX:
    case TUFF_REDUCE_MIN: return {dtype};
    case TUFF_REDUCE_ARGMAX:
    case TUFF_REDUCE_ARGMIN: return {TUFF_U32, TUFF_I64};
    case TUFF_REDUCE_ANY:
    case TUFF_REDUCE_ALL: return {TUFF_BOOL};
    case TUFF_REDUCE_COUNT_NONZERO: return {TUFF_I64, TUFF_I32, TUFF_U32, TUFF_U64};
    case TUFF_REDUCE_SUM:
    case TUFF_REDUCE_PROD:
    case TUFF_REDUCE_SUM_SQUARES:
    case TUFF_REDUCE_L1: {
      if (is_float(dtype)) break;
      std::vector<int32_t> types = {dtype == TUFF_BOOL ? int32_t{TUFF_I32} : dtype};
      types.insert(types.end(), std::begin(kIntegers), std::end(kIntegers));
      return types;
    }
    default: break;
  }
  if (dtype == TUFF_F64) return {TUFF_F64};
  if (is_float(dtype)) return {dtype, TUFF_F32, TUFF_F64};
  return {TUFF_F32, TUFF_F64};
}

struct TypeCase {
  int32_t op, dtype, output;
  AxisShape shape;

  std::string name() const {
    return std::string(kNames[op]) + "_" + name_of(dtype) + "_" + name_of(output) + "_" + shape.name();
  }
  double work() const { return shape.work(); }
};

// Every operation and type with one shape, and further types of results with others. Rows and columns; whole blocks and
// odd lengths; aligned and odd places; several segments.
std::vector<TypeCase> type_cases() {
  const std::vector<AxisShape> shapes = {{{3, 1030}, 1, 4}, {{2, 300, 24}, 1, 0}, {{5, 71, 3}, 1, 4},
                                         {{64, 128}, 1, 0}, {{40'000}, 0, 0},     {{1030, 16}, 0, 0},
                                         {{20'011}, 0, 8},  {{9, 7}, 1, 4},       {{3, 4, 1, 5}, 2, 0}};
  std::vector<TypeCase> all;
  size_t turn = 0;
  for (int32_t op = 1; op <= kOps; ++op) {
    for (const int32_t dtype : kTypes) {
      const std::vector<int32_t> outputs = outputs_of(op, dtype);
      all.push_back({op, dtype, outputs[0], shapes[turn++ % shapes.size()]});
      if (outputs.size() > 1) {
        all.push_back({op, dtype, outputs[1 + turn % (outputs.size() - 1)], shapes[(turn + 3) % shapes.size()]});
        if (all.back().output == outputs[0]) all.pop_back();
      }
    }
  }
  return all;
}

// Integers of any bits and the ends of their range where results are exact; small ones where they are floats. Odd
// factors, so that products do not become 0.
Bytes inputs(const TypeCase& row) {
  const uint64_t count = row.shape.count(), size = size_of(row.dtype);
  Bytes bytes(count * size);
  Random random(17);
  const bool small = is_float(row.output),
             sparse = row.op == TUFF_REDUCE_ANY || row.op == TUFF_REDUCE_ALL || row.op == TUFF_REDUCE_COUNT_NONZERO;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t word = random.next();
    if (is_float(row.dtype)) {
      const double unit = static_cast<double>(word >> 11) * 0x1p-52 - 1;  // from -1 to 1
      double value = row.op == TUFF_REDUCE_PROD ? 1 + unit / 100 : 4 * unit;
      if (sparse && word % 3 == 0) value = word % 2 != 0 ? 0.0 : -0.0;
      set_element(row.dtype, bytes, i, value);
      continue;
    }
    uint64_t value = word >> (64 - 8 * size);
    if (small) value = word % 100 - (is_signed(row.dtype) ? 50 : 0);
    if (!small && word % 11 == 0)
      value = word % 2 != 0 ? ~uint64_t{0} >> 1 >> (64 - 8 * size) : uint64_t{1} << (8 * size - 1);
    if (row.op == TUFF_REDUCE_PROD && row.dtype != TUFF_BOOL) value |= 1;
    if (sparse && word % 3 == 0) value = 0;
    std::memcpy(bytes.data() + i * size, &value, size);
  }
  return bytes;
}

struct Answer {
  uint64_t bits = 0;  // of integers
  long double value = 0, bound = 0;
};

Answer solved_in_integers(const TypeCase& row, const Bytes& x, uint64_t o, uint64_t i) {
  const AxisShape& s = row.shape;
  uint64_t sum = 0, product = 1, squares = 0, magnitudes = 0, nonzero = 0, best = 0;
  for (uint64_t r = 0; r < s.length(); ++r) {
    const uint64_t at = s.index(o, r, i), first = s.index(o, best, i);
    nonzero += is_float(row.dtype) ? number(row.dtype, x, at) != 0 : integer(row.dtype, x, at) != 0;
    const long double value = number(row.dtype, x, at), than = number(row.dtype, x, first);  // both exact
    const bool largest = row.op == TUFF_REDUCE_MAX || row.op == TUFF_REDUCE_ARGMAX;
    if (largest ? value > than : value < than) best = r;
    if (is_float(row.dtype)) continue;
    const uint64_t word = integer(row.dtype, x, at);
    sum += word, product *= word, squares += word * word;
    magnitudes += is_signed(row.dtype) && static_cast<int64_t>(word) < 0 ? 0 - word : word;
  }
  switch (row.op) {
    case TUFF_REDUCE_SUM: return {sum};
    case TUFF_REDUCE_PROD: return {product};
    case TUFF_REDUCE_SUM_SQUARES: return {squares};
    case TUFF_REDUCE_L1: return {magnitudes};
    case TUFF_REDUCE_ANY: return {uint64_t{nonzero != 0}};
    case TUFF_REDUCE_ALL: return {uint64_t{nonzero == s.length()}};
    case TUFF_REDUCE_COUNT_NONZERO: return {nonzero};
    case TUFF_REDUCE_ARGMAX:
    case TUFF_REDUCE_ARGMIN: return {best};
    default: return {integer(row.dtype, x, s.index(o, best, i))};
  }
}

Answer solved_in_reals(const TypeCase& row, const Bytes& x, uint64_t o, uint64_t i, double correction) {
  const AxisShape& s = row.shape;
  const auto n = static_cast<long double>(s.length());
  long double sum = 0, size = 0, product = 1, squares = 0, highest = -INFINITY, lowest = INFINITY;
  const auto at = [&](uint64_t r) { return number(row.dtype, x, s.index(o, r, i)); };
  for (uint64_t r = 0; r < s.length(); ++r) {
    sum += at(r), size += std::fabs(at(r)), product *= at(r), squares += at(r) * at(r);
    highest = std::max(highest, at(r)), lowest = std::min(lowest, at(r));
  }
  const long double mean = sum / n;
  long double distances = 0, distance = 0, exponentials = 0;
  for (uint64_t r = 0; r < s.length(); ++r) {
    distances += (at(r) - mean) * (at(r) - mean), distance += std::fabs(at(r) - mean);
    exponentials += std::exp(at(r) - highest);
  }
  const long double u = row.output == TUFF_F64 ? 0x1p-53L : 0x1p-24L;
  const auto g = [u](long double count) { return count * u / (1 - count * u); };
  const long double depth = sum_depth(s.length());
  const long double variance = distances / (n - correction);
  // The mean is off by at most e, which the true distances, whose sum is 0, square to n e^2.
  const long double e = g(depth + 2) * size / n;
  const long double off = (g(depth + 6) * distances + 2 * u * e * distance + 2 * n * e * e) / (n - correction);
  switch (row.op) {
    case TUFF_REDUCE_SUM: return {0, sum, g(depth) * size};
    case TUFF_REDUCE_MEAN: return {0, mean, e};
    case TUFF_REDUCE_PROD: return {0, product, g(n) * std::fabs(product)};
    case TUFF_REDUCE_SUM_SQUARES: return {0, squares, g(depth + 1) * squares};
    case TUFF_REDUCE_L1: return {0, size, g(depth) * size};
    case TUFF_REDUCE_L2: return {0, std::sqrt(squares), g(depth + 4) * std::sqrt(squares)};
    case TUFF_REDUCE_VAR: return {0, variance, off + 4 * u * variance};
    case TUFF_REDUCE_STD: {
      const long double deviation = std::sqrt(variance);
      const long double moved = deviation > 0 ? std::min(off / deviation, std::sqrt(off)) : std::sqrt(off);
      return {0, deviation, moved + 6 * u * deviation};
    }
    case TUFF_REDUCE_LOGSUMEXP: {
      const long double value = highest + std::log(exponentials);
      return {0, value, 2 * g(depth + 10) + 2 * u * (highest - lowest) + 6 * u * std::fabs(value)};
    }
    default: return {0, row.op == TUFF_REDUCE_MAX ? highest : lowest, 0};
  }
}

// Half a unit in the last place of a type, at a value.
long double half_unit(int32_t dtype, long double value) {
  const long double least = dtype == TUFF_F16 ? 0x1p-25L : dtype == TUFF_F64 ? 0x1p-1075L : 0x1p-150L;
  return std::fabs(value) * unit_roundoff(dtype) + least;
}

// The first answers that are wrong.
std::string compared(const TypeCase& row, const Bytes& x, const Bytes& got, double correction = 0) {
  const AxisShape& s = row.shape;
  std::string wrong;
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      const uint64_t at = o * s.inner() + i;
      if (!is_float(row.output)) {
        const uint64_t wanted = lowest_bits(row.output, solved_in_integers(row, x, o, i).bits);
        uint64_t word = 0;
        std::memcpy(&word, got.data() + at * size_of(row.output), size_of(row.output));
        if (word == wanted) continue;
        wrong += "[" + std::to_string(at) + "] is " + std::to_string(word) + ", not " + std::to_string(wanted) + "; ";
      } else {
        const Answer answer = solved_in_reals(row, x, o, i, correction);
        const long double value = number(row.output, got, at);
        const long double allowed =
            answer.bound + (answer.bound == 0 && row.op <= TUFF_REDUCE_MIN ? 0 : half_unit(row.output, answer.value));
        if (std::fabs(value - answer.value) <= allowed) continue;
        wrong += "[" + std::to_string(at) + "] is " + std::to_string(value) + ", not " + std::to_string(answer.value) +
                 " within " + std::to_string(allowed) + "; ";
      }
      if (wrong.size() > 300) return wrong;
    }
  }
  return wrong;
}

Bytes poisoned(int32_t dtype, uint64_t count) { return Bytes(count * size_of(dtype), 0xa5); }

tuff_reduce_desc described(const TypeCase& row, tuff_buffer input, tuff_buffer output) {
  tuff_reduce_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = row.dtype, desc.op = row.op, desc.output_type = row.output;
  desc.input = input, desc.output = output;
  desc.rank = row.shape.rank(), desc.axis = row.shape.axis;
  std::copy(row.shape.shape.begin(), row.shape.shape.end(), desc.shape);
  return desc;
}

using ReduceTypes = Table<TypeCase>;

TEST_P(ReduceTypes, Match) {
  const AxisShape& s = row().shape;
  const Bytes x = inputs(row());
  const uint64_t results = s.outer() * s.inner();
  const TypedTensor input(context(), row().dtype, x, s.shift / 4),
      output(context(), row().output, poisoned(row().output, results), s.shift / 4);
  if (row().output == outputs_of(row().op, row().dtype)[0]) {
    ASSERT_OK(tuff_reduce(context(), row().dtype, row().op, input, output, s.shape.data(), s.rank(), s.axis));
    EXPECT_EQ(compared(row(), x, output.read()), "");
  }
  tuff_reduce_desc desc = described(row(), input, output);
  const bool spreads = row().op == TUFF_REDUCE_VAR || row().op == TUFF_REDUCE_STD;
  const double correction = spreads && s.length() > 1 ? 1 : 0;
  desc.correction = correction;
  ASSERT_OK(tuff_reduce_ex(context(), &desc));
  EXPECT_EQ(compared(row(), x, output.read(), correction), "");
  EXPECT_EQ(input.read(), x);
}
TUFF_TABLE(ReduceTypes, TypeCase, type_cases());

class ReduceTypesOnce : public OnBackend {
 protected:
  // The reduction of a vector to one number.
  template <typename Y, typename T>
  Y reduce(int32_t op, int32_t dtype, const std::vector<T>& x, int32_t output_type = 0, double correction = 0) {
    Bytes bytes(x.size() * sizeof(T));
    if (!x.empty()) std::memcpy(bytes.data(), x.data(), bytes.size());
    const int32_t result = output_type != 0 ? output_type : outputs_of(op, dtype)[0];
    EXPECT_EQ(size_of(dtype), sizeof(T));
    EXPECT_EQ(size_of(result), sizeof(Y));
    const TypedTensor input(context(), dtype, bytes), output(context(), result, poisoned(result, 1));
    tuff_reduce_desc desc = described({op, dtype, output_type, {{x.size()}, 0, 0}}, input, output);
    desc.correction = correction;
    EXPECT_OK(tuff_reduce_ex(context(), &desc));
    Y y;
    std::memcpy(&y, output.read().data(), sizeof y);
    return y;
  }
};

TEST_P(ReduceTypesOnce, EndsOfTheRange) {
  constexpr int64_t kLeast = INT64_MIN, kMax = INT64_MAX;
  EXPECT_EQ((reduce<int8_t, int8_t>(TUFF_REDUCE_SUM, TUFF_I8, {127, 1})), -128);
  EXPECT_EQ((reduce<int64_t, int8_t>(TUFF_REDUCE_SUM, TUFF_I8, std::vector<int8_t>(1000, -128), TUFF_I64)), -128'000);
  EXPECT_EQ((reduce<uint32_t, uint8_t>(TUFF_REDUCE_SUM, TUFF_U8, std::vector<uint8_t>(300, 255), TUFF_U32)), 76'500u);
  EXPECT_EQ((reduce<int64_t, uint32_t>(TUFF_REDUCE_SUM, TUFF_U32, {0xffffffffu, 0xffffffffu}, TUFF_I64)), 0x1fffffffe);
  EXPECT_EQ((reduce<int32_t, int64_t>(TUFF_REDUCE_SUM, TUFF_I64, {int64_t{1} << 40, 5}, TUFF_I32)), 5);
  EXPECT_EQ((reduce<int64_t, int64_t>(TUFF_REDUCE_SUM, TUFF_I64, {kMax, 1})), kLeast);
  EXPECT_EQ((reduce<int64_t, int64_t>(TUFF_REDUCE_MAX, TUFF_I64, {kLeast, -1, kLeast + 1})), -1);
  EXPECT_EQ((reduce<int64_t, int64_t>(TUFF_REDUCE_MAX, TUFF_I64, std::vector<int64_t>(70, kLeast))), kLeast);
  EXPECT_EQ((reduce<int64_t, int64_t>(TUFF_REDUCE_MIN, TUFF_I64, std::vector<int64_t>(70, kMax))), kMax);
  EXPECT_EQ((reduce<uint64_t, uint64_t>(TUFF_REDUCE_MAX, TUFF_U64, {1, UINT64_MAX, 2})), UINT64_MAX);
  EXPECT_EQ((reduce<uint64_t, uint64_t>(TUFF_REDUCE_MIN, TUFF_U64, {UINT64_MAX, uint64_t{1} << 63})),
            uint64_t{1} << 63);
  EXPECT_EQ((reduce<uint32_t, uint32_t>(TUFF_REDUCE_MIN, TUFF_U32, {0x80000000u, 0xffffffffu})), 0x80000000u);
  EXPECT_EQ((reduce<uint32_t, uint32_t>(TUFF_REDUCE_MAX, TUFF_U32, {0x7fffffffu, 0x80000000u})), 0x80000000u);
  EXPECT_EQ((reduce<int32_t, int32_t>(TUFF_REDUCE_L1, TUFF_I32, {INT32_MIN})), INT32_MIN);  // wraps, as abs() does
  EXPECT_EQ((reduce<int64_t, int32_t>(TUFF_REDUCE_L1, TUFF_I32, {INT32_MIN, -5}, TUFF_I64)), 0x80000005);
  EXPECT_EQ((reduce<int64_t, int16_t>(TUFF_REDUCE_SUM_SQUARES, TUFF_I16, {-32768, -32768}, TUFF_I64)), 0x80000000);
  // Numbers that differ in their lower words only; equal ones, of which the first counts.
  EXPECT_EQ((reduce<uint32_t, uint64_t>(TUFF_REDUCE_ARGMAX, TUFF_U64, {1, 3, 2, 3})), 1u);
  EXPECT_EQ((reduce<uint32_t, int64_t>(TUFF_REDUCE_ARGMIN, TUFF_I64, {1, kLeast + 1, kLeast, kLeast, 7})), 2u);
  EXPECT_EQ((reduce<int64_t, int64_t>(TUFF_REDUCE_ARGMAX, TUFF_I64, {-3, -1, -2}, TUFF_I64)), 1);
  EXPECT_EQ((reduce<uint32_t, double>(TUFF_REDUCE_ARGMAX, TUFF_F64, {1.0, 1 + 0x1p-52, 1.0})), 1u);
  EXPECT_EQ((reduce<uint32_t, double>(TUFF_REDUCE_ARGMIN, TUFF_F64, {0.0, -0.0, 0.0})), 0u);
  EXPECT_EQ((reduce<uint32_t, int8_t>(TUFF_REDUCE_ARGMIN, TUFF_I8, {5, -128, 127})), 1u);
  EXPECT_EQ((reduce<uint32_t, uint8_t>(TUFF_REDUCE_ARGMAX, TUFF_U8, {5, 128, 127})), 1u);
  // A denormal, and any byte but 0.
  EXPECT_EQ((reduce<uint8_t, float>(TUFF_REDUCE_ANY, TUFF_F32, {0.0f, -0.0f, 1e-45f})), 1);
  EXPECT_EQ((reduce<uint8_t, double>(TUFF_REDUCE_ANY, TUFF_F64, {0.0, -0.0})), 0);
  EXPECT_EQ((reduce<int64_t, uint8_t>(TUFF_REDUCE_COUNT_NONZERO, TUFF_BOOL, {0, 1, 2, 255})), 3);
  EXPECT_EQ((reduce<uint8_t, uint8_t>(TUFF_REDUCE_MIN, TUFF_BOOL, {7, 1, 255})), 1);
}

TEST_P(ReduceTypesOnce, NaNAndInfinities) {
  const double nan = NAN, most = INFINITY;
  const auto of = [this](int32_t op, const std::vector<double>& x) { return reduce<double>(op, TUFF_F64, x); };
  EXPECT_TRUE(std::isnan(of(TUFF_REDUCE_MAX, {1, nan, most})));
  EXPECT_TRUE(std::isnan(of(TUFF_REDUCE_MIN, {-nan, -most, 3})));
  EXPECT_TRUE(std::isnan(of(TUFF_REDUCE_MAX, std::vector<double>(70, nan))));
  EXPECT_EQ(of(TUFF_REDUCE_MAX, {-most, -most}), -most);
  EXPECT_EQ(of(TUFF_REDUCE_MIN, {most, 3}), 3);
  EXPECT_EQ((reduce<uint32_t, double>(TUFF_REDUCE_ARGMAX, TUFF_F64, {1, nan, most, nan})), 1u);
  EXPECT_EQ((reduce<uint32_t, double>(TUFF_REDUCE_ARGMIN, TUFF_F64, {-most, -nan})), 1u);
  EXPECT_EQ((reduce<uint8_t, float>(TUFF_REDUCE_ALL, TUFF_F32, {NAN, INFINITY})), 1);
  for (const int32_t op : {TUFF_REDUCE_VAR, TUFF_REDUCE_STD, TUFF_REDUCE_LOGSUMEXP, TUFF_REDUCE_L2, TUFF_REDUCE_L1}) {
    EXPECT_TRUE(std::isnan(of(op, {1, nan}))) << op;
    EXPECT_TRUE(std::isnan(reduce<float>(op, TUFF_F32, std::vector<float>{NAN, 1}))) << op;
  }
  EXPECT_TRUE(std::isnan(of(TUFF_REDUCE_VAR, {1, most})));
  EXPECT_EQ(of(TUFF_REDUCE_L2, {most, -most}), most);
  const auto single = [this](const std::vector<float>& x) { return reduce<float>(TUFF_REDUCE_LOGSUMEXP, TUFF_F32, x); };
  EXPECT_EQ(of(TUFF_REDUCE_LOGSUMEXP, {-most, -most}), -most);
  EXPECT_EQ(single({-INFINITY, -INFINITY}), -INFINITY);
  EXPECT_EQ(of(TUFF_REDUCE_LOGSUMEXP, {3, most, -most}), most);
  EXPECT_EQ(single({3, INFINITY, -INFINITY}), INFINITY);
  EXPECT_EQ(single({7, -INFINITY}), 7);
  EXPECT_EQ(of(TUFF_REDUCE_LOGSUMEXP, {-5000, -most}), -5000);
  EXPECT_NEAR(single({1000, 1000}), 1000 + std::log(2.0), 1e-4);
  EXPECT_NEAR(of(TUFF_REDUCE_LOGSUMEXP, {-1e4, -1e4}), -1e4 + std::log(2.0), 4e-12);
}

TEST_P(ReduceTypesOnce, EmptyAxes) {
  const std::vector<float> none;
  const auto of = [&](int32_t op) { return reduce<float>(op, TUFF_F32, none); };
  for (const int32_t op : {TUFF_REDUCE_SUM, TUFF_REDUCE_SUM_SQUARES, TUFF_REDUCE_L1, TUFF_REDUCE_L2}) {
    EXPECT_EQ(of(op), 0) << op;
    EXPECT_EQ((reduce<double, double>(op, TUFF_F64, {})), 0) << op;
  }
  EXPECT_EQ(of(TUFF_REDUCE_PROD), 1);
  EXPECT_EQ((reduce<int64_t, int64_t>(TUFF_REDUCE_PROD, TUFF_I64, {})), 1);
  EXPECT_EQ((reduce<uint8_t, float>(TUFF_REDUCE_ANY, TUFF_F32, {})), 0);
  EXPECT_EQ((reduce<uint8_t, float>(TUFF_REDUCE_ALL, TUFF_F32, {})), 1);
  EXPECT_EQ((reduce<int64_t, float>(TUFF_REDUCE_COUNT_NONZERO, TUFF_F32, {})), 0);
  EXPECT_EQ(of(TUFF_REDUCE_LOGSUMEXP), -INFINITY);
  for (const int32_t op : {TUFF_REDUCE_MEAN, TUFF_REDUCE_VAR, TUFF_REDUCE_STD}) {
    EXPECT_TRUE(std::isnan(of(op))) << op;
    EXPECT_TRUE(std::isnan(reduce<double>(op, TUFF_F64, std::vector<double>{}))) << op;
  }
}

TEST_P(ReduceTypesOnce, Corrections) {
  const auto var = [this](const std::vector<float>& x, double correction) {
    return reduce<float>(TUFF_REDUCE_VAR, TUFF_F32, x, 0, correction);
  };
  EXPECT_EQ(var({1, 3, 5}, 0), 8.0f / 3);
  EXPECT_EQ(var({1, 3, 5}, 1), 4);
  EXPECT_EQ(var({1, 3, 5}, -1), 2);
  EXPECT_EQ(var({1, 3, 5}, 2.5), 16);
  EXPECT_TRUE(std::isnan(var({7}, 1)));
  EXPECT_TRUE(std::isnan(var({7, 7}, 2)));
  EXPECT_EQ(var({7, 9}, 2), INFINITY);
  EXPECT_EQ(var({7, 9}, 3), INFINITY);
  EXPECT_EQ((reduce<double, double>(TUFF_REDUCE_STD, TUFF_F64, {1, 3, 5}, 0, 1)), 2);
  // A large mean: the squares themselves have no digits left.
  EXPECT_EQ(var({16'777'210, 16'777'214}, 0), 4);
  EXPECT_EQ((reduce<float, int8_t>(TUFF_REDUCE_STD, TUFF_I8, {-3, 3}, 0, 0)), 3);
}

TEST_P(ReduceTypesOnce, AxesTogether) {
  const uint64_t shape[] = {3, 4, 5, 2};
  const TypeCase row{TUFF_REDUCE_SUM, TUFF_I16, TUFF_I32, {{3, 20, 2}, 1, 0}};
  const Bytes x = inputs(row);
  for (const int32_t op : {TUFF_REDUCE_SUM, TUFF_REDUCE_ARGMAX, TUFF_REDUCE_COUNT_NONZERO}) {
    const int32_t type = op == TUFF_REDUCE_SUM ? TUFF_I32 : TUFF_I64;
    const TypeCase one{op, TUFF_I16, type, row.shape};
    const TypedTensor input(context(), TUFF_I16, x), output(context(), type, poisoned(type, 6));
    tuff_reduce_desc desc = described(one, input, output);
    desc.rank = 4, desc.axis = 1, desc.axis_count = 2;
    std::copy(std::begin(shape), std::end(shape), desc.shape);
    ASSERT_OK(tuff_reduce_ex(context(), &desc));
    EXPECT_EQ(compared(one, x, output.read()), "") << op;
  }
}

TEST_P(ReduceTypesOnce, BadArguments) {
  const TypedTensor x(context(), TUFF_F32, poisoned(TUFF_F32, 100)), y(context(), TUFF_F32, poisoned(TUFF_F32, 10));
  const TypeCase row{TUFF_REDUCE_SUM, TUFF_F32, 0, {{10, 10}, 1, 0}};
  const auto call = [&](const auto& change) {
    tuff_reduce_desc desc = described(row, x, y);
    change(desc);
    return tuff_reduce_ex(context(), &desc);
  };
  const auto types = [&](int32_t op, int32_t dtype, int32_t output) {
    return call([&](tuff_reduce_desc& d) { d.op = op, d.dtype = dtype, d.output_type = output; });
  };
  const char* const name = "tuff_reduce_ex";
  EXPECT_FAILS(types(TUFF_REDUCE_SUM, TUFF_F32, TUFF_I32), TUFF_ERROR_UNSUPPORTED, name, "output_type");
  EXPECT_NE(last_error().find("sum of f32 gives f32 or f64"), std::string::npos) << last_error();
  EXPECT_FAILS(types(TUFF_REDUCE_SUM, TUFF_I32, TUFF_F32), TUFF_ERROR_UNSUPPORTED, name, "output_type");
  EXPECT_FAILS(types(TUFF_REDUCE_SUM, TUFF_BOOL, TUFF_BOOL), TUFF_ERROR_UNSUPPORTED, name, "output_type");
  EXPECT_FAILS(types(TUFF_REDUCE_MAX, TUFF_I8, TUFF_I16), TUFF_ERROR_UNSUPPORTED, name, "output_type");
  EXPECT_FAILS(types(TUFF_REDUCE_MEAN, TUFF_F64, TUFF_F32), TUFF_ERROR_UNSUPPORTED, name, "output_type");
  EXPECT_FAILS(types(TUFF_REDUCE_ARGMAX, TUFF_F32, TUFF_I32), TUFF_ERROR_UNSUPPORTED, name, "output_type");
  EXPECT_FAILS(types(TUFF_REDUCE_ANY, TUFF_F32, TUFF_U8), TUFF_ERROR_UNSUPPORTED, name, "output_type");
  EXPECT_FAILS(types(TUFF_REDUCE_SUM, TUFF_F32, 99), TUFF_ERROR_INVALID_ARGUMENT, name, "output_type");
  EXPECT_FAILS(types(TUFF_REDUCE_SUM, TUFF_F8_E5M2, 0), TUFF_ERROR_UNSUPPORTED, name, "dtype");
  EXPECT_FAILS(types(17, TUFF_F32, 0), TUFF_ERROR_INVALID_ARGUMENT, name, "op");
  // Ten results of 8 bytes do not fit.
  const OwnBuffer narrow(context(), 40);
  for (const auto& [op, output] :
       {std::pair<int32_t, int32_t>{TUFF_REDUCE_COUNT_NONZERO, 0}, {TUFF_REDUCE_SUM, TUFF_F64}}) {
    const auto fill = [&, op = op, output = output](tuff_reduce_desc& d) {
      d.op = op, d.output_type = output, d.output = narrow;
    };
    EXPECT_FAILS(call(fill), TUFF_ERROR_INVALID_ARGUMENT, name, "output");
  }
  EXPECT_FAILS(call([](tuff_reduce_desc& d) { d.axis_count = 2; }), TUFF_ERROR_INVALID_ARGUMENT, name, "axis_count");
  EXPECT_FAILS(call([](tuff_reduce_desc& d) { d.axis = 0, d.axis_count = UINT32_MAX; }), TUFF_ERROR_INVALID_ARGUMENT,
               name, "axis_count");
  EXPECT_FAILS(call([](tuff_reduce_desc& d) { d.correction = 1; }), TUFF_ERROR_INVALID_ARGUMENT, name, "correction");
  EXPECT_FAILS(call([](tuff_reduce_desc& d) { d.op = TUFF_REDUCE_VAR, d.correction = NAN; }),
               TUFF_ERROR_INVALID_ARGUMENT, name, "correction");
  EXPECT_FAILS(call([](tuff_reduce_desc& d) { d.op = TUFF_REDUCE_MAX, d.axis_count = 1, d.shape[1] = 0; }),
               TUFF_ERROR_INVALID_ARGUMENT, name, "axis");
  EXPECT_EQ(y.read(), poisoned(TUFF_F32, 10));
}
TUFF_ON_BACKENDS(ReduceTypesOnce);

}  // namespace
}  // namespace tuff_test::reduce_types_test
