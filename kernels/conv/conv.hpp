// Convolution (cross-correlation) in one, two or three spatial dimensions, and the transposed one.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"
#include "tuff/tuff.h"

namespace tuff {

class Recorder;

// Depth, height, width.
inline constexpr uint32_t kConvAxes = 3;
using ConvExtents = std::array<uint64_t, kConvAxes>;

// A tensor's shape: two sizes, then its spatial extents. The order is that of TUFF_LAYOUT_NCHW, whatever the layout.
struct ConvShape {
  std::array<uint64_t, 2> outer = {};
  ConvExtents extents = {1, 1, 1};

  uint64_t pixels() const { return extents[0] * extents[1] * extents[2]; }
  uint64_t elements() const { return outer[0] * outer[1] * pixels(); }
  bool operator==(const ConvShape&) const = default;
};

// The arguments of a call. With fewer than three dimensions, the leading extents are 1.
struct ConvArgs {
  uint32_t rank = 2;  // the caller's dimensions
  bool transposed = false;
  int32_t dtype = TUFF_F32;
  int32_t layout = TUFF_LAYOUT_NCHW;
  const Buffer *input = nullptr, *filter = nullptr, *output = nullptr;
  const Buffer *bias = nullptr, *residual = nullptr;  // null: none
  ConvShape in_shape;                                 // N, C
  ConvShape filter_shape;                             // K, C / groups; transposed: C, K / groups
  ConvShape out_shape;                                // N, K
  ConvExtents stride = {1, 1, 1}, dilation = {1, 1, 1};
  ConvExtents padding = {}, padding_end = {};  // before and after
  ConvExtents output_padding = {};             // transposed: additional outputs at the end
  uint64_t groups = 1;
  int32_t activation = TUFF_ACTIVATION_NONE;
  int32_t precision = TUFF_PRECISION_DEFAULT;

  bool channels_last() const { return layout == TUFF_LAYOUT_NHWC; }
  uint64_t batch() const { return in_shape.outer[0]; }
  uint64_t channels() const { return in_shape.outer[1]; }
  uint64_t filters() const { return out_shape.outer[1]; }
  uint64_t group_channels() const { return channels() / groups; }
  uint64_t group_filters() const { return filters() / groups; }
  const ConvExtents& in() const { return in_shape.extents; }
  const ConvExtents& taps() const { return filter_shape.extents; }
  const ConvExtents& out() const { return out_shape.extents; }
  // Whether there is no depth: an output's only plane is computed from its input's only plane, without padding in
  // depth.
  bool flat() const { return in()[0] == 1 && taps()[0] == 1 && out()[0] == 1 && padding[0] == 0; }
};

// Elements of input, filter and output.
struct ConvElements {
  uint64_t in, filter, out;
};
// What convolutions and their gradients check alike: the type, the layout, and that the shapes follow from each other.
ConvElements check_conv_shapes(const ConvArgs& args);
void check_conv_tensor(const ConvArgs& args, const Buffer* buffer, const char* name, const ConvShape& shape,
                       uint64_t elements);

void check_conv(const ConvArgs& args);
void host_conv(const ConvArgs& args);
void record_conv(Recorder& recorder, const ConvArgs& args);
tuff_status offer_conv(const PluginFunction& function, const ConvArgs& args);

namespace operations {
extern const OperationOf<ConvArgs> conv1d, conv2d, conv3d, conv_transpose2d;
}  // namespace operations

}  // namespace tuff
