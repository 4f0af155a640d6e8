// The reference backend: plain memory and the host_* function of each operation. One lock per backend keeps operations
// in call order; an operation is finished when its call returns. The device of a plug-in is the same, except that the
// plug-in is asked first to compute a call, and for memory.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "planning/status.hpp"
#include "platform/mutex.hpp"
#include "platform/platform.hpp"
#include "runtime/compute_backend.hpp"
#include "runtime/copy_text.hpp"
#include "runtime/host/host_graph.hpp"
#include "runtime/limits.hpp"
#include "runtime/plugin/plugin.hpp"
#include "runtime/profile.hpp"
#include "runtime/usage.hpp"

namespace tuff {
namespace {

constexpr uint64_t kAlignment = 256;  // as promised by Buffer::offset
// The alignment that devices require of imported memory, so that what works here works there.
constexpr uint64_t kImportAlignment = 4096;

// Shared with the allocations, which update it when they are freed. What is in use is counted twice: limits and
// statistics must not depend on the page that `usage` may be in, which the user's other processes can write to.
struct MemoryUse {
  std::atomic<uint64_t> in_use{0}, live{0}, imported{0};
  Usage usage;  // the context's; allocations are freed by any thread, so these two counters have several writers

  void take(uint64_t bytes) noexcept {
    in_use.fetch_add(bytes, std::memory_order_relaxed);
    usage.counters().bytes_in_use.fetch_add(bytes, std::memory_order_relaxed);
    usage.counters().bytes_reserved.fetch_add(bytes, std::memory_order_relaxed);
  }
  void give_back(uint64_t bytes) noexcept {
    in_use.fetch_sub(bytes, std::memory_order_relaxed);
    usage.counters().bytes_in_use.fetch_sub(bytes, std::memory_order_relaxed);
    usage.counters().bytes_reserved.fetch_sub(bytes, std::memory_order_relaxed);
  }
};

class HostAllocation final : public Allocation {
 public:
  HostAllocation(std::shared_ptr<MemoryUse> use, uint64_t bytes, bool zeroed) : use_(std::move(use)), bytes_(bytes) {
    // calloc uses fresh pages, which are zero already; with aligned_alloc they would have to be cleared here.
    const size_t total = static_cast<size_t>(bytes + kAlignment - 1);
    block_ = zeroed ? std::calloc(total, 1) : std::malloc(total);
    if (block_ == nullptr) fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "the process has no memory for {} bytes", bytes);
    void* aligned = block_;
    size_t space = total;
    data_ = static_cast<std::byte*>(std::align(kAlignment, static_cast<size_t>(bytes), aligned, space));
    use_->live.fetch_add(1, std::memory_order_relaxed);
  }
  ~HostAllocation() override {
    std::free(block_);
    use_->give_back(bytes_);
    use_->live.fetch_sub(1, std::memory_order_relaxed);
  }

  std::byte* host() const noexcept override { return data_; }

 private:
  std::shared_ptr<MemoryUse> use_;
  uint64_t bytes_;
  void* block_ = nullptr;
  std::byte* data_ = nullptr;
};

class PluginAllocation final : public Allocation {
 public:
  PluginAllocation(std::shared_ptr<MemoryUse> use, std::shared_ptr<PluginDevice> device, uint64_t bytes, bool zeroed)
      : use_(std::move(use)), device_(std::move(device)), bytes_(bytes), memory_(device_->allocate(bytes, zeroed)) {
    if (memory_ == nullptr) fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "the plug-in has no memory for {} bytes", bytes);
    use_->live.fetch_add(1, std::memory_order_relaxed);
  }
  ~PluginAllocation() override {
    device_->release(memory_, bytes_);
    use_->give_back(bytes_);
    use_->live.fetch_sub(1, std::memory_order_relaxed);
  }
  std::byte* host() const noexcept override { return memory_; }

 private:
  std::shared_ptr<MemoryUse> use_;
  std::shared_ptr<PluginDevice> device_;
  uint64_t bytes_;
  std::byte* memory_;
};

// The caller's memory.
class ImportedAllocation final : public Allocation {
 public:
  ImportedAllocation(std::shared_ptr<MemoryUse> use, void* memory, uint64_t bytes, std::shared_ptr<void> owner)
      : use_(std::move(use)), owner_(std::move(owner)), bytes_(bytes), memory_(static_cast<std::byte*>(memory)) {
    use_->imported.fetch_add(bytes_, std::memory_order_relaxed);
  }
  ~ImportedAllocation() override { use_->imported.fetch_sub(bytes_, std::memory_order_relaxed); }
  std::byte* host() const noexcept override { return memory_; }

 private:
  std::shared_ptr<MemoryUse> use_;
  std::shared_ptr<void> owner_;  // null: the memory is the caller's
  uint64_t bytes_;
  std::byte* memory_;
};

[[noreturn]] void fail_without_memory_fd() {
  fail(TUFF_ERROR_UNSUPPORTED,
       "the host backend's memory is ordinary memory of the process, which has no file descriptor");
}

[[noreturn]] void fail_without_variants() {
  fail(TUFF_ERROR_UNSUPPORTED,
       "the host backend has a single implementation of each operation: no variants, nothing to tune");
}

[[noreturn]] void fail_without_kernels() {
  fail(TUFF_ERROR_UNSUPPORTED, "the host backend does not run custom kernels: they need a Vulkan device");
}

// Shared by a backend's streams. The lock keeps operations in call order.
struct HostWork {
  explicit HostWork(UsageCounters& counters) : usage(counters) {}

  mutable Mutex mutex{LockRank::backend};
  UsageCounters& usage;
  uint64_t dispatches = 0, bytes_uploaded = 0, bytes_downloaded = 0;
  std::atomic<uint32_t> streams{0};      // alive
  std::shared_ptr<PluginDevice> device;  // null: the reference computes everything
};

class HostKernel final : public CustomKernel {
 public:
  HostKernel(KernelInterface interface, ComputeBackend::HostLaunch launch)
      : function_(
            std::make_shared<const HostFunctionKernel>(HostFunctionKernel{std::move(interface), std::move(launch)})) {}

  void describe(tuff_kernel_properties& properties) const override {
    const KernelInterface& interface = function_->interface;
    properties.binding_count = static_cast<uint32_t>(interface.bindings.size());
    properties.push_bytes = interface.push_bytes;
    std::copy_n(interface.workgroup_size.begin(), 3, properties.workgroup_size);
    properties.buffer_alignment = 1;
  }
  const std::shared_ptr<const HostFunctionKernel>& function() const { return function_; }

 private:
  std::shared_ptr<const HostFunctionKernel> function_;
};

// Calls are finished when they return, so an event has happened as soon as it is recorded.
class HostEvent final : public ComputeEvent {
 public:
  explicit HostEvent(bool timing) : timing_(timing) {}

  bool query() override { return true; }
  void wait() override {}
  double elapsed(ComputeEvent& end) override {
    const HostTime from = time("start"), to = static_cast<HostEvent&>(end).time("end");
    return static_cast<double>(to - from) * 1e-6;
  }
  void record() { time_.store(host_now()); }

 private:
  HostTime time(const char* name) const {
    require(timing_, "{} was created with TUFF_EVENT_NO_TIMING", name);
    const HostTime time = time_.load();
    require(time != kNever, "{} was never recorded", name);
    return time;
  }

  static constexpr HostTime kNever = std::numeric_limits<HostTime>::min();
  const bool timing_;
  std::atomic<HostTime> time_{kNever};
};

// While it captures, calls are checked and kept instead of computed.
class HostStream final : public ComputeStream {
 public:
  explicit HostStream(HostWork& work) : work_(work) { ++work_.streams; }
  ~HostStream() override { --work_.streams; }

  void synchronize() override {
    const std::lock_guard lock(work_.mutex);
    refuse_in_capture(in_capture::kSynchronize);
  }
  void record(ComputeEvent& event) override {
    const std::lock_guard lock(work_.mutex);
    refuse_in_capture(in_capture::kEvent);
    static_cast<HostEvent&>(event).record();
  }
  // What the event marks is finished.
  void wait(ComputeEvent&) override {
    const std::lock_guard lock(work_.mutex);
    refuse_in_capture(in_capture::kEvent);
  }

  bool capturing() const override {
    const std::lock_guard lock(work_.mutex);
    return capture_.has_value();
  }
  void begin_graph() override {
    const std::lock_guard lock(work_.mutex);
    require(!capture_, in_capture::kBegin);
    capture_.emplace();
  }
  std::unique_ptr<ComputeGraph> end_graph() override {
    const std::lock_guard lock(work_.mutex);
    require(capture_.has_value(), in_capture::kNotBegun);
    auto graph = std::make_unique<HostGraph>(work_.mutex, *capture_);
    capture_.reset();
    return graph;
  }
  void launch(ComputeGraph& graph) override {
    auto& own = static_cast<HostGraph&>(graph);
    const std::lock_guard lock(work_.mutex);
    refuse_in_capture(in_capture::kLaunch);
    own.check_launch();
    // A plug-in's calls may be so much faster that keeping what they write would take as long.
    const bool whole = work_.device == nullptr;
    if (whole) own.save();
    try {
      for (const auto& command : own.commands()) command->run(work_.device.get());
    } catch (...) {
      if (whole) own.restore();
      throw;
    }
    own.forget();
    for (const auto& command : own.commands()) {
      if (command->dispatched()) count_dispatch();
    }
    count_call();
  }

  void copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) override {
    const std::lock_guard lock(work_.mutex);
    refuse_in_capture(in_capture::kUpload);
    std::memcpy(dst.host<std::byte>() + offset, src, bytes);
    work_.bytes_uploaded += bytes;
    add_usage(work_.usage.uploaded, bytes);
    count_call();
  }

  void copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) override {
    const std::lock_guard lock(work_.mutex);
    refuse_in_capture(in_capture::kDownload);
    std::memcpy(dst, src.host<std::byte>() + offset, bytes);
    work_.bytes_downloaded += bytes;
    add_usage(work_.usage.downloaded, bytes);
    count_call();
  }

  void copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                 uint64_t bytes) override {
    copy(dst, dst_offset, src, src_offset, bytes, false);
  }
  void copy_async(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                  uint64_t bytes) override {
    copy(dst, dst_offset, src, src_offset, bytes, true);
  }

  void fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern, uint64_t pattern_bytes) override {
    const std::lock_guard lock(work_.mutex);
    if (capture_) {
      capture_->push_back(captured_fill(dst, offset, bytes, pattern, pattern_bytes));
      return;
    }
    host_fill(dst.host<std::byte>() + offset, bytes, pattern, pattern_bytes);
    count_call();
  }

  // The check is made under the lock, so that an operand cannot be mapped between its check and its use.
  void run(const Operation& operation) override {
    const std::lock_guard lock(work_.mutex);
    operation.check();
    if (capture_) {
      capture_->push_back(captured_operation(operation));
      return;
    }
    if (work_.device == nullptr || !work_.device->compute(operation)) operation.compute();
    count_dispatch();
    count_call();
  }
  void launch(CustomKernel& kernel, const LaunchArgs& args) override {
    const std::shared_ptr<const HostFunctionKernel>& function = static_cast<HostKernel&>(kernel).function();
    const std::lock_guard lock(work_.mutex);
    function->check(args);
    if (capture_) {
      capture_->push_back(captured_launch(function, args));
      return;
    }
    function->launch(args);
    count_dispatch();
    count_call();
  }

 private:
  void copy(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes,
            bool pinned) {
    const std::lock_guard lock(work_.mutex);
    if (capture_) {
      capture_->push_back(captured_copy(dst, dst_offset, src, src_offset, bytes, pinned));
      return;
    }
    std::memcpy(dst.host<std::byte>() + dst_offset, src.host<std::byte>() + src_offset, bytes);
    count_call();
  }
  void refuse_in_capture(const char* why) const {
    if (capture_) fail(TUFF_ERROR_UNSUPPORTED, "stream is capturing: {}", why);
  }
  void count_call() noexcept { add_usage(work_.usage.calls, uint64_t{1}); }
  void count_dispatch() noexcept {
    ++work_.dispatches;
    add_usage(work_.usage.dispatches, uint64_t{1});
  }

  HostWork& work_;
  std::optional<HostCommands> capture_;
};

uint64_t largest_allocation(uint64_t physical_bytes) {
  const uint64_t addressable = std::numeric_limits<size_t>::max() / 2;
  return physical_bytes == 0 ? addressable : std::min(physical_bytes, addressable);
}

// Replaces what a plug-in knows of its device.
void describe_plugin(const Plugin& plugin, tuff_device_properties& properties) {
  const tuff_device_properties& device = plugin.device();
  copy_text(properties.name, device.name);
  copy_text(properties.vendor, device.vendor);
  copy_text(properties.driver, device.driver);
  copy_text(properties.backend, plugin.name());
  properties.driver_version = device.driver_version;
  if (device.memory_bytes != 0) properties.memory_bytes = device.memory_bytes;
  properties.compute_units = device.compute_units;
  properties.bandwidth_bytes_per_second = device.bandwidth_bytes_per_second;
  properties.f32_flops_per_second = device.f32_flops_per_second;
}

// All fields but struct_size. plugin: null for the reference.
void describe(const Plugin* plugin, uint64_t physical_bytes, tuff_device_properties& properties) {
  const uint32_t struct_size = properties.struct_size;
  properties = {};
  properties.struct_size = struct_size;
  properties.type = TUFF_DEVICE_HOST;
  copy_text(properties.name, "Host processor");
  copy_text(properties.vendor, "Tuff");
  copy_text(properties.driver, "reference, double accumulators");
  copy_text(properties.backend, "host");
  properties.driver_version = TUFF_VERSION;
  properties.memory_bytes = physical_bytes;
  properties.max_allocation_bytes = largest_allocation(physical_bytes);
  properties.max_storage_range_bytes = largest_allocation(physical_bytes);
  properties.subgroup_size = properties.subgroup_size_min = properties.subgroup_size_max = 1;
  properties.host_import_alignment = kImportAlignment;
  properties.supports_f16 = properties.supports_bf16 = properties.supports_f64 = properties.supports_int8 = 1;
  properties.unified_memory = 1;
  if (plugin != nullptr) describe_plugin(*plugin, properties);
}

class HostBackend final : public ComputeBackend {
 public:
  explicit HostBackend(const Plugin* plugin) : plugin_(plugin) {}

  void init(const ContextOptions&) override {
    physical_bytes_ = platform::physical_memory_bytes();
    if (plugin_ != nullptr) work_.device = std::make_shared<PluginDevice>(*plugin_);
    tuff_device_properties properties{};
    capabilities(properties);
    use_->usage.publish(properties);
  }

  void capabilities(tuff_device_properties& properties) const override {
    tuff::describe(plugin_, physical_bytes_, properties);
  }

  bool supports(std::string_view feature) const override {
    return feature == "unified_memory" || feature == "import_host" ||
           computes_feature(feature, kFactorTypes | kComplexTypes | ElementTypes{TUFF_I64, TUFF_U64}, kAllTypes);
  }

  void stats(tuff_stats& stats) const override {
    const std::lock_guard lock(work_.mutex);
    stats.bytes_in_use = use_->in_use.load(std::memory_order_relaxed);
    stats.bytes_reserved = stats.bytes_in_use;
    stats.bytes_peak = bytes_peak_;
    stats.allocations = allocations_;
    stats.dispatches = work_.dispatches;
    stats.bytes_uploaded = work_.bytes_uploaded;
    stats.bytes_downloaded = work_.bytes_downloaded;
  }

  void usage(tuff_usage& usage) override {
    const std::lock_guard lock(work_.mutex);
    use_->usage.describe(usage);
  }

  void set_limits(const tuff_limits& limits) override {
    const std::lock_guard lock(work_.mutex);
    memory_limit_ = limits.memory_bytes;
    use_->usage.counters().bytes_limit.store(memory_limit_, std::memory_order_relaxed);
  }

  void set_tuning(const char* json) override {
    if (json != nullptr) fail_without_variants();
  }

  // Nothing is pooled: every buffer is allocated from and returned to the process.
  void memory(tuff_memory_stats& memory) const override {
    const std::lock_guard lock(work_.mutex);
    memory.live_allocations = use_->live.load(std::memory_order_relaxed);
    memory.blocks = static_cast<uint32_t>(memory.live_allocations);
    memory.bytes_in_use = memory.bytes_reserved = use_->in_use.load(std::memory_order_relaxed);
    memory.bytes_peak = bytes_peak_;
    memory.allocations = memory.misses = memory_allocations_;
    memory.bytes_limit = memory_limit_;
    memory.bytes_imported = use_->imported.load(std::memory_order_relaxed);
    memory.heap_bytes = physical_bytes_;
  }

  void trim() override {}
  // Each buffer is memory of the process's own.
  void compact(std::span<const OwnedMemory> memory, CompactionStep& step) override { step.fixed = memory.size(); }

  void reset_peak() override {
    const std::lock_guard lock(work_.mutex);
    bytes_peak_ = use_->in_use.load(std::memory_order_relaxed);
    show_peak();
  }

  Buffer import_host(void* memory, uint64_t bytes, std::shared_ptr<void> owner) override {
    require(reinterpret_cast<uintptr_t>(memory) % kImportAlignment == 0, "memory is at {}, needs a multiple of {}",
            fmt::ptr(memory), kImportAlignment);
    require(bytes != 0 && bytes % kImportAlignment == 0, "bytes is {}, needs a multiple of {} above 0", bytes,
            kImportAlignment);
    return {std::make_shared<ImportedAllocation>(use_, memory, bytes, std::move(owner)), 0, bytes, true, true};
  }

  void export_fd(const Buffer&, tuff_memory_fd&) override { fail_without_memory_fd(); }
  Buffer import_fd(const tuff_memory_fd&) override { fail_without_memory_fd(); }

  Buffer alloc(const AllocOptions& options) override {
    if (options.exportable) fail_without_memory_fd();
    try {
      return alloc_once(options);
    } catch (const MemoryShortage& shortage) {
      if (!pressure_.relieve(shortage)) throw;
    }
    return alloc_once(options);
  }

  void* map(const Buffer& buffer) override {
    const std::lock_guard lock(work_.mutex);  // waits for another thread's operation
    return buffer.host<std::byte>();
  }

  void unmap(const Buffer&) override {}

  void synchronize() override { const std::lock_guard lock(work_.mutex); }

  std::string variants(const Operation&) override { fail_without_variants(); }
  std::unique_ptr<CustomKernel> create_kernel(const KernelOptions&) override { fail_without_kernels(); }
  bool computes_on_host() const override { return true; }
  std::unique_ptr<CustomKernel> create_host_kernel(KernelInterface interface, HostLaunch launch) override {
    return std::make_unique<HostKernel>(std::move(interface), std::move(launch));
  }

  ComputeStream& default_stream() override { return stream_; }
  std::unique_ptr<ComputeStream> create_stream(const StreamOptions&) override {
    const std::lock_guard lock(work_.mutex);
    if (work_.streams >= kMaxStreams) {
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "the context has {} streams, which is the maximum", kMaxStreams);
    }
    return std::make_unique<HostStream>(work_);
  }
  std::unique_ptr<ComputeEvent> create_event(bool timing) override { return std::make_unique<HostEvent>(timing); }

  // Only calls are timed.
  void profile_begin(Profile& profile) override {
    profile.start();
    profile.set_device(plugin_ != nullptr ? plugin_->device().name : "Host processor", false, {});
  }
  void profile_collect() override {}
  void profile_end() noexcept override {}

 private:
  Buffer alloc_once(const AllocOptions& options) {
    const std::lock_guard lock(work_.mutex);
    Buffer buffer{nullptr, 0, options.bytes, options.host_visible, options.host_pinned};
    if (options.bytes != 0) {
      buffer.allocation = allocate(options);
      ++memory_allocations_;
    }
    ++allocations_;
    return buffer;
  }

  std::shared_ptr<Allocation> allocate(const AllocOptions& options) {
    const uint64_t in_use = use_->in_use.load(std::memory_order_relaxed);
    if (options.bytes > max_allocation_bytes()) {
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "bytes is {}, the largest allocation is {}", options.bytes,
           max_allocation_bytes());
    }
    if (memory_limit_ != 0 && options.bytes > memory_limit_) {
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "bytes is {}, the context's limit is {}", options.bytes, memory_limit_);
    }
    const auto check_room = [&](tuff_status code, uint64_t whole, std::string_view whose) {
      if (whole == 0 || in_use <= whole - std::min(whole, options.bytes)) return;
      throw MemoryShortage(code,
                           fmt::format("bytes is {}, {} {} and {} are in use", options.bytes, whose, whole, in_use),
                           options.bytes, in_use - (whole - std::min(whole, options.bytes)));
    };
    check_room(TUFF_ERROR_LIMIT_EXCEEDED, memory_limit_, "the context's limit is");
    // The system may overcommit, and kill the process on first use.
    check_room(TUFF_ERROR_OUT_OF_HOST_MEMORY, physical_bytes_, "the machine has");
    use_->take(options.bytes);
    try {
      std::shared_ptr<Allocation> allocation;
      if (work_.device != nullptr && work_.device->allocates()) {
        allocation = std::make_shared<PluginAllocation>(use_, work_.device, options.bytes, options.zeroed);
      } else {
        allocation = std::make_shared<HostAllocation>(use_, options.bytes, options.zeroed);
      }
      bytes_peak_ = std::max(bytes_peak_, in_use + options.bytes);
      show_peak();
      return allocation;
    } catch (...) {
      use_->give_back(options.bytes);
      throw;
    }
  }

  void show_peak() noexcept { use_->usage.counters().bytes_peak.store(bytes_peak_, std::memory_order_relaxed); }

  uint64_t max_allocation_bytes() const { return largest_allocation(physical_bytes_); }

  const Plugin* plugin_;  // null: the reference
  std::shared_ptr<MemoryUse> use_ = std::make_shared<MemoryUse>();
  HostWork work_{use_->usage.counters()};
  HostStream stream_{work_};
  uint64_t physical_bytes_ = 0;
  uint64_t memory_limit_ = 0;
  uint64_t bytes_peak_ = 0, allocations_ = 0, memory_allocations_ = 0;
};

}  // namespace

std::unique_ptr<ComputeBackend> make_host_backend() { return std::make_unique<HostBackend>(nullptr); }
std::unique_ptr<ComputeBackend> make_plugin_backend(const Plugin& plugin) {
  return std::make_unique<HostBackend>(&plugin);
}

void plugin_properties(const Plugin& plugin, tuff_device_properties& properties) {
  describe(&plugin, platform::physical_memory_bytes(), properties);
}

}  // namespace tuff
