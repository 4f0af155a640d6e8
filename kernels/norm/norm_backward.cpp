#include "kernels/norm/norm_backward.hpp"

#include <fmt/format.h>

#include "kernels/norm/norm.hpp"

namespace tuff {
namespace {

CallText describe(const NormBackwardArgs& args) {
  static constexpr const char* kNames[] = {"layer", "rms", "group", "batch"};
  std::string text =
      fmt::format("{} {} {}x{}x{}", kNames[args.kind], dtype_name(args.dtype), args.batch, args.channels, args.inner);
  if (args.groups != 0) text += fmt::format(" in {} groups", args.groups);
  if (args.input_gradient != nullptr) text += " input";
  if (args.weight_gradient != nullptr) text += " weight";
  if (args.bias_gradient != nullptr) text += " bias";
  return {text, args.dtype};
}

CallText describe(const BatchNormTrainingArgs& args) {
  return {fmt::format("{} {}x{}x{}", dtype_name(args.dtype), args.batch, args.channels, args.inner), args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<NormBackwardArgs> norm_backward =
    define_operation<NormBackwardArgs, check_norm_backward, host_norm_backward, record_norm_backward, describe>(
        "norm_backward", norm::kTypes);
const OperationOf<BatchNormTrainingArgs> batch_norm_training =
    define_operation<BatchNormTrainingArgs, check_batch_norm_training, host_batch_norm_training,
                     record_batch_norm_training, describe>("batch_norm_training", norm::kTypes);
}  // namespace operations

}  // namespace tuff
