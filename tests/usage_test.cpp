// tuff_context_usage() and tuff_device_read_sensors().
#include <cmath>
#include <vector>

#include "support/kernel.hpp"
#include "support/stream.hpp"
#include "support/threads.hpp"

namespace tuff_test::usage_test {
namespace {

class Usage : public OnBackend {};

TEST_P(Usage, BeginsAtZero) {
  const OwnContext own(GetParam());
  const tuff_usage usage = usage_of(own);
  EXPECT_EQ(usage.calls, 0u);
  EXPECT_EQ(usage.bytes_uploaded, 0u);
  EXPECT_EQ(usage.bytes_limit, 0u);
  EXPECT_EQ(usage.submissions_in_flight, 0u);
}

TEST_P(Usage, CountsCalls) {
  const OwnContext own(GetParam());
  const OwnBuffer x(own, 4096), y(own, 4096);
  std::vector<float> values(1024, -1.0f);
  const float zero = 0;
  ASSERT_OK(tuff_synchronize(own));
  const tuff_usage before = usage_of(own);
  ASSERT_OK(tuff_copy_htod(own, x, 0, values.data(), 4096));
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_ABS, x, y, 1024));
  ASSERT_OK(tuff_fill(own, x, 0, 4096, &zero, 4));
  ASSERT_OK(tuff_copy_dtod(own, x, 0, y, 0, 4096));
  EXPECT_EQ(tuff_unary(own, TUFF_F32, TUFF_UNARY_ABS, x, y, 1025), TUFF_ERROR_INVALID_ARGUMENT);
  ASSERT_OK(tuff_copy_dtoh(own, values.data(), x, 0, 2048));
  const tuff_usage after = usage_of(own);
  EXPECT_EQ(after.calls - before.calls, 5u) << "the call that failed does not count";
  EXPECT_EQ(after.dispatches - before.dispatches, vulkan() ? stats_of(own).dispatches - before.dispatches : 1u);
  EXPECT_EQ(after.bytes_uploaded - before.bytes_uploaded, 4096u);
  EXPECT_EQ(after.bytes_downloaded - before.bytes_downloaded, 2048u);
  EXPECT_EQ(values[0], 1.0f);
  if (!vulkan()) return;
  EXPECT_EQ(after.dispatches, stats_of(own).dispatches);
  EXPECT_EQ(after.submissions, stats_of(own).submissions);
  // The function reads and writes 4 KiB, the fill writes and the copy moves as much.
  EXPECT_GE(after.bytes_moved - before.bytes_moved, 4 * 4096.0);
  EXPECT_GE(after.flops - before.flops, 1024.0);
}

TEST_P(Usage, AgreesWithTheMemoryStatistics) {
  const OwnContext own(GetParam());
  const auto compare = [&] {
    const tuff_memory_stats memory = memory_of(own);
    const tuff_usage usage = usage_of(own);
    EXPECT_EQ(usage.bytes_in_use, memory.bytes_in_use);
    EXPECT_EQ(usage.bytes_reserved, memory.bytes_reserved);
    EXPECT_EQ(usage.bytes_peak, memory.bytes_peak);
    EXPECT_EQ(usage.bytes_limit, memory.bytes_limit);
  };
  compare();
  OwnBuffer small(own, 1000), large(own, 20 << 20);
  compare();
  large.free();
  compare();
  set_limit(own, 100 << 20);
  tuff_buffer beyond = 0;
  EXPECT_EQ(tuff_alloc(own, 200 << 20, &beyond), TUFF_ERROR_LIMIT_EXCEEDED);
  compare();
  ASSERT_OK(tuff_context_trim(own));
  ASSERT_OK(tuff_context_reset_peak(own));
  compare();
}

TEST_P(Usage, ManyThreadsCount) {
  const OwnContext own(GetParam());
  constexpr int kThreads = 4, kCalls = 100;
  on_threads(kThreads, [&](int) {
    const OwnBuffer x(own, 400);
    for (int call = 0; call < kCalls; ++call) {
      EXPECT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_ABS, x, x, 100));
      if (call % 10 == 0) usage_of(own);
    }
  });
  ASSERT_OK(tuff_synchronize(own));
  const tuff_usage usage = usage_of(own);
  EXPECT_EQ(usage.calls, static_cast<uint64_t>(kThreads * kCalls));
  EXPECT_EQ(usage.submissions_in_flight, 0u);
}

TEST_P(Usage, Misuse) {
  tuff_usage usage{};
  EXPECT_FAILS(tuff_context_usage(context(), nullptr), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_usage", "usage");
  EXPECT_FAILS(tuff_context_usage(context(), &usage), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_usage", "struct_size");
  usage.struct_size = sizeof usage;
  EXPECT_FAILS(tuff_context_usage(1, &usage), TUFF_ERROR_INVALID_HANDLE, "tuff_context_usage", "context");
}

// Streams' submissions count too, and a graph's launch what was captured.
TEST_P(Usage, CountsGraphs) {
  const OwnContext own(GetParam());
  const OwnBuffer x(own, 4096);
  const OwnStream stream = make_stream(own);
  const OwnGraph graph = capture(stream, [&] {
    for (int i = 0; i < 3; ++i) EXPECT_OK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_ABS, x, x, 1024));
  });
  ASSERT_OK(tuff_synchronize(own));
  const tuff_usage before = usage_of(own);
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_graph_launch(stream, graph));
  const tuff_usage launched = usage_of(own);
  EXPECT_LE(launched.submissions_in_flight, 2u);
  ASSERT_OK(tuff_synchronize(stream));
  const tuff_usage after = usage_of(own);
  EXPECT_EQ(after.calls - before.calls, 2u);
  EXPECT_EQ(after.dispatches - before.dispatches, 6u);
  EXPECT_EQ(after.submissions_in_flight, 0u);
  if (!vulkan()) return;
  EXPECT_EQ(after.bytes_moved - before.bytes_moved, 6 * 2 * 4096.0);
  // While it is profiled, a graph's commands are recorded one by one.
  ASSERT_OK(tuff_profile_begin(own));
  const tuff_usage profiled = usage_of(own);
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_EQ(usage_of(own).bytes_moved - profiled.bytes_moved, 3 * 2 * 4096.0);
  ASSERT_OK(tuff_profile_end(own));
}

TUFF_ON_BACKENDS(Usage);

TEST(DeviceSensors, AreThoseOfADevice) {
  uint32_t count = 0;
  ASSERT_OK(tuff_device_count(&count));
  tuff_device_sensors sensors{};
  sensors.struct_size = sizeof sensors;
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_OK(tuff_device_read_sensors(i, &sensors));
    tuff_device_properties info{};
    info.struct_size = sizeof info;
    ASSERT_OK(tuff_device_info(i, &info));
    EXPECT_EQ(sensors.heap_bytes, info.memory_bytes);
    EXPECT_LE(sensors.heap_budget_bytes, sensors.heap_bytes);
    for (const double value : {sensors.power_watts, sensors.core_hertz, sensors.memory_hertz, sensors.busy}) {
      EXPECT_TRUE(std::isnan(value) || value >= 0);
    }
    if (sensors.pci_address[0] == '\0') {
      EXPECT_TRUE(std::isnan(sensors.temperature_celsius));
    }
  }
  EXPECT_FAILS(tuff_device_read_sensors(count, &sensors), TUFF_ERROR_INVALID_ARGUMENT, "tuff_device_read_sensors",
               "index");
  EXPECT_FAILS(tuff_device_read_sensors(0, nullptr), TUFF_ERROR_INVALID_ARGUMENT, "tuff_device_read_sensors",
               "sensors");
}

}  // namespace
}  // namespace tuff_test::usage_test
