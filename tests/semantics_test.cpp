// The promises that hold for all operations, one test each. Those about single operations are in
// semantics_operations_test.cpp. Device loss needs a device that fails and is tested in internal/.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "support/attention_problem.hpp"
#include "support/call_table.hpp"
#include "support/conv_problem.hpp"
#include "support/gemm_problem.hpp"

namespace tuff_test::semantics_test {
namespace {

constexpr int32_t F = TUFF_F32, N = TUFF_NO_TRANS, T = TUFF_TRANS;
constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

class Semantics : public OnBackend {};

TEST_P(Semantics, LeadingDimensionCountsElementsOfTheStoredRow) {
  // A transposed A is stored as k x m: its leading dimension is at least m, whatever k is.
  run_gemm(context(), {.ta = T, .m = 3, .n = 4, .k = 50}, Tier::exact);
  run_gemm(context(), {.ta = T, .m = 3, .n = 4, .k = 50, .pad_a = 9}, Tier::exact);
  run_gemm(context(), {.tb = T, .m = 3, .n = 40, .k = 5, .pad_b = 9}, Tier::exact);
}

TEST_P(Semantics, LeadingDimensionBelowTheStoredRowIsAnError) {
  const Tensor a(context(), 200), b(context(), 200), c(context(), 200);
  EXPECT_FAILS(tuff_gemm(context(), F, N, N, 3, 4, 5, 1, a, 4, b, 4, 0, c, 4), kArgument, "tuff_gemm", "lda");
  EXPECT_FAILS(tuff_gemm(context(), F, T, N, 3, 4, 5, 1, a, 2, b, 4, 0, c, 4), kArgument, "tuff_gemm", "lda");
  EXPECT_FAILS(tuff_gemm(context(), F, N, N, 3, 4, 5, 1, a, 5, b, 3, 0, c, 4), kArgument, "tuff_gemm", "ldb");
  EXPECT_FAILS(tuff_gemm(context(), F, N, T, 3, 4, 5, 1, a, 5, b, 4, 0, c, 4), kArgument, "tuff_gemm", "ldb");
  EXPECT_FAILS(tuff_gemm(context(), F, N, N, 3, 4, 5, 1, a, 5, b, 4, 0, c, 3), kArgument, "tuff_gemm", "ldc");
  c.expect_poisoned();
}

TEST_P(Semantics, BytesBetweenRowsAreNeverWritten) {
  for (uint64_t pad : {1, 3, 4, 13}) {
    run_gemm(context(), {.m = 40, .n = 37, .k = 20, .beta = 1, .pad_c = pad}, Tier::exact);
    run_gemm(context(), {.m = 9, .n = 64, .k = 20, .pad_c = pad, .batch = 3, .gap = 5}, Tier::exact);
  }
}

TEST_P(Semantics, AnErrorMeansNothingHappened) {
  const Tensor a(context(), 100), b(context(), 100), c(context(), 100);
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats before = stats_of(context());
  // Everything is valid except for one operand, which is checked last.
  EXPECT_EQ(tuff_gemm(context(), F, N, N, 8, 8, 8, 1, a, 8, b, 8, 0, c, 1000), kArgument);
  EXPECT_EQ(tuff_binary(context(), F, TUFF_BINARY_ADD, a, b, c, 1000), kArgument);
  EXPECT_EQ(tuff_copy_dtod(context(), c, 0, a, 1, 1000), kArgument);
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.dispatches, before.dispatches);
  EXPECT_EQ(after.submissions, before.submissions);
  c.expect_poisoned();
}

TEST_P(Semantics, FootprintsBeyond2To64AreErrors) {
  const Tensor a(context(), 100), b(context(), 100), c(context(), 100);
  const uint64_t half = uint64_t{1} << 63;
  EXPECT_FAILS(tuff_gemm(context(), F, N, N, 3, 2, 2, 1, a, half, b, 2, 0, c, 2), kArgument, "tuff_gemm", "a");
  EXPECT_FAILS(tuff_batched_gemm(context(), F, N, N, 2, 2, 2, 1, a, 2, half, b, 2, 0, 0, c, 2, 4, 3), kArgument,
               "tuff_batched_gemm", "a");
  // 2^64 elements wrap to 0, and so do 2^62 elements of four bytes; neither may be taken for a small size.
  EXPECT_FAILS(tuff_unary(context(), F, TUFF_UNARY_NEG, a, b, uint64_t{1} << 62), kArgument, "tuff_unary", "n");
  const uint64_t shape[] = {uint64_t{1} << 32, uint64_t{1} << 32};
  EXPECT_FAILS(tuff_softmax(context(), F, a, b, shape, 2, 1), kArgument, "tuff_softmax", "shape");
  c.expect_poisoned();
}

TEST_P(Semantics, ProductsBeyond2To32Work) {
  // m * n * k = 2^33 (the host backend is too slow for it and is tested with large strides alone)
  if (vulkan() && !reduced()) {
    const uint64_t size = 2048;
    const Tensor a(context(), std::vector<float>(size * size, 1.0f)),
        b(context(), std::vector<float>(size * size, 2.0f)), c(context(), size * size);
    ASSERT_OK(tuff_gemm(context(), F, N, N, size, size, size, 1, a, size, b, size, 0, c, size));
    expect_same_bits(c.read(), std::vector<float>(size * size, 4096.0f));
  }
  // A leading dimension and a stride of 2^33, which are never used by a single row and a batch of one.
  const Tensor a(context(), integers(5, 3, 1)), b(context(), std::vector<float>(20, 1.0f)), c(context(), 4);
  const uint64_t far = uint64_t{1} << 33;
  ASSERT_OK(tuff_batched_gemm(context(), F, N, N, 1, 4, 5, 1, a, far, far, b, 4, far, 0, c, far, far, 1));
  const auto x = integers(5, 3, 1);
  expect_same_bits(c.read(), std::vector<float>(4, x[0] + x[1] + x[2] + x[3] + x[4]));
}

// A buffer larger than 2^32 bytes, on devices with enough memory: elements at its far end.
TEST_P(Semantics, OffsetsBeyond2To32Work) {
  const uint64_t ld = (uint64_t{1} << 30) + 8, bytes = (ld + 4) * 4;
  const tuff_device_properties info = properties_of(context());
  if (reduced() || info.max_allocation_bytes < bytes || info.memory_bytes < 2 * bytes) {
    GTEST_SKIP() << "the device has no room for a buffer beyond 4 GiB";
  }
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.flags = TUFF_ALLOC_UNINITIALIZED;
  desc.bytes = bytes;
  tuff_buffer handle = 0;
  ASSERT_OK(tuff_alloc_ex(context(), &desc, &handle));
  const OwnBuffer a(handle);
  const float rows[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  ASSERT_OK(tuff_copy_htod(context(), a, 0, rows[0], 16));
  ASSERT_OK(tuff_copy_htod(context(), a, ld * 4, rows[1], 16));
  const Tensor b(context(), std::vector<float>(4, 1.0f)), c(context(), 2);
  ASSERT_OK(tuff_gemm(context(), F, N, N, 2, 1, 4, 1, a, ld, b, 1, 0, c, 1));
  expect_same_bits(c.read(), {10.0f, 26.0f});
}

TEST_P(Semantics, OperandsWithoutElementsMayBeNull) {
  const Tensor c(context(), std::vector<float>(6, 3.0f));
  EXPECT_OK(tuff_gemm(context(), F, N, N, 2, 3, 0, 1, 0, 0, 0, 3, 2, c, 3));  // A and B have no elements
  expect_same_bits(c.read(), std::vector<float>(6, 6.0f));
  EXPECT_OK(tuff_unary(context(), F, TUFF_UNARY_EXP, 0, 0, 0));
  EXPECT_OK(tuff_binary(context(), F, TUFF_BINARY_ADD, 0, 0, 0, 0));
  const uint64_t shape[] = {0, 5};
  EXPECT_OK(tuff_reduce(context(), F, TUFF_REDUCE_MAX, 0, 0, shape, 2, 1));
  EXPECT_OK(tuff_softmax(context(), F, 0, 0, shape, 2, 1));
  EXPECT_OK(tuff_attention(context(), F, 0, 0, 0, 0, 0, 2, 3, 4, 5, 1, TUFF_CAUSAL_NONE));
}

TEST_P(Semantics, OuterSizesOfZeroTouchNothing) {
  const Tensor x(context(), 50), y(context(), 50), z(context(), 50);
  const Tensor* const outputs[] = {&z};
  EXPECT_OK(tuff_gemm(context(), F, N, N, 0, 5, 5, 1, x, 5, y, 5, 0, z, 5));
  EXPECT_OK(tuff_gemm(context(), F, N, N, 5, 0, 5, 1, x, 5, y, 5, 0, z, 5));
  EXPECT_OK(tuff_batched_gemm(context(), F, N, N, 5, 5, 5, 1, x, 5, 25, y, 5, 25, 0, z, 5, 25, 0));
  const uint64_t in[4] = {0, 1, 3, 3}, filter[4] = {1, 1, 2, 2}, out[4] = {0, 1, 2, 2}, ones[2] = {1, 1},
                 zeros[2] = {0, 0};
  EXPECT_OK(tuff_conv2d(context(), F, x, in, y, filter, z, out, ones, zeros));
  EXPECT_OK(tuff_attention(context(), F, x, y, x, z, 0, 1, 2, 2, 2, 1, TUFF_CAUSAL_NONE));
  EXPECT_OK(tuff_attention(context(), F, x, y, x, z, 1, 0, 2, 2, 2, 1, TUFF_CAUSAL_NONE));
  const uint64_t shape[3] = {0, 4, 4};
  EXPECT_OK(tuff_reduce(context(), F, TUFF_REDUCE_SUM, x, z, shape, 3, 1));
  EXPECT_OK(tuff_softmax(context(), F, x, z, shape, 3, 1));
  EXPECT_OK(tuff_unary(context(), F, TUFF_UNARY_NEG, x, z, 0));
  EXPECT_OK(tuff_binary(context(), F, TUFF_BINARY_ADD, x, y, z, 0));
  for (const Tensor* output : outputs) output->expect_poisoned();
}

TEST_P(Semantics, ElementwiseOutputMayBeExactlyAnInput) {
  const std::vector<float> ha = integers(1000, 9, 1), hb = integers(1000, 9, 2);
  std::vector<float> sum(1000), negated(1000);
  for (size_t i = 0; i < 1000; ++i) sum[i] = ha[i] + hb[i], negated[i] = -ha[i];
  const Tensor onto_a(context(), ha), onto_b(context(), hb), alone(context(), ha);
  ASSERT_OK(tuff_binary(context(), F, TUFF_BINARY_ADD, onto_a, onto_b, onto_a, 1000));
  EXPECT_EQ(onto_a.read(), sum);
  ASSERT_OK(tuff_binary(context(), F, TUFF_BINARY_ADD, alone, onto_b, onto_b, 1000));
  EXPECT_EQ(onto_b.read(), sum);
  ASSERT_OK(tuff_unary(context(), F, TUFF_UNARY_NEG, alone, alone, 1000));
  EXPECT_EQ(alone.read(), negated);
  // Another handle to exactly the same bytes is the same memory.
  tuff_buffer view = 0;
  ASSERT_OK(tuff_view(alone, 0, 4000, &view));
  ASSERT_OK(tuff_unary(context(), F, TUFF_UNARY_NEG, alone, view, 1000));
  EXPECT_EQ(alone.read(), ha);
  ASSERT_OK(tuff_free(view));
}

TEST_P(Semantics, AnyOtherOverlapIsAnError) {
  const std::vector<float> before = integers(400, 9, 1);
  const Tensor whole(context(), before), other(context(), 400);
  tuff_buffer next = 0;
  ASSERT_OK(tuff_view(whole, 4, 1200, &next));
  const OwnBuffer shifted(next);
  EXPECT_FAILS(tuff_unary(context(), F, TUFF_UNARY_NEG, whole, shifted, 100), kArgument, "tuff_unary", "output");
  EXPECT_FAILS(tuff_binary(context(), F, TUFF_BINARY_ADD, other, shifted, whole, 100), kArgument, "tuff_binary",
               "output");
  EXPECT_FAILS(tuff_gemm(context(), F, N, N, 4, 4, 4, 1, whole, 4, other, 4, 0, whole, 4), kArgument, "tuff_gemm", "c");
  EXPECT_FAILS(tuff_gemm(context(), F, N, N, 4, 4, 4, 1, other, 4, shifted, 4, 0, whole, 4), kArgument, "tuff_gemm",
               "c");
  EXPECT_FAILS(tuff_batched_gemm(context(), F, N, N, 4, 4, 4, 1, whole, 4, 0, other, 4, 0, 0, shifted, 4, 16, 2),
               kArgument, "tuff_batched_gemm", "c");
  const uint64_t shape[] = {10, 10}, image[4] = {1, 1, 4, 4}, one[4] = {1, 1, 1, 1}, ones[2] = {1, 1},
                 zeros[2] = {0, 0};
  EXPECT_FAILS(tuff_reduce(context(), F, TUFF_REDUCE_SUM, whole, whole, shape, 2, 0), kArgument, "tuff_reduce",
               "output");
  EXPECT_FAILS(tuff_softmax(context(), F, whole, shifted, shape, 2, 0), kArgument, "tuff_softmax", "output");
  EXPECT_FAILS(tuff_conv2d(context(), F, whole, image, other, one, whole, image, ones, zeros), kArgument, "tuff_conv2d",
               "output");
  EXPECT_FAILS(tuff_conv2d(context(), F, other, image, whole, one, whole, image, ones, zeros), kArgument, "tuff_conv2d",
               "output");
  for (int i = 0; i < 3; ++i) {
    const tuff_buffer inputs[] = {i == 0 ? whole : other, i == 1 ? whole : other, i == 2 ? whole : other};
    EXPECT_FAILS(tuff_attention(context(), F, inputs[0], inputs[1], inputs[2], shifted, 1, 1, 2, 2, 8, 1, 0), kArgument,
                 "tuff_attention", "o");
  }
  EXPECT_FAILS(tuff_copy_dtod(context(), whole, 0, shifted, 0, 8), kArgument, "tuff_copy_dtod", "src");
  whole.expect_unchanged(before);
  other.expect_poisoned();
}

TEST_P(Semantics, NeighboursInOneBufferDoNotOverlap) {
  const OwnBuffer buffer(context(), 400);
  std::vector<OwnBuffer> part;
  for (uint64_t i = 0; i < 4; ++i) {
    tuff_buffer view = 0;
    ASSERT_OK(tuff_view(buffer, i * 100, 100, &view));
    part.emplace_back(view);
  }
  EXPECT_OK(tuff_unary(context(), F, TUFF_UNARY_EXP, part[0], part[1], 25));
  EXPECT_OK(tuff_binary(context(), F, TUFF_BINARY_ADD, part[1], part[0], part[2], 25));
  std::vector<float> values(100);
  ASSERT_OK(tuff_copy_dtoh(context(), values.data(), buffer, 0, 400));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(values[i], i < 25 || i >= 75 ? 0.0f : 1.0f) << i;
}

TEST_P(Semantics, ElementAlignedOffsetsAreEnough) {
  for (uint64_t shift : {4, 8, 12, 20, 60, 68}) {
    SCOPED_TRACE(shift);
    run_gemm(context(), {.m = 33, .n = 40, .k = 24, .beta = 1, .shift = shift}, Tier::exact);
    run_conv(context(),
             {.batch = 1, .channels = 4, .height = 9, .width = 8, .filters = 4, .rows = 3, .cols = 3, .shift = shift},
             Tier::exact);
    run_attention(context(), {.heads = 2, .seq_q = 9, .seq_kv = 8, .head_dim = 16, .shift = shift});
    const std::vector<float> x = integers(1000, 9, 3);
    const Tensor input(context(), x, shift), output(context(), 1000, shift + 4), sums(context(), 10, shift);
    ASSERT_OK(tuff_unary(context(), F, TUFF_UNARY_ABS, input, output, 1000));
    std::vector<float> expected(1000);
    for (size_t i = 0; i < 1000; ++i) expected[i] = std::fabs(x[i]);
    EXPECT_EQ(output.read(), expected);
    const uint64_t shape[] = {10, 100};
    ASSERT_OK(tuff_reduce(context(), F, TUFF_REDUCE_SUM, input, sums, shape, 2, 1));
    Expected totals;
    for (int i = 0; i < 10; ++i) {
      double sum = 0;
      for (int j = 0; j < 100; ++j) sum += x[i * 100 + j];
      totals.value.push_back(sum);
    }
    expect_matches(sums.read(), totals);
  }
}

TEST_P(Semantics, OperandsBeyondTheDescriptorRangeWork) {
  if (reduced()) GTEST_SKIP() << "the tables of every operation hold such a case for the full run";
  const uint64_t range = properties_of(context()).max_storage_range_bytes;
  const uint64_t n = std::min<uint64_t>(range, uint64_t{1} << 27) / 4 + 1'000'001;  // 4 MB beyond 128 MiB
  std::vector<float> x(n, 1.0f);
  x[n - 1] = 5;
  const Tensor input(context(), x), sum(context(), 1);
  ASSERT_OK(tuff_unary(context(), F, TUFF_UNARY_NEG, input, input, n));
  ASSERT_OK(tuff_reduce(context(), F, TUFF_REDUCE_MIN, input, sum, &n, 1, 0));
  expect_same_bits(sum.read(), {-5.0f});
}

TEST_P(Semantics, DispatchesBeyond65535GroupsWork) {
  run_gemm(context(), {.m = 300'000, .n = 1, .k = 1, .batch = 1}, Tier::exact);
  run_gemm(context(), {.m = 1, .n = 1, .k = 3, .batch = 150'000}, Tier::exact);
  run_attention(context(), {.batch = 70'001, .seq_q = 1, .seq_kv = 1, .head_dim = 1});
  run_conv(context(), {.batch = 70'001}, Tier::exact);
}

TEST_P(Semantics, OperationsTakeEffectInTheOrderOfTheCalls) {
  // x = ((0 + 1) * 2 + 1) * 2 …: swapping any two neighbouring operations changes the result.
  const Tensor x(context(), std::vector<float>(64, 0.0f)), one(context(), std::vector<float>(64, 1.0f)),
      two(context(), std::vector<float>(64, 2.0f));
  float expected = 0;
  for (int i = 0; i < 12; ++i) {
    ASSERT_OK(tuff_binary(context(), F, TUFF_BINARY_ADD, x, one, x, 64));
    ASSERT_OK(tuff_binary(context(), F, TUFF_BINARY_MUL, x, two, x, 64));
    expected = (expected + 1) * 2;
  }
  expect_same_bits(x.read(), std::vector<float>(64, expected));
}

TEST_P(Semantics, WhateverThreadMadeTheCalls) {
  const Tensor x(context(), std::vector<float>(64, 0.0f)), one(context(), std::vector<float>(64, 1.0f)),
      two(context(), std::vector<float>(64, 2.0f));
  std::atomic<int> turn{0};
  const auto worker = [&](int mine) {
    for (int i = 0; i < 10; ++i) {
      while (turn.load() % 2 != mine) std::this_thread::yield();
      EXPECT_OK(
          tuff_binary(context(), F, mine == 0 ? TUFF_BINARY_ADD : TUFF_BINARY_MUL, x, mine == 0 ? one : two, x, 64));
      ++turn;
    }
  };
  context();  // creates the context before the threads start
  std::thread first(worker, 0), second(worker, 1);
  first.join();
  second.join();
  float expected = 0;
  for (int i = 0; i < 10; ++i) expected = (expected + 1) * 2;
  expect_same_bits(x.read(), std::vector<float>(64, expected));
}

TEST_P(Semantics, NewBuffersReadAsZero) {
  for (uint64_t bytes : {4, 1000, 100'000, 20'000'000}) {
    if (reduced() && bytes > 1'000'000) continue;
    const OwnBuffer buffer(context(), bytes);
    std::vector<uint8_t> values(bytes, 1);
    ASSERT_OK(tuff_copy_dtoh(context(), values.data(), buffer, 0, bytes));
    EXPECT_EQ(std::count(values.begin(), values.end(), 0), static_cast<ptrdiff_t>(bytes));
    ASSERT_OK(tuff_fill(context(), buffer, 0, bytes, "\x5a", 1));  // so that the next allocation would find it
  }
}

TEST_P(Semantics, MemoryOfAnotherContextIsCleared) {
  constexpr uint64_t kBytes = 3'000'000;
  for (int i = 0; i < 3; ++i) {
    const OwnContext own(GetParam());
    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc;
    desc.bytes = kBytes;
    desc.flags = i == 2 ? TUFF_ALLOC_HOST_VISIBLE : 0;
    tuff_buffer buffer = 0;
    ASSERT_OK(tuff_alloc_ex(own, &desc, &buffer));
    std::vector<uint8_t> values(kBytes, 1);
    ASSERT_OK(tuff_copy_dtoh(own, values.data(), buffer, 0, kBytes));
    EXPECT_EQ(std::count(values.begin(), values.end(), 0), static_cast<ptrdiff_t>(kBytes));
    ASSERT_OK(tuff_fill(own, buffer, 0, kBytes, "\xa7", 1));
    ASSERT_OK(tuff_synchronize(own));
  }
}
TUFF_ON_BACKENDS(Semantics);

}  // namespace
}  // namespace tuff_test::semantics_test
