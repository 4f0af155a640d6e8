#include "runtime/vulkan/device_requirements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "planning/recorder.hpp"

namespace tuff {
namespace {

struct Limit {
  const char* name;
  uint64_t has, needs;
};

struct SubgroupOperation {
  const char* name;
  VkSubgroupFeatureFlagBits bit;
};

constexpr SubgroupOperation kSubgroupOperations[] = {{"basic", VK_SUBGROUP_FEATURE_BASIC_BIT},
                                                     {"ballot", VK_SUBGROUP_FEATURE_BALLOT_BIT},
                                                     {"arithmetic", VK_SUBGROUP_FEATURE_ARITHMETIC_BIT},
                                                     {"shuffle", VK_SUBGROUP_FEATURE_SHUFFLE_BIT}};

class List {
 public:
  void add(const std::string& what) { text_ += (text_.empty() ? "" : ", ") + what; }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string missing(const PhysicalDevice& device) {
  List lacks;
  const VkPhysicalDeviceProperties& properties = device.properties;
  const VkPhysicalDeviceLimits& limits = properties.limits;
  const uint32_t version = properties.apiVersion;
  const bool computes = std::any_of(device.queue_families.begin(), device.queue_families.end(),
                                    [](const auto& family) { return family.queueFlags & VK_QUEUE_COMPUTE_BIT; });
  if (!computes) lacks.add(fmt::format("a compute queue (none of its {} families)", device.queue_families.size()));
  // The minimum limits of Vulkan itself; kernels that need more are not chosen on devices without it. Only for storage
  // buffers Vulkan requires less (4).
  const Limit all[] = {
      {"invocations in a workgroup", limits.maxComputeWorkGroupInvocations, 128},
      {"invocations along x in a workgroup", limits.maxComputeWorkGroupSize[0], 128},
      {"workgroups along x in a dispatch", limits.maxComputeWorkGroupCount[0], 65535},
      {"workgroups along y in a dispatch", limits.maxComputeWorkGroupCount[1], 65535},
      {"workgroups along z in a dispatch", limits.maxComputeWorkGroupCount[2], 65535},
      {"bytes of shared memory", limits.maxComputeSharedMemorySize, 16384},
      {"bytes of push constants", limits.maxPushConstantsSize, Dispatch::kMaxPushBytes},
      {"bytes in a storage buffer", limits.maxStorageBufferRange, uint64_t{1} << 27},
      {"storage buffers in a shader", device.push_descriptors ? limits.maxPerStageDescriptorStorageBuffers : UINT32_MAX,
       Dispatch::kMaxOperands},  // no descriptors are used if all operands are bound by address
  };
  for (const Limit& limit : all) {
    if (limit.has < limit.needs) lacks.add(fmt::format("{} {} (it has {})", limit.needs, limit.name, limit.has));
  }
  if (version < VK_API_VERSION_1_2) {
    lacks.add(fmt::format("Vulkan 1.2 (it has {}.{}.{})", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                          VK_API_VERSION_PATCH(version)));
    return std::move(lacks).text();  // the remaining checks need Vulkan 1.2
  }
  if (!device.features12.timelineSemaphore) lacks.add("timeline semaphores");
  if (!device.push_descriptors && !(device.features12.bufferDeviceAddress && device.features.shaderInt64)) {
    lacks.add(
        fmt::format("a way to bind buffers: push descriptors (no VK_KHR_push_descriptor), or buffer device "
                    "addresses ({}) with 64-bit integers ({})",
                    device.features12.bufferDeviceAddress ? "yes" : "no", device.features.shaderInt64 ? "yes" : "no"));
  }
  for (const SubgroupOperation& operation : kSubgroupOperations) {
    if (!(device.properties11.subgroupSupportedOperations & operation.bit)) {
      lacks.add(fmt::format("subgroup {} operations", operation.name));
    }
  }
  if (!(device.properties11.subgroupSupportedStages & VK_SHADER_STAGE_COMPUTE_BIT)) {
    lacks.add("subgroup operations in compute shaders");
  }
  return std::move(lacks).text();
}

}  // namespace tuff
