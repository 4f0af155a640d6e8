// Block access to operands. A block is TUFF_PARTS vec4s of elements, sized so that a block of the kernel's smallest
// type is 16 bytes, or 8 for elements of one byte. Values are f32 whatever the stored type, unless the kernel chose another type (TUFF_VALUE of
// kernels/common/types.glsl).
//
//# TUFF_PARTS : 1|2 : vec4s in a block; 1: f32, or 16-bit elements in vec4s; 2: 8- and 16-bit elements, and others with them
//# TUFF_VECTOR : 0..2 : how a block is read: 0 element by element, 1 as 16 bytes, 2 as two 64-bit integers
// With TUFF_VECTOR 0 an operand may start at any multiple of the element's size, otherwise at a multiple of 16 bytes.
// 64-bit integers suit drivers that execute the lanes of a CPU vector one after another for each component (Mesa's
// lavapipe): they need half as many steps, and 13 to 26 GB/s were measured instead of 7 to 10.
//
// TUFF_BLOCKS_READ(slot, X, type) defines X_load(i), which loads element i, and X_load_block(i), which loads elements
// W i … W i + W - 1 with W = TUFF_ELEMENTS. TUFF_BLOCKS_READ_BACK is the same for an operand that is also written,
// under another name. TUFF_BLOCKS_WRITE(slot, Y, type) defines Y_store(i, value) and Y_store_block(i, block).
#include "kernels/common/types.glsl"

#define TUFF_ELEMENTS (4 * TUFF_PARTS)

// From what is loaded to TUFF_VALUE, for one and for four elements. A kernel may define its own.
#ifndef TUFF_CONVERT
#define TUFF_CONVERT(x) TUFF_VALUE(x)
#define TUFF_CONVERT4(x) TUFF_VALUE4(x)
#endif
#define TUFF_AS_VALUE(type, stored) TUFF_CONVERT(TUFF_NUMBER(type, TUFF_LOADED(type, stored)))
#define TUFF_OF_VALUE_ROUNDED(type, value) TUFF_ROUNDED(type, TUFF_OF_VALUE(type, value))

struct TuffBlock {
  TUFF_VALUE4 part[TUFF_PARTS];
};

TuffBlock tuff_block(TUFF_VALUE x) {
  TuffBlock block;
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) block.part[p] = TUFF_VALUE4(x);
  return block;
}

// Types for 16 and 8 bytes of memory, and their conversion to and from 32-bit words.
#if TUFF_VECTOR == 2
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define TUFF_MEMORY16 u64vec2
#define TUFF_MEMORY8 uint64_t
uvec2 tuff_words(uint64_t m) { return unpackUint2x32(m); }
uvec4 tuff_words(u64vec2 m) { return uvec4(unpackUint2x32(m.x), unpackUint2x32(m.y)); }
uint64_t tuff_memory(uvec2 w) { return packUint2x32(w); }
u64vec2 tuff_memory(uvec4 w) { return u64vec2(packUint2x32(w.xy), packUint2x32(w.zw)); }
#else
#define TUFF_MEMORY16 uvec4
#define TUFF_MEMORY8 uvec2
uvec2 tuff_words(uvec2 m) { return m; }
uvec4 tuff_words(uvec4 m) { return m; }
uvec2 tuff_memory(uvec2 w) { return w; }
uvec4 tuff_memory(uvec4 w) { return w; }
#endif

#define TUFF_STORE_SINGLY(name, type)                                                                          \
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {                                                           \
    [[unroll]] for (uint c = 0; c < 4; ++c) {                                                                  \
      TUFF_AT(name##_scalar, TUFF_ELEMENTS * i + (4 * p + c)) = TUFF_OF_VALUE_ROUNDED(type, block.part[p][c]); \
    }                                                                                                          \
  }

#if TUFF_VECTOR == 0
#define TUFF_BLOCKS_DECLARE(qualifier, slot, name, type) \
  TUFF_DECLARE(qualifier, slot, name##_scalar, TUFF_STORED(type), TUFF_BYTES(type))
#define TUFF_BLOCK_LOAD(name, type)                                                                       \
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {                                                      \
    [[unroll]] for (uint c = 0; c < 4; ++c) {                                                             \
      block.part[p][c] = TUFF_AS_VALUE(type, TUFF_AT(name##_scalar, TUFF_ELEMENTS * i + (4 * p + c)));    \
    }                                                                                                     \
  }
#define TUFF_BLOCK_STORE(name, type) TUFF_STORE_SINGLY(name, type)
#else
// By the size of an element.
#define TUFF_BLOCKS_DECLARE(qualifier, slot, name, type)                                   \
  TUFF_DECLARE(qualifier, slot, name##_scalar, TUFF_STORED(type), TUFF_BYTES(type))        \
  TUFF_DECLARE(qualifier, slot, name##_memory, TUFF_PASTE(TUFF_MEMORY_, TUFF_BYTES(type)), \
               TUFF_PASTE(TUFF_MEMORY_BYTES_, TUFF_BYTES(type)))
#define TUFF_BLOCK_LOAD(name, type) TUFF_PASTE(TUFF_BLOCK_LOAD_, TUFF_BYTES(type))(name, type)
#define TUFF_BLOCK_STORE(name, type) TUFF_PASTE(TUFF_BLOCK_STORE_, TUFF_BYTES(type))(name, type)

#define TUFF_MEMORY_4 TUFF_MEMORY16
#define TUFF_MEMORY_BYTES_4 16
#define TUFF_BLOCK_LOAD_4(name, type)                                                                           \
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {                                                            \
    block.part[p] = TUFF_CONVERT4(TUFF_UNPACKED(type, tuff_words(TUFF_AT(name##_memory, TUFF_PARTS * i + p)))); \
  }
#define TUFF_BLOCK_STORE_4(name, type)                                                              \
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {                                                \
    TUFF_AT(name##_memory, TUFF_PARTS * i + p) = tuff_memory(TUFF_PACKED(type, block.part[p]));     \
  }

#if TUFF_PARTS == 2
#define TUFF_MEMORY_2 TUFF_MEMORY16
#define TUFF_MEMORY_BYTES_2 16
#define TUFF_BLOCK_LOAD_2(name, type)                           \
  uvec4 words = tuff_words(TUFF_AT(name##_memory, i));          \
  block.part[0] = TUFF_CONVERT4(TUFF_UNPACKED(type, words.xy)); \
  block.part[1] = TUFF_CONVERT4(TUFF_UNPACKED(type, words.zw));
#define TUFF_BLOCK_STORE_2(name, type) \
  TUFF_AT(name##_memory, i) =          \
      tuff_memory(uvec4(TUFF_PACKED(type, block.part[0]), TUFF_PACKED(type, block.part[1])));
#else
#define TUFF_MEMORY_2 TUFF_MEMORY8
#define TUFF_MEMORY_BYTES_2 8
#define TUFF_BLOCK_LOAD_2(name, type) \
  block.part[0] = TUFF_CONVERT4(TUFF_UNPACKED(type, tuff_words(TUFF_AT(name##_memory, i))));
#define TUFF_BLOCK_STORE_2(name, type) \
  TUFF_AT(name##_memory, i) = tuff_memory(TUFF_PACKED(type, block.part[0]));
#endif

#if TUFF_PARTS == 2
#define TUFF_MEMORY_1 TUFF_MEMORY8
#define TUFF_MEMORY_BYTES_1 8
#define TUFF_BLOCK_LOAD_1(name, type)                          \
  uvec2 words = tuff_words(TUFF_AT(name##_memory, i));         \
  block.part[0] = TUFF_CONVERT4(TUFF_UNPACKED(type, words.x)); \
  block.part[1] = TUFF_CONVERT4(TUFF_UNPACKED(type, words.y));
#define TUFF_BLOCK_STORE_1(name, type) \
  TUFF_AT(name##_memory, i) = tuff_memory(uvec2(TUFF_PACKED(type, block.part[0]), TUFF_PACKED(type, block.part[1])));
#else
#define TUFF_BLOCK_STORE_1(name, type) TUFF_AT(name##_memory, i) = TUFF_PACKED(type, block.part[0]);
#define TUFF_MEMORY_1 uint
#define TUFF_MEMORY_BYTES_1 4
#define TUFF_BLOCK_LOAD_1(name, type) block.part[0] = TUFF_CONVERT4(TUFF_UNPACKED(type, TUFF_AT(name##_memory, i)));
#endif

#define TUFF_MEMORY_8 TUFF_MEMORY16
#define TUFF_MEMORY_BYTES_8 16
#define TUFF_BLOCK_LOAD_8(name, type)                                                                  \
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {                                                   \
    const uvec4 first = tuff_words(TUFF_AT(name##_memory, 2 * (TUFF_PARTS * i + p)));                  \
    const uvec4 second = tuff_words(TUFF_AT(name##_memory, 2 * (TUFF_PARTS * i + p) + 1));             \
    block.part[p] = TUFF_CONVERT4(TUFF_PASTE(tuff_unpack_, type)(first, second));                      \
  }
#define TUFF_BLOCK_STORE_8(name, type)                                                                         \
  [[unroll]] for (uint p = 0; p < TUFF_PARTS; ++p) {                                                           \
    const TUFF_VALUE4 v = block.part[p];                                                                       \
    TUFF_AT(name##_memory, 2 * (TUFF_PARTS * i + p)) = tuff_memory(uvec4(tuff_words_of(v.x), tuff_words_of(v.y))); \
    TUFF_AT(name##_memory, 2 * (TUFF_PARTS * i + p) + 1) =                                                     \
        tuff_memory(uvec4(tuff_words_of(v.z), tuff_words_of(v.w)));                                            \
  }
#endif

#define TUFF_BLOCKS_READ(slot, name, type) TUFF_BLOCKS_READ_BY(readonly, slot, name, type)
#define TUFF_BLOCKS_READ_BACK(slot, name, type) TUFF_BLOCKS_READ_BY(, slot, name, type)
#define TUFF_BLOCKS_READ_BY(qualifier, slot, name, type)                                         \
  TUFF_BLOCKS_DECLARE(qualifier, slot, name, type)                                               \
  TUFF_VALUE name##_load(TUFF_INDEX i) { return TUFF_AS_VALUE(type, TUFF_AT(name##_scalar, i)); } \
  TuffBlock name##_load_block(TUFF_INDEX i) {                                                    \
    TuffBlock block;                                                                             \
    TUFF_BLOCK_LOAD(name, type)                                                                  \
    return block;                                                                                \
  }
#define TUFF_BLOCKS_WRITE(slot, name, type)                                                      \
  TUFF_BLOCKS_DECLARE(writeonly, slot, name, type)                                               \
  void name##_store(TUFF_INDEX i, TUFF_VALUE x) {                                                \
    TUFF_AT(name##_scalar, i) = TUFF_OF_VALUE_ROUNDED(type, x);                                  \
  }                                                                                              \
  void name##_store_block(TUFF_INDEX i, TuffBlock block) { TUFF_BLOCK_STORE(name, type) }
