// Plans the gradients of attention on a Vulkan device. NVIDIA's Hopper GPUs compute those of 16-bit types by kernels in
// PTX (native/attention_backward_native_vulkan.cpp). Otherwise CPU devices, and GPUs for long sequences, compute blocks
// of pairs by products of matrices (attention_backward_products_vulkan.cpp); what is left takes a pass over the rows
// (attention_backward_sums.comp), then one kernel for dk and dv and one for dq (attention_backward_tile.comp), each of
// them only if it is wanted.
//
// TUFF_ATTENTION_BACKWARD_VARIANT=<name> in the environment forces a tile, "products" or the kernels in PTX
// ("native_128x64"; for calls that these can compute), for tests and measurements.
#include <algorithm>
#include <cassert>
#include <limits>
#include <string_view>

#include "kernels/attention/attention_backward_plan.hpp"
#include "kernels/attention/attention_plan.hpp"
#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/common/scratch_parts.hpp"
#include "kernels/memory/memory.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "planning/status.hpp"
#include "shaders/attention_backward_sums.hpp"
#include "shaders/attention_backward_tile.hpp"

namespace tuff {
namespace attention_backward {

template <typename Index>
Shape<Index> Call::shape_of() const {
  Shape<Index> shape{};
  attention::put_positions(forward, shape);
  attention::put_strides(args.d_o_strides, shape.d_o_batch, shape.d_o_head, shape.d_o_row);
  attention::put_strides(args.dq_strides, shape.dq_batch, shape.dq_head, shape.dq_row);
  attention::put_strides(args.dk_strides, shape.dk_batch, shape.dk_head, shape.dk_row);
  attention::put_strides(args.dv_strides, shape.dv_batch, shape.dv_head, shape.dv_row);
  shape.batch = static_cast<uint32_t>(forward.batch);
  shape.heads = static_cast<uint32_t>(forward.heads);
  shape.sharing = static_cast<uint32_t>(sharing());
  shape.seq_q = static_cast<uint32_t>(forward.seq_q);
  shape.seq_kv = static_cast<uint32_t>(forward.seq_kv);
  shape.head_dim = static_cast<uint32_t>(forward.head_dim);
  shape.head_dim_v = static_cast<uint32_t>(forward.head_dim_v);
  shape.diagonal = attention::diagonal_of(forward);
  return shape;
}

Dispatch& Call::shape(Dispatch& dispatch, bool with_wide_strides) const {
  const auto told = [&](const auto& shape) -> Dispatch& {
    return dispatch.operand(&recorder.parameters(&shape, sizeof shape), 0, sizeof shape, Access::read);
  };
  return with_wide_strides ? told(shape_of<uint64_t>()) : told(shape_of<uint32_t>());
}

namespace {

using Tile = shaders::AttentionBackwardTile;
using Sums = shaders::AttentionBackwardSums;

// Elements staged at once. Loops over them are unrolled, and Mesa's CPU driver takes long to compile these.
uint32_t depth_of(const DeviceTraits& traits) { return traits.cpu ? 4 : 16; }
// Rows and keys from which products of matrices are faster than tiles on GPUs (H200).
constexpr uint64_t kLongGpu = 128;
constexpr uint32_t kRowsOfGroup = 8;  // of attention_backward_sums.comp
constexpr uint32_t kLanesOfRow = 8;

// A tile: own rows x others at a time x columns of results; lanes is how many invocations share an own row, and
// thread_rows how many own rows each has.
struct Variant {
  const char* name;
  uint32_t own, other, columns, thread_rows, lanes;

  uint32_t invocations() const { return own / thread_rows * lanes; }
  uint64_t shared_bytes(const DeviceTraits& traits) const {
    return Tile::shared_bytes({.columns = columns, .depth = depth_of(traits), .other = other, .own = own});
  }
  bool runs_on(const DeviceTraits& traits) const {
    return invocations() <= traits.max_invocations && invocations() <= traits.max_local_size[0] &&
           shared_bytes(traits) <= traits.shared_bytes;
  }
};

// Ordered by columns, then largest first.
constexpr Variant kVariants[] = {
    {"tile_64x64x64", 64, 64, 64, 4, 16},   {"tile_32x32x64", 32, 32, 64, 4, 8},
    {"tile_64x64x128", 64, 64, 128, 4, 16}, {"tile_32x64x128", 32, 64, 128, 4, 16},
    {"tile_32x64x256", 32, 64, 256, 4, 16}, {"tile_16x64x256", 16, 64, 256, 4, 16},
};

void check_limits(const Call& call) {
  const AttentionArgs& forward = call.forward;
  const DeviceTraits& traits = call.traits();
  if (forward.seq_q >= attention::kMaxSequence || forward.seq_kv >= attention::kMaxSequence) {
    fail(TUFF_ERROR_UNSUPPORTED, "seq_q={} seq_kv={} is beyond the limits of this version", forward.seq_q,
         forward.seq_kv);
  }
  if (dtype_size(forward.dtype) == 2 && !traits.storage16) {
    fail(TUFF_ERROR_UNSUPPORTED, "dtype is {}, and the device has no 16-bit storage", dtype_name(forward.dtype));
  }
  if (forward.mask != nullptr && !traits.storage8) {
    fail(TUFF_ERROR_UNSUPPORTED, "there is a mask, and the device has no 8-bit storage");
  }
  // So that rows and the steps of all heads that share a key count in 32 bits.
  if (forward.rows() > attention::kMaxGroups ||
      forward.batch * forward.kv_heads > attention::kMaxGroups / forward.seq_kv) {
    fail(TUFF_ERROR_UNSUPPORTED, "batch={} heads={} seq_q={} seq_kv={} is beyond the limits of this version",
         forward.batch, forward.heads, forward.seq_q, forward.seq_kv);
  }
}

// Whether q, k, v, d_o and the outputs can all be read and written four elements at a time.
bool in_fours(const AttentionBackwardArgs& args) {
  const AttentionArgs& forward = args.forward;
  const auto even = [&](const Buffer* buffer, const AttentionStrides& strides) {
    return buffer == nullptr || (buffer->offset % (4 * dtype_size(forward.dtype)) == 0 && strides.batch % 4 == 0 &&
                                 strides.head % 4 == 0 && strides.row % 4 == 0);
  };
  return forward.head_dim % 4 == 0 && forward.head_dim_v % 4 == 0 && even(forward.q, forward.q_strides) &&
         even(forward.k, forward.k_strides) && even(forward.v, forward.v_strides) && even(args.d_o, args.d_o_strides) &&
         even(args.dq, args.dq_strides) && even(args.dk, args.dk_strides) && even(args.dv, args.dv_strides);
}

bool needs_wide_indices(const Call& call, uint64_t state_elements) {
  const AttentionBackwardArgs& args = call.args;
  const AttentionArgs& forward = call.forward;
  const auto of = [](const Buffer* buffer, uint64_t elements) { return buffer == nullptr ? 0 : elements; };
  uint64_t most = std::max({forward.q_elements(), forward.k_elements(), forward.v_elements(), forward.o_elements(),
                            args.d_o_elements(), of(args.dq, args.dq_elements()), of(args.dk, args.dk_elements()),
                            of(args.dv, args.dv_elements()), args.dbias_elements(), forward.bias_elements(),
                            forward.mask_elements(), forward.rows() + forward.batch, state_elements});
  // Strides of axes with one element are unused, but are passed to the kernels.
  for (const AttentionStrides* s : {&forward.q_strides, &forward.k_strides, &forward.v_strides, &forward.o_strides,
                                    &args.d_o_strides, &args.dq_strides, &args.dk_strides, &args.dv_strides,
                                    &args.dbias_strides, &forward.bias_strides, &forward.mask_strides}) {
    most = std::max({most, s->batch, s->head, s->row});
  }
  return needs_wide(most);
}

uint64_t columns_of(const AttentionArgs& forward, const Side& side) {
  return std::max(side.first ? forward.head_dim : 0, side.second ? forward.head_dim_v : 0);
}
uint64_t own_rows(const AttentionArgs& forward, const Side& side) { return side.keys ? forward.seq_kv : forward.seq_q; }
uint64_t units(const AttentionArgs& forward, const Side& side) {
  return forward.batch * (side.keys ? forward.kv_heads : forward.heads);
}

// Chooses the narrowest tile that has all columns, because each further tile computes the pairs again, and the most own
// rows that are not mostly wasted and give every core work.
const Variant& choose(const DeviceTraits& traits, const AttentionArgs& forward, const Side& side,
                      std::string_view forced) {
  if (!forced.empty() && forced != kProducts && forced != kNative) {
    for (const Variant& variant : kVariants) {
      if (forced != variant.name) continue;
      if (!variant.runs_on(traits)) {
        fail(TUFF_ERROR_UNSUPPORTED, "TUFF_ATTENTION_BACKWARD_VARIANT={} does not run on this device", forced);
      }
      return variant;
    }
    fail(TUFF_ERROR_INVALID_ARGUMENT, "TUFF_ATTENTION_BACKWARD_VARIANT={} is not a variant of attention_backward",
         forced);
  }
  const uint64_t cores = traits.cores == 0 ? 16 : traits.cores, columns = columns_of(forward, side);
  const Variant* best = nullptr;
  for (const Variant& variant : kVariants) {
    if (!variant.runs_on(traits)) continue;
    if (best != nullptr) {
      if (variant.columns != best->columns) {
        if (best->columns >= columns) break;  // wide enough, and the rest is wider
      } else {
        const uint64_t groups = ceil_div(own_rows(forward, side), best->own) * units(forward, side);
        if (best->own < 2 * own_rows(forward, side) && groups >= cores) continue;
        if (variant.own >= best->own) continue;
      }
    }
    best = &variant;
  }
  if (best == nullptr) fail(TUFF_ERROR_UNSUPPORTED, "no variant of attention_backward runs on this device");
  return *best;
}

// The maximum number of steps of one dispatch, from the loop iterations of a step, plus one for the end of each loop
// (loop_limit.hpp).
uint64_t steps_at_once(const DeviceTraits& traits, const Variant& variant, const AttentionArgs& forward) {
  if (!traits.cpu) return ~uint64_t{0};
  const uint64_t depth = depth_of(traits);
  const uint64_t products = ceil_div(forward.head_dim, depth) + ceil_div(forward.head_dim_v, depth) + 2;
  const uint64_t iterations = products + 2 * (variant.other / depth * (depth + 2) + 1) + 2;
  return kMaxLoopIterationsCpu / iterations;
}

uint64_t state_bytes(const Variant& variant, const Side& side) {
  return uint64_t{variant.invocations()} * 4 *
         Tile::state_values({.columns = variant.columns,
                             .first = side.first,
                             .lanes = variant.lanes,
                             .second = side.second,
                             .tr = variant.thread_rows});
}

// What one side is cut into.
struct Plan {
  const Variant* variant;
  uint64_t groups, steps, at_once;  // steps: of all heads that share the keys
  uint64_t saving, state;           // workgroups that save their sums at a time, and the bytes of these
};

Plan plan_of(const Call& call, const Side& side, std::string_view forced, uint64_t max_state) {
  const AttentionArgs& forward = call.forward;
  Plan plan{};
  plan.variant = &choose(call.traits(), forward, side, forced);
  const uint64_t others = side.keys ? forward.seq_q : forward.seq_kv;
  plan.steps = ceil_div(others, plan.variant->other) * (side.keys ? call.sharing() : 1);
  plan.at_once = std::min(plan.steps, steps_at_once(call.traits(), *plan.variant, forward));
  plan.groups = ceil_div(own_rows(forward, side), plan.variant->own) *
                ceil_div(columns_of(forward, side), plan.variant->columns) * units(forward, side);
  if (plan.groups > attention::kMaxGroups || plan.steps > attention::kMaxGroups) {
    fail(TUFF_ERROR_UNSUPPORTED, "batch={} heads={} seq_q={} seq_kv={} is beyond the limits of this version",
         forward.batch, forward.heads, forward.seq_q, forward.seq_kv);
  }
  plan.saving = plan.groups;
  if (plan.at_once < plan.steps) {
    const uint64_t bytes = state_bytes(*plan.variant, side);
    plan.saving = std::clamp<uint64_t>(max_state / bytes, 1, plan.groups);
    plan.state = plan.saving * bytes;
  }
  return plan;
}

void record_side(const Call& call, const Side& side, const Plan& plan, const Buffer* state) {
  const AttentionBackwardArgs& args = call.args;
  const AttentionArgs& forward = call.forward;
  const Variant& variant = *plan.variant;
  const bool ranges = plan.at_once < plan.steps;
  KernelRequest kernel = Tile::request({.call = call.defines(),
                                        .columns = variant.columns,
                                        .depth = depth_of(call.traits()),
                                        .first = side.first,
                                        .keys_side = side.keys,
                                        .lanes = variant.lanes,
                                        .other = variant.other,
                                        .own = variant.own,
                                        .ranges = ranges,
                                        .second = side.second,
                                        .tr = variant.thread_rows,
                                        .vec = in_fours(args)});
  kernel.wide(call.wide);
  const uint64_t size = dtype_size(forward.dtype);
  const Work work = work_of(call, side);
  log(TUFF_LOG_DISPATCH,
      "attention_backward {} {} {} heads={} seq_q={} seq_kv={} head_dim={} groups={} steps={} wide={}", variant.name,
      side.keys ? "keys" : "rows", dtype_name(forward.dtype), forward.batch * forward.heads, forward.seq_q,
      forward.seq_kv, forward.head_dim, plan.groups, plan.steps, call.wide);
  const Buffer* first = !side.first ? nullptr : side.keys ? args.dk : args.dq;
  const uint64_t first_elements = !side.first ? 0 : side.keys ? args.dk_elements() : args.dq_elements();
  for (uint64_t done = 0; done < plan.groups; done += plan.saving) {
    const uint64_t count = std::min(plan.saving, plan.groups - done);
    for (uint64_t begin = 0; begin < plan.steps; begin += plan.at_once) {
      const uint64_t end = std::min(begin + plan.at_once, plan.steps);
      const double part = static_cast<double>(count) / static_cast<double>(plan.groups) *
                          static_cast<double>(end - begin) / static_cast<double>(plan.steps);
      Dispatch dispatch(side.keys ? "attention backward keys" : "attention backward rows");
      dispatch.operand(forward.q, 0, forward.q_elements() * size, Access::read)
          .operand(forward.k, 0, forward.k_elements() * size, Access::read)
          .operand(forward.v, 0, forward.v_elements() * size, Access::read)
          .operand(args.d_o, 0, args.d_o_elements() * size, Access::read)
          .operand(&call.sums, 0, call.sums_bytes(), Access::read);
      call.shape(dispatch)
          .operand(forward.bias, 0, forward.bias_elements() * dtype_size(forward.bias_type), Access::read)
          .operand(forward.mask, 0, forward.mask_elements(), Access::read)
          .operand(first, 0, first_elements * size, Access::write)
          .operand(side.second ? args.dv : nullptr, 0, side.second ? args.dv_elements() * size : 0, Access::write);
      if (ranges) dispatch.operand(state, 0, plan.state, Access::read_write);
      dispatch
          .push(Tile::Push{.groups = static_cast<uint32_t>(count),
                           .first_group = static_cast<uint32_t>(done),
                           .step_begin = static_cast<uint32_t>(begin),
                           .step_end = static_cast<uint32_t>(end)})
          .groups_linear(count, call.traits())
          .work(work.bytes * part, work.operations * part)
          .variant(variant.name);
      call.recorder.dispatch(kernel, dispatch);
    }
  }
}

}  // namespace

Work work_of(const Call& call, const Side& side) {
  const AttentionArgs& forward = call.forward;
  const double pairs = static_cast<double>(forward.rows()) * static_cast<double>(forward.seq_kv) /
                       (forward.causal == TUFF_CAUSAL_NONE ? 1 : 2);
  const double rows = static_cast<double>(forward.rows());
  const double keys = static_cast<double>(forward.batch * forward.kv_heads) * static_cast<double>(forward.seq_kv);
  const uint64_t elements = forward.head_dim + forward.head_dim_v;
  return {static_cast<double>(dtype_size(forward.dtype) * elements) * (rows + keys),
          2 * pairs *
              static_cast<double>((side.first ? 2 : 1) * forward.head_dim +
                                  ((side.first ? 1 : 0) + (side.second ? 1 : 0)) * forward.head_dim_v)};
}

void record_sums(const Call& call, const Powers* powers) {
  const AttentionArgs& forward = call.forward;
  const bool bounds = powers != nullptr && powers->bounds;
  const uint64_t size = dtype_size(forward.dtype), row_groups = ceil_div(forward.rows(), kRowsOfGroup);
  if (bounds) record_fill(call.recorder, call.sums, call.bounds_at(), 8, {});
  const uint64_t all_keys = forward.batch * forward.kv_heads * forward.seq_kv;
  const uint64_t groups = row_groups + (bounds ? ceil_div(all_keys, kRowsOfGroup) : 0);
  const auto even = [&](const Buffer* buffer, const AttentionStrides& strides) {
    return buffer->offset % (4 * size) == 0 && strides.batch % 4 == 0 && strides.head % 4 == 0 && strides.row % 4 == 0;
  };
  const bool vec = forward.head_dim_v % 4 == 0 && even(forward.o, forward.o_strides) &&
                   even(call.args.d_o, call.args.d_o_strides) && (!bounds || even(forward.v, forward.v_strides));
  KernelRequest kernel =
      Sums::request({.bounds = bounds, .call = call.defines(), .powers = powers != nullptr, .vec = vec});
  kernel.wide(call.wide);
  Dispatch dispatch("attention backward sums");
  dispatch.operand(forward.o, 0, forward.o_elements() * size, Access::read)
      .operand(call.args.d_o, 0, call.args.d_o_elements() * size, Access::read)
      .operand(forward.lse, 0, forward.rows() * 4, Access::read)
      .operand(forward.q_lengths, 0, forward.batch * 4, Access::read)
      .operand(forward.kv_lengths, 0, forward.batch * 4, Access::read)
      .operand(&call.sums, 0, call.sums_bytes(), bounds ? Access::read_write : Access::write);
  const auto count = static_cast<uint32_t>(groups), rows = static_cast<uint32_t>(forward.rows());
  call.shape(dispatch);
  if (bounds) {
    dispatch.operand(forward.v, 0, forward.v_elements() * size, Access::read)
        .push(Sums::Push<true, true>{.groups = count,
                                     .rows = rows,
                                     .headroom = powers->headroom,
                                     .factor = powers->factor,
                                     .row_groups = static_cast<uint32_t>(row_groups),
                                     .keys = static_cast<uint32_t>(all_keys)});
  } else if (powers != nullptr) {
    dispatch.push(
        Sums::Push<false, true>{.groups = count, .rows = rows, .headroom = powers->headroom, .factor = powers->factor});
  } else {
    dispatch.push(Sums::Push<false, false>{.groups = count, .rows = rows});
  }
  dispatch.groups_linear(groups, call.traits())
      .work(static_cast<double>(2 * forward.rows() * forward.head_dim_v * size),
            static_cast<double>(2 * forward.rows() * forward.head_dim_v));
  call.recorder.dispatch(kernel, dispatch);
}

}  // namespace attention_backward

void record_attention_backward(Recorder& recorder, const AttentionBackwardArgs& args) {
  record_attention_backward(recorder, args, kMaxAttentionState);
}

void record_attention_backward(Recorder& recorder, const AttentionBackwardArgs& args, uint64_t max_state) {
  using namespace attention_backward;
  if (args.forward.batch == 0 || args.forward.heads == 0) {
    const Call none(recorder, args);
    BiasGradient(none).record_no_pairs();
    return;
  }
  const auto& variable = forced_variant<"TUFF_ATTENTION_BACKWARD_VARIANT">();
  const std::string_view forced = variable ? *variable : std::string_view();
  Call call(recorder, args);
  check_limits(call);
  const Side keys{.keys = true, .first = args.dk != nullptr, .second = args.dv != nullptr},
      rows{.keys = false, .first = args.dq != nullptr, .second = false};
  call.wide = needs_wide_indices(call, 0);
  if ((forced.empty() || forced == kNative) && record_native(call, forced)) return;
  if (args.dbias != nullptr) {  // no tile has it
    record_products(call);
    return;
  }
  const bool is_long = std::min(args.forward.seq_q, args.forward.seq_kv) >= kLongGpu;
  const bool products = forced == kProducts || (forced.empty() && (recorder.traits().cpu || is_long));
  if (products && record_products(call)) return;
  const bool has_keys = keys.first || keys.second;
  const Plan of_keys = has_keys ? plan_of(call, keys, forced, max_state) : Plan{},
             of_rows = rows.first ? plan_of(call, rows, forced, max_state) : Plan{};
  const uint64_t state = std::max(of_keys.state, of_rows.state);
  call.wide = needs_wide_indices(call, state / 4);

  ScratchLayout layout;
  const uint64_t at_sums = layout.add(call.sums_bytes()), at_state = layout.add(state);
  const Buffer& scratch = recorder.scratch(layout.bytes());
  call.sums = part_of(scratch, at_sums, call.sums_bytes());
  const Buffer saved = part_of(scratch, at_state, state);
  record_sums(call);
  if (has_keys) record_side(call, keys, of_keys, &saved);
  if (rows.first) record_side(call, rows, of_rows, &saved);
}

}  // namespace tuff
