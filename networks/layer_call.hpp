// A layer as a call of the C ABI: which operands it needs, and what it costs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "networks/network.hpp"

namespace networks {

struct Operand {
  std::string name;      // of the descriptor's field
  uint64_t count = 0;    // elements
  uint64_t entries = 0;  // not 0: of TUFF_U32, indices below this; else of the call's dtype
};

struct LayerCall {
  std::vector<Operand> inputs;
  uint64_t outputs = 0;  // elements
  double flops = 0;      // of a layer that arithmetic bounds; 0: memory does
  double bytes = 0;      // read and written once
  // inputs: a buffer for each, in their order.
  std::function<tuff_status(tuff_stream, const std::vector<tuff_buffer>& inputs, tuff_buffer output)> run;
};

// For a batch of so many samples. Sequences lie as [batch][seq][heads][head_dim].
LayerCall make_call(const Layer& layer, uint64_t batch, int32_t dtype);

}  // namespace networks
