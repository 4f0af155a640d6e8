#include "runtime/vulkan/instance.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "planning/log.hpp"
#include "platform/mutex.hpp"
#include "platform/platform.hpp"
#include "runtime/vulkan/device_requirements.hpp"
#include "runtime/vulkan/device_selection.hpp"
#include "runtime/vulkan/memory_block.hpp"
#include "runtime/vulkan/reconvergence_spirv.hpp"

namespace tuff {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";

std::vector<VkExtensionProperties> instance_extensions(const char* layer) {
  return list_vk<VkExtensionProperties>("vkEnumerateInstanceExtensionProperties",
                                        [&](uint32_t* count, VkExtensionProperties* extensions) {
                                          return vkEnumerateInstanceExtensionProperties(layer, count, extensions);
                                        });
}

bool contains(const std::vector<VkExtensionProperties>& extensions, const char* name) {
  return std::any_of(extensions.begin(), extensions.end(),
                     [&](const auto& extension) { return std::strcmp(extension.extensionName, name) == 0; });
}

bool layer_present() {
  const auto layers =
      list_vk<VkLayerProperties>("vkEnumerateInstanceLayerProperties", vkEnumerateInstanceLayerProperties);
  return std::any_of(layers.begin(), layers.end(),
                     [](const auto& layer) { return std::strcmp(layer.layerName, kValidationLayer) == 0; });
}

// Lower is better.
int rank(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 0;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 1;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 3;
    default: return 4;
  }
}

std::vector<DeviceIdentity> identities(const std::vector<PhysicalDevice>& devices) {
  std::vector<DeviceIdentity> all(devices.size());
  for (size_t i = 0; i < devices.size(); ++i) {
    all[i].name = devices[i].properties.deviceName;
    std::copy_n(devices[i].properties11.deviceUUID, VK_UUID_SIZE, all[i].uuid);
  }
  return all;
}

// The decode and encode queues of VK_KHR_video_queue, which older headers lack.
constexpr VkQueueFlags kVideoQueues = 0x20 | 0x40;

void find_queues(PhysicalDevice& device) {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties>& families = device.queue_families;
  families.resize(count);
  vkGetPhysicalDeviceQueueFamilyProperties(device.handle, &count, families.data());
  // Takes the first family with compute; it usually has graphics too, and drivers run compute fastest there by default.
  // On NVIDIA's it is as fast without graphics or faster, and only there kernels get more than 48 KiB of shared memory.
  const auto computes = [](const VkQueueFamilyProperties& family) { return family.queueFlags & VK_QUEUE_COMPUTE_BIT; };
  const auto computes_only = [](const VkQueueFamilyProperties& family) {
    return (family.queueFlags & (VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT)) == VK_QUEUE_COMPUTE_BIT;
  };
  auto found = std::find_if(families.begin(), families.end(), computes);
  if (found == families.end()) return;
  if (device.binary_import) {
    const auto only = std::find_if(families.begin(), families.end(), computes_only);
    if (only != families.end()) found = only;
  }
  device.compute_only = computes_only(*found);
  device.queue_family = device.copy_family = static_cast<uint32_t>(found - families.begin());
  device.queue_count = found->queueCount;
  device.timestamp_bits = found->timestampValidBits;
  for (uint32_t i = 0; i < count; ++i) {
    constexpr VkQueueFlags kOthers = VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT | kVideoQueues;
    if ((families[i].queueFlags & (VK_QUEUE_TRANSFER_BIT | kOthers)) != VK_QUEUE_TRANSFER_BIT) continue;
    device.copy_family = i;
    device.copy_timestamp_bits = families[i].timestampValidBits;
    return;
  }
}

// Whether the host can read the clock that timestamps use.
bool calibrated_timestamps(VkPhysicalDevice handle, const std::vector<VkExtensionProperties>& extensions) {
  if (!contains(extensions, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME)) return false;
  if (vkGetPhysicalDeviceCalibrateableTimeDomainsEXT == nullptr) return false;
  const auto domains = list_optional_vk<VkTimeDomainEXT>(
      "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT", [&](uint32_t* count, VkTimeDomainEXT* list) {
        return vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(handle, count, list);
      });
  return std::find(domains.begin(), domains.end(), VK_TIME_DOMAIN_DEVICE_EXT) != domains.end();
}

// Whether an attached tool such as RenderDoc or Nsight reports that it shows labels.
bool has_debug_markers(const PhysicalDevice& device) {
  if (device.properties.apiVersion < VK_API_VERSION_1_3 || vkGetPhysicalDeviceToolProperties == nullptr) return false;
  VkPhysicalDeviceToolProperties empty{};
  empty.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TOOL_PROPERTIES;
  const auto tools = list_optional_vk<VkPhysicalDeviceToolProperties>(
      "vkGetPhysicalDeviceToolProperties",
      [&](uint32_t* count, VkPhysicalDeviceToolProperties* list) {
        return vkGetPhysicalDeviceToolProperties(device.handle, count, list);
      },
      empty);
  return std::any_of(tools.begin(), tools.end(),
                     [](const auto& tool) { return (tool.purposes & VK_TOOL_PURPOSE_DEBUG_MARKERS_BIT_EXT) != 0; });
}

// Which memory can be shared. The extensions provide the functions; the driver reports whether buffers like Tuff's can
// use them.
void inspect_external_memory(PhysicalDevice& device, const std::vector<VkExtensionProperties>& extensions) {
  VkPhysicalDeviceExternalBufferInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO;
  info.usage = block_usage(device.features12.bufferDeviceAddress && device.features.shaderInt64,
                           device.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU);
  const auto features = [&](VkExternalMemoryHandleTypeFlagBits handle) {
    VkExternalBufferProperties properties{};
    properties.sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES;
    info.handleType = handle;
    vkGetPhysicalDeviceExternalBufferProperties(device.handle, &info, &properties);
    return properties.externalMemoryProperties.externalMemoryFeatures;
  };
  if (contains(extensions, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME)) {
    const VkExternalMemoryFeatureFlags both =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    const VkExternalMemoryFeatureFlags found = features(VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT);
    device.memory_fd = (found & both) == both;
    device.memory_fd_dedicated = found & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT;
  }
  if (contains(extensions, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME) &&
      features(VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT) & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT) {
    VkPhysicalDeviceExternalMemoryHostPropertiesEXT host{};
    host.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
    VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, &host, {}};
    vkGetPhysicalDeviceProperties2(device.handle, &properties);
    device.host_import_alignment = host.minImportedHostPointerAlignment;
  }
}

// Both need Vulkan 1.2. The chains of structures point to local variables, so they are cleared at the end.
void read_properties(PhysicalDevice& device, const std::vector<VkExtensionProperties>& extensions, bool control) {
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV multiprocessors{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV, nullptr, 0, 0};
  VkPhysicalDeviceProperties2 properties{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, nullptr, {}};
  device.properties11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  device.driver.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES;
  device.maintenance3.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES;
  device.subgroup_control.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES;
  device.float_controls.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
  properties.pNext = &device.properties11;
  device.properties11.pNext = &device.float_controls;
  device.float_controls.pNext = &device.driver;
  device.driver.pNext = &device.maintenance3;
  void** tail = &device.maintenance3.pNext;
  const auto append = [&tail](auto& structure) {
    *tail = &structure;
    tail = &structure.pNext;
  };
  if (contains(extensions, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) append(multiprocessors);
  if (control) append(device.subgroup_control);
  VkPhysicalDevicePCIBusInfoPropertiesEXT pci{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PCI_BUS_INFO_PROPERTIES_EXT, nullptr, 0, 0, 0, 0};
  const bool on_pci = contains(extensions, VK_EXT_PCI_BUS_INFO_EXTENSION_NAME);
  if (on_pci) append(pci);
  VkPhysicalDeviceMaintenance4Properties maintenance4{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES,
                                                      nullptr, UINT64_MAX};
  if (device.properties.apiVersion >= VK_API_VERSION_1_3 || contains(extensions, VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) {
    append(maintenance4);
  }
  vkGetPhysicalDeviceProperties2(device.handle, &properties);
  device.cores = multiprocessors.shaderSMCount;
  device.max_buffer_bytes = maintenance4.maxBufferSize;
  if (on_pci) {
    device.pci_address =
        fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.pciDomain, pci.pciBus, pci.pciDevice, pci.pciFunction);
  }
  device.properties11.pNext = device.float_controls.pNext = device.driver.pNext = nullptr;
  device.maintenance3.pNext = device.subgroup_control.pNext = nullptr;
}

void read_features(PhysicalDevice& device, const std::vector<VkExtensionProperties>& extensions, bool control) {
  VkPhysicalDeviceSubgroupSizeControlFeatures control_features{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, nullptr, 0, 0};
  VkPhysicalDeviceFeatures2 features{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, nullptr, {}};
  device.features11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  device.features12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  features.pNext = &device.features11;
  device.features11.pNext = &device.features12;
  void** more = &device.features12.pNext;
  const auto append = [&more](auto& structure) {
    *more = &structure;
    more = &structure.pNext;
  };
  CooperativeMatrixFeatures matrices;
  Bfloat16Features bfloat16;
  VkPhysicalDeviceRobustness2FeaturesEXT robustness{VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ROBUSTNESS_2_FEATURES_EXT,
                                                    nullptr, 0, 0, 0};
  VkPhysicalDevicePipelineRobustnessFeaturesEXT by_pipeline{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_ROBUSTNESS_FEATURES_EXT, nullptr, 0};
  VkPhysicalDeviceZeroInitializeWorkgroupMemoryFeatures zeroes{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ZERO_INITIALIZE_WORKGROUP_MEMORY_FEATURES, nullptr, 0};
  VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR uniform_flow{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR, nullptr, 0};
  MaximalReconvergenceFeatures maximal;
  if (device.properties.apiVersion >= VK_API_VERSION_1_3) append(zeroes);
  if (contains(extensions, VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME)) append(uniform_flow);
  if (contains(extensions, kMaximalReconvergenceExtension)) append(maximal);
  if (control) append(control_features);
  if (contains(extensions, VK_EXT_ROBUSTNESS_2_EXTENSION_NAME)) append(robustness);
  if (contains(extensions, VK_EXT_PIPELINE_ROBUSTNESS_EXTENSION_NAME)) append(by_pipeline);
  if (contains(extensions, kCooperativeMatrixExtension)) append(matrices);
  if (contains(extensions, kBfloat16Extension)) append(bfloat16);
  vkGetPhysicalDeviceFeatures2(device.handle, &features);
  device.features = features.features;
  device.subgroup_size_control = control_features.subgroupSizeControl;
  device.robust_access = robustness.robustBufferAccess2;
  device.pipeline_robustness = by_pipeline.pipelineRobustness;
  device.zeroes_shared = zeroes.shaderZeroInitializeWorkgroupMemory;
  device.uniform_control_flow = uniform_flow.shaderSubgroupUniformControlFlow;
  device.maximal_reconvergence = maximal.shaderMaximalReconvergence;
  device.matrix_cores = matrices.cooperativeMatrix && device.features12.vulkanMemoryModel;
  device.bfloat16 = device.matrix_cores && bfloat16.shaderBFloat16Type && bfloat16.shaderBFloat16CooperativeMatrix;
  device.features11.pNext = device.features12.pNext = nullptr;
}

PhysicalDevice inspect(VkInstance instance, VkPhysicalDevice handle) {
  PhysicalDevice device;
  device.handle = handle;
  vkGetPhysicalDeviceProperties(handle, &device.properties);
  vkGetPhysicalDeviceMemoryProperties(handle, &device.memory);
  const auto extensions = list_vk<VkExtensionProperties>(
      "vkEnumerateDeviceExtensionProperties", [&](uint32_t* count, VkExtensionProperties* list) {
        return vkEnumerateDeviceExtensionProperties(handle, nullptr, count, list);
      });
  device.push_descriptors = contains(extensions, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
  device.memory_budget = contains(extensions, VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  device.portability_subset = contains(extensions, "VK_KHR_portability_subset");
  device.calibrated_timestamps = calibrated_timestamps(handle, extensions);
  device.debug_markers = has_debug_markers(device);
  device.binary_import = contains(extensions, VK_NVX_BINARY_IMPORT_EXTENSION_NAME);

  find_queues(device);
  if (device.properties.apiVersion >= VK_API_VERSION_1_2) {
    const bool control = device.properties.apiVersion >= VK_API_VERSION_1_3 ||
                         contains(extensions, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
    read_properties(device, extensions, control);
    read_features(device, extensions, control);
    if (device.matrix_cores) device.matrix_shapes = matrix_shapes(instance, handle);
    inspect_external_memory(device, extensions);
  }
  if (device.cores == 0 && device.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    device.cores = std::max(1u, std::thread::hardware_concurrency());
  }
  device.lacks = missing(device);
  return device;
}

}  // namespace

Instance& Instance::get(bool validation) {
  static constinit Mutex mutex(LockRank::instance);
  static Instance* instances[2] = {nullptr, nullptr};
  const std::lock_guard lock(mutex);
  Instance*& instance = instances[validation ? 1 : 0];
  if (instance == nullptr) instance = new Instance(validation);
  return *instance;
}

Instance::Instance(bool validation) {
  try {
    create(validation);
    enumerate();
  } catch (...) {
    if (messenger_ != VK_NULL_HANDLE) vkDestroyDebugUtilsMessengerEXT(instance_, messenger_, nullptr);
    if (instance_ != VK_NULL_HANDLE) vkDestroyInstance(instance_, nullptr);
    throw;
  }
}

void Instance::create(bool validation) {
  if (volkInitialize() != VK_SUCCESS) {
    fail(TUFF_ERROR_NO_DEVICE, "no Vulkan loader: libvulkan.so.1 could not be opened");
  }
  if (vkEnumerateInstanceVersion == nullptr) fail(TUFF_ERROR_NO_DEVICE, "the Vulkan loader is older than Vulkan 1.1");

  std::vector<const char*> layers, extensions;
  VkInstanceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  const std::vector<VkExtensionProperties> available = instance_extensions(nullptr);
  if (contains(available, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  // Part of the loader and free of cost while unused: labels for tools, and the validation layer's messages.
  debug_utils_ = validation || contains(available, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  if (debug_utils_) extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  VkDebugUtilsMessengerCreateInfoEXT messenger{};
  messenger.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  messenger.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  messenger.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  messenger.pfnUserCallback = &Instance::on_message;
  messenger.pUserData = this;
  const VkValidationFeatureEnableEXT enable = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = &enable;
  if (validation) {
    if (!layer_present()) {
      fail(TUFF_ERROR_UNSUPPORTED, "validation was requested, but the layer {} is not installed", kValidationLayer);
    }
    layers.push_back(kValidationLayer);
    if (contains(instance_extensions(kValidationLayer), VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME)) {
      extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
      messenger.pNext = &features;
    }
    info.pNext = &messenger;
  }
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pEngineName = "Tuff";
  application.engineVersion = TUFF_VERSION;
  application.apiVersion = VK_API_VERSION_1_3;
  info.pApplicationInfo = &application;
  info.enabledLayerCount = static_cast<uint32_t>(layers.size());
  info.ppEnabledLayerNames = layers.data();
  info.enabledExtensionCount = static_cast<uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  const VkResult result = vkCreateInstance(&info, nullptr, &instance_);
  if (result != VK_SUCCESS) instance_ = VK_NULL_HANDLE;
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY || result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    check_vk(result, "vkCreateInstance");
  }
  if (result != VK_SUCCESS) fail(TUFF_ERROR_NO_DEVICE, "vkCreateInstance returned {}", vk_result_name(result));
  volkLoadInstanceOnly(instance_);
  if (validation) {
    messenger.pNext = nullptr;
    check_made(vkCreateDebugUtilsMessengerEXT(instance_, &messenger, nullptr, &messenger_), messenger_,
               "vkCreateDebugUtilsMessengerEXT");
  }
}

void Instance::enumerate() {
  const auto handles = list_vk<VkPhysicalDevice>(
      "vkEnumeratePhysicalDevices",
      [&](uint32_t* count, VkPhysicalDevice* list) { return vkEnumeratePhysicalDevices(instance_, count, list); });
  for (const VkPhysicalDevice handle : handles) {
    PhysicalDevice device;
    try {
      device = inspect(instance_, handle);
    } catch (const Error& error) {
      const tuff_status code = error.code();
      if (code == TUFF_ERROR_OUT_OF_HOST_MEMORY || code == TUFF_ERROR_OUT_OF_DEVICE_MEMORY) throw;
      VkPhysicalDeviceProperties properties;
      vkGetPhysicalDeviceProperties(handle, &properties);
      refusals_.push_back(fmt::format("{} does not report its properties: {}", properties.deviceName, error.what()));
      log(TUFF_LOG_WARNING, "{}", refusals_.back());
      continue;
    }
    log(TUFF_LOG_INFO, "found {} ({}){}{}", device.properties.deviceName, device.driver.driverInfo,
        device.lacks.empty() ? "" : ": refused, it lacks ", device.lacks);
    if (device.lacks.empty()) {
      devices_.push_back(std::move(device));
    } else {
      refusals_.push_back(fmt::format("{} lacks {}", device.properties.deviceName, device.lacks));
    }
  }
  std::stable_sort(devices_.begin(), devices_.end(), [](const PhysicalDevice& a, const PhysicalDevice& b) {
    return rank(a.properties.deviceType) < rank(b.properties.deviceType);
  });
  keep_visible();
}

void Instance::keep_visible() {
  const auto list = platform::environment_even_empty("TUFF_VISIBLE_DEVICES");
  if (!list) return;
  std::vector<size_t> order;
  try {
    order = select_visible(*list, identities(devices_));
  } catch (const Error& error) {
    selection_problem_ = error.what();
    return;
  }
  std::vector<PhysicalDevice> visible;
  for (const size_t index : order) visible.push_back(devices_[index]);
  for (size_t i = 0; i < devices_.size(); ++i) {
    if (std::find(order.begin(), order.end(), i) != order.end()) continue;
    refusals_.push_back(fmt::format("{} (number {} of all) is hidden: TUFF_VISIBLE_DEVICES is \"{}\"",
                                    devices_[i].properties.deviceName, i, *list));
  }
  devices_ = std::move(visible);
}

const std::vector<PhysicalDevice>& Instance::devices() const {
  if (!selection_problem_.empty()) fail(TUFF_ERROR_INVALID_ARGUMENT, "{}", selection_problem_);
  return devices_;
}

const PhysicalDevice& Instance::choose(const std::string& wanted) const {
  const std::vector<PhysicalDevice>& all = devices();
  const std::string refused = fmt::format("{}", fmt::join(refusals_, "; "));
  if (all.empty()) {
    fail(TUFF_ERROR_NO_DEVICE, "no usable Vulkan device: {}", refused.empty() ? "no driver was found" : refused);
  }
  if (wanted.empty()) return all.front();
  try {
    return all[choose_device(wanted, identities(all))];
  } catch (const Error& error) {
    fail(TUFF_ERROR_NO_DEVICE, "{}{}{}", error.what(), refused.empty() ? "" : "; refused: ", refused);
  }
}

VkBool32 Instance::on_message(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* user) {
  static_cast<Instance*>(user)->messages_.fetch_add(1, std::memory_order_relaxed);
  log(TUFF_LOG_ERROR, "validation: {}", data->pMessage);
  return VK_FALSE;
}

}  // namespace tuff
