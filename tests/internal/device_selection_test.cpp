// Which devices a text selects, and why a device is rejected, tested with made-up devices.
#include "runtime/vulkan/device_selection.hpp"

#include <gtest/gtest.h>

#include "planning/status.hpp"
#include "runtime/vulkan/device_requirements.hpp"

namespace tuff {
namespace {

DeviceIdentity device(const std::string& name, uint8_t first, uint8_t last) {
  DeviceIdentity identity;
  identity.name = name;
  identity.uuid[0] = first, identity.uuid[1] = 0xb0, identity.uuid[15] = last;
  return identity;
}

const std::vector<DeviceIdentity> kDevices = {device("NVIDIA H200", 0x12, 1), device("NVIDIA H200", 0x12, 2),
                                              device("NVIDIA A100", 0x34, 3), device("llvmpipe (LLVM 15)", 0xaf, 4)};
constexpr const char* kSecond = "12b00000-0000-0000-0000-000000000002";

using Order = std::vector<size_t>;

TEST(DeviceSelection, ListsKeepTheirOrder) {
  const std::pair<const char*, Order> rows[] = {{"0", {0}},
                                                {"3,1", {3, 1}},
                                                {" 2 ,\t0", {2, 0}},
                                                {"", {}},
                                                {"  ", {}},
                                                {"nvidia", {0, 1, 2}},
                                                {"LLVM,h200", {3, 0, 1}},
                                                {"1,nvidia", {1, 0, 2}},
                                                {"2,2", {2}},
                                                {kSecond, {1}},
                                                {"12B00000000000000000000000000001", {0}},
                                                {"34b0", {2}},
                                                {"34-B0-00", {2}},
                                                {"A100", {2}},
                                                {"af-b0,34b000", {3, 2}}};
  for (const auto& [list, order] : rows) EXPECT_EQ(select_visible(list, kDevices), order) << list;
  EXPECT_EQ(select_visible("", {}), Order{});
}

void expect_refused(const char* list, const std::string& part, std::span<const DeviceIdentity> devices = kDevices) {
  try {
    select_visible(list, devices);
    ADD_FAILURE() << list << " was taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), TUFF_ERROR_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << list << ": " << error.what();
    if (devices.empty()) return;
    EXPECT_NE(std::string(error.what()).find("1 \"NVIDIA H200\" (" + std::string(kSecond) + ")"), std::string::npos)
        << error.what();
  }
}

TEST(DeviceSelection, WhatIsNotThereIsSaid) {
  expect_refused("4", "no device is number \"4\"");
  expect_refused("9999", "no device is number \"9999\"");
  expect_refused("0,radeon", "no device is named like \"radeon\"");
  expect_refused("12b0", "\"12b0\" begins the UUIDs of devices 0 and 1");
  expect_refused("0,,1", "entry 2 is empty");
  expect_refused(",", "entry 1 is empty");
  expect_refused("1;2", "named like");
  expect_refused("12b00000-0000-0000-0000-0000000000021", "named like");  // 33 digits
  expect_refused("0", "there are no devices", {});
}

TEST(DeviceSelection, OfSeveralOfOneNameTheFirst) {
  EXPECT_EQ(choose_device("nvidia", kDevices), 0u);
  EXPECT_EQ(choose_device(kSecond, kDevices), 1u);
  EXPECT_EQ(choose_device("3", kDevices), 3u);
  EXPECT_THROW(choose_device("12b0", kDevices), Error);
  EXPECT_THROW(choose_device("", kDevices), Error);
}

// A device with exactly the required capabilities.
PhysicalDevice usable() {
  PhysicalDevice device;
  VkPhysicalDeviceLimits& limits = device.properties.limits;
  device.properties.apiVersion = VK_API_VERSION_1_2;
  limits.maxComputeWorkGroupInvocations = limits.maxComputeWorkGroupSize[0] = 128;
  std::fill_n(limits.maxComputeWorkGroupCount, 3, 65535);
  limits.maxComputeSharedMemorySize = 16384;
  limits.maxPushConstantsSize = 128;
  limits.maxStorageBufferRange = 1u << 27;
  limits.maxPerStageDescriptorStorageBuffers = 11;
  device.queue_families.resize(2);
  device.queue_families[1].queueFlags = VK_QUEUE_COMPUTE_BIT;
  device.features12.timelineSemaphore = VK_TRUE;
  device.push_descriptors = true;
  device.properties11.subgroupSupportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_BALLOT_BIT |
                                                    VK_SUBGROUP_FEATURE_ARITHMETIC_BIT |
                                                    VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  device.properties11.subgroupSupportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
  return device;
}

TEST(DeviceRequirements, EachIsNamedWithWhatThereIs) {
  EXPECT_EQ(missing(usable()), "");
  PhysicalDevice by_address = usable();
  by_address.push_descriptors = false;
  by_address.features12.bufferDeviceAddress = by_address.features.shaderInt64 = VK_TRUE;
  EXPECT_EQ(missing(by_address), "");
  const struct {
    void (*spoil)(PhysicalDevice&);
    const char* says;
  } rows[] = {
      {[](auto& d) { d.properties.limits.maxComputeSharedMemorySize = 8192; },
       "16384 bytes of shared memory (it has 8192)"},
      {[](auto& d) { d.properties.limits.maxComputeWorkGroupInvocations = 64; },
       "128 invocations in a workgroup (it has 64)"},
      {[](auto& d) { d.properties.limits.maxPerStageDescriptorStorageBuffers = 4; },
       "11 storage buffers in a shader (it has 4)"},
      {[](auto& d) { d.properties.limits.maxComputeWorkGroupCount[1] = 1000; },
       "65535 workgroups along y in a dispatch (it has 1000)"},
      {[](auto& d) { d.queue_families[1].queueFlags = VK_QUEUE_GRAPHICS_BIT; },
       "a compute queue (none of its 2 families)"},
      {[](auto& d) { d.features12.timelineSemaphore = VK_FALSE; }, "timeline semaphores"},
      {[](auto& d) { d.push_descriptors = false, d.features12.bufferDeviceAddress = VK_TRUE; },
       "buffer device addresses (yes) with 64-bit integers (no)"},
      {[](auto& d) { d.properties11.subgroupSupportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT; },
       "subgroup ballot operations, subgroup arithmetic operations, subgroup shuffle operations"},
      {[](auto& d) { d.properties11.subgroupSupportedStages = VK_SHADER_STAGE_FRAGMENT_BIT; },
       "subgroup operations in compute shaders"},
      {[](auto& d) { d.properties.apiVersion = VK_MAKE_API_VERSION(0, 1, 1, 130); }, "Vulkan 1.2 (it has 1.1.130)"}};
  for (const auto& [spoil, says] : rows) {
    PhysicalDevice device = usable();
    spoil(device);
    EXPECT_NE(missing(device).find(says), std::string::npos) << missing(device);
  }
  // Lists all missing capabilities, not just the first.
  PhysicalDevice poor = usable();
  poor.properties.limits.maxPushConstantsSize = 64;
  poor.features12.timelineSemaphore = VK_FALSE;
  EXPECT_EQ(missing(poor), "128 bytes of push constants (it has 64), timeline semaphores");
}

}  // namespace
}  // namespace tuff
