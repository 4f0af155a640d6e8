// The input of the softmax kernels, z = scale * x with a mask, and the formulas for their results.
//# TUFF_TYPE : types : type of input and output, as in tuff.h
//# TUFF_MASK : 0..2 : 0: no mask; 1: a mask of the same type is added to z; 2: z is -infinity where a byte mask is 0
//# TUFF_LOGARITHM : 0|1 : 1: the results are logarithms of the softmax
//
// The mask is [mask_rows][extent][inner]; index i before the axis uses its row (i / mask_repeat) % mask_rows. The push
// block has scale, mask_first (the dispatch's first index before the axis), mask_rows and mask_repeat. The including
// shader defines TUFF_MASK_SLOT, the mask's slot.
#include "kernels/softmax/softmax.def"

#if TUFF_MASK == 1
TUFF_BLOCKS_READ(TUFF_MASK_SLOT, M, TUFF_TYPE)
#elif TUFF_MASK == 2
TUFF_READ(TUFF_MASK_SLOT, M_bytes, int8_t, 1)
#if TUFF_VECTOR
TUFF_READ(TUFF_MASK_SLOT, M_words, uint, 4)
#endif
#endif

// Per column: nonzero once a load has seen a nonzero byte of the mask, i.e. an element that is not masked.
uvec4 mask_seen[TUFF_PARTS];
void forget_seen() {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) mask_seen[p] = uvec4(0u);
}

#if TUFF_MASK
uint mask_row(uint i) { return ((push.mask_first + i) / push.mask_repeat) % push.mask_rows; }
#endif

// z of element i of the input with element m of the mask.
TUFF_VALUE z_load(TUFF_INDEX i, TUFF_INDEX m) {
  precise TUFF_VALUE z = X_load(i) * push.scale;
#if TUFF_MASK == 1
  z = z + M_load(m);
#elif TUFF_MASK == 2
  const uint seen = uint(int(TUFF_AT(M_bytes, m)));
  mask_seen[0].x |= seen;
  z = seen == 0u ? TUFF_LOWEST : z;
#endif
  return z;
}

// The same for blocks.
TuffBlock z_load_block(TUFF_INDEX i, TUFF_INDEX m) {
  TuffBlock x = X_load_block(i);
#if TUFF_MASK == 1
  TuffBlock added = M_load_block(m);
#endif
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise TUFF_VALUE4 z = x.part[p] * push.scale;
#if TUFF_MASK == 1
    z = z + added.part[p];
#elif TUFF_MASK == 2
#if TUFF_VECTOR
    uvec4 seen = (uvec4(TUFF_AT(M_words, TUFF_PARTS * m + p)) >> uvec4(0, 8, 16, 24)) & 0xffu;
#else
    uvec4 seen;
    [[unroll]] for (uint c = 0; c < 4; ++c) seen[c] = uint(int(TUFF_AT(M_bytes, TUFF_ELEMENTS * m + (4 * p + c)))) & 0xffu;
#endif
    mask_seen[p] |= seen;
    z = mix(z, TUFF_VALUE4(TUFF_LOWEST), equal(seen, uvec4(0u)));
#endif
    x.part[p] = z;
  }
  return x;
}

// The sum of e^(z - shift), corrected for elements that are all -infinity: 0 if all of them are masked, otherwise 1.
TUFF_VALUE4 sum_of_seen(TUFF_VALUE4 total, TUFF_VALUE4 maximum, uvec4 seen) {
#if TUFF_MASK == 2
  TUFF_VALUE4 of_lowest = mix(TUFF_VALUE4(0.0), TUFF_VALUE4(1.0), notEqual(seen, uvec4(0u)));
  return mix(total, of_lowest, equal(maximum, TUFF_VALUE4(TUFF_LOWEST)));
#else
  return total;
#endif
}

// The weight of a sum that was computed with `maximum` when it is merged under the maximum `of_all`: 1 if both are
// -infinity.
TUFF_VALUE4 weight_of_part(TUFF_VALUE4 maximum, TUFF_VALUE4 of_all) {
  return mix(tuff_exp(maximum - of_all), TUFF_VALUE4(1.0), equal(maximum, of_all));
}

// Turns z into results, for four columns: subtracts `shift`, then multiplies e^… by `scale` or (TUFF_LOGARITHM 1)
// subtracts `scale` as well. If all elements are -infinity, results are NaN, as 0 / 0 would be. With TUFF_MASK 2, a
// total of 0 then means that all are masked, and the results are those of masked elements, 0 or -infinity.
struct Weights {
  TUFF_VALUE4 shift, scale;
};

Weights weights_of(TUFF_VALUE4 maximum, TUFF_VALUE4 total) {
  bvec4 lowest = equal(maximum, TUFF_VALUE4(TUFF_LOWEST));
  // Subtract nothing if all elements are -infinity.
  Weights w;
  w.shift = mix(maximum, TUFF_VALUE4(0.0), lowest);
#if TUFF_LOGARITHM
  TUFF_VALUE4 scale = tuff_log(total);
#else
  TUFF_VALUE4 scale = tuff_divide_moderate(TUFF_VALUE4(1.0), total);
#endif
  scale = mix(scale, total, tuff_nans(total));
  scale = mix(scale, TUFF_VALUE4(TUFF_NAN), lowest);
#if TUFF_MASK == 2
  scale = mix(scale, TUFF_VALUE4(0.0), equal(total, TUFF_VALUE4(0.0)));
#endif
  w.scale = scale;
  return w;
}

#if TUFF_LOGARITHM
TUFF_VALUE4 weighted(TUFF_VALUE4 z, Weights w) { return (z - w.shift) - w.scale; }
#else
TUFF_VALUE4 weighted(TUFF_VALUE4 z, Weights w) { return tuff_exp(z - w.shift) * w.scale; }
#endif
