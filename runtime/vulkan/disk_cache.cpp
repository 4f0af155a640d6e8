#include "runtime/vulkan/disk_cache.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "runtime/log.hpp"
#include "runtime/platform/platform.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

constexpr uint64_t kMaxEntryBytes = 64ull << 20;

struct Header {
  char magic[8];
  uint32_t library_version;
  uint32_t header_bytes;
  uint8_t driver[16];
  uint64_t key_high, key_low;
  uint64_t payload_bytes;
  uint64_t checksum;  // XXH3 of the payload
};
static_assert(sizeof(Header) == 64);

constexpr char kMagic[8] = {'T', 'U', 'F', 'F', 'C', 'A', 'C', 'H'};

Header make_header(const std::array<uint8_t, 16>& driver, const CacheKey& key, std::span<const std::byte> payload) {
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.library_version = TUFF_VERSION;
  header.header_bytes = sizeof(Header);
  std::memcpy(header.driver, driver.data(), driver.size());
  header.key_high = key.high;
  header.key_low = key.low;
  header.payload_bytes = payload.size();
  header.checksum = XXH3_64bits(payload.data(), payload.size());
  return header;
}

}  // namespace

CacheKey hash_text(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.high64, hash.low64};
}

DiskCache::DiskCache(const std::array<uint8_t, 16>& driver) : driver_(driver), folder_(platform::cache_directory()) {
  if (!folder_) log(TUFF_LOG_WARNING, "no cache folder: kernels are compiled anew in every process");
}

DiskCache::DiskCache(const std::array<uint8_t, 16>& driver, std::filesystem::path folder)
    : driver_(driver), folder_(std::move(folder)) {}

std::filesystem::path DiskCache::path(const std::string& kind, const CacheKey& key) const {
  uint64_t driver;
  std::memcpy(&driver, driver_.data(), sizeof driver);
  return *folder_ / fmt::format("{}-{:016x}-{:016x}{:016x}.bin", kind, driver, key.high, key.low);
}

std::optional<std::vector<std::byte>> DiskCache::load(const std::string& kind, const CacheKey& key) const {
  if (!folder_) return std::nullopt;
  std::optional<std::vector<std::byte>> file = platform::read_file(path(kind, key), kMaxEntryBytes);
  if (!file || file->size() < sizeof(Header)) return std::nullopt;
  const std::span<const std::byte> payload = std::span<const std::byte>(*file).subspan(sizeof(Header));
  const Header expected = make_header(driver_, key, payload);
  if (std::memcmp(file->data(), &expected, sizeof expected) != 0) {
    log(TUFF_LOG_INFO, "cache: {} is damaged or of another version; ignored", path(kind, key).filename().string());
    return std::nullopt;
  }
  file->erase(file->begin(), file->begin() + sizeof(Header));
  return file;
}

void DiskCache::store(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes) const {
  if (!folder_ || bytes.size() > kMaxEntryBytes - sizeof(Header)) return;
  const Header header = make_header(driver_, key, bytes);
  std::vector<std::byte> file(sizeof header + bytes.size());
  std::memcpy(file.data(), &header, sizeof header);
  std::copy(bytes.begin(), bytes.end(), file.begin() + sizeof header);
  if (!platform::write_file_atomically(path(kind, key), file)) {
    log(TUFF_LOG_INFO, "cache: {} could not be written", path(kind, key).filename().string());
  }
}

}  // namespace tuff
