// Sorts short rows, or the segments of long rows of which only the first elements are wanted. A segment has at most
// TUFF_LENGTH items: elements of the row, or candidates, which are indices of elements that an earlier dispatch has
// found, [row][item]. Items are sorted as pairs of a key and the item's number, so that equal keys keep their order.
//
// With TUFF_LANES 0 a workgroup sorts TILE / TUFF_LENGTH segments in shared memory by Batcher's bitonic network. An item
// that is missing has the last key and a number beyond all others. Otherwise each invocation sorts a
// segment of its own, in a column of shared memory: blocks of 16 items in registers, which it merges. It drops what is
// beyond `keep`.
//
// With TUFF_ITEMS a workgroup has a segment that is longer than its shared memory, of push.segment items, of which it
// wants few. It sorts the first TUFF_LENGTH items. Then it reads the others once, TUFF_ITEMS for each invocation at a
// time, and appends those to its `keep` best that come before the last of them. Whenever the shared memory is full, it
// sorts it and continues with the best. Of items in no special order few are appended.
//
//# TUFF_LANES : 0..128 : 0: a workgroup shares a segment; otherwise each invocation has one, and this is the size of workgroups
//# TUFF_TILE = 0 : 0..4096 : without TUFF_LANES: items of a workgroup, at least TUFF_LENGTH
//# TUFF_LENGTH : 2..4096 : items of a segment: a power of two
//# TUFF_ITEMS = 0 : 0..16 : 0: segments have TUFF_LENGTH items; otherwise push.segment of them, see above, without TUFF_LANES and TUFF_CANDIDATES
//# TUFF_CANDIDATES : 0|1 : 1: items are candidates; 0: elements
//# TUFF_LAST : 0|1 : 1: stores elements, indices or both; 0: stores candidates [row][segment][keep]
//# TUFF_VALUES : 0|1 : with TUFF_LAST: 1: elements are stored
//# TUFF_INDEX_BYTES : 0|4|8 : with TUFF_LAST: bytes of a stored index; 0: none is stored
#include "kernels/sort/sort.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint pieces;            // rows * segments
  uint segments;          // of a row
  uint items;             // of a row
  uint keep;              // of each segment
  uint segment;           // with TUFF_ITEMS: items of a segment
  uint extent;            // elements of a row
  uint first_row, inner;  // rows: see first_of()
  uint flip, infinity;
} push;

TUFF_READ(0, X, UNIT, TUFF_UNIT)
#if TUFF_CANDIDATES
TUFF_READ(1, I, uint, 4)
#endif
#if TUFF_LAST && TUFF_VALUES
TUFF_WRITE(2, Y, UNIT, TUFF_UNIT)
#endif
#if !TUFF_LAST
TUFF_WRITE(3, J, uint, 4)
#elif TUFF_INDEX_BYTES == 8
TUFF_WRITE(3, J, uvec2, 8)
#elif TUFF_INDEX_BYTES == 4
TUFF_WRITE(3, J, uint, 4)
#endif

const uint NONE = 0xffffffffu;

struct Segment {
  uint row, first, count;  // items first … first + count - 1 of the row
  TUFF_INDEX base, to;     // of the row's first element, and of the results
};

#if TUFF_ITEMS
#define SEGMENT push.segment
#else
#define SEGMENT uint(TUFF_LENGTH)
#endif

Segment segment_of(uint piece) {
  Segment s;
  s.row = piece / push.segments;
  s.first = (piece - s.row * push.segments) * SEGMENT;
  s.count = min(SEGMENT, push.items - s.first);
  s.base = first_of(push.first_row + s.row, push.extent, push.inner);
#if TUFF_LAST
  s.to = first_of(push.first_row + s.row, push.keep, push.inner);
#else
  s.to = TUFF_INDEX(piece) * push.keep;
#endif
  return s;
}

// The index of an item's element; NONE if a candidate is missing.
uint index_of(Segment s, uint item) {
#if TUFF_CANDIDATES
  return TUFF_AT(I, TUFF_INDEX(s.row) * push.items + s.first + item);
#else
  return s.first + item;
#endif
}

// Stores item `item`, or NONE, as number `place` of its segment's results.
void store(Segment s, uint place, uint item) {
  const uint index = item == NONE ? NONE : index_of(s, item);
#if TUFF_LAST
  if (index == NONE) return;
  const TUFF_INDEX at = s.to + TUFF_INDEX(place) * push.inner;
#if TUFF_VALUES
  TUFF_AT(Y, at) = TUFF_AT(X, s.base + TUFF_INDEX(index) * push.inner);
#endif
#if TUFF_INDEX_BYTES == 8
  TUFF_AT(J, at) = uvec2(index, 0u);
#elif TUFF_INDEX_BYTES == 4
  TUFF_AT(J, at) = index;
#endif
#else
  TUFF_AT(J, s.to + place) = index;
#endif
}

KEY load_key(Segment s, uint index) {
  return key_of(HELD(TUFF_AT(X, s.base + TUFF_INDEX(index) * push.inner)), push.flip, push.infinity);
}

#if TUFF_LANES
shared KEY keys[2 * TUFF_LENGTH * TUFF_LANES];
shared uint numbers[2 * TUFF_LENGTH * TUFF_LANES];
#define AT(column, i) (column) + (i) * TUFF_LANES

#define BLOCK 16
#if TUFF_LENGTH >= BLOCK
// Sorts the first `count` items from `first` on, at most BLOCK of them, in registers: by Batcher's odd-even merge sort,
// whose comparisons do not depend on the items.
void sort_block(uint first, uint count) {
  KEY key[BLOCK];
  uint number[BLOCK];
  [[unroll]] for (uint i = 0; i < BLOCK; ++i) {
    key[i] = LAST_KEY;
    number[i] = NONE;
    if (i < count) {
      key[i] = keys[AT(first, i)];
      number[i] = numbers[AT(first, i)];
    }
  }
#define ORDER(i, j)                                                                              \
  {                                                                                              \
    const KEY a = key[i], b = key[j];                                                            \
    const uint x = number[i], y = number[j];                                                     \
    const bool swapped = BEFORE(b, a) || (b == a && y < x);                                      \
    key[i] = swapped ? b : a, key[j] = swapped ? a : b;                                          \
    number[i] = swapped ? y : x, number[j] = swapped ? x : y;                                    \
  }
  ORDER(0, 1) ORDER(2, 3) ORDER(4, 5) ORDER(6, 7) ORDER(8, 9) ORDER(10, 11) ORDER(12, 13) ORDER(14, 15)
  ORDER(0, 2) ORDER(1, 3) ORDER(4, 6) ORDER(5, 7) ORDER(8, 10) ORDER(9, 11) ORDER(12, 14) ORDER(13, 15)
  ORDER(1, 2) ORDER(5, 6) ORDER(9, 10) ORDER(13, 14)
  ORDER(0, 4) ORDER(1, 5) ORDER(2, 6) ORDER(3, 7) ORDER(8, 12) ORDER(9, 13) ORDER(10, 14) ORDER(11, 15)
  ORDER(2, 4) ORDER(3, 5) ORDER(10, 12) ORDER(11, 13)
  ORDER(1, 2) ORDER(3, 4) ORDER(5, 6) ORDER(9, 10) ORDER(11, 12) ORDER(13, 14)
  ORDER(0, 8) ORDER(1, 9) ORDER(2, 10) ORDER(3, 11) ORDER(4, 12) ORDER(5, 13) ORDER(6, 14) ORDER(7, 15)
  ORDER(4, 8) ORDER(5, 9) ORDER(6, 10) ORDER(7, 11)
  ORDER(2, 4) ORDER(3, 5) ORDER(6, 8) ORDER(7, 9) ORDER(10, 12) ORDER(11, 13)
  ORDER(1, 2) ORDER(3, 4) ORDER(5, 6) ORDER(7, 8) ORDER(9, 10) ORDER(11, 12) ORDER(13, 14)
  [[unroll]] for (uint i = 0; i < BLOCK; ++i) {
    if (i < count) {
      keys[AT(first, i)] = key[i];
      numbers[AT(first, i)] = number[i];
    }
  }
}
#endif

void main() {
  const uint lane = gl_LocalInvocationID.x, piece = tuff_group() * TUFF_LANES + lane;
  if (piece >= push.pieces) return;
  const Segment s = segment_of(piece);
  uint from = lane, into = TUFF_LENGTH * TUFF_LANES + lane;  // columns
  uint count = 0;
  for (uint item = 0; item < s.count; ++item) {
    const uint index = index_of(s, item);
    if (index == NONE) continue;
    keys[AT(from, count)] = load_key(s, index);
    numbers[AT(from, count)] = item;
    ++count;
  }
#if TUFF_LENGTH < BLOCK
  uint width = 1;
#else
  uint width = BLOCK;
  for (uint low = 0; low < count; low += BLOCK) sort_block(from + low * TUFF_LANES, count - low);
#endif
  for (; width < count; width *= 2) {
    for (uint low = 0; low < count; low += 2 * width) {
      const uint middle = min(low + width, count), high = min(low + 2 * width, count);
      // For each run, the first `keep`.
      const uint left_end = min(middle, low + push.keep), right_end = min(high, middle + push.keep);
      const uint end = low + min(high - low, push.keep);
      uint i = low, j = middle;
      KEY a = keys[AT(from, i)], b = LAST_KEY;
      if (j < right_end) b = keys[AT(from, j)];
      for (uint place = low; place < end; ++place) {
        const bool right = j < right_end && (i >= left_end || BEFORE(b, a));
        const uint taken = right ? j : i;
        keys[AT(into, place)] = right ? b : a;
        numbers[AT(into, place)] = numbers[AT(from, taken)];
        i += right ? 0u : 1u;
        j += right ? 1u : 0u;
        const uint next = right ? j : i;
        if (next < (right ? right_end : left_end)) {
          const KEY key = keys[AT(from, next)];
          a = right ? a : key;
          b = right ? key : b;
        }
      }
    }
    const uint other = from;
    from = into;
    into = other;
  }
  for (uint place = 0; place < push.keep; ++place) store(s, place, place < count ? numbers[AT(from, place)] : NONE);
}

#else
shared KEY keys[TUFF_TILE];
shared uint numbers[TUFF_TILE];

bool comes_before(KEY a, uint x, KEY b, uint y) { return BEFORE(a, b) || (a == b && x < y); }

// Takes item `item` of a segment, or what follows all items if it is missing.
void take(uint e, Segment s, uint item, bool there) {
  KEY key = LAST_KEY;
  uint number = item | 0x80000000u;
  const uint index = there && item < s.count ? index_of(s, item) : NONE;
  if (index != NONE) {
    key = load_key(s, index);
    number = item;
  }
  keys[e] = key;
  numbers[e] = number;
}

// Sorts each sequence of `length` items among the first `all`, which are powers of two. All have been taken before the
// next barrier.
void sort_sequences(uint length, uint all) {
  const uint thread = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x;
  for (uint size = 2; size <= length; size *= 2) {
    for (uint apart = size / 2; apart > 0; apart /= 2) {
      barrier();
      for (uint e = thread; e < all / 2; e += threads) {
        const uint i = 2 * e - (e & (apart - 1u)), j = i + apart;
        // The last sequence of a segment ascends; earlier ones alternate.
        const bool down = size < length && (i & size) != 0u;
        const KEY a = keys[i], b = keys[j];
        const uint x = numbers[i], y = numbers[j];
        if (comes_before(b, y, a, x) != down) {
          keys[i] = b, keys[j] = a;
          numbers[i] = y, numbers[j] = x;
        }
      }
    }
  }
  barrier();
}

void store_sorted(Segment s, uint e, uint place) {
  store(s, place, (numbers[e] & 0x80000000u) != 0u ? NONE : numbers[e]);
}

#if TUFF_ITEMS
shared uint held;  // items in shared memory

void main() {
  const uint thread = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x, piece = tuff_group();
  if (piece >= push.pieces) return;
  const Segment s = segment_of(piece);
  for (uint e = thread; e < TUFF_TILE; e += threads) take(e, s, e, true);
  sort_sequences(TUFF_TILE, TUFF_TILE);
  KEY last = keys[push.keep - 1];
  uint last_number = numbers[push.keep - 1];
  if (thread == 0) held = push.keep;
  barrier();
  for (uint base = TUFF_TILE; base < s.count; base += TUFF_ITEMS * threads) {
    KEY key[TUFF_ITEMS];
    [[unroll]] for (uint u = 0; u < TUFF_ITEMS; ++u) {
      key[u] = load_key(s, s.first + min(base + u * threads + thread, s.count - 1));
    }
    uint wanted = 0;  // a bit for each
    [[unroll]] for (uint u = 0; u < TUFF_ITEMS; ++u) {
      const uint item = base + u * threads + thread;
      if (item < s.count && comes_before(key[u], item, last, last_number)) wanted |= 1u << u;
    }
    while (true) {
      [[unroll]] for (uint u = 0; u < TUFF_ITEMS; ++u) {
        if ((wanted >> u & 1u) != 0u) {
          const uint place = atomicAdd(held, 1u);
          if (place < TUFF_TILE) {
            keys[place] = key[u];
            numbers[place] = base + u * threads + thread;
            wanted &= ~(1u << u);
          }
        }
      }
      barrier();
      const uint now = held;
      barrier();
      if (now < TUFF_TILE) break;
      sort_sequences(TUFF_TILE, TUFF_TILE);
      last = keys[push.keep - 1];
      last_number = numbers[push.keep - 1];
      if (thread == 0) held = push.keep;
      barrier();
      [[unroll]] for (uint u = 0; u < TUFF_ITEMS; ++u) {
        if (!comes_before(key[u], base + u * threads + thread, last, last_number)) wanted &= ~(1u << u);
      }
    }
  }
  uint length = 2;
  while (length < held) length *= 2;
  for (uint e = held + thread; e < length; e += threads) {
    keys[e] = LAST_KEY;
    numbers[e] = NONE;
  }
  sort_sequences(length, length);
  for (uint e = thread; e < push.keep; e += threads) store_sorted(s, e, e);
}
#else
void main() {
  const uint thread = gl_LocalInvocationID.x, threads = gl_WorkGroupSize.x;
  const uint first = tuff_group() * (TUFF_TILE / TUFF_LENGTH);  // piece
  for (uint e = thread; e < TUFF_TILE; e += threads) {
    const uint piece = first + e / TUFF_LENGTH;
    take(e, segment_of(min(piece, push.pieces - 1)), e % TUFF_LENGTH, piece < push.pieces);
  }
  sort_sequences(TUFF_LENGTH, TUFF_TILE);
  for (uint e = thread; e < TUFF_TILE; e += threads) {
    const uint piece = first + e / TUFF_LENGTH, place = e % TUFF_LENGTH;
    if (piece < push.pieces && place < push.keep) store_sorted(segment_of(piece), e, place);
  }
}
#endif
#endif
