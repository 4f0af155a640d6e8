// Plans a matrix product on a Vulkan device: choose a kernel by the device and the shape, record it.
//
// TUFF_GEMM_VARIANT=<name> in the environment forces a row of the table of tiles below, or "skinny", or 64-bit
// indices ("wide"), for tests and measurements. It is ignored where that does not fit the device or the shape.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/common/loop_limit.hpp"
#include "kernels/gemm/gemm.hpp"
#include "runtime/log.hpp"
#include "runtime/platform/platform.hpp"
#include "runtime/status.hpp"
#include "runtime/vulkan/recorder.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

// A tile of C. Shared-memory tiles take bk of k at a time and give each invocation tm x tn; subgroup tiles
// have rows and columns in blocks of the subgroup's size and four times that.
struct Variant {
  const char* name;
  bool shared;
  uint32_t rows, cols, bk, tm, tn;
  // Products for each second on one core, in relation to the kind's best tile: where operands are bound as
  // descriptors, as addresses. Measured at 1024 (processors: Mesa 22.3 and 25.0) and 4096 (H200).
  double rate_descriptors, rate_addresses;
  // Operations that a product must have: a large subgroup tile takes a CPU driver most of a second to compile.
  double least_operations;

  uint32_t invocations() const { return rows / tm * (cols / tn); }
  uint32_t shared_bytes() const { return bk * (rows + 4 + cols) * 4; }
  uint32_t tile_rows(const DeviceTraits& traits) const { return shared ? rows : rows * traits.subgroup_size; }
  uint32_t tile_cols(const DeviceTraits& traits) const { return shared ? cols : cols * 4 * traits.subgroup_size; }
};

constexpr Variant kVariants[] = {
    {"tile_256x128", true, 256, 128, 16, 8, 16, 1.00, 1.00, 0},
    {"tile_128x256", true, 128, 256, 16, 8, 16, 0.95, 0.95, 0},
    {"tile_256x128x8", true, 256, 128, 8, 8, 16, 0.90, 0.90, 0},
    {"tile_128x128", true, 128, 128, 16, 8, 8, 0.85, 0.85, 0},
    {"tile_128x128x32", true, 128, 128, 32, 8, 8, 0.80, 0.80, 0},
    {"tile_128x64", true, 128, 64, 16, 8, 8, 0.70, 0.70, 0},
    {"tile_64x64", true, 64, 64, 16, 4, 8, 0.55, 0.55, 0},
    {"tile_64x64x32", true, 64, 64, 32, 4, 4, 0.50, 0.50, 0},
    {"tile_32x32", true, 32, 32, 32, 4, 4, 0.30, 0.30, 0},
    {"subgroup_4x2", false, 4, 2, 4, 0, 0, 0.90, 1.00, 3e7},
    {"subgroup_2x2", false, 2, 2, 4, 0, 0, 1.00, 0.80, 3e7},
    {"subgroup_4x1", false, 4, 1, 4, 0, 0, 0.90, 0.85, 3e7},
    {"subgroup_2x1", false, 2, 1, 4, 0, 0, 0.80, 0.70, 2e6},
    {"subgroup_1x1", false, 1, 1, 4, 0, 0, 0.50, 0.45, 0},
};

// Larger sizes are cut into pieces, so that 32-bit numbers hold rows, columns and workgroups.
constexpr uint64_t kMostExtent = 1u << 30, kMostGroups = 1u << 31;
constexpr double kTinyOperations = 5e5;  // on a processor
constexpr uint64_t kMostShort = 4;       // columns (or rows) of a skinny product

// One dispatch's worth, with what the kernels ask about its operands.
struct Plan {
  GemmArgs args;
  bool ta, tb, wide;
  uint64_t a_elements, b_elements, c_elements;  // footprints
  uint64_t slices = 1, k_slice;
  const Buffer* out;  // C, or scratch memory where k is cut into slices
  uint64_t out_elements, out_ld, out_stride;
};

uint64_t footprint(uint64_t rows, uint64_t cols, uint64_t ld, uint64_t stride, uint64_t batch_count) {
  return (batch_count - 1) * stride + (rows - 1) * ld + cols;
}

// Every row of every matrix starts at a multiple of `elements`, from the first on.
bool aligned(const Buffer* buffer, uint64_t ld, uint64_t stride, uint64_t elements) {
  return buffer->offset % (elements * 4) == 0 && ld % elements == 0 && stride % elements == 0;
}

uint64_t cores_of(const DeviceTraits& traits) { return traits.cores != 0 ? traits.cores : traits.cpu ? 4 : 32; }

bool has_subgroup_tiles(const DeviceTraits& traits) {
  return traits.subgroup_shuffle && traits.subgroup_size >= 2 && traits.subgroup_size <= 16;
}

bool runs_on(const Variant& variant, const DeviceTraits& traits) {
  if (!variant.shared) return has_subgroup_tiles(traits);
  return variant.invocations() <= traits.max_invocations && variant.invocations() <= traits.max_local_size[0] &&
         variant.shared_bytes() <= traits.shared_bytes;
}

std::string_view forced_variant() {
  static const std::optional<std::string> name = platform::environment("TUFF_GEMM_VARIANT");
  return name ? std::string_view(*name) : std::string_view();
}

double operations_of(const GemmArgs& args) {
  return 2.0 * static_cast<double>(args.m * args.batch_count) * static_cast<double>(args.n) *
         static_cast<double>(args.k);
}

// The tile with the shortest time: rounds of one tile on each core, by the tile's size and rate.
const Variant& choose(const DeviceTraits& traits, const GemmArgs& args, bool addresses) {
  const std::string_view forced = forced_variant();
  const Variant* best = nullptr;
  double best_time = 0;
  for (const Variant& variant : kVariants) {
    if (!runs_on(variant, traits)) continue;
    if (forced == variant.name) return variant;
    if (variant.shared == (traits.cpu && has_subgroup_tiles(traits))) continue;
    if (operations_of(args) < variant.least_operations) continue;
    const uint64_t rows = variant.tile_rows(traits), cols = variant.tile_cols(traits);
    const uint64_t tiles = ceil_div(args.m, rows) * ceil_div(args.n, cols) * args.batch_count;
    const double time = static_cast<double>(ceil_div(tiles, cores_of(traits))) * static_cast<double>(rows * cols) /
                        (addresses ? variant.rate_addresses : variant.rate_descriptors);
    if (best == nullptr || time < best_time) {
      best = &variant;
      best_time = time;
    }
  }
  if (best == nullptr) fail(TUFF_ERROR_UNSUPPORTED, "no tile of gemm fits the device");
  return *best;
}

// Cuts k into slices where `groups` workgroups leave most of the device idle: up to `wanted` workgroups, each
// with at least `least` of k, a multiple of `unit`. The slices depend on nothing but shape and device.
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

// Mirrors Push in gemm_common.glsl, behind the bases.
template <typename Index>
struct TilePush {
  Index lda, ldb, ldc, stride_a, stride_b, stride_c;
  uint32_t m, n, k, batch_count, slices, k_slice, tiles_m, tiles_n;
  float alpha, beta;
};

template <typename Index>
void push_tile(Dispatch& dispatch, const Plan& plan, uint64_t tiles_m, uint64_t tiles_n) {
  const GemmArgs& args = plan.args;
  const bool sliced = plan.slices > 1;
  const auto index = [](uint64_t x) { return static_cast<Index>(x); };
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  dispatch.push(TilePush<Index>{index(args.lda), index(args.ldb), index(plan.out_ld), index(args.stride_a),
                                index(args.stride_b), index(plan.out_stride), number(args.m), number(args.n),
                                number(args.k), number(args.batch_count), number(plan.slices), number(plan.k_slice),
                                number(tiles_m), number(tiles_n), sliced ? 1.0f : static_cast<float>(args.alpha),
                                sliced ? 0.0f : static_cast<float>(args.beta)});
}

void record_tiles(Recorder& recorder, Plan& plan, const Variant& variant) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const uint64_t rows = variant.tile_rows(traits), cols = variant.tile_cols(traits);
  const uint64_t tiles_m = ceil_div(args.m, rows), tiles_n = ceil_div(args.n, cols);
  const uint64_t groups = tiles_m * tiles_n * args.batch_count;
  // Half the cores idle, and k long enough to pay for the second pass.
  const uint64_t wanted = groups * 2 <= cores_of(traits) && args.k >= 2048 ? cores_of(traits) : groups;
  slice_k(plan, recorder, groups, wanted, 512, 32);

  const bool a_fours = aligned(args.a, args.lda, args.stride_a, 4) && (plan.ta ? args.m : args.k) % 4 == 0;
  const bool b_fours = aligned(args.b, args.ldb, args.stride_b, 4) && (plan.tb ? args.k : args.n) % 4 == 0;
  KernelRequest request(variant.shared ? shaders::gemm_tile : shaders::gemm_subgroup);
  request.define("TRANS_A", plan.ta).define("TRANS_B", plan.tb).wide(plan.wide);
  if (variant.shared) {
    const bool edge = args.m % rows != 0 || args.n % cols != 0 || args.k % variant.bk != 0;
    const bool c_fours = aligned(plan.out, plan.out_ld, plan.out_stride, 4) && args.n % 4 == 0;
    request.define("BM", rows).define("BN", cols).define("BK", variant.bk).define("TM", variant.tm);
    request.define("TN", variant.tn).define("VECTOR_A", a_fours).define("VECTOR_B", b_fours);
    request.define("VECTOR_C", c_fours).define("EDGE", edge).define("UNROLL", !traits.cpu);
  } else {
    // One kernel for all that is tiny. Else: what is left of k beyond a multiple of four is read by itself; a row
    // of pairs holds whole pairs.
    const bool tiny = operations_of(args) < kTinyOperations;
    const bool a_pairs = variant.rows % 2 == 0 && args.m % 2 == 0 && aligned(args.a, args.lda, args.stride_a, 2);
    const bool a_vectors = !tiny && (plan.ta ? a_pairs : aligned(args.a, args.lda, args.stride_a, 4));
    const bool b_vectors = !tiny && aligned(args.b, args.ldb, args.stride_b, 4) && (plan.tb || args.n % 4 == 0);
    request.define("WIDTH", traits.subgroup_size).define("ROW_BLOCKS", variant.rows);
    request.define("COL_BLOCKS", variant.cols).define("VECTOR_A", a_vectors).define("VECTOR_B", b_vectors);
    const bool c_vectors = b_vectors && !plan.tb && aligned(plan.out, plan.out_ld, plan.out_stride, 4);
    request.define("VECTOR_C", c_vectors).define("TAIL", tiny || args.k % 4 != 0).define("PAIRS", traits.addresses);
    request.define("BETA", out_access(plan) == Access::read_write);
  }
  Dispatch dispatch("gemm");
  dispatch.operand(args.a, 0, plan.a_elements * 4, Access::read);
  dispatch.operand(args.b, 0, plan.b_elements * 4, Access::read);
  dispatch.operand(plan.out, 0, plan.out_elements * 4, out_access(plan));
  if (plan.wide) {
    push_tile<uint64_t>(dispatch, plan, tiles_m, tiles_n);
  } else {
    push_tile<uint32_t>(dispatch, plan, tiles_m, tiles_n);
  }
  dispatch.groups_linear(groups * plan.slices, traits).work(work_bytes(plan), operations_of(args));
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} {}x{}x{} batch {}: {}, {} tiles, {} slices of k, vectors {}{}{}",
        plan.ta ? 't' : 'n', plan.tb ? 't' : 'n', args.m, args.n, args.k, args.batch_count, variant.name, groups,
        plan.slices, a_fours ? "a" : "", b_fours ? "b" : "", plan.wide ? ", wide" : "");
  }
  recorder.dispatch(request, dispatch);
}

// Mirrors Push in gemm_skinny_common.glsl, behind the bases.
template <typename Index>
struct SkinnyPush {
  Index ld, s_k, s_col, out_row, out_col, stride_l, stride_s, stride_out;
  uint32_t rows, k, batch_count, slices, k_slice, row_blocks;
  float alpha, beta;
};

// A skinny product with the roles settled: the long operand (rows x k, perhaps stored k x rows), the short one.
struct Skinny {
  const Buffer *l, *s;
  uint64_t l_elements, s_elements, rows, cols, ld, s_k, s_col, stride_l, stride_s;
  bool along_k;     // the long operand's rows lie along k
  bool transposed;  // it is B: C is made column by column
};

Skinny skinny_of(const Plan& plan) {
  const GemmArgs& args = plan.args;
  if (args.n <= kMostShort) {
    return {args.a,
            args.b,
            plan.a_elements,
            plan.b_elements,
            args.m,
            args.n,
            args.lda,
            plan.tb ? 1 : args.ldb,
            plan.tb ? args.ldb : 1,
            args.stride_a,
            args.stride_b,
            !plan.ta,
            false};
  }
  return {args.b,
          args.a,
          plan.b_elements,
          plan.a_elements,
          args.n,
          args.m,
          args.ldb,
          plan.ta ? args.lda : 1,
          plan.ta ? 1 : args.lda,
          args.stride_b,
          args.stride_a,
          plan.tb,
          true};
}

template <typename Index>
void push_skinny(Dispatch& dispatch, const Plan& plan, const Skinny& skinny, uint64_t row_blocks) {
  const GemmArgs& args = plan.args;
  const bool sliced = plan.slices > 1;
  const auto index = [](uint64_t x) { return static_cast<Index>(x); };
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  dispatch.push(SkinnyPush<Index>{
      index(skinny.ld), index(skinny.s_k), index(skinny.s_col), index(skinny.transposed ? 1 : plan.out_ld),
      index(skinny.transposed ? plan.out_ld : 1), index(skinny.stride_l), index(skinny.stride_s),
      index(plan.out_stride), number(skinny.rows), number(args.k), number(args.batch_count), number(plan.slices),
      number(plan.k_slice), number(row_blocks), sliced ? 1.0f : static_cast<float>(args.alpha),
      sliced ? 0.0f : static_cast<float>(args.beta)});
}

void record_skinny(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const Skinny skinny = skinny_of(plan);
  const uint32_t width = traits.subgroup_size;
  // A subgroup for each row pays only if k keeps its lanes busy.
  const bool by_rows = skinny.along_k && traits.subgroup_arithmetic && args.k >= 4 * width;
  const bool vector_l = aligned(skinny.l, skinny.ld, skinny.stride_l, 4);
  KernelRequest request(by_rows ? shaders::gemm_rows : shaders::gemm_cols);
  request.streaming();
  request.define("SHORT", static_cast<int64_t>(skinny.cols)).define("PAIRS", traits.cpu && traits.addresses);
  uint64_t block_rows = 0;
  if (by_rows) {
    const uint32_t local_size = traits.cpu ? width : std::max(width, std::min(128u, traits.max_invocations));
    const uint32_t rows = traits.cpu ? 4 : skinny.rows >= 64 * cores_of(traits) ? 2 : 1;
    block_rows = traits.cpu ? 16 : local_size / width * rows;
    const bool vector_s = skinny.s_k == 1 && aligned(skinny.s, skinny.cols > 1 ? skinny.s_col : 0, skinny.stride_s, 4);
    request.define("LOCAL_SIZE", local_size).define("GROUP_ROWS", static_cast<int64_t>(block_rows));
    request.define("ROWS", rows).define("VECTOR_L", vector_l).define("VECTOR_S", vector_s);
  } else {
    const bool shuffle = traits.cpu && traits.subgroup_shuffle;
    const uint32_t lanes = traits.cpu ? width : 32;
    const uint32_t depth = traits.cpu || args.k < 64 ? 1 : 8;
    // On a processor long runs of each row of the stored matrix, if there are rows enough for every core.
    const uint32_t blocks = !traits.cpu ? 1 : skinny.rows >= uint64_t{width} * 32 * cores_of(traits) ? 8 : 2;
    block_rows = uint64_t{lanes} * 4 * blocks;
    request.define("LANES", lanes).define("DEPTH", depth).define("BLOCKS", blocks).define("SHUFFLE", shuffle);
    request.define("ALONG_K", skinny.along_k);
    request.define("VECTOR_L", vector_l && !skinny.along_k && skinny.rows % 4 == 0);
  }
  const uint64_t row_blocks = ceil_div(skinny.rows, block_rows), groups = row_blocks * args.batch_count;
  slice_k(plan, recorder, groups, traits.cpu ? cores_of(traits) : 8 * cores_of(traits), traits.cpu ? 4096 : 512, 32);

  Dispatch dispatch("gemm skinny");
  dispatch.operand(skinny.l, 0, skinny.l_elements * 4, Access::read);
  dispatch.operand(skinny.s, 0, skinny.s_elements * 4, Access::read);
  dispatch.operand(plan.out, 0, plan.out_elements * 4, out_access(plan));
  if (plan.wide) {
    push_skinny<uint64_t>(dispatch, plan, skinny, row_blocks);
  } else {
    push_skinny<uint32_t>(dispatch, plan, skinny, row_blocks);
  }
  dispatch.groups_linear(groups * plan.slices, traits).work(work_bytes(plan), operations_of(args));
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    log(TUFF_LOG_DISPATCH, "gemm {}{} {}x{}x{} batch {}: {}, {} groups, {} slices of k{}", plan.ta ? 't' : 'n',
        plan.tb ? 't' : 'n', args.m, args.n, args.k, args.batch_count, by_rows ? "rows" : "cols", groups, plan.slices,
        plan.wide ? ", wide" : "");
  }
  recorder.dispatch(request.wide(plan.wide), dispatch);
}

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

// C = alpha * (the slices' sums) + beta * C; with no slices, C = beta * C.
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
    Dispatch operands("gemm");
    operands.operand(args.a, 0, plan.a_elements * 4, Access::read);
    operands.operand(args.b, 0, plan.b_elements * 4, Access::read);
    operands.operand(args.c, 0, plan.c_elements * 4, Access::write);
    const bool addresses = plan.wide || recorder.binds_addresses(operands);
    record_tiles(recorder, plan, choose(recorder.traits(), args, addresses));
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
    if (args.beta != 1) record_finish(recorder, args, nullptr, 0);
    return;
  }
  // One B for all, and A and C follow on without a gap: a single tall product.
  if (args.batch_count > 1 && args.stride_b == 0 && !ta && args.stride_a == args.m * args.lda &&
      args.stride_c == args.m * args.ldc) {
    args.m *= args.batch_count;
    args.batch_count = 1;
    args.stride_a = args.stride_c = 0;
  }
  record_pieces(recorder, args);
}

}  // namespace tuff
