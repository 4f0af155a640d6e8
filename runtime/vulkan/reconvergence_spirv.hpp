// What a device promises about lanes that parted in a branch or a loop: when they execute together again. Subgroup
// operations behind it need that. Without a promise of more, an H200's driver let lanes be late in a loop whose
// condition is the same for all of them, and a maximum over the subgroup left some out.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/vulkan/vk.hpp"

namespace tuff {

inline constexpr const char* kMaximalReconvergenceExtension = "VK_KHR_shader_maximal_reconvergence";

// VkPhysicalDeviceShaderMaximalReconvergenceFeaturesKHR, which Debian 12's headers predate.
struct MaximalReconvergenceFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000434000);
  void* pNext = nullptr;
  VkBool32 shaderMaximalReconvergence = VK_FALSE;
};

enum class Reconvergence {
  core,              // what SPIR-V has all devices do: in control flow that is uniform in the workgroup
  subgroup_uniform,  // VK_KHR_shader_subgroup_uniform_control_flow: in control flow that is uniform in the subgroup
  maximal            // VK_KHR_shader_maximal_reconvergence: as the source's blocks are nested
};

// Has the module's entry point executed in that way, if it contains subgroup operations. Other modules are left
// unchanged.
std::vector<uint32_t> with_reconvergence(std::vector<uint32_t> module, Reconvergence reconvergence);

}  // namespace tuff
