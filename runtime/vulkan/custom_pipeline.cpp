#include "runtime/vulkan/custom_pipeline.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "planning/log.hpp"
#include "runtime/vulkan/custom_objects.hpp"
#include "runtime/vulkan/memory_pool.hpp"

namespace tuff {
namespace {

std::string_view as_text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t max_module_bytes(bool untrusted) { return untrusted ? kMaxUntrustedModuleBytes : kMaxModuleBytes; }

CompiledKernel compile(const KernelOptions& options) {
  const std::string& name = options.source.name;
  log(TUFF_LOG_DEBUG, "compiling {}{}", name, options.untrusted ? ", in a separate process" : "");
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

std::vector<uint32_t> used_bindings(const KernelInterface& interface) {
  std::vector<uint32_t> used;
  for (uint32_t i = 0; i < interface.bindings.size(); ++i) {
    if (interface.bindings[i].used) used.push_back(i);
  }
  return used;
}

}  // namespace

// An entry begins with its whole request, because somebody might construct sources with colliding hashes.
LoadedKernel load_custom(const KernelOptions& options, const DiskCache& disk) {
  const std::string request = to_bytes(options.source);
  const CacheKey key = hash_text(request);
  LoadedKernel loaded;
  if (const auto stored = disk.load_sealed("kernel", key)) {
    std::string_view text = as_text(*stored);
    if (text.starts_with(request)) {
      text.remove_prefix(request.size());
      loaded.from_disk = from_bytes(text, loaded.kernel);
    }
  }
  if (!loaded.from_disk) loaded.kernel = compile(options);
  const uint64_t bytes = loaded.kernel.words.size() * sizeof(uint32_t);
  if (bytes > max_module_bytes(options.untrusted)) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} is {} bytes of SPIR-V, at most {} are allowed", options.source.name, bytes,
         max_module_bytes(options.untrusted));
  }
  return loaded;
}

void store_custom(const KernelOptions& options, const CompiledKernel& kernel, const DiskCache& disk) {
  const std::string request = to_bytes(options.source);
  const std::string entry = request + to_bytes(kernel);
  disk.store("kernel", hash_text(request), std::as_bytes(std::span<const char>(entry)), DiskCache::Seal::sealed);
}

void try_driver(const KernelOptions& options, const CompiledKernel& kernel, const Device& device) {
  const PhysicalDevice& physical = device.physical;
  DriverTrial trial;
  trial.name = options.source.name;
  trial.entry = options.source.entry;
  trial.words = kernel.words;
  trial.bindings = used_bindings(kernel.interface);
  trial.push_bytes = kernel.interface.push_bytes;
  trial.robust = true;
  trial.cpu = device.traits.cpu;
  std::copy_n(physical.properties11.deviceUUID, trial.device.size(), trial.device.begin());
  std::copy_n(physical.properties.pipelineCacheUUID, trial.pipeline_cache.size(), trial.pipeline_cache.begin());
  try_driver(trial, options.limits);
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
  waiting_.push_back({objects, uses});  // announce() has reserved room
  --live_;
}

void RetiredPipelines::add(const Objects& objects, const Timelines& timelines) {
  std::vector<Use> uses = timelines.all();
  const std::lock_guard lock(mutex_);
  waiting_.reserve(waiting_.size() + live_ + 1);
  waiting_.push_back({objects, {}, std::move(uses)});
}

RetiredPipelines::~RetiredPipelines() {
  for (const Retired& retired : waiting_) destroy(retired.objects);
}

void RetiredPipelines::completed(const Timelines& timelines) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(waiting_, [&](const Retired& retired) {
    const bool done =
        std::all_of(retired.more.begin(), retired.more.end(), [&](Use use) { return timelines.done(use); });
    if (!done || !retired.uses.done(timelines)) return false;
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
  device_->destroy_native(objects.module, objects.function);
}

namespace {

std::shared_ptr<KernelPipeline> new_pipeline(const std::string& name, const KernelInterface& interface,
                                             std::shared_ptr<RetiredPipelines> retired) {
  RetiredPipelines::Room room(*retired);
  auto pipeline = std::make_shared<KernelPipeline>(name, interface, std::move(retired));
  room.keep();
  return pipeline;
}

}  // namespace

VulkanKernel::VulkanKernel(std::shared_ptr<Device> device, std::shared_ptr<RetiredPipelines> retired,
                           VkPipelineCache cache, const KernelOptions& options, const CompiledKernel& compiled)
    : device_(std::move(device)),
      pipeline_(new_pipeline(options.source.name, compiled.interface, std::move(retired))),
      robust_(options.robust) {
  RetiredPipelines::Objects& objects = pipeline_->objects;
  objects.set = make_custom_set(*device_, used_bindings(interface()));
  objects.layout = device_->make_pipeline_layout(objects.set, (interface().push_bytes + 3) / 4 * 4);
  objects.pipeline = make_custom_pipeline(*device_, objects.layout, compiled.words, options.source.entry,
                                          options.robust || options.untrusted, cache);
}

VulkanKernel::VulkanKernel(std::shared_ptr<Device> device, std::shared_ptr<RetiredPipelines> retired,
                           const KernelOptions& options, const KernelInterface& read)
    : device_(std::move(device)),
      pipeline_(new_pipeline(options.source.name, read, std::move(retired))),
      robust_(false) {
  const std::string& name = options.source.name;
  log(TUFF_LOG_DEBUG, "loading {}, {} bytes of PTX", name, options.source.text.size());
  const Device::Native made = device_->load_native(options.source.text, interface().entry.c_str());
  if (made.function == VK_NULL_HANDLE) {
    fail(TUFF_ERROR_COMPILE_FAILED, "the driver of {} does not accept the PTX of {}; ptxas prints the reason",
         device_->physical.properties.deviceName, name);
  }
  pipeline_->objects.module = made.module;
  pipeline_->objects.function = made.function;
}

static_assert(MemoryPool::kAlignment >= kMaxBufferAlignment);  // check_launch() sees offsets in allocations

LaunchLimits VulkanKernel::launch_limits() const {
  const DeviceTraits& traits = device_->traits;
  const uint64_t alignment = device_->physical.properties.limits.minStorageBufferOffsetAlignment;
  const bool by_descriptors = pipeline_->objects.function == VK_NULL_HANDLE;
  return {by_descriptors ? traits.max_range : max_block_bytes(device_->physical),
          std::max(alignment, interface().alignment),
          {traits.max_groups[0], traits.max_groups[1], traits.max_groups[2]}};
}

void VulkanKernel::describe(tuff_kernel_properties& out) const {
  const LaunchLimits limits = launch_limits();
  const KernelInterface& interface = this->interface();
  out.binding_count = static_cast<uint32_t>(interface.bindings.size());
  for (uint32_t i = 0; i < out.binding_count; ++i) {
    const KernelInterface::Binding& binding = interface.bindings[i];
    out.used |= uint32_t{binding.used} << i;
    out.read |= uint32_t{binding.read} << i;
    out.written |= uint32_t{binding.written} << i;
    out.min_bytes[i] = binding.min_bytes;
  }
  out.push_bytes = interface.push_bytes;
  std::copy_n(interface.workgroup_size.begin(), 3, out.workgroup_size);
  out.shared_bytes = static_cast<uint32_t>(interface.shared_bytes);
  out.subgroup_size = device_->traits.subgroup_size;
  std::copy_n(limits.max_groups.begin(), 3, out.max_groups);
  out.buffer_alignment = static_cast<uint32_t>(limits.alignment);
  out.robust = robust_ ? 1 : 0;
  out.max_buffer_bytes = limits.max_range;
  copy_text(out.name, name());
  copy_text(out.capabilities, capability_names(interface));
}

}  // namespace tuff
