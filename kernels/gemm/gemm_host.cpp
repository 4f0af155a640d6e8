// Reference GEMM: sums in double, or for i8 in 32-bit integers that wrap around, with one rounding at the end.
#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/common/elements.hpp"
#include "kernels/elementwise/elementwise_ops.hpp"
#include "kernels/gemm/gemm.hpp"
#include "tuff/tuff.h"

namespace tuff {

double activate(int32_t activation, double x) {
  switch (activation) {
    case TUFF_ACTIVATION_RELU: return elementwise::relu(x);
    case TUFF_ACTIVATION_GELU: return elementwise::gelu(x);
    case TUFF_ACTIVATION_GELU_TANH: return elementwise::gelu_tanh(x);
    case TUFF_ACTIVATION_SILU: return elementwise::silu(x);
    case TUFF_ACTIVATION_RELU6: return x < 0 ? 0 : x > 6 ? 6 : x;
    default: return x;
  }
}

namespace {

// Calls body(T{}) with the C++ type of a floating-point dtype.
template <typename Body>
void with_real(int32_t dtype, const Body& body) {
  switch (dtype) {
    case TUFF_F16: return body(Half{});
    case TUFF_BF16: return body(Bfloat{});
    case TUFF_F64: return body(double{});
    case TUFF_F8_E4M3: return body(FloatE4M3{});
    case TUFF_F8_E5M2: return body(FloatE5M2{});
    default: return body(float{});
  }
}

// Element (row, col) of op(X) is data[row * row_stride + col * col_stride].
template <typename T>
struct Matrix {
  Matrix(const Buffer* buffer, uint64_t ld, int32_t transpose)
      : data(buffer->host<T>()),
        row_stride(transpose == TUFF_NO_TRANS ? ld : 1),
        col_stride(transpose == TUFF_NO_TRANS ? 1 : ld) {}
  const T* data;
  uint64_t row_stride, col_stride;
};

constexpr uint64_t kColumns = 256;  // of one row of C that are summed together, so that B is read along its rows
template <typename Sum>
using Sums = std::array<Sum, kColumns>;

// sums[j] = row `row` of op(A) times column first + j of op(B).
template <typename A, typename B, typename Sum>
void multiply(const GemmArgs& args, uint64_t row, uint64_t first, uint64_t count, Sums<Sum>& sums) {
  const Matrix<A> a(args.a, args.lda, args.ta);
  const Matrix<B> b(args.b, args.ldb, args.tb);
  for (uint64_t p = 0; p < args.k; ++p) {
    const auto left = static_cast<Sum>(a.data[row * a.row_stride + p * a.col_stride]);
    const B* right = b.data + p * b.row_stride + first * b.col_stride;
    for (uint64_t j = 0; j < count; ++j) sums[j] += left * static_cast<Sum>(right[j * b.col_stride]);
  }
}

// The scale as a number; 1 if there is none.
float scale_of(const Buffer* scale) { return scale != nullptr ? *scale->host<float>() : 1.0F; }

// The factor of the sums, as devices compute it.
double factor_of(const GemmArgs& args) {
  const GemmEpilogue& epilogue = args.epilogue;
  if (!epilogue.scaled()) return args.alpha;
  const float first = static_cast<float>(args.alpha) * scale_of(epilogue.scale_a);
  return double{first * scale_of(epilogue.scale_b)};
}

// Computes elements of C from their sums. Number is the type they are scaled in: double, or uint32_t for an i32 C.
template <typename C, typename Number, typename Sum>
void finish(const GemmArgs& args, bool has_product, uint64_t row, uint64_t first, uint64_t count,
            const Sums<Sum>& sums) {
  const GemmEpilogue& epilogue = args.epilogue;
  C* c = args.c->host<C>() + row * args.ldc + first;
  const auto scale = [](double x) {  // int64_t: no conversion of a negative double to unsigned
    if constexpr (std::is_same_v<Number, double>)
      return x;
    else
      return static_cast<Number>(static_cast<int64_t>(x));
  };
  const double factor = factor_of(args), after = double{scale_of(epilogue.scale_c)};
  for (uint64_t j = 0; j < count; ++j) {
    // Without A and B, alpha may be infinite and must not be applied; if beta is 0, c may be NaN and must not be read.
    Number value = 0;
    if (has_product) value = scale(factor) * static_cast<Number>(sums[j]);
    if (args.beta != 0) value += scale(args.beta) * static_cast<Number>(c[j]);
    if (epilogue.bias_axis != TUFF_BIAS_NONE) {
      value += static_cast<Number>(epilogue.bias->host<C>()[epilogue.bias_axis == TUFF_BIAS_ROWS ? row : first + j]);
    }
    if (epilogue.residual != nullptr) {
      value += static_cast<Number>(epilogue.residual->host<C>()[row * epilogue.ld_residual + first + j]);
    }
    if constexpr (std::is_same_v<Number, double>) {
      c[j] = static_cast<C>(activate(epilogue.activation, value) * after);
    } else {
      const auto result = static_cast<int32_t>(value);
      c[j] = epilogue.activation == TUFF_ACTIVATION_RELU && result < 0 ? 0 : result;
    }
  }
}

// multiply() for given types.
template <typename Sum>
using Multiply = void (*)(const GemmArgs& args, uint64_t row, uint64_t first, uint64_t count, Sums<Sum>& sums);

// Computes C in strips of a row: the sums by multiply_strip, then the elements.
template <typename C, typename Number, typename Sum>
void strips(const GemmArgs& args, Multiply<Sum> multiply_strip) {
  const bool has_product = args.k > 0 && args.alpha != 0;
  for (uint64_t row = 0; row < args.m; ++row) {
    for (uint64_t first = 0; first < args.n; first += kColumns) {
      const uint64_t count = std::min(kColumns, args.n - first);
      Sums<Sum> sums{};
      if (has_product) multiply_strip(args, row, first, count, sums);
      finish<C, Number>(args, has_product, row, first, count, sums);
    }
  }
}

template <typename C>
void host_integers(const GemmArgs& args) {
  // The sums wrap around in unsigned arithmetic; a floating-point C takes them as signed.
  strips<C, std::conditional_t<std::is_same_v<C, int32_t>, uint32_t, double>, int32_t>(
      args, [](const GemmArgs& all, uint64_t row, uint64_t first, uint64_t count, Sums<int32_t>& sums) {
        Sums<uint32_t> wrapping{};
        multiply<int8_t, int8_t>(all, row, first, count, wrapping);
        std::transform(wrapping.begin(), wrapping.end(), sums.begin(),
                       [](uint32_t x) { return static_cast<int32_t>(x); });
      });
}

void host_matrix(const GemmArgs& args) {
  if (args.sum_type() == TUFF_I32) {
    if (args.c_type == TUFF_I32) return host_integers<int32_t>(args);
    return with_real(args.c_type, [&](auto c) { host_integers<decltype(c)>(args); });
  }
  Multiply<double> chosen = nullptr;
  with_real(args.a_type, [&](auto a) {
    with_real(args.b_type, [&](auto b) { chosen = multiply<decltype(a), decltype(b), double>; });
  });
  with_real(args.c_type, [&](auto c) { strips<decltype(c), double, double>(args, chosen); });
}

}  // namespace

void host_gemm(const GemmArgs& args) {
  if (args.m == 0 || args.n == 0) return;
  for (uint64_t i = 0; i < args.batch_count; ++i) host_matrix(GemmMatrix(args, i).args);
}

}  // namespace tuff
