// Kernels that are compiled in the background, from a list on disk, while callers continue, until the context ends.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "support/gemm_problem.hpp"

namespace tuff_test::prewarm_test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class Prewarm : public testing::Test {
 protected:
  void SetUp() override {
    bool vulkan = false;
    for (const std::string& backend : backends()) vulkan = vulkan || backend == "vulkan";
    if (!vulkan) GTEST_SKIP() << "vulkan is not among TUFF_TEST_BACKENDS";
    std::string pattern = (fs::temp_directory_path() / "tuff-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    home_ = pattern;
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    // Mesa's own cache stays in its usual place, because Mesa continues to write there after a test ends.
    if (!before_.empty()) setenv("MESA_SHADER_CACHE_DIR", before_.c_str(), 0);
    setenv("XDG_CACHE_HOME", home_.c_str(), 1);
  }
  void TearDown() override {
    if (home_.empty()) return;
    if (before_.empty()) {
      unsetenv("XDG_CACHE_HOME");
    } else {
      setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    }
    fs::remove_all(home_);
  }

  static tuff_context create(int32_t prewarm) {
    tuff_context_desc desc{};
    desc.struct_size = sizeof desc;
    desc.prewarm = prewarm;
    desc.validation = validating() ? 1 : 0;
    tuff_context context = 0;
    EXPECT_OK(tuff_context_create(&desc, &context));
    return context;
  }
  static void destroy(tuff_context context) {
    if (validating()) {
      EXPECT_EQ(stats_of(context).validation_messages, 0u);
    }
    EXPECT_OK(tuff_context_destroy(context));
  }

  // A dozen kernels with known results.
  static void work(tuff_context context) {
    constexpr uint64_t kCount = 300;
    std::vector<float> values(kCount);
    for (uint64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 7) - 3;
    const Tensor x(context, values), y(context, values);
    for (const int32_t op : {TUFF_UNARY_NEG, TUFF_UNARY_ABS, TUFF_UNARY_RELU, TUFF_UNARY_SQRT}) {
      EXPECT_OK(tuff_unary(context, TUFF_F32, op, x, y, kCount));
      std::vector<float> expected(kCount);
      for (uint64_t i = 0; i < kCount; ++i) {
        const float v = values[i];
        expected[i] = op == TUFF_UNARY_NEG ? -v : op == TUFF_UNARY_ABS ? std::abs(v) : std::max(v, 0.0f);
      }
      if (op != TUFF_UNARY_SQRT) expect_same_bits(y.read(), expected);
    }
    for (const int32_t op : {TUFF_BINARY_ADD, TUFF_BINARY_SUB, TUFF_BINARY_MUL, TUFF_BINARY_MAX}) {
      EXPECT_OK(tuff_binary(context, TUFF_F32, op, x, x, y, kCount));
    }
    expect_same_bits(y.read(), values);
    run_gemm(context, {.m = 20, .n = 31, .k = 17, .beta = 1, .shift = 4}, Tier::exact);
  }
  // Puts the kernels of `work` on the list. `keep`: also keeps them compiled.
  void record(bool keep) const {
    const tuff_context context = create(0);
    work(context);
    EXPECT_EQ(stats_of(context).kernels_prewarmed, 0u);
    EXPECT_EQ(stats_of(context).kernels_to_prewarm, 0u);
    destroy(context);
    if (keep) return;
    for (const auto& file : fs::directory_iterator(home_ / "tuff")) {
      if (file.path().filename().string().rfind("spirv-", 0) == 0) fs::remove(file.path());
    }
  }
  static void wait_until_done(tuff_context context) {
    const auto limit = Clock::now() + std::chrono::seconds(100);
    while (stats_of(context).kernels_to_prewarm != 0) {
      ASSERT_LT(Clock::now(), limit);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  fs::path home_;
  std::string before_;
};

TEST_F(Prewarm, NothingIsLeftToCompile) {
  record(false);
  const tuff_context context = create(1);
  wait_until_done(context);
  const tuff_stats ready = stats_of(context);
  EXPECT_GE(ready.kernels_prewarmed, 9u);
  EXPECT_GE(ready.shaders_compiled, 9u);
  work(context);
  const tuff_stats after = stats_of(context);
  EXPECT_EQ(after.shaders_compiled, ready.shaders_compiled);
  EXPECT_EQ(after.shader_cache_hits, ready.shader_cache_hits);
  EXPECT_EQ(after.pipelines_created, ready.pipelines_created)
      << "the kernels that were built are those that were requested";
  destroy(context);
}

TEST_F(Prewarm, IsOffUnlessAskedFor) {
  record(true);
  const auto listed = [](tuff_context context) {
    const tuff_stats stats = stats_of(context);
    return stats.kernels_to_prewarm + stats.kernels_prewarmed;
  };
  const tuff_context context = create(0);
  EXPECT_EQ(listed(context), 0u);
  destroy(context);
  setenv("TUFF_PREWARM", "1", 1);
  const tuff_context by_environment = create(0);
  unsetenv("TUFF_PREWARM");
  EXPECT_GE(listed(by_environment), 9u);
  destroy(by_environment);
}

TEST_F(Prewarm, WithoutAListNothingHappens) {
  const tuff_context context = create(1);
  wait_until_done(context);
  work(context);
  destroy(context);
}

TEST_F(Prewarm, CallersGoOnAndEachKernelIsBuiltOnce) {
  record(false);
  uint64_t kernels = 0;
  {
    const tuff_context context = create(1);
    wait_until_done(context);
    kernels = stats_of(context).pipelines_created;
    destroy(context);
  }
  for (int round = 0; round < 5; ++round) {
    record(round % 2 == 0);
    const tuff_context context = create(1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&] { work(context); });
    for (std::thread& thread : threads) thread.join();
    wait_until_done(context);
    // The probe of the first context is on the list too, and is not requested again.
    EXPECT_LE(stats_of(context).pipelines_created, kernels) << "by the thread or by a caller, never by both";
    destroy(context);
  }
}

TEST_F(Prewarm, DestroyingStopsIt) {
  record(false);
  const tuff_context whole = create(1);
  wait_until_done(whole);
  const uint64_t total = stats_of(whole).kernels_prewarmed;
  destroy(whole);
  // A thread that is delayed before it destroys the context finds the whole list compiled, so this is repeated.
  uint64_t compiled = total;
  for (int attempt = 0; attempt < 10 && compiled >= total; ++attempt) {
    record(false);
    const tuff_context context = create(1);
    destroy(context);
    compiled = 0;
    for (const auto& file : fs::directory_iterator(home_ / "tuff")) {
      compiled += file.path().filename().string().rfind("spirv-", 0) == 0;
    }
  }
  EXPECT_LT(compiled, total) << "it did not go through the whole list first";
}

TEST_F(Prewarm, ManyContextsComeAndGo) {
  record(false);
  // The longest of each step. Many processes at once can take a driver minutes for what takes one of them a second; the
  // output then says which step that was.
  enum Step { kCreate, kWork, kDestroy, kSteps };
  std::array<std::atomic<int64_t>, kSteps> longest{};
  const auto timed = [&](Step step, const auto& function) {
    const Clock::time_point begin = Clock::now();
    function();
    const int64_t took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
    for (int64_t most = longest[step]; took > most && !longest[step].compare_exchange_weak(most, took);) {
    }
  };
  const Clock::time_point begin = Clock::now();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 4; ++round) {
        tuff_context context = 0;
        timed(kCreate, [&] { context = create(1); });
        if ((i + round) % 2 == 0) timed(kWork, [&] { work(context); });
        timed(kDestroy, [&] { destroy(context); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (Clock::now() - begin < std::chrono::seconds(30)) return;
  std::printf("slow: at most %lld ms to create a context, %lld ms for its calls, %lld ms to destroy it\n",
              static_cast<long long>(longest[kCreate]), static_cast<long long>(longest[kWork]),
              static_cast<long long>(longest[kDestroy]));
}

TEST_F(Prewarm, WrongOptions) {
  tuff_context_desc desc{};
  desc.struct_size = sizeof desc;
  tuff_context context = 0;
  desc.prewarm = 2;
  EXPECT_FAILS(tuff_context_create(&desc, &context), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_create", "prewarm");
  desc.prewarm = 0;
  desc.reserved = 1;
  EXPECT_FAILS(tuff_context_create(&desc, &context), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_create", "reserved");
}

}  // namespace
}  // namespace tuff_test::prewarm_test
