// Gradients of one layer of a recurrent network. See tuff_rnn_backward() in tuff.h.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/rnn/rnn.hpp"

namespace tuff {

struct RnnBackwardArgs {
  RnnArgs layer;  // without outputs; y_strides are those of dy
  const Buffer *dy, *dhn, *dcn;
  const Buffer* dx;
  std::array<uint64_t, 2> dx_strides;
  const Buffer *dw, *dr, *dbias_w, *dbias_r, *dpeepholes, *dprojection, *dh0, *dc0;

  uint64_t w_elements() const { return layer.directions() * layer.gate_rows() * layer.input_size; }
  uint64_t r_elements() const { return layer.directions() * layer.gate_rows() * layer.state_size(); }
  uint64_t peephole_elements() const { return layer.directions() * 3 * layer.hidden_size; }
  uint64_t projection_elements() const { return layer.directions() * layer.proj_size * layer.hidden_size; }
  // Up to the last one used; for checked arguments with steps and sequences.
  uint64_t dx_elements() const {
    return (layer.steps - 1) * dx_strides[0] + (layer.batch - 1) * dx_strides[1] + layer.input_size;
  }
};

void complete_rnn_backward(RnnBackwardArgs& args);
void check_rnn_backward(const RnnBackwardArgs& args);
void host_rnn_backward(const RnnBackwardArgs& args);
void record_rnn_backward(Recorder& recorder, const RnnBackwardArgs& args);

namespace operations {
extern const OperationOf<RnnBackwardArgs> rnn_backward;
}  // namespace operations

}  // namespace tuff
