// The header's "Buffers" group.
#include <algorithm>
#include <iterator>
#include <memory>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/ranges.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::AllocOptions;
using tuff::Buffer;
using tuff::Ref;
using tuff::capi::acquire_buffer;
using tuff::capi::acquire_context;
using tuff::capi::acquire_stream;
using tuff::capi::BufferObject;
using tuff::capi::check_accessible;
using tuff::capi::check_apart;
using tuff::capi::check_range;
using tuff::capi::Context;
using tuff::capi::guarded;

namespace {

tuff_buffer allocate(const Ref<Context>& context, const AllocOptions& options) {
  return context->adopt(std::make_unique<BufferObject>(context, context->backend().alloc(options)));
}

}  // namespace

extern "C" {

tuff_status tuff_alloc(tuff_context context, uint64_t bytes, tuff_buffer* buffer) {
  return guarded("tuff_alloc", [&] {
    const auto owner = acquire_context(context);
    tuff::require(buffer != nullptr, "buffer is null");
    AllocOptions options;
    options.bytes = bytes;
    *buffer = allocate(owner, options);
  });
}

tuff_status tuff_alloc_ex(tuff_context context, const tuff_alloc_desc* desc, tuff_buffer* buffer) {
  return guarded("tuff_alloc_ex", [&] {
    const auto owner = acquire_context(context);
    const tuff_alloc_desc wanted = tuff::capi::read_structure(desc, "desc");
    tuff::require(buffer != nullptr, "buffer is null");
    constexpr uint32_t kKnownFlags =
        TUFF_ALLOC_HOST_VISIBLE | TUFF_ALLOC_UNINITIALIZED | TUFF_ALLOC_HOST_PINNED | TUFF_ALLOC_EXPORTABLE;
    tuff::require((wanted.flags & ~kKnownFlags) == 0, "desc->flags is {:#x}, this version knows {:#x}", wanted.flags,
                  kKnownFlags);
    AllocOptions options;
    options.bytes = wanted.bytes;
    options.host_pinned = (wanted.flags & TUFF_ALLOC_HOST_PINNED) != 0;
    options.host_visible = options.host_pinned || (wanted.flags & TUFF_ALLOC_HOST_VISIBLE) != 0;
    options.exportable = (wanted.flags & TUFF_ALLOC_EXPORTABLE) != 0;
    tuff::require(!(options.host_pinned && options.exportable),
                  "desc->flags is {:#x}: memory of the host is not exportable", wanted.flags);
    options.zeroed = (wanted.flags & TUFF_ALLOC_UNINITIALIZED) == 0;
    if (wanted.name != nullptr) options.name = wanted.name;
    *buffer = allocate(owner, options);
  });
}

tuff_status tuff_view(tuff_buffer buffer, uint64_t offset, uint64_t bytes, tuff_buffer* view) {
  return guarded("tuff_view", [&] {
    const auto whole = acquire_buffer(buffer, "buffer");
    tuff::require(view != nullptr, "view is null");
    check_range(whole->buffer(), "buffer", offset, bytes);
    Buffer part = whole->buffer();
    part.offset += offset;
    part.bytes = bytes;
    const Ref<Context>& context = whole->context();
    *view = context->adopt(std::make_unique<BufferObject>(context, std::move(part)));
  });
}

tuff_status tuff_free(tuff_buffer buffer) {
  if (buffer == TUFF_NULL_HANDLE) return TUFF_OK;
  return guarded("tuff_free", [&] {
    const auto object = tuff::handle_table().remove<BufferObject>(buffer, tuff::HandleKind::buffer);
    if (!object) tuff::capi::fail_handle("buffer", buffer, "buffer");
    object->context()->forget(*object);
  });
}

tuff_status tuff_buffer_size(tuff_buffer buffer, uint64_t* bytes) {
  return guarded("tuff_buffer_size", [&] {
    const auto object = acquire_buffer(buffer, "buffer");
    tuff::require(bytes != nullptr, "bytes is null");
    *bytes = object->buffer().bytes;
  });
}

tuff_status tuff_copy_htod(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, const void* src, uint64_t bytes) {
  return guarded("tuff_copy_htod", [&] {
    const auto target = acquire_stream(stream);
    const auto destination = acquire_buffer(target, dst, "dst");
    check_accessible(destination->buffer(), "dst", dst_offset, bytes);
    if (bytes == 0) return;
    tuff::require(src != nullptr, "src is null");
    target->copy_htod(destination->buffer(), dst_offset, src, bytes);
  });
}

tuff_status tuff_copy_dtoh(tuff_stream stream, void* dst, tuff_buffer src, uint64_t src_offset, uint64_t bytes) {
  return guarded("tuff_copy_dtoh", [&] {
    const auto target = acquire_stream(stream);
    const auto source = acquire_buffer(target, src, "src");
    check_accessible(source->buffer(), "src", src_offset, bytes);
    if (bytes == 0) return;
    tuff::require(dst != nullptr, "dst is null");
    target->copy_dtoh(dst, source->buffer(), src_offset, bytes);
  });
}

tuff_status tuff_copy_dtod(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, tuff_buffer src,
                           uint64_t src_offset, uint64_t bytes) {
  return guarded("tuff_copy_dtod", [&] {
    const auto target = acquire_stream(stream);
    const auto destination = acquire_buffer(target, dst, "dst");
    const auto source = acquire_buffer(target, src, "src");
    const Buffer &to = destination->buffer(), &from = source->buffer();
    check_accessible(to, "dst", dst_offset, bytes);
    check_accessible(from, "src", src_offset, bytes);
    if (bytes == 0) return;
    check_apart(to, dst_offset, from, src_offset, bytes);
    target->copy_dtod(to, dst_offset, from, src_offset, bytes);
  });
}

tuff_status tuff_fill(tuff_stream stream, tuff_buffer buffer, uint64_t offset, uint64_t bytes, const void* pattern,
                      uint64_t pattern_bytes) {
  return guarded("tuff_fill", [&] {
    const auto target = acquire_stream(stream);
    const auto destination = acquire_buffer(target, buffer, "buffer");
    constexpr uint64_t kSizes[] = {1, 2, 4, 8, 16};
    tuff::require(std::find(std::begin(kSizes), std::end(kSizes), pattern_bytes) != std::end(kSizes),
                  "pattern_bytes is {}, needs 1, 2, 4, 8 or 16", pattern_bytes);
    tuff::require(offset % pattern_bytes == 0, "offset is {}, needs a multiple of pattern_bytes ({})", offset,
                  pattern_bytes);
    tuff::require(bytes % pattern_bytes == 0, "bytes is {}, needs a multiple of pattern_bytes ({})", bytes,
                  pattern_bytes);
    check_accessible(destination->buffer(), "buffer", offset, bytes);
    if (bytes == 0) return;
    tuff::require(pattern != nullptr, "pattern is null");
    target->fill(destination->buffer(), offset, bytes, pattern, pattern_bytes);
  });
}

tuff_status tuff_map(tuff_buffer buffer, void** pointer) {
  return guarded("tuff_map", [&] {
    const auto object = acquire_buffer(buffer, "buffer");
    tuff::require(pointer != nullptr, "pointer is null");
    *pointer = object->map();
  });
}

tuff_status tuff_unmap(tuff_buffer buffer) {
  return guarded("tuff_unmap", [&] { acquire_buffer(buffer, "buffer")->unmap(); });
}

}  // extern "C"
