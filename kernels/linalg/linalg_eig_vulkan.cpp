// Planner of the eigenvalues of general matrices:
//
//   H = A, scaled             linalg_load.comp
//   H = Q^T A Q               linalg_hessenberg.comp: one dispatch for matrices that a workgroup can have alone,
//                             otherwise two for each column
//   T = Q^T A Q               linalg_francis.comp, a workgroup for each matrix: the real Schur form. How many
//                             iterations that takes depends on the matrix; as many dispatches are recorded as the
//                             most of them need, and those after the last value has been found end at once
//   values                    linalg_schur_values.comp: of T's diagonal blocks
//   X^T                       linalg_schur_vectors.comp: T's eigenvectors as rows, real and imaginary parts
//   V^T = X^T Q^T             GEMM
//   V                         linalg_unit_vectors.comp: of length 1
#include <algorithm>

#include "kernels/common/check.hpp"
#include "kernels/common/loop_limit.hpp"
#include "kernels/linalg/linalg_spectrum.hpp"
#include "planning/log.hpp"
#include "shaders/linalg_francis.hpp"
#include "shaders/linalg_hessenberg.hpp"
#include "shaders/linalg_schur_values.hpp"
#include "shaders/linalg_schur_vectors.hpp"
#include "shaders/linalg_unit_vectors.hpp"

namespace tuff {
namespace linalg {
namespace {

constexpr uint64_t kMaxOrder = 1u << 11;
constexpr uint64_t kMaxFused = 64;          // of matrices that one workgroup reduces to Hessenberg form
constexpr uint32_t kStepsOnGpu = 1u << 15;  // of a dispatch, which ends long before a driver's limit of seconds

struct EigMemory {
  View h, q, roots, x, v, reflection, factors;
  ScaledMemory scaled;
};

// Whether one workgroup reduces a matrix to Hessenberg form.
bool is_fused(uint64_t n) { return n <= kMaxFused; }

EigMemory take_eig(Layout& layout, const EigArgs& args) {
  const uint64_t n = args.n;
  EigMemory memory{};
  memory.h = layout.take(n, n);
  memory.roots = layout.take(1, 2 * n);
  if (!is_fused(n)) memory.reflection = layout.take(1, n), memory.factors = layout.take(1, 2 * n);
  if (args.vectors.buffer != nullptr) {
    memory.q = layout.take(n, n), memory.x = layout.take(2 * n, n), memory.v = layout.take(2 * n, n);
  }
  memory.scaled = take_scaled(layout, n);
  return memory;
}

struct Eig {
  const Batch& batch;
  uint64_t n;
  EigMemory memory;

  bool vectors() const { return memory.q.buffer != nullptr; }
  bool wide() const { return needs_wide(batch.count * 2 * n * n); }
  uint32_t held(uint32_t lanes) const;
  void optional(Dispatch& dispatch, bool wanted, const View& view, uint64_t each, Access access) const {
    wanted ? number_operand(batch, dispatch, view, each, access)
           : static_cast<void>(dispatch.operand(nullptr, 0, 0, access));
  }
  void state(Dispatch& dispatch, Access access) const {
    integer_operand(batch, dispatch, memory.scaled.state, state_words(), access);
  }

  void reduce(int stage, uint64_t step, uint32_t lanes, uint64_t groups) const;
  void to_hessenberg() const;
  void to_schur() const;
  void find_values(const View& values, const Buffer* info, uint64_t first_info) const;
  void find_vectors(const View& vectors) const;
};

// TUFF_HELD of a workgroup that has all of a matrix.
uint32_t Eig::held(uint32_t lanes) const {
  if (batch.device.cpu) return 0;
  for (const uint32_t extent : {32u, 64u}) {
    const uint64_t elements = uint64_t{extent} * (extent + 1) + lanes;
    if (n <= extent && elements * batch.size() <= batch.recorder.traits().shared_bytes) return extent;
  }
  return 0;
}

void Eig::reduce(int stage, uint64_t step, uint32_t lanes, uint64_t groups) const {
  KernelRequest kernel = shaders::LinalgHessenberg::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                             .held = stage == 0 ? held(lanes) : 0,
                                                             .lanes = lanes,
                                                             .shared = batch.shares(lanes),
                                                             .stage = stage,
                                                             .type = batch.dtype,
                                                             .vectors = stage < 2 && vectors()});
  kernel.constant(0, lanes).wide(wide());
  Dispatch dispatch(batch.name);
  number_operand(batch, dispatch, memory.h, n * n, Access::read_write);
  optional(dispatch, stage < 2 && vectors(), memory.q, n * n, Access::read_write);
  optional(dispatch, stage == 1 || stage == 2, memory.reflection, n, stage == 1 ? Access::write : Access::read);
  optional(dispatch, stage != 0, memory.factors, 2 * n, stage == 1 ? Access::write : Access::read);
  with_index(wide(), [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgHessenberg::Push<Index>{.stride = static_cast<Index>(memory.h.stride),
                                                         .n = static_cast<uint32_t>(n),
                                                         .step = static_cast<uint32_t>(step),
                                                         .groups = static_cast<uint32_t>(groups),
                                                         .matrices = static_cast<uint32_t>(batch.count)});
  });
  const uint64_t rest = n - step, each = stage == 3 ? n * n : 2 * rest * n;
  batch.record(kernel, dispatch, groups, stage == 0 ? 2 * n * n : each, stage == 0 ? 5 * n * n * n : 2 * each);
}

void Eig::to_hessenberg() const {
  if (vectors()) record_identity(batch, memory.q, n, n);
  if (n < 3) return;
  if (is_fused(n)) {
    // Each invocation has a loop over the elements of its columns and rows in each step: 3 n^3 / lanes in all.
    uint32_t lanes = batch.device.cpu ? batch.threads(1, batch.most_threads())
                                      : batch.threads(vectors() ? 2 * n : n, batch.most_threads());
    while (3 * n * n * (n / lanes + 1) > kMaxLoopIterationsCpu && lanes < batch.most_threads()) lanes *= 2;
    return reduce(0, 0, lanes, 1);
  }
  for (uint64_t step = 0; step + 2 < n; ++step) {
    const uint64_t rest = n - step - 1, columns = rest + (vectors() ? n : 0);
    const uint32_t own = batch.threads(batch.device.cpu ? 1 : 64, 64);
    reduce(1, step, own, ceil_div(columns, own));
    reduce(2, step, batch.threads(batch.device.cpu ? rest / 16 : rest, kMaxThreads), n);
  }
  reduce(3, 0, batch.threads(n / 16, kMaxThreads), n - 2);
}

// The loop iterations of one iteration of linalg_francis.comp, at most: five loops over rows or columns, and two trees.
uint64_t iterations_of_step(uint64_t n, uint32_t lanes) { return 5 * (n / lanes + 2) + 2 * 12 + 4; }

void Eig::to_schur() const {
  uint32_t lanes = batch.device.cpu ? batch.threads(n / 16, kMaxThreads) : batch.threads(n, kMaxThreads);
  uint64_t steps = kStepsOnGpu;
  if (batch.recorder.traits().cpu) steps = kMaxLoopIterationsCpu / iterations_of_step(n, lanes);
  // 30 sweeps for each value, of half of the rows on average; small matrices get more.
  const uint64_t most = 15 * n * n + 300;
  const bool whole = vectors();
  KernelRequest kernel = shaders::LinalgFrancis::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                          .held = held(lanes),
                                                          .lanes = lanes,
                                                          .shared = batch.shares(lanes),
                                                          .type = batch.dtype,
                                                          .vectors = whole});
  kernel.constant(0, lanes).wide(wide());
  for (uint64_t done = 0; done < most; done += steps) {
    Dispatch dispatch(batch.name);
    number_operand(batch, dispatch, memory.h, n * n, Access::read_write);
    optional(dispatch, whole, memory.q, n * n, Access::read_write);
    state(dispatch, Access::read_write);
    number_operand(batch, dispatch, memory.scaled.norm, 1, Access::read);
    with_index(wide(), [&](auto index) {
      using Index = decltype(index);
      dispatch.push(shaders::LinalgFrancis::Push<Index>{.stride = static_cast<Index>(memory.h.stride),
                                                        .n = static_cast<uint32_t>(n),
                                                        .steps = static_cast<uint32_t>(steps),
                                                        .matrices = static_cast<uint32_t>(batch.count)});
    });
    const uint64_t sweeps = std::min(steps, 2 * n * n);
    batch.record(kernel, dispatch, 1, 2 * n * n, sweeps * 10 * n * (whole ? 3 : 1));
  }
}

void Eig::find_values(const View& values, const Buffer* info, uint64_t first_info) const {
  const uint32_t threads = batch.threads(n, kMaxThreads);
  const uint64_t groups = ceil_div(n, threads), span = (batch.count - 1) * values.stride + n;
  const bool far = wide() || needs_wide(2 * span);
  KernelRequest kernel = shaders::LinalgSchurValues::request(
      {.exact_arithmetic = batch.recorder.traits().cpu, .info = info != nullptr, .type = batch.dtype});
  kernel.constant(0, threads).wide(far);
  Dispatch dispatch(batch.name);
  number_operand(batch, dispatch, memory.h, n * n, Access::read);
  number_operand(batch, dispatch, memory.roots, 2 * n, Access::write);
  state(dispatch, Access::read);
  dispatch.operand(values.buffer, 2 * values.first * batch.size(), 2 * span * batch.size(), Access::write);
  dispatch.operand(info, first_info * sizeof(int32_t), info != nullptr ? batch.count * sizeof(int32_t) : 0,
                   Access::write);
  with_index(far, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgSchurValues::Push<Index>{.stride = static_cast<Index>(memory.h.stride),
                                                          .values_stride = static_cast<Index>(values.stride),
                                                          .n = static_cast<uint32_t>(n),
                                                          .groups = static_cast<uint32_t>(groups),
                                                          .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, dispatch, groups, 6 * n, 20 * n);
}

void Eig::find_vectors(const View& vectors) const {
  uint32_t threads = batch.device.cpu ? batch.threads(1, kMaxThreads) : batch.threads(n, kMaxThreads);
  while (n * (2 * (n / threads + 2) + 2) > kMaxLoopIterationsCpu && threads < batch.most_threads()) threads *= 2;
  KernelRequest kernel =
      shaders::LinalgSchurVectors::request({.exact_arithmetic = batch.recorder.traits().cpu, .type = batch.dtype});
  kernel.constant(0, threads).wide(wide());
  Dispatch solve(batch.name);
  number_operand(batch, solve, memory.h, n * n, Access::read);
  number_operand(batch, solve, memory.roots, 2 * n, Access::read);
  number_operand(batch, solve, memory.x, 2 * n * n, Access::write);
  number_operand(batch, solve, memory.scaled.norm, 1, Access::read);
  with_index(wide(), [&](auto index) {
    using Index = decltype(index);
    solve.push(shaders::LinalgSchurVectors::Push<Index>{.stride = static_cast<Index>(memory.h.stride),
                                                        .n = static_cast<uint32_t>(n),
                                                        .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(kernel, solve, n, 3 * n * n, 2 * n * n * n);
  record_product(batch, memory.v, memory.x, memory.q, 2 * n, n, n, kPlainProduct);

  const uint32_t lanes = lanes_for(batch, n);
  const uint64_t span = batch.span(vectors, n, n);
  const bool far = wide() || needs_wide(2 * span);
  KernelRequest last = shaders::LinalgUnitVectors::request({.exact_arithmetic = batch.recorder.traits().cpu,
                                                            .lanes = lanes,
                                                            .shared = batch.shares(lanes),
                                                            .type = batch.dtype});
  last.constant(0, lanes).wide(far);
  Dispatch dispatch(batch.name);
  number_operand(batch, dispatch, memory.v, 2 * n * n, Access::read);
  number_operand(batch, dispatch, memory.roots, 2 * n, Access::read);
  state(dispatch, Access::read);
  dispatch.operand(vectors.buffer, 2 * vectors.first * batch.size(), 2 * span * batch.size(), Access::write);
  with_index(far, [&](auto index) {
    using Index = decltype(index);
    dispatch.push(shaders::LinalgUnitVectors::Push<Index>{.stride = static_cast<Index>(memory.v.stride),
                                                          .y_row = static_cast<Index>(vectors.row_stride()),
                                                          .y_stride = static_cast<Index>(vectors.stride),
                                                          .n = static_cast<uint32_t>(n),
                                                          .matrices = static_cast<uint32_t>(batch.count)});
  });
  batch.record(last, dispatch, n, 4 * n * n, 8 * n * n);
}

}  // namespace
}  // namespace linalg

void record_eig(Recorder& recorder, const EigArgs& args) {
  using namespace linalg;
  require_extent(args.n, kMaxOrder, "n");
  const Batch batch = batch_of(recorder, "eig", args.dtype, args.batch_count);
  const View a = view_of(args.a, args.n, args.batch_count), vectors = view_of(args.vectors, args.n, args.batch_count);
  if (is_empty(recorder, args, args.n)) return;
  const View values = values_of(args);
  const auto take = [&](Layout& layout, const Batch&) { return take_eig(layout, args); };
  const PartsInScratch parts(batch,
                             std::max({batch.span(a, args.n, args.n), 2 * batch.span(values, 1, args.n),
                                       vectors.buffer != nullptr ? 2 * batch.span(vectors, args.n, args.n) : 0}),
                             take);
  log(TUFF_LOG_DISPATCH, "eig {} n={} batch={}: {}", dtype_name(args.dtype), args.n, args.batch_count, batch.kernels());
  parts.each(args.n * args.n, [&](const Batch& part, uint64_t first, const EigMemory& memory, auto&&...) {
    const Eig eig{part, args.n, memory};
    record_scaled(part, part_of(a, first), eig.memory.h, args.n, args.n, 0, eig.memory.scaled);
    eig.to_hessenberg();
    eig.to_schur();
    eig.find_values(part_of(values, first), args.info, first);
    if (vectors.buffer != nullptr) eig.find_vectors(part_of(vectors, first));
  });
}

}  // namespace tuff
