// Steps of optimisers against their formulas in double precision, with a bound that goes along with each number; what
// buffers say of a step; norms of gradients.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

#include "support/bounds.hpp"
#include "support/sample.hpp"
#include "support/stored.hpp"

namespace tuff_test::optimizer_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;

// A number and how far the f32 computed for it may be off. A device may flush denormals.
struct Number {
  double value, error = 0;
};
Number off(double value, double error) { return {value, error + kU * (std::fabs(value) + error) + FLT_MIN}; }
Number exact(double value) { return {value, 0}; }
Number constant(double value) { return off(value, 0); }  // rounded to f32 once
Number operator*(Number a, Number b) {
  return off(a.value * b.value, std::fabs(a.value) * b.error + std::fabs(b.value) * a.error + a.error * b.error);
}
Number operator+(Number a, Number b) { return off(a.value + b.value, a.error + b.error); }
Number operator-(Number a, Number b) { return off(a.value - b.value, a.error + b.error); }
// Divisions and roots are correct to one unit in the last place, which is two roundings.
Number operator/(Number a, Number b) {
  const double value = a.value / b.value;
  return off(value, (a.error + std::fabs(value) * b.error) / (std::fabs(b.value) - b.error) + kU * std::fabs(value));
}
Number root(Number a) {
  const double value = std::sqrt(a.value);
  return off(
      value,
      std::max(std::sqrt(a.value + a.error) - value, value - std::sqrt(std::max(a.value - a.error, 0.0))) + kU * value);
}

struct Options {
  int32_t algorithm = TUFF_OPTIMIZER_SGD;
  int32_t dtype = TUFF_F32, gradient_type = TUFF_F32;
  bool masters = false;
  double momentum = 0, decay = 0, scale = 1;
  bool nesterov = false;
  std::vector<uint64_t> sizes = {5, 0, 300};
  uint64_t shift = 0;  // elements that tensors are moved by, in turn
};

// 170 tensors, more than a dispatch takes.
std::vector<uint64_t> many_sizes() {
  std::vector<uint64_t> many;
  for (uint64_t i = 0; i < 170; ++i) many.push_back(i * 7 % 40);
  return many;
}

std::vector<float> values_of(int32_t dtype, uint64_t count, float low, float high, uint64_t seed) {
  return rounded(dtype, uniforms(count, low, high, seed));
}

// The tensors of a list, and a step of an optimiser with them.
class List {
 public:
  List(tuff_context context, const Options& options) : context_(context), options_(options) {
    desc.struct_size = sizeof desc;
    desc.dtype = options.dtype, desc.algorithm = options.algorithm;
    desc.gradient_type = options.gradient_type == options.dtype ? 0 : options.gradient_type;
    desc.nesterov = options.nesterov ? 1 : 0;
    desc.rate = 0.01, desc.momentum = options.momentum, desc.weight_decay = options.decay;
    if (adaptive()) desc.beta1 = 0.9, desc.beta2 = 0.999, desc.epsilon = 1e-3, desc.step = 3;
    desc.gradient_scale = options.scale == 1 ? 0 : options.scale;
    desc.count = options.sizes.size(), desc.sizes = options.sizes.data();
    for (uint64_t i = 0; i < options.sizes.size(); ++i) {
      const uint64_t n = options.sizes[i], shift = options.shift * (i % 3);
      w.emplace_back(context, options.dtype, values_of(options.dtype, n, -2, 2, 10 * i), shift);
      g.emplace_back(context, options.gradient_type, values_of(options.gradient_type, n, -3, 3, 10 * i + 1), shift);
      if (options.masters) masters.emplace_back(context, uniforms(n, -2, 2, 10 * i + 2), 4 * shift);
      if (moments()) m.emplace_back(context, uniforms(n, -1, 1, 10 * i + 3), 4 * shift);
      if (adaptive()) v.emplace_back(context, uniforms(n, 0, 4, 10 * i + 4), 4 * shift);
    }
    handles_of(w, w_handles), handles_of(g, g_handles), handles_of(masters, master_handles);
    handles_of(m, m_handles), handles_of(v, v_handles);
    desc.parameters = w_handles.data(), desc.gradients = g_handles.data();
    if (options.masters) desc.masters = master_handles.data();
    if (moments()) desc.first_moments = m_handles.data();
    if (adaptive()) desc.second_moments = v_handles.data();
  }

  bool adaptive() const { return options_.algorithm != TUFF_OPTIMIZER_SGD; }
  bool moments() const { return adaptive() || options_.momentum != 0; }
  tuff_status step() const { return tuff_optimizer_step(context_, &desc); }

  // Everything that a step may change.
  std::vector<std::vector<float>> contents() const {
    std::vector<std::vector<float>> all;
    for (const auto& one : w) all.push_back(one.read());
    for (const auto* tensors : {&masters, &m, &v}) {
      for (const auto& one : *tensors) all.push_back(one.read());
    }
    return all;
  }

  tuff_optimizer_desc desc{};
  std::vector<StoredTensor> w, g;
  std::vector<Tensor> masters, m, v;

 private:
  template <typename T>
  static void handles_of(const std::vector<T>& tensors, std::vector<tuff_buffer>& handles) {
    for (const T& one : tensors) handles.push_back(one);
  }
  tuff_context context_;
  const Options options_;
  std::vector<tuff_buffer> w_handles, g_handles, master_handles, m_handles, v_handles;
};

void expect_near(const std::vector<float>& got, const std::vector<Number>& numbers, int32_t dtype = TUFF_F32) {
  Expected expected;
  for (const Number& one : numbers) expected.value.push_back(one.value), expected.bound.push_back(one.error);
  if (dtype != TUFF_F32) add_storage(expected, dtype);
  expect_matches(got, expected);
}

// Makes a step and compares what has changed. The numbers of the step as the device has them: `rate`, and the
// denominators 1 - beta^t.
void expect_step(const List& list, const Options& options, Number rate, Number scale, Number rest1, Number rest2,
                 const std::function<void()>& step) {
  struct Before {
    std::vector<float> w, g, m, v;
  };
  std::vector<Before> before;
  for (size_t i = 0; i < options.sizes.size(); ++i) {
    before.push_back({options.masters ? list.masters[i].read() : list.w[i].read(), list.g[i].read(),
                      list.moments() ? list.m[i].read() : std::vector<float>(),
                      list.adaptive() ? list.v[i].read() : std::vector<float>()});
  }
  step();
  const tuff_optimizer_desc& d = list.desc;
  const Number decay = constant(d.weight_decay), momentum = constant(d.momentum);
  for (size_t i = 0; i < options.sizes.size(); ++i) {
    SCOPED_TRACE(i);
    const Before& old = before[i];
    const uint64_t n = options.sizes[i];
    std::vector<Number> m, v, w, u;
    for (uint64_t j = 0; j < n; ++j) {
      const Number weight = exact(old.w[j]);
      Number g = exact(old.g[j]) * scale;
      if (options.decay != 0 && options.algorithm <= TUFF_OPTIMIZER_ADAM) g = g + decay * weight;
      if (!list.adaptive()) {
        if (options.momentum != 0) {
          m.push_back(momentum * exact(old.m[j]) + g);
          g = options.nesterov ? g + momentum * m.back() : m.back();
        }
        w.push_back(weight - rate * g);
        continue;
      }
      m.push_back(exact(old.m[j]) + constant(1 - d.beta1) * (g - exact(old.m[j])));
      v.push_back(constant(d.beta2) * exact(old.v[j]) + constant(1 - d.beta2) * (g * g));
      const Number direction =
          m.back() * (exact(1) / rest1) / (root(v.back()) * (exact(1) / root(rest2)) + constant(d.epsilon));
      if (options.algorithm == TUFF_OPTIMIZER_LAMB) {
        u.push_back(options.decay != 0 ? direction + decay * weight : direction);
      } else {
        const bool decays = options.algorithm == TUFF_OPTIMIZER_ADAMW && options.decay != 0;
        w.push_back((decays ? weight * (exact(1) - rate * decay) : weight) - rate * direction);
      }
    }
    if (options.algorithm == TUFF_OPTIMIZER_LAMB) {
      Number of_w{0, 0}, of_u{0, 0};
      for (uint64_t j = 0; j < n; ++j) {
        of_w.value += double{old.w[j]} * old.w[j], of_u.value += u[j].value * u[j].value;
        of_u.error += (2 * std::fabs(u[j].value) + u[j].error) * u[j].error;
      }
      const double depth = gamma(sum_depth(n) + 4);
      of_w.error += depth * of_w.value, of_u.error += depth * (of_u.value + of_u.error);
      const Number ratio = of_w.value == 0 || of_u.value == 0 ? exact(1) : root(of_w) / root(of_u);
      for (uint64_t j = 0; j < n; ++j) w.push_back(exact(old.w[j]) - rate * ratio * u[j]);
    }
    if (list.moments()) expect_near(list.m[i].read(), m);
    if (list.adaptive()) expect_near(list.v[i].read(), v);
    if (options.masters) {
      const std::vector<float> master = list.masters[i].read();
      expect_near(master, w);
      expect_same_bits(list.w[i].read(), rounded(options.dtype, master));
    } else {
      expect_near(list.w[i].read(), w, options.dtype);
    }
    list.g[i].expect_unchanged(old.g);
  }
}

// A step whose numbers are those of the descriptor.
void expect_step(const List& list, const Options& options) {
  const tuff_optimizer_desc& d = list.desc;
  const auto t = static_cast<double>(d.step);
  expect_step(list, options, constant(d.rate), constant(options.scale), constant(1 - std::pow(d.beta1, t)),
              constant(1 - std::pow(d.beta2, t)), [&] { ASSERT_OK(list.step()); });
}

std::vector<Options> every_algorithm() {
  std::vector<Options> all(8);
  all[1].decay = 0.1;
  all[2].momentum = 0.9, all[2].scale = 0.25;
  all[3].momentum = 0.9, all[3].nesterov = true, all[3].decay = 0.02;
  all[4].algorithm = TUFF_OPTIMIZER_ADAM, all[4].decay = 0.1;
  all[5].algorithm = TUFF_OPTIMIZER_ADAMW, all[5].decay = 0.1, all[5].scale = 8;
  all[6].algorithm = TUFF_OPTIMIZER_LAMB;
  all[7].algorithm = TUFF_OPTIMIZER_LAMB, all[7].decay = 0.1;
  return all;
}

// 1 - beta^t by a device that reads t: expm1 is correct to 4 ULP, its argument to two roundings, whose effect on the
// result is at most as large.
Number rest_of(double beta, int t) {
  const double value = 1 - std::pow(beta, t);
  return {value, 12 * kU * value};
}

class Optimizer : public OnBackend {};

TEST_P(Optimizer, StepsOfEveryAlgorithmAndType) {
  struct Types {
    int32_t dtype, gradient;
    bool masters;
  };
  const Types types[] = {{TUFF_F32, TUFF_F32, false}, {TUFF_F32, TUFF_F32, true},  {TUFF_F16, TUFF_F16, false},
                         {TUFF_F16, TUFF_F16, true},  {TUFF_BF16, TUFF_F32, true}, {TUFF_BF16, TUFF_BF16, false},
                         {TUFF_F16, TUFF_F32, false}};
  int row = 0;
  for (Options options : every_algorithm()) {
    for (const Types& t : types) {
      if (reduced() && ++row % 3 != 0) continue;
      // On a device each is a kernel of its own.
      const bool always = t.dtype == TUFF_F32 && !t.masters;
      const std::string types_of = std::string(name_of(t.dtype)) + name_of(t.gradient) + (t.masters ? " masters" : "");
      if (vulkan() && !always && !in_sample(types_of + std::to_string(options.algorithm), 3)) continue;
      SCOPED_TRACE(testing::Message() << "algorithm " << options.algorithm << " dtype " << t.dtype << " gradient "
                                      << t.gradient << " masters " << t.masters);
      options.dtype = t.dtype, options.gradient_type = t.gradient, options.masters = t.masters;
      const List list(context(), options);
      expect_step(list, options);
      expect_step(list, options);
    }
  }
}

// One tensor, several in a dispatch, more than a dispatch takes, those long enough for their own, and empty ones; whole
// blocks and parts of them, aligned and not.
TEST_P(Optimizer, ListsOfAnySizes) {
  const std::vector<std::vector<uint64_t>> lists = {
      {1}, {0}, {}, {8, 3}, {4096, 1, 2047, 0, 33}, many_sizes(), {70'001}, {5, 66'000, 9, 131'072, 1000, 65'537}};
  for (const int32_t algorithm : {TUFF_OPTIMIZER_SGD, TUFF_OPTIMIZER_ADAM, TUFF_OPTIMIZER_LAMB}) {
    for (const auto& sizes : lists) {
      for (const uint64_t shift : {0, 1, 4}) {
        const uint64_t elements = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
        if (elements > 60'000 && (shift == 4 || reduced())) continue;
        const std::string name = "list " + std::to_string(algorithm) + " of " + std::to_string(sizes.size()) +
                                 " with " + std::to_string(elements) + " shift " + std::to_string(shift);
        if (vulkan() && !in_sample(name, 3)) continue;
        SCOPED_TRACE(testing::Message() << "algorithm " << algorithm << ", " << sizes.size() << " tensors of "
                                        << elements << ", shift " << shift);
        Options options;
        options.algorithm = algorithm, options.sizes = sizes, options.shift = shift;
        options.dtype = options.gradient_type = shift == 4 ? TUFF_F16 : TUFF_F32;
        const List list(context(), options);
        expect_step(list, options);
      }
    }
  }
}

TEST_P(Optimizer, BuffersSayWhatANumberWould) {
  for (Options options : every_algorithm()) {
    SCOPED_TRACE(options.algorithm);
    List list(context(), options);
    tuff_optimizer_desc& d = list.desc;
    const OwnBuffer steps = uploaded<int32_t>(context(), {4}), skip = uploaded<int32_t>(context(), {0}),
                    rate = uploaded<float>(context(), {0.5f}), factor = uploaded<float>(context(), {3.0f});
    d.step = 0, d.steps = steps, d.skip = skip, d.rate_factor = rate, d.gradient_factor = factor;
    for (int t = 5; t < 7; ++t) {
      expect_step(list, options, constant(d.rate) * exact(0.5), constant(options.scale) * exact(3), rest_of(d.beta1, t),
                  rest_of(d.beta2, t), [&] { ASSERT_OK(list.step()); });
      EXPECT_EQ(downloaded<int32_t>(context(), steps, 1)[0], t);
    }
    // Anything but 0 skips, and the step does not count.
    const auto before = list.contents();
    for (const int32_t flag : {1, -1, 1 << 30}) {
      ASSERT_OK(tuff_copy_htod(context(), skip, 0, &flag, 4));
      ASSERT_OK(list.step());
    }
    const auto after = list.contents();
    for (size_t i = 0; i < before.size(); ++i) expect_same_bits(after[i], before[i]);
    EXPECT_EQ(downloaded<int32_t>(context(), steps, 1)[0], 6);
  }
}

// Numbers of steps that no count has: below 0 is 0, and the largest one stays.
TEST_P(Optimizer, CountsOfStepsAtTheEnds) {
  Options options;
  options.algorithm = TUFF_OPTIMIZER_ADAM;
  List list(context(), options);
  tuff_optimizer_desc& d = list.desc;
  for (const auto& [given, wanted] : std::vector<std::pair<int32_t, int32_t>>{
           {-5, 1}, {INT32_MIN, 1}, {0, 1}, {INT32_MAX - 1, INT32_MAX}, {INT32_MAX, INT32_MAX}}) {
    SCOPED_TRACE(given);
    const OwnBuffer steps = uploaded<int32_t>(context(), {given});
    d.step = 0, d.steps = steps;
    expect_step(list, options, constant(d.rate), exact(1), rest_of(d.beta1, wanted), rest_of(d.beta2, wanted),
                [&] { ASSERT_OK(list.step()); });
    EXPECT_EQ(downloaded<int32_t>(context(), steps, 1)[0], wanted);
  }
}

TEST_P(Optimizer, AGraphMakesAStepWithEachLaunch) {
  Options options;
  options.algorithm = TUFF_OPTIMIZER_LAMB, options.decay = 0.1, options.sizes = {70, 1000, 3, 68'000};
  List list(context(), options), other(context(), options);
  const OwnBuffer steps = uploaded<int32_t>(context(), {0}), other_steps = uploaded<int32_t>(context(), {0});
  const auto set = [](List& of, tuff_buffer buffer) { of.desc.step = 0, of.desc.steps = buffer; };
  set(list, steps), set(other, other_steps);
  tuff_graph graph = 0;
  ASSERT_OK(tuff_graph_begin(context()));
  ASSERT_OK(list.step());
  ASSERT_OK(tuff_graph_end(context(), &graph));
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(tuff_graph_launch(context(), graph));
    ASSERT_OK(other.step());
  }
  const auto one = list.contents(), two = other.contents();
  for (size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], two[i]);
  EXPECT_EQ(downloaded<int32_t>(context(), steps, 1)[0], 3);
  ASSERT_OK(tuff_graph_destroy(graph));
}

// LAMB's ratio for tensors whose squares are no f32, and for those without a length. With a decay of 1 and gradients
// and moments of 0, u is w: the ratio is 1 whatever w is.
TEST_P(Optimizer, LengthsBeyondTheRangeOfSquares) {
  for (const float size : {1e-30f, 1e-20f, 1.0f, 1e18f, 1e25f, 1e37f, 0.0f}) {
    SCOPED_TRACE(size);
    const std::vector<float> w(500, size), zeros(500, 0.0f);
    const Tensor parameter(context(), w), gradient(context(), zeros), m(context(), zeros), v(context(), zeros);
    const tuff_buffer handles[] = {parameter, gradient, m, v};
    const uint64_t n = w.size();
    tuff_optimizer_desc d{};
    d.struct_size = sizeof d;
    d.dtype = TUFF_F32, d.algorithm = TUFF_OPTIMIZER_LAMB, d.count = 1, d.sizes = &n;
    d.parameters = handles, d.gradients = handles + 1, d.first_moments = handles + 2, d.second_moments = handles + 3;
    d.rate = 0.5, d.weight_decay = 1, d.epsilon = 1e-8, d.beta1 = 0.9, d.beta2 = 0.99, d.step = 1;
    ASSERT_OK(tuff_optimizer_step(context(), &d));
    // The root, the ratio and the product: a few roundings.
    for (const float x : parameter.read()) ASSERT_NEAR(x, size / 2, 16 * kU * size);
  }
}

// Each call is refused, and nothing has changed.
TEST_P(Optimizer, Misuse) {
  Options options;
  options.algorithm = TUFF_OPTIMIZER_ADAM, options.sizes = {6, 10};
  const List list(context(), options);
  const auto before = list.contents();
  const OwnBuffer number(context(), 4), half_as_long(context(), 20);
  const tuff_buffer twice[] = {list.w[0], list.w[0]}, small[] = {list.w[0], half_as_long},
                    missing[] = {list.w[0], TUFF_NULL_HANDLE}, stale[] = {list.w[0], 77},
                    gradients[] = {list.g[0], list.w[1]}, moments[] = {list.m[0], list.v[1]};
  struct Row {
    const char* word;
    tuff_status status;
    std::function<void(tuff_optimizer_desc&)> change;
  };
  const uint64_t huge[] = {uint64_t{1} << 63, uint64_t{1} << 63};
  const double infinite = INFINITY, nan = std::nan("");
  const std::vector<Row> rows = {
      {"parameters[1]", kArgument, [&](auto& d) { d.parameters = twice; }},
      {"parameters[1]", kArgument, [&](auto& d) { d.parameters = small; }},
      {"parameters[1]", TUFF_ERROR_INVALID_HANDLE, [&](auto& d) { d.parameters = missing; }},
      {"parameters[1]", TUFF_ERROR_INVALID_HANDLE, [&](auto& d) { d.parameters = stale; }},
      {"gradients[1]", kArgument, [&](auto& d) { d.gradients = gradients; }},
      {"second_moments[1]", kArgument, [&](auto& d) { d.first_moments = moments; }},
      {"parameters", kArgument, [](auto& d) { d.parameters = nullptr; }},
      {"gradients", kArgument, [](auto& d) { d.gradients = nullptr; }},
      {"sizes", kArgument, [](auto& d) { d.sizes = nullptr; }},
      {"sizes", kArgument, [&](auto& d) { d.sizes = huge; }},
      {"first_moments", kArgument, [](auto& d) { d.first_moments = nullptr; }},
      {"second_moments", kArgument, [](auto& d) { d.second_moments = nullptr; }},
      {"second_moments", kArgument,
       [](auto& d) { d.algorithm = 0, d.beta1 = d.beta2 = d.epsilon = 0, d.momentum = 1; }},
      {"first_moments", kArgument, [](auto& d) { d.algorithm = 0, d.second_moments = nullptr; }},
      {"algorithm", kArgument, [](auto& d) { d.algorithm = 4; }},
      {"algorithm", kArgument, [](auto& d) { d.algorithm = -1; }},
      {"dtype", TUFF_ERROR_UNSUPPORTED, [](auto& d) { d.dtype = TUFF_F64; }},
      {"dtype", kArgument, [](auto& d) { d.dtype = 0; }},
      {"gradient_type", TUFF_ERROR_UNSUPPORTED, [](auto& d) { d.gradient_type = TUFF_F16; }},
      {"gradient_type", kArgument, [](auto& d) { d.gradient_type = 99; }},
      {"rate", kArgument, [](auto& d) { d.rate = -1e-3; }},
      {"rate", kArgument, [&](auto& d) { d.rate = nan; }},
      {"rate", kArgument, [](auto& d) { d.rate = 1e39; }},
      {"beta1", kArgument, [](auto& d) { d.beta1 = 1; }},
      {"beta2", kArgument, [](auto& d) { d.beta2 = -0.1; }},
      {"beta2", kArgument, [&](auto& d) { d.beta2 = nan; }},
      {"epsilon", kArgument, [](auto& d) { d.epsilon = -1; }},
      {"weight_decay", kArgument, [&](auto& d) { d.weight_decay = infinite; }},
      {"gradient_scale", kArgument, [&](auto& d) { d.gradient_scale = infinite; }},
      {"momentum", kArgument, [](auto& d) { d.momentum = 0.9; }},
      {"nesterov", kArgument, [](auto& d) { d.nesterov = 1; }},
      {"nesterov", kArgument, [](auto& d) { d.nesterov = 2; }},
      {"step", kArgument, [](auto& d) { d.step = 0; }},
      {"step", kArgument, [&](auto& d) { d.steps = number; }},
      {"reserved", kArgument, [](auto& d) { d.reserved = 1; }},
      {"skip", kArgument, [&](auto& d) { d.skip = list.m[0]; }},
      {"steps", kArgument, [&](auto& d) { d.step = 0, d.steps = d.gradient_factor = number; }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.word);
    tuff_optimizer_desc d = list.desc;
    row.change(d);
    EXPECT_FAILS(tuff_optimizer_step(context(), &d), row.status, "tuff_optimizer_step", row.word);
  }
  const auto after = list.contents();
  for (size_t i = 0; i < before.size(); ++i) expect_same_bits(after[i], before[i]);
}

class OptimizerNorm : public OnBackend {
 protected:
  struct Result {
    float norm, factor;
    int32_t found;
  };
  // The norm of tensors that are at different offsets.
  Result norm_of(int32_t dtype, const std::vector<std::vector<float>>& tensors, double scale = 1, double limit = 0,
                 std::optional<float> factor = {}, std::optional<Result> others = {}, uint64_t shift = 1) {
    std::vector<StoredTensor> stored;
    std::vector<tuff_buffer> handles;
    std::vector<uint64_t> sizes;
    for (size_t i = 0; i < tensors.size(); ++i) {
      stored.emplace_back(context(), dtype, tensors[i], shift * (i % 3));
      handles.push_back(stored.back()), sizes.push_back(tensors[i].size());
    }
    const OwnBuffer norm = uploaded<float>(context(), {others ? others->norm : poison()}),
                    out = uploaded<float>(context(), {poison()}),
                    found = uploaded<int32_t>(context(), {others ? others->found : 77}),
                    in = uploaded<float>(context(), {factor.value_or(0)});
    tuff_gradient_norm_desc d{};
    d.struct_size = sizeof d;
    d.dtype = dtype, d.count = sizes.size(), d.sizes = sizes.data(), d.gradients = handles.data();
    d.gradient_scale = scale == 1 ? 0 : scale, d.limit = limit, d.accumulate = others ? 1 : 0;
    d.norm = norm, d.factor = out, d.found = found;
    if (factor) d.gradient_factor = in;
    EXPECT_OK(tuff_gradient_norm(context(), &d));
    return {downloaded<float>(context(), norm, 1)[0], downloaded<float>(context(), out, 1)[0],
            downloaded<int32_t>(context(), found, 1)[0]};
  }
};

TEST_P(OptimizerNorm, OfListsOfAnySizes) {
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const std::vector<uint64_t>& sizes :
         std::vector<std::vector<uint64_t>>{{1}, {3, 0, 8}, {2048, 5, 7}, many_sizes(), {70'001, 9, 140'000}}) {
      for (const uint64_t shift : {0, 1}) {
        SCOPED_TRACE(testing::Message() << dtype << " " << sizes.size() << " " << sizes[0] << " shift " << shift);
        std::vector<std::vector<float>> tensors;
        double squares = 0;
        uint64_t n = 0;
        for (uint64_t i = 0; i < sizes.size(); ++i) {
          tensors.push_back(rounded(dtype, spreads(sizes[i], i)));
          for (const float x : tensors.back()) squares += double{x} * x;
          n += sizes[i];
        }
        // A sum's error is halved by the root; the root, the factors and their roundings.
        const double norm = 0.375 * 3 * std::sqrt(squares), bound = norm * (gamma(sum_depth(n) + 3) / 2 + 8 * kU);
        Result got = norm_of(dtype, tensors, -0.375, 0, 3.0f, {}, shift);
        EXPECT_NEAR(got.norm, norm, bound);
        EXPECT_EQ(got.factor, 3.0f);
        EXPECT_EQ(got.found, 0);
        got = norm_of(dtype, tensors, 0.375, norm / 2, 3.0f, {}, shift);
        EXPECT_NEAR(got.factor, 1.5, 1.5 * (bound / norm + 4 * kU));
        EXPECT_EQ(norm_of(dtype, tensors, 0.375, norm * 1.1, 3.0f, {}, shift).factor, 3.0f);
      }
    }
  }
}

// For any magnitudes that f32 has, together and alone. The exact tier: all numbers are powers of two.
TEST_P(OptimizerNorm, SquaresDoNotLeaveTheRange) {
  for (const int exponent : {-120, -80, -60, -45, -44, -43, -20, 0, 41, 42, 43, 63, 64, 100, 125}) {
    SCOPED_TRACE(exponent);
    const float x = std::ldexp(1.0f, exponent);
    EXPECT_EQ(norm_of(TUFF_F32, {{x, -x}, {x, x}}).norm, 2 * x);
    EXPECT_EQ(norm_of(TUFF_F32, {std::vector<float>(1024, x / 4)}).norm, 8 * x);
    const double wanted = std::sqrt(double{x} * x * (1 + 0x1p-20) + double{1e-36f} * 1e-36f);
    EXPECT_NEAR(norm_of(TUFF_F32, {{x, 1e-36f, x / 1024}}).norm, wanted, 8 * kU * wanted);
  }
  // sqrt(3) times the largest number is none.
  EXPECT_TRUE(std::isinf(norm_of(TUFF_F32, {{FLT_MAX, FLT_MAX, FLT_MAX}}).norm));
  EXPECT_EQ(norm_of(TUFF_F32, {{FLT_MAX, FLT_MAX, FLT_MAX}}).found, 0);
  EXPECT_NEAR(norm_of(TUFF_F32, {{FLT_MAX, FLT_MAX, FLT_MAX}}, 0.25).norm, 0.25 * std::sqrt(3) * double{FLT_MAX},
              8 * kU * double{FLT_MAX});
}

TEST_P(OptimizerNorm, InfinitiesAndNaNAreFound) {
  const float infinity = INFINITY, nan = std::nanf("");
  for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
    for (const size_t place : {0, 7, 90, 99}) {
      std::vector<float> x(100, 1.0f);
      x[place] = infinity;
      Result got = norm_of(dtype, {{1, 2}, x}, 1, 5);
      EXPECT_TRUE(std::isinf(got.norm) && got.found == 1 && got.factor == 0) << got.norm << got.factor;
      x[place] = nan;
      got = norm_of(dtype, {{1, 2}, x}, 1, 5);
      EXPECT_TRUE(std::isnan(got.norm) && got.found == 1 && std::isnan(got.factor)) << got.norm << got.factor;
      x[(place + 1) % 100] = infinity;
      got = norm_of(dtype, {{1, 2}, x});
      EXPECT_TRUE(std::isnan(got.norm) && got.found == 1 && got.factor == 1) << got.norm << got.factor;
    }
  }
}

TEST_P(OptimizerNorm, OtherListsAreCountedIn) {
  EXPECT_EQ(norm_of(TUFF_F32, {{4}}, 1, 0, {}, Result{3, 0, 0}).norm, 5);
  EXPECT_EQ(norm_of(TUFF_F32, {{4}}, 1, 2.5, {}, Result{3, 0, 0}).factor, 0.5f);
  EXPECT_EQ(norm_of(TUFF_F32, {{4}}, 1, 0, {}, Result{3, 0, 1}).found, 1);
  EXPECT_EQ(norm_of(TUFF_F32, {{}}, 1, 0, {}, Result{3, 0, 0}).norm, 3);
  EXPECT_EQ(norm_of(TUFF_F32, {{4}}, 1, 0, {}, Result{0, 0, 0}).norm, 4);
  EXPECT_NEAR(norm_of(TUFF_F32, {{1e30f}}, 1, 0, {}, Result{1e30f, 0, 0}).norm, std::sqrt(2) * double{1e30f},
              8 * kU * 1e30);
  EXPECT_TRUE(std::isnan(norm_of(TUFF_F32, {{4}}, 1, 0, {}, Result{std::nanf(""), 0, 1}).norm));
  EXPECT_TRUE(std::isinf(norm_of(TUFF_F32, {{4}}, 1, 0, {}, Result{INFINITY, 0, 1}).norm));
}

TEST_P(OptimizerNorm, WithoutElementsItIsZero) {
  for (const auto& tensors : std::vector<std::vector<std::vector<float>>>{{}, {{}}, {{}, {}}, {{0, 0}}}) {
    const Result got = norm_of(TUFF_F32, tensors, 1, 1, 7.0f);
    EXPECT_TRUE(got.norm == 0 && got.factor == 7 && got.found == 0) << got.norm << got.factor << got.found;
  }
}

// What one call finds, the next uses: gradients are clipped to a length of 1, and an infinite one leaves everything.
TEST_P(OptimizerNorm, ClipsAndSkipsWithoutWaiting) {
  for (const bool finite : {true, false}) {
    const Tensor w(context(), {1, 1}), g(context(), {3, finite ? 4.0f : INFINITY});
    const OwnBuffer factor(context(), 4), found(context(), 4);
    const tuff_buffer ws[] = {w}, gs[] = {g};
    const uint64_t n = 2;
    tuff_gradient_norm_desc norm{};
    norm.struct_size = sizeof norm;
    norm.dtype = TUFF_F32, norm.count = 1, norm.sizes = &n, norm.gradients = gs, norm.limit = 1;
    norm.factor = factor, norm.found = found;
    ASSERT_OK(tuff_gradient_norm(context(), &norm));
    tuff_optimizer_desc step{};
    step.struct_size = sizeof step;
    step.dtype = TUFF_F32, step.count = 1, step.sizes = &n, step.parameters = ws, step.gradients = gs;
    step.rate = 1, step.gradient_factor = factor, step.skip = found;
    ASSERT_OK(tuff_optimizer_step(context(), &step));
    const std::vector<float> got = w.read();
    EXPECT_NEAR(got[0], finite ? 0.4 : 1, 8 * kU);
    EXPECT_NEAR(got[1], finite ? 0.2 : 1, 8 * kU);
  }
}

TEST_P(OptimizerNorm, Misuse) {
  const Tensor x(context(), std::vector<float>(8, 1.0f));
  const tuff_buffer handles[] = {x};
  const uint64_t n = 8, more = 9;
  const OwnBuffer norm(context(), 4), tiny(context(), 2), eight(context(), 32);
  const tuff_buffer short_ones[] = {eight};
  tuff_gradient_norm_desc valid{};
  valid.struct_size = sizeof valid;
  valid.dtype = TUFF_F32, valid.count = 1, valid.sizes = &n, valid.gradients = handles, valid.norm = norm;
  struct Row {
    const char* word;
    tuff_status status;
    std::function<void(tuff_gradient_norm_desc&)> change;
  };
  const std::vector<Row> rows = {
      {"norm", kArgument, [](auto& d) { d.norm = 0; }},
      {"norm", kArgument, [&](auto& d) { d.norm = 0, d.accumulate = 1, d.factor = norm; }},
      {"norm", kArgument, [&](auto& d) { d.norm = tiny; }},
      {"norm", kArgument, [&](auto& d) { d.norm = x; }},
      {"factor", kArgument, [&](auto& d) { d.factor = norm; }},
      {"gradient_factor", kArgument, [&](auto& d) { d.gradient_factor = norm; }},
      {"gradients[0]", kArgument, [&](auto& d) { d.sizes = &more, d.gradients = short_ones; }},
      {"gradients", kArgument, [](auto& d) { d.gradients = nullptr; }},
      {"sizes", kArgument, [](auto& d) { d.sizes = nullptr; }},
      {"limit", kArgument, [](auto& d) { d.limit = -1; }},
      {"limit", kArgument, [](auto& d) { d.limit = std::nan(""); }},
      {"limit", kArgument, [](auto& d) { d.limit = 1e-50; }},  // 0 in f32
      {"limit", kArgument, [](auto& d) { d.limit = 1e-39; }},  // denormal
      {"limit", kArgument, [](auto& d) { d.limit = std::nextafter(FLT_MIN, 0.0f); }},
      {"gradient_scale", kArgument, [](auto& d) { d.gradient_scale = 1e39; }},
      {"accumulate", kArgument, [](auto& d) { d.accumulate = 2; }},
      {"dtype", TUFF_ERROR_UNSUPPORTED, [](auto& d) { d.dtype = TUFF_F64; }},
      {"reserved", kArgument, [](auto& d) { d.reserved = 1; }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.word);
    tuff_gradient_norm_desc d = valid;
    row.change(d);
    EXPECT_FAILS(tuff_gradient_norm(context(), &d), row.status, "tuff_gradient_norm", row.word);
  }
  ASSERT_OK(tuff_gradient_norm(context(), &valid));
  valid.limit = FLT_MIN;
  ASSERT_OK(tuff_gradient_norm(context(), &valid));
}

TUFF_ON_BACKENDS(Optimizer);
TUFF_ON_BACKENDS(OptimizerNorm);

}  // namespace
}  // namespace tuff_test::optimizer_test
