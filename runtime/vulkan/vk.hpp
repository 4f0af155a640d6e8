// Vulkan for the runtime: volk's function pointers, and VkResult converted to tuff::Error.
#pragma once

#include <volk.h>

#include <cstdint>
#include <vector>

#include "planning/status.hpp"
#include "runtime/copy_text.hpp"

namespace tuff {

const char* vk_result_name(VkResult result);

// The TUFF_ERROR_* code for a VkResult.
tuff_status vk_result_status(VkResult result);

// Throws unless the result is a success code; `what` is the Vulkan function's name.
inline void check_vk(VkResult result, const char* what) {
  if (result < 0) [[unlikely]] {
    fail(vk_result_status(result), "{} returned {}", what, vk_result_name(result));
  }
}

// The same for a call that creates `made`, whose content is undefined if the call failed.
template <typename Handle>
void check_made(VkResult result, Handle& made, const char* what) {
  if (result != VK_SUCCESS) made = VK_NULL_HANDLE;
  check_vk(result, what);
}

// Everything that Vulkan lists by two calls, list(&count, nullptr) and list(&count, data). Tries again if the list has
// grown between them.
template <typename T, typename List>
std::vector<T> list_vk(const char* what, const List& list, const T& empty = {}) {
  constexpr int kTries = 8;
  for (int tries = 1;; ++tries) {
    uint32_t count = 0;
    check_vk(list(&count, nullptr), what);
    std::vector<T> all(count, empty);
    const VkResult result = list(&count, all.data());
    check_vk(result, what);
    if (result == VK_INCOMPLETE && tries < kTries) continue;
    all.resize(count, empty);
    return all;
  }
}

// The same for lists that Tuff can do without: empty if the driver fails for any other reason than memory.
template <typename T, typename List>
std::vector<T> list_optional_vk(const char* what, const List& list, const T& empty = {}) {
  try {
    return list_vk<T>(what, list, empty);
  } catch (const Error& error) {
    if (error.code() == TUFF_ERROR_OUT_OF_HOST_MEMORY || error.code() == TUFF_ERROR_OUT_OF_DEVICE_MEMORY) throw;
    return {};
  }
}

}  // namespace tuff
