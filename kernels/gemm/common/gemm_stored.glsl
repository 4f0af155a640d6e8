// Reads four stored elements of an input of any type as one value, then unpacks them to SUM_TYPE:
//
//   TUFF_READ(0, A4, GEMM_RAW(A_TYPE), GEMM_RAW_BYTES(A_TYPE))
//   … GEMM_UNPACK(A_TYPE, TUFF_AT(A4, i))
#if PAIRS
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "kernels/gemm/common/gemm_pointer.glsl"

#define GEMM_RAW_BYTES(type) (4 * TUFF_BYTES(type))
// By the size of an element.
#define GEMM_RAW(type) TUFF_PASTE(GEMM_RAW_, TUFF_BYTES(type))
#define GEMM_RAW_8 GEMM_FOUR
#define GEMM_RAW_4 GEMM_FOUR
#define GEMM_RAW_1 uint
#if PAIRS
#define GEMM_RAW_2 uint64_t
uvec2 gemm_words(uint64_t raw) { return unpack32(raw); }
#else
#define GEMM_RAW_2 uvec2
uvec2 gemm_words(uvec2 raw) { return raw; }
#endif
#define GEMM_UNPACK(type, raw) TUFF_PASTE(GEMM_UNPACK_, TUFF_BYTES(type))(type, raw)
#define GEMM_UNPACK_8(type, raw) gemm_unpack(raw)
#define GEMM_UNPACK_4(type, raw) gemm_unpack(raw)
#define GEMM_UNPACK_2(type, raw) TUFF_UNPACKED(type, gemm_words(raw))
#define GEMM_UNPACK_1(type, raw) TUFF_UNPACKED(type, raw)
