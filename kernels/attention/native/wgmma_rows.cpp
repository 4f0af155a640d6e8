#include "kernels/attention/native/wgmma_rows.hpp"

namespace tuff::attention {

void start_loading(const RowLoad& x) {
  ptx::Writer& w = *x.to.writer;
  const uint32_t whole = x.dim / 8, stored = x.padded / 8;  // pieces of a row
  for (uint32_t pass = 0; pass < x.rows / kPassRows; ++pass) {
    const ptx::U32 bytes = select(x.own + pass * x.further < x.end, w.constant(16), w.constant(0));
    for (uint32_t block = 0; block * 8 < stored; ++block) {
      ptx::U32 size = bytes;
      if (block * 8 + 8 > whole) size = select(x.piece < whole - block * 8, bytes, w.constant(0));
      ptx::Guard guard;
      if (block * 8 + 8 > stored) guard = ptx::if_true(x.piece < stored - block * 8);
      w.emit(guard, "cp.async.cg.shared.global.L2::128B [{}+{}], [{}+{}], 16, {};", x.to.text,
             (block * x.rows + pass * kPassRows) * ptx::kRowBytes, x.at.text, block * ptx::kRowBytes, size.text);
    }
    if (pass + 1 < x.rows / kPassRows) w.assign(x.at, x.at + x.step);
  }
}

}  // namespace tuff::attention
