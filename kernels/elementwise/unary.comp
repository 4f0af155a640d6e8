// output[i] = op(input[i]). The layout, the constants and the loop are in map.glsl; TUFF_OP selects a row of unary.def.
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
// 1: functions with a short form for results of 16 bits (kernels/elementwise/short/) use it.
#define TUFF_SHORT (TUFF_TYPE != TUFF_F32 && !TUFF_EXACT_ARITHMETIC)
#include "kernels/elementwise/unary.def"
#ifdef TUFF_SHORT_FORM  // has an error above that of a tie
#undef TUFF_ROUNDED
#undef TUFF_PACKED
#define TUFF_ROUNDED(type, value) TUFF_PASTE(TUFF_ROUNDED_NEAR_, type)(value)
#define TUFF_PACKED(type, values) TUFF_PASTE(tuff_pack_near_, type)(values)
#endif

#define TUFF_INPUTS 1
#include "kernels/elementwise/map.glsl"
