// Which rate tuff bench reports, on simulated devices with the test's own clock.
#include <gtest/gtest.h>

#include <cmath>

#include "tool/steady.hpp"

namespace tool {
namespace {

// A simulated device on which a repetition that starts at t takes seconds(t).
class Device {
 public:
  explicit Device(std::function<double(double)> seconds) : seconds_(std::move(seconds)) {}

  Steady measure(double seconds, double warm = kWarmSeconds) {
    return measure_steadily(
        [this](uint64_t repetitions) {
          const double begin = time;
          for (uint64_t i = 0; i < repetitions; ++i) time += seconds_(time);
          calls += repetitions;
          return time - begin;
        },
        [this] { return time; }, seconds, warm);
  }
  double time = 0;
  uint64_t calls = 0;

 private:
  std::function<double(double)> seconds_;
};

TEST(ToolSteady, ASteadyDeviceIsMeasuredForItsTime) {
  for (const double each : {1e-6, 1e-3, 0.03, 0.5, 7.0}) {
    Device device([=](double) { return each; });
    const Steady steady = device.measure(0.2);
    EXPECT_TRUE(steady.stable) << each;
    EXPECT_NEAR(steady.best, each, 1e-9 * each + 1e-15);
    EXPECT_LE(device.time, std::max(0.6, 5 * each)) << each;
  }
}

// A GPU that waited for a compiler: 345 MHz at first, then 1980.
TEST(ToolSteady, ALowClockAfterCompilingIsNotTheRate) {
  for (const double until : {0.01, 0.1, 0.25, 0.9}) {
    Device device([=](double t) { return t < until ? 2.1e-3 : 0.4e-3; });
    const Steady steady = device.measure(0.2, kFirstWarmSeconds);
    EXPECT_TRUE(steady.stable) << until;
    EXPECT_NEAR(steady.best, 0.4e-3, 0.02e-3) << until;
  }
}

TEST(ToolSteady, AClockThatRisesSlowlyIsWaitedFor) {
  Device device([](double t) { return t < 2 ? 5e-3 - 2e-3 * t : 1e-3; });
  const Steady steady = device.measure(0.2);
  EXPECT_TRUE(steady.stable);
  EXPECT_NEAR(steady.best, 1e-3, 0.06e-3);
}

TEST(ToolSteady, WhatNeverSettlesSaysSoInTime) {
  uint64_t number = 0;
  Device device([&](double) { return ++number / 50 % 2 == 0 ? 1e-3 : 2e-3; });  // each rate lasts for one sample
  const Steady steady = device.measure(0.2);
  EXPECT_FALSE(steady.stable);
  EXPECT_GT(steady.slowest, kAgree * steady.best);
  EXPECT_LE(device.time, kMinPatience + 0.5);

  Device slower([&](double t) { return 1 + t; });  // each call takes twice as long as the previous one
  EXPECT_FALSE(slower.measure(0.2).stable);
}

}  // namespace
}  // namespace tool
