// Writes bound commands into a command buffer, with a barrier only where what they touch really conflicts.
//
// What was touched stays known from one command buffer to the next: they follow one another on one queue.
#pragma once

#include <memory>

#include "runtime/vulkan/bound_command.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/hazard_tracker.hpp"

namespace tuff {

class CommandWriter {
 public:
  // unused: what a descriptor has that the shader never touches.
  CommandWriter(std::shared_ptr<Device> device, Bound unused) : device_(std::move(device)), unused_(unused) {}

  // What follows goes into this command buffer, whose queue computes or only copies.
  void begin(VkCommandBuffer commands, bool computes) noexcept {
    commands_ = commands;
    computes_ = computes;
    pipeline_ = VK_NULL_HANDLE;
  }
  VkCommandBuffer commands() const noexcept { return commands_; }

  // Everything before has finished and is visible: a semaphore was waited for.
  void forget() noexcept;
  // Others have written what was waited for.
  void assume_writes() noexcept { hidden_from_host_ = true; }
  // Anything may have been touched since.
  void assume_everything() noexcept;
  // A barrier against all that came before, whatever it was.
  void wait_for_all();
  // All that was written so far can be read by the host when the command buffer has finished.
  void show_to_host();
  bool hidden_from_host() const noexcept { return hidden_from_host_; }

  // Each is in two steps, so that what stands around a command, if somebody looks on, does not include its barrier.
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
  VkPipelineStageFlags all_stages() const noexcept {
    return computes_ ? VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT
                     : VK_PIPELINE_STAGE_TRANSFER_BIT;
  }

  std::shared_ptr<Device> device_;
  const Bound unused_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  bool computes_ = true;
  VkPipeline pipeline_ = VK_NULL_HANDLE;  // bound
  HazardTracker hazards_;
  VkPipelineStageFlags pending_stages_ = 0;  // of the work since the last barrier
  bool transfers_uncovered_ = false;         // the last barrier was between kernels alone
  bool hidden_from_host_ = false;            // something was written since the last barrier for the host
  uint64_t barriers_ = 0;
};

}  // namespace tuff
