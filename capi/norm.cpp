// Entry points of the header's "Normalisations" group. The flat function fills in the descriptor of its _ex sibling.
#include "kernels/norm/norm.hpp"
#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/norm/norm_backward.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// Fields that all descriptors have.
template <typename Desc>
void check_common(const Desc& desc) {
  tuff::require_reserved(desc.reserved);
}

template <typename Desc>
int32_t weight_type(const Desc& desc) {
  return desc.weight_type != 0 ? desc.weight_type : desc.dtype;
}

// Arguments that row and group norms share.
template <typename Desc>
tuff::NormArgs norm_args(const Desc& desc, const Operand& input, const Operand& weight, const Operand& bias,
                         const Operand& output) {
  tuff::NormArgs args{};
  args.dtype = desc.dtype;
  args.weight_type = weight_type(desc);
  args.input = input;
  args.weight = weight;
  args.bias = bias;
  args.output = output;
  args.epsilon = desc.epsilon;
  return args;
}

// tuff_layer_norm_desc, tuff_rms_norm_desc
template <typename Desc>
void row_norm(tuff_stream stream, const Desc& desc, tuff_buffer bias_handle,
              const tuff::OperationOf<tuff::NormArgs>& operation) {
  check_common(desc);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), weight(target, desc.weight, "weight"),
      bias(target, bias_handle, "bias"), output(target, desc.output, "output"),
      residual(target, desc.residual, "residual"), sum(target, desc.sum, "sum");
  tuff::NormArgs args = norm_args(desc, input, weight, bias, output);
  args.centred = &operation == &tuff::operations::layer_norm;
  args.residual = residual;
  args.sum = sum;
  args.rows = desc.rows;
  args.channels = desc.cols;
  target->run(operation(args));
}

void group_norm(tuff_stream stream, const tuff_group_norm_desc& desc) {
  check_common(desc);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), weight(target, desc.weight, "weight"),
      bias(target, desc.bias, "bias"), output(target, desc.output, "output");
  tuff::NormArgs args = norm_args(desc, input, weight, bias, output);
  args.centred = true;
  args.rows = desc.batch;
  args.channels = desc.channels;
  args.inner = desc.inner;
  args.groups = desc.groups != 0 ? desc.groups : desc.channels;
  args.grouped = true;
  target->run(tuff::operations::group_norm(args));
}

void batch_norm(tuff_stream stream, const tuff_batch_norm_desc& desc) {
  check_common(desc);
  const auto target = acquire_stream(stream);
  const Operand input(target, desc.input, "input"), mean(target, desc.mean, "mean"),
      variance(target, desc.variance, "variance"), weight(target, desc.weight, "weight"),
      bias(target, desc.bias, "bias"), output(target, desc.output, "output");
  target->run(tuff::operations::batch_norm({desc.dtype, weight_type(desc), input, mean, variance, weight, bias, output,
                                            desc.batch, desc.channels, desc.inner, desc.epsilon}));
}

}  // namespace

extern "C" {

tuff_status tuff_layer_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight, tuff_buffer bias,
                            tuff_buffer output, uint64_t rows, uint64_t cols, double epsilon) {
  return guarded("tuff_layer_norm", [&] {
    const tuff_layer_norm_desc desc{
        sizeof(tuff_layer_norm_desc), dtype, input, weight, bias, output, rows, cols, epsilon, 0, 0, 0, 0};
    row_norm(stream, desc, bias, tuff::operations::layer_norm);
  });
}

tuff_status tuff_layer_norm_ex(tuff_stream stream, const tuff_layer_norm_desc* desc) {
  return guarded("tuff_layer_norm_ex", [&] {
    const tuff_layer_norm_desc wanted = read_structure(desc, "desc");
    row_norm(stream, wanted, wanted.bias, tuff::operations::layer_norm);
  });
}

tuff_status tuff_rms_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight, tuff_buffer output,
                          uint64_t rows, uint64_t cols, double epsilon) {
  return guarded("tuff_rms_norm", [&] {
    const tuff_rms_norm_desc desc{
        sizeof(tuff_rms_norm_desc), dtype, input, weight, output, rows, cols, epsilon, 0, 0, 0, 0};
    row_norm(stream, desc, TUFF_NULL_HANDLE, tuff::operations::rms_norm);
  });
}

tuff_status tuff_rms_norm_ex(tuff_stream stream, const tuff_rms_norm_desc* desc) {
  return guarded("tuff_rms_norm_ex", [&] {
    const tuff_rms_norm_desc wanted = read_structure(desc, "desc");
    row_norm(stream, wanted, TUFF_NULL_HANDLE, tuff::operations::rms_norm);
  });
}

tuff_status tuff_group_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer weight, tuff_buffer bias,
                            tuff_buffer output, uint64_t batch, uint64_t channels, uint64_t inner, uint64_t groups,
                            double epsilon) {
  return guarded("tuff_group_norm", [&] {
    tuff::require(groups != 0, "groups is 0, needs a divisor of channels={}", channels);
    group_norm(stream, {sizeof(tuff_group_norm_desc), dtype, input, weight, bias, output, batch, channels, inner,
                        groups, epsilon, 0, 0});
  });
}

tuff_status tuff_group_norm_ex(tuff_stream stream, const tuff_group_norm_desc* desc) {
  return guarded("tuff_group_norm_ex", [&] { group_norm(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_batch_norm(tuff_stream stream, int32_t dtype, tuff_buffer input, tuff_buffer mean,
                            tuff_buffer variance, tuff_buffer weight, tuff_buffer bias, tuff_buffer output,
                            uint64_t batch, uint64_t channels, uint64_t inner, double epsilon) {
  return guarded("tuff_batch_norm", [&] {
    batch_norm(stream, {sizeof(tuff_batch_norm_desc), dtype, input, mean, variance, weight, bias, output, batch,
                        channels, inner, epsilon, 0, 0});
  });
}

tuff_status tuff_batch_norm_ex(tuff_stream stream, const tuff_batch_norm_desc* desc) {
  return guarded("tuff_batch_norm_ex", [&] { batch_norm(stream, read_structure(desc, "desc")); });
}

tuff_status tuff_norm_backward(tuff_stream stream, const tuff_norm_backward_desc* given) {
  return guarded("tuff_norm_backward", [&] {
    const tuff_norm_backward_desc desc = read_structure(given, "desc");
    const auto target = acquire_stream(stream);
    const Operand input(target, desc.input, "input"), weight(target, desc.weight, "weight"),
        output_gradient(target, desc.output_gradient, "output_gradient"), mean(target, desc.mean, "mean"),
        variance(target, desc.variance, "variance"), input_gradient(target, desc.input_gradient, "input_gradient"),
        weight_gradient(target, desc.weight_gradient, "weight_gradient"),
        bias_gradient(target, desc.bias_gradient, "bias_gradient");
    const int32_t of_weights = weight_type(desc);
    const bool by_channel = desc.kind == TUFF_NORM_GROUP && desc.groups == 0;
    target->run(tuff::operations::norm_backward(
        {desc.dtype, desc.kind, of_weights, desc.statistics_type != 0 ? desc.statistics_type : TUFF_F32, desc.frozen,
         desc.batch, desc.channels, desc.inner, by_channel ? desc.channels : desc.groups, desc.epsilon, input, weight,
         output_gradient, mean, variance, input_gradient, weight_gradient, bias_gradient}));
  });
}

tuff_status tuff_batch_norm_training(tuff_stream stream, const tuff_batch_norm_training_desc* given) {
  return guarded("tuff_batch_norm_training", [&] {
    const tuff_batch_norm_training_desc desc = read_structure(given, "desc");
    check_common(desc);
    const auto target = acquire_stream(stream);
    const Operand input(target, desc.input, "input"), weight(target, desc.weight, "weight"),
        bias(target, desc.bias, "bias"), output(target, desc.output, "output"), mean(target, desc.mean, "mean"),
        variance(target, desc.variance, "variance"), running_mean(target, desc.running_mean, "running_mean"),
        running_variance(target, desc.running_variance, "running_variance");
    target->run(tuff::operations::batch_norm_training({desc.dtype, weight_type(desc), desc.batch, desc.channels,
                                                       desc.inner, desc.epsilon, desc.momentum, input, weight, bias,
                                                       output, mean, variance, running_mean, running_variance}));
  });
}

}  // extern "C"
