// Which devices a person means: by index, by UUID, by name; and TUFF_VISIBLE_DEVICES, a list of such.
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

struct DeviceMatch {
  enum class By { index, uuid, name };
  By by = By::name;
  std::vector<size_t> found;
};

// An index of up to four digits; else the beginning of a UUID, four hexadecimal digits or more, dashes anywhere; else a
// part of a name, whatever the case.
DeviceMatch match_devices(std::string_view wanted, std::span<const DeviceIdentity> devices);

// The index of the one that is meant, of several of that name the first. Throws NO_DEVICE, and says which there are, if
// nothing matches or a UUID's beginning is that of several.
size_t choose_device(std::string_view wanted, std::span<const DeviceIdentity> devices);

// The devices that a list, separated by commas, leaves, in its order; a name stands for all of that name. What is
// listed twice stands where it came first. Throws INVALID_ARGUMENT for an entry that matches nothing.
std::vector<size_t> select_visible(std::string_view list, std::span<const DeviceIdentity> devices);

// 0 "NVIDIA H200" (uuid), 1 "llvmpipe" (uuid)
std::string list_devices(std::span<const DeviceIdentity> devices);

}  // namespace tuff
