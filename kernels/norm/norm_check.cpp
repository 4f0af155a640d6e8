#include <cmath>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/norm/norm.hpp"

namespace tuff {
namespace {

void check_types(int32_t dtype, int32_t weight_type) {
  check_type(dtype, norm::kTypes, "a normalisation");
  norm::check_type_or_f32(weight_type, "weight_type", dtype);
}

// Checks an operand that may be null and must not overlap the output.
template <typename Detail>
void check_optional(const Buffer* buffer, const char* name, uint64_t elements, int32_t dtype, const Buffer* output,
                    uint64_t output_bytes, const Detail& detail) {
  if (buffer == nullptr) return;
  check_operand(buffer, name, elements, dtype, detail);
  check_overlap(output, "output", output_bytes, buffer, name, elements * dtype_size(dtype), false);
}

}  // namespace

void norm::check_type_or_f32(int32_t type, const char* name, int32_t usual) {
  if (type == usual || type == TUFF_F32) return;
  check_known_type(type, name);
  fail(TUFF_ERROR_UNSUPPORTED, "{} is {}, needs {} or f32", name, dtype_name(type), dtype_name(usual));
}

void norm::check_epsilon(double epsilon) {
  require(epsilon >= 0 && std::isfinite(static_cast<float>(epsilon)),
          "epsilon is {}, needs to be finite and at least 0", epsilon);
}

void check_norm(const NormArgs& args) {
  check_types(args.dtype, args.weight_type);
  norm::check_epsilon(args.epsilon);
  const char* const channels_name = args.grouped ? "channels" : "cols";
  require(args.channels > 0, "{} is 0: there is nothing to take a mean of", channels_name);
  require(args.inner > 0, "inner is 0: there is nothing to take a mean of");
  require(args.groups > 0 && args.channels % args.groups == 0, "groups is {}, needs a divisor of channels={}",
          args.groups, args.channels);
  const uint64_t row = checked_mul(args.channels, args.inner, channels_name);
  const uint64_t elements = checked_mul(args.rows, row, args.grouped ? "batch" : "rows");
  if (elements == 0) return;
  const auto detail = [&] {
    return args.grouped ? fmt::format("batch={} channels={} inner={}", args.rows, args.channels, args.inner)
                        : fmt::format("rows={} cols={}", args.rows, args.channels);
  };
  check_operand(args.input, "input", elements, args.dtype, detail);
  check_operand(args.output, "output", elements, args.dtype, detail);
  const uint64_t bytes = elements * dtype_size(args.dtype);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
  check_optional(args.weight, "weight", args.channels, args.weight_type, args.output, bytes, detail);
  check_optional(args.bias, "bias", args.channels, args.weight_type, args.output, bytes, detail);
  require(args.sum == nullptr || args.residual != nullptr, "sum is given, and residual is TUFF_NULL_HANDLE");
  if (args.residual == nullptr) return;
  check_operand(args.residual, "residual", elements, args.dtype, detail);
  check_overlap(args.output, "output", bytes, args.residual, "residual", bytes, true);
  if (args.sum == nullptr) return;
  check_operand(args.sum, "sum", elements, args.dtype, detail);
  check_overlap(args.sum, "sum", bytes, args.output, "output", bytes, false);
  check_overlap(args.sum, "sum", bytes, args.input, "input", bytes, true);
  check_overlap(args.sum, "sum", bytes, args.residual, "residual", bytes, true);
  const uint64_t weight_bytes = args.channels * dtype_size(args.weight_type);
  check_overlap(args.sum, "sum", bytes, args.weight, "weight", weight_bytes, false);
  check_overlap(args.sum, "sum", bytes, args.bias, "bias", weight_bytes, false);
}

void check_batch_norm(const BatchNormArgs& args) {
  check_types(args.dtype, args.weight_type);
  norm::check_epsilon(args.epsilon);
  const uint64_t image = checked_mul(args.channels, args.inner, "channels");
  const uint64_t elements = checked_mul(args.batch, image, "batch");
  if (elements == 0) return;
  const auto detail = [&] {
    return fmt::format("batch={} channels={} inner={}", args.batch, args.channels, args.inner);
  };
  check_operand(args.input, "input", elements, args.dtype, detail);
  check_operand(args.output, "output", elements, args.dtype, detail);
  const uint64_t bytes = elements * dtype_size(args.dtype), weight_bytes = args.channels * dtype_size(args.weight_type);
  check_overlap(args.output, "output", bytes, args.input, "input", bytes, true);
  check_operand(args.mean, "mean", args.channels, args.weight_type, detail);
  check_operand(args.variance, "variance", args.channels, args.weight_type, detail);
  check_overlap(args.output, "output", bytes, args.mean, "mean", weight_bytes, false);
  check_overlap(args.output, "output", bytes, args.variance, "variance", weight_bytes, false);
  check_optional(args.weight, "weight", args.channels, args.weight_type, args.output, bytes, detail);
  check_optional(args.bias, "bias", args.channels, args.weight_type, args.output, bytes, detail);
}

}  // namespace tuff
