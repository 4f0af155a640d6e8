// How reductions are divided among lanes and workgroups, and how they end: the shapes of reduce_rows.comp and
// reduce_columns.comp, and of what reduces formulas in the same way.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/common/check.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/reduce/reduce_ops.hpp"
#include "planning/arithmetic.hpp"

namespace tuff::reduce {

// Elements of the segments that each row is cut into, a multiple of 8; 0: rows are not cut.
inline uint64_t row_segment(const StreamDevice& device, uint64_t rows, uint64_t length) {
  // Long rows are always cut; shorter ones only where the rows alone would leave cores idle.
  const uint64_t longest = device.cpu ? 1u << 17 : 1u << 22;
  const uint64_t shortest = device.cpu ? 1u << 12 : 1u << 14;
  const uint64_t wanted = (device.cpu ? 4 : 8) * device.cores;  // pieces that fill the device
  uint64_t segment = 0;
  if (rows < wanted && length >= 2 * shortest) {
    segment = device.cpu ? length * rows / wanted : shortest;
    segment = std::clamp(segment, shortest, longest);
  } else if (length > longest) {
    segment = longest;
  }
  return round_up(segment, 8);
}

// Segments that an axis of this length is cut into, if lanes lie along the other axes.
inline uint64_t column_segments(const StreamDevice& device, uint64_t lanes, uint64_t length) {
  const uint64_t wanted = device.cores * (device.cpu ? 4 * device.subgroup : 1024);
  uint64_t segments = 1;
  if (lanes < wanted / 2 && length >= 64) {
    segments = std::clamp<uint64_t>(ceil_div(wanted, lanes), 1, length / 32);
  }
  segments = std::max(segments, ceil_div(length, 1u << 12));
  return std::max<uint64_t>(segments, 1);
}

struct RowShape {
  uint32_t lanes, workgroup, unroll, run;
  bool shared;
};

// parts: vec4s in a block; most: blocks that may be in flight.
inline RowShape row_shape(const StreamDevice& device, uint64_t pieces, uint64_t elements, uint32_t parts,
                          uint64_t most) {
  const uint64_t blocks = std::max<uint64_t>(ceil_div(elements, 4 * parts), 1);
  if (device.cpu) {
    // Short and numerous rows get one lane each, others a subgroup. Workgroups process several rows, which amortises
    // the cost of a workgroup (about 100 ns), but leave several workgroups for each core.
    const bool narrow = elements <= 256 && pieces >= 16 * device.cores;
    const uint32_t lanes = narrow ? 1 : device.subgroup;
    const uint64_t taken = pieces * lanes / device.subgroup;  // workgroups, if each processed its rows in one step
    const uint64_t run = few_values(std::min(taken / (8 * device.cores), 4096 / blocks), 1, 64);
    return {lanes, device.subgroup, blocks >= 4 && most > 1 ? 4u : 1u, static_cast<uint32_t>(run), false};
  }
  const auto unroll_of = [most](uint64_t each) {
    each = std::min(each, most);
    return each >= 8 ? 8u : each >= 4 ? 4u : most == 2 && each == 2 ? 2u : 1u;
  };
  if (elements <= 2048 || pieces >= 256 * device.cores) {
    const uint64_t lanes = std::min<uint64_t>(std::bit_ceil(ceil_div(blocks, 4)), device.subgroup);
    return {static_cast<uint32_t>(lanes), device.workgroup, unroll_of(blocks / lanes), 1, false};
  }
  const uint64_t each = blocks / device.workgroup;
  const uint32_t unroll = most >= 16 && each >= 16 && each % 16 == 0 ? 16 : unroll_of(each);
  return {device.workgroup, device.workgroup, unroll, 1, device.workgroup > device.subgroup};
}

// TUFF_FINISH.
inline int finish_of(Result result) {
  switch (result) {
    case Result::mean:
    case Result::variance: return 1;
    case Result::root: return 2;
    case Result::deviation: return 3;
    case Result::logarithm: return 4;
    default: return 0;
  }
}

template <typename Push>
void set_divisor(Push& push, double divisor) {
  push.divisor = static_cast<float>(divisor);
  const auto words = std::bit_cast<uint64_t>(divisor);
  push.divisor_low = low_word(words), push.divisor_high = high_word(words);
}

}  // namespace tuff::reduce
