#include "runtime/cache_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>

#include "platform/platform.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

namespace fs = std::filesystem;
using FileClock = fs::file_time_type::clock;

constexpr auto kTouchAfter = std::chrono::hours(24);
constexpr auto kAbandonedAfter = std::chrono::hours(1);
// Times further in the future than this were written before the clock was set back.
constexpr auto kClockSkew = std::chrono::hours(1);
constexpr std::string_view kSuffix = ".bin";
constexpr size_t kTemporarySuffix = 7;  // ".XXXXXX", from platform::write_file_atomically

bool parse_hex(std::string_view text, uint64_t& value) {
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 16 || !std::all_of(text.begin(), text.end(), is_digit)) return false;
  return std::from_chars(text.data(), text.data() + text.size(), value, 16).ec == std::errc();
}

bool is_temporary_name(std::string_view name) {
  if (name.size() <= kTemporarySuffix || name[name.size() - kTemporarySuffix] != '.') return false;
  const std::string_view random = name.substr(name.size() - kTemporarySuffix + 1);
  const bool plain = std::all_of(random.begin(), random.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  return plain && parse_cache_name(name.substr(0, name.size() - kTemporarySuffix));
}

bool is_trial_of_nothing(const fs::path& path, std::string_view name) {
  if (!name.ends_with(kTrialSuffix)) return false;
  const std::string_view entry = name.substr(0, name.size() - kTrialSuffix.size());
  std::error_code error;
  return parse_cache_name(entry) && !fs::exists(path.parent_path() / entry, error) && !error;
}

// Size and time of a regular file. Does not follow links.
bool look_at(const fs::path& path, uint64_t& bytes, fs::file_time_type& time) {
  std::error_code error;
  if (fs::symlink_status(path, error).type() != fs::file_type::regular) return false;
  bytes = fs::file_size(path, error);
  if (error) return false;
  time = fs::last_write_time(path, error);
  return !error;
}

// Returns false if the file does not belong to the cache: it is long enough for the magic but lacks it.
bool read_header(const fs::path& path, CacheEntry& entry) {
  CacheHeader header{};
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const auto count = static_cast<size_t>(file.gcount());
  if (std::memcmp(header.magic, kCacheMagic, std::min(count, sizeof kCacheMagic)) != 0) return false;
  entry.library_version = header.library_version;
  uint64_t driver;
  std::memcpy(&driver, header.driver, sizeof driver);
  entry.whole = count == sizeof header && header.header_bytes == sizeof header && driver == entry.name.driver &&
                header.key_high == entry.name.key_high && header.key_low == entry.name.key_low &&
                entry.bytes <= kMaxCacheEntryBytes && header.payload_bytes == entry.bytes - sizeof header;
  return true;
}

// At least the bytes of all entries, by the sizes of what is named like one. nullopt if there are other files of the
// cache, which may have to be removed.
std::optional<uint64_t> bytes_at_most(const fs::path& folder) {
  uint64_t sum = 0;
  for (const std::string& file : platform::names_in(folder)) {
    if (parse_cache_name(file)) {
      std::error_code error;
      const uint64_t bytes = fs::file_size(folder / file, error);
      if (!error) sum += bytes;
    } else if (is_temporary_name(file) || file.ends_with(kTrialSuffix)) {
      return std::nullopt;
    }
  }
  return sum;
}

}  // namespace

std::string cache_name(const CacheName& name) {
  return fmt::format("{}-{:016x}-{:016x}{:016x}{}", name.kind, name.driver, name.key_high, name.key_low, kSuffix);
}

std::optional<CacheName> parse_cache_name(std::string_view text) {
  constexpr size_t kTail = 1 + 16 + 1 + 32 + kSuffix.size();
  if (text.size() <= kTail || text.substr(text.size() - kSuffix.size()) != kSuffix) return std::nullopt;
  CacheName name;
  name.kind = text.substr(0, text.size() - kTail);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  if (!std::all_of(name.kind.begin(), name.kind.end(), is_letter)) return std::nullopt;
  const std::string_view tail = text.substr(name.kind.size());
  if (tail[0] != '-' || tail[17] != '-' || !parse_hex(tail.substr(1, 16), name.driver) ||
      !parse_hex(tail.substr(18, 16), name.key_high) || !parse_hex(tail.substr(34, 16), name.key_low)) {
    return std::nullopt;
  }
  return name;
}

CacheListing list_cache(const fs::path& folder) {
  CacheListing listing;
  const auto now = FileClock::now();
  for (const std::string& file : platform::names_in(folder)) {
    const fs::path path = folder / file;
    std::optional<CacheName> name = parse_cache_name(file);
    const bool temporary = !name && (is_temporary_name(file) || is_trial_of_nothing(path, file));
    if (!name && !temporary) continue;
    CacheEntry entry;
    if (!look_at(path, entry.bytes, entry.used)) continue;  // removed by another process, or not a file
    if (temporary) {
      if (entry.used < now - kAbandonedAfter) listing.abandoned.push_back(path);
      continue;
    }
    entry.name = std::move(*name);
    if (!read_header(path, entry)) continue;
    listing.bytes += entry.bytes;
    listing.entries.push_back(std::move(entry));
  }
  return listing;
}

bool remove_entry(const fs::path& folder, const CacheEntry& entry) {
  const fs::path path = folder / cache_name(entry.name);
  uint64_t bytes = 0;
  fs::file_time_type time;
  std::error_code error;
  if (!look_at(path, bytes, time)) return fs::symlink_status(path, error).type() == fs::file_type::not_found;
  if (bytes != entry.bytes || time != entry.used) return false;
  fs::remove(path, error);
  return !error;
}

void touch_entry(const fs::path& path) {
  uint64_t bytes = 0;
  fs::file_time_type time;
  if (!look_at(path, bytes, time)) return;
  const auto now = FileClock::now();
  std::error_code ignored;  // a process without write access leaves the time unchanged
  if (time < now - kTouchAfter || time > now + kClockSkew) fs::last_write_time(path, now, ignored);
}

uint64_t trim_cache(const fs::path& folder, uint64_t bound, uint64_t driver) {
  // A look into each file takes several times longer than its size, and few folders are full.
  if (const std::optional<uint64_t> bytes = bytes_at_most(folder); bytes && *bytes <= bound) return *bytes;
  CacheListing listing = list_cache(folder);
  std::error_code ignored;
  for (const fs::path& path : listing.abandoned) fs::remove(path, ignored);
  if (listing.bytes <= bound) return listing.bytes;

  const auto latest = FileClock::now() + kClockSkew;
  const auto order = [&](const CacheEntry& entry) {
    const int group = !entry.whole || entry.library_version != TUFF_VERSION   ? 0
                      : entry.name.driver != driver && entry.name.driver != 0 ? 1
                                                                              : 2;
    // Entries in use get their time corrected. A time that is still in the future means unused since the clock was set
    // back.
    const auto used = entry.used > latest ? fs::file_time_type::min() : entry.used;
    return std::pair(group, used);
  };
  std::sort(listing.entries.begin(), listing.entries.end(),
            [&](const CacheEntry& a, const CacheEntry& b) { return order(a) < order(b); });
  const uint64_t goal = bound - bound / 8;
  for (const CacheEntry& entry : listing.entries) {
    if (listing.bytes <= goal) break;
    if (remove_entry(folder, entry)) listing.bytes -= entry.bytes;
  }
  return listing.bytes;
}

std::optional<uint64_t> parse_cache_bytes(std::string_view text) {
  uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || end - rest > 1) return std::nullopt;
  if (rest == end) return value;
  const int shift = *rest == 'K' ? 10 : *rest == 'M' ? 20 : *rest == 'G' ? 30 : 0;
  if (shift == 0 || value > std::numeric_limits<uint64_t>::max() >> shift) return std::nullopt;
  return value << shift;
}

uint64_t cache_bound() {
  const auto wanted = platform::environment("TUFF_CACHE_BYTES");
  return wanted ? parse_cache_bytes(*wanted).value_or(kDefaultCacheBytes) : kDefaultCacheBytes;
}

}  // namespace tuff
