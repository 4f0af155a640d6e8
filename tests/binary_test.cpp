#include <cfloat>
#include <cmath>

#include "support/binary_operations.hpp"
#include "support/bounds.hpp"
#include "support/stored.hpp"

namespace tuff_test::binary_test {
namespace {

using Operation = BinaryOperation;
constexpr const auto& kOperations = kBinaryOperations;

bool denormal(double x) { return x != 0 && std::fabs(x) < FLT_MIN; }
double flushed(double x) { return denormal(x) ? std::copysign(0.0, x) : x; }

bool acceptable(const Operation& operation, float a, float b, float got) {
  if (bits(got) == kPoison) return false;
  const auto close = [&](double x, double y) {
    const double want = operation.reference(x, y);
    if (std::isnan(want)) return std::isnan(got);
    const float rounded = static_cast<float>(want);
    if (got == rounded) return true;
    if (denormal(want) && got == 0 && std::signbit(got) == std::signbit(want)) return true;
    if (operation.ulps == 0 || std::isinf(want)) return false;
    const double limit = std::ldexp(1.0, 128);
    return std::fabs((std::isinf(got) ? std::copysign(limit, got) : got) - want) <= operation.ulps * ulp(want);
  };
  return close(a, b) || close(flushed(a), b) || close(a, flushed(b)) || close(flushed(a), flushed(b));
}

// The same for 16-bit elements: the result must be what some value within the promised error rounds to.
bool acceptable16(const Operation& operation, int32_t dtype, float a, float b, float got) {
  if (bits(got) == kPoison) return false;
  const auto close = [&](double x, double y) {
    const double want = operation.reference(x, y);
    if (std::isnan(want)) return std::isnan(got);
    if (denormal(want) && got == 0) return std::signbit(got) == std::signbit(want);
    const double error = std::isinf(want) ? 0 : operation.ulps * ulp(want);
    return got >= rounded(dtype, want - error) && got <= rounded(dtype, want + error);
  };
  return close(a, b) || close(flushed(a), b) || close(a, flushed(b)) || close(flushed(a), flushed(b));
}

void expect_acceptable(const Operation& operation, const std::vector<float>& a, const std::vector<float>& b,
                       const std::vector<float>& got, int32_t dtype = TUFF_F32) {
  ASSERT_EQ(a.size(), got.size());
  uint64_t wrong = 0;
  std::string text;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool right = dtype == TUFF_F32 ? acceptable(operation, a[i], b[i], got[i])
                                         : acceptable16(operation, dtype, a[i], b[i], got[i]);
    if (right || ++wrong > 5) continue;
    char line[160];
    std::snprintf(line, sizeof line, "\n  [%zu] %s(%a, %a) is %a = %g, expected %.9g", i, operation.name, a[i], b[i],
                  got[i], got[i], operation.reference(a[i], b[i]));
    text += line;
  }
  EXPECT_EQ(wrong, 0u) << "of " << a.size() << text;
}

enum class Place { apart, onto_a, onto_b, same_input };

struct BinaryCase {
  Operation operation;
  uint64_t n;
  uint64_t shift;  // in elements
  Place place;
  int32_t dtype = TUFF_F32;
  std::string name() const {
    static const char* const places[] = {"", "_onto_a", "_onto_b", "_same_input"};
    return std::string(operation.name) + (dtype == TUFF_F32 ? "" : std::string("_") + name_of(dtype)) + "_" +
           std::to_string(n) + (shift != 0 ? "_shift" + std::to_string(shift) : "") + places[static_cast<int>(place)];
  }
  double work() const { return static_cast<double>(n); }
};

std::vector<BinaryCase> cases() {
  std::vector<BinaryCase> all;
  for (uint64_t n : {0,   1,   2,   3,   4,    5,    7,    8,    9,    15,     17,     31,      33,      64,       65,
                     127, 129, 255, 257, 1000, 1023, 1025, 4095, 4097, 16'385, 65'537, 100'003, 262'144, 1'000'003}) {
    for (const Operation& operation : kOperations) {
      const uint64_t i = all.size();
      all.push_back({operation, n, i % 5, static_cast<Place>((i / 2) % 4)});
    }
  }
  all.push_back({kOperations[0], 41'943'041, 1, Place::apart});  // three operands of 160 MiB
  all.push_back({kOperations[4], 35'000'000, 0, Place::onto_b});
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    uint32_t turn = 0;  // half of the operations for each length
    for (uint64_t n : {1, 7, 8, 9, 63, 2048, 300'003}) {
      for (const Operation& operation : kOperations) {
        if (turn++ % 2 != 0) continue;
        const uint64_t i = all.size();
        all.push_back({operation, n, i % 3 == 0 ? 0 : i % 8, static_cast<Place>((i / 2) % 4), dtype});
      }
    }
  }
  return all;
}

using Binary = Table<BinaryCase>;

TEST_P(Binary, Matches) {
  const int32_t dtype = row().dtype;
  const bool onto_input = row().place == Place::onto_a || row().place == Place::onto_b;
  const std::vector<float> ha = rounded(dtype, spreads(row().n, 11)),
                           hb = row().place == Place::same_input ? ha : rounded(dtype, spreads(row().n, 12));
  const StoredTensor a(context(), dtype, ha, row().shift),
      b(context(), dtype, hb, row().shift == 0 ? 0 : row().shift + 1),
      apart(context(), dtype, onto_input ? 0 : row().n, row().shift);
  const StoredTensor& second = row().place == Place::same_input ? a : b;
  const StoredTensor& output = row().place == Place::onto_a ? a : row().place == Place::onto_b ? b : apart;
  ASSERT_OK(tuff_binary(context(), dtype, row().operation.op, a, second, output, row().n));
  expect_acceptable(row().operation, ha, hb, output.read(), dtype);
  if (&output != &a) a.expect_unchanged(ha);
  if (&output != &b) b.expect_unchanged(hb);
}
TUFF_TABLE(Binary, BinaryCase, cases());

// 32-bit integers: exact, modulo 2^32.
class BinaryIntegers : public OnBackend {
 protected:
  static int32_t expected(int32_t op, int32_t a, int32_t b) {
    const auto x = static_cast<uint32_t>(a), y = static_cast<uint32_t>(b);
    switch (op) {
      case TUFF_BINARY_ADD: return static_cast<int32_t>(x + y);
      case TUFF_BINARY_SUB: return static_cast<int32_t>(x - y);
      case TUFF_BINARY_MUL: return static_cast<int32_t>(x * y);
      case TUFF_BINARY_MAX: return std::max(a, b);
      default: return std::min(a, b);
    }
  }
  // The ends of the range, small numbers of both signs, and any bits.
  static std::vector<int32_t> numbers(uint64_t count, uint64_t seed) {
    constexpr int32_t kSpecial[] = {0, 1, -1, INT32_MAX, INT32_MIN, INT32_MAX - 1, INT32_MIN + 1, 65536, -65536, 46341};
    Random random(seed);
    std::vector<int32_t> all(count);
    for (int32_t& x : all) {
      x = random.next() % 2 == 0 ? kSpecial[random.next() % std::size(kSpecial)] : static_cast<int32_t>(random.next());
    }
    return all;
  }
  static constexpr int32_t kOps[] = {TUFF_BINARY_ADD, TUFF_BINARY_SUB, TUFF_BINARY_MUL, TUFF_BINARY_MAX,
                                     TUFF_BINARY_MIN};
  OwnBuffer uploaded(const std::vector<int32_t>& values, uint64_t shift) {
    OwnBuffer buffer(context(), (values.size() + shift + 1) * 4);
    EXPECT_OK(tuff_copy_htod(context(), buffer, shift * 4, values.data(), values.size() * 4));
    return buffer;
  }
};

TEST_P(BinaryIntegers, AreExact) {
  for (const uint64_t n : {1, 7, 64, 1025, 40'003}) {
    for (const uint64_t shift : {0, 1}) {
      const std::vector<int32_t> a = numbers(n, 3), b = numbers(n, 4);
      const OwnBuffer whole_a = uploaded(a, shift), whole_b = uploaded(b, 0), out = uploaded(a, shift);
      tuff_buffer part_a = 0, part_out = 0;
      ASSERT_OK(tuff_view(whole_a, shift * 4, n * 4, &part_a));
      ASSERT_OK(tuff_view(out, shift * 4, n * 4, &part_out));
      const OwnBuffer own_a(part_a), own_out(part_out);
      for (const int32_t op : kOps) {
        ASSERT_OK(tuff_binary(context(), TUFF_I32, op, own_a, whole_b, own_out, n));
        std::vector<int32_t> got(n);
        ASSERT_OK(tuff_copy_dtoh(context(), got.data(), own_out, 0, n * 4));
        for (uint64_t i = 0; i < n; ++i) {
          ASSERT_EQ(got[i], expected(op, a[i], b[i]))
              << "op " << op << " of " << a[i] << " and " << b[i] << ", n " << n;
        }
      }
    }
  }
}

TEST_P(BinaryIntegers, AreBroadcast) {
  constexpr uint64_t rows = 33, columns = 20;
  const std::vector<int32_t> a = numbers(rows * columns, 5), row = numbers(columns, 6), column = numbers(rows, 7);
  const OwnBuffer all = uploaded(a, 0), one_row = uploaded(row, 0), one_column = uploaded(column, 0),
                  out = uploaded(a, 0);
  for (const int32_t op : kOps) {
    for (const bool along_rows : {false, true}) {
      tuff_binary_desc desc{};
      desc.struct_size = sizeof desc;
      desc.dtype = TUFF_I32, desc.op = op;
      desc.a = all, desc.b = along_rows ? one_row : one_column, desc.output = out;
      desc.rank = 2;
      desc.a_shape[0] = rows, desc.a_shape[1] = columns;
      desc.b_shape[0] = along_rows ? 1 : rows, desc.b_shape[1] = along_rows ? columns : 1;
      ASSERT_OK(tuff_binary_ex(context(), &desc));
      std::vector<int32_t> got(rows * columns);
      ASSERT_OK(tuff_copy_dtoh(context(), got.data(), out, 0, got.size() * 4));
      for (uint64_t i = 0; i < got.size(); ++i) {
        const int32_t b = along_rows ? row[i % columns] : column[i / columns];
        ASSERT_EQ(got[i], expected(op, a[i], b)) << "op " << op << ", element " << i;
      }
    }
  }
}

TEST_P(BinaryIntegers, QuotientsAndPowersAreRefused) {
  const OwnBuffer x = uploaded({1, 2, 3, 4}, 0);
  for (const int32_t op : {TUFF_BINARY_DIV, TUFF_BINARY_POW}) {
    EXPECT_FAILS(tuff_binary(context(), TUFF_I32, op, x, x, x, 4), TUFF_ERROR_UNSUPPORTED, "tuff_binary", "dtype");
  }
  EXPECT_FAILS(tuff_binary(context(), TUFF_U32, TUFF_BINARY_ADD, x, x, x, 4), TUFF_ERROR_UNSUPPORTED, "tuff_binary",
               "dtype");
  int32_t yes = 0;
  EXPECT_OK(tuff_supports(context(), "binary.i32", &yes));
  EXPECT_EQ(yes, 1);
}
TUFF_ON_BACKENDS(BinaryIntegers);

class BinaryOnce : public OnBackend {};

// All pairs of special values and of magnitudes across f32.
TEST_P(BinaryOnce, AllMagnitudes) {
  std::vector<float> values;
  for (uint32_t exponent : {0u, 1u, 2u, 24u, 100u, 126u, 127u, 128u, 150u, 200u, 230u, 252u, 254u, 255u}) {
    for (uint32_t significand : {0u, 1u, 0x2aaaaau, 0x400000u, 0x7fffffu}) {
      for (uint32_t sign : {0u, 0x80000000u}) values.push_back(from_bits(sign | exponent << 23 | significand));
    }
  }
  std::vector<float> a, b;
  for (float x : values) {
    for (float y : values) a.push_back(x), b.push_back(y);
  }
  const Tensor da(context(), a), db(context(), b), output(context(), a.size());
  for (const Operation& operation : kOperations) {
    SCOPED_TRACE(operation.name);
    // Outside [2^-126, 2^126] Vulkan does not specify division by a finite number; zeros and infinities are promised.
    std::vector<float> got;
    ASSERT_OK(tuff_binary(context(), TUFF_F32, operation.op, da, db, output, a.size()));
    got = output.read();
    if (operation.op == TUFF_BINARY_DIV) {
      for (size_t i = 0; i < a.size(); ++i) {
        const double divisor = std::fabs(b[i]);
        const bool open = std::isfinite(divisor) && divisor != 0 && (divisor < 0x1p-126 || divisor > 0x1p126);
        if (open && bits(got[i]) != kPoison) got[i] = static_cast<float>(static_cast<double>(a[i]) / b[i]);
      }
    }
    expect_acceptable(operation, a, b, got);
  }
}

// The results of IEEE 754 for zeros, infinities, NaN, negative bases and integer exponents, and magnitudes up to the
// ends of f32.
TEST_P(BinaryOnce, PowersOfEverything) {
  std::vector<float> a, b;
  const std::vector<float> values = {0,       1,       2,        3,    0.5f,         1.5f,         7,
                                     8388607, 8388609, 16777215, 2e7f, 1e-40f,       1e-45f,       1e30f,
                                     1e38f,   FLT_MAX, INFINITY, NAN,  1 + 0x1p-23f, 1 - 0x1p-24f, 0.1f,
                                     1e-3f,   126,     127.5f};
  for (const float x : values) {
    for (const float y : values) {
      for (const float sign : {1.0f, -1.0f}) a.insert(a.end(), {sign * x, sign * x}), b.insert(b.end(), {y, -y});
    }
  }
  // Logarithms of the base over all of f32, with exponents that take the result to the ends of its range.
  const std::vector<float> logs = uniforms(20'000, -85, 85, 15), targets = uniforms(20'000, -100, 88, 16);
  for (size_t i = 0; i < logs.size(); ++i) {
    const float scale = i % 4 == 0 ? 1e-3f : 1;  // close to 1 too
    a.push_back(static_cast<float>(std::exp(static_cast<double>(logs[i]) * scale)));
    b.push_back(targets[i] / (logs[i] * scale));
  }
  const Tensor da(context(), a), db(context(), b), output(context(), a.size());
  ASSERT_OK(tuff_binary(context(), TUFF_F32, TUFF_BINARY_POW, da, db, output, a.size()));
  expect_acceptable(kOperations[6], a, b, output.read());
}

TEST_P(BinaryOnce, DescriptorIsTheSame) {
  const std::vector<float> ha = spreads(100, 13), hb = spreads(100, 14);
  const Tensor a(context(), ha), b(context(), hb), output(context(), 100);
  tuff_binary_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.op = TUFF_BINARY_SUB;
  desc.a = a, desc.b = b, desc.output = output;
  desc.n = 100;
  ASSERT_OK(tuff_binary_ex(context(), &desc));
  expect_acceptable(kOperations[1], ha, hb, output.read());
}
TUFF_ON_BACKENDS(BinaryOnce);

// --- shapes ----------------------------------------------------------------------------------------------

struct BroadcastCase {
  std::vector<uint64_t> a, b;
  int32_t dtype = TUFF_F32;
  uint64_t shift = 0;  // in elements: the operands are shifted by 0, 1 and 2 times this
  int32_t op = TUFF_BINARY_SUB;
  std::string name() const {
    std::string text = name_of(dtype);
    for (const uint64_t size : a) text.append("_").append(std::to_string(size));
    text += "_with";
    for (const uint64_t size : b) text.append("_").append(std::to_string(size));
    return text + (shift != 0 ? "_shift" + std::to_string(shift) : "") + (op == TUFF_BINARY_DIV ? "_div" : "");
  }
  std::vector<uint64_t> result() const {
    std::vector<uint64_t> sizes = a;
    for (size_t i = 0; i < a.size(); ++i) sizes[i] = a[i] == 1 ? b[i] : a[i];
    return sizes;
  }
  static uint64_t count(const std::vector<uint64_t>& sizes) {
    uint64_t product = 1;
    for (const uint64_t size : sizes) product *= size;
    return product;
  }
  double work() const { return static_cast<double>(count(result())); }
};

std::vector<BroadcastCase> broadcasts() {
  std::vector<BroadcastCase> all = {
      {{5}, {1}},
      {{1}, {1003}},
      {{33, 64}, {1, 64}},
      {{33, 64}, {33, 1}},
      {{1, 64}, {33, 1}},
      {{33, 65}, {1, 65}},
      {{33, 65}, {33, 1}},
      {{1, 7}, {9, 1}},
      {{2, 64, 49}, {1, 64, 1}},
      {{2, 64, 48}, {1, 64, 1}},
      {{2, 1, 48}, {2, 64, 1}},
      {{4, 1, 6, 20}, {1, 5, 6, 1}},
      {{4, 3, 6, 20}, {1, 3, 6, 20}},
      {{2, 1, 3, 1, 2, 1, 4, 1}, {1, 3, 1, 2, 1, 2, 1, 5}},  // more axes than the kernel supports
      {{2, 1, 3, 2, 2, 3, 1, 8}, {2, 3, 3, 1, 2, 1, 4, 8}},
      {{2, 3, 1, 4, 1, 2, 3, 2}, {1, 1, 1, 1, 1, 1, 1, 1}},
      {{70'000, 3}, {1, 3}},
      {{3, 70'000}, {3, 1}},
      {{1, 1'000'001}, {3, 1}},
      {{0, 4}, {1, 4}},
      {{1, 4}, {0, 1}},
      {{100, 64}, {1, 64}, TUFF_F32, 1},
      {{41'000, 1024}, {1, 1024}},  // 160 MiB
  };
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    for (const uint64_t cols : {64, 33}) {
      all.push_back({{50, cols}, {1, cols}, dtype});
      all.push_back({{50, cols}, {50, 1}, dtype, cols % 2});
    }
    all.push_back({{3000, 8, 12}, {1, 8, 1}, dtype});
    all.push_back({{1}, {1003}, dtype, 1});
  }
  all.push_back({{40, 24}, {1, 24}, TUFF_F32, 0, TUFF_BINARY_DIV});
  return all;
}

using BinaryBroadcast = Table<BroadcastCase>;

tuff_status call_broadcast(tuff_context context, const BroadcastCase& s, tuff_buffer a, tuff_buffer b, tuff_buffer y) {
  tuff_binary_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.op = s.op;
  desc.a = a, desc.b = b, desc.output = y;
  desc.rank = static_cast<uint32_t>(s.a.size());
  std::copy(s.a.begin(), s.a.end(), desc.a_shape);
  std::copy(s.b.begin(), s.b.end(), desc.b_shape);
  return tuff_binary_ex(context, &desc);
}

// The operand, expanded element by element.
std::vector<float> expanded(const std::vector<float>& x, const std::vector<uint64_t>& shape,
                            const std::vector<uint64_t>& result) {
  std::vector<float> all(BroadcastCase::count(result));
  for (uint64_t i = 0; i < all.size(); ++i) {
    uint64_t rest = i, at = 0, stride = 1;
    for (size_t d = shape.size(); d-- > 0; rest /= result[d]) {
      if (shape[d] != 1) at += rest % result[d] * stride;
      stride *= shape[d];
    }
    all[i] = x[at];
  }
  return all;
}

TEST_P(BinaryBroadcast, Matches) {
  const BroadcastCase& s = row();
  const std::vector<uint64_t> result = s.result();
  const std::vector<float> ha = rounded(s.dtype, spreads(BroadcastCase::count(s.a), 1)),
                           hb = rounded(s.dtype, spreads(BroadcastCase::count(s.b), 2));
  const StoredTensor a(context(), s.dtype, ha, s.shift), b(context(), s.dtype, hb, 2 * s.shift),
      output(context(), s.dtype, BroadcastCase::count(result), 0);
  ASSERT_OK(call_broadcast(context(), s, a, b, output));
  const Operation& operation = kOperations[s.op - 1];
  expect_acceptable(operation, expanded(ha, s.a, result), expanded(hb, s.b, result), output.read(), s.dtype);
  a.expect_unchanged(ha);
  b.expect_unchanged(hb);
}
TUFF_TABLE(BinaryBroadcast, BroadcastCase, broadcasts());

class BinaryShapes : public OnBackend {};

TEST_P(BinaryShapes, OntoTheOperandThatIsNotRepeated) {
  for (const uint64_t cols : {40, 41}) {
    const std::vector<float> ha = integers(30 * cols, 100, 3), hb = integers(cols, 100, 4);
    const Tensor a(context(), ha), b(context(), hb);
    ASSERT_OK(call_broadcast(context(), {{30, cols}, {1, cols}}, a, b, a));
    std::vector<float> wanted = ha;
    for (uint64_t i = 0; i < wanted.size(); ++i) wanted[i] -= hb[i % cols];
    expect_same_bits(a.read(), wanted);
    EXPECT_FAILS(call_broadcast(context(), {{1, cols}, {1, cols}}, a, b, 0), TUFF_ERROR_INVALID_HANDLE,
                 "tuff_binary_ex", "output");
  }
}

TEST_P(BinaryShapes, BadShapes) {
  const Tensor x(context(), 100), y(context(), 100), z(context(), 100);
  const char* name = "tuff_binary_ex";
  constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
  const BroadcastCase good{{10, 9}, {1, 9}};
  EXPECT_FAILS(call_broadcast(context(), {{10, 9}, {2, 9}}, x, y, z), kArgument, name, "b_shape[0]");
  EXPECT_FAILS(call_broadcast(context(), {{12, 11}, {1, 11}}, x, y, z), kArgument, name, "a");
  EXPECT_FAILS(call_broadcast(context(), {{120, 1}, {1, 1}}, x, y, z), kArgument, name, "a");
  EXPECT_FAILS(call_broadcast(context(), {{60, 1}, {1, 60}}, x, y, z), kArgument, name, "output");
  EXPECT_FAILS(call_broadcast(context(), good, x, y, y), kArgument, name, "output");
  EXPECT_FAILS(call_broadcast(context(), {{uint64_t{1} << 40, 1}, {1, uint64_t{1} << 40}}, x, y, z), kArgument, name,
               "shape");
  tuff_binary_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.op = TUFF_BINARY_ADD;
  desc.a = x, desc.b = y, desc.output = z;
  desc.rank = 9;
  EXPECT_FAILS(tuff_binary_ex(context(), &desc), kArgument, name, "rank");
  desc.rank = 1, desc.a_shape[0] = 5, desc.b_shape[0] = 1, desc.n = 6;
  EXPECT_FAILS(tuff_binary_ex(context(), &desc), kArgument, name, "n");
  desc.n = 5, desc.reserved2 = 1;
  EXPECT_FAILS(tuff_binary_ex(context(), &desc), kArgument, name, "reserved2");
  x.expect_poisoned();
  y.expect_poisoned();
  z.expect_poisoned();
}
TUFF_ON_BACKENDS(BinaryShapes);

}  // namespace
}  // namespace tuff_test::binary_test
