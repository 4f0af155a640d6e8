// The elements that indices name: what gather and scatter have in common.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/call_copy.hpp"

namespace tuff {

class Recorder;

// A dense tensor is indexed in one of three ways:
//
//   rows          [outer][places][inner]: index j names row indices[j] of the axis, for all outer and inner
//   coordinates   the same, where `coordinates` axes from `axis` on are one, and each index has a number for each
//   element-wise  the indices have a shape of the same rank; each names an element along the axis, and its own
//                 coordinates name it along the others. Then `places` are all elements, and outer and inner are 1
struct IndexArgs {
  int32_t index_type;
  const Buffer* indices;
  const uint64_t* shape;
  uint32_t rank, axis;
  uint64_t count;               // indices, not element-wise
  const uint64_t* index_shape;  // element-wise; otherwise null
  uint32_t coordinates;         // numbers in each index; 0 counts as 1
  bool negative;                // negative indices count from the end of their axis

  uint32_t numbers() const { return coordinates == 0 ? 1 : coordinates; }
  // Whether places follow from the indices by arithmetic. Otherwise they are the indices.
  bool computed() const;
  auto arrays() { return std::tuple(counted(shape, rank), counted(index_shape, rank)); }
};

struct IndexView {
  uint64_t outer, places, inner;
  uint64_t count;  // places that are named: indices
};

// Throws where an argument is wrong; `indices` itself is not checked.
IndexView check_indices(const IndexArgs& args);
IndexView view_indices(const IndexArgs& args);

// The place that index i names, or ~0 if it is out of range. For the host.
uint64_t place_named(const IndexArgs& args, uint64_t i);

// Writes the places that indices first ... first + n - 1 name, counted from `window`: as 4 bytes, or with `places` of
// 2^31 or more and no window as 8. What is out of range, or not below `none`, becomes `none` (8 bytes: the largest
// number). If `winners` is not null, winners[place] = i too, for any one of the i that name the place.
struct PlaceKeys {
  uint64_t first, n, window;
  uint32_t none;
  const Buffer* keys;
  uint64_t key_bytes;
  const Buffer* winners;
};
void record_places(Recorder& recorder, const char* label, const IndexArgs& args, const PlaceKeys& keys);

}  // namespace tuff
