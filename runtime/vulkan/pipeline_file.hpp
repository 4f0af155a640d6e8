// The driver's pipeline cache on disk, which processes share. Each adds what it made to what the others did: a writer
// holds a lock file while it reads what is there, merges and renames. Readers take no lock, and see all or nothing.
//
// The driver takes what is in it for its own, and dies of what is not. Who reads what no process has come back from yet
// leaves a marker beside it until it has: found without its process, the marker says that the file is to go. Of several
// processes that begin with it at once, one does.
#pragma once

#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/vulkan/disk_cache.hpp"

namespace tuff {

class PipelineFile {
 public:
  // Functions of this device, which a test may have replaced.
  PipelineFile(const VolkDeviceTable& vk, VkDevice device, const DiskCache& disk)
      : vk_(vk), device_(device), disk_(disk) {}

  // What to begin the driver's cache with; empty: nothing is there.
  std::vector<std::byte> load();
  // The device has carried out what was made with it.
  bool on_trial() const noexcept { return trial_ != nullptr; }
  void came_back();
  // It was lost over it: what is there is dropped.
  void was_lost() noexcept;
  // Stores what `cache` holds and what is on disk. Others may make pipelines with the cache meanwhile, and any
  // thread may call it. Failure to write is no error: the next process makes its pipelines again.
  void save(VkPipelineCache cache);

 private:
  std::vector<std::byte> data_of(VkPipelineCache cache) const;
  bool try_out(std::unique_ptr<platform::TrialMarker>& marker) const;
  std::vector<std::byte> merged(VkPipelineCache cache, const std::vector<std::byte>& stored) const;

  const VolkDeviceTable& vk_;
  VkDevice device_;
  const DiskCache& disk_;
  std::mutex mutex_;  // of saving
  std::unique_ptr<platform::TrialMarker> trial_;
  std::vector<std::byte> tried_;  // what that is of
  uint64_t known_ = 0;            // hash of what was on disk last, all of which our cache holds; 0: nothing was
};

}  // namespace tuff
