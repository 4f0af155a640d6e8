// pow and hypot of f64. Needs exponentials.glsl and logarithms.glsl.

// Of a number that is not negative. Not by floor() (expression_functions.glsl).
double tuff_d_floor(double x) {
  if (x >= 4503599627370496.0LF) return x;
  precise double moved = x + 4503599627370496.0LF;
  precise double nearest = moved - 4503599627370496.0LF;
  return nearest > x ? nearest - 1.0LF : nearest;
}

// e^(b ln a). b ln a reaches 745 and its absolute error becomes a relative error of the result, so it is a pair.
double tuff_d_pow(double a, double b) {
  uint size_a = tuff_d_size(a), size_b = tuff_d_size(b);
  if (size_b == 0u || (size_a == 0x3ff00000u && !tuff_d_negative(a))) return 1.0LF;
  if (size_a > 0x7ff00000u || size_b > 0x7ff00000u) return TUFF_D_NAN;
  double x = tuff_d_magnitude(a), power = tuff_d_magnitude(b);
  // Only whole powers of a negative a, of which odd ones are negative. From 2^53 on all are even.
  bool whole = power >= 9007199254740992.0LF || tuff_d_floor(power) == power;
  bool odd = false;
  if (whole && power < 9007199254740992.0LF) {
    precise double half_down = 2.0LF * tuff_d_floor(0.5LF * power);
    odd = half_down != power;
  }
  double sign = tuff_d_negative(a) && odd ? -1.0LF : 1.0LF;
  bool outward = (x > 1.0LF) == !tuff_d_negative(b);
  double end = outward ? TUFF_D_INFINITY : 0.0LF;
  if (size_b == 0x7ff00000u) return x == 1.0LF ? 1.0LF : end;
  if (size_a == 0u || size_a == 0x7ff00000u) return tuff_d_signed(end, sign);
  if (tuff_d_negative(a) && !whole) return TUFF_D_NAN;
  if (power > 1.0e22LF) return x == 1.0LF ? 1.0LF : end;  // |ln a| is at least 2^-53
  TuffPairOfDoubles log_a = tuff_d_log_pair(x);
  // A name for each step: glslang does not end where a precise value depends on a structure that is assigned from it.
  TuffPairOfDoubles product = tuff_d_product(b, log_a.head);
  precise double tail = product.tail + b * log_a.tail;
  TuffPairOfDoubles y = tuff_d_ordered_sum(product.head, tail);
  double magnitude = tuff_d_exp_sum(y.head, y.tail);
  return sign < 0.0LF ? -magnitude : magnitude;
}
double tuff_d_hypot(double a, double b) {
  uint size_a = tuff_d_size(a), size_b = tuff_d_size(b);
  if (size_a == 0x7ff00000u || size_b == 0x7ff00000u) return TUFF_D_INFINITY;
  if (size_a > 0x7ff00000u || size_b > 0x7ff00000u) return TUFF_D_NAN;
  double large = tuff_d_magnitude(a), small = tuff_d_magnitude(b);
  if (small > large) {
    double swapped = large;
    large = small;
    small = swapped;
  }
  if (tuff_d_size(large) == 0u) return 0.0LF;
  int n = max(int(tuff_d_high(large) >> 20), 1) - 1023;
  double x = tuff_d_scaled(large, -n), y = tuff_d_scaled(small, -n);
  precise double root = sqrt(x * x + y * y);
  return tuff_d_scaled(root, n);
}
TUFF_EACH_OF_TWO_DOUBLES(pow)
TUFF_EACH_OF_TWO_DOUBLES(hypot)
