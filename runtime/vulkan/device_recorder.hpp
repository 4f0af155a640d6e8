// Turns planners' requests into bound commands: finds the pipeline and the memory, and decides how operands are bound.
// The derived classes decide what happens with the commands: a stream submits them, a graph keeps them.
//
// The caller holds the context's lock.
#pragma once

#include <memory>
#include <vector>

#include "planning/recorder.hpp"
#include "runtime/vulkan/bound_command.hpp"
#include "runtime/vulkan/kernel_cache.hpp"
#include "runtime/vulkan/memory_pool.hpp"

namespace tuff {

class VulkanKernel;
struct LaunchArgs;

// State shared by the recorders of a context.
struct RecorderBase {
  RecorderBase(std::shared_ptr<Device> device, std::shared_ptr<MemoryPool> pool, KernelCache& kernels);

  std::shared_ptr<Device> device;
  std::shared_ptr<MemoryPool> pool;
  KernelCache& kernels;
  const TuningTable* tuning = nullptr;  // outlives the recorder's use of it; null: the built-in choices
  struct Probed {
    const Probe* probe;
    bool holds;
  };
  std::vector<Probed> probed;  // the probes that planners have requested so far
  Buffer unused;               // bound to descriptors that the shader never accesses
};

// The whole of a buffer.
inline Bound bound_of(const Buffer& buffer) {
  const DeviceLocation at = locate(buffer, 0);
  return {at.block, at.offset, at.offset + buffer.bytes};
}
BoundCopy bound_copy(const char* label, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                     uint64_t bytes);

class DeviceRecorder : public Recorder {
 public:
  const DeviceTraits& traits() const noexcept override { return base_.device->traits; }
  bool binds_addresses(Reads reads, const Dispatch& dispatch) const noexcept override;
  const TuningTable* tuning() const noexcept override { return base_.tuning; }
  void dispatch(const KernelRequest& kernel, const Dispatch& dispatch) override;
  void prepare(const KernelRequest& kernel, const Dispatch& dispatch) override;
  void copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) override;
  const Buffer& scratch(uint64_t bytes, Scratch place) override;

  // A caller's kernel, with checked arguments.
  void launch(VulkanKernel& kernel, const LaunchArgs& args);
  void copy(const char* label, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
            uint64_t bytes);
  // A 4-byte pattern; offset and bytes are multiples of 4, relative to the start of the memory.
  void fill_words(const Buffer& dst, uint64_t offset, uint64_t bytes, uint32_t word);
  // At most 3 bytes, which do not fill a word.
  // `text`: memory for the pattern, of which each edge has its own. It is made if there is none yet.
  virtual void fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern,
                         Buffer& text) = 0;

  // Returns scratch memory to the pool. The next operation that needs some allocates it again.
  void release_scratch() noexcept {
    for (Buffer& buffer : scratch_) buffer = {};
  }

 protected:
  explicit DeviceRecorder(RecorderBase& base) : base_(base) {}

  // Called for each buffer that a command uses: will_use() before the command is prepared, has_used() after it.
  virtual void will_use(const Buffer& buffer) = 0;
  virtual void has_used(const Buffer& buffer) = 0;
  virtual void append(const BoundDispatch& dispatch) = 0;
  virtual void append(const BoundCopy& copy) = 0;
  virtual void append(const BoundFill& fill) = 0;
  // Where a dispatch is put together.
  virtual BoundDispatch& place(BoundDispatch& own) noexcept { return own; }
  // Whether this dispatch, for which all but its tables is there, is not to be recorded. Then its tables are made.
  virtual bool rehearses(const Dispatch&) { return false; }
  // Called after each command, with a rough guess of how long the device needs for it.
  virtual void appended(double seconds) = 0;
  virtual void launched(VulkanKernel& kernel) = 0;
  // Host-writable memory for the bases of operands that have one buffer per matrix, valid for the next command only.
  virtual Buffer table_memory(uint64_t bytes) = 0;

  double guess_seconds(double bytes, double operations = 0, bool matrix_units = false) const noexcept;
  Buffer new_memory(uint64_t bytes, MemoryKind kind) const;
  // Memory that the host can write and kernels read fast.
  Buffer new_host_written(uint64_t bytes) const;

  RecorderBase& base_;

 private:
  // The kernel, and how it is bound; false if there are no workgroups.
  bool bind(const KernelRequest& kernel, const Dispatch& dispatch, BoundDispatch& bound);
  bool fits_descriptors(const Dispatch& dispatch) const noexcept;
  bool prefers_addresses(Reads reads) const noexcept;
  bool find(const Dispatch& dispatch, BoundDispatch& bound) const;
  bool finds_texels(const KernelRequest& kernel, const BoundDispatch& bound) const;
  Bound find_each(const Dispatch& dispatch, const Dispatch::Operand& operand, Touched& touched) const;
  Bound write_table(const Dispatch& dispatch, const BoundDispatch& bound);
  template <typename Visit>
  void each_buffer(const Dispatch& dispatch, const Visit& visit);

  std::array<Buffer, 3> scratch_;
};

}  // namespace tuff
