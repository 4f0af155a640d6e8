"""What tuff.json says of pointers and constants, as the library does it."""

import ctypes
import json

import pytest

import tuff
from tuff import raw


@pytest.fixture(scope="module")
def api():
    from conftest import CHECKOUT

    path = CHECKOUT / "include" / "tuff" / "tuff.json"
    if not path.is_file():
        pytest.skip("the package is tested away from its checkout")
    return json.loads(path.read_text(encoding="utf-8"))


SOURCE = b"#version 450\nlayout(set = 0, binding = 0) buffer B { float x[]; };\nvoid main() { x[0] = 1.0; }\n"


class Arguments:
    """For any function, arguments that are right as far as pointers and handles go."""

    def __init__(self, ctx):
        self.buffer = ctx.zeros(64).buffer
        self.handles = {"tuff_context": ctx.handle, "tuff_stream": ctx.handle, "tuff_buffer": self.buffer.handle}
        self.kept = []
        self.structures = {
            value.__doc__: value
            for value in vars(raw).values()
            if isinstance(value, type) and issubclass(value, raw.Structure)
        }

    def handle(self, kind):
        """None where this device has no such object."""
        if kind not in self.handles:
            made = ctypes.c_uint64()
            if kind == "tuff_event":
                tuff.check(raw.tuff_event_create(self.handles["tuff_context"], raw.EventDesc(), made))
            elif kind == "tuff_expr":
                tuff.check(raw.tuff_expr_create(self.handles["tuff_context"], formula(), made))
            elif kind == "tuff_kernel":
                desc = raw.KernelDesc(source=ctypes.cast(SOURCE, ctypes.c_void_p))
                status = raw.tuff_kernel_create(self.handles["tuff_context"], desc, made)
                if status != raw.ERROR_UNSUPPORTED:
                    tuff.check(status)
            self.handles[kind] = made.value or None
        return self.handles[kind]

    def value(self, item):
        if item["type"] in ("tuff_log_callback", "tuff_memory_callback"):
            return raw.FUNCTIONS["tuff_set_log"][1][0]() if "log" in item["type"] else raw.MemoryCallback()
        if item.get("pointer"):
            structure = self.structures.get(item["type"])
            # Sizes and strides of 1.
            memory = structure() if structure else (ctypes.c_uint64 * 64)(*[1] * 64)
            if structure is raw.ExprDesc:
                memory = formula()
            if structure is raw.MemoryFd:
                memory.fd = -1
            elif structure is raw.KernelDesc:
                memory.source = ctypes.cast(SOURCE, ctypes.c_void_p)
            self.kept.append(memory)
            return memory
        if item["type"].startswith("tuff_") and item["type"] not in ("tuff_status",) and "values" not in item:
            return self.handle(item["type"])
        # An axis and an index count from 0; dtype, rank, sizes and so on are 1.
        return 0 if item["name"] in ("axis", "index", "offset", "capacity") else 1


def formula():
    """A valid description of an expression."""
    return raw.ExprDesc(formula=b"1", outputs=(raw.ExprVariable * 1)((b"y", raw.F32, 0)), output_count=1)


def call(function, arguments, without):
    """Calls it with one argument being NULL; None where an argument cannot be had."""
    values = []
    for item, kind in zip(function["parameters"], raw.FUNCTIONS[function["name"]][1]):
        value = None if item["name"] == without else arguments.value(item)
        if value is None and item["name"] != without:
            return None
        if item.get("pointer") and value is not None:
            value = ctypes.cast(ctypes.pointer(value), kind)
        values.append(value)
    return getattr(raw, function["name"])(*values)


def pointers(api, nullable):
    for function in api["functions"]:
        for item in function["parameters"]:
            if item.get("pointer") and not item.get("opaque") and item["nullable"] == nullable:
                yield function, item["name"]


def test_pointers_that_may_not_be_null_are_refused_by_name(api, ctx):
    arguments, tried, other = Arguments(ctx), 0, []
    for function, name in pointers(api, False):
        if function["name"].startswith("tuff_graph_"):
            continue  # they need a stream that captures
        status = call(function, arguments, name)
        if status is None:
            continue
        if status == raw.ERROR_UNSUPPORTED and ctx.device.backend == "host":
            continue
        if status != raw.ERROR_INVALID_ARGUMENT or f"{name} is null" not in tuff.last_error():
            other.append((function["name"], name, status, tuff.last_error()))
        tried += 1
    assert not other
    assert tried > 80


def test_pointers_that_may_be_null_are_not_refused_for_it(api, ctx):
    arguments = Arguments(ctx)
    tried = 0
    for function, name in pointers(api, True):
        raw.tuff_free(0x7FFFFFFF)  # another message than any of this function's
        if call(function, arguments, name) not in (None, raw.OK):
            assert f"{name} is null" not in tuff.last_error(), function["name"]
        tried += 1
    assert tried > 10


def test_no_function_accepts_an_invalid_constant(api, ctx):
    """Each group of int32_t that functions take has a call here that succeeds, and fails with its _INVALID instead."""
    h = ctx.handle
    arrays = [ctx.zeros(64) for _ in range(4)]
    a, b, c, d = (array.buffer.handle for array in arrays)
    shape = (ctypes.c_uint64 * 2)(2, 2)

    def gemm_ex(**fields):
        desc = dict(dtype=raw.F32, m=2, n=2, k=2, alpha=1.0, a=a, b=b, c=c)
        return raw.tuff_gemm_ex(h, raw.GemmDesc(**{**desc, **fields}))

    def conv(layout):
        desc = raw.Conv2dDesc(dtype=raw.F32, input=a, filter=b, output=c, layout=layout)
        desc.in_shape[:], desc.filter_shape[:], desc.out_shape[:] = (1, 1, 2, 2), (1, 1, 1, 1), (1, 1, 2, 2)
        return raw.tuff_conv2d_ex(h, desc)

    def pad(mode):
        desc = raw.PadDesc(dtype=raw.F32, input=a, output=b, rank=1, mode=mode)
        desc.shape[0], desc.before[0] = 4, 2
        return raw.tuff_pad(h, desc)

    def scatter(op):
        desc = raw.ScatterDesc(dtype=raw.F32, index_type=raw.U32, op=op, indices=a, updates=b, output=c, rank=1, count=4)
        desc.shape[0] = 4
        return raw.tuff_scatter(h, desc)

    def resize(mode):
        desc = raw.ResizeDesc(dtype=raw.F32, input=a, output=b, batch=1, channels=1, spatial=1, mode=mode)
        desc.in_shape[0], desc.out_shape[0] = 2, 4
        return raw.tuff_resize(h, desc)

    def convert(form):
        desc = raw.SparseConvertDesc(dtype=raw.F32, index_type=raw.I32, from_format=form, to_format=raw.SPARSE_COO)
        desc.from_rows, desc.from_columns, desc.from_values = a, a, a
        return raw.tuff_sparse_convert(h, desc)

    def fft(**fields):
        desc = raw.FftDesc(**{**dict(dtype=raw.F32, kind=raw.FFT_COMPLEX, input=a, output=b, rank=1), **fields})
        desc.shape[0] = 4
        return raw.tuff_fft(h, desc)

    def dct(**fields):
        desc = raw.DctDesc(**{**dict(dtype=raw.F32, kind=raw.DCT_2, input=a, output=b, rank=1), **fields})
        desc.shape[0] = 4
        return raw.tuff_dct(h, desc)

    def kernel(language):
        made = ctypes.c_uint64()
        desc = raw.KernelDesc(language=language, source=ctypes.cast(SOURCE, ctypes.c_void_p))
        return raw.tuff_kernel_create(h, desc, made)

    def triangular_solve(**fields):
        desc = raw.TriangularSolveDesc(dtype=raw.F32, m=2, n=2, a=a, b=b, batch_count=1)
        for name, value in fields.items():
            setattr(desc, name, value)
        return raw.tuff_triangular_solve(h, desc)

    def recurrent(**fields):
        sizes = dict(batch=1, steps=1, input_size=2, hidden_size=2)
        desc = dict(dtype=raw.F32, cell=raw.RNN_CELL_GRU, x=a, w=b, r=c, hn=d, **sizes)
        return raw.tuff_rnn(h, raw.RnnDesc(**{**desc, **fields}))

    def quantize(**fields):
        desc = dict(format=raw.QUANT_I8, dtype=raw.F32, granularity=raw.QUANT_PER_TENSOR, input=a, scales=b, output=c, rank=1)
        made = raw.QuantizeDesc(**{**desc, **fields})
        made.shape[0] = 4
        return raw.tuff_quantize(h, made)

    def blocks(order):
        desc = dict(dtype=raw.F32, index_type=raw.I32, rows=2, columns=2, n=1, alpha=1.0, batch_count=1, c=c)
        return raw.tuff_spmm(h, raw.SpmmDesc(block_rows=2, block_columns=2, block_order=order, **desc))

    def optimizer(algorithm):
        one, x, g = (ctypes.c_uint64 * 1)(4), (ctypes.c_uint64 * 1)(a), (ctypes.c_uint64 * 1)(b)
        desc = raw.OptimizerDesc(dtype=raw.F32, algorithm=algorithm, count=1, sizes=one, parameters=x, gradients=g, rate=0.1)
        return raw.tuff_optimizer_step(h, desc)

    def norm_backward(kind):
        desc = dict(dtype=raw.F32, batch=2, channels=2, inner=1, epsilon=1e-5, input=a, output_gradient=b, input_gradient=c)
        return raw.tuff_norm_backward(h, raw.NormBackwardDesc(kind=kind, **desc))

    nothing = raw.OpHost(lambda user, arguments, count, status: None)

    def operation(**fields):
        argument = raw.OpArgument(**{**dict(name=b"x", kind=raw.OP_BUFFER, dtype=raw.F32, access=raw.OP_WRITE), **fields})
        source = raw.KernelDesc(source=ctypes.cast(SOURCE, ctypes.c_void_p))
        desc = raw.OpDesc(name=b"test.fill", arguments=ctypes.pointer(argument), argument_count=1, groups=b"1", kernel=ctypes.pointer(source))
        made = ctypes.c_uint64()
        status = raw.tuff_op_register(h, desc, nothing, None, made)
        if status == raw.OK:
            tuff.check(raw.tuff_op_destroy(made))
        return status

    calls = {
        "tuff_dtype": (raw.F32, lambda x: raw.tuff_unary(h, x, raw.UNARY_RELU, a, b, 4)),
        "tuff_transpose": (
            raw.NO_TRANS,
            lambda x: raw.tuff_gemm(h, raw.F32, x, 0, 2, 2, 2, 1.0, a, 2, b, 2, 0.0, c, 2),
        ),
        "tuff_causal": (raw.CAUSAL_NONE, lambda x: raw.tuff_attention(h, raw.F32, a, a, a, b, 1, 1, 2, 2, 4, 1.0, x)),
        "tuff_unary_op": (raw.UNARY_RELU, lambda x: raw.tuff_unary(h, raw.F32, x, a, b, 4)),
        "tuff_binary_op": (raw.BINARY_ADD, lambda x: raw.tuff_binary(h, raw.F32, x, a, b, c, 4)),
        "tuff_reduce_op": (raw.REDUCE_SUM, lambda x: raw.tuff_reduce(h, raw.F32, x, a, b, shape, 2, 0)),
        "tuff_activation": (raw.ACTIVATION_RELU, lambda x: gemm_ex(activation=x)),
        "tuff_bias_axis": (raw.BIAS_ROWS, lambda x: gemm_ex(bias_axis=x, bias=d)),
        "tuff_precision": (raw.PRECISION_ALLOW_F16, lambda x: gemm_ex(precision=x)),
        "tuff_layout": (raw.LAYOUT_NHWC, conv),
        "tuff_resize_mode": (raw.RESIZE_LINEAR, resize),
        "tuff_pad_mode": (raw.PAD_EDGE, pad),
        "tuff_scatter_op": (raw.SCATTER_ADD, scatter),
        "tuff_select_op": (
            raw.SELECT_UNIQUE,
            lambda x: raw.tuff_select(h, raw.SelectDesc(dtype=raw.F32, op=x, input=a, output=b, n=4, capacity=4)),
        ),
        "tuff_triangle": (raw.TRIANGLE_UPPER, lambda x: triangular_solve(triangle=x)),
        "tuff_side": (raw.SIDE_RIGHT, lambda x: triangular_solve(side=x)),
        "tuff_log_level": (raw.LOG_OFF, lambda x: raw.tuff_set_log(raw.LogCallback(), None, x)),
        "tuff_kernel_language": (raw.KERNEL_GLSL, kernel),
        "tuff_random_distribution": (
            raw.RANDOM_NORMAL,
            lambda x: raw.tuff_random(h, raw.RandomDesc(dtype=raw.F32, distribution=x, output=a, n=4)),
        ),
        "tuff_variates_distribution": (
            raw.VARIATES_GAMMA,
            lambda x: raw.tuff_variates(h, raw.VariatesDesc(dtype=raw.F32, distribution=x, output=a, n=4)),
        ),
        "tuff_rnn_cell": (raw.RNN_CELL_TANH, lambda x: recurrent(cell=x)),
        "tuff_rnn_direction": (raw.RNN_DIRECTION_REVERSE, lambda x: recurrent(direction=x)),
        "tuff_rnn_gates": (raw.RNN_GATES_ONNX, lambda x: recurrent(gate_order=x)),
        "tuff_quant_format": (raw.QUANT_U8, lambda x: quantize(format=x)),
        "tuff_quant_granularity": (raw.QUANT_PER_TENSOR, lambda x: quantize(granularity=x)),
        "tuff_sparse_format": (raw.SPARSE_COO, convert),
        "tuff_block_order": (raw.BLOCK_ORDER_COLUMN_MAJOR, blocks),
        "tuff_optimizer": (raw.OPTIMIZER_SGD, optimizer),
        "tuff_norm_kind": (raw.NORM_RMS, norm_backward),
        "tuff_op_kind": (raw.OP_BUFFER, lambda x: operation(kind=x)),
        "tuff_op_access": (raw.OP_WRITE, lambda x: operation(access=x)),
        "tuff_fft_kind": (raw.FFT_COMPLEX, lambda x: fft(kind=x)),
        "tuff_dct_kind": (raw.DCT_2, lambda x: dct(kind=x)),
        "tuff_fft_norm": (raw.FFT_NORM_SIZE, lambda x: fft(norm=x)),
    }
    groups = {entry["name"] for entry in api["groups"] if any(v["name"].endswith("_INVALID") for v in entry["values"])}
    # Device types and statuses are outputs only.
    assert groups - {"tuff_device_type"} <= set(calls) and "tuff_status" not in calls
    for group, (right, function) in calls.items():
        allowed = (raw.OK, raw.ERROR_UNSUPPORTED) if group == "tuff_kernel_language" else (raw.OK,)
        assert function(right) in allowed, (group, tuff.last_error())
        assert function(-1) in (raw.ERROR_INVALID_ARGUMENT, raw.ERROR_UNSUPPORTED), (group, tuff.last_error())
