// Shared by the tiled GEMM kernels: parameters, operands, and the position of a workgroup's tile.
//
// Workgroups are numbered tile by tile within a matrix, then by matrix of the batch, then by split-K part.
// With split-K each part writes its sums to scratch memory (part-major) with alpha = 1 and beta = 0; gemm_finish adds
// them up in a fixed order.
//
//# TRANS_A : 0|1 : 1: A is stored as k x m
//# TRANS_B : 0|1 : 1: B is stored as n x k
// SUM_TYPE (gemm_types.glsl) is the type of A, B, C and the accumulators.
#include "kernels/gemm/common/gemm_pointer.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  TUFF_INDEX lda, ldb, ldc;                 // elements from one stored row to the next
  TUFF_INDEX stride_a, stride_b, stride_c;  // elements from one matrix to the next
  uint m, n, k;
  uint batch_count, slices, k_slice;  // slices: split-K parts; k_slice: length of one along k
  uint tiles_m, tiles_n;
  SCALAR alpha, beta;
} push;

TUFF_READ(0, A, SCALAR, SCALAR_BYTES)
TUFF_READ(0, A4, VECTOR, VECTOR_BYTES)
TUFF_READ(1, B, SCALAR, SCALAR_BYTES)
TUFF_READ(1, B4, VECTOR, VECTOR_BYTES)
TUFF_READ_WRITE(2, C, SCALAR, SCALAR_BYTES)
TUFF_READ_WRITE(2, C4, VECTOR, VECTOR_BYTES)

#include "kernels/gemm/common/gemm_place.glsl"
