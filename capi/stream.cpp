// The header's "Streams and events" and "Graphs" groups.
#include <memory>
#include <string_view>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/ranges.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::HandleKind;
using tuff::Ref;
using tuff::require;
using tuff::capi::acquire_buffer;
using tuff::capi::acquire_context;
using tuff::capi::acquire_stream;
using tuff::capi::BufferObject;
using tuff::capi::check_accessible;
using tuff::capi::check_apart;
using tuff::capi::Context;
using tuff::capi::EventObject;
using tuff::capi::fail_handle;
using tuff::capi::GraphObject;
using tuff::capi::guarded;
using tuff::capi::StreamObject;

namespace {

constexpr size_t kLongestStreamName = 256;

Ref<EventObject> acquire_event(tuff_event handle, std::string_view name) {
  auto event = tuff::handle_table().acquire<EventObject>(handle, HandleKind::event);
  if (!event) fail_handle(name, handle, "event");
  return event;
}

Ref<EventObject> acquire_event(const Ref<Context>& context, tuff_event handle, std::string_view name) {
  auto event = acquire_event(handle, name);
  if (event->context().get() != context.get()) tuff::capi::fail_other_context(name);
  return event;
}

Ref<GraphObject> acquire_graph(tuff_graph handle) {
  auto graph = tuff::handle_table().acquire<GraphObject>(handle, HandleKind::graph);
  if (!graph) fail_handle("graph", handle, "graph");
  return graph;
}

// Removes the handle. Its object is destroyed when the last reference is released.
template <typename Object>
void destroy(uint64_t handle, HandleKind kind, std::string_view name) {
  const auto object = tuff::handle_table().remove<Object>(handle, kind);
  if (!object) fail_handle(name, handle, name);
  object->context()->forget(handle);
}

// Finds the pinned buffer that contains the memory, and the memory's offset in it.
Ref<BufferObject> find_pinned(const Ref<Context>& context, const void* memory, uint64_t bytes, std::string_view name,
                              uint64_t& offset) {
  auto pinned = context->find_pinned(memory, bytes);
  require(static_cast<bool>(pinned),
          "{} and the {} bytes from there are not within one live buffer of pinned memory of this context "
          "(TUFF_ALLOC_HOST_PINNED, tuff_buffer_import_host)",
          name, bytes);
  offset = static_cast<uint64_t>(static_cast<const std::byte*>(memory) - pinned->buffer().host<std::byte>());
  return pinned;
}

}  // namespace

extern "C" {

tuff_status tuff_stream_create(tuff_context context, const tuff_stream_desc* desc, tuff_stream* stream) {
  return guarded("tuff_stream_create", [&] {
    const auto owner = acquire_context(context);
    require(stream != nullptr, "stream is null");
    tuff_stream_desc wanted{};
    if (desc != nullptr) wanted = tuff::capi::read_structure(desc, "desc");
    require(wanted.flags == 0, "desc->flags is {:#x}, this version knows none", wanted.flags);
    tuff::StreamOptions options;
    if (wanted.name != nullptr) options.name.assign(wanted.name, strnlen(wanted.name, kLongestStreamName));
    Context::NewHandle handle(*owner, HandleKind::stream);
    *stream = handle.give(std::make_unique<StreamObject>(owner, owner->backend().create_stream(options)));
  });
}

tuff_status tuff_stream_destroy(tuff_stream stream) {
  if (stream == TUFF_NULL_HANDLE) return TUFF_OK;
  return guarded("tuff_stream_destroy", [&] {
    const bool is_default = static_cast<bool>(tuff::handle_table().acquire<Context>(stream, HandleKind::context));
    require(!is_default, "stream is a context's default stream, which is destroyed with its context");
    destroy<StreamObject>(stream, HandleKind::stream, "stream");
  });
}

tuff_status tuff_copy_htod_async(tuff_stream stream, tuff_buffer dst, uint64_t dst_offset, const void* src,
                                 uint64_t bytes) {
  return guarded("tuff_copy_htod_async", [&] {
    const auto target = acquire_stream(stream);
    const auto to = acquire_buffer(target, dst, "dst");
    check_accessible(to->buffer(), "dst", dst_offset, bytes);
    if (bytes == 0) return;
    require(src != nullptr, "src is null");
    uint64_t src_offset = 0;
    const auto from = find_pinned(target, src, bytes, "src", src_offset);
    check_apart(to->buffer(), dst_offset, from->buffer(), src_offset, bytes);
    target->copy_async(to->buffer(), dst_offset, from->buffer(), src_offset, bytes);
  });
}

tuff_status tuff_copy_dtoh_async(tuff_stream stream, void* dst, tuff_buffer src, uint64_t src_offset, uint64_t bytes) {
  return guarded("tuff_copy_dtoh_async", [&] {
    const auto target = acquire_stream(stream);
    const auto from = acquire_buffer(target, src, "src");
    check_accessible(from->buffer(), "src", src_offset, bytes);
    if (bytes == 0) return;
    require(dst != nullptr, "dst is null");
    uint64_t dst_offset = 0;
    const auto to = find_pinned(target, dst, bytes, "dst", dst_offset);
    check_apart(to->buffer(), dst_offset, from->buffer(), src_offset, bytes);
    target->copy_async(to->buffer(), dst_offset, from->buffer(), src_offset, bytes);
  });
}

tuff_status tuff_event_create(tuff_context context, const tuff_event_desc* desc, tuff_event* event) {
  return guarded("tuff_event_create", [&] {
    const auto owner = acquire_context(context);
    require(event != nullptr, "event is null");
    tuff_event_desc wanted{};
    if (desc != nullptr) wanted = tuff::capi::read_structure(desc, "desc");
    constexpr uint32_t kKnownFlags = TUFF_EVENT_NO_TIMING;
    require((wanted.flags & ~kKnownFlags) == 0, "desc->flags is {:#x}, this version knows {:#x}", wanted.flags,
            kKnownFlags);
    const bool timing = (wanted.flags & TUFF_EVENT_NO_TIMING) == 0;
    Context::NewHandle handle(*owner, HandleKind::event);
    *event = handle.give(std::make_unique<EventObject>(owner, owner->backend().create_event(timing)));
  });
}

tuff_status tuff_event_destroy(tuff_event event) {
  if (event == TUFF_NULL_HANDLE) return TUFF_OK;
  return guarded("tuff_event_destroy", [&] { destroy<EventObject>(event, HandleKind::event, "event"); });
}

tuff_status tuff_event_record(tuff_stream stream, tuff_event event) {
  return guarded("tuff_event_record", [&] {
    const auto target = acquire_stream(stream);
    target->record(acquire_event(target, event, "event")->event());
  });
}

tuff_status tuff_stream_wait_event(tuff_stream stream, tuff_event event) {
  return guarded("tuff_stream_wait_event", [&] {
    const auto target = acquire_stream(stream);
    target->wait(acquire_event(target, event, "event")->event());
  });
}

tuff_status tuff_event_query(tuff_event event, int32_t* done) {
  return guarded("tuff_event_query", [&] {
    const auto object = acquire_event(event, "event");
    require(done != nullptr, "done is null");
    *done = object->event().query() ? 1 : 0;
  });
}

tuff_status tuff_event_wait(tuff_event event) {
  return guarded("tuff_event_wait", [&] { acquire_event(event, "event")->event().wait(); });
}

tuff_status tuff_event_elapsed(tuff_event start, tuff_event end, double* milliseconds) {
  return guarded("tuff_event_elapsed", [&] {
    const auto from = acquire_event(start, "start");
    const auto to = acquire_event(from->context(), end, "end");
    require(milliseconds != nullptr, "milliseconds is null");
    *milliseconds = from->event().elapsed(to->event());
  });
}

tuff_status tuff_graph_begin(tuff_stream stream) {
  return guarded("tuff_graph_begin", [&] { acquire_stream(stream)->begin_graph(); });
}

tuff_status tuff_graph_end(tuff_stream stream, tuff_graph* graph) {
  return guarded("tuff_graph_end", [&] {
    const auto target = acquire_stream(stream);
    require(graph != nullptr, "graph is null");
    const Ref<Context>& owner = target.context();
    // Everything that can fail happens before the capture ends.
    Context::NewHandle handle(*owner, HandleKind::graph);
    auto object = std::make_unique<GraphObject>(owner);
    object->hold(target->end_graph());
    *graph = handle.give(std::move(object));
  });
}

tuff_status tuff_graph_launch(tuff_stream stream, tuff_graph graph) {
  return guarded("tuff_graph_launch", [&] {
    const auto target = acquire_stream(stream);
    const auto object = acquire_graph(graph);
    if (object->context().get() != target.context().get()) tuff::capi::fail_other_context("graph");
    target->launch(object->graph());
  });
}

tuff_status tuff_graph_bind(tuff_graph graph, tuff_buffer captured, tuff_buffer replacement) {
  return guarded("tuff_graph_bind", [&] {
    const auto object = acquire_graph(graph);
    const auto from = acquire_buffer(object->context(), captured, "captured");
    const auto to = acquire_buffer(object->context(), replacement, "replacement");
    object->graph().bind(from->buffer(), to->buffer());
  });
}

tuff_status tuff_graph_destroy(tuff_graph graph) {
  if (graph == TUFF_NULL_HANDLE) return TUFF_OK;
  return guarded("tuff_graph_destroy", [&] { destroy<GraphObject>(graph, HandleKind::graph, "graph"); });
}

}  // extern "C"
