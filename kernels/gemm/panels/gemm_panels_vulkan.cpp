// Plans a GEMM with packed operands. A and B are copied into panels in scratch memory; then each block of k is one
// dispatch that adds to sums, also in scratch memory. The last one writes C, or the input of a second pass.
#include "kernels/gemm/panels/gemm_panels.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "kernels/gemm/panels/panel_source.hpp"
#include "planning/log.hpp"
#include "planning/recorder.hpp"
#include "shaders/gemm_pack.hpp"
#include "shaders/gemm_panels.hpp"

namespace tuff::gemm {
namespace {

constexpr uint32_t kRows = 8, kDepth = 256;  // of a tile; its unrolled code must fit into a core's instruction cache
// Steps of k of a tile, and its relative speed: with fewer steps, sums go through memory more often.
struct Depth {
  uint32_t steps;
  double rate;
};
constexpr Depth kDepths[] = {{kDepth, 1.0}, {128, 0.88}, {64, 0.65}, {32, 0.42}};
constexpr uint64_t kLongK = 512;        // from this k on, tiles with fewer steps gain little
constexpr uint32_t kMaxSubgroups = 16;  // of a workgroup
// Larger GEMMs are cut into pieces, which bounds scratch memory and keeps a block of B in a core's cache.
constexpr uint64_t kMaxM = 2048, kMaxN = 2048, kMaxK = 2048;
constexpr uint64_t kMin = 96;           // rows and columns: with fewer, packing costs as much as it gains
constexpr double kMinOperations = 3e7;  // for fewer, compiling the kernels (half a second) does not pay
// Minimum k, and maximum ratio of the operations on whole tiles to those needed; the second of each is for drivers
// whose other kernels are faster with addresses than with descriptors. Measured on two CPUs with Mesa 22.3 and 25.0.
constexpr uint64_t kMinK = 24, kMinKAddresses = 64;
constexpr double kMaxWaste = 1.8, kMaxWasteAddresses = 1.6;
constexpr uint64_t kMaxTiles = 256;  // of a dispatch in each direction: the kernel has two hexadecimal digits
static_assert(kMaxM <= kMaxTiles * kRows);

// An operand as the kernels see it: rows (op(A)'s rows or op(B)'s columns) by k.
struct Side {
  const Buffer* buffer;
  uint64_t rows, row_step, k_step;
  uint32_t panel_rows;
  uint64_t panels, scratch_offset;
};

void record_pack(Recorder& recorder, const Side& side, uint64_t k, uint32_t depth, const Buffer& scratch) {
  const uint64_t blocks = ceil_div(k, depth);
  const bool paired = side.row_step == 1 && side.k_step % 2 == 0 && side.rows % 2 == 0 && side.buffer->offset % 8 == 0;
  KernelRequest request = shaders::GemmPack::request({.depth = depth, .paired = paired, .rows = side.panel_rows});
  request.packed();
  const uint64_t elements = (side.rows - 1) * side.row_step + (k - 1) * side.k_step + 1;
  const uint64_t packed = side.panels * side.panel_rows * blocks * depth;
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  Dispatch dispatch("gemm pack");
  dispatch.operand(side.buffer, 0, elements * 4, Access::read);
  dispatch.operand(&scratch, side.scratch_offset, packed * 4, Access::write);
  dispatch.push(shaders::GemmPack::Push{
      .row_step = number(side.row_step), .k_step = number(side.k_step), .rows = number(side.rows), .k = number(k)});
  dispatch.groups(number(side.panels), number(blocks)).work(8.0 * static_cast<double>(packed), 0);
  recorder.dispatch(request, dispatch);
}

uint64_t group_cols(const DeviceTraits& traits) {
  return uint64_t{traits.subgroup_size} * std::min(kMaxSubgroups, kDepth / traits.subgroup_size);
}

// The scratch memory of a piece of m x n x k: packed operands and sums.
struct Panels {
  Panels(const DeviceTraits& traits, uint64_t m, uint64_t n, uint64_t k, uint32_t depth)
      : width(traits.subgroup_size),
        subgroups(static_cast<uint32_t>(group_cols(traits) / traits.subgroup_size)),
        blocks(ceil_div(k, depth)),
        tiles_m(ceil_div(m, kRows)),
        groups_n(ceil_div(n, uint64_t{width} * subgroups)),
        tiles_n(groups_n * subgroups),
        a_bytes(tiles_m * kRows * blocks * depth * 4),
        b_bytes(tiles_n * width * blocks * depth * 4),
        sums_bytes(tiles_m * tiles_n * kRows * width * 4) {}
  uint64_t bytes() const { return a_bytes + b_bytes + sums_bytes; }
  uint32_t width, subgroups;
  uint64_t blocks, tiles_m, groups_n, tiles_n, a_bytes, b_bytes, sums_bytes;
};

// Where the kernels find packed operands and sums: offsets into two buffers, which may be one.
struct Places {
  const Buffer* scratch;
  uint64_t a, sums;
  const Buffer* of_b;
  uint64_t b;
};

// Records the product of packed operands.
void record_tiles(Recorder& recorder, const GemmArgs& args, uint32_t depth, const Places& places) {
  const Panels panels(recorder.traits(), args.m, args.n, args.k, depth);
  const auto& [width, subgroups, blocks, tiles_m, groups_n, tiles_n, a_bytes, b_bytes, sums_bytes] = panels;
  assert(tiles_m <= kMaxTiles && groups_n <= kMaxTiles);
  const auto number = [](uint64_t x) { return static_cast<uint32_t>(x); };
  shaders::GemmPanels::Push push{.tiles_n = number(tiles_n),
                                 .m = number(args.m),
                                 .n = number(args.n),
                                 .ldc = number(args.ldc),
                                 .alpha = static_cast<float>(args.alpha),
                                 .beta = static_cast<float>(args.beta)};
  // Only the low bits of the digits matter: these are 1.0 and the floats that follow it.
  for (uint32_t i = 0; i < 16; ++i) push.digits[i] = std::bit_cast<float>(0x3f800000u + i);
  const bool paired_c = args.n % 2 == 0 && args.ldc % 2 == 0 && args.c->offset % 8 == 0;
  for (uint64_t block = 0; block < blocks; ++block) {
    const bool last = block + 1 == blocks, beta = last && args.beta != 0;
    KernelRequest request = shaders::GemmPanels::request({.beta = beta,
                                                          .depth = depth,
                                                          .last = last,
                                                          .paired_c = last && paired_c,
                                                          .rows = kRows,
                                                          .subgroups = subgroups,
                                                          .width = width});
    request.packed();
    Dispatch dispatch("gemm panels");
    dispatch.operand(places.scratch, places.a + block * (a_bytes / blocks), a_bytes / blocks, Access::read);
    dispatch.operand(places.of_b, places.b + block * (b_bytes / blocks), b_bytes / blocks, Access::read);
    dispatch.operand(places.scratch, places.sums, sums_bytes, Access::read_write);
    const uint64_t c_bytes = ((args.m - 1) * args.ldc + args.n) * 4;
    dispatch.operand(last ? args.c : nullptr, 0, last ? c_bytes : 0, beta ? Access::read_write : Access::write);
    push.first = block == 0;
    dispatch.push(push);
    dispatch.groups(number(groups_n), number(tiles_m));
    dispatch.work(static_cast<double>((a_bytes + b_bytes) / blocks + 2 * sums_bytes),
                  2.0 * depth * static_cast<double>(tiles_m * kRows * tiles_n * width));
    recorder.dispatch(request, dispatch);
  }
}

// Records a piece of one matrix, of at most kMaxM x kMaxN x kMaxK. With `packs_b`, it has the columns from `n` and the
// steps from `k` on.
void record_piece(Recorder& recorder, const GemmArgs& args, uint32_t depth, const Buffer& scratch,
                  const PanelSource* packs_b, uint64_t n, uint64_t k) {
  const bool ta = args.ta != TUFF_NO_TRANS, tb = args.tb != TUFF_NO_TRANS;
  const Panels panels(recorder.traits(), args.m, args.n, args.k, depth);
  const Side a{args.a, args.m, ta ? 1 : args.lda, ta ? args.lda : 1, kRows, panels.tiles_m, 0};
  const Side b{args.b, args.n, tb ? args.ldb : 1, tb ? 1 : args.ldb, panels.width, panels.tiles_n, panels.a_bytes};
  record_pack(recorder, a, args.k, depth, scratch);
  if (packs_b == nullptr) {
    record_pack(recorder, b, args.k, depth, scratch);
  } else {
    packs_b->pack(recorder, {n, args.n, k, args.k, panels.width, depth, panels.tiles_n, &scratch, panels.a_bytes});
  }
  record_tiles(recorder, args, depth, {&scratch, 0, panels.a_bytes + panels.b_bytes, &scratch, panels.a_bytes});
}

// The length of about equal pieces of `extent`: at most `most`, a multiple of `unit`.
uint64_t piece_of(uint64_t extent, uint64_t most, uint64_t unit) {
  const uint64_t pieces = ceil_div(extent, most);
  return std::min(most, ceil_div(ceil_div(extent, pieces), unit) * unit);
}

bool runs_panels(const DeviceTraits& traits) {
  return traits.cpu && traits.addresses && traits.subgroup_shuffle && traits.subgroup_size >= 2 &&
         traits.subgroup_size <= 16 && traits.subgroup_size % 2 == 0 && traits.max_invocations >= kDepth &&
         traits.max_local_size[0] >= kDepth && traits.push_bytes >= 4 * 8 + sizeof(shaders::GemmPanels::Push);
}

// The time that `k` takes with tiles of this depth, in steps of the fastest one.
double time_of(const Depth& depth, uint64_t k) {
  return static_cast<double>(ceil_div(k, depth.steps) * depth.steps) / depth.rate;
}

const Depth& depth_of(uint64_t k) {
  if (k >= kLongK) return kDepths[0];
  return *std::min_element(std::begin(kDepths), std::end(kDepths),
                           [&](const Depth& x, const Depth& y) { return time_of(x, k) < time_of(y, k); });
}

// The ratio of the operations on whole tiles to those needed.
double waste(const DeviceTraits& traits, const GemmArgs& args) {
  const auto padded = [](uint64_t extent, uint64_t unit) { return static_cast<double>(ceil_div(extent, unit) * unit); };
  const double done = padded(args.m, kRows) * padded(args.n, group_cols(traits)) * time_of(depth_of(args.k), args.k);
  return done / (static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k));
}

}  // namespace

void offer_panels(const Recorder& recorder, const Plan& plan, Offers& offers) {
  const GemmArgs& args = plan.args;
  if (!runs_panels(recorder.traits()) || !offers.wants("panels")) return;
  if (args.sum_type() != TUFF_F32 || plan.wide) return;
  const double operations =
      2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k);
  const bool small = operations < kMinOperations;
  if (small && !offers.by_name()) return;
  Dispatch operands("gemm panels");
  plan.operand(operands, args.a, plan.a_elements, args.a_type, Access::read);
  plan.operand(operands, args.b, plan.b_elements, args.b_type, Access::read);
  plan.operand(operands, args.c, plan.c_elements, args.c_type, Access::write);
  if (!recorder.binds_addresses(Reads::packed, Dispatch("gemm panels"))) return;  // A and B are copied, of any size
  const double cost = waste(recorder.traits(), args);
  const bool addresses = recorder.binds_addresses(Reads::tiles, operands);
  const bool suits = std::min(args.m, args.n) >= kMin && args.k >= (addresses ? kMinKAddresses : kMinK) &&
                     cost < (addresses ? kMaxWasteAddresses : kMaxWaste);
  offers.add({Kind::panels, "panels", 0, cost, small ? Fit::by_name : suits ? Fit::suits : Fit::perhaps});
}

bool takes_packed(const Recorder& recorder, uint64_t m, uint64_t n, uint64_t k) {
  const uint64_t most_n = std::min<uint64_t>(kMaxTiles * group_cols(recorder.traits()), 1u << 16);
  return runs_panels(recorder.traits()) && recorder.binds_addresses(Reads::packed, Dispatch("gemm panels")) &&
         m <= kMaxM && n <= most_n && k <= kMaxK;
}

uint64_t packed_bytes(const Recorder& recorder, uint64_t n, uint64_t k) {
  return Panels(recorder.traits(), 1, n, k, depth_of(k).steps).b_bytes;
}

void record_packing(Recorder& recorder, const Buffer& b, uint64_t n, uint64_t k, const Buffer& packed) {
  const uint32_t depth = depth_of(k).steps;
  const Panels panels(recorder.traits(), 1, n, k, depth);
  record_pack(recorder, {&b, n, k, 1, panels.width, panels.tiles_n, 0}, k, depth, packed);
}

void record_packed_product(Recorder& recorder, const Buffer& a, const Buffer& packed, const Buffer& c, uint64_t m,
                           uint64_t n, uint64_t k) {
  const uint32_t depth = depth_of(k).steps;
  const Panels panels(recorder.traits(), m, n, k, depth);
  const Buffer& scratch = recorder.scratch(panels.a_bytes + panels.sums_bytes);
  record_pack(recorder, {&a, m, k, 1, kRows, panels.tiles_m, 0}, k, depth, scratch);
  GemmArgs args{};
  args.m = m, args.n = n, args.k = k;
  args.alpha = 1;
  args.c = &c, args.ldc = n;
  record_tiles(recorder, args, depth, {&scratch, 0, panels.a_bytes, &packed, 0});
}

void record_panels(Recorder& recorder, Plan& plan) {
  const uint32_t depth = depth_of(plan.args.k).steps;
  const uint64_t step_m = piece_of(plan.args.m, kMaxM, kRows), step_k = piece_of(plan.args.k, kMaxK, depth);
  const uint64_t step_n = piece_of(plan.args.n, kMaxN, group_cols(recorder.traits()));
  if (log_enabled(TUFF_LOG_DISPATCH)) {
    const GemmArgs& args = plan.args;
    log(TUFF_LOG_DISPATCH, "gemm {}{} {}x{}x{} {} batch {}: panels ({}), pieces of {}x{}x{}, {} steps at once",
        plan.ta ? 't' : 'n', plan.tb ? 't' : 'n', args.m, args.n, args.k, dtype_name(args.a_type), args.batch_count,
        reason(plan), step_m, step_n, step_k, depth);
  }
  plan.to_scratch = needs_finish(plan.args);
  plan.kernel_bytes = Panels(recorder.traits(), step_m, step_n, step_k, depth).bytes();
  take_scratch(recorder, plan);
  const GemmArgs& args = plan.args;
  const bool ta = plan.ta, tb = plan.tb;
  for (uint64_t i = 0; i < args.batch_count; ++i) {
    for (uint64_t m = 0; m < args.m; m += step_m) {
      for (uint64_t n = 0; n < args.n; n += step_n) {
        for (uint64_t k = 0; k < args.k; k += step_k) {
          const Buffer a = moved(args.a, i * args.stride_a + (ta ? k * args.lda + m : m * args.lda + k), TUFF_F32);
          const uint64_t b_at = i * args.stride_b + (tb ? n * args.ldb + k : k * args.ldb + n);
          const Buffer b = plan.packs_b == nullptr ? moved(args.b, b_at, TUFF_F32) : Buffer{};
          const Buffer c = moved(plan.out, i * plan.out_stride + m * plan.out_ld + n, TUFF_F32);
          GemmArgs piece = args;
          piece.a = &a;
          piece.b = &b;
          piece.c = &c;
          piece.ldc = plan.out_ld;
          piece.m = std::min(step_m, args.m - m);
          piece.n = std::min(step_n, args.n - n);
          piece.k = std::min(step_k, args.k - k);
          piece.alpha = plan.alpha();
          piece.beta = k > 0 ? 1 : plan.beta();
          record_piece(recorder, piece, depth, plan.for_kernel, plan.packs_b, n, k);
        }
      }
    }
  }
}

}  // namespace tuff::gemm
