#include "runtime/host_copy.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "planning/log.hpp"
#include "platform/mutex.hpp"
#include "platform/never_destroyed.hpp"
#include "platform/platform.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tuff {
namespace {

constexpr uint64_t kPiece = 128ull << 10;      // bytes that a thread takes at a time
constexpr uint32_t kMaxThreads = 8;            // including the caller
constexpr uint64_t kMinStreamed = 4ull << 20;  // smaller copies may be wanted in the cache
constexpr int kYields = 16;                    // before a caller sleeps: a piece takes only microseconds

#if defined(__SSE2__)
constexpr uint64_t kLine = 64, kPage = 4096, kAbreast = 4;

void stream_line(std::byte* dst, const std::byte* src) noexcept {
  const auto* from = reinterpret_cast<const __m128i*>(src);
  auto* to = reinterpret_cast<__m128i*>(dst);
  const __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
  const __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
  _mm_stream_si128(to, a);
  _mm_stream_si128(to + 1, b);
  _mm_stream_si128(to + 2, c);
  _mm_stream_si128(to + 3, d);
}

// Non-temporal stores bypass the caches and need not read the lines they overwrite, which saves a third of the traffic.
// Going through four pages abreast, one thread of a Xeon copies 11.5 GB/s; page after page 8.6. memcpy of such a piece
// reaches 7.0, of everything at once 11.
void stream(std::byte* dst, const std::byte* src, uint64_t bytes) noexcept {
  const uint64_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(dst) % kLine) % kLine);
  std::memcpy(dst, src, head);
  uint64_t at = head;
  for (; at + kAbreast * kPage <= bytes; at += kAbreast * kPage) {
    for (uint64_t line = at; line < at + kPage; line += kLine) {
      for (uint64_t page = 0; page < kAbreast; ++page)
        stream_line(dst + line + page * kPage, src + line + page * kPage);
    }
  }
  _mm_sfence();
  std::memcpy(dst + at, src + at, bytes - at);
}
#else
void stream(std::byte* dst, const std::byte* src, uint64_t bytes) noexcept { std::memcpy(dst, src, bytes); }
#endif

}  // namespace

// Threads that sleep until there is a copy on the list.
class CopyTeam {
 public:
  // Never destroyed: its threads outlive every destructor.
  static CopyTeam& get() {
    static NeverDestroyed<CopyTeam> team;
    return *team;
  }

  void list(HostCopy& copy) noexcept {
    if (helpers_ == 0) return;
    {
      const std::lock_guard lock(mutex_);
      copy.listed_ = true;
      copy.next_ = nullptr;
      (last_ != nullptr ? last_->next_ : first_) = &copy;
      last_ = &copy;
    }
    work_.notify_all();
  }

  // Removes the copy from the list and waits for the threads that are working on it.
  void withdraw(HostCopy& copy) noexcept {
    if (helpers_ == 0) return;
    std::unique_lock lock(mutex_);
    unlist(copy);
    if (copy.helpers_ == 0) return;
    lock.unlock();
    for (int i = 0; i < kYields && copy.helpers_ != 0; ++i) std::this_thread::yield();
    lock.lock();
    left_.wait(lock, [&] { return copy.helpers_ == 0; });
  }

 private:
  friend class NeverDestroyed<CopyTeam>;
  CopyTeam() {
    const uint32_t threads = std::min(kMaxThreads, std::thread::hardware_concurrency());
    const platform::SignalsBlocked blocked;  // the application's signal handlers must run on its own threads
    try {
      while (helpers_ + 1 < threads) {
        std::thread([this] { help(); }).detach();
        ++helpers_;
      }
    } catch (const std::exception& error) {  // a system limit, or no memory
      log(TUFF_LOG_WARNING, "copies have {} threads, no more can be started: {}", helpers_ + 1, error.what());
    }
  }

  void help() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [this] { return first_ != nullptr; });
      HostCopy& copy = *first_;
      ++copy.helpers_;
      lock.unlock();
      copy.copy_pieces();
      lock.lock();
      unlist(copy);  // every piece is taken
      if (--copy.helpers_ == 0) left_.notify_all();
    }
  }

  void unlist(HostCopy& copy) noexcept {
    if (!copy.listed_) return;
    copy.listed_ = false;
    HostCopy* before = nullptr;
    for (HostCopy* i = first_; i != &copy; i = i->next_) before = i;
    (before != nullptr ? before->next_ : first_) = copy.next_;
    if (last_ == &copy) last_ = before;
  }

  Mutex mutex_{LockRank::host_copies};
  Condition work_, left_;
  HostCopy *first_ = nullptr, *last_ = nullptr;  // in list order
  uint32_t helpers_ = 0;                         // number of threads, all started before the first copy
};

void HostCopy::start(void* dst, const void* src, uint64_t bytes) noexcept {
  dst_ = static_cast<std::byte*>(dst);
  src_ = static_cast<const std::byte*>(src);
  bytes_ = bytes;
  taken_.store(0, std::memory_order_relaxed);
  if (bytes >= kMinShared) CopyTeam::get().list(*this);
}

void HostCopy::finish() noexcept {
  if (bytes_ == 0) return;
  if (bytes_ < kMinShared) {
    std::memcpy(dst_, src_, bytes_);
  } else {
    copy_pieces();
    CopyTeam::get().withdraw(*this);
  }
  bytes_ = 0;
}

void HostCopy::copy_pieces() noexcept {
  for (;;) {
    const uint64_t at = taken_.fetch_add(kPiece, std::memory_order_relaxed);
    if (at >= bytes_) return;
    const uint64_t piece = std::min(kPiece, bytes_ - at);
    if (bytes_ >= kMinStreamed) {
      stream(dst_ + at, src_ + at, piece);
    } else {
      std::memcpy(dst_ + at, src_ + at, piece);
    }
  }
}

void host_copy(void* dst, const void* src, uint64_t bytes) noexcept {
  HostCopy copy;
  copy.start(dst, src, bytes);
  copy.finish();
}

}  // namespace tuff
