// The inverse of the error function on vec4, as a function of w = -ln(1 - x^2) (M. Giles, "Approximating the erfinv
// function", GPU Computing Gems, 2011): x P(w) up to w = 5, from there on Q(sqrt(w)). P and Q are minimax fits, to
// 2^-27 and 2^-28 of the result. 1 - x^2 is evaluated as (1 - |x|) (1 + |x|), whose first factor is exact where it is
// small.
#include "kernels/elementwise/pairs.glsl"

vec4 tuff_erfinv(vec4 x) {
  precise vec4 a = tuff_abs(x);
  precise vec4 product = (1.0 - a) * (1.0 + a);
  vec4 k;
  precise vec4 rest = tuff_log_parts(product, k);
  precise vec4 w = -tuff_log_reduced(rest, k);
  precise vec4 p = TUFF_FMA(vec4(-8.81974493e-09), w, vec4(2.21715908e-07));
  p = TUFF_FMA(p, w, vec4(-1.98335488e-06));
  p = TUFF_FMA(p, w, vec4(4.02122214e-06));
  p = TUFF_FMA(p, w, vec4(4.44405123e-05));
  p = TUFF_FMA(p, w, vec4(-0.00012723323));
  p = TUFF_FMA(p, w, vec4(-0.00233458867));
  p = TUFF_FMA(p, w, vec4(0.0115488423));
  // The first two coefficients, their products and w are sums of two floats.
  p = 1.91330938e-05 + p * w;
  precise vec4 w_head = tuff_head(w);
  precise vec4 w_tail = w - w_head;
  TuffPair change = tuff_pair_product(tuff_pair(vec4(0.23199462890625), p), TuffPair(w_head, w_tail));
  TuffPair sum = tuff_pair(vec4(0.885986328125), change.head);
  precise vec4 small = (change.tail + 0.000240597328) + sum.tail;
  precise vec4 near = tuff_pair_times(TuffPair(sum.head, small), a);
  precise vec4 s = tuff_sqrt(w) - 3.0;
  precise vec4 q = TUFF_FMA(vec4(-1.60547261e-05), s, vec4(5.5858236e-05));
  q = TUFF_FMA(q, s, vec4(-4.27962041e-05));
  q = TUFF_FMA(q, s, vec4(-0.000220240574));
  q = TUFF_FMA(q, s, vec4(0.00114429288));
  q = TUFF_FMA(q, s, vec4(-0.00344538642));
  q = TUFF_FMA(q, s, vec4(0.00684350543));
  q = TUFF_FMA(q, s, vec4(1.00266242));
  precise vec4 far = 2.83203125 + (0.000770739454 + q * s);
  vec4 y = mix(near, far, greaterThan(w, vec4(5.0)));
  precise vec4 tiny = 0.886226925 * a;
  y = mix(y, tiny, lessThan(a, vec4(1e-20)));  // with denormals flushed, digits would be lost
  y = mix(y, vec4(TUFF_INFINITY), equal(a, vec4(1.0)));
  y = mix(y, vec4(TUFF_NAN), greaterThan(a, vec4(1.0)));
  return tuff_with_sign(mix(y, a, tuff_nans(x)), x);
}
