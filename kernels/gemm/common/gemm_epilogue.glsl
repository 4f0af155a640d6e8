// A GEMM's epilogue: C = activation(alpha * sum + beta * C + bias + residual), rounded to C's type.
//
//# group epilogue : ACTIVATION BIAS_AXIS C_TYPE RESIDUAL TUFF_EXACT_ARITHMETIC : the epilogue, and C's type
// Included after the push block, which takes NUMBER and EPILOGUE from gemm_number.glsl. C_SLOT is C's operand slot.
// GEMM_SCALED(value), if defined, is applied before rounding.
#include "kernels/gemm/common/gemm_number.glsl"

TUFF_READ_WRITE(C_SLOT, Result, TUFF_STORED(C_TYPE), TUFF_BYTES(C_TYPE))
#if BIAS_AXIS
TUFF_READ(C_SLOT + 1, Bias, TUFF_STORED(C_TYPE), TUFF_BYTES(C_TYPE))
#endif
#if RESIDUAL
TUFF_READ(C_SLOT + 2, Residual, TUFF_STORED(C_TYPE), TUFF_BYTES(C_TYPE))
#endif

#include "kernels/gemm/common/gemm_activation.glsl"

// Element `at` of C before rounding, given the indices of its bias and residual elements. product is alpha * sum.
NUMBER gemm_result(NUMBER product, NUMBER beta, TUFF_INDEX at, TUFF_INDEX bias_at, TUFF_INDEX residual_at) {
  NUMBER value = product;
  if (beta != NUMBER(0)) {
    const NUMBER before = TUFF_LOADED(C_TYPE, TUFF_AT(Result, at));
#if C_TYPE == TUFF_I32
    value += beta * before;
#else
    value = fma(beta, before, value);
#endif
  }
#if BIAS_AXIS
  value += TUFF_LOADED(C_TYPE, TUFF_AT(Bias, bias_at));
#endif
#if RESIDUAL
  value += TUFF_LOADED(C_TYPE, TUFF_AT(Residual, residual_at));
#endif
  return gemm_activation(value);
}

#ifndef GEMM_SCALED
#define GEMM_SCALED(value) (value)
#endif
void gemm_store(NUMBER product, NUMBER beta, TUFF_INDEX at, TUFF_INDEX bias_at, TUFF_INDEX residual_at) {
  TUFF_AT(Result, at) = TUFF_ROUNDED(C_TYPE, GEMM_SCALED(gemm_result(product, beta, at, bias_at, residual_at)));
}
