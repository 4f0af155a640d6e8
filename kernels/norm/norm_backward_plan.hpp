// What the planners of the gradients of normalisations, and of batch norm for training, share: norm_backward_vulkan.cpp
// has the overview, norm_backward_sums_vulkan.cpp moments of parts of sets and sums along lines and of columns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/check.hpp"
#include "kernels/common/row_plan.hpp"
#include "kernels/common/stream_device.hpp"
#include "planning/forced_variant.hpp"
#include "planning/recorder.hpp"

namespace tuff::norm {

inline constexpr uint64_t kMax = 0x7fffffffu;  // what kernels count in 32 bits

// How parts of sets are laid out: part k of a set is at k / run * stride + set * run + k % run. Of each `cuts` parts
// all have `size` elements but the last.
struct Parts {
  uint64_t of_set = 0, run = 1, stride = 0, cuts = 1, size = 0, last = 0, all = 0;
};

// Rows of a matrix with a part of each set.
inline Parts parts_of_columns(uint64_t rows, uint64_t sets) { return {rows, 1, sets, 1, 0, 0, rows * sets}; }

inline Parts parts_of(uint64_t images, uint64_t of_image, uint64_t sets, uint64_t cuts, uint64_t size, uint64_t last) {
  return {images * of_image, of_image, sets * of_image, cuts, size, last, images * sets * of_image};
}

struct Task {
  Recorder& recorder;
  const char* name;
  int32_t dtype, weight_type;
  bool centred, by_channel;                 // by_channel: batch norm
  uint64_t batch, channels, inner, groups;  // groups: 1 but for group norm
  double epsilon;
  const Buffer *input, *slope, *weight;
  StreamDevice device;

  Task(Recorder& to, const char* label, int32_t type, int32_t of_weights)
      : recorder(to),
        name(label),
        dtype(type),
        weight_type(of_weights),
        device(stream_device(to.traits(), forced_variant<"TUFF_NORM_VARIANT">(), dtype_size(computed_type(type)))) {}

  uint64_t element() const { return dtype_size(dtype); }
  uint64_t block() const { return 4 * block_parts(dtype); }
  uint64_t weight_bytes() const { return channels * dtype_size(weight_type); }
  uint64_t together() const { return by_channel ? batch * inner : channels / groups * inner; }
  uint64_t sets() const { return by_channel ? channels : batch * groups; }
  // Lines are channels of images, which have several elements. Otherwise channels are columns.
  bool planes() const { return inner != 1; }
  uint64_t elements() const { return batch * channels * inner; }
  uint64_t extent() const { return planes() ? inner : together(); }

  void require_sizes() const {
    require_storage(recorder.traits(), dtype);
    require_storage(recorder.traits(), weight_type);
    if (std::max({channels, inner, together(), sets(),
                  planes() && inner != 0 ? checked_mul(batch, channels, "batch") : 0}) > kMax) {
      fail(TUFF_ERROR_UNSUPPORTED,
           "batch={} channels={} inner={}: at most 2^31 - 1 elements are normalised together, in as many sets", batch,
           channels, inner);
    }
  }
};

// Lines whose moments are found: sets that lie in one piece, or the channels of images.
struct Lines {
  uint64_t count, extent;
  RowSegments cut;
};

Lines moment_lines(const Task& task);
Lines sum_lines(const Task& task);
void record_line_moments(const Task& task, const Lines& lines, const Buffer& moments);
void record_line_sums(const Task& task, const Lines& lines, const Buffer& statistics, const Buffer& sums);

// A matrix [batch][channels] in chunks of rows.
struct Chunks {
  uint32_t columns, slices;  // lanes of a workgroup
  uint64_t width, tiles, rows, count;
};

Chunks chunks_of(const Task& task, bool moments);
void record_columns(const Task& task, const Chunks& chunks, bool moments, const Buffer* statistics,
                    const Buffer& results);

}  // namespace tuff::norm
