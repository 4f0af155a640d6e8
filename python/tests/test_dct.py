"""Cosine and sine transforms, compared with scipy.fft."""

import numpy as np
import pytest

import tuff

scipy_fft = pytest.importorskip("scipy.fft")

RNG = np.random.default_rng(4)
NORMS = (None, "backward", "ortho", "forward")
TYPES = (1, 2, 3, 4)


def near(got, wanted):
    """The header's bound with Bluestein's algorithm, for up to 3 axes and an N of 2^12 together."""
    got = got.numpy()
    assert got.shape == wanted.shape
    error = np.linalg.norm(got - wanted)
    assert error <= (12 * 12 + 24) * 2.0**-24 * np.linalg.norm(wanted) + 1e-30, error


def scipys(name, x, type, sizes, axes, norm, orthogonal=None):
    """scipy.fft's function of this name along each axis. SciPy 1.10 multiplies the wrong end of a line to make sine transforms
    of types 2 and 3 orthogonal, which they are not then: here, it is the last number."""
    x = x.astype(np.float64)
    orthogonal = norm == "ortho" if orthogonal is None else orthogonal
    kind = {2: 3, 3: 2}.get(type, type) if name.startswith("i") else type
    for axis, n in zip(axes, sizes):
        if "dct" in name or kind in (1, 4):
            x = getattr(scipy_fft, name.rstrip("n"))(x, type, n, axis, norm, orthogonalize=orthogonal)
            continue
        n = x.shape[axis] if n is None else n
        x = np.moveaxis(x, axis, -1)[..., :n]
        x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, n - x.shape[-1])])
        if orthogonal and kind == 3:
            x[..., -1] *= np.sqrt(2)
        x = getattr(scipy_fft, name.rstrip("n"))(x, type, norm=norm, orthogonalize=False)
        if orthogonal and kind == 2:
            x[..., -1] /= np.sqrt(2)
        x = np.moveaxis(x, -1, axis)
    return x


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("type", TYPES)
def test_one_axis(ctx, type, norm):
    x = RNG.standard_normal((3, 8)).astype(np.float32)
    a = ctx.array(x)
    for name in ("dct", "idct", "dst", "idst"):
        own = getattr(tuff.fft, name)
        for n, axis in ((None, -1), (None, 0), (5, -1), (12, 1)):
            near(own(a, type, n, axis, norm), scipys(name, x, type, (n,), (axis,), norm))
        for orthogonal in (False, True):
            got = own(a, type, norm=norm, orthogonalize=orthogonal)
            near(got, scipys(name, x, type, (None,), (-1,), norm, orthogonal))


@pytest.mark.parametrize("axes", [None, (0, 2), (1,), (-1, -2), (2, 1, 0)])
@pytest.mark.parametrize("norm", NORMS[1:])
def test_several_axes(ctx, axes, norm):
    x = RNG.standard_normal((4, 3, 6)).astype(np.float32)
    a = ctx.array(x)
    for name in ("dctn", "idctn", "dstn", "idstn"):
        for type in TYPES:
            along = (0, 1, 2) if axes is None else axes
            got = getattr(tuff.fft, name)(a, type, None, axes, norm)
            near(got, scipys(name, x, type, (None,) * len(along), along, norm))
    near(tuff.fft.dctn(a, s=(5, 8)), scipy_fft.dctn(x.astype(np.float64), s=(5, 8)))


def test_the_way_back(ctx):
    x = RNG.standard_normal((4, 60)).astype(np.float32)
    a = ctx.array(x)
    for forward, back in (("dct", "idct"), ("dst", "idst"), ("dctn", "idctn"), ("dstn", "idstn")):
        for type in TYPES:
            there = getattr(tuff.fft, forward)(a, type)
            near(getattr(tuff.fft, back)(there, type), x)


def test_ortho_is_orthogonal(ctx):
    a = ctx.array(np.eye(6, dtype=np.float32))
    for name in ("dct", "dst", "idct", "idst"):
        for type in TYPES:
            matrix = getattr(tuff.fft, name)(a, type, norm="ortho").numpy()
            assert np.abs(matrix @ matrix.T - np.eye(6)).max() < 2.0**-20, (name, type)


def test_types(ctx):
    x = RNG.standard_normal((2, 24))
    for dtype, u in ((np.float16, 2.0**-11), (np.float64, 2.0**-48)):
        if dtype == np.float64 and not ctx.supports("dct.f64"):
            continue
        a = ctx.array(x, dtype)
        got = tuff.fft.dct(a).numpy()
        assert got.dtype == dtype
        wanted = scipy_fft.dct(a.numpy().astype(np.float64))
        assert np.linalg.norm(got - wanted) <= 2 * u * np.linalg.norm(wanted)


def test_misuse(ctx):
    a = ctx.array(np.ones((2, 4), np.float32))
    for wrong in (0, 5, 2.5):
        with pytest.raises((TypeError, ValueError), match="type"):
            tuff.fft.dct(a, wrong)
    for wrong in ("orthogonal", 1, ["ortho"]):
        with pytest.raises(ValueError, match="norm is"):
            tuff.fft.dct(a, norm=wrong)
    with pytest.raises(ValueError, match="at least 2"):
        tuff.fft.dct(a, 1, n=1)
    with pytest.raises(TypeError, match="complex64"):
        tuff.fft.dst(a.astype(np.complex64))
    with pytest.raises(ValueError, match="twice"):
        tuff.fft.dctn(a, axes=(0, -2))
    with pytest.raises(ValueError, match="s has 3 sizes, and the array has 2 axes"):
        tuff.fft.dctn(a, s=(1, 2, 3))
    with pytest.raises(ValueError, match="s has 2 sizes for 1 axes"):
        tuff.fft.dctn(a, s=(1, 2), axes=(0,))
    with pytest.raises(TypeError, match="axes is 1, needs integers"):
        tuff.fft.dctn(a, axes=1)
    for wrong in (0, -3, 2.5):
        with pytest.raises((TypeError, ValueError), match="^n is"):
            tuff.fft.dct(a, n=wrong)
    with pytest.raises(tuff.TuffError, match="dtype is i32"):
        tuff.fft.dct(a.astype(np.int32))
    with pytest.raises(TypeError, match="x"):
        tuff.fft.dct(np.ones(4))
