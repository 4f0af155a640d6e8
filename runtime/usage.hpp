// What a context uses of its device, counted while it works, and published to other processes: `tuff top` shows it.
//
// All contexts of a process share one page (platform/shared_page.hpp), with a slot for each. Calls store into the slot
// with relaxed atomics; nothing else happens on their path. A context without a slot counts in memory of its own, so
// that counting is the same everywhere: if TUFF_MONITOR=off, if there is no folder for pages, or if all slots are
// taken.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuff/tuff.h"

namespace tuff {

// Each counter has one writer at a time, under the lock of the context or of its memory, unless noted otherwise.
struct UsageCounters {
  std::atomic<uint64_t> calls;       // on streams: operations, copies, fills, launches of kernels and graphs
  std::atomic<uint64_t> dispatches;  // like those below up to `flops`, as of the last submission
  std::atomic<uint64_t> submissions;
  std::atomic<uint64_t> completed;  // submissions that are known to have finished; written by any thread
  std::atomic<double> bytes;        // that kernels, copies and fills move, as planners count them
  std::atomic<double> flops;        // arithmetic operations, likewise
  std::atomic<uint64_t> uploaded, downloaded;
  std::atomic<uint64_t> bytes_in_use, bytes_reserved, bytes_peak, bytes_limit;
};

// One context in the page. Readers take it as bytes, so its layout is the format: a change to it, or to the header,
// needs another kUsageVersion.
struct alignas(64) UsageSlot {
  std::atomic<uint64_t> serial;  // the context's number in its process, from 1; 0: what follows means nothing
  std::atomic<int64_t> opened;   // nanoseconds since 1970
  char device[256];              // these three are written before `serial` and then stay
  char backend[16];
  uint8_t uuid[16];
  UsageCounters counters;
};
struct alignas(64) UsageHeader {
  char magic[8];
  uint32_t version, header_bytes, slot_bytes, slots;
  char program[64];
  std::atomic<uint64_t> unpublished;  // open contexts for which there was no slot
};
inline constexpr uint32_t kUsageVersion = 1, kUsageSlots = 64;
inline constexpr char kUsageMagic[8] = {'t', 'u', 'f', 'f', 'u', 's', 'e', '\n'};
inline constexpr uint64_t kUsagePageBytes = sizeof(UsageHeader) + kUsageSlots * sizeof(UsageSlot);
static_assert(sizeof(UsageHeader) == 128 && sizeof(UsageSlot) == 448);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<double>::is_always_lock_free,
              "a lock would be in this process only");

// Adds to a counter that has no other writer now.
template <typename T>
void add_usage(std::atomic<T>& counter, T more) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

class Usage {
 public:
  Usage();
  ~Usage();
  Usage(const Usage&) = delete;
  Usage& operator=(const Usage&) = delete;

  // From here on readers see the context.
  void publish(const tuff_device_properties& device);
  bool published() const noexcept { return slot_ != &own_; }
  UsageCounters& counters() noexcept { return slot_->counters; }
  void describe(tuff_usage& usage) const noexcept;  // all fields but struct_size

 private:
  UsageSlot own_{};
  bool counted_ = false;  // in UsageHeader::unpublished
  UsageSlot* slot_;
};

// Why this process publishes nothing; empty if it does, or has had no context yet.
std::string usage_problem();

// --- reading --------------------------------------------------------------------------------------------------

struct ContextUsage {
  int64_t process = 0;  // 0: in a container whose processes have no numbers here
  std::string program;
  uint64_t serial = 0;
  int64_t opened = 0;
  std::string device, backend;
  std::array<uint8_t, 16> uuid{};
  uint64_t calls = 0, dispatches = 0, submissions = 0, in_flight = 0;
  double bytes = 0, flops = 0;
  uint64_t uploaded = 0, downloaded = 0;
  uint64_t bytes_in_use = 0, bytes_reserved = 0, bytes_peak = 0, bytes_limit = 0;
};

struct UsageReport {
  std::string folder, problem;  // a problem: there is no folder, so nothing can be seen
  std::vector<ContextUsage> contexts;
  std::vector<std::string> unreadable;  // names in the folder, with the reasons
  uint64_t unpublished = 0;             // contexts without a slot
  uint64_t removed = 0;                 // pages of processes that have ended
};

// All contexts of this user's processes, in the order of processes and contexts. Removes pages of processes that have
// ended.
UsageReport read_usage();

// The contexts in a page's bytes, which may be anything. Returns why they are not a page; empty if they are.
std::string parse_usage(std::span<const std::byte> bytes, int64_t process, UsageReport& report);

}  // namespace tuff
