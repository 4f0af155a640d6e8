// The header's "Training" group.
#include "kernels/optimizer/optimizer.hpp"
#include "kernels/softmax/cross_entropy.hpp"
#include "kernels/softmax/softmax_backward.hpp"

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::OperandArrays;
using tuff::capi::read_structure;

namespace {

template <typename Desc>
std::span<const uint64_t> sizes_of(const Desc& desc) {
  tuff::require(desc.count == 0 || desc.sizes != nullptr, "sizes is null");
  return {desc.sizes, desc.count};
}

double scale_of(double given) { return given == 0 ? 1 : given; }

}  // namespace

extern "C" tuff_status tuff_optimizer_step(tuff_stream stream, const tuff_optimizer_desc* given) {
  return guarded("tuff_optimizer_step", [&] {
    const tuff_optimizer_desc desc = read_structure(given, "desc");
    tuff::require_reserved(desc.reserved);
    tuff::OptimizerArgs args{};
    args.sizes = sizes_of(desc);
    const auto target = acquire_stream(stream);
    OperandArrays arrays(target, 5, desc.count);
    const auto array = [&](const tuff_buffer* handles, const char* name) {
      return handles != nullptr ? arrays.add(handles, desc.count, name) : std::span<const tuff::Buffer* const>();
    };
    args.parameters = array(desc.parameters, "parameters");
    args.gradients = array(desc.gradients, "gradients");
    args.masters = array(desc.masters, "masters");
    args.first_moments = array(desc.first_moments, "first_moments");
    args.second_moments = array(desc.second_moments, "second_moments");
    const Operand steps(target, desc.steps, "steps"), rate_factor(target, desc.rate_factor, "rate_factor"),
        gradient_factor(target, desc.gradient_factor, "gradient_factor"), skip(target, desc.skip, "skip");
    args.dtype = desc.dtype;
    args.gradient_type = desc.gradient_type != 0 ? desc.gradient_type : desc.dtype;
    args.algorithm = desc.algorithm;
    args.nesterov = desc.nesterov;
    args.rate = desc.rate;
    args.momentum = desc.momentum;
    args.beta1 = desc.beta1;
    args.beta2 = desc.beta2;
    args.epsilon = desc.epsilon;
    args.weight_decay = desc.weight_decay;
    args.gradient_scale = scale_of(desc.gradient_scale);
    args.step = desc.step;
    args.steps = steps;
    args.rate_factor = rate_factor;
    args.gradient_factor = gradient_factor;
    args.skip = skip;
    target->run(tuff::operations::optimizer_step(args));
  });
}

extern "C" tuff_status tuff_gradient_norm(tuff_stream stream, const tuff_gradient_norm_desc* given) {
  return guarded("tuff_gradient_norm", [&] {
    const tuff_gradient_norm_desc desc = read_structure(given, "desc");
    tuff::require_reserved(desc.reserved);
    tuff::GradientNormArgs args{};
    args.sizes = sizes_of(desc);
    tuff::require(desc.count == 0 || desc.gradients != nullptr, "gradients is null");
    const auto target = acquire_stream(stream);
    OperandArrays arrays(target, 1, desc.count);
    args.gradients = arrays.add(desc.gradients, desc.count, "gradients");
    const Operand gradient_factor(target, desc.gradient_factor, "gradient_factor"), norm(target, desc.norm, "norm"),
        factor(target, desc.factor, "factor"), found(target, desc.found, "found");
    args.dtype = desc.dtype;
    args.accumulate = desc.accumulate;
    args.gradient_scale = scale_of(desc.gradient_scale);
    args.limit = desc.limit;
    args.gradient_factor = gradient_factor;
    args.norm = norm;
    args.factor = factor;
    args.found = found;
    target->run(tuff::operations::gradient_norm(args));
  });
}

extern "C" tuff_status tuff_cross_entropy(tuff_stream stream, const tuff_cross_entropy_desc* given) {
  return guarded("tuff_cross_entropy", [&] {
    const tuff_cross_entropy_desc desc = read_structure(given, "desc");
    const auto target = acquire_stream(stream);
    const Operand logits(target, desc.logits, "logits"), labels(target, desc.labels, "labels"),
        gradient_factor(target, desc.gradient_factor, "gradient_factor"),
        loss_gradient(target, desc.loss_gradient, "loss_gradient"), loss(target, desc.loss, "loss"),
        gradient(target, desc.gradient, "gradient");
    target->run(
        tuff::operations::cross_entropy({desc.dtype, desc.label_type, desc.ignores, desc.ignore_index, desc.shape,
                                         desc.rank, desc.axis, desc.label_smoothing, scale_of(desc.gradient_scale),
                                         logits, labels, gradient_factor, loss_gradient, loss, gradient}));
  });
}

extern "C" tuff_status tuff_softmax_backward(tuff_stream stream, const tuff_softmax_backward_desc* given) {
  return guarded("tuff_softmax_backward", [&] {
    const tuff_softmax_backward_desc desc = read_structure(given, "desc");
    tuff::require_reserved(desc.reserved);
    const auto target = acquire_stream(stream);
    const Operand output(target, desc.output, "output"),
        output_gradient(target, desc.output_gradient, "output_gradient"), gradient(target, desc.gradient, "gradient");
    target->run(tuff::operations::softmax_backward({desc.dtype, output, output_gradient, gradient, desc.shape,
                                                    desc.rank, desc.axis, scale_of(desc.scale), desc.logarithm}));
  });
}
