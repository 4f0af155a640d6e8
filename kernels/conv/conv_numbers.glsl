uint low(uint packed) { return packed & 0xffffu; }
uint high(uint packed) { return packed >> 16; }

// n / d for n < 2^31: multiplies by the reciprocal, does the same with the remainder, then corrects by one. CPUs have
// no vector instruction for integer division.
uint quotient(uint n, uint d) {
  const float reciprocal = 1.0 / float(d);
  const uint first = uint(float(n) * reciprocal);
  int left = int(n - first * d);
  const int second = int(floor(float(left) * reciprocal));
  left -= second * int(d);
  return first + uint(second) + (left < 0 ? 0xffffffffu : left >= int(d) ? 1u : 0u);
}
