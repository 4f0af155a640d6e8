// Rotates pairs of elements: (p, q) becomes (p cos a - q sin a, p sin a + q cos a) with
// a = position * base^(-2i / rotary).
//
// A lane processes four neighbouring pairs of one position in HEADS heads one after another, so that their sines and
// cosines are computed once. After the blocks of pairs come blocks of four elements that are copied unchanged.
//
// Angles are 64-bit fractions of a full turn. base^(-2i / rotary) / 2 pi is computed as a power of a factor that is
// given to 64 bits; multiplied by the position, the bits of whole turns overflow and are lost. The error stays below
// position * i * 2^-63 turns.
//# TUFF_TYPE : 1..3 : element type of the operands, as in tuff.h
//# TUFF_POSITIONS : 0|1 : 1: positions come from a buffer
//# TUFF_INTERLEAVED : 0|1 : 1: pair i is elements 2i and 2i + 1; 0: elements i and i + rotary / 2
//# TUFF_SINGLE : 0|1 : 1: elements are read one by one, as sizes or strides are not multiples of four
//   HEADS (specialisation constant): heads that a lane processes
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/elementwise/trigonometry.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint HEADS = 1;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint items;  // [batch][head groups][seq][blocks]
  uint seq, heads, head_groups, blocks, pair_blocks, pairs, head_dim;
  uint input_strides[3], output_strides[3];  // of batch, head, position
  uint positions_stride;
  int offset;
  uint factor_low, factor_high;  // base^(-2 / rotary) * 2^64
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)
#if TUFF_POSITIONS
TUFF_READ(2, P, int, 4)
#endif

// The upper 64 bits of a * b; x is the low word.
uvec2 scaled(uvec2 a, uvec2 b) {
  uint top, high, one, one_low, two, two_low, low, unused, carry, more;
  umulExtended(a.y, b.y, top, high);
  umulExtended(a.y, b.x, one, one_low);
  umulExtended(a.x, b.y, two, two_low);
  umulExtended(a.x, b.x, low, unused);
  low = uaddCarry(low, one_low, carry);
  low = uaddCarry(low, two_low, more);
  carry += more;
  high = uaddCarry(high, one, more);
  top += more;
  high = uaddCarry(high, two, more);
  top += more;
  high = uaddCarry(high, carry, more);
  return uvec2(high, top + more);
}

// The angle turns * position, reduced to the quadrant and remainder that tuff_quarter expects.
float reduced(uvec2 turns, int position, out uint quadrant) {
  uint high, low;
  umulExtended(turns.x, uint(position), high, low);
  high += turns.y * uint(position) - (position < 0 ? turns.x : 0u);
  quadrant = (high + 0x20000000u) >> 30;
  const int rest = int(high - (quadrant << 30));  // at most an eighth of a turn
  // Each conversion takes at most 24 bits, so neither rounds.
  precise float r = float(rest & ~0xff) + (float(rest & 0xff) + float(low >> 8) * 5.9604644775390625e-8);  // 2^-24
  r = r * 2.3283064365386963e-10 * 6.28318530717958648;  // 2^-32
  return r;
}

#if TUFF_SINGLE
vec4 load4(TUFF_INDEX at, uint step, uint count) {
  vec4 v = vec4(0);
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    if (c < count) v[c] = X_load(at + c * step);
  }
  return v;
}
void store4(TUFF_INDEX at, uint step, uint count, vec4 v) {
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    if (c < count) Y_store(at + c * step, v[c]);
  }
}
#else
vec4 load4(TUFF_INDEX at) { return X_load_block(at / 4).part[0]; }
void store4(TUFF_INDEX at, vec4 v) {
  TuffBlock block;
  block.part[0] = v;
  Y_store_block(at / 4, block);
}
#endif

void turn(TUFF_INDEX from, TUFF_INDEX to, uint first, uint count, vec4 sine, vec4 cosine) {
#if TUFF_INTERLEAVED
  from += 2 * first;
  to += 2 * first;
#if TUFF_SINGLE
  const vec4 p = load4(from, 2, count), q = load4(from + 1, 2, count);
  store4(to, 2, count, p * cosine - q * sine);
  store4(to + 1, 2, count, p * sine + q * cosine);
#else
  const vec4 a = load4(from), b = load4(from + 4);
  const vec4 p = vec4(a.xz, b.xz), q = vec4(a.yw, b.yw);
  const vec4 x = p * cosine - q * sine, y = p * sine + q * cosine;
  store4(to, vec4(x.x, y.x, x.y, y.y));
  store4(to + 4, vec4(x.z, y.z, x.w, y.w));
#endif
#else
  from += first;
  to += first;
#if TUFF_SINGLE
  const vec4 p = load4(from, 1, count), q = load4(from + push.pairs, 1, count);
  store4(to, 1, count, p * cosine - q * sine);
  store4(to + push.pairs, 1, count, p * sine + q * cosine);
#else
  const vec4 p = load4(from), q = load4(from + push.pairs);
  store4(to, p * cosine - q * sine);
  store4(to + push.pairs, p * sine + q * cosine);
#endif
#endif
}

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
  uint rest = item / push.blocks;
  const uint block = item - rest * push.blocks;
  uint outer = rest / push.seq;
  const uint s = rest - outer * push.seq, batch = outer / push.head_groups;
  const uint head = (outer - batch * push.head_groups) * HEADS, heads = min(HEADS, push.heads - head);
  TUFF_INDEX from = TUFF_INDEX(batch) * push.input_strides[0] + TUFF_INDEX(head) * push.input_strides[1] +
                    TUFF_INDEX(s) * push.input_strides[2];
  TUFF_INDEX to = TUFF_INDEX(batch) * push.output_strides[0] + TUFF_INDEX(head) * push.output_strides[1] +
                  TUFF_INDEX(s) * push.output_strides[2];
  if (block >= push.pair_blocks) {
    const uint first = 2 * push.pairs + 4 * (block - push.pair_blocks);
    for (uint h = 0; h < heads; ++h, from += push.input_strides[1], to += push.output_strides[1]) {
#if TUFF_SINGLE
      const uint count = min(push.head_dim - first, 4u);
      store4(to + first, 1, count, load4(from + first, 1, count));
#else
      store4(to + first, load4(from + first));
#endif
    }
    return;
  }
  int position = push.offset;
#if TUFF_POSITIONS
  position += TUFF_AT(P, TUFF_INDEX(batch) * push.positions_stride + s);
#else
  position += int(s);
#endif
  const uint first = 4 * block, count = min(push.pairs - first, 4u);
  uvec2 turns = uvec2(0x9391054au, 0x28be60dbu);  // 2^64 / 2 pi
  uvec2 factor = uvec2(push.factor_low, push.factor_high), power = factor;
  for (uint bits = first; bits != 0; bits >>= 1, power = scaled(power, power)) {
    if ((bits & 1u) != 0) turns = scaled(turns, power);
  }
  vec4 r;
  uvec4 quadrant;
  [[unroll]] for (uint c = 0; c < 4; ++c, turns = scaled(turns, factor)) {
    uint q;
    r[c] = reduced(turns, position, q);
    quadrant[c] = q;
  }
  const vec4 sine = tuff_quarter(r, quadrant), cosine = tuff_quarter(r, quadrant + 1u);
  for (uint h = 0; h < heads; ++h, from += push.input_strides[1], to += push.output_strides[1]) {
    turn(from, to, first, count, sine, cosine);
  }
}
