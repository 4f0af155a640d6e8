#include "kernels/reduce/reduce.hpp"

#include <fmt/format.h>

#include "kernels/common/describe.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {
namespace {

CallText describe(const ReduceArgs& args) {
  const reduce::Op& op = *reduce::find(args.op);
  const int32_t output = reduce::output_type(op, args.dtype, args.output_type);
  std::string text = fmt::format("{} {} {} axis {}", op.name, dtype_name(args.dtype),
                                 describe_sizes(args.shape, args.rank), args.axis);
  if (args.axis_count > 1) text += fmt::format("..{}", args.axis + args.axis_count - 1);
  if (args.output_type != 0 && output != args.dtype) text += fmt::format(" to {}", dtype_name(output));
  return {text, args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<ReduceArgs> reduce =
    define_operation<ReduceArgs, check_reduce, host_reduce, record_reduce, describe, nullptr, offer_reduce>(
        "reduce", reduce::kTypes);
}  // namespace operations

}  // namespace tuff
