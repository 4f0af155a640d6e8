// What the references of attention and of its gradients share.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.hpp"

namespace tuff::attention {

// The element that a row begins with.
inline uint64_t at(const AttentionStrides& strides, uint64_t batch, uint64_t head, uint64_t row) {
  return batch * strides.batch + head * strides.head + row * strides.row;
}

// The rows or keys of a batch element: as many as its length says, at most `most`.
uint64_t length(const Buffer* lengths, uint64_t batch, uint64_t most);

// A row and a key.
struct Pair {
  uint64_t batch, head, row, key;
};
struct Score {
  double value;  // minus infinity masks the key, however it came about
  double slope;  // by scale * dot: that of the soft cap
};
// The score for the dot product of the row and the key.
Score score_of(const AttentionArgs& args, double dot, const Pair& pair);

}  // namespace tuff::attention
