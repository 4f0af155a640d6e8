// After a first round, calls create no Vulkan objects and make no allocations in the library.
#include "support/allocation_count.hpp"
#include "support/call_table.hpp"
#include "support/tensor.hpp"

namespace tuff_test::steady_state_test {
namespace {

class SteadyState : public OnBackend {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < kCallBuffers; ++i) {
      operands_[i] = buffers_[i] = OwnBuffer(context(), kCallBytes);
    }
  }
  // Operations, fills and copies within the device. The host side of host copies is up to the driver.
  static bool queued(const BufferCall& row) {
    const std::string function = row.function;
    return row.has_stream && function != "tuff_copy_htod" && function != "tuff_copy_dtoh";
  }
  void every_call_once() {
    for (const BufferCall& row : buffer_calls()) {
      if (!row.has_stream) continue;
      ASSERT_OK(row.call(context(), operands_)) << row.function;
    }
  }

  OwnBuffer buffers_[kCallBuffers];
  tuff_buffer operands_[kCallBuffers];
};

TEST_P(SteadyState, MakesNoVulkanObjects) {
  for (int i = 0; i < 60; ++i) every_call_once();
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats before = stats_of(context());
  for (int i = 0; i < 60; ++i) every_call_once();  // more than a thousand calls
  ASSERT_OK(tuff_synchronize(context()));
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.vulkan_objects_created, before.vulkan_objects_created);
  EXPECT_EQ(after.pipelines_created, before.pipelines_created);
  EXPECT_EQ(after.shaders_compiled, before.shaders_compiled);
  EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
}

// Sizes are not constants of kernels: two hundred sizes create a few pipelines, not two hundred.
TEST_P(SteadyState, SizesShareKernels) {
  const OwnBuffer x(context(), 8u << 20), y(context(), 8u << 20);
  const auto unary = [&](uint64_t n) { return tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, x, y, n); };
  const auto columns = [&](uint64_t n) {
    const uint64_t shape[] = {40, n / 40};
    return tuff_reduce(context(), TUFF_F32, TUFF_REDUCE_MAX, x, y, shape, 2, 0);
  };
  const auto transposed = [&](uint64_t n) {
    const uint64_t shape[] = {n / 40, 40};
    const uint32_t order[] = {1, 0};
    return tuff_permute(context(), TUFF_F32, x, y, shape, 2, order);
  };
  const auto few = [&](const char* name, uint64_t most, auto call) {
    const uint64_t before = stats_of(context()).pipelines_created;
    for (uint64_t n = 4000; n < 2'000'000; n += n / 120 * 4) ASSERT_OK(call(n)) << name << " of " << n;
    ASSERT_OK(tuff_synchronize(context()));
    EXPECT_LE(stats_of(context()).pipelines_created - before, most) << name;
  };
  few("unary", 1, unary);
  few("reduce", 4, columns);
  few("permute", 4, transposed);
}

// Buffers that are allocated and freed repeatedly reuse memory.
TEST_P(SteadyState, ReusesMemory) {
  const auto round = [&] {
    for (uint64_t bytes : {64, 4096, 100'000, 3'000'000}) {
      const OwnBuffer buffer(context(), bytes);
      ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, bytes / 4));
    }
    ASSERT_OK(tuff_synchronize(context()));
  };
  for (int i = 0; i < 5; ++i) round();
  const tuff_stats before = stats_of(context());
  for (int i = 0; i < 20; ++i) round();
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.vulkan_objects_created, before.vulkan_objects_created);
  EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
}

TEST_P(SteadyState, CallsDoNotAllocate) {
  if (!vulkan()) GTEST_SKIP() << "the reference backend promises nothing of the kind";
  if (!counts_allocations()) GTEST_SKIP() << "the sanitizer has operator new";
  if (validating()) GTEST_SKIP() << "the validation layer allocates inside every call";
  for (int i = 0; i < 60; ++i) every_call_once();
  for (const BufferCall& row : buffer_calls()) {
    if (!queued(row)) continue;
    ASSERT_OK(tuff_synchronize(context()));
    uint64_t failures = 0;
    const uint64_t before = allocation_count();
    for (int i = 0; i < 50; ++i) failures += row.call(context(), operands_) != TUFF_OK;
    const uint64_t made = allocation_count() - before;
    EXPECT_EQ(failures, 0u) << row.function;
    EXPECT_EQ(made, 0u) << row.function << " allocated in 50 calls";
  }
  // The counter works: an error message is allocated inside the library.
  const uint64_t before = allocation_count();
  tuff_synchronize(0);
  EXPECT_GT(allocation_count(), before);
}
TUFF_ON_BACKENDS(SteadyState);

}  // namespace
}  // namespace tuff_test::steady_state_test
