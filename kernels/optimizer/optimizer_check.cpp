#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <tuple>

#include "kernels/common/check.hpp"
#include "kernels/optimizer/optimizer.hpp"
#include "planning/kept_vector.hpp"

namespace tuff {
namespace {

// One of the call's operands: element `index` of an array, or, if that is negative, a buffer of its own.
struct Range {
  const Allocation* allocation;
  uint64_t begin, end;
  bool written;
  const char* name;
  int64_t index;

  auto place() const { return std::tuple(allocation, begin); }
  std::string label() const { return index < 0 ? std::string(name) : fmt::format("{}[{}]", name, index); }
};

// The operands of a call, which checks each and in the end that none overlaps one that is written.
class Operands {
 public:
  void add(const Buffer* buffer, const char* name, uint64_t elements, int32_t dtype, bool written, int64_t index = -1) {
    if (elements == 0) return;
    if (!operand_fits(buffer, elements, dtype)) [[unlikely]] {
      const std::string label = Range{nullptr, 0, 0, written, name, index}.label();
      const std::string detail = index < 0 ? "one element" : fmt::format("sizes[{}]={}", index, elements);
      check_operand(buffer, label, elements, dtype, std::string_view(detail));
    }
    ranges_->push_back({buffer->allocation.get(), buffer->offset, buffer->offset + elements * dtype_size(dtype),
                        written, name, index});
  }
  void add(std::span<const Buffer* const> buffers, const char* name, std::span<const uint64_t> sizes, int32_t dtype,
           bool written) {
    for (size_t i = 0; i < buffers.size(); ++i)
      add(buffers[i], name, sizes[i], dtype, written, static_cast<int64_t>(i));
  }
  // A number in a buffer of its own, or null.
  void add_number(const Buffer* buffer, const char* name, int32_t dtype, bool written) {
    if (buffer != nullptr) add(buffer, name, 1, dtype, written);
  }

  // In the order of their places, an operand overlaps an earlier one if it begins before the furthest end so far: of
  // all if it is written itself, otherwise of those that are written.
  void check_apart() {
    std::sort(ranges_->begin(), ranges_->end(), [](const Range& x, const Range& y) { return x.place() < y.place(); });
    const Range *furthest = nullptr, *furthest_written = nullptr;
    for (const Range& range : *ranges_) {
      if (furthest != nullptr && furthest->allocation != range.allocation) furthest = furthest_written = nullptr;
      const Range* const other = range.written ? furthest : furthest_written;
      if (other != nullptr && range.begin < other->end) {
        const Range& output = range.written ? range : *other;
        fail(TUFF_ERROR_INVALID_ARGUMENT, "{} overlaps {}, and is written: needs memory of its own", output.label(),
             (range.written ? *other : range).label());
      }
      if (furthest == nullptr || range.end > furthest->end) furthest = &range;
      if (range.written && (furthest_written == nullptr || range.end > furthest_written->end))
        furthest_written = &range;
    }
  }

 private:
  KeptVector<Range> ranges_;
};

void check_number(double value, const char* name, double below = INFINITY) {
  if (below == INFINITY) {
    require(value >= 0 && std::isfinite(static_cast<float>(value)),
            "{} is {}, needs to be at least 0 and finite in f32", name, value);
  } else {
    require(value >= 0 && value < below, "{} is {}, needs to be from 0 to below {}", name, value, below);
  }
}

void check_scale(double scale) {
  require(std::isfinite(static_cast<float>(scale)), "gradient_scale is {}, needs to be finite in f32", scale);
}

void check_array(std::span<const Buffer* const> buffers, const char* name, bool needed, size_t count) {
  require(needed || buffers.empty(), "{} is given, and the algorithm uses none", name);
  require(!needed || count == 0 || !buffers.empty(), "{} is null, and the algorithm needs it", name);
}

// Elements of all tensors, whose bytes as f32 are less than 2^64.
uint64_t check_sizes(std::span<const uint64_t> sizes) {
  uint64_t all = 0;
  for (const uint64_t size : sizes) all = checked_add(all, size, "sizes");
  checked_mul(all, sizeof(float), "sizes");
  return all;
}

}  // namespace

void check_optimizer(const OptimizerArgs& args) {
  check_type(args.dtype, kFloatTypes, "optimizer_step");
  if (args.gradient_type != args.dtype && args.gradient_type != TUFF_F32) {
    check_known_type(args.gradient_type, "gradient_type");
    fail(TUFF_ERROR_UNSUPPORTED, "gradient_type is {}, needs {} or f32", dtype_name(args.gradient_type),
         dtype_name(args.dtype));
  }
  require(args.algorithm >= TUFF_OPTIMIZER_SGD && args.algorithm <= TUFF_OPTIMIZER_LAMB,
          "algorithm is {}, needs TUFF_OPTIMIZER_*", args.algorithm);
  require_flag(args.nesterov, "nesterov");
  check_number(args.rate, "rate");
  check_number(args.weight_decay, "weight_decay");
  check_scale(args.gradient_scale);
  if (args.adaptive()) {
    check_number(args.beta1, "beta1", 1);
    check_number(args.beta2, "beta2", 1);
    check_number(args.epsilon, "epsilon");
    require(args.momentum == 0, "momentum is {}, needs 0: the algorithm has none", args.momentum);
    require(args.nesterov == 0, "nesterov is 1, needs 0: the algorithm has no momentum");
    require(args.steps != nullptr || args.step > 0, "step is 0, needs at least 1, or steps");
  } else {
    check_number(args.momentum, "momentum");
    require(args.nesterov == 0 || args.momentum > 0, "nesterov is 1, and momentum is 0");
  }
  require(args.steps == nullptr || args.step == 0, "step is {}, needs 0: steps is given", args.step);
  check_array(args.parameters, "parameters", true, args.sizes.size());
  check_array(args.gradients, "gradients", true, args.sizes.size());
  check_array(args.first_moments, "first_moments", args.has_moments(), args.sizes.size());
  check_array(args.second_moments, "second_moments", args.adaptive(), args.sizes.size());
  if (check_sizes(args.sizes) == 0) return;
  Operands operands;
  operands.add(args.parameters, "parameters", args.sizes, args.dtype, true);
  operands.add(args.gradients, "gradients", args.sizes, args.gradient_type, false);
  operands.add(args.masters, "masters", args.sizes, TUFF_F32, true);
  operands.add(args.first_moments, "first_moments", args.sizes, TUFF_F32, true);
  operands.add(args.second_moments, "second_moments", args.sizes, TUFF_F32, true);
  operands.add_number(args.steps, "steps", TUFF_I32, true);
  operands.add_number(args.rate_factor, "rate_factor", TUFF_F32, false);
  operands.add_number(args.gradient_factor, "gradient_factor", TUFF_F32, false);
  operands.add_number(args.skip, "skip", TUFF_I32, false);
  operands.check_apart();
}

void check_gradient_norm(const GradientNormArgs& args) {
  check_type(args.dtype, kFloatTypes, "gradient_norm");
  require_flag(args.accumulate, "accumulate");
  check_scale(args.gradient_scale);
  check_number(args.limit, "limit");
  // Devices round it to f32, where a denormal may count as 0, which is no limit.
  require(args.limit == 0 || static_cast<float>(args.limit) >= FLT_MIN,
          "limit is {}, needs to be 0 or at least f32's smallest normal number", args.limit);
  check_array(args.gradients, "gradients", true, args.sizes.size());
  check_sizes(args.sizes);
  require(args.norm != nullptr || args.factor != nullptr || args.found != nullptr,
          "norm, factor and found are TUFF_NULL_HANDLE, needs one of them");
  require(args.accumulate == 0 || args.norm != nullptr, "accumulate is 1, and norm is TUFF_NULL_HANDLE");
  Operands operands;
  operands.add(args.gradients, "gradients", args.sizes, args.dtype, false);
  operands.add_number(args.gradient_factor, "gradient_factor", TUFF_F32, false);
  operands.add_number(args.norm, "norm", TUFF_F32, true);
  operands.add_number(args.factor, "factor", TUFF_F32, true);
  operands.add_number(args.found, "found", TUFF_I32, true);
  operands.check_apart();
}

}  // namespace tuff
