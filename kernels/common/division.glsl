#ifndef TUFF_DIVISION_GLSL
#define TUFF_DIVISION_GLSL
// n / d for n < 2^31, by one multiplication (Granlund and Montgomery 1994, "Division by invariant
// integers using multiplication", figure 4.1): shift = ceil(log2 d), multiplier = 2^32 (2^shift - d) / d + 1.
uint tuff_divide(uint n, uint multiplier, uint shift) {
  uint high, low;
  umulExtended(n, multiplier, high, low);
  return (high + n) >> shift;
}
#endif
