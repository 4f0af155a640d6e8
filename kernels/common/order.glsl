#ifndef TUFF_ORDER_GLSL
#define TUFF_ORDER_GLSL
// Numbers that order as the floats do, denormals and the signs of zero included: a device that flushes
// denormals in comparisons would take 0 and -1e-45 for equal and return either. NaN is left to the caller.
ivec2 tuff_order(vec2 x) {
  ivec2 bits = floatBitsToInt(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
ivec4 tuff_order(vec4 x) {
  ivec4 bits = floatBitsToInt(x);
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
// Integers do by themselves.
ivec2 tuff_order(ivec2 x) { return x; }
ivec4 tuff_order(ivec4 x) { return x; }
#endif
