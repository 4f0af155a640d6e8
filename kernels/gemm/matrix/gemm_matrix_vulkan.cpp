// GEMM by cooperative matrices: the table of tiles, an estimate of each one's time, the dispatch of one.
#include <algorithm>
#include <iterator>

#include "kernels/common/workgroup.hpp"
#include "kernels/gemm/gemm_plan.hpp"
#include "planning/log.hpp"
#include "shaders/gemm_matrix.hpp"

namespace tuff::gemm {
namespace {

// A workgroup's tile of C, the bytes along k that it takes at a time, and the part of the tile that a subgroup
// computes.
struct MatrixVariant {
  const char* name;
  uint32_t rows, cols, k_bytes, sub_rows, sub_cols;
  // Multiply-adds per second on one core, relative to the best tile: with one workgroup on a core, and with the maximum
  // that fit on it. `ends` is the cost of a tile's beginning and end, in steps of k. Measured on an H200 with GEMMs of
  // 66 sizes.
  double rate_alone, rate;
  uint32_t fit;
  double ends;

  uint32_t subgroups() const { return rows / sub_rows * (cols / sub_cols); }
  bool narrow() const { return rows * cols <= 1024; }
  double rate_of(uint64_t on_a_core) const {
    const double full = static_cast<double>(std::min<uint64_t>(on_a_core, fit) - 1) / (fit - 1);
    return rate_alone + (rate - rate_alone) * full;
  }
};

constexpr MatrixVariant kVariants[] = {
    {"matrix_128x128", 128, 128, 64, 64, 64, 0.52, 1.00, 2, 300},
    {"matrix_128x64", 128, 64, 64, 64, 32, 0.36, 0.75, 2, 240},
    {"matrix_64x64", 64, 64, 128, 32, 32, 0.37, 0.48, 2, 267},
    {"matrix_64x64x32", 64, 64, 64, 32, 32, 0.36, 0.53, 4, 230},  // for short k
    // For few columns or few rows: bound by memory, so k is split until enough workgroups load at once.
    {"matrix_64x16", 64, 16, 128, 16, 16, 0.12, 0.12, 2, 200},
    {"matrix_16x64", 16, 64, 128, 16, 16, 0.12, 0.12, 2, 200},
};
// Cost of split-K's second pass, in multiply-adds of the best tile: a fixed part, and a part for each partial sum.
constexpr double kPassOperations = 6.3e6, kPassOperationsPerSum = 5;
// With few rows or columns a tile that is not narrow is slower by this factor: most of its loads are padding.
constexpr double kFewLoads = 4;
constexpr uint32_t kPieceBytes = 16;  // the widest load, in which tiles are kept in shared memory

// The element type of the cooperative matrices: the inputs' type, or the type that f32 may be rounded to. 8-bit floats
// are numbers of f16 and of bf16. 0: none.
int32_t input_type(const GemmArgs& args) {
  if (args.has_float8_inputs()) return TUFF_F16;
  if (kFloat8Types.has(args.a_type)) return dtype_size(args.b_type) == 2 ? args.b_type : 0;
  if (kFloat8Types.has(args.b_type)) return dtype_size(args.a_type) == 2 ? args.a_type : 0;
  if (args.a_type != TUFF_F32 || args.b_type != TUFF_F32) return args.a_type == args.b_type ? args.a_type : 0;
  if (args.precision == TUFF_PRECISION_ALLOW_F16) return TUFF_F16;
  return args.precision == TUFF_PRECISION_ALLOW_BF16 ? TUFF_BF16 : 0;
}

// The largest shape of cooperative matrices that the device has for a GEMM's types; nullptr if it has none.
const MatrixShape* find_shape(const DeviceTraits& traits, const GemmArgs& args) {
  const int32_t type = input_type(args);
  if (type == 0) return nullptr;
  const uint32_t piece = kPieceBytes / static_cast<uint32_t>(dtype_size(type));
  const MatrixShape* best = nullptr;
  for (uint32_t i = 0; i < traits.matrix_shape_count; ++i) {
    const MatrixShape& shape = traits.matrix_shapes[i];
    if (shape.a != type || shape.b != type || shape.c != args.sum_type()) continue;
    // Tiles and loads consist of whole shapes and pieces.
    if (32 % shape.m != 0 || 32 % shape.n != 0 || 32 % shape.k != 0) continue;
    if (shape.m % piece != 0 || shape.n % piece != 0 || shape.k % piece != 0) continue;
    if (best == nullptr || shape.m * shape.n * shape.k > best->m * best->n * best->k) best = &shape;
  }
  return best;
}

uint32_t shared_bytes(const MatrixVariant& variant, const MatrixShape& shape, uint32_t element_bytes, bool ta,
                      bool tb) {
  const uint32_t k = variant.k_bytes / element_bytes;
  const auto tile = [&](uint32_t rows, uint32_t cols) { return rows * (cols * element_bytes + kPieceBytes); };
  const uint32_t a = ta ? tile(k, variant.rows) : tile(variant.rows, k);
  const uint32_t b = tb ? tile(variant.cols, k) : tile(k, variant.cols);
  return std::max(a + b, variant.subgroups() * shape.m * (variant.sub_cols * 4 + kPieceBytes));
}

bool runs_on(const MatrixVariant& variant, const DeviceTraits& traits, const MatrixShape& shape, uint32_t element_bytes,
             bool ta, bool tb) {
  const uint32_t invocations = variant.subgroups() * traits.subgroup_size, k = variant.k_bytes / element_bytes;
  const uint32_t piece = kPieceBytes / element_bytes;
  return invocations <= traits.max_invocations && invocations <= traits.max_local_size[0] &&
         variant.rows * k % (piece * invocations) == 0 && variant.cols * k % (piece * invocations) == 0 &&
         shape.m * variant.sub_cols % (4 * traits.subgroup_size) == 0 &&
         shared_bytes(variant, shape, element_bytes, ta, tb) <= traits.shared_bytes;
}

// 8-bit operands are fastest along k (598 against 287 TFLOP/s on an H200): a large GEMM pays for a transposed copy.
// 16-bit columns of B are fastest across k (345 against 303): enough rows pay for a copy. Loads of single elements cost
// so much that nearly every GEMM pays for an aligned copy.
constexpr double kTransposeOperations = 4e9, kAlignOperations = 1e6;
constexpr uint64_t kTransposeRows = 4096, kTransposeExtent = 1024;

// The maximum number of bytes that an operand can be loaded by at once.
uint32_t load_bytes(const Buffer* buffer, int32_t type, uint64_t ld, uint64_t stride, uint64_t length) {
  const uint32_t size = static_cast<uint32_t>(dtype_size(type));
  for (const uint32_t bytes : {kPieceBytes, 4u}) {
    const uint32_t elements = bytes / size;
    if (aligned(buffer, type, ld, stride, elements) && length % elements == 0) return bytes;
  }
  return size;
}

CopyRequest matrix_copy(const GemmArgs& args, int32_t own_type, bool across_k, uint32_t bytes) {
  const int32_t type = input_type(args);
  if (own_type != type) return {true, type};
  const double operations = operations_of(args);
  if (type == TUFF_I8) return {across_k && operations >= kTransposeOperations, type, true};
  return {bytes < kPieceBytes && operations >= kAlignOperations, type};
}

}  // namespace

CopyRequest matrix_copy_of_a(const GemmArgs& args) {
  const bool ta = args.ta != TUFF_NO_TRANS;
  return matrix_copy(args, args.a_type, ta,
                     load_bytes(args.a, args.a_type, args.lda, args.stride_a, ta ? args.m : args.k));
}

CopyRequest matrix_copy_of_b(const GemmArgs& args) {
  const bool tb = args.tb != TUFF_NO_TRANS;
  const bool often = args.m >= kTransposeRows && args.n >= kTransposeExtent && args.k >= kTransposeExtent;
  if (tb && often && args.b_type == input_type(args) && dtype_size(args.b_type) == 2) return {true, args.b_type, true};
  return matrix_copy(args, args.b_type, !tb,
                     load_bytes(args.b, args.b_type, args.ldb, args.stride_b, tb ? args.k : args.n));
}

namespace {

constexpr uint64_t kMinSlice = 256;  // minimum length of a split-K part, so that it pays for the second pass

// The number of workgroups up to which k is split: if half of the cores would be idle and k is long enough to pay for
// the second pass, or for a narrow tile always.
uint64_t wanted_groups(const MatrixVariant& variant, const DeviceTraits& traits, uint64_t groups, uint64_t k) {
  const uint64_t cores = cores_of(traits);
  if (variant.narrow()) return 6 * cores;
  return groups * 2 <= cores && k >= 2 * kMinSlice ? 2 * cores : groups;
}

void offer_matrices(const DeviceTraits& traits, const GemmArgs& args, const Windows* windows, Offers& offers) {
  const MatrixShape* shape = find_shape(traits, args);
  if (shape == nullptr) return;
  const uint32_t element_bytes = static_cast<uint32_t>(dtype_size(shape->a));
  CopyRequest a_copy, b_copy;
  if (windows == nullptr) {
    a_copy = matrix_copy_of_a(args);
    b_copy = matrix_copy_of_b(args);
  }
  const bool transposes = (a_copy.wanted && a_copy.transposed) || (b_copy.wanted && b_copy.transposed);
  if (transposes && !can_transpose(traits)) return;
  const bool ta = (args.ta != TUFF_NO_TRANS) != (a_copy.wanted && a_copy.transposed);
  const bool tb = (args.tb != TUFF_NO_TRANS) != (b_copy.wanted && b_copy.transposed);
  const Extents all = extents_of(args, windows);
  for (uint32_t row = 0; row < std::size(kVariants); ++row) {
    const MatrixVariant& variant = kVariants[row];
    if (!offers.wants(variant.name)) continue;
    if (!runs_on(variant, traits, *shape, element_bytes, ta, tb)) continue;
    if (windows != nullptr && windows->channels % (variant.k_bytes / element_bytes) != 0) continue;
    const uint64_t tiles = ceil_div(all.m, variant.rows) * ceil_div(all.n, variant.cols) * all.batch;
    const uint64_t slices = slices_of_k(args.k, tiles, wanted_groups(variant, traits, tiles, args.k), kMinSlice);
    const uint64_t rounds = ceil_div(tiles * slices, cores_of(traits));
    const double length = static_cast<double>(args.k) / static_cast<double>(slices) + variant.ends;
    const double sums = static_cast<double>(all.m * all.n * all.batch * slices);
    const bool few = std::min(all.m, all.n) <= 16;
    const double rate = variant.rate_of(rounds);
    const double time = static_cast<double>(rounds * variant.rows * variant.cols) * length /
                            (few && !variant.narrow() ? rate / kFewLoads : rate) +
                        (slices > 1 ? kPassOperations + sums * kPassOperationsPerSum : 0);
    // With split-K a larger tile fills the device as well, and reads less.
    const bool suits = !variant.narrow() || few || args.k <= 1024;
    offers.add({Kind::matrices, variant.name, row, time, suits ? Fit::suits : Fit::perhaps});
  }
}

// Whether bias and residual can be read as vec4, as C is written.
bool epilogue_as_vec4(const GemmArgs& args) {
  const GemmEpilogue& epilogue = args.epilogue;
  const bool bias =
      epilogue.bias_axis != TUFF_BIAS_COLUMNS || aligned(epilogue.bias, args.c_type, 0, epilogue.stride_bias, 4);
  return bias && (epilogue.residual == nullptr ||
                  aligned(epilogue.residual, args.c_type, epilogue.ld_residual, epilogue.stride_residual, 4));
}

// How the inputs are read: the bytes loaded at once, and whether rows are padded to whole pieces.
struct Loads {
  uint32_t a_bytes, b_bytes;
  bool a_padded, b_padded;
};

Loads loads_of(const Plan& plan, int32_t type) {
  const GemmArgs& args = plan.args;
  const bool a_windows = plan.windows != nullptr && plan.windows->of_a;
  const bool b_windows = plan.windows != nullptr && !plan.windows->of_a;
  // The rows of copies are padded to whole pieces.
  const uint64_t a_length = plan.ta ? args.m : args.k, b_length = plan.tb ? args.k : args.n;
  const uint64_t piece = kPieceBytes / dtype_size(type);
  Loads loads{};
  loads.a_padded = plan.a_request.wanted && a_length % piece != 0;
  loads.b_padded = plan.b_request.wanted && b_length % piece != 0;
  loads.a_bytes =
      loads.a_padded || a_windows ? kPieceBytes : load_bytes(args.a, type, args.lda, args.stride_a, a_length);
  loads.b_bytes =
      loads.b_padded || b_windows ? kPieceBytes : load_bytes(args.b, type, args.ldb, args.stride_b, b_length);
  return loads;
}

// Whether C can be written as vec4, and the epilogue's operands read likewise.
bool c_as_vec4(const Plan& plan) {
  const GemmArgs& args = plan.args;
  const bool plain =
      !plan.fused() && plan.beta() == 0 && (plan.to_scratch || args.epilogue.activation == TUFF_ACTIVATION_NONE);
  return aligned(plan.out, plan.out_type, plan.out_ld, plan.out_stride, 4) && args.n % 4 == 0 &&
         (plain || plan.out_type != TUFF_I32) && (!plan.fused() || epilogue_as_vec4(args));
}

KernelRequest request_of(const Plan& plan, const MatrixVariant& variant, const MatrixShape& shape, const Loads& loads,
                         const DeviceTraits& traits) {
  const int32_t type = shape.a;
  const uint32_t bk = variant.k_bytes / static_cast<uint32_t>(dtype_size(type));
  const Extents all = extents_of(plan.args, plan.windows);
  const bool c_vector = c_as_vec4(plan);
  KernelRequest request = shaders::GemmMatrix::request(
      {.a_bytes = loads.a_bytes,
       .b_bytes = loads.b_bytes,
       .beta = c_vector && plan.beta() != 0,
       .bk = bk,
       .bm = variant.rows,
       .bn = variant.cols,
       .c_vector = c_vector,
       .edge = all.m % variant.rows != 0 || all.n % variant.cols != 0 || plan.args.k % bk != 0,
       .epilogue = plan.epilogue_defines(traits),
       .mk = shape.k,
       .mm = shape.m,
       .mn = shape.n,
       .padded_a = loads.a_padded,
       .padded_b = loads.b_padded,
       .trans_a = plan.ta,
       .trans_b = plan.tb,
       .width = traits.subgroup_size,
       .window_valid = plan.windows != nullptr ? plan.windows->valid : 0,
       .windows = plan.windows == nullptr ? 0
                  : plan.windows->of_a    ? 1
                                          : 2,
       .wm = variant.sub_rows,
       .wn = variant.sub_cols});
  request.matrices(type == TUFF_I8 ? Matrices::int8 : type == TUFF_BF16 ? Matrices::bf16 : Matrices::f16);
  request.wide(plan.wide);
  return request;
}

template <typename Index, typename Number, bool epilogue, bool windows>
void push_matrices(Dispatch& dispatch, const Plan& plan, uint64_t tiles_m, uint64_t tiles_n) {
  using Push = shaders::GemmMatrix::Push<Index, Number, epilogue, windows>;
  if constexpr (sizeof(Push) <= Dispatch::kMaxPushBytes) {
    Push push = tile_push<Push>(plan, tiles_m, tiles_n);
    if constexpr (epilogue) set_epilogue_places(push, plan.args.epilogue);
    if constexpr (windows) {
      const Windows& made_of = *plan.windows;
      const Extents all = extents_of(plan.args, plan.windows);
      push.m = static_cast<uint32_t>(all.m);
      push.n = static_cast<uint32_t>(all.n);
      push.batch_count = 1;
      (made_of.of_a ? push.stride_b : push.stride_a) = static_cast<Index>(made_of.of_a ? plan.args.m : plan.args.n);
      push.stride_c = static_cast<Index>(all.m * all.n);  // between split-K parts
      push.tap_row = made_of.tap_row;
      push.width_step = made_of.width | made_of.step << 16;
      push.taps = made_of.channels | made_of.taps << 16 | made_of.dilation << 24;
    }
    dispatch.push(push);
  } else {
    fail(TUFF_ERROR_INTERNAL, "gemm_matrix has no room for windows and an epilogue with 64-bit indices");
  }
}

}  // namespace

void record_matrices(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const MatrixVariant& variant = kVariants[plan.choice.offer.row];
  const MatrixShape& shape = *find_shape(traits, args);
  const int32_t type = shape.a;
  const Extents all = extents_of(args, plan.windows);
  const uint64_t tiles_m = ceil_div(all.m, variant.rows), tiles_n = ceil_div(all.n, variant.cols);
  const uint64_t groups = tiles_m * tiles_n * all.batch;
  slice_k(plan, traits, groups, wanted_groups(variant, traits, groups, args.k), kMinSlice,
          variant.k_bytes / dtype_size(type));
  plan.to_scratch = plan.slices > 1 || plan.operands_need_finish() || only_finish_has(args);
  take_scratch(recorder, plan);

  const Loads loads = loads_of(plan, type);
  KernelRequest request = request_of(plan, variant, shape, loads, traits);
  Dispatch dispatch("gemm matrices");
  plan.operand_a(dispatch);
  plan.operand_b(dispatch);
  plan.operand_out(dispatch);
  plan.epilogue_operands(dispatch);
  define_each(request, dispatch);
  with_index(plan.wide, [&](auto index) {
    with_number(plan.out_type, [&](auto number) {
      with_flag(plan.fused(), [&](auto fused) {
        with_flag(plan.windows != nullptr, [&](auto windows) {
          push_matrices<decltype(index), decltype(number), fused, windows>(dispatch, plan, tiles_m, tiles_n);
        });
      });
    });
  });
  dispatch.groups_linear(groups * plan.slices, traits)
      .work(work_bytes(plan), operations_of(args))
      .variant(variant.name);
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH,
        "gemm {}{} {} {}x{}x{} batch {}: {} ({}), {} tiles, {} parts of k, loads of {} and {} "
        "bytes{}",
        plan.ta ? 't' : 'n', plan.tb ? 't' : 'n', dtype_name(type), args.m, args.n, args.k, args.batch_count,
        variant.name, reason(plan), groups, plan.slices, loads.a_bytes, loads.b_bytes, plan.wide ? ", wide" : "");
  }
  recorder.dispatch(request, dispatch);
}

bool is_matrix_variant(std::string_view name) {
  return std::any_of(std::begin(kVariants), std::end(kVariants),
                     [&](const MatrixVariant& row) { return name == row.name; });
}

void offer_matrices(const DeviceTraits& traits, const GemmArgs& args, Offers& offers) {
  offer_matrices(traits, args, nullptr, offers);
}

void offer_windows(const DeviceTraits& traits, const GemmArgs& args, const Windows& windows, Offers& offers) {
  offer_matrices(traits, args, &windows, offers);
}

}  // namespace tuff::gemm
