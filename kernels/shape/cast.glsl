// Converts one element from bits to bits, by integer arithmetic of 32 bits alone. All devices thus give the same bits,
// 64-bit types work without 64-bit arithmetic, and the result does not depend on a driver's rounding. An element is a
// uvec2, whose y is used by 64-bit types only.
//# TUFF_SOURCE : 1..15 : source type, as in tuff.h
//# TUFF_TARGET : 1..15 : target type
//
// Conversion to a float rounds once, to nearest even; 8-bit floats saturate. Conversion to an integer truncates towards
// zero and saturates; NaN gives 0. A bool is whether the element differs from zero.
//
// Everything passes through one of four intermediate forms, which hold every number of the source exactly: the bits of
// an f32 (for floats of up to 32 bits), those of an f64, or sign and magnitude of an integer with 32 or 64 bits.
#include "kernels/common/types.glsl"

#define TUFF_IS_SMALL_FLOAT(type) (type == 1 || type == 2 || type == 3 || type == 14 || type == 15)
#define TUFF_IS_LONG(type) (type == 9 || type == 10)
#define TUFF_IS_SIGNED(type) (type == 5 || type == 7 || type == 9 || type == 11)

// An integer as sign and magnitude, the intermediate form of conversions from and to integers.
struct TuffWhole {
  bool negative;
  uint magnitude;  // 2^32 - 1 for everything beyond it
};
struct TuffLong {
  bool negative;
  uvec2 magnitude;  // low and high word; 2^64 - 1 for everything beyond it
};

// Saturates to an integer type of up to 32 bits.
uint tuff_whole_bits(TuffWhole w) {
#if TUFF_TARGET == 5
  const uint most = 0x7fffffffu, least = 0x80000000u;
#elif TUFF_TARGET == 6
  const uint most = 0xffffffffu, least = 0u;
#elif TUFF_TARGET == 7
  const uint most = 127u, least = 128u;
#elif TUFF_TARGET == 11
  const uint most = 32767u, least = 32768u;
#elif TUFF_TARGET == 12
  const uint most = 65535u, least = 0u;
#else
  const uint most = 255u, least = 0u;
#endif
  return w.negative ? 0u - min(w.magnitude, least) : min(w.magnitude, most);
}

// Saturates to TUFF_I64 or TUFF_U64.
uvec2 tuff_long_bits(TuffLong w) {
#if TUFF_TARGET == 9
  if (!w.negative) return w.magnitude.y > 0x7fffffffu ? uvec2(0xffffffffu, 0x7fffffffu) : w.magnitude;
  if (w.magnitude.y > 0x7fffffffu) return uvec2(0u, 0x80000000u);
  return uvec2(0u - w.magnitude.x, ~w.magnitude.y + uint(w.magnitude.x == 0u));
#else
  return w.negative ? uvec2(0u) : w.magnitude;
#endif
}

TuffWhole tuff_shortened(TuffLong w) {
  return TuffWhole(w.negative, w.magnitude.y != 0u ? 0xffffffffu : w.magnitude.x);
}

// value << by for by < 64.
uvec2 tuff_shift_left(uvec2 value, uint by) {
  if (by >= 32u) return uvec2(0u, value.x << (by - 32u));
  if (by == 0u) return value;
  return uvec2(value.x << by, (value.y << by) | (value.x >> (32u - by)));
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

uvec2 tuff_f64_of(TuffLong w) {
  if (w.magnitude.y == 0u) return tuff_f64_of(w.negative, w.magnitude.x, 0);
  const uint up = 31u - uint(findMSB(w.magnitude.y));
  const uvec2 m = tuff_shift_left(w.magnitude, up);  // its highest bit is set; the 11 lowest are rounded away
  const uint low = (m.x >> 11) | (m.y << 21), rest = m.x & 0x7ffu;
  const uint rounded = low + uint(rest > 0x400u || (rest == 0x400u && (low & 1u) != 0u));
  const uint carry = uint(rounded < low);  // may go up to the exponent, which is right
  return uvec2(rounded, (w.negative ? 0x80000000u : 0u) + ((1085u - up) << 20) + (m.y >> 11) + carry);
}

uvec2 tuff_widened(uint bits) {
  const uint sign = bits & 0x80000000u, exponent = (bits >> 23) & 255u, fraction = bits & 0x7fffffu;
  if (exponent == 0u) return tuff_f64_of(sign != 0u, fraction, -149);
  const uint wide = exponent == 255u ? 2047u : exponent + 896u;
  return uvec2(fraction << 29, sign | (wide << 20) | (fraction >> 3));
}

// Converts an f64 to the bits of an f32. Rounds to nearest even, or (`odd`) sets the last bit if anything was lost
// ("round to odd"), so that rounding again to 16 or 8 bits gives the same as rounding once (Boldo and Melquiond 2008).
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

TuffLong tuff_long_of_f64(uvec2 bits) {
  const int exponent = int((bits.y >> 20) & 2047u) - 1023;
  if (exponent < 32) {
    const TuffWhole w = tuff_whole_of_f64(bits);
    return TuffLong(w.negative, uvec2(w.magnitude, 0u));
  }
  TuffLong w = TuffLong((bits.y & 0x80000000u) != 0u, uvec2(0xffffffffu));
  const uvec2 significand = uvec2(bits.x, (bits.y & 0xfffffu) | 0x100000u);
  if (exponent >= 64) {
    const bool nan = exponent == 1024 && ((bits.y & 0xfffffu) | bits.x) != 0u;
    if (nan) w.magnitude = uvec2(0u);
  } else if (exponent >= 52) {
    w.magnitude = tuff_shift_left(significand, uint(exponent - 52));
  } else {
    const uint down = uint(52 - exponent);  // 1 .. 20
    w.magnitude = uvec2((significand.x >> down) | (significand.y << (32u - down)), significand.y >> down);
  }
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

TuffLong tuff_long_of(uint bits) {
  const int exponent = int((bits >> 23) & 255u) - 127;
  if (exponent < 32) {
    const TuffWhole w = tuff_whole_of(bits);
    return TuffLong(w.negative, uvec2(w.magnitude, 0u));
  }
  TuffLong w = TuffLong((bits & 0x80000000u) != 0u, uvec2(0xffffffffu));
  if (exponent < 64) {
    w.magnitude = tuff_shift_left(uvec2((bits & 0x7fffffu) | 0x800000u, 0u), uint(exponent - 23));
  } else if ((bits & 0x7fffffffu) > 0x7f800000u) {
    w.magnitude = uvec2(0u);
  }
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

// The same from 64 bits. The 32 highest ones, the last of which is set if any below them is, round like all of them.
uint tuff_f32_of(TuffLong w, bool odd) {
  if (w.magnitude.y == 0u) return tuff_f32_of(TuffWhole(w.negative, w.magnitude.x), odd);
  const uint up = 31u - uint(findMSB(w.magnitude.y));
  const uvec2 m = tuff_shift_left(w.magnitude, up);
  return tuff_f32_of(TuffWhole(w.negative, m.y | uint(m.x != 0u)), odd) + ((32u - up) << 23);
}

// Converts the bits of an f32 to those of a smaller float.
uint tuff_small(uint x) {
#if TUFF_TARGET == 2
  return tuff_f16_bits(uintBitsToFloat(x));
#elif TUFF_TARGET == 3
  return tuff_bf16_bits(uintBitsToFloat(x));
#elif TUFF_TARGET == 14
  return tuff_e4m3_bits(x);
#elif TUFF_TARGET == 15
  return tuff_e5m2_bits(x);
#else
  return x;
#endif
}

#if TUFF_IS_SMALL_FLOAT(TUFF_SOURCE)
#define TUFF_FORM uint
TUFF_FORM tuff_taken(uvec2 bits) {
#if TUFF_SOURCE == 1
  return bits.x;
#elif TUFF_SOURCE == 14
  return tuff_e4m3_word(bits.x);
#elif TUFF_SOURCE == 15
  return tuff_e5m2_word(bits.x);
#else
  return floatBitsToUint(TUFF_LOADED(TUFF_SOURCE, bits.x));
#endif
}
#define TUFF_TO_F32(x, odd) (x)
#define TUFF_TO_F64(x) tuff_widened(x)
#define TUFF_TO_WHOLE(x) tuff_whole_of(x)
#define TUFF_TO_LONG(x) tuff_long_of(x)
#define TUFF_DIFFERS(x) (((x) & 0x7fffffffu) != 0u)

#elif TUFF_SOURCE == 4
#define TUFF_FORM uvec2
TUFF_FORM tuff_taken(uvec2 bits) { return bits; }
#define TUFF_TO_F32(x, odd) tuff_narrowed(x, odd)
#define TUFF_TO_F64(x) (x)
#define TUFF_TO_WHOLE(x) tuff_whole_of_f64(x)
#define TUFF_TO_LONG(x) tuff_long_of_f64(x)
#define TUFF_DIFFERS(x) (((x.y & 0x7fffffffu) | x.x) != 0u)

#elif TUFF_IS_LONG(TUFF_SOURCE)
#define TUFF_FORM TuffLong
TUFF_FORM tuff_taken(uvec2 bits) {
#if TUFF_IS_SIGNED(TUFF_SOURCE)
  if ((bits.y & 0x80000000u) != 0u) return TuffLong(true, uvec2(0u - bits.x, ~bits.y + uint(bits.x == 0u)));
#endif
  return TuffLong(false, bits);
}
#define TUFF_TO_F32(x, odd) tuff_f32_of(x, odd)
#define TUFF_TO_F64(x) tuff_f64_of(x)
#define TUFF_TO_WHOLE(x) tuff_shortened(x)
#define TUFF_TO_LONG(x) (x)
#define TUFF_DIFFERS(x) ((x.magnitude.x | x.magnitude.y) != 0u)

#else
#define TUFF_FORM TuffWhole
TUFF_FORM tuff_taken(uvec2 bits) {
#if TUFF_IS_SIGNED(TUFF_SOURCE)
  const int unused = 32 - 8 * TUFF_SOURCE_BYTES, x = int(bits.x << unused) >> unused;
  return TuffWhole(x < 0, x < 0 ? 0u - uint(x) : uint(x));
#elif TUFF_SOURCE == 13
  return TuffWhole(false, uint(bits.x != 0u));
#else
  return TuffWhole(false, bits.x);
#endif
}
#define TUFF_TO_F32(x, odd) tuff_f32_of(x, odd)
#define TUFF_TO_F64(x) tuff_f64_of(x.negative, x.magnitude, 0)
#define TUFF_TO_WHOLE(x) (x)
#define TUFF_TO_LONG(x) TuffLong(x.negative, uvec2(x.magnitude, 0u))
#define TUFF_DIFFERS(x) (x.magnitude != 0u)
#endif

uvec2 tuff_cast(uvec2 bits) {
  const TUFF_FORM x = tuff_taken(bits);
#if TUFF_IS_SMALL_FLOAT(TUFF_TARGET)
  return uvec2(tuff_small(TUFF_TO_F32(x, TUFF_TARGET != 1)), 0u);
#elif TUFF_TARGET == 4
  return TUFF_TO_F64(x);
#elif TUFF_TARGET == 13
  return uvec2(uint(TUFF_DIFFERS(x)), 0u);
#elif TUFF_IS_LONG(TUFF_TARGET)
  return tuff_long_bits(TUFF_TO_LONG(x));
#else
  return uvec2(tuff_whole_bits(TUFF_TO_WHOLE(x)), 0u);
#endif
}
