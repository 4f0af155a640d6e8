// Counts how often each value of a digit occurs in each chunk of each row: see radix.glsl.
#include "kernels/sort/radix.glsl"
#include "kernels/common/pointer.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint pieces;            // rows * chunks
  uint chunks, chunk;     // of a row, and the elements of one; the last has the rest
  uint extent;            // elements of a row
  uint first_row, inner;  // rows of the source: see first_of()
  uint shift, flip, infinity;
} push;

TUFF_READ(0, X, UNIT, TUFF_UNIT)
TUFF_WRITE(1, C, uint, 4)

#if TUFF_WORDS
TUFF_READ(0, X4, uint, 4)
#endif
#if !TUFF_LANES
// Several copies, so that lanes whose digits are equal do not all wait for one counter.
const uint COPIES = 8, UNROLL = 4;
shared uint counters[DIGITS * COPIES];
#endif

void main() {
  const uint thread = gl_LocalInvocationID.x;
#if TUFF_LANES
  const uint piece = tuff_group() * TUFF_LANES + thread;
#else
  const uint piece = tuff_group();
#endif
  if (piece >= push.pieces) return;
  const uint row = piece / push.chunks, c = piece - row * push.chunks;
  const uint begin = c * push.chunk, end = begin + min(push.chunk, push.extent - begin);
  const uint inner = push.inner, shift = push.shift, flip = push.flip, infinity = push.infinity;
  const TUFF_INDEX source = first_of(push.first_row + row, push.extent, inner);
  TUFF_POINTER(X, from, source);
  const TUFF_INDEX counts = TUFF_INDEX(row) * (DIGITS * push.chunks) + c;
#if TUFF_LANES
  WORDS_AT(source);
  COUNTERS;
  for (uint d = 0; d < DIGITS; ++d) { SET_COUNTER(d, 0u); }
  uint i = begin;
  for (; i + UNROLL <= end; i += UNROLL) {
    HELD bits[UNROLL];
    LOAD(bits, i);
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      const uint digit = digit_of(key_of(bits[u], flip, infinity), shift);
      ADVANCE(digit);
    }
  }
  for (; i < end; ++i) {
    const HELD bits = HELD(TUFF_FROM(X, from, TUFF_INDEX(i) * inner));
    const uint digit = digit_of(key_of(bits, flip, infinity), shift);
    ADVANCE(digit);
  }
  for (uint d = 0; d < DIGITS; ++d) TUFF_AT(C, counts + d * push.chunks) = COUNTER(d);
#else
  for (uint d = thread; d < DIGITS * COPIES; d += gl_WorkGroupSize.x) counters[d] = 0;
  barrier();
  const uint copy = thread % COPIES;
  uint i = begin + thread;
  for (; i + (UNROLL - 1) * gl_WorkGroupSize.x < end; i += UNROLL * gl_WorkGroupSize.x) {
    HELD bits[UNROLL];
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      bits[u] = HELD(TUFF_FROM(X, from, TUFF_INDEX(i + u * gl_WorkGroupSize.x) * inner));
    }
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      atomicAdd(counters[digit_of(key_of(bits[u], flip, infinity), shift) * COPIES + copy], 1u);
    }
  }
  for (; i < end; i += gl_WorkGroupSize.x) {
    const HELD bits = HELD(TUFF_FROM(X, from, TUFF_INDEX(i) * inner));
    atomicAdd(counters[digit_of(key_of(bits, flip, infinity), shift) * COPIES + copy], 1u);
  }
  barrier();
  for (uint d = thread; d < DIGITS; d += gl_WorkGroupSize.x) {
    uint sum = 0;
    for (uint c = 0; c < COPIES; ++c) sum += counters[d * COPIES + c];
    TUFF_AT(C, counts + d * push.chunks) = sum;
  }
#endif
}
