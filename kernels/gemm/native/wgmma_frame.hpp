// What the GEMMs by wgmma share, whichever way they load and multiply: their parameters and barriers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "kernels/gemm/native/tiles.hpp"
#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/ptx.hpp"

namespace tuff::gemm {

constexpr uint32_t kWgmmaBlockBytes = Wgmma::kStep * ptx::kRowBytes;  // 64 elements along m or n, by 64 of k

struct WgmmaFrame : Tiled {
  ptx::U64 c, bias, residual;
  std::array<ptx::U64, 3> scale_pointers;
  ptx::U32 memory, full, empty;  // the stages, and their barriers
  ptx::Divider per_image;        // with windows
  // Of a thread of the multiplying groups.
  std::vector<ptx::F32> sums;
  std::vector<ptx::U32> integer_sums;
  ptx::Scales scales;

  // In this order.
  void declare(ptx::Writer& w, const Wgmma& options);
  void read_parameters(ptx::Writer& w, const Wgmma& options);
  void make_barriers(ptx::Writer& w, const Wgmma& options, const ptx::U32& thread);

  // The low word of a matrix descriptor: where the operand is, in units of 16 bytes, and the distance of blocks along m
  // or n.
  ptx::U32 descriptor(const TiledOperand& x, const ptx::U32& offset) const;
};

// Adds the products of 16 of k, or sets the sums to them.
void multiply_halves(ptx::Writer& w, const Wgmma& options, const WgmmaFrame& frame, const ptx::U64& a,
                     const ptx::U64& b, const ptx::Pred& add, const std::vector<ptx::F32>& sums);

}  // namespace tuff::gemm
