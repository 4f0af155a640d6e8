// C = activation(alpha * scale of A * sum + bias + residual) from products of integers of 8 bits, where sum is
//
//   of all blocks of k    scale of W * (products - zero of A * sums of W - zero of W * sums of A + terms * both zeros)
//
// which is that of (a - zero of A) * (w - zero of W) * scale of W. The parentheses are computed modulo 2^32, as the products
// were. A dispatch has one block. If there are several, S keeps the sum from one to the next; or another kernel has left
// that of all blocks there.
//
//# TUFF_FIRST : 0|1 : 1: of the first block
//# TUFF_LAST : 0|1 : 1: of the last block
//# TUFF_SUMMED : 0|1 : 1: S has the sum of all blocks
//# A_ROWS : 0|1 : 1: each row of A has a scale, and perhaps a zero point; 0: they are for all of A
//# A_ZEROS : 0|1 : 1: A has zero points
//# A_UNSIGNED : 0|1 : 1: A's integers were without sign, and its zero points still are
//# W_ZEROS : 0|1 : 1: W has zero points
//# W_UNSIGNED : 0|1 : likewise
//# TUFF_SCALE : 1..3 : type of the scales, as in tuff.h
//# TUFF_RUN : 0.. : elements of a lane; 0: push.run says
#include "kernels/gemm/common/gemm_number.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(11)
  uint n, run;   // elements
  uint columns;  // of C
  uint ldc, ld_residual;
  uint scales;   // of a row of W; 0: one for all
  uint block;    // the number of this one's
  uint terms;   // its part of k
  float alpha;
} push;

TUFF_READ(0, Product, int, 4)
TUFF_READ(1, WScale, TUFF_STORED(TUFF_SCALE), TUFF_BYTES(TUFF_SCALE))
TUFF_READ(3, AScale, TUFF_STORED(TUFF_SCALE), TUFF_BYTES(TUFF_SCALE))
#if W_UNSIGNED
TUFF_READ(2, WZero, uint8_t, 1)
#else
TUFF_READ(2, WZero, int8_t, 1)
#endif
#if A_UNSIGNED
TUFF_READ(4, AZero, uint8_t, 1)
#else
TUFF_READ(4, AZero, int8_t, 1)
#endif
TUFF_READ(5, ASum, int, 4)
TUFF_READ(6, WSum, int, 4)
TUFF_READ_WRITE(7, S, float, 4)

#define C_SLOT 8
#include "kernels/gemm/common/gemm_epilogue.glsl"

// Zero points of the integers with sign that were multiplied.
int zero_of_a(uint row) {
#if A_ZEROS
  return int(TUFF_AT(AZero, A_ROWS * row)) - 128 * A_UNSIGNED;
#else
  return -128 * A_UNSIGNED;
#endif
}
int zero_of_w(TUFF_INDEX at) {
#if W_ZEROS
  return int(TUFF_AT(WZero, at)) - 128 * W_UNSIGNED;
#else
  return -128 * W_UNSIGNED;
#endif
}

void put(uint i) {
  const uint row = i / push.columns, column = i - row * push.columns;
#if TUFF_SUMMED
  const float sum = TUFF_AT(S, TUFF_INDEX(i));
#else
  const TUFF_INDEX scale_at = TUFF_INDEX(column) * push.scales + push.block;
  int product = TUFF_AT(Product, TUFF_INDEX(i));
#if A_ZEROS || A_UNSIGNED
  product -= zero_of_a(row) * TUFF_AT(WSum, TUFF_INDEX(column));
#endif
#if W_ZEROS || W_UNSIGNED
  product -= zero_of_w(scale_at) * (TUFF_AT(ASum, TUFF_INDEX(row)) - int(push.terms) * zero_of_a(row));
#endif
  float sum = float(product) * TUFF_LOADED(TUFF_SCALE, TUFF_AT(WScale, scale_at));
#if !TUFF_FIRST
  sum += TUFF_AT(S, TUFF_INDEX(i));
#endif
#endif
#if TUFF_LAST
  const float scale = push.alpha * TUFF_LOADED(TUFF_SCALE, TUFF_AT(AScale, TUFF_INDEX(A_ROWS * row)));
  gemm_store(scale * sum, 0.0, TUFF_INDEX(row) * push.ldc + column, TUFF_INDEX(column),
             TUFF_INDEX(row) * push.ld_residual + column);
#else
  TUFF_AT(S, TUFF_INDEX(i)) = sum;
#endif
}

void main() {
  uint i = (tuff_group() * RUN) * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += gl_WorkGroupSize.x) put(i);
}
