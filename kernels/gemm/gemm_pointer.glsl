#include "kernels/common/pointer.glsl"

// Four elements at once. PAIRS 1 loads two as one 64-bit number: where a load is a gather (CPU drivers), that
// costs no more than one element.
#if PAIRS
#define GEMM_FOUR u64vec2
vec2 gemm_unpack(uint64_t pair) { return uintBitsToFloat(unpack32(pair)); }
vec4 gemm_unpack(u64vec2 pairs) { return vec4(gemm_unpack(pairs.x), gemm_unpack(pairs.y)); }
#else
#define GEMM_FOUR vec4
vec2 gemm_unpack(vec2 pair) { return pair; }
vec4 gemm_unpack(vec4 vector) { return vector; }
#endif
