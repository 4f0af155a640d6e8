// Reduction of one axis, or of neighbouring axes together, of a dense tensor.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct ReduceArgs {
  int32_t dtype;
  int32_t op;  // TUFF_REDUCE_*
  const Buffer *input, *output;
  const uint64_t* shape;
  uint32_t rank, axis;
  uint32_t axis_count = 0;  // 0: one
  int32_t output_type = 0;  // 0: the first that the operation gives
  double correction = 0;

  auto arrays() { return std::tuple(counted(shape, rank)); }
};

void check_reduce(const ReduceArgs& args);
void host_reduce(const ReduceArgs& args);
void record_reduce(Recorder& recorder, const ReduceArgs& args);
tuff_status offer_reduce(const PluginFunction& function, const ReduceArgs& args);
void record_reduce_arg(Recorder& recorder, const ReduceArgs& args);  // argmax and argmin

namespace operations {
extern const OperationOf<ReduceArgs> reduce;
}  // namespace operations

}  // namespace tuff
