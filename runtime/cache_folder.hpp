// The files of the cache folder: their names, their headers, and the order in which they are evicted. An entry is a
// file <kind>-<driver>-<key>.bin that begins with a CacheHeader. Other files in the folder do not belong to the cache:
// they are neither counted nor touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuff {

struct CacheHeader {
  char magic[8];
  uint32_t library_version;
  uint32_t header_bytes;
  uint8_t driver[16];
  uint64_t key_high, key_low;
  uint64_t payload_bytes;
  uint64_t checksum;  // XXH3 of the payload
  uint64_t seal;      // over the fields above; set once the driver has accepted this payload without crashing, 0 before
};
static_assert(sizeof(CacheHeader) == 72);

constexpr char kCacheMagic[8] = {'T', 'U', 'F', 'F', 'C', 'A', 'C', 'H'};
constexpr uint64_t kMaxCacheEntryBytes = 64ull << 20;
constexpr uint64_t kDefaultCacheBytes = 256ull << 20;

// The parts of an entry's name. driver: the first eight bytes of the driver's identity; 0 if the entry is valid for all
// drivers.
struct CacheName {
  std::string kind;
  uint64_t driver = 0, key_high = 0, key_low = 0;
};
std::string cache_name(const CacheName& name);
std::optional<CacheName> parse_cache_name(std::string_view text);
// Suffix of the marker file that exists while a process tries the entry with the driver.
constexpr std::string_view kTrialSuffix = ".trial";

struct CacheEntry {
  CacheName name;
  uint64_t bytes = 0;
  std::filesystem::file_time_type used{};  // to a day
  uint32_t library_version = 0;
  bool whole = true;  // the header agrees with the file's name and size
};

struct CacheListing {
  std::vector<CacheEntry> entries;
  uint64_t bytes = 0;  // of all entries
  // Temporary files older than an hour, left by processes that died while writing, and markers of trials whose entries
  // no longer exist.
  std::vector<std::filesystem::path> abandoned;
};
// Empty if the folder cannot be listed.
CacheListing list_cache(const std::filesystem::path& folder);

// Removes the entry unless it has been replaced or used since it was listed. Returns true if it was removed.
bool remove_entry(const std::filesystem::path& folder, const CacheEntry& entry);

// Sets the file's time of use to now, unless it is already right to a day.
void touch_entry(const std::filesystem::path& path);

// Removes abandoned files. If the entries exceed `bound` bytes, removes entries until an eighth less than that is left:
// first those that are damaged or of another library version, then those of drivers other than `driver`, then the rest,
// in each group the least recently used first. Returns the bytes that are left. Any number of processes may run this at
// once while others read and store: a process that has opened an entry can still read all of it.
uint64_t trim_cache(const std::filesystem::path& folder, uint64_t bound, uint64_t driver);

// Parses TUFF_CACHE_BYTES: a number, optionally followed by K, M or G. nullopt if it is invalid.
std::optional<uint64_t> parse_cache_bytes(std::string_view text);
uint64_t cache_bound();

}  // namespace tuff
