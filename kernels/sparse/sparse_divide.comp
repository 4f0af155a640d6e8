// The row and the column of the block of each entry, from the entry's own: R and S, divided in place. Block rows and
// columns divide the matrix's, so numbers that are out of range stay so.
//
//# TUFF_RUN : 0.. : entries that a lane processes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n, run;
  uint block_rows, block_columns;
} push;

TUFF_READ_WRITE(0, R, uint, 4)
TUFF_READ_WRITE(1, S, uint, 4)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    TUFF_AT(R, TUFF_INDEX(i)) = TUFF_AT(R, TUFF_INDEX(i)) / push.block_rows;
    TUFF_AT(S, TUFF_INDEX(i)) = TUFF_AT(S, TUFF_INDEX(i)) / push.block_columns;
  }
}
