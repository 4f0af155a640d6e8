#include "kernels/norm/norm.hpp"

#include <fmt/format.h>

namespace tuff {
namespace {

CallText describe(const NormArgs& args) {
  std::string shape = fmt::format("{} {} rows of {}", dtype_name(args.dtype), args.rows, args.channels * args.inner);
  if (args.grouped) shape += fmt::format(" in {} groups", args.groups);
  return {shape, args.dtype};
}

CallText describe(const BatchNormArgs& args) {
  return {fmt::format("{} {}x{}x{}", dtype_name(args.dtype), args.batch, args.channels, args.inner), args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<NormArgs> layer_norm =
    define_operation<NormArgs, check_norm, host_norm, record_norm, describe, nullptr, offer_norm>("layer_norm",
                                                                                                  norm::kTypes);
const OperationOf<NormArgs> rms_norm =
    define_operation<NormArgs, check_norm, host_norm, record_norm, describe, nullptr, offer_norm>("rms_norm",
                                                                                                  norm::kTypes);
const OperationOf<NormArgs> group_norm =
    define_operation<NormArgs, check_norm, host_norm, record_norm, describe, nullptr, offer_norm>("group_norm",
                                                                                                  norm::kTypes);
const OperationOf<BatchNormArgs> batch_norm =
    define_operation<BatchNormArgs, check_batch_norm, host_batch_norm, record_batch_norm, describe, nullptr,
                     offer_batch_norm>("batch_norm", norm::kTypes);
}  // namespace operations

}  // namespace tuff
