// The header's "Recurrent networks" group.
#include "kernels/rnn/rnn.hpp"
#include "kernels/rnn/rnn_backward.hpp"

#include "capi/guard.hpp"
#include "capi/objects.hpp"
#include "capi/structures.hpp"
#include "planning/status.hpp"

using tuff::capi::acquire_stream;
using tuff::capi::guarded;
using tuff::capi::Operand;
using tuff::capi::read_structure;

namespace {

// The operands of a layer, which both functions name alike.
struct LayerOperands {
  template <typename Desc, typename Target>
  LayerOperands(const Target& target, const Desc& desc)
      : x(target, desc.x, "x"),
        w(target, desc.w, "w"),
        r(target, desc.r, "r"),
        bias_w(target, desc.bias_w, "bias_w"),
        bias_r(target, desc.bias_r, "bias_r"),
        peepholes(target, desc.peepholes, "peepholes"),
        projection(target, desc.projection, "projection"),
        lengths(target, desc.lengths, "lengths"),
        h0(target, desc.h0, "h0"),
        c0(target, desc.c0, "c0") {}
  Operand x, w, r, bias_w, bias_r, peepholes, projection, lengths, h0, c0;
};

template <typename Desc>
tuff::RnnArgs layer_of(const Desc& desc, const LayerOperands& operands) {
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
  args.x = operands.x;
  args.w = operands.w;
  args.r = operands.r;
  args.bias_w = operands.bias_w;
  args.bias_r = operands.bias_r;
  args.bias_stride = desc.bias_stride;
  args.peepholes = operands.peepholes;
  args.projection = operands.projection;
  args.lengths = operands.lengths;
  args.h0 = operands.h0;
  args.c0 = operands.c0;
  args.x_strides = {desc.x_strides[0], desc.x_strides[1]};
  return args;
}

}  // namespace

extern "C" tuff_status tuff_rnn(tuff_stream stream, const tuff_rnn_desc* given) {
  return guarded("tuff_rnn", [&] {
    const tuff_rnn_desc desc = read_structure(given, "desc");
    tuff::require_flag(desc.linear_before_reset, "desc->linear_before_reset");
    const auto target = acquire_stream(stream);
    const LayerOperands operands(target, desc);
    const Operand y(target, desc.y, "y"), hn(target, desc.hn, "hn"), cn(target, desc.cn, "cn");
    tuff::RnnArgs args = layer_of(desc, operands);
    args.y = y;
    args.hn = hn;
    args.cn = cn;
    args.y_strides = {desc.y_strides[0], desc.y_strides[1], desc.y_strides[2]};
    complete_rnn(args);
    target->run(tuff::operations::rnn(args));
  });
}

extern "C" tuff_status tuff_rnn_backward(tuff_stream stream, const tuff_rnn_backward_desc* given) {
  return guarded("tuff_rnn_backward", [&] {
    const tuff_rnn_backward_desc desc = read_structure(given, "desc");
    tuff::require_flag(desc.linear_before_reset, "desc->linear_before_reset");
    const auto target = acquire_stream(stream);
    const LayerOperands operands(target, desc);
    const Operand dy(target, desc.dy, "dy"), dhn(target, desc.dhn, "dhn"), dcn(target, desc.dcn, "dcn"),
        dx(target, desc.dx, "dx"), dw(target, desc.dw, "dw"), dr(target, desc.dr, "dr"),
        dbias_w(target, desc.dbias_w, "dbias_w"), dbias_r(target, desc.dbias_r, "dbias_r"),
        dpeepholes(target, desc.dpeepholes, "dpeepholes"), dprojection(target, desc.dprojection, "dprojection"),
        dh0(target, desc.dh0, "dh0"), dc0(target, desc.dc0, "dc0");
    tuff::RnnBackwardArgs args{};
    args.layer = layer_of(desc, operands);
    args.dy = dy;
    args.dhn = dhn;
    args.dcn = dcn;
    args.dx = dx;
    args.dw = dw;
    args.dr = dr;
    args.dbias_w = dbias_w;
    args.dbias_r = dbias_r;
    args.dpeepholes = dpeepholes;
    args.dprojection = dprojection;
    args.dh0 = dh0;
    args.dc0 = dc0;
    args.layer.y_strides = {desc.dy_strides[0], desc.dy_strides[1], desc.dy_strides[2]};
    args.dx_strides = {desc.dx_strides[0], desc.dx_strides[1]};
    complete_rnn_backward(args);
    target->run(tuff::operations::rnn_backward(args));
  });
}
