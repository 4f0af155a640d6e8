// vec4 tuff_apply(vec4 a, vec4 b), four elements of op(a, b).
//# TUFF_OP : 1.. : a TUFF_BINARY_* of tuff.h; a new one is a line here and a line in elementwise_ops.hpp
#include "kernels/elementwise/math.glsl"
#if TUFF_OP == 7
#include "kernels/elementwise/power.glsl"
#endif

vec4 tuff_apply(vec4 a, vec4 b) {
#if TUFF_OP == 1
  return a + b;
#elif TUFF_OP == 2
  return a - b;
#elif TUFF_OP == 3
  return a * b;
#elif TUFF_OP == 4
  return tuff_divide(a, b);
#elif TUFF_OP == 5
  return tuff_max(a, b);
#elif TUFF_OP == 6
  return tuff_min(a, b);
#elif TUFF_OP == 7
  return tuff_pow(a, b);
#endif
}
