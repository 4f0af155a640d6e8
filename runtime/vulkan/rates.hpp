// Measures the rates of the device that profiles refer to.
#pragma once

#include <memory>

#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// Uses the device's timestamps and takes well under a second. Rates are 0 if there is no memory to measure with.
DeviceRates measure_rates(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool);

}  // namespace tuff
