#include "runtime/vulkan/pipeline_file.hpp"

#include <xxhash.h>

#include <optional>

#include "planning/log.hpp"

namespace tuff {
namespace {

constexpr const char* kPipelines = "pipelines";

uint64_t hash_bytes(const std::vector<std::byte>& bytes) {
  return bytes.empty() ? 0 : XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

// Whether the data on disk may be tried: with a new marker, or while another process holds one. Data that crashed a
// process is deleted.
bool PipelineFile::try_out(std::unique_ptr<platform::TrialMarker>& marker) const {
  auto found = std::make_unique<platform::TrialMarker>(disk_.trial_path(kPipelines, {}));
  switch (found->state()) {
    case platform::TrialMarker::State::taken: marker = std::move(found); return true;
    case platform::TrialMarker::State::busy: return true;
    case platform::TrialMarker::State::left_behind:
      log(TUFF_LOG_WARNING, "cache: a process crashed on the driver's pipelines in {}; they are compiled again",
          disk_.folder()->string());
      disk_.remove(kPipelines, {});
      return false;
    case platform::TrialMarker::State::impossible: break;
  }
  log(TUFF_LOG_INFO,
      "cache: the driver's pipelines have not been tried yet, and no marker of a trial can be "
      "written; they are compiled again");
  return false;
}

std::vector<std::byte> PipelineFile::load() {
  bool sealed = false;
  std::vector<std::byte> stored = disk_.load(kPipelines, {}, &sealed).value_or(std::vector<std::byte>());
  if (!stored.empty() && !sealed) {
    if (!try_out(trial_)) stored.clear();
    if (trial_ != nullptr) tried_ = stored;
  }
  known_ = hash_bytes(stored);
  return stored;
}

void PipelineFile::came_back() {
  const std::lock_guard saving(mutex_);
  if (trial_ == nullptr) return;
  disk_.seal(kPipelines, {}, tried_);
  trial_.reset();
  tried_ = {};
}

void PipelineFile::was_lost() noexcept {
  const std::lock_guard saving(mutex_);
  if (trial_ != nullptr) disk_.remove(kPipelines, {});
  trial_.reset();
}

std::vector<std::byte> PipelineFile::data_of(VkPipelineCache cache) const {
  size_t bytes = 0;
  if (vk_.vkGetPipelineCacheData(device_, cache, &bytes, nullptr) != VK_SUCCESS) return {};
  std::vector<std::byte> data(bytes);
  // VK_INCOMPLETE: the cache has grown in the meantime. What was returned is complete and valid.
  if (bytes == 0 || vk_.vkGetPipelineCacheData(device_, cache, &bytes, data.data()) < 0) return {};
  data.resize(bytes);
  return data;
}

// Merges into a separate cache, because ours may be in use. Empty if the driver fails.
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
  const std::lock_guard saving(mutex_);
  save_locked(cache);
}

bool PipelineFile::try_save(VkPipelineCache cache) {
  const std::unique_lock saving(mutex_, std::try_to_lock);
  if (!saving) return false;
  save_locked(cache);
  return true;
}

void PipelineFile::save_locked(VkPipelineCache cache) {
  if (!disk_.folder()) return;
  const platform::FileLock lock = disk_.lock(kPipelines);
  if (!lock.held()) log(TUFF_LOG_INFO, "cache: another process holds the lock on the pipelines; written without it");
  bool sealed = false;
  const std::optional<std::vector<std::byte>> stored = disk_.load(kPipelines, {}, &sealed);
  std::vector<std::byte> data;
  if (stored && hash_bytes(*stored) != known_) {
    std::unique_ptr<platform::TrialMarker> trial;
    if (sealed || trial_ != nullptr || try_out(trial)) data = merged(cache, *stored);
  }
  // No other process has written, or the merged data is too large: store this process's pipelines only.
  if (data.empty() || !disk_.fits(data.size())) data = data_of(cache);
  if (data.empty()) return;
  disk_.store(kPipelines, {}, data);
  // Our cache holds only part of merged data: keep known_, so that the others' additions are merged again next time.
  known_ = stored && hash_bytes(*stored) != known_ ? known_ : hash_bytes(data);
}

}  // namespace tuff
