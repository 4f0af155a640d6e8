// What stands around a recorded command where someone looks on: timestamps, while the context is profiled, and labels
// for tools such as RenderDoc and Nsight.
//
// A command buffer of the stream's ring has queries of its own, two for each command. They are read when the ring comes
// round to it, or when the profile is asked for; nothing waits for them. The caller holds the context's lock.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "planning/operation.hpp"
#include "runtime/profile.hpp"
#include "runtime/vulkan/device.hpp"

namespace tuff {

struct Command {
  DeviceSpan::Kind kind;
  const char* label;
  double bytes = 0, operations = 0;
  const char *kernel = "", *variant = "";
  std::array<uint32_t, 3> groups{};
};

class Profiler {
 public:
  // Of one command buffer. The recorder submits after no more; if it did not, the rest would count as dropped.
  static constexpr uint32_t kMaxCommands = 128;

  Profiler(std::shared_ptr<Device> device, uint32_t ring);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Times what is recorded from now on, under that name and the stream's number; no command buffer is open. Errors:
  // UNSUPPORTED.
  void begin(Profile& profile, const std::string& stream, uint32_t index);
  // What is left of the profile's spans has been read.
  void end() noexcept { profile_ = nullptr; }

  // What the commands from here on were captured for; null: calls themselves.
  void replay(const CallText* text) noexcept { replayed_ = text; }

  // The command buffer of this slot begins anew: what was in it has finished.
  void opened(VkCommandBuffer commands, uint32_t slot, bool computes);
  void submitted(uint32_t slot, uint64_t submission);
  template <typename Record>
  void around(VkCommandBuffer commands, uint32_t slot, const Command& command, const Record& record) {
    const bool timed = before(commands, slot, command);
    record();
    after(commands, slot, timed);
  }
  // Hands the spans of the submissions up to this one to the profile, and looks at the clocks.
  void collect(uint64_t completed);

 private:
  struct Slot {
    VkQueryPool queries = VK_NULL_HANDLE;
    uint64_t submission = 0;
    bool computes = true;
    std::vector<DeviceSpan> spans;
  };

  bool before(VkCommandBuffer commands, uint32_t slot, const Command& command);
  DeviceSpan describe(const Command& command, bool computes) const;
  void after(VkCommandBuffer commands, uint32_t slot, bool timed);
  void read(Slot& slot);
  VkQueryPool make_queries(uint32_t count);
  bool calibrated() const { return device_->vk.vkGetCalibratedTimestampsEXT != nullptr; }
  uint64_t unwrapped(uint64_t ticks) noexcept;
  DeviceClock::Point read_clocks(HostTime& uncertainty);
  DeviceClock::Point estimate_clocks(HostTime& uncertainty);
  void wait_for_estimate();

  std::shared_ptr<Device> device_;
  std::vector<Slot> slots_;
  Profile* profile_ = nullptr;
  uint32_t stream_ = 0, copies_ = 0;  // texts: the stream, and its queue for copies
  uint32_t index_ = 0;                // the stream's
  const CallText* replayed_ = nullptr;
  uint64_t mask_ = 0;  // of the bits that a timestamp has
  uint64_t last_ticks_ = 0;
  DeviceClock clock_;
  // For estimates.
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  bool estimating_ = false;  // the device has it
  VkQueryPool query_ = VK_NULL_HANDLE;
  bool estimate_recorded_ = false;  // all of that is there, and commands_ is whole
};

}  // namespace tuff
