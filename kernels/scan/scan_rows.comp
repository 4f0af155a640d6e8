// Running sums, products, maxima, minima or logarithms of rows. TUFF_LANES invocations share a piece, which is a whole row or one of its segments,
// and process it in steps. In each step lane l has item l of W elements. A lane combines its elements, the lanes'
// totals are scanned by shuffles (and through shared memory beyond a subgroup), and the total of the earlier steps is
// carried along:
//
//   piece  | 0 1 2 … LANES-1 | 0 1 2 … LANES-1 | …        the lane of each item
//            carry = identity  carry = total of step 0
//
// Rows that are cut take two dispatches: TUFF_STAGE 1 stores each segment's total, and TUFF_STAGE 2 starts from the
// totals of the earlier segments. The input is then read twice and the output written once.
//
//# TUFF_BLOCKED : 0|1 : 1: an item is a block of 16 bytes, and rows are whole blocks; 0: an item is an element
#include "kernels/scan/scan.glsl"
#include "kernels/common/lanes.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint pieces;    // rows * segments
  uint extent;    // items of a row
  uint segments;  // of each row
  uint segment;   // items of each, a multiple of LANES; the last has the rest
} push;

// What is combined, from an element and to a result.
#if TUFF_OP == 5
#define STATE TUFF_VALUE2
#define STATE_BYTES (2 * TUFF_VALUE_BYTES)
#define EMPTY STATE(TUFF_IDENTITY, TUFF_ZERO)
#define STATE_OF(x) STATE(x, TUFF_ONE)
#define SHUFFLE(state, lane) STATE(TUFF_SHUFFLE(state.x, lane), TUFF_SHUFFLE(state.y, lane))
STATE both(STATE a, STATE b) {
  TUFF_VALUE4 m = TUFF_VALUE4(a.x), s = TUFF_VALUE4(a.y);
  combine_pairs(m, s, TUFF_VALUE4(b.x), TUFF_VALUE4(b.y));
  return STATE(m.x, s.x);
}
TUFF_VALUE result(STATE a) { return pairs_logarithm(TUFF_VALUE4(a.x), TUFF_VALUE4(a.y)).x; }
#if TUFF_SHARED
shared STATE states[TUFF_LANES];
#endif
#else
#define STATE TUFF_VALUE
#define STATE_BYTES TUFF_VALUE_BYTES
#define EMPTY TUFF_IDENTITY
#define STATE_OF(x) (x)
#define SHUFFLE(state, lane) TUFF_SHUFFLE(state, lane)
#define both(a, b) TUFF_COMBINE(a, b)
#define result(a) (a)
#define states parts
#endif

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
#if TUFF_STAGE != 1
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)
#endif
#if TUFF_STAGE == 1
TUFF_WRITE(2, Totals, STATE, STATE_BYTES)
#elif TUFF_STAGE == 2
TUFF_READ(2, Totals, STATE, STATE_BYTES)
#endif

#if TUFF_BLOCKED
#define WIDTH TUFF_ELEMENTS
#else
#define WIDTH 1
#endif

// The elements of an item, in scan order.
struct Item {
  TUFF_VALUE value[WIDTH];
};

#if TUFF_REVERSE
#define ELEMENT(c) (WIDTH - 1 - (c))
#else
#define ELEMENT(c) (c)
#endif

Item load_item(TUFF_INDEX i) {
  Item item;
#if TUFF_BLOCKED
  TuffBlock block = X_load_block(i);
  [[unroll]] for (uint c = 0; c < WIDTH; ++c) item.value[ELEMENT(c)] = block.part[c / 4][c % 4];
#else
  item.value[0] = X_load(i);
#endif
  return item;
}

#if TUFF_STAGE != 1
void store_item(TUFF_INDEX i, Item item) {
#if TUFF_BLOCKED
  TuffBlock block;
  [[unroll]] for (uint c = 0; c < WIDTH; ++c) block.part[c / 4][c % 4] = item.value[ELEMENT(c)];
  Y_store_block(i, block);
#else
  Y_store(i, item.value[0]);
#endif
}
#endif

// Combines the x of all lanes before this one. `total` combines the x of all lanes.
STATE before_lane(STATE x, out STATE total) {
#if TUFF_LANES == 1
  total = x;
  return EMPTY;
#else
#if TUFF_SHARED
  uint width = gl_SubgroupSize;
#else
  const uint width = TUFF_LANES;
#endif
  uint self = gl_SubgroupInvocationID, place = self % width;
  STATE run = x;
  for (uint distance = 1; distance < width; distance *= 2) {
    STATE other = SHUFFLE(run, place >= distance ? self - distance : self);
    run = place >= distance ? both(other, run) : run;
  }
  STATE before = SHUFFLE(run, place > 0 ? self - 1 : self);
  before = place > 0 ? before : EMPTY;
  total = SHUFFLE(run, self - place + (width - 1));
#if TUFF_SHARED
  if (place == 0) states[gl_SubgroupID] = total;
  barrier();
  STATE earlier = EMPTY, all = EMPTY;
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    earlier = s == gl_SubgroupID ? all : earlier;
    all = both(all, states[s]);
  }
  barrier();
  before = both(earlier, before);
  total = all;
#endif
  return before;
#endif
}

void main() {
  // Computed from the subgroup's own numbering, because shuffles use it.
  uint thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  uint lane = thread % TUFF_LANES;
  uint piece = tuff_group() * (gl_WorkGroupSize.x / TUFF_LANES) + thread / TUFF_LANES;
  // Surplus lanes take part in shuffles and barriers but access no memory.
  bool live = piece < push.pieces;
  uint row = piece, segment = 0;
#if TUFF_STAGE != 0
  row = piece / push.segments;
  segment = piece - row * push.segments;
#endif
  uint begin = segment * push.segment;
  uint end = min(begin + push.segment, push.extent);
  TUFF_INDEX first = TUFF_INDEX(row) * push.extent;

  STATE carry = EMPTY;
#if TUFF_STAGE == 2
  STATE own = EMPTY;
  for (uint s = lane; live && s < segment; s += TUFF_LANES) {
    own = both(own, TUFF_AT(Totals, piece - segment + s));
  }
  before_lane(own, carry);
#endif
  uint steps = (push.segment + TUFF_LANES - 1) / TUFF_LANES;
  for (uint step = 0; step < steps; ++step) {
    uint i = begin + step * TUFF_LANES + lane;
    bool there = live && i < end;
#if TUFF_REVERSE
    TUFF_INDEX at = first + (push.extent - 1 - i);
#else
    TUFF_INDEX at = first + i;
#endif
    Item item;
    [[unroll]] for (uint c = 0; c < WIDTH; ++c) item.value[c] = TUFF_IDENTITY;
    if (there) item = load_item(at);
    STATE together = STATE_OF(item.value[0]);
    [[unroll]] for (uint c = 1; c < WIDTH; ++c) together = both(together, STATE_OF(item.value[c]));
    STATE total;
    STATE before = before_lane(together, total);
#if TUFF_STAGE != 1
    STATE run = both(carry, before);
    [[unroll]] for (uint c = 0; c < WIDTH; ++c) {
      STATE through = both(run, STATE_OF(item.value[c]));
#if TUFF_EXCLUSIVE
      item.value[c] = result(run);
#else
      item.value[c] = result(through);
#endif
      run = through;
    }
    if (there) store_item(at, item);
#endif
    carry = both(carry, total);
  }
#if TUFF_STAGE == 1
  if (live && lane == 0) TUFF_AT(Totals, piece) = carry;
#endif
}
