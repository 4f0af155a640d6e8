// The bits of the floats that a kernel computes in, f32 or f64: for NaN and infinity, which arithmetic may lose.
#if TUFF_VALUE_TYPE == 4
#include "kernels/elementwise/doubles/parts.glsl"
#define TUFF_VALUE_NAN TUFF_D_NAN
#define TUFF_INFINITE_BITS 0x7ff00000u
uvec4 tuff_magnitude(dvec4 x) {
  return uvec4(tuff_d_size(x.x), tuff_d_size(x.y), tuff_d_size(x.z), tuff_d_size(x.w));
}
bool tuff_isnan(double x) { return tuff_d_nan(x); }
#else
#define TUFF_VALUE_NAN TUFF_NAN
#define TUFF_INFINITE_BITS 0x7f800000u
uvec4 tuff_magnitude(vec4 x) { return floatBitsToUint(x) & 0x7fffffffu; }
#endif
