// Copies the filter of a transposed convolution into the order in which its phases read it (conv_transpose_vulkan.cpp).
//
// Tap r of an axis belongs to phase r % step, in which the taps are in reverse order. A phase's filter is that of an
// ordinary convolution, [filters][channels of a group][taps], or with CHANNELS_LAST [filters][taps][channels]. The
// phases are stored one after another, all horizontal phases of a vertical one together, and all vertical ones of a phase
// in depth.
//
//# CHANNELS_LAST : 0|1 : 1: the filter is [channels][T][R][S][filters of a group]; 0: [channels][filters of a group][T][R][S]
//# BYTES : 2|4 : bytes of an element
//# TILED : 0|1 : 1: a workgroup transposes 64 channels by 64 filters at one position of the window, through shared memory,
//  so that both are read and written along rows; only one group, and CHANNELS_LAST
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint items;              // elements, below 2^31
  uint filters, channels;  // of one group
  uint T, R, S;
  uint step_z, step_y, step_x;
} push;

#if BYTES == 2
TUFF_READ(0, From, uint16_t, 2)
TUFF_WRITE(1, To, uint16_t, 2)
#define ELEMENT uint16_t
#else
TUFF_READ(0, From, uint, 4)
TUFF_WRITE(1, To, uint, 4)
#define ELEMENT uint
#endif
#include "kernels/conv/conv_numbers.glsl"

// The number of taps of an axis in phase `first`, and in all phases before it.
uint taps_in(uint taps, uint step, uint first) { return first < taps ? (taps - 1 - first) / step + 1 : 0; }
uint taps_before(uint taps, uint step, uint first) { return first * (taps / step) + min(first, taps % step); }

#if TILED
#define SIDE 64
shared uint elements[SIDE * (SIDE + 1)];
#endif

void main() {
#if TILED
  const uint tiles_k = (push.filters + SIDE - 1) / SIDE, tiles_c = (push.channels + SIDE - 1) / SIDE;
  const uint group = tuff_group(), position = group / (tiles_k * tiles_c), tile = group - position * (tiles_k * tiles_c);
  if (position >= push.T * push.R * push.S) return;
  const uint c0 = tile / tiles_k * SIDE, k0 = tile % tiles_k * SIDE, id = gl_LocalInvocationID.x;
  for (uint v = id; v < SIDE * SIDE; v += gl_WorkGroupSize.x) {
    const uint from_c = c0 + v / SIDE, from_k = k0 + v % SIDE;
    if (from_c >= push.channels || from_k >= push.filters) continue;
    elements[v / SIDE * (SIDE + 1) + v % SIDE] =
        uint(TUFF_AT(From, (from_c * (push.T * push.R * push.S) + position) * push.filters + from_k));
  }
  barrier();
  const uint line = position;  // of channel 0
#else
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
#if CHANNELS_LAST
  const uint line = quotient(item, push.filters), k = item - line * push.filters;
#else
  const uint line = item;
#endif
#endif
  const uint row = quotient(line, push.S), s = line - row * push.S;
  const uint plane = quotient(row, push.R), r = row - plane * push.R;
  const uint window = quotient(plane, push.T), t = plane - window * push.T;
#if !TILED
#if CHANNELS_LAST
  const uint channel = window;
#else
  const uint channel = quotient(window, push.filters), k = window - channel * push.filters;
#endif
  const uint group = quotient(channel, push.channels), c = channel - group * push.channels;
#endif
  const uint first_z = t % push.step_z, first_y = r % push.step_y, first_x = s % push.step_x;
  const uint taps_z = taps_in(push.T, push.step_z, first_z), taps_y = taps_in(push.R, push.step_y, first_y),
             taps_x = taps_in(push.S, push.step_x, first_x);
  // There are push.items / (T * R * S) elements for each position in the window.
  const uint rows_before = taps_before(push.T, push.step_z, first_z) * push.R +
                           taps_z * taps_before(push.R, push.step_y, first_y);
  const uint before = quotient(push.items, push.T * push.R * push.S) *
                      (rows_before * push.S + taps_z * taps_y * taps_before(push.S, push.step_x, first_x));
  const uint place = ((taps_z - 1 - t / push.step_z) * taps_y + (taps_y - 1 - r / push.step_y)) * taps_x +
                     (taps_x - 1 - s / push.step_x);
#if TILED
  for (uint v = id; v < SIDE * SIDE; v += gl_WorkGroupSize.x) {
    const uint k = k0 + v / SIDE, c = c0 + v % SIDE;
    if (k >= push.filters || c >= push.channels) continue;
    const uint at = (k * (taps_z * taps_y * taps_x) + place) * push.channels + c;
    TUFF_AT(To, before + at) = ELEMENT(elements[v % SIDE * (SIDE + 1) + v / SIDE]);
  }
#else
  const uint filter_index = group * push.filters + k;
#if CHANNELS_LAST
  const uint at = (filter_index * (taps_z * taps_y * taps_x) + place) * push.channels + c;
#else
  const uint at = (filter_index * push.channels + c) * (taps_z * taps_y * taps_x) + place;
#endif
  TUFF_AT(To, before + at) = TUFF_AT(From, item);
#endif
}
