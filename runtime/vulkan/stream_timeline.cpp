#include "runtime/vulkan/stream_timeline.hpp"

#include <chrono>
#include <optional>

#include "planning/status.hpp"
#include "runtime/profile.hpp"
#include "runtime/vulkan/timeline_wait.hpp"

namespace tuff {
namespace {

constexpr std::chrono::microseconds kAwake{200};  // waiting for a GPU's result

}  // namespace

StreamTimeline::StreamTimeline(std::shared_ptr<Device> device, std::shared_ptr<MemoryPool> pool, uint32_t stream)
    : device_(std::move(device)), pool_(std::move(pool)), all_(pool_->timelines()), stream_(stream) {
  VkSemaphoreTypeCreateInfo type{};
  type.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO;
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE;
  VkSemaphoreCreateInfo semaphore{};
  semaphore.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO;
  semaphore.pNext = &type;
  device_->check_made(device_->vk.vkCreateSemaphore(device_->handle, &semaphore, nullptr, &semaphore_), semaphore_,
                      "vkCreateSemaphore");
}

StreamTimeline::~StreamTimeline() { device_->vk.vkDestroySemaphore(device_->handle, semaphore_, nullptr); }

uint64_t StreamTimeline::poll() {
  const uint64_t value = read_timeline(*device_, semaphore_);
  mark_completed(value);
  return value;
}

void StreamTimeline::advance(uint32_t operations, bool for_copies) noexcept {
  ++submitted_;
  const uint64_t bit = uint64_t{1} << (submitted_ % kRemembered);
  copied_ = for_copies ? copied_ | bit : copied_ & ~bit;
  notes_.submitted(submitted_, operations);
  all_.record(stream_, submitted_);
  add_usage(pool_->usage().counters().submissions, uint64_t{1});
}

void StreamTimeline::mark_completed(uint64_t submission) noexcept {
  const uint64_t more = all_.complete(stream_, submission);
  if (more == 0) return;
  pool_->usage().counters().completed.fetch_add(more, std::memory_order_relaxed);
  pool_->completed();
}

void StreamTimeline::wait(uint64_t submission, For what, uint64_t milliseconds) {
  device_->require_alive();
  if (submission <= completed()) return;
  const ProfiledStep step("wait for the device");
  const auto awake = what == For::result && !device_->traits.cpu ? kAwake : std::chrono::microseconds(0);
  const std::optional<uint64_t> counted = wait_timeline(*device_, semaphore_, submission, milliseconds, awake);
  if (!counted) {
    fail(TUFF_ERROR_TIMEOUT, "{} did not finish within {} ms: {}; the work continues",
         device_->physical.properties.deviceName, milliseconds, notes_.describe(poll()));
  }
  mark_completed(*counted);
}

bool StreamTimeline::at_rest(uint64_t milliseconds) noexcept {
  return timeline_at_rest(*device_, semaphore_, submitted_, milliseconds);
}

}  // namespace tuff
