// Gradients of convolutions. See tuff_conv_backward_data() and tuff_conv_backward_filter() in tuff.h.
#pragma once

#include <cstdint>

#include "kernels/conv/conv.hpp"

namespace tuff {

struct ConvBackwardArgs {
  ConvArgs conv;  // the convolution, whose output is not used
  const Buffer* doutput = nullptr;
  const Buffer* dinput = nullptr;                     // of the gradient by the input
  const Buffer *dfilter = nullptr, *dbias = nullptr;  // of those by the filter and the bias; null: not wanted
};

// The convolution's gradient by its input, as the transposed convolution of doutput that it is. Its output has as many
// elements as the input, so it may end before or after the last element that a window reads.
ConvArgs transposed_of(const ConvBackwardArgs& args);

void check_conv_backward_data(const ConvBackwardArgs& args);
void host_conv_backward_data(const ConvBackwardArgs& args);
void record_conv_backward_data(Recorder& recorder, const ConvBackwardArgs& args);

void check_conv_backward_filter(const ConvBackwardArgs& args);
void host_conv_backward_filter(const ConvBackwardArgs& args);
void record_conv_backward_filter(Recorder& recorder, const ConvBackwardArgs& args);

namespace operations {
extern const OperationOf<ConvBackwardArgs> conv_backward_data, conv_backward_filter;
}  // namespace operations

}  // namespace tuff
