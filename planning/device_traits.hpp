// What planners choose by: the facts that a device reports.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "tuff/tuff.h"

namespace tuff {

// One product that a subgroup's matrix units make: m x n x k elements of types a, b (inputs) and c (sums).
struct MatrixShape {
  uint32_t m, n, k;
  int32_t a, b, c;  // dtypes
};

// What the device reports; constant for the life of a context.
struct DeviceTraits {
  bool cpu = false;  // a CPU-type device: registers and long runs pay, shared memory and barriers do not
  uint32_t subgroup_size = 1;
  bool subgroup_arithmetic = false, subgroup_shuffle = false, subgroup_ballot = false;
  uint32_t cores = 0;  // multiprocessors or hardware threads; 0 if unknown
  uint32_t max_invocations = 128;
  uint32_t max_local_size[3] = {128, 128, 64};
  uint32_t max_groups[3] = {65535, 65535, 65535};
  uint32_t shared_bytes = 16384;
  uint32_t push_bytes = 128;
  uint64_t max_range = 1u << 27;             // bytes that one descriptor can span
  bool addresses = false;                    // buffer device addresses can be used
  bool streams_by_words = false;             // a processor: 16 bytes as four numbers of 32 bits, not two of 64
  bool storage16 = false, storage8 = false;  // elements of 16 and 8 bits in buffers, converted where they are read
  bool f16 = false, f64 = false;             // arithmetic
  bool rounds_f16 = false;  // conversions to f16 can be told to round to nearest even and to keep denormals
  // What the matrix units multiply, for kernels that ask for KernelRequest::matrices().
  std::array<MatrixShape, 32> matrix_shapes{};
  uint32_t matrix_shape_count = 0;
  // 16 x 16 x 16 products of this type are among them, with sums in f32.
  bool multiplies_squares(int32_t dtype) const {
    return std::any_of(matrix_shapes.begin(), matrix_shapes.begin() + matrix_shape_count,
                       [dtype](const MatrixShape& s) {
                         return s.m == 16 && s.n == 16 && s.k == 16 && s.a == dtype && s.b == dtype && s.c == TUFF_F32;
                       });
  }
  // Which way of binding kernels use, by their kind: see binding.hpp.
  bool streams_by_addresses = false, tiles_by_addresses = false, packed_by_addresses = false;
};

}  // namespace tuff
