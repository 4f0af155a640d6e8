// Functions whose results are numbers of the type, which need not be rounded: for them a form counts as short.
#include "kernels/elementwise/rounding.glsl"

vec4 tuff_short_sign(vec4 x) { return tuff_sign(x); }
vec4 tuff_short_floor(vec4 x) { return tuff_floor(x); }
vec4 tuff_short_ceil(vec4 x) { return tuff_ceil(x); }
vec4 tuff_short_round(vec4 x) { return tuff_round(x); }
vec4 tuff_short_trunc(vec4 x) { return tuff_trunc(x); }
