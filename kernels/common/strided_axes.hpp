// Axes that several operands share, each operand with its own strides: 0 along broadcast axes, negative if it is read
// backwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "kernels/common/division.hpp"

namespace tuff {

template <size_t operands>
struct StridedAxes {
  using Strides = std::array<int64_t, operands>;  // in elements

  uint32_t rank = 0;
  std::array<uint64_t, 8> sizes{};  // outermost first
  std::array<Strides, 8> strides{};

  // Appends an axis inside the existing ones. An axis of size 1 is omitted; an axis that continues the enclosing one in
  // every operand is merged with it. So only the axes that matter remain.
  void append(uint64_t size, const Strides& stride) {
    if (size == 1) return;
    if (rank > 0) {
      bool one = true;
      for (size_t i = 0; i < operands; ++i) {
        one = one && strides[rank - 1][i] == stride[i] * static_cast<int64_t>(size);
      }
      if (one) {
        sizes[rank - 1] *= size;
        strides[rank - 1] = stride;
        return;
      }
    }
    sizes[rank] = size;
    strides[rank++] = stride;
  }

  uint64_t count() const {
    uint64_t result = 1;
    for (uint32_t i = 0; i < rank; ++i) result *= sizes[i];
    return result;
  }
  uint64_t inner_size() const { return rank == 0 ? 1 : sizes[rank - 1]; }
  int64_t inner_stride(size_t operand) const { return rank == 0 ? 1 : strides[rank - 1][operand]; }

  // Whether the operand's elements are contiguous.
  bool dense(size_t operand) const {
    int64_t next = 1;
    for (uint32_t i = rank; i-- > 0; next *= static_cast<int64_t>(sizes[i])) {
      if (strides[i][operand] != next) return false;
    }
    return true;
  }

  // Elements from the lowest to the highest one used, and the offset of the first one from the lowest.
  struct Span {
    uint64_t elements, first;
  };
  Span span(size_t operand) const {
    Span result{1, 0};
    for (uint32_t i = 0; i < rank; ++i) {
      const uint64_t reach = (sizes[i] - 1) * static_cast<uint64_t>(std::llabs(strides[i][operand]));
      result.elements += reach;
      if (strides[i][operand] < 0) result.first += reach;
    }
    return result;
  }
};

// The sizes of up to `most` axes as kernels/common/coordinates.glsl expects them: innermost first, without the
// outermost.
template <uint32_t most>
struct AxisDividers {
  uint32_t sizes[most - 1], multipliers[most - 1], shifts[2];

  template <size_t operands>
  explicit AxisDividers(const StridedAxes<operands>& axes) : sizes{}, multipliers{}, shifts{} {
    for (uint32_t i = 0; i + 1 < axes.rank; ++i) {
      sizes[i] = static_cast<uint32_t>(axes.sizes[axes.rank - 1 - i]);
      const Divider by = divider(sizes[i]);
      multipliers[i] = by.multiplier;
      shifts[i / 4] |= by.shift << (8 * (i % 4));
    }
  }

  // Copies them to a push block with the same three arrays.
  template <typename Push>
  void store(Push& push) const {
    static_assert(sizeof(push.sizes) == sizeof(sizes) && sizeof(push.multipliers) == sizeof(multipliers) &&
                  sizeof(push.shifts) == sizeof(shifts));
    std::copy(std::begin(sizes), std::end(sizes), push.sizes);
    std::copy(std::begin(multipliers), std::end(multipliers), push.multipliers);
    std::copy(std::begin(shifts), std::end(shifts), push.shifts);
  }
};

}  // namespace tuff
