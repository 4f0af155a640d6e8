#include "runtime/variables.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "platform/platform.hpp"
#include "runtime/cache_folder.hpp"

namespace tuff {
namespace {

template <typename... Words>
bool is_one_of(std::string_view value, const Words&... words) {
  return ((value == words) || ...);
}

bool is_level(std::string_view value) {
  return is_one_of(value, "off", "error", "warning", "info", "debug", "dispatch");
}
bool is_switch(std::string_view value) { return is_one_of(value, "0", "1"); }
bool is_kind(std::string_view value) { return is_one_of(value, "gpu", "cpu"); }
bool is_bytes(std::string_view value) { return parse_cache_bytes(value).has_value(); }
bool is_binding(std::string_view value) { return is_one_of(value, "descriptors", "addresses"); }
bool is_transfer(std::string_view value) { return value == "staged"; }
bool is_way(std::string_view value) { return is_one_of(value, "device", "host", "download"); }
bool is_file(std::string_view value) {
  std::error_code error;
  return std::filesystem::is_regular_file(value, error);
}

constexpr const char* kKind = "gpu or cpu";

// tests/variables.cmake compares this with the variables that the sources read and with docs/building.md.
constexpr Variable kVariables[] = {
    {"TUFF_DEVICE", "an index, a UUID or its beginning, or part of a name", nullptr, "the device to use"},
    {"TUFF_VISIBLE_DEVICES", "a list of these, separated by commas", nullptr,
     "which devices are visible, and in which order"},
    {"TUFF_LOG", "off, error, warning, info, debug or dispatch", is_level, "logs to stderr"},
    {"TUFF_TUNING", "the path of a table, or off", nullptr, "the tuning table to use"},
    {"TUFF_CACHE_BYTES", "a number, or one with K, M or G, such as 64M", is_bytes, "the size limit of the disk cache"},
    {"TUFF_PREWARM", "0 or 1", is_switch, "compiles kernels that earlier processes used ahead of time"},
    {"TUFF_VALIDATION", "0 or 1", is_switch, "loads the Khronos validation layer"},
    {"TUFF_DEBUG_LABELS", "0 or 1", is_switch, "names for RenderDoc and Nsight"},
    {"TUFF_COMPILE", "a file", is_file, "the program tuff-compile"},
    {"TUFF_LIBRARY", "a file", nullptr, "the libtuff.so that the Python package opens"},
    {"TUFF_BINDING", "descriptors or addresses", is_binding, nullptr},
    {"TUFF_TRANSFER", "staged", is_transfer, nullptr},
    {"TUFF_PEER_VARIANT", "device, host or download", is_way, nullptr},
    // Valid names are in the planners' tables, which reject others.
    {"TUFF_GEMM_VARIANT", "a variant of gemm", nullptr, nullptr},
    {"TUFF_CONV_VARIANT", "a variant of a convolution", nullptr, nullptr},
    {"TUFF_ATTENTION_VARIANT", "a variant of attention", nullptr, nullptr},
    {"TUFF_ELEMENTWISE_VARIANT", kKind, is_kind, nullptr},
    {"TUFF_NORM_VARIANT", kKind, is_kind, nullptr},
    {"TUFF_POOL_VARIANT", kKind, is_kind, nullptr},
    {"TUFF_REDUCE_VARIANT", kKind, is_kind, nullptr},
    {"TUFF_RESIZE_VARIANT", kKind, is_kind, nullptr},
    {"TUFF_ROPE_VARIANT", kKind, is_kind, nullptr},
    {"TUFF_SHAPE_VARIANT", kKind, is_kind, nullptr},
    {"TUFF_SOFTMAX_VARIANT", kKind, is_kind, nullptr},
};

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::string VariableProblem::text() const { return fmt::format("{} is \"{}\", needs {}", name, value, wants); }

std::vector<VariableProblem> variable_problems() {
  std::vector<VariableProblem> problems;
  for (const Variable& variable : kVariables) {
    if (variable.accepts == nullptr) continue;
    const auto value = platform::environment(variable.name);
    if (value && !variable.accepts(*value)) problems.push_back({variable.name, *value, variable.wants});
  }
  return problems;
}

}  // namespace tuff
