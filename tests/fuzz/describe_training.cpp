// Steps of optimisers, norms of gradients, cross-entropy and the gradient of softmax. Values are small integers; how
// far two backends may differ follows from their magnitudes.
#include <algorithm>
#include <cmath>
#include <vector>

#include "fuzz/draft.hpp"
#include "fuzz/numbers.hpp"
#include "support/bounds.hpp"

namespace tuff_fuzz {
namespace {

using tuff_test::gamma;
using tuff_test::kU;

// The largest magnitude of the values of all operands of this name; `otherwise` if the call has none.
double most_of(const Draft& d, std::string_view name, double otherwise = 0) {
  double most = -1;
  for (const Operand& operand : d.operands) {
    if (operand.read && operand.elements != 0 && operand.name == name) most = std::max(most, operand.seen.most);
  }
  return most < 0 ? otherwise : most;
}

std::vector<uint64_t> draw_sizes(Draft& d) {
  std::vector<uint64_t> sizes(d.shape.one_in(6) ? d.shape.between(5, 9) : d.shape.between(1, 3));
  for (uint64_t& size : sizes) size = d.extent(draw_size(d.shape, 300), 0, 60);
  d.set("count", sizes.size());
  d.list("sizes", sizes);
  return sizes;
}

// Whether all contents are integers up to `most` where that matters.
bool integral(const Draft& d, double most) {
  for (const Operand& operand : d.operands) {
    if (!operand.read || operand.elements == 0 || spacing(operand.dtype, 1) == 0) continue;  // no float
    if (!operand.seen.integral || operand.seen.most > most) return false;
  }
  return true;
}

void draw_optimizer_step(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw), algorithm = static_cast<int32_t>(draw.below(4)),
                gradient_type = draw.one_in(3) ? TUFF_F32 : dtype;
  const bool sgd = algorithm == TUFF_OPTIMIZER_SGD, lamb = algorithm == TUFF_OPTIMIZER_LAMB;
  const bool masters = draw.one_in(3), momentum = sgd && draw.one_in(2);
  d.set("dtype", dtype), d.set("algorithm", algorithm);
  d.set("gradient_type", gradient_type == dtype && draw.one_in(2) ? 0 : gradient_type);
  if (momentum) d.set("nesterov", static_cast<int32_t>(draw.below(2)));
  // Both betas are exact, so that m is, and LAMB's u is not a small difference of large numbers.
  const double rate = d.free.of({0.5, 0.01, 0.0}), decay = lamb || draw.one_in(2) ? 0 : 0.125,
               scale = d.free.of({1.0, 0.5, -2.0}), epsilon = sgd ? 0 : 0.5, velocity = momentum ? 0.75 : 0;
  d.real("rate", rate), d.real("weight_decay", decay), d.real("gradient_scale", scale);
  d.real("momentum", velocity), d.real("epsilon", epsilon);
  if (!sgd) d.real("beta1", 0.5), d.real("beta2", 0.75);
  const std::vector<uint64_t> sizes = draw_sizes(d);
  uint64_t elements = 0;
  for (const uint64_t size : sizes) elements += size;
  const bool counted = draw.one_in(2) && elements != 0;  // a count without elements may have no buffer
  d.set("step", counted || (sgd && d.free.one_in(2)) ? uint64_t{0} : d.free.between(1, 9));

  const auto magnitudes = [&d, scale, decay] {
    struct {
      double w, g, m, v, rate;
    } most{std::max(most_of(d, "parameters"), most_of(d, "masters")),
           most_of(d, "gradients") * std::fabs(scale) * most_of(d, "gradient_factor", 1), most_of(d, "first_moments"),
           most_of(d, "second_moments"), most_of(d, "rate_factor", 1)};
    most.g += decay * most.w;
    return most;
  };
  const auto of_first = [magnitudes, velocity, sgd](uint64_t, double) {
    const auto most = magnitudes();
    return 16 * kU * ((sgd ? velocity : 1) * most.m + most.g);
  };
  const auto of_second = [magnitudes](uint64_t, double) {
    const auto most = magnitudes();
    return 16 * kU * (most.v + most.g * most.g);
  };
  const auto n = static_cast<double>(elements);
  const auto of_weights = [=](int32_t type) {
    return [=](uint64_t, double value) {
      const auto most = magnitudes();
      const double step = rate * most.rate;
      double error;
      if (sgd) {
        error = 16 * kU * (most.w + step * (most.g + (velocity + 1) * (velocity * most.m + most.g)));
      } else {
        // m / (1 - beta1^t) is at most twice m, sqrt(v) / sqrt(1 - beta2^t) at most twice sqrt(v). The root is off by
        // as much as g is, and relatively; the quotient by that divided by epsilon, whose square it is divided by at
        // most.
        const double m = 2 * (most.m + most.g), root = 2 * (std::sqrt(most.v) + most.g);
        const double u = m / epsilon, of_u = 32 * kU * (u + m * (root + most.g) / (epsilon * epsilon));
        // LAMB: ratio * u is at most |w|, with norms that are off by a sum's error.
        error =
            lamb ? 32 * kU * most.w + step * std::sqrt(n) * (most.w + u) * (gamma(600) + 64 * kU * (1 + root / epsilon))
                 : 32 * kU * (most.w * (1 + step * decay) + step * u) + step * of_u;
      }
      return with_storage(type, value, error);
    };
  };
  const auto in_out = [&](const char* name, int32_t type, Fill fill, const Allowed& allowed, bool read) {
    d.list(name, std::vector<uint64_t>(sizes.size(), 0));
    for (size_t i = 0; i < sizes.size(); ++i) {
      Operand& operand = d.output(name, type, sizes[i], static_cast<uint32_t>(i));
      operand.read = read, operand.fill = fill, operand.allowed = allowed;
    }
  };
  in_out("parameters", dtype, Fill::integers, of_weights(dtype), !masters);
  d.list("gradients", std::vector<uint64_t>(sizes.size(), 0));
  for (size_t i = 0; i < sizes.size(); ++i) {
    d.input("gradients", gradient_type, sizes[i], Fill::integers, 4, static_cast<uint32_t>(i));
  }
  if (masters) in_out("masters", TUFF_F32, Fill::integers, of_weights(TUFF_F32), true);
  if (!sgd || momentum) in_out("first_moments", TUFF_F32, Fill::integers, of_first, true);
  if (!sgd) in_out("second_moments", TUFF_F32, Fill::positive, of_second, true);
  const uint64_t one = elements != 0 ? 1 : 0;
  if (counted) {
    Operand& steps = d.output("steps", TUFF_I32, 1);
    steps.read = true, steps.fill = Fill::indices, steps.most = 9;
  }
  if (draw.one_in(3)) d.input("rate_factor", TUFF_F32, one, Fill::integers, 2);
  if (draw.one_in(3)) d.input("gradient_factor", TUFF_F32, one, Fill::integers, 2);
  if (draw.one_in(4)) d.input("skip", TUFF_I32, one, Fill::booleans, 1);
  d.suits = [&d, sgd] {
    if (!integral(d, 4)) return false;
    for (const Operand& operand : d.operands) {
      if (!sgd && operand.elements != 0 && std::string_view(operand.name) == "second_moments" && !operand.seen.positive)
        return false;
    }
    return true;
  };
}

void draw_gradient_norm(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  d.set("dtype", dtype);
  const bool accumulates = draw.one_in(3), norm = accumulates || draw.one_in(2), factor = draw.one_in(2),
             found = draw.one_in(2) || !(norm || factor);
  d.set("accumulate", static_cast<int32_t>(accumulates));
  d.real("gradient_scale", d.free.of({1.0, 0.25, -3.0}));
  d.real("limit", d.free.of({0.0, 0.5, 7.0, 1e6}));
  const std::vector<uint64_t> sizes = draw_sizes(d);
  d.list("gradients", std::vector<uint64_t>(sizes.size(), 0));
  for (size_t i = 0; i < sizes.size(); ++i) {
    d.input("gradients", dtype, sizes[i], Fill::integers, 4, static_cast<uint32_t>(i));
  }
  if (draw.one_in(2)) d.input("gradient_factor", TUFF_F32, 1, Fill::integers, 4);
  // Half a sum's error by the root, and a few roundings. A norm at the limit may be on either side of it, where the
  // factor is the same.
  const Allowed near = [](uint64_t, double value) { return std::fabs(value) * (gamma(300) + 16 * kU); };
  if (norm) {
    Operand& output = d.output("norm", TUFF_F32, 1);
    output.allowed = near, output.read = accumulates;
  }
  if (factor) d.output("factor", TUFF_F32, 1).allowed = near;
  if (found) {
    Operand& output = d.output("found", TUFF_I32, 1);
    output.read = accumulates, output.fill = Fill::booleans, output.most = 1;
  }
  d.suits = [&d] { return integral(d, 0x1p20); };
}

// A shape, and the axis that is set.
std::vector<uint64_t> draw_rows(Draft& d, uint64_t least, uint64_t& axis) {
  std::vector<uint64_t> shape(d.shape.between(1, 3));
  axis = d.shape.below(shape.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] = i == axis ? d.extent(std::max(draw_size(d.shape, 60), least), least, 60)
                         : d.extent(draw_size(d.shape, 9), 0, 9);
  }
  d.set("rank", shape.size()), d.set("axis", axis);
  d.list("shape", shape);
  return shape;
}

// Logits are integers, which f32 subtracts exactly; exp and log are correct to 4 ULP.
void draw_cross_entropy(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw), label_type = draw.of<int32_t>({TUFF_I32, TUFF_I64, TUFF_U32, TUFF_U64});
  d.set("dtype", dtype), d.set("label_type", label_type);
  uint64_t axis = 0;
  const std::vector<uint64_t> shape = draw_rows(d, 1, axis);
  const uint64_t elements = product(shape), classes = shape[axis], rows = elements / classes;
  const double smoothing = draw.of({0.0, 0.0, 0.125, 1.0}), scale = d.free.of({1.0, 1.0, -2.0, 0.5});
  d.real("label_smoothing", smoothing);
  if (draw.one_in(2)) d.set("ignores", 1), d.set("ignore_index", static_cast<int32_t>(d.free.below(4)));
  const bool loss = draw.one_in(2), gradient = draw.one_in(2) || !loss;
  if (gradient) d.real("gradient_scale", scale);
  d.input("logits", dtype, elements);
  d.input("labels", label_type, rows, Fill::indices, static_cast<double>(classes));
  const double relative = gamma(300);
  if (gradient && draw.one_in(2)) d.input("gradient_factor", TUFF_F32, rows != 0 ? 1 : 0);
  if (gradient && draw.one_in(2)) d.input("loss_gradient", TUFF_F32, rows);
  if (loss) {
    d.output("loss", TUFF_F32, rows).allowed = [&d, relative, classes](uint64_t, double) {
      return relative * (1 + 8 * most_of(d, "logits") + std::log(static_cast<double>(classes)));
    };
  }
  if (gradient) {
    Operand& output = d.output("gradient", dtype, elements);
    output.allowed = [&d, relative, scale, dtype](uint64_t, double value) {
      const double error =
          2 * relative * std::fabs(scale) * most_of(d, "gradient_factor", 1) * most_of(d, "loss_gradient", 1);
      return with_storage(dtype, value, error);
    };
    if (d.free.one_in(4)) output.same = d.index_of("logits");
  }
  d.suits = [&d] { return integral(d, 64); };
}

void draw_softmax_backward(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw);
  d.set("dtype", dtype);
  uint64_t axis = 0;
  const std::vector<uint64_t> shape = draw_rows(d, 0, axis);
  const uint64_t elements = product(shape);
  const bool logarithm = draw.one_in(2);
  const double scale = d.free.of({1.0, 0.5, -2.0});
  d.set("logarithm", static_cast<int32_t>(logarithm)), d.real("scale", scale);
  d.input("output", dtype, elements, Fill::integers, logarithm ? 1 : 4);
  d.input("output_gradient", dtype, elements);
  Operand& output = d.output("gradient", dtype, elements);
  const auto extent = static_cast<double>(shape[axis]);
  output.allowed = [&d, logarithm, scale, extent, dtype](uint64_t, double value) {
    const double y = most_of(d, "output"), dy = most_of(d, "output_gradient"), p = logarithm ? std::exp(y) : y;
    const double error = std::fabs(scale) * (dy + p * extent * dy * (logarithm ? 1 : y)) * gamma(80);
    return with_storage(dtype, value, error);
  };
  if (d.free.one_in(3)) output.same = d.index_of(d.free.one_in(2) ? "output" : "output_gradient");
  d.suits = [&d] { return integral(d, 8); };
}

// Gradients of normalisations. Deviations are at least sqrt(epsilon), so that with integers up to `most` a normalised
// value is at most 2 most / sigma. It is off by what the forward pass allows (norm_error() in describe_rows.cpp has the
// terms); the gradients are sums of products with it.
double normal_error(double length, double most, double epsilon) {
  const double sigma = std::sqrt(epsilon), roundings = gamma(length + 8), shift = roundings * most;
  const double off = roundings * most * most + 12 * shift * most + 12 * shift * shift;
  return shift / sigma * 2 + 2 * most / sigma * (0.5 * off / epsilon + 8 * kU) + 16 * kU * (2 * most / sigma + 1);
}

void draw_norm_backward(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw), kind = static_cast<int32_t>(draw.below(4));
  const bool of_rows = kind == TUFF_NORM_LAYER || kind == TUFF_NORM_RMS, of_batch = kind == TUFF_NORM_BATCH;
  const int32_t weights = draw.one_in(2) ? dtype : static_cast<int32_t>(TUFF_F32);
  const uint64_t groups = kind == TUFF_NORM_GROUP ? d.extent(draw.between(1, 4), 1, 4) : 1;
  const uint64_t batch = d.extent(draw_size(draw, of_rows ? 20 : 6), 0, 20);
  const uint64_t channels =
      of_rows ? std::max<uint64_t>(d.extent(draw_size(draw, 80)), 1) : groups * d.extent(draw.between(1, 6), 1, 6);
  const uint64_t inner =
      of_rows ? 1 : d.extent(std::max<uint64_t>(draw_size(draw, 30), of_batch ? 0 : 1), of_batch ? 0 : 1);
  const uint64_t all = batch * channels * inner, used = all == 0 ? 0 : channels;
  // Statistics without elements may be null, each by itself, but both or neither have to be given.
  const bool given = of_batch && draw.one_in(2) && used != 0, frozen = given && draw.one_in(2);
  const double epsilon = draw.of({0.25, 1.0, 4.0});
  d.set("dtype", dtype), d.set("kind", kind), d.set("weight_type", weights);
  d.set("batch", batch), d.set("channels", channels), d.set("inner", inner);
  if (kind == TUFF_NORM_GROUP) d.set("groups", groups);
  d.set("frozen", static_cast<int32_t>(frozen));
  d.real("epsilon", epsilon);
  d.input("input", dtype, all);
  d.input("output_gradient", dtype, all);
  if (draw.one_in(2)) d.input("weight", weights, used);
  if (given) {
    const bool in_f32 = draw.one_in(2);
    const int32_t type = in_f32 ? static_cast<int32_t>(TUFF_F32) : weights;
    d.set("statistics_type", in_f32 && draw.one_in(2) ? 0 : type);
    d.input("mean", type, used), d.input("variance", type, used, Fill::positive);
  }
  const double together = static_cast<double>(of_batch ? batch * inner : channels / groups * inner);
  const auto normal = [&d, together, epsilon] {
    const double most = std::max(1.0, most_of(d, "input") + most_of(d, "mean"));
    return std::pair(2 * most / std::sqrt(epsilon), normal_error(together, most, epsilon));
  };
  const uint64_t wanted = draw.between(1, 7);
  const bool of_input = (wanted & 1) != 0 || (kind == TUFF_NORM_RMS && (wanted & 2) == 0);
  if (of_input) {
    Operand& output = d.output("input_gradient", dtype, all);
    output.allowed = [&d, normal, together, epsilon, dtype](uint64_t, double value) {
      const auto [n, off] = normal();
      const double h = most_of(d, "output_gradient") * most_of(d, "weight", 1), sums = gamma(together + 300);
      const double terms = h * (2 + n * n) * (sums + 12 * kU) + h * off * (2 * n + off);
      const double relative = off / n + 16 * kU;  // of 1 / sqrt(variance + epsilon)
      const double error = (terms + h * (2 + n * n) * relative) / std::sqrt(epsilon);
      return with_storage(dtype, value, error);
    };
    const uint64_t way = d.free.below(4);
    if (way == 1 || way == 2) output.same = d.index_of(way == 1 ? "input" : "output_gradient");
  }
  const double terms = static_cast<double>(batch * inner);
  if ((wanted & 2) != 0) {
    d.output("weight_gradient", weights, channels).allowed = [&d, normal, terms, weights](uint64_t, double value) {
      const auto [n, off] = normal();
      const double error = terms * most_of(d, "output_gradient") * (n * gamma(terms + 300) + off);
      return with_storage(weights, value, error);
    };
  }
  if ((wanted & 4) != 0 && kind != TUFF_NORM_RMS) {
    d.output("bias_gradient", weights, channels).allowed = [&d, terms, weights](uint64_t, double value) {
      const double error = terms * most_of(d, "output_gradient") * gamma(terms + 300);
      return with_storage(weights, value, error);
    };
  }
  d.suits = [&d] {
    for (const Operand& operand : d.operands) {
      if (operand.name == std::string_view("variance") && operand.elements != 0 && !operand.seen.positive) return false;
    }
    return integral(d, 32);
  };
}

void draw_batch_norm_training(Draft& d) {
  Draw& draw = d.shape;
  const int32_t dtype = draw_float(draw), weights = draw.one_in(2) ? dtype : static_cast<int32_t>(TUFF_F32);
  const uint64_t batch = d.extent(draw.between(2, 8), 2, 8), channels = d.extent(draw_size(draw, 20), 0, 20),
                 inner = d.extent(draw.between(1, 30), 1, 30);
  const uint64_t all = batch * channels * inner;
  const double epsilon = draw.of({0.25, 1.0, 4.0}), momentum = d.free.of({0.0, 0.125, 1.0});
  d.set("dtype", dtype), d.set("weight_type", weights == dtype && draw.one_in(2) ? 0 : weights);
  d.set("batch", batch), d.set("channels", channels), d.set("inner", inner);
  d.real("epsilon", epsilon), d.real("momentum", momentum);
  const uint64_t wanted = draw.between(1, 7);
  d.input("input", dtype, all);
  const double together = static_cast<double>(batch * inner);
  const auto most = [&d] { return std::max(1.0, most_of(d, "input")); };
  if ((wanted & 1) != 0) {
    if (draw.one_in(2)) d.input("weight", weights, channels);
    if (draw.one_in(2)) d.input("bias", weights, channels);
    Operand& output = d.output("output", dtype, all);
    output.allowed = [&d, most, together, epsilon, dtype](uint64_t, double value) {
      const double weight = most_of(d, "weight", 1);
      const double error = weight * normal_error(together, most(), epsilon) +
                           4 * kU * (weight * 2 * most() / std::sqrt(epsilon) + most_of(d, "bias"));
      return with_storage(dtype, value, error);
    };
    if (d.free.one_in(4)) output.same = d.index_of("input");
  }
  const auto mean_error = [most, together] { return gamma(together + 8) * most(); };
  const auto variance_error = [most, mean_error, together] {
    return gamma(together + 8) * most() * most() + 12 * mean_error() * most() + 12 * mean_error() * mean_error();
  };
  if ((wanted & 2) != 0) {
    d.output("mean", TUFF_F32, channels).allowed = [mean_error](uint64_t, double) { return mean_error(); };
    d.output("variance", TUFF_F32, channels).allowed = [variance_error](uint64_t, double) { return variance_error(); };
  }
  if ((wanted & 4) != 0) {
    Operand& mean = d.output("running_mean", weights, channels);
    mean.read = true;
    mean.allowed = [&d, most, mean_error, weights](uint64_t, double value) {
      const double error = mean_error() + 4 * kU * (most() + most_of(d, "running_mean"));
      return with_storage(weights, value, error);
    };
    Operand& variance = d.output("running_variance", weights, channels);
    variance.read = true;
    variance.allowed = [&d, most, variance_error, weights](uint64_t, double value) {
      const double error = 2 * variance_error() + 8 * kU * (2 * most() * most() + most_of(d, "running_variance"));
      return with_storage(weights, value, error);
    };
  }
  d.suits = [&d] { return integral(d, 32); };
}

}  // namespace

std::span<const Description> describe_training() {
  static constexpr Description kAll[] = {
      {"tuff_optimizer_step", "optimizer", draw_optimizer_step},
      {"tuff_gradient_norm", "optimizer", draw_gradient_norm},
      {"tuff_cross_entropy", "softmax", draw_cross_entropy},
      {"tuff_softmax_backward", "softmax", draw_softmax_backward},
      {"tuff_norm_backward", "norm", draw_norm_backward},
      {"tuff_batch_norm_training", "norm", draw_batch_norm_training},
  };
  return kAll;
}

}  // namespace tuff_fuzz
