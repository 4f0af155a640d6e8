// A Vulkan device that is the processor itself, such as Mesa's, keeps its buffers in memory of the process. If
// TUFF_CPU_PLUGIN is not off, and the plug-in for processors (libtuff-cpu) is there, it computes the calls that it knows,
// several times as fast as the driver does. All else is as on any Vulkan device. A captured call that it knows is a step
// of the graph (graph.hpp), between commands of the device.
#pragma once

#include <atomic>
#include <memory>

#include "planning/operation.hpp"
#include "platform/mutex.hpp"

namespace tuff {

class PluginDevice;

class Processor {
 public:
  // device_is_one: a device that is the processor, with all of its memory mapped.
  explicit Processor(bool device_is_one);
  ~Processor();
  Processor(const Processor&) = delete;
  Processor& operator=(const Processor&) = delete;

  // Whether there is a plug-in. The first time, it is opened, and no lock of a backend may be held.
  bool available();
  // Whether it may compute calls of this operation.
  bool prepare(const Operation& operation) { return operation.info().offer != nullptr && available(); }
  // Whether it computes this call. One call at a time.
  bool takes(const Operation& operation) const;
  // Computes a call that it takes.
  void compute(const Operation& operation) const;
  // Null before the first call that it may compute.
  PluginDevice* device() const noexcept { return device_.get(); }

 private:
  const bool wanted_;
  Mutex mutex_{LockRank::processor};      // while the plug-in is opened
  std::atomic<bool> tried_{false};        // to open it
  std::unique_ptr<PluginDevice> device_;  // null: there is none
};

}  // namespace tuff
