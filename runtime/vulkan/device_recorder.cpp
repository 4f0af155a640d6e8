#include "runtime/vulkan/device_recorder.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "planning/dry_run.hpp"
#include "planning/log.hpp"
#include "runtime/custom/extension.hpp"
#include "runtime/vulkan/custom_pipeline.hpp"

namespace tuff {

BoundCopy bound_copy(const char* label, const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                     uint64_t bytes) {
  const DeviceLocation to = locate(dst, dst_offset), from = locate(src, src_offset);
  BoundCopy copy;
  copy.label = label;
  copy.to = to.block;
  copy.from = from.block;
  copy.to_offset = to.offset;
  copy.from_offset = from.offset;
  copy.bytes = bytes;
  return copy;
}

RecorderBase::RecorderBase(std::shared_ptr<Device> own_device, std::shared_ptr<MemoryPool> own_pool,
                           KernelCache& own_kernels)
    : device(std::move(own_device)), pool(std::move(own_pool)), kernels(own_kernels) {
  unused.allocation = std::make_shared<VulkanAllocation>(pool, MemoryPool::kAlignment, MemoryKind::device);
  unused.bytes = MemoryPool::kAlignment;
}

bool DeviceRecorder::fits_descriptors(const Dispatch& dispatch) const noexcept {
  const uint64_t slack = base_.device->physical.properties.limits.minStorageBufferOffsetAlignment;
  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    if (dispatch.operands()[i].bytes + slack > traits().max_range) return false;
  }
  return true;
}

bool DeviceRecorder::prefers_addresses(Reads reads) const noexcept {
  switch (reads) {
    case Reads::streams: return traits().streams_by_addresses;
    case Reads::packed: return traits().packed_by_addresses;
    case Reads::tiles: break;
  }
  return traits().tiles_by_addresses;
}

bool DeviceRecorder::binds_addresses(Reads reads, const Dispatch& dispatch) const noexcept {
  return prefers_addresses(reads) || !fits_descriptors(dispatch);
}

// The range from the first to the last byte of a batch's buffers if all are in one block, so that one descriptor covers
// it; otherwise empty.
Bound DeviceRecorder::find_each(const Dispatch& dispatch, const Dispatch::Operand& operand, Touched& touched) const {
  const uint32_t first = touched.count;
  for (uint32_t i = 0; i < dispatch.each_count(); ++i) {
    const DeviceLocation at = locate(*operand.each[i], 0);
    uint32_t r = touched.count;
    while (r > first && touched.ranges[r - 1].block != at.block->id) --r;
    if (r > first) {
      HazardTracker::Range& range = touched.ranges[r - 1];
      range.begin = std::min(range.begin, at.offset);
      range.end = std::max(range.end, at.offset + operand.bytes_of(i));
    } else if (touched.count - first < Touched::kMaxBlocks) {
      touched.add(*at.block, at.offset, at.offset + operand.bytes_of(i), operand.access != Access::read);
    } else {
      touched.everything = true;
      return {};
    }
  }
  if (touched.count - first != 1) return {};
  // The table holds offsets from this start. Aligning it keeps elements as aligned in the descriptor as in memory.
  HazardTracker::Range& all = touched.ranges[first];
  all.begin -= all.begin % MemoryPool::kAlignment;
  return {locate(*operand.each[0], 0).block, all.begin, all.end};
}

// Locates the operands. Returns whether each is in memory that one descriptor can cover.
bool DeviceRecorder::find(const Dispatch& dispatch, BoundDispatch& bound) const {
  const uint64_t slack = base_.device->physical.properties.limits.minStorageBufferOffsetAlignment;
  bool fits = true;
  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    const Dispatch::Operand& operand = dispatch.operands()[i];
    Bound& all = bound.bound[i];
    all = {};
    if (operand.each != nullptr) {
      all = find_each(dispatch, operand, bound.touched);
      fits = fits && all.block != nullptr;
    } else if (operand.buffer != nullptr && operand.bytes != 0) {
      const DeviceLocation at = locate(*operand.buffer, operand.offset);
      all = {at.block, at.offset, at.offset + operand.bytes};
      Touched& touched = bound.touched;
      HazardTracker::Range* const last = touched.count != 0 ? &touched.ranges[touched.count - 1] : nullptr;
      if (last != nullptr && last->block == at.block->id && last->begin == all.begin && last->end == all.end) {
        last->write |= operand.access != Access::read;  // an in-place operation
      } else {
        touched.add(*at.block, all.begin, all.end, operand.access != Access::read);
      }
    }
    fits = fits && all.end - all.begin + slack <= traits().max_range;
  }
  return fits;
}

// Makes the views if all of the kernel's texel buffers can be bound as such.
bool DeviceRecorder::finds_texels(const KernelRequest& kernel, const BoundDispatch& bound) const {
  if (kernel.texels() == 0 || traits().max_texels == 0) return false;
  struct Texels {
    const MemoryBlock* block;
    uint64_t bytes;
  };
  std::array<Texels, Dispatch::kMaxOperands> found;
  uint32_t count = 0;
  for (uint32_t i = 0; i < Dispatch::kMaxOperands; ++i) {
    const uint64_t bytes = texel_bytes(kernel.texels(), i);
    if (bytes == 0) continue;
    const MemoryBlock* const bound_to = bound.bound[i].block;
    const MemoryBlock* const block = bound_to != nullptr ? bound_to : locate(base_.unused, 0).block;
    if (!has_texels(*base_.device, *block, bytes)) return false;
    found[count++] = {block, bytes};
  }
  for (uint32_t i = 0; i < count; ++i) texels_of(*base_.device, *found[i].block, found[i].bytes);
  return true;
}

// Writes the bases of operands that have one buffer per matrix, ordered by matrix.
Bound DeviceRecorder::write_table(const Dispatch& dispatch, const BoundDispatch& bound) {
  const uint64_t bytes = uint64_t{dispatch.each_count()} * dispatch.each_operands() * 8;
  const Buffer table = table_memory(bytes);
  auto* out = table.host<uint64_t>();
  for (uint32_t i = 0; i < dispatch.each_count(); ++i) {
    for (uint32_t slot = 0; slot < dispatch.operand_count(); ++slot) {
      const Dispatch::Operand& operand = dispatch.operands()[slot];
      if (operand.each == nullptr) continue;
      const DeviceLocation at = locate(*operand.each[i], 0);
      *out++ = bound.addresses ? at.block->address + at.offset : at.offset - bound.bound[slot].begin;
    }
  }
  const DeviceLocation at = locate(table, 0);
  return {at.block, at.offset, at.offset + bytes};
}

template <typename Visit>
void DeviceRecorder::each_buffer(const Dispatch& dispatch, const Visit& visit) {
  const Buffer* last = nullptr;
  for (uint32_t i = 0; i < dispatch.operand_count(); ++i) {
    const Dispatch::Operand& operand = dispatch.operands()[i];
    if (operand.each == nullptr) {
      if (operand.buffer == last || operand.buffer == nullptr || operand.bytes == 0) continue;
      last = operand.buffer;
      visit(*last);
    } else {
      for (uint32_t j = 0; j < dispatch.each_count(); ++j) visit(*operand.each[j]);
    }
  }
}

bool DeviceRecorder::bind(const KernelRequest& kernel, const Dispatch& dispatch, BoundDispatch& bound) {
  base_.device->require_alive();
  const auto& groups = dispatch.group_counts();
  if (groups[0] == 0 || groups[1] == 0 || groups[2] == 0) return false;
  for (int i = 0; i < 3; ++i) {
    if (groups[i] > traits().max_groups[i]) {
      fail(TUFF_ERROR_INTERNAL, "{} needs {} workgroups in dimension {}, the device runs at most {}", dispatch.label(),
           groups[i], i, traits().max_groups[i]);
    }
  }
  const bool fits = find(dispatch, bound);
  const bool must = kernel.is_wide() || !fits || kernel.source().native();
  if (!must && finds_texels(kernel, bound)) bound.texels = kernel.texels();
  bound.addresses = must || (bound.texels == 0 && prefers_addresses(kernel.reads()));
  if (bound.addresses && !traits().addresses) refuse_range(traits());
  bound.slots = dispatch.slots();
  bound.push_bytes = (dispatch.push_bytes() + 3) / 4 * 4;
  if (!kernel.source().native() && bound.slots * 8 + bound.push_bytes > KernelCache::kPushBytes) {
    fail(TUFF_ERROR_INTERNAL, "{} pushes {} bytes, at most {} are allowed", dispatch.label(),
         bound.slots * 8 + bound.push_bytes, KernelCache::kPushBytes);
  }
  const CachedPipeline& pipeline = base_.kernels.get(kernel, form_of(kernel, dispatch, bound.addresses, bound.texels));
  bound.pipeline = pipeline.handle;
  bound.layout = pipeline.layout;
  bound.function = pipeline.function;
  bound.workgroup_size = {pipeline.threads, 1, 1};
  bound.shared_bytes = pipeline.shared_bytes;
  bound.cached = &pipeline;
  return true;
}

void DeviceRecorder::prepare(const KernelRequest& kernel, const Dispatch& dispatch) {
  BoundDispatch bound;
  if (bind(kernel, dispatch, bound)) each_buffer(dispatch, [this](const Buffer& buffer) { will_use(buffer); });
}

void DeviceRecorder::dispatch(const KernelRequest& kernel, const Dispatch& dispatch) {
  BoundDispatch own;
  BoundDispatch& bound = place(own);
  if (!bind(kernel, dispatch, bound)) return;
  const uint32_t operands = dispatch.operand_count();
  each_buffer(dispatch, [this](const Buffer& buffer) { will_use(buffer); });
  if (rehearses(dispatch)) return;
  if (dispatch.each() != 0) bound.bound[operands] = write_table(dispatch, bound);
  std::memcpy(bound.push.data(), dispatch.push_data(), bound.push_bytes);
  bound.label = dispatch.label();
  bound.kernel = kernel.source().name;
  bound.variant = dispatch.variant();
  bound.bytes = dispatch.bytes();
  bound.operations = dispatch.operations();
  bound.groups = dispatch.group_counts();
  append(bound);
  each_buffer(dispatch, [this](const Buffer& buffer) { has_used(buffer); });
  const bool matrix_units = kernel.source().native() || kernel.matrices() != Matrices::none;
  appended(guess_seconds(bound.bytes, bound.operations, matrix_units));
}

double DeviceRecorder::guess_seconds(double bytes, double operations, bool matrix_units) const noexcept {
  if (traits().cpu) return bytes / 4e9 + operations / 10e9;
  return bytes / 2e12 + operations / (matrix_units ? 400e12 : 20e12);
}

// Bound by descriptors that cover each buffer completely, or in PTX by addresses.
void DeviceRecorder::launch(VulkanKernel& kernel, const LaunchArgs& args) {
  base_.device->require_alive();
  if (args.groups[0] == 0 || args.groups[1] == 0 || args.groups[2] == 0) return;
  const KernelInterface& interface = kernel.interface();
  BoundDispatch own;
  BoundDispatch& bound = place(own);
  bound.bases = false;
  bound.kernel = kernel.name().c_str();
  bound.label = args.call != nullptr ? bound.kernel : "kernel";
  bound.operations = args.call != nullptr ? args.call->flops : 0;
  bound.groups = args.groups;
  bound.pipeline = kernel.objects().pipeline;
  bound.layout = kernel.objects().layout;
  bound.function = kernel.objects().function;
  bound.workgroup_size = interface.workgroup_size;
  bound.shared_bytes = interface.dynamic_shared_bytes;
  bound.parameters = interface.parameters;
  for (uint32_t i = 0; i < args.buffers.size(); ++i) {
    const KernelInterface::Binding& binding = interface.bindings[i];
    if (!binding.used) {
      if (bound.function != VK_NULL_HANDLE) bound.bound[bound.slots++] = {};  // a parameter all the same
      continue;
    }
    const Buffer& buffer = *args.buffers[i];
    will_use(buffer);
    bound.bound[bound.slots] = bound_of(buffer);
    bound.bindings[bound.slots++] = static_cast<uint8_t>(i);
    // A block of which only the length is queried is neither read nor written; tracking it as read does no harm.
    const DeviceLocation at = locate(buffer, 0);
    bound.touched.add(*at.block, at.offset, at.offset + buffer.bytes, binding.written);
    bound.bytes += static_cast<double>(buffer.bytes);
  }
  if (args.push_bytes > bound.push.size()) {
    fail(TUFF_ERROR_LIMIT_EXCEEDED, "push_bytes is {}, at most {}", args.push_bytes, bound.push.size());
  }
  bound.push_bytes = args.push_bytes;
  if (args.push_bytes != 0) std::memcpy(bound.push.data(), args.push, args.push_bytes);
  append(bound);
  for (uint32_t i = 0; i < args.buffers.size(); ++i) {
    if (interface.bindings[i].used) has_used(*args.buffers[i]);
  }
  launched(kernel);
  appended(guess_seconds(bound.bytes, bound.operations));
}

void DeviceRecorder::copy(const char* label, const Buffer& dst, uint64_t dst_offset, const Buffer& src,
                          uint64_t src_offset, uint64_t bytes) {
  will_use(dst);
  will_use(src);
  const BoundCopy copy = bound_copy(label, dst, dst_offset, src, src_offset, bytes);
  append(copy);
  has_used(dst);
  has_used(src);
  appended(guess_seconds(copy.moved()));
}

void DeviceRecorder::copy_rows(const Rows& to, const Rows& from, uint64_t bytes, uint64_t count) {
  if (count == 0 || bytes == 0) return;
  will_use(*to.buffer);
  will_use(*from.buffer);
  const DeviceLocation target = locate(*to.buffer, to.offset), source = locate(*from.buffer, from.offset);
  BoundCopy copy;
  copy.label = "copy rows";
  copy.to = target.block;
  copy.from = source.block;
  copy.to_offset = target.offset;
  copy.from_offset = source.offset;
  copy.bytes = bytes;
  copy.to_pitch = to.pitch;
  copy.from_pitch = from.pitch;
  copy.rows = count;
  append(copy);
  has_used(*to.buffer);
  has_used(*from.buffer);
  appended(guess_seconds(copy.moved()));
}

void DeviceRecorder::fill_words(const Buffer& dst, uint64_t offset, uint64_t bytes, uint32_t word) {
  will_use(dst);
  const DeviceLocation at = locate(dst, offset);
  append(BoundFill{at.block, at.offset, bytes, word});
  has_used(dst);
  appended(guess_seconds(static_cast<double>(bytes)));
}

Buffer DeviceRecorder::new_memory(uint64_t bytes, MemoryKind kind) const {
  Buffer buffer;
  buffer.allocation = std::make_shared<VulkanAllocation>(base_.pool, bytes, kind);
  buffer.bytes = bytes;
  return buffer;
}

Buffer DeviceRecorder::new_host_written(uint64_t bytes) const {
  const bool device = base_.pool->maps(bytes);
  const MemoryKind kind = device ? MemoryKind::device : MemoryKind::readback;
  Buffer buffer;
  buffer.allocation = std::make_shared<VulkanAllocation>(
      base_.pool, MemoryRequest{.bytes = bytes, .kind = kind, .limited = device, .mapped = true});
  buffer.bytes = bytes;
  return buffer;
}

const Buffer& DeviceRecorder::scratch(uint64_t bytes, Scratch place) {
  Buffer& scratch = scratch_[static_cast<size_t>(place)];
  if (scratch.bytes < bytes) {
    // Allocate half as much again, so that growing shapes do not reallocate every time.
    scratch = new_memory(std::max<uint64_t>(bytes + bytes / 2, 1 << 20), MemoryKind::device);
  }
  return scratch;
}

}  // namespace tuff
