// The header's "Library" group: version, status, last error, log.
#include <algorithm>
#include <array>
#include <string_view>

#include "capi/guard.hpp"
#include "capi/structures.hpp"
#include "planning/log.hpp"
#include "planning/operation.hpp"
#include "planning/status.hpp"

#define TUFF_TEXT_OF(value) #value
#define TUFF_TEXT(value) TUFF_TEXT_OF(value)

#if defined(__clang__)
#define TUFF_COMPILER \
  "clang " TUFF_TEXT(__clang_major__) "." TUFF_TEXT(__clang_minor__) "." TUFF_TEXT(__clang_patchlevel__)
#elif defined(__GNUC__)
#define TUFF_COMPILER "g++ " TUFF_TEXT(__GNUC__) "." TUFF_TEXT(__GNUC_MINOR__) "." TUFF_TEXT(__GNUC_PATCHLEVEL__)
#else
#define TUFF_COMPILER "an unknown compiler"
#endif

namespace {

struct StatusText {
  tuff_status status;
  const char* name;
  const char* hint;
};

#define TUFF_STATUS(name, hint) \
  { name, #name, hint }
constexpr StatusText kStatusTexts[] = {
    TUFF_STATUS(TUFF_OK, "Nothing went wrong."),
    TUFF_STATUS(TUFF_ERROR_INVALID_ARGUMENT,
                "Read tuff_last_error(): it names the argument, what it got and what it needs."),
    TUFF_STATUS(TUFF_ERROR_INVALID_HANDLE,
                "Check that the handle is of the right kind and context, and that it was not freed or destroyed."),
    TUFF_STATUS(TUFF_ERROR_NOT_INITIALIZED,
                "After fork(), use Tuff in one process only: start workers by spawning, or before the first context."),
    TUFF_STATUS(TUFF_ERROR_UNSUPPORTED, "Ask tuff_supports() first, and use another element type, size or device."),
    TUFF_STATUS(TUFF_ERROR_OUT_OF_DEVICE_MEMORY, "Free buffers or work in smaller pieces; live buffers stay usable."),
    TUFF_STATUS(TUFF_ERROR_OUT_OF_HOST_MEMORY, "Free memory of the process or work in smaller pieces."),
    TUFF_STATUS(
        TUFF_ERROR_DEVICE_LOST,
        "Destroy the context and create a new one; if it happens again, check the driver and the system's log."),
    TUFF_STATUS(TUFF_ERROR_NO_DEVICE,
                "Install a Vulkan driver (on Debian: mesa-vulkan-drivers), check TUFF_DEVICE and TUFF_VISIBLE_DEVICES, "
                "or use backend \"auto\"."),
    TUFF_STATUS(TUFF_ERROR_COMPILE_FAILED, "Read the compiler's log in tuff_last_error()."),
    TUFF_STATUS(TUFF_ERROR_TIMEOUT,
                "Give the device less work at a time, or raise wait_milliseconds by tuff_context_set_limits()."),
    TUFF_STATUS(TUFF_ERROR_LIMIT_EXCEEDED,
                "Stay within the limits of tuff_context_info(), or raise those of tuff_context_set_limits()."),
    TUFF_STATUS(TUFF_ERROR_IO, "Check the path, its permissions and the space on its disk."),
    TUFF_STATUS(TUFF_ERROR_INTERNAL, "This is a defect: please report it with tuff_last_error() and TUFF_LOG=debug."),
};
#undef TUFF_STATUS

constexpr StatusText kUnknownStatus = {0, "TUFF_ERROR_UNKNOWN",
                                       "This number is not a status of this version of the library."};

const StatusText& status_text(tuff_status status) {
  const auto* found = std::find_if(std::begin(kStatusTexts), std::end(kStatusTexts),
                                   [status](const StatusText& text) { return text.status == status; });
  return found != std::end(kStatusTexts) ? *found : kUnknownStatus;
}

// "tuff 0.3.0, g++ 12.2.0, fmt 9.1.0, shaderc"
struct BuildInfo {
  std::array<char, 128> text{};
  BuildInfo() {
    fmt::format_to_n(text.data(), text.size() - 1, "tuff {}.{}.{}, {}, fmt {}.{}.{}, shaderc", TUFF_VERSION_MAJOR,
                     TUFF_VERSION_MINOR, TUFF_VERSION_PATCH, TUFF_COMPILER, FMT_VERSION / 10000,
                     FMT_VERSION / 100 % 100, FMT_VERSION % 100);
  }
};

}  // namespace

extern "C" {

const char* tuff_operation_name(uint32_t index) {
  return index < tuff::all_operations.size() ? tuff::all_operations[index]->name : nullptr;
}

uint32_t tuff_version(void) { return TUFF_VERSION; }

uint32_t tuff_abi_version(void) { return TUFF_ABI_VERSION; }

const char* tuff_build_info(void) {
  static const BuildInfo info;
  return info.text.data();
}

const char* tuff_status_name(tuff_status status) { return status_text(status).name; }

const char* tuff_status_hint(tuff_status status) { return status_text(status).hint; }

// This function and tuff_set_log need no device and also work in a forked child.
tuff_status tuff_last_error(char* buffer, uint64_t capacity, uint64_t* length) {
  try {
    tuff::capi::check_text(buffer, "buffer", capacity);
    tuff::capi::write_text(tuff::capi::last_error(), buffer, capacity, length);
    return TUFF_OK;
  } catch (...) {
    return tuff::capi::report_exception("tuff_last_error");
  }
}

tuff_status tuff_set_log(tuff_log_callback callback, void* user, int32_t level) {
  try {
    tuff::require(level >= TUFF_LOG_OFF && level <= TUFF_LOG_DISPATCH, "level is {}, needs {} to {}", level,
                  +TUFF_LOG_OFF, +TUFF_LOG_DISPATCH);
    tuff::set_log(callback, user, level);
    return TUFF_OK;
  } catch (...) {
    return tuff::capi::report_exception("tuff_set_log");
  }
}

}  // extern "C"
