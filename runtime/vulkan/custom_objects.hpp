// The Vulkan objects of custom kernels. The library and tuff-compile, which tries untrusted kernels first, create them
// with the same code.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "runtime/vulkan/device.hpp"

namespace tuff {

// A push descriptor set of storage buffers, with the shader's binding numbers.
VkDescriptorSetLayout make_custom_set(Device& device, std::span<const uint32_t> bindings);
// robust: out-of-bounds buffer accesses are harmless, requested per pipeline if the device does not ensure it anyway.
VkPipeline make_custom_pipeline(Device& device, VkPipelineLayout layout, std::span<const uint32_t> words,
                                const std::string& entry, bool robust, VkPipelineCache cache);

}  // namespace tuff
