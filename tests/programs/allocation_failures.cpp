// Makes the library's allocations fail, one after another, in everything that a program may request of it.
//
//   tuff_allocation_failures BACKEND [--frames n] [--seconds s] [--seed n] [--part i/n] [--only SCENARIO:n:once|on]
//
// A scenario is a short piece of work. First the program counts the library's allocations in it. Then it repeats the
// scenario for each n with the n-th allocation failing: once with that allocation alone, and once with all later ones
// failing too until the call has returned. Compiling a kernel allocates tens of thousands of times at few places, so
// the program takes the first allocation of each call path only: the innermost 12 frames inside the library, or
// --frames. With --frames 0 it takes every allocation. A call may succeed nevertheless, or return OUT_OF_HOST_MEMORY
// and succeed when it is repeated. Its results must be correct, everything can be destroyed, and neither the library
// nor the context may hold more memory afterwards than before. Without --seconds the program tries all of that. With
// it, a sample by a seed that is printed: for that long it counts in scenarios in random order, and for as long it
// repeats them.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "programs/allocation_hook.hpp"
#include "programs/scenarios.hpp"
#include "support/options.hpp"
#include "tuff/tuff.h"

namespace tuff_test {
namespace {

bool vulkan() { return std::strcmp(backend, "vulkan") == 0; }

// The current trial, for messages.
const char* scenario_name = "";
uint64_t failing = 0;
bool failing_on = false;
int problems = 0;

class Allocations : public Failures {
 public:
  void begin() override { fail_allocation(failing, failing_on); }
  void end() override {
    has_failed = stop_failing();
    seen = allocations_seen();
  }
  bool excuses(const char*, tuff_status status, Then) override {
    return stop_failing() && status == TUFF_ERROR_OUT_OF_HOST_MEMORY;
  }
  void problem(const char* text) override {
    char message[512] = "";
    tuff_last_error(message, sizeof message, nullptr);
    std::printf("--only %s:%llu:%s: %s (last error: %s)\n", scenario_name, static_cast<unsigned long long>(failing),
                failing_on ? "on" : "once", text, message);
    std::fflush(stdout);
    ++problems;
  }
  bool counting() const override { return counts; }

  bool counts = false, has_failed = false;
  uint64_t seen = 0;
} allocations;

class Runner {
 public:
  Runner() : context_(new_context()) {}
  ~Runner() { MADE(tuff_context_destroy(context_)); }

  // Returns the call path of each allocation, or numbers that are all different if `frames` is 0.
  std::vector<uint64_t> count(const Scenario& scenario, unsigned frames) {
    allocations.counts = true;
    perform(scenario, 0, false);
    perform(scenario, 0, false);
    allocations.counts = false;
    record_paths(frames);
    perform(scenario, 0, false);
    record_paths(0);
    if (frames != 0) return recorded_paths();
    std::vector<uint64_t> numbers(allocations.seen);
    for (uint64_t& number : numbers) number = ++counted_;
    return numbers;
  }

  // Runs the scenario with the n-th allocation failing, several times: tables grow in steps and stay, but a leak grows
  // each time.
  void check(const Scenario& scenario, uint64_t n, bool on) {
    for (int times = 0; times < kTimes; ++times) {
      const Held before = held();
      if (!perform(scenario, n, on)) return;  // fewer allocations than counted: threads may help or not
      if (scenario.in == Scenario::In::shared_context) perform(scenario, 0, false);
      const Held after = held();
      failing = n, failing_on = on;
      if (after.ranges != before.ranges || after.buffers != before.buffers || after.imported != before.imported) {
        problem("the context holds %llu ranges, %llu buffers and %llu imported bytes, before it were %llu, %llu, %llu",
                after.ranges, after.buffers, after.imported, before.ranges, before.buffers, before.imported);
      }
      if (after.library <= before.library) return;
      if (times + 1 < kTimes) continue;
      problem("the library holds %lld allocations, before it were %lld", static_cast<long long>(after.library),
              static_cast<long long>(before.library));
    }
  }

 private:
  static constexpr int kTimes = 4;
  struct Held {
    int64_t library = 0;
    unsigned long long ranges = 0, buffers = 0, imported = 0;
  };

  // Returns whether an allocation failed.
  bool perform(const Scenario& scenario, uint64_t n, bool on) {
    scenario_name = scenario.name.c_str();
    failing = n, failing_on = on;
    const bool fresh = scenario.in == Scenario::In::fresh_context;
    const tuff_context context = fresh ? new_context() : context_;
    if (!scenario.marks_itself) allocations.begin();
    scenario.run(context);
    if (fresh) MADE(tuff_context_destroy(context));
    if (!scenario.marks_itself) allocations.end();
    return allocations.has_failed;
  }

  Held held() {
    MADE(tuff_synchronize(context_));
    MADE(tuff_context_trim(context_));
    auto memory = sized<tuff_memory_stats>();
    auto stats = sized<tuff_stats>();
    MADE(tuff_context_memory(context_, &memory));
    MADE(tuff_context_stats(context_, &stats));
    return {live_allocations(), memory.live_allocations, stats.live_buffers, memory.bytes_imported};
  }

  const tuff_context context_;
  uint64_t counted_ = 0;
};

struct Trial {
  const Scenario* scenario;
  uint64_t n;
  bool on;
};

// Shuffles the trials and takes them from each scenario in rotation, so that scenarios with few allocations are covered
// as well.
void sample(std::vector<Trial>& trials, uint64_t seed) {
  std::shuffle(trials.begin(), trials.end(), std::mt19937_64(seed));
  std::map<const Scenario*, size_t> counts;
  std::vector<std::pair<size_t, Trial>> order;
  for (const Trial& trial : trials) order.emplace_back(counts[trial.scenario]++, trial);
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < order.size(); ++i) trials[i] = order[i].second;
}

// The first call of the process, which creates the driver's instance.
void first_call() {
  scenario_name = "first";
  for (uint64_t n = 1; vulkan(); ++n) {
    uint32_t count = 0;
    failing = n;
    fail_allocation(n, n % 2 == 0);
    const tuff_status status = tuff_device_count(&count);
    const bool failed = stop_failing();
    if (status == TUFF_OK) {
      if (!failed) return;
      continue;
    }
    if (status != TUFF_ERROR_OUT_OF_HOST_MEMORY || !failed) return problem("tuff_device_count answers %d", status);
  }
}

// Prints the current trial.
void crashed(int signal) {
  const char on[] = ":on", once[] = ":once";
  char text[300];
  const int length = std::snprintf(text, sizeof text, "--only %s:%llu%s: signal %d\n", scenario_name,
                                   static_cast<unsigned long long>(failing), failing_on ? on : once, signal);
  if (write(STDOUT_FILENO, text, static_cast<size_t>(length)) < 0) _exit(2);
  _exit(1);
}

int run(double seconds, uint64_t seed, unsigned frames, const Part& part, const std::string& only) {
  using Clock = std::chrono::steady_clock;
  first_call();
  Runner runner;
  std::vector<Trial> trials;
  std::set<uint64_t> paths;
  std::vector<Scenario> scenarios = all_scenarios();
  const bool samples = seconds != 0 && only.empty();
  if (samples) {
    std::shuffle(scenarios.begin(), scenarios.end(), std::mt19937_64(seed));
    std::printf("--seed %llu\n", static_cast<unsigned long long>(seed));
  }
  const auto begin = Clock::now();
  size_t counted = 0;
  for (const Scenario& scenario : scenarios) {
    if (samples && std::chrono::duration<double>(Clock::now() - begin).count() > seconds) break;
    ++counted;
    const std::vector<uint64_t> allocated = runner.count(scenario, only.empty() ? frames : 0);
    if (problems != 0) return 1;
    size_t of_scenario = 0;
    for (uint64_t n = 1; n <= allocated.size(); ++n) {
      if (!paths.insert(allocated[n - 1]).second) continue;
      ++of_scenario;
      for (const bool on : {false, true}) {
        const std::string name = scenario.name + ":" + std::to_string(n) + (on ? ":on" : ":once");
        const bool wanted = only.empty() || name.rfind(only, 0) == 0;
        if (wanted) trials.push_back({&scenario, n, on});
      }
    }
    if (only.empty()) {
      std::printf("%s: %zu allocations, %zu new paths\n", scenario.name.c_str(), allocated.size(), of_scenario);
    }
  }
  uint64_t number = 0;
  std::erase_if(trials, [&](const Trial&) { return !part.has(number++); });
  std::printf("%zu of %zu scenarios\n", counted, scenarios.size());
  if (seconds != 0) sample(trials, seed);
  std::fflush(stdout);
  const auto start = Clock::now();
  size_t done = 0;
  for (const Trial& trial : trials) {
    if (seconds != 0 && std::chrono::duration<double>(Clock::now() - start).count() > seconds) break;
    if (problems > 20) break;
    if (!only.empty()) std::printf("%s:%llu\n", trial.scenario->name.c_str(), static_cast<unsigned long long>(trial.n));
    runner.check(*trial.scenario, trial.n, trial.on);
    ++done;
  }
  std::printf("%zu of %zu trials, %d problems\n", done, trials.size(), problems);
  return problems == 0 && done != 0 ? 0 : 1;
}

}  // namespace
}  // namespace tuff_test

int main(int count, char** words) {
  std::set_terminate([] {
    tuff_test::problem("std::terminate()");
    std::abort();
  });
  for (const int signal : {SIGSEGV, SIGABRT, SIGBUS}) std::signal(signal, tuff_test::crashed);
  tuff_test::failures = &tuff_test::allocations;
  tuff_test::watch_library(reinterpret_cast<const void*>(&tuff_version));
  double seconds = 0;
  uint64_t seed = std::random_device()(), frames = 12;
  std::string part, only;
  if (count > 1) tuff_test::backend = words[1];
  tuff_test::parse_options(
      count, words, 2,
      "usage: tuff_allocation_failures host|vulkan [--frames n] [--seconds s] [--seed n] "
      "[--only SCENARIO:n:once|on]\n",
      {{"--frames", &frames}, {"--seconds", &seconds}, {"--seed", &seed}, {"--part", &part}, {"--only", &only}});
  return tuff_test::run(seconds, seed, static_cast<unsigned>(std::min<uint64_t>(frames, 1000)),
                        tuff_test::read_part(part), only);
}
