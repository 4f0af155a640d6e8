#ifndef GEMM_NUMBER_GLSL
#define GEMM_NUMBER_GLSL
#include "kernels/common/types.glsl"

// What a product is scaled and finished in before it becomes C_TYPE.
#if C_TYPE == TUFF_F64
#define NUMBER double
#elif C_TYPE == TUFF_I32
#define NUMBER int
#else
#define NUMBER float
#endif
#endif
