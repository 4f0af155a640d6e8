// What a stream's next submission waits for: other streams' timelines, each up to a value.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/vulkan/timelines.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {

class SubmissionWaits {
 public:
  bool empty() const noexcept { return semaphores_.empty() && ahead_.empty(); }

  void add(VkSemaphore timeline, uint64_t value) {
    for (size_t i = 0; i < semaphores_.size(); ++i) {
      if (semaphores_[i] != timeline) continue;
      values_[i] = std::max(values_[i], value);
      return;
    }
    semaphores_.reserve(semaphores_.size() + 1);
    values_.reserve(semaphores_.size() + 1);
    stages_.reserve(semaphores_.size() + 1);
    semaphores_.push_back(timeline);
    values_.push_back(value);
    stages_.push_back(VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  }
  // A submission that precedes the next one on the same queue: a barrier is enough, unless the stream changes its
  // queue.
  void add_ahead(Use use) { ahead_.push_back(use); }
  // Calls add() through `wait` for each of these, because the stream changes its queue.
  template <typename Wait>
  void queue_changes(const Wait& wait) {
    for (const Use use : ahead_) wait(use);
    ahead_.clear();
  }

  // The structures point into this object until it changes.
  void fill(VkSubmitInfo& info, VkTimelineSemaphoreSubmitInfo& timeline) const noexcept {
    timeline.waitSemaphoreValueCount = static_cast<uint32_t>(values_.size());
    timeline.pWaitSemaphoreValues = values_.data();
    info.waitSemaphoreCount = static_cast<uint32_t>(semaphores_.size());
    info.pWaitSemaphores = semaphores_.data();
    info.pWaitDstStageMask = stages_.data();
  }
  // Once they have been submitted.
  void clear() noexcept {
    semaphores_.clear();
    values_.clear();
    stages_.clear();
    ahead_.clear();
  }

 private:
  std::vector<VkSemaphore> semaphores_;
  std::vector<uint64_t> values_;
  std::vector<VkPipelineStageFlags> stages_;
  std::vector<Use> ahead_;
};

}  // namespace tuff
