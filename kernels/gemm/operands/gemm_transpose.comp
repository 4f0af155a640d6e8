// Transposes matrices of 8-, 16- or 32-bit elements into copies whose rows are padded to whole pieces of 16 bytes.
// Cooperative matrices are loaded fastest along k for 8-bit elements, and across k for 16-bit elements. Hopper's
// instructions take 8- and 32-bit elements along k only.
//
// A workgroup copies 64 x 64 elements through shared memory. Neighbouring invocations load neighbouring words of a row,
// and store neighbouring pieces of 16 bytes. Elements beyond the matrix count as zero.
//
//# ELEMENT_BYTES : 1|2|4 : bytes of an element
//# LOAD_BYTES : 1|2|4 : bytes per load: 4 if base, ld, stride and cols are multiples of 4 bytes, else ELEMENT_BYTES
#if ELEMENT_BYTES == 1
#extension GL_EXT_shader_8bit_storage : require
#define STORED uint8_t
#elif ELEMENT_BYTES == 4
#define STORED uint
#else
#extension GL_EXT_shader_16bit_storage : require
#define STORED uint16_t
#endif

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX ld, stride;          // of the input, in elements
  TUFF_INDEX out_ld, out_stride;  // of the copy
  uint rows, cols;                // of the input
  uint tiles_rows, tiles_cols, matrices;
} push;
TUFF_READ(0, In1, STORED, ELEMENT_BYTES)
TUFF_READ(0, In4, uint, 4)
TUFF_WRITE(1, Out, uvec4, 16)

layout(local_size_x = 256) in;

#define PER_WORD (4 / ELEMENT_BYTES)
#define ROW_WORDS (64 / PER_WORD)          // of a row of the tile
#define ROW_PIECES (64 * ELEMENT_BYTES / 16)  // of a row of the copy
#define ELEMENT_BITS (8 * ELEMENT_BYTES)
shared uint tile[64][ROW_WORDS + 1];  // the last column spreads the rows over the banks

void main() {
  const uint group = tuff_group(), tiles = push.tiles_rows * push.tiles_cols;
  const uint matrix = group / tiles, within = group % tiles;
  if (matrix >= push.matrices) return;
  TUFF_TAKE(matrix)
  const uint row0 = within / push.tiles_cols * 64, col0 = within % push.tiles_cols * 64;

  const uint at = gl_LocalInvocationIndex % ROW_WORDS, col = col0 + at * PER_WORD;
  [[unroll]] for (uint i = 0; i < 64 * ROW_WORDS / 256; ++i) {
    const uint major = gl_LocalInvocationIndex / ROW_WORDS + i * (256 / ROW_WORDS), row = row0 + major;
    const TUFF_INDEX from = TUFF_INDEX(matrix) * push.stride + TUFF_INDEX(row) * push.ld;
    uint word = 0;
#if LOAD_BYTES == 4
    if (row < push.rows && col < push.cols) word = TUFF_AT(In4, (from + col) / PER_WORD);
#else
    [[unroll]] for (uint e = 0; e < PER_WORD; ++e) {
      if (row < push.rows && col + e < push.cols) word |= uint(TUFF_AT(In1, from + col + e)) << (ELEMENT_BITS * e);
    }
#endif
    tile[major][at] = word;
  }
  barrier();

  const uint first = gl_LocalInvocationIndex % ROW_PIECES * 4 * PER_WORD;
  if (row0 + first >= push.out_ld) return;
  [[unroll]] for (uint i = 0; i < 64 * ROW_PIECES / 256; ++i) {
    const uint major = gl_LocalInvocationIndex / ROW_PIECES + i * (256 / ROW_PIECES), out_row = col0 + major;
    if (out_row >= push.cols) return;
    const TUFF_INDEX to = TUFF_INDEX(matrix) * push.out_stride + TUFF_INDEX(out_row) * push.out_ld;
    uvec4 result = uvec4(0);
    [[unroll]] for (uint w = 0; w < 4; ++w) {
      [[unroll]] for (uint e = 0; e < PER_WORD; ++e) {
        const uint word = tile[first + w * PER_WORD + e][major / PER_WORD];
        result[w] |= bitfieldExtract(word, int(major % PER_WORD * ELEMENT_BITS), ELEMENT_BITS) << (ELEMENT_BITS * e);
      }
    }
    TUFF_AT(Out, (to + row0 + first) / (4 * PER_WORD)) = result;
  }
}
