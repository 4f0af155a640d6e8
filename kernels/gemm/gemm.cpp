#include "kernels/gemm/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/common/check.hpp"

namespace tuff {
namespace {

CallText describe(const GemmArgs& args) {
  std::string shape =
      fmt::format("{}{} {} {}x{}x{}", args.ta == TUFF_NO_TRANS ? 'n' : 't', args.tb == TUFF_NO_TRANS ? 'n' : 't',
                  dtype_name(args.a_type), args.m, args.n, args.k);
  if (args.b_type != args.a_type) shape += fmt::format(" by {}", dtype_name(args.b_type));
  if (args.batch_count != 1) shape += fmt::format(" batch {}", args.batch_count);
  return {shape, args.a_type};
}

}  // namespace

namespace operations {
const OperationOf<GemmArgs> gemm =
    define_operation<GemmArgs, check_gemm, host_gemm, record_gemm, describe, gemm_variants, offer_gemm>("gemm",
                                                                                                        kFactorTypes);
const OperationOf<GemmArgs> batched_gemm =
    define_operation<GemmArgs, check_gemm, host_gemm, record_gemm, describe, gemm_variants, offer_gemm>("batched_gemm",
                                                                                                        kFactorTypes);
}  // namespace operations

double gemm_scalar(double value, const GemmArgs& args) {
  return args.c_type == TUFF_F64 || args.c_type == TUFF_I32 ? value : double{static_cast<float>(value)};
}

Buffer moved(const Buffer* buffer, uint64_t elements, int32_t type) {
  if (buffer == nullptr) return {};
  Buffer result = *buffer;
  result.offset += elements * dtype_size(type);
  result.bytes -= std::min(result.bytes, elements * dtype_size(type));
  return result;
}

GemmMatrix::GemmMatrix(const GemmArgs& batch, uint64_t i)
    : a(moved(batch.a_array != nullptr ? batch.a_array[i] : batch.a, i * batch.stride_a, batch.a_type)),
      b(moved(batch.b_array != nullptr ? batch.b_array[i] : batch.b, i * batch.stride_b, batch.b_type)),
      c(moved(batch.c_array != nullptr ? batch.c_array[i] : batch.c, i * batch.stride_c, batch.c_type)),
      bias(moved(batch.epilogue.bias, i * batch.epilogue.stride_bias, batch.c_type)),
      residual(moved(batch.epilogue.residual, i * batch.epilogue.stride_residual, batch.c_type)),
      args(batch) {
  args.a = &a;
  args.b = &b;
  args.c = &c;
  args.epilogue.bias = batch.epilogue.bias != nullptr ? &bias : nullptr;
  args.epilogue.residual = batch.epilogue.residual != nullptr ? &residual : nullptr;
  args.a_array = args.b_array = args.c_array = nullptr;
  args.stride_a = args.stride_b = args.stride_c = args.epilogue.stride_bias = args.epilogue.stride_residual = 0;
  args.batch_count = 1;
}

}  // namespace tuff
