// Sums of the squares of a list's elements: three numbers (squares.glsl) for each workgroup.
//
//# TUFF_TYPE : 1..3 : element type, as in tuff.h
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/math.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, groups, run;
} push;

TUFF_BLOCKS_READ(0, G, TUFF_TYPE)
#define TUFF_TABLE_SLOT 1
#include "kernels/optimizer/tensors.glsl"
TUFF_WRITE(2, Sums, float, 4)

#include "kernels/common/lanes.glsl"
#include "kernels/optimizer/squares.glsl"

void main() {
  const uint group = tuff_group(), lanes = gl_WorkGroupSize.x;
  if (group >= push.groups) return;
  const Share share = share_of(group);
  TUFF_TAKE(share.tensor)
  const uint lane = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
  const uint blocks = share.elements / TUFF_ELEMENTS;
  // Steps in which every lane has a block are counted, because loops in which lanes differ are slow on CPU devices.
  const uint whole = min(push.run, (max(blocks, share.first) - share.first) / lanes);
  // Sums of 32 blocks are added to those before, so that chains of additions stay short.
  Squares all = no_squares(), part = no_squares();
  uint i = share.first + lane;
  [[dont_unroll]] for (uint step = 0; step < whole; ++step, i += lanes) {
    const TuffBlock g = G_load_block(i);
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) add_squares(part, g.part[p]);
    if ((step & 31u) == 31u) {
      add_squares(all, part);
      part = no_squares();
    }
  }
  if (whole < push.run && i < blocks) {
    const TuffBlock g = G_load_block(i);
    [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) add_squares(part, g.part[p]);
  }
  if (share.group == share.last) {
    [[dont_unroll]] for (uint rest = TUFF_ELEMENTS * blocks + lane; rest < share.elements; rest += lanes) {
      add_squares(part, vec4(G_load(rest), 0.0, 0.0, 0.0));
    }
  }
  add_squares(all, part);
  const float sums[3] = float[3](tree_sum(sum4(all.small)), tree_sum(sum4(all.middle)), tree_sum(sum4(all.large)));
  if (lane == 0) {
    [[unroll]] for (uint s = 0; s < 3; ++s) TUFF_AT(Sums, 3 * group + s) = sums[s];
  }
}
