// Sensors as Linux shows them, in files below a PCI device's folder in sysfs:
//   hwmon/hwmon*/temp1_input      thousandths of a degree Celsius   amdgpu, nouveau, i915, xe
//   hwmon/hwmon*/power1_average   microwatts; newer amdgpu: power1_input
//   hwmon/hwmon*/freq1_input      Hz: the core's clock; freq2_input the memory's   amdgpu
//   drm/card*/gt_act_freq_mhz     MHz   i915
//   tile0/gt0/freq0/act_freq      MHz   xe
//   gpu_busy_percent              amdgpu
// NVIDIA's own driver has none of them. (Documentation/hwmon/sysfs-interface.rst, Documentation/gpu/amdgpu.)
#include <charconv>
#include <optional>
#include <string>

#include "platform/platform.hpp"
#include "platform/sensors.hpp"

namespace tuff::platform {
namespace {

double read_number(const std::filesystem::path& file, double unit) {
  // A file of sysfs has the size of a page, and holds less.
  std::optional<std::string> text = read_small_file(file);
  if (!text) return kNotMeasured;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const std::string_view rest(end, static_cast<size_t>(text->data() + text->size() - end));
  if (error != std::errc{} || rest.find_first_not_of(" \n") != std::string_view::npos) return kNotMeasured;
  return static_cast<double>(number) * unit;
}

// The first folder in `parent` whose name begins so.
std::filesystem::path folder_in(const std::filesystem::path& parent, std::string_view prefix) {
  std::string first;
  for (std::string& name : names_in(parent)) {
    if (name.starts_with(prefix) && (first.empty() || name < first)) first = std::move(name);
  }
  return first.empty() ? std::filesystem::path() : parent / first;
}

void set_if_measured(double& value, double measured) {
  if (value != value) value = measured;
}

}  // namespace

Sensors read_sensors(std::string_view pci_address, const std::filesystem::path& devices) {
  Sensors sensors;
  if (pci_address.empty() || pci_address.find('/') != std::string_view::npos) return sensors;
  const std::filesystem::path device = devices / pci_address;
  if (const auto monitor = folder_in(device / "hwmon", "hwmon"); !monitor.empty()) {
    sensors.celsius = read_number(monitor / "temp1_input", 1e-3);
    sensors.watts = read_number(monitor / "power1_average", 1e-6);
    set_if_measured(sensors.watts, read_number(monitor / "power1_input", 1e-6));
    sensors.core_hertz = read_number(monitor / "freq1_input", 1);
    sensors.memory_hertz = read_number(monitor / "freq2_input", 1);
  }
  if (const auto card = folder_in(device / "drm", "card"); !card.empty()) {
    set_if_measured(sensors.core_hertz, read_number(card / "gt_act_freq_mhz", 1e6));
  }
  set_if_measured(sensors.core_hertz, read_number(device / "tile0" / "gt0" / "freq0" / "act_freq", 1e6));
  sensors.busy = read_number(device / "gpu_busy_percent", 1e-2);
  return sensors;
}

}  // namespace tuff::platform
