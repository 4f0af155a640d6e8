// The reference matrix product: double accumulators, one rounding at the end.
#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/gemm/gemm.hpp"
#include "tuff/tuff.h"

namespace tuff {
namespace {

// Element (row, col) of op(X) is data[row * row_stride + col * col_stride].
struct Matrix {
  const float* data;
  uint64_t row_stride, col_stride;
};

Matrix view(const Buffer* buffer, uint64_t offset, uint64_t ld, int32_t transpose) {
  const float* data = buffer->host<float>() + offset;
  return transpose == TUFF_NO_TRANS ? Matrix{data, ld, 1} : Matrix{data, 1, ld};
}

constexpr uint64_t kColumns = 256;  // of one row of C are summed together: b is then read along its rows

}  // namespace

void host_gemm(const GemmArgs& args) {
  const bool has_product = args.k > 0 && args.alpha != 0;
  for (uint64_t i = 0; i < args.batch_count && args.n > 0; ++i) {
    Matrix a{}, b{};
    if (has_product && args.m > 0) {
      a = view(args.a, i * args.stride_a, args.lda, args.ta);
      b = view(args.b, i * args.stride_b, args.ldb, args.tb);
    }
    for (uint64_t row = 0; row < args.m; ++row) {
      float* c = args.c->host<float>() + i * args.stride_c + row * args.ldc;
      for (uint64_t first = 0; first < args.n; first += kColumns) {
        const uint64_t count = std::min(kColumns, args.n - first);
        std::array<double, kColumns> sum{};
        for (uint64_t p = 0; has_product && p < args.k; ++p) {
          const double left = a.data[row * a.row_stride + p * a.col_stride];
          const float* right = b.data + p * b.row_stride + first * b.col_stride;
          for (uint64_t j = 0; j < count; ++j) sum[j] += left * double{right[j * b.col_stride]};
        }
        for (uint64_t j = 0; j < count; ++j) {
          // Not alpha * sum where there is no product: alpha may be infinite. Not beta * c where beta is 0: c may be
          // NaN.
          const double product = has_product ? args.alpha * sum[j] : 0.0;
          const double rest = args.beta != 0 ? args.beta * double{c[first + j]} : 0.0;
          c[first + j] = static_cast<float>(product + rest);
        }
      }
    }
  }
}

}  // namespace tuff
