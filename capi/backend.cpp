// The header's functions about plug-ins.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capi/guard.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"
#include "runtime/plugin/plugin.hpp"

using tuff::capi::guarded;

extern "C" {

tuff_status tuff_backend_register(const char* path) {
  return guarded("tuff_backend_register", [&] {
    tuff::require(path != nullptr, "path is null");
    tuff::capi::claim_process();
    tuff::register_plugin(path);
  });
}

tuff_status tuff_backend_count(uint32_t* count) {
  return guarded("tuff_backend_count", [&] {
    tuff::require(count != nullptr, "count is null");
    tuff::capi::claim_process();
    *count = static_cast<uint32_t>(tuff::plugins().size());
  });
}

tuff_status tuff_backend_info(uint32_t index, tuff_device_properties* info) {
  return guarded("tuff_backend_info", [&] {
    tuff::capi::check_output_structure(info, "info");
    tuff::capi::claim_process();
    const auto plugins = tuff::plugins();
    tuff::require(index < plugins.size(), "index is {}, the number of plug-ins is {}", index, plugins.size());
    tuff_device_properties properties{};
    tuff::plugin_properties(*plugins[index], properties);
    tuff::capi::write_structure(info, properties);
  });
}

tuff_status tuff_backend_refusals(char* buffer, uint64_t capacity, uint64_t* length) {
  return guarded("tuff_backend_refusals", [&] {
    tuff::capi::check_text(buffer, "buffer", capacity);
    tuff::capi::claim_process();
    tuff::capi::write_text(fmt::format("{}", fmt::join(tuff::plugin_refusals(), "\n")), buffer, capacity, length);
  });
}

}  // extern "C"
