// Writes bound commands into a command buffer, with barriers only where their accesses conflict.
//
// Tracked accesses carry over from one command buffer to the next, because they run in order on one queue.
#pragma once

#include <memory>

#include "runtime/vulkan/bound_command.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/hazard_tracker.hpp"

namespace tuff {

class CommandWriter {
 public:
  // unused: bound to descriptors that the shader never accesses.
  CommandWriter(std::shared_ptr<Device> device, Bound unused) : device_(std::move(device)), unused_(unused) {}

  // The following commands go into this command buffer. `computes` is false for a queue that only copies.
  void begin(VkCommandBuffer commands, bool computes) noexcept {
    commands_ = commands;
    computes_ = computes;
    pipeline_ = VK_NULL_HANDLE;
  }
  VkCommandBuffer commands() const noexcept { return commands_; }

  // All earlier commands have finished and their writes are visible, because a semaphore was waited for.
  void forget() noexcept;
  // Other streams' writes, which were waited for, may still be hidden from the host.
  void assume_writes() noexcept { hidden_from_host_ = true; }
  // Any memory may have been accessed since.
  void assume_everything() noexcept;
  // A barrier against all earlier commands.
  void wait_for_all();
  // Makes all writes so far visible to the host once the command buffer has finished.
  void show_to_host();
  bool hidden_from_host() const noexcept { return hidden_from_host_; }

  // Each command takes two steps, so that labels and timestamps around a command exclude its barrier.
  void order(const BoundDispatch& dispatch);
  void order(const BoundCopy& copy);
  void order(const BoundFill& fill);
  void write(const BoundDispatch& dispatch);
  void write(const BoundCopy& copy);
  void write(const BoundFill& fill);

  uint64_t barriers() const noexcept { return barriers_; }

 private:
  void order(const HazardTracker::Range* ranges, uint32_t count, VkPipelineStageFlags stage, bool everything = false);
  void barrier(VkPipelineStageFlags stage);
  void push_descriptors(const BoundDispatch& dispatch, uint64_t* bases);
  void launch(const BoundDispatch& dispatch);
  VkPipelineStageFlags all_stages() const noexcept {
    return computes_ ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT
                     : VK_PIPELINE_STAGE_TRANSFER_BIT;
  }

  std::shared_ptr<Device> device_;
  const Bound unused_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  bool computes_ = true;
  VkPipeline pipeline_ = VK_NULL_HANDLE;  // the one bound now
  HazardTracker hazards_;
  VkPipelineStageFlags pending_stages_ = 0;  // of the work since the last barrier
  bool transfers_uncovered_ = false;         // the last barrier covered only compute shaders
  bool hidden_from_host_ = false;            // writes since the last barrier that made them visible to the host
  uint64_t barriers_ = 0;
};

}  // namespace tuff
