// Calls every pair of functions at the same time on the same objects, one of which may destroy what the other uses.
//
//   tuff_concurrent_pairs host|vulkan [--seconds n] [--seed n] [--part i/n] [--only f:g]
//
// Each pair has a context of its own, with buffers, a stream, events and, on a device, a graph and a kernel. Three
// threads make both calls on these objects: valid calls of operations, and calls of every other function that takes a
// handle. Each call has to succeed or be refused for its arguments. An object is destroyed once. Afterwards the context
// still works unless it was destroyed, and memory does not grow. A call that does not return ends the program. Without
// --seconds every pair is called once; with it, pairs are drawn at random.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fuzz/plausible_call.hpp"
#include "support/call_table.hpp"
#include "support/options.hpp"
#include "support/sanitized.hpp"
#include "tuff/tuff.h"

namespace tuff_test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 3, kRepeats = 3;
constexpr unsigned kHangs = 100;  // seconds

std::atomic<int> problems{0};
char running[256];  // what a signal handler reports

void report(const char* what, const std::string& text) {
  if (++problems <= 20) std::printf("--only %s %s: %s\n", running, what, text.c_str()), std::fflush(stdout);
}

std::string last_error() {
  char message[512] = "";
  tuff_last_error(message, sizeof message, nullptr);
  return message;
}

void check(tuff_status status, const char* what) {
  if (status != TUFF_OK) report(what, std::string(tuff_status_name(status)) + ", " + last_error());
}
#define CHECK(call) check(call, #call)

void on_signal(int number) {
  const char* text = number == SIGALRM ? "hangs: --only " : "crashes: --only ";
  if (write(STDOUT_FILENO, text, std::strlen(text)) < 0 || write(STDOUT_FILENO, running, std::strlen(running)) < 0 ||
      write(STDOUT_FILENO, "\n", 1) < 0) {
    _exit(2);
  }
  signal(number, SIG_DFL);
  raise(number);
}

template <typename T>
T sized() {
  T desc{};
  desc.struct_size = sizeof(T);
  return desc;
}

// A call may find an object destroyed, mapped or capturing. Paths and sources are empty. tuff_context_set_limits() sets
// all limits to 1, also the milliseconds that a call waits.
bool is_allowed(tuff_status status) {
  switch (status) {
    case TUFF_OK:
    case TUFF_ERROR_INVALID_ARGUMENT:
    case TUFF_ERROR_INVALID_HANDLE:
    case TUFF_ERROR_UNSUPPORTED:
    case TUFF_ERROR_LIMIT_EXCEEDED:
    case TUFF_ERROR_COMPILE_FAILED:
    case TUFF_ERROR_IO: return true;
    case TUFF_ERROR_TIMEOUT: return std::strstr(running, "tuff_context_set_limits") != nullptr;
    default: return false;
  }
}

// The objects that the threads share.
struct World {
  explicit World(const std::string& backend) {
    auto desc = sized<tuff_context_desc>();
    desc.backend = backend.c_str();
    CHECK(tuff_context_create(&desc, &context));
    for (tuff_buffer& buffer : buffers) CHECK(tuff_alloc(context, kCallBytes, &buffer));
    CHECK(tuff_stream_create(context, nullptr, &stream));
    CHECK(tuff_event_create(context, nullptr, &event));
    CHECK(tuff_event_record(stream, event));
    const tuff_expr_variable input{"a", TUFF_F32, 0}, output{"y", TUFF_F32, 0};
    auto formula = sized<tuff_expr_desc>();
    formula.formula = "a + 1";
    formula.inputs = &input, formula.input_count = 1, formula.outputs = &output, formula.output_count = 1;
    CHECK(tuff_expr_create(context, &formula, &expr));
    auto source = sized<tuff_kernel_desc>();
    source.source =
        "#version 450\nlayout(local_size_x = 1) in;\nlayout(binding = 0) buffer B { float x[]; };\n"
        "void main() { x[0] = 1.0; }\n";
    const tuff_op_argument x{"x", TUFF_OP_BUFFER, TUFF_F32, TUFF_OP_READ_WRITE, 0, nullptr, 0, 0};
    auto operation = sized<tuff_op_desc>();
    operation.name = "pairs.one";
    operation.arguments = &x, operation.argument_count = 1, operation.kernel = &source, operation.groups = "1";
    const tuff_op_host host = [](void*, const tuff_op_operand* operands, uint32_t, tuff_status*) {
      *static_cast<float*>(operands[0].data) = 1;
    };
    CHECK(tuff_op_register(context, &operation, host, nullptr, &op));
    if (backend != "vulkan") return;
    CHECK(tuff_graph_begin(stream));
    CHECK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_RELU, buffers[0], buffers[1], 16));
    CHECK(tuff_graph_end(stream, &graph));
    CHECK(tuff_kernel_create(context, &source, &kernel));
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The calls may have destroyed the context, or left its stream capturing.
  void end() const {
    float value = 0;
    const tuff_status status = tuff_copy_dtoh(context, &value, buffers[3], 0, 4);
    if (!is_allowed(status)) {
      report("a later copy", tuff_status_name(status) + std::string(", ") + last_error());
    }
    const tuff_status destroyed = tuff_context_destroy(context);
    if (destroyed != TUFF_OK && destroyed != TUFF_ERROR_INVALID_HANDLE) {
      report("tuff_context_destroy", tuff_status_name(destroyed) + std::string(", ") + last_error());
    }
  }

  uint64_t of_type(const std::string& type, bool default_stream) const {
    return type == "tuff_context"  ? context
           : type == "tuff_stream" ? (default_stream ? context : stream)
           : type == "tuff_event"  ? event
           : type == "tuff_graph"  ? graph
           : type == "tuff_kernel" ? kernel
           : type == "tuff_expr"   ? expr
           : type == "tuff_op"     ? op
                                   : buffers[0];
  }

  // Whether the object that a function destroys exists: null handles may be destroyed repeatedly.
  bool has(const std::string& destroyer) const {
    return (graph != 0 || destroyer != "tuff_graph_destroy") && (kernel != 0 || destroyer != "tuff_kernel_destroy");
  }

  tuff_context context = 0;
  tuff_buffer buffers[kCallBuffers] = {};
  tuff_stream stream = 0;
  tuff_event event = 0;
  tuff_graph graph = 0;
  tuff_kernel kernel = 0;
  tuff_expr expr = 0;
  tuff_op op = 0;
};

// A call of a function, with valid arguments (`row`) or plausible ones (`function`).
struct Action {
  std::string name;
  const BufferCall* row = nullptr;
  const tuff_fuzz::Function* function = nullptr;

  bool destroys() const {
    return name == "tuff_free" || (name.size() > 8 && name.compare(name.size() - 8, 8, "_destroy") == 0);
  }
  tuff_status call(const World& world, tuff_fuzz::CallMemory& memory, bool default_stream) const {
    if (row != nullptr) return row->call(default_stream ? world.context : world.stream, world.buffers);
    return tuff_fuzz::call_plausibly(*function, memory, [&](const tuff_fuzz::Place& place) {
      return world.of_type(tuff_fuzz::handle_types()[static_cast<size_t>(place.group)], default_stream);
    });
  }
};

std::vector<Action> all_actions() {
  std::vector<Action> actions;
  for (const BufferCall& row : buffer_calls()) {
    if (row.first) actions.push_back({row.function, &row, nullptr});
  }
  for (const tuff_fuzz::Function& function : tuff_fuzz::functions()) {
    const bool takes_handle = std::any_of(function.places.begin(), function.places.end(),
                                          [](const auto& place) { return place.kind == tuff_fuzz::Kind::handle; });
    if (takes_handle) actions.push_back({function.name, nullptr, &function});
  }
  return actions;
}

// Three threads that run the same pair at the same time.
class Threads {
 public:
  Threads() {
    for (int i = 1; i < kThreads; ++i) others_[i] = std::thread([this, i] { serve(i); });
  }
  ~Threads() {
    world_ = nullptr;
    ++round_;
    for (int i = 1; i < kThreads; ++i) others_[i].join();
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  void run(const World& world, const Action& first, const Action& second, std::mt19937_64& random) {
    world_ = &world;
    first_ = &first, second_ = &second;
    for (auto& count : destroyed_) count = 0;
    for (unsigned& delay : delays_) delay = static_cast<unsigned>(random() % 4 == 0 ? 0 : random() % 2000);
    default_stream_ = random() % 4 == 0;
    finished_ = 0;
    ++round_;
    work(0);
    while (finished_ != kThreads) std::this_thread::yield();
    const bool same = first.name == second.name;
    for (const auto& [action, times] : {std::pair(&first, same ? destroyed_[0] + destroyed_[1] : destroyed_[0].load()),
                                        std::pair(&second, destroyed_[1].load())}) {
      if (times > 1) report(action->name.c_str(), "succeeded " + std::to_string(times) + " times");
    }
  }

 private:
  void serve(int mine) {
    for (uint64_t seen = 0;;) {
      while (round_ == seen) std::this_thread::yield();
      seen = round_;
      if (world_ == nullptr) return;
      work(mine);
    }
  }
  void work(int mine) {
    const Action& action = mine == 0 ? *first_ : *second_;
    for (std::atomic<unsigned> i = 0; i < delays_[static_cast<size_t>(mine)];) ++i;
    for (int i = 0; i < kRepeats; ++i) {
      const tuff_status status = action.call(*world_, *memory_[static_cast<size_t>(mine)], default_stream_);
      if (status == TUFF_OK && action.destroys() && world_->has(action.name)) ++destroyed_[mine == 0 ? 0 : 1];
      if (!is_allowed(status)) report(action.name.c_str(), tuff_status_name(status) + std::string(", ") + last_error());
    }
    ++finished_;
  }

  std::array<std::thread, kThreads> others_;
  std::array<std::unique_ptr<tuff_fuzz::CallMemory>, kThreads> memory_ = {std::make_unique<tuff_fuzz::CallMemory>(),
                                                                          std::make_unique<tuff_fuzz::CallMemory>(),
                                                                          std::make_unique<tuff_fuzz::CallMemory>()};
  std::atomic<uint64_t> round_{0};
  std::atomic<int> finished_{0};
  const World* world_ = nullptr;  // published by round_
  const Action *first_ = nullptr, *second_ = nullptr;
  std::array<unsigned, kThreads> delays_{};
  bool default_stream_ = false;
  std::array<std::atomic<int>, 2> destroyed_{};
};

// A fresh context computes.
void expect_right(const std::string& backend) {
  const World world(backend);
  const float minus = -3, expected = 3;
  float value = 0;
  CHECK(tuff_copy_htod(world.context, world.buffers[0], 0, &minus, 4));
  CHECK(tuff_unary(world.context, TUFF_F32, TUFF_UNARY_NEG, world.buffers[0], world.buffers[1], 1));
  CHECK(tuff_copy_dtoh(world.context, &value, world.buffers[1], 0, 4));
  if (std::memcmp(&value, &expected, 4) != 0) report("neg(-3)", std::to_string(value));
  world.end();
}

uint64_t resident_bytes() {
  unsigned long long size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu %llu", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

int run(const std::string& backend, double seconds, uint64_t seed, const Part& part, const std::string& only) {
  std::printf("--seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  for (const int number : {SIGALRM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) signal(number, on_signal);
  std::mt19937_64 random(seed);
  const std::vector<Action> actions = all_actions();
  struct Pair {
    const Action *first, *second;
  };
  std::vector<Pair> pairs;
  for (const Action& first : actions) {
    for (const Action& second : actions) {
      if (only.empty() || only == first.name + ":" + second.name) pairs.push_back({&first, &second});
    }
  }
  if (pairs.empty()) {
    std::fprintf(stderr, "error: --only %s is no pair of functions that take handles\n", only.c_str());
    return 2;
  }
  std::shuffle(pairs.begin(), pairs.end(), random);
  uint64_t number = 0;
  std::erase_if(pairs, [&](const Pair&) { return !part.has(number++); });
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  uint64_t done = 0, half = 0;
  {
    Threads threads;
    for (; done < pairs.size() && (seconds == 0 || elapsed() < seconds) && problems == 0; ++done) {
      const auto& [first, second] = pairs[done];
      std::snprintf(running, sizeof running, "%s:%s --seed %llu", first->name.c_str(), second->name.c_str(),
                    static_cast<unsigned long long>(seed));
      alarm(kHangs);
      const World world(backend);
      threads.run(world, *first, *second, random);
      world.end();
      if (done % 64 == 0) expect_right(backend);
      if (half == 0 && (seconds == 0 ? done * 2 >= pairs.size() : elapsed() * 2 >= seconds)) half = resident_bytes();
    }
  }
  alarm(kHangs);
  const uint64_t last = resident_bytes();
  // The driver's pools grow by megabytes at a time. A sample of a hundred pairs on busy cores ends while its compiler
  // and pools still grow with each new kernel: up to 50 MiB seen between its middle and its end.
  const uint64_t vulkan = done < 2000 ? 128 << 20 : 32 << 20;
  const uint64_t room = backend == "vulkan" ? vulkan : 4 << 20;
  if (!kSanitized && half != 0 && last > half + room) {
    report("memory", std::to_string(half) + " bytes in the middle, " + std::to_string(last) + " at the end");
  }
  std::printf("%llu of %zu pairs of %zu calls, %.0f s, %.1f MiB, then %.1f MiB, %d problems\n",
              static_cast<unsigned long long>(done), pairs.size(), actions.size(), elapsed(),
              static_cast<double>(half) / 1048576, static_cast<double>(last) / 1048576, problems.load());
  return problems == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tuff_test

int main(int count, char** words) {
  double seconds = 0;
  uint64_t seed = std::random_device()();
  std::string part, only;
  tuff_test::parse_options(
      count, words, 2, "usage: tuff_concurrent_pairs host|vulkan [--seconds s] [--seed n] [--part i/n] [--only f:g]\n",
      {{"--seconds", &seconds}, {"--seed", &seed}, {"--part", &part}, {"--only", &only}});
  return tuff_test::run(words[1], seconds, seed, tuff_test::read_part(part), only);
}
