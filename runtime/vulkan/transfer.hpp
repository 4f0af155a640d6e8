// Copies between host memory and device memory.
#pragma once

#include <memory>

#include "platform/mutex.hpp"
#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// Bytes that a context has moved.
struct TransferCounters {
  uint64_t uploaded = 0, downloaded = 0;
  uint64_t staged = 0;  // of both: bytes that went through staging
};

// Copies directly through mapped memory if the device is not using it and the host accesses it fast, otherwise through
// staging, in order with the stream's work. Large copies are staged in chunks: while the device copies one, the host's
// threads copy the next.
class Transfer {
 public:
  // TUFF_TRANSFER=staged forces staging, as on devices without mapped memory.
  Transfer(StreamRecorder& recorder, std::shared_ptr<MemoryPool> pool, TransferCounters& counters);

  // `lock` holds the context's lock. It is released while the host waits for the device or copies large amounts. What
  // other threads record meanwhile comes before, between or after the chunks; what is recorded after the call returns
  // comes after all of them.
  void upload(std::unique_lock<Mutex>& lock, const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes);
  void download(std::unique_lock<Mutex>& lock, void* dst, const Buffer& src, uint64_t offset, uint64_t bytes);

 private:
  bool write_mapped(std::unique_lock<Mutex>& lock, const Buffer& dst, uint64_t offset, const std::byte* src,
                    uint64_t bytes);
  bool read_mapped(std::unique_lock<Mutex>& lock, std::byte* dst, const Buffer& src, uint64_t offset, uint64_t bytes);
  void stage_up(std::unique_lock<Mutex>& lock, const Buffer& dst, uint64_t offset, const std::byte* src,
                uint64_t bytes);
  void stage_down(std::unique_lock<Mutex>& lock, std::byte* dst, const Buffer& src, uint64_t offset, uint64_t bytes);

  StreamRecorder& recorder_;
  std::shared_ptr<MemoryPool> pool_;
  bool all_staged_ = false;
  TransferCounters& counters_;
};

}  // namespace tuff
