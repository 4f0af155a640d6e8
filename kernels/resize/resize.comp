// Resizes planes to nearest elements or by linear interpolation. An invocation has one place in the output planes. It
// works out once which input elements contribute to it, and applies that to RUN planes.
//
// A plane is [z][y][x][inner], of which the last RANK spatial axes are resized. A unit is TUFF_WIDTH consecutive
// elements of a plane. Invocation i computes unit i % units of plane i / units, and of every `chunks`-th plane after
// it.
//# TUFF_TYPE : 1..3 : element type of input and output, as in tuff.h
//# TUFF_LINEAR : 0|1 : 1: linear interpolation; 0: the element at the position, rounded down
//# TUFF_WIDTH : 1|4 : 4: a unit is four of inner (TUFF_ALONG_X 0), or four of x where inner is 1 (TUFF_ALONG_X 1)
//# TUFF_ALONG_X : 0|1 : see TUFF_WIDTH
//# TUFF_RUN : 0.. : planes that an invocation processes; 0: push.run says
//   CENTRES, HALVES (specialisation constants): see ResizeShape of kernels/resize/resize.hpp
//
// The position of output o along an axis is computed exactly in 32-bit integers. With m = o or 2 o + 1 it is
// m * (steps + part / whole), where part < whole. The high word of m * floor(2^32 part / whole) is m * part / whole
// rounded down, or one less; the remainder, which is below 2 * whole, tells which.
#include "kernels/elementwise/blocks.glsl"
#include "kernels/common/division.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint RANK = 2;
layout(constant_id = 2) const bool CENTRES = false;
layout(constant_id = 3) const bool HALVES = false;

struct Axis {
  uint last;  // index of the input's last element
  uint steps, part, whole, multiplier;
};

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint n, run, planes, chunks;
  uint sizes[4], multipliers[4], shifts;  // units of a plane; inner in units, x in units, y
  Axis axes[3];                           // z, y, x
} push;

TUFF_BLOCKS_READ(0, X, TUFF_TYPE)
TUFF_BLOCKS_WRITE(1, Y, TUFF_TYPE)

#if TUFF_WIDTH == 4
#define VALUE vec4
#else
#define VALUE float
#endif
// Loads a value of the input. The index counts vec4s where a unit is four of inner, otherwise elements.
#if TUFF_WIDTH == 4 && !TUFF_ALONG_X
#define LOAD(i) X_load_block(i).part[0]
#else
#define LOAD(i) X_load(i)
#endif

uint divided(uint n, uint d) { return tuff_divide(n, push.multipliers[d], (push.shifts >> (8 * d)) & 31u); }

struct Taps {
  uint first, second;  // equal if the weight is 0
  float weight;        // of `second`
};

Taps taps_of(Axis axis, uint o) {
  const uint m = CENTRES ? 2 * o + 1 : o;
  uint high, low;
  umulExtended(m, axis.multiplier, high, low);
  uint rest = m * axis.part - high * axis.whole;
  uint at = m * axis.steps + high;
  if (HALVES) rest += axis.whole >> 1;
  if (rest >= axis.whole) rest -= axis.whole, ++at;
  if (HALVES && rest >= axis.whole) rest -= axis.whole, ++at;
  if (HALVES) {
    if (at == 0) rest = 0;
    at = max(at, 1u) - 1;
  }
  if (at >= axis.last) at = axis.last, rest = 0;
#if TUFF_LINEAR
  return Taps(at, rest == 0 ? at : at + 1, float(rest) / float(axis.whole));
#else
  return Taps(at, at, 0.0);
#endif
}

// With weight 0 the second value is ignored, even if it is infinite or NaN.
vec4 blend(vec4 first, vec4 second, vec4 weight) {
  return mix(first * (1.0 - weight) + second * weight, first, equal(weight, vec4(0.0)));
}
float blend(float first, float second, float weight) {
  return weight == 0.0 ? first : first * (1.0 - weight) + second * weight;
}
vec4 blend(vec4 first, vec4 second, float weight) {
  return weight == 0.0 ? first : first * (1.0 - weight) + second * weight;
}

// The taps of this invocation, in the index units of LOAD.
#if TUFF_WIDTH == 4 && TUFF_ALONG_X
uvec4 x_first, x_second;
vec4 x_weight;
#else
uint x_first, x_second;
float x_weight;
#endif
Taps y_taps, z_taps;

VALUE row(uint begin) {
#if TUFF_WIDTH == 4 && TUFF_ALONG_X
  vec4 first, second;
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    first[c] = LOAD(TUFF_INDEX(begin + x_first[c]));
#if TUFF_LINEAR
    second[c] = LOAD(TUFF_INDEX(begin + x_second[c]));
#endif
  }
#else
  const VALUE first = LOAD(TUFF_INDEX(begin + x_first));
#if TUFF_LINEAR
  const VALUE second = LOAD(TUFF_INDEX(begin + x_second));
#endif
#endif
#if TUFF_LINEAR
  return blend(first, second, x_weight);
#else
  return first;
#endif
}

VALUE image(uint begin) {
  const VALUE first = row(begin + y_taps.first);
#if TUFF_LINEAR
  if (RANK > 1) return blend(first, row(begin + y_taps.second), y_taps.weight);
#endif
  return first;
}

VALUE volume(uint begin) {
  const VALUE first = image(begin + z_taps.first);
#if TUFF_LINEAR
  if (RANK > 2) return blend(first, image(begin + z_taps.second), z_taps.weight);
#endif
  return first;
}

void main() {
  const uint id = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (id >= push.n) return;
  const uint chunk = divided(id, 0), unit = id - chunk * push.sizes[0], places = divided(unit, 1),
             inner = unit - places * push.sizes[1], rows = divided(places, 2), x = places - rows * push.sizes[2];
  const uint row_size = (push.axes[2].last + 1) * push.sizes[1];
#if TUFF_WIDTH == 4 && TUFF_ALONG_X
  [[unroll]] for (uint c = 0; c < 4; ++c) {
    const Taps taps = taps_of(push.axes[2], 4 * x + c);
    x_first[c] = taps.first;
    x_second[c] = taps.second;
    x_weight[c] = taps.weight;
  }
#else
  const Taps taps = taps_of(push.axes[2], x);
  x_first = taps.first * push.sizes[1] + inner;
  x_second = taps.second * push.sizes[1] + inner;
  x_weight = taps.weight;
#endif
  y_taps = z_taps = Taps(0, 0, 0.0);
  uint plane_size = row_size;
  if (RANK > 1) {
    const uint z = divided(rows, 3);
    y_taps = taps_of(push.axes[1], rows - z * push.sizes[3]);
    y_taps.first *= row_size;
    y_taps.second *= row_size;
    plane_size *= push.axes[1].last + 1;
    if (RANK > 2) {
      z_taps = taps_of(push.axes[0], z);
      z_taps.first *= plane_size;
      z_taps.second *= plane_size;
      plane_size *= push.axes[0].last + 1;
    }
  }
  for (uint step = 0, plane = chunk; step < RUN && plane < push.planes; ++step, plane += push.chunks) {
    const TUFF_INDEX to = TUFF_INDEX(plane * push.sizes[0] + unit);
    const VALUE value = volume(plane * plane_size);
#if TUFF_WIDTH == 4
    TuffBlock block;
    block.part[0] = value;
    Y_store_block(to, block);
#else
    Y_store(to, value);
#endif
  }
}
