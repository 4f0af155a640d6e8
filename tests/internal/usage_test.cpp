// Pages of usage that are damaged, and the system's sensors in folders that are made up.
#include "runtime/usage.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "platform/sensors.hpp"

namespace tuff {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> page_of(uint32_t slots) {
  std::vector<std::byte> bytes(sizeof(UsageHeader) + slots * sizeof(UsageSlot));
  auto& header = *new (bytes.data()) UsageHeader{};
  std::memcpy(header.magic, kUsageMagic, sizeof header.magic);
  header.version = kUsageVersion;
  header.header_bytes = sizeof(UsageHeader);
  header.slot_bytes = sizeof(UsageSlot);
  header.slots = slots;
  std::memcpy(header.program, "program", 8);
  for (uint32_t i = 0; i < slots; ++i) {
    auto& slot = *new (bytes.data() + sizeof(UsageHeader) + i * sizeof(UsageSlot)) UsageSlot{};
    slot.serial = i % 2 == 0 ? i + 1 : 0;
    std::memcpy(slot.device, "device", 7);
    slot.counters.submissions = 10 + i;
    slot.counters.completed = 7;
    slot.counters.flops = 2.5;
  }
  return bytes;
}

TEST(UsagePage, HoldsTheSlotsThatAreTaken) {
  UsageReport report;
  EXPECT_EQ(parse_usage(page_of(4), 12, report), "");
  ASSERT_EQ(report.contexts.size(), 2u);
  EXPECT_EQ(report.contexts[1].process, 12);
  EXPECT_EQ(report.contexts[1].serial, 3u);
  EXPECT_EQ(report.contexts[1].program, "program");
  EXPECT_EQ(report.contexts[1].device, "device");
  EXPECT_EQ(report.contexts[1].submissions, 12u);
  EXPECT_EQ(report.contexts[1].in_flight, 5u);
  EXPECT_EQ(report.contexts[1].flops, 2.5);
}

// The last submission may be seen to finish before it is seen to begin; numbers are what a damaged page says they are.
TEST(UsagePage, NumbersStayInRange) {
  std::vector<std::byte> bytes = page_of(1);
  auto& slot = *reinterpret_cast<UsageSlot*>(bytes.data() + sizeof(UsageHeader));
  slot.counters.completed = 11;
  for (const double wrong : {-1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    slot.counters.flops = wrong;
    UsageReport report;
    EXPECT_EQ(parse_usage(bytes, 1, report), "");
    EXPECT_EQ(report.contexts.at(0).in_flight, 0u);
    EXPECT_EQ(report.contexts.at(0).flops, 0);
  }
}

// Under a sanitizer this finds reads beyond the end: each copy has exactly the size that it pretends to have.
TEST(UsagePage, AnyBytesAreReadSafely) {
  std::mt19937 random(1);
  const std::vector<std::byte> whole = page_of(kUsageSlots);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(random() % (whole.size() + 1)));
    if (round % 3 == 0) bytes = whole;
    for (int change = static_cast<int>(random() % 8); change > 0 && !bytes.empty(); --change) {
      const size_t within = round % 2 == 0 ? std::min<size_t>(bytes.size(), sizeof(UsageHeader)) : bytes.size();
      bytes[random() % within] = static_cast<std::byte>(random());
    }
    bytes.shrink_to_fit();
    UsageReport report;
    parse_usage(bytes, 1, report);
    EXPECT_LE(report.contexts.size(), kUsageSlots);
    for (const ContextUsage& context : report.contexts) {
      EXPECT_LE(context.device.size(), sizeof UsageSlot::device);
      EXPECT_TRUE(std::isfinite(context.bytes));
    }
  }
}

TEST(Usage, CountsWithAndWithoutASlot) {
  std::vector<std::unique_ptr<Usage>> all;
  for (uint32_t i = 0; i < kUsageSlots + 5; ++i) {
    all.push_back(std::make_unique<Usage>());
    add_usage(all.back()->counters().calls, uint64_t{i});
  }
  for (uint32_t i = 0; i < all.size(); ++i) {
    tuff_usage usage{};
    all[i]->describe(usage);
    EXPECT_EQ(usage.calls, i);
    EXPECT_EQ(usage.published, all[i]->published() ? 1 : 0);
  }
  EXPECT_FALSE(all.back()->published());
  all.clear();
  const Usage fresh;  // a slot that was used before begins at 0
  tuff_usage usage{};
  fresh.describe(usage);
  EXPECT_EQ(usage.calls, 0u);
}

// A process that reads all pages reads its own from memory, while its other threads write there. Each context has a
// name of one letter, so that half of another's name would be seen; ThreadSanitizer sees every unordered access.
TEST(Usage, IsReadWhileContextsComeAndGo) {
  if (!Usage().published()) GTEST_SKIP() << usage_problem();
  constexpr size_t kNameLength = 200;
  constexpr uint64_t kCalls = 100;
  constexpr int kThreads = 3;
  std::atomic<bool> done{false};
  std::atomic<int> finished_once{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, letter = static_cast<char>('a' + thread)] {
      tuff_device_properties device{};
      std::memset(device.name, letter, kNameLength);
      std::memset(device.backend, letter, sizeof device.backend - 1);
      for (bool first = true; first || !done; first = false) {
        Usage usage;
        usage.publish(device);
        for (uint64_t i = 0; i < kCalls; ++i) {
          add_usage(usage.counters().calls, uint64_t{1});
          add_usage(usage.counters().flops, 2.0);
        }
        if (first) ++finished_once;
      }
    });
  }
  // On a busy machine all rounds may fall into one time slice of this thread, while the others stand between two
  // contexts: go on until one has been seen.
  size_t seen = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto enough = [&](int round) { return round >= 200 && finished_once == kThreads && seen > 0; };
  for (int round = 0; !enough(round) && std::chrono::steady_clock::now() < deadline; ++round) {
    for (const ContextUsage& context : read_usage().contexts) {
      if (context.process != ::getpid() || context.device.empty() || context.device[0] > 'c') continue;
      ++seen;
      EXPECT_EQ(context.device, std::string(kNameLength, context.device[0]));
      EXPECT_EQ(context.backend, std::string(sizeof(tuff_device_properties::backend) - 1, context.device[0]));
      EXPECT_LE(context.calls, kCalls);
      EXPECT_LE(context.flops, 2.0 * kCalls);
    }
  }
  done = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(seen, 0u);
}

class Sensors : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/tuff-sensors-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    devices_ = name;
  }
  void TearDown() override { fs::remove_all(devices_); }
  void put(const std::string& file, const std::string& text) {
    const fs::path path = devices_ / "0000:03:00.0" / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  platform::Sensors read() const { return platform::read_sensors("0000:03:00.0", devices_); }

  fs::path devices_;
};

TEST_F(Sensors, AreReadWhereDriversPutThem) {
  put("hwmon/hwmon4/temp1_input", "61500\n");
  put("hwmon/hwmon4/power1_average", "180000000\n");
  put("hwmon/hwmon4/freq1_input", "2105000000\n");
  put("hwmon/hwmon4/freq2_input", "1000000000\n");
  put("gpu_busy_percent", "97\n");
  const platform::Sensors amd = read();
  EXPECT_DOUBLE_EQ(amd.celsius, 61.5);
  EXPECT_DOUBLE_EQ(amd.watts, 180);
  EXPECT_DOUBLE_EQ(amd.core_hertz, 2105e6);
  EXPECT_DOUBLE_EQ(amd.memory_hertz, 1e9);
  EXPECT_DOUBLE_EQ(amd.busy, 0.97);
}

TEST_F(Sensors, OfOtherDrivers) {
  put("drm/card1/gt_act_freq_mhz", "1300\n");
  EXPECT_DOUBLE_EQ(read().core_hertz, 1300e6);
  EXPECT_TRUE(std::isnan(read().celsius));
  fs::remove_all(devices_ / "0000:03:00.0" / "drm");
  put("tile0/gt0/freq0/act_freq", "2400\n");
  EXPECT_DOUBLE_EQ(read().core_hertz, 2400e6);
  put("hwmon/hwmon0/temp1_input", "-5000\n");
  put("hwmon/hwmon0/power1_input", "7000000\n");
  EXPECT_DOUBLE_EQ(read().celsius, -5);
  EXPECT_DOUBLE_EQ(read().watts, 7);
}

TEST_F(Sensors, WhatIsNoNumberIsNotMeasured) {
  for (const char* text : {"", "\n", "hot", "61.5\n", "1 2\n", "99999999999999999999\n"}) {
    put("hwmon/hwmon0/temp1_input", text);
    EXPECT_TRUE(std::isnan(read().celsius)) << text;
  }
  EXPECT_TRUE(std::isnan(platform::read_sensors("", devices_).celsius));
  EXPECT_TRUE(std::isnan(platform::read_sensors("0000:99:00.0", devices_).celsius));
  EXPECT_TRUE(std::isnan(platform::read_sensors("../0000:03:00.0", devices_).celsius));
}

}  // namespace
}  // namespace tuff
