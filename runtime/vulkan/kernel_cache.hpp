// Pipelines by what was asked for: GLSL → SPIR-V (compiled, or read from disk) → VkPipeline.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/disk_cache.hpp"
#include "runtime/vulkan/recorder.hpp"

namespace tuff {

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
};

class KernelCache {
 public:
  // Bytes of push constants that every device has; bases and parameters share them.
  static constexpr uint32_t kPushBytes = 128;

  explicit KernelCache(std::shared_ptr<Device> device);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  // Builds the pipeline the first time. The caller holds the context's lock.
  const Pipeline& get(const KernelRequest& kernel, uint32_t operands, bool addresses);

  // Writes the driver's pipeline cache to disk if pipelines were made since the last time.
  void save();

  DiskCache& disk() { return disk_; }
  VkPipelineCache driver_cache() const { return driver_cache_; }
  // A pipeline was made elsewhere, with the driver's cache.
  void note_pipeline(bool from_disk) {
    ++(from_disk ? counters_.disk_hits : counters_.compiled);
    ++counters_.pipelines;
    unsaved_ = true;
  }

  struct Counters {
    uint64_t compiled = 0, disk_hits = 0, pipelines = 0, hits = 0;
  };
  const Counters& counters() const noexcept { return counters_; }

 private:
  // A request with how its operands are bound; fixed size, so that a look-up allocates nothing.
  struct Key {
    KernelRequest kernel;
    uint32_t operands;
    bool addresses;
    bool operator==(const Key& other) const noexcept;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const noexcept;
  };
  struct Layout {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };

  const Layout& layout(uint32_t operands, bool addresses);
  std::vector<uint32_t> spirv(const Key& key);
  Pipeline build(const Key& key);

  std::shared_ptr<Device> device_;
  DiskCache disk_;
  std::unordered_map<Key, Pipeline, KeyHash> pipelines_;
  Layout layouts_[2][Dispatch::kMaxOperands + 1];  // [addresses][operands]
  VkPipelineCache driver_cache_ = VK_NULL_HANDLE;
  bool unsaved_ = false;
  Counters counters_;
};

}  // namespace tuff
