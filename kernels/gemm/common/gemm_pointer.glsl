#include "kernels/common/pointer.glsl"
#include "kernels/gemm/common/gemm_types.glsl"

// Loads and stores of two and four elements at once. On CPU drivers each lane's load is a separate instruction, and two
// elements read as one 64-bit number cost no more than one element.
//# PAIRS : 0|1 : 1: two 32-bit or four 16-bit elements are loaded and stored as one 64-bit number
#if PAIRS && SUM_TYPE != TUFF_F64
#define GEMM_TWO uint64_t
#define GEMM_FOUR u64vec2
#if SUM_TYPE == TUFF_I32
PAIR gemm_unpack(uint64_t pair) { return ivec2(unpack32(pair)); }
#else
PAIR gemm_unpack(uint64_t pair) { return uintBitsToFloat(unpack32(pair)); }
#endif
VECTOR gemm_unpack(u64vec2 pairs) { return VECTOR(gemm_unpack(pairs.x), gemm_unpack(pairs.y)); }
#if SUM_TYPE == TUFF_I32
uint64_t gemm_pack(PAIR pair) { return pack64(uvec2(pair)); }
#else
uint64_t gemm_pack(PAIR pair) { return pack64(floatBitsToUint(pair)); }
#endif
u64vec2 gemm_pack(VECTOR vector) { return u64vec2(gemm_pack(vector.xy), gemm_pack(vector.zw)); }
#else
#define GEMM_TWO PAIR
#define GEMM_FOUR VECTOR
PAIR gemm_unpack(PAIR pair) { return pair; }
VECTOR gemm_unpack(VECTOR vector) { return vector; }
PAIR gemm_pack(PAIR pair) { return pair; }
VECTOR gemm_pack(VECTOR vector) { return vector; }
#endif
