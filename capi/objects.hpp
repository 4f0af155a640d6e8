// What handles name, and how exported functions get at it.
//
// The table holds a reference on each context and buffer; a running call holds references on what it
// works with; a buffer holds one on its context, so that memory goes before the backend it came from,
// whichever thread is last.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "planning/buffer.hpp"
#include "planning/kept_vector.hpp"
#include "runtime/compute_backend.hpp"
#include "runtime/handle_table.hpp"
#include "runtime/profiled_backend.hpp"

namespace tuff::capi {

class Context;

class BufferObject final : public HandleObject {
 public:
  BufferObject(Ref<Context> context, Buffer buffer);
  ~BufferObject() override;

  const Ref<Context>& context() const { return context_; }
  const Buffer& buffer() const { return buffer_; }

  void* map();
  void unmap();

 private:
  friend class Context;

  Ref<Context> context_;  // destroyed after buffer_
  Buffer buffer_;
  std::atomic<bool> mapped_{false};  // through this handle

  // Under the context's mutex: its list of live buffers.
  BufferObject* previous_ = nullptr;
  BufferObject* next_ = nullptr;
  tuff_buffer handle_ = TUFF_NULL_HANDLE;
};

class KernelObject final : public HandleObject {
 public:
  KernelObject(Ref<Context> context, std::unique_ptr<CustomKernel> kernel)
      : context_(std::move(context)), kernel_(std::move(kernel)) {}

  const Ref<Context>& context() const { return context_; }
  CustomKernel& kernel() const { return *kernel_; }

 private:
  Ref<Context> context_;  // destroyed after kernel_
  std::unique_ptr<CustomKernel> kernel_;
};

class StreamObject final : public HandleObject {
 public:
  StreamObject(Ref<Context> context, std::unique_ptr<ComputeStream> stream);

  const Ref<Context>& context() const { return context_; }
  ComputeStream& stream();

 private:
  Ref<Context> context_;  // destroyed after stream_
  std::unique_ptr<ComputeStream> stream_;
  ProfiledStream profiled_;
};

class EventObject final : public HandleObject {
 public:
  EventObject(Ref<Context> context, std::unique_ptr<ComputeEvent> event)
      : context_(std::move(context)), event_(std::move(event)) {}

  const Ref<Context>& context() const { return context_; }
  ComputeEvent& event() const { return *event_; }

 private:
  Ref<Context> context_;  // destroyed after event_
  std::unique_ptr<ComputeEvent> event_;
};

class GraphObject final : public HandleObject {
 public:
  // Its graph is given to it before its handle is known: a capture that ends cannot be had again.
  explicit GraphObject(Ref<Context> context) : context_(std::move(context)) {}
  void hold(std::unique_ptr<ComputeGraph> graph) noexcept { graph_ = std::move(graph); }

  const Ref<Context>& context() const { return context_; }
  ComputeGraph& graph() const { return *graph_; }

 private:
  Ref<Context> context_;  // destroyed after graph_
  std::unique_ptr<ComputeGraph> graph_;
};

class Context final : public HandleObject {
 public:
  explicit Context(std::unique_ptr<ComputeBackend> backend)
      : profiled_(*backend),
        profiled_stream_(backend->default_stream(), profiled_.profile()),
        backend_(std::move(backend)),
        in_use_(backend_.get()),
        stream_in_use_(&backend_->default_stream()) {}
  ~Context() override;

  // What calls go to: the backend itself, or, while the context is profiled, what times them on their way to it.
  ComputeBackend& backend() const { return *in_use_.load(std::memory_order_acquire); }
  ComputeStream& default_stream() const { return *stream_in_use_.load(std::memory_order_acquire); }
  bool is_profiled() const { return in_use_.load(std::memory_order_acquire) == &profiled_; }
  void profile_begin();
  void profile_end();
  ProfiledBackend& profiled() { return profiled_; }
  uint32_t live_buffers() const;

  // Gives the buffer a handle. INVALID_HANDLE if the context was destroyed meanwhile.
  tuff_buffer adopt(std::unique_ptr<BufferObject> buffer);

  // The buffer's handle was removed from the table.
  void forget(BufferObject& buffer);

  // A live buffer of pinned memory that holds all of these bytes; empty if there is none.
  Ref<BufferObject> find_pinned(const void* memory, uint64_t bytes);

  // The same of kernels, streams, events and graphs: room for a handle, and then, of what was made meanwhile, the
  // handle. give() fails only where the context was destroyed meanwhile: by INVALID_HANDLE.
  class NewHandle {
   public:
    NewHandle(Context& context, HandleKind kind);
    ~NewHandle();
    NewHandle(const NewHandle&) = delete;
    NewHandle& operator=(const NewHandle&) = delete;
    uint64_t give(std::unique_ptr<HandleObject> object);

   private:
    Context& context_;
    const HandleKind kind_;
    const uint64_t handle_;
    bool given_ = false;
  };
  void forget(uint64_t handle);

  // The context's handle was removed from the table: waits for its work and frees its buffers.
  void close() noexcept;
  bool closed() const;

 private:
  void set_profiled(bool on);

  ProfiledBackend profiled_;  // destroyed after the backend, which may hold its profile
  ProfiledStream profiled_stream_;
  std::unique_ptr<ComputeBackend> backend_;
  std::atomic<ComputeBackend*> in_use_;
  std::atomic<ComputeStream*> stream_in_use_;
  std::mutex profile_mutex_;  // of beginning and ending
  mutable std::mutex mutex_;  // of what follows
  bool closed_ = false;
  bool late_ = false;  // the device did not finish in time when the context was closed
  BufferObject* first_ = nullptr;
  uint32_t live_buffers_ = 0;
  std::unordered_map<uint64_t, HandleKind> owned_;
  // By where they begin in the host's memory: buffers of pinned memory and views of them.
  std::multimap<const std::byte*, BufferObject*> pinned_;
};

// Throws INVALID_HANDLE: says what the handle is, and what is needed.
[[noreturn]] void fail_handle(std::string_view name, uint64_t handle, std::string_view needed);

inline Ref<Context> acquire_context(tuff_context handle) {
  auto context = handle_table().acquire<Context>(handle, HandleKind::context);
  if (!context) [[unlikely]] {
    fail_handle("context", handle, "context");
  }
  return context;
}

// A stream, or a context's default stream by the context's handle; with its context, for as long as this lives.
class StreamRef {
 public:
  StreamRef(tuff_stream handle, std::string_view name)
      : context_(handle_table().acquire<Context>(handle, HandleKind::context)) {
    if (context_) [[likely]] {
      stream_ = &context_->default_stream();
    } else {
      find(handle, name);
    }
  }

  const Ref<Context>& context() const { return object_ ? object_->context() : context_; }
  operator const Ref<Context>&() const { return context(); }
  ComputeStream* operator->() const { return stream_; }
  ComputeStream& operator*() const { return *stream_; }
  bool is_default() const { return !object_; }

 private:
  void find(tuff_stream handle, std::string_view name);

  Ref<Context> context_;      // of a default stream
  Ref<StreamObject> object_;  // of another
  ComputeStream* stream_ = nullptr;
};
inline StreamRef acquire_stream(tuff_stream handle, std::string_view name = "stream") {
  return StreamRef(handle, name);
}

inline Ref<BufferObject> acquire_buffer(tuff_buffer handle, std::string_view name) {
  auto buffer = handle_table().acquire<BufferObject>(handle, HandleKind::buffer);
  if (!buffer) [[unlikely]] {
    fail_handle(name, handle, "buffer");
  }
  return buffer;
}

[[noreturn]] void fail_other_context(std::string_view name);

// A buffer that has to be of this context.
inline Ref<BufferObject> acquire_buffer(const Ref<Context>& context, tuff_buffer handle, std::string_view name) {
  auto buffer = acquire_buffer(handle, name);
  if (buffer->context().get() != context.get()) [[unlikely]] {
    fail_other_context(name);
  }
  return buffer;
}

// The same of element i of an array, which messages name: a_array[3].
Ref<BufferObject> acquire_element(const Ref<Context>& context, tuff_buffer handle, std::string_view array, uint64_t i);

// An operand of an operation: TUFF_NULL_HANDLE becomes a null Buffer, for the operation's check to judge.
class Operand {
 public:
  Operand(const Ref<Context>& context, tuff_buffer handle, std::string_view name) {
    if (handle != TUFF_NULL_HANDLE) object_ = acquire_buffer(context, handle, name);
  }
  // Element i of an array of handles.
  Operand(const Ref<Context>& context, tuff_buffer handle, std::string_view array, uint64_t i) {
    if (handle != TUFF_NULL_HANDLE) object_ = acquire_element(context, handle, array, i);
  }
  operator const Buffer*() const { return object_ ? &object_->buffer() : nullptr; }

 private:
  Ref<BufferObject> object_;
};

// The operands of a call that come as arrays of handles.
class OperandArrays {
 public:
  // Room for so many arrays of so many handles.
  OperandArrays(const Ref<Context>& context, uint64_t arrays, uint64_t handles);

  // What these handles name, for as long as this object lives; `name` is the array's, for messages.
  std::span<const Buffer* const> add(const tuff_buffer* handles, uint64_t count, std::string_view name);

 private:
  const Ref<Context>& context_;
  KeptVector<Operand> operands_;
  KeptVector<const Buffer*> buffers_;
};

}  // namespace tuff::capi
