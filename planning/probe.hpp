// Facts about a device that only a trial can establish, such as which lane of a subgroup holds which element of a
// cooperative matrix. A probe runs when a planner first asks for it; its answer is cached on disk per device and
// driver.
#pragma once

#include <cstdint>

#include "planning/buffer.hpp"
#include "planning/device_traits.hpp"

namespace tuff {

class Recorder;

// What a probe runs on.
class ProbeRun {
 public:
  virtual ~ProbeRun() = default;
  virtual Recorder& recorder() = 0;
  // Memory that the host writes before kernels are recorded, that they read and write, and the host reads after
  // finish().
  virtual Buffer readable(uint64_t bytes) = 0;
  virtual void finish() = 0;  // executes what was recorded and waits for it
};

struct Probe {
  const char* name;      // names its entry in the disk cache
  uint64_t version;      // changes with the trial, so that answers of older versions are not reused
  const char* log_true;  // the log message for each answer
  const char* log_false;
  bool (*possible)(const DeviceTraits& traits);  // if false, the answer is no and nothing is run
  bool (*run)(ProbeRun& run);
  // The trial may end the device or the process. Only one process tries at a time, and if that ends, the answer is no.
  bool risky = false;
};

}  // namespace tuff
