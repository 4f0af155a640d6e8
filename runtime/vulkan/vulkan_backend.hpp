// The Vulkan implementation of ComputeBackend: a device, its memory, its kernels and its streams.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "planning/tuning_table.hpp"
#include "platform/mutex.hpp"
#include "runtime/compute_backend.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"
#include "runtime/vulkan/event.hpp"
#include "runtime/vulkan/processor.hpp"
#include "runtime/vulkan/streams.hpp"
#include "runtime/vulkan/vulkan_stream.hpp"

namespace tuff {

class VulkanBackend final : public ComputeBackend {
 public:
  ~VulkanBackend() override;

  void init(const ContextOptions& options) override;
  bool at_rest(bool wait) noexcept override { return streams_ == nullptr || streams_->at_rest(wait); }
  void capabilities(tuff_device_properties& properties) const override;
  bool supports(std::string_view feature) const override;
  void stats(tuff_stats& stats) const override;
  void usage(tuff_usage& usage) override;
  void set_limits(const tuff_limits& limits) override;
  void set_tuning(const char* json) override;

  void memory(tuff_memory_stats& memory) const override;
  void trim() override;
  void reset_peak() override;
  void compact(std::span<const OwnedMemory> memory, CompactionStep& step) override;
  Buffer alloc(const AllocOptions& options) override;
  Buffer import_host(void* memory, uint64_t bytes, std::shared_ptr<void> owner) override;
  void export_fd(const Buffer& buffer, tuff_memory_fd& info) override;
  Buffer import_fd(const tuff_memory_fd& info) override;
  void* map(const Buffer& buffer) override;
  void unmap(const Buffer& buffer) override;
  std::string variants(const Operation& operation) override;
  std::unique_ptr<CustomKernel> create_kernel(const KernelOptions& options) override;
  ComputeStream& default_stream() override { return *stream_; }
  std::unique_ptr<ComputeStream> create_stream(const StreamOptions& options) override;
  std::unique_ptr<ComputeEvent> create_event(bool timing) override;
  void synchronize() override;

  void profile_begin(Profile& profile) override;
  void profile_collect() override;
  void profile_end() noexcept override;

  // For this context's streams, events and graphs, and for tests that replace functions in the device's table.
  Mutex& mutex() { return mutex_; }
  Device& device() { return *device_; }
  Streams& streams() { return *streams_; }
  EventQueries& event_queries() { return *event_queries_; }
  const std::shared_ptr<MemoryPool>& memory_pool() { return pool_; }
  RetiredPipelines& retired() { return *retired_; }
  KernelCache& kernels() { return *kernels_; }
  TransferCounters& transferred() { return transferred_; }
  // What computes such calls instead of the device's kernels; null: nothing does. The caller holds no lock.
  Processor* processor(const Operation& operation) {
    return !tuned_ && processor_->prepare(operation) ? processor_.get() : nullptr;
  }
  // For graphs with calls that it computes.
  PluginDevice* processor_device() const noexcept { return processor_->device(); }
  // Waits for all that streams have recorded so far. `lock` holds the context's lock, and is let go while it waits.
  void finish(std::unique_lock<Mutex>& lock, bool for_host);

  // Runs attempt(lock) under the lock. On a memory shortage it tries again once the device has finished with released
  // memory, and a last time after the caller's callback.
  template <typename Attempt>
  auto with_memory(Attempt&& attempt);

 private:
  std::unique_ptr<CustomKernel> create_ptx_kernel(const KernelOptions& options);
  Buffer adopt(OwnBlock block, uint64_t offset, uint64_t bytes);
  void wait_for_everything(bool for_host);
  TuningDevice tuning_device() const;
  void load_user_tuning();

  mutable Mutex mutex_{LockRank::backend};
  std::shared_ptr<Device> device_;
  std::shared_ptr<MemoryPool> pool_;
  std::unique_ptr<KernelCache> kernels_;
  std::unique_ptr<RecorderBase> base_;
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<EventQueries> event_queries_;
  std::unique_ptr<VulkanStream> stream_;  // the default one
  TransferCounters transferred_;
  std::shared_ptr<RetiredPipelines> retired_;  // of custom kernels, and those evicted from the cache
  std::unique_ptr<Processor> processor_;
  std::unique_ptr<const TuningTable> tuning_;  // null: the built-in choices
  std::atomic<bool> tuned_{false};             // by the caller, who chooses between kernels
  DeviceRates rates_;                          // measured for the first profile
  uint64_t allocations_ = 0;
  uint64_t validation_before_ = 0;  // messages from before this context
};

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
    streams_->drain();
    return attempt(lock);
  } catch (const MemoryShortage& error) {
    shortage.emplace(error);
  }
  lock.unlock();
  if (!pressure_.relieve(*shortage)) throw MemoryShortage(*shortage);
  lock.lock();
  streams_->drain();
  return attempt(lock);
}

}  // namespace tuff
