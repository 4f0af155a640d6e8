// Devices without buffer device addresses: operands are bound by descriptors, and each call is planned twice.
#include <gtest/gtest.h>

#include <vector>

#include "internal/faults.hpp"
#include "support/tensor.hpp"

namespace tuff_test {
namespace {

class NoAddresses : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    tuff::DeviceTraits& traits = device(context()).traits;
    traits.addresses = traits.streams_by_addresses = traits.tiles_by_addresses = traits.packed_by_addresses = false;
  }
};

TEST_F(NoAddresses, ResultsAreTheSame) {
  expect_works(context());
  // Parameters that are not pushed, scratch memory, copies of rows.
  const uint64_t n = 48;
  const std::vector<float> values = integers(n * n, 3, 1);
  const Tensor a(context(), values), b(context(), values), c(context(), n * n);
  ASSERT_OK(tuff_gemm(context(), TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, n, n, n, 1.0, a, n, b, n, 0.0, c, n));
  std::vector<float> expected(n * n, 0);
  for (uint64_t i = 0; i < n; ++i) {
    for (uint64_t k = 0; k < n; ++k) {
      for (uint64_t j = 0; j < n; ++j) expected[i * n + j] += values[i * n + k] * values[k * n + j];
    }
  }
  expect_same_bits(c.read(), expected);
  const uint64_t size = 2 * 4 * 32 * 16;
  const OwnContext other("vulkan");  // with addresses
  std::vector<std::vector<float>> results;
  for (const tuff_context of : {context(), tuff_context{other}}) {
    const Tensor q(of, integers(size, 3, 5)), o(of, size);
    tuff_attention_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32, desc.batch = 2, desc.heads = 4, desc.seq_q = desc.seq_kv = 32, desc.head_dim = 16;
    desc.q = desc.k = desc.v = q, desc.o = o;
    desc.window_left = 5, desc.softcap = 30;
    ASSERT_OK(tuff_attention_ex(of, &desc));
    results.push_back(o.read());
  }
  expect_same_bits(results[0], results[1]);
  const uint64_t many = 1 << 20;
  const std::vector<float> ones(many, 1.0f);
  const Tensor x(context(), ones), sum(context(), 1), joined(context(), 2 * many);
  const uint64_t shape[] = {many};
  ASSERT_OK(tuff_reduce(context(), TUFF_F32, TUFF_REDUCE_SUM, x, sum, shape, 1, 0));
  EXPECT_EQ(sum.read(), std::vector<float>(1, static_cast<float>(many)));
  const tuff_buffer inputs[] = {x, x};
  const uint64_t sizes[] = {many, many}, all[] = {2 * many};
  ASSERT_OK(tuff_concat(context(), TUFF_F32, inputs, sizes, 2, joined, all, 1, 0));
  expect_same_bits(joined.read(), std::vector<float>(2 * many, 1.0f));
}

}  // namespace
}  // namespace tuff_test
