#include "kernels/gemm/native/wgmma_frame.hpp"

#include <cstddef>

namespace tuff::gemm {

using ptx::F32;
using ptx::kRowBytes;
using ptx::Pred;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

void WgmmaFrame::declare(Writer& w, const Wgmma& options) {
  a.base = w.pointer("a");
  b.base = w.pointer("b");
  c = w.pointer("c");
  if (options.has_operands()) {
    bias = w.pointer("bias");
    residual = w.pointer("residual");
  }
  if (options.scaled) scale_pointers = ptx::scale_pointers(w);
  w.block("push", options.windows != 0 ? sizeof(Wgmma::WindowPush) : sizeof(Wgmma::Push));
}

void WgmmaFrame::read_parameters(Writer& w, const Wgmma& options) {
  read<Wgmma::Push>(w, options, options.planes() * options.rows * kRowBytes);
}

void WgmmaFrame::make_barriers(Writer& w, const Wgmma& options, const U32& thread) {
  memory = ptx::aligned_memory(w);
  full = memory + options.stages() * options.stage_bytes();
  empty = full + options.stages() * ptx::kBarrierBytes;
  w.when(thread == 0, [&] {
    ptx::make_stage_barriers(full, empty, options.stages(), options.loaders() / ptx::kWarp,
                             Wgmma::kMultipliers / ptx::kWarp);
  });
  w.emit("bar.sync 0;");
}

U32 WgmmaFrame::descriptor(const TiledOperand& x, const U32& offset) const {
  const uint32_t blocks = x.along_k ? 1 : kWgmmaBlockBytes / 16;
  return ((memory + x.place + offset) >> 4) | (blocks << 16);
}

void multiply_halves(Writer& w, const Wgmma& options, const WgmmaFrame& frame, const U64& a, const U64& b,
                     const Pred& add, const std::vector<F32>& sums) {
  const char* const type = ptx::name_of_half(options.split ? TUFF_BF16 : options.type);
  w.emit("wgmma.mma_async.sync.aligned.m64n{}k16.f32.{}.{} {{{}}}, {}, {}, {}, 1, 1, {}, {};", options.group_columns(),
         type, type, ptx::list(sums), a.text, b.text, add.text, frame.a.along_k ? 0 : 1, frame.b.along_k ? 0 : 1);
}

}  // namespace tuff::gemm
