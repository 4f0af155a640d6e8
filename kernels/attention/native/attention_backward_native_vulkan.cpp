// Plans the gradients of attention for NVIDIA's Hopper GPUs: after the pass over the rows, a kernel in PTX
// (attention_backward_wgmma.cpp) for dk and dv, and one for dq and the slopes that the gradient by the bias is made of.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/attention/attention_backward_plan.hpp"
#include "kernels/attention/attention_plan.hpp"
#include "kernels/attention/native/attention_backward_wgmma.hpp"
#include "kernels/common/check.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/native/refusals.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"

namespace tuff::attention_backward {
namespace {

Refusals refusals;                     // of the kernels that own keys, and rows
constexpr uint64_t kMinSequence = 32;  // with fewer rows or keys, most of a tile is wasted

// Whether rows of elements of `size` bytes begin at multiples of `piece` bytes, as far apart as 32 bits hold.
bool in_pieces(const Buffer* buffer, const AttentionStrides& strides, uint64_t size, uint64_t piece) {
  const uint64_t elements = piece / size;
  return buffer == nullptr ||
         (buffer->offset % piece == 0 && strides.batch % elements == 0 && strides.head % elements == 0 &&
          strides.row % elements == 0 && strides.row <= UINT32_MAX / size);
}

// Bytes by which bias and mask can be copied; 0: neither 16 nor 4.
uint32_t piece_of_options(const AttentionArgs& forward) {
  for (const uint32_t piece : {16u, 4u}) {
    if (in_pieces(forward.bias, forward.bias_strides, 2, piece) &&
        in_pieces(forward.mask, forward.mask_strides, 1, piece)) {
      return piece;
    }
  }
  return 0;
}

Wgmma kernel_of(const AttentionArgs& forward, const Side& side) {
  Wgmma kernel;
  kernel.type = forward.dtype;
  kernel.head_dim = static_cast<uint32_t>(forward.head_dim);
  kernel.head_dim_v = static_cast<uint32_t>(forward.head_dim_v);
  kernel.keys_side = side.keys;
  kernel.first = side.first, kernel.second = side.second;
  kernel.bias = forward.bias != nullptr ? forward.bias_type : 0;
  kernel.mask = forward.mask != nullptr;
  if (kernel.has_options()) kernel.piece = piece_of_options(forward);
  return kernel;
}

bool computes_options(const AttentionArgs& forward) {
  if (forward.bias == nullptr && forward.mask == nullptr) return true;
  const bool half = forward.bias == nullptr || forward.bias_type == TUFF_F16 || forward.bias_type == TUFF_BF16;
  return half && piece_of_options(forward) != 0 &&
         kernel_of(forward, {.keys = false, .first = true, .second = false}).stages() >= Wgmma::kMinStages;
}

bool computes(const Call& call) {
  const AttentionBackwardArgs& args = call.args;
  const AttentionArgs& forward = call.forward;
  const uint64_t piece = Wgmma::kPiece;
  const auto aligned = [&](const Buffer* buffer, const AttentionStrides& strides) {
    return in_pieces(buffer, strides, 2, 2 * piece);
  };
  return (forward.dtype == TUFF_F16 || forward.dtype == TUFF_BF16) && forward.softcap == 0 &&
         forward.head_dim % piece == 0 && forward.head_dim_v % piece == 0 && forward.head_dim <= Wgmma::kMaxHeadDim &&
         forward.head_dim_v <= Wgmma::kMaxHeadDim && attention::has_usual_scale(forward) &&
         aligned(forward.q, forward.q_strides) && aligned(forward.k, forward.k_strides) &&
         aligned(forward.v, forward.v_strides) && aligned(args.d_o, args.d_o_strides) &&
         aligned(args.dq, args.dq_strides) && aligned(args.dk, args.dk_strides) && aligned(args.dv, args.dv_strides) &&
         computes_options(forward);
}

uint64_t own_tiles(const AttentionArgs& forward, const Side& side) {
  return ceil_div(side.keys ? forward.seq_kv : forward.seq_q, Wgmma::kOwn);
}
uint64_t all_tiles(const AttentionArgs& forward, const Side& side) {
  return own_tiles(forward, side) * forward.batch * (side.keys ? forward.kv_heads : forward.heads);
}

// Slopes that are wanted, for the gradient by the bias: of these heads, counted over all batch elements.
struct Slopes {
  Buffer values;
  uint64_t first, units;
};

// Returns whether the driver takes the kernel.
bool record_side(const Call& call, const Side& side, const Slopes* slopes = nullptr) {
  const AttentionBackwardArgs& args = call.args;
  const AttentionArgs& forward = call.forward;
  const DeviceTraits& traits = call.traits();
  Wgmma kernel = kernel_of(forward, side);
  if (slopes != nullptr) kernel.slopes = forward.seq_kv % 2 == 0 ? 2 : 1;
  const uint64_t tiles = slopes != nullptr ? own_tiles(forward, side) * slopes->units : all_tiles(forward, side),
                 cores = traits.cores != 0 ? traits.cores : 16;
  Wgmma::Push push{};
  push.lengths = forward.rows() * 8, push.bounds = call.bounds_at();
  push.own_tiles = static_cast<uint32_t>(own_tiles(forward, side));
  push.tiles = static_cast<uint32_t>(tiles);
  push.scale = static_cast<float>(forward.bias != nullptr ? forward.scale : forward.scale * std::numbers::log2e);
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
  if (forward.bias != nullptr) dispatch.operand(forward.bias, 0, forward.bias_elements() * size, Access::read);
  if (forward.mask != nullptr) dispatch.operand(forward.mask, 0, forward.mask_elements(), Access::read);
  if (side.first && side.keys) dispatch.operand(args.dk, 0, args.dk_elements() * size, Access::write);
  if (side.first && !side.keys) dispatch.operand(args.dq, 0, args.dq_elements() * size, Access::write);
  if (side.second) dispatch.operand(args.dv, 0, args.dv_elements() * size, Access::write);
  Work work = work_of(call, side);
  if (slopes != nullptr) {
    push.first_unit = static_cast<uint32_t>(slopes->first);
    const uint64_t bytes = slopes->units * forward.seq_q * forward.seq_kv * 4;
    dispatch.operand(&slopes->values, 0, bytes, Access::write);
    const double part = static_cast<double>(tiles) / static_cast<double>(all_tiles(forward, side));
    work = {work.bytes * part + static_cast<double>(bytes), work.operations * part};
  }
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

// The gradient by the bias is made of slopes, which the kernel that owns rows stores besides dq.
struct Biases {
  explicit Biases(const Call& call) : gradient(call) {}
  BiasGradient gradient;
  Buffer scratch;
  uint64_t of_unit = 0, units = 0, slopes_at = 0, sums_at = 0;  // of_unit: bytes of a head's slopes
};
constexpr uint64_t kSlopesBytes = uint64_t{1} << 30;  // of the heads whose slopes are in memory at a time

// Returns whether there is memory for the slopes of a head.
bool place(Call& call, Biases& biases) {
  const AttentionArgs& forward = call.forward;
  biases.of_unit = forward.seq_q * forward.seq_kv * 4;
  if (biases.of_unit > kSlopesBytes) return false;
  biases.units = std::min(kSlopesBytes / biases.of_unit, forward.batch * forward.heads);
  ScratchLayout layout;
  biases.sums_at = layout.add(call.sums_bytes());
  biases.slopes_at = layout.add(biases.units * biases.of_unit);
  biases.gradient.place(layout, biases.units, forward.seq_kv);
  // Reductions of rows have scratch memory of their own.
  biases.scratch = call.recorder.scratch(layout.bytes(), Scratch::outer);
  call.sums = part_of(biases.scratch, biases.sums_at, call.sums_bytes());
  return true;
}

bool record_rows_with_bias(const Call& call, const Biases& biases) {
  const AttentionArgs& forward = call.forward;
  const uint64_t all = forward.batch * forward.heads;
  // Steps that nothing sees are left out.
  const bool partial = forward.causal != TUFF_CAUSAL_NONE || forward.window_left != 0 || forward.window_right != 0 ||
                       forward.q_lengths != nullptr || forward.kv_lengths != nullptr;
  biases.gradient.record_begin(biases.scratch);
  for (uint64_t first = 0; first < all; first += biases.units) {
    const uint64_t units = std::min(biases.units, all - first);
    const Slopes slopes{part_of(biases.scratch, biases.slopes_at, units * biases.of_unit), first, units};
    if (partial) record_fill(call.recorder, slopes.values, 0, units * biases.of_unit, {});
    if (!record_side(call, {.keys = false, .first = true, .second = false}, &slopes)) return false;
    biases.gradient.record_add(biases.scratch, {.values = &slopes.values,
                                                .first = first,
                                                .units = units,
                                                .heads = forward.heads,
                                                .sharing = 1,
                                                .sharer = 0,
                                                .rows = {0, forward.seq_q},
                                                .keys = {0, forward.seq_kv}});
  }
  biases.gradient.record_end(biases.scratch);
  return true;
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

  Biases biases(call);
  if (!biases.gradient.wanted()) {
    call.sums = call.recorder.scratch(call.sums_bytes());
  } else if (args.dq == nullptr || !place(call, biases)) {
    return false;
  }
  const Wgmma any = kernel_of(forward, keys);
  // With a bias, what is an exponent of e is added up first: as one of two, the lowest f32 would overflow.
  const bool bias = forward.bias != nullptr;
  const Powers powers{bias ? 0 : any.headroom(), bias ? 1 : std::numbers::log2e_v<float>, any.bounded()};
  record_sums(call, &powers);
  // If the driver refuses a kernel, everything is computed by others, and what was recorded so far does no harm.
  if (any.fits()) {
    if ((keys.first || keys.second) && !record_side(call, keys)) return false;
  } else if (!record_side(call, {.keys = true, .first = true, .second = false}) ||
             !record_side(call, {.keys = true, .first = false, .second = true})) {
    return false;
  }
  if (biases.gradient.wanted()) return record_rows_with_bias(call, biases);
  return !rows.first || record_side(call, rows);
}

}  // namespace tuff::attention_backward
