// The command buffers that a stream records into for one queue, used in turn.
//
// Each has a pool of its own, so that it is reset as a whole once the device is done with the submission that it was
// in. The caller holds the context's lock.
#pragma once

#include <memory>
#include <vector>

#include "runtime/vulkan/device.hpp"

namespace tuff {

class CommandRing {
 public:
  CommandRing(std::shared_ptr<Device> device, VkQueue queue, uint32_t family, bool computes, uint32_t size)
      : device_(std::move(device)), queue_(queue), family_(family), size_(size), computes_(computes) {}
  ~CommandRing();
  CommandRing(const CommandRing&) = delete;
  CommandRing& operator=(const CommandRing&) = delete;

  VkQueue queue() const noexcept { return queue_; }
  // Whether the queue runs kernels, or copies alone.
  bool computes() const noexcept { return computes_; }
  uint32_t size() const noexcept { return size_; }

  // Creates the command buffers unless they exist.
  void create();
  // The command buffer that is next, or is being recorded.
  uint32_t position() const noexcept { return position_; }
  VkCommandBuffer commands() const noexcept { return slots_[position_].commands; }
  // The submission that the command buffer was last in, and the one that the buffer `ahead` places further was in.
  uint64_t submission(uint32_t ahead = 0) const noexcept {
    const uint32_t at = position_ + ahead;
    return slots_[at < size_ ? at : at - size_].submission;
  }
  // Resets the command buffer and begins to record it. The device must be done with its submission.
  void begin();
  // The command buffer went into that submission: the next one is taken from now on.
  void submitted(uint64_t submission) noexcept {
    slots_[position_].submission = submission;
    position_ = position_ + 1 < size_ ? position_ + 1 : 0;
  }

 private:
  struct Slot {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    uint64_t submission = 0;
  };

  const std::shared_ptr<Device> device_;
  const VkQueue queue_;
  const uint32_t family_, size_;
  const bool computes_;
  std::vector<Slot> slots_;
  uint32_t position_ = 0;
};

}  // namespace tuff
