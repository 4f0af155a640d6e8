// The files of the cache folder: what they are called, how they begin, and which go first when there are too many.
// An entry is a file <kind>-<driver>-<key>.bin that begins with a CacheHeader. Whatever else lies in the folder is
// not the cache's: it is neither counted nor touched.
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
  uint64_t seal;      // of what is above: the driver has taken this payload and come back. 0: not yet
};
static_assert(sizeof(CacheHeader) == 72);

constexpr char kCacheMagic[8] = {'T', 'U', 'F', 'F', 'C', 'A', 'C', 'H'};
constexpr uint64_t kMaxCacheEntryBytes = 64ull << 20;
constexpr uint64_t kDefaultCacheBytes = 256ull << 20;

// What the name says. driver: the first eight bytes of its identity; 0: the entry is good for all drivers.
struct CacheName {
  std::string kind;
  uint64_t driver = 0, key_high = 0, key_low = 0;
};
std::string cache_name(const CacheName& name);
std::optional<CacheName> parse_cache_name(std::string_view text);
// Beside an entry while a process tries what the driver makes of it.
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
  // What a process that ended while writing has left, an hour ago; and traces of trials whose entries are gone.
  std::vector<std::filesystem::path> abandoned;
};
// Empty where the folder cannot be listed.
CacheListing list_cache(const std::filesystem::path& folder);

// Removes the entry unless it has been replaced or used since it was listed. True if it is gone.
bool remove_entry(const std::filesystem::path& folder, const CacheEntry& entry);

// Marks the file as used now, if it does not say so to a day.
void touch_entry(const std::filesystem::path& path);

// Removes what was abandoned. If the entries hold more than `bound` bytes, removes some until they hold an eighth less:
// first those that are damaged or of another library version, then those of drivers other than `driver`, then the
// others, in each group those not used for longest. Returns the bytes that are left. Any number of processes may do
// this at once, while others read and store: who has opened an entry reads it to its end.
uint64_t trim_cache(const std::filesystem::path& folder, uint64_t bound, uint64_t driver);

// TUFF_CACHE_BYTES, a number that K, M or G may follow; nullopt: it is none.
std::optional<uint64_t> parse_cache_bytes(std::string_view text);
uint64_t cache_bound();

}  // namespace tuff
