// The Vulkan implementation of ComputeBackend: a device, its memory, its kernels and one stream.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/compute_backend.hpp"
#include "runtime/tuning_table.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"
#include "runtime/vulkan/stream_recorder.hpp"
#include "runtime/vulkan/transfer.hpp"

namespace tuff {

class VulkanBackend final : public ComputeBackend {
 public:
  ~VulkanBackend() override;

  std::string_view name() const noexcept override { return "vulkan"; }
  void init(const ContextOptions& options) override;
  bool at_rest(bool wait) noexcept override { return recorder_ == nullptr || recorder_->at_rest(wait); }
  bool is_initialized() const noexcept override { return recorder_ != nullptr; }
  void capabilities(tuff_device_properties& properties) const override;
  bool supports(std::string_view feature) const override;
  void stats(tuff_stats& stats) const override;
  void set_limits(const tuff_limits& limits) override;
  void set_tuning(const char* json) override;

  void memory(tuff_memory_stats& memory) const override;
  void trim() override;
  void reset_peak() override;
  Buffer alloc(const AllocOptions& options) override;
  Buffer import_host(void* memory, uint64_t bytes) override;
  void export_fd(const Buffer& buffer, tuff_memory_fd& info) override;
  Buffer import_fd(const tuff_memory_fd& info) override;
  void copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) override;
  void copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) override;
  void copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                 uint64_t bytes) override;
  void fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern, uint64_t pattern_bytes) override;
  void* map(const Buffer& buffer) override;
  void unmap(const Buffer& buffer) override;
  void synchronize() override;

  void gemm(const GemmArgs& args) override;
  void batched_gemm(const GemmArgs& args) override;
  std::string gemm_variants(const GemmArgs& args) override;
  void conv(const ConvArgs& args) override;
  void attention(const AttentionArgs& args) override;
  void reduce(const ReduceArgs& args) override;
  void softmax(const SoftmaxArgs& args) override;
  void unary(const UnaryArgs& args) override;
  void binary(const BinaryArgs& args) override;
  void norm(const NormArgs& args) override;
  void batch_norm(const BatchNormArgs& args) override;
  void permute(const PermuteArgs& args) override;
  void cast(const CastArgs& args) override;
  void slice(const SliceArgs& args) override;
  void concat(const ConcatArgs& args) override;
  void gather(const GatherArgs& args) override;
  void pool(const PoolArgs& args) override;
  void resize(const ResizeArgs& args) override;
  void rope(const RopeArgs& args) override;

  void profile_begin(Profile& profile) override;
  void profile_collect() override;
  void profile_end() noexcept override;
  std::unique_ptr<CustomKernel> create_kernel(const KernelOptions& options) override;
  void launch(CustomKernel& kernel, const LaunchArgs& args) override;

  // For tests that put a failing function into the device's table.
  Device& device() { return *device_; }

 private:
  // Checks the arguments, then records under the lock: a call that fails has no effect.
  template <typename Args>
  void run(void (*check)(const Args&), void (*record)(Recorder&, const Args&), const Args& args);
  // attempt(lock) under the lock; where memory is short once more when the device is done with what was freed, and once
  // more after the caller's callback.
  template <typename Attempt>
  auto with_memory(Attempt&& attempt);
  Buffer adopt(std::unique_ptr<MemoryBlock> block, uint64_t offset, uint64_t bytes);
  void fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern);
  void wait_for_everything(bool for_host);
  TuningDevice tuning_device() const;
  void load_user_tuning();

  mutable std::mutex mutex_;
  std::shared_ptr<Device> device_;
  std::shared_ptr<MemoryPool> pool_;
  std::unique_ptr<KernelCache> kernels_;
  std::unique_ptr<StreamRecorder> recorder_;
  std::unique_ptr<Transfer> transfer_;
  std::shared_ptr<RetiredPipelines> retired_;  // of custom kernels
  std::unique_ptr<const TuningTable> tuning_;  // null: the built-in choices
  DeviceRates rates_;                          // measured for the first profile
  uint64_t allocations_ = 0;
  uint64_t validation_before_ = 0;  // messages that were there before this context
};

}  // namespace tuff
