// Elements of recurrent layers' operands, for the host backend.
#pragma once

#include <cstdint>
#include <vector>

#include "planning/buffer.hpp"

namespace tuff::rnn {

template <typename T>
const T* elements_of(const Buffer* buffer, uint64_t first) {
  return buffer == nullptr || buffer->allocation == nullptr ? nullptr : buffer->host<T>() + first;
}

// Zeros without a buffer. For no elements `first` may be any number.
template <typename T>
std::vector<double> loaded(const Buffer* buffer, uint64_t first, uint64_t count) {
  std::vector<double> values(count, 0);
  const T* const from = count == 0 ? nullptr : elements_of<T>(buffer, first);
  for (uint64_t i = 0; i < count && from != nullptr; ++i) values[i] = static_cast<double>(from[i]);
  return values;
}

}  // namespace tuff::rnn
