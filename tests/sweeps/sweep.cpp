// tuff_variant_sweep: every variant of every planner's table, forced by its environment variable, over sizes of 0 to 33
// and offsets of 0 to 20 bytes, compared with the host backend, with guards around every operand.
//
//   tuff_variant_sweep --count 40000                      so many cases of each variant
//   tuff_variant_sweep --family conv --seconds 60
//   tuff_variant_sweep --limits                           whatever planners choose on devices with lower limits
//   tuff_variant_sweep --limits --host --seconds 20       whether all of these calls are valid
//   tuff_variant_sweep --only conv/tile_32x32:1:2:17      one case by itself, with its dispatches
//
// Each variant has a process of its own, since variables are read once. In each case one size is swept; the others are
// drawn. The sizes of GEMM are a permutation of all 34^3. Cases share requests (types, options) so that few kernels are
// compiled.
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "sweeps/batch.hpp"

namespace tuff_sweep {
namespace {

using Clock = std::chrono::steady_clock;
using Number = unsigned long long;

struct Options {
  uint64_t count = ~uint64_t{0}, seed = 0, pool = 0;
  double seconds = 0;  // for all variants together; 0: no limit
  bool seeded = false, limits = false, host = false;
  std::string family, variant, only;

  // One case in so many has a long size; 0: none. Without a device all do, for what functions refuse are long ones.
  uint64_t lengths() const { return !limits ? 0 : host ? 1 : 4; }
};

constexpr uint64_t kBatch = 34;                 // cases between two comparisons
constexpr uint64_t kKernels = 64;               // compiled for a request
constexpr uint64_t kLimitedCases = 2 * kBatch;  // of a request on a limited device
constexpr double kRequests = 12;                // that share the time of a variant
constexpr uint64_t kUselessRequests = 64;       // without one that the variant computes
// A batch that takes longer hangs. Seconds of the CPU tell a loop even where other programs take most of it; the others
// are for what waits, and are many, since a batch of kernels to compile may have to share a CPU with twenty programs.
constexpr unsigned kBatchCpuSeconds = 600, kBatchSeconds = 1800;
constexpr int kFine = 0, kWrong = 77, kAbsent = 78, kUnused = 79;

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

[[noreturn]] void usage(const std::string& wrong) {
  std::fprintf(stderr,
               "tuff_variant_sweep: %s\n"
               "tuff_variant_sweep [--count N] [--seconds T] [--seed S] [--family NAME] [--variant NAME]\n"
               "  --count    cases of each variant\n"
               "  --seconds  for all variants together\n"
               "  --seed     of the cases; without it a fresh one\n"
               "  --limits   the device has the limits that each request draws, and planners choose the variants\n"
               "  --host     the host backend in place of the device: shows in little time whether calls are valid\n"
               "  --pool     so many sets of options of each variant, whose kernels are cached after a few runs\n"
               "tuff_variant_sweep --only CASE    one case by itself, with its dispatches; --limits if it had it\n"
               "tuff_variant_sweep --list         the variants\n",
               wrong.c_str());
  std::exit(2);
}

// The current batch, for a signal that ends the process.
char current[256];
extern "C" void on_signal(int number) {
  const char text[] = "\nFOUND: a signal ended the process in the batch that begins with case ";
  (void)!write(STDOUT_FILENO, text, sizeof text - 1);
  (void)!write(STDOUT_FILENO, current, std::strlen(current));
  (void)!write(STDOUT_FILENO, "\n", 1);
  std::signal(number, SIG_DFL);
  std::raise(number);
}

// SIGPROF after so many seconds of this process's threads, SIGALRM after so many of the clock; 0: never.
void limit_time(unsigned cpu, unsigned clock) {
  itimerval timer{};
  timer.it_value.tv_sec = cpu;
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(clock);
}

// Runs the batch's cases again one by one, for the one that is wrong by itself.
std::string alone(const Forced& forced, const Cases& cases, const Cases::Request& request,
                  const std::vector<uint64_t>& turns, const std::string& together, const Options& options) {
  Runner runner(forced, options.host);
  for (const uint64_t turn : turns) {
    const uint64_t one[] = {turn};
    if (options.limits) runner.limit(request.device);
    if (const std::string wrong = runner.run(cases, request, one); !wrong.empty()) return wrong;
  }
  return together + "\n  not by itself: only among the batch's " + std::to_string(turns.size()) + " cases";
}

void summarise(const Runner& runner, const Forced& forced, double took, uint64_t requests, bool host) {
  const Tally& tally = runner.tally;
  if (host) {
    std::printf("%-28s %7llu valid calls of %llu requests in %5.1f s\n", forced.name().c_str(),
                static_cast<Number>(tally.cases), static_cast<Number>(requests), took);
    return;
  }
  const auto [offsets, all_offsets] = Coverage::count(runner.coverage.offsets);
  const auto [sizes, all_sizes] = Coverage::count(runner.coverage.sizes);
  std::printf(
      "%-28s %7llu cases in %5.1f s: %llu by it, %llu without work, %llu not judged; %llu requests, %llu kernels; ",
      forced.name().c_str(), static_cast<Number>(tally.cases), took, static_cast<Number>(tally.chosen),
      static_cast<Number>(tally.nothing), static_cast<Number>(tally.unjudged), static_cast<Number>(requests),
      static_cast<Number>(runner.kernels()));
  std::printf("offsets %llu of %llu, sizes %llu of %llu", static_cast<Number>(offsets),
              static_cast<Number>(all_offsets), static_cast<Number>(sizes), static_cast<Number>(all_sizes));
  if (forced.family->name == "gemm") {
    const auto& triples = runner.coverage.triples;
    std::printf(", m x n x k %lld of %llu", static_cast<long long>(std::count(triples.begin(), triples.end(), true)),
                static_cast<Number>(kTriples));
  }
  if (tally.refused != 0) std::printf(", %llu refused", static_cast<Number>(tally.refused));
  if (tally.too_large != 0) std::printf(", %llu too large", static_cast<Number>(tally.too_large));
  std::printf("\n");
}

int run_variant(const Options& options, const Forced& forced, double seconds) {
  const Clock::time_point begin = Clock::now();
  Runner runner(forced, options.host);
  if (runner.lacks_matrices()) return kAbsent;
  if (seconds > 0) {
    runner.deadline = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  }
  const Cases cases(forced, options.seed, options.pool, options.lengths());
  uint64_t requests = 0, turn = 0;
  for (uint64_t number = 0; runner.tally.cases < options.count; ++number) {
    if (number > 0 && Clock::now() >= runner.deadline) break;
    const Cases::Request request = cases.request(number);
    ++requests;
    const uint64_t kernels = runner.kernels(), chosen = runner.tally.chosen;
    // With little time, many requests rather than all cases of one.
    const double least = seconds / kRequests;
    const Clock::time_point start = Clock::now();
    const uint64_t first = turn, most = options.limits ? kLimitedCases : kRequestCases;
    if (options.limits) runner.limit(request.device);
    for (; turn < first + most && runner.tally.cases < options.count; turn += kBatch) {
      std::vector<uint64_t> turns(kBatch);
      std::iota(turns.begin(), turns.end(), turn);
      std::snprintf(current, sizeof current, "%s:%llu:%llu:%llu", forced.name().c_str(),
                    static_cast<Number>(options.seed), static_cast<Number>(number), static_cast<Number>(turn));
      limit_time(kBatchCpuSeconds, kBatchSeconds);
      const std::string wrong = runner.run(cases, request, turns);
      limit_time(0, 0);
      if (runner.absent) return kAbsent;
      if (!wrong.empty()) {
        std::printf("FOUND: %s\n", alone(forced, cases, request, turns, wrong, options).c_str());
        return kWrong;
      }
      if (runner.kernels() - kernels > kKernels) break;
      // The variant computes no call of this kind: the next request begins with the same turns. From a pool it may be
      // the same request, which then continues with other sizes.
      if (turn > first && runner.tally.chosen == chosen) {
        if (options.pool == 0) turn = first;
        break;
      }
      if (Clock::now() >= runner.deadline || (seconds > 0 && since(start) > least)) break;
    }
    // Some requests may be of a kind that the variant does not compute; not all, unless a pool holds just that kind.
    if (!options.host && runner.tally.chosen == 0 && requests == kUselessRequests) {
      if (options.pool != 0) break;
      std::printf("FOUND: %s: the planner chose it for none of %llu requests\n", forced.name().c_str(),
                  static_cast<Number>(requests));
      return kWrong;
    }
  }
  summarise(runner, forced, since(begin), requests, options.host);
  // Where a function's messages do not tell the kind, none of its cases would count, and most of them would not be
  // tried.
  for (const auto& [function, messages] : runner.tally.messages) {
    const bool kinds = forced.variant == "cpu" || forced.variant == "gpu";
    if (!kinds || messages.dispatched < kBatch || messages.told_kind != 0) continue;
    std::printf("FOUND: %s: no message of %llu cases of %s tells the kind of kernels\n", forced.name().c_str(),
                static_cast<Number>(messages.dispatched), function.c_str());
    return kWrong;
  }
  return (options.host ? runner.tally.cases : runner.tally.chosen) == 0 ? kUnused : kFine;
}

int repeat(const Options& options) {
  const size_t colon = options.only.find(':'), slash = options.only.find('/');
  Number seed = 0, request = 0, index = 0, pool = 0;
  if (colon == std::string::npos || slash == std::string::npos || slash > colon ||
      std::sscanf(options.only.c_str() + colon, ":%llu:%llu:%llu:%llu", &seed, &request, &index, &pool) < 3) {
    usage("--only takes what a finding prints, such as conv/tile_32x32:1:2:17");
  }
  const auto found = all_variants(options.only.substr(0, slash), options.only.substr(slash + 1, colon - slash - 1));
  if (found.empty()) usage("no such variant: " + options.only.substr(0, colon));
  const Forced& forced = found.front();
  if (forced.by_variable()) setenv(forced.family->variable.c_str(), forced.variant.c_str(), 1);
  Runner runner(forced, options.host);
  runner.verbose = true;
  const Cases cases(forced, seed, pool, options.lengths());
  const uint64_t one[] = {index};
  const Cases::Request requested = cases.request(request);
  if (options.limits) runner.limit(requested.device);
  const std::string wrong = runner.run(cases, requested, one);
  if (runner.absent) {
    std::printf("not on this device\n");
    return 0;
  }
  std::printf("%s\n", wrong.empty() ? "passes" : ("FOUND: " + wrong).c_str());
  return wrong.empty() ? 0 : 1;
}

int in_child(const Options& options, const Forced& forced, double seconds) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (forced.by_variable()) setenv(forced.family->variable.c_str(), forced.variant.c_str(), 1);
    for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM, SIGPROF})
      std::signal(number, on_signal);
    int status = kWrong;
    try {
      status = run_variant(options, forced, seconds);
    } catch (const std::exception& error) {
      std::printf("FOUND: %s: %s\n", current, error.what());
    }
    std::fflush(nullptr);
    std::_Exit(status);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kWrong;
}

int sweep(Options options) {
  std::vector<Forced> variants;
  if (options.limits && options.variant.empty()) {
    for (const char* each : {kUnforced, kDepthwise, kTransposed}) {
      std::ranges::copy(all_variants(options.family, each), std::back_inserter(variants));
    }
  } else {
    variants = all_variants(options.family, options.variant);
  }
  if (variants.empty()) usage("no such variant");
  if (!options.seeded) options.seed = std::random_device{}();
  std::printf("--seed %llu\n", static_cast<Number>(options.seed));
  if (options.seconds > 0) std::shuffle(variants.begin(), variants.end(), std::mt19937_64(options.seed));
  const Clock::time_point begin = Clock::now();
  std::map<int, std::vector<std::string>> outcomes;
  std::vector<std::string> left;
  for (size_t i = 0; i < variants.size(); ++i) {
    const double rest = options.seconds - since(begin);
    if (options.seconds > 0 && rest <= 0) {
      left.push_back(variants[i].name());
      continue;
    }
    const double share = options.seconds > 0 ? rest / static_cast<double>(variants.size() - i) : 0;
    const int status = in_child(options, variants[i], share);
    outcomes[status == kFine || status == kAbsent || status == kUnused ? status : kWrong].push_back(variants[i].name());
  }
  const auto list = [](const char* what, const std::vector<std::string>& names) {
    std::printf("%s:", what);
    for (const std::string& name : names) std::printf(" %s", name.c_str());
    std::printf("\n");
  };
  if (!outcomes[kAbsent].empty()) list("not on this device", outcomes[kAbsent]);
  if (!outcomes[kUnused].empty()) list("not chosen in so few cases", outcomes[kUnused]);
  if (!left.empty()) list("not reached in this time", left);
  if (!outcomes[kWrong].empty()) list("WRONG", outcomes[kWrong]);
  std::printf("%zu variants in %.0f s: %zu right, %zu not on this device, %zu not reached or chosen, %zu wrong\n",
              variants.size(), since(begin), outcomes[kFine].size(), outcomes[kAbsent].size(),
              left.size() + outcomes[kUnused].size(), outcomes[kWrong].size());
  return outcomes[kWrong].empty() ? 0 : 1;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name == "--list") {
      for (const Forced& each : all_variants("", "")) std::printf("%s\n", each.name().c_str());
      std::exit(0);
    }
    if (name == "--limits" || name == "--host") {
      (name == "--limits" ? options.limits : options.host) = true;
      continue;
    }
    if (i + 1 == count) usage("no value for " + name);
    const char* const value = arguments[++i];
    const auto number = [&] {
      char* end = nullptr;
      const uint64_t parsed = std::strtoull(value, &end, 0);
      if (*value == '\0' || *end != '\0') usage(name + " takes a number");
      return parsed;
    };
    if (name == "--count")
      options.count = number();
    else if (name == "--seconds")
      options.seconds = static_cast<double>(number());
    else if (name == "--seed")
      options.seed = number(), options.seeded = true;
    else if (name == "--pool")
      options.pool = number();
    else if (name == "--family")
      options.family = value;
    else if (name == "--variant")
      options.variant = value;
    else if (name == "--only")
      options.only = value;
    else
      usage("unknown: " + name);
  }
  if (options.count == ~uint64_t{0} && options.seconds == 0) options.count = 40'000;
  return options;
}

}  // namespace
}  // namespace tuff_sweep

int main(int count, char** arguments) {
  using namespace tuff_sweep;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const Options options = parse(count, arguments);
  try {
    return options.only.empty() ? sweep(options) : repeat(options);
  } catch (const std::exception& error) {
    std::printf("FOUND: %s\n", error.what());
    return 1;
  }
}
