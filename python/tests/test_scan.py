"""cumsum and cumprod beside NumPy's, in float64."""

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


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_int32_is_exact_modulo_2_to_32(ctx, name):
    host = np.random.default_rng(4).integers(-(2**31), 2**31, (5, 33, 7)).astype(np.int32) | (name == "cumprod")
    array = ctx.array(host, dtype=np.int32)
    for axis in (None, 0, 1, -1):
        got = getattr(tuff, name)(array, axis)
        assert got.dtype == np.int32
        np.testing.assert_array_equal(got.numpy(), getattr(np, name)(host, axis=axis, dtype=np.int32))
    assert tuff.cumsum(ctx.array([2**31 - 1, 1], dtype=np.int32)).numpy().tolist() == [2**31 - 1, -(2**31)]
    assert tuff.cumprod(ctx.array([3, 5, 7], dtype=np.int32), exclusive=True, reverse=True).numpy().tolist() == [35, 7, 1]


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
        tuff.cumsum(ctx.array(np.arange(3), dtype=np.uint32), 0)
    assert tuff.cumsum(ctx.zeros((0, 3)), 0).shape == (0, 3)
