#include "runtime/vulkan/device.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string_view>
#include <type_traits>
#include <vector>

#include "planning/log.hpp"
#include "platform/mutex.hpp"
#include "platform/platform.hpp"

namespace tuff {
namespace {

// The maximum number of compute queues; further streams share them. One, because an H200 does not run two queues at
// once but time-slices them, and switching takes 80 us (docs/streams.md). Waiting for another stream on the same queue
// takes only a barrier.
constexpr uint32_t kMaxQueues = 1;

// NVIDIA's driver (580) deadlocks if one thread creates or destroys a device that takes PTX while another loads or
// unloads some: the first holds a lock of the driver and waits for CUDA's, the second holds CUDA's and waits for the
// driver's. Loads and unloads may overlap, so they share this lock; turn_ lets a waiting device in before later loads.
class NativeModules {
 public:
  static std::shared_lock<SharedMutex> changing() {
    const std::lock_guard turn(turn_);
    return std::shared_lock(mutex_);
  }
  static std::unique_lock<SharedMutex> excluded(const Device& device) {
    if (!device.native) return {};
    const std::lock_guard turn(turn_);
    return std::unique_lock(mutex_);
  }

 private:
  static inline constinit Mutex turn_{LockRank::native_modules_turn};
  static inline constinit SharedMutex mutex_{LockRank::native_modules};
};

uint32_t largest_device_heap(const VkPhysicalDeviceMemoryProperties& memory) {
  uint32_t best = 0;
  for (uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    const bool local = memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    const bool best_local = memory.memoryHeaps[best].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    if (local > best_local || (local == best_local && memory.memoryHeaps[i].size > memory.memoryHeaps[best].size)) {
      best = i;
    }
  }
  return best;
}

bool unified_memory(const VkPhysicalDeviceMemoryProperties& memory) {
  const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
  const uint32_t heap = largest_device_heap(memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    if (memory.memoryTypes[i].heapIndex == heap && (memory.memoryTypes[i].propertyFlags & wanted) == wanted)
      return true;
  }
  return false;
}

const char* vendor_name(uint32_t id) {
  // PCI-SIG and Khronos vendor numbers.
  switch (id) {
    case 0x1002: return "AMD";
    case 0x1010: return "Imagination";
    case 0x106B: return "Apple";
    case 0x10DE: return "NVIDIA";
    case 0x13B5: return "Arm";
    case 0x14E4: return "Broadcom";
    case 0x5143: return "Qualcomm";
    case 0x8086: return "Intel";
    case 0x10005: return "Mesa";
    default: return "";
  }
}

int32_t device_type(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return TUFF_DEVICE_INTEGRATED;
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return TUFF_DEVICE_DISCRETE;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return TUFF_DEVICE_VIRTUAL;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return TUFF_DEVICE_CPU;
    default: return TUFF_DEVICE_OTHER;
  }
}

bool addresses_usable(const PhysicalDevice& physical) {
  return physical.features12.bufferDeviceAddress && physical.features.shaderInt64;
}

template <typename T>
T structure(VkStructureType type) {
  T made{};
  made.sType = type;
  return made;
}

// What a device is created with: extensions, and features, whose structures are chained to each other.
struct Request {
  Request() {
    features.pNext = &features11;
    features11.pNext = &features12;
  }
  Request(const Request&) = delete;  // its structures refer to each other
  Request& operator=(const Request&) = delete;

  // Adds a structure, in which it sets these features.
  template <typename T, typename... Feature>
  void append(T& added, Feature&... wanted) {
    ((wanted = VK_TRUE), ...);
    *end = &added;
    end = &added.pNext;
  }

  std::vector<const char*> extensions;
  VkPhysicalDeviceFeatures2 features =
      structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  VkPhysicalDeviceVulkan11Features features11 =
      structure<VkPhysicalDeviceVulkan11Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES);
  VkPhysicalDeviceVulkan12Features features12 =
      structure<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroups = structure<VkPhysicalDeviceSubgroupSizeControlFeatures>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES);
  VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zeroes =
      structure<VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES);
  CooperativeMatrixFeatures matrices;
  Bfloat16Features bfloat16;
  VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR uniform_flow =
      structure<VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR);
  MaximalReconvergenceFeatures maximal;
  VkPhysicalDeviceRobustness2FeaturesEXT robust_access =
      structure<VkPhysicalDeviceRobustness2FeaturesEXT>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT);
  VkPhysicalDevicePipelineRobustnessFeaturesEXT by_pipeline = structure<VkPhysicalDevicePipelineRobustnessFeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT);
  void** end = &features12.pNext;
};

// Those that the library uses where they are.
void request_extensions(Request& request, const PhysicalDevice& physical) {
  const auto add = [&request](bool present, const char* name) {
    if (present) request.extensions.push_back(name);
  };
  add(physical.push_descriptors, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
  add(physical.calibrated_timestamps, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
  add(physical.memory_fd, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
  add(physical.host_import_alignment != 0, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
  add(physical.portability_subset, "VK_KHR_portability_subset");
}

void request_features(Request& request, const PhysicalDevice& physical) {
  VkPhysicalDeviceVulkan12Features& features12 = request.features12;
  features12.timelineSemaphore = VK_TRUE;
  features12.hostQueryReset = physical.features12.hostQueryReset;
  features12.bufferDeviceAddress = addresses_usable(physical);
  features12.storageBuffer8BitAccess = physical.features12.storageBuffer8BitAccess;
  features12.shaderFloat16 = physical.features12.shaderFloat16;
  features12.shaderInt8 = physical.features12.shaderInt8;
  features12.vulkanMemoryModel = physical.matrix_cores;
  request.features11.storageBuffer16BitAccess = physical.features11.storageBuffer16BitAccess;
  VkPhysicalDeviceFeatures& features = request.features.features;
  features.shaderInt64 = addresses_usable(physical);
  features.shaderInt16 = physical.features.shaderInt16;
  features.shaderFloat64 = physical.features.shaderFloat64;
}

void request_full_subgroups(Request& request, const PhysicalDevice& physical) {
  if (physical.properties.apiVersion < VK_API_VERSION_1_3) {
    request.extensions.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  }
  request.append(request.subgroups, request.subgroups.subgroupSizeControl);
}

void request_matrices(Request& request, const PhysicalDevice& physical) {
  if (physical.matrix_cores) {
    request.extensions.push_back(kCooperativeMatrixExtension);
    request.append(request.matrices, request.matrices.cooperativeMatrix);
  }
  if (physical.bfloat16) {
    request.extensions.push_back(kBfloat16Extension);
    request.append(request.bfloat16, request.bfloat16.shaderBFloat16Type,
                   request.bfloat16.shaderBFloat16CooperativeMatrix);
  }
}

void request_reconvergence(Request& request, Reconvergence reconvergence) {
  if (reconvergence == Reconvergence::subgroup_uniform) {
    request.extensions.push_back(VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME);
    request.append(request.uniform_flow, request.uniform_flow.shaderSubgroupUniformControlFlow);
  } else if (reconvergence == Reconvergence::maximal) {
    request.extensions.push_back(kMaximalReconvergenceExtension);
    request.append(request.maximal, request.maximal.shaderMaximalReconvergence);
  }
}

void request_robustness(Request& request, Device::Robustness robustness) {
  if (robustness == Device::Robustness::none) return;
  request.extensions.push_back(VK_EXT_ROBUSTNESS_2_EXTENSION_NAME);
  if (robustness == Device::Robustness::by_pipeline) {
    request.extensions.push_back(VK_EXT_PIPELINE_ROBUSTNESS_EXTENSION_NAME);
    request.append(request.by_pipeline, request.by_pipeline.pipelineRobustness);
  } else {
    request.features.features.robustBufferAccess = VK_TRUE;
    request.append(request.robust_access, request.robust_access.robustBufferAccess2);
  }
}

}  // namespace

HeapBudget read_heap_budget(const PhysicalDevice& physical, uint32_t heap) {
  if (!physical.memory_budget) return {};
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget{};
  budget.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT;
  VkPhysicalDeviceMemoryProperties2 memory{};
  memory.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2;
  memory.pNext = &budget;
  vkGetPhysicalDeviceMemoryProperties2(physical.handle, &memory);
  return {budget.heapBudget[heap], budget.heapUsage[heap]};
}

HeapBudget heap_budget(const PhysicalDevice& physical) {
  return read_heap_budget(physical, largest_device_heap(physical.memory));
}

uint64_t heap_bytes(const PhysicalDevice& physical) {
  return physical.memory.memoryHeaps[largest_device_heap(physical.memory)].size;
}

uint64_t max_block_bytes(const PhysicalDevice& physical) {
  return std::min<uint64_t>(heap_bytes(physical), physical.max_buffer_bytes) / kBlockGranule * kBlockGranule;
}

void describe(const PhysicalDevice& physical, tuff_device_properties& out) {
  const VkPhysicalDeviceLimits& limits = physical.properties.limits;
  out.type = device_type(physical.properties.deviceType);
  copy_text(out.name, physical.properties.deviceName);
  copy_text(out.vendor, vendor_name(physical.properties.vendorID));
  copy_text(out.driver, fmt::format("{} {}", physical.driver.driverName, physical.driver.driverInfo));
  copy_text(out.backend, "vulkan");
  std::memcpy(out.uuid, physical.properties11.deviceUUID, sizeof out.uuid);
  out.vendor_id = physical.properties.vendorID;
  out.device_id = physical.properties.deviceID;
  out.api_version = physical.properties.apiVersion;
  out.driver_version = physical.properties.driverVersion;
  out.memory_bytes = heap_bytes(physical);
  out.memory_free_bytes = heap_budget(physical).left();
  out.max_allocation_bytes = max_block_bytes(physical);
  out.max_storage_range_bytes = limits.maxStorageBufferRange;
  out.max_workgroup_invocations = limits.maxComputeWorkGroupInvocations;
  std::copy_n(limits.maxComputeWorkGroupCount, 3, out.max_workgroup_count);
  out.max_shared_memory_bytes = limits.maxComputeSharedMemorySize;
  out.max_push_constant_bytes = limits.maxPushConstantsSize;
  out.subgroup_size = physical.properties11.subgroupSize;
  out.supports_f16 = physical.features12.shaderFloat16 && physical.features11.storageBuffer16BitAccess;
  out.supports_bf16 = physical.bfloat16;
  out.supports_f64 = physical.features.shaderFloat64 != 0;
  out.supports_int8 = physical.features12.shaderInt8 && physical.features12.storageBuffer8BitAccess;
  out.supports_matrix_cores = physical.matrix_cores;
  out.supports_addresses = addresses_usable(physical);
  out.unified_memory = unified_memory(physical.memory);
  std::copy_n(limits.maxComputeWorkGroupSize, 3, out.max_workgroup_size);
  const VkPhysicalDeviceSubgroupSizeControlProperties& sizes = physical.subgroup_control;
  out.subgroup_size_min = sizes.minSubgroupSize != 0 ? sizes.minSubgroupSize : out.subgroup_size;
  out.subgroup_size_max = sizes.maxSubgroupSize != 0 ? sizes.maxSubgroupSize : out.subgroup_size;
  out.subgroup_operations = physical.properties11.subgroupSupportedOperations;
  out.compute_units = physical.cores;
  out.min_storage_alignment = static_cast<uint32_t>(limits.minStorageBufferOffsetAlignment);
  out.host_import_alignment = physical.host_import_alignment;
  out.timestamp_nanoseconds = static_cast<double>(limits.timestampPeriod);
  std::memcpy(out.driver_uuid, physical.properties11.driverUUID, sizeof out.driver_uuid);
  const std::vector<VkQueueFamilyProperties>& families = physical.queue_families;
  out.queue_family_count = static_cast<uint32_t>(std::min<size_t>(families.size(), TUFF_MAX_QUEUE_FAMILIES));
  for (uint32_t i = 0; i < out.queue_family_count; ++i) {
    out.queue_families[i] = {families[i].queueFlags, families[i].queueCount, families[i].timestampValidBits, 0};
  }
  const std::vector<MatrixShape>& shapes = physical.matrix_shapes;
  out.matrix_shape_count = static_cast<uint32_t>(std::min<size_t>(shapes.size(), TUFF_MAX_MATRIX_SHAPES));
  for (uint32_t i = 0; i < out.matrix_shape_count; ++i) {
    out.matrix_shapes[i] = {shapes[i].m, shapes[i].n, shapes[i].k, shapes[i].a, shapes[i].b, shapes[i].c};
  }
}

Device::Device(Instance& owner, const PhysicalDevice& device) : physical(device), instance(owner) {
  heap_ = largest_device_heap(physical.memory);
  memory_bytes_ = physical.memory.memoryHeaps[heap_].size;
  try {
    create();
    load_labels();
    read_traits();
  } catch (...) {
    destroy();
    throw;
  }
}

Device::~Device() { destroy(); }

void Device::destroy() noexcept {
  if (handle == VK_NULL_HANDLE) return;
  const auto lock = NativeModules::excluded(*this);
  vk.vkDestroyDevice(handle, nullptr);
}

void Device::create() {
  choose();
  Request request;
  request_extensions(request, physical);
  if (native) request.extensions.push_back(VK_NVX_BINARY_IMPORT_EXTENSION_NAME);
  request_features(request, physical);
  if (full_subgroups) request_full_subgroups(request, physical);
  if (zeroes_shared) request.append(request.zeroes, request.zeroes.shaderZeroInitializeWorkgroupMemory);
  request_matrices(request, physical);
  request_reconvergence(request, reconvergence);
  request_robustness(request, robustness);
  open(request.features, request.extensions);
}

// What is enabled although kernels can do without it.
void Device::choose() {
  native = physical.binary_import && physical.compute_only && addresses_usable(physical) &&
           platform::environment("TUFF_NATIVE") != "off";
  host_query_reset_ = physical.features12.hostQueryReset;
  full_subgroups = physical.subgroup_size_control &&
                   physical.subgroup_control.minSubgroupSize != physical.subgroup_control.maxSubgroupSize &&
                   (physical.subgroup_control.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT);
  zeroes_shared = physical.zeroes_shared;
  const auto wanted = platform::environment("TUFF_RECONVERGENCE");
  if (wanted == "uniform" && physical.uniform_control_flow) reconvergence = Reconvergence::subgroup_uniform;
  if (wanted == "maximal" && physical.maximal_reconvergence) reconvergence = Reconvergence::maximal;
  if (physical.robust_access && physical.pipeline_robustness) {
    robustness = Robustness::by_pipeline;
  } else if (physical.robust_access && physical.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    // lavapipe has these checks in every kernel, whether requested or not. On GPUs they would cost performance.
    robustness = Robustness::everywhere;
  }
}

// Creates the device with its queues, with fewer of them if it is refused otherwise.
void Device::open(const VkPhysicalDeviceFeatures2& features, std::span<const char* const> extensions) {
  std::array<float, kMaxQueues> priorities;
  priorities.fill(1.0f);
  VkDeviceQueueCreateInfo queue_info{};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueFamilyIndex = physical.queue_family;
  queue_info.queueCount = std::min(physical.queue_count, kMaxQueues);
  queue_info.pQueuePriorities = priorities.data();
  VkDeviceQueueCreateInfo queue_infos[2] = {queue_info, queue_info};
  queue_infos[1].queueFamilyIndex = physical.copy_family;
  queue_infos[1].queueCount = 1;
  bool copies = physical.copy_family != physical.queue_family;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.pQueueCreateInfos = queue_infos;
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  for (;;) {
    info.queueCreateInfoCount = copies ? 2 : 1;
    const VkResult result = [&] {
      const auto lock = NativeModules::excluded(*this);
      return vkCreateDevice(physical.handle, &info, nullptr, &handle);
    }();
    if (result != VK_SUCCESS) handle = VK_NULL_HANDLE;
    // Drivers limit the number of queues over all devices and processes. NVIDIA's (580) then fails with an
    // initialisation error.
    const bool fewer = queue_infos[0].queueCount > 1 || copies;
    if (result == VK_SUCCESS || !fewer) {
      check_vk(result, "vkCreateDevice");
      break;
    }
    log(TUFF_LOG_INFO, "{}: a device with {} queues was refused; trying one queue", physical.properties.deviceName,
        queue_infos[0].queueCount + (copies ? 1 : 0));
    queue_infos[0].queueCount = 1;
    copies = false;
  }
  count_object();
  volkLoadDeviceTable(&vk, handle);
  queues.resize(queue_infos[0].queueCount);
  for (uint32_t i = 0; i < queues.size(); ++i) vk.vkGetDeviceQueue(handle, physical.queue_family, i, &queues[i]);
  if (copies) vk.vkGetDeviceQueue(handle, physical.copy_family, 0, &copy_queue);
  families_[0] = physical.queue_family;
  families_[1] = physical.copy_family;
}

// An instance extension, so volk's device table does not include its functions.
void Device::load_labels() {
  if (!instance.debug_utils()) return;
  if (!physical.debug_markers && platform::environment("TUFF_DEBUG_LABELS") != "1") return;
  const auto load = [this](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(vkGetDeviceProcAddr(handle, name));
    return function != nullptr;
  };
  labels = load(begin_label, "vkCmdBeginDebugUtilsLabelEXT") && load(end_label, "vkCmdEndDebugUtilsLabelEXT") &&
           load(set_name_, "vkSetDebugUtilsObjectNameEXT");
}

void Device::name_object(VkObjectType type, uint64_t object, const char* name) {
  const VkDebugUtilsObjectNameInfoEXT info{VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT, nullptr, type, object,
                                           name};
  set_name_(handle, &info);  // for debugging only: failure is ignored
}

void Device::read_traits() {
  const VkPhysicalDeviceLimits& limits = physical.properties.limits;
  const VkSubgroupFeatureFlags operations = physical.properties11.subgroupSupportedOperations;
  traits.cpu = physical.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  traits.subgroup_size = physical.properties11.subgroupSize;
  traits.subgroup_arithmetic = operations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  traits.subgroup_shuffle = operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  traits.subgroup_ballot = operations & VK_SUBGROUP_FEATURE_BALLOT_BIT;
  traits.cores = physical.cores;
  traits.max_invocations = limits.maxComputeWorkGroupInvocations;
  std::copy_n(limits.maxComputeWorkGroupSize, 3, traits.max_local_size);
  std::copy_n(limits.maxComputeWorkGroupCount, 3, traits.max_groups);
  traits.shared_bytes = limits.maxComputeSharedMemorySize;
  traits.push_bytes = limits.maxPushConstantsSize;
  traits.max_range = limits.maxStorageBufferRange;
  traits.addresses = addresses_usable(physical);
  // R16_UINT, R32_UINT and R32G32_UINT are formats of texel buffers on every device.
  if (traits.cpu && physical.push_descriptors) traits.max_texels = limits.maxTexelBufferElements;
  traits.storage16 = physical.features11.storageBuffer16BitAccess;
  traits.storage8 = physical.features12.storageBuffer8BitAccess;
  traits.f16 = traits.storage16 && physical.features12.shaderFloat16;
  traits.f64 = physical.features.shaderFloat64;
  traits.int64 = addresses_usable(physical);  // shaderInt64 is enabled with them
  const VkPhysicalDeviceFloatControlsProperties& controls = physical.float_controls;
  // Modes that can be set for 16-bit floats independently of other types.
  traits.rounds_f16 = traits.f16 && physical.features.shaderInt16 && controls.shaderRoundingModeRTEFloat16 &&
                      controls.shaderDenormPreserveFloat16 && controls.shaderSignedZeroInfNanPreserveFloat16 &&
                      controls.roundingModeIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL &&
                      controls.denormBehaviorIndependence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
  traits.preserves_f32 = controls.shaderSignedZeroInfNanPreserveFloat32;
  const std::vector<MatrixShape>& shapes = physical.matrix_shapes;
  traits.matrix_shape_count = static_cast<uint32_t>(std::min(shapes.size(), traits.matrix_shapes.size()));
  std::copy_n(shapes.begin(), traits.matrix_shape_count, traits.matrix_shapes.begin());
}

void Device::refuse_lost() const {
  fail(TUFF_ERROR_DEVICE_LOST, "the device {} was lost: {} returned {}; create a new context",
       physical.properties.deviceName, lost_by_.load(std::memory_order_acquire), vk_result_name(loss_));
}

VkDescriptorSetLayout Device::make_set_layout(std::span<const VkDescriptorSetLayoutBinding> bindings) {
  VkDescriptorSetLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  info.flags = VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR;
  info.bindingCount = static_cast<uint32_t>(bindings.size());
  info.pBindings = bindings.data();
  VkDescriptorSetLayout set = VK_NULL_HANDLE;
  check_made(vk.vkCreateDescriptorSetLayout(handle, &info, nullptr, &set), set, "vkCreateDescriptorSetLayout");
  return set;
}

Device::Commands Device::make_commands(uint32_t family, VkCommandPoolCreateFlags flags,
                                       std::span<VkCommandBuffer> more) {
  Commands made;
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = flags;
  pool.queueFamilyIndex = family;
  check_made(vk.vkCreateCommandPool(handle, &pool, nullptr, &made.pool), made.pool, "vkCreateCommandPool");
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = made.pool;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  const auto make = [&](uint32_t count, VkCommandBuffer* buffers) {
    allocate.commandBufferCount = count;
    const VkResult result = vk.vkAllocateCommandBuffers(handle, &allocate, buffers);
    if (result != VK_SUCCESS) vk.vkDestroyCommandPool(handle, made.pool, nullptr);
    check_made(result, *buffers, "vkAllocateCommandBuffers");
  };
  make(1, &made.buffer);
  if (!more.empty()) make(static_cast<uint32_t>(more.size()), more.data());
  return made;
}

VkPipelineLayout Device::make_pipeline_layout(VkDescriptorSetLayout set, uint32_t push_bytes) {
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = set != VK_NULL_HANDLE ? 1 : 0;
  info.pSetLayouts = &set;
  info.pushConstantRangeCount = push_bytes != 0 ? 1 : 0;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  check_made(vk.vkCreatePipelineLayout(handle, &info, nullptr, &layout), layout, "vkCreatePipelineLayout");
  return layout;
}

VkShaderModule Device::make_shader_module(std::span<const uint32_t> words) {
  VkShaderModuleCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  info.codeSize = words.size_bytes();
  info.pCode = words.data();
  VkShaderModule module = VK_NULL_HANDLE;
  check_made(vk.vkCreateShaderModule(handle, &info, nullptr, &module), module, "vkCreateShaderModule");
  return module;
}

Device::Native Device::load_native(const std::string& ptx, const char* entry) {
  Native made;
  VkCuModuleCreateInfoNVX module{};
  module.sType = VK_STRUCTURE_TYPE_CU_MODULE_CREATE_INFO_NVX;
  module.dataSize = ptx.size() + 1;  // the text ends with a zero
  module.pData = ptx.c_str();
  // Checked without the lock, because a lost device is logged (lock_ranks.def).
  const VkResult loaded = [&] {
    const auto lock = NativeModules::changing();
    return vk.vkCreateCuModuleNVX(handle, &module, nullptr, &made.module);
  }();
  if (loaded == VK_ERROR_INITIALIZATION_FAILED) return {};
  check_made(loaded, made.module, "vkCreateCuModuleNVX");
  VkCuFunctionCreateInfoNVX function{};
  function.sType = VK_STRUCTURE_TYPE_CU_FUNCTION_CREATE_INFO_NVX;
  function.module = made.module;
  function.pName = entry;
  const VkResult found = [&] {
    const auto lock = NativeModules::changing();
    const VkResult result = vk.vkCreateCuFunctionNVX(handle, &function, nullptr, &made.function);
    if (result != VK_SUCCESS) vk.vkDestroyCuModuleNVX(handle, made.module, nullptr);
    return result;
  }();
  check_made(found, made.function, "vkCreateCuFunctionNVX");
  return made;
}

// The functions exist only if the extension is enabled.
void Device::destroy_native(VkCuModuleNVX module, VkCuFunctionNVX function) noexcept {
  if (module == VK_NULL_HANDLE) return;
  const auto lock = NativeModules::changing();
  if (function != VK_NULL_HANDLE) vk.vkDestroyCuFunctionNVX(handle, function, nullptr);
  vk.vkDestroyCuModuleNVX(handle, module, nullptr);
}

void Device::check(VkResult result, const char* what) {
  if (result == VK_ERROR_DEVICE_LOST) lose(what, result);
  check_vk(result, what);
}

void Device::lose(const char* what, VkResult result) {
  VkResult before = VK_SUCCESS;
  if (loss_.compare_exchange_strong(before, result)) {
    lost_by_.store(what, std::memory_order_release);
    log(TUFF_LOG_ERROR, "{} lost the device {}: {}", what, physical.properties.deviceName, vk_result_name(result));
  }
  require_alive();
  // Another thread is about to store the call that lost the device.
  fail(TUFF_ERROR_DEVICE_LOST, "{} returned {}; create a new context", what, vk_result_name(result));
}

}  // namespace tuff
