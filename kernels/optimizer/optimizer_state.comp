// The numbers of one step that are not known when it is recorded: one invocation reads the buffers that hold them, and
// counts the step.
//
//# TUFF_STEPS : 0|1 : 1: Steps has the steps made so far
//# TUFF_RATE_FACTOR : 0|1 : 1: the rate is multiplied by RateFactor
//# TUFF_GRADIENT_FACTOR : 0|1 : 1: gradients are multiplied by GradientFactor
//# TUFF_SKIP : 0|1 : 1: the step is skipped unless Skip is 0
#include "kernels/common/types.glsl"
#include "kernels/elementwise/math.glsl"
#include "kernels/elementwise/exponentials.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  float scale, rate;
  float correction1, correction2;  // without Steps
  float log1, log2;  // the natural logarithms of beta1 and beta2
} push;

TUFF_READ_WRITE(0, Steps, int, 4)
TUFF_READ(1, RateFactor, float, 4)
TUFF_READ(2, GradientFactor, float, 4)
TUFF_READ(3, Skip, int, 4)
TUFF_WRITE(4, Scale, float, 4)  // State of optimizer_step.comp
TUFF_WRITE(4, Flag, uint, 4)

void main() {
  if (tuff_group() != 0 || gl_LocalInvocationID.x != 0) return;
  bool skip = false;
#if TUFF_SKIP
  skip = TUFF_AT(Skip, 0) != 0;
#endif
  float scale = push.scale, rate = push.rate, correction1 = push.correction1, correction2 = push.correction2;
#if TUFF_RATE_FACTOR
  rate *= TUFF_AT(RateFactor, 0);
#endif
#if TUFF_GRADIENT_FACTOR
  scale *= TUFF_AT(GradientFactor, 0);
#endif
#if TUFF_STEPS
  const int t = min(max(TUFF_AT(Steps, 0), 0), 0x7ffffffe) + 1;
  if (!skip) TUFF_AT(Steps, 0) = t;
  // 1 - beta^t as -(e^(t log(beta)) - 1), which keeps its digits where beta is near 1.
  const vec4 rests = -tuff_expm1(vec4(float(t) * push.log1, float(t) * push.log2, 0.0, 0.0));
  correction1 = tuff_divide(vec4(1.0), vec4(rests.x)).x;
  correction2 = tuff_divide(vec4(1.0), tuff_sqrt(vec4(rests.y))).x;
#endif
  TUFF_AT(Scale, 0) = scale;
  TUFF_AT(Scale, 1) = rate;
  TUFF_AT(Scale, 2) = correction1;
  TUFF_AT(Scale, 3) = correction2;
  TUFF_AT(Flag, 4) = uint(skip);
}
