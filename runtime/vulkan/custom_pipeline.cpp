#include "runtime/vulkan/custom_pipeline.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "planning/log.hpp"

namespace tuff {
namespace {

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t most_module_bytes(bool untrusted) { return untrusted ? kMaxUntrustedModuleBytes : kMaxModuleBytes; }

CompiledKernel compile(const KernelOptions& options) {
  const std::string& name = options.source.name;
  log(TUFF_LOG_DEBUG, "compiling {}{}", name, options.untrusted ? ", in a process of its own" : "");
  CompiledKernel kernel =
      options.untrusted ? compile_isolated(options.source, options.limits) : compile_custom(options.source);
  // Each message is one line.
  for (std::string_view rest = kernel.warnings; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    log(TUFF_LOG_WARNING, "{}", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return kernel;
}

template <size_t size>
void copy_text(char (&out)[size], std::string_view text) {
  out[text.copy(out, size - 1)] = '\0';
}

}  // namespace

// An entry begins with what was asked for: hashes of sources may collide where someone wants them to.
LoadedKernel load_custom(const KernelOptions& options, const DiskCache& disk) {
  const std::string request = to_bytes(options.source);
  const CacheKey key = hash_text(request);
  LoadedKernel loaded;
  if (const auto stored = disk.load("kernel", key)) {
    std::string_view text = as_text(*stored);
    if (text.starts_with(request)) {
      text.remove_prefix(request.size());
      loaded.from_disk = from_bytes(text, loaded.kernel);
    }
  }
  if (!loaded.from_disk) loaded.kernel = compile(options);
  const uint64_t bytes = loaded.kernel.words.size() * sizeof(uint32_t);
  if (bytes > most_module_bytes(options.untrusted)) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} is {} bytes of SPIR-V, {} is the most", options.source.name, bytes,
         most_module_bytes(options.untrusted));
  }
  if (!loaded.from_disk) {
    const std::string entry = request + to_bytes(loaded.kernel);
    disk.store("kernel", key, std::as_bytes(std::span<const char>(entry)));
  }
  return loaded;
}

void RetiredPipelines::announce() {
  const std::lock_guard lock(mutex_);
  waiting_.reserve(waiting_.size() + live_ + 1);
  ++live_;
}

void RetiredPipelines::renounce() noexcept {
  const std::lock_guard lock(mutex_);
  --live_;
}

void RetiredPipelines::add(const Objects& objects, const LastUses& uses) noexcept {
  const std::lock_guard lock(mutex_);
  waiting_.push_back({objects, uses});  // announce() has made room
  --live_;
}

RetiredPipelines::~RetiredPipelines() {
  for (const Retired& retired : waiting_) destroy(retired.objects);
}

void RetiredPipelines::completed(const Timelines& timelines) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Retired& retired) {
    if (!retired.uses.done(timelines)) return false;
    destroy(retired.objects);
    return true;
  });
}

void RetiredPipelines::destroy(const Objects& objects) noexcept {
  const VolkDeviceTable& vk = device_->vk;
  vk.vkDestroyPipeline(device_->handle, objects.pipeline, nullptr);
  vk.vkDestroyPipelineLayout(device_->handle, objects.layout, nullptr);
  vk.vkDestroyDescriptorSetLayout(device_->handle, objects.set, nullptr);
  vk.vkDestroyCommandPool(device_->handle, objects.commands, nullptr);
}

VulkanKernel::VulkanKernel(std::shared_ptr<Device> device, std::shared_ptr<RetiredPipelines> retired,
                           VkPipelineCache cache, const KernelOptions& options, const CompiledKernel& compiled)
    : device_(std::move(device)), interface_(compiled.interface), robust_(options.robust) {
  RetiredPipelines::Room room(*retired);
  pipeline_ = std::make_shared<KernelPipeline>(options.source.name, std::move(retired));
  room.keep();
  make_layouts();
  make_pipeline(compiled.words, options.source.entry, cache);
}

void VulkanKernel::make_layouts() {
  std::array<VkDescriptorSetLayoutBinding, TUFF_KERNEL_MAX_BINDINGS> bindings{};
  uint32_t count = 0;
  for (uint32_t i = 0; i < interface_.bindings.size(); ++i) {
    if (!interface_.bindings[i].used) continue;
    bindings[count++] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  pipeline_->objects.set = device_->make_set_layout({bindings.data(), count});
  pipeline_->objects.layout =
      device_->make_pipeline_layout(pipeline_->objects.set, (interface_.push_bytes + 3) / 4 * 4);
}

void VulkanKernel::make_pipeline(const std::vector<uint32_t>& words, const std::string& entry, VkPipelineCache cache) {
  const VolkDeviceTable& vk = device_->vk;
  const VkShaderModule module = device_->make_shader_module(words);
  VkPipelineRobustnessCreateInfoEXT robustness{};
  robustness.sType = VK_STRUCTURE_TYPE_PIPELINE_ROBUSTNESS_CREATE_INFO_EXT;
  robustness.storageBuffers = VK_PIPELINE_ROBUSTNESS_BUFFER_BEHAVIOR_ROBUST_BUFFER_ACCESS_2_EXT;
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroup.requiredSubgroupSize = device_->traits.subgroup_size;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.pNext = robust_ && device_->robustness == Device::Robustness::by_pipeline ? &robustness : nullptr;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.pNext = device_->full_subgroups ? &subgroup : nullptr;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module;
  info.stage.pName = entry.c_str();
  info.layout = pipeline_->objects.layout;
  const VkResult result =
      vk.vkCreateComputePipelines(device_->handle, cache, 1, &info, nullptr, &pipeline_->objects.pipeline);
  vk.vkDestroyShaderModule(device_->handle, module, nullptr);
  device_->check(result, "vkCreateComputePipelines");
  device_->count_object();
}

LaunchLimits VulkanKernel::launch_limits() const {
  const DeviceTraits& traits = device_->traits;
  return {traits.max_range,
          device_->physical.properties.limits.minStorageBufferOffsetAlignment,
          {traits.max_groups[0], traits.max_groups[1], traits.max_groups[2]}};
}

void VulkanKernel::describe(tuff_kernel_properties& out) const {
  const LaunchLimits limits = launch_limits();
  out.binding_count = static_cast<uint32_t>(interface_.bindings.size());
  for (uint32_t i = 0; i < out.binding_count; ++i) {
    const KernelInterface::Binding& binding = interface_.bindings[i];
    out.used |= uint32_t{binding.used} << i;
    out.read |= uint32_t{binding.read} << i;
    out.written |= uint32_t{binding.written} << i;
    out.min_bytes[i] = binding.min_bytes;
  }
  out.push_bytes = interface_.push_bytes;
  std::copy_n(interface_.workgroup_size.begin(), 3, out.workgroup_size);
  out.shared_bytes = static_cast<uint32_t>(interface_.shared_bytes);
  out.subgroup_size = device_->traits.subgroup_size;
  std::copy_n(limits.max_groups.begin(), 3, out.max_groups);
  out.buffer_alignment = static_cast<uint32_t>(limits.alignment);
  out.robust = robust_ ? 1 : 0;
  out.max_buffer_bytes = limits.max_range;
  copy_text(out.name, name());
  copy_text(out.capabilities, capability_names(interface_));
}

}  // namespace tuff
