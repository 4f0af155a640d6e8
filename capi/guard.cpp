#include "capi/guard.hpp"

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "planning/log.hpp"
#include "planning/status.hpp"
#include "platform/per_thread.hpp"
#include "platform/platform.hpp"

namespace tuff::capi {
namespace {

constexpr uint32_t kUnclaimed = ~0u;
std::atomic<uint32_t> owner_generation{kUnclaimed};

// Appends the text as one line, as tuff.h promises: line breaks, as in a compiler's log, become "; ".
void append_as_one_line(std::string& line, std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    line += text.substr(0, end);
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
    if (!text.empty()) line += "; ";
  }
}

struct LastError {
  std::string message;
};

constinit thread_local bool message_lost = false;  // out of memory: the last message could not be kept

tuff_status keep(const char* function, tuff_status code, std::string_view message) noexcept {
  message_lost = true;
  LastError* last = PerThread<LastError>::get();
  if (last == nullptr) return code;
  try {
    std::string line(function);
    line += ": ";
    append_as_one_line(line, message);
    last->message = std::move(line);
    message_lost = false;
    log(TUFF_LOG_DEBUG, "{}", last->message);
  } catch (const std::bad_alloc&) {
  }
  return code;
}

}  // namespace

bool is_foreign_process() noexcept {
  const uint32_t owner = owner_generation.load(std::memory_order_relaxed);
  return owner != kUnclaimed && owner != platform::fork_generation();
}

tuff_status report_fork(const char* function) noexcept {
  return keep(function, TUFF_ERROR_NOT_INITIALIZED,
              "this process was forked from one that had used a device: needs exec or a spawned process");
}

void claim_process() {
  uint32_t expected = kUnclaimed;
  owner_generation.compare_exchange_strong(expected, platform::fork_generation(), std::memory_order_relaxed);
}

tuff_status report_exception(const char* function) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return keep(function, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return keep(function, TUFF_ERROR_OUT_OF_HOST_MEMORY, "the process is out of memory");
  } catch (const std::exception& error) {
    return keep(function, TUFF_ERROR_INTERNAL, error.what());
  } catch (...) {
    return keep(function, TUFF_ERROR_INTERNAL, "an exception of unknown type");
  }
}

std::string_view last_error() noexcept {
  if (message_lost) return "the process is out of memory, even for this message";
  const LastError* last = PerThread<LastError>::find();
  return last != nullptr ? std::string_view(last->message) : std::string_view();
}

}  // namespace tuff::capi
