// Copies an operand of a GEMM into panels, the order in which gemm_panels.comp reads it:
//
//   block of DEPTH steps of k | panel of ROWS rows | step | row
//
// Rows are op(A)'s rows or op(B)'s columns. Steps beyond k are zero; rows beyond the last repeat the last.
// A workgroup writes one panel of one block, an invocation one step of it.
//
//# ROWS : 2..16 : rows of a panel, even
//# DEPTH : 16..256 : steps of k of a block, and invocations of a workgroup
//# PAIRED : 0|1 : 1: two rows are read as one 64-bit number: row_step is 1, k_step and rows are even, 8-byte alignment
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint row_step, k_step;  // elements from one row to the next, from one step of k to the next
  uint rows, k;
} push;
TUFF_READ(0, X, float, 4)
TUFF_READ(0, X2, uint64_t, 8)
TUFF_WRITE(1, Panels, uint64_t, 8)

layout(local_size_x = DEPTH) in;

void main() {
  const uint step = gl_WorkGroupID.y * DEPTH + gl_LocalInvocationID.x;
  const uint row0 = gl_WorkGroupID.x * ROWS;
  const uint from = min(step, push.k - 1) * push.k_step, row_step = push.row_step;
  const uint panel = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint to = (panel * DEPTH + gl_LocalInvocationID.x) * (ROWS / 2);
  [[unroll]] for (uint r = 0; r < ROWS; r += 2) {
#if PAIRED
    uint64_t pair = TUFF_AT(X2, (from + min(row0 + r, push.rows - 2)) / 2);
#else
    const float low = TUFF_AT(X, from + min(row0 + r, push.rows - 1) * row_step);
    const float high = TUFF_AT(X, from + min(row0 + r + 1, push.rows - 1) * row_step);
    uint64_t pair = pack64(floatBitsToUint(vec2(low, high)));
#endif
    TUFF_AT(Panels, to + r / 2) = step < push.k ? pair : uint64_t(0);
  }
}
