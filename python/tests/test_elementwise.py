"""Comparisons, logic, integers, unlike types and NumPy's own functions, beside NumPy."""

import operator

import numpy as np
import pytest
import tuff

# Each type and size, and signed and unsigned ones of a size: the types that are left differ by neither. tests/
# expression_test.cpp has all of them.
INTEGERS = [np.int8, np.uint8, np.uint16, np.int32, np.int64, np.uint64]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def sample(dtype, n=101, seed=1):
    data = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        x = data.standard_normal(n).astype(dtype)
        x[:4] = [np.nan, np.inf, -np.inf, 0]
        return x
    if dtype == np.bool_:
        return data.integers(0, 2, n).astype(bool)
    info = np.iinfo(dtype)
    x = data.integers(info.min, info.max, n, dtype, endpoint=True)
    x[::3] = data.integers(0, 5, len(x[::3]))
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float16, *INTEGERS, np.bool_])
def test_comparisons(ctx, dtype):
    a, b = sample(dtype), sample(dtype, seed=2)
    b[::5] = a[::5]
    x, y = ctx.array(a), ctx.array(b)
    for compare in COMPARISONS if dtype in (np.float32, np.int32) else COMPARISONS[::3]:
        got = compare(x, y)
        assert got.dtype == np.bool_ and (got.numpy() == compare(a, b)).all()
        assert (compare(x, 3).numpy() == compare(a, 3)).all() and (compare(3, x).numpy() == compare(3, a)).all()


def test_integers_beyond_the_type_compare_by_value(ctx):
    x = ctx.array(np.array([0, 200], np.uint8))
    assert (x < 300).numpy().all() and not (x == 456).numpy().any() and (x > -1).numpy().all()
    y = ctx.array(np.array([0, 2**64 - 1], np.uint64))
    assert (y > -1).numpy().all() and (y < 2**64).numpy().all() and (y == 2**64 - 1).numpy().tolist() == [False, True]


def test_a_comparison_broadcasts_and_is_no_key(ctx):
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    x = ctx.array(a)
    assert ((x > ctx.array(a[:, :1])).numpy() == (a > a[:, :1])).all()
    assert (x == None) is False and (x != None) is True and (x == "text") is False  # noqa: E711
    with pytest.raises(TypeError):
        {x: 1}
    with pytest.raises(TypeError, match="NumPy"):
        x == a  # noqa: B015
    with pytest.raises(TypeError, match="NumPy"):
        a == x  # noqa: B015
    with pytest.raises(TypeError):
        x < "text"  # noqa: B015
    with pytest.raises(ValueError):
        bool(x == x)
    assert bool((x == x).all())


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_wraps_as_numpys(ctx, dtype):
    a, b = sample(dtype), sample(dtype, seed=3)
    b[b == 0] = 1
    if np.dtype(dtype).kind == "i":
        b[b == -1] = 2  # the lowest number by -1
    x, y = ctx.array(a), ctx.array(b)
    with np.errstate(over="ignore"):
        for f in (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, operator.and_, operator.or_, operator.xor):
            got = f(x, y)
            assert got.dtype == dtype, f
            assert (got.numpy() == f(a, b)).all(), f
        assert ((x * dtype(3)).numpy() == a * dtype(3)).all() and ((x % 3).numpy() == a % dtype(3)).all()
    assert ((~x).numpy() == ~a).all()
    assert (abs(x).numpy() == abs(a)).all() and ((x // 0).numpy() == 0).all() and ((x % 0).numpy() == 0).all()
    bits = np.dtype(dtype).itemsize * 8
    assert ((x << 3).numpy() == a << dtype(3)).all() and ((x >> 3).numpy() == a >> dtype(3)).all()
    assert ((x << bits).numpy() == 0).all()
    z = ctx.array(a)
    z += 1
    with np.errstate(over="ignore"):
        assert (z.numpy() == a + dtype(1)).all()
    with pytest.raises(OverflowError):
        x + (2**bits)


@pytest.mark.parametrize("first", [np.uint8, np.int32, np.uint64, np.float32, np.bool_])
@pytest.mark.parametrize("second", [np.int8, np.int64, np.float32])
def test_unlike_types_give_the_common_one(ctx, first, second):
    a, b = np.array([1, 0, 1, 3]).astype(first), np.array([0, 1, 1, 2]).astype(second)
    x, y = ctx.array(a), ctx.array(b)
    kinds = {np.dtype(first).kind, np.dtype(second).kind}
    if {first, second} == {np.uint64, np.int8} or {first, second} == {np.uint64, np.int64}:
        with pytest.raises(TypeError, match="no integer type holds both"):
            x + y
        return
    got = x * y
    if kinds & {"f"}:
        assert got.dtype == np.float32  # NumPy has float64 for wide integers
    else:
        assert got.dtype == (np.result_type(a, b))
    assert (got.numpy() == a.astype(np.float64) * b.astype(np.float64)).all()
    assert ((x == y).numpy() == (a == b)).all()


def test_numbers_adopt_the_type_of_the_array(ctx):
    x = ctx.array(np.array([1, 2, 3], np.int32))
    assert (x + 1.5).dtype == np.float32 and (x + 1.5).numpy().tolist() == [2.5, 3.5, 4.5]
    assert (x / 2).dtype == np.float32 and (x / 2).numpy().tolist() == [0.5, 1, 1.5]
    assert (x * 2).dtype == np.int32 and (2 - x).numpy().tolist() == [1, 0, -1]
    assert (ctx.array(np.array([1, 2], np.uint8)) * 2).dtype == np.uint8
    assert (x**2).numpy().tolist() == [1, 4, 9]
    with pytest.raises(TypeError, match="out"):
        x += 1.5
    h = ctx.array(np.array([1, 2], np.float16))
    assert (h * x[:2]).dtype == np.float16
    assert (h + ctx.ones(2)).dtype == np.float32


def test_float64_is_exact(ctx):
    if not ctx.supports("f64"):
        pytest.skip("no float64 on this device")
    a = np.random.default_rng(5).standard_normal(100)
    x = ctx.array(a, np.float64)
    assert x.dtype == np.float64
    for got, want in ((x + 0.1, a + 0.1), (x * x, a * a), (1 / x, 1 / a), (x - 3, a - 3), (np.maximum(x, 0.1), np.maximum(a, 0.1))):
        assert got.dtype == np.float64 and (got.numpy() == want).all()
    assert ((x > 0.1).numpy() == (a > 0.1)).all()
    assert (abs(x).numpy() == abs(a)).all() and ((-x).numpy() == -a).all()


def test_logic_and_where(ctx):
    a, b = sample(np.bool_), sample(np.bool_, seed=4)
    x, y = ctx.array(a), ctx.array(b)
    assert ((x & y).numpy() == a & b).all() and ((x | y).numpy() == a | b).all() and ((x ^ y).numpy() == a ^ b).all()
    assert ((~x).numpy() == ~a).all() and (tuff.logical_not(x).numpy() == ~a).all()
    for name in ("logical_and", "logical_or", "logical_xor"):
        assert (getattr(tuff, name)(x, y).numpy() == getattr(np, name)(a, b)).all()
    f = sample(np.float32)
    z = ctx.array(f)
    assert np.array_equal(tuff.where(x, z, 0).numpy(), np.where(a, f, 0), equal_nan=True)
    assert tuff.where(x, 1, 2).dtype == np.int32 and (tuff.where(x, 1, 2).numpy() == np.where(a, 1, 2)).all()
    assert tuff.where(x, 1.5, 2).dtype == np.float32
    column = ctx.array(np.arange(3, dtype=np.int16).reshape(3, 1))
    assert tuff.where(x[:4], column, np.int16(7)).shape == (3, 4)


def test_floats(ctx):
    a, b = sample(np.float32), sample(np.float32, seed=6)
    x, y = ctx.array(a), ctx.array(b)
    for name in ("isnan", "isinf", "isfinite", "signbit"):
        assert (getattr(tuff, name)(x).numpy() == getattr(np, name)(a)).all(), name
    for name in ("copysign", "nextafter"):
        assert np.array_equal(getattr(tuff, name)(x, y).numpy(), getattr(np, name)(a, b), equal_nan=True), name
    for name, numpy_name in (("atan2", "arctan2"), ("hypot", "hypot"), ("logaddexp", "logaddexp")):
        with np.errstate(invalid="ignore"):
            want = getattr(np, numpy_name)(a.astype(np.float64), b.astype(np.float64))
        np.testing.assert_allclose(getattr(tuff, name)(x, y).numpy(), want, rtol=5e-7, atol=5e-7)
    assert np.array_equal(x.clip(-1, 0.5).numpy(), np.clip(a, -1, 0.5), equal_nan=True)
    assert np.array_equal(tuff.clip(x, max=y).numpy(), np.minimum(a, b), equal_nan=True)
    assert (tuff.isclose(x, x, equal_nan=True).numpy()).all()
    assert tuff.isclose(x, x).numpy().tolist() == (~np.isnan(a)).tolist()


def test_reductions_of_bools_and_small_integers(ctx):
    a = sample(np.bool_, 600).reshape(20, 30)
    x = ctx.array(a)
    for axis in (None, 0, 1):
        assert (x.any(axis).numpy() == a.any(axis)).all() and (x.all(axis).numpy() == a.all(axis)).all()
        assert (x.sum(axis).numpy() == a.sum(axis)).all()
        assert (tuff.count_nonzero(x, axis).numpy() == np.count_nonzero(a, axis)).all()
    assert x.any().dtype == np.bool_ and x.any().shape == ()
    assert not bool(ctx.zeros(0, np.bool_).any()) and bool(ctx.zeros(0, np.bool_).all())
    f = ctx.array(np.array([0, np.nan, -0.0], np.float32))
    assert int(tuff.count_nonzero(f)) == 1 and bool(f.any()) and not bool(f.all())
    b = sample(np.int16, 500)
    y = ctx.array(b)
    assert int(y.sum()) == b.astype(np.int64).sum() and int(y.max()) == b.max() and y.max().dtype == np.int16
    np.testing.assert_allclose(float(y.mean()), b.mean(), rtol=1e-5)


def test_assignment_through_a_mask(ctx):
    a = sample(np.float32).reshape(1, 101)
    x = ctx.array(a)
    mask = np.isnan(a) | (a > 1)
    x[tuff.isnan(x) | (x > 1)] = 0
    a[mask] = 0
    assert (x.numpy() == a).all()
    x[x < 0] = ctx.full((), 7)
    a[a < 0] = 7
    assert (x.numpy() == a).all()
    with pytest.raises(IndexError, match="mask"):
        x[ctx.zeros(3, np.bool_)] = 1
    with pytest.raises((ValueError, TypeError)):
        ctx.array(np.array([1, 2], np.int8))[ctx.ones(2, np.bool_)] = 300


def test_numpys_functions_run_on_the_device_or_refuse(ctx):
    a = np.abs(sample(np.float32, 60).reshape(3, 4, 5))
    a[~np.isfinite(a)] = 1
    x = ctx.array(a)
    for got, want in [
        (np.exp(x), np.exp(a)),
        (np.add(x, 1), a + 1),
        (np.sqrt(x), np.sqrt(a)),
        (np.multiply(2, x), 2 * a),
        (np.sum(x, axis=1), a.sum(1)),
        (np.mean(x), a.mean()),
        (np.max(x, axis=0, keepdims=True), a.max(0, keepdims=True)),
        (np.concatenate([x, x], axis=1), np.concatenate([a, a], axis=1)),
        (np.concatenate([x, x], axis=None), np.concatenate([a, a], axis=None)),
        (np.stack([x, x], 1), np.stack([a, a], 1)),
        (np.where(x > 1, x, 0), np.where(a > 1, a, 0)),
        (np.transpose(x), a.T),
        (np.transpose(x, (1, 0, 2)), a.transpose(1, 0, 2)),
        (np.squeeze(np.expand_dims(x, 1)), a),
        (np.reshape(x, (12, 5)), a.reshape(12, 5)),
        (np.zeros_like(x), np.zeros_like(a)),
        (np.clip(x, 0.5, 1), np.clip(a, 0.5, 1)),
        (np.cumsum(x, axis=2), np.cumsum(a, 2)),
        (np.isnan(x), np.isnan(a)),
        (np.broadcast_to(x[0], (3, 4, 5)), np.broadcast_to(a[0], (3, 4, 5))),
    ]:
        assert isinstance(got, tuff.Array) and got.shape == want.shape and got.dtype == want.dtype
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-6)
    assert np.shape(x) == (3, 4, 5) and np.ndim(x) == 3 and np.size(x) == 60
    assert np.array_equal(x, x) and np.allclose(x, x) and not np.array_equal(x, x + 1)
    out = ctx.zeros(x.shape)
    assert np.add(x, x, out=out) is out
    for refused in (lambda: np.add.reduce(x), lambda: np.emath.sqrt(x), lambda: np.common_type(x)):
        with pytest.raises(TypeError, match="does not run on a device"):
            refused()
    with pytest.raises(TypeError, match="NumPy"):
        np.concatenate([x, a])
    with pytest.raises(TypeError, match="NumPy"):
        np.add(a, x)
    with pytest.raises(TypeError):
        np.add(a, a, out=x)
    with pytest.raises(TypeError, match="takes no where"):
        np.add(x, x, where=True)


def test_ufuncs_with_a_dtype(ctx):
    x = np.arange(1, 4, dtype=np.int8)
    for function in (np.add, np.multiply):
        got = function(ctx.array(x), ctx.array(100 * np.ones(3), np.uint8), dtype=np.float32)
        assert got.dtype == np.float32 and (got.numpy() == function(x, np.uint8(100), dtype=np.float32)).all()
    assert np.add(ctx.array(x), 1, dtype=None).dtype == np.int8
    with pytest.raises(TypeError, match="takes no where"):
        np.add(ctx.array(x), 1, where=True)
