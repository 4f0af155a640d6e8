// C = alpha * (partials of slice 0 + slice 1 + …) + beta * C: the second pass of a product whose k was cut into
// slices, always in the order of the slices; with no slices, C = beta * C.
//
// The partials are dense: slice-major, then as the m x n matrices of the batch follow one another. An
// invocation handles ITEMS elements, LOCAL_SIZE apart.
//
// Defines: LOCAL_SIZE, ITEMS
//          DENSE   1: C is laid out like a slice
layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX ldc, stride_c, elements, matrix, n;  // elements of a slice, of one of its matrices, of a row
  uint slices;
  float alpha, beta;
} push;
TUFF_READ(0, Partials, float, 4)
TUFF_READ_WRITE(1, C, float, 4)

layout(local_size_x = LOCAL_SIZE) in;

void main() {
  const TUFF_INDEX elements = push.elements, ldc = push.ldc, stride_c = push.stride_c, matrix = push.matrix;
  const TUFF_INDEX n = push.n;
  const uint slices = push.slices;
  const float alpha = push.alpha, beta = push.beta;
  TUFF_INDEX first = TUFF_INDEX(tuff_group()) * (LOCAL_SIZE * ITEMS) + gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    TUFF_INDEX element = first + i * LOCAL_SIZE;
    if (element < elements) {
      float sum = 0.0;
      [[dont_unroll]] for (uint s = 0; s < slices; ++s) sum += TUFF_AT(Partials, s * elements + element);
#if DENSE
      TUFF_INDEX at = element;
#else
      TUFF_INDEX within = element % matrix;
      TUFF_INDEX at = element / matrix * stride_c + within / n * ldc + within % n;
#endif
      // With no slices there is no product, and alpha may be infinite.
      float value = slices == 0 ? 0.0 : alpha * sum;
      if (beta != 0.0) value = fma(beta, TUFF_AT(C, at), value);
      TUFF_AT(C, at) = value;
    }
  }
}
