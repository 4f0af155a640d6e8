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
  double h = 0, c = 0, largest = 0;        // largest: the magnitude of h
  bool exact = true;                       // all numbers are integers below 2^24
  double sum = 0, most_c = 0, most_h = 0;  // of all steps: the error of a gate's sum, the magnitudes of c and h
};

// For an h of this magnitude, where a kernel in PTX multiplies the sums of its parts (docs/rnn.md).
double left_out(const Draft& d, double h) {
  for (const Operand& operand : d.operands) {
    if (std::string_view("r") != operand.name) continue;
    if (operand.dtype == TUFF_F32) return 0x1p-22 * h;
    return operand.dtype == TUFF_F16 ? std::max(0x1p-23 * h, 0x1p-25) : 0x1p-17 * h;
  }
  return 0;
}

constexpr double kFunction = 16 * kU;  // sigma and tanh, to 4 ULP each, with the products around them

// Bounds of the errors of h and c after all steps.
Errors errors(const Draft& d, const Sizes& s) {
  const double w = most_of(d, "w"), r = most_of(d, "r"), x = most_of(d, "x"), p = most_of(d, "peepholes");
  const double bias = most_of(d, "bias_w") + most_of(d, "bias_r"), projection = most_of(d, "projection");
  const auto inputs = static_cast<double>(s.inputs), width = static_cast<double>(s.width),
             hidden = static_cast<double>(s.hidden);
  Errors e;
  e.largest = e.most_h = most_of(d, "h0");
  double c = most_of(d, "c0");
  e.most_c = c;
  const bool relu = s.cell == TUFF_RNN_CELL_RELU;
  for (uint64_t i = 0; i < s.steps; ++i) {
    const double size = inputs * w * x + width * r * e.largest + bias + p * c;
    // Products of either operand order, the additions of their parts, and what h (and c) bring along.
    const double sum = gamma(inputs + width + 8) * size + width * r * (e.h + left_out(d, e.largest)) + p * e.c;
    e.sum = std::max(e.sum, sum);
    if (relu) {
      e.h = sum, e.largest = size;
      e.most_h = std::max(e.most_h, e.largest);
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
    e.most_h = std::max(e.most_h, e.largest), e.most_c = std::max(e.most_c, c);
  }
  return e;
}

// A bound of a magnitude, and of its error.
struct Bound {
  double most = 0, error = 0;
};
// A sum of so many products with numbers of magnitude `by`, which have the error `of_by`.
Bound sum_of(double count, Bound a, double by, double of_by = 0) {
  return {count * a.most * by, count * (a.error * by + a.most * of_by) + gamma(count + 12) * count * a.most * by};
}
Bound operator+(Bound a, Bound b) { return {a.most + b.most, a.error + b.error + 4 * kU * (a.most + b.most)}; }

struct Gradients {
  Bound h, c, sums, of_input, projected;  // the largest of all steps; of_input: by the sums that W's products enter
};

// Bounds of the gradients by states and sums. The slopes of sigma and tanh are at most 1 / 4 and 1, and change with a
// sum by less than it does. Exact gradients of relu have the error 0, which what is added here does not know.
Gradients gradients(const Draft& d, const Sizes& s, const Errors& e) {
  const double r = most_of(d, "r"), p = most_of(d, "peepholes"), projection = most_of(d, "projection");
  const double bias = most_of(d, "bias_r"), dy = most_of(d, "dy"), slope = e.sum + kFunction;
  const auto width = static_cast<double>(s.width), hidden = static_cast<double>(s.hidden);
  const double rows = hidden * (s.cell == TUFF_RNN_CELL_LSTM ? 4 : s.cell == TUFF_RNN_CELL_GRU ? 3 : 1);
  const double most_h = e.most_h + e.h, most_c = e.most_c + e.c;
  Bound h{most_of(d, "dhn"), 0}, c{most_of(d, "dcn"), 0};
  Gradients all{h, c, {}, {}, {}};
  const auto largest = [](Bound& to, Bound from) {
    to.most = std::max(to.most, from.most), to.error = std::max(to.error, from.error);
  };
  // A factor of magnitude `by`, and its error.
  const auto times = [](Bound a, double by, double error) {
    return Bound{a.most * by, a.error * by + (a.most + a.error) * error + 6 * kU * a.most * by};
  };
  for (uint64_t i = 0; i < s.steps; ++i) {
    h = h + Bound{dy, 0};
    largest(all.projected, h);
    Bound sums, input, direct;
    if (s.cell == TUFF_RNN_CELL_LSTM) {
      const Bound out = projection != 0 ? sum_of(width, h, projection) : h;
      const Bound o = times(out, 0.25, slope + e.c + kFunction);
      const Bound by_c = c + times(out, 1, slope + 2 * (e.c + kFunction)) + times(o, p, 0);
      const Bound in = times(by_c, 0.25, 2 * slope), forget = times(by_c, 0.25 * most_c, e.c / 4 + most_c * slope);
      sums = times(by_c, 1, 2 * slope);
      largest(sums, o), largest(sums, in), largest(sums, forget);
      c = times(by_c, 1, slope) + times(in, p, 0) + times(forget, p, 0);
      input = sums;
    } else if (s.cell == TUFF_RNN_CELL_GRU) {
      const Bound n = times(h, 1, 2 * slope), z = times(h, (most_h + 1) / 4, (most_h + 1) * slope + e.h + slope);
      // By the reset gate, whichever way it is applied; and by what its product multiplies.
      const double inner = width * r * most_h + bias;
      const Bound after = times(n, inner / 4, e.sum + inner * slope), product = sum_of(hidden, n, r);
      const Bound before = times(product, most_h / 4, e.h / 4 + most_h * slope);
      largest(sums, n), largest(sums, z), largest(sums, after), largest(sums, before);
      input = sums, direct = times(h, 1, slope) + times(product, 1, slope);
    } else {
      sums = input = times(h, 1, s.cell == TUFF_RNN_CELL_RELU ? 0 : 2 * slope);
    }
    largest(all.sums, sums), largest(all.of_input, input);
    h = direct + sum_of(rows, sums, r);
    // A sequence that has ended keeps what it has.
    h = {std::max(h.most, all.h.most), std::max(h.error, all.h.error)};
    c = {std::max(c.most, all.c.most), std::max(c.error, all.c.error)};
    all.h = h, all.c = c;
  }
  return all;
}

struct Drawn {
  int32_t dtype, cell;
  bool lstm, runs, projected;
  uint64_t directions, batch, steps, inputs, hidden, width, rows, gap;
  uint64_t x_strides[2], y_strides[3];
};

// A layer and what it reads, but for initial states. Of what is to be differentiated, a sum may be limited only if both
// backends agree on which are: the sums of a single step, which are integers.
Drawn draw_layer(Draft& d, const char* strides, bool derive) {
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
  const bool clipped = draw.one_in(4) && (!derive || (steps <= 1 && cell != TUFF_RNN_CELL_GRU));
  if (clipped) d.real("clip", draw.of({0.5, 3.0}));
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
    if (runs) d.list("x_strides", x_strides), d.list(strides, y_strides);
  }
  const uint64_t rows = gates * hidden, gap = draw.one_in(3) ? d.loose().below(4) : 0;
  d.set("bias_stride", gap == 0 && d.free.one_in(2) ? 0 : rows + gap);
  const Axis x[] = {{steps, x_strides[0]}, {batch, x_strides[1]}, {inputs, 1}};
  d.input("x", dtype, footprint(x), Fill::integers, 2);
  d.input("w", dtype, runs ? directions * rows * inputs : 0, Fill::integers, 1);
  d.input("r", dtype, runs ? directions * rows * width : 0, Fill::integers, 1);
  for (const char* name : {"bias_w", "bias_r"}) {
    if (draw.one_in(2)) d.input(name, dtype, runs ? (directions - 1) * (rows + gap) + rows : 0, Fill::integers, 2);
  }
  if (lstm && draw.one_in(3) && !(derive && clipped))
    d.input("peepholes", dtype, runs ? directions * 3 * hidden : 0, Fill::integers, 1);
  if (proj != 0) d.input("projection", dtype, runs ? directions * proj * hidden : 0, Fill::integers, 1);
  if (draw.one_in(2)) {
    d.input("lengths", TUFF_I32, runs ? batch : 0, Fill::indices, static_cast<double>(steps) + 2);
  }
  return {.dtype = dtype,
          .cell = cell,
          .lstm = lstm,
          .runs = runs,
          .projected = proj != 0,
          .directions = directions,
          .batch = batch,
          .steps = steps,
          .inputs = inputs,
          .hidden = hidden,
          .width = width,
          .rows = rows,
          .gap = gap,
          .x_strides = {x_strides[0], x_strides[1]},
          .y_strides = {y_strides[0], y_strides[1], y_strides[2]}};
}

bool integral(const Draft& d, double most) {
  for (const Operand& operand : d.operands) {
    if (!operand.read || operand.elements == 0 || std::string_view(operand.name) == "lengths") continue;
    if (!operand.seen.integral || operand.seen.most > most) return false;
  }
  return true;
}

void draw_rnn(Draft& d) {
  Draw& draw = d.shape;
  const Drawn of = draw_layer(d, "y_strides", false);
  const int32_t dtype = of.dtype;
  const std::vector<Axis> y = {
      {of.steps, of.y_strides[0]}, {of.batch, of.y_strides[1]}, {of.directions, of.y_strides[2]}, {of.width, 1}};
  const uint64_t of_h = of.directions * of.batch * of.width, of_c = of.directions * of.batch * of.hidden;
  const bool h0 = draw.one_in(2), c0 = of.lstm && draw.one_in(2);
  if (h0) d.input("h0", dtype, of_h, Fill::integers, 2);
  if (c0) d.input("c0", dtype, of_c, Fill::integers, 2);
  const Sizes sizes{of.cell, of.runs ? of.steps : 0, of.inputs, of.hidden, of.width};
  const auto allowed = [&d, sizes, dtype](bool of_c_state) {
    return [&d, sizes, dtype, of_c_state](uint64_t, double value) {
      const Errors e = errors(d, sizes);
      if (e.exact) return 0.0;
      // Both backends round to the type: by half a unit each, on either side of a unit.
      return (of_c_state ? e.c : e.h) + (dtype == TUFF_F32 ? 0 : spacing(dtype, std::fabs(value) + e.h));
    };
  };
  if (draw.one_in(8) || !of.runs) {
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
  if (of.lstm && draw.one_in(2)) {
    Operand& state = d.output("cn", dtype, of_c);
    state.allowed = allowed(true);
    if (c0 && d.free.one_in(3)) state.same = d.index_of("c0");
  }
  d.suits = [&d, sizes, dtype] {
    if (!integral(d, 4)) return false;
    // Numbers of relu that the type still has.
    return errors(d, sizes).largest < (dtype == TUFF_F16 ? 3e4 : 1e30);
  };
}

void draw_rnn_backward(Draft& d) {
  Draw& draw = d.shape;
  const Drawn of = draw_layer(d, "dy_strides", true);
  const int32_t dtype = of.dtype;
  const uint64_t of_h = of.directions * of.batch * of.width, of_c = of.directions * of.batch * of.hidden;
  const auto state = [&](const char* name, uint64_t elements) { d.input(name, dtype, elements, Fill::integers, 2); };
  if (draw.one_in(2)) state("h0", of_h);
  if (of.lstm && draw.one_in(2)) state("c0", of_c);
  const bool dhn = draw.one_in(2), dcn = of.lstm && draw.one_in(2);
  if (dhn) state("dhn", of_h);
  if (dcn) state("dcn", of_c);
  const Axis y[] = {
      {of.steps, of.y_strides[0]}, {of.batch, of.y_strides[1]}, {of.directions, of.y_strides[2]}, {of.width, 1}};
  if (draw.one_in(2) || !(dhn || dcn)) d.input("dy", dtype, of.runs ? footprint(y) : 0, Fill::integers, 2);
  const Sizes sizes{of.cell, of.runs ? of.steps : 0, of.inputs, of.hidden, of.width};
  const auto terms = static_cast<double>(of.steps * of.batch);
  enum class By : uint8_t { x, w, r, bias, peepholes, projection, h, c };
  const auto bound = [&d, sizes, terms, of](By by) -> Bound {
    const Errors e = errors(d, sizes);
    const Gradients g = gradients(d, sizes, e);
    switch (by) {
      case By::x: return sum_of(static_cast<double>(of.directions * of.rows), g.of_input, most_of(d, "w"));
      case By::w: return sum_of(terms, g.of_input, most_of(d, "x"));
      // A GRU's may be the product with r o h, of which r is at most 1.
      case By::r: return sum_of(terms, g.sums, e.most_h + e.h, e.h + (e.most_h + e.h) * (e.sum + kFunction));
      case By::bias: return sum_of(terms, g.sums, 1);
      case By::peepholes: return sum_of(terms, g.sums, e.most_c + e.c, e.c);
      case By::projection: return sum_of(terms, g.projected, 1, e.c + e.sum + 4 * kFunction);
      case By::h: return g.h;
      default: return g.c;
    }
  };
  const auto wanted = [&](const char* name, uint64_t elements, By by, uint32_t odds = 2) -> Operand* {
    if (!draw.one_in(odds)) return nullptr;
    Operand& output = d.output(name, dtype, elements);
    output.allowed = [bound, by, dtype](uint64_t, double value) {
      const double error = bound(by).error;
      return error + (dtype == TUFF_F32 ? 2 * kU * std::fabs(value) : spacing(dtype, std::fabs(value) + error));
    };
    return &output;
  };
  const std::vector<Axis> x = {{of.steps, of.x_strides[0]}, {of.batch, of.x_strides[1]}, {of.inputs, 1}};
  if (of.runs) {
    if (Operand* dx = wanted("dx", footprint(x), By::x)) dx->axes = x;
    d.list("dx_strides", of.x_strides);
  }
  wanted("dw", of.directions * of.rows * of.inputs, By::w), wanted("dr", of.directions * of.rows * of.width, By::r);
  const std::vector<Axis> bias = {{of.directions, of.rows + of.gap}, {of.rows, 1}};
  for (const char* name : {"dbias_w", "dbias_r"}) {
    if (Operand* gradient = wanted(name, footprint(bias), By::bias)) gradient->axes = bias;
  }
  if (of.lstm) wanted("dpeepholes", of.directions * 3 * of.hidden, By::peepholes);
  if (of.projected) wanted("dprojection", of.directions * of.width * of.hidden, By::projection);
  Operand* const dh0 = wanted("dh0", of_h, By::h);
  if (dh0 != nullptr && dhn && d.free.one_in(3)) dh0->same = d.index_of("dhn");
  if (of.lstm) {
    Operand* const dc0 = wanted("dc0", of_c, By::c);
    if (dc0 != nullptr && dcn && d.free.one_in(3)) dc0->same = d.index_of("dcn");
  }
  d.suits = [&d, sizes, dtype, bound] {
    if (!integral(d, 4)) return false;
    // For relu, both backends agree on which sums are above 0 only if they are exact.
    const Errors e = errors(d, sizes);
    if (sizes.cell == TUFF_RNN_CELL_RELU && !e.exact) return false;
    const double most = dtype == TUFF_F16 ? 3e4 : 1e30;
    for (const By by : {By::x, By::w, By::r, By::bias, By::peepholes, By::projection, By::h, By::c}) {
      const Bound all = bound(by);
      if (!(all.most + all.error < most)) return false;
    }
    return true;
  };
}

constexpr Description kRecurrent[] = {{"tuff_rnn", "rnn", draw_rnn}, {"tuff_rnn_backward", "rnn", draw_rnn_backward}};

}  // namespace

std::span<const Description> describe_recurrent() { return kRecurrent; }

}  // namespace tuff_fuzz
