// Images, and what has one or three spatial axes, at another size: nearest element, or linear interpolation.
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
  std::array<uint64_t, 3> in_shape, out_shape;  // of which `spatial` are given
  std::array<double, 3> scale;                  // 0: out / in
  int32_t align_corners;
};

void check_resize(const ResizeArgs& args);
void host_resize(const ResizeArgs& args);
void record_resize(Recorder& recorder, const ResizeArgs& args);

// One axis, in whole numbers: output o lies at ((m * step) - (halves ? whole / 2 : 0)) / whole elements from the
// input's first, where m is 2 o + 1 or o (ResizeShape).
struct ResizeAxis {
  uint64_t in, out, step, whole;
  bool identity;
};

// The input as [planes][axes of it][inner]. Axes that stay as they are count as planes, or as a part of inner.
struct ResizeShape {
  uint64_t planes, inner;
  uint32_t rank;                   // axes that are left
  std::array<ResizeAxis, 3> axes;  // the last `rank` of them; those in front are of size 1
  bool linear;                     // else the element at the position rounded down
  bool centres;                    // positions are those of elements' centres: m is 2 o + 1; else o
  bool halves;                     // half an element is taken off, from centres to the numbers of elements
  uint64_t inputs() const { return axes[0].in * axes[1].in * axes[2].in * inner; }  // of a plane
  uint64_t outputs() const { return axes[0].out * axes[1].out * axes[2].out * inner; }
};
ResizeShape resize_shape(const ResizeArgs& args);

namespace operations {
extern const OperationOf<ResizeArgs> resize;
}  // namespace operations

}  // namespace tuff
