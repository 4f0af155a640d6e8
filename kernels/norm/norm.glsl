// Shared by the kernels that normalise rows: the inputs, and the formulas applied to them.
//# TUFF_TYPE : types : element type of the tensors, as in tuff.h
//# TUFF_WEIGHT_TYPE : types : type of weight and bias
//# TUFF_CENTRED : 0|1 : 1: the mean is subtracted; 0: RMS norm
//# TUFF_RESIDUAL : 0|1 : 1: X + R, rounded to the type, is normalised instead of X
//# TUFF_WEIGHT : 0|1 : 1: results are multiplied by a weight
//# TUFF_BIAS : 0|1 : 1: a bias is added to results
//# TUFF_CHANNEL : 0..2 : where channels change:
//   0   element j of a row has channel j
//   1   all of a block has the same channel
//   2   channels are looked up element by element
// The shader's push block has epsilon, inner (elements of a channel), channels (of a row) and groups (rows after which
// the channels start again).
#include "kernels/norm/norm.def"

#if TUFF_WEIGHT
TUFF_BLOCKS_READ(2, W, TUFF_WEIGHT_TYPE)
#endif
#if TUFF_BIAS
TUFF_BLOCKS_READ(3, B, TUFF_WEIGHT_TYPE)
#endif

TUFF_VALUE input_load(TUFF_INDEX i) {
  precise TUFF_VALUE x = X_load(i);
#if TUFF_RESIDUAL
  x = x + R_load(i);
  x = TUFF_AS_STORED(TUFF_TYPE, TUFF_VALUE4(x)).x;
#endif
  return x;
}

TuffBlock input_load_block(TUFF_INDEX i) {
  TuffBlock x = X_load_block(i);
#if TUFF_RESIDUAL
  TuffBlock added = R_load_block(i);
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise TUFF_VALUE4 s = x.part[p] + added.part[p];
    x.part[p] = TUFF_AS_STORED(TUFF_TYPE, s);
  }
#endif
  return x;
}

#include "kernels/norm/factors.glsl"

// `precise` keeps the compiler from multiplying a sum by the factor instead of summing the scaled elements.
TuffBlock scaled(TuffBlock x, TUFF_VALUE factor) {
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {
    precise TUFF_VALUE4 v = x.part[p] * factor;
    x.part[p] = v;
  }
  return x;
}

// Normalises a row that has been multiplied by its factor: y = (x - mean) * scale.
struct Normal {
  TUFF_VALUE mean, scale;
};

// The channel of a row's first element.
uint first_channel(uint row) { return row % push.groups * push.channels; }

// A block of a row from element j on: normalised, times weight, plus bias. `first` is the row's first_channel().
TuffBlock result_block(TuffBlock x, uint first, uint j, Normal n) {
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
    precise TUFF_VALUE4 y = (x.part[p] - n.mean) * n.scale;
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

TUFF_VALUE result(TUFF_VALUE x, uint first, uint j, Normal n) {
  precise TUFF_VALUE y = (x - n.mean) * n.scale;
#if TUFF_WEIGHT
  y = y * W_load(first + j / push.inner);
#endif
#if TUFF_BIAS
  y = y + B_load(first + j / push.inner);
#endif
  return y;
}
