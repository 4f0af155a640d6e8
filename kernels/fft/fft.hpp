// Discrete Fourier transforms along any axes of a tensor (docs/fft.md).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/kernel_request.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

namespace fft {

inline constexpr ElementTypes kTypes = kFloatTypes | ElementTypes{TUFF_F64};
// A line of a direct transform, and one by Bluestein's algorithm, which computes with lines of up to twice the size.
inline constexpr uint64_t kMaxLength = uint64_t{1} << 29, kMaxBluestein = uint64_t{1} << 28;
inline constexpr uint32_t kMaxPrime = 31;  // the largest factor that a kernel transforms directly
inline constexpr uint32_t kMaxRadix = 64;  // numbers that a lane transforms at once

}  // namespace fft

struct FftArgs {
  int32_t dtype;
  int32_t kind;     // TUFF_FFT_*
  int32_t inverse;  // 0 or 1
  int32_t norm;     // TUFF_FFT_NORM_*
  const Buffer *input, *output;
  const uint64_t* shape;
  const uint64_t *input_strides, *output_strides;  // all 0: dense
  uint32_t rank;
  uint32_t axes;  // bits; 0: the last axis
};

namespace fft {

// An operand: its sizes and strides in numbers, which are complex (two elements) or real (one).
struct Operand {
  std::array<uint64_t, 8> sizes, strides;
  uint64_t elements;  // of a number
  uint64_t span;      // numbers from the first to the last, plus one; 0 if there are none
};

struct Shape {
  uint32_t axes;    // bits of the transformed ones
  uint32_t last;    // the last of them
  uint64_t length;  // product of their sizes
  double scale;     // by the norm
  Operand input, output;
};

// Throws where an argument is wrong.
Shape shape_of(const FftArgs& args);

// Whether all prime factors of n are at most kMaxPrime.
bool is_direct(uint64_t n);

// GLSL of the discrete Fourier transform of a pass, by fft_load, fft_unit and fft_store of fft_pass.comp: with one
// radix in the registers of a lane, with several by lanes that share a workgroup. Created when it is first requested.
inline constexpr uint32_t kMaxSteps = 12;
const std::shared_ptr<const KernelBody>& codelet(std::span<const uint32_t> radices, bool f64);

// Numbers of shared memory for a column of n numbers: an odd size and a gap after every 16 spread it over the banks.
constexpr uint32_t line_of(uint32_t n) { return (n + n / 16) | 1; }

}  // namespace fft

void check_fft(const FftArgs& args);
void host_fft(const FftArgs& args);
void record_fft(Recorder& recorder, const FftArgs& args);

namespace operations {
extern const OperationOf<FftArgs> fft;
}  // namespace operations

}  // namespace tuff
