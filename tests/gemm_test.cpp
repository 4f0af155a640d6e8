#include "support/gemm_problem.hpp"

namespace tuff_test::gemm_test {
namespace {

constexpr int32_t N = TUFF_NO_TRANS, T = TUFF_TRANS, C = TUFF_CONJ_TRANS;

struct Size {
  uint64_t m, n, k;
};

// Each of these runs with all four transposes.
constexpr Size kSizes[] = {
    {1, 1, 1},     {1, 1, 2},      {2, 1, 1},       {1, 2, 1},       {3, 5, 7},       {7, 13, 11},    {31, 37, 41},
    {16, 16, 16},  {15, 16, 17},   {17, 15, 16},    {16, 17, 15},    {32, 32, 32},    {31, 33, 32},   {33, 31, 31},
    {64, 64, 64},  {63, 65, 64},   {65, 63, 63},    {128, 64, 32},   {127, 129, 65},  {129, 127, 33}, {101, 103, 107},
    {1, 1000, 30}, {1000, 1, 30},  {1, 1, 5000},    {300, 200, 1},   {2, 2048, 64},   {2048, 2, 64},  {4, 4, 3000},
    {1, 257, 513}, {257, 1, 513},  {8, 1000, 9},    {1000, 8, 9},    {32, 32, 4099},  {16, 48, 2048}, {5, 64, 64},
    {64, 5, 64},   {255, 257, 31}, {256, 256, 256}, {200, 100, 300}, {64, 100, 1024}, {38, 45, 4099}, {3, 6, 203},
};

std::vector<GemmShape> cases() {
  std::vector<GemmShape> all;
  for (const Size& size : kSizes) {
    for (int32_t ta : {N, T}) {
      for (int32_t tb : {N, T}) {
        // Scaling, leading dimensions and offsets vary, so that each shape is tested with several of them.
        const uint64_t i = all.size();
        GemmShape row{.ta = ta, .tb = tb, .m = size.m, .n = size.n, .k = size.k};
        row.alpha = i % 3 == 0 ? 1 : i % 3 == 1 ? -2 : 0.5;
        row.beta = i % 4 == 0 ? 0 : i % 4 == 1 ? 1 : i % 4 == 2 ? -1 : 0.25;
        if (i % 5 != 0) row.pad_a = i % 5, row.pad_b = (i / 5) % 7, row.pad_c = (i / 3) % 5;
        row.shift = 4 * (i % 7);
        all.push_back(row);
      }
    }
  }
  const GemmShape others[] = {
      // nothing to compute; nothing to multiply (k or alpha is 0)
      {.m = 0, .n = 5, .k = 3},
      {.m = 5, .n = 0, .k = 3},
      {.m = 5, .n = 6, .k = 0},
      {.m = 5, .n = 6, .k = 0, .beta = 2, .pad_c = 3},
      {.m = 100, .n = 200, .k = 50, .alpha = 0, .beta = -1},
      {.m = 40, .n = 30, .k = 20, .alpha = 0, .beta = 0, .pad_c = 1},
      {.ta = C, .tb = C, .m = 20, .n = 30, .k = 40},
      {.ta = C, .tb = N, .m = 33, .n = 65, .k = 17, .pad_a = 3, .shift = 4},
      // every operand aligned to 16 bytes, and none
      {.m = 96, .n = 128, .k = 64},
      {.m = 96, .n = 128, .k = 64, .pad_a = 1, .pad_b = 1, .pad_c = 1},
      {.m = 96, .n = 128, .k = 64, .shift = 12},
      // large; few tiles with long k (split-K); very long
      {.m = 512, .n = 512, .k = 512},
      {.ta = T, .tb = T, .m = 512, .n = 384, .k = 640, .beta = 1},
      {.m = 700, .n = 300, .k = 1100, .alpha = 2, .beta = 1, .shift = 4},
      // few columns: computed as the transpose, whole and with split-K
      {.m = 410, .n = 6, .k = 233, .beta = 1, .pad_a = 1, .pad_c = 1},
      {.ta = T, .tb = T, .m = 333, .n = 7, .k = 97, .alpha = 2, .beta = -1, .pad_c = 2, .shift = 4},
      {.m = 300, .n = 5, .k = 1000},
      {.tb = T, .m = 20, .n = 6, .k = 4096, .beta = 1},
      // few rows and columns, with k not contiguous in memory
      {.ta = T, .m = 3, .n = 2, .k = 200, .pad_a = 1},
      {.ta = T, .tb = T, .m = 4, .n = 3, .k = 777, .beta = 1, .pad_b = 2},
      {.ta = T, .tb = T, .m = 1, .n = 1, .k = 2818},
      {.ta = T, .m = 14, .n = 1, .k = 300, .shift = 4},
      // long rows across k
      {.m = 1, .n = 1100, .k = 1000, .pad_b = 1},
      {.m = 1, .n = 2048, .k = 520, .beta = 1},
      {.ta = T, .m = 1026, .n = 2, .k = 1030, .shift = 4},
      // C in pairs of elements
      {.m = 31, .n = 66, .k = 200, .beta = 1},
      {.tb = T, .m = 40, .n = 38, .k = 200, .pad_c = 2, .shift = 8},
      // packed operands of short k
      {.m = 800, .n = 700, .k = 41, .beta = 1},
      {.ta = T, .tb = T, .m = 1000, .n = 640, .k = 30, .pad_a = 1},
      {.tb = T, .m = 500, .n = 384, .k = 130, .beta = 1, .pad_c = 1},
      // more than one piece of packed operands along m, n and k
      {.m = 3100, .n = 128, .k = 120, .pad_c = 1},
      {.tb = T, .m = 100, .n = 2100, .k = 128},
      {.ta = T, .m = 100, .n = 128, .k = 2500, .beta = 1},
      {.m = 64, .n = 64, .k = 16'384},
      {.ta = T, .m = 3, .n = 130, .k = 20'000},
      {.m = 1, .n = 1, .k = 1'000'000},
      // more than 65,535 tiles of any shape in use along m, and along n
      {.m = 9'000'000, .n = 1, .k = 2},
      {.m = 1, .n = 9'000'000, .k = 2},
      {.m = 1'200'000, .n = 5, .k = 3, .beta = 1, .pad_c = 1},
      {.tb = T, .m = 3, .n = 1'200'000, .k = 5, .shift = 4},
      // one operand of 160 MiB, which exceeds maxStorageBufferRange of Mesa's CPU driver
      {.m = 5'242'880, .n = 3, .k = 8},
      {.m = 2, .n = 5'242'881, .k = 8, .shift = 4},
      {.m = 5'242'881, .n = 8, .k = 1},
      {.ta = T, .m = 8, .n = 3, .k = 5'242'880},
  };
  all.insert(all.end(), std::begin(others), std::end(others));
  return all;
}

using Gemm = Table<GemmShape>;
TEST_P(Gemm, Exact) { run_gemm(context(), row(), Tier::exact); }
TUFF_TABLE(Gemm, GemmShape, cases());

using GemmBound = Table<GemmShape>;
TEST_P(GemmBound, Holds) { run_gemm(context(), row(), Tier::bound); }
TUFF_TABLE(GemmBound, GemmShape, without_large_operands(cases()));

class GemmSweep : public OnBackend {};

// All combinations of sizes around the edges of small tiles, where indexing errors hide.
TEST_P(GemmSweep, TileEdges) {
  const uint64_t sizes[] = {1, 4, 7, 8, 9, 33};
  for (uint64_t m : sizes) {
    for (uint64_t n : sizes) {
      for (uint64_t k : sizes) {
        const GemmShape shape{.ta = (m + k) % 2 == 0 ? N : T,
                              .tb = (n + k) % 2 == 0 ? N : T,
                              .m = m,
                              .n = n,
                              .k = k,
                              .beta = static_cast<double>(m % 2),
                              .pad_c = n % 3,
                              .shift = 4 * (k % 4)};
        SCOPED_TRACE(shape.name());
        run_gemm(context(), shape, Tier::exact);
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(GemmSweep, DescriptorIsTheSame) {
  const GemmShape shape{.ta = T, .m = 19, .n = 23, .k = 29, .alpha = 2, .beta = 1};
  const GemmProblem problem(shape, Tier::exact);
  const Tensor a(context(), problem.a), b(context(), problem.b), c(context(), problem.c);
  tuff_gemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.ta = shape.ta, desc.tb = shape.tb;
  desc.m = shape.m, desc.n = shape.n, desc.k = shape.k;
  desc.alpha = shape.alpha, desc.beta = shape.beta;
  desc.a = a, desc.b = b, desc.c = c;  // leading dimensions of 0: dense
  ASSERT_OK(tuff_gemm_ex(context(), &desc));
  expect_gemm(problem, c.read());
}
TUFF_ON_BACKENDS(GemmSweep);

}  // namespace
}  // namespace tuff_test::gemm_test
