"""Derivatives, interpolation, phases, covariances and windows, beside NumPy."""

import math

import numpy as np
import pytest
from beside import check, compare, rows

import tuff

RNG = np.random.default_rng(9)
V = RNG.standard_normal(12).astype(np.float32)
M = RNG.standard_normal((4, 6)).astype(np.float32)
S = RNG.standard_normal((3, 4, 5)).astype(np.float32)
D = RNG.standard_normal((5, 6))
N = RNG.integers(-9, 9, (4, 5)).astype(np.int32)
C = (M + 1j * M[::-1]).astype(np.complex64)
H = M.astype(np.float16)
PLACES = np.array([0, 0.5, 2, 3, 3.5, 7], np.float32)
XP = np.array([-1, 0, 0.5, 2, 5], np.float32)
FP = np.array([3, -1, 4, 1, 2], np.float32)
AT = np.array([[-3, -1, -0.5], [0, 0.25, 0.5], [5, 6, np.nan], [4.99, 1.0, -0.0]], np.float32)
PHASES = np.array([0, 2, 4, 6.5, 1, -3, 3.5, 9, 3], np.float32)
NONE = np.zeros((0,), np.float32)
ONE = np.array([[2.0, 3.0, 5.0]], np.float32)
TIMES = np.array([1, 2, 0, 3, 1, 2], np.int64)

# Errors of a few units of the largest element: of one quotient, of three terms, of sums of so many products.
CASES = [
    ("gradient", (V,), {}, 4), ("gradient", (M,), {}, 4), ("gradient", (M, 0.5), {}, 4), ("gradient", (M, 0.5, PLACES), {}, 64), ("gradient", (S,), {"axis": (0, -1)}, 4),
    ("gradient", (M,), {"axis": 1, "edge_order": 2}, 8), ("gradient", (M, PLACES), {"axis": -1, "edge_order": 2}, 64), ("gradient", (N,), {}, 4), ("gradient", (D, 2.0), {"axis": 0}, 8),
    ("gradient", (C,), {"axis": 1}, 8), ("gradient", (V[:2].copy(),), {}, 4), ("gradient", (V[:3].copy(),), {"edge_order": 2}, 8), ("gradient", (D, np.array([0.0, 1, 3, 4, 9])), {"axis": 0}, 64),
    ("gradient", (M, [0, 1, 2, 4.0, 8, 16]), {"axis": 1}, 64), ("gradient", (NONE.reshape(3, 0),), {"axis": 0}, 0),
    *[("interp", (x, XP, FP), {}, 8) for x in (AT, NONE, np.array(0.7, np.float32), AT.astype(np.float64), N)],
    ("interp", (AT, XP, FP, -7.0, 9.0), {}, 8), ("interp", (AT, XP[:1].copy(), FP[:1].copy()), {}, 0), ("interp", (AT, XP[:1].copy(), FP[:1].copy(), 1.5, 2.5), {}, 0), ("interp", (AT, [0.0, 1.0], [2.0, 3.0]), {}, 8),
    ("interp", (AT, XP, (FP + 1j * FP[::-1]).astype(np.complex64)), {}, 16), ("interp", (AT * 3, XP, FP), {"period": 4.0}, 64), ("interp", (AT, XP[::-1].copy(), FP), {"period": -10}, 64),
    ("interp", (np.array([0, 0.5, 1, 2], np.float32), np.array([0, 1, 1, 2], np.float32), np.array([0, 1, 5, 6], np.float32)), {}, 4), ("interp", (np.array([0.5, 1.5], np.float32), np.array([0, 1, 2], np.float32), np.array([0, np.inf, np.inf], np.float32)), {}, 0),
    ("interp", (N, np.array([-9, 0, 9]), np.array([0, 5, 7])), {}, 8),
    ("unwrap", (PHASES,), {}, 8), ("unwrap", (PHASES, 4.0), {}, 8), ("unwrap", (M * 9,), {"axis": 0}, 8), ("unwrap", (PHASES.astype(np.float64),), {}, 16), ("unwrap", (PHASES,), {"period": 4}, 8),
    ("unwrap", (N,), {"period": 10}), ("unwrap", (N,), {"period": 7, "axis": 0}), ("unwrap", (np.array([0, 5, 10, 5, 0], np.int64),), {"period": 10}), ("unwrap", (NONE,)), ("unwrap", (V[:1].copy(),)),
    ("unwrap", (np.array([0, np.pi, 2 * np.pi, 0]),), {}, 8), ("unwrap", (np.array([0, 3, np.nan, 1, 2], np.float32),), {}, 0),
    ("cov", (M,), {}, 64), ("cov", (V,), {}, 64), ("cov", (M, M[::-1].copy()), {}, 64), ("cov", (M,), {"rowvar": False}, 64), ("cov", (M,), {"bias": True}, 64), ("cov", (M,), {"ddof": 3}, 64), ("cov", (N,), {}, 64), ("cov", (D,), {}, 64),
    ("cov", (C,), {}, 128), ("cov", (M,), {"fweights": TIMES}, 64), ("cov", (M,), {"aweights": np.abs(M[0])}, 64), ("cov", (M,), {"fweights": TIMES, "aweights": np.abs(M[0]), "ddof": 0}, 64),
    ("cov", (M,), {"fweights": TIMES, "aweights": np.abs(M[0])}, 64), ("cov", (V, V * 2), {}, 64), ("cov", (ONE.T.copy(),)), ("cov", (M,), {"aweights": [1, 2, 3, 4, 5, 6.0]}, 64), ("cov", (M + 100,), {}, 64 * 100),
    ("corrcoef", (M,), {}, 64), ("corrcoef", (V,)), ("corrcoef", (M, M[:2].copy()), {}, 64), ("corrcoef", (M,), {"rowvar": False}, 64), ("corrcoef", (C,), {}, 128), ("corrcoef", (N,), {}, 64), ("corrcoef", (D,), {}, 64),
    ("float_power", (np.abs(D), 1.3), {}, 32), ("float_power", (np.abs(D), np.abs(D[0])), {}, 32), ("vander", (D[0].copy(), 5), {}, 32), ("vander", (D[0].copy(),), {"increasing": True}, 32),
    ("angle", (C,), {}, 8), ("angle", (C,), {"deg": True}, 8), ("angle", (M,), {}, 2), ("angle", (np.array([0, -0.0, np.nan, -np.inf, 3], np.float32),), {}, 2), ("angle", (N, True), {}, 4), ("angle", (D,), {}, 2),
    *[(name, (x,)) for name in ("iscomplex", "isreal") for x in (C, np.array([1, 2j, complex(1, np.nan)], np.complex64), M, N, NONE)],
    ("real_if_close", (C,)), ("real_if_close", (M,)), ("real_if_close", ((M + 1e-7j).astype(np.complex64),)), ("real_if_close", ((M + 1e-3j).astype(np.complex64), 0.01)),
    ("diff", (V, 1, -1, 0.5)), ("diff", (M,), {"append": 1, "axis": 0}), ("diff", (N,), {"prepend": N[:, :2].copy()}), ("ediff1d", (N,), {"to_begin": -99, "to_end": [88, 99]}), ("ediff1d", (V, V[:2].copy())),
    ("average", (M, 0), {"returned": True}, 8), ("average", (M,), {"returned": True, "weights": np.abs(M), "axis": 1}, 64), ("average", (M, 1, np.abs(V[:6])), {"returned": True}, 64),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=rows(CASES))
@pytest.mark.filterwarnings("ignore")
def test_beside_numpy(shared, case):
    check(shared, *case)


@pytest.mark.parametrize("axis", range(3))
def test_gradients_along_longer_axes(shared, axis):
    """Lines of eight elements or more are computed as one vector, unless the array is a view."""
    host = RNG.standard_normal((9, 17, 8)).astype(np.float32)
    x, places = shared.array(host), np.cumsum(1 + RNG.random(host.shape[axis]))
    for order in (1, 2):
        for step, given in ((1.0, 1.0), (0.25, 0.25), (shared.array(np.float32(0.25)), 0.25), (shared.array(places), places)):
            found = tuff.gradient(x, step, axis=axis, edge_order=order)
            expected = np.gradient(host.astype(np.float64), given, axis=axis, edge_order=order)
            # Coordinates up to 26 are rounded to f32 before they are subtracted: distances of 1 or more err by 26 units.
            np.testing.assert_allclose(found.numpy(), expected, atol=32 * 2.0**-24 * 8 * np.abs(host).max())
        view = tuff.gradient(x[:, ::-1, 1:], axis=axis, edge_order=order) if axis < 2 else None
        if view is not None:
            wanted = np.gradient(host[:, ::-1, 1:].astype(np.float64), axis=axis, edge_order=order)
            np.testing.assert_allclose(view.numpy(), wanted, atol=8 * 2.0**-24 * np.abs(host).max())
    assert (x.numpy() == host).all()


def test_gradients_keep_infinities_in_their_lines(shared):
    host = RNG.standard_normal((3, 16)).astype(np.float32)
    host[1, 0], host[1, -1], host[2, 5] = np.inf, np.nan, -np.inf
    with np.errstate(invalid="ignore"):
        for axis in range(2):
            np.testing.assert_array_equal(np.isfinite(tuff.gradient(shared.array(host), axis=axis).numpy()), np.isfinite(np.gradient(host, axis=axis)))


def test_half_precision(shared):
    x = shared.array(H)
    found = tuff.gradient(x, axis=1)
    assert found.dtype == np.float16
    np.testing.assert_allclose(found.numpy(), np.gradient(H.astype(np.float64), axis=1), atol=2.0**-10 * 4)
    assert tuff.cov(x).dtype == np.float32
    assert tuff.unwrap(x * 4).dtype == np.float16


def test_many_periods_are_exact(shared):
    """A sum of 4096 rounded multiples of 2 pi would be off by more."""
    turns = np.arange(4096)
    host = (0.7 * turns).astype(np.float32) % np.float32(2 * np.pi)
    found = tuff.unwrap(shared.array(host)).numpy()
    expected = np.unwrap(host.astype(np.float64))
    assert np.abs(found - expected).max() <= 2 * np.spacing(np.float32(expected.max()))


def i0_exact(x):
    """The power series in fractions of 2**-200."""
    one = 1 << 200
    squared = int(float(x) ** 2 / 4 * 2**60) * one >> 60
    total = term = one
    k = 0
    while term > 1:
        k += 1
        term = (term * squared >> 200) // (k * k)
        total += term
    return total / one


def test_i0(shared):
    host = np.concatenate([np.linspace(0, 30, 61), [-1.5, 60, 85, 90]]).astype(np.float32)
    wanted = np.array([i0_exact(x) for x in host])
    found = tuff.i0(shared.array(host))
    # Horner: 2 units for each of up to 20 steps of decreasing weight; e**(x / 2) twice within 4 units, and x itself.
    np.testing.assert_allclose(found.numpy(), wanted, rtol=16 * 2.0**-24)
    assert found.dtype == np.float32 and np.i0(shared.array(host)).numpy().tolist() == found.numpy().tolist()
    wide = tuff.i0(shared.array(host, np.float64)).numpy()
    np.testing.assert_allclose(wide, wanted, rtol=1e-13)
    special = tuff.i0(shared.array([0, np.inf, -np.inf, np.nan])).numpy()
    assert special[0] == 1 and np.isinf(special[1:3]).all() and math.isnan(special[3])
    assert tuff.i0(shared.array([0, 1], np.int32)).dtype == np.float32 and tuff.i0(shared.array(H)).dtype == np.float16


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning", "kaiser"])
def test_windows(shared, name):
    more = (8.6,) if name == "kaiser" else ()
    for points in (0, 1, 2, 9, -1):
        compare(getattr(tuff, name)(points, *more, device=shared), getattr(np, name)(points, *more), 1)
    assert getattr(tuff, name)(4, *more, np.float64, device=shared).dtype == np.float64
    with pytest.raises(TypeError, match="M is"):
        getattr(tuff, name)(2.5, *more)


@pytest.mark.parametrize(
    "error, use",
    [
        (ValueError, lambda x, v: tuff.gradient(v[:1])),
        (ValueError, lambda x, v: tuff.gradient(v[:2], edge_order=2)),
        (ValueError, lambda x, v: tuff.gradient(v, edge_order=3)),
        (TypeError, lambda x, v: tuff.gradient(x, 1, 2, 3)),
        (ValueError, lambda x, v: tuff.gradient(x, v, axis=0)),
        (TypeError, lambda x, v: tuff.gradient(v > 0)),
        (TypeError, lambda x, v: tuff.gradient(v, V)),
        (IndexError, lambda x, v: tuff.gradient(v, axis=1)),
        (ValueError, lambda x, v: tuff.gradient(x, axis=(0, 0))),
        (ValueError, lambda x, v: tuff.interp(x, v[:0], v[:0])),
        (ValueError, lambda x, v: tuff.interp(x, v, v[:3])),
        (ValueError, lambda x, v: tuff.interp(x, x, x)),
        (ValueError, lambda x, v: tuff.interp(x, v, v, period=0)),
        (TypeError, lambda x, v: tuff.interp(x, V, v)),
        (TypeError, lambda x, v: tuff.interp(1.0, [1], [2])),
        (TypeError, lambda x, v: tuff.interp(x.astype(np.complex64), v, v)),
        (TypeError, lambda x, v: tuff.unwrap(v.astype(np.complex64))),
        (ValueError, lambda x, v: tuff.unwrap(v, period=0)),
        (IndexError, lambda x, v: tuff.unwrap(v, axis=1)),
        (ValueError, lambda x, v: tuff.cov(x.reshape(2, 3, 4))),
        (ValueError, lambda x, v: tuff.cov(x, ddof=1.5)),
        (TypeError, lambda x, v: tuff.cov(x, fweights=[0.5] * 6)),
        (RuntimeError, lambda x, v: tuff.cov(x, fweights=[1, 2])),
        (RuntimeError, lambda x, v: tuff.cov(x, aweights=x)),
        (TypeError, lambda x, v: tuff.cov(M)),
        (TypeError, lambda x, v: tuff.corrcoef(x, dtype=np.int32)),
        (TypeError, lambda x, v: tuff.angle(M)),
        (TypeError, lambda x, v: tuff.i0(x.astype(np.complex64))),
        (TypeError, lambda x, v: tuff.ediff1d(x.astype(np.int32), 1.5)),
        (ValueError, lambda x, v: tuff.asarray_chkfinite(v / 0)),
        (TypeError, lambda x, v: tuff.real_if_close(M)),
    ],
)
def test_what_is_wrong(shared, error, use):
    with pytest.raises(error):
        use(shared.array(M), shared.array(V))


def test_finite_values(shared):
    x = shared.array(V)
    assert tuff.asarray_chkfinite(x) is x
    compare(tuff.asarray_chkfinite([1, 2], np.float32, device=shared), np.float32([1, 2]))
    with pytest.raises(ValueError, match="infs or NaNs"):
        tuff.asarray_chkfinite([1, np.inf], device=shared)
