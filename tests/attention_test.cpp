#include "support/attention_problem.hpp"

#include <cmath>

#include "support/bounds.hpp"
#include "support/sample.hpp"
#include "support/stored.hpp"

namespace tuff_test::attention_test {
namespace {

constexpr int32_t kNone = TUFF_CAUSAL_NONE, kTopLeft = TUFF_CAUSAL_TOP_LEFT, kBottomRight = TUFF_CAUSAL_BOTTOM_RIGHT;

struct Size {
  uint64_t batch, heads, seq_q, seq_kv, head_dim;
};

// Each of these runs with the three causal modes.
constexpr Size kSizes[] = {
    {1, 1, 1, 1, 1},    {1, 1, 2, 3, 5},     {2, 3, 7, 11, 13},   {1, 2, 8, 8, 8},     {1, 1, 16, 16, 16},
    {2, 2, 17, 15, 32}, {1, 2, 15, 17, 33},  {1, 1, 32, 32, 64},  {1, 2, 33, 31, 64},  {1, 1, 31, 65, 65},
    {2, 1, 64, 64, 64}, {1, 1, 63, 129, 7},  {1, 2, 1, 100, 64},  {1, 2, 100, 1, 64},  {1, 1, 5, 300, 128},
    {1, 1, 300, 5, 96}, {1, 1, 40, 40, 80},  {1, 1, 65, 65, 128}, {1, 1, 10, 20, 256}, {1, 1, 3, 50, 1024},
    {1, 1, 9, 9, 513},  {1, 1, 20, 37, 160},
};

std::vector<AttentionShape> cases() {
  std::vector<AttentionShape> all;
  for (const Size& size : kSizes) {
    for (int32_t causal : {kNone, kTopLeft, kBottomRight}) {
      all.push_back({.batch = size.batch,
                     .heads = size.heads,
                     .seq_q = size.seq_q,
                     .seq_kv = size.seq_kv,
                     .head_dim = size.head_dim,
                     .causal = causal,
                     .shift = 4 * (all.size() % 5)});
    }
  }
  const AttentionShape others[] = {
      {.batch = 0, .heads = 2, .seq_q = 3, .seq_kv = 4, .head_dim = 5},
      {.batch = 2, .heads = 0, .seq_q = 3, .seq_kv = 4, .head_dim = 5},
      {.seq_q = 50, .seq_kv = 50, .head_dim = 64, .scale = 3},
      {.seq_q = 20, .seq_kv = 70, .head_dim = 32, .causal = kBottomRight, .scale = 0.01},
      // scores far apart: one key has all the weight
      {.seq_q = 30, .seq_kv = 90, .head_dim = 64, .spread = 10},
      {.seq_q = 30, .seq_kv = 90, .head_dim = 64, .causal = kTopLeft, .spread = 30},
      // large, and one query against many keys
      {.batch = 1, .heads = 2, .seq_q = 256, .seq_kv = 256, .head_dim = 64},
      {.batch = 1, .heads = 1, .seq_q = 512, .seq_kv = 512, .head_dim = 128, .causal = kTopLeft},
      {.batch = 1, .heads = 4, .seq_q = 1, .seq_kv = 4099, .head_dim = 64},
      {.batch = 1, .heads = 2, .seq_q = 3, .seq_kv = 2048, .head_dim = 128, .causal = kBottomRight, .shift = 4},
      {.batch = 1, .heads = 1, .seq_q = 2048, .seq_kv = 9, .head_dim = 16, .causal = kTopLeft},
      // more than 65,535 heads; more than 65,535 blocks of queries
      {.batch = 350, .heads = 200, .seq_q = 1, .seq_kv = 2, .head_dim = 3},
      {.batch = 70'000, .heads = 1, .seq_q = 2, .seq_kv = 2, .head_dim = 2, .causal = kTopLeft, .shift = 4},
      {.seq_q = 600'000, .seq_kv = 2, .head_dim = 4, .causal = kBottomRight},
      // more keys than the loops of Mesa 22.3's CPU driver allow: 65,535 iterations
      {.seq_q = 9, .seq_kv = 30'001, .head_dim = 128},
      {.seq_q = 9, .seq_kv = 30'001, .head_dim = 128, .causal = kBottomRight, .shift = 4},
      // k and v of 160 MiB each; q and o of 160 MiB each
      {.seq_q = 1, .seq_kv = 655'361, .head_dim = 64},
      {.seq_q = 655'361, .seq_kv = 1, .head_dim = 64},
  };
  all.insert(all.end(), std::begin(others), std::end(others));
  return all;
}

using Attention = Table<AttentionShape>;
TEST_P(Attention, WithinBound) { run_attention(context(), row()); }
TUFF_TABLE(Attention, AttentionShape, cases());

class AttentionOnce : public OnBackend {};

// A query of zeros gives all keys the same score: the output is the mean of the values, whatever the accuracy of exp.
TEST_P(AttentionOnce, EqualScoresAverageTheValues) {
  for (uint64_t keys : {1, 2, 5, 16, 64, 257}) {
    SCOPED_TRACE(keys);
    const AttentionShape shape{.batch = 2, .heads = 2, .seq_q = 5, .seq_kv = keys, .head_dim = 16};
    const std::vector<float> v = integers(shape.keys(), 20, keys);
    const Tensor q(context(), std::vector<float>(shape.queries(), 0.0f)),
        k(context(), uniforms(shape.keys(), -1, 1, 7)), dv(context(), v), o(context(), shape.queries());
    ASSERT_OK(call_attention(context(), shape, q, k, dv, o));
    Expected expected;
    for (uint64_t head = 0; head < 4; ++head) {
      for (uint64_t i = 0; i < shape.seq_q; ++i) {
        for (uint64_t x = 0; x < shape.head_dim; ++x) {
          double sum = 0, size = 0;
          for (uint64_t j = 0; j < keys; ++j) {
            const double value = v[(head * keys + j) * shape.head_dim + x];
            sum += value, size += std::fabs(value);
          }
          const double n = static_cast<double>(keys);
          expected.value.push_back(sum / n);
          expected.bound.push_back(gamma(2 * n + 8) * size / n);  // two sums of n, a division, exp(0) within 3 ULP
        }
      }
    }
    expect_matches(o.read(), expected);
  }
}

TEST_P(AttentionOnce, DescriptorDefaultsTheScale) {
  const AttentionShape shape{.batch = 1, .heads = 2, .seq_q = 9, .seq_kv = 14, .head_dim = 25, .causal = kBottomRight};
  const std::vector<float> hq = uniforms(shape.queries(), -1, 1, 1), hk = uniforms(shape.keys(), -1, 1, 2),
                           hv = spreads(shape.keys(), 3);
  const Tensor q(context(), hq), k(context(), hk), v(context(), hv), o(context(), shape.queries());
  tuff_attention_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.q = q, desc.k = k, desc.v = v, desc.o = o;
  desc.batch = 1, desc.heads = 2, desc.seq_q = 9, desc.seq_kv = 14, desc.head_dim = 25;
  desc.causal = kBottomRight;
  ASSERT_OK(tuff_attention_ex(context(), &desc));
  expect_matches(o.read(), solve_attention(shape, hq, hk, hv));
}
// Weights of slightly more than 1 that are rounded up add up to more than their total. The mean of the largest numbers
// of a type used to become infinite with cooperative matrices.
TEST_P(AttentionOnce, MeansOfTheLargestValuesStayFinite) {
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    const bool half = dtype == TUFF_F16;
    const float largest = half ? 65504.0f : 0x1.fep127f;
    // 0.6 of the distance of the type's numbers above 1, as the exponent of e.
    const float score = 0.6f * (half ? 0x1p-10f : 0x1p-7f);
    for (const uint64_t rows : {1, 8, 40, 128}) {
      const AttentionShape shape{.heads = 1, .seq_q = rows, .seq_kv = 1024, .head_dim = 64, .scale = 1, .dtype = dtype};
      SCOPED_TRACE(shape.name());
      std::vector<float> q(shape.queries(), 0.0f), k(shape.keys(), 0.0f);
      for (uint64_t i = 0; i < rows; ++i) q[i * 64] = 1;
      for (uint64_t j = 128; j < 1024; ++j) k[j * 64] = score;  // the first keys become the reference of the others
      run_attention(context(), shape, q, rounded(dtype, k), std::vector<float>(shape.values(), largest), {});
    }
  }
}

// Rows with fewer elements than are read at once, with several query heads per kv head. The planner for few rows used
// to divide by the number of pieces of such a row, which is zero.
TEST_P(AttentionOnce, FewElementsOfSharedHeadsDoNotDivideByZero) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const uint64_t dim : {1, 2, 3, 4, 5, 7, 8, 9}) {
      for (const uint64_t dim_v : {dim, uint64_t{1}, uint64_t{8}}) {
        const AttentionShape shape{.heads = 6,
                                   .seq_q = 1,
                                   .seq_kv = 8,
                                   .head_dim = dim,
                                   .dtype = dtype,
                                   .kv_heads = dim % 2 == 0 ? 2u : 1u,
                                   .head_dim_v = dim_v};
        // Each is a kernel of its own.
        const bool always = dtype == TUFF_F32 && dim_v == dim;
        if (vulkan() && !always && !in_sample(shape.name(), 12)) continue;
        SCOPED_TRACE(shape.name());
        run_attention(context(), shape);
      }
    }
  }
}
TUFF_ON_BACKENDS(AttentionOnce);

}  // namespace
}  // namespace tuff_test::attention_test
