"""Scans beside NumPy's, in float64."""

import numpy as np
import pytest
import tuff

U = 2.0**-24


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("shape, axis", [((1000,), 0), ((7, 33), 1), ((7, 33), 0), ((3, 4, 5), -2), ((2, 5000), 1), ((2, 3), None)])
def test_cumsum_is_numpys(ctx, dtype, shape, axis):
    x = np.random.default_rng(3).uniform(-1, 1, shape).astype(dtype)
    want = np.cumsum(x.astype(np.float64), axis=axis)
    size = np.cumsum(np.abs(x).astype(np.float64), axis=axis)
    n = x.size if axis is None else shape[axis]
    bound = min(n, 6000) * U * size * 1.001 + np.abs(want) * (2.0**-11 if dtype == np.float16 else U) + 2.0**-25
    array = ctx.array(x, dtype=x.dtype)
    for got in (tuff.cumsum(array, axis), array.cumsum(axis)):
        assert got.dtype == dtype and got.shape == want.shape
        assert (np.abs(got.numpy().astype(np.float64) - want) <= bound).all()


def test_cumprod_of_small_integers_is_exact(ctx):
    x = np.array([[1, 2, 3, 4], [2, -1, 0, 5]], np.float32)
    array = ctx.array(x, dtype=x.dtype)
    assert (tuff.cumprod(array, 1).numpy() == np.cumprod(x, 1)).all()
    assert (array.cumprod(0).numpy() == np.cumprod(x, 0)).all()


def test_exclusive_and_reverse(ctx):
    array = ctx.array(np.arange(1, 6, dtype=np.float32))
    assert tuff.cumsum(array, exclusive=True).numpy().tolist() == [0, 1, 3, 6, 10]
    assert tuff.cumsum(array, reverse=True).numpy().tolist() == [15, 14, 12, 9, 5]
    assert tuff.cumsum(array, exclusive=True, reverse=True).numpy().tolist() == [14, 12, 9, 5, 0]
    assert tuff.cumprod(array, exclusive=True).numpy().tolist() == [1, 1, 2, 6, 24]
    assert tuff.cumsum(array, out=array) is array
    assert array.numpy().tolist() == [1, 3, 6, 10, 15]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.bool_])
@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_integers_are_exact_and_wrap(ctx, name, dtype):
    rng = np.random.default_rng(4)
    if dtype == np.bool_:
        host = rng.integers(0, 2, (5, 33, 7)).astype(dtype)
    else:
        ends = np.iinfo(dtype)
        host = rng.integers(ends.min, ends.max, (5, 33, 7), dtype=dtype, endpoint=True) | dtype(name == "cumprod")
    array = ctx.array(host, dtype=dtype)
    for axis in (None, 0, 1, -1):
        got, want = getattr(tuff, name)(array, axis), getattr(np, name)(host, axis=axis)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got.numpy(), want)
        if dtype != np.bool_:  # an out of the array's own type
            same = ctx.empty(want.shape, dtype)
            assert getattr(tuff, name)(array, axis, out=same) is same
            np.testing.assert_array_equal(same.numpy(), want.astype(dtype))
    assert array.numpy().tobytes() == host.tobytes()
    assert tuff.cumsum(ctx.array([2**31 - 1, 1], dtype=np.int32)).numpy().tolist() == [2**31 - 1, 2**31]
    assert tuff.cumprod(ctx.array([3, 5, 7], dtype=np.int32), exclusive=True, reverse=True).numpy().tolist() == [35, 7, 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.uint32, np.int64])
def test_maxima_and_minima_so_far(ctx, dtype):
    host = (np.random.default_rng(5).standard_normal((4, 300, 3)) * 40).astype(np.int64).astype(dtype)
    array = ctx.array(host, dtype=dtype)
    for function, numpys in ((tuff.cummax, np.maximum), (tuff.cummin, np.minimum)):
        for axis in (0, 1, -1):
            got = function(array, axis)
            assert got.dtype == dtype
            np.testing.assert_array_equal(got.numpy(), numpys.accumulate(host, axis=axis))
        np.testing.assert_array_equal(function(array).numpy(), numpys.accumulate(host.ravel()))
        backwards = numpys.accumulate(host[:, ::-1], axis=1)[:, ::-1]
        np.testing.assert_array_equal(function(array, 1, reverse=True).numpy(), backwards)
    if np.dtype(dtype).kind == "f":
        x = ctx.array(np.array([1, np.nan, 3], dtype), dtype=dtype)
        assert np.isnan(tuff.cummax(x).numpy()).tolist() == [False, True, True]


def test_the_standards_cumulative_functions(ctx):
    x = ctx.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)
    got = tuff.cumulative_sum(x, axis=1, include_initial=True)
    assert got.dtype == np.int64 and got.numpy().tolist() == [[0, 1, 3, 6], [0, 4, 9, 15]]
    assert tuff.cumulative_prod(x, axis=0, include_initial=True).numpy().tolist() == [[1, 1, 1], [1, 2, 3], [4, 10, 18]]
    assert tuff.cumulative_sum(x, axis=-1, dtype=np.float32).dtype == np.float32
    small = tuff.cumulative_sum(ctx.array([100, 100], dtype=np.int8), dtype=np.int8)
    assert small.dtype == np.int8 and small.numpy().tolist() == [100, -56]
    with pytest.raises(ValueError, match="axis is needed"):
        tuff.cumulative_sum(x)


def test_what_cannot_be_scanned_says_so(ctx):
    array = ctx.zeros((3, 4))
    with pytest.raises(ValueError, match="axis"):
        tuff.cumsum(array, 2)
    with pytest.raises(ValueError, match="0-d"):
        tuff.cumsum(ctx.array(np.float32(1)), 0)
    with pytest.raises(TypeError):
        tuff.cumsum(np.zeros(3, np.float32))
    with pytest.raises((ValueError, TypeError)):
        tuff.cumsum(array, 1, out=ctx.zeros((4, 3)))
    with pytest.raises(tuff.TuffError, match="dtype"):
        tuff.cummax(ctx.array([True, False]), 0)
    assert tuff.cumsum(ctx.zeros((0, 3)), 0).shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("shape, axis", [((1000,), 0), ((7, 33), 1), ((7, 33), 0), ((3, 4, 5), -2), ((2, 5000), 1), ((2, 3), None)])
def test_cumlogsumexp_is_logaddexp_accumulated(ctx, dtype, shape, axis):
    if dtype == np.float64 and not ctx.supports("cumlogsumexp.f64"):
        pytest.skip("the device computes no float64")
    x = np.random.default_rng(5).uniform(-50, 50, shape).astype(dtype)
    wide = x.astype(np.longdouble) if axis is not None else x.astype(np.longdouble).ravel()
    along = axis or 0
    want, most = np.logaddexp.accumulate(wide, along), np.maximum.accumulate(wide, along)
    n = wide.shape[along]
    bound = (2.0**-49 if dtype == np.float64 else 2.0**-20) * (min(n, 6000) + abs(want) + abs(most))
    bound += (2.0**-11 if dtype == np.float16 else 0) * abs(want)
    array = ctx.array(x, dtype)
    got = tuff.cumlogsumexp(array, axis)
    assert got.dtype == dtype and got.shape == want.shape and (abs(got.numpy() - want) <= bound).all()
    if axis is not None:
        assert (np.logaddexp.accumulate(array, axis).numpy() == got.numpy()).all()
        turned = tuff.cumlogsumexp(array, axis, exclusive=True, reverse=True).numpy()
        flipped = tuff.cumlogsumexp(tuff.flip(array, axis), axis, exclusive=True)
        assert (np.flip(flipped.numpy(), axis) == turned).all() and np.isneginf(np.take(turned, -1, axis)).all()


def test_cumlogsumexp_of_other_types(ctx):
    big = ctx.array(np.float32([5000, 5000, -5000]))
    assert np.allclose(tuff.cumlogsumexp(big).numpy(), 5000 + np.log([1, 2, 2]), rtol=2.0**-20)
    whole = tuff.cumlogsumexp(ctx.array(np.int32([0, 0, 0])))
    assert whole.dtype == np.float32 and np.allclose(whole.numpy(), np.log([1, 2, 3]))
    with pytest.raises(TypeError, match="no such scan"):
        tuff.cumlogsumexp(ctx.array(np.complex64([1])))


def test_accumulate(ctx, rng):
    x = rng.integers(-5, 6, (4, 7)).astype(np.float32)
    array = ctx.array(x)
    for function in (np.add, np.multiply, np.maximum, np.minimum):
        for axis in (0, 1, -1):
            assert (function.accumulate(array, axis).numpy() == function.accumulate(x, axis)).all()
        assert (function.accumulate(array).numpy() == function.accumulate(x)).all()
    out = ctx.empty((4, 7))
    assert np.add.accumulate(array, 1, out=out) is out
    with pytest.raises(TypeError, match="subtract.accumulate does not run"):
        np.subtract.accumulate(array)
    with pytest.raises(TypeError, match="no dtype"):
        np.add.accumulate(array, dtype=np.float64)
