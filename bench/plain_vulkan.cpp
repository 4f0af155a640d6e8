#include "bench/plain_vulkan.hpp"

#define VOLK_IMPLEMENTATION
#include <shaderc/shaderc.h>
#include <volk.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

namespace bench {
namespace {

// Four values for each invocation, like Tuff's kernel.
constexpr const char* kRelu = R"(#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 256) in;
#ifdef BY_SETS
layout(binding = 0, std430) buffer Values { vec4 at[]; } x;
layout(push_constant) uniform Push { uvec2 unused; uint blocks; };
#else
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Values { vec4 at[]; };
layout(push_constant) uniform Push { Values x; uint blocks; };
#endif
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < blocks) x.at[i] = max(x.at[i], vec4(0));
}
)";
constexpr uint64_t kGroup = 256, kBlock = 4;

struct Push {
  VkDeviceAddress x = 0;
  uint32_t blocks = 0, unused = 0;
};

void require(VkResult result, const char* what) {
  if (result != VK_SUCCESS) throw std::runtime_error(std::string(what) + " gave " + std::to_string(result));
}

template <class T>
T structure(VkStructureType type) {
  T made{};
  made.sType = type;
  return made;
}

std::vector<uint32_t> compile_relu(bool by_sets) {
  const auto compiler = shaderc_compiler_initialize();
  const auto options = shaderc_compile_options_initialize();
  shaderc_compile_options_set_target_env(options, shaderc_target_env_vulkan, shaderc_env_version_vulkan_1_2);
  shaderc_compile_options_set_optimization_level(options, shaderc_optimization_level_performance);
  if (by_sets) shaderc_compile_options_add_macro_definition(options, "BY_SETS", 7, "1", 1);
  const auto result = shaderc_compile_into_spv(compiler, kRelu, std::strlen(kRelu), shaderc_compute_shader,
                                               "plain_relu.comp", "main", options);
  const std::string errors = shaderc_result_get_error_message(result);
  std::vector<uint32_t> words(shaderc_result_get_length(result) / sizeof(uint32_t));
  std::memcpy(words.data(), shaderc_result_get_bytes(result), words.size() * sizeof(uint32_t));
  shaderc_result_release(result);
  shaderc_compile_options_release(options);
  shaderc_compiler_release(compiler);
  if (words.empty()) throw std::runtime_error("plain_relu.comp does not compile: " + errors);
  return words;
}

bool is_device(VkPhysicalDevice physical, const tuff::DeviceProperties& device) {
  VkPhysicalDeviceIDProperties id =
      structure<VkPhysicalDeviceIDProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  auto properties = structure<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  properties.pNext = &id;
  vkGetPhysicalDeviceProperties2(physical, &properties);
  return std::memcmp(id.deviceUUID, device.uuid, sizeof device.uuid) == 0;
}

}  // namespace

PlainVulkan::PlainVulkan(const tuff::DeviceProperties& device) : by_sets_(device.type == TUFF_DEVICE_CPU) {
  try {
    find(device);
    create_device();
    create_pipeline();
    create_commands();
  } catch (...) {
    destroy();
    throw;
  }
}

PlainVulkan::~PlainVulkan() { destroy(); }

void PlainVulkan::find(const tuff::DeviceProperties& device) {
  require(volkInitialize(), "volkInitialize");
  auto application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.apiVersion = VK_API_VERSION_1_2;
  auto info = structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;
  require(vkCreateInstance(&info, nullptr, &instance_), "vkCreateInstance");
  volkLoadInstanceOnly(instance_);
  uint32_t count = 0;
  require(vkEnumeratePhysicalDevices(instance_, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(count);
  require(vkEnumeratePhysicalDevices(instance_, &count, devices.data()), "vkEnumeratePhysicalDevices");
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](VkPhysicalDevice each) { return is_device(each, device); });
  if (found == devices.end()) throw std::runtime_error(std::string("no driver shows ") + device.name);
  physical_ = *found;
}

void PlainVulkan::create_device() {
  uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  while (family_ < count && (families[family_].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family_;

  auto features = structure<VkPhysicalDeviceVulkan12Features>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
  features.bufferDeviceAddress = VK_TRUE;
  const float priority = 1;
  auto queue = structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  require(vkCreateDevice(physical_, &info, nullptr, &device_), "vkCreateDevice");
  volkLoadDevice(device_);
  vkGetDeviceQueue(device_, family_, 0, &queue_);
}

void PlainVulkan::create_commands() {
  auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = family_;
  require(vkCreateCommandPool(device_, &pool, nullptr, &pool_), "vkCreateCommandPool");
  auto info = structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool_;
  info.commandBufferCount = static_cast<uint32_t>(commands_.size());
  require(vkAllocateCommandBuffers(device_, &info, commands_.data()), "vkAllocateCommandBuffers");
  auto fence = structure<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  fence.flags = VK_FENCE_CREATE_SIGNALED_BIT;
  for (VkFence& each : fences_) require(vkCreateFence(device_, &fence, nullptr, &each), "vkCreateFence");
}

void PlainVulkan::destroy() {
  if (device_ != VK_NULL_HANDLE) {
    vkDeviceWaitIdle(device_);
    free_buffers();
    for (VkFence fence : fences_) vkDestroyFence(device_, fence, nullptr);
    vkDestroyCommandPool(device_, pool_, nullptr);
    vkDestroyPipeline(device_, pipeline_, nullptr);
    vkDestroyPipelineLayout(device_, layout_, nullptr);
    vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
    vkDestroyDevice(device_, nullptr);
  }
  if (instance_ != VK_NULL_HANDLE) vkDestroyInstance(instance_, nullptr);
}

void PlainVulkan::create_pipeline() {
  const std::vector<uint32_t> words = compile_relu(by_sets_);
  auto code = structure<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  code.codeSize = words.size() * sizeof(uint32_t);
  code.pCode = words.data();
  VkShaderModule shader = VK_NULL_HANDLE;
  require(vkCreateShaderModule(device_, &code, nullptr, &shader), "vkCreateShaderModule");
  const VkDescriptorSetLayoutBinding binding{0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT,
                                             nullptr};
  auto set = structure<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  set.bindingCount = 1;
  set.pBindings = &binding;
  require(vkCreateDescriptorSetLayout(device_, &set, nullptr, &set_layout_), "vkCreateDescriptorSetLayout");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Push)};
  auto layout = structure<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  layout.setLayoutCount = by_sets_ ? 1 : 0;
  layout.pSetLayouts = &set_layout_;
  layout.pushConstantRangeCount = 1;
  layout.pPushConstantRanges = &range;
  require(vkCreatePipelineLayout(device_, &layout, nullptr, &layout_), "vkCreatePipelineLayout");
  auto info = structure<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader;
  info.stage.pName = "main";
  info.layout = layout_;
  const VkResult result = vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
  vkDestroyShaderModule(device_, shader, nullptr);
  require(result, "vkCreateComputePipelines");
}

void PlainVulkan::free_buffers() {
  vkDestroyDescriptorPool(device_, set_pool_, nullptr);
  set_pool_ = VK_NULL_HANDLE;
  sets_.clear();
  vkDestroyBuffer(device_, buffer_, nullptr);
  vkFreeMemory(device_, memory_, nullptr);
  buffer_ = VK_NULL_HANDLE;
  memory_ = VK_NULL_HANDLE;
}

void PlainVulkan::allocate(uint64_t values, uint64_t buffers) {
  finish();
  free_buffers();
  values_ = values;
  const uint64_t bytes = values * sizeof(float);
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = bytes * buffers;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  require(vkCreateBuffer(device_, &info, nullptr, &buffer_), "vkCreateBuffer");
  VkMemoryRequirements needs{};
  vkGetBufferMemoryRequirements(device_, buffer_, &needs);
  VkPhysicalDeviceMemoryProperties memory{};
  vkGetPhysicalDeviceMemoryProperties(physical_, &memory);
  auto allocation = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  auto flags = structure<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
  allocation.pNext = &flags;
  allocation.allocationSize = needs.size;
  while (allocation.memoryTypeIndex < memory.memoryTypeCount &&
         ((needs.memoryTypeBits >> allocation.memoryTypeIndex & 1) == 0 ||
          (memory.memoryTypes[allocation.memoryTypeIndex].propertyFlags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) == 0)) {
    ++allocation.memoryTypeIndex;
  }
  require(vkAllocateMemory(device_, &allocation, nullptr, &memory_), "vkAllocateMemory");
  require(vkBindBufferMemory(device_, buffer_, memory_, 0), "vkBindBufferMemory");
  auto where = structure<VkBufferDeviceAddressInfo>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO);
  where.buffer = buffer_;
  const VkDeviceAddress first = vkGetBufferDeviceAddress(device_, &where);
  addresses_.clear();
  for (uint64_t i = 0; i < buffers; ++i) addresses_.push_back(first + i * bytes);
  if (by_sets_) create_sets();
}

void PlainVulkan::create_sets() {
  const auto count = static_cast<uint32_t>(addresses_.size());
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, count};
  auto pool = structure<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  pool.maxSets = count;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  require(vkCreateDescriptorPool(device_, &pool, nullptr, &set_pool_), "vkCreateDescriptorPool");
  const std::vector<VkDescriptorSetLayout> layouts(count, set_layout_);
  auto info = structure<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  info.descriptorPool = set_pool_;
  info.descriptorSetCount = count;
  info.pSetLayouts = layouts.data();
  sets_.resize(count);
  require(vkAllocateDescriptorSets(device_, &info, sets_.data()), "vkAllocateDescriptorSets");
  for (uint32_t i = 0; i < count; ++i) {
    const VkDescriptorBufferInfo where{buffer_, addresses_[i] - addresses_[0], values_ * sizeof(float)};
    auto write = structure<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    write.dstSet = sets_[i];
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &where;
    vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
  }
}

void PlainVulkan::write(VkCommandBuffer commands, uint64_t calls, VkCommandBufferUsageFlags usage) {
  auto begin = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  begin.flags = usage;
  require(vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  auto barrier = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;
  const auto wait = [&] {
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1,
                         &barrier, 0, nullptr, 0, nullptr);
  };
  wait();
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
  Push push;
  push.blocks = static_cast<uint32_t>(values_ / kBlock);
  const auto groups = static_cast<uint32_t>((push.blocks + kGroup - 1) / kGroup);
  for (uint64_t i = 0; i < calls; ++i) {
    if (i > 0 && i % addresses_.size() == 0) wait();
    const uint64_t which = i % addresses_.size();
    push.x = addresses_[which];
    if (by_sets_) {
      vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &sets_[which], 0, nullptr);
    }
    vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
    vkCmdDispatch(commands, groups, 1, 1);
  }
  require(vkEndCommandBuffer(commands), "vkEndCommandBuffer");
}

void PlainVulkan::wait(VkFence fence) {
  require(vkWaitForFences(device_, 1, &fence, VK_TRUE, 60'000'000'000), "vkWaitForFences");
}

void PlainVulkan::submit(uint64_t turn) {
  require(vkResetFences(device_, 1, &fences_[turn]), "vkResetFences");
  auto info = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands_[turn];
  require(vkQueueSubmit(queue_, 1, &info, fences_[turn]), "vkQueueSubmit");
}

void PlainVulkan::eager(uint64_t calls) {
  const uint64_t turn = turn_++ % commands_.size();
  wait(fences_[turn]);
  write(commands_[turn], calls, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
  submit(turn);
}

void PlainVulkan::record(uint64_t calls) {
  finish();
  for (VkCommandBuffer commands : commands_) write(commands, calls, 0);
}

void PlainVulkan::replay() {
  const uint64_t turn = turn_++ % commands_.size();
  wait(fences_[turn]);
  submit(turn);
}

void PlainVulkan::finish() {
  for (VkFence fence : fences_) wait(fence);
}

}  // namespace bench
