// One layer of a recurrent network: LSTM, GRU, tanh or relu, in one or both directions. See tuff_rnn() in tuff.h.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"
#include "tuff/tuff.h"

namespace tuff {

class Recorder;

struct RnnArgs {
  int32_t dtype, cell, direction, gate_order;
  bool linear_before_reset;
  uint64_t batch, steps, input_size, hidden_size, proj_size;
  double clip;
  const Buffer* x;
  std::array<uint64_t, 2> x_strides;  // of step and sequence
  const Buffer *w, *r, *bias_w, *bias_r;
  uint64_t bias_stride;
  const Buffer *peepholes, *projection, *lengths, *h0, *c0;
  const Buffer* y;
  std::array<uint64_t, 3> y_strides;  // of step, sequence and direction
  const Buffer *hn, *cn;

  uint64_t directions() const { return direction == TUFF_RNN_DIRECTION_BOTH ? 2 : 1; }
  bool reversed(uint64_t d) const { return direction == TUFF_RNN_DIRECTION_REVERSE || d == 1; }
  uint64_t gates() const { return cell == TUFF_RNN_CELL_LSTM ? 4 : cell == TUFF_RNN_CELL_GRU ? 3 : 1; }
  uint64_t gate_rows() const { return gates() * hidden_size; }                      // of w and r, for one direction
  uint64_t state_size() const { return proj_size != 0 ? proj_size : hidden_size; }  // of h
  // The new gate's product waits for the reset gate.
  bool resets_first() const { return cell == TUFF_RNN_CELL_GRU && !linear_before_reset; }
  uint64_t h_elements() const { return directions() * batch * state_size(); }
  uint64_t c_elements() const { return cell == TUFF_RNN_CELL_LSTM ? directions() * batch * hidden_size : 0; }
  // Elements up to the last one used; they do not overflow for checked arguments.
  uint64_t x_elements() const { return (steps - 1) * x_strides[0] + (batch - 1) * x_strides[1] + input_size; }
  uint64_t y_elements() const {
    return (steps - 1) * y_strides[0] + (batch - 1) * y_strides[1] + (directions() - 1) * y_strides[2] + state_size();
  }
};

namespace rnn {

// Positions of the gates in weights and biases. LSTM: input, forget, cell, output; GRU: reset, update, new.
std::array<uint32_t, 4> gate_places(const RnnArgs& args);

}  // namespace rnn

// Replaces strides of 0 by those of dense operands. Errors: strides beyond 2^64.
void complete_rnn(RnnArgs& args);
void check_rnn(const RnnArgs& args);
void host_rnn(const RnnArgs& args);
void record_rnn(Recorder& recorder, const RnnArgs& args);

namespace operations {
extern const OperationOf<RnnArgs> rnn;
}  // namespace operations

}  // namespace tuff
