// The program of docs/memory.md: prints the context's memory statistics step by step.
#include <cinttypes>
#include <cstdio>
#include <vector>

#include "tuff/tuff.hpp"

namespace {

void show(const char* when, const tuff::MemoryStats& memory) {
  std::printf("%-28s %6.1f MiB in use, %6.1f reserved, %6.1f peak; %3" PRIu64 " hits, %3" PRIu64
              " misses; fragmentation %.2f\n",
              when, memory.bytes_in_use / 1048576.0, memory.bytes_reserved / 1048576.0, memory.bytes_peak / 1048576.0,
              memory.hits, memory.misses, memory.fragmentation);
}

// A cache that drops its entries under memory pressure.
struct Cache {
  std::vector<tuff::Buffer> entries;
  static void on_pressure(void* user, const tuff_memory_pressure* pressure) {
    auto& entries = static_cast<Cache*>(user)->entries;
    std::printf("  %" PRIu64 " bytes are wanted, %" PRIu64 " are to be freed: %zu entries go\n",
                pressure->bytes_requested, pressure->bytes_needed, entries.size());
    entries.clear();
  }
};

// Prints a failure if a statement of the page does not hold. Returns whether it holds.
bool holds(bool condition, const char* what) {
  if (!condition) std::printf("FAILED: %s\n", what);
  return condition;
}

int run() {
  const tuff::ContextOptions options{nullptr, "auto"};
  tuff::Context context = tuff::Context::create(options);
  constexpr uint64_t kMiB = 1 << 20;
  bool good = true;

  show("a new context", context.memory());
  {
    std::vector<tuff::Buffer> layers;
    for (int i = 0; i < 6; ++i) layers.push_back(context.alloc_bytes(20 * kMiB));
    show("six buffers of 20 MiB", context.memory());
    good &= holds(context.memory().bytes_in_use >= 120 * kMiB, "all six are in use");
  }
  context.synchronize();
  show("freed, and kept", context.memory());
  { const tuff::Buffer again = context.alloc_bytes(20 * kMiB); }
  context.synchronize();
  show("one more of 20 MiB", context.memory());
  context.trim();
  context.reset_peak();
  show("trimmed", context.memory());
  good &= holds(context.memory().bytes_reserved < 120 * kMiB, "trimming gave the blocks back");
  good &= holds(context.memory().bytes_peak == context.memory().bytes_in_use, "the peak is reset");

  tuff::Limits limits{};
  limits.memory_bytes = context.memory().bytes_in_use + 64 * kMiB;
  context.set_limits(limits);
  Cache cache;
  context.set_memory_callback(Cache::on_pressure, &cache);
  for (int i = 0; i < 3; ++i) cache.entries.push_back(context.alloc_bytes(20 * kMiB));
  const tuff::Buffer wanted = context.alloc_bytes(30 * kMiB);  // the cache makes room
  good &= holds(cache.entries.empty() && wanted, "the cache was emptied for it");
  try {
    const tuff::Buffer refused = context.alloc_bytes(60 * kMiB);
    good &= holds(false, "beyond the limit");
  } catch (const tuff::Exception& error) {
    std::printf("%s\n%s\n", error.what(), error.hint());
    good &= holds(error.status() == TUFF_ERROR_LIMIT_EXCEEDED, "it is the limit");
  }
  context.set_memory_callback(nullptr, nullptr);
  return good ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const tuff::Exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
