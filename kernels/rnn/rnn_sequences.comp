// Copies the rows of sequences, [step][sequence] of each direction, from strided memory of any type to dense f32
// [direction][step][sequence][column], or back. With lengths, rows beyond a sequence's length become zeros, whatever is
// read there.
//# TUFF_STORE : 0|1 : 1: back
//# TUFF_LENGTHS : 0|1 : 1: slot 1 has the lengths of sequences
//# TUFF_TYPE : 1..3 : element type of slot 0, as in tuff.h
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX step, sequence, direction;  // from one to the next, in elements of slot 0
  uint items, steps, batch, columns;
  uint skipped;  // so many sequences, the first ones, are zeros, and not copied back
} push;

#if TUFF_STORE
TUFF_WRITE(0, Rows, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_READ(2, Dense, float, 4)
#else
TUFF_READ(0, Rows, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(2, Dense, float, 4)
#endif
#if TUFF_LENGTHS
TUFF_READ(1, Lengths, int, 4)
#endif

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
  uint rest = item / push.columns;
  const uint column = item - rest * push.columns, b = rest % push.batch;
  rest /= push.batch;
  const uint d = rest / push.steps, t = rest - d * push.steps;
  bool runs = b >= push.skipped;
#if TUFF_STORE
  if (!runs) return;
#endif
#if TUFF_LENGTHS
  runs = runs && int(t) < TUFF_AT(Lengths, b);
#endif
  const TUFF_INDEX at = TUFF_INDEX(t) * push.step + TUFF_INDEX(b) * push.sequence + TUFF_INDEX(d) * push.direction + column;
#if TUFF_STORE
  TUFF_AT(Rows, at) = TUFF_ROUNDED(TUFF_TYPE, runs ? TUFF_AT(Dense, item) : 0.0);
#else
  float value = 0;
  if (runs) value = TUFF_LOADED(TUFF_TYPE, TUFF_AT(Rows, at));
  TUFF_AT(Dense, item) = value;
#endif
}
