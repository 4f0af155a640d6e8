// Selects elements by a mask, or the first of each run of equal ones, and keeps their order.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"

namespace tuff {

class Recorder;

struct SelectArgs {
  int32_t dtype, op;  // op: TUFF_SELECT_*
  int32_t mask_type, index_type;
  bool equal_nan;
  const Buffer *input, *mask;
  const Buffer *output, *indices, *count;  // each may be null
  uint64_t n, capacity;

  bool unique() const { return op == TUFF_SELECT_UNIQUE; }
  // The elements that decide what is selected.
  const Buffer* judged() const { return unique() ? input : mask; }
  int32_t judged_type() const { return unique() ? dtype : mask_type; }
  // Elements of output and indices that may be written.
  uint64_t room() const { return capacity < n ? capacity : n; }
};

void record_select(Recorder& recorder, const SelectArgs& args);

namespace operations {
extern const OperationOf<SelectArgs> select;
}  // namespace operations

}  // namespace tuff
