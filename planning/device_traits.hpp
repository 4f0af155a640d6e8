// Device properties that planners choose by.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tuff/tuff.h"

namespace tuff {

// One matrix multiplication shape supported by the device's cooperative matrices: m x n x k elements, with inputs of
// types a and b and accumulators of type c.
struct MatrixShape {
  uint32_t m, n, k;
  int32_t a, b, c;  // dtypes
};

// What the device reports; constant for the life of a context.
struct DeviceTraits {
  bool cpu = false;  // a CPU device: register tiles and long contiguous runs pay off, shared memory and barriers do not
  uint32_t subgroup_size = 1;
  bool subgroup_arithmetic = false, subgroup_shuffle = false, subgroup_ballot = false;
  uint32_t cores = 0;  // multiprocessors or hardware threads; 0 if unknown
  uint32_t max_invocations = 128;
  uint32_t max_local_size[3] = {128, 128, 64};
  uint32_t max_groups[3] = {65535, 65535, 65535};
  uint32_t shared_bytes = 16384;
  uint32_t push_bytes = 128;
  uint64_t max_range = 1u << 27;  // bytes that one descriptor can cover
  bool addresses = false;         // buffer device addresses can be used
  // CPU devices: elements of a texel buffer, as which operands of KernelRequest::texels() are bound. 0: they are not.
  uint64_t max_texels = 0;
  bool streams_by_words = false;             // CPU devices: load 16 bytes as four 32-bit words, not as two 64-bit ones
  bool storage16 = false, storage8 = false;  // 16-bit and 8-bit elements in buffers, converted when they are read
  bool f16 = false, f64 = false, int64 = false;  // arithmetic
  bool rounds_f16 = false;     // conversions to f16 can be made to round to nearest even and preserve denormals
  bool preserves_f32 = false;  // arithmetic can be told to preserve zeros' signs, infinities and NaN
  // Supported cooperative matrix shapes, for kernels that set KernelRequest::matrices().
  std::array<MatrixShape, 32> matrix_shapes{};
  uint32_t matrix_shape_count = 0;
  // True if 16 x 16 x 16 is supported for inputs of this type with f32 accumulators.
  bool multiplies_squares(int32_t dtype) const {
    return std::any_of(matrix_shapes.begin(), matrix_shapes.begin() + matrix_shape_count,
                       [dtype](const MatrixShape& s) {
                         return s.m == 16 && s.n == 16 && s.k == 16 && s.a == dtype && s.b == dtype && s.c == TUFF_F32;
                       });
  }
  // Kernels in PTX with the tensor cores of NVIDIA's Hopper GPUs run: a trial has succeeded (kernels/native/).
  bool hopper = false;
  // Which binding method each kind of kernel uses: see runtime/vulkan/binding.hpp.
  bool streams_by_addresses = false, tiles_by_addresses = false, packed_by_addresses = false;
};

}  // namespace tuff
