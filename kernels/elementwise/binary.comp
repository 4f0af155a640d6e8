// output[i] = op(a[i], b[i]). Layout, constants and the loop: map.glsl; the operations, by TUFF_OP: binary.def.
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/binary.def"

#define TUFF_INPUTS 2
#include "kernels/elementwise/map.glsl"
