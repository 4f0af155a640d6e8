// The gradient of pooling, for each element of the input: the sum over the windows that contain it, in their order. A
// lane computes RUN elements, (workgroup size) apart.
//
// Along an axis, element i lies in windows `first` to `last`: those that begin at most at i and end after it. With a
// dilation only those count in which a tap falls on i.
//# TUFF_TYPE : 1..3 : element type of the gradients, as in tuff.h
//# TUFF_MAXIMUM : 0|1 : 1: a window's gradient belongs to the element that its index names; 0: to all, divided
//# TUFF_ADAPTIVE : 0|1 : 1: window o begins at floor(o in / out) and ends before ceil((o + 1) in / out)
//# TUFF_DILATED : 0|1 : 1: the taps of a window are push.dilation apart
//# TUFF_RUN : 0.. : elements that a lane computes one after another; 0: push.run says
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool INCLUDE_PAD = false;  // the mean's divisor counts the padding

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint in_size[3], out_size[3];  // depth, height, width
  int window[3], stride[3], padding[3], dilation[3];
} push;

#include "kernels/common/types.glsl"
#include "kernels/conv/conv_numbers.glsl"
TUFF_READ(0, DY, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(1, DX, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#if TUFF_MAXIMUM
TUFF_READ(2, I, uint, 4)
#endif

// The first and the last window along axis d that contain element i; none if the first is beyond the last.
ivec2 windows_of(uint i, uint d) {
#if TUFF_ADAPTIVE
  return ivec2(quotient(i * push.out_size[d], push.in_size[d]),
               quotient((i + 1) * push.out_size[d] - 1, push.in_size[d]));
#else
  const int shifted = int(i) + push.padding[d], reach = push.dilation[d] * (push.window[d] - 1);
  const int last = int(quotient(uint(shifted), uint(push.stride[d])));
  const int before = shifted - reach;  // windows that begin before this end before i
  const int first = before <= 0 ? 0 : int(quotient(uint(before - 1), uint(push.stride[d]))) + 1;
  return ivec2(first, min(last, int(push.out_size[d]) - 1));
#endif
}

// Whether a tap of window o falls on element i.
bool meets(uint i, int o, uint d) {
#if TUFF_DILATED
  const uint from_begin = uint(int(i) + push.padding[d] - o * push.stride[d]);
  return quotient(from_begin, uint(push.dilation[d])) * uint(push.dilation[d]) == from_begin;
#else
  return true;
#endif
}

// The elements of window o along axis d, and with INCLUDE_PAD its padding.
float extent_of(int o, uint d) {
#if TUFF_ADAPTIVE
  const uint size = push.in_size[d], out_size = push.out_size[d];
  return float(quotient((uint(o) + 1) * size + out_size - 1, out_size) - quotient(uint(o) * size, out_size));
#else
  const int around = INCLUDE_PAD ? push.padding[d] : 0, begin = o * push.stride[d] - push.padding[d];
  return float(min(begin + push.window[d], int(push.in_size[d]) + around) - max(begin, -around));
#endif
}

void gradient(uint i) {
  const uint row = quotient(i, push.in_size[2]), x = i - row * push.in_size[2];
  const uint slice = quotient(row, push.in_size[1]), y = row - slice * push.in_size[1];
  const uint plane = quotient(slice, push.in_size[0]), z = slice - plane * push.in_size[0];
  const TUFF_INDEX base = TUFF_INDEX(plane) * (push.out_size[0] * push.out_size[1] * push.out_size[2]);
  const ivec2 deep = windows_of(z, 0), down = windows_of(y, 1), across = windows_of(x, 2);
#if TUFF_MAXIMUM
  const uint own = (z * push.in_size[1] + y) * push.in_size[2] + x;
#endif
  float total = 0;
  for (int o = deep.x; o <= deep.y; ++o) {
    if (!meets(z, o, 0)) continue;
    for (int p = down.x; p <= down.y; ++p) {
      if (!meets(y, p, 1)) continue;
      const uint line = (uint(o) * push.out_size[1] + uint(p)) * push.out_size[2];
#if !TUFF_MAXIMUM
      const float lines = extent_of(o, 0) * extent_of(p, 1);
#endif
      for (int q = across.x; q <= across.y; ++q) {
        if (!meets(x, q, 2)) continue;
        const TUFF_INDEX at = base + line + uint(q);
#if TUFF_MAXIMUM
        const bool counts = TUFF_AT(I, at) == own;
        const float value = TUFF_LOADED(TUFF_TYPE, TUFF_AT(DY, at));
        total += counts ? value : 0.0;
#else
        total += TUFF_LOADED(TUFF_TYPE, TUFF_AT(DY, at)) / (lines * extent_of(q, 2));
#endif
      }
    }
  }
  TUFF_AT(DX, TUFF_INDEX(i)) = TUFF_ROUNDED(TUFF_TYPE, total);
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) gradient(i);
}
