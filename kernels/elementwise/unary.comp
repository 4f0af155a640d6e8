// output[i] = op(input[i]). The layout, the constants and the loop are in map.glsl; TUFF_OP selects a row of unary.def.
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/unary.def"

#define TUFF_INPUTS 1
#include "kernels/elementwise/map.glsl"
