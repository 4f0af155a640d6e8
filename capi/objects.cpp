#include "capi/objects.hpp"

#include <fmt/format.h>

#include <new>

#include "runtime/graveyard.hpp"
#include "runtime/log.hpp"
#include "runtime/status.hpp"

namespace tuff::capi {

void fail_handle(std::string_view name, uint64_t handle, std::string_view needed) {
  fail(TUFF_ERROR_INVALID_HANDLE, "{} is {}, needs a live {}", name, handle_table().describe(handle), needed);
}

void fail_other_context(std::string_view name) {
  fail(TUFF_ERROR_INVALID_HANDLE, "{} belongs to another context", name);
}

Ref<BufferObject> acquire_element(const Ref<Context>& context, tuff_buffer handle, std::string_view array, uint64_t i) {
  auto buffer = handle_table().acquire<BufferObject>(handle, HandleKind::buffer);
  if (!buffer) fail_handle(fmt::format("{}[{}]", array, i), handle, "buffer");
  if (buffer->context().get() != context.get()) fail_other_context(fmt::format("{}[{}]", array, i));
  return buffer;
}

BufferObject::BufferObject(Ref<Context> context, Buffer buffer)
    : context_(std::move(context)), buffer_(std::move(buffer)) {}

BufferObject::~BufferObject() {
  if (!mapped_.load(std::memory_order_relaxed)) return;
  try {
    unmap();
  } catch (const std::exception& error) {
    log(TUFF_LOG_WARNING, "freeing a mapped buffer: {}", error.what());
  }
}

void* BufferObject::map() {
  require(buffer_.host_visible, "buffer was made without TUFF_ALLOC_HOST_VISIBLE");
  require(buffer_.allocation != nullptr, "buffer holds 0 bytes, there is nothing to map");
  // Set first, so that the backend refuses what comes after it has waited.
  require(!buffer_.allocation->mapped.exchange(true),
          "buffer is mapped already, by this handle or another on its memory");
  try {
    void* pointer = context_->backend().map(buffer_);
    mapped_.store(true, std::memory_order_relaxed);
    return pointer;
  } catch (...) {
    buffer_.allocation->mapped.store(false);
    throw;
  }
}

void BufferObject::unmap() {
  require(mapped_.exchange(false), "buffer is not mapped by this handle");
  context_->backend().unmap(buffer_);
  buffer_.allocation->mapped.store(false);
}

Context::~Context() {
  backend_->profile_end();  // it may outlive the profile
  end_backend(std::move(backend_), !late_);
}

uint32_t Context::live_buffers() const {
  const std::lock_guard lock(mutex_);
  return live_buffers_;
}

void Context::profile_begin() {
  const std::lock_guard lock(profile_mutex_);
  profiled_.begin();
  in_use_.store(&profiled_, std::memory_order_release);
}

void Context::profile_end() {
  const std::lock_guard lock(profile_mutex_);
  // In any case: of a lost device too.
  struct Restore {
    Context& context;
    ~Restore() { context.in_use_.store(context.backend_.get(), std::memory_order_release); }
  } const restore{*this};
  profiled_.end();
}

OperandArrays::OperandArrays(const Ref<Context>& context, uint64_t arrays, uint64_t handles) : context_(context) {
  if (handles > operands_->max_size() / arrays) throw std::bad_alloc();
  operands_->reserve(arrays * handles);
  buffers_->reserve(arrays * handles);
}

std::span<const Buffer* const> OperandArrays::add(const tuff_buffer* handles, uint64_t count, std::string_view name) {
  const size_t first = buffers_->size();
  for (uint64_t i = 0; i < count; ++i) {
    buffers_->push_back(operands_->emplace_back(context_, handles[i], name, i));
  }
  return {buffers_->data() + first, count};
}

tuff_buffer Context::adopt(std::unique_ptr<BufferObject> buffer) {
  BufferObject& object = *buffer;
  const std::lock_guard lock(mutex_);
  if (closed_) fail(TUFF_ERROR_INVALID_HANDLE, "context was destroyed during the call");
  object.handle_ = handle_table().insert(HandleKind::buffer, std::move(buffer));
  object.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &object;
  first_ = &object;
  ++live_buffers_;
  return object.handle_;
}

void Context::forget(BufferObject& buffer) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;  // close() has taken the list apart
  (buffer.previous_ != nullptr ? buffer.previous_->next_ : first_) = buffer.next_;
  if (buffer.next_ != nullptr) buffer.next_->previous_ = buffer.previous_;
  --live_buffers_;
}

tuff_kernel Context::adopt(std::unique_ptr<KernelObject> kernel) {
  const std::lock_guard lock(mutex_);
  if (closed_) fail(TUFF_ERROR_INVALID_HANDLE, "context was destroyed during the call");
  const tuff_kernel handle = handle_table().insert(HandleKind::kernel, std::move(kernel));
  try {
    kernels_.insert(handle);
  } catch (...) {
    const auto removed = handle_table().remove<KernelObject>(handle, HandleKind::kernel);
    throw;
  }
  return handle;
}

void Context::forget(tuff_kernel kernel) {
  const std::lock_guard lock(mutex_);
  kernels_.erase(kernel);
}

void Context::close() noexcept {
  bool late = false;
  try {
    backend_->synchronize();
  } catch (const Error& error) {
    late = error.code() == TUFF_ERROR_TIMEOUT;
    log(TUFF_LOG_WARNING, "destroying a context: {}", error.what());  // a lost device is freed all the same
  } catch (const std::exception& error) {
    log(TUFF_LOG_WARNING, "destroying a context: {}", error.what());
  }
  const std::lock_guard lock(mutex_);
  closed_ = true;
  late_ = late;
  BufferObject* buffer = std::exchange(first_, nullptr);
  while (buffer != nullptr) {
    // Empty if tuff_free in another thread removed it: that call waits for the mutex with its reference.
    BufferObject* next = buffer->next_;
    const auto removed = handle_table().remove<BufferObject>(buffer->handle_, HandleKind::buffer);
    buffer = next;
  }
  live_buffers_ = 0;
  for (const tuff_kernel kernel : std::exchange(kernels_, {})) {
    const auto removed = handle_table().remove<KernelObject>(kernel, HandleKind::kernel);
  }
}

}  // namespace tuff::capi
