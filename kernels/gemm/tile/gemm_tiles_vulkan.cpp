// GEMM by tiles of C: the table of tiles, an estimate of each one's time, the dispatch of one.
#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/gemm/gemm_plan.hpp"
#include "planning/log.hpp"
#include "shaders/gemm_subgroup.hpp"
#include "shaders/gemm_tile.hpp"

namespace tuff::gemm {
namespace {

// A tile of C. Shared-memory tiles take bk steps of k at a time and give each invocation tm x tn elements. Subgroup
// tiles count rows in units of the subgroup size, and columns in units of four times that.
struct Variant {
  const char* name;
  bool shared;
  uint32_t rows, cols, bk, tm, tn;
  // Multiply-adds per second on one full core, relative to the kind's best tile, with operands bound by descriptors and
  // by addresses. Measured with matrices of 1024 (CPU devices: Mesa 22.3 and 25.0) and 8192 (H200).
  double rate_descriptors, rate_addresses;
  // The cost of a tile's beginning and end, in steps of k. Measured on an H200 with batches of 128 x 128 x 128, and on
  // Mesa 25.0 with short k.
  double ends;
  // Minimum operations of a GEMM, including those steps: a CPU driver takes most of a second to compile a large
  // subgroup tile.
  double min_operations;
  bool swapped = false;  // computes C transposed = B transposed * A transposed: the tile's rows are C's columns

  uint32_t invocations(const DeviceTraits& traits) const {
    return shared ? rows / tm * (cols / tn) : traits.subgroup_size;
  }
  uint64_t shared_bytes(uint32_t element_bytes) const {
    return shaders::GemmTile::shared_elements({.bk = bk, .bm = rows, .bn = cols}) * element_bytes;
  }
  uint32_t tile_rows(const DeviceTraits& traits) const { return shared ? rows : rows * traits.subgroup_size; }
  uint32_t tile_cols(const DeviceTraits& traits) const { return shared ? cols : cols * 4 * traits.subgroup_size; }
};

constexpr Variant kVariants[] = {
    {"tile_128x128", true, 128, 128, 16, 16, 8, 1.00, 1.00, 106, 0},
    {"tile_128x128x8x8", true, 128, 128, 16, 8, 8, 0.95, 0.95, 90, 0},
    {"tile_128x64", true, 128, 64, 16, 8, 8, 0.94, 0.94, 85, 0},
    {"tile_64x64x8", true, 64, 64, 8, 8, 8, 0.92, 0.92, 59, 0},
    {"tile_64x64", true, 64, 64, 16, 4, 8, 0.83, 0.83, 42, 0},
    {"tile_64x64x32", true, 64, 64, 32, 4, 4, 0.60, 0.60, 42, 0},
    {"tile_32x32", true, 32, 32, 32, 4, 4, 0.35, 0.35, 30, 0},
    {"subgroup_4x2", false, 4, 2, 4, 0, 0, 0.90, 1.00, 14, 1.5e7},
    {"subgroup_2x2", false, 2, 2, 4, 0, 0, 1.00, 0.80, 14, 1.5e7},
    {"subgroup_4x1", false, 4, 1, 4, 0, 0, 0.90, 0.85, 14, 1.5e7},
    {"subgroup_2x1", false, 2, 1, 4, 0, 0, 0.80, 0.70, 15, 5e5},
    {"subgroup_1x1", false, 1, 1, 4, 0, 0, 0.50, 0.45, 21, 0},
    // For few columns. They store down C's columns, one element at a time.
    {"subgroup_2x1_swapped", false, 2, 1, 4, 0, 0, 0.70, 0.60, 16, 5e5, true},
    {"subgroup_1x1_swapped", false, 1, 1, 4, 0, 0, 0.45, 0.40, 22, 0, true},
};

// On a CPU device, GEMMs with fewer operations share one kernel without vector loads, so that less is compiled.
constexpr double kTinyOperations = 5e5;
// With at most kNarrow rows or columns a GPU is bound by memory, and the smallest tile is kNarrowGain times as fast as
// its rate says (H200).
constexpr uint64_t kNarrow = 16;
constexpr double kNarrowGain = 3;

bool has_subgroup_tiles(const DeviceTraits& traits) {
  return traits.subgroup_shuffle && traits.subgroup_size >= 2 && traits.subgroup_size <= 16;
}

bool runs_on(const Variant& variant, const DeviceTraits& traits, uint32_t element_bytes) {
  if (!variant.shared) return has_subgroup_tiles(traits);
  if (variant.tm * variant.tn * element_bytes > 512) return false;  // bytes of registers for the accumulators
  return variant.invocations(traits) <= traits.max_invocations &&
         variant.invocations(traits) <= traits.max_local_size[0] &&
         variant.shared_bytes(element_bytes) <= traits.shared_bytes;
}

// Swaps the operands, so that B transposed * A transposed is computed, whose result is C transposed.
void swap_operands(Plan& plan) {
  GemmArgs& args = plan.args;
  std::swap(args.m, args.n);
  std::swap(args.a, args.b);
  std::swap(args.a_array, args.b_array);
  std::swap(args.a_type, args.b_type);
  std::swap(args.lda, args.ldb);
  std::swap(args.stride_a, args.stride_b);
  std::swap(plan.a_elements, plan.b_elements);
  std::swap(plan.ta, plan.tb);
  plan.ta = !plan.ta;
  plan.tb = !plan.tb;
}

bool reads_a_as_vec4(const Plan& plan) {
  const GemmArgs& args = plan.args;
  return aligned(args.a, args.sum_type(), args.lda, args.stride_a, 4) && (plan.ta ? args.m : args.k) % 4 == 0;
}

bool reads_b_as_vec4(const Plan& plan) {
  const GemmArgs& args = plan.args;
  return aligned(args.b, args.sum_type(), args.ldb, args.stride_b, 4) && (plan.tb ? args.k : args.n) % 4 == 0;
}

// Whether C can be read and written `elements` elements at a time.
bool takes_c_by(const Plan& plan, uint64_t elements) {
  return plan.args.n % elements == 0 && aligned(plan.out, plan.args.sum_type(), plan.out_ld, plan.out_stride, elements);
}

KernelRequest shared_request(const Plan& plan, const Variant& variant, const DeviceTraits& traits) {
  const GemmArgs& args = plan.args;
  const bool edge = args.m % variant.rows != 0 || args.n % variant.cols != 0 || args.k % variant.bk != 0;
  return shaders::GemmTile::request({.bk = variant.bk,
                                     .bm = variant.rows,
                                     .bn = variant.cols,
                                     .edge = edge,
                                     .part = static_cast<int64_t>(plan.to_scratch ? GemmPart::all : args.c_part),
                                     .sum_type = args.sum_type(),
                                     .tm = variant.tm,
                                     .tn = variant.tn,
                                     .trans_a = plan.ta,
                                     .trans_b = plan.tb,
                                     .unroll = !traits.cpu,
                                     .vector_a = reads_a_as_vec4(plan),
                                     .vector_b = reads_b_as_vec4(plan),
                                     .vector_c = takes_c_by(plan, 4)});
}

KernelRequest subgroup_request(const Plan& plan, const Variant& variant, const DeviceTraits& traits) {
  const GemmArgs& args = plan.args;
  const int32_t type = args.sum_type();
  // All tiny GEMMs share one kernel. Otherwise the remainder of k beyond a multiple of four is read separately, and
  // rows that are read as pairs must consist of whole pairs.
  const bool tiny = operations_of(args) < kTinyOperations;
  const bool a_pairs = variant.rows % 2 == 0 && args.m % 2 == 0 && aligned(args.a, type, args.lda, args.stride_a, 2);
  const bool a_vectors = !tiny && (plan.ta ? a_pairs : aligned(args.a, type, args.lda, args.stride_a, 4));
  const bool b_vectors = !tiny && aligned(args.b, type, args.ldb, args.stride_b, 4) && (plan.tb || args.n % 4 == 0);
  const bool singly = tiny || variant.swapped;
  return shaders::GemmSubgroup::request({.beta = plan.out_access() == Access::read_write,
                                         .c_together = singly                ? 1
                                                       : takes_c_by(plan, 4) ? 4
                                                       : takes_c_by(plan, 2) ? 2
                                                                             : 1,
                                         .col_blocks = variant.cols,
                                         .pairs = traits.addresses,
                                         .row_blocks = variant.rows,
                                         .sum_type = type,
                                         .tail = tiny || args.k % 4 != 0,
                                         .trans_a = plan.ta,
                                         .trans_b = plan.tb,
                                         .trans_c = variant.swapped,
                                         .vector_a = a_vectors,
                                         .vector_b = b_vectors,
                                         .width = traits.subgroup_size});
}

}  // namespace

// A tile's time is that of the tiles that the busiest core computes one after another, from their size, length and
// rate. A GPU's core is full with 256 invocations at once, from as many tiles as that takes.
void offer_tiles(const Recorder& recorder, const Plan& plan, Offers& offers) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const int32_t type = args.sum_type();
  Dispatch operands("gemm");
  plan.operand(operands, args.a, plan.a_elements, type, Access::read);
  plan.operand(operands, args.b, plan.b_elements, type, Access::read);
  plan.operand(operands, args.c, plan.c_elements, type, Access::write);
  const bool addresses = plan.wide || recorder.binds_addresses(Reads::tiles, operands);
  for (uint32_t row = 0; row < std::size(kVariants); ++row) {
    const Variant& variant = kVariants[row];
    if (!offers.wants(variant.name)) continue;
    if (!runs_on(variant, traits, static_cast<uint32_t>(dtype_size(type)))) continue;
    const bool other_devices = variant.shared == (traits.cpu && has_subgroup_tiles(traits));
    const double length = static_cast<double>(args.k) + variant.ends;
    const bool suits =
        !other_devices && operations_of(args) / static_cast<double>(args.k) * length >= variant.min_operations;
    const uint64_t rows = variant.tile_rows(traits), cols = variant.tile_cols(traits);
    const uint64_t m = variant.swapped ? args.n : args.m, n = variant.swapped ? args.m : args.n;
    const uint64_t tiles = ceil_div(m, rows) * ceil_div(n, cols) * args.batch_count;
    const uint64_t in_turn = ceil_div(tiles, cores_of(traits));
    const double fill =
        traits.cpu ? 1 : std::min(1.0, static_cast<double>(in_turn * variant.invocations(traits)) / 256);
    const bool narrow = !traits.cpu && variant.rows == 32 && std::min(m, n) <= kNarrow;
    const double rate = (addresses ? variant.rate_addresses : variant.rate_descriptors) * (narrow ? kNarrowGain : 1);
    const double time = static_cast<double>(in_turn * rows * cols) * length / (fill * rate);
    offers.add({Kind::tiles, variant.name, row, time, suits ? Fit::suits : Fit::by_name});
  }
}

bool is_tile_variant(std::string_view name) {
  return std::any_of(std::begin(kVariants), std::end(kVariants), [&](const Variant& row) { return name == row.name; });
}

void record_tiles(Recorder& recorder, Plan& plan) {
  const DeviceTraits& traits = recorder.traits();
  const GemmArgs& args = plan.args;
  const int32_t type = args.sum_type();
  const Variant& variant = kVariants[plan.choice.offer.row];
  const uint64_t rows = variant.tile_rows(traits), cols = variant.tile_cols(traits);
  const uint64_t tiles_m = ceil_div(variant.swapped ? args.n : args.m, rows);
  const uint64_t tiles_n = ceil_div(variant.swapped ? args.m : args.n, cols);
  const uint64_t groups = tiles_m * tiles_n * args.batch_count;
  // Split k if half of the cores would be idle and k is long enough to pay for the second pass. A GPU splits sooner for
  // small tiles: a workgroup alone on a core loops over k slowly, so several should share a core.
  const uint64_t least = traits.cpu ? 512 : 128, cores = cores_of(traits);
  const bool alone = !traits.cpu && rows * cols <= 4096 && groups < 2 * cores;
  const bool few = (groups * 2 <= cores || alone) && args.k >= 4 * least;
  slice_k(plan, traits, groups, few ? (traits.cpu ? cores : 4 * cores) : groups, least, 32);
  plan.to_scratch = plan.slices > 1 || needs_finish(args);
  take_scratch(recorder, plan);
  if (variant.swapped) swap_operands(plan);

  KernelRequest request =
      variant.shared ? shared_request(plan, variant, traits) : subgroup_request(plan, variant, traits);
  request.wide(plan.wide);
  Dispatch dispatch("gemm");
  plan.operand_a(dispatch);
  plan.operand_b(dispatch);
  plan.operand_out(dispatch);
  define_each(request, dispatch);
  with_index(plan.wide, [&](auto index) {
    with_number(type, [&](auto number) {
      dispatch.push(tile_push<shaders::GemmTile::Push<decltype(index), decltype(number)>>(plan, tiles_m, tiles_n));
    });
  });
  dispatch.groups_linear(groups * plan.slices, traits)
      .work(work_bytes(plan), operations_of(args))
      .variant(variant.name);
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    const bool a_vec4 = reads_a_as_vec4(plan), b_vec4 = reads_b_as_vec4(plan);
    if (variant.swapped) swap_operands(plan);  // back to the caller's order, for the message
    log(TUFF_LOG_DISPATCH, "gemm {}{} {}x{}x{} {} batch {}: {} ({}), {} tiles, {} parts of k, vectors {}{}{}",
        plan.ta ? 't' : 'n', plan.tb ? 't' : 'n', args.m, args.n, args.k, dtype_name(type), args.batch_count,
        variant.name, reason(plan), groups, plan.slices, a_vec4 ? "a" : "", b_vec4 ? "b" : "",
        plan.wide ? ", wide" : "");
    if (variant.swapped) swap_operands(plan);
  }
  recorder.dispatch(request, dispatch);
}

}  // namespace tuff::gemm

namespace tuff {

void record_gemm_tiles(Recorder& recorder, const GemmArgs& args) {
  gemm::Plan plan(args);
  gemm::Offers offers;
  gemm::offer_tiles(recorder, plan, offers);
  plan.choice.offer = offers.best();
  gemm::record_tiles(recorder, plan);
}

}  // namespace tuff
