// Tests every planner with random calls on random devices, without Vulkan and without a device. Every call that an
// operation's check accepts must be planned or refused, and the device must be able to run each dispatch, whatever
// limits it reports (recorder.hpp). The planners are compiled with detection of divisions by zero, overflows and
// truncated numbers.
//
//   tuff_planner_cases --count 10000000 --seed 1
//   tuff_planner_cases --only 1:4711                      a single case, with its dispatches
//   tuff_planner_cases --count 100000 --operation attention
//   tuff_planner_cases --compile 2000                     compiles up to 2000 kernels and checks their workgroups,
//                                                         shared memory and written operands
//   tuff_planner_cases --compile 2000 --converges         … and whether invocations reach their barriers and subgroup
//                                                         operations together
//   tuff_planner_cases --compile 2000 --facts FILE        what was found is kept in a file
//   tuff_planner_cases --large                            operands of 4 GiB and more, up to what a GPU can have
//   TUFF_GEMM_VARIANT=tile_64x64 tuff_planner_cases …     with a variant forced
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "planners/draw.hpp"
#include "planners/recorder.hpp"
#include "planning/dry_run.hpp"
#include "planning/status.hpp"

// A finding of the sanitizer ends the process by a signal; the signal handler names the case.
extern "C" __attribute__((visibility("default"))) const char* __ubsan_default_options() {
  return "abort_on_error=1:print_stacktrace=1";
}

namespace tuff_test {
namespace {

struct Options {
  uint64_t count = 100'000, first = 0, seed = 0, compile = 0, findings = 1;
  double seconds = 0;  // 0: no limit
  bool only = false, large = false, converges = false;
  std::string operation, facts;
};

constexpr const char* kUsage =
    "usage: tuff_planner_cases [--count N] [--seed S] [--seconds T] [--only SEED:INDEX] [--operation NAME]\n"
    "                          [--compile N [--converges]] [--facts FILE] [--findings N] [--large]\n"
    "  --count      how many calls are planned or refused (100000)\n"
    "  --seed       of the calls; without it a fresh one\n"
    "  --seconds    ends then, if --count has not been reached\n"
    "  --only       one case by itself, with its dispatches\n"
    "  --operation  cases of one operation alone\n"
    "  --compile    compiles so many kernels, for what their GLSL says of workgroups, memory and operands\n"
    "  --converges  also whether invocations reach its barriers and subgroup operations together, from its optimised "
    "form\n"
    "  --facts      keeps that for the next run\n"
    "  --findings   ends after so many (1)\n"
    "  --large      makes half of the sizes large\n";

[[noreturn]] void refuse(const std::string& message) {
  std::fprintf(stderr, "%s\n%s", message.c_str(), kUsage);
  std::exit(2);
}

uint64_t to_number(std::string_view word) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) refuse("\"" + std::string(word) + "\" is not a number");
  return number;
}

Options parse(int argc, char** argv) {
  Options options;
  bool seeded = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--help") {
      std::fputs(kUsage, stdout);
      std::exit(0);
    }
    if (option == "--converges") {
      options.converges = true;
      continue;
    }
    if (option == "--large") {
      options.large = true;
      continue;
    }
    if (i + 1 == argc) refuse(std::string(option) + " needs a value, or is unknown");
    const std::string_view word = argv[++i];
    if (option == "--count") {
      options.count = to_number(word);
    } else if (option == "--seed") {
      options.seed = to_number(word), seeded = true;
    } else if (option == "--seconds") {
      options.seconds = static_cast<double>(to_number(word));
    } else if (option == "--only") {
      const size_t colon = word.find(':');
      if (colon == std::string_view::npos) refuse("--only needs SEED:INDEX");
      options.seed = to_number(word.substr(0, colon)), options.first = to_number(word.substr(colon + 1));
      options.count = 1, options.only = seeded = true;
    } else if (option == "--operation") {
      options.operation = word;
    } else if (option == "--facts") {
      options.facts = word;
    } else if (option == "--compile") {
      options.compile = to_number(word);
    } else if (option == "--findings") {
      options.findings = to_number(word);
    } else {
      refuse(std::string(option) + " is unknown");
    }
  }
  if (!seeded) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    options.seed = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(now).count());
  }
  return options;
}

struct Counts {
  uint64_t planned = 0, nothing = 0, refused = 0, invalid = 0, cut_short = 0, dispatches = 0;
};

// The current case, for signal handlers.
volatile sig_atomic_t told = 0;
char where[200];

void name_case(int signal) {
  if (told == 0) {
    told = 1;
    const char* const what = signal == SIGPROF ? "takes too long: " : "ended the process: ";
    (void)!write(STDERR_FILENO, what, std::strlen(what));
    (void)!write(STDERR_FILENO, where, std::strlen(where));
  }
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

// The process's own time: on a busy machine, kernels that take seconds to compile take minutes of anybody else's. 0: no
// limit.
void allow_seconds(long seconds) {
  const itimerval time{{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &time, nullptr);
}

// A dry run that stops at the same number of dispatches as the recorder.
class ShortDryRun final : public tuff::DryRun {
 public:
  using DryRun::DryRun;
  void dispatch(const tuff::KernelRequest& kernel, const tuff::Dispatch& dispatch) override {
    if (++dispatches_ > CheckingRecorder::kMaxDispatches) throw Enough();
    DryRun::dispatch(kernel, dispatch);
  }

 private:
  uint64_t dispatches_ = 0;
};

// Whether the device has all that a call may need. Small calls need nothing else of it.
bool is_capable(const tuff::DeviceTraits& traits) {
  return traits.storage8 && traits.storage16 && traits.f64 && traits.int64 && traits.addresses;
}
// Refusals that are about other things than sizes of operands.
bool explains(std::string_view refusal) {
  constexpr std::string_view kReasons[] = {
      "this version takes at most five of them",  // more options of attention than can be pushed
      "rows and columns on a device",             // of a block of a sparse matrix
      "_VARIANT=",                                // a variant that is forced
  };
  return std::any_of(std::begin(kReasons), std::end(kReasons),
                     [&](std::string_view reason) { return refusal.find(reason) != std::string_view::npos; });
}

class Runner {
 public:
  explicit Runner(const Options& options)
      : options_(options), facts_(options.compile, options.facts, options.converges) {
    const auto all = drawn_operations();
    for (const DrawnOperation& operation : all) {
      if (!options.operation.empty() && options.operation != operation.name) continue;
      for (uint32_t i = 0; i < operation.weight; ++i) bag_.push_back(&operation);
    }
    if (bag_.empty()) refuse("--operation " + options.operation + " does not exist");
  }

  int run() {
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    std::printf("planner cases: seed %llu\n", static_cast<unsigned long long>(options_.seed));
    std::fflush(stdout);
    uint64_t done = 0, findings = 0;
    std::vector<std::string> found;
    for (uint64_t i = options_.first; done < options_.count; ++i) {
      const bool compiles = !options_.only && options_.compile != 0;
      if (options_.seconds != 0 && (compiles || i % 64 == 0) && elapsed() > options_.seconds) break;
      // The kernels of a call may take half a minute to optimise.
      const bool optimises = compiles && options_.converges;
      const uint64_t together = optimises ? 1 : compiles ? 16 : 1024;
      if (i % together == 0) allow_seconds(options_.only ? 0 : optimises ? 200 : 60);
      fmt::format_to_n(where, sizeof where - 1, "--only {}:{}{}{}\n", options_.seed, i,
                       options_.operation.empty() ? "" : " --operation " + options_.operation,
                       options_.large ? " --large" : "")
          .out[0] = '\0';
      const std::string finding = one(i, options_.only);
      ++done;
      if (finding.empty()) continue;
      const std::string text = options_.only ? "" : described(i);
      found.push_back(fmt::format("FAILED {}{}\n  {}\n", where, text, finding));
      std::printf("%s", found.back().c_str());
      std::fflush(stdout);
      if (++findings == options_.findings) break;
    }
    allow_seconds(0);
    report(done, findings, elapsed());
    // Once more, since of a long output the end is kept.
    for (const std::string& one : found) std::printf("%s", one.c_str());
    return findings == 0 ? 0 : 1;
  }

 private:
  // Returns what is wrong with the case; empty if nothing is.
  std::string one(uint64_t index, bool tells) {
    Numbers numbers(options_.seed, index);
    const DrawnOperation& operation = *bag_[numbers.below(bag_.size())];
    const TestDevice device = draw_device(numbers);
    Call call(numbers, tells, options_.large);
    operation.draw(call);
    Counts& counts = counts_[operation.name];
    CheckingRecorder recorder(device, call.tuned.get(),
                              options_.compile != 0 || !options_.facts.empty() ? &facts_ : nullptr);
    if (tells) {
      std::printf("%s%s\n%s\n", operation.name, call.text.c_str(), text_of(device).c_str());
      std::fflush(stdout);
      recorder.tell = [](const std::string& text) { std::printf("%s\n", text.c_str()), std::fflush(stdout); };
    }
    bool checked = false;
    try {
      if (!call.check) return ++counts.invalid, "";
      call.check();
      checked = true;
      if (index % 8 == 0) {
        std::string misuse = call.misused();
        if (!misuse.empty()) return misuse;
      }
      if (index % 2 == 1 && call.replace_by_copy) {
        call.replace_by_copy();
        call.check();
      }
      if (call.describe) call.describe(recorder);
      if (!device.traits.addresses) {  // as in VulkanStream::run
        ShortDryRun all(recorder);
        call.record(all);
      }
      call.record(recorder);
      counts.dispatches += recorder.dispatches();
      ++(recorder.dispatches() == 0 ? counts.nothing : counts.planned);
      if (recorder.largest_scratch() > std::max(kMaxScratch, times(64, call.bytes()))) {
        return fmt::format("{} bytes of scratch memory", recorder.largest_scratch());
      }
      const std::string unwritten = call.unwritten();
      if (!unwritten.empty()) return "nothing writes " + unwritten;
      const std::string unread = recorder.dispatches() != 0 ? call.unread() : "";
      return unread.empty() ? "" : "nothing reads some bytes of " + unread;
    } catch (const tuff::Error& error) {
      if (!checked) return ++counts.invalid, "";
      if (tells) std::printf("  refused: %s\n", error.what());
      ++counts.refused;
      const bool expected = error.code() == TUFF_ERROR_UNSUPPORTED || error.code() == TUFF_ERROR_LIMIT_EXCEEDED;
      if (!expected) return fmt::format("{}: {}", static_cast<int>(error.code()), error.what());
      if (call.is_small() && is_capable(device.traits) && !explains(error.what())) {
        return fmt::format("a small call is refused: {}", error.what());
      }
      return recorder.wrote() ? fmt::format("refused when something was recorded already: {}", error.what()) : "";
    } catch (const Enough&) {
      ++counts.cut_short;
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  std::string described(uint64_t index) {
    Numbers numbers(options_.seed, index);
    const DrawnOperation& operation = *bag_[numbers.below(bag_.size())];
    const TestDevice device = draw_device(numbers);
    Call call(numbers, true, options_.large);
    operation.draw(call);
    return fmt::format("{}{}\n{}", operation.name, call.text, text_of(device));
  }

  void report(uint64_t done, uint64_t findings, double seconds) const {
    Counts all;
    std::printf("%-18s %10s %10s %10s %10s %10s %12s\n", "operation", "planned", "nothing", "refused", "invalid",
                "cut short", "dispatches");
    const auto row = [](const char* name, const Counts& c) {
      std::printf("%-18s %10llu %10llu %10llu %10llu %10llu %12llu\n", name, static_cast<unsigned long long>(c.planned),
                  static_cast<unsigned long long>(c.nothing), static_cast<unsigned long long>(c.refused),
                  static_cast<unsigned long long>(c.invalid), static_cast<unsigned long long>(c.cut_short),
                  static_cast<unsigned long long>(c.dispatches));
    };
    for (const auto& [name, c] : counts_) {
      row(std::string(name).c_str(), c);
      all.planned += c.planned, all.nothing += c.nothing, all.refused += c.refused, all.invalid += c.invalid;
      all.cut_short += c.cut_short, all.dispatches += c.dispatches;
    }
    row("all", all);
    for (const auto& [shader, most] : facts_.converging()) {
      if (most.operations == 0) continue;
      std::printf("%-28s %6u operations to reach together, %u by subgroups of their own\n", shader.c_str(),
                  most.operations, most.by_subgroup);
    }
    if (facts_.asked() != 0) {
      std::printf("%llu kernels, %llu compiled now; %llu of %llu dispatches were of others\n",
                  static_cast<unsigned long long>(facts_.known()), static_cast<unsigned long long>(facts_.compiled()),
                  static_cast<unsigned long long>(facts_.unknown()), static_cast<unsigned long long>(facts_.asked()));
    }
    std::printf("%llu cases, %llu findings, %.1f s, %.0f plans/s\n", static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(findings), seconds, static_cast<double>(done) / seconds);
  }

  static constexpr uint64_t kMaxScratch = uint64_t{2} << 30;  // or a multiple of the size of the operands

  Options options_;
  KernelFacts facts_;
  std::vector<const DrawnOperation*> bag_;
  std::map<std::string_view, Counts> counts_;
};

}  // namespace
}  // namespace tuff_test

int main(int argc, char** argv) {
  const tuff_test::Options options = tuff_test::parse(argc, argv);
  std::signal(SIGABRT, tuff_test::name_case);
  std::signal(SIGFPE, tuff_test::name_case);
  std::signal(SIGSEGV, tuff_test::name_case);
  std::signal(SIGPROF, tuff_test::name_case);
  return tuff_test::Runner(options).run();
}
