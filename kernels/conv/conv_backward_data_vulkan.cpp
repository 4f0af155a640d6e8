// Plans the gradient of a convolution by its input: the transposed convolution of the output's gradient.
#include <algorithm>

#include "kernels/common/stream_device.hpp"
#include "kernels/conv/conv_backward.hpp"
#include "kernels/conv/conv_plan.hpp"
#include "kernels/gemm/implicit_gemm.hpp"

namespace tuff {

void record_conv_backward_data(Recorder& recorder, const ConvBackwardArgs& args) {
  require_storage(recorder.traits(), args.conv.dtype);
  ConvArgs transposed = transposed_of(args);
  if (transposed.out_shape.elements() == 0) return;
  // A stride between windows of which there is only one has no effect.
  for (uint32_t axis = 0; axis < kConvAxes; ++axis) {
    if (transposed.in()[axis] == 1) transposed.stride[axis] = 1;
  }
  if (transposed.in_shape.elements() == 0) {  // no filters: zeros
    GemmArgs zeros{};
    zeros.a_type = zeros.b_type = zeros.c_type = args.conv.dtype;
    zeros.c = args.dinput;
    zeros.m = args.conv.batch();
    zeros.n = zeros.ldc = args.conv.in_shape.elements() / zeros.m;
    return gemm::record_finish(recorder, zeros, nullptr, 0);
  }
  if (conv::suits_dense_phases(recorder.traits(), transposed)) {
    return conv::record_dense_phases(recorder, transposed);
  }
  record_conv(recorder, transposed);
}

}  // namespace tuff
