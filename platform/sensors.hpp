// What the system's drivers measure of a device: temperature, power, clocks, load.
#pragma once

#include <filesystem>
#include <limits>
#include <string_view>

namespace tuff::platform {

inline constexpr double kNotMeasured = std::numeric_limits<double>::quiet_NaN();

struct Sensors {
  double celsius = kNotMeasured;
  double watts = kNotMeasured;
  double core_hertz = kNotMeasured, memory_hertz = kNotMeasured;
  double busy = kNotMeasured;  // 0 to 1
};

// For the PCI device with this address ("0000:03:00.0"). `devices` is the system's folder of PCI devices. What is not
// there, or is no number, is not measured.
Sensors read_sensors(std::string_view pci_address, const std::filesystem::path& devices = "/sys/bus/pci/devices");

}  // namespace tuff::platform
