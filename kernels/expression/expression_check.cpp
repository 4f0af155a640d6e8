// Checks a call: where each operand's elements are, and that no output shares any with another operand.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>

#include "kernels/common/check.hpp"
#include "kernels/common/elements.hpp"
#include "kernels/expression/expression.hpp"
#include "kernels/expression/host_values.hpp"

namespace tuff {

using expression::Value;
using expression::Variable;

int64_t stride_along(const ExpressionArgs& args, const ExpressionOperand& operand, uint32_t axis) {
  if (operand.strides != nullptr) return operand.strides[axis];
  int64_t stride = 1;
  for (uint32_t i = args.rank; i-- > axis + 1;) stride *= static_cast<int64_t>(args.shape[i]);
  return stride;
}

uint64_t element_count(const ExpressionArgs& args) { return checked_product({args.shape, args.rank}, "shape"); }

uint64_t scalar_bits(int32_t dtype, const ExpressionOperand& operand) {
  switch (dtype) {
    case TUFF_F32: return std::bit_cast<uint32_t>(static_cast<float>(operand.value));
    case TUFF_F16: return std::bit_cast<uint32_t>(static_cast<float>(double{Half(operand.value)}));
    case TUFF_BF16: return std::bit_cast<uint32_t>(static_cast<float>(double{Bfloat(operand.value)}));
    case TUFF_F64: return std::bit_cast<uint64_t>(operand.value);
    default: return static_cast<uint64_t>(operand.integer);
  }
}

namespace {

// An operand's elements as bytes of its allocation.
struct Elements {
  const Variable* variable;
  const Buffer* buffer;
  uint64_t begin, end;  // of all elements
  uint64_t first;       // the element at index 0
  uint64_t size;
  std::array<int64_t, 8> strides;  // in bytes; 0 along axes of one element
};

std::string name_of(const char* kind, size_t index) { return fmt::format("desc->{}[{}]", kind, index); }

class Check {
 public:
  explicit Check(const ExpressionArgs& args) : args_(args), count_(element_count(args)) {}

  void run() {
    if (count_ > uint64_t{1} << 60) fail(TUFF_ERROR_INVALID_ARGUMENT, "shape has {} elements, at most 2^60", count_);
    const auto& inputs = args_.expression->inputs();
    const auto& outputs = args_.expression->outputs();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].scalar) {
        scalar(inputs[i], args_.inputs[i], i);
      } else if (count_ != 0) {
        found_[input_count_++] = elements(inputs[i], args_.inputs[i], "inputs", i);
      }
    }
    if (count_ == 0) return;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const Elements output = elements(outputs[i], args_.outputs[i], "outputs", i);
      distinct(output, i);
      for (size_t k = 0; k < input_count_ + i; ++k) apart(output, found_[k], k < input_count_);
      found_[input_count_ + i] = output;
    }
  }

 private:
  void scalar(const Variable& variable, const ExpressionOperand& operand, size_t index) const {
    require(operand.buffer == nullptr, "{} (\"{}\") has a buffer, and is a scalar", name_of("inputs", index),
            variable.name);
    const Value type = expression::value_of(variable.dtype);
    if (expression::is_float(type) || type == Value::u64) return;
    require(type == Value::boolean ? operand.integer == 0 || operand.integer == 1
                                   : expression::wrapped(type, operand.integer) == operand.integer,
            "{}.integer (\"{}\") is {}, which does not fit {}", name_of("inputs", index), variable.name,
            operand.integer, dtype_name(variable.dtype));
  }

  Elements elements(const Variable& variable, const ExpressionOperand& operand, const char* kind, size_t index) const {
    const auto name = [&] { return fmt::format("{} (\"{}\")", name_of(kind, index), variable.name); };
    Elements found{&variable, operand.buffer, 0, 0, 0, dtype_size(variable.dtype), {}};
    if (operand.buffer == nullptr) {
      fail(TUFF_ERROR_INVALID_HANDLE, "{} is TUFF_NULL_HANDLE, needs {} elements", name(), count_);
    }
    const Buffer& buffer = *operand.buffer;
    // The lowest and the highest element, from the one at index 0.
    Wide lowest = operand.first, highest = operand.first;
    for (uint32_t d = 0; d < args_.rank; ++d) {
      if (args_.shape[d] == 1) continue;
      const int64_t stride = stride_along(args_, operand, d);
      const Wide reach = Wide{stride} * (args_.shape[d] - 1);
      (reach < 0 ? lowest : highest) += reach;
      if (highest - lowest > Wide{1} << 59) break;  // in no buffer; fewer elements, in bytes, fit a stride
      found.strides[d] = stride * static_cast<int64_t>(found.size);
    }
    const uint64_t holds = buffer.bytes / found.size;
    require(lowest >= 0, "{} begins at element {}, and its strides reach {} before the buffer", name(), operand.first,
            text(-lowest));
    require(highest < Wide{holds}, "{} holds {} elements ({}), and the strides reach element {}", name(), holds,
            dtype_name(variable.dtype), text(highest));
    require(buffer.offset % found.size == 0, "{} starts at byte {} of its allocation, needs a multiple of {} ({})",
            name(), buffer.offset, found.size, dtype_name(variable.dtype));
    require(!buffer.allocation->mapped.load(std::memory_order_relaxed), "{} is mapped, needs tuff_unmap first", name());
    found.begin = buffer.offset + static_cast<uint64_t>(lowest) * found.size;
    found.end = buffer.offset + (static_cast<uint64_t>(highest) + 1) * found.size;
    found.first = buffer.offset + operand.first * found.size;
    return found;
  }

  // No two indices are the same element.
  void distinct(const Elements& output, size_t index) const {
    // Insertion into the axes so far, by magnitude of the stride.
    std::array<uint32_t, 8> axes{};
    uint32_t count = 0;
    for (uint32_t d = 0; d < args_.rank; ++d) {
      if (args_.shape[d] == 1) continue;
      uint32_t place = count++;
      for (; place > 0 && std::abs(output.strides[axes[place - 1]]) > std::abs(output.strides[d]); --place) {
        axes[place] = axes[place - 1];
      }
      axes[place] = d;
    }
    uint64_t reach = output.size;
    for (uint32_t i = 0; i < count; ++i) {
      const auto stride = static_cast<uint64_t>(std::abs(output.strides[axes[i]]));
      require(stride >= reach, "{} (\"{}\") has the stride {} along axis {}, and overlaps itself",
              name_of("outputs", index), output.variable->name,
              output.strides[axes[i]] / static_cast<int64_t>(output.size), axes[i]);
      reach += stride * (args_.shape[axes[i]] - 1);
    }
  }

  void apart(const Elements& output, const Elements& other, bool is_input) const {
    if (output.buffer->allocation != other.buffer->allocation) return;
    if (output.end <= other.begin || other.end <= output.begin) return;
    const bool same = output.first == other.first && output.size == other.size && output.strides == other.strides;
    if (same && is_input) return;
    // All elements lie at multiples of what divides every stride, from the first of each operand.
    uint64_t unit = 0;
    for (uint32_t d = 0; d < args_.rank; ++d) {
      unit = std::gcd(unit, static_cast<uint64_t>(std::abs(output.strides[d])));
      unit = std::gcd(unit, static_cast<uint64_t>(std::abs(other.strides[d])));
    }
    if (unit != 0) {
      const uint64_t between = other.first >= output.first ? (other.first - output.first) % unit
                                                           : unit - 1 - (output.first - other.first - 1) % unit;
      if (between >= output.size && between + other.size <= unit) return;
    }
    fail(TUFF_ERROR_INVALID_ARGUMENT, "output \"{}\" overlaps {} \"{}\" (bytes {}..{} and {}..{} of one allocation){}",
         output.variable->name, is_input ? "input" : "output", other.variable->name, output.begin, output.end,
         other.begin, other.end, is_input ? "; the elements may be identical or disjoint" : "");
  }

  using Wide = expression::Int128;
  static std::string text(Wide value) {
    return value > Wide{std::numeric_limits<int64_t>::max()} ? "beyond 2^63"
                                                             : std::to_string(static_cast<int64_t>(value));
  }

  const ExpressionArgs& args_;
  const uint64_t count_;
  std::array<Elements, TUFF_EXPR_MAX_BUFFERS> found_{};
  size_t input_count_ = 0;
};

}  // namespace

void check_expression(const ExpressionArgs& args) {
  require(args.rank <= 8, "rank is {}, needs 0 to 8", args.rank);
  Check(args).run();
}

}  // namespace tuff
