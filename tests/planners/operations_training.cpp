// Draws the arguments of optimisers' steps, gradient norms, cross-entropy and the gradient of softmax.
#include "kernels/optimizer/optimizer.hpp"
#include "kernels/softmax/cross_entropy.hpp"
#include "kernels/softmax/softmax_backward.hpp"
#include "planners/draw.hpp"

namespace tuff_test {

using tuff::Buffer;
using tuff::dtype_size;

namespace {

using Tensors = std::vector<const Buffer*>;

// The sizes of a list: few tensors of any size, or, once in `odds` times, more than a dispatch takes, most of them
// small. Each operand is misused beside each output, which takes time.
std::vector<uint64_t>& draw_list(Call& call, uint64_t odds) {
  Numbers& n = call.numbers;
  auto& sizes = call.keep(std::vector<uint64_t>(n.coin(odds) ? 75 + n.below(15) : n.below(6)));
  for (uint64_t& size : sizes) size = n.coin(sizes.size() > 6 ? 40 : 2) ? call.size() : n.below(3000);
  call.tell("sizes", sizes);
  return sizes;
}

}  // namespace

void draw_optimizer_step(Call& call) {
  Numbers& n = call.numbers;
  tuff::OptimizerArgs& args = call.keep(tuff::OptimizerArgs{});
  const std::vector<uint64_t>& sizes = draw_list(call, 200);
  uint64_t elements = 0;
  for (const uint64_t size : sizes) elements = plus(elements, size);
  args.sizes = sizes;
  args.dtype = call.float_type(), args.gradient_type = n.coin() ? args.dtype : int32_t{TUFF_F32};
  args.algorithm = static_cast<int32_t>(n.below(4));
  args.rate = 0.1, args.weight_decay = n.coin() ? 0.1 : 0, args.gradient_scale = 1;
  if (args.adaptive()) {
    args.beta1 = 0.9, args.beta2 = 0.99, args.epsilon = 1e-8;
  } else if (n.coin()) {
    args.momentum = 0.9, args.nesterov = static_cast<int32_t>(n.below(2));
  }
  call.tell("algorithm", args.algorithm), call.tell("dtype", args.dtype);
  call.tell("gradient_type", args.gradient_type), call.tell("momentum", args.momentum);
  const auto tensors = [&](const char* name, int32_t dtype, bool written) -> Tensors& {
    Tensors& all = call.keep(Tensors{});
    for (const uint64_t size : sizes) {
      all.push_back(written ? call.output(name, size, dtype_size(dtype)) : call.input(name, size, dtype_size(dtype)));
    }
    return all;
  };
  args.parameters = tensors("parameters", args.dtype, true);
  args.gradients = tensors("gradients", args.gradient_type, false);
  if (n.coin(3)) args.masters = tensors("masters", TUFF_F32, true);
  if (args.has_moments()) args.first_moments = tensors("first_moments", TUFF_F32, true);
  if (args.adaptive()) args.second_moments = tensors("second_moments", TUFF_F32, true);
  const uint64_t one = elements != 0 ? 1 : 0;
  if (n.coin()) args.steps = call.output("steps", one, 4);
  args.step = args.steps != nullptr ? 0 : 7;
  args.rate_factor = call.perhaps("rate_factor", one, 4);
  args.gradient_factor = call.perhaps("gradient_factor", one, 4);
  args.skip = call.perhaps("skip", one, 4);
  set(call, tuff::operations::optimizer_step, args);
}

void draw_gradient_norm(Call& call) {
  Numbers& n = call.numbers;
  tuff::GradientNormArgs& args = call.keep(tuff::GradientNormArgs{});
  const std::vector<uint64_t>& sizes = draw_list(call, 6);
  args.sizes = sizes;
  args.dtype = call.float_type(), args.gradient_scale = 1, args.limit = n.coin() ? 1 : 0;
  call.tell("dtype", args.dtype);
  Tensors& gradients = call.keep(Tensors{});
  for (const uint64_t size : sizes) gradients.push_back(call.input("gradients", size, dtype_size(args.dtype)));
  args.gradients = gradients;
  args.gradient_factor = call.perhaps("gradient_factor", 1, 4);
  args.norm = n.coin() ? call.output("norm", 1, 4) : nullptr;
  args.accumulate = args.norm != nullptr && n.coin() ? 1 : 0;
  args.factor = n.coin() ? call.output("factor", 1, 4) : nullptr;
  if (n.coin() || (args.norm == nullptr && args.factor == nullptr)) args.found = call.output("found", 1, 4);
  set(call, tuff::operations::gradient_norm, args);
}

void draw_cross_entropy(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::CrossEntropyArgs& args = call.keep(tuff::CrossEntropyArgs{});
  args.dtype = call.float_type(), args.label_type = n.one_of<int32_t>({TUFF_I32, TUFF_I64, TUFF_U32, TUFF_U64});
  args.ignores = static_cast<int32_t>(n.below(2)), args.ignore_index = args.ignores != 0 && n.coin() ? -100 : 0;
  args.label_smoothing = n.one_of<double>({0, 0.1, 1}), args.gradient_scale = 1;
  call.tell("dtype", args.dtype), call.tell("label_type", args.label_type),
      call.tell("smoothing", args.label_smoothing);
  if (shape.sizes[shape.axis] == 0) shape.sizes[shape.axis] = 1;
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  const uint64_t elements = shape.elements(), size = dtype_size(args.dtype);
  uint64_t rows = elements == 0 ? 0 : 1;
  for (uint32_t i = 0; i < shape.rank; ++i) rows = i == shape.axis ? rows : times(rows, shape.sizes[i]);
  args.logits = call.input("logits", elements, size);
  args.labels = call.input("labels", rows, dtype_size(args.label_type));
  const bool gradient = n.coin();
  if (gradient) {
    args.gradient_factor = call.perhaps("gradient_factor", rows != 0 ? 1 : 0, 4);
    args.loss_gradient = call.perhaps("loss_gradient", rows, 4);
    args.gradient = call.output_or(n.coin(4) ? args.logits : nullptr, "gradient", elements, size);
  }
  if (!gradient || n.coin()) args.loss = call.output("loss", rows, 4);
  set(call, tuff::operations::cross_entropy, args);
}

void draw_softmax_backward(Call& call) {
  Numbers& n = call.numbers;
  Shape& shape = draw_shape(call);
  tuff::SoftmaxBackwardArgs& args = call.keep(tuff::SoftmaxBackwardArgs{});
  args.dtype = call.float_type(), args.scale = 1, args.logarithm = static_cast<int32_t>(n.below(2));
  call.tell("dtype", args.dtype);
  args.shape = shape.sizes.data(), args.rank = shape.rank, args.axis = shape.axis;
  const uint64_t elements = shape.elements(), size = dtype_size(args.dtype);
  args.output = call.input("output", elements, size);
  args.output_gradient = call.input("output_gradient", elements, size);
  const Buffer* const same = n.coin(4) ? (n.coin() ? args.output : args.output_gradient) : nullptr;
  args.gradient = call.output_or(same, "gradient", elements, size);
  set(call, tuff::operations::softmax_backward, args);
}

}  // namespace tuff_test
