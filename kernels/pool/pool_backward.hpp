// The gradient of a pooling by its input. See tuff_pool_backward() in tuff.h.
#pragma once

#include "kernels/pool/pool.hpp"

namespace tuff {

struct PoolBackwardArgs {
  PoolArgs pool;  // the pooling: its input and indices are read, if any are given; it has no output
  const Buffer *doutput, *dinput;
};

void check_pool_backward(const PoolBackwardArgs& args);
void host_pool_backward(const PoolBackwardArgs& args);
void record_pool_backward(Recorder& recorder, const PoolBackwardArgs& args);

namespace operations {
extern const OperationOf<PoolBackwardArgs> pool_backward;
}  // namespace operations

}  // namespace tuff
