// Numbers of ggml's blocks of 32 with one scale and no minimum, from words of their bytes, four numbers at a time
// (quant_blocks.cpp describes the layout). Products of a scale and an integer are exact in f32.
#include "kernels/common/types.glsl"

// q8_0: number i is signed byte i.
vec4 four_of_q8(uint bytes, float scale) { return vec4(tuff_unpack_7(bytes)) * scale; }
// q4_0: numbers i and i + 16 are the lower half (shift 0) and the upper half (shift 4) of byte i.
vec4 four_of_q4(uint bytes, uint shift, float scale) {
  return vec4(ivec4(tuff_bytes((bytes >> shift) & 0x0f0f0f0fu)) - 8) * scale;
}
