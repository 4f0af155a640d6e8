#include "support/quantised.hpp"

#include <algorithm>
#include <iterator>

namespace tuff_test::quantised {

bool four_bits(int32_t format) { return format == TUFF_QUANT_I4 || format == TUFF_QUANT_U4; }
bool has_sign(int32_t format) { return format == TUFF_QUANT_I8 || format == TUFF_QUANT_I4; }
int least_of(int32_t format) { return !has_sign(format) ? 0 : four_bits(format) ? -8 : -128; }
int most_of(int32_t format) { return least_of(format) + (four_bits(format) ? 15 : 255); }

const Block* block_of(int32_t format) {
  const auto* found =
      std::find_if(std::begin(kBlocks), std::end(kBlocks), [&](const Block& b) { return b.format == format; });
  return found == std::end(kBlocks) ? nullptr : found;
}
std::string format_name(int32_t format) {
  if (const Block* block = block_of(format)) return block->name;
  return std::string(has_sign(format) ? "i" : "u") + (four_bits(format) ? "4" : "8");
}
uint64_t stored(int32_t format, uint64_t count) {
  if (const Block* block = block_of(format)) return count / block->numbers * block->bytes;
  return four_bits(format) ? (count + 1) / 2 : count;
}

int get(int32_t format, const Bytes& bytes, uint64_t i) {
  if (four_bits(format)) {
    const int half = i % 2 == 0 ? bytes[i / 2] % 16 : bytes[i / 2] / 16;
    return has_sign(format) && half >= 8 ? half - 16 : half;
  }
  return has_sign(format) && bytes[i] >= 128 ? bytes[i] - 256 : bytes[i];
}

Bytes random_bytes(uint64_t count, uint64_t seed) {
  Random random(seed);
  Bytes bytes(count);
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random.next() >> 40);
  return bytes;
}

namespace {

float half_of(const unsigned char* bytes) {
  const Bytes two(bytes, bytes + 2);
  return static_cast<float>(element(TUFF_F16, two, 0));
}

// Appends a block's numbers in order.
void decode(int32_t format, const unsigned char* b, std::vector<float>& out) {
  const float d = half_of(b);
  if (format == TUFF_QUANT_Q8_0) {
    for (int i = 0; i < 32; ++i) out.push_back(d * static_cast<float>(static_cast<signed char>(b[2 + i])));
  } else if (format <= TUFF_QUANT_Q5_1) {
    const bool minimum = format == TUFF_QUANT_Q4_1 || format == TUFF_QUANT_Q5_1, five = format >= TUFF_QUANT_Q5_0;
    const float m = minimum ? half_of(b + 2) : 0;
    const unsigned char *high = b + (minimum ? 4 : 2), *low = high + (five ? 4 : 0);
    for (const int shift : {0, 4}) {
      for (int i = 0; i < 16; ++i) {
        const int bit = i + 4 * shift;
        int q = (low[i] >> shift) % 16;
        if (five && ((high[bit / 8] >> (bit % 8)) & 1) != 0) q += 16;
        out.push_back(minimum ? static_cast<float>(q) * d + m : static_cast<float>(q - (five ? 16 : 8)) * d);
      }
    }
  } else if (format == TUFF_QUANT_Q6_K) {
    const float factor = half_of(b + 208);
    const auto* scales = reinterpret_cast<const signed char*>(b + 192);
    for (int half = 0; half < 2; ++half) {
      for (int quarter = 0; quarter < 4; ++quarter) {
        for (int l = 0; l < 32; ++l) {
          const int low = b[64 * half + (quarter % 2 == 1 ? 32 : 0) + l] >> (quarter >= 2 ? 4 : 0);
          const int high = b[128 + 32 * half + l] >> (2 * quarter);
          const int q = low % 16 + 16 * (high % 4) - 32, s = scales[8 * half + 2 * quarter + l / 16];
          out.push_back(factor * static_cast<float>(s) * static_cast<float>(q));
        }
      }
    }
  } else {
    const bool five = format == TUFF_QUANT_Q5_K;
    const float dmin = half_of(b + 2);
    const unsigned char *scales = b + 4, *low = b + (five ? 48 : 16);
    for (int group = 0; group < 8; ++group) {
      int s = 0, m = 0;
      if (group < 4) {
        s = scales[group] % 64, m = scales[group + 4] % 64;
      } else {
        s = scales[group + 4] % 16 + scales[group - 4] / 64 * 16;
        m = scales[group + 4] / 16 + scales[group] / 64 * 16;
      }
      for (int l = 0; l < 32; ++l) {
        int q = (low[group / 2 * 32 + l] >> (group % 2 * 4)) % 16;
        if (five) q += (b[16 + l] >> group) % 2 * 16;
        out.push_back(d * static_cast<float>(s) * static_cast<float>(q) - dmin * static_cast<float>(m));
      }
    }
  }
}

}  // namespace

Bytes random_blocks(const Block& block, uint64_t count, uint64_t seed, bool any) {
  Bytes bytes = random_bytes(count * block.bytes, seed);
  if (any) return bytes;
  Random random(seed + 1);
  for (uint64_t i = 0; i < count; ++i) {
    const auto put = [&](uint64_t at, float value) {
      Bytes two(2);
      set_element(TUFF_F16, two, 0, value);
      std::copy(two.begin(), two.end(), bytes.begin() + static_cast<std::ptrdiff_t>(i * block.bytes + at));
    };
    if (block.format == TUFF_QUANT_Q6_K) {
      put(208, random.uniform(0.001f, 0.01f));
      continue;
    }
    put(0, random.uniform(0.01f, 0.1f));
    if (block.numbers == 256 || block.format == TUFF_QUANT_Q4_1 || block.format == TUFF_QUANT_Q5_1) {
      put(2, random.uniform(-0.1f, 0.1f));
    }
  }
  return bytes;
}

std::vector<float> decoded(const Block& block, const Bytes& bytes) {
  std::vector<float> all;
  for (uint64_t at = 0; at < bytes.size(); at += block.bytes) decode(block.format, bytes.data() + at, all);
  return all;
}

}  // namespace tuff_test::quantised
