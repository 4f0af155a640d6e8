// What the planners of streaming kernels (reductions, softmax) ask of a device, with defaults filled in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/vulkan/recorder.hpp"

namespace tuff {

struct StreamDevice {
  bool cpu;            // shapes for a processor
  uint32_t subgroup;   // invocations of a subgroup, at least 1
  uint32_t workgroup;  // invocations of a full group
  uint64_t cores;
  uint64_t piece;  // elements that one dispatch may span: a descriptor's range and 32-bit indices
};

// `forced` is "cpu" or "gpu" where a variable of the environment decides the kind of shapes.
inline StreamDevice stream_device(const DeviceTraits& traits, const std::optional<std::string>& forced,
                                  uint64_t element_bytes) {
  StreamDevice device{};
  device.cpu = forced ? *forced == "cpu" : traits.cpu;
  device.subgroup = std::max(traits.subgroup_size, 1u);
  device.workgroup = device.cpu ? device.subgroup : std::max(std::min(256u, traits.max_invocations), device.subgroup);
  device.cores = traits.cores ? traits.cores : 16;
  const uint64_t range = std::max<uint64_t>(traits.max_range, 1u << 16) - 1024;
  device.piece = std::min<uint64_t>(range / element_bytes, 1u << 30) / 64 * 64;
  return device;
}

}  // namespace tuff
