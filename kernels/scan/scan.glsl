// Shared by scan_rows.comp and scan_columns.comp.
//# TUFF_TYPE : types : type of input and output, as in tuff.h
//# TUFF_OP : 1..4 : 1: sums; 2: products; 3: maxima; 4: minima
//# TUFF_STAGE : 0..2 : 0: whole axes; 1: segment totals, as TUFF_VALUE; 2: results, from the totals of earlier segments
//# TUFF_EXCLUSIVE : 0|1 : 1: the result at an element excludes the element itself
//# TUFF_REVERSE : 0|1 : 1: scans from the end of the axis to its beginning
//# group form : TUFF_EXCLUSIVE TUFF_OP TUFF_REVERSE TUFF_STAGE TUFF_TYPE : what is computed, and which part of it
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
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
#if TUFF_OP == 3
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
#if TUFF_OP == 3
#define TUFF_IDENTITY TUFF_LEAST
#else
#define TUFF_IDENTITY TUFF_MOST
#endif
#define TUFF_COMBINE(a, b) better(a, b)
#endif
