// How rows along any axis are shared by lanes, in kernels that read a row twice from memory (cross-entropy, softmax's
// gradient): by 1 … a subgroup of lanes, or by a workgroup; where rows are few or very long, a workgroup takes a
// segment of one, in two passes.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/check.hpp"
#include "kernels/common/row_plan.hpp"
#include "kernels/common/stream_device.hpp"
#include "planning/forced_variant.hpp"

namespace tuff::softmax {

class SharedRows {
 public:
  SharedRows(const DeviceTraits& traits, int32_t dtype, const AxisView& axis_view)
      : view(axis_view),
        device(stream_device(traits, forced_variant<"TUFF_SOFTMAX_VARIANT">(), dtype_size(computed_type(dtype)))) {
    if (std::max(view.axis, view.inner) > 0x7fffffffu) {
      fail(TUFF_ERROR_UNSUPPORTED, "shape has {} elements along the axis and {} after it, at most 2^31 - 1 of each",
           view.axis, view.inner);
    }
    const uint64_t block = 4 * block_parts(dtype);
    lanes = lanes_of(block);
    peel = view.inner > 1 || view.axis % block != 0;
    segments =
        lanes == device.workgroup ? cut_rows(device, view.outer * view.inner, view.axis) : RowSegments{1, view.axis};
    // As many indices before the axis as a piece holds; a larger one alone, by addresses.
    step_ = std::max<uint64_t>(device.piece / (view.axis * view.inner), 1);
    if (step_ >= 8) step_ -= step_ % 8;  // keeps pieces as aligned as the whole
    step_ = std::min(step_, view.outer);
  }

  bool cut() const { return segments.count > 1; }
  // Segments of all rows of a dispatch.
  uint64_t most_segments() const { return step_ * view.inner * segments.count; }
  uint64_t groups(uint64_t rows) const { return ceil_div(rows * segments.count * lanes, device.workgroup); }

  // visit(mode, first row, rows): mode 0 is both passes, 1 and 2 are the first and the second.
  template <typename Visit>
  void for_each_pass(const Visit& visit) const {
    for (uint64_t outer = 0; outer < view.outer; outer += step_) {
      const uint64_t count = std::min(step_, view.outer - outer);
      for (int mode = cut() ? 1 : 0; mode <= (cut() ? 2 : 0); ++mode) {
        visit(mode, outer * view.inner, count * view.inner);
      }
    }
  }

  const AxisView view;
  const StreamDevice device;
  uint32_t lanes;  // of a row or segment
  bool peel;       // elements are read one by one
  RowSegments segments{};

 private:
  // Lanes next to each other read rows next to each other, if there are any; then a lane for each row suffices.
  uint32_t lanes_of(uint64_t block) const {
    const uint64_t rows = view.outer * view.inner;
    if (device.cpu) {
      const bool many = rows >= 16 * device.cores * device.subgroup;
      return many && view.axis <= (view.inner >= device.subgroup ? 4096 : 64) ? 1 : device.subgroup;
    }
    if (view.inner >= device.subgroup && rows >= 64 * device.cores) return 1;
    const uint64_t blocks = ceil_div(view.axis, block);
    uint32_t found = 1;
    while (found < device.subgroup && blocks > 2 * found) found *= 2;
    return blocks > 8 * found ? device.workgroup : found;
  }

  uint64_t step_;  // indices before the axis in a dispatch
};

}  // namespace tuff::softmax
