// Copies between contexts: the last of the header's "Buffers" group.
#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/ranges.hpp"
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
    if (to.get() == from.get()) {
      tuff::capi::check_apart(target->buffer(), dst_offset, source->buffer(), src_offset, bytes);
      to->backend().copy_dtod(target->buffer(), dst_offset, source->buffer(), src_offset, bytes);
      return;
    }
    tuff::peer_copy({to.get(), to->backend(), target->buffer(), dst_offset},
                    {from.get(), from->backend(), source->buffer(), src_offset}, bytes);
    // One that was destroyed meanwhile has asked for this before there was anything.
    for (const auto& context : {to, from}) {
      if (context->closed()) tuff::forget_peer(context.get());
    }
  });
}

}  // extern "C"
