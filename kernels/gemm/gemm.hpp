// GEMM: the internal form of the ABI's gemm and batched_gemm.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "planning/buffer.hpp"
#include "planning/element_type.hpp"
#include "planning/operation.hpp"
#include "tuff/tuff.h"

namespace tuff {

class Recorder;
class TuningKey;

// What is computed from a sum before it is stored:
// scale_c * activation(alpha * scale_a * scale_b * sum + beta * C + bias + residual).
struct GemmEpilogue {
  int32_t activation = TUFF_ACTIVATION_NONE;
  int32_t bias_axis = TUFF_BIAS_NONE;
  const Buffer *bias = nullptr, *residual = nullptr;
  uint64_t ld_residual = 0;
  uint64_t stride_bias = 0, stride_residual = 0;                            // elements between matrices of a batch
  const Buffer *scale_a = nullptr, *scale_b = nullptr, *scale_c = nullptr;  // one f32 each; null: 1

  static constexpr uint64_t kScaleBytes = sizeof(float);

  std::array<const Buffer *, 3> scales() const { return {scale_a, scale_b, scale_c}; }
  bool scaled() const { return scales() != std::array<const Buffer *, 3>{}; }
  bool has_operands() const { return bias_axis != TUFF_BIAS_NONE || residual != nullptr; }
  bool none() const { return activation == TUFF_ACTIVATION_NONE && !has_operands() && !scaled(); }
};

// Which part of C is needed. The diagonal belongs to both triangles. Kernels may leave out tiles that lie outside, or
// compute them.
enum class GemmPart : uint8_t { all, lower, upper };

// C[i] = alpha * op(A[i]) * op(B[i]) + beta * C[i] for i < batch_count, row-major. See tuff.h.
struct GemmArgs {
  int32_t a_type, b_type, c_type;
  int32_t accumulate;  // sum_type(), or TUFF_F16 where the caller allows less accurate sums
  int32_t precision;   // TUFF_PRECISION_*
  int32_t ta, tb;
  uint64_t m, n, k;
  double alpha, beta;
  const Buffer *a, *b, *c;
  uint64_t lda, ldb, ldc;
  uint64_t stride_a = 0, stride_b = 0, stride_c = 0;  // elements between matrices of a batch
  uint64_t batch_count = 1;
  GemmEpilogue epilogue{};
  // batch_count buffers each, instead of a, b, c and their strides; all three or none. (In a planner's own copy of the
  // arguments some may be replaced by copies in scratch memory.)
  const Buffer *const *a_array = nullptr, *const *b_array = nullptr, *const *c_array = nullptr;
  GemmPart c_part = GemmPart::all;

  auto arrays() {
    return std::tuple(counted(a_array, batch_count), counted(b_array, batch_count), counted(c_array, batch_count));
  }
  // Devices compute an array of one matrix as a product without arrays.
  bool fixed_lists() const { return batch_count != 1; }

  bool has_float8_inputs() const { return kFloat8Types.has(a_type) && kFloat8Types.has(b_type); }
  // The type of multiplications and sums: TUFF_F32, TUFF_F64 or TUFF_I32.
  int32_t sum_type() const {
    return a_type == TUFF_F64 ? TUFF_F64 : a_type == TUFF_I8 || a_type == TUFF_I32 ? TUFF_I32 : TUFF_F32;
  }
};

// alpha or beta as the device computes with it, so that all backends agree on which are zero and leave operands unread:
// rounded to f32 unless C is f64, or i32, for which check_gemm() requires whole numbers.
double gemm_scalar(double value, const GemmArgs &args);

// The operand advanced by `elements` elements; an empty buffer if `buffer` is null.
Buffer moved(const Buffer *buffer, uint64_t elements, int32_t type);

// Matrix i of a batch on its own: its arguments and operands.
struct GemmMatrix {
  GemmMatrix(const GemmArgs &batch, uint64_t i);
  GemmMatrix(const GemmMatrix &) = delete;
  GemmMatrix &operator=(const GemmMatrix &) = delete;
  Buffer a, b, c, bias, residual;
  GemmArgs args;
};

void check_activation(int32_t activation);      // throws if it is not a TUFF_ACTIVATION_*
double activate(int32_t activation, double x);  // the reference

void check_gemm(const GemmArgs &args);                       // throws; records nothing
void host_gemm(const GemmArgs &args);                        // the reference; args are checked
void record_gemm(Recorder &recorder, const GemmArgs &args);  // the Vulkan kernels; args are checked
tuff_status offer_gemm(const PluginFunction &function, const GemmArgs &args);
// Computes it with the tile of C that the model prefers, whatever is forced or tuned; for a probe.
void record_gemm_tiles(Recorder &recorder, const GemmArgs &args);
TuningKey gemm_key(const GemmArgs &args);  // the key of its tuned choice
// See tuff_batched_gemm_variants; args are checked.
std::string gemm_variants(const Recorder &recorder, const GemmArgs &args);

namespace operations {
extern const OperationOf<GemmArgs> gemm, batched_gemm;
}  // namespace operations

}  // namespace tuff
