// C = activation(alpha * A * W^T + bias + residual) for one to four rows of A, bound by reading W once: one subgroup per
// ROWS rows of W.
//
// An item is eight numbers of a row of W. Lane l of a subgroup has items l, l + width, … of each of its rows, and the
// same elements of every row of A; the lanes' sums are then added. A workgroup covers GROUP_ROWS rows of W, however many
// subgroups it turns out to have.
//
//# GROUP_ROWS : 1.. : rows of W of a workgroup, a multiple of ROWS
//# ROWS : 1|2|4 : rows of W of a subgroup at a time, which share what is read of A
//# COUNT : 1..4 : rows of A
layout(local_size_x_id = 0) in;

#include "kernels/quant/qgemm_operands.glsl"

void main() {
  const uint lane = gl_SubgroupInvocationID, width = gl_SubgroupSize;
  const uint group = tuff_group();
  for (uint part = gl_SubgroupID * ROWS; part < GROUP_ROWS; part += gl_NumSubgroups * ROWS) {
    const uint row0 = group * GROUP_ROWS + part;
    if (row0 >= push.n) return;
    vec4 sums[ROWS][COUNT];
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint j = 0; j < COUNT; ++j) sums[r][j] = vec4(0.0);
    }
    [[dont_unroll]] for (uint item = lane; item < push.items; item += width) {
      vec4 low[COUNT], high[COUNT];
      [[unroll]] for (uint j = 0; j < COUNT; ++j) {
        low[j] = four_of_a(j * push.lda + 8 * item);
        high[j] = four_of_a(j * push.lda + 8 * item + 4);
      }
      [[unroll]] for (uint r = 0; r < ROWS; ++r) {
        const Numbers w = weights_of(min(row0 + r, push.n - 1), item);  // rows beyond the last are not stored
        [[unroll]] for (uint j = 0; j < COUNT; ++j) {
          sums[r][j] = fma(w.part[0], low[j], fma(w.part[1], high[j], sums[r][j]));
        }
      }
    }
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint j = 0; j < COUNT; ++j) {
        const vec4 s = sums[r][j];
        const float sum = subgroupAdd((s.x + s.y) + (s.z + s.w));
        const uint row = row0 + r;
        if (lane == 0 && row < push.n) {
          gemm_store(push.alpha * sum, 0.0, j * push.ldc + row, row, j * push.ld_residual + row);
        }
      }
    }
  }
}
