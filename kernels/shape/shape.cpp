#include "kernels/shape/shape.hpp"

#include <fmt/format.h>

#include "kernels/common/describe.hpp"

namespace tuff {
namespace {

CallText describe(const PermuteArgs& args) {
  return {fmt::format("{} {} to {}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank),
                      describe_sizes(args.order, args.rank)),
          args.dtype};
}

CallText describe(const CastArgs& args) {
  return {fmt::format("{} to {} n={}", dtype_name(args.from), dtype_name(args.to), args.n), args.to};
}

CallText describe(const SliceArgs& args) {
  return {fmt::format("{} {} of {}", dtype_name(args.dtype), describe_sizes(args.out_shape, args.rank),
                      describe_sizes(args.shape, args.rank)),
          args.dtype};
}

CallText describe(const ConcatArgs& args) {
  return {fmt::format("{} {} of {} axis {}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank),
                      args.inputs.size(), args.axis),
          args.dtype};
}

CallText describe(const GatherArgs& args) {
  std::string shape =
      fmt::format("{} {} axis {}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank), args.axis);
  shape += args.index_shape == nullptr ? fmt::format(" by {}", args.count)
                                       : fmt::format(" by {}", describe_sizes(args.index_shape, args.rank));
  return {shape, args.dtype};
}

CallText describe(const PadArgs& args) {
  return {fmt::format("{} {} by {} and {}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank),
                      describe_sizes(args.before, args.rank), describe_sizes(args.after, args.rank)),
          args.dtype};
}

CallText describe(const CopyStridedArgs& args) {
  return {fmt::format("{} {} from {} to {}", dtype_name(args.dtype), describe_sizes(args.shape, args.rank),
                      describe_sizes(args.input_strides, args.rank), describe_sizes(args.output_strides, args.rank)),
          args.dtype};
}

}  // namespace

namespace operations {
const OperationOf<PermuteArgs> permute =
    define_operation<PermuteArgs, check_permute, host_permute, record_permute, describe, nullptr, offer_permute>(
        "permute", kAllTypes, true);
const OperationOf<CastArgs> cast =
    define_operation<CastArgs, check_cast, host_cast, record_cast, describe, nullptr, offer_cast>("cast", kAllTypes,
                                                                                                  true);
const OperationOf<SliceArgs> slice =
    define_operation<SliceArgs, check_slice, host_slice, record_slice, describe>("slice", kAllTypes, true);
const OperationOf<ConcatArgs> concat =
    define_operation<ConcatArgs, check_concat, host_concat, record_concat, describe>("concat", kAllTypes, true);
const OperationOf<GatherArgs> gather =
    define_operation<GatherArgs, check_gather, host_gather, record_gather, describe, nullptr, offer_gather>(
        "gather", kAllTypes, true);
const OperationOf<PadArgs> pad =
    define_operation<PadArgs, check_pad, host_pad, record_pad, describe>("pad", kAllTypes, true);
const OperationOf<CopyStridedArgs> copy_strided =
    define_operation<CopyStridedArgs, check_copy_strided, host_copy_strided, record_copy_strided, describe>(
        "copy_strided", kAllTypes, true);
}  // namespace operations

}  // namespace tuff
