#include "kernels/conv/conv.hpp"

#include <fmt/format.h>

#include "kernels/common/describe.hpp"
#include "kernels/conv/conv_backward.hpp"

namespace tuff {
namespace {

std::string extents_text(const ConvExtents& extents, uint32_t rank) {
  return fmt::format("{}", fmt::join(extents.end() - rank, extents.end(), "x"));
}

CallText describe(const ConvArgs& args) {
  const uint32_t rank = args.rank;
  std::string shape = fmt::format("{} {}x{}x{} by {} to {}x{}", dtype_name(args.dtype), args.batch(), args.channels(),
                                  extents_text(args.in(), rank), extents_text(args.taps(), rank), args.filters(),
                                  extents_text(args.out(), rank));
  if (args.groups != 1) shape += fmt::format(" groups {}", args.groups);
  if (args.channels_last()) shape += " channels last";
  return {shape, args.dtype};
}

CallText describe_backward(const ConvBackwardArgs& args) { return describe(args.conv); }

}  // namespace

namespace operations {
const OperationOf<ConvArgs> conv1d =
    define_operation<ConvArgs, check_conv, host_conv, record_conv, describe, nullptr, offer_conv>("conv1d",
                                                                                                  kFloatTypes);
const OperationOf<ConvArgs> conv2d =
    define_operation<ConvArgs, check_conv, host_conv, record_conv, describe, nullptr, offer_conv>("conv2d",
                                                                                                  kFloatTypes);
const OperationOf<ConvArgs> conv3d =
    define_operation<ConvArgs, check_conv, host_conv, record_conv, describe, nullptr, offer_conv>("conv3d",
                                                                                                  kFloatTypes);
const OperationOf<ConvArgs> conv_transpose2d =
    define_operation<ConvArgs, check_conv, host_conv, record_conv, describe, nullptr, offer_conv>("conv_transpose2d",
                                                                                                  kFloatTypes);
const OperationOf<ConvBackwardArgs> conv_backward_data =
    define_operation<ConvBackwardArgs, check_conv_backward_data, host_conv_backward_data, record_conv_backward_data,
                     describe_backward>("conv_backward_data", kFloatTypes);
const OperationOf<ConvBackwardArgs> conv_backward_filter =
    define_operation<ConvBackwardArgs, check_conv_backward_filter, host_conv_backward_filter,
                     record_conv_backward_filter, describe_backward>("conv_backward_filter", kFloatTypes);
}  // namespace operations

}  // namespace tuff
