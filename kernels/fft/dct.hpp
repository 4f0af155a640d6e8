// Cosine and sine transforms along any axes of a tensor (docs/fft.md).
#pragma once

#include <cstdint>

#include "kernels/fft/fft.hpp"

namespace tuff {

struct DctArgs {
  int32_t dtype;
  int32_t kind;        // TUFF_DCT_*, TUFF_DST_*
  int32_t orthogonal;  // 0 or 1
  int32_t norm;        // TUFF_FFT_NORM_*
  const Buffer *input, *output;
  const uint64_t* shape;
  const uint64_t *input_strides, *output_strides;  // all 0: dense
  uint32_t rank;
  uint32_t axes;  // bits; 0: the last axis

  auto arrays() {
    return std::tuple(counted(shape, rank), counted(input_strides, rank), counted(output_strides, rank));
  }
};

namespace dct {

// Numbers of all transformed axes together, and fewer than this along an axis whose transform is of twice as many.
inline constexpr uint64_t kMaxNumbers = uint64_t{1} << 28, kMaxMirrored = uint64_t{1} << 27;

struct Shape {
  uint32_t axes;  // bits of the transformed ones
  double scale;   // by the norm
  fft::Operand input, output;
};

// Throws where an argument is wrong.
Shape shape_of(const DctArgs& args);

inline bool is_sine(int32_t kind) { return kind >= TUFF_DST_1; }
// 1 to 4
inline int32_t number_of(int32_t kind) { return is_sine(kind) ? kind - TUFF_DST_1 + 1 : kind; }
// N of a line of n numbers.
inline uint64_t norm_size(int32_t kind, uint64_t n) {
  return kind == TUFF_DCT_1 ? 2 * (n - 1) : kind == TUFF_DST_1 ? 2 * (n + 1) : 2 * n;
}

}  // namespace dct

void check_dct(const DctArgs& args);
void host_dct(const DctArgs& args);
void record_dct(Recorder& recorder, const DctArgs& args);

namespace operations {
extern const OperationOf<DctArgs> dct;
}  // namespace operations

}  // namespace tuff
