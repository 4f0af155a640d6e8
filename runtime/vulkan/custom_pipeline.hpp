// Pipelines of kernels that callers bring: made when asked for, destroyed once the device is done with them.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/compute_backend.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/disk_cache.hpp"
#include "runtime/vulkan/timelines.hpp"

namespace tuff {

// The module that was asked for, from disk or compiled.
struct LoadedKernel {
  CompiledKernel kernel;
  bool from_disk = false;
};
LoadedKernel load_custom(const KernelOptions& options, const DiskCache& disk);
void store_custom(const KernelOptions& options, const CompiledKernel& kernel, const DiskCache& disk);
// Has the driver of this device compile it in another process: throws what try_driver() throws.
void try_driver(const KernelOptions& options, const CompiledKernel& kernel, const Device& device);

// Throws UNSUPPORTED or LIMIT_EXCEEDED for what this device cannot run.
void check_device(const KernelInterface& kernel, bool robust, const Device& device);
// SPIR-V's names, for those beside Shader.
std::string capability_names(const KernelInterface& kernel);

// The Vulkan objects of kernels whose handles are gone, and of the library's own that made room for others.
class RetiredPipelines {
 public:
  struct Objects {
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkCommandPool commands = VK_NULL_HANDLE;  // of a graph
  };

  explicit RetiredPipelines(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~RetiredPipelines();
  RetiredPipelines(const RetiredPipelines&) = delete;
  RetiredPipelines& operator=(const RetiredPipelines&) = delete;

  // Room for what will be added once; given up again unless it is kept.
  class Room {
   public:
    explicit Room(RetiredPipelines& retired) : retired_(&retired) { retired.announce(); }
    ~Room() {
      if (retired_ != nullptr) retired_->renounce();
    }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    void keep() noexcept { retired_ = nullptr; }

   private:
    RetiredPipelines* retired_;
  };
  void add(const Objects& objects, const LastUses& uses) noexcept;
  // One that was not announced, and that anything may use that was recorded until now. Errors: bad_alloc.
  void add(VkPipeline pipeline, const Timelines& timelines);
  // Some stream's work has finished.
  void completed(const Timelines& timelines) noexcept;
  void destroy(const Objects& objects) noexcept;

 private:
  void announce();
  void renounce() noexcept;

  struct Retired {
    Objects objects;
    LastUses uses;
    std::vector<Use> more{};
  };
  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<Retired> waiting_;
  size_t live_ = 0;
};

// Retired with its last owner.
struct KernelPipeline {
  KernelPipeline(std::string kernel, std::shared_ptr<RetiredPipelines> where)
      : name(std::move(kernel)), retired(std::move(where)) {}
  ~KernelPipeline() { retired->add(objects, uses); }
  KernelPipeline(const KernelPipeline&) = delete;
  KernelPipeline& operator=(const KernelPipeline&) = delete;

  const std::string name;  // which bound commands point to
  std::shared_ptr<RetiredPipelines> retired;
  RetiredPipelines::Objects objects;
  LastUses uses;
};

class VulkanKernel final : public CustomKernel {
 public:
  // Builds the pipeline. Needs no lock.
  VulkanKernel(std::shared_ptr<Device> device, std::shared_ptr<RetiredPipelines> retired, VkPipelineCache cache,
               const KernelOptions& options, const CompiledKernel& compiled);

  void describe(tuff_kernel_properties& properties) const override;
  const std::string& name() const { return pipeline_->name; }
  const KernelInterface& interface() const { return interface_; }
  const RetiredPipelines::Objects& objects() const { return pipeline_->objects; }
  LaunchLimits launch_limits() const;

  // Under the context's lock. Graphs keep the pipeline beyond the kernel.
  const std::shared_ptr<KernelPipeline>& pipeline() const { return pipeline_; }
  void use(Use use, const Timelines& timelines) noexcept { pipeline_->uses.add(use, timelines); }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<KernelPipeline> pipeline_;
  KernelInterface interface_;
  bool robust_;
};

}  // namespace tuff
