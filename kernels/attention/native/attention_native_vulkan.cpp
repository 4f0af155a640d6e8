// Plans attention for NVIDIA's Hopper GPUs: kernels in PTX (attention_wgmma.cpp; attention_planes.cpp for f32).
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention/attention_plan.hpp"
#include "kernels/attention/native/attention_planes.hpp"
#include "kernels/attention/native/attention_wgmma.hpp"
#include "kernels/attention/native/score_options.hpp"
#include "kernels/native/refusals.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"

namespace tuff::attention {
namespace {

constexpr std::string_view kVariant = "native_128";
Refusals refusals;
constexpr uint64_t kMinRows = 48;  // with fewer, kernels with smaller tiles are better

// What both kernels compute: tensors that are read in pieces of so many elements.
bool computes(const Call& call, uint32_t piece, uint32_t max_head_dim) {
  const AttentionArgs& args = call.args;
  const auto in_range = [&](const AttentionStrides& strides) {
    return strides.row * dtype_size(args.dtype) <= UINT32_MAX;
  };
  if (args.quantised() || (call.scaled && args.scale > kMaxScoreScale)) return false;
  return call.in_pieces_of(piece) && args.head_dim <= max_head_dim && args.head_dim_v <= max_head_dim &&
         has_usual_scale(args) && in_range(args.q_strides) && in_range(args.k_strides) && in_range(args.v_strides) &&
         in_range(args.o_strides);
}
bool computes_halves(const Call& call) {
  const int32_t type = call.args.dtype;
  return (type == TUFF_F16 || type == TUFF_BF16) && computes(call, Wgmma::kPiece, Wgmma::kMaxHeadDim);
}
bool computes_floats(const Call& call) {
  return call.args.dtype == TUFF_F32 && call.args.head_dim_v % Planes::kPieceV == 0 &&
         computes(call, Planes::kPiece, Planes::kMaxHeadDim);
}

// Keys of a step. All rows that see all keys take the same steps: the last one should not be mostly empty.
uint32_t keys_of_step(const Wgmma& kernel, uint32_t most, uint64_t seq_kv) {
  if (kernel.hiding || kernel.lengths != 0) return most;
  constexpr uint64_t kEnds = 16;  // the time of a step outside its keys, in keys
  const auto time = [&](uint64_t keys) { return ceil_div(seq_kv, keys) * (keys + kEnds); };
  uint32_t best = most;
  for (uint32_t keys = most; keys >= std::max(most / 2, Wgmma::kMinKeys); keys -= 16) {
    if (time(keys) < time(best)) best = keys;
  }
  return best;
}

ScoreNumbers score_numbers(const AttentionArgs& args) {
  const auto bytes = [](const AttentionStrides& strides, uint64_t size) {
    return AttentionStrides{strides.batch * size, strides.head * size, strides.row * size};
  };
  const AttentionStrides bias = bytes(args.bias_strides, dtype_size(args.bias_type)), mask = args.mask_strides;
  constexpr double kLargestRatio = std::numeric_limits<float>::max();
  return {.bias_batch = bias.batch,
          .bias_head = bias.head,
          .bias_row = bias.row,
          .mask_batch = mask.batch,
          .mask_head = mask.head,
          .mask_row = mask.row,
          .scale = static_cast<float>(args.scale),
          .cap = static_cast<float>(args.softcap),
          .inner = args.softcap == 0 ? 0 : static_cast<float>(std::min(args.scale / args.softcap, kLargestRatio)),
          .unused = 0};
}

}  // namespace

bool has_usual_scale(const AttentionArgs& args) {
  constexpr double kMinScale = 1e-25, kMaxScale = 1e25;
  return args.scale >= kMinScale && args.scale <= kMaxScale;
}

bool options_in_pieces(const AttentionArgs& args, uint32_t keys) {
  const auto even = [&](const Buffer* buffer, const AttentionStrides& strides, uint64_t size) {
    if (buffer == nullptr) return true;
    const uint64_t bytes = bytes_of_piece(keys, static_cast<uint32_t>(size));
    return buffer->offset % bytes == 0 && strides.batch * size % bytes == 0 && strides.head * size % bytes == 0 &&
           strides.row * size % bytes == 0 && args.seq_kv * size % bytes == 0;
  };
  return (args.bias != nullptr || args.mask != nullptr) &&
         even(args.bias, args.bias_strides, dtype_size(args.bias_type)) && even(args.mask, args.mask_strides, 1);
}

void score_operands(Recorder& recorder, Dispatch& dispatch, const AttentionArgs& args) {
  if (args.q_lengths != nullptr) dispatch.operand(args.q_lengths, 0, args.batch * 4, Access::read);
  if (args.kv_lengths != nullptr) dispatch.operand(args.kv_lengths, 0, args.batch * 4, Access::read);
  if (args.bias != nullptr) {
    dispatch.operand(args.bias, 0, args.bias_elements() * dtype_size(args.bias_type), Access::read);
  }
  if (args.mask != nullptr) dispatch.operand(args.mask, 0, args.mask_elements(), Access::read);
  if (args.bias != nullptr || args.mask != nullptr || args.softcap != 0) {
    const ScoreNumbers numbers = score_numbers(args);
    dispatch.operand(&recorder.parameters(&numbers, sizeof numbers), 0, sizeof numbers, Access::read);
  }
}

uint32_t lengths_of(const AttentionArgs& args) {
  uint32_t lengths = 0;
  if (args.q_lengths != nullptr) lengths |= Wgmma::kRowLengths;
  if (args.kv_lengths != nullptr) lengths |= Wgmma::kKeyLengths;
  if (lengths != 0 && args.causal == TUFF_CAUSAL_BOTTOM_RIGHT) lengths |= Wgmma::kDiagonalByLengths;
  return lengths;
}

namespace {

template <typename Kernel>
Kernel kernel_for(const Call& call) {
  const AttentionArgs& args = call.args;
  Kernel kernel;
  kernel.type = args.dtype;
  kernel.head_dim = static_cast<uint32_t>(args.head_dim);
  kernel.head_dim_v = static_cast<uint32_t>(args.head_dim_v);
  kernel.hiding = call.causal || args.window_left != 0 || args.window_right != 0;
  kernel.lengths = lengths_of(args);
  kernel.lse = args.lse != nullptr;
  kernel.bias = args.bias != nullptr ? args.bias_type : 0;
  kernel.mask = args.mask != nullptr;
  kernel.cap = args.softcap != 0;
  kernel.keys = keys_of_step(kernel, kernel.max_keys(), args.seq_kv);
  kernel.pieces = options_in_pieces(args, kernel.keys);
  return kernel;
}

}  // namespace

bool is_native_variant(std::string_view name) { return name == kVariant; }

bool record_native(Recorder& recorder, const AttentionArgs& args, std::string_view forced) {
  const DeviceTraits& traits = recorder.traits();
  if (!forced.empty() && !is_native_variant(forced)) return false;
  if (!traits.hopper || refusals.has(0)) {
    if (!forced.empty()) fail(TUFF_ERROR_UNSUPPORTED, "TUFF_ATTENTION_VARIANT={} does not run on this device", forced);
    return false;
  }
  if (forced.empty() && args.seq_q < kMinRows) return false;
  const Call call(traits, args, 0);
  const bool floats = computes_floats(call);
  if (!floats && !computes_halves(call)) return false;
  const uint64_t row_tiles = ceil_div(call.args.seq_q, Wgmma::kRows);
  const uint64_t tiles = row_tiles * call.args.heads * call.args.batch;
  if (tiles > kMaxGroups) return false;

  const Wgmma of_halves = floats ? Wgmma{} : kernel_for<Wgmma>(call);
  const Planes of_floats = floats ? kernel_for<Planes>(call) : Planes{};
  const Wgmma& kernel = floats ? of_floats : of_halves;

  const ExtendedShape<uint64_t> shape = call.extended_shape<uint64_t>();
  const uint64_t size = dtype_size(args.dtype);
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  Wgmma::Push push{};
  push.q_batch = shape.q_batch * size, push.q_head = shape.q_head * size, push.q_row = number(shape.q_row * size);
  push.k_batch = shape.k_batch * size, push.k_head = shape.k_head * size, push.k_row = number(shape.k_row * size);
  push.v_batch = shape.v_batch * size, push.v_head = shape.v_head * size, push.v_row = number(shape.v_row * size);
  push.o_batch = shape.o_batch * size, push.o_head = shape.o_head * size, push.o_row = number(shape.o_row * size);
  push.seq_q = shape.seq_q;
  push.seq_kv = shape.seq_kv;
  push.heads = number(call.args.heads);
  push.sharing = number(call.args.heads / call.args.kv_heads);
  push.row_tiles = number(row_tiles);
  push.tiles = number(tiles);
  push.scale_log2 = shape.scale_log2;
  push.diagonal = shape.diagonal;
  push.left = shape.left;
  push.right = shape.right;

  Dispatch dispatch("attention native");
  dispatch.operand(args.q, 0, call.elements[0] * size, Access::read)
      .operand(args.k, 0, call.elements[1] * size, Access::read)
      .operand(args.v, 0, call.elements[2] * size, Access::read)
      .operand(args.o, 0, call.elements[3] * size, Access::write);
  if (args.lse != nullptr) dispatch.operand(args.lse, 0, args.rows() * 4, Access::write);
  score_operands(recorder, dispatch, args);
  const uint64_t cores = traits.cores != 0 ? traits.cores : 16;
  dispatch.push(push)
      .groups(number(std::min(tiles, cores)))
      .work(call.bytes(), call.operations())
      .variant(kVariant.data());
  log(TUFF_LOG_DISPATCH,
      "attention {} {} heads={} seq_q={} seq_kv={} head_dim={} causal={} tiles={} keys={} hiding={} lengths={} bias={} "
      "mask={} cap={} pieces={}",
      kVariant, dtype_name(args.dtype), args.batch * args.heads, args.seq_q, args.seq_kv, args.head_dim, args.causal,
      tiles, kernel.keys, kernel.hiding, kernel.lengths, kernel.bias, kernel.mask, kernel.cap, kernel.pieces);
  // Addresses have 64 bits.
  return refusals.dispatch(recorder, (floats ? of_floats.request() : of_halves.request()).wide(true), dispatch,
                           "attention", 0);
}

}  // namespace tuff::attention
