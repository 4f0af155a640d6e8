// output[i] = op(input[i]). Layout, constants and the loop: map.glsl; the operations, by TUFF_OP: unary.def.
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/unary.def"

#define TUFF_INPUTS 1
#include "kernels/elementwise/map.glsl"
