// GEMM of f32 by tensor cores of 16 bits, written in PTX: what a planner chooses (gemm_split.cpp).
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::gemm {

// What the text of the kernel depends on. A and B are f32.
struct Split {
  static constexpr uint32_t kRows = 128, kColumns = 128;  // of a tile

  int32_t c_type = TUFF_F32;  // what is stored: TUFF_F32, TUFF_F16 or TUFF_BF16
  bool trans_a = false, trans_b = false;
  bool quads_a = false, quads_b = false;  // rows, as they are stored, are read four numbers at a time
  bool edge = false;                      // some tiles extend beyond C, or the last step beyond k
  bool beta = false;                      // C is read
  int32_t bias_axis = 0;                  // TUFF_BIAS_*
  bool residual = false;
  int32_t activation = 0;           // TUFF_ACTIVATION_*, as far as ptx::activates() says
  bool scaled = false;              // there are scales
  bool vector = false;              // as in Wgmma
  GemmPart c_part = GemmPart::all;  // tiles outside are left out

  // Rows of A (1) or of B (2) are windows of images, in quads, and that operand is not transposed (A) or is (B). They
  // may begin outside the image.
  uint32_t windows = 0;

  // Leading dimensions of A and B are in elements, of windows in quads, and below kMaxLd. With windows a
  // Wgmma::WindowPush, whose lengths are in quads.
  using Push = Wgmma::Push;
  static constexpr uint64_t kMaxLd = uint64_t{1} << 30;

  Wgmma shared() const;  // what it shares with gemm_wgmma.cpp
  KernelRequest request() const;
  static Split read(const KernelRequest& request);
};

extern const KernelSource split_source;

}  // namespace tuff::gemm
