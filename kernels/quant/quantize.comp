// output[i] = saturate(round(input[i] / scale) + zero point), for i < n. Eight elements are an item, of the last one
// perhaps fewer. Each workgroup has RUN * (workgroup size) consecutive items; in step s lane l has item
// s * (workgroup size) + l.
//
// Quotients have the bits of an IEEE 754 division on every device: significands are divided on their own, so that
// nothing is denormal, and where a device's division is not correctly rounded, integers correct it.
//
//# TUFF_TYPE : 1..3 : element type of the input, as in tuff.h
//# TUFF_QUOTIENT : 1..3 : type of the quotients
//# TUFF_EXACT_ARITHMETIC : 0|1 : 1: "/" is correctly rounded (CPUs)
//# TUFF_RUN : 0.. : items that a lane processes one after another; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint n, run;
  uint axis, inner, block, blocks;
  uint first_i, first_a, first_zero;
} push;

#include "kernels/elementwise/blocks.glsl"
#include "kernels/quant/quant_integers.glsl"
#include "kernels/quant/quant_places.glsl"

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_WRITE(3, Y, uint8_t, 1)
#if TUFF_VECTOR
TUFF_WRITE(3, Y8, EIGHT, TUFF_BITS)
#endif

// A finite number other than 0 is significand * 2^(exponent - 150) with 2^23 <= significand < 2^24.
struct Parts {
  uvec4 significand;
  ivec4 exponent;
};
Parts parts_of(uvec4 magnitude) {
  // Converting the bits of a denormal as an integer normalises it, also where the device flushes denormals.
  const uvec4 normalised = floatBitsToUint(vec4(ivec4(magnitude)));
  const bvec4 tiny = lessThan(magnitude, uvec4(0x00800000u));
  const uvec4 bits = mix(magnitude, normalised, tiny);
  Parts p;
  p.significand = (bits & 0x7fffffu) | 0x800000u;
  p.exponent = ivec4(bits >> 23) - mix(ivec4(0), ivec4(149), tiny);
  return p;
}

// The quotient of two significands, rounded to 24 bits, as the bits of an f32.
uvec4 divided(uvec4 a, uvec4 b) {
  precise vec4 q = uintBitsToFloat(a ^ 0x3f000000u) / uintBitsToFloat(b ^ 0x3f000000u);  // both in [1, 2)
#if TUFF_EXACT_ARITHMETIC
  return floatBitsToUint(q);
#else
  // An integer Q of 24 bits with |a 2^shift - Q b| <= b / 2. The remainder is computed modulo 2^32: Vulkan allows an
  // error of 2.5 units in the last place, so that it is below 4 * 2^24.
  const bvec4 large = greaterThanEqual(a, b);
  const uvec4 shift = mix(uvec4(24), uvec4(23), large);
  const vec4 unit = mix(vec4(16777216.0), vec4(8388608.0), large);
  uvec4 whole = clamp(uvec4(q * unit), uvec4(0x800000u), uvec4(0x1000000u));
  ivec4 rest = ivec4((a << shift) - whole * b);
  const ivec4 divisor = ivec4(b);
  [[unroll]] for (uint i = 0; i < 4; ++i) {
    const ivec4 up = ivec4(greaterThan(rest + rest, divisor)), down = ivec4(lessThan(rest + rest, -divisor));
    whole = uvec4(ivec4(whole) + up - down);
    rest -= (up - down) * divisor;
  }
  return floatBitsToUint(vec4(ivec4(whole))) - (shift << 23);
#endif
}

// x / scale in f32. Quotients below 2^-126 give 0.
vec4 quotient(vec4 x, vec4 scale) {
  const uvec4 xs = floatBitsToUint(x), ss = floatBitsToUint(scale), sign = (xs ^ ss) & 0x80000000u;
  const uvec4 a = xs & 0x7fffffffu, b = ss & 0x7fffffffu;
  const Parts p = parts_of(a), s = parts_of(b);
  const uvec4 bits = divided(p.significand, s.significand);
  const ivec4 exponent = ivec4(bits >> 23) + p.exponent - s.exponent;
  uvec4 q = (bits & 0x7fffffu) | (uvec4(exponent) << 23);
  q = mix(q, uvec4(0u), lessThan(exponent, ivec4(1)));
  q = mix(q, uvec4(0x7f800000u), greaterThan(exponent, ivec4(254)));
  const uvec4 infinity = uvec4(0x7f800000u);
  const bvec4 zero_a = equal(a, uvec4(0u)), zero_b = equal(b, uvec4(0u));
  q = mix(q, uvec4(0u), zero_a);
  q = mix(q, uvec4(0u), equal(b, infinity));
  q = mix(q, infinity, zero_b);
  q = mix(q, infinity, equal(a, infinity));
  q |= sign;
  const uvec4 both = uvec4(zero_a) & uvec4(zero_b), infinite = uvec4(equal(a, infinity)) & uvec4(equal(b, infinity));
  const bvec4 nan = bvec4(both | infinite | uvec4(greaterThan(a, infinity)) | uvec4(greaterThan(b, infinity)));
  return uintBitsToFloat(mix(q, uvec4(0x7fc00000u), nan));
}

#if TUFF_NEGATIVE
#define LEAST (-(1 << (TUFF_BITS - 1)))
#else
#define LEAST 0
#endif
#define MOST (LEAST + (1 << TUFF_BITS) - 1)

uvec4 quantised(vec4 x, vec4 scale, ivec4 zero) {
#if TUFF_QUOTIENT != 1
  x = TUFF_AS_STORED(TUFF_QUOTIENT, x);
  scale = TUFF_AS_STORED(TUFF_QUOTIENT, scale);
#endif
  vec4 q = quotient(x, scale);
#if TUFF_QUOTIENT != 1
  q = TUFF_AS_STORED(TUFF_QUOTIENT, q);
#endif
  // Bits are compared: a driver may assume that floats are never NaN. What is beyond 1024 saturates in any case.
  const uvec4 bits = floatBitsToUint(q), magnitude = bits & 0x7fffffffu;
  vec4 bounded = uintBitsToFloat(min(magnitude, uvec4(0x44800000u)) | (bits & 0x80000000u));
  bounded = mix(bounded, vec4(0.0), greaterThan(magnitude, uvec4(0x7f800000u)));
  return uvec4(clamp(ivec4(roundEven(bounded)) + zero, ivec4(LEAST), ivec4(MOST)));
}

void put(uint at, uint count, uvec4 low, uvec4 high) {
#if TUFF_BITS == 8
#if TUFF_VECTOR
  if (count == 8u) {
    TUFF_AT(Y8, at / 8) = uvec2(tuff_quad(low), tuff_quad(high));
    return;
  }
#endif
  [[unroll]] for (uint c = 0; c < 8; ++c) {
    if (c < count) TUFF_AT(Y, at + c) = uint8_t(c < 4 ? low[c & 3] : high[c & 3]);
  }
#else
  // Elements beyond the last one count as 0.
  [[unroll]] for (uint c = 0; c < 8; ++c) {
    if (c >= count) {
      if (c < 4) low[c & 3] = 0u; else high[c & 3] = 0u;
    }
  }
  low = (low & 15u) << uvec4(0, 4, 8, 12);
  high = (high & 15u) << uvec4(16, 20, 24, 28);
  const uint word = low.x | low.y | low.z | low.w | high.x | high.y | high.z | high.w;
#if TUFF_VECTOR
  if (count == 8u) {
    TUFF_AT(Y8, at / 8) = word;
    return;
  }
#endif
  [[unroll]] for (uint c = 0; c < 8; c += 2) {
    if (c < count) TUFF_AT(Y, (at + c) / 2) = uint8_t((word >> (4 * c)) & 0xffu);
  }
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x, items = (push.n + 7) / 8;
  uint item = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && item < items; ++step, item += lanes) {
    const uint at = 8 * item, count = min(push.n - at, 8u);
    TuffBlock x;
    if (count == 8u) {
      x = X_load_block(item);
    } else {
      [[unroll]] for (uint c = 0; c < 8; ++c) x.part[c / 4][c & 3] = c < count ? X_load(at + c) : 0.0;
    }
    const Eight e = scales_of(at);
    put(at, count, quantised(x.part[0], e.scale[0], e.zero[0]), quantised(x.part[1], e.scale[1], e.zero[1]));
  }
}
