#include "runtime/usage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "planning/log.hpp"
#include "platform/mutex.hpp"
#include "platform/never_destroyed.hpp"
#include "platform/platform.hpp"
#include "platform/shared_page.hpp"
#include "runtime/copy_text.hpp"

namespace tuff {
namespace {

namespace fs = std::filesystem;

// The most names in the folder of pages that are looked at when a process starts, and when it reads.
constexpr size_t kMaxSwept = 256, kMaxRead = 4096;

struct Publisher {
  Mutex mutex{LockRank::usage_page};
  bool tried = false;
  platform::SharedPage page;
  std::string problem;
  std::array<bool, kUsageSlots> taken{};
  uint64_t contexts = 0;  // so far
  uint32_t forks = 0;

  UsageHeader& header() noexcept { return *reinterpret_cast<UsageHeader*>(page.memory); }
  UsageSlot* slots() noexcept { return reinterpret_cast<UsageSlot*>(page.memory + sizeof(UsageHeader)); }
};

Publisher& publisher() {
  static NeverDestroyed<Publisher> instance;
  return *instance;
}

// Set once the page is complete. For handlers, which take no lock.
std::atomic<const platform::SharedPage*> made{nullptr};

void in_forked_child() {
  if (const platform::SharedPage* page = made.load()) platform::keep_shared_page_private(*page);
}
[[maybe_unused]] const bool registered = platform::call_in_forked_children(in_forked_child);

void at_exit() noexcept {
  const platform::SharedPage* page = made.load();
  if (page != nullptr && publisher().forks == platform::fork_generation()) platform::remove_shared_page(*page);
}

// Pages are named by process. This process opens none of its own, of which there are two if the library has been loaded
// twice: closing one would release its lock.
bool is_own(std::string_view name) { return name.starts_with(fmt::format("{}.", platform::process_number())); }

// Programs that crash leave their pages behind, and perhaps nobody ever calls `tuff top`.
void sweep(const fs::path& folder) {
  std::vector<std::string> names = platform::names_in(folder);
  std::erase_if(names, [](const std::string& name) { return !platform::is_page_name(name) || is_own(name); });
  if (names.size() > kMaxSwept) names.resize(kMaxSwept);
  for (const std::string& name : names) platform::remove_dead_page(folder / name);
}

void make_page(Publisher& all) {
  all.tried = true;
  if (platform::environment("TUFF_MONITOR") == "off") {
    all.problem = "TUFF_MONITOR is off";
    return;
  }
  const auto folder = platform::runtime_directory(all.problem);
  if (!folder) return;
  sweep(*folder);
  all.page = platform::make_shared_page(*folder, kUsagePageBytes, all.problem);
  if (all.page.memory == nullptr) return;
  all.forks = platform::fork_generation();
  UsageHeader& header = all.header();
  header.version = kUsageVersion;
  header.header_bytes = sizeof(UsageHeader);
  header.slot_bytes = sizeof(UsageSlot);
  header.slots = kUsageSlots;
  copy_text(header.program, platform::program_name());
  std::memcpy(header.magic, kUsageMagic, sizeof header.magic);
  made.store(&all.page);
  if (std::atexit(at_exit) != 0) all.problem = "no exit handler can be registered";  // then the next process removes it
}

std::string text_of(const char* text, size_t capacity) { return {text, strnlen(text, capacity)}; }

double amount(double value) { return std::isfinite(value) && value >= 0 ? value : 0; }

template <typename T>
T read_field(const std::byte* at, size_t offset) {
  T value;
  std::memcpy(&value, at + offset, sizeof value);
  return value;
}

// A slot's copy is bytes, of which nothing is known to be true.
ContextUsage context_of(const std::byte* slot, const std::string& program, int64_t process) {
  const auto counter = [&](size_t offset) {
    return read_field<uint64_t>(slot, offsetof(UsageSlot, counters) + offset);
  };
  const auto number = [&](size_t offset) {
    return amount(read_field<double>(slot, offsetof(UsageSlot, counters) + offset));
  };
  ContextUsage context;
  context.process = process;
  context.program = program;
  context.serial = read_field<uint64_t>(slot, offsetof(UsageSlot, serial));
  context.opened = read_field<int64_t>(slot, offsetof(UsageSlot, opened));
  context.device = text_of(reinterpret_cast<const char*>(slot) + offsetof(UsageSlot, device), sizeof UsageSlot::device);
  context.backend =
      text_of(reinterpret_cast<const char*>(slot) + offsetof(UsageSlot, backend), sizeof UsageSlot::backend);
  std::memcpy(context.uuid.data(), slot + offsetof(UsageSlot, uuid), context.uuid.size());
  context.calls = counter(offsetof(UsageCounters, calls));
  context.dispatches = counter(offsetof(UsageCounters, dispatches));
  context.submissions = counter(offsetof(UsageCounters, submissions));
  const uint64_t completed = counter(offsetof(UsageCounters, completed));
  context.in_flight = context.submissions - std::min(completed, context.submissions);
  context.bytes = number(offsetof(UsageCounters, bytes));
  context.flops = number(offsetof(UsageCounters, flops));
  context.uploaded = counter(offsetof(UsageCounters, uploaded));
  context.downloaded = counter(offsetof(UsageCounters, downloaded));
  context.bytes_in_use = counter(offsetof(UsageCounters, bytes_in_use));
  context.bytes_reserved = counter(offsetof(UsageCounters, bytes_reserved));
  context.bytes_peak = counter(offsetof(UsageCounters, bytes_peak));
  context.bytes_limit = counter(offsetof(UsageCounters, bytes_limit));
  return context;
}

// Threads count on meanwhile, so the copy is made by atomic loads. The lock keeps away what is no counter.
void read_own(UsageReport& report) {
  std::vector<std::byte> copy;
  {
    Publisher& all = publisher();
    const std::lock_guard lock(all.mutex);
    if (all.page.memory == nullptr) return;
    static_assert(kUsagePageBytes % sizeof(uint64_t) == 0);
    copy.resize(kUsagePageBytes);
    for (size_t at = 0; at < copy.size(); at += sizeof(uint64_t)) {
      std::atomic_ref word(*reinterpret_cast<uint64_t*>(all.page.memory + at));
      const uint64_t value = word.load(std::memory_order_relaxed);
      std::memcpy(copy.data() + at, &value, sizeof value);
    }
  }
  parse_usage(copy, platform::process_number(), report);
}

}  // namespace

Usage::Usage() : slot_(&own_) {
  Publisher& all = publisher();
  std::string problem;
  {
    const std::lock_guard lock(all.mutex);
    const bool first = !all.tried;
    if (first) make_page(all);
    if (first) problem = all.problem;
    if (all.page.memory != nullptr) {
      const auto free = std::find(all.taken.begin(), all.taken.end(), false);
      if (free == all.taken.end()) {
        add_usage(all.header().unpublished, uint64_t{1});
        counted_ = true;
      } else {
        *free = true;
        slot_ = new (&all.slots()[free - all.taken.begin()]) UsageSlot{};
      }
    }
  }
  if (!problem.empty()) log(TUFF_LOG_INFO, "monitoring: this process publishes nothing: {}", problem);
}

void Usage::publish(const tuff_device_properties& device) {
  if (!published()) return;
  Publisher& all = publisher();
  const std::lock_guard lock(all.mutex);
  copy_text(slot_->device, device.name);
  copy_text(slot_->backend, device.backend);
  std::memcpy(slot_->uuid, device.uuid, sizeof slot_->uuid);
  slot_->opened.store(platform::wall_clock(), std::memory_order_relaxed);
  slot_->serial.store(++all.contexts, std::memory_order_release);
}

Usage::~Usage() {
  if (!published() && !counted_) return;
  Publisher& all = publisher();
  const std::lock_guard lock(all.mutex);
  if (published()) {
    slot_->serial.store(0, std::memory_order_release);
    all.taken[static_cast<size_t>(slot_ - all.slots())] = false;
  } else {
    add_usage(all.header().unpublished, ~uint64_t{0});
  }
}

void Usage::describe(tuff_usage& usage) const noexcept {
  const auto value = [](const auto& counter) { return counter.load(std::memory_order_relaxed); };
  const UsageCounters& now = slot_->counters;
  usage.published = published() ? 1 : 0;
  usage.calls = value(now.calls);
  usage.dispatches = value(now.dispatches);
  usage.submissions = value(now.submissions);
  usage.submissions_in_flight = usage.submissions - std::min(value(now.completed), usage.submissions);
  usage.bytes_moved = value(now.bytes);
  usage.flops = value(now.flops);
  usage.bytes_uploaded = value(now.uploaded);
  usage.bytes_downloaded = value(now.downloaded);
  usage.bytes_in_use = value(now.bytes_in_use);
  usage.bytes_reserved = value(now.bytes_reserved);
  usage.bytes_peak = value(now.bytes_peak);
  usage.bytes_limit = value(now.bytes_limit);
}

std::string usage_problem() {
  Publisher& all = publisher();
  const std::lock_guard lock(all.mutex);
  return all.page.memory != nullptr ? "" : all.problem;
}

std::string parse_usage(std::span<const std::byte> bytes, int64_t process, UsageReport& report) {
  if (bytes.size() < sizeof(UsageHeader)) return fmt::format("it holds {} bytes, less than a header", bytes.size());
  const std::byte* header = bytes.data();
  if (std::memcmp(header + offsetof(UsageHeader, magic), kUsageMagic, sizeof kUsageMagic) != 0) {
    return "it does not begin as a page does";
  }
  const auto version = read_field<uint32_t>(header, offsetof(UsageHeader, version));
  if (version != kUsageVersion) return fmt::format("its version is {}, this one reads {}", version, kUsageVersion);
  const auto header_bytes = read_field<uint32_t>(header, offsetof(UsageHeader, header_bytes));
  const auto slot_bytes = read_field<uint32_t>(header, offsetof(UsageHeader, slot_bytes));
  const auto slots = read_field<uint32_t>(header, offsetof(UsageHeader, slots));
  if (header_bytes != sizeof(UsageHeader) || slot_bytes != sizeof(UsageSlot) || slots > kUsageSlots) {
    return "its sizes are wrong";
  }
  if (bytes.size() < header_bytes + uint64_t{slots} * slot_bytes) return "it is cut";
  const std::string program =
      text_of(reinterpret_cast<const char*>(header) + offsetof(UsageHeader, program), sizeof UsageHeader::program);
  const auto unpublished = read_field<uint64_t>(header, offsetof(UsageHeader, unpublished));
  report.unpublished += std::min<uint64_t>(unpublished, UINT32_MAX);
  for (uint32_t i = 0; i < slots; ++i) {
    ContextUsage context = context_of(header + header_bytes + uint64_t{i} * slot_bytes, program, process);
    if (context.serial != 0) report.contexts.push_back(std::move(context));
  }
  return {};
}

UsageReport read_usage() {
  UsageReport report;
  const auto folder = platform::runtime_directory(report.problem);
  if (!folder) return report;
  report.folder = folder->string();
  std::vector<std::string> names = platform::names_in(*folder);
  std::sort(names.begin(), names.end());
  if (names.size() > kMaxRead) names.resize(kMaxRead);
  for (const std::string& name : names) {
    if (!platform::is_page_name(name)) {
      report.unreadable.push_back(fmt::format("{}: it is not named as a page", name));
      continue;
    }
    if (is_own(name)) continue;
    const fs::path path = *folder / name;
    platform::SharedPageCopy copy = platform::read_shared_page(path, kUsagePageBytes);
    std::string problem = std::move(copy.problem);
    if (copy.state == platform::SharedPageCopy::State::dead) {
      report.removed += platform::remove_dead_page(path) ? 1 : 0;
      continue;
    }
    if (copy.state == platform::SharedPageCopy::State::live) problem = parse_usage(copy.bytes, copy.process, report);
    std::error_code error;
    if (!problem.empty() && fs::exists(fs::symlink_status(path, error))) {
      report.unreadable.push_back(fmt::format("{}: {}", name, problem));
    }
  }
  read_own(report);
  std::stable_sort(report.contexts.begin(), report.contexts.end(), [](const auto& a, const auto& b) {
    return std::pair(a.process, a.serial) < std::pair(b.process, b.serial);
  });
  return report;
}

}  // namespace tuff
