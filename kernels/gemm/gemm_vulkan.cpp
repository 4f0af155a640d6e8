// Plans a GEMM on a Vulkan device: cuts it into pieces if it is too large for one dispatch, chooses the kind of kernel,
// adds the second pass.
#include <algorithm>
#include <bit>

#include "kernels/common/loop_limit.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "kernels/gemm/panels/gemm_panels.hpp"
#include "kernels/gemm/panels/panel_source.hpp"
#include "planning/status.hpp"

namespace tuff {
namespace gemm {
namespace {

// Larger sizes are cut into pieces, so that row, column and workgroup numbers fit into 32 bits.
constexpr uint64_t kMaxExtent = 1u << 30, kMaxGroups = 1u << 31;
// Maximum elements of one copy of an operand, or of the sums that a second pass reads. It bounds scratch memory: larger
// GEMMs are cut into pieces.
constexpr uint64_t kMaxScratch = 1u << 26;

}  // namespace

namespace {

// The buffer at the least aligned address.
const Buffer* least_aligned(const Buffer* const* buffers, uint64_t count) {
  return *std::min_element(buffers, buffers + count, [](const Buffer* x, const Buffer* y) {
    return std::countr_zero(x->offset) < std::countr_zero(y->offset);
  });
}

}  // namespace

bool needs_finish(const GemmArgs& args) { return args.c_type != args.sum_type() || !args.epilogue.none(); }
bool only_finish_has(const GemmArgs& args) { return args.epilogue.scaled() || kFloat8Types.has(args.c_type); }

Plan::Plan(const GemmArgs& wanted, const Windows* made_of_windows)
    : windows(made_of_windows),
      args(wanted),
      ta(args.ta != TUFF_NO_TRANS),
      tb(args.tb != TUFF_NO_TRANS),
      a_elements(footprint(ta ? args.k : args.m, ta ? args.m : args.k, args.lda, args.stride_a, args.batch_count)),
      b_elements(footprint(tb ? args.n : args.k, tb ? args.k : args.n, args.ldb, args.stride_b, args.batch_count)),
      c_elements(footprint(args.m, args.n, args.ldc, args.stride_c, args.batch_count)),
      k_slice(args.k),
      out(args.c),
      out_type(args.c_type),
      out_elements(c_elements),
      out_ld(args.ldc),
      out_stride(args.stride_c) {
  if (args.c_array != nullptr) {
    args.a = least_aligned(args.a_array, args.batch_count);
    args.b = least_aligned(args.b_array, args.batch_count);
    out = args.c = least_aligned(args.c_array, args.batch_count);
  }
  if (windows != nullptr) (windows->of_a ? a_elements : b_elements) = windows->elements;
  if (windows != nullptr && windows->filter.elements != 0) b_elements = windows->filter.elements;
  b_elements += columns_of_more_groups() * args.k;
  out_elements = c_elements += columns_of_more_groups();
  wide = needs_wide(std::max({a_elements, b_elements, c_elements, bias_elements(args), residual_elements(args)}));
}

shaders::GemmEpilogue Plan::epilogue_defines(const DeviceTraits& traits) const {
  const GemmEpilogue& epilogue = args.epilogue;
  return {.activation = to_scratch ? TUFF_ACTIVATION_NONE : epilogue.activation,
          .bias_axis = fused() ? epilogue.bias_axis : TUFF_BIAS_NONE,
          .c_type = out_type,
          .exact_arithmetic = traits.cpu,
          .residual = fused() && epilogue.residual != nullptr};
}

void Plan::epilogue_operands(Dispatch& dispatch) const {
  if (!fused()) return;
  const auto read = [&](const Buffer* buffer, uint64_t elements) {
    operand(dispatch, buffer, elements + columns_of_more_groups(), args.c_type, Access::read);
  };
  read(args.epilogue.bias, bias_elements(args));
  read(args.epilogue.residual, residual_elements(args));
}

void scale_operands(Dispatch& dispatch, const GemmEpilogue& epilogue) {
  for (const Buffer* scale : epilogue.scales()) dispatch.operand(scale, 0, GemmEpilogue::kScaleBytes, Access::read);
}

void add_operand(Dispatch& dispatch, const Buffer* buffer, const Buffer* const* each, uint64_t batch_count,
                 uint64_t bytes, Access access) {
  if (each != nullptr) {
    dispatch.operand_each(each, batch_count, bytes, access);
  } else {
    dispatch.operand(buffer, 0, bytes, access);
  }
}

void Plan::operand_a(Dispatch& dispatch) const {
  add_operand(dispatch, args.a, args.a_array, args.batch_count, a_elements * dtype_size(args.a_type), Access::read);
}

void Plan::operand_b(Dispatch& dispatch) const {
  add_operand(dispatch, args.b, args.b_array, args.batch_count, b_elements * dtype_size(args.b_type), Access::read);
}

void Plan::operand_out(Dispatch& dispatch) const {
  add_operand(dispatch, out, to_scratch ? nullptr : args.c_array, args.batch_count, out_elements * dtype_size(out_type),
              out_access());
}

uint64_t footprint(uint64_t rows, uint64_t cols, uint64_t ld, uint64_t stride, uint64_t batch_count) {
  return (batch_count - 1) * stride + (rows - 1) * ld + cols;
}

uint64_t bias_elements(const GemmArgs& args) {
  const GemmEpilogue& epilogue = args.epilogue;
  if (epilogue.bias_axis == TUFF_BIAS_NONE) return 0;
  return (args.batch_count - 1) * epilogue.stride_bias + (epilogue.bias_axis == TUFF_BIAS_ROWS ? args.m : args.n);
}

uint64_t residual_elements(const GemmArgs& args) {
  const GemmEpilogue& epilogue = args.epilogue;
  if (epilogue.residual == nullptr) return 0;
  return footprint(args.m, args.n, epilogue.ld_residual, epilogue.stride_residual, args.batch_count);
}

bool aligned(const Buffer* buffer, int32_t type, uint64_t ld, uint64_t stride, uint64_t elements) {
  return buffer->offset % (elements * dtype_size(type)) == 0 && ld % elements == 0 && stride % elements == 0;
}

uint64_t cores_of(const DeviceTraits& traits) { return traits.cores != 0 ? traits.cores : traits.cpu ? 4 : 32; }

double operations_of(const GemmArgs& args) {
  return 2.0 * static_cast<double>(args.m * args.batch_count) * static_cast<double>(args.n) *
         static_cast<double>(args.k);
}

uint64_t max_k(const DeviceTraits& traits) {
  // The kernel with the most iterations takes one for each step of k and one more for every sixteen.
  return traits.cpu ? kMaxLoopIterationsCpu * 4 / 5 / 32 * 32 : kMaxExtent;
}

uint64_t slices_of_k(uint64_t k, uint64_t groups, uint64_t wanted, uint64_t least) {
  return std::clamp<uint64_t>(std::min(wanted / groups, k / least), 1, 256);
}

void slice_k(Plan& plan, const DeviceTraits& traits, uint64_t groups, uint64_t wanted, uint64_t least, uint64_t unit) {
  const uint64_t k = plan.args.k, tuned = plan.choice.slices;
  const uint64_t results = plan.args.m * plan.args.n * plan.args.batch_count;
  const bool fits = tuned != 0 && tuned <= kMaxScratch / results;  // the parts' sums fit into scratch memory
  const uint64_t slices = fits || tuned == 1 ? std::min(tuned, k) : slices_of_k(k, groups, wanted, least);
  plan.k_slice = std::min(ceil_div(ceil_div(k, slices), unit) * unit, max_k(traits));
  plan.slices = ceil_div(k, plan.k_slice);
}

double work_bytes(const Plan& plan) {
  const GemmArgs& args = plan.args;
  const auto bytes = [&](uint64_t elements, int32_t type, bool each) {
    return static_cast<double>(elements * dtype_size(type) * (each ? args.batch_count : 1));
  };
  return bytes(plan.a_elements, args.a_type, args.a_array != nullptr) +
         bytes(plan.b_elements, args.b_type, args.b_array != nullptr) +
         bytes(plan.out_elements, plan.out_type, args.c_array != nullptr && !plan.to_scratch);
}

namespace {

// Chooses the variant, and decides which inputs are copied for it.
void settle(const Recorder& recorder, Plan& plan) {
  const GemmArgs& args = plan.args;
  const int32_t sums = args.sum_type();
  if (forced_variant() == "wide" && recorder.traits().addresses) plan.wide = true;
  plan.choice = choose(recorder, plan);
  if (plan.choice.offer.kind == Kind::matrices) {
    plan.a_request = matrix_copy_of_a(args);
    plan.b_request = matrix_copy_of_b(args);
  } else if (plan.choice.offer.kind == Kind::native) {
    plan.a_request = native_copy_of_a(args);
    plan.b_request = native_copy_of_b(args);
  } else if (plan.choice.offer.kind == Kind::narrow) {
    plan.a_request = narrow_copy_of_a(plan);
    plan.b_request = narrow_copy_of_b(plan);
  } else if (plan.choice.offer.kind == Kind::tiles || plan.choice.offer.kind == Kind::panels) {
    plan.a_request = {args.a_type != sums, sums};
    plan.b_request = {args.b_type != sums, sums};
  }
}

void record_pieces(Recorder& recorder, const GemmArgs& args);

void record_product(Recorder& recorder, const GemmArgs& args, Plan& plan) {
  switch (plan.choice.offer.kind) {
    case Kind::tiny: record_tiny(recorder, plan); break;
    case Kind::skinny: record_skinny(recorder, plan); break;
    case Kind::native:
      if (!record_native(recorder, plan)) return record_pieces(recorder, args);  // planned anew, without this variant
      break;
    case Kind::narrow:
      if (!record_narrow(recorder, plan)) return record_pieces(recorder, args);
      break;
    case Kind::split:
      if (!record_split(recorder, plan)) return record_pieces(recorder, args);
      break;
    case Kind::dmma:
      if (!record_dmma(recorder, plan)) return record_pieces(recorder, args);
      break;
    case Kind::matrices: record_matrices(recorder, plan); break;
    case Kind::panels: record_panels(recorder, plan); break;
    case Kind::tiles: record_tiles(recorder, plan); break;
  }
  if (plan.to_scratch) record_finish(recorder, args, plan.out, plan.slices);
}

void settle_distances(GemmArgs& args);

// Strides in elements of the operands, for each unit of the extent that is cut.
struct Steps {
  uint64_t a, b, c, bias, residual;
};

// Cuts one extent (m, n, k or the batch) into pieces of at most `most`, which `record` records. Pieces of k add to C
// one after another. For a batch of buffers only the batch can be cut.
void record_cut(Recorder& recorder, const GemmArgs& args, uint64_t GemmArgs::*extent, uint64_t most, const Steps& steps,
                void (*record)(Recorder&, const GemmArgs&) = record_pieces) {
  for (uint64_t first = 0; first < args.*extent; first += most) {
    const Buffer a = moved(args.a, first * steps.a, args.a_type), b = moved(args.b, first * steps.b, args.b_type);
    const Buffer c = moved(args.c, first * steps.c, args.c_type);
    const Buffer bias = moved(args.epilogue.bias, first * steps.bias, args.c_type);
    const Buffer residual = moved(args.epilogue.residual, first * steps.residual, args.c_type);
    GemmArgs piece = args;
    piece.a = &a;
    piece.b = &b;
    piece.c = &c;
    if (args.epilogue.bias != nullptr) piece.epilogue.bias = &bias;
    if (args.epilogue.residual != nullptr) piece.epilogue.residual = &residual;
    piece.*extent = std::min(most, args.*extent - first);
    if (extent == &GemmArgs::m || extent == &GemmArgs::n) piece.c_part = GemmPart::all;
    if (extent == &GemmArgs::k && first > 0) piece.beta = 1;
    if (args.c_array != nullptr) {
      piece.a_array += first;
      piece.b_array += first;
      piece.c_array += first;
    }
    settle_distances(piece);  // the piece may be a single row or matrix
    record(recorder, piece);
  }
}

// The maximum number of rows (columns, matrices) of `elements` elements each that fit into scratch memory at once.
uint64_t fitting(uint64_t elements) { return std::max<uint64_t>(kMaxScratch / std::max<uint64_t>(elements, 1), 1); }

// Records a batch of buffers matrix by matrix.
void record_one_by_one(Recorder& recorder, const GemmArgs& args) {
  for (uint64_t i = 0; i < args.batch_count; ++i) record_pieces(recorder, GemmMatrix(args, i).args);
}

// Whether a batch of buffers can be computed by one dispatch. Tables of separate buffers are bound by address. Matrices
// that have to be cut, or that are worth packing, keep a device busy on their own.
bool goes_at_once(const Recorder& recorder, const Plan& plan) {
  return recorder.traits().addresses && !plan.wide && plan.choice.offer.kind != Kind::panels;
}

void record_pieces(Recorder& recorder, const GemmArgs& args) {
  const DeviceTraits& traits = recorder.traits();
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  const GemmEpilogue& epilogue = args.epilogue;
  const uint64_t bias_row = epilogue.bias_axis == TUFF_BIAS_ROWS ? 1 : 0;
  const uint64_t bias_col = epilogue.bias_axis == TUFF_BIAS_COLUMNS ? 1 : 0;
  const Steps rows = {ta ? 1 : args.lda, 0, args.ldc, bias_row, epilogue.ld_residual};
  const Steps cols = {0, tb ? args.ldb : 1, 1, bias_col, 1};
  const Steps depth = {ta ? args.lda : 1, tb ? 1 : args.ldb, 0, 0, 0};
  const Steps matrices = {args.stride_a, args.stride_b, args.stride_c, epilogue.stride_bias, epilogue.stride_residual};
  const bool each = args.c_array != nullptr, finish = needs_finish(args);
  if (each && (std::max(args.m, args.n) > kMaxExtent || args.k > max_k(traits))) {
    return record_one_by_one(recorder, args);
  }
  if (args.m > kMaxExtent) return record_cut(recorder, args, &GemmArgs::m, kMaxExtent, rows);
  if (args.n > kMaxExtent) return record_cut(recorder, args, &GemmArgs::n, kMaxExtent, cols);
  if (!finish && args.k > max_k(traits)) return record_cut(recorder, args, &GemmArgs::k, max_k(traits), depth);
  Plan plan(args);
  settle(recorder, plan);
  if (each && !goes_at_once(recorder, plan)) return record_one_by_one(recorder, args);
  // The number of workgroups, with the smallest tile, bounds how many matrices go into one dispatch.
  const uint64_t matrix_groups = ceil_div(args.m, 8) * ceil_div(args.n, 8);
  uint64_t max_batch =
      std::clamp<uint64_t>(kMaxGroups / matrix_groups, 1, each ? uint64_t{Dispatch::kMaxEach} : kMaxExtent);
  uint64_t max_m = kMaxExtent, max_n = kMaxExtent;
  if (matrix_groups > kMaxGroups) max_n = kMaxGroups / ceil_div(args.m, 8) * 8;
  // Scratch memory holds copies of inputs that are not of the sums' type, and sums.
  const bool sums_kept = plan.choice.offer.kind == Kind::matrices ? plan.operands_need_finish() || only_finish_has(args)
                         : plan.choice.offer.kind == Kind::native || plan.choice.offer.kind == Kind::split
                             ? native_keeps_sums(args)
                             : finish;
  if (plan.a_request.wanted) {
    max_batch = std::min(max_batch, fitting(args.m * args.k));
    if (args.m * args.k > kMaxScratch) max_m = std::min(max_m, fitting(args.k));
  }
  if (plan.b_request.wanted) {
    max_batch = std::min(max_batch, fitting(args.n * args.k));
    if (args.n * args.k > kMaxScratch) max_n = std::min(max_n, fitting(args.k));
  }
  if (sums_kept) {
    max_batch = std::min(max_batch, fitting(args.m * args.n));
    if (args.m * args.n > kMaxScratch) {
      constexpr uint64_t kSide = 8192;  // of a square piece: pieces of few rows would read B again and again
      max_m = std::min(max_m, fitting(std::min(args.n, kSide)));
      max_n = std::min(max_n, fitting(std::min(args.m, kSide)));
    }
  }
  if (args.batch_count > max_batch) {
    record_cut(recorder, args, &GemmArgs::batch_count, max_batch, matrices);
  } else if (each && (args.m > max_m || args.n > max_n)) {
    record_one_by_one(recorder, args);
  } else if (args.m > max_m) {
    record_cut(recorder, args, &GemmArgs::m, max_m, rows);
  } else if (args.n > max_n) {
    record_cut(recorder, args, &GemmArgs::n, max_n, cols);
  } else {
    record_product(recorder, args, plan);
  }
}

void check_device_type(const DeviceTraits& traits, int32_t type, const char* name) {
  const bool sixteen = type == TUFF_F16 || type == TUFF_BF16;
  if (sixteen && !traits.storage16) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} is {}, and the device has no 16-bit storage", name, dtype_name(type));
  }
  if (dtype_size(type) == 1 && !traits.storage8) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} is {}, and the device has no 8-bit storage", name, dtype_name(type));
  }
  if (type == TUFF_F64 && !traits.f64) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} is f64, and the device has no 64-bit arithmetic", name);
  }
}

// Unused leading dimensions and strides may be any number: normalises them so that they cannot overflow.
void settle_distances(GemmArgs& args) {
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  GemmEpilogue& epilogue = args.epilogue;
  if ((ta ? args.k : args.m) <= 1) args.lda = ta ? args.m : args.k;
  if ((tb ? args.n : args.k) <= 1) args.ldb = tb ? args.k : args.n;
  // A single row of op(A), stored as a dense column, is contiguous along k: it need not be transposed.
  if (args.m == 1 && ta && args.lda == 1) {
    args.ta = TUFF_NO_TRANS;
    args.lda = args.k;
  }
  if (args.m == 1) args.ldc = epilogue.ld_residual = args.n;
  if (args.batch_count == 1) {
    args.stride_a = args.stride_b = args.stride_c = epilogue.stride_bias = epilogue.stride_residual = 0;
  }
}

// If all matrices share B, and A and C continue without a gap, merges the batch into a single tall GEMM, provided that
// the epilogue permits it.
void merge_batch(GemmArgs& args) {
  GemmEpilogue& epilogue = args.epilogue;
  const bool bias_repeats =
      epilogue.bias_axis == TUFF_BIAS_NONE || (epilogue.bias_axis == TUFF_BIAS_COLUMNS && epilogue.stride_bias == 0);
  const bool residual_follows =
      epilogue.residual == nullptr || epilogue.stride_residual == args.m * epilogue.ld_residual;
  if (args.batch_count > 1 && args.c_part == GemmPart::all && args.c_array == nullptr && args.stride_b == 0 &&
      args.ta == TUFF_NO_TRANS && args.stride_a == args.m * args.lda && args.stride_c == args.m * args.ldc &&
      bias_repeats && residual_follows) {
    args.m *= args.batch_count;
    args.batch_count = 1;
    args.stride_a = args.stride_c = epilogue.stride_residual = 0;
  }
}

// Whether A and B are not read at all, so that C is only scaled.
bool scales_only(const GemmArgs& args) { return args.k == 0 || args.alpha == 0; }

// The second pass alone, which counts columns in 32 bits.
void record_scaled(Recorder& recorder, const GemmArgs& args) {
  const bool each = args.c_array != nullptr, wide = args.n > UINT32_MAX;
  if (each && (wide || !recorder.traits().addresses || args.batch_count > Dispatch::kMaxEach)) {
    for (uint64_t i = 0; i < args.batch_count; ++i) record_scaled(recorder, GemmMatrix(args, i).args);
    return;
  }
  if (!wide) return record_finish(recorder, args, nullptr, 0);
  const Steps columns = {0, 0, 1, args.epilogue.bias_axis == TUFF_BIAS_COLUMNS ? uint64_t{1} : 0, 1};
  record_cut(recorder, args, &GemmArgs::n, kMaxExtent, columns, record_scaled);
}

void record_batch(Recorder& recorder, GemmArgs args) {
  settle_distances(args);
  if (scales_only(args)) {
    if (args.beta != 1 || !args.epilogue.none()) record_scaled(recorder, args);
    return;
  }
  merge_batch(args);
  record_pieces(recorder, args);
}

void check_device(const DeviceTraits& traits, const GemmArgs& args) {
  check_device_type(traits, args.a_type, "a");
  check_device_type(traits, args.b_type, "b");
  check_device_type(traits, args.c_type, "c");
  if (args.k > kMaxExtent && needs_finish(args)) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "k is {}, at most {} if the type of c is not that of the sums, or with an epilogue",
         args.k, kMaxExtent);
  }
}

}  // namespace

bool record_gemm_with_panels(Recorder& recorder, const GemmArgs& wanted, const PanelSource& b) {
  GemmArgs args = wanted;
  settle_distances(args);
  const bool finish = needs_finish(args), copies_a = args.a_type != TUFF_F32;
  if (scales_only(args) || std::max({args.m, args.n, args.k}) > kMaxExtent) return false;
  if (finish ? args.m * args.n > kMaxScratch : args.k > max_k(recorder.traits())) return false;
  if (copies_a && args.m * args.k > kMaxScratch) return false;
  Plan plan(args);
  settle(recorder, plan);
  if (plan.choice.offer.kind != Kind::panels) return false;
  plan.packs_b = &b;
  record_product(recorder, args, plan);
  return true;
}

}  // namespace gemm

void record_gemm(Recorder& recorder, const GemmArgs& args) {
  gemm::check_device(recorder.traits(), args);
  if (args.m == 0 || args.n == 0 || args.batch_count == 0) return;
  if (args.c_array != nullptr && args.batch_count == 1) {
    gemm::record_batch(recorder, GemmMatrix(args, 0).args);
  } else {
    gemm::record_batch(recorder, args);
  }
}

std::string gemm_variants(const Recorder& recorder, const GemmArgs& batch) {
  gemm::check_device(recorder.traits(), batch);
  const bool none = batch.m == 0 || batch.n == 0 || batch.batch_count == 0 || gemm::scales_only(batch);
  GemmArgs args = batch;
  std::string names;
  uint32_t slices = 0;
  if (!none) {
    gemm::settle_distances(args);
    gemm::merge_batch(args);
    gemm::Plan plan(args);
    gemm::settle(recorder, plan);
    slices = plan.choice.slices;
    for (const gemm::Offer& offer : gemm::list_variants(recorder, plan)) {
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", offer.name);
    }
  }
  const TuningKey key = gemm_key(args);
  const std::string_view text = key.text();
  const size_t space = text.find(' ');
  return fmt::format(
      R"({{"operation": "{}", "form": "{}", "sizes": [{}, {}, {}, {}], "slices": {}, "variants": [{}]}})",
      text.substr(0, space), text.substr(space + 1), args.m, args.n, args.k, args.batch_count, slices, names);
}

}  // namespace tuff
