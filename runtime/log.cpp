#include "runtime/log.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
#include <string>

#include "runtime/platform/platform.hpp"

namespace tuff {
namespace {

constexpr std::array<const char*, 6> kLevelNames = {"off", "error", "warning", "info", "debug", "dispatch"};
constexpr int32_t kUnknown = -1;  // TUFF_LOG has not been read yet

struct Log {
  std::atomic<int32_t> level{kUnknown};
  // Shared while a message goes out, exclusive while the callback changes: when tuff_set_log returns, the
  // callback before it runs no more.
  std::shared_mutex mutex;
  tuff_log_callback callback = nullptr;
  void* user = nullptr;
};

// Never destroyed: threads may log while the process exits.
Log& shared_log() {
  static Log& instance = *new Log;
  return instance;
}

int32_t level_from_environment() {
  const auto wanted = platform::environment("TUFF_LOG");
  if (!wanted) return TUFF_LOG_OFF;
  for (size_t level = 0; level < kLevelNames.size(); ++level) {
    if (*wanted == kLevelNames[level]) return static_cast<int32_t>(level);
  }
  return TUFF_LOG_OFF;
}

void write_line(const Log& log, int32_t level, const std::string& line) {
  if (log.callback != nullptr) {
    log.callback(log.user, level, line.c_str());
  } else {
    std::fprintf(stderr, "tuff %s: %s\n", kLevelNames[static_cast<size_t>(level)], line.c_str());
  }
}

}  // namespace

void set_log(tuff_log_callback callback, void* user, int32_t level) {
  Log& log = shared_log();
  const bool on = callback != nullptr && level > TUFF_LOG_OFF;
  const std::unique_lock lock(log.mutex);
  log.callback = on ? callback : nullptr;
  log.user = on ? user : nullptr;
  log.level.store(on ? level : level_from_environment(), std::memory_order_relaxed);
}

bool log_enabled(int32_t level) noexcept {
  static Log& log = shared_log();
  const int32_t current = log.level.load(std::memory_order_relaxed);
  if (current == kUnknown) [[unlikely]] {
    int32_t expected = kUnknown;
    log.level.compare_exchange_strong(expected, level_from_environment(), std::memory_order_relaxed);
    return log_enabled(level);
  }
  return level <= current && level > TUFF_LOG_OFF;
}

void log_message(int32_t level, std::string_view message) {
  Log& log = shared_log();
  const std::shared_lock lock(log.mutex);
  if (!log_enabled(level)) return;  // changed since the caller looked
  // A message is one line; a compiler's log becomes several messages.
  while (!message.empty()) {
    const size_t end = message.find('\n');
    const std::string_view line = message.substr(0, end);
    if (!line.empty()) write_line(log, level, std::string(line));
    message = end == std::string_view::npos ? std::string_view() : message.substr(end + 1);
  }
}

}  // namespace tuff
