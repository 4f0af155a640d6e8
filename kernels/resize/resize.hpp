// Resizes images, and tensors with one or three spatial axes: nearest element, or linear interpolation.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct ResizeArgs {
  int32_t dtype, mode, layout;
  const Buffer *input, *output;
  uint64_t batch, channels;
  uint32_t spatial;                             // axes, 1 to 3
  std::array<uint64_t, 3> in_shape, out_shape;  // only the first `spatial` entries are set
  std::array<double, 3> scale;                  // 0: out / in
  int32_t align_corners;
};

void check_resize(const ResizeArgs& args);
void host_resize(const ResizeArgs& args);
void record_resize(Recorder& recorder, const ResizeArgs& args);

// One axis, in integers: output o is at ((m * step) - (halves ? whole / 2 : 0)) / whole elements from the input's
// first, where m is 2 o + 1 or o (see ResizeShape).
struct ResizeAxis {
  uint64_t in, out, step, whole;
  bool identity;
};

// The input as [planes][resized axes][inner]. Axes before and after those are folded into planes or inner if unchanged.
struct ResizeShape {
  uint64_t planes, inner;
  uint32_t rank;                   // number of resized axes
  std::array<ResizeAxis, 3> axes;  // the last `rank` of them; those before have size 1
  bool linear;                     // otherwise the element at the position rounded down
  bool centres;                    // positions refer to the centres of elements: m is 2 o + 1; otherwise o
  bool halves;                     // half an element is subtracted, to get from centres to indices
  uint64_t inputs() const { return axes[0].in * axes[1].in * axes[2].in * inner; }  // of a plane
  uint64_t outputs() const { return axes[0].out * axes[1].out * axes[2].out * inner; }
};
ResizeShape resize_shape(const ResizeArgs& args);

namespace operations {
extern const OperationOf<ResizeArgs> resize;
}  // namespace operations

}  // namespace tuff
