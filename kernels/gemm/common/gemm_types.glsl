// The type that a GEMM accumulates in, and its vectors.
//
//# SUM_TYPE : 1|4|5 : type of products and sums: TUFF_F32, TUFF_F64 or TUFF_I32
#include "kernels/common/types.glsl"

#if SUM_TYPE == TUFF_F64
#define SCALAR double
#define PAIR dvec2
#define VECTOR dvec4
#elif SUM_TYPE == TUFF_I32
#define SCALAR int
#define PAIR ivec2
#define VECTOR ivec4
#else
#define SCALAR float
#define PAIR vec2
#define VECTOR vec4
#endif
#define SCALAR_BYTES TUFF_BYTES(SUM_TYPE)
#if SUM_TYPE == TUFF_F64
#define PAIR_BYTES 16
#define VECTOR_BYTES 32
#else
#define PAIR_BYTES 8
#define VECTOR_BYTES 16
#endif

// a * b + c, for scalars and vectors; integers wrap around.
#if SUM_TYPE == TUFF_I32
#define FMA(a, b, c) ((a) * (b) + (c))
#else
#define FMA(a, b, c) fma(a, b, c)
#endif
