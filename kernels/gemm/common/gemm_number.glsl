#ifndef GEMM_NUMBER_GLSL
#define GEMM_NUMBER_GLSL
// The defines that the push block of a GEMM with an epilogue (gemm_epilogue.glsl) depends on.
//
//# C_TYPE : 1..5|14..15 : TUFF_* type of C, bias and residual; 8-bit floats only in the second pass
//# BIAS_AXIS : 0..2 : TUFF_BIAS_*: 0 none, 1 rows, 2 columns; 0: slot C_SLOT + 1 is not accessed
//# RESIDUAL : 0|1 : 1: a residual is added; 0: slot C_SLOT + 2 is not accessed
#include "kernels/common/types.glsl"

// The type in which sums are scaled and the epilogue is computed, before rounding to C_TYPE.
#define NUMBER TUFF_COMPUTED(C_TYPE)

// Whether there is a bias or a residual: the kernel then has five operands, and the push block has these two's strides.
#define EPILOGUE (BIAS_AXIS || RESIDUAL)
#endif
