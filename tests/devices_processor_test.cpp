// A Vulkan device that is the processor, for which the plug-in computes what it knows (docs/cpu.md).
#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/tensor.hpp"

namespace tuff_test::devices_processor_test {
namespace {

// Sets a variable in its scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

bool has_plugin(tuff_context context) {
  int32_t yes = 0;
  EXPECT_OK(tuff_supports(context, "cpu_plugin", &yes));
  return yes == 1;
}

// Who computed each call, by the messages of level TUFF_LOG_DISPATCH.
struct Dispatches {
  std::mutex mutex;
  std::vector<std::string> lines;

  Dispatches() { EXPECT_OK(tuff_set_log(add, this, TUFF_LOG_DISPATCH)); }
  ~Dispatches() { EXPECT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF)); }
  static void add(void* user, int32_t level, const char* message) {
    auto& own = *static_cast<Dispatches*>(user);
    const std::lock_guard lock(own.mutex);
    if (level == TUFF_LOG_DISPATCH) own.lines.emplace_back(message);
  }
  // How many lines have all the words, since the last time.
  int count(const std::string& word, const std::string& other) {
    const std::lock_guard lock(mutex);
    int found = 0;
    for (const std::string& line : lines) {
      found += line.find(word) != std::string::npos && line.find(other) != std::string::npos ? 1 : 0;
    }
    lines.clear();
    return found;
  }
};

class DevicesProcessor : public testing::Test {
 protected:
  void SetUp() override {
    if (std::find(backends().begin(), backends().end(), "vulkan") == backends().end())
      GTEST_SKIP() << "vulkan is not among TUFF_TEST_BACKENDS";
    own_.emplace("vulkan");
    if (!has_plugin(*own_)) GTEST_SKIP() << "this does not run on this device: it is no processor, or has no plug-in";
  }
  tuff_context context() const { return *own_; }

 private:
  const Variable cpu_{"TUFF_CPU_PLUGIN", "on"};
  std::optional<OwnContext> own_;
};

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr uint64_t kSize = 96, kCount = kSize * kSize;

std::vector<float> product_of(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(kCount);
  for (uint64_t i = 0; i < kSize; ++i) {
    for (uint64_t j = 0; j < kSize; ++j) {
      float sum = 0;
      for (uint64_t k = 0; k < kSize; ++k) sum += a[i * kSize + k] * b[k * kSize + j];
      c[i * kSize + j] = sum;
    }
  }
  return c;
}

tuff_status multiply(tuff_stream stream, tuff_buffer a, tuff_buffer b, tuff_buffer c) {
  return tuff_gemm(stream, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, kSize, kSize, kSize, 1, a, kSize, b, kSize, 0, c,
                   kSize);
}

tuff_status cumulate(tuff_stream stream, tuff_buffer from, tuff_buffer to) {
  tuff_scan_desc scan{};
  scan.struct_size = sizeof scan;
  scan.dtype = TUFF_F32, scan.rank = 2, scan.axis = 1;
  scan.input = from, scan.output = to;
  scan.shape[0] = scan.shape[1] = kSize;
  return tuff_cumsum(stream, &scan);
}

// The plug-in knows gemm and unary, and no cumulative sum: a kernel's result is read by the plug-in, and the other way
// round.
TEST_F(DevicesProcessor, CallsOfBothSeeEachOthersResults) {
  Dispatches dispatches;
  const std::vector<float> a = integers(kCount, 2, 1), b = integers(kCount, 2, 2);
  const Tensor left(context(), a), right(context(), b), sums(context(), kCount), result(context(), kCount);
  dispatches.count("", "");
  for (int turn = 0; turn < 20; ++turn) {
    ASSERT_OK(multiply(context(), left, right, result));
    ASSERT_OK(cumulate(context(), result, sums));
    ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, sums, result, kCount));
  }
  EXPECT_EQ(dispatches.count("by the plug-in", "gemm"), 20);
  std::vector<float> expected = product_of(a, b);
  for (uint64_t i = 0; i < kSize; ++i) {
    float sum = 0;
    for (uint64_t j = 0; j < kSize; ++j) expected[i * kSize + j] = -(sum += expected[i * kSize + j]);
  }
  EXPECT_EQ(result.read(), expected);
}

// New buffers are cleared by the default stream, whichever stream uses them first.
TEST_F(DevicesProcessor, ClearedMemoryIsClear) {
  tuff_stream stream = 0;
  tuff_stream_desc desc{};
  desc.struct_size = sizeof desc;
  ASSERT_OK(tuff_stream_create(context(), &desc, &stream));
  for (int turn = 0; turn < 20; ++turn) {
    const OwnBuffer zeros(context(), 4 << 20), result(context(), 4 << 20);
    ASSERT_OK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_EXP, zeros, result, 1 << 20));
    float values[2] = {};
    ASSERT_OK(tuff_copy_dtoh(stream, &values[0], result, 0, 4));
    ASSERT_OK(tuff_copy_dtoh(stream, &values[1], result, (4 << 20) - 4, 4));
    EXPECT_EQ(values[0], 1);
    EXPECT_EQ(values[1], 1);
    // The next turn's memory is this one's.
    ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_EXP, result, zeros, 1 << 20));
  }
  EXPECT_OK(tuff_stream_destroy(stream));
}

// Products and functions are the plug-in's, the cumulative sum is the driver's.
tuff_status layers(tuff_stream stream, tuff_buffer left, tuff_buffer right, tuff_buffer sums, tuff_buffer result) {
  for (const tuff_status status :
       {multiply(stream, left, right, result), tuff_unary(stream, TUFF_F32, TUFF_UNARY_TANH, result, sums, kCount),
        cumulate(stream, sums, result), cumulate(stream, result, sums),
        tuff_unary(stream, TUFF_F32, TUFF_UNARY_EXP, left, result, kCount), multiply(stream, sums, right, result)}) {
    if (status != TUFF_OK) return status;
  }
  return TUFF_OK;
}

// A stream's graph, destroyed at the end of the scope.
class OwnGraph {
 public:
  template <typename Calls>
  OwnGraph(tuff_stream stream, const Calls& calls) {
    EXPECT_OK(tuff_graph_begin(stream));
    calls();
    EXPECT_OK(tuff_graph_end(stream, &handle_));
  }
  ~OwnGraph() { EXPECT_OK(tuff_graph_destroy(handle_)); }
  OwnGraph(const OwnGraph&) = delete;
  OwnGraph& operator=(const OwnGraph&) = delete;
  operator tuff_graph() const { return handle_; }  // NOLINT(google-explicit-constructor)

 private:
  tuff_graph handle_ = 0;
};

TEST_F(DevicesProcessor, GraphsGiveTheBitsOfTheirCalls) {
  const std::vector<float> a = uniforms(kCount, -1, 1, 3), b = uniforms(kCount, -1, 1, 4);
  const Tensor left(context(), a), right(context(), b), sums(context(), kCount), result(context(), kCount);
  ASSERT_OK(layers(context(), left, right, sums, result));
  const std::vector<float> expected_sums = sums.read(), expected = result.read();
  Dispatches dispatches;
  const Tensor other_sums(context(), kCount), other(context(), kCount);
  dispatches.count("", "");
  const OwnGraph graph(context(), [&] { ASSERT_OK(layers(context(), left, right, other_sums, other)); });
  EXPECT_EQ(dispatches.count("by the plug-in", "at each launch"), 4);
  other_sums.expect_poisoned();
  other.expect_poisoned();
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_OK(tuff_graph_launch(context(), graph));
    expect_same_bits(other_sums.read(), expected_sums);
    expect_same_bits(other.read(), expected);
  }
}

TEST_F(DevicesProcessor, GraphsBindOtherMemoryToBoth) {
  const std::vector<float> a = uniforms(kCount, -1, 1, 5), b = uniforms(kCount, -1, 1, 6), c = uniforms(kCount, -1, 1, 7);
  const Tensor left(context(), a), right(context(), b), sums(context(), kCount), result(context(), kCount);
  const Tensor other(context(), c), other_sums(context(), kCount), expected(context(), kCount);
  const OwnGraph graph(context(), [&] { ASSERT_OK(layers(context(), left, right, sums, result)); });
  ASSERT_OK(layers(context(), other, right, other_sums, expected));
  const std::vector<float> sums_of_other = other_sums.read();
  const Tensor free(context(), kCount);
  ASSERT_OK(tuff_graph_bind(graph, left, other));
  ASSERT_OK(tuff_graph_bind(graph, sums, free));
  ASSERT_OK(tuff_graph_launch(context(), graph));
  expect_same_bits(result.read(), expected.read());
  expect_same_bits(free.read(), sums_of_other);
  sums.expect_poisoned();
  // What the plug-in or the driver would write into its own operand is refused, and nothing changes.
  EXPECT_FAILS(tuff_graph_bind(graph, right, result), kArgument, "tuff_graph_bind", "overlap");
  EXPECT_FAILS(tuff_graph_bind(graph, free, result), kArgument, "tuff_graph_bind", "captured");
  EXPECT_FAILS(tuff_graph_bind(graph, sums, result), kArgument, "tuff_graph_bind", "overlap");
  // Back again.
  ASSERT_OK(tuff_graph_bind(graph, left, left));
  ASSERT_OK(tuff_graph_bind(graph, sums, sums));
  ASSERT_OK(tuff_graph_launch(context(), graph));
  const Tensor again(context(), kCount);
  ASSERT_OK(layers(context(), left, right, other_sums, again));
  expect_same_bits(result.read(), again.read());
  expect_same_bits(sums.read(), other_sums.read());
}

// A launch is one call to other threads, though it has several parts and waits between them.
TEST_F(DevicesProcessor, ThreadsLaunchOneGraphAtOnce) {
  const std::vector<float> a = uniforms(kCount, -1, 1, 8), b = uniforms(kCount, -1, 1, 9);
  const Tensor left(context(), a), right(context(), b), sums(context(), kCount), result(context(), kCount);
  const OwnGraph graph(context(), [&] { ASSERT_OK(layers(context(), left, right, sums, result)); });
  ASSERT_OK(layers(context(), left, right, sums, result));
  const std::vector<float> expected_sums = sums.read(), expected = result.read();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      tuff_stream stream = 0;
      tuff_stream_desc desc{};
      desc.struct_size = sizeof desc;
      ASSERT_OK(tuff_stream_create(context(), &desc, &stream));
      for (int turn = 0; turn < 20; ++turn) EXPECT_OK(tuff_graph_launch(stream, graph));
      EXPECT_OK(tuff_stream_destroy(stream));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(tuff_synchronize(context()));
  expect_same_bits(sums.read(), expected_sums);
  expect_same_bits(result.read(), expected);
}

// The default stream's work may be what clears or moves an operand, so each call waits for it.
TEST_F(DevicesProcessor, CallsGoOnBesideAThreadThatKeepsTheDriverBusy) {
  const Tensor ones(context(), std::vector<float>(kCount, 1)), sums(context(), kCount);
  const Tensor x(context(), std::vector<float>(kCount, 2)), y(context(), kCount);
  tuff_stream stream = 0;
  tuff_stream_desc desc{};
  desc.struct_size = sizeof desc;
  ASSERT_OK(tuff_stream_create(context(), &desc, &stream));
  ASSERT_OK(cumulate(context(), ones, sums));
  std::atomic<bool> done{false}, gave_up{false};
  std::thread busy([&] {
    const auto begin = std::chrono::steady_clock::now();
    while (!done && !gave_up) {
      EXPECT_OK(cumulate(context(), ones, sums));
      gave_up = std::chrono::steady_clock::now() - begin > std::chrono::seconds(60);
    }
  });
  for (int turn = 0; turn < 200; ++turn) EXPECT_OK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, x, y, kCount));
  done = true;
  busy.join();
  EXPECT_FALSE(gave_up) << "200 calls did not come to an end in 60 s";
  EXPECT_EQ(y.read(), std::vector<float>(kCount, -2));
  EXPECT_OK(tuff_stream_destroy(stream));
}

// Profiles replay the driver's commands one by one.
TEST_F(DevicesProcessor, ProfiledGraphs) {
  const std::vector<float> a = uniforms(kCount, -1, 1, 10), b = uniforms(kCount, -1, 1, 11);
  const Tensor left(context(), a), right(context(), b), sums(context(), kCount), result(context(), kCount);
  ASSERT_OK(layers(context(), left, right, sums, result));
  const std::vector<float> expected = result.read();
  const OwnGraph graph(context(), [&] { ASSERT_OK(layers(context(), left, right, sums, result)); });
  const float zero = 0;
  ASSERT_OK(tuff_fill(context(), result, 0, kCount * 4, &zero, sizeof zero));
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(tuff_graph_launch(context(), graph));
  expect_same_bits(result.read(), expected);
  ASSERT_OK(tuff_profile_end(context()));
}

TEST_F(DevicesProcessor, InvalidCallsAreRefusedAndChangeNothing) {
  const Tensor x(context(), std::vector<float>(kCount, 1)), y(context(), kCount);
  EXPECT_FAILS(tuff_unary(context(), TUFF_F32, TUFF_UNARY_RELU, x, y, 2 * kCount), kArgument, "tuff_unary", "input");
  EXPECT_FAILS(tuff_unary(context(), TUFF_F32, 9999, x, y, kCount), kArgument, "tuff_unary", "op");
  EXPECT_FAILS(multiply(context(), x, x, x), kArgument, "tuff_gemm", "c");
  y.expect_poisoned();
  // A mapped operand, too.
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = kCount * 4, desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  tuff_buffer mapped = 0;
  ASSERT_OK(tuff_alloc_ex(context(), &desc, &mapped));
  const OwnBuffer owner(mapped);
  void* memory = nullptr;
  ASSERT_OK(tuff_map(mapped, &memory));
  EXPECT_FAILS(tuff_unary(context(), TUFF_F32, TUFF_UNARY_RELU, mapped, y, kCount), kArgument, "tuff_unary", "input");
  ASSERT_OK(tuff_unmap(mapped));
  y.expect_poisoned();
}

TEST_F(DevicesProcessor, KernelsThatAreChosenByHandRun) {
  const Tensor x(context(), std::vector<float>(kCount, 1)), y(context(), kCount);
  const auto by_plugin = [&](tuff_context where, const Tensor& from, const Tensor& to) {
    Dispatches dispatches;
    EXPECT_OK(tuff_unary(where, TUFF_F32, TUFF_UNARY_RELU, from, to, kCount));
    return dispatches.count("by the plug-in", "unary");
  };
  EXPECT_EQ(by_plugin(context(), x, y), 1);
  const Variable forced("TUFF_GEMM_VARIANT", "skinny");
  const OwnContext other("vulkan");
  EXPECT_FALSE(has_plugin(other));
  const Tensor from(other, std::vector<float>(kCount, 1)), to(other, kCount);
  EXPECT_EQ(by_plugin(other, from, to), 0);
}

// The process's own threads, by number, and whether they take SIGUSR1.
std::set<int> threads_that_take_signals() {
  std::set<int> found;
  DIR* folder = opendir("/proc/self/task");
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder)) {
    const int number = std::atoi(entry->d_name);
    std::ifstream status("/proc/self/task/" + std::string(entry->d_name) + "/status");
    for (std::string line; number != 0 && std::getline(status, line);) {
      if (line.rfind("SigBlk:", 0) != 0) continue;
      const unsigned long long blocked = std::strtoull(line.c_str() + 7, nullptr, 16);
      if ((blocked >> (SIGUSR1 - 1) & 1) == 0) found.insert(number);
    }
  }
  closedir(folder);
  return found;
}

// The plug-in's threads begin with its first large call on this thread.
TEST_F(DevicesProcessor, ThreadsTakeNoSignalsOfTheApplication) {
  const Tensor x(context(), 1 << 20), y(context(), 1 << 20);
  ASSERT_OK(tuff_synchronize(context()));
  std::thread caller([&] {
    const std::set<int> before = threads_that_take_signals();
    EXPECT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_EXP, x, y, 1 << 20));
    EXPECT_EQ(threads_that_take_signals(), before);
  });
  caller.join();
}

}  // namespace
}  // namespace tuff_test::devices_processor_test
