// Discrete Fourier transforms along any axes of a tensor (docs/fft.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

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
// Numbers of scratch memory of a piece of the batch: those of a CPU stay in its cache.
inline constexpr uint64_t kPiece = 1u << 25, kPieceCpu = 1u << 17;

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

  auto arrays() {
    return std::tuple(counted(shape, rank), counted(input_strides, rank), counted(output_strides, rank));
  }
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

// Each throws where an argument is wrong; all of these are of tuff_dct() too.
// The axes that are transformed: the given ones, or the last.
uint32_t axes_of(uint32_t given, uint32_t rank);
// The strides and the span of an operand whose sizes are set; all given strides 0: it is dense.
void set_strides(Operand& operand, const uint64_t* given, uint32_t rank, std::string_view name);
// The output's numbers must not coincide.
void require_distinct(const Operand& output, uint32_t rank);
double scale_of(int32_t norm, double length);
// "0,2"
std::string describe_axes(uint32_t axes, uint32_t rank);
// Both have their numbers in their buffers, and overlap only if they are the same numbers and `may_be_same`.
struct Operands {
  const Buffer *input, *output;
  const Operand &from, &to;
  uint32_t rank;
  int32_t dtype;
};
void check_operands(const Operands& operands, bool may_be_same);

// A batch that is cut into pieces along the axes that are not transformed.
class Pieces {
 public:
  // A piece has at most `fits` elements of the batch.
  Pieces(const uint64_t* shape, uint32_t rank, uint32_t axes, uint64_t fits);
  uint64_t batch() const { return batch_; }  // elements of the batch in a whole piece
  // Calls body(where the piece starts, its sizes) for each. Sizes of transformed axes are those of the shape.
  template <typename Body>
  void for_each(const Body& body) const {
    std::array<uint64_t, 8> at{}, sizes{};
    while (true) {
      for (uint32_t axis = 0; axis < rank_; ++axis) sizes[axis] = std::min(sizes_[axis], shape_[axis] - at[axis]);
      body(at, sizes);
      uint32_t axis = rank_;
      while (axis-- > 0) {
        at[axis] += sizes_[axis];
        if (at[axis] < shape_[axis]) break;
        at[axis] = 0;
      }
      if (axis >= rank_) return;
    }
  }

 private:
  std::array<uint64_t, 8> shape_{}, sizes_{};
  uint32_t rank_;
  uint64_t batch_ = 1;
};

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
