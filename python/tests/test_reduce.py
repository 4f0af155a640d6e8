"""Reductions of several axes against NumPy in float64."""

import itertools

import numpy as np
import pytest
from conftest import gamma

import tuff

HALF = 2.0**-11  # the unit roundoff of float16
LEAST = 2.0**-25  # half of the smallest float16: what rounding near zero costs


def several(rank):
    return [axes for count in range(1, rank + 1) for axes in itertools.combinations(range(rank), count)]


def test_f16_axes_that_do_not_adjoin_are_not_rounded_in_between(ctx, rng):
    shape = (5, 3, 7, 4)
    host = rng.standard_normal(shape).astype(np.float16)
    x, exact = ctx.array(host, dtype=np.float16), host.astype(np.float64)
    for axes, keepdims in itertools.product(several(4), (False, True)):
        count = np.prod([shape[axis] for axis in axes])
        weight = np.abs(exact).sum(axes, keepdims=keepdims)
        # Sums in float32, at worst one after another, and one rounding to float16.
        for name, wanted, spread in (
            ("sum", exact.sum(axes, keepdims=keepdims), weight),
            ("mean", exact.mean(axes, keepdims=keepdims), weight / count),
        ):
            got = getattr(x, name)(axes, keepdims).numpy()
            assert got.dtype == np.float16 and got.shape == wanted.shape
            error = gamma(count + 1) * spread
            assert np.all(np.abs(got - wanted) <= error + HALF * (np.abs(wanted) + error) + LEAST), (name, axes)
        for name in ("max", "min"):
            assert np.array_equal(getattr(x, name)(axes, keepdims).numpy(), getattr(host, name)(axes, keepdims=keepdims))
        product = exact.prod(axes, keepdims=keepdims)
        error = gamma(count) * np.abs(product) + 2.0**-126  # and what float32 loses below its normal numbers
        got = x.prod(axes, keepdims).numpy()
        assert np.all(np.abs(got - product) <= error + HALF * (np.abs(product) + error) + LEAST), axes


def test_f16_sums_beyond_its_range_in_between_do_not_become_nan(ctx):
    host = np.full((2, 3, 4), 60000, np.float16)
    host[1] = -60000
    x = ctx.array(host, dtype=np.float16)
    assert x.sum((0, 2)).numpy().tolist() == [0, 0, 0]
    assert x.mean((0, 2)).numpy().tolist() == [0, 0, 0]
    assert x.mean((0, 2), keepdims=True).shape == (1, 3, 1)
    host = np.full((2, 3, 2), 300, np.float16)
    host[1] = 1 / 512
    got = ctx.array(host, dtype=np.float16).prod((0, 2)).numpy().astype(np.float64)
    assert np.all(np.abs(got - (300 / 512) ** 2) <= (HALF + gamma(4)) * (300 / 512) ** 2)
    host[1] = 0
    assert ctx.array(host, dtype=np.float16).prod((0, 2)).numpy().tolist() == [0, 0, 0]


def test_f16_empty_axes_that_do_not_adjoin(ctx):
    x = ctx.zeros((0, 3, 2), dtype=np.float16)
    assert x.sum((0, 2)).numpy().tolist() == [0, 0, 0]
    assert x.prod((0, 2)).numpy().tolist() == [1, 1, 1]
    assert np.isnan(x.mean((0, 2)).numpy()).all()
    with pytest.raises(tuff.TuffError, match="empty"):
        x.max((0, 2))


def test_int32_is_exact_modulo_2_to_32(ctx, rng):
    shape = (5, 3, 7, 4)
    host = rng.integers(-(2**31), 2**31, shape, np.int32)
    x = ctx.array(host, dtype=np.int32)
    for axes in [None, *several(4)]:
        for name in ("sum", "prod", "max", "min"):
            # NumPy computes sums and products in int64: the last 32 bits of them, wrapping too, are those of int32.
            wanted = np.asarray(getattr(host, name)(axes)).astype(np.int32)
            got = getattr(x, name)(axes).numpy()
            assert got.dtype == np.int32
            np.testing.assert_array_equal(got, wanted, err_msg=f"{name} {axes}")
    assert ctx.array([2**31 - 1, 1], dtype=np.int32).sum().numpy() == -(2**31)
    assert ctx.zeros((0, 2), dtype=np.int32).sum(0).numpy().tolist() == [0, 0]
    for name in ("mean", "argmax", "argmin"):
        with pytest.raises(tuff.TuffError, match="dtype is i32, and"):
            getattr(x, name)(1)
    with pytest.raises(tuff.TuffError, match="dtype"):
        ctx.zeros(4, dtype=np.uint32).sum()


def test_broadcast_to_keeps_every_bit_of_every_dtype(ctx, rng):
    """It used to multiply by ones: -0 became +0, and integers were UNSUPPORTED."""
    for dtype in (np.float32, np.float16, np.float64, np.int32, np.uint32, np.int8, np.uint8):
        size = np.dtype(dtype).itemsize
        host = np.frombuffer(rng.bytes(15 * size), dtype).copy().reshape(1, 3, 1, 5)
        if np.dtype(dtype).kind == "f":
            host[0, 0, 0, :4] = (-0.0, np.nan, -np.inf, np.finfo(dtype).tiny / 2)
        x = ctx.array(host, dtype=dtype)
        for shape in ((1, 3, 1, 5), (2, 3, 4, 5), (7, 1, 3, 2, 5), (1, 3, 0, 5)):
            wanted = np.ascontiguousarray(np.broadcast_to(host, shape))
            assert tuff.broadcast_to(x, shape).numpy().tobytes() == wanted.tobytes()
        column = ctx.array(host[0, :, 0, :1], dtype=dtype)
        wanted = np.ascontiguousarray(np.broadcast_to(host[0, :, 0, :1], (3, 9)))
        assert tuff.broadcast_to(column, (3, 9)).numpy().tobytes() == wanted.tobytes()
    x = ctx.zeros((2, 3), dtype=np.int32)
    x.assign(ctx.array([1, 2, 3], dtype=np.int32))
    assert x.numpy().tolist() == [[1, 2, 3]] * 2
