// Small windows without dilation. An invocation computes ROWS rows of four neighbouring outputs of a plane. Elements
// that their windows share are read once, as vec4 where the rows allow it. The items of a dispatch are ordered
// [plane][strip of ROWS rows][vec4 of columns].
//# TUFF_TYPE : 1..3 : element type of input and output, as in tuff.h
//# TUFF_MAXIMUM : 0|1 : 1: the largest value, or NaN if any is NaN; 0: the mean
//# KERNEL_X : 1..5 : width of a window
//# KERNEL_Y : 1..5 : height of a window
//# STRIDE_X : 1..3 : columns from one window to the next
//# STRIDE_Y : 1..3 : rows from one window to the next
//# PADDING_X : 0..2 : columns of padding before a row
//# ROWS : 1|2 : rows of outputs that an invocation computes
//# TUFF_RUN : 0.. : items that an invocation processes, (workgroup size) apart; 0: push.run says
// TUFF_PARTS is 1. TUFF_VECTOR is nonzero only if the widths of input and output are multiples of four.
#include "kernels/elementwise/blocks.glsl"
#include "kernels/common/division.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool INCLUDE_PAD = false;  // the mean's divisor counts the padding

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n;  // items
  uint run;
  uint width, height, out_width, out_height;
  uint vec4s, rows, multipliers[2], shifts;  // vec4s of a row and strips of a plane, with their dividers
  int padding_y;
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)

const uint COLUMNS = 3 * STRIDE_X + KERNEL_X;  // that the four windows cover
const uint FOURS = (COLUMNS - PADDING_X + 1) / 4;  // vec4 loads; three columns left over are read as a vec4 too
const uint LINES = (ROWS - 1) * STRIDE_Y + KERNEL_Y;

#if TUFF_MAXIMUM
#define NOTHING (-TUFF_INFINITY)
vec4 combined(vec4 a, vec4 b) {
  const bvec4 nan = greaterThan(floatBitsToUint(b) & 0x7fffffffu, uvec4(0x7f800000u));
  return mix(mix(a, b, greaterThan(b, a)), b, nan);
}
#else
#define NOTHING 0.0
vec4 combined(vec4 a, vec4 b) { return a + b; }
#endif

// Columns begin … begin + 3 of a row, with NOTHING for those outside it. begin is a multiple of four.
vec4 four(TUFF_INDEX row, int begin) {
#if TUFF_VECTOR
  const bool inside = uint(begin) < push.width;
  const vec4 values = X_load_block((row + TUFF_INDEX(inside ? begin : 0)) / 4).part[0];
  return inside ? values : vec4(NOTHING);
#else
  vec4 values;
  [[unroll]] for (int c = 0; c < 4; ++c) {
    const bool inside = uint(begin + c) < push.width;
    values[c] = X_load(row + TUFF_INDEX(inside ? begin + c : 0));
    values[c] = inside ? values[c] : NOTHING;
  }
  return values;
#endif
}
float one(TUFF_INDEX row, int column) {
  const bool inside = uint(column) < push.width;
  const float value = X_load(row + TUFF_INDEX(inside ? column : 0));
  return inside ? value : NOTHING;
}

// What one line contributes to four windows. Column c of the first window is column `left` - PADDING_X + c of the row.
vec4 line(TUFF_INDEX row, int left) {
  float values[COLUMNS + 3];
  [[unroll]] for (uint c = 0; c < PADDING_X; ++c) values[c] = one(row, left + int(c) - PADDING_X);
  [[unroll]] for (uint b = 0; b < FOURS; ++b) {
    const vec4 block = four(row, left + int(4 * b));
    [[unroll]] for (uint i = 0; i < 4; ++i) values[PADDING_X + 4 * b + i] = block[i];
  }
  [[unroll]] for (uint c = PADDING_X + 4 * FOURS; c < COLUMNS; ++c) values[c] = one(row, left + int(c) - PADDING_X);
  vec4 result = vec4(values[0], values[STRIDE_X], values[2 * STRIDE_X], values[3 * STRIDE_X]);
  [[unroll]] for (uint k = 1; k < KERNEL_X; ++k) {
    result = combined(result,
                      vec4(values[k], values[STRIDE_X + k], values[2 * STRIDE_X + k], values[3 * STRIDE_X + k]));
  }
  return result;
}

// The number of elements of a window along an axis, with INCLUDE_PAD including the padding.
float taps(int first, int kernel, int size, int padding) {
  const int around = INCLUDE_PAD ? padding : 0;
  return float(min(first + kernel, size + around) - max(first, -around));
}

// The results of ROWS rows of four windows.
struct Windows {
  vec4 row[ROWS];
};

// Adds line j of those that the windows cover. Not a loop: spirv-opt does not unroll loops with such conditions in
// them.
#define ADD_LINE(j)                                                                         \
  if (j < LINES) {                                                                          \
    const int y = top + j;                                                                  \
    const bool inside = uint(y) < push.height;                                              \
    vec4 share = line(begin + TUFF_INDEX(inside ? y : 0) * push.width, left);               \
    share = inside ? share : vec4(NOTHING);                                                 \
    if (j < KERNEL_Y) w.row[0] = combined(w.row[0], share);                                 \
    if (ROWS > 1 && j >= STRIDE_Y) w.row[ROWS - 1] = combined(w.row[ROWS - 1], share);      \
  }

void finish(vec4 value, uint plane, uint x, uint y) {
  if (y >= push.out_height) return;
#if !TUFF_MAXIMUM
  const float lines = taps(int(y * STRIDE_Y) - push.padding_y, KERNEL_Y, int(push.height), push.padding_y);
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    value[c] /= taps(int((x + c) * STRIDE_X) - PADDING_X, KERNEL_X, int(push.width), PADDING_X) * lines;
  }
#endif
  const TUFF_INDEX to = (TUFF_INDEX(plane) * push.out_height + y) * push.out_width + x;
#if TUFF_VECTOR
  TuffBlock block;
  block.part[0] = value;
  Y_store_block(to / 4, block);
#else
  const uint count = push.out_width - x;
  Y_store(to, value.x);
  if (count > 1) Y_store(to + 1, value.y);
  if (count > 2) Y_store(to + 2, value.z);
  if (count > 3) Y_store(to + 3, value.w);
#endif
}

void pool(uint item) {
  const uint strip = tuff_divide(item, push.multipliers[0], push.shifts & 31u);
  const uint plane = tuff_divide(strip, push.multipliers[1], (push.shifts >> 8) & 31u);
  const uint x = 4 * (item - strip * push.vec4s), first = ROWS * (strip - plane * push.rows);
  const int left = int(x * STRIDE_X), top = int(first * STRIDE_Y) - push.padding_y;
  const TUFF_INDEX begin = TUFF_INDEX(plane) * (push.width * push.height);
  Windows w;
  w.row[0] = w.row[ROWS - 1] = vec4(NOTHING);
  ADD_LINE(0) ADD_LINE(1) ADD_LINE(2) ADD_LINE(3) ADD_LINE(4) ADD_LINE(5) ADD_LINE(6) ADD_LINE(7)
  finish(w.row[0], plane, x, first);
  if (ROWS > 1) finish(w.row[ROWS - 1], plane, x, first + 1);
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) pool(i);
}
