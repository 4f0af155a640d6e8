// Where the scale and the zero point of an element are (quant::Places), and the zero points themselves. Included after
// the push block, which has axis, inner, block and blocks, and the coordinates of the dispatch's first element.
//
//# TUFF_GRANULARITY : 0..2 : TUFF_QUANT_PER_*: 0 one scale, 1 one for each index along the axis, 2 blocks along the axis
//# TUFF_SHARED : 0|1 : 1: the eight elements of an item have one scale
#include "kernels/quant/quant_scales.glsl"

struct Place {
  uint i, a, inside, block;  // coordinates; element of the block along the axis, and the block
  TUFF_INDEX outer;
};

// The place of element `at` of the dispatch.
Place place_of(uint at) {
  Place p;
#if TUFF_GRANULARITY == 0
  p.i = p.a = p.inside = p.block = 0;
  p.outer = TUFF_INDEX(0);
#else
  // All are below 2^31, and `at` is below 2^30.
  const uint along_i = at + push.first_i, r = along_i / push.inner;
  p.i = along_i - r * push.inner;
  const uint along_a = r + push.first_a, o = along_a / push.axis;
  p.a = along_a - o * push.axis;
  p.block = p.a / push.block;
  p.inside = p.a - p.block * push.block;
  p.outer = TUFF_INDEX(o);
#endif
  return p;
}

void advance(inout Place p) {
#if TUFF_GRANULARITY != 0
  if (++p.i < push.inner) return;
  p.i = 0;
  if (++p.inside == push.block) {
    p.inside = 0;
    ++p.block;
  }
  if (++p.a < push.axis) return;
  p.a = p.inside = p.block = 0;
  ++p.outer;
#endif
}

TUFF_INDEX scale_of(Place p) {
#if TUFF_GRANULARITY == 0
  return TUFF_INDEX(0);
#elif TUFF_GRANULARITY == 1
  return TUFF_INDEX(p.a);
#else
  // From the first scale of the dispatch's first outer index, where the operand begins.
  return (p.outer * push.blocks + p.block) * push.inner + p.i;
#endif
}

// Scales and zero points of eight elements.
struct Eight {
  vec4 scale[2];
  ivec4 zero[2];
};

Eight scales_of(uint at) {
  Eight e;
  Place p = place_of(at);
#if TUFF_SHARED
  const TUFF_INDEX i = scale_of(p);
  e.scale[0] = e.scale[1] = vec4(scale_at(i));
  e.zero[0] = e.zero[1] = ivec4(zero_at(i));
#else
  [[unroll]] for (uint part = 0; part < 2; ++part) {
    [[unroll]] for (uint c = 0; c < 4; ++c) {
      // Elements beyond the last one repeat its scale.
      const TUFF_INDEX i = scale_of(p);
      e.scale[part][c] = scale_at(i);
      e.zero[part][c] = zero_at(i);
      if (at + 4 * part + c + 1 < push.n) advance(p);
    }
  }
#endif
  return e;
}
