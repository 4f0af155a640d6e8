#include "runtime/vulkan/custom_objects.hpp"

namespace tuff {

VkDescriptorSetLayout make_custom_set(Device& device, std::span<const uint32_t> bindings) {
  std::vector<VkDescriptorSetLayoutBinding> layout;
  layout.reserve(bindings.size());
  for (const uint32_t binding : bindings) {
    layout.push_back({binding, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  }
  return device.make_set_layout(layout);
}

VkPipeline make_custom_pipeline(Device& device, VkPipelineLayout layout, std::span<const uint32_t> words,
                                const std::string& entry, bool robust, VkPipelineCache cache) {
  const VolkDeviceTable& vk = device.vk;
  const VkShaderModule module = device.make_shader_module(words);
  VkPipelineRobustnessCreateInfoEXT robustness{};
  robustness.sType = VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO_EXT;
  robustness.storageBuffers = VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS_2_EXT;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroup.requiredSubgroupSize = device.traits.subgroup_size;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.pNext = robust && device.robustness == Device::Robustness::by_pipeline ? &robustness : nullptr;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.pNext = device.full_subgroups ? &subgroup : nullptr;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = entry.c_str();
  info.layout = layout;
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = vk.vkCreateComputePipelines(device.handle, cache, 1, &info, nullptr, &pipeline);
  vk.vkDestroyShaderModule(device.handle, module, nullptr);
  device.check_made(result, pipeline, "vkCreateComputePipelines");
  return pipeline;
}

}  // namespace tuff
