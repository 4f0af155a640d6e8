// The host's random numbers: the same bits as random.comp computes. All arithmetic is that of f32, one correctly
// rounded addition, subtraction or multiplication at a time; this file is compiled without contraction to
// multiply-add.
#include <bit>
#include <cmath>
#include <type_traits>

#include "kernels/common/elements.hpp"
#include "kernels/random/random.hpp"
#include "planning/arithmetic.hpp"

namespace tuff {

std::array<uint32_t, 4> random::philox(const std::array<uint32_t, 4>& counter, const std::array<uint32_t, 2>& key) {
  std::array<uint32_t, 4> c = counter;
  std::array<uint32_t, 2> k = key;
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xD2511F53} * c[0], second = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(second >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(second),
         static_cast<uint32_t>(first >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(first)};
    k[0] += 0x9E3779B9, k[1] += 0xBB67AE85;
  }
  return c;
}

std::array<uint32_t, 4> random::block_of(uint64_t seed, uint64_t sequence, uint64_t number) {
  return philox({low_word(number), high_word(number), low_word(sequence), high_word(sequence)},
                {low_word(seed), high_word(seed)});
}

namespace {

// -ln((2 w + 1) / 2^33), of the fraction's first 24 bits. See random.comp.
float minus_log(uint32_t w) {
  const int msb = 31 - std::countl_zero(w);  // -1 for 0
  const uint32_t m = (msb >= 23 ? w >> (msb - 23) : (2 * w + 1) << (22 - msb)) & 0x7fffffu;
  const bool upper = m > 0x3504f3u;
  const float f = std::bit_cast<float>(m | (upper ? 0x3f000000u : 0x3f800000u)) - 1.0f;
  const auto exponent = static_cast<float>(msb - 32 + (upper ? 1 : 0));
  const float z = f * f;
  constexpr float kTerms[] = {0.06915368f,  -0.11789808f, 0.11872976f,  -0.12384348f, 0.14218658f,
                              -0.16669251f, 0.20002227f,  -0.24999987f, 0.3333331f};
  float p = kTerms[0];
  for (int i = 1; i < 9; ++i) p = p * f + kTerms[i];
  float y = f * z * p;
  y = y + exponent * -2.12194440e-4f;
  y = y - 0.5f * z;
  return -(exponent * 0.693359375f + (f + y));
}

// By Newton's method from an estimate by the bits, because devices do not round square roots alike.
float root(float x) {
  float y = std::bit_cast<float>(0x5f3759dfu - (std::bit_cast<uint32_t>(x) >> 1));
  for (int i = 0; i < 3; ++i) y = y * (1.5f - 0.5f * x * y * y);
  return x * y;
}

struct Direction {
  float cosine, sine;
};
// The angle is (w + 1/2) / 2^32 of a turn, in steps of 2^-26.
Direction direction(uint32_t w) {
  const uint32_t quadrant = (w + 0x20000000u) >> 30;
  const int32_t rest = static_cast<int32_t>(w - (quadrant << 30)) >> 6;
  const float t = static_cast<float>(2 * rest + 1) * 4.68133798e-08f, z = t * t;  // pi 2^-26
  const float s = t + t * z *
                          (((2.7183077691006474e-06f * z - 0.0001983933470910415f) * z + 0.008333329111337662f) * z -
                           0.1666666716337204f);
  const float c = (1.0f - 0.5f * z) +
                  z * z *
                      (((-2.7210202802052663e-07f * z + 2.4799519451335073e-05f) * z - 0.0013888883404433727f) * z +
                       0.0416666679084301f);
  const float x = (quadrant & 1) != 0 ? s : c, y = (quadrant & 1) != 0 ? c : s;
  return {quadrant == 1 || quadrant == 2 ? -x : x, (quadrant & 2) != 0 ? -y : y};
}

// Four numbers of the standard distribution from a block.
std::array<float, 4> standard(int32_t distribution, int32_t dtype, const std::array<uint32_t, 4>& words) {
  std::array<float, 4> values{};
  if (distribution == TUFF_RANDOM_NORMAL) {
    for (int pair = 0; pair < 4; pair += 2) {
      const float radius = root(2.0f * minus_log(words[pair]));
      const Direction way = direction(words[pair + 1]);
      values[pair] = radius * way.cosine, values[pair + 1] = radius * way.sine;
    }
    return values;
  }
  // As many bits as the type holds, so that rounding to it does not give 1.
  const uint32_t bits = dtype == TUFF_F32 ? 24 : dtype == TUFF_F16 ? 11 : 8;
  for (int i = 0; i < 4; ++i) {
    values[i] = distribution == TUFF_RANDOM_EXPONENTIAL
                    ? minus_log(words[i])
                    : std::ldexp(static_cast<float>(words[i] >> (32 - bits)), -static_cast<int>(bits));
  }
  return values;
}

// Element `index` of the sequence as an integer: modulo 2^32.
uint32_t integer_of(const RandomArgs& args, const random::Numbers& numbers, uint32_t low, uint32_t high) {
  if (args.distribution == TUFF_RANDOM_BITS) return high;
  if (args.distribution == TUFF_RANDOM_BERNOULLI) return numbers.range == 1 || high < numbers.threshold ? 1 : 0;
  if (numbers.range == 0) return numbers.least + high;
  // The upper 32 of the 96 bits of range * (high, low).
  const uint64_t middle = uint64_t{numbers.range} * high + (uint64_t{numbers.range} * low >> 32);
  return numbers.least + static_cast<uint32_t>(middle >> 32);
}

}  // namespace

void host_random(const RandomArgs& args) {
  if (args.n == 0) return;
  const random::Numbers numbers = random::numbers_of(args);
  const bool pairs = args.distribution == TUFF_RANDOM_INTEGERS;
  const auto block = [&](uint64_t number) { return random::block_of(args.seed, args.sequence, number); };
  with_element_type(args.dtype, [&]<typename T>(T) {
    T* output = args.output->host<T>();
    for (uint64_t i = 0; i < args.n; ++i) {
      const uint64_t index = args.offset + i;
      const std::array<uint32_t, 4> words = block(index / 4);
      const uint32_t word = words[index % 4];
      if constexpr (std::is_integral_v<T>) {
        const uint32_t low = pairs ? block(index / 4 | uint64_t{1} << 63)[index % 4] : 0;
        output[i] = static_cast<T>(integer_of(args, numbers, low, word));
      } else if (args.distribution == TUFF_RANDOM_BERNOULLI) {
        output[i] = T(static_cast<float>(integer_of(args, numbers, 0, word)));
      } else {
        output[i] = T(numbers.offset + numbers.factor * standard(args.distribution, args.dtype, words)[index % 4]);
      }
    }
  });
}

}  // namespace tuff
