// What the planners of formulas with and without a reduction share: operands, their modes and the table of
// expression_operands.glsl.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/common/stream_device.hpp"
#include "kernels/common/strided_axes.hpp"
#include "kernels/expression/expression.hpp"
#include "planning/recorder.hpp"

namespace tuff::expression {

// Operands in buffers, and one more whose elements' places are those in the shape of the reduced axes.
constexpr uint32_t kMax = TUFF_EXPR_MAX_BUFFERS + 1;
using Axes = StridedAxes<kMax>;

enum Mode : uint32_t { dense = 0, blocks = 1, repeated = 2, gathered = 3, stepped = 4, unaligned = 5 };
// Of a mode in TUFF_MODES, which is an int of the shader: those of all operands are below 2^31.
constexpr uint32_t mode_bits = 3;
static_assert(mode_bits * TUFF_EXPR_MAX_BUFFERS < 32);

struct Operand {
  const Buffer* buffer;
  uint64_t size;  // bytes of an element
  bool output;
};

struct Task {
  Recorder& recorder;
  const Expression& expression;
  StreamDevice device;
  uint32_t operands;
  std::array<Operand, kMax> operand;
  std::array<uint32_t, 2 * TUFF_EXPR_MAX_INPUTS> scalars;  // two words each
  uint32_t scalar_words;
};

// The bytes to whose multiples four elements are aligned if they are read at once.
inline uint64_t block_bytes(const Operand& operand) { return std::min<uint64_t>(4 * operand.size, 16); }

inline bool is_aligned(const Operand& operand, uint64_t first) {
  return (operand.buffer->offset + first * operand.size) % block_bytes(operand) == 0;
}

// The table of expression_operands.glsl.
struct Table {
  std::array<uint32_t, Recorder::kMaxParameterBytes / 4> words;
  uint32_t count = 0;
  void add(uint32_t word) {
    require_room(count, static_cast<uint32_t>(words.size()), "words of parameters");
    words[count++] = word;
  }
  // For the axes but the outermost, innermost first.
  void add_sizes(const Axes& axes) {
    for (uint32_t d = axes.rank; d-- > 1;) {
      const auto size = static_cast<uint32_t>(axes.sizes[d]);
      const Divider by = divider(size);
      add(size);
      add(by.multiplier);
      add(by.shift);
    }
  }
  // For every axis, of the first `operands`. Without axes there is one of one element.
  void add_strides(const Axes& axes, uint32_t operands) {
    for (uint32_t d = std::max(axes.rank, 1u); d-- > 0;) {
      for (uint32_t slot = 0; slot < operands; ++slot) {
        add(axes.rank == 0 ? 0 : static_cast<uint32_t>(axes.strides[d][slot]));
      }
    }
  }
};

// Throws UNSUPPORTED if the device lacks what the formula needs.
void require_device(const DeviceTraits& traits, const Expression& expression);

// The operands in buffers, inputs first, as they were passed in `operands`; and the scalars.
Task task_of(Recorder& recorder, const ExpressionArgs& args, std::array<const ExpressionOperand*, kMax>& operands);

}  // namespace tuff::expression
