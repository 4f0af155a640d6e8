"""Numbers, names and axes that are none: each is an error of the package's own, and nothing wraps on its way to C."""

import copy
import pickle

import numpy as np
import pytest

import tuff
from tuff._operands import AxisError
from tuff import raw

# What ctypes, or Python on the way to it, says of what it does not like.
FOREIGN = (
    "instead of",
    "argument 1",
    "wrong type",
    "Can only assign",
    "invalid index",
    "no attribute",
    "unhashable",
    "not iterable",
    "must be real number",
    "cannot be interpreted",
    "too large",
    "too long",
    "not supported between",
    "thread",
)


def refused(use):
    """use() fails by an error of the package's own."""
    with pytest.raises((ValueError, TypeError, IndexError, tuff.TuffError)) as caught:
        use()
    assert type(caught.value) in (ValueError, TypeError, IndexError, AxisError, tuff.TuffError), caught.value
    text = str(caught.value)
    assert text and not any(word in text for word in FOREIGN), text


WHOLE = {
    "zeros": lambda ctx, x, n: ctx.zeros((1, n)),
    "empty": lambda ctx, x, n: ctx.empty((n,)),
    "ones": lambda ctx, x, n: ctx.ones((n,)),
    "pinned": lambda ctx, x, n: ctx.pinned((n, 1)),
    "alloc": lambda ctx, x, n: ctx.alloc(n),
    "set_limits memory": lambda ctx, x, n: ctx.set_limits(memory_bytes=n),
    "set_limits wait": lambda ctx, x, n: ctx.set_limits(wait_milliseconds=n),
    "Context": lambda ctx, x, n: tuff.Context(backend="host", memory_limit_bytes=n),
    "set_log": lambda ctx, x, n: tuff.set_log(print, n),
    "view offset": lambda ctx, x, n: x.buffer.view(n, 0),
    "view bytes": lambda ctx, x, n: x.buffer.view(0, n),
    "upload": lambda ctx, x, n: x.buffer.upload(np.ones(1, np.float32), n),
    "download": lambda ctx, x, n: x.buffer.download(np.ones(1, np.float32), n),
    "upload_async": lambda ctx, x, n: x.buffer.upload_async(ctx.pinned(1), n),
    "download_async": lambda ctx, x, n: x.buffer.download_async(ctx.pinned(1), n),
    "fill offset": lambda ctx, x, n: x.buffer.fill(b"abcd", n),
    "fill bytes": lambda ctx, x, n: x.buffer.fill(b"abcd", 0, n),
    "copy_from offset": lambda ctx, x, n: x.buffer.copy_from(ctx.ones(1).buffer, n),
    "copy_from source": lambda ctx, x, n: x.buffer.copy_from(ctx.ones(1).buffer, 0, n),
    "copy_from bytes": lambda ctx, x, n: x.buffer.copy_from(ctx.ones(1).buffer, 0, 0, n),
    "reshape": lambda ctx, x, n: x.reshape((n, 2)),
    "transpose": lambda ctx, x, n: x.transpose((0, n, 1, 2)),
    "swapaxes": lambda ctx, x, n: x.swapaxes(0, n),
    "swapaxes first": lambda ctx, x, n: x.swapaxes(n, 0),
    "getitem": lambda ctx, x, n: x[n if n != [1] else 2],
    "section": lambda ctx, x, n: tuff.section(x, (0, n)),
    "sum": lambda ctx, x, n: x.sum((0, n)),
    "max": lambda ctx, x, n: x.max([n]),
    "argmax": lambda ctx, x, n: x.argmax([n]),
    "softmax": lambda ctx, x, n: x.softmax(n),
    "concat": lambda ctx, x, n: tuff.concat([x, x], n),
    "take": lambda ctx, x, n: tuff.take(x, ctx.zeros(2, np.int32), n),
    "gather": lambda ctx, x, n: tuff.gather(x, ctx.zeros(x.shape, np.int32), n),
    "unary op": lambda ctx, x, n: tuff.unary(n, x),
    "binary op": lambda ctx, x, n: tuff.binary(n, x, x),
    "reduce op": lambda ctx, x, n: tuff.reduce(n, x),
    "broadcast_to": lambda ctx, x, n: tuff.broadcast_to(ctx.ones(1), (n,)),
    "group_norm": lambda ctx, x, n: tuff.group_norm(x, n),
    "stride": lambda ctx, x, n: tuff.conv2d(x, x, stride=(1, n), groups=1),
    "padding": lambda ctx, x, n: tuff.conv2d(x, x, padding=(n, 1)),
    "padding pairs": lambda ctx, x, n: tuff.conv2d(x, x, padding=((0, 0), (n, 1))),
    "dilation": lambda ctx, x, n: tuff.conv2d(x, x, dilation=(n, 1)),
    "groups": lambda ctx, x, n: tuff.conv2d(x, x, groups=n),
    "transposed stride": lambda ctx, x, n: tuff.conv_transpose2d(x, x, stride=(n, 1)),
    "transposed padding": lambda ctx, x, n: tuff.conv_transpose2d(x, x, padding=(n, 1)),
    "output_padding": lambda ctx, x, n: tuff.conv_transpose2d(x, x, output_padding=(n, 1)),
    "transposed dilation": lambda ctx, x, n: tuff.conv_transpose2d(x, x, dilation=(n, 1)),
    "transposed groups": lambda ctx, x, n: tuff.conv_transpose2d(x, x, groups=n),
    "kernel": lambda ctx, x, n: tuff.max_pool(x, (n, 1)),
    "pool stride": lambda ctx, x, n: tuff.max_pool(x, 2, stride=(n, 1)),
    "pool padding": lambda ctx, x, n: tuff.max_pool(x, 2, padding=(n, 1)),
    "pool dilation": lambda ctx, x, n: tuff.max_pool(x, 2, dilation=(n, 1)),
    "avg kernel": lambda ctx, x, n: tuff.avg_pool(x, (n, 1)),
    "adaptive": lambda ctx, x, n: tuff.adaptive_avg_pool(x, (n, 1)),
    "adaptive max": lambda ctx, x, n: tuff.adaptive_max_pool(x, (n, 1)),
    "resize": lambda ctx, x, n: tuff.resize(x, (n, 1)),
    "keys": lambda ctx, x, n: tuff.attention(x, x, x, keys=n),
    "window": lambda ctx, x, n: tuff.attention(x, x, x, window=(n, 1)),
    "offset": lambda ctx, x, n: tuff.rope(x, offset=n if n != -7 else 2**31),
    "rotary_dim": lambda ctx, x, n: tuff.rope(x, rotary_dim=n),
}


# 2**64 + 1 is 1 to ctypes, and so is 2**32 + 1 where C has 32 bits; 1.5 was cut to 1.
@pytest.mark.parametrize("name", WHOLE)
def test_numbers_that_are_no_sizes_are_refused_and_do_not_wrap(ctx, name):
    x = ctx.ones((2, 2, 2, 2))
    for value in (2**64, 2**64 + 1, 2**70, -(2**63) - 7, -7, 1.5, "1", 1j, float("nan"), [1], object()):
        refused(lambda: WHOLE[name](ctx, x, value))


REAL = {
    "alpha": lambda ctx, x, r: x.leaky_relu(r),
    "matmul alpha": lambda ctx, x, r: tuff.matmul(x, x, alpha=r),
    "matmul beta": lambda ctx, x, r: tuff.matmul(x, x, beta=r, out=ctx.ones(x.shape)),
    "scale": lambda ctx, x, r: tuff.softmax(x, scale=r),
    "layer_norm": lambda ctx, x, r: x.layer_norm(epsilon=r),
    "rms_norm": lambda ctx, x, r: x.rms_norm(epsilon=r),
    "group_norm": lambda ctx, x, r: tuff.group_norm(x, 1, epsilon=r),
    "batch_norm": lambda ctx, x, r: tuff.batch_norm(x, ctx.ones(2), ctx.ones(2), epsilon=r),
    "attention": lambda ctx, x, r: tuff.attention(x, x, x, scale=r),
    "softcap": lambda ctx, x, r: tuff.attention(x, x, x, softcap=r),
    "base": lambda ctx, x, r: tuff.rope(x, base=r),
    "resize": lambda ctx, x, r: tuff.resize(x, 3, scale=(r, 1.0)),
    "full": lambda ctx, x, r: ctx.full(2, r, np.float32),
    "add": lambda ctx, x, r: tuff.add(x, r, out=x),
    "divide": lambda ctx, x, r: tuff.divide(r, x, out=x),
}


@pytest.mark.parametrize("name", REAL)
def test_what_is_no_real_number_is_refused(ctx, name):
    x = ctx.ones((2, 2, 2, 2))
    for value in (10**400, "1", 1j, [1], object(), np.ones(2)):
        refused(lambda: REAL[name](ctx, x, value))


def test_numbers_beyond_an_integer_dtype_are_refused_and_do_not_wrap(ctx):
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        info = np.iinfo(dtype)
        halves = () if dtype in (np.int64, np.uint64) else (info.max + 0.5,)  # no float there has a fraction
        for value in (info.min, info.max, dtype(info.max), *halves):
            assert ctx.full(1, value, dtype).item() == int(value)
        for value in (info.min - 1, info.max + 1, 2**64, 1e30, float("inf"), float("nan")):
            refused(lambda: ctx.full(1, value, dtype))
            refused(lambda: ctx.zeros(1, dtype).assign(value))


def test_sizes_that_wrap_at_64_bits(ctx):
    """ctx.zeros((1 << 62, 8)) succeeded with a buffer of 0 bytes, and its sum was 0."""
    for shape in ((1 << 62, 8), (1 << 32, 1 << 32), (1 << 63,), (1 << 61, 2), (0, 1 << 64), (1 << 64, 0)):
        refused(lambda: ctx.zeros(shape))
        refused(lambda: ctx.empty(shape, np.float64))
        refused(lambda: ctx.pinned(shape))
        refused(lambda: tuff.Array(ctx.alloc(8), shape))
    with pytest.raises(ValueError, match="memory_limit_bytes"):
        tuff.Context(backend="host", memory_limit_bytes=(1 << 64) + 1)


def test_nine_axes(ctx):
    """They raised ctypes' own errors."""
    x = ctx.ones((1,) * 9)
    index = ctx.zeros((1,) * 9, np.int32)
    for use in (
        lambda: x.softmax(),
        lambda: x.log_softmax(),
        lambda: x.transpose(),
        lambda: x.swapaxes(0, 1),
        lambda: tuff.permute(x, range(9)),
        lambda: tuff.section(x, 0),
        lambda: tuff.concat([x, x]),
        lambda: tuff.take(x, index),
        lambda: tuff.gather(x, index, 0),
        lambda: tuff.embedding(x, index),
        lambda: x.sum(0),
        lambda: x.argmax(0),
        lambda: x + ctx.ones(2),
        lambda: tuff.conv2d(x, x),
        lambda: tuff.max_pool(x, 1),
        lambda: tuff.resize(x, 1),
        lambda: tuff.rope(x),
        lambda: tuff.attention(x, x, x),
    ):
        refused(use)
        with pytest.raises(ValueError, match=r"\(1, 1, 1, 1, 1, 1, 1, 1, 1\)"):
            use()
    # Operations that need no particular axis accept all of them.
    assert (x + x).item() == 2 and x.sum().item() == 1 and x.relu().item() == 1 and x[0].shape == (1,) * 8
    assert x.layer_norm().shape == (1,) * 9 and tuff.broadcast_to(x, (1,) * 8 + (3,)).numpy().sum() == 3
    half = ctx.ones((1,) * 9, np.float16)
    refused(lambda: half.sum((0, 2)))


def test_names_that_are_none(ctx):
    x = ctx.ones((2, 2, 2, 2))
    for name in ("sideways", 3, [1], {}, object()):
        refused(lambda: tuff.attention(x, x, x, causal=name))
        refused(lambda: tuff.attention(x, x, x, layout=name))
        refused(lambda: tuff.conv2d(x, x, layout=name))
        refused(lambda: tuff.conv2d(x, x, activation=name))
        refused(lambda: tuff.conv_transpose2d(x, x, activation=name))
        refused(lambda: tuff.matmul(x, x, activation=name))
        refused(lambda: tuff.resize(x, 1, mode=name))
        refused(lambda: tuff.resize(x, 1, layout=name))
    for name in (3, b"host", "a\0b", [1]):
        refused(lambda: ctx.supports(name))
        refused(lambda: tuff.Context(backend=name))
        refused(lambda: ctx.stream(name))
        refused(lambda: ctx.alloc(4, name=name))
    refused(lambda: tuff.Context("a\0b"))


def test_objects_of_another_kind(ctx):
    x = ctx.ones((2, 2))
    for other in (None, "cpu", 3, [0, 2], [0.0], [True], np.zeros(2)):
        for use in (
            lambda: x.to(other),
            lambda: tuff.take(x, other),
            lambda: tuff.gather(x, other, 0),
            lambda: tuff.embedding(x, other),
            lambda: tuff.concat([x, other]),
            lambda: tuff.concat(other),
            lambda: tuff.matmul(x, x, bias=other) if other is not None else tuff.take(x, other),
            lambda: tuff.Array(other, 2),
            lambda: tuff.Buffer(other, 2),
            lambda: tuff.Stream(other),
            lambda: tuff.Event(other),
            lambda: tuff.Kernel(other, "void main() {}"),
            lambda: x.buffer.copy_from(other),
            lambda: x.buffer.fill(other),
            lambda: ctx.import_fd(other),
            lambda: ctx.default_stream.wait(other),
            lambda: tuff.broadcast_to(other, 2),
            lambda: tuff.unary(raw.UNARY_ABS, other),
        ):
            refused(use)
    for other in (None, "cpu", 3, [0.0, 1.0], x):
        for use in (
            lambda: x.buffer.upload(other),
            lambda: x.buffer.upload_async(other),
            lambda: x.buffer.download(other),
            lambda: x.buffer.download_async(other),
            lambda: x.copy_from_async(other),
            lambda: x.copy_to_async(other),
            lambda: ctx.import_host(other),
        ):
            refused(use)
    pointers = np.array([None, "x"], object)  # whose bytes are addresses
    refused(lambda: x.buffer.upload(pointers))
    refused(lambda: x.buffer.download(pointers))
    refused(lambda: ctx.array(pointers, object))
    refused(lambda: ctx.full(2, [1.0, 2.0]))
    refused(lambda: tuff.set_log("stderr"))
    refused(lambda: ctx.set_memory_callback(3))
    for dtype in ("no such", 5, "f4,f4", ">f4", np.clongdouble):
        refused(lambda: ctx.zeros(2, dtype))
        refused(lambda: x.astype(dtype))


def test_kernels(vulkan):
    source = "#version 450\nlayout(push_constant) uniform P { uint n; };\nvoid main() { if (n == 1) return; }"
    kernel = vulkan.kernel(source)
    for groups in (1.5, "x", (1, 2, 3, 4), (), 2**32, -1, (1, 2**32 + 1), None):
        refused(lambda: kernel(groups=groups, push=b"abcd"))
    for push in ("abcd", None, object(), [object()]):
        refused(lambda: kernel(push=push))
    kernel(push=np.uint32(1))
    for given in (5, None, [1, 2], object()):
        refused(lambda: vulkan.kernel(given))
    for options in (
        {"constants": {2**32: 1}},
        {"constants": {"x": 1}},
        {"constants": [1]},
        {"defines": {3: 1}},
        {"defines": {"A": "1\0"}},
        {"defines": "A"},
        {"entry": 3},
        {"max_source_bytes": 2**64 + 1},
        {"compile_memory_bytes": 1.5},
        {"compile_seconds": float("inf")},
        {"compile_seconds": -1},
        {"compile_seconds": "x"},
    ):
        refused(lambda: vulkan.kernel(source, **options))


def test_what_lives_on_a_device_is_not_pickled(ctx):
    x = ctx.ones((2, 2))
    event = ctx.default_stream.record()
    for value in (x.buffer, ctx, ctx.default_stream, event, ctx.profile()):
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            with pytest.raises(TypeError, match="lives on a device"):
                pickle.dumps(value, protocol)
        for make in (copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="lives on a device"):
                make(value)


def test_integers_of_full_are_kept_or_refused(ctx):
    """ctx.full(1, 16777217) was 16777216.0."""
    assert ctx.full(1, 16777216).item() == 16777216 and ctx.full(1, -(2**30)).item() == -(2**30)
    assert ctx.full(1, 16777217, np.int32).item() == 16777217 and ctx.full(1, 16777217.0).item() == 16777216
    assert ctx.full(1, 16777217, np.float32).item() == 16777216  # as asked
    for value in (16777217, -16777217, np.int64(2**40 + 1), np.uint32(2**32 - 1), 2**128 - 1, 2**200):
        refused(lambda: ctx.full(1, value))


def test_shapes_that_are_none(ctx):
    x = ctx.ones((2, 3))
    for use in (
        lambda: x.reshape("x"),
        lambda: x.reshape(2.0, 3.0),
        lambda: x.reshape(6.0),
        lambda: x.reshape(-1, -1),
        lambda: x.reshape(-2, -3),
        lambda: x.reshape(None),
        lambda: x.reshape(4, -1),
        lambda: x.transpose(0.5, 1),
        lambda: x.transpose("ab"),
        lambda: x.transpose(0, 7),
        lambda: x.transpose(0, 0),
        lambda: x.swapaxes(0, 7),
        lambda: x.swapaxes(-3, 0),
        lambda: tuff.permute(x, 1),
        lambda: tuff.section(x, np.array([0, 1])),
        lambda: tuff.section(x, (..., ...)),
        lambda: tuff.section(x, "x"),
        lambda: tuff.section(x, True),
        lambda: x.sum("ab"),
        lambda: x.sum(1.0),
        lambda: x.sum((0, 0)),
        lambda: ctx.zeros(1.5),
        lambda: ctx.zeros("ab"),
        lambda: ctx.zeros(None),
        lambda: tuff.broadcast_to(x, None),
        lambda: tuff.broadcast_to(x, (2, 3.0)),
        lambda: tuff.attention(ctx.ones((2, 2)), ctx.ones((2, 2)), ctx.ones((2, 2)), window=(1, 2, 3)),
    ):
        refused(use)
