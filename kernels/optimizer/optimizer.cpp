#include "kernels/optimizer/optimizer.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>

namespace tuff {
namespace {

std::string list_text(int32_t dtype, std::span<const uint64_t> sizes) {
  return fmt::format("{} {} tensors of {}", dtype_name(dtype), sizes.size(),
                     std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}));
}

CallText describe(const OptimizerArgs& args) {
  constexpr std::array kNames = {"sgd", "adam", "adamw", "lamb"};
  return {fmt::format("{} {}", kNames[static_cast<size_t>(args.algorithm)], list_text(args.dtype, args.sizes)),
          args.dtype};
}

CallText describe(const GradientNormArgs& args) { return {list_text(args.dtype, args.sizes), args.dtype}; }

}  // namespace

namespace operations {
const OperationOf<OptimizerArgs> optimizer_step =
    define_operation<OptimizerArgs, check_optimizer, host_optimizer, record_optimizer, describe>("optimizer_step",
                                                                                                 kFloatTypes);
const OperationOf<GradientNormArgs> gradient_norm =
    define_operation<GradientNormArgs, check_gradient_norm, host_gradient_norm, record_gradient_norm, describe>(
        "gradient_norm", kFloatTypes);
}  // namespace operations

}  // namespace tuff
