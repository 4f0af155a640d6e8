#include "planning/buffer.hpp"
#include "planning/status.hpp"
#include "runtime/custom/custom_kernel.hpp"

namespace tuff {
namespace {

void check_buffer(const Buffer* buffer, uint32_t i, const KernelInterface::Binding& binding,
                  const LaunchLimits& limits) {
  if (!binding.used) return;
  require(buffer != nullptr, "buffers[{}] is TUFF_NULL_HANDLE, and the kernel uses binding {}", i, i);
  require(buffer->bytes >= binding.min_bytes && buffer->bytes != 0,
          "buffers[{}] holds {} bytes, the kernel's block at binding {} needs at least {}", i, buffer->bytes, i,
          binding.min_bytes);
  require(!buffer->allocation->mapped.load(std::memory_order_relaxed), "buffers[{}] is mapped, needs tuff_unmap first",
          i);
  require(buffer->offset % limits.alignment == 0,
          "buffers[{}] begins {} bytes into its memory, this device binds at multiples of {}", i, buffer->offset,
          limits.alignment);
  if (buffer->bytes > limits.max_range) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "buffers[{}] holds {} bytes, this device binds at most {} at once (tuff_view)", i,
         buffer->bytes, limits.max_range);
  }
}

bool buffers_overlap(const Buffer& a, const Buffer& b) {
  return a.allocation == b.allocation && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

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
  for (uint32_t i = 0; i < count; ++i) check_buffer(args.buffers[i], i, kernel.bindings[i], limits);
  for (uint32_t i = 0; i < count; ++i) {
    if (kernel.overlaps || !kernel.bindings[i].used || !kernel.bindings[i].written) continue;
    for (uint32_t j = 0; j < count; ++j) {
      if (j == i || !kernel.bindings[j].used) continue;
      require(!buffers_overlap(*args.buffers[i], *args.buffers[j]),
              "buffers[{}] is written by the kernel and overlaps buffers[{}]", i, j);
    }
  }
}

}  // namespace tuff
