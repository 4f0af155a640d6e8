// Checks the arguments of a layer of a recurrent network.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "kernels/common/check.hpp"
#include "kernels/rnn/rnn.hpp"

namespace tuff {
namespace {

// An operand while it is checked. A null buffer: it is not there.
struct Checked {
  const char* name;
  const Buffer* buffer;
  uint64_t bytes;
  const char* may_be = "";  // of an output: the operand that it may coincide with
};

void check_options(const RnnArgs& args) {
  require(args.cell >= TUFF_RNN_CELL_LSTM && args.cell <= TUFF_RNN_CELL_RELU,
          "cell is {}, must be TUFF_RNN_CELL_LSTM, _GRU, _TANH or _RELU", args.cell);
  require(args.direction >= TUFF_RNN_DIRECTION_FORWARD && args.direction <= TUFF_RNN_DIRECTION_BOTH,
          "direction is {}, must be TUFF_RNN_DIRECTION_FORWARD, _REVERSE or _BOTH", args.direction);
  require(args.gate_order == TUFF_RNN_GATES_TORCH || args.gate_order == TUFF_RNN_GATES_ONNX,
          "gate_order is {}, must be TUFF_RNN_GATES_TORCH or _ONNX", args.gate_order);
  require(args.input_size != 0, "input_size is 0, must be at least 1");
  require(args.hidden_size != 0, "hidden_size is 0, must be at least 1");
  require(std::isfinite(args.clip) && args.clip >= 0, "clip is {}, must be 0 (none) or positive and finite", args.clip);
  require(!args.linear_before_reset || args.cell == TUFF_RNN_CELL_GRU,
          "linear_before_reset is 1, and only a GRU has a reset gate");
  if (args.cell != TUFF_RNN_CELL_LSTM) {
    require(args.proj_size == 0, "proj_size is {}, and only an LSTM has a projection", args.proj_size);
    require(args.peepholes == nullptr, "peepholes are given, and only an LSTM has them");
    require(args.c0 == nullptr, "c0 is given, and only an LSTM has a c");
    require(args.cn == nullptr, "cn is given, and only an LSTM has a c");
  }
  require(args.proj_size != 0 || args.projection == nullptr, "projection is given, and proj_size is 0");
  // Lengths are numbers of 32 bits.
  if (args.steps > INT32_MAX) fail(TUFF_ERROR_UNSUPPORTED, "steps is {}, at most {}", args.steps, INT32_MAX);
}

// The rows of y, of P elements, must not overlap: each stride is at least the reach of those that are smaller.
void check_rows_apart(const RnnArgs& args) {
  std::array<std::pair<uint64_t, uint64_t>, 3> axes = {std::pair{args.y_strides[0], args.steps},
                                                       {args.y_strides[1], args.batch},
                                                       {args.y_strides[2], args.directions()}};
  std::sort(axes.begin(), axes.end());
  uint64_t reach = args.state_size();
  for (const auto& [stride, size] : axes) {
    if (size == 1) continue;
    require(stride >= reach, "y_strides {} {} {}: rows of y, of {} elements each, overlap", args.y_strides[0],
            args.y_strides[1], args.y_strides[2], args.state_size());
    reach = checked_add(reach, checked_mul(size - 1, stride, "y"), "y");
  }
}

// Elements up to the last one of a vector of `count` at each place; 0 if there is none.
template <size_t rank>
uint64_t reach(const std::array<uint64_t, rank>& sizes, const std::array<uint64_t, rank>& strides, uint64_t count,
               const char* name) {
  uint64_t elements = count;
  for (size_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0) return 0;
    elements = checked_add(elements, checked_mul(sizes[i] - 1, strides[i], name), name);
  }
  return elements;
}

}  // namespace

void complete_rnn(RnnArgs& args) {
  const auto stride = [](uint64_t& given, std::initializer_list<uint64_t> factors, const char* name) {
    if (given == 0) given = checked_product(factors, name);
  };
  stride(args.x_strides[0], {args.batch, args.input_size}, "x");
  stride(args.x_strides[1], {args.input_size}, "x");
  stride(args.y_strides[0], {args.batch, args.directions(), args.state_size()}, "y");
  stride(args.y_strides[1], {args.directions(), args.state_size()}, "y");
  stride(args.y_strides[2], {args.state_size()}, "y");
  stride(args.bias_stride, {args.gates(), args.hidden_size}, "hidden_size");
}

void check_rnn(const RnnArgs& args) {
  check_float_type(args.dtype);
  check_options(args);
  if (args.batch == 0) return;
  const uint64_t d = args.directions(), p = args.state_size(), h = args.hidden_size;
  const bool runs = args.steps != 0;  // without steps only h0 and c0 are read
  const auto detail = [&] {
    return fmt::format("batch={} steps={} input_size={} hidden_size={} proj_size={} directions={}", args.batch,
                       args.steps, args.input_size, h, args.proj_size, d);
  };
  const auto operand = [&](const Buffer* buffer, const char* name, uint64_t elements, int32_t dtype) -> Checked {
    check_operand(buffer, name, elements, dtype, detail);
    return {name, buffer, elements * dtype_size(dtype)};
  };
  const auto optional = [&](const Buffer* buffer, const char* name, uint64_t elements, int32_t dtype) -> Checked {
    return buffer == nullptr ? Checked{name, nullptr, 0} : operand(buffer, name, elements, dtype);
  };
  require((args.steps <= 1 || args.x_strides[0] >= args.input_size) &&
              (args.batch == 1 || args.x_strides[1] >= args.input_size),
          "x_strides {} {}: must be at least input_size={}", args.x_strides[0], args.x_strides[1], args.input_size);
  const uint64_t rows = checked_mul(args.gates(), h, "hidden_size");
  const uint64_t bias = runs ? checked_add(checked_mul(d - 1, args.bias_stride, "bias_w"), rows, "bias_w") : 0;
  const uint64_t of_h = checked_product({d, args.batch, p}, "h0"), of_c = checked_product({d, args.batch, h}, "c0");
  const Checked read[] = {
      operand(args.x, "x", reach<2>({args.steps, args.batch}, args.x_strides, args.input_size, "x"), args.dtype),
      operand(args.w, "w", runs ? checked_product({d, rows, args.input_size}, "w") : 0, args.dtype),
      operand(args.r, "r", runs ? checked_product({d, rows, p}, "r") : 0, args.dtype),
      optional(args.bias_w, "bias_w", bias, args.dtype),
      optional(args.bias_r, "bias_r", bias, args.dtype),
      optional(args.peepholes, "peepholes", runs ? checked_product({d, 3, h}, "peepholes") : 0, args.dtype),
      operand(args.projection, "projection", runs && args.proj_size != 0 ? checked_product({d, p, h}, "projection") : 0,
              args.dtype),
      optional(args.lengths, "lengths", runs ? args.batch : 0, TUFF_I32),
      optional(args.h0, "h0", of_h, args.dtype),
      optional(args.c0, "c0", of_c, args.dtype),
  };
  if (args.y != nullptr && runs) check_rows_apart(args);
  Checked written[] = {
      optional(args.y, "y", reach<3>({args.steps, args.batch, d}, args.y_strides, p, "y"), args.dtype),
      optional(args.hn, "hn", of_h, args.dtype),
      optional(args.cn, "cn", of_c, args.dtype),
  };
  written[1].may_be = "h0", written[2].may_be = "c0";
  for (const Checked& result : written) {
    for (const Checked& other : read) {
      check_overlap(result.buffer, result.name, result.bytes, other.buffer, other.name, other.bytes,
                    std::string_view(other.name) == result.may_be);
    }
    for (const Checked* other = written; other != &result; ++other) {
      check_overlap(result.buffer, result.name, result.bytes, other->buffer, other->name, other->bytes, false);
    }
  }
}

}  // namespace tuff
