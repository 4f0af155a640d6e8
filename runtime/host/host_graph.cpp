#include "runtime/host/host_graph.hpp"

#include <algorithm>
#include <cstring>

#include "planning/status.hpp"
#include "runtime/graph_binding.hpp"

namespace tuff {

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
      if (!graph_binding::meet(own, command->used(i), memory, memory.bytes)) continue;
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
      [&](const Buffer& old) { return graph_binding::meet(captured, captured.bytes, old, old.bytes); });
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
        operand.take(replacement.to, operand.captured.offset - from.offset);
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
  graph_binding::check_alignment(captured.offset, replacement.offset, graph_binding::kAlignment);
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
