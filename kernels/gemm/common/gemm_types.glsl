// The type that a GEMM accumulates in, and its vectors.
//
//# SUM_TYPE : 1|4|5 : type of products and sums: TUFF_F32, TUFF_F64 or TUFF_I32
#define TUFF_VALUE_OF SUM_TYPE
#include "kernels/common/types.glsl"

#define SCALAR TUFF_VALUE
#define PAIR TUFF_VALUE2
#define VECTOR TUFF_VALUE4
#define SCALAR_BYTES TUFF_BYTES(SUM_TYPE)
#define PAIR_BYTES (2 * SCALAR_BYTES)
#define VECTOR_BYTES (4 * SCALAR_BYTES)

// a * b + c, for scalars and vectors; integers wrap around.
#if SUM_TYPE == TUFF_I32
#define FMA(a, b, c) ((a) * (b) + (c))
#else
#define FMA(a, b, c) fma(a, b, c)
#endif
