// The Vulkan objects of kernels that callers bring: made alike in the library and, for kernels that are not trusted, in
// tuff-compile first.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/vulkan/device.hpp"

namespace tuff {

// Storage buffers that are pushed, by the shader's numbers.
VkDescriptorSetLayout make_custom_set(Device& device, std::span<const uint32_t> bindings);
// robust: accesses beyond a buffer's range are harmless, where the device does not see to that by itself.
VkPipeline make_custom_pipeline(Device& device, VkPipelineLayout layout, std::span<const uint32_t> words,
                                const std::string& entry, bool robust, VkPipelineCache cache);

}  // namespace tuff
