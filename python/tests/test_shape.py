"""Permutation and casts against NumPy."""

import itertools

import numpy as np
import pytest

import tuff


def test_transpose(ctx, rng):
    for dtype in (np.float32, np.float16, np.float64, np.int8, np.uint32):
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
    for dtype in (np.int32, np.uint32, np.int8, np.uint8):
        info = np.iinfo(dtype)
        whole = x.astype(dtype)
        assert whole.dtype == dtype
        assert np.array_equal(whole.numpy(), np.clip(np.trunc(host), info.min, info.max).astype(dtype))
        assert np.array_equal(whole.astype(np.float64).numpy(), whole.numpy().astype(np.float64))
    assert ctx.array([np.nan]).astype(np.int32).item() == 0
    with pytest.raises(TypeError):
        x.astype(np.int64)


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
    with pytest.raises(TypeError):
        tuff.take(x, x)
