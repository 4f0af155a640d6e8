// Events: what they mean, when they are complete, and the time between them.
#include <chrono>
#include <thread>

#include "support/stream.hpp"
#include "support/tensor.hpp"

namespace tuff_test::event_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
constexpr size_t kCount = 1000;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

class Events : public OnBackend {
 protected:
  static bool done(tuff_event event) {
    int32_t done = -1;
    EXPECT_OK(tuff_event_query(event, &done));
    EXPECT_TRUE(done == 0 || done == 1) << done;
    return done != 0;
  }
  static double elapsed(tuff_event start, tuff_event end) {
    double milliseconds = -1e9;
    EXPECT_OK(tuff_event_elapsed(start, end, &milliseconds));
    return milliseconds;
  }
};

// Recorded events are submitted eventually, even without other work.
TEST_P(Events, AloneTheyAreSubmittedToo) {
  if (!vulkan()) GTEST_SKIP() << "the host backend submits nothing";
  const OwnEvent event = make_event(context(), 0);
  const uint64_t before = stats_of(context()).submissions;
  for (int i = 0; i < 2000; ++i) ASSERT_OK(tuff_event_record(context(), event));
  EXPECT_GT(stats_of(context()).submissions, before + 10);
  EXPECT_OK(tuff_event_wait(event));
}

TEST_P(Events, NeverRecorded) {
  const OwnEvent event = make_event(context(), 0), recorded = make_event(context(), 0);
  EXPECT_TRUE(done(event));
  EXPECT_OK(tuff_event_wait(event));
  EXPECT_OK(tuff_stream_wait_event(context(), event));
  ASSERT_OK(tuff_event_record(context(), recorded));
  double milliseconds = 5;
  EXPECT_FAILS(tuff_event_elapsed(event, recorded, &milliseconds), kArgument, "tuff_event_elapsed", "start");
  EXPECT_FAILS(tuff_event_elapsed(recorded, event, &milliseconds), kArgument, "tuff_event_elapsed", "end");
  EXPECT_EQ(milliseconds, 5);
}

TEST_P(Events, WithoutTiming) {
  const OwnEvent timed = make_event(context(), 0), plain = make_event(context());
  ASSERT_OK(tuff_event_record(context(), timed));
  ASSERT_OK(tuff_event_record(context(), plain));
  double milliseconds = 5;
  EXPECT_FAILS(tuff_event_elapsed(plain, timed, &milliseconds), kArgument, "tuff_event_elapsed", "start");
  EXPECT_FAILS(tuff_event_elapsed(timed, plain, &milliseconds), kArgument, "tuff_event_elapsed", "end");
  EXPECT_EQ(milliseconds, 5);
  EXPECT_OK(tuff_event_wait(plain));
  EXPECT_TRUE(done(plain));
}

// An event is not complete before its work is, and repeated queries alone suffice for it to complete.
TEST_P(Events, QueriedUntilItHasHappened) {
  const OwnStream stream = make_stream(context());
  const OwnEvent event = make_event(context());
  const Delay delay(context());
  const Pinned out(context(), kCount);
  const OwnBuffer x(context(), 4 * kCount);
  bool seen_before = false;
  for (int products = 8; products <= 4096 && !seen_before; products *= 2) {
    const auto value = static_cast<float>(products);
    delay.on(stream, products);
    fill(stream, x, kCount, value);
    EXPECT_OK(tuff_copy_dtoh_async(stream, out.data(), x, 0, out.bytes()));
    ASSERT_OK(tuff_event_record(stream, event));
    const auto begin = Clock::now();
    while (!done(event)) {
      seen_before = true;
      ASSERT_LT(milliseconds_since(begin), 60'000) << "the device has not begun the work";
      std::this_thread::yield();
    }
    EXPECT_EQ(out[kCount - 1], value);
    if (!vulkan()) break;  // there, a call is complete when it returns
  }
  EXPECT_EQ(seen_before, vulkan());
}

TEST_P(Events, WaitedFor) {
  const OwnStream stream = make_stream(context());
  const OwnEvent event = make_event(context());
  const Delay delay(context());
  const Pinned out(context(), kCount);
  const OwnBuffer x(context(), 4 * kCount);
  for (int round = 1; round <= 8; ++round) {
    const auto value = static_cast<float>(round);
    delay.on(stream, 2);
    fill(stream, x, kCount, value);
    EXPECT_OK(tuff_copy_dtoh_async(stream, out.data(), x, 0, out.bytes()));
    ASSERT_OK(tuff_event_record(stream, event));
    delay.on(stream, 2);  // not waited for
    ASSERT_OK(tuff_event_wait(event));
    EXPECT_TRUE(done(event));
    expect_same_bits(out.values(), std::vector<float>(kCount, value));
  }
  ASSERT_OK(tuff_synchronize(stream));
}

// Streams with no calls, or whose work completed long ago.
TEST_P(Events, OfIdleStreams) {
  const OwnStream stream = make_stream(context());
  const OwnEvent first = make_event(context(), 0), second = make_event(context(), 0);
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK(tuff_event_record(stream, first));
    ASSERT_OK(tuff_stream_wait_event(stream, first));  // its own event
    ASSERT_OK(tuff_event_record(stream, second));
    ASSERT_OK(tuff_event_wait(second));
    EXPECT_TRUE(done(first));
    EXPECT_GE(elapsed(first, second), 0);
    ASSERT_OK(tuff_synchronize(stream));
  }
}

// Two streams that wait for each other's earlier work.
TEST_P(Events, Crosswise) {
  const auto streams = make_streams(context(), 2);
  const OwnEvent events[2] = {make_event(context()), make_event(context())};
  const OwnBuffer x[2] = {buffer_of(context(), kCount, 1), buffer_of(context(), kCount, 10)};
  const OwnBuffer sums[2] = {buffer_of(context(), kCount, 0), buffer_of(context(), kCount, 0)};
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < 2; ++i) {
      add(streams[i], x[i], x[i], x[i], kCount);
      ASSERT_OK(tuff_event_record(streams[i], events[i]));
    }
    for (size_t i = 0; i < 2; ++i) ASSERT_OK(tuff_stream_wait_event(streams[i], events[1 - i]));
    for (size_t i = 0; i < 2; ++i) {
      add(streams[i], x[0], x[1], sums[i], kCount);
      ASSERT_OK(tuff_event_record(streams[i], events[i]));
    }
    for (size_t i = 0; i < 2; ++i) ASSERT_OK(tuff_stream_wait_event(streams[i], events[1 - i]));  // before x changes
  }
  const float expected = 11.0f * static_cast<float>(1 << 20);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(read(streams[i], sums[i], kCount), std::vector<float>(kCount, expected));
}

// One event passed back and forth: a stream that waited for it waits for what it meant at that time.
TEST_P(Events, RecordedAgain) {
  const auto streams = make_streams(context(), 3);
  const OwnEvent event = make_event(context());
  const OwnBuffer x = buffer_of(context(), kCount, 0), one = buffer_of(context(), kCount, 1);
  for (size_t step = 0; step < 150; ++step) {
    ASSERT_OK(tuff_stream_wait_event(streams[step % 3], event));
    add(streams[step % 3], x, one, x, kCount);
    ASSERT_OK(tuff_event_record(streams[step % 3], event));
  }
  ASSERT_OK(tuff_event_wait(event));
  EXPECT_EQ(read(streams[0], x, kCount), std::vector<float>(kCount, 150));

  // Recorded again, after much more work, by the time that the waiting stream executes.
  const Delay delay(context());
  const OwnBuffer y(context(), 4 * kCount);
  fill(streams[0], y, kCount, 4);
  ASSERT_OK(tuff_event_record(streams[0], event));
  ASSERT_OK(tuff_stream_wait_event(streams[1], event));
  delay.on(streams[0]);
  ASSERT_OK(tuff_event_record(streams[0], event));
  add(streams[1], y, y, y, kCount);
  EXPECT_EQ(read(streams[1], y, kCount), std::vector<float>(kCount, 8));
  ASSERT_OK(tuff_event_wait(event));
}

TEST_P(Events, DestroyedWhileAStreamWaits) {
  const auto streams = make_streams(context(), 2);
  const Delay delay(context());
  for (int round = 0; round < 5; ++round) {
    const OwnBuffer x(context(), 4 * kCount);
    OwnEvent event = make_event(context());
    delay.on(streams[0]);
    fill(streams[0], x, kCount, 3);
    ASSERT_OK(tuff_event_record(streams[0], event));
    ASSERT_OK(tuff_stream_wait_event(streams[1], event));
    event.destroy();
    add(streams[1], x, x, x, kCount);
    EXPECT_EQ(read(streams[1], x, kCount), std::vector<float>(kCount, 6));
  }
}

// Its stream is destroyed by the time that others wait for it.
TEST_P(Events, OutlivesItsStream) {
  const Delay delay(context());
  const OwnBuffer x(context(), 4 * kCount);
  const OwnEvent event = make_event(context(), 0), later = make_event(context(), 0);
  OwnStream stream = make_stream(context());
  delay.on(stream);
  fill(stream, x, kCount, 3);
  ASSERT_OK(tuff_event_record(stream, event));
  stream.destroy();
  ASSERT_OK(tuff_stream_wait_event(context(), event));
  add(context(), x, x, x, kCount);
  EXPECT_EQ(read(context(), x, kCount), std::vector<float>(kCount, 6));
  EXPECT_TRUE(done(event));
  ASSERT_OK(tuff_event_record(context(), later));
  EXPECT_GE(elapsed(event, later), 0);
}

TEST_P(Events, Elapsed) {
  const OwnStream stream = make_stream(context()), other = make_stream(context());
  const Delay delay(context());
  const OwnEvent events[] = {make_event(context(), 0), make_event(context(), 0), make_event(context(), 0),
                             make_event(context(), 0)};
  // An interval without work is shorter than one with work; but the device may be delayed in it, so this is repeated.
  bool less = false;
  for (int attempt = 0; attempt < 20 && !less; ++attempt) {
    const auto begin = Clock::now();
    ASSERT_OK(tuff_event_record(stream, events[0]));
    delay.on(stream, 10);
    ASSERT_OK(tuff_event_record(stream, events[1]));
    ASSERT_OK(tuff_event_record(stream, events[2]));
    ASSERT_OK(tuff_stream_wait_event(other, events[2]));
    delay.on(other, 2);
    ASSERT_OK(tuff_event_record(other, events[3]));
    const double work = elapsed(events[0], events[1]), nothing = elapsed(events[1], events[2]),
                 rest = elapsed(events[2], events[3]), all = elapsed(events[0], events[3]);
    const double wall = milliseconds_since(begin);
    EXPECT_GT(work, 0);
    EXPECT_GE(nothing, 0);
    EXPECT_GE(rest, 0);
    EXPECT_NEAR(all, work + nothing + rest, 1e-6 * all + 1e-5);
    EXPECT_LE(all, wall + 1) << "milliseconds, that the host has seen pass";
    EXPECT_EQ(elapsed(events[1], events[1]), 0);
    EXPECT_EQ(elapsed(events[1], events[0]), -work);
    less = nothing < work || !vulkan();
  }
  EXPECT_TRUE(less);
}

// Recording, waiting and querying leak nothing.
TEST_P(Events, SteadyState) {
  const auto streams = make_streams(context(), 2);
  const OwnBuffer x = buffer_of(context(), kCount, 1);
  const auto round = [&] {
    for (int i = 0; i < 100; ++i) {
      const OwnEvent event = make_event(context(), i % 2 == 0 ? 0 : TUFF_EVENT_NO_TIMING);
      fill(streams[0], x, kCount, 1);
      ASSERT_OK(tuff_event_record(streams[0], event));
      ASSERT_OK(tuff_stream_wait_event(streams[1], event));
      fill(streams[1], x, kCount, 2);
      order(context(), streams[1], streams[0]);
      if (i % 20 != 19) continue;
      ASSERT_OK(tuff_event_wait(event));
      EXPECT_TRUE(done(event));
    }
    ASSERT_OK(tuff_synchronize(context()));
  };
  for (int i = 0; i < 3; ++i) round();
  const tuff_stats before = stats_of(context());
  for (int i = 0; i < 5; ++i) round();
  const tuff_stats after = stats_of(context());
  EXPECT_EQ(after.vulkan_objects_created, before.vulkan_objects_created);
  EXPECT_EQ(after.bytes_reserved, before.bytes_reserved);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
}
TUFF_ON_BACKENDS(Events);

}  // namespace
}  // namespace tuff_test::event_test
