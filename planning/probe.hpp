// Facts of a device that only a trial shows, such as which lane of a subgroup holds which element of a cooperative
// matrix. Each is tried when a planner first asks for it; the answer is kept on disk for the device and driver.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/device_traits.hpp"

namespace tuff {

class Recorder;

// What a trial runs on.
class ProbeRun {
 public:
  virtual ~ProbeRun() = default;
  virtual Recorder& recorder() = 0;
  virtual Buffer readable(uint64_t bytes) = 0;  // memory that kernels write and the host reads after finish()
  virtual void finish() = 0;                    // carries out what was recorded, and waits for it
};

struct Probe {
  const char* name;      // of its entry in the disk cache
  uint64_t version;      // changes with what is tried, so that no older answer is taken for it
  const char* log_true;  // what the log says of either answer
  const char* log_false;
  bool (*possible)(const DeviceTraits& traits);  // false: the answer is no, and nothing is tried
  bool (*run)(ProbeRun& run);
};

}  // namespace tuff
