// What the other kernels of attention's gradients need of each row: its log-sum-exp, and D = sum of d_o * o. A row has
// LANES neighbouring invocations, each of which adds up every LANES-th element; then the first adds up theirs in order.
// The first invocations also copy the sequences' lengths behind the rows' numbers, so that the other kernels have one
// operand for all of these.
#include "kernels/attention/attention_backward_common.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(7)
  uint groups;
  uint rows;  // batch * heads * seq_q
} push;
TUFF_READ(0, Result, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(1, Slope, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(2, LogSumExp, float, 4)
TUFF_READ(3, QueryLengths, int, 4)
TUFF_READ(4, KeyLengths, int, 4)
TUFF_WRITE(5, RowSums, vec2, 8)
TUFF_WRITE(5, Lengths, ivec2, 8)
TUFF_READ(6, Shape, AttentionBackwardShape, 16)  // one element; 16 is its alignment
#define SHAPE TUFF_AT(Shape, 0)

const uint LANES = 8, ROWS = 8;
layout(local_size_x = LANES * ROWS) in;
shared float parts[LANES * ROWS];

void main() {
  const uint group = tuff_group();
  if (group >= push.groups) return;
  const uint id = gl_LocalInvocationIndex, lane = id % LANES;
  const uint row = group * ROWS + id / LANES, known = min(row, push.rows - 1);
  const uint seq_q = SHAPE.seq_q, heads = SHAPE.heads, size = SHAPE.head_dim_v;
  const uint unit = known / seq_q, i = known % seq_q, batch_element = unit / heads, head = unit % heads;
  const TUFF_INDEX of_o = batch_element * SHAPE.o_batch + head * SHAPE.o_head + i * SHAPE.o_row;
  const TUFF_INDEX of_slope = batch_element * SHAPE.d_o_batch + head * SHAPE.d_o_head + i * SHAPE.d_o_row;
  float sum = 0.0;
  [[dont_unroll]] for (uint e = lane; e < size; e += LANES) {
    sum = fma(TUFF_LOADED(TYPE, TUFF_AT(Slope, of_slope + e)), TUFF_LOADED(TYPE, TUFF_AT(Result, of_o + e)), sum);
  }
  parts[id] = sum;
  barrier();
  if (lane == 0 && row < push.rows) {
    [[unroll]] for (uint l = 1; l < LANES; ++l) sum += parts[id + l];
    TUFF_AT(RowSums, row) = vec2(TUFF_AT(LogSumExp, row), sum);
  }
  // There are at least as many rows as batch elements.
  if (lane == 1 && row < SHAPE.batch) {
    ivec2 lengths = ivec2(seq_q, SHAPE.seq_kv);
    const uint present = SHAPE.present;
    if ((present & 2u) != 0) lengths.x = TUFF_AT(QueryLengths, row);
    if ((present & 4u) != 0) lengths.y = TUFF_AT(KeyLengths, row);
    TUFF_AT(Lengths, TUFF_INDEX(push.rows) + row) = lengths;
  }
}
