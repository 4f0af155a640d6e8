// A Vulkan device that is the processor, for which the plug-in computes what it knows (docs/cpu.md).
#include <dirent.h>
#include <signal.h>

#include <algorithm>
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

// The plug-in knows gemm and unary, and no cumulative sum: a kernel's result is read by the plug-in, and the other way
// round.
TEST_F(DevicesProcessor, CallsOfBothSeeEachOthersResults) {
  Dispatches dispatches;
  const std::vector<float> a = integers(kCount, 2, 1), b = integers(kCount, 2, 2);
  const Tensor left(context(), a), right(context(), b), sums(context(), kCount), result(context(), kCount);
  const uint64_t shape[] = {kSize, kSize};
  dispatches.count("", "");
  for (int turn = 0; turn < 20; ++turn) {
    ASSERT_OK(multiply(context(), left, right, result));
    tuff_scan_desc scan{};
    scan.struct_size = sizeof scan;
    scan.dtype = TUFF_F32, scan.rank = 2, scan.axis = 1;
    scan.input = result, scan.output = sums;
    std::copy_n(shape, 2, scan.shape);
    ASSERT_OK(tuff_cumsum(context(), &scan));
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

TEST_F(DevicesProcessor, GraphsAreRecordedAsKernels) {
  const std::vector<float> a = integers(kCount, 2, 3), b = integers(kCount, 2, 4);
  const Tensor left(context(), a), right(context(), b), result(context(), kCount);
  tuff_graph graph = 0;
  ASSERT_OK(tuff_graph_begin(context()));
  {
    Dispatches dispatches;
    ASSERT_OK(multiply(context(), left, right, result));
    EXPECT_EQ(dispatches.count("by the plug-in", ""), 0);
  }
  ASSERT_OK(tuff_graph_end(context(), &graph));
  result.expect_poisoned();
  ASSERT_OK(tuff_graph_launch(context(), graph));
  EXPECT_EQ(result.read(), product_of(a, b));
  EXPECT_OK(tuff_graph_destroy(graph));
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
