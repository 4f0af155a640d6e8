#include "runtime/vulkan/event.hpp"

#include <algorithm>

#include "runtime/vulkan/vulkan_backend.hpp"

namespace tuff {

EventQueries::~EventQueries() {
  for (const VkQueryPool pool : pools_) device_->vk.vkDestroyQueryPool(device_->handle, pool, nullptr);
}

EventQueries::Query EventQueries::take(const Timelines& timelines) {
  auto found =
      std::find_if(free_.begin(), free_.end(), [&](const Free& free) { return timelines.done(free.last_use); });
  if (found == free_.end()) {
    pools_.reserve(pools_.size() + 1);
    free_.reserve((pools_.size() + 1) * kQueries);
    VkQueryPoolCreateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = kQueries;
    VkQueryPool pool = VK_NULL_HANDLE;
    device_->check_made(device_->vk.vkCreateQueryPool(device_->handle, &info, nullptr, &pool), pool,
                        "vkCreateQueryPool");
    pools_.push_back(pool);
    for (uint32_t i = 0; i < kQueries; ++i) free_.push_back({{pool, i}, {}});
    found = free_.end() - kQueries;
  }
  const Query query = found->query;
  free_.erase(found);
  return query;
}

VulkanEvent::VulkanEvent(VulkanBackend& backend, bool timing) : backend_(backend) {
  if (!timing) return;
  const PhysicalDevice& physical = backend.device().physical;
  if (physical.timestamp_bits == 0) {
    fail(TUFF_ERROR_UNSUPPORTED, "the queue of {} has no timestamps: events need TUFF_EVENT_NO_TIMING",
         physical.properties.deviceName);
  }
  const std::lock_guard lock(backend.mutex());
  query_ = backend.event_queries().take(backend.streams().timelines());
}

VulkanEvent::~VulkanEvent() {
  if (query_.pool == VK_NULL_HANDLE) return;
  const std::lock_guard lock(backend_.mutex());
  backend_.event_queries().give(query_, point_);
}

void VulkanEvent::record(StreamRecorder& stream) {
  if (query_.pool != VK_NULL_HANDLE) {
    stream.wait_for(point_);  // an earlier write of its timestamp must finish first
    stream.write_timestamp(query_.pool, query_.index);
  }
  point_ = stream.last();
  recorded_ = true;
}

bool VulkanEvent::query() {
  const std::lock_guard lock(backend_.mutex());
  Streams& streams = backend_.streams();
  if (streams.timelines().done(point_)) return true;
  backend_.device().require_alive();
  StreamRecorder& stream = streams.at(point_.stream);
  // Submit the work, otherwise a caller that polls would wait for ever.
  if (point_.submission > stream.submitted()) stream.submit(false);
  return stream.poll() >= point_.submission;
}

void VulkanEvent::wait() {
  std::unique_lock lock(backend_.mutex());
  backend_.device().require_alive();
  const Use point = point_;
  Streams& streams = backend_.streams();
  if (streams.timelines().done(point)) return;
  StreamRecorder& stream = streams.at(point.stream);
  if (point.submission > stream.submitted()) stream.submit(false);
  lock.unlock();
  stream.wait(point.submission);
}

uint64_t VulkanEvent::ticks() const {
  Device& device = backend_.device();
  uint64_t ticks = 0;
  const VkResult result = device.vk.vkGetQueryPoolResults(device.handle, query_.pool, query_.index, 1, sizeof ticks,
                                                          &ticks, sizeof ticks, VK_QUERY_RESULT_64_BIT);
  device.check(result, "vkGetQueryPoolResults");
  if (result == VK_NOT_READY) fail(TUFF_ERROR_INTERNAL, "the event is complete but has no timestamp");
  return ticks;
}

double VulkanEvent::elapsed(ComputeEvent& end) {
  auto& other = static_cast<VulkanEvent&>(end);
  const auto check = [](const VulkanEvent& event, const char* name) {
    require(event.query_.pool != VK_NULL_HANDLE, "{} was created with TUFF_EVENT_NO_TIMING", name);
    require(event.recorded_, "{} was never recorded", name);
  };
  {
    const std::lock_guard lock(backend_.mutex());
    check(*this, "start");
    check(other, "end");
  }
  wait();
  other.wait();
  const std::lock_guard lock(backend_.mutex());
  Timelines& timelines = backend_.streams().timelines();
  require(timelines.done(point_) && timelines.done(other.point_), "an event was recorded again in the meantime");
  const PhysicalDevice& physical = backend_.device().physical;
  const uint32_t bits = physical.timestamp_bits;
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  // Either event may be the earlier one, and the counter may have wrapped between them.
  const uint64_t ahead = (other.ticks() - ticks()) & mask;
  const bool behind = ahead > mask / 2;
  const double span = static_cast<double>(behind ? mask - ahead + 1 : ahead);
  return (behind ? -span : span) * static_cast<double>(physical.properties.limits.timestampPeriod) * 1e-6;
}

}  // namespace tuff
