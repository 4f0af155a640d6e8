// One buffer of 100 GiB, on a GPU with 120 GiB free: filled, copied, computed with and reduced, and checked where byte
// offsets and element indices exceed 31, 32 and more bits, above all at its end. TUFF_TEST_WHOLE_BYTES sets another
// size, for devices with less memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/kernel.hpp"
#include "support/tensor.hpp"

namespace tuff_test::whole_memory_test {
namespace {

constexpr uint64_t kGiB = 1ull << 30;
constexpr uint64_t kCols = 1024;                // of the whole buffer as a matrix of f32
constexpr uint64_t kLevels = 1ull << 12;        // of the whole buffer as a matrix with few rows
constexpr uint64_t kNarrow = (1ull << 31) - 1;  // elements, or units of a copy, that kernels index with 32 bits

class WholeMemory : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* const variable = std::getenv("TUFF_TEST_WHOLE_BYTES");
    bytes_ = variable != nullptr ? std::strtoull(variable, nullptr, 10) : 100 * kGiB;
    bytes_ = bytes_ / (kCols * kLevels * 4) * (kCols * kLevels * 4);
    other_bytes_ = bytes_ / 8;
    if (std::find(backends().begin(), backends().end(), "vulkan") == backends().end()) {
      lacks_ = "no Vulkan device is under test";
      return;
    }
    const tuff_device_properties info = properties_of(shared_context("vulkan"));
    const uint64_t free = info.memory_free_bytes, needed = bytes_ + bytes_ / 5;
    if (free < needed && (variable == nullptr || free != 0)) {
      lacks_ = std::to_string(free / kGiB) + " GiB of " + info.name + " are free, the test needs " +
               std::to_string(needed / kGiB);
      return;
    }
    ASSERT_GE(info.max_allocation_bytes, bytes_);
    context_ = std::make_unique<OwnContext>("vulkan");
    whole_ = OwnBuffer(*context_, bytes_);
    other_ = OwnBuffer(*context_, other_bytes_);
  }
  static void TearDownTestSuite() {
    whole_.free(), other_.free();
    context_.reset();
  }
  void SetUp() override {
    if (!lacks_.empty()) GTEST_SKIP() << lacks_;
    ASSERT_NE(static_cast<tuff_buffer>(whole_), 0u);
    ASSERT_NE(static_cast<tuff_buffer>(other_), 0u);
  }

  static tuff_context context() { return *context_; }
  static uint64_t floats() { return bytes_ / 4; }
  static uint64_t rows() { return floats() / kCols; }
  static OwnBuffer view(tuff_buffer buffer, uint64_t offset, uint64_t bytes) {
    tuff_buffer part = 0;
    EXPECT_OK(tuff_view(buffer, offset, bytes, &part));
    return OwnBuffer(part);
  }
  template <typename T>
  static void put(tuff_buffer buffer, uint64_t index, const std::vector<T>& values) {
    EXPECT_OK(tuff_copy_htod(context(), buffer, index * sizeof(T), values.data(), values.size() * sizeof(T)));
  }
  template <typename T>
  static std::vector<T> get(tuff_buffer buffer, uint64_t index, uint64_t count) {
    std::vector<T> values(count);
    EXPECT_OK(tuff_copy_dtoh(context(), values.data(), buffer, index * sizeof(T), count * sizeof(T)));
    return values;
  }
  template <typename T>
  static void fill(T value) {
    ASSERT_OK(tuff_fill(context(), whole_, 0, bytes_, &value, sizeof value));
  }
  // Indices below `count` next to which something overflows, and the last ones.
  static std::vector<uint64_t> places(uint64_t count) {
    std::vector<uint64_t> all = {0, 1, count / 2, count - 2, count - 1};
    for (uint32_t power = 28; power < 40; ++power) {
      for (const uint64_t place : {(1ull << power) - 1, 1ull << power, (1ull << power) + 1}) {
        if (place < count) all.push_back(place);
      }
    }
    return all;
  }
  template <typename T>
  static void expect_at_places(T value, const char* what) {
    for (const uint64_t place : places(bytes_ / sizeof(T))) {
      EXPECT_EQ(get<T>(whole_, place, 1)[0], value) << what << ", element " << place;
    }
  }
  // Every word of the buffer, compared as f32: equal, or as near as a relative error.
  static void expect_all(uint32_t word, const char* what, float error = 0) {
    const uint64_t n = floats();
    for (const int32_t op : {TUFF_REDUCE_MIN, TUFF_REDUCE_MAX}) {
      ASSERT_OK(tuff_reduce(context(), TUFF_F32, op, whole_, other_, &n, 1, 0));
      const float expected = from_bits(word);
      EXPECT_NEAR(get<float>(other_, 0, 1)[0], expected, std::abs(expected) * error) << what << ", reduction " << op;
    }
  }

  static bool supports_16_bits() {
    int32_t yes = 0;
    EXPECT_OK(tuff_supports(context(), "unary.f16", &yes));
    return yes != 0;
  }

  static inline std::string lacks_;
  static inline uint64_t bytes_ = 0, other_bytes_ = 0;
  static inline std::unique_ptr<OwnContext> context_;
  static inline OwnBuffer whole_, other_;
};

TEST_F(WholeMemory, FilledAndReadBack) {
  expect_all(0, "a new buffer");
  fill<uint32_t>(0x3f800000);
  expect_at_places<uint32_t>(0x3f800000, "one word");
  expect_all(0x3f800000, "one word");
  // A pattern of four words is written by a kernel.
  const uint32_t words[4] = {0x40000000, 0x40400000, 0x40800000, 0x40a00000};
  ASSERT_OK(tuff_fill(context(), whole_, 0, bytes_, words, sizeof words));
  for (const uint64_t place : places(bytes_ / 4)) {
    EXPECT_EQ(get<uint32_t>(whole_, place, 1)[0], words[place % 4]) << "word " << place;
  }
  // Bytes at the end, by the host and by a fill that starts and ends within words.
  std::vector<uint8_t> values((64u << 20) + 5);
  Random random(1);
  for (uint8_t& value : values) value = static_cast<uint8_t>(random.next());
  put(whole_, bytes_ - values.size(), values);
  EXPECT_TRUE(get<uint8_t>(whole_, bytes_ - values.size(), values.size()) == values);
  ASSERT_OK(tuff_fill(context(), whole_, bytes_ - 21, 20, "\x07", 1));
  std::fill_n(values.end() - 21, 20, uint8_t{7});
  EXPECT_TRUE(get<uint8_t>(whole_, bytes_ - values.size(), values.size()) == values);
  const uint64_t before = (bytes_ - values.size()) / 16 - 1;  // the last 16 bytes that nothing of this wrote
  EXPECT_EQ(get<uint32_t>(whole_, before * 4, 4), std::vector<uint32_t>(words, words + 4));
}

TEST_F(WholeMemory, CopiedWithinAndFromItsEnd) {
  const uint64_t half = bytes_ / 2;
  const float a = 5, b = 6;
  ASSERT_OK(tuff_fill(context(), whole_, 0, half, &a, 4));
  ASSERT_OK(tuff_fill(context(), whole_, half, half, &b, 4));
  EXPECT_EQ(get<float>(whole_, half / 4 - 1, 2), (std::vector<float>{5, 6}));
  ASSERT_OK(tuff_copy_dtod(context(), whole_, half, whole_, 0, half));
  expect_all(bits(5), "the first half copied to the second");
  // A view at the end, at no multiple of anything, to the beginning and to another buffer.
  const std::vector<float> values = integers(10'007, 1000, 3);
  const uint64_t place = floats() - values.size();
  put(whole_, place, values);
  const OwnBuffer end = view(whole_, place * 4, values.size() * 4);
  ASSERT_OK(tuff_copy_dtod(context(), whole_, 0, end, 0, values.size() * 4));
  ASSERT_OK(tuff_copy_dtod(context(), other_, 3, end, 1, values.size() * 4 - 1));
  EXPECT_EQ(get<float>(whole_, 0, values.size()), values);
  const std::vector<uint8_t> moved = get<uint8_t>(other_, 3, values.size() * 4 - 1);
  EXPECT_EQ(std::memcmp(moved.data(), reinterpret_cast<const uint8_t*>(values.data()) + 1, moved.size()), 0);
  EXPECT_EQ(get<float>(whole_, place - 1, 1)[0], 5);
}

TEST_F(WholeMemory, ElementwiseOverAllOfIt) {
  fill<float>(1);
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, whole_, whole_, floats()));
  expect_all(bits(-1), "neg f32");
  ASSERT_OK(tuff_binary(context(), TUFF_F32, TUFF_BINARY_ADD, whole_, whole_, whole_, floats()));
  expect_at_places<float>(-2, "add f32");
  expect_all(bits(-2), "add f32");
  struct Half {
    int32_t dtype;
    uint16_t one, minus_two;
  };
  for (const Half& half : {Half{TUFF_F16, 0x3c00, 0xc000}, Half{TUFF_BF16, 0x3f80, 0xc000}}) {
    if (!supports_16_bits()) break;
    fill(half.one);
    ASSERT_OK(tuff_unary(context(), half.dtype, TUFF_UNARY_NEG, whole_, whole_, bytes_ / 2));
    ASSERT_OK(tuff_binary(context(), half.dtype, TUFF_BINARY_ADD, whole_, whole_, whole_, bytes_ / 2));
    expect_at_places(half.minus_two, "16 bits");
    expect_all(half.minus_two * 0x10001u, "16 bits");
  }
}

TEST_F(WholeMemory, CastOfEveryByte) {
  int32_t bytes_stored = 0;
  ASSERT_OK(tuff_supports(context(), "cast.u8", &bytes_stored));
  fill<uint8_t>(200);
  const tuff_status status = tuff_cast(context(), TUFF_U8, TUFF_I8, whole_, whole_, bytes_);
  if (bytes_stored == 0) {
    EXPECT_EQ(status, TUFF_ERROR_UNSUPPORTED);
    return;
  }
  ASSERT_OK(status);
  expect_at_places<uint8_t>(127, "200 saturated to i8");
  expect_all(0x7f7f7f7f, "200 saturated to i8");
}

TEST_F(WholeMemory, SumOfAllElements) {
  fill<float>(1);
  put<float>(whole_, floats() - 1, {1 + 1048576.0f});
  const uint64_t n = floats();
  // Partial sums are whole multiples of few powers of two, so f32 holds each of them.
  ASSERT_OK(tuff_reduce(context(), TUFF_F32, TUFF_REDUCE_SUM, whole_, other_, &n, 1, 0));
  EXPECT_EQ(static_cast<double>(get<float>(other_, 0, 1)[0]), static_cast<double>(n) + 1048576.0);
  // Rows of 1024.
  const uint64_t matrix[] = {rows(), kCols};
  ASSERT_OK(tuff_reduce(context(), TUFF_F32, TUFF_REDUCE_SUM, whole_, other_, matrix, 2, 1));
  for (const uint64_t row : places(rows())) {
    EXPECT_EQ(get<float>(other_, row, 1)[0], row == rows() - 1 ? 1024.0f + 1048576.0f : 1024.0f) << "row " << row;
  }
  // Columns, in one piece that is indexed with 64 bits.
  int32_t integers_too = 0;
  ASSERT_OK(tuff_supports(context(), "reduce.i32", &integers_too));
  EXPECT_EQ(integers_too, 1);
  fill<int32_t>(1);
  put<int32_t>(whole_, floats() - 2, {5});
  ASSERT_OK(tuff_reduce(context(), TUFF_I32, TUFF_REDUCE_SUM, whole_, other_, matrix, 2, 0));
  std::vector<int32_t> sums(kCols, static_cast<int32_t>(rows()));
  sums[kCols - 2] += 4;
  EXPECT_EQ(get<int32_t>(other_, 0, kCols), sums);
  const uint64_t levels[] = {2, kLevels / 2, floats() / kLevels};
  ASSERT_OK(tuff_reduce(context(), TUFF_I32, TUFF_REDUCE_SUM, whole_, other_, levels, 3, 1));
  EXPECT_EQ(get<int32_t>(other_, 0, 1)[0], static_cast<int32_t>(kLevels / 2));
  EXPECT_EQ(get<int32_t>(other_, 2 * levels[2] - 3, 3),
            (std::vector<int32_t>{kLevels / 2, kLevels / 2 + 4, kLevels / 2}));
}

TEST_F(WholeMemory, PlaceOfTheLargest) {
  const auto found = [&](int32_t dtype, auto low, auto high) {
    using T = decltype(low);
    fill(low);
    const uint64_t n = bytes_ / sizeof(T), row = n / kCols - 4, column = 5, at = row * kCols + column;
    put<T>(whole_, at, {high});
    const uint64_t matrix[] = {n / kCols, kCols};
    ASSERT_OK(tuff_reduce(context(), dtype, TUFF_REDUCE_ARGMAX, whole_, other_, matrix, 2, 0));
    std::vector<uint32_t> expected(kCols, 0);
    expected[column] = static_cast<uint32_t>(row);
    EXPECT_EQ(get<uint32_t>(other_, 0, kCols), expected) << dtype;
    ASSERT_OK(tuff_reduce(context(), dtype, TUFF_REDUCE_MAX, whole_, other_, matrix, 2, 0));
    std::vector<T> largest(kCols, low);
    largest[column] = high;
    EXPECT_EQ(get<T>(other_, 0, kCols), largest) << dtype;
    const uint64_t levels[] = {kLevels, n / kLevels};
    ASSERT_OK(tuff_reduce(context(), dtype, TUFF_REDUCE_ARGMAX, whole_, other_, levels, 2, 1));
    std::vector<uint32_t> places_of(kLevels, 0);
    places_of[at / levels[1]] = static_cast<uint32_t>(at % levels[1]);
    EXPECT_EQ(get<uint32_t>(other_, 0, kLevels), places_of) << dtype;
  };
  found(TUFF_F32, 1.0f, 2.0f);
  if (supports_16_bits()) found(TUFF_F16, uint16_t{0x3c00}, uint16_t{0x4000});
}

TEST_F(WholeMemory, SoftmaxOfAllOfIt) {
  const uint64_t matrix[] = {rows(), kCols}, levels[] = {kLevels, floats() / kLevels};
  fill<float>(3);
  constexpr float kError = 0x1p-20f;  // 16 units in the last place: 4 of exp, 3 of the division, and those of the sum
  ASSERT_OK(tuff_softmax(context(), TUFF_F32, whole_, whole_, matrix, 2, 1));
  expect_all(bits(1.0f / kCols), "softmax of rows", kError);
  ASSERT_OK(tuff_softmax(context(), TUFF_F32, whole_, whole_, levels, 2, 0));
  expect_all(bits(1.0f / kLevels), "softmax of columns", kError);
}

// A, B and C far apart or at the end: the operands of a small product whose rows are spread over the whole buffer.
TEST_F(WholeMemory, ProductsOfFarOperands) {
  constexpr uint64_t kM = 64, kN = 96, kK = 128;
  const std::vector<float> a = integers(kM * kK, 3, 5), b = integers(kK * kN, 3, 6);
  std::vector<float> product(kM * kN, 0.0f);
  for (uint64_t i = 0; i < kM; ++i) {
    for (uint64_t l = 0; l < kK; ++l) {
      for (uint64_t j = 0; j < kN; ++j) product[i * kN + j] += a[i * kK + l] * b[l * kN + j];
    }
  }
  // |a b| <= 9, so that every sum is below 2048, which f16 holds.
  const auto multiplied = [&](int32_t dtype, auto stored) {
    using T = decltype(stored(0.0f));
    const auto converted = [&](const std::vector<float>& values) {
      std::vector<T> result;
      for (const float value : values) result.push_back(stored(value));
      return result;
    };
    const std::vector<T> x = converted(a), y = converted(b), expected = converted(product);
    const auto spread = [](tuff_buffer buffer, uint64_t first, uint64_t ld, uint64_t cols, const std::vector<T>& m) {
      for (uint64_t row = 0; row * cols < m.size(); ++row) {
        put(buffer, first + row * ld, std::vector<T>(m.begin() + row * cols, m.begin() + (row + 1) * cols));
      }
    };
    const auto expect_product = [&](tuff_buffer buffer, uint64_t first, uint64_t ld, const char* what) {
      for (uint64_t row = 0; row < kM; ++row) {
        const std::vector<T> wanted(expected.begin() + row * kN, expected.begin() + (row + 1) * kN);
        ASSERT_EQ(get<T>(buffer, first + row * ld, kN), wanted) << what << ", type " << dtype << ", row " << row;
      }
    };
    // All three dense, one after another at the end.
    const uint64_t all = bytes_ / sizeof(T), at_a = all - kM * kK - kK * kN - kM * kN, at_b = at_a + kM * kK,
                   at_c = at_b + kK * kN;
    put(whole_, at_a, x), put(whole_, at_b, y);
    const auto part = [&](uint64_t first, uint64_t count) {
      return view(whole_, first * sizeof(T), count * sizeof(T));
    };
    {
      const OwnBuffer av = part(at_a, kM * kK), bv = part(at_b, kK * kN), cv = part(at_c, kM * kN);
      ASSERT_OK(tuff_gemm(context(), dtype, TUFF_NO_TRANS, TUFF_NO_TRANS, kM, kN, kK, 1, av, kK, bv, kN, 0, cv, kN));
      expect_product(whole_, at_c, kN, "at the end");
    }
    // Rows of each operand over the whole buffer, and over what is indexed with 32 bits.
    for (const uint64_t n : {all, std::min(all, kNarrow)}) {
      // Rounding moves the last rows by up to 1024 elements.
      constexpr uint64_t kFirstB = 4096, kFirstC = 8192, kEnd = 16384;
      const uint64_t ld_a = (n - kEnd) / (kM - 1) / 8 * 8, ld_b = (n - kEnd) / (kK - 1) / 8 * 8;
      spread(whole_, 0, ld_a, kK, x), spread(whole_, kFirstB, ld_b, kN, y);
      const OwnBuffer cv = part(kFirstC, n - kFirstC), bv = part(kFirstB, n - kFirstB);
      put(other_, 0, x), put(other_, kM * kK, y);
      const OwnBuffer near_b = view(other_, kM * kK * sizeof(T), kK * kN * sizeof(T));
      const OwnBuffer near_c = view(other_, 1 << 20, kM * kN * sizeof(T));
      const auto multiply = [&](tuff_buffer of_a, uint64_t lda, tuff_buffer of_b, uint64_t ldb, tuff_buffer of_c,
                                uint64_t ldc) {
        ASSERT_OK(tuff_gemm(context(), dtype, TUFF_NO_TRANS, TUFF_NO_TRANS, kM, kN, kK, 1, of_a, lda, of_b, ldb, 0,
                            of_c, ldc));
      };
      multiply(whole_, ld_a, near_b, kN, near_c, kN);
      expect_product(near_c, 0, kN, "rows of A");
      multiply(other_, kK, bv, ld_b, near_c, kN);
      expect_product(near_c, 0, kN, "rows of B");
      multiply(other_, kK, near_b, kN, cv, ld_a);
      expect_product(cv, 0, ld_a, "rows of C");
      // The same as a batch of single rows.
      ASSERT_OK(tuff_batched_gemm(context(), dtype, TUFF_NO_TRANS, TUFF_NO_TRANS, 1, kN, kK, 1, whole_, kK, ld_a,
                                  near_b, kN, 0, 0, near_c, kN, kN, kM));
      expect_product(near_c, 0, kN, "a batch of rows of A");
    }
  };
  fill<float>(0);
  multiplied(TUFF_F32, [](float value) { return value; });
  if (!supports_16_bits()) return;
  fill<float>(0);
  // Whole numbers below 2048 as f16.
  multiplied(TUFF_F16, [](float value) -> uint16_t {
    const uint32_t word = bits(value);
    if (value == 0) return 0;
    return static_cast<uint16_t>((word >> 16 & 0x8000) | (((word >> 23 & 0xff) - 112) << 10) | (word >> 13 & 0x3ff));
  });
}

TEST_F(WholeMemory, MovedFromItsEnd) {
  fill<float>(0);
  const auto row_values = [](uint64_t seed) { return integers(kCols, 1000, seed); };
  std::vector<uint64_t> marked;
  for (const uint64_t row : places(rows())) {
    if (row < rows() - 1) marked.push_back(row);
  }
  for (const uint64_t row : marked) put(whole_, row * kCols, row_values(row));
  const uint64_t matrix[] = {rows(), kCols};
  // gather: an embedding table of the whole buffer, and one of what is indexed with 32 bits in units of 16 bytes
  const OwnBuffer result = view(other_, 1 << 20, marked.size() * kCols * 4);
  for (const uint64_t entries : {rows(), std::min(rows(), kNarrow * 16 / (kCols * 4))}) {
    std::vector<uint32_t> indices;
    for (const uint64_t row : marked) {
      if (row < entries) indices.push_back(static_cast<uint32_t>(row));
    }
    put(other_, 0, indices);
    const uint64_t table[] = {entries, kCols};
    ASSERT_OK(tuff_gather(context(), TUFF_F32, TUFF_U32, whole_, other_, result, table, 2, 0, indices.size()));
    for (uint64_t i = 0; i < indices.size(); ++i) {
      EXPECT_EQ(get<float>(result, i * kCols, kCols), row_values(indices[i])) << "gather, row " << indices[i];
    }
  }
  // slice: backwards from the end in two steps of half the buffer
  const uint64_t start[] = {rows() - 2, kCols - 1}, cut[] = {2, kCols};
  const int64_t step[] = {-static_cast<int64_t>(rows() / 2 - 1), -1};
  put(whole_, (rows() - 2 - (rows() / 2 - 1)) * kCols, row_values(77));
  ASSERT_OK(tuff_slice(context(), TUFF_F32, whole_, result, matrix, 2, start, step, cut));
  const auto backwards = [](std::vector<float> values) {
    std::reverse(values.begin(), values.end());
    return values;
  };
  EXPECT_EQ(get<float>(result, 0, kCols), backwards(get<float>(whole_, start[0] * kCols, kCols)));
  EXPECT_EQ(get<float>(result, kCols, kCols), backwards(row_values(77)));
  // slice: one column of every row, at the stride of the whole
  const uint64_t column_start[] = {0, 3}, column[] = {rows(), 1};
  const int64_t forwards[] = {1, 1};
  const OwnBuffer columns = view(other_, 4 << 20, rows() * 4);
  ASSERT_OK(tuff_slice(context(), TUFF_F32, whole_, columns, matrix, 2, column_start, forwards, column));
  for (const uint64_t row : marked)
    EXPECT_EQ(get<float>(columns, row, 1)[0], get<float>(whole_, row * kCols + 3, 1)[0]);
}

// Moves the last eighth of the buffer, or as much as is indexed with 32 bits, into the other one.
TEST_F(WholeMemory, TransposedFromItsEnd) {
  const uint64_t most = other_bytes_ / 4 / kCols;
  for (const uint64_t high : {most, std::min(most, kNarrow / kCols)}) {
    const uint64_t from = rows() - high;
    fill<float>(0);
    for (const uint64_t row : places(high)) put(whole_, (from + row) * kCols, integers(kCols, 1000, row + 1));
    const OwnBuffer end = view(whole_, from * kCols * 4, high * kCols * 4);
    const uint64_t shape[] = {high, kCols};
    const uint32_t order[] = {1, 0};
    ASSERT_OK(tuff_permute(context(), TUFF_F32, end, other_, shape, 2, order));
    for (const uint64_t row : places(high)) {
      const std::vector<float> values = get<float>(end, row * kCols, kCols);
      for (const uint64_t column : {uint64_t{0}, uint64_t{1}, kCols / 2, kCols - 1}) {
        EXPECT_EQ(get<float>(other_, column * high + row, 1)[0], values[column]) << row << ", " << column;
      }
    }
  }
}

TEST_F(WholeMemory, ConcatenatedFromItsEnd) {
  const uint64_t each = other_bytes_ / 4 / 2 / kCols;  // rows of each input
  fill<float>(0);
  const OwnBuffer first = view(whole_, (rows() - 2 * each) * kCols * 4, each * kCols * 4);
  const OwnBuffer second = view(whole_, (rows() - each) * kCols * 4, each * kCols * 4);
  for (const uint64_t row : places(each)) {
    put(first, row * kCols, integers(kCols, 1000, row + 1)), put(second, row * kCols, integers(kCols, 1000, row + 2));
  }
  const tuff_buffer inputs[] = {first, second};
  // One after the other, and row by row.
  const uint64_t below[] = {2 * each, kCols}, beside[] = {each, 2 * kCols};
  const uint64_t of_rows[] = {each, each}, of_columns[] = {kCols, kCols};
  ASSERT_OK(tuff_concat(context(), TUFF_F32, inputs, of_rows, 2, other_, below, 2, 0));
  for (const uint64_t row : places(each)) {
    EXPECT_EQ(get<float>(other_, row * kCols, kCols), get<float>(first, row * kCols, kCols)) << row;
    EXPECT_EQ(get<float>(other_, (each + row) * kCols, kCols), get<float>(second, row * kCols, kCols)) << row;
  }
  ASSERT_OK(tuff_concat(context(), TUFF_F32, inputs, of_columns, 2, other_, beside, 2, 1));
  for (const uint64_t row : places(each)) {
    EXPECT_EQ(get<float>(other_, 2 * row * kCols, kCols), get<float>(first, row * kCols, kCols)) << row;
    EXPECT_EQ(get<float>(other_, (2 * row + 1) * kCols, kCols), get<float>(second, row * kCols, kCols)) << row;
  }
}

// An image of the whole buffer, and one that is indexed with 32 bits, summed over its channels.
TEST_F(WholeMemory, ConvolutionOfAllOfIt) {
  constexpr uint64_t kChannels = 64, kFilters = 2, kWidth = 4096;
  const uint64_t ones[] = {1, 1}, zeros[] = {0, 0};
  for (const uint64_t elements : {floats(), std::min(floats(), kNarrow)}) {
    fill<float>(1);
    const uint64_t height = elements / kChannels / kWidth, plane = height * kWidth;
    const uint64_t in[] = {1, kChannels, height, kWidth}, filter[] = {kFilters, kChannels, 1, 1};
    const uint64_t out[] = {1, kFilters, height, kWidth};
    put<float>(whole_, kChannels * plane - 1, {10});  // the last pixel of the last channel
    std::vector<float> weights(kFilters * kChannels, 1);
    std::fill_n(weights.begin() + kChannels, kChannels, 2.0f);
    const OwnBuffer result = view(other_, 4096, kFilters * plane * 4);
    put(other_, 0, weights);
    ASSERT_OK(tuff_conv2d(context(), TUFF_F32, whole_, in, other_, filter, result, out, ones, zeros));
    for (const uint64_t place : places(plane)) {
      const float sum = kChannels + (place == plane - 1 ? 9 : 0);
      EXPECT_EQ(get<float>(result, place, 1)[0], sum) << "pixel " << place << " of " << plane;
      EXPECT_EQ(get<float>(result, plane + place, 1)[0], 2 * sum) << "pixel " << place << " of " << plane;
    }
  }
}

// Keys of 0 weigh all values alike. Sums of up to 2^24 ones are exact, so that only the division rounds.
TEST_F(WholeMemory, AttentionOverAllOfIt) {
  constexpr uint64_t kHeadDim = 128;
  for (const uint64_t heads : {8, 64}) {
    for (const uint64_t elements : {floats() / 2, std::min(floats() / 2, kNarrow)}) {
      const uint64_t keys = std::min(elements / heads / kHeadDim, uint64_t{1} << 23), size = heads * keys * kHeadDim;
      const float zero = 0, one = 1, two = 2;
      fill<float>(100);
      ASSERT_OK(tuff_fill(context(), whole_, 0, size * 4, &zero, 4));
      const uint64_t at_v = floats() - size;
      const OwnBuffer v = view(whole_, at_v * 4, size * 4), o = view(other_, 1 << 20, heads * kHeadDim * 4);
      ASSERT_OK(tuff_fill(context(), v, 0, size * 2, &one, 4));
      ASSERT_OK(tuff_fill(context(), v, size * 2, size * 2, &two, 4));  // of the second half of the heads
      put(other_, 0, std::vector<float>(heads * kHeadDim, 1.0f));
      ASSERT_OK(tuff_attention(context(), TUFF_F32, other_, whole_, v, o, 1, heads, 1, keys, kHeadDim, 0.1,
                               TUFF_CAUSAL_NONE));
      const std::vector<float> got = get<float>(o, 0, heads * kHeadDim);
      for (uint64_t i = 0; i < got.size(); ++i) {
        const float expected = i < got.size() / 2 ? 1.0f : 2.0f;
        ASSERT_NEAR(got[i], expected, expected * 0x1p-22) << heads << " heads of " << keys << " keys, element " << i;
      }
    }
  }
}

// A custom kernel's buffers are bound by descriptors, which cover a view but not all of the buffer.
TEST_F(WholeMemory, KernelOnItsEnd) {
  constexpr uint32_t kCount = 1000;
  const OwnKernel kernel(context(), glsl(kPlusOne));
  std::vector<uint32_t> values(kCount);
  for (uint32_t i = 0; i < kCount; ++i) values[i] = i * 7;
  const uint64_t room = 4 * kCount / 256 * 256 + 256;
  const OwnBuffer from = view(whole_, bytes_ - 2 * room, room), to = view(whole_, bytes_ - room, room);
  put(from, 0, values);
  const tuff_buffer parts[] = {from, to}, all[] = {whole_, other_};
  ASSERT_OK(tuff_kernel_launch(context(), kernel, parts, 2, nullptr, 0, kCount, 1, 1));
  for (uint32_t& value : values) ++value;
  EXPECT_EQ(get<uint32_t>(whole_, (bytes_ - room) / 4, kCount), values);
  if (bytes_ <= properties_of(context()).max_storage_range_bytes) return;
  EXPECT_FAILS(tuff_kernel_launch(context(), kernel, all, 2, nullptr, 0, 1, 1, 1), TUFF_ERROR_LIMIT_EXCEEDED,
               "tuff_kernel_launch", "buffers[0]");
}

}  // namespace
}  // namespace tuff_test::whole_memory_test
