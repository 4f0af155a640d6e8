#include "runtime/vulkan/device_selection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "planning/status.hpp"

namespace tuff {
namespace {

constexpr size_t kMaxIndexDigits = 4, kFewestUuidDigits = 4, kMaxUuidDigits = 32;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// The hexadecimal digits if the text can be the beginning of a UUID, otherwise empty.
std::string uuid_digits(std::string_view text) {
  std::string digits = lower(text);
  std::erase(digits, '-');
  const bool good = digits.size() >= kFewestUuidDigits && digits.size() <= kMaxUuidDigits &&
                    std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isxdigit(c); });
  return good ? digits : "";
}

template <typename Accepts>
std::vector<size_t> indices_of(std::span<const DeviceIdentity> devices, Accepts&& accepts) {
  std::vector<size_t> found;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (accepts(devices[i])) found.push_back(i);
  }
  return found;
}

// Describes what is wrong with a match; empty if nothing is.
std::string problem(const DeviceMatch& match, std::string_view wanted) {
  if (match.found.empty()) {
    return fmt::format("no device is {} \"{}\"", match.by == DeviceMatch::By::index ? "number" : "named like", wanted);
  }
  if (match.by == DeviceMatch::By::uuid && match.found.size() > 1) {
    return fmt::format("\"{}\" begins the UUIDs of devices {}", wanted, fmt::join(match.found, " and "));
  }
  return "";
}

std::string there_is(std::span<const DeviceIdentity> devices) {
  return devices.empty() ? "there are no devices" : "available: " + list_devices(devices);
}

}  // namespace

std::string uuid_text(const uint8_t (&uuid)[16]) { return fmt::format("{:02x}", fmt::join(uuid, "")); }

DeviceMatch match_devices(std::string_view wanted, std::span<const DeviceIdentity> devices) {
  DeviceMatch match;
  if (!wanted.empty() && wanted.size() <= kMaxIndexDigits && std::all_of(wanted.begin(), wanted.end(), is_digit)) {
    size_t index = 0;
    std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
    match.by = DeviceMatch::By::index;
    if (index < devices.size()) match.found.push_back(index);
    return match;
  }
  if (const std::string digits = uuid_digits(wanted); !digits.empty()) {
    match.by = DeviceMatch::By::uuid;
    match.found = indices_of(devices, [&](const auto& device) { return uuid_text(device.uuid).starts_with(digits); });
    if (!match.found.empty()) return match;
  }
  // A name may look like the beginning of a UUID: A100.
  match.by = DeviceMatch::By::name;
  if (wanted.empty()) return match;
  match.found = indices_of(devices, [part = lower(wanted)](const auto& device) {
    return lower(device.name).find(part) != std::string::npos;
  });
  return match;
}

size_t choose_device(std::string_view wanted, std::span<const DeviceIdentity> devices) {
  const DeviceMatch match = match_devices(wanted, devices);
  const std::string wrong = problem(match, wanted);
  if (!wrong.empty()) fail(TUFF_ERROR_NO_DEVICE, "{}; {}", wrong, there_is(devices));
  return match.found.front();
}

std::vector<size_t> select_visible(std::string_view list, std::span<const DeviceIdentity> devices) {
  std::vector<size_t> order;
  if (trimmed(list).empty()) return order;
  for (size_t number = 1;; ++number) {
    const size_t comma = list.find(',');
    const std::string_view entry = trimmed(list.substr(0, comma));
    const DeviceMatch match = match_devices(entry, devices);
    const std::string wrong = entry.empty() ? fmt::format("entry {} is empty", number) : problem(match, entry);
    if (!wrong.empty()) fail(TUFF_ERROR_INVALID_ARGUMENT, "TUFF_VISIBLE_DEVICES: {}; {}", wrong, there_is(devices));
    for (const size_t index : match.found) {
      if (std::find(order.begin(), order.end(), index) == order.end()) order.push_back(index);
    }
    if (comma == std::string_view::npos) return order;
    list.remove_prefix(comma + 1);
  }
}

std::string list_devices(std::span<const DeviceIdentity> devices) {
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i) {
    const std::string uuid = uuid_text(devices[i].uuid);
    const std::string_view u = uuid;
    text += fmt::format("{}{} \"{}\" ({}-{}-{}-{}-{})", i == 0 ? "" : ", ", i, devices[i].name, u.substr(0, 8),
                        u.substr(8, 4), u.substr(12, 4), u.substr(16, 4), u.substr(20));
  }
  return text;
}

}  // namespace tuff
