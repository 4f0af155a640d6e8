// An order of operations on a device: what is called on a stream takes effect in the order of the calls.
//
// Every method may be called from any thread; the backend serialises what needs it. Methods report errors by throwing
// tuff::Error, before anything is recorded. A stream, an event and a graph go before the backend they came from; what
// they were asked to do goes on to its end.
#pragma once

#include <cstdint>
#include <memory>

#include "planning/buffer.hpp"
#include "planning/operation.hpp"
#include "runtime/custom/custom_kernel.hpp"
#include "tuff/tuff.h"

namespace tuff {

// A kernel that a caller brought, made by a backend, which outlives it. It may go while its launches are running.
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

  virtual bool query() = 0;  // has happened, or was never recorded
  virtual void wait() = 0;
  // From this event to that one, in milliseconds; waits for both.
  virtual double elapsed(ComputeEvent& end) = 0;
};

// Operations that were called once, to be carried out again and again.
class ComputeGraph {
 public:
  virtual ~ComputeGraph() = default;
  ComputeGraph() = default;
  ComputeGraph(const ComputeGraph&) = delete;
  ComputeGraph& operator=(const ComputeGraph&) = delete;

  virtual void bind(const Buffer& captured, const Buffer& replacement) = 0;
};

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
  // pattern holds pattern_bytes bytes: 1, 2, 4, 8 or 16; offset and bytes are multiples of it.
  virtual void fill(const Buffer& dst, uint64_t offset, uint64_t bytes, const void* pattern,
                    uint64_t pattern_bytes) = 0;
  // Between device memory and pinned memory, in order with the rest; the host does not wait.
  virtual void copy_async(const Buffer& dst, uint64_t dst_offset, const Buffer& src, uint64_t src_offset,
                          uint64_t bytes) = 0;
  virtual void run(const Operation& operation) = 0;
  virtual void launch(CustomKernel& kernel, const LaunchArgs& args) = 0;
};

}  // namespace tuff
