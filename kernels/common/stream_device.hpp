// What the planners of streaming kernels (element-wise operations, reductions, softmax, normalisations) ask of a
// device, with defaults filled in; and how their kernels reach operands (kernels/elementwise/blocks.glsl).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/common/check.hpp"
#include "kernels/common/workgroup.hpp"
#include "planning/recorder.hpp"

namespace tuff {

// Powers of two: what depends on the sizes alone then changes the shape of a dispatch seldom.
inline uint64_t few_values(uint64_t wanted, uint64_t least, uint64_t most) {
  return std::bit_floor(std::clamp(wanted, least, most));
}

struct StreamDevice {
  bool cpu;            // shapes for a processor
  uint32_t subgroup;   // invocations of a subgroup, at least 1
  uint32_t workgroup;  // invocations of a full group
  uint32_t largest;    // and of one for what is long: few of them, each with much to share
  uint64_t cores;
  uint64_t piece;  // elements that one dispatch may span: a descriptor's range and 32-bit indices

  // TUFF_RUN (prelude.glsl). As a constant each number would be a pipeline that the driver compiles when it is first
  // met: on a processor, where it depends on the sizes, it comes with the call.
  int64_t fixed_run(uint64_t run) const { return cpu ? 0 : static_cast<int64_t>(run); }

  // How many of so many items an invocation takes one after another, on a processor, where a group costs more than an
  // item: as many as leave each core eight groups.
  uint64_t items_each(uint64_t items, uint64_t most, uint64_t least = 1) const {
    return few_values(items / workgroup / (8 * cores), least, most);
  }
};

// TUFF_VECTOR, for operands that all start at a multiple of 16 bytes, or do not. Addresses come with 64-bit integers,
// which a processor's driver is faster with or not (runtime/vulkan/binding.hpp).
inline int vector_mode(const DeviceTraits& traits, bool aligned) {
  return !aligned ? 0 : traits.cpu && traits.addresses && !traits.streams_by_words ? 2 : 1;
}

// TUFF_PARTS: 16 bytes of this type, in fours.
inline uint32_t block_parts(int32_t dtype) { return dtype_size(dtype) == 2 ? 2 : 1; }

// Elements that a lane takes of each row where lanes lie along `inner` of them: a block, or what of it divides inner.
inline uint32_t column_width(uint64_t inner, int32_t dtype) {
  return block_parts(dtype) == 2 && inner % 8 == 0 ? 8 : inner % 4 == 0 ? 4 : 1;
}

inline void require_storage(const DeviceTraits& traits, int32_t dtype) {
  if (dtype_size(dtype) == 2 && !traits.storage16) {
    fail(TUFF_ERROR_UNSUPPORTED, "dtype is {}, and the device has no 16-bit storage", dtype_name(dtype));
  }
  if (dtype_size(dtype) == 1 && !traits.storage8) {
    fail(TUFF_ERROR_UNSUPPORTED, "dtype is {}, and the device has no 8-bit storage", dtype_name(dtype));
  }
}

// element_bytes: a power of two, as dtype_size() gives. `forced` is "cpu" or "gpu" where a variable of the environment
// decides the kind of shapes.
inline StreamDevice stream_device(const DeviceTraits& traits, const std::optional<std::string>& forced,
                                  uint64_t element_bytes) {
  StreamDevice device{};
  device.cpu = forced == "cpu" || (forced != "gpu" && traits.cpu);
  device.subgroup = std::max(traits.subgroup_size, 1u);
  device.workgroup = device.cpu ? device.subgroup : std::max(std::min(256u, most_along_x(traits)), device.subgroup);
  device.largest =
      device.cpu ? device.workgroup : std::max(std::min(1024u, std::bit_floor(most_along_x(traits))), device.workgroup);
  device.cores = traits.cores ? traits.cores : 16;
  const uint64_t range = std::max<uint64_t>(traits.max_range, 1u << 16) - 1024;
  device.piece = std::min<uint64_t>(range >> std::countr_zero(element_bytes), 1u << 30) / 64 * 64;
  return device;
}

}  // namespace tuff
