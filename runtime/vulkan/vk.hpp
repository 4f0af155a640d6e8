// Vulkan for the runtime: volk's function pointers, and VkResult converted to tuff::Error.
#pragma once

#include <volk.h>

#include "planning/status.hpp"

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

}  // namespace tuff
