// What custom kernels require of a device. Device::create() decides what is enabled.
#include <spirv_cross/spirv.hpp>

#include <algorithm>
#include <cstdio>

#include "runtime/vulkan/custom_pipeline.hpp"

namespace tuff {
namespace {

template <VkSubgroupFeatureFlags operation>
bool subgroups(const Device& device) {
  return device.physical.properties11.subgroupSupportedOperations & operation;
}

struct Capability {
  uint32_t number;
  const char* name;
  bool (*enabled)(const Device&);  // null: never enabled, for the reason given above its group
};

constexpr Capability kCapabilities[] = {
    {spv::CapabilityMatrix, "Matrix", [](const Device&) { return true; }},
    {spv::CapabilityShader, "Shader", [](const Device&) { return true; }},
    {spv::CapabilityFloat16, "Float16", [](const Device& d) { return d.physical.features12.shaderFloat16 != 0; }},
    {spv::CapabilityFloat64, "Float64", [](const Device& d) { return d.traits.f64; }},
    {spv::CapabilityInt64, "Int64", [](const Device& d) { return d.traits.addresses; }},
    {spv::CapabilityInt16, "Int16", [](const Device& d) { return d.physical.features.shaderInt16 != 0; }},
    {spv::CapabilityInt8, "Int8", [](const Device& d) { return d.physical.features12.shaderInt8 != 0; }},
    {spv::CapabilityStorageBuffer16BitAccess, "StorageBuffer16BitAccess",
     [](const Device& d) { return d.traits.storage16; }},
    {spv::CapabilityStorageBuffer8BitAccess, "StorageBuffer8BitAccess",
     [](const Device& d) { return d.traits.storage8; }},
    {spv::CapabilityGroupNonUniform, "GroupNonUniform", subgroups<VK_SUBGROUP_FEATURE_BASIC_BIT>},
    {spv::CapabilityGroupNonUniformVote, "GroupNonUniformVote", subgroups<VK_SUBGROUP_FEATURE_VOTE_BIT>},
    {spv::CapabilityGroupNonUniformArithmetic, "GroupNonUniformArithmetic",
     subgroups<VK_SUBGROUP_FEATURE_ARITHMETIC_BIT>},
    {spv::CapabilityGroupNonUniformBallot, "GroupNonUniformBallot", subgroups<VK_SUBGROUP_FEATURE_BALLOT_BIT>},
    {spv::CapabilityGroupNonUniformShuffle, "GroupNonUniformShuffle", subgroups<VK_SUBGROUP_FEATURE_SHUFFLE_BIT>},
    {spv::CapabilityGroupNonUniformShuffleRelative, "GroupNonUniformShuffleRelative",
     subgroups<VK_SUBGROUP_FEATURE_SHUFFLE_RELATIVE_BIT>},
    {spv::CapabilityGroupNonUniformClustered, "GroupNonUniformClustered", subgroups<VK_SUBGROUP_FEATURE_CLUSTERED_BIT>},
    {spv::CapabilityGroupNonUniformQuad, "GroupNonUniformQuad", subgroups<VK_SUBGROUP_FEATURE_QUAD_BIT>},
    {spv::CapabilityVulkanMemoryModel, "VulkanMemoryModel", [](const Device& d) { return d.physical.matrix_cores; }},
    // Not enabled: accesses to memory that a launch does not name cannot be ordered.
    {spv::CapabilityPhysicalStorageBufferAddresses, "PhysicalStorageBufferAddresses", nullptr},
    {spv::CapabilityVariablePointersStorageBuffer, "VariablePointersStorageBuffer", nullptr},
    {spv::CapabilityVariablePointers, "VariablePointers", nullptr},
    // Not enabled: for resources that cannot be bound.
    {spv::CapabilityImageQuery, "ImageQuery", nullptr},
    {spv::CapabilitySampledBuffer, "SampledBuffer", nullptr},
    {spv::CapabilityImageBuffer, "ImageBuffer", nullptr},
    {spv::CapabilitySampled1D, "Sampled1D", nullptr},
    {spv::CapabilityImage1D, "Image1D", nullptr},
    {spv::CapabilityStorageImageExtendedFormats, "StorageImageExtendedFormats", nullptr},
    {spv::CapabilityStorageImageReadWithoutFormat, "StorageImageReadWithoutFormat", nullptr},
    {spv::CapabilityStorageImageWriteWithoutFormat, "StorageImageWriteWithoutFormat", nullptr},
    {spv::CapabilityRuntimeDescriptorArray, "RuntimeDescriptorArray", nullptr},
    {spv::CapabilityStorageBufferArrayDynamicIndexing, "StorageBufferArrayDynamicIndexing", nullptr},
    {spv::CapabilityUniformAndStorageBuffer8BitAccess, "UniformAndStorageBuffer8BitAccess", nullptr},
    {spv::CapabilityUniformAndStorageBuffer16BitAccess, "UniformAndStorageBuffer16BitAccess", nullptr},
    // Not enabled: not needed by Tuff.
    {spv::CapabilityStoragePushConstant8, "StoragePushConstant8", nullptr},
    {spv::CapabilityStoragePushConstant16, "StoragePushConstant16", nullptr},
    {spv::CapabilityInt64Atomics, "Int64Atomics", nullptr},
    {spv::CapabilityAtomicFloat32AddEXT, "AtomicFloat32AddEXT", nullptr},
    {spv::CapabilityAtomicFloat64AddEXT, "AtomicFloat64AddEXT", nullptr},
    {spv::CapabilityShaderClockKHR, "ShaderClockKHR", nullptr},
    {spv::CapabilityVulkanMemoryModelDeviceScope, "VulkanMemoryModelDeviceScope", nullptr},
    {spv::CapabilityCooperativeMatrixNV, "CooperativeMatrixNV", nullptr},
    {spv::CapabilityRoundingModeRTE, "RoundingModeRTE", nullptr},
    {spv::CapabilityDenormPreserve, "DenormPreserve", nullptr},
    {spv::CapabilitySignedZeroInfNanPreserve, "SignedZeroInfNanPreserve", nullptr},
};

const Capability* find(uint32_t number) {
  const auto* found = std::find_if(std::begin(kCapabilities), std::end(kCapabilities),
                                   [number](const Capability& capability) { return capability.number == number; });
  return found != std::end(kCapabilities) ? found : nullptr;
}

void check_capability(uint32_t number, const Device& device) {
  const Capability* known = find(number);
  const std::string name = known != nullptr ? known->name : fmt::format("{} of SPIR-V", number);
  if (known == nullptr || known->enabled == nullptr) {
    fail(TUFF_ERROR_UNSUPPORTED, "the kernel needs the capability {}, which is not enabled", name);
  }
  if (!known->enabled(device)) {
    fail(TUFF_ERROR_UNSUPPORTED, "the kernel needs the capability {}, which {} does not have", name,
         device.physical.properties.deviceName);
  }
}

void check_limit(uint64_t value, uint64_t most, const char* what) {
  if (value > most) fail(TUFF_ERROR_LIMIT_EXCEEDED, "the kernel has {} {}, this device allows {}", value, what, most);
}

// kernels/common/loop_limit.hpp explains this limit. Observed with Mesa 22.3, but no longer with 25.0.
constexpr uint64_t kMaxLoopPasses = 65535;
bool cuts_loops(const Device& device) {
  constexpr int kFirstWithout = 25;
  int mesa = kFirstWithout;
  return device.physical.driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE &&
         std::sscanf(device.physical.driver.driverInfo, "Mesa %d.", &mesa) == 1 && mesa < kFirstWithout;
}

void check_workgroup(const KernelInterface& kernel, const DeviceTraits& traits, uint64_t shared_bytes) {
  uint64_t invocations = 1;
  for (uint32_t i = 0; i < 3; ++i) {
    const uint32_t size = kernel.workgroup_size[i];
    if (size == 0) fail(TUFF_ERROR_LIMIT_EXCEEDED, "the kernel's workgroups have size 0 in dimension {}", i);
    check_limit(size, traits.max_local_size[i], "invocations along one dimension of a workgroup");
    invocations *= size;
  }
  check_limit(invocations, traits.max_invocations, "invocations in a workgroup");
  check_limit(kernel.shared_bytes, shared_bytes, "bytes of shared memory");
}

// What a workgroup of a Hopper GPU can have in PTX; Vulkan's limit is for SPIR-V.
constexpr uint64_t kPtxSharedBytes = 227 << 10;

}  // namespace

std::string capability_names(const KernelInterface& kernel) {
  std::string names;
  for (const uint32_t number : kernel.capabilities) {
    const Capability* known = find(number);
    if (known == nullptr || number == spv::CapabilityShader || number == spv::CapabilityMatrix) continue;
    if (!names.empty()) names += ' ';
    names += known->name;
  }
  return names;
}

void check_device(const KernelInterface& kernel, bool robust, const Device& device) {
  if (!device.physical.push_descriptors) {
    fail(TUFF_ERROR_UNSUPPORTED, "custom kernels are bound by push descriptors, which {} does not have",
         device.physical.properties.deviceName);
  }
  for (const uint32_t capability : kernel.capabilities) check_capability(capability, device);
  if (robust && device.robustness == Device::Robustness::none) {
    fail(TUFF_ERROR_UNSUPPORTED,
         "TUFF_KERNEL_ROBUST needs VK_EXT_pipeline_robustness and robustBufferAccess2, which {} does not have",
         device.physical.properties.deviceName);
  }
  if (kernel.loop_iterations > kMaxLoopPasses && cuts_loops(device)) {
    fail(TUFF_ERROR_UNSUPPORTED,
         "the kernel has a loop of {} iterations; {} ends loops after {}, without an error: it has to be launched in "
         "parts",
         kernel.loop_iterations, device.physical.properties.deviceName, kMaxLoopPasses);
  }
  check_workgroup(kernel, device.traits, device.traits.shared_bytes);
  check_limit(kernel.push_bytes, device.traits.push_bytes, "bytes of push constants");
  const VkPhysicalDeviceLimits& limits = device.physical.properties.limits;
  uint64_t buffers = 0;
  for (const KernelInterface::Binding& binding : kernel.bindings) buffers += binding.used ? 1 : 0;
  check_limit(buffers, std::min(limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers),
              "buffers");
}

void check_device_for_ptx(const KernelInterface& kernel, const Device& device) {
  const char* name = device.physical.properties.deviceName;
  if (!device.physical.binary_import) {
    fail(TUFF_ERROR_UNSUPPORTED, "the driver of {} does not load PTX (VK_NVX_binary_import)", name);
  }
  if (!device.native) {
    fail(TUFF_ERROR_UNSUPPORTED,
         "kernels in PTX need a queue that only computes and buffer addresses, which {} lacks, or TUFF_NATIVE is off",
         name);
  }
  if (!device.traits.hopper) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} did not run PTX correctly when the library tried it", name);
  }
  check_workgroup(kernel, device.traits, kPtxSharedBytes);
}

}  // namespace tuff
