// tuff info: one block for each device, as text or JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "tool/commands.hpp"
#include "tool/format.hpp"
#include "tool/text.hpp"
#include "tuff/tuff.hpp"

namespace tool {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLabel = 25;  // columns before the values

// Properties known only once the device is opened.
struct Opened {
  std::vector<std::string> operations;
  std::string binding;
  std::string without_ptx;  // the reason; empty: kernels in PTX are used
  bool cpu_plugin = false;  // computes for the Vulkan device
  std::string failure;
};

std::string reason_without_plugin() {
  const char* const variable = std::getenv("TUFF_CPU_PLUGIN");
  if (variable != nullptr && std::string(variable) == "off") return "TUFF_CPU_PLUGIN is off";
  return "it is not there, or a variable TUFF_..._VARIANT forces kernels";
}

Opened open_device(const std::string& device, const std::string& backend) {
  Opened opened;
  try {
    const tuff::Context context = open_context(device, backend);
    for (const std::string& operation : operations()) {
      if (context.supports(operation.c_str())) opened.operations.push_back(operation);
    }
    opened.binding = context.info().binding == 1 ? "addresses" : "descriptors";
    opened.without_ptx = reason_without_ptx(context);
    opened.cpu_plugin = context.supports("cpu_plugin");
  } catch (const tuff::Exception& error) {
    opened.failure = error.what();
  }
  return opened;
}

std::vector<std::string> features(const tuff::DeviceProperties& device) {
  const std::pair<const char*, int32_t> all[] = {{"f16", device.supports_f16},
                                                 {"bf16", device.supports_bf16},
                                                 {"f64", device.supports_f64},
                                                 {"int8", device.supports_int8},
                                                 {"matrix cores", device.supports_matrix_cores},
                                                 {"buffer addresses", device.supports_addresses},
                                                 {"unified memory", device.unified_memory}};
  std::vector<std::string> words;
  for (const auto& [name, yes] : all) {
    if (yes) words.emplace_back(name);
  }
  return words;
}

const char* dtype_name(int32_t dtype) {
  constexpr const char* kNames[] = {"?",   "f32", "f16", "bf16", "f64",  "i32",     "u32",     "i8",  "u8",
                                    "i64", "u64", "i16", "u16",  "bool", "f8_e4m3", "f8_e5m2", "c64", "c128"};
  return dtype > 0 && dtype < static_cast<int32_t>(std::size(kNames)) ? kNames[dtype] : kNames[0];
}

std::string product_name(const tuff_matrix_shape& shape) {
  return fmt::format("{} x {} -> {}", dtype_name(shape.a_type), dtype_name(shape.b_type), dtype_name(shape.c_type));
}

// The names of the bits that are set.
template <size_t n>
std::vector<std::string> named_bits(uint32_t bits, const std::pair<const char*, uint32_t> (&names)[n]) {
  std::vector<std::string> words;
  for (const auto& [name, bit] : names) {
    if (bits & bit) words.emplace_back(name);
  }
  return words;
}

std::vector<std::string> queue_kinds(uint32_t flags) {
  return named_bits(flags, {{"graphics", TUFF_QUEUE_GRAPHICS},
                            {"compute", TUFF_QUEUE_COMPUTE},
                            {"transfer", TUFF_QUEUE_TRANSFER},
                            {"sparse binding", TUFF_QUEUE_SPARSE_BINDING}});
}

std::vector<std::string> subgroup_operations(uint32_t bits) {
  return named_bits(bits, {{"basic", TUFF_SUBGROUP_BASIC},
                           {"vote", TUFF_SUBGROUP_VOTE},
                           {"arithmetic", TUFF_SUBGROUP_ARITHMETIC},
                           {"ballot", TUFF_SUBGROUP_BALLOT},
                           {"shuffle", TUFF_SUBGROUP_SHUFFLE},
                           {"shuffle_relative", TUFF_SUBGROUP_SHUFFLE_RELATIVE},
                           {"clustered", TUFF_SUBGROUP_CLUSTERED},
                           {"quad", TUFF_SUBGROUP_QUAD}});
}

std::string feature_line(const tuff::DeviceProperties& device) {
  std::string text;
  for (const auto& word : features(device)) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none of f16, bf16, f64, int8, matrix cores" : text;
}

void print_line(const char* label, const std::string& value) {
  if (value.empty()) return;
  for (const auto& line : folded(value.substr(0, value.find('\n')), output_width() - kLabel)) {
    fmt::print("      {:<18} {}\n", std::exchange(label, ""), line);
  }
}

void print_words(const char* label, const std::vector<std::string>& words, const char* separator = " ") {
  print_line(label, fmt::format("{}", fmt::join(words, separator)));
}

void print_matrix_shapes(const tuff::DeviceProperties& device) {
  const char* label = "matrix shapes";
  std::string product;
  std::vector<std::string> sizes;
  const auto flush = [&] {
    if (!sizes.empty()) print_line(std::exchange(label, ""), product + ": " + fmt::to_string(fmt::join(sizes, " ")));
    sizes.clear();
  };
  for (uint32_t i = 0; i < device.matrix_shape_count; ++i) {
    const tuff_matrix_shape& shape = device.matrix_shapes[i];
    if (product_name(shape) != product) flush();
    product = product_name(shape);
    sizes.push_back(fmt::format("{}x{}x{}", shape.m, shape.n, shape.k));
  }
  flush();
}

void print_queues(const tuff::DeviceProperties& device) {
  const char* label = "queues";
  for (uint32_t i = 0; i < device.queue_family_count; ++i) {
    const tuff_queue_family& family = device.queue_families[i];
    std::string kinds;
    for (const auto& kind : queue_kinds(family.flags)) kinds += (kinds.empty() ? "" : ", ") + kind;
    print_line(std::exchange(label, ""), fmt::format("{} of {}{}", family.count, kinds.empty() ? "another kind" : kinds,
                                                     family.timestamp_bits == 0 ? "; no timestamps" : ""));
  }
}

void print_limits(const tuff::DeviceProperties& device) {
  print_line("descriptor range", fmt::format("{}, at multiples of {}", format_bytes(device.max_storage_range_bytes),
                                             format_bytes(device.min_storage_alignment)));
  print_line("workgroup",
             fmt::format("{} invocations, at most {} x {} x {}, {} of shared memory", device.max_workgroup_invocations,
                         device.max_workgroup_size[0], device.max_workgroup_size[1], device.max_workgroup_size[2],
                         format_bytes(device.max_shared_memory_bytes)));
  print_line("workgroups",
             fmt::format("{} x {} x {}", format_count(device.max_workgroup_count[0]),
                         format_count(device.max_workgroup_count[1]), format_count(device.max_workgroup_count[2])));
  print_line("push constants", format_bytes(device.max_push_constant_bytes));
  const std::string sizes =
      device.subgroup_size_min == device.subgroup_size_max
          ? ""
          : fmt::format(", {} to {} on demand", device.subgroup_size_min, device.subgroup_size_max);
  print_line("subgroup", fmt::format("{} invocations{}", device.subgroup_size, sizes));
  print_words("subgroups can", subgroup_operations(device.subgroup_operations), ", ");
  print_queues(device);
  if (device.timestamp_nanoseconds > 0)
    print_line("clock", fmt::format("{} ns per tick", device.timestamp_nanoseconds));
  print_matrix_shapes(device);
}

void print_device(const std::string& index, const tuff::DeviceProperties& device, const Opened& opened, bool chosen) {
  fmt::print("\n  {:>2}  {}{}\n", index, shorten(device.name, output_width() - 24), chosen ? "   <- the default" : "");
  print_line("type", fmt::format("{}, {}", device_type_name(device.type), device.vendor));
  print_line("driver", device.driver);
  if (device.api_version != 0) {
    print_line("Vulkan", format_vulkan_version(device.api_version));
    if (device.vendor_id <= 0xffff) print_line("PCI", fmt::format("{:04x}:{:04x}", device.vendor_id, device.device_id));
    print_line("UUID", format_uuid(device.uuid));
  }
  print_line("memory", device.memory_free_bytes == 0 ? format_bytes(device.memory_bytes)
                                                     : fmt::format("{}, {} free", format_bytes(device.memory_bytes),
                                                                   format_bytes(device.memory_free_bytes)));
  print_line("largest buffer", format_bytes(device.max_allocation_bytes));
  if (device.host_import_alignment != 0)
    print_line("imports", fmt::format("host memory, in multiples of {}", format_bytes(device.host_import_alignment)));
  if (device.compute_units != 0) print_line("compute units", std::to_string(device.compute_units));
  if (device.api_version != 0) print_limits(device);
  print_line("features", feature_line(device));
  if (opened.failure.empty()) {
    print_words("operations", opened.operations);
    if (device.api_version != 0) {
      print_line("binding", opened.binding);
      if (device.type == TUFF_DEVICE_CPU) {
        print_line("CPU plug-in", opened.cpu_plugin ? "on: computes what it knows" : "off: " + reason_without_plugin());
      }
      print_line("PTX kernels", opened.without_ptx.empty() ? "on" : "off: " + opened.without_ptx);
    }
  } else {
    print_line("cannot be opened", opened.failure);
  }
  if (device.bandwidth_bytes_per_second > 0)
    print_line("bandwidth", format_bandwidth(device.bandwidth_bytes_per_second));
  if (device.f32_flops_per_second > 0) print_line("f32 rate", format_flops(device.f32_flops_per_second));
}

void print_refusals(const std::string& text) {
  fmt::print("\nRefused:\n");
  std::istringstream list(text);
  for (std::string refusal; std::getline(list, refusal);) {
    fmt::print("{}", folded_text(refusal, 2, 6));
  }
}

// Unknown values become null instead of 0.
template <typename Number>
Json known(Number value) {
  return value == Number{} ? Json(nullptr) : Json(value);
}

// Without an index: a plug-in or the host backend.
Json device_json(std::optional<uint32_t> index, const tuff::DeviceProperties& device, const Opened& opened,
                 bool chosen) {
  Json json;
  json["index"] = index ? Json(*index) : Json(nullptr);
  json["default"] = chosen;
  json["name"] = device.name;
  json["type"] = device_type_name(device.type);
  json["vendor"] = device.vendor;
  json["driver"] = device.driver;
  json["backend"] = device.backend;
  json["uuid"] = format_uuid(device.uuid);
  json["vendor_id"] = device.vendor_id;
  json["device_id"] = device.device_id;
  json["vulkan"] = device.api_version == 0 ? Json(nullptr) : Json(format_vulkan_version(device.api_version));
  json["driver_version"] = device.driver_version;
  json["memory_bytes"] = device.memory_bytes;
  json["memory_free_bytes"] = known(device.memory_free_bytes);
  json["max_allocation_bytes"] = device.max_allocation_bytes;
  json["max_storage_range_bytes"] = device.max_storage_range_bytes;
  json["max_workgroup_invocations"] = device.max_workgroup_invocations;
  json["max_workgroup_count"] = device.max_workgroup_count;
  json["max_shared_memory_bytes"] = device.max_shared_memory_bytes;
  json["max_push_constant_bytes"] = device.max_push_constant_bytes;
  json["subgroup_size"] = device.subgroup_size;
  json["subgroup_size_min"] = device.subgroup_size_min;
  json["subgroup_size_max"] = device.subgroup_size_max;
  json["subgroup_operations"] = subgroup_operations(device.subgroup_operations);
  json["max_workgroup_size"] = device.max_workgroup_size;
  json["compute_units"] = known(device.compute_units);
  json["min_storage_alignment"] = device.min_storage_alignment;
  json["host_import_alignment"] = device.host_import_alignment;
  json["timestamp_nanoseconds"] = known(device.timestamp_nanoseconds);
  json["driver_uuid"] = format_uuid(device.driver_uuid);
  json["queue_families"] = Json::array();
  for (uint32_t i = 0; i < device.queue_family_count; ++i) {
    const tuff_queue_family& family = device.queue_families[i];
    json["queue_families"].push_back({{"kinds", queue_kinds(family.flags)},
                                      {"flags", family.flags},
                                      {"count", family.count},
                                      {"timestamp_bits", family.timestamp_bits}});
  }
  json["matrix_shapes"] = Json::array();
  for (uint32_t i = 0; i < device.matrix_shape_count; ++i) {
    const tuff_matrix_shape& shape = device.matrix_shapes[i];
    json["matrix_shapes"].push_back({{"product", product_name(shape)}, {"m", shape.m}, {"n", shape.n}, {"k", shape.k}});
  }
  json["features"] = features(device);
  json["operations"] = opened.operations;
  json["binding"] = opened.binding;
  const bool vulkan = device.api_version != 0 && opened.failure.empty();
  json["ptx"] = vulkan ? Json(opened.without_ptx.empty()) : Json(nullptr);
  json["cpu_plugin"] = vulkan ? Json(opened.cpu_plugin) : Json(nullptr);
  json["ptx_off_because"] = vulkan ? known(opened.without_ptx) : Json(nullptr);
  json["bandwidth_bytes_per_second"] = known(device.bandwidth_bytes_per_second);
  json["f32_flops_per_second"] = known(device.f32_flops_per_second);
  if (!opened.failure.empty()) json["error"] = opened.failure;
  return json;
}

bool same_device(const tuff::DeviceProperties& a, const tuff::DeviceProperties& b) {
  return std::memcmp(a.uuid, b.uuid, sizeof a.uuid) == 0 && std::strcmp(a.name, b.name) == 0;
}

// The device that a context opens by default. Throws if `device` is given and names no device.
std::optional<tuff::DeviceProperties> default_device(const std::string& device) {
  try {
    return open_context(device, "").info();
  } catch (const tuff::Exception&) {  // an existing device failed to open: its block reports the error
    if (!device.empty()) throw;
    return std::nullopt;
  }
}

}  // namespace

const char* device_type_name(int32_t type) {
  switch (type) {
    case TUFF_DEVICE_INTEGRATED: return "integrated";
    case TUFF_DEVICE_DISCRETE: return "discrete";
    case TUFF_DEVICE_VIRTUAL: return "virtual";
    case TUFF_DEVICE_CPU: return "CPU";
    case TUFF_DEVICE_HOST: return "host";
    default: return "other";
  }
}

int run_info(const InfoOptions& options) {
  std::vector<tuff::DeviceProperties> devices;
  for (uint32_t i = 0; i < tuff::device_count(); ++i) devices.push_back(tuff::device_info(i));
  auto chosen = default_device(options.device);
  Json list = Json::array();
  if (!options.json) {
    const uint32_t version = tuff::version();
    fmt::print("Tuff {}.{}.{}: {} Vulkan device{}\n", version >> 16, (version >> 8) & 0xff, version & 0xff,
               devices.size(), devices.size() == 1 ? "" : "s");
  }
  const auto show = [&](std::optional<uint32_t> index, const tuff::DeviceProperties& device, const Opened& opened) {
    const bool is_chosen = chosen && same_device(device, *chosen);
    if (is_chosen) chosen.reset();  // if several devices are identical, the first is marked
    if (!options.device.empty() && !is_chosen) return;
    if (options.json) {
      list.push_back(device_json(index, device, opened, is_chosen && options.device.empty()));
    } else {
      print_device(index ? std::to_string(*index) : "-", device, opened, is_chosen && options.device.empty());
    }
  };
  for (uint32_t i = 0; i < devices.size(); ++i) show(i, devices[i], open_device(std::to_string(i), "vulkan"));
  for (uint32_t i = 0; i < tuff::backend_count(); ++i) {
    const tuff::DeviceProperties device = tuff::backend_info(i);
    show(std::nullopt, device, open_device("", device.backend));
  }
  show(std::nullopt, open_context("", "host").info(), open_device("", "host"));

  if (options.json) {
    print_json(list);
    return 0;
  }
  std::string refusals = tuff::device_refusals();
  const std::string plugins = tuff::backend_refusals();
  if (!refusals.empty() && !plugins.empty()) refusals += '\n';
  refusals += plugins;
  if (options.device.empty() && !refusals.empty()) print_refusals(refusals);
  if (devices.empty())
    fmt::print("\n{}", folded_text(fmt::format("hint: {}", tuff::status_hint(TUFF_ERROR_NO_DEVICE)), 0, 6));
  return 0;
}

}  // namespace tool
