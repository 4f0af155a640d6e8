// The driver's pipeline cache on disk, which processes share. Each adds what it made to what the others did: a writer
// holds a lock file while it reads what is there, merges and renames. Readers take no lock, and see all or nothing.
#pragma once

#include <volk.h>

#include <cstddef>
#include <cstdint>
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
  // Stores what `cache` holds and what is on disk. Others may make pipelines with the cache meanwhile, and any
  // thread may call it. Failure to write is no error: the next process makes its pipelines again.
  void save(VkPipelineCache cache);

 private:
  std::vector<std::byte> data_of(VkPipelineCache cache) const;
  std::vector<std::byte> merged(VkPipelineCache cache, const std::vector<std::byte>& stored) const;

  const VolkDeviceTable& vk_;
  VkDevice device_;
  const DiskCache& disk_;
  std::mutex mutex_;    // of saving
  uint64_t known_ = 0;  // hash of what was on disk last, all of which our cache holds; 0: nothing was
};

}  // namespace tuff
