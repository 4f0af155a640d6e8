// The objects behind handles, and how exported functions access them.
//
// The handle table holds a reference to each context and buffer. A running call holds references to the objects it
// uses. A buffer holds a reference to its context, so that memory is freed before the backend it came from, whichever
// thread releases the last reference.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "kernels/expression/expression.hpp"
#include "planning/buffer.hpp"
#include "planning/kept_vector.hpp"
#include "platform/mutex.hpp"
#include "runtime/compute_backend.hpp"
#include "runtime/custom/extension.hpp"
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

  // Links of the context's list of live buffers; guarded by the context's mutex.
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

// A registered operation.
class OpObject final : public HandleObject {
 public:
  OpObject(Ref<Context> context, std::shared_ptr<const Extension> operation, std::unique_ptr<CustomKernel> kernel,
           const tuff_kernel_properties& properties)
      : context_(std::move(context)),
        operation_(std::move(operation)),
        kernel_(std::move(kernel)),
        workgroup_size_{properties.workgroup_size[0], properties.workgroup_size[1], properties.workgroup_size[2]} {}

  const Ref<Context>& context() const { return context_; }
  const Extension& operation() const { return *operation_; }
  CustomKernel& kernel() const { return *kernel_; }
  const std::array<uint32_t, 3>& workgroup_size() const { return workgroup_size_; }

 private:
  Ref<Context> context_;  // destroyed after kernel_
  std::shared_ptr<const Extension> operation_;
  std::unique_ptr<CustomKernel> kernel_;
  std::array<uint32_t, 3> workgroup_size_;
};

class ExprObject final : public HandleObject {
 public:
  ExprObject(Ref<Context> context, std::shared_ptr<const Expression> expression)
      : context_(std::move(context)), expression_(std::move(expression)) {}

  const Ref<Context>& context() const { return context_; }
  const Expression& expression() const { return *expression_; }

 private:
  Ref<Context> context_;
  std::shared_ptr<const Expression> expression_;
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
  // The object is allocated first and gets its graph later: ending a capture cannot be repeated after a failed
  // allocation.
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

  // The target of calls: the backend itself, or the wrapper that times them while the context is profiled.
  ComputeBackend& backend() const { return *in_use_.load(std::memory_order_acquire); }
  ComputeStream& default_stream() const { return *stream_in_use_.load(std::memory_order_acquire); }
  bool is_profiled() const { return in_use_.load(std::memory_order_acquire) == &profiled_; }
  void profile_begin();
  void profile_end();
  ProfiledBackend& profiled() { return profiled_; }
  uint32_t live_buffers() const;

  // Gives the buffer a handle. Throws INVALID_HANDLE if the context has been destroyed in the meantime.
  tuff_buffer adopt(std::unique_ptr<BufferObject> buffer);

  // To be called once the buffer's handle is removed from the table.
  void forget(BufferObject& buffer);

  // Finds a live buffer of pinned memory that contains all of these bytes; empty if there is none.
  Ref<BufferObject> find_pinned(const void* memory, uint64_t bytes);

  // Handles for kernels, streams, events, graphs and expressions: reserves one first, then gives it to the object
  // created in the meantime. give() fails only with INVALID_HANDLE, if the context has been destroyed in between.
  class NewHandle {
   public:
    NewHandle(Context& context, HandleKind kind);
    ~NewHandle();
    NewHandle(const NewHandle&) = delete;
    NewHandle& operator=(const NewHandle&) = delete;
    uint64_t give(std::unique_ptr<HandleObject> object);
    // Also gives the context its name. Throws INVALID_ARGUMENT if another operation has it.
    uint64_t give_op(std::unique_ptr<OpObject> object);

   private:
    Context& context_;
    const HandleKind kind_;
    const uint64_t handle_;
    bool given_ = false;
  };
  void forget(uint64_t handle);

  // Operations by name. check_op_name() throws INVALID_ARGUMENT if there is one, find_op() if there is none.
  void check_op_name(const std::string& name) const;
  tuff_op find_op(std::string_view name) const;
  bool has_op(std::string_view name) const;
  std::string list_ops() const;  // their signatures, in the order of their names
  void forget_op(const std::string& name, tuff_op op);

  // Moves live buffers together, by one step.
  void compact(CompactionStep& step);

  // To be called once the context's handle is removed from the table: waits for its work and frees its buffers.
  void close() noexcept;
  bool closed() const;

 private:
  void set_profiled(bool on);

  ProfiledBackend profiled_;  // destroyed after the backend, which may hold its profile
  ProfiledStream profiled_stream_;
  std::unique_ptr<ComputeBackend> backend_;
  std::atomic<ComputeBackend*> in_use_;
  std::atomic<ComputeStream*> stream_in_use_;
  Mutex profile_mutex_{LockRank::profile_calls};  // serialises profile_begin and profile_end
  mutable Mutex mutex_{LockRank::context};        // guards the members below
  bool closed_ = false;
  bool late_ = false;  // the device did not finish in time when the context was closed
  BufferObject* first_ = nullptr;
  uint32_t live_buffers_ = 0;
  std::unordered_map<uint64_t, HandleKind> owned_;
  struct NamedOp {
    tuff_op handle;
    std::string signature;
  };
  std::map<std::string, NamedOp, std::less<>> ops_;
  // Buffers of pinned memory and views of them, by host address.
  std::multimap<const std::byte*, BufferObject*> pinned_;
};

// Throws INVALID_HANDLE with a message that says what the handle is and what is needed.
[[noreturn]] void fail_handle(std::string_view name, uint64_t handle, std::string_view needed);

inline Ref<Context> acquire_context(tuff_context handle) {
  auto context = handle_table().acquire<Context>(handle, HandleKind::context);
  if (!context) [[unlikely]] {
    fail_handle("context", handle, "context");
  }
  return context;
}

// A stream, or a context's default stream, named by the context's handle. Keeps its context alive.
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

  Ref<Context> context_;      // for a default stream
  Ref<StreamObject> object_;  // for any other stream
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

// A buffer that must belong to this context.
inline Ref<BufferObject> acquire_buffer(const Ref<Context>& context, tuff_buffer handle, std::string_view name) {
  auto buffer = acquire_buffer(handle, name);
  if (buffer->context().get() != context.get()) [[unlikely]] {
    fail_other_context(name);
  }
  return buffer;
}

// The same for element i of an array, which messages name as in a_array[3].
Ref<BufferObject> acquire_element(const Ref<Context>& context, tuff_buffer handle, std::string_view array, uint64_t i);

// An operand of an operation. TUFF_NULL_HANDLE becomes a null Buffer, which the operation's check accepts or rejects.
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

// Operands that a call passes as arrays of handles.
class OperandArrays {
 public:
  // Reserves room for `arrays` arrays of `handles` handles each.
  OperandArrays(const Ref<Context>& context, uint64_t arrays, uint64_t handles);

  // The buffers of these handles, valid as long as this object lives. Messages call the array `name`.
  std::span<const Buffer* const> add(const tuff_buffer* handles, uint64_t count, std::string_view name);

 private:
  const Ref<Context>& context_;
  KeptVector<Operand> operands_;
  KeptVector<const Buffer*> buffers_;
};

}  // namespace tuff::capi
