// Rotary position embedding (Su et al. 2021, "RoFormer"): rotates pairs of a head's elements by angles that grow with
// the position.
#pragma once

#include <array>
#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

// Element (b, h, s, d) is at index b strides[0] + h strides[1] + s strides[2] + d.
struct RopeArgs {
  int32_t dtype;
  const Buffer *input, *output, *positions;  // positions: i32, may be null
  uint64_t batch, heads, seq, head_dim;
  uint64_t rotary_dim;  // how many elements of a head, from its first, are rotated; even
  std::array<uint64_t, 3> input_strides, output_strides;
  uint64_t positions_stride;  // from one batch to the next
  int64_t offset;             // added to the positions, or to 0, 1, 2, …
  double base;
  int32_t interleaved;
};

void check_rope(const RopeArgs& args);
void host_rope(const RopeArgs& args);
void record_rope(Recorder& recorder, const RopeArgs& args);

namespace operations {
extern const OperationOf<RopeArgs> rope;
}  // namespace operations

}  // namespace tuff
