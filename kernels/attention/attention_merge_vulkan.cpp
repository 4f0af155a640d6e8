// The second pass of attention whose keys are cut into parts.
#include <bit>

#include "kernels/attention/attention_plan.hpp"
#include "kernels/common/workgroup.hpp"
#include "shaders/attention_merge.hpp"

namespace tuff::attention {
namespace {

constexpr uint32_t kMergers = 4, kManyParts = 32;

// Subgroups per row: several if there are many parts, which one subgroup would read slowly.
uint32_t mergers(const DeviceTraits& traits, const AttentionArgs& args, uint64_t parts) {
  if (traits.cpu || parts < kManyParts) return 1;
  const uint64_t width = traits.subgroup_size;
  const uint64_t shared = kMergers * (ceil_div(args.head_dim_v, 4 * width) * width * 16 + 4);
  return kMergers * width <= max_along_x(traits) && shared <= traits.shared_bytes ? kMergers : 1;
}

}  // namespace

bool merges_on(const DeviceTraits& traits) {
  return traits.subgroup_arithmetic && traits.subgroup_shuffle && traits.subgroup_ballot &&
         std::has_single_bit(traits.subgroup_size);
}

uint64_t bytes_of_part(uint32_t rows, const AttentionArgs& args) {
  return (rows * args.head_dim_v + ceil_div(2 * rows, 4) * 4) * 4;
}

void merge_parts(Recorder& recorder, const Call& call, uint32_t rows, const Parts& parts, const Buffer& scratch,
                 uint64_t scratch_bytes) {
  const DeviceTraits& traits = recorder.traits();
  KernelRequest kernel = shaders::AttentionMerge::request({.call = call.defines(traits),
                                                           .head_dim_v_is = call.args.head_dim_v,
                                                           .parts = 1,
                                                           .ranges = 0,
                                                           .rows = rows,
                                                           .subgroups = mergers(traits, call.args, parts.count),
                                                           .width = traits.subgroup_size});
  kernel.wide(call.wide);
  Dispatch dispatch("attention merge");
  call.operands(recorder, dispatch, &scratch, scratch_bytes, Access::read);
  call.push(dispatch,
            {.groups = static_cast<uint32_t>(call.args.rows()), .key_begin = parts.keys, .key_end = parts.count});
  dispatch.groups_linear(call.args.rows(), traits).work(static_cast<double>(scratch_bytes), 0);
  recorder.dispatch(kernel, dispatch);
}

}  // namespace tuff::attention
