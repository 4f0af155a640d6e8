"""NumPy's functions that are made of others, beside NumPy's own."""

import numpy as np
import pytest

import tuff

RNG = np.random.default_rng(5)
M = RNG.standard_normal((4, 6)).astype(np.float32)
V = RNG.standard_normal(6).astype(np.float32)
S = RNG.standard_normal((2, 3, 4)).astype(np.float32)
WHOLE = RNG.integers(-9, 9, (4, 6)).astype(np.int32)
HOLES = np.where(M > 0.7, np.nan, M).astype(np.float32)
HOLES[1] = np.nan
MASK = M > 0
EDGES = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 3.0], np.float32)
OTHER = np.array([np.nan, -0.0, 2.0, -2.5, np.inf, 1.0, 1.0, -np.inf], np.float32)

#: NumPy's name, its arguments, and the tolerance (units in the last place of 1): 0 where no arithmetic rounds differently.
CASES = [
    *[(name, (EDGES, OTHER), 0) for name in ("fmax", "fmin", "heaviside")],
    ("fmax", (WHOLE, 2), 0), ("fmin", (M, V), 0), ("float_power", (np.abs(M), 1.5), 8), ("heaviside", (M, 0.5), 0),
    ("logaddexp2", (M, V), 8), ("logaddexp2", (EDGES[:6], EDGES[:6]), 8),
    *[(name, (M * 100,), 200) for name in ("deg2rad", "radians")], ("rad2deg", (M,), 400), ("degrees", (V,), 400),
    ("sinc", (M,), 8), ("sinc", (np.zeros(3, np.float32),), 0), ("positive", (WHOLE,), 0),
    ("isposinf", (EDGES,), 0), ("isneginf", (EDGES,), 0), ("divmod", (WHOLE, 4), 0), ("divmod", (M, V), 0),
    ("modf", (EDGES,), 0), ("nan_to_num", (EDGES,), 0), ("nan_to_num", (WHOLE,), 0),
    ("append", (M, V), 0), ("append", (M, M, 1), 0), ("array_split", (M, 4, 1), 0), ("array_split", (V, [1, 3, 3, 9]), 0),
    ("split", (M, 3, 1), 0), ("split", (M, [1, -1]), 0), ("vsplit", (M, 2), 0), ("hsplit", (M, [2]), 0), ("hsplit", (V, 3), 0), ("dsplit", (S, 2), 0),
    *[(name, (x,), 0) for name in ("atleast_1d", "atleast_2d", "atleast_3d") for x in (np.float32(3), V, M, S)],
    ("atleast_2d", (V, M), 0), ("vstack", ([V, M],), 0), ("hstack", ([M, M],), 0), ("hstack", ([V, V],), 0), ("dstack", ([M, M],), 0),
    ("column_stack", ([V, M.T.copy(), V],), 0),
    ("fliplr", (M,), 0), ("flipud", (S,), 0), *[("rot90", (S, k, axes), 0) for k in range(-1, 4) for axes in ((0, 1), (2, 0))],
    *[("rollaxis", (S, axis, start), 0) for axis in range(3) for start in range(4)],
    ("dot", (M, V), 16), ("dot", (V, V), 16), ("dot", (M, M.T.copy()), 16), ("dot", (M, 2.0), 0), ("dot", (M, np.stack([M.T, M.T * 2])), 16), ("dot", (S, S.transpose(0, 2, 1).copy()), 16), ("dot", (V[:3], S), 16), ("inner", (M, V), 16), ("inner", (S, S), 16), ("inner", (V, V), 16),
    ("vdot", (M, M), 64),
    *[(name, (a, b, mode), 32) for name in ("convolve", "correlate") for a, b in ((V, V[:3]), (V[:2], V), (V, V[:4])) for mode in ("full", "same", "valid")],
    ("convolve", (WHOLE[0], WHOLE[1]), 0),
    ("ptp", (M, 1), 0), ("ptp", (WHOLE,), 0), ("average", (M, 0), 8), ("average", (M, 1, V), 64), ("average", (M, None, np.abs(M)), 64),
    ("diff", (M,), 0), ("diff", (WHOLE, 2, 0), 0), ("diff", (MASK,), 0), ("diff", (M, 0), 0), ("ediff1d", (WHOLE,), 0),
    ("trapezoid", (M,), 16), ("trapezoid", (M, V), 64), ("trapezoid", (M, M, 1.0, 0), 64),
    *[(f"nan{name}", (HOLES, axis), 64) for name in ("sum", "prod", "mean", "var", "std") for axis in (None, 0, 1)],
    *[(f"nan{name}", (x, axis), 0) for name in ("max", "min") for x in (HOLES, WHOLE) for axis in (None, 0, 1)],
    ("array_equiv", (M, M), 0), ("array_equiv", (V, np.stack([V, V])), 0), ("array_equiv", (V, M.ravel()[:5]), 0),
    ("select", ([MASK, M < -0.5], [M, V]), 0), ("select", ([MASK], [1.5], -1), 0), ("polyval", ([1.5, -2, 0.25], M), 32), ("polyval", ([2, 1], WHOLE), 0),
    ("vander", (V, 4), 32), ("vander", (V,), 300), ("vander", (V, 3, True), 32),
]  # fmt: skip


def to_device(ctx, value):
    if isinstance(value, np.ndarray):
        return ctx.array(value)
    if isinstance(value, np.float32):
        return ctx.array(value.reshape(()))
    if isinstance(value, list) and any(isinstance(one, np.ndarray) for one in value):
        return [to_device(ctx, one) for one in value]
    return value


def compare(got, expected, tolerance):
    if isinstance(expected, (list, tuple)):
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            compare(one, other, tolerance)
        return
    if isinstance(expected, bool):
        assert got is expected
        return
    got, expected = got.numpy(), np.asarray(expected)
    assert got.shape == expected.shape
    assert (got.dtype.kind == expected.dtype.kind) or got.dtype == np.float32
    np.testing.assert_allclose(got, expected, rtol=tolerance * 2.0**-23, atol=tolerance * 2.0**-23)
    if tolerance == 0 and got.dtype.kind == "f":
        assert (np.signbit(got) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("name, arguments, tolerance", CASES, ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)])
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
def test_beside_numpy(shared, name, arguments, tolerance):
    reference = getattr(np, name, None) or np.trapz
    expected = reference(*arguments)
    given = [to_device(shared, one) for one in arguments]
    compare(getattr(tuff, name)(*given), expected, tolerance)
    if name not in ("trapezoid",):  # of an older NumPy another name
        compare(reference(*given), expected, tolerance)


def test_creation(shared):
    for name, arguments in (("logspace", (0, 3, 7)), ("geomspace", (1, 1000, 4)), ("tri", (3, 5, 1)), ("tri", (4,))):
        got = getattr(tuff, name)(*arguments, device=shared)
        assert got.dtype == np.float32 and np.allclose(got.numpy(), getattr(np, name)(*arguments), rtol=1e-6)


def test_other_names(shared):
    x = shared.array(M)
    assert (tuff.negative(x).numpy() == -M).all() and (tuff.pow(x, 2.0).numpy() == M**2).all()
    assert (tuff.argmax(x, 1).numpy() == M.argmax(1)).all() and tuff.argmin(x).numpy() == M.argmin()
    assert (tuff.nan_to_num(shared.array(EDGES), 7.0, 1.0, -1.0).numpy()[-4:] == [1, -1, 7, 3]).all()


@pytest.mark.parametrize("taps", (1, 7, 8, 21, 100))
def test_long_vectors_are_convolved(shared, taps):
    """Errors of a sum of as many products, each rounded once, and where numbers are not finite the same ones as NumPy's."""
    a, v = RNG.standard_normal(1500).astype(np.float32), RNG.standard_normal(taps).astype(np.float32)
    x, w = shared.array(a), shared.array(v)
    for mode in ("full", "same", "valid"):
        for name in ("convolve", "correlate"):
            found = getattr(tuff, name)(x, w, mode).numpy()
            expected = getattr(np, name)(a.astype(np.float64), v, mode)
            most = getattr(np, name)(np.abs(a).astype(np.float64), np.abs(v), mode)
            assert (np.abs(found - expected) <= (taps + 1) * 2.0**-24 * most).all()
    a[[0, 700, 1499]] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        found, expected = tuff.convolve(shared.array(a), w, "valid").numpy(), np.convolve(a, v, "valid")
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))


def test_what_is_wrong(shared):
    x, v = shared.array(M), shared.array(V)
    for use in (
        lambda: tuff.split(x, 4, 1),
        lambda: tuff.vsplit(v, 2),
        lambda: tuff.dsplit(x, 2),
        lambda: tuff.rot90(x, 1, (0, 0)),
        lambda: tuff.rot90(v),
        lambda: tuff.inner(x, shared.array(V[:5].copy())),
        lambda: tuff.dot(x, shared.array(S)),
        lambda: tuff.convolve(x, v),
        lambda: tuff.convolve(v, v, "half"),
        lambda: tuff.average(x, 0, v),
        lambda: tuff.select([], []),
        lambda: tuff.vander(x),
        lambda: tuff.array_split(x, 0),
        lambda: tuff.diff(x, -1),
    ):
        with pytest.raises(ValueError):
            use()
    for use in (lambda: tuff.vstack([x, M]), lambda: tuff.fmax(x, M), lambda: np.nansum(x, out=x), lambda: tuff.modf(M), lambda: tuff.sinc(2.0)):
        with pytest.raises(TypeError):
            use()


def test_third_arguments_are_numpys(ctx):
    """dtype for those that add up or multiply; for the others it is out, which they do not take."""
    host = np.float32([[1, np.nan, 3], [4, 5, 6]])
    x = ctx.array(host)
    for function in (np.nansum, np.nanprod, np.nanmean):
        found = function(x, 0, np.float64)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found.numpy(), function(host, 0, np.float64))
    for function in (np.nanmax, np.nanmin, np.ptp):
        with pytest.raises(TypeError):
            function(x, 0, ctx.zeros(3))
        with pytest.raises(TypeError):
            function(x, 0, np.float64)
