// A GEMM whose B is made where it is packed, instead of read from memory: weights that are stored otherwise.
#pragma once

#include "kernels/gemm/gemm.hpp"

namespace tuff::gemm {

// A piece of op(B) in panels, in the order that gemm_pack.comp describes.
struct PanelPiece {
  uint64_t first, rows;        // columns of op(B)
  uint64_t first_step, steps;  // of k
  uint32_t panel_rows, depth;
  uint64_t panels;
  const Buffer* to;
  uint64_t offset;  // into it, in bytes
};

class PanelSource {
 public:
  virtual ~PanelSource() = default;
  virtual void pack(Recorder& recorder, const PanelPiece& piece) const = 0;
};

// Records the GEMM if the planner chooses packed operands for it. Otherwise returns false, and nothing is recorded. Of
// args.b only the type is used, which is f32, and that it begins at a multiple of 16 bytes.
bool record_gemm_with_panels(Recorder& recorder, const GemmArgs& args, const PanelSource& b);

}  // namespace tuff::gemm
