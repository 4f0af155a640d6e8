// asin, acos, atan and atan2 of f64.

// (asin(x) - x) / x of z = x^2 <= 1/4, fitted at Chebyshev's points: error 2^-56
double tuff_d_asin_rest(double z) {
  precise double y = 0.03207412686712179LF;
  y = y * z - 0.029288652492291928LF;
  y = y * z + 0.026492027340877928LF;
  y = y * z - 0.0027168811083041495LF;
  y = y * z + 0.00874110307727393LF;
  y = y * z + 0.006869444870499221LF;
  y = y * z + 0.008452406065746546LF;
  y = y * z + 0.009755275316163535LF;
  y = y * z + 0.011552268573915126LF;
  y = y * z + 0.013964819214172544LF;
  y = y * z + 0.017352765309284954LF;
  y = y * z + 0.022372159069960183LF;
  y = y * z + 0.03038194444474315LF;
  y = y * z + 0.04464285714285491LF;
  y = y * z + 0.07500000000000001LF;
  y = y * z + 0.16666666666666666LF;
  return y * z;
}
// Beyond 1/2, asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)), whose argument is rounded and corrected.
TuffPairOfDoubles tuff_d_asin_from_one(double size) {
  precise double z = 0.5LF * (1.0LF - size), s = sqrt(z);
  TuffPairOfDoubles square = tuff_d_product(s, s);
  precise double lost = s == 0.0LF ? 0.0LF : ((z - square.head) - square.tail) / (s + s);
  precise double tail = lost + s * tuff_d_asin_rest(z);
  return TuffPairOfDoubles(s, tail);
}
double tuff_d_asin(double x) {
  double size = tuff_d_magnitude(x);
  if (tuff_d_nan(x) || size > 1.0LF) return TUFF_D_NAN;
  if (size < 0.5LF) {
    precise double near = x + x * tuff_d_asin_rest(x * x);
    return tuff_d_size(x) < 0x3e400000u ? x : near;
  }
  TuffPairOfDoubles part = tuff_d_asin_from_one(size);
  precise double y = 1.5707963267948966LF - (2.0LF * part.head - (6.123233995736766e-17LF - 2.0LF * part.tail));
  return tuff_d_signed(y, x);
}
double tuff_d_acos(double x) {
  double size = tuff_d_magnitude(x);
  if (tuff_d_nan(x) || size > 1.0LF) return TUFF_D_NAN;
  if (size < 0.5LF) {
    precise double near = 1.5707963267948966LF - (x - (6.123233995736766e-17LF - x * tuff_d_asin_rest(x * x)));
    return near;
  }
  TuffPairOfDoubles part = tuff_d_asin_from_one(size);
  precise double near_one = 2.0LF * (part.head + part.tail);
  precise double from_pi = 3.141592653589793LF - (2.0LF * part.head - (1.2246467991473532e-16LF - 2.0LF * part.tail));
  return tuff_d_negative(x) ? from_pi : near_one;
}

// (atan(x) - x) / x of z = x^2 <= tan(pi / 8)^2, fitted likewise
double tuff_d_atan_rest(double z) {
  precise double y = 0.011959567795512828LF;
  y = y * z - 0.027274818816298896LF;
  y = y * z + 0.03723435136339748LF;
  y = y * z - 0.04294269243984855LF;
  y = y * z + 0.047546214034053104LF;
  y = y * z - 0.05262453984799384LF;
  y = y * z + 0.05882304639385515LF;
  y = y * z - 0.06666664344834274LF;
  y = y * z + 0.07692307616272777LF;
  y = y * z - 0.09090909089291531LF;
  y = y * z + 0.11111111111090453LF;
  y = y * z - 0.1428571428571415LF;
  y = y * z + 0.19999999999999998LF;
  y = y * z - 0.3333333333333333LF;
  return y * z;
}
// atan(low / high) of 0 <= low <= high as a pair. Beyond tan(pi / 8) it is pi/4 + atan((low - high) / (low + high)).
TuffPairOfDoubles tuff_d_atan_ratio(double low, double high) {
  bool turned = low > 0.41421356237309503LF * high;
  TuffPairOfDoubles over = tuff_d_sum(low, turned ? -high : 0.0LF), under = tuff_d_sum(high, turned ? low : 0.0LF);
  precise double t = over.head / under.head;
  TuffPairOfDoubles back = tuff_d_product(t, under.head);
  precise double rest = ((over.head - back.head) - back.tail + over.tail - t * under.tail) / under.head;
  precise double tail = rest + t * tuff_d_atan_rest(t * t);
  TuffPairOfDoubles y = tuff_d_ordered_sum(turned ? 0.7853981633974483LF : 0.0LF, t);
  precise double more = y.tail + tail + (turned ? 3.061616997868383e-17LF : 0.0LF);
  return TuffPairOfDoubles(y.head, more);
}
// the angle of (x, y), both magnitudes, in the first quadrant: 0 to pi/2
TuffPairOfDoubles tuff_d_angle(double y, double x) {
  bool steep = y > x;
  TuffPairOfDoubles part = tuff_d_atan_ratio(steep ? x : y, steep ? y : x);
  if (!steep) return part;
  TuffPairOfDoubles rest = tuff_d_ordered_sum(1.5707963267948966LF, -part.head);
  precise double tail = rest.tail + (6.123233995736766e-17LF - part.tail);
  return TuffPairOfDoubles(rest.head, tail);
}
double tuff_d_atan(double x) {
  if (tuff_d_nan(x) || tuff_d_size(x) < 0x3e400000u) return x;
  double size = tuff_d_magnitude(x);
  if (size > 1.0e300LF) return tuff_d_signed(1.5707963267948966LF, x);
  TuffPairOfDoubles angle = tuff_d_angle(size, 1.0LF);
  precise double y = angle.head + angle.tail;
  return tuff_d_signed(y, x);
}
double tuff_d_atan2(double y, double x) {
  if (tuff_d_nan(x) || tuff_d_nan(y)) return TUFF_D_NAN;
  double across = tuff_d_magnitude(x), up = tuff_d_magnitude(y);
  uint size_x = tuff_d_size(x), size_y = tuff_d_size(y);
  bool left = tuff_d_negative(x);
  if (size_y == 0u) return tuff_d_signed(left ? 3.141592653589793LF : 0.0LF, y);
  if (size_x == 0u) return tuff_d_signed(1.5707963267948966LF, y);
  if (size_x == 0x7ff00000u || size_y == 0x7ff00000u) {
    double corner = size_x != size_y ? (size_y == 0x7ff00000u ? 1.5707963267948966LF : left ? 3.141592653589793LF : 0.0LF)
                                     : left ? 2.356194490192345LF : 0.7853981633974483LF;
    return tuff_d_signed(corner, y);
  }
  // Exponents far apart, where a ratio would leave the range: the angle is that of an axis, or the ratio itself.
  int apart = int(size_y >> 20) - int(size_x >> 20);
  if (apart > 60) return tuff_d_signed(1.5707963267948966LF, y);
  if (apart < -60) {
    precise double ratio = up / across;
    return tuff_d_signed(left ? 3.141592653589793LF : ratio, y);
  }
  // Scaled, so that sums and parts of products stay in the range.
  int middle = int(max(size_x, size_y) >> 20) - 1023;
  up = tuff_d_scaled(up, -middle);
  across = tuff_d_scaled(across, -middle);
  TuffPairOfDoubles angle = tuff_d_angle(up, across);
  precise double near = angle.head + angle.tail;
  precise double far = 3.141592653589793LF - (angle.head - (1.2246467991473532e-16LF - angle.tail));
  return tuff_d_signed(left ? far : near, y);
}

TUFF_EACH_DOUBLE_IN_TURN(asin)
TUFF_EACH_DOUBLE_IN_TURN(acos)
TUFF_EACH_DOUBLE_IN_TURN(atan)
TUFF_EACH_OF_TWO_DOUBLES(atan2)
