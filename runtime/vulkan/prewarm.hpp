// One thread that builds pipelines before they are asked for, while the context's callers go on.
//
// A pipeline is built once, by the thread or by the caller who asks for it first: who comes second waits for it. While
// a caller builds one the thread begins no other, so that he meets at most the one in progress. Neither side holds a
// lock while it builds. A caller may hold the backend's lock: the thread never takes it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "runtime/vulkan/kernel_list.hpp"
#include "runtime/vulkan/vk.hpp"

namespace tuff {

struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
};

class Prewarm {
 public:
  using Build = std::function<Pipeline(const ListedKernel&)>;  // throws where it cannot

  using Done = std::function<void(uint64_t built)>;

  // `done` is called by the thread once it has been through the list.
  Prewarm(std::vector<ListedKernel> kernels, Build build, Done done);
  ~Prewarm();
  Prewarm(const Prewarm&) = delete;
  Prewarm& operator=(const Prewarm&) = delete;

  // Begins no other pipeline and waits for the one in progress. The thread has ended then.
  void stop() noexcept;

  // A caller's turn to have a pipeline: this one, if the thread has or is about to have it; else it is his to build,
  // and the thread begins none until the turn ends.
  class Turn {
   public:
    Turn(Prewarm* prewarm, const std::string& line);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    const std::optional<Pipeline>& pipeline() const noexcept { return pipeline_; }

   private:
    Prewarm* prewarm_;  // null: there is no thread
    std::optional<Pipeline> pipeline_;
  };

  // Those that nobody has asked for. The thread must have ended.
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
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, Item> items_;  // by line
  uint32_t callers_ = 0;                         // that build
  bool stopping_ = false;
  std::atomic<uint64_t> built_{0}, to_build_{0};
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace tuff
