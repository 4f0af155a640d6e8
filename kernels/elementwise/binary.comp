// output[i] = op(a[i], b[i]). The layout, the constants and the loop are in map.glsl; TUFF_OP selects a row of
// binary.def.
#define TUFF_VALUE_OF TUFF_TYPE
#include "kernels/elementwise/blocks.glsl"
#include "kernels/elementwise/binary.def"

#define TUFF_INPUTS 2
#include "kernels/elementwise/map.glsl"
