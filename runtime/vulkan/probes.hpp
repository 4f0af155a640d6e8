// Runs probes (planning/probe.hpp) on a stream and caches their answers on disk.
#pragma once

#include <memory>

#include "planning/probe.hpp"
#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// Returns the answer on disk if there is one; otherwise runs the probe and stores its answer.
bool run_probe(const Probe& probe, StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool,
               KernelCache& kernels);

}  // namespace tuff
