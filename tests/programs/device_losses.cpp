// Loses devices repeatedly.
//
//   tuff_device_losses [--cycles n] [--seed n]
//
// A cycle creates a context, uses it, loses its device at a random Vulkan call, continues to use it, destroys it and
// checks that a new one computes. Each call on the lost context that needs the device must report the loss within a
// second. The process must hold the same resources in the middle as at the end, and no Vulkan object may be left.
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "programs/allocation_hook.hpp"
#include "programs/faulty_vulkan.hpp"
#include "support/options.hpp"
#include "support/sanitized.hpp"
#include "tuff/tuff.h"

namespace tuff_test {
namespace {

namespace faulty = faulty_vulkan;
using Clock = std::chrono::steady_clock;
constexpr int32_t kLost = -4;  // VK_ERROR_DEVICE_LOST
constexpr uint64_t kCount = 1024, kBytes = kCount * sizeof(float);

int problems = 0;
template <typename... Args>
void problem(const char* format, Args... args) {
  char message[256] = "";
  tuff_last_error(message, sizeof message, nullptr);
  if (++problems > 20) return;
  std::printf(format, args...);
  std::printf(" (%s)\n", message);
  std::fflush(stdout);
}

void check(tuff_status status, tuff_status expected, const char* what) {
  if (status != expected) problem("%s answers %s", what, tuff_status_name(status));
}
#define CHECK(call) check(call, TUFF_OK, #call)
#define LOST(call) check(call, TUFF_ERROR_DEVICE_LOST, #call)

// The functions that may lose a device after its creation.
std::vector<uint32_t> losing() {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < faulty::function_count(); ++i) {
    const faulty::Function& function = faulty::function(i);
    if (std::strcmp(function.name, "vkCreateDevice") == 0) continue;
    for (uint32_t code = 0; code < function.code_count; ++code) {
      if (function.codes[code] == kLost) found.push_back(i);
    }
  }
  return found;
}

class Cycle {
 public:
  Cycle() { CHECK(tuff_context_create(nullptr, &context_)); }
  ~Cycle() { CHECK(tuff_context_destroy(context_)); }
  Cycle(const Cycle&) = delete;
  Cycle& operator=(const Cycle&) = delete;

  void prepare() {
    CHECK(tuff_alloc(context_, kBytes, &x_));
    CHECK(tuff_alloc(context_, kBytes, &y_));
    CHECK(tuff_stream_create(context_, nullptr, &stream_));
    CHECK(tuff_event_create(context_, nullptr, &event_));
    const float value = 2;
    CHECK(tuff_fill(context_, x_, 0, kBytes, &value, sizeof value));
    CHECK(tuff_graph_begin(context_));
    CHECK(tuff_unary(context_, TUFF_F32, TUFF_UNARY_NEG, x_, y_, kCount));
    CHECK(tuff_graph_end(context_, &graph_));
    CHECK(tuff_synchronize(context_));
  }

  // Uses the context until a call reports the loss. Returns whether one did.
  bool use(std::mt19937_64& random) {
    for (int i = 0; i < 60; ++i) {
      float value = 0;
      int32_t done = 0;
      double milliseconds = 0;
      tuff_status status = TUFF_OK;
      switch (random() % 10) {
        case 0: status = tuff_unary(context_, TUFF_F32, TUFF_UNARY_NEG, x_, y_, kCount); break;
        case 1: status = tuff_unary(stream_, TUFF_F32, TUFF_UNARY_NEG, x_, y_, kCount); break;
        case 2: status = tuff_graph_launch(context_, graph_); break;
        case 3: status = tuff_synchronize(context_); break;
        case 4: status = tuff_copy_dtoh(context_, &value, x_, 0, sizeof value); break;
        case 5: status = tuff_copy_htod(context_, y_, 0, &value, sizeof value); break;
        case 6: status = tuff_event_record(stream_, event_); break;
        case 7: status = tuff_event_query(event_, &done); break;
        case 8:
          status = tuff_event_record(stream_, event_);
          if (status == TUFF_OK) status = tuff_event_elapsed(event_, event_, &milliseconds);
          break;
        default: status = tuff_synchronize(stream_); break;
      }
      if (status == TUFF_ERROR_DEVICE_LOST) return true;
      if (status != TUFF_OK) problem("a call answers %s", tuff_status_name(status));
    }
    return false;
  }

  void expect_lost() {
    const auto start = Clock::now();
    float value = 0;
    tuff_buffer made = 0;
    LOST(tuff_synchronize(context_));
    LOST(tuff_synchronize(stream_));
    LOST(tuff_unary(context_, TUFF_F32, TUFF_UNARY_NEG, x_, y_, kCount));
    LOST(tuff_graph_launch(context_, graph_));
    LOST(tuff_copy_dtoh(context_, &value, x_, 0, sizeof value));
    LOST(tuff_alloc(context_, 64, &made));
    CHECK(tuff_free(x_));
    if (Clock::now() - start > std::chrono::seconds(5)) problem("a lost device is waited for");
  }

  void expect_right() {
    const float value = 2;
    float back = 0;
    CHECK(tuff_fill(context_, x_, 0, kBytes, &value, sizeof value));
    CHECK(tuff_graph_launch(context_, graph_));
    CHECK(tuff_copy_dtoh(context_, &back, y_, kBytes - 4, sizeof back));
    if (back != -2) problem("a context computes %g", static_cast<double>(back));
  }

 private:
  tuff_context context_ = 0;
  tuff_buffer x_ = 0, y_ = 0;
  tuff_stream stream_ = 0;
  tuff_event event_ = 0;
  tuff_graph graph_ = 0;
};

struct Held {
  uint64_t resident = 0, heap = 0, objects = 0;
  int64_t library = 0;  // allocations made by the library
};
Held held() {
  unsigned long long size = 0, resident = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%llu %llu", &size, &resident) != 2) resident = 0;
    std::fclose(file);
  }
  return {resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), mallinfo2().uordblks, faulty::live_objects(),
          live_allocations()};
}

int run(uint64_t cycles, uint64_t seed) {
  std::printf("--seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const std::vector<uint32_t> functions = losing();
  const auto start = Clock::now();
  std::vector<Held> all;
  uint64_t lost = 0, tried = 0;
  while (lost < cycles && tried < 4 * cycles && problems == 0) {
    {
      ++tried;
      Cycle cycle;
      cycle.prepare();
      faulty::arm(functions[random() % functions.size()], 1 + random() % 10, kLost, random() % 2 == 0);
      const bool told = cycle.use(random);
      const bool injected = faulty::disarm() != 0;
      if (told) {
        ++lost;
        cycle.expect_lost();
      } else if (!injected) {
        cycle.expect_right();
      }
      if (random() % 4 == 0) {  // also loses a device while it is destroyed
        faulty::arm(functions[random() % functions.size()], 1, kLost, true);
      }
    }
    faulty::disarm();
    if (const std::string text = faulty::forbidden(); !text.empty()) problem("forbidden: %s", text.c_str());
    if (lost == cycles / 10 * (all.size() + 1) && lost != 0) {
      { Cycle().prepare(); }  // frees what the graveyard still holds
      all.push_back(held());
      if (all.back().objects > 1) problem("objects are left: %s", faulty::live_by_type().c_str());
    }
  }
  for (const Held& now : all) {
    std::printf("%.1f MiB resident, %llu bytes of malloc, %lld allocations of the library\n",
                static_cast<double>(now.resident) / 1048576, static_cast<unsigned long long>(now.heap),
                static_cast<long long>(now.library));
  }
  // Allowed growth: the driver and its compiler keep some bytes for each context.
  const uint64_t room = std::max<uint64_t>(256 << 10, cycles * 100);
  if (all.size() >= 5) {
    const Held &middle = all[all.size() / 2], &last = all.back();
    if (last.library != middle.library) problem("the library holds more and more, or less");
    if (last.heap > middle.heap + room) problem("the process holds more and more");
    if (!kSanitized && last.resident > middle.resident + (uint64_t{8} << 20))
      problem("the process is larger and larger");
  }
  std::printf("%llu contexts, of which %llu were lost, %.0f s, %d problems\n", static_cast<unsigned long long>(tried),
              static_cast<unsigned long long>(lost), std::chrono::duration<double>(Clock::now() - start).count(),
              problems);
  return problems == 0 && lost >= cycles ? 0 : 1;
}

}  // namespace
}  // namespace tuff_test

int main(int count, char** words) {
  uint64_t cycles = 1000, seed = std::random_device()();
  tuff_test::parse_options(count, words, 1, "usage: tuff_device_losses [--cycles n] [--seed n]\n",
                           {{"--cycles", &cycles}, {"--seed", &seed}});
  tuff_test::watch_library(reinterpret_cast<const void*>(&tuff_version));
  return tuff_test::run(cycles, seed);
}
