#include "runtime/vulkan/disk_cache.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "planning/log.hpp"
#include "platform/mutex.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

CacheHeader make_header(const std::array<uint8_t, 16>& driver, const CacheKey& key,
                        std::span<const std::byte> payload) {
  CacheHeader header{};
  std::memcpy(header.magic, kCacheMagic, sizeof kCacheMagic);
  header.library_version = TUFF_VERSION;
  header.header_bytes = sizeof(CacheHeader);
  std::memcpy(header.driver, driver.data(), driver.size());
  header.key_high = key.high;
  header.key_low = key.low;
  header.payload_bytes = payload.size();
  header.checksum = XXH3_64bits(payload.data(), payload.size());
  return header;
}

constexpr size_t kSealed = offsetof(CacheHeader, seal);  // number of bytes that a seal covers

// Protects against damage and mistakes, not against attackers: whoever can write here can also write programs.
uint64_t seal_of(const CacheHeader& header) {
  constexpr uint64_t kSeed = 0x5441'4b45'4e20'6f6b;
  return XXH3_64bits_withSeed(&header, kSealed, kSeed);
}

// What this process knows of the folder to which it stored last. It is not a cache's own: a process may open a context
// for each of many short tasks, and to list a folder of ten thousand entries takes a tenth of a second.
struct Listed {
  uint64_t folder = 0;  // a hash of its path
  uint64_t bound = 0;
  std::optional<uint64_t> bytes;  // in it when it was last listed
  uint64_t since = 0;             // bytes stored by this process since then
};

}  // namespace

CacheKey hash_text(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

DiskCache::DiskCache(const std::array<uint8_t, 16>& driver)
    : DiskCache(driver, platform::cache_directory(), cache_bound()) {
  if (!folder_) log(TUFF_LOG_WARNING, "no cache folder: kernels are compiled again in every process");
}

DiskCache::DiskCache(const std::array<uint8_t, 16>& driver, std::optional<std::filesystem::path> folder, uint64_t bound)
    : driver_(driver), folder_(std::move(folder)), bound_(bound) {}

uint64_t DiskCache::short_driver() const {
  uint64_t driver;
  std::memcpy(&driver, driver_.data(), sizeof driver);
  return driver;
}

std::filesystem::path DiskCache::path(const std::string& kind, const CacheKey& key) const {
  return *folder_ / cache_name({kind, short_driver(), key.high, key.low});
}

platform::FileLock DiskCache::lock(const std::string& kind, std::chrono::milliseconds patience) const {
  return platform::FileLock(folder_ ? lock_path(kind) : std::filesystem::path(), patience);
}

std::filesystem::path DiskCache::lock_path(const std::string& kind) const {
  return *folder_ / fmt::format("{}-{:016x}.lock", kind, short_driver());
}

bool DiskCache::fits(uint64_t bytes) const noexcept {
  return bytes + sizeof(CacheHeader) <= std::min(kMaxCacheEntryBytes, bound_);
}

std::optional<std::vector<std::byte>> DiskCache::load_sealed(const std::string& kind, const CacheKey& key) const {
  bool sealed = false;
  std::optional<std::vector<std::byte>> bytes = load(kind, key, &sealed);
  if (!bytes || sealed) return bytes;
  log(TUFF_LOG_WARNING, "cache: {} is not data that a driver has accepted before; ignored",
      path(kind, key).filename().string());
  return std::nullopt;
}

std::optional<std::vector<std::byte>> DiskCache::load(const std::string& kind, const CacheKey& key,
                                                      bool* sealed) const {
  if (!folder_) return std::nullopt;
  std::optional<std::vector<std::byte>> file = platform::read_file(path(kind, key), kMaxCacheEntryBytes);
  if (!file || file->size() < sizeof(CacheHeader)) return std::nullopt;
  const std::span<const std::byte> payload = std::span<const std::byte>(*file).subspan(sizeof(CacheHeader));
  const CacheHeader expected = make_header(driver_, key, payload);
  if (std::memcmp(file->data(), &expected, kSealed) != 0) {
    log(TUFF_LOG_INFO, "cache: {} is damaged or of another version; ignored", path(kind, key).filename().string());
    return std::nullopt;
  }
  uint64_t seal;
  std::memcpy(&seal, file->data() + kSealed, sizeof seal);
  if (sealed != nullptr) *sealed = seal == seal_of(expected);
  touch_entry(path(kind, key));
  file->erase(file->begin(), file->begin() + sizeof(CacheHeader));
  return file;
}

// Concurrent readers see either the seal or none.
void DiskCache::seal(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes) const {
  if (!folder_) return;
  const CacheHeader header = make_header(driver_, key, bytes);
  const uint64_t seal = seal_of(header);
  platform::overwrite(path(kind, key), std::as_bytes(std::span(&header, 1)).first(kSealed), kSealed,
                      std::as_bytes(std::span(&seal, 1)));
}

void DiskCache::remove(const std::string& kind, const CacheKey& key) const noexcept {
  if (!folder_) return;
  try {
    std::error_code ignored;
    std::filesystem::remove(path(kind, key), ignored);
  } catch (const std::exception& error) {  // no memory for the name
    log(TUFF_LOG_INFO, "cache: a {} entry is not removed: {}", kind, error.what());
  }
}

std::filesystem::path DiskCache::trial_path(const std::string& kind, const CacheKey& key) const {
  std::filesystem::path trial = path(kind, key);
  trial += kTrialSuffix;
  return trial;
}

void DiskCache::store(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes,
                      Seal seal) const noexcept {
  if (!folder_) return;
  try {
    write(kind, key, bytes, seal);
  } catch (const std::exception& error) {
    log(TUFF_LOG_INFO, "cache: a {} entry is not kept: {}", kind, error.what());
  }
}

void DiskCache::write(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes, Seal seal) const {
  if (!fits(bytes.size())) {
    return log(TUFF_LOG_INFO, "cache: a {} entry of {} bytes is too large to keep", kind, bytes.size());
  }
  CacheHeader header = make_header(driver_, key, bytes);
  if (seal == Seal::sealed) header.seal = seal_of(header);
  std::vector<std::byte> file(sizeof header + bytes.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::copy(bytes.begin(), bytes.end(), file.begin() + sizeof header);
  if (!platform::write_file_atomically(path(kind, key), file)) {
    return log(TUFF_LOG_INFO, "cache: {} could not be written", path(kind, key).filename().string());
  }
  keep_bound(file.size());
}

// Lists the folder for the first entry of a process, and whenever it may be full. Other processes may have stored up to
// an eighth of the bound in the meantime.
void DiskCache::keep_bound(uint64_t stored) const {
  static constinit Mutex mutex(LockRank::disk_cache);
  static constinit Listed listed;
  std::unique_lock lock(mutex);
  const std::string& path = folder_->native();
  const uint64_t folder = XXH3_64bits(path.data(), path.size());
  if (listed.folder != folder || listed.bound != bound_) listed = {folder, bound_, std::nullopt, 0};
  listed.since += stored;
  if (listed.bytes && *listed.bytes + listed.since <= bound_ && listed.since <= bound_ / 8) return;
  const uint64_t left = trim_cache(*folder_, bound_, short_driver());
  // If nothing can be removed, don't list again for every entry.
  listed.bytes = left <= bound_ ? left : bound_ - bound_ / 8;
  listed.since = 0;
  lock.unlock();
  if (left > bound_) log(TUFF_LOG_INFO, "cache: {} bytes, and no more can be removed", left);
}

}  // namespace tuff
