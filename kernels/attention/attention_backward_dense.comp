// Copies the operands of attention's gradients to dense f32 rows for the products of attention_backward_products_vulkan.cpp: of one
// batch element's heads that share a kv head, or of all, one after another. An invocation has one row.
//
// A product multiplies hidden pairs too, with a factor of 0, which NaN and infinity would not let vanish. Elements that
// are not finite are therefore copied as 0, and the row is marked instead: pairs with it that count have NaN as weight
// and slope.
//
//# KEYS_SIDE : 0|1 : 1: k and v, and their marks; 0: q and d_o, and log-sum-exp and D = sum of d_o * o of each row
#include "kernels/attention/attention_backward_common.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint rows;         // of this part: heads times sequence
  uint first_head;   // of all batch elements: of q, or of k and v
} push;
TUFF_READ(0, X, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))   // q or k
TUFF_READ(1, Y, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))   // d_o or v
TUFF_READ(2, Result, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(3, LogSumExp, float, 4)
TUFF_WRITE(4, Dense, float, 4)   // rows of X, then rows of Y
TUFF_WRITE(5, Numbers, vec2, 8)  // of each row: log-sum-exp and D
TUFF_WRITE(5, Marks, float, 4)   // of each key: 0 or NaN
TUFF_READ(6, Shape, AttentionBackwardShape, 16)  // one element; 16 is its alignment
#define SHAPE TUFF_AT(Shape, 0)

layout(local_size_x_id = 0) in;

// x, or 0 if it is not finite; `mark` becomes NaN then.
float kept(float x, inout float mark) {
  const bool finite = (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u;
  mark = finite ? mark : TUFF_NAN;
  return finite ? x : 0.0;
}

void main() {
  const uint row = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
  if (row >= push.rows) return;
  const uint size = SHAPE.head_dim, size_v = SHAPE.head_dim_v;
  const uint length = KEYS_SIDE != 0 ? SHAPE.seq_kv : SHAPE.seq_q;
  const uint heads = KEYS_SIDE != 0 ? SHAPE.heads / SHAPE.sharing : SHAPE.heads;
  const uint number = push.first_head + row / length, i = row % length;
  const uint batch_element = number / heads, head = number % heads;
#if KEYS_SIDE
  const TUFF_INDEX x_at = batch_element * SHAPE.k_batch + head * SHAPE.k_head + i * SHAPE.k_row;
  const TUFF_INDEX y_at = batch_element * SHAPE.v_batch + head * SHAPE.v_head + i * SHAPE.v_row;
#else
  const TUFF_INDEX x_at = batch_element * SHAPE.q_batch + head * SHAPE.q_head + i * SHAPE.q_row;
  const TUFF_INDEX y_at = batch_element * SHAPE.d_o_batch + head * SHAPE.d_o_head + i * SHAPE.d_o_row;
  const TUFF_INDEX o_at = batch_element * SHAPE.o_batch + head * SHAPE.o_head + i * SHAPE.o_row;
#endif
  float mark = 0.0, inner = 0.0;
  [[dont_unroll]] for (uint e = 0; e < size; ++e) {
    TUFF_AT(Dense, row * size + e) = kept(TUFF_LOADED(TYPE, TUFF_AT(X, x_at + e)), mark);
  }
  const TUFF_INDEX dense_y = TUFF_INDEX(push.rows) * size;
  [[dont_unroll]] for (uint e = 0; e < size_v; ++e) {
    const float y = kept(TUFF_LOADED(TYPE, TUFF_AT(Y, y_at + e)), mark);
    TUFF_AT(Dense, dense_y + row * size_v + e) = y;
#if !KEYS_SIDE
    inner = fma(y, TUFF_LOADED(TYPE, TUFF_AT(Result, o_at + e)), inner);
#endif
  }
#if KEYS_SIDE
  TUFF_AT(Marks, row) = mark;
#else
  TUFF_AT(Numbers, row) = vec2(TUFF_AT(LogSumExp, TUFF_INDEX(number) * length + i) + mark, inner + mark);
#endif
}
