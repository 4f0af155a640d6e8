// A thread that builds pipelines before they are requested, while the context's callers continue.
//
// A pipeline is built once, either by the thread or by the caller who requests it first; a second requester waits for
// it. While a caller builds a pipeline, the thread starts no new one, so that a caller competes with at most one build.
// Neither side holds a lock while building. A caller may hold the backend's lock; the thread never takes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "platform/mutex.hpp"
#include "runtime/vulkan/kernel_list.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {

// A kernel that can be launched: a pipeline, or a function in PTX.
struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;  // shared with others
  VkCuModuleNVX module = VK_NULL_HANDLE;
  VkCuFunctionNVX function = VK_NULL_HANDLE;
  uint32_t threads = 0, shared_bytes = 0;  // of a block of the function
};

class Prewarm {
 public:
  using Build = std::function<Pipeline(const ListedKernel&)>;  // throws on failure

  using Done = std::function<void(uint64_t built)>;

  // The thread calls `done` when it has finished the list.
  Prewarm(std::vector<ListedKernel> kernels, Build build, Done done);
  ~Prewarm();
  Prewarm(const Prewarm&) = delete;
  Prewarm& operator=(const Prewarm&) = delete;

  // Starts no more pipelines, waits for the one in progress and ends the thread.
  void stop() noexcept;

  // A caller's request for a pipeline. If the thread has built it, or is building it, pipeline() returns it; otherwise
  // the caller has to build it, and the thread starts none during the lifetime of this object.
  class Turn {
   public:
    Turn(Prewarm* prewarm, const std::string& line);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    const std::optional<Pipeline>& pipeline() const noexcept { return pipeline_; }

   private:
    Prewarm* prewarm_;  // null: no thread
    std::optional<Pipeline> pipeline_;
  };

  // Visits the pipelines that no caller has requested. The thread must have ended.
  template <typename Visit>
  void each_leftover(const Visit& visit) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [line, item] : items_) {
      if (item.state == State::built) visit(item.pipeline);
    }
  }

  uint64_t built() const noexcept { return built_.load(std::memory_order_relaxed); }
  uint64_t to_build() const noexcept { return to_build_.load(std::memory_order_relaxed); }

 private:
  enum class State : uint8_t { listed, building, built, taken };
  struct Item {
    State state = State::listed;
    Pipeline pipeline{};
  };

  void run();

  const std::vector<ListedKernel> kernels_;
  const Build build_;
  const Done done_;
  mutable Mutex mutex_{LockRank::prewarm};
  Condition changed_;
  std::unordered_map<std::string, Item> items_;  // by line
  uint32_t callers_ = 0;                         // callers that are building
  bool stopping_ = false;
  std::atomic<uint64_t> built_{0}, to_build_{0};
  Mutex joining_{LockRank::prewarm_joining};
  std::thread thread_;
};

}  // namespace tuff
