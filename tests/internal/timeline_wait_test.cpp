// Waits for a timeline semaphore, which the host signals in these tests.
#include "runtime/vulkan/timeline_wait.hpp"

#include <thread>

#include "internal/faults.hpp"

namespace tuff_test {
namespace {

using std::chrono::microseconds;

VolkDeviceTable waiting_table{};
int sleeps = 0;

VKAPI_ATTR VkResult VKAPI_CALL counted_sleep(VkDevice device, const VkSemaphoreWaitInfo* info, uint64_t limit) {
  ++sleeps;
  return waiting_table.vkWaitSemaphores(device, info, limit);
}
VKAPI_ATTR VkResult VKAPI_CALL to_the_end(VkDevice, VkSemaphore, uint64_t* value) {
  *value = UINT64_MAX;
  return VK_SUCCESS;
}

class TimelineWait : public Faults {
 protected:
  void SetUp() override {
    Faults::SetUp();
    waiting_table = whole_;
    vk_->vkWaitSemaphores = counted_sleep;
    sleeps = 0;
    VkSemaphoreTypeCreateInfo type{};
    type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
    const VkSemaphoreCreateInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, &type, 0};
    ASSERT_EQ(vk_->vkCreateSemaphore(device(context()).handle, &info, nullptr, &timeline_), VK_SUCCESS);
  }
  void TearDown() override {
    vk_->vkDestroySemaphore(device(context()).handle, timeline_, nullptr);
    Faults::TearDown();
  }
  void signal(uint64_t value) {
    const VkSemaphoreSignalInfo info{VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, nullptr, timeline_, value};
    EXPECT_EQ(vk_->vkSignalSemaphore(device(context()).handle, &info), VK_SUCCESS);
  }
  std::optional<uint64_t> wait(uint64_t value, uint64_t milliseconds, microseconds awake) {
    return tuff::wait_timeline(device(context()), timeline_, value, milliseconds, awake);
  }

  VkSemaphore timeline_ = VK_NULL_HANDLE;
};

TEST_F(TimelineWait, WhatIsThereIsSeenAwake) {
  signal(3);
  EXPECT_EQ(wait(3, 1000, microseconds(1000)), 3u);
  EXPECT_EQ(wait(2, 1000, microseconds(1000)), 3u) << "the counter, not the value that was waited for";
  EXPECT_EQ(sleeps, 0);
  EXPECT_EQ(wait(3, 1000, microseconds(0)), 3u);
  EXPECT_EQ(sleeps, 1);
}

TEST_F(TimelineWait, WhatComesLaterIsSeenAwakeOrAsleep) {
  uint64_t value = 0;
  for (const microseconds awake : {microseconds(0), microseconds(1), microseconds(1000)}) {
    for (const microseconds later : {microseconds(0), microseconds(300), microseconds(5000)}) {
      ++value;
      std::thread other([&] {
        std::this_thread::sleep_for(later);
        signal(value);
      });
      EXPECT_EQ(wait(value, 60'000, awake), value);
      other.join();
    }
  }
}

TEST_F(TimelineWait, WhatDoesNotComeIsNotWaitedForLonger) {
  for (const microseconds awake : {microseconds(0), microseconds(1000)}) {
    for (const uint64_t milliseconds : {0, 1, 20}) {
      const auto start = std::chrono::steady_clock::now();
      EXPECT_FALSE(wait(1, milliseconds, awake).has_value());
      EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(milliseconds));
    }
  }
}

TEST_F(TimelineWait, ALossIsSeenAwake) {
  vk_->vkGetSemaphoreCounterValue = to_the_end;
  try {
    wait(1, 1000, microseconds(1000));
    ADD_FAILURE() << "a lost device's count was taken for an answer";
  } catch (const tuff::Error& error) {
    EXPECT_EQ(error.code(), TUFF_ERROR_DEVICE_LOST);
  }
  EXPECT_EQ(sleeps, 0);
}

}  // namespace
}  // namespace tuff_test
