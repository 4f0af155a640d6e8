// Quantised numbers as tests see them: formats of integers and ggml's blocks, their contents, a second decoder, and the
// shapes of scales.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/tensor.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::quantised {

bool four_bits(int32_t format);
bool has_sign(int32_t format);
int least_of(int32_t format);
int most_of(int32_t format);

struct Block {
  int32_t format;
  const char* name;
  uint64_t numbers, bytes;
};
inline constexpr Block kBlocks[] = {{TUFF_QUANT_Q4_0, "q4_0", 32, 18},   {TUFF_QUANT_Q4_1, "q4_1", 32, 20},
                                    {TUFF_QUANT_Q5_0, "q5_0", 32, 22},   {TUFF_QUANT_Q5_1, "q5_1", 32, 24},
                                    {TUFF_QUANT_Q8_0, "q8_0", 32, 34},   {TUFF_QUANT_Q4_K, "q4_K", 256, 144},
                                    {TUFF_QUANT_Q5_K, "q5_K", 256, 176}, {TUFF_QUANT_Q6_K, "q6_K", 256, 210}};
const Block* block_of(int32_t format);  // null: integers
std::string format_name(int32_t format);
uint64_t stored(int32_t format, uint64_t count);          // bytes of so many numbers
int get(int32_t format, const Bytes& bytes, uint64_t i);  // an integer

struct QuantCase {
  int32_t format;
  std::vector<uint64_t> shape;
  int32_t granularity = TUFF_QUANT_PER_TENSOR;
  uint32_t axis = 0;
  uint64_t block = 0;
  bool zeros = false;
  int32_t dtype = TUFF_F32, scale_type = 0, quotient_type = 0;
  uint64_t shift = 0;  // of every operand, in elements

  std::string name() const {
    std::string text = format_name(format);
    for (const uint64_t size : shape) text += "_" + std::to_string(size);
    const char* const kinds[] = {"tensor", "axis", "block"};
    text += std::string("_") + kinds[granularity] + std::to_string(axis) + "_" + std::to_string(block);
    for (const int32_t type : {dtype, scale(), quotient()}) text += std::string("_") + name_of(type);
    return text + (zeros ? "_zeros" : "") + "_shift" + std::to_string(shift);
  }
  double work() const { return static_cast<double>(count()); }
  int32_t scale() const { return scale_type != 0 ? scale_type : dtype; }
  int32_t quotient() const { return quotient_type != 0 ? quotient_type : scale(); }
  uint64_t count() const {
    uint64_t n = 1;
    for (const uint64_t size : shape) n *= size;
    return n;
  }
  uint64_t inner() const {
    uint64_t n = 1;
    for (size_t i = axis + 1; i < shape.size(); ++i) n *= shape[i];
    return n;
  }
  // The shape of the scales, as ONNX gives it, and the index of an element's scale in it.
  uint64_t blocks() const { return (shape[axis] - 1) / block + 1; }
  uint64_t scales() const {
    if (granularity == TUFF_QUANT_PER_TENSOR) return 1;
    return granularity == TUFF_QUANT_PER_AXIS ? shape[axis] : count() / shape[axis] * blocks();
  }
  uint64_t scale_of(uint64_t element) const {
    if (granularity == TUFF_QUANT_PER_TENSOR) return 0;
    std::vector<uint64_t> index(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      index[d] = element % shape[d];
      element /= shape[d];
    }
    if (granularity == TUFF_QUANT_PER_AXIS) return index[axis];
    uint64_t at = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      at = at * (d == axis ? blocks() : shape[d]) + (d == axis ? index[d] / block : index[d]);
    }
    return at;
  }
};

Bytes random_bytes(uint64_t count, uint64_t seed);
// Random blocks. Their f16 numbers are moderate, or with `any` have any bits.
Bytes random_blocks(const Block& block, uint64_t count, uint64_t seed, bool any);
// Blocks' numbers, by walking through each in order.
std::vector<float> decoded(const Block& block, const Bytes& bytes);

}  // namespace tuff_test::quantised
