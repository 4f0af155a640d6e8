// Two-dimensional convolution (cross-correlation), NCHW with KCRS filters to NKPQ.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/buffer.hpp"

namespace tuff {

class Recorder;

struct Conv2dArgs {
  int32_t dtype;
  const Buffer *input, *filter, *output;
  std::array<uint64_t, 4> in_shape, filter_shape, out_shape;  // NCHW, KCRS, NKPQ
  std::array<uint64_t, 2> stride, padding;
  std::array<uint64_t, 2> dilation = {1, 1};
};

void check_conv2d(const Conv2dArgs& args);
void host_conv2d(const Conv2dArgs& args);
void record_conv2d(Recorder& recorder, const Conv2dArgs& args);

}  // namespace tuff
