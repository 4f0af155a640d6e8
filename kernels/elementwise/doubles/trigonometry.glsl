// sin, cos and tan of f64. x = n pi/2 + r with |r| <= pi/4 as a pair. Up to 2^20 n times pi/2 in three parts, of which the first two
// have 33 bits, is subtracted. Beyond, x is multiplied by those bits of 2/pi that decide n modulo 4 and the fraction (Payne and
// Hanek 1983).

// 2/pi, after 64 zeros
const uint TUFF_D_TWO_OVER_PI[40] = uint[](
    0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u,
    0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u, 0xe99c7026u,
    0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu, 0xef2f118bu, 0x5a0a6d1fu,
    0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u,
    0x1f8d5d08u, 0x56033046u, 0xfc7b6babu);

// 32 bits of 2/pi from bit `at` of the table on
uint tuff_d_two_over_pi(int at) {
  int word = at >> 5, part = at & 31;
  uint high = TUFF_D_TWO_OVER_PI[word], low = TUFF_D_TWO_OVER_PI[word + 1];
  return part == 0 ? high : (high << uint(part)) | (low >> uint(32 - part));
}

// r and n of a magnitude from 2^20 on. With x = m 2^e, the bits of 2/pi before the one of weight 2^(1 - e) give multiples of 4 and
// are left out; the product of m and the next 192 bits, modulo 2^192, has n in its first two bits. What follows those 192
// bits changes the fraction by less than 2^-137, and no double is nearer than 2^-62 to a multiple of pi / 2.
TuffPairOfDoubles tuff_d_quarters_of_large(double size, out int n) {
  uvec2 bits = unpackDouble2x32(size);
  int at = int(bits.y >> 20) - 1075 + 62;
  uint high_m = (bits.y & 0x000fffffu) | 0x00100000u, low_m = bits.x;
  uint word[6], product[6];
  [[dont_unroll]] for (int i = 0; i < 6; ++i) word[i] = tuff_d_two_over_pi(at + 32 * i);
  uint high, low, carry, more, rest = 0u;
  [[dont_unroll]] for (int i = 5; i >= 0; --i) {
    umulExtended(word[i], low_m, high, low);
    product[i] = uaddCarry(low, rest, carry);
    rest = high + carry;
  }
  rest = 0u;
  [[dont_unroll]] for (int i = 5; i >= 1; --i) {
    umulExtended(word[i], high_m, high, low);
    low = uaddCarry(low, product[i - 1], carry);
    product[i - 1] = uaddCarry(low, rest, more);
    rest = high + carry + more;
  }
  n = int(product[0] >> 30);
  uint part[4];
  [[dont_unroll]] for (int i = 0; i < 4; ++i) part[i] = (product[i] << 2) | (product[i + 1] >> 30);
  bool above = part[0] >= 0x80000000u;  // a fraction of a half or more counts from the next quarter down
  carry = above ? 1u : 0u;
  [[dont_unroll]] for (int i = 3; i >= 0; --i) part[i] = above ? uaddCarry(~part[i], carry, carry) : part[i];
  n += above ? 1 : 0;
  TuffPairOfDoubles first = tuff_d_sum(double(part[0]) * 2.3283064365386963e-10LF, double(part[1]) * 5.421010862427522e-20LF);
  precise double later = double(part[2]) * 1.262177448353619e-29LF + double(part[3]) * 2.938735877055719e-39LF;
  TuffPairOfDoubles second = tuff_d_sum(first.tail, later);
  TuffPairOfDoubles fraction = tuff_d_ordered_sum(first.head, second.head);
  fraction = TuffPairOfDoubles(fraction.head, fraction.tail + second.tail);
  TuffPairOfDoubles r = tuff_d_pair_product(fraction, TuffPairOfDoubles(1.5707963267948966LF, 6.123233995736766e-17LF));
  return above ? TuffPairOfDoubles(-r.head, -r.tail) : r;
}

// of any finite magnitude
TuffPairOfDoubles tuff_d_quarters(double size, out int n) {
  if (size >= 1048576.0LF) return tuff_d_quarters_of_large(size, n);
  precise double shifted = size * 0.6366197723675814LF + 6755399441055744.0LF;
  n = int(unpackDouble2x32(shifted).x);
  precise double whole = shifted - 6755399441055744.0LF;
  precise double first = size - whole * 1.5707963267341256LF;
  TuffPairOfDoubles r = tuff_d_sum(first, -(whole * 6.077100506303966e-11LF));
  precise double tail = r.tail - whole * 2.0222662487959506e-21LF;
  return tuff_d_ordered_sum(r.head, tail);
}

// Taylor series to r^17 and r^18
double tuff_d_sin_of(TuffPairOfDoubles r) {
  precise double z = r.head * r.head;
  precise double y = 2.8114572543455206e-15LF;
  y = y * z - 7.647163731819816e-13LF;
  y = y * z + 1.6059043836821613e-10LF;
  y = y * z - 2.505210838544172e-08LF;
  y = y * z + 2.7557319223985893e-06LF;
  y = y * z - 0.0001984126984126984LF;
  y = y * z + 0.008333333333333333LF;
  y = y * z - 0.16666666666666666LF;
  precise double sum = r.head + (r.tail * (1.0LF - 0.5LF * z) + r.head * z * y);
  return sum;
}
double tuff_d_cos_of(TuffPairOfDoubles r) {
  precise double z = r.head * r.head;
  precise double y = -1.5619206968586225e-16LF;
  y = y * z + 4.779477332387385e-14LF;
  y = y * z - 1.1470745597729725e-11LF;
  y = y * z + 2.08767569878681e-09LF;
  y = y * z - 2.755731922398589e-07LF;
  y = y * z + 2.48015873015873e-05LF;
  y = y * z - 0.001388888888888889LF;
  y = y * z + 0.041666666666666664LF;
  TuffPairOfDoubles first = tuff_d_ordered_sum(1.0LF, -(0.5LF * z));
  precise double sum = first.head + (first.tail + (z * z * y - r.head * r.tail));
  return sum;
}

double tuff_d_sin(double x) {
  if (tuff_d_size(x) >= 0x7ff00000u) return TUFF_D_NAN;
  if (tuff_d_size(x) < 0x3e400000u) return x;
  int n;
  TuffPairOfDoubles r = tuff_d_quarters(tuff_d_magnitude(x), n);
  double y = (n & 1) == 0 ? tuff_d_sin_of(r) : tuff_d_cos_of(r);
  return ((n & 2) != 0) != tuff_d_negative(x) ? -y : y;
}
double tuff_d_cos(double x) {
  if (tuff_d_size(x) >= 0x7ff00000u) return TUFF_D_NAN;
  int n;
  TuffPairOfDoubles r = tuff_d_quarters(tuff_d_magnitude(x), n);
  double y = (n & 1) == 0 ? tuff_d_cos_of(r) : tuff_d_sin_of(r);
  return ((n + 1) & 2) != 0 ? -y : y;
}
double tuff_d_tan(double x) {
  if (tuff_d_size(x) >= 0x7ff00000u) return TUFF_D_NAN;
  if (tuff_d_size(x) < 0x3e400000u) return x;
  int n;
  TuffPairOfDoubles r = tuff_d_quarters(tuff_d_magnitude(x), n);
  double s = tuff_d_sin_of(r), c = tuff_d_cos_of(r);
  precise double y = (n & 1) == 0 ? s / c : -c / s;
  return tuff_d_negative(x) ? -y : y;
}

TUFF_EACH_DOUBLE_IN_TURN(sin)
TUFF_EACH_DOUBLE_IN_TURN(cos)
TUFF_EACH_DOUBLE_IN_TURN(tan)
