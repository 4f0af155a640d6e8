#include <array>

#include "kernels/common/check.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/norm/norm_backward.hpp"

namespace tuff {
namespace {

// An operand that is given, or must be.
struct Part {
  const Buffer* buffer;
  const char* name;
  uint64_t elements;
  int32_t dtype;
  bool needed = true;

  uint64_t bytes() const { return elements * dtype_size(dtype); }
  bool given() const { return buffer != nullptr && elements != 0; }
};

template <size_t N, typename Detail>
void check_parts(const std::array<Part, N>& parts, const Detail& detail) {
  for (const Part& part : parts) {
    if (part.needed || part.given()) check_operand(part.buffer, part.name, part.elements, part.dtype, detail);
  }
}

// `output` may overlap none of the parts, or only be exactly one of those that `exactly` names.
template <size_t N, typename Exactly>
void check_apart(const Part& output, const std::array<Part, N>& parts, const Exactly& exactly) {
  if (!output.given()) return;
  for (const Part& part : parts) {
    if (!part.given()) continue;
    check_overlap(output.buffer, output.name, output.bytes(), part.buffer, part.name, part.bytes(), exactly(part));
  }
}

}  // namespace

void check_norm_backward(const NormBackwardArgs& args) {
  check_type(args.dtype, norm::kTypes, "norm_backward");
  require(args.kind >= TUFF_NORM_LAYER && args.kind <= TUFF_NORM_BATCH, "kind is {}, needs a TUFF_NORM_*", args.kind);
  norm::check_type_or_f32(args.weight_type, "weight_type", args.dtype);
  norm::check_type_or_f32(args.statistics_type, "statistics_type", args.weight_type);
  norm::check_epsilon(args.epsilon);
  require_flag(args.frozen, "frozen");
  const bool of_rows = args.kind == TUFF_NORM_LAYER || args.kind == TUFF_NORM_RMS;
  const bool of_batch = args.kind == TUFF_NORM_BATCH, of_groups = args.kind == TUFF_NORM_GROUP;
  require(!of_rows || args.inner == 1, "inner is {}, needs 1 for LAYER and RMS", args.inner);
  require(of_batch || args.channels > 0, "channels is 0: there is nothing to take a mean of");
  require(of_batch || args.inner > 0, "inner is 0: there is nothing to take a mean of");
  require(of_groups || args.groups == 0, "groups is {}, needs 0 unless kind is TUFF_NORM_GROUP", args.groups);
  require(!of_groups || (args.groups > 0 && args.channels % args.groups == 0),
          "groups is {}, needs a divisor of channels={}", args.groups, args.channels);
  require(of_batch || (args.mean == nullptr && args.variance == nullptr && args.frozen == 0),
          "mean, variance or frozen is given, needs kind TUFF_NORM_BATCH");
  require((args.mean == nullptr) == (args.variance == nullptr), "{} is given, and {} is TUFF_NULL_HANDLE",
          args.mean != nullptr ? "mean" : "variance", args.mean != nullptr ? "variance" : "mean");
  require(args.kind != TUFF_NORM_RMS || args.bias_gradient == nullptr, "bias_gradient is given: RMS norm has no bias");
  const uint64_t image = checked_mul(args.channels, args.inner, "channels");
  const uint64_t elements = checked_mul(args.batch, image, "batch");
  require(args.frozen == 0 || args.mean != nullptr || elements == 0,
          "frozen is 1, and mean and variance are TUFF_NULL_HANDLE");
  require(args.input_gradient != nullptr || args.weight_gradient != nullptr || args.bias_gradient != nullptr ||
              elements == 0,
          "input_gradient, weight_gradient and bias_gradient are TUFF_NULL_HANDLE, needs one of them");
  if (args.channels == 0) return;
  checked_mul(elements, dtype_size(args.dtype), "batch");
  const auto detail = [&] {
    return fmt::format("batch={} channels={} inner={}", args.batch, args.channels, args.inner);
  };
  // Without elements, sums are still written.
  const uint64_t read = elements != 0 ? args.channels : 0;
  const std::array<Part, 5> inputs = {{{args.input, "input", elements, args.dtype},
                                       {args.output_gradient, "output_gradient", elements, args.dtype},
                                       {args.weight, "weight", read, args.weight_type, false},
                                       {args.mean, "mean", read, args.statistics_type, args.frozen != 0},
                                       {args.variance, "variance", read, args.statistics_type, args.frozen != 0}}};
  const std::array<Part, 3> outputs = {
      {{args.input_gradient, "input_gradient", elements, args.dtype, false},
       {args.weight_gradient, "weight_gradient", args.channels, args.weight_type, false},
       {args.bias_gradient, "bias_gradient", args.channels, args.weight_type, false}}};
  check_parts(inputs, detail);
  check_parts(outputs, detail);
  check_apart(outputs[0], inputs,
              [&](const Part& part) { return &part == inputs.data() || &part == inputs.data() + 1; });
  for (const Part& output : {outputs[1], outputs[2]}) check_apart(output, inputs, [](const Part&) { return false; });
  check_apart(outputs[0], std::array<Part, 2>{outputs[1], outputs[2]}, [](const Part&) { return false; });
  check_apart(outputs[1], std::array<Part, 1>{outputs[2]}, [](const Part&) { return false; });
}

void check_batch_norm_training(const BatchNormTrainingArgs& args) {
  check_type(args.dtype, norm::kTypes, "batch_norm_training");
  norm::check_type_or_f32(args.weight_type, "weight_type", args.dtype);
  norm::check_epsilon(args.epsilon);
  require(args.momentum >= 0 && args.momentum <= 1, "momentum is {}, needs 0 to 1", args.momentum);
  const uint64_t count = checked_mul(args.batch, args.inner, "batch");
  const uint64_t elements = checked_mul(count, args.channels, "batch");
  if (args.channels == 0) return;
  require(count > 0, "batch={} inner={}: there is nothing to take a mean of", args.batch, args.inner);
  require(args.running_variance == nullptr || count > 1,
          "batch={} inner={}: running_variance needs the variance of 2 or more elements", args.batch, args.inner);
  checked_mul(elements, dtype_size(args.dtype), "batch");
  const auto detail = [&] {
    return fmt::format("batch={} channels={} inner={}", args.batch, args.channels, args.inner);
  };
  const std::array<Part, 3> inputs = {{{args.input, "input", elements, args.dtype},
                                       {args.weight, "weight", args.channels, args.weight_type, false},
                                       {args.bias, "bias", args.channels, args.weight_type, false}}};
  const std::array<Part, 5> outputs = {
      {{args.output, "output", elements, args.dtype, false},
       {args.mean, "mean", args.channels, TUFF_F32, false},
       {args.variance, "variance", args.channels, TUFF_F32, false},
       {args.running_mean, "running_mean", args.channels, args.weight_type, false},
       {args.running_variance, "running_variance", args.channels, args.weight_type, false}}};
  bool wanted = false;
  for (const Part& output : outputs) wanted = wanted || output.given();
  require(wanted, "output, mean, variance, running_mean and running_variance are TUFF_NULL_HANDLE, needs one of them");
  require(args.output != nullptr || (args.weight == nullptr && args.bias == nullptr),
          "{} is given, and output is TUFF_NULL_HANDLE", args.weight != nullptr ? "weight" : "bias");
  check_parts(inputs, detail);
  check_parts(outputs, detail);
  for (const Part& output : outputs) {
    const bool tensor = &output == outputs.data();
    check_apart(output, inputs, [&](const Part& part) { return tensor && &part == inputs.data(); });
    for (const Part* other = &output + 1; other != outputs.data() + outputs.size(); ++other) {
      check_apart(output, std::array<Part, 1>{*other}, [](const Part&) { return false; });
    }
  }
}

}  // namespace tuff
