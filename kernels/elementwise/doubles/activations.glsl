// Activations and roots of f64. Needs exponentials.glsl and logarithms.glsl.

double tuff_d_relu(double x) { return tuff_d_nan(x) || x > 0.0LF ? x : 0.0LF; }
double tuff_d_square(double x) {
  precise double y = x * x;
  return y;
}
double tuff_d_cube(double x) {
  precise double y = x * x * x;
  return y;
}
double tuff_d_reciprocal(double x) {
  precise double y = 1.0LF / x;
  return y;
}
double tuff_d_rsqrt(double x) {
  precise double y = 1.0LF / sqrt(x);
  return y;
}
// Newton's method for the cube root of the significand in [1, 8), from a parabola with 3 % of error
double tuff_d_cbrt(double x) {
  uint size = tuff_d_size(x);
  if (size >= 0x7ff00000u || size == 0u) return x;
  int n;
  double m = tuff_d_significand(tuff_d_magnitude(x), n);
  int third = (n + 3072) / 3 - 1024;
  precise double v = m * tuff_d_power_of_two(n - 3 * third);
  precise double y = 0.66LF + v * (0.30LF - 0.0172LF * v);
  for (int i = 0; i < 4; ++i) {
    precise double better = y - (y - v / (y * y)) * 0.3333333333333333LF;
    y = better;
  }
  TuffPairOfDoubles square = tuff_d_product(y, y);
  TuffPairOfDoubles whole = tuff_d_product(square.head, y);
  precise double miss = (v - whole.head) - (whole.tail + square.tail * y);
  precise double last = y + miss / (3.0LF * square.head);
  return tuff_d_signed(tuff_d_scaled(last, third), x);
}

// x e / (1 + e) with e = e^(head + tail) at most 1. Where e may be denormal although the result is not, it is taken as a square.
double tuff_d_below_zero(double x, double head, double tail) {
  bool tiny = head < -690.0LF;
  double scale = tiny ? 0.5LF : 1.0LF;
  double e = tuff_d_exp_sum(scale * head, scale * tail);
  precise double y = x * e, square = y * e, other = y / (1.0LF + e);
  return tiny ? square : other;
}

double tuff_d_silu(double x) {
  if (tuff_d_size(x) >= 0x7ff00000u) return tuff_d_nan(x) || !tuff_d_negative(x) ? x : -0.0LF;
  if (tuff_d_negative(x)) return tuff_d_below_zero(x, x, 0.0LF);
  precise double y = x / (1.0LF + tuff_d_exp_sum(-x, 0.0LF));
  return y;
}
double tuff_d_gelu_tanh(double x) {
  if (tuff_d_size(x) >= 0x7ff00000u) return tuff_d_nan(x) || !tuff_d_negative(x) ? x : -0.0LF;
  double bounded = x > 50.0LF ? 50.0LF : x < -50.0LF ? -50.0LF : x;
  // sqrt(8 / pi) (x + 0.044715 x^3) as a pair: e to its power would show the rounding of a double
  TuffPairOfDoubles square = tuff_d_product(bounded, bounded);
  TuffPairOfDoubles factor = tuff_d_pair_product(square, TuffPairOfDoubles(0.07135481627260025LF, -6.175149918155315e-19LF));
  factor = tuff_d_pair_sum(TuffPairOfDoubles(1.5957691216057308LF, -9.96930880911092e-17LF), factor);
  TuffPairOfDoubles t = tuff_d_pair_product(factor, TuffPairOfDoubles(bounded, 0.0LF));
  if (tuff_d_negative(x)) return tuff_d_below_zero(x, t.head, t.tail);
  precise double y = x / (1.0LF + tuff_d_exp_sum(-t.head, -t.tail));
  return y;
}
double tuff_d_softplus(double x) {
  if (tuff_d_nan(x)) return x;
  double e = tuff_d_exp_sum(-tuff_d_magnitude(x), 0.0LF);
  precise double y = (tuff_d_negative(x) ? 0.0LF : x) + tuff_d_log1p(e);
  return y;
}
double tuff_d_log_sigmoid(double x) { return -tuff_d_softplus(-x); }
double tuff_d_selu(double x) {
  precise double line = 1.0507009873554805LF * x, curve = 1.7580993408473768LF * tuff_d_expm1(x);
  return tuff_d_nan(x) || !tuff_d_negative(x) ? line : curve;
}
double tuff_d_softsign(double x) {
  if (tuff_d_size(x) >= 0x7ff00000u) return tuff_d_nan(x) ? x : tuff_d_signed(1.0LF, x);
  precise double y = x / (1.0LF + tuff_d_magnitude(x));
  return y;
}
double tuff_d_hardswish(double x) {
  if (tuff_d_nan(x)) return x;
  precise double y = x * (x + 3.0LF) / 6.0LF;
  return x <= -3.0LF ? 0.0LF : x >= 3.0LF ? x : y;
}
double tuff_d_hardsigmoid(double x) {
  if (tuff_d_nan(x)) return x;
  precise double y = (x + 3.0LF) / 6.0LF;
  return x <= -3.0LF ? 0.0LF : x >= 3.0LF ? 1.0LF : y;
}
// x tanh(log(1 + e^x)) = x u / (u + 2) with u = e^x (e^x + 2), which is a pair: seven roundings would add up to more than 4 ULP.
double tuff_d_mish(double x) {
  if (tuff_d_size(x) >= 0x7ff00000u) return tuff_d_nan(x) || !tuff_d_negative(x) ? x : -0.0LF;
  if (x > 40.0LF) return x;
  if (x < -40.0LF) return tuff_d_below_zero(x, x, 0.0LF);
  int n;
  TuffPairOfDoubles r = tuff_d_reduced(x, 0.0LF, n);
  precise double small = r.head + (r.tail + r.head * r.head * tuff_d_exp_rest(r.head));
  TuffPairOfDoubles e = tuff_d_ordered_sum(1.0LF, small);
  double power = tuff_d_power_of_two(n);
  precise double head = e.head * power, tail = e.tail * power;
  TuffPairOfDoubles u = tuff_d_sum(2.0LF * head, head * head);
  precise double rest = u.tail + 2.0LF * (tail + head * tail), below = u.head + 2.0LF;
  precise double y = x * (u.head / below + 2.0LF * rest / (below * below));
  return y;
}
double tuff_d_leaky_relu(double x, double alpha) {
  precise double scaled = alpha * x;
  return tuff_d_nan(x) || !tuff_d_negative(x) ? x : scaled;
}
double tuff_d_elu(double x, double alpha) {
  precise double curve = alpha * tuff_d_expm1(x);
  return tuff_d_nan(x) || !tuff_d_negative(x) ? x : curve;
}
dvec4 tuff_leaky_relu(dvec4 x, double alpha) {
  return dvec4(tuff_d_leaky_relu(x.x, alpha), tuff_d_leaky_relu(x.y, alpha), tuff_d_leaky_relu(x.z, alpha),
               tuff_d_leaky_relu(x.w, alpha));
}
dvec4 tuff_elu(dvec4 x, double alpha) {
  return dvec4(tuff_d_elu(x.x, alpha), tuff_d_elu(x.y, alpha), tuff_d_elu(x.z, alpha), tuff_d_elu(x.w, alpha));
}

TUFF_EACH_DOUBLE(relu)
TUFF_EACH_DOUBLE(square)
TUFF_EACH_DOUBLE(cube)
TUFF_EACH_DOUBLE(reciprocal)
TUFF_EACH_DOUBLE(rsqrt)
TUFF_EACH_DOUBLE_IN_TURN(cbrt)
TUFF_EACH_DOUBLE(silu)
TUFF_EACH_DOUBLE_IN_TURN(gelu_tanh)
TUFF_EACH_DOUBLE_IN_TURN(softplus)
TUFF_EACH_DOUBLE_IN_TURN(log_sigmoid)
TUFF_EACH_DOUBLE(selu)
TUFF_EACH_DOUBLE(softsign)
TUFF_EACH_DOUBLE(hardswish)
TUFF_EACH_DOUBLE(hardsigmoid)
TUFF_EACH_DOUBLE_IN_TURN(mish)
