// Split-KV attention for few query rows: cuts the keys into parts, records their dispatch and that of the merge.
#include <algorithm>
#include <bit>

#include "kernels/attention/attention_plan.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/matrix_quads.hpp"
#include "kernels/common/workgroup.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"
#include "shaders/attention_matrix.hpp"
#include "shaders/attention_split.hpp"

namespace tuff::attention {
namespace {

constexpr uint32_t kMatrixRows = 16;  // of a tile with cooperative matrices

// Rows of a tile, from all query heads that share a kv head.
struct SplitVariant {
  const char* name;
  uint32_t rows;

  bool matrices() const { return rows == kMatrixRows; }
};
constexpr SplitVariant kVariants[] = {
    {"split_1", 1}, {"split_2", 2}, {"split_4", 4}, {"split_8", 8}, {"split_16", kMatrixRows},
};

constexpr uint32_t kQuantisedPiece = 8;  // elements of an invocation at a time, if keys or values are quantised
constexpr uint64_t kMaxHeadDim = 256, kMaxRows = 8;  // the maxima of attention_split.comp
constexpr uint32_t kUnroll = 4, kSubgroups = 4;      // loads in flight; subgroups of a workgroup on a GPU
// Workgroups that a core runs at once, and the fewest keys that are worth a workgroup.
constexpr uint64_t kGroupsPerCore = 4, kMinKeys = 256;
// The same with cooperative matrices, where a workgroup is one subgroup. Registers allow eight of them on a
// multiprocessor of an H200; a ninth would wait for another to finish.
constexpr uint32_t kMatrixKeys = 16;  // keys of a step
constexpr uint64_t kMatrixGroupsPerCore = 8, kMinMatrixKeys = 64;
// Loop iterations of one step of keys on a CPU device, including all side paths except recomputing overflowed scores.
constexpr uint64_t kTurns = 8;

const SplitVariant* find(std::string_view name) {
  return std::find_if(std::begin(kVariants), std::end(kVariants),
                      [&](const SplitVariant& row) { return row.name == name; });
}

// How the lanes of a subgroup are laid out over a row of keys or values.
struct Layout {
  Layout(const DeviceTraits& traits, const AttentionArgs& args)
      : width(traits.subgroup_size),
        piece(args.quantised() ? kQuantisedPiece : 16 / static_cast<uint32_t>(dtype_size(args.dtype))) {
    // At least one, even for shorter rows, which holds() rejects.
    const auto pieces = static_cast<uint32_t>(ceil_div(std::max(args.head_dim, args.head_dim_v), piece));
    lanes = std::min(width, std::bit_ceil(pieces));
    elements = static_cast<uint32_t>(ceil_div(pieces, lanes)) * piece;
    subgroups = traits.cpu ? 1 : kSubgroups;
    step = subgroups * (width / lanes) * kUnroll;
  }
  uint32_t width, piece;
  uint32_t lanes = 0;     // per row
  uint32_t elements = 0;  // of a row, per invocation
  uint32_t subgroups = 0, step = 0;

  bool holds(const SplitVariant& variant, const DeviceTraits& traits, const Call& call) const {
    const uint64_t shared = (uint64_t{step} + 2 * subgroups + call.args.head_dim_v) * variant.rows * 4;
    // Eight elements that are not quantised have to be 16 bytes.
    const bool both = call.args.k_stored.as != 0 && call.args.v_stored.as != 0;
    if (call.args.quantised() && !both && dtype_size(call.args.dtype) != 2) return false;
    return std::max(call.args.head_dim, call.args.head_dim_v) <= kMaxHeadDim && call.in_pieces_of(piece) &&
           width * subgroups <= max_along_x(traits) && shared <= traits.shared_bytes;
  }
};

// How the keys are cut: into the longest parts that give every core enough workgroups, within the limits above.
struct Cut {
  Cut(const DeviceTraits& traits, const AttentionArgs& args, const SplitVariant& variant, const Layout& layout) {
    const uint64_t step = variant.matrices() ? kMatrixKeys : layout.step;
    tiles = ceil_div(args.seq_q * (args.heads / args.kv_heads), variant.rows) * args.batch * args.kv_heads;
    const uint64_t cores = traits.cores == 0 ? 16 : traits.cores;
    const uint64_t each = variant.matrices() ? kMatrixGroupsPerCore : kGroupsPerCore;
    const uint64_t least = variant.matrices() ? kMinMatrixKeys : kMinKeys;
    keys = std::max(ceil_div(args.seq_kv, std::max<uint64_t>(1, cores * each / tiles)), least);
    if (traits.cpu) keys = std::min(keys, kMaxLoopIterationsCpu / kTurns * step);
    keys = ceil_div(keys, step) * step;
    parts = ceil_div(args.seq_kv, keys);
  }
  uint64_t groups() const { return tiles * parts; }

  uint64_t tiles = 0, keys = 0, parts = 0;
};

// The smallest tile that holds all rows, as far as registers hold their queries and outputs.
const SplitVariant* choose(const DeviceTraits& traits, const Layout& layout, uint64_t rows) {
  const uint64_t most = traits.cpu ? std::max<uint64_t>(1, 32 / layout.elements) : kMaxRows;
  const auto* variant = std::find_if(std::begin(kVariants), std::end(kVariants),
                                     [&](const SplitVariant& row) { return row.rows >= std::min(rows, most); });
  return variant;
}

KernelRequest matrix_kernel(const DeviceTraits& traits, const Call& call, bool quads) {
  const AttentionArgs& args = call.args;
  KernelRequest kernel = shaders::AttentionMatrix::request({.call = call.defines(traits),
                                                            .head_dim_is = args.head_dim,
                                                            .head_dim_v_is = args.head_dim_v,
                                                            .keys = kMatrixKeys,
                                                            .parts = 1,
                                                            .prefetch = 1,
                                                            .quads = quads,
                                                            .ranges = 0,
                                                            .row_blocks = 1,
                                                            .subgroups = 1,
                                                            .width = traits.subgroup_size});
  kernel.matrices(args.dtype == TUFF_BF16 ? Matrices::bf16 : Matrices::f16).wide(call.wide);
  return kernel;
}

KernelRequest split_kernel(const DeviceTraits& traits, const Layout& layout, const Call& call, uint32_t rows,
                           bool merges) {
  const AttentionArgs& args = call.args;
  KernelRequest kernel = shaders::AttentionSplit::request({.call = call.defines(traits),
                                                           .head_dim_is = args.head_dim,
                                                           .head_dim_v_is = args.head_dim_v,
                                                           .lanes = layout.lanes,
                                                           .parts = merges,
                                                           .ranges = 0,
                                                           .rows = rows,
                                                           .subgroups = layout.subgroups,
                                                           .unroll = kUnroll,
                                                           .width = layout.width});
  kernel.wide(call.wide);
  call.bind_blocks(kernel);
  return kernel;
}

}  // namespace

bool is_split_variant(std::string_view name) { return find(name) != std::end(kVariants); }

bool record_split(Recorder& recorder, const AttentionArgs& args, std::string_view forced) {
  const DeviceTraits& traits = recorder.traits();
  const SplitVariant* variant = find(forced);
  if (!forced.empty() && variant == std::end(kVariants)) return false;
  const bool runs = merges_on(traits);
  if (!runs || (!forced.empty() && variant->matrices() && !has_matrices(traits, TUFF_F16))) {
    if (!forced.empty()) fail(TUFF_ERROR_UNSUPPORTED, "TUFF_ATTENTION_VARIANT={} does not run on this device", forced);
    return false;
  }
  if (forced.empty() && args.seq_q >= kMatrixRows) return false;
  const Call plain(traits, args, 0);  // without scratch memory for parts
  const bool matrices = multiplies(traits, plain);
  const uint64_t sharing = args.heads / args.kv_heads, rows = args.seq_q * sharing;
  const Layout layout(traits, args);
  if (forced.empty()) {
    // On a CPU device attention_subgroup.comp computes eight rows of a head in the time of one. It is as fast as this
    // kernel for one row per head, also if two heads share a kv head (Mesa 22.3; if four share it: 7.8 ms here, 14.8 ms
    // there).
    const bool suits =
        traits.cpu ? args.seq_q == 1 && sharing > 2 && rows <= kMaxRows : matrices || args.seq_q <= kMaxRows;
    if (!suits) return false;
    // A single row in f16 is as fast without cooperative matrices (H200, 64 x 32 heads: 4.0 TB/s; with them 3.9).
    const bool single = rows == 1 && args.dtype == TUFF_F16;
    variant = matrices && !single ? find("split_16") : choose(traits, layout, rows);
  }
  if (variant->matrices() ? !matrices : !layout.holds(*variant, traits, plain)) return false;
  const Cut cut(traits, args, *variant, layout);
  if (cut.groups() > kMaxGroups || args.rows() > kMaxGroups) return false;

  // Partial results of the parts: outputs, references and sums of weights (STATISTICS of attention_common.glsl).
  const bool merges = cut.parts > 1 || variant->matrices();
  const uint64_t scratch_bytes = merges ? cut.groups() * bytes_of_part(variant->rows, args) : 0;
  const Call call(traits, args, scratch_bytes / 4);
  KernelRequest kernel = variant->matrices() ? matrix_kernel(traits, call, recorder.holds(matrix_quads))
                                             : split_kernel(traits, layout, call, variant->rows, merges);
  log(TUFF_LOG_DISPATCH,
      "attention {} {} heads={} seq_q={} seq_kv={} head_dim={} causal={} parts={} groups={} extended={} wide={}",
      variant->name, dtype_name(args.dtype), args.batch * args.heads, args.seq_q, args.seq_kv, args.head_dim,
      args.causal, cut.parts, cut.groups(), call.extended, call.wide);

  const Buffer* scratch = merges ? &recorder.scratch(scratch_bytes) : nullptr;
  const auto part_keys = static_cast<uint32_t>(cut.keys), part_count = static_cast<uint32_t>(cut.parts);
  Dispatch dispatch("attention few rows");
  call.operands(recorder, dispatch, scratch, scratch_bytes, Access::write);
  call.push(dispatch, {.groups = static_cast<uint32_t>(cut.groups()), .key_begin = part_keys, .key_end = part_count});
  dispatch.groups_linear(cut.groups(), traits).work(call.bytes(), call.operations()).variant(variant->name);
  recorder.dispatch(kernel, dispatch);
  if (!merges) return true;

  merge_parts(recorder, call, variant->rows, {part_keys, part_count}, *scratch, scratch_bytes);
  return true;
}

}  // namespace tuff::attention
