// Draws the arguments of recurrent layers.
#include "kernels/rnn/rnn.hpp"
#include "kernels/rnn/rnn_backward.hpp"
#include "planners/draw.hpp"

namespace tuff_test {

using tuff::dtype_size;

namespace {

// A layer's options and what it reads, but for initial states. y_strides are set too.
void draw_layer(Call& call, tuff::RnnArgs& args) {
  Numbers& n = call.numbers;
  args.dtype = call.float_type();
  args.cell = static_cast<int32_t>(n.below(4)), args.direction = static_cast<int32_t>(n.below(3));
  args.gate_order = static_cast<int32_t>(n.below(2));
  const bool lstm = args.cell == TUFF_RNN_CELL_LSTM;
  args.linear_before_reset = args.cell == TUFF_RNN_CELL_GRU && n.coin();
  // Few steps, each of which takes several dispatches; one of the sizes may be large.
  args.steps = n.below(6), args.batch = n.coin() ? n.below(5) : n.below(30), args.input_size = 1 + n.below(40);
  args.hidden_size = 1 + n.below(70), args.proj_size = lstm && n.coin(3) ? 1 + n.below(40) : 0;
  switch (n.below(6)) {
    case 0: args.batch = call.size(); break;
    case 1: args.input_size = plus(call.size(), 1); break;
    case 2: args.hidden_size = plus(call.size(), 1); break;
    default: break;
  }
  args.clip = n.coin(4) ? 1 : 0;
  call.tell("dtype", args.dtype), call.tell("cell", args.cell), call.tell("direction", args.direction);
  call.tell("linear_before_reset", args.linear_before_reset), call.tell("batch", args.batch);
  call.tell("steps", args.steps), call.tell("input_size", args.input_size);
  call.tell("hidden_size", args.hidden_size), call.tell("proj_size", args.proj_size);
  const uint64_t d = args.directions(), p = args.state_size(), size = dtype_size(args.dtype), batch = args.batch;
  const bool runs = batch != 0 && args.steps != 0;
  const uint64_t rows = times(args.gates(), args.hidden_size);
  const uint64_t row = plus(args.input_size, n.coin(4) ? n.below(9) : 0), out = plus(p, n.coin(4) ? n.below(9) : 0);
  if (n.coin()) {
    args.x_strides = {times(batch, row), row};
    args.y_strides = {times(times(batch, d), out), times(d, out), out};
  } else {
    args.x_strides = {row, times(args.steps, row)};
    args.y_strides = {times(d, out), times(args.steps, times(d, out)), out};
  }
  args.bias_stride = plus(rows, n.coin(4) ? n.below(9) : 0);
  call.tell("x_strides", args.x_strides), call.tell("y_strides", args.y_strides);
  const uint64_t x =
      runs ? plus(plus(times(args.steps - 1, args.x_strides[0]), times(batch - 1, args.x_strides[1])), args.input_size)
           : 0;
  args.x = call.input("x", x, size);
  if (row != args.input_size) call.read_partly(args.x);
  args.w = call.input("w", runs ? times(times(d, rows), args.input_size) : 0, size);
  args.r = call.input("r", runs ? times(times(d, rows), p) : 0, size);
  const uint64_t bias = runs ? plus(times(d - 1, args.bias_stride), rows) : 0;
  args.bias_w = call.perhaps("bias_w", bias, size), args.bias_r = call.perhaps("bias_r", bias, size);
  if (lstm) args.peepholes = call.perhaps("peepholes", runs ? times(3 * d, args.hidden_size) : 0, size);
  if (args.proj_size != 0)
    args.projection = call.input("projection", runs ? times(times(d, p), args.hidden_size) : 0, size);
  args.lengths = call.perhaps("lengths", runs ? batch : 0, 4);
}

uint64_t y_elements(const tuff::RnnArgs& args) {
  if (args.batch == 0 || args.steps == 0) return 0;
  return plus(plus(times(args.steps - 1, args.y_strides[0]), times(args.batch - 1, args.y_strides[1])),
              plus(times(args.directions() - 1, args.y_strides[2]), args.state_size()));
}

}  // namespace

void draw_rnn(Call& call) {
  Numbers& n = call.numbers;
  tuff::RnnArgs& args = call.keep(tuff::RnnArgs{});
  draw_layer(call, args);
  const bool lstm = args.cell == TUFF_RNN_CELL_LSTM;
  const uint64_t d = args.directions(), p = args.state_size(), size = dtype_size(args.dtype), batch = args.batch,
                 y = y_elements(args);
  const uint64_t of_h = times(times(d, batch), p), of_c = times(times(d, batch), args.hidden_size);
  args.h0 = call.perhaps("h0", of_h, size);
  if (lstm) args.c0 = call.perhaps("c0", of_c, size);
  if (!n.coin(4)) {
    args.y = call.output("y", y, size, false);
    if (y != 0) call.has_to_be(args.y, 0, p), call.has_to_be(args.y, y - p, p);
  }
  if (n.coin()) args.hn = call.output_or(n.coin() ? args.h0 : nullptr, "hn", of_h, size);
  if (lstm && n.coin()) args.cn = call.output_or(n.coin() ? args.c0 : nullptr, "cn", of_c, size);
  set(call, tuff::operations::rnn, args);
}

void draw_rnn_backward(Call& call) {
  Numbers& n = call.numbers;
  tuff::RnnBackwardArgs& args = call.keep(tuff::RnnBackwardArgs{});
  tuff::RnnArgs& layer = args.layer;
  draw_layer(call, layer);
  const bool lstm = layer.cell == TUFF_RNN_CELL_LSTM;
  const uint64_t d = layer.directions(), p = layer.state_size(), size = dtype_size(layer.dtype), batch = layer.batch;
  const uint64_t of_h = times(times(d, batch), p), of_c = times(times(d, batch), layer.hidden_size);
  layer.h0 = call.perhaps("h0", of_h, size);
  if (lstm) layer.c0 = call.perhaps("c0", of_c, size);
  // Without steps their sizes are checked, and nothing else.
  if (layer.steps == 0 && layer.h0 != nullptr) call.read_partly(layer.h0);
  if (layer.steps == 0 && layer.c0 != nullptr) call.read_partly(layer.c0);
  args.dhn = call.perhaps("dhn", of_h, size);
  if (lstm) args.dcn = call.perhaps("dcn", of_c, size);
  if (args.dhn == nullptr || n.coin()) args.dy = call.input("dy", y_elements(layer), size);
  if (args.dy != nullptr && layer.y_strides[2] != p) call.read_partly(args.dy);
  const uint64_t rows = times(layer.gates(), layer.hidden_size), bias = plus(times(d - 1, layer.bias_stride), rows);
  // A result that is wanted or not.
  const auto perhaps = [&](const char* name, uint64_t elements, bool whole = false) {
    return n.coin() ? call.output(name, elements, size, whole) : nullptr;
  };
  args.dx_strides = layer.x_strides;
  const uint64_t dx = batch != 0 && layer.steps != 0
                          ? plus(plus(times(layer.steps - 1, args.dx_strides[0]), times(batch - 1, args.dx_strides[1])),
                                 layer.input_size)
                          : 0;
  args.dx = perhaps("dx", dx);
  args.dw = perhaps("dw", times(times(d, rows), layer.input_size), true);
  args.dr = perhaps("dr", times(times(d, rows), p), true);
  args.dbias_w = perhaps("dbias_w", bias), args.dbias_r = perhaps("dbias_r", bias);
  if (lstm) args.dpeepholes = perhaps("dpeepholes", times(3 * d, layer.hidden_size));
  if (layer.proj_size != 0) args.dprojection = perhaps("dprojection", times(times(d, p), layer.hidden_size));
  if (n.coin()) args.dh0 = call.output_or(n.coin() ? args.dhn : nullptr, "dh0", of_h, size);
  if (lstm && n.coin()) args.dc0 = call.output_or(n.coin() ? args.dcn : nullptr, "dc0", of_c, size);
  set(call, tuff::operations::rnn_backward, args);
}

}  // namespace tuff_test
