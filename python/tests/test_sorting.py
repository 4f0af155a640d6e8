"""Sorting beside NumPy's."""

import numpy as np
import pytest
import tuff

TYPES = [np.float32, np.float16, np.float64, np.int32, np.uint32, np.int8, np.uint8, np.int64, np.uint64, np.int16, np.uint16, np.bool_]


def _values(dtype, shape, seed=1):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        x = rng.standard_normal(shape).astype(dtype)
        x.flat[:: max(1, x.size // 9)] = np.nan
        x.flat[1 :: max(1, x.size // 7)] = -0.0
        x.flat[2 :: max(1, x.size // 7)] = 0.0
        return x
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True) if info else rng.integers(0, 2, shape).astype(dtype)
    x.flat[:: max(1, x.size // 11)] = x.flat[:1]  # equal elements
    return x


@pytest.mark.parametrize("dtype", TYPES)
def test_sort_is_numpys(ctx, dtype):
    for shape, axis in (((1000,), 0), ((7, 33), -1), ((33, 7), 0), ((2, 3000), 1), ((2, 3), None), ((0, 3), 1)):
        x = _values(dtype, shape)
        array = ctx.array(x, dtype=x.dtype)
        got, order = tuff.sort(array, axis), tuff.argsort(array, axis)
        assert got.dtype == dtype and order.dtype == np.int64
        places = np.argsort(x, axis=axis, kind="stable")
        np.testing.assert_array_equal(order.numpy(), places)
        want = np.take_along_axis(x if axis is not None else x.ravel(), places, -1 if axis is None else axis)
        assert got.numpy().tobytes() == want.tobytes()
        np.testing.assert_array_equal(np.sort(array, axis=axis).numpy(), np.sort(x, axis=axis))
        np.testing.assert_array_equal(np.argsort(array, axis).numpy(), order.numpy())


def test_descending_keeps_the_order_of_equals_and_has_nan_last(ctx):
    x = np.array([2, np.nan, -0.0, 5, 0.0, 2, np.inf, np.nan, -np.inf], np.float32)
    order = tuff.argsort(ctx.array(x, dtype=x.dtype), descending=True).numpy()
    assert order.tolist() == [6, 3, 0, 5, 2, 4, 8, 1, 7]
    assert tuff.sort(ctx.array([3, 1, 2], dtype=np.int32), descending=True).numpy().tolist() == [3, 2, 1]


def test_sort_in_place_and_into_out(ctx):
    x = np.random.default_rng(2).permutation(5000).astype(np.float32).reshape(5, 1000)
    array = ctx.array(x)
    other = ctx.empty(x.shape)
    assert tuff.sort(array, 0, out=other) is other
    np.testing.assert_array_equal(other.numpy(), np.sort(x, 0))
    assert array.sort() is None
    np.testing.assert_array_equal(array.numpy(), np.sort(x))
    np.testing.assert_array_equal(ctx.array(x).argsort(0).numpy(), np.argsort(x, 0))


def test_topk(ctx):
    for shape, k, axis in (((10,), 3, 0), ((4, 5000), 7, -1), ((5000, 3), 1, 0), ((2, 3000), 2999, 1), ((3, 4), 0, 1)):
        x = np.random.default_rng(3).integers(-50, 50, shape).astype(np.int32)
        for largest in (True, False):
            values, indices = tuff.topk(ctx.array(x, dtype=x.dtype), k, axis, largest=largest)
            order = np.take(np.argsort(-x if largest else x, axis, kind="stable"), range(k), axis)
            np.testing.assert_array_equal(indices.numpy(), order)
            np.testing.assert_array_equal(values.numpy(), np.take_along_axis(x, order, axis))


def test_partitions_are_sorted(ctx):
    x = np.random.default_rng(4).standard_normal((3, 100)).astype(np.float32)
    array = ctx.array(x)
    np.testing.assert_array_equal(tuff.partition(array, 7).numpy(), np.sort(x))
    np.testing.assert_array_equal(np.partition(array, [1, -1], 0).numpy(), np.sort(x, 0))
    np.testing.assert_array_equal(tuff.argpartition(array, -1).numpy(), np.argsort(x))
    for wrong in (100, -101):
        with pytest.raises(ValueError, match="kth"):
            tuff.partition(array, wrong)


def test_quantiles_are_numpys(ctx):
    # Both interpolate in float32, with two roundings or three.
    near = dict(rtol=2.0**-20, atol=2.0**-20)
    for shape, axis in (((1001,), None), ((1000,), 0), ((7, 30), -1), ((3, 4, 5), 1), ((3, 4, 5), None), ((2, 1), 1)):
        x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
        array = ctx.array(x)
        np.testing.assert_allclose(tuff.median(array, axis).numpy(), np.median(x, axis), **near)
        np.testing.assert_allclose(np.median(array, axis, keepdims=True).numpy(), np.median(x, axis, keepdims=True), **near)
        for q in (0.3, 1.0, [0.0, 0.5, 0.99]):
            for method in ("linear", "lower", "higher", "midpoint", "nearest"):
                keepdims = method == "linear"
                got = tuff.quantile(array, q, axis, method=method, keepdims=keepdims).numpy()
                want = np.quantile(x.astype(np.float64), q, axis, method=method, keepdims=keepdims)
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, **near)
        np.testing.assert_allclose(np.percentile(array, [5, 95], axis).numpy(), np.percentile(x, [5, 95], axis), **near)


def test_quantiles_of_nan_infinity_and_integers(ctx):
    x = np.array([[1, np.nan, 3], [4, 5, 9], [-np.inf, 0, np.inf]], np.float32)
    np.testing.assert_array_equal(tuff.median(ctx.array(x), 1).numpy(), [np.nan, 5, 0])
    got = tuff.median(ctx.array([1, 2, 4, 10], dtype=np.int32))
    assert got.dtype == np.float32 and got.shape == () and got.numpy() == 3
    assert tuff.quantile(ctx.array([[1, 2], [3, 4]], dtype=np.int8), [0, 1], 0).numpy().tolist() == [[1, 2], [3, 4]]


def test_what_cannot_be_sorted_says_so(ctx):
    array = ctx.zeros((3, 4))
    with pytest.raises(ValueError, match="axis"):
        tuff.sort(array, 2)
    with pytest.raises(ValueError, match="0-d"):
        tuff.sort(ctx.array(np.float32(1)))
    with pytest.raises(TypeError, match="NumPy"):
        tuff.argsort(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match="k is 5"):
        tuff.topk(array, 5)
    with pytest.raises(tuff.TuffError, match="overlaps"):
        tuff.sort(array, out=array)
    with pytest.raises(TypeError):
        tuff.sort(array, out=ctx.zeros((3, 4), np.float16))
    with pytest.raises(ValueError, match="q is 1.5"):
        tuff.quantile(array, 1.5)
    with pytest.raises(ValueError, match="method"):
        tuff.quantile(array, 0.5, method="median")
    with pytest.raises(ValueError, match="no elements"):
        tuff.median(ctx.zeros((0,)))
    with pytest.raises(ValueError, match="8"):
        tuff.sort(ctx.zeros((1,) * 9))
