// Wraps a backend while its context is profiled: times each call and describes it. While nothing is profiled, calls go
// to the backend directly.
#pragma once

#include <string>

#include "platform/mutex.hpp"
#include "runtime/compute_backend.hpp"
#include "runtime/profile.hpp"

namespace tuff {

class ProfiledBackend final : public ComputeBackend {
 public:
  explicit ProfiledBackend(ComputeBackend& inner) : inner_(inner) {}

  // Throw INVALID_ARGUMENT if profiling is already on, or not on, and the backend's errors.
  void begin();
  void end();
  // Cover what has finished by now. Throw INVALID_ARGUMENT if nothing was ever profiled.
  std::string trace();
  std::string table();

  void init(const ContextOptions& options) override { inner_.init(options); }
  void capabilities(tuff_device_properties& properties) const override { inner_.capabilities(properties); }
  bool supports(std::string_view feature) const override { return inner_.supports(feature); }
  void stats(tuff_stats& stats) const override { inner_.stats(stats); }
  void usage(tuff_usage& usage) override { inner_.usage(usage); }
  void set_limits(const tuff_limits& limits) override { inner_.set_limits(limits); }
  void set_tuning(const char* json) override { inner_.set_tuning(json); }
  std::string variants(const Operation& operation) override { return inner_.variants(operation); }
  void memory(tuff_memory_stats& memory) const override { inner_.memory(memory); }
  void trim() override { inner_.trim(); }
  void reset_peak() override { inner_.reset_peak(); }
  void compact(std::span<const OwnedMemory> memory, CompactionStep& step) override { inner_.compact(memory, step); }
  MemoryPressure& pressure() noexcept override { return inner_.pressure(); }
  Buffer import_host(void* memory, uint64_t bytes, std::shared_ptr<void> owner) override {
    return inner_.import_host(memory, bytes, std::move(owner));
  }
  void export_fd(const Buffer& buffer, tuff_memory_fd& info) override { inner_.export_fd(buffer, info); }
  Buffer import_fd(const tuff_memory_fd& info) override { return inner_.import_fd(info); }
  ComputeStream& default_stream() override { return inner_.default_stream(); }
  std::unique_ptr<ComputeStream> create_stream(const StreamOptions& options) override {
    return inner_.create_stream(options);
  }
  std::unique_ptr<ComputeEvent> create_event(bool timing) override { return inner_.create_event(timing); }
  void profile_begin(Profile& profile) override { inner_.profile_begin(profile); }
  void profile_collect() override { inner_.profile_collect(); }
  void profile_end() noexcept override { inner_.profile_end(); }

  Buffer alloc(const AllocOptions& options) override;
  void* map(const Buffer& buffer) override;
  void unmap(const Buffer& buffer) override;
  void synchronize() override;

  std::unique_ptr<CustomKernel> create_kernel(const KernelOptions& options) override;
  bool computes_on_host() const override { return inner_.computes_on_host(); }
  std::unique_ptr<CustomKernel> create_host_kernel(KernelInterface interface, HostLaunch launch) override {
    return inner_.create_host_kernel(std::move(interface), std::move(launch));
  }

  Profile& profile() { return profile_; }

 private:
  tuff_stats stats_now() const;
  // Collects everything profiled that has finished.
  void collect();

  ComputeBackend& inner_;
  Mutex mutex_{LockRank::profiled_backend};  // serialises beginning, ending and collecting
  bool ever_ = false;
  Profile profile_;
};

// The same for a stream.
class ProfiledStream final : public ComputeStream {
 public:
  ProfiledStream(ComputeStream& inner, Profile& profile) : inner_(inner), profile_(profile) {}

  void synchronize() override;
  void record(ComputeEvent& event) override;
  void wait(ComputeEvent& event) override;
  bool capturing() const override { return inner_.capturing(); }
  void begin_graph() override { inner_.begin_graph(); }
  std::unique_ptr<ComputeGraph> end_graph() override { return inner_.end_graph(); }
  void launch(ComputeGraph& graph) override;

  void copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) override;
  void copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) override;
  void copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                 uint64_t bytes) override;
  void fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern, uint64_t pattern_bytes) override;
  void copy_async(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                  uint64_t bytes) override;

  void run(const Operation& operation) override;
  void launch(CustomKernel& kernel, const LaunchArgs& args) override;

 private:
  ComputeStream& inner_;
  Profile& profile_;
};

}  // namespace tuff
