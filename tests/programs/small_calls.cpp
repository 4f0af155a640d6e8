// Makes a large number of small calls, none of which may leave anything behind.
//
//   tuff_small_calls BACKEND [--calls n] [--seed n]
//
// The calls create, destroy, copy and compute with objects, wait for them, and are refused, at random. After a tenth of
// the calls, in the middle and at the end the program measures what the process holds: resident memory, memory
// allocated by malloc, Vulkan objects, and the context's ranges and buffers.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "programs/faulty_vulkan.hpp"
#include "support/options.hpp"
#include "support/sanitized.hpp"
#include "tuff/tuff.h"

namespace tuff_test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kBytes = 256, kCount = kBytes / sizeof(float);
constexpr size_t kBuffers = 8, kStreams = 2, kEvents = 4;

int problems = 0;
uint64_t calls = 0;

void check(tuff_status status, tuff_status expected, const char* what) {
  ++calls;
  if (status == expected || ++problems > 20) return;
  char message[256] = "";
  tuff_last_error(message, sizeof message, nullptr);
  std::printf("%s answers %s: %s\n", what, tuff_status_name(status), message);
}
#define CHECK(call) check(call, TUFF_OK, #call)
#define REFUSED(call, status) check(call, status, #call)

template <typename T>
T sized() {
  T desc{};
  desc.struct_size = sizeof(T);
  return desc;
}

struct Held {
  uint64_t resident = 0, heap = 0, objects = 0, ranges = 0, buffers = 0;
};

class World {
 public:
  explicit World(const char* backend) {
    auto desc = sized<tuff_context_desc>();
    desc.backend = backend;
    CHECK(tuff_context_create(&desc, &context_));
    for (tuff_buffer& buffer : buffers_) CHECK(tuff_alloc(context_, kBytes, &buffer));
    for (tuff_stream& stream : streams_) CHECK(tuff_stream_create(context_, nullptr, &stream));
    for (tuff_event& event : events_) CHECK(tuff_event_create(context_, nullptr, &event));
  }
  ~World() { CHECK(tuff_context_destroy(context_)); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void step(std::mt19937_64& random) {
    const uint64_t number = random();
    const tuff_buffer x = buffers_[number % kBuffers], y = buffers_[(number + 1 + (number >> 8) % 7) % kBuffers];
    const tuff_stream stream = (number >> 16) % 4 == 0 ? streams_[(number >> 20) % kStreams] : context_;
    tuff_event& event = events_[(number >> 24) % kEvents];
    const uint64_t offset = (number >> 28) % 32 * 4;
    static float values[kCount];
    switch ((number >> 40) % 16) {
      case 0: return CHECK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_RELU, x, y, kCount));
      case 1: return CHECK(tuff_binary(stream, TUFF_F32, TUFF_BINARY_MAX, x, y, x, kCount));
      case 2: return CHECK(tuff_fill(stream, x, offset, 64, &offset, 4));
      case 3: return CHECK(tuff_copy_dtod(stream, x, offset, y, offset, 64));
      case 4: return CHECK(tuff_copy_htod(stream, x, offset, values, 64));
      case 5:
        // The download waits for the device, so it is made less often.
        if ((number >> 48) % 8 != 0) return CHECK(tuff_event_record(stream, event));
        return CHECK(tuff_copy_dtoh(stream, values, x, offset, 64));
      case 6: {
        tuff_buffer made = 0;
        CHECK(tuff_alloc(context_, 1 + (number >> 44) % 5000, &made));
        return CHECK(tuff_free(made));
      }
      case 7: {
        tuff_buffer view = 0;
        CHECK(tuff_view(x, offset, 64, &view));
        CHECK(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, view, view, 16));
        return CHECK(tuff_free(view));
      }
      case 8: return CHECK(tuff_event_record(stream, event));
      case 9: return CHECK(tuff_stream_wait_event(stream, event));
      case 10: {
        int32_t done = 0;
        return CHECK(tuff_event_query(event, &done));
      }
      case 11: CHECK(tuff_event_destroy(event)); return CHECK(tuff_event_create(context_, nullptr, &event));
      case 12: {
        if ((number >> 48) % 16 != 0) return REFUSED(tuff_free(number | 1ull << 63), TUFF_ERROR_INVALID_HANDLE);
        tuff_stream& other = streams_[(number >> 20) % kStreams];
        CHECK(tuff_stream_destroy(other));
        return CHECK(tuff_stream_create(context_, nullptr, &other));
      }
      case 13: return REFUSED(tuff_unary(stream, TUFF_F32, 999, x, y, kCount), TUFF_ERROR_INVALID_ARGUMENT);
      case 14: return REFUSED(tuff_copy_dtoh(stream, values, x, kBytes, 4), TUFF_ERROR_INVALID_ARGUMENT);
      default: {
        auto stats = sized<tuff_stats>();
        return CHECK(tuff_context_stats(context_, &stats));
      }
    }
  }

  Held held() {
    CHECK(tuff_synchronize(context_));
    CHECK(tuff_context_trim(context_));
    auto stats = sized<tuff_stats>();
    auto memory = sized<tuff_memory_stats>();
    CHECK(tuff_context_stats(context_, &stats));
    CHECK(tuff_context_memory(context_, &memory));
    unsigned long long size = 0, resident = 0;
    if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
      if (std::fscanf(file, "%llu %llu", &size, &resident) != 2) resident = 0;
      std::fclose(file);
    }
    return {resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), mallinfo2().uordblks,
            faulty_vulkan::live_objects(), memory.live_allocations, stats.live_buffers};
  }

 private:
  tuff_context context_ = 0;
  tuff_buffer buffers_[kBuffers] = {};
  tuff_stream streams_[kStreams] = {};
  tuff_event events_[kEvents] = {};
};

int run(const char* backend, uint64_t count, uint64_t seed) {
  std::printf("--seed %llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  const auto start = Clock::now();
  std::vector<Held> all;
  {
    World world(backend);
    for (const uint64_t until : {count / 10, count / 2, count}) {
      while (calls < until && problems == 0) world.step(random);
      all.push_back(world.held());
      const Held& now = all.back();
      std::printf(
          "%llu calls: %.1f MiB resident, %llu bytes of malloc, %llu objects of Vulkan, %llu ranges, %llu "
          "buffers\n",
          static_cast<unsigned long long>(calls), static_cast<double>(now.resident) / 1048576,
          static_cast<unsigned long long>(now.heap), static_cast<unsigned long long>(now.objects),
          static_cast<unsigned long long>(now.ranges), static_cast<unsigned long long>(now.buffers));
      std::fflush(stdout);
    }
  }
  // A leak of one byte in every hundredth of a hundred million calls exceeds this. A driver's command pools have grown
  // by a megabyte at once, at any time within two million calls, and stay that large.
  const bool is_vulkan = std::string(backend) == "vulkan";
  const uint64_t step = is_vulkan ? 2 << 20 : 1 << 16;
  const uint64_t room = std::max<uint64_t>(step, count / 200);
  const Held &middle = all[1], &last = all.back();
  const auto grown = [&](const char* what, uint64_t before, uint64_t after, uint64_t allowed) {
    if (kSanitized || after <= before + allowed) return;
    ++problems;
    std::printf("%s: %llu, and before it was %llu\n", what, static_cast<unsigned long long>(after),
                static_cast<unsigned long long>(before));
  };
  grown("malloc", middle.heap, last.heap, room);
  // A driver's pools grow by megabytes (lavapipe: 4 in 300,000 calls, while malloc stays the same).
  grown("resident memory", middle.resident, last.resident, uint64_t{is_vulkan ? 12u : 4u} << 20);
  // A stream that is destroyed while the device works keeps its ring of 18 objects for a later one. There are a few
  // rings, although thousands of streams are created and destroyed.
  grown("objects of Vulkan", middle.objects, last.objects, 72);
  grown("ranges", middle.ranges, last.ranges, 0);
  grown("buffers", middle.buffers, last.buffers, 0);
  if (faulty_vulkan::live_objects() > 1) grown("objects without a context", 1, faulty_vulkan::live_objects(), 0);
  if (const std::string text = faulty_vulkan::forbidden(); !text.empty()) {
    ++problems;
    std::printf("forbidden: %s\n", text.c_str());
  }
  std::printf("%llu calls, %.0f s, %d problems\n", static_cast<unsigned long long>(calls),
              std::chrono::duration<double>(Clock::now() - start).count(), problems);
  return problems == 0 && calls >= count ? 0 : 1;
}

}  // namespace
}  // namespace tuff_test

int main(int count, char** words) {
  const char* backend = count > 1 ? words[1] : "host";
  uint64_t calls = 1'000'000, seed = std::random_device()();
  tuff_test::parse_options(count, words, 2, "usage: tuff_small_calls host|vulkan [--calls n] [--seed n]\n",
                           {{"--calls", &calls}, {"--seed", &seed}});
  return tuff_test::run(backend, calls, seed);
}
