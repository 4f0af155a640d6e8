// A device's cooperative matrix support: VK_KHR_cooperative_matrix, and bf16 by VK_KHR_shader_bfloat16. The structures
// are declared here because Debian 12's headers predate both extensions.
#pragma once

#include <string>
#include <vector>

#include "planning/recorder.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {

inline constexpr const char* kCooperativeMatrixExtension = "VK_KHR_cooperative_matrix";
inline constexpr const char* kBfloat16Extension = "VK_KHR_shader_bfloat16";

// VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct CooperativeMatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

// VkPhysicalDeviceShaderBfloat16FeaturesKHR.
struct Bfloat16Features {
  VkStructureType sType = static_cast<VkStructureType>(1000141000);
  void* pNext = nullptr;
  VkBool32 shaderBFloat16Type = VK_FALSE;
  VkBool32 shaderBFloat16DotProduct = VK_FALSE;
  VkBool32 shaderBFloat16CooperativeMatrix = VK_FALSE;
};

// The cooperative matrix shapes that the device lists for a subgroup, limited to Tuff's element types.
std::vector<MatrixShape> matrix_shapes(VkInstance instance, VkPhysicalDevice device);

// "f16 x f16 -> f32 16x16x16", for tools.
std::string describe(const MatrixShape& shape);

}  // namespace tuff
