"""Permutation and casts against NumPy."""

import itertools

import numpy as np
import pytest

import tuff


def test_transpose(ctx, rng):
    for dtype in (np.float32, np.float16, np.float64, np.int8, np.uint32, np.int64, np.uint16, np.bool_):
        host = rng.integers(0, 100, (3, 4, 5, 6)).astype(dtype)
        x = ctx.array(host, dtype=dtype)
        for order in itertools.permutations(range(4)):
            assert np.array_equal(x.transpose(*order).numpy(), host.transpose(order))
        assert np.array_equal(x.transpose().numpy(), host.T)
        assert np.array_equal(x.transpose((0, -1, 1, 2)).numpy(), host.transpose(0, -1, 1, 2))
        assert np.array_equal(x.swapaxes(0, -2).numpy(), host.swapaxes(0, -2))
        assert np.array_equal(x.mT.copy().numpy(), host.swapaxes(-1, -2))
    out = ctx.empty((6, 5))
    x = ctx.array(rng.standard_normal((5, 6)))
    assert tuff.permute(x, (1, 0), out=out) is out
    assert np.array_equal(out.numpy(), x.numpy().T)
    with pytest.raises(ValueError):
        x.transpose(0, 0)
    with pytest.raises(ValueError):
        x.transpose(0)


def test_astype(ctx, rng):
    host = np.concatenate([rng.standard_normal(1000) * 100, [np.inf, -np.inf, 1e10, -1e10, 0.5, -0.5]])
    x = ctx.array(host, dtype=np.float64)
    for dtype in (np.float32, np.float16):
        with np.errstate(over="ignore"):
            assert np.array_equal(x.astype(dtype).numpy(), host.astype(dtype))
    for dtype in (np.int32, np.uint32, np.int8, np.uint8, np.int16, np.uint16, np.int64, np.uint64):
        info = np.iinfo(dtype)
        whole = x.astype(dtype)
        assert whole.dtype == dtype
        clipped = [info.max if np.isinf(v) and v > 0 else max(int(max(v, -(2.0**64))), info.min) for v in host]
        assert np.array_equal(whole.numpy(), np.array([min(v, info.max) for v in clipped], dtype))
        assert np.array_equal(whole.astype(np.float64).numpy(), whole.numpy().astype(np.float64))
    assert ctx.array([np.nan]).astype(np.int32).item() == 0
    truth = ctx.array([0.0, -0.0, 1e-30, np.nan, 2]).astype(np.bool_)
    assert truth.numpy().tolist() == [False, False, True, True, True]
    assert truth.astype(np.int64).numpy().tolist() == [0, 0, 1, 1, 1]
    with pytest.raises(TypeError):
        x.astype(np.clongdouble)


def test_astype_of_64_bit_integers_rounds_once(ctx):
    # 2**53 + 2**29 + 1 rounds up to float32; rounded to float64 first, it is a tie and goes down.
    host = np.array([2**53 + 2**29 + 1, -(2**53) - 2**29 - 1, 2**63 - 1, -(2**63), 0, 2**62 + 2**38 + 1], np.int64)
    x = ctx.array(host)
    for dtype in (np.float32, np.float64, np.float16):
        with np.errstate(over="ignore"):
            assert np.array_equal(x.astype(dtype).numpy(), host.astype(dtype))
    assert np.array_equal(x.astype(np.uint64).numpy(), np.maximum(host, 0).astype(np.uint64))
    big = np.array([2**64 - 1, 2**63, 2**63 + 2**39 + 1], np.uint64)
    assert np.array_equal(ctx.array(big).astype(np.float32).numpy(), big.astype(np.float32))
    assert ctx.array(big).astype(np.int64).numpy().tolist() == [2**63 - 1] * 3


def test_types_of_ml_dtypes(ctx, rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    host = rng.standard_normal(1000).astype(np.float32) * 100
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        dtype = np.dtype(getattr(ml_dtypes, name))
        most = float(ml_dtypes.finfo(dtype).max)
        stored = ctx.array(host).astype(name)
        assert stored.dtype == dtype
        wanted = np.clip(host, -most, most).astype(dtype)
        assert stored.numpy().tobytes() == wanted.tobytes()
        assert np.array_equal(stored.astype(np.float32).numpy(), wanted.astype(np.float32))
        every = np.arange(2 ** (8 * min(dtype.itemsize, 2)), dtype=f"u{dtype.itemsize}").view(dtype)
        assert ctx.array(every).numpy().tobytes() == every.tobytes()
        wide = ctx.array(every).astype(np.float32).numpy()
        assert np.array_equal(wide, every.astype(np.float32), equal_nan=True)
        rows = tuff.take(ctx.array(every.reshape(-1, 16)), ctx.array(np.array([3, -1, 0])))
        assert rows.numpy()[0].tobytes() == every.reshape(-1, 16)[3].tobytes()
        assert not rows.numpy()[1].view(np.uint8).any()


def test_section(ctx, rng):
    host = rng.standard_normal((6, 7, 8)).astype(np.float32)
    x = ctx.array(host)
    for key in (np.s_[1:5], np.s_[::2, 1, ::-1], np.s_[..., 3], np.s_[:, 6:0:-3, 2:3], np.s_[-1, ..., 1:], np.s_[3:1], ...):
        assert np.array_equal(tuff.section(x, key).numpy(), host[key])
    for key in (np.s_[6], np.s_[0, 0, 0, 0]):
        with pytest.raises(IndexError):
            tuff.section(x, key)


def test_concat(ctx, rng):
    parts = [rng.standard_normal((3, size, 5)).astype(np.float32) for size in (1, 4, 0, 7)]
    arrays = [ctx.array(part) for part in parts]
    assert np.array_equal(tuff.concat(arrays, 1).numpy(), np.concatenate(parts, 1))
    assert np.array_equal(tuff.concat(arrays[:1] * 3, -1).numpy(), np.concatenate(parts[:1] * 3, -1))
    with pytest.raises(ValueError):
        tuff.concat(arrays, 0)


def test_views_that_start_between_units(ctx):
    # The view's offset and the first element make up for one another: 4 + 4 bytes are aligned for pairs.
    host = np.arange(8, dtype=np.float32)
    x = ctx.array(host)
    assert np.array_equal(tuff.section(x[1:], np.s_[1:3]).numpy(), host[2:4])
    out = ctx.zeros(8)
    tuff.concat([ctx.ones(1), ctx.full(2, 5.0)], out=out[1:4])
    assert np.array_equal(out.numpy(), [0, 1, 5, 5, 0, 0, 0, 0])


def test_gather_of_nothing(ctx):
    indices = ctx.array([0, 3], dtype=np.int32)
    assert np.array_equal(tuff.take(ctx.empty((3, 0)), indices, 1).numpy(), np.zeros((3, 2)))
    assert np.array_equal(tuff.embedding(ctx.empty((0, 4)), indices).numpy(), np.zeros((2, 4)))


def test_gather(ctx, rng):
    host = rng.standard_normal((5, 9, 4)).astype(np.float32)
    x = ctx.array(host)
    indices = rng.integers(0, 9, (2, 3)).astype(np.int32)
    taken = tuff.take(x, ctx.array(indices, dtype=np.int32), 1)
    assert np.array_equal(taken.numpy(), np.take(host, indices, 1))
    rows = tuff.embedding(x.reshape(45, 4), ctx.array([44, 45, 0, 2**32 - 1], dtype=np.uint32))
    assert np.array_equal(rows.numpy(), np.stack([host[4, 8], np.zeros(4), host[0, 0], np.zeros(4)]))
    along = rng.integers(0, 9, (5, 20, 4)).astype(np.uint32)
    assert np.array_equal(
        tuff.gather(x, ctx.array(along, dtype=np.uint32), 1).numpy(), np.take_along_axis(host, along.astype(int), 1)
    )
    for dtype in (np.int64, np.uint64):
        wide = np.array([8, 9, 2**32, 2**32 + 3, 0, 2**63 - 1]).astype(dtype)
        rows = tuff.take(x, ctx.array(wide), 1).numpy()
        zero = np.zeros((5, 4))
        assert np.array_equal(rows, np.stack([host[:, 8], zero, zero, zero, host[:, 0], zero], axis=1))
    order = np.argsort(host, axis=1)  # NumPy's indices are int64
    assert np.array_equal(tuff.gather(x, ctx.array(order), 1).numpy(), np.take_along_axis(host, order, 1))
    with pytest.raises(TypeError):
        tuff.take(x, x)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int16, np.uint16, np.bool_])
def test_moving_any_type(ctx, rng, dtype):
    host = rng.integers(0, 2**8, 8 * 4 * 5 * 3).astype(np.uint8).view(np.uint8)[: 4 * 5 * 3 * np.dtype(dtype).itemsize]
    host = (host % 2 if dtype is np.bool_ else host).view(dtype).reshape(4, 5, 3)
    x = ctx.array(host)
    assert x.dtype == dtype and np.array_equal(x.numpy(), host)
    assert np.array_equal(x.transpose(2, 0, 1).numpy(), host.transpose(2, 0, 1))
    assert np.array_equal(tuff.section(x, np.s_[::-1, 1:4:2]).numpy(), host[::-1, 1:4:2])
    assert np.array_equal(tuff.concat([x, x[:2]]).numpy(), np.concatenate([host, host[:2]]))
    assert np.array_equal(tuff.take(x, ctx.array(np.array([2, 0])), 1).numpy(), host[:, [2, 0]])
    assert ctx.full(3, 1, dtype).numpy().tolist() == [1, 1, 1]
    with pytest.raises(tuff.TuffError, match="dtype"):
        x.softmax(-1)
