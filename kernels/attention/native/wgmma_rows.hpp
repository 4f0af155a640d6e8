// How the kernels of attention in PTX that use wgmma load rows of 16-bit elements into shared memory and store them.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/native/elements.hpp"
#include "kernels/native/hopper.hpp"
#include "kernels/native/ptx.hpp"

namespace tuff::attention {

constexpr uint32_t kPassRows = ptx::kGroup / 8;  // rows that a warp group loads at once, a thread one of eight pieces

// What a thread of the loading group loads: of every `further`-th row from `own` on, the pieces of 16 bytes that have
// its number in blocks of 64 elements. Rows from `end` on, and elements from `dim` up to `padded`, become zeros.
struct RowLoad {
  ptx::U32 to, piece;  // where the first one goes; the thread's number
  ptx::U32 own, end;
  ptx::U64 at, step;  // of the first one in the tensor, which is moved; from one pass to the next
  uint32_t further;
  uint32_t rows, dim, padded;
};
void start_loading(const RowLoad& load);

// Where a thread of four stores its part of a row of results. A piece are eight elements.
struct RowStore {
  ptx::U64 pairs, eights;  // of the thread's pair in the first piece; of its piece among the first four
  ptx::Pred odd, high;     // bits 0 and 1 of its number
  ptx::Pred exists;
};
// result(piece, i): element i of the thread's pair in a piece, of `pieces` of them.
template <typename Result>
void store_row(int32_t dtype, const RowStore& to, uint32_t pieces, const Result& result) {
  ptx::Writer& w = *to.pairs.writer;
  const ptx::Guard exists = ptx::if_true(to.exists);
  uint32_t piece = 0;
  for (; piece + 4 <= pieces; piece += 4) {
    std::array<ptx::U32, 4> v;
    for (uint32_t i = 0; i < 4; ++i) v[i] = ptx::packed_pair(dtype, result(piece + i, 0), result(piece + i, 1));
    ptx::transpose_in_four(v, to.odd, to.high);
    w.emit(exists, "st.global.v4.b32 [{}+{}], {{{}, {}, {}, {}}};", to.eights.text, piece * 16, v[0].text, v[1].text,
           v[2].text, v[3].text);
  }
  for (; piece < pieces; ++piece) {
    const ptx::U32 pair = ptx::packed_pair(dtype, result(piece, 0), result(piece, 1));
    w.emit(exists, "st.global.b32 [{}+{}], {};", to.pairs.text, piece * 16, pair.text);
  }
}

}  // namespace tuff::attention
