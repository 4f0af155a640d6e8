#include "planning/buffer.hpp"
#include "planning/status.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "runtime/custom/extension.hpp"

namespace tuff {
namespace {

// A buffer of a launch, as messages call it: "buffers[1]", or its name in a registered operation.
struct BufferName {
  const LaunchArgs& args;
  uint32_t i;
};

}  // namespace
}  // namespace tuff

template <>
struct fmt::formatter<tuff::BufferName> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const tuff::BufferName& name, Context& context) const {
    const tuff::ExtensionCall* call = name.args.call;
    if (call == nullptr) return fmt::format_to(context.out(), "buffers[{}]", name.i);
    return fmt::format_to(context.out(), "{}", call->operation->buffer_name(name.i));
  }
};

namespace tuff {
namespace {

void check_buffer(const LaunchArgs& args, uint32_t i, const KernelInterface::Binding& binding,
                  const LaunchLimits& limits) {
  if (!binding.used) return;
  const Buffer* buffer = args.buffers[i];
  const BufferName name{args, i};
  require(buffer != nullptr, "{} is TUFF_NULL_HANDLE, and the kernel uses binding {}", name, i);
  require(buffer->bytes != 0, "{} is empty, and the kernel uses binding {}", name, i);
  require(buffer->bytes >= binding.min_bytes, "{} holds {} bytes, the kernel's block at binding {} needs at least {}",
          name, buffer->bytes, i, binding.min_bytes);
  require(!buffer->allocation->mapped.load(std::memory_order_relaxed), "{} is mapped, needs tuff_unmap first", name);
  require(buffer->offset % limits.alignment == 0,
          "{} begins {} bytes into its memory, this device binds at multiples of {}", name, buffer->offset,
          limits.alignment);
  if (buffer->bytes > limits.max_range) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "{} holds {} bytes, this device binds at most {} at once (tuff_view)", name,
         buffer->bytes, limits.max_range);
  }
}

}  // namespace

bool buffers_overlap(const Buffer& a, const Buffer& b) {
  return a.allocation == b.allocation && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

void check_launch(const KernelInterface& kernel, const LaunchArgs& args, const LaunchLimits& limits) {
  const size_t count = kernel.bindings.size();
  require(args.buffers.size() == count, "count is {}, the kernel takes {} buffers", args.buffers.size(), count);
  require(args.push_bytes == kernel.push_bytes, "push_bytes is {}, the kernel's push constants are {} bytes",
          args.push_bytes, kernel.push_bytes);
  require(args.push != nullptr || args.push_bytes == 0, "push is null and push_bytes is {}", args.push_bytes);
  constexpr char kAxes[] = {'x', 'y', 'z'};
  for (size_t i = 0; i < 3; ++i) {
    if (args.groups[i] > limits.max_groups[i]) {
      fail(TUFF_ERROR_LIMIT_EXCEEDED, "g{} is {}, this device runs at most {} workgroups in that dimension", kAxes[i],
           args.groups[i], limits.max_groups[i]);
    }
  }
  for (uint32_t i = 0; i < count; ++i) check_buffer(args, i, kernel.bindings[i], limits);
  for (uint32_t i = 0; i < count; ++i) {
    if (kernel.overlaps || !kernel.bindings[i].used || !kernel.bindings[i].written) continue;
    for (uint32_t j = 0; j < count; ++j) {
      if (j == i || !kernel.bindings[j].used) continue;
      require(!buffers_overlap(*args.buffers[i], *args.buffers[j]), "{} is written by the kernel and overlaps {}",
              BufferName{args, i}, BufferName{args, j});
    }
  }
}

}  // namespace tuff
