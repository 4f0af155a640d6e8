#include "runtime/vulkan/profiler.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tuff {
namespace {

// A clock is read several times; the reading with the narrowest interval of host times is used.
constexpr int kClockReads = 5;
constexpr int kEstimateSlices = 40;
constexpr uint64_t kEstimateSliceNanoseconds = 250'000'000;

}  // namespace

Profiler::Profiler(std::shared_ptr<Device> device, uint32_t ring) : device_(std::move(device)), slots_(ring) {
  const uint32_t bits = device_->physical.timestamp_bits;
  mask_ = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
}

Profiler::~Profiler() {
  const VolkDeviceTable& vk = device_->vk;
  for (const Slot& slot : slots_) vk.vkDestroyQueryPool(device_->handle, slot.queries, nullptr);
  vk.vkDestroyQueryPool(device_->handle, query_, nullptr);
  vk.vkDestroyFence(device_->handle, fence_, nullptr);
  vk.vkDestroyCommandPool(device_->handle, pool_, nullptr);
}

VkQueryPool Profiler::make_queries(uint32_t count) {
  VkQueryPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO;
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = count;
  VkQueryPool queries = VK_NULL_HANDLE;
  device_->check_made(device_->vk.vkCreateQueryPool(device_->handle, &info, nullptr, &queries), queries,
                      "vkCreateQueryPool");
  return queries;
}

void Profiler::begin(Profile& profile, const std::string& stream, uint32_t index) {
  if (mask_ == 0) {
    fail(TUFF_ERROR_UNSUPPORTED, "the queue of {} has no timestamps: its commands cannot be timed",
         device_->physical.properties.deviceName);
  }
  stream_ = profile.text(stream);
  copies_ = profile.text(stream + ", copies");
  index_ = index;
  if (profile_ == &profile) return;  // spans under the stream's previous name have still to be read
  for (Slot& slot : slots_) {
    if (slot.queries == VK_NULL_HANDLE) slot.queries = make_queries(2 * kMaxCommands);
    slot.spans.clear();
    slot.spans.reserve(kMaxCommands);
  }
  clock_ = {};
  clock_.period = static_cast<double>(device_->physical.properties.limits.timestampPeriod);
  clock_.calibrated = calibrated();
  last_ticks_ = 0;
  clock_.first = clock_.last = read_clocks(clock_.uncertainty);
  profile.set_clock(clock_);
  profile_ = &profile;
}

// Extends ticks beyond the counter's wrap-around. Readings must be passed in about their order.
uint64_t Profiler::unwrapped(uint64_t ticks) noexcept {
  const uint64_t ahead = (ticks - last_ticks_) & mask_;
  // A clock may be read before the timestamps of earlier commands, which then appear as a step into the upper half.
  const uint64_t behind = mask_ - ahead + 1;
  if (last_ticks_ != 0 && ahead > mask_ / 2 && behind <= last_ticks_) return last_ticks_ - behind;
  return last_ticks_ += ahead;
}

void Profiler::opened(VkCommandBuffer commands, uint32_t index, bool computes) {
  if (profile_ == nullptr) return;
  Slot& slot = slots_[index];
  read(slot);
  slot.submission = 0;
  slot.computes = computes;
  if (computes) {
    device_->vk.vkCmdResetQueryPool(commands, slot.queries, 0, 2 * kMaxCommands);
  } else {
    // a transfer queue cannot reset queries
    device_->vk.vkResetQueryPool(device_->handle, slot.queries, 0, 2 * kMaxCommands);
  }
}

void Profiler::submitted(uint32_t index, uint64_t submission) {
  Slot& slot = slots_[index];
  slot.submission = submission;
  for (DeviceSpan& span : slot.spans) span.submission = submission;
}

// Everything that may fail happens before anything is recorded.
bool Profiler::before(VkCommandBuffer commands, uint32_t index, const Command& command) {
  Slot& slot = slots_[index];
  const bool timed = profile_ != nullptr && slot.spans.size() < kMaxCommands;
  if (timed) {
    slot.spans.push_back(describe(command, slot.computes));
  } else if (profile_ != nullptr) {
    profile_->add_dropped(1);
  }
  if (device_->labels) {
    const VkDebugUtilsLabelEXT label{VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, nullptr, command.label, {0, 0, 0, 0}};
    device_->begin_label(commands, &label);
  }
  if (timed) {
    // At the bottom of the pipe: when all earlier work has finished. A kernel that overlaps with the previous one is
    // charged only the time after that, so that times add up to the device's total work.
    const auto query = static_cast<uint32_t>(2 * slot.spans.size() - 2);
    device_->vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, slot.queries, query);
  }
  return timed;
}

DeviceSpan Profiler::describe(const Command& command, bool computes) const {
  DeviceSpan span;
  span.stream = computes ? stream_ : copies_;
  span.track = 2 * index_ + (computes ? 0 : 1);
  span.kind = command.kind;
  span.label = profile_->text(command.label);
  span.kernel = profile_->text(command.kernel);
  span.variant = profile_->text(command.variant);
  span.groups = command.groups;
  span.bytes = command.bytes;
  span.operations = command.operations;
  span.operation = span.label;
  if (replayed_ != nullptr) {
    span.shape = profile_->text(replayed_->shape);
    span.dtype = replayed_->dtype;
  }
  // Another context's call, for example inside a callback, does not belong to this profile.
  if (ProfiledCall* call = ProfiledCall::current(); call != nullptr && &call->profile() == profile_) {
    span.operation = call->span().name;
    span.call = call->span().call;
    span.thread = call->span().thread;
    span.plan = call->take_plan();
  }
  return span;
}

void Profiler::after(VkCommandBuffer commands, uint32_t index, bool timed) {
  Slot& slot = slots_[index];
  if (timed) {
    const auto query = static_cast<uint32_t>(2 * slot.spans.size() - 1);
    device_->vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, slot.queries, query);
  }
  if (device_->labels) device_->end_label(commands);
}

void Profiler::computed(const Command& command, HostTime begin, HostTime end) {
  const auto ticks_at = [this](HostTime time) {
    const double since = static_cast<double>(time - clock_.first.host) / clock_.period;
    return clock_.first.ticks + static_cast<uint64_t>(std::llround(std::max(since, 0.0)));
  };
  DeviceSpan span = describe(command, true);
  span.begin = ticks_at(begin);
  span.end = ticks_at(end);
  profile_->add(span);
}

void Profiler::read(Slot& slot) {
  if (slot.spans.empty()) return;
  const ProfiledStep step("read timestamps");  // lavapipe waits here for all submitted work
  std::array<uint64_t, 2 * kMaxCommands> ticks;
  const auto count = static_cast<uint32_t>(2 * slot.spans.size());
  const VkResult result =
      device_->vk.vkGetQueryPoolResults(device_->handle, slot.queries, 0, count, count * sizeof(uint64_t), ticks.data(),
                                        sizeof(uint64_t), VK_QUERY_RESULT_64_BIT);
  device_->check(result, "vkGetQueryPoolResults");
  if (result == VK_SUCCESS) {
    for (size_t i = 0; i < slot.spans.size(); ++i) {
      DeviceSpan& span = slot.spans[i];
      span.begin = unwrapped(ticks[2 * i] & mask_);
      span.end = std::max(span.begin, unwrapped(ticks[2 * i + 1] & mask_));
      profile_->add(span);
    }
  } else {
    profile_->add_dropped(slot.spans.size());  // VK_NOT_READY for finished work: a driver bug
  }
  slot.spans.clear();
}

void Profiler::collect(uint64_t completed) {
  if (profile_ == nullptr) return;
  std::vector<Slot*> finished;
  for (Slot& slot : slots_) {
    if (slot.submission != 0 && slot.submission <= completed) finished.push_back(&slot);
  }
  std::sort(finished.begin(), finished.end(),
            [](const Slot* a, const Slot* b) { return a->submission < b->submission; });
  for (Slot* slot : finished) read(*slot);
  clock_.last = read_clocks(clock_.uncertainty);
  profile_->set_clock(clock_);
}

DeviceClock::Point Profiler::read_clocks(HostTime& uncertainty) {
  if (!calibrated()) return estimate_clocks(uncertainty);
  // Reads only the device's clock, between two readings of the host's: how the driver's other time domains relate to
  // std::chrono::steady_clock depends on the system.
  VkCalibratedTimestampInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
  info.timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  DeviceClock::Point best;
  HostTime width = 0;
  for (int i = 0; i < kClockReads; ++i) {
    uint64_t ticks = 0, deviation = 0;
    const HostTime begin = host_now();
    device_->check(device_->vk.vkGetCalibratedTimestampsEXT(device_->handle, 1, &info, &ticks, &deviation),
                   "vkGetCalibratedTimestampsEXT");
    const HostTime end = host_now();
    if (i > 0 && end - begin >= width) continue;
    width = end - begin;
    best = {ticks & mask_, begin + width / 2};
  }
  uncertainty = std::max(uncertainty, width / 2);
  best.ticks = unwrapped(best.ticks);
  return best;
}

void Profiler::wait_for_estimate() {
  const VolkDeviceTable& vk = device_->vk;
  VkResult waited = VK_TIMEOUT;
  for (int slice = 0; slice < kEstimateSlices && estimating_ && waited == VK_TIMEOUT; ++slice) {
    device_->require_alive();
    waited = vk.vkWaitForFences(device_->handle, 1, &fence_, VK_TRUE, kEstimateSliceNanoseconds);
  }
  if (!estimating_) return;
  device_->check(waited, "vkWaitForFences");
  if (waited == VK_TIMEOUT) fail(TUFF_ERROR_TIMEOUT, "the device did not finish a timestamp");
  device_->check(vk.vkResetFences(device_->handle, 1, &fence_), "vkResetFences");
  estimating_ = false;
}

// Submits only a timestamp, between two readings of the host's clock.
DeviceClock::Point Profiler::estimate_clocks(HostTime& uncertainty) {
  const VolkDeviceTable& vk = device_->vk;
  if (!estimate_recorded_) {
    vk.vkDestroyQueryPool(device_->handle, std::exchange(query_, VK_NULL_HANDLE), nullptr);
    vk.vkDestroyCommandPool(device_->handle, std::exchange(pool_, VK_NULL_HANDLE), nullptr);
    vk.vkDestroyFence(device_->handle, std::exchange(fence_, VK_NULL_HANDLE), nullptr);
    const Device::Commands made = device_->make_commands(device_->physical.queue_family, 0);
    pool_ = made.pool;
    commands_ = made.buffer;
    VkFenceCreateInfo fence{};
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    device_->check_made(vk.vkCreateFence(device_->handle, &fence, nullptr, &fence_), fence_, "vkCreateFence");
    VkCommandBufferBeginInfo begin{};
    begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    device_->check(vk.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
    query_ = make_queries(1);
    vk.vkCmdResetQueryPool(commands_, query_, 0, 1);
    vk.vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, query_, 0);
    device_->check(vk.vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
    estimate_recorded_ = true;
  }
  wait_for_estimate();  // the previous one, if it timed out
  DeviceClock::Point best;
  HostTime width = 0;
  for (int i = 0; i < kClockReads; ++i) {
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands_;
    const HostTime begin = host_now();
    device_->check(vk.vkQueueSubmit(device_->queues.front(), 1, &info, fence_), "vkQueueSubmit");
    estimating_ = true;
    wait_for_estimate();
    const HostTime end = host_now();
    uint64_t ticks = 0;
    device_->check(vk.vkGetQueryPoolResults(device_->handle, query_, 0, 1, sizeof ticks, &ticks, sizeof ticks,
                                            VK_QUERY_RESULT_64_BIT),
                   "vkGetQueryPoolResults");
    if (i > 0 && end - begin >= width) continue;
    width = end - begin;
    best = {ticks & mask_, begin + width / 2};
  }
  uncertainty = std::max(uncertainty, width / 2);
  best.ticks = unwrapped(best.ticks);
  return best;
}

}  // namespace tuff
