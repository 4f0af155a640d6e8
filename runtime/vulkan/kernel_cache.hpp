// Pipelines by what was asked for: GLSL → SPIR-V (compiled, or read from disk) → VkPipeline.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "planning/recorder.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/disk_cache.hpp"
#include "runtime/vulkan/kernel_list.hpp"
#include "runtime/vulkan/pipeline_file.hpp"
#include "runtime/vulkan/prewarm.hpp"

namespace tuff {

class KernelCache {
 public:
  // Bytes of push constants that every device has; bases and parameters share them.
  static constexpr uint32_t kPushBytes = 128;

  explicit KernelCache(std::shared_ptr<Device> device);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  // Builds the pipeline the first time. The caller holds the context's lock.
  const Pipeline& get(const KernelRequest& kernel, const KernelForm& form);

  // Writes the driver's pipeline cache to disk if pipelines were made since the last time, and which they were.
  // The caller holds the context's lock.
  void save() noexcept;

  // Begins to build, in a thread, what earlier contexts of such a device have asked for. At most once.
  void prewarm();

  DiskCache& disk() { return disk_; }
  VkPipelineCache driver_cache() const { return driver_cache_; }
  // A pipeline was made elsewhere, with the driver's cache.
  void note_pipeline(bool from_disk) {
    ++(from_disk ? disk_hits_ : compiled_);
    ++built_;
    unsaved_ = true;
  }

  struct Counters {
    uint64_t compiled = 0, disk_hits = 0, pipelines = 0, hits = 0, prewarmed = 0, to_prewarm = 0;
  };
  Counters counters() const noexcept;

 private:
  // What a call asks for is looked up where it lies: half a kilobyte that is copied only to be kept.
  struct Key {
    KernelRequest kernel;
    KernelForm form;
  };
  struct KeyView {
    const KernelRequest& kernel;
    KernelForm form;
    KeyView(const KernelRequest& asked_kernel, const KernelForm& asked_form) : kernel(asked_kernel), form(asked_form) {}
    KeyView(const Key& key) : KeyView(key.kernel, key.form) {}
  };
  struct KeyHash {
    using is_transparent = void;
    size_t operator()(const KeyView& key) const noexcept;
  };
  struct KeyEqual {
    using is_transparent = void;
    bool operator()(const KeyView& a, const KeyView& b) const noexcept;
  };
  struct Layout {
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkPipelineLayout pipeline = VK_NULL_HANDLE;
  };

  // The kernel's place among the recent ones.
  static size_t recent_place(const KernelRequest& kernel) noexcept;
  Pipeline make(const Key& key);
  // These may be called by several threads at once.
  const Layout& layout(uint32_t operands, bool addresses);
  std::vector<uint32_t> spirv(const Key& key);
  Pipeline build(const Key& key);

  std::shared_ptr<Device> device_;
  DiskCache disk_;
  PipelineFile file_;
  KernelList list_;
  std::mutex layout_mutex_;
  using Pipelines = std::unordered_map<Key, Pipeline, KeyHash, KeyEqual>;
  Pipelines pipelines_;
  // What was asked for last: most calls ask for one of these, and to compare takes half as long as to look up.
  std::array<const Pipelines::value_type*, 16> recent_{};
  Layout layouts_[2][Dispatch::kMaxSlots + 1];  // [addresses][slots]
  VkPipelineCache driver_cache_ = VK_NULL_HANDLE;
  std::atomic<bool> unsaved_{false};
  std::atomic<uint64_t> compiled_{0}, disk_hits_{0}, built_{0};
  uint64_t hits_ = 0;
  std::unique_ptr<Prewarm> prewarm_;
};

}  // namespace tuff
