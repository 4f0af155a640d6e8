// Running sums, products, maxima, minima or logarithms down the middle axis of [outer][length][inner]. Lanes are along inner with TUFF_WIDTH
// elements each, and each walks down the axis. Where lanes are few, the axis is cut into segments, which takes two
// dispatches: TUFF_STAGE 1 stores the totals [outer][segments][inner], and TUFF_STAGE 2 starts from those of the
// earlier segments. For logarithms, the sums follow the totals' maxima.
//
//# TUFF_WIDTH : 1|4|8 : elements of a lane; 4 or 8: TUFF_ELEMENTS, a divisor of inner; 1: inner has no such divisor
//# TUFF_UNROLL : 1|4 : rows in flight
#include "kernels/scan/scan.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint lanes;     // outer * segments * columns
  uint extent;    // rows
  uint columns;   // inner / TUFF_WIDTH
  uint segments;
  uint segment;   // rows of each; the last has the rest
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
#if TUFF_STAGE != 1
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)
#endif
#if TUFF_STAGE == 1
TUFF_BLOCKS_WRITE(2, Totals, TUFF_VALUE_TYPE)
#elif TUFF_STAGE == 2
TUFF_BLOCKS_READ(2, Totals, TUFF_VALUE_TYPE)
#endif

#if TUFF_WIDTH == 1
#define LOAD(name, i) tuff_block(name##_load(i))
#define STORE(name, i, block) name##_store(i, block.part[0].x)
#else
#define LOAD(name, i) name##_load_block(i)
#define STORE(name, i, block) name##_store_block(i, block)
#endif

// What is combined.
struct State {
  TuffBlock value;
#if TUFF_OP == 5
  TuffBlock sum;
#endif
};

State empty_state() {
  State state;
  state.value = tuff_block(TUFF_IDENTITY);
#if TUFF_OP == 5
  state.sum = tuff_block(TUFF_ZERO);
#endif
  return state;
}

State state_of(TuffBlock x) {
  State state;
  state.value = x;
#if TUFF_OP == 5
  state.sum = tuff_block(TUFF_ONE);
#endif
  return state;
}

State combined(State a, State b) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
#if TUFF_OP == 5
    combine_pairs(a.value.part[p], a.sum.part[p], b.value.part[p], b.sum.part[p]);
#else
    a.value.part[p] = TUFF_COMBINE(a.value.part[p], b.value.part[p]);
#endif
  }
  return a;
}

TuffBlock result(State a) {
#if TUFF_OP == 5
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) a.value.part[p] = pairs_logarithm(a.value.part[p], a.sum.part[p]);
#endif
  return a.value;
}

#if TUFF_STAGE == 1
void store_total(uint i, State state) {
  STORE(Totals, i, state.value);
#if TUFF_OP == 5
  STORE(Totals, i + push.lanes, state.sum);
#endif
}
#elif TUFF_STAGE == 2
State load_total(uint i) {
  State state;
  state.value = LOAD(Totals, i);
#if TUFF_OP == 5
  state.sum = LOAD(Totals, i + push.lanes);
#endif
  return state;
}
#endif

// Combines row `at` into `run` and stores its result.
void take(inout State run, TuffBlock x, TUFF_INDEX at) {
  State through = combined(run, state_of(x));
#if TUFF_STAGE != 1
#if TUFF_EXCLUSIVE
  STORE(Y, at, result(run));
#else
  STORE(Y, at, result(through));
#endif
#endif
  run = through;
}

void main() {
  uint t = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (t >= push.lanes) return;
  uint slice = t / push.columns, column = t - slice * push.columns, outer = slice, segment = 0;
#if TUFF_STAGE != 0
  outer = slice / push.segments;
  segment = slice - outer * push.segments;
#endif
  uint begin = segment * push.segment;
  uint rows = min(push.segment, push.extent - begin);
  State run = empty_state();
#if TUFF_STAGE == 2
  // In groups of 64, so that there are few serial additions where segments are many.
  for (uint s = 0; s < segment;) {
    State some = empty_state();
    for (uint end = min(s + 64, segment); s < end; ++s) {
      some = combined(some, load_total((slice - segment + s) * push.columns + column));
    }
    run = combined(run, some);
  }
#endif
#if TUFF_REVERSE
  TUFF_INDEX at = (TUFF_INDEX(outer) * push.extent + (push.extent - 1 - begin)) * push.columns + column;
#define STEP(n) (at - (n) * TUFF_INDEX(push.columns))
#else
  TUFF_INDEX at = (TUFF_INDEX(outer) * push.extent + begin) * push.columns + column;
#define STEP(n) (at + (n) * TUFF_INDEX(push.columns))
#endif
  uint r = 0;
#if TUFF_UNROLL > 1
  for (; r + TUFF_UNROLL <= rows; r += TUFF_UNROLL) {
    TuffBlock x[TUFF_UNROLL];
    [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) x[u] = LOAD(X, STEP(u));
    [[unroll]] for (uint u = 0; u < TUFF_UNROLL; ++u) take(run, x[u], STEP(u));
    at = STEP(TUFF_UNROLL);
  }
#endif
  for (; r < rows; ++r) {
    take(run, LOAD(X, at), at);
    at = STEP(1);
  }
#if TUFF_STAGE == 1
  store_total(t, run);
#endif
}
