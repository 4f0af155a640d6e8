// Softmax along one axis of a dense tensor.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

namespace softmax {
#define SOFTMAX_TYPE(NAME) TUFF_##NAME,
inline constexpr ElementTypes kTypes = {
#include "kernels/softmax/softmax.def"
};
}  // namespace softmax

// The mask is [rows][axis][inner]; index i before the axis uses row (i / repeat) % rows.
struct SoftmaxMask {
  const Buffer* buffer;   // null: none
  int32_t type;           // the operation's dtype: added; TUFF_U8: masks elements where it is 0
  uint64_t rows, repeat;  // rows 0: one for each index before the axis
};

struct SoftmaxArgs {
  int32_t dtype;
  const Buffer *input, *output;
  const uint64_t* shape;
  uint32_t rank, axis;
  double scale;  // multiplies the input
  int32_t logarithm;
  SoftmaxMask mask;

  auto arrays() { return std::tuple(counted(shape, rank)); }
};

void check_softmax(const SoftmaxArgs& args);
void host_softmax(const SoftmaxArgs& args);
void record_softmax(Recorder& recorder, const SoftmaxArgs& args);
tuff_status offer_softmax(const PluginFunction& function, const SoftmaxArgs& args);

namespace operations {
extern const OperationOf<SoftmaxArgs> softmax;
}  // namespace operations

}  // namespace tuff
