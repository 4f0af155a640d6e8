"""The C ABI as it is: every function, structure and constant of tuff.h.

Functions take and return what they do in C: they give a status and raise nothing; ``tuff.check`` turns a
status into an exception. Handles are plain integers. ``tuff.h`` is the documentation.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int32, c_int64, c_uint8, c_uint32, c_uint64, c_void_p

from . import _library

NULL_HANDLE = 0

# Status codes.
OK = 0
ERROR_INVALID_ARGUMENT = -1
ERROR_INVALID_HANDLE = -2
ERROR_NOT_INITIALIZED = -3
ERROR_UNSUPPORTED = -4
ERROR_OUT_OF_DEVICE_MEMORY = -5
ERROR_OUT_OF_HOST_MEMORY = -6
ERROR_DEVICE_LOST = -7
ERROR_NO_DEVICE = -8
ERROR_COMPILE_FAILED = -9
ERROR_TIMEOUT = -10
ERROR_LIMIT_EXCEEDED = -11
ERROR_IO = -12
ERROR_INTERNAL = -13

# Element types.
F32, F16, BF16, F64, I32, U32, I8, U8 = 1, 2, 3, 4, 5, 6, 7, 8

NO_TRANS, TRANS, CONJ_TRANS = 0, 1, 2

CAUSAL_NONE, CAUSAL_TOP_LEFT, CAUSAL_BOTTOM_RIGHT = 0, 1, 2

UNARY_RELU = 1
UNARY_SIGMOID = 2
UNARY_TANH = 3
UNARY_EXP = 4
UNARY_LOG = 5
UNARY_SQRT = 6
UNARY_ABS = 7
UNARY_NEG = 8
UNARY_GELU = 9
UNARY_GELU_TANH = 10
UNARY_SILU = 11
UNARY_LEAKY_RELU = 12
UNARY_ELU = 13
UNARY_HARDSWISH = 14
UNARY_SOFTPLUS = 15
UNARY_SIN = 16
UNARY_COS = 17

BINARY_ADD = 1
BINARY_SUB = 2
BINARY_MUL = 3
BINARY_DIV = 4
BINARY_MAX = 5
BINARY_MIN = 6
BINARY_POW = 7

REDUCE_SUM = 1
REDUCE_MAX = 2
REDUCE_MIN = 3
REDUCE_MEAN = 4
REDUCE_PROD = 5
REDUCE_ARGMAX = 6
REDUCE_ARGMIN = 7

ACTIVATION_NONE = 0
ACTIVATION_RELU = 1
ACTIVATION_GELU = 2
ACTIVATION_GELU_TANH = 3
ACTIVATION_SILU = 4
ACTIVATION_RELU6 = 5

LAYOUT_NCHW, LAYOUT_NHWC = 0, 1

RESIZE_NEAREST, RESIZE_NEAREST_EXACT, RESIZE_LINEAR = 0, 1, 2

BIAS_NONE, BIAS_ROWS, BIAS_COLUMNS = 0, 1, 2

PRECISION_DEFAULT = 0
PRECISION_ALLOW_F16 = 1
PRECISION_ALLOW_BF16 = 2
PRECISION_ALLOW_WINOGRAD = 3

DEVICE_OTHER = 0
DEVICE_INTEGRATED = 1
DEVICE_DISCRETE = 2
DEVICE_VIRTUAL = 3
DEVICE_CPU = 4
DEVICE_HOST = 5

LOG_OFF = 0
LOG_ERROR = 1
LOG_WARNING = 2
LOG_INFO = 3
LOG_DEBUG = 4
LOG_DISPATCH = 5

EVENT_NO_TIMING = 1

QUEUE_GRAPHICS = 1
QUEUE_COMPUTE = 2
QUEUE_TRANSFER = 4
QUEUE_SPARSE_BINDING = 8

SUBGROUP_BASIC = 1
SUBGROUP_VOTE = 2
SUBGROUP_ARITHMETIC = 4
SUBGROUP_BALLOT = 8
SUBGROUP_SHUFFLE = 16
SUBGROUP_SHUFFLE_RELATIVE = 32
SUBGROUP_CLUSTERED = 64
SUBGROUP_QUAD = 128

MAX_QUEUE_FAMILIES = 8
MAX_MATRIX_SHAPES = 32

ALLOC_HOST_VISIBLE = 1
ALLOC_UNINITIALIZED = 2
ALLOC_HOST_PINNED = 4
ALLOC_EXPORTABLE = 8

KERNEL_MAX_BINDINGS = 32
KERNEL_GLSL, KERNEL_SPIRV = 0, 1
KERNEL_ROBUST, KERNEL_UNTRUSTED = 1, 2


class _Struct(ctypes.Structure):
    """A structure that begins with struct_size, already set; other fields by keyword."""

    def __init__(self, **fields: object) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class QueueFamily(ctypes.Structure):
    """tuff_queue_family"""

    _fields_ = [(name, c_uint32) for name in ("flags", "count", "timestamp_bits", "reserved")]


class MatrixShape(ctypes.Structure):
    """tuff_matrix_shape"""

    _fields_ = [(name, c_uint32) for name in "mnk"] + [(name, c_int32) for name in ("a_type", "b_type", "c_type")]


class DeviceProperties(_Struct):
    """tuff_device_properties"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("type", c_int32),
        ("name", c_char * 256),
        ("vendor", c_char * 64),
        ("driver", c_char * 256),
        ("backend", c_char * 16),
        ("uuid", c_uint8 * 16),
        ("vendor_id", c_uint32),
        ("device_id", c_uint32),
        ("api_version", c_uint32),
        ("driver_version", c_uint32),
        ("memory_bytes", c_uint64),
        ("memory_free_bytes", c_uint64),
        ("max_allocation_bytes", c_uint64),
        ("max_storage_range_bytes", c_uint64),
        ("max_workgroup_invocations", c_uint32),
        ("max_workgroup_count", c_uint32 * 3),
        ("max_shared_memory_bytes", c_uint32),
        ("max_push_constant_bytes", c_uint32),
        ("subgroup_size", c_uint32),
        ("supports_f16", c_int32),
        ("supports_bf16", c_int32),
        ("supports_f64", c_int32),
        ("supports_int8", c_int32),
        ("supports_matrix_cores", c_int32),
        ("supports_addresses", c_int32),
        ("unified_memory", c_int32),
        ("binding", c_int32),
        ("bandwidth_bytes_per_second", c_double),
        ("f32_flops_per_second", c_double),
        ("max_workgroup_size", c_uint32 * 3),
        ("subgroup_size_min", c_uint32),
        ("subgroup_size_max", c_uint32),
        ("subgroup_operations", c_uint32),
        ("compute_units", c_uint32),
        ("min_storage_alignment", c_uint32),
        ("host_import_alignment", c_uint64),
        ("timestamp_nanoseconds", c_double),
        ("driver_uuid", c_uint8 * 16),
        ("queue_family_count", c_uint32),
        ("matrix_shape_count", c_uint32),
        ("queue_families", QueueFamily * MAX_QUEUE_FAMILIES),
        ("matrix_shapes", MatrixShape * MAX_MATRIX_SHAPES),
    ]


class ContextDesc(_Struct):
    """tuff_context_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("validation", c_int32),
        ("device", c_char_p),
        ("backend", c_char_p),
        ("memory_limit_bytes", c_uint64),
        ("prewarm", c_int32),
        ("reserved", c_int32),
    ]


class Stats(_Struct):
    """tuff_stats"""

    _fields_ = [("struct_size", c_uint32), ("live_buffers", c_uint32)] + [
        (name, c_uint64)
        for name in (
            "bytes_in_use",
            "bytes_reserved",
            "bytes_peak",
            "allocations",
            "dispatches",
            "submissions",
            "barriers",
            "bytes_uploaded",
            "bytes_downloaded",
            "shaders_compiled",
            "shader_cache_hits",
            "pipelines_created",
            "vulkan_objects_created",
            "validation_messages",
            "kernel_cache_hits",
            "bytes_staged",
            "kernels_prewarmed",
            "kernels_to_prewarm",
            "pipelines_live",
            "pipelines_evicted",
        )
    ]


class MemoryStats(_Struct):
    """tuff_memory_stats"""

    _fields_ = (
        [("struct_size", c_uint32), ("blocks", c_uint32)]
        + [(f"bytes_{name}", c_uint64) for name in ("in_use", "reserved", "peak", "free", "largest_free")]
        + [(name, c_uint64) for name in ("live_allocations", "allocations", "hits", "misses")]
        + [("fragmentation", c_double)]
        + [(name, c_uint64) for name in ("bytes_limit", "heap_bytes", "heap_budget_bytes", "heap_used_bytes", "bytes_imported")]
    )


class MemoryPressure(_Struct):
    """tuff_memory_pressure"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("status", c_int32),
        ("bytes_requested", c_uint64),
        ("bytes_needed", c_uint64),
    ]


class MemoryFd(_Struct):
    """tuff_memory_fd"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("fd", c_int32),
        ("memory_bytes", c_uint64),
        ("offset", c_uint64),
        ("bytes", c_uint64),
        ("memory_type", c_uint32),
        ("dedicated", c_int32),
        ("device_uuid", c_uint8 * 16),
        ("driver_uuid", c_uint8 * 16),
    ]


class Limits(_Struct):
    """tuff_limits"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("reserved", c_uint32),
        ("memory_bytes", c_uint64),
        ("wait_milliseconds", c_uint64),
        ("pipelines", c_uint64),
    ]


class AllocDesc(_Struct):
    """tuff_alloc_desc"""

    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("bytes", c_uint64), ("name", c_char_p)]


_GEMM_FIELDS = (
    [("struct_size", c_uint32), ("dtype", c_int32), ("ta", c_int32), ("tb", c_int32)]
    + [(name, c_uint64) for name in ("m", "n", "k")]
    + [("alpha", c_double), ("beta", c_double)]
    + [(name, c_uint64) for name in ("a", "b", "c", "lda", "ldb", "ldc")]
)
#: Since 0.2.0, behind what each descriptor had before.
_GEMM_TYPES = [
    (name, c_int32)
    for name in ("a_type", "b_type", "c_type", "accumulate", "precision", "activation", "bias_axis", "reserved")
]
_GEMM_EPILOGUE = [(name, c_uint64) for name in ("bias", "residual", "ld_residual")]


class GemmDesc(_Struct):
    """tuff_gemm_desc"""

    _fields_ = _GEMM_FIELDS + _GEMM_TYPES + _GEMM_EPILOGUE


class BatchedGemmDesc(_Struct):
    """tuff_batched_gemm_desc"""

    _fields_ = (
        _GEMM_FIELDS
        + [(name, c_uint64) for name in ("stride_a", "stride_b", "stride_c", "batch_count")]
        + _GEMM_TYPES
        + _GEMM_EPILOGUE
        + [("stride_bias", c_uint64), ("stride_residual", c_uint64)]
        + [(name, POINTER(c_uint64)) for name in ("a_array", "b_array", "c_array")]
    )


def _conv_fields(rank, last="reserved"):
    """tuff_conv1d_desc, tuff_conv2d_desc, tuff_conv3d_desc"""
    return (
        [("struct_size", c_uint32), ("dtype", c_int32)]
        + [(name, c_uint64) for name in ("input", "filter", "output")]
        + [(name, c_uint64 * (rank + 2)) for name in ("in_shape", "filter_shape", "out_shape")]
        + [(name, c_uint64 * rank) for name in ("stride", "padding", "dilation", "padding_end")]
        + [("groups", c_uint64)]
        + [(name, c_int32) for name in ("asymmetric", "layout", "activation", last)]
        + [("bias", c_uint64), ("residual", c_uint64)]
    )


class Conv1dDesc(_Struct):
    """tuff_conv1d_desc"""

    _fields_ = _conv_fields(1)


class Conv2dDesc(_Struct):
    """tuff_conv2d_desc"""

    _fields_ = _conv_fields(2, "precision")


class Conv3dDesc(_Struct):
    """tuff_conv3d_desc"""

    _fields_ = _conv_fields(3)


class ConvTranspose2dDesc(_Struct):
    """tuff_conv_transpose2d_desc"""

    _fields_ = (
        [("struct_size", c_uint32), ("dtype", c_int32)]
        + [(name, c_uint64) for name in ("input", "filter", "output")]
        + [(name, c_uint64 * 4) for name in ("in_shape", "filter_shape", "out_shape")]
        + [(name, c_uint64 * 2) for name in ("stride", "padding", "output_padding", "dilation")]
        + [("groups", c_uint64), ("layout", c_int32), ("activation", c_int32)]
        + [("reserved", c_int64), ("bias", c_uint64)]
    )


class AttentionDesc(_Struct):
    """tuff_attention_desc"""

    _fields_ = (
        [("struct_size", c_uint32), ("dtype", c_int32)]
        + [(name, c_uint64) for name in ("q", "k", "v", "o", "batch", "heads", "seq_q", "seq_kv", "head_dim")]
        + [("scale", c_double), ("causal", c_int32), ("reserved", c_int32)]
        + [("kv_heads", c_uint64), ("head_dim_v", c_uint64)]
        + [(f"{name}_strides", c_uint64 * 3) for name in "qkvo"]
        + [("softcap", c_double), ("bias", c_uint64), ("bias_strides", c_uint64 * 3)]
        + [("mask", c_uint64), ("mask_strides", c_uint64 * 3), ("bias_type", c_int32), ("reserved2", c_int32)]
        + [(name, c_uint64) for name in ("window_left", "window_right", "q_lengths", "kv_lengths", "lse")]
    )


class ReduceDesc(_Struct):
    """tuff_reduce_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("rank", c_uint32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("axis", c_uint32),
        ("reserved", c_uint32),
    ]


class UnaryDesc(_Struct):
    """tuff_unary_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("reserved", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("n", c_uint64),
        ("alpha", c_double),
    ]


class BinaryDesc(_Struct):
    """tuff_binary_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("op", c_int32),
        ("reserved", c_int32),
        ("a", c_uint64),
        ("b", c_uint64),
        ("output", c_uint64),
        ("n", c_uint64),
        ("rank", c_uint32),
        ("reserved2", c_uint32),
        ("a_shape", c_uint64 * 8),
        ("b_shape", c_uint64 * 8),
    ]


class SoftmaxDesc(_Struct):
    """tuff_softmax_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("scale", c_double),
        ("logarithm", c_int32),
        ("mask_type", c_int32),
        ("mask", c_uint64),
        ("mask_rows", c_uint64),
        ("mask_repeat", c_uint64),
    ]


def _norm_fields(*sizes: str, behind: str = "") -> list:
    """struct_size, dtype, 64-bit operands and sizes, epsilon, weight_type, reserved, and operands behind."""
    return (
        [("struct_size", c_uint32), ("dtype", c_int32)]
        + [(name, c_uint64) for name in sizes]
        + [("epsilon", c_double), ("weight_type", c_int32), ("reserved", c_int32)]
        + [(name, c_uint64) for name in behind.split()]
    )


class LayerNormDesc(_Struct):
    """tuff_layer_norm_desc"""

    _fields_ = _norm_fields("input", "weight", "bias", "output", "rows", "cols", behind="residual sum")


class RmsNormDesc(_Struct):
    """tuff_rms_norm_desc"""

    _fields_ = _norm_fields("input", "weight", "output", "rows", "cols", behind="residual sum")


class GroupNormDesc(_Struct):
    """tuff_group_norm_desc"""

    _fields_ = _norm_fields("input", "weight", "bias", "output", "batch", "channels", "inner", "groups")


class BatchNormDesc(_Struct):
    """tuff_batch_norm_desc"""

    _fields_ = _norm_fields(
        *("input", "mean", "variance", "weight", "bias", "output", "batch", "channels", "inner")
    )


class PermuteDesc(_Struct):
    """tuff_permute_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("order", c_uint32 * 8),
        ("rank", c_uint32),
        ("reserved", c_uint32),
    ]


class CastDesc(_Struct):
    """tuff_cast_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("input_type", c_int32),
        ("output_type", c_int32),
        ("reserved", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("n", c_uint64),
    ]


class SliceDesc(_Struct):
    """tuff_slice_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("input", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("start", c_uint64 * 8),
        ("step", c_int64 * 8),
        ("out_shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("reserved", c_uint32),
    ]


class ConcatDesc(_Struct):
    """tuff_concat_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("inputs", POINTER(c_uint64)),
        ("sizes", POINTER(c_uint64)),
        ("count", c_uint32),
        ("rank", c_uint32),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("axis", c_uint32),
        ("reserved", c_uint32),
    ]


class GatherDesc(_Struct):
    """tuff_gather_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("dtype", c_int32),
        ("index_type", c_int32),
        ("elementwise", c_int32),
        ("input", c_uint64),
        ("indices", c_uint64),
        ("output", c_uint64),
        ("shape", c_uint64 * 8),
        ("rank", c_uint32),
        ("axis", c_uint32),
        ("count", c_uint64),
        ("index_shape", c_uint64 * 8),
    ]


class PoolDesc(_Struct):
    """tuff_pool_desc"""

    _fields_ = (
        [("struct_size", c_uint32), ("dtype", c_int32)]
        + [(name, c_uint64) for name in ("input", "output", "indices", "batch", "channels")]
        + [(name, c_uint64 * 3) for name in ("in_shape", "out_shape", "kernel", "stride", "padding", "dilation")]
        + [("spatial", c_uint32), ("ceil_mode", c_int32), ("count_include_pad", c_int32), ("adaptive", c_int32)]
    )


class RopeDesc(_Struct):
    """tuff_rope_desc"""

    _fields_ = (
        [("struct_size", c_uint32), ("dtype", c_int32)]
        + [(name, c_uint64) for name in ("input", "output", "positions", "batch", "heads", "seq", "head_dim")]
        + [("rotary_dim", c_uint64), ("input_strides", c_uint64 * 3), ("output_strides", c_uint64 * 3)]
        + [("positions_stride", c_uint64), ("offset", c_int64), ("base", c_double)]
        + [("interleaved", c_int32), ("reserved", c_int32)]
    )


class ResizeDesc(_Struct):
    """tuff_resize_desc"""

    _fields_ = (
        [("struct_size", c_uint32), ("dtype", c_int32)]
        + [(name, c_uint64) for name in ("input", "output", "batch", "channels")]
        + [("in_shape", c_uint64 * 3), ("out_shape", c_uint64 * 3), ("scale", c_double * 3)]
        + [("spatial", c_uint32), ("mode", c_int32), ("align_corners", c_int32), ("layout", c_int32)]
    )


class StreamDesc(_Struct):
    """tuff_stream_desc"""

    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32), ("name", c_char_p)]


class EventDesc(_Struct):
    """tuff_event_desc"""

    _fields_ = [("struct_size", c_uint32), ("flags", c_uint32)]


class KernelDefine(ctypes.Structure):
    """tuff_kernel_define"""

    _fields_ = [("name", c_char_p), ("value", c_char_p)]


class KernelConstant(ctypes.Structure):
    """tuff_kernel_constant"""

    _fields_ = [("id", c_uint32), ("reserved", c_uint32), ("bits", c_uint64)]


class KernelDesc(_Struct):
    """tuff_kernel_desc"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("language", c_int32),
        ("source", c_void_p),
        ("source_bytes", c_uint64),
        ("name", c_char_p),
        ("entry", c_char_p),
        ("defines", POINTER(KernelDefine)),
        ("constants", POINTER(KernelConstant)),
        ("define_count", c_uint32),
        ("constant_count", c_uint32),
        ("flags", c_uint32),
        ("reserved", c_uint32),
        ("max_source_bytes", c_uint64),
        ("compile_milliseconds", c_uint64),
        ("compile_memory_bytes", c_uint64),
    ]


class KernelProperties(_Struct):
    """tuff_kernel_properties"""

    _fields_ = [
        ("struct_size", c_uint32),
        ("binding_count", c_uint32),
        ("used", c_uint32),
        ("read", c_uint32),
        ("written", c_uint32),
        ("push_bytes", c_uint32),
        ("workgroup_size", c_uint32 * 3),
        ("shared_bytes", c_uint32),
        ("subgroup_size", c_uint32),
        ("max_groups", c_uint32 * 3),
        ("buffer_alignment", c_uint32),
        ("robust", c_int32),
        ("max_buffer_bytes", c_uint64),
        ("min_bytes", c_uint64 * KERNEL_MAX_BINDINGS),
        ("name", c_char * 64),
        ("capabilities", c_char * 256),
    ]


LogCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
MemoryCallback = ctypes.CFUNCTYPE(None, c_void_p, POINTER(MemoryPressure))

_status, _i32, _u32, _u64, _f64, _text = c_int32, c_int32, c_uint32, c_uint64, c_double, c_char_p
_handle = c_uint64
_shape = POINTER(c_uint64)

#: name: (result, arguments), for every function of tuff.h. The tests compare it with the header.
FUNCTIONS = {
    # Library
    "tuff_version": (_u32, []),
    "tuff_abi_version": (_u32, []),
    "tuff_build_info": (_text, []),
    "tuff_status_name": (_text, [_status]),
    "tuff_status_hint": (_text, [_status]),
    "tuff_last_error": (_status, [_text, _u64, POINTER(_u64)]),
    "tuff_set_log": (_status, [LogCallback, c_void_p, _i32]),
    # Devices and contexts
    "tuff_device_count": (_status, [POINTER(_u32)]),
    "tuff_device_info": (_status, [_u32, POINTER(DeviceProperties)]),
    "tuff_device_refusals": (_status, [_text, _u64, POINTER(_u64)]),
    "tuff_context_create": (_status, [POINTER(ContextDesc), POINTER(_handle)]),
    "tuff_context_destroy": (_status, [_handle]),
    "tuff_context_info": (_status, [_handle, POINTER(DeviceProperties)]),
    "tuff_synchronize": (_status, [_handle]),
    "tuff_supports": (_status, [_handle, _text, POINTER(_i32)]),
    "tuff_context_stats": (_status, [_handle, POINTER(Stats)]),
    "tuff_context_set_limits": (_status, [_handle, POINTER(Limits)]),
    "tuff_context_set_tuning": (_status, [_handle, _text]),
    # Profiling
    "tuff_profile_begin": (_status, [_handle]),
    "tuff_profile_end": (_status, [_handle]),
    "tuff_profile_write": (_status, [_handle, _text]),
    "tuff_profile_table": (_status, [_handle, _text, _u64, POINTER(_u64)]),
    # Memory
    "tuff_context_memory": (_status, [_handle, POINTER(MemoryStats)]),
    "tuff_context_trim": (_status, [_handle]),
    "tuff_context_reset_peak": (_status, [_handle]),
    "tuff_context_set_memory_callback": (_status, [_handle, MemoryCallback, c_void_p]),
    "tuff_buffer_import_host": (_status, [_handle, c_void_p, _u64, POINTER(_handle)]),
    "tuff_buffer_export_fd": (_status, [_handle, POINTER(MemoryFd)]),
    "tuff_buffer_import_fd": (_status, [_handle, POINTER(MemoryFd), POINTER(_handle)]),
    # Buffers
    "tuff_alloc": (_status, [_handle, _u64, POINTER(_handle)]),
    "tuff_alloc_ex": (_status, [_handle, POINTER(AllocDesc), POINTER(_handle)]),
    "tuff_view": (_status, [_handle, _u64, _u64, POINTER(_handle)]),
    "tuff_free": (_status, [_handle]),
    "tuff_buffer_size": (_status, [_handle, POINTER(_u64)]),
    "tuff_copy_htod": (_status, [_handle, _handle, _u64, c_void_p, _u64]),
    "tuff_copy_dtoh": (_status, [_handle, c_void_p, _handle, _u64, _u64]),
    "tuff_copy_dtod": (_status, [_handle, _handle, _u64, _handle, _u64, _u64]),
    "tuff_copy_peer": (_status, [_handle, _handle, _u64, _handle, _handle, _u64, _u64]),
    "tuff_fill": (_status, [_handle, _handle, _u64, _u64, c_void_p, _u64]),
    "tuff_map": (_status, [_handle, POINTER(c_void_p)]),
    "tuff_unmap": (_status, [_handle]),
    # Operations: stream, dtype, …
    "tuff_gemm": (
        _status,
        [_handle, _i32, _i32, _i32, _u64, _u64, _u64, _f64, _handle, _u64, _handle, _u64, _f64, _handle, _u64],
    ),
    "tuff_gemm_ex": (_status, [_handle, POINTER(GemmDesc)]),
    "tuff_batched_gemm": (
        _status,
        [_handle, _i32, _i32, _i32, _u64, _u64, _u64, _f64, _handle, _u64, _u64, _handle, _u64, _u64, _f64]
        + [_handle, _u64, _u64, _u64],
    ),
    "tuff_batched_gemm_ex": (_status, [_handle, POINTER(BatchedGemmDesc)]),
    "tuff_batched_gemm_variants": (_status, [_handle, POINTER(BatchedGemmDesc), _text, _u64, POINTER(_u64)]),
    "tuff_conv2d": (_status, [_handle, _i32, _handle, _shape, _handle, _shape, _handle, _shape, _shape, _shape]),
    "tuff_conv2d_ex": (_status, [_handle, POINTER(Conv2dDesc)]),
    "tuff_conv1d": (_status, [_handle, _i32, _handle, _shape, _handle, _shape, _handle, _shape, _u64, _u64]),
    "tuff_conv1d_ex": (_status, [_handle, POINTER(Conv1dDesc)]),
    "tuff_conv3d": (_status, [_handle, _i32, _handle, _shape, _handle, _shape, _handle, _shape, _shape, _shape]),
    "tuff_conv3d_ex": (_status, [_handle, POINTER(Conv3dDesc)]),
    "tuff_conv_transpose2d": (
        _status,
        [_handle, _i32, _handle, _shape, _handle, _shape, _handle, _shape, _shape, _shape, _shape],
    ),
    "tuff_conv_transpose2d_ex": (_status, [_handle, POINTER(ConvTranspose2dDesc)]),
    "tuff_attention": (
        _status,
        [_handle, _i32, _handle, _handle, _handle, _handle, _u64, _u64, _u64, _u64, _u64, _f64, _i32],
    ),
    "tuff_attention_ex": (_status, [_handle, POINTER(AttentionDesc)]),
    "tuff_reduce": (_status, [_handle, _i32, _i32, _handle, _handle, _shape, _u32, _u32]),
    "tuff_reduce_ex": (_status, [_handle, POINTER(ReduceDesc)]),
    "tuff_unary": (_status, [_handle, _i32, _i32, _handle, _handle, _u64]),
    "tuff_unary_ex": (_status, [_handle, POINTER(UnaryDesc)]),
    "tuff_binary": (_status, [_handle, _i32, _i32, _handle, _handle, _handle, _u64]),
    "tuff_binary_ex": (_status, [_handle, POINTER(BinaryDesc)]),
    "tuff_softmax": (_status, [_handle, _i32, _handle, _handle, _shape, _u32, _u32]),
    "tuff_softmax_ex": (_status, [_handle, POINTER(SoftmaxDesc)]),
    # Normalisations
    "tuff_layer_norm": (_status, [_handle, _i32, _handle, _handle, _handle, _handle, _u64, _u64, _f64]),
    "tuff_layer_norm_ex": (_status, [_handle, POINTER(LayerNormDesc)]),
    "tuff_rms_norm": (_status, [_handle, _i32, _handle, _handle, _handle, _u64, _u64, _f64]),
    "tuff_rms_norm_ex": (_status, [_handle, POINTER(RmsNormDesc)]),
    "tuff_group_norm": (
        _status,
        [_handle, _i32, _handle, _handle, _handle, _handle, _u64, _u64, _u64, _u64, _f64],
    ),
    "tuff_group_norm_ex": (_status, [_handle, POINTER(GroupNormDesc)]),
    "tuff_batch_norm": (
        _status,
        [_handle, _i32, _handle, _handle, _handle, _handle, _handle, _handle, _u64, _u64, _u64, _f64],
    ),
    "tuff_batch_norm_ex": (_status, [_handle, POINTER(BatchNormDesc)]),
    # Shapes and types
    "tuff_permute": (_status, [_handle, _i32, _handle, _handle, _shape, _u32, POINTER(_u32)]),
    "tuff_permute_ex": (_status, [_handle, POINTER(PermuteDesc)]),
    "tuff_cast": (_status, [_handle, _i32, _i32, _handle, _handle, _u64]),
    "tuff_cast_ex": (_status, [_handle, POINTER(CastDesc)]),
    "tuff_slice": (_status, [_handle, _i32, _handle, _handle, _shape, _u32, _shape, POINTER(c_int64), _shape]),
    "tuff_slice_ex": (_status, [_handle, POINTER(SliceDesc)]),
    "tuff_concat": (_status, [_handle, _i32, POINTER(_handle), _shape, _u32, _handle, _shape, _u32, _u32]),
    "tuff_concat_ex": (_status, [_handle, POINTER(ConcatDesc)]),
    "tuff_gather": (_status, [_handle, _i32, _i32, _handle, _handle, _handle, _shape, _u32, _u32, _u64]),
    "tuff_gather_ex": (_status, [_handle, POINTER(GatherDesc)]),
    # Pooling
    "tuff_max_pool": (_status, [_handle, POINTER(PoolDesc)]),
    "tuff_avg_pool": (_status, [_handle, POINTER(PoolDesc)]),
    # Resizing
    "tuff_resize": (_status, [_handle, POINTER(ResizeDesc)]),
    # Positions
    "tuff_rope": (_status, [_handle, _i32, _handle, _handle, _u64, _u64, _u64, _u64, c_int64, _f64]),
    "tuff_rope_ex": (_status, [_handle, POINTER(RopeDesc)]),
    # Streams and events
    "tuff_stream_create": (_status, [_handle, POINTER(StreamDesc), POINTER(_handle)]),
    "tuff_stream_destroy": (_status, [_handle]),
    "tuff_copy_htod_async": (_status, [_handle, _handle, _u64, c_void_p, _u64]),
    "tuff_copy_dtoh_async": (_status, [_handle, c_void_p, _handle, _u64, _u64]),
    "tuff_event_create": (_status, [_handle, POINTER(EventDesc), POINTER(_handle)]),
    "tuff_event_destroy": (_status, [_handle]),
    "tuff_event_record": (_status, [_handle, _handle]),
    "tuff_stream_wait_event": (_status, [_handle, _handle]),
    "tuff_event_query": (_status, [_handle, POINTER(_i32)]),
    "tuff_event_wait": (_status, [_handle]),
    "tuff_event_elapsed": (_status, [_handle, _handle, POINTER(_f64)]),
    # Graphs
    "tuff_graph_begin": (_status, [_handle]),
    "tuff_graph_end": (_status, [_handle, POINTER(_handle)]),
    "tuff_graph_launch": (_status, [_handle, _handle]),
    "tuff_graph_bind": (_status, [_handle, _handle, _handle]),
    "tuff_graph_destroy": (_status, [_handle]),
    # Custom kernels
    "tuff_kernel_create": (_status, [_handle, POINTER(KernelDesc), POINTER(_handle)]),
    "tuff_kernel_info": (_status, [_handle, POINTER(KernelProperties)]),
    "tuff_kernel_launch": (
        _status,
        [_handle, _handle, POINTER(_handle), _u32, c_void_p, _u32, _u32, _u32, _u32],
    ),
    "tuff_kernel_destroy": (_status, [_handle]),
}

#: The library itself.
lib = _library.load()

for _name, (_result, _arguments) in FUNCTIONS.items():
    try:
        _function = getattr(lib, _name)
    except AttributeError as _error:
        raise ImportError(f"{lib._name} lacks {_name}: it is older than this package") from _error
    _function.restype = _result
    _function.argtypes = _arguments
    globals()[_name] = _function
