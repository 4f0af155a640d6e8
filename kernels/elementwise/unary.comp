// output[i] = op(input[i]). Layout, constants and the loop: map.glsl.
//# TUFF_OP : 1.. : a TUFF_UNARY_* of tuff.h; a new one is a line here and a line in elementwise_ops.hpp
//
// Largest error in ULP against double precision, every 61st of all 2^32 arguments, on Mesa's 22.3 and 25.0 CPU
// drivers (the same on both); second number: the arithmetic for devices whose "/" and sqrt are not exact,
// every 251st argument, on 22.3. Not yet measured on a GPU.
//   exp 0.94, 0.96   log 0.82, 0.77   tanh 1.27, 1.29   sigmoid 2.04, 2.27   sqrt 0.50, 0.75
//   relu, abs, neg exact; the others, every 2039th argument on 22.3: gelu 4.3, silu 2.7, elu 0.9, hardswish 1.9,
//   softplus 1.5, sin 2.6, cos 2.5
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"
#if TUFF_OP >= 16
#include "kernels/elementwise/trigonometry.glsl"
#elif TUFF_OP >= 9
#include "kernels/elementwise/activations.glsl"
#endif

vec4 tuff_apply(vec4 x, float alpha) {
#if TUFF_OP == 1
  return tuff_relu(x);
#elif TUFF_OP == 2
  return tuff_sigmoid(x);
#elif TUFF_OP == 3
  return tuff_tanh(x);
#elif TUFF_OP == 4
  return tuff_exp(x);
#elif TUFF_OP == 5
  return tuff_log(x);
#elif TUFF_OP == 6
  return tuff_sqrt(x);
#elif TUFF_OP == 7
  return tuff_abs(x);
#elif TUFF_OP == 8
  return tuff_neg(x);
#elif TUFF_OP == 9
  return tuff_gelu(x);
#elif TUFF_OP == 10
  return tuff_gelu_tanh(x);
#elif TUFF_OP == 11
  return tuff_silu(x);
#elif TUFF_OP == 12
  return tuff_leaky_relu(x, alpha);
#elif TUFF_OP == 13
  return tuff_elu(x, alpha);
#elif TUFF_OP == 14
  return tuff_hardswish(x);
#elif TUFF_OP == 15
  return tuff_softplus(x);
#elif TUFF_OP == 16
  return tuff_sin(x);
#elif TUFF_OP == 17
  return tuff_cos(x);
#endif
}

#define TUFF_INPUTS 1
#include "kernels/elementwise/map.glsl"
