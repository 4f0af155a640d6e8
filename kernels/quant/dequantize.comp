// output[i] = (input[i] - zero point) * scale, for i < n. Items and runs are those of quantize.comp. Products are rounded
// to f32 and then to the output's type. A denormal scale is multiplied as an integer, because devices may flush it.
//
//# TUFF_TYPE : 1..3 : element type of the output, as in tuff.h
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

TUFF_BLOCKS_WRITE(3, Y, TUFF_TYPE)
TUFF_READ(0, X, uint8_t, 1)
#if TUFF_VECTOR
TUFF_READ(0, X8, EIGHT, TUFF_BITS)
#endif

Integers load(uint item, uint count) {
#if TUFF_VECTOR
  if (count == 8u) return eight_of(TUFF_AT(X8, item));
#endif
  const uint at = 8 * item;
#if TUFF_BITS == 8
  uvec2 words = uvec2(0u);
  [[unroll]] for (uint c = 0; c < 8; ++c) {
    if (c < count) words[c / 4] |= uint(TUFF_AT(X, at + c)) << (8 * (c & 3));
  }
#else
  uint words = 0u;
  [[unroll]] for (uint c = 0; c < 8; c += 2) {
    if (c < count) words |= uint(TUFF_AT(X, (at + c) / 2)) << (4 * c);
  }
#endif
  return eight_of(words);
}

vec4 scaled(ivec4 number, vec4 scale) {
  precise vec4 y = vec4(number) * scale;
  const uvec4 bits = floatBitsToUint(scale), magnitude = bits & 0x7fffffffu;
  const bvec4 tiny = lessThan(magnitude - 1u, uvec4(0x007fffffu));
  if (any(tiny)) {
    // scale is magnitude * 2^-149. The product is rounded as if it were normal, and then given that exponent, unless it
    // stays below 2^23: then it is exact, and its bits are the denormal's.
    precise vec4 product = vec4(abs(number)) * vec4(ivec4(magnitude));
    const uvec4 normal = floatBitsToUint(product) - (149u << 23), denormal = uvec4(product);
    const uvec4 sign = (uvec4(number) ^ bits) & 0x80000000u;
    y = mix(y, uintBitsToFloat(sign | mix(normal, denormal, lessThan(product, vec4(8388608.0)))), tiny);
  }
  return y;
}

void main() {
  const uint lanes = gl_WorkGroupSize.x, items = (push.n + 7) / 8;
  uint item = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && item < items; ++step, item += lanes) {
    const uint at = 8 * item, count = min(push.n - at, 8u);
    const Integers q = load(item, count);
    const Eight e = scales_of(at);
    TuffBlock y;
    [[unroll]] for (uint p = 0; p < 2; ++p) y.part[p] = scaled(q.part[p] - e.zero[p], e.scale[p]);
    if (count == 8u) {
      Y_store_block(item, y);
    } else {
      [[unroll]] for (uint c = 0; c < 8; ++c) {
        if (c < count) Y_store(at + c, y.part[c / 4][c & 3]);
      }
    }
  }
}
