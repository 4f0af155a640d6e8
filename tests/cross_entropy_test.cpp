// Cross-entropy with its gradient, and the gradient of softmax, against their formulas in double precision.
#include <algorithm>
#include <cfloat>
#include <cmath>
#include <functional>
#include <sstream>
#include <string>

#include "support/bounds.hpp"
#include "support/sample.hpp"
#include "support/stored.hpp"

namespace tuff_test::cross_entropy_test {
namespace {

constexpr tuff_status kArgument = TUFF_ERROR_INVALID_ARGUMENT;
const float kInfinity = INFINITY, kNaN = std::nanf("");

struct Shape {
  uint64_t outer, classes, inner;
  uint64_t rows() const { return outer * inner; }
  uint64_t place(uint64_t row, uint64_t j) const { return (row / inner * classes + j) * inner + row % inner; }
};

template <typename Desc>
void set_shape(Desc& desc, const Shape& shape) {
  desc.rank = 3, desc.axis = 1;
  desc.shape[0] = shape.outer, desc.shape[1] = shape.classes, desc.shape[2] = shape.inner;
}

struct Options {
  double smoothing = 0, scale = 1;
  bool ignores = false, factor = false, row_gradients = false;
  int64_t ignored = -100;
};

// The loss and the slopes of each row. Bounds: what is subtracted from a logit rounds it by the distance at most; sums
// are those of reductions; exp and log are correct to 4 ULP.
struct Wanted {
  Expected loss, gradient;
};
Wanted wanted_of(const Shape& shape, const std::vector<float>& x, const std::vector<int64_t>& labels, const Options& o,
                 double factor, const std::vector<float>& row_gradients) {
  const uint64_t n = shape.classes;
  const double s = static_cast<float>(o.smoothing), sum_error = gamma(sum_depth(n) + 16);
  Wanted w;
  w.loss.value.resize(shape.rows()), w.loss.bound.resize(shape.rows());
  w.gradient.value.resize(x.size()), w.gradient.bound.resize(x.size());
  for (uint64_t row = 0; row < shape.rows(); ++row) {
    double most = -INFINITY, least = INFINITY, sum = 0, above = 0;
    for (uint64_t j = 0; j < n; ++j) {
      const double v = x[shape.place(row, j)];
      if (!(v <= most)) most = v;
      if (std::isfinite(v)) least = std::min(least, v);
    }
    for (uint64_t j = 0; j < n; ++j) {
      sum += std::exp(x[shape.place(row, j)] - most);
      above += x[shape.place(row, j)] - most;
    }
    const bool ignored = o.ignores && labels[row] == o.ignored;
    const bool valid = labels[row] >= 0 && labels[row] < static_cast<int64_t>(n);
    const double range = std::isfinite(most - least) ? most - least : 0, relative = sum_error + 4 * kU * range;
    double loss = NAN, size = 0;
    if (valid) {
      const double at = x[shape.place(row, static_cast<uint64_t>(labels[row]))] - most;
      loss = std::log(sum);
      if (s != 1) loss -= (1 - s) * at;
      if (s != 0) loss -= s * (above / static_cast<double>(n));
      size = std::isfinite(at) ? (1 - s) * std::fabs(at) + s * range + std::log(static_cast<double>(n)) : 0;
    }
    w.loss.value[row] = ignored ? 0 : loss;
    w.loss.bound[row] =
        ignored || !std::isfinite(loss) ? 0 : relative + 8 * kU * size + s * 4 * sum_error * range + FLT_MIN;
    const double f = factor * (row_gradients.empty() ? 1 : row_gradients[row]);
    for (uint64_t j = 0; j < n; ++j) {
      const uint64_t i = shape.place(row, j);
      const double p = std::exp(x[i] - most) / sum,
                   q = (valid && static_cast<uint64_t>(labels[row]) == j ? 1 - s : 0) + s / static_cast<double>(n);
      w.gradient.value[i] = ignored ? 0 : valid ? f * (p - q) : NAN;
      w.gradient.bound[i] = ignored ? 0 : std::fabs(f) * (p * (relative + 8 * kU) + 8 * kU * q) + FLT_MIN;
    }
  }
  return w;
}

std::string name_of_row(int32_t dtype, const Shape& shape) {
  return (std::ostringstream() << name_of(dtype) << " " << shape.outer << " x " << shape.classes << " x "
                               << shape.inner)
      .str();
}

// Each type, way of taking rows and set of results needs kernels of its own, which take a CPU device half a second
// each, so of these a device takes a sample.
class SoftmaxCrossEntropy : public OnBackend {
 protected:
  // Both in one pass, each alone, and the gradient in place: all are what the formulas say.
  void expect_right(const Shape& shape, int32_t dtype, const std::vector<float>& x, const std::vector<int64_t>& labels,
                    const Options& o, int32_t label_type = TUFF_I64, uint64_t shift = 0) {
    const auto factor = 0.75f;
    const std::vector<float> given = uniforms(shape.rows(), -2, 2, 5);
    const OwnBuffer number = uploaded<float>(context(), {factor});
    const Tensor row_gradients(context(), given, 4 * shift);
    const bool narrow = label_type == TUFF_I32 || label_type == TUFF_U32;
    const std::vector<int32_t> narrow_labels(labels.begin(), labels.end());
    const OwnBuffer label_buffer = narrow ? uploaded(context(), narrow_labels) : uploaded(context(), labels);
    const Wanted wanted = wanted_of(shape, x, labels, o, o.scale * (o.factor ? double{factor} : 1.0),
                                    o.row_gradients ? given : std::vector<float>());
    Expected slopes = wanted.gradient;
    add_storage(slopes, dtype);
    for (const int way : {0, 1, 2, 3}) {
      SCOPED_TRACE(way);
      const std::string results = name_of_row(dtype, shape) + " " + std::to_string(way) + (o.factor ? " factor" : "");
      if (vulkan() && (way == 1 || way == 2) && !in_sample(results + name_of(label_type), 3)) continue;
      const bool losses = way != 2, gradients = way != 1, in_place = way == 3;
      const StoredTensor logits(context(), dtype, x, shift);
      const StoredTensor gradient(context(), dtype, x.size(), shift);
      const Tensor loss(context(), shape.rows(), 4 * shift);
      tuff_cross_entropy_desc d{};
      d.struct_size = sizeof d;
      d.dtype = dtype, d.label_type = label_type, d.logits = logits, d.labels = label_buffer;
      set_shape(d, shape);
      d.label_smoothing = o.smoothing;
      if (o.ignores) d.ignores = 1, d.ignore_index = o.ignored;
      if (losses) d.loss = loss;
      if (gradients) {
        d.gradient = in_place ? logits : gradient;
        d.gradient_scale = o.scale == 1 ? 0 : o.scale;
        if (o.factor) d.gradient_factor = number;
        if (o.row_gradients) d.loss_gradient = row_gradients;
      }
      ASSERT_OK(tuff_cross_entropy(context(), &d));
      if (losses) expect_matches(loss.read(), wanted.loss);
      if (gradients) expect_matches(in_place ? logits.read() : gradient.read(), slopes);
      if (!in_place) logits.expect_unchanged(x);
    }
  }
  static std::vector<int64_t> labels_of(const Shape& shape, uint64_t seed, int64_t ignored = -1) {
    std::vector<int64_t> labels(shape.rows());
    Random random(seed);
    for (int64_t& label : labels) {
      label = static_cast<int64_t>(random.next() % shape.classes);
      if (ignored != -1 && random.next() % 3 == 0) label = ignored;
    }
    return labels;
  }
};

const std::vector<Shape> kShapes = {{1, 1, 1},    {3, 2, 1},    {7, 10, 1},     {5, 16, 1},      {40, 33, 1},
                                    {3, 1000, 1}, {2, 4096, 1}, {2, 70'001, 1}, {1, 300'000, 1}, {2, 5, 3},
                                    {1, 3, 400},  {3, 21, 64},  {2, 2000, 5},   {700, 9, 1},     {900, 64, 1}};

TEST_P(SoftmaxCrossEntropy, RowsOfAnySizesAndTypes) {
  for (const Shape& shape : kShapes) {
    const uint64_t elements = shape.rows() * shape.classes;
    if (reduced() && elements > 20'000) continue;
    for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      if (elements > 100'000 && dtype == TUFF_BF16) continue;
      const bool always = dtype == TUFF_F32 && (shape.classes == 33 || shape.inner == 64);
      if (vulkan() && !always && !in_sample(name_of_row(dtype, shape), 6)) continue;
      SCOPED_TRACE(name_of_row(dtype, shape));
      const std::vector<float> x = rounded(dtype, uniforms(elements, -6, 6, elements));
      expect_right(shape, dtype, x, labels_of(shape, 7), {});
      Options all{.smoothing = 0.1, .scale = -3, .ignores = true, .factor = true, .row_gradients = true};
      expect_right(shape, dtype, x, labels_of(shape, 8, -100), all, TUFF_I32, 1);
    }
  }
}

// In one row, two cores take segments of 5000 and 20'000 classes, and with shapes of GPUs of 10'000 (SharedRows); items
// of a segment's last step that are absent have numbers of the next segment's classes.
TEST_P(SoftmaxCrossEntropy, LabelsBesideTheEndsOfSegments) {
  struct Row {
    Shape shape;
    std::vector<int64_t> labels;
  };
  const std::vector<Row> rows = {
      {{1, 20'000, 1}, {4999, 5000, 5009, 5119, 5120, 19'999}},
      {{1, 20'001, 1}, {5008, 5009, 5127, 10'020}},
      {{1, 10'001, 2}, {4999, 5000, 5008, 5009, 5100, 5119, 5120}},
      {{1, 80'000, 1}, {9999, 10'000, 10'008, 11'000, 12'000, 12'288, 20'000, 20'095, 20'100}},
  };
  for (const auto& [shape, labels] : rows) {
    const uint64_t elements = shape.rows() * shape.classes;
    if (reduced() && elements > 20'002) continue;
    for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      const std::vector<float> x = rounded(dtype, uniforms(elements, -6, 6, elements));
      for (const int64_t label : labels) {
        const std::string name = name_of_row(dtype, shape) + " label " + std::to_string(label);
        if (dtype != TUFF_F32 && !in_sample(name, 4)) continue;
        SCOPED_TRACE(name);
        const std::vector<int64_t> same(shape.rows(), label);
        expect_right(shape, dtype, x, same, {});
        expect_right(shape, dtype, x, same, {.smoothing = 0.1}, TUFF_I32);
      }
    }
  }
}

// Segments of 24'296 classes on a GPU with 132 multiprocessors.
TEST_P(SoftmaxCrossEntropy, LabelsBesideTheEndsOfSegmentsOfManyRows) {
  const Shape shape{100, 128'256, 1};
  const int32_t device = properties_of(context()).type;
  if (device == TUFF_DEVICE_CPU || device == TUFF_DEVICE_HOST) GTEST_SKIP() << "its rows are whole there";
  std::vector<int64_t> labels(shape.rows());
  for (uint64_t row = 0; row < labels.size(); ++row) labels[row] = static_cast<int64_t>(24'290 + 3 * row);
  for (const int32_t dtype : {TUFF_F32, TUFF_F16}) {
    SCOPED_TRACE(dtype);
    expect_right(shape, dtype, rounded(dtype, uniforms(shape.rows() * shape.classes, -6, 6, 1)), labels, {});
  }
}

TEST_P(SoftmaxCrossEntropy, LabelsOfEveryType) {
  const Shape shape{6, 5, 1};
  const std::vector<float> x = uniforms(30, -3, 3, 1);
  for (const int32_t type : {TUFF_I32, TUFF_I64, TUFF_U32, TUFF_U64}) {
    SCOPED_TRACE(type);
    if (vulkan() && type != TUFF_I64 && !in_sample(std::string("labels of ") + name_of(type), 3)) continue;
    expect_right(shape, TUFF_F32, x, {0, 1, 2, 3, 4, 2}, {}, type);
    expect_right(shape, TUFF_F32, x, {0, 1, 2, 3, 4, 2}, {.ignores = true, .ignored = 2}, type);
    // Labels out of range have no loss, unless they are ignored.
    expect_right(shape, TUFF_F32, x, {5, 1, 6, 3, 1 << 30, 2}, {}, type);
    expect_right(shape, TUFF_F32, x, {5, 1, 6, 3, 1 << 30, 2}, {.smoothing = 0.5, .ignores = true, .ignored = 6}, type);
  }
  for (const int32_t type : {TUFF_I32, TUFF_I64}) {
    expect_right(shape, TUFF_F32, x, {-1, 1, -100, 3, INT32_MIN, 2}, {}, type);
    expect_right(shape, TUFF_F32, x, {-1, 1, -100, 3, INT32_MIN, 2}, {.ignores = true}, type);
    // The ignored label is none of the type's, or another one's low word.
    expect_right(shape, TUFF_F32, x, {0, 1, 2, 3, 4, 2}, {.ignores = true, .ignored = (int64_t{1} << 32) + 2}, type);
  }
  expect_right(shape, TUFF_F32, x, {0, int64_t{1} << 32, 2, INT64_MAX, INT64_MIN, 2}, {});
  expect_right(shape, TUFF_F32, x, {0, 4, 2, 3, (int64_t{1} << 32) + 2, 2},
               {.ignores = true, .ignored = (int64_t{1} << 32) + 2});
}

TEST_P(SoftmaxCrossEntropy, AllOfTheWeightShared) {
  const Shape shape{4, 9, 2};
  const std::vector<float> x = uniforms(72, -3, 3, 2);
  for (const double smoothing : {1.0, 1e-9, 0.999999999}) {
    expect_right(shape, TUFF_F32, x, labels_of(shape, 3), {.smoothing = smoothing, .factor = true});
  }
}

// As log_softmax: NaN and infinity make the row NaN, and so do only -infinities.
TEST_P(SoftmaxCrossEntropy, InfinitiesAndNaN) {
  const Shape shape{8, 6, 1};
  for (const double smoothing : {0.0, 0.25}) {
    std::vector<float> x = uniforms(48, -3, 3, 4);
    x[6] = kNaN, x[12 + 3] = kInfinity, x[18 + 1] = -kInfinity, x[24 + 2] = -kInfinity;
    for (int j = 0; j < 6; ++j) x[30 + j] = -kInfinity;
    x[36] = kNaN, x[37] = kInfinity;
    for (int j = 0; j < 6; ++j) x[42 + j] = j == 4 ? 3e38f : -3e38f;  // beyond the range of exp, not of its argument
    // Row 3 has another class at -infinity, row 4 the label's. Row 6 is ignored.
    if (smoothing != 0) x[42 + 4] = 3.0f, x[42 + 0] = x[42 + 1] = x[42 + 2] = x[42 + 3] = x[42 + 5] = -3.0f;
    expect_right(shape, TUFF_F32, x, {0, 1, 2, 4, 2, 3, -100, 4}, {.smoothing = smoothing, .ignores = true});
  }
}

TEST_P(SoftmaxCrossEntropy, LargeLogitsThatAreClose) {
  const Shape shape{3, 257, 1};
  for (const float base : {1e6f, -1e6f, 1e30f}) {
    std::vector<float> x(771);
    for (size_t i = 0; i < x.size(); ++i) x[i] = base * (1 + static_cast<float>(i % 7) * 0x1p-23f);
    expect_right(shape, TUFF_F32, x, {0, 100, 256}, {.smoothing = 0.1});
  }
}

TEST_P(SoftmaxCrossEntropy, WithoutRows) {
  tuff_cross_entropy_desc d{};
  d.struct_size = sizeof d;
  d.dtype = TUFF_F32, d.label_type = TUFF_I32;
  set_shape(d, {0, 5, 1});
  EXPECT_OK(tuff_cross_entropy(context(), &d));
  set_shape(d, {0, 0, 3});
  EXPECT_OK(tuff_cross_entropy(context(), &d));
}

TEST_P(SoftmaxCrossEntropy, Misuse) {
  const Tensor x(context(), uniforms(12, -1, 1, 1)), gradient(context(), 12), loss(context(), 4);
  const OwnBuffer labels = uploaded<int32_t>(context(), {0, 1, 2, 0}), number = uploaded<float>(context(), {1.0f}),
                  small(context(), 8);
  tuff_cross_entropy_desc valid{};
  valid.struct_size = sizeof valid;
  valid.dtype = TUFF_F32, valid.label_type = TUFF_I32, valid.logits = x, valid.labels = labels;
  valid.loss = loss, valid.gradient = gradient;
  set_shape(valid, {4, 3, 1});
  struct Row {
    const char* word;
    tuff_status status;
    std::function<void(tuff_cross_entropy_desc&)> change;
  };
  const std::vector<Row> rows = {
      {"dtype", TUFF_ERROR_UNSUPPORTED, [](auto& d) { d.dtype = TUFF_F64; }},
      {"label_type", TUFF_ERROR_UNSUPPORTED, [](auto& d) { d.label_type = TUFF_U8; }},
      {"label_type", kArgument, [](auto& d) { d.label_type = 99; }},
      {"ignores", kArgument, [](auto& d) { d.ignores = 2; }},
      {"ignore_index", kArgument, [](auto& d) { d.ignore_index = -100; }},
      {"label_smoothing", kArgument, [](auto& d) { d.label_smoothing = -0.1; }},
      {"label_smoothing", kArgument, [](auto& d) { d.label_smoothing = 1.5; }},
      {"label_smoothing", kArgument, [](auto& d) { d.label_smoothing = NAN; }},
      {"gradient_scale", kArgument, [](auto& d) { d.gradient_scale = 1e39; }},
      {"gradient_scale", kArgument, [](auto& d) { d.gradient = 0, d.gradient_scale = 2; }},
      {"gradient_factor", kArgument, [&](auto& d) { d.gradient = 0, d.gradient_factor = number; }},
      {"loss_gradient", kArgument, [&](auto& d) { d.gradient = 0, d.loss_gradient = x; }},
      {"loss", kArgument, [](auto& d) { d.gradient = d.loss = 0; }},
      {"rank", kArgument, [](auto& d) { d.rank = 9; }},
      {"axis", kArgument, [](auto& d) { d.axis = 3; }},
      {"shape", kArgument, [](auto& d) { d.shape[1] = 0; }},
      {"shape", kArgument, [](auto& d) { d.shape[0] = d.shape[2] = uint64_t{1} << 40; }},
      {"labels", kArgument, [&](auto& d) { d.labels = small; }},
      {"labels", kArgument, [&](auto& d) { d.label_type = TUFF_I64; }},
      {"loss", kArgument, [&](auto& d) { d.loss = small; }},
      {"loss", kArgument, [&](auto& d) { d.loss = x; }},
      {"gradient", kArgument, [&](auto& d) { d.gradient = loss; }},
      {"loss", kArgument, [&](auto& d) { d.loss_gradient = loss; }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.word);
    tuff_cross_entropy_desc d = valid;
    row.change(d);
    EXPECT_FAILS(tuff_cross_entropy(context(), &d), row.status, "tuff_cross_entropy", row.word);
  }
  gradient.expect_poisoned();
  loss.expect_poisoned();
  ASSERT_OK(tuff_cross_entropy(context(), &valid));
}

class SoftmaxBackward : public OnBackend {
 protected:
  void expect_right(const Shape& shape, int32_t dtype, const std::vector<float>& y, const std::vector<float>& dy,
                    bool logarithm, double scale, uint64_t shift = 0) {
    const double depth = gamma(sum_depth(shape.classes) + 4);
    Expected expected;
    expected.value.resize(y.size()), expected.bound.resize(y.size());
    for (uint64_t row = 0; row < shape.rows(); ++row) {
      double sum = 0, size = 0;
      for (uint64_t j = 0; j < shape.classes; ++j) {
        const uint64_t i = shape.place(row, j);
        const double term = logarithm ? double{dy[i]} : double{dy[i]} * y[i];
        sum += term, size += std::fabs(term);
      }
      for (uint64_t j = 0; j < shape.classes; ++j) {
        const uint64_t i = shape.place(row, j);
        const double p = logarithm ? std::exp(double{y[i]}) : double{y[i]};
        expected.value[i] = scale * (logarithm ? dy[i] - p * sum : p * (dy[i] - sum));
        // exp is correct to 4 ULP of 2 units each; the sum, the difference, the products.
        const double error = p * depth * size +
                             (logarithm ? 12 : 4) * kU * (p * std::fabs(sum) + (logarithm ? 1 : p) * std::fabs(dy[i]));
        expected.bound[i] = std::isfinite(error) ? std::fabs(scale) * error + FLT_MIN : 0;
      }
    }
    add_storage(expected, dtype);
    for (const int way : {0, 1, 2}) {
      SCOPED_TRACE(way);
      const StoredTensor output(context(), dtype, y, shift), slopes(context(), dtype, dy, shift),
          result(context(), dtype, y.size(), shift);
      const StoredTensor& into = way == 0 ? result : way == 1 ? output : slopes;
      tuff_softmax_backward_desc d{};
      d.struct_size = sizeof d;
      d.dtype = dtype, d.output = output, d.output_gradient = slopes, d.gradient = into;
      set_shape(d, shape);
      d.scale = scale == 1 ? 0 : scale, d.logarithm = logarithm ? 1 : 0;
      ASSERT_OK(tuff_softmax_backward(context(), &d));
      expect_matches(into.read(), expected);
      if (way != 1) output.expect_unchanged(y);
      if (way != 2) slopes.expect_unchanged(dy);
    }
  }
};

TEST_P(SoftmaxBackward, RowsOfAnySizesAndTypes) {
  for (const Shape& shape : kShapes) {
    const uint64_t elements = shape.rows() * shape.classes;
    if (reduced() && elements > 20'000) continue;
    for (const int32_t dtype : {TUFF_F32, TUFF_F16, TUFF_BF16}) {
      if (elements > 100'000 && dtype == TUFF_BF16) continue;
      const bool always = dtype == TUFF_F32 && (shape.classes == 33 || shape.inner == 64);
      if (vulkan() && !always && !in_sample(name_of_row(dtype, shape), 6)) continue;
      SCOPED_TRACE(name_of_row(dtype, shape));
      const std::vector<float> dy = rounded(dtype, uniforms(elements, -2, 2, elements));
      expect_right(shape, dtype, rounded(dtype, uniforms(elements, 0, 1, 3)), dy, false, 1);
      expect_right(shape, dtype, rounded(dtype, uniforms(elements, -9, 0, 4)), dy, true, -0.5, 1);
    }
  }
}

TEST_P(SoftmaxBackward, ZerosInfinitiesAndNaN) {
  const Shape shape{4, 3, 1};
  expect_right(shape, TUFF_F32, {0, 0.25f, 0.75f, 1, 0, 0, kNaN, kNaN, kNaN, 0.5f, 0.5f, 0},
               {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, kInfinity, 2}, false, 1);
  expect_right(shape, TUFF_F32, {-kInfinity, -1, -2, 0, -kInfinity, -kInfinity, kNaN, kNaN, kNaN, -1, -1, -1},
               {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, kNaN, 2}, true, 2);
}

TEST_P(SoftmaxBackward, Misuse) {
  const Tensor y(context(), uniforms(12, 0, 1, 1)), dy(context(), uniforms(12, -1, 1, 2)), dx(context(), 12);
  const OwnBuffer small(context(), 16);
  tuff_buffer shifted = 0;
  const OwnBuffer whole(context(), 96);
  ASSERT_OK(tuff_view(whole, 4, 48, &shifted));
  tuff_softmax_backward_desc valid{};
  valid.struct_size = sizeof valid;
  valid.dtype = TUFF_F32, valid.output = y, valid.output_gradient = dy, valid.gradient = dx;
  set_shape(valid, {4, 3, 1});
  struct Row {
    const char* word;
    tuff_status status;
    std::function<void(tuff_softmax_backward_desc&)> change;
  };
  const std::vector<Row> rows = {
      {"dtype", TUFF_ERROR_UNSUPPORTED, [](auto& d) { d.dtype = TUFF_F64; }},
      {"dtype", kArgument, [](auto& d) { d.dtype = 0; }},
      {"scale", kArgument, [](auto& d) { d.scale = INFINITY; }},
      {"scale", kArgument, [](auto& d) { d.scale = 1e-60; }},
      {"logarithm", kArgument, [](auto& d) { d.logarithm = 3; }},
      {"reserved", kArgument, [](auto& d) { d.reserved = 1; }},
      {"axis", kArgument, [](auto& d) { d.axis = 3; }},
      {"output", kArgument, [&](auto& d) { d.output = small; }},
      {"output_gradient", TUFF_ERROR_INVALID_HANDLE, [&](auto& d) { d.output_gradient = 0; }},
      {"gradient", kArgument, [&](auto& d) { d.output = whole, d.gradient = shifted; }},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.word);
    tuff_softmax_backward_desc d = valid;
    row.change(d);
    EXPECT_FAILS(tuff_softmax_backward(context(), &d), row.status, "tuff_softmax_backward", row.word);
  }
  dx.expect_poisoned();
  ASSERT_OK(tuff_softmax_backward(context(), &valid));
  ASSERT_OK(tuff_free(shifted));
}

TUFF_ON_BACKENDS(SoftmaxCrossEntropy);
TUFF_ON_BACKENDS(SoftmaxBackward);

}  // namespace
}  // namespace tuff_test::cross_entropy_test
