#ifndef TUFF_D_PARTS
#define TUFF_D_PARTS
// What the functions of f64 share: bits, powers of two, and sums of two doubles. A function `double tuff_d_<name>(double)`
// computes one element; TUFF_EACH_DOUBLE makes the function of four that formulas call. Denormals may be flushed, as the device
// does. Comparisons with NaN are avoided, because a driver may assume that there is none.
struct TuffPairOfDoubles {
  double head, tail;  // the value is their sum
};

#define TUFF_EACH_DOUBLE(name) \
  dvec4 tuff_##name(dvec4 x) { return dvec4(tuff_d_##name(x.x), tuff_d_##name(x.y), tuff_d_##name(x.z), tuff_d_##name(x.w)); }
// The same with one copy of a long function, which four copies would take drivers seconds to compile.
#define TUFF_EACH_DOUBLE_IN_TURN(name)                                           \
  dvec4 tuff_##name(dvec4 x) {                                                   \
    dvec4 y;                                                                     \
    [[dont_unroll]] for (int i = 0; i < 4; ++i) y[i] = tuff_d_##name(x[i]);      \
    return y;                                                                    \
  }
#define TUFF_EACH_OF_TWO_DOUBLES(name)                                           \
  dvec4 tuff_##name(dvec4 a, dvec4 b) {                                          \
    dvec4 y;                                                                     \
    [[dont_unroll]] for (int i = 0; i < 4; ++i) y[i] = tuff_d_##name(a[i], b[i]); \
    return y;                                                                    \
  }

#define TUFF_D_INFINITY packDouble2x32(uvec2(0u, 0x7ff00000u))
#define TUFF_D_NAN packDouble2x32(uvec2(0u, 0x7ff80000u))

uint tuff_d_high(double x) { return unpackDouble2x32(x).y; }
// 0x7ff00000 for infinities, more for NaN.
uint tuff_d_size(double x) {
  uvec2 bits = unpackDouble2x32(x);
  return (bits.y & 0x7fffffffu) | (bits.x != 0u ? 1u : 0u);
}
bool tuff_d_nan(double x) { return tuff_d_size(x) > 0x7ff00000u; }
bool tuff_d_negative(double x) { return tuff_d_high(x) >= 0x80000000u; }
double tuff_d_magnitude(double x) {
  uvec2 bits = unpackDouble2x32(x);
  return packDouble2x32(uvec2(bits.x, bits.y & 0x7fffffffu));
}
double tuff_d_signed(double magnitude, double sign) {
  uvec2 bits = unpackDouble2x32(magnitude);
  return packDouble2x32(uvec2(bits.x, (bits.y & 0x7fffffffu) | (tuff_d_high(sign) & 0x80000000u)));
}

// With the names that they have for f32 (kernels/elementwise/math.glsl).
dvec4 tuff_divide(dvec4 a, dvec4 b) {
  precise dvec4 q = a / b;
  return q;
}
dvec4 tuff_sqrt(dvec4 x) { return sqrt(x); }

double tuff_d_power_of_two(int n) { return packDouble2x32(uvec2(0u, uint(n + 1023) << 20)); }  // n from -1022 to 1023
// y 2^n, in two steps, since the power may be outside the range although the result is inside.
double tuff_d_scaled(double y, int n) {
  int half_way = n / 2;
  precise double scaled = y * tuff_d_power_of_two(half_way) * tuff_d_power_of_two(n - half_way);
  return scaled;
}
// x as significand * 2^n, for positive finite x: the significand in [sqrt(1/2), sqrt(2)).
double tuff_d_significand(double x, out int n) {
  bool tiny = tuff_d_high(x) < 0x00100000u;
  precise double normal = tiny ? x * 18014398509481984.0LF : x;
  uvec2 bits = unpackDouble2x32(normal);
  uint shifted = bits.y + (0x3ff00000u - 0x3fe6a09eu);
  n = int(shifted >> 20) - 1023 - (tiny ? 54 : 0);
  return packDouble2x32(uvec2(bits.x, (shifted & 0x000fffffu) + 0x3fe6a09eu));
}

// a + b, exactly; the second one for |a| >= |b| or a = 0.
TuffPairOfDoubles tuff_d_sum(double a, double b) {
  precise double head = a + b, part = head - a;
  precise double tail = (a - (head - part)) + (b - part);
  return TuffPairOfDoubles(head, tail);
}
TuffPairOfDoubles tuff_d_ordered_sum(double a, double b) {
  precise double head = a + b;
  precise double tail = b - (head - a);
  return TuffPairOfDoubles(head, tail);
}
// a b, exactly, by Dekker's halves of 26 bits: a device may not have a fused multiply-add.
TuffPairOfDoubles tuff_d_product(double a, double b) {
  precise double high_a = a * 134217729.0LF, high_b = b * 134217729.0LF;
  high_a = high_a - (high_a - a);
  high_b = high_b - (high_b - b);
  precise double low_a = a - high_a, low_b = b - high_b;
  precise double head = a * b;
  precise double tail = ((high_a * high_b - head) + high_a * low_b + low_a * high_b) + low_a * low_b;
  return TuffPairOfDoubles(head, tail);
}
TuffPairOfDoubles tuff_d_pair_sum(TuffPairOfDoubles a, TuffPairOfDoubles b) {
  TuffPairOfDoubles sum = tuff_d_sum(a.head, b.head);
  precise double tail = sum.tail + (a.tail + b.tail);
  return tuff_d_ordered_sum(sum.head, tail);
}
TuffPairOfDoubles tuff_d_pair_product(TuffPairOfDoubles a, TuffPairOfDoubles b) {
  TuffPairOfDoubles y = tuff_d_product(a.head, b.head);
  precise double tail = y.tail + (a.head * b.tail + a.tail * b.head);
  return tuff_d_ordered_sum(y.head, tail);
}
#endif
