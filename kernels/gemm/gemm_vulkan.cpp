// Plans a matrix product on a Vulkan device: cuts what is too large for one dispatch, chooses the kind of kernel,
// adds the second pass.
#include <algorithm>
#include <optional>
#include <string>

#include "kernels/common/loop_limit.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "runtime/platform/platform.hpp"

namespace tuff {
namespace gemm {

uint64_t footprint(uint64_t rows, uint64_t cols, uint64_t ld, uint64_t stride, uint64_t batch_count) {
  return (batch_count - 1) * stride + (rows - 1) * ld + cols;
}

bool aligned(const Buffer* buffer, uint64_t ld, uint64_t stride, uint64_t elements) {
  return buffer->offset % (elements * 4) == 0 && ld % elements == 0 && stride % elements == 0;
}

uint64_t cores_of(const DeviceTraits& traits) { return traits.cores != 0 ? traits.cores : traits.cpu ? 4 : 32; }

std::string_view forced_variant() {
  static const std::optional<std::string> name = platform::environment("TUFF_GEMM_VARIANT");
  return name ? std::string_view(*name) : std::string_view();
}

double operations_of(const GemmArgs& args) {
  return 2.0 * static_cast<double>(args.m * args.batch_count) * static_cast<double>(args.n) *
         static_cast<double>(args.k);
}

void slice_k(Plan& plan, Recorder& recorder, uint64_t groups, uint64_t wanted, uint64_t least, uint64_t unit) {
  const uint64_t k = plan.args.k;
  const uint64_t slices = std::clamp<uint64_t>(std::min(wanted / groups, k / least), 1, 256);
  plan.k_slice = ceil_div(ceil_div(k, slices), unit) * unit;
  plan.slices = ceil_div(k, plan.k_slice);
  plan.out = plan.args.c;
  plan.out_elements = plan.c_elements;
  plan.out_ld = plan.args.ldc;
  plan.out_stride = plan.args.stride_c;
  if (plan.slices == 1) return;
  plan.out_ld = plan.args.n;
  plan.out_stride = plan.args.m * plan.args.n;
  plan.out_elements = plan.slices * plan.args.batch_count * plan.out_stride;
  plan.out = &recorder.scratch(plan.out_elements * 4);
  plan.wide = plan.wide || needs_wide(plan.out_elements);
}

Access out_access(const Plan& plan) {
  return plan.slices > 1 || plan.args.beta == 0 ? Access::write : Access::read_write;
}

double work_bytes(const Plan& plan) {
  return 4.0 * static_cast<double>(plan.a_elements + plan.b_elements + plan.out_elements);
}

namespace {

// Larger sizes are cut into pieces, so that 32-bit numbers hold rows, columns and workgroups.
constexpr uint64_t kMostExtent = 1u << 30, kMostGroups = 1u << 31;

void record_product(Recorder& recorder, const GemmArgs& args) {
  Plan plan{};
  plan.args = args;
  plan.ta = args.ta != TUFF_NO_TRANS;
  plan.tb = args.tb != TUFF_NO_TRANS;
  plan.a_elements =
      footprint(plan.ta ? args.k : args.m, plan.ta ? args.m : args.k, args.lda, args.stride_a, args.batch_count);
  plan.b_elements =
      footprint(plan.tb ? args.n : args.k, plan.tb ? args.k : args.n, args.ldb, args.stride_b, args.batch_count);
  plan.c_elements = footprint(args.m, args.n, args.ldc, args.stride_c, args.batch_count);
  const std::string_view forced = forced_variant();
  const bool forced_wide = forced == "wide" && recorder.traits().addresses;
  plan.wide = forced_wide || needs_wide(std::max({plan.a_elements, plan.b_elements, plan.c_elements}));

  if (std::min(args.m, args.n) <= kMostShort && (forced.empty() || forced_wide || forced == "skinny")) {
    record_skinny(recorder, plan);
  } else {
    record_tiles(recorder, plan);
  }
  if (plan.slices > 1) record_finish(recorder, args, plan.out, plan.slices);
}

// The same product with the operand moved on by so many elements.
Buffer moved(const Buffer* buffer, uint64_t elements) {
  Buffer result = *buffer;
  result.offset += elements * 4;
  result.bytes -= elements * 4;
  return result;
}

void record_pieces(Recorder& recorder, const GemmArgs& args);

// Cuts one extent (m, n, k or the batch) into pieces of at most `most`, with these distances in elements
// from one piece's operands to the next's. Pieces of k add to C one after another.
void record_cut(Recorder& recorder, const GemmArgs& args, uint64_t GemmArgs::*extent, uint64_t most, uint64_t step_a,
                uint64_t step_b, uint64_t step_c) {
  for (uint64_t first = 0; first < args.*extent; first += most) {
    const Buffer a = moved(args.a, first * step_a), b = moved(args.b, first * step_b);
    const Buffer c = moved(args.c, first * step_c);
    GemmArgs piece = args;
    piece.a = &a;
    piece.b = &b;
    piece.c = &c;
    piece.*extent = std::min(most, args.*extent - first);
    if (extent == &GemmArgs::k && first > 0) piece.beta = 1;
    record_pieces(recorder, piece);
  }
}

void record_pieces(Recorder& recorder, const GemmArgs& args) {
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  const uint64_t a_row = ta ? 1 : args.lda, a_k = ta ? args.lda : 1;
  const uint64_t b_k = tb ? 1 : args.ldb, b_col = tb ? args.ldb : 1;
  // Workgroups of the smallest tile bound how much of a batch goes at once.
  const uint64_t matrix_groups = ceil_div(args.m, 8) * ceil_div(args.n, 8);
  const uint64_t most_batch = std::clamp<uint64_t>(kMostGroups / matrix_groups, 1, kMostExtent);
  // The kernel that loops most takes an iteration for each step of k and one for every sixteen.
  const uint64_t most_k = recorder.traits().cpu ? kMaxLoopIterationsCpu * 4 / 5 / 32 * 32 : kMostExtent;
  if (args.m > kMostExtent) {
    record_cut(recorder, args, &GemmArgs::m, kMostExtent, a_row, 0, args.ldc);
  } else if (args.n > kMostExtent) {
    record_cut(recorder, args, &GemmArgs::n, kMostExtent, 0, b_col, 1);
  } else if (args.k > most_k) {
    record_cut(recorder, args, &GemmArgs::k, most_k, a_k, b_k, 0);
  } else if (args.batch_count > most_batch) {
    record_cut(recorder, args, &GemmArgs::batch_count, most_batch, args.stride_a, args.stride_b, args.stride_c);
  } else {
    record_product(recorder, args);
  }
}

}  // namespace
}  // namespace gemm

void record_gemm(Recorder& recorder, const GemmArgs& checked) {
  GemmArgs args = checked;
  if (args.m == 0 || args.n == 0 || args.batch_count == 0) return;
  // Distances that nothing is reached by may be any number: take one that cannot overflow.
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  if ((ta ? args.k : args.m) <= 1) args.lda = ta ? args.m : args.k;
  if ((tb ? args.n : args.k) <= 1) args.ldb = tb ? args.k : args.n;
  if (args.m == 1) args.ldc = args.n;
  if (args.batch_count == 1) args.stride_a = args.stride_b = args.stride_c = 0;

  if (args.k == 0 || args.alpha == 0) {
    if (args.beta != 1) gemm::record_finish(recorder, args, nullptr, 0);
    return;
  }
  // One B for all, and A and C follow on without a gap: a single tall product.
  if (args.batch_count > 1 && args.stride_b == 0 && !ta && args.stride_a == args.m * args.lda &&
      args.stride_c == args.m * args.ldc) {
    args.m *= args.batch_count;
    args.batch_count = 1;
    args.stride_a = args.stride_c = 0;
  }
  gemm::record_pieces(recorder, args);
}

}  // namespace tuff
