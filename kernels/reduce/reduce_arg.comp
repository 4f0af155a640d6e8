// Where along the middle axis of [outer][extent][inner] the largest or smallest value is: of several the first; the
// first NaN, where there is one.
//
// Result t stands for [outer][segments][inner]: rows of the axis, `rows` of them from segment * rows on, and not beyond
// extent. LANES invocations share it, each taking every LANES-th row, and meet in a tree. A result is a key, which
// orders as the values do, NaN above all, and the row's number; the last stage stores the number alone.
//   TUFF_TYPE     of the input: 1 f32, 2 f16, 3 bf16; 0: results of a stage before
//   TUFF_MINIMUM  1: the smallest value
//   TUFF_LAST     1: only the numbers are stored
//   TUFF_LANES    1, the subgroup's size, or the whole workgroup
//   TUFF_SHARED   1: the workgroup is larger than a subgroup
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint results;
  uint extent, inner, segments, rows;
} push;

#include "kernels/common/types.glsl"
#if TUFF_TYPE == 0
TUFF_READ(0, X, uvec2, 8)
#else
TUFF_READ(0, X, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#endif
#if TUFF_LAST
TUFF_WRITE(1, Y, uint, 4)
#else
TUFF_WRITE(1, Y, uvec2, 8)
#endif

// The better one of two: the larger key, then the smaller number.
uvec2 better(uvec2 a, uvec2 b) {
  const bool second = b.x > a.x || (b.x == a.x && b.y < a.y);
  return second ? b : a;
}

uvec2 load(TUFF_INDEX i, uint row) {
#if TUFF_TYPE == 0
  return TUFF_AT(X, i);
#else
  const uint bits = floatBitsToUint(TUFF_LOADED(TUFF_TYPE, TUFF_AT(X, i)));
  uint key = (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
  key = (bits & 0x7fffffffu) == 0u ? 0x80000000u : key;  // both zeros are one
#if TUFF_MINIMUM
  key = ~key;
#endif
  return uvec2((bits & 0x7fffffffu) > 0x7f800000u ? 0xffffffffu : key, row);
#endif
}

#if TUFF_SHARED
shared uvec2 parts[TUFF_LANES];
#endif

void main() {
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  // Surplus lanes repeat the last result: every lane has a part in the shuffles.
  const uint lane = thread % TUFF_LANES;
  const uint t = min(tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES, push.results - 1);
  const uint slice = t / push.inner, column = t - slice * push.inner;
  const uint outer = slice / push.segments, segment = slice - outer * push.segments;
  const uint begin = segment * push.rows, end = min(begin + push.rows, push.extent);
  const TUFF_INDEX base = TUFF_INDEX(outer) * push.extent * push.inner + column;
  uvec2 best = uvec2(0u, 0xffffffffu);
  uint row = begin + lane;
  for (; row + 3 * TUFF_LANES < end; row += 4 * TUFF_LANES) {
    const uvec2 a = load(base + TUFF_INDEX(row) * push.inner, row);
    const uvec2 b = load(base + TUFF_INDEX(row + TUFF_LANES) * push.inner, row + TUFF_LANES);
    const uvec2 c = load(base + TUFF_INDEX(row + 2 * TUFF_LANES) * push.inner, row + 2 * TUFF_LANES);
    const uvec2 d = load(base + TUFF_INDEX(row + 3 * TUFF_LANES) * push.inner, row + 3 * TUFF_LANES);
    best = better(best, better(better(a, b), better(c, d)));
  }
  for (; row < end; row += TUFF_LANES) best = better(best, load(base + TUFF_INDEX(row) * push.inner, row));
#if TUFF_LANES > 1
  for (uint mask = 1; mask < gl_SubgroupSize; mask *= 2) best = better(best, subgroupShuffleXor(best, mask));
#if TUFF_SHARED
  if (gl_SubgroupInvocationID == 0) parts[gl_SubgroupID] = best;
  barrier();
  for (uint width = gl_NumSubgroups / 2; width > 0; width /= 2) {
    if (thread < width) parts[thread] = better(parts[thread], parts[thread + width]);
    barrier();
  }
  best = parts[0];
#endif
#endif
  if (lane != 0) return;
#if TUFF_LAST
  TUFF_AT(Y, TUFF_INDEX(t)) = best.y;
#else
  TUFF_AT(Y, TUFF_INDEX(t)) = best;
#endif
}
