"""Pooling against windows cut by NumPy."""

import itertools

import numpy as np
import pytest

import tuff


def windows(image, kernel, stride, padding, dilation, out):
    """image (N, C, H, W) padded with NaN: (N, C, P, Q, R, S)"""
    end = [max(0, (o - 1) * stride + dilation * (kernel - 1) + 1 - n - padding) for o, n in zip(out, image.shape[2:])]
    padded = np.pad(image, ((0, 0), (0, 0), (padding, end[0]), (padding, end[1])), constant_values=np.nan)
    taps = np.arange(kernel) * dilation
    rows = np.arange(out[0])[:, None] * stride + taps
    columns = np.arange(out[1])[:, None] * stride + taps
    return padded[:, :, rows[:, None, :, None], columns[None, :, None, :]]


def test_pools(ctx, rng):
    image = rng.integers(-50, 50, (2, 3, 13, 17)).astype(np.float32)
    x = ctx.array(image)
    for kernel, stride, padding, dilation, ceil in itertools.product((1, 2, 3), (1, 2), (0, 1), (1, 2), (False, True)):
        if 2 * padding > dilation * (kernel - 1) + 1:
            continue
        largest, places = tuff.max_pool(
            x, kernel, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil, indices=True
        )
        cut = windows(image, kernel, stride, padding, dilation, largest.shape[2:])
        assert np.array_equal(largest.numpy(), np.nanmax(cut, axis=(-1, -2)))
        flat = image.reshape(2, 3, -1)
        assert np.array_equal(
            np.take_along_axis(flat, places.numpy().reshape(2, 3, -1).astype(int), 2), largest.numpy().reshape(2, 3, -1)
        )
        if dilation == 1 and 2 * padding <= kernel:
            mean = tuff.avg_pool(x, kernel, stride=stride, padding=padding, ceil_mode=ceil).numpy()
            assert np.allclose(mean, np.nanmean(cut, axis=(-1, -2)), rtol=0, atol=1e-5)


def test_global_and_adaptive(ctx, rng):
    image = rng.integers(-50, 50, (2, 5, 7, 9)).astype(np.float32)
    x = ctx.array(image)
    assert np.array_equal(tuff.adaptive_max_pool(x, 1).numpy()[..., 0, 0], image.max(axis=(2, 3)))
    assert np.allclose(tuff.adaptive_avg_pool(x, 1).numpy()[..., 0, 0], image.mean(axis=(2, 3)), atol=1e-5)
    assert np.allclose(tuff.avg_pool(x, (7, 9)).numpy()[..., 0, 0], image.mean(axis=(2, 3)), atol=1e-5)
    places = tuff.adaptive_max_pool(x, 1, indices=True)[1].numpy()[..., 0, 0]
    assert np.array_equal(places, image.reshape(2, 5, -1).argmax(-1))
    got = tuff.adaptive_avg_pool(x, (3, 4)).numpy()
    for p, q in itertools.product(range(3), range(4)):
        part = image[:, :, p * 7 // 3 : -(-(p + 1) * 7 // 3), q * 9 // 4 : -(-(q + 1) * 9 // 4)]
        assert np.allclose(got[:, :, p, q], part.mean(axis=(2, 3)), atol=1e-5)
    line = ctx.array(image.reshape(2, 5, 63))
    assert np.array_equal(tuff.max_pool(line, 3).numpy(), image.reshape(2, 5, 21, 3).max(-1))
    with pytest.raises(ValueError):
        tuff.max_pool(x, 30)
