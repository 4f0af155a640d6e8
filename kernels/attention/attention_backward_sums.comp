// What tiles, and kernels in PTX, of attention's gradients need of each row: its log-sum-exp, and D = sum of d_o * o. A row has
// LANES neighbouring invocations, each of which adds up every LANES-th element; then the first adds up theirs in order.
// The first invocations also copy the sequences' lengths behind the rows' numbers, so that the other kernels have one
// operand for all of these.
//
//# POWERS : 0|1 : 1: for kernels in PTX
//   In place of the log-sum-exp x = headroom - factor * log-sum-exp. With factor log2(e), a weight is
//   2^(score * scale * log2(e) + x), which includes a factor of 2^headroom.
//# BOUNDS : 0|1 : 1: with POWERS, slopes are bounded
//   Further workgroups pass over v, and the largest squares of lengths of rows are found: of d_o, and of o and v. These
//   bound slopes: |d_o . v - D| <= 2 |d_o| max(|v|, |o|). Rows and keys beyond a length, rows without weights, and
//   those with NaN or infinity do not count.
//# VEC : 0|1 : 1: rows can be read as vec4: head_dim_v, strides and bases are multiples of four elements
#include "kernels/attention/attention_backward_common.glsl"

const uint LANES = 8, ROWS = 8;

layout(push_constant, std430) uniform Push {
#if BOUNDS
  TUFF_BASES(8)
#else
  TUFF_BASES(7)
#endif
  uint groups;
  uint rows;  // batch * heads * seq_q
#if POWERS
  float headroom, factor;
#endif
#if BOUNDS
  uint row_groups, keys;  // groups that pass over rows, not over v; batch * kv_heads * seq_kv
#endif
} push;
TUFF_READ(0, Result, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(1, Slope, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
#if BOUNDS
TUFF_READ(7, Value, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ_WRITE(5, Largest, uint, 4)  // behind the lengths, as floats' bits: the largest squares
shared float squares[2][LANES * ROWS];

// Two largest squares of the workgroup's rows: each invocation has its part of those of its row.
void keep_largest(uint id, bool counts, float first, float second, uint at) {
  const uint lane = id % LANES;
  squares[0][id] = first;
  squares[1][id] = second;
  barrier();
  if (lane == 0) {
    [[unroll]] for (uint l = 1; l < LANES; ++l) first += squares[0][id + l], second += squares[1][id + l];
    // Neither NaN nor infinite.
    squares[0][id] = counts && first <= 3.40282347e38 ? first : 0.0;
    squares[1][id] = counts && second <= 3.40282347e38 ? second : 0.0;
  }
  barrier();
  if (id < 2) {
    float largest = 0.0;
    [[unroll]] for (uint r = 0; r < ROWS; ++r) largest = max(largest, squares[id][r * LANES]);
    const uint bits = floatBitsToUint(largest);
    if (TUFF_AT(Largest, at + id) < bits) atomicMax(TUFF_AT(Largest, at + id), bits);
  }
}
#endif
#if VEC
#if BOUNDS
TUFF_READ(7, Value4, FOUR, FOUR_BYTES)
#endif
TUFF_READ(0, Result4, FOUR, FOUR_BYTES)
TUFF_READ(1, Slope4, FOUR, FOUR_BYTES)
#endif
TUFF_READ(2, LogSumExp, float, 4)
TUFF_READ(3, QueryLengths, int, 4)
TUFF_READ(4, KeyLengths, int, 4)
TUFF_WRITE(5, RowSums, vec2, 8)
TUFF_WRITE(5, Lengths, ivec2, 8)
TUFF_READ(6, Shape, AttentionBackwardShape, 16)  // one element; 16 is its alignment
#define SHAPE TUFF_AT(Shape, 0)

layout(local_size_x = LANES * ROWS) in;
shared float parts[LANES * ROWS];

void main() {
  const uint group = tuff_group();
  if (group >= push.groups) return;
  const uint id = gl_LocalInvocationIndex, lane = id % LANES;
#if BOUNDS
  const uint at_largest = (push.rows + SHAPE.batch) * 2;
  if (group >= push.row_groups) {
    const uint key = (group - push.row_groups) * ROWS + id / LANES, known_key = min(key, push.keys - 1);
    const uint seq_kv = SHAPE.seq_kv, kv_heads = SHAPE.heads / SHAPE.sharing, key_unit = known_key / seq_kv;
    const uint of_batch = key_unit / kv_heads, i = known_key % seq_kv;
    const TUFF_INDEX of_value =
        of_batch * SHAPE.v_batch + key_unit % kv_heads * SHAPE.v_head + TUFF_INDEX(i) * SHAPE.v_row;
    bool counts = key < push.keys;
    if ((SHAPE.present & 4u) != 0) counts = counts && int(i) < TUFF_AT(KeyLengths, of_batch);
    float square = 0.0;
#if VEC
    [[dont_unroll]] for (uint e = lane; e < SHAPE.head_dim_v / 4; e += LANES) {
      const vec4 v = FROM_FOUR(TUFF_AT(Value4, of_value / 4u + e));
      square += dot(v, v);
    }
#else
    [[dont_unroll]] for (uint e = lane; e < SHAPE.head_dim_v; e += LANES) {
      const float v = TUFF_LOADED(TYPE, TUFF_AT(Value, of_value + e));
      square = fma(v, v, square);
    }
#endif
    keep_largest(id, counts, 0.0, square, at_largest);
    return;
  }
  float slope_square = 0.0, square = 0.0;
#endif
  const uint row = group * ROWS + id / LANES, known = min(row, push.rows - 1);
  const uint seq_q = SHAPE.seq_q, heads = SHAPE.heads, size = SHAPE.head_dim_v;
  const uint unit = known / seq_q, i = known % seq_q, batch_element = unit / heads, head = unit % heads;
  const TUFF_INDEX of_o = batch_element * SHAPE.o_batch + head * SHAPE.o_head + i * SHAPE.o_row;
  const TUFF_INDEX of_slope = batch_element * SHAPE.d_o_batch + head * SHAPE.d_o_head + i * SHAPE.d_o_row;
  float sum = 0.0;
#if VEC
  [[dont_unroll]] for (uint e = lane; e < size / 4; e += LANES) {
    const vec4 slope = FROM_FOUR(TUFF_AT(Slope4, of_slope / 4u + e)), o = FROM_FOUR(TUFF_AT(Result4, of_o / 4u + e));
    [[unroll]] for (uint c = 0; c < 4; ++c) sum = fma(slope[c], o[c], sum);
#if BOUNDS
    slope_square += dot(slope, slope), square += dot(o, o);
#endif
  }
#else
  [[dont_unroll]] for (uint e = lane; e < size; e += LANES) {
    const float slope = TUFF_LOADED(TYPE, TUFF_AT(Slope, of_slope + e)), o = TUFF_LOADED(TYPE, TUFF_AT(Result, of_o + e));
    sum = fma(slope, o, sum);
#if BOUNDS
    slope_square = fma(slope, slope, slope_square), square = fma(o, o, square);
#endif
  }
#endif
  parts[id] = sum;
  barrier();
  if (lane == 0 && row < push.rows) {
    [[unroll]] for (uint l = 1; l < LANES; ++l) sum += parts[id + l];
    float first = TUFF_AT(LogSumExp, row);
#if POWERS
    // A row without weights has none here either.
    first = first == -TUFF_INFINITY ? first : fma(first, -push.factor, push.headroom);
#endif
    TUFF_AT(RowSums, row) = vec2(first, sum);
  }
#if BOUNDS
  bool counts = row < push.rows && TUFF_AT(LogSumExp, known) != -TUFF_INFINITY;
  if ((SHAPE.present & 2u) != 0) counts = counts && int(i) < TUFF_AT(QueryLengths, batch_element);
  keep_largest(id, counts, slope_square, square, at_largest);
#endif
  // There are at least as many rows as batch elements.
  if (lane == 1 && row < SHAPE.batch) {
    ivec2 lengths = ivec2(seq_q, SHAPE.seq_kv);
    const uint present = SHAPE.present;
    if ((present & 2u) != 0) lengths.x = TUFF_AT(QueryLengths, row);
    if ((present & 4u) != 0) lengths.y = TUFF_AT(KeyLengths, row);
    TUFF_AT(Lengths, TUFF_INDEX(push.rows) + row) = lengths;
  }
}
