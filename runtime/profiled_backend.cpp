#include "runtime/profiled_backend.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "kernels/common/check.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/reduce/reduce_ops.hpp"
#include "runtime/status.hpp"

namespace tuff {
namespace {

// What a call was about, of arguments that were checked.

template <typename T>
std::string sizes(const T* first, size_t count) {
  return fmt::format("[{}]", fmt::join(std::span<const T>(first, count), ","));
}

std::string extents(const ConvExtents& extents, uint32_t rank) {
  return fmt::format("{}", fmt::join(extents.end() - rank, extents.end(), "x"));
}

CallText bytes_text(uint64_t bytes) { return {fmt::format("{} bytes", bytes)}; }

CallText describe(const GemmArgs& args) {
  std::string shape =
      fmt::format("{}{} {} {}x{}x{}", args.ta == TUFF_NO_TRANS ? 'n' : 't', args.tb == TUFF_NO_TRANS ? 'n' : 't',
                  dtype_name(args.a_type), args.m, args.n, args.k);
  if (args.b_type != args.a_type) shape += fmt::format(" by {}", dtype_name(args.b_type));
  if (args.batch_count != 1) shape += fmt::format(" batch {}", args.batch_count);
  return {shape, args.a_type};
}

CallText describe(const ConvArgs& args) {
  const uint32_t rank = args.rank;
  std::string shape =
      fmt::format("{} {}x{}x{} by {} to {}x{}", dtype_name(args.dtype), args.batch(), args.channels(),
                  extents(args.in(), rank), extents(args.taps(), rank), args.filters(), extents(args.out(), rank));
  if (args.groups != 1) shape += fmt::format(" groups {}", args.groups);
  if (args.channels_last()) shape += " channels last";
  return {shape, args.dtype};
}

CallText describe(const AttentionArgs& args) {
  return {fmt::format("{} batch {} heads {} {}x{} of {}{}", dtype_name(args.dtype), args.batch, args.heads, args.seq_q,
                      args.seq_kv, args.head_dim, args.causal == TUFF_CAUSAL_NONE ? "" : " causal"),
          args.dtype};
}

CallText describe(const ReduceArgs& args) {
  return {fmt::format("{} {} {} axis {}", reduce::find(args.op)->name, dtype_name(args.dtype),
                      sizes(args.shape, args.rank), args.axis),
          args.dtype};
}

CallText describe(const SoftmaxArgs& args) {
  return {fmt::format("{} {} axis {}", dtype_name(args.dtype), sizes(args.shape, args.rank), args.axis), args.dtype};
}

CallText describe(const UnaryArgs& args) {
  return {fmt::format("{} {} n={}", elementwise::find(elementwise::kUnaryOps, args.op)->name, dtype_name(args.dtype),
                      args.n),
          args.dtype};
}

CallText describe(const BinaryArgs& args) {
  const char* name = elementwise::find(elementwise::kBinaryOps, args.op)->name;
  if (args.rank == 0) return {fmt::format("{} {} n={}", name, dtype_name(args.dtype), args.n), args.dtype};
  return {fmt::format("{} {} {} and {}", name, dtype_name(args.dtype), sizes(args.a_shape, args.rank),
                      sizes(args.b_shape, args.rank)),
          args.dtype};
}

CallText describe(const NormArgs& args) {
  std::string shape = fmt::format("{} {} rows of {}", dtype_name(args.dtype), args.rows, args.channels * args.inner);
  if (args.grouped) shape += fmt::format(" in {} groups", args.groups);
  return {shape, args.dtype};
}

CallText describe(const BatchNormArgs& args) {
  return {fmt::format("{} {}x{}x{}", dtype_name(args.dtype), args.batch, args.channels, args.inner), args.dtype};
}

CallText describe(const PermuteArgs& args) {
  return {
      fmt::format("{} {} to {}", dtype_name(args.dtype), sizes(args.shape, args.rank), sizes(args.order, args.rank)),
      args.dtype};
}

CallText describe(const CastArgs& args) {
  return {fmt::format("{} to {} n={}", dtype_name(args.from), dtype_name(args.to), args.n), args.to};
}

CallText describe(const SliceArgs& args) {
  return {fmt::format("{} {} of {}", dtype_name(args.dtype), sizes(args.out_shape, args.rank),
                      sizes(args.shape, args.rank)),
          args.dtype};
}

CallText describe(const ConcatArgs& args) {
  return {fmt::format("{} {} of {} axis {}", dtype_name(args.dtype), sizes(args.shape, args.rank), args.inputs.size(),
                      args.axis),
          args.dtype};
}

CallText describe(const GatherArgs& args) {
  std::string shape = fmt::format("{} {} axis {}", dtype_name(args.dtype), sizes(args.shape, args.rank), args.axis);
  shape += args.index_shape == nullptr ? fmt::format(" by {}", args.count)
                                       : fmt::format(" by {}", sizes(args.index_shape, args.rank));
  return {shape, args.dtype};
}

template <typename Args>
CallText describe_planes(const Args& args) {
  return {fmt::format("{} {}x{}x{} to {}", dtype_name(args.dtype), args.batch, args.channels,
                      fmt::join(std::span(args.in_shape.data(), args.spatial), "x"),
                      fmt::join(std::span(args.out_shape.data(), args.spatial), "x")),
          args.dtype};
}
CallText describe(const PoolArgs& args) { return describe_planes(args); }
CallText describe(const ResizeArgs& args) { return describe_planes(args); }

CallText describe(const RopeArgs& args) {
  return {fmt::format("{} batch {} heads {} seq {} of {}", dtype_name(args.dtype), args.batch, args.heads, args.seq,
                      args.head_dim),
          args.dtype};
}

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
  call.done(describe(args));
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
  inner_.profile_begin(profile_);
  profile_.set_before(stats_now());
  ever_ = true;
}

void ProfiledBackend::end() {
  const std::lock_guard lock(mutex_);
  require(profile_.recording(), "context is not being profiled, needs tuff_profile_begin first");
  // Of a lost device too: what it did before is kept.
  struct Stop {
    ProfiledBackend& backend;
    ~Stop() {
      backend.inner_.profile_end();
      backend.profile_.stop(backend.stats_now());
    }
  } const stop{*this};
  inner_.profile_collect();
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
  call.done(bytes_text(options.bytes));
  return buffer;
}

void ProfiledStream::copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) {
  ProfiledCall call(profile_, "copy_htod");
  inner_.copy_htod(dst, offset, src, bytes);
  call.done(bytes_text(bytes));
}

void ProfiledStream::copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) {
  ProfiledCall call(profile_, "copy_dtoh");
  inner_.copy_dtoh(dst, src, offset, bytes);
  call.done(bytes_text(bytes));
}

void ProfiledStream::copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                               uint64_t bytes) {
  ProfiledCall call(profile_, "copy_dtod");
  inner_.copy_dtod(dst, dst_offset, src, src_offset, bytes);
  call.done(bytes_text(bytes));
}

void ProfiledStream::fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern,
                          uint64_t pattern_bytes) {
  ProfiledCall call(profile_, "fill");
  inner_.fill(dst, offset, bytes, pattern, pattern_bytes);
  call.done(bytes_text(bytes));
}

void* ProfiledBackend::map(const Buffer& buffer) {
  ProfiledCall call(profile_, "map");
  void* pointer = inner_.map(buffer);
  call.done(bytes_text(buffer.bytes));
  return pointer;
}

void ProfiledBackend::unmap(const Buffer& buffer) {
  ProfiledCall call(profile_, "unmap");
  inner_.unmap(buffer);
  call.done(bytes_text(buffer.bytes));
}

void ProfiledBackend::synchronize() {
  ProfiledCall call(profile_, "synchronize");
  inner_.synchronize();
  call.done({});
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
  call.done({options.source.name});
  return kernel;
}
void ProfiledStream::launch(CustomKernel& kernel, const LaunchArgs& args) {
  ProfiledCall call(profile_, "kernel_launch");
  inner_.launch(kernel, args);
  call.done({fmt::format("{} groups", fmt::join(args.groups, "x"))});
}

void ProfiledStream::synchronize() {
  ProfiledCall call(profile_, "synchronize");
  inner_.synchronize();
  call.done({});
}
void ProfiledStream::record(ComputeEvent& event) {
  ProfiledCall call(profile_, "event_record");
  inner_.record(event);
  call.done({});
}
void ProfiledStream::wait(ComputeEvent& event) {
  ProfiledCall call(profile_, "stream_wait_event");
  inner_.wait(event);
  call.done({});
}
void ProfiledStream::launch(ComputeGraph& graph) {
  ProfiledCall call(profile_, "graph_launch");
  inner_.launch(graph);
  call.done({});
}
void ProfiledStream::copy_async(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                                uint64_t bytes) {
  ProfiledCall call(profile_, "copy_async");
  inner_.copy_async(dst, dst_offset, src, src_offset, bytes);
  call.done(bytes_text(bytes));
}

}  // namespace tuff
