// Waits for a timeline semaphore, in short intervals, so that the loss of the device ends every wait within a second.
// Another thread may notice the loss, or the driver, which may report it, signal the final value, or never signal
// again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/vulkan/device.hpp"

namespace tuff {

// The semaphore's counter. Throws DEVICE_LOST.
uint64_t read_timeline(Device& device, VkSemaphore timeline);

// Waits until the counter reaches `value`, for at most `milliseconds`, and returns the counter; nullopt on timeout.
// Needs no lock. Throws DEVICE_LOST. awake: time to poll before letting the driver put the thread to sleep, at most a
// millisecond; waking up takes an extra 30 us on an H200.
std::optional<uint64_t> wait_timeline(Device& device, VkSemaphore timeline, uint64_t value, uint64_t milliseconds,
                                      std::chrono::microseconds awake = {});

// Whether the driver has finished everything up to `value`, so that its objects may be destroyed. Waits for at most
// `milliseconds`, and for a lost device, which is not expected to finish, for at most a second.
bool timeline_at_rest(Device& device, VkSemaphore timeline, uint64_t value, uint64_t milliseconds) noexcept;

}  // namespace tuff
