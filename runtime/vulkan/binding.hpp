// Descriptors or device addresses: which is faster is a property of the driver (it turned round between
// two versions of Mesa), so it is measured once for each driver build and kept on disk.
#pragma once

#include <memory>

#include "runtime/vulkan/kernel_cache.hpp"
#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// True for addresses. TUFF_BINDING=descriptors|addresses decides instead, where the device can do both.
bool choose_binding(StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool, const Device& device,
                    KernelCache& kernels);

}  // namespace tuff
