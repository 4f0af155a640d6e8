// Pipelines of custom kernels: created on request, destroyed once the device has finished with them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "platform/mutex.hpp"
#include "runtime/compute_backend.hpp"
#include "runtime/vulkan/device.hpp"
#include "runtime/vulkan/disk_cache.hpp"
#include "runtime/vulkan/timelines.hpp"

namespace tuff {

// The requested module, read from disk or compiled.
struct LoadedKernel {
  CompiledKernel kernel;
  bool from_disk = false;
};
LoadedKernel load_custom(const KernelOptions& options, const DiskCache& disk);
void store_custom(const KernelOptions& options, const CompiledKernel& kernel, const DiskCache& disk);
// Has this device's driver compile the kernel in another process. Throws what try_driver() throws.
void try_driver(const KernelOptions& options, const CompiledKernel& kernel, const Device& device);

// Throws UNSUPPORTED or LIMIT_EXCEEDED if this device cannot run the kernel.
void check_device(const KernelInterface& kernel, bool robust, const Device& device);
void check_device_for_ptx(const KernelInterface& kernel, const Device& device);
// SPIR-V's names of the capabilities other than Shader.
std::string capability_names(const KernelInterface& kernel);

// Vulkan objects waiting for destruction: those of kernels whose handles were destroyed, and of evicted pipelines.
class RetiredPipelines {
 public:
  struct Objects {
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkDescriptorSetLayout set = VK_NULL_HANDLE;
    VkCommandPool commands = VK_NULL_HANDLE;  // of a graph
    VkCuModuleNVX module = VK_NULL_HANDLE;
    VkCuFunctionNVX function = VK_NULL_HANDLE;
  };

  explicit RetiredPipelines(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~RetiredPipelines();
  RetiredPipelines(const RetiredPipelines&) = delete;
  RetiredPipelines& operator=(const RetiredPipelines&) = delete;

  // Reserves room for one later add(). Releases it again unless keep() is called.
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
  // Adds a kernel without a reservation; everything recorded so far may use it. Throws bad_alloc.
  void add(const Objects& objects, const Timelines& timelines);
  // Destroys what is no longer in use. Call it when a stream's work has finished.
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
  Mutex mutex_{LockRank::retired_pipelines};
  std::vector<Retired> waiting_;
  size_t live_ = 0;
};

// Retires its objects when the last owner releases it.
struct KernelPipeline {
  KernelPipeline(std::string kernel, const KernelInterface& its_interface, std::shared_ptr<RetiredPipelines> where)
      : name(std::move(kernel)), interface(its_interface), retired(std::move(where)) {}
  ~KernelPipeline() { retired->add(objects, uses); }
  KernelPipeline(const KernelPipeline&) = delete;
  KernelPipeline& operator=(const KernelPipeline&) = delete;

  const std::string name;  // bound commands point to these
  const KernelInterface interface;
  std::shared_ptr<RetiredPipelines> retired;
  RetiredPipelines::Objects objects;
  LastUses uses;
};

class VulkanKernel final : public CustomKernel {
 public:
  // Builds the pipeline. Needs no lock.
  VulkanKernel(std::shared_ptr<Device> device, std::shared_ptr<RetiredPipelines> retired, VkPipelineCache cache,
               const KernelOptions& options, const CompiledKernel& compiled);
  // Has the driver load PTX, which is COMPILE_FAILED if it refuses the text.
  VulkanKernel(std::shared_ptr<Device> device, std::shared_ptr<RetiredPipelines> retired, const KernelOptions& options,
               const KernelInterface& interface);

  void describe(tuff_kernel_properties& properties) const override;
  const std::string& name() const { return pipeline_->name; }
  const KernelInterface& interface() const { return pipeline_->interface; }
  const RetiredPipelines::Objects& objects() const { return pipeline_->objects; }
  LaunchLimits launch_limits() const;

  // Under the context's lock. Graphs keep the pipeline alive after the kernel is destroyed.
  const std::shared_ptr<KernelPipeline>& pipeline() const { return pipeline_; }
  void use(Use use, const Timelines& timelines) noexcept { pipeline_->uses.add(use, timelines); }

 private:
  std::shared_ptr<Device> device_;
  std::shared_ptr<KernelPipeline> pipeline_;
  bool robust_;
};

}  // namespace tuff
