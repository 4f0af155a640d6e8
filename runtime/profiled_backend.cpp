#include "runtime/profiled_backend.hpp"

#include <fmt/format.h>

#include "runtime/call_text.hpp"
#include "runtime/status.hpp"

namespace tuff {
namespace {

CallText bytes_text(uint64_t bytes) { return {fmt::format("{} bytes", bytes)}; }

const char* conv_name(const ConvArgs& args) {
  if (args.transposed) return "conv_transpose2d";
  return args.rank == 1 ? "conv1d" : args.rank == 2 ? "conv2d" : "conv3d";
}

// A call that fails leaves a span without a shape: its arguments may be anything.
template <typename Args>
void timed(Profile& profile, const char* name, ComputeStream& inner, void (ComputeStream::*method)(const Args&),
           const Args& args) {
  ProfiledCall call(profile, name);
  (inner.*method)(args);
  call.done([&] { return describe(args); });
}

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
  } catch (const std::bad_alloc&) {
    throw;  // nothing is lost: it goes on, and can be ended later
  } catch (...) {
    stop();  // of a lost device too: what it did before is kept
    throw;
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

void ProfiledStream::gemm(const GemmArgs& args) { timed(profile_, "gemm", inner_, &ComputeStream::gemm, args); }
void ProfiledStream::batched_gemm(const GemmArgs& args) {
  timed(profile_, "batched_gemm", inner_, &ComputeStream::batched_gemm, args);
}
void ProfiledStream::conv(const ConvArgs& args) {
  timed(profile_, conv_name(args), inner_, &ComputeStream::conv, args);
}
void ProfiledStream::attention(const AttentionArgs& args) {
  timed(profile_, "attention", inner_, &ComputeStream::attention, args);
}
void ProfiledStream::reduce(const ReduceArgs& args) { timed(profile_, "reduce", inner_, &ComputeStream::reduce, args); }
void ProfiledStream::softmax(const SoftmaxArgs& args) {
  timed(profile_, "softmax", inner_, &ComputeStream::softmax, args);
}
void ProfiledStream::unary(const UnaryArgs& args) { timed(profile_, "unary", inner_, &ComputeStream::unary, args); }
void ProfiledStream::binary(const BinaryArgs& args) { timed(profile_, "binary", inner_, &ComputeStream::binary, args); }
void ProfiledStream::norm(const NormArgs& args) {
  timed(profile_,
        args.grouped   ? "group_norm"
        : args.centred ? "layer_norm"
                       : "rms_norm",
        inner_, &ComputeStream::norm, args);
}
void ProfiledStream::batch_norm(const BatchNormArgs& args) {
  timed(profile_, "batch_norm", inner_, &ComputeStream::batch_norm, args);
}
void ProfiledStream::permute(const PermuteArgs& args) {
  timed(profile_, "permute", inner_, &ComputeStream::permute, args);
}
void ProfiledStream::cast(const CastArgs& args) { timed(profile_, "cast", inner_, &ComputeStream::cast, args); }
void ProfiledStream::slice(const SliceArgs& args) { timed(profile_, "slice", inner_, &ComputeStream::slice, args); }
void ProfiledStream::concat(const ConcatArgs& args) { timed(profile_, "concat", inner_, &ComputeStream::concat, args); }
void ProfiledStream::gather(const GatherArgs& args) { timed(profile_, "gather", inner_, &ComputeStream::gather, args); }
void ProfiledStream::pool(const PoolArgs& args) {
  timed(profile_, args.maximum ? "max_pool" : "avg_pool", inner_, &ComputeStream::pool, args);
}
void ProfiledStream::resize(const ResizeArgs& args) { timed(profile_, "resize", inner_, &ComputeStream::resize, args); }
void ProfiledStream::rope(const RopeArgs& args) { timed(profile_, "rope", inner_, &ComputeStream::rope, args); }

std::unique_ptr<CustomKernel> ProfiledBackend::create_kernel(const KernelOptions& options) {
  ProfiledCall call(profile_, "kernel_create");
  std::unique_ptr<CustomKernel> kernel = inner_.create_kernel(options);
  call.done([&] { return CallText{options.source.name}; });
  return kernel;
}
void ProfiledStream::launch(CustomKernel& kernel, const LaunchArgs& args) {
  ProfiledCall call(profile_, "kernel_launch");
  inner_.launch(kernel, args);
  call.done([&] { return CallText{fmt::format("{} groups", fmt::join(args.groups, "x"))}; });
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
