#include "runtime/vulkan/vulkan_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "kernels/memory/memory.hpp"
#include "runtime/features.hpp"
#include "runtime/log.hpp"
#include "runtime/status.hpp"
#include "runtime/tuning_file.hpp"
#include "runtime/vulkan/binding.hpp"
#include "runtime/vulkan/external_memory.hpp"
#include "runtime/vulkan/rates.hpp"

namespace tuff {

VulkanBackend::~VulkanBackend() {
  transfer_.reset();
  recorder_.reset();
  retired_.reset();
  kernels_.reset();
}

void VulkanBackend::init(const ContextOptions& options) {
  const std::lock_guard lock(mutex_);
  Instance& instance = Instance::get(options.validation);
  const PhysicalDevice& physical = instance.choose(options.device);
  validation_before_ = instance.validation_messages();
  device_ = std::make_shared<Device>(instance, physical);
  pool_ = std::make_shared<MemoryPool>(device_);
  kernels_ = std::make_unique<KernelCache>(device_);
  retired_ = std::make_shared<RetiredPipelines>(device_);
  auto recorder = std::make_unique<StreamRecorder>(device_, pool_, *kernels_);
  choose_binding(*recorder, pool_, *device_, *kernels_);
  recorder_ = std::move(recorder);
  transfer_ = std::make_unique<Transfer>(*recorder_, pool_);
  const auto name = [](bool addresses) { return addresses ? "addresses" : "descriptors"; };
  log(TUFF_LOG_INFO, "opened {} ({}), streams by {}, tiles by {}, packed tiles by {}", physical.properties.deviceName,
      physical.driver.driverInfo, name(device_->traits.streams_by_addresses), name(device_->traits.tiles_by_addresses),
      name(device_->traits.packed_by_addresses));
  load_user_tuning();
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
  recorder_->set_tuning(tuning_.get());
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
  recorder_->set_tuning(tuning_.get());
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
  if (feature == "robust_kernels") return device_->robustness != Device::Robustness::none;
  if (feature == "import_host") return device_->physical.host_import_alignment != 0;
  if (feature == "memory_fd") return device_->physical.memory_fd;
  if (feature == "memory_budget") return pool_->heap_budget().known();
  const DeviceTraits& traits = device_->traits;
  return computes(feature,
                  {.f16 = traits.storage16, .bf16 = traits.storage16, .f64 = traits.f64, .i8 = traits.storage8});
}

void VulkanBackend::stats(tuff_stats& stats) const {
  const std::lock_guard lock(mutex_);
  const MemoryPool::Counters memory = pool_->counters();
  stats.bytes_in_use = memory.in_use;
  stats.bytes_reserved = memory.reserved;
  stats.bytes_peak = memory.peak;
  stats.allocations = allocations_;
  stats.dispatches = recorder_->counters().dispatches;
  stats.submissions = recorder_->counters().submissions;
  stats.barriers = recorder_->counters().barriers;
  stats.bytes_uploaded = transfer_->uploaded();
  stats.bytes_downloaded = transfer_->downloaded();
  const KernelCache::Counters kernels = kernels_->counters();
  stats.shaders_compiled = kernels.compiled;
  stats.shader_cache_hits = kernels.disk_hits;
  stats.pipelines_created = kernels.pipelines;
  stats.kernels_prewarmed = kernels.prewarmed;
  stats.kernels_to_prewarm = kernels.to_prewarm;
  stats.vulkan_objects_created = device_->objects();
  stats.kernel_cache_hits = kernels_->counters().hits;
  stats.bytes_staged = transfer_->staged();
  stats.validation_messages = device_->instance.validation_messages() - validation_before_;
}

void VulkanBackend::set_limits(const tuff_limits& limits) {
  pool_->set_limit(limits.memory_bytes);
  recorder_->set_wait_limit(limits.wait_milliseconds);
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
  recorder_->release_scratch();
  pool_->trim();
}

void VulkanBackend::reset_peak() { pool_->reset_peak(); }

template <typename Attempt>
auto VulkanBackend::with_memory(Attempt&& attempt) {
  std::unique_lock lock(mutex_);
  try {
    return attempt(lock);
  } catch (const MemoryShortage&) {
    if (device_->lost()) throw;
  }
  std::optional<MemoryShortage> shortage;
  try {
    recorder_->release_scratch();
    recorder_->wait(recorder_->submit(false));
    return attempt(lock);
  } catch (const MemoryShortage& error) {
    shortage.emplace(error);
  }
  lock.unlock();
  if (!pressure_.relieve(*shortage)) throw MemoryShortage(*shortage);
  lock.lock();
  recorder_->wait(recorder_->submit(false));
  return attempt(lock);
}

Buffer VulkanBackend::alloc(const AllocOptions& options) {
  return with_memory([&](auto&) {
    device_->require_alive();
    if (options.exportable && !device_->physical.memory_fd) fail_without_memory_fd(*device_);
    Buffer buffer;
    buffer.bytes = options.bytes;
    buffer.host_visible = options.host_visible;
    if (options.bytes != 0) {
      const bool elsewhere = options.host_visible && !pool_->device_memory_mapped();
      MemoryRequest request{.bytes = options.bytes, .limited = true, .exportable = options.exportable};
      if (options.host_pinned || elsewhere) request.kind = MemoryKind::readback;
      buffer.allocation = std::make_shared<VulkanAllocation>(pool_, pool_->allocate(request));
      const MemoryBlock& block = *locate(buffer, 0).block;
      if (!options.name.empty() && block.size_class == MemoryPool::kOwnBlock) {
        device_->set_name(VK_OBJECT_TYPE_BUFFER, block.buffer, options.name.c_str());
      }
      if (options.zeroed) recorder_->fill_words(buffer, 0, (options.bytes + 3) / 4 * 4, 0);
    }
    ++allocations_;
    return buffer;
  });
}

Buffer VulkanBackend::adopt(std::unique_ptr<MemoryBlock> block, uint64_t offset, uint64_t bytes) {
  Buffer buffer;
  buffer.allocation = std::make_shared<VulkanAllocation>(pool_, pool_->adopt(std::move(block)));
  buffer.offset = offset;
  buffer.bytes = bytes;
  buffer.host_visible = buffer.allocation->host() != nullptr;
  return buffer;
}

Buffer VulkanBackend::import_host(void* memory, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  device_->require_alive();
  return adopt(tuff::import_host(*device_, memory, bytes), 0, bytes);
}

Buffer VulkanBackend::import_fd(const tuff_memory_fd& info) {
  const std::lock_guard lock(mutex_);
  device_->require_alive();
  return adopt(tuff::import_fd(*device_, info), info.offset, info.bytes);
}

void VulkanBackend::export_fd(const Buffer& buffer, tuff_memory_fd& info) {
  require(buffer.allocation != nullptr, "buffer holds 0 bytes, there is nothing to export");
  const DeviceLocation at = locate(buffer, 0);
  require(at.block->exportable, "buffer was made without TUFF_ALLOC_EXPORTABLE");
  // What is still to be done to it, its clearing even, comes before whatever another does.
  wait_for_everything(false);
  tuff::export_fd(*device_, *at.block, info);
  info.offset = at.offset;
  info.bytes = buffer.bytes;
}

void VulkanBackend::copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) {
  with_memory([&](auto& lock) {
    device_->require_alive();
    transfer_->upload(lock, dst, offset, src, bytes);
  });
}

void VulkanBackend::copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) {
  with_memory([&](auto& lock) {
    device_->require_alive();
    transfer_->download(lock, dst, src, offset, bytes);
    kernels_->save();
  });
}

void VulkanBackend::copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                              uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  device_->require_alive();
  if (!record_copy(*recorder_, dst, dst_offset, src, src_offset, bytes)) {
    recorder_->copy(dst, dst_offset, src, src_offset, bytes);
  }
}

// Up to three bytes that do not fill a word.
void VulkanBackend::fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern) {
  const MemoryRange staging = pool_->allocate(4, MemoryKind::readback);
  std::memcpy(staging.block->host + staging.offset, pattern, bytes);
  recorder_->copy_from_staging(dst, offset, staging, bytes);
  pool_->release(staging, recorder_->current_submission());
}

void VulkanBackend::fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern,
                         uint64_t pattern_bytes) {
  // The device fills words; the range may start and end within one.
  const uint64_t start = locate(dst, offset).offset;
  const uint64_t head = std::min(bytes, (4 - start % 4) % 4);
  const uint64_t middle = (bytes - head) / 4 * 4;
  const uint64_t tail = bytes - head - middle;
  const auto pattern_at = [&](uint64_t position) {
    std::array<std::byte, 16> text;
    for (uint64_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<const std::byte*>(pattern)[(position + i) % pattern_bytes];
    }
    return text;
  };
  with_memory([&](auto&) {
    device_->require_alive();
    recorder_->make_room();
    if (head != 0) fill_edge(dst, offset, head, pattern_at(0).data());
    if (middle != 0) {
      std::array<uint32_t, 4> words;
      std::memcpy(words.data(), pattern_at(head).data(), sizeof words);
      if (pattern_bytes <= 4) {
        recorder_->fill_words(dst, offset + head, middle, words[0]);
      } else {
        record_fill(*recorder_, dst, offset + head, middle, words);
      }
    }
    if (tail != 0) fill_edge(dst, offset + head + middle, tail, pattern_at(head + middle).data());
  });
}

void VulkanBackend::wait_for_everything(bool for_host) {
  std::unique_lock lock(mutex_);
  device_->require_alive();
  const uint64_t submission = recorder_->submit(for_host);
  lock.unlock();
  recorder_->wait(submission);
  retired_->completed(submission);
  lock.lock();
  kernels_->save();
}

void* VulkanBackend::map(const Buffer& buffer) {
  wait_for_everything(true);
  return buffer.host<std::byte>();
}

void VulkanBackend::unmap(const Buffer&) {}  // the memory is coherent and stays mapped

void VulkanBackend::synchronize() { wait_for_everything(false); }

template <typename Args>
void VulkanBackend::run(void (*check)(const Args&), void (*record)(Recorder&, const Args&), const Args& args) {
  // Under the lock, so that no operand is mapped between the check and the recording.
  with_memory([&](auto&) {
    check(args);
    device_->require_alive();
    recorder_->make_room();
    record(*recorder_, args);
  });
}

void VulkanBackend::gemm(const GemmArgs& args) { run(check_gemm, record_gemm, args); }
void VulkanBackend::batched_gemm(const GemmArgs& args) { run(check_gemm, record_gemm, args); }
std::string VulkanBackend::gemm_variants(const GemmArgs& args) {
  const std::lock_guard lock(mutex_);
  check_gemm(args);
  device_->require_alive();
  return tuff::gemm_variants(*recorder_, args);
}
void VulkanBackend::conv(const ConvArgs& args) { run(check_conv, record_conv, args); }
void VulkanBackend::attention(const AttentionArgs& args) { run(check_attention, record_attention, args); }
void VulkanBackend::reduce(const ReduceArgs& args) { run(check_reduce, record_reduce, args); }
void VulkanBackend::softmax(const SoftmaxArgs& args) { run(check_softmax, record_softmax, args); }
void VulkanBackend::unary(const UnaryArgs& args) { run(check_unary, record_unary, args); }
void VulkanBackend::binary(const BinaryArgs& args) { run(check_binary, record_binary, args); }
void VulkanBackend::norm(const NormArgs& args) { run(check_norm, record_norm, args); }
void VulkanBackend::batch_norm(const BatchNormArgs& args) { run(check_batch_norm, record_batch_norm, args); }
void VulkanBackend::permute(const PermuteArgs& args) { run(check_permute, record_permute, args); }
void VulkanBackend::cast(const CastArgs& args) { run(check_cast, record_cast, args); }
void VulkanBackend::slice(const SliceArgs& args) { run(check_slice, record_slice, args); }
void VulkanBackend::concat(const ConcatArgs& args) { run(check_concat, record_concat, args); }
void VulkanBackend::gather(const GatherArgs& args) { run(check_gather, record_gather, args); }
void VulkanBackend::pool(const PoolArgs& args) { run(check_pool, record_pool, args); }
void VulkanBackend::resize(const ResizeArgs& args) { run(check_resize, record_resize, args); }
void VulkanBackend::rope(const RopeArgs& args) { run(check_rope, record_rope, args); }

void VulkanBackend::profile_begin(Profile& profile) {
  wait_for_everything(false);
  const std::lock_guard lock(mutex_);
  if (rates_.bytes_per_second == 0) rates_ = measure_rates(*recorder_, pool_);
  recorder_->profile_begin(profile);
  profile.start();  // before another thread records
  profile.set_device(device_->physical.properties.deviceName, true, rates_);
}

void VulkanBackend::profile_collect() {
  wait_for_everything(false);
  const std::lock_guard lock(mutex_);
  recorder_->profile_collect();
}

void VulkanBackend::profile_end() noexcept {
  const std::lock_guard lock(mutex_);
  recorder_->profile_end();
}

// Compilers take their time: others may record meanwhile.
std::unique_ptr<CustomKernel> VulkanBackend::create_kernel(const KernelOptions& options) {
  device_->require_alive();
  const LoadedKernel loaded = load_custom(options, kernels_->disk());
  check_device(loaded.kernel.interface, options.robust, *device_);
  auto kernel = std::make_unique<VulkanKernel>(device_, retired_, kernels_->driver_cache(), options, loaded.kernel);
  const std::lock_guard lock(mutex_);
  kernels_->note_pipeline(loaded.from_disk);
  retired_->completed(recorder_->last_completed());
  return kernel;
}

void VulkanBackend::launch(CustomKernel& kernel, const LaunchArgs& args) {
  auto& own = static_cast<VulkanKernel&>(kernel);
  const std::lock_guard lock(mutex_);
  check_launch(own.interface(), args, own.launch_limits());
  device_->require_alive();
  recorder_->launch(own, args);
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

}  // namespace tuff
