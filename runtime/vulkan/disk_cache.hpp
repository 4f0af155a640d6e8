// Small files in the user's cache folder, each with a header of its own: magic, library version, the
// driver's identity, the entry's key, size and checksum. Whatever does not match is as good as absent.
// Files are written to a temporary name and renamed, so that readers in other processes see all or nothing.
// What is given to the driver is sealed: the header says that a driver has taken these very bytes and come back. Bytes
// that were altered since, with a checksum to match, are not.
// All files together keep a bound: storing removes what was not used for longest (runtime/cache_folder.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
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

// Any thread may call it.
class DiskCache {
 public:
  // `driver` identifies device and driver build: entries made under another are ignored. Zero: entries for all.
  explicit DiskCache(const std::array<uint8_t, 16>& driver);
  // In another's folder, or in one of a test's choice. nullopt: nothing is kept.
  DiskCache(const std::array<uint8_t, 16>& driver, std::optional<std::filesystem::path> folder,
            uint64_t bound = kDefaultCacheBytes);

  // `kind` becomes part of the file's name, letters and '_': "spirv", "pipelines", "binding".
  std::optional<std::vector<std::byte>> load(const std::string& kind, const CacheKey& key,
                                             bool* sealed = nullptr) const;
  // The same, of what is sealed; what is not is as good as absent.
  std::optional<std::vector<std::byte>> load_sealed(const std::string& kind, const CacheKey& key) const;
  // Failure to write is no error: the next process works it out again.
  enum class Seal : uint8_t { none, sealed };
  void store(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes,
             Seal seal = Seal::none) const;

  // Of an entry that cannot be sealed when it is stored. In its place, unless another process has replaced it.
  void seal(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes) const;
  void remove(const std::string& kind, const CacheKey& key) const noexcept;
  std::filesystem::path trial_path(const std::string& kind, const CacheKey& key) const;

  // Whether an entry of so many bytes is kept.
  bool fits(uint64_t bytes) const noexcept;
  // Locks out others who add to an entry of this kind: to be held from reading it to storing it. Waits for them half a
  // second at most, and is not held then: a process that was stopped meanwhile costs what it would have added.
  platform::FileLock lock(const std::string& kind) const;
  std::filesystem::path lock_path(const std::string& kind) const;  // beside the entries, and none itself

  const std::optional<std::filesystem::path>& folder() const noexcept { return folder_; }
  uint64_t bound() const noexcept { return bound_; }

 private:
  std::filesystem::path path(const std::string& kind, const CacheKey& key) const;
  uint64_t short_driver() const;
  void keep_bound(uint64_t stored) const;

  std::array<uint8_t, 16> driver_;
  std::optional<std::filesystem::path> folder_;
  uint64_t bound_;
  mutable std::mutex mutex_;
  mutable std::optional<uint64_t> listed_;  // bytes in the folder when it was last listed
  mutable uint64_t since_ = 0;              // bytes that were stored by this object since then
};

CacheKey hash_text(std::string_view text);

}  // namespace tuff
