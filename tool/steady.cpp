#include "tool/steady.hpp"

#include <algorithm>
#include <vector>

namespace tool {
namespace {

constexpr size_t kSamples = 4;  // that must agree, each a quarter of the measuring time
constexpr uint64_t kMaxRepetitions = 1'000'000;

}  // namespace

Steady measure_steadily(const std::function<double(uint64_t repetitions)>& elapsed, const std::function<double()>& now,
                        double seconds, double warm_seconds) {
  elapsed(1);  // compiles, and touches memory for the first time
  const double begin = now(), share = seconds / kSamples;
  const double patience = std::max(kMinPatience, kPatience * seconds);
  std::vector<double> samples;
  double last = elapsed(1);
  while (true) {
    const auto repetitions = static_cast<uint64_t>(std::clamp(share / last, 1.0, static_cast<double>(kMaxRepetitions)));
    const double took = elapsed(repetitions);
    last = took / static_cast<double>(repetitions);
    // Far too short: the first estimate came from a device at a lower clock, or from a single call.
    if (took < share / 2 && repetitions < kMaxRepetitions) continue;
    samples.push_back(last);
    // For long repetitions two samples are enough.
    const auto wanted = static_cast<size_t>(std::clamp(seconds / last, 2.0, static_cast<double>(kSamples)));
    const bool late = now() - begin >= patience;
    if (samples.size() < wanted || (!late && now() - begin < warm_seconds)) continue;
    const auto from = samples.end() - static_cast<std::ptrdiff_t>(wanted);
    const auto [least, most] = std::minmax_element(from, samples.end());
    const Steady result{*least, *most, *most <= kAgree * *least};
    if (result.stable || late) return result;
  }
}

}  // namespace tool
