#include "runtime/vulkan/graph.hpp"

#include <algorithm>
#include <cstring>

#include "runtime/graph_binding.hpp"
#include "runtime/unlocked.hpp"
#include "runtime/vulkan/vulkan_backend.hpp"

namespace tuff {
namespace {

constexpr uint64_t kWrittenPiece = 16 << 10;

// Visits the memory ranges of a command: block id, begin, end, and whether it is written.
template <typename Command, typename Visit>
void each_range(Command& command, const Visit& visit) {
  const auto of = [&](auto& what) {
    using T = std::remove_cvref_t<decltype(what)>;
    if constexpr (std::is_same_v<T, BoundDispatch>) {
      for (uint32_t i = 0; i < what.touched.count; ++i) {
        const auto& range = what.touched.ranges[i];
        visit(range.block, range.begin, range.end, range.write);
      }
    } else if constexpr (std::is_same_v<T, BoundCopy>) {
      visit(what.to->id, what.to_offset, what.to_end(), true);
      visit(what.from->id, what.from_offset, what.from_end(), false);
    } else if constexpr (std::is_same_v<T, HostStep>) {
      for (const HazardTracker::Range& range : what.ranges) visit(range.block, range.begin, range.end, range.write);
    } else {
      visit(what.to->id, what.offset, what.offset + what.bytes, true);
    }
  };
  std::visit(of, command.what);
}

bool overlap(uint64_t begin, uint64_t end, uint64_t other_begin, uint64_t other_end) {
  return begin < other_end && other_begin < end;
}

// The number of pairs of overlapping ranges of a command of which at least one is written.
uint32_t conflicts(const GraphCommand& command) {
  const auto pairs = [](std::span<const HazardTracker::Range> ranges) {
    uint32_t found = 0;
    for (size_t i = 0; i < ranges.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const HazardTracker::Range &a = ranges[i], &b = ranges[j];
        found += a.block == b.block && (a.write || b.write) && overlap(a.begin, a.end, b.begin, b.end);
      }
    }
    return found;
  };
  if (const auto* step = std::get_if<HostStep>(&command.what)) return pairs(step->ranges);
  std::array<HazardTracker::Range, Touched::kMaxRanges> ranges;
  uint32_t count = 0;
  each_range(command, [&](uint64_t block, uint64_t begin, uint64_t end, bool write) {
    ranges[count++] = {block, begin, end, write};
  });
  return pairs({ranges.data(), count});
}

// Visits the memory that commands read as texels, as a command, the block, and the bytes of a texel.
template <typename Visit>
void each_texels(const std::vector<GraphCommand>& commands, const Visit& visit) {
  for (const GraphCommand& command : commands) {
    const auto* dispatch = std::get_if<BoundDispatch>(&command.what);
    if (dispatch == nullptr || dispatch->texels == 0) continue;
    for (uint32_t i = 0; i < dispatch->slots; ++i) {
      const uint64_t bytes = texel_bytes(dispatch->texels, i);
      if (bytes != 0 && dispatch->bound[i].block != nullptr) visit(command, *dispatch->bound[i].block, bytes);
    }
  }
}

const char* label_of(const GraphCommand& command) {
  if (const auto* dispatch = std::get_if<BoundDispatch>(&command.what)) return dispatch->label;
  if (const auto* copy = std::get_if<BoundCopy>(&command.what)) return copy->label;
  if (const auto* step = std::get_if<HostStep>(&command.what)) return step->call->name();
  return "fill";
}

// Makes the views that commands read memory by, so that encode() makes none. Kernels were chosen when they were
// captured: UNSUPPORTED if one reads texels of a block that has more than a view covers.
void make_texels(Device& device, const std::vector<GraphCommand>& commands) {
  each_texels(commands, [&](const GraphCommand& command, const MemoryBlock& block, uint64_t bytes) {
    if (has_texels(device, block, bytes)) return;
    fail(
        TUFF_ERROR_UNSUPPORTED,
        "replacement is in a block of memory of {} bytes, and {} reads it by a view of {}-byte elements, of which this "
        "device allows {}: capture the call again",
        block.size, label_of(command), bytes, device.traits.max_texels);
  });
  each_texels(commands,
              [&](const GraphCommand&, const MemoryBlock& block, uint64_t bytes) { texels_of(device, block, bytes); });
}

// The processor computes calls by the addresses of their operands.
void check_addresses(const std::vector<GraphCommand>& commands, const Bound& from, const Buffer& replacement) {
  if (replacement.allocation->host() != nullptr) return;
  for (const GraphCommand& command : commands) {
    const auto* const step = std::get_if<HostStep>(&command.what);
    if (step == nullptr) continue;
    for (const HazardTracker::Range& range : step->ranges) {
      if (range.block != from.block->id || !overlap(range.begin, range.end, from.begin, from.end)) continue;
      fail(TUFF_ERROR_UNSUPPORTED,
           "replacement has no address in this process, and the processor computes {}: capture the call again",
           step->call->name());
    }
  }
}

}  // namespace

void GraphRecorder::use(const Buffer& buffer, bool computed) {
  if (const auto found = known_.find(buffer.allocation.get()); found != known_.end()) {
    contents_.buffers[found->second].computed |= computed;
    return;
  }
  contents_.buffers.push_back({buffer, computed});
  try {
    known_.emplace(buffer.allocation.get(), contents_.buffers.size() - 1);
  } catch (...) {
    contents_.buffers.pop_back();
    throw;
  }
}

void GraphRecorder::has_used(const Buffer& buffer) {
  use(buffer, true);
  if (contents_.commands.back().fixed) contents_.in_tables.push_back(bound_of(buffer));
}

void GraphRecorder::append(const BoundDispatch& dispatch) {
  if (dispatch.cached != nullptr) contents_.pins.emplace_back(*dispatch.cached);
  contents_.commands.push_back({dispatch, table_});
  table_ = false;
  ++contents_.dispatches;
}

void GraphRecorder::host_step(const Operation& operation) {
  HostStep step{captured_operation(operation)};
  const std::vector<HostCommand::Operand>& operands = step.call->operands();
  const bool fixed = std::any_of(operands.begin(), operands.end(), [](const auto& operand) { return operand.fixed; });
  for (const HostCommand::Operand& operand : operands) {
    if (operand.captured.allocation == nullptr) continue;
    use(operand.captured, true);
    if (fixed) contents_.in_tables.push_back(bound_of(operand.captured));
  }
  contents_.commands.push_back({std::move(step), fixed});
}

void GraphRecorder::shrink(const Size& size) noexcept {
  const auto cut = [](auto& what, size_t count) {
    what.erase(what.begin() + static_cast<ptrdiff_t>(count), what.end());
  };
  cut(contents_.commands, size.commands);
  cut(contents_.in_tables, size.in_tables);
  cut(contents_.kernels, size.kernels);
  contents_.dispatches = size.dispatches;
  contents_.host_looks = size.host_looks;
  table_ = false;
}

void GraphRecorder::describe(size_t commands, const CallText& text) {
  const auto call = std::make_shared<const CallText>(text);
  for (size_t i = commands; i < contents_.commands.size(); ++i) contents_.commands[i].call = call;
}

// Host-written memory that is not reused during the graph's life.
Buffer GraphRecorder::host_written(uint64_t bytes) {
  const uint64_t size = round_up(bytes, MemoryPool::kAlignment);
  if (written_.bytes < size) {
    const Buffer piece = new_host_written(std::max(size, kWrittenPiece));
    use(piece, false);
    written_ = piece;  // only now, after use() has succeeded, so that the graph keeps it alive
  }
  Buffer part = written_;
  part.bytes = bytes;
  written_.offset += size;
  written_.bytes -= size;
  return part;
}

Buffer GraphRecorder::table_memory(uint64_t bytes) {
  table_ = true;
  return host_written(bytes);
}

const Buffer& GraphRecorder::parameters(const void* data, uint32_t bytes) {
  parameters_ = host_written(kMaxParameterBytes);
  std::memcpy(parameters_.host<std::byte>(), data, bytes);
  return parameters_;
}

void GraphRecorder::fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern,
                              Buffer& text) {
  text = host_written(4);
  std::memcpy(text.host<std::byte>(), pattern, bytes);
  copy("fill", dst, offset, text, 0, bytes);
}

void GraphRecorder::copy_pinned(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                                uint64_t bytes) {
  contents_.commands.push_back({bound_copy("copy", dst, dst_offset, src, src_offset, bytes)});
  contents_.host_looks = true;
  use(dst, false);
  use(src, false);
}

VulkanGraph::VulkanGraph(VulkanBackend& backend, GraphContents& contents)
    : backend_(backend), current_(contents.commands), operands_(find_operands(contents, current_, replacements_)) {
  contents_ = std::move(contents);
  for (const GraphCommand& command : current_) {
    if (const auto* dispatch = std::get_if<BoundDispatch>(&command.what)) {
      bytes_ += dispatch->bytes;
      operations_ += dispatch->operations;
    } else if (const auto* copy = std::get_if<BoundCopy>(&command.what)) {
      bytes_ += copy->moved();
    } else if (const auto* fill = std::get_if<BoundFill>(&command.what)) {
      bytes_ += static_cast<double>(fill->bytes);
    }
  }
  each_part([this](auto) { ++parts_; }, [this](const GraphCommand&) { ++steps_; });
}

VulkanGraph::~VulkanGraph() {
  const std::lock_guard lock(backend_.mutex());
  for (const Encoding& encoding : encodings_) backend_.retired().add(encoding.objects, LastUses(encoding.last_use));
  // What the graph kept alive is released under the lock too.
  contents_ = {};
  replacements_ = {};
  operands_ = {};
}

void VulkanGraph::check_launch() const {
  for (const auto& operand : operands_) {
    require(!operand->mapped.load(std::memory_order_relaxed), graph_binding::kMapped);
  }
}

// The allocations that operations compute with: for replaced memory the replacement, and the original as well if a part
// of it is still in use.
std::vector<std::shared_ptr<Allocation>> VulkanGraph::find_operands(const GraphContents& contents,
                                                                    const std::vector<GraphCommand>& commands,
                                                                    const std::vector<Replacement>& replacements) {
  std::vector<std::shared_ptr<Allocation>> operands;
  for (const GraphContents::Used& used : contents.buffers) {
    if (!used.computed) continue;
    const MemoryRange& memory = static_cast<const VulkanAllocation&>(*used.buffer.allocation).range();
    bool in_use = true;
    const auto within = [&](uint64_t block, uint64_t begin, uint64_t end) {
      return block == memory.block->id && overlap(begin, end, memory.offset, memory.offset + memory.size);
    };
    for (const Replacement& replacement : replacements) {
      if (!within(replacement.from.block->id, replacement.from.begin, replacement.from.end)) continue;
      operands.push_back(replacement.to.allocation);
      in_use = false;
    }
    if (!in_use) {
      for (const Bound& fixed : contents.in_tables) in_use |= within(fixed.block->id, fixed.begin, fixed.end);
      for (const GraphCommand& command : commands) {
        each_range(command,
                   [&](uint64_t block, uint64_t begin, uint64_t end, bool) { in_use |= within(block, begin, end); });
      }
    }
    if (in_use) operands.push_back(used.buffer.allocation);
  }
  return operands;
}

// Before ranges of steps are looked at.
void VulkanGraph::find_ranges() {
  for (GraphCommand& command : contents_.commands) {
    auto* const step = std::get_if<HostStep>(&command.what);
    if (step == nullptr || !step->ranges.empty()) continue;
    std::vector<HazardTracker::Range> ranges;
    for (size_t i = 0; i < step->call->operands().size(); ++i) {
      const Buffer& captured = step->call->operands()[i].captured;
      if (captured.allocation == nullptr) {
        ranges.push_back({});
        continue;
      }
      const Bound bound = bound_of(captured);
      ranges.push_back({bound.block->id, bound.begin, bound.begin + step->call->used(i), step->call->may_write(i)});
    }
    step->ranges = std::move(ranges);
  }
}

// Calls of steps use what is bound.
void VulkanGraph::bind_steps() noexcept {
  for (const GraphCommand& command : contents_.commands) {
    const auto* const step = std::get_if<HostStep>(&command.what);
    if (step == nullptr || command.fixed) continue;
    for (size_t i = 0; i < step->ranges.size(); ++i) {
      const HazardTracker::Range& range = step->ranges[i];
      const HostCommand::Operand& operand = step->call->operands()[i];
      *operand.buffer = operand.captured;
      for (const Replacement& replacement : replacements_) {
        const Bound& from = replacement.from;
        if (range.begin == range.end || range.block != from.block->id || range.begin < from.begin ||
            range.end > from.end) {
          continue;
        }
        operand.take(replacement.to, range.begin - from.begin);
      }
    }
  }
}

// Whether the graph was captured with this memory. Throws INVALID_ARGUMENT if the memory covers only part of an
// operand.
bool VulkanGraph::uses(const Bound& memory) const {
  for (const Bound& fixed : contents_.in_tables) {
    if (fixed.block == memory.block && overlap(fixed.begin, fixed.end, memory.begin, memory.end)) {
      graph_binding::fail_in_list();
    }
  }
  bool found = false;
  for (const GraphCommand& command : contents_.commands) {
    if (command.fixed) continue;
    each_range(command, [&](uint64_t block, uint64_t begin, uint64_t end, bool) {
      if (block != memory.block->id || !overlap(begin, end, memory.begin, memory.end)) return;
      graph_binding::check_covers({memory.begin, memory.end}, label_of(command), {begin, end});
      found = true;
    });
  }
  return found;
}

std::vector<GraphCommand> VulkanGraph::apply(const std::vector<GraphCommand>& commands,
                                             const std::vector<Replacement>& replacements) {
  std::vector<GraphCommand> result = commands;
  // Redirects a range that begins in replaced memory.
  const auto moved = [&](const MemoryBlock*& block, uint64_t& begin, uint64_t size) {
    for (const Replacement& replacement : replacements) {
      const Bound& from = replacement.from;
      if (block != from.block || begin < from.begin || begin + size > from.end || size == 0) continue;
      const Bound to = bound_of(replacement.to);
      block = to.block;
      begin += to.begin - from.begin;
      return;
    }
  };
  const auto moved_id = [&](HazardTracker::Range& range) {
    for (const Replacement& replacement : replacements) {
      const Bound& from = replacement.from;
      if (range.block != from.block->id || range.begin < from.begin || range.end > from.end) continue;
      const Bound to = bound_of(replacement.to);
      range = {to.block->id, range.begin + to.begin - from.begin, range.end + to.begin - from.begin, range.write};
      return;
    }
  };
  for (GraphCommand& command : result) {
    if (command.fixed) continue;
    if (auto* dispatch = std::get_if<BoundDispatch>(&command.what)) {
      for (uint32_t i = 0; i < dispatch->slots; ++i) {
        Bound& at = dispatch->bound[i];
        const uint64_t size = at.end - at.begin;
        moved(at.block, at.begin, size);
        at.end = at.begin + size;
      }
      for (uint32_t i = 0; i < dispatch->touched.count; ++i) moved_id(dispatch->touched.ranges[i]);
    } else if (auto* copy = std::get_if<BoundCopy>(&command.what)) {
      moved(copy->to, copy->to_offset, copy->to_end() - copy->to_offset);
      moved(copy->from, copy->from_offset, copy->from_end() - copy->from_offset);
    } else if (auto* fill = std::get_if<BoundFill>(&command.what)) {
      moved(fill->to, fill->offset, fill->bytes);
    } else {
      for (HazardTracker::Range& range : std::get<HostStep>(command.what).ranges) moved_id(range);
    }
  }
  return result;
}

void VulkanGraph::bind(const Buffer& captured, const Buffer& replacement) {
  graph_binding::check_sizes(captured, replacement);
  const std::lock_guard lock(backend_.mutex());
  const Bound from = bound_of(captured), to = bound_of(replacement);
  find_ranges();
  require(uses(from), graph_binding::kNotUsed);
  // Kernels were chosen for the operands' alignment to 16 bytes; custom kernels are bound at the device's alignment, or
  // at their own.
  const uint64_t strict = backend_.device().physical.properties.limits.minStorageBufferOffsetAlignment;
  uint64_t alignment = graph_binding::kAlignment;
  if (!contents_.kernels.empty()) alignment = std::max(alignment, strict);
  for (const auto& kernel : contents_.kernels) alignment = std::max(alignment, kernel->interface.alignment);
  graph_binding::check_alignment(from.begin, to.begin, alignment);
  std::vector<Replacement> replacements = graph_binding::others(
      replacements_,
      [&](const Bound& old) { return old.block == from.block && old.begin == from.begin && old.end == from.end; },
      [&](const Bound& old) {
        return old.block == from.block && overlap(from.begin, from.end, old.begin, old.end);
      });
  const bool back = from.block == to.block && from.begin == to.begin;
  if (!back) replacements.push_back({from, replacement});
  std::vector<GraphCommand> commands = apply(contents_.commands, replacements);
  for (size_t i = 0; i < commands.size(); ++i) {
    graph_binding::check_conflict(conflicts(commands[i]) > conflicts(contents_.commands[i]), label_of(commands[i]));
  }
  make_texels(backend_.device(), commands);
  check_addresses(contents_.commands, from, replacement);
  operands_ = find_operands(contents_, commands, replacements);
  current_ = std::move(commands);
  replacements_ = std::move(replacements);
  bind_steps();
  ++version_;
}

std::vector<VulkanGraph::Encoding>::iterator VulkanGraph::idle_encoding() {
  const Timelines& timelines = backend_.streams().timelines();
  return std::find_if(encodings_.begin(), encodings_.end(),
                      [&](const Encoding& encoding) { return timelines.done(encoding.last_use); });
}

void VulkanGraph::make_room(std::unique_lock<Mutex>& lock) {
  // Others may have bound and launched it meanwhile.
  while (encodings_.size() >= kMaxEncodings && encodings_[encoding_].version != version_ &&
         idle_encoding() == encodings_.end()) {
    const Encoding& oldest =
        *std::min_element(encodings_.begin(), encodings_.end(),
                          [](const Encoding& a, const Encoding& b) { return a.version < b.version; });
    const Use use = oldest.last_use;
    StreamRecorder& stream = backend_.streams().at(use.stream);
    const Unlocked unlocked(lock);
    stream.wait(use.submission, StreamRecorder::For::room);
  }
}

VulkanGraph::Encoding& VulkanGraph::free_encoding() {
  if (const auto idle = idle_encoding(); idle != encodings_.end()) return *idle;
  Device& device = backend_.device();
  encodings_.reserve(kMaxEncodings);
  // Programs that keep creating graphs may not reach any other point at which retired objects are freed.
  backend_.retired().completed(backend_.streams().timelines());
  RetiredPipelines::Room room(backend_.retired());
  Encoding encoding;
  encoding.commands.resize(parts_);
  const Device::Commands made =
      device.make_commands(device.physical.queue_family, 0, std::span(encoding.commands).subspan(1));
  room.keep();
  encoding.objects.commands = made.pool;
  encoding.commands[0] = made.buffer;
  encodings_.push_back(std::move(encoding));
  return encodings_.back();
}

const std::vector<VkCommandBuffer>& VulkanGraph::encode() {
  if (encoding_ < encodings_.size() && encodings_[encoding_].version == version_) {
    return encodings_[encoding_].commands;
  }
  Encoding& encoding = free_encoding();
  encoding_ = static_cast<size_t>(&encoding - encodings_.data());
  encoding.version = 0;
  Device& device = backend_.device();
  device.check(device.vk.vkResetCommandPool(device.handle, encoding.objects.commands, 0), "vkResetCommandPool");
  size_t next = 0;
  each_part([&](std::span<const GraphCommand> part) { encode(part, encoding.commands[next++]); },
            [](const GraphCommand&) {});
  encoding.version = version_;
  return encoding.commands;
}

void VulkanGraph::encode(std::span<const GraphCommand> part, VkCommandBuffer commands) {
  Device& device = backend_.device();
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT;
  device.check(device.vk.vkBeginCommandBuffer(commands, &begin), "vkBeginCommandBuffer");
  CommandWriter writer(backend_.streams().base().device, bound_of(backend_.streams().base().unused));
  writer.begin(commands, true);
  writer.wait_for_all();  // orders the part after earlier work of the stream
  for (const GraphCommand& command : part) {
    with_commands(command, [&](const auto& what) {
      writer.order(what);
      writer.write(what);
    });
  }
  if (contents_.host_looks || has_steps()) writer.show_to_host();
  device.check(device.vk.vkEndCommandBuffer(commands), "vkEndCommandBuffer");
}

void VulkanGraph::launched(Use use) {
  last_launch_ = use;
  const Timelines& timelines = backend_.streams().timelines();
  each_buffer(
      [&](const Buffer& buffer) { static_cast<VulkanAllocation&>(*buffer.allocation).uses.add(use, timelines); });
  for (const auto& kernel : contents_.kernels) kernel->uses.add(use, timelines);
}

}  // namespace tuff
