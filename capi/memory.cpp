// The header's "Memory" group.
#include <memory>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "runtime/peer_copy.hpp"

using tuff::capi::acquire_buffer;
using tuff::capi::acquire_context;
using tuff::capi::BufferObject;
using tuff::capi::guarded;

extern "C" {

tuff_status tuff_context_memory(tuff_context context, tuff_memory_stats* stats) {
  return guarded("tuff_context_memory", [&] {
    const auto object = acquire_context(context);
    tuff::capi::check_output_structure(stats, "stats");
    tuff_memory_stats memory{};
    object->backend().memory(memory);
    tuff::capi::write_structure(stats, memory);
  });
}

tuff_status tuff_context_trim(tuff_context context) {
  return guarded("tuff_context_trim", [&] {
    const auto object = acquire_context(context);
    tuff::forget_peer(object.get());
    object->backend().trim();
  });
}

tuff_status tuff_context_reset_peak(tuff_context context) {
  return guarded("tuff_context_reset_peak", [&] { acquire_context(context)->backend().reset_peak(); });
}

tuff_status tuff_context_set_memory_callback(tuff_context context, tuff_memory_callback callback, void* user) {
  return guarded("tuff_context_set_memory_callback",
                 [&] { acquire_context(context)->backend().pressure().set(callback, user); });
}

tuff_status tuff_buffer_import_host(tuff_context context, void* memory, uint64_t bytes, tuff_buffer* buffer) {
  return guarded("tuff_buffer_import_host", [&] {
    const auto owner = acquire_context(context);
    tuff::require(memory != nullptr, "memory is null");
    const auto address = reinterpret_cast<uintptr_t>(memory);
    tuff::require(bytes <= UINTPTR_MAX - address, "bytes is {}, beyond the end of the address space from {:#x}", bytes,
                  address);
    tuff::require(buffer != nullptr, "buffer is null");
    *buffer = owner->adopt(std::make_unique<BufferObject>(owner, owner->backend().import_host(memory, bytes, nullptr)));
  });
}

tuff_status tuff_buffer_export_fd(tuff_buffer buffer, tuff_memory_fd* info) {
  return guarded("tuff_buffer_export_fd", [&] {
    const auto object = acquire_buffer(buffer, "buffer");
    tuff::capi::check_output_structure(info, "info");
    tuff_memory_fd exported{};
    object->context()->backend().export_fd(object->buffer(), exported);
    tuff::capi::write_structure(info, exported);
  });
}

tuff_status tuff_buffer_import_fd(tuff_context context, const tuff_memory_fd* info, tuff_buffer* buffer) {
  return guarded("tuff_buffer_import_fd", [&] {
    const auto owner = acquire_context(context);
    const tuff_memory_fd wanted = tuff::capi::read_structure(info, "info");
    tuff::require(buffer != nullptr, "buffer is null");
    *buffer = owner->adopt(std::make_unique<BufferObject>(owner, owner->backend().import_fd(wanted)));
  });
}

}  // extern "C"
