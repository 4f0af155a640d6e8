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
