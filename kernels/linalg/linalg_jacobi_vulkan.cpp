// Planners of eigenvalues and singular values, by Jacobi's method on matrices in scratch memory (linalg_jacobi.comp):
//
//   symmetric A     sweeps of rotations make X = A diagonal; W, from the identity on, becomes the eigenvectors
//   singular values A = Q R; sweeps make the columns of X = R^T orthogonal: X W = Y S. R = W S Y^T, so that
//                   A = (Q W) S Y^T. W is orthogonal whatever A's rank is; Y, whose columns X W may be too small to
//                   say, is the orthogonal factor of their QR factorisation, in descending order
//
// A wide matrix is transposed. Each round of a sweep is one dispatch for the rotations of all pairs of column parts,
// and one for each matrix that they are applied to. All sweeps are recorded; those after convergence end at once.
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/linalg/linalg_spectrum.hpp"
#include "planning/log.hpp"
#include "shaders/linalg_arrange.hpp"
#include "shaders/linalg_jacobi.hpp"
#include "shaders/linalg_order.hpp"
#include "shaders/linalg_rotate.hpp"

namespace tuff {
namespace linalg {
namespace {

// Sweeps of a matrix that has only two parts: each diagonalises their X^T X, and only its rounding errors remain.
constexpr uint64_t kSweepsOfTwo = 8;
constexpr uint64_t kMaxColumns = 1u << 14;

uint64_t half_of(int32_t dtype) { return static_cast<uint64_t>(shaders::LinalgJacobi::half({.type = dtype})); }
uint64_t most_sweeps() { return static_cast<uint64_t>(shaders::LinalgJacobi::most_sweeps({})); }
uint64_t parts_of(uint64_t columns, int32_t dtype) { return ceil_div(columns, 2 * half_of(dtype)) * 2; }

// Whether one workgroup has all columns.
bool is_alone(uint64_t columns, int32_t dtype) { return parts_of(columns, dtype) == 2; }

// The memory of Jacobi's method besides the matrices themselves.
struct Workspace {
  ScaledMemory scaled;
  View products, moved, order, keys;
};

Workspace take_workspace(Layout& layout, uint64_t rows, uint64_t columns, int32_t dtype) {
  const uint64_t games = parts_of(columns, dtype) / 2, whole = 2 * half_of(dtype);
  return {take_scaled(layout, rows), layout.take(games * whole, whole), layout.take(1, games), layout.take(1, columns),
          layout.take(1, columns)};
}

struct Jacobi {
  const Batch& batch;
  bool gram;
  View x;
  uint64_t columns;  // of X, and its rows
  Workspace memory;

  uint64_t parts() const { return parts_of(columns, batch.dtype); }
  bool alone() const { return is_alone(columns, batch.dtype); }
  uint64_t sweeps() const { return !alone() ? most_sweeps() : gram ? kSweepsOfTwo : 1; }

  void integers(Dispatch& dispatch, const View& view, uint64_t words, Access access) const {
    integer_operand(batch, dispatch, view, words, access);
  }
  void numbers(Dispatch& dispatch, const View& view, uint64_t each, Access access) const {
    number_operand(batch, dispatch, view, each, access);
  }
  void state(Dispatch& dispatch, Access access) const {
    integers(dispatch, memory.scaled.state, state_words(), access);
  }

  void rotate(const View& matrix, uint64_t rows, uint64_t round, uint64_t sweep) const;
  void turn(uint64_t round, uint64_t sweep) const;
  // Diagonalises X, or makes its columns orthogonal, and multiplies W by the rotations; without a buffer there is none.
  void run(const View& w) const;
  void order(const View& values, const Buffer* info, uint64_t first_info) const;
  // Columns in order, or with the signs of the diagonal of `signs`.
  void arrange(const View& from, const View& to, uint64_t rows, const View* signs = nullptr) const;
};

// On CPU devices as few as the bound of loops allows, because barriers are slow there.
uint32_t jacobi_threads(const Batch& batch, uint64_t columns) {
  if (!batch.device.cpu) return columns <= 8 ? 32 : columns <= 16 ? 64 : kMaxThreads;
  return columns <= 16 ? 8 : columns <= 4096 ? 64 : kMaxThreads;
}

void Jacobi::turn(uint64_t round, uint64_t sweep) const {
  const uint32_t threads = std::min(batch.most_threads(), jacobi_threads(batch, columns));
  const uint64_t games = parts() / 2, whole = 2 * half_of(batch.dtype);
  const bool wide = needs_wide(std::max(batch.span(x, columns, columns), batch.count * games * whole * whole));
  KernelRequest kernel = shaders::LinalgJacobi::request({.alone = alone(),
                                                         .exact_arithmetic = batch.recorder.traits().cpu,
                                                         .gram = gram,
                                                         .threads = threads,
                                                         .type = batch.dtype});
  kernel.wide(wide);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, x, columns, columns, alone() && !gram ? Access::read_write : Access::read);
  numbers(dispatch, memory.products, games * whole * whole, Access::write);
  state(dispatch, Access::read_write);
  numbers(dispatch, memory.scaled.norm, 1, Access::read);
  integers(dispatch, memory.moved, games, Access::write);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgJacobi::Push<Index>{.x_row = static_cast<Index>(x.row_stride()),
                                                     .x_column = static_cast<Index>(x.column_stride()),
                                                     .x_stride = static_cast<Index>(x.stride),
                                                     .u_stride = static_cast<Index>(memory.products.stride),
                                                     .columns = static_cast<uint32_t>(columns),
                                                     .parts = static_cast<uint32_t>(parts()),
                                                     .round = static_cast<uint32_t>(round),
                                                     .sweep = static_cast<uint32_t>(sweep),
                                                     .matrices = static_cast<uint32_t>(batch.count)});
  });
  const uint64_t elements = columns * columns, rotations = games * whole * whole * whole;
  batch.record(kernel, dispatch, games, elements, 6 * rotations + (gram ? 2 * elements * whole : 0));
}

void Jacobi::rotate(const View& matrix, uint64_t rows, uint64_t round, uint64_t sweep) const {
  const uint64_t games = parts() / 2, whole = 2 * half_of(batch.dtype), groups = ceil_div(rows, whole);
  const bool wide = needs_wide(std::max(batch.span(matrix, rows, columns), batch.count * games * whole * whole));
  KernelRequest kernel =
      shaders::LinalgRotate::request({.exact_arithmetic = batch.recorder.traits().cpu, .type = batch.dtype});
  kernel.constant(0, batch.threads(whole * whole / 16, kMaxThreads)).wide(wide);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, matrix, rows, columns, Access::read_write);
  numbers(dispatch, memory.products, games * whole * whole, Access::read);
  state(dispatch, Access::read);
  integers(dispatch, memory.moved, games, Access::read);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgRotate::Push<Index>{.x_row = static_cast<Index>(matrix.row_stride()),
                                                     .x_column = static_cast<Index>(matrix.column_stride()),
                                                     .x_stride = static_cast<Index>(matrix.stride),
                                                     .u_stride = static_cast<Index>(memory.products.stride),
                                                     .rows = static_cast<uint32_t>(rows),
                                                     .columns = static_cast<uint32_t>(columns),
                                                     .parts = static_cast<uint32_t>(parts()),
                                                     .round = static_cast<uint32_t>(round),
                                                     .sweep = static_cast<uint32_t>(sweep),
                                                     .groups = static_cast<uint32_t>(groups),
                                                     .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, dispatch, groups * games, 2 * rows * columns, 2 * rows * columns * whole);
}

void Jacobi::run(const View& w) const {
  for (uint64_t sweep = 0; sweep < sweeps(); ++sweep) {
    for (uint64_t round = 0; round + 1 < parts(); ++round) {
      turn(round, sweep);
      if (alone() && !gram) continue;
      rotate(x, columns, round, sweep);
      if (!gram) rotate(x.transpose(), columns, round, sweep);
      if (w.buffer != nullptr) rotate(w, columns, round, sweep);
    }
  }
}

void Jacobi::order(const View& values, const Buffer* info, uint64_t first_info) const {
  const uint64_t values_span = (batch.count - 1) * values.stride + columns;
  const bool wide = needs_wide(std::max(batch.span(x, columns, columns), values_span));
  for (int stage = 0; stage < 2; ++stage) {
    const uint32_t lanes = lanes_for(batch, stage == 0 && !gram ? 1 : columns);
    const uint64_t groups = stage == 0 ? columns : ceil_div(columns, lanes);
    KernelRequest kernel = shaders::LinalgOrder::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                          .gram = gram,
                                                          .info = info != nullptr,
                                                          .lanes = lanes,
                                                          .shared = batch.shares(lanes),
                                                          .stage = stage,
                                                          .type = batch.dtype});
    kernel.constant(0, lanes).wide(wide);
    Dispatch dispatch(batch.name);
    if (stage == 0) {
      batch.operand(dispatch, x, columns, columns, Access::read);
      numbers(dispatch, memory.keys, columns, Access::write);
      for (int slot = 2; slot < 6; ++slot) dispatch.operand(nullptr, 0, 0, Access::read);
    } else {
      dispatch.operand(nullptr, 0, 0, Access::read);
      numbers(dispatch, memory.keys, columns, Access::read);
      state(dispatch, Access::read);
      integers(dispatch, memory.order, columns, Access::write);
      dispatch.operand(values.buffer, values.first * batch.size(), values_span * batch.size(), Access::write);
      dispatch.operand(info, first_info * sizeof(int32_t), info != nullptr ? batch.count * sizeof(int32_t) : 0,
                       Access::write);
    }
    with_index(wide, [&](auto index) {
      using Index = decltype(index);
      dispatch.push(shaders::LinalgOrder::Push<Index>{.x_row = static_cast<Index>(x.row_stride()),
                                                      .x_column = static_cast<Index>(x.column_stride()),
                                                      .x_stride = static_cast<Index>(x.stride),
                                                      .values_stride = static_cast<Index>(values.stride),
                                                      .columns = static_cast<uint32_t>(columns),
                                                      .groups = static_cast<uint32_t>(groups),
                                                      .sweeps = static_cast<uint32_t>(sweeps()),
                                                      .matrices = static_cast<uint32_t>(batch.count)});
    });
    batch.record(kernel, dispatch, groups, columns * columns, columns * columns);
  }
}

void Jacobi::arrange(const View& from, const View& to, uint64_t rows, const View* signs) const {
  const auto tile = static_cast<uint64_t>(shaders::LinalgArrange::tile({}));
  const uint64_t across = ceil_div(columns, tile), down = ceil_div(rows, tile);
  const bool wide = needs_wide(std::max(batch.span(from, rows, columns), batch.span(to, rows, columns)));
  KernelRequest kernel = shaders::LinalgArrange::request(
      {.exact_arithmetic = batch.recorder.traits().cpu, .signs = signs != nullptr, .type = batch.dtype});
  kernel.constant(0, batch.threads(kMaxThreads, kMaxThreads)).wide(wide);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, from, rows, columns, Access::read);
  batch.operand(dispatch, to, rows, columns, Access::write);
  signs != nullptr ? batch.operand(dispatch, *signs, columns, columns, Access::read)
                   : integers(dispatch, memory.order, columns, Access::read);
  state(dispatch, Access::read);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgArrange::Push<Index>{
        .x_row = static_cast<Index>(from.row_stride()),
        .x_column = static_cast<Index>(from.column_stride()),
        .x_stride = static_cast<Index>(from.stride),
        .y_row = static_cast<Index>(to.row_stride()),
        .y_column = static_cast<Index>(to.column_stride()),
        .y_stride = static_cast<Index>(to.stride),
        .by_step = static_cast<Index>(signs != nullptr ? signs->row_stride() + signs->column_stride() : 1),
        .by_stride = static_cast<Index>(signs != nullptr ? signs->stride : columns),
        .rows = static_cast<uint32_t>(rows),
        .columns = static_cast<uint32_t>(columns),
        .across = static_cast<uint32_t>(across),
        .down = static_cast<uint32_t>(down),
        .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, dispatch, across * down, 2 * rows * columns, rows * columns);
}

// --- eigenvalues ----------------------------------------------------------------------------------------------------

struct EighMemory {
  View x, w;
  Workspace work;
};

EighMemory take_eigh(Layout& layout, const EighArgs& args) {
  const bool alone = is_alone(args.n, args.dtype), vectors = args.vectors.buffer != nullptr;
  EighMemory memory{layout.take(args.n, args.n), {}, {}};
  if (vectors && !alone) memory.w = layout.take(args.n, args.n);
  memory.work = take_workspace(layout, args.n, args.n, args.dtype);
  // The product of all rotations is W.
  if (vectors && alone) memory.w = memory.work.products;
  return memory;
}

void record_eigh_part(const Batch& part, const EighArgs& args, const View& a, const View& values, const View& vectors,
                      uint64_t first_info, const EighMemory& memory) {
  const Jacobi jacobi{part, false, memory.x, args.n, memory.work};
  record_scaled(part, a, memory.x, args.n, args.n, args.triangle == TUFF_TRIANGLE_UPPER ? 2 : 1, memory.work.scaled);
  const bool separate = memory.w.buffer != nullptr && !jacobi.alone();
  if (separate) record_identity(part, memory.w, args.n, args.n);
  jacobi.run(separate ? memory.w : View{});
  jacobi.order(values, args.info, first_info);
  if (vectors.buffer != nullptr) jacobi.arrange(memory.w, vectors, args.n);
}

// --- singular values ------------------------------------------------------------------------------------------------

// A matrix of at least as many rows as columns: A, or its transpose. left and right are U and V of that matrix.
struct Tall {
  const SvdArgs& args;
  View a, left, right;
  uint64_t m, n;

  QrArgs qr() const { return {args.dtype, m, n, {}, {left.buffer, 0, 0}, n, 1}; }
  QrArgs second_qr() const { return {args.dtype, n, n, {}, {right.buffer, 0, 0}, n, 1}; }
};

Tall tall_of(const SvdArgs& args) {
  const View a = view_of(args.a, args.m, args.batch_count), u = view_of(args.u, args.m, args.batch_count),
             vt = view_of(args.vt, args.steps(), args.batch_count);
  if (args.m >= args.n) return {args, a, u, vt.transpose(), args.m, args.n};
  return {args, a.transpose(), vt.transpose(), u, args.n, args.m};
}

struct SvdMemory {
  View a, q, w, sorted_w, x, sorted_x, right;
  Workspace work;
  uint64_t first_qr;
};

SvdMemory take_svd(Layout& layout, const Batch& batch, const Tall& tall) {
  SvdMemory memory{};
  memory.a = layout.take(tall.m, tall.n);
  memory.x = memory.a.transpose();  // of R
  if (tall.left.buffer != nullptr) {
    memory.q = layout.take(tall.m, tall.n);
    memory.w = layout.take(tall.n, tall.n), memory.sorted_w = layout.take(tall.n, tall.n);
  }
  if (tall.right.buffer != nullptr) {
    memory.sorted_x = layout.take(tall.n, tall.n), memory.right = layout.take(tall.n, tall.n);
  }
  memory.work = take_workspace(layout, tall.m, tall.n, tall.args.dtype);
  const uint64_t second = tall.right.buffer != nullptr ? qr_memory(batch, tall.second_qr()) : 0;
  memory.first_qr = layout.take(1, std::max(qr_memory(batch, tall.qr()), second)).first;
  return memory;
}

void record_svd_part(const Batch& part, const Tall& tall, const View& values, uint64_t first_info,
                     const SvdMemory& memory, const QrMemory& qr) {
  const Jacobi jacobi{part, true, memory.x, tall.n, memory.work};
  record_scaled(part, tall.a, memory.a, tall.m, tall.n, 0, memory.work.scaled);
  record_qr(part, tall.qr(), memory.a, memory.q, qr);
  const bool left = tall.left.buffer != nullptr;
  if (left) record_identity(part, memory.w, tall.n, tall.n);
  jacobi.run(memory.w);
  jacobi.order(values, tall.args.info, first_info);
  if (tall.right.buffer != nullptr) {
    jacobi.arrange(memory.x, memory.sorted_x, tall.n);
    record_qr(part, tall.second_qr(), memory.sorted_x, memory.right, qr);
    jacobi.arrange(memory.right, tall.right, tall.n, &memory.sorted_x);
  }
  if (left) {
    jacobi.arrange(memory.w, memory.sorted_w, tall.n);
    record_product(part, tall.left, memory.q, memory.sorted_w, tall.m, tall.n, tall.n, kPlainProduct);
  }
}

}  // namespace
}  // namespace linalg

void record_eigh(Recorder& recorder, const EighArgs& args) {
  using namespace linalg;
  require_extent(args.n, kMaxColumns, "n");
  const Batch batch = batch_of(recorder, "eigh", args.dtype, args.batch_count);
  const View a = view_of(args.a, args.n, args.batch_count), vectors = view_of(args.vectors, args.n, args.batch_count);
  if (is_empty(recorder, args, args.n)) return;
  const View values = values_of(args);
  const auto take = [&](Layout& layout, const Batch&) { return take_eigh(layout, args); };
  const PartsInScratch parts(
      batch,
      std::max(batch.span(a, args.n, args.n), vectors.buffer != nullptr ? batch.span(vectors, args.n, args.n) : 0),
      take);
  log(TUFF_LOG_DISPATCH, "eigh {} n={} batch={}: {}", dtype_name(args.dtype), args.n, args.batch_count,
      batch.kernels());
  parts.each(args.n * args.n, [&](const Batch& part, uint64_t first, const EighMemory& memory, auto&&...) {
    record_eigh_part(part, args, part_of(a, first), part_of(values, first), part_of(vectors, first), first, memory);
  });
}

void record_svd(Recorder& recorder, const SvdArgs& args) {
  using namespace linalg;
  require_extent(args.steps(), kMaxColumns, args.m < args.n ? "m" : "n");
  require_extent(std::max(args.m, args.n), kMaxExtent, args.m < args.n ? "n" : "m");
  const Batch batch = batch_of(recorder, "svd", args.dtype, args.batch_count);
  if (is_empty(recorder, args, args.steps())) return;
  const Tall tall = tall_of(args);
  const View values = values_of(args);
  require_qr(batch, tall.qr());
  const auto take = [&](Layout& layout, const Batch& part) { return take_svd(layout, part, tall); };
  const PartsInScratch parts(batch,
                             std::max({batch.span(tall.a, tall.m, tall.n),
                                       tall.left.buffer != nullptr ? batch.span(tall.left, tall.m, tall.n) : 0,
                                       tall.right.buffer != nullptr ? batch.span(tall.right, tall.n, tall.n) : 0}),
                             take);
  log(TUFF_LOG_DISPATCH, "svd {} {}x{} batch={}: {}", dtype_name(args.dtype), args.m, args.n, args.batch_count,
      batch.kernels());
  parts.each(tall.m * tall.n, [&](const Batch& part, uint64_t first, const SvdMemory& memory, const Buffer& scratch,
                                  uint64_t matrices) {
    Tall some = tall;
    some.a = part_of(tall.a, first), some.left = part_of(tall.left, first), some.right = part_of(tall.right, first);
    record_svd_part(part, some, part_of(values, first), first, memory, {&scratch, memory.first_qr, matrices});
  });
}

}  // namespace tuff
