// What a graph may be bound to follows from the operations' own checks: which bytes a call uses of an operand is the
// smallest buffer that its check accepts, and whether it writes one of two operands is whether the check refuses them
// where they overlap in part. So nothing about graphs is declared of an operation.
#include "runtime/host/host_graph.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "planning/status.hpp"
#include "runtime/custom/extension.hpp"
#include "runtime/graph_binding.hpp"
#include "runtime/plugin/plugin.hpp"

namespace tuff {
namespace {

// Kernels of devices are chosen for this alignment of operands: what is refused there is refused here.
constexpr uint64_t kBindAlignment = 16;

bool meet(const Buffer& a, uint64_t a_bytes, const Buffer& b, uint64_t b_bytes) {
  return a.allocation == b.allocation && a_bytes != 0 && b_bytes != 0 && a.offset < b.offset + b_bytes &&
         b.offset < a.offset + a_bytes;
}

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
    for (uint64_t shift = kBindAlignment; shift != 0; shift /= 2) {
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
    constexpr uint64_t kLeast = 2 * kBindAlignment;
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
bool HostCommand::Operand::overlaps(const Operand& other) const {
  return meet(*buffer, *used, *other.buffer, *other.used);
}
bool HostCommand::Operand::overlapped(const Operand& other) const {
  return meet(captured, *used, other.captured, *other.used);
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

void HostGraph::check_launch() {
  for (const auto& command : commands_) {
    for (size_t i = 0; i < command->operands().size(); ++i) {
      const HostCommand::Operand& operand = command->operands()[i];
      const auto& allocation = operand.buffer->allocation;
      if (!operand.computed || allocation == nullptr || !allocation->mapped.load(std::memory_order_relaxed)) continue;
      require(command->used(i) == 0, graph_binding::kMapped);
    }
  }
}

// Whether the graph was captured with this memory. Throws INVALID_ARGUMENT if the memory covers only part of an
// operand.
bool HostGraph::uses(const Buffer& memory) {
  bool found = false;
  for (const auto& command : commands_) {
    for (size_t i = 0; i < command->operands().size(); ++i) {
      const HostCommand::Operand& operand = command->operands()[i];
      const Buffer& own = operand.captured;
      if (own.allocation != memory.allocation || !meet(own, command->used(i), memory, memory.bytes)) continue;
      if (operand.fixed) graph_binding::fail_in_list();
      graph_binding::check_covers({memory.offset, memory.offset + memory.bytes}, command->name(),
                                  {own.offset, own.offset + *operand.used});
      found = true;
    }
  }
  return found;
}

// The replacements with this one in place of that of the same memory.
std::vector<HostGraph::Replacement> HostGraph::replaced(const Buffer& captured, const Buffer& replacement) const {
  std::vector<Replacement> replacements = graph_binding::others(
      replacements_,
      [&](const Buffer& old) {
        return old.allocation == captured.allocation && old.offset == captured.offset && old.bytes == captured.bytes;
      },
      [&](const Buffer& old) { return meet(captured, captured.bytes, old, old.bytes); });
  const bool back = captured.allocation == replacement.allocation && captured.offset == replacement.offset;
  if (!back) replacements.push_back({captured, replacement});
  return replacements;
}

void HostGraph::apply(const std::vector<Replacement>& replacements) {
  for (const auto& command : commands_) {
    for (size_t i = 0; i < command->operands().size(); ++i) {
      HostCommand::Operand& operand = command->operands()[i];
      *operand.buffer = operand.captured;
      if (operand.fixed) continue;
      for (const Replacement& replacement : replacements) {
        const Buffer& from = replacement.from;
        if (operand.captured.allocation != from.allocation || operand.captured.offset < from.offset ||
            operand.captured.offset + command->used(i) > from.offset + from.bytes || command->used(i) == 0) {
          continue;
        }
        const uint64_t first = operand.captured.offset - from.offset;
        *operand.buffer = replacement.to;
        operand.buffer->offset += first;
        operand.buffer->bytes = std::min(operand.captured.bytes, replacement.to.bytes - first);
        break;
      }
    }
  }
}

void HostGraph::check_conflicts() {
  for (const auto& command : commands_) {
    std::vector<HostCommand::Operand>& operands = command->operands();
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!operands[i].replaced()) continue;
      for (size_t j = 0; j < operands.size(); ++j) {
        if (i == j || operands[i].buffer->allocation != operands[j].buffer->allocation) continue;
        if (command->used(i) == 0 || command->used(j) == 0) continue;
        if (!operands[i].overlaps(operands[j]) || operands[i].overlapped(operands[j])) continue;
        graph_binding::check_conflict(command->conflict(i, j), command->name());
      }
    }
  }
}

void HostGraph::bind(const Buffer& captured, const Buffer& replacement) {
  graph_binding::check_sizes(captured, replacement);
  const std::lock_guard lock(mutex_);
  require(uses(captured), graph_binding::kNotUsed);
  graph_binding::check_alignment(captured.offset, replacement.offset, kBindAlignment);
  std::vector<Replacement> replacements = replaced(captured, replacement);
  try {
    apply(replacements);
    check_conflicts();
  } catch (...) {
    apply(replacements_);
    throw;
  }
  replacements_ = std::move(replacements);
  at_risk_.reset();
}

// The memory that commands may write, but for the last one: it has changed nothing itself if it fails.
void HostGraph::find_at_risk() {
  std::vector<Range> ranges;
  for (size_t c = 0; c + 1 < commands_.size(); ++c) {
    HostCommand& command = *commands_[c];
    for (size_t i = 0; i < command.operands().size(); ++i) {
      const Buffer& buffer = *command.operands()[i].buffer;
      if (buffer.allocation == nullptr || command.used(i) == 0 || !command.may_write(i)) continue;
      ranges.push_back({buffer.host<std::byte>(), command.used(i)});
    }
  }
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.data < b.data; });
  std::vector<Range> apart;
  for (const Range& range : ranges) {
    Range* const last = apart.empty() ? nullptr : &apart.back();
    if (last == nullptr || last->data + last->bytes < range.data) {
      apart.push_back(range);
    } else {
      const std::byte* const end = std::max(last->data + last->bytes, range.data + range.bytes);
      last->bytes = static_cast<uint64_t>(end - last->data);
    }
  }
  at_risk_ = std::move(apart);
}

void HostGraph::save() {
  if (!at_risk_) find_at_risk();
  uint64_t bytes = 0;
  for (const Range& range : *at_risk_) bytes += range.bytes;
  if (saved_bytes_ < bytes) {
    saved_bytes_ = 0;
    saved_.reset();
    saved_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    saved_bytes_ = bytes;
  }
  std::byte* to = saved_.get();
  for (const Range& range : *at_risk_) to = std::copy_n(range.data, range.bytes, to);
}

void HostGraph::restore() noexcept {
  const std::byte* from = saved_.get();
  for (const Range& range : *at_risk_) {
    std::memcpy(range.data, from, range.bytes);
    from += range.bytes;
  }
  forget();
}

void HostGraph::forget() noexcept {
  constexpr uint64_t kKept = uint64_t{1} << 20;  // for the next launch
  if (saved_bytes_ <= kKept) return;
  saved_.reset();
  saved_bytes_ = 0;
}

}  // namespace tuff
