#include "runtime/plugin/plugin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>

#include "planning/log.hpp"
#include "planning/status.hpp"
#include "platform/mutex.hpp"
#include "platform/never_destroyed.hpp"
#include "platform/platform.hpp"
#include "platform/process.hpp"

namespace tuff {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "tuff-backends";
constexpr std::string_view kPrefix = "libtuff-", kSuffix = ".so";
constexpr size_t kMaxName = sizeof(tuff_device_properties::backend) - 1;

struct Registry {
  Mutex mutex{LockRank::plugins};
  bool searched = false;
  std::vector<std::unique_ptr<const Plugin>> accepted;
  std::vector<const tuff_backend*> entries;  // what the plug-ins exported, in the same order
  std::vector<std::string> refusals;
};

Registry& registry() {
  static NeverDestroyed<Registry> object;
  return *object;
}

// What a plug-in exports, as much of it as this library knows. If its structure is shorter than this library's, from an
// earlier header of the same version, the rest is zero.
tuff_backend read_functions(const tuff_backend& exported) {
  // These two are where they are in every version.
  if (exported.abi_version != TUFF_BACKEND_ABI_VERSION) {
    fail(TUFF_ERROR_UNSUPPORTED, "it was built for version {} of tuff/backend.h, this library has {}",
         exported.abi_version, TUFF_BACKEND_ABI_VERSION);
  }
  // The last field of the first header.
  constexpr size_t kShortest = offsetof(tuff_backend, release) + sizeof exported.release;
  require(exported.struct_size >= kShortest, "its tuff_backend.struct_size is {}, needs at least {}",
          exported.struct_size, kShortest);
  tuff_backend functions{};
  std::memcpy(&functions, &exported, std::min<size_t>(exported.struct_size, sizeof functions));
  return functions;
}

void check_name(const char* name) {
  require(name != nullptr, "its name is null");
  const size_t length = strnlen(name, kMaxName + 1);
  const std::string_view text(name, length);
  const bool good = length >= 1 && length <= kMaxName && std::all_of(text.begin(), text.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
                    });
  require(good, "its name is \"{}\", needs 1 to {} of a-z, 0-9, - and _", text, kMaxName);
  require(text != "vulkan" && text != "host" && text != "auto", "its name is \"{}\", which is Tuff's own", text);
}

void check_functions(const tuff_backend& functions) {
  check_name(functions.name);
  const std::pair<const char*, bool> required[] = {{"describe", functions.describe != nullptr},
                                                   {"open", functions.open != nullptr},
                                                   {"close", functions.close != nullptr},
                                                   {"function", functions.function != nullptr}};
  for (const auto& [name, there] : required) require(there, "its function `{}` is null", name);
  require((functions.allocate == nullptr) == (functions.release == nullptr),
          "it has one of `allocate` and `release`, needs both or neither");
}

template <size_t capacity>
void terminate(char (&text)[capacity]) {
  text[capacity - 1] = '\0';
}

tuff_device_properties described(const tuff_backend& functions) {
  tuff_device_properties device{};
  device.struct_size = sizeof device;
  const tuff_status status = functions.describe(&device);
  terminate(device.name);
  terminate(device.vendor);
  terminate(device.driver);
  if (status == TUFF_ERROR_UNSUPPORTED) {
    fail(status, "its device cannot be used here: {}", device.name[0] != '\0' ? device.name : "it does not say why");
  }
  require(status == TUFF_OK, "its function `describe` returned {}", tuff_status_name(status));
  require(device.name[0] != '\0', "its device has no name");
  return device;
}

// Throws the reason why the file is refused.
void load(Registry& all, const fs::path& file) {
  std::string problem;
  const platform::Library library = platform::load_library(file, problem);
  if (!problem.empty()) fail(TUFF_ERROR_IO, "it does not load: {}", problem);
  const auto entry = reinterpret_cast<const tuff_backend* (*)()>(platform::function_of(library, "tuff_backend_entry"));
  require(entry != nullptr, "it does not export tuff_backend_entry, so it is no plug-in");
  const tuff_backend* exported = entry();
  require(exported != nullptr, "its tuff_backend_entry returned null");
  if (std::find(all.entries.begin(), all.entries.end(), exported) != all.entries.end()) return;
  const tuff_backend functions = read_functions(*exported);
  check_functions(functions);
  for (const auto& other : all.accepted) {
    require(other->name() != functions.name, "another plug-in is named \"{}\"", functions.name);
  }
  all.accepted.push_back(std::make_unique<const Plugin>(functions, described(functions)));
  all.entries.push_back(exported);
  log(TUFF_LOG_INFO, "plug-in \"{}\" from {}: {}", functions.name, file.string(), all.accepted.back()->device().name);
}

// What code of the plug-in throws is an error like others.
void load_or_refuse(Registry& all, const fs::path& file) {
  try {
    load(all, file);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    fail(TUFF_ERROR_OUT_OF_HOST_MEMORY, "there is no memory to load it");
  } catch (const std::exception& thrown) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "it threw an exception: {}", thrown.what());
  } catch (...) {
    fail(TUFF_ERROR_INVALID_ARGUMENT, "it threw an exception");
  }
}

void refuse(Registry& all, const fs::path& what, std::string_view reason) {
  all.refusals.push_back(fmt::format("{}: {}", what.string(), reason));
  log(TUFF_LOG_WARNING, "plug-in {}", all.refusals.back());
}

// No variable of the environment changes where the folder is. It need not be as trustworthy as the library beside it:
// in a folder that all may write to, anyone can make it.
void search(Registry& all) {
  if (all.searched) return;
  all.searched = true;
  const fs::path library = platform::library_folder();
  if (library.empty()) return;
  const fs::path folder = library / kFolder;
  if (const std::string reason = platform::distrust_of_folder(folder); !reason.empty()) {
    return refuse(all, folder, reason);
  }
  std::vector<std::string> names = platform::names_in(folder);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    try {
      load_or_refuse(all, folder / name);
    } catch (const Error& error) {
      refuse(all, folder / name, error.what());
    }
  }
}

[[noreturn]] void fail_as_plugin(const Plugin& plugin, const char* what, tuff_status status) {
  if (status == TUFF_ERROR_OUT_OF_HOST_MEMORY)
    fail(status, "the plug-in \"{}\" has no memory for {}", plugin.name(), what);
  fail(TUFF_ERROR_INTERNAL, "the plug-in \"{}\" returned {} for {}", plugin.name(), tuff_status_name(status), what);
}

}  // namespace

void register_plugin(const std::string& path) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  search(all);
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error) fail(TUFF_ERROR_IO, "path is \"{}\": {}", path, error.message());
  try {
    load_or_refuse(all, file);
  } catch (const Error& refused) {
    fail(refused.code(), "path is \"{}\": {}", path, refused.what());
  }
}

std::vector<const Plugin*> plugins() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  search(all);
  std::vector<const Plugin*> result;
  for (const auto& plugin : all.accepted) result.push_back(plugin.get());
  return result;
}

std::vector<std::string> plugin_refusals() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  search(all);
  return all.refusals;
}

PluginDevice::PluginDevice(const Plugin& plugin) : plugin_(plugin) {
  const tuff_backend& functions = plugin.functions();
  const tuff_status status = functions.open(&device_);
  if (status == TUFF_ERROR_UNSUPPORTED) fail(status, "the plug-in \"{}\" cannot open its device", plugin.name());
  if (status != TUFF_OK) fail_as_plugin(plugin, "opening its device", status);
  try {
    for (const OperationInfo* info : all_operations) {
      if (info->offer == nullptr) continue;
      if (const auto function = functions.function(device_, info->name)) functions_.emplace(info, function);
    }
  } catch (...) {
    functions.close(device_);
    throw;
  }
}

PluginDevice::~PluginDevice() { plugin_.functions().close(device_); }

bool PluginDevice::accepts(const Operation& operation) const {
  const auto found = functions_.find(&operation.info());
  const auto ask = plugin_.functions().accepts;
  if (found == functions_.end() || ask == nullptr) return false;
  try {
    return operation.offer({found->second, device_, ask}) == TUFF_OK;
  } catch (const NotMapped&) {
    return false;
  }
}

bool PluginDevice::compute(const Operation& operation) {
  const auto found = functions_.find(&operation.info());
  if (found == functions_.end()) return false;
  const platform::SignalsBlocked blocked;  // by threads that the plug-in starts
  const tuff_status status = operation.offer({found->second, device_});
  if (status == TUFF_ERROR_UNSUPPORTED) return false;
  if (status != TUFF_OK) fail_as_plugin(plugin_, operation.info().name, status);
  return true;
}

std::byte* PluginDevice::allocate(uint64_t bytes, bool zeroed) {
  return static_cast<std::byte*>(plugin_.functions().allocate(device_, bytes, zeroed ? 1 : 0));
}

void PluginDevice::release(std::byte* memory, uint64_t bytes) noexcept {
  plugin_.functions().release(device_, memory, bytes);
}

}  // namespace tuff
