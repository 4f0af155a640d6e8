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
//# A_TYPE : 1..3 : element type of A, as in tuff.h
//# VECTOR_A : 0|1 : 1: four elements of A are one access: A and lda are multiples of them
layout(local_size_x_id = 0) in;

#include "kernels/gemm/common/gemm_number.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint n, items;  // rows of W, and the items of a row
  uint lda, ldc, ld_residual;
  uint scales;       // of a row of W; 0: one for all
  uint block_shift;  // an item's scale is its number >> block_shift
  uint first_zero;   // always 0
  float alpha;
} push;

#define C_SLOT 4
#include "kernels/gemm/common/gemm_epilogue.glsl"
#include "kernels/quant/quant_blocks.glsl"
#if TUFF_FORMAT == 0
#include "kernels/quant/quant_integers.glsl"
#include "kernels/quant/quant_scales.glsl"
TUFF_READ(0, Eights, EIGHT, TUFF_BITS)
#endif

TUFF_READ(3, A, TUFF_STORED(A_TYPE), TUFF_BYTES(A_TYPE))
#if VECTOR_A
#if A_TYPE == 1
TUFF_READ(3, A4, uvec4, 16)
#else
TUFF_READ(3, A4, uvec2, 8)
#endif
#endif

vec4 four_of_a(uint at) {
#if VECTOR_A
  return TUFF_UNPACKED(A_TYPE, TUFF_AT(A4, at / 4));
#else
  vec4 v;
  [[unroll]] for (uint c = 0; c < 4; ++c) v[c] = TUFF_LOADED(A_TYPE, TUFF_AT(A, at + c));
  return v;
#endif
}

Numbers weights_of(uint row, uint item) {
#if TUFF_FORMAT != 0
  const uint of_block = BLOCK / 8;
  return decode((TUFF_INDEX(row) * (push.items / of_block) + item / of_block) * BLOCK_WORDS, item % of_block);
#else
  const Integers q = eight_of(TUFF_AT(Eights, TUFF_INDEX(row) * push.items + item));
  const TUFF_INDEX at = TUFF_INDEX(row) * push.scales + (item >> push.block_shift);
  const float scale = scale_at(at);
  const int zero = zero_at(at);
  Numbers numbers;
  [[unroll]] for (uint p = 0; p < 2; ++p) numbers.part[p] = vec4(q.part[p] - zero) * scale;
  return numbers;
#endif
}

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
