// Gradients of recurrent networks against a tape: the equations of tuff.h are computed in double with a note of each
// product, function and sum, and the notes are read backwards. Numbers and gradients carry the error that f32 and the
// functions of tuff.h may have caused. Finite differences check the tape itself.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string_view>

#include "support/rnn_problem.hpp"

namespace tuff_test::rnn_backward_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
// What is computed, in order. A value is the sum of products of two earlier ones (or of one and 1), or a function.
class Tape {
 public:
  struct Term {
    int a, b = -1;
  };

  int leaf(double value) { return add({value, 0}); }
  int sum(const std::vector<Term>& terms) {
    Number total;
    double magnitude = 0;
    std::vector<Slope> slopes;
    for (const Term& term : terms) {
      const Number a = nodes_[static_cast<size_t>(term.a)].number,
                   b = term.b < 0 ? Number{1} : nodes_[static_cast<size_t>(term.b)].number;
      total.value += a.value * b.value;
      total.error += std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error;
      magnitude += (std::fabs(a.value) + a.error) * (std::fabs(b.value) + b.error);
      slopes.push_back({term.a, b});
      if (term.b >= 0) slopes.push_back({term.b, a});
    }
    total.error += gamma(static_cast<double>(terms.size()) + 4) * magnitude;
    return add(total, slopes);
  }
  // Functions of at most 4 ULP (docs/accuracy.md). A slope is made of the value: v (1 - v), or 1 - v^2.
  int sigma(int x) {
    const double value = 1 / (1 + std::exp(-of(x).value)), error = of(x).error / 4 + 8 * kU;
    return add({value, error}, {{x, {value * (1 - value), error + 4 * kU}}});
  }
  int tanh(int x) {
    const double value = std::tanh(of(x).value), error = of(x).error + 8 * kU;
    return add({value, error}, {{x, {1 - value * value, 2 * error + 4 * kU}}});
  }
  int relu(int x) {
    const bool positive = of(x).value > 0;
    return add({positive ? of(x).value : 0, of(x).error}, {{x, {positive ? 1.0 : 0.0, 0}}});
  }
  int clipped(int x, double limit) {
    if (!(limit > 0) || std::fabs(of(x).value) <= limit) return x;
    return add({std::copysign(limit, of(x).value), 0});
  }
  int one_minus(int x) { return add({1 - of(x).value, of(x).error + kU}, {{x, {-1, 0}}}); }

  Number of(int node) const { return nodes_[static_cast<size_t>(node)].number; }
  // Adds to the gradient by a value.
  void seed(int node, Number by) {
    Node& to = nodes_[static_cast<size_t>(node)];
    to.gradient += by.value, to.error += by.error, to.magnitude += std::fabs(by.value) + by.error, ++to.terms;
  }
  void backward() {
    for (size_t i = nodes_.size(); i-- > 0;) {
      const Number all = gradient(static_cast<int>(i));
      for (const Slope& slope : nodes_[i].slopes) seed(slope.of, all * slope.by);
    }
  }
  // The terms may be added in any order.
  Number gradient(int node) const {
    const Node& n = nodes_[static_cast<size_t>(node)];
    return {n.gradient, n.error + gamma(n.terms + 8) * n.magnitude};
  }

 private:
  struct Slope {
    int of;
    Number by;
  };
  struct Node {
    Number number;
    std::vector<Slope> slopes;
    double gradient = 0, error = 0, magnitude = 0, terms = 0;
  };
  int add(Number number, std::vector<Slope> slopes = {}) {
    nodes_.push_back({number, std::move(slopes)});
    return static_cast<int>(nodes_.size()) - 1;
  }

  std::vector<Node> nodes_;
};

const char* const kReads[] = {"x", "w", "r", "bias_w", "bias_r", "peepholes", "projection", "h0", "c0"};

// The operands of a case, rounded to its type, and the gradients by them.
struct Problem {
  explicit Problem(const RnnCase& c) : s(c) {
    uint64_t seed = 1;
    const auto draw = [&](uint64_t count, float scale) {
      return rounded(s.dtype, uniforms(count, -scale, scale, seed++));
    };
    const uint64_t d = s.directions(), rows = s.gates() * s.hidden, bias = (d - 1) * s.bias_stride() + rows;
    // Errors of gradients are multiplied by sums of magnitudes along rows and columns of r.
    const float of_h = 0.7f * std::min(1.0f, 8.0f / static_cast<float>(s.width()));
    read["x"] = draw(s.x_elements(), 1.5f);
    read["w"] = draw(d * rows * s.inputs, 0.7f), read["r"] = draw(d * rows * s.width(), of_h);
    read["bias_w"] = draw(bias, 0.5f), read["bias_r"] = draw(bias, 0.5f);
    read["peepholes"] = draw(d * 3 * s.hidden, 0.8f), read["projection"] = draw(d * s.proj * s.hidden, 0.7f);
    read["h0"] = draw(d * s.batch * s.width(), 1), read["c0"] = draw(d * s.batch * s.hidden, 1);
    dy = draw(s.y_elements(), 1), dhn = draw(d * s.batch * s.width(), 1), dcn = draw(d * s.batch * s.hidden, 1);
  }

  // The sum of all outputs times their gradients; with `derive` also the gradients by all operands.
  double run(bool derive) {
    Tape tape;
    std::map<std::string, std::vector<int>> nodes;
    for (const char* name : kReads) {
      for (const float value : read[name]) nodes[name].push_back(tape.leaf(value));
    }
    Number total;
    const auto output = [&](int node, double by) {
      total.value += tape.of(node).value * by;
      tape.seed(node, {by, 0});
    };
    zero = tape.leaf(0);
    for (uint64_t d = 0; d < s.directions(); ++d) {
      for (uint64_t b = 0; b < s.batch; ++b) sequence(tape, nodes, d, b, output);
    }
    if (!derive) return total.value;
    tape.backward();
    for (const char* name : kReads) {
      Expected& wanted = gradients[name];
      wanted.value.clear(), wanted.bound.clear();
      for (const int node : nodes[name]) {
        const Number gradient = tape.gradient(node);
        wanted.value.push_back(gradient.value), wanted.bound.push_back(gradient.error);
      }
    }
    return total.value;
  }

  bool has_bias(std::string_view bias) const { return bias == "bias_w" ? s.bias_w : s.bias_r; }

  const RnnCase& s;
  std::map<std::string, std::vector<float>> read;
  std::vector<float> dy, dhn, dcn;
  std::map<std::string, Expected> gradients;

 private:
  using Nodes = std::map<std::string, std::vector<int>>;
  using Vector = std::vector<int>;
  int zero = 0;

  void sequence(Tape& tape, Nodes& nodes, uint64_t d, uint64_t b, const std::function<void(int, double)>& output) {
    const uint64_t row = d * s.batch + b, length = s.length(b);
    Vector h(s.width(), zero), c(s.hidden, zero);
    if (s.initial) {
      for (uint64_t j = 0; j < s.width(); ++j) h[j] = nodes["h0"][row * s.width() + j];
      for (uint64_t j = 0; j < s.hidden && s.cell == kLstm; ++j) c[j] = nodes["c0"][row * s.hidden + j];
    }
    const bool backwards = s.direction == kReverse || d == 1;
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t t = backwards ? length - 1 - i : i;
      const auto first = nodes["x"].begin() + static_cast<std::ptrdiff_t>(s.x_at(t, b));
      step(tape, nodes, d, Vector(first, first + static_cast<std::ptrdiff_t>(s.inputs)), h, c);
      for (uint64_t j = 0; j < s.width() && s.outputs; ++j) output(h[j], dy[s.y_at(t, b, d) + j]);
    }
    for (uint64_t j = 0; j < s.width() && s.finals; ++j) output(h[j], dhn[row * s.width() + j]);
    for (uint64_t j = 0; j < s.hidden && s.finals && s.cell == kLstm; ++j) output(c[j], dcn[row * s.hidden + j]);
  }

  void step(Tape& tape, Nodes& nodes, uint64_t d, const Vector& x, Vector& h, Vector& c) {
    using Terms = std::vector<Tape::Term>;
    const auto product = [&](const char* matrix, const char* bias, char gate, uint64_t j, const Vector& v) {
      const uint64_t line = s.place(gate) * s.hidden + j, first = (d * s.gates() * s.hidden + line) * v.size();
      Terms terms;
      for (uint64_t k = 0; k < v.size(); ++k) terms.push_back({nodes[matrix][first + k], v[k]});
      if (has_bias(bias)) terms.push_back({nodes[bias][d * s.bias_stride() + line]});
      return terms;
    };
    const auto joined = [](Terms a, const Terms& b) {
      a.insert(a.end(), b.begin(), b.end());
      return a;
    };
    const auto both = [&](char gate, uint64_t j, const Vector& v) {
      return joined(product("w", "bias_w", gate, j, x), product("r", "bias_r", gate, j, v));
    };
    const auto clipped = [&](const Terms& terms) { return tape.clipped(tape.sum(terms), s.clip); };
    Vector next(s.hidden);
    if (s.cell == kLstm) {
      const auto peephole = [&](uint64_t which, uint64_t j) {
        return s.peepholes ? Terms{{nodes["peepholes"][(d * 3 + which) * s.hidden + j], c[j]}} : Terms{};
      };
      for (uint64_t j = 0; j < s.hidden; ++j) {
        const int i = tape.sigma(clipped(joined(both('i', j, h), peephole(0, j)))),
                  f = tape.sigma(clipped(joined(both('f', j, h), peephole(2, j)))),
                  g = tape.tanh(clipped(both('g', j, h)));
        c[j] = tape.sum({{f, c[j]}, {i, g}});
        const int o = tape.sigma(clipped(joined(both('o', j, h), peephole(1, j))));
        next[j] = tape.sum({{o, tape.tanh(c[j])}});
      }
      if (s.proj != 0) {
        Vector projected(s.proj);
        for (uint64_t p = 0; p < s.proj; ++p) {
          Terms terms;
          for (uint64_t j = 0; j < s.hidden; ++j)
            terms.push_back({nodes["projection"][(d * s.proj + p) * s.hidden + j], next[j]});
          projected[p] = tape.sum(terms);
        }
        next = projected;
      }
    } else if (s.cell == kGru) {
      Vector r(s.hidden), reset(s.hidden);
      for (uint64_t j = 0; j < s.hidden; ++j) {
        r[j] = tape.sigma(clipped(both('r', j, h)));
        if (!s.linear_before_reset) reset[j] = tape.sum({{r[j], h[j]}});
      }
      for (uint64_t j = 0; j < s.hidden; ++j) {
        const int z = tape.sigma(clipped(both('z', j, h)));
        const Terms inner = s.linear_before_reset ? Terms{{r[j], tape.sum(product("r", "bias_r", 'n', j, h))}}
                                                  : product("r", "bias_r", 'n', j, reset);
        const int n = tape.tanh(clipped(joined(product("w", "bias_w", 'n', j, x), inner)));
        next[j] = tape.sum({{tape.one_minus(z), n}, {z, h[j]}});
      }
    } else {
      for (uint64_t j = 0; j < s.hidden; ++j) {
        const int sum = clipped(both('s', j, h));
        next[j] = s.cell == kTanh ? tape.tanh(sum) : tape.relu(sum);
      }
    }
    h = next;
  }
};

// The operands of a problem on the device, and room for gradients.
struct Operands {
  Operands(tuff_context context, const Problem& p) : s(p.s) {
    for (const char* name : kReads) {
      const std::vector<float>& values = p.read.at(name);
      read.emplace(name, StoredTensor(context, s.dtype, values, s.shift));
      written.emplace(name, StoredTensor(context, s.dtype, values.size(), s.shift));
    }
    read.emplace("dy", StoredTensor(context, s.dtype, p.dy, s.shift));
    read.emplace("dhn", StoredTensor(context, s.dtype, p.dhn, s.shift));
    read.emplace("dcn", StoredTensor(context, s.dtype, p.dcn, s.shift));
    lengths.emplace_back(context, TUFF_I32, lengths_bytes(s.lengths));
  }

  tuff_rnn_backward_desc desc() const {
    const auto in = [&](const char* name) -> tuff_buffer { return read.at(name); };
    const auto out = [&](const char* name) -> tuff_buffer { return written.at(name); };
    tuff_rnn_backward_desc d{};
    d.struct_size = sizeof d;
    d.dtype = s.dtype, d.cell = s.cell, d.direction = s.direction, d.gate_order = s.order;
    d.linear_before_reset = s.linear_before_reset;
    d.batch = s.batch, d.steps = s.steps, d.input_size = s.inputs, d.hidden_size = s.hidden, d.proj_size = s.proj;
    d.clip = s.clip;
    d.x = in("x"), d.w = in("w"), d.r = in("r");
    if (s.bias_w) d.bias_w = in("bias_w");
    if (s.bias_r) d.bias_r = in("bias_r");
    if (s.peepholes) d.peepholes = in("peepholes");
    if (s.proj != 0) d.projection = in("projection"), d.dprojection = out("projection");
    if (!s.lengths.empty()) d.lengths = lengths.front();
    if (s.initial) d.h0 = in("h0");
    if (s.outputs) d.dy = in("dy");
    if (s.finals) d.dhn = in("dhn");
    d.dx = out("x"), d.dw = out("w"), d.dr = out("r"), d.dbias_w = out("bias_w"), d.dbias_r = out("bias_r");
    d.dh0 = s.in_place ? in("dhn") : out("h0");
    if (s.cell == kLstm) {
      if (s.initial) d.c0 = in("c0");
      if (s.finals) d.dcn = in("dcn");
      d.dpeepholes = out("peepholes"), d.dc0 = s.in_place ? in("dcn") : out("c0");
    }
    if (s.rows != RnnRows::dense) {
      std::ranges::copy(s.x_strides(), d.x_strides);
      std::ranges::copy(s.x_strides(), d.dx_strides);
      std::ranges::copy(s.y_strides(), d.dy_strides);
      d.bias_stride = s.bias_stride();
    }
    return d;
  }

  const RnnCase& s;
  std::map<std::string, StoredTensor> read, written;
  std::vector<TypedTensor> lengths;
};

std::vector<RnnCase> cases() {
  std::vector<RnnCase> all;
  const auto add = [&](RnnCase row) {
    row.gradients = true;
    all.push_back(row);
  };
  const auto cells = [&](const RnnCase& row) { each_cell(row, add); };
  for (const int32_t direction : {kForward, kReverse, kBoth}) {
    cells({.direction = direction});
    cells({.direction = direction,
           .order = kOnnx,
           .batch = 3,
           .steps = 5,
           .lengths = {5, 0, 2},
           .rows = RnnRows::padded});
    cells({.direction = direction, .batch = 3, .lengths = {-7, 3, 9}, .rows = RnnRows::batch_first, .in_place = true});
  }
  // Sizes around those of blocks and workgroups.
  for (const uint64_t hidden : {1, 4, 17}) {
    cells({.direction = kBoth, .batch = 1, .steps = 3, .inputs = 1, .hidden = hidden});
    cells({.batch = 5, .steps = 2, .inputs = 19, .hidden = hidden, .shift = 1});
  }
  cells({.batch = 33, .steps = 2, .inputs = 3, .hidden = 20});
  cells({.batch = 1, .steps = 1});
  cells({.direction = kBoth, .batch = 1, .steps = 12, .inputs = 3, .hidden = 5, .clip = 0.6});
  cells({.batch = 0});
  cells({.direction = kBoth, .steps = 0});
  cells({.steps = 0, .finals = true, .in_place = true});
  cells({.bias_w = false, .bias_r = false, .initial = false, .outputs = false});
  cells({.direction = kBoth, .finals = false});
  for (const int32_t direction : {kForward, kReverse, kBoth}) {
    add({.direction = direction, .peepholes = true});
    add({.direction = direction, .order = kOnnx, .clip = 0.4, .peepholes = true, .shift = 1});
    add({.direction = direction, .batch = 3, .proj = 4, .lengths = {1, 4, 2}});
    add({.direction = direction, .hidden = 9, .proj = 13, .peepholes = true, .rows = RnnRows::padded});
  }
  for (const int32_t dtype : {int32_t{TUFF_F16}, int32_t{TUFF_BF16}}) {
    cells({.direction = kBoth, .batch = 3, .dtype = dtype, .lengths = {4, 1, 3}, .shift = 1});
    cells({.inputs = 9, .hidden = 11, .dtype = dtype, .rows = RnnRows::padded});
    cells({.steps = 0, .dtype = dtype});
    add({.direction = kBoth, .proj = 3, .dtype = dtype, .peepholes = true, .in_place = true});
  }
  return all;
}

using RnnBackward = Table<RnnCase>;

TEST_P(RnnBackward, Matches) {
  const RnnCase& s = row();
  Problem problem(s);
  problem.run(true);
  const Operands on(context(), problem);
  const tuff_rnn_backward_desc desc = on.desc();
  ASSERT_OK(tuff_rnn_backward(context(), &desc));
  std::vector<uint64_t> of_x, of_bias;
  for (uint64_t t = 0; t < s.steps; ++t) {
    for (uint64_t b = 0; b < s.batch; ++b) of_x.push_back(s.x_at(t, b));
  }
  for (uint64_t d = 0; d < s.directions(); ++d) of_bias.push_back(d * s.bias_stride());
  const auto got = [&](const char* name) { return on.written.at(name).read(); };
  expect_rows(got("x"), problem.gradients["x"], of_x, s.inputs, s.dtype);
  // Without biases these are the gradients by zeros.
  for (const char* name : {"bias_w", "bias_r"}) {
    if (!problem.has_bias(name)) continue;
    expect_rows(got(name), problem.gradients[name], of_bias, s.gates() * s.hidden, s.dtype);
  }
  const auto dense = [&](const StoredTensor& tensor, Expected wanted) {
    if (s.dtype != TUFF_F32) add_storage(wanted, s.dtype);
    expect_matches(tensor.read(), wanted);
  };
  dense(on.written.at("w"), problem.gradients["w"]);
  dense(on.written.at("r"), problem.gradients["r"]);
  if (s.proj != 0) dense(on.written.at("projection"), problem.gradients["projection"]);
  if (s.initial) {
    dense(s.in_place ? on.read.at("dhn") : on.written.at("h0"), problem.gradients["h0"]);
    if (s.cell == kLstm) dense(s.in_place ? on.read.at("dcn") : on.written.at("c0"), problem.gradients["c0"]);
  }
  if (s.cell == kLstm && s.peepholes) dense(on.written.at("peepholes"), problem.gradients["peepholes"]);
  for (const char* name : kReads) on.read.at(name).expect_unchanged(problem.read[name]);
}
TUFF_TABLE(RnnBackward, RnnCase, cases());

// Differences of the tape's own sums: its gradients do not depend on what this file says about slopes.
TEST(RnnBackwardTape, MatchesFiniteDifferences) {
  for (const RnnCase& s :
       {RnnCase{.peepholes = true}, RnnCase{.direction = kBoth, .proj = 3, .lengths = {4, 2}},
        RnnCase{.cell = kGru, .direction = kReverse}, RnnCase{.cell = kGru, .linear_before_reset = true, .clip = 0.8},
        RnnCase{.cell = kTanh, .clip = 0.5}, RnnCase{.cell = kRelu, .direction = kBoth}}) {
    Problem problem(s);
    problem.run(true);
    for (const char* name : kReads) {
      std::vector<float>& values = problem.read[name];
      for (size_t i = 0; i < values.size(); i += 7) {
        // A power of two, so that operands stay what the differences say.
        constexpr float kStep = 0x1p-10f;
        const float kept = values[i];
        values[i] = kept + kStep;
        const double above = problem.run(false), up = static_cast<double>(values[i]);
        values[i] = kept - kStep;
        const double below = problem.run(false), down = static_cast<double>(values[i]);
        values[i] = kept;
        // The error is of third order, and third derivatives of these few steps are below 1000. A kink of relu or of
        // the clip between the two would leave half the difference of slopes; the seeds have none.
        EXPECT_NEAR((above - below) / (up - down), problem.gradients[name].value[i], 200 * 0x1p-20)
            << s.name() << " " << name << i;
      }
    }
  }
}

class RnnBackwardOnce : public OnBackend {};

// Numbers beyond the end of a sequence, and gradients there, have no effect.
TEST_P(RnnBackwardOnce, NansBeyondTheEndHaveNoEffect) {
  for (const int32_t cell : {kLstm, kGru, kTanh, kRelu}) {
    const RnnCase s{.cell = cell, .direction = kBoth, .batch = 2, .steps = 3, .lengths = {3, 1}};
    Problem problem(s);
    problem.run(true);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    for (uint64_t t = 1; t < 3; ++t) {
      for (uint64_t j = 0; j < s.inputs; ++j) problem.read["x"][s.x_at(t, 1) + j] = nan;
      for (uint64_t j = 0; j < 2 * s.hidden; ++j) problem.dy[s.y_at(t, 1, 0) + j] = nan;
    }
    const Operands on(context(), problem);
    const tuff_rnn_backward_desc desc = on.desc();
    ASSERT_OK(tuff_rnn_backward(context(), &desc));
    for (const char* name : {"x", "w", "r", "h0"}) expect_matches(on.written.at(name).read(), problem.gradients[name]);
  }
}

// A sequence without steps adds nothing, whatever its initial state is.
TEST_P(RnnBackwardOnce, NansOfSequencesWithoutStepsHaveNoEffect) {
  for (const int32_t cell : {kLstm, kGru, kTanh, kRelu}) {
    for (const float number : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      const RnnCase s{.cell = cell, .direction = kBoth, .batch = 2, .steps = 3, .lengths = {3, 0}};
      Problem problem(s);
      problem.run(true);
      for (uint64_t d = 0; d < 2; ++d) {
        for (uint64_t j = 0; j < s.hidden; ++j) problem.read["h0"][(d * s.batch + 1) * s.hidden + j] = number;
      }
      const Operands on(context(), problem);
      const tuff_rnn_backward_desc desc = on.desc();
      ASSERT_OK(tuff_rnn_backward(context(), &desc));
      for (const char* name : {"x", "w", "r", "h0"}) {
        expect_matches(on.written.at(name).read(), problem.gradients[name]);
      }
    }
  }
}

// Each gradient alone is what it is among the others.
TEST_P(RnnBackwardOnce, AnySubset) {
  const RnnCase s{.direction = kBoth, .batch = 2, .steps = 3, .proj = 4, .peepholes = true};
  const Problem problem(s);
  const Operands all(context(), problem), single(context(), problem);
  const tuff_rnn_backward_desc desc = all.desc(), every = single.desc();
  ASSERT_OK(tuff_rnn_backward(context(), &desc));
  using Member = tuff_buffer tuff_rnn_backward_desc::*;
  const std::pair<const char*, Member> members[] = {
      {"x", &tuff_rnn_backward_desc::dx},           {"w", &tuff_rnn_backward_desc::dw},
      {"r", &tuff_rnn_backward_desc::dr},           {"bias_w", &tuff_rnn_backward_desc::dbias_w},
      {"bias_r", &tuff_rnn_backward_desc::dbias_r}, {"peepholes", &tuff_rnn_backward_desc::dpeepholes},
      {"h0", &tuff_rnn_backward_desc::dh0},         {"projection", &tuff_rnn_backward_desc::dprojection},
      {"c0", &tuff_rnn_backward_desc::dc0}};
  for (const auto& [name, member] : members) {
    tuff_rnn_backward_desc one = every;
    for (const auto& [other, unwanted] : members) one.*unwanted = 0;
    one.*member = every.*member;
    ASSERT_OK(tuff_rnn_backward(context(), &one));
    EXPECT_EQ(single.written.at(name).read(), all.written.at(name).read()) << name;
  }
}

TEST_P(RnnBackwardOnce, Misuse) {
  const RnnCase s{.direction = kBoth, .batch = 2, .steps = 3, .proj = 4, .peepholes = true, .lengths = {1, 2}};
  const Problem problem(s);
  const Operands on(context(), problem);
  const auto wrong = [&](const std::function<void(tuff_rnn_backward_desc&)>& change, const char* word,
                         tuff_status status = kArgument) {
    tuff_rnn_backward_desc desc = on.desc();
    change(desc);
    EXPECT_FAILS(tuff_rnn_backward(context(), &desc), status, "tuff_rnn_backward", word);
  };
  wrong([](auto& d) { d.dtype = TUFF_F64; }, "f64", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.cell = 4; }, "cell");
  wrong([](auto& d) { d.direction = 3; }, "direction");
  wrong([](auto& d) { d.linear_before_reset = 1; }, "linear_before_reset");
  wrong([](auto& d) { d.hidden_size = 0; }, "hidden_size");
  wrong([](auto& d) { d.clip = -1; }, "clip");
  wrong([](auto& d) { d.dy = d.dhn = d.dcn = 0; }, "dy");
  // What only an LSTM has.
  const auto gru = [](auto& d) {
    d.cell = kGru, d.proj_size = 0, d.projection = d.peepholes = d.c0 = d.dprojection = 0;
  };
  wrong([&](auto& d) { gru(d); }, "dcn");
  wrong([&](auto& d) { gru(d), d.dcn = 0; }, "dc0");
  wrong([&](auto& d) { gru(d), d.dcn = d.dc0 = 0; }, "dpeepholes");
  wrong([](auto& d) { d.proj_size = 0, d.projection = 0; }, "dprojection");
  // Sizes that do not fit, or wrap.
  wrong([](auto& d) { d.steps = 40; }, "x");
  wrong([](auto& d) { d.hidden_size = uint64_t{1} << 62; }, "hidden_size");
  wrong([](auto& d) { d.dy_strides[0] = UINT64_MAX; }, "dy");
  wrong([](auto& d) { d.dx_strides[0] = UINT64_MAX; }, "dx");
  wrong([](auto& d) { d.dx_strides[1] = 4; }, "dx_strides");
  wrong([](auto& d) { d.bias_stride = 3; }, "bias_stride");
  wrong([](auto& d) { d.dw = d.dx; }, "dw");
  wrong([](auto& d) { d.steps = uint64_t{1} << 31; }, "steps", TUFF_ERROR_UNSUPPORTED);
  wrong([](auto& d) { d.w = 0; }, "w", TUFF_ERROR_INVALID_HANDLE);
  // Outputs that overlap an operand or each other.
  wrong([](auto& d) { d.dx = d.x; }, "dx");
  wrong([](auto& d) { d.dr = d.r; }, "dr");
  wrong([](auto& d) { d.dh0 = d.dcn; }, "dh0");
  wrong([](auto& d) { d.dbias_r = d.dbias_w; }, "dbias_r");
  // None of them has written anything.
  for (const auto& [name, output] : on.written) {
    for (const float value : output.read()) EXPECT_EQ(bits(value), kPoison) << name;
  }
}

// A graph computes the same, from what its operands have when it runs.
TEST_P(RnnBackwardOnce, InAGraph) {
  const RnnCase s{.direction = kBoth, .batch = 2, .steps = 5, .in_place = true};
  const Problem problem(s);
  const Operands captured(context(), problem), eager(context(), problem);
  const tuff_rnn_backward_desc desc = captured.desc(), again = eager.desc();
  tuff_graph graph = 0;
  ASSERT_OK(tuff_graph_begin(context()));
  ASSERT_OK(tuff_rnn_backward(context(), &desc));
  ASSERT_OK(tuff_graph_end(context(), &graph));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(tuff_graph_launch(context(), graph));
    ASSERT_OK(tuff_rnn_backward(context(), &again));
  }
  EXPECT_EQ(captured.written.at("w").read(), eager.written.at("w").read());
  EXPECT_EQ(captured.read.at("dcn").read(), eager.read.at("dcn").read());
  EXPECT_OK(tuff_graph_destroy(graph));
}

TUFF_ON_BACKENDS(RnnBackwardOnce);

}  // namespace
}  // namespace tuff_test::rnn_backward_test
