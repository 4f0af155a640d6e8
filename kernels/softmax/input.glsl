// What the softmax kernels are given: z = scale * x, to which a mask of the same type is added (TUFF_MASK 1), or which is
// hidden where a mask of bytes is 0 (TUFF_MASK 2): -infinity. TUFF_MASK 0: no mask.
//
// The mask is [mask_rows][extent][inner]; index i before the axis takes its row (i / mask_repeat) % mask_rows. In push:
// scale, and mask_first (the first index before the axis here), mask_rows, mask_repeat.
//   TUFF_MASK_SLOT   the operand's slot
#if TUFF_MASK == 1
TUFF_BLOCKS_READ(TUFF_MASK_SLOT, M, TUFF_TYPE)
#elif TUFF_MASK == 2
TUFF_READ(TUFF_MASK_SLOT, M_bytes, int8_t, 1)
#if TUFF_VECTOR
TUFF_READ(TUFF_MASK_SLOT, M_words, uint, 4)
#endif
#endif

#if TUFF_MASK
uint mask_row(uint i) { return ((push.mask_first + i) / push.mask_repeat) % push.mask_rows; }
#endif

// Element i of the input, element m of the mask.
float z_load(TUFF_INDEX i, TUFF_INDEX m) {
  precise float z = X_load(i) * push.scale;
#if TUFF_MASK == 1
  z = z + M_load(m);
#elif TUFF_MASK == 2
  z = int(TUFF_AT(M_bytes, m)) == 0 ? -TUFF_INFINITY : z;
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
    precise vec4 z = x.part[p] * push.scale;
#if TUFF_MASK == 1
    z = z + added.part[p];
#elif TUFF_MASK == 2
#if TUFF_VECTOR
    uvec4 seen = (uvec4(TUFF_AT(M_words, TUFF_PARTS * m + p)) >> uvec4(0, 8, 16, 24)) & 0xffu;
#else
    uvec4 seen;
    [[unroll]] for (uint c = 0; c < 4; ++c) seen[c] = uint(int(TUFF_AT(M_bytes, TUFF_ELEMENTS * m + (4 * p + c)))) & 0xffu;
#endif
    z = mix(z, vec4(-TUFF_INFINITY), equal(seen, uvec4(0u)));
#endif
    x.part[p] = z;
  }
  return x;
}

// What makes results of z, for four columns: `shift` is subtracted, and then e^… multiplied by `scale`, or (TUFF_LOGARITHM
// 1) `scale` subtracted too. A total of 0 (no element above -infinity) gives NaN, as 0 / 0 would; with TUFF_MASK 2 the
// results of what is hidden, 0 or -infinity.
struct Weights {
  vec4 shift, scale;
};

Weights weights_of(vec4 maximum, vec4 total) {
#if TUFF_MASK == 2
  const vec4 nothing = vec4(0.0);
#else
  const vec4 nothing = vec4(TUFF_NAN);
#endif
  // What is subtracted: nothing while all elements are -infinity.
  Weights w;
  w.shift = mix(maximum, vec4(0.0), equal(maximum, vec4(-TUFF_INFINITY)));
#if TUFF_LOGARITHM
  vec4 scale = tuff_log(total);
#else
  vec4 scale = tuff_divide_moderate(vec4(1.0), total);
#endif
  scale = mix(scale, total, tuff_nans(total));
  w.scale = mix(scale, nothing, equal(total, vec4(0.0)));
  return w;
}

#if TUFF_LOGARITHM
vec4 weighted(vec4 z, Weights w) { return (z - w.shift) - w.scale; }
#else
vec4 weighted(vec4 z, Weights w) { return tuff_exp(z - w.shift) * w.scale; }
#endif
