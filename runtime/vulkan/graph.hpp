// Captured commands, and the command buffers that execute them.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "planning/operation.hpp"
#include "runtime/compute_stream.hpp"
#include "runtime/host/host_command.hpp"
#include "runtime/vulkan/command_writer.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"
#include "runtime/vulkan/device_recorder.hpp"
#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

class VulkanBackend;

// A call that the processor computes (processor.hpp), between commands of the device.
struct HostStep {
  std::shared_ptr<HostCommand> call;
  // What it uses of each operand, once the graph is bound to other memory. As the call was captured, in
  // GraphContents; `call` itself uses what is bound.
  std::vector<HazardTracker::Range> ranges = {};
};

struct GraphCommand {
  std::variant<BoundDispatch, BoundCopy, BoundFill, HostStep> what;
  bool fixed = false;  // a table holds its memory's addresses, so that memory cannot be replaced
  std::shared_ptr<const CallText> call = nullptr;  // the call it was captured for; null: see the command
};

// use(command), of the device's kinds. Nothing for a step.
template <typename Use>
void with_commands(const GraphCommand& command, const Use& use) {
  std::visit(
      [&](const auto& what) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(what)>, HostStep>) use(what);
      },
      command.what);
}

// What a graph owns or keeps alive.
struct GraphContents {
  struct Used {
    Buffer buffer;  // the whole allocation
    bool computed;  // by operations, which do not accept mapped buffers
  };
  std::vector<GraphCommand> commands;
  std::vector<Used> buffers;
  std::vector<Bound> in_tables;  // memory of fixed commands
  std::vector<std::shared_ptr<KernelPipeline>> kernels;
  std::vector<PipelinePin> pins;  // for the library's own pipelines
  uint64_t dispatches = 0;
  bool host_looks = false;  // something is copied into pinned memory
};

// Records a stream's calls while it captures.
class GraphRecorder final : public DeviceRecorder {
 public:
  GraphRecorder(RecorderBase& base, StreamRecorder& stream) : DeviceRecorder(base), stream_(stream) {}

  const Buffer& parameters(const void* data, uint32_t bytes) override;
  bool holds(const Probe& probe) override { return stream_.holds(probe); }
  void fill_edge(const Buffer& dst, uint64_t offset, uint64_t bytes, const std::byte* pattern, Buffer& text) override;
  void copy_pinned(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset, uint64_t bytes);
  // The processor computes it at each launch.
  void host_step(const Operation& operation);

  // For undoing a failed call: all that it leaves behind is memory that the graph keeps alive.
  struct Size {
    size_t commands, in_tables, kernels;
    uint64_t dispatches;
    bool host_looks;
  };
  Size size() const noexcept {
    return {contents_.commands.size(), contents_.in_tables.size(), contents_.kernels.size(), contents_.dispatches,
            contents_.host_looks};
  }
  void shrink(const Size& size) noexcept;
  // Describes the commands from index `commands` on.
  void describe(size_t commands, const CallText& text);
  // Moved from when the graph is created.
  GraphContents& contents() { return contents_; }

 private:
  void will_use(const Buffer&) override {}
  void has_used(const Buffer& buffer) override;
  void append(const BoundDispatch& dispatch) override;
  void append(const BoundCopy& copy) override { contents_.commands.push_back({copy}); }
  void append(const BoundFill& fill) override { contents_.commands.push_back({fill}); }
  void appended(double) override {}
  void launched(VulkanKernel& kernel) override { contents_.kernels.push_back(kernel.pipeline()); }
  Buffer table_memory(uint64_t bytes) override;

  void use(const Buffer& buffer, bool computed);
  Buffer host_written(uint64_t bytes);

  StreamRecorder& stream_;
  GraphContents contents_;
  std::unordered_map<const Allocation*, size_t> known_;  // index into contents_.buffers
  bool table_ = false;                                   // the next command has one
  Buffer written_;                                       // the rest of a piece of host-written memory
  Buffer parameters_;
};

class VulkanGraph final : public ComputeGraph {
 public:
  // Leaves the contents unchanged on failure.
  VulkanGraph(VulkanBackend& backend, GraphContents& contents);
  ~VulkanGraph() override;

  void bind(const Buffer& captured, const Buffer& replacement) override;

  // The functions below need the context's lock. Throws INVALID_ARGUMENT if an operand is mapped.
  void check_launch() const;
  bool empty() const noexcept { return contents_.commands.empty(); }
  bool has_parts() const noexcept { return parts_ != 0; }
  bool has_steps() const noexcept { return steps_ != 0; }
  bool host_looks() const noexcept { return contents_.host_looks; }
  uint64_t dispatches() const noexcept { return contents_.dispatches; }
  double bytes() const noexcept { return bytes_; }
  double operations() const noexcept { return operations_; }
  const std::vector<GraphCommand>& commands() const noexcept { return current_; }
  // Calls part(commands) for each run of commands of the device, and step(command) for what the processor computes, in
  // their order.
  template <typename Part, typename Step>
  void each_part(const Part& part, const Step& step) const {
    const std::span<const GraphCommand> all = current_;
    for (size_t i = 0; i < all.size();) {
      size_t end = i;
      while (end < all.size() && !std::holds_alternative<HostStep>(all[end].what)) ++end;
      if (end != i) part(all.subspan(i, end - i));
      if (end != all.size()) step(all[end]);
      i = end + 1;
    }
  }
  template <typename Visit>
  void each_buffer(const Visit& visit) const {
    for (const GraphContents::Used& used : contents_.buffers) visit(used.buffer);
    for (const Replacement& replacement : replacements_) visit(replacement.to);
  }
  Use last_launch() const noexcept { return last_launch_; }
  // Before encode(): releases the lock while it waits for a command buffer that the device has finished with.
  void make_room(std::unique_lock<Mutex>& lock);
  // Returns a command buffer for each part, of which there are some, for a compute queue; a graph without steps has one. Report the last
  // submission that they go into to submitted().
  const std::vector<VkCommandBuffer>& encode();
  void submitted(Use use) noexcept { encodings_[encoding_].last_use = use; }
  void launched(Use use);

 private:
  struct Replacement {
    Bound from;
    Buffer to;
  };
  struct Encoding {
    RetiredPipelines::Objects objects;
    std::vector<VkCommandBuffer> commands;  // of each part
    uint64_t version = 0;
    Use last_use;
  };
  static constexpr size_t kMaxEncodings = 4;

  static std::vector<GraphCommand> apply(const std::vector<GraphCommand>& commands,
                                         const std::vector<Replacement>& replacements);
  static std::vector<std::shared_ptr<Allocation>> find_operands(const GraphContents& contents,
                                                                const std::vector<GraphCommand>& commands,
                                                                const std::vector<Replacement>& replacements);
  bool uses(const Bound& memory) const;
  void find_ranges();
  void bind_steps() noexcept;
  void encode(std::span<const GraphCommand> part, VkCommandBuffer commands);
  std::vector<Encoding>::iterator idle_encoding();
  Encoding& free_encoding();

  VulkanBackend& backend_;
  GraphContents contents_;
  std::vector<GraphCommand> current_;  // with replacements applied
  std::vector<Replacement> replacements_;
  std::vector<std::shared_ptr<Allocation>> operands_;  // must not be mapped at a launch
  std::vector<Encoding> encodings_;
  size_t encoding_ = 0;  // the last one launched
  uint64_t version_ = 1;
  Use last_launch_;
  double bytes_ = 0, operations_ = 0;  // of all commands of the device
  size_t parts_ = 0, steps_ = 0;
};

}  // namespace tuff
