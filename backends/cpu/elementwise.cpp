// Element-wise operations. Each function is the expression that unary.def or binary.def defines it by, in double
// precision and rounded once, which meets every bound of docs/accuracy.md; glibc's vector functions (libmvec, within 4
// units in the last place of a double) make it as fast as memory allows for most. Functions that f32 computes exactly,
// or rounds once, are computed in f32.
//
// A vector function may differ in the last bits from its scalar one. So all elements go through blocks of one size, and
// an element's result does not depend on its place.
#include "backends/cpu/vector_math.hpp"
// Here, because the functions in it use those.
#include "kernels/elementwise/elementwise_ops.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/device.hpp"
#include "backends/cpu/elementwise.hpp"

namespace tuff_cpu {
namespace {

using namespace tuff::elementwise;  // the names in the tables' expressions

template <typename F>
inline void map_double(const float* x, float* y, const F& f) {
#pragma omp simd
  for (uint64_t i = 0; i < kBlock; ++i) y[i] = static_cast<float>(f(static_cast<double>(x[i])));
}

template <typename F>
inline void map_float(const float* x, float* y, const F& f) {
#pragma omp simd
  for (uint64_t i = 0; i < kBlock; ++i) y[i] = f(x[i]);
}

#define UNARY(number, NAME, name, file, ulps, measured, measured_gpu, flops, alpha_by_default, low, high, value, dy) \
  void name##_block(const float* x_, float* y_, [[maybe_unused]] double alpha) {                                     \
    map_double(x_, y_, [&](double x) { return value; });                                                             \
  }
#include "kernels/elementwise/unary.def"

// Those that f32 computes exactly or with one rounding.
void relu_f32(const float* x, float* y, double) {
  map_float(x, y, [](float v) { return v < 0 ? 0.0F : v; });
}
void sqrt_f32(const float* x, float* y, double) {
  map_float(x, y, [](float v) { return std::sqrt(v); });
}
void abs_f32(const float* x, float* y, double) {
  map_float(x, y, [](float v) { return std::fabs(v); });
}
void neg_f32(const float* x, float* y, double) {
  map_float(x, y, [](float v) { return -v; });
}
void square_f32(const float* x, float* y, double) {
  map_float(x, y, [](float v) { return v * v; });
}
void leaky_relu_f32(const float* x, float* y, double alpha) {
  const auto slope = static_cast<float>(alpha);
  map_float(x, y, [slope](float v) { return v < 0 ? slope * v : v; });
}
void reciprocal_f32(const float* x, float* y, double) {
  map_float(x, y, [](float v) { return 1 / v; });
}

struct UnaryRow {
  int32_t op;
  UnaryBlock block;
};

// The first row of an operation counts.
constexpr UnaryRow kUnaryRows[] = {
    {TUFF_UNARY_RELU, relu_f32},
    {TUFF_UNARY_SQRT, sqrt_f32},
    {TUFF_UNARY_ABS, abs_f32},
    {TUFF_UNARY_NEG, neg_f32},
    {TUFF_UNARY_SQUARE, square_f32},
    {TUFF_UNARY_LEAKY_RELU, leaky_relu_f32},
    {TUFF_UNARY_RECIPROCAL, reciprocal_f32},
#define UNARY(number, NAME, name, ...) {TUFF_UNARY_##NAME, name##_block},
#include "kernels/elementwise/unary.def"
};

UnaryBlock unary_block(int32_t op) {
  const auto* row =
      std::find_if(std::begin(kUnaryRows), std::end(kUnaryRows), [op](const UnaryRow& r) { return r.op == op; });
  return row != std::end(kUnaryRows) ? row->block : nullptr;
}

// Any number of elements. x and y may be the same.
template <typename T>
void apply_unary(UnaryBlock block, const T* x, T* y, uint64_t n, double alpha) {
  uint64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (; i + kBlock <= n; i += kBlock) block(x + i, y + i, alpha);
  }
  alignas(64) float in[kBlock], out[kBlock];
  for (; i < n; i += kBlock) {
    const uint64_t count = std::min(kBlock, n - i);
    widen(x + i, in, count);
    std::fill(in + count, in + kBlock, 1.0F);
    block(in, out, alpha);
    narrow(out, y + i, count);
  }
}

// abs and neg of 16 bits: the bits of a NaN survive, but for its sign.
void change_signs(const tuff_unary_desc& call) {
  const auto* x = at<const uint16_t>(call.input);
  auto* y = at<uint16_t>(call.output);
  const uint16_t keep = call.op == TUFF_UNARY_ABS ? 0x7fff : 0xffff, turn = call.op == TUFF_UNARY_ABS ? 0 : 0x8000;
  in_parts(call.n, 16384, [&](uint64_t first, uint64_t count) {
    for (uint64_t i = first; i < first + count; ++i) y[i] = static_cast<uint16_t>((x[i] & keep) ^ turn);
  });
}

template <typename F>
inline void map_pairs(const float* a, const float* b, float* y, const F& f) {
#pragma omp simd
  for (uint64_t i = 0; i < kBlock; ++i) y[i] = f(a[i], b[i]);
}

void add_block(const float* a, const float* b, float* y) {
  map_pairs(a, b, y, [](float p, float q) { return p + q; });
}
void sub_block(const float* a, const float* b, float* y) {
  map_pairs(a, b, y, [](float p, float q) { return p - q; });
}
void mul_block(const float* a, const float* b, float* y) {
  map_pairs(a, b, y, [](float p, float q) { return p * q; });
}
void div_block(const float* a, const float* b, float* y) {
  map_pairs(a, b, y, [](float p, float q) { return p / q; });
}
void max_block(const float* a, const float* b, float* y) {
  map_pairs(a, b, y, [](float p, float q) { return p != p || p > q ? p : q; });
}
void min_block(const float* a, const float* b, float* y) {
  map_pairs(a, b, y, [](float p, float q) { return p != p || p < q ? p : q; });
}
void pow_block(const float* a, const float* b, float* y) {
  map_pairs(a, b, y, [](float p, float q) {
    return static_cast<float>(std::pow(static_cast<double>(p), static_cast<double>(q)));
  });
}

BinaryBlock binary_block(int32_t op) {
  switch (op) {
    case TUFF_BINARY_ADD: return add_block;
    case TUFF_BINARY_SUB: return sub_block;
    case TUFF_BINARY_MUL: return mul_block;
    case TUFF_BINARY_DIV: return div_block;
    case TUFF_BINARY_MAX: return max_block;
    case TUFF_BINARY_MIN: return min_block;
    case TUFF_BINARY_POW: return pow_block;
    default: return nullptr;
  }
}

template <typename T>
void fill_block(const T* x, bool repeated, float* block, uint64_t count) {
  if (repeated) {
    std::fill_n(block, count, wide(*x));
  } else {
    widen(x, block, count);
  }
  std::fill(block + count, block + kBlock, 1.0F);
}

// n results from neighbouring elements of each operand, or from one element that is repeated.
template <typename T>
void apply_binary(BinaryBlock block, const T* a, bool a_repeated, const T* b, bool b_repeated, T* y, uint64_t n) {
  alignas(64) float left[kBlock], right[kBlock], out[kBlock];
  for (uint64_t i = 0; i < n; i += kBlock) {
    const uint64_t count = std::min(kBlock, n - i);
    if constexpr (std::is_same_v<T, float>) {
      if (count == kBlock && !a_repeated && !b_repeated) {
        block(a + i, b + i, y + i);
        continue;
      }
    }
    if (i == 0 || !a_repeated || count < kBlock) fill_block(a_repeated ? a : a + i, a_repeated, left, count);
    if (i == 0 || !b_repeated || count < kBlock) fill_block(b_repeated ? b : b + i, b_repeated, right, count);
    block(left, right, out);
    narrow(out, y + i, count);
  }
}

// The result's axes that matter, outermost first: an axis that continues the enclosing one in both operands is merged
// with it.
struct Axes {
  uint32_t rank = 0;
  uint64_t sizes[8];
  uint64_t a_strides[8], b_strides[8];

  explicit Axes(const tuff_binary_desc& call) {
    uint64_t a[8], b[8], a_step = 1, b_step = 1;
    for (uint32_t i = call.rank; i-- > 0;) {
      a[i] = call.a_shape[i] == 1 ? 0 : a_step;
      b[i] = call.b_shape[i] == 1 ? 0 : b_step;
      a_step *= call.a_shape[i];
      b_step *= call.b_shape[i];
    }
    for (uint32_t i = 0; i < call.rank; ++i) {
      const uint64_t size = call.a_shape[i] == 1 ? call.b_shape[i] : call.a_shape[i];
      if (size == 1) continue;
      const bool merged = rank > 0 && a_strides[rank - 1] == a[i] * size && b_strides[rank - 1] == b[i] * size;
      if (!merged) ++rank;
      sizes[rank - 1] = merged ? sizes[rank - 1] * size : size;
      a_strides[rank - 1] = a[i];
      b_strides[rank - 1] = b[i];
    }
  }
};

// Calls row(a, b, y, n) with the first elements of each run of n results along the innermost axis, whose strides are 0
// or 1.
template <typename Row>
void for_rows(const Axes& axes, const Row& row) {
  const uint64_t n = axes.sizes[axes.rank - 1];
  uint64_t rows = 1;
  for (uint32_t i = 0; i + 1 < axes.rank; ++i) rows *= axes.sizes[i];
  for_each(rows, n, [&](uint64_t r) {
    uint64_t a = 0, b = 0, rest = r;
    for (uint32_t i = axes.rank - 1; i-- > 0; rest /= axes.sizes[i]) {
      a += rest % axes.sizes[i] * axes.a_strides[i];
      b += rest % axes.sizes[i] * axes.b_strides[i];
    }
    row(a, b, r * n, n);
  });
}

template <typename T>
void binary_of(const tuff_binary_desc& call, BinaryBlock block) {
  const T *a = at<const T>(call.a), *b = at<const T>(call.b);
  T* y = at<T>(call.output);
  const Axes axes(call);
  if (axes.rank == 0) {
    // All have the same shape; or the result is one element.
    in_parts(call.n, 64 * kBlock, [&](uint64_t first, uint64_t count) {
      apply_binary(block, a + first, false, b + first, false, y + first, count);
    });
    return;
  }
  const bool a_repeated = axes.a_strides[axes.rank - 1] == 0, b_repeated = axes.b_strides[axes.rank - 1] == 0;
  for_rows(axes, [&](uint64_t i, uint64_t j, uint64_t result, uint64_t n) {
    apply_binary(block, a + i, a_repeated, b + j, b_repeated, y + result, n);
  });
}

}  // namespace

UnaryBlock unary_block(const char* name) {
  constexpr struct {
    int32_t op;
    const char* name;
  } kNames[] = {
#define UNARY(number, NAME, name, ...) {TUFF_UNARY_##NAME, #name},
#include "kernels/elementwise/unary.def"
  };
  for (const auto& row : kNames) {
    if (std::strcmp(row.name, name) == 0) return unary_block(row.op);
  }
  return nullptr;
}

BinaryBlock power_block() { return pow_block; }

tuff_status unary(Device& device, const tuff_unary_desc& call) {
  const UnaryBlock block = unary_block(call.op);
  if (block == nullptr || !is_float(call.dtype)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  if (call.dtype != TUFF_F32 && (call.op == TUFF_UNARY_ABS || call.op == TUFF_UNARY_NEG)) {
    change_signs(call);
    return TUFF_OK;
  }
  with_float(call.dtype, [&]<typename T>(T) {
    in_parts(call.n, 64 * kBlock, [&](uint64_t first, uint64_t count) {
      apply_unary(block, at<const T>(call.input) + first, at<T>(call.output) + first, count, call.alpha);
    });
  });
  return TUFF_OK;
}

tuff_status binary(Device& device, const tuff_binary_desc& call) {
  const BinaryBlock block = binary_block(call.op);
  if (block == nullptr || !is_float(call.dtype)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  with_float(call.dtype, [&]<typename T>(T) { binary_of<T>(call, block); });
  return TUFF_OK;
}

bool is_activation(int32_t activation) {
  switch (activation) {
    case TUFF_ACTIVATION_NONE:
    case TUFF_ACTIVATION_RELU:
    case TUFF_ACTIVATION_RELU6:
    case TUFF_ACTIVATION_GELU:
    case TUFF_ACTIVATION_GELU_TANH:
    case TUFF_ACTIVATION_SILU: return true;
    default: return false;
  }
}

void activate(int32_t activation, float* x, uint64_t n) {
  switch (activation) {
    case TUFF_ACTIVATION_RELU:
      for (uint64_t i = 0; i < n; ++i) x[i] = x[i] < 0 ? 0.0F : x[i];
      break;
    case TUFF_ACTIVATION_RELU6:
      for (uint64_t i = 0; i < n; ++i) x[i] = x[i] < 0 ? 0.0F : x[i] > 6 ? 6.0F : x[i];
      break;
    case TUFF_ACTIVATION_GELU: apply_unary(unary_block(TUFF_UNARY_GELU), x, x, n, 0); break;
    case TUFF_ACTIVATION_GELU_TANH: apply_unary(unary_block(TUFF_UNARY_GELU_TANH), x, x, n, 0); break;
    case TUFF_ACTIVATION_SILU: apply_unary(unary_block(TUFF_UNARY_SILU), x, x, n, 0); break;
    default: break;
  }
}

}  // namespace tuff_cpu
