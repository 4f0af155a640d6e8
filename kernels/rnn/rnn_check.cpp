// Checks the arguments of a layer of a recurrent network.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>

#include "kernels/common/check.hpp"
#include "kernels/rnn/rnn.hpp"
#include "kernels/rnn/rnn_backward.hpp"

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

// Rows of `width` elements that are written must not overlap: each stride is at least the reach of those that are
// smaller.
template <size_t rank>
void check_rows_apart(const std::array<uint64_t, rank>& sizes, const std::array<uint64_t, rank>& strides,
                      uint64_t width, const char* name) {
  std::array<std::pair<uint64_t, uint64_t>, rank> axes;
  for (size_t i = 0; i < rank; ++i) axes[i] = {strides[i], sizes[i]};
  std::sort(axes.begin(), axes.end());
  uint64_t reach = width;
  for (const auto& [stride, size] : axes) {
    if (size == 1) continue;
    require(stride >= reach, "{}_strides {}: rows of {}, of {} elements each, overlap", name, fmt::join(strides, " "),
            name, width);
    reach = checked_add(reach, checked_mul(size - 1, stride, name), name);
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

// The operands of a call, as they are checked.
class Operands {
 public:
  explicit Operands(const RnnArgs& args) : args_(args) {}

  Checked required(const Buffer* buffer, const char* name, uint64_t elements, int32_t dtype) const {
    check_operand(buffer, name, elements, dtype, [&] {
      return fmt::format("batch={} steps={} input_size={} hidden_size={} proj_size={} directions={}", args_.batch,
                         args_.steps, args_.input_size, args_.hidden_size, args_.proj_size, args_.directions());
    });
    return {name, buffer, elements * dtype_size(dtype)};
  }
  Checked optional(const Buffer* buffer, const char* name, uint64_t elements) const {
    return buffer == nullptr ? Checked{name, nullptr, 0} : required(buffer, name, elements, args_.dtype);
  }

 private:
  const RnnArgs& args_;
};

constexpr size_t kLayerOperands = 10;

// What a layer reads. Without steps or sequences that are only h0 and c0.
std::array<Checked, kLayerOperands> check_layer(const RnnArgs& args, const Operands& operands) {
  const uint64_t d = args.directions(), p = args.state_size(), h = args.hidden_size;
  const bool runs = args.steps != 0 && args.batch != 0;
  require(!runs || ((args.steps == 1 || args.x_strides[0] >= args.input_size) &&
                    (args.batch == 1 || args.x_strides[1] >= args.input_size)),
          "x_strides {} {}: must be at least input_size={}", args.x_strides[0], args.x_strides[1], args.input_size);
  const uint64_t rows = checked_mul(args.gates(), h, "hidden_size");
  const uint64_t bias = runs ? checked_add(checked_mul(d - 1, args.bias_stride, "bias_w"), rows, "bias_w") : 0;
  const uint64_t x = reach<2>({args.steps, args.batch}, args.x_strides, args.input_size, "x");
  const Checked lengths = args.lengths == nullptr
                              ? Checked{"lengths", nullptr, 0}
                              : operands.required(args.lengths, "lengths", runs ? args.batch : 0, TUFF_I32);
  return {{
      operands.required(args.x, "x", x, args.dtype),
      operands.required(args.w, "w", runs ? checked_product({d, rows, args.input_size}, "w") : 0, args.dtype),
      operands.required(args.r, "r", runs ? checked_product({d, rows, p}, "r") : 0, args.dtype),
      operands.optional(args.bias_w, "bias_w", bias),
      operands.optional(args.bias_r, "bias_r", bias),
      operands.optional(args.peepholes, "peepholes", runs ? checked_product({d, 3, h}, "peepholes") : 0),
      operands.required(args.projection, "projection",
                        runs && args.proj_size != 0 ? checked_product({d, p, h}, "projection") : 0, args.dtype),
      lengths,
      operands.optional(args.h0, "h0", checked_product({d, args.batch, p}, "h0")),
      operands.optional(args.c0, "c0", checked_product({d, args.batch, h}, "c0")),
  }};
}

// No output overlaps what is read, but for the operand that it may coincide with, nor another output.
void check_apart(std::span<const Checked> written, std::span<const Checked> read) {
  for (const Checked& result : written) {
    for (const Checked& other : read) {
      check_overlap(result.buffer, result.name, result.bytes, other.buffer, other.name, other.bytes,
                    std::string_view(other.name) == result.may_be);
    }
    for (const Checked* other = written.data(); other != &result; ++other) {
      check_overlap(result.buffer, result.name, result.bytes, other->buffer, other->name, other->bytes, false);
    }
  }
}

// Replaces a stride of 0 by that of dense operands.
void complete(uint64_t& given, std::initializer_list<uint64_t> factors, const char* name) {
  if (given == 0) given = checked_product(factors, name);
}

}  // namespace

void complete_rnn(RnnArgs& args) {
  complete(args.x_strides[0], {args.batch, args.input_size}, "x");
  complete(args.x_strides[1], {args.input_size}, "x");
  complete(args.y_strides[0], {args.batch, args.directions(), args.state_size()}, "y");
  complete(args.y_strides[1], {args.directions(), args.state_size()}, "y");
  complete(args.y_strides[2], {args.state_size()}, "y");
  complete(args.bias_stride, {args.gates(), args.hidden_size}, "hidden_size");
}

void check_rnn(const RnnArgs& args) {
  check_float_type(args.dtype);
  check_options(args);
  if (args.batch == 0) return;
  const uint64_t d = args.directions(), p = args.state_size(), h = args.hidden_size;
  const Operands operands(args);
  const auto read = check_layer(args, operands);
  const std::array<uint64_t, 3> sizes = {args.steps, args.batch, d};
  if (args.y != nullptr && args.steps != 0) check_rows_apart<3>(sizes, args.y_strides, p, "y");
  Checked written[] = {
      operands.optional(args.y, "y", reach<3>(sizes, args.y_strides, p, "y")),
      operands.optional(args.hn, "hn", checked_product({d, args.batch, p}, "hn")),
      operands.optional(args.cn, "cn", checked_product({d, args.batch, h}, "cn")),
  };
  written[1].may_be = "h0", written[2].may_be = "c0";
  check_apart(written, read);
}

void complete_rnn_backward(RnnBackwardArgs& args) {
  complete_rnn(args.layer);
  complete(args.dx_strides[0], {args.layer.batch, args.layer.input_size}, "dx");
  complete(args.dx_strides[1], {args.layer.input_size}, "dx");
}

void check_rnn_backward(const RnnBackwardArgs& args) {
  const RnnArgs& layer = args.layer;
  check_float_type(layer.dtype);
  check_options(layer);
  // Without steps or sequences dy has no elements, and may be null for that.
  require(layer.steps == 0 || layer.batch == 0 || args.dy != nullptr || args.dhn != nullptr || args.dcn != nullptr,
          "dy, dhn and dcn are all null: one at least must be given");
  if (layer.cell != TUFF_RNN_CELL_LSTM) {
    require(args.dcn == nullptr, "dcn is given, and only an LSTM has a c");
    require(args.dc0 == nullptr, "dc0 is given, and only an LSTM has a c");
    require(args.dpeepholes == nullptr, "dpeepholes is given, and only an LSTM has peepholes");
  }
  require(layer.proj_size != 0 || args.dprojection == nullptr, "dprojection is given, and proj_size is 0");
  const uint64_t d = layer.directions(), p = layer.state_size(), h = layer.hidden_size;
  const Operands operands(layer);
  std::array<Checked, kLayerOperands + 3> read;
  const auto of_layer = check_layer(layer, operands);
  auto more = std::copy(of_layer.begin(), of_layer.end(), read.begin());
  const std::array<uint64_t, 3> sizes = {layer.steps, layer.batch, d};
  const uint64_t of_h = checked_product({d, layer.batch, p}, "dhn"), of_c = checked_product({d, layer.batch, h}, "dcn");
  *more++ = operands.optional(args.dy, "dy", reach<3>(sizes, layer.y_strides, p, "dy"));
  *more++ = operands.optional(args.dhn, "dhn", of_h);
  *more = operands.optional(args.dcn, "dcn", of_c);
  if (args.dx != nullptr && layer.steps != 0 && layer.batch != 0) {
    check_rows_apart<2>({layer.steps, layer.batch}, args.dx_strides, layer.input_size, "dx");
  }
  // Sums of no steps are written too.
  const uint64_t rows = checked_mul(layer.gates(), h, "hidden_size");
  const uint64_t bias = checked_add(checked_mul(d - 1, layer.bias_stride, "dbias_w"), rows, "dbias_w");
  require(layer.bias_stride >= rows || d == 1 || (args.dbias_w == nullptr && args.dbias_r == nullptr),
          "bias_stride is {}: the gradients of both directions' biases, of {} elements each, overlap",
          layer.bias_stride, rows);
  Checked written[] = {
      operands.optional(args.dx, "dx", reach<2>({layer.steps, layer.batch}, args.dx_strides, layer.input_size, "dx")),
      operands.optional(args.dw, "dw", args.dw == nullptr ? 0 : checked_product({d, rows, layer.input_size}, "dw")),
      operands.optional(args.dr, "dr", args.dr == nullptr ? 0 : checked_product({d, rows, p}, "dr")),
      operands.optional(args.dbias_w, "dbias_w", bias),
      operands.optional(args.dbias_r, "dbias_r", bias),
      operands.optional(args.dpeepholes, "dpeepholes",
                        args.dpeepholes == nullptr ? 0 : checked_product({d, 3, h}, "dpeepholes")),
      operands.optional(args.dprojection, "dprojection",
                        args.dprojection == nullptr ? 0 : checked_product({d, p, h}, "dprojection")),
      operands.optional(args.dh0, "dh0", of_h),
      operands.optional(args.dc0, "dc0", of_c),
  };
  written[7].may_be = "dhn", written[8].may_be = "dcn";
  check_apart(written, read);
}

}  // namespace tuff
