// Pipelines by kernel request: GLSL → SPIR-V (compiled, or read from disk) → VkPipeline.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planning/recorder.hpp"
#include "platform/mutex.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/disk_cache.hpp"
#include "runtime/vulkan/kernel_list.hpp"
#include "runtime/vulkan/pipeline_file.hpp"
#include "runtime/vulkan/prewarm.hpp"

namespace tuff {

class RetiredPipelines;
class Timelines;

// A pipeline in the cache, until it is evicted.
struct CachedPipeline : Pipeline {
  explicit CachedPipeline(const Pipeline& pipeline) : Pipeline(pipeline) {}
  uint64_t used = 0;                       // time of last use: grows with every use of any pipeline
  mutable std::atomic<uint32_t> pins = 0;  // by graphs, whose command buffers refer to it
};

// Keeps a pipeline from being evicted.
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
  // About 0.6 MB each on lavapipe: LLVM's machine code and its intermediate data.
  static constexpr uint64_t kDefaultPipelines = 512;
  // Every device supports at least this many bytes of push constants; bases and parameters share them.
  static constexpr uint32_t kPushBytes = 128;

  explicit KernelCache(std::shared_ptr<Device> device);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  // Builds the pipeline the first time. The caller holds the context's lock.
  const CachedPipeline& get(const KernelRequest& kernel, const KernelForm& form);

  // Enables eviction: evicted pipelines go to `retired` until the streams have finished with them. Without it all are
  // kept.
  void evict_to(RetiredPipelines& retired, const Timelines& timelines) {
    retired_ = &retired;
    timelines_ = &timelines;
  }
  // Maximum number of pipelines, not counting those pinned by graphs. 0: the default.
  void set_limit(uint64_t pipelines);

  // If pipelines were built since the last time, writes the driver's pipeline cache and the list of kernels to disk.
  // The caller holds the context's lock.
  void save() noexcept;

  // Starts a thread that builds the kernels that earlier contexts of such a device used. At most once.
  void prewarm();

  DiskCache& disk() { return disk_; }
  VkPipelineCache driver_cache() const { return driver_cache_; }
  // Counts a pipeline that was created elsewhere with the driver's cache.
  void note_pipeline(bool from_disk) {
    ++(from_disk ? disk_hits_ : compiled_);
    ++built_;
    unsaved_ = true;
  }

  struct Counters {
    uint64_t compiled = 0, disk_hits = 0, pipelines = 0, hits = 0, prewarmed = 0, to_prewarm = 0, live = 0, evicted = 0;
  };
  Counters counters() const noexcept;
  uint64_t evicted() const noexcept { return evicted_; }

 private:
  // Half a kilobyte, so look-ups use a view; a key is copied only when it is stored.
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

  // The kernel's index in recent_.
  static size_t recent_place(const KernelRequest& kernel) noexcept;
  Pipeline make(const Key& key);
  void make_room(const CachedPipeline* wanted);
  // The functions below may be called by several threads at once.
  VkPipelineLayout layout(const KernelForm& form);
  Layout& kept_layout(const KernelForm& form);
  void destroy(const Layout& layout) noexcept;
  struct Spirv {
    std::vector<uint32_t> words;
    std::optional<CacheKey> to_store;  // set if it was compiled: the key to store it under
  };
  Spirv spirv(const Key& key);
  Pipeline build(const Key& key);
  Pipeline build_native(const KernelRequest& kernel);
  void destroy(const Pipeline& pipeline) noexcept;

  std::shared_ptr<Device> device_;
  DiskCache disk_;
  PipelineFile file_;
  KernelList list_;
  Mutex layout_mutex_{LockRank::pipeline_layouts};
  using Pipelines = std::unordered_map<Key, CachedPipeline, KeyHash, KeyEqual>;
  Pipelines pipelines_;
  // The last pipelines requested. Most calls want one of these, and a comparison takes half as long as a look-up.
  std::array<Pipelines::value_type*, 16> recent_{};
  Layout layouts_[2][Dispatch::kMaxSlots + 1];                     // [addresses][slots]
  std::map<std::pair<uint32_t, uint64_t>, Layout> texel_layouts_;  // by slots, and which are texel buffers
  VkPipelineCache driver_cache_ = VK_NULL_HANDLE;
  std::atomic<bool> unsaved_{false};
  std::atomic<uint64_t> compiled_{0}, disk_hits_{0}, built_{0};
  uint64_t hits_ = 0, uses_ = 0, evicted_ = 0, limit_ = kDefaultPipelines;
  RetiredPipelines* retired_ = nullptr;
  const Timelines* timelines_ = nullptr;
  std::unique_ptr<Prewarm> prewarm_;
};

}  // namespace tuff
