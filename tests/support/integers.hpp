// Operands of type TUFF_I32.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "support/typed_gemm.hpp"

namespace tuff_test {

inline Bytes bytes_of(const std::vector<int32_t>& values) {
  Bytes bytes(4 * values.size());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline std::vector<int32_t> integers_of(const Bytes& bytes) {
  std::vector<int32_t> values(bytes.size() / 4);
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline Bytes poisoned_integers(uint64_t count) {
  Bytes bytes(4 * count);
  poison_all(TUFF_I32, bytes);
  return bytes;
}

}  // namespace tuff_test
