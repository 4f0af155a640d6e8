// Quantised numbers: integers with scales in buffers of their own, and ggml's blocks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

namespace quant {

struct Format {
  int32_t number;  // TUFF_QUANT_*
  const char* name;
  uint32_t block, block_bytes;  // numbers in a block, and its size; 1 for integers of 8 bits, 2 for those of 4
  int32_t least, most;          // of integers; both 0 for ggml's formats
  bool integers() const { return least != most; }
  uint32_t bits() const { return 8 * block_bytes / block; }  // of integers
};

// INVALID_ARGUMENT for an unknown number.
const Format& format_of(int32_t number, std::string_view name = "format");

// The bytes of so many numbers: of integers, or of whole blocks.
uint64_t stored_bytes(const Format& format, uint64_t numbers);

// Where the scales of a tensor are: element (o, a, i) of its shape, seen as [outer][axis][inner], has number
//   PER_TENSOR 0, PER_AXIS a, PER_BLOCK (o * blocks + a / block) * inner + i.
struct Places {
  int32_t granularity;
  uint64_t outer, axis, inner, block, blocks;
  uint64_t elements() const { return outer * axis * inner; }
  uint64_t scales() const;
  uint64_t scale_of(uint64_t element) const;
};

}  // namespace quant

// For tuff_quantize and tuff_dequantize.
struct QuantArgs {
  int32_t format, dtype, scale_type;
  int32_t quotient_type;  // quantize only
  int32_t granularity;
  const Buffer *values, *scales, *zero_points, *quantised;  // values: of dtype
  const uint64_t* shape;
  uint32_t rank, axis;
  uint64_t block_size;

  auto arrays() { return std::tuple(counted(shape, rank)); }
};

struct QgemmArgs {
  int32_t format, a_type, c_type, scale_type, granularity, activation;
  uint64_t m, n, k;
  double alpha;
  const Buffer *a, *weights, *scales, *zero_points, *bias, *residual, *c;
  uint64_t lda, ldc, ld_residual;
  uint64_t block_size;
  // If A is quantised.
  int32_t a_granularity = TUFF_QUANT_PER_TENSOR;
  const Buffer *a_scales = nullptr, *a_zero_points = nullptr;

  bool quantised() const;
  uint64_t a_scale_count() const { return a_granularity == TUFF_QUANT_PER_AXIS ? m : 1; }
};

namespace quant {

constexpr ElementTypes kActivations = {TUFF_I8, TUFF_U8};  // of an A that is quantised

Places places_of(const QuantArgs& args);  // of checked arguments
// The scales of one row of a product's weights; 0: all rows share one.
uint64_t scales_of_row(const QgemmArgs& args);

// The weights of a product, `rows` rows from `first` on (an even number), as arguments of dequantize without output.
// They refer to this object.
class Weights {
 public:
  Weights(const QgemmArgs& args, uint64_t first, uint64_t rows);
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;
  QuantArgs args;

 private:
  std::array<uint64_t, 2> shape_;
  Buffer weights_, scales_, zero_points_;
};

// Records a product with integers and a few rows of A for NVIDIA's Hopper GPUs (native/qgemm_mma.cpp); returns false if
// its kernel does not compute it.
bool record_mma(Recorder& recorder, const QgemmArgs& args);

// Likewise one with many rows of A, whose weights are dequantised on the way (native/qgemm_wgmma.cpp). `forced` is the
// name of a tile, if only that is wanted.
bool record_wgmma(Recorder& recorder, const QgemmArgs& args, const std::optional<std::string>& forced);
bool is_wgmma_variant(std::string_view name);

// sums[i][j] = the sum over blocks of scales[j][block] * the block's products of integers of 8 bits with sign, in f32.
struct BlockSums {
  const Buffer *a, *weights, *scales, *sums;
  int32_t scale_type;
  uint64_t rows, columns, k;  // of A; of weights
  uint64_t lda, ldw, block;
};
// Records them for NVIDIA's Hopper GPUs (native/qgemm_blocks.cpp); returns false if its kernel does not compute them.
bool record_block_sums(Recorder& recorder, const BlockSums& sums);

// Records a product whose A is quantised (qgemm_integers_vulkan.cpp).
void record_integers(Recorder& recorder, const QgemmArgs& args);

// The numbers of a block of one of ggml's formats.
void decode_block(int32_t format, const uint8_t* block, float* numbers);

}  // namespace quant

void check_quantize(const QuantArgs& args);
void host_quantize(const QuantArgs& args);
void record_quantize(Recorder& recorder, const QuantArgs& args);

void check_dequantize(const QuantArgs& args);
void host_dequantize(const QuantArgs& args);
void record_dequantize(Recorder& recorder, const QuantArgs& args);

void check_qgemm(const QgemmArgs& args);
void host_qgemm(const QgemmArgs& args);
void record_qgemm(Recorder& recorder, const QgemmArgs& args);

namespace operations {
extern const OperationOf<QuantArgs> quantize, dequantize;
extern const OperationOf<QgemmArgs> qgemm;
}  // namespace operations

}  // namespace tuff
