#include <cmath>

#include "support/axis_shape.hpp"
#include "support/bounds.hpp"
#include "support/integers.hpp"
#include "support/stored.hpp"

namespace tuff_test::reduce_test {
namespace {

enum class Values { whole, spread, near_one };

struct Operation {
  int32_t op;
  const char* name;
  Values values;
};

constexpr Operation kOperations[] = {
    {TUFF_REDUCE_SUM, "sum_exact", Values::whole}, {TUFF_REDUCE_SUM, "sum", Values::spread},
    {TUFF_REDUCE_MEAN, "mean", Values::spread},    {TUFF_REDUCE_MAX, "max", Values::spread},
    {TUFF_REDUCE_MIN, "min", Values::spread},      {TUFF_REDUCE_PROD, "prod", Values::near_one},
};

struct ReduceCase {
  Operation operation;
  AxisShape shape;
  int32_t dtype = TUFF_F32;

  std::string name() const {
    const std::string type = dtype == TUFF_F32 ? "" : std::string(name_of(dtype)).append("_");
    return std::string(operation.name).append("_").append(type).append(shape.name());
  }
  double work() const { return shape.work(); }
};

std::vector<ReduceCase> cases() {
  std::vector<ReduceCase> all;
  uint32_t place = 0;
  for (const AxisShape& shape : axis_shapes()) {
    ++place;
    for (const Operation& operation : kOperations) {
      // Every shape gets two operations. Every third shape that is not too large gets all of them (shapes cycle through
      // four layouts).
      const bool always = operation.values == Values::whole || operation.op == TUFF_REDUCE_MAX;
      if (!always && (place % 3 != 0 || shape.count() > 10'000'000)) continue;
      all.push_back({operation, shape});
    }
  }
  uint32_t turn = 0;  // sums for each shape, another operation for every third: each kernel is compiled for both types
  for (const AxisShape& shape : axis_shapes16()) {
    ++turn;
    for (const Operation& operation : kOperations) {
      const bool other = turn % 3 == 0 && &operation == kOperations + 1 + turn / 3 % 5;
      if (&operation != kOperations && !other) continue;
      // Products of many such numbers exceed the range of f16.
      if (operation.op == TUFF_REDUCE_PROD && shape.length() > 300) continue;
      all.push_back({operation, shape, all.size() % 2 == 0 ? TUFF_F16 : TUFF_BF16});
    }
  }
  return all;
}

std::vector<float> inputs(const ReduceCase& row) {
  const uint64_t count = row.shape.count();
  switch (row.operation.values) {
    case Values::whole: {  // sum |x| < 2^24, which makes every order of additions exact
      std::vector<float> values = integers(count, row.shape.length() > 2'000'000 ? 3 : 8, 1);
      if (row.shape.length() > 2'000'000) {
        for (uint64_t i = 0; i < count; ++i) values[i] = i % 8 == 3 ? values[i] : 0;
      }
      return values;
    }
    case Values::spread: return spreads(count, 2);
    case Values::near_one: break;
  }
  std::vector<float> values = uniforms(count, 0.99f, 1.01f, 3);  // keeps a product of a million of them in range
  for (uint64_t i = 0; i < count; i += 3) values[i] = -values[i];
  return values;
}

bool op_selects(int32_t op) { return op == TUFF_REDUCE_MAX || op == TUFF_REDUCE_MIN; }

Expected solve(const ReduceCase& row, const std::vector<float>& x) {
  const AxisShape& s = row.shape;
  const double n = static_cast<double>(s.length());
  const int32_t op = row.operation.op;
  Expected expected;
  expected.value.reserve(s.outer() * s.inner());
  expected.bound.reserve(s.outer() * s.inner());
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      double sum = 0, size = 0, product = 1, highest = -INFINITY, lowest = INFINITY;
      for (uint64_t r = 0; r < s.length(); ++r) {
        const double value = x[s.index(o, r, i)];
        sum += value, size += std::fabs(value), product *= value;
        highest = std::max(highest, value), lowest = std::min(lowest, value);
      }
      double value = 0, bound = 0;
      switch (op) {
        case TUFF_REDUCE_SUM:
          value = sum;
          bound = row.operation.values == Values::whole ? 0 : gamma(sum_depth(s.length())) * size;
          break;
        case TUFF_REDUCE_MEAN:  // plus a division, or a multiplication by 1/n
          value = sum / n;
          bound = gamma(sum_depth(s.length()) + 2) * size / n;
          break;
        case TUFF_REDUCE_PROD:  // n - 1 roundings in any order
          value = product;
          bound = gamma(n) * std::fabs(product);
          break;
        default: value = op == TUFF_REDUCE_MAX ? highest : lowest;
      }
      expected.value.push_back(value);
      expected.bound.push_back(bound);
    }
  }
  if (row.operation.values == Values::whole || op_selects(row.operation.op)) {  // f32 represents it: rounded once
    for (double& value : expected.value) value = rounded(row.dtype, value);
  } else {
    add_storage(expected, row.dtype);
  }
  return expected;
}

using Reduce = Table<ReduceCase>;

TEST_P(Reduce, Matches) {
  const AxisShape& s = row().shape;
  const int32_t dtype = row().dtype;
  const std::vector<float> x = rounded(dtype, inputs(row()));
  const StoredTensor input(context(), dtype, x, s.shift / 4),
      output(context(), dtype, s.outer() * s.inner(), s.shift / 4);
  ASSERT_OK(tuff_reduce(context(), dtype, row().operation.op, input, output, s.shape.data(), s.rank(), s.axis));
  expect_matches(output.read(), solve(row(), x));
  input.expect_unchanged(x);
}
TUFF_TABLE(Reduce, ReduceCase, cases());

class ReduceOnce : public OnBackend {};

TEST_P(ReduceOnce, DescriptorIsTheSame) {
  const ReduceCase row{kOperations[0], {{6, 50, 7}, 1, 0}};
  const std::vector<float> x = inputs(row);
  const Tensor input(context(), x), output(context(), 42);
  tuff_reduce_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.op = TUFF_REDUCE_SUM;
  desc.rank = 3;
  desc.input = input, desc.output = output;
  std::copy(row.shape.shape.begin(), row.shape.shape.end(), desc.shape);
  desc.axis = 1;
  ASSERT_OK(tuff_reduce_ex(context(), &desc));
  expect_matches(output.read(), solve(row, x));
}

// One element far above the rest, at each place in turn, reveals elements that are counted twice or not at all.
TEST_P(ReduceOnce, EveryElementCountsOnce) {
  for (uint64_t length : {70, 300, 1030}) {
    for (uint64_t inner : {1, 3}) {
      // Row o has its large element at index o.
      const AxisShape s{{length, length, inner}, 1, 0};
      std::vector<float> x(s.count(), 1.0f);
      for (uint64_t o = 0; o < length; ++o) x[s.index(o, o, o % inner)] = 1001.0f;
      Expected sum, max;
      for (uint64_t o = 0; o < length; ++o) {
        for (uint64_t i = 0; i < inner; ++i) {
          const bool here = i == o % inner;
          sum.value.push_back(static_cast<double>(length) + (here ? 1000 : 0));
          max.value.push_back(here ? 1001 : 1);
        }
      }
      SCOPED_TRACE(s.name());
      const Tensor input(context(), x), output(context(), length * inner), highest(context(), length * inner);
      ASSERT_OK(tuff_reduce(context(), TUFF_F32, TUFF_REDUCE_SUM, input, output, s.shape.data(), 3, 1));
      ASSERT_OK(tuff_reduce(context(), TUFF_F32, TUFF_REDUCE_MAX, input, highest, s.shape.data(), 3, 1));
      expect_matches(output.read(), sum);
      expect_matches(highest.read(), max);
    }
  }
}
TUFF_ON_BACKENDS(ReduceOnce);

// --- places ----------------------------------------------------------------------------------------------

struct PlaceCase {
  AxisShape shape;
  int32_t dtype = TUFF_F32;
  bool minimum = false;
  std::string name() const {
    return std::string(minimum ? "argmin_" : "argmax_") + name_of(dtype) + "_" + shape.name();
  }
  double work() const { return shape.work(); }
};

std::vector<PlaceCase> places() {
  const std::vector<AxisShape> shapes = {
      {{1}, 0},           {{5}, 0, 4},          {{64}, 0},          {{7, 65}, 1},     {{7, 65}, 0},
      {{3, 129, 33}, 1},  {{100, 3}, 1},        {{4, 5000}, 1, 4},  {{5000, 4}, 0},   {{1'000'003}, 0},
      {{70'000, 3}, 1},   {{3, 70'000}, 0},     {{2, 300, 257}, 1}, {{0, 5}, 1},      {{2, 3, 1, 4, 1, 2, 3, 2}, 3},
      {{300'000, 70}, 1}, {{41'943'040}, 0, 4}, {{9, 5000}, 1},     {{2, 262'144}, 1}};
  std::vector<PlaceCase> all;
  for (const AxisShape& shape : shapes) all.push_back({shape, TUFF_F32, all.size() % 2 == 1});
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    for (const AxisShape& shape : {shapes[3], shapes[5], shapes[7], shapes[9], shapes[17], shapes[18]}) {
      all.push_back({shape, dtype, all.size() % 2 == 1});
    }
  }
  return all;
}

using ReducePlace = Table<PlaceCase>;

TEST_P(ReducePlace, TheFirst) {
  const AxisShape& s = row().shape;
  std::vector<float> x = integers(s.count(), 40, 5);  // many duplicates
  for (size_t i = 0; i < x.size(); i += 7) x[i] = -0.0f;
  for (size_t i = 13; i < x.size(); i += 100'003) x[i] = i % 2 == 0 ? NAN : -NAN;
  const StoredTensor input(context(), row().dtype, x, s.shift / 4);
  const Tensor output(context(), s.outer() * s.inner());
  ASSERT_OK(tuff_reduce(context(), row().dtype, row().minimum ? TUFF_REDUCE_ARGMIN : TUFF_REDUCE_ARGMAX, input, output,
                        s.shape.data(), s.rank(), s.axis));
  std::vector<float> wanted;
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      uint64_t place = 0;
      for (uint64_t r = 1; r < s.length(); ++r) {
        const float best = x[s.index(o, place, i)], value = x[s.index(o, r, i)];
        if (std::isnan(best)) break;
        if (std::isnan(value) || (row().minimum ? value < best : value > best)) place = r;
      }
      wanted.push_back(from_bits(static_cast<uint32_t>(place)));
    }
  }
  const std::vector<float> got = output.read();
  ASSERT_EQ(got.size(), wanted.size());
  uint64_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (bits(got[i]) != bits(wanted[i]) && ++wrong <= 5) {
      ADD_FAILURE() << "[" << i << "] is " << bits(got[i]) << ", expected " << bits(wanted[i]);
    }
  }
  EXPECT_EQ(wrong, 0u);
}
TUFF_TABLE(ReducePlace, PlaceCase, places());

class ReducePlaceOnce : public OnBackend {};

TEST_P(ReducePlaceOnce, BadArguments) {
  const Tensor x(context(), 100), y(context(), 10);
  const uint64_t empty[2] = {4, 0}, wide[2] = {4, 20}, narrow[2] = {40, 2};
  for (const int32_t op : {TUFF_REDUCE_ARGMAX, TUFF_REDUCE_ARGMIN}) {
    const auto call = [&](int32_t dtype, const uint64_t* shape, tuff_buffer output) {
      return tuff_reduce(context(), dtype, op, x, output, shape, 2, 1);
    };
    EXPECT_FAILS(call(TUFF_F32, empty, y), TUFF_ERROR_INVALID_ARGUMENT, "tuff_reduce", "axis");
    EXPECT_FAILS(call(TUFF_F32, narrow, y), TUFF_ERROR_INVALID_ARGUMENT, "tuff_reduce", "output");
    EXPECT_FAILS(call(TUFF_F32, wide, x), TUFF_ERROR_INVALID_ARGUMENT, "tuff_reduce", "output");
    EXPECT_FAILS(call(TUFF_F8_E4M3, wide, y), TUFF_ERROR_UNSUPPORTED, "tuff_reduce", "dtype");
  }
  x.expect_poisoned();
  y.expect_poisoned();
}
TUFF_ON_BACKENDS(ReducePlaceOnce);

// --- integers --------------------------------------------------------------------------------------------

struct IntegerCase {
  int32_t op;
  const char* op_name;
  AxisShape shape;
  std::string name() const { return std::string(op_name).append("_i32_").append(shape.name()); }
  double work() const { return shape.work(); }
};

std::vector<IntegerCase> integer_cases() {
  std::vector<IntegerCase> all;
  std::vector<AxisShape> shapes = axis_shapes16();
  shapes.push_back({{41'943'040}, 0, 4});  // 160 MiB
  shapes.push_back({{1024, 40'961}, 0, 0});
  for (const AxisShape& shape : shapes) {
    all.push_back({TUFF_REDUCE_SUM, "sum", shape});
    // One other operation for each shape: kernels differ by the shape, and by the operation in a single line only.
    const std::pair<int32_t, const char*> others[] = {
        {TUFF_REDUCE_MAX, "max"}, {TUFF_REDUCE_MIN, "min"}, {TUFF_REDUCE_PROD, "prod"}};
    const auto& [op, name] = others[all.size() / 2 % 3];
    if (shape.length() > 0 || op == TUFF_REDUCE_PROD) all.push_back({op, name, shape});
  }
  return all;
}

using ReduceIntegers = Table<IntegerCase>;

// Arbitrary 32-bit numbers, whose sums and products wrap. For products they are odd, so that no zero hides the rest.
TEST_P(ReduceIntegers, AreExactModulo2To32) {
  const AxisShape& s = row().shape;
  const int32_t op = row().op;
  std::vector<int32_t> x(s.count());
  Random random(11);
  for (int32_t& value : x) value = static_cast<int32_t>(random.next() >> 32 | (op == TUFF_REDUCE_PROD ? 1 : 0));
  const TypedTensor input(context(), TUFF_I32, bytes_of(x), s.shift / 4),
      output(context(), TUFF_I32, poisoned_integers(s.outer() * s.inner()), s.shift / 4);
  ASSERT_OK(tuff_reduce(context(), TUFF_I32, op, input, output, s.shape.data(), s.rank(), s.axis));
  std::vector<int32_t> wanted;
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      uint32_t sum = 0, product = 1;
      int32_t highest = INT32_MIN, lowest = INT32_MAX;
      for (uint64_t r = 0; r < s.length(); ++r) {
        const int32_t value = x[s.index(o, r, i)];
        sum += static_cast<uint32_t>(value), product *= static_cast<uint32_t>(value);
        highest = std::max(highest, value), lowest = std::min(lowest, value);
      }
      wanted.push_back(op == TUFF_REDUCE_SUM    ? static_cast<int32_t>(sum)
                       : op == TUFF_REDUCE_PROD ? static_cast<int32_t>(product)
                       : op == TUFF_REDUCE_MAX  ? highest
                                                : lowest);
    }
  }
  EXPECT_EQ(integers_of(output.read()), wanted);
  EXPECT_EQ(integers_of(input.read()), x);
}
TUFF_TABLE(ReduceIntegers, IntegerCase, integer_cases());

class ReduceIntegersOnce : public OnBackend {
 protected:
  std::vector<int32_t> reduce(int32_t op, const std::vector<int32_t>& x) {
    const TypedTensor input(context(), TUFF_I32, bytes_of(x)), output(context(), TUFF_I32, poisoned_integers(1));
    const uint64_t shape[] = {x.size()};
    EXPECT_OK(tuff_reduce(context(), TUFF_I32, op, input, output, shape, 1, 0));
    return integers_of(output.read());
  }
};

TEST_P(ReduceIntegersOnce, EndsOfTheRange) {
  using Integers = std::vector<int32_t>;
  EXPECT_EQ(reduce(TUFF_REDUCE_SUM, {INT32_MAX, 1}), Integers{INT32_MIN});
  EXPECT_EQ(reduce(TUFF_REDUCE_SUM, {INT32_MIN, -1}), Integers{INT32_MAX});
  EXPECT_EQ(reduce(TUFF_REDUCE_SUM, Integers(1 << 10, 1 << 22)), Integers{0});
  // Values that f32 would round.
  EXPECT_EQ(reduce(TUFF_REDUCE_SUM, {1 << 24, 1, 1, 1}), Integers{(1 << 24) + 3});
  EXPECT_EQ(reduce(TUFF_REDUCE_MAX, {INT32_MAX - 1, INT32_MAX, INT32_MAX - 2}), Integers{INT32_MAX});
  EXPECT_EQ(reduce(TUFF_REDUCE_MAX, Integers(100, INT32_MIN)), Integers{INT32_MIN});
  EXPECT_EQ(reduce(TUFF_REDUCE_MIN, Integers(100, INT32_MAX)), Integers{INT32_MAX});
  EXPECT_EQ(reduce(TUFF_REDUCE_PROD, {INT32_MIN, -1}), Integers{INT32_MIN});
  EXPECT_EQ(reduce(TUFF_REDUCE_PROD, {65'536, 65'536}), Integers{0});
  // The bits of NaN are an ordinary integer.
  EXPECT_EQ(reduce(TUFF_REDUCE_MAX, {0x7fc00000, 0x7fd00000, 1}), Integers{0x7fd00000});
  EXPECT_EQ(reduce(TUFF_REDUCE_SUM, {}), Integers{0});
  EXPECT_EQ(reduce(TUFF_REDUCE_PROD, {}), Integers{1});
}

TEST_P(ReduceIntegersOnce, BadArguments) {
  const TypedTensor x(context(), TUFF_I32, poisoned_integers(100)), y(context(), TUFF_I32, poisoned_integers(10));
  const uint64_t good[2] = {10, 10}, empty[2] = {4, 0};
  const auto call = [&](int32_t dtype, int32_t op, const uint64_t* shape) {
    return tuff_reduce(context(), dtype, op, x, y, shape, 2, 1);
  };
  EXPECT_FAILS(call(TUFF_F8_E4M3, TUFF_REDUCE_SUM, good), TUFF_ERROR_UNSUPPORTED, "tuff_reduce", "dtype");
  EXPECT_NE(last_error().find("takes f32, f16, bf16, f64, i32,"), std::string::npos) << last_error();
  EXPECT_FAILS(call(TUFF_I32, TUFF_REDUCE_MAX, empty), TUFF_ERROR_INVALID_ARGUMENT, "tuff_reduce", "axis");
  EXPECT_FAILS(call(TUFF_I32, 17, good), TUFF_ERROR_INVALID_ARGUMENT, "tuff_reduce", "op");
  for (const TypedTensor* tensor : {&x, &y}) {
    const Bytes bytes = tensor->read();
    for (uint64_t i = 0; i < bytes.size() / 4; ++i) EXPECT_TRUE(is_poison(TUFF_I32, bytes, i)) << i;
  }
  int32_t yes = -1;
  EXPECT_OK(tuff_supports(context(), "reduce.i32", &yes));
  EXPECT_EQ(yes, 1);
}
TUFF_ON_BACKENDS(ReduceIntegersOnce);

}  // namespace
}  // namespace tuff_test::reduce_test
