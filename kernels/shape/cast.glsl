// Converts one element from bits to bits, by integer arithmetic alone. All devices thus give the same bits, f64 works
// without 64-bit arithmetic, and the result does not depend on a driver's rounding. An element is a uvec2, whose y is
// used by f64 only.
//# TUFF_SOURCE : 1..8 : source type, as in tuff.h
//# TUFF_TARGET : 1..8 : target type, another one
//
// Conversion to a float rounds once, to nearest even. Conversion to an integer truncates towards zero and saturates;
// NaN gives 0.
#include "kernels/common/types.glsl"

#define TUFF_IS_SMALL_FLOAT(type) (type == 1 || type == 2 || type == 3)
#define TUFF_IS_INTEGER(type) (type >= 5)

// An integer as sign and magnitude, the intermediate form of conversions from and to integers.
struct TuffWhole {
  bool negative;
  uint magnitude;  // 2^32 - 1 for everything beyond it
};

uint tuff_whole_bits(TuffWhole w) {
#if TUFF_TARGET == 5
  const uint most = 0x7fffffffu, least = 0x80000000u;
#elif TUFF_TARGET == 6
  const uint most = 0xffffffffu, least = 0u;
#elif TUFF_TARGET == 7
  const uint most = 127u, least = 128u;
#else
  const uint most = 255u, least = 0u;
#endif
  return w.negative ? 0u - min(w.magnitude, least) : min(w.magnitude, most);
}

// significand * 2^exponent as an f64.
uvec2 tuff_f64_of(bool negative, uint significand, int exponent) {
  if (significand == 0u) return uvec2(0u, negative ? 0x80000000u : 0u);
  const int top = findMSB(significand);
  const uint up = uint(52 - top);  // 21 .. 52
  const uint high = up >= 32u ? significand << (up - 32u) : significand >> (32u - up);
  const uint low = up >= 32u ? 0u : significand << up;
  return uvec2(low, (negative ? 0x80000000u : 0u) | (uint(1023 + top + exponent) << 20) | (high & 0xfffffu));
}

uvec2 tuff_widened(uint bits) {
  const uint sign = bits & 0x80000000u, exponent = (bits >> 23) & 255u, fraction = bits & 0x7fffffu;
  if (exponent == 0u) return tuff_f64_of(sign != 0u, fraction, -149);
  const uint wide = exponent == 255u ? 2047u : exponent + 896u;
  return uvec2(fraction << 29, sign | (wide << 20) | (fraction >> 3));
}

// Converts an f64 to the bits of an f32. Rounds to nearest even, or (`odd`) sets the last bit if anything was lost
// ("round to odd"), so that rounding again to 16 bits gives the same as rounding once (Boldo and Melquiond 2008).
uint tuff_narrowed(uvec2 bits, bool odd) {
  const uint sign = bits.y & 0x80000000u;
  const int exponent = int((bits.y >> 20) & 2047u) - 896;  // f32's
  const uint fraction = ((bits.y & 0xfffffu) << 3) | (bits.x >> 29), rest = bits.x & 0x1fffffffu;
  const bool lost = rest != 0u;
  if (exponent == 1151) return sign | (((bits.y & 0xfffffu) | bits.x) != 0u ? 0x7fc00000u : 0x7f800000u);
  if (exponent >= 255) return sign | 0x7f800000u;
  if (exponent > 0) {
    const uint base = (uint(exponent) << 23) | fraction;
    const bool up = rest > 0x10000000u || (rest == 0x10000000u && (base & 1u) != 0u);
    return sign | (odd ? base | uint(lost) : base + uint(up));
  }
  // Denormal or zero: shifts the significand down by `down` bits.
  const uint down = uint(1 - exponent);
  if (down > 24u) return sign | uint(odd && ((bits.y & 0x7fffffffu) | bits.x) != 0u);
  const uint significand = 0x800000u | fraction, base = significand >> down;
  const uint below = significand & ((1u << down) - 1u), half_unit = 1u << (down - 1u);
  const bool up = below > half_unit || (below == half_unit && (lost || (base & 1u) != 0u));
  return sign | (odd ? base | uint(lost || below != 0u) : base + uint(up));
}

TuffWhole tuff_whole_of_f64(uvec2 bits) {
  const int exponent = int((bits.y >> 20) & 2047u) - 1023;
  TuffWhole w = TuffWhole((bits.y & 0x80000000u) != 0u, 0u);
  if (exponent < 0) return w;
  if (exponent >= 32) {
    const bool nan = exponent == 1024 && ((bits.y & 0xfffffu) | bits.x) != 0u;
    w.magnitude = nan ? 0u : 0xffffffffu;
    return w;
  }
  const uint high = (bits.y & 0xfffffu) | 0x100000u, down = uint(52 - exponent);  // 21 .. 52
  w.magnitude = down >= 32u ? high >> (down - 32u) : (high << (32u - down)) | (bits.x >> down);
  return w;
}

TuffWhole tuff_whole_of(uint bits) {
  const int exponent = int((bits >> 23) & 255u) - 127;
  TuffWhole w = TuffWhole((bits & 0x80000000u) != 0u, 0u);
  if (exponent < 0) return w;
  if (exponent >= 32) {
    w.magnitude = (bits & 0x7fffffffu) > 0x7f800000u ? 0u : 0xffffffffu;
    return w;
  }
  const uint significand = (bits & 0x7fffffu) | 0x800000u;
  w.magnitude = exponent >= 23 ? significand << (exponent - 23) : significand >> (23 - exponent);
  return w;
}

// Converts to the bits of an f32, rounding to nearest even or to odd.
uint tuff_f32_of(TuffWhole w, bool odd) {
  if (w.magnitude == 0u) return 0u;
  const uint sign = w.negative ? 0x80000000u : 0u;
  const int top = findMSB(w.magnitude);
  if (top <= 23) return sign | ((uint(126 + top) << 23) + (w.magnitude << uint(23 - top)));
  const uint down = uint(top - 23);  // 1 .. 8
  uint base = w.magnitude >> down;
  const uint below = w.magnitude & ((1u << down) - 1u), half_unit = 1u << (down - 1u);
  const bool up = below > half_unit || (below == half_unit && (base & 1u) != 0u);
  base = odd ? base | uint(below != 0u) : base + uint(up);
  return sign | ((uint(126 + top) << 23) + base);
}

uvec2 tuff_cast(uvec2 bits) {
#if TUFF_IS_SMALL_FLOAT(TUFF_SOURCE)
#if TUFF_SOURCE == 1
  const uint x = bits.x;
#else
  const uint x = floatBitsToUint(TUFF_LOADED(TUFF_SOURCE, bits.x));
#endif
#if TUFF_TARGET == 1
  return uvec2(x, 0u);
#elif TUFF_TARGET == 2
  return uvec2(tuff_f16_bits(uintBitsToFloat(x)), 0u);
#elif TUFF_TARGET == 3
  return uvec2(tuff_bf16_bits(uintBitsToFloat(x)), 0u);
#elif TUFF_TARGET == 4
  return tuff_widened(x);
#else
  return uvec2(tuff_whole_bits(tuff_whole_of(x)), 0u);
#endif
#elif TUFF_SOURCE == 4
#if TUFF_TARGET == 1
  return uvec2(tuff_narrowed(bits, false), 0u);
#elif TUFF_TARGET == 2
  return uvec2(tuff_f16_bits(uintBitsToFloat(tuff_narrowed(bits, true))), 0u);
#elif TUFF_TARGET == 3
  return uvec2(tuff_bf16_bits(uintBitsToFloat(tuff_narrowed(bits, true))), 0u);
#else
  return uvec2(tuff_whole_bits(tuff_whole_of_f64(bits)), 0u);
#endif
#else
#if TUFF_SOURCE == 5 || TUFF_SOURCE == 7
#if TUFF_SOURCE == 7
  const int x = int(bits.x << 24) >> 24;
#else
  const int x = int(bits.x);
#endif
  const TuffWhole w = TuffWhole(x < 0, x < 0 ? 0u - uint(x) : uint(x));
#else
  const TuffWhole w = TuffWhole(false, bits.x);
#endif
#if TUFF_TARGET == 1
  return uvec2(tuff_f32_of(w, false), 0u);
#elif TUFF_TARGET == 2
  return uvec2(tuff_f16_bits(uintBitsToFloat(tuff_f32_of(w, true))), 0u);
#elif TUFF_TARGET == 3
  return uvec2(tuff_bf16_bits(uintBitsToFloat(tuff_f32_of(w, true))), 0u);
#elif TUFF_TARGET == 4
  return tuff_f64_of(w.negative, w.magnitude, 0);
#else
  return uvec2(tuff_whole_bits(w), 0u);
#endif
#endif
}
