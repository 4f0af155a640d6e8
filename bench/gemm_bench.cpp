// gemm and batched_gemm, with OpenBLAS on the same operands as the peer.
#include <fmt/format.h>

#include <memory>
#include <stdexcept>

#ifdef TUFF_BENCH_OPENBLAS
#include <cblas.h>
#endif

#include "bench/harness.hpp"

namespace bench {
namespace {

constexpr bool is(tuff::Transpose transpose) { return transpose != tuff::Transpose::no; }

struct Gemm {
  tuff::Transpose ta, tb;
  uint64_t m, n, k, batch;

  uint64_t lda() const { return is(ta) ? m : k; }
  uint64_t ldb() const { return is(tb) ? k : n; }
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k * batch);
  }
  std::string name() const {
    const std::string shape = fmt::format("{}x{}x{}/{}{}", m, n, k, is(ta) ? 'T' : 'N', is(tb) ? 'T' : 'N');
    return batch == 1 ? "gemm/" + shape : fmt::format("batched_gemm/{}/{}", batch, shape);
  }
};

Repeat tuff_gemm_call(const tuff::Context& context, const Gemm& g) {
  auto a = random_buffer(context, g.m * g.k * g.batch);
  auto b = random_buffer(context, g.k * g.n * g.batch);
  auto c = random_buffer(context, g.m * g.n * g.batch);
  return [=, &context] {
    if (g.batch == 1) {
      context.gemm(DType::f32, g.ta, g.tb, g.m, g.n, g.k, 1, *a, g.lda(), *b, g.ldb(), 0, *c, g.n);
    } else {
      context.batched_gemm(DType::f32, g.ta, g.tb, g.m, g.n, g.k, 1, *a, g.lda(), g.m * g.k, *b, g.ldb(), g.k * g.n, 0,
                           *c, g.n, g.m * g.n, g.batch);
    }
  };
}

tuff::Transpose transpose(const std::string& word) {
  if (word != "N" && word != "T") throw std::runtime_error("gemm.txt: \"" + word + "\" is not N or T");
  return word == "T" ? tuff::Transpose::yes : tuff::Transpose::no;
}

#ifdef TUFF_BENCH_OPENBLAS
Repeat openblas_call(const Gemm& g) {
  auto a = std::make_shared<std::vector<float>>(random_values(g.m * g.k * g.batch));
  auto b = std::make_shared<std::vector<float>>(random_values(g.k * g.n * g.batch));
  auto c = std::make_shared<std::vector<float>>(g.m * g.n * g.batch);
  return [=] {
    for (uint64_t i = 0; i < g.batch; ++i) {
      cblas_sgemm(CblasRowMajor, is(g.ta) ? CblasTrans : CblasNoTrans, is(g.tb) ? CblasTrans : CblasNoTrans,
                  static_cast<blasint>(g.m), static_cast<blasint>(g.n), static_cast<blasint>(g.k), 1.0f,
                  a->data() + i * g.m * g.k, static_cast<blasint>(g.lda()), b->data() + i * g.k * g.n,
                  static_cast<blasint>(g.ldb()), 0.0f, c->data() + i * g.m * g.n, static_cast<blasint>(g.n));
    }
  };
}
#endif

}  // namespace

void add_gemm() {
  for (const auto& row : read_table("gemm")) {
    const Gemm g{transpose(row.at(0)), transpose(row.at(1)), to_number(row.at(2)),
                 to_number(row.at(3)), to_number(row.at(4)), row.size() > 5 ? to_number(row[5]) : 1};
    const uint64_t bytes = 4 * g.batch * (g.m * g.k + g.k * g.n + g.m * g.n);
    add("tuff/" + g.name(), {g.flops(), 0}, bytes,
        [g](const tuff::Context& context) { return tuff_gemm_call(context, g); });
#ifdef TUFF_BENCH_OPENBLAS
    add_peer("openblas/" + g.name(), {g.flops(), 0}, [g] { return openblas_call(g); });
#endif
  }
}

}  // namespace bench
