#include "kernels/gemm/native/wgmma_windows.hpp"

#include <cstddef>

namespace tuff::gemm {

using ptx::multiply_wide;
using ptx::Pred;
using ptx::quotient;
using ptx::Type;
using ptx::U32;
using ptx::U64;
using ptx::Writer;

void WgmmaWindows::read(Writer& w, const Wgmma& options) {
  writer = &w;
  const auto number = [&](size_t offset) { return w.parameter("push", offset); };
  per_image = ptx::make_divider(number(offsetof(Wgmma::WindowPush, per_image)));
  const U32 width_and_step = number(offsetof(Wgmma::WindowPush, width_step));
  width = ptx::make_divider(width_and_step & 0xffffu);
  step = width_and_step >> 16;
  const U32 all_channels = number(offsetof(Wgmma::WindowPush, channels));
  channels = ptx::make_divider(all_channels & 0xffffu);
  valid = all_channels >> 16;
  const U32 all_taps = number(offsetof(Wgmma::WindowPush, taps));  // in a row; rows of them above bit 16
  tap_rows = all_taps >> 16;
  taps = ptx::make_divider(all_taps & 0xffffu);
  tap_step = number(offsetof(Wgmma::WindowPush, tap_step));
  tap_row = number(offsetof(Wgmma::WindowPush, tap_row));
  if (options.padded) read_image();
  if (!options.has_filter()) return;
  filter_step = number(offsetof(Wgmma::Push, stride_b) + offsetof(Wgmma::FilterPush, tap_step));
  filter_row = number(offsetof(Wgmma::Push, stride_b) + offsetof(Wgmma::FilterPush, tap_row));
}

void WgmmaWindows::read_image() {
  Writer& w = *writer;
  const U32 extents = w.parameter("push", offsetof(Wgmma::Push, stride_bias));
  const U32 small = w.parameter("push", offsetof(Wgmma::Push, stride_bias) + 4);
  for (uint32_t axis = 0; axis < 2; ++axis) {
    extent[axis] = (extents >> (16 * axis)) & 0xffffu;
    before[axis] = (small >> (8 * axis)) & 0xffu;
    stride[axis] = (small >> (16 + 8 * axis)) & 0xffu;
  }
  // A bit for the first tap of each row.
  first_taps = w.variable(w.constant(0));
  const U32 at = w.variable(w.constant(0)), row = w.variable(w.constant(0));
  w.repeat([&] { return row < tap_rows; },
           [&] {
             w.assign(first_taps, first_taps | shift_left(w.constant(1), at));
             w.assign(at, at + taps.number);
             w.assign(row, row + 1);
           });
}

U32 WgmmaWindows::shift_left(const U32& x, const U32& bits) const {
  return writer->result<Type::u32>("shl.b32", x, bits);
}

// Bits first to end - 1.
U32 WgmmaWindows::bits_of_range(const U32& first, const U32& end) const {
  const U32 one = writer->constant(1);
  return (shift_left(one, end) - 1) & ((shift_left(one, first) - 1) ^ 0xffffffffu);
}

// The taps along an axis, of `count`, that are inside the image, for the window with this number: first and end.
std::array<U32, 2> WgmmaWindows::taps_inside(const U32& window, uint32_t axis, const U32& count) const {
  const U32 zero = writer->constant(0), begin = window * stride[axis] - before[axis];
  const U32 first = ptx::max_signed(writer->result<Type::u32>("sub.s32", zero, begin), zero);
  const U32 end = ptx::max_signed(ptx::min_signed(extent[axis] - begin, count), zero);
  return {first, end};
}

U32 WgmmaWindows::pieces_of_image(const TiledOperand& x) const {
  const U32 pieces = writer->make<Type::u32>();
  const U64 shifted = writer->make<Type::u64>();
  writer->emit("shr.u64 {}, {}, 4;", shifted.text, x.stride.text);
  writer->emit("cvt.u32.u64 {}, {};", pieces.text, shifted.text);
  return pieces;
}

U32 WgmmaWindows::bits_of_window(const U32& y, const U32& column) const {
  const auto [first_x, end_x] = taps_inside(column, 1, taps.number);
  const auto [first_y, end_y] = taps_inside(y, 0, tap_rows);
  const U32 rows = first_taps & bits_of_range(first_y * taps.number, end_y * taps.number);
  return bits_of_range(first_x, end_x) * rows;
}

U64 WgmmaWindows::before_image(const U64& base) const {
  const U32 behind = before[0] * tap_row + before[1] * tap_step;
  return writer->result<Type::u64>("sub.u64", base, multiply_wide(behind, writer->constant(16)));
}

WgmmaWindows::Row WgmmaWindows::row_of(const TiledOperand& x, const U32& image_pieces, const U32& number,
                                       bool padded) const {
  const U32 image = quotient(number, per_image), window = number - image * per_image.number;
  const U32 y = quotient(window, width), column = window - y * width.number;
  const U32 offset = image * image_pieces + y * x.ld + column * step;
  Row row;
  row.offset = writer->variable(offset);
  if (padded) row.taps = writer->variable(bits_of_window(y, column));
  return row;
}

WgmmaWindows::Walk WgmmaWindows::start_at(const U32& k, bool padded) const {
  const U32 number = quotient(k, channels);
  Walk walk;
  walk.channel = writer->variable(k - number * channels.number);
  const U32 row = quotient(number, taps);
  walk.tap_row = writer->variable(row);
  walk.tap = writer->variable(number - row * taps.number);
  if (padded) walk.bit = writer->variable(shift_left(writer->constant(1), number));
  return walk;
}

U32 WgmmaWindows::place_of(const Walk& walk, uint32_t piece_bits) const {
  return walk.tap_row * tap_row + walk.tap * tap_step + (walk.channel >> piece_bits);
}

void WgmmaWindows::move_on(const Walk& walk, bool padded) const {
  Writer& w = *writer;
  // A tap has 32 channels or more, so a step of 64 leaves at most two behind.
  w.assign(walk.channel, walk.channel + Wgmma::kStep);
  for (uint32_t i = 0; i < 2; ++i) {
    const Pred next = walk.channel >= channels.number;
    w.assign(walk.channel, select(next, walk.channel - channels.number, walk.channel));
    w.assign(walk.tap, select(next, walk.tap + 1, walk.tap));
    if (padded) w.assign(walk.bit, select(next, walk.bit << 1, walk.bit));
    const Pred next_row = walk.tap >= taps.number;
    w.assign(walk.tap, select(next_row, w.constant(0), walk.tap));
    w.assign(walk.tap_row, select(next_row, walk.tap_row + 1, walk.tap_row));
  }
}

}  // namespace tuff::gemm
