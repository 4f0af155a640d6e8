// Products with quantised weights, and of quantised numbers, within their bounds.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "support/bounds.hpp"
#include "support/quantised.hpp"
#include "support/tensor.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::quant_products_test {
namespace {

using namespace quantised;

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;

// The fields of a call that tables of both kinds have.
template <typename Case>
tuff_qgemm_desc desc_of(const Case& r) {
  tuff_qgemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = r.format, desc.a_type = r.a_type, desc.c_type = r.c_type, desc.scale_type = r.scale_type;
  desc.granularity = r.granularity, desc.block_size = r.block, desc.activation = r.activation;
  desc.m = r.m, desc.n = r.n, desc.k = r.k, desc.alpha = r.alpha;
  desc.lda = r.k + r.pad, desc.ldc = r.n + r.pad, desc.ld_residual = r.n + 2 * r.pad;
  return desc;
}

// A sum of products times alpha, the sum of their magnitudes, and how far the sum may be off before the epilogue.
struct Sum {
  double value, magnitude, bound;
};

// Compares C with the sums that `sum_of(i, j)` gives, after the epilogue. What lies between C's rows stays poisoned.
// The error of the epilogue: its additions, the activation (twice its argument's error is more than any of these
// functions' slopes, plus its own error), and C's rounding.
template <typename Case, typename SumOf>
void expect_products(const Case& r, const Bytes& got, const Bytes& bias, const Bytes& residual, const SumOf& sum_of) {
  const tuff_qgemm_desc desc = desc_of(r);
  for (uint64_t i = 0; i < r.m; ++i) {
    for (uint64_t j = 0; j < desc.ldc; ++j) {
      const uint64_t at = i * desc.ldc + j;
      if (j >= r.n) {
        if (i + 1 < r.m) {
          ASSERT_TRUE(is_poison(r.c(), got, at)) << "between rows: " << i << ", " << j;
        }
        continue;
      }
      Sum sum = sum_of(i, j);
      const auto add = [&](double more) { sum.value += more, sum.magnitude += std::fabs(more); };
      if (r.bias) add(element(r.c(), bias, j));
      if (r.residual) add(element(r.c(), residual, i * desc.ld_residual + j));
      double value = sum.value, error = sum.bound + sum.magnitude * gamma(3);
      if (r.activation == TUFF_ACTIVATION_RELU) value = std::fmax(value, 0);
      if (r.activation == TUFF_ACTIVATION_GELU) value = value * 0.5 * std::erfc(-value * M_SQRT1_2);
      if (r.activation == TUFF_ACTIVATION_SILU) value = value / (1 + std::exp(-value));
      if (r.activation != TUFF_ACTIVATION_NONE) error = 2 * error + 8 * kU * std::fabs(value);
      error += unit_roundoff(r.c()) * (std::fabs(value) + error) + (r.c() == TUFF_F16 ? 0x1p-25 : 0x1p-149);
      ASSERT_FALSE(is_poison(r.c(), got, at)) << i << ", " << j;
      ASSERT_NEAR(element(r.c(), got, at), value, error) << i << ", " << j;
    }
  }
}

struct ProductCase {
  int32_t format;
  uint64_t m, n, k;
  int32_t granularity = TUFF_QUANT_PER_TENSOR;
  uint64_t block = 0;
  bool zeros = false;
  int32_t a_type = TUFF_F32, c_type = 0, scale_type = 0, activation = TUFF_ACTIVATION_NONE;
  bool bias = false, residual = false;
  double alpha = 0;
  uint64_t pad = 0, shift = 0;

  std::string name() const {
    std::string text = format_name(format);
    for (const uint64_t size : {m, n, k}) text += "_" + std::to_string(size);
    text += "_by" + std::to_string(granularity) + "_" + std::to_string(block);
    for (const int32_t type : {a_type, c(), scale()}) text += std::string("_") + name_of(type);
    return text + (zeros ? "_zeros" : "") + (bias ? "_bias" : "") + (residual ? "_residual" : "") + "_act" +
           std::to_string(activation) + (alpha != 0 ? "_alpha" : "") + "_pad" + std::to_string(pad) + "_shift" +
           std::to_string(shift);
  }
  double work() const { return static_cast<double>(m * n) * static_cast<double>(k); }
  int32_t c() const { return c_type != 0 ? c_type : a_type; }
  int32_t scale() const { return scale_type != 0 ? scale_type : a_type; }
  QuantCase weights() const {
    return {format, {n, k}, granularity, granularity == TUFF_QUANT_PER_BLOCK ? 1u : 0u,
            block,  zeros,  a_type,      scale_type};
  }
};

std::vector<ProductCase> product_cases() {
  std::vector<ProductCase> all;
  const int32_t axis = TUFF_QUANT_PER_AXIS, block = TUFF_QUANT_PER_BLOCK;
  uint32_t turn = 0;
  const auto add = [&](ProductCase row) {
    ++turn;
    row.zeros = turn % 2 == 0 && block_of(row.format) == nullptr;
    row.bias = turn % 3 == 0;
    row.residual = turn % 5 == 0;
    row.pad = turn % 4 == 1 ? 3 : 0;
    row.shift = turn % 7 == 2 ? 1 : 0;
    row.alpha = turn % 6 == 0 ? -1.5 : 0;
    all.push_back(row);
  };
  const int32_t types[] = {TUFF_F32, TUFF_F16, TUFF_BF16};
  for (const int32_t format : {TUFF_QUANT_I8, TUFF_QUANT_U8, TUFF_QUANT_I4, TUFF_QUANT_U4}) {
    for (const uint64_t m : {1, 2, 3, 4, 5, 17, 33}) {
      const int32_t type = types[m % 3];
      add({format, m, 40, 256, block, 32, false, type});
      add({format, m, 7, 264, axis, 0, false, type});
      add({format, m, 13, 72, TUFF_QUANT_PER_TENSOR, 0, false, type, TUFF_F32, TUFF_F32});
      add({format, m, 9, 35, block, 6, false, type});  // nothing is a multiple of eight; odd rows of four bits
      add({format, m, 5, 1024, block, 128, false, type, 0, TUFF_F16});
    }
  }
  for (const Block& block_format : kBlocks) {
    for (const uint64_t m : {1, 2, 3, 4, 6, 8, 20}) {
      add({block_format.format, m, 19, 2 * block_format.numbers, 0, 0, false, types[m % 3]});
      add({block_format.format, m, 3, 768, 0, 0, false, types[(m + 1) % 3], TUFF_F32});
    }
  }
  for (const int32_t activation : {TUFF_ACTIVATION_RELU, TUFF_ACTIVATION_GELU, TUFF_ACTIVATION_SILU}) {
    ProductCase row{TUFF_QUANT_I8, 2, 24, 128, axis};
    row.activation = activation;
    all.push_back(row);
  }
  // Tiles of one, two and four times the subgroup's rows of A, as large products have.
  add({TUFF_QUANT_Q5_K, 40, 600, 1024, 0, 0, false, TUFF_F32});
  add({TUFF_QUANT_Q4_0, 40, 1250, 2048, 0, 0, false, TUFF_F16, TUFF_F32});
  add({TUFF_QUANT_Q4_K, 31, 64, 256, 0, 0, false, TUFF_F32});
  add({TUFF_QUANT_Q8_0, 32, 65, 64, 0, 0, false, TUFF_F16});
  // As many rows of A as are worth packing: weights are dequantised into panels, several pieces of k and rows in all.
  add({TUFF_QUANT_Q4_0, 128, 256, 544, 0, 0, false, TUFF_F32});
  add({TUFF_QUANT_Q6_K, 100, 201, 1024, 0, 0, false, TUFF_F16});
  add({TUFF_QUANT_I4, 97, 250, 904, block, 32, false, TUFF_BF16, TUFF_F32});
  add({TUFF_QUANT_U8, 129, 255, 520, axis, 0, false, TUFF_F32, TUFF_F16});
  add({TUFF_QUANT_I8, 96, 2100, 248, TUFF_QUANT_PER_TENSOR, 0, false, TUFF_F32});
  add({TUFF_QUANT_U4, 96, 100, 2100, block, 30, false, TUFF_F32});  // blocks of scales that no item may lie in
  add({TUFF_QUANT_Q4_0, 96, 96, 2208, 0, 0, false, TUFF_F32});
  // Long sums, and more rows of weights than a dispatch's workgroups have.
  add({TUFF_QUANT_Q4_0, 1, 64, 8192, 0, 0, false, TUFF_F32});
  add({TUFF_QUANT_I4, 1, 3000, 64, block, 64, false, TUFF_F16});
  // Few rows of A beside integers, aligned, as NVIDIA's matrix units take them: whole steps of k and not, one tile of
  // 16 rows of weights in a block and two, each kind of scale, with zero points and without.
  for (const int32_t format : {TUFF_QUANT_I8, TUFF_QUANT_U8, TUFF_QUANT_I4, TUFF_QUANT_U4}) {
    for (const uint64_t m : {1, 2, 8, 9, 16, 17, 32}) {
      for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
        for (const int32_t granularity : {int32_t{TUFF_QUANT_PER_TENSOR}, axis, block}) {
          ++turn;
          ProductCase row{format, m, 40, turn % 2 == 0 ? 512u : 160u, granularity, 0, false, type};
          row.block = granularity == block ? 32u << turn % 3 : 0;
          row.c_type = turn % 3 == 0 ? TUFF_F32 : turn % 5 == 0 ? TUFF_BF16 : 0;
          row.scale_type = granularity != block && turn % 4 == 0 ? TUFF_F32 : 0;
          row.bias = turn % 3 == 0, row.residual = turn % 5 == 0, row.zeros = turn / 3 % 2 == 0;
          row.pad = turn % 4 == 1 ? 8 : 0, row.alpha = turn % 6 == 0 ? -1.5 : 0;
          row.activation = turn % 7 == 0 ? TUFF_ACTIVATION_SILU : TUFF_ACTIVATION_NONE;
          all.push_back(row);
        }
      }
    }
  }
  // More rows of A, aligned, as NVIDIA's matrix units take them: k in whole steps and in an odd number of them, each
  // kind of scale and each number of them in a step, tiles with edges and without.
  constexpr int32_t kWide[] = {TUFF_QUANT_I8,   TUFF_QUANT_U8,   TUFF_QUANT_I4,  TUFF_QUANT_U4,
                               TUFF_QUANT_Q4_0, TUFF_QUANT_Q8_0, TUFF_QUANT_Q4_K};
  for (const int32_t format : kWide) {
    const bool blocks = block_of(format) != nullptr;
    for (const uint64_t m : {5, 12, 33, 64, 70, 130, 260}) {
      for (const int32_t type : {TUFF_F16, TUFF_BF16}) {
        for (int32_t granularity = 0; granularity < (blocks ? 1 : 3); ++granularity) {
          ++turn;
          const uint64_t n = turn % 4 == 0 ? 128 : turn % 4 == 1 ? 70 : turn % 4 == 2 ? 132 : 141;
          const uint64_t step = format == TUFF_QUANT_Q4_K ? 256 : 64;
          ProductCase row{format, m, n, step * (1 + turn % 5), granularity, 0, false, type};
          row.block = granularity == block ? 16u << turn % 5 : 0;
          row.zeros = !blocks && turn % 2 == 0;
          row.c_type = turn % 3 == 0 ? TUFF_F32 : turn % 7 == 0 ? TUFF_BF16 : 0;
          row.scale_type = blocks ? 0 : turn % 8 == 1 ? TUFF_F32 : turn % 8 == 4 ? TUFF_F16 : 0;
          row.bias = turn % 3 == 0, row.residual = turn % 5 == 0;
          row.pad = turn % 6 == 1 ? 8 : 0, row.alpha = turn % 6 == 0 ? -1.5 : 0;
          row.activation = turn % 11 == 0 ? TUFF_ACTIVATION_SILU : TUFF_ACTIVATION_NONE;
          all.push_back(row);
        }
      }
    }
  }
  ProductCase wide{TUFF_QUANT_U4, 300, 520, 1088, block, 32, true, TUFF_F16};  // several tiles in each direction
  for (const int32_t format : {TUFF_QUANT_U4, TUFF_QUANT_I8, TUFF_QUANT_Q4_K}) {
    wide.format = format;
    if (format == TUFF_QUANT_Q4_K) wide.granularity = 0, wide.block = 0, wide.zeros = false, wide.k = 1280;
    all.push_back(wide);
  }
  ProductCase many{TUFF_QUANT_I4, 3, 4300, 1280, block, 32, false, TUFF_F16};
  all.push_back(many);
  many.format = TUFF_QUANT_I8, many.m = 20, many.granularity = axis, many.block = 0;
  all.push_back(many);
  return all;
}

using QuantProducts = Table<ProductCase>;

TEST_P(QuantProducts, IsWithinTheBound) {
  const ProductCase& r = row();
  const QuantCase w = r.weights();
  const Block* block = block_of(r.format);
  const uint64_t lda = r.k + r.pad, ldc = r.n + r.pad, ld_residual = r.n + 2 * r.pad;
  const Bytes a = as_type(r.a_type, uniforms((r.m - 1) * lda + r.k, -1, 1, 21));
  const Bytes q = block != nullptr ? random_blocks(*block, r.n * r.k / block->numbers, 22, false)
                                   : random_bytes(stored(r.format, r.n * r.k), 22);
  const Bytes s = as_type(r.scale(), uniforms(w.scales(), 0.001f, 0.02f, 23)),
              z = random_bytes(stored(r.format, w.scales()), 24), b = as_type(r.c(), uniforms(r.n, -2, 2, 25)),
              added = as_type(r.c(), uniforms((r.m - 1) * ld_residual + r.n, -2, 2, 26));
  Bytes fresh(((r.m - 1) * ldc + r.n) * size_of(r.c()));
  poison_all(r.c(), fresh);
  const TypedTensor ta(context(), r.a_type, a, r.shift), tq(context(), TUFF_U16, q.size() % 2 == 0 ? q : [&] {
    Bytes even = q;
    even.push_back(0);
    return even;
  }(), r.shift),
      ts(context(), r.scale(), s, r.shift), tz(context(), TUFF_U8, z, r.shift), tb(context(), r.c(), b, r.shift),
      tr(context(), r.c(), added, r.shift), tc(context(), r.c(), fresh, r.shift);
  tuff_qgemm_desc desc = desc_of(r);
  desc.a = ta, desc.weights = tq, desc.c = tc;
  if (block == nullptr) desc.scales = ts;
  if (r.zeros) desc.zero_points = tz;
  if (r.bias) desc.bias = tb;
  if (r.residual) desc.residual = tr;
  ASSERT_OK(tuff_qgemm(context(), &desc));
  const Bytes got = tc.read();

  std::vector<float> weights;
  if (block != nullptr) {
    weights = decoded(*block, q);
  } else {
    for (uint64_t i = 0; i < r.n * r.k; ++i) {
      const uint64_t at = w.scale_of(i);
      const int difference = get(r.format, q, i) - (r.zeros ? get(r.format, z, at) : 0);
      weights.push_back(static_cast<float>(difference) * static_cast<float>(element(r.scale(), s, at)));
    }
  }
  const double alpha = r.alpha != 0 ? r.alpha : 1;
  // Sums in f32, of weights that may be rounded to A's type.
  const double u_weights = r.a_type == TUFF_F32 ? 0 : unit_roundoff(r.a_type);
  expect_products(r, got, b, added, [&](uint64_t i, uint64_t j) {
    double sum = 0, size = 0;
    for (uint64_t p = 0; p < r.k; ++p) {
      const double product = element(r.a_type, a, i * lda + p) * double{weights[j * r.k + p]};
      sum += product, size += std::fabs(product);
    }
    const double magnitude = std::fabs(alpha) * size;
    return Sum{alpha * sum, magnitude, magnitude * (gamma(static_cast<double>(r.k) + 3) + u_weights)};
  });
  EXPECT_EQ(ta.read(), a);
}
TUFF_TABLE(QuantProducts, ProductCase, product_cases());

class QuantProductsOnce : public OnBackend {};

// Integers throughout: any order of sums is exact, and an element that is counted twice or skipped shows.
TEST_P(QuantProductsOnce, ProductsOfIntegersAreExact) {
  for (const uint64_t m : {1, 4, 9, 40, 128}) {
    const uint64_t n = m == 128 ? 384 : 50, k = 320;
    const std::vector<float> a = integers(m * k, 8, 31);
    const Bytes q = random_bytes(n * k / 2, 32);
    const Tensor ta(context(), a), scale(context(), std::vector<float>{2.0f}), c(context(), m * n);
    const TypedTensor weights(context(), TUFF_U8, q), zero(context(), TUFF_U8, {7});
    tuff_qgemm_desc desc{};
    desc.struct_size = sizeof desc;
    desc.format = TUFF_QUANT_U4, desc.a_type = TUFF_F32;
    desc.m = m, desc.n = n, desc.k = k;
    desc.a = ta, desc.weights = weights, desc.scales = scale, desc.zero_points = zero, desc.c = c;
    ASSERT_OK(tuff_qgemm(context(), &desc));
    const std::vector<float> got = c.read();
    for (uint64_t i = 0; i < m; ++i) {
      for (uint64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (uint64_t p = 0; p < k; ++p) {
          sum += double{a[i * k + p]} * 2 * (get(TUFF_QUANT_U4, q, j * k + p) - 7);
        }
        ASSERT_EQ(got[i * n + j], sum) << i << ", " << j;
      }
    }
  }
}

TEST_P(QuantProductsOnce, EmptySumsGiveTheEpilogueAlone) {
  const Tensor bias(context(), std::vector<float>{1, -2, 3}), c(context(), 6);
  tuff_qgemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.format = TUFF_QUANT_I8, desc.a_type = TUFF_F32;
  desc.m = 2, desc.n = 3, desc.activation = TUFF_ACTIVATION_RELU;
  desc.bias = bias, desc.c = c;
  ASSERT_OK(tuff_qgemm(context(), &desc));
  expect_same_bits(c.read(), {1, 0, 3, 1, 0, 3});
  desc.m = 0;
  desc.c = 0;
  EXPECT_OK(tuff_qgemm(context(), &desc));
}

TEST_P(QuantProductsOnce, BadCallsSayWhatIsWrong) {
  const Tensor a(context(), std::vector<float>(4 * 64, 1.0f)), scales(context(), std::vector<float>(16, 1.0f)),
      c(context(), 4 * 8);
  const TypedTensor q(context(), TUFF_U8, Bytes(8 * 64));
  const auto call = [&](auto change) {
    tuff_qgemm_desc desc{};
    desc.struct_size = sizeof desc;
    desc.format = TUFF_QUANT_I8, desc.a_type = TUFF_F32, desc.granularity = TUFF_QUANT_PER_BLOCK, desc.block_size = 32;
    desc.m = 4, desc.n = 8, desc.k = 64;
    desc.a = a, desc.weights = q, desc.scales = scales, desc.c = c;
    change(desc);
    return tuff_qgemm(context(), &desc);
  };
  const auto fails = [&](auto change, const char* word, tuff_status status = kArgument) {
    EXPECT_FAILS(call(change), status, "tuff_qgemm", word);
  };
  fails([](auto& d) { d.format = 9; }, "format");
  fails([](auto& d) { d.a_type = TUFF_I32; }, "a_type", kUnsupported);
  fails([](auto& d) { d.a_scales = d.scales; }, "a_scales");
  fails([](auto& d) { d.a_zero_points = d.scales; }, "a_zero_points");
  fails([](auto& d) { d.a_granularity = TUFF_QUANT_PER_AXIS; }, "a_granularity");
  fails([](auto& d) { d.reserved2 = 1; }, "reserved2");
  fails([](auto& d) { d.c_type = TUFF_F64; }, "c_type", kUnsupported);
  fails([](auto& d) { d.activation = 99; }, "activation");
  fails([](auto& d) { d.alpha = NAN; }, "alpha");
  fails([](auto& d) { d.alpha = 1e300; }, "alpha");
  fails([](auto& d) { d.lda = 63; }, "lda");
  fails([](auto& d) { d.ldc = 7; }, "ldc");
  fails([&](auto& d) { d.residual = d.c, d.ld_residual = 3; }, "ld_residual");
  fails([](auto& d) { d.m = 5; }, "a");
  fails([](auto& d) { d.n = uint64_t{1} << 60; }, "c");
  fails([](auto& d) { d.k = uint64_t{1} << 62, d.m = 1; }, "a");
  fails([](auto& d) { d.block_size = 8; }, "scales");
  fails([](auto& d) { d.c = d.a; }, "c");
  fails([](auto& d) { d.c = d.scales; }, "c");
  fails([](auto& d) { d.reserved = 1; }, "reserved");
  fails([](auto& d) { d.format = TUFF_QUANT_Q4_K, d.granularity = 0, d.block_size = 0, d.scales = 0; }, "k");
  c.expect_poisoned();
  EXPECT_OK(call([](auto&) {}));
}
TUFF_ON_BACKENDS(QuantProductsOnce);

// --- products of integers by integers --------------------------------------------------------------------------------

struct IntegersCase {
  int32_t a_type, format;
  uint64_t m, n, k;
  int32_t granularity = TUFF_QUANT_PER_TENSOR;
  uint64_t block = 0;
  bool a_rows = false, a_zeros = false, zeros = false;
  int32_t c_type = 0, scale_type = 0, activation = TUFF_ACTIVATION_NONE;
  bool bias = false, residual = false;
  double alpha = 0;
  uint64_t pad = 0, shift = 0;

  std::string name() const {
    std::string text = std::string(name_of(a_type)) + "_" + format_name(format);
    for (const uint64_t size : {m, n, k}) text += "_" + std::to_string(size);
    text += "_by" + std::to_string(granularity) + "_" + std::to_string(block);
    for (const int32_t type : {c(), scale()}) text += std::string("_") + name_of(type);
    return text + (a_rows ? "_rows" : "") + (a_zeros ? "_azeros" : "") + (zeros ? "_zeros" : "") +
           (bias ? "_bias" : "") + (residual ? "_residual" : "") + "_act" + std::to_string(activation) +
           (alpha != 0 ? "_alpha" : "") + "_pad" + std::to_string(pad) + "_shift" + std::to_string(shift);
  }
  double work() const { return static_cast<double>(m * n) * static_cast<double>(k); }
  int32_t c() const { return c_type != 0 ? c_type : int32_t{TUFF_F32}; }
  int32_t scale() const { return scale_type != 0 ? scale_type : int32_t{TUFF_F32}; }
  uint64_t length() const { return granularity == TUFF_QUANT_PER_BLOCK ? std::min(block, k) : k; }
  uint64_t blocks() const { return (k + length() - 1) / length(); }
  uint64_t each() const {  // scales of a row of weights
    return granularity == TUFF_QUANT_PER_BLOCK ? (k + block - 1) / block : granularity == TUFF_QUANT_PER_AXIS;
  }
  uint64_t scales() const { return each() == 0 ? 1 : n * each(); }
  uint64_t a_scales() const { return a_rows ? m : 1; }
};

std::vector<IntegersCase> integers_cases() {
  std::vector<IntegersCase> all;
  uint32_t turn = 0;
  constexpr int32_t kTypesOfC[] = {0, TUFF_F16, TUFF_BF16};
  const auto add = [&](IntegersCase row) {
    ++turn;
    row.c_type = kTypesOfC[turn % 3], row.scale_type = kTypesOfC[turn / 3 % 3];
    row.bias = turn % 3 == 0, row.residual = turn % 5 == 0, row.alpha = turn % 6 == 0 ? -1.5 : 0;
    row.pad = turn % 4 == 1 ? 3 : turn % 8 == 3 ? 4 : 0, row.shift = turn % 7 == 2 ? 1 : 0;
    row.activation = turn % 11 == 0 ? TUFF_ACTIVATION_SILU : turn % 13 == 0 ? TUFF_ACTIVATION_RELU : 0;
    all.push_back(row);
  };
  for (const int32_t a_type : {TUFF_I8, TUFF_U8}) {
    for (const int32_t format : {TUFF_QUANT_I8, TUFF_QUANT_U8}) {
      for (const uint64_t m : {1, 3, 20, 70}) {
        for (const bool rows : {false, true}) {
          for (const bool a_zeros : {false, true}) {
            for (const bool zeros : {false, true}) {
              add({a_type, format, m, 40, 96, TUFF_QUANT_PER_AXIS, 0, rows, a_zeros, zeros});
              add({a_type, format, m, 9, 35, TUFF_QUANT_PER_TENSOR, 0, rows, a_zeros, zeros});
              add({a_type, format, m, 13, 101, TUFF_QUANT_PER_BLOCK, turn % 2 == 0 ? 32u : 7u, rows, a_zeros, zeros});
            }
          }
        }
      }
    }
  }
  // What one kernel for Hopper GPUs adds up: pieces of 16 numbers.
  for (const uint64_t block : {32, 64, 128, 256, 384}) {
    for (const std::array<uint64_t, 3>& size : std::initializer_list<std::array<uint64_t, 3>>{
             {1, 40, 272}, {130, 129, 528}, {128, 256, 1024}, {300, 70, 2064}}) {
      add({TUFF_I8, TUFF_QUANT_I8, size[0], size[1], size[2], TUFF_QUANT_PER_BLOCK, block, turn % 2 == 0});
      all.back().pad = turn / 2 % 2 * 16, all.back().shift = turn / 4 % 2 * 16;
    }
  }
  add({TUFF_I8, TUFF_QUANT_I8, 130, 260, 512});  // GEMM alone, and the same with more
  add({TUFF_I8, TUFF_QUANT_I8, 130, 260, 512, TUFF_QUANT_PER_AXIS, 0, true});
  add({TUFF_U8, TUFF_QUANT_I8, 64, 128, 1024, TUFF_QUANT_PER_AXIS, 0, true, true});
  add({TUFF_I8, TUFF_QUANT_I8, 5, 24, 64, TUFF_QUANT_PER_BLOCK, 1000, true, true, true});  // a block longer than k
  add({TUFF_I8, TUFF_QUANT_I8, 2, 3, 40'000, TUFF_QUANT_PER_TENSOR, 0, true});             // beyond f32's integers
  return all;
}

using QuantIntegers = Table<IntegersCase>;

TEST_P(QuantIntegers, SumsAreExactAndScalesWithinTheBound) {
  const IntegersCase& r = row();
  const uint64_t lda = r.k + r.pad, ldc = r.n + r.pad, ld_residual = r.n + 2 * r.pad;
  const Bytes a = random_bytes((r.m - 1) * lda + r.k, 31), q = random_bytes(r.n * r.k, 32),
              z = random_bytes(r.scales(), 33), az = random_bytes(r.a_scales(), 34);
  const Bytes s = as_type(r.scale(), uniforms(r.scales(), 0.001f, 0.02f, 35)),
              as = as_type(r.scale(), uniforms(r.a_scales(), 0.001f, 0.02f, 36)),
              b = as_type(r.c(), uniforms(r.n, -2, 2, 37)),
              added = as_type(r.c(), uniforms((r.m - 1) * ld_residual + r.n, -2, 2, 38));
  Bytes fresh(((r.m - 1) * ldc + r.n) * size_of(r.c()));
  poison_all(r.c(), fresh);
  const TypedTensor ta(context(), r.a_type, a, r.shift), tq(context(), TUFF_U8, q, r.shift),
      ts(context(), r.scale(), s, r.shift), tas(context(), r.scale(), as, r.shift), tz(context(), TUFF_U8, z, r.shift),
      taz(context(), r.a_type, az, r.shift), tb(context(), r.c(), b, r.shift), tr(context(), r.c(), added, r.shift),
      tc(context(), r.c(), fresh, r.shift);
  tuff_qgemm_desc desc = desc_of(r);
  desc.a = ta, desc.weights = tq, desc.scales = ts, desc.a_scales = tas, desc.c = tc;
  desc.a_granularity = r.a_rows ? TUFF_QUANT_PER_AXIS : TUFF_QUANT_PER_TENSOR;
  if (r.zeros) desc.zero_points = tz;
  if (r.a_zeros) desc.a_zero_points = taz;
  if (r.bias) desc.bias = tb;
  if (r.residual) desc.residual = tr;
  ASSERT_OK(tuff_qgemm(context(), &desc));
  const Bytes got = tc.read();

  const int32_t a_format = r.a_type == TUFF_I8 ? TUFF_QUANT_I8 : TUFF_QUANT_U8;
  const double alpha = r.alpha != 0 ? r.alpha : 1;
  expect_products(r, got, b, added, [&](uint64_t i, uint64_t j) {
    const uint64_t of_a = r.a_rows ? i : 0;
    const int a_zero = r.a_zeros ? get(a_format, az, of_a) : 0;
    double sum = 0, size = 0;
    for (uint64_t block = 0; block < r.blocks(); ++block) {
      const uint64_t scale = j * r.each() + block, end = std::min((block + 1) * r.length(), r.k);
      const int zero = r.zeros ? get(r.format, z, scale) : 0;
      int64_t products = 0;
      for (uint64_t p = block * r.length(); p < end; ++p) {
        products += int64_t{get(a_format, a, i * lda + p) - a_zero} * (get(r.format, q, j * r.k + p) - zero);
      }
      const double scaled = static_cast<double>(products) * element(r.scale(), s, scale);
      sum += scaled, size += std::fabs(scaled);
    }
    const double factor = alpha * element(r.scale(), as, of_a), magnitude = std::fabs(factor) * size;
    return Sum{factor * sum, magnitude, magnitude * gamma(static_cast<double>(r.blocks()) + 4)};  // the header's
  });
  EXPECT_EQ(ta.read(), a);
  EXPECT_EQ(tq.read(), q);
}
TUFF_TABLE(QuantIntegers, IntegersCase, integers_cases());

class QuantIntegersOnce : public OnBackend {};

TEST_P(QuantIntegersOnce, BadCallsSayWhatIsWrong) {
  const TypedTensor a(context(), TUFF_I8, Bytes(4 * 64)), q(context(), TUFF_I8, Bytes(8 * 64)),
      zeros(context(), TUFF_I8, Bytes(4));
  const Tensor scales(context(), std::vector<float>(16, 1.0f)), c(context(), 4 * 8);
  const auto call = [&](auto change) {
    tuff_qgemm_desc desc{};
    desc.struct_size = sizeof desc;
    desc.format = TUFF_QUANT_I8, desc.a_type = TUFF_I8, desc.granularity = TUFF_QUANT_PER_BLOCK, desc.block_size = 32;
    desc.m = 4, desc.n = 8, desc.k = 64, desc.a_granularity = TUFF_QUANT_PER_AXIS;
    desc.a = a, desc.weights = q, desc.scales = scales, desc.a_scales = scales, desc.a_zero_points = zeros, desc.c = c;
    change(desc);
    return tuff_qgemm(context(), &desc);
  };
  const auto fails = [&](auto change, const char* word, tuff_status status = kArgument) {
    EXPECT_FAILS(call(change), status, "tuff_qgemm", word);
  };
  fails([](auto& d) { d.format = TUFF_QUANT_I4; }, "format", kUnsupported);
  fails([](auto& d) { d.format = TUFF_QUANT_Q8_0; }, "format", kUnsupported);
  fails([](auto& d) { d.a_granularity = TUFF_QUANT_PER_BLOCK; }, "a_granularity");
  fails([](auto& d) { d.a_granularity = -1; }, "a_granularity");
  fails([](auto& d) { d.a_scales = 0; }, "a_scales", TUFF_ERROR_INVALID_HANDLE);
  fails([](auto& d) { d.scales = 0; }, "scales", TUFF_ERROR_INVALID_HANDLE);
  fails([](auto& d) { d.a_scales = d.c; }, "a_scales");
  fails([](auto& d) { d.a_zero_points = d.c; }, "a_zero_points");
  fails([](auto& d) { d.m = 5, d.lda = 1; }, "lda");
  fails([](auto& d) { d.c_type = TUFF_I32; }, "c_type", kUnsupported);
  fails([](auto& d) { d.scale_type = TUFF_I8; }, "scale_type", kUnsupported);
  fails([](auto& d) { d.c = d.scales; }, "c");
  fails([](auto& d) { d.struct_size = 160; }, "struct_size");
  c.expect_poisoned();
  EXPECT_OK(call([](auto&) {}));
  // Nothing to add up: neither integers nor scales are read.
  EXPECT_OK(call([](auto& d) { d.k = 0, d.a = d.weights = d.scales = d.a_scales = d.a_zero_points = 0; }));
  expect_same_bits(c.read(), std::vector<float>(32, 0.0f));
}
TUFF_ON_BACKENDS(QuantIntegersOnce);

}  // namespace
}  // namespace tuff_test::quant_products_test
