// cast, compared bit for bit with a model in integers: every number of every type is a magnitude of 64 bits times a
// power of two.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "support/sample.hpp"
#include "support/stored.hpp"

namespace tuff_test::shape_cast_test {
namespace {

__extension__ using Wide = unsigned __int128;

struct Number {
  enum class Kind { finite, infinite, nan } kind;
  bool negative;
  uint64_t magnitude;
  int exponent;  // the number is magnitude * 2^exponent
};

// How a type stores numbers. A float has `fraction` bits of fraction below `exponent` bits of exponent; an integer is a
// type without an exponent.
struct Format {
  int fraction = 0, exponent = 0;
  bool is_signed = false, has_infinity = true, saturates = false;

  bool is_float() const { return exponent != 0; }
  int bias() const { return (1 << (exponent - 1)) - 1; }
  int least() const { return 1 - bias() - fraction; }  // the unit of denormals is 2^least
  uint64_t infinity() const { return ((uint64_t{1} << exponent) - 1) << fraction; }
  // The largest finite number as stored. Without infinities the largest pattern alone is NaN.
  uint64_t most() const { return has_infinity ? infinity() - 1 : (infinity() | ((uint64_t{1} << fraction) - 1)) - 1; }
};

Format format_of(int32_t dtype) {
  switch (dtype) {
    case TUFF_F32: return {23, 8};
    case TUFF_F16: return {10, 5};
    case TUFF_BF16: return {7, 8};
    case TUFF_F64: return {52, 11};
    case TUFF_F8_E4M3: return {3, 4, false, false, true};
    case TUFF_F8_E5M2: return {2, 5, false, true, true};
    case TUFF_I8:
    case TUFF_I16:
    case TUFF_I32:
    case TUFF_I64: return {0, 0, true};
    default: return {};
  }
}

int bits_of(int32_t dtype) { return static_cast<int>(8 * size_of(dtype)); }

uint64_t mask_of(int32_t dtype) { return ~uint64_t{0} >> (64 - bits_of(dtype)); }

Number number_of(int32_t dtype, uint64_t word) {
  const Format format = format_of(dtype);
  const bool negative = word >> (bits_of(dtype) - 1) != 0;
  if (dtype == TUFF_BOOL) return {Number::Kind::finite, false, word != 0 ? 1u : 0u, 0};
  if (!format.is_float()) {
    if (!format.is_signed || !negative) return {Number::Kind::finite, false, word, 0};
    return {Number::Kind::finite, true, (0 - word) & mask_of(dtype), 0};
  }
  const uint64_t rest = word & (mask_of(dtype) >> 1), digits = rest & ((uint64_t{1} << format.fraction) - 1);
  if (format.has_infinity && rest == format.infinity()) return {Number::Kind::infinite, negative, 0, 0};
  if (rest > format.most()) return {Number::Kind::nan, negative, 0, 0};
  const auto field = static_cast<int>(rest >> format.fraction);
  if (field == 0) return {Number::Kind::finite, negative, digits, format.least()};
  return {Number::Kind::finite, negative, digits | uint64_t{1} << format.fraction, format.least() + field - 1};
}

int width_of(uint64_t magnitude) { return static_cast<int>(std::bit_width(magnitude)); }

// magnitude * 2^exponent in units of 2^unit, rounded to nearest even.
uint64_t rounded(uint64_t magnitude, int exponent, int unit) {
  if (unit <= exponent) return magnitude << (exponent - unit);
  const int down = unit - exponent;
  if (down > 65) return 0;
  const Wide value = magnitude, half = Wide{1} << (down - 1), below = value & (2 * half - 1);
  const auto kept = static_cast<uint64_t>(value >> down);
  return kept + (below > half || (below == half && kept % 2 == 1) ? 1 : 0);
}

uint64_t float_word(int32_t dtype, const Number& x) {
  const Format format = format_of(dtype);
  const uint64_t sign = x.negative ? uint64_t{1} << (bits_of(dtype) - 1) : 0;
  if (x.kind == Number::Kind::nan) return sign | (mask_of(dtype) >> 1);
  const uint64_t beyond = format.saturates ? format.most() : format.infinity();
  if (x.kind == Number::Kind::infinite) return sign | beyond;
  if (x.magnitude == 0) return sign;
  const int unit = std::max(x.exponent + width_of(x.magnitude) - format.fraction - 1, format.least());
  const uint64_t digits = rounded(x.magnitude, x.exponent, unit);
  const auto field = static_cast<uint64_t>(unit - format.least());
  if (field >= uint64_t{1} << format.exponent) return sign | beyond;
  // The leading bit of a normal number, and a carry out of its digits, add to the exponent.
  const uint64_t word = (field << format.fraction) + digits;
  return sign | (word > format.most() ? beyond : word);
}

uint64_t integer_word(int32_t dtype, const Number& x) {
  if (x.kind == Number::Kind::nan) return 0;
  const bool is_signed = format_of(dtype).is_signed;
  const uint64_t most = mask_of(dtype) >> (is_signed ? 1 : 0);
  const uint64_t least = is_signed ? most + 1 : 0;  // the magnitude of the smallest number
  const uint64_t bound = x.negative ? least : most;
  uint64_t whole = bound;
  if (x.kind == Number::Kind::finite) {
    const int width = x.magnitude == 0 ? 0 : width_of(x.magnitude) + x.exponent;  // digits before the point
    if (width <= 0) {
      whole = 0;
    } else if (width <= 64) {
      whole = std::min(bound, x.exponent >= 0 ? x.magnitude << x.exponent : x.magnitude >> -x.exponent);
    }
  }
  return (x.negative ? 0 - whole : whole) & mask_of(dtype);
}

uint64_t expected(int32_t from, int32_t to, uint64_t word) {
  if (from == to) return word;
  const Number x = number_of(from, word);
  if (to == TUFF_BOOL) return x.kind != Number::Kind::finite || x.magnitude != 0 ? 1 : 0;
  return format_of(to).is_float() ? float_word(to, x) : integer_word(to, x);
}

// All words of types of 8 and 16 bits; otherwise the ends of all ranges, ties between the numbers of narrower types,
// and what is beside them.
std::vector<uint64_t> words_of(int32_t dtype) {
  std::vector<uint64_t> words;
  const int bits = bits_of(dtype);
  if (bits <= 16) {
    for (uint64_t word = 0; word <= mask_of(dtype); ++word) words.push_back(word);
    return words;
  }
  const Format format = format_of(dtype);
  // Patterns of `width` bits: runs of ones and single ones, with another one or not at each place below.
  const auto patterns = [](int width) {
    std::vector<uint64_t> found = {0};
    for (int high = 0; high < width; ++high) {
      for (const uint64_t top : {uint64_t{1} << high, (uint64_t{2} << high) - 1}) {
        found.insert(found.end(), {top, top - 1, top + 1});
      }
    }
    return found;
  };
  if (!format.is_float()) {
    for (const uint64_t high : patterns(bits)) {
      for (const uint64_t low : patterns(bits)) {
        words.push_back((high ^ low) & mask_of(dtype));
        words.push_back((high + low) & mask_of(dtype));
      }
    }
  } else {
    const int fields = 1 << format.exponent;
    for (int field = 0; field < fields; ++field) {
      // The exponents of f64 from 2^-160 to 2^140, and the ends of its range.
      const int power = field - format.bias();
      if (fields > 1000 && (power < -160 || power > 140) && field > 2 && field < fields - 2) continue;
      for (const uint64_t digits : patterns(format.fraction)) {
        const uint64_t word = (static_cast<uint64_t>(field) << format.fraction) + digits;
        words.push_back(word & (mask_of(dtype) >> 1));
        words.push_back(word | uint64_t{1} << (bits - 1));
      }
    }
  }
  Random random(static_cast<uint64_t>(dtype));
  for (int i = 0; i < 20'000; ++i) words.push_back(random.next() & mask_of(dtype));
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

Bytes stored(int32_t dtype, const std::vector<uint64_t>& words) {
  const uint64_t size = size_of(dtype);
  Bytes bytes(words.size() * size);
  for (size_t i = 0; i < words.size(); ++i) std::memcpy(bytes.data() + i * size, &words[i], size);
  return bytes;
}

class ShapeCast : public OnBackend {
 protected:
  // On a device each pair is a kernel of its own.
  bool is_in_sample(int32_t from, int32_t to) const {
    return !vulkan() || in_sample(std::string(name_of(from)) + " to " + name_of(to), 8);
  }
  void run(int32_t from, int32_t to, const std::vector<uint64_t>& words, uint64_t shift) {
    const Bytes source = stored(from, words);
    const TypedTensor input(context(), from, source, shift),
        output(context(), to, Bytes(words.size() * size_of(to), 0x6b), shift);
    ASSERT_OK(tuff_cast(context(), from, to, input, output, words.size()));
    const Bytes bytes = output.read();
    uint64_t wrong = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      uint64_t got = 0;
      std::memcpy(&got, bytes.data() + i * size_of(to), size_of(to));
      const uint64_t wanted = expected(from, to, words[i]);
      if (got == wanted) continue;
      const auto nan = [to](uint64_t word) { return number_of(to, word).kind == Number::Kind::nan; };
      if (format_of(to).is_float() && from != to && nan(got) && nan(wanted)) continue;
      if (++wrong <= 5) {
        ADD_FAILURE() << std::hex << name_of(from) << " 0x" << words[i] << " as " << name_of(to) << " is 0x" << got
                      << ", expected 0x" << wanted;
      }
    }
    EXPECT_EQ(wrong, 0u) << name_of(from) << " to " << name_of(to);
    EXPECT_TRUE(input.read() == source);
  }
};

TEST_P(ShapeCast, EveryPairOfTypes) {
  uint64_t turn = 0;
  for (const int32_t from : kRealTypes) {
    const std::vector<uint64_t> words = words_of(from);
    for (const int32_t to : kRealTypes) {
      const uint64_t shift = ++turn % 8 == 0 ? 1 + turn % 3 : 0;
      if (is_in_sample(from, to)) run(from, to, words, shift);
    }
  }
}

TEST_P(ShapeCast, Lengths) {
  constexpr std::pair<int32_t, int32_t> kPairs[] = {{TUFF_F32, TUFF_F16}, {TUFF_U8, TUFF_F32},   {TUFF_I64, TUFF_I16},
                                                    {TUFF_U16, TUFF_F64}, {TUFF_BOOL, TUFF_U64}, {TUFF_F64, TUFF_BOOL}};
  for (const uint64_t n : {1, 2, 3, 4, 5, 31, 1023, 4097, 300'001}) {
    Random random(n);
    for (const auto& [from, to] : kPairs) {
      std::vector<uint64_t> words(n);
      for (uint64_t& word : words) word = random.next() & mask_of(from);
      run(from, to, words, n % 2);
    }
  }
}

TEST_P(ShapeCast, InPlaceOfTheSameSize) {
  const std::vector<float> x = {1.5f, -2.5f, 3e9f, NAN, 7};
  const Tensor tensor(context(), x);
  ASSERT_OK(tuff_cast(context(), TUFF_F32, TUFF_I32, tensor, tensor, x.size()));
  ASSERT_OK(tuff_cast(context(), TUFF_I32, TUFF_F32, tensor, tensor, x.size()));
  expect_same_bits(tensor.read(), {1, -2, 0x1p31f, 0, 7});
}

// Values that the header states, by name.
TEST_P(ShapeCast, SaturationOf8BitFloatsAndTruthOfBools) {
  const std::vector<float> x = {448, 464, 1e30f, -INFINITY, NAN, 0.0f, -0.0f, 0x1p-149f, 61440, 0x1p-10f, 0x1.8p-9f};
  const auto cast = [&](int32_t to) {
    const Tensor from(context(), x);
    const TypedTensor output(context(), to, Bytes(x.size(), 0x6b));
    EXPECT_OK(tuff_cast(context(), TUFF_F32, to, from, output, x.size()));
    return output.read();
  };
  EXPECT_EQ(cast(TUFF_F8_E4M3), (Bytes{0x7e, 0x7e, 0x7e, 0xfe, 0x7f, 0, 0x80, 0, 0x7e, 0, 2}));
  EXPECT_EQ(cast(TUFF_F8_E5M2), (Bytes{0x5f, 0x5f, 0x7b, 0xfb, 0x7e, 0, 0x80, 0, 0x7b, 0x14, 0x1a}));
  EXPECT_EQ(cast(TUFF_BOOL), (Bytes{1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1}));
}

// Casts from and to complex types are casts of their parts, which the tests above cover.
TEST_P(ShapeCast, ComplexTypes) {
  constexpr int32_t kComplex[] = {TUFF_C64, TUFF_C128};
  const auto words = [](int32_t dtype, uint64_t n) {
    Random random(n + static_cast<uint64_t>(dtype));
    const std::vector<uint64_t> all = words_of(dtype);
    std::vector<uint64_t> some(n);
    for (uint64_t& word : some) word = random.next() % 4 == 0 ? 0 : all[random.next() % all.size()];
    return some;
  };
  const auto check = [&](int32_t from, int32_t to, uint64_t n) {
    const uint64_t in = is_complex(from) ? 2 : 1, out = is_complex(to) ? 2 : 1;
    const int32_t source = part_of(from), target = part_of(to);
    const std::vector<uint64_t> given = words(source, in * n);
    std::vector<uint64_t> wanted(out * n);
    for (uint64_t i = 0; i < n; ++i) {
      wanted[out * i] = expected(source, target, given[in * i]);
      if (to == TUFF_BOOL) wanted[i] |= expected(source, target, given[2 * i + 1]);
      if (out == 2 && in == 2) wanted[2 * i + 1] = expected(source, target, given[2 * i + 1]);
    }
    const TypedTensor input(context(), from, stored(source, given), n % 2),
        output(context(), to, Bytes(n * size_of(to), 0x6b), n % 3);
    ASSERT_OK(tuff_cast(context(), from, to, input, output, n));
    const Bytes bytes = output.read();
    for (uint64_t i = 0; i < out * n; ++i) {
      uint64_t got = 0;
      std::memcpy(&got, bytes.data() + i * size_of(target), size_of(target));
      const auto nan = [&](uint64_t word) { return number_of(target, word).kind == Number::Kind::nan; };
      if (format_of(target).is_float() && nan(got) && nan(wanted[i])) continue;
      ASSERT_EQ(got, wanted[i]) << name_of(from) << " to " << name_of(to) << ", number " << i << " of " << out * n;
    }
  };
  for (const int32_t complex : kComplex) {
    for (const int32_t real : kRealTypes) {
      if (is_in_sample(complex, real)) check(complex, real, 997);
      if (is_in_sample(real, complex)) check(real, complex, 997);
    }
    for (const int32_t other : kComplex) {
      for (const uint64_t n : {1, 4, 5, 1000, 70'001}) check(complex, other, n);
    }
  }
}

TEST_P(ShapeCast, ComplexInPlaceOfARealTypeOfTheSameSize) {
  const std::vector<float> x = {1.5f, -2.5f, 3, INFINITY, -0.0f, 7};
  const Tensor tensor(context(), x);
  ASSERT_OK(tuff_cast(context(), TUFF_C64, TUFF_F64, tensor, tensor, 3));
  ASSERT_OK(tuff_cast(context(), TUFF_F64, TUFF_C64, tensor, tensor, 3));
  expect_same_bits(tensor.read(), {1.5f, 0, 3, 0, -0.0f, 0});
}

TEST_P(ShapeCast, ComplexMisuse) {
  const Tensor tensor(context(), std::vector<float>(8, 1.0f));
  const OwnBuffer inside(context(), 64);
  tuff_buffer odd = 0;
  ASSERT_OK(tuff_view(inside, 4, 16, &odd));
  const OwnBuffer owned(odd);
  EXPECT_FAILS(tuff_cast(context(), TUFF_C64, TUFF_F32, odd, tensor, 2), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cast",
               "multiple of 8");
  EXPECT_FAILS(tuff_cast(context(), TUFF_C128, TUFF_C64, inside, tensor, 5), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cast",
               "needs 80");
  EXPECT_FAILS(tuff_cast(context(), TUFF_C64, 18, tensor, inside, 1), TUFF_ERROR_INVALID_ARGUMENT, "tuff_cast",
               "output_type");
}
TUFF_ON_BACKENDS(ShapeCast);

}  // namespace
}  // namespace tuff_test::shape_cast_test
