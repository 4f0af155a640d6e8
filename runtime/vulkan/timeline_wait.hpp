// Waiting for a timeline semaphore. In slices: a loss of the device ends every wait within a second, whoever finds it:
// another thread, or the driver, which may report it, count to the end, or never signal again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/vulkan/device.hpp"

namespace tuff {

// What the semaphore counts. Throws DEVICE_LOST.
uint64_t read_timeline(Device& device, VkSemaphore timeline);

// Waits until it counts `value`, no longer than that, and returns what it counts then; nullopt: it was too long. Needs
// no lock. Throws DEVICE_LOST. awake: for so long, a millisecond at most, it looks again and again before it lets the
// driver put the thread to sleep, whose wake-up is late by 30 us on an H200.
std::optional<uint64_t> wait_timeline(Device& device, VkSemaphore timeline, uint64_t value, uint64_t milliseconds,
                                      std::chrono::microseconds awake = {});

// Whether the driver is done with all up to `value`, so that it may be destroyed: waits no longer than that, and for a
// lost device, of which there is nothing more to hope for, a second at most.
bool timeline_at_rest(Device& device, VkSemaphore timeline, uint64_t value, uint64_t milliseconds) noexcept;

}  // namespace tuff
