// A device with fewer features and lower limits than the real one. Planners then choose as for GPUs, cut work that the
// real device would run at once, and refuse what the device lacks; the real device can run every kernel they choose.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tuff_sweep {

class LimitedDevice {
 public:
  // For a Vulkan context, which outlives this object.
  explicit LimitedDevice(uint64_t context);
  ~LimitedDevice();
  LimitedDevice(const LimitedDevice&) = delete;
  LimitedDevice& operator=(const LimitedDevice&) = delete;

  // Limits the device as this seed says. No call may be running.
  void limit(uint64_t seed);
  std::string text() const;

 private:
  struct Traits;
  std::unique_ptr<Traits> traits_;
};

}  // namespace tuff_sweep
