// Rows of an operand that are windows of images (implicit_gemm.hpp), for GEMMs by wgmma: where the numbers of a window
// are, and which of its taps are inside the image.
#pragma once

#include <array>

#include "kernels/gemm/native/gemm_wgmma.hpp"
#include "kernels/gemm/native/wgmma_frame.hpp"
#include "kernels/native/ptx.hpp"

namespace tuff::gemm {

struct WgmmaWindows {
  ptx::Writer* writer = nullptr;
  ptx::Divider per_image, width, channels, taps;
  ptx::U32 step, valid, tap_step, tap_row, filter_step, filter_row;
  ptx::U32 tap_rows, first_taps;
  std::array<ptx::U32, 2> extent, before, stride;  // height and width

  // The parameters.
  void read(ptx::Writer& w, const Wgmma& options);

  // x << bits, which is 0 if bits is 32 or more.
  ptx::U32 shift_left(const ptx::U32& x, const ptx::U32& bits) const;
  ptx::U32 pieces_of_image(const TiledOperand& x) const;
  // A bit for each tap of the window in row y and this column that is inside the image.
  ptx::U32 bits_of_window(const ptx::U32& y, const ptx::U32& column) const;
  // Where the first window of an image at `base` begins, with padding.
  ptx::U64 before_image(const ptx::U64& base) const;

  // A window, by its number: in pieces from the first one, and with padding the bits of its taps.
  struct Row {
    ptx::U32 offset, taps;
  };
  Row row_of(const TiledOperand& x, const ptx::U32& image_pieces, const ptx::U32& number, bool padded) const;

  // Where in the windows an element of k is; variables that move on by a step of k.
  struct Walk {
    ptx::U32 channel, tap, tap_row;
    ptx::U32 bit;  // of its tap, with padding
  };
  Walk start_at(const ptx::U32& k, bool padded) const;
  // From a window's begin, in pieces of 2^piece_bits elements.
  ptx::U32 place_of(const Walk& walk, uint32_t piece_bits) const;
  void move_on(const Walk& walk, bool padded) const;

 private:
  void read_image();
  ptx::U32 bits_of_range(const ptx::U32& first, const ptx::U32& end) const;
  std::array<ptx::U32, 2> taps_inside(const ptx::U32& window, uint32_t axis, const ptx::U32& count) const;
};

}  // namespace tuff::gemm
