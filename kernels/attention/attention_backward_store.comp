// Copies dense f32 rows of a gradient to where they belong, and rounds them. An invocation has one row.
#include "kernels/common/types.glsl"
//# TYPE : 1..3 : TUFF_* type of the gradient

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX batch, head, row;  // the gradient's strides, in elements
  uint rows;                    // of this part: heads times sequence
  uint first_head, heads;       // of all batch elements; of one
  uint seq, size;               // rows of a head, elements of a row
} push;
TUFF_READ(0, Dense, float, 4)
TUFF_WRITE(1, Gradient, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))

layout(local_size_x_id = 0) in;

void main() {
  const uint row = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
  if (row >= push.rows) return;
  const uint size = push.size, number = push.first_head + row / push.seq;
  const TUFF_INDEX to =
      number / push.heads * push.batch + number % push.heads * push.head + row % push.seq * push.row;
  [[dont_unroll]] for (uint e = 0; e < size; ++e) {
    TUFF_AT(Gradient, to + e) = TUFF_ROUNDED(TYPE, TUFF_AT(Dense, row * size + e));
  }
}
