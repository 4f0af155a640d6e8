// Determinants from LU factorisations: the product of U's diagonal, negative if the pivots exchange an odd number of
// rows. A workgroup has one matrix. Products are kept as m * 2^e with 1/2 <= |m| < 1, so that they neither overflow nor
// underflow; each invocation multiplies its elements of the diagonal, a tree multiplies those of all. A factor of 0,
// infinity or NaN stays in m.
//
//# TUFF_DETERMINANT : 0|1 : 1: slot 2 receives the determinants
//# TUFF_SIGN : 0|1 : 1: slot 3 receives their signs
//# TUFF_LOG : 0|1 : 1: slot 4 receives the logarithms of their magnitudes
//# TUFF_THREADS : 1..256 : invocations of a workgroup, a power of two
#include "kernels/linalg/linalg.glsl"

layout(local_size_x = TUFF_THREADS) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(5)
  TUFF_INDEX diagonal_stride, stride, stride_pivots;  // diagonal_stride: from one element of the diagonal to the next
  uint n;
  uint matrices;
} push;

TUFF_READ(0, A, TUFF_VALUE, TUFF_VALUE_BYTES)
TUFF_READ(1, Pivots, int, 4)
#if TUFF_DETERMINANT
TUFF_WRITE(2, Determinant, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
#if TUFF_SIGN
TUFF_WRITE(3, Sign, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif
#if TUFF_LOG
TUFF_WRITE(4, Log, TUFF_VALUE, TUFF_VALUE_BYTES)
#endif

shared TUFF_VALUE factors[TUFF_THREADS];
shared int exponents[TUFF_THREADS];

#if TUFF_TYPE == 1
// A denormal is its bits times 2^-149.
const int DENORMAL = -149;
float of_denormal(float a) {
  const uint bits = floatBitsToUint(a);
  const float size = float(bits & 0x7fffffffu);
  return (bits & 0x80000000u) != 0u ? -size : size;
}
const float LN2 = 0.693147181;
float log_of(float a) { return tuff_log(vec4(a)).x; }
#else
const int DENORMAL = -54;
double of_denormal(double a) { return a * 18014398509481984.0lf; }  // 2^54
const double LN2 = 0.6931471805599453lf;
// ln(m) = 2 artanh(f), f = (m - 1) / (m + 1), for m within sqrt(2) of 1: f^2 is below 0.0295, so that the series' terms
// beyond f^23 are below 2^-60 of the first.
double log_of(double m) {
  const double f = (m - 1.0lf) / (m + 1.0lf), square = f * f;
  double sum = 0.0lf;
  for (int term = 23; term >= 3; term -= 2) sum = (sum + 1.0lf / double(term)) * square;
  return 2.0lf * (f + f * sum);
}
#endif

// Brings m to 1/2 <= |m| < 1 and adds the difference to e. 0, infinity and NaN stay as they are.
void normalise(inout TUFF_VALUE m, inout int e) {
  uint upper = upper_of(m);
  uint biased = upper >> FRACTION & MOST;
  if (biased == 0) {
    m = of_denormal(m);
    e += DENORMAL;
    upper = upper_of(m);
    biased = upper >> FRACTION & MOST;
    if (biased == 0) {
      e = 0;  // a zero
      return;
    }
  }
  if (biased == MOST) return;
  e += int(biased) - int(BIAS);
  m = with_upper(m, (upper & ~(MOST << FRACTION)) | (BIAS << FRACTION));
}

// m * 2^e, in steps within the exponents' range.
TUFF_VALUE scaled(TUFF_VALUE m, int e) {
  const int most = int(BIAS);
  int rest = clamp(e, -4 * most, 4 * most);
  while (rest != 0) {
    const int step = clamp(rest, -most, most);
    m *= power_of_two(step);
    rest -= step;
  }
  return m;
}

void main() {
  const uint matrix = tuff_group(), thread = gl_LocalInvocationID.x;
  if (matrix >= push.matrices) return;
  const TUFF_INDEX base = TUFF_INDEX(matrix) * push.stride, pivots = TUFF_INDEX(matrix) * push.stride_pivots;
  TUFF_VALUE m = TUFF_ONE;
  int e = 0;
  for (uint k = thread; k < push.n; k += TUFF_THREADS) {
    TUFF_VALUE element = TUFF_AT(A, base + TUFF_INDEX(k) * push.diagonal_stride);
    normalise(element, e);
    m *= element;
    normalise(m, e);
    const uint pivot = uint(TUFF_AT(Pivots, pivots + k));
    if (pivot != k && pivot < push.n) m = -m;
  }
  factors[thread] = m;
  exponents[thread] = e;
  barrier();
  for (uint width = TUFF_THREADS / 2; width > 0; width /= 2) {
    if (thread < width) {
      m = factors[thread] * factors[thread + width];
      e = exponents[thread] + exponents[thread + width];
      normalise(m, e);
      factors[thread] = m;
      exponents[thread] = e;
    }
    barrier();
  }
  if (thread != 0) return;
  m = factors[0];
  e = exponents[0];
  const bool nan = is_nan(m);
#if TUFF_DETERMINANT
  TUFF_AT(Determinant, matrix) = scaled(m, e);
#endif
#if TUFF_SIGN
  TUFF_AT(Sign, matrix) = nan ? m : m > TUFF_ZERO ? TUFF_ONE : m < TUFF_ZERO ? -TUFF_ONE : TUFF_ZERO;
#endif
#if TUFF_LOG
  TUFF_VALUE size = abs(m), logarithm = TUFF_LOWEST;
  if (nan || size > TUFF_VALUE(2)) {  // NaN or infinity
    logarithm = size;
  } else if (size != TUFF_ZERO) {
    // Near 1 the logarithm of a determinant near 1 is as accurate as that.
    if (size < TUFF_VALUE(0.70710678)) {
      size += size;
      --e;
    }
    logarithm = TUFF_VALUE(e) * LN2 + log_of(size);
  }
  TUFF_AT(Log, matrix) = logarithm;
#endif
}
