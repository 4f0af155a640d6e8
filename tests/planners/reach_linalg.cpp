// Eigenvalues: `matrices` matrices in scratch memory, one after another.
#include "planners/reached.hpp"
#include "shaders/linalg_francis.hpp"
#include "shaders/linalg_hessenberg.hpp"
#include "shaders/linalg_schur_values.hpp"
#include "shaders/linalg_schur_vectors.hpp"
#include "shaders/linalg_unit_vectors.hpp"

namespace tuff_test::reach {

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

}  // namespace tuff_test::reach
