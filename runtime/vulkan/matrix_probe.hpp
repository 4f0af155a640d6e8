// Where matrices of a subgroup keep their elements, which no query tells: measured once on each device.
#pragma once

#include <memory>

#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// What Recorder::matrix_quads() promises. From the disk cache where it was measured before.
bool measure_matrix_quads(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, KernelCache& kernels);

}  // namespace tuff
