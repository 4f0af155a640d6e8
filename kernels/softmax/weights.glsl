// Shared by the softmax kernels for rows, beside the trees of lanes.glsl.
//
// NaN: the maximum may drop or keep it; either way the sum of the exponentials is NaN, and so is every result of the
// row. The same holds for an element of +infinity, as in x - max(x).
#include "kernels/common/lanes.glsl"
#include "kernels/softmax/input.glsl"

TUFF_VALUE larger(TUFF_VALUE a, TUFF_VALUE b) { return b > a ? b : a; }
TUFF_TREE(tree_maximum, larger)

TUFF_VALUE larger4(TUFF_VALUE4 v) { return larger(larger(v.x, v.y), larger(v.z, v.w)); }
// Updates four running maxima, one per column, with the elements of a block.
TUFF_VALUE4 larger_block(TUFF_VALUE4 m, TuffBlock x) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) m = mix(m, x.part[p], greaterThan(x.part[p], m));
  return m;
}

// The value to subtract: the maximum, or 0 while all elements are -infinity, so that e^(x - shift) is 0.
TUFF_VALUE finite_shift(TUFF_VALUE maximum) { return maximum == TUFF_LOWEST ? 0.0 : maximum; }

// sum_of_seen() for the whole of what a lane has seen of a row.
TUFF_VALUE sum_of_seen(TUFF_VALUE total, TUFF_VALUE maximum) {
  uvec4 seen = mask_seen[0];
  [[unroll]] for (uint p = 1; p < TUFF_PARTS; ++p) seen |= mask_seen[p];
  return sum_of_seen(TUFF_VALUE4(total), TUFF_VALUE4(maximum), uvec4(seen.x | seen.y | seen.z | seen.w)).x;
}

#if TUFF_MASK
// Element (or, with TUFF_PEEL 0, block) j of a row is mask_start + j of the mask.
TUFF_INDEX mask_start(uint row) {
  TUFF_INDEX start = TUFF_INDEX(mask_row(row)) * push.mask_extent + push.mask_begin;
#if TUFF_PEEL
  return start;
#else
  return start / TUFF_ELEMENTS;
#endif
}
#endif
