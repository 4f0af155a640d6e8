// Shared by the kernels of linear algebra: the arithmetic of the element type.
//# TUFF_TYPE : 1|4 : element type, as in tuff.h
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

// Matrices are processed in blocks of at most BLOCK x BLOCK.
//# constant BLOCK : the largest extent of a triangle that one workgroup keeps in shared memory
const uint BLOCK = 32;
const uint PITCH = BLOCK + 1;  // of a block's rows in shared memory, so that columns are spread over the banks

// NaN is recognised by its bits, because a driver may assume that arithmetic never produces one.
#include "kernels/common/bits.glsl"
#if TUFF_TYPE == 1
#include "kernels/elementwise/math.glsl"
float divide(float a, float b) { return tuff_divide(vec4(a), vec4(b)).x; }
float root(float a) { return tuff_sqrt(vec4(a)).x; }
#else
double divide(double a, double b) { return a / b; }
double root(double a) { return sqrt(a); }
#endif
bool is_nan(TUFF_VALUE a) { return tuff_isnan(a); }
#define NOT_A_NUMBER TUFF_VALUE(TUFF_NAN)

// The upper word of a value has its sign, its exponent and the first FRACTION bits of its fraction.
#if TUFF_TYPE == 1
const uint FRACTION = 23, MOST = 255, BIAS = 126;
uint upper_of(float a) { return floatBitsToUint(a); }
float with_upper(float a, uint upper) { return uintBitsToFloat(upper); }
#else
const uint FRACTION = 20, MOST = 2047, BIAS = 1022;
uint upper_of(double a) { return unpackDouble2x32(a).y; }
double with_upper(double a, uint upper) { return packDouble2x32(uvec2(unpackDouble2x32(a).x, upper)); }
#endif

// 2^e with e within the normal numbers' exponents.
TUFF_VALUE power_of_two(int e) { return with_upper(TUFF_ZERO, uint(e + int(BIAS) + 1) << FRACTION); }

// e such that numbers of up to `largest` times 2^-e are at most 4, and the largest at least 1/2 unless it is a denormal
// number: their squares neither overflow nor underflow. 0 if `largest` is 0, infinite or NaN.
int scale_exponent(TUFF_VALUE largest) {
  const uint biased = upper_of(largest) >> FRACTION & MOST;
  if (biased == MOST || largest == TUFF_ZERO) return 0;
  return clamp(int(biased) - int(BIAS) - 1, -int(BIAS), int(BIAS));
}
bool is_finite(TUFF_VALUE a) { return (upper_of(a) >> FRACTION & MOST) != MOST; }

// The larger one; NaN counts as the largest.
TUFF_VALUE larger(TUFF_VALUE a, TUFF_VALUE b) { return is_nan(a) || (!is_nan(b) && a >= b) ? a : b; }

// For quotients by the same number: its reciprocal, or 0 if that is too near to the limits of its type, or if division
// is exact (kernels/elementwise/math.glsl). With it a quotient takes three operations; the second and third correct it by
// its residual.
TUFF_VALUE reciprocal(TUFF_VALUE divisor) {
#if TUFF_EXACT_ARITHMETIC
  return TUFF_ZERO;
#else
  const uint exponent = upper_of(divisor) >> FRACTION & MOST;
  return exponent > MOST / 4 && exponent < MOST / 4 * 3 ? TUFF_ONE / divisor : TUFF_ZERO;
#endif
}
TUFF_VALUE quotient(TUFF_VALUE a, TUFF_VALUE divisor, TUFF_VALUE inverse) {
  if (inverse == TUFF_ZERO) return divide(a, divisor);
  precise const TUFF_VALUE first = a * inverse;
  precise const TUFF_VALUE residual = fma(-first, divisor, a);
  precise const TUFF_VALUE corrected = fma(residual, inverse, first);
  return is_nan(corrected) ? first : corrected;  // of an infinity
}
