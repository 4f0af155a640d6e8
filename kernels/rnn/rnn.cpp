#include "kernels/rnn/rnn.hpp"

#include "kernels/rnn/rnn_backward.hpp"

#include <fmt/format.h>

namespace tuff {
namespace {

const char* cell_name(int32_t cell) {
  switch (cell) {
    case TUFF_RNN_CELL_LSTM: return "lstm";
    case TUFF_RNN_CELL_GRU: return "gru";
    case TUFF_RNN_CELL_TANH: return "tanh";
    default: return "relu";
  }
}

CallText describe(const RnnArgs& args) {
  const char* const direction = args.direction == TUFF_RNN_DIRECTION_BOTH      ? " both ways"
                                : args.direction == TUFF_RNN_DIRECTION_REVERSE ? " reverse"
                                                                               : "";
  const std::string projection = args.proj_size != 0 ? fmt::format(" to {}", args.proj_size) : "";
  return {fmt::format("{} {} batch {} steps {} {}->{}{}{}", dtype_name(args.dtype), cell_name(args.cell), args.batch,
                      args.steps, args.input_size, args.hidden_size, projection, direction),
          args.dtype};
}

CallText describe_backward(const RnnBackwardArgs& args) { return describe(args.layer); }

}  // namespace

namespace rnn {

std::array<uint32_t, 4> gate_places(const RnnArgs& args) {
  const bool onnx = args.gate_order == TUFF_RNN_GATES_ONNX;
  if (args.cell == TUFF_RNN_CELL_LSTM && onnx) return {0, 2, 3, 1};
  if (args.cell == TUFF_RNN_CELL_GRU && onnx) return {1, 0, 2, 3};
  return {0, 1, 2, 3};
}

}  // namespace rnn

namespace operations {
const OperationOf<RnnArgs> rnn =
    define_operation<RnnArgs, check_rnn, host_rnn, record_rnn, describe>("rnn", kFloatTypes);
const OperationOf<RnnBackwardArgs> rnn_backward =
    define_operation<RnnBackwardArgs, check_rnn_backward, host_rnn_backward, record_rnn_backward, describe_backward>(
        "rnn_backward", kFloatTypes);
}  // namespace operations

}  // namespace tuff
