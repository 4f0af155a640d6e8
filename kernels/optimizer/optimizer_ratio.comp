// |w| / |u| of each tensor, from the sums of optimizer_step.comp; 1 if either norm is 0. A workgroup for each tensor.
//
//# TUFF_LIST : 0|1 : 1: tensors are those of a table, as in tensors.glsl; 0: one, with push.n sums
#include "kernels/common/types.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n;  // workgroups that have summed the tensor, or tensors of the table
  uint groups;  // tensors
} push;

#if TUFF_LIST
TUFF_READ(0, Entries, uvec2, 8)
#endif
TUFF_READ(1, Sums, float, 4)
TUFF_WRITE(2, Ratios, float, 4)

#include "kernels/common/lanes.glsl"
#include "kernels/optimizer/squares.glsl"

void main() {
  const uint tensor = tuff_group();
  if (tensor >= push.groups) return;
  const uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
#if TUFF_LIST
  const uint begin = tensor > 0 ? TUFF_AT(Entries, max(tensor, 1) - 1).y : 0u, end = TUFF_AT(Entries, tensor).y;
#else
  const uint begin = 0, end = push.n;
#endif
  float sums[6] = float[6](0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
  TUFF_ADD_SUMS(sums, 6, begin, end)
  const Root w = root_of(sums[0], sums[1], sums[2]), u = root_of(sums[3], sums[4], sums[5]);
  const float ratio = tuff_divide(vec4(w.root), vec4(u.root)).x * (w.factor / u.factor);
  if (lane == 0) TUFF_AT(Ratios, tensor) = w.root == 0.0 || u.root == 0.0 ? 1.0 : ratio;
}
