#include "runtime/vulkan/command_ring.hpp"

namespace tuff {

CommandRing::~CommandRing() {
  for (const Slot& slot : slots_) device_->vk.vkDestroyCommandPool(device_->handle, slot.pool, nullptr);
}

void CommandRing::create() {
  slots_.reserve(size_);
  while (slots_.size() < size_) {
    const Device::Commands made = device_->make_commands(family_, VK_COMMAND_POOL_CREATE_TRANSIENT_BIT);
    slots_.push_back({made.pool, made.buffer, 0});
  }
}

void CommandRing::begin() {
  const VolkDeviceTable& vk = device_->vk;
  const Slot& slot = slots_[position_];
  device_->check(vk.vkResetCommandPool(device_->handle, slot.pool, 0), "vkResetCommandPool");
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  device_->check(vk.vkBeginCommandBuffer(slot.commands, &begin), "vkBeginCommandBuffer");
}

}  // namespace tuff
