#ifndef TUFF_RANDOM_FORMULAS_GLSL
#define TUFF_RANDOM_FORMULAS_GLSL
// Functions of random words that every device and the host compute to the same bits: they use only additions,
// subtractions and multiplications of f32, which all round alike, and integers. Each value is `precise`.
//
// variates_host.cpp includes this file as C++, so literals have the suffix f, and nothing here is peculiar to GLSL.

// ln(1 + f) + exponent * ln 2 for 1 + f in [sqrt(1/2), sqrt(2)): f - f^2 / 2 + f^3 P(f). P is within 8e-10 of the relative
// error, by a weighted least-squares fit at Chebyshev nodes; ln 2 is split in two, the first of which has 10 bits.
float log_of_parts(float f, float exponent) {
  precise float z = f * f;
  precise float p = 0.06915368f;
  p = p * f + -0.11789808f;
  p = p * f + 0.11872976f;
  p = p * f + -0.12384348f;
  p = p * f + 0.14218658f;
  p = p * f + -0.16669251f;
  p = p * f + 0.20002227f;
  p = p * f + -0.24999987f;
  p = p * f + 0.3333331f;
  precise float y = f * z * p;
  y = y + exponent * -2.12194440e-4f;
  y = y - 0.5f * z;
  precise float result = exponent * 0.693359375f + (f + y);
  return result;
}

// -ln((2 w + 1) / 2^33) from the fraction's first 24 bits, m 2^e with m in [sqrt(1/2), sqrt(2)).
float minus_log(uint w) {
  const int msb = findMSB(w);  // -1 for 0
  const uint m = (msb >= 23 ? w >> (msb - 23) : (2u * w + 1u) << (22 - msb)) & 0x7fffffu;
  const bool upper = m > 0x3504f3u;  // beyond sqrt(2)
  precise float f = uintBitsToFloat(m | (upper ? 0x3f000000u : 0x3f800000u)) - 1.0f;
  return -log_of_parts(f, float(msb - 32 + (upper ? 1 : 0)));
}

// By Newton's method from an estimate by the bits, because devices do not round square roots alike.
float root(float x) {
  precise float y = uintBitsToFloat(0x5f3759dfu - (floatBitsToUint(x) >> 1));
  y = y * (1.5f - 0.5f * x * y * y);
  y = y * (1.5f - 0.5f * x * y * y);
  y = y * (1.5f - 0.5f * x * y * y);
  precise float result = x * y;
  return result;
}

// Cosine and sine of (w + 1/2) / 2^32 turns, in steps of 2^-26: Taylor-like polynomials of the angle's distance from
// the nearest quarter, fitted as above (relative errors below 5e-12 before rounding).
vec2 direction(uint w) {
  const uint quadrant = (w + 0x20000000u) >> 30;
  const int rest = int(w - (quadrant << 30)) >> 6;
  precise float t = float(2 * rest + 1) * 4.68133798e-08f;
  precise float z = t * t;
  precise float s =
      t + t * z *
              (((2.7183077691006474e-06f * z - 0.0001983933470910415f) * z + 0.008333329111337662f) * z -
               0.1666666716337204f);
  precise float c =
      (1.0f - 0.5f * z) +
      z * z *
          (((-2.7210202802052663e-07f * z + 2.4799519451335073e-05f) * z - 0.0013888883404433727f) * z +
           0.0416666679084301f);
  const bool odd = (quadrant & 1u) != 0u;
  const float x = odd ? s : c, y = odd ? c : s;
  return vec2(quadrant == 1u || quadrant == 2u ? -x : x, (quadrant & 2u) != 0u ? -y : y);
}
#endif
