// The layers of networks/, each measured separately.
#include <fmt/format.h>

#include <memory>

#include "bench/harness.hpp"
#include "networks/layer_call.hpp"

namespace bench {
namespace {

std::shared_ptr<tuff::Buffer> buffer_of(const tuff::Context& context, const networks::Operand& operand, DType dtype) {
  if (operand.entries == 0) return random_buffer(context, operand.count, dtype);
  auto indices = empty_buffer(context, operand.count);
  indices->upload(scattered_indices(operand.count, operand.entries));
  return indices;
}

void add_layer(const std::string& network, const networks::Layer& layer, uint64_t batch, DType dtype) {
  const networks::LayerCall call = make_call(layer, batch, static_cast<int32_t>(dtype));
  uint64_t memory = element_bytes(dtype) * call.outputs;
  for (const networks::Operand& input : call.inputs) memory += element_bytes(dtype) * input.count;
  const Work work = call.flops > 0 ? Work{call.flops, 0} : Work{0, call.bytes};
  add(fmt::format("tuff/{}/batch {}/{}/x{}{}", network, batch, layer.title(), layer.count, dtype_suffix(dtype)), work,
      memory, [=](const tuff::Context& context) {
        std::vector<std::shared_ptr<tuff::Buffer>> owners;
        std::vector<tuff_buffer> inputs;
        for (const networks::Operand& input : call.inputs) {
          owners.push_back(buffer_of(context, input, dtype));
          inputs.push_back(owners.back()->handle());
        }
        auto output = empty_buffer(context, call.outputs);
        return [=, &context] {
          static_cast<void>(owners);  // kept alive
          const tuff_status status = call.run(context.handle(), inputs, output->handle());
          if (status != TUFF_OK) throw tuff::Exception(status, tuff::last_error());
        };
      });
}

}  // namespace

void add_networks() {
  for (const std::string& name : networks::network_names()) {
    const networks::Network network = networks::read_network(name);
    for (const uint64_t batch : {1, 32}) {
      for (const DType dtype : {DType::f32, DType::f16}) {
        if (on_cpu() && (batch != 1 || dtype != DType::f32)) continue;
        for (const networks::Layer& layer : network.layers) add_layer(name, layer, batch, dtype);
      }
    }
  }
}

}  // namespace bench
