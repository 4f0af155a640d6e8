// The driver's pipeline cache on disk, shared by processes. Each process adds its pipelines to those of the others: a
// writer holds a lock file while it reads the file, merges and renames. Readers take no lock, and see all of a file or
// nothing.
//
// Drivers trust the contents and crash on bad data. A process that loads data which no process has used successfully
// yet leaves a marker file beside it until it has done so. A marker whose process no longer exists means that the data
// is to be deleted. If several processes try the same data at once, one of them holds the marker.
#pragma once

#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "platform/mutex.hpp"
#include "runtime/vulkan/disk_cache.hpp"

namespace tuff {

class PipelineFile {
 public:
  // Functions of this device, which a test may have replaced.
  PipelineFile(const VolkDeviceTable& vk, VkDevice device, const DiskCache& disk)
      : vk_(vk), device_(device), disk_(disk) {}

  // Initial data for the driver's cache; empty if there is none.
  std::vector<std::byte> load();
  // True while the loaded data is on trial. came_back(): the device has executed work that was created with it.
  bool on_trial() const noexcept { return trial_ != nullptr; }
  void came_back();
  // The device was lost during the trial: the data is deleted.
  void was_lost() noexcept;
  // Stores the contents of `cache` merged with what is on disk. Thread-safe; other threads may create pipelines with
  // the cache meanwhile. A failure to write is not an error: the next process builds its pipelines again.
  void save(VkPipelineCache cache);
  // The same, unless another thread is saving: returns false, without waiting for it.
  bool try_save(VkPipelineCache cache);

 private:
  void save_locked(VkPipelineCache cache);
  std::vector<std::byte> data_of(VkPipelineCache cache) const;
  bool try_out(std::unique_ptr<platform::TrialMarker>& marker) const;
  std::vector<std::byte> merged(VkPipelineCache cache, const std::vector<std::byte>& stored) const;

  const VolkDeviceTable& vk_;
  VkDevice device_;
  const DiskCache& disk_;
  Mutex mutex_{LockRank::pipeline_file};  // serialises saving
  std::unique_ptr<platform::TrialMarker> trial_;
  std::vector<std::byte> tried_;  // the data on trial
  uint64_t known_ = 0;            // hash of the last contents seen on disk, all of which our cache holds; 0: none
};

}  // namespace tuff
