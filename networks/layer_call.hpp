// Turns a layer into a call of the C ABI: the operands it needs, and what it costs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "networks/network.hpp"

namespace networks {

struct Operand {
  std::string name;      // the descriptor's field
  uint64_t count = 0;    // elements
  uint64_t entries = 0;  // if not 0: TUFF_U32 indices below this; otherwise elements of the call's dtype
};

struct LayerCall {
  std::vector<Operand> inputs;
  uint64_t outputs = 0;  // elements
  double flops = 0;      // of a compute-bound layer; 0 if memory-bound
  double bytes = 0;      // each operand read or written once
  // inputs: one buffer for each Operand, in the same order.
  std::function<tuff_status(tuff_stream, const std::vector<tuff_buffer>& inputs, tuff_buffer output)> run;
};

// The call for a batch of this many samples. Sequences are stored as [batch][seq][heads][head_dim].
LayerCall make_call(const Layer& layer, uint64_t batch, int32_t dtype);

}  // namespace networks
