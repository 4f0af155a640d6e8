// How rows are distributed in kernels that read each row twice (softmax, normalisations): held in the registers of some
// lanes, or cut into segments if they are too long for that.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "kernels/common/stream_device.hpp"

namespace tuff {

// A row in the registers of `lanes` lanes, each with `blocks` blocks of `block` elements.
struct RegisterRows {
  uint32_t lanes, workgroup, blocks;
  bool shared;  // the lanes are of more than one subgroup
};

// Returns nothing if no shape can hold a row.
inline std::optional<RegisterRows> register_rows(const StreamDevice& device, uint64_t rows, uint64_t extent,
                                                 uint64_t block) {
  const uint64_t max_blocks = 64 / block;  // 64 registers of a lane
  const uint64_t blocks = ceil_div(extent, block);
  const auto shape = [&](uint64_t lanes, uint32_t workgroup) {
    uint64_t each = ceil_div(blocks, lanes);
    if (each > 4) each = (each + 3) / 4 * 4;  // few different kernels
    return RegisterRows{static_cast<uint32_t>(lanes), workgroup, static_cast<uint32_t>(each), lanes > device.subgroup};
  };
  uint64_t lanes = 1;
  if (device.cpu) {
    // One lane per row if rows are short and many.
    if (extent > 64 || rows < 16 * device.cores) lanes = device.subgroup;
    if (blocks > lanes * max_blocks) return std::nullopt;
    return shape(lanes, device.workgroup);
  }
  while (lanes < device.subgroup && blocks > 2 * lanes) lanes *= 2;
  if (blocks <= lanes * max_blocks / 2) return shape(lanes, device.workgroup);
  if (blocks <= device.workgroup * max_blocks) return shape(device.workgroup, device.workgroup);
  // Half of the registers: the largest workgroups have no more per lane.
  if (blocks <= device.largest * max_blocks / 2) return shape(device.largest, device.largest);
  return std::nullopt;
}

struct RowSegments {
  uint64_t count, size;  // of each row; size in elements, a multiple of 8
};

inline RowSegments cut_rows(const StreamDevice& device, uint64_t rows, uint64_t extent) {
  const uint64_t longest = device.cpu ? 1u << 15 : 1u << 20;  // 256 steps of a lane
  const uint64_t shortest = device.cpu ? 1u << 12 : 1u << 13;
  const uint64_t wanted = (device.cpu ? 2 : 4) * device.cores;
  uint64_t size = std::min(extent, longest);
  if (rows < wanted) size = std::clamp(extent * rows / wanted, std::min(shortest, size), size);
  size = (size + 7) / 8 * 8;
  return {ceil_div(extent, size), size};
}

// What one dispatch takes of rows: whole ones, or some segments of one. `part` is the number of the first segment.
struct RowPiece {
  uint64_t row, rows, begin, extent, segments, part;
};

template <typename Visit>
void for_each_piece(uint64_t most, uint64_t rows, uint64_t extent, const RowSegments& cut, const Visit& visit) {
  if (extent <= most) {
    uint64_t step = most / extent;
    if (step >= 8) step -= step % 8;  // keeps pieces as aligned as the whole
    for (uint64_t row = 0; row < rows; row += step) {
      visit(RowPiece{row, std::min(step, rows - row), 0, extent, cut.count, row * cut.count});
    }
    return;
  }
  const uint64_t step = most / cut.size;
  for (uint64_t row = 0; row < rows; ++row) {
    for (uint64_t s = 0; s < cut.count; s += step) {
      const uint64_t count = std::min(step, cut.count - s), begin = s * cut.size;
      visit(RowPiece{row, 1, begin, std::min(count * cut.size, extent - begin), count, row * cut.count + s});
    }
  }
}

}  // namespace tuff
