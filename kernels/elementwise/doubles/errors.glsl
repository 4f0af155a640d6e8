// erf, erfc, erfinv and gelu of f64. Needs exponentials.glsl and logarithms.glsl.

// erf(x) / x of z = x^2 <= 1, fitted at Chebyshev's points: error 2^-55
double tuff_d_erf_ratio(double z) {
  precise double y = -4.230945824295338e-12LF;
  y = y * z + 8.709045129053106e-11LF;
  y = y * z - 1.216456005728345e-09LF;
  y = y * z + 1.4792401209404813e-08LF;
  y = y * z - 1.6364642158167616e-07LF;
  y = y * z + 1.6462045441468418e-06LF;
  y = y * z - 1.4925647567519332e-05LF;
  y = y * z + 0.00012055332902888736LF;
  y = y * z - 0.000854832702193483LF;
  y = y * z + 0.0052239776254232985LF;
  y = y * z - 0.02686617064512984LF;
  y = y * z + 0.1128379167095512LF;
  y = y * z - 0.37612638903183754LF;
  // The first coefficient is 2 / sqrt(pi), whose digits beyond a double count here.
  precise double sum = 1.1283791670955126LF + (y * z + 1.533545961316588e-17LF);
  return sum;
}
// e^(x^2) erfc(x) for x >= 0.47: divided by (1 + 2 x) it is a polynomial of w = (x - 4) / (x + 4), fitted for x up to 28
double tuff_d_scaled_erfc(double x) {
  precise double w = (x - 4.0LF) / (x + 4.0LF);
  precise double y = 4.9663765777882246e-11LF;
  y = y * w - 2.1987097752103605e-10LF;
  y = y * w - 5.92821954734322e-10LF;
  y = y * w + 2.1699590779394764e-09LF;
  y = y * w + 4.101588018232909e-09LF;
  y = y * w - 1.5497246173868043e-08LF;
  y = y * w - 2.2095135312864963e-08LF;
  y = y * w + 1.110639593898605e-07LF;
  y = y * w + 7.90955091330684e-08LF;
  y = y * w - 8.256941492833015e-07LF;
  y = y * w + 2.908105732721223e-07LF;
  y = y * w + 5.709627922644893e-06LF;
  y = y * w - 1.1220715279323804e-05LF;
  y = y * w - 2.4399102635589326e-05LF;
  y = y * w + 0.00015062129727491847LF;
  y = y * w - 0.0001992567354246133LF;
  y = y * w - 0.0007577732177613991LF;
  y = y * w + 0.005031969985873844LF;
  y = y * w - 0.01619773406614335LF;
  y = y * w + 0.03716751553664289LF;
  y = y * w - 0.06633036581163701LF;
  y = y * w + 0.09373283499839602LF;
  y = y * w - 0.10103906603632536LF;
  y = y * w + 0.06809705425469155LF;
  y = y * w + 0.015379652102620043LF;
  y = y * w - 0.1396211168405625LF;
  y = y * w + 1.2329951186255526LF;
  precise double quotient = y / (1.0LF + 2.0LF * x);
  return quotient;
}
double tuff_d_erfc_of_magnitude(double x) {  // 0.5 to 28
  TuffPairOfDoubles square = tuff_d_product(x, x);
  precise double y = tuff_d_exp_sum(-square.head, -square.tail) * tuff_d_scaled_erfc(x);
  return y;
}
double tuff_d_erf(double x) {
  if (tuff_d_nan(x)) return x;
  double size = tuff_d_magnitude(x);
  if (size > 6.0LF) return tuff_d_signed(1.0LF, x);
  if (size < 1.0LF) {
    precise double near = x * tuff_d_erf_ratio(x * x);
    return near;
  }
  precise double y = 1.0LF - tuff_d_erfc_of_magnitude(size);
  return tuff_d_signed(y, x);
}
double tuff_d_erfc(double x) {
  if (tuff_d_nan(x)) return x;
  double size = tuff_d_magnitude(x);
  bool negative = tuff_d_negative(x);
  if (size < 0.5LF) {
    precise double near = 1.0LF - x * tuff_d_erf_ratio(x * x);
    return near;
  }
  if (size > 28.0LF) return negative ? 2.0LF : 0.0LF;
  precise double y = tuff_d_erfc_of_magnitude(size), other = 2.0LF - y;
  return negative ? other : y;
}

// Three steps of Halley's method for erf(y) = x, from an estimate with four digits (Giles 2010), or two near 1 (the first term
// of erfc's asymptotic series). Near 1, where 1 - x is exact, the steps are for erfc(y) = 1 - x.
double tuff_d_erfinv(double x) {
  double size = tuff_d_magnitude(x);
  if (tuff_d_nan(x) || size > 1.0LF) return TUFF_D_NAN;
  if (size == 1.0LF) return tuff_d_signed(TUFF_D_INFINITY, x);
  precise double left = 1.0LF - size;
  double y;
  if (size < 1.0e-8LF) {
    precise double small = x * 0.886226925452758LF;
    return small;
  }
  precise double minus_log = -tuff_d_log(left * (1.0LF + size));
  if (minus_log < 5.0LF) {
    precise double w = minus_log - 2.5LF;
    precise double p = 2.81022636e-08LF;
    p = p * w + 3.43273939e-07LF;
    p = p * w - 3.5233877e-06LF;
    p = p * w - 4.39150654e-06LF;
    p = p * w + 0.00021858087LF;
    p = p * w - 0.00125372503LF;
    p = p * w - 0.00417768164LF;
    p = p * w + 0.246640727LF;
    p = p * w + 1.50140941LF;
    y = p * size;
  } else if (minus_log > 16.0LF) {
    double t = -tuff_d_log(left);
    precise double first = sqrt(t), second = sqrt(t - tuff_d_log(first * 1.772453850905516LF));
    y = second;
  } else {
    precise double w = sqrt(minus_log) - 3.0LF;
    precise double p = -0.000200214257LF;
    p = p * w + 0.000100950558LF;
    p = p * w + 0.00134934322LF;
    p = p * w - 0.00367342844LF;
    p = p * w + 0.00573950773LF;
    p = p * w - 0.0076224613LF;
    p = p * w + 0.00943887047LF;
    p = p * w + 1.00167406LF;
    p = p * w + 2.83297682LF;
    y = p * size;
  }
  for (int i = 0; i < 3; ++i) {
    precise double miss = size < 0.5LF ? tuff_d_erf(y) - size : left - tuff_d_erfc(y);
    precise double step = miss * 0.886226925452758LF * tuff_d_exp_sum(y * y, 0.0LF);
    precise double better = y - step / (1.0LF + y * step);
    y = better;
  }
  return tuff_d_signed(y, x);
}

// x erfc(-x / sqrt 2) / 2. Below 0 as x e^(-x^2 / 2) times the scaled erfc, so that a rounded x / sqrt 2 is not squared.
double tuff_d_gelu(double x) {
  if (tuff_d_nan(x)) return x;
  if (tuff_d_size(x) == 0x7ff00000u) return tuff_d_negative(x) ? -0.0LF : x;
  double size = tuff_d_magnitude(x);
  precise double t = size * 0.7071067811865476LF;
  double tail;  // erfc(|x| / sqrt 2) / 2
  if (t < 0.5LF) {
    precise double inner = 0.5LF - 0.5LF * (t * tuff_d_erf_ratio(t * t));
    tail = inner;
  } else if (t > 28.0LF) {
    tail = 0.0LF;
  } else {
    TuffPairOfDoubles square = tuff_d_product(size, size);
    double e = tuff_d_exp_sum(-0.5LF * square.head, -0.5LF * square.tail);
    precise double outer = 0.5LF * tuff_d_scaled_erfc(t);
    if (tuff_d_negative(x)) {  // e last: it may be denormal where the result is not
      precise double small = x * outer * e;
      return small;
    }
    precise double product = outer * e;
    tail = product;
  }
  precise double y = x * (tuff_d_negative(x) ? tail : 1.0LF - tail);
  return y;
}

TUFF_EACH_DOUBLE_IN_TURN(erf)
TUFF_EACH_DOUBLE_IN_TURN(erfc)
TUFF_EACH_DOUBLE_IN_TURN(erfinv)
TUFF_EACH_DOUBLE_IN_TURN(gelu)
