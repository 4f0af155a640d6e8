// GEMM with few rows or columns on NVIDIA's Hopper GPUs, written in PTX: what the text of the kernel depends on, and
// its parameters.
#pragma once

#include <cstdint>

#include "planning/element_type.hpp"
#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::gemm {

// The long operand has many rows of k (or columns), the short one at most 64 of them.
struct Narrow {
  // For the long and the short operand: f16 or bf16, the same; or an 8-bit float, and an 8-bit float, f16 or bf16.
  int32_t type = 0, short_type = 0;
  int32_t c_type = 0;          // f32, f16, bf16; or an 8-bit float, which is not read: no beta, bias or residual
  bool long_along_k = false;   // its rows run along k
  bool short_along_k = false;  // …: always beside a long operand of 8-bit floats
  bool transposed = false;     // the long operand is B: rows of C belong to the short one
  // For the long operand in a tile: a multiple of 16 from 32 to 128, and a power of two if rows run across k.
  uint32_t rows = 64;
  uint32_t columns = 8;   // of the short operand: 8, 16, 32 or 64
  uint32_t blocks = 2;    // that share a multiprocessor's memory: 1 or 2
  bool beta = false;      // C is read
  int32_t bias_axis = 0;  // TUFF_BIAS_*
  bool residual = false;
  int32_t activation = 0;  // TUFF_ACTIVATION_*, as far as ptx::activates() says
  bool scaled = false;     // there are scales

  uint32_t long_bytes() const { return kFloat8Types.has(type) ? 1 : 2; }  // of an element
  uint32_t short_bytes() const { return kFloat8Types.has(short_type) ? 1 : 2; }
  uint32_t step() const { return 128 / long_bytes(); }  // of k
  // As which 8-bit floats are multiplied.
  int32_t multiplied_type() const { return short_bytes() == 2 ? short_type : TUFF_F16; }
  static constexpr uint32_t kWarps = 4, kThreads = 32 * kWarps;
  static constexpr uint32_t kMaxColumns = 64, kMinStages = 3;
  // Warps that compute a step together. A block's teams take k step by step in turn.
  uint32_t team() const { return rows == 128 && columns >= 32 ? 2 : 1; }
  uint32_t teams() const { return kWarps / team(); }
  bool fits() const;  // into a multiprocessor's registers and shared memory
  uint32_t stage_bytes() const { return (rows * long_bytes() + columns * short_bytes()) * step(); }
  uint32_t stages() const;  // steps that a team keeps in shared memory
  uint32_t shared_bytes() const;
  bool has_operands() const { return bias_axis != 0 || residual; }

  bool legal() const;  // whether the kernel has these options together

  KernelRequest request() const;
  static Narrow read(const KernelRequest& request);

  // The parameters, after the addresses of the long and the short operand and of C, of bias and residual if there is
  // either, and of scale_a, scale_b and scale_c if there is any; those that are missing are null.
  struct Push {
    uint32_t rows, columns;  // of the long operand, of the short one
    uint32_t k, k_slice;     // of all, and of a block
    uint32_t tiles, parts;   // tiles of a matrix, blocks of a tile
    uint32_t ldc, ld_residual;
    uint64_t ld_long, ld_short;          // in bytes
    uint64_t stride_long, stride_short;  // between matrices of the batch, in bytes
    uint64_t stride_c, slice_c;          // between matrices, between the partial results of parts, in bytes
    uint64_t stride_bias, stride_residual;
    float alpha, beta;
  };
};

extern const KernelSource narrow_source;

}  // namespace tuff::gemm
