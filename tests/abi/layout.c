/* The layout of every structure, and the value of every constant, as bindings in other languages rely on them. A field
 * that moves breaks them: fields are appended, never inserted. Compiled as C11 and as C++11. */
#include <stddef.h>

#include "tuff/tuff.h"

#ifdef __cplusplus
#define CHECK(condition) static_assert(condition, #condition)
#else
#define CHECK(condition) _Static_assert(condition, #condition)
#endif
#define SIZE(type, bytes) CHECK(sizeof(type) == (bytes))
#define VALUE(name, value) CHECK((name) == (value))
#define FIELD(type, field, offset) CHECK(offsetof(type, field) == (offset))

SIZE(tuff_status, 4);
SIZE(tuff_context, 8);
SIZE(tuff_buffer, 8);
SIZE(tuff_stream, 8);
SIZE(tuff_kernel, 8);
SIZE(tuff_event, 8);
SIZE(tuff_graph, 8);

SIZE(tuff_queue_family, 16);
FIELD(tuff_queue_family, flags, 0);
FIELD(tuff_queue_family, count, 4);
FIELD(tuff_queue_family, timestamp_bits, 8);
FIELD(tuff_queue_family, reserved, 12);

SIZE(tuff_matrix_shape, 24);
FIELD(tuff_matrix_shape, m, 0);
FIELD(tuff_matrix_shape, n, 4);
FIELD(tuff_matrix_shape, k, 8);
FIELD(tuff_matrix_shape, a_type, 12);
FIELD(tuff_matrix_shape, b_type, 16);
FIELD(tuff_matrix_shape, c_type, 20);

SIZE(tuff_device_properties, 1712);
FIELD(tuff_device_properties, struct_size, 0);
FIELD(tuff_device_properties, type, 4);
FIELD(tuff_device_properties, name, 8);
FIELD(tuff_device_properties, vendor, 264);
FIELD(tuff_device_properties, driver, 328);
FIELD(tuff_device_properties, backend, 584);
FIELD(tuff_device_properties, uuid, 600);
FIELD(tuff_device_properties, vendor_id, 616);
FIELD(tuff_device_properties, device_id, 620);
FIELD(tuff_device_properties, api_version, 624);
FIELD(tuff_device_properties, driver_version, 628);
FIELD(tuff_device_properties, memory_bytes, 632);
FIELD(tuff_device_properties, memory_free_bytes, 640);
FIELD(tuff_device_properties, max_allocation_bytes, 648);
FIELD(tuff_device_properties, max_storage_range_bytes, 656);
FIELD(tuff_device_properties, max_workgroup_invocations, 664);
FIELD(tuff_device_properties, max_workgroup_count, 668);
FIELD(tuff_device_properties, max_shared_memory_bytes, 680);
FIELD(tuff_device_properties, max_push_constant_bytes, 684);
FIELD(tuff_device_properties, subgroup_size, 688);
FIELD(tuff_device_properties, supports_f16, 692);
FIELD(tuff_device_properties, supports_bf16, 696);
FIELD(tuff_device_properties, supports_f64, 700);
FIELD(tuff_device_properties, supports_int8, 704);
FIELD(tuff_device_properties, supports_matrix_cores, 708);
FIELD(tuff_device_properties, supports_addresses, 712);
FIELD(tuff_device_properties, unified_memory, 716);
FIELD(tuff_device_properties, binding, 720);
FIELD(tuff_device_properties, bandwidth_bytes_per_second, 728);
FIELD(tuff_device_properties, f32_flops_per_second, 736);
FIELD(tuff_device_properties, max_workgroup_size, 744);
FIELD(tuff_device_properties, subgroup_size_min, 756);
FIELD(tuff_device_properties, subgroup_size_max, 760);
FIELD(tuff_device_properties, subgroup_operations, 764);
FIELD(tuff_device_properties, compute_units, 768);
FIELD(tuff_device_properties, min_storage_alignment, 772);
FIELD(tuff_device_properties, host_import_alignment, 776);
FIELD(tuff_device_properties, timestamp_nanoseconds, 784);
FIELD(tuff_device_properties, driver_uuid, 792);
FIELD(tuff_device_properties, queue_family_count, 808);
FIELD(tuff_device_properties, matrix_shape_count, 812);
FIELD(tuff_device_properties, queue_families, 816);
FIELD(tuff_device_properties, matrix_shapes, 944);

SIZE(tuff_context_desc, 40);
FIELD(tuff_context_desc, validation, 4);
FIELD(tuff_context_desc, device, 8);
FIELD(tuff_context_desc, backend, 16);
FIELD(tuff_context_desc, memory_limit_bytes, 24);
FIELD(tuff_context_desc, prewarm, 32);
FIELD(tuff_context_desc, reserved, 36);

SIZE(tuff_stats, 168);
FIELD(tuff_stats, live_buffers, 4);
FIELD(tuff_stats, bytes_in_use, 8);
FIELD(tuff_stats, bytes_reserved, 16);
FIELD(tuff_stats, bytes_peak, 24);
FIELD(tuff_stats, allocations, 32);
FIELD(tuff_stats, dispatches, 40);
FIELD(tuff_stats, submissions, 48);
FIELD(tuff_stats, barriers, 56);
FIELD(tuff_stats, bytes_uploaded, 64);
FIELD(tuff_stats, bytes_downloaded, 72);
FIELD(tuff_stats, shaders_compiled, 80);
FIELD(tuff_stats, shader_cache_hits, 88);
FIELD(tuff_stats, pipelines_created, 96);
FIELD(tuff_stats, vulkan_objects_created, 104);
FIELD(tuff_stats, validation_messages, 112);
FIELD(tuff_stats, kernel_cache_hits, 120);
FIELD(tuff_stats, bytes_staged, 128);
FIELD(tuff_stats, kernels_prewarmed, 136);
FIELD(tuff_stats, kernels_to_prewarm, 144);
FIELD(tuff_stats, pipelines_live, 152);
FIELD(tuff_stats, pipelines_evicted, 160);

SIZE(tuff_limits, 32);
FIELD(tuff_limits, reserved, 4);
FIELD(tuff_limits, memory_bytes, 8);
FIELD(tuff_limits, wait_milliseconds, 16);
FIELD(tuff_limits, pipelines, 24);

SIZE(tuff_memory_stats, 128);
FIELD(tuff_memory_stats, blocks, 4);
FIELD(tuff_memory_stats, bytes_in_use, 8);
FIELD(tuff_memory_stats, bytes_largest_free, 40);
FIELD(tuff_memory_stats, live_allocations, 48);
FIELD(tuff_memory_stats, allocations, 56);
FIELD(tuff_memory_stats, hits, 64);
FIELD(tuff_memory_stats, misses, 72);
FIELD(tuff_memory_stats, fragmentation, 80);
FIELD(tuff_memory_stats, bytes_limit, 88);
FIELD(tuff_memory_stats, heap_bytes, 96);
FIELD(tuff_memory_stats, heap_budget_bytes, 104);
FIELD(tuff_memory_stats, heap_used_bytes, 112);
FIELD(tuff_memory_stats, bytes_imported, 120);

SIZE(tuff_memory_pressure, 24);
FIELD(tuff_memory_pressure, status, 4);
FIELD(tuff_memory_pressure, bytes_requested, 8);
FIELD(tuff_memory_pressure, bytes_needed, 16);

SIZE(tuff_memory_fd, 72);
FIELD(tuff_memory_fd, fd, 4);
FIELD(tuff_memory_fd, memory_bytes, 8);
FIELD(tuff_memory_fd, offset, 16);
FIELD(tuff_memory_fd, bytes, 24);
FIELD(tuff_memory_fd, memory_type, 32);
FIELD(tuff_memory_fd, dedicated, 36);
FIELD(tuff_memory_fd, device_uuid, 40);
FIELD(tuff_memory_fd, driver_uuid, 56);

SIZE(tuff_alloc_desc, 24);
FIELD(tuff_alloc_desc, flags, 4);
FIELD(tuff_alloc_desc, bytes, 8);
FIELD(tuff_alloc_desc, name, 16);

SIZE(tuff_gemm_desc, 160);
FIELD(tuff_gemm_desc, dtype, 4);
FIELD(tuff_gemm_desc, ta, 8);
FIELD(tuff_gemm_desc, tb, 12);
FIELD(tuff_gemm_desc, m, 16);
FIELD(tuff_gemm_desc, k, 32);
FIELD(tuff_gemm_desc, alpha, 40);
FIELD(tuff_gemm_desc, beta, 48);
FIELD(tuff_gemm_desc, a, 56);
FIELD(tuff_gemm_desc, c, 72);
FIELD(tuff_gemm_desc, lda, 80);
FIELD(tuff_gemm_desc, ldc, 96);
FIELD(tuff_gemm_desc, a_type, 104);
FIELD(tuff_gemm_desc, b_type, 108);
FIELD(tuff_gemm_desc, c_type, 112);
FIELD(tuff_gemm_desc, accumulate, 116);
FIELD(tuff_gemm_desc, precision, 120);
FIELD(tuff_gemm_desc, activation, 124);
FIELD(tuff_gemm_desc, bias_axis, 128);
FIELD(tuff_gemm_desc, reserved, 132);
FIELD(tuff_gemm_desc, bias, 136);
FIELD(tuff_gemm_desc, residual, 144);
FIELD(tuff_gemm_desc, ld_residual, 152);

SIZE(tuff_batched_gemm_desc, 232);
FIELD(tuff_batched_gemm_desc, m, 16);
FIELD(tuff_batched_gemm_desc, alpha, 40);
FIELD(tuff_batched_gemm_desc, a, 56);
FIELD(tuff_batched_gemm_desc, lda, 80);
FIELD(tuff_batched_gemm_desc, stride_a, 104);
FIELD(tuff_batched_gemm_desc, stride_c, 120);
FIELD(tuff_batched_gemm_desc, batch_count, 128);
FIELD(tuff_batched_gemm_desc, a_type, 136);
FIELD(tuff_batched_gemm_desc, b_type, 140);
FIELD(tuff_batched_gemm_desc, c_type, 144);
FIELD(tuff_batched_gemm_desc, accumulate, 148);
FIELD(tuff_batched_gemm_desc, precision, 152);
FIELD(tuff_batched_gemm_desc, activation, 156);
FIELD(tuff_batched_gemm_desc, bias_axis, 160);
FIELD(tuff_batched_gemm_desc, reserved, 164);
FIELD(tuff_batched_gemm_desc, bias, 168);
FIELD(tuff_batched_gemm_desc, residual, 176);
FIELD(tuff_batched_gemm_desc, ld_residual, 184);
FIELD(tuff_batched_gemm_desc, stride_bias, 192);
FIELD(tuff_batched_gemm_desc, stride_residual, 200);
FIELD(tuff_batched_gemm_desc, a_array, 208);
FIELD(tuff_batched_gemm_desc, b_array, 216);
FIELD(tuff_batched_gemm_desc, c_array, 224);

SIZE(tuff_conv2d_desc, 232);
FIELD(tuff_conv2d_desc, dtype, 4);
FIELD(tuff_conv2d_desc, input, 8);
FIELD(tuff_conv2d_desc, output, 24);
FIELD(tuff_conv2d_desc, in_shape, 32);
FIELD(tuff_conv2d_desc, filter_shape, 64);
FIELD(tuff_conv2d_desc, out_shape, 96);
FIELD(tuff_conv2d_desc, stride, 128);
FIELD(tuff_conv2d_desc, padding, 144);
FIELD(tuff_conv2d_desc, dilation, 160);
FIELD(tuff_conv2d_desc, padding_end, 176);
FIELD(tuff_conv2d_desc, groups, 192);
FIELD(tuff_conv2d_desc, asymmetric, 200);
FIELD(tuff_conv2d_desc, layout, 204);
FIELD(tuff_conv2d_desc, activation, 208);
FIELD(tuff_conv2d_desc, precision, 212);
FIELD(tuff_conv2d_desc, bias, 216);
FIELD(tuff_conv2d_desc, residual, 224);

SIZE(tuff_conv1d_desc, 176);
FIELD(tuff_conv1d_desc, dtype, 4);
FIELD(tuff_conv1d_desc, in_shape, 32);
FIELD(tuff_conv1d_desc, filter_shape, 56);
FIELD(tuff_conv1d_desc, out_shape, 80);
FIELD(tuff_conv1d_desc, stride, 104);
FIELD(tuff_conv1d_desc, padding, 112);
FIELD(tuff_conv1d_desc, dilation, 120);
FIELD(tuff_conv1d_desc, padding_end, 128);
FIELD(tuff_conv1d_desc, groups, 136);
FIELD(tuff_conv1d_desc, asymmetric, 144);
FIELD(tuff_conv1d_desc, reserved, 156);
FIELD(tuff_conv1d_desc, residual, 168);

SIZE(tuff_conv3d_desc, 288);
FIELD(tuff_conv3d_desc, in_shape, 32);
FIELD(tuff_conv3d_desc, filter_shape, 72);
FIELD(tuff_conv3d_desc, out_shape, 112);
FIELD(tuff_conv3d_desc, stride, 152);
FIELD(tuff_conv3d_desc, padding, 176);
FIELD(tuff_conv3d_desc, dilation, 200);
FIELD(tuff_conv3d_desc, padding_end, 224);
FIELD(tuff_conv3d_desc, groups, 248);
FIELD(tuff_conv3d_desc, asymmetric, 256);
FIELD(tuff_conv3d_desc, reserved, 268);
FIELD(tuff_conv3d_desc, bias, 272);

SIZE(tuff_conv_transpose2d_desc, 224);
FIELD(tuff_conv_transpose2d_desc, in_shape, 32);
FIELD(tuff_conv_transpose2d_desc, filter_shape, 64);
FIELD(tuff_conv_transpose2d_desc, out_shape, 96);
FIELD(tuff_conv_transpose2d_desc, stride, 128);
FIELD(tuff_conv_transpose2d_desc, padding, 144);
FIELD(tuff_conv_transpose2d_desc, output_padding, 160);
FIELD(tuff_conv_transpose2d_desc, dilation, 176);
FIELD(tuff_conv_transpose2d_desc, groups, 192);
FIELD(tuff_conv_transpose2d_desc, layout, 200);
FIELD(tuff_conv_transpose2d_desc, activation, 204);
FIELD(tuff_conv_transpose2d_desc, reserved, 208);
FIELD(tuff_conv_transpose2d_desc, bias, 216);

SIZE(tuff_attention_desc, 328);
FIELD(tuff_attention_desc, q, 8);
FIELD(tuff_attention_desc, o, 32);
FIELD(tuff_attention_desc, batch, 40);
FIELD(tuff_attention_desc, head_dim, 72);
FIELD(tuff_attention_desc, scale, 80);
FIELD(tuff_attention_desc, causal, 88);
FIELD(tuff_attention_desc, reserved, 92);
FIELD(tuff_attention_desc, kv_heads, 96);
FIELD(tuff_attention_desc, q_strides, 112);
FIELD(tuff_attention_desc, o_strides, 184);
FIELD(tuff_attention_desc, softcap, 208);
FIELD(tuff_attention_desc, bias, 216);
FIELD(tuff_attention_desc, mask, 248);
FIELD(tuff_attention_desc, bias_type, 280);
FIELD(tuff_attention_desc, window_left, 288);
FIELD(tuff_attention_desc, q_lengths, 304);
FIELD(tuff_attention_desc, lse, 320);

SIZE(tuff_reduce_desc, 104);
FIELD(tuff_reduce_desc, op, 8);
FIELD(tuff_reduce_desc, rank, 12);
FIELD(tuff_reduce_desc, input, 16);
FIELD(tuff_reduce_desc, shape, 32);
FIELD(tuff_reduce_desc, axis, 96);
FIELD(tuff_reduce_desc, reserved, 100);

SIZE(tuff_unary_desc, 48);
FIELD(tuff_unary_desc, op, 8);
FIELD(tuff_unary_desc, reserved, 12);
FIELD(tuff_unary_desc, input, 16);
FIELD(tuff_unary_desc, n, 32);
FIELD(tuff_unary_desc, alpha, 40);

SIZE(tuff_binary_desc, 184);
FIELD(tuff_binary_desc, op, 8);
FIELD(tuff_binary_desc, a, 16);
FIELD(tuff_binary_desc, output, 32);
FIELD(tuff_binary_desc, n, 40);
FIELD(tuff_binary_desc, rank, 48);
FIELD(tuff_binary_desc, a_shape, 56);
FIELD(tuff_binary_desc, b_shape, 120);

SIZE(tuff_softmax_desc, 136);
FIELD(tuff_softmax_desc, input, 8);
FIELD(tuff_softmax_desc, shape, 24);
FIELD(tuff_softmax_desc, rank, 88);
FIELD(tuff_softmax_desc, axis, 92);
FIELD(tuff_softmax_desc, scale, 96);
FIELD(tuff_softmax_desc, logarithm, 104);
FIELD(tuff_softmax_desc, mask_type, 108);
FIELD(tuff_softmax_desc, mask, 112);
FIELD(tuff_softmax_desc, mask_rows, 120);
FIELD(tuff_softmax_desc, mask_repeat, 128);

SIZE(tuff_layer_norm_desc, 88);
FIELD(tuff_layer_norm_desc, input, 8);
FIELD(tuff_layer_norm_desc, output, 32);
FIELD(tuff_layer_norm_desc, rows, 40);
FIELD(tuff_layer_norm_desc, epsilon, 56);
FIELD(tuff_layer_norm_desc, weight_type, 64);
FIELD(tuff_layer_norm_desc, residual, 72);
FIELD(tuff_layer_norm_desc, sum, 80);

SIZE(tuff_rms_norm_desc, 80);
FIELD(tuff_rms_norm_desc, output, 24);
FIELD(tuff_rms_norm_desc, epsilon, 48);
FIELD(tuff_rms_norm_desc, weight_type, 56);
FIELD(tuff_rms_norm_desc, sum, 72);

SIZE(tuff_group_norm_desc, 88);
FIELD(tuff_group_norm_desc, output, 32);
FIELD(tuff_group_norm_desc, groups, 64);
FIELD(tuff_group_norm_desc, epsilon, 72);
FIELD(tuff_group_norm_desc, weight_type, 80);

SIZE(tuff_batch_norm_desc, 96);
FIELD(tuff_batch_norm_desc, variance, 24);
FIELD(tuff_batch_norm_desc, output, 48);
FIELD(tuff_batch_norm_desc, epsilon, 80);
FIELD(tuff_batch_norm_desc, weight_type, 88);

SIZE(tuff_permute_desc, 128);
FIELD(tuff_permute_desc, input, 8);
FIELD(tuff_permute_desc, output, 16);
FIELD(tuff_permute_desc, shape, 24);
FIELD(tuff_permute_desc, order, 88);
FIELD(tuff_permute_desc, rank, 120);
FIELD(tuff_permute_desc, reserved, 124);

SIZE(tuff_cast_desc, 40);
FIELD(tuff_cast_desc, input_type, 4);
FIELD(tuff_cast_desc, output_type, 8);
FIELD(tuff_cast_desc, reserved, 12);
FIELD(tuff_cast_desc, input, 16);
FIELD(tuff_cast_desc, n, 32);

SIZE(tuff_slice_desc, 288);
FIELD(tuff_slice_desc, shape, 24);
FIELD(tuff_slice_desc, start, 88);
FIELD(tuff_slice_desc, step, 152);
FIELD(tuff_slice_desc, out_shape, 216);
FIELD(tuff_slice_desc, rank, 280);

SIZE(tuff_concat_desc, 112);
FIELD(tuff_concat_desc, inputs, 8);
FIELD(tuff_concat_desc, sizes, 16);
FIELD(tuff_concat_desc, count, 24);
FIELD(tuff_concat_desc, output, 32);
FIELD(tuff_concat_desc, shape, 40);
FIELD(tuff_concat_desc, axis, 104);

SIZE(tuff_gather_desc, 184);
FIELD(tuff_gather_desc, elementwise, 12);
FIELD(tuff_gather_desc, input, 16);
FIELD(tuff_gather_desc, shape, 40);
FIELD(tuff_gather_desc, rank, 104);
FIELD(tuff_gather_desc, count, 112);
FIELD(tuff_gather_desc, index_shape, 120);

SIZE(tuff_scan_desc, 104);
FIELD(tuff_scan_desc, shape, 24);
FIELD(tuff_scan_desc, rank, 88);
FIELD(tuff_scan_desc, reverse, 100);

SIZE(tuff_pool_desc, 208);
FIELD(tuff_pool_desc, indices, 24);
FIELD(tuff_pool_desc, batch, 32);
FIELD(tuff_pool_desc, in_shape, 48);
FIELD(tuff_pool_desc, kernel, 96);
FIELD(tuff_pool_desc, dilation, 168);
FIELD(tuff_pool_desc, spatial, 192);
FIELD(tuff_pool_desc, adaptive, 204);

SIZE(tuff_resize_desc, 128);
FIELD(tuff_resize_desc, batch, 24);
FIELD(tuff_resize_desc, in_shape, 40);
FIELD(tuff_resize_desc, out_shape, 64);
FIELD(tuff_resize_desc, scale, 88);
FIELD(tuff_resize_desc, spatial, 112);
FIELD(tuff_resize_desc, layout, 124);

SIZE(tuff_rope_desc, 152);
FIELD(tuff_rope_desc, positions, 24);
FIELD(tuff_rope_desc, batch, 32);
FIELD(tuff_rope_desc, rotary_dim, 64);
FIELD(tuff_rope_desc, input_strides, 72);
FIELD(tuff_rope_desc, output_strides, 96);
FIELD(tuff_rope_desc, positions_stride, 120);
FIELD(tuff_rope_desc, offset, 128);
FIELD(tuff_rope_desc, base, 136);
FIELD(tuff_rope_desc, interleaved, 144);
FIELD(tuff_rope_desc, reserved, 148);

SIZE(tuff_kernel_define, 16);
FIELD(tuff_kernel_define, name, 0);
FIELD(tuff_kernel_define, value, 8);

SIZE(tuff_kernel_constant, 16);
FIELD(tuff_kernel_constant, id, 0);
FIELD(tuff_kernel_constant, reserved, 4);
FIELD(tuff_kernel_constant, bits, 8);

SIZE(tuff_kernel_desc, 112);
FIELD(tuff_kernel_desc, language, 4);
FIELD(tuff_kernel_desc, source, 8);
FIELD(tuff_kernel_desc, source_bytes, 16);
FIELD(tuff_kernel_desc, name, 24);
FIELD(tuff_kernel_desc, entry, 32);
FIELD(tuff_kernel_desc, defines, 40);
FIELD(tuff_kernel_desc, constants, 48);
FIELD(tuff_kernel_desc, define_count, 56);
FIELD(tuff_kernel_desc, constant_count, 60);
FIELD(tuff_kernel_desc, flags, 64);
FIELD(tuff_kernel_desc, reserved, 68);
FIELD(tuff_kernel_desc, max_source_bytes, 72);
FIELD(tuff_kernel_desc, compile_milliseconds, 80);
FIELD(tuff_kernel_desc, compile_memory_bytes, 88);

SIZE(tuff_kernel_properties, 648);
FIELD(tuff_kernel_properties, binding_count, 4);
FIELD(tuff_kernel_properties, used, 8);
FIELD(tuff_kernel_properties, read, 12);
FIELD(tuff_kernel_properties, written, 16);
FIELD(tuff_kernel_properties, push_bytes, 20);
FIELD(tuff_kernel_properties, workgroup_size, 24);
FIELD(tuff_kernel_properties, shared_bytes, 36);
FIELD(tuff_kernel_properties, subgroup_size, 40);
FIELD(tuff_kernel_properties, max_groups, 44);
FIELD(tuff_kernel_properties, buffer_alignment, 56);
FIELD(tuff_kernel_properties, robust, 60);
FIELD(tuff_kernel_properties, max_buffer_bytes, 64);
FIELD(tuff_kernel_properties, min_bytes, 72);
FIELD(tuff_kernel_properties, name, 328);
FIELD(tuff_kernel_properties, capabilities, 392);

SIZE(tuff_stream_desc, 16);
FIELD(tuff_stream_desc, flags, 4);
FIELD(tuff_stream_desc, name, 8);

SIZE(tuff_event_desc, 8);
FIELD(tuff_event_desc, flags, 4);

/* The values of version 0.8.0, which other languages have as numbers. */

VALUE(TUFF_OK, 0);
VALUE(TUFF_ERROR_INVALID_ARGUMENT, -1);
VALUE(TUFF_ERROR_INVALID_HANDLE, -2);
VALUE(TUFF_ERROR_NOT_INITIALIZED, -3);
VALUE(TUFF_ERROR_UNSUPPORTED, -4);
VALUE(TUFF_ERROR_OUT_OF_DEVICE_MEMORY, -5);
VALUE(TUFF_ERROR_OUT_OF_HOST_MEMORY, -6);
VALUE(TUFF_ERROR_DEVICE_LOST, -7);
VALUE(TUFF_ERROR_NO_DEVICE, -8);
VALUE(TUFF_ERROR_COMPILE_FAILED, -9);
VALUE(TUFF_ERROR_TIMEOUT, -10);
VALUE(TUFF_ERROR_LIMIT_EXCEEDED, -11);
VALUE(TUFF_ERROR_IO, -12);
VALUE(TUFF_ERROR_INTERNAL, -13);

VALUE(TUFF_F32, 1);
VALUE(TUFF_F16, 2);
VALUE(TUFF_BF16, 3);
VALUE(TUFF_F64, 4);
VALUE(TUFF_I32, 5);
VALUE(TUFF_U32, 6);
VALUE(TUFF_I8, 7);
VALUE(TUFF_U8, 8);

VALUE(TUFF_NO_TRANS, 0);
VALUE(TUFF_TRANS, 1);
VALUE(TUFF_CONJ_TRANS, 2);

VALUE(TUFF_CAUSAL_NONE, 0);
VALUE(TUFF_CAUSAL_TOP_LEFT, 1);
VALUE(TUFF_CAUSAL_BOTTOM_RIGHT, 2);

VALUE(TUFF_UNARY_RELU, 1);
VALUE(TUFF_UNARY_SIGMOID, 2);
VALUE(TUFF_UNARY_TANH, 3);
VALUE(TUFF_UNARY_EXP, 4);
VALUE(TUFF_UNARY_LOG, 5);
VALUE(TUFF_UNARY_SQRT, 6);
VALUE(TUFF_UNARY_ABS, 7);
VALUE(TUFF_UNARY_NEG, 8);
VALUE(TUFF_UNARY_GELU, 9);
VALUE(TUFF_UNARY_GELU_TANH, 10);
VALUE(TUFF_UNARY_SILU, 11);
VALUE(TUFF_UNARY_LEAKY_RELU, 12);
VALUE(TUFF_UNARY_ELU, 13);
VALUE(TUFF_UNARY_HARDSWISH, 14);
VALUE(TUFF_UNARY_SOFTPLUS, 15);
VALUE(TUFF_UNARY_SIN, 16);
VALUE(TUFF_UNARY_COS, 17);
VALUE(TUFF_UNARY_ERF, 18);

VALUE(TUFF_BINARY_ADD, 1);
VALUE(TUFF_BINARY_SUB, 2);
VALUE(TUFF_BINARY_MUL, 3);
VALUE(TUFF_BINARY_DIV, 4);
VALUE(TUFF_BINARY_MAX, 5);
VALUE(TUFF_BINARY_MIN, 6);
VALUE(TUFF_BINARY_POW, 7);

VALUE(TUFF_REDUCE_SUM, 1);
VALUE(TUFF_REDUCE_MAX, 2);
VALUE(TUFF_REDUCE_MIN, 3);
VALUE(TUFF_REDUCE_MEAN, 4);
VALUE(TUFF_REDUCE_PROD, 5);
VALUE(TUFF_REDUCE_ARGMAX, 6);
VALUE(TUFF_REDUCE_ARGMIN, 7);

VALUE(TUFF_ACTIVATION_NONE, 0);
VALUE(TUFF_ACTIVATION_RELU, 1);
VALUE(TUFF_ACTIVATION_GELU, 2);
VALUE(TUFF_ACTIVATION_GELU_TANH, 3);
VALUE(TUFF_ACTIVATION_SILU, 4);
VALUE(TUFF_ACTIVATION_RELU6, 5);

VALUE(TUFF_BIAS_NONE, 0);
VALUE(TUFF_BIAS_ROWS, 1);
VALUE(TUFF_BIAS_COLUMNS, 2);

VALUE(TUFF_LAYOUT_NCHW, 0);
VALUE(TUFF_LAYOUT_NHWC, 1);

VALUE(TUFF_RESIZE_NEAREST, 0);
VALUE(TUFF_RESIZE_NEAREST_EXACT, 1);
VALUE(TUFF_RESIZE_LINEAR, 2);

VALUE(TUFF_PRECISION_DEFAULT, 0);
VALUE(TUFF_PRECISION_ALLOW_F16, 1);
VALUE(TUFF_PRECISION_ALLOW_BF16, 2);
VALUE(TUFF_PRECISION_ALLOW_WINOGRAD, 3);
VALUE(TUFF_PRECISION_ALLOW_TF32, 4);

VALUE(TUFF_DEVICE_OTHER, 0);
VALUE(TUFF_DEVICE_INTEGRATED, 1);
VALUE(TUFF_DEVICE_DISCRETE, 2);
VALUE(TUFF_DEVICE_VIRTUAL, 3);
VALUE(TUFF_DEVICE_CPU, 4);
VALUE(TUFF_DEVICE_HOST, 5);

VALUE(TUFF_LOG_OFF, 0);
VALUE(TUFF_LOG_ERROR, 1);
VALUE(TUFF_LOG_WARNING, 2);
VALUE(TUFF_LOG_INFO, 3);
VALUE(TUFF_LOG_DEBUG, 4);
VALUE(TUFF_LOG_DISPATCH, 5);

VALUE(TUFF_QUEUE_GRAPHICS, 1);
VALUE(TUFF_QUEUE_COMPUTE, 2);
VALUE(TUFF_QUEUE_TRANSFER, 4);
VALUE(TUFF_QUEUE_SPARSE_BINDING, 8);

VALUE(TUFF_SUBGROUP_BASIC, 1);
VALUE(TUFF_SUBGROUP_VOTE, 2);
VALUE(TUFF_SUBGROUP_ARITHMETIC, 4);
VALUE(TUFF_SUBGROUP_BALLOT, 8);
VALUE(TUFF_SUBGROUP_SHUFFLE, 16);
VALUE(TUFF_SUBGROUP_SHUFFLE_RELATIVE, 32);
VALUE(TUFF_SUBGROUP_CLUSTERED, 64);
VALUE(TUFF_SUBGROUP_QUAD, 128);

VALUE(TUFF_ALLOC_HOST_VISIBLE, 1);
VALUE(TUFF_ALLOC_UNINITIALIZED, 2);
VALUE(TUFF_ALLOC_HOST_PINNED, 4);
VALUE(TUFF_ALLOC_EXPORTABLE, 8);

VALUE(TUFF_EVENT_NO_TIMING, 1);

VALUE(TUFF_KERNEL_GLSL, 0);
VALUE(TUFF_KERNEL_SPIRV, 1);

VALUE(TUFF_KERNEL_ROBUST, 1);
VALUE(TUFF_KERNEL_UNTRUSTED, 2);

VALUE(TUFF_ABI_VERSION, 1);
VALUE(TUFF_NULL_HANDLE, 0);
VALUE(TUFF_KERNEL_MAX_BINDINGS, 32);
VALUE(TUFF_MAX_QUEUE_FAMILIES, 8);
VALUE(TUFF_MAX_MATRIX_SHAPES, 32);

FIELD(tuff_context_desc, struct_size, 0);
FIELD(tuff_stats, struct_size, 0);
FIELD(tuff_limits, struct_size, 0);
FIELD(tuff_alloc_desc, struct_size, 0);
FIELD(tuff_memory_stats, struct_size, 0);
FIELD(tuff_memory_stats, bytes_reserved, 16);
FIELD(tuff_memory_stats, bytes_peak, 24);
FIELD(tuff_memory_stats, bytes_free, 32);
FIELD(tuff_memory_pressure, struct_size, 0);
FIELD(tuff_memory_fd, struct_size, 0);
FIELD(tuff_gemm_desc, struct_size, 0);
FIELD(tuff_gemm_desc, n, 24);
FIELD(tuff_gemm_desc, b, 64);
FIELD(tuff_gemm_desc, ldb, 88);
FIELD(tuff_batched_gemm_desc, struct_size, 0);
FIELD(tuff_batched_gemm_desc, dtype, 4);
FIELD(tuff_batched_gemm_desc, ta, 8);
FIELD(tuff_batched_gemm_desc, tb, 12);
FIELD(tuff_batched_gemm_desc, n, 24);
FIELD(tuff_batched_gemm_desc, k, 32);
FIELD(tuff_batched_gemm_desc, beta, 48);
FIELD(tuff_batched_gemm_desc, b, 64);
FIELD(tuff_batched_gemm_desc, c, 72);
FIELD(tuff_batched_gemm_desc, ldb, 88);
FIELD(tuff_batched_gemm_desc, ldc, 96);
FIELD(tuff_batched_gemm_desc, stride_b, 112);
FIELD(tuff_conv2d_desc, struct_size, 0);
FIELD(tuff_conv2d_desc, filter, 16);
FIELD(tuff_conv1d_desc, struct_size, 0);
FIELD(tuff_conv1d_desc, input, 8);
FIELD(tuff_conv1d_desc, filter, 16);
FIELD(tuff_conv1d_desc, output, 24);
FIELD(tuff_conv1d_desc, layout, 148);
FIELD(tuff_conv1d_desc, activation, 152);
FIELD(tuff_conv1d_desc, bias, 160);
FIELD(tuff_conv3d_desc, struct_size, 0);
FIELD(tuff_conv3d_desc, dtype, 4);
FIELD(tuff_conv3d_desc, input, 8);
FIELD(tuff_conv3d_desc, filter, 16);
FIELD(tuff_conv3d_desc, output, 24);
FIELD(tuff_conv3d_desc, layout, 260);
FIELD(tuff_conv3d_desc, activation, 264);
FIELD(tuff_conv3d_desc, residual, 280);
FIELD(tuff_conv_transpose2d_desc, struct_size, 0);
FIELD(tuff_conv_transpose2d_desc, dtype, 4);
FIELD(tuff_conv_transpose2d_desc, input, 8);
FIELD(tuff_conv_transpose2d_desc, filter, 16);
FIELD(tuff_conv_transpose2d_desc, output, 24);
FIELD(tuff_attention_desc, struct_size, 0);
FIELD(tuff_attention_desc, dtype, 4);
FIELD(tuff_attention_desc, k, 16);
FIELD(tuff_attention_desc, v, 24);
FIELD(tuff_attention_desc, heads, 48);
FIELD(tuff_attention_desc, seq_q, 56);
FIELD(tuff_attention_desc, seq_kv, 64);
FIELD(tuff_attention_desc, head_dim_v, 104);
FIELD(tuff_attention_desc, k_strides, 136);
FIELD(tuff_attention_desc, v_strides, 160);
FIELD(tuff_attention_desc, bias_strides, 224);
FIELD(tuff_attention_desc, mask_strides, 256);
FIELD(tuff_attention_desc, reserved2, 284);
FIELD(tuff_attention_desc, window_right, 296);
FIELD(tuff_attention_desc, kv_lengths, 312);
FIELD(tuff_reduce_desc, struct_size, 0);
FIELD(tuff_reduce_desc, dtype, 4);
FIELD(tuff_reduce_desc, output, 24);
FIELD(tuff_scan_desc, struct_size, 0);
FIELD(tuff_scan_desc, dtype, 4);
FIELD(tuff_scan_desc, input, 8);
FIELD(tuff_scan_desc, output, 16);
FIELD(tuff_scan_desc, axis, 92);
FIELD(tuff_scan_desc, exclusive, 96);
FIELD(tuff_unary_desc, struct_size, 0);
FIELD(tuff_unary_desc, dtype, 4);
FIELD(tuff_unary_desc, output, 24);
FIELD(tuff_binary_desc, struct_size, 0);
FIELD(tuff_binary_desc, dtype, 4);
FIELD(tuff_binary_desc, reserved, 12);
FIELD(tuff_binary_desc, b, 24);
FIELD(tuff_binary_desc, reserved2, 52);
FIELD(tuff_softmax_desc, struct_size, 0);
FIELD(tuff_softmax_desc, dtype, 4);
FIELD(tuff_softmax_desc, output, 16);
FIELD(tuff_layer_norm_desc, struct_size, 0);
FIELD(tuff_layer_norm_desc, dtype, 4);
FIELD(tuff_layer_norm_desc, weight, 16);
FIELD(tuff_layer_norm_desc, bias, 24);
FIELD(tuff_layer_norm_desc, cols, 48);
FIELD(tuff_layer_norm_desc, reserved, 68);
FIELD(tuff_rms_norm_desc, struct_size, 0);
FIELD(tuff_rms_norm_desc, dtype, 4);
FIELD(tuff_rms_norm_desc, input, 8);
FIELD(tuff_rms_norm_desc, weight, 16);
FIELD(tuff_rms_norm_desc, rows, 32);
FIELD(tuff_rms_norm_desc, cols, 40);
FIELD(tuff_rms_norm_desc, reserved, 60);
FIELD(tuff_rms_norm_desc, residual, 64);
FIELD(tuff_group_norm_desc, struct_size, 0);
FIELD(tuff_group_norm_desc, dtype, 4);
FIELD(tuff_group_norm_desc, input, 8);
FIELD(tuff_group_norm_desc, weight, 16);
FIELD(tuff_group_norm_desc, bias, 24);
FIELD(tuff_group_norm_desc, batch, 40);
FIELD(tuff_group_norm_desc, channels, 48);
FIELD(tuff_group_norm_desc, inner, 56);
FIELD(tuff_group_norm_desc, reserved, 84);
FIELD(tuff_batch_norm_desc, struct_size, 0);
FIELD(tuff_batch_norm_desc, dtype, 4);
FIELD(tuff_batch_norm_desc, input, 8);
FIELD(tuff_batch_norm_desc, mean, 16);
FIELD(tuff_batch_norm_desc, weight, 32);
FIELD(tuff_batch_norm_desc, bias, 40);
FIELD(tuff_batch_norm_desc, batch, 56);
FIELD(tuff_batch_norm_desc, channels, 64);
FIELD(tuff_batch_norm_desc, inner, 72);
FIELD(tuff_batch_norm_desc, reserved, 92);
FIELD(tuff_permute_desc, struct_size, 0);
FIELD(tuff_permute_desc, dtype, 4);
FIELD(tuff_cast_desc, struct_size, 0);
FIELD(tuff_cast_desc, output, 24);
FIELD(tuff_slice_desc, struct_size, 0);
FIELD(tuff_slice_desc, dtype, 4);
FIELD(tuff_slice_desc, input, 8);
FIELD(tuff_slice_desc, output, 16);
FIELD(tuff_slice_desc, reserved, 284);
FIELD(tuff_concat_desc, struct_size, 0);
FIELD(tuff_concat_desc, dtype, 4);
FIELD(tuff_concat_desc, rank, 28);
FIELD(tuff_concat_desc, reserved, 108);
FIELD(tuff_gather_desc, struct_size, 0);
FIELD(tuff_gather_desc, dtype, 4);
FIELD(tuff_gather_desc, index_type, 8);
FIELD(tuff_gather_desc, indices, 24);
FIELD(tuff_gather_desc, output, 32);
FIELD(tuff_gather_desc, axis, 108);
FIELD(tuff_pool_desc, struct_size, 0);
FIELD(tuff_pool_desc, dtype, 4);
FIELD(tuff_pool_desc, input, 8);
FIELD(tuff_pool_desc, output, 16);
FIELD(tuff_pool_desc, channels, 40);
FIELD(tuff_pool_desc, out_shape, 72);
FIELD(tuff_pool_desc, stride, 120);
FIELD(tuff_pool_desc, padding, 144);
FIELD(tuff_pool_desc, ceil_mode, 196);
FIELD(tuff_pool_desc, count_include_pad, 200);
FIELD(tuff_resize_desc, struct_size, 0);
FIELD(tuff_resize_desc, dtype, 4);
FIELD(tuff_resize_desc, input, 8);
FIELD(tuff_resize_desc, output, 16);
FIELD(tuff_resize_desc, channels, 32);
FIELD(tuff_resize_desc, mode, 116);
FIELD(tuff_resize_desc, align_corners, 120);
FIELD(tuff_rope_desc, struct_size, 0);
FIELD(tuff_rope_desc, dtype, 4);
FIELD(tuff_rope_desc, input, 8);
FIELD(tuff_rope_desc, output, 16);
FIELD(tuff_rope_desc, heads, 40);
FIELD(tuff_rope_desc, seq, 48);
FIELD(tuff_rope_desc, head_dim, 56);
FIELD(tuff_stream_desc, struct_size, 0);
FIELD(tuff_event_desc, struct_size, 0);
FIELD(tuff_kernel_desc, struct_size, 0);
FIELD(tuff_kernel_properties, struct_size, 0);
VALUE(TUFF_DTYPE_INVALID, -1);
VALUE(TUFF_TRANSPOSE_INVALID, -1);
VALUE(TUFF_CAUSAL_INVALID, -1);
VALUE(TUFF_UNARY_INVALID, -1);
VALUE(TUFF_BINARY_INVALID, -1);
VALUE(TUFF_REDUCE_INVALID, -1);
VALUE(TUFF_ACTIVATION_INVALID, -1);
VALUE(TUFF_BIAS_INVALID, -1);
VALUE(TUFF_LAYOUT_INVALID, -1);
VALUE(TUFF_RESIZE_INVALID, -1);
VALUE(TUFF_PRECISION_INVALID, -1);
VALUE(TUFF_DEVICE_INVALID, -1);
VALUE(TUFF_LOG_INVALID, -1);
VALUE(TUFF_KERNEL_LANGUAGE_INVALID, -1);
VALUE(TUFF_VERSION, 2304);

FIELD(tuff_kernel_desc, workgroup_size, 96);
FIELD(tuff_kernel_desc, shared_bytes, 108);
VALUE(TUFF_KERNEL_PTX, 2);

SIZE(tuff_random_desc, 120);
FIELD(tuff_random_desc, struct_size, 0);
FIELD(tuff_random_desc, dtype, 4);
FIELD(tuff_random_desc, distribution, 8);
FIELD(tuff_random_desc, reserved, 12);
FIELD(tuff_random_desc, output, 16);
FIELD(tuff_random_desc, n, 24);
FIELD(tuff_random_desc, seed, 32);
FIELD(tuff_random_desc, sequence, 40);
FIELD(tuff_random_desc, offset, 48);
FIELD(tuff_random_desc, low, 56);
FIELD(tuff_random_desc, high, 64);
FIELD(tuff_random_desc, mean, 72);
FIELD(tuff_random_desc, deviation, 80);
FIELD(tuff_random_desc, scale, 88);
FIELD(tuff_random_desc, probability, 96);
FIELD(tuff_random_desc, least, 104);
FIELD(tuff_random_desc, most, 112);
VALUE(TUFF_RANDOM_INVALID, -1);
VALUE(TUFF_RANDOM_BITS, 1);
VALUE(TUFF_RANDOM_INTEGERS, 2);
VALUE(TUFF_RANDOM_BERNOULLI, 3);
VALUE(TUFF_RANDOM_UNIFORM, 4);
VALUE(TUFF_RANDOM_NORMAL, 5);
VALUE(TUFF_RANDOM_EXPONENTIAL, 6);


VALUE(TUFF_I64, 9);
VALUE(TUFF_U64, 10);
VALUE(TUFF_I16, 11);
VALUE(TUFF_U16, 12);
VALUE(TUFF_BOOL, 13);
VALUE(TUFF_F8_E4M3, 14);
VALUE(TUFF_F8_E5M2, 15);


SIZE(tuff_expr_variable, 16);
FIELD(tuff_expr_variable, name, 0);
FIELD(tuff_expr_variable, dtype, 8);
FIELD(tuff_expr_variable, flags, 12);
SIZE(tuff_expr_desc, 40);
FIELD(tuff_expr_desc, struct_size, 0);
FIELD(tuff_expr_desc, input_count, 4);
FIELD(tuff_expr_desc, formula, 8);
FIELD(tuff_expr_desc, inputs, 16);
FIELD(tuff_expr_desc, outputs, 24);
FIELD(tuff_expr_desc, output_count, 32);
FIELD(tuff_expr_desc, reserved, 36);
SIZE(tuff_expr_operand, 104);
FIELD(tuff_expr_operand, buffer, 0);
FIELD(tuff_expr_operand, first, 8);
FIELD(tuff_expr_operand, strides, 16);
FIELD(tuff_expr_operand, strided, 80);
FIELD(tuff_expr_operand, reserved, 84);
FIELD(tuff_expr_operand, value, 88);
FIELD(tuff_expr_operand, integer, 96);
SIZE(tuff_expr_run_desc, 96);
FIELD(tuff_expr_run_desc, struct_size, 0);
FIELD(tuff_expr_run_desc, rank, 4);
FIELD(tuff_expr_run_desc, inputs, 8);
FIELD(tuff_expr_run_desc, outputs, 16);
FIELD(tuff_expr_run_desc, shape, 24);
FIELD(tuff_expr_run_desc, input_count, 88);
FIELD(tuff_expr_run_desc, output_count, 92);
VALUE(TUFF_EXPR_SCALAR, 1);
VALUE(TUFF_EXPR_MAX_INPUTS, 16);
VALUE(TUFF_EXPR_MAX_OUTPUTS, 8);
VALUE(TUFF_EXPR_MAX_BUFFERS, 10);
