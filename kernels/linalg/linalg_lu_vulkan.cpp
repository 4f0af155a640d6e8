// Planner of LU factorisations and of systems solved with them. The factorisation splits columns in two, as the others
// do (linalg_vulkan.cpp):
//
//   | A11 A12 |   the left half of all rows:  P1 (A11; A21) = (L11; L21) U11, whose exchanges are made in all columns
//   | A21 A22 |   U12 = L11^-1 A12;  A22 -= L21 U12;  then P2 A22 = L22 U22
//
// and ends with panels of a few columns, each of which one workgroup computes: on GPUs in registers
// (linalg_panel.comp), unless it has too many rows, otherwise in memory (linalg_lu.comp).
#include <algorithm>
#include <array>

#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/linalg/linalg_plan.hpp"
#include "kernels/shape/shape.hpp"
#include "planning/log.hpp"
#include "shaders/linalg_lu.hpp"
#include "shaders/linalg_panel.hpp"
#include "shaders/linalg_swap.hpp"

namespace tuff {
namespace linalg {
namespace {

// Columns of a panel in memory: the more, the longer one workgroup works alone; the fewer, the more dispatches. A
// matrix that is a single panel takes one dispatch.
constexpr uint64_t kPanel = 16;
// A panel in registers: the rows of an invocation, and 32-bit values for its elements with up to 512 invocations in a
// workgroup; with more there are half as many registers.
constexpr uint64_t kMaxRows = 16;
constexpr uint32_t kFewThreads = 512, kValues = 64;
// Rows from which on a panel in registers is a copy by columns. Where a row's elements are contiguous, neighbouring
// invocations read different lines of the cache, and each takes a cycle of the only multiprocessor that works.
constexpr uint64_t kTall = 512;
// Exchanges of one dispatch of linalg_swap.comp on CPU devices: see kernels/common/loop_limit.hpp.
constexpr uint64_t kMaxSwaps = 32768;
constexpr uint32_t kSwappedColumns = 64;  // of a workgroup that makes exchanges together

struct Pivots {
  const Buffer* buffer;
  uint64_t first, stride;  // first: of the part's first matrix
  void operand(Dispatch& dispatch, const Batch& batch, uint64_t steps, Access access) const {
    dispatch.operand(buffer, first * sizeof(int32_t), span(batch, steps) * sizeof(int32_t), access);
  }
  uint64_t span(const Batch& batch, uint64_t steps) const { return (batch.count - 1) * stride + steps; }
};

// Exchanges the rows of `columns` columns from the view's first on, without those of `skipped`.
struct Swaps {
  uint64_t rows, first, count, columns;
  uint64_t skip_first = UINT32_MAX, skip_columns = 0;
  bool reverse = false;
  const Buffer* panels = nullptr;  // copies by columns of what is skipped, which go back to their places
};

void record_swap(const Batch& batch, const View& a, const Pivots& pivots, uint64_t steps, const Swaps& swaps) {
  const uint64_t columns = swaps.columns - swaps.skip_columns;
  const bool panels = swaps.panels != nullptr, together = panels || !batch.device.cpu;
  if ((columns == 0 && !panels) || swaps.count == 0) return;
  const uint32_t threads = panels ? batch.threads(kSwappedColumns, kSwappedColumns)
                                  : batch.threads(columns, together ? kSwappedColumns : kMaxThreads);
  const uint64_t rows = swaps.rows - swaps.first;
  const uint64_t panel_groups = panels ? ceil_div(rows, static_cast<uint64_t>(shaders::LinalgSwap::tile({}))) : 0;
  const uint64_t groups = ceil_div(columns, threads), span = batch.span(a, swaps.rows, swaps.columns);
  const bool wide = needs_wide(std::max(span, pivots.span(batch, steps)));
  KernelRequest kernel = shaders::LinalgSwap::request(
      {.panel = panels, .reverse = swaps.reverse, .together = together, .type = batch.dtype});
  kernel.streaming().constant(0, threads).wide(wide);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, a, swaps.rows, swaps.columns, Access::read_write);
  pivots.operand(dispatch, batch, steps, Access::read);
  dispatch.operand(swaps.panels, 0, panels ? batch.count * rows * swaps.skip_columns * batch.size() : 0, Access::read);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgSwap::Push<Index>{.row_stride = static_cast<Index>(a.row_stride()),
                                                   .stride = static_cast<Index>(a.stride),
                                                   .stride_pivots = static_cast<Index>(pivots.stride),
                                                   .rows = static_cast<uint32_t>(swaps.rows),
                                                   .first = static_cast<uint32_t>(swaps.first),
                                                   .count = static_cast<uint32_t>(swaps.count),
                                                   .columns = static_cast<uint32_t>(columns),
                                                   .skip_first = static_cast<uint32_t>(swaps.skip_first),
                                                   .skip_columns = static_cast<uint32_t>(swaps.skip_columns),
                                                   .groups = static_cast<uint32_t>(groups),
                                                   .panel_groups = static_cast<uint32_t>(panel_groups),
                                                   .matrices = static_cast<uint32_t>(batch.count)});
  });
  const uint64_t moved = columns * swaps.count, back = panels ? rows * swaps.skip_columns : 0;
  batch.record(kernel, dispatch, groups + panel_groups, 4 * moved + 2 * back, moved + back);
}

// All exchanges of a factorisation, in order, or undone.
void record_permutation(const Batch& batch, const View& b, const Pivots& pivots, uint64_t n, uint64_t columns,
                        bool reverse) {
  const uint64_t most = batch.device.cpu ? kMaxSwaps : static_cast<uint64_t>(shaders::LinalgSwap::most_together({}));
  const uint64_t parts = ceil_div(n, most);
  for (uint64_t i = 0; i < parts; ++i) {
    const uint64_t first = (reverse ? parts - 1 - i : i) * most;
    record_swap(
        batch, b, pivots, n,
        {.rows = n, .first = first, .count = std::min(most, n - first), .columns = columns, .reverse = reverse});
  }
}

struct Panel {
  uint64_t columns;
  uint32_t threads;
  bool held = false;  // in registers
};

// A workgroup that holds a panel: rows of an invocation, and columns of a part.
struct Held {
  uint32_t threads;
  uint64_t rows, columns;
};

uint32_t most_held_threads(const Batch& batch) {
  const auto subgroups = static_cast<uint32_t>(shaders::LinalgPanel::most_subgroups({}));
  return std::bit_floor(std::min({1024u, max_along_x(batch.recorder.traits()), subgroups * batch.device.subgroup}));
}

Held hold(const Batch& batch, uint64_t rows) {
  const uint32_t most = most_held_threads(batch), few = std::min(most, kFewThreads);
  const uint32_t whole = rows > few * (kMaxRows / 2) ? most : few;
  const auto threads = static_cast<uint32_t>(
      std::max<uint64_t>(std::min<uint64_t>(std::bit_ceil(rows), whole), std::min(batch.device.subgroup, whole)));
  const uint64_t own = std::bit_ceil(ceil_div(rows, threads));
  const uint64_t values = kValues * 4 / batch.size() / (threads > kFewThreads ? 2 : 1);
  return {threads, own, std::clamp<uint64_t>(values / own, 1, block_extent())};
}

// Loop iterations of an invocation, for a panel of `rows` rows.
uint64_t iterations(const Panel& panel, uint64_t rows) {
  const uint64_t own = ceil_div(rows, panel.threads);
  return panel.columns * (2 * own + 2 * panel.columns + 16) + own * panel.columns * panel.columns / 2;
}

Panel choose_panel(const Batch& batch, uint64_t rows, uint64_t steps) {
  if (!batch.device.cpu && rows <= most_held_threads(batch) * kMaxRows) {
    return {block_extent(), hold(batch, rows).threads, true};
  }
  const uint32_t most = batch.most_threads();
  Panel panel{steps <= block_extent() ? block_extent() : kPanel, batch.threads(rows, most)};
  if (!batch.recorder.traits().cpu) return panel;
  while (iterations(panel, rows) > kMaxLoopIterationsCpu) {
    if (panel.threads < most) {
      panel.threads *= 2;
    } else if (panel.columns > 1) {
      panel.columns /= 2;
    } else {
      fail(TUFF_ERROR_UNSUPPORTED, "m is {}, more rows than the device's workgroups of {} hold", rows, most);
    }
  }
  return panel;
}

struct Lu {
  const Batch& batch;
  const LuArgs& args;
  View a;
  Pivots pivots;
  uint64_t first_info;
  Panel panel;
  const Buffer* scratch;  // for copies of tall panels; null: they are computed in place

  bool copies(uint64_t first) const { return panel.held && scratch != nullptr && args.m - first >= kTall; }
  void record(uint64_t first, uint64_t columns) const;
  void record_panel(uint64_t first, uint64_t columns) const;
  void record_held(uint64_t first, uint64_t columns) const;
  void copy_panel(const View& from, const View& to, uint64_t rows, uint64_t columns) const;
  Dispatch dispatch_panel(const View& block, uint64_t first, uint64_t columns) const;
};

void Lu::record_panel(uint64_t first, uint64_t columns) const {
  if (panel.held) return record_held(first, columns);
  const View block = a.at(first, first);
  const uint64_t rows = args.m - first;
  const bool wide = needs_wide(std::max(batch.span(block, rows, columns), pivots.span(batch, args.steps())));
  KernelRequest kernel = shaders::LinalgLu::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                     .info = args.info != nullptr,
                                                     .threads = panel.threads,
                                                     .type = batch.dtype});
  kernel.wide(wide);
  Dispatch dispatch = dispatch_panel(block, first, columns);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgLu::Push<Index>{.row_stride = static_cast<Index>(block.row_stride()),
                                                 .stride = static_cast<Index>(block.stride),
                                                 .stride_pivots = static_cast<Index>(pivots.stride),
                                                 .rows = static_cast<uint32_t>(rows),
                                                 .columns = static_cast<uint32_t>(columns),
                                                 .first = static_cast<uint32_t>(first),
                                                 .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, dispatch, 1, 2 * rows * columns, rows * columns * columns);
}

Dispatch Lu::dispatch_panel(const View& block, uint64_t first, uint64_t columns) const {
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, block, args.m - first, columns, Access::read_write);
  pivots.operand(dispatch, batch, args.steps(), Access::write);
  dispatch.operand(args.info, first_info * sizeof(int32_t), batch.count * sizeof(int32_t),
                   first == 0 ? Access::write : Access::read_write);
  return dispatch;
}

void Lu::record_held(uint64_t first, uint64_t columns) const {
  const View block = a.at(first, first);
  const uint64_t rows = args.m - first;
  // Its columns are contiguous.
  const View columnwise{scratch, 0, rows, rows * columns, true};
  const bool copied = copies(first);
  if (copied) copy_panel(block, columnwise, rows, columns);
  const View used = copied ? columnwise : block;
  const Held held = hold(batch, rows);
  const bool wide = needs_wide(std::max(batch.span(used, rows, columns), pivots.span(batch, args.steps())));
  KernelRequest kernel = shaders::LinalgPanel::request({.columns = std::min(held.columns, std::bit_ceil(columns)),
                                                        .exact_arithmetic = batch.recorder.traits().cpu,
                                                        .info = args.info != nullptr,
                                                        .rows = held.rows,
                                                        .threads = held.threads,
                                                        .type = batch.dtype});
  kernel.wide(wide);
  Dispatch dispatch = dispatch_panel(used, first, columns);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgPanel::Push<Index>{.row_stride = static_cast<Index>(used.row_stride()),
                                                    .column_stride = static_cast<Index>(used.column_stride()),
                                                    .stride = static_cast<Index>(used.stride),
                                                    .stride_pivots = static_cast<Index>(pivots.stride),
                                                    .rows = static_cast<uint32_t>(rows),
                                                    .columns = static_cast<uint32_t>(columns),
                                                    .first = static_cast<uint32_t>(first),
                                                    .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, dispatch, 1, 2 * rows * columns, rows * columns * columns);
}

void Lu::copy_panel(const View& from, const View& to, uint64_t rows, uint64_t columns) const {
  const auto strides = [](const View& view) {
    return std::array{static_cast<int64_t>(view.stride), static_cast<int64_t>(view.column_stride()),
                      static_cast<int64_t>(view.row_stride())};
  };
  const auto input = strides(from), output = strides(to);
  const uint64_t shape[] = {batch.count, columns, rows};
  record_copy_strided(batch.recorder, {batch.dtype, from.buffer, to.buffer, from.first, to.first, input.data(),
                                       output.data(), shape, 3});
}

// The columns first … first + columns - 1, from row `first` down.
void Lu::record(uint64_t first, uint64_t columns) const {
  if (columns <= panel.columns) {
    record_panel(first, columns);
    return record_swap(batch, a, pivots, args.steps(),
                       {.rows = args.m,
                        .first = first,
                        .count = columns,
                        .columns = args.n,
                        .skip_first = first,
                        .skip_columns = columns,
                        .panels = copies(first) ? scratch : nullptr});
  }
  const uint64_t left = split(columns, panel.columns), right = columns - left, middle = first + left;
  record(first, left);
  record_solve(batch, {a.at(first, first), left, false, true}, a.at(first, middle), right);
  record_product(batch, a.at(middle, middle), a.at(middle, first), a.at(first, middle), args.m - middle, right, left);
  record(middle, right);
}

}  // namespace
}  // namespace linalg

void record_lu(Recorder& recorder, const LuArgs& args) {
  using namespace linalg;
  const uint64_t steps = args.steps();
  require_extent(steps, kMaxTriangle, args.m < args.n ? "m" : "n");
  require_extent(std::max(args.m, args.n), kMaxExtent, args.m < args.n ? "n" : "m");
  const Batch batch = batch_of(recorder, "lu", args.dtype, args.batch_count);
  const View a = view_of(args.a, args.m, args.batch_count);
  const bool empty = steps == 0 || args.batch_count == 0;
  require_device(recorder, args.dtype, empty ? 0 : batch.span(a, args.m, args.n));
  if (args.batch_count == 0) return;
  if (empty) return record_no_failures(recorder, args.info, args.batch_count);
  const Panel panel = choose_panel(batch, args.m, steps);
  const uint64_t stride_pivots = args.batch_count > 1 ? args.stride_pivots : 0;
  log(TUFF_LOG_DISPATCH, "lu {} {}x{} batch={}: {}, panels of {} columns{}, groups of {}", dtype_name(args.dtype),
      args.m, args.n, args.batch_count, batch.kernels(), panel.columns, panel.held ? " in registers" : "",
      panel.threads);
  const bool copies = panel.held && args.m >= kTall && recorder.traits().addresses;
  const uint64_t each = copies ? args.m * panel.columns : 0, most = matrices_at_once(batch, each);
  const Buffer* scratch =
      copies ? &recorder.scratch(each * std::min(most, batch.count) * batch.size(), Scratch::outer) : nullptr;
  for_each_part(batch, args.n, most, [&](const Batch& part, uint64_t first) {
    const View matrices = part_of(a, first);
    const Pivots pivots{args.pivots, first * stride_pivots, stride_pivots};
    Lu{part, args, matrices, pivots, first, panel, scratch}.record(0, steps);
    if (args.n > steps) {
      record_solve(part, {matrices, steps, false, true}, matrices.at(0, steps), args.n - steps);
    }
  });
}

void record_lu_solve(Recorder& recorder, const LuSolveArgs& args) {
  using namespace linalg;
  require_extent(args.n, kMaxTriangle, "n");
  require_extent(args.nrhs, kMaxExtent, "nrhs");
  const Batch batch = batch_of(recorder, "lu_solve", args.dtype, args.batch_count);
  const bool empty = args.n == 0 || args.nrhs == 0 || args.batch_count == 0;
  const View a = view_of(args.a, args.n, args.batch_count), b = view_of(args.b, args.n, args.batch_count);
  require_device(recorder, args.dtype,
                 empty ? 0 : std::max(batch.span(a, args.n, args.n), batch.span(b, args.n, args.nrhs)));
  if (empty) return;
  const uint64_t stride_pivots = args.batch_count > 1 ? args.stride_pivots : 0;
  log(TUFF_LOG_DISPATCH, "lu_solve {} n={} nrhs={} batch={}: {}", dtype_name(args.dtype), args.n, args.nrhs,
      args.batch_count, batch.kernels());
  for_each_part(batch, args.nrhs, [&](const Batch& part, uint64_t first) {
    const View lu = part_of(a, first), x = part_of(b, first);
    const Pivots pivots{args.pivots, first * stride_pivots, stride_pivots};
    if (args.transpose == TUFF_NO_TRANS) {
      record_permutation(part, x, pivots, args.n, args.nrhs, false);
      record_solve(part, {lu, args.n, false, true}, x, args.nrhs);
      record_solve(part, {lu, args.n, true, false}, x, args.nrhs);
    } else {
      record_solve(part, {lu.transpose(), args.n, false, false}, x, args.nrhs);
      record_solve(part, {lu.transpose(), args.n, true, true}, x, args.nrhs);
      record_permutation(part, x, pivots, args.n, args.nrhs, true);
    }
  });
}

}  // namespace tuff
