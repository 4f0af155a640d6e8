// Pipelines by what was asked for: GLSL → SPIR-V (compiled, or read from disk) → VkPipeline.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planning/recorder.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/disk_cache.hpp"
#include "runtime/vulkan/kernel_list.hpp"
#include "runtime/vulkan/pipeline_file.hpp"
#include "runtime/vulkan/prewarm.hpp"

namespace tuff {

class RetiredPipelines;
class Timelines;

// A pipeline as the cache has it, until it has to make room for others.
struct CachedPipeline : Pipeline {
  explicit CachedPipeline(const Pipeline& pipeline) : Pipeline(pipeline) {}
  uint64_t used = 0;                       // larger than what was used before it
  mutable std::atomic<uint32_t> pins = 0;  // of graphs, whose command buffers name it
};

// While it lives, the pipeline does.
class PipelinePin {
 public:
  explicit PipelinePin(const CachedPipeline& pipeline) : pipeline_(&pipeline) { ++pipeline_->pins; }
  PipelinePin(PipelinePin&& other) noexcept : pipeline_(std::exchange(other.pipeline_, nullptr)) {}
  PipelinePin& operator=(PipelinePin&& other) noexcept {
    std::swap(pipeline_, other.pipeline_);
    return *this;
  }
  ~PipelinePin() {
    if (pipeline_ != nullptr) --pipeline_->pins;
  }

 private:
  const CachedPipeline* pipeline_;
};

class KernelCache {
 public:
  // About 0.6 MB each on Mesa's driver for processors: machine code by LLVM, and what it was made from.
  static constexpr uint64_t kDefaultPipelines = 512;
  // Bytes of push constants that every device has; bases and parameters share them.
  static constexpr uint32_t kPushBytes = 128;

  explicit KernelCache(std::shared_ptr<Device> device);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  // Builds the pipeline the first time. The caller holds the context's lock.
  const CachedPipeline& get(const KernelRequest& kernel, const KernelForm& form);

  // Where those go that make room for others, once these are done with them. Without it all stay.
  void evict_to(RetiredPipelines& retired, const Timelines& timelines) {
    retired_ = &retired;
    timelines_ = &timelines;
  }
  // How many pipelines are kept, beside those that graphs hold. 0: the default.
  void set_limit(uint64_t pipelines);

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
    uint64_t compiled = 0, disk_hits = 0, pipelines = 0, hits = 0, prewarmed = 0, to_prewarm = 0, live = 0, evicted = 0;
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
  void make_room(const CachedPipeline* wanted);
  // These may be called by several threads at once.
  const Layout& layout(uint32_t operands, bool addresses);
  struct Spirv {
    std::vector<uint32_t> words;
    std::optional<CacheKey> to_store;  // it was compiled, and is kept under this name
  };
  Spirv spirv(const Key& key);
  Pipeline build(const Key& key);

  std::shared_ptr<Device> device_;
  DiskCache disk_;
  PipelineFile file_;
  KernelList list_;
  std::mutex layout_mutex_;
  using Pipelines = std::unordered_map<Key, CachedPipeline, KeyHash, KeyEqual>;
  Pipelines pipelines_;
  // What was asked for last: most calls ask for one of these, and to compare takes half as long as to look up.
  std::array<Pipelines::value_type*, 16> recent_{};
  Layout layouts_[2][Dispatch::kMaxSlots + 1];  // [addresses][slots]
  VkPipelineCache driver_cache_ = VK_NULL_HANDLE;
  std::atomic<bool> unsaved_{false};
  std::atomic<uint64_t> compiled_{0}, disk_hits_{0}, built_{0};
  uint64_t hits_ = 0, uses_ = 0, evicted_ = 0, limit_ = kDefaultPipelines;
  RetiredPipelines* retired_ = nullptr;
  const Timelines* timelines_ = nullptr;
  std::unique_ptr<Prewarm> prewarm_;
};

}  // namespace tuff
