// Products with integers of 4 or 8 bits and few rows of A on NVIDIA's Hopper GPUs, written in PTX: what the text of the
// kernel depends on, and its parameters.
#pragma once

#include <cstdint>

#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::quant {

struct Mma {
  int32_t type = 0;      // of A, and of scales of blocks: f16 or bf16
  int32_t c_type = 0;    // f32, f16 or bf16
  uint32_t bits = 4;     // of an integer: 4, or beside f16 8
  bool negative = true;  // integers are signed
  // Where scales are, of type scale_type: one for all (0), one for each row (1), or one for each block of a row (2),
  // which is then `type`.
  uint32_t scales = 2;
  int32_t scale_type = 0;
  bool zeros = false;    // there are zero points
  uint32_t columns = 8;  // rows of A: at most 8, 16 or 32
  uint32_t tiles = 2;    // of 16 rows of weights in a block: 1 or 2
  bool whole = true;     // k is a multiple of step()
  bool bias = false, residual = false;
  int32_t activation = 0;  // TUFF_ACTIVATION_*, as far as ptx::activates() says

  static constexpr uint32_t kWarps = 8, kThreads = 32 * kWarps, kMaxColumns = 32;
  uint32_t piece() const { return 128 / bits; }  // integers that a thread loads at once, which have one scale
  uint32_t step() const { return 4 * piece(); }  // of k
  uint32_t rows() const { return 16 * tiles; }
  // That fit a multiprocessor's registers at once; two do not have room for many sums and the scales of blocks, or zero
  // points.
  uint32_t blocks() const {
    return (columns == 32 && (bits == 4 || scales == 2)) || (zeros && tiles == 2 && columns >= 16) ? 1 : 2;
  }
  uint32_t sums_row() const { return columns + 1; }  // in shared memory
  uint32_t shared_bytes() const;
  bool legal() const;  // whether the kernel has these options together

  KernelRequest request() const;
  static Mma read(const KernelRequest& request);

  // The parameters, after the addresses of weights, scales, A, C, bias and residual, of which those that are missing
  // are null, and of zero points if there are any.
  struct Push {
    uint32_t n, m, k;
    uint32_t row_scales;   // scales of a row of weights
    uint32_t block_shift;  // a scale's number in its row is k >> block_shift
    uint32_t lda, ldc, ld_residual;
    float alpha;
  };
};

extern const KernelSource mma_source;

}  // namespace tuff::quant
