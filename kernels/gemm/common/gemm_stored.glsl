// Reads four stored elements of an input of any type as one value, then unpacks them to SUM_TYPE:
//
//   TUFF_READ(0, A4, GEMM_RAW(A_TYPE), GEMM_RAW_BYTES(A_TYPE))
//   … GEMM_UNPACK(A_TYPE, TUFF_AT(A4, i))
#if PAIRS
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "kernels/gemm/common/gemm_pointer.glsl"

#define GEMM_RAW_BYTES(type) TUFF_PASTE(GEMM_RAW_BYTES_, type)
#define GEMM_RAW_BYTES_1 16
#define GEMM_RAW_BYTES_2 8
#define GEMM_RAW_BYTES_3 8
#define GEMM_RAW_BYTES_4 32
#define GEMM_RAW_BYTES_7 4
#define GEMM_RAW(type) TUFF_PASTE(GEMM_RAW_, type)
#define GEMM_RAW_1 GEMM_FOUR
#define GEMM_RAW_4 GEMM_FOUR
#define GEMM_RAW_7 uint
#if PAIRS
#define GEMM_RAW_2 uint64_t
#define GEMM_RAW_3 uint64_t
uvec2 gemm_words(uint64_t raw) { return unpack32(raw); }
#else
#define GEMM_RAW_2 uvec2
#define GEMM_RAW_3 uvec2
uvec2 gemm_words(uvec2 raw) { return raw; }
#endif
#define GEMM_UNPACK(type, raw) TUFF_PASTE(GEMM_UNPACK_, type)(raw)
#define GEMM_UNPACK_1(raw) gemm_unpack(raw)
#define GEMM_UNPACK_4(raw) gemm_unpack(raw)
#define GEMM_UNPACK_2(raw) tuff_unpack_2(gemm_words(raw))
#define GEMM_UNPACK_3(raw) tuff_unpack_3(gemm_words(raw))
#define GEMM_UNPACK_7(raw) gemm_unpack_i8(raw)
ivec4 gemm_unpack_i8(uint word) { return (ivec4(int(word)) << ivec4(24, 16, 8, 0)) >> 24; }
