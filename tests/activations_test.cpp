// An activation is the same function as a separate operation and as the epilogue of a GEMM or convolution: the same
// bits for every number, including special ones.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <string>

#include "support/sample.hpp"
#include "support/stored.hpp"
#include "support/typed_gemm.hpp"

namespace tuff_test::activations_test {
namespace {

struct Activation {
  int32_t activation, op;
};
constexpr Activation kActivations[] = {{TUFF_ACTIVATION_RELU, TUFF_UNARY_RELU},
                                       {TUFF_ACTIVATION_GELU, TUFF_UNARY_GELU},
                                       {TUFF_ACTIVATION_GELU_TANH, TUFF_UNARY_GELU_TANH},
                                       {TUFF_ACTIVATION_SILU, TUFF_UNARY_SILU}};

// Zeros, infinities, NaN, the ends of the normal and the denormal numbers; all exponents with a few significands; and
// steps through the ranges where the functions bend.
std::vector<float> special_values() {
  std::vector<float> all = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, FLT_MAX, -FLT_MAX, FLT_MIN, -FLT_MIN};
  for (uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (const uint32_t significand : {1u, 0x2aaaaau, 0x7fffffu}) {
      for (const uint32_t sign : {0u, 0x80000000u}) all.push_back(from_bits(sign | exponent << 23 | significand));
    }
  }
  for (int i = -1100; i <= 1100; ++i) all.push_back(static_cast<float>(i) / 10);
  while (all.size() % 64 != 0) all.push_back(1);
  return all;
}

class ActivationTest : public OnBackend {
 protected:
  // compute(activation, output) writes n numbers to the output. Its results without an activation, passed through the
  // unary operation, must equal its results with the activation.
  void expect_alike(uint64_t n, const std::function<tuff_status(int32_t, tuff_buffer)>& compute) {
    const Tensor plain(context(), n), with(context(), n), alone(context(), n);
    ASSERT_OK(compute(TUFF_ACTIVATION_NONE, plain));
    const std::string form = testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() +
                             (" form " + std::to_string(forms_)) + " activation ";
    for (const Activation& a : kActivations) {
      // Each is a kernel of its own. These two had a defect at infinity.
      const bool always = forms_ == 0 && (a.activation == TUFF_ACTIVATION_GELU || a.activation == TUFF_ACTIVATION_SILU);
      if (vulkan() && !always && !in_sample(form + std::to_string(a.activation), 10)) continue;
      SCOPED_TRACE(testing::Message() << "activation " << a.activation);
      ASSERT_OK(compute(a.activation, with));
      ASSERT_OK(tuff_unary(context(), TUFF_F32, a.op, plain, alone, n));
      const std::vector<float> x = plain.read(), got = with.read(), want = alone.read();
      uint64_t wrong = 0;
      for (uint64_t i = 0; i < n; ++i) {
        if (bits(got[i]) == bits(want[i]) || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
        if (++wrong <= 5) {
          ADD_FAILURE() << "of " << x[i] << ": " << got[i] << " in an epilogue, " << want[i] << " by itself";
        }
      }
      EXPECT_EQ(wrong, 0u) << "of " << n;
    }
    ++forms_;
  }

 private:
  int forms_ = 0;
};

using GemmEpilogueActivation = ActivationTest;

// With k = 1 and B = 1, C is A. On vector kernels and tiles.
TEST_P(GemmEpilogueActivation, IsTheUnaryOperation) {
  const std::vector<float> x = special_values();
  const Tensor a(context(), x), one(context(), std::vector<float>(64, 1.0f));
  for (const uint64_t cols : {1, 4, 64}) {
    SCOPED_TRACE(cols);
    expect_alike(x.size() * cols, [&](int32_t activation, tuff_buffer c) {
      tuff_gemm_desc desc{};
      desc.struct_size = sizeof desc;
      desc.dtype = TUFF_F32;
      desc.m = x.size(), desc.n = cols, desc.k = 1, desc.alpha = 1;
      desc.a = a, desc.b = one, desc.c = c;
      desc.activation = activation;
      return tuff_gemm_ex(context(), &desc);
    });
  }
  // A longer k, where an infinity would meet a zero.
  std::vector<float> wide(x.size() * 64, 0.0f);
  for (uint64_t i = 0; i < x.size(); ++i) wide[i * 64 + i % 64] = std::isfinite(x[i]) ? x[i] : 0.0f;
  const Tensor rows(context(), wide), ones(context(), std::vector<float>(64 * 48, 1.0f));
  expect_alike(x.size() * 48, [&](int32_t activation, tuff_buffer c) {
    tuff_gemm_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32;
    desc.m = x.size(), desc.n = 48, desc.k = 64, desc.alpha = 1;
    desc.a = rows, desc.b = ones, desc.c = c;
    desc.activation = activation;
    return tuff_gemm_ex(context(), &desc);
  });
}

// 16-bit inputs, which GPUs multiply by cooperative matrices, at rows that are aligned for vectors and at others.
class MatrixActivation : public ActivationTest {
 protected:
  void expect_unary(int32_t dtype) {
    // Multiples of 1/8 from -12 to 3.9, which both types represent.
    constexpr uint64_t rows = 128;
    std::vector<float> x(rows);
    for (uint64_t i = 0; i < rows; ++i) x[i] = static_cast<float>(i) / 8 - 12;
    for (const uint64_t k : {20, 64}) {
      for (const uint64_t n : {20, 64}) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << ", n " << n << ", k " << k);
        std::vector<float> a(rows * k, 0.0f), b(k * n, 0.0f);
        for (uint64_t i = 0; i < rows; ++i) a[i * k + i % k] = x[i];
        for (uint64_t i = 0; i < k * n; ++i) b[i] = 1;
        for (const uint64_t shift : {0, 1}) {
          const StoredTensor stored_a(context(), dtype, a, shift), stored_b(context(), dtype, b, shift);
          expect_alike(rows * n, [&](int32_t activation, tuff_buffer c) {
            tuff_gemm_desc desc{};
            desc.struct_size = sizeof desc;
            desc.dtype = dtype, desc.c_type = TUFF_F32;
            desc.m = rows, desc.n = n, desc.k = k, desc.alpha = 1;
            desc.a = stored_a, desc.b = stored_b, desc.c = c;
            desc.activation = activation;
            return tuff_gemm_ex(context(), &desc);
          });
        }
      }
    }
  }
};

TEST_P(MatrixActivation, IsTheUnaryOperation) {
  for (const int32_t dtype : {TUFF_F16, TUFF_BF16}) expect_unary(dtype);
}

using BatchedGemmActivation = ActivationTest;

TEST_P(BatchedGemmActivation, IsTheUnaryOperation) {
  const std::vector<float> x = special_values();
  const Tensor a(context(), x), one(context(), std::vector<float>(8, 1.0f));
  for (const uint64_t rows : {1, 8, 64}) {
    SCOPED_TRACE(rows);
    expect_alike(x.size() * 8, [&](int32_t activation, tuff_buffer c) {
      tuff_batched_gemm_desc desc{};
      desc.struct_size = sizeof desc;
      desc.dtype = TUFF_F32;
      desc.m = rows, desc.n = 8, desc.k = 1, desc.alpha = 1;
      desc.a = a, desc.b = one, desc.c = c;
      desc.stride_a = rows, desc.stride_c = rows * 8;
      desc.batch_count = x.size() / rows;
      desc.activation = activation;
      return tuff_batched_gemm_ex(context(), &desc);
    });
  }
}

using Conv2dActivation = ActivationTest;

// Filters with one tap, which leave the numbers unchanged: dense, strided and padded, depthwise, in both layouts.
TEST_P(Conv2dActivation, IsTheUnaryOperation) {
  struct Form {
    uint64_t channels, filters, groups, stride, padding;
    int32_t layout;
  };
  const Form forms[] = {{1, 1, 1, 1, 0, TUFF_LAYOUT_NCHW},  {1, 8, 1, 1, 0, TUFF_LAYOUT_NHWC},
                        {1, 8, 1, 2, 1, TUFF_LAYOUT_NCHW},  {1, 8, 1, 2, 1, TUFF_LAYOUT_NHWC},
                        {8, 8, 8, 1, 0, TUFF_LAYOUT_NCHW},  {8, 8, 8, 1, 1, TUFF_LAYOUT_NHWC},
                        {8, 16, 8, 2, 0, TUFF_LAYOUT_NCHW}, {8, 8, 8, 2, 1, TUFF_LAYOUT_NCHW}};
  const std::vector<float> x = special_values();
  const Tensor input(context(), x), filter(context(), std::vector<float>(16, 1.0f));
  for (const Form& form : forms) {
    SCOPED_TRACE(testing::Message() << form.channels << " channels, " << form.filters << " filters, stride "
                                    << form.stride << ", padding " << form.padding << ", layout " << form.layout);
    const uint64_t height = 8, width = x.size() / form.channels / height;
    const auto out = [&](uint64_t size) { return (size + 2 * form.padding - 1) / form.stride + 1; };
    const auto shape = [](uint64_t(&to)[4], uint64_t channels, uint64_t rows, uint64_t cols) {
      to[0] = 1, to[1] = channels, to[2] = rows, to[3] = cols;
    };
    expect_alike(form.filters * out(height) * out(width), [&](int32_t activation, tuff_buffer output) {
      tuff_conv2d_desc desc{};
      desc.struct_size = sizeof desc;
      desc.dtype = TUFF_F32, desc.layout = form.layout;
      desc.input = input, desc.filter = filter, desc.output = output;
      shape(desc.in_shape, form.channels, height, width);
      shape(desc.out_shape, form.filters, out(height), out(width));
      shape(desc.filter_shape, form.channels / form.groups, 1, 1);
      desc.filter_shape[0] = form.filters;
      desc.groups = form.groups;
      for (int d = 0; d < 2; ++d) desc.stride[d] = form.stride, desc.padding[d] = form.padding;
      desc.activation = activation;
      return tuff_conv2d_ex(context(), &desc);
    });
  }
}

using ConvWinogradActivation = ActivationTest;

// Sums by Winograd filtering have additional errors; the activation is applied to them.
TEST_P(ConvWinogradActivation, IsTheUnaryOperation) {
  const uint64_t channels = 16, filters = 16, size = 24;
  // Integers: f32 represents the host's sums exactly.
  const Tensor input(context(), integers(channels * size * size, 3, 1)),
      filter(context(), integers(filters * channels * 9, 1, 2));
  expect_alike(filters * size * size, [&](int32_t activation, tuff_buffer output) {
    tuff_conv2d_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32;
    desc.input = input, desc.filter = filter, desc.output = output;
    const uint64_t in[] = {1, channels, size, size}, taps[] = {filters, channels, 3, 3},
                   out[] = {1, filters, size, size};
    std::copy_n(in, 4, desc.in_shape), std::copy_n(taps, 4, desc.filter_shape), std::copy_n(out, 4, desc.out_shape);
    for (int d = 0; d < 2; ++d) desc.stride[d] = desc.padding[d] = 1;
    desc.precision = TUFF_PRECISION_ALLOW_WINOGRAD;
    desc.activation = activation;
    return tuff_conv2d_ex(context(), &desc);
  });
}

TUFF_ON_BACKENDS(GemmEpilogueActivation);
TUFF_ON_BACKENDS(MatrixActivation);
TUFF_ON_BACKENDS(BatchedGemmActivation);
TUFF_ON_BACKENDS(Conv2dActivation);
TUFF_ON_BACKENDS(ConvWinogradActivation);

}  // namespace
}  // namespace tuff_test::activations_test
