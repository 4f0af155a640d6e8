"""What is refused, and how it is said. Nothing is ever computed on the host instead."""

import numpy as np
import pytest

import tuff
from tuff import raw


def test_numpy_operands_are_refused_on_both_sides(ctx):
    x, host = ctx.ones((2, 2)), np.ones((2, 2))
    for use in (
        lambda: x + host,
        lambda: host + x,
        lambda: x @ host,
        lambda: host @ x,
        lambda: host * x,
        lambda: tuff.maximum(host, x),
    ):
        with pytest.raises(TypeError, match=r"ctx\.array\(\)"):
            use()
    with pytest.raises(TypeError, match="does not run on a device"):
        np.emath.sqrt(x)
    with pytest.raises(TypeError, match="already on a device"):
        ctx.array(x)


@pytest.mark.parametrize("other", ["1", None, [1, 2], object()])
def test_other_operands_are_type_errors(ctx, other):
    x = ctx.ones(2)
    with pytest.raises(TypeError):
        x + other
    with pytest.raises(TypeError):
        other * x
    with pytest.raises(TypeError):
        x @ other


def test_shapes_that_do_not_fit(ctx):
    x = ctx.ones((2, 3))
    for use in (
        lambda: x + ctx.ones((3, 2)),
        lambda: x @ x,
        lambda: x @ ctx.ones((2, 3, 3)) @ ctx.ones((4, 3, 3)),
        lambda: ctx.ones((2, 2, 3)) @ ctx.ones((3, 3, 2)),
        lambda: x @ ctx.ones(()),
        lambda: tuff.matmul(x, x.T, out=ctx.ones((2, 3))),
        lambda: tuff.add(x, x, out=ctx.ones(6)),
        lambda: tuff.broadcast_to(x, (3,)),
        lambda: tuff.broadcast_to(x, (4, 3)),
        lambda: x.assign(ctx.ones(2)),
        lambda: x.assign(np.ones(2)),
        lambda: tuff.Array(x.buffer, (3, 3)),
        lambda: ctx.zeros((2, -1)),
        lambda: ctx.ones(3).T,
        lambda: ctx.ones((2, 2, 2)).T,
        lambda: ctx.ones(3).mT,
        lambda: x.item(),
        lambda: bool(x),
    ):
        with pytest.raises(ValueError):
            use()
    with pytest.raises(TypeError):
        len(ctx.ones(()))


def test_indices(ctx):
    x = ctx.ones((2, 3))
    for key in (2, -3, (0, 3), (0, 0, 0)):
        with pytest.raises(IndexError):
            x[key]
    for key in ("a", 1.0, (0, "b"), 1j):
        with pytest.raises(TypeError):
            x[key]
    for key in (True, [0.5], ["a"], [2], np.array([-3])):
        with pytest.raises(IndexError):
            x[key]


def test_axes(ctx):
    x = ctx.ones((2, 3))
    for use in (lambda: x.sum(axis=2), lambda: x.sum(axis=-3), lambda: x.sum(axis=(0, -2)), lambda: x.softmax(2)):
        with pytest.raises(ValueError):
            use()
    for axis in (1.0, "0", True):
        with pytest.raises(TypeError):
            x.softmax(axis)
    with pytest.raises(ValueError):
        ctx.ones(()).softmax()


def test_dtypes(ctx):
    x, whole = ctx.ones(2), ctx.ones(2, dtype=np.int32)
    assert (x + whole).dtype == np.float32 and (x + whole).numpy().tolist() == [2, 2]
    assert (whole + whole).numpy().tolist() == [2, 2]
    assert (whole / whole).dtype == np.float32
    assert (3 - whole * 2).numpy().tolist() == [1, 1]
    for number in (1.5, 2.0, np.float32(2)):
        assert (whole + number).dtype == np.float32 and (whole + number).numpy()[0] == 1 + number
    with pytest.raises(OverflowError, match="beyond int32"):
        whole + 2**31
    with pytest.raises(TypeError, match="out"):
        tuff.add(whole, 1.5, out=whole)
    with pytest.raises(TypeError, match="no integer type holds both"):
        whole + ctx.ones(2, dtype=np.uint64)
    with pytest.raises(tuff.TuffError, match="f64"):
        tuff.lgamma(ctx.ones(2, dtype=np.float64))
    half, double = ctx.ones((2, 2), dtype=np.float16), ctx.ones((2, 2), dtype=np.float64)
    with pytest.raises(TypeError, match="float16 and float64"):
        half @ double
    with pytest.raises(tuff.TuffError, match="i32 x i32"):
        tuff.matmul(whole.reshape(1, 2), whole.reshape(2, 1), alpha=2)
    assert (whole @ whole).item() == 2 and (whole @ whole).dtype == np.int32
    with pytest.raises(ValueError, match="activation"):
        tuff.matmul(half, half, activation="softplus")
    with pytest.raises(ValueError, match="precision is 'fp8', not one of"):
        tuff.matmul(half, half, precision="fp8")
    with pytest.raises(tuff.TuffError, match="precision applies to f32 inputs, a is f16"):
        tuff.matmul(half, half, precision="tf32")
    with pytest.raises(ValueError, match="bias"):
        tuff.matmul(half, half, bias=ctx.ones(3, dtype=np.float16))
    with pytest.raises(TypeError, match="float16 and float32"):
        tuff.matmul(half, half, bias=x)
    with pytest.raises(ValueError, match="residual"):
        tuff.matmul(half, half, residual=ctx.ones((3, 2), dtype=np.float16))
    for dtype in (np.longdouble, np.clongdouble, object):
        with pytest.raises(TypeError):
            ctx.zeros(2, dtype=dtype)
    with pytest.raises((TypeError, ValueError)):
        ctx.array(["a"])


def test_overlapping_operands_are_copied_or_refused(ctx):
    x, a = ctx.array(range(8)), np.arange(8.0)
    x[:6] += x[2:]
    a[:6] += a[2:].copy()
    x[:6] = x[2:]
    a[:6] = a[2:].copy()
    assert x.numpy().tolist() == a.tolist()
    with pytest.raises(tuff.TuffError) as caught:
        tuff.softmax(x[2:], out=x[:6])
    assert caught.value.status == raw.ERROR_INVALID_ARGUMENT
    assert x.numpy().tolist() == a.tolist()


def test_conv2d(ctx):
    image, bank = ctx.ones((1, 2, 4, 4)), ctx.ones((3, 2, 3, 3))
    for use in (
        lambda: tuff.conv2d(image, ctx.ones((3, 3))),
        lambda: tuff.conv2d(image, bank, stride=0),
        lambda: tuff.conv2d(image, bank, padding=-1),
        lambda: tuff.conv2d(image, bank, stride=(1, 1, 1)),
        lambda: tuff.conv2d(image, bank, dilation=2),
        lambda: tuff.conv2d(image, ctx.ones((1, 2, 5, 5))),
        lambda: tuff.conv2d(image, bank, padding=((1, 2, 3), 0)),
        lambda: tuff.conv2d(image, bank, layout="chwn"),
        lambda: tuff.conv2d(image, bank, activation="sine"),
        lambda: tuff.conv2d(image, bank, bias=ctx.ones(2)),
        lambda: tuff.conv2d(image, bank, residual=image),
        lambda: tuff.conv1d(image, bank),
        lambda: tuff.conv3d(image, bank),
        lambda: tuff.conv_transpose2d(image, ctx.ones((2, 1, 1, 1)), padding=3),
    ):
        with pytest.raises(ValueError):
            use()
    with pytest.raises(tuff.TuffError) as caught:
        tuff.conv2d(image, ctx.ones((3, 1, 3, 3)))
    assert caught.value.status == raw.ERROR_INVALID_ARGUMENT
    with pytest.raises(TypeError):
        tuff.conv2d(np.ones((1, 1, 2, 2)), bank)


def test_attention(ctx):
    q = ctx.ones((1, 2, 3, 4))
    for use in (
        lambda: tuff.attention(q, ctx.ones((1, 2, 3, 5)), ctx.ones((1, 2, 3, 5))),
        lambda: tuff.attention(q, q, ctx.ones((1, 2, 4, 4))),
        lambda: tuff.attention(ctx.ones((1, 3, 3, 4)), q, q),
        lambda: tuff.attention(q, q, q, layout="hbsd"),
        lambda: tuff.attention(q, q, q, keys=4),
        lambda: tuff.attention(q, q, q, window=0),
        lambda: tuff.attention(q, q, q, bias=ctx.ones((2, 3, 1))),
        lambda: tuff.attention(q, q, q, kv_lengths=ctx.ones(1)),
        lambda: tuff.attention(q, q, q, causal="sideways"),
        lambda: tuff.attention(ctx.ones(3), ctx.ones(3), ctx.ones(3)),
    ):
        with pytest.raises(ValueError):
            use()
    for scale in (-1.0, float("nan"), 0.0):
        with pytest.raises(tuff.TuffError):
            tuff.attention(q, q, q, scale=scale)
