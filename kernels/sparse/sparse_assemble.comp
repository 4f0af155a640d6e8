// The values of blocks, from the entries of a matrix, each place once. Block u has the entries P[e] for e from Q[u] to
// Q[u + 1] - 1, in order of their rows M and columns N: each element is looked up there by its place in the block, and is 0
// where there is none. Blocks that there are not have no entries.
//
//# TUFF_TYPE : 1..4 : element type, as in tuff.h
//# TUFF_SOME : 0|1 : 0: there are no entries, and nothing is read
//# TUFF_RUN : 0.. : elements that a lane writes; 0: push.run says
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(6)
  uint n, run;  // elements
  uint block_rows, block_columns;
  uint row_stride, column_stride;
} push;

TUFF_READ(0, Q, uint, 4)
TUFF_READ(1, P, uint, 4)
TUFF_READ(2, M, uint, 4)
TUFF_READ(3, N, uint, 4)
TUFF_READ(4, A, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(5, Y, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))

#include "kernels/sparse/blocks.glsl"

#if TUFF_SOME
// Entry e's place in its block, row by row.
uint place_of(uint e) {
  return TUFF_AT(M, TUFF_INDEX(e)) % push.block_rows * push.block_columns + TUFF_AT(N, TUFF_INDEX(e)) % push.block_columns;
}

TUFF_VALUE value_of(BlockElement at) {
  const uint place = at.row * push.block_columns + at.column, end = TUFF_AT(Q, TUFF_INDEX(at.block + 1u));
  uint low = TUFF_AT(Q, TUFF_INDEX(at.block)), high = end;
  while (low < high) {
    const uint middle = (low + high) / 2u;
    if (place_of(TUFF_AT(P, TUFF_INDEX(middle))) < place) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  if (low >= end) return TUFF_ZERO;
  const uint e = TUFF_AT(P, TUFF_INDEX(low));
  if (place_of(e) != place) return TUFF_ZERO;
  return TUFF_VALUE(TUFF_NUMBER(TUFF_TYPE, TUFF_LOADED(TUFF_TYPE, TUFF_AT(A, TUFF_INDEX(e)))));
}
#endif

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    TUFF_VALUE value = TUFF_ZERO;
#if TUFF_SOME
    value = value_of(element_of(i));
#endif
    TUFF_AT(Y, TUFF_INDEX(i)) = TUFF_ROUNDED(TUFF_TYPE, TUFF_OF_VALUE(TUFF_TYPE, value));
  }
}
