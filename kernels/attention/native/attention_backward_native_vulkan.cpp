// Plans the gradients of attention for NVIDIA's Hopper GPUs: after the pass over the rows, a kernel in PTX
// (attention_backward_wgmma.cpp) for dk and dv, and one for dq.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/attention/attention_backward_plan.hpp"
#include "kernels/attention/attention_plan.hpp"
#include "kernels/attention/native/attention_backward_wgmma.hpp"
#include "kernels/common/check.hpp"
#include "kernels/native/refusals.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"

namespace tuff::attention_backward {
namespace {

Refusals refusals;                     // of the kernels that own keys, and rows
constexpr uint64_t kMinSequence = 32;  // with fewer rows or keys, most of a tile is wasted

bool computes(const Call& call) {
  const AttentionBackwardArgs& args = call.args;
  const AttentionArgs& forward = call.forward;
  const uint64_t size = 2, piece = Wgmma::kPiece;
  const auto in_pieces = [&](const Buffer* buffer, const AttentionStrides& strides) {
    return buffer == nullptr ||
           (buffer->offset % (piece * size) == 0 && strides.batch % piece == 0 && strides.head % piece == 0 &&
            strides.row % piece == 0 && strides.row * size <= UINT32_MAX);
  };
  return (forward.dtype == TUFF_F16 || forward.dtype == TUFF_BF16) && forward.bias == nullptr &&
         forward.mask == nullptr && forward.softcap == 0 && forward.head_dim % piece == 0 &&
         forward.head_dim_v % piece == 0 && forward.head_dim <= Wgmma::kMaxHeadDim &&
         forward.head_dim_v <= Wgmma::kMaxHeadDim && attention::has_usual_scale(forward) &&
         in_pieces(forward.q, forward.q_strides) && in_pieces(forward.k, forward.k_strides) &&
         in_pieces(forward.v, forward.v_strides) && in_pieces(args.d_o, args.d_o_strides) &&
         in_pieces(args.dq, args.dq_strides) && in_pieces(args.dk, args.dk_strides) &&
         in_pieces(args.dv, args.dv_strides);
}

uint64_t own_tiles(const AttentionArgs& forward, const Side& side) {
  return ceil_div(side.keys ? forward.seq_kv : forward.seq_q, Wgmma::kOwn);
}
uint64_t all_tiles(const AttentionArgs& forward, const Side& side) {
  return own_tiles(forward, side) * forward.batch * (side.keys ? forward.kv_heads : forward.heads);
}

Wgmma kernel_of(const AttentionArgs& forward, const Side& side) {
  Wgmma kernel;
  kernel.type = forward.dtype;
  kernel.head_dim = static_cast<uint32_t>(forward.head_dim);
  kernel.head_dim_v = static_cast<uint32_t>(forward.head_dim_v);
  kernel.keys_side = side.keys;
  kernel.first = side.first, kernel.second = side.second;
  return kernel;
}

// Returns whether the driver takes the kernel.
bool record_side(const Call& call, const Side& side) {
  const AttentionBackwardArgs& args = call.args;
  const AttentionArgs& forward = call.forward;
  const DeviceTraits& traits = call.traits();
  const Wgmma kernel = kernel_of(forward, side);
  const uint64_t tiles = all_tiles(forward, side), cores = traits.cores != 0 ? traits.cores : 16;
  Wgmma::Push push{};
  push.lengths = forward.rows() * 8, push.bounds = call.bounds_at();
  push.own_tiles = static_cast<uint32_t>(own_tiles(forward, side));
  push.tiles = static_cast<uint32_t>(tiles);
  push.scale_log2 = static_cast<float>(forward.scale * std::numbers::log2e);
  push.first_factor = static_cast<float>(forward.scale);
  push.second_factor = std::exp2(-kernel.headroom());

  Dispatch dispatch(side.keys ? "attention backward keys" : "attention backward rows");
  const uint64_t size = dtype_size(forward.dtype);
  dispatch.operand(forward.q, 0, forward.q_elements() * size, Access::read)
      .operand(forward.k, 0, forward.k_elements() * size, Access::read)
      .operand(forward.v, 0, forward.v_elements() * size, Access::read)
      .operand(args.d_o, 0, args.d_o_elements() * size, Access::read)
      .operand(&call.sums, 0, call.sums_bytes(), Access::read);
  call.shape(dispatch, true);
  if (side.first && side.keys) dispatch.operand(args.dk, 0, args.dk_elements() * size, Access::write);
  if (side.first && !side.keys) dispatch.operand(args.dq, 0, args.dq_elements() * size, Access::write);
  if (side.second) dispatch.operand(args.dv, 0, args.dv_elements() * size, Access::write);
  const Work work = work_of(call, side);
  dispatch.push(push)
      .groups(static_cast<uint32_t>(std::min(tiles, cores)))
      .work(work.bytes, work.operations)
      .variant(kNative.data());
  log(TUFF_LOG_DISPATCH, "attention_backward {} {} {} heads={} seq_q={} seq_kv={} head_dim={} causal={} tiles={}",
      kNative, side.keys ? "keys" : "rows", dtype_name(forward.dtype), forward.batch * forward.heads, forward.seq_q,
      forward.seq_kv, forward.head_dim, forward.causal, tiles);
  // Addresses have 64 bits.
  return refusals.dispatch(call.recorder, kernel.request().wide(true), dispatch, "attention_backward",
                           side.keys ? 0 : 1);
}

}  // namespace

bool record_native(Call& call, std::string_view forced) {
  const AttentionArgs& forward = call.forward;
  const AttentionBackwardArgs& args = call.args;
  if (!call.traits().hopper || refusals.has(0) || refusals.has(1)) {
    if (!forced.empty()) {
      fail(TUFF_ERROR_UNSUPPORTED, "TUFF_ATTENTION_BACKWARD_VARIANT={} does not run on this device", forced);
    }
    return false;
  }
  if (!computes(call)) return false;
  if (forced.empty() && std::min(forward.seq_q, forward.seq_kv) < kMinSequence) return false;
  const Side keys{.keys = true, .first = args.dk != nullptr, .second = args.dv != nullptr},
      rows{.keys = false, .first = args.dq != nullptr, .second = false};
  if (std::max(all_tiles(forward, keys), all_tiles(forward, rows)) > attention::kMaxGroups) return false;

  call.sums = call.recorder.scratch(call.sums_bytes());
  const Wgmma any = kernel_of(forward, keys);
  const Powers powers{any.headroom(), any.bounded()};
  record_sums(call, &powers);
  // If the driver refuses a kernel, everything is computed by others, and what was recorded so far does no harm.
  if (any.fits()) {
    if ((keys.first || keys.second) && !record_side(call, keys)) return false;
  } else if (!record_side(call, {.keys = true, .first = true, .second = false}) ||
             !record_side(call, {.keys = true, .first = false, .second = true})) {
    return false;
  }
  return !rows.first || record_side(call, rows);
}

}  // namespace tuff::attention_backward
