// Planner of products of dense matrices at the places of a sparse one (sparse_sampled.comp).
#include <algorithm>
#include <bit>

#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/sparse/sparse_plan.hpp"
#include "planning/log.hpp"
#include "shaders/sparse_sampled.hpp"

namespace tuff {
namespace {

using namespace sparse;

constexpr uint64_t kMaxOnCpu = uint64_t{1} << 17;  // products of a place: a quarter as many iterations of a loop
constexpr uint64_t kMaxGroups = 1u << 30, kMaxDispatches = 1u << 16;

void record(Recorder& recorder, const SddmmArgs& args) {
  const StreamDevice device = device_of(recorder);
  const DeviceTraits& traits = recorder.traits();
  const uint64_t size = dtype_size(args.dtype), index_bytes = dtype_size(args.index_type);
  const bool some = args.reads(), scaled = some && args.scales != nullptr;
  const Dense a = dense_a(args), b = dense_b(args);
  const uint64_t a_span = some ? a.span(args.batch_count) : 0, b_span = some ? b.span(args.batch_count) : 0,
                 scales_span = scaled ? Dense{1, args.nnz, 0, args.stride_scales}.span(args.batch_count) : 0,
                 values_span = Dense{1, args.nnz, 0, args.stride_values}.span(args.batch_count);
  const uint64_t places = args.offsets() ? args.rows + 1 : args.nnz;
  const bool wide = needs_wide(std::max({places, args.rows, args.columns, a_span, b_span, scales_span, values_span}));
  // On GPUs the lanes of a subgroup read neighbouring elements of A's row, and of B's if it is transposed.
  const bool shared = !device.cpu && traits.subgroup_arithmetic && some && args.k >= device.subgroup;
  const uint64_t workers = shared ? device.workgroup / device.subgroup : device.workgroup;
  // A place's loops: the search for its row, and its products.
  const uint64_t iterations = 48 + (some ? ceil_div(args.k, 4) : 0);
  const uint64_t run =
      device.cpu ? std::min(device.items_each(args.nnz, 128), std::bit_floor(kMaxLoopIterationsCpu / iterations)) : 4;
  const uint64_t per_matrix = ceil_div(args.nnz, workers * run);
  const uint64_t at_once = std::min(args.batch_count, std::max<uint64_t>(kMaxGroups / per_matrix, 1));
  if (args.batch_count > kMax || args.batch_count / at_once > kMaxDispatches) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} places of {} matrices are too many", args.nnz, args.batch_count);
  }
  const bool batch = args.batch_count > 1;  // strides of a batch of one may be any number
  const NumberTable<9> table({args.rows, args.columns, args.lda, args.transposed() ? args.ldb : 1,
                              args.transposed() ? 1 : args.ldb, batch ? args.stride_scales : 0,
                              batch ? args.stride_a : 0, batch ? args.stride_b : 0, batch ? args.stride_values : 0});
  KernelRequest kernel = shaders::SparseSampled::request({.beta = args.beta != 0,
                                                          .index_bytes = index_bytes,
                                                          .offsets = args.offsets(),
                                                          .run = device.fixed_run(run),
                                                          .scaled = scaled,
                                                          .shared = shared,
                                                          .some = some,
                                                          .type = args.dtype});
  kernel.streaming().constant(0, device.workgroup).wide(wide);
  kernel.texels(0, index_bytes).texels(1, index_bytes).texels(2, size).texels(3, size);
  const auto alpha = scalar_words(args.alpha, args.dtype), beta = scalar_words(args.beta, args.dtype);
  for (uint64_t first = 0; first < args.batch_count; first += at_once) {
    const uint64_t count = std::min(at_once, args.batch_count - first);
    Dispatch dispatch("sddmm");
    dispatch.operand(some || args.offsets() ? args.place_rows : nullptr, 0, places * index_bytes, Access::read)
        .operand(some ? args.place_columns : nullptr, 0, args.nnz * index_bytes, Access::read)
        .operand(some ? args.a : nullptr, 0, a_span * size, Access::read)
        .operand(some ? args.b : nullptr, 0, b_span * size, Access::read)
        .operand(scaled ? args.scales : nullptr, 0, scales_span * size, Access::read)
        .operand(args.values, 0, values_span * size, args.beta == 0 ? Access::write : Access::read_write)
        .operand(&recorder.parameters(table.words.data(), sizeof table.words), 0, sizeof table.words, Access::read)
        .push(shaders::SparseSampled::Push{.n = static_cast<uint32_t>(args.nnz),
                                           .run = static_cast<uint32_t>(run),
                                           .k = static_cast<uint32_t>(some ? args.k : 0),
                                           .groups = static_cast<uint32_t>(per_matrix * count),
                                           .per_matrix = static_cast<uint32_t>(per_matrix),
                                           .first = static_cast<uint32_t>(first),
                                           .alpha = {alpha[0], alpha[1]},
                                           .beta = {beta[0], beta[1]}})
        .groups_linear(per_matrix * count, traits)
        .work(static_cast<double>(args.nnz * count) * static_cast<double>(2 * index_bytes + 2 * size),
              2.0 * static_cast<double>(args.nnz * count) * static_cast<double>(args.k));
    log(TUFF_LOG_DISPATCH, "sddmm {}: {} places of {} matrices, {} each, groups of {}{}", dtype_name(args.dtype),
        args.nnz, count, run, device.workgroup, shared ? ", a subgroup for each place" : "");
    recorder.dispatch(kernel, dispatch);
  }
}

}  // namespace

void record_sddmm(Recorder& recorder, const SddmmArgs& args) {
  require_type(recorder.traits(), args.dtype);
  if (args.nnz == 0 || args.batch_count == 0) return;
  if (args.offsets() && args.rows == 0) return;  // no place is in a row
  require_numbers(args.nnz, "nnz"), require_numbers(args.rows, "rows"), require_numbers(args.columns, "columns");
  if (args.reads()) {
    require_numbers(args.k, "k");
    if (device_of(recorder).cpu && args.k > kMaxOnCpu) {
      fail(TUFF_ERROR_UNSUPPORTED, "k is {}: at most {} on a CPU device", args.k, kMaxOnCpu);
    }
  }
  record(recorder, args);
}

}  // namespace tuff
