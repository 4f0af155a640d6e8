// A device that is lost or never finishes: what waiting threads are told and how soon, and what is destroyed.
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "internal/faults.hpp"
#include "runtime/graveyard.hpp"
#include "support/call_table.hpp"
#include "support/kernel.hpp"

namespace tuff_test {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr uint64_t kSecond = 1'000'000'000;  // in nanoseconds

// The durations that the driver was asked to wait: the total, and the longest. On a busy machine waits take longer.
std::atomic<uint64_t> asked{0}, longest_asked{0};

// A driver that never signals and never reports an error.
VKAPI_ATTR VkResult VKAPI_CALL waits_in_vain(VkDevice, const VkSemaphoreWaitInfo*, uint64_t nanoseconds) {
  ++calls;
  asked += nanoseconds;
  for (uint64_t before = longest_asked; before < nanoseconds;) {
    if (longest_asked.compare_exchange_weak(before, nanoseconds)) break;
  }
  std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
  return VK_TIMEOUT;
}
VKAPI_ATTR VkResult VKAPI_CALL counts_to_the_end(VkDevice, VkSemaphore, uint64_t* value) {
  *value = UINT64_MAX;
  return VK_SUCCESS;
}
VKAPI_ATTR VkResult VKAPI_CALL lost_when_counting(VkDevice, VkSemaphore, uint64_t*) { return VK_ERROR_DEVICE_LOST; }
VKAPI_ATTR VkResult VKAPI_CALL waits_for_nothing(VkDevice, const VkSemaphoreWaitInfo*, uint64_t) { return VK_SUCCESS; }
VKAPI_ATTR VkResult VKAPI_CALL lost_on_submit(VkQueue, uint32_t, const VkSubmitInfo*, VkFence) {
  return VK_ERROR_DEVICE_LOST;
}
VKAPI_ATTR VkResult VKAPI_CALL waits_for_ever(VkDevice) {
  ADD_FAILURE() << "a lost device was waited for without a bound";
  return VK_ERROR_DEVICE_LOST;
}

class Loss : public Faults {
 protected:
  void never_finishes() {
    asked = longest_asked = 0;
    vk_->vkWaitSemaphores = waits_in_vain;
    vk_->vkGetSemaphoreCounterValue = none_finished;
  }
  void set_wait_limit(uint64_t limit) {
    tuff_limits limits{};
    limits.struct_size = sizeof limits;
    limits.wait_milliseconds = limit;
    ASSERT_OK(tuff_context_set_limits(context(), &limits));
  }
  tuff_buffer make(uint32_t flags = 0) {  // its context is destroyed before the test ends
    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc;
    desc.bytes = 64;
    desc.flags = flags;
    tuff_buffer buffer = 0;
    EXPECT_OK(tuff_alloc_ex(context(), &desc, &buffer));
    return buffer;
  }
  void use(tuff_buffer buffer) { ASSERT_OK(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 16)); }
  // Destroys the context and returns how long that took.
  milliseconds destroy() {
    const auto start = Clock::now();
    EXPECT_OK(tuff_context_destroy(own_->release()));
    return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  }
};

TEST_F(Loss, EveryThreadThatWaitsIsToldWithinASecond) {
  // A buffer that is being mapped cannot be copied, so each waiter has its own.
  const tuff_buffer buffer = make(), visible = make(TUFF_ALLOC_HOST_VISIBLE), other = make();
  use(buffer);
  use(visible);
  never_finishes();
  struct Waiter {
    const char* name;
    std::function<tuff_status()> call;
  };
  float value = 0;
  void* mapped = nullptr;
  const std::vector<Waiter> waiters = {
      {"tuff_synchronize", [&] { return tuff_synchronize(context()); }},
      {"tuff_synchronize", [&] { return tuff_synchronize(context()); }},
      {"tuff_copy_dtoh", [&] { return tuff_copy_dtoh(context(), &value, buffer, 0, 4); }},
      {"tuff_map", [&] { return tuff_map(visible, &mapped); }},
  };
  std::atomic<int> back{0};
  std::mutex mutex;
  std::vector<std::string> wrong;
  std::vector<std::thread> threads;
  for (const Waiter& waiter : waiters) {
    threads.emplace_back([&] {
      const tuff_status status = waiter.call();
      const std::string message = last_error();
      ++back;
      // The message names the call that lost the device, and what to do.
      if (status == TUFF_ERROR_DEVICE_LOST && message.find("vkQueueSubmit") != std::string::npos &&
          message.find("create a new context") != std::string::npos) {
        return;
      }
      const std::lock_guard lock(mutex);
      wrong.push_back(std::string(waiter.name) + ": " + tuff_status_name(status) + ": " + message);
    });
  }
  while (calls < static_cast<int>(waiters.size())) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(back, 0);
  use(other);
  vk_->vkQueueSubmit = lost_on_submit;
  const auto lost = Clock::now();
  EXPECT_EQ(tuff_synchronize(context()), TUFF_ERROR_DEVICE_LOST);
  const int calls_before = calls;
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(Clock::now() - lost, kNoWait);
  // Each waiter checks at least this often whether the device is lost, and then stops waiting.
  EXPECT_LT(longest_asked, kSecond);
  EXPECT_LE(calls - calls_before, static_cast<int>(waiters.size())) << "of those that had looked just before";
  for (const std::string& what : wrong) ADD_FAILURE() << what;
  EXPECT_EQ(mapped, nullptr);
  *vk_ = whole_;
  expect_everything_says_lost(buffer);
  const OwnContext fresh("vulkan");
  expect_works(fresh);
}

TEST_F(Loss, TheDriverShowsItByTheCounterAlone) {
  const struct {
    const char* what;
    PFN_vkWaitSemaphores wait;
    PFN_vkGetSemaphoreCounterValue count;
  } drivers[] = {
      {"it counts to the end, and no wait ends", waits_in_vain, counts_to_the_end},
      {"it counts to the end, and every wait ends", waits_for_nothing, counts_to_the_end},
      {"it says so when it is asked for its counter", waits_in_vain, lost_when_counting},
  };
  for (const auto& driver : drivers) {
    SCOPED_TRACE(driver.what);
    own_ = std::make_unique<OwnContext>("vulkan");
    vk_ = &table(*own_);
    whole_ = *vk_;
    const tuff_buffer buffer = make();
    use(buffer);
    vk_->vkWaitSemaphores = driver.wait;
    vk_->vkGetSemaphoreCounterValue = driver.count;
    asked = 0;
    const auto start = Clock::now();
    EXPECT_FAILS(tuff_synchronize(context()), TUFF_ERROR_DEVICE_LOST, "tuff_synchronize", "vkGetSemaphoreCounterValue");
    EXPECT_LT(Clock::now() - start, kNoWait);
    EXPECT_LT(asked, kSecond);
    *vk_ = whole_;
    expect_everything_says_lost(buffer);
  }
}

TEST_F(Loss, EveryCallThatNeedsTheDeviceSaysSo) {
  std::vector<tuff_buffer> operands;
  for (size_t i = 0; i < kCallBuffers; ++i) operands.push_back(OwnBuffer(context(), kCallBytes).release());
  use(operands[0]);
  vk_->vkQueueSubmit = lost_on_submit;
  EXPECT_EQ(tuff_synchronize(context()), TUFF_ERROR_DEVICE_LOST);
  *vk_ = whole_;
  for (const BufferCall& row : buffer_calls()) {
    const tuff_status status = row.call(context(), operands.data());
    if (status == TUFF_OK && !row.has_stream) continue;  // answered without the device
    EXPECT_EQ(status, TUFF_ERROR_DEVICE_LOST) << row.function;
    EXPECT_EQ(last_error().rfind(row.function, 0), 0u) << last_error();
  }
}

TEST_F(Loss, WhatNeedsNoDeviceStillAnswers) {
  const tuff_buffer buffer = make();
  const tuff_kernel_desc desc = glsl(kPlusOne);
  tuff_kernel kernel = 0;
  ASSERT_OK(tuff_kernel_create(context(), &desc, &kernel));
  use(buffer);
  vk_->vkQueueSubmit = lost_on_submit;
  EXPECT_EQ(tuff_synchronize(context()), TUFF_ERROR_DEVICE_LOST);
  EXPECT_EQ(stats_of(context()).live_buffers, 1u);
  EXPECT_EQ(info_of(kernel).binding_count, 2u);
  EXPECT_STRNE(properties_of(context()).name, "");
  tuff_memory_stats memory{};
  memory.struct_size = sizeof memory;
  EXPECT_OK(tuff_context_memory(context(), &memory));
  EXPECT_OK(tuff_context_trim(context()));
  set_wait_limit(100);
  int32_t yes = 0;
  EXPECT_OK(tuff_supports(context(), "gemm", &yes));
  tuff_buffer view = 0;
  EXPECT_OK(tuff_view(buffer, 4, 4, &view));
  EXPECT_OK(tuff_free(view));
  EXPECT_OK(tuff_free(buffer));
  EXPECT_OK(tuff_kernel_destroy(kernel));
}

TEST_F(Loss, ALostDeviceThatHangsHoldsNobody) {
  const tuff_buffer buffer = make();
  use(buffer);
  ASSERT_OK(tuff_synchronize(context()));
  use(buffer);
  const size_t before = tuff::sweep_graveyard();
  never_finishes();
  vk_->vkGetSemaphoreCounterValue = lost_when_counting;
  vk_->vkDeviceWaitIdle = waits_for_ever;
  EXPECT_EQ(tuff_synchronize(context()), TUFF_ERROR_DEVICE_LOST);
  EXPECT_LT(destroy(), kNoWait);
  EXPECT_LE(asked, 2 * kSecond);
  EXPECT_EQ(tuff::sweep_graveyard(), before + 1) << "what the driver may still use is kept";
  *vk_ = whole_;
  vk_->vkDeviceWaitIdle = waits_for_ever;
  vk_ = nullptr;  // destroyed with its device
  // The driver finished after all.
  const auto until = Clock::now() + kNoWait;
  while (tuff::sweep_graveyard() != before && Clock::now() < until) std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(tuff::sweep_graveyard(), before);
}

TEST_F(Loss, DestroyedBeforeTheDeviceHasFinished) {
  const tuff_buffer buffer = make();
  const OwnContext fresh("vulkan");
  use(buffer);
  const size_t before = tuff::sweep_graveyard();
  never_finishes();
  set_wait_limit(200);
  std::vector<std::string> warnings;
  ASSERT_OK(
      tuff_set_log([](void* user, int32_t,
                      const char* message) { static_cast<std::vector<std::string>*>(user)->emplace_back(message); },
                   &warnings, TUFF_LOG_WARNING));
  EXPECT_LT(destroy(), kNoWait);
  EXPECT_LE(asked, kSecond / 5) << "the limit counts once";
  ASSERT_OK(tuff_set_log(nullptr, nullptr, TUFF_LOG_OFF));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NE(warnings[0].find("200 ms"), std::string::npos) << warnings[0];
  EXPECT_NE(warnings[1].find("still working"), std::string::npos) << warnings[1];
  uint64_t bytes = 0;
  EXPECT_EQ(tuff_buffer_size(buffer, &bytes), TUFF_ERROR_INVALID_HANDLE);
  EXPECT_EQ(tuff::sweep_graveyard(), before + 1);
  expect_works(fresh);
  EXPECT_EQ(tuff::sweep_graveyard(), before + 1) << "it is freed when its own device has finished, not earlier";
  *vk_ = whole_;
  vk_ = nullptr;
  const OwnContext sweeps("vulkan");
  EXPECT_EQ(tuff::sweep_graveyard(), before);
}

TEST_F(Loss, AWaitThatTookTooLongSaysWhatIsUnderWay) {
  const tuff_buffer buffer = make();
  ASSERT_OK(tuff_synchronize(context()));
  const uint64_t finished = stats_of(context()).submissions;
  use(buffer);
  use(buffer);
  set_wait_limit(5);
  vk_->vkWaitSemaphores = waits_in_vain;
  static uint64_t counted = 0;
  counted = finished;
  vk_->vkGetSemaphoreCounterValue = [](VkDevice, VkSemaphore, uint64_t* value) {
    *value = counted;
    return VK_SUCCESS;
  };
  EXPECT_FAILS(tuff_synchronize(context()), TUFF_ERROR_TIMEOUT, "tuff_synchronize", "5");
  EXPECT_NE(last_error().find("1 submission is in flight, with 2 operations, from neg ("), std::string::npos)
      << last_error();
  // A call that finds too much work in flight times out too, and has no effect.
  for (int i = 1; i < 24; ++i) {
    use(buffer);
    EXPECT_EQ(tuff_synchronize(context()), TUFF_ERROR_TIMEOUT);
  }
  const uint64_t dispatches = stats_of(context()).dispatches;
  EXPECT_FAILS(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 16), TUFF_ERROR_TIMEOUT, "tuff_unary",
               "5");
  EXPECT_NE(last_error().find("24 submissions are in flight, the first with 2 operations"), std::string::npos)
      << last_error();
  EXPECT_EQ(stats_of(context()).dispatches, dispatches);
  *vk_ = whole_;
  set_wait_limit(0);
  EXPECT_OK(tuff_synchronize(context()));
}

}  // namespace
}  // namespace tuff_test
