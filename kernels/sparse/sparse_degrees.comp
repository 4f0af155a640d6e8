// D[i] += 1 for each entry by which row i of a triangle refers to another row. Integers, so that the order in which
// entries add does not matter.
//
//# TUFF_TRANSPOSED : 0|1 : 1: the triangle is the transpose of the matrix with rows R and columns S
//# TUFF_FORWARD : 0|1 : 1: rows refer to those before them, 0: to those behind
//# TUFF_RUN : 0.. : entries that a lane processes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint rows;
} push;

TUFF_READ(0, R, uint, 4)
TUFF_READ(1, S, uint, 4)
TUFF_READ_WRITE(2, D, uint, 4)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    const uint row = TUFF_AT(R, TUFF_INDEX(i)), column = TUFF_AT(S, TUFF_INDEX(i));
    const uint to = TUFF_TRANSPOSED != 0 ? column : row, from = TUFF_TRANSPOSED != 0 ? row : column;
    const bool refers = TUFF_FORWARD != 0 ? from < to : from > to;
    if (refers && max(from, to) < push.rows) atomicAdd(TUFF_AT(D, TUFF_INDEX(to)), 1u);
  }
}
