// How GEMMs by wgmma store a tile: alpha, beta, bias, residual and activation, from the layout of sums in registers.
#pragma once

#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "kernels/gemm/native/tiles.hpp"
#include "kernels/gemm/native/wgmma_frame.hpp"
#include "kernels/native/ptx.hpp"

namespace tuff::gemm {

// Stores what the multiplying groups have. `thread` is the number among them.
void store_tile(ptx::Writer& w, const Wgmma& options, const WgmmaFrame& frame, const Tile& tile, const ptx::U32& thread,
                const ptx::U32& lane);

}  // namespace tuff::gemm
