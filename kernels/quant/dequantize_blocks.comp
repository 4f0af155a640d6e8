// output[i] = number i of a buffer of ggml's blocks, for i < n, a multiple of eight. Eight numbers are an item. Each
// workgroup has RUN * (workgroup size) consecutive items; in step s lane l has item s * (workgroup size) + l.
//
//# TUFF_TYPE : 1..3 : element type of the output, as in tuff.h
//# TUFF_RUN : 0.. : items that a lane processes one after another; 0: push.run says
layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint items, run;
} push;

#include "kernels/elementwise/blocks.glsl"
#include "kernels/quant/quant_blocks.glsl"

TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint item = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && item < push.items; ++step, item += lanes) {
    const uint block = item / (BLOCK / 8);
    const Numbers numbers = decode(TUFF_INDEX(block) * BLOCK_WORDS, item % (BLOCK / 8));
    TuffBlock y;
    y.part[0] = numbers.part[0];
    y.part[1] = numbers.part[1];
    Y_store_block(item, y);
  }
}
