// Draws the arguments of recurrent layers.
#include "kernels/rnn/rnn.hpp"
#include "planners/draw.hpp"

namespace tuff_test {

using tuff::dtype_size;

void draw_rnn(Call& call) {
  Numbers& n = call.numbers;
  tuff::RnnArgs& args = call.keep(tuff::RnnArgs{});
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
  const uint64_t x = runs ? plus(plus(times(args.steps - 1, args.x_strides[0]), times(batch - 1, args.x_strides[1])),
                                 args.input_size)
                          : 0,
                 y = runs ? plus(plus(times(args.steps - 1, args.y_strides[0]), times(batch - 1, args.y_strides[1])),
                                 plus(times(d - 1, args.y_strides[2]), p))
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

}  // namespace tuff_test
