// Invalid input to streams, events and copies from and to pinned memory: the status, and that there is no effect.
#include <functional>

#include "support/stream.hpp"
#include "support/tensor.hpp"

namespace tuff_test::stream_misuse_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kHandle = TUFF_ERROR_INVALID_HANDLE;
constexpr size_t kCount = 256;

class StreamMisuse : public OnBackend {};

TEST_P(StreamMisuse, NothingIsDestroyedTwice) {
  EXPECT_OK(tuff_stream_destroy(TUFF_NULL_HANDLE));
  EXPECT_OK(tuff_event_destroy(TUFF_NULL_HANDLE));
  EXPECT_OK(tuff_graph_destroy(TUFF_NULL_HANDLE));
  const tuff_stream stream = make_stream(context()).release();
  EXPECT_OK(tuff_stream_destroy(stream));
  EXPECT_FAILS(tuff_stream_destroy(stream), kHandle, "tuff_stream_destroy", "stream");
  const tuff_event event = make_event(context()).release();
  EXPECT_OK(tuff_event_destroy(event));
  EXPECT_FAILS(tuff_event_destroy(event), kHandle, "tuff_event_destroy", "event");
  EXPECT_FAILS(tuff_stream_destroy(context()), kArgument, "tuff_stream_destroy", "default");
  EXPECT_OK(tuff_synchronize(context()));
}

TEST_P(StreamMisuse, Handles) {
  const OwnStream stream = make_stream(context());
  const OwnEvent event = make_event(context());
  const OwnBuffer buffer = buffer_of(context(), kCount, 1);
  const tuff_stream ended = make_stream(context()).release();
  ASSERT_OK(tuff_stream_destroy(ended));
  for (const uint64_t handle : {uint64_t{0}, ended, uint64_t{event}, uint64_t{buffer}, stream ^ (uint64_t{1} << 33),
                                uint64_t{17}, ~uint64_t{0}}) {
    SCOPED_TRACE(handle);
    EXPECT_FAILS(tuff_synchronize(handle), kHandle, "tuff_synchronize", "stream");
    EXPECT_FAILS(tuff_event_record(handle, event), kHandle, "tuff_event_record", "stream");
    EXPECT_FAILS(tuff_stream_wait_event(handle, event), kHandle, "tuff_stream_wait_event", "stream");
    EXPECT_FAILS(tuff_graph_begin(handle), kHandle, "tuff_graph_begin", "stream");
    tuff_graph graph = 77;
    EXPECT_FAILS(tuff_graph_end(handle, &graph), kHandle, "tuff_graph_end", "stream");
    EXPECT_FAILS(tuff_graph_launch(handle, graph), kHandle, "tuff_graph_launch", "stream");
    EXPECT_FAILS(tuff_unary(handle, TUFF_F32, TUFF_UNARY_NEG, buffer, buffer, kCount), kHandle, "tuff_unary", "stream");
    EXPECT_EQ(graph, 77u);
    if (handle == 0) continue;
    EXPECT_FAILS(tuff_stream_destroy(handle), kHandle, "tuff_stream_destroy", "stream");
  }
  for (const uint64_t handle : {uint64_t{0}, uint64_t{stream}, uint64_t{context()}, uint64_t{buffer},
                                event ^ (uint64_t{1} << 33), ~uint64_t{0}}) {
    SCOPED_TRACE(handle);
    EXPECT_FAILS(tuff_event_record(stream, handle), kHandle, "tuff_event_record", "event");
    EXPECT_FAILS(tuff_stream_wait_event(stream, handle), kHandle, "tuff_stream_wait_event", "event");
    int32_t done = 5;
    EXPECT_FAILS(tuff_event_query(handle, &done), kHandle, "tuff_event_query", "event");
    EXPECT_EQ(done, 5);
    EXPECT_FAILS(tuff_event_wait(handle), kHandle, "tuff_event_wait", "event");
    double milliseconds = 5;
    EXPECT_FAILS(tuff_event_elapsed(handle, event, &milliseconds), kHandle, "tuff_event_elapsed", "start");
    EXPECT_EQ(milliseconds, 5);
    EXPECT_FAILS(tuff_graph_launch(stream, handle), kHandle, "tuff_graph_launch", "graph");
    EXPECT_FAILS(tuff_graph_bind(handle, buffer, buffer), kHandle, "tuff_graph_bind", "graph");
    if (handle == 0) continue;
    EXPECT_FAILS(tuff_event_destroy(handle), kHandle, "tuff_event_destroy", "event");
    EXPECT_FAILS(tuff_graph_destroy(handle), kHandle, "tuff_graph_destroy", "graph");
  }
  // A stream is not accepted as a context.
  uint64_t made = 77;
  EXPECT_FAILS(tuff_alloc(stream, 4, &made), kHandle, "tuff_alloc", "context");
  EXPECT_FAILS(tuff_stream_create(stream, nullptr, &made), kHandle, "tuff_stream_create", "context");
  EXPECT_FAILS(tuff_event_create(stream, nullptr, &made), kHandle, "tuff_event_create", "context");
  EXPECT_FAILS(tuff_context_destroy(stream), kHandle, "tuff_context_destroy", "context");
  EXPECT_EQ(made, 77u);
  expect_same_bits(read(stream, buffer, kCount), std::vector<float>(kCount, 1));
}

TEST_P(StreamMisuse, OfAnotherContext) {
  const OwnContext other(GetParam());
  const OwnStream mine = make_stream(context()), theirs = make_stream(other);
  const OwnEvent event = make_event(context(), 0), their_event = make_event(other, 0);
  const OwnBuffer x = buffer_of(context(), kCount, 1);
  const Pinned their_memory(other, kCount);
  EXPECT_FAILS(tuff_unary(theirs, TUFF_F32, TUFF_UNARY_NEG, x, x, kCount), kHandle, "tuff_unary", "input");
  EXPECT_FAILS(tuff_event_record(mine, their_event), kHandle, "tuff_event_record", "event");
  EXPECT_FAILS(tuff_event_record(theirs, event), kHandle, "tuff_event_record", "event");
  EXPECT_FAILS(tuff_stream_wait_event(mine, their_event), kHandle, "tuff_stream_wait_event", "event");
  EXPECT_FAILS(tuff_stream_wait_event(context(), their_event), kHandle, "tuff_stream_wait_event", "event");
  ASSERT_OK(tuff_event_record(mine, event));
  ASSERT_OK(tuff_event_record(theirs, their_event));
  double milliseconds = 5;
  EXPECT_FAILS(tuff_event_elapsed(event, their_event, &milliseconds), kHandle, "tuff_event_elapsed", "end");
  EXPECT_EQ(milliseconds, 5);
  EXPECT_FAILS(tuff_copy_htod_async(mine, x, 0, their_memory.data(), 16), kArgument, "tuff_copy_htod_async", "src");
  EXPECT_FAILS(tuff_copy_dtoh_async(mine, their_memory.data(), x, 0, 16), kArgument, "tuff_copy_dtoh_async", "dst");
  EXPECT_FAILS(tuff_copy_htod_async(theirs, x, 0, their_memory.data(), 16), kHandle, "tuff_copy_htod_async", "dst");
  expect_same_bits(read(mine, x, kCount), std::vector<float>(kCount, 1));
}

TEST_P(StreamMisuse, Arguments) {
  const OwnStream stream = make_stream(context());
  const OwnEvent event = make_event(context());
  tuff_stream_desc stream_desc{};
  stream_desc.struct_size = sizeof stream_desc;
  tuff_event_desc event_desc{};
  event_desc.struct_size = sizeof event_desc;
  uint64_t made = 77;
  EXPECT_FAILS(tuff_stream_create(context(), &stream_desc, nullptr), kArgument, "tuff_stream_create", "stream");
  EXPECT_FAILS(tuff_event_create(context(), &event_desc, nullptr), kArgument, "tuff_event_create", "event");
  EXPECT_FAILS(tuff_event_query(event, nullptr), kArgument, "tuff_event_query", "done");
  EXPECT_FAILS(tuff_event_elapsed(event, event, nullptr), kArgument, "tuff_event_elapsed", "milliseconds");
  for (const uint32_t flags : {2u, 3u, 0x80000000u}) {
    stream_desc.flags = event_desc.flags = flags;
    EXPECT_FAILS(tuff_stream_create(context(), &stream_desc, &made), kArgument, "tuff_stream_create", "flags");
    EXPECT_FAILS(tuff_event_create(context(), &event_desc, &made), kArgument, "tuff_event_create", "flags");
  }
  stream_desc.flags = 1;
  EXPECT_FAILS(tuff_stream_create(context(), &stream_desc, &made), kArgument, "tuff_stream_create", "flags");
  EXPECT_EQ(made, 77u);
}

TEST_P(StreamMisuse, HostMemoryOfAsyncCopies) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1);
  Pinned pinned(context(), kCount), freed(context(), kCount);
  const Pinned visible(context(), kCount, TUFF_ALLOC_HOST_VISIBLE);
  const float* const gone = freed.data();
  freed.buffer().free();
  pinned.fill(3);
  std::vector<float> ordinary(kCount, 2);
  const auto refused = [&](const char* what, const float* memory, uint64_t bytes) {
    SCOPED_TRACE(what);
    EXPECT_FAILS(tuff_copy_htod_async(stream, x, 0, memory, bytes), kArgument, "tuff_copy_htod_async", "src");
    EXPECT_FAILS(tuff_copy_dtoh_async(stream, const_cast<float*>(memory), x, 0, bytes), kArgument,
                 "tuff_copy_dtoh_async", "dst");
  };
  refused("ordinary memory", ordinary.data(), 16);
  refused("null", nullptr, 16);
  refused("host-visible, not pinned", visible.data(), 16);
  refused("freed", gone, 16);
  refused("ends behind it", pinned.data() + kCount - 1, 8);
  refused("begins before it", pinned.data() - 1, 8);
  refused("behind it", pinned.data() + kCount, 4);
  ASSERT_OK(tuff_synchronize(stream));
  expect_same_bits(read(stream, x, kCount), std::vector<float>(kCount, 1));
  expect_same_bits(pinned.values(), std::vector<float>(kCount, 3));
  EXPECT_EQ(ordinary[0], 2);
}

TEST_P(StreamMisuse, BuffersOfAsyncCopies) {
  const OwnStream stream = make_stream(context());
  const OwnBuffer x = buffer_of(context(), kCount, 1);
  const Pinned host(context(), 2 * kCount), mapped(context(), kCount);
  const struct {
    const char* what;
    tuff_buffer buffer;
    uint64_t offset, bytes;
    tuff_status status;
  } rows[] = {
      {"beyond the end", x, 4, 4 * kCount, kArgument},
      {"an offset beyond the end", x, 4 * kCount + 1, 1, kArgument},
      {"a sum beyond 2^64", x, ~uint64_t{0}, 4, kArgument},
      {"mapped", const_cast<Pinned&>(mapped).buffer(), 0, 16, kArgument},
      {"null", TUFF_NULL_HANDLE, 0, 16, kHandle},
      {"a stream", stream, 0, 16, kHandle},
  };
  for (const auto& [what, buffer, offset, bytes, status] : rows) {
    SCOPED_TRACE(what);
    EXPECT_FAILS(tuff_copy_htod_async(stream, buffer, offset, host.data(), bytes), status, "tuff_copy_htod_async",
                 "dst");
    EXPECT_FAILS(tuff_copy_dtoh_async(stream, host.data(), buffer, offset, bytes), status, "tuff_copy_dtoh_async",
                 "src");
  }
  ASSERT_OK(tuff_synchronize(stream));
  expect_same_bits(read(stream, x, kCount), std::vector<float>(kCount, 1));
}
TUFF_ON_BACKENDS(StreamMisuse);

}  // namespace
}  // namespace tuff_test::stream_misuse_test
