// Copies 8-bit matrices transposed, rows in whole pieces of 16 bytes: matrix units take 8-bit inputs best along k.
//
// A workgroup copies 64 x 64 elements through shared memory. What is read beyond the matrix counts as zero.
//
// Defines: LOAD_BYTES   4: base, ld, stride and cols are multiples of 4; else 1
#extension GL_EXT_shader_8bit_storage : require

layout(push_constant, std430) uniform Push {
  TUFF_BASES(2)
  TUFF_INDEX ld, stride;          // of what is read, in elements
  TUFF_INDEX out_ld, out_stride;  // of the copy
  uint rows, cols;                // of what is read
  uint tiles_rows, tiles_cols, matrices;
} push;
TUFF_READ(0, In1, uint8_t, 1)
TUFF_READ(0, In4, uint, 4)
TUFF_WRITE(1, Out, uvec4, 16)

layout(local_size_x = 256) in;

shared uint tile[64][17];  // four elements each; the last column spreads the rows over the banks

void main() {
  const uint group = tuff_group(), tiles = push.tiles_rows * push.tiles_cols;
  const uint matrix = group / tiles, within = group % tiles;
  if (matrix >= push.matrices) return;
  const uint row0 = within / push.tiles_cols * 64, col0 = within % push.tiles_cols * 64;
  const uint major = gl_LocalInvocationIndex / 4, piece = gl_LocalInvocationIndex % 4;

  const uint row = row0 + major;
  const TUFF_INDEX from = TUFF_INDEX(matrix) * push.stride + TUFF_INDEX(row) * push.ld;
  [[unroll]] for (uint w = 0; w < 4; ++w) {
    const uint col = col0 + piece * 16 + w * 4;
    uint word = 0;
#if LOAD_BYTES == 4
    if (row < push.rows && col < push.cols) word = TUFF_AT(In4, (from + col) / 4);
#else
    [[unroll]] for (uint e = 0; e < 4; ++e) {
      if (row < push.rows && col + e < push.cols) word |= uint(TUFF_AT(In1, from + col + e)) << (8 * e);
    }
#endif
    tile[major][piece * 4 + w] = word;
  }
  barrier();

  const uint out_row = col0 + major, out_col = row0 + piece * 16;
  if (out_row >= push.cols || out_col >= push.out_ld) return;
  uvec4 result = uvec4(0);
  [[unroll]] for (uint w = 0; w < 4; ++w) {
    [[unroll]] for (uint e = 0; e < 4; ++e) {
      result[w] |= (tile[piece * 16 + w * 4 + e][major / 4] >> (major % 4 * 8) & 0xffu) << (8 * e);
    }
  }
  TUFF_AT(Out, (TUFF_INDEX(matrix) * push.out_stride + TUFF_INDEX(out_row) * push.out_ld + out_col) / 16) = result;
}
