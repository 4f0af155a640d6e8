// What a graph may be bound to follows from the operations' own checks: which bytes a call uses of an operand is the
// smallest buffer that its check accepts, and whether it writes one of two operands is whether the check refuses them
// where they overlap in part. So nothing about graphs is declared of an operation.
#include "runtime/host/host_command.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>

#include "planning/call_copy.hpp"
#include "planning/status.hpp"
#include "runtime/custom/extension.hpp"
#include "runtime/graph_binding.hpp"
#include "runtime/plugin/plugin.hpp"

namespace tuff {
namespace {

// Memory that only checks see.
struct StandIn final : Allocation {
  std::byte* host() const noexcept override { return nullptr; }
};

// While it exists, the operands of a command are in memory of their own, which nobody has mapped.
class Apart {
 public:
  explicit Apart(std::vector<HostCommand::Operand>& operands) : operands_(operands) {
    for (const HostCommand::Operand& operand : operands_) {
      kept_.push_back(*operand.buffer);
      stand_ins_.push_back(std::make_shared<StandIn>());
    }
    reset();
  }
  ~Apart() {
    for (size_t i = 0; i < kept_.size(); ++i) *operands_[i].buffer = std::move(kept_[i]);
  }
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;

  void reset() noexcept {
    for (size_t i = 0; i < kept_.size(); ++i) {
      *operands_[i].buffer = operands_[i].captured;
      if (operands_[i].captured.allocation != nullptr) operands_[i].buffer->allocation = stand_ins_[i];
    }
  }
  Buffer& operator[](size_t i) { return *operands_[i].buffer; }
  const Buffer& kept(size_t i) const { return kept_[i]; }

 private:
  std::vector<HostCommand::Operand>& operands_;
  std::vector<Buffer> kept_;
  std::vector<std::shared_ptr<StandIn>> stand_ins_;
};

class CapturedOperation final : public HostCommand {
 public:
  explicit CapturedOperation(const Operation& operation) : call_(operation) {
    for (CallCopy::Operand& operand : call_.operands()) {
      operands_.push_back({&operand.buffer, operand.buffer, operand.fixed});
    }
  }
  const char* name() const override { return call_.operation().info().name; }
  void run(PluginDevice* device) const override {
    const Operation operation = call_.operation();
    if (device == nullptr || !device->compute(operation)) operation.compute();
  }

  bool conflict(size_t i, size_t j) override {
    Apart operands(operands_);
    const auto both = [&](const Buffer& a, const Buffer& b) {
      operands.reset();
      operands[j].allocation = operands[i].allocation;
      operands[i].offset = a.offset, operands[j].offset = b.offset;
      return accepts();
    };
    if (!both(operands.kept(i), operands.kept(j))) return true;
    // The check may accept exactly the same range, for computing in place, which the call was not captured for.
    for (uint64_t shift = graph_binding::kAlignment; shift != 0; shift /= 2) {
      Buffer first, second;
      second.offset = shift;
      operands.reset();
      operands[i].offset = 0, operands[j].offset = shift;
      if (shift < used_bytes(i) && accepts() && !both(first, second)) return true;
      operands.reset();
      operands[i].offset = shift, operands[j].offset = 0;
      if (shift < used_bytes(j) && accepts() && !both(second, first)) return true;
    }
    return false;
  }

 private:
  // Two operands that may overlap are both only read. What is shorter may not be placed so that it overlaps in part,
  // which tells an output that may take an input's place from one that is read.
  bool find_written(size_t i) override {
    constexpr uint64_t kLeast = 2 * graph_binding::kAlignment;
    for (size_t j = 0; j < operands_.size() && used(i) >= kLeast; ++j) {
      if (j != i && used(j) >= kLeast && !conflict(i, j)) return false;
    }
    return true;
  }
  uint64_t find_used(size_t i) override {
    Apart operands(operands_);
    uint64_t least = 0, most = operands[i].bytes;
    while (least < most) {
      const uint64_t middle = least + (most - least) / 2;
      operands[i].bytes = middle;
      if (accepts()) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    return most;
  }
  uint64_t used_bytes(size_t i) const { return operands_[i].used.value_or(0); }
  bool accepts() const {
    try {
      call_.operation().check();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  CallCopy call_;
};

class CapturedLaunch final : public HostCommand {
 public:
  CapturedLaunch(std::shared_ptr<const HostFunctionKernel> kernel, const LaunchArgs& args)
      : kernel_(std::move(kernel)), call_(*args.call), values_(args.call->values.begin(), args.call->values.end()) {
    for (ExtensionValue& value : values_) {
      if (value.buffer == nullptr) continue;
      Buffer& own = buffers_.emplace_back(*value.buffer);
      std::replace(call_.buffers.begin(), call_.buffers.begin() + call_.buffer_count, value.buffer,
                   static_cast<const Buffer*>(&own));
      value.buffer = &own;
    }
    call_.values = values_;
    for (uint32_t i = 0; i < call_.buffer_count; ++i) {
      const KernelInterface::Binding& binding = kernel_->interface.bindings[i];
      if (call_.buffers[i] == nullptr || !binding.used) continue;
      operands_.push_back({const_cast<Buffer*>(call_.buffers[i]), *call_.buffers[i]});
      written_.push_back(binding.written);
    }
  }
  const char* name() const override { return call_.operation->name().c_str(); }
  void run(PluginDevice*) const override { kernel_->launch(call_.launch()); }
  bool conflict(size_t i, size_t j) override { return written_[i] || written_[j]; }

 private:
  bool find_written(size_t i) override { return written_[i]; }

  std::shared_ptr<const HostFunctionKernel> kernel_;  // keeps the registered operation
  ExtensionCall call_;
  std::vector<ExtensionValue> values_;
  std::deque<Buffer> buffers_;
  std::vector<bool> written_;
};

// The part of a buffer that a copy or fill uses.
Buffer part_of(const Buffer& buffer, uint64_t offset, uint64_t bytes) {
  Buffer part = buffer;
  part.offset += offset;
  part.bytes = bytes;
  return part;
}

class CapturedCopy final : public HostCommand {
 public:
  CapturedCopy(Buffer to, Buffer from, bool pinned) : to_(std::move(to)), from_(std::move(from)) {
    operands_.push_back({&to_, to_, false, !pinned});
    operands_.push_back({&from_, from_, false, !pinned});
  }
  const char* name() const override { return "copy"; }
  bool dispatched() const override { return false; }
  void run(PluginDevice*) const override {
    std::memcpy(to_.host<std::byte>(), from_.host<std::byte>(), operands_[0].captured.bytes);
  }
  bool conflict(size_t, size_t) override { return true; }

 private:
  bool find_written(size_t i) override { return i == 0; }

  Buffer to_, from_;
};

class CapturedFill final : public HostCommand {
 public:
  CapturedFill(Buffer to, const void* pattern, uint64_t pattern_bytes)
      : to_(std::move(to)), pattern_bytes_(pattern_bytes) {
    std::memcpy(pattern_.data(), pattern, pattern_bytes);
    operands_.push_back({&to_, to_});
  }
  const char* name() const override { return "fill"; }
  bool dispatched() const override { return false; }
  void run(PluginDevice*) const override {
    host_fill(to_.host<std::byte>(), operands_[0].captured.bytes, pattern_.data(), pattern_bytes_);
  }
  bool conflict(size_t, size_t) override { return false; }

 private:
  bool find_written(size_t) override { return true; }

  Buffer to_;
  std::array<std::byte, 16> pattern_{};
  uint64_t pattern_bytes_;
};

}  // namespace

void HostFunctionKernel::check(const LaunchArgs& args) const {
  constexpr LaunchLimits kNone{UINT64_MAX, 1, {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
  check_launch(interface, args, kNone);
}

bool HostCommand::Operand::replaced() const {
  return buffer->allocation != captured.allocation || buffer->offset != captured.offset;
}
void HostCommand::Operand::take(const Buffer& memory, uint64_t first) const noexcept {
  *buffer = memory;
  buffer->offset += first;
  buffer->bytes = std::min(captured.bytes, memory.bytes - first);
}
bool HostCommand::Operand::overlaps(const Operand& other) const {
  return graph_binding::meet(*buffer, *used, *other.buffer, *other.used);
}
bool HostCommand::Operand::overlapped(const Operand& other) const {
  return graph_binding::meet(captured, *used, other.captured, *other.used);
}

std::unique_ptr<HostCommand> captured_operation(const Operation& operation) {
  return std::make_unique<CapturedOperation>(operation);
}
std::unique_ptr<HostCommand> captured_launch(std::shared_ptr<const HostFunctionKernel> kernel, const LaunchArgs& args) {
  return std::make_unique<CapturedLaunch>(std::move(kernel), args);
}
std::unique_ptr<HostCommand> captured_copy(const Buffer& to, uint64_t to_offset, const Buffer& from,
                                           uint64_t from_offset, uint64_t bytes, bool pinned) {
  return std::make_unique<CapturedCopy>(part_of(to, to_offset, bytes), part_of(from, from_offset, bytes), pinned);
}
std::unique_ptr<HostCommand> captured_fill(const Buffer& to, uint64_t offset, uint64_t bytes, const void* pattern,
                                           uint64_t pattern_bytes) {
  return std::make_unique<CapturedFill>(part_of(to, offset, bytes), pattern, pattern_bytes);
}

void host_fill(std::byte* target, uint64_t bytes, const void* pattern, uint64_t pattern_bytes) {
  // Copies what has been written, up to a block that stays in the processor's cache.
  constexpr uint64_t kBlock = uint64_t{1} << 16;
  uint64_t done = 0, block = 0;
  while (done < bytes) {
    const uint64_t next = done == 0 ? pattern_bytes : std::min(block, bytes - done);
    std::memcpy(target + done, done == 0 ? pattern : target, next);
    done += next;
    if (block < kBlock) block = done;
  }
}

}  // namespace tuff
