// Copies between contexts: the end of the header's "Buffers" group.
#include <utility>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/ranges.hpp"
#include "planning/status.hpp"
#include "runtime/peer_copy.hpp"

using tuff::capi::acquire_buffer;
using tuff::capi::acquire_stream;

extern "C" {

tuff_status tuff_copy_peer(tuff_stream dst_stream, tuff_buffer dst, uint64_t dst_offset, tuff_stream src_stream,
                           tuff_buffer src, uint64_t src_offset, uint64_t bytes) {
  return tuff::capi::guarded("tuff_copy_peer", [&] {
    const auto to = acquire_stream(dst_stream, "dst_stream");
    const auto from = acquire_stream(src_stream, "src_stream");
    const auto target = acquire_buffer(to, dst, "dst");
    const auto source = acquire_buffer(from, src, "src");
    tuff::capi::check_accessible(target->buffer(), "dst", dst_offset, bytes);
    tuff::capi::check_accessible(source->buffer(), "src", src_offset, bytes);
    if (bytes == 0) return;
    if (to.context().get() == from.context().get()) {
      tuff::capi::check_apart(target->buffer(), dst_offset, source->buffer(), src_offset, bytes);
      if (&*to != &*from) {
        const auto before = to.context()->backend().create_event(false);
        from->record(*before);
        to->wait(*before);
      }
      to->copy_dtod(target->buffer(), dst_offset, source->buffer(), src_offset, bytes);
      return;
    }
    for (const auto& [stream, name] : {std::pair{&to, "dst_stream"}, std::pair{&from, "src_stream"}}) {
      if (!(*stream)->capturing()) continue;
      tuff::fail(TUFF_ERROR_UNSUPPORTED, "{} is capturing, and this copy between contexts is made by the host", name);
    }
    tuff::peer_copy({to.context().get(), to.context()->backend(), *to, target->buffer(), dst_offset},
                    {from.context().get(), from.context()->backend(), *from, source->buffer(), src_offset}, bytes);
    // A context that was destroyed during the copy called forget_peer before there was anything to forget.
    for (const auto* stream : {&to, &from}) {
      if (stream->context()->closed()) tuff::forget_peer(stream->context().get());
    }
  });
}

}  // extern "C"
