#include "runtime/vulkan/vulkan_backend.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "planning/backend_kernels.hpp"
#include "planning/kept_vector.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"
#include "platform/sensors.hpp"
#include "runtime/copy_text.hpp"
#include "runtime/tuning_file.hpp"
#include "runtime/vulkan/binding.hpp"
#include "runtime/vulkan/external_memory.hpp"
#include "runtime/vulkan/rates.hpp"

namespace tuff {

VulkanBackend::~VulkanBackend() {
  stream_.reset();
  streams_.reset();  // waits for the device
  event_queries_.reset();
  base_.reset();
  retired_.reset();
  kernels_.reset();
}

void VulkanBackend::init(const ContextOptions& options) {
  const std::lock_guard lock(mutex_);
  Instance& instance = Instance::get(options.validation);
  const PhysicalDevice& physical = instance.choose(options.device);
  validation_before_ = instance.validation_messages();
  device_ = std::make_shared<Device>(instance, physical);
  pool_ = std::make_shared<MemoryPool>(device_, std::make_shared<Usage>());
  kernels_ = std::make_unique<KernelCache>(device_);
  retired_ = std::make_shared<RetiredPipelines>(device_);
  event_queries_ = std::make_unique<EventQueries>(device_);
  base_ = std::make_unique<RecorderBase>(device_, pool_, *kernels_);
  streams_ = std::make_unique<Streams>(*base_);
  kernels_->evict_to(*retired_, streams_->timelines());
  choose_binding(streams_->main(), pool_, *device_, *kernels_);
  if (device_->native) device_->traits.hopper = streams_->main().holds(*backend_kernels.hopper);
  stream_ = std::make_unique<VulkanStream>(*this, streams_->main());
  processor_ = std::make_unique<Processor>(device_->traits.cpu && pool_->device_memory_mapped());
  const auto name = [](bool addresses) { return addresses ? "addresses" : "descriptors"; };
  log(TUFF_LOG_INFO, "opened {} ({}), {} queues{}, streams by {}, tiles by {}, packed tiles by {}",
      physical.properties.deviceName, physical.driver.driverInfo, device_->queues.size(),
      device_->copy_queue != VK_NULL_HANDLE ? " and one for copies" : "", name(device_->traits.streams_by_addresses),
      name(device_->traits.tiles_by_addresses), name(device_->traits.packed_by_addresses));
  load_user_tuning();
  tuff_device_properties properties{};
  describe(physical, properties);
  pool_->usage().publish(properties);
  if (options.prewarm) kernels_->prewarm();
}

TuningDevice VulkanBackend::tuning_device() const {
  tuff_device_properties properties{};
  describe(device_->physical, properties);
  return tuff::tuning_device(properties, TUFF_VERSION);
}

void VulkanBackend::load_user_tuning() {
  UserTuning user = load_tuning(tuning_device());
  if (!user.problem.empty()) log(TUFF_LOG_WARNING, "tuning: {} is ignored: {}", user.path.string(), user.problem);
  if (user.table.empty()) return;
  log(TUFF_LOG_INFO, "tuning: {} choices from {}", user.table.size(), user.path.string());
  tuning_ = std::make_unique<const TuningTable>(std::move(user.table));
  base_->tuning = tuning_.get();
}

void VulkanBackend::set_tuning(const char* json) {
  std::unique_ptr<const TuningTable> table;
  try {
    if (json != nullptr) table = std::make_unique<const TuningTable>(json, tuning_device());
  } catch (const TuningError& error) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "json: {}", error.what());
  }
  const std::lock_guard lock(mutex_);
  tuning_ = std::move(table);
  base_->tuning = tuning_.get();
  tuned_ = json != nullptr;
}

void VulkanBackend::capabilities(tuff_device_properties& properties) const {
  describe(device_->physical, properties);
  properties.binding = device_->traits.streams_by_addresses;
  const std::lock_guard lock(mutex_);
  properties.bandwidth_bytes_per_second = rates_.bytes_per_second;
  properties.f32_flops_per_second = rates_.f32_flops_per_second;
}

bool VulkanBackend::supports(std::string_view feature) const {
  if (feature == "addresses") return device_->traits.addresses;
  if (feature == "unified_memory") return pool_->device_memory_mapped();
  if (feature == "custom_kernels") return device_->physical.push_descriptors;
  if (feature == "ptx") return device_->traits.hopper;
  if (feature == "ptx_driver") return device_->physical.binary_import;
  if (feature == "ptx_queue") return device_->physical.compute_only;
  if (feature == "cpu_plugin") return processor_->available();
  if (feature == "robust_kernels") return device_->robustness != Device::Robustness::none;
  if (feature == "import_host") return device_->physical.host_import_alignment != 0;
  if (feature == "memory_fd") return device_->physical.memory_fd;
  if (feature == "memory_budget") return pool_->heap_budget().known();
  const DeviceTraits& traits = device_->traits;
  ElementTypes computes = {TUFF_F32, TUFF_C64}, stores = kAllTypes - kTypesOf1Byte - kTypesOf2Bytes;
  const auto add = [](ElementTypes& types, bool has, ElementTypes more) {
    if (has) types = types | more;
  };
  add(computes, traits.storage16, {TUFF_F16, TUFF_BF16});
  add(computes, traits.f64, {TUFF_F64, TUFF_C128});
  add(computes, traits.int64, {TUFF_I64, TUFF_U64});
  add(computes, traits.storage8, kFloat8Types | ElementTypes{TUFF_I8});
  add(stores, traits.storage16, kTypesOf2Bytes);
  add(stores, traits.storage8, kTypesOf1Byte);
  return computes_feature(feature, computes, stores);
}

void VulkanBackend::stats(tuff_stats& stats) const {
  const std::lock_guard lock(mutex_);
  const MemoryPool::Counters memory = pool_->counters();
  stats.bytes_in_use = memory.in_use;
  stats.bytes_reserved = memory.reserved;
  stats.bytes_peak = memory.peak;
  stats.allocations = allocations_;
  const StreamRecorder::Counters counters = streams_->counters();
  stats.dispatches = counters.dispatches;
  stats.submissions = counters.submissions;
  stats.barriers = counters.barriers;
  stats.bytes_uploaded = transferred_.uploaded;
  stats.bytes_downloaded = transferred_.downloaded;
  const KernelCache::Counters kernels = kernels_->counters();
  stats.shaders_compiled = kernels.compiled;
  stats.shader_cache_hits = kernels.disk_hits;
  stats.pipelines_created = kernels.pipelines;
  stats.kernels_prewarmed = kernels.prewarmed;
  stats.kernels_to_prewarm = kernels.to_prewarm;
  stats.vulkan_objects_created = device_->objects();
  stats.kernel_cache_hits = kernels.hits;
  stats.pipelines_live = kernels.live;
  stats.pipelines_evicted = kernels.evicted;
  stats.bytes_staged = transferred_.staged;
  stats.validation_messages = device_->instance.validation_messages() - validation_before_;
}

void VulkanBackend::usage(tuff_usage& usage) {
  const std::lock_guard lock(mutex_);
  if (!device_->lost()) streams_->poll_all();
  streams_->show_usage();
  pool_->usage().describe(usage);
}

void VulkanBackend::set_limits(const tuff_limits& limits) {
  pool_->set_limit(limits.memory_bytes);
  streams_->set_wait_limit(limits.wait_milliseconds);
  const std::lock_guard lock(mutex_);
  kernels_->set_limit(limits.pipelines);
}

void VulkanBackend::memory(tuff_memory_stats& memory) const {
  const std::lock_guard lock(mutex_);
  const MemoryPool::Counters pool = pool_->counters();
  const HeapBudget heap = pool_->heap_budget();
  memory.blocks = static_cast<uint32_t>(pool.blocks);
  memory.bytes_in_use = pool.in_use;
  memory.bytes_reserved = pool.reserved;
  memory.bytes_peak = pool.peak;
  memory.bytes_free = pool.free;
  memory.bytes_largest_free = pool.largest_free;
  memory.live_allocations = pool.live;
  memory.allocations = pool.allocations;
  memory.hits = pool.hits;
  memory.misses = pool.allocations - pool.hits;
  if (pool.free != 0)
    memory.fragmentation = 1 - static_cast<double>(pool.largest_free) / static_cast<double>(pool.free);
  memory.bytes_limit = pool.limit;
  memory.bytes_imported = pool.imported;
  memory.heap_bytes = device_->memory_bytes();
  memory.heap_budget_bytes = heap.budget;
  memory.heap_used_bytes = heap.used;
}

void VulkanBackend::trim() {
  const std::lock_guard lock(mutex_);
  streams_->release_scratch();
  streams_->release_written();
  pool_->trim();
}

void VulkanBackend::reset_peak() { pool_->reset_peak(); }

Buffer VulkanBackend::alloc(const AllocOptions& options) {
  return with_memory([&](auto&) {
    device_->require_alive();
    if (options.exportable && !device_->physical.memory_fd) fail_without_memory_fd(*device_);
    Buffer buffer;
    buffer.bytes = options.bytes;
    buffer.host_visible = options.host_visible;
    buffer.pinned = options.host_pinned;
    if (options.bytes != 0) {
      const bool elsewhere = options.host_visible && !pool_->maps(options.bytes);
      MemoryRequest request{
          .bytes = options.bytes, .limited = true, .exportable = options.exportable, .mapped = options.host_visible};
      if (options.host_pinned || elsewhere) request.kind = MemoryKind::readback;
      buffer.allocation = std::make_shared<VulkanAllocation>(pool_, request);
      const MemoryBlock& block = *locate(buffer, 0).block;
      if (!options.name.empty() && block.size_class == MemoryPool::kOwnBlock) {
        device_->set_name(VK_OBJECT_TYPE_BUFFER, block.buffer, options.name.c_str());
      }
      if (options.zeroed) {
        streams_->main().fill_words(buffer, 0, (options.bytes + 3) / 4 * 4, 0);
        streams_->main().filled(buffer);
      }
    }
    ++allocations_;
    return buffer;
  });
}

Buffer VulkanBackend::adopt(OwnBlock block, uint64_t offset, uint64_t bytes) {
  Buffer buffer;
  buffer.allocation = std::make_shared<VulkanAllocation>(pool_, std::move(block));
  buffer.offset = offset;
  buffer.bytes = bytes;
  buffer.host_visible = buffer.allocation->host() != nullptr;
  return buffer;
}

Buffer VulkanBackend::import_host(void* memory, uint64_t bytes, std::shared_ptr<void> owner) {
  const std::lock_guard lock(mutex_);
  device_->require_alive();
  auto block = tuff::import_host(*device_, memory, bytes);
  block->owner = std::move(owner);
  Buffer buffer = adopt(std::move(block), 0, bytes);
  buffer.pinned = buffer.host_visible;
  return buffer;
}

Buffer VulkanBackend::import_fd(const tuff_memory_fd& info) {
  const std::lock_guard lock(mutex_);
  device_->require_alive();
  return adopt(tuff::import_fd(*device_, info), info.offset, info.bytes);
}

void VulkanBackend::export_fd(const Buffer& buffer, tuff_memory_fd& info) {
  require(buffer.allocation != nullptr, "buffer holds 0 bytes, there is nothing to export");
  const DeviceLocation at = [&] {
    const std::lock_guard lock(mutex_);  // other memory may be moved
    const DeviceLocation found = locate(buffer, 0);
    require(found.block->exportable, "buffer was allocated without TUFF_ALLOC_EXPORTABLE");
    return found;
  }();
  // All work recorded for it, including its clearing, must be done before another process or API uses it.
  wait_for_everything(false);
  tuff::export_fd(*device_, *at.block, info);
  info.offset = at.offset;
  info.bytes = buffer.bytes;
}

void VulkanBackend::finish(std::unique_lock<Mutex>& lock, bool for_host) {
  KeptVector<Use> uses;
  streams_->submit_all(for_host, *uses);
  if (uses->empty()) return;
  lock.unlock();
  streams_->wait(*uses);
  lock.lock();
}

void VulkanBackend::wait_for_everything(bool for_host) {
  std::unique_lock lock(mutex_);
  device_->require_alive();
  finish(lock, for_host);
  retired_->completed(streams_->timelines());
  kernels_->save();
}

void* VulkanBackend::map(const Buffer& buffer) {
  wait_for_everything(true);
  return buffer.host<std::byte>();
}

void VulkanBackend::unmap(const Buffer&) {}  // the memory is coherent and stays mapped

void VulkanBackend::synchronize() { wait_for_everything(false); }

std::string VulkanBackend::variants(const Operation& operation) {
  const std::lock_guard lock(mutex_);
  operation.check();
  device_->require_alive();
  return operation.variants(streams_->main());
}

std::unique_ptr<ComputeStream> VulkanBackend::create_stream(const StreamOptions& options) {
  const std::lock_guard lock(mutex_);
  device_->require_alive();
  StreamRecorder& recorder = streams_->open(options.name);
  try {
    return std::make_unique<VulkanStream>(*this, recorder);
  } catch (...) {
    streams_->close(recorder);
    throw;
  }
}

std::unique_ptr<ComputeEvent> VulkanBackend::create_event(bool timing) {
  device_->require_alive();
  return std::make_unique<VulkanEvent>(*this, timing);
}

void VulkanBackend::profile_begin(Profile& profile) {
  wait_for_everything(false);
  const std::lock_guard lock(mutex_);
  if (rates_.bytes_per_second == 0) rates_ = measure_rates(streams_->main(), pool_);
  streams_->profile_begin(profile);
  profile.start();  // before another thread records
  profile.set_device(device_->physical.properties.deviceName, true, rates_);
}

void VulkanBackend::profile_collect() {
  wait_for_everything(false);
  const std::lock_guard lock(mutex_);
  streams_->profile_collect();
}

void VulkanBackend::profile_end() noexcept {
  const std::lock_guard lock(mutex_);
  streams_->profile_end();
}

// Compiles without the lock, because that takes long and others may record meanwhile.
std::unique_ptr<CustomKernel> VulkanBackend::create_kernel(const KernelOptions& asked) {
  device_->require_alive();
  if (asked.source.language == TUFF_KERNEL_PTX) return create_ptx_kernel(asked);
  KernelOptions options = asked;
  options.source.in_bounds = options.robust || options.untrusted;
  options.source.zero_shared = options.source.in_bounds && device_->zeroes_shared;
  options.source.proven = options.untrusted;
  const LoadedKernel loaded = load_custom(options, kernels_->disk());
  check_device(loaded.kernel.interface, options.robust, *device_);
  if (!loaded.from_disk && options.untrusted) try_driver(options, loaded.kernel, *device_);
  auto kernel = std::make_unique<VulkanKernel>(device_, retired_, kernels_->driver_cache(), options, loaded.kernel);
  if (!loaded.from_disk) store_custom(options, loaded.kernel, kernels_->disk());  // the driver has accepted it
  const std::lock_guard lock(mutex_);
  kernels_->note_pipeline(loaded.from_disk);
  streams_->poll_all();
  retired_->completed(streams_->timelines());
  return kernel;
}

// The driver keeps what it has compiled.
std::unique_ptr<CustomKernel> VulkanBackend::create_ptx_kernel(const KernelOptions& options) {
  const KernelInterface interface = reflect_ptx(options.source);
  check_device_for_ptx(interface, *device_);
  auto kernel = std::make_unique<VulkanKernel>(device_, retired_, options, interface);
  const std::lock_guard lock(mutex_);
  kernels_->note_pipeline(false);
  streams_->poll_all();
  retired_->completed(streams_->timelines());
  return kernel;
}

std::unique_ptr<ComputeBackend> make_vulkan_backend() { return std::make_unique<VulkanBackend>(); }

uint32_t vulkan_device_count() {
  try {
    return static_cast<uint32_t>(Instance::get(false).devices().size());
  } catch (const Error& error) {
    if (error.code() == TUFF_ERROR_NO_DEVICE) return 0;
    throw;
  }
}

void vulkan_device_info(uint32_t index, tuff_device_properties& properties) {
  describe(Instance::get(false).devices().at(index), properties);
}

void vulkan_device_sensors(uint32_t index, tuff_device_sensors& sensors) {
  const PhysicalDevice& physical = Instance::get(false).devices().at(index);
  const HeapBudget heap = heap_budget(physical);
  const platform::Sensors measured = platform::read_sensors(physical.pci_address);
  copy_text(sensors.pci_address, physical.pci_address);
  sensors.heap_bytes = heap_bytes(physical);
  sensors.heap_budget_bytes = heap.budget;
  sensors.heap_used_bytes = heap.used;
  sensors.temperature_celsius = measured.celsius;
  sensors.power_watts = measured.watts;
  sensors.core_hertz = measured.core_hertz;
  sensors.memory_hertz = measured.memory_hertz;
  sensors.busy = measured.busy;
}

std::string vulkan_device_refusals() {
  try {
    return fmt::format("{}", fmt::join(Instance::get(false).refusals(), "\n"));
  } catch (const Error& error) {
    if (error.code() == TUFF_ERROR_NO_DEVICE) return error.what();
    throw;
  }
}

}  // namespace tuff
