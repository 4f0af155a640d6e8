// GEMM by oneDNN's sgemm. Elements of 16 bits are converted first, so sums are in f32 as for other devices; f64 and
// integers are left to Tuff. All memory is allocated before the first matrix is written.
#include "backends/cpu/device.hpp"

namespace tuff_cpu {
namespace {

using Call = tuff_batched_gemm_desc;

// Elements from the first to the last one used, of a matrix of rows x cols.
uint64_t extent(uint64_t rows, uint64_t cols, uint64_t ld) {
  return rows == 0 || cols == 0 ? 0 : (rows - 1) * ld + cols;
}

float scale_of(tuff_buffer scale) { return scale != 0 ? *at<const float>(scale) : 1.0F; }

// An operand's matrices as f32.
class Factor {
 public:
  Factor(tuff_buffer address, int32_t dtype, uint64_t stored_rows, uint64_t stored_cols, uint64_t ld, uint64_t stride,
         uint64_t batch_count)
      : stride_(stride), values_(address, dtype, extent(stored_rows, stored_cols, ld) + (batch_count - 1) * stride) {}
  const float* matrix(uint64_t i) const { return values_.get() + i * stride_; }

 private:
  uint64_t stride_;
  Widened values_;
};

struct Operands {
  const Factor *a, *b;
  bool has_product;
  float alpha;  // times the scales of a and b
  float beta;
};

void multiply(const Call& call, const Operands& operands, uint64_t i, float beta, float* c, uint64_t ldc) {
  multiply_matrices({call.ta == TUFF_NO_TRANS ? 'N' : 'T', call.tb == TUFF_NO_TRANS ? 'N' : 'T', call.m, call.n, call.k,
                     operands.alpha, operands.a->matrix(i), call.lda, operands.b->matrix(i), call.ldb, beta, c, ldc});
}

// C = scale_c * activation(sum + beta * C + bias + residual), where the sums are in f32: rows of `sums`, or of C
// itself, which then contains beta * C already.
template <typename C>
void finish(const Call& call, uint64_t i, const float* sums, uint64_t ld_sums, float beta) {
  C* c = at<C>(call.c) + i * call.stride_c;
  const C* bias = call.bias != 0 ? at<const C>(call.bias) + i * call.stride_bias : nullptr;
  const C* residual = call.residual != 0 ? at<const C>(call.residual) + i * call.stride_residual : nullptr;
  const float after = scale_of(call.scale_c);
  constexpr uint64_t kColumns = 512;
  const uint64_t strips = (call.n + kColumns - 1) / kColumns;
  for_each(call.m * strips, std::min(call.n, kColumns), [&](uint64_t strip) {
    const uint64_t row = strip / strips, first = strip % strips * kColumns;
    const uint64_t count = std::min(kColumns, call.n - first);
    float value[kColumns], other[kColumns];
    if (sums != nullptr) {
      std::memcpy(value, sums + row * ld_sums + first, count * sizeof(float));
    } else {
      std::fill_n(value, count, 0.0F);
    }
    C* target = c + row * call.ldc + first;
    if (beta != 0) {
      widen(target, other, count);
      for (uint64_t j = 0; j < count; ++j) value[j] += beta * other[j];
    }
    if (bias != nullptr && call.bias_axis == TUFF_BIAS_ROWS) {
      const float b = wide(bias[row]);
      for (uint64_t j = 0; j < count; ++j) value[j] += b;
    } else if (bias != nullptr) {
      widen(bias + first, other, count);
      for (uint64_t j = 0; j < count; ++j) value[j] += other[j];
    }
    if (residual != nullptr) {
      widen(residual + row * call.ld_residual + first, other, count);
      for (uint64_t j = 0; j < count; ++j) value[j] += other[j];
    }
    activate(call.activation, value, count);
    if (call.scale_c != 0) {
      for (uint64_t j = 0; j < count; ++j) value[j] *= after;
    }
    narrow(value, target, count);
  });
}

bool is_plain(const Call& call) {
  return call.activation == TUFF_ACTIVATION_NONE && call.bias_axis == TUFF_BIAS_NONE && call.residual == 0 &&
         call.scale_c == 0;
}

// Whether the sums may be stored in C: if nothing else is read from there afterwards. A residual may be C itself. Sums
// that are added to C are divided among threads by C (product.cpp); oneDNN also divides a long k, and adding to C takes
// little of the time then.
bool sums_in_c(const Call& call, const Operands& operands) {
  constexpr uint64_t kLong = 2048;
  if (call.c_type != TUFF_F32 || !operands.has_product) return false;
  return operands.beta == 0 ? call.residual != call.c : is_plain(call) && call.k < kLong;
}

// `sums`: memory for m x n sums that C does not hold.
void matrix(const Call& call, const Operands& operands, uint64_t i, float* sums) {
  if (sums_in_c(call, operands)) {
    float* c = at<float>(call.c) + i * call.stride_c;
    multiply(call, operands, i, operands.beta, c, call.ldc);
    if (!is_plain(call)) finish<float>(call, i, c, call.ldc, 0);
    return;
  }
  if (operands.has_product) multiply(call, operands, i, 0, sums, call.n);
  const float* product = operands.has_product ? sums : nullptr;
  with_float(call.c_type, [&]<typename C>(C) { finish<C>(call, i, product, call.n, operands.beta); });
}

bool knows_options(const Call& call) {
  const auto among = [](int32_t value, int32_t a, int32_t b, int32_t c) {
    return value == a || value == b || value == c;
  };
  return among(call.ta, TUFF_NO_TRANS, TUFF_TRANS, TUFF_CONJ_TRANS) &&
         among(call.tb, TUFF_NO_TRANS, TUFF_TRANS, TUFF_CONJ_TRANS) && is_activation(call.activation) &&
         among(call.bias_axis, TUFF_BIAS_NONE, TUFF_BIAS_ROWS, TUFF_BIAS_COLUMNS);
}

}  // namespace

tuff_status gemm(Device& device, const Call& call) {
  if (!is_float(call.a_type) || !is_float(call.b_type) || !is_float(call.c_type)) return TUFF_ERROR_UNSUPPORTED;
  if (!knows_options(call)) return TUFF_ERROR_UNSUPPORTED;
  if (device.asked) return TUFF_OK;
  if (!onednn_available()) return TUFF_ERROR_UNSUPPORTED;
  Operands operands{};
  operands.has_product = call.k > 0 && call.alpha != 0;
  operands.alpha = static_cast<float>(call.alpha) * scale_of(call.scale_a);
  operands.alpha *= scale_of(call.scale_b);
  operands.beta = static_cast<float>(call.beta);
  const uint64_t read = operands.has_product ? call.batch_count : 0;
  const bool na = call.ta == TUFF_NO_TRANS, nb = call.tb == TUFF_NO_TRANS;
  const auto none = [&](tuff_buffer address) { return read != 0 ? address : 0; };
  const Factor a(none(call.a), call.a_type, na ? call.m : call.k, na ? call.k : call.m, call.lda, call.stride_a, read);
  const Factor b(none(call.b), call.b_type, nb ? call.k : call.n, nb ? call.n : call.k, call.ldb, call.stride_b, read);
  operands.a = &a;
  operands.b = &b;
  // A product of about ten microseconds is not worth waking another thread for. For many, each thread computes one at a
  // time, within a parallel region.
  const double work = static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k);
  const bool small = work < kFewProducts;
  const uint64_t sums_apart = operands.has_product && !sums_in_c(call, operands) ? call.m * call.n : 0;
  if (small && work * static_cast<double>(call.batch_count) >= kFewProducts && device.threads > 1) {
    const PerThread<float> sums(device.threads, sums_apart);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < static_cast<int64_t>(call.batch_count); ++i) {
      matrix(call, operands, static_cast<uint64_t>(i), sums.mine());
    }
    return TUFF_OK;
  }
  const Threads threads(small ? 1 : device.threads);
  const PerThread<float> sums(1, sums_apart);
  for (uint64_t i = 0; i < call.batch_count; ++i) matrix(call, operands, i, sums.mine());
  return TUFF_OK;
}

}  // namespace tuff_cpu
