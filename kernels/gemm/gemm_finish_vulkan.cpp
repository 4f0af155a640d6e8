// The second pass of a product whose k was cut into slices.
#include <algorithm>

#include "kernels/gemm/gemm_plan.hpp"
#include "shaders.hpp"

namespace tuff::gemm {
namespace {

// Mirrors Push in gemm_finish.comp, behind the bases.
template <typename Index>
struct FinishPush {
  Index ldc, stride_c, elements, matrix, n;
  uint32_t slices;
  float alpha, beta;
};

template <typename Index>
void push_finish(Dispatch& dispatch, const GemmArgs& args, uint64_t slices) {
  const auto index = [](uint64_t x) { return static_cast<Index>(x); };
  dispatch.push(FinishPush<Index>{index(args.ldc), index(args.stride_c), index(args.m * args.n * args.batch_count),
                                  index(args.m * args.n), index(args.n), static_cast<uint32_t>(slices),
                                  static_cast<float>(args.alpha), static_cast<float>(args.beta)});
}

}  // namespace

void record_finish(Recorder& recorder, const GemmArgs& args, const Buffer* partials, uint64_t slices) {
  const DeviceTraits& traits = recorder.traits();
  const uint64_t c_elements = footprint(args.m, args.n, args.ldc, args.stride_c, args.batch_count);
  const uint64_t elements = args.m * args.n * args.batch_count;
  const bool dense = (args.ldc == args.n || args.m == 1) && (args.stride_c == args.m * args.n || args.batch_count == 1);
  const bool wide = needs_wide(c_elements) || needs_wide(elements * slices);
  const uint32_t local_size = traits.cpu ? traits.subgroup_size : std::min(256u, traits.max_invocations);
  const uint32_t items = traits.cpu ? 16 : 1;
  KernelRequest request(shaders::gemm_finish);
  request.streaming();
  request.define("LOCAL_SIZE", local_size).define("ITEMS", items).define("DENSE", dense).wide(wide);
  Dispatch dispatch("gemm finish");
  dispatch.operand(partials, 0, elements * slices * 4, Access::read);
  dispatch.operand(args.c, 0, c_elements * 4, args.beta == 0 ? Access::write : Access::read_write);
  if (wide) {
    push_finish<uint64_t>(dispatch, args, slices);
  } else {
    push_finish<uint32_t>(dispatch, args, slices);
  }
  dispatch.groups_linear(ceil_div(elements, uint64_t{local_size} * items), traits);
  dispatch.work(4.0 * static_cast<double>(elements * (slices + 2)), static_cast<double>(elements * (slices + 2)));
  recorder.dispatch(request, dispatch);
}

}  // namespace tuff::gemm
