// Products with quantised weights and many rows of A on NVIDIA's Hopper GPUs, written in PTX: what the text of the
// kernel depends on, and its parameters.
#pragma once

#include <cstdint>

#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::quant {

struct Wgmma {
  int32_t type = 0;    // of A: f16 or bf16
  int32_t c_type = 0;  // f32, f16 or bf16
  int32_t format = 0;  // TUFF_QUANT_*: integers, q4_0, q8_0 or q4_K
  // For integers: where scales are. One for all (0), one for each row (1), or one for each block of a row (2).
  uint32_t scales = 0;
  int32_t scale_type = 0;
  uint32_t per_step = 1;  // scales of a row in a step: 1 (also of longer blocks), 2 or 4
  // Steps after which 16 bytes of a row's scales are loaded at once, with the zero points beside them: 2, 4, 8, 16 or
  // 32; k is a multiple of these steps. 0: in each step.
  uint32_t period = 0;
  bool zeros = false;  // there are zero points
  // For a tile: 128 rows of weights by 16, 32, 64, 128 or 256 rows of A; or 64 by at most 128, and k is divided between
  // the two groups that multiply.
  uint32_t rows = 128, columns = 256;
  bool edge = false;  // some tiles extend beyond C
  bool vector =
      false;  // four elements of C of 16 bits are stored at once: n, ldc and C's address are multiples of that
  bool bias = false, residual = false;
  int32_t activation = 0;  // TUFF_ACTIVATION_*, as far as ptx::activates() says

  static constexpr uint32_t kStep = 64;      // of k
  static constexpr uint32_t kThreads = 384;  // a warp group that loads, and two that multiply
  bool integers() const { return format < TUFF_QUANT_Q4_0; }
  bool negative() const { return format == TUFF_QUANT_I4 || format == TUFF_QUANT_I8; }  // of integers
  bool block_scales() const { return scales == 2; }
  // Whether weights are computed in f32 before they are rounded to A's type; otherwise in A's type, which is exact but
  // for the last product.
  bool in_floats() const;
  // Bytes of a row of weights in a step, and of the scales of a q4_K block, which are loaded with it.
  uint32_t row_bytes() const;
  uint32_t header_bytes() const { return format == TUFF_QUANT_Q4_K ? 16 : 0; }
  uint32_t scale_bytes() const;  // of a row that are loaded at once, 4 at least; 0: none
  uint32_t zero_bytes() const;   // likewise
  uint32_t slot_bytes() const { return rows * (scale_bytes() + zero_bytes()); }
  // Places for scales of so many periods: as a stage is loaded again while the multiplying groups are at most stages()
  // steps behind, they have finished with the one that is overwritten.
  uint32_t slots() const { return period != 0 ? (stages() + period - 2) / period + 1 : 0; }
  uint32_t place_of_slots() const;  // in shared memory
  uint32_t stage_bytes() const;
  uint32_t stages() const;
  // Steps that the loading group has in flight while it starts another one. The multiplying groups still use a stage
  // when they start on the next.
  uint32_t lag() const;
  uint32_t shared_bytes() const;
  bool divides_k() const { return rows == 64; }
  // That fit a multiprocessor at once. gelu does not have enough registers if two do.
  uint32_t blocks() const { return columns <= 32 && activation != TUFF_ACTIVATION_GELU ? 2 : 1; }
  bool legal() const;  // whether the kernel has these options together

  KernelRequest request() const;
  static Wgmma read(const KernelRequest& request);

  // The parameters, after the addresses of weights, scales, zero points, A, C, bias and residual, of which those that
  // are missing are null.
  struct Push {
    uint32_t n, m, k;
    uint32_t tiles_n, tiles_m, tiles;
    uint32_t row_bytes;    // of weights
    uint32_t row_scales;   // scales of a row of weights
    uint32_t block_shift;  // a scale's number in its row is k >> block_shift
    uint32_t lda;          // in units of 16 bytes
    uint32_t ldc, ld_residual;
    float alpha;
  };
};

extern const KernelSource wgmma_source;

}  // namespace tuff::quant
