// The terms of a product of two sparse matrices that each entry of B has: L[i] is the number of entries of A in column
// R[i], for the entry of B that is number i by column and has the row R[i]. Entries out of range, whose column K[i] is
// not below `columns`, have none.
//
//# TUFF_RUN : 0.. : entries that a lane processes; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint columns;
  uint rows;  // of B
} push;

TUFF_READ(0, K, uint, 4)  // K, and then R
TUFF_READ(1, O, uint, 4)  // offsets of A's columns
TUFF_WRITE(2, L, uint, 4)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) {
    uint length = 0u;
    if (TUFF_AT(K, TUFF_INDEX(i)) < push.columns) {
      // Where offsets decrease, an entry may have any row.
      const uint row = min(TUFF_AT(K, TUFF_INDEX(push.n + i)), push.rows - 1u);
      length = TUFF_AT(O, TUFF_INDEX(row + 1u)) - TUFF_AT(O, TUFF_INDEX(row));
    }
    TUFF_AT(L, TUFF_INDEX(i)) = length;
  }
}
