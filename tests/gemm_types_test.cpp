// GEMMs with all combinations of element types, epilogues, rounding, and batches of buffers.
#include <array>
#include <cmath>
#include <limits>

#include "support/typed_gemm.hpp"

namespace tuff_test::gemm_types_test {
namespace {

constexpr int32_t N = TUFF_NO_TRANS, T = TUFF_TRANS;
constexpr int32_t F = TUFF_F32, H = TUFF_F16, B = TUFF_BF16, D = TUFF_F64, I = TUFF_I8, I32 = TUFF_I32;
constexpr int32_t E4 = TUFF_F8_E4M3, E5 = TUFF_F8_E5M2;

struct Types {
  int32_t a, b, c;
};
constexpr Types kMixtures[] = {{F, F, H},  {H, H, H},    {H, H, F},    {B, B, B},   {B, B, F},  {H, B, F},
                               {F, H, B},  {B, F, H},    {I, I, I32},  {I, I, F},   {I, I, H},  {I, I, B},
                               {D, D, D},  {E4, E4, H},  {E4, E5, F},  {E5, E5, B}, {E4, H, H}, {B, E5, B},
                               {F, E4, F}, {E4, E4, E4}, {E5, E4, E5}, {H, H, E4},  {I, I, E5}};

// Through tiles, with one column or row, and with few of them (tiles or a skinny kernel, depending on the device).
std::vector<TypedGemm> mixtures(bool all_transposes) {
  std::vector<TypedGemm> all;
  for (const Types& t : kMixtures) {
    const uint64_t i = all.size();
    const TypedGemm base{.a_type = t.a, .b_type = t.b, .c_type = t.c};
    const auto add = [&](int32_t ta, int32_t tb, uint64_t m, uint64_t n, uint64_t k, uint64_t pad, uint64_t shift) {
      TypedGemm row = base;
      row.ta = ta, row.tb = tb, row.m = m, row.n = n, row.k = k, row.pad = pad, row.shift = shift;
      row.alpha = static_cast<double>(all.size() % 3 + 1);
      row.beta = static_cast<double>(all.size() % 2);
      all.push_back(row);
    };
    add(i % 2 == 0 ? N : T, i % 4 < 2 ? N : T, 33, 29, 21, i % 3, i % 4);
    add(N, N, 96, 64, 32, 0, 0);
    add(N, T, 130, 1, 131, 1, 1);
    add(T, N, 68, 3, 40, 0, 0);
    add(i % 2 == 0 ? N : T, i % 2 == 0 ? T : N, 2, 90, 300, 0, 4);
    if (all_transposes) add(i % 2 == 0 ? T : N, T, 7, 270, 50, 1, 0);
    if (!is_float8(t.a) && !is_float8(t.b)) continue;
    // Few rows or columns, with rows of 16 bytes: a kernel of its own on some devices.
    add(N, T, 5, 288, 320, 0, 0);
    add(N, N, 17, 288, 272, 0, 0);
    add(T, T, 288, 8, 160, 0, 0);
  }
  return all;
}

using GemmTypes = Table<TypedGemm>;
TEST_P(GemmTypes, Exact) { run_typed_gemm(context(), row(), Tier::exact); }
TUFF_TABLE(GemmTypes, TypedGemm, mixtures(true));

std::vector<TypedGemm> bounds() {
  std::vector<TypedGemm> all = mixtures(false);
  for (TypedGemm& row : all) {
    if (row.c_type == I32) continue;
    row.alpha = row.a_type == I ? 0.75 * 0x1p-9 : 0.75, row.beta = row.beta * -1.5;
  }
  std::erase_if(all, [](const TypedGemm& row) { return row.c_type == I32; });
  return all;
}

// Scales: every kind of kernel, with split-K and without, epilogues, batches, arrays, and no product at all.
std::vector<TypedGemm> scales(bool exact) {
  // Exact results only take powers of two, whose product is 1.
  const double b = exact ? 2 : 1.7, c = exact ? 0.5 : 0.9;
  std::vector<TypedGemm> all;
  constexpr Types kTypes[] = {{E4, E4, H}, {E4, E5, F}, {E5, E4, E4}, {E4, E4, E5}, {E4, H, H}, {F, F, F}, {I, I, H}};
  for (const Types& t : kTypes) {
    const double a = exact ? 0.5 : t.a == I ? 0.3 * 0x1p-9 : 0.3;  // sums of i8 exceed f16
    const TypedGemm base{.a_type = t.a, .b_type = t.b, .c_type = t.c, .scale_a = a, .scale_b = b, .scale_c = c};
    const auto add = [&](int32_t tb, uint64_t m, uint64_t n, uint64_t k) -> TypedGemm& {
      TypedGemm row = base;
      row.tb = tb, row.m = m, row.n = n, row.k = k;
      all.push_back(row);
      return all.back();
    };
    add(T, 160, 288, 272);
    add(N, 128, 64, 48).alpha = 2;
    TypedGemm& whole = add(T, 96, 72, 150);
    whole.activation = TUFF_ACTIVATION_RELU, whole.bias_axis = TUFF_BIAS_COLUMNS, whole.residual = Residual::own;
    whole.beta = 1;
    add(T, 40, 48, 2100).scale_b = 0;
    all.back().scale_a = exact ? 1 : a;
    add(N, 1, 300, 260).scale_c = 0;
    add(T, 300, 2, 64).shift = 3;
    add(N, 7, 9, 12).batch = 40;
    TypedGemm& arrays = add(N, 30, 20, 33);
    arrays.batch = 3, arrays.arrays = true;
    add(N, 9, 10, 0).beta = 1;
  }
  return all;
}
std::vector<TypedGemm> exact_scales() { return scales(true); }
std::vector<TypedGemm> bound_scales() { return scales(false); }

using GemmScales = Table<TypedGemm>;
TEST_P(GemmScales, Exact) { run_typed_gemm(context(), row(), Tier::exact); }
TUFF_TABLE(GemmScales, TypedGemm, exact_scales());
using GemmScalesBound = Table<TypedGemm>;
TEST_P(GemmScalesBound, Holds) { run_typed_gemm(context(), row(), Tier::bound); }
TUFF_TABLE(GemmScalesBound, TypedGemm, bound_scales());

using GemmTypesBound = Table<TypedGemm>;
TEST_P(GemmTypesBound, Holds) { run_typed_gemm(context(), row(), Tier::bound); }
TUFF_TABLE(GemmTypesBound, TypedGemm, bounds());

std::vector<TypedGemm> batches() {
  return {
      {.a_type = H, .b_type = H, .c_type = H, .m = 9, .n = 11, .k = 13, .beta = 1, .pad = 1, .batch = 5},
      {.a_type = B, .b_type = F, .c_type = F, .ta = T, .m = 16, .n = 20, .k = 8, .batch = 3},
      {.a_type = I, .b_type = I, .c_type = I32, .tb = T, .m = 17, .n = 6, .k = 30, .alpha = -3, .pad = 2, .batch = 4},
      {.a_type = D, .b_type = D, .c_type = D, .m = 12, .n = 1, .k = 70, .batch = 6},
      // tiny ones, several for each workgroup
      {.a_type = H, .b_type = H, .c_type = H, .m = 8, .n = 8, .k = 8, .batch = 40},
      {.a_type = B, .b_type = F, .c_type = B, .tb = T, .m = 5, .n = 12, .k = 7, .beta = 2, .pad = 1, .batch = 100},
      {.a_type = F, .b_type = H, .c_type = F, .ta = T, .m = 16, .n = 16, .k = 16, .beta = 1, .batch = 40},
      {.a_type = I, .b_type = I, .c_type = I32, .ta = T, .m = 16, .n = 12, .k = 20, .alpha = -3, .batch = 33},
      {.a_type = I, .b_type = I, .c_type = B, .tb = T, .m = 3, .n = 16, .k = 64, .shift = 3, .batch = 40},
      {.a_type = D, .b_type = D, .c_type = D, .m = 9, .n = 11, .k = 13, .alpha = 2, .beta = 1, .pad = 3, .batch = 50},
      {.a_type = H,
       .b_type = H,
       .c_type = H,
       .m = 16,
       .n = 8,
       .k = 8,
       .beta = 1,
       .batch = 40,
       .activation = TUFF_ACTIVATION_RELU,
       .bias_axis = TUFF_BIAS_ROWS,
       .residual = Residual::in_place},
      {.m = 6, .n = 6, .k = 6, .pad = 1, .batch = 200, .bias_axis = TUFF_BIAS_COLUMNS, .residual = Residual::own},
      {.a_type = H,
       .b_type = H,
       .c_type = B,
       .m = 8,
       .n = 9,
       .k = 10,
       .batch = 4,
       .bias_axis = TUFF_BIAS_ROWS,
       .residual = Residual::own},
      {.m = 10, .n = 12, .k = 14, .pad = 3, .shift = 1, .batch = 1, .arrays = true},
      {.ta = T, .m = 33, .n = 35, .k = 20, .beta = 1, .batch = 3, .arrays = true},
      {.a_type = H,
       .b_type = B,
       .c_type = H,
       .m = 5,
       .n = 6,
       .k = 7,
       .batch = 9,
       .arrays = true,
       .activation = TUFF_ACTIVATION_RELU,
       .bias_axis = TUFF_BIAS_COLUMNS,
       .residual = Residual::own},
      {.a_type = I, .b_type = I, .c_type = F, .m = 1, .n = 40, .k = 64, .batch = 4, .arrays = true},
      {.m = 4, .n = 4, .k = 0, .beta = 2, .batch = 3, .arrays = true},
      // on cooperative matrices, a module for f16 whose 16-bit type became bf16, with results of true f16
      {.a_type = B,
       .b_type = B,
       .c_type = H,
       .ta = T,
       .tb = T,
       .m = 9,
       .n = 15,
       .k = 16,
       .beta = 1,
       .pad = 1,
       .batch = 2},
      // by handles: tiny ones, rows and columns, copies in another type, split-K
      {.ta = T, .m = 8, .n = 8, .k = 8, .beta = 1, .pad = 2, .batch = 40, .arrays = true},
      {.a_type = H,
       .b_type = H,
       .c_type = H,
       .m = 16,
       .n = 9,
       .k = 8,
       .beta = 1,
       .batch = 40,
       .arrays = true,
       .bias_axis = TUFF_BIAS_ROWS,
       .residual = Residual::own},
      {.m = 50, .n = 1, .k = 70, .shift = 1, .batch = 7, .arrays = true},
      {.tb = T, .m = 2, .n = 37, .k = 40, .beta = 1, .pad = 1, .batch = 5, .arrays = true},
      {.a_type = I,
       .b_type = I,
       .c_type = I32,
       .tb = T,
       .m = 40,
       .n = 24,
       .k = 33,
       .pad = 3,
       .batch = 6,
       .arrays = true},
      {.a_type = D,
       .b_type = D,
       .c_type = D,
       .m = 18,
       .n = 20,
       .k = 5,
       .alpha = 2,
       .beta = 1,
       .batch = 3,
       .arrays = true},
      {.tb = T,
       .m = 8,
       .n = 20,
       .k = 4096,
       .beta = 1,
       .pad = 3,
       .batch = 2,
       .arrays = true,
       .activation = TUFF_ACTIVATION_RELU},
  };
}

using BatchedGemmTypes = Table<TypedGemm>;
TEST_P(BatchedGemmTypes, Exact) { run_typed_gemm(context(), row(), Tier::exact); }
TUFF_TABLE(BatchedGemmTypes, TypedGemm, batches());

std::vector<TypedGemm> epilogues() {
  std::vector<TypedGemm> all;
  const auto add = [&](Types t, int32_t activation, uint64_t m, uint64_t n, double beta, int32_t bias,
                       Residual residual) {
    all.push_back({.a_type = t.a,
                   .b_type = t.b,
                   .c_type = t.c,
                   .m = m,
                   .n = n,
                   .k = 24,
                   .alpha = t.a == I ? 0x1p-14 : 0.25,
                   .beta = beta,
                   .pad = all.size() % 3,
                   .shift = all.size() % 2,
                   .activation = activation,
                   .bias_axis = bias,
                   .residual = residual});
  };
  constexpr int32_t kGelu = TUFF_ACTIVATION_GELU, kTanh = TUFF_ACTIVATION_GELU_TANH, kSilu = TUFF_ACTIVATION_SILU,
                    kRelu6 = TUFF_ACTIVATION_RELU6;
  for (const int32_t activation :
       {int32_t{TUFF_ACTIVATION_NONE}, int32_t{TUFF_ACTIVATION_RELU}, kGelu, kTanh, kSilu, kRelu6}) {
    add({F, F, F}, activation, 40, 36, 0.5, activation % 3, Residual::own);
    add({F, F, F}, activation, 1, 130, 0, TUFF_BIAS_COLUMNS, Residual::none);
    add({D, D, D}, activation, 20, 21, 0.5, (activation + 1) % 3, Residual::own);
  }
  add({F, F, F}, kGelu, 70, 2, 1, TUFF_BIAS_ROWS, Residual::in_place);
  add({H, H, H}, kGelu, 40, 36, 0.5, TUFF_BIAS_ROWS, Residual::in_place);
  add({H, H, H}, kSilu, 1, 130, 0, TUFF_BIAS_COLUMNS, Residual::own);
  add({B, B, B}, kTanh, 70, 2, 0, TUFF_BIAS_ROWS, Residual::none);
  add({I, I, B}, kSilu, 40, 36, 0, TUFF_BIAS_COLUMNS, Residual::none);
  add({D, D, D}, kGelu, 3, 70, 0, TUFF_BIAS_ROWS, Residual::none);
  all.push_back({.m = 6, .n = 7, .k = 8, .batch = 40, .activation = kGelu, .bias_axis = TUFF_BIAS_ROWS});
  all.push_back({.m = 20,
                 .n = 30,
                 .k = 0,
                 .activation = TUFF_ACTIVATION_SILU,
                 .bias_axis = TUFF_BIAS_ROWS,
                 .residual = Residual::own});
  all.push_back({.a_type = H, .b_type = H, .c_type = H, .m = 20, .n = 30, .k = 9, .alpha = 0, .beta = 1});
  // Large enough that CPU devices pack operands: in pieces of k, several matrices.
  const auto large = [&](TypedGemm s) {
    s.m = 108, s.n = 126;
    s.k = s.batch == 1 ? 2100 : 1200;
    s.alpha = 0.25, s.beta = 0.5, s.pad = 2;
    all.push_back(s);
  };
  large({.activation = kSilu, .bias_axis = TUFF_BIAS_COLUMNS, .residual = Residual::own});
  large({.ta = T,
         .tb = T,
         .batch = 2,
         .activation = kRelu6,
         .bias_axis = TUFF_BIAS_ROWS,
         .residual = Residual::in_place});
  large({.a_type = H,
         .b_type = H,
         .c_type = H,
         .tb = T,
         .batch = 2,
         .activation = kGelu,
         .bias_axis = TUFF_BIAS_COLUMNS});
  large(
      {.a_type = B, .b_type = F, .c_type = B, .ta = T, .activation = TUFF_ACTIVATION_RELU, .residual = Residual::own});
  return all;
}

using GemmEpilogue = Table<TypedGemm>;
TEST_P(GemmEpilogue, Holds) { run_typed_gemm(context(), row(), Tier::bound); }
TUFF_TABLE(GemmEpilogue, TypedGemm, epilogues());

std::vector<TypedGemm> exact_epilogues() {
  return {
      {.m = 30,
       .n = 34,
       .k = 20,
       .beta = 1,
       .activation = TUFF_ACTIVATION_RELU,
       .bias_axis = TUFF_BIAS_ROWS,
       .residual = Residual::in_place},
      {.a_type = I,
       .b_type = I,
       .c_type = I32,
       .m = 30,
       .n = 34,
       .k = 20,
       .alpha = -2,
       .beta = 3,
       .pad = 1,
       .activation = TUFF_ACTIVATION_RELU,
       .bias_axis = TUFF_BIAS_COLUMNS,
       .residual = Residual::own},
      {.a_type = I,
       .b_type = I,
       .c_type = I32,
       .ta = T,
       .m = 2,
       .n = 34,
       .k = 90,
       .alpha = 5,
       .beta = -1,
       .bias_axis = TUFF_BIAS_ROWS,
       .residual = Residual::own},
      // split-K in the skinny kernels and in the tiles, and more of k than one dispatch covers
      {.a_type = H, .b_type = H, .c_type = H, .m = 1, .n = 6, .k = 20'000, .bias_axis = TUFF_BIAS_ROWS},
      {.a_type = H, .b_type = F, .c_type = B, .m = 6, .n = 7, .k = 5'000, .beta = 1, .residual = Residual::own},
      {.a_type = B, .b_type = B, .c_type = H, .m = 5, .n = 6, .k = 100'001, .activation = TUFF_ACTIVATION_RELU},
  };
}

using GemmEpilogueExact = Table<TypedGemm>;
TEST_P(GemmEpilogueExact, Exact) { run_typed_gemm(context(), row(), Tier::exact); }
TUFF_TABLE(GemmEpilogueExact, TypedGemm, exact_epilogues());

class GemmTypesOnce : public OnBackend {
 protected:
  // A * B in f32.
  Bytes multiplied(const Bytes& a, const Bytes& b, uint64_t m, uint64_t n, uint64_t k) {
    const TypedTensor da(context(), F, a), db(context(), F, b), dc(context(), F, Bytes(m * n * 4, 0xd1));
    EXPECT_OK(tuff_gemm(context(), F, TUFF_NO_TRANS, TUFF_NO_TRANS, m, n, k, 1, da, k, db, n, 0, dc, n));
    return dc.read();
  }
  // C = A * [1], which converts each element to another type.
  Bytes converted(int32_t from, const Bytes& values, uint64_t count, int32_t to, uint64_t n) {
    Bytes ones(n * size_of(from)), result(count * n * size_of(to), 0xd1);
    for (uint64_t i = 0; i < n; ++i) set_element(from, ones, i, 1);
    const TypedTensor a(context(), from, values), b(context(), from, ones), c(context(), to, result);
    tuff_gemm_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = from, desc.c_type = to;
    desc.m = count, desc.n = n, desc.k = 1, desc.alpha = 1;
    desc.a = a, desc.b = b, desc.c = c;
    EXPECT_OK(tuff_gemm_ex(context(), &desc));
    return c.read();
  }
};

// Every 16-bit number, read by a skinny kernel and by tiles; f32 denormals may be flushed.
TEST_P(GemmTypesOnce, EveryHalfIsReadExactly) {
  for (const int32_t type : {H, B}) {
    Bytes all(65536 * 2);
    for (uint32_t i = 0; i < 65536; ++i) all[2 * i] = i & 255, all[2 * i + 1] = static_cast<unsigned char>(i >> 8);
    for (const uint64_t n : {1, 5}) {
      const Bytes got = converted(type, all, 65536, F, n);
      uint64_t wrong = 0;
      for (uint64_t i = 0; i < 65536 * n; ++i) {
        const double want = element(type, all, i / n), is = element(F, got, i);
        const bool flushed = is == 0 && std::fabs(want) < 0x1p-126;
        if (std::isnan(want) ? !std::isnan(is) : is != want && !flushed) {
          if (wrong++ < 5)
            ADD_FAILURE() << name_of(type) << " 0x" << std::hex << i / n << " is " << is << ", expected " << want;
        }
      }
      EXPECT_EQ(wrong, 0u) << "n=" << n;
    }
  }
}

// Rounding to nearest even: ties, their neighbours, both ends of the range; once for both kinds of kernel.
TEST_P(GemmTypesOnce, ResultsAreRoundedToNearestEven) {
  for (const int32_t type : {H, B}) {
    const uint16_t infinity = type == H ? 0x7c00 : 0x7f80;
    std::vector<float> values = {0.0f,      1e-30f, 0x1p-25f, 0x1.8p-25f, 65504,
                                 65519.99f, 65520,  65536,    3.3e38f,    3.4028234e38f};
    for (uint32_t i = 1; i < infinity; i += 37) {
      Bytes two = {static_cast<unsigned char>(i), static_cast<unsigned char>(i >> 8), static_cast<unsigned char>(i + 1),
                   static_cast<unsigned char>((i + 1) >> 8)};
      const double low = element(type, two, 0), high = element(type, two, 1);
      if (low < 0x1p-126 || !std::isfinite(high)) continue;
      const auto middle = static_cast<float>((low + high) / 2);
      for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)})
        values.push_back(x);
    }
    Bytes bytes;
    for (const float x : values) {
      for (const float y : {x, -x}) {
        bytes.resize(bytes.size() + 4);
        set_element(F, bytes, bytes.size() / 4 - 1, double{y});
      }
    }
    for (const float x : {INFINITY, -INFINITY, NAN}) {
      bytes.resize(bytes.size() + 4);
      set_element(F, bytes, bytes.size() / 4 - 1, double{x});
    }
    const uint64_t count = bytes.size() / 4;
    for (const uint64_t n : {1, 5}) {
      const Bytes got = converted(F, bytes, count, type, n);
      uint64_t wrong = 0;
      Bytes want(2);
      for (uint64_t i = 0; i < count * n; ++i) {
        const double x = element(F, bytes, i / n);
        if (std::isinf(x)) {
          EXPECT_EQ(element(type, got, i), x);
          continue;
        }
        set_element(type, want, 0, x);
        const double is = element(type, got, i), expected = element(type, want, 0);
        if (std::isnan(x) ? !std::isnan(is) : is != expected) {
          if (wrong++ < 5) ADD_FAILURE() << x << " became " << name_of(type) << " " << is << ", expected " << expected;
        }
      }
      EXPECT_EQ(wrong, 0u) << "n=" << n;
    }
  }
}

// Sums, scaling and the epilogue of an i32 C wrap modulo 2^32.
TEST_P(GemmTypesOnce, IntegersWrapAround) {
  const uint64_t k = 140'000;  // 140000 * 128^2 > 2^31
  for (const uint64_t m : {1, 5}) {
    const uint64_t n = 6;
    const Bytes a(m * k, 0x80), b(k * n, 0x80);
    Bytes c(m * n * 4), bias(n * 4);
    for (uint64_t i = 0; i < m * n; ++i) set_element(I32, c, i, 2'000'000'000 + static_cast<double>(i));
    for (uint64_t i = 0; i < n; ++i) set_element(I32, bias, i, -2'147'483'648.0);
    const TypedTensor da(context(), I, a), db(context(), I, b), dc(context(), I32, c), dbias(context(), I32, bias);
    tuff_gemm_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = I;  // C is i32
    desc.m = m, desc.n = n, desc.k = k;
    desc.alpha = -7, desc.beta = 3;
    desc.a = da, desc.b = db, desc.c = dc, desc.bias = dbias;
    desc.bias_axis = TUFF_BIAS_COLUMNS;
    ASSERT_OK(tuff_gemm_ex(context(), &desc));
    const Bytes got = dc.read();
    for (uint64_t i = 0; i < m * n; ++i) {
      const auto sum = static_cast<uint32_t>(k * 128 * 128);
      const uint32_t want = 0u - 7u * sum + 3u * (2'000'000'000u + static_cast<uint32_t>(i)) + 0x80000000u;
      EXPECT_EQ(element(I32, got, i), static_cast<double>(static_cast<int32_t>(want))) << i;
    }
  }
}

// Values that are infinite in an f32 C, and NaN, reach a 16-bit C unchanged; relu and relu6 propagate NaN.
TEST_P(GemmTypesOnce, SpecialValuesReachC) {
  const double values[] = {INFINITY, -INFINITY, NAN, 1};
  Bytes a(4 * 4);
  for (uint64_t i = 0; i < 4; ++i) set_element(F, a, i, values[i]);
  for (const int32_t type : {F, H, B}) {
    for (const uint64_t n : {1, 6}) {
      Bytes ones(n * 4), c(4 * n * size_of(type), 0xd1);
      for (uint64_t i = 0; i < n; ++i) set_element(F, ones, i, 1);
      const TypedTensor da(context(), F, a), db(context(), F, ones), dc(context(), type, c);
      tuff_gemm_desc desc{};
      desc.struct_size = sizeof desc;
      desc.dtype = F, desc.c_type = type, desc.m = 4, desc.n = n, desc.k = 1, desc.alpha = 1;
      desc.a = da, desc.b = db, desc.c = dc;
      for (const int32_t activation : {TUFF_ACTIVATION_RELU, TUFF_ACTIVATION_RELU6}) {
        desc.activation = activation;
        ASSERT_OK(tuff_gemm_ex(context(), &desc));
        const Bytes got = dc.read();
        for (uint64_t j = 0; j < n; ++j) {
          EXPECT_EQ(element(type, got, j), activation == TUFF_ACTIVATION_RELU ? INFINITY : 6);
          EXPECT_EQ(element(type, got, n + j), 0);
          EXPECT_TRUE(std::isnan(element(type, got, 2 * n + j)));
          EXPECT_EQ(element(type, got, 3 * n + j), 1);
        }
      }
    }
  }
}

// f32 is f32 whatever its size: mantissas of all bits, exponents over most of the range in one matrix, sums of numbers
// that differ by 2^200, and partial sums beside the largest number. k multiply-adds in f32 have an error of at most
// k 2^-24 times the sum of magnitudes. Results below the smallest normal number may be flushed to 0.
TEST_P(GemmTypesOnce, FloatsOfAnySize) {
  constexpr std::array<std::array<int, 4>, 5> kExponents = {{{-126, 74, -100, 0},  // of A, from and to; of B
                                                             {-126, -120, 100, 110},
                                                             {110, 127, -126, -115},
                                                             {-62, -60, -62, -60},
                                                             {60, 63, 52, 55}}};
  const uint64_t m = 131, n = 130, k = 100;
  for (const auto& exponents : kExponents) {
    SCOPED_TRACE(testing::PrintToString(exponents));
    Random random(static_cast<uint64_t>(exponents[0] + 200));
    const auto numbers = [&](uint64_t count, int from, int to) {
      Bytes made(count * 4);
      for (uint64_t i = 0; i < count; ++i) {
        const int exponent = from + static_cast<int>(random.next() % static_cast<uint64_t>(to - from));
        const double mantissa = 1 + static_cast<double>(random.next() % (1u << 23)) / (1u << 23);
        set_element(F, made, i, std::ldexp(random.next() % 2 == 0 ? mantissa : -mantissa, exponent));
      }
      return made;
    };
    const Bytes a = numbers(m * k, exponents[0], exponents[1]), b = numbers(k * n, exponents[2], exponents[3]);
    const Bytes got = multiplied(a, b, m, n, k);
    for (uint64_t i = 0; i < m; ++i) {
      for (uint64_t j = 0; j < n; ++j) {
        double sum = 0, magnitudes = 0;
        for (uint64_t l = 0; l < k; ++l) {
          const double product = element(F, a, i * k + l) * element(F, b, l * n + j);
          sum += product, magnitudes += std::fabs(product);
        }
        const double is = element(F, got, i * n + j);
        ASSERT_LE(std::fabs(is - sum), (k + 1) * 0x1p-24 * magnitudes + k * 0x1p-126) << i << ", " << j << ": " << is;
      }
    }
  }
}

// Infinity and NaN reach the elements that depend on them, and no others; so does infinity * 0. Numbers that 16 bits
// would round to infinity stay finite, and sums that leave f32 are infinite.
TEST_P(GemmTypesOnce, InfinitiesAndNanInAnyPlace) {
  const uint64_t m = 160, n = 140, k = 96;
  Random random(5);
  Bytes a(m * k * 4), b(k * n * 4);
  for (uint64_t i = 0; i < m * k; ++i) set_element(F, a, i, double{random.integer(4)});
  for (uint64_t i = 0; i < k * n; ++i) set_element(F, b, i, double{random.integer(4)});
  set_element(F, a, 3 * k + 7, INFINITY);
  set_element(F, a, 3 * k + 50, -INFINITY);
  set_element(F, a, 40 * k + 9, -INFINITY);
  set_element(F, a, 150 * k + 95, NAN);
  set_element(F, b, 20 * n + 139, INFINITY);
  set_element(F, b, 9 * n + 77, 0);
  for (uint64_t l = 0; l < k; ++l) {  // a row and a column of one number, which is the largest, and one of small ones
    set_element(F, a, 90 * k + l, l == 30 ? double{std::numeric_limits<float>::max()} : 0.0);
    set_element(F, a, 91 * k + l, 0x1p126);
    set_element(F, b, l * n + 5, l == 30 ? 0.5 : 0.25);
  }
  const Bytes got = multiplied(a, b, m, n, k);
  for (uint64_t i = 0; i < m; ++i) {
    for (uint64_t j = 0; j < n; ++j) {
      if (i == 91 && j != 5) continue;  // infinite or NaN, whichever order the sum is in
      double sum = 0;
      for (uint64_t l = 0; l < k; ++l) sum += element(F, a, i * k + l) * element(F, b, l * n + j);
      if (std::fabs(sum) > double{std::numeric_limits<float>::max()}) sum = std::copysign(INFINITY, sum);
      const double is = element(F, got, i * n + j);
      ASSERT_TRUE(std::isnan(sum) ? std::isnan(is) : is == sum) << i << ", " << j << ": " << is << ", not " << sum;
    }
  }
}

// A permission must keep results within the bound that holds without it.
TEST_P(GemmTypesOnce, PermissionsAreAccepted) {
  Bytes ones(64 * 4), c(64 * 4);
  for (uint64_t i = 0; i < 64; ++i) set_element(F, ones, i, 1);
  const TypedTensor da(context(), F, ones), db(context(), F, ones), dc(context(), F, c);
  tuff_gemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = F, desc.m = desc.n = desc.k = 8, desc.alpha = 1;
  desc.a = da, desc.b = db, desc.c = dc;
  for (const int32_t precision : {TUFF_PRECISION_ALLOW_F16, TUFF_PRECISION_ALLOW_BF16, TUFF_PRECISION_ALLOW_TF32}) {
    desc.precision = precision;
    ASSERT_OK(tuff_gemm_ex(context(), &desc));
    EXPECT_EQ(element(F, dc.read(), 63), 8);
  }
  desc.precision = 0;
  desc.accumulate = F;
  EXPECT_OK(tuff_gemm_ex(context(), &desc));
  desc.a_type = desc.b_type = H;
  desc.accumulate = H;
  EXPECT_OK(tuff_gemm_ex(context(), &desc));
}
TUFF_ON_BACKENDS(GemmTypesOnce);

}  // namespace
}  // namespace tuff_test::gemm_types_test
