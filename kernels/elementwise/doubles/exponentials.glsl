// exp, exp2, expm1 and what is made of them, of f64. x = n ln 2 + r with |r| <= ln 2 / 2, n ln 2 in two parts of which the first
// has 42 bits, so that its product with n is exact; e^r by its Taylor series to r^13.

// (e^r - 1 - r) / r^2
double tuff_d_exp_rest(double r) {
  precise double y = 1.6059043836821613e-10LF;
  y = y * r + 2.08767569878681e-09LF;
  y = y * r + 2.505210838544172e-08LF;
  y = y * r + 2.755731922398589e-07LF;
  y = y * r + 2.7557319223985893e-06LF;
  y = y * r + 2.48015873015873e-05LF;
  y = y * r + 0.0001984126984126984LF;
  y = y * r + 0.001388888888888889LF;
  y = y * r + 0.008333333333333333LF;
  y = y * r + 0.041666666666666664LF;
  y = y * r + 0.16666666666666666LF;
  y = y * r + 0.5LF;
  return y;
}

// r and n of head + tail, |head| < 1100
TuffPairOfDoubles tuff_d_reduced(double head, double tail, out int n) {
  precise double shifted = head * 1.4426950408889634LF + 6755399441055744.0LF;
  n = int(unpackDouble2x32(shifted).x);
  precise double whole = shifted - 6755399441055744.0LF;
  precise double high = head - whole * 0.6931471805598903LF;
  precise double low = tail - whole * 5.497923018708371e-14LF;
  return tuff_d_sum(high, low);
}

// e^(head + tail); beyond the range of f64 the result is 0 or infinite
double tuff_d_exp_sum(double head, double tail) {
  double bounded = head > 720.0LF ? 720.0LF : head < -760.0LF ? -760.0LF : head;
  int n;
  TuffPairOfDoubles r = tuff_d_reduced(bounded, bounded == head ? tail : 0.0LF, n);
  precise double y = 1.0LF + (r.head + (r.tail + r.head * r.head * tuff_d_exp_rest(r.head)));
  return tuff_d_scaled(y, n);
}
double tuff_d_exp(double x) { return tuff_d_nan(x) ? x : tuff_d_exp_sum(x, 0.0LF); }

double tuff_d_exp2(double x) {
  if (tuff_d_nan(x)) return x;
  double bounded = x > 1030.0LF ? 1030.0LF : x < -1080.0LF ? -1080.0LF : x;
  precise double shifted = bounded + 6755399441055744.0LF;
  int n = int(unpackDouble2x32(shifted).x);
  precise double part = bounded - (shifted - 6755399441055744.0LF);
  TuffPairOfDoubles r = tuff_d_product(part, 0.6931471805599453LF);
  precise double tail = r.tail + part * 2.3190468138462996e-17LF;
  precise double y = 1.0LF + (r.head + (tail + r.head * r.head * tuff_d_exp_rest(r.head)));
  return tuff_d_scaled(y, n);
}

// 2^n (1 + r + r^2 q) - 1: the difference 2^n - 1 first, which is exact where it matters
double tuff_d_expm1(double x) {
  if (tuff_d_nan(x) || tuff_d_size(x) < 0x3c800000u) return x;
  double bounded = x > 720.0LF ? 720.0LF : x < -50.0LF ? -50.0LF : x;
  int n;
  TuffPairOfDoubles r = tuff_d_reduced(bounded, 0.0LF, n);
  precise double small = r.head + (r.tail + r.head * r.head * tuff_d_exp_rest(r.head));
  if (n == 0) return small;
  if (n > 60) {
    precise double large = 1.0LF + small;
    return tuff_d_scaled(large, n);
  }
  double power = tuff_d_power_of_two(n);
  TuffPairOfDoubles whole = tuff_d_sum(power, -1.0LF);
  precise double y = whole.head + (power * small + whole.tail);
  return y;
}

double tuff_d_sigmoid(double x) {
  if (tuff_d_nan(x)) return x;
  double e = tuff_d_exp_sum(-tuff_d_magnitude(x), 0.0LF);
  precise double y = (tuff_d_negative(x) ? e : 1.0LF) / (1.0LF + e);
  return y;
}

double tuff_d_tanh(double x) {
  if (tuff_d_nan(x)) return x;
  double size = tuff_d_magnitude(x);
  if (size > 22.0LF) return tuff_d_signed(1.0LF, x);
  double e = tuff_d_expm1(2.0LF * size);
  precise double y = e / (e + 2.0LF);
  return tuff_d_signed(y, x);
}
// From 22 on e^-x is below half a unit of e^x. e^(x / 2) is squared, since e^x may be infinite where sinh is not.
double tuff_d_half_exp(double size) {
  double root = tuff_d_exp_sum(0.5LF * size, 0.0LF);
  precise double y = 0.5LF * root * root;
  return y;
}
double tuff_d_sinh(double x) {
  if (tuff_d_nan(x)) return x;
  double size = tuff_d_magnitude(x);
  if (size > 22.0LF) return tuff_d_signed(size < 709.0LF ? 0.5LF * tuff_d_exp_sum(size, 0.0LF) : tuff_d_half_exp(size), x);
  double e = tuff_d_expm1(size);
  precise double y = 0.5LF * (e + e / (e + 1.0LF));
  return tuff_d_signed(y, x);
}
double tuff_d_cosh(double x) {
  if (tuff_d_nan(x)) return x;
  double size = tuff_d_magnitude(x);
  if (size > 22.0LF) return size < 709.0LF ? 0.5LF * tuff_d_exp_sum(size, 0.0LF) : tuff_d_half_exp(size);
  double e = tuff_d_exp_sum(size, 0.0LF);
  precise double y = 0.5LF * e + 0.5LF / e;
  return y;
}

TUFF_EACH_DOUBLE(exp)
TUFF_EACH_DOUBLE(exp2)
TUFF_EACH_DOUBLE(expm1)
TUFF_EACH_DOUBLE(sigmoid)
TUFF_EACH_DOUBLE(tanh)
TUFF_EACH_DOUBLE_IN_TURN(sinh)
TUFF_EACH_DOUBLE_IN_TURN(cosh)
