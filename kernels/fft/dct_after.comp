// What a cosine or sine transform does after its Fourier transform: from numbers of that transform's output, each lane writes one
// or two real ones (dct.glsl).
//# TUFF_OUTPUT : 1..4 : element type of the output, as in tuff.h; what is read is f32 or, for f64, f64
#if TUFF_OUTPUT == 4
#define TUFF_VALUE_OF 4
#endif
#include "kernels/common/types.glsl"
#include "kernels/fft/dct.glsl"

#if TUFF_FORM == 2
TUFF_READ(0, X, TUFF_VALUE, TUFF_VALUE_BYTES)
#else
TUFF_READ(0, X, NUMBER, 2 * TUFF_VALUE_BYTES)
#endif
TUFF_WRITE(1, Y, TUFF_STORED(TUFF_OUTPUT), TUFF_BYTES(TUFF_OUTPUT))

// Number i of the DCT.
void dct_store(uint i, TUFF_VALUE v) {
#if TUFF_ENDS && (TUFF_FORM == 0 && !TUFF_SINE || TUFF_FORM == 1)
  if (i == 0 || TUFF_FORM == 0 && i == push.n - 1) v *= ROOT_OF_HALF;
#endif
  v *= SCALE;
#if TUFF_SINE && TUFF_FORM >= 2
  if ((i & 1u) != 0) v = -v;
#endif
#if TUFF_SINE && TUFF_FORM == 1
  i = push.n - 1 - i;
#endif
  TUFF_AT(Y, OPERAND(i)) = TUFF_ROUNDED(TUFF_OUTPUT, v);
}

void dct_lane() {
  const uint k = dct_at, n = push.n;
#if TUFF_FORM == 0
  const uint at = k + TUFF_SINE, half_n = push.mirrored / 2;
  const NUMBER a = TUFF_AT(X, DENSE(at == half_n ? 0 : at)), b = TUFF_AT(X, DENSE(at == 0 ? 0 : half_n - at));
  const NUMBER v = fft_join(a, b, dct_root(at));
#if TUFF_SINE
  dct_store(k, -v.y);
#else
  dct_store(k, v.x);
#endif
#elif TUFF_FORM == 1
  const NUMBER v = TUFF_VALUE(2) * fft_product(TUFF_AT(X, DENSE(k)), dct_root(k));
  dct_store(k, v.x);
  if (k != 0 && 2 * k != n) dct_store(n - k, -v.y);
#elif TUFF_FORM == 2
  dct_store(k, TUFF_AT(X, DENSE((k & 1u) == 0 ? k / 2 : n - 1 - k / 2)));
#else
  const NUMBER v = TUFF_VALUE(2) * fft_product(TUFF_AT(X, DENSE(k)), dct_root(4 * k + 1));
#if TUFF_FORM == 3
  dct_store(2 * k, v.x);
  dct_store(n - 1 - 2 * k, -v.y);
#else
  if (2 * k < n) {
    dct_store(2 * k, v.x);
  } else {
    dct_store(2 * n - 1 - 2 * k, -v.x);
  }
#endif
#endif
}
