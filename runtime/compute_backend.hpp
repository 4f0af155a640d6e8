// What a device can be asked to do. VulkanBackend is the product, HostBackend the reference.
//
// Every method may be called from any thread; a backend serialises what needs it. Methods report errors
// by throwing tuff::Error, before anything is recorded.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kernels/attention/attention.hpp"
#include "kernels/conv/conv.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/norm/norm.hpp"
#include "kernels/pool/pool.hpp"
#include "kernels/position/rope.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/resize/resize.hpp"
#include "kernels/shape/shape.hpp"
#include "kernels/softmax/softmax.hpp"
#include "runtime/buffer.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/memory_pressure.hpp"
#include "runtime/profile.hpp"
#include "tuff/tuff.h"

namespace tuff {

struct ContextOptions {
  std::string device;  // index or part of a name; empty: the best
  bool validation = false;
  bool prewarm = false;  // compile, in the background, what earlier contexts have asked for
};

struct AllocOptions {
  uint64_t bytes = 0;
  bool host_visible = false;
  bool host_pinned = false;  // in the host's memory, host-visible
  bool exportable = false;   // export_fd is allowed
  bool zeroed = true;
  std::string name;
};

struct KernelOptions {
  CustomSource source;
  bool robust = false, untrusted = false;
  CompileLimits limits{};  // of untrusted source
};

// A kernel that a caller brought, made by a backend, which outlives it. It may go while its launches are running.
class CustomKernel {
 public:
  virtual ~CustomKernel() = default;
  CustomKernel() = default;
  CustomKernel(const CustomKernel&) = delete;
  CustomKernel& operator=(const CustomKernel&) = delete;

  virtual void describe(tuff_kernel_properties& properties) const = 0;  // all fields but struct_size
};

class ComputeBackend {
 public:
  virtual ~ComputeBackend() = default;

  // Whether the device is done with all that it was given, so that the backend may be destroyed: graveyard.hpp. With
  // `wait`, it has the wait limit's time to finish. No other call is under way.
  virtual bool at_rest(bool wait) noexcept {
    static_cast<void>(wait);
    return true;
  }

  virtual std::string_view name() const noexcept = 0;
  virtual void init(const ContextOptions& options) = 0;
  virtual bool is_initialized() const noexcept = 0;
  virtual void capabilities(tuff_device_properties& properties) const = 0;  // all fields but struct_size
  virtual bool supports(std::string_view feature) const = 0;
  virtual void stats(tuff_stats& stats) const = 0;  // the fields that the backend knows
  virtual void set_limits(const tuff_limits& limits) = 0;
  virtual void set_tuning(const char* json) = 0;  // null: the built-in choices

  virtual void memory(tuff_memory_stats& memory) const = 0;  // all fields but struct_size
  virtual void trim() = 0;
  virtual void reset_peak() = 0;
  virtual MemoryPressure& pressure() noexcept { return pressure_; }

  virtual Buffer alloc(const AllocOptions& options) = 0;
  // Memory of the caller's, which outlives the buffer and the work on it.
  virtual Buffer import_host(void* memory, uint64_t bytes) = 0;
  virtual void export_fd(const Buffer& buffer, tuff_memory_fd& info) = 0;  // all fields but struct_size
  virtual Buffer import_fd(const tuff_memory_fd& info) = 0;
  virtual void copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) = 0;
  virtual void copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) = 0;
  virtual void copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                         uint64_t bytes) = 0;
  // pattern holds pattern_bytes bytes: 1, 2, 4, 8 or 16; offset and bytes are multiples of it.
  virtual void fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern,
                    uint64_t pattern_bytes) = 0;
  virtual void* map(const Buffer& buffer) = 0;
  virtual void unmap(const Buffer& buffer) = 0;
  virtual void synchronize() = 0;

  virtual void gemm(const GemmArgs& args) = 0;
  virtual void batched_gemm(const GemmArgs& args) = 0;
  virtual std::string gemm_variants(const GemmArgs& args) = 0;
  virtual void conv(const ConvArgs& args) = 0;
  virtual void attention(const AttentionArgs& args) = 0;
  virtual void reduce(const ReduceArgs& args) = 0;
  virtual void softmax(const SoftmaxArgs& args) = 0;
  virtual void unary(const UnaryArgs& args) = 0;
  virtual void binary(const BinaryArgs& args) = 0;
  virtual void norm(const NormArgs& args) = 0;
  virtual void batch_norm(const BatchNormArgs& args) = 0;
  virtual void permute(const PermuteArgs& args) = 0;
  virtual void cast(const CastArgs& args) = 0;
  virtual void slice(const SliceArgs& args) = 0;
  virtual void concat(const ConcatArgs& args) = 0;
  virtual void gather(const GatherArgs& args) = 0;
  virtual void pool(const PoolArgs& args) = 0;
  virtual void resize(const ResizeArgs& args) = 0;
  virtual void rope(const RopeArgs& args) = 0;

  virtual std::unique_ptr<CustomKernel> create_kernel(const KernelOptions& options) = 0;
  virtual void launch(CustomKernel& kernel, const LaunchArgs& args) = 0;

  // Starts the profile, once nothing can fail any more. What the device does from here on goes into it; its calls are
  // another's matter (ProfiledBackend).
  virtual void profile_begin(Profile& profile) = 0;
  virtual void profile_collect() = 0;  // waits for what was given to the device so far, and reads its times
  virtual void profile_end() noexcept = 0;

 protected:
  MemoryPressure pressure_;
};

std::unique_ptr<ComputeBackend> make_host_backend();
std::unique_ptr<ComputeBackend> make_vulkan_backend();

// The usable Vulkan devices, best first.
uint32_t vulkan_device_count();
void vulkan_device_info(uint32_t index, tuff_device_properties& properties);

}  // namespace tuff
