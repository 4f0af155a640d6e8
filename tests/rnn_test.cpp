// Layers of recurrent networks against their equations in double, where each number carries the error that f32 and the
// functions of tuff.h may have caused up to it; and exactly, where all sums are of small integers.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

#include "support/rnn_problem.hpp"

namespace tuff_test::rnn_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
// Functions of at most 4 ULP (docs/accuracy.md), each at most 2 u of the value; the derivatives are at most 1/4 and 1,
// and values between 0 and 1, and between -1 and 1.
Number sigma(Number x) {
  const double value = 1 / (1 + std::exp(-x.value));
  return {value, std::min(x.error / 4 + 8 * kU * value, 1.0)};
}
Number hyperbolic(Number x) {
  const double value = std::tanh(x.value);
  return {value, std::min(x.error + 8 * kU * std::fabs(value), 2.0)};
}

// The operands of a case, rounded to its type, and the equations.
struct Problem {
  explicit Problem(const RnnCase& c) : s(c) {
    uint64_t seed = 1;
    const auto draw = [&](uint64_t count, float scale) {
      if (s.whole) return integers(count, 1, seed++);
      return rounded(s.dtype, uniforms(count, -scale, scale, seed++));
    };
    const uint64_t d = s.directions(), rows = s.gates() * s.hidden;
    x = draw(s.x_elements(), 1.5f);
    // An error of h is multiplied by sums of a row's magnitudes: of at most four.
    const float of_h = 0.7f * std::min(1.0f, 12.0f / static_cast<float>(s.width()));
    w = draw(d * rows * s.inputs, 0.7f), r = draw(d * rows * s.width(), of_h);
    const uint64_t bias = (d - 1) * s.bias_stride() + rows;
    bias_w = draw(bias, 0.5f), bias_r = draw(bias, 0.5f);
    peepholes = draw(d * 3 * s.hidden, 0.8f), projection = draw(d * s.proj * s.hidden, 0.7f);
    h0 = draw(d * s.batch * s.width(), 1), c0 = draw(d * s.batch * s.hidden, 1);
    const uint64_t state = d * s.batch;
    y.value.assign(s.y_elements(), static_cast<double>(poison())), y.bound.assign(s.y_elements(), 0);
    hn.value.resize(state * s.width()), hn.bound.resize(state * s.width());
    cn.value.resize(state * s.hidden), cn.bound.resize(state * s.hidden);
    for (uint64_t direction = 0; direction < d; ++direction) {
      for (uint64_t b = 0; b < s.batch; ++b) run(direction, b);
    }
  }

  const RnnCase& s;
  std::vector<float> x, w, r, bias_w, bias_r, peepholes, projection, h0, c0;
  Expected y, hn, cn;

 private:
  using Vector = std::vector<Number>;

  Number clipped(Number sum) const {
    if (s.clip > 0) sum.value = std::min(std::max(sum.value, -s.clip), s.clip);
    return sum;
  }
  // A row of weights times a vector: GEMM's bound, and the errors of the vector itself.
  static Number dot(const float* row, const Vector& v) {
    double value = 0, magnitude = 0, error = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      const double weight = row[i];
      value += weight * v[i].value;
      error += std::fabs(weight) * v[i].error;
      magnitude += std::fabs(weight) * (std::fabs(v[i].value) + v[i].error);
    }
    return {value, error + gamma(static_cast<double>(v.size()) + 3) * magnitude};
  }
  Number of_input(uint64_t d, char gate, uint64_t j, const Vector& v) const {
    const uint64_t row = s.place(gate) * s.hidden + j;
    const Number bias{s.bias_w ? bias_w[d * s.bias_stride() + row] : 0};
    return dot(&w[(d * s.gates() * s.hidden + row) * s.inputs], v) + bias;
  }
  // What kernels in PTX multiply is not quite h.
  Vector split(Vector h) const {
    if (s.whole) return h;
    for (Number& one : h) {
      one.error += split_error(s.dtype, std::fabs(one.value) + one.error);
    }
    return h;
  }
  Number of_state(uint64_t d, char gate, uint64_t j, const Vector& v) const {
    const uint64_t row = s.place(gate) * s.hidden + j;
    const Number bias{s.bias_r ? bias_r[d * s.bias_stride() + row] : 0};
    return dot(&r[(d * s.gates() * s.hidden + row) * s.width()], v) + bias;
  }
  Number peephole(uint64_t d, uint64_t which, uint64_t j) const {
    return {s.peepholes ? peepholes[(d * 3 + which) * s.hidden + j] : 0};
  }

  void step(uint64_t d, const Vector& in, Vector& state, Vector& c) const {
    Vector next(s.hidden);
    const Vector h = split(state);
    if (s.cell == kLstm) {
      for (uint64_t j = 0; j < s.hidden; ++j) {
        const auto sum = [&](char gate) { return of_input(d, gate, j, in) + of_state(d, gate, j, h); };
        const Number i = sigma(clipped(sum('i') + peephole(d, 0, j) * c[j]));
        const Number f = sigma(clipped(sum('f') + peephole(d, 2, j) * c[j]));
        c[j] = f * c[j] + i * hyperbolic(clipped(sum('g')));
        next[j] = sigma(clipped(sum('o') + peephole(d, 1, j) * c[j])) * hyperbolic(c[j]);
      }
      if (s.proj != 0) {
        Vector projected(s.proj);
        for (uint64_t j = 0; j < s.proj; ++j) projected[j] = dot(&projection[(d * s.proj + j) * s.hidden], next);
        next = projected;
      }
    } else if (s.cell == kGru) {
      Vector reset(s.hidden), gated(s.hidden);
      for (uint64_t j = 0; j < s.hidden; ++j) {
        reset[j] = sigma(clipped(of_input(d, 'r', j, in) + of_state(d, 'r', j, h)));
        gated[j] = reset[j] * h[j];
      }
      for (uint64_t j = 0; j < s.hidden; ++j) {
        const Number z = sigma(clipped(of_input(d, 'z', j, in) + of_state(d, 'z', j, h)));
        const Number inner = s.linear_before_reset ? reset[j] * of_state(d, 'n', j, h) : of_state(d, 'n', j, gated);
        const Number n = hyperbolic(clipped(of_input(d, 'n', j, in) + inner));
        next[j] = (Number{1} + Number{-z.value, z.error}) * n + z * state[j];
      }
    } else {
      for (uint64_t j = 0; j < s.hidden; ++j) {
        const Number sum = clipped(of_input(d, 's', j, in) + of_state(d, 's', j, h));
        next[j] = s.cell == kTanh ? hyperbolic(sum) : Number{std::max(sum.value, 0.0), sum.error};
      }
    }
    state = next;
  }

  void run(uint64_t d, uint64_t b) {
    Vector h(s.width()), c(s.hidden);
    const uint64_t row = d * s.batch + b;
    for (uint64_t j = 0; j < s.width() && s.initial; ++j) h[j].value = h0[row * s.width() + j];
    for (uint64_t j = 0; j < s.hidden && s.initial; ++j) c[j].value = c0[row * s.hidden + j];
    const uint64_t length = s.length(b);
    const bool backwards = s.direction == kReverse || d == 1;
    const auto put = [&](uint64_t t, uint64_t j, Number n) {
      const uint64_t at = s.y_at(t, b, d) + j;
      y.value[at] = n.value, y.bound[at] = s.whole ? 0 : n.error;
    };
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t t = backwards ? length - 1 - i : i;
      Vector in(s.inputs);
      for (uint64_t j = 0; j < s.inputs; ++j) in[j].value = x[s.x_at(t, b) + j];
      step(d, in, h, c);
      for (uint64_t j = 0; j < s.width(); ++j) put(t, j, h[j]);
    }
    for (uint64_t t = length; t < s.steps; ++t) {
      for (uint64_t j = 0; j < s.width(); ++j) put(t, j, {});
    }
    for (uint64_t j = 0; j < s.width(); ++j) {
      hn.value[row * s.width() + j] = h[j].value, hn.bound[row * s.width() + j] = s.whole ? 0 : h[j].error;
    }
    for (uint64_t j = 0; j < s.hidden; ++j) {
      cn.value[row * s.hidden + j] = c[j].value, cn.bound[row * s.hidden + j] = c[j].error;
    }
  }
};

// The operands of a problem on the device.
struct Operands {
  Operands(tuff_context context, const Problem& p)
      : s(p.s),
        x(context, s.dtype, p.x, s.shift),
        w(context, s.dtype, p.w, s.shift),
        r(context, s.dtype, p.r, s.shift),
        bias_w(context, s.dtype, p.bias_w, s.shift),
        bias_r(context, s.dtype, p.bias_r, s.shift),
        peepholes(context, s.dtype, p.peepholes, s.shift),
        projection(context, s.dtype, p.projection, s.shift),
        h0(context, s.dtype, p.h0, s.shift),
        c0(context, s.dtype, p.c0, s.shift),
        y(context, s.dtype, p.y.value.size(), s.shift),
        hn(context, s.dtype, p.hn.value.size(), s.shift),
        cn(context, s.dtype, p.cn.value.size(), s.shift),
        lengths(context, TUFF_I32, lengths_bytes(s.lengths)) {}

  tuff_rnn_desc desc() const {
    tuff_rnn_desc d{};
    d.struct_size = sizeof d;
    d.dtype = s.dtype, d.cell = s.cell, d.direction = s.direction, d.gate_order = s.order;
    d.linear_before_reset = s.linear_before_reset;
    d.batch = s.batch, d.steps = s.steps, d.input_size = s.inputs, d.hidden_size = s.hidden, d.proj_size = s.proj;
    d.clip = s.clip;
    d.x = x, d.w = w, d.r = r;
    if (s.bias_w) d.bias_w = bias_w;
    if (s.bias_r) d.bias_r = bias_r;
    if (s.peepholes) d.peepholes = peepholes;
    if (s.proj != 0) d.projection = projection;
    if (!s.lengths.empty()) d.lengths = lengths;
    if (s.initial) d.h0 = h0;
    if (s.initial && s.cell == kLstm) d.c0 = c0;
    if (s.outputs) d.y = y;
    if (s.finals) d.hn = s.in_place ? h0 : hn;
    if (s.finals && s.cell == kLstm) d.cn = s.in_place ? c0 : cn;
    if (s.rows != RnnRows::dense) {
      std::ranges::copy(s.x_strides(), d.x_strides);
      std::ranges::copy(s.y_strides(), d.y_strides);
      d.bias_stride = s.bias_stride();
    }
    return d;
  }

  const RnnCase& s;
  StoredTensor x, w, r, bias_w, bias_r, peepholes, projection, h0, c0, y, hn, cn;
  TypedTensor lengths;
};

std::vector<RnnCase> cases() {
  std::vector<RnnCase> all;
  const auto add = [&](const RnnCase& row) { all.push_back(row); };
  const auto cells = [&](const RnnCase& row) { each_cell(row, add); };
  for (const int32_t direction : {kForward, kReverse, kBoth}) {
    cells({.direction = direction});
    cells({.direction = direction,
           .order = kOnnx,
           .batch = 3,
           .steps = 5,
           .lengths = {5, 0, 2},
           .rows = RnnRows::padded});
    cells({.direction = direction, .batch = 3, .steps = 4, .lengths = {-7, 3, 9}, .rows = RnnRows::batch_first});
  }
  // Sizes around those of blocks and workgroups.
  for (const uint64_t hidden : {1, 3, 4, 8, 17, 64}) {
    cells({.direction = kBoth, .batch = 1, .steps = 3, .inputs = 1, .hidden = hidden});
    cells({.batch = 5, .steps = 2, .inputs = 33, .hidden = hidden, .shift = 1});
  }
  cells({.batch = 70, .steps = 3, .inputs = 20, .hidden = 37});
  // Enough steps and sequences for weights that are packed once.
  cells({.batch = 70, .steps = 5, .inputs = 20, .hidden = 37, .shift = 1});
  cells({.direction = kBoth, .batch = 9, .steps = 4, .inputs = 16, .hidden = 130, .rows = RnnRows::batch_first});
  cells({.batch = 8, .steps = 4, .inputs = 3, .hidden = 300, .bias_w = false, .lengths = {4, 0, 1, 2, 3, 4, 9, -1}});
  cells({.direction = kBoth, .batch = 6, .steps = 5, .hidden = 8, .dtype = TUFF_F16});
  add({.direction = kBoth, .batch = 17, .steps = 4, .hidden = 21, .proj = 9});
  add({.cell = kRelu, .batch = 20, .steps = 4, .hidden = 16, .whole = true});
  cells({.batch = 1, .steps = 40, .inputs = 12, .hidden = 13, .clip = 0.6});
  cells({.direction = kBoth, .batch = 9, .steps = 3, .inputs = 100, .hidden = 130, .rows = RnnRows::batch_first});
  // Enough steps for a kernel that computes many: with one, two and four units of an invocation, and several
  // workgroups.
  cells({.direction = kBoth, .batch = 7, .steps = 9, .inputs = 5, .hidden = 64, .lengths = {9, 0, 3, 8, 12, 1, -1}});
  cells({.direction = kBoth, .batch = 3, .steps = 8, .inputs = 3, .hidden = 30, .rows = RnnRows::padded, .shift = 1});
  cells({.direction = kReverse, .batch = 130, .steps = 10, .inputs = 4, .hidden = 9, .dtype = TUFF_F16});
  cells({.batch = 5, .steps = 8, .inputs = 6, .hidden = 126, .rows = RnnRows::batch_first});
  // Nothing to do, and only the state.
  cells({.batch = 0});
  cells({.direction = kBoth, .steps = 0});
  cells({.steps = 0, .initial = false});
  cells({.outputs = false});
  cells({.finals = false});
  cells({.direction = kBoth, .in_place = true});
  cells({.direction = kBoth, .bias_w = false});
  cells({.bias_r = false, .initial = false});
  cells({.bias_w = false, .bias_r = false, .initial = false, .shift = 3});
  // What only an LSTM has.
  for (const int32_t direction : {kForward, kReverse, kBoth}) {
    add({.direction = direction, .peepholes = true});
    add({.direction = direction, .order = kOnnx, .clip = 0.4, .peepholes = true, .shift = 1});
    add({.direction = direction, .batch = 3, .proj = 4, .lengths = {1, 4, 2}});
    add({.direction = direction, .order = kOnnx, .hidden = 21, .proj = 33, .peepholes = true, .rows = RnnRows::padded});
  }
  add({.batch = 1, .steps = 9, .hidden = 30, .proj = 1, .in_place = true});
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    cells({.direction = kBoth, .batch = 3, .dtype = dtype, .lengths = {4, 1, 3}, .shift = 1});
    cells({.order = kOnnx, .inputs = 16, .hidden = 32, .dtype = dtype, .rows = RnnRows::padded});
    add({.direction = kBoth, .proj = 3, .dtype = dtype, .peepholes = true, .in_place = true});
  }
  // Exactly: sums of integers, of which relu makes larger ones, below 2^24.
  add({.cell = kRelu, .direction = kBoth, .batch = 3, .steps = 5, .hidden = 9, .lengths = {5, 2, 4}, .whole = true});
  add({.cell = kRelu, .batch = 33, .steps = 3, .inputs = 64, .hidden = 48, .rows = RnnRows::padded, .whole = true});
  return all;
}

// Layers that kernels in PTX compute in one launch: one slice of units and sequences, several of both, more of them
// than multiprocessors, slices in part, all options; and those that they leave to others.
std::vector<RnnCase> one_launch_cases() {
  std::vector<RnnCase> all;
  const auto add = [&](RnnCase row) {
    for (const int32_t dtype : {int32_t{TUFF_F32}, int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
      row.dtype = dtype;
      all.push_back(row);
    }
  };
  const auto cells = [&](const RnnCase& row) { each_cell(row, add); };
  cells({.batch = 1, .steps = 4, .inputs = 8, .hidden = 16});
  cells({.direction = kBoth, .batch = 3, .steps = 7, .hidden = 36, .lengths = {7, 0, 3}});
  cells({.direction = kReverse,
         .order = kOnnx,
         .batch = 9,
         .steps = 5,
         .hidden = 132,
         .rows = RnnRows::padded,
         .shift = 4});
  cells({.direction = kBoth, .batch = 17, .steps = 4, .hidden = 128, .clip = 0.5, .rows = RnnRows::batch_first});
  cells({.batch = 8, .steps = 6, .hidden = 68, .bias_w = false, .bias_r = false, .initial = false});
  cells({.batch = 2, .steps = 4, .hidden = 20, .outputs = false, .in_place = true});
  cells({.batch = 2, .steps = 4, .hidden = 22});
  cells({.batch = 2, .steps = 4, .hidden = 24, .shift = 1});
  add({.direction = kBoth,
       .order = kOnnx,
       .batch = 5,
       .steps = 6,
       .hidden = 48,
       .peepholes = true,
       .lengths = {6, 1, 2, 9, -3}});
  add({.batch = 35, .steps = 4, .inputs = 3, .hidden = 528, .peepholes = true});
  add({.cell = kGru,
       .direction = kBoth,
       .linear_before_reset = true,
       .batch = 70,
       .steps = 4,
       .inputs = 2,
       .hidden = 400});
  add({.batch = 9, .steps = 4, .inputs = 2, .hidden = 640});
  add({.batch = 1, .steps = 4, .inputs = 2, .hidden = 2048});
  return all;
}

using Rnn = Table<RnnCase>;

TEST_P(Rnn, Matches) {
  const RnnCase& s = row();
  const Problem problem(s);
  const Operands on(context(), problem);
  const tuff_rnn_desc desc = on.desc();
  ASSERT_OK(tuff_rnn(context(), &desc));
  if (s.outputs) {
    std::vector<uint64_t> rows;
    for (uint64_t t = 0; t < s.steps; ++t) {
      for (uint64_t b = 0; b < s.batch; ++b) {
        for (uint64_t d = 0; d < s.directions(); ++d) rows.push_back(s.y_at(t, b, d));
      }
    }
    expect_rows(on.y.read(), problem.y, rows, s.width(), s.dtype);
  } else if (s.y_elements() != 0) {
    EXPECT_EQ(bits(on.y.read()[0]), kPoison);
  }
  const auto final_state = [&](const StoredTensor& got, Expected expected) {
    // Without a step they are copies.
    if (s.steps == 0) std::ranges::fill(expected.bound, 0);
    if (s.dtype != TUFF_F32 && s.steps != 0) add_storage(expected, s.dtype);
    expect_matches(got.read(), expected);
  };
  if (s.finals && s.batch != 0) {
    final_state(s.in_place ? on.h0 : on.hn, problem.hn);
    if (s.cell == kLstm) final_state(s.in_place ? on.c0 : on.cn, problem.cn);
  }
  on.x.expect_unchanged(problem.x);
  on.w.expect_unchanged(problem.w);
  on.r.expect_unchanged(problem.r);
  if (!s.in_place) on.h0.expect_unchanged(problem.h0);
}
std::vector<RnnCase> all_cases() {
  std::vector<RnnCase> all = cases();
  std::ranges::copy(one_launch_cases(), std::back_inserter(all));
  return all;
}
TUFF_TABLE(Rnn, RnnCase, all_cases());

// Numbers with two bits beside the first one, among which are those with the largest errors.
TEST(RnnSplit, ErrorIsItsBound) {
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    double most = 0;
    for (int exponent = -30; exponent < 4; ++exponent) {
      for (int bit = 1; bit < 24; ++bit) {
        for (int other = bit; other < 24; ++other) {
          const float h = std::ldexp(1 + std::ldexp(1.0f, -bit) + std::ldexp(1.0f, -other), exponent);
          const float high = rounded(dtype, std::vector{h})[0], low = rounded(dtype, std::vector{h - high})[0];
          const double error = std::fabs(double{h} - double{high} - double{low}), bound = split_error(dtype, double{h});
          ASSERT_LE(error, bound) << name_of(dtype) << " " << h;
          most = std::max(most, error / bound);
        }
      }
    }
    EXPECT_GT(most, 0.99) << name_of(dtype);
  }
}

class RnnOnce : public OnBackend {};

// A sequence does not depend on what follows its end, nor on the other sequences: NaN there does no harm.
TEST_P(RnnOnce, NansStayInTheirSequence) {
  for (const int32_t cell : {kLstm, kGru, kTanh, kRelu}) {
    for (const double clip : {0.0, 0.5}) {
      const RnnCase s{.cell = cell, .direction = kBoth, .batch = 3, .steps = 4, .clip = clip, .lengths = {4, 2, 4}};
      Problem problem(s);
      const float nan = std::numeric_limits<float>::quiet_NaN();
      // Beyond the end of sequence 1, and in step 1 of sequence 2.
      for (uint64_t j = 0; j < s.inputs; ++j) problem.x[(3 * s.batch + 1) * s.inputs + j] = nan;
      problem.x[(1 * s.batch + 2) * s.inputs] = nan;
      const Operands on(context(), problem);
      const tuff_rnn_desc desc = on.desc();
      ASSERT_OK(tuff_rnn(context(), &desc));
      const std::vector<float> y = on.y.read(), hn = on.hn.read();
      const uint64_t width = s.directions() * s.hidden;
      for (uint64_t t = 0; t < s.steps; ++t) {
        for (uint64_t b = 0; b < s.batch; ++b) {
          for (uint64_t i = 0; i < width; ++i) {
            const uint64_t at = (t * s.batch + b) * width + i;
            const bool spoilt = b == 2 && (i < s.hidden ? t >= 1 : t <= 1);
            EXPECT_EQ(std::isnan(y[at]), spoilt) << "cell " << cell << " t " << t << " b " << b << " i " << i;
            if (!spoilt) {
              EXPECT_NEAR(y[at], problem.y.value[at], problem.y.bound[at]);
            }
          }
        }
      }
      for (uint64_t d = 0; d < 2; ++d) {
        for (uint64_t b = 0; b < s.batch; ++b) EXPECT_EQ(std::isnan(hn[(d * s.batch + b) * s.hidden]), b == 2);
      }
    }
  }
}

// Large sums: gates are 0 or 1, tanh -1 or 1, and nothing becomes NaN.
TEST_P(RnnOnce, SaturatedGates) {
  for (const int32_t cell : {kLstm, kGru, kTanh}) {
    const RnnCase s{.cell = cell, .batch = 2, .steps = 3};
    Problem problem(s);
    for (float& v : problem.x) v = v < 0 ? -3e30f : 3e30f;
    const Operands on(context(), problem);
    const tuff_rnn_desc desc = on.desc();
    ASSERT_OK(tuff_rnn(context(), &desc));
    for (const float y : on.y.read()) EXPECT_LE(std::fabs(y), 1);
  }
}

// The steps of a sequence in two calls, where the second goes on from the state of the first, and in one.
TEST_P(RnnOnce, GoesOnFromAState) {
  for (const int32_t cell : {kLstm, kGru}) {
    const RnnCase s{.cell = cell, .linear_before_reset = cell == kGru, .batch = 3, .steps = 7, .in_place = true};
    const Problem problem(s);
    const Operands on(context(), problem);
    tuff_rnn_desc desc = on.desc();
    const auto part = [&](uint64_t first, uint64_t count) {
      tuff_buffer x = 0, y = 0;
      const uint64_t in = s.batch * s.inputs * 4, out = s.batch * s.hidden * 4;
      ASSERT_OK(tuff_view(on.x, first * in, count * in, &x));
      ASSERT_OK(tuff_view(on.y, first * out, count * out, &y));
      const OwnBuffer own_x(x), own_y(y);
      desc.x = x, desc.y = y, desc.steps = count;
      ASSERT_OK(tuff_rnn(context(), &desc));
    };
    part(0, 3), part(3, 4);
    expect_matches(on.y.read(), problem.y);
    expect_matches(on.h0.read(), problem.hn);
  }
}

TEST_P(RnnOnce, Misuse) {
  const RnnCase s{.direction = kBoth, .batch = 2, .steps = 3, .proj = 4, .peepholes = true, .lengths = {1, 2}};
  const Problem problem(s);
  const Operands on(context(), problem);
  const auto wrong = [&](const std::function<void(tuff_rnn_desc&)>& change, const char* word,
                         tuff_status status = kArgument) {
    tuff_rnn_desc desc = on.desc();
    change(desc);
    EXPECT_FAILS(tuff_rnn(context(), &desc), status, "tuff_rnn", word);
  };
  wrong([](auto& d) { d.dtype = TUFF_F64; }, "f64", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.dtype = 99; }, "dtype");
  wrong([](auto& d) { d.cell = 4; }, "cell");
  wrong([](auto& d) { d.cell = -1; }, "cell");
  wrong([](auto& d) { d.direction = 3; }, "direction");
  wrong([](auto& d) { d.gate_order = 2; }, "gate_order");
  wrong([](auto& d) { d.linear_before_reset = 1; }, "linear_before_reset");
  wrong([](auto& d) { d.linear_before_reset = 2; }, "linear_before_reset");
  wrong([](auto& d) { d.input_size = 0; }, "input_size");
  wrong([](auto& d) { d.hidden_size = 0; }, "hidden_size");
  wrong([](auto& d) { d.clip = -1; }, "clip");
  wrong([](auto& d) { d.clip = std::nan(""); }, "clip");
  // What only an LSTM has.
  wrong([](auto& d) { d.cell = kGru; }, "proj_size");
  wrong([](auto& d) { d.cell = kGru, d.proj_size = 0, d.projection = 0; }, "peepholes");
  wrong([](auto& d) { d.cell = kTanh, d.proj_size = 0, d.projection = d.peepholes = 0; }, "c0");
  wrong([](auto& d) { d.cell = kTanh, d.proj_size = 0, d.projection = d.peepholes = d.c0 = 0; }, "cn");
  wrong([](auto& d) { d.proj_size = 0; }, "projection");
  wrong([](auto& d) { d.projection = 0; }, "projection", TUFF_ERROR_INVALID_HANDLE);
  // Sizes that do not fit, or wrap.
  wrong([](auto& d) { d.steps = 40; }, "x");
  wrong([](auto& d) { d.hidden_size = 7; }, "w");
  wrong([](auto& d) { d.proj_size = 5; }, "r");
  wrong([](auto& d) { d.batch = uint64_t{1} << 62; }, "x");
  wrong([](auto& d) { d.hidden_size = uint64_t{1} << 62; }, "hidden_size");
  wrong([](auto& d) { d.input_size = UINT64_MAX; }, "x");
  wrong([](auto& d) { d.steps = uint64_t{1} << 31; }, "steps", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.bias_stride = UINT64_MAX; }, "bias_w");
  wrong([](auto& d) { d.y_strides[0] = UINT64_MAX; }, "y");
  wrong([](auto& d) { d.x_strides[1] = 4; }, "x_strides");
  wrong([](auto& d) { d.y_strides[2] = 3; }, "y_strides");
  wrong([](auto& d) { d.y_strides[1] = 7; }, "y_strides");
  wrong([](auto& d) { d.x = 0; }, "x", TUFF_ERROR_INVALID_HANDLE);
  wrong([](auto& d) { d.w = 0; }, "w", TUFF_ERROR_INVALID_HANDLE);
  wrong([](auto& d) { d.r = 0; }, "r", TUFF_ERROR_INVALID_HANDLE);
  // Outputs that overlap an operand or each other.
  wrong([](auto& d) { d.y = d.x; }, "y");
  wrong([](auto& d) { d.hn = d.y; }, "hn");
  wrong([](auto& d) { d.hn = d.c0; }, "hn");
  wrong([](auto& d) { d.cn = d.h0; }, "cn");
  wrong([](auto& d) { d.y = d.h0; }, "y");
  // None of them has written anything.
  for (const StoredTensor* output : {&on.y, &on.hn, &on.cn}) {
    for (const float value : output->read()) EXPECT_EQ(bits(value), kPoison);
  }
  // Without steps, or without sequences, weights are not needed.
  tuff_rnn_desc desc = on.desc();
  desc.steps = 0, desc.x = desc.w = desc.r = desc.y = desc.lengths = desc.projection = 0;
  EXPECT_OK(tuff_rnn(context(), &desc));
  EXPECT_EQ(on.hn.read(), problem.h0);
  EXPECT_EQ(on.cn.read(), problem.c0);
  // Whatever stands there then may be too small, and anywhere.
  const OwnBuffer nothing(context(), 0), few(context(), 8);
  tuff_buffer odd = 0;
  ASSERT_OK(tuff_view(few, 3, 1, &odd));
  for (const tuff_buffer any : {static_cast<tuff_buffer>(nothing), odd}) {
    desc.x = desc.w = desc.r = desc.lengths = desc.projection = any;
    EXPECT_OK(tuff_rnn(context(), &desc));
    EXPECT_EQ(on.hn.read(), problem.h0);
    EXPECT_EQ(on.cn.read(), problem.c0);
  }
  EXPECT_OK(tuff_free(odd));
  desc = on.desc();
  desc.batch = 0, desc.x = desc.y = desc.h0 = desc.c0 = desc.hn = desc.cn = 0;
  EXPECT_OK(tuff_rnn(context(), &desc));
}

// A graph has the same steps, which follow new inputs and states.
void expect_same_in_a_graph(tuff_context stream, const RnnCase& s) {
  const Problem problem(s);
  const Operands captured(stream, problem), eager(stream, problem);
  const tuff_rnn_desc desc = captured.desc(), again = eager.desc();
  tuff_graph graph = 0;
  ASSERT_OK(tuff_graph_begin(stream));
  ASSERT_OK(tuff_rnn(stream, &desc));
  ASSERT_OK(tuff_graph_end(stream, &graph));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(tuff_graph_launch(stream, graph));
    ASSERT_OK(tuff_rnn(stream, &again));
  }
  EXPECT_EQ(captured.y.read(), eager.y.read());
  EXPECT_EQ(captured.c0.read(), eager.c0.read());
  EXPECT_OK(tuff_graph_destroy(graph));
}
// Without sequences no parameter is looked at, and sizes and strides may be any number.
TEST_P(RnnOnce, NoSequences) {
  const Tensor parameters(context(), std::vector<float>(8, 1));
  tuff_rnn_desc desc{};
  desc.struct_size = sizeof desc, desc.dtype = TUFF_F32, desc.cell = TUFF_RNN_CELL_GRU;
  desc.direction = TUFF_RNN_DIRECTION_BOTH, desc.steps = 1, desc.input_size = 5, desc.hidden_size = 9;
  desc.w = desc.r = desc.bias_w = desc.bias_r = parameters;
  desc.bias_stride = (1ull << 62) + 1;
  EXPECT_OK(tuff_rnn(context(), &desc));
  desc.hidden_size = ~0ull / 3, desc.bias_stride = 39;
  EXPECT_OK(tuff_rnn(context(), &desc));
}

TEST_P(RnnOnce, InAGraph) {
  expect_same_in_a_graph(context(), {.batch = 2, .steps = 5, .in_place = true});
  expect_same_in_a_graph(context(), {.batch = 9, .steps = 6, .hidden = 48, .dtype = TUFF_F16, .in_place = true});
}

// Layers that each want all multiprocessors of a GPU, in streams of their own at once: all end, with the same numbers.
TEST_P(RnnOnce, ManyAtOnce) {
  if (!vulkan()) GTEST_SKIP() << "hosts compute within the call, so layers are never at once";
  constexpr size_t kStreams = 4;
  const RnnCase s{.batch = 25, .steps = 6, .inputs = 2, .hidden = 528, .dtype = TUFF_F16};
  const Problem problem(s);
  std::vector<std::unique_ptr<Operands>> all;
  std::array<tuff_stream, kStreams> streams{};
  for (tuff_stream& stream : streams) {
    ASSERT_OK(tuff_stream_create(context(), nullptr, &stream));
    all.push_back(std::make_unique<Operands>(context(), problem));
  }
  ASSERT_OK(tuff_synchronize(context()));
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < kStreams; ++i) {
      const tuff_rnn_desc desc = all[i]->desc();
      ASSERT_OK(tuff_rnn(streams[i], &desc));
    }
  }
  for (const tuff_stream stream : streams) EXPECT_OK(tuff_synchronize(stream));
  Expected y = problem.y;
  add_storage(y, s.dtype);
  expect_matches(all[0]->y.read(), y);
  for (size_t i = 1; i < kStreams; ++i) expect_same_bits(all[i]->y.read(), all[0]->y.read());
  for (const tuff_stream stream : streams) EXPECT_OK(tuff_stream_destroy(stream));
}

// NaN and infinities in states: each spoils its own sequence alone.
TEST_P(RnnOnce, WhatIsNotFinite) {
  for (const int32_t dtype : {int32_t{TUFF_F32}, int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    for (const int32_t cell : {kLstm, kGru, kTanh}) {
      const RnnCase s{
          .cell = cell, .linear_before_reset = cell == kGru, .batch = 3, .steps = 5, .hidden = 32, .dtype = dtype};
      Problem problem(s);
      problem.h0[5] = std::numeric_limits<float>::quiet_NaN();
      // Sums become infinite or NaN, and c and h with them or not, as in f32.
      problem.h0[2 * s.hidden + 5] = std::numeric_limits<float>::infinity();
      const Operands on(context(), problem);
      const tuff_rnn_desc desc = on.desc();
      ASSERT_OK(tuff_rnn(context(), &desc));
      const std::vector<float> y = on.y.read();
      Expected expected = problem.y;
      if (dtype != TUFF_F32) add_storage(expected, dtype);
      for (uint64_t t = 0; t < s.steps; ++t) {
        for (uint64_t j = 0; j < s.hidden; ++j) {
          const uint64_t at = t * s.batch * s.hidden + j, next = at + s.hidden, last = next + s.hidden;
          EXPECT_TRUE(std::isnan(y[at])) << "cell " << cell << " t " << t << " unit " << j;
          EXPECT_NEAR(y[next], expected.value[next], expected.bound[next]);
          // One launch for all steps of f32 multiplies parts of weights, of both signs (docs/rnn.md).
          const bool saturated = std::fabs(y[last]) == 1 || (dtype == TUFF_F32 && std::isnan(y[last]));
          EXPECT_TRUE(t != 0 || cell != kTanh || saturated) << "tanh of infinity, not " << y[last];
        }
      }
    }
  }
}

TUFF_ON_BACKENDS(RnnOnce);

}  // namespace
}  // namespace tuff_test::rnn_test
