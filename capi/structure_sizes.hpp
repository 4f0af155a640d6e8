// The sizes of the ABI's structures in each version of this library. They tell which version a caller was compiled
// with. Fields are only ever appended, so each version's structure is a prefix of the next version's.
//
// Generated from tuff.h by scripts/api/generate.py: not to be edited.
#pragma once

#include <array>
#include <cstdint>

#include "tuff/tuff.h"

namespace tuff::capi {

// Reading or writing a structure without an entry here does not compile.
template <typename T>
struct Released;

template <>
struct Released<tuff_device_properties> {
  static constexpr std::array<uint32_t, 2> sizes = {744, 1712};  // 0.1.0, 0.8.0
};
template <>
struct Released<tuff_context_desc> {
  static constexpr std::array<uint32_t, 2> sizes = {32, 40};  // 0.1.0, 0.7.0
};
template <>
struct Released<tuff_stats> {
  static constexpr std::array<uint32_t, 3> sizes = {120, 152, 168};  // 0.1.0, 0.7.0, 0.9.0
};
template <>
struct Released<tuff_limits> {
  static constexpr std::array<uint32_t, 2> sizes = {24, 32};  // 0.1.0, 0.9.0
};
template <>
struct Released<tuff_alloc_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {24};  // 0.1.0
};
template <>
struct Released<tuff_memory_stats> {
  static constexpr std::array<uint32_t, 1> sizes = {128};  // 0.7.0
};
template <>
struct Released<tuff_compact_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {24};  // 0.9.0
};
template <>
struct Released<tuff_compaction> {
  static constexpr std::array<uint32_t, 1> sizes = {64};  // 0.9.0
};
template <>
struct Released<tuff_memory_pressure> {
  static constexpr std::array<uint32_t, 1> sizes = {24};  // 0.7.0
};
template <>
struct Released<tuff_memory_fd> {
  static constexpr std::array<uint32_t, 1> sizes = {72};  // 0.7.0
};
template <>
struct Released<tuff_gemm_desc> {
  static constexpr std::array<uint32_t, 3> sizes = {104, 160, 184};  // 0.1.0, 0.2.0, 0.9.0
};
template <>
struct Released<tuff_batched_gemm_desc> {
  static constexpr std::array<uint32_t, 3> sizes = {136, 232, 256};  // 0.1.0, 0.2.0, 0.9.0
};
template <>
struct Released<tuff_conv2d_desc> {
  static constexpr std::array<uint32_t, 2> sizes = {176, 232};  // 0.1.0, 0.4.0
};
template <>
struct Released<tuff_conv1d_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {176};  // 0.4.0
};
template <>
struct Released<tuff_conv3d_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {288};  // 0.4.0
};
template <>
struct Released<tuff_conv_transpose2d_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {224};  // 0.4.0
};
template <>
struct Released<tuff_conv_backward_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {296};  // 0.9.0
};
template <>
struct Released<tuff_attention_desc> {
  static constexpr std::array<uint32_t, 3> sizes = {96, 328, 408};  // 0.1.0, 0.4.0, 0.9.0
};
template <>
struct Released<tuff_attention_backward_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {480};  // 0.9.0
};
template <>
struct Released<tuff_reduce_desc> {
  static constexpr std::array<uint32_t, 2> sizes = {104, 120};  // 0.1.0, 0.9.0
};
template <>
struct Released<tuff_scan_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {104};  // 0.9.0
};
template <>
struct Released<tuff_sort_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {120};  // 0.9.0
};
template <>
struct Released<tuff_unary_desc> {
  static constexpr std::array<uint32_t, 2> sizes = {40, 48};  // 0.1.0, 0.3.0
};
template <>
struct Released<tuff_binary_desc> {
  static constexpr std::array<uint32_t, 2> sizes = {48, 184};  // 0.1.0, 0.4.0
};
template <>
struct Released<tuff_softmax_desc> {
  static constexpr std::array<uint32_t, 2> sizes = {96, 136};  // 0.1.0, 0.3.0
};
template <>
struct Released<tuff_random_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {120};  // 0.9.0
};
template <>
struct Released<tuff_variates_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {104};  // 0.9.0
};
template <>
struct Released<tuff_dropout_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {72};  // 0.9.0
};
template <>
struct Released<tuff_layer_norm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {88};  // 0.3.0
};
template <>
struct Released<tuff_rms_norm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {80};  // 0.3.0
};
template <>
struct Released<tuff_group_norm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {88};  // 0.3.0
};
template <>
struct Released<tuff_batch_norm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {96};  // 0.3.0
};
template <>
struct Released<tuff_norm_backward_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {128};  // 0.9.0
};
template <>
struct Released<tuff_batch_norm_training_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {120};  // 0.9.0
};
template <>
struct Released<tuff_permute_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {128};  // 0.4.0
};
template <>
struct Released<tuff_cast_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {40};  // 0.4.0
};
template <>
struct Released<tuff_slice_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {288};  // 0.4.0
};
template <>
struct Released<tuff_concat_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {112};  // 0.4.0
};
template <>
struct Released<tuff_gather_desc> {
  static constexpr std::array<uint32_t, 2> sizes = {184, 192};  // 0.4.0, 0.9.0
};
template <>
struct Released<tuff_scatter_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {208};  // 0.4.0
};
template <>
struct Released<tuff_select_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {80};  // 0.9.0
};
template <>
struct Released<tuff_pad_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {240};  // 0.4.0
};
template <>
struct Released<tuff_copy_strided_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {240};  // 0.4.0
};
template <>
struct Released<tuff_pool_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {208};  // 0.4.0
};
template <>
struct Released<tuff_pool_backward_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {224};  // 0.9.0
};
template <>
struct Released<tuff_resize_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {128};  // 0.5.0
};
template <>
struct Released<tuff_rope_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {152};  // 0.4.0
};
template <>
struct Released<tuff_cholesky_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {64};  // 0.9.0
};
template <>
struct Released<tuff_lu_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {80};  // 0.9.0
};
template <>
struct Released<tuff_triangular_solve_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {96};  // 0.9.0
};
template <>
struct Released<tuff_lu_solve_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {104};  // 0.9.0
};
template <>
struct Released<tuff_lu_determinant_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {88};  // 0.9.0
};
template <>
struct Released<tuff_qr_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {88};  // 0.9.0
};
template <>
struct Released<tuff_eigh_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {104};  // 0.9.0
};
template <>
struct Released<tuff_eig_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {96};  // 0.9.0
};
template <>
struct Released<tuff_svd_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {128};  // 0.9.0
};
template <>
struct Released<tuff_fft_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {240};  // 0.9.0
};
template <>
struct Released<tuff_dct_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {240};  // 0.9.0
};
template <>
struct Released<tuff_rnn_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {224};  // 0.9.0
};
template <>
struct Released<tuff_rnn_backward_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {312};  // 0.9.0
};
template <>
struct Released<tuff_optimizer_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {176};  // 0.9.0
};
template <>
struct Released<tuff_gradient_norm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {88};  // 0.9.0
};
template <>
struct Released<tuff_cross_entropy_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {160};  // 0.9.0
};
template <>
struct Released<tuff_softmax_backward_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {120};  // 0.9.0
};
template <>
struct Released<tuff_spmm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {176};  // 0.9.0
};
template <>
struct Released<tuff_sparse_convert_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {152};  // 0.9.0
};
template <>
struct Released<tuff_sddmm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {176};  // 0.9.0
};
template <>
struct Released<tuff_spgemm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {160};  // 0.9.0
};
template <>
struct Released<tuff_sparse_triangular_solve_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {128};  // 0.9.0
};
template <>
struct Released<tuff_quantize_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {136};  // 0.9.0
};
template <>
struct Released<tuff_dequantize_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {136};  // 0.9.0
};
template <>
struct Released<tuff_qgemm_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {176};  // 0.9.0
};
template <>
struct Released<tuff_expr_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {40};  // 0.9.0
};
template <>
struct Released<tuff_expr_run_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {96};  // 0.9.0
};
template <>
struct Released<tuff_stream_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {16};  // 0.8.0
};
template <>
struct Released<tuff_event_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {8};  // 0.8.0
};
template <>
struct Released<tuff_kernel_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {112};  // 0.7.0
};
template <>
struct Released<tuff_kernel_properties> {
  static constexpr std::array<uint32_t, 1> sizes = {648};  // 0.7.0
};
template <>
struct Released<tuff_op_desc> {
  static constexpr std::array<uint32_t, 1> sizes = {56};  // 0.9.0
};
template <>
struct Released<tuff_usage> {
  static constexpr std::array<uint32_t, 1> sizes = {104};  // 0.9.0
};
template <>
struct Released<tuff_device_sensors> {
  static constexpr std::array<uint32_t, 1> sizes = {88};  // 0.9.0
};

}  // namespace tuff::capi
