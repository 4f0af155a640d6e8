#include "runtime/vulkan/matrix_cores.hpp"

#include <algorithm>

#include "planning/element_type.hpp"

namespace tuff {
namespace {

// VkCooperativeMatrixPropertiesKHR.
struct CooperativeMatrixProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void* pNext = nullptr;
  uint32_t m = 0, n = 0, k = 0;
  int32_t a_type = 0, b_type = 0, c_type = 0, result_type = 0;  // VkComponentTypeKHR
  VkBool32 saturating_accumulation = VK_FALSE;
  int32_t scope = 0;  // VkScopeKHR
};
constexpr int32_t kScopeSubgroup = 3;

// VkComponentTypeKHR as a dtype; 0 if Tuff has no such type.
int32_t dtype_of(int32_t component) {
  switch (component) {
    case 0: return TUFF_F16;
    case 1: return TUFF_F32;
    case 2: return TUFF_F64;
    case 3: return TUFF_I8;
    case 5: return TUFF_I32;
    case 7: return TUFF_U8;
    case 9: return TUFF_U32;
    case 1000141000: return TUFF_BF16;
    default: return 0;
  }
}

}  // namespace

std::vector<MatrixShape> matrix_shapes(VkInstance instance, VkPhysicalDevice device) {
  using List = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, CooperativeMatrixProperties*);
  const auto list = reinterpret_cast<List>(  // NOLINT: how Vulkan hands out functions
      vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (list == nullptr) return {};
  const auto properties = list_optional_vk<CooperativeMatrixProperties>(
      "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR",
      [&](uint32_t* count, CooperativeMatrixProperties* all) { return list(device, count, all); });
  std::vector<MatrixShape> shapes;
  for (const CooperativeMatrixProperties& p : properties) {
    const MatrixShape shape{p.m, p.n, p.k, dtype_of(p.a_type), dtype_of(p.b_type), dtype_of(p.c_type)};
    if (p.scope != kScopeSubgroup || p.result_type != p.c_type || p.saturating_accumulation) continue;
    if (shape.a != 0 && shape.b != 0 && shape.c != 0) shapes.push_back(shape);
  }
  return shapes;
}

std::string describe(const MatrixShape& shape) {
  return fmt::format("{} x {} -> {} {}x{}x{}", dtype_name(shape.a), dtype_name(shape.b), dtype_name(shape.c), shape.m,
                     shape.n, shape.k);
}

}  // namespace tuff
