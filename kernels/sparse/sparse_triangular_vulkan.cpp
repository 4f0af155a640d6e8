// Planner of triangular systems. The levels of rows are found first, unless the caller has them:
//
//   keys, sort  the entries by column, as in a transposed product
//   degrees     how many entries refer from each row to others
//   levels      the level of each row (sparse_levels.comp, one workgroup)
//   sort        the rows by level, and the offsets of levels
//
// and then solved by one workgroup for each column of X (sparse_triangular.comp). Workgroups must not wait for one
// another, because a device need not run them at the same time; and how many levels there are is not known here. So a
// kernel goes through as many rows as its budget of iterations allows, and is dispatched as often as the most levels
// that there can be take. Dispatches that find nothing left to do end at once.
#include <algorithm>
#include <bit>

#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/memory/memory.hpp"
#include "kernels/scan/scan.hpp"
#include "kernels/sparse/sparse_plan.hpp"
#include "planning/log.hpp"
#include "shaders/sparse_clamp.hpp"
#include "shaders/sparse_degrees.hpp"
#include "shaders/sparse_levels.hpp"
#include "shaders/sparse_triangular.hpp"

namespace tuff {
namespace {

using namespace sparse;

constexpr const char* kLabel = "sparse_triangular_solve";
// Iterations of a dispatch. On a CPU device a batch of one iteration counts as three: one of the loop over batches, and
// one of the loop within, which is entered twice.
constexpr uint64_t kBudgetCpu = kMaxLoopIterationsCpu / 3, kBudgetGpu = 1u << 18;
constexpr uint64_t kMaxDispatches = 1u << 16, kMaxSolvedBytes = 1u << 28;  // of the columns in hand

// How a workgroup goes through rows (steps.glsl).
struct Steps {
  uint32_t workgroup;
  int64_t share;
  uint64_t budget;
};
Steps steps_of(const Recorder& recorder) {
  const StreamDevice device = device_of(recorder);
  const DeviceTraits& traits = recorder.traits();
  const uint32_t whole = device.largest / device.subgroup * device.subgroup;
  const bool shares = traits.subgroup_shuffle && std::has_single_bit(device.subgroup) && device.subgroup <= 128;
  return {std::max(whole, device.subgroup), shares ? int64_t{device.subgroup} : 1,
          traits.cpu ? kBudgetCpu : kBudgetGpu};
}
// The dispatches for `batches` rows at most, each alone, and their entries.
uint64_t dispatches_of(const Steps& steps, uint64_t batches, uint64_t entries) {
  const auto kUnroll = static_cast<uint64_t>(shaders::SparseTriangular::unroll({}));
  return ceil_div(batches + entries / kUnroll + 1, steps.budget);
}

// Sizes, and lists in scratch memory. There is a row at least.
struct System {
  Recorder& recorder;
  const SparseTriangularSolveArgs& args;
  const Steps steps = steps_of(recorder);
  const bool empty = args.nnz == 0, finds = !args.levels_ready, sorts = !empty && (finds || args.transposed());
  const uint64_t value = std::max<uint64_t>(dtype_size(args.dtype), 4);  // bytes of what is computed with
  // Of X at once.
  const uint64_t columns =
      std::min<uint64_t>(args.n, std::clamp<uint64_t>(kMaxSolvedBytes / (args.rows * value), 1, 1u << 16));
  const uint64_t state_words = static_cast<uint64_t>(shaders::SparseTriangular::state({}));
  const uint64_t list = args.nnz * 4, line_bytes = args.rows * 4, offset_bytes = line_bytes + 4,
                 level_bytes = offset_bytes + line_bytes, solved_bytes = columns * args.rows * value,
                 state_bytes = std::max<uint64_t>(columns, 1) * state_words * 4,
                 held_bytes = columns * 2 * steps.workgroup * value;
  // Entries: rows and columns, by column. Rows: offsets as they are stored and by column.
  Buffer rows{}, across{}, sorted{}, order{}, row_offsets{}, column_offsets{};
  Buffer degrees{}, queue{}, level{}, by_level{}, levels{};
  Buffer solved{}, state{}, held{};
};

// The offsets of rows in 32 bits. Should they decrease, each is at least the one before, so that rows share no entries
// and a call does not take longer than its entries do.
void record_row_offsets(const System& s) {
  const uint64_t n = s.args.rows + 1, index = dtype_size(s.args.index_type);
  const Items items = items_of(s.recorder, n);
  KernelRequest kernel = shaders::SparseClamp::request({.index_bytes = index, .run = items.fixed});
  kernel.streaming().constant(0, items.workgroup);
  Dispatch dispatch(kLabel);
  dispatch.operand(s.args.offsets, 0, n * index, Access::read)
      .operand(&s.row_offsets, 0, n * 4, Access::write)
      .push(shaders::SparseClamp::Push{.n = static_cast<uint32_t>(n),
                                       .run = static_cast<uint32_t>(items.run),
                                       .most = static_cast<uint32_t>(s.args.nnz)})
      .groups_linear(items.groups, s.recorder.traits())
      .work(static_cast<double>(n * (index + 4)), static_cast<double>(n));
  s.recorder.dispatch(kernel, dispatch);
  record_scan(s.recorder, {ScanOp::maximum, TUFF_I32, &s.row_offsets, &s.row_offsets, &n, 1, 0, false, false});
}

void record_by_column(const System& s) {
  const SparseTriangularSolveArgs& args = s.args;
  record_keys(s.recorder,
              {kLabel, dtype_size(args.index_type), true, args.offsets, args.indices, args.rows, args.rows, args.nnz},
              {&s.rows, &s.across});
  record_order(s.recorder, s.across, args.nnz, args.rows, s.sorted, s.order);
  record_offsets(s.recorder, {kLabel, &s.sorted, nullptr, &s.column_offsets, 4, args.nnz, args.rows, 0, false});
}

void record_degrees(const System& s) {
  const Items items = items_of(s.recorder, s.args.nnz);
  KernelRequest kernel = shaders::SparseDegrees::request(
      {.forward = s.args.forward(), .run = items.fixed, .transposed = s.args.transposed()});
  kernel.streaming().constant(0, items.workgroup);
  record_fill(s.recorder, s.degrees, 0, s.line_bytes, {});
  Dispatch dispatch(kLabel);
  dispatch.operand(&s.rows, 0, s.list, Access::read)
      .operand(&s.across, 0, s.list, Access::read)
      .operand(&s.degrees, 0, s.line_bytes, Access::read_write)
      .push(shaders::SparseDegrees::Push{.n = static_cast<uint32_t>(s.args.nnz),
                                         .run = static_cast<uint32_t>(items.run),
                                         .rows = static_cast<uint32_t>(s.args.rows)})
      .groups_linear(items.groups, s.recorder.traits())
      .work(static_cast<double>(s.args.nnz * 16), static_cast<double>(s.args.nnz));
  s.recorder.dispatch(kernel, dispatch);
}

// A batch is a row at least, and looking for rows without references takes an iteration for each batch of them.
uint64_t level_dispatches(const System& s) {
  return dispatches_of(s.steps, s.args.rows + ceil_div(s.args.rows, s.steps.workgroup), s.args.nnz);
}

// The level of each row, and the rows in order of their levels.
void record_levels(const System& s) {
  const SparseTriangularSolveArgs& args = s.args;
  record_fill(s.recorder, s.level, 0, s.line_bytes, {});
  if (!s.empty) {
    record_degrees(s);
    record_fill(s.recorder, s.state, 0, s.state_bytes, {});
    // Who refers to a row: the entries of its column, or of its row if the triangle is transposed.
    const bool transposed = args.transposed();
    KernelRequest kernel =
        shaders::SparseLevels::request({.forward = args.forward(), .permuted = !transposed, .share = s.steps.share});
    kernel.streaming().constant(0, s.steps.workgroup);
    const uint64_t count = level_dispatches(s);
    for (uint64_t i = 0; i < count; ++i) {
      Dispatch dispatch(kLabel);
      dispatch.operand(transposed ? &s.row_offsets : &s.column_offsets, 0, s.offset_bytes, Access::read)
          .operand(transposed ? nullptr : &s.order, 0, transposed ? 0 : s.list, Access::read)
          .operand(transposed ? &s.across : &s.rows, 0, s.list, Access::read)
          .operand(&s.degrees, 0, s.line_bytes, Access::read_write)
          .operand(&s.queue, 0, s.line_bytes, Access::read_write)
          .operand(&s.level, 0, s.line_bytes, Access::read_write)
          .operand(&s.state, 0, s.state_bytes, Access::read_write)
          .push(shaders::SparseLevels::Push{.rows = static_cast<uint32_t>(args.rows),
                                            .budget = static_cast<uint32_t>(s.steps.budget)})
          .groups(1)
          .work(static_cast<double>((args.nnz + args.rows) * 16 / count), static_cast<double>(args.nnz / count));
      s.recorder.dispatch(kernel, dispatch);
    }
  }
  const Buffer offsets = part_of(s.levels, 0, s.offset_bytes), rows = part_of(s.levels, s.offset_bytes, s.line_bytes);
  record_order(s.recorder, s.level, args.rows, args.rows, s.by_level, rows);
  record_offsets(s.recorder, {kLabel, &s.by_level, nullptr, &offsets, 4, args.rows, args.rows, 0, false});
}

// `count` columns of X from `first` on.
void record_columns(const System& s, uint64_t first, uint64_t count) {
  const SparseTriangularSolveArgs& args = s.args;
  const bool transposed = args.transposed();
  const uint64_t size = dtype_size(args.dtype), index = transposed || s.empty ? 4 : dtype_size(args.index_type);
  const uint64_t b = Dense{args.rows, args.n, args.ldb, 0}.one(), x = Dense{args.rows, args.n, args.ldx, 0}.one();
  record_fill(s.recorder, s.state, 0, s.state_bytes, {});
  KernelRequest kernel = shaders::SparseTriangular::request({.empty = s.empty,
                                                             .exact_arithmetic = s.recorder.traits().cpu,
                                                             .forward = args.forward(),
                                                             .index_bytes = index,
                                                             .ones = args.unit_diagonal,
                                                             .permuted = transposed && !s.empty,
                                                             .share = s.steps.share,
                                                             .type = args.dtype});
  kernel.streaming()
      .constant(0, s.steps.workgroup)
      .wide(needs_wide(std::max({b, x, args.rows * s.columns, 2 * args.rows + 1, args.nnz})));
  const auto alpha = scalar_words(args.alpha, args.dtype);
  const uint64_t times = dispatches_of(s.steps, args.rows, args.nnz);
  for (uint64_t i = 0; i < times; ++i) {
    Dispatch dispatch(kLabel);
    const auto read = [&](bool is, const Buffer* buffer, uint64_t bytes) {
      dispatch.operand(is ? buffer : nullptr, 0, is ? bytes : 0, Access::read);
    };
    read(true, transposed && !s.empty ? &s.column_offsets : &s.row_offsets, s.offset_bytes);
    read(!s.empty, transposed ? &s.rows : args.indices, args.nnz * index);
    read(!s.empty, args.values, args.nnz * size);
    read(!s.empty && transposed, &s.order, s.list);
    read(true, &s.levels, s.level_bytes);
    read(true, args.b, b * size);
    dispatch.operand(args.x, 0, x * size, Access::write)
        .operand(&s.solved, 0, s.solved_bytes, Access::read_write)
        .operand(&s.state, 0, s.state_bytes, Access::read_write)
        .operand(&s.held, 0, s.held_bytes, Access::read_write)
        .push(shaders::SparseTriangular::Push{.rows = static_cast<uint32_t>(args.rows),
                                              .columns = static_cast<uint32_t>(count),
                                              .first = static_cast<uint32_t>(first),
                                              .budget = static_cast<uint32_t>(s.steps.budget),
                                              .ldb = low_word(args.ldb),
                                              .ldb_high = high_word(args.ldb),
                                              .ldx = low_word(args.ldx),
                                              .ldx_high = high_word(args.ldx),
                                              .alpha = {alpha[0], alpha[1]}})
        .groups_linear(count, s.recorder.traits())
        .work(static_cast<double>((args.nnz * (size + index) + args.rows * 16) * count / times),
              static_cast<double>(2 * args.nnz * count / times));
    s.recorder.dispatch(kernel, dispatch);
  }
}

System system_of(Recorder& recorder, const SparseTriangularSolveArgs& args) {
  System s{.recorder = recorder, .args = args};
  const uint64_t solves =
      s.columns == 0 ? 0 : checked_mul(ceil_div(args.n, s.columns), dispatches_of(s.steps, args.rows, args.nnz), "n");
  const uint64_t times = std::max(solves, s.finds ? level_dispatches(s) : 0);
  if (times > kMaxDispatches) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} rows and {} entries for {} columns take {} dispatches, at most {}", args.rows,
         args.nnz, args.n, times, kMaxDispatches);
  }

  const uint64_t sorted = s.sorts ? s.list : 0, found = s.finds ? s.line_bytes : 0;
  take_scratch(recorder,
               {{&s.rows, sorted},
                {&s.across, sorted},
                {&s.sorted, sorted},
                {&s.order, sorted},
                {&s.row_offsets, s.offset_bytes},
                {&s.column_offsets, s.sorts ? s.offset_bytes : 0},
                {&s.degrees, found},
                {&s.queue, found},
                {&s.level, found},
                {&s.by_level, found},
                {&s.levels, args.levels == nullptr ? s.level_bytes : 0},
                {&s.solved, s.solved_bytes},
                {&s.state, s.state_bytes},
                {&s.held, s.held_bytes}},
               Scratch::outermost);
  if (args.levels != nullptr) s.levels = *args.levels;
  return s;
}

}  // namespace

void record_sparse_triangular_solve(Recorder& recorder, const SparseTriangularSolveArgs& args) {
  require_type(recorder.traits(), args.dtype);
  require_numbers(args.rows, "rows"), require_numbers(args.nnz, "nnz"), require_numbers(args.n, "n");
  const bool wants_levels = args.levels != nullptr && !args.levels_ready;
  if (args.rows == 0 && wants_levels)
    record_fill(recorder, *args.levels, 0, sizeof(int32_t), {});  // where level 0 begins
  if (args.rows == 0 || (args.n == 0 && !wants_levels)) return;
  const System s = system_of(recorder, args);
  log(TUFF_LOG_DISPATCH, "{} {}: {} rows, {} columns at once, budget {}, groups of {}", kLabel, dtype_name(args.dtype),
      args.rows, s.columns, s.steps.budget, s.steps.workgroup);
  if (s.empty) {
    record_fill(recorder, s.row_offsets, 0, s.offset_bytes, {});
  } else if (!args.transposed() || s.finds) {
    record_row_offsets(s);
  }
  if (s.sorts) record_by_column(s);
  if (s.finds) record_levels(s);
  for (uint64_t first = 0; first < args.n; first += s.columns) {
    record_columns(s, first, std::min(s.columns, args.n - first));
  }
}

}  // namespace tuff
