#include "tool/selftest_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tool/matrix_rows.hpp"

namespace tool {
namespace {

using tuff::DType;
using tuff::Transpose;

Tensor magnitude(Tensor values) {
  for (auto& value : values) value = std::fabs(value);
  return values;
}

// n units in the last place of the reference, plus the one rounding of the reference itself.
auto ulps(double n) {
  return [n](const Problem&, const Tensor& reference, const HostRun&) {
    Bound bound;
    bound.reserve(reference.size());
    for (const float value : reference) {
      bound.push_back((n + 0.5) * std::max(2 * kRounding * std::fabs(static_cast<double>(value)), kSmallest));
    }
    return bound;
  };
}

// The bound of a sum of products with n roundings: gamma_n times the same sum over magnitudes, which the host
// computes.
auto accumulated(double n, Call over_magnitudes) {
  return [n, over_magnitudes](const Problem& problem, const Tensor& reference, const HostRun& host) {
    std::vector<Tensor> inputs;
    for (const auto& input : problem.inputs) inputs.push_back(magnitude(input));
    const Tensor sums = host(over_magnitudes, inputs, magnitude(problem.output));
    Bound bound(reference.size());
    for (size_t i = 0; i < bound.size(); ++i) {
      bound[i] = gamma(n) * sums[i] * (1 + 2 * kRounding) + kRounding * std::fabs(static_cast<double>(reference[i]));
    }
    return bound;
  };
}

// --- gemm -------------------------------------------------------------------------------------------

struct Gemm {
  Transpose ta, tb;
  uint64_t m, n, k;
  double alpha, beta;
  uint64_t padding;  // columns beyond the matrix in each stored row
  uint64_t batch = 1;
  bool integers = false;
};

bool is(Transpose transpose) { return transpose != Transpose::no; }
char letter(Transpose transpose) { return is(transpose) ? 'T' : 'N'; }

Call gemm_call(const Gemm& g, double alpha, double beta) {
  const uint64_t lda = (is(g.ta) ? g.m : g.k) + g.padding;
  const uint64_t ldb = (is(g.tb) ? g.k : g.n) + g.padding;
  const uint64_t ldc = g.n + g.padding;
  const uint64_t stride_a = lda * (is(g.ta) ? g.k : g.m);
  const uint64_t stride_b = ldb * (is(g.tb) ? g.n : g.k);
  return [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
    if (g.batch == 1) {
      context.gemm(DType::f32, g.ta, g.tb, g.m, g.n, g.k, alpha, in[0], lda, in[1], ldb, beta, out, ldc);
      return;
    }
    context.batched_gemm(DType::f32, g.ta, g.tb, g.m, g.n, g.k, alpha, in[0], lda, stride_a, in[1], ldb, stride_b, beta,
                         out, ldc, ldc * g.m, g.batch);
  };
}

Case gemm_case(const Gemm& g) {
  Case entry;
  entry.operation = g.batch == 1 ? "gemm" : "batched_gemm";
  entry.shape = fmt::format("{}{}x{}x{} {}{}", g.batch == 1 ? "" : fmt::format("{} of ", g.batch), g.m, g.n, g.k,
                            letter(g.ta), letter(g.tb));
  if (g.alpha != 1 || g.beta != 0) entry.shape += fmt::format(" alpha={} beta={}", g.alpha, g.beta);
  if (g.padding) entry.shape += fmt::format(" rows padded by {}", g.padding);
  if (g.integers) entry.shape += " integers";
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    const auto values = [&](uint64_t count) {
      return g.integers ? random.integers(count, 8) : random.uniform(count, -1, 1);
    };
    Problem problem{entry.operation, entry.shape, {}, {}, gemm_call(g, g.alpha, g.beta), exact};
    problem.inputs.push_back(values(((is(g.ta) ? g.m : g.k) + g.padding) * (is(g.ta) ? g.k : g.m) * g.batch));
    problem.inputs.push_back(values(((is(g.tb) ? g.k : g.n) + g.padding) * (is(g.tb) ? g.n : g.k) * g.batch));
    problem.output = values((g.n + g.padding) * g.m * g.batch);
    if (!g.integers) {
      // alpha, beta and the final addition add three roundings to the k of the sum.
      problem.bound = accumulated(static_cast<double>(g.k) + 3, gemm_call(g, std::fabs(g.alpha), std::fabs(g.beta)));
    }
    return problem;
  };
  return entry;
}

// --- conv2d -----------------------------------------------------------------------------------------

struct Conv2d {
  uint64_t in[4];      // N C H W
  uint64_t filter[4];  // K C R S
  uint64_t stride, padding, dilation;
  bool integers = false;
  uint64_t groups = 1;
  bool transposed = false;
  int32_t layout = TUFF_LAYOUT_NCHW;
};

template <typename Desc>
Desc conv_desc(const Conv2d& c, const uint64_t (&out_shape)[4]) {
  Desc desc{};
  desc.dtype = TUFF_F32;
  std::copy_n(c.in, 4, desc.in_shape);
  std::copy_n(c.filter, 4, desc.filter_shape);
  std::copy_n(out_shape, 4, desc.out_shape);
  std::fill_n(desc.stride, 2, c.stride);
  std::fill_n(desc.padding, 2, c.padding);
  std::fill_n(desc.dilation, 2, c.dilation);
  desc.groups = c.groups;
  desc.layout = c.layout;
  return desc;
}

Case conv2d_case(const Conv2d& c) {
  const auto extent = [&](int axis) {
    const uint64_t span = c.dilation * (c.filter[axis] - 1) + 1;
    if (c.transposed) return (c.in[axis] - 1) * c.stride + span - 2 * c.padding;
    return (c.in[axis] + 2 * c.padding - span) / c.stride + 1;
  };
  const uint64_t filters = c.transposed ? c.filter[1] * c.groups : c.filter[0];
  const uint64_t out_shape[4] = {c.in[0], filters, extent(2), extent(3)};
  const auto ordinary = conv_desc<tuff_conv2d_desc>(c, out_shape);
  const auto back = conv_desc<tuff_conv_transpose2d_desc>(c, out_shape);
  const Call call = [=, transposed = c.transposed](const tuff::Context& context, const Buffers& in,
                                                   const tuff::Buffer& out) {
    const auto with_buffers = [&](auto desc) {
      desc.input = in[0].handle();
      desc.filter = in[1].handle();
      desc.output = out.handle();
      return desc;
    };
    if (transposed) {
      context.conv_transpose2d(with_buffers(back));
    } else {
      context.conv2d(with_buffers(ordinary));
    }
  };
  Case entry;
  entry.operation = c.transposed ? "conv_transpose2d" : "conv2d";
  entry.shape = fmt::format("{}x{}x{}x{} * {}x{}x{} stride {} padding {}{}{}{}{}", c.in[0], c.in[1], c.in[2], c.in[3],
                            filters, c.filter[2], c.filter[3], c.stride, c.padding,
                            c.dilation > 1 ? fmt::format(" dilation {}", c.dilation) : "",
                            c.groups > 1 ? fmt::format(" groups {}", c.groups) : "",
                            c.layout == TUFF_LAYOUT_NHWC ? " nhwc" : "", c.integers ? " integers" : "");
  const uint64_t in_count = c.in[0] * c.in[1] * c.in[2] * c.in[3];
  const uint64_t filter_count = c.filter[0] * c.filter[1] * c.filter[2] * c.filter[3];
  const uint64_t out_count = out_shape[0] * out_shape[1] * out_shape[2] * out_shape[3];
  const auto terms = static_cast<double>(c.in[1] / c.groups * c.filter[2] * c.filter[3]);
  entry.make = [=, integers = c.integers](uint64_t seed) {
    Random random(seed);
    Problem problem{entry.operation, entry.shape, {}, poison(out_count), call, exact};
    for (const uint64_t count : {in_count, filter_count}) {
      problem.inputs.push_back(integers ? random.integers(count, 8) : random.uniform(count, -1, 1));
    }
    if (!integers) problem.bound = accumulated(terms + 3, call);
    return problem;
  };
  return entry;
}

// --- attention, softmax -----------------------------------------------------------------------------

struct Attention {
  uint64_t batch, heads, seq_q, seq_kv, head_dim;
  tuff::Causal causal;
  uint64_t sharing = 1;  // query heads that share one kv head
};

// Each weight is exp(s - max) / sum. An error ds of a score shifts both s and max, the exponential has its own error,
// and the running sums have gamma_seq_kv and are rescaled at most once for each key.
Bound attention_bound(const Attention& a, double scale, const std::vector<Tensor>& in, const Tensor& reference) {
  Bound bound(reference.size());
  std::vector<double> score(a.seq_kv);
  const auto d = static_cast<double>(a.head_dim);
  const auto keys = static_cast<double>(a.seq_kv);
  for (uint64_t row = 0; row < a.batch * a.heads * a.seq_q; ++row) {
    const uint64_t head = row / a.seq_q / a.sharing;
    const auto i = static_cast<int64_t>(row % a.seq_q);
    int64_t visible = static_cast<int64_t>(a.seq_kv);
    if (a.causal == tuff::Causal::top_left) visible = std::min(visible, i + 1);
    if (a.causal == tuff::Causal::bottom_right) {
      visible = std::min(visible, i + 1 + static_cast<int64_t>(a.seq_kv) - static_cast<int64_t>(a.seq_q));
    }
    if (visible <= 0) continue;  // such a row must be exactly zero
    double largest = -std::numeric_limits<double>::infinity();
    double magnitude_of_score = 0;
    for (int64_t j = 0; j < visible; ++j) {
      double sum = 0, sum_of_magnitudes = 0;
      for (uint64_t e = 0; e < a.head_dim; ++e) {
        const double product = static_cast<double>(in[0][row * a.head_dim + e]) *
                               in[1][(head * a.seq_kv + static_cast<uint64_t>(j)) * a.head_dim + e];
        sum += product;
        sum_of_magnitudes += std::fabs(product);
      }
      score[static_cast<size_t>(j)] = scale * sum;
      largest = std::max(largest, scale * sum);
      magnitude_of_score = std::max(magnitude_of_score, scale * sum_of_magnitudes);
    }
    const double score_error = gamma(d + 3) * magnitude_of_score;
    double total = 0, smallest = largest;
    for (int64_t j = 0; j < visible; ++j) {
      smallest = std::min(smallest, score[static_cast<size_t>(j)]);
      score[static_cast<size_t>(j)] = std::exp(score[static_cast<size_t>(j)] - largest);
      total += score[static_cast<size_t>(j)];
    }
    const double spread = largest - smallest;
    const double each = 2 * score_error + 2 * kRounding * spread + exp_error(spread);
    const double relative = std::expm1(2 * each) + gamma(4 * keys + 8);
    for (uint64_t e = 0; e < a.head_dim; ++e) {
      double weighted = 0;
      for (int64_t j = 0; j < visible; ++j) {
        weighted +=
            score[static_cast<size_t>(j)] / total *
            std::fabs(static_cast<double>(in[2][(head * a.seq_kv + static_cast<uint64_t>(j)) * a.head_dim + e]));
      }
      bound[row * a.head_dim + e] = relative * weighted + kSmallest;
    }
  }
  return bound;
}

Case attention_case(const Attention& a) {
  static constexpr const char* kCausal[] = {"", " causal top-left", " causal bottom-right"};
  const double scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
  Case entry;
  entry.operation = "attention";
  const uint64_t kv_heads = a.heads / a.sharing;
  entry.shape =
      fmt::format("{}x{}{}x{}x{} keys {}{}", a.batch, a.heads, a.sharing == 1 ? "" : fmt::format(" on {} ", kv_heads),
                  a.seq_q, a.head_dim, a.seq_kv, kCausal[static_cast<int>(a.causal)]);
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    const uint64_t q_count = a.batch * a.heads * a.seq_q * a.head_dim;
    const uint64_t kv_count = a.batch * kv_heads * a.seq_kv * a.head_dim;
    Problem problem;
    problem.operation = entry.operation;
    problem.shape = entry.shape;
    for (const uint64_t count : {q_count, kv_count, kv_count}) problem.inputs.push_back(random.uniform(count, -2, 2));
    problem.output = poison(q_count);
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      tuff_attention_desc desc{};
      desc.dtype = TUFF_F32;
      desc.q = in[0].handle(), desc.k = in[1].handle(), desc.v = in[2].handle(), desc.o = out.handle();
      desc.batch = a.batch, desc.heads = a.heads, desc.kv_heads = kv_heads;
      desc.seq_q = a.seq_q, desc.seq_kv = a.seq_kv, desc.head_dim = a.head_dim;
      desc.scale = scale;
      desc.causal = static_cast<int32_t>(a.causal);
      context.attention(desc);
    };
    problem.bound = [=](const Problem& self, const Tensor& reference, const HostRun&) {
      return attention_bound(a, scale, self.inputs, reference);
    };
    return problem;
  };
  return entry;
}

struct Axis {
  std::vector<uint64_t> shape;
  uint32_t axis;
};

std::string axis_text(const Axis& a) { return fmt::format("{} axis {}", fmt::join(a.shape, "x"), a.axis); }

uint64_t product(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t size : shape) count *= size;
  return count;
}

Case softmax_case(const Axis& a) {
  Case entry{"softmax", axis_text(a), {}};
  entry.make = [=](uint64_t seed) {
    const uint64_t count = product(a.shape);
    constexpr double kRange = 8;
    Problem problem;
    problem.operation = entry.operation;
    problem.shape = entry.shape;
    problem.inputs.push_back(Random(seed).uniform(count, -kRange, kRange));
    problem.output = poison(count);
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      context.softmax(DType::f32, in[0], out, a.shape, a.axis);
    };
    problem.bound = [=](const Problem&, const Tensor& reference, const HostRun&) {
      // Numerator and denominator each have one subtraction and one exponential; the denominator is also a sum.
      const double each = 2 * kRounding * (2 * kRange) + exp_error(2 * kRange);
      const double relative = std::expm1(2 * each) + gamma(static_cast<double>(a.shape[a.axis]) + 4);
      Bound bound;
      for (const float value : reference) bound.push_back(relative * value + kSmallest);
      return bound;
    };
    return problem;
  };
  return entry;
}

// --- reduce -----------------------------------------------------------------------------------------

enum class Gives { same, sum, real, place, truth, count };  // the types of results
struct Reduction {
  const char* name;
  tuff::Reduce op;
  Gives gives;

  bool numbers() const { return gives <= Gives::real; }  // the results are f32 for f32
};

constexpr Reduction kReduce[] = {
#define REDUCE(number, NAME, name, gathers, result, output, ...) {#name, tuff::Reduce::name, Gives::output},
#include "kernels/reduce/reduce.def"
};

Case reduce_case(const char* name, tuff::Reduce op, const Axis& a, bool integers = false) {
  Case entry{fmt::format("reduce {}", name), axis_text(a) + (integers ? " integers" : ""), {}};
  const Call call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
    context.reduce(DType::f32, op, in[0], out, a.shape, a.axis);
  };
  entry.make = [=](uint64_t seed) {
    const uint64_t count = product(a.shape);
    Random random(seed);
    Problem problem{entry.operation, entry.shape, {}, poison(count / a.shape[a.axis]), call, exact};
    const bool product = op == tuff::Reduce::prod;  // of values near 1, so that the product stays in range
    problem.inputs.push_back(integers  ? random.integers(count, 8)
                             : product ? random.uniform(count, 0.99, 1.01)
                                       : random.uniform(count, -1, 1));
    if (product) {
      problem.bound = [n = static_cast<double>(a.shape[a.axis])](const Problem&, const Tensor& reference,
                                                                 const HostRun&) {
        Bound bound;
        for (const float value : reference) bound.push_back(gamma(n + 1) * std::fabs(static_cast<double>(value)));
        return bound;
      };
    }
    const bool sums = op == tuff::Reduce::sum || op == tuff::Reduce::mean;
    // Whatever the tree's shape, no element goes through more additions than there are elements.
    if (sums && !integers) problem.bound = accumulated(static_cast<double>(a.shape[a.axis]) + 1, call);
    // Sums of terms that are not negative. Means, and maxima, are at most 1, and so are the terms' own errors.
    if (op >= tuff::Reduce::sum_squares) {
      problem.bound = [n = static_cast<double>(a.shape[a.axis])](const Problem&, const Tensor& reference,
                                                                 const HostRun&) {
        Bound bound;
        for (const float value : reference)
          bound.push_back(gamma(n + 16) * (std::fabs(static_cast<double>(value)) + 4));
        return bound;
      };
    }
    return problem;
  };
  return entry;
}

// --- unary, binary ----------------------------------------------------------------------------------

template <typename Op>
struct Elementwise {
  const char* name;
  Op op;
  double low, high;
  double error_in_ulps;  // 0: exact
};

// The library's tables of operations, with the errors that they promise.
constexpr Elementwise<tuff::Unary> kUnary[] = {
#define UNARY(number, NAME, name, file, ulps, measured, measured_gpu, flops, alpha, low, high, y, dy) \
  {#name, tuff::Unary::name, low, high, ulps},
#include "kernels/elementwise/unary.def"
};
constexpr Elementwise<tuff::Binary> kBinary[] = {
#define BINARY(number, NAME, name, python, file, ulps, measured, measured_gpu, flops, integers, low, high, y) \
  {#name, tuff::Binary::name, low, high, ulps},
#include "kernels/elementwise/binary.def"
};

void call(const tuff::Context& context, tuff::Unary op, const Buffers& in, const tuff::Buffer& out, uint64_t n) {
  context.unary(DType::f32, op, in[0], out, n);
}
void call(const tuff::Context& context, tuff::Binary op, const Buffers& in, const tuff::Buffer& out, uint64_t n) {
  context.binary(DType::f32, op, in[0], in[1], out, n);
}

// --- normalisations ---------------------------------------------------------------------------------

// Normalises rows by their own mean and variance. The mean of n values of magnitude at most 4 is off by at most
// gamma_n times 4, and so is every difference from it. The deviation's relative error is up to twice that.
Case norm_case(const char* name, bool centred, uint64_t rows, uint64_t cols) {
  Case entry{name, fmt::format("{} rows of {}", rows, cols), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem;
    problem.operation = entry.operation;
    problem.shape = entry.shape;
    constexpr double kRange = 4;
    problem.inputs = {random.uniform(rows * cols, -kRange, kRange), random.uniform(cols, 0.5, 2),
                      random.uniform(cols, -1, 1)};
    problem.output = poison(rows * cols);
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      if (centred) {
        context.layer_norm(DType::f32, in[0], in[1], in[2], out, rows, cols, 1e-5);
      } else {
        context.rms_norm(DType::f32, in[0], in[1], out, rows, cols, 1e-5);
      }
    };
    problem.bound = [=](const Problem& self, const Tensor& reference, const HostRun&) {
      Bound bound(reference.size());
      for (uint64_t row = 0; row < rows; ++row) {
        const float* x = self.inputs[0].data() + row * cols;
        double mean = 0, squares = 0;
        for (uint64_t i = 0; centred && i < cols; ++i) mean += x[i] / static_cast<double>(cols);
        for (uint64_t i = 0; i < cols; ++i) squares += (x[i] - mean) * (x[i] - mean);
        const double scale = 1 / std::sqrt(squares / static_cast<double>(cols) + 1e-5);
        const double each = gamma(static_cast<double>(cols) + 16);
        for (uint64_t i = 0; i < cols; ++i) {
          const double w = self.inputs[1][i], b = centred ? self.inputs[2][i] : 0;
          const double relative = each * (2 + 4 * kRange * scale);
          bound[row * cols + i] = w * scale * (kRange * each + std::fabs(x[i] - mean) * relative) +
                                  8 * kRounding * (w * scale * std::fabs(x[i] - mean) + std::fabs(b)) + kSmallest;
        }
      }
      return bound;
    };
    return problem;
  };
  return entry;
}

// The error that gelu_tanh's own argument adds to its bound, in units in the last place (docs/accuracy.md). The result
// is x times the sigmoid of t, and t takes seven roundings. The sigmoid scales a relative error of t by t (1 -
// sigmoid(t)).
double gelu_tanh_ulps(double x) {
  const double t = std::sqrt(8 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
  return 7 * std::fabs(t) / (1 + std::exp(t));
}

Case with_gelu_tanh_bound(Case entry, double error_in_ulps) {
  entry.make = [make = entry.make, error_in_ulps](uint64_t seed) {
    Problem problem = make(seed);
    problem.bound = [error_in_ulps](const Problem& self, const Tensor& reference, const HostRun& host) {
      Bound bound = ulps(1)(self, reference, host);
      for (size_t i = 0; i < bound.size(); ++i) {
        bound[i] *= error_in_ulps + gelu_tanh_ulps(self.inputs[0][i]);
      }
      return bound;
    };
    return problem;
  };
  return entry;
}

template <typename Op>
Case elementwise_case(const char* family, const Elementwise<Op>& e, size_t operands, uint64_t n) {
  Case entry{fmt::format("{} {}", family, e.name), fmt::format("n={}", n), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem;
    problem.operation = entry.operation;
    problem.shape = entry.shape;
    for (size_t i = 0; i < operands; ++i) problem.inputs.push_back(random.uniform(n, e.low, e.high));
    problem.output = poison(n);
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      call(context, e.op, in, out, n);
    };
    if (e.error_in_ulps == 0) {
      problem.bound = exact;
    } else {
      problem.bound = ulps(e.error_in_ulps);
    }
    return problem;
  };
  return entry;
}

// --- shapes and types -------------------------------------------------------------------------------

// A case whose result must be bit-identical on every device.
Case exact_case(std::string operation, std::string shape, std::vector<uint64_t> inputs, uint64_t results, Call call) {
  Case entry{std::move(operation), std::move(shape), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem{entry.operation, entry.shape, {}, poison(results), call, exact};
    for (const uint64_t count : inputs) problem.inputs.push_back(random.uniform(count, -300, 300));
    return problem;
  };
  return entry;
}

// Changes a case so that its results may be off by `bound`.
Case within(Case entry, double bound) {
  entry.make = [make = entry.make, bound](uint64_t seed) {
    Problem problem = make(seed);
    problem.bound = [bound](const Problem&, const Tensor& reference, const HostRun&) {
      return Bound(reference.size(), bound);
    };
    return problem;
  };
  return entry;
}

Case rope_case() {
  const Case entry = exact_case("rope", "2x3x40x64 from position 100000", {15'360}, 15'360,
                                [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                                  context.rope(DType::f32, in[0], out, 2, 3, 40, 64, 100'000);
                                });
  return within(entry, 600 * (4 * 2 * kRounding + 0x1p-29 + 3 * kRounding));
}

void add_shape_cases(std::vector<Case>& cases) {
  const auto add = [&](const std::string& operation, const std::string& shape, uint64_t inputs, uint64_t results,
                       Call call) {
    cases.push_back(exact_case(operation, shape, {inputs}, results, std::move(call)));
  };
  for (const MatrixRow& row : matrix_rows()) {
    const MatrixCall made = row.make(row.rows, row.cols);
    Case entry = exact_case(row.operation, fmt::format("{}x{} {}", row.rows, row.cols, row.form), made.inputs,
                            made.results, made.call);
    cases.push_back(row.bound == 0 ? std::move(entry) : within(std::move(entry), row.bound));
  }
  add("permute", "4x33x8x20 by 0,2,1,3", 21'120, 21'120,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        context.permute(DType::f32, in[0], out, {4, 33, 8, 20}, {0, 2, 1, 3});
      });
  add("binary sub", "64x200x9 with 200x1", 115'200, 115'200,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_binary_desc desc{};
        desc.dtype = TUFF_F32, desc.op = TUFF_BINARY_SUB;
        desc.a = in[0].handle(), desc.b = in[0].handle(), desc.output = out.handle();
        desc.rank = 3;
        desc.a_shape[0] = 64, desc.a_shape[1] = 200, desc.a_shape[2] = 9;
        desc.b_shape[0] = 1, desc.b_shape[1] = 200, desc.b_shape[2] = 1;
        context.binary(desc);
      });
  add("slice", "90x100 from 5,3 take 80x64", 9'000, 5'120,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        context.slice(DType::f32, in[0], out, {90, 100}, {5, 3}, {80, 64});
      });
  add("gather", "5000 rows of 300x33", 9'900, 165'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        // Integers from -300 to 300, some of which are out of range as indices.
        const tuff::Buffer indices = context.alloc_bytes(4 * 5'000);
        context.cast(DType::f32, DType::i32, in[0], indices, 5'000);
        context.gather(DType::f32, DType::i32, in[0], indices, out, {300, 33}, 0, 5'000);
      });
  for (const uint64_t k : {uint64_t{0}, uint64_t{7}}) {
    add("sort", k == 0 ? "2x4500 axis 1" : "4500x2 axis 0, 7 largest", 9'000, k == 0 ? 9'000 : 14,
        [k](const tuff::Context& context, const Buffers& in, const auto& out) {
          tuff_sort_desc desc{};
          desc.dtype = TUFF_F32, desc.input = in[0].handle(), desc.values = out.handle(), desc.rank = 2;
          desc.shape[0] = k == 0 ? 2 : 4'500, desc.shape[1] = k == 0 ? 4'500 : 2, desc.axis = k == 0 ? 1 : 0;
          desc.k = k, desc.descending = k != 0 ? 1 : 0;
          context.sort(desc);
        });
  }
  for (const bool set : {true, false}) {
    // Updates are rounded to integers, so that sums are exact in any order. Indices from -300 to 300: some repeat, and
    // some are out of range.
    add("scatter", set ? "5000 rows of 33 into 300, set" : "5000 rows of 33 into 300, add", 165'000, 9'900,
        [set](const tuff::Context& context, const Buffers& in, const auto& out) {
          const tuff::Buffer indices = context.alloc_bytes(4 * 5'000), whole = context.alloc_bytes(4 * 165'000),
                             updates = context.alloc_bytes(4 * 165'000);
          context.cast(DType::f32, DType::i32, in[0], indices, 5'000);
          context.cast(DType::f32, DType::i32, in[0], whole, 165'000);
          context.cast(DType::i32, DType::f32, whole, updates, 165'000);
          context.fill<float>(out, 0.0f, 9'900);
          tuff_scatter_desc desc{};
          desc.dtype = TUFF_F32, desc.index_type = TUFF_I32, desc.op = set ? TUFF_SCATTER_SET : TUFF_SCATTER_ADD;
          desc.indices = indices.handle(), desc.updates = updates.handle(), desc.output = out.handle();
          desc.rank = 2, desc.shape[0] = 300, desc.shape[1] = 33, desc.count = 5'000;
          context.scatter(desc);
        });
  }
  add("pad", "90x100 by 7 and 9, reflected", 9'000, 12'296,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_pad_desc desc{};
        desc.dtype = TUFF_F32, desc.mode = TUFF_PAD_REFLECT, desc.rank = 2;
        desc.input = in[0].handle(), desc.output = out.handle();
        desc.shape[0] = 90, desc.shape[1] = 100;
        for (int i = 0; i < 2; ++i) desc.before[i] = 7, desc.after[i] = 9;
        context.pad(desc);
      });
  add("copy_strided", "90x100, backwards and transposed", 9'000, 9'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_copy_strided_desc desc{};
        desc.dtype = TUFF_F32, desc.rank = 2;
        desc.input = in[0].handle(), desc.output = out.handle();
        desc.shape[0] = 90, desc.shape[1] = 100;
        desc.input_strides[0] = -100, desc.input_strides[1] = 1, desc.input_first = 8'900;
        desc.output_strides[0] = 1, desc.output_strides[1] = 90;
        context.copy_strided(desc);
      });
  add("max_pool", "3x50x60 by 3x3, stride 2, padding 1", 9'000, 2'250,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        tuff_pool_desc desc{};
        desc.dtype = TUFF_F32;
        desc.input = in[0].handle(), desc.output = out.handle();
        desc.batch = 1, desc.channels = 3, desc.spatial = 2;
        desc.in_shape[0] = 50, desc.in_shape[1] = 60, desc.out_shape[0] = 25, desc.out_shape[1] = 30;
        for (int i = 0; i < 2; ++i) desc.kernel[i] = 3, desc.stride[i] = 2, desc.padding[i] = 1;
        context.max_pool(desc);
      });
  for (const bool last : {false, true}) {
    add("resize", last ? "20x30x8 to 40x60, linear, channels last" : "3x40x40 to 80x80, linear", 4'800, 19'200,
        [=](const tuff::Context& context, const Buffers& in, const auto& out) {
          tuff_resize_desc desc{};
          desc.dtype = TUFF_F32;
          desc.input = in[0].handle(), desc.output = out.handle();
          desc.batch = 1, desc.channels = last ? 8 : 3, desc.spatial = 2, desc.mode = TUFF_RESIZE_LINEAR;
          desc.layout = last ? TUFF_LAYOUT_NHWC : TUFF_LAYOUT_NCHW;
          desc.in_shape[0] = last ? 20 : 40, desc.in_shape[1] = last ? 30 : 40;
          desc.out_shape[0] = last ? 40 : 80, desc.out_shape[1] = last ? 60 : 80;
          context.resize(desc);
        });
    // Four elements of magnitude at most 300, with 12 roundings for each of the two axes (tests/resize_test.cpp).
    cases.back() = within(cases.back(), 4 * 300 * 24 * kRounding);
  }
  for (const Reduction& row : kReduce) {
    if (row.numbers()) continue;
    const DType type = row.gives == Gives::place ? DType::u32 : row.gives == Gives::count ? DType::i64 : DType::boolean;
    for (const uint32_t axis : {0, 1}) {
      add(fmt::format("reduce {}", row.name), axis == 0 ? "3000x50 axis 0" : "50x3000 axis 1", 150'000, 50,
          [op = row.op, type, axis](const tuff::Context& context, const Buffers& in, const auto& out) {
            // Converted to floats, so that the comparison of results treats indices and counts as numbers.
            const tuff::Buffer numbers = context.alloc_bytes(8 * 50);
            const std::vector<uint64_t> shape = {axis == 0 ? uint64_t{3000} : 50, axis == 0 ? uint64_t{50} : 3000};
            context.reduce(DType::f32, op, in[0], numbers, shape, axis);
            context.cast(type, DType::f32, numbers, out, 50);
          });
    }
  }
  add("cumsum", "120x100 axis 1, reverse", 12'000, 12'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        context.cumsum(DType::f32, in[0], out, {120, 100}, 1, false, true);
      });
  // At most 100 values of magnitude at most 300, and as many roundings.
  cases.back() = within(cases.back(), 100.0 * 300 * 100 * kRounding);
  // A product of two values, rounded once.
  add("cumprod", "6000x2 axis 1, reverse", 12'000, 12'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        context.cumprod(DType::f32, in[0], out, {6'000, 2}, 1, false, true);
      });
  for (const bool largest : {true, false}) {
    add(largest ? "cummax" : "cummin", "120x100 axis 1, exclusive", 12'000, 12'000,
        [largest](const tuff::Context& context, const Buffers& in, const auto& out) {
          tuff_scan_desc desc{};
          desc.dtype = TUFF_F32, desc.input = in[0].handle(), desc.output = out.handle();
          desc.shape[0] = 120, desc.shape[1] = 100, desc.rank = 2, desc.axis = 1, desc.exclusive = 1;
          largest ? context.cummax(desc) : context.cummin(desc);
        });
  }
  // Integers, computed exactly: sums of 100 rows' and columns' numbers, and what is even of them.
  add("expr", "100x120, integers, broadcast and reversed", 12'000, 12'000,
      [](const tuff::Context& context, const Buffers& in, const auto& out) {
        const tuff::Expr expr = context.expression("t = i32(a) * 3 + i32(b); f32(t % 2 == 0 ? t // 4 : -t)",
                                                   {{"a", TUFF_F32, 0}, {"b", TUFF_F32, 0}}, {{"y", TUFF_F32, 0}});
        tuff_expr_operand a{}, b{}, y{};
        a.buffer = in[0].handle(), a.first = 11'999, a.strided = 1, a.strides[0] = -120, a.strides[1] = -1;
        b.buffer = in[0].handle(), b.strided = 1, b.strides[1] = 1;
        y.buffer = out.handle();
        expr.run(context.handle(), {100, 120}, {a, b}, {y});
      });
  cases.push_back(rope_case());
  // All backends compute the same bits.
  add("random", "normal, 10001 values", 1, 10'001, [](const tuff::Context& context, const Buffers&, const auto& out) {
    tuff_random_desc desc{};
    desc.dtype = TUFF_F32, desc.distribution = TUFF_RANDOM_NORMAL;
    desc.output = out.handle(), desc.n = 10'001, desc.seed = 5;
    context.random(desc);
  });
  add("fft", "30x100 complex", 6'000, 6'000, [](const tuff::Context& context, const Buffers& in, const auto& out) {
    tuff_fft_desc desc{};
    desc.dtype = TUFF_F32, desc.kind = TUFF_FFT_COMPLEX, desc.rank = 2;
    desc.input = in[0].handle(), desc.output = out.handle();
    desc.shape[0] = 30, desc.shape[1] = 100;
    context.fft(desc);
  });
  // 4 log2(100) roundings of the result's Euclidean norm, of 100 complex numbers whose parts are at most 300.
  cases.back() = within(cases.back(), 4 * 6.7 * 100 * 300 * 1.5 * kRounding);
}

}  // namespace

double gamma(double n) { return n * kRounding / (1 - n * kRounding); }
double exp_error(double x) { return (3 + 2 * std::fabs(x)) * 2 * kRounding; }

Tensor Random::uniform(uint64_t count, double low, double high) {
  Tensor values(count);
  for (auto& value : values) value = static_cast<float>(low + (high - low) * unit());
  return values;
}

Tensor Random::integers(uint64_t count, int magnitude) {
  Tensor values(count);
  for (auto& value : values) value = static_cast<float>(static_cast<int>(unit() * (2 * magnitude + 1)) - magnitude);
  return values;
}

double Random::unit() {  // splitmix64
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

Tensor poison(uint64_t count) { return Tensor(count, std::numeric_limits<float>::quiet_NaN()); }

Bound exact(const Problem&, const Tensor& reference, const HostRun&) { return Bound(reference.size(), 0.0); }

// One row for each shape, so a new operation needs only a few rows here.
std::vector<Case> selftest_cases() {
  constexpr Transpose N = Transpose::no, T = Transpose::yes;
  std::vector<Case> cases;
  for (const Gemm& gemm :
       {Gemm{N, N, 64, 64, 64, 1, 0, 0}, Gemm{N, N, 1, 1, 1, 1, 0, 0}, Gemm{N, N, 1, 257, 127, 1, 0, 0},
        Gemm{N, N, 257, 1, 127, 1, 0, 0}, Gemm{N, T, 127, 65, 33, 1, 0, 0}, Gemm{T, N, 65, 127, 63, 2, -0.5, 0},
        Gemm{T, T, 31, 129, 257, 1, 1, 3}, Gemm{N, N, 200, 100, 300, 0.5, 2, 5}, Gemm{N, N, 16, 16, 4096, 1, 0, 0},
        Gemm{N, N, 129, 131, 137, 1, 0, 0, 1, true}, Gemm{T, T, 100, 50, 75, 1, 0, 4, 1, true},
        Gemm{N, N, 33, 17, 65, 1, 0, 0, 5}, Gemm{N, T, 64, 64, 32, 1, 1, 1, 3},
        Gemm{T, N, 20, 30, 40, 1, 0, 0, 7, true}}) {
    cases.push_back(gemm_case(gemm));
  }
  for (const Conv2d& conv :
       {Conv2d{{1, 3, 17, 19}, {8, 3, 3, 3}, 1, 1, 1}, Conv2d{{2, 16, 14, 14}, {32, 16, 1, 1}, 1, 0, 1},
        Conv2d{{1, 5, 23, 21}, {7, 5, 5, 3}, 2, 2, 1}, Conv2d{{1, 4, 20, 20}, {6, 4, 3, 3}, 1, 2, 2},
        Conv2d{{2, 8, 16, 16}, {16, 8, 3, 3}, 1, 1, 1, true}, Conv2d{{2, 12, 15, 13}, {18, 4, 3, 3}, 1, 1, 1, false, 3},
        Conv2d{{2, 12, 15, 13}, {12, 1, 3, 3}, 2, 1, 1, false, 12, false, TUFF_LAYOUT_NHWC},
        Conv2d{{1, 16, 15, 13}, {24, 16, 3, 3}, 1, 1, 1, false, 1, false, TUFF_LAYOUT_NHWC},
        Conv2d{{2, 9, 8, 7}, {9, 5, 4, 4}, 2, 1, 1, false, 1, true},
        Conv2d{{2, 8, 8, 7}, {8, 3, 3, 3}, 2, 0, 1, true, 2, true}}) {
    cases.push_back(conv2d_case(conv));
  }
  for (const Attention& attention :
       {Attention{1, 2, 64, 64, 64, tuff::Causal::none}, Attention{2, 2, 33, 65, 40, tuff::Causal::none},
        Attention{1, 2, 50, 50, 32, tuff::Causal::top_left}, Attention{1, 2, 20, 70, 128, tuff::Causal::bottom_right},
        Attention{1, 1, 70, 20, 16, tuff::Causal::bottom_right}, Attention{1, 3, 1, 200, 64, tuff::Causal::none},
        Attention{2, 8, 1, 700, 64, tuff::Causal::bottom_right, 4}}) {
    cases.push_back(attention_case(attention));
  }
  const Axis axes[] = {{{1000}, 0}, {{37, 129}, 1}, {{129, 37}, 0}, {{5, 64, 33}, 1}, {{100003}, 0}};
  for (const Axis& axis : axes) cases.push_back(softmax_case(axis));
  for (const Reduction& row : kReduce) {
    if (!row.numbers()) continue;
    for (const Axis& axis : axes) cases.push_back(reduce_case(row.name, row.op, axis));
  }
  cases.push_back(reduce_case("sum", tuff::Reduce::sum, Axis{{300, 1001}, 1}, true));
  for (const auto& [rows, cols] : {std::pair{uint64_t{300}, uint64_t{64}}, {37, 1025}, {5, 4096}, {2, 50'001}}) {
    cases.push_back(norm_case("layer_norm", true, rows, cols));
    cases.push_back(norm_case("rms_norm", false, rows, cols));
  }
  for (const uint64_t n : {1, 1023, 100003}) {
    for (const auto& unary : kUnary) {
      cases.push_back(elementwise_case("unary", unary, 1, n));
      if (unary.op == tuff::Unary::gelu_tanh) cases.back() = with_gelu_tanh_bound(cases.back(), unary.error_in_ulps);
    }
    for (const auto& binary : kBinary) cases.push_back(elementwise_case("binary", binary, 2, n));
  }
  add_shape_cases(cases);
  add_type_cases(cases);
  add_linalg_cases(cases);
  std::stable_sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.operation < b.operation; });
  return cases;
}

}  // namespace tool
