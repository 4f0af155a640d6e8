// Shared by scan_rows.comp and scan_columns.comp.
//# TUFF_TYPE : types : type of input and output, as in tuff.h
//# TUFF_OP : 1..5 : 1: sums; 2: products; 3: maxima; 4: minima; 5: logarithms of sums of exponentials
//# TUFF_STAGE : 0..2 : 0: whole axes; 1: segment totals; 2: results, from the totals of earlier segments
//# TUFF_EXCLUSIVE : 0|1 : 1: the result at an element excludes the element itself
//# TUFF_REVERSE : 0|1 : 1: scans from the end of the axis to its beginning
//# group form : TUFF_EXACT_ARITHMETIC TUFF_EXCLUSIVE TUFF_OP TUFF_REVERSE TUFF_STAGE TUFF_TYPE : what is computed, and which part of it
//
// What is combined is a TUFF_VALUE. For logarithms it is a pair (m, s) which stands for ln(s e^m): m is the largest element so
// far, and s a sum of exponentials relative to it, so that one of its terms is 1.
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#if TUFF_OP == 5
#include "kernels/elementwise/math.glsl"
#endif
#include "kernels/scan/scan.def"

#if TUFF_OP == 1
#define TUFF_IDENTITY TUFF_ZERO
#define TUFF_COMBINE(a, b) TUFF_ADD(a, b)
#elif TUFF_OP == 2
#define TUFF_IDENTITY TUFF_ONE
#define TUFF_COMBINE(a, b) TUFF_MULTIPLY(a, b)
#else
#include "kernels/common/order.glsl"
#include "kernels/common/bits.glsl"
// The larger or smaller one, or the first NaN.
TUFF_VALUE4 better(TUFF_VALUE4 a, TUFF_VALUE4 b) {
#if TUFF_OP != 4
  const TUFF_VALUE4 best = TUFF_LARGER(a, b);
#else
  const TUFF_VALUE4 best = TUFF_SMALLER(a, b);
#endif
#if TUFF_HAS_NAN
  const TUFF_VALUE4 second = mix(best, b, greaterThan(tuff_magnitude(b), uvec4(TUFF_INFINITE_BITS)));
  return mix(second, a, greaterThan(tuff_magnitude(a), uvec4(TUFF_INFINITE_BITS)));
#else
  return best;
#endif
}
TUFF_VALUE better(TUFF_VALUE a, TUFF_VALUE b) { return better(TUFF_VALUE4(a), TUFF_VALUE4(b)).x; }
// The ends of the type's range, which are results of exclusive scans, and not those of the type that it is computed in.
#if TUFF_TYPE == 7
#define TUFF_LEAST -128
#define TUFF_MOST 127
#elif TUFF_TYPE == 8
#define TUFF_LEAST 0
#define TUFF_MOST 255
#elif TUFF_TYPE == 11
#define TUFF_LEAST -32768
#define TUFF_MOST 32767
#elif TUFF_TYPE == 12
#define TUFF_LEAST 0
#define TUFF_MOST 65535
#else
#define TUFF_LEAST TUFF_LOWEST
#define TUFF_MOST TUFF_HIGHEST
#endif
#if TUFF_OP != 4
#define TUFF_IDENTITY TUFF_LEAST
#else
#define TUFF_IDENTITY TUFF_MOST
#endif
#define TUFF_COMBINE(a, b) better(a, b)
#endif

#if TUFF_OP == 5
#if TUFF_VALUE_TYPE == 4
#include "kernels/elementwise/doubles/exponentials.glsl"
#include "kernels/elementwise/doubles/logarithms.glsl"
#endif
// Replaces the pair (m, s) by the combination of (m, s) and (n, t). The difference of equal maxima is 0 even if they are
// infinite; sums relative to +infinity do not matter.
void combine_pairs(inout TUFF_VALUE4 m, inout TUFF_VALUE4 s, TUFF_VALUE4 n, TUFF_VALUE4 t) {
  const TUFF_VALUE4 most = better(m, n);
  const bvec4 same = equal(m, n), first = equal(m, most);
  const TUFF_VALUE4 least = mix(m, n, first);
  const TUFF_VALUE4 smaller = mix(tuff_exp(least - most), TUFF_VALUE4(TUFF_ONE), same);
  s = mix(s * smaller + t, s + t * smaller, first);
  m = most;
}
// ln(s e^m); NaN is recognised by its bits.
TUFF_VALUE4 pairs_logarithm(TUFF_VALUE4 m, TUFF_VALUE4 s) {
  return mix(m + tuff_log(s), m, greaterThanEqual(tuff_magnitude(m), uvec4(TUFF_INFINITE_BITS)));
}
#endif
