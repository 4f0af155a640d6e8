// Complex numbers and roots of unity of Fourier, cosine and sine transforms. Included behind types.glsl.
#define NUMBER TUFF_VALUE2

// A stride in the kernel's table is two words, low and high.
#if TUFF_WIDE
#define STRIDE(word) (uint64_t(TUFF_AT(Table, word)) | uint64_t(TUFF_AT(Table, (word) + 1)) << 32)
#else
#define STRIDE(word) TUFF_AT(Table, word)
#endif

NUMBER fft_product(NUMBER a, NUMBER b) { return NUMBER(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// exp(-2 pi i m / span) for m < span, of the distance to the nearest quarter turn. The polynomials for f32 are those of
// random.comp; those for f64 are Taylor's.
#if TUFF_VALUE_TYPE == 4
#define ANGLE(words) packDouble2x32(uvec2(words[0], words[1]))
NUMBER fft_root(uint m, uint span, float quarter, double angle) {
  const uint turns = uint(float(m) * quarter + 0.5);
  const double t = double(int(4 * m - turns * span)) * angle, z = t * t;
  double s = 2.8114572543455206e-15lf;
  s = s * z - 7.6471637318198164e-13lf;
  s = s * z + 1.6059043836821613e-10lf;
  s = s * z - 2.5052108385441718e-08lf;
  s = s * z + 2.7557319223985893e-06lf;
  s = s * z - 1.9841269841269841e-04lf;
  s = s * z + 8.3333333333333332e-03lf;
  s = s * z - 1.6666666666666666e-01lf;
  s = t + t * (z * s);
  double c = 4.7794773323873853e-14lf;
  c = c * z - 1.1470745597729725e-11lf;
  c = c * z + 2.0876756987868099e-09lf;
  c = c * z - 2.7557319223985888e-07lf;
  c = c * z + 2.4801587301587302e-05lf;
  c = c * z - 1.3888888888888889e-03lf;
  c = c * z + 4.1666666666666664e-02lf;
  c = (1.0lf - 0.5lf * z) + z * z * c;
#else
#define ANGLE(words) vec2(uintBitsToFloat(words[0]), uintBitsToFloat(words[1]))
NUMBER fft_root(uint m, uint span, float quarter, vec2 angle) {
  const uint turns = uint(float(m) * quarter + 0.5);
  const float rest = float(int(4 * m - turns * span)), t = rest * angle.x + rest * angle.y, z = t * t;
  const float s = t + t * z * (((2.7183077691006474e-06 * z - 0.0001983933470910415) * z + 0.008333329111337662) * z -
                               0.1666666716337204);
  const float c = (1.0 - 0.5 * z) +
                  z * z * (((-2.7210202802052663e-07 * z + 2.4799519451335073e-05) * z - 0.0013888883404433727) * z +
                           0.0416666679084301);
#endif
  const bool odd = (turns & 1u) != 0;
  NUMBER root = odd ? NUMBER(s, -c) : NUMBER(c, -s);
  if (((turns + 1) & 2u) != 0) root.x = -root.x;
  if ((turns & 2u) != 0) root.y = -root.y;
  return root;
}

// X[k] of n real numbers, of which neighbours are the parts of n / 2 complex ones: from these numbers' transform, Z[k] and
// Z[n / 2 - k], and exp(-2 pi i k / n).
NUMBER fft_join(NUMBER a, NUMBER b, NUMBER root) {
  const NUMBER v = fft_product(root, NUMBER(a.x - b.x, a.y + b.y));
  return TUFF_VALUE(0.5) * NUMBER(a.x + b.x + v.y, a.y - b.y - v.x);
}
