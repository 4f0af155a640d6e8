// The norm of a list from the sums of gradient_norm.comp, and what follows from it. One workgroup.
//
//# TUFF_ACCUMULATE : 0|1 : 1: Norm and Found hold those of other lists, which are counted in
//# TUFF_FACTOR_IN : 0|1 : 1: gradients count multiplied by FactorIn
//# TUFF_NORM : 0|1 : 1: Norm is written
//# TUFF_FACTOR : 0|1 : 1: Factor is written
//# TUFF_FOUND : 0|1 : 1: Found is written
#include "kernels/common/types.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint n;  // workgroups that have summed
  float scale;
  float limit;  // 0: none
} push;

TUFF_READ(0, Sums, float, 4)
TUFF_READ(1, FactorIn, float, 4)
TUFF_READ_WRITE(2, Norm, float, 4)
TUFF_WRITE(3, Factor, float, 4)
TUFF_READ_WRITE(4, Found, int, 4)

#include "kernels/common/lanes.glsl"
#include "kernels/optimizer/squares.glsl"

bool finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

void main() {
  if (tuff_group() != 0) return;
  const uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  float sums[3] = float[3](0.0, 0.0, 0.0);
  TUFF_ADD_SUMS(sums, 3, 0, push.n)
  if (lane != 0) return;
  bool found = !finite(sums[0]) || !finite(sums[1]) || !finite(sums[2]);
  const Root r = root_of(sums[0], sums[1], sums[2]);
  float factor = 1.0;
#if TUFF_FACTOR_IN
  factor = TUFF_AT(FactorIn, 0);
#endif
  // In the order that leaves the range only if the product does: the root is moderate, and the factor a power of two.
  float norm = r.root == 0.0 ? 0.0 : abs(r.root * push.scale * factor) * r.factor;
#if TUFF_ACCUMULATE
  // Squares of numbers divided by the larger one.
  const float others = abs(TUFF_AT(Norm, 0)), larger = max(norm, others);
  if (larger > 0.0 && finite(norm) && finite(others)) {
    const vec2 parts = tuff_divide(vec4(norm, others, 0.0, 0.0), vec4(larger)).xy;
    norm = larger * tuff_sqrt(vec4(parts.x * parts.x + parts.y * parts.y)).x;
  } else {
    norm = norm + others;
  }
#endif
#if TUFF_FOUND
#if TUFF_ACCUMULATE
  found = found || TUFF_AT(Found, 0) != 0;
#endif
  TUFF_AT(Found, 0) = int(found);
#endif
#if TUFF_NORM
  TUFF_AT(Norm, 0) = norm;
#endif
#if TUFF_FACTOR
  const float clip = tuff_divide(vec4(push.limit), vec4(norm)).x;
  TUFF_AT(Factor, 0) = push.limit == 0.0 || norm <= push.limit ? factor : factor * clip;
#endif
}
