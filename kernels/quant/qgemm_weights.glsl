// Eight weights as they are stored, dequantised. Included after the push block, which has items, the items of a row,
// scales, those of a row (0: one for all), block_shift (an item's scale is its number >> block_shift) and first_zero.
//
// An item is eight numbers of a row, which have one scale.
#include "kernels/quant/quant_blocks.glsl"
#if TUFF_FORMAT == 0
#include "kernels/quant/quant_integers.glsl"
#include "kernels/quant/quant_scales.glsl"
TUFF_READ(0, Eights, EIGHT, TUFF_BITS)
#endif

Numbers weights_of(uint row, uint item) {
#if TUFF_FORMAT != 0
  const uint of_block = BLOCK / 8;
  return decode((TUFF_INDEX(row) * (push.items / of_block) + item / of_block) * BLOCK_WORDS, item % of_block);
#else
  const Integers q = eight_of(TUFF_AT(Eights, TUFF_INDEX(row) * push.items + item));
  const TUFF_INDEX at = TUFF_INDEX(row) * push.scales + (item >> push.block_shift);
  const float scale = scale_at(at);
  const int zero = zero_at(at);
  Numbers numbers;
  [[unroll]] for (uint p = 0; p < 2; ++p) numbers.part[p] = vec4(q.part[p] - zero) * scale;
  return numbers;
#endif
}
