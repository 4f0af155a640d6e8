// Selftest cases for each element type, each activation, and operations for which one case is enough.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tool/selftest_cases.hpp"

namespace tool {
namespace {

using tuff::Activation;
using tuff::DType;
using tuff::Transpose;

constexpr std::pair<const char*, DType> kCastTypes[] = {
    {"f32", DType::f32},      {"f16", DType::f16},         {"bf16", DType::bf16},       {"f64", DType::f64},
    {"i32", DType::i32},      {"u32", DType::u32},         {"i8", DType::i8},           {"u8", DType::u8},
    {"i64", DType::i64},      {"u64", DType::u64},         {"i16", DType::i16},         {"u16", DType::u16},
    {"bool", DType::boolean}, {"f8_e4m3", DType::f8_e4m3}, {"f8_e5m2", DType::f8_e5m2}, {"c64", DType::c64},
    {"c128", DType::c128}};
constexpr std::pair<const char*, Activation> kActivations[] = {
    {"none", Activation::none},           {"relu", Activation::relu}, {"gelu", Activation::gelu},
    {"gelu_tanh", Activation::gelu_tanh}, {"silu", Activation::silu}, {"relu6", Activation::relu6}};

uint64_t bytes_of(DType type) {
  switch (type) {
    case DType::c128: return 16;
    case DType::f64:
    case DType::i64:
    case DType::u64:
    case DType::c64: return 8;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 2;
    case DType::i8:
    case DType::u8:
    case DType::boolean:
    case DType::f8_e4m3:
    case DType::f8_e5m2: return 1;
  }
  return 0;
}

// A case of integers, whose result is exact.
Case whole(std::string operation, std::string shape, std::vector<uint64_t> inputs, int magnitude, uint64_t results,
           Call call) {
  Case entry{std::move(operation), std::move(shape), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem{entry.operation, entry.shape, {}, poison(results), call, exact};
    for (const uint64_t count : inputs) problem.inputs.push_back(random.integers(count, magnitude));
    return problem;
  };
  return entry;
}

// Converts to a type and back. The conversion rounds once and saturates, so the bits are the same on every device.
Case cast_case(const char* name, DType type) {
  constexpr uint64_t kCount = 10'007;
  Case entry{"cast", fmt::format("through {}", name), {}, fmt::format("cast.{}", name)};
  entry.make = [=](uint64_t seed) {
    Problem problem{entry.operation, entry.shape, {}, poison(kCount), {}, exact};
    problem.inputs.push_back(Random(seed).uniform(kCount, -300, 300));
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      const tuff::Buffer there = context.alloc_bytes(bytes_of(type) * kCount);
      context.cast(DType::f32, type, in[0], there, kCount);
      context.cast(type, DType::f32, there, out, kCount);
    };
    return problem;
  };
  return entry;
}

// Sums of at most 32 * 2 * 2 are exact in every type, even with bf16's eight significant bits.
Case product_case(const char* name, DType type) {
  constexpr uint64_t kM = 70, kN = 50, kK = 32;
  const DType result = type == DType::i8 ? DType::i32 : type;
  Case entry = whole("gemm", fmt::format("{}x{}x{} of {}", kM, kN, kK, name), {kM * kK, kK * kN}, 2, kM * kN,
                     [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                       const tuff::Buffer a = context.alloc_bytes(kM * kK * bytes_of(type));
                       const tuff::Buffer b = context.alloc_bytes(kK * kN * bytes_of(type));
                       const tuff::Buffer c = context.alloc_bytes(kM * kN * bytes_of(result));
                       context.cast(DType::f32, type, in[0], a, kM * kK);
                       context.cast(DType::f32, type, in[1], b, kK * kN);
                       context.gemm(type, Transpose::no, Transpose::no, kM, kN, kK, 1, a, kK, b, kN, 0, c, kN);
                       context.cast(result, DType::f32, c, out, kM * kN);
                     });
  entry.needs = fmt::format("gemm.{}", name);
  return entry;
}

// The error bound of an activation at x, where x is exact: exp is accurate to 3 + 2|y| units in the last place
// (Vulkan), all other operations are rounded once. erfc = exp(-x^2/2) * series / (1 + 2 z) takes 12 steps whose
// coefficients add up to less than twice the value, as tests/support/activation.cpp derives.
double activation_error(Activation activation, double x) {
  const double size = std::fabs(x), u = kRounding;
  if (activation == Activation::gelu) {
    const double relative = exp_error(size * size / 2) + (1.5 * size * size + 4 * 27 + 16) * u;
    return size * (std::erfc(size / std::sqrt(2)) / 2 * relative + 4 * u);
  }
  if (activation == Activation::gelu_tanh || activation == Activation::silu) {
    const double y = activation == Activation::silu ? x : std::sqrt(8 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
    const double sigmoid = 1 / (1 + std::exp(-y));
    return size * sigmoid * ((1 - sigmoid) * (exp_error(y) + 6 * u * std::fabs(y)) + 8 * u);
  }
  return 0;
}

// The products are multiples of 1/16 and exact.
Case activation_case(const char* name, Activation activation) {
  constexpr uint64_t kM = 40, kN = 33, kK = 16;
  const auto product = [=](Activation wanted) -> Call {
    return [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      tuff_gemm_desc desc{};
      desc.dtype = TUFF_F32;
      desc.m = kM, desc.n = kN, desc.k = kK;
      desc.alpha = 1.0 / 16;
      desc.a = in[0].handle(), desc.b = in[1].handle(), desc.c = out.handle();
      desc.activation = static_cast<int32_t>(wanted);
      context.gemm(desc);
    };
  };
  Case entry = whole("gemm", fmt::format("{}x{}x{} activation {}", kM, kN, kK, name), {kM * kK, kK * kN}, 4, kM * kN,
                     product(activation));
  entry.make = [make = entry.make, product, activation](uint64_t seed) {
    Problem problem = make(seed);
    problem.bound = [=](const Problem& self, const Tensor& reference, const HostRun& host) {
      const Tensor before = host(product(Activation::none), self.inputs, self.output);
      Bound bound;
      for (size_t i = 0; i < before.size(); ++i) {
        const double error = activation_error(activation, before[i]);
        // The reference itself is rounded once.
        bound.push_back(error == 0 ? 0 : error + kRounding * std::fabs(static_cast<double>(reference[i])) + kSmallest);
      }
      return bound;
    };
    return problem;
  };
  return entry;
}

Case conv1d_case() {
  return whole("conv1d", "2x6x50 * 8x5 padding 2", {2 * 6 * 50, 8 * 6 * 5}, 8, 2 * 8 * 50,
               [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                 context.conv1d(DType::f32, in[0], {2, 6, 50}, in[1], {8, 6, 5}, out, {2, 8, 50}, 1, 2);
               });
}

Case conv3d_case() {
  return whole("conv3d", "1x4x9x10x11 * 6x3x3x3 padding 1", {4 * 9 * 10 * 11, 6 * 4 * 27}, 8, 6 * 9 * 10 * 11,
               [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                 context.conv3d(DType::f32, in[0], {1, 4, 9, 10, 11}, in[1], {6, 4, 3, 3, 3}, out, {1, 6, 9, 10, 11},
                                {1, 1, 1}, {1, 1, 1});
               });
}

// A quarter of a sum of integers is exact.
// Gradients of a layer with strides and groups. Sums of whole numbers are exact.
Case conv_backward_case(bool data) {
  constexpr uint64_t kIn = 2 * 6 * 20 * 17, kFilter = 8 * 3 * 9, kOut = 2 * 8 * 10 * 9;
  return whole(data ? "conv_backward_data" : "conv_backward_filter", "2x6x20x17 * 8x3x3x3 stride 2 padding 1 groups 2",
               {kOut, data ? kFilter : kIn}, 8, data ? kIn : kFilter,
               [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                 tuff_conv_backward_desc desc{};
                 desc.dtype = TUFF_F32, desc.spatial = 2, desc.groups = 2;
                 desc.in_shape[0] = desc.out_shape[0] = 2, desc.in_shape[1] = 6, desc.out_shape[1] = 8;
                 desc.in_shape[2] = 20, desc.in_shape[3] = 17, desc.out_shape[2] = 10, desc.out_shape[3] = 9;
                 desc.filter_shape[0] = 8;
                 desc.filter_shape[1] = desc.filter_shape[2] = desc.filter_shape[3] = 3;
                 for (int i = 0; i < 2; ++i) desc.stride[i] = 2, desc.padding[i] = 1;
                 desc.doutput = in[0].handle();
                 if (data) {
                   desc.filter = in[1].handle(), desc.dinput = out.handle();
                   context.conv_backward_data(desc);
                 } else {
                   desc.input = in[1].handle(), desc.dfilter = out.handle();
                   context.conv_backward_filter(desc);
                 }
               });
}

// The gradient of a maximum: at most four windows of whole numbers for each element.
Case pool_backward_case() {
  return whole("pool_backward", "3x50x60 by 3x3, stride 2, padding 1", {3 * 50 * 60, 3 * 25 * 30}, 300, 3 * 50 * 60,
               [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                 tuff_pool_backward_desc desc{};
                 desc.dtype = TUFF_F32, desc.maximum = 1;
                 desc.input = in[0].handle(), desc.doutput = in[1].handle(), desc.dinput = out.handle();
                 desc.batch = 1, desc.channels = 3, desc.spatial = 2;
                 desc.in_shape[0] = 50, desc.in_shape[1] = 60, desc.out_shape[0] = 25, desc.out_shape[1] = 30;
                 for (int i = 0; i < 2; ++i) desc.kernel[i] = 3, desc.stride[i] = 2, desc.padding[i] = 1;
                 context.pool_backward(desc);
               });
}

Case avg_pool_case() {
  return whole("avg_pool", "3x50x60 by 2x2, stride 2", {3 * 50 * 60}, 300, 3 * 25 * 30,
               [](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
                 tuff_pool_desc desc{};
                 desc.dtype = TUFF_F32;
                 desc.input = in[0].handle(), desc.output = out.handle();
                 desc.batch = 1, desc.channels = 3, desc.spatial = 2;
                 desc.in_shape[0] = 50, desc.in_shape[1] = 60, desc.out_shape[0] = 25, desc.out_shape[1] = 30;
                 for (int i = 0; i < 2; ++i) desc.kernel[i] = 2, desc.stride[i] = 2;
                 context.avg_pool(desc);
               });
}

// --- norms of images: batch x channels x inner --------------------------------------------------------

struct ImageShape {
  uint64_t batch, channels, inner, groups;
  uint64_t size() const { return batch * channels * inner; }
};

constexpr double kEpsilon = 1e-5;

// Like norm_case() in selftest_rows.cpp, for a group of channels: the mean of n values of magnitude at most kRange is
// off by at most gamma_n times kRange, and so is every difference from it.
Case group_norm_case(const ImageShape& s) {
  constexpr double kRange = 4;
  Case entry{"group_norm", fmt::format("{}x{}x{} in {} groups", s.batch, s.channels, s.inner, s.groups), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem{entry.operation, entry.shape, {}, poison(s.size()), {}, {}};
    problem.inputs = {random.uniform(s.size(), -kRange, kRange), random.uniform(s.channels, 0.5, 2),
                      random.uniform(s.channels, -1, 1)};
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      context.group_norm(DType::f32, in[0], in[1], in[2], out, s.batch, s.channels, s.inner, s.groups, kEpsilon);
    };
    problem.bound = [=](const Problem& self, const Tensor& reference, const HostRun&) {
      Bound bound(reference.size());
      const uint64_t count = s.channels / s.groups * s.inner;
      const auto n = static_cast<double>(count);
      for (uint64_t begin = 0; begin < s.size(); begin += count) {
        const float* x = self.inputs[0].data() + begin;
        double mean = 0, squares = 0;
        for (uint64_t i = 0; i < count; ++i) mean += x[i] / n;
        for (uint64_t i = 0; i < count; ++i) squares += (x[i] - mean) * (x[i] - mean);
        const double scale = 1 / std::sqrt(squares / n + kEpsilon), each = gamma(n + 16);
        for (uint64_t i = 0; i < count; ++i) {
          const uint64_t channel = (begin + i) / s.inner % s.channels;
          const double w = self.inputs[1][channel], b = self.inputs[2][channel], apart = std::fabs(x[i] - mean);
          bound[begin + i] = w * scale * (kRange * each + apart * each * (2 + 4 * kRange * scale)) +
                             8 * kRounding * (w * scale * apart + std::fabs(b)) + kSmallest;
        }
      }
      return bound;
    };
    return problem;
  };
  return entry;
}

// (x - mean) / sqrt(variance + epsilon) * w + b: a difference, a sum, a square root and a division of 2.5 units each
// (Vulkan: an inverse square root of 2 units), two products and a sum. In any order that is at most 16 roundings.
Case batch_norm_case(const ImageShape& s) {
  Case entry{"batch_norm", fmt::format("{}x{}x{}", s.batch, s.channels, s.inner), {}};
  entry.make = [=](uint64_t seed) {
    Random random(seed);
    Problem problem{entry.operation, entry.shape, {}, poison(s.size()), {}, {}};
    problem.inputs = {random.uniform(s.size(), -4, 4), random.uniform(s.channels, -1, 1),
                      random.uniform(s.channels, 0.5, 2), random.uniform(s.channels, 0.5, 2),
                      random.uniform(s.channels, -1, 1)};
    problem.call = [=](const tuff::Context& context, const Buffers& in, const tuff::Buffer& out) {
      context.batch_norm(DType::f32, in[0], in[1], in[2], in[3], in[4], out, s.batch, s.channels, s.inner, kEpsilon);
    };
    problem.bound = [=](const Problem& self, const Tensor& reference, const HostRun&) {
      Bound bound(reference.size());
      for (uint64_t i = 0; i < bound.size(); ++i) {
        const uint64_t c = i / s.inner % s.channels;
        const double scale = self.inputs[3][c] / std::sqrt(self.inputs[2][c] + kEpsilon);
        // Uses magnitudes, since x * scale and mean * scale may have cancelled.
        const double sizes =
            (std::fabs(static_cast<double>(self.inputs[0][i])) + std::fabs(static_cast<double>(self.inputs[1][c]))) *
            scale;
        bound[i] = gamma(16) * (sizes + std::fabs(static_cast<double>(self.inputs[4][c]))) + kSmallest;
      }
      return bound;
    };
    return problem;
  };
  return entry;
}

}  // namespace

void add_type_cases(std::vector<Case>& cases) {
  for (const auto& [name, type] : kCastTypes) cases.push_back(cast_case(name, type));
  for (const DType factor : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i8}) {
    const auto* const found = std::find_if(std::begin(kCastTypes), std::end(kCastTypes),
                                           [factor](const auto& known) { return known.second == factor; });
    cases.push_back(product_case(found->first, factor));
  }
  for (const auto& [name, activation] : kActivations) cases.push_back(activation_case(name, activation));
  cases.push_back(conv1d_case());
  cases.push_back(conv3d_case());
  cases.push_back(conv_backward_case(true));
  cases.push_back(conv_backward_case(false));
  cases.push_back(avg_pool_case());
  cases.push_back(pool_backward_case());
  for (const ImageShape& shape : {ImageShape{3, 12, 35, 4}, ImageShape{2, 6, 1000, 6}}) {
    cases.push_back(group_norm_case(shape));
    cases.push_back(batch_norm_case(shape));
  }
}

}  // namespace tool
