// Events: which submission of which stream, and a timestamp.
#pragma once

#include <memory>
#include <vector>

#include "runtime/compute_stream.hpp"
#include "runtime/vulkan/streams.hpp"

namespace tuff {

class VulkanBackend;

// Timestamps of events, in pools that grow. The caller holds the context's lock.
class EventQueries {
 public:
  struct Query {
    VkQueryPool pool = VK_NULL_HANDLE;
    uint32_t index = 0;
  };

  explicit EventQueries(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~EventQueries();
  EventQueries(const EventQueries&) = delete;
  EventQueries& operator=(const EventQueries&) = delete;

  Query take(const Timelines& timelines);
  // Somebody else's, once the last use is done.
  void give(Query query, Use last_use) { free_.push_back({query, last_use}); }  // take() has made room

 private:
  static constexpr uint32_t kQueries = 64;
  struct Free {
    Query query;
    Use last_use;
  };

  std::shared_ptr<Device> device_;
  std::vector<VkQueryPool> pools_;
  std::vector<Free> free_;
};

class VulkanEvent final : public ComputeEvent {
 public:
  VulkanEvent(VulkanBackend& backend, bool timing);
  ~VulkanEvent() override;

  bool query() override;
  void wait() override;
  double elapsed(ComputeEvent& end) override;

  // Under the context's lock.
  void record(StreamRecorder& stream);
  Use point() const { return point_; }

 private:
  uint64_t ticks() const;

  VulkanBackend& backend_;
  EventQueries::Query query_;  // none: not timed
  Use point_;                  // submission 0: never recorded
  bool recorded_ = false;
};

}  // namespace tuff
