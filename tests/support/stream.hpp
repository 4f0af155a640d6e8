// Owners of streams, events and graphs, pinned memory, and small operations for tests of ordering.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "support/harness.hpp"

namespace tuff_test {

template <tuff_status (*Destroy)(uint64_t)>
class OwnHandle {
 public:
  OwnHandle() = default;
  explicit OwnHandle(uint64_t handle) : handle_(handle) {}
  OwnHandle(OwnHandle&& other) noexcept : handle_(other.release()) {}
  OwnHandle& operator=(OwnHandle&& other) noexcept {
    if (this != &other) {
      destroy();
      handle_ = other.release();
    }
    return *this;
  }
  ~OwnHandle() { destroy(); }
  operator uint64_t() const { return handle_; }  // NOLINT(google-explicit-constructor)
  uint64_t release() { return std::exchange(handle_, TUFF_NULL_HANDLE); }
  void destroy() { EXPECT_OK(Destroy(release())); }  // nothing for TUFF_NULL_HANDLE

 private:
  uint64_t handle_ = TUFF_NULL_HANDLE;
};
using OwnStream = OwnHandle<tuff_stream_destroy>;
using OwnEvent = OwnHandle<tuff_event_destroy>;
using OwnGraph = OwnHandle<tuff_graph_destroy>;

inline OwnStream make_stream(tuff_context context, const char* name = nullptr) {
  tuff_stream_desc desc{};
  desc.struct_size = sizeof desc;
  desc.name = name;
  tuff_stream stream = TUFF_NULL_HANDLE;
  EXPECT_OK(tuff_stream_create(context, name != nullptr ? &desc : nullptr, &stream));
  return OwnStream(stream);
}
inline std::vector<OwnStream> make_streams(tuff_context context, size_t count) {
  std::vector<OwnStream> streams;
  for (size_t i = 0; i < count; ++i) streams.push_back(make_stream(context));
  return streams;
}

inline OwnEvent make_event(tuff_context context, uint32_t flags = TUFF_EVENT_NO_TIMING) {
  tuff_event_desc desc{};
  desc.struct_size = sizeof desc;
  desc.flags = flags;
  tuff_event event = TUFF_NULL_HANDLE;
  EXPECT_OK(tuff_event_create(context, &desc, &event));
  return OwnEvent(event);
}

// Orders later calls on `after` behind everything called on `before` so far. The event is destroyed on return.
inline void order(tuff_context context, tuff_stream before, tuff_stream after) {
  const OwnEvent event = make_event(context);
  EXPECT_OK(tuff_event_record(before, event));
  EXPECT_OK(tuff_stream_wait_event(after, event));
}

// Captures what body() calls on the stream.
template <typename Body>
OwnGraph capture(tuff_stream stream, Body body) {
  EXPECT_OK(tuff_graph_begin(stream));
  body();
  tuff_graph graph = TUFF_NULL_HANDLE;
  EXPECT_OK(tuff_graph_end(stream, &graph));
  return OwnGraph(graph);
}

// Pinned memory for some floats, mapped for as long as the object lives.
class Pinned {
 public:
  Pinned(tuff_context context, size_t count, uint32_t flags = TUFF_ALLOC_HOST_PINNED) : count_(count) {
    tuff_alloc_desc desc{};
    desc.struct_size = sizeof desc;
    desc.flags = flags;
    desc.bytes = count * sizeof(float);
    tuff_buffer buffer = TUFF_NULL_HANDLE;
    EXPECT_OK(tuff_alloc_ex(context, &desc, &buffer));
    buffer_ = OwnBuffer(buffer);
    void* data = nullptr;
    EXPECT_OK(tuff_map(buffer, &data));
    data_ = static_cast<float*>(data);
  }
  float* data() const { return data_; }
  size_t bytes() const { return count_ * sizeof(float); }
  float& operator[](size_t i) const { return data_[i]; }
  void fill(float value) const { std::fill(data_, data_ + count_, value); }
  std::vector<float> values() const { return {data_, data_ + count_}; }
  OwnBuffer& buffer() { return buffer_; }

 private:
  OwnBuffer buffer_;
  size_t count_;
  float* data_ = nullptr;
};

// A buffer of `count` times `value`, complete before any stream uses it.
inline OwnBuffer buffer_of(tuff_context context, size_t count, float value) {
  OwnBuffer buffer(context, count * sizeof(float));
  const std::vector<float> values(count, value);
  EXPECT_OK(tuff_copy_htod(context, buffer, 0, values.data(), count * sizeof(float)));
  return buffer;
}

inline std::vector<float> read(tuff_stream stream, tuff_buffer buffer, size_t count) {
  std::vector<float> values(count);
  EXPECT_OK(tuff_copy_dtoh(stream, values.data(), buffer, 0, count * sizeof(float)));
  return values;
}

inline void fill(tuff_stream stream, tuff_buffer buffer, size_t count, float value) {
  EXPECT_OK(tuff_fill(stream, buffer, 0, count * sizeof(float), &value, sizeof value));
}
inline void add(tuff_stream stream, tuff_buffer a, tuff_buffer b, tuff_buffer output, size_t count) {
  EXPECT_OK(tuff_binary(stream, TUFF_F32, TUFF_BINARY_ADD, a, b, output, count));
}
inline void multiply(tuff_stream stream, tuff_buffer a, tuff_buffer b, tuff_buffer output, size_t count) {
  EXPECT_OK(tuff_binary(stream, TUFF_F32, TUFF_BINARY_MUL, a, b, output, count));
}

// Work that takes a moment and leaves its operand unchanged: repeated squaring of an identity matrix.
class Delay {
 public:
  explicit Delay(tuff_context context) {
    std::vector<float> identity(kSize * kSize);
    for (size_t i = 0; i < kSize; ++i) identity[i * kSize + i] = 1;
    for (OwnBuffer* buffer : {&a_, &b_}) {
      *buffer = OwnBuffer(context, identity.size() * sizeof(float));
      EXPECT_OK(tuff_copy_htod(context, *buffer, 0, identity.data(), identity.size() * sizeof(float)));
    }
  }
  void on(tuff_stream stream, int products = 6) const {
    for (int i = 0; i < products; ++i) {
      const OwnBuffer &from = i % 2 == 0 ? a_ : b_, &to = i % 2 == 0 ? b_ : a_;
      EXPECT_OK(tuff_gemm(stream, TUFF_F32, TUFF_NO_TRANS, TUFF_NO_TRANS, kSize, kSize, kSize, 1, from, kSize, from,
                          kSize, 0, to, kSize));
    }
  }

 private:
  static constexpr size_t kSize = 128;
  OwnBuffer a_, b_;
};

}  // namespace tuff_test
