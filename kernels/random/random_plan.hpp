// What the planners of random numbers and of dropout share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/stream_device.hpp"
#include "planning/arithmetic.hpp"

namespace tuff::random {

// A part of a call that one dispatch computes.
struct Piece {
  uint64_t begin, count;   // elements
  uint64_t block, blocks;  // of the sequence: the first one, and how many
  uint64_t run;            // blocks of a lane
};

// Calls body(piece) for the pieces of n elements, of which the first is element `offset` of the sequence. Pieces are
// whole blocks.
template <typename Body>
void for_each_piece(const StreamDevice& device, uint64_t n, uint64_t offset, const Body& body) {
  for (uint64_t begin = 0; begin < n; begin += device.piece) {
    const uint64_t count = std::min(device.piece, n - begin), blocks = ceil_div(offset % 4 + count, 4);
    body(Piece{begin, count, offset / 4 + begin / 4, blocks, device.cpu ? device.items_each(blocks, 128) : 1});
  }
}

}  // namespace tuff::random
