// Measures durations on a device whose clock changes.
#pragma once

#include <cstdint>
#include <functional>

namespace tool {

struct Steady {
  double best = 0;      // seconds of one repetition, of the last samples
  double slowest = 0;   // likewise
  bool stable = false;  // they agree
};

// Successive samples within this ratio are taken as the device's rate.
constexpr double kAgree = 1.05;
// After waiting, above all for a compiler, a device runs at a low clock for a while, and as steadily as at a high one.
// It is therefore kept busy before anything counts, longer the first time.
constexpr double kWarmSeconds = 0.3, kFirstWarmSeconds = 1;
// How long to wait for a rate to settle: at least this many seconds, or this many times the measuring time.
constexpr double kMinPatience = 3, kPatience = 10;

// Measures until the last samples, together about `seconds` long, agree, or until patience runs out.
//   elapsed   runs that many repetitions, waits for them, and returns the seconds that took
//   now       the time in seconds, from any origin
Steady measure_steadily(const std::function<double(uint64_t repetitions)>& elapsed, const std::function<double()>& now,
                        double seconds, double warm_seconds);

}  // namespace tool
