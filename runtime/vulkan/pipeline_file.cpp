#include "runtime/vulkan/pipeline_file.hpp"

#include <xxhash.h>

#include <optional>

#include "planning/log.hpp"

namespace tuff {
namespace {

constexpr const char* kKind = "pipelines";

uint64_t hash_of(const std::vector<std::byte>& bytes) {
  return bytes.empty() ? 0 : XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

std::vector<std::byte> PipelineFile::load() {
  std::vector<std::byte> stored = disk_.load(kKind, {}).value_or(std::vector<std::byte>());
  known_ = hash_of(stored);
  return stored;
}

std::vector<std::byte> PipelineFile::data_of(VkPipelineCache cache) const {
  size_t bytes = 0;
  if (vk_.vkGetPipelineCacheData(device_, cache, &bytes, nullptr) != VK_SUCCESS) return {};
  std::vector<std::byte> data(bytes);
  // VK_INCOMPLETE: it has grown meanwhile. What came whole is valid.
  if (bytes == 0 || vk_.vkGetPipelineCacheData(device_, cache, &bytes, data.data()) < 0) return {};
  data.resize(bytes);
  return data;
}

// In a cache of its own: ours may be in use. Empty where the driver cannot.
std::vector<std::byte> PipelineFile::merged(VkPipelineCache cache, const std::vector<std::byte>& stored) const {
  VkPipelineCacheCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  info.initialDataSize = stored.size();
  info.pInitialData = stored.data();
  VkPipelineCache both = VK_NULL_HANDLE;
  if (vk_.vkCreatePipelineCache(device_, &info, nullptr, &both) != VK_SUCCESS) return {};
  std::vector<std::byte> data;
  if (vk_.vkMergePipelineCaches(device_, both, 1, &cache) == VK_SUCCESS) data = data_of(both);
  vk_.vkDestroyPipelineCache(device_, both, nullptr);
  return data;
}

void PipelineFile::save(VkPipelineCache cache) {
  if (!disk_.folder()) return;
  const std::lock_guard saving(mutex_);
  const platform::FileLock lock = disk_.lock(kKind);
  if (!lock.held()) log(TUFF_LOG_INFO, "cache: another process keeps the lock on the pipelines; written without it");
  const std::optional<std::vector<std::byte>> stored = disk_.load(kKind, {});
  std::vector<std::byte> data;
  if (stored && hash_of(*stored) != known_) data = merged(cache, *stored);
  // Nobody else has written, or both together are too much: then the younger ones alone.
  if (data.empty() || !disk_.fits(data.size())) data = data_of(cache);
  if (data.empty()) return;
  disk_.store(kKind, {}, data);
  // Of a merge, ours holds a part alone: what others have added is to be merged the next time again.
  known_ = stored && hash_of(*stored) != known_ ? known_ : hash_of(data);
}

}  // namespace tuff
