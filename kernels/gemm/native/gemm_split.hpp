// GEMM of f32 by tensor cores of 16 bits, written in PTX: what a planner chooses (gemm_split.cpp).
#pragma once

#include <cstdint>

#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "planning/kernel_request.hpp"
#include "tuff/tuff.h"

namespace tuff::gemm {

// What the text of the kernel depends on: options of gemm_wgmma.cpp, with which it shares what is around the
// multiplications, and its own. A and B are f32. windows: 1 or 2, in quads; that operand is not transposed (A) or is
// (B), and its windows are padded.
struct Split : Wgmma {
  static constexpr uint32_t kRows = 128, kColumns = 128;  // of a tile
  Split() {
    type = b_type = TUFF_F32;
    rows = kRows, columns = kColumns;
    rows = columns = 128;
    split = true;
  }

  bool quads_a = false, quads_b = false;  // rows, as they are stored, are read four numbers at a time
  GemmPart c_part = GemmPart::all;        // tiles outside are left out

  KernelRequest request() const;
  static Split read(const KernelRequest& request);
  bool legal() const;

  // In the push block leading dimensions of A and B are in elements, of windows in quads, and below this.
  static constexpr uint64_t kMaxLd = uint64_t{1} << 30;
};

extern const KernelSource split_source;

}  // namespace tuff::gemm
