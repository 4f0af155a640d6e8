// Runs probes (planning/probe.hpp) on a stream, and keeps their answers on disk.
#pragma once

#include <memory>

#include "planning/probe.hpp"
#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// The answer on disk, where it was tried before; else tries, and stores the answer.
bool run_probe(const Probe& probe, StreamRecorder& recorder, const std::shared_ptr<MemoryPool>& pool,
               KernelCache& kernels);

}  // namespace tuff
