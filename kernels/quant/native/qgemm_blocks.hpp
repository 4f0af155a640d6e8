// Products of integers of 8 bits whose weights have scales of blocks, on NVIDIA's Hopper GPUs, written in PTX: what the
// text of the kernel depends on, and its parameters.
#pragma once

#include <cstdint>

#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::quant {

struct Blocks {
  int32_t scale_type = 0;  // f32, f16 or bf16
  uint32_t per_step = 1;   // blocks of a step: 4 of 32 numbers, 2 of 64, or 1 of a multiple of 128

  static constexpr uint32_t kStep = 128;                  // of k
  static constexpr uint32_t kRows = 128, kColumns = 128;  // of a tile: rows of weights, rows of A
  static constexpr uint32_t kThreads = 384;               // a warp group that loads, and two that multiply
  static constexpr uint32_t kTogether = 4;                // blocks whose sums follow one another
  static constexpr uint32_t kStages = 6;
  static constexpr uint32_t kStageBytes = (kRows + kColumns) * kStep;
  static uint32_t shared_bytes();

  KernelRequest request() const;
  static Blocks read(const KernelRequest& request);

  // The parameters, after the addresses of weights, scales, A and the sums.
  struct Push {
    uint32_t n, m, k;
    uint32_t tiles_n, tiles_m, tiles;
    uint32_t blocks;          // of k: scales of a row of weights
    uint32_t steps_of_block;  // 1, if a step has several blocks
    uint32_t rounds;          // of kTogether blocks
    uint32_t lda, ldw;        // in units of 16 bytes
  };
};

extern const KernelSource blocks_source;

}  // namespace tuff::quant
