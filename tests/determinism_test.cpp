// Bitwise identical results: in every run, in every context, whatever other threads do.
#include <thread>

#include "support/attention_problem.hpp"
#include "support/conv_problem.hpp"
#include "support/gemm_problem.hpp"

namespace tuff_test::determinism_test {
namespace {

// Every operation once, with values whose rounding reveals any change of order.
std::vector<std::vector<float>> all_results(tuff_context context) {
  std::vector<std::vector<float>> results;
  for (const GemmShape& shape :
       {GemmShape{.m = 65, .n = 70, .k = 300}, GemmShape{.m = 1, .n = 33, .k = 5000},
        GemmShape{.m = 16, .n = 16, .k = 9000}, GemmShape{.m = 9, .n = 8, .k = 64, .batch = 5}}) {
    const GemmProblem problem(shape, Tier::bound);
    const Tensor a(context, problem.a), b(context, problem.b), c(context, problem.c);
    EXPECT_OK(call_gemm(context, problem, a, b, c));
    results.push_back(c.read());
  }
  {
    const ConvShape shape{.batch = 2, .channels = 20, .height = 15, .width = 14, .filters = 9, .rows = 3, .cols = 3};
    const ConvProblem problem(shape, Tier::bound);
    const Tensor x(context, problem.input), w(context, problem.filter), y(context, problem.expected.value.size());
    EXPECT_OK(call_conv(context, shape, x, w, y));
    results.push_back(y.read());
  }
  for (const AttentionShape& shape : {AttentionShape{.heads = 2, .seq_q = 40, .seq_kv = 77, .head_dim = 64},
                                      AttentionShape{.heads = 2, .seq_q = 1, .seq_kv = 3000, .head_dim = 64}}) {
    const Tensor q(context, uniforms(shape.queries(), -1, 1, 1)), k(context, uniforms(shape.keys(), -1, 1, 2)),
        v(context, spreads(shape.keys(), 3)), o(context, shape.queries());
    EXPECT_OK(call_attention(context, shape, q, k, v, o));
    results.push_back(o.read());
  }
  for (const auto& shape : {std::vector<uint64_t>{300'007, 1}, {7, 9001}, {5000, 33}, {64, 64}}) {
    for (uint32_t axis : {0u, 1u}) {
      const uint64_t count = shape[0] * shape[1];
      const Tensor x(context, spreads(count, 4)), sum(context, count / shape[axis]), y(context, count);
      EXPECT_OK(tuff_reduce(context, TUFF_F32, TUFF_REDUCE_SUM, x, sum, shape.data(), 2, axis));
      EXPECT_OK(tuff_softmax(context, TUFF_F32, x, y, shape.data(), 2, axis));
      results.push_back(sum.read());
      results.push_back(y.read());
      EXPECT_OK(tuff_layer_norm(context, TUFF_F32, x, 0, 0, y, shape[0], shape[1], 1e-5));
      results.push_back(y.read());
    }
  }
  return results;
}

void expect_same(const std::vector<std::vector<float>>& got, const std::vector<std::vector<float>>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "result " << i);
    expect_same_bits(got[i], expected[i]);
  }
}

class Determinism : public OnBackend {};

TEST_P(Determinism, RunAfterRun) {
  const auto first = all_results(context());
  for (int i = 0; i < 3; ++i) expect_same(all_results(context()), first);
}

TEST_P(Determinism, ContextAfterContext) {
  const auto first = all_results(context());
  const OwnContext own(GetParam());
  expect_same(all_results(own), first);
}

TEST_P(Determinism, WhateverOtherThreadsDo) {
  const tuff_context shared = context();
  const auto first = all_results(shared);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { expect_same(all_results(shared), first); });
  for (std::thread& thread : threads) thread.join();
}
TUFF_ON_BACKENDS(Determinism);

}  // namespace
}  // namespace tuff_test::determinism_test
