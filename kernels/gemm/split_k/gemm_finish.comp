// C = activation(alpha * (partials of part 0 + part 1 + …) + beta * C + bias + residual): the second pass of a GEMM
// with split-K, whose parts are always added in order, or with a C of another type than the sums', or with an epilogue.
// With zero parts the sum is zero and alpha is not applied. With scales alpha is alpha * scale_a * scale_b, and the
// result is multiplied by scale_c.
//
// The partials are dense: part-major, then the m x n matrices of the batch one after another. An invocation handles
// ITEMS elements, LOCAL_SIZE apart.
//
//# LOCAL_SIZE : 1.. : invocations of a workgroup
//# ITEMS : 1..16 : elements of an invocation
//# SCALES : 0|1 : 1: there are scales; operands 4, 5 and 6 are scale_a, scale_b and scale_c, one f32 each
//# DENSE : 0|1 : 1: C is laid out like one part of the partials
// SUM_TYPE is the type of the partials.
#include "kernels/gemm/common/gemm_types.glsl"
#include "kernels/gemm/common/gemm_number.glsl"
#include "kernels/common/division.glsl"

layout(push_constant, std430) uniform Push {
#if SCALES
  TUFF_BASES(7)
#else
  TUFF_BASES(4)
#endif
  TUFF_INDEX ldc, stride_c, elements, matrix;  // elements: of one part; matrix: of one matrix
  TUFF_INDEX ld_residual, stride_bias, stride_residual;
  uint n;       // elements of a row
  uint slices;  // and above bit 16 a bit for each scale that there is: the push block has no room for more
  NUMBER alpha, beta;
#if !TUFF_WIDE
  // multipliers and shifts, because an integer division is slow
  uint matrix_multiplier, matrix_shift, n_multiplier, n_shift;
#endif
} push;
#define C_SLOT 1
#if SCALES
TUFF_READ(4, ScaleA, float, 4)
TUFF_READ(5, ScaleB, float, 4)
TUFF_READ(6, ScaleC, float, 4)
#define GEMM_SCALE(operand, bit) ((push.slices >> (16 + bit) & 1u) != 0u ? TUFF_AT(operand, 0) : 1.0)
#define GEMM_SCALED(value) ((value) * GEMM_SCALE(ScaleC, 2))
#endif
#include "kernels/gemm/common/gemm_epilogue.glsl"
TUFF_READ(0, Partials, SCALAR, SCALAR_BYTES)

layout(local_size_x = LOCAL_SIZE) in;

// Adds up parts from s on, so many at once.
#define ADD_AT_ONCE(count)                                                                                        \
  [[dont_unroll]] for (; s + count <= slices; s += count) {                                                       \
    SCALAR part[count];                                                                                           \
    [[unroll]] for (uint j = 0; j < count; ++j) part[j] = TUFF_AT(Partials, (s + j) * elements + element);        \
    [[unroll]] for (uint j = 0; j < count; ++j) sum += part[j];                                                   \
  }

void main() {
  const TUFF_INDEX elements = push.elements, ldc = push.ldc, stride_c = push.stride_c, matrix = push.matrix;
  const TUFF_INDEX n = push.n;
  const uint slices = push.slices & 0xffffu;
#if SCALES
  const NUMBER alpha = push.alpha * GEMM_SCALE(ScaleA, 0) * GEMM_SCALE(ScaleB, 1);
#else
  const NUMBER alpha = push.alpha;
#endif
  const NUMBER beta = push.beta;
  const TUFF_INDEX first = TUFF_INDEX(tuff_group()) * (LOCAL_SIZE * ITEMS) + gl_LocalInvocationIndex;
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const TUFF_INDEX element = first + i * LOCAL_SIZE;
    if (element < elements) {
      SCALAR sum = SCALAR(0);
      uint s = 0;
#if ITEMS == 1
      // On GPUs, so that the loads of several parts are under way at once. The order of the additions stays the same.
      ADD_AT_ONCE(16)
      ADD_AT_ONCE(4)
#endif
      [[dont_unroll]] for (; s < slices; ++s) sum += TUFF_AT(Partials, s * elements + element);
#if DENSE && !BIAS_AXIS && !RESIDUAL && !TUFF_EACH
      const TUFF_INDEX at = element, bias_at = 0, residual_at = 0;
#else
#if TUFF_WIDE
      const TUFF_INDEX batch = element / matrix, within = element % matrix, row = within / n, col = within % n;
#else
      const uint batch = tuff_divide(element, push.matrix_multiplier, push.matrix_shift);
      const uint within = element - batch * matrix;
      const uint row = tuff_divide(within, push.n_multiplier, push.n_shift), col = within - row * n;
#endif
      TUFF_TAKE(batch)
      const TUFF_INDEX at = DENSE != 0 ? element : batch * stride_c + row * ldc + col;
      const TUFF_INDEX bias_at = batch * push.stride_bias + (BIAS_AXIS == 1 ? row : col);
      const TUFF_INDEX residual_at = batch * push.stride_residual + row * push.ld_residual + col;
#endif
      // With zero parts alpha may be infinite, and 0 * alpha would be NaN.
      gemm_store(slices == 0 ? NUMBER(0) : alpha * NUMBER(sum), beta, at, bias_at, residual_at);
    }
  }
}
