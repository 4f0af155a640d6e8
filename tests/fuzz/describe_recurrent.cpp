// Recurrent networks. What an error becomes from one step to the next is bounded by the weights' magnitudes.
#include <algorithm>
#include <cmath>

#include "fuzz/draft.hpp"
#include "fuzz/numbers.hpp"
#include "support/bounds.hpp"

namespace tuff_fuzz {
namespace {

using tuff_test::gamma;
using tuff_test::kU;

struct Sizes {
  int32_t cell;
  uint64_t steps, inputs, hidden, width;
};

// The largest magnitude of an operand's values; 0 if the call has none.
double most_of(const Draft& d, std::string_view name) {
  for (const Operand& operand : d.operands) {
    if (operand.read && operand.elements != 0 && operand.name == name) return operand.seen.most;
  }
  return 0;
}

struct Errors {
  double h = 0, c = 0, largest = 0;  // largest: the magnitude of h
  bool exact = true;                 // all numbers are integers below 2^24
};

// Bounds of the errors of h and c after all steps.
Errors errors(const Draft& d, const Sizes& s) {
  const double w = most_of(d, "w"), r = most_of(d, "r"), x = most_of(d, "x"), p = most_of(d, "peepholes");
  const double bias = most_of(d, "bias_w") + most_of(d, "bias_r"), projection = most_of(d, "projection");
  const auto inputs = static_cast<double>(s.inputs), width = static_cast<double>(s.width),
             hidden = static_cast<double>(s.hidden);
  Errors e;
  e.largest = most_of(d, "h0");
  double c = most_of(d, "c0");
  const bool relu = s.cell == TUFF_RNN_CELL_RELU;
  for (uint64_t i = 0; i < s.steps; ++i) {
    const double size = inputs * w * x + width * r * e.largest + bias + p * c;
    // Products of either operand order, the additions of their parts, and what h (and c) bring along.
    const double sum = gamma(inputs + width + 8) * size + width * r * e.h + p * e.c;
    constexpr double kFunction = 16 * kU;  // sigma and tanh, to 4 ULP each, with the products around them
    if (relu) {
      e.h = sum, e.largest = size;
      e.exact = e.exact && size < 0x1p24;
      continue;
    }
    e.exact = false;
    if (s.cell == TUFF_RNN_CELL_TANH) {
      e.h = sum + kFunction, e.largest = 1;
    } else if (s.cell == TUFF_RNN_CELL_GRU) {
      // r, then n with r or r h in a product, then the mean of n and h. A mean is at most the larger of the two.
      const double inner = width * r * (e.largest + e.h) + bias;
      const double n = sum + (sum / 4 + kFunction) * inner + kFunction;
      e.largest = std::max(1.0, e.largest);
      e.h = n + e.h + (sum / 4 + kFunction) * (1 + e.largest) + kFunction * e.largest;
    } else {
      e.c = e.c + (sum / 4 + kFunction) * (c + 1) + sum + kFunction * (c + 1);
      c += 1;
      e.h = e.c + sum / 4 + p * e.c / 4 + kFunction;
      e.largest = 1;
      if (projection != 0) {
        e.h = hidden * projection * e.h + gamma(hidden + 3) * hidden * projection;
        e.largest = hidden * projection;
      }
    }
  }
  return e;
}

void draw_rnn(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw), cell = static_cast<int32_t>(draw.below(4)),
                direction = static_cast<int32_t>(draw.below(3));
  const bool lstm = cell == TUFF_RNN_CELL_LSTM;
  const uint64_t directions = direction == TUFF_RNN_DIRECTION_BOTH ? 2 : 1, gates = lstm                        ? 4
                                                                                    : cell == TUFF_RNN_CELL_GRU ? 3
                                                                                                                : 1;
  const uint64_t batch = d.extent(draw_size(draw, 4), 0, 4), steps = d.extent(draw_size(draw, 4), 0, 4);
  const uint64_t inputs = d.extent(draw.between(1, 9), 1, 9), hidden = d.extent(draw.between(1, 20), 1, 20);
  const uint64_t proj = lstm && draw.one_in(3) ? d.extent(draw.between(1, 9), 1, 9) : 0,
                 width = proj != 0 ? proj : hidden;
  d.set("dtype", dtype), d.set("cell", cell), d.set("direction", direction);
  d.set("gate_order", static_cast<int32_t>(draw.below(2)));
  if (cell == TUFF_RNN_CELL_GRU) d.set("linear_before_reset", static_cast<int32_t>(draw.below(2)));
  d.set("batch", batch), d.set("steps", steps), d.set("input_size", inputs), d.set("hidden_size", hidden);
  d.set("proj_size", proj);
  if (draw.one_in(4)) d.real("clip", draw.of({0.5, 3.0}));
  const bool runs = batch != 0 && steps != 0;
  // [steps][batch] or [batch][steps], with gaps.
  uint64_t x_strides[2] = {batch * inputs, inputs},
           y_strides[3] = {batch * directions * width, directions * width, width};
  if (draw.one_in(2)) {
    const uint64_t row = inputs + d.loose().below(3), out = width + d.loose().below(3), both = directions * out;
    if (draw.one_in(2)) {
      x_strides[0] = row, x_strides[1] = steps * row;
      y_strides[0] = both, y_strides[1] = steps * both, y_strides[2] = out;
    } else {
      x_strides[0] = batch * row + d.loose().below(2), x_strides[1] = row;
      y_strides[0] = batch * both, y_strides[1] = out, y_strides[2] = batch * out;
    }
    if (runs) d.list("x_strides", x_strides), d.list("y_strides", y_strides);
  }
  const uint64_t rows = gates * hidden, gap = draw.one_in(3) ? d.loose().below(4) : 0;
  d.set("bias_stride", gap == 0 && d.free.one_in(2) ? 0 : rows + gap);
  const Axis x[] = {{steps, x_strides[0]}, {batch, x_strides[1]}, {inputs, 1}};
  const std::vector<Axis> y = {{steps, y_strides[0]}, {batch, y_strides[1]}, {directions, y_strides[2]}, {width, 1}};
  d.input("x", dtype, footprint(x), Fill::integers, 2);
  d.input("w", dtype, runs ? directions * rows * inputs : 0, Fill::integers, 1);
  d.input("r", dtype, runs ? directions * rows * width : 0, Fill::integers, 1);
  for (const char* name : {"bias_w", "bias_r"}) {
    if (draw.one_in(2)) d.input(name, dtype, runs ? (directions - 1) * (rows + gap) + rows : 0, Fill::integers, 2);
  }
  if (lstm && draw.one_in(3)) d.input("peepholes", dtype, runs ? directions * 3 * hidden : 0, Fill::integers, 1);
  if (proj != 0) d.input("projection", dtype, runs ? directions * proj * hidden : 0, Fill::integers, 1);
  if (draw.one_in(2)) {
    d.input("lengths", TUFF_I32, runs ? batch : 0, Fill::indices, static_cast<double>(steps) + 2);
  }
  const uint64_t of_h = directions * batch * width, of_c = directions * batch * hidden;
  const bool h0 = draw.one_in(2), c0 = lstm && draw.one_in(2);
  if (h0) d.input("h0", dtype, of_h, Fill::integers, 2);
  if (c0) d.input("c0", dtype, of_c, Fill::integers, 2);
  const Sizes sizes{cell, runs ? steps : 0, inputs, hidden, width};
  const auto allowed = [&d, sizes, dtype](bool of_c_state) {
    return [&d, sizes, dtype, of_c_state](uint64_t, double value) {
      const Errors e = errors(d, sizes);
      if (e.exact) return 0.0;
      // Both backends round to the type: by half a unit each, on either side of a unit.
      return (of_c_state ? e.c : e.h) + (dtype == TUFF_F32 ? 0 : spacing(dtype, std::fabs(value) + e.h));
    };
  };
  if (draw.one_in(8) || !runs) {
    // No y.
  } else {
    Operand& output = d.output("y", dtype, footprint(y));
    output.axes = y, output.allowed = allowed(false);
  }
  if (draw.one_in(2)) {
    Operand& state = d.output("hn", dtype, of_h);
    state.allowed = allowed(false);
    if (h0 && d.free.one_in(3)) state.same = d.index_of("h0");
  }
  if (lstm && draw.one_in(2)) {
    Operand& state = d.output("cn", dtype, of_c);
    state.allowed = allowed(true);
    if (c0 && d.free.one_in(3)) state.same = d.index_of("c0");
  }
  d.suits = [&d, sizes, dtype] {
    for (const Operand& operand : d.operands) {
      if (!operand.read || operand.elements == 0 || std::string_view(operand.name) == "lengths") continue;
      if (!operand.seen.integral || operand.seen.most > 4) return false;
    }
    // Numbers of relu that the type still has.
    return errors(d, sizes).largest < (dtype == TUFF_F16 ? 3e4 : 1e30);
  };
}

constexpr Description kRecurrent[] = {{"tuff_rnn", "rnn", draw_rnn}};

}  // namespace

std::span<const Description> describe_recurrent() { return kRecurrent; }

}  // namespace tuff_fuzz
