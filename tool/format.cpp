#include "tool/format.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tool {
namespace {

// Formats with three significant digits and the largest unit in which the number is at least 1.
template <size_t N>
std::string scaled(double value, double base, const std::array<const char*, N>& units) {
  size_t unit = 0;
  while (unit + 1 < N && value >= base) {
    value /= base;
    ++unit;
  }
  const int decimals = value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  return scaled(static_cast<double>(bytes), 1024, std::array{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
}

std::string format_count(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string format_seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  return scaled(seconds * 1e9, 1000, std::array{"ns", "us", "ms"});
}

std::string format_flops(double per_second) {
  return scaled(per_second / 1e6, 1000, std::array{"MFLOP/s", "GFLOP/s", "TFLOP/s", "PFLOP/s"});
}

std::string format_bandwidth(double bytes_per_second) {
  return scaled(bytes_per_second / 1e6, 1000, std::array{"MB/s", "GB/s", "TB/s"});
}

std::string format_share(double share) { return fmt::format("{:.0f} %", share * 100); }

std::string format_error(double error) {
  if (error == 0) return "0";
  return std::isfinite(error) ? fmt::format("{:.1e}", error) : "not finite";
}

std::string format_uuid(const uint8_t uuid[16]) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

std::string format_vulkan_version(uint32_t version) {
  return fmt::format("{}.{}.{}", (version >> 22) & 0x7f, (version >> 12) & 0x3ff, version & 0xfff);
}

std::string shorten(const std::string& text, size_t width) {
  std::string line = text.substr(0, text.find('\n'));
  if (line.size() > width) line.replace(width - 3, std::string::npos, "...");
  return line;
}

}  // namespace tool
