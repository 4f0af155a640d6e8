#include "kernels/common/check.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>

namespace tuff {
namespace {

struct HostMemory : Allocation {
  std::byte* host() const noexcept override { return nullptr; }
};

Buffer buffer_of(uint64_t bytes, uint64_t offset = 0) {
  Buffer buffer;
  buffer.allocation = std::make_shared<HostMemory>();
  buffer.bytes = bytes;
  buffer.offset = offset;
  return buffer;
}

void expect_error(tuff_status code, const std::string& word, const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown; expected a message with " << word;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

constexpr uint64_t kMax = ~uint64_t{0};

TEST(Check, ElementTypes) {
  const std::array<std::pair<int32_t, uint64_t>, 17> sizes = {{{TUFF_F32, 4},
                                                               {TUFF_F16, 2},
                                                               {TUFF_BF16, 2},
                                                               {TUFF_F64, 8},
                                                               {TUFF_I32, 4},
                                                               {TUFF_U32, 4},
                                                               {TUFF_I8, 1},
                                                               {TUFF_U8, 1},
                                                               {TUFF_I64, 8},
                                                               {TUFF_U64, 8},
                                                               {TUFF_I16, 2},
                                                               {TUFF_U16, 2},
                                                               {TUFF_BOOL, 1},
                                                               {TUFF_F8_E4M3, 1},
                                                               {TUFF_F8_E5M2, 1},
                                                               {TUFF_C64, 8},
                                                               {TUFF_C128, 16}}};
  for (const auto& [dtype, size] : sizes) {
    EXPECT_EQ(dtype_size(dtype), size);
    EXPECT_EQ(dtype_by_name(dtype_name(dtype)), dtype);
    EXPECT_TRUE(kAllTypes.has(dtype));
    EXPECT_EQ(kTypesOf1Byte.has(dtype), size == 1);
    EXPECT_EQ(kTypesOf2Bytes.has(dtype), size == 2);
    EXPECT_EQ(kComplexTypes.has(dtype), dtype_size(part_type(dtype)) * 2 == size);
  }
  for (int32_t unknown : {0, -1, 18, 31, 32, 1000}) {
    expect_error(TUFF_ERROR_INVALID_ARGUMENT, "dtype", [&] { dtype_size(unknown); });
    expect_error(TUFF_ERROR_INVALID_ARGUMENT, "dtype", [&] { check_f32_only(unknown); });
  }
  check_f32_only(TUFF_F32);
  expect_error(TUFF_ERROR_UNSUPPORTED, "dtype", [] { check_f32_only(TUFF_F16); });
}

TEST(Check, ArithmeticAtTheEdgeOf64Bits) {
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, (uint64_t{1} << 32) - 1, "x"), kMax - (uint64_t{1} << 32) + 1);
  EXPECT_EQ(checked_mul(0, kMax, "x"), 0u);
  EXPECT_EQ(checked_mul(1, kMax, "x"), kMax);
  EXPECT_EQ(checked_add(kMax - 5, 5, "x"), kMax);
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "rows", [] { checked_mul(uint64_t{1} << 32, uint64_t{1} << 32, "rows"); });
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "rows", [] { checked_add(kMax, 1, "rows"); });
  const std::array<uint64_t, 3> factors = {3, uint64_t{1} << 40, 5};
  EXPECT_EQ(checked_product(factors, "x"), 15 * (uint64_t{1} << 40));
  EXPECT_EQ(checked_product({}, "x"), 1u);
  const std::array<uint64_t, 3> large = {uint64_t{1} << 40, uint64_t{1} << 40, 1};
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "shape", [&] { checked_product(large, "shape"); });
}

TEST(Check, Operands) {
  const Buffer buffer = buffer_of(100), odd = buffer_of(100, 2), empty;
  check_operand(&buffer, "a", 25, TUFF_F32, "");
  check_operand(nullptr, "a", 0, TUFF_F32, "");
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "a holds 100 bytes, needs 104 (n=26",
               [&] { check_operand(&buffer, "a", 26, TUFF_F32, "n=26"); });
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "a", [&] { check_operand(&buffer, "a", uint64_t{1} << 62, TUFF_F32, ""); });
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "a", [&] { check_operand(&odd, "a", 3, TUFF_F32, ""); });
  EXPECT_THROW(check_operand(nullptr, "a", 1, TUFF_F32, ""), Error);
  const Buffer mapped = buffer_of(100);
  mapped.allocation->mapped = true;
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "mapped", [&] { check_operand(&mapped, "a", 3, TUFF_F32, ""); });
}

TEST(Check, Overlaps) {
  Buffer whole = buffer_of(100), left = whole, right = whole, apart = buffer_of(100);
  left.bytes = 40;
  right.offset = 40, right.bytes = 60;
  check_overlap(&left, "c", 40, &right, "a", 60, false);
  check_overlap(&whole, "c", 100, &apart, "a", 100, false);
  check_overlap(&whole, "c", 40, &right, "a", 60, false);  // only the bytes accessed count
  check_overlap(&whole, "c", 100, &whole, "a", 100, true);
  check_overlap(&whole, "c", 0, &whole, "a", 100, false);  // no bytes are accessed
  check_overlap(nullptr, "c", 0, &whole, "a", 100, false);
  const auto overlaps = [&](const Buffer& c, uint64_t c_bytes, const Buffer& a, uint64_t a_bytes, bool exact) {
    expect_error(TUFF_ERROR_INVALID_ARGUMENT, "c", [&] { check_overlap(&c, "c", c_bytes, &a, "a", a_bytes, exact); });
  };
  overlaps(whole, 100, whole, 100, false);
  overlaps(whole, 100, whole, 96, true);
  overlaps(whole, 44, right, 60, false);
  overlaps(whole, 44, right, 60, true);
  overlaps(right, 4, whole, 44, true);
}

TEST(Check, Axes) {
  const std::array<uint64_t, 8> shape = {2, 3, 5, 7, 1, 2, 1, 4};
  const AxisView view = check_axis(shape.data(), 8, 2);
  EXPECT_EQ(view.outer, 6u);
  EXPECT_EQ(view.axis, 5u);
  EXPECT_EQ(view.inner, 56u);
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "axis", [&] { check_axis(shape.data(), 8, 8); });
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "rank", [&] { check_axis(shape.data(), 0, 0); });
  expect_error(TUFF_ERROR_INVALID_ARGUMENT, "rank", [&] { check_axis(shape.data(), 9, 0); });
}

}  // namespace
}  // namespace tuff
