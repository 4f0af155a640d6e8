#include "runtime/vulkan/timeline_wait.hpp"

#include <algorithm>
#include <thread>

namespace tuff {
namespace {

constexpr uint64_t kSliceMilliseconds = 250;
constexpr uint64_t kLostMilliseconds = 1000;
constexpr int kLooksInARow = 32;  // a poll takes 0.1 us; then yield, in case other threads want the CPU

VkResult wait_slice(const Device& device, VkSemaphore timeline, uint64_t value, uint64_t milliseconds) {
  VkSemaphoreWaitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
  info.semaphoreCount = 1;
  info.pSemaphores = &timeline;
  info.pValues = &value;
  return device.vk.vkWaitSemaphores(device.handle, &info, milliseconds * 1'000'000);
}

// The counter, if it has reached `value`.
std::optional<uint64_t> look(Device& device, VkSemaphore timeline, uint64_t value) {
  const uint64_t counted = read_timeline(device, timeline);
  if (counted < value) return std::nullopt;
  device.require_alive();  // a lost device's counter is meaningless
  return counted;
}

}  // namespace

uint64_t read_timeline(Device& device, VkSemaphore timeline) {
  uint64_t counted = 0;
  device.check(device.vk.vkGetSemaphoreCounterValue(device.handle, timeline, &counted), "vkGetSemaphoreCounterValue");
  // No submission has this number: some drivers signal it to release all waits for a lost device.
  if (counted == UINT64_MAX) device.check(VK_ERROR_DEVICE_LOST, "vkGetSemaphoreCounterValue");
  return counted;
}

std::optional<uint64_t> wait_timeline(Device& device, VkSemaphore timeline, uint64_t value, uint64_t milliseconds,
                                      std::chrono::microseconds awake) {
  using std::chrono::steady_clock;
  const auto start = steady_clock::now();
  const auto asleep_from = start + awake;
  for (int looks = 1; milliseconds != 0 && steady_clock::now() < asleep_from; ++looks) {
    if (const auto counted = look(device, timeline, value)) return counted;
    if (looks % kLooksInARow == 0) std::this_thread::yield();
  }
  for (uint64_t waited = 0;;) {
    device.require_alive();
    const uint64_t slice = std::min(kSliceMilliseconds, milliseconds - waited);
    const VkResult result = wait_slice(device, timeline, value, slice);
    if (result != VK_TIMEOUT) device.check(result, "vkWaitSemaphores");
    if (const auto counted = look(device, timeline, value)) return counted;
    const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - start).count();
    waited = static_cast<uint64_t>(elapsed);
    if (waited >= milliseconds) return std::nullopt;
  }
}

bool timeline_at_rest(Device& device, VkSemaphore timeline, uint64_t value, uint64_t milliseconds) noexcept {
  if (value == 0) return true;
  try {
    return wait_timeline(device, timeline, value, milliseconds).has_value();
  } catch (...) {  // an Error, or no memory for one
    if (!device.lost()) return false;
  }
  // Another thread's call found the loss; work that it did not know of may still be running.
  const VkResult result = wait_slice(device, timeline, value, std::min(milliseconds, kLostMilliseconds));
  return result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST;
}

}  // namespace tuff
