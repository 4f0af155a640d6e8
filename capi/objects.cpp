#include "capi/objects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "planning/log.hpp"
#include "planning/status.hpp"
#include "runtime/graveyard.hpp"
#include "runtime/peer_copy.hpp"

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
    buffer_.allocation->mapped.store(false);  // views of it stay usable
    log(TUFF_LOG_WARNING, "freeing a mapped buffer: {}", error.what());
  }
}

void* BufferObject::map() {
  require(buffer_.host_visible, "buffer was allocated without TUFF_ALLOC_HOST_VISIBLE");
  require(buffer_.allocation != nullptr, "buffer holds 0 bytes, there is nothing to map");
  // Set before waiting, so that the backend refuses later operations on the memory.
  require(!buffer_.allocation->mapped.exchange(true),
          "buffer is already mapped, by this handle or another handle to its memory");
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
  try {
    context_->backend().unmap(buffer_);
  } catch (...) {
    mapped_.store(true);
    throw;
  }
  buffer_.allocation->mapped.store(false);
}

Context::~Context() {
  backend_->profile_end();  // the backend may outlive the profile
  end_backend(std::move(backend_), !late_);
}

StreamObject::StreamObject(Ref<Context> context, std::unique_ptr<ComputeStream> stream)
    : context_(std::move(context)), stream_(std::move(stream)), profiled_(*stream_, context_->profiled().profile()) {}

ComputeStream& StreamObject::stream() { return context_->is_profiled() ? profiled_ : *stream_; }

void StreamRef::find(tuff_stream handle, std::string_view name) {
  object_ = handle_table().acquire<StreamObject>(handle, HandleKind::stream);
  if (!object_) fail_handle(name, handle, "stream or context");
  stream_ = &object_->stream();
}

uint32_t Context::live_buffers() const {
  const std::lock_guard lock(mutex_);
  return live_buffers_;
}

void Context::set_profiled(bool on) {
  in_use_.store(on ? static_cast<ComputeBackend*>(&profiled_) : backend_.get(), std::memory_order_release);
  stream_in_use_.store(on ? static_cast<ComputeStream*>(&profiled_stream_) : &backend_->default_stream(),
                       std::memory_order_release);
}

bool Context::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

void Context::profile_begin() {
  const std::lock_guard lock(profile_mutex_);
  profiled_.begin();
  set_profiled(true);
}

void Context::profile_end() {
  const std::lock_guard lock(profile_mutex_);
  // Restored on a lost device too, but not if profiling could not be ended.
  struct Restore {
    Context& context;
    ~Restore() {
      if (!context.profiled_.profile().recording()) context.set_profiled(false);
    }
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
  auto pinned = pinned_.end();
  if (object.buffer_.pinned && object.buffer_.bytes != 0) {
    pinned = pinned_.emplace(object.buffer_.host<std::byte>(), &object);
  }
  try {
    object.handle_ = handle_table().insert(HandleKind::buffer, std::move(buffer));
  } catch (...) {
    if (pinned != pinned_.end()) pinned_.erase(pinned);
    throw;
  }
  object.next_ = first_;
  if (first_ != nullptr) first_->previous_ = &object;
  first_ = &object;
  ++live_buffers_;
  return object.handle_;
}

void Context::forget(BufferObject& buffer) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;  // close() has already emptied the list
  (buffer.previous_ != nullptr ? buffer.previous_->next_ : first_) = buffer.next_;
  if (buffer.next_ != nullptr) buffer.next_->previous_ = buffer.previous_;
  --live_buffers_;
  if (!buffer.buffer_.pinned || buffer.buffer_.bytes == 0) return;
  const auto [first, last] = pinned_.equal_range(buffer.buffer_.host<std::byte>());
  const auto found = std::find_if(first, last, [&](const auto& entry) { return entry.second == &buffer; });
  if (found != last) pinned_.erase(found);
}

Context::NewHandle::NewHandle(Context& context, HandleKind kind)
    : context_(context), kind_(kind), handle_(handle_table().reserve(kind)) {
  try {
    const std::lock_guard lock(context_.mutex_);
    context_.owned_.emplace(handle_, kind);
  } catch (...) {
    handle_table().give_up(handle_);
    throw;
  }
}

Context::NewHandle::~NewHandle() {
  if (given_) return;
  context_.forget(handle_);
  handle_table().give_up(handle_);
}

uint64_t Context::NewHandle::give(std::unique_ptr<HandleObject> object) {
  const std::lock_guard lock(context_.mutex_);
  if (context_.closed_) fail(TUFF_ERROR_INVALID_HANDLE, "context was destroyed during the call");
  handle_table().fill(handle_, kind_, std::move(object));
  given_ = true;
  return handle_;
}

uint64_t Context::NewHandle::give_op(std::unique_ptr<OpObject> object) {
  const Extension& operation = object->operation();
  std::string name = operation.name(), signature = operation.signature();
  const std::lock_guard lock(context_.mutex_);
  if (context_.closed_) fail(TUFF_ERROR_INVALID_HANDLE, "context was destroyed during the call");
  const bool added = context_.ops_.try_emplace(std::move(name), handle_, std::move(signature)).second;
  require(added, "desc->name is \"{}\", which the context has already", operation.name());
  handle_table().fill(handle_, kind_, std::move(object));
  given_ = true;
  return handle_;
}

void Context::check_op_name(const std::string& name) const {
  require(!has_op(name), "desc->name is \"{}\", which the context has already", name);
}

bool Context::has_op(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return ops_.find(name) != ops_.end();
}

tuff_op Context::find_op(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = ops_.find(name); found != ops_.end()) return found->second.handle;
  std::string known;
  for (const auto& [other, op] : ops_) known += (known.empty() ? "" : ", ") + other;
  fail(TUFF_ERROR_INVALID_ARGUMENT, "name is \"{}\", the context has {}", name,
       known.empty() ? "no registered operation" : known);
}

std::string Context::list_ops() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [name, op] : ops_) text += op.signature + "\n";
  if (!text.empty()) text.pop_back();
  return text;
}

void Context::forget_op(const std::string& name, tuff_op op) {
  const std::lock_guard lock(mutex_);
  owned_.erase(op);
  // Another operation may have got the name since.
  if (const auto found = ops_.find(name); found != ops_.end() && found->second.handle == op) ops_.erase(found);
}

void Context::forget(uint64_t handle) {
  const std::lock_guard lock(mutex_);
  owned_.erase(handle);
}

// The lock keeps other threads from making handles, so that what else refers to a buffer's memory can be told from
// them.
void Context::compact(CompactionStep& step) {
  std::unordered_map<const Allocation*, size_t> known;
  std::vector<OwnedMemory> memory;
  const std::lock_guard lock(mutex_);
  if (closed_) fail(TUFF_ERROR_INVALID_HANDLE, "context was destroyed during the call");
  for (const BufferObject* buffer = first_; buffer != nullptr; buffer = buffer->next_) {
    const auto& allocation = buffer->buffer_.allocation;
    if (allocation == nullptr) continue;
    const auto [place, fresh] = known.try_emplace(allocation.get(), memory.size());
    if (fresh) memory.push_back({allocation, 0});
    ++memory[place->second].handles;
  }
  backend().compact(memory, step);
}

Ref<BufferObject> Context::find_pinned(const void* memory, uint64_t bytes) {
  const auto* first = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(mutex_);
  // Views begin inside their buffer, so the nearest preceding entry may be a view that is too short: keep searching.
  for (auto i = pinned_.upper_bound(first); i != pinned_.begin();) {
    const BufferObject& object = *(--i)->second;
    const auto within = static_cast<uint64_t>(first - i->first);
    if (within > object.buffer_.bytes || bytes > object.buffer_.bytes - within) continue;
    if (auto found = handle_table().acquire<BufferObject>(object.handle_, HandleKind::buffer)) return found;
  }
  return {};
}

void Context::close() noexcept {
  bool late = false;
  try {
    backend_->synchronize();
  } catch (const Error& error) {
    late = error.code() == TUFF_ERROR_TIMEOUT;
    // the memory of a lost device is freed all the same
    log(TUFF_LOG_WARNING, "destroying a context: {}", error.what());
  } catch (const std::exception& error) {
    log(TUFF_LOG_WARNING, "destroying a context: {}", error.what());
  }
  std::unique_lock lock(mutex_);
  closed_ = true;
  late_ = late;
  BufferObject* buffer = std::exchange(first_, nullptr);
  while (buffer != nullptr) {
    // Empty if tuff_free in another thread removed it first: that call holds a reference and waits for the mutex.
    BufferObject* next = buffer->next_;
    const auto removed = handle_table().remove<BufferObject>(buffer->handle_, HandleKind::buffer);
    buffer = next;
  }
  live_buffers_ = 0;
  pinned_.clear();
  ops_.clear();
  for (const auto& [handle, kind] : std::exchange(owned_, {})) {
    const auto removed = handle_table().remove<HandleObject>(handle, kind);
  }
  lock.unlock();
  forget_peer(this);
}

}  // namespace tuff::capi
