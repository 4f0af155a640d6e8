// Dequantises weights into panels, in the order in which gemm_panels.comp reads op(B):
//
//   block of DEPTH steps of k | panel of ROWS rows of W | step | row
//
// Steps beyond the piece's are zero; rows beyond the last repeat the last. A workgroup writes one panel of one block, an
// invocation two rows of an item.
//
//# ROWS : 2..16 : rows of a panel, even
//# DEPTH : 16..256 : steps of k of a block
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(push_constant, std430) uniform Push {
  TUFF_BASES(4)
  uint first_row, rows;       // of the piece; rows: the last one's number and one
  uint first_item, end_item;  // likewise
  uint items;                 // of a row of W
  uint scales, block_shift, first_zero;
} push;
#include "kernels/quant/qgemm_weights.glsl"

TUFF_WRITE(3, Panels, uint64_t, 8)

layout(local_size_x = DEPTH / 8 * (ROWS / 2)) in;

void main() {
  const uint pair = gl_LocalInvocationID.x / (DEPTH / 8), within = gl_LocalInvocationID.x % (DEPTH / 8);
  const uint item = push.first_item + gl_WorkGroupID.y * (DEPTH / 8) + within;
  const uint row = push.first_row + gl_WorkGroupID.x * ROWS + 2 * pair, last = push.rows - 1;
  const uint panel = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint to = (panel * DEPTH + 8 * within) * (ROWS / 2) + pair;
  const uint from = min(item, push.end_item - 1);
  const Numbers low = weights_of(min(row, last), from), high = weights_of(min(row + 1, last), from);
  [[unroll]] for (uint s = 0; s < 8; ++s) {
    const vec2 both = vec2(low.part[s / 4][s % 4], high.part[s / 4][s % 4]);
    TUFF_AT(Panels, to + s * (ROWS / 2)) = item < push.end_item ? pack64(floatBitsToUint(both)) : uint64_t(0);
  }
}
