#include <atomic>
#include <thread>

#include "support/gemm_problem.hpp"
#include "support/threads.hpp"

namespace tuff_test::threads_test {
namespace {

constexpr int kThreads = 6;

class Threads : public OnBackend {};

TEST_P(Threads, EachWithItsOwnBuffers) {
  const tuff_context shared = context();
  on_threads(kThreads, [&](int mine) {
    for (uint64_t round = 0; round < 12; ++round) {
      const GemmShape shape{.m = 20 + round, .n = 31, .k = 10u + static_cast<uint64_t>(mine), .beta = 1, .shift = 4};
      run_gemm(shared, shape, Tier::exact);
    }
  });
}

TEST_P(Threads, OneBufferForAll) {
  const tuff_context shared = context();
  constexpr uint64_t kCount = 1000, kRounds = 40;
  const Tensor sum(shared, std::vector<float>(kCount, 0.0f)), one(shared, std::vector<float>(kCount, 1.0f));
  on_threads(kThreads, [&](int) {
    for (uint64_t i = 0; i < kRounds; ++i) {
      EXPECT_OK(tuff_binary(shared, TUFF_F32, TUFF_BINARY_ADD, sum, one, sum, kCount));
      if (i % 13 != 0) continue;
      EXPECT_OK(tuff_synchronize(shared));
    }
  });
  expect_same_bits(sum.read(), std::vector<float>(kCount, kThreads * kRounds));
}

TEST_P(Threads, ErrorsStayInTheirThread) {
  const tuff_context shared = context();
  std::atomic<int> wrong{0};
  on_threads(kThreads, [&](int mine) {
    for (int i = 0; i < 200; ++i) {
      if (mine % 2 == 0) {
        uint64_t bytes;
        tuff_buffer_size(77, &bytes);
        wrong += last_error().rfind("tuff_buffer_size: ", 0) != 0;
      } else {
        tuff_alloc(shared, 4, nullptr);
        wrong += last_error().rfind("tuff_alloc: ", 0) != 0;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
  std::string fresh = "not run";
  std::thread([&] { fresh = last_error(); }).join();
  EXPECT_EQ(fresh, "") << "a thread without a failure has no message";
}

TEST_P(Threads, HandlesComeAndGo) {
  const tuff_context shared = context();
  const uint32_t before = stats_of(shared).live_buffers;
  std::atomic<tuff_buffer> latest{0};
  std::atomic<int> wrong{0};
  on_threads(kThreads, [&](int mine) {
    for (int i = 0; i < 300; ++i) {
      tuff_buffer buffer = 0, view = 0;
      wrong += tuff_alloc(shared, 256, &buffer) != TUFF_OK;
      latest = buffer;
      wrong += tuff_view(buffer, 4, 16, &view) != TUFF_OK;
      const uint32_t word = static_cast<uint32_t>(mine * 1000 + i);
      uint32_t back = 0;
      wrong += tuff_copy_htod(shared, view, 0, &word, 4) != TUFF_OK;
      // Another thread's buffer, possibly freed: the call either succeeds or finds a stale handle.
      uint64_t bytes = 0;
      const tuff_status status = tuff_buffer_size(latest, &bytes);
      wrong += !(status == TUFF_OK && bytes == 256) && status != TUFF_ERROR_INVALID_HANDLE;
      wrong += tuff_copy_dtoh(shared, &back, buffer, 4, 4) != TUFF_OK || back != word;
      wrong += tuff_free(i % 2 == 0 ? buffer : view) != TUFF_OK;
      wrong += tuff_free(i % 2 == 0 ? view : buffer) != TUFF_OK;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(stats_of(shared).live_buffers, before);
}

TEST_P(Threads, OnlyOneFreeSucceeds) {
  const tuff_context shared = context();
  for (int round = 0; round < 50; ++round) {
    tuff_buffer buffer = 0;
    ASSERT_OK(tuff_alloc(shared, 64, &buffer));
    std::atomic<int> freed{0}, stale{0};
    on_threads(kThreads, [&](int) {
      const tuff_status status = tuff_free(buffer);
      freed += status == TUFF_OK;
      stale += status == TUFF_ERROR_INVALID_HANDLE;
    });
    EXPECT_EQ(freed, 1);
    EXPECT_EQ(stale, kThreads - 1);
  }
}

TEST_P(Threads, EachWithItsOwnContext) {
  on_threads(kThreads, [&](int mine) {
    const OwnContext own(GetParam());
    run_gemm(own, {.m = 30, .n = 20, .k = 10u + static_cast<uint64_t>(mine)}, Tier::exact);
  });
}

// Calls that race with the destruction of their context either succeed or report a stale handle.
TEST_P(Threads, DestroyWhileOthersCall) {
  for (int round = 0; round < 4; ++round) {
    OwnContext own(GetParam());
    const tuff_context handle = own;
    tuff_buffer buffer = 0;
    ASSERT_OK(tuff_alloc(own, 4096, &buffer));
    std::atomic<bool> ended{false};
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        const auto allowed = [&](tuff_status status) {
          wrong += status != TUFF_OK && status != TUFF_ERROR_INVALID_HANDLE;
        };
        for (int call = 0; call < 2000 && !ended; ++call) {
          float value;
          tuff_buffer made = 0;
          allowed(tuff_unary(handle, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 1024));
          allowed(tuff_copy_dtoh(handle, &value, buffer, 0, 4));
          allowed(tuff_alloc(handle, 64, &made));
          if (made != 0) allowed(tuff_free(made));
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    own.destroy();
    ended = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    uint64_t bytes;
    EXPECT_EQ(tuff_buffer_size(buffer, &bytes), TUFF_ERROR_INVALID_HANDLE);
  }
}
TUFF_ON_BACKENDS(Threads);

}  // namespace
}  // namespace tuff_test::threads_test
