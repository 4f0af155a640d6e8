// Scans of every element type: sums and products of integers modulo 2^n, maxima and minima of all types, and f64,
// compared with loops over integers of 64 bits and long double.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "support/axis_shape.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::scan_types_test {
namespace {

enum Operation : int { kSum, kProduct, kMaximum, kMinimum };
constexpr const char* kNames[] = {"cumsum", "cumprod", "cummax", "cummin"};

struct ScanTypeCase {
  int operation;
  int32_t dtype;
  AxisShape shape;
  bool exclusive, reverse;

  std::string name() const {
    return std::string(kNames[operation])
               .append("_")
               .append(exclusive ? "exclusive_" : "")
               .append(reverse ? "reverse_" : "") +
           name_of(dtype) + "_" + shape.name();
  }
  double work() const { return shape.work(); }
};

// Rows and columns, whole blocks and odd lengths, one segment and several.
std::vector<ScanTypeCase> scan_type_cases() {
  const std::vector<AxisShape> shapes = {{{3, 1030}, 1, 4},  {{2, 300, 24}, 1, 0}, {{40'000}, 0, 0},
                                         {{5, 71, 3}, 1, 4}, {{64, 128}, 1, 0},    {{5'000, 7}, 0, 8},
                                         {{3, 40'001}, 1, 4}};
  std::vector<ScanTypeCase> all;
  size_t turn = 0;
  for (const int32_t dtype : {TUFF_I8, TUFF_U8, TUFF_I16, TUFF_U16, TUFF_I32, TUFF_U32, TUFF_I64, TUFF_U64, TUFF_F64,
                              TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (int operation = kSum; operation <= kMinimum; ++operation) {
      const bool tested = dtype == TUFF_F32 || dtype == TUFF_F16 || dtype == TUFF_BF16;  // sums: tests/scan_test.cpp
      if (tested && operation <= kProduct) continue;
      for (int repeat = 0; repeat < 2; ++repeat, ++turn) {
        all.push_back({operation, dtype, shapes[turn % shapes.size()], turn % 3 == 0, turn % 2 == 0});
      }
    }
  }
  return all;
}

tuff_status scan(tuff_context context, const ScanTypeCase& row, tuff_buffer input, tuff_buffer output) {
  tuff_scan_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = row.dtype, desc.input = input, desc.output = output;
  std::copy(row.shape.shape.begin(), row.shape.shape.end(), desc.shape);
  desc.rank = row.shape.rank(), desc.axis = row.shape.axis;
  desc.exclusive = row.exclusive, desc.reverse = row.reverse;
  switch (row.operation) {
    case kSum: return tuff_cumsum(context, &desc);
    case kProduct: return tuff_cumprod(context, &desc);
    case kMaximum: return tuff_cummax(context, &desc);
    default: return tuff_cummin(context, &desc);
  }
}

// Calls body(T{}) with the C++ type of the elements; 16-bit floats are numbers of element().
template <typename Body>
void with_type(int32_t dtype, const Body& body) {
  switch (dtype) {
    case TUFF_I8: return body(int8_t{});
    case TUFF_U8: return body(uint8_t{});
    case TUFF_I16: return body(int16_t{});
    case TUFF_U16: return body(uint16_t{});
    case TUFF_I32: return body(int32_t{});
    case TUFF_U32: return body(uint32_t{});
    case TUFF_I64: return body(int64_t{});
    case TUFF_U64: return body(uint64_t{});
    default: return body(double{});
  }
}

// Any bits; odd ones for products, because zero absorbs. Floats from -4 to 4, or near 1 for products.
Bytes inputs(const ScanTypeCase& row) {
  const uint64_t count = row.shape.count(), size = size_of(row.dtype);
  Bytes bytes(count * size);
  Random random(23);
  with_type(row.dtype, [&]<typename T>(T) {
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t word = random.next();
      if constexpr (std::is_integral_v<T>) {
        const auto value = static_cast<T>(word >> 9 | (row.operation == kProduct ? 1 : 0));
        std::memcpy(bytes.data() + i * size, &value, size);
      } else {
        const double unit = static_cast<double>(word >> 11) * 0x1p-52 - 1;
        set_element(row.dtype, bytes, i, row.operation == kProduct ? 1 + unit / 1000 : 4 * unit);
      }
    }
  });
  return bytes;
}

// The first results that are wrong.
std::string compared(const ScanTypeCase& row, const Bytes& x, const Bytes& got) {
  const AxisShape& s = row.shape;
  std::string wrong;
  with_type(row.dtype, [&]<typename T>(T) {
    constexpr bool whole = std::is_integral_v<T>;
    using Wide = std::conditional_t<whole, uint64_t, long double>;
    const auto at = [&](const Bytes& bytes, uint64_t i) {
      if constexpr (whole) {
        T value;
        std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
        return value;
      } else {
        return element(row.dtype, bytes, i);
      }
    };
    using Limits = std::numeric_limits<T>;
    const T lowest = whole ? Limits::lowest() : -Limits::infinity(),
            highest = whole ? Limits::max() : Limits::infinity();
    for (uint64_t o = 0; o < s.outer(); ++o) {
      for (uint64_t i = 0; i < s.inner(); ++i) {
        Wide total = row.operation == kSum ? 0 : 1, size = total;
        T best = row.operation == kMaximum ? lowest : highest;
        for (uint64_t step = 0; step < s.length() && wrong.size() < 300; ++step) {
          const uint64_t place = s.index(o, row.reverse ? s.length() - 1 - step : step, i);
          const T next = at(x, place), before = best;
          const Wide total_before = total, size_before = size;
          const auto wide = static_cast<Wide>(next);
          total = row.operation == kSum ? total + wide : total * wide;
          if constexpr (!whole) size = row.operation == kSum ? size + std::fabs(wide) : std::fabs(total);
          best = row.operation == kMaximum ? std::max(best, next) : std::min(best, next);
          const Wide wanted = row.operation >= kMaximum ? static_cast<Wide>(row.exclusive ? before : best)
                                                        : (row.exclusive ? total_before : total);
          const T result = at(got, place);
          if constexpr (whole) {
            if (result == static_cast<T>(wanted)) continue;
          } else {
            // As many roundings as there are elements so far, at most, and the last one.
            const auto n = static_cast<long double>(step + 2);
            const long double bound =
                row.operation >= kMaximum ? 0 : n * 0x1p-53L * (row.exclusive ? size_before : size);
            if (result == wanted || std::fabs(result - wanted) <= bound) continue;
          }
          wrong += "[" + std::to_string(place) + "] is " + std::to_string(result) + ", not " +
                   std::to_string(static_cast<T>(wanted)) + "; ";
        }
      }
    }
  });
  return wrong;
}

Bytes poisoned(int32_t dtype, uint64_t count) { return Bytes(count * size_of(dtype), 0xa5); }

using ScanTypes = Table<ScanTypeCase>;

TEST_P(ScanTypes, MatchAndInPlaceIsTheSame) {
  const AxisShape& s = row().shape;
  const Bytes x = inputs(row());
  const TypedTensor input(context(), row().dtype, x, s.shift / 4),
      output(context(), row().dtype, poisoned(row().dtype, s.count()), s.shift / 4);
  ASSERT_OK(scan(context(), row(), input, output));
  const Bytes got = output.read();
  EXPECT_EQ(compared(row(), x, got), "");
  EXPECT_EQ(input.read(), x);
  ASSERT_OK(scan(context(), row(), input, input));
  EXPECT_EQ(input.read(), got);
}
TUFF_TABLE(ScanTypes, ScanTypeCase, scan_type_cases());

class ScanTypesOnce : public OnBackend {
 protected:
  template <typename T>
  std::vector<T> run(int operation, int32_t dtype, const std::vector<T>& x, bool exclusive = false) {
    Bytes bytes(x.size() * sizeof(T));
    std::memcpy(bytes.data(), x.data(), bytes.size());
    const TypedTensor input(context(), dtype, bytes), output(context(), dtype, poisoned(dtype, x.size()));
    EXPECT_OK(scan(context(), {operation, dtype, {{x.size()}, 0, 0}, exclusive, false}, input, output));
    std::vector<T> y(x.size());
    std::memcpy(y.data(), output.read().data(), bytes.size());
    return y;
  }
};

TEST_P(ScanTypesOnce, EndsOfTheRange) {
  using I8 = std::vector<int8_t>;
  using I64 = std::vector<int64_t>;
  using U64 = std::vector<uint64_t>;
  EXPECT_EQ(run<int8_t>(kSum, TUFF_I8, {127, 1, -1}), (I8{127, -128, 127}));
  EXPECT_EQ(run<int8_t>(kMaximum, TUFF_I8, {-128, -5, -7}), (I8{-128, -5, -5}));
  EXPECT_EQ(run<int8_t>(kMinimum, TUFF_I8, {5, 6, -128}, true), (I8{127, 5, 5}));
  EXPECT_EQ(run<int64_t>(kSum, TUFF_I64, {INT64_MAX, 1}), (I64{INT64_MAX, INT64_MIN}));
  EXPECT_EQ(run<int64_t>(kMaximum, TUFF_I64, {INT64_MIN, -1, -2}, true), (I64{INT64_MIN, INT64_MIN, -1}));
  EXPECT_EQ(run<uint64_t>(kMaximum, TUFF_U64, {1, UINT64_MAX, 2}), (U64{1, UINT64_MAX, UINT64_MAX}));
  EXPECT_EQ(run<uint64_t>(kMinimum, TUFF_U64, {UINT64_MAX, uint64_t{1} << 63}, true), (U64{UINT64_MAX, UINT64_MAX}));
  EXPECT_EQ(run<uint32_t>(kMaximum, TUFF_U32, {0x7fffffffu, 0x80000000u, 5u}),
            (std::vector<uint32_t>{0x7fffffffu, 0x80000000u, 0x80000000u}));
  EXPECT_EQ(run<uint64_t>(kProduct, TUFF_U64, {uint64_t{1} << 32, uint64_t{1} << 32, 3}),
            (U64{uint64_t{1} << 32, 0, 0}));
  EXPECT_EQ(run<double>(kSum, TUFF_F64, {1, 0x1p-52}), (std::vector<double>{1, 1 + 0x1p-52}));
  EXPECT_EQ(run<float>(kMaximum, TUFF_F32, {-5, -6}, true), (std::vector<float>{-INFINITY, -5}));
}

TEST_P(ScanTypesOnce, ANaNReachesWhatFollows) {
  for (const int operation : {kMaximum, kMinimum}) {
    for (const uint64_t place : {0, 3, 5'000, 69'999}) {
      std::vector<double> wide(70'000, 2);
      wide[place] = operation == kMaximum ? -NAN : NAN;
      std::vector<float> narrow(wide.begin(), wide.end());
      const std::vector<double> a = run(operation, TUFF_F64, wide);
      const std::vector<float> b = run(operation, TUFF_F32, narrow);
      uint64_t wrong = 0;
      for (uint64_t i = 0; i < wide.size(); ++i) {
        wrong += i >= place ? !std::isnan(a[i]) || !std::isnan(b[i]) : a[i] != 2 || b[i] != 2;
      }
      EXPECT_EQ(wrong, 0u) << operation << " " << place;
    }
  }
}

TEST_P(ScanTypesOnce, BadArguments) {
  const TypedTensor x(context(), TUFF_F32, poisoned(TUFF_F32, 12)), y(context(), TUFF_F32, poisoned(TUFF_F32, 12));
  for (const int operation : {kMaximum, kMinimum}) {
    const std::string name = std::string("tuff_") + kNames[operation];
    const auto status = [&](int32_t dtype, const AxisShape& shape, tuff_buffer output) {
      return scan(context(), {operation, dtype, shape, false, false}, x, output);
    };
    EXPECT_FAILS(status(TUFF_BOOL, {{12}, 0, 0}, y), TUFF_ERROR_UNSUPPORTED, name.c_str(), "dtype");
    EXPECT_FAILS(status(TUFF_F32, {{3, 4}, 2, 0}, y), TUFF_ERROR_INVALID_ARGUMENT, name.c_str(), "axis");
    EXPECT_FAILS(status(TUFF_F32, {{100'000}, 0, 0}, y), TUFF_ERROR_INVALID_ARGUMENT, name.c_str(), "input");
    int32_t yes = -1;
    EXPECT_OK(tuff_supports(context(), (std::string(kNames[operation]) + ".u8").c_str(), &yes));
    EXPECT_EQ(yes, 1);
  }
  EXPECT_EQ(y.read(), poisoned(TUFF_F32, 12));
}
TUFF_ON_BACKENDS(ScanTypesOnce);

}  // namespace
}  // namespace tuff_test::scan_types_test
