// Batches given as an array of buffer handles per operand: possible errors of a dispatch that reads a table of them.
#include <algorithm>
#include <numeric>

#include "support/tensor.hpp"

namespace tuff_test::batched_gemm_arrays_test {
namespace {

class BatchedGemmArrays : public OnBackend {
 protected:
  // m x k by k x n, dense.
  tuff_status multiply(uint64_t m, uint64_t n, uint64_t k, double beta, const std::vector<tuff_buffer>& a,
                       const std::vector<tuff_buffer>& b, const std::vector<tuff_buffer>& c) {
    tuff_batched_gemm_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32;
    desc.m = m, desc.n = n, desc.k = k;
    desc.alpha = 1, desc.beta = beta;
    desc.batch_count = a.size();
    desc.a_array = a.data(), desc.b_array = b.data(), desc.c_array = c.data();
    return tuff_batched_gemm_ex(context(), &desc);
  }
  static std::vector<double> product(uint64_t m, uint64_t n, uint64_t k, const std::vector<float>& a,
                                     const std::vector<float>& b) {
    std::vector<double> c(m * n, 0);
    for (uint64_t i = 0; i < m; ++i) {
      for (uint64_t p = 0; p < k; ++p) {
        for (uint64_t j = 0; j < n; ++j) c[i * n + j] += static_cast<double>(a[i * k + p]) * b[p * n + j];
      }
    }
    return c;
  }
};

// Buffers anywhere in memory, with different alignments, in any order, some of them the same.
TEST_P(BatchedGemmArrays, MatricesLieAnywhere) {
  for (const uint64_t size : {3, 8, 24, 40}) {
    SCOPED_TRACE(size);
    const uint64_t batch = 37;
    std::vector<Tensor> as, bs, cs;
    std::vector<tuff_buffer> a, b, c;
    std::vector<std::vector<float>> a_values, b_values;
    for (uint64_t i = 0; i < batch; ++i) {
      a_values.push_back(integers(size * size, 3, 100 + i));
      b_values.push_back(integers(size * size, 3, 900 + i));
      as.emplace_back(context(), a_values.back(), i == 0 ? 0 : i % 5 * 4);
      bs.emplace_back(context(), b_values.back(), i < 20 ? 0 : 16);
      cs.emplace_back(context(), size * size, i % 3 * 8);
    }
    for (uint64_t i = 0; i < batch; ++i) {
      a.push_back(as[i * 7 % batch]);
      b.push_back(bs[i / 2]);
      c.push_back(cs[batch - 1 - i]);
    }
    ASSERT_OK(multiply(size, size, size, 0, a, b, c));
    for (uint64_t i = 0; i < batch; ++i) {
      SCOPED_TRACE(i);
      Expected expected;
      expected.value = product(size, size, size, a_values[i * 7 % batch], b_values[i / 2]);
      expect_matches(cs[batch - 1 - i].read(), expected);
    }
  }
}

TEST_P(BatchedGemmArrays, VariantsAreListed) {
  const Tensor x(context(), integers(16, 3, 1));
  const std::vector<tuff_buffer> in(5, x);
  std::vector<Tensor> results;
  std::vector<tuff_buffer> out;
  for (int i = 0; i < 5; ++i) out.push_back(results.emplace_back(context(), 16));
  tuff_batched_gemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32, desc.m = desc.n = desc.k = 4, desc.alpha = 1;
  desc.batch_count = in.size();
  desc.a_array = desc.b_array = in.data(), desc.c_array = out.data();
  char text[2000] = "";
  uint64_t length = 0;
  const tuff_status status = tuff_batched_gemm_variants(context(), &desc, text, sizeof text, &length);
  if (GetParam() != "vulkan") {
    EXPECT_EQ(status, TUFF_ERROR_UNSUPPORTED);
    return;
  }
  ASSERT_OK(status);
  EXPECT_NE(std::string(text).find("\"sizes\": [4, 4, 4, 5]"), std::string::npos) << text;
}

// Each call depends on the one before and is needed by the next, through matrices in the middle of the arrays.
TEST_P(BatchedGemmArrays, CallsFollowOneAnother) {
  const uint64_t size = 4, batch = 20;
  std::vector<Tensor> tensors;
  for (uint64_t i = 0; i < 3 * batch; ++i) tensors.emplace_back(context(), integers(size * size, 1, i));
  const auto handles = [&](uint64_t first) {
    std::vector<tuff_buffer> all;
    for (uint64_t i = 0; i < batch; ++i) all.push_back(tensors[first * batch + i]);
    return all;
  };
  std::vector<std::vector<double>> now;
  for (const Tensor& tensor : tensors) {
    const std::vector<float> values = tensor.read();
    now.emplace_back(values.begin(), values.end());
  }
  const auto compute = [&](uint64_t a, uint64_t b, uint64_t c) {
    ASSERT_OK(multiply(size, size, size, 1, handles(a), handles(b), handles(c)));
    for (uint64_t i = 0; i < batch; ++i) {
      const auto &x = now[a * batch + i], &y = now[b * batch + i];
      const auto sum =
          product(size, size, size, std::vector<float>(x.begin(), x.end()), std::vector<float>(y.begin(), y.end()));
      std::transform(sum.begin(), sum.end(), now[c * batch + i].begin(), now[c * batch + i].begin(), std::plus<>());
    }
  };
  compute(0, 1, 2);
  compute(2, 1, 0);
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, tensors[7], tensors[7], size * size));
  for (double& x : now[7]) x = -x;
  compute(1, 0, 2);
  ASSERT_OK(
      tuff_binary(context(), TUFF_F32, TUFF_BINARY_ADD, tensors[2 * batch + 3], tensors[3], tensors[3], size * size));
  for (uint64_t i = 0; i < size * size; ++i) now[3][i] += now[2 * batch + 3][i];
  for (uint64_t i = 0; i < tensors.size(); ++i) {
    SCOPED_TRACE(i);
    Expected expected;
    expected.value = now[i];
    expect_matches(tensors[i].read(), expected);
  }
}

// More blocks of memory than are tracked separately: whatever touches any of them still waits.
TEST_P(BatchedGemmArrays, MemoryFarApart) {
  const uint64_t batch = 7, large = 17u << 20;  // one block each
  std::vector<OwnBuffer> buffers;
  std::vector<tuff_buffer> a, b, c;
  const std::vector<float> ones(64, 1);
  for (uint64_t i = 0; i < batch; ++i) {
    buffers.emplace_back(context(), large);
    for (auto* handles : {&a, &b, &c}) {
      tuff_buffer view = 0;
      ASSERT_OK(tuff_view(buffers[i], large - (handles == &a ? 256 : handles == &b ? 512 : 768), 256, &view));
      handles->push_back(view);
    }
    ASSERT_OK(tuff_copy_htod(context(), a[i], 0, ones.data(), 256));
    ASSERT_OK(tuff_copy_htod(context(), b[i], 0, ones.data(), 256));
  }
  ASSERT_OK(multiply(8, 8, 8, 0, a, b, c));  // 8
  ASSERT_OK(multiply(8, 8, 8, 0, c, b, a));  // 64
  ASSERT_OK(multiply(8, 8, 8, 1, a, b, c));  // 8 + 512
  ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, c[6], c[6], 64));
  for (uint64_t i = 0; i < batch; ++i) {
    std::vector<float> values(64);
    ASSERT_OK(tuff_copy_dtoh(context(), values.data(), c[i], 0, 256));
    EXPECT_EQ(values, std::vector<float>(64, i == 6 ? -520.0f : 520.0f)) << i;
    for (const tuff_buffer view : {a[i], b[i], c[i]}) EXPECT_OK(tuff_free(view));
  }
}

// More matrices than one table holds.
TEST_P(BatchedGemmArrays, Thousands) {
  const uint64_t batch = 8'195;
  const OwnBuffer one(context(), batch * 16);
  std::vector<float> values(batch * 4);
  for (uint64_t i = 0; i < batch * 4; ++i) values[i] = static_cast<float>(i % 97);
  ASSERT_OK(tuff_copy_htod(context(), one, 0, values.data(), batch * 16));
  std::vector<tuff_buffer> a, b, c;
  for (uint64_t i = 0; i < batch; ++i) {
    for (auto* handles : {&a, &b, &c}) {
      tuff_buffer view = 0;
      ASSERT_OK(tuff_view(one, i * 16 + (handles == &a ? 0 : handles == &b ? 4 : 8), 4, &view));
      handles->push_back(view);
    }
  }
  ASSERT_OK(multiply(1, 1, 1, 1, a, b, c));
  std::vector<float> after(batch * 4);
  ASSERT_OK(tuff_copy_dtoh(context(), after.data(), one, 0, batch * 16));
  for (uint64_t i = 0; i < batch; ++i) {
    values[i * 4 + 2] += values[i * 4] * values[i * 4 + 1];
    for (const tuff_buffer view : {a[i], b[i], c[i]}) EXPECT_OK(tuff_free(view));
  }
  EXPECT_EQ(after, values);
}

// Offset 0 has the best alignment of all, but a matrix there says nothing about the others.
TEST_P(BatchedGemmArrays, OneMatrixAtTheBeginningOfItsMemoryAndOthersMisaligned) {
  const uint64_t m = 32, n = 3, k = 4, batch = 4;
  const uint64_t places[batch] = {203, 402, 0, 601};  // elements
  const std::vector<float> values = integers(1000, 3, 7);
  const OwnBuffer a_memory(context(), 4000), b_memory(context(), 4000);
  ASSERT_OK(tuff_copy_htod(context(), a_memory, 0, values.data(), 4000));
  ASSERT_OK(tuff_copy_htod(context(), b_memory, 0, values.data(), 4000));
  for (const bool transposed : {false, true}) {
    SCOPED_TRACE(transposed);
    std::vector<OwnBuffer> views;
    std::vector<Tensor> results;
    std::vector<tuff_buffer> a, b, c;
    const auto view = [&](tuff_buffer memory, uint64_t place, uint64_t elements) {
      tuff_buffer handle = 0;
      EXPECT_OK(tuff_view(memory, 4 * place, 4 * elements, &handle));
      views.emplace_back(handle);
      return handle;
    };
    for (uint64_t i = 0; i < batch; ++i) {
      a.push_back(view(a_memory, places[i], m * k));
      b.push_back(view(b_memory, places[batch - 1 - i], k * n));
      results.emplace_back(context(), m * n);
      c.push_back(results.back());
    }
    tuff_batched_gemm_desc desc{};
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.alpha = 1;
    desc.m = m, desc.n = n, desc.k = k, desc.ta = transposed ? TUFF_TRANS : TUFF_NO_TRANS, desc.tb = desc.ta;
    desc.batch_count = batch, desc.a_array = a.data(), desc.b_array = b.data(), desc.c_array = c.data();
    ASSERT_OK(tuff_batched_gemm_ex(context(), &desc));
    for (uint64_t i = 0; i < batch; ++i) {
      SCOPED_TRACE(i);
      const float* const x = values.data() + places[i];
      const float* const y = values.data() + places[batch - 1 - i];
      Expected expected;
      for (uint64_t row = 0; row < m; ++row) {
        for (uint64_t column = 0; column < n; ++column) {
          double sum = 0;
          for (uint64_t p = 0; p < k; ++p) {
            sum += static_cast<double>(transposed ? x[p * m + row] : x[row * k + p]) *
                   (transposed ? y[column * k + p] : y[p * n + column]);
          }
          expected.value.push_back(sum);
          expected.bound.push_back(0);
        }
      }
      expect_matches(results[i].read(), expected);
    }
  }
}

// A residual's footprint follows its own leading dimension, not C's: this one ends where a matrix of C begins.
TEST_P(BatchedGemmArrays, ResidualRightBeforeAMatrix) {
  const OwnBuffer memory(context(), 256 + 480), a(context(), 256), b(context(), 256);
  tuff_buffer parts[2];
  ASSERT_OK(tuff_view(memory, 0, 256, &parts[0]));
  ASSERT_OK(tuff_view(memory, 256, 480, &parts[1]));
  const OwnBuffer residual(parts[0]), c(parts[1]);
  const std::vector<float> ones(64, 1);
  for (const tuff_buffer each : {tuff_buffer{a}, tuff_buffer{b}, tuff_buffer{residual}}) {
    ASSERT_OK(tuff_copy_htod(context(), each, 0, ones.data(), 256));
  }
  const tuff_buffer as[] = {a}, bs[] = {b}, cs[] = {c};
  tuff_batched_gemm_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.m = desc.n = desc.k = 8, desc.alpha = 1;
  desc.batch_count = 1, desc.a_array = as, desc.b_array = bs, desc.c_array = cs, desc.ldc = 16;
  desc.residual = residual;
  ASSERT_OK(tuff_batched_gemm_ex(context(), &desc));
  std::vector<float> got(120);
  ASSERT_OK(tuff_copy_dtoh(context(), got.data(), c, 0, 480));
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i % 16 < 8 ? 9 : 0) << i;
}

TEST_P(BatchedGemmArrays, OneDispatchAndNothingNew) {
  if (!vulkan()) GTEST_SKIP() << "counts are the device's";
  const uint64_t batch = 64, size = 24;
  std::vector<OwnBuffer> buffers;
  std::vector<tuff_buffer> a, b, c;
  for (uint64_t i = 0; i < batch; ++i) {
    for (auto* handles : {&a, &b, &c}) {
      buffers.emplace_back(context(), size * size * 4);
      handles->push_back(buffers.back());
    }
  }
  for (int i = 0; i < 700; ++i) ASSERT_OK(multiply(size, size, size, 0, a, b, c));  // uses every piece of table memory
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats before = stats_of(context());
  for (int i = 0; i < 700; ++i) ASSERT_OK(multiply(size, size, size, 0, a, b, c));
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats after = stats_of(context());
  if (properties_of(context()).supports_addresses != 0) {
    EXPECT_EQ(after.dispatches - before.dispatches, 700u);
  }
  EXPECT_EQ(after.vulkan_objects_created, before.vulkan_objects_created);
  EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
}
TUFF_ON_BACKENDS(BatchedGemmArrays);

}  // namespace
}  // namespace tuff_test::batched_gemm_arrays_test
