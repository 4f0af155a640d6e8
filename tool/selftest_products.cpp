// GEMM, convolution, attention, recurrent layers and optimisers.
#include "tool/selftest_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tool {
namespace {

using tuff::DType;
using tuff::Transpose;

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

// Gradients of attention with two heads that share keys, of sums and outputs that are random numbers too. A score is
// below 5 and wrong by 1e-5, and so is a weight, which is at most 1; d_o * (v - o) is below 48 and wrong by 9e-5, so
// that a pair's slope is wrong by 6e-4. A result has at most 66 of these, times a factor below 1 and the scale 0.2:
// 8e-3, and 2e-3 for the sum.
Case attention_backward_case(const char* name, tuff_buffer tuff_attention_backward_desc::*output) {
  constexpr uint64_t kHeads = 2, kRows = 33, kKeys = 40, kSize = 24;
  Case entry{"attention_backward", fmt::format("{} of 2 on 1 heads, 33x24 by 40 keys, causal bottom-right", name), {}};
  const uint64_t results = output == &tuff_attention_backward_desc::dq ? kHeads * kRows * kSize : kKeys * kSize;
  entry.make = [=, operation = entry.operation, shape = entry.shape](uint64_t seed) {
    Random random(seed);
    const Call call = [output](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      tuff_attention_backward_desc desc{};
      desc.dtype = TUFF_F32;
      desc.q = in[0].handle(), desc.k = in[1].handle(), desc.v = in[2].handle();
      desc.o = in[3].handle(), desc.d_o = in[4].handle(), desc.lse = in[5].handle();
      desc.batch = 1, desc.heads = kHeads, desc.kv_heads = 1;
      desc.seq_q = kRows, desc.seq_kv = kKeys, desc.head_dim = kSize;
      desc.causal = TUFF_CAUSAL_BOTTOM_RIGHT;
      desc.*output = out.handle();
      context.attention_backward(desc);
    };
    Problem problem{operation, shape, {}, poison(results), call, exact};
    for (const uint64_t count : {kHeads * kRows, kKeys, kKeys, kHeads * kRows, kHeads * kRows}) {
      problem.inputs.push_back(random.uniform(count * kSize, -1, 1));
    }
    problem.inputs.push_back(random.uniform(kHeads * kRows, 3, 4));
    return problem;
  };
  return within(std::move(entry), 1e-2);
}

// --- recurrent layers -----------------------------------------------------------------------------------

constexpr uint64_t kRnnBatch = 5, kRnnInputs = 9, kRnnHidden = 20, kRnnRows = 4 * kRnnHidden;

// What tuff_rnn_desc and tuff_rnn_backward_desc have in common, for both directions of an LSTM.
template <typename Desc>
Desc lstm_desc(uint64_t steps, const Buffers& in) {
  Desc desc{};
  desc.dtype = TUFF_F32, desc.cell = TUFF_RNN_CELL_LSTM, desc.direction = TUFF_RNN_DIRECTION_BOTH;
  desc.batch = kRnnBatch, desc.steps = steps, desc.input_size = kRnnInputs, desc.hidden_size = kRnnHidden;
  desc.x = in[0].handle(), desc.w = in[1].handle(), desc.r = in[2].handle(), desc.bias_w = in[3].handle();
  return desc;
}

// Both directions of an LSTM. Sums of a gate are below 20, and rounded in some 40 places: by 5e-5 with what precedes
// them. Weights of h are at most 0.01, so that an error of h adds at most 0.2 of it to a sum; c is below 7, and its
// error becomes 1.6 times as large from one step to the next: 1e-4 * (1 + 1.6 + ... + 1.6^5).
//
// In f16 inputs are rounded first, all of them alike; y is, by 2^-12 at most, on both sides.
Case rnn_case(bool halves) {
  constexpr uint64_t kSteps = 6, kResults = kSteps * kRnnBatch * 2 * kRnnHidden;
  Case entry{"rnn", fmt::format("lstm both ways{}, 6 steps of 5x9 to 20", halves ? " in f16" : ""), {}};
  entry.make = [halves, operation = entry.operation, shape = entry.shape](uint64_t seed) {
    Random random(seed);
    const Call in_f32 = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      auto desc = lstm_desc<tuff_rnn_desc>(kSteps, in);
      desc.bias_r = in[4].handle(), desc.y = out.handle();
      context.rnn(desc);
    };
    const Call in_f16 = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      Buffers rounded;
      for (const tuff::Buffer& each : in) {
        const uint64_t count = each.size_bytes() / 4;
        rounded.push_back(context.alloc<uint16_t>(count));
        context.cast(DType::f32, DType::f16, each, rounded.back(), count);
      }
      const tuff::Buffer y = context.alloc<uint16_t>(kResults);
      auto desc = lstm_desc<tuff_rnn_desc>(kSteps, rounded);
      desc.dtype = TUFF_F16, desc.bias_r = rounded[4].handle(), desc.y = y.handle();
      context.rnn(desc);
      context.cast(DType::f16, DType::f32, y, out, kResults);
    };
    const Call call = halves ? in_f16 : in_f32;
    Problem problem{operation, shape, {}, poison(kResults), call, exact};
    problem.inputs = {random.uniform(kSteps * kRnnBatch * kRnnInputs, -1, 1),
                      random.uniform(2 * kRnnRows * kRnnInputs, -2, 2),
                      random.uniform(2 * kRnnRows * kRnnHidden, -0.01, 0.01), random.uniform(2 * kRnnRows, -1, 1),
                      random.uniform(2 * kRnnRows, -1, 1)};
    return problem;
  };
  return within(std::move(entry), halves ? 4e-3 : 3e-3);
}

// The gradients of three such steps by the weights of h. Sums are below 4, and wrong by 1e-5; c is below 3, and wrong
// by 5e-5; the gradients by c are below 3. Those by sums are products of these: wrong by 3 * (5e-5 / 4 + 3 * 1e-5).
// Each result is the sum of 15 of them, times h, which is below 1: 2e-3.
Case rnn_backward_case() {
  constexpr uint64_t kSteps = 3;
  Case entry{"rnn_backward", "lstm both ways, 3 steps of 5x9 to 20", {}};
  entry.make = [operation = entry.operation, shape = entry.shape](uint64_t seed) {
    Random random(seed);
    const Call call = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      auto desc = lstm_desc<tuff_rnn_backward_desc>(kSteps, in);
      desc.dy = in[4].handle(), desc.dr = out.handle();
      context.rnn_backward(desc);
    };
    Problem problem{operation, shape, {}, poison(2 * kRnnRows * kRnnHidden), call, exact};
    problem.inputs = {random.uniform(kSteps * kRnnBatch * kRnnInputs, -1, 1),
                      random.uniform(2 * kRnnRows * kRnnInputs, -0.3, 0.3),
                      random.uniform(2 * kRnnRows * kRnnHidden, -0.01, 0.01), random.uniform(2 * kRnnRows, -0.3, 0.3),
                      random.uniform(kSteps * kRnnBatch * 2 * kRnnHidden, -1, 1)};
    return problem;
  };
  return within(std::move(entry), 3e-3);
}

// A step of AdamW from moments of zero: its length for each element is the rate, whatever the gradient. The direction
// is a quotient near 1, wrong by some ten roundings, and the weight below 2.
Case optimizer_case() {
  constexpr uint64_t kCount = 5003;
  Case entry{"optimizer_step", "adamw, 5003 weights", {}};
  entry.make = [operation = entry.operation, shape = entry.shape](uint64_t seed) {
    Random random(seed);
    const Call call = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      const uint64_t size = kCount;
      const tuff_buffer parameters = out.handle(), gradients = in[0].handle(), masters = in[1].handle(),
                        m = in[2].handle(), v = in[3].handle();
      tuff_optimizer_desc desc{};
      desc.dtype = TUFF_F32, desc.algorithm = TUFF_OPTIMIZER_ADAMW, desc.count = 1, desc.sizes = &size;
      desc.parameters = &parameters, desc.gradients = &gradients, desc.masters = &masters;
      desc.first_moments = &m, desc.second_moments = &v;
      desc.rate = 0.1, desc.beta1 = 0.9, desc.beta2 = 0.999, desc.epsilon = 1e-8, desc.weight_decay = 0.1;
      desc.step = 1;
      context.optimizer_step(desc);
    };
    Problem problem{operation, shape, {}, poison(kCount), call, exact};
    problem.inputs = {random.uniform(kCount, 0.5, 2), random.uniform(kCount, -1, 1), std::vector<float>(kCount, 0.0f),
                      std::vector<float>(kCount, 0.0f)};
    return problem;
  };
  return within(std::move(entry), 2e-6);
}

// The norm of a list, about 1: half the error of a sum with chains of some 300 additions.
Case gradient_norm_case() {
  constexpr uint64_t kCount = 5003;
  Case entry{"gradient_norm", "5003 and 77 gradients", {}};
  entry.make = [operation = entry.operation, shape = entry.shape](uint64_t seed) {
    Random random(seed);
    const Call call = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      const uint64_t sizes[] = {kCount, 77};
      const tuff_buffer gradients[] = {in[0].handle(), in[1].handle()};
      tuff_gradient_norm_desc desc{};
      desc.dtype = TUFF_F32, desc.count = 2, desc.sizes = sizes, desc.gradients = gradients, desc.norm = out.handle();
      context.gradient_norm(desc);
    };
    Problem problem{operation, shape, {}, poison(1), call, exact};
    problem.inputs = {random.uniform(kCount, -0.02, 0.02), random.uniform(77, -0.1, 0.1)};
    return problem;
  };
  return within(std::move(entry), 2e-5);
}

// Gradients by cross-entropy, all with label 0, and by softmax: quotients of exponentials below 1, wrong by some 20
// roundings and by those of differences of at most 8, and sums of 77 of them.
Case cross_entropy_case() {
  constexpr uint64_t kRows = 40, kClasses = 77;
  Case entry{"cross_entropy", "40 rows of 77 classes, gradient", {}};
  entry.make = [operation = entry.operation, shape = entry.shape](uint64_t seed) {
    Random random(seed);
    const Call call = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      tuff_cross_entropy_desc desc{};
      desc.dtype = TUFF_F32, desc.label_type = TUFF_I32, desc.rank = 2, desc.axis = 1;
      desc.shape[0] = kRows, desc.shape[1] = kClasses, desc.label_smoothing = 0.1;
      desc.logits = in[0].handle(), desc.labels = in[1].handle(), desc.gradient = out.handle();
      context.cross_entropy(desc);
    };
    Problem problem{operation, shape, {}, poison(kRows * kClasses), call, exact};
    problem.inputs = {random.uniform(kRows * kClasses, -4, 4), std::vector<float>(kRows, 0.0f)};
    return problem;
  };
  return within(std::move(entry), 2e-5);
}

Case softmax_backward_case() {
  constexpr uint64_t kRows = 40, kExtent = 77;
  Case entry{"softmax_backward", "40 rows of 77", {}};
  entry.make = [operation = entry.operation, shape = entry.shape](uint64_t seed) {
    Random random(seed);
    const Call call = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      tuff_softmax_backward_desc desc{};
      desc.dtype = TUFF_F32, desc.rank = 2, desc.axis = 1;
      desc.shape[0] = kRows, desc.shape[1] = kExtent;
      desc.output = in[0].handle(), desc.output_gradient = in[1].handle(), desc.gradient = out.handle();
      context.softmax_backward(desc);
    };
    Problem problem{operation, shape, {}, poison(kRows * kExtent), call, exact};
    problem.inputs = {random.uniform(kRows * kExtent, 0, 0.03), random.uniform(kRows * kExtent, -1, 1)};
    return problem;
  };
  return within(std::move(entry), 2e-5);
}

// Gradients of layer norm by its input: of deviations near 1/2, wrong by some 20 roundings of the terms and by those of
// sums of 77 of them. By its weights: sums of 40 products.
Case norm_backward_case(bool of_weight) {
  constexpr uint64_t kRows = 40, kCols = 77;
  Case entry{"norm_backward", of_weight ? "layer, 40 rows of 77, weights" : "layer, 40 rows of 77, input", {}};
  entry.make = [operation = entry.operation, shape = entry.shape, of_weight](uint64_t seed) {
    Random random(seed);
    const uint64_t results = of_weight ? kCols : kRows * kCols;
    const Call call = [of_weight](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      tuff_norm_backward_desc desc{};
      desc.dtype = TUFF_F32, desc.kind = TUFF_NORM_LAYER;
      desc.batch = kRows, desc.channels = kCols, desc.inner = 1, desc.epsilon = 1e-5;
      desc.input = in[0].handle(), desc.output_gradient = in[1].handle(), desc.weight = in[2].handle();
      (of_weight ? desc.weight_gradient : desc.input_gradient) = out.handle();
      context.norm_backward(desc);
    };
    Problem problem{operation, shape, {}, poison(results), call, exact};
    problem.inputs = {random.uniform(kRows * kCols, -1, 1), random.uniform(kRows * kCols, -1, 1),
                      random.uniform(kCols, -1, 1)};
    return problem;
  };
  return within(std::move(entry), of_weight ? 1e-4 : 2e-5);
}

Case batch_norm_training_case() {
  constexpr uint64_t kImages = 4, kChannels = 19, kPlane = 30;
  Case entry{"batch_norm_training", "4x19x30", {}};
  entry.make = [operation = entry.operation, shape = entry.shape](uint64_t seed) {
    Random random(seed);
    constexpr uint64_t kSize = kImages * kChannels * kPlane;
    const Call call = [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      tuff_batch_norm_training_desc desc{};
      desc.dtype = TUFF_F32, desc.batch = kImages, desc.channels = kChannels, desc.inner = kPlane;
      desc.epsilon = 1e-5, desc.input = in[0].handle(), desc.weight = in[1].handle(), desc.output = out.handle();
      context.batch_norm_training(desc);
    };
    Problem problem{operation, shape, {}, poison(kSize), call, exact};
    problem.inputs = {random.uniform(kSize, -1, 1), random.uniform(kChannels, -1, 1)};
    return problem;
  };
  return within(std::move(entry), 2e-5);
}

}  // namespace

void add_product_cases(std::vector<Case>& cases) {
  constexpr Transpose N = Transpose::no, T = Transpose::yes;
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
  cases.push_back(attention_backward_case("dq", &tuff_attention_backward_desc::dq));
  cases.push_back(attention_backward_case("dk", &tuff_attention_backward_desc::dk));
  cases.push_back(attention_backward_case("dv", &tuff_attention_backward_desc::dv));
  for (const bool halves : {false, true}) cases.push_back(rnn_case(halves));
  cases.push_back(rnn_backward_case());
  cases.push_back(optimizer_case());
  cases.push_back(gradient_norm_case());
  cases.push_back(cross_entropy_case());
  cases.push_back(softmax_backward_case());
  cases.push_back(norm_backward_case(false));
  cases.push_back(norm_backward_case(true));
  cases.push_back(batch_norm_training_case());
}

}  // namespace tool
