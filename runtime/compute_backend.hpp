// A device: its memory, its streams and its properties. VulkanBackend is what users run, HostBackend is the reference.
// Operations are called on a stream (compute_stream.hpp).
//
// Every method may be called from any thread; a backend locks where it has to. Methods report errors by throwing
// tuff::Error, before anything is recorded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "planning/buffer.hpp"
#include "planning/status.hpp"
#include "runtime/compute_stream.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/memory_pressure.hpp"
#include "runtime/profile.hpp"
#include "tuff/tuff.h"

namespace tuff {

struct ContextOptions {
  std::string device;  // index or part of a name; empty: the best device
  bool validation = false;
  bool prewarm = false;  // compile in the background what earlier contexts used
};

struct StreamOptions {
  std::string name;
};

struct AllocOptions {
  uint64_t bytes = 0;
  bool host_visible = false;
  bool host_pinned = false;  // in host memory, host-visible
  bool exportable = false;   // export_fd is allowed
  bool zeroed = true;
  std::string name;
};

struct KernelOptions {
  CustomSource source;
  bool robust = false, untrusted = false;
  CompileLimits limits{};  // for untrusted source
};

// A buffer's memory, and how many handles refer to it.
struct OwnedMemory {
  std::shared_ptr<Allocation> allocation;
  long handles = 0;
};

// One step of moving live memory together.
struct CompactionStep {
  uint64_t max_bytes = 0;  // to move
  uint64_t bytes = 0;      // moved
  uint64_t buffers = 0;    // moved
  uint64_t fixed = 0;      // which have to stay where they are
  uint64_t waiting = 0;    // which could not be moved now: the device uses them, or they are beyond max_bytes
};

class ComputeBackend {
 public:
  virtual ~ComputeBackend() = default;

  // Whether the device has finished all of its work, so that the backend may be destroyed (see graveyard.hpp). With
  // `wait`, the device is given up to the wait limit to finish. No other call may be in progress.
  virtual bool at_rest(bool wait) noexcept {
    static_cast<void>(wait);
    return true;
  }

  virtual void init(const ContextOptions& options) = 0;
  virtual void capabilities(tuff_device_properties& properties) const = 0;  // all fields but struct_size
  virtual bool supports(std::string_view feature) const = 0;
  virtual void stats(tuff_stats& stats) const = 0;  // the fields that the backend knows
  virtual void usage(tuff_usage& usage) = 0;        // all fields but struct_size
  virtual void set_limits(const tuff_limits& limits) = 0;
  virtual void set_tuning(const char* json) = 0;  // null: the built-in choices

  virtual void memory(tuff_memory_stats& memory) const = 0;  // all fields but struct_size
  virtual void trim() = 0;
  virtual void reset_peak() = 0;
  // Moves some of this memory. The caller holds the lock that keeps handles from being made.
  virtual void compact(std::span<const OwnedMemory> memory, CompactionStep& step) = 0;
  virtual MemoryPressure& pressure() noexcept { return pressure_; }

  virtual Buffer alloc(const AllocOptions& options) = 0;
  // The caller's memory. It outlives the buffer and the work on it; or `owner`, which the buffer keeps alive, owns it.
  virtual Buffer import_host(void* memory, uint64_t bytes, std::shared_ptr<void> owner) = 0;
  virtual void export_fd(const Buffer& buffer, tuff_memory_fd& info) = 0;  // all fields but struct_size
  virtual Buffer import_fd(const tuff_memory_fd& info) = 0;
  virtual void* map(const Buffer& buffer) = 0;
  virtual void unmap(const Buffer& buffer) = 0;
  virtual std::string variants(const Operation& operation) = 0;  // JSON, for an operation that has variants

  virtual std::unique_ptr<CustomKernel> create_kernel(const KernelOptions& options) = 0;
  // Where operations are computed by functions of the host, in the process's memory: a kernel that is such a function.
  // Launches check their arguments as those of a kernel with this interface.
  using HostLaunch = std::function<void(const LaunchArgs& args)>;
  virtual bool computes_on_host() const { return false; }
  virtual std::unique_ptr<CustomKernel> create_host_kernel(KernelInterface interface, HostLaunch launch) {
    static_cast<void>(interface), static_cast<void>(launch);
    fail(TUFF_ERROR_INTERNAL, "this backend runs no host functions");
  }

  // The stream that the context's handle stands for. Owned by the backend.
  virtual ComputeStream& default_stream() = 0;
  virtual std::unique_ptr<ComputeStream> create_stream(const StreamOptions& options) = 0;
  virtual std::unique_ptr<ComputeEvent> create_event(bool timing) = 0;
  virtual void synchronize() = 0;  // all streams

  // Starts the profile; everything that can fail comes before that. From here on the device's work is added to the
  // profile. Calls are timed by ProfiledBackend.
  virtual void profile_begin(Profile& profile) = 0;
  virtual void profile_collect() = 0;  // waits for the work submitted so far and reads its times
  virtual void profile_end() noexcept = 0;

 protected:
  MemoryPressure pressure_;
};

std::unique_ptr<ComputeBackend> make_host_backend();
std::unique_ptr<ComputeBackend> make_vulkan_backend();

// The usable Vulkan devices, best first, or in the order of TUFF_VISIBLE_DEVICES.
uint32_t vulkan_device_count();
void vulkan_device_info(uint32_t index, tuff_device_properties& properties);
void vulkan_device_sensors(uint32_t index, tuff_device_sensors& sensors);  // all fields but struct_size
// The devices that were rejected, one per line, with the reasons.
std::string vulkan_device_refusals();

}  // namespace tuff
