#include "support/gemm_problem.hpp"

namespace tuff_test::batched_gemm_test {
namespace {

constexpr int32_t T = TUFF_TRANS;

std::vector<GemmShape> cases() {
  return {
      {.m = 3, .n = 4, .k = 5, .batch = 0},
      {.m = 3, .n = 4, .k = 5, .beta = 1, .gap = 7},  // a batch of one
      {.m = 3, .n = 4, .k = 5, .batch = 2},
      {.m = 1, .n = 1, .k = 1, .batch = 1000},
      {.m = 0, .n = 4, .k = 5, .batch = 3},
      {.m = 3, .n = 4, .k = 0, .batch = 3},
      {.m = 3, .n = 4, .k = 0, .beta = 2, .batch = 3, .gap = 1},
      {.m = 16, .n = 16, .k = 16, .batch = 64},
      {.ta = T, .m = 17, .n = 15, .k = 31, .alpha = -1, .beta = 1, .batch = 5, .gap = 3},
      {.tb = T, .m = 33, .n = 65, .k = 9, .alpha = 2, .pad_a = 1, .pad_b = 2, .pad_c = 3, .shift = 4, .batch = 7},
      {.ta = T, .tb = T, .m = 64, .n = 32, .k = 48, .beta = -1, .pad_c = 5, .shift = 8, .batch = 4, .gap = 11},
      {.m = 40, .n = 24, .k = 56, .batch = 6, .repeat_a = true},
      {.m = 40, .n = 24, .k = 56, .batch = 6, .repeat_b = true},
      {.ta = T, .m = 40, .n = 24, .k = 56, .beta = 1, .batch = 6, .repeat_a = true, .repeat_b = true, .gap = 2},
      {.m = 1, .n = 128, .k = 64, .batch = 33},           // vector by matrix
      {.tb = T, .m = 128, .n = 1, .k = 64, .batch = 33},  // matrix by vector
      {.m = 8, .n = 8, .k = 4096, .batch = 3},            // long k
      {.ta = T, .m = 130, .n = 6, .k = 20, .beta = 1, .pad_c = 1, .batch = 5, .gap = 3},
      {.m = 129, .n = 127, .k = 64, .batch = 8, .repeat_b = true},
      {.m = 256, .n = 256, .k = 128, .beta = 1, .batch = 4},
      {.tb = T, .m = 250, .n = 256, .k = 260, .pad_a = 1, .batch = 3, .gap = 5},
      // hundreds of tiny ones, several per workgroup
      {.m = 2, .n = 2, .k = 2, .batch = 1000},
      {.m = 4, .n = 4, .k = 4, .beta = 1, .batch = 40},
      {.ta = T, .m = 8, .n = 8, .k = 8, .alpha = -1, .beta = 1, .batch = 130, .gap = 4},
      {.tb = T, .m = 12, .n = 12, .k = 12, .pad_a = 1, .pad_b = 2, .pad_c = 3, .shift = 4, .batch = 65},
      {.ta = T, .tb = T, .m = 7, .n = 16, .k = 64, .beta = 2, .batch = 40, .repeat_a = true},
      {.m = 16, .n = 5, .k = 9, .batch = 100, .repeat_b = true, .gap = 1},
      {.m = 16, .n = 16, .k = 16, .batch = 16, .gap = 2},
      {.m = 1, .n = 2, .k = 3, .batch = 70'000},  // more matrices than workgroups in one dimension
      {.m = 2, .n = 1, .k = 2, .shift = 4, .batch = 200'000, .repeat_b = true, .gap = 1},
      {.m = 1024, .n = 2, .k = 8, .batch = 5'120, .repeat_b = true},                    // A of 160 MiB
      {.m = 8, .n = 1024, .k = 1, .batch = 5'121, .repeat_a = true, .repeat_b = true},  // C of 160 MiB
  };
}

using BatchedGemm = Table<GemmShape>;
TEST_P(BatchedGemm, Exact) { run_gemm(context(), row(), Tier::exact); }
TUFF_TABLE(BatchedGemm, GemmShape, cases());

using BatchedGemmBound = Table<GemmShape>;
TEST_P(BatchedGemmBound, Holds) { run_gemm(context(), row(), Tier::bound); }
TUFF_TABLE(BatchedGemmBound, GemmShape, without_large_operands(cases()));

class BatchedGemmOnce : public OnBackend {};

TEST_P(BatchedGemmOnce, DescriptorIsTheSame) {
  const GemmShape shape{.m = 9, .n = 10, .k = 11, .alpha = 3, .beta = 1, .batch = 4, .gap = 5};
  const GemmProblem problem(shape, Tier::exact);
  const Tensor a(context(), problem.a), b(context(), problem.b), c(context(), problem.c);
  tuff_batched_gemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.m = shape.m, desc.n = shape.n, desc.k = shape.k;
  desc.alpha = shape.alpha, desc.beta = shape.beta;
  desc.a = a, desc.b = b, desc.c = c;
  desc.stride_a = problem.a_layout.stride, desc.stride_b = problem.b_layout.stride;
  desc.stride_c = problem.c_layout.stride;
  desc.batch_count = shape.batch;
  ASSERT_OK(tuff_batched_gemm_ex(context(), &desc));
  expect_gemm(problem, c.read());
}

// A transposed A whose matrices interleave. The stride is smaller than a matrix's footprint, which is allowed for
// operands that are only read.
TEST_P(BatchedGemmOnce, InputsMayOverlapEachOther) {
  const uint64_t m = 4, n = 3, k = 6, batch = 3, stride_a = 2;
  const std::vector<float> a = integers((batch - 1) * stride_a + m * k, 3, 1), b = integers(k * n, 3, 2);
  Expected expected;
  for (uint64_t i = 0; i < batch; ++i) {
    for (uint64_t row = 0; row < m; ++row) {
      for (uint64_t col = 0; col < n; ++col) {
        double sum = 0;
        for (uint64_t p = 0; p < k; ++p) sum += static_cast<double>(a[i * stride_a + row * k + p]) * b[p * n + col];
        expected.value.push_back(sum);
      }
    }
  }
  const Tensor da(context(), a), db(context(), b), dc(context(), batch * m * n);
  ASSERT_OK(tuff_batched_gemm(context(), TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, m, n, k, 1, da, k, stride_a, db, n, 0,
                              0, dc, n, m * n, batch));
  expect_matches(dc.read(), expected);
}
// All matrices share B, and A and C continue without a gap, so a planner may compute the batch as one tall GEMM: only
// if bias and residual of each matrix follow in the same way.
TEST_P(BatchedGemmOnce, BiasAndResidualOfEachMatrix) {
  const uint64_t m = 6, n = 5, k = 4, batch = 3;
  const std::vector<float> a = integers(batch * m * k, 3, 1), b = integers(k * n, 3, 2);
  const std::vector<float> bias = integers(batch * m, 50, 3), residual = integers(batch * (m * n + 7), 50, 4);
  const Tensor da(context(), a), db(context(), b), dbias(context(), bias), dresidual(context(), residual);
  struct Strides {
    uint64_t bias, residual;
  };
  for (const int32_t axis : {TUFF_BIAS_NONE, TUFF_BIAS_ROWS, TUFF_BIAS_COLUMNS}) {
    for (const bool adds : {false, true}) {
      for (const Strides strides : {Strides{0, 0}, {0, m * n}, {0, m * n + 7}, {m, m * n}, {m, m * n + 7}}) {
        if (axis == TUFF_BIAS_NONE && strides.bias != 0) continue;
        const Tensor c(context(), batch * m * n);
        tuff_batched_gemm_desc desc{};
        desc.struct_size = sizeof desc;
        desc.dtype = TUFF_F32, desc.m = m, desc.n = n, desc.k = k, desc.alpha = 1, desc.batch_count = batch;
        desc.a = da, desc.b = db, desc.c = c;
        desc.stride_a = m * k, desc.stride_c = m * n;
        desc.bias_axis = axis;
        if (axis != TUFF_BIAS_NONE) desc.bias = dbias, desc.stride_bias = strides.bias;
        if (adds) desc.residual = dresidual, desc.stride_residual = strides.residual;
        ASSERT_OK(tuff_batched_gemm_ex(context(), &desc));
        Expected expected;
        for (uint64_t i = 0; i < batch; ++i) {
          for (uint64_t row = 0; row < m; ++row) {
            for (uint64_t col = 0; col < n; ++col) {
              double sum = adds ? residual[i * strides.residual + row * n + col] : 0;
              if (axis != TUFF_BIAS_NONE) sum += bias[i * strides.bias + (axis == TUFF_BIAS_ROWS ? row : col)];
              for (uint64_t p = 0; p < k; ++p) sum += static_cast<double>(a[(i * m + row) * k + p]) * b[p * n + col];
              expected.value.push_back(sum);
            }
          }
        }
        SCOPED_TRACE(testing::Message() << "bias_axis " << axis << " strides " << strides.bias << " "
                                        << strides.residual << " residual " << adds);
        expect_matches(c.read(), expected);
      }
    }
  }
}
TUFF_ON_BACKENDS(BatchedGemmOnce);

}  // namespace
}  // namespace tuff_test::batched_gemm_test
