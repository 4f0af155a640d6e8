// Makes Vulkan's functions fail, one call after another, in everything that a program may request of the library.
//
//   tuff_vulkan_faults [--count n | --seconds s] [--seed n] [--only NAME]
//
// The scenarios are those of tuff_allocation_failures. First the program counts the calls of each Vulkan function in a
// scenario. Then it repeats the scenario with the n-th call returning each code that the specification allows: once
// with that call alone, and once with all later ones failing too until the library's call has returned. The library's
// call may succeed nevertheless, or return the corresponding status with a message and succeed when it is repeated.
// Otherwise the device is lost: then every call reports it, and everything can be destroyed. Afterwards the context
// computes the same as before, or is lost; no Vulkan object is left, and none was used that was not created. Batches
// run in separate processes, and one that crashes or hangs is reported by its name. Without --count or --seconds the
// program tries all of that; with them, a sample by a seed that is printed.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "programs/faulty_vulkan.hpp"
#include "programs/scenarios.hpp"
#include "support/options.hpp"
#include "tuff/tuff.h"

namespace tuff_test {
namespace {

namespace faulty = faulty_vulkan;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kHangs{120};  // time limit of one trial, which takes a tenth of a second
constexpr uint64_t kMaxCalls = 40;           // calls of a function in a scenario that are all tried, see add_trials()

// Other code paths of the library, selected by the environment.
struct Mode {
  const char* name;
  const char* variable;
  const char* value;
};
constexpr Mode kModes[] = {{"default", "TUFF_TEST_UNUSED", "1"},
                           {"staged", "TUFF_TRANSFER", "staged"},
                           {"descriptors", "TUFF_BINDING", "descriptors"},
                           {"addresses", "TUFF_BINDING", "addresses"},
                           {"uncalibrated", "FAULTY_VULKAN_HIDES", "VK_EXT_calibrated_timestamps"},
                           {"labels", "TUFF_DEBUG_LABELS", "1"},
                           {"prewarmed", "TUFF_PREWARM", "1"},
                           {"validated", "TUFF_VALIDATION", "1"}};
constexpr uint32_t kModeCount = sizeof kModes / sizeof kModes[0];

struct Trial {
  uint32_t mode, scenario, function;
  uint64_t n;
  int32_t code;
  bool on;
};

// The scenarios of single operations are much alike here, so one in four is enough, in contexts whose kernels are not
// built yet.
const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> chosen = [] {
    std::vector<Scenario> some;
    uint32_t row = 0;
    for (Scenario& scenario : all_scenarios()) {
      const bool fresh = scenario.in == Scenario::In::fresh_context;
      if (!scenario.marks_itself || (fresh && row++ % 4 == 0)) some.push_back(std::move(scenario));
    }
    return some;
  }();
  return chosen;
}

std::string name_of(const Trial& trial) {
  return std::string(kModes[trial.mode].name) + ":" +
         (trial.scenario < scenarios().size() ? scenarios()[trial.scenario].name : "first") + ":" +
         faulty::function(trial.function).name + ":" + std::to_string(trial.n) + ":" + faulty::code_name(trial.code) +
         (trial.on ? ":on" : ":once");
}

// Memory shared by the processes.
struct Shared {
  std::atomic<uint64_t> place;  // the next trial of a unit; UINT64_MAX: none
  char current[256];
  std::atomic<uint64_t> trials, problems, faults, injected, answered, lost, lost_by_memory;
  std::atomic<uint64_t> by_function[64], first_calls[64];
};
Shared* shared = nullptr;

// VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_DEVICE_LOST
constexpr int32_t kHostMemory = -1, kDeviceMemory = -2, kLost = -4;

struct DeviceLost {};

class VulkanFaults : public Failures {
 public:
  void begin() override { faulty::arm(trial.function, counts ? 0 : trial.n, trial.code, trial.on); }
  void end() override {
    injected += faulty::disarm();
    for (uint32_t i = 0; counts && i < faulty::function_count(); ++i) calls[i] = faulty::calls(i);
  }

  bool excuses(const char* call, tuff_status status, Then then) override {
    injected += faulty::disarm();
    if (injected == 0) return false;
    if (!allowed(status)) return false;
    check_message(call);
    ++shared->answered;
    if (status != TUFF_ERROR_DEVICE_LOST) return true;
    if (then == Then::again) return false;  // it needs no device
    throw DeviceLost();
  }

  void problem(const char* text) override {
    char message[512] = "";
    tuff_last_error(message, sizeof message, nullptr);
    std::printf("--only %s: %s (last error: %s)\n", name_of(trial).c_str(), text, message);
    std::fflush(stdout);
    ++shared->problems;
  }
  bool counting() const override { return counts; }

  Trial trial{};
  bool counts = false;
  uint64_t injected = 0;
  uint64_t calls[64] = {};  // calls of each function, while counting

 private:
  // The statuses that the code may lead to. If a command buffer cannot be ended, the work of earlier calls is lost.
  bool allowed(tuff_status status) const {
    const bool starts = std::strcmp(faulty::function(trial.function).name, "vkCreateInstance") == 0;
    switch (trial.code) {
      case kHostMemory: return status == TUFF_ERROR_OUT_OF_HOST_MEMORY || ends_commands(status);
      case kDeviceMemory: return status == TUFF_ERROR_OUT_OF_DEVICE_MEMORY || ends_commands(status);
      case kLost: return status == TUFF_ERROR_DEVICE_LOST;
      case -5: return status == TUFF_ERROR_OUT_OF_DEVICE_MEMORY;  // VK_ERROR_MEMORY_MAP_FAILED
      case -3: return status == TUFF_ERROR_NO_DEVICE;             // VK_ERROR_INITIALIZATION_FAILED
      case -6:                                                    // VK_ERROR_LAYER_NOT_PRESENT
      case -7:                                                    // VK_ERROR_EXTENSION_NOT_PRESENT
      case -8:
        return status == (starts ? TUFF_ERROR_NO_DEVICE : TUFF_ERROR_UNSUPPORTED);  // VK_ERROR_FEATURE_NOT_PRESENT
      case -9: return status == TUFF_ERROR_NO_DEVICE;                               // VK_ERROR_INCOMPATIBLE_DRIVER
      case -10: return status == TUFF_ERROR_LIMIT_EXCEEDED;                         // VK_ERROR_TOO_MANY_OBJECTS
      case -13:                                                                     // VK_ERROR_UNKNOWN
        return status == (starts ? TUFF_ERROR_NO_DEVICE : TUFF_ERROR_INTERNAL) || ends_commands(status);
      case -1000012000: return status == TUFF_ERROR_COMPILE_FAILED;    // VK_ERROR_INVALID_SHADER_NV
      case -1000072003: return status == TUFF_ERROR_INVALID_ARGUMENT;  // VK_ERROR_INVALID_EXTERNAL_HANDLE
      case 1: return status == TUFF_ERROR_INTERNAL;                    // VK_NOT_READY
      case 2: return status == TUFF_ERROR_TIMEOUT;                     // VK_TIMEOUT
      default: return false;
    }
  }
  bool ends_commands(tuff_status status) const {
    return status == TUFF_ERROR_DEVICE_LOST &&
           std::strcmp(faulty::function(trial.function).name, "vkEndCommandBuffer") == 0;
  }
  void check_message(const char* call) {
    const size_t length = std::strcspn(call, "(");
    char message[512] = "";
    tuff_last_error(message, sizeof message, nullptr);
    const bool named = std::strncmp(message, call, length) == 0 && std::strncmp(message + length, ": ", 2) == 0;
    if (!named || std::strlen(message) < length + 8) problem("the message does not tell");
  }
} faults;

#define SHOULD(call, wanted)                                                                                         \
  do {                                                                                                               \
    const tuff_status answered = (call);                                                                             \
    if (answered != (wanted)) tuff_test::problem("after the loss %s answers %s", #call, tuff_status_name(answered)); \
  } while (false)

// Checks a context that has reported the loss of its device.
void expect_lost(tuff_context context, tuff_buffer buffer) {
  const auto start = Clock::now();
  float value = 0;
  tuff_buffer made = 0;
  tuff_stream stream = 0;
  auto properties = sized<tuff_device_properties>();
  auto stats = sized<tuff_stats>();
  const tuff_status kGone = TUFF_ERROR_DEVICE_LOST;
  SHOULD(tuff_synchronize(context), kGone);
  SHOULD(tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 4), kGone);
  SHOULD(tuff_copy_htod(context, buffer, 0, &value, 4), kGone);
  SHOULD(tuff_copy_dtoh(context, &value, buffer, 0, 4), kGone);
  SHOULD(tuff_fill(context, buffer, 0, 4, &value, 4), kGone);
  SHOULD(tuff_alloc(context, 4, &made), kGone);
  SHOULD(tuff_stream_create(context, nullptr, &stream), kGone);
  SHOULD(tuff_context_info(context, &properties), TUFF_OK);
  SHOULD(tuff_context_stats(context, &stats), TUFF_OK);
  SHOULD(tuff_view(buffer, 0, 4, &made), TUFF_OK);
  SHOULD(tuff_free(made), TUFF_OK);
  SHOULD(tuff_synchronize(context), kGone);
  if (Clock::now() - start > std::chrono::seconds(10)) tuff_test::problem("a lost device is waited for");
}

// A context, and a buffer with which its state is tested.
struct Subject {
  Subject() : context(new_context()) {
    MADE(tuff_alloc(context, 64, &buffer));
    MADE(tuff_synchronize(context));
  }
  ~Subject() { SHOULD(tuff_context_destroy(context), TUFF_OK); }
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  tuff_context context = 0;
  tuff_buffer buffer = 0;
};

// Any message of the validation layers is an error.
void listen_for_validation(void*, int32_t, const char* text) {
  if (std::strncmp(text, "validation: ", 12) == 0) problem("%s", text);
}

class Runner {
 public:
  explicit Runner(const Scenario& scenario) : scenario_(scenario) {
    if (scenario.in == Scenario::In::shared_context) subject_.emplace();
    tuff_set_log(listen_for_validation, nullptr, TUFF_LOG_ERROR);
    faults.counts = true;
    for (int i = 0; i < 3; ++i) perform();
    faults.counts = false;
    if (!subject_) left_ = faulty::live_objects();
  }

  void check(const Trial& trial) {
    faults.trial = trial;
    for (int times = 0; times < kTimes; ++times) {
      const Held before = held();
      faults.injected = 0;
      const bool lost = perform();
      const uint64_t injected = faults.injected;
      shared->injected += injected;
      shared->by_function[trial.function] += injected;
      if (injected == 0) return;  // the call was made by another thread, at another time
      if (times == 0) ++shared->faults;
      if (subject_ && !lost) {
        faults.trial.n = 0;
        perform();  // it still computes the same
        faults.trial.n = trial.n;
      }
      if (const std::string text = faulty::forbidden(); !text.empty()) problem("forbidden: %s", text.c_str());
      const Held after = held();
      if (lost) return;
      if (after.ranges != before.ranges || after.buffers != before.buffers || after.imported != before.imported) {
        problem("the context holds %llu ranges, %llu buffers and %llu imported bytes, before it were %llu, %llu, %llu",
                after.ranges, after.buffers, after.imported, before.ranges, before.buffers, before.imported);
      }
      if (std::strcmp(kModes[trial.mode].name, "prewarmed") == 0) return;  // a thread creates pipelines
      if (after.objects <= before.objects) return;  // caches grow in steps and stay; a leak grows each time
      if (times + 1 < kTimes) continue;
      problem("there are %llu objects, before it were %llu: %s", after.objects, before.objects,
              faulty::live_by_type().c_str());
    }
  }

 private:
  static constexpr int kTimes = 4;
  struct Held {
    unsigned long long ranges = 0, buffers = 0, imported = 0, objects = 0;
  };

  // Returns whether the scenario's context was lost.
  bool perform() {
    std::optional<Subject> fresh;
    if (scenario_.in == Scenario::In::fresh_context) fresh.emplace();
    std::optional<Subject>& subject = fresh ? fresh : subject_;
    if (!scenario_.marks_itself) faults.begin();
    bool lost = false;
    try {
      scenario_.run(subject ? subject->context : 0);
      if (!scenario_.marks_itself) fresh.reset();  // destroying a context succeeds whatever fails
    } catch (const DeviceLost&) {
      lost = true;
      ++shared->lost;
      shared->lost_by_memory += faults.trial.code != kLost;
    }
    if (!scenario_.marks_itself || lost) faults.end();
    tuff_set_log(listen_for_validation, nullptr, TUFF_LOG_ERROR);
    if (!lost) return false;
    // The lost context may be another one, which was destroyed with the scenario.
    const bool whole = !subject || tuff_synchronize(subject->context) == TUFF_OK;
    if (!whole) expect_lost(subject->context, subject->buffer);
    expect_another_works();  // while the lost context exists
    if (whole) return false;
    subject.reset();
    fresh.reset();
    if (scenario_.in == Scenario::In::shared_context) {
      subject_.emplace();
      faults.trial.n = 0;
      perform();
    }
    return true;
  }

  static void expect_another_works() {
    const Subject other;
    float value = 3;
    MADE(tuff_fill(other.context, other.buffer, 0, 64, &value, sizeof value));
    MADE(tuff_unary(other.context, TUFF_F32, TUFF_UNARY_NEG, other.buffer, other.buffer, 16));
    MADE(tuff_copy_dtoh(other.context, &value, other.buffer, 60, sizeof value));
    if (value != -3) problem("another context computes %g", static_cast<double>(value));
  }

  Held held() {
    if (!subject_) {
      // Objects that are destroyed while their device is still working are freed with the next context.
      if (faulty::live_objects() != left_) expect_another_works();
      const uint64_t objects = faulty::live_objects();
      if (objects != left_) problem("objects are left: %s", faulty::live_by_type().c_str());
      return {0, 0, 0, objects};
    }
    const tuff_context context = subject_->context;
    MADE(tuff_synchronize(context));
    MADE(tuff_context_trim(context));
    auto memory = sized<tuff_memory_stats>();
    auto stats = sized<tuff_stats>();
    MADE(tuff_context_memory(context, &memory));
    MADE(tuff_context_stats(context, &stats));
    return {memory.live_allocations, stats.live_buffers, memory.bytes_imported, faulty::live_objects()};
  }

  const Scenario& scenario_;
  std::optional<Subject> subject_;
  uint64_t left_ = 0;  // objects without a context: the instance
};

// --- the first call of a process, which creates the instance -------------------------------------------------

struct First {
  uint32_t count = 0;
  int32_t kernels = 0;
  uint64_t objects = 0;
  tuff_device_properties properties{};
};

bool for_memory(const Trial& trial) { return trial.code == kHostMemory || trial.code == kDeviceMemory; }

// Whether a device that does not report its properties is refused with that reason.
bool says_why(const Trial& trial) {
  const char* const function = faulty::function(trial.function).name;
  char refusals[512] = "", message[512] = "";
  MADE(tuff_device_refusals(refusals, sizeof refusals, nullptr));
  tuff_last_error(message, sizeof message, nullptr);
  return std::strcmp(function, "vkEnumerateDeviceExtensionProperties") == 0 && !for_memory(trial) &&
         (std::strstr(refusals, function) != nullptr || std::strstr(message, function) != nullptr);
}

First first_call() {
  First first;
  first.properties = sized<tuff_device_properties>();
  MADE(tuff_device_count(&first.count));
  if (first.count == 0) return first;
  MADE(tuff_device_info(0, &first.properties));
  first.properties.memory_free_bytes = 0;
  // With validation, the context belongs to another instance, which may refuse the device separately.
  auto desc = sized<tuff_context_desc>();
  tuff_context context = 0;
  tuff_status status = tuff_context_create(&desc, &context);
  if (status == TUFF_ERROR_NO_DEVICE && says_why(faults.trial)) {
    first.count = 0;
    return first;
  }
  if (status != TUFF_OK && faults.excuses("tuff_context_create", status, Then::again)) context = new_context();
  MADE(tuff_supports(context, "custom_kernels", &first.kernels));
  MADE(tuff_context_destroy(context));
  first.objects = faulty::live_objects();
  return first;
}

// A driver that fails to start is skipped, and may start the next time.
bool passed_over(const Trial& trial) {
  if (says_why(trial)) return true;
  const std::string function = faulty::function(trial.function).name;
  if (for_memory(trial) || (function != "vkCreateInstance" && function != "vkEnumeratePhysicalDevices")) return false;
  uint32_t count = 0;
  MADE(tuff_device_count(&count));
  return count != 0;
}

// Runs in a separate process.
void check_first(const Trial& trial, const First& expected) {
  faults.trial = trial;
  faults.begin();
  const First first = first_call();
  faults.end();
  shared->injected += faults.injected;
  shared->faults += faults.injected != 0;
  shared->by_function[trial.function] += faults.injected;
  if (const std::string text = faulty::forbidden(); !text.empty()) problem("forbidden: %s", text.c_str());
  if (first.count == 0 && passed_over(trial)) return;
  if (std::memcmp(&first.properties, &expected.properties, sizeof first.properties) != 0) {
    problem("there are %u devices, %s; without faults %u, %s, or it can do something else", first.count,
            first.properties.name, expected.count, expected.properties.name);
  }
  if (first.kernels != expected.kernels) problem("the device has lost its extensions");
  if (first.objects != expected.objects) problem("objects are left: %s", faulty::live_by_type().c_str());
}

// --- units of work, each in a separate process -----------------------------------------------------------------

struct Unit {
  uint32_t mode, scenario;  // scenarios().size(): the first call
};

// The calls of a function that are tried: all, or the first ones and a sample of the rest.
void add_trials(std::vector<Trial>& trials, const Unit& unit, uint32_t function, uint64_t calls, bool of_first) {
  const faulty::Function& what = faulty::function(function);
  if (what.of_instance != of_first) return;
  const uint64_t step = calls > 2 * kMaxCalls ? calls / kMaxCalls : 1;
  for (uint64_t n = 1; n <= calls; n += n < kMaxCalls ? 1 : step) {
    for (uint32_t i = 0; i < what.code_count; ++i) {
      for (const bool on : {false, true}) {
        // For a list that always grows or a wait that never ends, the library promises only to keep waiting.
        if (on && what.codes[i] > 0) continue;
        trials.push_back({unit.mode, unit.scenario, function, n, what.codes[i], on});
      }
    }
  }
}

struct Options {
  double seconds = 0;
  uint64_t count = 0, seed = 0;
  std::string only;
  bool verbose = false;
  uint64_t in_a_unit() const { return seconds != 0 ? 6 : count != 0 ? 200 : UINT64_MAX; }
  // A unit in which each trial compiles fifty kernels is cut short in favour of others.
  std::chrono::seconds for_a_unit() const { return std::chrono::seconds(count != 0 ? 8 : 1'000'000); }
};

std::vector<Trial> chosen(std::vector<Trial> trials, const Options& options) {
  if (!options.only.empty()) {
    trials.erase(std::remove_if(trials.begin(), trials.end(),
                                [&](const Trial& trial) { return name_of(trial).rfind(options.only, 0) != 0; }),
                 trials.end());
  } else if (trials.size() > options.in_a_unit()) {
    // Each function is equally likely, however often it is called.
    std::mt19937_64 random(options.seed);
    std::shuffle(trials.begin(), trials.end(), random);
    std::map<uint32_t, size_t> counts;
    std::vector<std::pair<size_t, Trial>> order;
    for (const Trial& trial : trials) order.emplace_back(counts[trial.function]++, trial);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < trials.size(); ++i) trials[i] = order[i].second;
    trials.resize(options.in_a_unit());
  }
  return trials;
}

void remember(const Trial& trial) {
  std::snprintf(shared->current, sizeof shared->current, "%s", name_of(trial).c_str());
  ++shared->trials;
}

// Waits for the process, and kills it if a single trial takes too long.
void watch(pid_t child) {
  uint64_t trials = shared->trials;
  auto since = Clock::now();
  bool hangs = false;
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
      std::printf("--only %s: %s %d\n", shared->current, hangs ? "hangs, signal" : "ends by signal or exit",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
      std::fflush(stdout);
      ++shared->problems;
      return;
    }
    if (shared->trials != trials) trials = shared->trials, since = Clock::now();
    if (Clock::now() - since > kHangs) {
      hangs = true;
      kill(child, SIGABRT);
    }
    usleep(2000);
  }
}

template <typename Do>
void in_a_process(const Unit& unit, const Do& work) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child != 0) return watch(child);
  setenv(kModes[unit.mode].variable, kModes[unit.mode].value, 1);
  failures = &faults;
  work();
  std::fflush(stdout);
  _exit(0);
}

void run_scenario(const Unit& unit, const Options& options) {
  const uint64_t before = shared->injected;
  const auto start = Clock::now();
  for (bool done = false; !done;) {
    const uint64_t first = shared->place;
    in_a_process(unit, [&] {
      faults.trial = {unit.mode, unit.scenario, 0, 0, 0, false};
      Runner runner(scenarios()[unit.scenario]);
      std::vector<Trial> trials;
      for (uint32_t i = 0; i < faulty::function_count(); ++i) add_trials(trials, unit, i, faults.calls[i], false);
      trials = chosen(std::move(trials), options);
      const auto enough = [&] { return Clock::now() - start > options.for_a_unit() || shared->problems >= 20; };
      for (size_t i = first; i < trials.size() && !enough(); ++i) {
        shared->place = i + 1;
        remember(trials[i]);
        runner.check(trials[i]);
      }
      shared->place = UINT64_MAX;
    });
    done = shared->place == UINT64_MAX || shared->place == first || shared->problems >= 20;
  }
  if (options.verbose) {
    std::printf("%s:%s: %llu, %.1f s\n", kModes[unit.mode].name, scenarios()[unit.scenario].name.c_str(),
                static_cast<unsigned long long>(shared->injected - before),
                std::chrono::duration<double>(Clock::now() - start).count());
  }
}

void run_first(const Unit& unit, const Options& options) {
  static First* const expected =
      static_cast<First*>(mmap(nullptr, sizeof(First), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  faults.trial = {unit.mode, unit.scenario, 0, 0, 0, false};
  in_a_process(unit, [&] {
    faults.counts = true;
    faults.begin();
    *expected = first_call();
    faults.end();
    for (uint32_t i = 0; i < faulty::function_count(); ++i) shared->first_calls[i] = faults.calls[i];
  });
  std::vector<Trial> trials;
  for (uint32_t i = 0; i < faulty::function_count(); ++i) add_trials(trials, unit, i, shared->first_calls[i], true);
  for (const Trial& trial : chosen(std::move(trials), options)) {
    remember(trial);
    in_a_process(unit, [&] { check_first(trial, *expected); });
    if (shared->problems >= 20) return;
  }
}

int run(const Options& options) {
  shared =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const auto enough = [&] {
    if (shared->problems >= 20) return true;
    if (options.count != 0 && shared->faults >= options.count) return true;
    return options.seconds != 0 && elapsed() > options.seconds;
  };
  std::vector<Unit> units;
  for (uint32_t mode = 0; mode < kModeCount; ++mode) {
    for (uint32_t i = 0; i <= scenarios().size(); ++i) units.push_back({mode, i});
  }
  const bool sample = options.seconds != 0 || options.count != 0;
  if (sample) std::printf("--seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::mt19937_64 random(options.seed);
  do {
    if (sample) std::shuffle(units.begin(), units.end(), random);
    for (const Unit& unit : units) {
      if (enough()) break;
      const std::string name = std::string(kModes[unit.mode].name) + ":" +
                               (unit.scenario < scenarios().size() ? scenarios()[unit.scenario].name : "first") + ":";
      if (name.compare(0, options.only.size(), options.only.substr(0, name.size())) != 0) continue;
      Options of_unit = options;
      of_unit.seed = random();
      shared->place = 0;
      unit.scenario < scenarios().size() ? run_scenario(unit, of_unit) : run_first(unit, of_unit);
    }
  } while (sample && !enough());
  for (uint32_t i = 0; i < faulty::function_count(); ++i) {
    if (shared->by_function[i] == 0 && sample) continue;
    std::printf("%8llu %s\n", static_cast<unsigned long long>(shared->by_function[i]), faulty::function(i).name);
  }
  std::printf(
      "%llu faults in %llu trials, %llu calls of Vulkan failed, %llu calls answered it, %llu devices lost (%llu by "
      "another code), "
      "%.0f s, %llu problems\n",
      static_cast<unsigned long long>(shared->faults), static_cast<unsigned long long>(shared->trials),
      static_cast<unsigned long long>(shared->injected), static_cast<unsigned long long>(shared->answered),
      static_cast<unsigned long long>(shared->lost), static_cast<unsigned long long>(shared->lost_by_memory), elapsed(),
      static_cast<unsigned long long>(shared->problems));
  return shared->problems == 0 && shared->injected != 0 ? 0 : 1;
}

}  // namespace
}  // namespace tuff_test

int main(int count, char** words) {
  tuff_test::Options options;
  options.seed = std::random_device()();
  tuff_test::parse_options(count, words, 1,
                           "usage: tuff_vulkan_faults [--count n | --seconds s] [--seed n] [--only name] [--verbose]\n",
                           {{"--verbose", &options.verbose},
                            {"--seconds", &options.seconds},
                            {"--count", &options.count},
                            {"--seed", &options.seed},
                            {"--only", &options.only}});
  return tuff_test::run(options);
}
