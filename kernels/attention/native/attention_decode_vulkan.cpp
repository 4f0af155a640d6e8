// Plans attention of few query rows for NVIDIA's Hopper GPUs: a kernel in PTX (attention_decode.cpp), then
// attention_merge.comp.
#include <algorithm>
#include <optional>

#include "kernels/attention/attention_plan.hpp"
#include "kernels/attention/native/attention_decode.hpp"
#include "kernels/attention/native/attention_wgmma.hpp"
#include "kernels/native/refusals.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"

namespace tuff::attention {
namespace {

constexpr std::string_view kVariant = "native_decode";
Refusals refusals;
constexpr uint64_t kStep = uint64_t{Decode::kKeys} * Decode::kWarps;  // keys of a block's step
constexpr uint64_t kMinKeys = 2 * kStep;                              // of a part
constexpr uint64_t kEnds = 64;                                        // the time of a block outside its keys, in keys

// Whether this kernel is best: with more rows, attention_wgmma.cpp.
bool suits(const AttentionArgs& args) { return args.seq_q < kManyRows; }

// The largest pieces in which rows of keys or values can be loaded: as Decode::k_piece; none if there are none.
std::optional<uint32_t> piece_of(const Decode& kernel, const AttentionArgs& args, const Buffer& rows,
                                 const AttentionStored& stored, const AttentionStrides& strides, uint64_t dim) {
  const auto bytes = [&](uint64_t numbers) { return args.bytes_of(stored.as, numbers); };
  const uint64_t rows_at = rows.offset | bytes(strides.batch) | bytes(strides.head);
  if (in_blocks(stored.as) && strides.row == dim && rows_at % 16 == 0) return 0;
  for (const uint32_t piece : {16u, 8u, 4u}) {
    if ((rows_at | bytes(strides.row)) % piece != 0) continue;
    if (kernel.loads({static_cast<uint32_t>(dim), stored.as, piece})) return piece;
  }
  return std::nullopt;
}

bool computes(const Call& call) {
  const AttentionArgs& args = call.args;
  const auto whole = [](uint64_t dim) { return dim % 16 == 0 && dim <= Decode::kMaxHeadDim; };
  const auto in_range = [&](const AttentionStrides& strides) {
    return strides.row * dtype_size(args.dtype) <= UINT32_MAX;
  };
  if (args.k_stored.scales != nullptr || args.v_stored.scales != nullptr) return false;
  const bool rows = args.seq_q == 1 || (in_range(args.q_strides) && in_range(args.o_strides));
  return (args.dtype == TUFF_F16 || args.dtype == TUFF_BF16) && args.heads / args.kv_heads <= Decode::kWarpRows &&
         whole(args.head_dim) && whole(args.head_dim_v) && call.in_pieces_of(8) && has_usual_scale(args) &&
         (!call.scaled || args.scale <= kMaxScoreScale) && in_range(args.k_strides) && in_range(args.v_strides) && rows;
}

// The parts of the keys, for which the multiprocessors are busy for the shortest time.
Parts cut(uint64_t keys, uint64_t tiles, uint64_t slots) {
  Parts best;
  uint64_t shortest = ~uint64_t{0};
  for (uint64_t count = 1; count == 1 || (count <= ceil_div(keys, kMinKeys) && count <= 4 * slots); ++count) {
    const uint64_t each = ceil_div(ceil_div(std::max<uint64_t>(keys, 1), count), kStep) * kStep;
    const uint64_t parts = std::max<uint64_t>(1, ceil_div(keys, each));
    const uint64_t time = ceil_div(tiles * parts, slots) * (each + kEnds);
    if (time >= shortest) continue;
    shortest = time;
    best = {.keys = static_cast<uint32_t>(each), .count = static_cast<uint32_t>(parts)};
  }
  return best;
}

// What the text of the kernel depends on, but for `parts`.
std::optional<Decode> kernel_of(const Call& call) {
  const AttentionArgs& args = call.args;
  Decode kernel;
  kernel.type = args.dtype;
  kernel.head_dim = static_cast<uint32_t>(args.head_dim);
  kernel.head_dim_v = static_cast<uint32_t>(args.head_dim_v);
  kernel.lengths = lengths_of(args);
  kernel.bias = args.bias != nullptr ? args.bias_type : 0;
  kernel.mask = args.mask != nullptr;
  kernel.cap = args.softcap != 0;
  kernel.pieces = options_in_pieces(args, Decode::kKeys);
  const bool limited = call.causal || args.window_left != 0 || args.window_right != 0 || args.q_lengths != nullptr;
  kernel.hiding = limited && (args.seq_q > 1 || kernel.options());
  const uint64_t rows = args.seq_q * (args.heads / args.kv_heads);
  kernel.rows = kernel.options() ? Decode::kWarpRows : 8;
  while (kernel.rows < std::min<uint64_t>(rows, Decode::kMaxRows)) kernel.rows *= 2;
  kernel.k_stored = args.k_stored.as, kernel.v_stored = args.v_stored.as;
  const auto k_piece = piece_of(kernel, args, *args.k, args.k_stored, args.k_strides, args.head_dim);
  const auto v_piece = piece_of(kernel, args, *args.v, args.v_stored, args.v_strides, args.head_dim_v);
  if (!k_piece || !v_piece) return std::nullopt;
  kernel.k_piece = *k_piece, kernel.v_piece = *v_piece;
  // The keys of a part begin at a multiple of 16 then, where a window may not.
  kernel.hiding = kernel.hiding || (kernel.packed() && args.window_left != 0);
  while (!kernel.legal() && kernel.rows > Decode::kWarpRows) kernel.rows /= 2;
  return kernel.legal() ? std::optional(kernel) : std::nullopt;
}

}  // namespace

bool is_decode_variant(std::string_view name) { return name == kVariant; }

bool record_decode(Recorder& recorder, const AttentionArgs& args, std::string_view forced) {
  const DeviceTraits& traits = recorder.traits();
  if (!forced.empty() && !is_decode_variant(forced)) return false;
  if (!traits.hopper || !merges_on(traits) || refusals.has(0)) {
    if (!forced.empty()) fail(TUFF_ERROR_UNSUPPORTED, "TUFF_ATTENTION_VARIANT={} does not run on this device", forced);
    return false;
  }
  if (forced.empty() && !suits(args)) return false;
  const Call plain(traits, args, 0);  // without scratch memory for parts
  if (!computes(plain)) return false;

  const std::optional<Decode> possible = kernel_of(plain);
  if (!possible) return false;
  Decode kernel = *possible;
  const uint64_t sharing = args.heads / args.kv_heads, row_tiles = ceil_div(args.seq_q * sharing, kernel.rows);
  const uint64_t tiles = args.batch * args.kv_heads * row_tiles;
  const uint64_t cores = traits.cores != 0 ? traits.cores : 16;
  const Parts parts = cut(args.seq_kv, tiles, cores * kernel.blocks_per_core());
  kernel.parts = parts.count > 1 || args.lse != nullptr;
  const uint64_t groups = tiles * parts.count,
                 scratch_bytes = kernel.parts ? groups * bytes_of_part(kernel.rows, args) : 0;
  if (groups > traits.max_groups[0] || args.rows() > kMaxGroups) return false;
  const Call call(traits, args, scratch_bytes / 4);
  const Buffer* const scratch = kernel.parts ? &recorder.scratch(scratch_bytes) : nullptr;

  const ExtendedShape<uint64_t> shape = call.extended_shape<uint64_t>();
  const uint64_t size = dtype_size(args.dtype);
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  Decode::Push push{};
  push.q_batch = shape.q_batch * size, push.q_head = shape.q_head * size;
  if (args.seq_q > 1) push.q_row = number(shape.q_row * size), push.o_row = number(shape.o_row * size);
  const auto of_keys = [&](uint64_t stride) { return args.bytes_of(args.k_stored.as, stride); };
  const auto of_values = [&](uint64_t stride) { return args.bytes_of(args.v_stored.as, stride); };
  push.k_batch = of_keys(shape.k_batch), push.k_head = of_keys(shape.k_head), push.k_row = number(of_keys(shape.k_row));
  push.v_batch = of_values(shape.v_batch), push.v_head = of_values(shape.v_head);
  push.v_row = number(of_values(shape.v_row));
  push.o_batch = shape.o_batch * size, push.o_head = shape.o_head * size;
  push.seq_q = shape.seq_q, push.seq_kv = shape.seq_kv;
  push.kv_heads = number(call.args.kv_heads);
  push.sharing = number(sharing);
  push.row_tiles = number(row_tiles);
  push.parts = parts.count;
  push.part_keys = parts.keys;
  push.scale_log2 = shape.scale_log2;
  push.diagonal = shape.diagonal;
  push.left = shape.left;
  push.right = shape.right;

  Dispatch dispatch("attention native");
  dispatch.operand(args.q, 0, call.elements[0] * size, Access::read)
      .operand(args.k, 0, args.k_bytes(), Access::read)
      .operand(args.v, 0, args.v_bytes(), Access::read)
      .operand(kernel.parts ? scratch : args.o, 0, kernel.parts ? scratch_bytes : call.elements[3] * size,
               Access::write);
  score_operands(recorder, dispatch, args);
  dispatch.push(push).groups(number(groups)).work(call.bytes(), call.operations()).variant(kVariant.data());
  log(TUFF_LOG_DISPATCH,
      "attention {} {} heads={} seq_q={} seq_kv={} head_dim={} causal={} rows={} parts={} keys={} groups={} hiding={} "
      "lengths={} bias={} mask={} cap={} pieces={} stored={},{} loads={},{}",
      kVariant, dtype_name(args.dtype), args.batch * args.heads, args.seq_q, args.seq_kv, args.head_dim, args.causal,
      kernel.rows, parts.count, parts.keys, groups, kernel.hiding, kernel.lengths, kernel.bias, kernel.mask, kernel.cap,
      kernel.pieces, kernel.k_stored, kernel.v_stored, kernel.k_piece, kernel.v_piece);
  // Addresses have 64 bits.
  if (!refusals.dispatch(recorder, kernel.request().wide(true), dispatch, "attention", 0)) return false;
  if (kernel.parts) merge_parts(recorder, call, kernel.rows, parts, *scratch, scratch_bytes);
  return true;
}

}  // namespace tuff::attention
