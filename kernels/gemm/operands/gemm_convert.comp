// Copies a batch of matrices into dense ones of another element type: the tile kernels multiply a single type.
//
// An invocation writes ITEMS vec4 of a row, LOCAL_SIZE vec4 apart. The copy's rows are padded to whole vec4; kernels
// never use the padding as elements.
//
//# LOCAL_SIZE : 1.. : invocations of a workgroup
//# ITEMS : 1..8 : vec4 of an invocation
//# IN_TYPE : 1..5|7|14..15 : TUFF_* type of the input
//# OUT_TYPE : 1..5 : TUFF_* type of the copy
// SUM_TYPE is the intermediate type: OUT_TYPE, or f32 for f16 and bf16. Elements are copied unchanged if IN_TYPE is the
// 16-bit OUT_TYPE.
#include "kernels/gemm/common/gemm_types.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX ld, stride;       // of the input, in elements
  TUFF_INDEX vectors, matrix;  // vec4 of the copy: in total, in one matrix
  uint row_vectors, cols;      // of one row: vec4 of the copy, elements of the input
} push;
TUFF_READ(0, In, TUFF_STORED(IN_TYPE), TUFF_BYTES(IN_TYPE))
#if OUT_TYPE == SUM_TYPE
TUFF_WRITE(1, Out, VECTOR, VECTOR_BYTES)
#define PACKED(v) (v)
#else
TUFF_WRITE(1, Out, uvec2, 8)
#define PACKED(v)                                                                                       \
  uvec2(uint(TUFF_ROUNDED(OUT_TYPE, v[0])) | uint(TUFF_ROUNDED(OUT_TYPE, v[1])) << 16,                  \
        uint(TUFF_ROUNDED(OUT_TYPE, v[2])) | uint(TUFF_ROUNDED(OUT_TYPE, v[3])) << 16)
#endif

layout(local_size_x = LOCAL_SIZE) in;

void main() {
  const TUFF_INDEX first = TUFF_INDEX(tuff_group()) * (LOCAL_SIZE * ITEMS) + gl_LocalInvocationIndex;
  const TUFF_INDEX vectors = push.vectors, matrix = push.matrix, ld = push.ld, stride = push.stride;
  const uint row_vectors = push.row_vectors, cols = push.cols;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const TUFF_INDEX at = first + i * LOCAL_SIZE;
    if (at < vectors) {
      const TUFF_INDEX within = at % matrix;
      const uint col = uint(within % row_vectors) * 4;
      TUFF_TAKE(at / matrix)
      const TUFF_INDEX from = at / matrix * stride + within / row_vectors * ld + col;
      // Past a row's end its last element is read again.
#define ELEMENT(e) TUFF_AT(In, from + min(uint(e), cols - 1 - col))
#if IN_TYPE == OUT_TYPE && OUT_TYPE != SUM_TYPE
      TUFF_AT(Out, at) = uvec2(uint(ELEMENT(0)) | uint(ELEMENT(1)) << 16, uint(ELEMENT(2)) | uint(ELEMENT(3)) << 16);
#else
      VECTOR four;
      [[unroll]] for (uint e = 0; e < 4; ++e) four[e] = TUFF_LOADED(IN_TYPE, ELEMENT(e));
      TUFF_AT(Out, at) = PACKED(four);
#endif
    }
  }
}
