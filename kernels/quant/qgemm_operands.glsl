// Operands of the kernels that multiply by quantised weights as they are stored: the push block, four elements of A, and
// the weights.
//
//# A_TYPE : 1..3 : element type of A, as in tuff.h
//# VECTOR_A : 0|1 : 1: four elements of A are one access: A and lda are multiples of them
#include "kernels/gemm/common/gemm_number.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint m, n, items;  // rows of A and of W, and the items of a row
  uint lda, ldc, ld_residual;
  uint scales;       // of a row of W; 0: one for all
  uint block_shift;  // an item's scale is its number >> block_shift
  uint first_zero;   // always 0
  float alpha;
} push;

#define C_SLOT 4
#include "kernels/gemm/common/gemm_epilogue.glsl"
#include "kernels/quant/qgemm_weights.glsl"

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
