// What reductions and scans need of f64: bits, and functions on dvec4 with the names that they have for f32
// (kernels/elementwise/math.glsl). Errors: below 2 ULP.
#define TUFF_VALUE_NAN packDouble2x32(uvec2(0u, 0x7ff80000u))
#define TUFF_INFINITE_BITS 0x7ff00000u

// The upper word without the sign, and beyond that of infinity for every NaN.
uint tuff_magnitude(double x) {
  const uvec2 words = unpackDouble2x32(x);
  return (words.y & 0x7fffffffu) | uint(words.x != 0u);
}
uvec4 tuff_magnitude(dvec4 x) {
  return uvec4(tuff_magnitude(x.x), tuff_magnitude(x.y), tuff_magnitude(x.z), tuff_magnitude(x.w));
}
bool tuff_isnan(double x) { return tuff_magnitude(x) > 0x7ff00000u; }

dvec4 tuff_divide(dvec4 a, dvec4 b) {
  precise dvec4 q = a / b;
  return q;
}
dvec4 tuff_sqrt(dvec4 x) { return sqrt(x); }

double tuff_power_of_2(int n) { return packDouble2x32(uvec2(0u, uint(n + 1023) << 20)); }

// e^x: x = n ln 2 + r with |r| <= ln(2)/2, then Taylor's polynomial of degree 13, whose rest is below 2^-57, times 2^n in
// two steps, neither of which overflows. ln 2 is split into two parts, the first of which times n is exact.
double tuff_exp(double x) {
  const double c = min(max(x, -746.0LF), 710.0LF);  // rounds to 0 and overflows
  const int n = int(roundEven(c * 1.4426950408889634074LF));
  precise double r = (c - double(n) * 6.93147180369123816490e-01LF) - double(n) * 1.90821492927058770002e-10LF;
  precise double p = 1.6059043836821613e-10LF;
  p = p * r + 2.08767569878681e-09LF;
  p = p * r + 2.505210838544172e-08LF;
  p = p * r + 2.755731922398589e-07LF;
  p = p * r + 2.7557319223985893e-06LF;
  p = p * r + 2.48015873015873e-05LF;
  p = p * r + 1.984126984126984e-04LF;
  p = p * r + 1.3888888888888889e-03LF;
  p = p * r + 8.333333333333333e-03LF;
  p = p * r + 4.1666666666666664e-02LF;
  p = p * r + 1.6666666666666666e-01LF;
  p = p * r + 0.5LF;
  precise double y = r * r * p + r + 1.0LF;
  const int half_n = n >> 1;
  y = y * tuff_power_of_2(half_n) * tuff_power_of_2(n - half_n);
  return tuff_isnan(x) ? x : y;
}

// ln x: x = 2^k m with m in [sqrt(1/2), sqrt(2)), ln x = k ln 2 + ln m, and ln m = 2 artanh(s) with s = (m - 1) / (m + 1),
// by its series up to s^21, whose rest is below 2^-60. x is a sum of exponentials: 0, or no denormal number.
double tuff_log(double x) {
  uvec2 words = unpackDouble2x32(x);
  if (tuff_isnan(x) || words.y == 0x7ff00000u) return x;
  if ((words.x | words.y) == 0u) return -double(TUFF_INFINITY);
  const uint above = words.y - 0x3fe6a09eu;  // relative to the upper word of sqrt(1/2)
  const double k = double(int(above) >> 20);
  words.y -= above & 0xfff00000u;
  const double m = packDouble2x32(words);
  precise double s = (m - 1.0LF) / (m + 1.0LF);
  precise double z = s * s;
  precise double p = 2.0LF / 21.0LF;
  p = p * z + 2.0LF / 19.0LF;
  p = p * z + 2.0LF / 17.0LF;
  p = p * z + 2.0LF / 15.0LF;
  p = p * z + 2.0LF / 13.0LF;
  p = p * z + 2.0LF / 11.0LF;
  p = p * z + 2.0LF / 9.0LF;
  p = p * z + 2.0LF / 7.0LF;
  p = p * z + 2.0LF / 5.0LF;
  p = p * z + 2.0LF / 3.0LF;
  precise double y = p * z * s + k * 1.90821492927058770002e-10LF;
  y = y + 2.0LF * s;
  y = y + k * 6.93147180369123816490e-01LF;
  return y;
}

dvec4 tuff_exp(dvec4 x) { return dvec4(tuff_exp(x.x), tuff_exp(x.y), tuff_exp(x.z), tuff_exp(x.w)); }
dvec4 tuff_log(dvec4 x) { return dvec4(tuff_log(x.x), tuff_log(x.y), tuff_log(x.z), tuff_log(x.w)); }
