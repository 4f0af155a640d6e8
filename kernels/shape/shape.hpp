// Operations that move elements and compute nothing: permute; and the conversion of element types.
#pragma once

#include <cstdint>

#include "runtime/buffer.hpp"

namespace tuff {

class Recorder;

// Axis i of the output is axis order[i] of the input.
struct PermuteArgs {
  int32_t dtype;
  const Buffer *input, *output;
  const uint64_t* shape;  // of the input
  const uint32_t* order;
  uint32_t rank;
};

struct CastArgs {
  int32_t from, to;  // dtypes
  const Buffer *input, *output;
  uint64_t n;
};

void check_permute(const PermuteArgs& args);
void host_permute(const PermuteArgs& args);
void record_permute(Recorder& recorder, const PermuteArgs& args);

void check_cast(const CastArgs& args);
void host_cast(const CastArgs& args);
void record_cast(Recorder& recorder, const CastArgs& args);

}  // namespace tuff
