// Sorting, compared bit for bit with a stable sort of decoded elements.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "support/axis_shape.hpp"
#include "support/stored.hpp"

namespace tuff_test::sort_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

enum class Values { bits, few, ascending, equal };

struct SortCase {
  AxisShape shape;
  int32_t dtype = TUFF_F32;
  uint64_t k = 0;
  bool descending = false;
  Values fill = Values::bits;
  bool values = true, indices = true;
  int32_t index_type = TUFF_I32;

  std::string name() const {
    constexpr const char* kFills[] = {"bits", "few", "ascending", "equal"};
    return std::string(name_of(dtype)) + "_" + shape.name() + (k != 0 ? "_k" + std::to_string(k) : "") +
           (descending ? "_descending_" : "_") + kFills[static_cast<int>(fill)] + (values ? "" : "_without_values") +
           (indices ? std::string("_") + name_of(index_type) : "");
  }
  double work() const { return 20 * shape.work(); }
};

std::vector<SortCase> cases() {
  std::vector<SortCase> all;
  uint32_t turn = 0;
  // Options vary from case to case, out of step with one another.
  const auto add = [&](const AxisShape& shape, int32_t dtype, uint64_t k = 0) {
    SortCase row{shape, dtype, k};
    row.descending = turn % 2 != 0;
    row.fill = static_cast<Values>(turn / 2 % 3 == 2 ? 2 + turn / 6 % 2 : turn / 2 % 3);
    row.values = turn % 5 != 3, row.indices = turn % 5 != 1;
    row.index_type = turn % 7 < 4 ? TUFF_I32 : turn % 7 == 4 ? TUFF_U32 : turn % 7 == 5 ? TUFF_I64 : TUFF_U64;
    ++turn;
    all.push_back(row);
  };
  // Each way of sorting, for each type: short rows, columns, chunks, more than one row of them.
  for (const int32_t dtype : kRealTypes) {
    for (const uint64_t length : {1, 2, 33, 100, 256, 1000, 3000, 20'011}) {
      add({{length}, 0, 4 * (length % 3)}, dtype);
      add({{3, length, 5}, 1, 0}, dtype);
    }
    add({{3, 70'003}, 1, 4}, dtype);
    add({{9, 5'000}, 1, 0}, dtype, 7);
    add({{2, 3'000, 3}, 1, 0}, dtype, 2'000);
    add({{40'000}, 0, 0}, dtype, 1);
  }
  // Rows of bytes that a CPU reads by words, with a rest, and those that do not begin at words.
  for (const int32_t dtype : {TUFF_BOOL, TUFF_I8, TUFF_U8}) {
    for (const uint64_t shift : {0, 4, 16}) {
      add({{3, 70'004}, 1, shift}, dtype);
      add({{20'013}, 0, shift}, dtype);
      add({{2, 9'002}, 1, shift}, dtype, 8'000);
    }
  }
  for (const uint64_t length : {3,   4,   5,   8,    15,   16,   31,   64,   127,  128,  129,  255,  257,
                                511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 8193}) {
    add({{length}, 0, 4}, TUFF_F32);
    add({{7, length}, 1, 0}, TUFF_U32);
    add({{length, 3}, 0, 4}, TUFF_I64);
    add({{2, length}, 1, 0}, TUFF_F32, length / 2);
  }
  const std::vector<AxisShape> others = {{{2, 3, 1, 4, 1, 2, 3, 2}, 0, 0},
                                         {{2, 3, 1, 4, 1, 2, 3, 2}, 3, 0},
                                         {{2, 3, 1, 4, 1, 2, 3, 2}, 7, 0},
                                         {{1, 1, 1, 1, 1, 1, 1, 1}, 7, 0},
                                         {{70'000, 3}, 1, 0},
                                         {{3, 70'000}, 0, 4},
                                         {{4'000, 40}, 1, 4},
                                         {{40, 4'000}, 0, 0},
                                         {{500, 1'000}, 1, 0},
                                         {{100, 2, 2'500}, 2, 0},
                                         {{5, 6'000, 4}, 1, 0}};
  for (const AxisShape& shape : others) add(shape, TUFF_F32), add(shape, TUFF_F16);
  add({{1 << 20}, 0, 4}, TUFF_F32);
  add({{1 << 20}, 0, 0}, TUFF_U32);
  add({{1 << 20}, 0, 0}, TUFF_F32, 10);
  add({{1'000'003}, 0, 0}, TUFF_F32, 300'000);
  add({{300'007}, 0, 0}, TUFF_F64);
  for (const uint64_t k : {1, 2, 5, 33, 64, 100, 250}) {
    add({{3, 5'001}, 1, 4}, TUFF_F32, k);
    add({{5'001, 2}, 0, 0}, TUFF_I8, k);
    add({{2, 30'000}, 1, 0}, TUFF_F64, k);
    // What GPUs read once, keeping the best: with their fill in every order, in one segment and in several.
    add({{2'000, 1'300}, 1, 0}, TUFF_F32, k);
    for (const Values fill : {Values::bits, Values::few, Values::ascending, Values::equal}) {
      add({{200'001}, 0, 0}, TUFF_F32, k);
      all.back().fill = fill;
      all.back().descending = (k & 1) != 0;
    }
  }
  return all;
}

// The bits of a float's exponent and fraction.
struct Format {
  int exponent, fraction;
};
Format format_of(int32_t dtype) {
  switch (dtype) {
    case TUFF_F32: return {8, 23};
    case TUFF_F16: return {5, 10};
    case TUFF_BF16: return {8, 7};
    case TUFF_F64: return {11, 52};
    case TUFF_F8_E4M3: return {4, 3};
    case TUFF_F8_E5M2: return {5, 2};
    default: return {0, 0};
  }
}

// An element as a number that a long double holds exactly.
long double decoded(int32_t dtype, uint64_t bits) {
  switch (dtype) {
    case TUFF_I8: return static_cast<int8_t>(bits);
    case TUFF_I16: return static_cast<int16_t>(bits);
    case TUFF_I32: return static_cast<int32_t>(bits);
    case TUFF_I64: return static_cast<long double>(static_cast<int64_t>(bits));
    case TUFF_BOOL: return bits != 0 ? 1 : 0;
    default: break;
  }
  const auto [exponent, fraction] = format_of(dtype);
  if (exponent == 0) return static_cast<long double>(bits);
  const uint64_t digits = bits & ((uint64_t{1} << fraction) - 1), most = (uint64_t{1} << exponent) - 1;
  const uint64_t field = bits >> fraction & most;
  const bool negative = (bits >> (fraction + exponent) & 1) != 0;
  const int bias = (1 << (exponent - 1)) - 1;
  long double value = 0;
  if (dtype == TUFF_F8_E4M3 && field == most && digits == 7) {
    return std::numeric_limits<long double>::quiet_NaN();
  } else if (dtype != TUFF_F8_E4M3 && field == most) {
    if (digits != 0) return std::numeric_limits<long double>::quiet_NaN();
    value = std::numeric_limits<long double>::infinity();
  } else if (field == 0) {
    value = std::ldexp(static_cast<long double>(digits), 1 - bias - fraction);
  } else {
    value = std::ldexp(static_cast<long double>(digits + (uint64_t{1} << fraction)),
                       static_cast<int>(field) - bias - fraction);
  }
  return negative ? -value : value;
}

uint64_t element_at(const Bytes& bytes, uint64_t size, uint64_t i) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * size, size);
  return bits;
}

// A few numbers that repeat: zeros of both signs, NaNs, infinities, neighbours. For integers, whatever these bits are.
std::vector<uint64_t> few_values(int32_t dtype) {
  const auto [exponent, fraction] = format_of(dtype);
  if (exponent == 0) return {0, 1, 2, ~uint64_t{0}, uint64_t{1} << (8 * size_of(dtype) - 1), 0x7f, 0x80};
  const uint64_t sign = uint64_t{1} << (exponent + fraction), infinity = sign - (uint64_t{1} << fraction);
  return {0,    sign,       1, sign | 1, infinity, sign | infinity, sign - 1, sign | (sign - 1), infinity - 1,
          0x30, sign | 0x30};
}

Bytes inputs(const SortCase& row) {
  const uint64_t size = size_of(row.dtype), count = row.shape.count();
  Bytes bytes(count * size);
  Random random(count + static_cast<uint64_t>(row.dtype));
  const std::vector<uint64_t> few = few_values(row.dtype);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t place = i / row.shape.inner() % std::max<uint64_t>(row.shape.length(), 1);
    uint64_t bits = random.next();
    if (row.fill == Values::few) bits = few[bits % few.size()];
    if (row.fill == Values::ascending) bits = place;
    if (row.fill == Values::equal) bits = 0x2a;
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

struct Sorted {
  Bytes values, indices;
};

Sorted solve(const SortCase& row, const Bytes& from) {
  const AxisShape& s = row.shape;
  const uint64_t size = size_of(row.dtype), wide = size_of(row.index_type), k = row.k != 0 ? row.k : s.length();
  Sorted result{Bytes(s.outer() * k * s.inner() * size), Bytes(s.outer() * k * s.inner() * wide)};
  std::vector<long double> numbers(s.length());
  std::vector<uint64_t> order(s.length());
  for (uint64_t o = 0; o < s.outer(); ++o) {
    for (uint64_t i = 0; i < s.inner(); ++i) {
      for (uint64_t r = 0; r < s.length(); ++r) {
        numbers[r] = decoded(row.dtype, element_at(from, size, s.index(o, r, i)));
      }
      std::iota(order.begin(), order.end(), uint64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) {
        const long double x = numbers[a], y = numbers[b];
        if (std::isnan(x)) return false;
        return std::isnan(y) || (row.descending ? x > y : x < y);
      });
      for (uint64_t j = 0; j < k; ++j) {
        const uint64_t at = (o * k + j) * s.inner() + i;
        std::memcpy(result.values.data() + at * size, from.data() + s.index(o, order[j], i) * size, size);
        std::memcpy(result.indices.data() + at * wide, &order[j], wide);
      }
    }
  }
  return result;
}

tuff_sort_desc described(const AxisShape& shape, int32_t dtype) {
  tuff_sort_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = dtype;
  std::copy(shape.shape.begin(), shape.shape.end(), desc.shape);
  desc.rank = shape.rank(), desc.axis = shape.axis;
  return desc;
}

using Sort = Table<SortCase>;

TEST_P(Sort, Exact) {
  const SortCase& s = row();
  const Bytes from = inputs(s);
  const Sorted expected = solve(s, from);
  const uint64_t shift = s.shape.shift / 4;
  const TypedTensor input(context(), s.dtype, from, shift),
      values(context(), s.dtype, Bytes(expected.values.size(), 0x6b), 2 * shift),
      indices(context(), s.index_type, Bytes(expected.indices.size(), 0x6b), shift);
  tuff_sort_desc desc = described(s.shape, s.dtype);
  desc.input = input, desc.k = s.k, desc.descending = s.descending ? 1 : 0;
  desc.values = s.values ? static_cast<tuff_buffer>(values) : TUFF_NULL_HANDLE;
  desc.indices = s.indices ? static_cast<tuff_buffer>(indices) : TUFF_NULL_HANDLE;
  desc.index_type = s.index_type == TUFF_I32 ? 0 : s.index_type;
  ASSERT_OK(tuff_sort(context(), &desc));
  EXPECT_TRUE(values.read() == (s.values ? expected.values : Bytes(expected.values.size(), 0x6b)));
  EXPECT_TRUE(indices.read() == (s.indices ? expected.indices : Bytes(expected.indices.size(), 0x6b)));
  EXPECT_TRUE(input.read() == from);
}
TUFF_TABLE(Sort, SortCase, cases());

class SortOnce : public OnBackend {};

TEST_P(SortOnce, EveryElementOf16BitsInBothDirections) {
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16, TUFF_I16, TUFF_U16}) {
    for (const bool descending : {false, true}) {
      Bytes from(2 * 65'536);
      for (uint32_t i = 0; i < 65'536; ++i) {
        const uint32_t bits = i * 40'503u & 0xffffu;  // each once
        std::memcpy(from.data() + 2 * size_t{i}, &bits, 2);
      }
      SortCase row{{{65'536}, 0, 0}, dtype};
      row.descending = descending;
      const Sorted expected = solve(row, from);
      const TypedTensor input(context(), dtype, from), values(context(), dtype, Bytes(from.size(), 0x6b)),
          indices(context(), TUFF_I32, Bytes(expected.indices.size(), 0x6b));
      tuff_sort_desc desc = described(row.shape, dtype);
      desc.input = input, desc.values = values, desc.indices = indices, desc.descending = descending ? 1 : 0;
      ASSERT_OK(tuff_sort(context(), &desc));
      EXPECT_TRUE(values.read() == expected.values) << name_of(dtype) << descending;
      EXPECT_TRUE(indices.read() == expected.indices) << name_of(dtype) << descending;
    }
  }
}

TEST_P(SortOnce, NothingToSort) {
  for (const std::vector<uint64_t>& shape : {std::vector<uint64_t>{0}, {0, 5}, {5, 0}, {3, 0, 1ull << 40}}) {
    for (uint32_t axis = 0; axis < shape.size(); ++axis) {
      const Tensor y(context(), 4);
      tuff_sort_desc desc = described({shape, axis, 0}, TUFF_F32);
      desc.values = y;
      EXPECT_OK(tuff_sort(context(), &desc));  // without an input
      y.expect_poisoned();
    }
  }
}

TEST_P(SortOnce, Misuse) {
  const Tensor x(context(), 60), y(context(), 60), z(context(), 120);
  const char* sort = "tuff_sort";
  const auto wrong = [&](tuff_status status, const char* part, const auto& change) {
    tuff_sort_desc desc = described({{3, 20}, 1, 0}, TUFF_F32);
    desc.input = x, desc.values = y, desc.indices = z;
    change(desc);
    EXPECT_FAILS(tuff_sort(context(), &desc), status, sort, part);
  };
  wrong(kArgument, "dtype", [](tuff_sort_desc& d) { d.dtype = 0; });
  wrong(kArgument, "dtype", [](tuff_sort_desc& d) { d.dtype = 18; });
  wrong(TUFF_ERROR_UNSUPPORTED, "dtype is c64", [](tuff_sort_desc& d) { d.dtype = TUFF_C64; });
  wrong(kArgument, "index_type", [](tuff_sort_desc& d) { d.index_type = 99; });
  wrong(TUFF_ERROR_UNSUPPORTED, "index_type", [](tuff_sort_desc& d) { d.index_type = TUFF_F32; });
  wrong(TUFF_ERROR_UNSUPPORTED, "index_type", [](tuff_sort_desc& d) { d.index_type = TUFF_I16; });
  wrong(kArgument, "rank", [](tuff_sort_desc& d) { d.rank = 0; });
  wrong(kArgument, "rank", [](tuff_sort_desc& d) { d.rank = 9; });
  wrong(kArgument, "axis", [](tuff_sort_desc& d) { d.axis = 2; });
  wrong(kArgument, "k is 21, at most shape[1]=20", [](tuff_sort_desc& d) { d.k = 21; });
  wrong(kArgument, "TUFF_NULL_HANDLE", [](tuff_sort_desc& d) { d.values = d.indices = TUFF_NULL_HANDLE; });
  wrong(kArgument, "shape", [](tuff_sort_desc& d) { d.shape[0] = uint64_t{1} << 62; });
  wrong(kArgument, "input", [](tuff_sort_desc& d) { d.shape[0] = 4; });
  wrong(kArgument, "input", [](tuff_sort_desc& d) { d.dtype = TUFF_F64; });
  wrong(TUFF_ERROR_INVALID_HANDLE, "input", [](tuff_sort_desc& d) { d.input = TUFF_NULL_HANDLE; });
  // The last place that an index names, and one beyond.
  wrong(kArgument, "input", [](tuff_sort_desc& d) { d.shape[1] = uint64_t{1} << 31; });
  wrong(kArgument, "i32", [](tuff_sort_desc& d) { d.shape[1] = (uint64_t{1} << 31) + 1; });
  const auto unsigned_places = [](uint64_t extent, int32_t index_type) {
    return [=](tuff_sort_desc& d) { d.index_type = index_type, d.shape[1] = extent; };
  };
  wrong(kArgument, "input", unsigned_places(uint64_t{1} << 32, TUFF_U32));
  wrong(kArgument, "u32", unsigned_places((uint64_t{1} << 32) + 1, TUFF_U32));
  wrong(kArgument, "input", unsigned_places((uint64_t{1} << 32) + 1, TUFF_U64));
  wrong(kArgument, "values overlaps input", [&](tuff_sort_desc& d) { d.values = x; });
  wrong(kArgument, "indices overlaps input", [&](tuff_sort_desc& d) { d.indices = x; });
  wrong(kArgument, "indices overlaps values", [&](tuff_sort_desc& d) { d.values = z; });
  wrong(kArgument, "indices", [&](tuff_sort_desc& d) { d.indices = y, d.values = z, d.index_type = TUFF_I64; });
  x.expect_poisoned();
  y.expect_poisoned();
  z.expect_poisoned();
}

// The input of a second sort is what the first has written, in one stream and without a wait.
TEST_P(SortOnce, SortsFollowOneAnother) {
  const uint64_t n = 100'000;
  std::vector<float> x(n);
  Random random(3);
  for (float& value : x) value = random.spread();
  const Tensor a(context(), x), b(context(), n), c(context(), n);
  tuff_sort_desc desc = described({{n}, 0, 0}, TUFF_F32);
  for (int round = 0; round < 3; ++round) {
    desc.input = round == 0 ? a : c, desc.values = b, desc.descending = 1;
    ASSERT_OK(tuff_sort(context(), &desc));
    desc.input = b, desc.values = c, desc.descending = 0;
    ASSERT_OK(tuff_sort(context(), &desc));
  }
  std::sort(x.begin(), x.end());
  expect_same_bits(c.read(), x);
  std::reverse(x.begin(), x.end());
  expect_same_bits(b.read(), x);
}

TUFF_ON_BACKENDS(SortOnce);

}  // namespace
}  // namespace tuff_test::sort_test
