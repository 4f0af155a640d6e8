// Streams: what is ordered, what is not, what needs no event, and lifetimes.
#include "support/stream.hpp"
#include "support/call_table.hpp"
#include "support/kernel.hpp"
#include "support/tensor.hpp"
#include "support/threads.hpp"

namespace tuff_test::stream_test {
namespace {

constexpr size_t kCount = 1000;

class Streams : public OnBackend {
 protected:
  void expect_all(tuff_stream stream, tuff_buffer buffer, size_t count, float value) {
    expect_same_bits(read(stream, buffer, count), std::vector<float>(count, value));
  }
};

TEST_P(Streams, EachIsInOrder) {
  constexpr size_t kStreams = 12;
  const auto streams = make_streams(context(), kStreams);
  const OwnBuffer one = buffer_of(context(), kCount, 1);
  std::vector<OwnBuffer> sums;
  for (size_t i = 0; i < kStreams; ++i) sums.push_back(buffer_of(context(), kCount, static_cast<float>(1000 * i)));
  for (int step = 0; step < 40; ++step) {
    for (size_t i = 0; i < kStreams; ++i) add(streams[i], sums[i], one, sums[i], kCount);
  }
  for (size_t i = 0; i < kStreams; ++i) expect_all(streams[i], sums[i], kCount, static_cast<float>(1000 * i + 40));
}

// One stream writes, two read that and write, one reads both results: repeatedly, on the same buffers.
TEST_P(Streams, Diamond) {
  const auto streams = make_streams(context(), 4);
  const OwnBuffer x = buffer_of(context(), kCount, 0), y = buffer_of(context(), kCount, 0),
                  z = buffer_of(context(), kCount, 0), total = buffer_of(context(), kCount, 0);
  const Delay delay(context());
  float expected = 0;
  for (int round = 1; round <= 12; ++round) {
    const auto value = static_cast<float>(round);
    delay.on(streams[0]);
    fill(streams[0], x, kCount, value);
    for (int side : {1, 2}) order(context(), streams[0], streams[static_cast<size_t>(side)]);
    add(streams[1], x, x, y, kCount);
    multiply(streams[2], x, x, z, kCount);
    for (int side : {1, 2}) order(context(), streams[static_cast<size_t>(side)], streams[3]);
    add(streams[3], total, y, total, kCount);
    add(streams[3], total, z, total, kCount);
    order(context(), streams[3], streams[0]);  // before x is written again
    expected += 2 * value + value * value;
  }
  expect_all(streams[3], total, kCount, expected);
}

TEST_P(Streams, PingPong) {
  const auto streams = make_streams(context(), 2);
  const OwnEvent events[2] = {make_event(context()), make_event(context())};
  const OwnBuffer x = buffer_of(context(), kCount, 0), one = buffer_of(context(), kCount, 1);
  for (size_t step = 0; step < 200; ++step) {
    const size_t mine = step % 2;
    EXPECT_OK(tuff_stream_wait_event(streams[mine], events[1 - mine]));
    add(streams[mine], x, one, x, kCount);
    EXPECT_OK(tuff_event_record(streams[mine], events[mine]));
  }
  expect_all(streams[1], x, kCount, 200);
}

// Upload, computation and download, each on its own stream, with two sets of buffers.
TEST_P(Streams, PipelineOnPinnedMemory) {
  constexpr size_t kChunk = 1 << 14, kChunks = 12;
  const auto streams = make_streams(context(), 3);
  const tuff_stream up = streams[0], compute = streams[1], down = streams[2];
  struct Slot {
    explicit Slot(tuff_context context)
        : in(context, kChunk),
          out(context, kChunk),
          x(context, 4 * kChunk),
          y(context, 4 * kChunk),
          uploaded(make_event(context)),
          computed(make_event(context)),
          downloaded(make_event(context)) {}
    Pinned in, out;
    OwnBuffer x, y;
    OwnEvent uploaded, computed, downloaded;
  };
  const Slot slots[2] = {Slot(context()), Slot(context())};
  const auto expect_chunk = [&](size_t chunk) {
    const Slot& slot = slots[chunk % 2];
    ASSERT_OK(tuff_event_wait(slot.downloaded));
    expect_same_bits(slot.out.values(), std::vector<float>(kChunk, static_cast<float>(2 * chunk + 2)));
    slot.out.fill(-1);
  };
  for (size_t chunk = 0; chunk < kChunks; ++chunk) {
    const Slot& slot = slots[chunk % 2];
    if (chunk >= 2) expect_chunk(chunk - 2);
    EXPECT_OK(tuff_event_wait(slot.uploaded));
    slot.in.fill(static_cast<float>(chunk + 1));

    EXPECT_OK(tuff_stream_wait_event(up, slot.computed));  // x is free
    EXPECT_OK(tuff_copy_htod_async(up, slot.x, 0, slot.in.data(), slot.in.bytes()));
    EXPECT_OK(tuff_event_record(up, slot.uploaded));

    EXPECT_OK(tuff_stream_wait_event(compute, slot.uploaded));
    EXPECT_OK(tuff_stream_wait_event(compute, slot.downloaded));  // y is free
    add(compute, slot.x, slot.x, slot.y, kChunk);
    EXPECT_OK(tuff_event_record(compute, slot.computed));

    EXPECT_OK(tuff_stream_wait_event(down, slot.computed));
    EXPECT_OK(tuff_copy_dtoh_async(down, slot.out.data(), slot.y, 0, slot.out.bytes()));
    EXPECT_OK(tuff_event_record(down, slot.downloaded));
  }
  for (size_t chunk = kChunks - 2; chunk < kChunks; ++chunk) expect_chunk(chunk);
}

// A copy from or to pinned memory is ordered like any operation of the stream, at any offset and size.
TEST_P(Streams, AsyncCopiesAreInOrder) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 0), one = buffer_of(context(), kCount, 1);
  const Pinned in(context(), kCount), out(context(), 40 * 3);
  for (size_t i = 0; i < kCount; ++i) in[i] = static_cast<float>(i);
  for (size_t step = 0; step < 40; ++step) {
    EXPECT_OK(tuff_copy_htod_async(stream, x, 4 * step, in.data() + step, 4 * (kCount - step)));
    add(stream, x, one, x, kCount);
    EXPECT_OK(tuff_copy_dtoh_async(stream, out.data() + 3 * step, x, 4 * (step + 7), 12));
  }
  EXPECT_OK(tuff_copy_htod_async(stream, x, 0, in.data(), 0));
  ASSERT_OK(tuff_synchronize(stream));
  for (size_t step = 0; step < 40; ++step) {
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(out[3 * step + i], static_cast<float>(step + 8 + i));
  }
  // Byte-sized ranges without any alignment.
  const std::vector<float> before = read(stream, x, kCount);
  auto* bytes = reinterpret_cast<unsigned char*>(in.data());
  std::memcpy(bytes + 13, "stream", 6);
  EXPECT_OK(tuff_copy_htod_async(stream, x, 1001, bytes + 13, 6));
  EXPECT_OK(tuff_copy_dtoh_async(stream, bytes + 101, x, 1002, 5));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_EQ(std::memcmp(bytes + 101, "tream", 5), 0);
  std::vector<float> expected = before;
  std::memcpy(reinterpret_cast<unsigned char*>(expected.data()) + 1001, "stream", 6);
  expect_same_bits(read(stream, x, kCount), expected);
}

TEST_P(Streams, ImportedMemoryIsPinned) {
  int32_t yes = 0;
  ASSERT_OK(tuff_supports(context(), "import_host", &yes));
  if (yes == 0) GTEST_SKIP() << "the device has no VK_EXT_external_memory_host";
  alignas(65536) static float memory[16384];
  std::fill(std::begin(memory), std::end(memory), 3.0f);
  tuff_buffer imported = 0;
  ASSERT_OK(tuff_buffer_import_host(context(), memory, sizeof memory, &imported));
  OwnBuffer owner(imported);
  const OwnStream stream = make_stream(context());
  const OwnBuffer x(context(), 4 * kCount);
  EXPECT_OK(tuff_copy_htod_async(stream, x, 0, memory + 100, 4 * kCount));
  add(stream, x, x, x, kCount);
  EXPECT_OK(tuff_copy_dtoh_async(stream, memory + 5000, x, 0, 4 * kCount));
  ASSERT_OK(tuff_synchronize(stream));
  EXPECT_EQ(memory[4999], 3);
  EXPECT_EQ(memory[5000], 6);
  EXPECT_EQ(memory[5999], 6);
  EXPECT_EQ(memory[6000], 3);
  owner.free();
  ASSERT_OK(tuff_synchronize(context()));
  EXPECT_EQ(tuff_copy_htod_async(stream, x, 0, memory, 4), TUFF_ERROR_INVALID_ARGUMENT) << "it is not pinned any more";
}

// The zeros of new buffers, in memory that others have written, and the data of tuff_copy_htod need no event.
TEST_P(Streams, FirstContentsNeedNoEvent) {
  const auto streams = make_streams(context(), 3);
  const size_t count = vulkan() ? 300'000 : 3000;
  const OwnBuffer one = buffer_of(context(), count, 1);
  const std::vector<float> sevens(count, 7.0f);
  std::vector<OwnBuffer> results;
  for (size_t round = 0; round < 30; ++round) {
    const tuff_stream writer = streams[round % 3], reader = streams[(round + 1) % 3], other = streams[(round + 2) % 3];
    OwnBuffer dirty(context(), count * 4);
    fill(writer, dirty, count, -5);
    dirty.free();
    OwnBuffer zeros(context(), count * 4), uploaded(context(), count * 4), result(context(), count * 4);
    EXPECT_OK(tuff_copy_htod(other, uploaded, 0, sevens.data(), count * 4));
    add(reader, zeros, uploaded, result, count);
    add(reader, result, one, result, count);
    if (round % 10 == 0) {
      expect_all(reader, result, count, 8);
    } else {
      uint64_t shape[] = {count};
      results.emplace_back(context(), 4);
      EXPECT_OK(tuff_reduce(reader, TUFF_F32, TUFF_REDUCE_MEAN, result, results.back(), shape, 1, 0));
    }
  }
  ASSERT_OK(tuff_synchronize(context()));
  for (const OwnBuffer& mean : results) EXPECT_NEAR(read(context(), mean, 1)[0], 8, 1e-3);
}

// tuff_free and tuff_alloc hand memory from one stream to another while the first is still working on it.
TEST_P(Streams, FreedMemoryIsNotTakenTooEarly) {
  const auto streams = make_streams(context(), 3);
  const uint64_t count = vulkan() ? 1 << 20 : 1 << 12;
  constexpr size_t kRounds = 40;
  const OwnBuffer one = buffer_of(context(), count, 1);
  const OwnBuffer sums(context(), kRounds * 2 * 4);
  const auto sum_into = [&](tuff_stream stream, tuff_buffer x, size_t place) {
    tuff_buffer view = 0;
    EXPECT_OK(tuff_view(sums, place * 4, 4, &view));
    const OwnBuffer target(view);
    const uint64_t shape[] = {count};
    EXPECT_OK(tuff_reduce(stream, TUFF_F32, TUFF_REDUCE_SUM, x, target, shape, 1, 0));
  };
  ASSERT_OK(tuff_synchronize(context()));  // all streams see sums
  for (size_t round = 0; round < kRounds; ++round) {
    const tuff_stream first = streams[round % 3], second = streams[(round + 1) % 3];
    {
      const OwnBuffer x(context(), count * 4), y(context(), count * 4);
      fill(first, x, count, static_cast<float>(round));
      add(first, x, x, y, count);
      sum_into(first, y, 2 * round);
    }  // both are freed now, but still in use
    const OwnBuffer z(context(), count * 4);
    add(second, z, one, z, count);
    sum_into(second, z, 2 * round + 1);
  }
  ASSERT_OK(tuff_synchronize(context()));
  const std::vector<float> got = read(context(), sums, 2 * kRounds);
  for (size_t round = 0; round < kRounds; ++round) {
    EXPECT_EQ(got[2 * round], static_cast<float>(2 * round * count)) << round;
    EXPECT_EQ(got[2 * round + 1], static_cast<float>(count)) << round;
  }
}

TEST_P(Streams, DestroyedWithWorkInFlight) {
  const Delay delay(context());
  const OwnBuffer one = buffer_of(context(), kCount, 1);
  std::vector<OwnBuffer> sums;
  for (int round = 0; round < 10; ++round) {
    sums.push_back(buffer_of(context(), kCount, 0));
    OwnStream stream = make_stream(context());
    delay.on(stream, 2);
    for (int i = 0; i < 5; ++i) add(stream, sums.back(), one, sums.back(), kCount);
    if (round % 2 == 0) order(context(), stream, context());
    stream.destroy();
    if (round % 2 == 0) expect_all(context(), sums.back(), kCount, 5);
  }
  ASSERT_OK(tuff_synchronize(context()));  // waits for the streams that nothing has waited for
  for (const OwnBuffer& sum : sums) expect_all(context(), sum, kCount, 5);
}

TEST_P(Streams, ContextDestroyedWithAllAlive) {
  OwnContext own(GetParam());
  tuff_stream stream = 0;
  tuff_event event = 0;
  ASSERT_OK(tuff_stream_create(own, nullptr, &stream));
  ASSERT_OK(tuff_event_create(own, nullptr, &event));
  tuff_buffer x = 0;
  ASSERT_OK(tuff_alloc(own, 4 * kCount, &x));
  for (int i = 0; i < 50; ++i) add(stream, x, x, x, kCount);
  ASSERT_OK(tuff_event_record(stream, event));
  ASSERT_OK(tuff_stream_wait_event(own, event));
  const tuff_graph graph = capture(stream, [&] { add(stream, x, x, x, kCount); }).release();
  ASSERT_OK(tuff_graph_launch(own, graph));
  ASSERT_OK(tuff_graph_begin(stream));  // and in the middle of a capture
  add(stream, x, x, x, kCount);
  own.destroy();
  EXPECT_FAILS(tuff_synchronize(stream), TUFF_ERROR_INVALID_HANDLE, "tuff_synchronize", "stream");
  EXPECT_FAILS(tuff_stream_destroy(stream), TUFF_ERROR_INVALID_HANDLE, "tuff_stream_destroy", "stream");
  EXPECT_FAILS(tuff_event_wait(event), TUFF_ERROR_INVALID_HANDLE, "tuff_event_wait", "event");
  EXPECT_FAILS(tuff_event_destroy(event), TUFF_ERROR_INVALID_HANDLE, "tuff_event_destroy", "event");
  EXPECT_FAILS(tuff_graph_destroy(graph), TUFF_ERROR_INVALID_HANDLE, "tuff_graph_destroy", "graph");
}

TEST_P(Streams, SharedWeightsFreedAtOnce) {
  constexpr size_t kSize = 64, kStreams = 12;
  const auto streams = make_streams(context(), kStreams);
  const std::vector<float> w = integers(kSize * kSize, 3, 1);
  std::vector<float> expected(kSize);
  for (size_t i = 0; i < w.size(); ++i) expected[i % kSize] += w[i];
  OwnBuffer weights(context(), 4 * w.size());
  ASSERT_OK(tuff_copy_htod(context(), weights, 0, w.data(), 4 * w.size()));
  const OwnBuffer ones = buffer_of(context(), kSize, 1);
  std::vector<OwnBuffer> results;
  for (size_t i = 0; i < kStreams; ++i) {
    results.emplace_back(context(), 4 * kSize);
    ASSERT_OK(tuff_gemm(streams[i], TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, 1, kSize, kSize, 1, ones, kSize, weights,
                        kSize, 0, results[i], kSize));
  }
  weights.free();
  const OwnBuffer others(context(), 4 * w.size());
  fill(context(), others, w.size(), -9);
  for (size_t i = 0; i < kStreams; ++i) expect_same_bits(read(streams[i], results[i], kSize), expected);
}

TEST_P(Streams, AStreamForEachThread) {
  const tuff_context shared = context();
  const OwnBuffer one = buffer_of(shared, kCount, 1);
  on_threads(16, [&](int mine) {
    const OwnStream stream = make_stream(shared);
    const auto start = static_cast<float>(100 * mine);
    for (int round = 0; round < 4; ++round) {
      const OwnBuffer sum = buffer_of(shared, kCount, start);
      for (int i = 0; i < 10; ++i) add(stream, sum, one, sum, kCount);
      EXPECT_EQ(read(stream, sum, kCount), std::vector<float>(kCount, start + 10));
    }
  });
}

TEST_P(Streams, OneStreamForAllThreads) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer one = buffer_of(context(), kCount, 1), sum = buffer_of(context(), kCount, 0);
  on_threads(16, [&](int mine) {
    for (int i = 0; i < 25; ++i) {
      add(stream, sum, one, sum, kCount);
      if ((i + mine) % 12 != 0) continue;
      EXPECT_OK(tuff_synchronize(stream));
    }
  });
  expect_all(stream, sum, kCount, 16 * 25);
}

// Threads create and destroy streams, and events between them.
TEST_P(Streams, ThreadsMakeAndDestroy) {
  const tuff_context shared = context();
  on_threads(8, [&](int mine) {
    const auto value = static_cast<float>(mine);
    for (int round = 0; round < 12; ++round) {
      OwnStream first = make_stream(shared), second = make_stream(shared);
      const OwnBuffer x(shared, 4 * kCount);
      fill(first, x, kCount, value);
      order(shared, first, second);
      first.destroy();
      add(second, x, x, x, kCount);
      EXPECT_EQ(read(second, x, kCount), std::vector<float>(kCount, 2 * value));
    }
  });
}

TEST_P(Streams, SynchronizingTheContextWaitsForAll) {
  const auto streams = make_streams(context(), 4);
  const Delay delay(context());
  for (int round = 0; round < 5; ++round) {
    std::vector<OwnBuffer> buffers;
    const Pinned out(context(), 4 * kCount);
    out.fill(0);
    for (size_t i = 0; i < streams.size(); ++i) {
      delay.on(streams[i], 2);
      buffers.emplace_back(context(), 4 * kCount);
      fill(streams[i], buffers.back(), kCount, static_cast<float>(i + 1));
      EXPECT_OK(tuff_copy_dtoh_async(streams[i], out.data() + i * kCount, buffers.back(), 0, 4 * kCount));
    }
    ASSERT_OK(tuff_synchronize(context()));
    for (size_t i = 0; i < 4 * kCount; ++i) ASSERT_EQ(out[i], static_cast<float>(i / kCount + 1)) << i;
  }
}

// Mapping waits for every stream.
TEST_P(Streams, MappingWaitsForAll) {
  const auto streams = make_streams(context(), 2);
  const Delay delay(context());
  tuff_alloc_desc desc{};
  desc.struct_size = sizeof desc;
  desc.flags = TUFF_ALLOC_HOST_VISIBLE;
  desc.bytes = 4 * kCount;
  tuff_buffer made = 0;
  ASSERT_OK(tuff_alloc_ex(context(), &desc, &made));
  const OwnBuffer visible(made);
  for (size_t round = 0; round < 6; ++round) {
    delay.on(streams[round % 2]);
    fill(streams[round % 2], visible, kCount, static_cast<float>(round));
    void* data = nullptr;
    ASSERT_OK(tuff_map(visible, &data));
    EXPECT_EQ(static_cast<float*>(data)[kCount - 1], static_cast<float>(round));
    ASSERT_OK(tuff_unmap(visible));
  }
}

// Every call that takes a context's handle as a stream also takes a stream's, with the same results.
TEST_P(Streams, EveryCallTakesOne) {
  const OwnStream own = make_stream(context());
  const auto run = [&](const BufferCall& row, tuff_stream stream) {
    std::vector<OwnBuffer> buffers;
    std::vector<tuff_buffer> operands;
    Random random(1);
    for (const std::vector<uint8_t>& bytes : row.contents([&] { return random.uniform(0.5f, 2); })) {
      operands.push_back(buffers.emplace_back(context(), kCallBytes));
      EXPECT_OK(tuff_copy_htod(stream, operands.back(), 0, bytes.data(), kCallBytes));
    }
    EXPECT_OK(row.call(stream, operands.data())) << row.function;
    std::vector<float> all;
    for (const OwnBuffer& buffer : buffers) {
      const std::vector<float> values = read(stream, buffer, kCallBytes / 4);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  for (const BufferCall& row : buffer_calls()) {
    if (!row.has_stream) continue;
    SCOPED_TRACE(row.function);
    expect_same_bits(run(row, own), run(row, context()));
  }
  if (!vulkan()) return;
  const OwnKernel kernel(context(), glsl(kSaxpy));
  const OwnBuffer x = buffer_of(context(), 64, 3), y = buffer_of(context(), 64, 1);
  const tuff_buffer buffers[] = {x, y};
  const Saxpy push{2, 64};
  ASSERT_OK(tuff_kernel_launch(own, kernel, buffers, 2, &push, sizeof push, 1, 1, 1));
  expect_all(own, y, 64, 7);
}

TEST_P(Streams, UnderAProfile) {
  const OwnContext profiled(GetParam());
  const auto streams = make_streams(profiled, 3);
  const OwnBuffer one = buffer_of(profiled, kCount, 1), x = buffer_of(profiled, kCount, 0);
  ASSERT_OK(tuff_profile_begin(profiled));
  for (size_t step = 0; step < 30; ++step) {
    add(streams[step % 3], x, one, x, kCount);
    order(profiled, streams[step % 3], streams[(step + 1) % 3]);
  }
  {
    const OwnGraph graph = capture(streams[0], [&] { multiply(streams[0], x, one, x, kCount); });
    for (int i = 0; i < 5; ++i) ASSERT_OK(tuff_graph_launch(streams[0], graph));
    add(streams[0], x, one, x, kCount);
  }
  ASSERT_OK(tuff_profile_end(profiled));
  expect_all(streams[0], x, kCount, 31);
  uint64_t length = 0;
  ASSERT_OK(tuff_profile_table(profiled, nullptr, 0, &length));
  std::string table(length + 1, '\0');
  ASSERT_OK(tuff_profile_table(profiled, table.data(), table.size(), nullptr));
  const size_t at = table.find("\nbinary ");
  ASSERT_NE(at, std::string::npos) << table;
  EXPECT_EQ(std::stoi(table.substr(at + 8)), 32) << table;
  EXPECT_NE(table.find("\ngraph"), std::string::npos) << table;
}

TEST_P(Streams, ThereIsABound) {
  if (reduced()) GTEST_SKIP() << "a thousand streams take the validation layers seconds";
  const OwnContext own(GetParam());
  auto streams = make_streams(own, 1023);  // in addition to the default stream
  tuff_stream more = 77;
  EXPECT_FAILS(tuff_stream_create(own, nullptr, &more), TUFF_ERROR_LIMIT_EXCEEDED, "tuff_stream_create", "streams");
  EXPECT_EQ(more, 77u);
  const OwnBuffer x(own, 4 * kCount);
  fill(streams.back(), x, kCount, 5);
  expect_all(streams.back(), x, kCount, 5);
  streams.pop_back();
  const OwnStream again = make_stream(own);
  expect_all(again, x, kCount, 5);
}
TUFF_ON_BACKENDS(Streams);

}  // namespace
}  // namespace tuff_test::stream_test
