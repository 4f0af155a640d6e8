// What a cosine or sine transform does before its Fourier transform: from real numbers, each lane writes a number of that
// transform's input (dct.glsl).
//# TUFF_INPUT : 1..4 : element type of the input, as in tuff.h; what is written is f32 or, for f64, f64
#if TUFF_INPUT == 4
#define TUFF_VALUE_OF 4
#endif
#include "kernels/common/types.glsl"
#include "kernels/fft/dct.glsl"

TUFF_READ(0, X, TUFF_STORED(TUFF_INPUT), TUFF_BYTES(TUFF_INPUT))
#if TUFF_FORM == 1
TUFF_WRITE(1, Y, TUFF_VALUE, TUFF_VALUE_BYTES)
#else
TUFF_WRITE(1, Y, NUMBER, 2 * TUFF_VALUE_BYTES)
#endif

TUFF_VALUE dct_number(uint i) {
#if TUFF_SINE && TUFF_FORM >= 2
  TUFF_VALUE v = TUFF_LOADED(TUFF_INPUT, TUFF_AT(X, OPERAND(push.n - 1 - i)));
#else
  TUFF_VALUE v = TUFF_LOADED(TUFF_INPUT, TUFF_AT(X, OPERAND(i)));
#endif
#if TUFF_ENDS && (TUFF_FORM == 0 && !TUFF_SINE || TUFF_FORM == 2)
  if (i == 0 || TUFF_FORM == 0 && i == push.n - 1) v *= ROOT_OF_2;
#endif
  return v;
}

#if TUFF_FORM == 0
// Number i of a mirrored line.
TUFF_VALUE dct_mirrored(uint i) {
  const uint n = push.n;
#if TUFF_SINE
  // 0, x, 0, -x backwards
  if (i == 0 || i == n + 1) return TUFF_ZERO;
  const TUFF_VALUE v = dct_number((i <= n ? i : push.mirrored - i) - 1);
  return i <= n ? v : -v;
#else
  return dct_number(min(i, push.mirrored - i));
#endif
}
#endif

void dct_lane() {
  const uint p = dct_at, n = push.n;
#if TUFF_FORM == 0
  const NUMBER v = NUMBER(dct_mirrored(2 * p), dct_mirrored(2 * p + 1));
#elif TUFF_FORM == 1
  const uint i = 2 * p < n ? 2 * p : 2 * (n - p) - 1;
  TUFF_VALUE v = dct_number(i);
#if TUFF_SINE
  if ((i & 1u) != 0) v = -v;
#endif
#elif TUFF_FORM == 2
  NUMBER root = dct_root(p);
  root.y = -root.y;
  const NUMBER v = fft_product(NUMBER(dct_number(p), p == 0 ? TUFF_ZERO : -dct_number(n - p)), root);
#elif TUFF_FORM == 3
  const NUMBER v = fft_product(NUMBER(dct_number(2 * p), dct_number(n - 1 - 2 * p)), dct_root(p));
#else
  const NUMBER v = dct_number(p) * dct_root(p);
#endif
  TUFF_AT(Y, DENSE(p)) = v;
}
