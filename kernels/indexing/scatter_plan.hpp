// What the planners of scatter share.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/common/check.hpp"
#include "kernels/common/division.hpp"
#include "kernels/common/stream_device.hpp"
#include "kernels/indexing/scatter.hpp"
#include "planning/recorder.hpp"
#include "shaders/scatter_rows.hpp"

namespace tuff {

inline constexpr uint64_t kMaxScatterUnits = 1u << 30;  // of one dispatch

struct ScatterTask {
  Recorder& recorder;
  StreamDevice device;
  const ScatterArgs& args;
  IndexView view;
};

// n indices from `first` on, and `places` places from `window` on.
struct ScatterBatch {
  uint64_t first, n, window, places;
  uint32_t none() const { return static_cast<uint32_t>(places); }
};

// The part of a batch that one dispatch goes through: `outers` outer indices, and `rows` rows from `row` on. Rows have
// `inner` units. Units from `from` on of the updates belong to those from `to` on of the output.
struct ScatterRows {
  uint64_t outers, row, rows, inner;
  uint64_t from, from_stride, from_span, to, to_stride, to_span;  // in units; strides from one outer index to the next

  uint64_t units() const { return outers * rows * inner; }
  bool single() const { return outers == 1 && inner == 1; }
  bool wide() const { return needs_wide(std::max(from_span, to_span)); }

  shaders::scatter_rows_push::Push push(uint32_t none, uint64_t run) const {
    shaders::scatter_rows_push::Push push{.n = static_cast<uint32_t>(units()),
                                          .run = static_cast<uint32_t>(run),
                                          .none = none,
                                          .first = static_cast<uint32_t>(row),
                                          .from_stride = low_word(from_stride),
                                          .from_stride_high = high_word(from_stride),
                                          .to_stride = low_word(to_stride),
                                          .to_stride_high = high_word(to_stride)};
    const std::array<uint64_t, 2> sizes{inner, rows};
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Divider by = divider(static_cast<uint32_t>(sizes[i]));
      push.sizes[i] = static_cast<uint32_t>(sizes[i]);
      push.multipliers[i] = by.multiplier;
      push.shifts[i] = by.shift;
    }
    return push;
  }
};

// Calls `record` with each part of a batch.
template <typename Record>
void for_each_part(const ScatterTask& task, const ScatterBatch& batch, uint64_t inner, const Record& record) {
  const uint64_t from_stride = task.view.count * inner, to_stride = task.view.places * inner;
  const uint64_t rows_at_once = std::min(batch.n, std::max<uint64_t>(kMaxScatterUnits / inner, 1));
  const uint64_t outers_at_once =
      rows_at_once < batch.n ? 1 : std::max<uint64_t>(kMaxScatterUnits / (batch.n * inner), 1);
  for (uint64_t outer = 0; outer < task.view.outer; outer += outers_at_once) {
    const uint64_t outers = std::min(outers_at_once, task.view.outer - outer);
    for (uint64_t row = 0; row < batch.n; row += rows_at_once) {
      const uint64_t rows = std::min(rows_at_once, batch.n - row);
      record(ScatterRows{.outers = outers,
                         .row = row,
                         .rows = rows,
                         .inner = inner,
                         .from = outer * from_stride + (batch.first + row) * inner,
                         .from_stride = from_stride,
                         .from_span = (outers - 1) * from_stride + rows * inner,
                         .to = outer * to_stride + batch.window * inner,
                         .to_stride = to_stride,
                         .to_span = (outers - 1) * to_stride + batch.places * inner});
    }
  }
}

// Whether updates are combined by atomics: scatter_atomic_vulkan.cpp.
bool combines_by_atomics(const ScatterTask& task);
void record_atomics(const ScatterTask& task, const ScatterBatch& batch);

}  // namespace tuff
