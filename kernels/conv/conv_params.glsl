// Parameters of the implicit GEMM kernels of convolutions, and their addressing of the tensors.
//
// A group of a convolution is the GEMM filter[filters][taps] * patches[taps][columns], with one column for each output
// pixel of each image, and one tap for each channel of the group and each position in the window. The patches are
// gathered while loading, and never stored. Taps are numbered in the order in which filters are stored: channel,
// position; or, with CHANNELS_LAST, position, channel.
//
//# TYPE : 1..3 : TUFF_* type of all operands
//# CHANNELS_LAST : 0|1 : 1: the tensors are N, D, H, W, C and the filters K, T, R, S, C
//# DEPTH : 0|1 : 1: there are three spatial dimensions
//# SPACED : 0|1 : 1: the outputs have a step between them (one phase of a transposed convolution); excludes DEPTH
//# TAP_MASK : 0|1 : 1: T + R + S < 32, so that a bit for each tells which part of a window is inside the input
//# group geometry : TYPE CHANNELS_LAST DEPTH SPACED TAP_MASK : the tensors, and the windows' positions in them
// The including file defines PATCHES: 1 for the kernel that does store the patches, otherwise 0.
#define SUM_TYPE 1
#include "kernels/gemm/common/gemm_stored.glsl"

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  uint filters, channels;     // of one group
  uint groups;
#if PATCHES
  uint first_column, column_count;  // see conv_patches.comp
#else
  uint slices, slice_taps;    // see conv_store.glsl
  uint first_slice;           // the parts that earlier dispatches have computed
#endif
  uint columns;               // N * O * P * Q, below 2^31
  uint P, Q, H, W, R, S;
  uint stride, dilation;      // vertical, and horizontal << 16
  int pad_y, pad_x;
#if SPACED
  uint out_image, out_row;    // elements of an output image, and of a row of it
  uint out_step;              // output pixels from one output to the next: vertical, and horizontal << 16
  uint unused[2];
#else
  uint D, O, T;
  int pad_z;
  uint depth;                 // stride, and dilation << 16
#endif
} push;

TUFF_READ(0, Input, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(0, Input4, GEMM_RAW(TYPE), GEMM_RAW_BYTES(TYPE))
TUFF_READ(1, Filter, TUFF_STORED(TYPE), TUFF_BYTES(TYPE))
TUFF_READ(1, Filter4, GEMM_RAW(TYPE), GEMM_RAW_BYTES(TYPE))

#include "kernels/conv/conv_numbers.glsl"

#if DEPTH
#define CONV_D push.D
#define CONV_O push.O
#define CONV_T push.T
#else
#define CONV_D 1u
#define CONV_O 1u
#define CONV_T 1u
#endif

// Input channels of all groups, and elements of the input between neighbouring pixels and channels.
uint all_channels() { return push.groups * push.channels; }
TUFF_INDEX input_pixels() { return TUFF_INDEX(CONV_D * push.H) * push.W; }

// One column: the position of its window in the input, and of its first output.
struct Column {
  TUFF_INDEX input_base;   // wraps around if the window starts in the padding
  TUFF_INDEX output_base;  // of the group's first filter
  uint z, y, x;            // the window's first position; negative ones wrap around
};

uint output_image() {
#if SPACED
  return push.out_image;
#else
  return CONV_O * push.P * push.Q;
#endif
}

// Elements from one filter's output to the next filter's.
TUFF_INDEX filter_distance() {
#if CHANNELS_LAST
  return 1;
#else
  return output_image();
#endif
}

// The first element of a split-K part's sums in the output.
TUFF_INDEX slice_start(uint slice) {
#if SLICED
  const uint images = quotient(push.columns, CONV_O * push.P * push.Q);
  return TUFF_INDEX(slice) * images * (push.groups * push.filters) * output_image();
#else
  return 0;
#endif
}

Column column_at(uint column, uint group) {
  const uint image = CONV_O * push.P * push.Q;
  const uint n = quotient(column, image);
  const uint pixel = column - n * image;
  uint p = quotient(pixel, push.Q);
  const uint q = pixel - p * push.Q;
  Column result;
  uint row = 0;
#if DEPTH
  const uint o = quotient(p, push.P);
  p -= o * push.P;
  result.z = o * low(push.depth) - uint(push.pad_z);
  row = result.z * push.H;
#else
  result.z = 0;
#endif
  result.y = p * low(push.stride) - uint(push.pad_y);
  result.x = q * high(push.stride) - uint(push.pad_x);
  row += result.y;
  const TUFF_INDEX place = TUFF_INDEX(int(row)) * push.W + TUFF_INDEX(int(result.x));
#if SPACED
  const TUFF_INDEX at = TUFF_INDEX(p * low(push.out_step)) * push.out_row + q * high(push.out_step);
#else
  const TUFF_INDEX at = pixel;
#endif
#if CHANNELS_LAST
  result.input_base = (n * input_pixels() + place) * all_channels() + group * push.channels;
  result.output_base = (TUFF_INDEX(n) * output_image() + at) * (push.groups * push.filters) + group * push.filters;
#else
  result.input_base = TUFF_INDEX(n * push.groups + group) * push.channels * input_pixels() + place;
  result.output_base = TUFF_INDEX(n * push.groups + group) * push.filters * output_image() + at;
#endif
  return result;
}

// Whether a tap is inside the input: WINDOW describes a column's window, TAP a tap, and is_inside() combines them.
#if TAP_MASK
#define WINDOW uint
#define TAP uint
const uint NO_TAP = 0x80000000u;
const uint NO_WINDOW = 0;
uint window_of(Column column) {
  uint bits = 0, bit = 1;
  [[dont_unroll]] for (uint s = 0, x = column.x; s < push.S; ++s, x += high(push.dilation), bit <<= 1) {
    bits |= x < push.W ? bit : 0u;
  }
  [[dont_unroll]] for (uint r = 0, y = column.y; r < push.R; ++r, y += low(push.dilation), bit <<= 1) {
    bits |= y < push.H ? bit : 0u;
  }
#if DEPTH
  [[dont_unroll]] for (uint t = 0, z = column.z; t < push.T; ++t, z += high(push.depth), bit <<= 1) {
    bits |= z < push.D ? bit : 0u;
  }
#endif
  return bits;
}
uint tap_of(uint t, uint r, uint s) {
#if DEPTH
  return (1u << s) | (1u << (push.S + r)) | (1u << (push.S + push.R + t));
#else
  return (1u << s) | (1u << (push.S + r));
#endif
}
bool is_inside(uint window, uint tap) { return (window & tap) == tap; }
#else
#define WINDOW uvec3
#define TAP uvec3
// Remains outside every extent when any small or negative number is added.
const uint OUTSIDE = 0x60000000u;
const uvec3 NO_TAP = uvec3(0, OUTSIDE, 0);
const uvec3 NO_WINDOW = uvec3(0, OUTSIDE, 0);
uvec3 window_of(Column column) { return uvec3(column.z, column.y, column.x); }
uvec3 tap_of(uint t, uint r, uint s) {
#if DEPTH
  return uvec3(t * high(push.depth), r * low(push.dilation), s * high(push.dilation));
#else
  return uvec3(0, r * low(push.dilation), s * high(push.dilation));
#endif
}
bool is_inside(uvec3 window, uvec3 tap) {
  const uvec3 place = window + tap;
  return place.x < CONV_D && place.y < push.H && place.z < push.W;
}
#endif

#if !PATCHES
// The part of the output that a workgroup computes, of at most `filters` x `columns`. Neighbouring workgroups share
// columns.
struct Part {
  bool exists;
  uint slice, group, filter0, column0;
  uint tap_begin, tap_end;
};

Part this_part(uint filters, uint columns) {
  const uint filter_parts = (push.filters + filters - 1) / filters, column_parts = (push.columns + columns - 1) / columns;
  uint rest = tuff_group();
  Part part;
  part.filter0 = rest % filter_parts * filters;
  rest /= filter_parts;
  part.column0 = rest % column_parts * columns;
  rest /= column_parts;
  part.group = rest % push.groups;
  part.slice = rest / push.groups;
  part.exists = part.slice < push.slices;
  const uint taps = push.channels * CONV_T * push.R * push.S;
  part.tap_begin = min((push.first_slice + part.slice) * push.slice_taps, taps);
  part.tap_end = min(part.tap_begin + push.slice_taps, taps);
  return part;
}
#endif
