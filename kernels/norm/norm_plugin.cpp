// Normalisations as plug-ins see them.
#include "kernels/common/plugin_call.hpp"
#include "kernels/norm/norm.hpp"

namespace tuff {
namespace {

// Fields that all descriptors have.
template <typename Call, typename Args>
Call call_of(const Args& args) {
  auto call = new_call<Call>();
  call.dtype = args.dtype;
  call.weight_type = args.weight_type;
  call.input = address_of(args.input);
  call.weight = address_of(args.weight);
  call.output = address_of(args.output);
  call.epsilon = double{static_cast<float>(args.epsilon)};
  return call;
}

template <typename Call>
Call row_call(const NormArgs& args) {
  auto call = call_of<Call>(args);
  call.rows = args.rows;
  call.cols = args.channels;
  call.residual = address_of(args.residual);
  call.sum = address_of(args.sum);
  return call;
}

}  // namespace

tuff_status offer_norm(const PluginFunction& function, const NormArgs& args) {
  if (args.rows == 0) return TUFF_ERROR_UNSUPPORTED;
  if (!args.centred) return function(row_call<tuff_rms_norm_desc>(args));
  if (!args.grouped) {
    auto call = row_call<tuff_layer_norm_desc>(args);
    call.bias = address_of(args.bias);
    return function(call);
  }
  auto call = call_of<tuff_group_norm_desc>(args);
  call.bias = address_of(args.bias);
  call.batch = args.rows;
  call.channels = args.channels;
  call.inner = args.inner;
  call.groups = args.groups;
  return function(call);
}

tuff_status offer_batch_norm(const PluginFunction& function, const BatchNormArgs& args) {
  if (args.batch == 0 || args.channels == 0 || args.inner == 0) return TUFF_ERROR_UNSUPPORTED;
  auto call = call_of<tuff_batch_norm_desc>(args);
  call.mean = address_of(args.mean);
  call.variance = address_of(args.variance);
  call.bias = address_of(args.bias);
  call.batch = args.batch;
  call.channels = args.channels;
  call.inner = args.inner;
  return function(call);
}

}  // namespace tuff
