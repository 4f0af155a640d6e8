// tuff_context_compact(): contents, views and graphs stay what they are, what may not move does not, and steps keep to
// their limits.
#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "support/kernel.hpp"
#include "support/profile.hpp"
#include "support/stream.hpp"

namespace tuff_test::compact_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

tuff_compaction compact(tuff_context context, uint64_t max_bytes = 0, uint64_t max_milliseconds = 0) {
  tuff_compact_desc desc{};
  desc.struct_size = sizeof desc;
  desc.max_bytes = max_bytes;
  desc.max_milliseconds = max_milliseconds;
  tuff_compaction report{};
  report.struct_size = sizeof report;
  EXPECT_OK(tuff_context_compact(context, &desc, &report));
  return report;
}

// Buffers with numbers of their own, of sizes in a range, of which a part has been freed.
class Holes {
 public:
  Holes(tuff_context context, size_t count, uint64_t least, uint64_t most, size_t keep_one_in, uint32_t flags = 0)
      : context_(context) {
    std::mt19937_64 random(count + least);
    for (size_t i = 0; i < count; ++i) {
      const uint64_t bytes = least + random() % (most - least + 1);
      tuff_alloc_desc desc{};
      desc.struct_size = sizeof desc;
      desc.bytes = bytes;
      desc.flags = flags;
      tuff_buffer buffer = 0;
      EXPECT_OK(tuff_alloc_ex(context, &desc, &buffer));
      const uint32_t word = static_cast<uint32_t>(i * 2654435761u);
      EXPECT_OK(tuff_fill(context, buffer, 0, bytes / 4 * 4, &word, 4));
      kept_.push_back({OwnBuffer(buffer), bytes / 4, word});
    }
    EXPECT_OK(tuff_synchronize(context));
    std::vector<Kept> rest;
    for (size_t i = 0; i < kept_.size(); ++i) {
      if (i % keep_one_in == keep_one_in - 1) rest.push_back(std::move(kept_[i]));
    }
    kept_ = std::move(rest);
  }
  tuff_buffer operator[](size_t i) const { return kept_[i].buffer; }
  size_t size() const { return kept_.size(); }
  uint64_t bytes(size_t i) const { return kept_[i].words * 4; }
  void expect_contents() const {
    for (const Kept& kept : kept_) {
      std::vector<uint32_t> words(kept.words);
      ASSERT_OK(tuff_copy_dtoh(context_, words.data(), kept.buffer, 0, 4 * kept.words));
      ASSERT_EQ(std::count(words.begin(), words.end(), kept.word), static_cast<ptrdiff_t>(kept.words));
    }
  }

 private:
  struct Kept {
    OwnBuffer buffer;
    uint64_t words;
    uint32_t word;
  };
  tuff_context context_;
  std::vector<Kept> kept_;
};

class Compact : public OnVulkan {};

TEST_F(Compact, MovesBuffersTogether) {
  struct Row {
    const char* name;
    size_t count;
    uint64_t least, most;
    size_t keep_one_in;
  };
  const Row rows[] = {{"small buffers in several blocks", 1500, 20'000, 60'000, 5},
                      {"large ones in several blocks", 60, 2 * kMiB, 5 * kMiB, 4},
                      {"in one block", 100, 1000, 60'000, 3}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const OwnContext own("vulkan");
    const Holes holes(own, row.count, row.least, row.most, row.keep_one_in);
    const tuff_memory_stats before = memory_of(own);
    const tuff_compaction report = compact(own);
    EXPECT_EQ(report.done, 1);
    EXPECT_GT(report.buffers_moved, 0u);
    EXPECT_GE(report.bytes_moved, report.buffers_moved * row.least);
    EXPECT_EQ(report.buffers_fixed, 0u);
    EXPECT_EQ(report.fragmentation_before, before.fragmentation);
    EXPECT_LE(report.fragmentation_after, report.fragmentation_before);
    EXPECT_GE(report.largest_free_after, report.largest_free_before);
    const tuff_memory_stats after = memory_of(own);
    EXPECT_EQ(report.fragmentation_after, after.fragmentation);
    EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
    EXPECT_EQ(after.bytes_peak, before.bytes_peak);
    EXPECT_EQ(after.live_allocations, before.live_allocations);
    holes.expect_contents();
    // Everything is where it is best now.
    const tuff_compaction again = compact(own);
    EXPECT_EQ(again.done, 1);
    EXPECT_EQ(again.buffers_moved, 0u);
    // Blocks that became empty go back to the device.
    ASSERT_OK(tuff_context_trim(own));
    EXPECT_LE(memory_of(own).bytes_reserved, before.bytes_reserved);
    if (row.count != 100) {
      EXPECT_LT(memory_of(own).bytes_reserved, before.bytes_reserved);
    }
    holes.expect_contents();
  }
}

TEST_F(Compact, ViewsAndLaterCallsFindTheMemory) {
  const OwnContext own("vulkan");
  Holes holes(own, 800, 20'000, 60'000, 4);
  tuff_buffer handle = 0;
  const size_t last = holes.size() - 1;
  ASSERT_OK(tuff_view(holes[last], 400, 4000, &handle));
  const OwnBuffer view(handle), target(own, 4000);
  const OwnStream stream = make_stream(own);
  EXPECT_GT(compact(own).buffers_moved, 0u);
  // At once, on another stream, which has to wait for the copy.
  ASSERT_OK(tuff_copy_dtod(stream, target, 0, view, 0, 4000));
  std::vector<uint32_t> moved(1000), whole(1000);
  ASSERT_OK(tuff_copy_dtoh(stream, moved.data(), target, 0, 4000));
  ASSERT_OK(tuff_copy_dtoh(own, whole.data(), holes[last], 400, 4000));
  EXPECT_EQ(moved, whole);
  // A write through the view is seen through the buffer.
  const uint32_t seven = 7;
  ASSERT_OK(tuff_fill(own, view, 0, 4, &seven, 4));
  ASSERT_OK(tuff_copy_dtoh(own, whole.data(), holes[last], 400, 4));
  EXPECT_EQ(whole[0], 7u);
}

TEST_F(Compact, StepsKeepToTheirLimit) {
  const OwnContext own("vulkan");
  const Holes holes(own, 1200, 20'000, 60'000, 5);
  uint64_t moved = 0;
  int calls = 0;
  tuff_compaction report{};
  do {
    report = compact(own, 300'000);
    EXPECT_LE(report.bytes_moved, 300'000u);
    moved += report.bytes_moved;
    ASSERT_LT(++calls, 1000);
  } while (report.bytes_moved != 0);
  EXPECT_EQ(report.done, 1);
  EXPECT_GT(calls, 3);
  EXPECT_GT(moved, 900'000u);
  holes.expect_contents();
  EXPECT_EQ(compact(own).buffers_moved, 0u);
}

TEST_F(Compact, LessThanABufferMovesNothing) {
  const OwnContext own("vulkan");
  const Holes holes(own, 800, 20'000, 60'000, 4);
  const tuff_compaction report = compact(own, 1000);
  EXPECT_EQ(report.buffers_moved, 0u);
  EXPECT_EQ(report.done, 0);
}

// Whether or not the time ends it early, nothing is lost, and another call does the rest.
TEST_F(Compact, TimeEndsIt) {
  const OwnContext own("vulkan");
  const Holes holes(own, 200, 2 * kMiB, 3 * kMiB, 4);
  const tuff_compaction report = compact(own, 0, 1);
  EXPECT_LE(report.bytes_moved, memory_of(own).bytes_in_use);
  EXPECT_GT(report.buffers_moved, 0u) << "the time is looked at after a step";
  const tuff_compaction rest = compact(own);
  EXPECT_EQ(rest.done, 1);
  holes.expect_contents();
}

// A mapping's address stays valid.
TEST_F(Compact, MappedBuffersStay) {
  const OwnContext own("vulkan");
  const Holes holes(own, 800, 20'000, 60'000, 4, TUFF_ALLOC_HOST_VISIBLE);
  std::vector<uint32_t*> pointers;
  for (size_t i = 0; i < holes.size(); ++i) {
    void* pointer = nullptr;
    ASSERT_OK(tuff_map(holes[i], &pointer));
    pointers.push_back(static_cast<uint32_t*>(pointer));
  }
  const tuff_compaction report = compact(own);
  EXPECT_EQ(report.buffers_moved, 0u);
  EXPECT_EQ(report.buffers_fixed, holes.size());
  EXPECT_EQ(report.done, 1);
  std::vector<uint32_t> before;
  for (size_t i = 0; i < holes.size(); ++i) {
    before.push_back(pointers[i][0]);
    pointers[i][0] = static_cast<uint32_t>(i);
  }
  for (size_t i = 0; i < holes.size(); ++i) {
    ASSERT_OK(tuff_unmap(holes[i]));
    uint32_t word = 0;
    ASSERT_OK(tuff_copy_dtoh(own, &word, holes[i], 0, 4));
    EXPECT_EQ(word, i);
    ASSERT_OK(tuff_copy_htod(own, holes[i], 0, &before[i], 4));
  }
  // Now they may move, and what maps them later gets the new place.
  const tuff_compaction moved = compact(own);
  if (moved.buffers_fixed == 0) {
    EXPECT_GT(moved.buffers_moved, 0u);
  }
  holes.expect_contents();
  void* pointer = nullptr;
  ASSERT_OK(tuff_map(holes[holes.size() - 1], &pointer));
  EXPECT_EQ(*static_cast<uint32_t*>(pointer), before.back());
  ASSERT_OK(tuff_unmap(holes[holes.size() - 1]));
}

TEST_F(Compact, CapturedBuffersStay) {
  const OwnContext own("vulkan");
  const Holes holes(own, 800, 20'000, 60'000, 4);
  const size_t last = holes.size() - 1;
  const OwnBuffer target(own, 4000);
  // While the stream captures, and once the graph is there.
  ASSERT_OK(tuff_graph_begin(own));
  ASSERT_OK(tuff_copy_dtod(own, target, 0, holes[last], 0, 4000));
  const tuff_compaction during = compact(own, 200'000);
  EXPECT_EQ(during.buffers_fixed, 2u);
  tuff_graph handle = 0;
  ASSERT_OK(tuff_graph_end(own, &handle));
  {
    const OwnGraph graph(handle);
    const tuff_compaction report = compact(own);
    EXPECT_EQ(report.buffers_fixed, 2u);
    EXPECT_GT(report.buffers_moved, 0u);
    ASSERT_OK(tuff_graph_launch(own, graph));
    std::vector<uint32_t> copied(1000), whole(1000);
    ASSERT_OK(tuff_copy_dtoh(own, copied.data(), target, 0, 4000));
    ASSERT_OK(tuff_copy_dtoh(own, whole.data(), holes[last], 0, 4000));
    EXPECT_EQ(copied, whole);
  }
  holes.expect_contents();
  EXPECT_EQ(compact(own).buffers_fixed, 0u) << "the graph is gone";
}

TEST_F(Compact, PinnedAndOwnMemoryStays) {
  const OwnContext own("vulkan");
  const Holes holes(own, 400, 20'000, 60'000, 4, TUFF_ALLOC_HOST_PINNED);
  const OwnBuffer large(own, 20 * kMiB);
  const tuff_compaction report = compact(own);
  EXPECT_EQ(report.buffers_moved, 0u);
  EXPECT_EQ(report.buffers_fixed, holes.size() + 1);
  EXPECT_EQ(report.done, 1);
  holes.expect_contents();
}

// Threads that compute, allocate and free while others move the memory.
TEST_F(Compact, WhileThreadsCompute) {
  const OwnContext own("vulkan");
  const Holes holes(own, 600, 20'000, 60'000, 4);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const OwnStream stream = make_stream(own);
      std::mt19937 random(static_cast<unsigned>(t));
      while (!stop) {
        const size_t count = 5000 + random() % 5000;
        std::vector<float> values(count);
        for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(random() % 1000);
        const OwnBuffer x(own, 4 * count), y(own, 4 * count);
        ASSERT_OK(tuff_copy_htod(stream, x, 0, values.data(), 4 * count));
        ASSERT_OK(tuff_binary(stream, TUFF_F32, TUFF_BINARY_ADD, x, x, y, count));
        ASSERT_OK(tuff_binary(stream, TUFF_F32, TUFF_BINARY_ADD, y, x, y, count));
        std::vector<float> sums(count);
        ASSERT_OK(tuff_copy_dtoh(stream, sums.data(), y, 0, 4 * count));
        for (size_t i = 0; i < count; ++i) ASSERT_EQ(sums[i], 3 * values[i]);
        ++rounds;
      }
    });
  }
  uint64_t moved = 0;
  for (int i = 0; i < 40 || rounds < 60; ++i) {
    moved += compact(own, 500'000).buffers_moved;
    if (HasFatalFailure() || i > 5000) break;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(moved, 0u);
  holes.expect_contents();
}

// The call times the copies like any others.
TEST_F(Compact, AProfileShowsTheCopies) {
  const OwnContext own("vulkan");
  const Holes holes(own, 400, 20'000, 60'000, 3);
  ASSERT_OK(tuff_profile_begin(own));
  const tuff_compaction report = compact(own);
  ASSERT_OK(tuff_profile_end(own));
  EXPECT_GT(report.buffers_moved, 0u);
  EXPECT_NE(trace_of(own).dump().find("\"compact\""), std::string::npos);
  holes.expect_contents();
}

// A custom kernel is given its buffers' places with each launch.
TEST_F(Compact, CustomKernelsFindTheMemory) {
  const OwnContext own("vulkan");
  const OwnKernel kernel(own, glsl(R"(#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 1) buffer Y { uint y[]; };
void main() { if (gl_GlobalInvocationID.x < 1000) y[gl_GlobalInvocationID.x] = x[gl_GlobalInvocationID.x] + 1; })"));
  const Holes holes(own, 800, 20'000, 60'000, 4);
  const OwnBuffer target(own, 4000);
  const auto launch = [&](tuff_buffer x) {
    const tuff_buffer buffers[] = {x, target};
    ASSERT_OK(tuff_kernel_launch(own, kernel, buffers, 2, nullptr, 0, 16, 1, 1));
    std::vector<uint32_t> before(1000), after(1000);
    ASSERT_OK(tuff_copy_dtoh(own, before.data(), x, 0, 4000));
    ASSERT_OK(tuff_copy_dtoh(own, after.data(), target, 0, 4000));
    for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(after[i], before[i] + 1);
  };
  launch(holes[holes.size() - 1]);
  EXPECT_GT(compact(own).buffers_moved, 0u);
  launch(holes[holes.size() - 1]);
  holes.expect_contents();
}

// What a graph was given in place of a captured buffer has its place in the graph too.
TEST_F(Compact, ReplacementsStay) {
  const OwnContext own("vulkan");
  const Holes holes(own, 800, 20'000, 60'000, 4);
  const OwnBuffer target(own, 4000), captured(own, 20'000);
  ASSERT_OK(tuff_graph_begin(own));
  ASSERT_OK(tuff_copy_dtod(own, target, 0, captured, 0, 4000));
  tuff_graph handle = 0;
  ASSERT_OK(tuff_graph_end(own, &handle));
  const OwnGraph graph(handle);
  const tuff_buffer replacement = holes[holes.size() - 1];
  ASSERT_OK(tuff_graph_bind(graph, captured, replacement));
  EXPECT_EQ(compact(own).buffers_fixed, 3u);
  ASSERT_OK(tuff_graph_launch(own, graph));
  std::vector<uint32_t> copied(1000), whole(1000);
  ASSERT_OK(tuff_copy_dtoh(own, copied.data(), target, 0, 4000));
  ASSERT_OK(tuff_copy_dtoh(own, whole.data(), replacement, 0, 4000));
  EXPECT_EQ(copied, whole);
  holes.expect_contents();
}

// Other processes have the memory of exported and imported buffers.
TEST_F(Compact, SharedMemoryStays) {
  int32_t shares = 0;
  ASSERT_OK(tuff_supports(context(), "memory_fd", &shares));
  if (shares == 0) GTEST_SKIP() << "not run: the driver has no VK_KHR_external_memory_fd for buffers";
  const OwnContext own("vulkan");
  const Holes holes(own, 10, 20'000, 60'000, 2, TUFF_ALLOC_EXPORTABLE);
  tuff_memory_fd info{};
  info.struct_size = sizeof info;
  ASSERT_OK(tuff_buffer_export_fd(holes[0], &info));
  tuff_buffer handle = 0;
  ASSERT_OK(tuff_buffer_import_fd(own, &info, &handle));
  const OwnBuffer imported(handle);
  const tuff_compaction report = compact(own);
  EXPECT_EQ(report.buffers_moved, 0u);
  EXPECT_EQ(report.buffers_fixed, holes.size() + 1);
  holes.expect_contents();
}

// Both places of what is being moved are in use for a while, and only one of them counts: a context at its limit gets
// what is left of it.
TEST_F(Compact, TheLimitCountsABufferOnce) {
  const OwnContext own("vulkan");
  const Holes holes(own, 800, 20'000, 60'000, 4);
  const tuff_memory_stats before = memory_of(own);
  const uint64_t limit = before.bytes_in_use + 10'240;
  set_limit(own, limit);
  ASSERT_OK(tuff_context_reset_peak(own));
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      tuff_buffer buffer = 0;
      ASSERT_OK(tuff_alloc(own, 10'000, &buffer));
      ASSERT_OK(tuff_free(buffer));
    }
  });
  uint64_t moved = 0;
  for (int i = 0; i < 100; ++i) moved += compact(own, 100'000).buffers_moved;
  stop = true;
  other.join();
  EXPECT_GT(moved, 0u);
  ASSERT_OK(tuff_synchronize(own));
  const tuff_memory_stats after = memory_of(own);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_LE(after.bytes_peak, limit);
  EXPECT_EQ(after.live_allocations, before.live_allocations);
  holes.expect_contents();
}

// The obvious place to call it: when memory is short.
TEST_F(Compact, InTheMemoryCallback) {
  const OwnContext own("vulkan");
  const Holes holes(own, 400, 20'000, 60'000, 3);
  struct Seen {
    tuff_context context;
    int calls = 0;
    uint64_t moved = 0;
  } seen{own};
  ASSERT_OK(tuff_context_set_memory_callback(
      own,
      [](void* user, const tuff_memory_pressure*) {
        auto& inside = *static_cast<Seen*>(user);
        ++inside.calls;
        inside.moved += compact(inside.context).buffers_moved;
        EXPECT_OK(tuff_context_trim(inside.context));
      },
      &seen));
  set_limit(own, memory_of(own).bytes_in_use);
  tuff_buffer buffer = 0;
  EXPECT_FAILS(tuff_alloc(own, 10'000, &buffer), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_alloc", "limit");
  EXPECT_EQ(seen.calls, 1);
  EXPECT_GT(seen.moved, 0u);
  ASSERT_OK(tuff_context_set_memory_callback(own, nullptr, nullptr));
  holes.expect_contents();
}

// Far more buffers than a step takes.
TEST_F(Compact, ManySmallBuffers) {
  const OwnContext own("vulkan");
  std::vector<OwnBuffer> buffers;
  for (int i = 0; i < 30'000; ++i) buffers.emplace_back(own, 300 + i % 7 * 200);
  for (size_t i = 1; i < buffers.size() / 2; ++i) buffers[i] = std::move(buffers[2 * i]);
  buffers.resize(buffers.size() / 2);
  const tuff_compaction report = compact(own);
  EXPECT_EQ(report.done, 1);
  EXPECT_GT(report.buffers_moved, 1000u);
  EXPECT_EQ(compact(own).buffers_moved, 0u);
}

class CompactOnBackend : public OnBackend {};

TEST_P(CompactOnBackend, AnEmptyContext) {
  const OwnContext own(GetParam());
  const tuff_compaction report = compact(own);
  EXPECT_EQ(report.done, 1);
  EXPECT_EQ(report.buffers_moved, 0u);
  EXPECT_EQ(report.buffers_fixed, 0u);
  tuff_compaction again{};
  again.struct_size = sizeof again;
  ASSERT_OK(tuff_context_compact(own, nullptr, &again));
  EXPECT_EQ(again.done, 1);
}

TEST_P(CompactOnBackend, TheHostMovesNothing) {
  if (vulkan()) GTEST_SKIP() << "a device does";
  const OwnContext own(GetParam());
  const Holes holes(own, 20, 1000, 2000, 2);
  const tuff_compaction report = compact(own);
  EXPECT_EQ(report.done, 1);
  EXPECT_EQ(report.buffers_moved, 0u);
  EXPECT_EQ(report.buffers_fixed, 10u);
}

TEST_P(CompactOnBackend, Misuse) {
  tuff_compact_desc desc{};
  tuff_compaction report{};
  report.struct_size = sizeof report;
  EXPECT_FAILS(tuff_context_compact(context(), &desc, &report), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_compact",
               "struct_size");
  desc.struct_size = sizeof desc;
  desc.reserved = 1;
  EXPECT_FAILS(tuff_context_compact(context(), &desc, &report), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_compact",
               "reserved");
  EXPECT_FAILS(tuff_context_compact(context(), nullptr, nullptr), TUFF_ERROR_INVALID_ARGUMENT, "tuff_context_compact",
               "compaction");
  EXPECT_FAILS(tuff_context_compact(1, nullptr, &report), TUFF_ERROR_INVALID_HANDLE, "tuff_context_compact", "context");
}

TUFF_ON_BACKENDS(CompactOnBackend);

}  // namespace
}  // namespace tuff_test::compact_test
