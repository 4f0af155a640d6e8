// Convolutions whose split-K sums do not fit into scratch memory all at once.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "capi/objects.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "support/tensor.hpp"

namespace tuff_test {
namespace {

using tuff::ConvArgs;

// 600,000 taps: CPU devices need three parts. Few of them are of one channel, because a transposed convolution has twice as many
// outputs as taps, each of which passes over all channels.
constexpr uint64_t kChannels = 30000, kFilters = 4, kTaps = 20;

template <uint64_t outputs>
void record_some(tuff::Recorder& recorder, const ConvArgs& args) {
  const uint64_t max_sums = outputs * args.out_shape.elements();
  if (args.transposed) return tuff::conv::record_transposed(recorder, args, max_sums);
  tuff::conv::record_products(recorder, args, max_sums);
}
tuff::CallText describe(const ConvArgs&) { return {}; }

// Convolutions that store the sums of this many split-K parts at a time.
template <uint64_t parts>
const tuff::OperationOf<ConvArgs> conv_by =
    tuff::define_operation<ConvArgs, tuff::check_conv, tuff::host_conv, record_some<parts>, describe>(
        "conv", tuff::kFloatTypes);

class ConvSlices : public testing::TestWithParam<std::tuple<int32_t, bool>> {
 protected:
  // Integers, so that every order of additions gives the same sum.
  std::vector<float> run(const char* backend, const tuff::OperationOf<ConvArgs>& conv) {
    const auto [layout, transposed] = GetParam();
    ConvArgs args;
    args.rank = 1;
    args.layout = layout;
    args.transposed = transposed;
    const uint64_t stride = transposed ? 2 : 1, taps = kTaps * stride, in = transposed ? 3 : kTaps + 10;
    args.in_shape = {{2, kChannels}, {1, 1, in}};
    args.filter_shape = {{kFilters, kChannels}, {1, 1, taps}};
    if (transposed) args.filter_shape.outer = {kChannels, kFilters};
    args.stride[2] = stride;
    args.out_shape = {{2, kFilters}, {1, 1, transposed ? (in - 1) * stride + taps : in - taps + 1}};
    args.activation = TUFF_ACTIVATION_RELU;

    const OwnContext own(backend);
    const Tensor input(own, integers(args.in_shape.elements(), 3, 1)), bias(own, integers(kFilters, 9, 3));
    const Tensor filter(own, integers(args.filter_shape.elements(), 3, 2)), output(own, args.out_shape.elements());
    const auto context = tuff::capi::acquire_context(own);
    const auto buffer = [&](tuff_buffer handle) { return tuff::capi::acquire_buffer(context, handle, "operand"); };
    const auto in_object = buffer(input), filter_object = buffer(filter), bias_object = buffer(bias);
    const auto out_object = buffer(output);
    args.input = &in_object->buffer(), args.filter = &filter_object->buffer(), args.bias = &bias_object->buffer();
    args.output = &out_object->buffer();
    context->default_stream().run(conv(args));
    return output.read();
  }
};

TEST_P(ConvSlices, PartsThatDoNotFitAreAddedToEarlierOnes) {
  const std::vector<float> expected = run("host", conv_by<1>);
  expect_same_bits(run("vulkan", conv_by<1>), expected);
  expect_same_bits(run("vulkan", conv_by<2>), expected);
  expect_same_bits(run("vulkan", conv_by<64>), expected);
}

INSTANTIATE_TEST_SUITE_P(All, ConvSlices,
                         testing::Combine(testing::Values(TUFF_LAYOUT_NCHW, TUFF_LAYOUT_NHWC), testing::Bool()));

}  // namespace
}  // namespace tuff_test
