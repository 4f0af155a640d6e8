// Moves the elements of each row to the order of one digit: see radix.glsl. C has the place of the first element with
// each digit of each chunk.
//
// Without TUFF_LANES a workgroup takes its chunk in tiles of TUFF_SUBGROUPS subgroups, each with TUFF_ITEMS elements
// for each invocation. Subgroup s has the elements s * TUFF_ITEMS * size ... of the tile, and in step j its lane l has
// number j * size + l of them: the order of steps and lanes is that of the elements. In each step, lanes whose digits
// are equal find one another by votes. The tile is sorted in shared memory first, so that elements with equal digits,
// which go to neighbouring places, are stored by neighbouring lanes:
//
//   slot      an element's rank among those with its digit in its subgroup; then its place in the sorted tile
//   counters  how many elements of a subgroup have a digit; then how many of earlier subgroups
//   shifts    from an element's slot in the sorted tile to its place in the row
//
//# TUFF_SUBGROUPS = 1 : 1..16 : subgroups of a workgroup
//# TUFF_THREADS = 0 : 0..1024 : invocations of a workgroup, without TUFF_LANES
//# TUFF_NARROW = 0 : 0|1 : 1: subgroups have at most 32 invocations
//# TUFF_ITEMS = 1 : 1..32 : elements of an invocation in a tile, without TUFF_LANES
//# TUFF_CARRY : 0..2 : indices are 0: not wanted; 1: the elements' places in the source; 2: read from I
//# TUFF_VALUES : 0|1 : 1: elements are stored
//# TUFF_INDEX_BYTES : 4|8 : bytes of a stored index
#extension GL_KHR_memory_scope_semantics : require
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
#if TUFF_WORDS
TUFF_READ(0, X4, uint, 4)
#endif
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

#if TUFF_NARROW
#define VOTES uint
#define BALLOT(value) subgroupBallot(value).x
#define EARLIER(votes) bitCount(votes & gl_SubgroupLtMask.x)
#define ALL_OF(votes) bitCount(votes)
#else
#define VOTES uvec4
#define BALLOT(value) subgroupBallot(value)
#define EARLIER(votes) subgroupBallotExclusiveBitCount(votes)
#define ALL_OF(votes) subgroupBallotBitCount(votes)
#endif
// Orders shared memory only: subgroupBarrier() would wait for stores to buffers too.
#define SUBGROUP_BARRIER() \
  controlBarrier(gl_ScopeSubgroup, gl_ScopeSubgroup, gl_StorageSemanticsShared, gl_SemanticsAcquireRelease)

#if !TUFF_LANES
const uint TILE = TUFF_THREADS * TUFF_ITEMS;
shared uint counters[TUFF_SUBGROUPS * DIGITS];
shared uint starts[DIGITS];  // where in the row the chunk's next element with each digit goes
shared uint begins[DIGITS];  // where in the sorted tile each digit begins
shared uint shifts[DIGITS];
shared HELD slots[TILE];
//# constant SHARED_BYTES : the shared memory of a workgroup
const uint SHARED_BYTES = (TUFF_SUBGROUPS + 3) * DIGITS * 4 + TILE * (TUFF_UNIT == 8 ? 8 : 4);
#endif

#if TUFF_CARRY == 1
#define INDEX(i) i
#elif TUFF_CARRY == 2
#define INDEX(i) TUFF_FROM(I, indices, i)
#endif
#if TUFF_UNIT == 8
#define SLOT_INDEX(s) slots[s].x
#else
#define SLOT_INDEX(s) slots[s]
#endif
#if TUFF_VALUES
#define STORE_VALUE(at, bits) TUFF_FROM(Y, to, at) = UNIT(bits)
#else
#define STORE_VALUE(at, bits)
#endif
#if TUFF_CARRY
#define STORE_INDEX(at, index) TUFF_FROM(J, to_indices, at) = NAME(index)
#else
#define STORE_INDEX(at, index)
#endif
// Stores element i of the row, its index, or both, as number `place` of the row's results.
#define MOVE(bits, i, place)                                 \
  if (place < kept) {                                        \
    const TUFF_INDEX at = TUFF_INDEX(place) * to_inner;      \
    STORE_VALUE(at, bits);                                   \
    STORE_INDEX(at, INDEX(i));                               \
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
  const TUFF_INDEX source = first_of(push.first_row + row, push.extent, inner);
  TUFF_POINTER(X, from, source);
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
  WORDS_AT(source);
  COUNTERS;
  for (uint d = 0; d < DIGITS; ++d) {
    const uint first = TUFF_AT(C, counts + d * push.chunks);
    SET_COUNTER(d, first);
  }
  uint i = begin;
  for (; i + UNROLL <= end; i += UNROLL) {
    HELD bits[UNROLL];
    LOAD(bits, i);
    [[unroll]] for (uint u = 0; u < UNROLL; ++u) {
      const uint digit = digit_of(key_of(bits[u], flip, infinity), shift), place = COUNTER(digit);
      ADVANCE(digit);
      MOVE(bits[u], i + u, place)
    }
  }
  for (; i < end; ++i) {
    const HELD bits = HELD(TUFF_FROM(X, from, TUFF_INDEX(i) * inner));
    const uint digit = digit_of(key_of(bits, flip, infinity), shift), place = COUNTER(digit);
    ADVANCE(digit);
    MOVE(bits, i, place)
  }
#else
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID, lane = gl_SubgroupInvocationID;
  const uint own = gl_SubgroupID * DIGITS, step = gl_SubgroupSize;
  for (uint d = thread; d < DIGITS; d += TUFF_THREADS) starts[d] = TUFF_AT(C, counts + d * push.chunks);
  for (uint tile = begin; tile < end; tile += TILE) {
    const uint first = tile + gl_SubgroupID * (TUFF_ITEMS * step) + lane;
    HELD bits[TUFF_ITEMS];
    uint digit[TUFF_ITEMS], slot[TUFF_ITEMS];
    [[unroll]] for (uint j = 0; j < TUFF_ITEMS; ++j) {
      const uint i = min(first + j * step, end - 1);
      bits[j] = HELD(TUFF_FROM(X, from, TUFF_INDEX(i) * inner));
      digit[j] = digit_of(key_of(bits[j], flip, infinity), shift);
    }
    for (uint d = thread; d < TUFF_SUBGROUPS * DIGITS; d += TUFF_THREADS) counters[d] = 0;
    barrier();
    // Ranks. A subgroup uses its own counters only.
    [[unroll]] for (uint j = 0; j < TUFF_ITEMS; ++j) {
      const bool there = first + j * step < end;
      VOTES same = BALLOT(there);
      [[unroll]] for (uint b = 0; b < TUFF_BITS; ++b) {
        const uint all = uint(bitfieldExtract(int(digit[j]), int(b), 1));  // 0, or all ones if the bit is set
        same &= ~(BALLOT(all != 0u) ^ all);
      }
      // For the earlier steps, and then of the earlier lanes.
      const uint earlier = counters[own + digit[j]], before = EARLIER(same);
      slot[j] = earlier + before;
      SUBGROUP_BARRIER();
      if (there && before == 0u) counters[own + digit[j]] = earlier + ALL_OF(same);
      SUBGROUP_BARRIER();
    }
    barrier();
    for (uint d = thread; d < DIGITS; d += TUFF_THREADS) {
      uint sum = 0;
      for (uint s = 0; s < TUFF_SUBGROUPS; ++s) {
        const uint count = counters[s * DIGITS + d];
        counters[s * DIGITS + d] = sum;
        sum += count;
      }
      shifts[d] = sum;
    }
    barrier();
    if (gl_SubgroupID == 0) {
      const uint each = (DIGITS + step - 1) / step;
      const uint from_digit = min(lane * each, DIGITS), to_digit = min(from_digit + each, DIGITS);
      uint sum = 0;
      for (uint d = from_digit; d < to_digit; ++d) sum += shifts[d];
      uint at = subgroupExclusiveAdd(sum);
      for (uint d = from_digit; d < to_digit; ++d) {
        const uint count = shifts[d], start = starts[d];
        begins[d] = at;
        shifts[d] = start - at;
        starts[d] = start + count;
        at += count;
      }
    }
    barrier();
    [[unroll]] for (uint j = 0; j < TUFF_ITEMS; ++j) {
      slot[j] += counters[own + digit[j]] + begins[digit[j]];
      if (first + j * step < end) slots[slot[j]] = bits[j];
    }
    barrier();
    const uint length = min(TILE, end - tile);
    uint place[TUFF_ITEMS];
    [[unroll]] for (uint j = 0; j < TUFF_ITEMS; ++j) {
      const uint s = thread + j * TUFF_THREADS;
      place[j] = kept;
      if (s < length) {
        const HELD moved = slots[s];
        place[j] = s + shifts[digit_of(key_of(moved, flip, infinity), shift)];
        if (place[j] < kept) { STORE_VALUE(TUFF_INDEX(place[j]) * to_inner, moved); }
      }
    }
#if TUFF_CARRY
    barrier();
    [[unroll]] for (uint j = 0; j < TUFF_ITEMS; ++j) {
      const uint i = first + j * step;
      if (i < end) SLOT_INDEX(slot[j]) = INDEX(i);
    }
    barrier();
    [[unroll]] for (uint j = 0; j < TUFF_ITEMS; ++j) {
      if (place[j] < kept) { STORE_INDEX(TUFF_INDEX(place[j]) * to_inner, SLOT_INDEX(thread + j * TUFF_THREADS)); }
    }
#endif
    barrier();
  }
#endif
}
