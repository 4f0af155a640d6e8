// Linear algebra: workgroups for all matrices, and where those of eigenvalues are.
#include "planners/reached.hpp"
#include "shaders/linalg_arrange.hpp"
#include "shaders/linalg_cholesky.hpp"
#include "shaders/linalg_determinant.hpp"
#include "shaders/linalg_francis.hpp"
#include "shaders/linalg_hessenberg.hpp"
#include "shaders/linalg_jacobi.hpp"
#include "shaders/linalg_large_cholesky.hpp"
#include "shaders/linalg_large_solve.hpp"
#include "shaders/linalg_load.hpp"
#include "shaders/linalg_lu.hpp"
#include "shaders/linalg_order.hpp"
#include "shaders/linalg_panel.hpp"
#include "shaders/linalg_qr.hpp"
#include "shaders/linalg_reflector.hpp"
#include "shaders/linalg_rotate.hpp"
#include "shaders/linalg_schur_values.hpp"
#include "shaders/linalg_schur_vectors.hpp"
#include "shaders/linalg_solve.hpp"
#include "shaders/linalg_swap.hpp"
#include "shaders/linalg_triangle.hpp"
#include "shaders/linalg_unit_vectors.hpp"

namespace tuff_test::reach {
namespace {

// The workgroups of a matrix that the push block says.
template <typename Push>
uint64_t groups_of_matrix(const Push& push) {
  if constexpr (requires { push.panel_groups; }) {
    return uint64_t{push.groups} + push.panel_groups;
  } else if constexpr (requires {
                         push.parts;
                         push.groups;
                       }) {
    return uint64_t{push.groups} * (push.parts / 2);
  } else if constexpr (requires { push.groups; }) {
    return push.groups;
  } else if constexpr (requires { push.parts; }) {
    return push.parts / 2;
  } else if constexpr (requires { push.tiles_down; }) {
    return uint64_t{push.tiles} * push.tiles_down;
  } else if constexpr (requires { push.down; }) {
    return uint64_t{push.across} * push.down;
  } else {
    return 1;
  }
}

template <template <typename> typename Push>
void has_matrices(Reached& x) {
  with_push<Push>(x, [&](const auto& push) {
    const uint64_t groups = groups_of_matrix(push);
    x.holds(groups != 0 && push.matrices != 0, "each matrix has workgroups");
    x.covers(groups * push.matrices, 1);
  });
}
// One of two stages that take rows or columns in turn.
void loads_scaled(Reached& x) {
  with_push<tuff::shaders::linalg_load_push::Push>(x, [&](const auto& push) {
    const bool by_row = x.define("TUFF_STAGE") % 2 == 0;
    x.covers(push.matrices * uint64_t{by_row ? push.rows : 1}, 1);
  });
}

void to_hessenberg(Reached& x) {
  with_push<tuff::shaders::linalg_hessenberg_push::Push>(x, [&](const auto& push) {
    const uint64_t n = push.n, all = push.matrices * size_of(x.define("TUFF_TYPE"));
    const int64_t stage = x.define("TUFF_STAGE");
    x.holds(push.matrices == 1 || push.stride == n * n, "matrices follow one another");
    x.covers(uint64_t{push.groups} * push.matrices, 1);
    const uint64_t columns = n - push.step - 1 + (x.define("TUFF_VECTORS") != 0 ? n : 0);
    const uint64_t items = stage == 0 ? 1 : stage == 1 ? columns : stage == 2 ? n : n - 2;
    x.holds(push.groups * (stage == 1 ? x.invocations() : 1) >= items, "workgroups have all columns or rows");
    x.operand(0, n * n * all);
    x.operand(1, n * n * all);
    x.operand(2, n * all);
    x.operand(3, 2 * n * all);
  });
}
void to_schur(Reached& x) {
  with_push<tuff::shaders::linalg_francis_push::Push>(x, [&](const auto& push) {
    const uint64_t n = push.n, all = push.matrices * size_of(x.define("TUFF_TYPE"));
    x.holds(push.matrices == 1 || push.stride == n * n, "matrices follow one another");
    x.holds(push.steps != 0, "a dispatch has iterations");
    x.covers(push.matrices, 1);
    x.operand(0, n * n * all);
    x.operand(1, n * n * all);
    x.operand(2, push.matrices * static_cast<uint64_t>(tuff::shaders::LinalgFrancis::state_words({})) * 4);
    x.operand(3, all);
  });
}
void finds_values(Reached& x) {
  with_push<tuff::shaders::linalg_schur_values_push::Push>(x, [&](const auto& push) {
    const uint64_t n = push.n, size = size_of(x.define("TUFF_TYPE")), matrices = push.matrices;
    x.holds(matrices == 1 || push.stride == n * n, "matrices follow one another");
    x.covers(matrices * push.groups, 1);
    x.holds(push.groups * x.invocations() >= n, "a value has an invocation");
    x.operand(0, n * n * matrices * size);
    x.operand(1, 2 * n * matrices * size);
    x.operand(2, matrices * static_cast<uint64_t>(tuff::shaders::LinalgSchurValues::state_words({})) * 4);
    x.operand(3, span({{matrices, push.values_stride * 2 * size}}, 2 * n * size));
    x.operand(4, matrices * 4);
    x.holds((x.define("TUFF_INFO") != 0) == (x.dispatch.operands()[4].buffer != nullptr), "info is asked for");
  });
}
void finds_vectors(Reached& x) {
  with_push<tuff::shaders::linalg_schur_vectors_push::Push>(x, [&](const auto& push) {
    const uint64_t n = push.n, all = push.matrices * size_of(x.define("TUFF_TYPE"));
    x.holds(push.matrices == 1 || push.stride == n * n, "matrices follow one another");
    x.covers(n * push.matrices, 1);
    x.operand(0, n * n * all);
    x.operand(1, 2 * n * all);
    x.operand(2, 2 * n * n * all);
    x.operand(3, all);
  });
}
void makes_unit_vectors(Reached& x) {
  with_push<tuff::shaders::linalg_unit_vectors_push::Push>(x, [&](const auto& push) {
    const uint64_t n = push.n, size = size_of(x.define("TUFF_TYPE")), matrices = push.matrices;
    x.holds(matrices == 1 || push.stride == 2 * n * n, "matrices follow one another");
    x.covers(n * matrices, 1);
    x.operand(0, 2 * n * n * matrices * size);
    x.operand(1, 2 * n * matrices * size);
    x.operand(2, matrices * static_cast<uint64_t>(tuff::shaders::LinalgUnitVectors::state_words({})) * 4);
    x.operand(3, span({{matrices, push.y_stride * 2 * size}, {n, push.y_row * 2 * size}}, 2 * n * size));
  });
}

constexpr Kernel kLinalgKernels[] = {
    {"linalg_arrange", has_matrices<tuff::shaders::linalg_arrange_push::Push>},
    {"linalg_cholesky", has_matrices<tuff::shaders::linalg_cholesky_push::Push>},
    {"linalg_determinant", has_matrices<tuff::shaders::linalg_determinant_push::Push>},
    {"linalg_francis", to_schur},
    {"linalg_hessenberg", to_hessenberg},
    {"linalg_jacobi", has_matrices<tuff::shaders::linalg_jacobi_push::Push>},
    {"linalg_large_cholesky", has_matrices<tuff::shaders::linalg_large_cholesky_push::Push>},
    {"linalg_large_solve", has_matrices<tuff::shaders::linalg_large_solve_push::Push>},
    {"linalg_load", loads_scaled},
    {"linalg_lu", has_matrices<tuff::shaders::linalg_lu_push::Push>},
    {"linalg_order", has_matrices<tuff::shaders::linalg_order_push::Push>},
    {"linalg_panel", has_matrices<tuff::shaders::linalg_panel_push::Push>},
    {"linalg_qr", has_matrices<tuff::shaders::linalg_qr_push::Push>},
    {"linalg_reflector", has_matrices<tuff::shaders::linalg_reflector_push::Push>},
    {"linalg_rotate", has_matrices<tuff::shaders::linalg_rotate_push::Push>},
    {"linalg_schur_values", finds_values},
    {"linalg_schur_vectors", finds_vectors},
    {"linalg_solve", has_matrices<tuff::shaders::linalg_solve_push::Push>},
    {"linalg_swap", has_matrices<tuff::shaders::linalg_swap_push::Push>},
    {"linalg_triangle", has_matrices<tuff::shaders::linalg_triangle_push::Push>},
    {"linalg_unit_vectors", makes_unit_vectors},
};

}  // namespace

std::span<const Kernel> linalg_kernels() { return kLinalgKernels; }

}  // namespace tuff_test::reach
