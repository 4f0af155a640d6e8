// The types that a reduction loads, computes in and stores. Shared by reduce_rows.comp and reduce_columns.comp, which
// include it before anything else.
//# TUFF_X_TYPE : types : type of the input, as in tuff.h
//# TUFF_V_TYPE : 1|4|5|6|9|10 : the type that values are computed in and kept as between dispatches: f32, f64, i32, u32, i64, u64
//# TUFF_Y_TYPE : types : type of the output
//# TUFF_PREPARE : 0..5 : what is done with each element x. 0: nothing; 1: 1 if it is not zero, otherwise 0; 2: |x|; 3: x x; 4: x - base, of moments; 5: e^(x - center)
#if TUFF_X_TYPE == 9 || TUFF_X_TYPE == 10
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#define TUFF_VALUE_OF TUFF_V_TYPE
#define TUFF_CENTERED (TUFF_PREPARE == 5 || TUFF_FINISH == 4)
#include "kernels/common/types.glsl"

#if TUFF_PREPARE == 1
// By the bits of floats: a device may flush denormals in comparisons.
uint tuff_nonzero(float x) { return uint((floatBitsToUint(x) & 0x7fffffffu) != 0u); }
uint tuff_nonzero(int x) { return uint(x != 0); }
uint tuff_nonzero(uint x) { return uint(x != 0u); }
uvec4 tuff_nonzero(vec4 x) { return min(floatBitsToUint(x) & 0x7fffffffu, uvec4(1u)); }
uvec4 tuff_nonzero(ivec4 x) { return min(uvec4(x), uvec4(1u)); }
uvec4 tuff_nonzero(uvec4 x) { return min(x, uvec4(1u)); }
#if TUFF_X_TYPE == 9
uint tuff_nonzero(int64_t x) { return uint(x != 0); }
uvec4 tuff_nonzero(i64vec4 x) { return uvec4(notEqual(x, i64vec4(0))); }
#elif TUFF_X_TYPE == 10
uint tuff_nonzero(uint64_t x) { return uint(x != 0); }
uvec4 tuff_nonzero(u64vec4 x) { return uvec4(notEqual(x, u64vec4(0))); }
#elif TUFF_X_TYPE == 4
uint tuff_nonzero(double x) {
  const uvec2 words = unpackDouble2x32(x);
  return uint((words.x | (words.y << 1)) != 0u);
}
uvec4 tuff_nonzero(dvec4 x) {
  return uvec4(tuff_nonzero(x.x), tuff_nonzero(x.y), tuff_nonzero(x.z), tuff_nonzero(x.w));
}
#endif
#define TUFF_CONVERT(x) tuff_nonzero(x)
#define TUFF_CONVERT4(x) tuff_nonzero(x)
#endif
