// Copies the outputs of a transposed convolution's phases to where they belong (conv_transpose_vulkan.cpp).
//
// Output (z, y, x) belongs to phase (z % step_z, y % step_y, x % step_x), in which it is number (z / step_z, …). The
// phases are stored one after another, all horizontal phases of a vertical one together, and all vertical ones of a
// phase in depth; each is [images][its outputs][each].
//
// If only one phase has taps, it is the only one that is stored, and the outputs of the others are zeros.
//
//# BYTES : 2|4|16 : bytes of an element; 16: several neighbouring channels are moved as one
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  uint items;         // elements, below 2^31
  uint images, each;  // that each phase has room for, and channels of a pixel; or planes of all channels, and 1
  uint D, H, W;
  uint step_z, step_y, step_x;
  uint only_z, only_y, only_x;  // the only phase that is stored; ~0: all are
  uint skip;                    // what the others before it would take
} push;

#if BYTES == 2
TUFF_READ(0, From, uint16_t, 2)
TUFF_WRITE(1, To, uint16_t, 2)
#define ELEMENT uint16_t
#elif BYTES == 16
TUFF_READ(0, From, uvec4, 16)
TUFF_WRITE(1, To, uvec4, 16)
#define ELEMENT uvec4
#else
TUFF_READ(0, From, uint, 4)
TUFF_WRITE(1, To, uint, 4)
#define ELEMENT uint
#endif
#include "kernels/conv/conv_numbers.glsl"

// The number of outputs of an axis in phase `first`, and in all phases before it.
uint outputs_in(uint n, uint step, uint first) { return quotient(n - 1 - first, step) + 1; }
uint outputs_before(uint n, uint step, uint first) {
  const uint whole = quotient(n, step);
  return first * whole + min(first, n - whole * step);
}

void main() {
  const uint item = tuff_group() * gl_WorkGroupSize.x + gl_LocalInvocationID.x;
  if (item >= push.items) return;
  const uint pixel = quotient(item, push.each), channel = item - pixel * push.each;
  const uint row = quotient(pixel, push.W), x = pixel - row * push.W;
  const uint plane = quotient(row, push.H), y = row - plane * push.H;
  const uint image = quotient(plane, push.D), z = plane - image * push.D;
  const uint at_z = quotient(z, push.step_z), first_z = z - at_z * push.step_z;
  const uint at_y = quotient(y, push.step_y), first_y = y - at_y * push.step_y;
  const uint at_x = quotient(x, push.step_x), first_x = x - at_x * push.step_x;
  if (push.only_z != ~0u && (first_z != push.only_z || first_y != push.only_y || first_x != push.only_x)) {
    TUFF_AT(To, item) = ELEMENT(0);
    return;
  }
  const uint n_z = outputs_in(push.D, push.step_z, first_z), n_y = outputs_in(push.H, push.step_y, first_y),
             n_x = outputs_in(push.W, push.step_x, first_x);
  const uint rows_before =
      outputs_before(push.D, push.step_z, first_z) * push.H + n_z * outputs_before(push.H, push.step_y, first_y);
  const uint before = rows_before * push.W + n_z * n_y * outputs_before(push.W, push.step_x, first_x);
  const uint place = ((image * n_z + at_z) * n_y + at_y) * n_x + at_x;
  TUFF_AT(To, item) = TUFF_AT(From, (before * push.images + place) * push.each + channel - push.skip);
}
