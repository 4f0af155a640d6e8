// Planners of linear algebra. Every algorithm is recursive: it splits a triangle in two, so that nearly all arithmetic
// is in matrix products, which GEMM computes in place, and ends with blocks that one workgroup of each matrix computes.
//
//   triangular systems      | T11      |   X1 = T11^-1 B1;  B2 -= T21 X1;  X2 = T22^-1 B2
//                           | T21  T22 |
//   Cholesky                | L11      |   L11 L11^T = A11;  L21 = A21 L11^-T;  A22 -= L21 L21^T;  L22 L22^T = A22
//                           | L21  L22 |
//   LU: see linalg_lu_vulkan.cpp
//
// Upper triangles and transposes are views with rows and columns exchanged (View::transposed).
//
// TUFF_LINALG_VARIANT=gpu or cpu in the environment forces the shapes of that kind of device, for tests.
#include <algorithm>
#include <bit>

#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/linalg/linalg_plan.hpp"
#include "kernels/memory/memory.hpp"
#include "planning/forced_variant.hpp"
#include "planning/log.hpp"
#include "shaders/linalg_cholesky.hpp"
#include "shaders/linalg_determinant.hpp"
#include "shaders/linalg_large_cholesky.hpp"
#include "shaders/linalg_large_solve.hpp"
#include "shaders/linalg_solve.hpp"
#include "shaders/linalg_triangle.hpp"

namespace tuff {
namespace linalg {
namespace {

constexpr uint64_t kStrip = 512;         // columns of a symmetric product that are computed at once
constexpr uint64_t kMaxHeldBytes = 512;  // of a row, or column, in an invocation's registers
constexpr uint32_t kLoaders = 128;       // invocations that bring a triangle of more than a block to shared memory

}  // namespace

uint64_t block_extent() { return static_cast<uint64_t>(shaders::LinalgSolve::block({})); }

uint64_t held_extent(const Batch& batch) {
  const DeviceTraits& traits = batch.recorder.traits();
  uint64_t extent = block_extent();
  if (batch.device.cpu) return extent;
  for (const uint32_t larger : {64u, 128u}) {
    // T, its diagonal and the reciprocals in shared memory, and a column of X in an invocation's registers.
    const auto elements =
        static_cast<uint64_t>(shaders::LinalgLargeSolve::held_elements({.extent = larger})) + 2 * larger;
    const bool fits = elements * batch.size() <= traits.shared_bytes && larger * batch.size() <= kMaxHeldBytes;
    if (fits && larger <= max_along_x(traits)) extent = larger;
  }
  return extent;
}

uint32_t Batch::threads(uint64_t items, uint32_t most) const {
  const uint32_t whole = std::min(most, std::bit_floor(device.workgroup));
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(std::bit_ceil(std::min<uint64_t>(items, whole)), std::min(device.subgroup, whole), whole));
}

void Batch::record(const KernelRequest& kernel, Dispatch& dispatch, uint64_t groups, uint64_t elements,
                   uint64_t operations) const {
  const auto matrices = static_cast<double>(count);
  dispatch.groups_linear(groups * count, recorder.traits())
      .work(static_cast<double>(elements) * matrices * static_cast<double>(size()),
            static_cast<double>(operations) * matrices);
  recorder.dispatch(kernel, dispatch);
}

void require_extent(uint64_t extent, uint64_t most, const char* name) {
  if (extent <= most) [[likely]] {
    return;
  }
  fail(TUFF_ERROR_UNSUPPORTED, "{} is {}, at most {}", name, extent, most);
}

void require_device(const Recorder& recorder, int32_t dtype, uint64_t elements) {
  const DeviceTraits& traits = recorder.traits();
  if (dtype == TUFF_F64 && !traits.f64) {
    fail(TUFF_ERROR_UNSUPPORTED, "dtype is f64, and the device has no 64-bit arithmetic");
  }
  // Not to fail when a part has been recorded: a dispatch over 2^40 elements can take more workgroups than there are.
  constexpr uint64_t kMax = uint64_t{1} << 39;
  if (elements > kMax) {
    fail(TUFF_ERROR_UNSUPPORTED, "the matrices and what lies between them have {} elements, more than {}", elements,
         kMax);
  }
  if (!traits.addresses && elements > (traits.max_range - kDescriptorSlack) / dtype_size(dtype)) {
    fail(TUFF_ERROR_UNSUPPORTED, "the matrices have {} elements of {}, and the device binds {} bytes", elements,
         dtype_name(dtype), traits.max_range);
  }
}

Batch batch_of(Recorder& recorder, const char* name, int32_t dtype, uint64_t count) {
  return {recorder, name, dtype, count,
          stream_device(recorder.traits(), forced_variant<"TUFF_LINALG_VARIANT">(), dtype_size(dtype))};
}

uint64_t matrices_at_once(const Batch& batch, uint64_t each) {
  constexpr uint64_t kMax = uint64_t{256} << 20;
  const DeviceTraits& traits = batch.recorder.traits();
  const uint64_t bytes = traits.addresses ? kMax : std::min(kMax, traits.max_range);
  return each == 0 ? std::min<uint64_t>(batch.count, 1u << 20)
                   : std::clamp<uint64_t>(bytes / (each * batch.size()), 1, batch.count);
}

View view_of(const MatrixArgs& matrix, uint64_t rows, uint64_t count) {
  const uint64_t ld = rows > 1 ? matrix.ld : 0, stride = count > 1 ? matrix.stride : 0;
  return {matrix.buffer, 0, ld, stride};
}

uint64_t split(uint64_t extent, uint64_t block) {
  return extent > 2 * kCut ? kCut : ceil_div(ceil_div(extent, 2), block) * block;
}

void record_product(const Batch& batch, const View& c, const View& a, const View& b, uint64_t m, uint64_t n, uint64_t k,
                    const Product& product) {
  if (c.transposed) {
    // A transposed C is computed as C^T -= B^T * A^T.
    Product turned = product;
    if (turned.c_part == GemmPart::lower) turned.c_part = GemmPart::upper;
    return record_product(batch, c.transpose(), b.transpose(), a.transpose(), n, m, k, turned);
  }
  const Buffer a_block = moved(a.buffer, a.first, batch.dtype), b_block = moved(b.buffer, b.first, batch.dtype),
               c_block = moved(c.buffer, c.first, batch.dtype);
  GemmArgs args{};
  args.a_type = args.b_type = args.c_type = batch.dtype;
  args.accumulate = args.sum_type();
  args.precision = TUFF_PRECISION_DEFAULT;
  args.ta = a.transposed ? TUFF_TRANS : TUFF_NO_TRANS;
  args.tb = b.transposed ? TUFF_TRANS : TUFF_NO_TRANS;
  args.m = m, args.n = n, args.k = k;
  args.alpha = product.alpha, args.beta = product.beta;
  args.a = &a_block, args.b = &b_block, args.c = &c_block;
  args.lda = a.ld, args.ldb = b.ld, args.ldc = c.ld;
  args.stride_a = a.stride, args.stride_b = b.stride, args.stride_c = c.stride;
  args.batch_count = batch.count;
  args.c_part = product.c_part;
  record_gemm(batch.recorder, args);
}

namespace {

// A kernel for T * X = B. `Push` is its push block, of which `put` fills in what not all of these kernels have.
template <template <typename> typename Push, typename Put>
void dispatch_solve(const Batch& batch, const Triangle& t, const View& x, uint64_t columns, uint64_t groups,
                    KernelRequest kernel, const Put& put) {
  const bool wide = needs_wide(std::max(batch.span(t.view, t.n, t.n), batch.span(x, t.n, columns)));
  kernel.wide(wide);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, t.view, t.n, t.n, Access::read);
  batch.operand(dispatch, x, t.n, columns, Access::read_write);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    Push<Index> push{};
    push.t_row = static_cast<Index>(t.view.row_stride()), push.t_column = static_cast<Index>(t.view.column_stride());
    push.t_stride = static_cast<Index>(t.view.stride);
    push.x_row = static_cast<Index>(x.row_stride()), push.x_column = static_cast<Index>(x.column_stride());
    push.x_stride = static_cast<Index>(x.stride);
    push.n = static_cast<uint32_t>(t.n), push.columns = static_cast<uint32_t>(columns);
    push.groups = static_cast<uint32_t>(groups), push.matrices = static_cast<uint32_t>(batch.count);
    put(push);
    dispatch.push(push);
  });
  batch.record(kernel, dispatch, groups, 2 * t.n * columns, t.n * t.n * columns);
}

void record_solve_block(const Batch& batch, const Triangle& t, const View& x, uint64_t columns) {
  const uint32_t threads = batch.threads(columns, 128);
  KernelRequest kernel = shaders::LinalgSolve::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                        .held = !batch.device.cpu,
                                                        .ones = t.unit_diagonal,
                                                        .reverse = t.upper,
                                                        .type = batch.dtype});
  kernel.constant(0, threads);
  dispatch_solve<shaders::LinalgSolve::Push>(batch, t, x, columns, ceil_div(columns, threads), kernel, [](auto&) {});
}

// TUFF_EXTENT of the kernels for large triangles.
uint32_t extent_of_kernel(uint64_t n) { return n <= 64 ? 64 : 128; }

void record_large_solve(const Batch& batch, const Triangle& t, const View& x, uint64_t columns) {
  // A large triangle takes long, so that the columns of X are spread over all cores.
  const uint64_t share = ceil_div(columns * batch.count, batch.device.cores);
  const uint64_t across = batch.threads(std::min(columns, share), kLoaders);
  KernelRequest kernel = shaders::LinalgLargeSolve::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                             .extent = extent_of_kernel(t.n),
                                                             .ones = t.unit_diagonal,
                                                             .reverse = t.upper,
                                                             .type = batch.dtype});
  kernel.constant(0, batch.threads(kLoaders, kLoaders));
  dispatch_solve<shaders::LinalgLargeSolve::Push>(batch, t, x, columns, ceil_div(columns, across), kernel,
                                                  [&](auto& push) { push.across = static_cast<uint32_t>(across); });
}

}  // namespace

void record_solve(const Batch& batch, const Triangle& t, const View& x, uint64_t columns) {
  if (t.n == 0 || columns == 0) return;
  const uint64_t block = held_extent(batch);
  if (t.n <= block_extent()) return record_solve_block(batch, t, x, columns);
  if (t.n <= block) return record_large_solve(batch, t, x, columns);
  const uint64_t part = split(t.n, block), rest = t.n - part;
  // An upper triangle is solved from its end.
  const uint64_t first = t.upper ? rest : 0, second = t.upper ? 0 : part;
  record_solve(batch, {t.view.at(first, first), part, t.upper, t.unit_diagonal}, x.at(first, 0), columns);
  record_product(batch, x.at(second, 0), t.view.at(second, first), x.at(first, 0), rest, columns, part);
  record_solve(batch, {t.view.at(second, second), rest, t.upper, t.unit_diagonal}, x.at(second, 0), columns);
}

namespace {

struct Cholesky {
  const Batch& batch;
  View a;              // as a lower triangle
  const Buffer* info;  // of the first matrix of the part
  uint64_t first_info;

  void record(uint64_t first, uint64_t n) const;
  void record_block(uint64_t first, uint64_t n) const;
  void record_large_block(uint64_t first, uint64_t n) const;
  template <typename Shader>
  void dispatch_block(const KernelRequest& kernel, uint64_t first, uint64_t n, bool wide) const;
  void record_update(uint64_t second, uint64_t rest, uint64_t first, uint64_t left) const;
};

void Cholesky::record_block(uint64_t first, uint64_t n) const {
  if (n > block_extent()) return record_large_block(first, n);
  const View block = a.at(first, first);
  const bool held = !batch.device.cpu;
  const auto threads = held ? static_cast<uint32_t>(block_extent()) : batch.threads(ceil_div(n * n, 4), kMaxThreads);
  const bool wide = needs_wide(batch.span(block, n, n));
  KernelRequest kernel = shaders::LinalgCholesky::request(
      {.exact_arithmetic = batch.recorder.traits().cpu, .held = held, .info = info != nullptr, .type = batch.dtype});
  kernel.constant(0, threads).wide(wide);
  dispatch_block<shaders::LinalgCholesky>(kernel, first, n, wide);
}

void Cholesky::record_large_block(uint64_t first, uint64_t n) const {
  const bool wide = needs_wide(batch.span(a.at(first, first), n, n));
  KernelRequest kernel = shaders::LinalgLargeCholesky::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                                .extent = extent_of_kernel(n),
                                                                .info = info != nullptr,
                                                                .type = batch.dtype});
  kernel.wide(wide);
  dispatch_block<shaders::LinalgLargeCholesky>(kernel, first, n, wide);
}

template <typename Shader>
void Cholesky::dispatch_block(const KernelRequest& kernel, uint64_t first, uint64_t n, bool wide) const {
  const View block = a.at(first, first);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, block, n, n, Access::read_write);
  dispatch.operand(info, first_info * sizeof(int32_t), batch.count * sizeof(int32_t),
                   first == 0 ? Access::write : Access::read_write);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(typename Shader::template Push<Index>{.row_stride = static_cast<Index>(block.row_stride()),
                                                        .column_stride = static_cast<Index>(block.column_stride()),
                                                        .stride = static_cast<Index>(block.stride),
                                                        .n = static_cast<uint32_t>(n),
                                                        .first = static_cast<uint32_t>(first),
                                                        .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, dispatch, 1, 2 * n * n, ceil_div(n * n * n, 3));
}

// A22 -= L21 L21^T, with `left` columns of L21, of which the lower triangle is needed.
void Cholesky::record_update(uint64_t second, uint64_t rest, uint64_t first, uint64_t left) const {
  const uint64_t strip = batch.device.cpu ? kStrip : rest;
  // Strips of columns, each from its diagonal down. On GPUs one product leaves out tiles above the diagonal.
  for (uint64_t column = 0; column < rest; column += strip) {
    const View rows = a.at(second + column, first);
    record_product(batch, a.at(second + column, second + column), rows, rows.transpose(), rest - column,
                   std::min(strip, rest - column), left, {.c_part = GemmPart::lower});
  }
}

void Cholesky::record(uint64_t first, uint64_t n) const {
  const uint64_t block = held_extent(batch);
  if (n <= block) return record_block(first, n);
  const uint64_t left = split(n, block), rest = n - left;
  record(first, left);
  // X L11^T = A21, transposed: L11 X^T = A21^T.
  const View below = a.at(first + left, first);
  record_solve(batch, {a.at(first, first), left, false, false}, below.transpose(), rest);
  record_update(first + left, rest, first, left);
  record(first + left, rest);
}

// Sets what is above the diagonal to zero, or everything to the identity.
void record_triangle(const Batch& batch, const View& a, uint64_t rows, uint64_t columns, bool identity) {
  const auto tile = static_cast<uint64_t>(shaders::LinalgTriangle::tile({}));
  const uint64_t across = ceil_div(columns, tile), down = ceil_div(rows, tile);
  const bool wide = needs_wide(batch.span(a, rows, columns));
  KernelRequest kernel = shaders::LinalgTriangle::request({.identity = identity, .type = batch.dtype});
  kernel.streaming().constant(0, batch.threads(kMaxThreads, kMaxThreads)).wide(wide);
  Dispatch dispatch(batch.name);
  batch.operand(dispatch, a, rows, columns, Access::write);
  with_index(wide, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgTriangle::Push<Index>{.row_stride = static_cast<Index>(a.row_stride()),
                                                       .column_stride = static_cast<Index>(a.column_stride()),
                                                       .stride = static_cast<Index>(a.stride),
                                                       .rows = static_cast<uint32_t>(rows),
                                                       .columns = static_cast<uint32_t>(columns),
                                                       .tiles = static_cast<uint32_t>(across),
                                                       .tiles_down = static_cast<uint32_t>(down),
                                                       .matrices = static_cast<uint32_t>(batch.count)});
  });
  const uint64_t elements = rows * columns / (identity ? 1 : 2);
  batch.record(kernel, dispatch, across * down, elements, elements);
}

}  // namespace

void record_identity(const Batch& batch, const View& a, uint64_t rows, uint64_t columns) {
  record_triangle(batch, a, rows, columns, true);
}

void record_no_failures(Recorder& recorder, const Buffer* info, uint64_t count) {
  if (info != nullptr) record_fill(recorder, *info, 0, count * sizeof(int32_t), {});
}

}  // namespace linalg

void record_cholesky(Recorder& recorder, const CholeskyArgs& args) {
  using namespace linalg;
  require_extent(args.n, kMaxTriangle, "n");
  const Batch batch = batch_of(recorder, "cholesky", args.dtype, args.batch_count);
  View a = view_of(args.a, args.n, args.batch_count);
  const bool empty = args.n == 0 || args.batch_count == 0;
  require_device(recorder, args.dtype, empty ? 0 : batch.span(a, args.n, args.n));
  if (args.batch_count == 0) return;
  if (args.n == 0) return record_no_failures(recorder, args.info, args.batch_count);
  log(TUFF_LOG_DISPATCH, "cholesky {} n={} batch={}: {}", dtype_name(args.dtype), args.n, args.batch_count,
      batch.kernels());
  const uint64_t tiles = ceil_div(args.n, block_extent());
  a.transposed = args.triangle == TUFF_TRIANGLE_UPPER;
  for_each_part(batch, tiles * tiles, [&](const Batch& part, uint64_t first) {
    const View matrices = part_of(a, first);
    Cholesky{part, matrices, args.info, first}.record(0, args.n);
    if (args.n > held_extent(part)) record_triangle(part, matrices, args.n, args.n, false);
  });
}

void record_triangular_solve(Recorder& recorder, const TriangularSolveArgs& args) {
  using namespace linalg;
  const bool right = args.side == TUFF_SIDE_RIGHT, transposed = args.transpose != TUFF_NO_TRANS;
  const uint64_t n = args.extent(), columns = right ? args.m : args.n;
  require_extent(n, kMaxTriangle, right ? "n" : "m");
  require_extent(columns, kMaxExtent, right ? "m" : "n");
  const Batch batch = batch_of(recorder, "triangular_solve", args.dtype, args.batch_count);
  const bool empty = n == 0 || columns == 0 || args.batch_count == 0;
  View a = view_of(args.a, n, args.batch_count), b = view_of(args.b, args.m, args.batch_count);
  // X op(A) = B is op(A)^T X^T = B^T.
  a.transposed = transposed != right, b.transposed = right;
  const bool upper = (args.triangle == TUFF_TRIANGLE_UPPER) != a.transposed;
  require_device(recorder, args.dtype, empty ? 0 : std::max(batch.span(a, n, n), batch.span(b, n, columns)));
  if (empty) return;
  log(TUFF_LOG_DISPATCH, "triangular_solve {} n={} columns={} batch={}: {}", dtype_name(args.dtype), n, columns,
      args.batch_count, batch.kernels());
  for_each_part(batch, columns, [&](const Batch& part, uint64_t first) {
    record_solve(part, {part_of(a, first), n, upper, args.unit_diagonal}, part_of(b, first), columns);
  });
}

void record_lu_determinant(Recorder& recorder, const LuDeterminantArgs& args) {
  using namespace linalg;
  require_extent(args.n, kMaxTriangle, "n");
  const Batch batch = batch_of(recorder, "lu_determinant", args.dtype, args.batch_count);
  const bool wanted = args.determinant != nullptr || args.sign != nullptr || args.log_magnitude != nullptr;
  const View a = view_of(args.a, args.n, args.batch_count);
  const uint64_t span = args.n == 0 || args.batch_count == 0 ? 0 : batch.span(a, args.n, args.n);
  require_device(recorder, args.dtype, span);
  if (args.batch_count == 0 || !wanted) return;
  log(TUFF_LOG_DISPATCH, "lu_determinant {} n={} batch={}: {}", dtype_name(args.dtype), args.n, args.batch_count,
      batch.kernels());
  // On CPU devices the loop over the diagonal is bounded (kernels/common/loop_limit.hpp).
  const uint32_t most = batch.most_threads();
  uint32_t threads = batch.threads(args.n, most);
  while (args.n / threads > kMaxLoopIterationsCpu / 8 && threads < most) threads *= 2;
  const uint64_t stride_pivots = args.batch_count > 1 ? args.stride_pivots : 0;
  for_each_part(batch, 1, [&](const Batch& part, uint64_t first) {
    const uint64_t a_elements = args.n == 0 ? 0 : part.span(a, args.n, args.n),
                   pivots = args.n == 0 ? 0 : (part.count - 1) * stride_pivots + args.n;
    const bool wide = needs_wide(std::max(a_elements, pivots));
    KernelRequest kernel = shaders::LinalgDeterminant::request({.determinant = args.determinant != nullptr,
                                                                .exact_arithmetic = recorder.traits().cpu,
                                                                .log = args.log_magnitude != nullptr,
                                                                .sign = args.sign != nullptr,
                                                                .threads = threads,
                                                                .type = args.dtype});
    kernel.wide(wide);
    Dispatch dispatch("lu_determinant");
    dispatch.operand(a_elements != 0 ? a.buffer : nullptr, first * a.stride * part.size(), a_elements * part.size(),
                     Access::read);
    dispatch.operand(pivots != 0 ? args.pivots : nullptr, first * stride_pivots * sizeof(int32_t),
                     pivots * sizeof(int32_t), Access::read);
    for (const Buffer* numbers : {args.determinant, args.sign, args.log_magnitude}) {
      dispatch.operand(numbers, first * part.size(), part.count * part.size(), Access::write);
    }
    with_index(wide, [&](auto index) {
      using Index = decltype(index);
      dispatch.push(shaders::LinalgDeterminant::Push<Index>{.diagonal_stride = static_cast<Index>(a.ld + 1),
                                                            .stride = static_cast<Index>(a.stride),
                                                            .stride_pivots = static_cast<Index>(stride_pivots),
                                                            .n = static_cast<uint32_t>(args.n),
                                                            .matrices = static_cast<uint32_t>(part.count)});
    });
    part.record(kernel, dispatch, 1, args.n, args.n);
  });
}

}  // namespace tuff
