// The prewarming thread, with numbers in place of pipelines: which thread builds what, and which one waits.
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <stdexcept>

#include "runtime/vulkan/prewarm.hpp"
#include "shaders.hpp"

namespace tuff {
namespace {

using namespace std::chrono_literals;

std::vector<ListedKernel> kernels(int count) {
  std::vector<ListedKernel> list;
  for (int i = 0; i < count; ++i) {
    const KernelRequest request = KernelRequest(shaders::binding_probe).define("TUFF_WORDS", i);
    const KernelForm form{1, true};
    list.push_back({request, form, kernel_line(request, form)});
  }
  return list;
}
Pipeline pipeline_of(const std::string& line) {
  return {reinterpret_cast<VkPipeline>(std::hash<std::string>()(line) | 1), VK_NULL_HANDLE};
}
Pipeline build_at_once(const ListedKernel& kernel) { return pipeline_of(kernel.line); }
void nothing(uint64_t) {}
int leftovers(const Prewarm& prewarm) {
  int count = 0;
  prewarm.each_leftover([&](const Pipeline&) { ++count; });
  return count;
}

TEST(PrewarmThread, BuildsTheListAndSaysSo) {
  const auto list = kernels(20);
  std::promise<uint64_t> done;
  Prewarm prewarm(list, build_at_once, [&](uint64_t built) { done.set_value(built); });
  EXPECT_EQ(done.get_future().get(), 20u);
  EXPECT_EQ(prewarm.to_build(), 0u);
  for (int i = 0; i < 5; ++i) {
    const Prewarm::Turn turn(&prewarm, list[i].line);
    ASSERT_TRUE(turn.pipeline());
    EXPECT_EQ(turn.pipeline()->handle, pipeline_of(list[i].line).handle);
    const Prewarm::Turn again(&prewarm, list[i].line);
    EXPECT_FALSE(again.pipeline()) << "it is the first caller's";
  }
  prewarm.stop();
  EXPECT_EQ(leftovers(prewarm), 15);
}

TEST(PrewarmThread, TakesNoSignalsOfTheApplication) {
  std::promise<bool> blocked;
  const auto build = [&](const ListedKernel& kernel) {
    sigset_t set;
    blocked.set_value(pthread_sigmask(SIG_BLOCK, nullptr, &set) == 0 && sigismember(&set, SIGUSR1) == 1 &&
                      sigismember(&set, SIGINT) == 1);
    return pipeline_of(kernel.line);
  };
  Prewarm prewarm(kernels(1), build, nothing);
  EXPECT_TRUE(blocked.get_future().get());
  sigset_t here;
  EXPECT_EQ(pthread_sigmask(SIG_BLOCK, nullptr, &here), 0);
  EXPECT_EQ(sigismember(&here, SIGUSR1), 0) << "this thread takes them as before";
}

TEST(PrewarmThread, WhoNeedsTheOneInProgressWaitsForIt) {
  const auto list = kernels(1);
  std::promise<void> begun, go;
  std::atomic<int> builds{0};
  const auto build = [&](const ListedKernel& kernel) {
    ++builds;
    begun.set_value();
    go.get_future().wait();
    return pipeline_of(kernel.line);
  };
  Prewarm prewarm(list, build, nothing);
  begun.get_future().wait();
  auto caller = std::async(std::launch::async, [&] {
    const Prewarm::Turn turn(&prewarm, list[0].line);
    return turn.pipeline().has_value();
  });
  {  // another pipeline is not delayed by it
    const Prewarm::Turn turn(&prewarm, "another");
    EXPECT_FALSE(turn.pipeline());
  }
  EXPECT_EQ(caller.wait_for(30ms), std::future_status::timeout);
  go.set_value();
  EXPECT_TRUE(caller.get());
  EXPECT_EQ(builds, 1);
}

TEST(PrewarmThread, BeginsNoneWhileACallerBuilds) {
  const auto list = kernels(3);
  std::promise<void> begun, go;
  std::atomic<int> builds{0};
  const auto build = [&](const ListedKernel& kernel) {
    if (++builds == 1) {
      begun.set_value();
      go.get_future().wait();
    }
    return pipeline_of(kernel.line);
  };
  std::promise<uint64_t> done;
  Prewarm prewarm(list, build, [&](uint64_t built) { done.set_value(built); });
  begun.get_future().wait();
  auto result = done.get_future();
  {
    const Prewarm::Turn turn(&prewarm, list[2].line);
    EXPECT_FALSE(turn.pipeline()) << "not begun: it is the caller's to build";
    go.set_value();
    EXPECT_EQ(result.wait_for(50ms), std::future_status::timeout);
    EXPECT_EQ(builds, 1);
  }
  EXPECT_EQ(result.get(), 2u);
  EXPECT_EQ(builds, 2) << "the third was the caller's";
}

TEST(PrewarmThread, WhatFailsIsLeftToTheCaller) {
  const auto list = kernels(2);
  const auto build = [&](const ListedKernel& kernel) -> Pipeline {
    if (kernel.line == list[0].line) throw std::runtime_error("no");
    return pipeline_of(kernel.line);
  };
  std::promise<uint64_t> done;
  Prewarm prewarm(list, build, [&](uint64_t built) { done.set_value(built); });
  EXPECT_EQ(done.get_future().get(), 1u);
  EXPECT_EQ(prewarm.to_build(), 0u);
  EXPECT_FALSE(Prewarm::Turn(&prewarm, list[0].line).pipeline());
  EXPECT_TRUE(Prewarm::Turn(&prewarm, list[1].line).pipeline());
}

TEST(PrewarmThread, StopWaitsForTheOneInProgressAlone) {
  const auto list = kernels(50);
  std::promise<void> begun, go;
  std::atomic<int> builds{0};
  std::atomic<bool> done{false};
  const auto build = [&](const ListedKernel& kernel) {
    if (++builds == 1) {
      begun.set_value();
      go.get_future().wait();
    }
    return pipeline_of(kernel.line);
  };
  Prewarm prewarm(list, build, [&](uint64_t) { done = true; });
  begun.get_future().wait();
  auto stopped = std::async(std::launch::async, [&] { prewarm.stop(); });
  EXPECT_EQ(stopped.wait_for(30ms), std::future_status::timeout);
  go.set_value();
  stopped.get();
  EXPECT_EQ(builds, 1);
  EXPECT_FALSE(done);
  EXPECT_EQ(leftovers(prewarm), 1);
  prewarm.stop();
  EXPECT_FALSE(Prewarm::Turn(&prewarm, list[9].line).pipeline()) << "callers go on without it";
}

// A log callback on the thread may end the process, whose exit handler stops it, while a context is being destroyed.
TEST(PrewarmThread, StopsItselfWhileAnotherThreadJoinsIt) {
  std::promise<void> begun, go, back;
  Prewarm* self = nullptr;
  const auto build = [&](const ListedKernel& kernel) {
    begun.set_value();
    go.get_future().wait();
    self->stop();
    back.set_value();
    return pipeline_of(kernel.line);
  };
  Prewarm prewarm(kernels(1), build, nothing);
  self = &prewarm;
  begun.get_future().wait();
  auto joined = std::async(std::launch::async, [&] { prewarm.stop(); });
  EXPECT_EQ(joined.wait_for(30ms), std::future_status::timeout);
  go.set_value();
  if (back.get_future().wait_for(20s) == std::future_status::timeout) {
    std::fprintf(stderr, "each waits for the other\n");
    std::abort();
  }
  joined.get();
}

TEST(PrewarmThread, CallersAndManyOfThemAtOnce) {
  for (int round = 0; round < 16; ++round) {
    const auto list = kernels(40);
    std::atomic<int> built{0};
    std::vector<std::thread> callers;
    {
      Prewarm prewarm(
          list,
          [&](const ListedKernel& kernel) {
            ++built;
            return pipeline_of(kernel.line);
          },
          nothing);
      std::atomic<int> taken{0};
      for (int i = 0; i < 4; ++i) {
        // Each thread requests its own part of the list: a context requests a kernel only once.
        callers.emplace_back([&, i] {
          for (size_t k = static_cast<size_t>(i); k < list.size(); k += 4) {
            const Prewarm::Turn turn(&prewarm, list[k].line);
            if (!turn.pipeline()) ++built;
            ++taken;
          }
        });
      }
      if (round % 2 == 0) prewarm.stop();
      for (std::thread& caller : callers) caller.join();
      prewarm.stop();
      EXPECT_EQ(taken, 40);
      EXPECT_EQ(leftovers(prewarm), 0);
    }
    EXPECT_EQ(built, 40) << "each once";
  }
}

TEST(PrewarmThread, AnEmptyListNeedsNoThread) {
  Prewarm prewarm({}, build_at_once, nothing);
  EXPECT_EQ(prewarm.to_build(), 0u);
  EXPECT_FALSE(Prewarm::Turn(nullptr, "x").pipeline());
}

}  // namespace
}  // namespace tuff
