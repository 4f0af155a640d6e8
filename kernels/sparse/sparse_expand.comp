// The row and the column of each element of blocks, in the order in which they are stored, from those of the blocks: R and
// S from K and L. Elements of a block whose row is `lines` have the row and column `rows` and `columns`: sparse_keys.comp
// gives blocks that are out of range this number.
//
//# TUFF_RUN : 0.. : elements that a lane processes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint n, run;  // elements
  uint rows, columns, lines;
  uint block_rows, block_columns;
  uint row_stride, column_stride;  // in a block; one of them is 1
} push;

TUFF_READ(0, K, uint, 4)
TUFF_READ(1, L, uint, 4)
TUFF_WRITE(2, R, uint, 4)
TUFF_WRITE(3, S, uint, 4)

#include "kernels/sparse/blocks.glsl"

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    const BlockElement at = element_of(i);
    const uint line = TUFF_AT(K, TUFF_INDEX(at.block));
    const bool is = line < push.lines;
    TUFF_AT(R, TUFF_INDEX(i)) = is ? line * push.block_rows + at.row : push.rows;
    TUFF_AT(S, TUFF_INDEX(i)) = is ? TUFF_AT(L, TUFF_INDEX(at.block)) * push.block_columns + at.column : push.columns;
  }
}
