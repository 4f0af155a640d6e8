// The memory of a context: its statistics, what trimming releases, and what happens when memory is short.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

#include "support/stream.hpp"
#include "support/tensor.hpp"

namespace tuff_test::memory_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

void expect_consistent(const tuff_memory_stats& stats) {
  EXPECT_EQ(stats.bytes_free, stats.bytes_reserved - stats.bytes_in_use);
  EXPECT_LE(stats.bytes_largest_free, stats.bytes_free);
  EXPECT_GE(stats.bytes_peak, stats.bytes_in_use);
  EXPECT_EQ(stats.hits + stats.misses, stats.allocations);
  EXPECT_GE(stats.allocations, stats.live_allocations);
  const auto free = static_cast<double>(stats.bytes_free), largest = static_cast<double>(stats.bytes_largest_free);
  EXPECT_EQ(stats.fragmentation, stats.bytes_free == 0 ? 0 : 1 - largest / free);
}

class Memory : public OnBackend {};

TEST_P(Memory, StatisticsAgree) {
  const OwnContext own(GetParam());
  const tuff_memory_stats before = memory_of(own);
  expect_consistent(before);
  {
    const OwnBuffer small(own, 5000), large(own, 20 * kMiB);
    const tuff_memory_stats during = memory_of(own);
    expect_consistent(during);
    EXPECT_GE(during.bytes_in_use, before.bytes_in_use + 5000 + 20 * kMiB);
    EXPECT_EQ(during.live_allocations, before.live_allocations + 2);
    EXPECT_EQ(during.allocations, before.allocations + 2);
    EXPECT_GT(during.misses, before.misses) << "nothing of that size was kept";
    EXPECT_GT(during.blocks, before.blocks);
    EXPECT_EQ(stats_of(own).bytes_in_use, during.bytes_in_use);
    EXPECT_EQ(stats_of(own).bytes_reserved, during.bytes_reserved);
    EXPECT_EQ(stats_of(own).bytes_peak, during.bytes_peak);
  }
  ASSERT_OK(tuff_synchronize(own));
  const tuff_memory_stats after = memory_of(own);
  expect_consistent(after);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(after.live_allocations, before.live_allocations);
  EXPECT_GE(after.bytes_peak, before.bytes_in_use + 20 * kMiB);
  ASSERT_OK(tuff_context_reset_peak(own));
  EXPECT_EQ(memory_of(own).bytes_peak, after.bytes_in_use);
  EXPECT_EQ(stats_of(own).bytes_peak, after.bytes_in_use);
}

TEST_P(Memory, TheHeap) {
  const tuff_memory_stats stats = memory_of(context());
  EXPECT_EQ(stats.heap_bytes, properties_of(context()).memory_bytes);
  EXPECT_EQ(stats.bytes_limit, 0u);
  int32_t budget = -1;
  ASSERT_OK(tuff_supports(context(), "memory_budget", &budget));
  EXPECT_EQ(stats.heap_budget_bytes != 0, budget == 1);
  EXPECT_LE(stats.heap_budget_bytes, stats.heap_bytes);
  const OwnContext own(GetParam());
  set_limit(own, 123 * kMiB);
  EXPECT_EQ(memory_of(own).bytes_limit, 123 * kMiB);
}

TEST_P(Memory, WhatIsKeptIsAHit) {
  const OwnContext own(GetParam());
  for (uint64_t bytes : {uint64_t{1000}, kMiB, 20 * kMiB}) {
    OwnBuffer(own, bytes).free();
    ASSERT_OK(tuff_synchronize(own));
    const tuff_memory_stats before = memory_of(own);
    const OwnBuffer again(own, bytes);
    const tuff_memory_stats after = memory_of(own);
    EXPECT_EQ(after.allocations, before.allocations + 1);
    EXPECT_EQ(after.hits - before.hits, vulkan() ? 1u : 0u) << bytes;
    if (vulkan()) {
      EXPECT_EQ(after.bytes_reserved, before.bytes_reserved) << bytes;
    }
  }
}

// Freed while the device has yet to compute what is in it, and used again: the order of the stream keeps all apart, and
// the memory does not grow with the number of calls that wait.
TEST_P(Memory, WhatIsFreedInFlightIsUsedAgain) {
  const OwnContext own(GetParam());
  constexpr uint64_t kCount = 5 << 20;  // 20 MiB
  const Tensor x(own, std::vector<float>(kCount, 1.0f)), sum(own, std::vector<float>(kCount, 0.0f));
  ASSERT_OK(tuff_synchronize(own));
  const tuff_memory_stats before = memory_of(own);
  constexpr int kSteps = 40;
  for (int step = 0; step < kSteps; ++step) {
    const OwnBuffer y(own, kCount * 4);
    ASSERT_OK(tuff_binary(own, TUFF_F32, TUFF_BINARY_MUL, x, x, y, kCount));
    ASSERT_OK(tuff_binary(own, TUFF_F32, TUFF_BINARY_ADD, sum, y, sum, kCount));
  }
  // A second stream and the host find such memory in use.
  OwnBuffer last(own, kCount * 4);
  const OwnStream stream = make_stream(own);
  fill(stream, last, kCount, 3.0f);
  const std::vector<float> threes = read(stream, last, kCount);
  last.free();
  const OwnBuffer uploaded(own, kCount * 4);
  const std::vector<float> twos(kCount, 2.0f);
  ASSERT_OK(tuff_copy_htod(own, uploaded, 0, twos.data(), kCount * 4));
  EXPECT_EQ(sum.read(), std::vector<float>(kCount, static_cast<float>(kSteps)));
  EXPECT_EQ(threes, std::vector<float>(kCount, 3.0f));
  EXPECT_EQ(read(own, uploaded, kCount), twos);
  const tuff_memory_stats after = memory_of(own);
  expect_consistent(after);
  if (vulkan()) {
    EXPECT_LE(after.blocks, before.blocks + 3);
  }
}

TEST_P(Memory, TrimGivesBackWhatNobodyUses) {
  const OwnContext own(GetParam());
  const Tensor live(own, std::vector<float>(100, 2.5f));
  OwnBuffer large(own, 100 * kMiB), medium(own, 3 * kMiB);
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_NEG, large, large, 1000));
  large.free();
  medium.free();
  ASSERT_OK(tuff_synchronize(own));
  const tuff_memory_stats before = memory_of(own);
  if (vulkan()) {
    EXPECT_GE(before.bytes_free, 100 * kMiB) << "it is kept for the next one";
  }
  ASSERT_OK(tuff_context_trim(own));
  const tuff_memory_stats after = memory_of(own);
  expect_consistent(after);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_LE(after.bytes_reserved + (vulkan() ? 100 * kMiB : 0), before.bytes_reserved);
  ASSERT_OK(tuff_context_trim(own));
  EXPECT_EQ(memory_of(own).bytes_reserved, after.bytes_reserved);
  live.expect_unchanged(std::vector<float>(100, 2.5f));
  const OwnBuffer again(own, 100 * kMiB);
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_NEG, again, again, 1000));
  ASSERT_OK(tuff_synchronize(own));
}

// The memory of partial results belongs to the context: it is released too, and allocated again when needed.
TEST_P(Memory, TrimGivesBackPartialResults) {
  const OwnContext own(GetParam());
  const uint64_t n = 1 << 20, shape[] = {n};
  const OwnBuffer x(own, n * 4), y(own, 4);
  ASSERT_OK(tuff_fill(own, x, 0, n * 4, "\0\0\x80\x3f", 4));
  const auto sum = [&] {
    float value = 0;
    EXPECT_OK(tuff_reduce(own, TUFF_F32, TUFF_REDUCE_SUM, x, y, shape, 1, 0));
    EXPECT_OK(tuff_copy_dtoh(own, &value, y, 0, 4));
    return value;
  };
  ASSERT_OK(tuff_synchronize(own));
  const tuff_memory_stats before = memory_of(own);
  EXPECT_EQ(sum(), static_cast<float>(n));
  ASSERT_OK(tuff_context_trim(own));
  EXPECT_EQ(memory_of(own).bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(sum(), static_cast<float>(n));
}

TEST_P(Memory, HolesAreFragmentation) {
  if (!vulkan()) GTEST_SKIP() << "the host backend keeps nothing";
  const OwnContext own(GetParam());
  std::vector<OwnBuffer> buffers;
  for (int i = 0; i < 48; ++i) buffers.emplace_back(own, kMiB);
  ASSERT_OK(tuff_synchronize(own));
  const double whole = memory_of(own).fragmentation;
  for (int i = 0; i < 48; i += 2) buffers[i].free();
  const tuff_memory_stats holes = memory_of(own);
  expect_consistent(holes);
  EXPECT_GT(holes.fragmentation, whole);
  EXPECT_GE(holes.bytes_free, 24 * kMiB);
  buffers.clear();
  EXPECT_LT(memory_of(own).fragmentation, holes.fragmentation) << "neighbours have joined again";
}

// --- short of memory ---------------------------------------------------------------------------------------

constexpr uint64_t kLimit = 1'000'000, kMax = 600'000;

TEST_P(Memory, ARefusalSaysWhatIsThere) {
  const OwnContext own(GetParam());
  set_limit(own, kLimit);
  const OwnBuffer held(own, kMax);
  ASSERT_OK(tuff_fill(own, held, 0, kMax, "\x07", 1));
  tuff_buffer buffer = 77;
  EXPECT_FAILS(tuff_alloc(own, kMax, &buffer), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "600000");
  EXPECT_NE(last_error().find("1000000"), std::string::npos) << last_error();
  if (vulkan()) {
    EXPECT_NE(last_error().find("largest range"), std::string::npos) << last_error();
  }
  EXPECT_EQ(buffer, 77u);
  std::vector<uint8_t> bytes(kMax);
  ASSERT_OK(tuff_copy_dtoh(own, bytes.data(), held, 0, kMax));
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), 7), static_cast<int64_t>(kMax)) << "what is live stays usable";
  const OwnBuffer fits(own, 100'000);
}

// What is freed in flight is used again only within the limit, which may have become lower meanwhile.
TEST_P(Memory, WhatIsFreedInFlightKeepsToTheLimit) {
  constexpr uint64_t kBytes = 32 * kMiB;
  for (const uint64_t limit : {24 * kMiB, 48 * kMiB}) {
    const OwnContext own(GetParam());
    const OwnBuffer x(own, kBytes);
    OwnBuffer y(own, kBytes);
    ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_NEG, x, y, kBytes / 4));
    y.free();
    set_limit(own, limit);
    tuff_buffer none = 0;
    EXPECT_FAILS(tuff_alloc(own, kBytes, &none), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "limit");
    set_limit(own, memory_of(own).bytes_in_use + kBytes);
    const OwnBuffer fits(own, kBytes);
  }
}

// Calls with lists of buffers keep tables of them, which have 1.25 MiB after some calls. tuff_allocation_failures found
// that a request failed for these once so many calls had been made.
TEST_P(Memory, TablesOfEarlierCallsMakeRoom) {
  constexpr uint64_t kMatrices = 1000, kCalls = 40;
  for (const bool trims : {false, true}) {
    const OwnContext own(GetParam());
    const OwnBuffer x(own, 64), y(own, 64 * kMatrices);
    std::vector<OwnBuffer> views;
    std::vector<tuff_buffer> in(kMatrices, x), out;
    for (uint64_t i = 0; i < kMatrices; ++i) {
      tuff_buffer view = 0;
      ASSERT_OK(tuff_view(y, 64 * i, 64, &view));
      out.push_back(view);
      views.emplace_back(view);
    }
    tuff_batched_gemm_desc desc{};
    desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.m = desc.n = desc.k = 4, desc.alpha = 1;
    desc.batch_count = kMatrices, desc.a_array = desc.b_array = in.data(), desc.c_array = out.data();
    const uint64_t before = memory_of(own).bytes_in_use;
    for (uint64_t i = 0; i < kCalls; ++i) ASSERT_OK(tuff_batched_gemm_ex(own, &desc));
    ASSERT_OK(tuff_synchronize(own));
    if (vulkan()) {
      EXPECT_GT(memory_of(own).bytes_in_use, before + kMiB) << "without tables this test shows nothing";
    }
    if (trims) {
      ASSERT_OK(tuff_context_trim(own));
      EXPECT_EQ(memory_of(own).bytes_in_use, before);
    }
    set_limit(own, before + kMax);
    { const OwnBuffer fits(own, kMax); }
    set_limit(own, 0);
    ASSERT_OK(tuff_batched_gemm_ex(own, &desc)) << "they are made again";
    ASSERT_OK(tuff_synchronize(own));
  }
}

// Adapts a callback to a function of the test.
struct Callback {
  std::function<void(const tuff_memory_pressure&)> body;
  std::atomic<int> calls{0};
  static void call(void* user, const tuff_memory_pressure* pressure) {
    auto& self = *static_cast<Callback*>(user);
    ++self.calls;
    if (self.body) self.body(*pressure);
  }
};

TEST_P(Memory, CallbackThatFreesEnough) {
  const OwnContext own(GetParam());
  set_limit(own, kLimit);
  OwnBuffer held(own, kMax);
  ASSERT_OK(tuff_unary(own, TUFF_F32, TUFF_UNARY_NEG, held, held, kMax / 4));  // the device is still using it
  const uint64_t in_use = memory_of(own).bytes_in_use;
  tuff_memory_pressure seen{};
  Callback callback{[&](const tuff_memory_pressure& pressure) {
    seen = pressure;
    held.free();
  }};
  ASSERT_OK(tuff_context_set_memory_callback(own, Callback::call, &callback));
  const OwnBuffer wanted(own, kMax);
  EXPECT_NE(static_cast<tuff_buffer>(wanted), 0u);
  EXPECT_EQ(callback.calls, 1);
  EXPECT_EQ(seen.struct_size, sizeof seen);
  EXPECT_EQ(seen.status, TUFF_ERROR_LIMIT_EXCEEDED);
  EXPECT_EQ(seen.bytes_requested, kMax);
  EXPECT_EQ(seen.bytes_needed, in_use + kMax - kLimit);
  ASSERT_OK(tuff_context_set_memory_callback(own, nullptr, nullptr));
  tuff_buffer none = 0;
  EXPECT_FAILS(tuff_alloc(own, kMax, &none), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "600000");
  EXPECT_EQ(callback.calls, 1) << "it was taken away";
}

TEST_P(Memory, CallbackThatFreesNothing) {
  const OwnContext own(GetParam());
  set_limit(own, kLimit);
  const OwnBuffer held(own, kMax);
  Callback callback{[](const tuff_memory_pressure&) { tuff_synchronize(12345); }};  // this call fails
  ASSERT_OK(tuff_context_set_memory_callback(own, Callback::call, &callback));
  tuff_buffer none = 0;
  EXPECT_FAILS(tuff_alloc(own, kMax, &none), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "600000");
  EXPECT_EQ(callback.calls, 1);
  EXPECT_FAILS(tuff_alloc(own, kLimit + 1, &none), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "1000001");
  EXPECT_EQ(callback.calls, 1) << "no freeing makes room for more than the limit";
  const OwnBuffer fits(own, 1000);
  EXPECT_EQ(callback.calls, 1);
}

TEST_P(Memory, CallbackMayAllocate) {
  const OwnContext own(GetParam());
  set_limit(own, kLimit);
  OwnBuffer held(own, kMax), made;
  tuff_status inner = 1;
  Callback callback{[&](const tuff_memory_pressure&) {
    tuff_buffer none = 0;
    inner = tuff_alloc(own, kMax, &none);  // also short of memory: refused, without a nested callback
    held.free();
    EXPECT_OK(tuff_synchronize(own));
    made = OwnBuffer(own, 1000);
  }};
  ASSERT_OK(tuff_context_set_memory_callback(own, Callback::call, &callback));
  const OwnBuffer wanted(own, kMax);
  EXPECT_EQ(callback.calls, 1);
  EXPECT_EQ(inner, TUFF_ERROR_LIMIT_EXCEEDED);
  EXPECT_NE(static_cast<tuff_buffer>(made), 0u);
  EXPECT_OK(tuff_fill(own, wanted, 0, kMax, "x", 1));
}

// Memory that an operation needs for partial results.
TEST_P(Memory, CallbackFreesForAnOperation) {
  if (!vulkan()) GTEST_SKIP() << "operations of the host backend take no memory of the context";
  const OwnContext own(GetParam());
  const uint64_t n = 1 << 20, shape[] = {n};
  const OwnBuffer x(own, n * 4), y(own, 4);
  OwnBuffer held(own, 8 * kMiB);
  ASSERT_OK(tuff_fill(own, x, 0, n * 4, "\0\0\x80\x3f", 4));
  ASSERT_OK(tuff_synchronize(own));
  const auto sum = [&] { return tuff_reduce(own, TUFF_F32, TUFF_REDUCE_SUM, x, y, shape, 1, 0); };
  const uint64_t before = memory_of(own).allocations;
  ASSERT_OK(sum());
  ASSERT_GT(memory_of(own).allocations, before) << "this sum keeps no partial results: another has to be found";
  ASSERT_OK(tuff_synchronize(own));
  ASSERT_OK(tuff_context_trim(own));
  ASSERT_OK(tuff_fill(own, y, 0, 4, "\0\0\0\0", 4));
  ASSERT_OK(tuff_synchronize(own));
  set_limit(own, memory_of(own).bytes_in_use + 100);
  EXPECT_EQ(sum(), TUFF_ERROR_LIMIT_EXCEEDED);
  Callback callback{[&](const tuff_memory_pressure&) { held.free(); }};
  ASSERT_OK(tuff_context_set_memory_callback(own, Callback::call, &callback));
  EXPECT_OK(sum());
  EXPECT_EQ(callback.calls, 1);
  float value = 0;
  ASSERT_OK(tuff_copy_dtoh(own, &value, y, 0, 4));
  EXPECT_EQ(value, static_cast<float>(n));
}

TEST_P(Memory, CallbackIsReplacedFromInside) {
  const OwnContext own(GetParam());
  set_limit(own, kLimit);
  const OwnBuffer held(own, kMax);
  Callback second, first{[&](const tuff_memory_pressure&) {
    EXPECT_OK(tuff_context_set_memory_callback(own, Callback::call, &second));
  }};
  ASSERT_OK(tuff_context_set_memory_callback(own, Callback::call, &first));
  tuff_buffer none = 0;
  EXPECT_FAILS(tuff_alloc(own, kMax, &none), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "600000");
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 0);
  EXPECT_FAILS(tuff_alloc(own, kMax, &none), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "600000");
  EXPECT_EQ(first.calls, 1);
  EXPECT_EQ(second.calls, 1);
}

TEST_P(Memory, ReplacingWaitsForWhoIsInside) {
  const OwnContext own(GetParam());
  set_limit(own, kLimit);
  const OwnBuffer held(own, kMax);
  std::atomic<bool> inside{false}, go{false}, left{false}, replaced{false};
  Callback callback{[&](const tuff_memory_pressure&) {
    inside = true;
    while (!go) std::this_thread::yield();
    left = true;
  }};
  ASSERT_OK(tuff_context_set_memory_callback(own, Callback::call, &callback));
  std::thread allocates([&] {
    tuff_buffer none = 0;
    EXPECT_EQ(tuff_alloc(own, kMax, &none), TUFF_ERROR_LIMIT_EXCEEDED);
  });
  while (!inside) std::this_thread::yield();
  std::thread replaces([&] {
    EXPECT_OK(tuff_context_set_memory_callback(own, nullptr, nullptr));
    EXPECT_TRUE(left) << "the data that the callback's user points to could have been freed";
    replaced = true;
  });
  // The context is not locked during the callback.
  const OwnBuffer fits(own, 1000);
  ASSERT_OK(tuff_synchronize(own));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_FALSE(replaced);
  go = true;
  allocates.join();
  replaces.join();
  EXPECT_TRUE(replaced);
}

// A cache shared by two threads that is emptied when memory is short.
TEST_P(Memory, CallbackOnTwoThreads) {
  const OwnContext own(GetParam());
  const uint64_t in_use = memory_of(own).bytes_in_use;
  set_limit(own, in_use + kLimit);
  std::mutex mutex;
  std::vector<OwnBuffer> cache;
  Callback callback{[&](const tuff_memory_pressure&) {
    std::vector<OwnBuffer> freed;
    const std::lock_guard lock(mutex);
    freed.swap(cache);
  }};
  ASSERT_OK(tuff_context_set_memory_callback(own, Callback::call, &callback));
  constexpr int kEach = 200;
  constexpr uint64_t kBytes = 150'000;
  std::atomic<int> made{0};
  const auto work = [&] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (int i = 0; i < kEach && std::chrono::steady_clock::now() < until;) {
      tuff_buffer buffer = 0;
      const tuff_status status = tuff_alloc(own, kBytes, &buffer);
      if (status == TUFF_OK) {
        ++i, ++made;
        EXPECT_OK(tuff_fill(own, buffer, 0, 4, "abcd", 4));
        const std::lock_guard lock(mutex);
        cache.emplace_back(buffer);
      } else {  // the other thread was faster, or has not yet freed what it took from the cache
        ASSERT_EQ(status, TUFF_ERROR_LIMIT_EXCEEDED);
        std::this_thread::yield();
      }
    }
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  EXPECT_EQ(made, 2 * kEach);
  // The limit has room for this many at once, and each callback frees at most what is in the cache.
  EXPECT_GE(callback.calls, 2 * kEach / static_cast<int>(kLimit / kBytes) - 1);
  EXPECT_LE(memory_of(own).bytes_peak, in_use + kLimit + 256);
  cache.clear();
  ASSERT_OK(tuff_synchronize(own));
  EXPECT_EQ(memory_of(own).bytes_in_use, in_use);
}

TUFF_ON_BACKENDS(Memory);

}  // namespace
}  // namespace tuff_test::memory_test
