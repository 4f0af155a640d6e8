#include "programs/faulty_vulkan.hpp"

#include <dlfcn.h>
#include <vulkan/vulkan.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tuff_test::faulty_vulkan {
namespace {

// --- the functions ------------------------------------------------------------------------------------------

constexpr int32_t kHost = VK_ERROR_OUT_OF_HOST_MEMORY, kDevice = VK_ERROR_OUT_OF_DEVICE_MEMORY,
                  kLost = VK_ERROR_DEVICE_LOST, kUnknown = VK_ERROR_UNKNOWN;

// Names and codes from the specification of Vulkan 1.3 and its extensions. Any function may return VK_ERROR_UNKNOWN.
// VK_INCOMPLETE means that a list has grown between the two calls of an enumeration.
#define FUNCTIONS(ROW)                                                                                                 \
  ROW(vkEnumerateInstanceVersion, true, kHost, kUnknown)                                                               \
  ROW(vkEnumerateInstanceExtensionProperties, true, kHost, kDevice, kUnknown, VK_ERROR_LAYER_NOT_PRESENT,              \
      VK_INCOMPLETE)                                                                                                   \
  ROW(vkEnumerateInstanceLayerProperties, true, kHost, kDevice, kUnknown, VK_INCOMPLETE)                               \
  ROW(vkCreateInstance, true, kHost, kDevice, kUnknown, VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_LAYER_NOT_PRESENT,    \
      VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_INCOMPATIBLE_DRIVER)                                                    \
  ROW(vkCreateDebugUtilsMessengerEXT, true, kHost, kUnknown)                                                           \
  ROW(vkEnumeratePhysicalDevices, true, kHost, kDevice, kUnknown, VK_ERROR_INITIALIZATION_FAILED, VK_INCOMPLETE)       \
  ROW(vkEnumerateDeviceExtensionProperties, true, kHost, kDevice, kUnknown, VK_ERROR_LAYER_NOT_PRESENT, VK_INCOMPLETE) \
  ROW(vkGetPhysicalDeviceCalibrateableTimeDomainsEXT, true, kHost, kDevice, kUnknown, VK_INCOMPLETE)                   \
  ROW(vkGetPhysicalDeviceToolProperties, true, kHost, kUnknown, VK_INCOMPLETE)                                         \
  ROW(vkCreateDevice, false, kHost, kDevice, kLost, kUnknown, VK_ERROR_INITIALIZATION_FAILED,                          \
      VK_ERROR_EXTENSION_NOT_PRESENT, VK_ERROR_FEATURE_NOT_PRESENT, VK_ERROR_TOO_MANY_OBJECTS)                         \
  ROW(vkAllocateCommandBuffers, false, kHost, kDevice, kUnknown)                                                       \
  ROW(vkAllocateMemory, false, kHost, kDevice, kUnknown, VK_ERROR_TOO_MANY_OBJECTS, VK_ERROR_INVALID_EXTERNAL_HANDLE)  \
  ROW(vkBeginCommandBuffer, false, kHost, kDevice, kUnknown)                                                           \
  ROW(vkBindBufferMemory, false, kHost, kDevice, kUnknown)                                                             \
  ROW(vkCreateBuffer, false, kHost, kDevice, kUnknown)                                                                 \
  ROW(vkCreateCommandPool, false, kHost, kDevice, kUnknown)                                                            \
  ROW(vkCreateComputePipelines, false, kHost, kDevice, kUnknown, VK_ERROR_INVALID_SHADER_NV)                           \
  ROW(vkCreateDescriptorSetLayout, false, kHost, kDevice, kUnknown)                                                    \
  ROW(vkCreateFence, false, kHost, kDevice, kUnknown)                                                                  \
  ROW(vkCreatePipelineCache, false, kHost, kDevice, kUnknown)                                                          \
  ROW(vkCreatePipelineLayout, false, kHost, kDevice, kUnknown)                                                         \
  ROW(vkCreateQueryPool, false, kHost, kDevice, kUnknown)                                                              \
  ROW(vkCreateSemaphore, false, kHost, kDevice, kUnknown)                                                              \
  ROW(vkCreateShaderModule, false, kHost, kDevice, kUnknown, VK_ERROR_INVALID_SHADER_NV)                               \
  ROW(vkDeviceWaitIdle, false, kHost, kDevice, kLost, kUnknown)                                                        \
  ROW(vkQueueWaitIdle, false, kHost, kDevice, kLost, kUnknown)                                                         \
  ROW(vkEndCommandBuffer, false, kHost, kDevice, kUnknown)                                                             \
  ROW(vkGetCalibratedTimestampsEXT, false, kHost, kDevice, kUnknown)                                                   \
  ROW(vkGetMemoryFdKHR, false, kHost, kUnknown, VK_ERROR_TOO_MANY_OBJECTS)                                             \
  ROW(vkGetMemoryHostPointerPropertiesEXT, false, kHost, kUnknown, VK_ERROR_INVALID_EXTERNAL_HANDLE)                   \
  ROW(vkGetPipelineCacheData, false, kHost, kDevice, kUnknown, VK_INCOMPLETE)                                          \
  ROW(vkGetQueryPoolResults, false, kHost, kDevice, kLost, kUnknown, VK_NOT_READY)                                     \
  ROW(vkGetSemaphoreCounterValue, false, kHost, kDevice, kLost, kUnknown)                                              \
  ROW(vkMapMemory, false, kHost, kDevice, kUnknown, VK_ERROR_MEMORY_MAP_FAILED)                                        \
  ROW(vkMergePipelineCaches, false, kHost, kDevice, kUnknown)                                                          \
  ROW(vkQueueSubmit, false, kHost, kDevice, kLost, kUnknown)                                                           \
  ROW(vkResetCommandPool, false, kHost, kDevice, kUnknown)                                                             \
  ROW(vkResetFences, false, kHost, kDevice, kUnknown)                                                                  \
  ROW(vkSetDebugUtilsObjectNameEXT, false, kHost, kDevice, kUnknown)                                                   \
  ROW(vkWaitForFences, false, kHost, kDevice, kLost, kUnknown, VK_TIMEOUT)                                             \
  ROW(vkWaitSemaphores, false, kHost, kDevice, kLost, kUnknown, VK_TIMEOUT)

#define NUMBER(name, ...) k_##name,
enum Number : uint32_t { FUNCTIONS(NUMBER) kFunctions };

template <int32_t... codes>
struct Codes {
  static constexpr int32_t values[] = {codes...};
};
#define ROW_OF(name, of_instance, ...) \
  {#name, Codes<__VA_ARGS__>::values, sizeof(Codes<__VA_ARGS__>::values) / sizeof(int32_t), of_instance},
const Function kTable[] = {FUNCTIONS(ROW_OF)};

// --- the fault to inject ------------------------------------------------------------------------------------

std::atomic<uint64_t> counts[kFunctions];
std::atomic<uint32_t> failing_function{kFunctions};
std::atomic<uint64_t> failing_call{0}, failures{0};
std::atomic<int32_t> failing_code{0};
std::atomic<bool> failing_on{false};

// Returns the code to inject, or VK_SUCCESS.
VkResult fault(uint32_t number) {
  const uint64_t call = counts[number].fetch_add(1) + 1;
  if (failing_function.load() != number) return VK_SUCCESS;
  const uint64_t limit = failing_call.load();
  if (call != limit && !(failing_on.load() && call > limit)) return VK_SUCCESS;
  failures.fetch_add(1);
  return static_cast<VkResult>(failing_code.load());
}

// --- objects ------------------------------------------------------------------------------------------------

std::mutex mutex;  // protects the following
std::map<std::pair<std::string, uint64_t>, VkDevice> live;
std::string first_forbidden;
enum class State { initial, recording, executable, invalid };
struct Commands {
  VkCommandPool pool;
  State state;
};
std::map<VkCommandBuffer, Commands> command_buffers;

void forbid(const std::string& text) {
  if (first_forbidden.empty()) first_forbidden = text;
}

template <typename Handle>
uint64_t number_of(Handle handle) {
  uint64_t number = 0;
  static_assert(sizeof handle <= sizeof number);
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

template <typename Handle>
void made(const char* type, VkDevice device, Handle handle) {
  const std::lock_guard lock(mutex);
  live[{type, number_of(handle)}] = device;
}

// Returns whether the object may be destroyed.
template <typename Handle>
bool gone(const char* type, VkDevice device, Handle handle) {
  if (number_of(handle) == 0) return false;
  const std::lock_guard lock(mutex);
  const auto found = live.find({type, number_of(handle)});
  if (found == live.end() || found->second != device) {
    char text[120];
    std::snprintf(text, sizeof text, "a %s is destroyed that does not exist: %llx", type,
                  static_cast<unsigned long long>(number_of(handle)));
    forbid(text);
    return false;
  }
  live.erase(found);
  return true;
}

void children_are_gone(VkDevice device) {
  const std::lock_guard lock(mutex);
  std::map<std::string, int> left;
  for (auto it = live.begin(); it != live.end();) {
    if (it->second == device && device != VK_NULL_HANDLE) {
      ++left[it->first.first];
      it = live.erase(it);
    } else {
      ++it;
    }
  }
  for (const auto& [type, count] : left) {
    forbid("vkDestroyDevice, and there are " + std::to_string(count) + " of " + type);
  }
}

// --- the real functions -------------------------------------------------------------------------------------

template <typename F>
struct Real {
  std::atomic<F> function{nullptr};
};
#define POINTER(name, ...) Real<PFN_##name> real_##name;
FUNCTIONS(POINTER)
#define ENDS(END)          \
  END(Buffer)              \
  END(CommandPool)         \
  END(DescriptorSetLayout) \
  END(Fence) END(Pipeline) END(PipelineCache) END(PipelineLayout) END(QueryPool) END(Semaphore) END(ShaderModule)
#define END_POINTER(type) Real<PFN_vkDestroy##type> real_vkDestroy##type;
ENDS(END_POINTER)
Real<PFN_vkFreeMemory> real_vkFreeMemory;
Real<PFN_vkDestroyDevice> real_vkDestroyDevice;
Real<PFN_vkDestroyInstance> real_vkDestroyInstance;
Real<PFN_vkDestroyDebugUtilsMessengerEXT> real_vkDestroyDebugUtilsMessengerEXT;
Real<PFN_vkGetDeviceProcAddr> real_vkGetDeviceProcAddr;
Real<PFN_vkDeviceWaitIdle> wait_idle;

// Waits for submitted work before the device is reported as lost. A driver that has lost its device executes nothing
// any more, but this one would.
std::mutex queue_mutex;
void lose() {
  const std::lock_guard lock(queue_mutex);
  const std::lock_guard objects(mutex);
  for (const auto& [key, parent] : live) {
    if (key.first != "VkDevice") continue;
    VkDevice device;
    std::memcpy(&device, &key.second, sizeof device);
    if (const auto wait = wait_idle.function.load()) wait(device);
  }
}

// --- outputs ------------------------------------------------------------------------------------------------

// The outputs of a function that fails are undefined ("Return Codes" in the specification), unless stated otherwise.
template <typename T>
void spoil(T) {}
template <typename T>
void spoil_value(T* output) {
  if (output != nullptr) std::memset(output, 0xD5, sizeof(T));
}
template <typename T>
void spoil(T** output) {  // for objects, and for vkMapMemory
  spoil_value(output);
}
void spoil(uint32_t* output) { spoil_value(output); }
void spoil(size_t* output) { spoil_value(output); }
void spoil(int* output) { spoil_value(output); }

template <uint32_t number, typename... A>
void failed(A... arguments) {
  if constexpr (number == k_vkCreateComputePipelines || number == k_vkAllocateCommandBuffers) {
    auto* made = std::get<sizeof...(A) - 1>(std::make_tuple(arguments...));
    *made = VK_NULL_HANDLE;  // specified for these functions; each call creates one object
  } else {
    (spoil(arguments), ...);
  }
}

const char* hidden_extension() {
  static const char* const name = std::getenv("FAULTY_VULKAN_HIDES");
  return name;
}

// Called after a function has succeeded.
template <uint32_t number, typename... A>
void succeeded(A... arguments) {
  const auto all = std::make_tuple(arguments...);
#define MADE(function, type)                                                \
  if constexpr (number == k_##function) {                                   \
    return made(#type, std::get<0>(all), *std::get<sizeof...(A) - 1>(all)); \
  }
  MADE(vkCreateBuffer, VkBuffer)
  MADE(vkCreateCommandPool, VkCommandPool)
  MADE(vkCreateComputePipelines, VkPipeline)
  MADE(vkCreateDescriptorSetLayout, VkDescriptorSetLayout)
  MADE(vkCreateFence, VkFence)
  MADE(vkCreatePipelineCache, VkPipelineCache)
  MADE(vkCreatePipelineLayout, VkPipelineLayout)
  MADE(vkCreateQueryPool, VkQueryPool)
  MADE(vkCreateSemaphore, VkSemaphore)
  MADE(vkCreateShaderModule, VkShaderModule)
  MADE(vkAllocateMemory, VkDeviceMemory)
#undef MADE
  if constexpr (number == k_vkCreateInstance) made("VkInstance", VK_NULL_HANDLE, *std::get<2>(all));
  if constexpr (number == k_vkCreateDevice) made("VkDevice", VK_NULL_HANDLE, *std::get<3>(all));
  if constexpr (number == k_vkCreateDebugUtilsMessengerEXT) {
    made("VkDebugUtilsMessengerEXT", VK_NULL_HANDLE, *std::get<3>(all));
  }
  if constexpr (number == k_vkEnumerateDeviceExtensionProperties) {
    for (uint32_t i = 0; std::get<3>(all) != nullptr && i < *std::get<2>(all); ++i) {
      char* name = std::get<3>(all)[i].extensionName;
      if (hidden_extension() != nullptr && std::strcmp(name, hidden_extension()) == 0) name[0] = 'x';
    }
  }
  const std::lock_guard lock(mutex);
  if constexpr (number == k_vkAllocateCommandBuffers) {
    command_buffers[*std::get<2>(all)] = {std::get<1>(all)->commandPool, State::initial};
  }
  if constexpr (number == k_vkResetCommandPool) {
    for (auto& [buffer, commands] : command_buffers) {
      if (commands.pool == std::get<1>(all)) commands.state = State::initial;
    }
  }
  if constexpr (number == k_vkBeginCommandBuffer) command_buffers[std::get<0>(all)].state = State::recording;
  if constexpr (number == k_vkEndCommandBuffer) command_buffers[std::get<0>(all)].state = State::executable;
}

// Called before a function, whether it fails or not.
template <uint32_t number, typename... A>
void check(A... arguments) {
  const auto all = std::make_tuple(arguments...);
  if constexpr (number == k_vkQueueSubmit) {
    const std::lock_guard lock(mutex);
    for (uint32_t i = 0; i < std::get<1>(all); ++i) {
      const VkSubmitInfo& info = std::get<2>(all)[i];
      for (uint32_t j = 0; j < info.commandBufferCount; ++j) {
        if (command_buffers[info.pCommandBuffers[j]].state != State::executable) {
          forbid("a command buffer is submitted that is not executable");
        }
      }
    }
  }
  if constexpr (number == k_vkBeginCommandBuffer || number == k_vkEndCommandBuffer) {
    constexpr State wanted = number == k_vkBeginCommandBuffer ? State::initial : State::recording;
    const std::lock_guard lock(mutex);
    Commands& commands = command_buffers[std::get<0>(all)];
    if (commands.state != wanted) forbid(std::string(kTable[number].name) + " of a command buffer in the wrong state");
    if (number == k_vkEndCommandBuffer) commands.state = State::invalid;  // until it has succeeded
  }
}

template <uint32_t number, typename F>
struct Wrapper;
template <uint32_t number, typename... A>
struct Wrapper<number, VkResult(VKAPI_PTR*)(A...)> {
  using Pointer = VkResult(VKAPI_PTR*)(A...);
  static inline Real<Pointer>* real = nullptr;
  static VkResult VKAPI_CALL call(A... arguments) {
    check<number>(arguments...);
    const VkResult code = fault(number);
    if (code == VK_ERROR_DEVICE_LOST) lose();
    if (code < 0 || code == VK_TIMEOUT || code == VK_NOT_READY) {
      if (code < 0) failed<number>(arguments...);
      return code;
    }
    VkResult result;
    if constexpr (number == k_vkQueueSubmit || number == k_vkDeviceWaitIdle) {
      const std::lock_guard lock(queue_mutex);
      result = real->function.load()(arguments...);
    } else {
      result = real->function.load()(arguments...);
    }
    if (result >= 0) succeeded<number>(arguments...);
    return result == VK_SUCCESS ? code : result;
  }
};

#define END_CALL(type)                                                                                \
  void VKAPI_CALL end_##type(VkDevice device, Vk##type object, const VkAllocationCallbacks* host) {   \
    if (gone("Vk" #type, device, object)) real_vkDestroy##type.function.load()(device, object, host); \
  }
#define ENDS_BUT_POOLS(END) \
  END(Buffer)               \
  END(DescriptorSetLayout)  \
  END(Fence) END(Pipeline) END(PipelineCache) END(PipelineLayout) END(QueryPool) END(Semaphore) END(ShaderModule)
ENDS_BUT_POOLS(END_CALL)
void VKAPI_CALL end_CommandPool(VkDevice device, VkCommandPool pool, const VkAllocationCallbacks* host) {
  if (!gone("VkCommandPool", device, pool)) return;
  {
    const std::lock_guard lock(mutex);
    for (auto it = command_buffers.begin(); it != command_buffers.end();) {
      it = it->second.pool == pool ? command_buffers.erase(it) : std::next(it);
    }
  }
  real_vkDestroyCommandPool.function.load()(device, pool, host);
}
void VKAPI_CALL end_Memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* host) {
  if (gone("VkDeviceMemory", device, memory)) real_vkFreeMemory.function.load()(device, memory, host);
}
void VKAPI_CALL end_Device(VkDevice device, const VkAllocationCallbacks* host) {
  if (!gone("VkDevice", VK_NULL_HANDLE, device)) return;
  children_are_gone(device);
  real_vkDestroyDevice.function.load()(device, host);
}
void VKAPI_CALL end_Messenger(VkInstance instance, VkDebugUtilsMessengerEXT messenger,
                              const VkAllocationCallbacks* host) {
  if (!gone("VkDebugUtilsMessengerEXT", VK_NULL_HANDLE, messenger)) return;
  real_vkDestroyDebugUtilsMessengerEXT.function.load()(instance, messenger, host);
}
void VKAPI_CALL end_Instance(VkInstance instance, const VkAllocationCallbacks* host) {
  if (gone("VkInstance", VK_NULL_HANDLE, instance)) real_vkDestroyInstance.function.load()(instance, host);
}

// --- lookup of functions ------------------------------------------------------------------------------------

template <uint32_t number, typename F>
PFN_vkVoidFunction wrap(Real<F>& slot, PFN_vkVoidFunction found) {
  slot.function.store(reinterpret_cast<F>(found));
  Wrapper<number, F>::real = &slot;
  return reinterpret_cast<PFN_vkVoidFunction>(&Wrapper<number, F>::call);
}

template <typename F>
PFN_vkVoidFunction instead(Real<F>& slot, PFN_vkVoidFunction found, F by) {
  slot.function.store(reinterpret_cast<F>(found));
  return reinterpret_cast<PFN_vkVoidFunction>(by);
}

PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice device, const char* name);

PFN_vkVoidFunction in_front_of(const char* name, PFN_vkVoidFunction found) {
  if (found == nullptr) return nullptr;
  const std::string wanted = name;
  if (wanted == "vkDeviceWaitIdle") wait_idle.function.store(reinterpret_cast<PFN_vkDeviceWaitIdle>(found));
#define WRAP(name, ...) \
  if (wanted == #name) return wrap<k_##name>(real_##name, found);
  FUNCTIONS(WRAP)
#define END_WRAP(type) \
  if (wanted == "vkDestroy" #type) return instead(real_vkDestroy##type, found, &end_##type);
  ENDS(END_WRAP)
  if (wanted == "vkFreeMemory") return instead(real_vkFreeMemory, found, &end_Memory);
  if (wanted == "vkDestroyDevice") return instead(real_vkDestroyDevice, found, &end_Device);
  if (wanted == "vkDestroyInstance") return instead(real_vkDestroyInstance, found, &end_Instance);
  if (wanted == "vkDestroyDebugUtilsMessengerEXT") {
    return instead(real_vkDestroyDebugUtilsMessengerEXT, found, &end_Messenger);
  }
  if (wanted == "vkGetDeviceProcAddr") return instead(real_vkGetDeviceProcAddr, found, &get_device);
  return found;
}

PFN_vkVoidFunction VKAPI_CALL get_device(VkDevice device, const char* name) {
  return in_front_of(name, real_vkGetDeviceProcAddr.function.load()(device, name));
}

}  // namespace

uint32_t function_count() { return kFunctions; }
const Function& function(uint32_t number) { return kTable[number]; }

const char* code_name(int32_t code) {
#define CODE(name) \
  if (code == name) return #name;
  CODE(VK_ERROR_OUT_OF_HOST_MEMORY)
  CODE(VK_ERROR_OUT_OF_DEVICE_MEMORY)
  CODE(VK_ERROR_DEVICE_LOST)
  CODE(VK_ERROR_UNKNOWN)
  CODE(VK_ERROR_LAYER_NOT_PRESENT)
  CODE(VK_ERROR_EXTENSION_NOT_PRESENT)
  CODE(VK_ERROR_FEATURE_NOT_PRESENT)
  CODE(VK_ERROR_INCOMPATIBLE_DRIVER)
  CODE(VK_ERROR_INITIALIZATION_FAILED)
  CODE(VK_ERROR_INVALID_EXTERNAL_HANDLE)
  CODE(VK_ERROR_INVALID_SHADER_NV)
  CODE(VK_ERROR_MEMORY_MAP_FAILED)
  CODE(VK_ERROR_TOO_MANY_OBJECTS)
  CODE(VK_INCOMPLETE)
  CODE(VK_NOT_READY)
  CODE(VK_TIMEOUT)
  return "VK_SUCCESS";
}

void arm(uint32_t function, uint64_t n, int32_t code, bool on) {
  for (auto& count : counts) count.store(0);
  failures.store(0);
  failing_call.store(n), failing_code.store(code), failing_on.store(on);
  failing_function.store(n != 0 ? function : kFunctions);
}

uint64_t disarm() {
  failing_function.store(kFunctions);
  return failures.exchange(0);
}

uint64_t calls(uint32_t function) { return counts[function].load(); }

uint64_t live_objects() {
  const std::lock_guard lock(mutex);
  return live.size();
}

std::string live_by_type() {
  const std::lock_guard lock(mutex);
  std::map<std::string, int> types;
  for (const auto& [key, device] : live) ++types[key.first];
  std::string text;
  for (const auto& [type, count] : types) text += type + " " + std::to_string(count) + ", ";
  return text;
}

std::string forbidden() {
  const std::lock_guard lock(mutex);
  return std::exchange(first_forbidden, {});
}

}  // namespace tuff_test::faulty_vulkan

// The only function of a loader that is looked up by name.
extern "C" __attribute__((visibility("default"))) PFN_vkVoidFunction VKAPI_CALL
vkGetInstanceProcAddr(VkInstance instance, const char* name) {
  using namespace tuff_test::faulty_vulkan;  // NOLINT(google-build-using-namespace)
  static const auto real = [] {
    void* loader = dlopen(TUFF_REAL_VULKAN, RTLD_NOW | RTLD_LOCAL);
    return reinterpret_cast<PFN_vkGetInstanceProcAddr>(loader != nullptr ? dlsym(loader, "vkGetInstanceProcAddr")
                                                                         : nullptr);
  }();
  if (real == nullptr) return nullptr;
  if (std::strcmp(name, "vkGetInstanceProcAddr") == 0) {
    return reinterpret_cast<PFN_vkVoidFunction>(&vkGetInstanceProcAddr);
  }
  return in_front_of(name, real(instance, name));
}
