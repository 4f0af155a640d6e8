"""Rotary position embedding and places of extremes against NumPy."""

import numpy as np
import pytest

import tuff


def turned(x, positions, base, rotary, interleaved):
    """x (b, h, s, d) in float64, positions (b, s)"""
    half = rotary // 2
    angle = positions[:, None, :, None].astype(np.float64) * base ** (-2.0 * np.arange(half) / rotary)
    cosine, sine = np.cos(angle), np.sin(angle)
    y = x.astype(np.float64)
    first = np.s_[..., 0:rotary:2] if interleaved else np.s_[..., :half]
    second = np.s_[..., 1:rotary:2] if interleaved else np.s_[..., half:rotary]
    p, q = y[first].copy(), y[second].copy()
    y[first], y[second] = p * cosine - q * sine, p * sine + q * cosine
    return y


def test_rope(ctx, rng):
    for head_dim, rotary in ((64, 64), (48, 32), (10, 6), (8, 8)):
        host = rng.standard_normal((2, 3, 7, head_dim)).astype(np.float32)
        for interleaved in (False, True):
            x = ctx.array(host)
            positions = rng.integers(0, 100_000, (2, 7)).astype(np.int32)
            places = ctx.array(positions, dtype=np.int32)
            options = {"rotary_dim": rotary, "interleaved": interleaved}
            wanted = turned(host, positions + 5, 10000.0, rotary, interleaved)
            assert np.allclose(tuff.rope(x, places, offset=5, **options).numpy(), wanted, rtol=0, atol=4e-6)
            swapped = ctx.array(host.swapaxes(1, 2))
            got = tuff.rope(swapped, places, offset=5, heads_last=True, out=swapped, **options)
            assert got is swapped and np.allclose(got.numpy().swapaxes(1, 2), wanted, rtol=0, atol=4e-6)
            counted = np.broadcast_to(np.arange(7) + 1000, (2, 7))
            wanted = turned(host, counted, 500.0, rotary, interleaved)
            assert np.allclose(tuff.rope(x, offset=1000, base=500, **options).numpy(), wanted, rtol=0, atol=4e-6)
    with pytest.raises(ValueError):
        tuff.rope(x, ctx.array([1], dtype=np.int32))


def test_places(ctx, rng):
    host = rng.integers(-5, 5, (6, 70, 9)).astype(np.float32)
    for dtype in (np.float32, np.float16):
        x = ctx.array(host, dtype=dtype)
        for axis in (None, 0, 1, -1):
            for keepdims in (False, True):
                largest = x.argmax(axis, keepdims)
                assert largest.dtype == np.int64
                assert np.array_equal(largest.numpy(), host.argmax(axis, keepdims=keepdims))
                assert np.array_equal(x.argmin(axis, keepdims).numpy(), host.argmin(axis, keepdims=keepdims))
    host[2, 30, 4] = host[2, 50, 4] = np.nan
    assert ctx.array(host).argmax(1).numpy()[2, 4] == 30 == ctx.array(host).argmin(1).numpy()[2, 4]
