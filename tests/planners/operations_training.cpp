// Draws the arguments of optimisers' steps and of gradient norms.
#include "kernels/optimizer/optimizer.hpp"
#include "planners/draw.hpp"

namespace tuff_test {

using tuff::Buffer;
using tuff::dtype_size;

namespace {

using Tensors = std::vector<const Buffer*>;

// The sizes of a list: few tensors of any size, or, once in `odds` times, more than a dispatch takes, most of them small.
// Each operand is misused beside each output, which takes time.
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

}  // namespace tuff_test
