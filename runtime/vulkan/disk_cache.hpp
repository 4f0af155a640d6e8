// Small files in the user's cache folder. Each has a header: magic, library version, the driver's identity, and the
// entry's key, size and checksum. An entry that does not match is treated as absent. Files are written under a
// temporary name and renamed, so that readers in other processes see all of a file or nothing.
//
// Data that is passed to the driver is sealed: the header records that a driver has accepted exactly these bytes
// without crashing. Bytes altered later are not sealed, even with a matching checksum.
//
// The cache has a total size limit: storing evicts the least recently used entries (runtime/cache_folder.hpp).
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "platform/platform.hpp"
#include "runtime/cache_folder.hpp"

namespace tuff {

struct CacheKey {
  uint64_t high = 0, low = 0;
  bool operator==(const CacheKey&) const = default;
};

// Thread-safe.
class DiskCache {
 public:
  // `driver` identifies the device and the driver build; entries of other drivers are ignored. Zero: entries for all
  // drivers.
  explicit DiskCache(const std::array<uint8_t, 16>& driver);
  // In another cache's folder, or in one that a test chooses. nullopt: nothing is stored.
  DiskCache(const std::array<uint8_t, 16>& driver, std::optional<std::filesystem::path> folder,
            uint64_t bound = kDefaultCacheBytes);

  // `kind` becomes part of the file name and consists of letters and '_': "spirv", "pipelines", "binding".
  std::optional<std::vector<std::byte>> load(const std::string& kind, const CacheKey& key,
                                             bool* sealed = nullptr) const;
  // The same for sealed entries only.
  std::optional<std::vector<std::byte>> load_sealed(const std::string& kind, const CacheKey& key) const;
  // A failure to write, or a lack of memory for it, is not an error: the next process computes the entry again. Callers
  // store what they have just made of it, and need not give that up.
  enum class Seal : uint8_t { none, sealed };
  void store(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes,
             Seal seal = Seal::none) const noexcept;

  // Seals an entry that could not be sealed when it was stored. In place, unless another process has replaced it.
  void seal(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes) const;
  void remove(const std::string& kind, const CacheKey& key) const noexcept;
  std::filesystem::path trial_path(const std::string& kind, const CacheKey& key) const;

  // Whether an entry of this size would be stored.
  bool fits(uint64_t bytes) const noexcept;
  // A lock against other processes that add to an entry of this kind; hold it from reading to storing. Waits for at
  // most so long and is then not held, so that a stopped process only costs what it would have added. Holders who only
  // read and write have it for milliseconds.
  platform::FileLock lock(const std::string& kind,
                          std::chrono::milliseconds patience = std::chrono::milliseconds(500)) const;
  std::filesystem::path lock_path(const std::string& kind) const;  // next to the entries, but not one of them

  const std::optional<std::filesystem::path>& folder() const noexcept { return folder_; }
  uint64_t bound() const noexcept { return bound_; }

 private:
  void write(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes, Seal seal) const;
  std::filesystem::path path(const std::string& kind, const CacheKey& key) const;
  uint64_t short_driver() const;
  void keep_bound(uint64_t stored) const;

  std::array<uint8_t, 16> driver_;
  std::optional<std::filesystem::path> folder_;
  uint64_t bound_;
};

CacheKey hash_text(std::string_view text);

}  // namespace tuff
