// Events: a submission of a stream, and optionally a timestamp.
#pragma once

#include <memory>
#include <vector>

#include "runtime/compute_stream.hpp"
#include "runtime/vulkan/streams.hpp"

namespace tuff {

class VulkanBackend;

// Timestamp queries for events, in a growing set of pools. The caller holds the context's lock.
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
  // Makes the query available again once its last use has finished.
  // cannot throw: take() reserves the room
  void give(Query query, Use last_use) { free_.push_back({query, last_use}); }

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
  EventQueries::Query query_;  // none if not timed
  Use point_;                  // submission 0: never recorded
  bool recorded_ = false;
};

}  // namespace tuff
