// Attention for few query rows: how keys are cut into parts, the dispatch of these and of what merges them.
#include <algorithm>
#include <bit>

#include "kernels/attention/attention_plan.hpp"
#include "kernels/common/loop_limit.hpp"
#include "runtime/log.hpp"
#include "runtime/status.hpp"
#include "shaders.hpp"

namespace tuff::attention {
namespace {

// Rows of a tile: those of all query heads that share a head of keys.
struct SplitVariant {
  const char* name;
  uint32_t rows;
};
constexpr SplitVariant kVariants[] = {{"split_1", 1}, {"split_2", 2}, {"split_4", 4}, {"split_8", 8}};

constexpr uint64_t kMaxHeadDim = 256, kMaxRows = 8;
constexpr uint32_t kUnroll = 4, kSubgroups = 4;
// Groups that a core works on at once, and the fewest keys that are worth one.
constexpr uint64_t kGroupsPerCore = 4, kLeastKeys = 256;
// Turns of loops that a step of the keys takes on a processor, all side paths included but the sums made anew.
constexpr uint64_t kTurns = 8;

const SplitVariant* find(std::string_view name) {
  return std::find_if(std::begin(kVariants), std::end(kVariants),
                      [&](const SplitVariant& row) { return row.name == name; });
}

// How a subgroup lies over a row of keys or values.
struct Layout {
  Layout(const DeviceTraits& traits, const AttentionArgs& args)
      : width(traits.subgroup_size), piece(16 / static_cast<uint32_t>(dtype_size(args.dtype))) {
    const auto pieces = static_cast<uint32_t>(std::max(args.head_dim, args.head_dim_v) / piece);
    lanes = std::min(width, std::bit_ceil(std::max(pieces, 1u)));
    elements = static_cast<uint32_t>(ceil_div(pieces, lanes)) * piece;
    subgroups = traits.cpu ? 1 : kSubgroups;
    step = subgroups * (width / lanes) * kUnroll;
  }
  uint32_t width, piece;
  uint32_t lanes = 0;     // of a row
  uint32_t elements = 0;  // of an invocation
  uint32_t subgroups = 0, step = 0;
};

// Enough rows for all, as far as registers hold their queries and outputs.
const SplitVariant* choose(const DeviceTraits& traits, const Layout& layout, uint64_t rows) {
  const uint64_t most = traits.cpu ? std::max<uint64_t>(1, 32 / layout.elements) : kMaxRows;
  const auto* variant = std::find_if(std::begin(kVariants), std::end(kVariants),
                                     [&](const SplitVariant& row) { return row.rows >= std::min(rows, most); });
  return variant;
}

}  // namespace

bool is_split_variant(std::string_view name) { return find(name) != std::end(kVariants); }

bool record_split(Recorder& recorder, const AttentionArgs& args, std::string_view forced) {
  const DeviceTraits& traits = recorder.traits();
  const SplitVariant* variant = find(forced);
  if (!forced.empty() && variant == std::end(kVariants)) return false;
  if (!traits.subgroup_arithmetic || !traits.subgroup_shuffle || !traits.subgroup_ballot ||
      !std::has_single_bit(traits.subgroup_size)) {
    if (!forced.empty()) fail(TUFF_ERROR_UNSUPPORTED, "TUFF_ATTENTION_VARIANT={} does not run on this device", forced);
    return false;
  }
  const uint64_t sharing = args.heads / args.kv_heads, rows = args.seq_q * sharing;
  // On a processor attention_subgroup.comp does eight rows of a head in the time of one: one row of each head is as
  // fast there, and with two heads on one of keys both are (Mesa 22.3; four heads on one: 7.8 against 14.8 ms).
  const bool suits = traits.cpu ? args.seq_q == 1 && sharing > 2 && rows <= kMaxRows : args.seq_q <= kMaxRows;
  if (forced.empty() && !suits) return false;
  const Layout layout(traits, args);
  if (std::max(args.head_dim, args.head_dim_v) > kMaxHeadDim) return false;
  if (!Call(traits, args, 0).in_pieces_of(layout.piece)) return false;
  if (forced.empty()) variant = choose(traits, layout, rows);
  const uint64_t shared = (uint64_t{layout.step} + 2 * layout.subgroups + args.head_dim_v) * variant->rows * 4;
  if (layout.width * layout.subgroups > traits.max_invocations || shared > traits.shared_bytes) return false;

  const uint64_t tiles = ceil_div(rows, variant->rows) * args.batch * args.kv_heads;
  const uint64_t cores = traits.cores == 0 ? 16 : traits.cores;
  const uint64_t wanted = std::max<uint64_t>(1, cores * kGroupsPerCore / tiles);
  uint64_t part = std::max(ceil_div(args.seq_kv, wanted), kLeastKeys);
  if (traits.cpu) part = std::min(part, kMaxLoopIterationsCpu / kTurns * layout.step);
  part = ceil_div(part, layout.step) * layout.step;
  const uint64_t parts = ceil_div(args.seq_kv, part), groups = tiles * parts;
  if (groups > kMaxGroups || args.rows() > kMaxGroups) return false;

  // Mirrors Parts of attention_common.glsl.
  const uint64_t numbers = variant->rows * args.head_dim_v + ceil_div(2 * variant->rows, 4) * 4;
  const uint64_t scratch_bytes = parts > 1 ? groups * numbers * 4 : 0;
  const Call call(traits, args, scratch_bytes / 4);
  const auto define = [&](KernelRequest& kernel) {
    kernel.define("HEAD_DIM_V_IS", static_cast<int64_t>(args.head_dim_v)).define("ROWS", variant->rows);
    kernel.define("WIDTH", layout.width).define("RANGES", 0).define("PARTS", parts > 1);
    call.define(kernel, traits);
  };
  KernelRequest kernel(shaders::attention_split);
  kernel.define("HEAD_DIM_IS", static_cast<int64_t>(args.head_dim)).define("LANES", layout.lanes);
  kernel.define("SUBGROUPS", layout.subgroups).define("UNROLL", kUnroll);
  define(kernel);
  log(TUFF_LOG_DISPATCH,
      "attention {} {} heads={} seq_q={} seq_kv={} head_dim={} causal={} parts={} groups={} extended={} wide={}",
      variant->name, dtype_name(args.dtype), args.batch * args.heads, args.seq_q, args.seq_kv, args.head_dim,
      args.causal, parts, groups, call.extended, call.wide);

  const Buffer* scratch = parts > 1 ? &recorder.scratch(scratch_bytes) : nullptr;
  const auto part_keys = static_cast<uint32_t>(part), part_count = static_cast<uint32_t>(parts);
  Dispatch dispatch("attention few rows");
  call.operands(recorder, dispatch, scratch, scratch_bytes, Access::write);
  call.push(dispatch, {static_cast<uint32_t>(groups), part_keys, part_count});
  dispatch.groups_linear(groups, traits).work(call.bytes(), call.operations());
  recorder.dispatch(kernel, dispatch);
  if (parts == 1) return true;

  KernelRequest merge(shaders::attention_merge);
  define(merge);
  Dispatch second("attention merge");
  call.operands(recorder, second, scratch, scratch_bytes, Access::read);
  call.push(second, {static_cast<uint32_t>(call.args.rows()), part_keys, part_count});
  second.groups_linear(call.args.rows(), traits).work(static_cast<double>(scratch_bytes), 0);
  recorder.dispatch(merge, second);
  return true;
}

}  // namespace tuff::attention
