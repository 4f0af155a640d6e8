// How codes and properties that only other drivers report are named.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/instance.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {
namespace {

TEST(VulkanResults, HaveNamesAndStatuses) {
  struct Row {
    VkResult result;
    const char* name;
    tuff_status status;
  };
#define ROW(result, status) \
  { result, #result, status }
  const Row rows[] = {
      ROW(VK_SUCCESS, TUFF_ERROR_INTERNAL),  // as an error it is unexpected, and so are the next three
      ROW(VK_NOT_READY, TUFF_ERROR_INTERNAL),
      ROW(VK_TIMEOUT, TUFF_ERROR_INTERNAL),
      ROW(VK_INCOMPLETE, TUFF_ERROR_INTERNAL),
      ROW(VK_ERROR_OUT_OF_HOST_MEMORY, TUFF_ERROR_OUT_OF_HOST_MEMORY),
      ROW(VK_ERROR_OUT_OF_DEVICE_MEMORY, TUFF_ERROR_OUT_OF_DEVICE_MEMORY),
      ROW(VK_ERROR_OUT_OF_POOL_MEMORY, TUFF_ERROR_OUT_OF_DEVICE_MEMORY),
      ROW(VK_ERROR_MEMORY_MAP_FAILED, TUFF_ERROR_OUT_OF_DEVICE_MEMORY),
      ROW(VK_ERROR_TOO_MANY_OBJECTS, TUFF_ERROR_LIMIT_EXCEEDED),
      ROW(VK_ERROR_INVALID_EXTERNAL_HANDLE, TUFF_ERROR_INVALID_ARGUMENT),
      ROW(VK_ERROR_DEVICE_LOST, TUFF_ERROR_DEVICE_LOST),
      ROW(VK_ERROR_INITIALIZATION_FAILED, TUFF_ERROR_NO_DEVICE),
      ROW(VK_ERROR_INCOMPATIBLE_DRIVER, TUFF_ERROR_NO_DEVICE),
      ROW(VK_ERROR_LAYER_NOT_PRESENT, TUFF_ERROR_UNSUPPORTED),
      ROW(VK_ERROR_EXTENSION_NOT_PRESENT, TUFF_ERROR_UNSUPPORTED),
      ROW(VK_ERROR_FEATURE_NOT_PRESENT, TUFF_ERROR_UNSUPPORTED),
      ROW(VK_ERROR_INVALID_SHADER_NV, TUFF_ERROR_COMPILE_FAILED),
      ROW(VK_ERROR_UNKNOWN, TUFF_ERROR_INTERNAL),
  };
#undef ROW
  for (const Row& row : rows) {
    EXPECT_STREQ(vk_result_name(row.result), row.name);
    EXPECT_EQ(vk_result_status(row.result), row.status) << row.name;
  }
  EXPECT_STREQ(vk_result_name(static_cast<VkResult>(-12345)), "an unexpected VkResult");
  EXPECT_EQ(vk_result_status(static_cast<VkResult>(-12345)), TUFF_ERROR_INTERNAL);
}

tuff_device_properties described(const PhysicalDevice& physical) {
  tuff_device_properties out{};
  describe(physical, out);
  return out;
}

TEST(DeviceDescription, VendorsAndTypes) {
  const std::pair<uint32_t, const char*> vendors[] = {
      {0x1002, "AMD"},      {0x1010, "Imagination"}, {0x106b, "Apple"}, {0x10de, "NVIDIA"}, {0x13b5, "Arm"},
      {0x14e4, "Broadcom"}, {0x5143, "Qualcomm"},    {0x8086, "Intel"}, {0x10005, "Mesa"},  {0x1234, ""}};
  for (const auto& [id, name] : vendors) {
    PhysicalDevice physical;
    physical.memory.memoryHeapCount = 1;
    physical.properties.vendorID = id;
    const tuff_device_properties out = described(physical);
    EXPECT_STREQ(out.vendor, name);
    EXPECT_EQ(out.vendor_id, id);
  }
  const std::pair<VkPhysicalDeviceType, int32_t> types[] = {
      {VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, TUFF_DEVICE_INTEGRATED},
      {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, TUFF_DEVICE_DISCRETE},
      {VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, TUFF_DEVICE_VIRTUAL},
      {VK_PHYSICAL_DEVICE_TYPE_CPU, TUFF_DEVICE_CPU},
      {VK_PHYSICAL_DEVICE_TYPE_OTHER, TUFF_DEVICE_OTHER}};
  for (const auto& [type, expected] : types) {
    PhysicalDevice physical;
    physical.memory.memoryHeapCount = 1;
    physical.properties.deviceType = type;
    EXPECT_EQ(described(physical).type, expected);
  }
}

TEST(DeviceDescription, ListsAndNamesThatAreTooLongAreCut) {
  PhysicalDevice physical;
  physical.memory.memoryHeapCount = 1;
  for (uint32_t i = 0; i < 100; ++i) {
    physical.matrix_shapes.push_back({16, 8, i, TUFF_F16, TUFF_F16, TUFF_F32});
    physical.queue_families.push_back({VK_QUEUE_COMPUTE_BIT, i, 64, {}});
  }
  std::memset(physical.driver.driverInfo, 'x', sizeof physical.driver.driverInfo - 1);
  std::memset(physical.driver.driverName, 'y', sizeof physical.driver.driverName - 1);
  const tuff_device_properties out = described(physical);
  EXPECT_EQ(out.matrix_shape_count, uint32_t{TUFF_MAX_MATRIX_SHAPES});
  EXPECT_EQ(out.matrix_shapes[3].k, 3u);
  EXPECT_EQ(out.matrix_shapes[3].m, 16u);
  EXPECT_EQ(out.queue_family_count, uint32_t{TUFF_MAX_QUEUE_FAMILIES});
  EXPECT_EQ(out.queue_families[5].count, 5u);
  EXPECT_EQ(std::strlen(out.driver), sizeof out.driver - 1);
}

}  // namespace
}  // namespace tuff
