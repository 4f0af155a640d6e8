// What the device reaches, for shares of it.
#pragma once

#include <memory>

#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// By the device's own timestamps, in well under a second. 0 where there is no memory to measure in.
DeviceRates measure_rates(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool);

}  // namespace tuff
