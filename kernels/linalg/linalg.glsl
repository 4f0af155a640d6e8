// Shared by the kernels of linear algebra: the arithmetic of the element type.
//# TUFF_TYPE : 1|4 : element type, as in tuff.h
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/common/types.glsl"

// Matrices are processed in blocks of at most BLOCK x BLOCK.
//# constant BLOCK : the largest extent of a triangle that one workgroup keeps in shared memory
const uint BLOCK = 32;
const uint PITCH = BLOCK + 1;  // of a block's rows in shared memory, so that columns are spread over the banks

// NaN is recognised by its bits, because a driver may assume that arithmetic never produces one.
#if TUFF_TYPE == 1
#include "kernels/elementwise/math.glsl"
float divide(float a, float b) { return tuff_divide(vec4(a), vec4(b)).x; }
float root(float a) { return tuff_sqrt(vec4(a)).x; }
bool is_nan(float a) { return tuff_isnan(a); }
#else
double divide(double a, double b) { return a / b; }
double root(double a) { return sqrt(a); }
bool is_nan(double a) {
  const uvec2 words = unpackDouble2x32(a);
  const uint high = words.y & 0x7fffffffu;
  return high > 0x7ff00000u || (high == 0x7ff00000u && words.x != 0u);
}
#endif
#define NOT_A_NUMBER TUFF_VALUE(TUFF_NAN)
