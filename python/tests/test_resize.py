"""Resizing against positions by NumPy."""

import itertools

import numpy as np
import pytest

import tuff


def taps(size, out, mode, align):
    o = np.arange(out)
    if mode == "nearest":
        at = (o * size // out).astype(float)
    elif mode == "nearest_exact":
        at = ((2 * o + 1) * size // (2 * out)).astype(float)
    elif align:
        at = o * (size - 1) / max(out - 1, 1)
    else:
        at = (o + 0.5) * size / out - 0.5
    at = np.clip(at, 0, size - 1)
    first = np.floor(at).astype(int)
    return first, np.minimum(first + 1, size - 1), at - first


def resized(image, shape, mode, align):
    """Axes 2 and up of image, one after another."""
    for axis, out in enumerate(shape, 2):
        first, second, weight = taps(image.shape[axis], out, mode, align)
        weight = weight.reshape(-1, *[1] * (image.ndim - 1 - axis))
        image = image.take(first, axis) * (1 - weight) + image.take(second, axis) * weight
    return image


def test_modes(ctx, rng):
    image = rng.standard_normal((2, 3, 9, 11)).astype(np.float32)
    for shape, (mode, align) in itertools.product(
        ((18, 22), (5, 8), (9, 33)), (("nearest", False), ("nearest_exact", False), ("linear", False), ("linear", True))
    ):
        wanted = resized(image.astype(float), shape, mode, align)
        got = tuff.resize(ctx.array(image), shape, mode, align_corners=align)
        assert got.shape == (2, 3, *shape)
        assert np.allclose(got.numpy(), wanted, rtol=0, atol=1e-5)
        last = tuff.resize(
            ctx.array(image.transpose(0, 2, 3, 1).copy()), shape, mode, align_corners=align, layout="nhwc"
        )
        assert np.allclose(last.numpy().transpose(0, 3, 1, 2), wanted, rtol=0, atol=1e-5)


def test_lines_volumes_and_scales(ctx, rng):
    line = rng.standard_normal((2, 3, 10)).astype(np.float16)
    got = tuff.resize(ctx.array(line, np.float16), 15)
    assert got.dtype == np.float16
    assert np.allclose(got.numpy(), resized(line.astype(float), (15,), "linear", False), atol=4e-3)
    volume = rng.standard_normal((1, 2, 3, 4, 5)).astype(np.float32)
    got = tuff.resize(ctx.array(volume), (6, 4, 9))
    assert np.allclose(got.numpy(), resized(volume.astype(float), (6, 4, 9), "linear", False), atol=1e-5)
    nine = tuff.resize(ctx.array([[[1, 2, 3, 4, 5]]]), 9, "nearest", scale=2.0)
    assert nine.numpy().ravel().tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5]


def test_misuse(ctx):
    x = ctx.zeros((1, 2, 3, 4))
    for shape, mode, more in (
        (5, "cubic", {}),
        ((5, 6, 7), "linear", {}),
        (5, "linear", {"layout": "chwn"}),
        (5, "linear", {"scale": -1}),
        (5, "linear", {"scale": float("nan")}),
        (-5, "linear", {}),
    ):
        with pytest.raises(ValueError):
            tuff.resize(x, shape, mode, **more)
    with pytest.raises(ValueError):
        tuff.resize(ctx.zeros((3, 4)), 5)
    with pytest.raises(tuff.TuffError):
        tuff.resize(x, 5, "nearest", align_corners=True)
    with pytest.raises(tuff.TuffError):
        tuff.resize(x, 0)
