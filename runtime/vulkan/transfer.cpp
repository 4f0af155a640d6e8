#include "runtime/vulkan/transfer.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tuff {
namespace {

constexpr uint64_t kChunk = 16ull << 20;           // staging for one step
constexpr uint64_t kStagedInFlight = 64ull << 20;  // then the host waits
// Uploads above this into mapped memory that is in use wait for it instead of being staged.
constexpr uint64_t kStageLimit = 16ull << 20;

void wait_unlocked(std::unique_lock<std::mutex>& lock, StreamRecorder& recorder, uint64_t submission) {
  struct Relock {
    std::unique_lock<std::mutex>& lock;
    ~Relock() { lock.lock(); }
  };
  lock.unlock();
  const Relock relock{lock};
  recorder.wait(submission);
}

// A staging range for as long as the device needs it.
class Staging {
 public:
  Staging(MemoryPool& pool, StreamRecorder& recorder, uint64_t bytes)
      : recorder_(recorder), range_(pool.allocate(bytes, MemoryKind::readback)) {}
  ~Staging() { recorder_.release(range_, last_use_ != 0 ? last_use_ : recorder_.current_submission()); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  const MemoryRange& range() const { return range_; }
  std::byte* host() const { return range_.block->host + range_.offset; }
  // Nothing recorded after this submission uses it; without this, all that is recorded so far may.
  void used_until(uint64_t submission) { last_use_ = submission; }

 private:
  StreamRecorder& recorder_;
  MemoryRange range_;
  uint64_t last_use_ = 0;
};

}  // namespace

void Transfer::upload(std::unique_lock<std::mutex>& lock, const Buffer& dst, uint64_t offset, const void* src,
                      uint64_t bytes) {
  const auto* from = static_cast<const std::byte*>(src);
  std::byte* mapped = dst.allocation->host();
  if (mapped != nullptr && bytes > kStageLimit && recorder_.busy(dst)) {
    wait_unlocked(lock, recorder_, recorder_.submit(false));
  }
  if (mapped != nullptr && !recorder_.busy(dst)) {
    std::memcpy(mapped + dst.offset + offset, from, bytes);
  } else {
    stage_up(lock, dst, offset, from, bytes);
    recorder_.filled(dst);
    counters_.staged += bytes;
  }
  counters_.uploaded += bytes;
}

void Transfer::stage_up(std::unique_lock<std::mutex>& lock, const Buffer& dst, uint64_t offset, const std::byte* src,
                        uint64_t bytes) {
  uint64_t in_flight = 0;
  for (uint64_t done = 0; done < bytes; done += kChunk) {
    const uint64_t part = std::min(kChunk, bytes - done);
    {
      const Staging staging(*pool_, recorder_, part);
      std::memcpy(staging.host(), src + done, part);
      recorder_.copy_from_staging(dst, offset + done, staging.range(), part);
    }
    in_flight += part;
    if (bytes > kChunk) recorder_.submit(false);
    if (in_flight >= kStagedInFlight) {
      wait_unlocked(lock, recorder_, recorder_.submit(false));
      in_flight = 0;
    }
  }
}

void Transfer::download(std::unique_lock<std::mutex>& lock, void* dst, const Buffer& src, uint64_t offset,
                        uint64_t bytes) {
  auto* to = static_cast<std::byte*>(dst);
  if (src.allocation->host() != nullptr && locate(src, 0).block->cached) {
    wait_unlocked(lock, recorder_, recorder_.submit(true));
    // Unless another thread gave the device new work on this memory meanwhile.
    if (!recorder_.busy(src)) {
      std::memcpy(to, src.allocation->host() + src.offset + offset, bytes);
      counters_.downloaded += bytes;
      return;
    }
  }
  stage_down(lock, to, src, offset, bytes);
  counters_.staged += bytes;
  counters_.downloaded += bytes;
}

// Two chunks: the device fills one while the host empties the other.
void Transfer::stage_down(std::unique_lock<std::mutex>& lock, std::byte* dst, const Buffer& src, uint64_t offset,
                          uint64_t bytes) {
  const uint64_t chunk = std::min(kChunk, bytes);
  std::optional<Staging> halves[2];
  halves[0].emplace(*pool_, recorder_, chunk);
  if (bytes > chunk) halves[1].emplace(*pool_, recorder_, chunk);
  uint64_t submissions[2] = {0, 0};
  const uint64_t chunks = ceil_div(bytes, chunk);
  const auto size_of = [&](uint64_t i) { return std::min(chunk, bytes - i * chunk); };
  for (uint64_t i = 0; i <= chunks; ++i) {
    if (i < chunks) {
      recorder_.copy_to_staging(halves[i % 2]->range(), src, offset + i * chunk, size_of(i));
      submissions[i % 2] = recorder_.submit(true);
      halves[i % 2]->used_until(submissions[i % 2]);
    }
    if (i > 0) {
      wait_unlocked(lock, recorder_, submissions[(i - 1) % 2]);
      lock.unlock();
      std::memcpy(dst + (i - 1) * chunk, halves[(i - 1) % 2]->host(), size_of(i - 1));
      lock.lock();
    }
  }
}

}  // namespace tuff
