#ifndef TUFF_ORDER_GLSL
#define TUFF_ORDER_GLSL
// Maps floats to integers of the same order, including denormals and signed zeros: a device that flushes denormals in
// comparisons would treat 0 and -1e-45 as equal and return either. The caller handles NaN.
ivec2 tuff_order(vec2 x) {
  ivec2 bits = floatBitsToInt(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
ivec4 tuff_order(vec4 x) {
  ivec4 bits = floatBitsToInt(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
// Integers are ordered already. Devices keep the denormals of f64.
ivec2 tuff_order(ivec2 x) { return x; }
ivec4 tuff_order(ivec4 x) { return x; }
#if TUFF_VALUE_TYPE != 1 && TUFF_VALUE_TYPE != 5
TUFF_VALUE2 tuff_order(TUFF_VALUE2 x) { return x; }
TUFF_VALUE4 tuff_order(TUFF_VALUE4 x) { return x; }
#endif
#endif
