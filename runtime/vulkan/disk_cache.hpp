// Small files in the user's cache folder, each with a header of its own: magic, library version, the
// driver's identity, the entry's key, size and checksum. Whatever does not match is as good as absent.
// Files are written to a temporary name and renamed, so that readers in other processes see all or nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tuff {

struct CacheKey {
  uint64_t high = 0, low = 0;
};

class DiskCache {
 public:
  // `driver` identifies device and driver build: entries made under another are ignored.
  explicit DiskCache(const std::array<uint8_t, 16>& driver);
  // In a folder of the caller's choice, for tests.
  DiskCache(const std::array<uint8_t, 16>& driver, std::filesystem::path folder);

  // `kind` becomes part of the file's name: "spirv", "pipelines", "binding".
  std::optional<std::vector<std::byte>> load(const std::string& kind, const CacheKey& key) const;
  // Failure to write is no error: the next process works it out again.
  void store(const std::string& kind, const CacheKey& key, std::span<const std::byte> bytes) const;

 private:
  std::filesystem::path path(const std::string& kind, const CacheKey& key) const;

  std::array<uint8_t, 16> driver_;
  std::optional<std::filesystem::path> folder_;  // nullopt: nothing is kept
};

CacheKey hash_text(std::string_view text);

}  // namespace tuff
