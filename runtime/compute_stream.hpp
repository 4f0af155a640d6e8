// A stream of operations on a device. Calls on a stream take effect in the order in which they are made.
//
// Every method may be called from any thread; the backend locks where it has to. Methods report errors by throwing
// tuff::Error, before anything is recorded. Streams, events and graphs must be destroyed before their backend; work
// that was called on them still runs to completion.
#pragma once

#include <cstdint>
#include <memory>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "tuff/tuff.h"

namespace tuff {

// A caller's own kernel. The backend that created it outlives it. It may be destroyed while launches of it are running.
class CustomKernel {
 public:
  virtual ~CustomKernel() = default;
  CustomKernel() = default;
  CustomKernel(const CustomKernel&) = delete;
  CustomKernel& operator=(const CustomKernel&) = delete;

  virtual void describe(tuff_kernel_properties& properties) const = 0;  // all fields but struct_size
};

// A point in a stream.
class ComputeEvent {
 public:
  virtual ~ComputeEvent() = default;
  ComputeEvent() = default;
  ComputeEvent(const ComputeEvent&) = delete;
  ComputeEvent& operator=(const ComputeEvent&) = delete;

  virtual bool query() = 0;  // true if it has happened or was never recorded
  virtual void wait() = 0;
  // The time from this event to `end`, in milliseconds. Waits for both.
  virtual double elapsed(ComputeEvent& end) = 0;
};

// A captured sequence of operations that can be launched repeatedly.
class ComputeGraph {
 public:
  virtual ~ComputeGraph() = default;
  ComputeGraph() = default;
  ComputeGraph(const ComputeGraph&) = delete;
  ComputeGraph& operator=(const ComputeGraph&) = delete;

  virtual void bind(const Buffer& captured, const Buffer& replacement) = 0;
};

// Why a capturing stream refuses a call.
namespace in_capture {
inline constexpr const char* kSynchronize = "its operations are not executed, so there is nothing to wait for";
inline constexpr const char* kEvent = "events cannot be captured";
inline constexpr const char* kLaunch = "a graph's launch is not captured: call its operations instead";
inline constexpr const char* kUpload = "host memory is read only during this call (use tuff_copy_htod_async)";
inline constexpr const char* kDownload = "there is no result to read yet (use tuff_copy_dtoh_async)";
inline constexpr const char* kBegin = "stream is already capturing, needs tuff_graph_end first";
inline constexpr const char* kNotBegun = "stream is not capturing, needs tuff_graph_begin first";
}  // namespace in_capture

class ComputeStream {
 public:
  virtual ~ComputeStream() = default;
  ComputeStream() = default;
  ComputeStream(const ComputeStream&) = delete;
  ComputeStream& operator=(const ComputeStream&) = delete;

  virtual void synchronize() = 0;
  virtual void record(ComputeEvent& event) = 0;
  virtual void wait(ComputeEvent& event) = 0;

  virtual bool capturing() const = 0;
  virtual void begin_graph() = 0;
  virtual std::unique_ptr<ComputeGraph> end_graph() = 0;
  virtual void launch(ComputeGraph& graph) = 0;

  virtual void copy_htod(const Buffer& dst, uint64_t offset, const void* src, uint64_t bytes) = 0;
  virtual void copy_dtoh(void* dst, const Buffer& src, uint64_t offset, uint64_t bytes) = 0;
  virtual void copy_dtod(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                         uint64_t bytes) = 0;
  // `pattern` holds pattern_bytes bytes (1, 2, 4, 8 or 16); offset and bytes are multiples of pattern_bytes.
  virtual void fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern,
                    uint64_t pattern_bytes) = 0;
  // Copies between device memory and pinned memory, in stream order. The host does not wait.
  virtual void copy_async(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                          uint64_t bytes) = 0;
  virtual void run(const Operation& operation) = 0;
  virtual void launch(CustomKernel& kernel, const LaunchArgs& args) = 0;
};

}  // namespace tuff
