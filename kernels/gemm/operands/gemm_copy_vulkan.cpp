// Scratch memory of a GEMM: sums for a second pass, and copies of the inputs in the type that the kernel multiplies.
#include <algorithm>

#include "kernels/common/workgroup.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "shaders/gemm_convert.hpp"
#include "shaders/gemm_transpose.hpp"

namespace tuff::gemm {
namespace {

// A copy of an input. Its rows are padded to whole pieces of 16 bytes (and whole vec4). It has one matrix if all
// matrices of the batch are the same.
struct Copy {
  Copy(const CopyRequest& request, uint64_t rows, uint64_t cols, bool repeated, uint64_t batch_count)
      : stored_rows(rows),
        stored_cols(cols),
        type(request.type),
        wanted(request.wanted),
        transposed(request.transposed),
        matrices(repeated ? 1 : batch_count) {
    const uint64_t unit = std::max<uint64_t>(16 / dtype_size(type), 4);
    ld = ceil_div(transposed ? rows : cols, unit) * unit;
  }
  uint64_t stored_rows, stored_cols;
  int32_t type;
  bool wanted, transposed;
  uint64_t ld, matrices;

  uint64_t matrix() const { return (transposed ? stored_cols : stored_rows) * ld; }
  uint64_t elements() const { return matrix() * matrices; }
  uint64_t bytes() const { return wanted ? ceil_div(elements() * dtype_size(type), 256) * 256 : 0; }
};

// An input as the caller has it.
struct Input {
  const Buffer* buffer;
  const Buffer* const* each;  // or null
  int32_t type;
  uint64_t elements, ld, stride;
};

void record_conversion(Recorder& recorder, const Input& in, const Copy& copy, const Buffer* out) {
  const DeviceTraits& traits = recorder.traits();
  const bool wide = needs_wide(std::max(in.elements, copy.elements()));
  const uint32_t local_size = traits.cpu ? traits.subgroup_size : std::min(256u, max_along_x(traits));
  const uint32_t items = traits.cpu ? 8 : 1;
  const uint64_t vectors = copy.elements() / 4;
  const bool sixteen = dtype_size(copy.type) == 2;
  KernelRequest request = shaders::GemmConvert::request({.in_type = in.type,
                                                         .items = items,
                                                         .local_size = local_size,
                                                         .out_type = copy.type,
                                                         .sum_type = sixteen ? TUFF_F32 : copy.type});
  request.streaming().wide(wide);
  Dispatch dispatch("gemm convert");
  add_operand(dispatch, in.buffer, in.each, copy.matrices, in.elements * dtype_size(in.type), Access::read);
  dispatch.operand(out, 0, copy.elements() * dtype_size(copy.type), Access::write);
  define_each(request, dispatch);
  with_index(wide, [&](auto zero) {
    using Index = decltype(zero);
    const auto index = [](uint64_t x) { return static_cast<Index>(x); };
    dispatch.push(shaders::GemmConvert::Push<Index>{.ld = index(in.ld),
                                                    .stride = index(copy.matrices == 1 ? 0 : in.stride),
                                                    .vectors = index(vectors),
                                                    .matrix = index(copy.matrix() / 4),
                                                    .row_vectors = static_cast<uint32_t>(copy.ld / 4),
                                                    .cols = static_cast<uint32_t>(copy.stored_cols)});
  });
  dispatch.groups_linear(ceil_div(vectors, uint64_t{local_size} * items), traits);
  dispatch.work(static_cast<double>(in.elements * dtype_size(in.type) + copy.elements() * dtype_size(copy.type)),
                static_cast<double>(copy.elements()));
  recorder.dispatch(request, dispatch);
}

void record_transposition(Recorder& recorder, const Input& in, const Copy& copy, const Buffer* out) {
  constexpr uint64_t kTile = 64;  // rows and columns that a workgroup of gemm_transpose.comp copies
  const bool wide = needs_wide(std::max(in.elements, copy.elements()));
  const uint32_t bytes = static_cast<uint32_t>(dtype_size(in.type)), per_word = 4 / bytes;
  const bool words = aligned(in.buffer, in.type, in.ld, in.stride, per_word) && copy.stored_cols % per_word == 0;
  const uint64_t tiles_rows = ceil_div(copy.stored_rows, kTile), tiles_cols = ceil_div(copy.stored_cols, kTile);
  KernelRequest request = shaders::GemmTranspose::request({.element_bytes = bytes, .load_bytes = words ? 4 : bytes});
  request.streaming().wide(wide);
  Dispatch dispatch("gemm transpose");
  add_operand(dispatch, in.buffer, in.each, copy.matrices, in.elements * bytes, Access::read);
  dispatch.operand(out, 0, copy.elements() * bytes, Access::write);
  define_each(request, dispatch);
  with_index(wide, [&](auto zero) {
    using Index = decltype(zero);
    const auto index = [](uint64_t x) { return static_cast<Index>(x); };
    const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
    dispatch.push(shaders::GemmTranspose::Push<Index>{.ld = index(in.ld),
                                                      .stride = index(copy.matrices == 1 ? 0 : in.stride),
                                                      .out_ld = index(copy.ld),
                                                      .out_stride = index(copy.matrix()),
                                                      .rows = number(copy.stored_rows),
                                                      .cols = number(copy.stored_cols),
                                                      .tiles_rows = number(tiles_rows),
                                                      .tiles_cols = number(tiles_cols),
                                                      .matrices = number(copy.matrices)});
  });
  dispatch.groups_linear(tiles_rows * tiles_cols * copy.matrices, recorder.traits());
  dispatch.work(static_cast<double>((in.elements + copy.elements()) * bytes), static_cast<double>(copy.elements()));
  recorder.dispatch(request, dispatch);
}

// Records the copy and replaces the input by it.
void record_copy(Recorder& recorder, const Copy& copy, const Buffer& scratch, const Buffer*& buffer,
                 const Buffer* const*& each, int32_t& type, uint64_t& elements, uint64_t& ld, uint64_t& stride) {
  if (!copy.wanted) return;
  const Input in{buffer, each, type, elements, ld, stride};
  if (copy.transposed) {
    record_transposition(recorder, in, copy, &scratch);
  } else {
    record_conversion(recorder, in, copy, &scratch);
  }
  buffer = &scratch;
  each = nullptr;
  type = copy.type;
  elements = copy.elements();
  ld = copy.ld;
  stride = copy.matrices == 1 ? 0 : copy.matrix();
}

}  // namespace

bool can_transpose(const DeviceTraits& traits) {
  constexpr uint32_t kInvocations = 256;  // of a workgroup of gemm_transpose.comp
  return max_along_x(traits) >= kInvocations;
}

void take_scratch(Recorder& recorder, Plan& plan) {
  GemmArgs& args = plan.args;
  const int32_t sums = args.sum_type();
  const bool each = args.c_array != nullptr;
  const Copy a(plan.a_request, plan.ta ? args.k : args.m, plan.ta ? args.m : args.k, !each && args.stride_a == 0,
               args.batch_count);
  const Copy b(plan.b_request, plan.tb ? args.n : args.k, plan.tb ? args.k : args.n, !each && args.stride_b == 0,
               args.batch_count);
  if (plan.to_scratch) {
    plan.out_type = sums;
    plan.out_ld = args.n;
    plan.out_stride = args.m * args.n;
    plan.out_elements = plan.slices * args.batch_count * plan.out_stride;
  }
  // One buffer, whose parts are aligned as allocations are.
  const uint64_t out_bytes = plan.to_scratch ? ceil_div(plan.out_elements * dtype_size(sums), 256) * 256 : 0;
  const uint64_t ours = out_bytes + a.bytes() + b.bytes();
  if (ours + plan.kernel_bytes == 0) return;
  const Buffer& scratch = recorder.scratch(ours + plan.kernel_bytes);
  plan.partials = plan.copy_a = plan.copy_b = plan.for_kernel = scratch;
  plan.copy_a.offset += out_bytes;
  plan.copy_b.offset += out_bytes + a.bytes();
  plan.for_kernel.offset += ours;
  if (plan.to_scratch) {
    plan.out = &plan.partials;
    plan.wide = plan.wide || needs_wide(plan.out_elements);
  }
  record_copy(recorder, a, plan.copy_a, args.a, args.a_array, args.a_type, plan.a_elements, args.lda, args.stride_a);
  record_copy(recorder, b, plan.copy_b, args.b, args.b_array, args.b_type, plan.b_elements, args.ldb, args.stride_b);
  plan.ta = plan.ta != (a.wanted && a.transposed);
  plan.tb = plan.tb != (b.wanted && b.transposed);
  plan.wide = plan.wide || needs_wide(std::max(plan.a_elements, plan.b_elements));
}

}  // namespace tuff::gemm
