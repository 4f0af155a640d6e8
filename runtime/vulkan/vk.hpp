// Vulkan as the runtime sees it: volk's function pointers and VkResult turned into tuff::Error.
#pragma once

#include <volk.h>

#include "planning/status.hpp"

namespace tuff {

const char* vk_result_name(VkResult result);

// The TUFF_ERROR_* that a VkResult comes down to.
tuff_status vk_result_status(VkResult result);

// Throws unless the result is a success code; `what` is the Vulkan function's name.
inline void check_vk(VkResult result, const char* what) {
  if (result < 0) [[unlikely]] {
    fail(vk_result_status(result), "{} returned {}", what, vk_result_name(result));
  }
}

}  // namespace tuff
