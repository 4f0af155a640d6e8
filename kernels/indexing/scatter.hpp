// Writes or accumulates updates at the places that indices name.
#pragma once

#include <cstdint>

#include "kernels/indexing/places.hpp"
#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

namespace scatter {
inline constexpr ElementTypes kCombinedTypes = kRealTypes - kFloat8Types;
}  // namespace scatter

struct ScatterArgs {
  int32_t dtype, op;                       // op: TUFF_SCATTER_*
  const Buffer *input, *updates, *output;  // input may be null, or exactly the output
  IndexArgs index;                         // of the output
};

void record_scatter(Recorder& recorder, const ScatterArgs& args);

namespace operations {
extern const OperationOf<ScatterArgs> scatter;
}  // namespace operations

}  // namespace tuff
