// Calls that the host computes, kept for graphs: of the host backend, of plug-ins, and of a Vulkan device whose calls a
// plug-in computes (runtime/vulkan/processor.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "planning/operation.hpp"
#include "runtime/compute_backend.hpp"
#include "runtime/custom/custom_kernel.hpp"

namespace tuff {

class PluginDevice;

// A function of the host in place of a kernel, for a registered operation. Graphs share it.
struct HostFunctionKernel {
  KernelInterface interface;
  ComputeBackend::HostLaunch launch;

  void check(const LaunchArgs& args) const;
};

// A captured call.
class HostCommand {
 public:
  virtual ~HostCommand() = default;
  HostCommand() = default;
  HostCommand(const HostCommand&) = delete;
  HostCommand& operator=(const HostCommand&) = delete;

  struct Operand {
    Buffer* buffer;   // what the call uses, which bind() replaces
    Buffer captured;  // what it was captured with
    bool fixed = false;
    bool computed = true;               // must not be mapped at a launch
    std::optional<uint64_t> used = {};  // bytes from its beginning; see used()
    std::optional<bool> written = {};   // see may_write()
    bool replaced() const;
    // The call uses `memory` from the byte `first` on.
    void take(const Buffer& memory, uint64_t first) const noexcept;
    bool overlaps(const Operand& other) const;    // as they are now
    bool overlapped(const Operand& other) const;  // as they were captured
  };

  virtual const char* name() const = 0;
  virtual bool dispatched() const { return true; }  // counted as a dispatch
  virtual void run(PluginDevice* device) const = 0;

  std::vector<Operand>& operands() { return operands_; }
  const std::vector<Operand>& operands() const { return operands_; }
  // The bytes of operand i that the call may use.
  uint64_t used(size_t i) {
    if (!operands_[i].used) operands_[i].used = find_used(i);
    return *operands_[i].used;
  }
  // Two operands that overlap, which they did not when they were captured: whether the call writes one of them.
  virtual bool conflict(size_t i, size_t j) = 0;
  // Whether the call may write operand i, which is true where that is not known.
  bool may_write(size_t i) {
    if (!operands_[i].written) operands_[i].written = find_written(i);
    return *operands_[i].written;
  }

 protected:
  virtual uint64_t find_used(size_t i) { return operands_[i].captured.bytes; }
  virtual bool find_written(size_t i) = 0;
  std::vector<Operand> operands_;
};

std::unique_ptr<HostCommand> captured_operation(const Operation& operation);
std::unique_ptr<HostCommand> captured_launch(std::shared_ptr<const HostFunctionKernel> kernel, const LaunchArgs& args);
// pinned: the buffers may be mapped.
std::unique_ptr<HostCommand> captured_copy(const Buffer& to, uint64_t to_offset, const Buffer& from,
                                           uint64_t from_offset, uint64_t bytes, bool pinned);
std::unique_ptr<HostCommand> captured_fill(const Buffer& to, uint64_t offset, uint64_t bytes, const void* pattern,
                                           uint64_t pattern_bytes);
// The pattern again and again.
void host_fill(std::byte* target, uint64_t bytes, const void* pattern, uint64_t pattern_bytes);

using HostCommands = std::vector<std::unique_ptr<HostCommand>>;

}  // namespace tuff
