// The device properties that planners of streaming kernels (element-wise operations, reductions, softmax,
// normalisations) use, with defaults filled in, and how their kernels access operands
// (kernels/elementwise/blocks.glsl).
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

// `wanted` within bounds, rounded down to a power of two, so that the shape of a dispatch rarely changes with the
// sizes.
inline uint64_t few_values(uint64_t wanted, uint64_t least, uint64_t most) {
  return std::bit_floor(std::clamp(wanted, least, most));
}

// Bytes of a descriptor that a kernel may need beside an operand.
constexpr uint64_t kDescriptorSlack = 1024;

struct StreamDevice {
  bool cpu;            // use shapes for CPU devices
  uint32_t subgroup;   // invocations of a subgroup, at least 1
  uint32_t workgroup;  // invocations of a full workgroup
  uint32_t largest;    // invocations of a workgroup for long rows, which are few and have much work to share
  uint64_t cores;
  uint64_t piece;  // maximum elements of one dispatch, for a descriptor's range and 32-bit indices

  // TUFF_RUN (prelude.glsl). As a constant, each value would be another pipeline that the driver compiles when it is
  // first used. On a CPU device, where it depends on the sizes, it is therefore passed with the call.
  int64_t fixed_run(uint64_t run) const { return cpu ? 0 : static_cast<int64_t>(run); }

  // How many of `items` items an invocation takes one after another on a CPU device, where a workgroup costs more than
  // an item: as many as leave eight workgroups for each core.
  uint64_t items_each(uint64_t items, uint64_t most, uint64_t least = 1) const {
    return few_values(items / workgroup / (8 * cores), least, most);
  }
};

// TUFF_VECTOR, given whether all operands are 16-byte aligned. With addresses there are 64-bit integers, which a CPU
// driver may or may not be faster with (runtime/vulkan/binding.hpp).
inline int vector_mode(const DeviceTraits& traits, bool aligned) {
  return !aligned ? 0 : traits.cpu && traits.addresses && !traits.streams_by_words ? 2 : 1;
}

// TUFF_PARTS: a block of this type, as a number of vec4. A block is 16 bytes of elements of 2 or 4 bytes, 8 of those of
// one byte (more would be too many registers), and 32 of those of 8 bytes.
inline uint32_t block_parts(int32_t dtype) { return dtype_size(dtype) <= 2 ? 2 : 1; }

// Elements that a lane takes of each row if lanes are laid out along its `inner` elements: a block, or the part of one
// that divides `inner`.
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

// What the device needs for a type that is read, computed in or stored.
inline void require_type(const DeviceTraits& traits, int32_t dtype) {
  require_storage(traits, dtype);
  if ((dtype == TUFF_I64 || dtype == TUFF_U64) && !traits.int64) {
    fail(TUFF_ERROR_UNSUPPORTED, "{} is needed, and the device has no 64-bit integers", dtype_name(dtype));
  }
  if (dtype == TUFF_F64 && !traits.f64) {
    fail(TUFF_ERROR_UNSUPPORTED, "f64 is needed, and the device has no 64-bit floats");
  }
}

// element_bytes is a power of two, as returned by dtype_size(). `forced` is "cpu" or "gpu" if an environment variable
// sets the kind of shapes.
inline StreamDevice stream_device(const DeviceTraits& traits, const std::optional<std::string>& forced,
                                  uint64_t element_bytes) {
  StreamDevice device{};
  device.cpu = forced == "cpu" || (forced != "gpu" && traits.cpu);
  device.subgroup = std::max(traits.subgroup_size, 1u);
  const uint32_t whole = std::min(256u, max_along_x(traits)) / device.subgroup * device.subgroup;  // subgroups
  device.workgroup = device.cpu ? device.subgroup : std::max(whole, device.subgroup);
  device.largest =
      device.cpu ? device.workgroup : std::max(std::min(1024u, std::bit_floor(max_along_x(traits))), device.workgroup);
  device.cores = traits.cores ? traits.cores : 16;
  const uint64_t range = std::max<uint64_t>(traits.max_range, 1u << 16) - kDescriptorSlack;
  device.piece = std::min<uint64_t>(range >> std::countr_zero(element_bytes), 1u << 30) / 64 * 64;
  return device;
}

}  // namespace tuff
