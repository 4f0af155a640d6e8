#include "support/gemm_problem.hpp"

#include <algorithm>
#include <cmath>

#include "support/bounds.hpp"

namespace tuff_test {
namespace {

MatrixLayout stored(uint64_t rows, uint64_t cols, bool transposed, uint64_t pad, uint64_t batch, bool repeat,
                    uint64_t gap) {
  MatrixLayout layout{transposed ? cols : rows, transposed ? rows : cols, 0, 0, batch};
  layout.ld = layout.cols + pad;
  layout.stride = repeat ? 0 : layout.rows * layout.ld + gap;
  return layout;
}

std::vector<float> filled(const MatrixLayout& layout, Tier tier, int limit, uint64_t seed) {
  std::vector<float> values(layout.elements(), poison());
  Random random(seed);
  const uint64_t matrices = layout.stride == 0 ? std::min<uint64_t>(layout.batch, 1) : layout.batch;
  for (uint64_t i = 0; i < matrices; ++i) {
    for (uint64_t row = 0; row < layout.rows; ++row) {
      for (uint64_t col = 0; col < layout.cols; ++col) {
        values[layout.index(i, row, col)] = tier == Tier::exact ? random.integer(limit) : random.spread();
      }
    }
  }
  return values;
}

// One matrix as the GEMM reads it: rows x cols without gaps.
std::vector<double> unpacked(const std::vector<float>& values, const MatrixLayout& layout, uint64_t matrix,
                             bool transposed) {
  std::vector<double> result(layout.rows * layout.cols);
  for (uint64_t row = 0; row < layout.rows; ++row) {
    for (uint64_t col = 0; col < layout.cols; ++col) {
      result[transposed ? col * layout.rows + row : row * layout.cols + col] = values[layout.index(matrix, row, col)];
    }
  }
  return result;
}

}  // namespace

uint64_t MatrixLayout::elements() const {
  if (rows == 0 || cols == 0 || batch == 0) return 0;
  return (batch - 1) * stride + (rows - 1) * ld + cols;
}

std::string GemmShape::name() const {
  static const char letters[] = "NTC";
  std::string result = {letters[ta], letters[tb]};
  for (uint64_t size : {m, n, k}) result += "_" + std::to_string(size);
  const auto add = [&](const char* label, uint64_t value) {
    if (value != 0) result += std::string("_") + label + std::to_string(value);
  };
  add("padA", pad_a);
  add("padB", pad_b);
  add("padC", pad_c);
  add("shift", shift);
  if (batch != 1) result += "_batch" + std::to_string(batch);
  if (repeat_a) result += "_repeatA";
  if (repeat_b) result += "_repeatB";
  add("gap", gap);
  const auto number = [&](const char* label, double value) {
    std::string text = std::to_string(value);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    std::replace(text.begin(), text.end(), '-', 'm');
    std::replace(text.begin(), text.end(), '.', 'p');
    result += label + text;
  };
  if (alpha != 1) number("_alpha", alpha);
  if (beta != 0) number("_beta", beta);
  return result;
}

double GemmShape::work() const {
  const double one = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) +
                     static_cast<double>(m * k) + static_cast<double>(k * n) + static_cast<double>(m * n);
  return one * static_cast<double>(batch);
}

double GemmShape::largest_operand() const {
  return static_cast<double>(std::max({m * k, k * n, m * n})) * static_cast<double>(batch);
}

GemmProblem::GemmProblem(const GemmShape& s, Tier tier) : shape(s) {
  a_layout = stored(s.m, s.k, s.ta != TUFF_NO_TRANS, s.pad_a, s.batch, s.repeat_a, s.gap);
  b_layout = stored(s.k, s.n, s.tb != TUFF_NO_TRANS, s.pad_b, s.batch, s.repeat_b, s.gap);
  c_layout = stored(s.m, s.n, false, s.pad_c, s.batch, false, s.gap);
  // The exact tier needs |alpha| * sum |a b| + |beta c| < 2^24 at every step.
  const int limit = s.k <= 200'000 ? 3 : 1;
  a = filled(a_layout, tier, limit, 1);
  b = filled(b_layout, tier, limit, 2);
  c = s.beta == 0 ? std::vector<float>(c_layout.elements(), poison()) : filled(c_layout, tier, 50, 3);

  expected.value.assign(c.size(), 0);
  expected.bound.assign(c.size(), 0);
  const double allowed = tier == Tier::exact ? 0 : gamma(static_cast<double>(s.k) + 3);
  std::vector<double> sum(s.n), size(s.n), op_a, op_b;
  for (uint64_t i = 0; i < s.batch; ++i) {
    if (i == 0 || !s.repeat_a) op_a = unpacked(a, a_layout, i, s.ta != TUFF_NO_TRANS);
    if (i == 0 || !s.repeat_b) op_b = unpacked(b, b_layout, i, s.tb != TUFF_NO_TRANS);
    for (uint64_t row = 0; row < s.m; ++row) {
      std::fill(sum.begin(), sum.end(), 0.0);
      std::fill(size.begin(), size.end(), 0.0);
      for (uint64_t p = 0; p < s.k; ++p) {
        const double x = op_a[row * s.k + p];
        const double* y = op_b.data() + p * s.n;
        for (uint64_t col = 0; col < s.n; ++col) sum[col] += x * y[col];
        if (allowed == 0) continue;
        for (uint64_t col = 0; col < s.n; ++col) size[col] += std::fabs(x * y[col]);
      }
      for (uint64_t col = 0; col < s.n; ++col) {
        const uint64_t at = c_layout.index(i, row, col);
        const double before = s.beta == 0 ? 0 : s.beta * c[at];
        expected.value[at] = s.alpha * sum[col] + before;
        expected.bound[at] = allowed * (std::fabs(s.alpha) * size[col] + std::fabs(before));
      }
    }
  }
}

tuff_status call_gemm(tuff_stream stream, const GemmProblem& p, tuff_buffer a, tuff_buffer b, tuff_buffer c) {
  const GemmShape& s = p.shape;
  if (s.batch == 1 && s.gap == 0) {
    return tuff_gemm(stream, TUFF_F32, s.ta, s.tb, s.m, s.n, s.k, s.alpha, a, p.a_layout.ld, b, p.b_layout.ld, s.beta,
                     c, p.c_layout.ld);
  }
  return tuff_batched_gemm(stream, TUFF_F32, s.ta, s.tb, s.m, s.n, s.k, s.alpha, a, p.a_layout.ld, p.a_layout.stride, b,
                           p.b_layout.ld, p.b_layout.stride, s.beta, c, p.c_layout.ld, p.c_layout.stride, s.batch);
}

void expect_gemm(const GemmProblem& p, const std::vector<float>& c) {
  ASSERT_EQ(c.size(), p.c.size());
  // Checks the gaps between rows and matrices separately from the elements, so that each has its own message.
  std::vector<bool> is_element(c.size(), false);
  for (uint64_t i = 0; i < p.shape.batch; ++i) {
    for (uint64_t row = 0; row < p.shape.m; ++row) {
      const auto start = is_element.begin() + static_cast<ptrdiff_t>(p.c_layout.index(i, row, 0));
      std::fill(start, start + static_cast<ptrdiff_t>(p.shape.n), true);
    }
  }
  std::vector<float> elements;
  Expected expected;
  uint64_t touched = 0;
  for (uint64_t i = 0; i < c.size(); ++i) {
    if (is_element[i]) {
      elements.push_back(c[i]);
      expected.value.push_back(p.expected.value[i]);
      expected.bound.push_back(p.expected.bound[i]);
    } else if (bits(c[i]) != kPoison) {
      ++touched;
    }
  }
  EXPECT_EQ(touched, 0u) << "bytes between rows or matrices were written";
  expect_matches(elements, expected);
}

void run_gemm(tuff_context context, const GemmShape& shape, Tier tier) {
  const GemmProblem problem(shape, tier);
  const Tensor a(context, problem.a, shape.shift), b(context, problem.b, shape.shift),
      c(context, problem.c, shape.shift);
  ASSERT_OK(call_gemm(context, problem, a, b, c));
  expect_gemm(problem, c.read());
  a.expect_unchanged(problem.a);
  b.expect_unchanged(problem.b);
}

}  // namespace tuff_test
