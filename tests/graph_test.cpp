// Graphs: a launch does exactly what the captured calls would have done; what graphs keep alive, and what they cost.
#include <optional>

#include "support/allocation_count.hpp"
#include "support/call_table.hpp"
#include "support/kernel.hpp"
#include "support/stream.hpp"
#include "support/tensor.hpp"
#include "support/threads.hpp"

namespace tuff_test::graph_test {
namespace {

constexpr size_t kCount = 1000;

// Buffers that are reset to the same contents before every run.
class Operands {
 public:
  Operands(tuff_context context, std::vector<std::vector<float>> contents)
      : context_(context), contents_(std::move(contents)) {
    for (const std::vector<float>& values : contents_) buffers_.emplace_back(context, 4 * values.size());
    for (const OwnBuffer& buffer : buffers_) handles_.push_back(buffer);
    reset();
  }
  const tuff_buffer* handles() const { return handles_.data(); }
  tuff_buffer operator[](size_t i) const { return handles_[i]; }
  void reset() const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      EXPECT_OK(tuff_copy_htod(context_, buffers_[i], 0, contents_[i].data(), 4 * contents_[i].size()));
    }
  }
  std::vector<float> all(tuff_stream stream) const {
    std::vector<float> values;
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const std::vector<float> part = read(stream, buffers_[i], contents_[i].size());
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }
  std::vector<float> initial() const {
    std::vector<float> values;
    for (const std::vector<float>& part : contents_) values.insert(values.end(), part.begin(), part.end());
    return values;
  }
  void free() { buffers_.clear(); }

 private:
  tuff_context context_;
  std::vector<std::vector<float>> contents_;
  std::vector<OwnBuffer> buffers_;
  std::vector<tuff_buffer> handles_;
};

Operands call_operands(tuff_context context) {
  std::vector<std::vector<float>> contents;
  for (uint64_t i = 0; i < kCallBuffers; ++i) contents.push_back(uniforms(kCallBytes / 4, 0.5f, 2, i));
  return {context, contents};
}

// What the row's buffers have to hold.
Operands operands_of(tuff_context context, const BufferCall& row) {
  std::vector<std::vector<float>> contents;
  Random random(1);
  for (const std::vector<uint8_t>& bytes : row.contents([&] { return random.uniform(0.5f, 2); })) {
    std::memcpy(contents.emplace_back(bytes.size() / 4).data(), bytes.data(), bytes.size());
  }
  return {context, contents};
}

bool captured(const BufferCall& row) {
  const std::string function = row.function;
  return row.has_stream && function != "tuff_copy_htod" && function != "tuff_copy_dtoh";
}

class Graphs : public OnBackend {
 protected:
  void expect_all(tuff_stream stream, tuff_buffer buffer, size_t count, float value) {
    expect_same_bits(read(stream, buffer, count), std::vector<float>(count, value));
  }
  // body(stream) gives the same bits when it is called and when it is captured and launched, twice. Nothing is computed
  // during the capture.
  template <typename Body>
  void expect_replays(const Operands& operands, Body body) {
    const OwnStream stream = make_stream(context());
    body(stream);
    const std::vector<float> eager = operands.all(stream);
    operands.reset();
    const OwnGraph graph = capture(stream, [&] { body(stream); });
    expect_same_bits(operands.all(stream), operands.initial());
    for (int launch = 0; launch < 2; ++launch) {
      operands.reset();
      ASSERT_OK(tuff_graph_launch(stream, graph));
      expect_same_bits(operands.all(stream), eager);
    }
    operands.reset();
  }
};

TEST_P(Graphs, EveryCallReplays) {
  for (const BufferCall& row : buffer_calls()) {
    if (!captured(row)) continue;
    SCOPED_TRACE(row.function);
    const Operands operands = operands_of(context(), row);
    expect_replays(operands, [&](tuff_stream stream) { EXPECT_OK(row.call(stream, operands.handles())); });
  }
}

TEST_P(Graphs, AllCallsInOneGraph) {
  const Operands operands = call_operands(context());
  expect_replays(operands, [&](tuff_stream stream) {
    for (const BufferCall& row : buffer_calls()) {
      if (!captured(row)) continue;
      std::vector<tuff_buffer> turned(operands.handles(), operands.handles() + kCallBuffers);
      std::swap(turned[0], turned[1]);
      EXPECT_OK(row.call(stream, operands.handles()));
      EXPECT_OK(row.call(stream, turned.data()));
    }
  });
}

// What neither fits a command nor the push block is kept in the graph's own memory.
TEST_P(Graphs, UnalignedFillsAndParameters) {
  const Operands x(context(), {spreads(2 * 4 * 32 * 16, 7), std::vector<float>(2 * 4 * 32 * 16), spreads(100, 1)});
  expect_replays(x, [&](tuff_stream s) {
    EXPECT_OK(tuff_fill(s, x[2], 5, 3, "abc", 1));
    EXPECT_OK(tuff_fill(s, x[2], 13, 101, "d", 1));
    EXPECT_OK(tuff_fill(s, x[2], 202, 8, "ef", 2));
    tuff_attention_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32, desc.batch = 2, desc.heads = 4, desc.seq_q = desc.seq_kv = 32, desc.head_dim = 16;
    desc.q = desc.k = desc.v = x[0], desc.o = x[1];
    desc.window_left = 5, desc.softcap = 30;
    EXPECT_OK(tuff_attention_ex(s, &desc));
  });
}

// Shapes that are split, with partial results in the library's own memory.
TEST_P(Graphs, ALayerAfterAnother) {
  constexpr uint64_t kRows = 24, kDeep = 4096, kCols = 40;
  const Operands x(context(), {spreads(kRows * kDeep, 1), spreads(kDeep * kCols, 2), std::vector<float>(kRows * kCols),
                               spreads(2 * 8 * 12 * 12, 4), spreads(8 * 8 * 3 * 3, 5),
                               std::vector<float>(2 * 8 * 12 * 12), spreads(2 * 4 * 32 * 16, 7),
                               std::vector<float>(2 * 4 * 32 * 16), std::vector<float>(64), spreads(60'000, 8)});
  std::optional<OwnKernel> kernel;  // hosts run none
  if (vulkan()) kernel.emplace(context(), glsl(kSaxpy));
  expect_replays(x, [&](tuff_stream s) {
    EXPECT_OK(tuff_gemm(s, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, kRows, kCols, kDeep, 1, x[0], kDeep, x[1], kCols, 1,
                        x[2], kCols));
    const uint64_t matrix[] = {kRows, kCols};
    EXPECT_OK(tuff_softmax(s, TUFF_F32, x[2], x[2], matrix, 2, 1));
    const uint64_t image[] = {2, 8, 12, 12}, filter[] = {8, 8, 3, 3}, ones[] = {1, 1};
    EXPECT_OK(tuff_conv2d(s, TUFF_F32, x[3], image, x[4], filter, x[5], image, ones, ones));
    EXPECT_OK(tuff_unary(s, TUFF_F32, TUFF_UNARY_GELU, x[5], x[5], 2 * 8 * 12 * 12));
    EXPECT_OK(tuff_attention(s, TUFF_F32, x[6], x[6], x[6], x[7], 2, 4, 32, 32, 16, 0.25, TUFF_CAUSAL_TOP_LEFT));
    const uint64_t line[] = {60'000};
    EXPECT_OK(tuff_reduce(s, TUFF_F32, TUFF_REDUCE_SUM, x[9], x[8], line, 1, 0));
    const Saxpy push{0.5f, 64};
    const tuff_buffer buffers[] = {x[7], x[8]};
    if (kernel) {
      EXPECT_OK(tuff_kernel_launch(s, *kernel, buffers, 2, &push, sizeof push, 1, 1, 1));
    }
    EXPECT_OK(tuff_copy_dtod(s, x[9], 4, x[8], 0, 200));
    EXPECT_OK(tuff_fill(s, x[9], 1008, 48, "sixteen bytes..", 16));
    tuff_batched_gemm_desc products{};
    products.struct_size = sizeof products;
    products.dtype = TUFF_F32;
    products.m = products.n = products.k = 8;
    products.alpha = 1;
    const tuff_buffer a[] = {x[2], x[3], x[7]}, b[] = {x[4], x[0], x[6]};
    const tuff_buffer c[] = {x[8], x[5], x[9]};
    products.a_array = a, products.b_array = b, products.c_array = c, products.batch_count = 3;
    EXPECT_OK(tuff_batched_gemm_ex(s, &products));
  });
}

TEST_P(Graphs, AccumulatesWithEveryLaunch) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 0), one = buffer_of(context(), kCount, 1);
  const OwnGraph graph = capture(stream, [&] {
    add(stream, x, one, x, kCount);
    add(stream, x, one, x, kCount);
  });
  expect_all(stream, x, kCount, 0);
  for (int i = 0; i < 50; ++i) {
    ASSERT_OK(tuff_graph_launch(stream, graph));
    if (i % 10 == 9) add(stream, x, one, x, kCount);  // ordered with eager calls
    if (i != 30) continue;
    ASSERT_OK(tuff_synchronize(stream));
  }
  expect_all(stream, x, kCount, 105);
}

TEST_P(Graphs, TwoInTurn) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1), one = buffer_of(context(), kCount, 1);
  const OwnGraph plus = capture(stream, [&] { add(stream, x, one, x, kCount); });
  const OwnGraph twice = capture(stream, [&] { add(stream, x, x, x, kCount); });
  float expected = 1;
  for (int i = 0; i < 20; ++i) {
    ASSERT_OK(tuff_graph_launch(stream, i % 3 == 0 ? twice : plus));
    expected = i % 3 == 0 ? 2 * expected : expected + 1;
  }
  expect_all(stream, x, kCount, expected);
}

// Both graphs use the library's memory for partial results, and so do eager calls between them.
TEST_P(Graphs, TwoAtOnceWithPartialResults) {
  constexpr uint64_t kDeep = 8192, kSize = 16;
  const auto streams = make_streams(context(), 3);
  const std::vector<float> a = integers(kSize * kDeep, 2, 1), b = integers(kDeep * kSize, 2, 2);
  std::vector<float> expected(kSize * kSize);
  for (uint64_t i = 0; i < kSize; ++i) {
    for (uint64_t k = 0; k < kDeep; ++k) {
      for (uint64_t j = 0; j < kSize; ++j) expected[i * kSize + j] += a[i * kDeep + k] * b[k * kSize + j];
    }
  }
  const Operands x(context(), {a, b});
  std::vector<OwnBuffer> results;
  std::vector<OwnGraph> graphs;
  const auto product = [&](size_t which) {
    EXPECT_OK(tuff_gemm(streams[which], TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, kSize, kSize, kDeep, 1, x[0], kDeep,
                        x[1], kSize, 0, results[which], kSize));
  };
  for (size_t i = 0; i < 3; ++i) results.push_back(buffer_of(context(), kSize * kSize, -1));
  for (size_t i = 0; i < 2; ++i) graphs.push_back(capture(streams[i], [&] { product(i); }));
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < 2; ++i) ASSERT_OK(tuff_graph_launch(streams[i], graphs[i]));
    product(2);
  }
  for (size_t i = 0; i < 3; ++i) expect_same_bits(read(streams[i], results[i], kSize * kSize), expected);
}

// The launches of one graph are ordered, whatever their streams, with no event between them.
TEST_P(Graphs, LaunchedOnManyStreams) {
  auto streams = make_streams(context(), 3);
  const OwnBuffer x = buffer_of(context(), kCount, 0), one = buffer_of(context(), kCount, 1);
  const OwnGraph graph = capture(streams[0], [&] { add(streams[0], x, one, x, kCount); });
  streams[0].destroy();  // the stream of the capture does not matter
  for (int i = 0; i < 60; ++i) {
    const tuff_stream stream = i % 3 == 0 ? context() : tuff_stream{streams[static_cast<size_t>(i % 3)]};
    ASSERT_OK(tuff_graph_launch(stream, graph));
  }
  ASSERT_OK(tuff_synchronize(context()));
  expect_all(context(), x, kCount, 60);

  on_threads(8, [&](int) {
    const OwnStream stream = make_stream(context());
    for (int launch = 0; launch < 15; ++launch) EXPECT_OK(tuff_graph_launch(stream, graph));
    EXPECT_OK(tuff_synchronize(stream));
  });
  ASSERT_OK(tuff_synchronize(context()));
  expect_all(context(), x, kCount, 60 + 8 * 15);
}

TEST_P(Graphs, KeepsTheMemoryThatItUses) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer result = buffer_of(context(), kCount, 0);
  OwnGraph graph;
  {
    const OwnBuffer x = buffer_of(context(), kCount, 3), between(context(), 4 * kCount);
    tuff_buffer part = 0;
    ASSERT_OK(tuff_view(x, 0, 4 * kCount, &part));
    const OwnBuffer view(part);
    graph = capture(stream, [&] {
      add(stream, view, x, between, kCount);
      multiply(stream, between, x, result, kCount);
    });
  }
  std::vector<OwnBuffer> others;
  for (int i = 0; i < 20; ++i) others.push_back(buffer_of(context(), kCount, -7));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(tuff_graph_launch(stream, graph));
    expect_all(stream, result, kCount, 18);
    fill(stream, result, kCount, 0);
  }
  for (const OwnBuffer& other : others) expect_all(stream, other, kCount, -7);
}

// This includes partial results, for which eager calls then allocate new memory.
TEST_P(Graphs, KeepsItsMemoryWhenTheContextIsTrimmed) {
  const OwnContext own(GetParam());
  constexpr uint64_t kDeep = 16384;
  const OwnBuffer a = buffer_of(own, 8 * kDeep, 1), b = buffer_of(own, 8 * kDeep, 2), c = buffer_of(own, 64, 0);
  const OwnGraph graph = capture(own, [&] {
    EXPECT_OK(tuff_gemm(own, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 8, 8, kDeep, 1, a, kDeep, b, 8, 1, c, 8));
  });
  for (int round = 1; round <= 3; ++round) {
    ASSERT_OK(tuff_graph_launch(own, graph));
    expect_all(own, c, 64, static_cast<float>(round * 2 * kDeep));
    ASSERT_OK(tuff_synchronize(own));
    ASSERT_OK(tuff_context_trim(own));
  }
}

// The zeros of a new buffer are written before the first launch, whatever its memory held, and are not part of the
// graph.
TEST_P(Graphs, AllocatesInTheMiddle) {
  const OwnContext own(GetParam());
  const OwnStream other = make_stream(own);
  for (const tuff_stream stream : {tuff_stream{own}, tuff_stream{other}}) {
    OwnBuffer dirty = buffer_of(own, kCount, -5), result = buffer_of(own, kCount, -1);
    dirty.free();
    ASSERT_OK(tuff_synchronize(own));
    OwnBuffer sum;
    const OwnGraph graph = capture(stream, [&] {
      sum = OwnBuffer(own, 4 * kCount);
      const OwnBuffer one(own, 4 * kCount);
      fill(stream, one, kCount, 1);
      add(stream, sum, one, sum, kCount);
      add(stream, sum, one, result, kCount);
    });
    for (int launch = 1; launch <= 3; ++launch) {
      ASSERT_OK(tuff_graph_launch(stream, graph));
      expect_all(stream, sum, kCount, static_cast<float>(launch));
      expect_all(stream, result, kCount, static_cast<float>(launch + 1));
    }
  }
}

TEST_P(Graphs, GivesItsMemoryBack) {
  const OwnContext own(GetParam());
  const auto in_use = [&] {
    EXPECT_OK(tuff_synchronize(own));
    return stats_of(own).bytes_in_use;
  };
  const auto round = [&] {
    const OwnBuffer x(own, 1 << 20);
    const OwnGraph graph = capture(own, [&] { add(own, x, x, x, kCount); });
    EXPECT_OK(tuff_graph_launch(own, graph));
  };
  round();
  const uint64_t before = in_use();
  for (int i = 0; i < 5; ++i) round();
  EXPECT_EQ(in_use(), before);
}

TEST_P(Graphs, KernelDestroyedBehindTheCapture) {
  if (!vulkan()) GTEST_SKIP() << "hosts run no custom kernels; op_test.cpp does it with a host function";
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), 64, 1), y = buffer_of(context(), 64, 0);
  OwnGraph graph;
  {
    const OwnKernel kernel(context(), glsl(kSaxpy, "short-lived.comp"));
    const tuff_buffer buffers[] = {x, y};
    const Saxpy push{2, 64};
    graph = capture(stream,
                    [&] { EXPECT_OK(tuff_kernel_launch(stream, kernel, buffers, 2, &push, sizeof push, 1, 1, 1)); });
  }
  for (int i = 0; i < 4; ++i) ASSERT_OK(tuff_graph_launch(stream, graph));
  expect_all(stream, y, 64, 8);
  // Its name is kept too.
  ASSERT_OK(tuff_profile_begin(context()));
  ASSERT_OK(tuff_graph_launch(stream, graph));
  ASSERT_OK(tuff_profile_end(context()));
  std::string table(1 << 14, '\0');
  ASSERT_OK(tuff_profile_table(context(), table.data(), table.size(), nullptr));
  EXPECT_NE(table.find("short-lived.comp"), std::string::npos) << table.c_str();
  expect_all(stream, y, 64, 10);
}

TEST_P(Graphs, DestroyedInFlight) {
  const Delay delay(context());
  const OwnStream stream = make_stream(context());
  const OwnBuffer result = buffer_of(context(), kCount, 0);
  for (int round = 0; round < 5; ++round) {
    OwnBuffer x = buffer_of(context(), kCount, 1);
    OwnGraph graph = capture(stream, [&] { add(stream, result, x, result, kCount); });
    delay.on(stream);
    for (int i = 0; i < 4; ++i) ASSERT_OK(tuff_graph_launch(stream, graph));
    x.free();
    graph.destroy();
    const OwnBuffer other = buffer_of(context(), kCount, -100);  // may well reuse the memory of x
  }
  expect_all(stream, result, kCount, 20);
}

TEST_P(Graphs, Empty) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1);
  const OwnGraph graph = capture(stream, [] {});
  add(stream, x, x, x, kCount);
  ASSERT_OK(tuff_graph_launch(stream, graph));
  add(stream, x, x, x, kCount);
  expect_all(stream, x, kCount, 4);
  // Calls with no elements.
  const OwnGraph nothing = capture(stream, [&] { add(stream, 0, 0, 0, 0); });
  ASSERT_OK(tuff_graph_launch(stream, nothing));
  expect_all(stream, x, kCount, 4);
}

TEST_P(Graphs, WhatIsMappedIsNotComputedWith) {
  const OwnStream stream = make_stream(context());
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.bytes = 4 * kCount;
  desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  tuff_buffer made = 0;
  ASSERT_OK(tuff_alloc_ex(context(), &desc, &made));
  const OwnBuffer visible(made), y = buffer_of(context(), kCount, 0);
  fill(context(), visible, kCount, 4);
  const OwnGraph graph = capture(stream, [&] { add(stream, visible, visible, y, kCount); });
  void* data = nullptr;
  ASSERT_OK(tuff_map(visible, &data));
  EXPECT_FAILS(tuff_graph_launch(stream, graph), TUFF_ERROR_INVALID_ARGUMENT, "tuff_graph_launch", "mapped");
  static_cast<float*>(data)[0] = 5;
  ASSERT_OK(tuff_unmap(visible));
  expect_all(stream, y, kCount, 0);
  ASSERT_OK(tuff_graph_launch(stream, graph));
  std::vector<float> expected(kCount, 8.0f);
  expected[0] = 10;
  expect_same_bits(read(stream, y, kCount), expected);
}

TEST_P(Graphs, StreamDestroyedInTheMiddle) {
  OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1);
  ASSERT_OK(tuff_graph_begin(stream));
  add(stream, x, x, x, kCount);
  stream.destroy();
  ASSERT_OK(tuff_synchronize(context()));
  expect_all(context(), x, kCount, 1);
}

// The contents at the time of the launch are uploaded, and the host may use the download's memory afterwards.
TEST_P(Graphs, CopiesOfPinnedMemory) {
  const OwnStream stream = make_stream(context());
  const Pinned in(context(), kCount), out(context(), kCount);
  OwnGraph graph;
  {
    const OwnBuffer x(context(), 4 * kCount);
    graph = capture(stream, [&] {
      EXPECT_OK(tuff_copy_htod_async(stream, x, 0, in.data(), in.bytes()));
      add(stream, x, x, x, kCount);
      EXPECT_OK(tuff_copy_dtoh_async(stream, out.data(), x, 0, out.bytes()));
    });
  }
  for (int round = 1; round <= 6; ++round) {
    const auto value = static_cast<float>(round);
    in.fill(value);
    out.fill(0);
    ASSERT_OK(tuff_graph_launch(stream, graph));
    ASSERT_OK(tuff_synchronize(stream));
    expect_same_bits(out.values(), std::vector<float>(kCount, 2 * value));
  }
}

// A tree of sums: commands that need no order have none, and those that do are ordered.
TEST_P(Graphs, ATree) {
  constexpr size_t kLeaves = 64;
  const OwnStream stream = make_stream(context());
  std::vector<OwnBuffer> nodes;
  for (size_t i = 0; i < kLeaves; ++i) nodes.push_back(buffer_of(context(), kCount, static_cast<float>(i)));
  const OwnGraph graph = capture(stream, [&] {
    for (size_t step = 1; step < kLeaves; step *= 2) {
      for (size_t i = 0; i < kLeaves; i += 2 * step) add(stream, nodes[i], nodes[i + step], nodes[i], kCount);
    }
  });
  ASSERT_OK(tuff_graph_launch(stream, graph));
  expect_all(stream, nodes[0], kCount, kLeaves * (kLeaves - 1) / 2);
}

TEST_P(Graphs, SteadyState) {
  const auto streams = make_streams(context(), 2);
  const Operands operands = call_operands(context());
  const OwnGraph graph = capture(streams[0], [&] {
    for (const BufferCall& row : buffer_calls()) {
      if (!captured(row)) continue;
      EXPECT_OK(row.call(streams[0], operands.handles())) << row.function;
    }
  });
  const auto launches = [&] {
    uint64_t failures = 0, made = 0;
    for (int i = 0; i < 16; ++i) {
      const uint64_t before = allocation_count();
      for (size_t launch = 0; launch < 4; ++launch)
        failures += tuff_graph_launch(streams[launch % 2], graph) != TUFF_OK;
      made += allocation_count() - before;
      if (i % 8 != 7) continue;
      EXPECT_OK(tuff_synchronize(context()));
    }
    EXPECT_EQ(failures, 0u);
    return made;
  };
  launches();
  const tuff_stats before = stats_of(context());
  const uint64_t allocations = launches();
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.vulkan_objects_created, before.vulkan_objects_created);
  EXPECT_EQ(after.pipelines_created, before.pipelines_created);
  EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  if (!vulkan()) return;                              // the reference allocates where it computes
  if (!counts_allocations() || validating()) return;  // the layer allocates inside every call
  EXPECT_EQ(allocations, 0u);
}

TUFF_ON_BACKENDS(Graphs);

}  // namespace
}  // namespace tuff_test::graph_test
