// The gradient of a convolution by its filter: for each filter and tap a sum over columns, the outputs of all images.
//
// A workgroup computes FILTERS filters x TAPS taps of a group for a slice of the columns: lane i takes the columns
// i, i + WIDTH, … and keeps all sums in registers, so that an element of either operand is loaded once for TAPS or
// FILTERS multiplications. Then the lanes' sums are added in their order. Any window, layout and number of channels;
// depthwise convolutions have one filter in each group.
//
// The sums of slice i are stored as [slice][filters of all groups][taps], for a second pass that adds up the slices.
//
//# WIDTH : 1..256 : invocations
//# FILTERS : 1..4 : filters of a workgroup
//# TAPS : 1..9 : taps of a workgroup
//# ADDS : 0|1 : 1: the sums are added to those that are stored
#define PAIRS 0
#define PATCHES 0
#define SLICED 0
#include "kernels/conv/conv_params.glsl"
#include "kernels/conv/conv_walk.glsl"
#if ADDS
TUFF_READ_WRITE(2, Sums, float, 4)
#else
TUFF_WRITE(2, Sums, float, 4)
#endif

layout(local_size_x = WIDTH) in;

shared float lane_sums[FILTERS * TAPS][WIDTH];

void main() {
  const uint taps = push.channels * CONV_T * push.R * push.S, lane = gl_LocalInvocationID.x;
  const uint tap_parts = (taps + TAPS - 1) / TAPS, filter_parts = (push.filters + FILTERS - 1) / FILTERS;
  uint rest = tuff_group();
  const uint tap0 = rest % tap_parts * TAPS;
  rest /= tap_parts;
  const uint filter0 = rest % filter_parts * FILTERS;
  rest /= filter_parts;
  const uint group = rest % push.groups, slice = rest / push.groups;
  if (slice >= push.slices) return;

  TUFF_INDEX offset[TAPS];
  TAP place[TAPS];
  Walk walk = walk_from(tap0);
  [[unroll]] for (uint e = 0; e < TAPS; ++e) {
    offset[e] = walk_offset(walk);
    place[e] = tap0 + e < taps ? tap_of(walk.t, walk.r, walk.s) : NO_TAP;
    walk_on(walk, 1);
  }
  const TUFF_INDEX distance = filter_distance();
  TUFF_INDEX of_filter[FILTERS];
  [[unroll]] for (uint i = 0; i < FILTERS; ++i) of_filter[i] = min(filter0 + i, push.filters - 1) * distance;

  float sums[FILTERS][TAPS];
  [[unroll]] for (int i = 0; i < FILTERS; ++i) [[unroll]] for (int e = 0; e < TAPS; ++e) sums[i][e] = 0.0;

  const uint first = (push.first_slice + slice) * push.slice_taps, end = min(first + push.slice_taps, push.columns);
  [[dont_unroll]] for (uint column = first + lane; column < end; column += WIDTH) {
    const Column here = column_at(column, group);
    const WINDOW window = window_of(here);
    float slopes[FILTERS];
    [[unroll]] for (int i = 0; i < FILTERS; ++i) {
      slopes[i] = TUFF_LOADED(TYPE, TUFF_AT(Filter, here.output_base + of_filter[i]));
    }
    [[unroll]] for (int e = 0; e < TAPS; ++e) {
      const bool valid = is_inside(window, place[e]);
      const float stored =
          TUFF_LOADED(TYPE, TUFF_AT(Input, valid ? here.input_base + offset[e] : TUFF_INDEX(0)));
      const float value = valid ? stored : 0.0;
      [[unroll]] for (int i = 0; i < FILTERS; ++i) sums[i][e] = fma(slopes[i], value, sums[i][e]);
    }
  }
  [[unroll]] for (int i = 0; i < FILTERS; ++i) {
    [[unroll]] for (int e = 0; e < TAPS; ++e) lane_sums[i * TAPS + e][lane] = sums[i][e];
  }
  barrier();
  [[dont_unroll]] for (uint item = lane; item < FILTERS * TAPS; item += WIDTH) {
    const uint k = filter0 + item / TAPS, tap = tap0 + item % TAPS;
    if (k >= push.filters || tap >= taps) continue;
    float sum = 0.0;
    [[dont_unroll]] for (uint i = 0; i < WIDTH; ++i) sum += lane_sums[item][i];
    const TUFF_INDEX row = TUFF_INDEX(slice * push.groups + group) * push.filters + k;
#if ADDS
    TUFF_AT(Sums, row * taps + tap) += sum;
#else
    TUFF_AT(Sums, row * taps + tap) = sum;
#endif
  }
}
