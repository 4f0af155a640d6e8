// Staged transfers of several chunks on a device with replaced functions.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "internal/faults.hpp"

namespace tuff_test {
namespace {

PFN_vkQueueSubmit queue_submit = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL lost_on_third(VkQueue queue, uint32_t count, const VkSubmitInfo* infos, VkFence fence) {
  return ++calls < 3 ? queue_submit(queue, count, infos, fence) : VK_ERROR_DEVICE_LOST;
}
VKAPI_ATTR VkResult VKAPI_CALL no_memory(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*,
                                         VkDeviceMemory*) {
  ++calls;
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

class TransferFaults : public testing::Test {
 protected:
  using Bytes = std::vector<uint8_t>;
  static constexpr uint64_t kBytes = (40ull << 20) + 3;  // more than once around the ring of staging chunks

  void SetUp() override {
    calls = 0;
    setenv("TUFF_TRANSFER", "staged", 1);
    own_.emplace("vulkan");
    unsetenv("TUFF_TRANSFER");
    const auto context = tuff::capi::acquire_context(*own_);
    vk_ = &dynamic_cast<tuff::VulkanBackend&>(context->backend()).device().vk;
    whole_ = *vk_;
    tuff_buffer made = 0;
    ASSERT_OK(tuff_alloc(*own_, kBytes, &made));
    buffer_ = OwnBuffer(made);
    ASSERT_OK(tuff_synchronize(*own_));
    queue_submit = whole_.vkQueueSubmit;
  }
  void TearDown() override {
    *vk_ = whole_;
    buffer_.free();
  }
  tuff_status upload(const Bytes& values) { return tuff_copy_htod(*own_, buffer_, 0, values.data(), kBytes); }
  tuff_status download(Bytes& values) { return tuff_copy_dtoh(*own_, values.data(), buffer_, 0, kBytes); }
  void set_wait_limit(uint64_t milliseconds) {
    tuff_limits limits{};
    limits.struct_size = sizeof limits;
    limits.wait_milliseconds = milliseconds;
    ASSERT_OK(tuff_context_set_limits(*own_, &limits));
  }
  void expect_works() {
    const Bytes values(kBytes, 9);
    Bytes back(kBytes);
    ASSERT_OK(upload(values));
    ASSERT_OK(download(back));
    EXPECT_TRUE(back == values);
  }

  std::optional<OwnContext> own_;
  OwnBuffer buffer_;
  VolkDeviceTable* vk_ = nullptr;
  VolkDeviceTable whole_{};
};

TEST_F(TransferFaults, LostBetweenChunks) {
  vk_->vkQueueSubmit = lost_on_third;
  EXPECT_EQ(upload(Bytes(kBytes, 1)), TUFF_ERROR_DEVICE_LOST);
  EXPECT_EQ(calls, 3);
  *vk_ = whole_;
  Bytes back(kBytes, 2);
  EXPECT_EQ(download(back), TUFF_ERROR_DEVICE_LOST) << "once lost, always lost";
  EXPECT_EQ(upload(back), TUFF_ERROR_DEVICE_LOST);
}

TEST_F(TransferFaults, LostWhileDownloading) {
  vk_->vkQueueSubmit = lost_on_third;
  Bytes back(kBytes, 2);
  EXPECT_EQ(download(back), TUFF_ERROR_DEVICE_LOST);
  EXPECT_EQ(calls, 3);
}

// Work in flight stays intact, and the next call waits for it.
TEST_F(TransferFaults, ALateDevice) {
  expect_works();
  vk_->vkWaitSemaphores = late;
  vk_->vkGetSemaphoreCounterValue = none_finished;
  set_wait_limit(5);
  Bytes back(kBytes, 2);
  EXPECT_EQ(download(back), TUFF_ERROR_TIMEOUT);
  EXPECT_NE(last_error().find("tuff_copy_dtoh"), std::string::npos) << last_error();
  EXPECT_GT(calls, 0);
  *vk_ = whole_;
  set_wait_limit(0);
  expect_works();
}

TEST_F(TransferFaults, NoMemoryToStageIn) {
  expect_works();
  ASSERT_OK(tuff_synchronize(*own_));
  ASSERT_OK(tuff_context_trim(*own_));
  vk_->vkAllocateMemory = no_memory;
  const uint64_t uploaded = stats_of(*own_).bytes_uploaded;
  EXPECT_EQ(upload(Bytes(kBytes, 1)), TUFF_ERROR_OUT_OF_DEVICE_MEMORY);
  EXPECT_GT(calls, 0);
  EXPECT_EQ(stats_of(*own_).bytes_uploaded, uploaded);
  *vk_ = whole_;
  Bytes back(kBytes);
  ASSERT_OK(download(back));
  EXPECT_TRUE(back == Bytes(kBytes, 9)) << "no part of it was uploaded";
}

}  // namespace
}  // namespace tuff_test
