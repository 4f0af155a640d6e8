#include "runtime/profiled_backend.hpp"

#include <fmt/format.h>

#include "planning/status.hpp"
#include "runtime/custom/extension.hpp"

namespace tuff {
namespace {

CallText bytes_text(uint64_t bytes) { return {fmt::format("{} bytes", bytes)}; }

}  // namespace

tuff_stats ProfiledBackend::stats_now() const {
  tuff_stats stats{};
  inner_.stats(stats);
  return stats;
}

void ProfiledBackend::begin() {
  const std::lock_guard lock(mutex_);
  require(!profile_.recording(), "context is being profiled already, needs tuff_profile_end first");
  try {
    inner_.profile_begin(profile_);
  } catch (...) {
    inner_.profile_end();
    if (profile_.recording()) profile_.stop(stats_now());
    throw;
  }
  profile_.set_before(stats_now());
  ever_ = true;
}

void ProfiledBackend::end() {
  const std::lock_guard lock(mutex_);
  require(profile_.recording(), "context is not being profiled, needs tuff_profile_begin first");
  const auto stop = [this] {
    inner_.profile_end();
    profile_.stop(stats_now());
  };
  try {
    inner_.profile_collect();
  } catch (const Error& error) {
    if (error.code() == TUFF_ERROR_DEVICE_LOST) stop();  // what it did before that is kept
    throw;                                               // otherwise profiling continues and can be ended later
  }
  stop();
}

void ProfiledBackend::collect() {
  require(ever_, "context was never profiled, needs tuff_profile_begin first");
  if (profile_.recording()) inner_.profile_collect();
}

std::string ProfiledBackend::trace() {
  const std::lock_guard lock(mutex_);
  collect();
  return profile_.trace(stats_now());
}

std::string ProfiledBackend::table() {
  const std::lock_guard lock(mutex_);
  collect();
  return profile_.table(stats_now());
}

Buffer ProfiledBackend::alloc(const AllocOptions& options) {
  ProfiledCall call(profile_, "alloc");
  Buffer buffer = inner_.alloc(options);
  call.done([&] { return bytes_text(options.bytes); });
  return buffer;
}

void ProfiledStream::copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) {
  ProfiledCall call(profile_, "copy_htod");
  inner_.copy_htod(dst, offset, src, bytes);
  call.done([&] { return bytes_text(bytes); });
}

void ProfiledStream::copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) {
  ProfiledCall call(profile_, "copy_dtoh");
  inner_.copy_dtoh(dst, src, offset, bytes);
  call.done([&] { return bytes_text(bytes); });
}

void ProfiledStream::copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                               uint64_t bytes) {
  ProfiledCall call(profile_, "copy_dtod");
  inner_.copy_dtod(dst, dst_offset, src, src_offset, bytes);
  call.done([&] { return bytes_text(bytes); });
}

void ProfiledStream::fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern,
                          uint64_t pattern_bytes) {
  ProfiledCall call(profile_, "fill");
  inner_.fill(dst, offset, bytes, pattern, pattern_bytes);
  call.done([&] { return bytes_text(bytes); });
}

void* ProfiledBackend::map(const Buffer& buffer) {
  ProfiledCall call(profile_, "map");
  void* pointer = inner_.map(buffer);
  call.done([&] { return bytes_text(buffer.bytes); });
  return pointer;
}

void ProfiledBackend::unmap(const Buffer& buffer) {
  ProfiledCall call(profile_, "unmap");
  inner_.unmap(buffer);
  call.done([&] { return bytes_text(buffer.bytes); });
}

void ProfiledBackend::synchronize() {
  ProfiledCall call(profile_, "synchronize");
  inner_.synchronize();
  call.done();
}

// A failed call leaves a span without a shape, because its arguments may be invalid.
void ProfiledStream::run(const Operation& operation) {
  ProfiledCall call(profile_, operation.info().name);
  inner_.run(operation);
  call.done([&] { return operation.describe(); });
}

std::unique_ptr<CustomKernel> ProfiledBackend::create_kernel(const KernelOptions& options) {
  ProfiledCall call(profile_, "kernel_create");
  std::unique_ptr<CustomKernel> kernel = inner_.create_kernel(options);
  call.done([&] { return CallText{options.source.name}; });
  return kernel;
}
void ProfiledStream::launch(CustomKernel& kernel, const LaunchArgs& args) {
  const ExtensionCall* operation = args.call;
  ProfiledCall call(profile_, operation != nullptr ? operation->operation->name().c_str() : "kernel_launch");
  inner_.launch(kernel, args);
  call.done([&] {
    if (operation != nullptr) return operation->operation->describe(*operation);
    return CallText{fmt::format("{} groups", fmt::join(args.groups, "x"))};
  });
}

void ProfiledStream::synchronize() {
  ProfiledCall call(profile_, "synchronize");
  inner_.synchronize();
  call.done();
}
void ProfiledStream::record(ComputeEvent& event) {
  ProfiledCall call(profile_, "event_record");
  inner_.record(event);
  call.done();
}
void ProfiledStream::wait(ComputeEvent& event) {
  ProfiledCall call(profile_, "stream_wait_event");
  inner_.wait(event);
  call.done();
}
void ProfiledStream::launch(ComputeGraph& graph) {
  ProfiledCall call(profile_, "graph_launch");
  inner_.launch(graph);
  call.done();
}
void ProfiledStream::copy_async(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                                uint64_t bytes) {
  ProfiledCall call(profile_, "copy_async");
  inner_.copy_async(dst, dst_offset, src, src_offset, bytes);
  call.done([&] { return bytes_text(bytes); });
}

}  // namespace tuff
