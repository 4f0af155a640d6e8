// Where the elements of an operand with strides are, for checks: inside its buffer, distinct, and apart from those of
// other operands.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/sort_few.hpp"

namespace tuff {

// An operand's elements as bytes of its allocation.
struct StridedElements {
  const Buffer* buffer = nullptr;
  uint64_t begin = 0, end = 0;  // of all elements
  uint64_t first = 0;           // the element at index 0
  uint64_t size = 0;
  std::array<int64_t, 8> strides{};  // in bytes; 0 along axes of one element
};

// The elements first + sum of index * strides[d] of a buffer, in all axes of the shape, none of which is empty. Throws
// unless the buffer holds them, aligned and not mapped; name() is called only for the message.
template <typename Name>
StridedElements strided_elements(const Buffer& buffer, uint64_t first, std::span<const int64_t> strides,
                                 std::span<const uint64_t> shape, int32_t dtype, const Name& name) {
  __extension__ using Wide = __int128;
  const auto text = [](Wide value) {
    return value > Wide{std::numeric_limits<int64_t>::max()} ? "beyond 2^63"
                                                             : std::to_string(static_cast<int64_t>(value));
  };
  StridedElements found{&buffer, 0, 0, 0, dtype_size(dtype), {}};
  // The lowest and the highest element, from the one at index 0.
  Wide lowest = first, highest = first;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    const Wide reach = Wide{strides[d]} * (shape[d] - 1);
    (reach < 0 ? lowest : highest) += reach;
    if (highest - lowest > Wide{1} << 59) break;  // in no buffer; fewer elements, in bytes, fit a stride
    found.strides[d] = strides[d] * static_cast<int64_t>(found.size);
  }
  const uint64_t holds = buffer.bytes / found.size;
  require(lowest >= 0, "{} begins at element {}, and its strides reach {} before the buffer", name(), first,
          text(-lowest));
  require(highest < Wide{holds}, "{} holds {} elements ({}), and the strides reach element {}", name(), holds,
          dtype_name(dtype), text(highest));
  require(buffer.offset % found.size == 0, "{} starts at byte {} of its allocation, needs a multiple of {} ({})",
          name(), buffer.offset, found.size, dtype_name(dtype));
  require(!buffer.allocation->mapped.load(std::memory_order_relaxed), "{} is mapped, needs tuff_unmap first", name());
  found.begin = buffer.offset + static_cast<uint64_t>(lowest) * found.size;
  found.end = buffer.offset + (static_cast<uint64_t>(highest) + 1) * found.size;
  found.first = buffer.offset + first * found.size;
  return found;
}

// An axis along which elements coincide, and the least stride with which they would not: the reach of the axes with
// smaller strides, or the width of an element.
struct Coincidence {
  uint32_t axis;
  uint64_t reach;
};
inline std::optional<Coincidence> coincidence(std::span<const uint64_t> strides, std::span<const uint64_t> sizes,
                                              uint64_t width) {
  std::array<uint32_t, 8> axes{};
  uint32_t count = 0;
  for (uint32_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1) axes[count++] = d;
  }
  sort_few(std::span(axes.data(), count), [&](uint32_t a, uint32_t b) { return strides[a] < strides[b]; });
  uint64_t reach = width;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t d = axes[i];
    if (strides[d] < reach) return Coincidence{d, reach};
    reach += strides[d] * (sizes[d] - 1);
  }
  return std::nullopt;
}

// An axis along which an element is repeated or overlaps another.
inline std::optional<uint32_t> repeated_axis(const StridedElements& elements, std::span<const uint64_t> shape) {
  std::array<uint64_t, 8> distances{};
  for (size_t d = 0; d < shape.size(); ++d) distances[d] = static_cast<uint64_t>(std::abs(elements.strides[d]));
  const auto found = coincidence({distances.data(), shape.size()}, shape, elements.size);
  return found ? std::optional(found->axis) : std::nullopt;
}

// Whether both are the same elements in the same order.
inline bool same_elements(const StridedElements& a, const StridedElements& b) {
  return a.buffer->allocation == b.buffer->allocation && a.first == b.first && a.size == b.size &&
         a.strides == b.strides;
}

// Whether they may share a byte: their ranges overlap, and no common unit of their strides keeps them apart.
inline bool may_overlap(const StridedElements& a, const StridedElements& b) {
  if (a.buffer->allocation != b.buffer->allocation) return false;
  if (a.end <= b.begin || b.end <= a.begin) return false;
  // All elements lie at multiples of what divides every stride, from the first of each operand.
  uint64_t unit = 0;
  for (size_t d = 0; d < a.strides.size(); ++d) {
    unit = std::gcd(unit, static_cast<uint64_t>(std::abs(a.strides[d])));
    unit = std::gcd(unit, static_cast<uint64_t>(std::abs(b.strides[d])));
  }
  if (unit != 0) {
    const uint64_t between =
        b.first >= a.first ? (b.first - a.first) % unit : unit - 1 - (a.first - b.first - 1) % unit;
    if (between >= a.size && between + b.size <= unit) return false;
  }
  return true;
}

}  // namespace tuff
