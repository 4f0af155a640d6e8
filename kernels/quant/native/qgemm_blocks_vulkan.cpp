// Plans the sums of products of integers whose weights have scales of blocks for NVIDIA's Hopper GPUs: a kernel in PTX
// (qgemm_blocks.cpp).
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/native/refusals.hpp"
#include "kernels/quant/native/qgemm_blocks.hpp"
#include "kernels/quant/quant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"

namespace tuff::quant {
namespace {

Refusals refused;
constexpr uint64_t kPiece = 16, kMost = UINT32_MAX;

// Blocks of a step; 0 if the kernel does not have them.
uint32_t blocks_of_step(uint64_t block) {
  if (block % Blocks::kStep == 0) return 1;
  return block == 32 || block == 64 ? static_cast<uint32_t>(Blocks::kStep / block) : 0;
}

bool computes(const DeviceTraits& traits, const BlockSums& x) {
  if (!traits.hopper || refused.has(0) || blocks_of_step(x.block) == 0) return false;
  if (x.k % kPiece != 0 || x.lda % kPiece != 0 || x.ldw % kPiece != 0) return false;
  if (x.a->offset % kPiece != 0 || x.weights->offset % kPiece != 0) return false;
  // k with the steps beyond it; where rows are, in pieces.
  const uint64_t round = Blocks::kTogether * std::max<uint64_t>(x.block, Blocks::kStep);
  return x.k <= kMost - round && x.rows * x.lda <= kMost * kPiece && x.columns * x.ldw <= kMost * kPiece;
}

}  // namespace

bool record_block_sums(Recorder& recorder, const BlockSums& x) {
  const DeviceTraits& traits = recorder.traits();
  if (!computes(traits, x)) return false;
  Blocks kernel;
  kernel.scale_type = x.scale_type;
  kernel.per_step = blocks_of_step(x.block);
  const uint64_t tiles_n = ceil_div(x.columns, Blocks::kRows), tiles_m = ceil_div(x.rows, Blocks::kColumns);
  const uint64_t tiles = tiles_n * tiles_m, blocks = ceil_div(x.k, x.block);
  const uint64_t bytes = (x.rows - 1) * x.lda + (x.columns - 1) * x.ldw + 2 * x.k + x.rows * x.columns * 4;
  Dispatch dispatch("qgemm blocks");
  dispatch.operand(x.weights, 0, (x.columns - 1) * x.ldw + x.k, Access::read)
      .operand(x.scales, 0, x.columns * blocks * dtype_size(x.scale_type), Access::read)
      .operand(x.a, 0, (x.rows - 1) * x.lda + x.k, Access::read)
      .operand(x.sums, 0, x.rows * x.columns * 4, Access::write)
      .push(Blocks::Push{.n = narrow(x.columns),
                         .m = narrow(x.rows),
                         .k = narrow(x.k),
                         .tiles_n = narrow(tiles_n),
                         .tiles_m = narrow(tiles_m),
                         .tiles = narrow(tiles),
                         .blocks = narrow(blocks),
                         .steps_of_block = narrow(std::max<uint64_t>(x.block / Blocks::kStep, 1)),
                         .rounds = narrow(ceil_div(blocks, Blocks::kTogether)),
                         .lda = narrow(x.lda / kPiece),
                         .ldw = narrow(x.ldw / kPiece)})
      .groups(narrow(std::min<uint64_t>(tiles, traits.cores != 0 ? traits.cores : 16)))
      .work(static_cast<double>(bytes),
            2.0 * static_cast<double>(x.rows) * static_cast<double>(x.columns) * static_cast<double>(x.k))
      .variant("native");
  log(TUFF_LOG_DISPATCH, "qgemm blocks native {}x{}x{}: {} blocks of {}, {} tiles", x.rows, x.columns, x.k, blocks,
      x.block, tiles);
  // Addresses have 64 bits.
  return refused.dispatch(recorder, kernel.request().wide(true), dispatch, "qgemm", 0);
}

}  // namespace tuff::quant
