// C = activation(alpha * A * W^T + bias + residual), with a tile of C in the registers of one subgroup, as in
// gemm_subgroup.comp: for CPU devices. Weights are dequantised as they are loaded, by every tile of the same columns
// anew. On Mesa 22.3 the largest tile takes as long as GEMM's does with weights that have been dequantised before, or less.
//
// A workgroup is one subgroup of WIDTH lanes. Its tile has ROW_BLOCKS * WIDTH rows of A and COLS * WIDTH rows of W, of
// which each lane has COLS, WIDTH apart. For each item a lane dequantises those of its rows of W and loads its
// ROW_BLOCKS rows of A; each value of A is passed to the other lanes by a shuffle. Rows beyond the matrices read the last
// one and are not stored.
//
//# WIDTH : 2..16 : subgroup size
//# ROW_BLOCKS : 1|2|4 : rows of A of the tile, in units of WIDTH
//# COLS : 1|2|4 : rows of W of a lane
layout(local_size_x = WIDTH) in;

#include "kernels/quant/qgemm_operands.glsl"

#define ROWS (ROW_BLOCKS * WIDTH)

void main() {
  const uint lane = gl_SubgroupInvocationID;
  // Tiles of the same rows of W follow one another.
  const uint group = tuff_group(), tiles_m = (push.m + ROWS - 1) / ROWS;
  const uint row0 = group % tiles_m * ROWS, col0 = group / tiles_m * (COLS * WIDTH);
  if (col0 >= push.n) return;
  uint a_at[ROW_BLOCKS], col[COLS];
  [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) a_at[i] = min(row0 + i * WIDTH + lane, push.m - 1) * push.lda;
  [[unroll]] for (uint c = 0; c < COLS; ++c) col[c] = min(col0 + c * WIDTH + lane, push.n - 1);
  float sums[ROWS][COLS];
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    [[unroll]] for (uint c = 0; c < COLS; ++c) sums[r][c] = 0.0;
  }
  [[dont_unroll]] for (uint item = 0; item < push.items; ++item) {
    vec4 a[ROW_BLOCKS][2];
    [[unroll]] for (uint i = 0; i < ROW_BLOCKS; ++i) {
      [[unroll]] for (uint p = 0; p < 2; ++p) a[i][p] = four_of_a(a_at[i] + 8 * item + 4 * p);
    }
    Numbers w[COLS];
    [[unroll]] for (uint c = 0; c < COLS; ++c) w[c] = weights_of(col[c], item);
    [[unroll]] for (uint r = 0; r < ROWS; ++r) {
      [[unroll]] for (uint q = 0; q < 8; ++q) {
        const float value = subgroupShuffle(a[r / WIDTH][q / 4][q % 4], r % WIDTH);
        [[unroll]] for (uint c = 0; c < COLS; ++c) sums[r][c] = fma(value, w[c].part[q / 4][q % 4], sums[r][c]);
      }
    }
  }
  [[unroll]] for (uint r = 0; r < ROWS; ++r) {
    const uint row = row0 + r;
    if (row < push.m) {
      [[unroll]] for (uint c = 0; c < COLS; ++c) {
        const uint at = col0 + c * WIDTH + lane;
        if (at < push.n) gemm_store(push.alpha * sums[r][c], 0.0, row * push.ldc + at, at, row * push.ld_residual + at);
      }
    }
  }
}
