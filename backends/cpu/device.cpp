#include "backends/cpu/device.hpp"

#include <cstring>

namespace tuff_cpu {
namespace {

struct Entry {
  const char* operation;
  tuff_backend_function function;
};

constexpr Entry kFunctions[] = {
    {"gemm", entry<tuff_batched_gemm_desc, gemm>},
    {"batched_gemm", entry<tuff_batched_gemm_desc, gemm>},
    {"unary", entry<tuff_unary_desc, unary>},
    {"binary", entry<tuff_binary_desc, binary>},
    {"conv1d", entry<tuff_backend_conv, convolution>},
    {"conv2d", entry<tuff_backend_conv, convolution>},
    {"conv3d", entry<tuff_backend_conv, convolution>},
    {"conv_transpose2d", entry<tuff_backend_conv, convolution>},
    {"attention", entry<tuff_attention_desc, attention>},
    {"permute", entry<tuff_permute_desc, permute>},
    {"cast", entry<tuff_cast_desc, cast>},
    {"gather", entry<tuff_backend_gather, gather>},
    {"reduce", entry<tuff_reduce_desc, reduce>},
    {"softmax", entry<tuff_softmax_desc, softmax>},
    {"max_pool", entry<tuff_pool_desc, max_pool>},
    {"avg_pool", entry<tuff_pool_desc, avg_pool>},
    {"layer_norm", entry<tuff_layer_norm_desc, layer_norm>},
    {"rms_norm", entry<tuff_rms_norm_desc, rms_norm>},
    {"group_norm", entry<tuff_group_norm_desc, group_norm>},
    {"batch_norm", entry<tuff_batch_norm_desc, batch_norm>},
    {"expr", entry<tuff_backend_expr, expression>},
    {"spmm", entry<tuff_spmm_desc, spmm>},
    {"spgemm", entry<tuff_spgemm_desc, spgemm>},
    {"sparse_triangular_solve", entry<tuff_sparse_triangular_solve_desc, sparse_triangular_solve>},
};

}  // namespace

tuff_backend_function function_for(const char* operation) {
  for (const Entry& row : kFunctions) {
    if (std::strcmp(row.operation, operation) == 0) return row.function;
  }
  return nullptr;
}

tuff_status open_device(void** device) {
  auto* opened = new (std::nothrow) Device;
  if (opened == nullptr) return TUFF_ERROR_OUT_OF_HOST_MEMORY;
  *device = opened;
  return TUFF_OK;
}

tuff_status accepts(void* device, tuff_backend_function function, const void* call) {
  auto& opened = *static_cast<Device*>(device);
  opened.asked = true;
  const tuff_status status = function(device, call);
  opened.asked = false;
  return status;
}

void close_device(void* device) { delete static_cast<Device*>(device); }

}  // namespace tuff_cpu
