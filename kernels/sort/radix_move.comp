// Moves the elements of each row to the order of one digit: see radix.glsl. C has the place of the first element with
// each digit of each chunk.
//
// Without TUFF_LANES a chunk is TUFF_SUBGROUPS subgroups of ITEMS elements for each invocation. Subgroup s has the
// elements s * ITEMS * size … of the chunk, and in step j its lane l has number j * size + l of them: the order of
// steps and lanes is that of the elements. In each step, lanes whose digits are equal find one another by votes.
//
//# TUFF_SUBGROUPS = 1 : 1..8 : subgroups of a workgroup
//# TUFF_CARRY : 0..2 : indices are 0: not wanted; 1: the elements' places in the source; 2: read from I
//# TUFF_VALUES : 0|1 : 1: elements are stored
//# TUFF_INDEX_BYTES : 4|8 : bytes of a stored index
#include "kernels/sort/radix.glsl"
#include "kernels/common/pointer.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint pieces;            // rows * chunks
  uint chunks, chunk;     // of a row, and the elements of one; the last has the rest
  uint extent;            // elements of a row
  uint first_row, inner;  // rows of the source: see first_of()
  uint to_first_row, to_inner;
  uint to_extent;         // elements that are kept of each row
  uint shift, flip, infinity;
} push;

TUFF_READ(0, X, UNIT, TUFF_UNIT)
#if TUFF_CARRY == 2
TUFF_READ(1, I, uint, 4)
#endif
TUFF_READ(2, C, uint, 4)
#if TUFF_VALUES
TUFF_WRITE(3, Y, UNIT, TUFF_UNIT)
#endif
#if TUFF_CARRY
#if TUFF_INDEX_BYTES == 8
TUFF_WRITE(4, J, uvec2, 8)
#define NAME(index) uvec2(index, 0u)
#else
TUFF_WRITE(4, J, uint, 4)
#define NAME(index) index
#endif
#endif

#if TUFF_LANES
const uint UNROLL = 4;  // elements in flight
shared uint counters[DIGITS * TUFF_LANES];  // columns, of which each belongs to one invocation
#else
//# constant ITEMS : elements of an invocation
const uint ITEMS = (TUFF_UNIT == 8 ? 8 : 16);
shared uint counters[TUFF_SUBGROUPS * DIGITS];
#endif

#if TUFF_CARRY == 1
#define INDEX(i) NAME(i)
#elif TUFF_CARRY == 2
#define INDEX(i) NAME(TUFF_FROM(I, indices, i))
#endif
#if TUFF_VALUES
#define STORE_VALUE(at, bits) TUFF_FROM(Y, to, at) = UNIT(bits)
#else
#define STORE_VALUE(at, bits)
#endif
#if TUFF_CARRY
#define STORE_INDEX(at, i) TUFF_FROM(J, to_indices, at) = INDEX(i)
#else
#define STORE_INDEX(at, i)
#endif
// Stores element i of the row, its index, or both, as number `place` of the row's results.
#define MOVE(bits, i, place)                                 \
  if (place < kept) {                                        \
    const TUFF_INDEX at = TUFF_INDEX(place) * to_inner;      \
    STORE_VALUE(at, bits);                                   \
    STORE_INDEX(at, i);                                      \
  }

void main() {
#if TUFF_LANES
  const uint thread = gl_LocalInvocationID.x;
  const uint piece = tuff_group() * TUFF_LANES + thread;
#else
  const uint piece = tuff_group();
#endif
  if (piece >= push.pieces) return;
  const uint row = piece / push.chunks, c = piece - row * push.chunks;
  const uint begin = c * push.chunk, end = begin + min(push.chunk, push.extent - begin);
  const uint inner = push.inner, to_inner = push.to_inner, kept = push.to_extent, shift = push.shift, flip = push.flip,
             infinity = push.infinity;
  TUFF_POINTER(X, from, first_of(push.first_row + row, push.extent, inner));
  const TUFF_INDEX target = first_of(push.to_first_row + row, kept, to_inner);
#if TUFF_VALUES
  TUFF_POINTER(Y, to, target);
#endif
#if TUFF_CARRY
  TUFF_POINTER(J, to_indices, target);
#endif
#if TUFF_CARRY == 2
  TUFF_POINTER(I, indices, TUFF_INDEX(row) * push.extent);
#endif
  const TUFF_INDEX counts = TUFF_INDEX(row) * (DIGITS * push.chunks) + c;
#if TUFF_LANES
  for (uint d = 0; d < DIGITS; ++d) counters[d * TUFF_LANES + thread] = TUFF_AT(C, counts + d * push.chunks);
  uint i = begin;
  for (; i + UNROLL <= end; i += UNROLL) {
    HELD bits[UNROLL];
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) bits[u] = HELD(TUFF_FROM(X, from, TUFF_INDEX(i + u) * inner));
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      const uint counter = digit_of(key_of(bits[u], flip, infinity), shift) * TUFF_LANES + thread;
      const uint place = counters[counter];
      counters[counter] = place + 1;
      MOVE(bits[u], i + u, place)
    }
  }
  for (; i < end; ++i) {
    const HELD bits = HELD(TUFF_FROM(X, from, TUFF_INDEX(i) * inner));
    const uint counter = digit_of(key_of(bits, flip, infinity), shift) * TUFF_LANES + thread;
    const uint place = counters[counter];
    counters[counter] = place + 1;
    MOVE(bits, i, place)
  }
#else
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  for (uint d = thread; d < TUFF_SUBGROUPS * DIGITS; d += gl_WorkGroupSize.x) counters[d] = 0;
  barrier();
  const uint first = begin + gl_SubgroupID * (ITEMS * gl_SubgroupSize) + gl_SubgroupInvocationID;
  const uint own = gl_SubgroupID * DIGITS;
  HELD bits[ITEMS];
  uint digit[ITEMS], rank[ITEMS];
  [[unroll]] for (uint j = 0; j < ITEMS; ++j) {
    const uint i = first + j * gl_SubgroupSize;
    bits[j] = HELD(0);
    if (i < end) bits[j] = HELD(TUFF_FROM(X, from, TUFF_INDEX(i) * inner));
    digit[j] = digit_of(key_of(bits[j], flip, infinity), shift);
  }
  [[unroll]] for (uint j = 0; j < ITEMS; ++j) {
    const bool there = first + j * gl_SubgroupSize < end;
    uvec4 same = subgroupBallot(there);
    for (uint b = 0; b < TUFF_BITS; ++b) {
      const bool bit = ((digit[j] >> b) & 1u) != 0u;
      const uvec4 votes = subgroupBallot(bit);
      same &= bit ? votes : ~votes;
    }
    // Of the earlier steps, and then of the earlier lanes.
    const uint earlier = counters[own + digit[j]], before = subgroupBallotExclusiveBitCount(same);
    rank[j] = earlier + before;
    subgroupBarrier();
    if (there && before == 0u) counters[own + digit[j]] = earlier + subgroupBallotBitCount(same);
    subgroupBarrier();
  }
  barrier();
  // From the number of elements in each subgroup to the place of the first of them.
  for (uint d = thread; d < DIGITS; d += gl_WorkGroupSize.x) {
    uint place = TUFF_AT(C, counts + d * push.chunks);
    for (uint s = 0; s < TUFF_SUBGROUPS; ++s) {
      const uint count = counters[s * DIGITS + d];
      counters[s * DIGITS + d] = place;
      place += count;
    }
  }
  barrier();
  [[unroll]] for (uint j = 0; j < ITEMS; ++j) {
    const uint i = first + j * gl_SubgroupSize;
    if (i < end) {
      const uint place = counters[own + digit[j]] + rank[j];
      MOVE(bits[j], i, place)
    }
  }
#endif
}
