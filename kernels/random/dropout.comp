// output[i] = factor * input[i] where element offset + i of a random sequence is kept, otherwise 0, and mask[i] = whether it
// is. Block b of the sequence is four words: Philox4x32-10 of the counter (b, sequence) with the seed as its key, as in
// random.comp; words below the threshold drop their elements. A lane computes one block after another.
//
//   elements    …| 4b  4b+1  4b+2  4b+3 |…       b of lane l in step s: first + s * (workgroup size) + l
//
// The product is one correctly rounded multiplication of f32, so that every device and the host compute the same bits. Each
// lane reads its elements before it writes them: output may be the input.
//
//# TUFF_TYPE : 1..3 : element type, as in tuff.h
//# TUFF_MASK : 0|1 : 1: the mask is written, one byte for each element
//# TUFF_WHOLE : 0|1 : 1: the operands begin with a block and are aligned for four elements, which are moved together
//# TUFF_RUN : 0.. : blocks that a lane processes one after another; 0: push.run says
#include "kernels/common/types.glsl"
#include "kernels/random/philox.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant, std430) uniform Push {
  TUFF_BASES(3)
  uint n, run;
  uint skipped;              // elements of the first block before the operands begin
  uint block[2];             // number of the first block
  uint sequence[2], key[2];  // low and high word
  uint threshold, all;       // words below the threshold drop their elements; all: every word does
  float factor;
} push;

TUFF_READ(0, X, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
TUFF_WRITE(1, Y, TUFF_STORED(TUFF_TYPE), TUFF_BYTES(TUFF_TYPE))
#if TUFF_MASK
TUFF_WRITE(2, Mask, uint8_t, 1)
#endif
#if TUFF_WHOLE
#if TUFF_TYPE == 1
#define WORDS uvec4
#define WORD_BYTES 16
#else
#define WORDS uvec2
#define WORD_BYTES 8
#endif
TUFF_READ(0, WholeX, WORDS, WORD_BYTES)
TUFF_WRITE(1, WholeY, WORDS, WORD_BYTES)
#if TUFF_MASK
TUFF_WRITE(2, WholeMask, uint, 4)
#endif
#endif

// Which of the four elements of a block are kept.
bvec4 kept(uint low, uint high) {
  const uvec4 counter = uvec4(low, high, push.sequence[0], push.sequence[1]);
  const uvec4 words = tuff_philox(counter, uvec2(push.key[0], push.key[1]));
  return bvec4(uvec4(greaterThanEqual(words, uvec4(push.threshold))) & uvec4(1u - push.all));
}

void main() {
  const uint lanes = gl_WorkGroupSize.x, blocks = (push.skipped + push.n + 3) / 4;
  uint i = tuff_group() * (lanes * RUN) + gl_LocalInvocationID.x;
  for (uint step = 0; step < RUN && i < blocks; ++step, i += lanes) {
    uint carry;
    const uint low = uaddCarry(push.block[0], i, carry);
    const bvec4 keep = kept(low, push.block[1] + carry);
#if TUFF_WHOLE
    if (4 * i + 4 <= push.n) {
      precise vec4 product = TUFF_UNPACKED(TUFF_TYPE, TUFF_AT(WholeX, i)) * push.factor;
      TUFF_AT(WholeY, i) = TUFF_PACKED(TUFF_TYPE, mix(vec4(0.0), product, keep));
#if TUFF_MASK
      const uvec4 byte = uvec4(keep);
      TUFF_AT(WholeMask, i) = byte.x | byte.y << 8 | byte.z << 16 | byte.w << 24;
#endif
      continue;
    }
#endif
    for (uint c = 0; c < 4; ++c) {
      const uint at = 4 * i + c - push.skipped;  // beyond n before the operands begin
      if (at >= push.n) continue;
      precise float product = TUFF_LOADED(TUFF_TYPE, TUFF_AT(X, at)) * push.factor;
      TUFF_AT(Y, at) = TUFF_ROUNDED(TUFF_TYPE, keep[c] ? product : 0.0);
#if TUFF_MASK
      TUFF_AT(Mask, at) = uint8_t(keep[c] ? 1u : 0u);
#endif
    }
  }
}
