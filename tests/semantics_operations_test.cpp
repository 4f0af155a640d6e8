// The promises about single operations, one test each.
#include <cfloat>
#include <cmath>
#include <limits>

#include "support/attention_problem.hpp"
#include "support/bounds.hpp"
#include "support/conv_problem.hpp"
#include "support/gemm_problem.hpp"

namespace tuff_test::semantics_operations_test {
namespace {

constexpr int32_t F = TUFF_F32, N = TUFF_NO_TRANS, T = TUFF_TRANS;
constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class SemanticsOperations : public OnBackend {
 protected:
  std::vector<float> unary(int32_t op, const std::vector<float>& x) {
    const Tensor input(context(), x), output(context(), x.size());
    EXPECT_OK(tuff_unary(context(), F, op, input, output, x.size()));
    return output.read();
  }
  std::vector<float> binary(int32_t op, const std::vector<float>& x, const std::vector<float>& y) {
    const Tensor a(context(), x), b(context(), y), output(context(), x.size());
    EXPECT_OK(tuff_binary(context(), F, op, a, b, output, x.size()));
    return output.read();
  }
  std::vector<float> reduce(int32_t op, const std::vector<float>& x, std::vector<uint64_t> shape, uint32_t axis) {
    uint64_t count = 1;
    for (uint32_t i = 0; i < shape.size(); ++i) count *= i == axis ? 1 : shape[i];
    const Tensor input(context(), x), output(context(), count);
    EXPECT_OK(tuff_reduce(context(), F, op, input, output, shape.data(), static_cast<uint32_t>(shape.size()), axis));
    return output.read();
  }
};

// --- gemm ------------------------------------------------------------------------------------------------

TEST_P(SemanticsOperations, GemmZeroKScalesC) {
  const Tensor c(context(), std::vector<float>(12, 3.0f)), cleared(context(), 12);
  ASSERT_OK(tuff_gemm(context(), F, N, N, 3, 4, 0, 5, 0, 0, 0, 4, -2, c, 4));
  expect_same_bits(c.read(), std::vector<float>(12, -6.0f));
  ASSERT_OK(tuff_gemm(context(), F, N, N, 3, 4, 0, 5, 0, 0, 0, 4, 0, cleared, 4));
  expect_same_bits(cleared.read(), std::vector<float>(12, 0.0f));
}

TEST_P(SemanticsOperations, GemmZeroAlphaDoesNotReadAOrB) {
  const std::vector<float> nan(2000, kNaN), infinite(2000, kInfinity);
  const Tensor a(context(), nan), b(context(), infinite), c(context(), std::vector<float>(1200, 3.0f));
  ASSERT_OK(tuff_gemm(context(), F, N, N, 30, 40, 50, 0, a, 50, b, 40, 2, c, 40));
  expect_same_bits(c.read(), std::vector<float>(1200, 6.0f));
}

TEST_P(SemanticsOperations, GemmZeroBetaDoesNotReadC) {
  for (float unread : {kNaN, kInfinity, -kInfinity}) {
    for (uint64_t k : {0, 1, 40, 5000}) {
      const std::vector<float> ones(33 * k, 1.0f);
      const Tensor a(context(), ones), b(context(), ones), c(context(), std::vector<float>(33 * 33, unread));
      ASSERT_OK(tuff_gemm(context(), F, N, N, 33, 33, k, 1, a, k, b, 33, 0, c, 33));
      expect_same_bits(c.read(), std::vector<float>(33 * 33, static_cast<float>(k)));
    }
  }
}

// A scalar is converted to the type of the computation first. One that rounds to zero is zero, and its matrix is not
// read; one that rounds to infinity is infinite.
TEST_P(SemanticsOperations, GemmScalarsThatRoundToZeroAreZero) {
  for (uint64_t size : {1, 5, 40, 200}) {
    SCOPED_TRACE(size);
    const std::vector<float> nan(size * size, kNaN), ones(size * size, 1.0f), threes(size * size, 3.0f);
    const Tensor bad(context(), nan), good(context(), ones), unread(context(), nan), kept(context(), threes),
        batch(context(), nan), grown(context(), threes);
    for (const double tiny : {1e-300, -1e-300}) {
      const auto call = [&](double alpha, const Tensor& a, double beta, const Tensor& c) {
        return tuff_gemm(context(), F, N, N, size, size, size, alpha, a, size, a, size, beta, c, size);
      };
      ASSERT_OK(call(1, good, tiny, unread));
      expect_same_bits(unread.read(), std::vector<float>(size * size, static_cast<float>(size)));
      ASSERT_OK(call(tiny, bad, 1, kept));
      expect_same_bits(kept.read(), threes);
      ASSERT_OK(tuff_batched_gemm(context(), F, N, N, 1, size, 1, 1, good, 1, 1, good, size, 0, tiny, batch, size, size,
                                  size));
      expect_same_bits(batch.read(), ones);
    }
    ASSERT_OK(tuff_gemm(context(), F, N, N, size, size, size, 1, good, size, good, size, 1e300, grown, size));
    expect_same_bits(grown.read(), std::vector<float>(size * size, kInfinity));
  }
  // f64 represents 1e-300.
  int32_t doubles = 0;
  ASSERT_OK(tuff_supports(context(), "gemm.f64", &doubles));
  if (doubles == 0) return;
  Bytes one(8), invalid(8);
  set_element(TUFF_F64, one, 0, 1);
  set_element(TUFF_F64, invalid, 0, NAN);
  const TypedTensor a(context(), TUFF_F64, one), c(context(), TUFF_F64, invalid);
  ASSERT_OK(tuff_gemm(context(), TUFF_F64, N, N, 1, 1, 1, 1, a, 1, a, 1, 1e-300, c, 1));
  EXPECT_TRUE(std::isnan(element(TUFF_F64, c.read(), 0)));
}

TEST_P(SemanticsOperations, GemmNaNAndInfinityInAAndBSpread) {
  std::vector<float> ha(20 * 30, 1.0f), hb(30 * 10, 1.0f);
  ha[3 * 30 + 7] = kNaN;
  hb[5 * 10 + 2] = kInfinity;
  const Tensor a(context(), ha), b(context(), hb), c(context(), 200);
  ASSERT_OK(tuff_gemm(context(), F, N, N, 20, 10, 30, 1, a, 30, b, 10, 0, c, 10));
  Expected expected;
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 10; ++j) expected.value.push_back(i == 3 ? NAN : j == 2 ? INFINITY : 30);
  }
  expect_matches(c.read(), expected);
}

TEST_P(SemanticsOperations, BatchedGemmStrideZeroRepeats) {
  run_gemm(context(), {.m = 5, .n = 6, .k = 7, .beta = 1, .batch = 9, .repeat_a = true}, Tier::exact);
  run_gemm(context(), {.tb = T, .m = 5, .n = 6, .k = 7, .batch = 9, .repeat_b = true}, Tier::exact);
}

TEST_P(SemanticsOperations, BatchedGemmMatricesOfCMustNotOverlap) {
  const Tensor a(context(), 100), b(context(), 100), c(context(), 100);
  const auto call = [&](uint64_t stride_c, uint64_t ldc, uint64_t count) {
    return tuff_batched_gemm(context(), F, N, N, 3, 4, 0, 1, a, 0, 0, b, 4, 0, 0, c, ldc, stride_c, count);
  };
  EXPECT_FAILS(call(0, 4, 2), kArgument, "tuff_batched_gemm", "stride_c");
  EXPECT_FAILS(call(11, 4, 2), kArgument, "tuff_batched_gemm", "stride_c");
  EXPECT_FAILS(call(13, 5, 2), kArgument, "tuff_batched_gemm", "stride_c");
  c.expect_poisoned();
  EXPECT_OK(call(0, 4, 1));
  EXPECT_OK(call(12, 4, 2));
  EXPECT_OK(call(14, 5, 2));  // a footprint of 2 * 5 + 4
}

// 1 + 2^-20 needs the full precision of f32: TF32 and f16 round it to 1, and three bf16 parts lose the tail of the
// product.
TEST_P(SemanticsOperations, GemmF32IsRealF32) {
  for (uint64_t size : {8, 64, 256}) {
    std::vector<float> ha(size * size, 0.0f), hb(size * size);
    for (uint64_t i = 0; i < size; ++i) ha[i * size + i] = 1 + 0x1p-20f;
    Random random(1);
    std::vector<float> expected(size * size);
    for (uint64_t i = 0; i < size * size; ++i) {
      hb[i] = random.spread();
      expected[i] = (1 + 0x1p-20f) * hb[i];
    }
    const Tensor a(context(), ha), b(context(), hb), c(context(), size * size);
    ASSERT_OK(tuff_gemm(context(), F, N, N, size, size, size, 1, a, size, b, size, 0, c, size));
    expect_same_bits(c.read(), expected);
  }
}

// --- conv2d ----------------------------------------------------------------------------------------------

TEST_P(SemanticsOperations, ConvExtentIsTheFloor) {
  for (uint64_t size = 5; size < 12; ++size) {
    for (uint64_t stride : {1, 2, 3, 4}) {
      for (uint64_t dilation : {1, 2}) {
        run_conv(context(),
                 {.height = size,
                  .width = size + 2,
                  .rows = 3,
                  .cols = 2,
                  .stride = {stride, stride},
                  .padding = {1, 0},
                  .dilation = {dilation, dilation}},
                 Tier::exact);
      }
    }
  }
}

TEST_P(SemanticsOperations, ConvWrongExtentStatesTheExpectedShape) {
  const Tensor x(context(), 1000), w(context(), 1000), y(context(), 1000);
  const uint64_t in[4] = {2, 3, 17, 19}, filter[4] = {5, 3, 4, 6}, stride[2] = {2, 3}, padding[2] = {1, 2};
  // (17 + 2 - 4) / 2 + 1 = 8, (19 + 4 - 6) / 3 + 1 = 6
  for (const auto& out :
       {std::array<uint64_t, 4>{2, 5, 9, 6}, {2, 5, 8, 7}, {2, 5, 7, 6}, {1, 5, 8, 6}, {2, 6, 8, 6}}) {
    EXPECT_FAILS(tuff_conv2d(context(), F, x, in, w, filter, y, out.data(), stride, padding), kArgument, "tuff_conv2d",
                 "out_shape");
    const std::string message = last_error();
    for (const char* size : {"2", "5", "8", "6"}) EXPECT_NE(message.find(size), std::string::npos) << message;
  }
  y.expect_poisoned();
}

TEST_P(SemanticsOperations, ConvChannelsAndBatchMustAgree) {
  const Tensor x(context(), 1000), w(context(), 1000), y(context(), 1000);
  const uint64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
  const uint64_t in[4] = {2, 3, 4, 4}, other[4] = {2, 4, 2, 2}, out[4] = {2, 2, 3, 3};
  EXPECT_FAILS(tuff_conv2d(context(), F, x, in, w, other, y, out, ones, zeros), kArgument, "tuff_conv2d",
               "filter_shape");
  const uint64_t filter[4] = {2, 3, 2, 2}, batch[4] = {3, 2, 3, 3};
  EXPECT_FAILS(tuff_conv2d(context(), F, x, in, w, filter, y, batch, ones, zeros), kArgument, "tuff_conv2d",
               "out_shape");
}

TEST_P(SemanticsOperations, ConvWrongChannelsOfGroupsStateWhatIsNeeded) {
  const Tensor x(context(), 1000), w(context(), 1000), y(context(), 1000);
  tuff_conv2d_desc d{};
  d.struct_size = sizeof d;
  d.dtype = F;
  d.input = x, d.filter = w, d.output = y;
  d.in_shape[0] = 1, d.in_shape[1] = 2, d.in_shape[2] = d.in_shape[3] = 4;
  d.filter_shape[0] = d.filter_shape[1] = 2, d.filter_shape[2] = d.filter_shape[3] = 1;
  d.out_shape[0] = 1, d.out_shape[1] = 2, d.out_shape[2] = d.out_shape[3] = 4;
  d.groups = 2;
  EXPECT_FAILS(tuff_conv2d_ex(context(), &d), kArgument, "tuff_conv2d_ex", "filter_shape");
  const std::string message = last_error();
  for (const char* part : {"has C=2", "needs C=1", "groups=2"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  y.expect_poisoned();
}

TEST_P(SemanticsOperations, ConvStrideIsAtLeastOne) {
  const Tensor x(context(), 100), w(context(), 100), y(context(), 100);
  const uint64_t in[4] = {1, 1, 4, 4}, filter[4] = {1, 1, 1, 1}, out[4] = {1, 1, 4, 4}, zeros[2] = {0, 0};
  for (const auto& stride : {std::array<uint64_t, 2>{0, 1}, {1, 0}, {0, 0}}) {
    EXPECT_FAILS(tuff_conv2d(context(), F, x, in, w, filter, y, out, stride.data(), zeros), kArgument, "tuff_conv2d",
                 "stride");
  }
}

TEST_P(SemanticsOperations, ConvFilterLargerThanThePaddedInputIsAnError) {
  const Tensor x(context(), 1000), w(context(), 1000), y(context(), 1000);
  const uint64_t in[4] = {1, 1, 4, 4}, filter[4] = {1, 1, 7, 1}, out[4] = {1, 1, 1, 4}, ones[2] = {1, 1},
                 one[2] = {1, 0};
  EXPECT_FAILS(tuff_conv2d(context(), F, x, in, w, filter, y, out, ones, one), kArgument, "tuff_conv2d",
               "filter_shape");
  y.expect_poisoned();
  run_conv(context(), {.height = 4, .width = 4, .rows = 6, .cols = 1, .padding = {1, 0}}, Tier::exact);  // just fits
}

// --- attention -------------------------------------------------------------------------------------------

TEST_P(SemanticsOperations, AttentionScaleIsFiniteAndPositive) {
  const Tensor q(context(), 8), k(context(), 8), v(context(), 8), o(context(), 8);
  for (double scale : {0.0, -0.0, -1.0, static_cast<double>(kNaN), static_cast<double>(kInfinity), -1e-3}) {
    EXPECT_FAILS(tuff_attention(context(), F, q, k, v, o, 1, 1, 2, 2, 4, scale, TUFF_CAUSAL_NONE), kArgument,
                 "tuff_attention", "scale");
  }
  o.expect_poisoned();
}

TEST_P(SemanticsOperations, AttentionOfFiniteInputIsFinite) {
  const uint64_t d = 16, keys = 40;
  // Scores of about ±1e30: exp() overflows unless the maximum is subtracted.
  const std::vector<float> hq = uniforms(3 * d, -1e15f, 1e15f, 1), hk = uniforms(keys * d, -1e15f, 1e15f, 2),
                           hv = uniforms(keys * d, -1, 1, 3);
  const Tensor q(context(), hq), k(context(), hk), v(context(), hv), o(context(), 3 * d);
  ASSERT_OK(tuff_attention(context(), F, q, k, v, o, 1, 1, 3, keys, d, 1, TUFF_CAUSAL_NONE));
  for (float value : o.read()) {
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_LE(std::fabs(value), 1 + 0x1p-18f) << "a weighted mean is within the range of the values";
  }
}

TEST_P(SemanticsOperations, AttentionRowThatSeesNoKeyIsZero) {
  // With seq_q above seq_kv the first seq_q - seq_kv rows see no key.
  run_attention(context(), {.heads = 2, .seq_q = 9, .seq_kv = 4, .head_dim = 8, .causal = TUFF_CAUSAL_BOTTOM_RIGHT});
  const Tensor q(context(), std::vector<float>(9 * 8, kNaN)), k(context(), std::vector<float>(4 * 8, kNaN)),
      v(context(), std::vector<float>(4 * 8, kNaN)), o(context(), 9 * 8);
  ASSERT_OK(tuff_attention(context(), F, q, k, v, o, 1, 1, 9, 4, 8, 1, TUFF_CAUSAL_BOTTOM_RIGHT));
  const std::vector<float> got = o.read();
  for (int i = 0; i < 5 * 8; ++i) EXPECT_EQ(got[i], 0.0f) << "row " << i / 8 << " sees no key, not even NaN";
  for (int i = 5 * 8; i < 9 * 8; ++i) EXPECT_TRUE(std::isnan(got[i]));
}

TEST_P(SemanticsOperations, AttentionNaNScoreStaysInItsRow) {
  const AttentionShape shape{.heads = 2, .seq_q = 21, .seq_kv = 35, .head_dim = 20};
  std::vector<float> hq = uniforms(shape.queries(), -1, 1, 1);
  const std::vector<float> hk = uniforms(shape.keys(), -1, 1, 2), hv = spreads(shape.keys(), 3);
  hq[(21 + 13) * 20 + 4] = kNaN;  // second head, query 13
  const Tensor q(context(), hq), k(context(), hk), v(context(), hv), o(context(), shape.queries());
  ASSERT_OK(call_attention(context(), shape, q, k, v, o));
  expect_matches(o.read(), solve_attention(shape, hq, hk, hv));
}

// A masked key contributes nothing: NaN in masked keys or values does not propagate.
TEST_P(SemanticsOperations, AttentionMaskedKeysAreNotSeen) {
  const AttentionShape shape{.seq_q = 20, .seq_kv = 20, .head_dim = 16, .causal = TUFF_CAUSAL_TOP_LEFT};
  const std::vector<float> hq = uniforms(shape.queries(), -1, 1, 1);
  std::vector<float> hk = uniforms(shape.keys(), -1, 1, 2);
  const std::vector<float> hv = spreads(shape.keys(), 3);
  for (uint64_t x = 0; x < 16; ++x) hk[11 * 16 + x] = kNaN;
  const Tensor q(context(), hq), k(context(), hk), v(context(), hv), o(context(), shape.queries());
  ASSERT_OK(call_attention(context(), shape, q, k, v, o));
  const std::vector<float> got = o.read();
  for (uint64_t i = 0; i < 20; ++i) {
    for (uint64_t x = 0; x < 16; ++x) EXPECT_EQ(std::isnan(got[i * 16 + x]), i >= 11) << i;
  }
}

TEST_P(SemanticsOperations, AttentionSizesOfZeroAreErrors) {
  const Tensor q(context(), 8), k(context(), 8), v(context(), 8), o(context(), 8);
  EXPECT_FAILS(tuff_attention(context(), F, q, k, v, o, 1, 1, 0, 2, 4, 1, 0), kArgument, "tuff_attention", "seq_q");
  EXPECT_FAILS(tuff_attention(context(), F, q, k, v, o, 1, 1, 2, 0, 4, 1, 0), kArgument, "tuff_attention", "seq_kv");
  EXPECT_FAILS(tuff_attention(context(), F, q, k, v, o, 1, 1, 2, 2, 0, 1, 0), kArgument, "tuff_attention", "head_dim");
  o.expect_poisoned();
}

// The error names head_dim, not the default scale derived from it.
TEST_P(SemanticsOperations, AttentionHeadDimOfZeroIsNamedWhereTheScaleIsTheDefault) {
  const Tensor q(context(), 8), k(context(), 8), v(context(), 8), o(context(), 8);
  tuff_attention_desc d{};
  d.struct_size = sizeof d;
  d.dtype = F;
  d.q = q, d.k = k, d.v = v, d.o = o;
  d.batch = d.heads = 1, d.seq_q = d.seq_kv = 2;
  EXPECT_FAILS(tuff_attention_ex(context(), &d), kArgument, "tuff_attention_ex", "head_dim");
  EXPECT_EQ(std::string(last_error()).find("scale"), std::string::npos) << last_error();
  o.expect_poisoned();
}

// --- reduce ----------------------------------------------------------------------------------------------

TEST_P(SemanticsOperations, ReduceTakesAnyAxisOfAnyRank) {
  std::vector<uint64_t> shape;
  for (uint32_t rank = 1; rank <= 8; ++rank) {
    shape.push_back(rank % 3 + 1);
    uint64_t count = 1;
    for (uint64_t size : shape) count *= size;
    const std::vector<float> x = integers(count, 9, rank);
    for (uint32_t axis = 0; axis < rank; ++axis) {
      uint64_t inner = 1;
      for (uint32_t i = axis + 1; i < rank; ++i) inner *= shape[i];
      Expected expected;
      for (uint64_t o = 0; o < count / inner / shape[axis]; ++o) {
        for (uint64_t i = 0; i < inner; ++i) {
          double sum = 0;
          for (uint64_t r = 0; r < shape[axis]; ++r) sum += x[(o * shape[axis] + r) * inner + i];
          expected.value.push_back(sum);
        }
      }
      expect_matches(reduce(TUFF_REDUCE_SUM, x, shape, axis), expected);
    }
  }
}

TEST_P(SemanticsOperations, ReduceOfAnEmptyAxis) {
  for (const auto& [shape, axis] : {std::pair<std::vector<uint64_t>, uint32_t>{{3, 0}, 1}, {{0, 3}, 0}, {{0}, 0}}) {
    const size_t count = shape.size() == 1 ? 1 : 3;
    expect_same_bits(reduce(TUFF_REDUCE_SUM, {}, shape, axis), std::vector<float>(count, 0.0f));
    expect_same_bits(reduce(TUFF_REDUCE_PROD, {}, shape, axis), std::vector<float>(count, 1.0f));
    expect_same_bits(reduce(TUFF_REDUCE_MEAN, {}, shape, axis), std::vector<float>(count, kNaN));
    const Tensor output(context(), count);
    for (int32_t op : {TUFF_REDUCE_MAX, TUFF_REDUCE_MIN}) {
      EXPECT_FAILS(tuff_reduce(context(), F, op, 0, output, shape.data(), static_cast<uint32_t>(shape.size()), axis),
                   kArgument, "tuff_reduce", "axis");
    }
    output.expect_poisoned();
  }
}

TEST_P(SemanticsOperations, ReduceMaxAndMinPropagateNaN) {
  for (uint64_t length : {1, 5, 64, 1000, 70'001}) {
    for (uint64_t inner : {1, 3}) {
      for (uint64_t place : {uint64_t{0}, length / 2, length - 1}) {
        std::vector<float> x = uniforms(2 * length * inner, -1, 1, length);
        x[(length + place) * inner] = kNaN;  // second row, first column
        for (int32_t op : {TUFF_REDUCE_MAX, TUFF_REDUCE_MIN}) {
          const std::vector<float> got = reduce(op, x, {2, length, inner}, 1);
          for (uint64_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i == inner) << length << " " << i;
        }
      }
    }
  }
}

TEST_P(SemanticsOperations, ReduceMaxAndMinOfInfinities) {
  expect_same_bits(reduce(TUFF_REDUCE_MAX, std::vector<float>(100, -kInfinity), {100}, 0), {-kInfinity});
  expect_same_bits(reduce(TUFF_REDUCE_MIN, std::vector<float>(100, kInfinity), {100}, 0), {kInfinity});
  expect_same_bits(reduce(TUFF_REDUCE_MAX, {-FLT_MAX, -kInfinity}, {2}, 0), {-FLT_MAX});
}

// A serial sum in f32 would stop growing at about 2^24 times the terms; the partial sums of a tree do not.
TEST_P(SemanticsOperations, ReduceSumsAreTrees) {
  const uint64_t n = reduced() ? (uint64_t{1} << 20) : (uint64_t{1} << 25);
  const std::vector<float> tenths(n, 0.1f);
  for (uint64_t inner : {1, 4}) {
    const std::vector<float> got = reduce(TUFF_REDUCE_SUM, tenths, {n / inner, inner}, 0);
    const double exact = 0.1f * static_cast<double>(n / inner);
    for (float value : got) EXPECT_LE(std::fabs(value - exact), gamma(sum_depth(n / inner)) * exact);
  }
}

// --- unary and binary ------------------------------------------------------------------------------------

TEST_P(SemanticsOperations, AbsAndNegAreExact) {
  const std::vector<float> x = {0.0f, -0.0f, 1.5f, -1.5f, FLT_MAX, -FLT_MAX, kInfinity, -kInfinity, FLT_MIN, -FLT_MIN};
  std::vector<float> absolute, negated;
  for (float value : x) {
    absolute.push_back(from_bits(bits(value) & 0x7fffffffu));
    negated.push_back(from_bits(bits(value) ^ 0x80000000u));
  }
  expect_same_bits(unary(TUFF_UNARY_ABS, x), absolute);
  expect_same_bits(unary(TUFF_UNARY_NEG, x), negated);
  for (float value : unary(TUFF_UNARY_ABS, {kNaN, -kNaN})) EXPECT_EQ(bits(value), bits(kNaN));
  const auto nan = unary(TUFF_UNARY_NEG, {kNaN, -kNaN});
  EXPECT_EQ(bits(nan[0]), bits(-kNaN));
  EXPECT_EQ(bits(nan[1]), bits(kNaN));
}

TEST_P(SemanticsOperations, ReluOfNaNIsNaN) {
  const auto got = unary(TUFF_UNARY_RELU, {kNaN, -kNaN, -1.0f, 2.0f, -kInfinity, kInfinity});
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_TRUE(std::isnan(got[1]));
  EXPECT_EQ(std::vector<float>(got.begin() + 2, got.end()), (std::vector<float>{0, 2, 0, kInfinity}));
}

TEST_P(SemanticsOperations, MaxAndMinPropagateNaN) {
  const std::vector<float> a = {kNaN, 1, kNaN, kNaN, kInfinity, -kInfinity, 3},
                           b = {1, kNaN, kNaN, -kInfinity, kNaN, 5, 4};
  const auto highest = binary(TUFF_BINARY_MAX, a, b), lowest = binary(TUFF_BINARY_MIN, a, b);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(highest[i]) && std::isnan(lowest[i])) << i;
  EXPECT_EQ(highest[5], 5);
  EXPECT_EQ(lowest[5], -kInfinity);
  EXPECT_EQ(highest[6], 4);
  EXPECT_EQ(lowest[6], 3);
}

TEST_P(SemanticsOperations, ExpTanhSigmoidDoNotOverflowIntoNaN) {
  expect_same_bits(unary(TUFF_UNARY_TANH, {100, -100, 1e30f, -1e30f, kInfinity, -kInfinity}), {1, -1, 1, -1, 1, -1});
  expect_same_bits(unary(TUFF_UNARY_SIGMOID, {-200, 200, -1e30f, 1e30f, -kInfinity, kInfinity}), {0, 1, 0, 1, 0, 1});
  expect_same_bits(unary(TUFF_UNARY_EXP, {200, -200, 1e30f, -1e30f, kInfinity, -kInfinity}),
                   {kInfinity, 0, kInfinity, 0, kInfinity, 0});
  for (int32_t op : {TUFF_UNARY_TANH, TUFF_UNARY_SIGMOID, TUFF_UNARY_EXP, TUFF_UNARY_LOG, TUFF_UNARY_SQRT}) {
    EXPECT_TRUE(std::isnan(unary(op, {kNaN})[0])) << op;
  }
}

TEST_P(SemanticsOperations, SqrtAndLogOfNegativesAreNaN) {
  for (int32_t op : {TUFF_UNARY_SQRT, TUFF_UNARY_LOG}) {
    for (float value : unary(op, {-1, -1e-30f, -FLT_MAX, -kInfinity})) EXPECT_TRUE(std::isnan(value));
  }
  EXPECT_EQ(unary(TUFF_UNARY_LOG, {0, -0.0f, 1, kInfinity}),
            (std::vector<float>{-kInfinity, -kInfinity, 0, kInfinity}));
  EXPECT_EQ(unary(TUFF_UNARY_SQRT, {0, 1, 4, kInfinity}), (std::vector<float>{0, 1, 2, kInfinity}));
}

TEST_P(SemanticsOperations, DivisionFollowsIeee754) {
  const auto got = binary(TUFF_BINARY_DIV, {1, -1, 1, 0, kInfinity, 1, -1, kInfinity, kNaN, 6},
                          {0, 0, -0.0f, 0, kInfinity, kInfinity, kInfinity, 2, 1, 3});
  expect_same_bits(got, {kInfinity, -kInfinity, -kInfinity, kNaN, kNaN, 0.0f, -0.0f, kInfinity, kNaN, 2});
}

TEST_P(SemanticsOperations, DenormalsArePreservedOrFlushedWithTheirSign) {
  const float tiny = from_bits(5);
  for (const auto& [op, sign] : {std::pair{TUFF_UNARY_ABS, 1}, {TUFF_UNARY_NEG, -1}, {TUFF_UNARY_RELU, 1}}) {
    const float got = unary(op, {tiny})[0], want = static_cast<float>(sign) * tiny;
    EXPECT_TRUE(bits(got) == bits(want) || bits(got) == bits(std::copysign(0.0f, want))) << got;
  }
  const std::vector<float> sums = binary(TUFF_BINARY_ADD, {tiny, -tiny, FLT_MIN}, {tiny, -tiny, -1.5f * FLT_MIN});
  const float wants[] = {2 * tiny, -2 * tiny, -0.5f * FLT_MIN};
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(bits(sums[i]) == bits(wants[i]) || bits(sums[i]) == bits(std::copysign(0.0f, wants[i]))) << sums[i];
  }
}

TUFF_ON_BACKENDS(SemanticsOperations);

}  // namespace
}  // namespace tuff_test::semantics_operations_test
