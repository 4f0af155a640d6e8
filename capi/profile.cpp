// The header's "Profiling" group.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_context;
using tuff::capi::guarded;

namespace {

void write_file(const char* path, const std::string& text) {
  const auto* utf8 = reinterpret_cast<const char8_t*>(path);
  errno = 0;
  std::ofstream file(std::filesystem::path(std::u8string(utf8)), std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) {
    tuff::fail(TUFF_ERROR_IO, "path is \"{}\", which cannot be written: {}", path,
               errno != 0 ? std::strerror(errno) : "unknown reason");
  }
}

}  // namespace

extern "C" {

tuff_status tuff_profile_begin(tuff_context context) {
  return guarded("tuff_profile_begin", [&] { acquire_context(context)->profile_begin(); });
}

tuff_status tuff_profile_end(tuff_context context) {
  return guarded("tuff_profile_end", [&] { acquire_context(context)->profile_end(); });
}

tuff_status tuff_profile_write(tuff_context context, const char* path) {
  return guarded("tuff_profile_write", [&] {
    const auto object = acquire_context(context);
    tuff::require(path != nullptr, "path is null");
    write_file(path, object->profiled().trace());
  });
}

tuff_status tuff_profile_table(tuff_context context, char* text, uint64_t capacity, uint64_t* length) {
  return guarded("tuff_profile_table", [&] {
    const auto object = acquire_context(context);
    tuff::capi::check_text(text, "text", capacity);
    tuff::capi::write_text(object->profiled().table(), text, capacity, length);
  });
}

}  // extern "C"
