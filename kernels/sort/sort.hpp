// Sorting along one axis of a dense tensor, stable, with the places of the sorted elements.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct SortArgs {
  int32_t dtype;
  const Buffer *input, *values, *indices;  // either output may be null
  const uint64_t* shape;
  uint32_t rank, axis;
  uint64_t k;  // elements wanted of each slice; 0: all
  int32_t index_type;
  bool descending;
  uint32_t bits = 0;  // unsigned integers: no more bits than these are set in any; 0: all may be

  auto arrays() { return std::tuple(counted(shape, rank)); }
};

void host_sort(const SortArgs& args);
void record_sort(Recorder& recorder, const SortArgs& args);

namespace operations {
extern const OperationOf<SortArgs> sort;
}  // namespace operations

}  // namespace tuff
