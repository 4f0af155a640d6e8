// The header's "Recurrent networks" group.
#include "kernels/rnn/rnn.hpp"

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

extern "C" tuff_status tuff_rnn(tuff_stream stream, const tuff_rnn_desc* given) {
  return guarded("tuff_rnn", [&] {
    const tuff_rnn_desc desc = read_structure(given, "desc");
    tuff::require_flag(desc.linear_before_reset, "desc->linear_before_reset");
    const auto target = acquire_stream(stream);
    const Operand x(target, desc.x, "x"), w(target, desc.w, "w"), r(target, desc.r, "r"),
        bias_w(target, desc.bias_w, "bias_w"), bias_r(target, desc.bias_r, "bias_r"),
        peepholes(target, desc.peepholes, "peepholes"), projection(target, desc.projection, "projection"),
        lengths(target, desc.lengths, "lengths"), h0(target, desc.h0, "h0"), c0(target, desc.c0, "c0"),
        y(target, desc.y, "y"), hn(target, desc.hn, "hn"), cn(target, desc.cn, "cn");
    tuff::RnnArgs args{};
    args.dtype = desc.dtype;
    args.cell = desc.cell;
    args.direction = desc.direction;
    args.gate_order = desc.gate_order;
    args.linear_before_reset = desc.linear_before_reset != 0;
    args.batch = desc.batch;
    args.steps = desc.steps;
    args.input_size = desc.input_size;
    args.hidden_size = desc.hidden_size;
    args.proj_size = desc.proj_size;
    args.clip = desc.clip;
    args.x = x;
    args.w = w;
    args.r = r;
    args.bias_w = bias_w;
    args.bias_r = bias_r;
    args.bias_stride = desc.bias_stride;
    args.peepholes = peepholes;
    args.projection = projection;
    args.lengths = lengths;
    args.h0 = h0;
    args.c0 = c0;
    args.y = y;
    args.hn = hn;
    args.cn = cn;
    args.x_strides = {desc.x_strides[0], desc.x_strides[1]};
    args.y_strides = {desc.y_strides[0], desc.y_strides[1], desc.y_strides[2]};
    complete_rnn(args);
    target->run(tuff::operations::rnn(args));
  });
}
