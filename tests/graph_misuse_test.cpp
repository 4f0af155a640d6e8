// Graphs: which buffers can be replaced at a launch, which cannot, and what cannot be captured.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "support/kernel.hpp"
#include "support/stream.hpp"
#include "support/tensor.hpp"

namespace tuff_test::graph_misuse_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE,
                      kUnsupported = TUFF_ERROR_UNSUPPORTED;
constexpr size_t kCount = 512;
constexpr uint64_t kBytes = 4 * kCount;

OwnBuffer view_of(tuff_buffer buffer, uint64_t offset, uint64_t bytes) {
  tuff_buffer view = 0;
  EXPECT_OK(tuff_view(buffer, offset, bytes, &view));
  return OwnBuffer(view);
}

class GraphBase : public OnBackend {
 protected:
  void expect_all(tuff_stream stream, tuff_buffer buffer, size_t count, float value) {
    expect_same_bits(read(stream, buffer, count), std::vector<float>(count, value));
  }
};

class GraphBind : public GraphBase {
 protected:
  // y = x + x
  void SetUp() override {
    x_ = buffer_of(context(), kCount, 1), y_ = buffer_of(context(), kCount, 0);
    stream_ = make_stream(context());
    graph_ = capture(stream_, [&] { add(stream_, x_, x_, y_, kCount); });
  }
  void launch() { ASSERT_OK(tuff_graph_launch(stream_, graph_)); }
  void bind(tuff_buffer captured, tuff_buffer replacement) {
    ASSERT_OK(tuff_graph_bind(graph_, captured, replacement));
  }

  OwnBuffer x_, y_;
  OwnStream stream_;
  OwnGraph graph_;
};

TEST_P(GraphBind, InputAndOutputAndBack) {
  const OwnBuffer x = buffer_of(context(), kCount, 10), y = buffer_of(context(), kCount, 0);
  bind(x_, x);
  launch();
  expect_all(stream_, y_, kCount, 20);
  bind(y_, y);
  bind(x_, x_);  // undone
  launch();
  expect_all(stream_, y, kCount, 2);
  expect_all(stream_, y_, kCount, 20);
  bind(y_, y_);
  launch();
  expect_all(stream_, y_, kCount, 2);
  expect_all(stream_, x_, kCount, 1);
}

TEST_P(GraphBind, LaunchesBeforeKeepWhatTheyHad) {
  const Delay delay(context());
  std::vector<OwnBuffer> xs, ys;
  for (int i = 0; i < 16; ++i) {
    xs.push_back(buffer_of(context(), kCount, static_cast<float>(i)));
    ys.push_back(buffer_of(context(), kCount, -1));
  }
  delay.on(stream_);
  for (size_t i = 0; i < xs.size(); ++i) {
    bind(x_, xs[i]);
    bind(y_, ys[i]);
    launch();
  }
  for (size_t i = 0; i < xs.size(); ++i) expect_all(stream_, ys[i], kCount, static_cast<float>(2 * i));
}

// A launch with other memory needs a command buffer that no earlier launch uses. While it waits for one, other calls
// go on.
TEST_P(GraphBind, LaunchesThatWaitForTheDeviceHoldNobody) {
  if (!vulkan()) GTEST_SKIP() << "hosts compute within the call";
  constexpr int kProducts = 32;
  const OwnStream other = make_stream(context());
  std::vector<OwnBuffer> xs;
  for (int i = 0; i < 8; ++i) xs.push_back(buffer_of(context(), kCount, static_cast<float>(i)));
  launch();
  ASSERT_OK(tuff_synchronize(stream_));
  // Larger products, and not more of them, keep a fast device busy: a stream has only so many submissions in flight.
  for (uint64_t n = 256;; n *= 2) {
    const OwnBuffer a(context(), n * n * 4), b(context(), n * n * 4);
    for (int i = 0; i < kProducts; ++i) {
      ASSERT_OK(tuff_gemm(stream_, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, n, n, n, 1, a, n, a, n, 0, b, n));
    }
    const OwnEvent finished = make_event(context());
    ASSERT_OK(tuff_event_record(stream_, finished));
    std::atomic<int> launches{0};
    std::thread launcher([&] {
      for (const OwnBuffer& x : xs) {
        EXPECT_OK(tuff_graph_bind(graph_, x_, x));
        EXPECT_OK(tuff_graph_launch(stream_, graph_));
        ++launches;
      }
    });
    while (launches < 4) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it is in the fifth
    EXPECT_OK(tuff_synchronize(other));
    int32_t done = 1;
    const int by_then = launches;
    EXPECT_OK(tuff_event_query(finished, &done));
    launcher.join();
    if (done == 0) {
      EXPECT_EQ(by_then, 4) << "more launches than command buffers are in flight";
      break;
    }
    ASSERT_LT(n, 16384) << "each time, the call returned only after the device had finished";
  }
  expect_all(stream_, y_, kCount, 14);
}

// The replacement may be freed as well.
TEST_P(GraphBind, KeepsTheReplacement) {
  {
    const OwnBuffer x = buffer_of(context(), kCount, 4);
    bind(x_, x);
  }
  std::vector<OwnBuffer> others;
  for (int i = 0; i < 10; ++i) others.push_back(buffer_of(context(), kCount, -7));
  launch();
  expect_all(stream_, y_, kCount, 8);
}

TEST_P(GraphBind, LargerBuffersAndViews) {
  const OwnBuffer large = buffer_of(context(), 4 * kCount, 3);
  bind(x_, large);
  launch();
  expect_all(stream_, y_, kCount, 6);
  const OwnBuffer part = view_of(large, kBytes, 2 * kBytes);
  fill(stream_, part, kCount, 5);
  bind(x_, part);
  launch();
  expect_all(stream_, y_, kCount, 10);
  bind(y_, view_of(large, 3 * kBytes, kBytes));
  launch();
  EXPECT_EQ(read(stream_, large, 4 * kCount)[3 * kCount], 10);
  expect_all(stream_, y_, kCount, 10);
}

// Captured through views: the replacement is used at the same offsets.
TEST_P(GraphBind, ViewsOfWhatIsReplaced) {
  const OwnBuffer whole = buffer_of(context(), 4 * kCount, 1), other = buffer_of(context(), 4 * kCount, 2);
  const OwnBuffer first = view_of(whole, 0, kBytes), last = view_of(whole, 3 * kBytes, kBytes);
  const OwnGraph graph = capture(stream_, [&] { add(stream_, first, first, last, kCount); });
  ASSERT_OK(tuff_graph_bind(graph, whole, other));
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  expect_all(stream_, whole, 4 * kCount, 1);
  std::vector<float> expected(4 * kCount, 2.0f);
  std::fill(expected.end() - kCount, expected.end(), 4.0f);
  expect_same_bits(read(stream_, other, 4 * kCount), expected);
  // Only one of the views is replaced.
  const OwnBuffer target = buffer_of(context(), kCount, 0);
  ASSERT_OK(tuff_graph_bind(graph, whole, whole));
  ASSERT_OK(tuff_graph_bind(graph, last, target));
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  expect_all(stream_, whole, 4 * kCount, 1);
  expect_all(stream_, target, kCount, 2);
}

// Every operation that uses the buffer, whichever kind of command it became.
TEST_P(GraphBind, EveryKindOfCommand) {
  std::optional<OwnKernel> kernel;  // hosts run none, and compute the same by a product
  if (vulkan()) kernel.emplace(context(), glsl(kSaxpy));
  const OwnBuffer one = buffer_of(context(), 1, 1);
  const OwnBuffer a = buffer_of(context(), kCount, 1), b = buffer_of(context(), kCount, 2),
                  sum = buffer_of(context(), 4, 0);
  const Pinned in(context(), 16), out(context(), kCount);
  in.fill(7);
  const OwnGraph graph = capture(stream_, [&] {
    const tuff_buffer buffers[] = {a, b};
    const Saxpy push{10, kCount};
    if (kernel) {
      EXPECT_OK(tuff_kernel_launch(stream_, *kernel, buffers, 2, &push, sizeof push, kCount / 64, 1, 1));  // b += 10 a
    } else {
      EXPECT_OK(tuff_gemm(stream_, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, kCount, 1, 1, 10, a, 1, one, 1, 1, b, 1));
    }
    const float five = 5;
    EXPECT_OK(tuff_fill(stream_, b, 64, 64, &five, 4));
    EXPECT_OK(tuff_copy_dtod(stream_, b, 128, a, 0, 64));
    EXPECT_OK(tuff_copy_htod_async(stream_, b, 192, in.data(), 64));
    const uint64_t shape[] = {kCount};
    EXPECT_OK(tuff_reduce(stream_, TUFF_F32, TUFF_REDUCE_SUM, b, sum, shape, 1, 0));
    EXPECT_OK(tuff_copy_dtoh_async(stream_, out.data(), b, 0, out.bytes()));
  });
  const auto expected = [&](float a_value, float b_value) {
    std::vector<float> values(kCount, b_value + 10 * a_value);
    for (size_t i = 0; i < 16; ++i) values[16 + i] = 5, values[32 + i] = a_value, values[48 + i] = 7;
    return values;
  };
  const OwnBuffer other_a = buffer_of(context(), kCount, 3), other_b = buffer_of(context(), kCount, 4);
  ASSERT_OK(tuff_graph_bind(graph, a, other_a));
  ASSERT_OK(tuff_graph_bind(graph, b, other_b));
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  ASSERT_OK(tuff_synchronize(stream_));
  expect_same_bits(out.values(), expected(3, 4));
  expect_same_bits(read(stream_, other_b, kCount), expected(3, 4));
  float total = 0;
  for (const float value : expected(3, 4)) total += value;
  EXPECT_EQ(read(stream_, sum, 1)[0], total);
  expect_all(stream_, b, kCount, 2);
  ASSERT_OK(tuff_graph_bind(graph, a, a));
  ASSERT_OK(tuff_graph_bind(graph, b, b));
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  ASSERT_OK(tuff_synchronize(stream_));
  expect_same_bits(out.values(), expected(1, 2));
}

TEST_P(GraphBind, Misuse) {
  const OwnContext other(GetParam());
  const OwnBuffer foreign = buffer_of(other, kCount, 9), unused = buffer_of(context(), kCount, 9),
                  small = buffer_of(context(), kCount - 1, 9), large = buffer_of(context(), 2 * kCount, 9);
  const OwnBuffer half = view_of(x_, 0, kBytes / 2), odd = view_of(large, 4, kBytes);
  const tuff_buffer stale = buffer_of(context(), kCount, 9).release();
  ASSERT_OK(tuff_free(stale));
  const struct {
    const char* what;
    tuff_buffer captured, replacement;
    tuff_status status;
    const char* word;
  } rows[] = {
      {"not used by the graph", unused, large, kArgument, "captured"},
      {"an operand partly in it", half, large, kArgument, "captured"},
      {"too small", x_, small, kArgument, "replacement"},
      {"aligned otherwise", x_, odd, kArgument, "replacement"},
      {"the output onto the input", y_, x_, kArgument, "replacement"},
      {"the input onto the output", x_, y_, kArgument, "replacement"},
      {"stale", x_, stale, kHandle, "replacement"},
      {"stale", stale, x_, kHandle, "captured"},
      {"of another context", x_, foreign, kHandle, "replacement"},
      {"of another context", foreign, x_, kHandle, "captured"},
      {"null", x_, TUFF_NULL_HANDLE, kHandle, "replacement"},
      {"null", TUFF_NULL_HANDLE, x_, kHandle, "captured"},
      {"a stream", x_, stream_, kHandle, "replacement"},
  };
  for (const auto& [what, captured, replacement, status, word] : rows) {
    SCOPED_TRACE(what);
    EXPECT_FAILS(tuff_graph_bind(graph_, captured, replacement), status, "tuff_graph_bind", word);
  }
  launch();
  expect_all(stream_, y_, kCount, 2);
  expect_all(stream_, large, 2 * kCount, 9);
}

// The device reads the addresses of arrays of operands from memory, which a launch does not rewrite.
TEST_P(GraphBind, OperandsInArrays) {
  const OwnBuffer a = buffer_of(context(), 64, 1), b = buffer_of(context(), 64, 1), c = buffer_of(context(), 64, 0);
  const OwnBuffer other = buffer_of(context(), 64, 2);
  tuff_batched_gemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.m = desc.n = desc.k = 8;
  desc.alpha = 1;
  const OwnBuffer a2 = buffer_of(context(), 64, 3), c2 = buffer_of(context(), 64, 0);
  // A buffer located between them is not part of the arrays and can be replaced.
  const OwnBuffer between = buffer_of(context(), kCount, 6), a3 = buffer_of(context(), 64, 4),
                  c3 = buffer_of(context(), 64, 0);
  const tuff_buffer as[] = {a, a2, a3}, bs[] = {b, b, b}, cs[] = {c, c2, c3};
  desc.a_array = as, desc.b_array = bs, desc.c_array = cs, desc.batch_count = 3;
  const OwnGraph graph = capture(stream_, [&] {
    EXPECT_OK(tuff_batched_gemm_ex(stream_, &desc));
    add(stream_, between, between, y_, kCount);
  });
  for (const tuff_buffer buffer : {tuff_buffer{a}, tuff_buffer{b}, tuff_buffer{c3}}) {
    EXPECT_FAILS(tuff_graph_bind(graph, buffer, other), kUnsupported, "tuff_graph_bind", "captured");
  }
  const OwnBuffer x = buffer_of(context(), kCount, 5);
  ASSERT_OK(tuff_graph_bind(graph, between, x));
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  expect_all(stream_, c, 64, 8);
  expect_all(stream_, c3, 64, 32);
  expect_all(stream_, c2, 64, 24);
  expect_all(stream_, y_, kCount, 10);
}

// The host may map the buffer that was replaced. Pinned memory that replaces pinned memory may be mapped as that could.
TEST_P(GraphBind, MappedMemory) {
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  desc.bytes = kBytes;
  OwnBuffer buffers[2];
  for (OwnBuffer& buffer : buffers) {
    tuff_buffer made = TUFF_NULL_HANDLE;
    ASSERT_OK(tuff_alloc_ex(context(), &desc, &made));
    buffer = OwnBuffer(made);
    fill(context(), buffer, kCount, 3);
  }
  ASSERT_OK(tuff_synchronize(context()));
  Pinned down(context(), kCount), other(context(), kCount);
  const OwnGraph graph = capture(stream_, [&] {
    add(stream_, buffers[0], buffers[0], y_, kCount);
    ASSERT_OK(tuff_copy_dtoh_async(stream_, down.data(), y_, 0, down.bytes()));
  });
  ASSERT_OK(tuff_graph_bind(graph, buffers[0], buffers[1]));
  void* data = nullptr;
  ASSERT_OK(tuff_map(buffers[0], &data));
  ASSERT_OK(tuff_graph_bind(graph, down.buffer(), other.buffer()));
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  ASSERT_OK(tuff_synchronize(stream_));
  EXPECT_EQ(other.values(), std::vector<float>(kCount, 6.0f));
  ASSERT_OK(tuff_graph_bind(graph, buffers[0], buffers[0]));
  EXPECT_FAILS(tuff_graph_launch(stream_, graph), kArgument, "tuff_graph_launch", "mapped");
  ASSERT_OK(tuff_unmap(buffers[0]));
  ASSERT_OK(tuff_map(buffers[1], &data));
  EXPECT_OK(tuff_graph_launch(stream_, graph));
  ASSERT_OK(tuff_synchronize(stream_));
  ASSERT_OK(tuff_graph_bind(graph, buffers[0], buffers[1]));
  EXPECT_FAILS(tuff_graph_launch(stream_, graph), kArgument, "tuff_graph_launch", "mapped");
  ASSERT_OK(tuff_unmap(buffers[1]));
}

// A call with arrays that ran out of memory leaves nothing in the graph that the next call could take for its own.
TEST_P(GraphBind, AfterACallThatFailed) {
  if (!vulkan()) GTEST_SKIP() << "hosts need no memory of the context for it, so it does not fail";
  const OwnContext own(GetParam());
  const OwnBuffer x = buffer_of(own, kCount, 5), y(own, kBytes), z = buffer_of(own, kCount, 7);
  const tuff_buffer as[] = {x, x}, cs[] = {y, z};
  tuff_batched_gemm_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = TUFF_F32;
  desc.m = desc.n = desc.k = 8;
  desc.alpha = 1;
  desc.a_array = as, desc.b_array = as, desc.c_array = cs, desc.batch_count = 2;
  const OwnGraph graph = capture(own, [&] {
    set_limit(own, 1);
    EXPECT_FAILS(tuff_batched_gemm_ex(own, &desc), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_batched_gemm_ex", "limit");
    set_limit(own, 0);
    add(own, x, x, y, kCount);
  });
  ASSERT_OK(tuff_graph_bind(graph, x, z));
  ASSERT_OK(tuff_graph_launch(own, graph));
  expect_all(own, y, kCount, 14);
}

// Operands may meet if the call writes neither, and only then.
TEST_P(GraphBind, OperandsThatMeet) {
  const OwnBuffer a = buffer_of(context(), 2 * kCount, 1), b = buffer_of(context(), 2 * kCount, 2);
  const OwnBuffer y = buffer_of(context(), 2 * kCount, 0), wide = buffer_of(context(), 3 * kCount, 5);
  const OwnGraph graph = capture(stream_, [&] { add(stream_, a, b, y, 2 * kCount); });
  ASSERT_OK(tuff_graph_bind(graph, a, b));
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  expect_all(stream_, y, 2 * kCount, 4);
  ASSERT_OK(tuff_graph_bind(graph, a, view_of(wide, 0, 2 * kBytes)));
  ASSERT_OK(tuff_graph_bind(graph, b, view_of(wide, kBytes, 2 * kBytes)));  // they overlap in part
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  expect_all(stream_, y, 2 * kCount, 10);
  for (const uint64_t offset : {uint64_t{0}, uint64_t{16}, kBytes}) {
    const OwnBuffer part = view_of(wide, offset, 2 * kBytes);
    EXPECT_FAILS(tuff_graph_bind(graph, y, part), kArgument, "tuff_graph_bind", "output") << offset;
  }
  fill(stream_, wide, 3 * kCount, 7);
  ASSERT_OK(tuff_graph_launch(stream_, graph));  // as it was before the refusals
  expect_all(stream_, y, 2 * kCount, 14);
  expect_all(stream_, wide, 3 * kCount, 7);
}

// A copy's source and destination may not, and a fill has no operand to meet.
TEST_P(GraphBind, OperandsOfCopiesThatMeet) {
  const OwnBuffer a = buffer_of(context(), kCount, 1), b = buffer_of(context(), kCount, 2);
  const OwnBuffer wide = buffer_of(context(), 2 * kCount, 3);
  const OwnGraph graph = capture(stream_, [&] {
    EXPECT_OK(tuff_copy_dtod(stream_, b, 0, a, 0, kBytes));
    EXPECT_OK(tuff_fill(stream_, b, 0, 4, "abcd", 4));
  });
  EXPECT_FAILS(tuff_graph_bind(graph, a, b), kArgument, "tuff_graph_bind", "copy");
  ASSERT_OK(tuff_graph_bind(graph, a, view_of(wide, 0, kBytes)));
  EXPECT_FAILS(tuff_graph_bind(graph, b, view_of(wide, 16, kBytes)), kArgument, "tuff_graph_bind", "copy");
  ASSERT_OK(tuff_graph_bind(graph, b, view_of(wide, kBytes, kBytes)));
  fill(stream_, wide, kCount, 7);
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  expect_all(stream_, view_of(wide, kBytes + 4, kBytes - 4), kCount - 1, 7);
  expect_all(stream_, b, kCount, 2);
}

// What a call was given and does not use, it was not captured with.
TEST_P(GraphBind, OperandsThatAreNotUsed) {
  const OwnBuffer a = buffer_of(context(), 64, 1), c = buffer_of(context(), 64, 3);
  const OwnBuffer other = buffer_of(context(), 64, 9), large = buffer_of(context(), 2 * kCount, 1);
  const OwnGraph graph = capture(stream_, [&] {
    EXPECT_OK(tuff_gemm(stream_, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 8, 8, 0, 1, a, 1, a, 8, 2, c, 8));  // c *= 2
    add(stream_, large, large, y_, kCount);
  });
  EXPECT_FAILS(tuff_graph_bind(graph, a, other), kArgument, "tuff_graph_bind", "captured");
  ASSERT_OK(tuff_graph_bind(graph, c, other));
  // Half of the buffer is used, so a view of that half is all of the operand.
  ASSERT_OK(tuff_graph_bind(graph, view_of(large, 0, kBytes), x_));
  EXPECT_FAILS(tuff_graph_bind(graph, view_of(large, kBytes, kBytes), x_), kArgument, "tuff_graph_bind", "captured");
  fill(stream_, large, 2 * kCount, -1);
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  expect_all(stream_, other, 64, 18);
  expect_all(stream_, c, 64, 3);
  expect_all(stream_, y_, kCount, 2);
}

TEST_P(GraphBind, PartsOfWhatIsReplaced) {
  const OwnBuffer whole = buffer_of(context(), 2 * kCount, 1), other = buffer_of(context(), 2 * kCount, 2);
  const OwnBuffer first = view_of(whole, 0, kBytes), last = view_of(whole, kBytes, kBytes);
  const OwnGraph graph = capture(stream_, [&] { add(stream_, first, first, last, kCount); });
  ASSERT_OK(tuff_graph_bind(graph, first, other));
  EXPECT_FAILS(tuff_graph_bind(graph, whole, other), kArgument, "tuff_graph_bind", "captured");
  ASSERT_OK(tuff_graph_bind(graph, first, first));
  ASSERT_OK(tuff_graph_bind(graph, whole, other));
  ASSERT_OK(tuff_graph_launch(stream_, graph));
  EXPECT_EQ(read(stream_, other, 2 * kCount)[kCount], 4);
}

class GraphMisuse : public GraphBase {};

// Calls that cannot be captured are refused with a message, and the capture continues.
TEST_P(GraphMisuse, WhatNeedsTheHost) {
  const OwnStream stream = make_stream(context()), other = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1), y = buffer_of(context(), kCount, 5);
  const OwnEvent event = make_event(context());
  const OwnGraph before = capture(stream, [&] { add(stream, x, x, x, kCount); });
  const OwnGraph graph = capture(stream, [&] {
    add(stream, x, x, x, kCount);
    std::vector<float> values(kCount, 8.0f);
    const char* word = "capturing";
    EXPECT_FAILS(tuff_copy_htod(stream, x, 0, values.data(), kBytes), kUnsupported, "tuff_copy_htod", word);
    EXPECT_FAILS(tuff_copy_dtoh(stream, values.data(), x, 0, kBytes), kUnsupported, "tuff_copy_dtoh", word);
    EXPECT_FAILS(tuff_synchronize(stream), kUnsupported, "tuff_synchronize", word);
    EXPECT_FAILS(tuff_event_record(stream, event), kUnsupported, "tuff_event_record", word);
    EXPECT_FAILS(tuff_stream_wait_event(stream, event), kUnsupported, "tuff_stream_wait_event", word);
    EXPECT_FAILS(tuff_graph_launch(stream, before), kUnsupported, "tuff_graph_launch", word);
    EXPECT_FAILS(tuff_graph_begin(stream), kArgument, "tuff_graph_begin", word);
    EXPECT_EQ(values, std::vector<float>(kCount, 8));
    // Other streams are not affected, nor are events.
    add(other, y, y, y, kCount);
    expect_all(other, y, kCount, 10);
    ASSERT_OK(tuff_event_record(other, event));
    ASSERT_OK(tuff_event_wait(event));
    ASSERT_OK(tuff_synchronize(context()));
    add(stream, x, y, x, kCount);
  });
  expect_all(other, x, kCount, 1);
  ASSERT_OK(tuff_graph_launch(stream, graph));
  expect_all(stream, x, kCount, 12);
}

// Synchronising a context waits for all of its streams, and the default stream must not be waited for while it
// captures.
TEST_P(GraphMisuse, WaitingForTheDefaultStream) {
  const OwnStream other = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1);
  const OwnGraph graph = capture(context(), [&] {
    add(context(), x, x, x, kCount);
    EXPECT_FAILS(tuff_synchronize(context()), kUnsupported, "tuff_synchronize", "capturing");
    EXPECT_OK(tuff_synchronize(other));
  });
  ASSERT_OK(tuff_graph_launch(context(), graph));
  ASSERT_OK(tuff_synchronize(context()));
  expect_all(other, x, kCount, 2);
}

// As everywhere, a call that fails has no effect.
TEST_P(GraphMisuse, FailingCallsAreNotCaptured) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1), y = buffer_of(context(), kCount, 0);
  const OwnGraph graph = capture(stream, [&] {
    add(stream, x, x, y, kCount);
    EXPECT_FAILS(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, y, y, kCount + 1), kArgument, "tuff_unary", "input");
    EXPECT_FAILS(tuff_unary(stream, TUFF_F32, 99, y, y, kCount), kArgument, "tuff_unary", "op");
    EXPECT_FAILS(tuff_unary(stream, TUFF_F32, TUFF_UNARY_NEG, y, stream, kCount), kHandle, "tuff_unary", "output");
    EXPECT_FAILS(tuff_fill(stream, y, 0, 6, "abcd", 4), kArgument, "tuff_fill", "bytes");
    EXPECT_FAILS(tuff_copy_dtod(stream, y, 0, y, 4, 8), kArgument, "tuff_copy_dtod", "dst");
    float ordinary[4];
    EXPECT_FAILS(tuff_copy_htod_async(stream, y, 0, ordinary, 16), kArgument, "tuff_copy_htod_async", "src");
    add(stream, y, x, y, kCount);
  });
  ASSERT_OK(tuff_graph_launch(stream, graph));
  expect_all(stream, y, kCount, 3);
}

TEST_P(GraphMisuse, BeginningAndEnding) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1);
  tuff_graph graph = 77;
  EXPECT_FAILS(tuff_graph_end(stream, &graph), kArgument, "tuff_graph_end", "capturing");
  ASSERT_OK(tuff_graph_begin(stream));
  add(stream, x, x, x, kCount);
  EXPECT_FAILS(tuff_graph_end(stream, nullptr), kArgument, "tuff_graph_end", "graph");
  EXPECT_FAILS(tuff_graph_end(context(), &graph), kArgument, "tuff_graph_end", "capturing");
  EXPECT_EQ(graph, 77u);
  ASSERT_OK(tuff_graph_end(stream, &graph));  // as if nothing had happened
  OwnGraph owner(graph);
  ASSERT_OK(tuff_graph_launch(stream, graph));
  expect_all(stream, x, kCount, 2);
  owner.destroy();
  EXPECT_FAILS(tuff_graph_launch(stream, graph), kHandle, "tuff_graph_launch", "graph");
  EXPECT_FAILS(tuff_graph_destroy(graph), kHandle, "tuff_graph_destroy", "graph");
  EXPECT_FAILS(tuff_graph_bind(graph, x, x), kHandle, "tuff_graph_bind", "graph");
  expect_all(stream, x, kCount, 2);
}

TEST_P(GraphMisuse, OfAnotherContext) {
  const OwnContext other(GetParam());
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(other, kCount, 1);
  const OwnGraph theirs = capture(other, [&] { add(other, x, x, x, kCount); });
  EXPECT_FAILS(tuff_graph_launch(stream, theirs), kHandle, "tuff_graph_launch", "graph");
  EXPECT_FAILS(tuff_graph_launch(context(), theirs), kHandle, "tuff_graph_launch", "graph");
  expect_all(other, x, kCount, 1);
  ASSERT_OK(tuff_graph_launch(other, theirs));
  expect_all(other, x, kCount, 2);
}

TUFF_ON_BACKENDS(GraphBind);
TUFF_ON_BACKENDS(GraphMisuse);

}  // namespace
}  // namespace tuff_test::graph_misuse_test
