// A context in whose device table a test replaces functions by ones that fail.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "capi/objects.hpp"
#include "runtime/vulkan/vulkan_backend.hpp"
#include "support/tensor.hpp"

namespace tuff_test {

inline std::atomic<int> calls{0};  // of the replaced functions

// Waiting for a device that never finishes takes five minutes. A call that takes less than this did not wait; a busy
// machine may delay a thread by some seconds.
inline constexpr std::chrono::seconds kNoWait{60};

// A device that does not finish in time.
inline VKAPI_ATTR VkResult VKAPI_CALL late(VkDevice, const VkSemaphoreWaitInfo*, uint64_t) {
  ++calls;
  return VK_TIMEOUT;
}
inline VKAPI_ATTR VkResult VKAPI_CALL none_finished(VkDevice, VkSemaphore, uint64_t* value) {
  *value = 0;
  return VK_SUCCESS;
}

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    calls = 0;
    own_ = std::make_unique<OwnContext>("vulkan");
    vk_ = &table(*own_);
    whole_ = *vk_;
  }
  void TearDown() override {
    if (vk_ != nullptr) *vk_ = whole_;
  }
  tuff_context context() const { return *own_; }

  static tuff::Device& device(tuff_context handle) {
    const auto context = tuff::capi::acquire_context(handle);
    return dynamic_cast<tuff::VulkanBackend&>(context->backend()).device();
  }
  static VolkDeviceTable& table(tuff_context handle) { return device(handle).vk; }
  void expect_works(tuff_context handle) {
    const Tensor x(handle, std::vector<float>(100, 2.0f)), y(handle, 100);
    ASSERT_OK(tuff_unary(handle, TUFF_F32, TUFF_UNARY_NEG, x, y, 100));
    expect_same_bits(y.read(), std::vector<float>(100, -2.0f));
  }
  void expect_everything_says_lost(tuff_buffer buffer) {
    const auto start = std::chrono::steady_clock::now();
    float value = 0;
    tuff_buffer made = 0;
    const tuff_status kLost = TUFF_ERROR_DEVICE_LOST;
    EXPECT_EQ(tuff_synchronize(context()), kLost);
    EXPECT_EQ(tuff_unary(context(), TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, 4), kLost);
    EXPECT_NE(last_error().find("tuff_unary: "), std::string::npos);
    EXPECT_EQ(tuff_copy_htod(context(), buffer, 0, &value, 4), kLost);
    EXPECT_EQ(tuff_copy_dtoh(context(), &value, buffer, 0, 4), kLost);
    EXPECT_EQ(tuff_fill(context(), buffer, 0, 4, &value, 4), kLost);
    EXPECT_EQ(tuff_alloc(context(), 4, &made), kLost);
    EXPECT_EQ(tuff_synchronize(context()), kLost) << "once lost, always lost";
    EXPECT_LT(std::chrono::steady_clock::now() - start, kNoWait);
  }

  std::unique_ptr<OwnContext> own_;
  VolkDeviceTable* vk_ = nullptr;
  VolkDeviceTable whole_{};
};

}  // namespace tuff_test
