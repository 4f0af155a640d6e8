// Sets random elements to zero and scales the others. Which ones are dropped is decided by the random numbers of
// random.hpp.
#pragma once

#include <cstdint>

#include "kernels/random/random.hpp"

namespace tuff {

struct DropoutArgs {
  int32_t dtype;
  const Buffer *input, *output;
  const Buffer* mask;  // a byte for each element, 1 where it is kept; may be null
  uint64_t n;
  uint64_t seed, sequence, offset;
  double probability;  // of being dropped
};

namespace random {
// Words of element i of the sequence that are below the threshold (or all, see Numbers) drop the element.
Numbers drops(const DropoutArgs& args);
// What kept elements are multiplied by.
float factor_of(const DropoutArgs& args);
}  // namespace random

void check_dropout(const DropoutArgs& args);
void host_dropout(const DropoutArgs& args);
void record_dropout(Recorder& recorder, const DropoutArgs& args);

namespace operations {
extern const OperationOf<DropoutArgs> dropout;
}  // namespace operations

}  // namespace tuff
