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


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_])
def test_integers_are_exact_and_have_the_standard_types(ctx, rng, dtype):
    shape = (5, 3, 7, 4)
    host = np.frombuffer(rng.bytes(420 * np.dtype(dtype).itemsize), np.uint8 if dtype == np.bool_ else dtype).reshape(shape)
    host = host % 3 == 0 if dtype == np.bool_ else host.copy()
    host[0, 0, 0, 0] = 0
    x = ctx.array(host, dtype=dtype)
    wide = np.uint64 if np.dtype(dtype).kind == "u" else np.int64
    for axes in [None, 1, (0,), (1, 2), (0, 2), (0, 1, 2, 3), ()]:
        for name in ("sum", "prod", "max", "min", "any", "all"):
            got, wanted = getattr(x, name)(axes).numpy(), np.asarray(getattr(host, name)(axes))
            assert got.dtype == (wide if name in ("sum", "prod") else np.bool_ if name in ("any", "all") else dtype), name
            np.testing.assert_array_equal(got, wanted.astype(got.dtype), err_msg=f"{name} {axes}")
        counts = tuff.count_nonzero(x, axes).numpy()
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, np.count_nonzero(host, axes))
    for name in ("argmax", "argmin"):
        for axis in (None, 0, 2, -1):
            got = getattr(x, name)(axis).numpy()
            assert got.dtype == np.int64
            np.testing.assert_array_equal(got, getattr(host, name)(axis))
    assert x.mean(1).dtype == np.float32 and x.var((0, 1)).dtype == np.float32
    assert ctx.zeros((0, 2), dtype=dtype).sum(0).numpy().tolist() == [0, 0]
    assert ctx.zeros((0, 2), dtype=dtype).prod(0).numpy().tolist() == [1, 1]
    with pytest.raises(tuff.TuffError, match="empty axis"):
        ctx.zeros((0, 2), dtype=dtype).max(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int16])
def test_spreads_and_norms(ctx, rng, dtype):
    host = (rng.standard_normal((6, 5, 40)) * 9).astype(dtype)
    x, exact = ctx.array(host, dtype=dtype), host.astype(np.float64)
    kind = np.dtype(np.float32 if dtype == np.int16 else dtype)
    # Sums of at most 1200 terms of squares of at most 40, means that are off by as many roundings, and one rounding.
    unit = np.finfo(np.float64 if kind == np.float64 else np.float32).eps
    for axes in [None, 2, (1, 2), (0, 2)]:
        for keepdims in (False, True):
            for correction in (0, 1):
                for got, wanted in (
                    (x.var(axes, correction, keepdims), exact.var(axes, ddof=correction, keepdims=keepdims)),
                    (tuff.std(x, axes, correction, keepdims), exact.std(axes, ddof=correction, keepdims=keepdims)),
                ):
                    assert got.dtype == kind and got.shape == wanted.shape
                    assert np.all(np.abs(got.numpy() - wanted) <= (1300 * unit + np.finfo(kind).eps) * (np.abs(wanted) + 1))
            for got, wanted in (
                (x.l1(axes, keepdims), np.abs(exact).sum(axes, keepdims=keepdims)),
                (x.l2(axes, keepdims), np.sqrt((exact * exact).sum(axes, keepdims=keepdims))),
                (x.sum_squares(axes, keepdims), (exact * exact).sum(axes, keepdims=keepdims)),
                (tuff.logsumexp(x, axes, keepdims), np.log(np.exp(exact).sum(axes, keepdims=keepdims))),
            ):
                assert got.shape == wanted.shape
                far = np.isinf(got.numpy()) if kind == np.float16 else False  # squares beyond 65,504
                assert np.all(far | (np.abs(got.numpy() - wanted) <= (1300 * unit + np.finfo(kind).eps) * (np.abs(wanted) + 1)))
    assert np.isinf(tuff.logsumexp(ctx.zeros(0)).numpy())
    assert np.var(x, axis=1, ddof=1).shape == (6, 40)
    with pytest.raises(TypeError, match="dtype"):
        np.var(x, dtype=np.float64)
    with pytest.raises(TypeError, match="correction"):
        x.var(1, "one")
    with pytest.raises(ValueError, match="twice"):
        x.var((1, 1))


def test_float64_reductions(ctx, rng):
    host = rng.standard_normal((7, 300, 3))
    x = ctx.array(host, dtype=np.float64)
    for axes in [None, 1, (0, 2), 2]:
        assert np.allclose(x.sum(axes).numpy(), host.sum(axes), rtol=1e-13, atol=1e-13)
        assert np.allclose(x.mean(axes).numpy(), host.mean(axes), rtol=1e-13, atol=1e-14)
        np.testing.assert_array_equal(x.max(axes).numpy(), host.max(axes))
        wanted = np.log(np.exp(host).sum(axes))
        assert np.allclose(x.logsumexp(axes).numpy(), wanted, rtol=1e-13, atol=1e-13)
    host[3, 7, 1] = np.nan
    x = ctx.array(host, dtype=np.float64)
    assert np.isnan(x.max().item()) and x.argmax().item() == host.argmax()


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


def test_sums_and_products_of_another_type(ctx):
    x = np.arange(1, 7, dtype=np.int8).reshape(2, 3)
    array = ctx.array(x)
    for name in ("sum", "prod"):
        for axis in (None, 0, 1):
            for dtype in (np.float32, np.int16, np.uint64, np.int8):
                got, wanted = getattr(array, name)(axis, dtype=dtype), getattr(x, name)(axis, dtype=dtype)
                assert got.dtype == dtype and (got.numpy() == wanted).all()
        assert getattr(array, name)(1, True, dtype=np.float32).shape == (2, 1)
        assert getattr(array, name)().dtype == np.int64
    for offset in (-1, 0, 1):
        assert int(np.trace(array, offset)) == np.trace(x, offset)
    assert np.trace(array, dtype=np.float32).dtype == np.float32
    cube = np.arange(24).reshape(2, 3, 4)
    assert (np.trace(ctx.array(cube), 1, 2, 0).numpy() == np.trace(cube, 1, 2, 0)).all()


def test_numpys_sums_with_a_dtype(ctx):
    x = np.arange(1, 7, dtype=np.int8).reshape(2, 3)
    array = ctx.array(x)
    for function in (np.sum, np.prod, np.mean):
        got = function(array, axis=0, dtype=np.float32, keepdims=True)
        assert got.dtype == np.float32 and (got.numpy() == function(x, axis=0, dtype=np.float32, keepdims=True)).all()
        with pytest.raises(TypeError, match="no out"):
            function(array, out=array)
    for function in (np.cumsum, np.cumprod):
        for axis in (None, 0, 1):
            got = function(array, axis, dtype=np.int16)
            assert got.dtype == np.int16 and (got.numpy() == function(x, axis, dtype=np.int16)).all()
    assert array.reshape(1, 2, 1, 3).squeeze().shape == (2, 3) and array.reshape(1, 2, 3, 1).squeeze(0).shape == (2, 3, 1)
    with pytest.raises(ValueError, match="not 1"):
        array.squeeze(1)
