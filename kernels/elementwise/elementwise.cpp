#include "kernels/elementwise/elementwise.hpp"

#include <fmt/format.h>

#include "kernels/common/describe.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"

namespace tuff {
namespace {

CallText describe(const UnaryArgs& args) {
  return {fmt::format("{} {} n={}", elementwise::find(elementwise::kUnaryOps, args.op)->name, dtype_name(args.dtype),
                      args.n),
          args.dtype};
}

CallText describe(const BinaryArgs& args) {
  const char* name = elementwise::find(elementwise::kBinaryOps, args.op)->name;
  if (args.rank == 0) return {fmt::format("{} {} n={}", name, dtype_name(args.dtype), args.n), args.dtype};
  return {fmt::format("{} {} {} and {}", name, dtype_name(args.dtype), describe_sizes(args.a_shape, args.rank),
                      describe_sizes(args.b_shape, args.rank)),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<UnaryArgs> unary =
    define_operation<UnaryArgs, check_unary, host_unary, record_unary, describe, nullptr, offer_unary>(
        "unary", elementwise::kUnaryTypes);
const OperationOf<BinaryArgs> binary =
    define_operation<BinaryArgs, check_binary, host_binary, record_binary, describe, nullptr, offer_binary>(
        "binary", elementwise::kBinaryTypes);
}  // namespace operations

}  // namespace tuff
