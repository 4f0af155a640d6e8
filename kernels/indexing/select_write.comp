// Writes the elements that are selected, their places, and how many there are: see select.glsl. C has the running sums of
// the chunks' counts, B the sum of earlier pieces; N receives the sum up to the end of this one.
//
// Without TUFF_LANES a workgroup takes its chunk in tiles of TUFF_ITEMS elements for each invocation. It ranks those
// that are selected and lists them in shared memory first, so that neighbouring lanes store neighbouring elements:
//
//   TUFF_BLOCKS   an invocation has a block of 16 elements; ranks follow from running sums of the blocks' counts
//   otherwise     subgroup s has the elements s * TUFF_ITEMS * size ... of the tile, and in step j its lane l has number
//                 j * size + l of them; ranks follow from votes
//
//# TUFF_THREADS = 0 : 0..1024 : invocations of a workgroup, without TUFF_LANES
//# TUFF_SUBGROUPS = 1 : 1..256 : subgroups of a workgroup
//# TUFF_NARROW = 0 : 0|1 : 1: subgroups have at most 32 invocations
//# TUFF_ITEMS = 16 : 8|16 : elements of an invocation in a tile, without TUFF_LANES; 16 with TUFF_BLOCKS
//# TUFF_VALUES : 0|1 : 1: elements are stored
//# TUFF_INDEX_BYTES : 0|4|8 : bytes of a stored place; 0: places are not wanted
//# TUFF_LATER : 0|1 : 1: there are earlier pieces
//# TUFF_TOTAL : 0|1 : 1: the sum is wanted
#define TUFF_LONG 0
#include "kernels/indexing/select.glsl"
#include "kernels/shape/units.glsl"

#define WRITES (TUFF_VALUES || TUFF_INDEX_BYTES)
#if TUFF_VALUES
TUFF_READ(1, V, UNIT, TUFF_UNIT)
TUFF_WRITE(3, Y, UNIT, TUFF_UNIT)
#endif
TUFF_READ(2, C, uint, 4)
#if TUFF_INDEX_BYTES == 8
TUFF_WRITE(4, I, uvec2, 8)
#elif TUFF_INDEX_BYTES == 4
TUFF_WRITE(4, I, uint, 4)
#endif
#if TUFF_LATER
TUFF_READ(5, B, uvec2, 8)
#endif
#if TUFF_TOTAL
TUFF_WRITE(6, N, uvec2, 8)
#endif

// How many are selected in earlier pieces, as two words.
uvec2 earlier_pieces() {
#if TUFF_LATER
  return TUFF_AT(B, 0);
#else
  return uvec2(0u);
#endif
}

void write_total() {
#if TUFF_TOTAL
  const uvec2 base = earlier_pieces();
  uint carry;
  const uint low = uaddCarry(base.x, TUFF_AT(C, TUFF_INDEX(push.chunks - 1u)), carry);
  TUFF_AT(N, 0) = uvec2(low, base.y + carry);
#endif
}

#if WRITES
// The place of the chunk's first element that is selected.
TUFF_INDEX first_place(uint chunk) {
  const uvec2 base = earlier_pieces();
#if TUFF_WIDE
  const TUFF_INDEX earlier = uint64_t(base.y) << 32 | uint64_t(base.x);
#else
  const TUFF_INDEX earlier = base.x;
#endif
  return chunk == 0u ? earlier : earlier + TUFF_AT(C, TUFF_INDEX(chunk - 1u));
}

// STORE(i, place) stores element i of the piece as number `place` of the results. What that needs is computed once by
// DECLARE_RESULTS (pointer.glsl).
#if TUFF_VALUES
#define DECLARE_VALUES                 \
  TUFF_POINTER(V, values, TUFF_INDEX(0)); \
  TUFF_POINTER(Y, results, TUFF_INDEX(0));
#define STORE_VALUE(i, place) TUFF_FROM(Y, results, place) = TUFF_FROM(V, values, TUFF_INDEX(i));
#else
#define DECLARE_VALUES
#define STORE_VALUE(i, place)
#endif
#if TUFF_INDEX_BYTES == 4
#define NAME(index) uint(index)
#elif TUFF_WIDE
#define NAME(index) uvec2(uint(index), uint((index) >> 32))
#else
#define NAME(index) uvec2(index, 0u)
#endif
#if TUFF_INDEX_BYTES
#define DECLARE_INDICES                    \
  TUFF_POINTER(I, indices, TUFF_INDEX(0)); \
  const TUFF_INDEX first_index = JOINED(first);
#define STORE_INDEX(i, place) TUFF_FROM(I, indices, place) = NAME(first_index + (i));
#else
#define DECLARE_INDICES
#define STORE_INDEX(i, place)
#endif
#define DECLARE_RESULTS DECLARE_VALUES DECLARE_INDICES
#define STORE(i, place) STORE_VALUE(i, place) STORE_INDEX(i, place)
#endif

#if !WRITES
void main() {
  if (tuff_group() == 0u && gl_LocalInvocationID.x == 0u) write_total();
}
#elif TUFF_LANES
void main() {
  const uint chunk = tuff_group() * TUFF_LANES + gl_LocalInvocationID.x;
  if (chunk >= push.chunks) return;
  const uint begin = chunk * push.chunk, end = begin + min(push.chunk, push.n - begin);
  const TUFF_INDEX room = JOINED(room);
  TUFF_INDEX place = first_place(chunk);
  DECLARE_RESULTS
  // A CPU's driver stores the lanes' elements one after another: there are as many steps as the fullest block needs.
#define WRITE(i, selected)                                    \
  for (; selected != 0u && place < room; ++place) {           \
    const uint element = i + uint(findLSB(selected));         \
    STORE(element, place)                                     \
    selected &= selected - 1u;                                \
  }
  FOR_CHUNK(begin, end, WRITE)
  if (chunk == push.chunks - 1u) write_total();
}
#else
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

const uint TILE = TUFF_THREADS * TUFF_ITEMS;
shared uint sums[TUFF_SUBGROUPS];
shared uint listed[TILE];  // elements of the tile that are selected
//# constant SHARED_BYTES : the shared memory of a workgroup
const uint SHARED_BYTES = (TUFF_SUBGROUPS + TUFF_THREADS * TUFF_ITEMS) * 4;

// The sum of earlier subgroups' numbers; `all` is that of all.
uint before_subgroup(uint own, out uint all) {
  if (gl_SubgroupInvocationID == 0) sums[gl_SubgroupID] = own;
  barrier();
  uint earlier = 0;
  all = 0;
  for (uint s = 0; s < TUFF_SUBGROUPS; ++s) {
    earlier = s == gl_SubgroupID ? all : earlier;
    all += sums[s];
  }
  return earlier;
}

// Lists the elements from `tile` to `end` that are selected, at most TILE, and returns how many they are.
uint list_tile(uint tile, uint end, uint thread) {
  uint all;
#if TUFF_BLOCKS
  const uint first = tile + thread * 16;
  uint selected = 0;  // a bit for each
  if (first + 16 <= end) {
    selected = selected_bits(TUFF_AT(X16, TUFF_INDEX(first / 16)));
  } else {
    for (uint i = first; i < end; ++i) selected |= is_selected(i) ? 1u << (i - first) : 0u;
  }
  const uint count = bitCount(selected), rank = subgroupExclusiveAdd(count), own = subgroupAdd(count);
  const uint at = before_subgroup(own, all) + rank;
  [[unroll]] for (uint b = 0; b < 16; ++b) {
    if ((selected >> b & 1u) != 0u) listed[at + bitCount(selected & ((1u << b) - 1u))] = thread * 16 + b;
  }
#else
  const uint step = gl_SubgroupSize, own = gl_SubgroupID * (TUFF_ITEMS * step) + gl_SubgroupInvocationID;
  uint rank[TUFF_ITEMS], selected = 0, count = 0;
  [[unroll]] for (uint j = 0; j < TUFF_ITEMS; ++j) {
    const uint i = tile + own + j * step;
    bool taken = false;
    if (i < end) taken = is_selected(i);
    const VOTES votes = BALLOT(taken);
    rank[j] = count + EARLIER(votes);
    selected |= taken ? 1u << j : 0u;
    count += ALL_OF(votes);
  }
  const uint earlier = before_subgroup(count, all);
  [[unroll]] for (uint j = 0; j < TUFF_ITEMS; ++j) {
    if ((selected >> j & 1u) != 0u) listed[earlier + rank[j]] = own + j * step;
  }
#endif
  barrier();
  return all;
}

void main() {
  const uint chunk = tuff_group();
  if (chunk >= push.chunks) return;
  const uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  const uint begin = chunk * push.chunk, end = begin + min(push.chunk, push.n - begin);
  const TUFF_INDEX room = JOINED(room);
  TUFF_INDEX place = first_place(chunk);
  DECLARE_RESULTS
  for (uint tile = begin; tile < end; tile += TILE) {
    const uint count = list_tile(tile, end, thread);
    for (uint s = thread; s < count; s += TUFF_THREADS) {
      const uint element = tile + listed[s];
      if (place + s < room) { STORE(element, place + s) }
    }
    place += count;
    barrier();
  }
  if (chunk == push.chunks - 1u && thread == 0u) write_total();
}
#endif
