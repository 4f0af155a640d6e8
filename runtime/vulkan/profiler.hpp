// What surrounds a recorded command when it is observed: timestamps while the context is profiled, and labels for tools
// such as RenderDoc and Nsight.
//
// Each command buffer of the stream's ring has its own queries, two per command. They are read when the ring reuses the
// command buffer, or when the profile is requested; nothing waits for them. The caller holds the context's lock.
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
  // Per command buffer. The recorder submits after at most this many; any further commands would count as dropped.
  static constexpr uint32_t kMaxCommands = 128;

  Profiler(std::shared_ptr<Device> device, uint32_t ring);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // Times what is recorded from now on, as the stream with this name and index. No command buffer may be open. Throws
  // UNSUPPORTED.
  void begin(Profile& profile, const std::string& stream, uint32_t index);
  // Call it after the last spans have been collected.
  void end() noexcept { profile_ = nullptr; }

  // The call that the following commands of a graph were captured for; null: they belong to the current call.
  void replay(const CallText* text) noexcept { replayed_ = text; }

  // The command buffer of this slot is being reused: its previous work has finished.
  void opened(VkCommandBuffer commands, uint32_t slot, bool computes);
  void submitted(uint32_t slot, uint64_t submission);
  template <typename Record>
  void around(VkCommandBuffer commands, uint32_t slot, const Command& command, const Record& record) {
    const bool timed = before(commands, slot, command);
    record();
    after(commands, slot, timed);
  }
  // The host has computed a call of the stream, between these times.
  void computed(const Command& command, HostTime begin, HostTime end);
  // Passes the spans of the submissions up to `completed` to the profile and reads the clocks.
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
  uint32_t stream_ = 0, copies_ = 0;  // text numbers: the stream, and its copy queue
  uint32_t index_ = 0;                // of the stream
  const CallText* replayed_ = nullptr;
  uint64_t mask_ = 0;  // of the valid bits of a timestamp
  uint64_t last_ticks_ = 0;
  DeviceClock clock_;
  // For estimating the clocks.
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkFence fence_ = VK_NULL_HANDLE;
  bool estimating_ = false;  // submitted and not finished
  VkQueryPool query_ = VK_NULL_HANDLE;
  bool estimate_recorded_ = false;  // all of that is there, and commands_ is whole
};

}  // namespace tuff
