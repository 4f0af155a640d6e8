// Graphs of the host backend: copies of the captured calls, which a launch computes one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "planning/call_copy.hpp"
#include "planning/operation.hpp"
#include "platform/mutex.hpp"
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

class HostGraph final : public ComputeGraph {
 public:
  HostGraph(Mutex& mutex, HostCommands& commands) : mutex_(mutex), commands_(std::move(commands)) {}

  void bind(const Buffer& captured, const Buffer& replacement) override;

  // The functions below need the context's lock. Throws INVALID_ARGUMENT if an operand is mapped.
  void check_launch();
  const HostCommands& commands() const { return commands_; }
  // Keeps what the commands may write that others follow, and puts it back: a launch in which one fails, as for lack of
  // memory, has changed nothing. Saves everything or throws.
  void save();
  void restore() noexcept;
  void forget() noexcept;  // after a launch

 private:
  struct Replacement {
    Buffer from, to;
  };
  bool uses(const Buffer& memory);
  std::vector<Replacement> replaced(const Buffer& captured, const Buffer& replacement) const;
  void apply(const std::vector<Replacement>& replacements);
  void check_conflicts();

  struct Range {
    std::byte* data;
    uint64_t bytes;
  };
  void find_at_risk();

  Mutex& mutex_;  // the context's
  HostCommands commands_;
  std::vector<Replacement> replacements_;
  std::optional<std::vector<Range>> at_risk_;  // see save(); apart and in order; null after bind()
  std::unique_ptr<std::byte[]> saved_;         // their contents, one after the other
  uint64_t saved_bytes_ = 0;                   // its size
};

}  // namespace tuff
