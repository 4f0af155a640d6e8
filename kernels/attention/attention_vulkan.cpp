// Plans attention on a Vulkan device: chooses a tile by device and shape, and records one dispatch, or several if one
// shader invocation cannot loop over all keys.
//
// TUFF_ATTENTION_VARIANT=<name> in the environment forces a variant of any of the tables, for tests and measurements.
// The variants here can compute every call; the others are used only for calls that they can compute. Forcing a variant
// that the device cannot run is an error.
#include <algorithm>
#include <cassert>
#include <string>

#include "kernels/attention/attention_plan.hpp"
#include "kernels/common/loop_limit.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"
#include "shaders/attention_subgroup.hpp"
#include "shaders/attention_tile.hpp"

namespace tuff {
namespace {

// A tile of query rows x keys at a time x output columns. Shared-memory tiles (attention_tile.comp) count elements;
// lanes is how many invocations share a row, and thread_rows how many rows each has. Subgroup tiles
// (attention_subgroup.comp) count rows and keys in units of the subgroup size, and columns in units of four times that.
struct Variant {
  const char* name;
  bool shared;
  uint32_t rows, keys, columns, thread_rows, lanes;

  uint32_t invocations() const { return rows / thread_rows * lanes; }
  bool shuffles(const DeviceTraits& traits) const {
    return traits.subgroup_shuffle && traits.subgroup_size % lanes == 0 && invocations() % traits.subgroup_size == 0;
  }
  uint64_t shared_bytes(const DeviceTraits& traits) const {
    return shaders::AttentionTile::shared_bytes(
        {.columns = columns, .depth = kDepth, .keys = keys, .lanes = lanes, .rows = rows, .shuffle = shuffles(traits)});
  }

  static constexpr uint32_t kDepth = 16;  // elements of head_dim staged at once
};

// Ordered by columns, then largest first.
constexpr Variant kVariants[] = {
    {"tile_128x64x64", true, 128, 64, 64, 8, 16},   {"tile_64x64x64", true, 64, 64, 64, 4, 16},
    {"tile_32x32x64", true, 32, 32, 64, 4, 8},      {"tile_16x64x64", true, 16, 64, 64, 4, 16},
    {"tile_128x64x128", true, 128, 64, 128, 8, 16}, {"tile_64x64x128", true, 64, 64, 128, 4, 16},
    {"tile_64x64x128b", true, 64, 64, 128, 8, 16},  {"tile_128x32x128", true, 128, 32, 128, 8, 8},
    {"tile_32x32x128", true, 32, 32, 128, 4, 8},    {"tile_16x64x128", true, 16, 64, 128, 4, 16},
    {"tile_64x64x256", true, 64, 64, 256, 4, 16},   {"tile_32x32x256", true, 32, 32, 256, 4, 8},
    {"tile_16x64x256", true, 16, 64, 256, 4, 16},   {"subgroup_1x2x1", false, 1, 2, 1, 0, 0},
    {"subgroup_1x2x2", false, 1, 2, 2, 0, 0},       {"subgroup_1x2x4", false, 1, 2, 4, 0, 0},
};

bool runs_on(const Variant& variant, const DeviceTraits& traits) {
  if (!variant.shared) return traits.subgroup_ballot && traits.subgroup_shuffle;
  return variant.invocations() <= traits.max_invocations && variant.invocations() <= traits.max_local_size[0] &&
         variant.shared_bytes(traits) <= traits.shared_bytes;
}

uint64_t rows_of(const Variant& variant, const DeviceTraits& traits) {
  return uint64_t{variant.rows} * (variant.shared ? 1 : traits.subgroup_size);
}

uint64_t columns_of(const Variant& variant, const DeviceTraits& traits) {
  return uint64_t{variant.columns} * (variant.shared ? 1 : 4 * traits.subgroup_size);
}

// The maximum number of keys of one dispatch, a multiple of the keys of one step. It is derived from the loop
// iterations of a step, plus one for the end of each loop. The bound always includes recomputing overflowed scores.
// Loops over lanes that the compiler does not unroll count too, so the estimate exceeds the loops in the source (Mesa
// 22.3 with 8 lanes: 28 iterations besides those over head_dim).
uint64_t keys_at_once(const Variant& variant, const DeviceTraits& traits, uint64_t head_dim) {
  if (!traits.cpu) return ~uint64_t{0};
  uint64_t keys = 0, iterations = 0;
  if (variant.shared) {
    constexpr uint64_t kDepth = Variant::kDepth, kReductions = 64;
    const uint64_t lane_keys = variant.keys / variant.lanes;
    const uint64_t overflow = lane_keys * (variant.thread_rows * (head_dim + 2) + 2) + 2;
    keys = variant.keys;
    iterations = ceil_div(head_dim, kDepth) + variant.keys / kDepth * (kDepth + 2) + overflow + kReductions;
  } else {
    keys = uint64_t{variant.keys} * traits.subgroup_size;
    iterations = 2 * (ceil_div(head_dim, 4) + 1) + 8 * uint64_t{traits.subgroup_size} * variant.rows;
  }
  assert(iterations <= kMaxLoopIterationsCpu);  // head_dim is at most 1024
  return kMaxLoopIterationsCpu / iterations * keys;
}

// Bytes of the state that a workgroup saves from one range of keys to the next.
uint64_t state_bytes(const Variant& variant, const DeviceTraits& traits) {
  if (variant.shared) {
    return uint64_t{variant.invocations()} * 4 *
           shaders::AttentionTile::state_values(
               {.columns = variant.columns, .lanes = variant.lanes, .tr = variant.thread_rows});
  }
  return uint64_t{traits.subgroup_size} * 4 *
         shaders::AttentionSubgroup::state_values(
             {.column_blocks = variant.columns, .row_blocks = variant.rows, .width = traits.subgroup_size});
}

// Chooses the narrowest output tile that holds head_dim_v, because each further tile computes the scores again, and the
// most rows that are not mostly wasted and give every core work.
const Variant& choose(const DeviceTraits& traits, const AttentionArgs& args, std::string_view forced) {
  for (const Variant& variant : kVariants) {
    if (forced != variant.name) continue;
    if (!runs_on(variant, traits)) {
      fail(TUFF_ERROR_UNSUPPORTED, "TUFF_ATTENTION_VARIANT={} does not run on this device", forced);
    }
    return variant;
  }
  if (!forced.empty() && !attention::is_matrix_variant(forced) && !attention::is_split_variant(forced) &&
      !attention::is_native_variant(forced) && !attention::is_decode_variant(forced) &&
      !attention::is_dequantised_variant(forced)) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "TUFF_ATTENTION_VARIANT={} is not a variant of attention", forced);
  }
  const uint64_t cores = traits.cores == 0 ? 16 : traits.cores;
  const Variant* best = nullptr;
  for (const Variant& variant : kVariants) {
    if (variant.shared == traits.cpu || !runs_on(variant, traits)) continue;
    if (best != nullptr) {
      const uint64_t columns = columns_of(variant, traits), best_columns = columns_of(*best, traits);
      if (columns != best_columns) {
        if (best_columns >= args.head_dim_v) break;  // wide enough, and the rest is wider
      } else {
        // Fewer rows only if the best so far wastes half of its rows or leaves cores idle.
        const uint64_t rows = rows_of(*best, traits);
        const uint64_t groups = ceil_div(args.seq_q, rows) * args.batch * args.heads;
        if (rows < 2 * args.seq_q && groups >= cores) continue;
        if (rows_of(variant, traits) >= rows) continue;
      }
    }
    best = &variant;
  }
  if (best == nullptr) fail(TUFF_ERROR_UNSUPPORTED, "no variant of attention runs on this device");
  return *best;
}

KernelRequest tile_kernel(const DeviceTraits& traits, const Variant& variant, const attention::Call& call, bool ranges,
                          bool vec) {
  return shaders::AttentionTile::request({.call = call.defines(traits),
                                          .columns = variant.columns,
                                          .depth = Variant::kDepth,
                                          .keys = variant.keys,
                                          .lanes = variant.lanes,
                                          .parts = 0,
                                          .ranges = ranges,
                                          .rows = variant.rows,
                                          .shuffle = variant.shuffles(traits),
                                          .tr = variant.thread_rows,
                                          .vec = vec});
}

KernelRequest subgroup_kernel(const DeviceTraits& traits, const Variant& variant, const attention::Call& call,
                              bool ranges, bool vec) {
  return shaders::AttentionSubgroup::request({.call = call.defines(traits),
                                              .column_blocks = variant.columns,
                                              .key_blocks = variant.keys,
                                              .pairs = traits.addresses,
                                              .parts = 0,
                                              .ranges = ranges,
                                              .row_blocks = variant.rows,
                                              .vec = vec,
                                              .width = traits.subgroup_size});
}

}  // namespace

void record_attention(Recorder& recorder, const AttentionArgs& args) {
  record_attention(recorder, args, kMaxAttentionState);
}

void record_attention(Recorder& recorder, const AttentionArgs& args, uint64_t max_state) {
  if (args.batch == 0 || args.heads == 0) return;
  const auto& variable = forced_variant<"TUFF_ATTENTION_VARIANT">();
  const std::string_view forced = variable ? *variable : std::string_view();
  if (attention::record_dequantised(recorder, args, forced) || attention::record_decode(recorder, args, forced) ||
      attention::record_split(recorder, args, forced) || attention::record_native(recorder, args, forced) ||
      attention::record_matrices(recorder, args, forced)) {
    return;
  }
  const DeviceTraits& traits = recorder.traits();
  const Variant& variant = choose(traits, args, forced);

  const uint64_t row_tiles = ceil_div(args.seq_q, rows_of(variant, traits));
  const uint64_t column_tiles = ceil_div(args.head_dim_v, columns_of(variant, traits));
  const uint64_t groups = row_tiles * column_tiles * args.heads * args.batch;
  if (groups > attention::kMaxGroups) {
    fail(TUFF_ERROR_UNSUPPORTED, "batch={} heads={} seq_q={} is beyond the limits of this version", args.batch,
         args.heads, args.seq_q);
  }
  const uint64_t at_once = std::min(args.seq_kv, keys_at_once(variant, traits, args.head_dim));
  const bool may_range = at_once < args.seq_kv;
  // How many workgroups save their state at a time.
  const uint64_t saving =
      may_range ? std::clamp<uint64_t>(max_state / state_bytes(variant, traits), 1, groups) : groups;
  const uint64_t state = may_range ? saving * state_bytes(variant, traits) : 0;
  const attention::Call call(traits, args, state / 4);
  // Only the keys that some row sees.
  const uint64_t keys = call.keys_seen();
  const bool ranges = at_once < keys;
  const bool vec = call.in_pieces_of(4);

  KernelRequest kernel = variant.shared ? tile_kernel(traits, variant, call, ranges, vec)
                                        : subgroup_kernel(traits, variant, call, ranges, vec);
  kernel.wide(call.wide);
  call.bind_blocks(kernel);

  log(TUFF_LOG_DISPATCH,
      "attention {} {} heads={} seq_q={} seq_kv={} head_dim={} causal={} groups={} at_once={} vec={} extended={} "
      "wide={}",
      variant.name, dtype_name(args.dtype), args.batch * args.heads, args.seq_q, args.seq_kv, args.head_dim,
      args.causal, groups, at_once, vec, call.extended, call.wide);
  const Buffer* saved = ranges ? &recorder.scratch(state) : nullptr;
  const double share = ranges ? static_cast<double>(at_once) / static_cast<double>(keys) : 1.0;
  for (uint64_t first = 0; first < groups; first += ranges ? saving : groups) {
    const uint64_t count = ranges ? std::min(saving, groups - first) : groups;
    const double part = share * static_cast<double>(count) / static_cast<double>(groups);
    attention::Progress progress{.groups = static_cast<uint32_t>(count), .first_group = static_cast<uint32_t>(first)};
    do {
      // The last range covers all remaining visible keys; the kernel recognises it by key_end = seq_kv.
      const uint64_t end = progress.key_begin + at_once;
      progress.key_end = static_cast<uint32_t>(ranges && end < keys ? end : args.seq_kv);
      Dispatch dispatch("attention");
      call.operands(recorder, dispatch, saved, ranges ? state : 0, Access::read_write);
      call.push(dispatch, progress);
      dispatch.groups_linear(count, traits).work(call.bytes() * part, call.operations() * part).variant(variant.name);
      recorder.dispatch(kernel, dispatch);
      progress.key_begin = progress.key_end;
    } while (progress.key_end < args.seq_kv);
  }
}

}  // namespace tuff
