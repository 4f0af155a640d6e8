// Formulas that end with a reduction: every reduction and axis, on operands with strides, of short and long axes; what
// nothing and NaN give; and what is refused.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "support/expression.hpp"
#include "support/sample.hpp"
#include "support/stream.hpp"

namespace tuff_test::expression_reduce_test {
namespace {

class ExpressionReduce : public OnBackend {
 protected:
  // On a device each row is a kernel of its own, and each takes a CPU device a quarter of a second.
  bool skipped(const std::string& row, uint64_t number) const {
    return vulkan() && !in_sample(row + " " + std::to_string(number), 3);
  }
};

std::string axis_text(uint32_t reduced, size_t rank, std::mt19937_64& random) {
  std::string text;
  const bool all = reduced == (1u << rank) - 1;
  if (all && random() % 2 == 0) return "";
  for (size_t d = 0; d < rank; ++d) {
    if ((reduced >> d & 1) == 0) continue;
    const bool negative = random() % 3 == 0;
    text += (text.empty() ? "" : ", ") +
            std::to_string(negative ? static_cast<int64_t>(d) - static_cast<int64_t>(rank) : static_cast<int64_t>(d));
  }
  return ", axis=" + (text.find(',') == std::string::npos ? text : "(" + text + ")");
}

uint64_t offset_of(const OperandLayout& layout, const std::vector<uint64_t>& index) {
  auto at = static_cast<int64_t>(layout.first);
  for (size_t d = 0; d < index.size(); ++d) at += static_cast<int64_t>(index[d]) * layout.strides[d];
  return static_cast<uint64_t>(at);
}

// The next index along the axes whose bit is set, the last one first; false, and zeros there, after the last.
bool next(std::vector<uint64_t>& index, const std::vector<uint64_t>& shape, uint32_t axes) {
  for (size_t d = shape.size(); d-- > 0;) {
    if ((axes >> d & 1) == 0) continue;
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

// For i32 values a * 3 + b, in any of the shapes that a seed gives.
void test_integers(tuff_context context, const std::vector<uint64_t>& shape, uint32_t reduced, uint64_t seed) {
  std::mt19937_64 random(seed);
  const uint32_t all = (1u << shape.size()) - 1;
  const OperandLayout la = draw_layout(shape, all, true, random), lb = draw_layout(shape, all, true, random),
                      ly = draw_layout(shape, all & ~reduced, false, random);
  const auto a = edge_integers<int32_t>(la.elements, seed + 1);
  const auto b = edge_integers<int16_t>(lb.elements, seed + 2);
  const char* const names[] = {"sum", "prod", "max", "min", "any", "all", "count_nonzero", "sum_squares", "l1"};
  const std::string name = names[seed % std::size(names)];
  const bool truth = name == "any" || name == "all", counts = name == "count_nonzero";
  const int32_t type = truth ? TUFF_BOOL : TUFF_I32;
  const size_t size = truth ? 1 : 4;
  const std::string formula = name + "(a * 3 + b" + axis_text(reduced, shape.size(), random) + ")";
  const OwnExpr expr(context, formula.c_str(), {{"a", TUFF_I32}, {"b", TUFF_I16}}, {{"y", type}});

  std::vector<uint8_t> expected(ly.elements * size, 77);
  std::vector<uint64_t> index(shape.size());
  do {
    uint32_t value = name == "prod" || name == "all" ? 1 : 0;
    bool first = true;
    do {
      const auto x =
          static_cast<uint32_t>(a[offset_of(la, index)]) * 3 + static_cast<uint32_t>(int32_t{b[offset_of(lb, index)]});
      const auto whole = static_cast<int32_t>(x);
      if (name == "sum") value += x;
      if (name == "prod") value *= x;
      if (name == "max") value = first ? x : static_cast<uint32_t>(std::max(whole, static_cast<int32_t>(value)));
      if (name == "min") value = first ? x : static_cast<uint32_t>(std::min(whole, static_cast<int32_t>(value)));
      if (name == "any") value = value != 0 || x != 0 ? 1 : 0;
      if (name == "all") value = value != 0 && x != 0 ? 1 : 0;
      if (counts) value += x != 0 ? 1 : 0;
      if (name == "sum_squares") value += x * x;
      if (name == "l1") value += whole < 0 ? 0 - x : x;
      first = false;
    } while (next(index, shape, reduced));
    std::memcpy(expected.data() + offset_of(ly, index) * size, &value, size);
  } while (next(index, shape, all & ~reduced));

  const OwnBuffer x = uploaded(context, a), z = uploaded(context, b),
                  y = uploaded(context, std::vector<uint8_t>(expected.size(), 77));
  ASSERT_OK(expr.run(context, shape, {strided(x, la.first, la.strides), strided(z, lb.first, lb.strides)},
                     {strided(y, ly.first, ly.strides)}));
  ASSERT_EQ(downloaded<uint8_t>(context, y, expected.size()), expected) << formula << " seed " << seed;
}

TEST_P(ExpressionReduce, IntegersOverAnyAxesAreExact) {
  for (uint64_t seed = 0; seed < (vulkan() ? 36 : 200); ++seed) {
    if (skipped("any axes", seed)) continue;
    std::mt19937_64 random(seed + 1000);
    std::vector<uint64_t> shape(1 + random() % 5);
    uint64_t count = 1;
    for (uint64_t& size : shape) {
      size = count > 3000 ? 1 : random() % 3 == 0 ? 4 * (1 + random() % 4) : 1 + random() % 9;
      count *= size;
    }
    const auto reduced = static_cast<uint32_t>(1 + random() % ((1u << shape.size()) - 1));
    test_integers(context(), shape, reduced, seed);
    if (HasFatalFailure()) return;
  }
}

// Several stages, of rows, of columns, and of what lies between.
TEST_P(ExpressionReduce, LongAxesAreExact) {
  struct Row {
    std::vector<uint64_t> shape;
    uint32_t reduced;
  };
  const Row rows[] = {{{100'003}, 1},      {{3, 50'001}, 2},       {{50'000, 3}, 1},  {{40'000, 8}, 1},
                      {{300'000}, 1},      {{2, 9, 5003}, 6},      {{9, 7, 4001}, 5}, {{4001, 5, 4}, 3},
                      {{1, 70'001, 1}, 7}, {{20'000, 2, 2, 2}, 5}, {{513, 260}, 1},   {{513, 260}, 2},
                      {{1027, 64}, 1},     {{64, 1028}, 2},        {{16'384, 16}, 1}};
  uint64_t seed = 500;
  for (const Row& row : rows) {
    if (skipped("long axes", ++seed)) continue;
    test_integers(context(), row.shape, row.reduced, seed);
    if (HasFatalFailure()) return;
  }
}

// γₙ Σ|v|, with n for the additions of one lane and of the trees (kernels/reduce/reduce_vulkan.cpp: at most 176 and
// 32), and the rounding of each value: x - m, its square, and the quotient.
TEST_P(ExpressionReduce, FloatsAreWithinTheBound) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(1, 2);
  struct Shape {
    uint64_t rows, columns;
  };
  for (const Shape shape : {Shape{7, 1000}, Shape{300, 33}, Shape{2, 70'000}, Shape{1, 5}, Shape{64, 64}}) {
    std::vector<float> x(shape.rows * shape.columns), m(shape.rows);
    for (float& value : x) value = static_cast<float>(normal(random));
    for (float& value : m) value = static_cast<float>(normal(random));
    const OwnBuffer xs = uploaded(context(), x), ms = uploaded(context(), m), y(context(), shape.rows * 4);
    const OwnBuffer c(context(), shape.columns * 4);
    const auto count = static_cast<double>(shape.columns);
    for (const std::string name : {"sum", "mean", "l2"}) {
      const std::string formula = name + (name == "l2" ? "(x - m, axis=1)" : "((x - m) ** 2, axis=1)");
      if (shape.rows != 7 && skipped(formula, shape.rows)) continue;
      const OwnExpr expr(context(), formula.c_str(), {{"x", TUFF_F32}, {"m", TUFF_F32}}, {{"y", TUFF_F32}});
      ASSERT_OK(expr.run(context(), {shape.rows, shape.columns}, {dense(xs), strided(ms, 0, {1, 0})}, {dense(y)}));
      const std::vector<float> found = downloaded<float>(context(), y, shape.rows);
      for (uint64_t r = 0; r < shape.rows; ++r) {
        double sum = 0;
        for (uint64_t i = 0; i < shape.columns; ++i) sum += std::pow(double{x[r * shape.columns + i]} - m[r], 2);
        const double wanted = name == "mean" ? sum / count : name == "l2" ? std::sqrt(sum) : sum;
        EXPECT_NEAR(found[r], wanted, 0x1p-24 * (176 + 32 + 5) * wanted) << formula << " row " << r;
      }
    }
    // Along the other axis, of products, whose sum may cancel.
    const OwnExpr expr(context(), "sum(x * m, axis=0)", {{"x", TUFF_F32}, {"m", TUFF_F32}}, {{"y", TUFF_F32}});
    ASSERT_OK(expr.run(context(), {shape.rows, shape.columns}, {dense(xs), strided(ms, 0, {1, 0})}, {dense(c)}));
    const std::vector<float> found = downloaded<float>(context(), c, shape.columns);
    for (uint64_t i = 0; i < shape.columns; ++i) {
      double sum = 0, size = 0;
      for (uint64_t r = 0; r < shape.rows; ++r) {
        const double product = double{x[r * shape.columns + i]} * m[r];
        sum += product, size += std::fabs(product);
      }
      EXPECT_NEAR(found[i], sum, 0x1p-24 * (162 + 32 + 2) * size) << "column " << i;
    }
  }
}

TEST_P(ExpressionReduce, ResultsOfEveryType) {
  const std::vector<float> a = {1.5f, -2.25f, 3.0f, 0.0f, 7.75f, -0.5f};
  const OwnBuffer x = uploaded(context(), a);
  struct Row {
    const char* formula;
    int32_t dtype;
    double first, second;
  };
  const Row rows[] = {{"sum(a * 2, axis=1)", TUFF_F16, 4.5, 14.5},
                      {"sum(a * 2, axis=1)", TUFF_BF16, 4.5, 14.5},
                      {"mean(i32(a), axis=-1)", TUFF_F32, 2.0 / 3, 7.0 / 3},
                      {"mean(a > 0, axis=1)", TUFF_F32, 2.0 / 3, 1.0 / 3},
                      {"max(-a, axis=1)", TUFF_F32, 2.25, 0.5},
                      {"min(a, axis=1)", TUFF_BF16, -2.25, -0.5},
                      {"sum(a > 1, axis=1)", TUFF_I32, 2, 1},
                      {"sum(u8(a) * u8(100), axis=1)", TUFF_U8, (100 + 300 - 256), 700 % 256},
                      {"sum(i8(a) * 100, axis=1)", TUFF_I16, (100 + 56 + 44), -68},
                      {"count_nonzero(a, axis=1)", TUFF_I32, 3, 2},
                      {"max(i8(a), axis=1)", TUFF_I8, 3, 7},
                      {"any(a > 7, axis=1)", TUFF_BOOL, 0, 1},
                      {"all(a != 0, axis=1)", TUFF_BOOL, 1, 0},
                      {"prod(a, axis=1)", TUFF_F32, 1.5 * -2.25 * 3, -0.0}};
  for (const Row& row : rows) {
    const OwnExpr expr(context(), row.formula, {{"a", TUFF_F32}}, {{"y", row.dtype}});
    const OwnBuffer y(context(), 16);
    ASSERT_OK(expr.run(context(), {2, 3}, {dense(x)}, {dense(y)})) << row.formula;
    const OwnExpr shown(context(), "y", {{"y", row.dtype}}, {{"z", TUFF_F32}});
    const OwnBuffer z(context(), 8);
    ASSERT_OK(shown.run(context(), {2}, {dense(y)}, {dense(z)}));
    const auto found = downloaded<float>(context(), z, 2);
    const double tolerance = row.dtype == TUFF_F32 ? 0x1p-22 : 0;  // of a quotient
    EXPECT_NEAR(found[0], row.first, tolerance * std::fabs(row.first)) << row.formula << " " << row.dtype;
    EXPECT_NEAR(found[1], row.second, tolerance * std::fabs(row.second)) << row.formula << " " << row.dtype;
  }
}

TEST_P(ExpressionReduce, SixtyFourBits) {
  if (!computes_int64(context())) GTEST_SKIP() << "the device has no 64-bit integers";
  std::vector<int32_t> a(3 * 2001);
  std::mt19937_64 random(3);
  for (int32_t& value : a) value = static_cast<int32_t>(random());
  const OwnBuffer x = uploaded(context(), a), y(context(), 8 * 2001);
  for (const bool rows : {true, false}) {
    const uint64_t results = rows ? 3 : 2001;
    const OwnExpr expr(context(), rows ? "sum(i64(a) * a, axis=1)" : "sum(i64(a) * a, axis=0)", {{"a", TUFF_I32}},
                       {{"y", TUFF_I64}});
    ASSERT_OK(expr.run(context(), {3, 2001}, {dense(x)}, {dense(y)}));
    std::vector<int64_t> wanted(results);
    for (uint64_t i = 0; i < a.size(); ++i) {
      int64_t& sum = wanted[rows ? i / 2001 : i % 2001];
      sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(int64_t{a[i]} * a[i]));
    }
    EXPECT_EQ(downloaded<int64_t>(context(), y, results), wanted);
  }
  if (properties_of(context()).supports_f64 == 0) return;
  const OwnExpr expr(context(), "mean(f64(a) / 7)", {{"a", TUFF_I32}}, {{"y", TUFF_F64}});
  ASSERT_OK(expr.run(context(), {3, 2001}, {dense(x)}, {dense(y)}));
  long double sum = 0, size = 0;
  for (const int32_t value : a)
    sum += static_cast<double>(value) / 7, size += std::fabs(static_cast<double>(value) / 7);
  const double found = downloaded<double>(context(), y, 1)[0];
  EXPECT_NEAR(found, static_cast<double>(sum / 6003), static_cast<double>(0x1p-53L * 211 * size / 6003));
}

TEST_P(ExpressionReduce, NothingAndNaN) {
  const OwnBuffer x(context(), 64), y(context(), 16);
  struct Row {
    const char* formula;
    float wanted;
  };
  for (const Row row : {Row{"sum(a + 1, axis=1)", 0}, Row{"prod(a, axis=1)", 1}, Row{"mean(a, axis=1)", NAN}}) {
    const OwnExpr expr(context(), row.formula, {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
    ASSERT_OK(expr.run(context(), {3, 0}, {dense(TUFF_NULL_HANDLE)}, {dense(y)}));
    for (const float value : downloaded<float>(context(), y, 3)) {
      EXPECT_TRUE(value == row.wanted || (std::isnan(value) && std::isnan(row.wanted))) << row.formula << value;
    }
    // Without results nothing is read or written.
    ASSERT_OK(expr.run(context(), {0, 3}, {dense(TUFF_NULL_HANDLE)}, {dense(TUFF_NULL_HANDLE)}));
  }
  const OwnExpr largest(context(), "max(a, axis=1)", {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
  EXPECT_FAILS(largest.run(context(), {3, 0}, {dense(x)}, {dense(y)}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run",
               "character 1: max of an empty axis (axis 1 has size 0)");
  ASSERT_OK(largest.run(context(), {0, 0}, {dense(TUFF_NULL_HANDLE)}, {dense(TUFF_NULL_HANDLE)}));

  // NaN wins, wherever it is; infinities and signed zeros have their order.
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> values(3 * 77, -inf);
  values[70] = NAN, values[77 + 3] = -0.0f, values[77 + 5] = 0.0f, values[2 * 77 + 76] = inf;
  const OwnBuffer v = uploaded(context(), values);
  ASSERT_OK(largest.run(context(), {3, 77}, {dense(v)}, {dense(y)}));
  const std::vector<float> found = downloaded<float>(context(), y, 3);
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_TRUE(found[1] == 0 && !std::signbit(found[1]));
  EXPECT_EQ(found[2], inf);
}

TEST_P(ExpressionReduce, GraphsReplay) {
  std::vector<float> a(30'000);
  std::iota(a.begin(), a.end(), 0.0f);
  for (float& value : a) value = std::fmod(value, 8.0f);
  const OwnBuffer x = uploaded(context(), a), y(context(), 4);
  const OwnExpr expr(context(), "sum(a * s)", {{"a", TUFF_F32}, {"s", TUFF_F32, TUFF_EXPR_SCALAR}}, {{"y", TUFF_F32}});
  const OwnGraph graph = capture(context(), [&] {
    EXPECT_OK(expr.run(context(), {30, 1000}, {dense(x), scalar(2)}, {dense(y)}));
  });
  for (int repeat = 0; repeat < 2; ++repeat) {
    ASSERT_OK(tuff_graph_launch(context(), graph));
    ASSERT_OK(tuff_synchronize(context()));
    EXPECT_EQ(downloaded<float>(context(), y, 1)[0], 210'000.0f);  // 3.5 is the mean of 0 to 7
    a.assign(a.size(), 3.5f);
    ASSERT_OK(tuff_copy_htod(context(), x, 0, a.data(), a.size() * 4));
  }
}

// --- Results of more than one running value

// The first of equal elements, or the first NaN, in the order of the reduced axes whatever the strides.
template <typename T>
void test_places(tuff_context context, const std::vector<uint64_t>& shape, uint32_t reduced, uint64_t seed) {
  std::mt19937_64 random(seed);
  const uint32_t all = (1u << shape.size()) - 1;
  const OperandLayout la = draw_layout(shape, all, true, random),
                      ly = draw_layout(shape, all & ~reduced, false, random);
  std::vector<T> a(la.elements);
  for (T& value : a) {
    value = static_cast<T>(random() % 7);
    if constexpr (std::is_floating_point_v<T>) {
      const T edges[] = {static_cast<T>(-0.0), 0, static_cast<T>(-INFINITY), static_cast<T>(INFINITY), -1};
      if (random() % 3 == 0) value = edges[random() % (seed % 2 == 0 ? 2 : 5)];
      if (random() % 50 == 0 && seed % 3 == 0) value = static_cast<T>(NAN);
    } else if (random() % 4 == 0) {
      const T edges[] = {std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max(), static_cast<T>(-1), 0};
      value = edges[random() % 4];
    }
  }
  const bool largest = random() % 2 == 0, wide = random() % 2 == 0 && computes_int64(context);
  const std::string formula =
      std::string(largest ? "argmax" : "argmin") + "(a" + axis_text(reduced, shape.size(), random) + ")";
  const OwnExpr expr(context, formula.c_str(), {{"a", type_of<T>()}}, {{"y", wide ? TUFF_I64 : TUFF_U32}});
  const uint64_t size = wide ? 8 : 4;
  std::vector<uint8_t> expected(ly.elements * size, 77);
  std::vector<uint64_t> index(shape.size());
  do {
    uint64_t place = 0, count = 0;
    T best{};
    do {
      const T x = a[offset_of(la, index)];
      const bool better = !(best != best) && (x != x || (largest ? x > best : x < best));
      if (count == 0 || better) best = x, place = count;
      ++count;
    } while (next(index, shape, reduced));
    std::memcpy(expected.data() + offset_of(ly, index) * size, &place, size);
  } while (next(index, shape, all & ~reduced));
  const OwnBuffer x = uploaded(context, a), y = uploaded(context, std::vector<uint8_t>(expected.size(), 77));
  ASSERT_OK(expr.run(context, shape, {strided(x, la.first, la.strides)}, {strided(y, ly.first, ly.strides)}));
  ASSERT_EQ(downloaded<uint8_t>(context, y, expected.size()), expected) << formula << " seed " << seed;
}

TEST_P(ExpressionReduce, PlacesOverAnyAxesAreExact) {
  const bool f64 = properties_of(context()).supports_f64 != 0, int64 = computes_int64(context());
  for (uint64_t seed = 0; seed < (vulkan() ? 28 : 100); ++seed) {
    if (skipped("places", seed)) continue;
    std::mt19937_64 random(seed + 3000);
    std::vector<uint64_t> shape(1 + random() % 4);
    uint64_t count = 1;
    for (uint64_t& size : shape) {
      size = count > 3000 ? 1 : random() % 3 == 0 ? 4 * (1 + random() % 9) : 1 + random() % 9;
      count *= size;
    }
    if (seed % 10 == 9) shape = {1 + random() % 3, 9001};
    const auto reduced = static_cast<uint32_t>(1 + random() % ((1u << shape.size()) - 1));
    switch (seed % 7) {
      case 0: test_places<int8_t>(context(), shape, reduced, seed); break;
      case 1: test_places<uint32_t>(context(), shape, reduced, seed); break;
      case 2: test_places<int32_t>(context(), shape, reduced, seed); break;
      case 3:
        if (int64) test_places<int64_t>(context(), shape, reduced, seed);
        break;
      case 4:
        if (int64) test_places<uint64_t>(context(), shape, reduced, seed);
        break;
      case 5:
        if (f64) test_places<double>(context(), shape, reduced, seed);
        break;
      default: break;
    }
    test_places<float>(context(), shape, reduced, seed);
    if (HasFatalFailure()) return;
  }
}

// docs/accuracy.md. The distances from one of the elements, b, are off by a rounding each, their mean by at most
// e = γ |b - mean| and some standard deviations, and the squares by twice that times the distances.
double variance_bound(double base, double mean, double variance, double u) {
  const double depth = 176 + 32 + 6, deviation = std::sqrt(variance);
  const double e = u * depth * (std::fabs(base - mean) + deviation);
  return u * depth * variance + 2 * e * deviation + 2 * e * e + 4 * u * variance;
}

TEST_P(ExpressionReduce, VariancesOfCloseLargeElements) {
  struct Shape {
    uint64_t rows, columns;
  };
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0, 1);
  for (const Shape shape : {Shape{5, 1000}, Shape{300, 33}, Shape{1, 70'001}, Shape{1, 5}, Shape{64, 64}}) {
    for (const double middle : {0.0, 3.0, 1e6, -1e9}) {
      std::vector<float> x(shape.rows * shape.columns);
      const double scale = middle == -1e9 ? 1e4 : 1;
      for (float& value : x) value = static_cast<float>(middle + scale * normal(random));
      if (middle == 3.0) x[0] = 1e6f;  // the first element is far from the others
      const OwnBuffer xs = uploaded(context(), x), y(context(), 4 * std::max(shape.rows, shape.columns));
      for (const bool along_rows : {true, false}) {
        const uint64_t n = along_rows ? shape.columns : shape.rows, results = along_rows ? shape.rows : shape.columns;
        const std::string axis = along_rows ? "axis=1" : "axis=0";
        if (n < 2 || (shape.rows != 300 && skipped(axis, shape.columns))) continue;
        const OwnExpr var(context(), ("var(x, " + axis + ", correction=1)").c_str(), {{"x", TUFF_F32}},
                          {{"y", TUFF_F32}});
        const OwnExpr deviation(context(), ("std(x, " + axis + ")").c_str(), {{"x", TUFF_F32}}, {{"y", TUFF_F32}});
        for (const bool root : {false, true}) {
          ASSERT_OK((root ? deviation : var).run(context(), {shape.rows, shape.columns}, {dense(xs)}, {dense(y)}));
          const auto found = downloaded<float>(context(), y, results);
          for (uint64_t i = 0; i < results; ++i) {
            const auto at = [&](uint64_t k) {
              return double{x[along_rows ? i * shape.columns + k : k * shape.columns + i]};
            };
            double sum = 0, squares = 0;
            for (uint64_t k = 0; k < n; ++k) sum += at(k) - at(0);
            const double mean = at(0) + sum / static_cast<double>(n);
            for (uint64_t k = 0; k < n; ++k) squares += std::pow(at(k) - mean, 2);
            const double biased = squares / static_cast<double>(n),
                         bound = variance_bound(at(0), mean, biased, 0x1p-24);
            const double wanted = root ? std::sqrt(biased) : squares / static_cast<double>(n - 1);
            const double tolerance = root ? bound / wanted : bound * 2;
            EXPECT_NEAR(found[i], wanted, tolerance) << n << " elements of " << middle << " along " << axis;
          }
        }
      }
    }
  }
}

TEST_P(ExpressionReduce, LogarithmsOfSumsOfExponentials) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal(0, 40);
  for (const uint64_t n : {uint64_t{1}, uint64_t{9}, uint64_t{300}, uint64_t{50'003}}) {
    std::vector<float> x(2 * n);
    for (float& value : x) value = static_cast<float>(normal(random));
    const OwnBuffer xs = uploaded(context(), x), y(context(), 8);
    const OwnExpr expr(context(), "logsumexp(x * 2, axis=1)", {{"x", TUFF_F32}}, {{"y", TUFF_F32}});
    ASSERT_OK(expr.run(context(), {2, n}, {dense(xs)}, {dense(y)}));
    const auto found = downloaded<float>(context(), y, 2);
    for (uint64_t r = 0; r < 2; ++r) {
      double top = -INFINITY, sum = 0, range = 0;
      for (uint64_t i = 0; i < n; ++i) top = std::max(top, 2.0 * x[r * n + i]);
      for (uint64_t i = 0; i < n; ++i) {
        sum += std::exp(2.0 * x[r * n + i] - top);
        range = std::max(range, top - 2.0 * x[r * n + i]);
      }
      const double wanted = std::log(sum) + top;
      // A lane's step may be a product with a power of e too, whose error is 4 ULP; differences are rounded, in all by
      // at most the range.
      EXPECT_NEAR(found[r], wanted, 0x1p-24 * (6 * (176 + 32) + range + 6 * std::fabs(wanted))) << n;
    }
  }
}

TEST_P(ExpressionReduce, PlacesVariancesAndExponentialsOfEdges) {
  const float inf = INFINITY;
  const OwnBuffer y(context(), 16);
  struct Row {
    const char* formula;
    std::vector<float> x;
    float wanted;
  };
  const Row rows[] = {{"logsumexp(x)", {}, -inf},
                      {"logsumexp(x)", {-inf, -inf}, -inf},
                      {"logsumexp(x)", {-inf, 3, -inf}, 3},
                      {"logsumexp(x)", {1, inf, 2, inf}, inf},
                      {"logsumexp(x)", {1, inf, NAN}, NAN},
                      {"logsumexp(x)", {-inf, NAN, -inf}, NAN},
                      {"logsumexp(x)", {1000, -1000}, 1000},
                      {"var(x)", {}, NAN},
                      {"var(x)", {7}, 0},
                      {"var(x, correction=1)", {7}, NAN},
                      {"var(x, correction=3)", {1, 2}, inf},
                      {"var(x, correction=-1)", {1, 2, 3}, 0.5f},
                      {"var(x, correction=0.5)", {1, 2, 3}, 0.8f},
                      {"var(x)", {1, NAN, 3}, NAN},
                      {"var(x)", {1, inf, 3}, NAN},
                      {"var(x)", {inf, 1, 3}, NAN},
                      {"var(x)", {1e30f, -1e30f, 0, 0}, inf},
                      {"std(x)", {2, 4, 4, 4, 5, 5, 7, 9}, 2}};
  for (const Row& row : rows) {
    const OwnBuffer x(context(), 64);
    if (!row.x.empty()) {
      ASSERT_OK(tuff_copy_htod(context(), x, 0, row.x.data(), row.x.size() * 4));
    }
    const OwnExpr expr(context(), row.formula, {{"x", TUFF_F32}}, {{"y", TUFF_F32}});
    ASSERT_OK(expr.run(context(), {row.x.size()}, {dense(x)}, {dense(y)}));
    const float found = downloaded<float>(context(), y, 1)[0];
    if (std::isnan(row.wanted)) {
      EXPECT_TRUE(std::isnan(found)) << row.formula << " " << found;
    } else {
      EXPECT_FLOAT_EQ(found, row.wanted) << row.formula << " of " << row.x.size();
    }
  }
  for (const char* formula : {"argmax(x)", "argmin(x)"}) {
    const OwnExpr expr(context(), formula, {{"x", TUFF_F32}}, {{"y", TUFF_U32}});
    EXPECT_FAILS(expr.run(context(), {0}, {dense(TUFF_NULL_HANDLE)}, {dense(y)}), TUFF_ERROR_INVALID_ARGUMENT,
                 "tuff_expr_run", "of an empty axis (axis 0 has size 0)");
    const OwnBuffer x(context(), 64);
    EXPECT_FAILS(expr.run(context(), {1u << 31, 2}, {strided(x, 0, {0, 0})}, {dense(y)}), TUFF_ERROR_UNSUPPORTED,
                 "tuff_expr_run", "of 4294967296 elements: places are numbers of 32 bits");
  }
}

// --- Several outputs

TEST_P(ExpressionReduce, SeveralOutputs) {
  std::vector<float> a(6 * 50), b(50);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i * 7 % 31) - 11;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 5);
  const OwnBuffer xs = uploaded(context(), a), ws = uploaded(context(), b);
  const OwnBuffer s(context(), 24), m(context(), 4), p(context(), 200), e(context(), 1200), q(context(), 600);
  const OwnExpr expr(
      context(), "t = a * w + k; s = sum(t, axis=1); m = max(t); p = argmin(t, axis=0); e = t - 1; q = t",
      {{"a", TUFF_F32}, {"unused", TUFF_F64, TUFF_EXPR_SCALAR}, {"k", TUFF_F32, TUFF_EXPR_SCALAR}, {"w", TUFF_F32}},
      {{"s", TUFF_F32}, {"e", TUFF_F32}, {"m", TUFF_F32}, {"p", TUFF_U32}, {"q", TUFF_F16}});
  const auto run = [&](tuff_buffer sums, tuff_buffer elements) {
    return expr.run(context(), {6, 50}, {dense(xs), scalar(0), scalar(2), strided(ws, 0, {0, 1})},
                    {dense(sums), dense(elements), dense(m), dense(p), dense(q)});
  };
  ASSERT_OK(run(s, e));
  const auto t = [&](size_t r, size_t c) { return a[r * 50 + c] * b[c] + 2; };
  const auto sums = downloaded<float>(context(), s, 6), elements = downloaded<float>(context(), e, 300);
  const auto places = downloaded<uint32_t>(context(), p, 50);
  float largest = t(0, 0);
  for (size_t r = 0; r < 6; ++r) {
    float sum = 0;
    for (size_t c = 0; c < 50; ++c) {
      sum += t(r, c), largest = std::max(largest, t(r, c));
      EXPECT_EQ(elements[r * 50 + c], t(r, c) - 1);
    }
    EXPECT_EQ(sums[r], sum);
  }
  EXPECT_EQ(downloaded<float>(context(), m, 1)[0], largest);
  for (size_t c = 0; c < 50; ++c) {
    uint32_t place = 0;
    for (uint32_t r = 1; r < 6; ++r) place = t(r, c) < t(place, c) ? r : place;
    EXPECT_EQ(places[c], place);
  }
  // With a reduction no output may be an input, nor another output; nothing is written then.
  EXPECT_FAILS(run(s, xs), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run", "output \"e\" overlaps input \"a\"");
  EXPECT_FAILS(run(e, e), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run", "output \"e\" overlaps output \"s\"");
  EXPECT_EQ(downloaded<float>(context(), xs, 300), a);
  // Without elements the sums are 0, and there are no elements; the largest of none is refused before they are written.
  const OwnExpr empty(context(), "s = sum(a, axis=1); e = a", {{"a", TUFF_F32}}, {{"s", TUFF_F32}, {"e", TUFF_F32}});
  ASSERT_OK(empty.run(context(), {6, 0}, {dense(TUFF_NULL_HANDLE)}, {dense(s), dense(TUFF_NULL_HANDLE)}));
  EXPECT_EQ(downloaded<float>(context(), s, 6), std::vector<float>(6));
  const OwnExpr most(context(), "s = sum(a, axis=1) ; m = max(a, axis=1)", {{"a", TUFF_F32}},
                     {{"s", TUFF_F32}, {"m", TUFF_F32}});
  ASSERT_OK(tuff_copy_htod(context(), s, 0, sums.data(), 24));
  EXPECT_FAILS(most.run(context(), {6, 0}, {dense(TUFF_NULL_HANDLE)}, {dense(s), dense(e)}),
               TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run", "character 26: max of an empty axis");
  EXPECT_EQ(downloaded<float>(context(), s, 6), sums);
}

// --- What is refused

TEST_P(ExpressionReduce, FormulasThatAreWrong) {
  struct Row {
    const char* formula;
    int32_t dtype;
    tuff_status status;
    const char* message;
  };
  const Row rows[] = {
      {"sum(a) + 1", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 8: sum is an output's value"},
      {"-sum(a)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: sum is an output's value"},
      {"sum(sum(a, axis=0))", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: sum is a second reduction"},
      {"t = max(a, axis=0); a - t", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 23: max is an output's value"},
      {"t = sum(a); a", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 5: sum has no output"},
      {"sum(a, axis=)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 13: expected the number of an axis"},
      {"sum(a, axis=())", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 14: expected the number of an axis"},
      {"sum(a, axis=1.5)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 13: expected the number of an axis"},
      {"sum(a, axis=9)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 13: axis 9, and there are at most 8"},
      {"sum(a, axes=1)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 8: sum takes axis=, not axes="},
      {"sum(a, 1)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: sum takes 1 argument, got 2"},
      {"max(a, b, axis=1)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: max takes 1 argument, got 2"},
      {"sum(a, axis=1, 2)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT,
       "character 16: expected a named argument of sum, got \"2\""},
      {"sum(a, axis=0, axis=1)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 16: axis= a second time"},
      {"sum(a, correction=1)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 8: sum takes axis=, not correction="},
      {"var(a, axes=1)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT,
       "character 8: var takes axis= and correction=, not axes="},
      {"var(a, correction=b)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 19: expected a number, got \"b\""},
      {"var(a, correction=1, correction=1)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT,
       "character 22: correction= a second"},
      {"argmax(a) + 1", TUFF_U32, TUFF_ERROR_INVALID_ARGUMENT, "character 11: argmax is an output's value"},
      {"argmin(a)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: argmin of f32 gives u32 or i64"},
      {"std(i32(a))", TUFF_I32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: std of i32 gives f32 or f64, f16, bf16"},
      {"conj(sum(complex(a, b)))", TUFF_F32, TUFF_ERROR_UNSUPPORTED, "character 6: sum does not take c64"},
      {"sum", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: \"sum\" is a function"},
      {"sqrt(a, axis=1)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 9: unknown name \"axis\""},
      {"sum(a)", TUFF_I32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: sum of f32 gives f32"},
      {"sum(i32(a))", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: sum of i32 gives"},
      {"any(a)", TUFF_F32, TUFF_ERROR_INVALID_ARGUMENT, "character 1: any of bool gives bool"},
      {"max(i8(a))", TUFF_I16, TUFF_ERROR_INVALID_ARGUMENT, "character 1: max of i8 gives i8"},
      {"sum(complex(a, b))", TUFF_F32, TUFF_ERROR_UNSUPPORTED, "character 1: sum does not take c64"},
  };
  for (const Row& row : rows) {
    tuff_expr expr = 0;
    EXPECT_FAILS(create_expr(context(), row.formula, {{"a", TUFF_F32}, {"b", TUFF_F32}}, {{"y", row.dtype}}, &expr),
                 row.status, "tuff_expr_create", row.message);
  }
  tuff_expr expr = 0;
  EXPECT_FAILS(create_expr(context(), "t = sum(a); y = t + 1; z = t", {{"a", TUFF_F32}},
                           {{"y", TUFF_F32}, {"z", TUFF_F32}}, &expr),
               TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "character 19: sum is an output's value");
  EXPECT_FAILS(
      create_expr(context(), "y = sum(a); z = max(a)", {{"a", TUFF_F32}}, {{"y", TUFF_F32}, {"z", TUFF_I32}}, &expr),
      TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_create", "character 17: max of f32 gives f32");
  // With two arguments max is the function of elements; an input's name hides a reduction.
  const OwnExpr larger(context(), "max(a, b)", {{"a", TUFF_F32}, {"b", TUFF_F32}}, {{"y", TUFF_F32}});
  const OwnExpr hidden(context(), "sum * (sum + 1)", {{"sum", TUFF_F32}}, {{"y", TUFF_F32}});
}

TEST_P(ExpressionReduce, CallsThatAreWrong) {
  const std::vector<float> ones(24, 1.0f);
  const OwnBuffer x = uploaded(context(), ones), y(context(), 64);
  const auto refused = [&](const char* formula, const std::vector<uint64_t>& shape, const tuff_expr_operand& output,
                           const char* message) {
    const OwnExpr expr(context(), formula, {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
    EXPECT_FAILS(expr.run(context(), shape, {dense(x)}, {output}), TUFF_ERROR_INVALID_ARGUMENT, "tuff_expr_run",
                 message);
  };
  refused("sum(a, axis=2)", {4, 6}, dense(y), "character 13: axis 2, and desc->rank is 2");
  refused("sum(a, axis=(0, -3))", {4, 6}, dense(y), "character 17: axis -3, and desc->rank is 2");
  refused("sum(a, axis=0)", {}, dense(y), "character 13: axis 0, and desc->rank is 0");
  refused("sum(a, axis=(1, -1))", {4, 6}, dense(y), "character 17: axis -1 of rank 2 a second time");
  refused("sum(a, axis=0)", {4, 6}, strided(y, 0, {1, 1}), "has the stride 1 along axis 0, which is reduced: needs 0");
  refused("sum(a, axis=0)", {4, 6}, strided(y, 0, {0, 0}), "has the stride 0 along axis 1, and overlaps itself");
  refused("sum(a, axis=0)", {4, 6}, dense(y, 11), "holds 16 elements (f32), and the strides reach element 16");
  refused("sum(a, axis=1)", {4, 6}, dense(x), "output \"y\" overlaps input \"a\"");
  refused("sum(a, axis=1)", {24, 1}, dense(x), "output \"y\" overlaps input \"a\"");
  // Nothing was written.
  EXPECT_EQ(downloaded<float>(context(), x, 24), ones);
  EXPECT_EQ(downloaded<float>(context(), y, 16), std::vector<float>(16));
  // A result of rank 0.
  const OwnExpr expr(context(), "sum(a + 1)", {{"a", TUFF_F32}}, {{"y", TUFF_F32}});
  ASSERT_OK(expr.run(context(), {}, {dense(x)}, {dense(y)}));
  EXPECT_EQ(downloaded<float>(context(), y, 1)[0], 2.0f);
}

TUFF_ON_BACKENDS(ExpressionReduce);

}  // namespace
}  // namespace tuff_test::expression_reduce_test
