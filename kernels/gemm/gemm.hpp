// Matrix products: what the ABI's gemm and batched_gemm come down to.
#pragma once

#include <cstdint>

#include "runtime/buffer.hpp"

namespace tuff {

class Recorder;

// C[i] = alpha * op(A[i]) * op(B[i]) + beta * C[i] for i < batch_count, row-major. See tuff.h.
struct GemmArgs {
  int32_t dtype;
  int32_t ta, tb;
  uint64_t m, n, k;
  double alpha, beta;
  const Buffer *a, *b, *c;
  uint64_t lda, ldb, ldc;
  uint64_t stride_a = 0, stride_b = 0, stride_c = 0;  // elements between matrices of a batch
  uint64_t batch_count = 1;
};

void check_gemm(const GemmArgs& args);                       // throws; records nothing
void host_gemm(const GemmArgs& args);                        // the reference; args are checked
void record_gemm(Recorder& recorder, const GemmArgs& args);  // the Vulkan kernels; args are checked

}  // namespace tuff
