// tuff cache: lists and clears the disk cache, and compiles ahead what applications on this machine have used.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "platform/platform.hpp"
#include "runtime/cache_folder.hpp"
#include "tool/commands.hpp"
#include "tool/format.hpp"
#include "tool/table.hpp"
#include "tool/text.hpp"

namespace tool {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using FileClock = fs::file_time_type::clock;

constexpr const char* kList = "requests";  // the kind of the lists of kernels to prewarm
constexpr const char* kTuning = "tuning.json";

fs::path cache_folder() {
  const auto folder = tuff::platform::cache_directory();
  if (!folder) {
    throw std::runtime_error(
        "there is no cache folder: neither XDG_CACHE_HOME nor HOME leads to one that only this user owns");
  }
  return *folder;
}

double age_of(fs::file_time_type used) {
  return std::max(0.0, std::chrono::duration<double>(FileClock::now() - used).count());
}

std::string format_age(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 90 * 60) return fmt::format("{:.0f} min", seconds / 60);
  if (seconds < 36 * 3600) return fmt::format("{:.0f} h", seconds / 3600);
  return fmt::format("{:.0f} days", seconds / 86400);
}

std::string format_version(uint32_t version) {
  return fmt::format("{}.{}.{}", version >> 16, (version >> 8) & 0xff, version & 0xff);
}

// What the cache entries of a driver say about it: the device's name and the driver's description.
struct Driver {
  std::string device, words;
  bool present = false;  // this machine has this device with this driver
  uint64_t entries = 0, bytes = 0;
};

std::map<uint64_t, Driver> drivers_of(const fs::path& folder, const tuff::CacheListing& listing) {
  std::set<std::pair<std::string, std::string>> present;
  for (uint32_t i = 0, count = tuff::device_count(); i < count; ++i) {
    const tuff::DeviceProperties device = tuff::device_info(i);
    present.emplace(device.name, device.driver);
  }
  std::map<uint64_t, Driver> drivers;
  for (const tuff::CacheEntry& entry : listing.entries) {
    if (entry.name.driver == 0) continue;
    Driver& driver = drivers[entry.name.driver];
    ++driver.entries;
    driver.bytes += entry.bytes;
    if (entry.name.kind != "driver" || !entry.whole) continue;
    const auto file = tuff::platform::read_file(folder / tuff::cache_name(entry.name), 4096);
    if (!file || file->size() < sizeof(tuff::CacheHeader)) continue;
    std::string text(reinterpret_cast<const char*>(file->data()) + sizeof(tuff::CacheHeader),
                     file->size() - sizeof(tuff::CacheHeader));
    const size_t line = text.find('\n');
    if (line == std::string::npos || text.back() != '\n') continue;
    driver.device = text.substr(0, line);
    driver.words = text.substr(line + 1, text.size() - line - 2);
    driver.present = present.contains({driver.device, driver.words});
  }
  return drivers;
}

// True if this library cannot use the entry on this machine.
bool is_stale(const tuff::CacheEntry& entry, const std::map<uint64_t, Driver>& drivers) {
  if (!entry.whole || entry.library_version != tuff::version()) return true;
  return entry.name.driver != 0 && !drivers.at(entry.name.driver).present;
}

struct Kind {
  uint64_t entries = 0, bytes = 0, stale = 0;
  double oldest = 0, newest = 1e18;
  std::set<std::string> versions;
  std::set<uint64_t> drivers;
};

int list(const CacheOptions& options) {
  const fs::path folder = cache_folder();
  const tuff::CacheListing listing = tuff::list_cache(folder);
  const std::map<uint64_t, Driver> drivers = drivers_of(folder, listing);
  std::map<std::string, Kind> kinds;
  for (const tuff::CacheEntry& entry : listing.entries) {
    Kind& kind = kinds[entry.name.kind];
    ++kind.entries;
    kind.bytes += entry.bytes;
    if (is_stale(entry, drivers)) ++kind.stale;
    kind.oldest = std::max(kind.oldest, age_of(entry.used));
    kind.newest = std::min(kind.newest, age_of(entry.used));
    kind.versions.insert(entry.whole ? format_version(entry.library_version) : "damaged");
    if (entry.name.driver != 0) kind.drivers.insert(entry.name.driver);
  }
  std::error_code error;
  const uint64_t tuning_bytes = fs::file_size(folder / kTuning, error);
  const bool tuned = !error;

  if (options.json) {
    Json document = {{"folder", folder.string()},
                     {"bytes", listing.bytes},
                     {"bound_bytes", tuff::cache_bound()},
                     {"entries", listing.entries.size()},
                     {"kinds", Json::array()},
                     {"drivers", Json::array()},
                     {"tuning_bytes", tuned ? Json(tuning_bytes) : Json()}};
    for (const auto& [name, kind] : kinds) {
      document["kinds"].push_back({{"kind", name},
                                   {"entries", kind.entries},
                                   {"bytes", kind.bytes},
                                   {"stale", kind.stale},
                                   {"oldest_seconds", kind.oldest},
                                   {"newest_seconds", kind.newest},
                                   {"versions", kind.versions},
                                   {"drivers", kind.drivers.size()}});
    }
    for (const auto& [number, driver] : drivers) {
      document["drivers"].push_back({{"id", fmt::format("{:016x}", number)},
                                     {"device", driver.device},
                                     {"driver", driver.words},
                                     {"present", driver.present},
                                     {"entries", driver.entries},
                                     {"bytes", driver.bytes}});
    }
    print_json(document);
    return 0;
  }

  Table table({{"kind"},
               {"entries", Align::right},
               {"size", Align::right},
               {"oldest", Align::right},
               {"newest", Align::right},
               {"stale", Align::right},
               {"versions"}});
  for (const auto& [name, kind] : kinds) {
    table.row({name, format_count(kind.entries), format_bytes(kind.bytes), format_age(kind.oldest),
               format_age(kind.newest), format_count(kind.stale), fmt::format("{}", fmt::join(kind.versions, ", "))});
  }
  if (!kinds.empty()) table.print();
  if (!drivers.empty()) {
    Table by_driver({{"device"}, {"driver"}, {"entries", Align::right}, {"size", Align::right}, {""}});
    for (const auto& [number, driver] : drivers) {
      by_driver.row({driver.device.empty() ? fmt::format("{:016x}", number) : shorten(driver.device, 30),
                     shorten(driver.words, 36), format_count(driver.entries), format_bytes(driver.bytes),
                     driver.present ? "" : "not here"});
    }
    fmt::print("\n");
    by_driver.print();
  }
  fmt::print("\n{} entries, {} of at most {}, in {}\n", format_count(listing.entries.size()),
             format_bytes(listing.bytes), format_bytes(tuff::cache_bound()), folder.string());
  if (tuned) fmt::print("In addition {}, {}: the measurements of tuff tune.\n", kTuning, format_bytes(tuning_bytes));
  return 0;
}

int clear(const CacheOptions& options) {
  const fs::path folder = cache_folder();
  const tuff::CacheListing listing = tuff::list_cache(folder);
  const std::map<uint64_t, Driver> drivers = options.stale ? drivers_of(folder, listing) : std::map<uint64_t, Driver>();
  uint64_t entries = 0, bytes = 0, lists = 0, kept = 0;
  for (const tuff::CacheEntry& entry : listing.entries) {
    // prewarm works from the request lists. Unlike the other entries they cannot be regenerated, so clearing all
    // spares them.
    const bool of_kind =
        options.kind.empty() ? entry.name.kind != kList || options.stale : entry.name.kind == options.kind;
    lists += entry.name.kind == kList && !of_kind ? 1 : 0;
    if (!of_kind || age_of(entry.used) < options.older_than * 86400) continue;
    if (options.stale && !is_stale(entry, drivers)) continue;
    if (tuff::remove_entry(folder, entry)) {
      ++entries;
      bytes += entry.bytes;
    } else {
      ++kept;
    }
  }
  uint64_t abandoned = 0;
  std::error_code error;
  for (const fs::path& path : listing.abandoned) abandoned += fs::remove(path, error) ? 1 : 0;

  bool tuning = false;
  if (options.tuning) {
    tuning = fs::remove(folder / kTuning, error);
    if (error) throw std::runtime_error(fmt::format("{}: {}", (folder / kTuning).string(), error.message()));
  }
  if (options.json) {
    print_json({{"folder", folder.string()},
                {"removed_entries", entries},
                {"removed_bytes", bytes},
                {"removed_unfinished", abandoned},
                {"removed_tuning", tuning},
                {"kept_lists", options.kind.empty() ? lists : 0},
                {"not_removed", kept}});
  } else {
    fmt::print("{} entries, {}, were removed from {}\n", format_count(entries), format_bytes(bytes), folder.string());
    if (abandoned != 0) fmt::print("{} unfinished files, more than an hour old, too\n", abandoned);
    if (options.tuning) fmt::print("{} {}\n", kTuning, tuning ? "was removed" : "did not exist");
    if (options.kind.empty() && lists != 0) {
      fmt::print("The lists of kernels are kept, for tuff cache prewarm; --kind {} removes them.\n", kList);
    }
  }
  if (kept != 0) {
    fmt::print(stderr, "error: {} entries could not be removed, or were in use\n", format_count(kept));
    return 1;
  }
  return 0;
}

int prewarm(const CacheOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  const tuff::Context context = open_context(options.device, "", true);
  const tuff::DeviceProperties device = context.info();
  const uint64_t total = context.stats().kernels_to_prewarm + context.stats().kernels_prewarmed;
  if (total == 0 && !options.json) {
    fmt::print("There is no list of kernels for {}: run an application first.\n", device.name);
    return 0;
  }
  if (total != 0) {
    Progress progress(total);
    uint64_t shown = 0;
    while (true) {
      const uint64_t left = context.stats().kernels_to_prewarm;
      for (; shown < total - std::min(left, total); ++shown) progress.step("kernels");
      if (left == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  const tuff::Stats stats = context.stats();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (options.json) {
    print_json({{"device", device.name},
                {"listed", total},
                {"ready", stats.kernels_prewarmed},
                {"compiled_anew", stats.shaders_compiled},
                {"seconds", seconds}});
  } else {
    fmt::print("{} kernels are ready for {}, {} of them newly compiled, in {}\n", stats.kernels_prewarmed, device.name,
               stats.shaders_compiled, format_seconds(seconds));
  }
  if (stats.kernels_prewarmed < total) {
    fmt::print(stderr, "error: {} could not be compiled; TUFF_LOG=info says why\n", total - stats.kernels_prewarmed);
    return 1;
  }
  return 0;
}

}  // namespace

int run_cache(const CacheOptions& options) {
  switch (options.action) {
    case CacheOptions::Action::clear: return clear(options);
    case CacheOptions::Action::prewarm: return prewarm(options);
    case CacheOptions::Action::list: break;
  }
  return list(options);
}

}  // namespace tool
