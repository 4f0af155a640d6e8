// Opens the device that the user requested.
#include <fmt/format.h>

#include <cstdlib>

#include "tool/commands.hpp"
#include "tool/format.hpp"
#include "tool/text.hpp"
#include "tool/usage.hpp"

namespace tool {

const std::vector<std::string>& operations() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (uint32_t i = 0; const char* name = tuff_operation_name(i); ++i) all.emplace_back(name);
    return all;
  }();
  return names;
}

std::string heading(const tuff::DeviceProperties& device) {
  return folded_text(fmt::format("{} ({})", device.name, shorten(device.driver, 60)), 0, 2);
}

tuff::Context open_context(const std::string& device, const std::string& backend, bool prewarm) {
  tuff::ContextOptions options;
  options.device = device.empty() ? nullptr : device.c_str();
  options.backend = backend.empty() ? nullptr : backend.c_str();
  options.prewarm = prewarm;
  try {
    return tuff::Context::create(options);
  } catch (const tuff::Exception& error) {
    const char* variable = std::getenv("TUFF_DEVICE");
    const bool by_variable = device.empty() && variable != nullptr && *variable != '\0';
    const bool named = !device.empty() || by_variable;
    if (error.status() != TUFF_ERROR_NO_DEVICE || !named || tuff::device_count() == 0) throw;
    std::string hint = "needs an index, a UUID or its beginning, or part of a name; available:";
    for (uint32_t i = 0, count = tuff::device_count(); i < count; ++i) {
      const tuff::DeviceProperties there = tuff::device_info(i);
      hint += fmt::format("\n  {:>2}  {}  {}", i, format_uuid(there.uuid), there.name);
    }
    throw UsageError(fmt::format("{} \"{}\" is not a device of this machine", by_variable ? "TUFF_DEVICE" : "--device",
                                 by_variable ? variable : device),
                     hint);
  }
}

void set_native(const std::string& native) {
  if (native == "off") setenv("TUFF_NATIVE", "off", 1);
  if (native == "on") unsetenv("TUFF_NATIVE");
}

std::string reason_without_ptx(const tuff::Context& context) {
  if (context.supports("ptx")) return "";
  if (!context.supports("ptx_driver")) return "the driver does not load PTX (VK_NVX_binary_import)";
  if (!context.supports("ptx_queue")) return "no queue family computes without graphics";
  if (!context.supports("addresses")) return "the device has no buffer addresses";
  const char* const variable = std::getenv("TUFF_NATIVE");
  if (variable != nullptr && std::string(variable) == "off") return "TUFF_NATIVE is off";
  return "the trial failed, as it does on GPUs other than Hopper's";
}

}  // namespace tool
