// Scratch memory of a product: sums for a second pass, and copies of the inputs in the type that is multiplied.
#include <algorithm>

#include "kernels/gemm/gemm_plan.hpp"
#include "shaders.hpp"

namespace tuff::gemm {
namespace {

// An input as it is stored, and its copy: rows of whole vectors, one matrix where the batch repeats one.
struct Copy {
  Copy(uint64_t stored_rows, uint64_t stored_cols, uint64_t stride, uint64_t batch_count)
      : rows(stored_rows), cols(stored_cols), ld(ceil_div(cols, 4) * 4), matrices(stride == 0 ? 1 : batch_count) {}
  uint64_t rows, cols, ld, matrices;
  uint64_t elements() const { return rows * ld * matrices; }
};

// Mirrors Push in gemm_convert.comp, behind the bases.
template <typename Index>
struct ConvertPush {
  Index ld, stride, vectors, matrix;
  uint32_t row_vectors, cols;
};

void record_copy(Recorder& recorder, const Buffer* in, int32_t type, uint64_t elements, uint64_t ld, uint64_t stride,
                 const Copy& copy, const Buffer* out, int32_t out_type) {
  const DeviceTraits& traits = recorder.traits();
  const bool wide = needs_wide(std::max(elements, copy.elements()));
  const uint32_t local_size = traits.cpu ? traits.subgroup_size : std::min(256u, traits.max_invocations);
  const uint32_t items = traits.cpu ? 8 : 1;
  const uint64_t vectors = copy.elements() / 4;
  KernelRequest request(shaders::gemm_convert);
  request.streaming().wide(wide);
  request.define("LOCAL_SIZE", local_size).define("ITEMS", items).define("IN_TYPE", type).define("SUM_TYPE", out_type);
  Dispatch dispatch("gemm convert");
  dispatch.operand(in, 0, elements * dtype_size(type), Access::read);
  dispatch.operand(out, 0, copy.elements() * dtype_size(out_type), Access::write);
  with_index(wide, [&](auto zero) {
    using Index = decltype(zero);
    dispatch.push(ConvertPush<Index>{static_cast<Index>(ld), static_cast<Index>(copy.matrices == 1 ? 0 : stride),
                                     static_cast<Index>(vectors), static_cast<Index>(copy.rows * copy.ld / 4),
                                     static_cast<uint32_t>(copy.ld / 4), static_cast<uint32_t>(copy.cols)});
  });
  dispatch.groups_linear(ceil_div(vectors, uint64_t{local_size} * items), traits);
  dispatch.work(static_cast<double>(elements * dtype_size(type) + copy.elements() * dtype_size(out_type)),
                static_cast<double>(copy.elements()));
  recorder.dispatch(request, dispatch);
}

}  // namespace

void take_scratch(Recorder& recorder, Plan& plan, bool copy_inputs) {
  GemmArgs& args = plan.args;
  const int32_t type = args.sum_type();
  const uint64_t size = dtype_size(type);
  const bool a_copied = copy_inputs && args.a_type != type, b_copied = copy_inputs && args.b_type != type;
  const Copy a(plan.ta ? args.k : args.m, plan.ta ? args.m : args.k, args.stride_a, args.batch_count);
  const Copy b(plan.tb ? args.n : args.k, plan.tb ? args.k : args.n, args.stride_b, args.batch_count);
  if (plan.to_scratch) {
    plan.out_type = type;
    plan.out_ld = args.n;
    plan.out_stride = args.m * args.n;
    plan.out_elements = plan.slices * args.batch_count * plan.out_stride;
  }
  // One buffer, whose parts begin as allocations do.
  const auto part = [&](bool taken, uint64_t elements) { return taken ? ceil_div(elements * size, 256) * 256 : 0; };
  const uint64_t out_bytes = part(plan.to_scratch, plan.out_elements), a_bytes = part(a_copied, a.elements());
  const uint64_t b_bytes = part(b_copied, b.elements());
  if (out_bytes + a_bytes + b_bytes == 0) return;
  const Buffer& scratch = recorder.scratch(out_bytes + a_bytes + b_bytes);
  plan.partials = plan.copy_a = plan.copy_b = scratch;
  plan.copy_a.offset += out_bytes;
  plan.copy_b.offset += out_bytes + a_bytes;
  if (plan.to_scratch) {
    plan.out = &plan.partials;
    plan.wide = plan.wide || needs_wide(plan.out_elements);
  }
  if (a_copied) {
    record_copy(recorder, args.a, args.a_type, plan.a_elements, args.lda, args.stride_a, a, &plan.copy_a, type);
    args.a = &plan.copy_a;
    args.lda = a.ld;
    args.stride_a = a.matrices == 1 ? 0 : a.rows * a.ld;
    plan.a_elements = a.elements();
  }
  if (b_copied) {
    record_copy(recorder, args.b, args.b_type, plan.b_elements, args.ldb, args.stride_b, b, &plan.copy_b, type);
    args.b = &plan.copy_b;
    args.ldb = b.ld;
    args.stride_b = b.matrices == 1 ? 0 : b.rows * b.ld;
    plan.b_elements = b.elements();
  }
  if (copy_inputs) {
    plan.wide = plan.wide || needs_wide(std::max(plan.a_elements, plan.b_elements));
    args.a_type = args.b_type = type;
  }
}

}  // namespace tuff::gemm
