// Sixteen threads: on one context, each on its own context, and on contexts that other threads destroy meanwhile.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "support/call_table.hpp"
#include "support/gemm_problem.hpp"
#include "support/kernel.hpp"

namespace tuff_test::sharing_test {
namespace {

constexpr int kMany = 16;

template <typename Body>
void on_many_threads(Body body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kMany; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

class ThreadsMany : public OnBackend {
 protected:
  // Runs one of each kind of operation in sequence, with results that identify the thread.
  void do_something_of_each(tuff_context context, int mine) {
    const auto own = static_cast<float>(mine + 1);
    const Tensor x(context, std::vector<float>(96, own)), y(context, 96);
    EXPECT_OK(tuff_unary(context, TUFF_F32, TUFF_UNARY_NEG, x, y, 96));
    EXPECT_OK(tuff_binary(context, TUFF_F32, TUFF_BINARY_MUL, x, y, y, 96));
    expect_same_bits(y.read(), std::vector<float>(96, -own * own));

    run_gemm(context, {.m = 17, .n = 16, .k = 8u + static_cast<uint64_t>(mine), .beta = 1, .shift = 4}, Tier::exact);

    const uint64_t shape[2] = {3, 32};
    const Tensor sums(context, 3);
    EXPECT_OK(tuff_reduce(context, TUFF_F32, TUFF_REDUCE_SUM, x, sums, shape, 2, 1));
    expect_same_bits(sums.read(), std::vector<float>(3, 32 * own));

    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc;
    desc.bytes = 256;
    desc.flags = TUFF_ALLOC_HOST_VISIBLE;
    tuff_buffer visible = 0;
    ASSERT_OK(tuff_alloc_ex(context, &desc, &visible));
    const OwnBuffer owner(visible);
    const auto word = static_cast<uint32_t>(mine * 1000003);
    EXPECT_OK(tuff_fill(context, visible, 0, 256, &word, sizeof word));
    void* mapped = nullptr;
    ASSERT_OK(tuff_map(visible, &mapped));
    const auto* const words = static_cast<const uint32_t*>(mapped);
    EXPECT_EQ(std::count(words, words + 64, word), 64);
    EXPECT_OK(tuff_unmap(visible));

    if (vulkan()) {
      const OwnKernel kernel(context, glsl(kPlusOne));
      const OwnBuffer to(context, 256);
      const tuff_buffer buffers[] = {visible, to};
      EXPECT_OK(tuff_kernel_launch(context, kernel, buffers, 2, nullptr, 0, 64, 1, 1));
      std::array<uint32_t, 64> back{};
      EXPECT_OK(tuff_copy_dtoh(context, back.data(), to, 0, sizeof back));
      EXPECT_EQ(std::count(back.begin(), back.end(), word + 1), 64);
    }
    EXPECT_EQ(tuff_unary(context, TUFF_F32, 12345, x, y, 96), TUFF_ERROR_INVALID_ARGUMENT);
    EXPECT_GE(stats_of(context).live_buffers, 1u);
    EXPECT_OK(tuff_context_trim(context));
  }
};

TEST_P(ThreadsMany, ShareAContext) {
  const tuff_context shared = context();
  const uint32_t before = stats_of(shared).live_buffers;
  on_many_threads([&](int mine) {
    for (int round = 0; round < 3; ++round) do_something_of_each(shared, mine);
  });
  EXPECT_EQ(stats_of(shared).live_buffers, before);
}

// Alternates between two devices if there are two.
TEST_P(ThreadsMany, EachWithItsOwnContext) {
  const bool two = vulkan() && two_devices();
  std::atomic<int> open{0};
  on_many_threads([&](int mine) {
    const OwnContext own(!two ? GetParam() : mine % 2 == 0 ? "first" : "second");
    ++open;
    while (open < kMany) std::this_thread::yield();  // all sixteen contexts exist at once
    do_something_of_each(own, mine);
  });
}

// Contexts are destroyed in a different order than they were created, by threads that did not create them, while others
// use their objects. Every call either succeeds with the right result or reports a stale handle.
TEST_P(ThreadsMany, ContextsEndUnderTheirUsers) {
  constexpr int kContexts = 6, kUsers = kMany - kContexts;
  struct Shared {
    tuff_context context = 0;
    tuff_buffer from = 0, to = 0;
    tuff_kernel kernel = 0;
  };
  std::array<Shared, kContexts> all;
  const std::vector<float> ones(64, 1.0f), minus(64, -1.0f);
  on_many_threads([&](int mine) {
    if (mine >= kContexts) return;
    Shared& made = all[static_cast<size_t>(mine)];
    made.context = OwnContext(GetParam()).release();
    made.from = OwnBuffer(made.context, 256).release();
    made.to = OwnBuffer(made.context, 256).release();
    EXPECT_OK(tuff_copy_htod(made.context, made.from, 0, ones.data(), 256));
    EXPECT_OK(tuff_copy_htod(made.context, made.to, 0, minus.data(), 256));
    const tuff_kernel_desc desc = glsl(kPlusOne);
    if (vulkan()) {
      EXPECT_OK(tuff_kernel_create(made.context, &desc, &made.kernel));
    }
  });
  std::mutex mutex;
  std::vector<std::string> wrong;
  std::atomic<int> ended{0};
  std::atomic<uint64_t> stale{0}, done{0};
  const auto allowed = [&](tuff_status status, const char* what) {
    ++(status == TUFF_OK ? done : stale);
    if (status == TUFF_OK || status == TUFF_ERROR_INVALID_HANDLE) return status == TUFF_OK;
    const std::lock_guard lock(mutex);
    wrong.push_back(std::string(what) + ": " + last_error());
    return false;
  };
  on_many_threads([&](int mine) {
    if (mine >= kUsers) {
      const int which = (mine - kUsers) * 5 % kContexts;
      while (done + stale == 0) std::this_thread::yield();  // users may start late
      std::this_thread::sleep_for(std::chrono::milliseconds(10 + 7 * ((which * 4) % kContexts)));
      EXPECT_OK(tuff_context_destroy(all[static_cast<size_t>(which)].context));
      ++ended;
      return;
    }
    // When all contexts are destroyed, tries each once more.
    for (int turn = mine, last_turns = 0; last_turns < kContexts; ++turn) {
      if (ended == kContexts) ++last_turns;
      const Shared& used = all[static_cast<size_t>(turn % kContexts)];
      std::array<float, 64> values{};
      uint64_t bytes = 0;
      tuff_buffer view = 0, made = 0;
      allowed(tuff_unary(used.context, TUFF_F32, TUFF_UNARY_NEG, used.from, used.to, 64), "tuff_unary");
      if (allowed(tuff_copy_dtoh(used.context, values.data(), used.to, 0, 256), "tuff_copy_dtoh")) {
        allowed(std::equal(values.begin(), values.end(), minus.begin()) ? TUFF_OK : TUFF_ERROR_INTERNAL, "the result");
      }
      if (allowed(tuff_view(used.from, 4, 16, &view), "tuff_view")) allowed(tuff_free(view), "tuff_free");
      if (allowed(tuff_alloc(used.context, 64, &made), "tuff_alloc")) {
        const tuff_buffer buffers[] = {made, made};
        allowed(tuff_fill(used.context, made, 0, 64, &bytes, 4), "tuff_fill");
        if (vulkan()) {
          const tuff_status launched = tuff_kernel_launch(used.context, used.kernel, buffers, 2, nullptr, 0, 16, 1, 1);
          // The same buffer twice, once written: refused as long as the kernel exists.
          if (launched != TUFF_ERROR_INVALID_ARGUMENT) allowed(launched, "tuff_kernel_launch");
        }
        allowed(tuff_free(made), "tuff_free");
      }
      allowed(tuff_buffer_size(used.to, &bytes), "tuff_buffer_size");
      allowed(tuff_synchronize(used.context), "tuff_synchronize");
    }
  });
  for (const std::string& what : wrong) ADD_FAILURE() << what;
  EXPECT_GT(done, 0u);
  EXPECT_GT(stale, 0u);
  for (const Shared& gone : all) EXPECT_EQ(tuff_context_destroy(gone.context), TUFF_ERROR_INVALID_HANDLE);
}

// Every call in a child process reports why it is not possible. Nothing hangs, whatever locks the parent's other
// threads hold.
TEST_P(ThreadsMany, EveryCallIsTurnedAwayAfterAFork) {
  const tuff_context shared = context();
  std::vector<OwnBuffer> owners;
  std::vector<tuff_buffer> operands;
  for (size_t i = 0; i < kCallBuffers; ++i) operands.push_back(owners.emplace_back(shared, kCallBytes));
  std::atomic<bool> forked{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Tensor x(shared, std::vector<float>(64, 2.0f));
      while (!forked) {
        EXPECT_OK(tuff_unary(shared, TUFF_F32, TUFF_UNARY_NEG, x, x, 64));
        EXPECT_OK(tuff_synchronize(shared));
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      int row = 0;
      for (const BufferCall& call : buffer_calls()) {
        ++row;
        if (call.call(shared, operands.data()) != TUFF_ERROR_NOT_INITIALIZED) _exit(row);
        const std::string message = last_error();
        if (message.rfind(call.function, 0) != 0 || message.find("fork") == std::string::npos) _exit(row);
      }
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    if (WEXITSTATUS(status) != 0) {
      ADD_FAILURE() << buffer_calls()[static_cast<size_t>(WEXITSTATUS(status)) - 1].function;
    }
  }
  forked = true;
  for (std::thread& thread : threads) thread.join();
  for (const BufferCall& call : buffer_calls()) EXPECT_OK(call.call(shared, operands.data())) << call.function;
}
TUFF_ON_BACKENDS(ThreadsMany);

}  // namespace
}  // namespace tuff_test::sharing_test
