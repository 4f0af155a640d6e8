// Running sums, products, maxima or minima of rows. TUFF_LANES invocations share a piece, which is a whole row or one of its segments,
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

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
#if TUFF_STAGE != 1
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)
#endif
#if TUFF_STAGE == 1
TUFF_WRITE(2, Totals, TUFF_VALUE, TUFF_VALUE_BYTES)
#elif TUFF_STAGE == 2
TUFF_READ(2, Totals, TUFF_VALUE, TUFF_VALUE_BYTES)
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
TUFF_VALUE before_lane(TUFF_VALUE x, out TUFF_VALUE total) {
#if TUFF_LANES == 1
  total = x;
  return TUFF_IDENTITY;
#else
#if TUFF_SHARED
  uint width = gl_SubgroupSize;
#else
  const uint width = TUFF_LANES;
#endif
  uint self = gl_SubgroupInvocationID, place = self % width;
  TUFF_VALUE run = x;
  for (uint distance = 1; distance < width; distance *= 2) {
    TUFF_VALUE other = TUFF_SHUFFLE(run, place >= distance ? self - distance : self);
    run = place >= distance ? TUFF_COMBINE(other, run) : run;
  }
  TUFF_VALUE before = TUFF_SHUFFLE(run, place > 0 ? self - 1 : self);
  before = place > 0 ? before : TUFF_IDENTITY;
  total = TUFF_SHUFFLE(run, self - place + (width - 1));
#if TUFF_SHARED
  if (place == 0) parts[gl_SubgroupID] = total;
  barrier();
  TUFF_VALUE earlier = TUFF_IDENTITY, all = TUFF_IDENTITY;
  for (uint s = 0; s < gl_NumSubgroups; ++s) {
    earlier = s == gl_SubgroupID ? all : earlier;
    all = TUFF_COMBINE(all, parts[s]);
  }
  barrier();
  before = TUFF_COMBINE(earlier, before);
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

  TUFF_VALUE carry = TUFF_IDENTITY;
#if TUFF_STAGE == 2
  TUFF_VALUE own = TUFF_IDENTITY;
  for (uint s = lane; live && s < segment; s += TUFF_LANES) {
    own = TUFF_COMBINE(own, TUFF_AT(Totals, piece - segment + s));
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
    TUFF_VALUE together = item.value[0];
    [[unroll]] for (uint c = 1; c < WIDTH; ++c) together = TUFF_COMBINE(together, item.value[c]);
    TUFF_VALUE total;
    TUFF_VALUE before = before_lane(together, total);
#if TUFF_STAGE != 1
    TUFF_VALUE run = TUFF_COMBINE(carry, before);
    [[unroll]] for (uint c = 0; c < WIDTH; ++c) {
      TUFF_VALUE through = TUFF_COMBINE(run, item.value[c]);
#if TUFF_EXCLUSIVE
      item.value[c] = run;
#else
      item.value[c] = through;
#endif
      run = through;
    }
    if (there) store_item(at, item);
#endif
    carry = TUFF_COMBINE(carry, total);
  }
#if TUFF_STAGE == 1
  if (live && lane == 0) TUFF_AT(Totals, piece) = carry;
#endif
}
