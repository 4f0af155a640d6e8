#include "runtime/vulkan/whole_calls.hpp"

#include <cstring>

namespace tuff {

uint64_t WholeCalls::signature(const BoundDispatch& dispatch) noexcept {
  uint64_t sum = mixed(1, reinterpret_cast<uintptr_t>(dispatch.label));
  sum = mixed(sum, reinterpret_cast<uintptr_t>(dispatch.cached));
  sum = mixed(sum, dispatch.addresses | uint64_t{dispatch.touched.everything} << 1 | uint64_t{dispatch.slots} << 32);
  for (const uint32_t count : dispatch.groups) sum = mixed(sum, count);
  for (uint32_t i = 0; i < dispatch.slots; ++i) {
    const Bound& at = dispatch.bound[i];
    sum = at.block == nullptr ? mixed(sum, 0) : mixed(mixed(sum, at.end - at.begin), at.begin % 256 + 1);
  }
  for (uint32_t i = 0; i < dispatch.push_bytes; i += 4) {
    uint32_t word;
    std::memcpy(&word, dispatch.push.data() + i, sizeof word);
    sum = mixed(sum, word);
  }
  return sum;
}

uint64_t WholeCalls::signature(const BoundCopy& copy) noexcept {
  uint64_t sum = mixed(2, reinterpret_cast<uintptr_t>(copy.label));
  for (const uint64_t number : {copy.bytes, copy.rows, copy.to_pitch, copy.from_pitch, copy.to_offset % 256}) {
    sum = mixed(sum, number);
  }
  return sum;
}

}  // namespace tuff
