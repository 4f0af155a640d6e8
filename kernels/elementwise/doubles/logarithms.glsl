// log, log2, log10, log1p and the inverse hyperbolic functions of f64. x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), and
// log(1 + f) = 2 atanh(s) of s = f / (2 + f), whose series to s^25 is taken so that only small terms are rounded:
// f - (f^2 / 2 - s (f^2 / 2 + R)).

// The series of (2 atanh(s) - 2 s) / s in z = s^2 is z (2/3 + z (2/5 + z (2/7 + ...))): from 2/7 on, and whole.
double tuff_d_log_tail(double z) {
  precise double y = 0.08LF;
  y = y * z + 0.08695652173913043LF;
  y = y * z + 0.09523809523809523LF;
  y = y * z + 0.10526315789473684LF;
  y = y * z + 0.11764705882352941LF;
  y = y * z + 0.13333333333333333LF;
  y = y * z + 0.15384615384615385LF;
  y = y * z + 0.18181818181818182LF;
  y = y * z + 0.2222222222222222LF;
  y = y * z + 0.2857142857142857LF;
  return y;
}
double tuff_d_log_rest(double z) {
  precise double y = tuff_d_log_tail(z);
  y = y * z + 0.4LF;
  y = y * z + 0.6666666666666666LF;
  return y * z;
}
// n ln 2 + log(1 + f) + more
double tuff_d_log_of(int n, double f, double more) {
  precise double s = f / (2.0LF + f), half_square = 0.5LF * f * f, whole = double(n);
  precise double low = s * (half_square + tuff_d_log_rest(s * s)) + (whole * 5.497923018708371e-14LF + more);
  precise double y = whole * 0.6931471805598903LF - ((half_square - low) - f);
  return y;
}
double tuff_d_log_special(double x) {
  if (tuff_d_nan(x)) return x;
  if ((tuff_d_size(x)) == 0u) return -TUFF_D_INFINITY;
  return tuff_d_negative(x) ? TUFF_D_NAN : x;
}
bool tuff_d_log_regular(double x) { return tuff_d_high(x) < 0x7ff00000u && tuff_d_size(x) != 0u; }

double tuff_d_log(double x) {
  if (!tuff_d_log_regular(x)) return tuff_d_log_special(x);
  int n;
  double m = tuff_d_significand(x, n);
  return tuff_d_log_of(n, m - 1.0LF, 0.0LF);
}
double tuff_d_log2(double x) {
  if (!tuff_d_log_regular(x)) return tuff_d_log_special(x);
  int n;
  double m = tuff_d_significand(x, n);
  double y = tuff_d_log_of(0, m - 1.0LF, 0.0LF);
  precise double sum = double(n) + (y * 1.4426950408889634LF + y * 2.0355273740931033e-17LF);
  return sum;
}
double tuff_d_log10(double x) {
  if (!tuff_d_log_regular(x)) return tuff_d_log_special(x);
  int n;
  double m = tuff_d_significand(x, n);
  // n log10(2) in two parts, the first of 42 bits
  double y = tuff_d_log_of(0, m - 1.0LF, 0.0LF);
  precise double low = double(n) * 2.8363394551044964e-14LF + (y * 0.4342944819032518LF + y * 1.098319650216765e-17LF);
  precise double sum = double(n) * 0.30102999566395283LF + low;
  return sum;
}
// of 1 + x, where 1 + x is rounded to u and `lost` makes up for it
double tuff_d_log1p(double x) {
  if (tuff_d_nan(x) || tuff_d_size(x) < 0x3c900000u) return x;
  if (x <= -1.0LF) return x == -1.0LF ? -TUFF_D_INFINITY : TUFF_D_NAN;
  if (tuff_d_size(x) == 0x7ff00000u) return x;
  if (x > -0.29LF && x < 0.41LF) return tuff_d_log_of(0, x, 0.0LF);
  TuffPairOfDoubles u = tuff_d_sum(1.0LF, x);
  int n;
  double m = tuff_d_significand(u.head, n);
  precise double lost = u.tail / u.head;
  return tuff_d_log_of(n, m - 1.0LF, lost);
}

double tuff_d_asinh(double x) {
  double a = tuff_d_magnitude(x);
  if (tuff_d_size(x) >= 0x7ff00000u || a < 3.0e-9LF) return x;
  precise double square = a * a;
  double y;
  if (a > 2.7e8LF) {
    precise double large = tuff_d_log(a) + 0.6931471805599453LF;
    y = large;
  } else if (a > 2.0LF) {
    precise double inside = 2.0LF * a + 1.0LF / (sqrt(square + 1.0LF) + a);
    y = tuff_d_log(inside);
  } else {
    precise double inside = a + square / (1.0LF + sqrt(1.0LF + square));
    y = tuff_d_log1p(inside);
  }
  return tuff_d_signed(y, x);
}
double tuff_d_acosh(double x) {
  if (tuff_d_nan(x)) return x;
  if (x < 1.0LF) return TUFF_D_NAN;
  if (tuff_d_size(x) == 0x7ff00000u) return x;
  if (x > 2.7e8LF) {
    precise double large = tuff_d_log(x) + 0.6931471805599453LF;
    return large;
  }
  if (x > 2.0LF) {
    precise double inside = 2.0LF * x - 1.0LF / (x + sqrt(x * x - 1.0LF));
    return tuff_d_log(inside);
  }
  precise double t = x - 1.0LF, inside = t + sqrt(2.0LF * t + t * t);
  return tuff_d_log1p(inside);
}
double tuff_d_atanh(double x) {
  double a = tuff_d_magnitude(x);
  if (tuff_d_nan(x) || a < 3.0e-9LF) return x;
  if (a >= 1.0LF) return a == 1.0LF ? tuff_d_signed(TUFF_D_INFINITY, x) : TUFF_D_NAN;
  precise double twice = a + a;
  precise double inside = a < 0.5LF ? twice + twice * a / (1.0LF - a) : twice / (1.0LF - a);
  return tuff_d_signed(0.5LF * tuff_d_log1p(inside), x);
}

// ln of a positive finite x, as a pair with about 66 bits: s = f / (2 + f) and the terms to s^5 are pairs.
TuffPairOfDoubles tuff_d_log_pair(double x) {
  int n;
  double m = tuff_d_significand(x, n);
  TuffPairOfDoubles f = TuffPairOfDoubles(m - 1.0LF, 0.0LF), g = tuff_d_sum(m, 1.0LF);
  precise double quotient = f.head / g.head;
  TuffPairOfDoubles back = tuff_d_product(quotient, g.head);
  precise double rest = ((f.head - back.head) - back.tail - quotient * g.tail) / g.head;
  TuffPairOfDoubles s = tuff_d_ordered_sum(quotient, rest);
  TuffPairOfDoubles z = tuff_d_pair_product(s, s);
  // The terms from s^7 on are small enough to be doubles.
  TuffPairOfDoubles sum = tuff_d_sum(0.4LF, tuff_d_log_tail(z.head) * z.head);
  sum = TuffPairOfDoubles(sum.head, sum.tail - 2.220446049250313e-17LF);
  sum = tuff_d_pair_product(sum, z);
  sum = tuff_d_pair_sum(TuffPairOfDoubles(0.6666666666666666LF, 3.700743415417188e-17LF), sum);
  sum = tuff_d_pair_product(tuff_d_pair_product(sum, z), s);
  sum = tuff_d_pair_sum(TuffPairOfDoubles(2.0LF * s.head, 2.0LF * s.tail), sum);
  precise double whole = double(n), high = whole * 0.6931471805598903LF, low = whole * 5.497923018708371e-14LF;
  TuffPairOfDoubles ln2 = tuff_d_ordered_sum(high, low);
  return tuff_d_pair_sum(ln2, sum);
}

TUFF_EACH_DOUBLE(log)
TUFF_EACH_DOUBLE(log2)
TUFF_EACH_DOUBLE(log10)
TUFF_EACH_DOUBLE(log1p)
TUFF_EACH_DOUBLE_IN_TURN(asinh)
TUFF_EACH_DOUBLE_IN_TURN(acosh)
TUFF_EACH_DOUBLE_IN_TURN(atanh)
