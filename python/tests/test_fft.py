"""Fourier transforms, compared with numpy.fft."""

import numpy as np
import pytest

import tuff

RNG = np.random.default_rng(3)
NORMS = (None, "backward", "ortho", "forward")


def complex_numbers(*shape):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(np.complex64)


def near(got, wanted):
    """The header's bound with Bluestein's algorithm, for results of up to 2^12 numbers."""
    got = np.asarray(got)
    assert got.shape == wanted.shape
    error = np.linalg.norm(got - wanted)
    assert error <= 12 * 12 * 2.0**-24 * np.linalg.norm(wanted) + 1e-30, error


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("n", [None, 5, 12])
def test_one_axis(ctx, norm, n):
    z, x = complex_numbers(3, 8), RNG.standard_normal((3, 8)).astype(np.float32)
    a, r = tuff.fft.pairs(z, context=ctx), ctx.array(x)
    for axis in (-1, 0) if n is None else (-1,):
        near(tuff.fft.numbers(tuff.fft.fft(a, n, axis, norm)), np.fft.fft(z, n, axis, norm))
        near(tuff.fft.numbers(tuff.fft.ifft(a, n, axis, norm)), np.fft.ifft(z, n, axis, norm))
        near(tuff.fft.numbers(tuff.fft.rfft(r, n, axis, norm)), np.fft.rfft(x, n, axis, norm))
        near(tuff.fft.irfft(a, n, axis, norm).numpy(), np.fft.irfft(z, n, axis, norm))
        near(tuff.fft.hfft(a, n, axis, norm).numpy(), np.fft.hfft(z, n, axis, norm))
        near(tuff.fft.numbers(tuff.fft.ihfft(r, n, axis, norm)), np.fft.ihfft(x, n, axis, norm))


@pytest.mark.parametrize("axes", [None, (0, 2), (2, 0), (1,), (-1, -2), (2, 1, 0)])
@pytest.mark.parametrize("norm", NORMS[1:])
def test_several_axes(ctx, axes, norm):
    z, x = complex_numbers(4, 3, 6), RNG.standard_normal((4, 3, 6)).astype(np.float32)
    a, r = tuff.fft.pairs(z, context=ctx), ctx.array(x)
    near(tuff.fft.numbers(tuff.fft.fftn(a, None, axes, norm)), np.fft.fftn(z, None, axes, norm))
    near(tuff.fft.numbers(tuff.fft.ifftn(a, None, axes, norm)), np.fft.ifftn(z, None, axes, norm))
    near(tuff.fft.numbers(tuff.fft.rfftn(r, None, axes, norm)), np.fft.rfftn(x, None, axes, norm))
    near(tuff.fft.irfftn(a, None, axes, norm).numpy(), np.fft.irfftn(z, None, axes, norm))


def test_two_axes_and_sizes(ctx):
    z, x = complex_numbers(2, 6, 7), RNG.standard_normal((2, 6, 7)).astype(np.float32)
    a, r = tuff.fft.pairs(z, context=ctx), ctx.array(x)
    for s in (None, (4, 9), (8, 5)):
        near(tuff.fft.numbers(tuff.fft.fft2(a, s)), np.fft.fft2(z, s))
        near(tuff.fft.numbers(tuff.fft.ifft2(a, s)), np.fft.ifft2(z, s))
        near(tuff.fft.numbers(tuff.fft.rfft2(r, s)), np.fft.rfft2(x, s))
        near(tuff.fft.irfft2(a, s).numpy(), np.fft.irfft2(z, s))


def test_the_way_back(ctx):
    x = RNG.standard_normal((5, 1000)).astype(np.float32)
    near(tuff.fft.irfft(tuff.fft.rfft(ctx.array(x))).numpy(), x)
    z = complex_numbers(7, 37)
    near(tuff.fft.numbers(tuff.fft.ifft2(tuff.fft.fft2(tuff.fft.pairs(z, context=ctx)))), z)


def test_shifts_and_frequencies(ctx):
    for n in (1, 7, 8):
        near(tuff.fft.fftfreq(n, 0.5, context=ctx).numpy(), np.fft.fftfreq(n, 0.5).astype(np.float32))
        near(tuff.fft.rfftfreq(n, 0.5, context=ctx).numpy(), np.fft.rfftfreq(n, 0.5).astype(np.float32))
    z, x = complex_numbers(5, 6), RNG.standard_normal((5, 6)).astype(np.float32)
    a, r = tuff.fft.pairs(z, context=ctx), ctx.array(x)
    for axes in (None, 0, (1,), (0, 1)):
        assert np.array_equal(tuff.fft.numbers(tuff.fft.fftshift(a, axes, paired=True)), np.fft.fftshift(z, axes))
        assert np.array_equal(tuff.fft.numbers(tuff.fft.ifftshift(a, axes, paired=True)), np.fft.ifftshift(z, axes))
        assert np.array_equal(tuff.fft.fftshift(r, axes).numpy(), np.fft.fftshift(x, axes))
        assert np.array_equal(tuff.fft.ifftshift(r, axes).numpy(), np.fft.ifftshift(x, axes))


def test_pairs(ctx):
    z = complex_numbers(2, 3)
    a = tuff.fft.pairs(z, context=ctx)
    assert a.shape == (2, 3, 2) and a.dtype == np.float32
    assert np.array_equal(tuff.fft.numbers(a), z)
    assert tuff.fft.pairs([1, 2j], context=ctx, dtype=np.float16).dtype == np.float16
    assert tuff.fft.pairs([1.0, 2.0], context=ctx).numpy().tolist() == [[1, 0], [2, 0]]
    half = tuff.fft.fft(tuff.fft.pairs(z, context=ctx, dtype=np.float16))
    assert half.dtype == np.float16
    assert np.allclose(tuff.fft.numbers(half), np.fft.fft(z), atol=0.02)
    if ctx.supports("fft.f64"):
        wide = np.asarray(z, np.complex128) / 3
        result = tuff.fft.numbers(tuff.fft.fft(tuff.fft.pairs(wide, context=ctx)))
        assert result.dtype == np.complex128 and np.allclose(result, np.fft.fft(wide), rtol=0, atol=1e-14)


def test_complex_arrays(ctx):
    z, x = complex_numbers(3, 8), RNG.standard_normal((3, 8)).astype(np.float32)
    a, r = ctx.array(z), ctx.array(x)
    for name in ("fft", "ifft", "fft2", "ifft2", "irfft", "hfft", "irfft2"):
        got = getattr(tuff.fft, name)(a)
        near(got.numpy(), getattr(np.fft, name)(z))
        assert got.dtype == (np.float32 if name[:2] in ("ir", "hf") else np.complex64)
    for name in ("rfft", "ihfft", "rfft2"):
        got = getattr(tuff.fft, name)(r)
        near(got.numpy(), getattr(np.fft, name)(x))
        assert got.dtype == np.complex64
    near(tuff.fft.fft(a.real + 1j * a.imag, 5).numpy(), np.fft.fft(z, 5))
    near(tuff.fft.fft(a[:, ::2], axis=0).numpy(), np.fft.fft(z[:, ::2], axis=0))  # a view with strides
    assert np.array_equal(tuff.fft.fftshift(a).numpy(), np.fft.fftshift(z))
    assert np.array_equal(tuff.fft.numbers(a), z)
    half = tuff.fft.rfft(ctx.array(x, np.float16))
    assert half.dtype == np.float16 and half.shape == (3, 5, 2)  # there is no complex type of them
    if ctx.supports("fft.f64"):
        assert tuff.fft.rfft(ctx.array(x, np.float64)).dtype == np.complex128
    with pytest.raises(TypeError, match="real numbers"):
        tuff.fft.rfft(a)


def test_empty_batch(ctx):
    assert tuff.fft.fft(ctx.zeros((0, 4, 2))).shape == (0, 4, 2)
    assert tuff.fft.rfft(ctx.zeros((0, 4))).shape == (0, 3)


def test_misuse(ctx):
    a = ctx.zeros((4, 2))
    with pytest.raises(ValueError, match="last axis of 2"):
        tuff.fft.fft(ctx.zeros((4, 3)))
    with pytest.raises(TypeError, match="ctx.array"):
        tuff.fft.fft(np.zeros((4, 2), np.float32))
    with pytest.raises(ValueError, match="norm"):
        tuff.fft.fft(a, norm="orthogonal")
    with pytest.raises(ValueError, match="axis 1"):
        tuff.fft.fft(a, axis=1)
    with pytest.raises(ValueError, match="n|s"):
        tuff.fft.fft(a, 0)
    with pytest.raises(ValueError, match="twice"):
        tuff.fft.fftn(ctx.zeros((4, 4, 2)), axes=(0, 0))
    with pytest.raises(TypeError, match="axes is 1, needs integers"):
        tuff.fft.fftn(ctx.zeros((4, 4, 2)), axes=1)
    with pytest.raises(ValueError, match="^n is 0"):
        tuff.fft.fft(ctx.zeros((4, 2)), n=0)
    with pytest.raises(ValueError, match="norm is"):
        tuff.fft.fft(ctx.zeros((4, 2)), norm=["ortho"])
    with pytest.raises(ValueError, match="sizes"):
        tuff.fft.fftn(ctx.zeros((4, 4, 2)), (3,), (0, 1))
    with pytest.raises(ValueError, match="not defined"):
        tuff.fft.irfft(ctx.zeros((1, 2)))
    with pytest.raises(tuff.TuffError, match="dtype"):
        tuff.fft.fft(ctx.zeros((4, 2), np.int32))
    with pytest.raises(TypeError):
        tuff.fft.pairs(["a"], context=ctx)


def test_numpys_functions_run_on_the_device(ctx, rng):
    x = rng.standard_normal((4, 12)).astype(np.float32)
    array = ctx.array(x)
    for name in ("fft", "ifft", "rfft", "fft2", "fftn", "rfftn", "fftshift", "ihfft"):
        function = getattr(np.fft, name)
        got = function(array)
        assert isinstance(got, tuff.Array) and np.allclose(got.numpy(), function(x), atol=1e-4), name
    assert np.allclose(np.fft.irfft(np.fft.rfft(array, axis=0), 4, axis=0).numpy(), x, atol=1e-5)
