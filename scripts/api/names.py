"""The meaning of names in tuff.h where the C types do not say it. A row that nothing in the header uses is an
error."""

# The values of an int32_t (or a flags field), by its name in the header. "boolean": 0 or 1; "number": any. A name
# qualified by its owner takes precedence. Parameters declared with a group's type need no row.
VALUES = {
    **dict.fromkeys(
        "dtype a_type b_type c_type k_type v_type accumulate mask_type bias_type weight_type input_type output_type index_type scale_type quotient_type".split(),
        "tuff_dtype",
    ),
    **dict.fromkeys("ta tb transpose".split(), "tuff_transpose"),
    "triangle": "tuff_triangle",
    **dict.fromkeys("tuff_quantize_desc.format tuff_dequantize_desc.format tuff_qgemm_desc.format".split(), "tuff_quant_format"),
    "granularity": "tuff_quant_granularity",
    "a_granularity": "tuff_quant_granularity",
    "side": "tuff_side",
    "block_order": "tuff_block_order",
    "from_block_order": "tuff_block_order",
    "from_format": "tuff_sparse_format",
    "k_format": "tuff_quant_format",
    "v_format": "tuff_quant_format",
    "place_format": "tuff_sparse_format",
    "to_block_order": "tuff_block_order",
    "to_format": "tuff_sparse_format",
    "causal": "tuff_causal",
    "tuff_unary.op": "tuff_unary_op",
    "tuff_unary_desc.op": "tuff_unary_op",
    "tuff_binary.op": "tuff_binary_op",
    "tuff_binary_desc.op": "tuff_binary_op",
    "tuff_reduce.op": "tuff_reduce_op",
    "tuff_reduce_desc.op": "tuff_reduce_op",
    "activation": "tuff_activation",
    "bias_axis": "tuff_bias_axis",
    "layout": "tuff_layout",
    "tuff_resize_desc.mode": "tuff_resize_mode",
    "tuff_pad_desc.mode": "tuff_pad_mode",
    "tuff_scatter_desc.op": "tuff_scatter_op",
    "tuff_select_desc.op": "tuff_select_op",
    "tuff_random_desc.distribution": "tuff_random_distribution",
    "tuff_variates_desc.distribution": "tuff_variates_distribution",
    "tuff_fft_desc.kind": "tuff_fft_kind",
    "tuff_fft_desc.norm": "tuff_fft_norm",
    "tuff_fft_desc.inverse": "boolean",
    "tuff_dct_desc.kind": "tuff_dct_kind",
    "tuff_dct_desc.norm": "tuff_fft_norm",
    "tuff_dct_desc.orthogonal": "boolean",
    "tuff_rnn_desc.cell": "tuff_rnn_cell",
    "tuff_rnn_desc.direction": "tuff_rnn_direction",
    "tuff_rnn_desc.gate_order": "tuff_rnn_gates",
    "tuff_rnn_desc.linear_before_reset": "boolean",
    "tuff_rnn_backward_desc.cell": "tuff_rnn_cell",
    "tuff_rnn_backward_desc.direction": "tuff_rnn_direction",
    "tuff_rnn_backward_desc.gate_order": "tuff_rnn_gates",
    "tuff_rnn_backward_desc.linear_before_reset": "boolean",
    "algorithm": "tuff_optimizer",
    "gradient_type": "tuff_dtype",
    "nesterov": "boolean",
    "ignores": "boolean",
    "tuff_norm_backward_desc.kind": "tuff_norm_kind",
    "statistics_type": "tuff_dtype",
    "frozen": "boolean",
    "label_type": "tuff_dtype",
    "tuff_gradient_norm_desc.accumulate": "boolean",
    "precision": "tuff_precision",
    "tuff_device_properties.type": "tuff_device_type",
    "tuff_op_argument.kind": "tuff_op_kind",
    "tuff_op_argument.access": "tuff_op_access",
    "published": "boolean",
    "level": "tuff_log_level",
    "language": "tuff_kernel_language",
    "tuff_queue_family.flags": "tuff_queue_flags",
    "subgroup_operations": "tuff_subgroup_flags",
    "tuff_alloc_desc.flags": "tuff_alloc_flags",
    "tuff_event_desc.flags": "tuff_event_flags",
    "tuff_expr_variable.flags": "tuff_expr_flags",
    "tuff_kernel_desc.flags": "tuff_kernel_flags",
    "tuff_stream_desc.flags": "number",  # no flag so far
    **dict.fromkeys(
        "validation prewarm asymmetric maximum logarithm elementwise exclusive reverse descending ceil_mode count_include_pad adaptive align_corners negative "
        "interleaved strided unit_diagonal levels_ready robust dedicated unified_memory supports_f16 supports_bf16 supports_f64 supports_int8 "
        "supports_matrix_cores supports_addresses yes done equal_nan".split(),
        "boolean",
    ),
    **dict.fromkeys("reserved reserved2 fd binding".split(), "number"),
}

# The number of elements behind a pointer, by the pointer's name; the right side names the parameter or field that has
# it. These rows are tried after <name>_bytes and <name without s>_count.
LENGTHS = {
    **dict.fromkeys("shape start step order".split(), "rank"),
    "tuff_slice.out_shape": "rank",
    **dict.fromkeys("parameters gradients masters first_moments second_moments".split(), "count"),
    **dict.fromkeys("inputs sizes buffers tuff_op_run.arguments tuff_op_host.arguments".split(), "count"),
    "tuff_op_operand.data": "bytes",
    **dict.fromkeys("a_array b_array c_array".split(), "batch_count"),
    **dict.fromkeys("src dst memory".split(), "bytes"),
}

# Pointers for which the rule "const is read, anything else is written" is wrong.
DIRECTIONS = {
    "tuff_buffer_import_host.memory": "inout",  # the buffer is this memory
}

# Pointers that stay in use after the call returns.
KEPT = {
    "tuff_buffer_import_host.memory",
    "tuff_copy_htod_async.src",
    "tuff_copy_dtoh_async.dst",
    "tuff_set_log.callback",
    "tuff_set_log.user",
    "tuff_context_set_memory_callback.callback",
    "tuff_context_set_memory_callback.user",
    "tuff_op_register.host",
    "tuff_op_register.user",
}
