// How long something takes on a device whose clock changes.
#pragma once

#include <cstdint>
#include <functional>

namespace tool {

struct Steady {
  double best = 0;      // seconds of one repetition, of the last measurements
  double slowest = 0;   // likewise
  bool stable = false;  // they agree
};

// Successive measurements that agree so well are the device's rate.
constexpr double kAgree = 1.05;
// A device that waited, for a compiler above all, runs at a low clock for a while, as steadily as at a high one: it is
// kept at work before anything counts, the first time for longer.
constexpr double kWarmSeconds = 0.3, kFirstWarmSeconds = 1;
// How long to wait for a rate to settle: in seconds, and in times that are measured.
constexpr double kMinPatience = 3, kPatience = 10;

// Measures until the last measurements agree, together about `seconds`, or patience ends.
//   elapsed   carries out so many repetitions and waits for them: the seconds that it took
//   now       seconds, from any moment on
Steady measure_steadily(const std::function<double(uint64_t repetitions)>& elapsed, const std::function<double()>& now,
                        double seconds, double warm_seconds);

}  // namespace tool
