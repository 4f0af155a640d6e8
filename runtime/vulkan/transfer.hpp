// Host memory to device memory and back.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/vulkan/stream_recorder.hpp"

namespace tuff {

// What a context has moved.
struct TransferCounters {
  uint64_t uploaded = 0, downloaded = 0;
  uint64_t staged = 0;  // of both, what went through memory in between
};

// Moves bytes straight through mapped memory where the device is not using it and the host is fast at it, and through
// staging, in order with the stream's work, elsewhere. What is large is staged in chunks: while the device copies some,
// the host's threads copy the next.
class Transfer {
 public:
  // TUFF_TRANSFER=staged has everything staged, as it is where no memory is mapped.
  Transfer(StreamRecorder& recorder, std::shared_ptr<MemoryPool> pool, TransferCounters& counters);

  // `lock` holds the context's lock; it is let go while the host waits for the device or copies much. What other
  // threads record meanwhile comes before, between or after the chunks; what is recorded after the return comes after
  // all.
  void upload(std::unique_lock<std::mutex>& lock, const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes);
  void download(std::unique_lock<std::mutex>& lock, void* dst, const Buffer& src, uint64_t offset, uint64_t bytes);

 private:
  bool write_mapped(std::unique_lock<std::mutex>& lock, const Buffer& dst, uint64_t offset, const std::byte* src,
                    uint64_t bytes);
  bool read_mapped(std::unique_lock<std::mutex>& lock, std::byte* dst, const Buffer& src, uint64_t offset,
                   uint64_t bytes);
  void stage_up(std::unique_lock<std::mutex>& lock, const Buffer& dst, uint64_t offset, const std::byte* src,
                uint64_t bytes);
  void stage_down(std::unique_lock<std::mutex>& lock, std::byte* dst, const Buffer& src, uint64_t offset,
                  uint64_t bytes);

  StreamRecorder& recorder_;
  std::shared_ptr<MemoryPool> pool_;
  bool all_staged_ = false;
  TransferCounters& counters_;
};

}  // namespace tuff
