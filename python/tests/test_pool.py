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


def test_channels_last(ctx, rng):
    image = rng.integers(-50, 50, (2, 5, 13, 17)).astype(np.float32)
    x, last = ctx.array(image), ctx.array(np.ascontiguousarray(image.transpose(0, 2, 3, 1)))
    calls = [lambda x, **layout: tuff.adaptive_max_pool(x, (3, 4), **layout)]
    calls.append(lambda x, **layout: tuff.adaptive_avg_pool(x, 1, **layout))
    choices = itertools.product((2, (3, 1)), (1, (2, 3)), (0, 1), (1, 2), (False, True))
    for kernel, stride, padding, dilation, ceil in choices:
        if padding > 0 and kernel == (3, 1):
            continue
        options = {"stride": stride, "padding": padding, "ceil_mode": ceil}
        calls.append(lambda x, o=options, k=kernel, d=dilation, **layout: tuff.max_pool(x, k, dilation=d, **o, **layout))
        calls.append(lambda x, o=options, k=kernel, **layout: tuff.avg_pool(x, k, count_include_pad=True, **o, **layout))
    for call in calls:
        wanted = call(x).numpy().transpose(0, 2, 3, 1)
        assert np.allclose(call(last, layout="nhwc").numpy(), wanted, rtol=0, atol=1e-5)
    line, line_last = ctx.array(image[:, :, 0]), ctx.array(np.ascontiguousarray(image[:, :, 0].transpose(0, 2, 1)))
    wanted = tuff.max_pool(line, 3).numpy().transpose(0, 2, 1)
    assert np.array_equal(tuff.max_pool(line_last, 3, layout="nhwc").numpy(), wanted)
    with pytest.raises(ValueError, match="indices"):
        tuff.max_pool(last, 2, indices=True, layout="nhwc")
    with pytest.raises(ValueError, match="one or two spatial axes"):
        tuff.max_pool(ctx.zeros((1, 4, 4, 4, 2)), 2, layout="nhwc")
    with pytest.raises(ValueError, match="layout"):
        tuff.avg_pool(x, 2, layout="chwn")
    with pytest.raises(ValueError, match="larger than the padded axis"):
        tuff.max_pool(last, (14, 1), layout="nhwc")


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


def test_gradients(ctx, rng):
    image = rng.integers(-50, 50, (2, 3, 9, 7)).astype(np.float32)
    x = ctx.array(image)
    form = {"stride": 2, "padding": 1}
    y, places = tuff.max_pool(x, 3, indices=True, **form)
    slopes = rng.integers(-9, 9, y.shape).astype(np.float32)
    wanted = np.zeros((6, 63), np.float32)
    for plane, (at, slope) in enumerate(zip(places.numpy().reshape(6, -1), slopes.reshape(6, -1))):
        np.add.at(wanted[plane], at, slope)
    found = tuff.max_pool_backward(ctx.array(slopes), places, x.shape, 3, **form)
    assert np.array_equal(found.numpy(), wanted.reshape(image.shape))
    apart = tuff.avg_pool_backward(ctx.array(slopes[:, :, :3, :2]), x.shape, (3, 3)).numpy()
    shares = np.zeros(image.shape, np.float32)
    shares[:, :, :, :6] = np.repeat(np.repeat(slopes[:, :, :3, :2] / 9, 3, 2), 3, 3)
    assert np.allclose(apart, shares, rtol=1e-6)
    whole = tuff.avg_pool_backward(ctx.array(slopes[:, :, :1, :1]), x.shape, None).numpy()
    assert np.allclose(whole, np.broadcast_to(slopes[:, :, :1, :1] / 63, image.shape), rtol=1e-6)
    for wrong in (
        lambda: tuff.max_pool_backward(ctx.array(slopes), y, x.shape, 3, **form),
        lambda: tuff.max_pool_backward(ctx.array(slopes), places, x.shape, 3),
        lambda: tuff.avg_pool_backward(ctx.array(slopes), (2, 3, 9), 3, **form),
        lambda: tuff.avg_pool_backward(ctx.array(slopes), x.shape, 30),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_shapes_of_gradients(ctx):
    """The gradient has the shape of what pooling gives: also its images and channels, and as many dimensions,
    and memory is not even asked for."""
    dy = ctx.ones((2, 3, 4, 4))
    places = ctx.zeros(dy.shape, np.uint32)
    for shape in ((1, 3, 8, 8), (5, 3, 8, 8), (2**40, 3, 8, 8), (3, 2, 8, 8), (2, 3, 9), (2, 3, 8, 8, 8), (2,), ()):
        for kernel, layout in ((2, "nchw"), (None, "nchw"), (2, "nhwc"), (None, "nhwc")):
            with pytest.raises(ValueError, match="dy"):
                tuff.avg_pool_backward(dy, shape, kernel, layout=layout)
            with pytest.raises(ValueError, match="dy"):
                tuff.max_pool_backward(dy, places, shape, kernel, layout=layout)
    assert tuff.avg_pool_backward(dy, (2, 6, 8, 4), (2, 2), layout="nhwc").shape == (2, 6, 8, 4)


def test_adaptive_gradients_have_no_options(ctx):
    dy, shape = ctx.ones((2, 3, 4, 4)), (2, 3, 8, 8)
    places = ctx.zeros(dy.shape, np.uint32)
    for option in ({"stride": 2}, {"padding": 1}, {"padding": (0, 1)}, {"ceil_mode": True}):
        with pytest.raises(ValueError, match="adaptive"):
            tuff.avg_pool_backward(dy, shape, None, **option)
        with pytest.raises(ValueError, match="adaptive"):
            tuff.max_pool_backward(dy, places, shape, None, **option)
    with pytest.raises(ValueError, match="adaptive"):
        tuff.avg_pool_backward(dy, shape, None, count_include_pad=True)
    with pytest.raises(ValueError, match="adaptive"):
        tuff.max_pool_backward(dy, places, shape, None, dilation=2)
    tuff.avg_pool_backward(dy, shape, None, padding=(0, 0))
