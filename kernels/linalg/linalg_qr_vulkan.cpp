// Planner of QR factorisations. Columns are processed in blocks of at most 128, which recursion splits into panels that
// one workgroup of each matrix computes:
//
//   | A1 A2 |   the left half of all rows:  H A1 = (R1; 0) with H^T = I - V T V^T, the product of its reflections;
//   |       |   A2 -= V (T^T (V^T A2));  then the right half, from the rows below R1 on
//
// Q is the product of all blocks' reflectors, applied to an identity from the last to the first. V, which leaves zeros
// in A, and T are in scratch memory. A matrix of a single panel takes one dispatch.
#include <algorithm>
#include <bit>

#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/linalg/linalg_plan.hpp"
#include "planning/log.hpp"
#include "shaders/linalg_qr.hpp"
#include "shaders/linalg_reflector.hpp"

namespace tuff {
namespace linalg {
namespace {

constexpr uint64_t kPanel = 16;  // as LU's

struct Panel {
  uint64_t columns;
  uint32_t threads;
};

// Loop iterations of an invocation, for a panel of `rows` rows and at most `q_columns` columns of Q.
uint64_t iterations(const Panel& panel, uint64_t rows, uint64_t q_columns) {
  const uint64_t own = ceil_div(rows, panel.threads), quads = ceil_div(panel.columns, 4);
  const uint64_t step = own * (2 + quads + panel.columns) + 2 * panel.columns + 64;
  const uint64_t q_step = q_columns == 0 ? 0 : own * (1 + ceil_div(q_columns, 4) + q_columns) + 2 * q_columns + 64;
  return panel.columns * (step + q_step) + own * (2 * panel.columns + q_columns);
}

Panel choose_panel(const Batch& batch, uint64_t rows, uint64_t columns, uint64_t q_columns) {
  const auto subgroups = static_cast<uint32_t>(shaders::LinalgQr::most_subgroups({}));
  const uint32_t most = std::min(batch.most_threads(), std::bit_floor(subgroups * batch.device.subgroup));
  Panel panel{columns, batch.threads(rows, most)};
  if (!batch.recorder.traits().cpu) return panel;
  while (iterations(panel, rows, q_columns) > kMaxLoopIterationsCpu) {
    if (panel.threads < most) {
      panel.threads *= 2;
    } else if (panel.columns > 1 && q_columns == 0) {
      panel.columns /= 2;
    } else {
      panel.columns = 0;
      break;
    }
  }
  return panel;
}

// A panel that is the whole matrix, and computes Q too; 0 columns: there is none.
Panel whole_panel(const Batch& batch, const QrArgs& args) {
  const uint64_t q_columns = args.q.buffer != nullptr ? args.q_columns : 0;
  if (args.n > block_extent() || q_columns > block_extent()) return {};
  const Panel panel = choose_panel(batch, args.m, args.n, q_columns);
  return panel.columns < args.n ? Panel{} : panel;
}

// Where everything is in scratch memory, in elements.
struct Places {
  uint64_t width;                  // of a block of columns
  uint64_t ld_v;                   // V of all blocks if Q is wanted, otherwise of one
  uint64_t v, tau, s, t, w, more;  // of one matrix
  uint64_t each() const { return v + tau + s + t + w + more; }
};

Places places_of(const QrArgs& args) {
  const uint64_t steps = args.steps(), width = std::min(steps, kCut);
  const uint64_t q_columns = args.q.buffer != nullptr ? args.q_columns : 0;
  Places places{};
  places.width = width;
  places.ld_v = q_columns != 0 ? steps : width;
  places.v = args.m * places.ld_v, places.tau = steps;
  places.s = places.t = width * width;
  places.w = places.more = width * std::max(args.n, q_columns);
  return places;
}

struct Qr {
  const Batch& batch;
  const QrArgs& args;
  View a, q;
  Panel panel;
  Places places;
  const QrMemory& memory;

  // A place in scratch memory, of matrices `each` elements apart.
  View place(uint64_t before, uint64_t each, uint64_t ld) const {
    return {memory.buffer, memory.first + before * memory.matrices, ld, batch.count > 1 ? each : 0};
  }
  // V of the columns from `column` on, which are in the block that begins at `block`, from row `column` down.
  View vectors(uint64_t column, uint64_t block) const {
    const View v = place(0, places.v, places.ld_v);
    return v.at(column, q.buffer != nullptr ? column : column - block);
  }
  View tau(uint64_t column) const { return place(places.v, places.tau, places.tau).at(0, column); }

  void factor(uint64_t first, uint64_t columns, uint64_t block) const;
  void record_panel(uint64_t first, uint64_t columns, uint64_t block) const;
  void record_triangle(uint64_t first, uint64_t width, const View& s, const View& t) const;
  void reflect(uint64_t first, uint64_t width, uint64_t block, const View& c, uint64_t columns, bool transpose) const;
  void record() const;
};

// One dispatch of linalg_qr.comp. v is Q if `vectors` is 2.
void record_qr_panel(const Batch& batch, const View& a, uint64_t rows, uint64_t columns, uint32_t threads, int vectors,
                     const View& v, uint64_t above, uint64_t v_columns, const View& tau) {
  const uint64_t steps = std::min(rows, columns);
  uint64_t span = batch.span(a, rows, columns);
  if (vectors != 0) span = std::max(span, batch.span(v, rows + above, v_columns));
  const bool wide = needs_wide(span);
  KernelRequest kernel = shaders::LinalgQr::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                     .lanes = threads,
                                                     .shared = batch.shares(threads),
                                                     .type = batch.dtype,
                                                     .vectors = vectors});
  kernel.constant(0, threads).wide(wide);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, a, rows, columns, Access::read_write);
  const auto perhaps = [&](bool wanted, const View& view, uint64_t view_rows, uint64_t view_columns) {
    wanted ? batch.operand(dispatch, view, view_rows, view_columns, Access::write)
           : static_cast<void>(dispatch.operand(nullptr, 0, 0, Access::write));
  };
  perhaps(vectors != 0, v, rows + above, v_columns);
  perhaps(vectors == 1, tau, 1, steps);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgQr::Push<Index>{.row_stride = static_cast<Index>(a.row_stride()),
                                                 .stride = static_cast<Index>(a.stride),
                                                 .v_row_stride = static_cast<Index>(v.row_stride()),
                                                 .v_stride = static_cast<Index>(v.stride),
                                                 .tau_stride = static_cast<Index>(tau.stride),
                                                 .rows = static_cast<uint32_t>(rows),
                                                 .columns = static_cast<uint32_t>(columns),
                                                 .above = static_cast<uint32_t>(above),
                                                 .q_columns = static_cast<uint32_t>(v_columns),
                                                 .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, dispatch, 1, 3 * rows * columns, 2 * rows * columns * columns);
}

void Qr::record_panel(uint64_t first, uint64_t columns, uint64_t block) const {
  // From the block's first row on, where V has zeros.
  View v = vectors(first, block);
  v.first -= (first - block) * v.row_stride();
  record_qr_panel(batch, a.at(first, first), args.m - first, columns, panel.threads, 1, v, first - block, columns,
                  tau(first));
}

void Qr::record_triangle(uint64_t first, uint64_t width, const View& s, const View& t) const {
  const View taus = tau(first);
  const uint32_t threads = batch.threads(width, kMaxThreads);
  const uint64_t groups = ceil_div(width, threads);
  const bool wide = needs_wide(std::max(batch.span(s, width, width), batch.span(taus, 1, width)));
  KernelRequest kernel =
      shaders::LinalgReflector::request({.exact_arithmetic = batch.recorder.traits().cpu, .type = batch.dtype});
  kernel.constant(0, threads).wide(wide);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, s, width, width, Access::read);
  batch.operand(dispatch, taus, 1, width, Access::read);
  batch.operand(dispatch, t, width, width, Access::write);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgReflector::Push<Index>{.s_stride = static_cast<Index>(s.stride),
                                                        .tau_stride = static_cast<Index>(taus.stride),
                                                        .t_stride = static_cast<Index>(t.stride),
                                                        .n = static_cast<uint32_t>(width),
                                                        .groups = static_cast<uint32_t>(groups),
                                                        .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, dispatch, groups, 2 * width * width, ceil_div(width * width * width, 3));
}

// Applies the reflections of `width` columns to the matrices C, whose first row is row `first`: all of them in turn if
// `transpose`, otherwise from the last to the first.
void Qr::reflect(uint64_t first, uint64_t width, uint64_t block, const View& c, uint64_t columns,
                 bool transpose) const {
  if (columns == 0) return;
  const uint64_t rows = args.m - first, before = places.v + places.tau;
  const View v = vectors(first, block), s = place(before, places.s, width),
             t = place(before + places.s, places.t, width), w = place(before + places.s + places.t, places.w, columns),
             more = place(before + places.s + places.t + places.w, places.more, columns);
  record_product(batch, s, v.transpose(), v, width, width, rows, kPlainProduct);
  record_triangle(first, width, s, t);
  record_product(batch, w, v.transpose(), c, width, columns, rows, kPlainProduct);
  // t is stored by columns.
  record_product(batch, more, transpose ? t : t.transpose(), w, width, columns, width, kPlainProduct);
  record_product(batch, c, v, more, rows, columns, width);
}

// The columns first … first + columns - 1, from row `first` down.
void Qr::factor(uint64_t first, uint64_t columns, uint64_t block) const {
  if (columns <= panel.columns) return record_panel(first, columns, block);
  const uint64_t left = split(columns, panel.columns), right = columns - left;
  factor(first, left, block);
  reflect(first, left, block, a.at(first, first + left), right, true);
  factor(first + left, right, block);
}

void Qr::record() const {
  const uint64_t steps = args.steps(), width = places.width;
  for (uint64_t first = 0; first < steps; first += width) {
    const uint64_t columns = std::min(width, steps - first), next = first + columns;
    factor(first, columns, first);
    if (next < args.n) reflect(first, columns, first, a.at(first, next), args.n - next, true);
  }
  if (q.buffer == nullptr) return;
  record_identity(batch, q, args.m, args.q_columns);
  for (uint64_t first = (steps - 1) / width * width;; first -= width) {
    reflect(first, std::min(width, steps - first), first, q.at(first, first), args.q_columns - first, false);
    if (first == 0) return;
  }
}

}  // namespace

uint64_t qr_memory(const Batch& batch, const QrArgs& args) {
  return whole_panel(batch, args).columns != 0 ? 0 : places_of(args).each();
}

void record_qr(const Batch& batch, const QrArgs& args, const View& a, const View& q, const QrMemory& memory) {
  const Panel whole = whole_panel(batch, args);
  if (whole.columns != 0) {
    return record_qr_panel(batch, a, args.m, args.n, whole.threads, q.buffer != nullptr ? 2 : 0, q, 0, args.q_columns,
                           {});
  }
  const Panel panel = choose_panel(batch, args.m, std::min(kPanel, args.steps()), 0);
  Qr{batch, args, a, q, panel, places_of(args), memory}.record();
}

void require_qr(const Batch& batch, const QrArgs& args) {
  if (whole_panel(batch, args).columns != 0) return;
  if (choose_panel(batch, args.m, std::min(kPanel, args.steps()), 0).columns == 0) {
    fail(TUFF_ERROR_UNSUPPORTED, "m is {}, more rows than the device's workgroups hold", args.m);
  }
  const Places places = places_of(args);
  require_device(batch.recorder, args.dtype, std::max(places.v, places.w));
}

}  // namespace linalg

void record_qr(Recorder& recorder, const QrArgs& args) {
  using namespace linalg;
  require_extent(args.steps(), kMaxTriangle, args.m < args.n ? "m" : "n");
  require_extent(std::max(args.m, args.n), kMaxExtent, args.m < args.n ? "n" : "m");
  const Batch batch = batch_of(recorder, "qr", args.dtype, args.batch_count);
  const View a = view_of(args.a, args.m, args.batch_count), q = view_of(args.q, args.m, args.batch_count);
  const bool no_q = args.q.buffer == nullptr || args.q_columns == 0;
  if (args.m == 0 || args.batch_count == 0 || (args.n == 0 && no_q)) return require_device(recorder, args.dtype, 0);
  require_device(
      recorder, args.dtype,
      std::max(args.n == 0 ? 0 : batch.span(a, args.m, args.n), no_q ? 0 : batch.span(q, args.m, args.q_columns)));
  if (args.n == 0) {
    const uint64_t tiles = ceil_div(args.m, block_extent());
    return for_each_part(batch, tiles * tiles, [&](const Batch& part, uint64_t first) {
      record_identity(part, part_of(q, first), args.m, args.q_columns);
    });
  }
  require_qr(batch, args);
  log(TUFF_LOG_DISPATCH, "qr {} {}x{} columns of Q={} batch={}: {}", dtype_name(args.dtype), args.m, args.n,
      no_q ? 0 : args.q_columns, args.batch_count, batch.kernels());
  const uint64_t each = qr_memory(batch, args), most = matrices_at_once(batch, each);
  const Buffer* memory = each == 0 ? nullptr : &recorder.scratch(each * most * batch.size(), Scratch::outer);
  for_each_part(batch, std::max(args.n, args.q_columns), most, [&](const Batch& part, uint64_t first) {
    record_qr(part, args, part_of(a, first), part_of(q, first), {memory, 0, most});
  });
}

}  // namespace tuff
