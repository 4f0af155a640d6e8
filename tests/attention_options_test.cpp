// The options of tuff_attention_ex: types, shared heads, layouts, bias, mask, soft cap, window, lengths, log-sum-exp.
#include <cfloat>
#include <cmath>

#include "support/attention_problem.hpp"
#include "support/stored.hpp"

namespace tuff_test::attention_options_test {
namespace {

constexpr int32_t kTopLeft = TUFF_CAUSAL_TOP_LEFT, kBottomRight = TUFF_CAUSAL_BOTTOM_RIGHT;
constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

std::vector<AttentionShape> cases() {
  return {
      // types: read as vec4 and one by one
      {.heads = 2, .seq_q = 33, .seq_kv = 31, .head_dim = 32, .dtype = TUFF_F16},
      {.heads = 2, .seq_q = 17, .seq_kv = 40, .head_dim = 24, .causal = kBottomRight, .shift = 2, .dtype = TUFF_BF16},
      {.batch = 2, .heads = 3, .seq_q = 7, .seq_kv = 11, .head_dim = 13, .dtype = TUFF_BF16},
      {.seq_q = 20, .seq_kv = 70, .head_dim = 30, .causal = kTopLeft, .shift = 6, .dtype = TUFF_F16},
      {.batch = 1, .heads = 2, .seq_q = 65, .seq_kv = 65, .head_dim = 128, .causal = kTopLeft, .dtype = TUFF_F16},
      {.batch = 1, .heads = 1, .seq_q = 70, .seq_kv = 200, .head_dim = 64, .dtype = TUFF_BF16},
      {.seq_q = 30, .seq_kv = 90, .head_dim = 32, .spread = 30, .dtype = TUFF_F16},
      // heads that share keys, values of a different size, other layouts
      {.batch = 2, .heads = 6, .seq_q = 9, .seq_kv = 20, .head_dim = 16, .kv_heads = 2},
      {.batch = 2, .heads = 4, .seq_q = 9, .seq_kv = 20, .head_dim = 16, .causal = kBottomRight, .kv_heads = 1},
      {.batch = 2, .heads = 3, .seq_q = 9, .seq_kv = 20, .head_dim = 24, .head_dim_v = 8, .layout = Layout::rows_first},
      {.batch = 1, .heads = 2, .seq_q = 11, .seq_kv = 9, .head_dim = 7, .head_dim_v = 30},
      {.batch = 2, .heads = 4, .seq_q = 1, .seq_kv = 300, .head_dim = 32, .kv_heads = 2, .layout = Layout::roomy},
      {.batch = 2,
       .heads = 4,
       .seq_q = 19,
       .seq_kv = 33,
       .head_dim = 8,
       .causal = kTopLeft,
       .kv_heads = 2,
       .layout = Layout::roomy},
      {.batch = 2,
       .heads = 2,
       .seq_q = 40,
       .seq_kv = 40,
       .head_dim = 32,
       .dtype = TUFF_F16,
       .layout = Layout::rows_first},
      // one row of heads that share keys, with split-KV
      {.batch = 2, .heads = 8, .seq_q = 1, .seq_kv = 1500, .head_dim = 32, .kv_heads = 2, .layout = Layout::roomy},
      {.batch = 6,
       .heads = 4,
       .seq_q = 1,
       .seq_kv = 900,
       .head_dim = 16,
       .causal = kBottomRight,
       .dtype = TUFF_F16,
       .kv_heads = 1,
       .bias_type = TUFF_F32,
       .left = 300,
       .lengths = true,
       .lse = true},
      // each option by itself
      {.batch = 2, .heads = 2, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .lse = true},
      {.batch = 2, .heads = 2, .seq_q = 20, .seq_kv = 9, .head_dim = 16, .causal = kBottomRight, .lse = true},
      {.heads = 2, .seq_q = 60, .seq_kv = 60, .head_dim = 16, .left = 7},
      {.heads = 2, .seq_q = 60, .seq_kv = 60, .head_dim = 16, .left = 5, .right = 3, .lse = true},
      {.heads = 2, .seq_q = 30, .seq_kv = 90, .head_dim = 16, .causal = kBottomRight, .left = 20},
      {.heads = 2, .seq_q = 40, .seq_kv = 25, .head_dim = 16, .right = 1, .lse = true},
      {.heads = 1, .seq_q = 90, .seq_kv = 20, .head_dim = 16, .left = 1, .lse = true},
      {.batch = 6, .heads = 2, .seq_q = 20, .seq_kv = 50, .head_dim = 16, .lengths = true, .lse = true},
      {.batch = 6, .heads = 2, .seq_q = 20, .seq_kv = 50, .head_dim = 16, .causal = kBottomRight, .lengths = true},
      {.batch = 6,
       .heads = 4,
       .seq_q = 1,
       .seq_kv = 70,
       .head_dim = 16,
       .kv_heads = 2,
       .layout = Layout::roomy,
       .lengths = true},
      {.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .bias_type = TUFF_F32, .lse = true},
      {.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .bias_type = TUFF_F32, .same = Same::batches},
      {.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .bias_type = TUFF_F32, .same = Same::heads},
      {.batch = 2,
       .heads = 3,
       .seq_q = 20,
       .seq_kv = 35,
       .head_dim = 16,
       .scale = 2,
       .bias_type = TUFF_F32,
       .same = Same::all},
      {.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .mask = true, .lse = true},
      {.batch = 2,
       .heads = 3,
       .seq_q = 20,
       .seq_kv = 35,
       .head_dim = 16,
       .causal = kTopLeft,
       .mask = true,
       .same = Same::queries},
      {.batch = 2, .heads = 3, .seq_q = 20, .seq_kv = 35, .head_dim = 16, .spread = 5, .softcap = 2, .lse = true},
      // several options together
      {.batch = 6,
       .heads = 4,
       .seq_q = 33,
       .seq_kv = 47,
       .head_dim = 20,
       .causal = kBottomRight,
       .dtype = TUFF_F16,
       .kv_heads = 2,
       .head_dim_v = 12,
       .layout = Layout::rows_first,
       .softcap = 3,
       .bias_type = TUFF_F16,
       .mask = true,
       .same = Same::heads,
       .left = 30,
       .lengths = true,
       .lse = true},
      {.batch = 2,
       .heads = 2,
       .seq_q = 9,
       .seq_kv = 30,
       .head_dim = 9,
       .dtype = TUFF_BF16,
       .bias_type = TUFF_F32,
       .same = Same::queries,
       .right = 4,
       .lse = true},
      // many rows on matrix units, with bias and mask read in pieces and one by one
      {.batch = 2,
       .heads = 4,
       .seq_q = 130,
       .seq_kv = 304,
       .head_dim = 64,
       .dtype = TUFF_F16,
       .kv_heads = 2,
       .bias_type = TUFF_F16,
       .lse = true},
      {.heads = 2, .seq_q = 130, .seq_kv = 277, .head_dim = 64, .dtype = TUFF_F16, .bias_type = TUFF_F16, .lse = true},
      {.batch = 2,
       .heads = 2,
       .seq_q = 70,
       .seq_kv = 272,
       .head_dim = 128,
       .causal = kBottomRight,
       .dtype = TUFF_F16,
       .bias_type = TUFF_F32,
       .same = Same::heads,
       .left = 37,
       .lse = true},
      {.batch = 2,
       .heads = 2,
       .seq_q = 65,
       .seq_kv = 256,
       .head_dim = 32,
       .dtype = TUFF_BF16,
       .bias_type = TUFF_BF16,
       .same = Same::queries},
      {.heads = 2, .seq_q = 200, .seq_kv = 400, .head_dim = 128, .dtype = TUFF_BF16, .mask = true, .lse = true},
      {.heads = 2, .seq_q = 64, .seq_kv = 131, .head_dim = 40, .dtype = TUFF_F16, .mask = true, .lse = true},
      {.heads = 1,
       .seq_q = 100,
       .seq_kv = 288,
       .head_dim = 128,
       .causal = kTopLeft,
       .dtype = TUFF_F16,
       .bias_type = TUFF_F16,
       .mask = true,
       .left = 90},
      {.heads = 2, .seq_q = 64, .seq_kv = 150, .head_dim = 64, .dtype = TUFF_F16, .softcap = 30, .lse = true},
      {.heads = 2,
       .seq_q = 64,
       .seq_kv = 150,
       .head_dim = 64,
       .spread = 5,
       .dtype = TUFF_BF16,
       .softcap = 2,
       .lse = true},
      {.batch = 6,
       .heads = 2,
       .seq_q = 90,
       .seq_kv = 144,
       .head_dim = 256,
       .causal = kBottomRight,
       .dtype = TUFF_F16,
       .kv_heads = 1,
       .layout = Layout::rows_first,
       .softcap = 3,
       .bias_type = TUFF_F32,
       .mask = true,
       .left = 50,
       .lengths = true,
       .lse = true},
      {.batch = 6,
       .heads = 2,
       .seq_q = 60,
       .seq_kv = 112,
       .head_dim = 128,
       .dtype = TUFF_BF16,
       .softcap = 4,
       .bias_type = TUFF_BF16,
       .mask = true,
       .right = 30,
       .lengths = true,
       .lse = true},
      // more keys than the loops of a CPU driver allow, and a window that begins after the first range
      {.seq_q = 9, .seq_kv = 30'001, .head_dim = 128, .causal = kBottomRight, .left = 5000, .lse = true},
  };
}

using AttentionOptions = Table<AttentionShape>;
TEST_P(AttentionOptions, WithinBound) { run_attention(context(), row()); }
TUFF_TABLE(AttentionOptions, AttentionShape, cases());

class AttentionDescriptor : public OnBackend {
 protected:
  // 2 x 4 heads with 3 rows and 5 keys, head_dim 8, all in one buffer of valid numbers.
  tuff_attention_desc desc() {
    tuff_attention_desc d{};
    d.struct_size = sizeof d;
    d.dtype = TUFF_F32;
    d.batch = 2, d.heads = 4, d.seq_q = 3, d.seq_kv = 5, d.head_dim = 8;
    d.q = in_, d.k = in_, d.v = in_, d.o = out_;
    return d;
  }
  void expect_refused(const tuff_attention_desc& d, tuff_status status, const char* word) {
    EXPECT_FAILS(tuff_attention_ex(context(), &d), status, "tuff_attention_ex", word);
  }
  Tensor in_{context(), std::vector<float>(400, 0.5f)}, out_{context(), 400};
};

TEST_P(AttentionDescriptor, RefusesWhatIsWrong) {
  const auto wrong = [&](auto change, const char* word, tuff_status status = kArgument) {
    tuff_attention_desc d = desc();
    change(d);
    expect_refused(d, status, word);
  };
  wrong([](auto& d) { d.dtype = TUFF_F64; }, "f64", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.dtype = 77; }, "dtype");
  wrong([](auto& d) { d.causal = 7; }, "causal");
  wrong([](auto& d) { d.reserved = 1; }, "reserved");
  wrong([](auto& d) { d.reserved2 = 1; }, "reserved2");
  wrong([](auto& d) { d.kv_heads = 3; }, "kv_heads");
  wrong([](auto& d) { d.kv_heads = 8; }, "kv_heads");
  wrong([](auto& d) { d.head_dim_v = 1025; }, "head_dim_v", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.head_dim = 1025; }, "head_dim", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.softcap = -1; }, "softcap");
  wrong([](auto& d) { d.softcap = INFINITY; }, "softcap");
  wrong([](auto& d) { d.softcap = NAN; }, "softcap");
  wrong([](auto& d) { d.scale = -1; }, "scale");
  wrong([](auto& d) { d.bias_type = TUFF_F32 + 1, d.bias = d.q; }, "bias_type");
  wrong([](auto& d) { d.q_strides[1] = 1000; }, "q");
  wrong([](auto& d) { d.k_strides[2] = 1000; }, "k");
  wrong([](auto& d) { d.v_strides[0] = 1000; }, "v");
  wrong([](auto& d) { d.o_strides[0] = 1000; }, "o");
  wrong([](auto& d) { d.q_strides[0] = ~uint64_t{0}; }, "q");
  wrong([](auto& d) { d.o_strides[2] = 7; }, "o_strides");
  wrong([](auto& d) { d.o_strides[1] = 16; }, "o_strides");
  wrong([](auto& d) { d.o_strides[0] = 8; }, "o_strides");
  wrong([](auto& d) { d.bias = d.q, d.bias_strides[2] = 1000; }, "bias");
  wrong([](auto& d) { d.mask = d.q, d.mask_strides[0] = 4000; }, "mask");
  wrong([](auto& d) { d.bias = d.o; }, "bias");
  wrong([](auto& d) { d.mask = d.o; }, "mask");
  wrong([](auto& d) { d.q_lengths = d.o; }, "q_lengths");
  wrong([](auto& d) { d.kv_lengths = d.o; }, "kv_lengths");
  wrong([](auto& d) { d.lse = d.o; }, "lse");
  wrong([](auto& d) { d.lse = d.v; }, "lse");
  const OwnBuffer one(context(), 4);
  wrong([&](auto& d) { d.lse = one; }, "lse");
  wrong([&](auto& d) { d.kv_lengths = one; }, "kv_lengths");
  out_.expect_poisoned();
  in_.expect_unchanged(std::vector<float>(400, 0.5f));
}

// A caller that was compiled with the first version of the structure.
TEST_P(AttentionDescriptor, OlderStructureIsRead) {
  tuff_attention_desc d = desc();
  d.struct_size = offsetof(tuff_attention_desc, kv_heads);
  d.kv_heads = 3;  // beyond struct_size
  ASSERT_OK(tuff_attention_ex(context(), &d));
  const std::vector<float> got = out_.read();
  for (int i = 0; i < 2 * 4 * 3 * 8; ++i) EXPECT_NEAR(got[i], 0.5f, 0x1p-20f);
}

TEST_P(AttentionDescriptor, NothingToDo) {
  for (int which : {0, 1}) {
    tuff_attention_desc d = desc();
    (which == 0 ? d.batch : d.heads) = 0;
    d.q = d.k = d.v = d.o = 0;
    EXPECT_OK(tuff_attention_ex(context(), &d));
  }
  out_.expect_poisoned();
}
TUFF_ON_BACKENDS(AttentionDescriptor);

class AttentionHidden : public OnBackend {
 protected:
  // NaN in keys and values that are masked for a row does not propagate to it.
  void expect_hidden(AttentionShape shape, AttentionExtras extras, const std::vector<uint64_t>& hidden) {
    std::vector<float> q = rounded(shape.dtype, uniforms(shape.queries(), -1, 1, 1)),
                       k = rounded(shape.dtype, uniforms(shape.keys(), -1, 1, 2)),
                       v = rounded(shape.dtype, spreads(shape.values(), 3));
    for (const uint64_t key : hidden) {
      std::fill_n(k.begin() + static_cast<ptrdiff_t>(key * shape.head_dim), shape.head_dim, NAN);
      std::fill_n(v.begin() + static_cast<ptrdiff_t>(key * shape.dim_v()), shape.dim_v(), NAN);
    }
    run_attention(context(), shape, q, k, v, extras);
  }
};

TEST_P(AttentionHidden, KeysBehindTheEnd) {
  expect_hidden({.seq_q = 20, .seq_kv = 35, .head_dim = 16, .lengths = true, .lse = true},
                {.q_lengths = {20}, .kv_lengths = {30}}, {30, 31, 34});
}

TEST_P(AttentionHidden, EitherLengthAlone) {
  const AttentionShape shape{.seq_q = 20, .seq_kv = 35, .head_dim = 16, .lengths = true};
  expect_hidden(shape, {.kv_lengths = {30}}, {30, 31, 34});
  expect_hidden(shape, {.q_lengths = {7}}, {});
}

TEST_P(AttentionHidden, KeysBesideTheWindow) {
  // Every row sees a part of the middle keys.
  expect_hidden({.seq_q = 20, .seq_kv = 60, .head_dim = 16, .causal = kBottomRight, .left = 10}, {}, {0, 5, 30});
}

TEST_P(AttentionHidden, MaskedKeys) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const auto& [rows, keys] : {std::pair<uint64_t, uint64_t>{20, 35}, {64, 35}, {64, 48}}) {
      SCOPED_TRACE(testing::Message() << "type " << dtype << ", " << rows << " rows, " << keys << " keys");
      AttentionShape shape{.seq_q = rows, .seq_kv = keys, .head_dim = 16, .dtype = dtype};
      shape.mask = true, shape.same = Same::all, shape.lse = true;
      AttentionExtras extras;
      extras.mask.assign(keys, 1);
      extras.mask[3] = extras.mask[34] = 0;
      expect_hidden(shape, extras, {3, 34});
    }
  }
}

TEST_P(AttentionHidden, BiasOfMinusInfinity) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const auto& [rows, keys] : {std::pair<uint64_t, uint64_t>{20, 35}, {64, 35}, {64, 48}}) {
      SCOPED_TRACE(testing::Message() << "type " << dtype << ", " << rows << " rows, " << keys << " keys");
      AttentionShape shape{.seq_q = rows, .seq_kv = keys, .head_dim = 16, .dtype = dtype};
      shape.bias_type = keys == 48 ? dtype : int32_t{TUFF_F32}, shape.same = Same::all, shape.lse = true;
      AttentionExtras extras;
      extras.bias.assign(keys, 0.25f);
      extras.bias[0] = extras.bias[20] = -INFINITY;
      expect_hidden(shape, extras, {0, 20});
    }
  }
}

// Scores beyond f32 before and after the bias, and a cap far below them.
TEST_P(AttentionHidden, FiniteInputGivesFiniteOutput) {
  for (const int32_t dtype : {TUFF_F32, TUFF_BF16}) {
    for (const uint64_t rows : {5, 64}) {
      const AttentionShape shape{.seq_q = rows, .seq_kv = 40, .head_dim = 16};
      for (const double cap : {0.0, 30.0}) {
        SCOPED_TRACE(testing::Message() << "type " << dtype << ", " << rows << " rows, cap " << cap);
        const std::vector<float> hq = rounded(dtype, uniforms(shape.queries(), -1e25f, 1e25f, 1)),
                                 hk = rounded(dtype, uniforms(shape.keys(), -1e25f, 1e25f, 2));
        const StoredTensor q(context(), dtype, hq), k(context(), dtype, hk),
            v(context(), dtype, rounded(dtype, uniforms(shape.values(), -1, 1, 3))),
            o(context(), dtype, shape.results());
        const Tensor bias(context(), uniforms(40, -3e38f, 3e38f, 4)), lse(context(), rows);
        tuff_attention_desc d{};
        d.struct_size = sizeof d;
        d.dtype = dtype;
        d.q = q, d.k = k, d.v = v, d.o = o, d.bias = bias, d.lse = lse, d.bias_type = TUFF_F32;
        d.batch = d.heads = 1, d.seq_q = rows, d.seq_kv = 40, d.head_dim = 16;
        d.softcap = cap;
        ASSERT_OK(tuff_attention_ex(context(), &d));
        for (float value : o.read()) EXPECT_TRUE(std::isfinite(value)) << value;
        for (float value : lse.read()) EXPECT_FALSE(std::isnan(value)) << value;
      }
    }
  }
}

// The lowest finite number as a bias hides keys from rows that see others; in rows where all keys have it, they count
// the same, because the scores are lost in the sum.
TEST_P(AttentionHidden, LowestBiasOfAllKeysIsTheMean) {
  constexpr uint64_t kKeys = 304, kDim = 64, kRows = 64;
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) {
    for (const int32_t bias_type : {TUFF_F32, TUFF_BF16}) {
      if (bias_type != TUFF_F32 && bias_type != dtype) continue;
      SCOPED_TRACE(testing::Message() << "type " << dtype << ", bias of type " << bias_type);
      const float lowest = bias_type == TUFF_F32 ? -FLT_MAX : -0x1.fep127f;
      std::vector<float> bias(kRows * kKeys, lowest), v(kKeys * kDim);
      for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i * 37 % 17) / 8 - 1;  // exact in bf16
      // Every third row sees key 200, the next one key 0 as well.
      for (uint64_t row = 0; row < kRows; ++row) {
        if (row % 3 == 1) bias[row * kKeys + 200] = 0;
        if (row % 3 == 2) bias[row * kKeys + 200] = bias[row * kKeys] = 1e8f;
      }
      const StoredTensor q(context(), dtype, rounded(dtype, uniforms(kRows * kDim, -1, 1, 1))),
          k(context(), dtype, std::vector<float>(kKeys * kDim, 0.5f)), tv(context(), dtype, v),
          tb(context(), bias_type, rounded(bias_type, bias)), o(context(), dtype, kRows * kDim);
      const Tensor lse(context(), kRows);
      tuff_attention_desc d{};
      d.struct_size = sizeof d;
      d.dtype = dtype, d.bias_type = bias_type;
      d.q = q, d.k = k, d.v = tv, d.o = o, d.bias = tb, d.lse = lse;
      d.batch = d.heads = 1, d.seq_q = kRows, d.seq_kv = kKeys, d.head_dim = kDim;
      d.bias_strides[2] = kKeys;
      ASSERT_OK(tuff_attention_ex(context(), &d));
      const std::vector<float> result = o.read(), sums = lse.read();
      for (uint64_t row = 0; row < kRows; ++row) {
        for (uint64_t column = 0; column < kDim; ++column) {
          double expected = 0;
          for (uint64_t key = 0; key < kKeys && row % 3 == 0; ++key) expected += v[key * kDim + column] / 304.0;
          if (row % 3 == 1) expected = v[200 * kDim + column];
          if (row % 3 == 2) expected = (v[200 * kDim + column] + v[column]) / 2;
          // Sums of at most 304 numbers up to 1, a reciprocal and products; weights and the result rounded to the type.
          const double unit = dtype == TUFF_F16 ? 0x1p-11 : 0x1p-8;
          ASSERT_NEAR(result[row * kDim + column], expected, 308 * 0x1p-24 + 2 * unit * std::abs(expected))
              << "row " << row << ", column " << column;
        }
        EXPECT_TRUE(std::isfinite(sums[row])) << "row " << row;
      }
    }
  }
}

// Scores that exceed f32 although their factors fit f32 and bf16: the largest wins, terms that cancel give 0, the
// smallest has no weight. With few rows and with many.
TEST_P(AttentionHidden, ScoresBeyondF32CountAsTheyAre) {
  constexpr uint64_t kKeys = 70, kDim = 64;
  constexpr float kBig = 0x1p66f;
  for (const int32_t dtype : {TUFF_F32, TUFF_BF16}) {
    for (const uint64_t rows : {3, 40}) {
      SCOPED_TRACE(testing::Message() << "type " << dtype << ", " << rows << " rows");
      std::vector<float> q(rows * kDim), k(kKeys * kDim), v(kKeys * kDim);
      for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i * 37 % 17) / 8 - 1;  // exact in bf16
      k[5 * kDim] = kBig;
      k[7 * kDim + 1] = kBig, k[7 * kDim + 2] = -kBig, k[9 * kDim + 1] = -kBig;
      k[11 * kDim + 3] = kBig;
      std::vector<std::vector<uint64_t>> counted(rows);  // keys whose values are averaged
      for (uint64_t row = 0; row < rows; ++row) {
        float* own = &q[row * kDim];
        uint64_t without = 0;
        switch (row % 3) {
          case 0: own[0] = kBig, counted[row] = {5}; continue;
          case 1: own[1] = own[2] = kBig, without = 9; break;
          default: own[3] = -kBig, without = 11; break;
        }
        for (uint64_t key = 0; key < kKeys; ++key) {
          if (key != without) counted[row].push_back(key);
        }
      }
      const StoredTensor tq(context(), dtype, q), tk(context(), dtype, k), tv(context(), dtype, v),
          o(context(), dtype, rows * kDim);
      tuff_attention_desc d{};
      d.struct_size = sizeof d;
      d.dtype = dtype;
      d.q = tq, d.k = tk, d.v = tv, d.o = o;
      d.batch = d.heads = 1, d.seq_q = rows, d.seq_kv = kKeys, d.head_dim = kDim;
      ASSERT_OK(tuff_attention_ex(context(), &d));
      const std::vector<float> result = o.read();
      for (uint64_t row = 0; row < rows; ++row) {
        for (uint64_t column = 0; column < kDim; ++column) {
          double expected = 0;
          for (const uint64_t key : counted[row]) expected += v[key * kDim + column];
          expected /= static_cast<double>(counted[row].size());
          // Sums of at most 70 numbers up to 1 and a division, then one rounding to the type.
          const double unit = dtype == TUFF_F32 ? 0x1p-24 : 0x1p-8;
          EXPECT_NEAR(result[row * kDim + column], expected, 72 * 0x1p-24 + unit * std::abs(expected))
              << "row " << row << ", column " << column;
        }
      }
    }
  }
}

// A score of minus infinity masks its key, whatever produced it. Rows in which every score is minus infinity are zero,
// on every kernel.
TEST_P(AttentionHidden, ScoresOfMinusInfinityHideTheirKeys) {
  constexpr uint64_t kDim = 64;
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const auto& [rows, keys] : {std::pair<uint64_t, uint64_t>{1, 70}, {3, 300}, {40, 70}, {64, 80}}) {
      for (const bool extended : {false, true}) {
        SCOPED_TRACE(testing::Message() << "type " << dtype << ", " << rows << " rows, " << keys << " keys, "
                                        << (extended ? "bias and mask" : "plain"));
        // Key elements are -1, which gives scores of -infinity, except for +1 of key 5 in the second column, which
        // every second row reads.
        std::vector<float> q(rows * kDim, 0.25f), k(keys * kDim, -1.0f);
        const std::vector<float> v = rounded(dtype, uniforms(keys * kDim, -1, 1, 3));
        for (uint64_t row = 0; row < rows; ++row) q[row * kDim + row % 2] = INFINITY;
        for (uint64_t key = 0; key < keys; ++key) k[key * kDim + 1] = key == 5 ? 1.0f : -1.0f;
        const StoredTensor tq(context(), dtype, q), tk(context(), dtype, k), tv(context(), dtype, v),
            o(context(), dtype, rows * kDim), bias(context(), dtype, std::vector<float>(keys, 0.5f));
        const TypedTensor mask(context(), TUFF_U8, Bytes(keys, 1));
        const Tensor lse(context(), rows);
        tuff_attention_desc d{};
        d.struct_size = sizeof d;
        d.dtype = dtype;
        d.q = tq, d.k = tk, d.v = tv, d.o = o;
        d.batch = d.heads = 1, d.seq_q = rows, d.seq_kv = keys, d.head_dim = kDim;
        if (extended) d.bias = bias, d.mask = mask, d.lse = lse;
        ASSERT_OK(tuff_attention_ex(context(), &d));
        const std::vector<float> result = o.read();
        for (uint64_t i = 0; i < result.size(); ++i) {
          // The only unmasked key has all the weight.
          ASSERT_EQ(result[i], i / kDim % 2 == 0 ? 0 : v[5 * kDim + i % kDim]) << "row " << i / kDim;
        }
        if (!extended) continue;
        for (uint64_t row = 0; row < rows; row += 2) EXPECT_EQ(lse.read()[row], -INFINITY) << "row " << row;
      }
    }
  }
}
// An infinity in the value of one key reaches every row that sees the key, in that column. This includes the last key,
// whose value kernels may read again for keys beyond the end. The numbers of keys are at and around those that kernels
// process at a time.
TEST_P(AttentionHidden, InfiniteValuesReachTheirRowsAsInfinity) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const uint64_t dim : {5, 64}) {
      for (const auto& [rows, keys] : {std::pair<uint64_t, uint64_t>{1, 1}, {1, 70}, {3, 301}, {40, 33}, {40, 70}}) {
        for (const uint64_t key : {uint64_t{0}, keys - 1}) {
          SCOPED_TRACE(testing::Message() << "type " << dtype << ", head_dim " << dim << ", " << rows << " rows, "
                                          << keys << " keys, infinity in key " << key);
          std::vector<float> v = rounded(dtype, uniforms(keys * dim, -1, 1, 3));
          v[key * dim + 3] = INFINITY, v[key * dim + 4] = -INFINITY;
          const StoredTensor q(context(), dtype, rounded(dtype, uniforms(rows * dim, -1, 1, 1))),
              k(context(), dtype, rounded(dtype, uniforms(keys * dim, -1, 1, 2))), tv(context(), dtype, v),
              o(context(), dtype, rows * dim);
          ASSERT_OK(tuff_attention(context(), dtype, q, k, tv, o, 1, 1, rows, keys, dim, 0.125, TUFF_CAUSAL_NONE));
          const std::vector<float> result = o.read();
          for (uint64_t i = 0; i < result.size(); ++i) {
            const uint64_t column = i % dim;
            if (column == 3 || column == 4) {
              ASSERT_EQ(result[i], column == 3 ? INFINITY : -INFINITY) << "row " << i / dim;
            } else {
              ASSERT_TRUE(std::isfinite(result[i])) << "row " << i / dim << ", column " << column;
            }
          }
        }
      }
    }
  }
}

// An infinite score counts as the largest number: its key has all the weight, and the row's log-sum-exp is that number,
// whatever the scale.
TEST_P(AttentionHidden, LogSumExpOfAnInfiniteScoreIsTheLargestNumber) {
  constexpr uint64_t kDim = 16;
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const double scale : {0.125, 1.0, 4.0}) {
      for (const auto& [rows, keys] : {std::pair<uint64_t, uint64_t>{1, 300}, {3, 70}, {40, 70}}) {
        for (const bool with_bias : {false, true}) {
          SCOPED_TRACE(testing::Message() << "type " << dtype << ", scale " << scale << ", " << rows << " rows"
                                          << (with_bias ? ", bias" : ""));
          std::vector<float> k(keys * kDim, 0.0f);
          for (uint64_t key = 0; key < keys; ++key) k[key * kDim] = key == 7 ? INFINITY : 0.5f;
          const std::vector<float> v = rounded(dtype, uniforms(keys * kDim, -1, 1, 3));
          const StoredTensor q(context(), dtype, std::vector<float>(rows * kDim, 1.0f)), tk(context(), dtype, k),
              tv(context(), dtype, v), o(context(), dtype, rows * kDim),
              bias(context(), dtype, std::vector<float>(keys, 0.5f));
          const Tensor lse(context(), rows);
          tuff_attention_desc d{};
          d.struct_size = sizeof d;
          d.dtype = dtype;
          d.q = q, d.k = tk, d.v = tv, d.o = o, d.lse = lse;
          d.batch = d.heads = 1, d.seq_q = rows, d.seq_kv = keys, d.head_dim = kDim, d.scale = scale;
          if (with_bias) d.bias = bias;
          ASSERT_OK(tuff_attention_ex(context(), &d));
          for (const float value : lse.read()) EXPECT_EQ(value, FLT_MAX);
          const std::vector<float> result = o.read();
          for (uint64_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], v[7 * kDim + i % kDim]);
        }
      }
    }
  }
}
TUFF_ON_BACKENDS(AttentionHidden);

}  // namespace
}  // namespace tuff_test::attention_options_test
