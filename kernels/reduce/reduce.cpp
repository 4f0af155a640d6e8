#include "kernels/reduce/reduce.hpp"

#include <fmt/format.h>

#include "kernels/common/describe.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {
namespace {

CallText describe(const ReduceArgs& args) {
  return {fmt::format("{} {} {} axis {}", reduce::find(args.op)->name, dtype_name(args.dtype),
                      describe_sizes(args.shape, args.rank), args.axis),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<ReduceArgs> reduce =
    define_operation<ReduceArgs, check_reduce, host_reduce, record_reduce, describe>("reduce", reduce::kTypes);
}  // namespace operations

}  // namespace tuff
