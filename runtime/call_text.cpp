#include "runtime/call_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "kernels/common/check.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/reduce/reduce_ops.hpp"

namespace tuff {
namespace {

template <typename T>
std::string sizes(const T* first, size_t count) {
  return fmt::format("[{}]", fmt::join(std::span<const T>(first, count), ","));
}

std::string extents(const ConvExtents& extents, uint32_t rank) {
  return fmt::format("{}", fmt::join(extents.end() - rank, extents.end(), "x"));
}

template <typename Args>
CallText describe_planes(const Args& args) {
  return {fmt::format("{} {}x{}x{} to {}", dtype_name(args.dtype), args.batch, args.channels,
                      fmt::join(std::span(args.in_shape.data(), args.spatial), "x"),
                      fmt::join(std::span(args.out_shape.data(), args.spatial), "x")),
          args.dtype};
}

}  // namespace

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

CallText describe(const PoolArgs& args) { return describe_planes(args); }
CallText describe(const ResizeArgs& args) { return describe_planes(args); }

CallText describe(const RopeArgs& args) {
  return {fmt::format("{} batch {} heads {} seq {} of {}", dtype_name(args.dtype), args.batch, args.heads, args.seq,
                      args.head_dim),
          args.dtype};
}

}  // namespace tuff
