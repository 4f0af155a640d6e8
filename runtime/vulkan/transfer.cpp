#include "runtime/vulkan/transfer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "planning/log.hpp"
#include "platform/platform.hpp"
#include "runtime/host_copy.hpp"
#include "runtime/unlocked.hpp"

namespace tuff {
namespace {

// Number of chunks in flight: some are copied by the device, two by the host.
constexpr uint64_t kDepth = 4;
constexpr uint64_t kMaxChunk = 8ull << 20, kMinChunk = 1ull << 20;
// Up to this size, the host writes directly into mapped device memory across the link: one thread is as fast as into
// staging, and the device is not involved. On an H200, uploads of 4 MiB reach 31 GB/s this way and 18 staged; 16 MiB 33
// and 35.
constexpr uint64_t kMaxMapped = 8ull << 20;
// Larger uploads into mapped memory that is in use wait for it instead of being staged.
constexpr uint64_t kStageLimit = 16ull << 20;

void wait_unlocked(std::unique_lock<Mutex>& lock, StreamRecorder& recorder, uint64_t submission) {
  const Unlocked unlocked(lock);
  recorder.wait(submission);
}

// A copy to or from mapped memory.
void copy_mapped(std::unique_lock<Mutex>& lock, std::byte* dst, const std::byte* src, uint64_t bytes) {
  if (bytes < HostCopy::kMinShared) {
    std::memcpy(dst, src, bytes);
    return;
  }
  const Unlocked unlocked(lock);
  host_copy(dst, src, bytes);
}

// A staging range, released when the device has finished with it.
class Staging {
 public:
  Staging(MemoryPool& pool, StreamRecorder& recorder, uint64_t bytes)
      : recorder_(recorder), range_(pool.allocate(bytes, MemoryKind::readback)) {}
  ~Staging() { recorder_.release(range_, last_use_); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  const MemoryRange& range() const { return range_; }
  std::byte* host() const { return range_.block->host + range_.offset; }
  // The last submission that uses the range.
  void used_until(uint64_t submission) { last_use_ = submission; }
  uint64_t last_use() const { return last_use_; }

 private:
  StreamRecorder& recorder_;
  MemoryRange range_;
  uint64_t last_use_ = 0;
};

// The chunks of a transfer, which reuse a ring of staging ranges.
class Chunks {
 public:
  // Small transfers overlap too: they are divided into as many chunks as the ring has.
  Chunks(MemoryPool& pool, StreamRecorder& recorder, uint64_t bytes)
      : bytes_(bytes),
        chunk_(std::clamp(round_up(ceil_div(bytes, kDepth), kMinChunk), kMinChunk, kMaxChunk)),
        count_(ceil_div(bytes, chunk_)) {
    for (uint64_t i = 0; i < std::min(count_, kDepth); ++i) ring_[i].emplace(pool, recorder, std::min(bytes, chunk_));
  }
  uint64_t count() const { return count_; }
  uint64_t at(uint64_t i) const { return i * chunk_; }
  uint64_t size(uint64_t i) const { return std::min(chunk_, bytes_ - at(i)); }
  Staging& staging(uint64_t i) { return ring_[i % kDepth]->staging; }
  HostCopy& copy(uint64_t i) { return ring_[i % kDepth]->copy; }

 private:
  struct Slot {
    Slot(MemoryPool& pool, StreamRecorder& recorder, uint64_t bytes) : staging(pool, recorder, bytes) {}
    Staging staging;
    HostCopy copy;  // its destructor runs before the memory is released
  };
  uint64_t bytes_, chunk_, count_;
  std::array<std::optional<Slot>, kDepth> ring_;
};

}  // namespace

Transfer::Transfer(StreamRecorder& recorder, std::shared_ptr<MemoryPool> pool, TransferCounters& counters)
    : recorder_(recorder), pool_(std::move(pool)), counters_(counters) {
  all_staged_ = platform::environment("TUFF_TRANSFER") == "staged";
}

void Transfer::upload(std::unique_lock<Mutex>& lock, const Buffer& dst, uint64_t offset, const void* src,
                      uint64_t bytes) {
  const auto* from = static_cast<const std::byte*>(src);
  if (!write_mapped(lock, dst, offset, from, bytes)) {
    stage_up(lock, dst, offset, from, bytes);
    recorder_.filled(dst);
    counters_.staged += bytes;
  }
  counters_.uploaded += bytes;
}

bool Transfer::write_mapped(std::unique_lock<Mutex>& lock, const Buffer& dst, uint64_t offset, const std::byte* src,
                            uint64_t bytes) {
  const std::shared_ptr<Allocation> stays = dst.allocation;  // its memory is not moved (compaction.cpp)
  std::byte* mapped = stays->host();
  if (mapped == nullptr || all_staged_) return false;
  const bool fast = locate(dst, 0).block->cached;
  if (!fast && bytes > kMaxMapped) return false;
  if (bytes > kStageLimit && recorder_.busy(dst)) wait_unlocked(lock, recorder_, recorder_.submit(false));
  if (recorder_.busy(dst)) return false;
  copy_mapped(lock, mapped + dst.offset + offset, src, bytes);
  return true;
}

void Transfer::stage_up(std::unique_lock<Mutex>& lock, const Buffer& dst, uint64_t offset, const std::byte* src,
                        uint64_t bytes) {
  recorder_.make_room(lock);
  if (bytes < HostCopy::kMinShared) {
    // Submitted together with the commands recorded around it.
    Staging staging(*pool_, recorder_, bytes);
    std::memcpy(staging.host(), src, bytes);
    recorder_.copy_from_staging(dst, offset, staging.range(), bytes);
    staging.used_until(recorder_.last().submission);
    return;
  }
  Chunks chunks(*pool_, recorder_, bytes);
  for (uint64_t i = 0; i <= chunks.count(); ++i) {
    {
      const Unlocked unlocked(lock);
      if (i < chunks.count()) {
        recorder_.wait(chunks.staging(i).last_use());
        chunks.copy(i).start(chunks.staging(i).host(), src + chunks.at(i), chunks.size(i));
      }
      if (i > 0) chunks.copy(i - 1).finish();
    }
    if (i == 0) continue;
    recorder_.copy_from_staging(dst, offset + chunks.at(i - 1), chunks.staging(i - 1).range(), chunks.size(i - 1));
    chunks.staging(i - 1).used_until(recorder_.last().submission);
    recorder_.submit(false);
  }
}

void Transfer::download(std::unique_lock<Mutex>& lock, void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) {
  auto* to = static_cast<std::byte*>(dst);
  recorder_.catch_up_with(src);
  if (!read_mapped(lock, to, src, offset, bytes)) {
    stage_down(lock, to, src, offset, bytes);
    counters_.staged += bytes;
  }
  counters_.downloaded += bytes;
}

bool Transfer::read_mapped(std::unique_lock<Mutex>& lock, std::byte* dst, const Buffer& src, uint64_t offset,
                           uint64_t bytes) {
  const std::shared_ptr<Allocation> stays = src.allocation;  // likewise
  const std::byte* mapped = stays->host();
  if (mapped == nullptr || all_staged_ || !locate(src, 0).block->cached) return false;
  wait_unlocked(lock, recorder_, recorder_.submit(true));
  // Another thread may have recorded new work on this memory in the meantime.
  if (recorder_.busy(src)) return false;
  copy_mapped(lock, dst, mapped + src.offset + offset, bytes);
  return true;
}

void Transfer::stage_down(std::unique_lock<Mutex>& lock, std::byte* dst, const Buffer& src, uint64_t offset,
                          uint64_t bytes) {
  Chunks chunks(*pool_, recorder_, bytes);
  const auto record = [&](uint64_t i) {
    recorder_.copy_to_staging(chunks.staging(i).range(), src, offset + chunks.at(i), chunks.size(i));
    chunks.staging(i).used_until(recorder_.last().submission);  // in case submit() fails
    // The copy may have been submitted by itself already; only after this submission can the host read the data.
    chunks.staging(i).used_until(recorder_.submit(true));
  };
  for (uint64_t i = 0; i < std::min(chunks.count(), kDepth); ++i) record(i);
  for (uint64_t i = 0; i <= chunks.count(); ++i) {
    {
      const Unlocked unlocked(lock);
      if (i < chunks.count()) {
        recorder_.wait(chunks.staging(i).last_use());
        chunks.copy(i).start(dst + chunks.at(i), chunks.staging(i).host(), chunks.size(i));
      }
      if (i > 0) chunks.copy(i - 1).finish();
    }
    if (i > 0 && i - 1 + kDepth < chunks.count()) record(i - 1 + kDepth);
  }
}

}  // namespace tuff
