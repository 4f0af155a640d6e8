// Maximum and average pooling over dense planes. A lane computes RUN whole windows, output elements (workgroup size)
// apart. Neighbouring lanes have neighbouring windows, so overlapping elements come from the cache.
//# TUFF_TYPE : 1..3 : element type of input and output, as in tuff.h
//# TUFF_MAXIMUM : 0|1 : 1: the largest value, or NaN if any is NaN; 0: the mean
//# TUFF_INDICES : 0|1 : 1: the index of the largest value in its plane is stored, the first of several
//# TUFF_ADAPTIVE : 0|1 : 1: window o begins at floor(o in / out) and ends before ceil((o + 1) in / out)
//# TUFF_DILATED : 0..2 : 0: the taps of a window are adjacent; 1, 2: they are push.dilation apart
//   2: so many taps may be before the input that they are skipped by a division instead of one by one
//# TUFF_RUN : 0.. : windows that a lane computes one after another; 0: push.run says
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool INCLUDE_PAD = false;  // the mean's divisor counts the padding

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint in_size[3];                        // depth, height, width
  uint out_size[3], multipliers[3], shifts;
  int window[3], stride[3], padding[3], dilation[3];
} push;

#include "kernels/common/division.glsl"
#include "kernels/common/types.glsl"
TUFF_READ(0, X, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(1, Y, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#if TUFF_INDICES
TUFF_WRITE(2, I, uint, 4)
#endif

uint divided(uint n, uint d) { return tuff_divide(n, push.multipliers[d], (push.shifts >> (8 * d)) & 31u); }

// Window o along axis d: its first tap, which may be in the padding, and the end of its taps.
ivec2 window_of(uint o, uint d) {
#if TUFF_ADAPTIVE
  return ivec2(divided(o * push.in_size[d], d), divided((o + 1) * push.in_size[d] + push.out_size[d] - 1, d));
#else
  const int first = int(o) * push.stride[d] - push.padding[d];
  return ivec2(first, first + push.dilation[d] * (push.window[d] - 1) + 1);
#endif
}

// The tap to start with. Padding may be far larger than the input, so taps before the input are skipped where possible.
#if TUFF_DILATED
#define STEP(d) push.dilation[d]
#else
#define STEP(d) 1
#endif
int begin_of(int first, uint d) {
#if TUFF_DILATED == 0
  return max(first, 0);
#elif TUFF_DILATED == 1
  return first;
#else
  return first < 0 ? first + (STEP(d) - 1 - first) / STEP(d) * STEP(d) : first;
#endif
}
#define IN_FRONT(tap) (TUFF_DILATED == 1 && tap < 0)

void pool(uint i) {
  uint rest = divided(i, 2);
  const ivec2 across = window_of(i - rest * push.out_size[2], 2);
  const uint rows = divided(rest, 1);
  const ivec2 down = window_of(rest - rows * push.out_size[1], 1);
  const uint plane = divided(rows, 0);
  const ivec2 deep = window_of(rows - plane * push.out_size[0], 0);
  const TUFF_INDEX base = TUFF_INDEX(plane) * (push.in_size[0] * push.in_size[1] * push.in_size[2]);
  const ivec3 size = ivec3(push.in_size[0], push.in_size[1], push.in_size[2]);
#if TUFF_MAXIMUM
  float best = -TUFF_INFINITY;
  uint place = 0xffffffffu;
#else
  float total = 0;
#endif
  const ivec3 first = ivec3(begin_of(deep.x, 0), begin_of(down.x, 1), begin_of(across.x, 2));
  for (int z = first.x; z < min(deep.y, size.x); z += STEP(0)) {
    if (IN_FRONT(z)) continue;
    for (int y = first.y; y < min(down.y, size.y); y += STEP(1)) {
      if (IN_FRONT(y)) continue;
      const uint row = (uint(z) * uint(size.y) + uint(y)) * uint(size.z);
      for (int x = first.z; x < min(across.y, size.z); x += STEP(2)) {
        if (IN_FRONT(x)) continue;
        const uint at = row + uint(x);
        const float value = TUFF_LOADED(TUFF_TYPE, TUFF_AT(X, base + at));
#if TUFF_MAXIMUM
        const bool better = value > best || place == 0xffffffffu || (tuff_isnan(value) && !tuff_isnan(best));
        best = better ? value : best;
        place = better ? at : place;
#else
        total += value;
#endif
      }
    }
  }
#if TUFF_MAXIMUM
  TUFF_AT(Y, TUFF_INDEX(i)) = TUFF_ROUNDED(TUFF_TYPE, best);
#if TUFF_INDICES
  TUFF_AT(I, TUFF_INDEX(i)) = place == 0xffffffffu ? 0u : place;
#endif
#else
  const ivec3 padding = INCLUDE_PAD ? ivec3(push.padding[0], push.padding[1], push.padding[2]) : ivec3(0);
  const ivec3 begin = max(ivec3(deep.x, down.x, across.x), -padding);
  const ivec3 end = min(ivec3(deep.y, down.y, across.y), size + padding);
  const vec3 counts = vec3(end - begin);
  TUFF_AT(Y, TUFF_INDEX(i)) = TUFF_ROUNDED(TUFF_TYPE, total / (counts.x * counts.y * counts.z));
#endif
}

void main() {
  const uint lanes = gl_WorkGroupSize.x;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < push.n; ++step, i += lanes) pool(i);
}
