// GEMM of f64 by the tensor cores of NVIDIA's Hopper GPUs, written in PTX: what the text of the kernel depends on, and
// its parameters.
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.hpp"
#include "planning/kernel_request.hpp"

namespace tuff::gemm {

struct Dmma {
  bool trans_a = false, trans_b = false;
  uint32_t rows = 128, columns = 128;  // of a tile: 64 or 128
  bool edge = false;                   // some tiles extend beyond C, or the last step beyond k
  bool beta = false;                   // C is read
  GemmPart c_part = GemmPart::all;     // tiles outside are left out
  bool pairs = true;   // A's and B's rows start at multiples of 16 bytes, so that two elements are loaded at once
  bool vector = true;  // … and C's, and n is even

  static constexpr uint32_t kHalf = 16;  // k of a half of a step: 128 bytes
  static constexpr uint32_t kStep = 2 * kHalf;
  static constexpr uint32_t kStages = 3;
  static constexpr uint32_t kThreads = 256;
  uint32_t shared_bytes() const;

  KernelRequest request() const;
  static Dmma read(const KernelRequest& request);

  // The parameters, after the addresses of A, B and C. Leading dimensions are in elements, strides in bytes.
  struct Push {
    uint32_t m, n, k, k_slice;
    uint32_t tiles_m, tiles_n, tiles;  // tiles: of all matrices and slices
    uint32_t matrices;                 // of the batch
    uint32_t lda, ldb, ldc, unused;
    uint64_t stride_a, stride_b;  // between matrices of the batch
    uint64_t stride_c, slice_c;   // between matrices, between the partial results of slices
    double alpha, beta;
  };
};

extern const KernelSource dmma_source;

}  // namespace tuff::gemm
