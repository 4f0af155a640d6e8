// The header's "Memory" group.
#include <algorithm>
#include <chrono>
#include <memory>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"
#include "runtime/peer_copy.hpp"

using tuff::capi::acquire_buffer;
using tuff::capi::acquire_context;
using tuff::capi::BufferObject;
using tuff::capi::guarded;

namespace {

// How much is moved between two looks at the clock: some milliseconds on a CPU.
constexpr uint64_t kCompactionStep = 16 << 20;

// How often all memory in use is moved at most. One move brings most of it to where it stays.
constexpr uint64_t kMovesOfEach = 4;

bool is_over(std::chrono::steady_clock::time_point begin, uint64_t milliseconds) {
  if (milliseconds == 0) return false;
  const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
  return passed.count() >= static_cast<double>(milliseconds);
}

}  // namespace

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

tuff_status tuff_context_compact(tuff_context context, const tuff_compact_desc* desc, tuff_compaction* compaction) {
  return guarded("tuff_context_compact", [&] {
    const auto object = acquire_context(context);
    const tuff_compact_desc wanted = desc != nullptr ? tuff::capi::read_structure(desc, "desc") : tuff_compact_desc{};
    tuff::require_reserved(wanted.reserved);
    tuff::capi::check_output_structure(compaction, "compaction");
    const auto begin = std::chrono::steady_clock::now();
    tuff::ComputeBackend& backend = object->backend();
    backend.synchronize();
    tuff_memory_stats memory{};
    backend.memory(memory);
    tuff_compaction report{};
    report.fragmentation_before = memory.fragmentation;
    report.largest_free_before = memory.bytes_largest_free;
    // Without a limit it ends although other threads keep leaving new holes.
    const uint64_t enough = std::max<uint64_t>(kMovesOfEach * memory.bytes_in_use, 1);
    const uint64_t most = wanted.max_bytes != 0 ? wanted.max_bytes : enough;
    while (report.bytes_moved < most) {
      tuff::CompactionStep step;
      step.max_bytes = std::min(most - report.bytes_moved, kCompactionStep);
      object->compact(step);
      backend.synchronize();  // what was moved leaves free memory behind once its copies are made
      report.bytes_moved += step.bytes;
      report.buffers_moved += step.buffers;
      report.buffers_fixed = step.fixed;
      report.done = step.buffers == 0 && step.waiting == 0 ? 1 : 0;
      if (step.buffers == 0 || is_over(begin, wanted.max_milliseconds)) break;
    }
    backend.memory(memory);
    report.fragmentation_after = memory.fragmentation;
    report.largest_free_after = memory.bytes_largest_free;
    tuff::capi::write_structure(compaction, report);
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
