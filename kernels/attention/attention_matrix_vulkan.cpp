// Attention by cooperative matrices: the table of tiles, the choice, the dispatch.
#include <algorithm>
#include <limits>

#include "kernels/attention/attention_plan.hpp"
#include "kernels/common/matrix_quads.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"
#include "shaders/attention_matrix.hpp"

namespace tuff::attention {
namespace {

// A tile of query rows of a workgroup x keys at a time. A subgroup has row_blocks * 16 of the rows.
struct MatrixVariant {
  const char* name;
  uint32_t subgroups, row_blocks, keys;
  bool prefetch;
  bool quads;  // weights are computed in registers: kernels/common/matrix_quads.hpp

  uint32_t rows() const { return subgroups * row_blocks * 16; }
  uint32_t shared_bytes(uint64_t head_dim, uint64_t head_dim_v) const {
    const uint32_t tile = keys * static_cast<uint32_t>(head_dim + 8 + head_dim_v + 8) * 2;
    const uint32_t patches = subgroups * 16 * 5 * 16;  // 16 rows of 16 sums and a padding piece
    return (quads ? std::max(tile, patches) : tile + patches) + 16;
  }
};

constexpr MatrixVariant kVariants[] = {
    {"quads_128x32b", 8, 1, 32, true, true},   {"quads_128x32", 4, 2, 32, true, true},
    {"quads_128x32s", 4, 2, 32, false, true},  {"quads_256x32", 8, 2, 32, true, true},
    {"quads_256x32s", 8, 2, 32, false, true},  {"quads_64x32", 4, 1, 32, true, true},
    {"quads_128x64", 8, 1, 64, true, true},    {"quads_64x64", 4, 1, 64, true, true},
    {"patch_64x32", 4, 1, 32, true, false},    {"patch_128x32", 4, 2, 32, true, false},
    {"patch_128x32s", 4, 2, 32, false, false},
};
constexpr uint64_t kMaxHeadDim = 128;  // the maximum of attention_matrix.comp

bool runs_on(const MatrixVariant& variant, const DeviceTraits& traits, const AttentionArgs& args) {
  const uint32_t invocations = variant.subgroups * traits.subgroup_size;
  return invocations <= traits.max_invocations && invocations <= traits.max_local_size[0] &&
         variant.shared_bytes(args.head_dim, args.head_dim_v) <= traits.shared_bytes;
}

const MatrixVariant* find(std::string_view name) {
  return std::find_if(std::begin(kVariants), std::end(kVariants),
                      [&](const MatrixVariant& row) { return row.name == name; });
}

// The best variant, as measured on an H200 (docs/attention.md). Subgroups with two blocks of rows read half as much
// from shared memory.
const char* suiting(const AttentionArgs& args, const DeviceTraits& traits, bool quads) {
  if (args.seq_q <= 64) return quads ? "quads_64x32" : "patch_64x32";
  if (!quads) return "patch_128x32s";
  const uint64_t cores = traits.cores != 0 ? traits.cores : 16;
  if (std::max(args.head_dim, args.head_dim_v) <= 64) return "quads_128x32";
  return ceil_div(args.seq_q, 256) * args.heads * args.batch >= 2 * cores ? "quads_256x32" : "quads_128x32s";
}

}  // namespace

bool has_matrices(const DeviceTraits& traits, int32_t dtype) {
  return traits.subgroup_size == 32 && traits.subgroup_shuffle && traits.subgroup_ballot &&
         traits.multiplies_squares(dtype);
}

bool multiplies(const DeviceTraits& traits, const Call& call) {
  const auto whole = [](uint64_t dim) { return dim % 16 == 0 && dim <= kMaxHeadDim; };
  return has_matrices(traits, call.args.dtype) && whole(call.args.head_dim) && whole(call.args.head_dim_v) &&
         call.in_pieces_of(8) && !call.args.quantised();
}

bool is_matrix_variant(std::string_view name) { return find(name) != std::end(kVariants); }

bool record_matrices(Recorder& recorder, const AttentionArgs& args, std::string_view forced) {
  const DeviceTraits& traits = recorder.traits();
  const MatrixVariant* variant = find(forced);
  if (!forced.empty() && variant == std::end(kVariants)) return false;
  if (!has_matrices(traits, args.dtype)) {
    if (!forced.empty() && !has_matrices(traits, TUFF_F16)) {
      fail(TUFF_ERROR_UNSUPPORTED, "TUFF_ATTENTION_VARIANT={} does not run on this device", forced);
    }
    return false;
  }
  const Call call(traits, args, 0);
  if (!multiplies(traits, call)) return false;
  if (forced.empty()) {
    if (args.seq_q < 16) return false;
    variant = find(suiting(args, traits, recorder.holds(matrix_quads)));
  }
  if (!runs_on(*variant, traits, args)) return false;

  const uint64_t groups = ceil_div(args.seq_q, variant->rows()) * call.args.heads * call.args.batch;
  if (groups > kMaxGroups) return false;
  KernelRequest kernel = shaders::AttentionMatrix::request({.call = call.defines(traits),
                                                            .head_dim_is = args.head_dim,
                                                            .head_dim_v_is = args.head_dim_v,
                                                            .keys = variant->keys,
                                                            .parts = 0,
                                                            .prefetch = variant->prefetch,
                                                            .quads = variant->quads,
                                                            .ranges = 0,
                                                            .row_blocks = variant->row_blocks,
                                                            .subgroups = variant->subgroups,
                                                            .width = 32});
  kernel.matrices(args.dtype == TUFF_BF16 ? Matrices::bf16 : Matrices::f16).wide(call.wide);
  Dispatch dispatch("attention matrices");
  call.operands(recorder, dispatch, nullptr, 0, Access::read);
  call.push(dispatch, {.groups = static_cast<uint32_t>(groups)});
  dispatch.groups_linear(groups, traits).work(call.bytes(), call.operations()).variant(variant->name);
  log(TUFF_LOG_DISPATCH,
      "attention {} {} heads={} seq_q={} seq_kv={} head_dim={} causal={} groups={} extended={} wide={}", variant->name,
      dtype_name(args.dtype), args.batch * args.heads, args.seq_q, args.seq_kv, args.head_dim, args.causal, groups,
      call.extended, call.wide);
  recorder.dispatch(kernel, dispatch);
  return true;
}

}  // namespace tuff::attention
