// Device selection by index, UUID or name, and TUFF_VISIBLE_DEVICES, a list of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuff {

struct DeviceIdentity {
  std::string name;
  uint8_t uuid[16] = {};
};

// 32 hexadecimal digits.
std::string uuid_text(const uint8_t (&uuid)[16]);

struct DeviceMatch {
  enum class By { index, uuid, name };
  By by = By::name;
  std::vector<size_t> found;
};

// `wanted` is an index of up to four digits; otherwise the beginning of a UUID, at least four hexadecimal digits, with
// dashes anywhere; otherwise part of a name, ignoring case.
DeviceMatch match_devices(std::string_view wanted, std::span<const DeviceIdentity> devices);

// The index of the selected device; the first if several have a matching name. Throws NO_DEVICE, listing the devices,
// if nothing matches or several UUIDs begin like this.
size_t choose_device(std::string_view wanted, std::span<const DeviceIdentity> devices);

// The devices that a comma-separated list selects, in its order. A name selects all devices with that name. A device
// listed more than once keeps its first position. Throws INVALID_ARGUMENT for an entry that matches nothing.
std::vector<size_t> select_visible(std::string_view list, std::span<const DeviceIdentity> devices);

// 0 "NVIDIA H200" (uuid), 1 "llvmpipe" (uuid)
std::string list_devices(std::span<const DeviceIdentity> devices);

}  // namespace tuff
