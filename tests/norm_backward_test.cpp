// Gradients of normalisations and batch norm for training, compared with f64.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>

#include "support/bounds.hpp"
#include "support/norm_problem.hpp"
#include "support/stored.hpp"

namespace tuff_test::norm_backward_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT, kUnsupported = TUFF_ERROR_UNSUPPORTED;
constexpr double kEpsilon = 1e-5;

enum class Place { apart, onto_input, onto_slope };
enum class Given { no, saved, frozen };

struct BackwardCase {
  int32_t kind = TUFF_NORM_LAYER;
  uint64_t batch = 1, channels = 1, inner = 1, groups = 0;
  int32_t dtype = TUFF_F32, weight_type = 0;  // 0: dtype
  bool weight = true, of_input = true, of_weight = true, of_bias = true;
  Given given = Given::no;
  Place place = Place::apart;
  float offset = 0;    // added to all inputs: a large mean
  uint64_t shift = 0;  // of every operand, in elements
  double epsilon = kEpsilon;

  uint64_t count() const { return batch * channels * inner; }
  int32_t weights() const { return weight_type != 0 ? weight_type : dtype; }
  uint64_t parts() const { return kind == TUFF_NORM_GROUP ? (groups != 0 ? groups : channels) : 1; }
  bool biased() const { return of_bias && kind != TUFF_NORM_RMS; }
  std::string name() const {
    static const char* const kinds[] = {"layer", "rms", "group", "batch"};
    std::string text = std::string(kinds[kind]) + "_" + name_of(dtype);
    if (weights() != dtype) text += std::string("_") + name_of(weights());
    text += "_" + std::to_string(batch) + "_" + std::to_string(channels);
    if (inner != 1) text += "_inner" + std::to_string(inner);
    if (groups != 0) text += "_groups" + std::to_string(groups);
    text += std::string(weight ? "" : "_noweight") + (of_input ? "" : "_nodx") + (of_weight ? "" : "_nodw") +
            (of_bias ? "" : "_nodb");
    static const char* const given_names[] = {"", "_saved", "_frozen"};
    static const char* const places[] = {"", "_ontoinput", "_ontoslope"};
    text += std::string(given_names[static_cast<int>(given)]) + places[static_cast<int>(place)];
    if (offset != 0) text += "_offset" + std::to_string(static_cast<int>(offset));
    if (shift != 0) text += "_shift" + std::to_string(shift);
    return text;
  }
  double work() const { return 3 * static_cast<double>(count()); }
};

std::vector<BackwardCase> cases() {
  std::vector<BackwardCase> all;
  const int32_t types[] = {TUFF_F32, TUFF_F16, TUFF_BF16};
  const Place places[] = {Place::apart, Place::onto_input, Place::onto_slope};
  for (uint64_t cols : {1, 3, 4, 8, 33, 100, 128, 257, 1024, 4097, 20'016, 65'536}) {
    for (const int32_t kind : {TUFF_NORM_LAYER, TUFF_NORM_RMS}) {
      for (const int t : {0, 1}) {
        const uint64_t i = all.size(), rows = cols < 300 ? 37 : cols < 5000 ? 9 : 2;
        all.push_back({.kind = kind,
                       .batch = rows,
                       .channels = cols,
                       .dtype = t == 0 ? TUFF_F32 : types[1 + i / 2 % 2],
                       .weight_type = t != 0 && i % 5 < 3 ? TUFF_F32 : 0,
                       .weight = i % 5 != 0,
                       .of_input = i % 7 != 3,
                       .of_weight = i % 6 != 2 || i % 7 == 3,
                       .of_bias = i % 4 != 1,
                       .place = i % 7 != 3 ? places[i % 3] : Place::apart,
                       .shift = i % 4 == 1 ? i % 8 : 0});
      }
    }
  }
  // Many rows, long rows, and both.
  all.push_back({.batch = 20'000, .channels = 8});
  all.push_back({.batch = 30'001, .channels = 3, .dtype = TUFF_F16});
  all.push_back({.batch = 700, .channels = 1024, .place = Place::onto_slope});
  all.push_back({.kind = TUFF_NORM_RMS, .batch = 300, .channels = 4096, .dtype = TUFF_BF16, .weight_type = TUFF_F32});
  all.push_back({.batch = 1, .channels = 500'003});
  all.push_back({.kind = TUFF_NORM_RMS, .batch = 1, .channels = 1'000'000, .dtype = TUFF_F16});
  for (uint64_t cols : {64, 1000, 40'000}) all.push_back({.batch = 4, .channels = cols, .offset = 4096});
  // Groups and channels; channels that are a multiple of a block, a part of one, and neither.
  for (uint64_t inner : {1, 3, 8, 49, 1024}) {
    for (uint64_t groups : {0, 1, 2, 6}) {
      const uint64_t i = all.size();
      all.push_back({.kind = TUFF_NORM_GROUP,
                     .batch = 3,
                     .channels = i % 2 == 0 ? 48u : 6u,
                     .inner = inner,
                     .groups = groups,
                     .dtype = types[i % 3],
                     .weight_type = i % 2 == 0 ? 0 : TUFF_F32,
                     .weight = i % 5 != 1,
                     .of_input = i % 5 != 2,
                     .of_bias = i % 4 != 0,
                     .place = i % 5 != 2 ? places[i % 3] : Place::apart,
                     .shift = i % 3 == 0 ? i % 4 : 0});
    }
  }
  all.push_back({.kind = TUFF_NORM_GROUP, .batch = 2, .channels = 32, .inner = 3136, .groups = 8});
  all.push_back({.kind = TUFF_NORM_GROUP, .batch = 1, .channels = 4, .inner = 30'000, .groups = 2, .dtype = TUFF_F16});
  for (uint64_t inner : {1, 5, 8, 3136}) {
    for (uint64_t channels : {1, 3, 64}) {
      for (const Given given : {Given::no, Given::saved, Given::frozen}) {
        const uint64_t i = all.size();
        all.push_back({.kind = TUFF_NORM_BATCH,
                       .batch = inner == 1 ? 301u : 5u,
                       .channels = channels,
                       .inner = inner,
                       .dtype = types[i % 3],
                       .weight_type = i % 2 == 0 ? 0 : TUFF_F32,
                       .weight = i % 4 != 0,
                       .of_input = i % 7 != 2,
                       .of_weight = i % 5 != 1,
                       .of_bias = i % 3 != 1,
                       .given = given,
                       .place = i % 7 != 2 ? places[i % 3] : Place::apart,
                       .shift = i % 4 == 0 ? i % 3 : 0});
        BackwardCase& added = all.back();
        if (!added.of_input && !added.of_weight) added.of_bias = true;
      }
    }
  }
  all.push_back({.kind = TUFF_NORM_BATCH, .batch = 20'000, .channels = 24});
  all.push_back({.kind = TUFF_NORM_BATCH, .batch = 20'001, .channels = 5, .dtype = TUFF_BF16});
  // on GPUs several blocks of a lane have the same channels
  all.push_back({.kind = TUFF_NORM_BATCH, .batch = 20'001, .channels = 32, .place = Place::onto_slope});
  all.push_back({.kind = TUFF_NORM_BATCH,
                 .batch = 9'003,
                 .channels = 64,
                 .dtype = TUFF_F16,
                 .weight_type = TUFF_F32,
                 .given = Given::saved});
  all.push_back({.kind = TUFF_NORM_BATCH, .batch = 2'100, .channels = 256, .dtype = TUFF_BF16, .given = Given::frozen});
  all.push_back({.kind = TUFF_NORM_BATCH, .batch = 600, .channels = 3, .inner = 20});
  all.push_back({.kind = TUFF_NORM_BATCH, .batch = 2, .channels = 20, .inner = 60'001});
  all.push_back({.kind = TUFF_NORM_BATCH, .batch = 600, .channels = 16, .offset = 4096});
  all.push_back({.kind = TUFF_NORM_BATCH, .batch = 8, .channels = 16, .inner = 100, .offset = 4096});
  return all;
}

// The elements that are normalised together.
std::vector<std::vector<uint64_t>> sets_of(const BackwardCase& s) {
  const bool of_batch = s.kind == TUFF_NORM_BATCH;
  std::vector<std::vector<uint64_t>> sets(of_batch ? s.channels : s.batch * s.parts());
  const uint64_t together = s.channels / s.parts() * s.inner;
  for (uint64_t i = 0; i < s.count(); ++i) sets[of_batch ? i / s.inner % s.channels : i / together].push_back(i);
  return sets;
}

struct Solved {
  Expected of_input, of_weight, of_bias;
};

// Sums have the roundings of their terms and of at most four sums of as many terms; a term of dy * n is off by what n
// is, and a difference by four roundings of its terms and by their errors.
Solved solve(const BackwardCase& s, const std::vector<float>& x, const std::vector<float>& dy,
             const std::vector<float>& weight, const std::vector<float>& mean, const std::vector<float>& variance) {
  Solved out;
  out.of_input = {std::vector<double>(s.count()), std::vector<double>(s.count())};
  out.of_weight = out.of_bias = {std::vector<double>(s.channels), std::vector<double>(s.channels)};
  std::vector<double> along_size(s.channels), level_size(s.channels), along_off(s.channels);
  const bool centred = s.kind != TUFF_NORM_RMS, given = s.given != Given::no;
  const double epsilon = static_cast<float>(s.epsilon);
  uint64_t set_number = 0;
  for (const std::vector<uint64_t>& set : sets_of(s)) {
    const auto n = static_cast<double>(set.size());
    double m = 0, v = 0, largest = 0;
    for (const uint64_t i : set) {
      m += centred ? x[i] : 0;
      largest = std::max(largest, std::fabs(static_cast<double>(x[i])));
    }
    m = given ? mean[set_number] : m / n;
    for (const uint64_t i : set) v += (x[i] - m) * (x[i] - m);
    v = given ? variance[set_number] : v / n;
    ++set_number;
    const double scale = 1 / std::sqrt(v + epsilon);
    const NormErrors off = given ? NormErrors{0, 8 * kU} : norm_errors(centred, set.size(), largest, v, v + epsilon);
    const double sum_off = gamma(4 * sum_depth(set.size()) + 24);
    const auto channel = [&](uint64_t i) { return i / s.inner % s.channels; };
    const auto h = [&](uint64_t i) { return static_cast<double>(dy[i]) * (s.weight ? weight[channel(i)] : 1); };
    const auto normal = [&](uint64_t i) { return (x[i] - m) * scale; };
    const auto normal_off = [&](uint64_t i) { return off.normal(std::fabs(x[i] - m), scale); };
    double level = 0, along = 0, level_sizes = 0, along_sizes = 0, offs = 0;
    for (const uint64_t i : set) {
      level += h(i), level_sizes += std::fabs(h(i));
      along += h(i) * normal(i), along_sizes += std::fabs(h(i) * normal(i)), offs += std::fabs(h(i)) * normal_off(i);
      const uint64_t c = channel(i);
      out.of_weight.value[c] += dy[i] * normal(i);
      out.of_bias.value[c] += dy[i];
      along_size[c] += std::fabs(dy[i] * normal(i)), along_off[c] += std::fabs(dy[i]) * normal_off(i);
      level_size[c] += std::fabs(static_cast<double>(dy[i]));
    }
    level = centred ? level / n : 0, along /= n;
    const double level_off = centred ? sum_off * level_sizes / n : 0,
                 along_off_all = sum_off * along_sizes / n + offs / n;
    for (const uint64_t i : set) {
      double value = h(i), bound = 2 * kU * std::fabs(value);
      if (s.given != Given::frozen) {
        const double product = normal(i) * along, size = std::fabs(h(i)) + std::fabs(level) + std::fabs(product);
        value -= level + product;
        bound = 6 * kU * size + level_off + std::fabs(normal(i)) * along_off_all + normal_off(i) * std::fabs(along) +
                normal_off(i) * along_off_all;
      }
      out.of_input.value[i] = value * scale;
      out.of_input.bound[i] =
          scale * (1 + off.scale) * bound + std::fabs(value) * scale * (off.scale + 4 * kU) + FLT_MIN;
    }
  }
  const double sum_off = gamma(4 * sum_depth(s.batch * s.inner) + 24);
  for (uint64_t c = 0; c < s.channels; ++c) {
    out.of_weight.bound[c] = sum_off * along_size[c] + along_off[c] + FLT_MIN;
    out.of_bias.bound[c] = sum_off * level_size[c] + FLT_MIN;
  }
  add_storage(out.of_input, s.dtype);
  add_storage(out.of_weight, s.weights());
  add_storage(out.of_bias, s.weights());
  return out;
}

tuff_norm_backward_desc describe(const BackwardCase& s) {
  tuff_norm_backward_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.kind = s.kind, desc.weight_type = s.weight_type;
  desc.batch = s.batch, desc.channels = s.channels, desc.inner = s.inner, desc.groups = s.groups;
  desc.epsilon = s.epsilon;
  return desc;
}

void expect_right(tuff_context context, const BackwardCase& s, const std::vector<float>& x,
                  const std::vector<float>& dy, bool statistics_in_f32) {
  const uint64_t n = s.count();
  const int32_t statistics_type = statistics_in_f32 ? TUFF_F32 : s.weights();
  std::vector<float> weight = rounded(s.weights(), spreads(s.channels, 3)), mean, variance;
  if (s.given != Given::no) {
    mean = rounded(statistics_type, spreads(s.channels, 5));
    variance = rounded(statistics_type, uniforms(s.channels, 0, 4, 6));
  }
  const StoredTensor input(context, s.dtype, x, s.shift), slope(context, s.dtype, dy, s.shift),
      w(context, s.weights(), weight, s.shift), m(context, statistics_type, mean, s.shift),
      v(context, statistics_type, variance, s.shift), apart(context, s.dtype, s.place == Place::apart ? n : 0, s.shift),
      of_weight(context, s.weights(), s.channels, s.shift), of_bias(context, s.weights(), s.channels, s.shift);
  const StoredTensor& of_input = s.place == Place::onto_input ? input : s.place == Place::onto_slope ? slope : apart;
  tuff_norm_backward_desc desc = describe(s);
  if (!statistics_in_f32) desc.statistics_type = s.weights();
  desc.input = input, desc.output_gradient = slope;
  if (s.weight) desc.weight = w;
  if (s.given != Given::no) desc.mean = m, desc.variance = v;
  desc.frozen = s.given == Given::frozen ? 1 : 0;
  if (s.of_input) desc.input_gradient = of_input;
  if (s.of_weight) desc.weight_gradient = of_weight;
  if (s.biased()) desc.bias_gradient = of_bias;
  ASSERT_OK(tuff_norm_backward(context, &desc));
  const Solved wanted = solve(s, x, dy, weight, mean, variance);
  if (s.of_input) expect_matches(of_input.read(), wanted.of_input);
  if (s.of_weight) expect_matches(of_weight.read(), wanted.of_weight);
  if (s.biased()) expect_matches(of_bias.read(), wanted.of_bias);
  if (!s.of_input || s.place != Place::onto_input) input.expect_unchanged(x);
  if (!s.of_input || s.place != Place::onto_slope) slope.expect_unchanged(dy);
  w.expect_unchanged(weight);
}

using NormBackward = Table<BackwardCase>;

TEST_P(NormBackward, WithinBound) {
  const BackwardCase& s = row();
  std::vector<float> x = spreads(s.count(), 1);
  for (float& value : x) value += s.offset;
  x = rounded(s.dtype, std::move(x));
  expect_right(context(), s, x, rounded(s.dtype, spreads(s.count(), 2)), s.count() % 2 == 1);
}
TUFF_TABLE(NormBackward, BackwardCase, cases());

class NormBackwardOnce : public OnBackend {};

// The bounds' values are derivatives: of sum(dy * y) by central differences in f64, y by the definition.
TEST_P(NormBackwardOnce, FormulasAreDerivatives) {
  for (const BackwardCase& s :
       {BackwardCase{.batch = 3, .channels = 7}, BackwardCase{.kind = TUFF_NORM_RMS, .batch = 3, .channels = 7},
        BackwardCase{.kind = TUFF_NORM_GROUP, .batch = 2, .channels = 6, .inner = 5, .groups = 2},
        BackwardCase{.kind = TUFF_NORM_BATCH, .batch = 4, .channels = 3, .inner = 2},
        BackwardCase{.kind = TUFF_NORM_BATCH, .batch = 4, .channels = 3, .inner = 2, .given = Given::frozen}}) {
    SCOPED_TRACE(s.name());
    const std::vector<float> x = uniforms(s.count(), -2, 2, 1), dy = uniforms(s.count(), -2, 2, 2),
                             weight = uniforms(s.channels, -2, 2, 3), mean = uniforms(s.channels, -1, 1, 5),
                             variance = uniforms(s.channels, 1, 2, 6);
    const auto sets = sets_of(s);
    const auto value = [&](const std::vector<double>& at, const std::vector<double>& w, double b) {
      double sum = 0;
      for (uint64_t k = 0; k < sets.size(); ++k) {
        const auto n = static_cast<double>(sets[k].size());
        double m = 0, v = 0;
        for (const uint64_t i : sets[k]) m += s.kind != TUFF_NORM_RMS ? at[i] / n : 0;
        for (const uint64_t i : sets[k]) v += (at[i] - m) * (at[i] - m) / n;
        if (s.given == Given::frozen) m = mean[k], v = variance[k];
        for (const uint64_t i : sets[k]) {
          const uint64_t c = i / s.inner % s.channels;
          sum += dy[i] * ((at[i] - m) / std::sqrt(v + static_cast<float>(kEpsilon)) * w[c] + (c == 0 ? b : 0));
        }
      }
      return sum;
    };
    const std::vector<double> at(x.begin(), x.end()), w(weight.begin(), weight.end());
    const Solved solved = solve(s, x, dy, weight, mean, variance);
    constexpr double kStep = 1e-5;  // errors: its square, and 1e-15 / it
    for (uint64_t i = 0; i < s.count(); ++i) {
      std::vector<double> more = at, less = at;
      more[i] += kStep, less[i] -= kStep;
      EXPECT_NEAR(solved.of_input.value[i], (value(more, w, 0) - value(less, w, 0)) / (2 * kStep), 1e-7);
    }
    for (uint64_t c = 0; c < s.channels; ++c) {
      std::vector<double> more = w, less = w;
      more[c] += kStep, less[c] -= kStep;
      EXPECT_NEAR(solved.of_weight.value[c], (value(at, more, 0) - value(at, less, 0)) / (2 * kStep), 1e-7);
    }
    EXPECT_NEAR(solved.of_bias.value[0], (value(at, w, kStep) - value(at, w, -kStep)) / (2 * kStep), 1e-7);
  }
}

// Without images the gradients by weights are sums of nothing.
TEST_P(NormBackwardOnce, Nothing) {
  const Tensor w(context(), 5), b(context(), 5);
  for (const int32_t kind : {TUFF_NORM_LAYER, TUFF_NORM_GROUP, TUFF_NORM_BATCH}) {
    tuff_norm_backward_desc desc = describe({.kind = kind, .batch = 0, .channels = 5});
    desc.weight_gradient = w, desc.bias_gradient = b;
    ASSERT_OK(tuff_norm_backward(context(), &desc));
    expect_same_bits(w.read(), std::vector<float>(5, 0.0f));
    expect_same_bits(b.read(), std::vector<float>(5, 0.0f));
  }
  tuff_norm_backward_desc desc = describe({.kind = TUFF_NORM_BATCH, .batch = 3, .channels = 5, .inner = 0});
  desc.bias_gradient = b;
  ASSERT_OK(tuff_norm_backward(context(), &desc));
  expect_same_bits(b.read(), std::vector<float>(5, 0.0f));
  desc.channels = 0, desc.inner = 4, desc.bias_gradient = 0;
  ASSERT_OK(tuff_norm_backward(context(), &desc));
  desc = describe({.batch = 0, .channels = 5});
  desc.input_gradient = w;
  ASSERT_OK(tuff_norm_backward(context(), &desc));
  tuff_batch_norm_training_desc training{};
  training.struct_size = sizeof training;
  training.dtype = TUFF_F32, training.batch = 3, training.inner = 4;
  ASSERT_OK(tuff_batch_norm_training(context(), &training));
}

// A NaN or an infinity stays with what is normalised together, and in the sums that it belongs to.
TEST_P(NormBackwardOnce, NaNAndInfinity) {
  for (const uint64_t cols : {6, 70, 3000, 40'000}) {
    for (const int32_t kind : {TUFF_NORM_LAYER, TUFF_NORM_RMS, TUFF_NORM_BATCH}) {
      for (const bool in_slope : {false, true}) {
        SCOPED_TRACE(testing::Message() << cols << " " << kind << " " << in_slope);
        // BATCH: channels are the rows of the others.
        const bool of_batch = kind == TUFF_NORM_BATCH;
        std::vector<float> x = uniforms(4 * cols, -1, 1, cols), dy = uniforms(4 * cols, -1, 1, cols + 1);
        std::vector<float>& spoilt = in_slope ? dy : x;
        spoilt[cols + 3] = NAN, spoilt[3 * cols + 1] = INFINITY;
        const uint64_t batch = of_batch ? 1 : 4, channels = of_batch ? 4 : cols;
        const Tensor input(context(), x), slope(context(), dy), dx(context(), x.size()), dw(context(), channels),
            db(context(), channels);
        tuff_norm_backward_desc desc =
            describe({.kind = kind, .batch = batch, .channels = channels, .inner = of_batch ? cols : 1});
        desc.input = input, desc.output_gradient = slope, desc.input_gradient = dx, desc.weight_gradient = dw;
        if (kind != TUFF_NORM_RMS) desc.bias_gradient = db;
        ASSERT_OK(tuff_norm_backward(context(), &desc));
        const std::vector<float> of_input = dx.read(), of_weight = dw.read();
        for (uint64_t i = 0; i < x.size(); ++i) {
          ASSERT_EQ(std::isfinite(of_input[i]), i / cols % 2 == 0) << i;
          if (!in_slope && i / cols % 2 == 1) {
            ASSERT_TRUE(std::isnan(of_input[i])) << i;
          }
        }
        for (uint64_t c = 0; c < channels; ++c) {
          const bool of_both = kind == TUFF_NORM_LAYER && !in_slope;  // a row of NaN, of the sums of all columns
          const bool of_nan = kind == TUFF_NORM_RMS && !in_slope;     // likewise, and an infinity of its own column
          const bool wrong = of_batch ? c % 2 == 1 : of_both || of_nan || c == 3 || c == 1;
          ASSERT_EQ(!std::isfinite(of_weight[c]), wrong) << c;
        }
        if (kind == TUFF_NORM_RMS) continue;
        const std::vector<float> of_bias = db.read();
        for (uint64_t c = 0; c < channels; ++c) {
          const bool wrong = in_slope && (of_batch ? c % 2 == 1 : c == 3 || c == 1);
          ASSERT_EQ(!std::isfinite(of_bias[c]), wrong) << c;
        }
      }
    }
  }
}

// Without a deviation there is nothing but epsilon to divide by.
TEST_P(NormBackwardOnce, ConstantInputs) {
  for (const int32_t kind : {TUFF_NORM_LAYER, TUFF_NORM_GROUP, TUFF_NORM_BATCH}) {
    const uint64_t inner = kind == TUFF_NORM_GROUP ? 4 : 1;
    const std::vector<float> x(48, 7.0f), dy = uniforms(48, -1, 1, 3);
    const Tensor input(context(), x), slope(context(), dy), dx(context(), 48), dw(context(), 12);
    BackwardCase s{.kind = kind, .batch = 4 / inner, .channels = 12, .inner = inner, .groups = inner == 4 ? 3u : 0u};
    s.weight = false;
    tuff_norm_backward_desc desc = describe(s);
    desc.input = input, desc.output_gradient = slope, desc.input_gradient = dx, desc.weight_gradient = dw;
    ASSERT_OK(tuff_norm_backward(context(), &desc));
    const Solved wanted = solve(s, x, dy, {}, {}, {});
    expect_matches(dx.read(), wanted.of_input);
    expect_same_bits(dw.read(), std::vector<float>(12, 0.0f));
    desc.epsilon = 0;
    ASSERT_OK(tuff_norm_backward(context(), &desc));
    for (const float value : dx.read()) EXPECT_TRUE(std::isnan(value));
    for (const float value : dw.read()) EXPECT_TRUE(std::isnan(value));
  }
}

// Inputs whose squares are beyond f32 on either side. Slopes are as large as keeps the results in range.
TEST_P(NormBackwardOnce, InputsOfAnyMagnitude) {
  for (const float size : {1e-30f, 1e-20f, 1e20f, 1.5e38f}) {
    for (const BackwardCase& form :
         {BackwardCase{.batch = 3, .channels = 33}, BackwardCase{.batch = 2, .channels = 3000},
          BackwardCase{.batch = 1, .channels = 40'000}, BackwardCase{.kind = TUFF_NORM_RMS, .batch = 3, .channels = 64},
          BackwardCase{.kind = TUFF_NORM_GROUP, .batch = 2, .channels = 6, .inner = 40, .groups = 2},
          BackwardCase{.kind = TUFF_NORM_BATCH, .batch = 50, .channels = 8},
          BackwardCase{.kind = TUFF_NORM_BATCH, .batch = 30, .channels = 3},
          BackwardCase{.kind = TUFF_NORM_BATCH, .batch = 5, .channels = 3, .inner = 20}}) {
      for (const int32_t dtype : {TUFF_F32, TUFF_BF16}) {
        BackwardCase s = form;
        s.dtype = dtype, s.epsilon = size < 1e-18f ? 0.25 * size * size : 1e-5;
        SCOPED_TRACE(testing::Message() << s.name() << " size " << size);
        std::vector<float> x = uniforms(s.count(), 0.5f, 1, 1), dy = uniforms(s.count(), -1, 1, 2);
        for (uint64_t i = 0; i < x.size(); ++i) {
          x[i] *= i % 3 == 0 ? -size : size;
          dy[i] *= std::min(size, 1e10f);
        }
        expect_right(context(), s, rounded(dtype, x), rounded(dtype, dy), false);
        if (HasFailure()) return;
      }
    }
  }
}

// Parts of a channel that separately need different powers of two, and together a third.
TEST_P(NormBackwardOnce, ChannelsOfPartsOfDifferentMagnitudes) {
  const std::pair<float, float> halves[] = {{1e-30f, 1e30f}, {1e30f, 1e-30f}, {0.0005f, 0}, {1e-25f, 0.0005f},
                                            {1e-30f, 1},     {1e18f, -1e18f}, {0, 3e38f},   {1e-30f, 1e-20f}};
  for (const auto& [left, right] : halves) {
    for (const uint64_t inner : {1, 10}) {
      SCOPED_TRACE(testing::Message() << left << " and " << right << " inner " << inner);
      const BackwardCase s{.kind = TUFF_NORM_BATCH, .batch = 3000 / inner, .channels = 4, .inner = inner, .epsilon = 0};
      std::vector<float> x = uniforms(s.count(), 0.5f, 1, 3), dy = uniforms(s.count(), -1, 1, 4);
      for (uint64_t i = 0; i < x.size(); ++i) {
        x[i] *= i < x.size() / 2 ? left : right;
        dy[i] *= std::min(1.0f, std::max(std::fabs(left), std::fabs(right)));
      }
      expect_right(context(), s, x, dy, false);
      if (HasFailure()) return;
    }
  }
}

TEST_P(NormBackwardOnce, BadArguments) {
  const Tensor x(context(), 240), dy(context(), 240), dx(context(), 240), w(context(), 24), dw(context(), 24),
      db(context(), 24);
  tuff_norm_backward_desc good = describe({.batch = 10, .channels = 24});
  good.input = x, good.output_gradient = dy, good.weight = w;
  good.input_gradient = dx, good.weight_gradient = dw, good.bias_gradient = db;
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil) {
    tuff_norm_backward_desc desc = good;
    spoil(desc);
    EXPECT_FAILS(tuff_norm_backward(context(), &desc), status, "tuff_norm_backward", word);
  };
  using Desc = tuff_norm_backward_desc;
  expect_bad(kArgument, "dtype", [](Desc& d) { d.dtype = 0; });
  expect_bad(kUnsupported, "dtype", [](Desc& d) { d.dtype = TUFF_F64; });
  expect_bad(kArgument, "kind", [](Desc& d) { d.kind = 4; });
  expect_bad(kArgument, "kind", [](Desc& d) { d.kind = -1; });
  expect_bad(kUnsupported, "weight_type", [](Desc& d) { d.weight_type = TUFF_F16; });
  expect_bad(kArgument, "weight_type", [](Desc& d) { d.weight_type = 77; });
  expect_bad(kUnsupported, "statistics_type", [](Desc& d) { d.statistics_type = TUFF_BF16; });
  // Statistics of 16 bits that are not said to be so are too short.
  const OwnBuffer statistics(context(), 48), halves(context(), 480);
  expect_bad(kArgument, "mean", [&](Desc& d) {
    d.dtype = d.weight_type = TUFF_F16, d.kind = TUFF_NORM_BATCH, d.mean = d.variance = statistics;
    d.input = d.output_gradient = halves, d.weight_gradient = d.bias_gradient = 0;
  });
  expect_bad(kArgument, "epsilon", [](Desc& d) { d.epsilon = -1; });
  expect_bad(kArgument, "epsilon", [](Desc& d) { d.epsilon = NAN; });
  expect_bad(kArgument, "frozen", [](Desc& d) { d.kind = TUFF_NORM_BATCH, d.frozen = 2; });
  expect_bad(kArgument, "frozen", [](Desc& d) { d.kind = TUFF_NORM_BATCH, d.frozen = 1; });
  expect_bad(kArgument, "frozen", [](Desc& d) { d.frozen = 1; });
  expect_bad(kArgument, "inner", [](Desc& d) { d.inner = 2, d.batch = 5; });
  expect_bad(kArgument, "inner", [](Desc& d) { d.inner = 0; });
  expect_bad(kArgument, "channels", [](Desc& d) { d.channels = 0; });
  expect_bad(kArgument, "groups", [](Desc& d) { d.groups = 2; });
  expect_bad(kArgument, "groups", [](Desc& d) { d.kind = TUFF_NORM_GROUP, d.groups = 5; });
  expect_bad(kArgument, "batch", [](Desc& d) { d.batch = ~uint64_t{0}; });
  expect_bad(kArgument, "input", [](Desc& d) { d.batch = 11; });
  expect_bad(kArgument, "mean", [&](Desc& d) { d.mean = w, d.variance = w; });
  expect_bad(kArgument, "variance", [&](Desc& d) { d.kind = TUFF_NORM_BATCH, d.mean = w; });
  expect_bad(kArgument, "mean", [&](Desc& d) { d.kind = TUFF_NORM_BATCH, d.variance = w; });
  expect_bad(kArgument, "bias_gradient", [](Desc& d) { d.kind = TUFF_NORM_RMS; });
  expect_bad(kArgument, "input_gradient", [](Desc& d) { d.input_gradient = d.weight_gradient = d.bias_gradient = 0; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "output_gradient", [](Desc& d) { d.output_gradient = 0; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "weight", [](Desc& d) { d.weight = 12'345; });
  expect_bad(kArgument, "weight_gradient", [](Desc& d) { d.weight_gradient = d.weight; });
  expect_bad(kArgument, "bias_gradient", [](Desc& d) { d.bias_gradient = d.weight_gradient; });
  expect_bad(kArgument, "input_gradient", [](Desc& d) { d.weight_gradient = d.input_gradient; });
  expect_bad(kArgument, "weight_gradient", [](Desc& d) { d.weight_gradient = d.input; });
  for (const Tensor* tensor : {&x, &dy, &dx, &w, &dw, &db}) tensor->expect_poisoned();
}

// ---- batch norm for training -----------------------------------------------------------------------

struct TrainingCase {
  uint64_t batch = 1, channels = 1, inner = 1;
  int32_t dtype = TUFF_F32, weight_type = 0;
  bool weight = true, bias = true, output = true, in_place = false, statistics = true, running = true;
  float offset = 0;
  uint64_t shift = 0;

  uint64_t count() const { return batch * channels * inner; }
  int32_t weights() const { return weight_type != 0 ? weight_type : dtype; }
  std::string name() const {
    std::string text = std::string(name_of(dtype)) + "_" + name_of(weights()) + "_" + std::to_string(batch) + "_" +
                       std::to_string(channels) + "_" + std::to_string(inner);
    text += std::string(weight ? "" : "_noweight") + (bias ? "" : "_nobias") + (output ? "" : "_nooutput") +
            (in_place ? "_inplace" : "") + (statistics ? "" : "_nostatistics") + (running ? "" : "_norunning");
    if (offset != 0) text += "_offset" + std::to_string(static_cast<int>(offset));
    if (shift != 0) text += "_shift" + std::to_string(shift);
    return text;
  }
  double work() const { return 2 * static_cast<double>(count()); }
};

std::vector<TrainingCase> training_cases() {
  std::vector<TrainingCase> all;
  const int32_t types[] = {TUFF_F32, TUFF_F16, TUFF_BF16};
  for (uint64_t inner : {1, 2, 7, 8, 49, 3136}) {
    for (uint64_t channels : {1, 3, 16, 64}) {
      for (uint64_t batch : {2, 33}) {
        if (batch * channels * inner > 1'000'000) continue;
        const uint64_t i = all.size();
        all.push_back({.batch = batch,
                       .channels = channels,
                       .inner = inner,
                       .dtype = types[i % 3],
                       .weight_type = i % 2 == 0 ? 0 : TUFF_F32,
                       .weight = i % 4 != 0 && i % 7 != 3,
                       .bias = i % 5 != 0 && i % 7 != 3,
                       .output = i % 7 != 3,
                       .in_place = i % 7 != 3 && i % 3 == 0,
                       .statistics = i % 5 != 2 || i % 7 == 3,
                       .running = i % 3 != 1,
                       .shift = i % 4 == 0 ? i % 3 : 0});
      }
    }
  }
  all.push_back({.batch = 30'001, .channels = 6});
  all.push_back({.batch = 9'000, .channels = 40, .dtype = TUFF_F16, .weight_type = TUFF_F32});
  all.push_back({.batch = 9'001, .channels = 64, .dtype = TUFF_F16, .in_place = true});
  all.push_back({.batch = 33'001, .channels = 4, .bias = false});
  all.push_back({.batch = 2'003, .channels = 256, .dtype = TUFF_BF16, .weight_type = TUFF_F32, .weight = false});
  all.push_back({.batch = 1, .channels = 2, .inner = 300'001});
  all.push_back({.batch = 500, .channels = 12, .offset = 4096});
  all.push_back({.batch = 6, .channels = 12, .inner = 90, .offset = 4096});
  all.push_back({.batch = 1, .channels = 5, .running = false});
  return all;
}

constexpr double kMomentum = 0.1;

using NormTraining = Table<TrainingCase>;

TEST_P(NormTraining, WithinBound) {
  const TrainingCase& s = row();
  const uint64_t n = s.count(), channels = s.channels;
  std::vector<float> x = spreads(n, 1);
  for (float& value : x) value += s.offset;
  x = rounded(s.dtype, std::move(x));
  const std::vector<float> weight = rounded(s.weights(), spreads(channels, 3)),
                           bias = rounded(s.weights(), spreads(channels, 4)),
                           old_mean = rounded(s.weights(), spreads(channels, 5)),
                           old_variance = rounded(s.weights(), uniforms(channels, 0, 4, 6));
  const StoredTensor input(context(), s.dtype, x, s.shift), apart(context(), s.dtype, s.in_place ? 0 : n, s.shift),
      w(context(), s.weights(), weight, s.shift), b(context(), s.weights(), bias, s.shift),
      running_mean(context(), s.weights(), old_mean, s.shift),
      running_variance(context(), s.weights(), old_variance, s.shift), mean(context(), TUFF_F32, channels, s.shift),
      variance(context(), TUFF_F32, channels, s.shift);
  const StoredTensor& output = s.in_place ? input : apart;
  tuff_batch_norm_training_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = s.dtype, desc.weight_type = s.weight_type;
  desc.batch = s.batch, desc.channels = channels, desc.inner = s.inner;
  desc.epsilon = kEpsilon, desc.momentum = kMomentum;
  desc.input = input;
  if (s.weight) desc.weight = w;
  if (s.bias) desc.bias = b;
  if (s.output) desc.output = output;
  if (s.statistics) desc.mean = mean, desc.variance = variance;
  if (s.running) desc.running_mean = running_mean, desc.running_variance = running_variance;
  ASSERT_OK(tuff_batch_norm_training(context(), &desc));
  Expected of_output{std::vector<double>(n), std::vector<double>(n)}, of_mean, of_variance, of_running_mean,
      of_running_variance;
  const double momentum = static_cast<float>(kMomentum);
  const auto sets = sets_of({.kind = TUFF_NORM_BATCH, .batch = s.batch, .channels = channels, .inner = s.inner});
  for (uint64_t c = 0; c < channels; ++c) {
    const auto count = static_cast<double>(sets[c].size());
    double m = 0, v = 0, largest = 0;
    for (const uint64_t i : sets[c]) m += x[i], largest = std::max(largest, std::fabs(static_cast<double>(x[i])));
    m /= count;
    for (const uint64_t i : sets[c]) v += (x[i] - m) * (x[i] - m);
    v /= count;
    const double with_epsilon = v + static_cast<float>(kEpsilon), scale = 1 / std::sqrt(with_epsilon);
    const NormErrors off = norm_errors(true, sets[c].size(), largest, v, with_epsilon);
    const double variance_off = gamma(4 * sum_depth(sets[c].size()) + 20) * v + 12 * off.mean * std::sqrt(v) +
                                12 * off.mean * off.mean + FLT_MIN;
    of_mean.value.push_back(m), of_mean.bound.push_back(off.mean + FLT_MIN);
    of_variance.value.push_back(v), of_variance.bound.push_back(variance_off);
    const double unbiased = v * (count / (count - 1)), by = count / (count - 1);
    of_running_mean.value.push_back(old_mean[c] + momentum * (m - old_mean[c]));
    of_running_mean.bound.push_back(momentum * off.mean + 4 * kU * (std::fabs(old_mean[c]) + std::fabs(m)) + FLT_MIN);
    of_running_variance.value.push_back(old_variance[c] + momentum * (unbiased - old_variance[c]));
    of_running_variance.bound.push_back(momentum * variance_off * by + 6 * kU * (old_variance[c] + unbiased) + FLT_MIN);
    for (const uint64_t i : sets[c]) {
      const double wc = s.weight ? weight[c] : 1, bc = s.bias ? bias[c] : 0;
      const double normal = (x[i] - m) * scale * wc;
      of_output.value[i] = normal + bc;
      of_output.bound[i] = std::fabs(wc) * off.normal(std::fabs(x[i] - m), scale) +
                           2 * kU * (std::fabs(bc) + std::fabs(normal + bc)) + FLT_MIN;
    }
  }
  add_storage(of_output, s.dtype);
  add_storage(of_running_mean, s.weights());
  add_storage(of_running_variance, s.weights());
  if (s.output) expect_matches(output.read(), of_output);
  if (s.statistics) {
    expect_matches(mean.read(), of_mean);
    expect_matches(variance.read(), of_variance);
  }
  if (s.running) {
    expect_matches(running_mean.read(), of_running_mean);
    expect_matches(running_variance.read(), of_running_variance);
  }
  if (!s.in_place || !s.output) input.expect_unchanged(x);
}
TUFF_TABLE(NormTraining, TrainingCase, training_cases());

class NormTrainingOnce : public OnBackend {};

// The statistics that it stores give the gradients that are computed without them.
TEST_P(NormTrainingOnce, StatisticsForTheGradient) {
  for (const uint64_t inner : {1, 60}) {
    const BackwardCase s{.kind = TUFF_NORM_BATCH, .batch = 20, .channels = 8, .inner = inner, .weight = false};
    const std::vector<float> x = uniforms(s.count(), -1, 3, 1), dy = uniforms(s.count(), -1, 1, 2);
    const Tensor input(context(), x), slope(context(), dy), mean(context(), 8), variance(context(), 8),
        dx(context(), s.count()), dw(context(), 8);
    tuff_batch_norm_training_desc training{};
    training.struct_size = sizeof training;
    training.dtype = TUFF_F32, training.batch = s.batch, training.channels = 8, training.inner = inner;
    training.epsilon = kEpsilon, training.input = input, training.mean = mean, training.variance = variance;
    ASSERT_OK(tuff_batch_norm_training(context(), &training));
    tuff_norm_backward_desc desc = describe(s);
    desc.input = input, desc.output_gradient = slope, desc.mean = mean, desc.variance = variance;
    desc.input_gradient = dx, desc.weight_gradient = dw;
    ASSERT_OK(tuff_norm_backward(context(), &desc));
    const Solved wanted = solve(s, x, dy, {}, {}, {});
    expect_matches(dx.read(), wanted.of_input);
    expect_matches(dw.read(), wanted.of_weight);
  }
}

// Variances beyond f32 are stored as infinity; the output is right all the same. Momentum 1 replaces what was there, 0
// keeps.
TEST_P(NormTrainingOnce, LargeNumbersAndMomenta) {
  for (const uint64_t inner : {1, 40}) {
    const uint64_t n = 20 * inner;
    std::vector<float> x(n);
    for (uint64_t i = 0; i < n; ++i) x[i] = i % 2 == 0 || (inner == 1 && i % 4 == 2) ? 2e38f : -2e38f;
    const Tensor input(context(), x), output(context(), n), mean(context(), 1), variance(context(), 1);
    const Tensor running(context(), std::vector<float>{5}), running_variance(context(), std::vector<float>{6});
    tuff_batch_norm_training_desc desc{};
    desc.struct_size = sizeof desc;
    desc.dtype = TUFF_F32, desc.batch = 20, desc.channels = 1, desc.inner = inner, desc.epsilon = kEpsilon;
    desc.input = input, desc.output = output, desc.mean = mean, desc.variance = variance;
    desc.running_mean = running;
    ASSERT_OK(tuff_batch_norm_training(context(), &desc));
    expect_same_bits(running.read(), {5});
    EXPECT_EQ(variance.read()[0], INFINITY);
    EXPECT_NEAR(mean.read()[0], 0, 1e34);
    Expected expected;
    for (const float value : x) {
      expected.value.push_back(value < 0 ? -1 : 1);
      expected.bound.push_back(gamma(8 * sum_depth(n) + 64));
    }
    expect_matches(output.read(), expected);
    const Tensor small(context(), uniforms(n, 1, 2, 3));
    desc.input = small, desc.momentum = 1, desc.running_variance = running_variance;
    ASSERT_OK(tuff_batch_norm_training(context(), &desc));
    EXPECT_NEAR(running.read()[0], mean.read()[0], 4e-7);
    const auto count = static_cast<double>(n);
    EXPECT_NEAR(running_variance.read()[0], variance.read()[0] * (count / (count - 1)), 4e-6);
  }
}

TEST_P(NormTrainingOnce, BadArguments) {
  const Tensor x(context(), 240), y(context(), 240), w(context(), 24), b(context(), 24), m(context(), 24),
      v(context(), 24);
  tuff_batch_norm_training_desc good{};
  good.struct_size = sizeof good;
  good.dtype = TUFF_F32, good.batch = 10, good.channels = 24, good.inner = 1, good.epsilon = 1e-5, good.momentum = 0.1;
  good.input = x, good.output = y, good.weight = w, good.bias = b, good.mean = m, good.variance = v;
  const auto expect_bad = [&](tuff_status status, const char* word, auto spoil) {
    tuff_batch_norm_training_desc desc = good;
    spoil(desc);
    EXPECT_FAILS(tuff_batch_norm_training(context(), &desc), status, "tuff_batch_norm_training", word);
  };
  using Desc = tuff_batch_norm_training_desc;
  expect_bad(kArgument, "dtype", [](Desc& d) { d.dtype = 99; });
  expect_bad(kUnsupported, "dtype", [](Desc& d) { d.dtype = TUFF_I32; });
  expect_bad(kUnsupported, "weight_type", [](Desc& d) { d.weight_type = TUFF_BF16; });
  expect_bad(kArgument, "reserved", [](Desc& d) { d.reserved = 1; });
  expect_bad(kArgument, "epsilon", [](Desc& d) { d.epsilon = INFINITY; });
  expect_bad(kArgument, "momentum", [](Desc& d) { d.momentum = 1.5; });
  expect_bad(kArgument, "momentum", [](Desc& d) { d.momentum = NAN; });
  expect_bad(kArgument, "batch", [](Desc& d) { d.batch = 0; });
  expect_bad(kArgument, "inner", [](Desc& d) { d.inner = 0; });
  expect_bad(kArgument, "running_variance", [&](Desc& d) { d.batch = 1, d.running_variance = d.mean, d.mean = 0; });
  expect_bad(kArgument, "input", [](Desc& d) { d.batch = 11; });
  expect_bad(kArgument, "output", [](Desc& d) { d.output = d.mean = d.variance = 0; });
  expect_bad(kArgument, "weight", [](Desc& d) { d.output = 0; });
  expect_bad(TUFF_ERROR_INVALID_HANDLE, "running_mean", [](Desc& d) { d.running_mean = 12'345; });
  expect_bad(kArgument, "variance", [](Desc& d) { d.variance = d.mean; });
  expect_bad(kArgument, "mean", [](Desc& d) { d.mean = d.weight; });
  expect_bad(kArgument, "running_mean", [](Desc& d) { d.running_mean = d.bias; });
  for (const Tensor* tensor : {&x, &y, &w, &b, &m, &v}) tensor->expect_poisoned();
}

TUFF_ON_BACKENDS(NormBackwardOnce);
TUFF_ON_BACKENDS(NormTrainingOnce);

}  // namespace
}  // namespace tuff_test::norm_backward_test
