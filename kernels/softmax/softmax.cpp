#include "kernels/softmax/softmax.hpp"

#include <fmt/format.h>

#include "kernels/common/describe.hpp"

namespace tuff {
namespace {

CallText describe(const SoftmaxArgs& args) {
  return {fmt::format("{} {} axis {}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank), args.axis),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<SoftmaxArgs> softmax =
    define_operation<SoftmaxArgs, check_softmax, host_softmax, record_softmax, describe, nullptr, offer_softmax>(
        "softmax", softmax::kTypes);
}  // namespace operations

}  // namespace tuff
