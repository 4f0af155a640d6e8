// ggml's blocks, as they lie in GGUF files. Numbers of 16 bits are little-endian f16s. Every product of a scale and an
// integer is exact in f32, so that only the subtraction or addition of a minimum rounds.

#include "kernels/common/elements.hpp"
#include "kernels/quant/quant.hpp"

namespace tuff::quant {
namespace {

float half_at(const uint8_t* bytes) {
  Half value;
  value.bits = static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
  return static_cast<float>(static_cast<double>(value));
}

// Blocks of 32: f16 scale, f16 minimum (formats _1), 32 fifth bits (q5), then numbers j and j + 16 as the halves of
// byte j.
void decode_32(const uint8_t* block, bool minimum, bool fifth, float* numbers) {
  const float scale = half_at(block), least = minimum ? half_at(block + 2) : 0;
  block += minimum ? 4 : 2;
  uint32_t high = 0;
  if (fifth) {
    high = block[0] | block[1] << 8 | block[2] << 16 | static_cast<uint32_t>(block[3]) << 24;
    block += 4;
  }
  const int32_t middle = minimum ? 0 : fifth ? 16 : 8;
  for (uint32_t j = 0; j < 32; ++j) {
    int32_t q = block[j % 16] >> (j / 16 * 4) & 15;
    q |= static_cast<int32_t>(high >> j & 1) << 4;
    const float product = static_cast<float>(q - middle) * scale;
    numbers[j] = minimum ? product + least : product;  // adding 0 would lose the sign of -0
  }
}

// Blocks of 256 in eight groups of 32: f16 scale of the scales and of the minima; 12 bytes with 6 bits for each group's
// scale and minimum; the fifth bits of q5_K, bit g of byte l for number l of group g; then pairs of groups, as the
// halves of 32 bytes.
void decode_k(const uint8_t* block, bool fifth, float* numbers) {
  const float scale = half_at(block), least = half_at(block + 2);
  const uint8_t *packed = block + 4, *high = block + 16, *low = high + (fifth ? 32 : 0);
  for (uint32_t g = 0; g < 8; ++g) {
    // Groups 0 to 3 have the lower six bits of their bytes; the upper two are those of groups 4 to 7.
    const uint32_t s = g < 4 ? packed[g] & 63 : (packed[g + 4] & 15) | packed[g - 4] >> 6 << 4;
    const uint32_t m = g < 4 ? packed[g + 4] & 63 : packed[g + 4] >> 4 | packed[g] >> 6 << 4;
    const float group_scale = scale * static_cast<float>(s), group_least = least * static_cast<float>(m);
    for (uint32_t l = 0; l < 32; ++l) {
      uint32_t q = low[g / 2 * 32 + l] >> (g % 2 * 4) & 15;
      if (fifth) q |= (high[l] >> g & 1u) << 4;
      numbers[32 * g + l] = group_scale * static_cast<float>(q) - group_least;
    }
  }
}

// Blocks of 256 in halves of 128: 64 bytes of lower four bits for each half, 32 bytes of upper two bits for each, then
// 16 signed scales of 16 numbers each, and the f16 scale of the scales. Quarter r of a half has the lower or (from r =
// 2 on) upper halves of the first or (odd r) second 32 bytes, and bits 2 r of the upper bits.
void decode_q6(const uint8_t* block, float* numbers) {
  const uint8_t *low = block, *high = block + 128, *scales = block + 192;
  const float scale = half_at(block + 208);
  for (uint32_t j = 0; j < 256; ++j) {
    const uint32_t half = j / 128, r = j / 32 % 4, l = j % 32;
    const uint32_t lower = low[64 * half + r % 2 * 32 + l] >> (r / 2 * 4) & 15;
    const uint32_t upper = high[32 * half + l] >> (2 * r) & 3;
    const auto q = static_cast<int32_t>(lower | upper << 4) - 32;
    numbers[j] = scale * static_cast<float>(static_cast<int8_t>(scales[j / 16])) * static_cast<float>(q);
  }
}

}  // namespace

void decode_block(int32_t format, const uint8_t* block, float* numbers) {
  switch (format) {
    case TUFF_QUANT_Q4_0: return decode_32(block, false, false, numbers);
    case TUFF_QUANT_Q4_1: return decode_32(block, true, false, numbers);
    case TUFF_QUANT_Q5_0: return decode_32(block, false, true, numbers);
    case TUFF_QUANT_Q5_1: return decode_32(block, true, true, numbers);
    case TUFF_QUANT_Q4_K: return decode_k(block, false, numbers);
    case TUFF_QUANT_Q5_K: return decode_k(block, true, numbers);
    case TUFF_QUANT_Q6_K: return decode_q6(block, numbers);
    default: {  // q8_0: an f16 scale and 32 signed bytes
      const float scale = half_at(block);
      for (uint32_t j = 0; j < 32; ++j) {
        numbers[j] = static_cast<float>(static_cast<int8_t>(block[2 + j])) * scale;
      }
    }
  }
}

}  // namespace tuff::quant
