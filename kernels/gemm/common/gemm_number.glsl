#ifndef GEMM_NUMBER_GLSL
#define GEMM_NUMBER_GLSL
// What the push block of a product depends on that has an epilogue (gemm_epilogue.glsl).
//
//# C_TYPE : 1..5 : TUFF_* of C, bias and residual
//# BIAS_AXIS : 0..2 : TUFF_BIAS_*: 0 none, 1 rows, 2 columns; 0: slot C_SLOT + 1 is not touched
//# RESIDUAL : 0|1 : 0: slot C_SLOT + 2 is not touched
#include "kernels/common/types.glsl"

// What a product is scaled and finished in before it becomes C_TYPE.
#if C_TYPE == TUFF_F64
#define NUMBER double
#elif C_TYPE == TUFF_I32
#define NUMBER int
#else
#define NUMBER float
#endif

// Whether there is anything to be added: five operands, and the places of two of them in the push block.
#define EPILOGUE (BIAS_AXIS || RESIDUAL)
#endif
