// The header's "Resizing" group.
#include <algorithm>

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "kernels/resize/resize.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

extern "C" tuff_status tuff_resize(tuff_stream stream, const tuff_resize_desc* given) {
  return guarded("tuff_resize", [&] {
    const tuff_resize_desc desc = read_structure(given, "desc");
    const auto target = acquire_stream(stream);
    const Operand input(target, desc.input, "input"), output(target, desc.output, "output");
    tuff::ResizeArgs args{};
    args.dtype = desc.dtype;
    args.mode = desc.mode;
    args.layout = desc.layout;
    args.input = input;
    args.output = output;
    args.batch = desc.batch;
    args.channels = desc.channels;
    args.spatial = desc.spatial;
    std::copy_n(desc.in_shape, 3, args.in_shape.begin());
    std::copy_n(desc.out_shape, 3, args.out_shape.begin());
    std::copy_n(desc.scale, 3, args.scale.begin());
    args.align_corners = desc.align_corners;
    target->run(tuff::operations::resize(args));
  });
}
