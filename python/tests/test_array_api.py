"""What the array API standard's conformance suite asks beyond the other tests: docs/array-api.md says how to run it."""

import operator

import numpy as np
import pytest

import tuff


def same(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    assert np.array_equal(got.numpy(), wanted)


def test_default_types(ctx):
    assert tuff.asarray(7, device=ctx).dtype == tuff.asarray([1, 2], device=ctx).dtype == np.int64
    assert tuff.asarray(True, device=ctx).dtype == np.bool_ and tuff.asarray([1.5], device=ctx).dtype == np.float32
    assert tuff.asarray([1j], device=ctx).dtype == np.complex64
    assert tuff.asarray(np.array([1], np.int16), device=ctx).dtype == np.int16
    for value, dtype in ((True, np.bool_), (3, np.int64), (0.5, np.float32), (1j, np.complex64)):
        assert tuff.full(2, fill_value=value, device=ctx).dtype == dtype
    assert tuff.full(2, 2**40 + 1, device=ctx).numpy()[0] == 2**40 + 1
    for create in (tuff.zeros, tuff.ones, tuff.empty):
        assert create(2, dtype=None, device=ctx).dtype == np.float32
    assert tuff.eye(2, dtype=None, device=ctx).dtype == np.float32


def test_arrays_like_others_on_a_device(ctx):
    x = ctx.ones((2, 3), np.int8)
    for create in (tuff.zeros_like, tuff.ones_like, tuff.empty_like):
        assert create(x, device=ctx).context is ctx and create(x).dtype == np.int8
    assert tuff.astype(x, np.float32, device=ctx).dtype == np.float32
    with tuff.Context(backend="host") as other:
        assert tuff.full_like(x, 3, device=other).context is other
        moved = tuff.astype(x, np.float32, device=other)
        assert moved.context is other and moved.numpy().tolist() == [[1, 1, 1]] * 2
    with pytest.raises(TypeError, match="device"):
        tuff.zeros_like(x, device="gpu")


def test_an_integer_without_axes_is_an_index(ctx):
    assert operator.index(ctx.array(np.array(3, np.int8))) == 3 and [5, 6, 7][ctx.array(np.array(1))] == 6
    for x in (ctx.ones(1, np.int32), ctx.ones((), np.float32), ctx.ones((), np.bool_)):
        with pytest.raises(TypeError, match="index"):
            operator.index(x)


def test_limits_are_numbers_of_python(ctx):
    limits = tuff.finfo(np.float32)
    assert all(type(value) is float for value in (limits.eps, limits.max, limits.min, limits.smallest_normal))
    assert type(limits.bits) is int and limits.dtype == np.float32 and limits.max == np.finfo(np.float32).max
    assert tuff.finfo(ctx.ones(1, np.complex64)).dtype == np.float32


def test_masks_without_axes(ctx):
    host = np.arange(6, dtype=np.float32).reshape(2, 3)
    x, yes, no = ctx.array(host), ctx.array(np.array(True)), ctx.array(np.array(False))
    same(x[yes], host[np.array(True)])
    same(x[no], host[np.array(False)])
    x[no] = 5
    same(x, host)
    x[yes] = 7
    same(x, np.full((2, 3), 7, np.float32))


def test_axes_that_are_not_there_are_index_errors_too(ctx):
    for error in (ValueError, IndexError):
        with pytest.raises(error, match="axis 2"):
            ctx.ones((2, 2)).sum(2)
        with pytest.raises(error, match="axis 4"):
            tuff.expand_dims(ctx.ones((2, 2, 2)), axis=4)


def test_concat_of_unlike_types_and_without_an_axis(ctx):
    a, b = np.arange(4, dtype=np.uint8).reshape(2, 2), np.array([[300, -1]], np.int16)
    same(tuff.concat([ctx.array(a), ctx.array(b)]), np.concatenate([a, b]))
    same(tuff.concat([ctx.array(a), ctx.array(b)], axis=None), np.concatenate([a, b], axis=None))
    with pytest.raises(TypeError, match="no integer type"):
        tuff.concat([ctx.ones(1, np.uint64), ctx.ones(1, np.int8)])


def test_concat_of_8_bit_floats(ctx):
    pytest.importorskip("ml_dtypes")
    small = ctx.ones(2).astype("float8_e4m3fn")
    for other in (ctx.ones(1, np.int32), ctx.ones(1, np.uint8), ctx.ones(1).astype("float8_e5m2")):
        for pair in ([small, other], [other, small]):
            with pytest.raises(TypeError, match="operands of .* and .*: convert one of them by astype"):
                tuff.concat(pair)
    assert tuff.concat([small, ctx.ones(1, np.bool_)]).dtype == small.dtype
    assert tuff.concat([small, ctx.ones(1, np.float16)]).dtype == np.float16


def test_repeats_of_each_element(ctx):
    host = np.arange(6).reshape(3, 2)
    x = ctx.array(host)
    same(tuff.repeat(x, ctx.array(np.array([2, 0, 1])), axis=0), np.repeat(host, [2, 0, 1], 0))
    same(tuff.repeat(x, ctx.array(np.array([2]))), np.repeat(host, 2))
    with pytest.raises(ValueError, match="negative"):
        tuff.repeat(x, ctx.array(np.array([2, -1, 1])), axis=0)
    with pytest.raises(TypeError, match="repeats"):
        tuff.repeat(x, ctx.array(np.array([2, 1])), axis=0)
    with pytest.raises(TypeError, match="repeats"):
        tuff.repeat(x, ctx.ones(3), axis=0)


def test_reshape_and_copies(ctx):
    x = ctx.array(np.arange(6))
    assert tuff.reshape(x, (2, 3), copy=False).buffer.same_range(x.buffer)
    assert not tuff.reshape(x, (2, 3), copy=True).buffer.same_range(x.buffer)
    with pytest.raises(ValueError, match="copy"):
        tuff.reshape(x.reshape(2, 3)[:, ::2], (4,), copy=False)


def test_types_of_sums(ctx):
    x = ctx.array(np.array([200, 100], np.uint8))
    assert tuff.sum(x).dtype == np.uint64 and tuff.sum(x, dtype=np.uint8).item() == 300 % 256
    assert tuff.prod(x.astype(np.int16), dtype=np.int16).item() == np.array(20000, np.int16)
    assert tuff.sum(x, dtype=np.float32).dtype == np.float32 and tuff.trace(ctx.ones((2, 2)), dtype=np.float16).dtype == np.float16
    assert tuff.sum(ctx.array(np.array([30000, 30000], np.int16)), dtype=np.int16).item() == 60000 - 65536
    for value, of, to in ((200, np.uint8, np.int8), (2**31, np.uint32, np.int32), (-1, np.int8, np.uint64), (2**63, np.uint64, np.int64)):
        x, wanted = ctx.array(np.array([value], of)), np.array([value], of).sum(dtype=to)
        same(tuff.sum(x, dtype=to), wanted)
        same(tuff.prod(x, dtype=to), wanted)
        same(tuff.trace(x.reshape(1, 1), dtype=to), wanted)
    y = ctx.array(np.array([2**63], np.uint64))
    tuff.sum(y, (), dtype=np.int64)[0] = 0
    assert y.item() == 2**63


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64])
def test_products_of_integers_have_their_type(ctx, dtype):
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 120, (2, 1, 3, 4)).astype(dtype), rng.integers(0, 120, (5, 4, 2)).astype(dtype)
    x, y = ctx.array(a), ctx.array(b)
    same(x @ y, a @ b)
    same(x[0, 0] @ y[0, :, 0], a[0, 0] @ b[0, :, 0])
    same(x[0, 0, 0] @ y, a[0, 0, 0] @ b)
    same(tuff.outer(x, y), np.outer(a, b))
    same(tuff.tensordot(x, y[0], 1), np.tensordot(a, b[0], 1))
    assert tuff.vecdot(x, x).dtype == dtype
    with pytest.raises(ValueError, match="columns"):
        x @ x


def test_products_of_integers_are_summed_in_pieces(ctx, monkeypatch):
    monkeypatch.setattr("tuff._operations._MOST_PRODUCTS", 1000)
    rng = np.random.default_rng(6)
    for left, right in (((2, 1, 30, 70), (5, 70, 20)), ((7000,), (7000,)), ((70,), (5, 70, 20)), ((30, 70), (70,)), ((3, 0), (0, 4))):
        a, b = rng.integers(-100, 100, left).astype(np.int16), rng.integers(-100, 100, right).astype(np.int16)
        same(ctx.array(a) @ ctx.array(b), np.asarray(a @ b))
    if ctx.device.backend != "host":
        return  # there freed memory is used again when the device has finished with it, so that a peak depends on its speed
    a = ctx.array(rng.integers(-100, 100, (128, 128)))
    ctx.synchronize()
    ctx.trim()
    ctx.reset_peak()
    a @ a
    assert ctx.memory()["bytes_peak"] < 16 * a.nbytes  # all products of pairs are 128 * a.nbytes


def test_stacks_of_matrices_broadcast(ctx):
    rng = np.random.default_rng(5)
    a, b = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 1, 3, 4), (5, 4, 2)))
    x, y = ctx.array(a), ctx.array(b)
    same(x @ y, a @ b)
    same((x + 0j) @ y, (a @ b).astype(np.complex64))
    same(x @ ctx.array(b.swapaxes(1, 2).copy()).mT, a @ b)
    with pytest.raises(ValueError, match="stacks differ"):
        ctx.ones((2, 3, 4)) @ ctx.ones((3, 4, 5))
    for x, y in ((x, y), (ctx.ones((2, 2), np.int32), ctx.ones((2, 2), np.int32))):
        with pytest.raises(ValueError, match="beta needs out"):
            tuff.matmul(x, y, beta=1.0)


def test_vecdot_conjugates_its_first_operand(ctx):
    a, b = np.array([1 + 2j, 3j], np.complex64), np.array([2, 1 - 1j], np.complex64)
    assert complex(tuff.vecdot(ctx.array(a), ctx.array(b))) == np.vdot(a, b)


def test_logaddexp_of_float64(ctx):
    if not ctx.supports("expr.f64"):
        pytest.skip("no float64")
    a, b = np.array([1, -700, np.inf, -np.inf, 0.1]), np.array([2, -700.5, 1, -np.inf, np.nan])
    got = tuff.logaddexp(ctx.array(a, np.float64), ctx.array(b, np.float64)).numpy()
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp(a, b)
    assert np.allclose(got, wanted, rtol=1e-15, atol=0, equal_nan=True)


def test_nextafter_of_float64(ctx):
    if not ctx.supports("expr.f64") or not ctx.supports("expr.i64"):
        pytest.skip("no float64, or no int64")
    edges = np.array([0.0, -0.0, 1, -1, 1.5, 2.0**-1074, -(2.0**-1074), 2.0**-1022, np.finfo(float).max, np.inf, -np.inf, np.nan, 1 + 2.0**-52])
    a, b = np.meshgrid(edges, edges)
    with np.errstate(all="ignore"):
        wanted = np.nextafter(a, b)
    got = tuff.nextafter(ctx.array(a, np.float64), ctx.array(b, np.float64)).numpy()
    numbers = ~np.isnan(wanted)
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    assert np.array_equal(got[numbers].view(np.int64), wanted[numbers].view(np.int64))


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    "name, argument, wanted",
    [
        ("acos", complex(0, NAN), complex(np.pi / 2, NAN)),
        ("acos", complex(INF, 1), complex(0, -INF)),
        ("acos", complex(NAN, INF), complex(NAN, -INF)),
        ("acosh", complex(0, NAN), complex(NAN, np.pi / 2)),
        ("acosh", complex(NAN, INF), complex(INF, NAN)),
        ("acosh", complex(-INF, INF), complex(INF, 3 * np.pi / 4)),
        ("asinh", complex(NAN, 0), complex(NAN, 0)),
        ("asinh", complex(NAN, INF), complex(INF, NAN)),
        ("asinh", complex(INF, INF), complex(INF, np.pi / 4)),
        ("atanh", complex(0, NAN), complex(0, NAN)),
        ("atanh", complex(INF, NAN), complex(0, NAN)),
        ("atanh", complex(NAN, INF), complex(0, np.pi / 2)),
        ("atanh", complex(1, 0), complex(INF, 0)),
        ("expm1", complex(-0.0, 0), complex(0, 0)),
        ("expm1", complex(-INF, 2), complex(-1, 0)),
        ("sign", complex(-0.0, -0.0), complex(0, 0)),
        ("tanh", complex(1e154, NAN), complex(NAN, NAN)),
        ("tanh", complex(INF, NAN), complex(1, 0)),
        ("log1p", complex(-1, 0), complex(-INF, 0)),
        ("exp", complex(-INF, INF), complex(0, 0)),
        ("sqrt", complex(NAN, -INF), complex(INF, -INF)),
    ],
)
def test_special_values_of_complex_functions(ctx, name, argument, wanted):
    if not ctx.supports("expr.c128"):
        pytest.skip("no float64")
    got = complex(getattr(tuff, name)(ctx.array([argument], np.complex128))[0])
    assert np.allclose([got.real, got.imag], [wanted.real, wanted.imag], rtol=1e-15, equal_nan=True), got
