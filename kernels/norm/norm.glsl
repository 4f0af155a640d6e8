// What the normalisations of rows share: what is read, and what is made of it.
//   TUFF_TYPE, TUFF_WEIGHT_TYPE   of the tensors, and of weight and bias, as in tuff.h
//   TUFF_CENTRED    1: the mean is subtracted; 0: rms norm
//   TUFF_RESIDUAL   1: X + R, rounded to the type, is normalised
//   TUFF_WEIGHT, TUFF_BIAS   1: there is one
//   TUFF_CHANNEL    0: element j of a row is of channel j; 1: a block is of one channel; 2: channels are looked up
//                   element by element
// In push: epsilon, inner (elements of a channel), channels (of a row), groups (rows whose channels follow one another).
#if TUFF_WEIGHT
TUFF_BLOCKS_READ(2, W, TUFF_WEIGHT_TYPE)
#endif
#if TUFF_BIAS
TUFF_BLOCKS_READ(3, B, TUFF_WEIGHT_TYPE)
#endif

float input_load(TUFF_INDEX i) {
  precise float x = X_load(i);
#if TUFF_RESIDUAL
  x = x + R_load(i);
  x = TUFF_AS_STORED(TUFF_TYPE, vec4(x)).x;
#endif
  return x;
}

TuffBlock input_load_block(TUFF_INDEX i) {
  TuffBlock x = X_load_block(i);
#if TUFF_RESIDUAL
  TuffBlock added = R_load_block(i);
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise vec4 s = x.part[p] + added.part[p];
    x.part[p] = TUFF_AS_STORED(TUFF_TYPE, s);
  }
#endif
  return x;
}

// 1 / sqrt(variance + epsilon)
float reciprocal_deviation(float variance) {
  return tuff_divide(vec4(1.0), tuff_sqrt(vec4(variance + push.epsilon))).x;
}

// The channel that element j of a row counts from is first_channel(row).
uint first_channel(uint row) { return row % push.groups * push.channels; }

// Elements j … of a row, normalised: times weight, plus bias.
TuffBlock result_block(TuffBlock x, uint first, uint j, float mean, float scale) {
#if TUFF_WEIGHT
#if TUFF_CHANNEL == 0
  TuffBlock w = W_load_block(j / TUFF_ELEMENTS);
#else
  TuffBlock w = tuff_block(W_load(first + j / push.inner));
#endif
#endif
#if TUFF_BIAS
#if TUFF_CHANNEL == 0
  TuffBlock b = B_load_block(j / TUFF_ELEMENTS);
#else
  TuffBlock b = tuff_block(B_load(first + j / push.inner));
#endif
#endif
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise vec4 y = (x.part[p] - mean) * scale;
#if TUFF_WEIGHT
    y = y * w.part[p];
#endif
#if TUFF_BIAS
    y = y + b.part[p];
#endif
    x.part[p] = y;
  }
  return x;
}

float result(float x, uint first, uint j, float mean, float scale) {
  precise float y = (x - mean) * scale;
#if TUFF_WEIGHT
  y = y * W_load(first + j / push.inner);
#endif
#if TUFF_BIAS
  y = y + B_load(first + j / push.inner);
#endif
  return y;
}
