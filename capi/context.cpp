// The header's "Devices and contexts" group.
#include <fmt/ranges.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/log.hpp"
#include "planning/status.hpp"
#include "platform/platform.hpp"
#include "runtime/graveyard.hpp"
#include "runtime/plugin/plugin.hpp"
#include "runtime/variables.hpp"
#include "runtime/vulkan/device_selection.hpp"

using tuff::ComputeBackend;
using tuff::ContextOptions;
using tuff::HandleKind;
using tuff::capi::acquire_context;
using tuff::capi::guarded;

namespace {

ContextOptions context_options(const tuff_context_desc& desc) {
  ContextOptions options;
  options.device = desc.device != nullptr ? desc.device : tuff::platform::environment("TUFF_DEVICE").value_or("");
  tuff::require_flag(desc.validation, "desc->validation");
  options.validation = desc.validation == 1 || tuff::platform::environment("TUFF_VALIDATION") == "1";
  tuff::require_flag(desc.prewarm, "desc->prewarm");
  tuff::require_reserved(desc.reserved);
  options.prewarm = desc.prewarm == 1 || tuff::platform::environment("TUFF_PREWARM") == "1";
  return options;
}

std::unique_ptr<ComputeBackend> open(std::unique_ptr<ComputeBackend> backend, const ContextOptions& options) {
  backend->init(options);
  return backend;
}

// "auto": falls back to the host only if there is no device at all, not if the requested one is missing.
std::unique_ptr<ComputeBackend> open_any(const ContextOptions& options) {
  try {
    return open(tuff::make_vulkan_backend(), options);
  } catch (const tuff::Error& error) {
    if (error.code() != TUFF_ERROR_NO_DEVICE) throw;
    if (!options.device.empty() && tuff::vulkan_device_count() != 0) throw;
    tuff::log(TUFF_LOG_WARNING, "using the host backend: {}", error.what());
  }
  return open(tuff::make_host_backend(), options);
}

std::unique_ptr<ComputeBackend> open_plugin(std::string_view name, const ContextOptions& options) {
  std::vector<std::string> names;
  for (const tuff::Plugin* plugin : tuff::plugins()) {
    if (plugin->name() == name) return open(tuff::make_plugin_backend(*plugin), options);
    names.push_back(fmt::format("\"{}\"", plugin->name()));
  }
  std::string there = names.empty() ? "there is none" : fmt::format("there are {}", fmt::join(names, ", "));
  for (const std::string& refusal : tuff::plugin_refusals()) there += "; refused: " + refusal;
  tuff::fail(TUFF_ERROR_INVALID_ARGUMENT,
             "desc->backend is \"{}\", needs \"vulkan\", \"host\", \"auto\" or the name of a plug-in ({})", name,
             there);
}

// The first plug-in whose device has a name that `wanted` selects. Null if there is none, or if `wanted` is blank or
// the number or UUID of a device: plug-ins have neither.
const tuff::Plugin* plugin_with_device(std::string_view wanted) {
  if (wanted.find_first_not_of(" \t") == std::string_view::npos) return nullptr;
  const std::vector<const tuff::Plugin*> plugins = tuff::plugins();
  std::vector<tuff::DeviceIdentity> devices;
  for (const tuff::Plugin* plugin : plugins) devices.push_back({plugin->device().name, {}});
  const tuff::DeviceMatch match = tuff::match_devices(wanted, devices);
  if (match.by != tuff::DeviceMatch::By::name || match.found.empty()) return nullptr;
  return plugins[match.found.front()];
}

// Without a backend: the Vulkan device, or the plug-in whose device has this name if no Vulkan device has.
std::unique_ptr<ComputeBackend> open_device(const ContextOptions& options) {
  try {
    return open(tuff::make_vulkan_backend(), options);
  } catch (const tuff::Error& error) {
    if (error.code() != TUFF_ERROR_NO_DEVICE || options.device.empty()) throw;
    const tuff::Plugin* plugin = plugin_with_device(options.device);
    if (plugin == nullptr) throw;
    return open(tuff::make_plugin_backend(*plugin), options);
  }
}

std::unique_ptr<ComputeBackend> open_backend(const tuff_context_desc& desc) {
  tuff::sweep_graveyard();
  if (tuff::log_enabled(TUFF_LOG_WARNING)) {
    for (const auto& problem : tuff::variable_problems()) {
      tuff::log(TUFF_LOG_WARNING, "in the environment, {}; treated as unset", problem.text());
    }
  }
  const ContextOptions options = context_options(desc);
  if (desc.backend == nullptr) return open_device(options);
  const std::string_view backend = desc.backend;
  if (backend == "vulkan") return open(tuff::make_vulkan_backend(), options);
  if (backend == "host") return open(tuff::make_host_backend(), options);
  if (backend == "auto") return open_any(options);
  return open_plugin(backend, options);
}

}  // namespace

extern "C" {

tuff_status tuff_device_count(uint32_t* count) {
  return guarded("tuff_device_count", [&] {
    tuff::require(count != nullptr, "count is null");
    tuff::capi::claim_process();
    *count = tuff::vulkan_device_count();
  });
}

tuff_status tuff_device_info(uint32_t index, tuff_device_properties* info) {
  return guarded("tuff_device_info", [&] {
    tuff::capi::check_output_structure(info, "info");
    tuff::capi::claim_process();
    const uint32_t count = tuff::vulkan_device_count();
    tuff::require(index < count, "index is {}, the number of devices is {}", index, count);
    tuff_device_properties properties{};
    tuff::vulkan_device_info(index, properties);
    tuff::capi::write_structure(info, properties);
  });
}

tuff_status tuff_device_refusals(char* buffer, uint64_t capacity, uint64_t* length) {
  return guarded("tuff_device_refusals", [&] {
    tuff::capi::check_text(buffer, "buffer", capacity);
    tuff::capi::claim_process();
    tuff::capi::write_text(tuff::vulkan_device_refusals(), buffer, capacity, length);
  });
}

tuff_status tuff_context_create(const tuff_context_desc* desc, tuff_context* context) {
  return guarded("tuff_context_create", [&] {
    tuff::require(context != nullptr, "context is null");
    const tuff_context_desc wanted = desc != nullptr ? tuff::capi::read_structure(desc, "desc") : tuff_context_desc{};
    tuff::capi::claim_process();
    auto object = std::make_unique<tuff::capi::Context>(open_backend(wanted));
    if (wanted.memory_limit_bytes != 0) {
      tuff_limits limits{};
      limits.struct_size = sizeof(limits);
      limits.memory_bytes = wanted.memory_limit_bytes;
      object->backend().set_limits(limits);
    }
    *context = tuff::handle_table().insert(HandleKind::context, std::move(object));
  });
}

tuff_status tuff_context_destroy(tuff_context context) {
  return guarded("tuff_context_destroy", [&] {
    const auto object = tuff::handle_table().remove<tuff::capi::Context>(context, HandleKind::context);
    if (!object) tuff::capi::fail_handle("context", context, "context");
    object->close();
  });
}

tuff_status tuff_context_info(tuff_context context, tuff_device_properties* info) {
  return guarded("tuff_context_info", [&] {
    const auto object = acquire_context(context);
    tuff::capi::check_output_structure(info, "info");
    tuff_device_properties properties{};
    object->backend().capabilities(properties);
    tuff::capi::write_structure(info, properties);
  });
}

tuff_status tuff_synchronize(tuff_stream stream) {
  return guarded("tuff_synchronize", [&] {
    const auto target = tuff::capi::acquire_stream(stream);
    if (target.is_default()) {
      if (target->capturing()) {
        tuff::fail(TUFF_ERROR_UNSUPPORTED, "the default stream is capturing: its operations are not executed");
      }
      target.context()->backend().synchronize();
    } else {
      target->synchronize();
    }
  });
}

tuff_status tuff_supports(tuff_context context, const char* feature, int32_t* yes) {
  return guarded("tuff_supports", [&] {
    const auto object = acquire_context(context);
    tuff::require(feature != nullptr, "feature is null");
    tuff::require(yes != nullptr, "yes is null");
    *yes = object->backend().supports(feature) || object->has_op(feature) ? 1 : 0;
  });
}

tuff_status tuff_context_stats(tuff_context context, tuff_stats* stats) {
  return guarded("tuff_context_stats", [&] {
    const auto object = acquire_context(context);
    tuff::capi::check_output_structure(stats, "stats");
    tuff_stats counters{};
    object->backend().stats(counters);
    counters.live_buffers = object->live_buffers();
    tuff::capi::write_structure(stats, counters);
  });
}

tuff_status tuff_context_usage(tuff_context context, tuff_usage* usage) {
  return guarded("tuff_context_usage", [&] {
    const auto object = acquire_context(context);
    tuff::capi::check_output_structure(usage, "usage");
    tuff_usage now{};
    object->backend().usage(now);
    tuff::capi::write_structure(usage, now);
  });
}

tuff_status tuff_device_read_sensors(uint32_t index, tuff_device_sensors* sensors) {
  return guarded("tuff_device_read_sensors", [&] {
    tuff::capi::check_output_structure(sensors, "sensors");
    tuff::capi::claim_process();
    const uint32_t count = tuff::vulkan_device_count();
    tuff::require(index < count, "index is {}, the number of devices is {}", index, count);
    tuff_device_sensors now{};
    tuff::vulkan_device_sensors(index, now);
    tuff::capi::write_structure(sensors, now);
  });
}

tuff_status tuff_context_set_limits(tuff_context context, const tuff_limits* limits) {
  return guarded("tuff_context_set_limits", [&] {
    const auto object = acquire_context(context);
    const tuff_limits wanted = tuff::capi::read_structure(limits, "limits");
    tuff::require_reserved(wanted.reserved, "limits->reserved");
    object->backend().set_limits(wanted);
  });
}

tuff_status tuff_context_set_tuning(tuff_context context, const char* json) {
  return guarded("tuff_context_set_tuning", [&] { acquire_context(context)->backend().set_tuning(json); });
}

}  // extern "C"
