"""Polynomials beside NumPy."""

import numpy as np
import pytest
from beside import check, compare, rows

import tuff

RNG = np.random.default_rng(11)
P = np.array([1.5, -2, 0.25, 3], np.float32)
Q = np.array([2, -1], np.float32)
N = np.array([3, -1, 2], np.int32)
U = np.array([200, 100], np.uint8)
D = np.array([1.0, 0.1, 0.01])
C = np.array([1 + 1j, 2, -1j], np.complex64)
X = RNG.uniform(-2, 2, 40).astype(np.float32)
Y = (0.5 * X**3 - X + 0.1 * RNG.standard_normal(40)).astype(np.float32)
Z = np.stack([Y, 2 - Y], 1)
W = RNG.uniform(0.5, 2, 40).astype(np.float32)
NONE = np.zeros(0, np.float32)
CASES = [
    *[(name, pair, {}, 4) for name in ("polyadd", "polysub", "polymul") for pair in ((P, Q), (Q, P), (N, N[:2].copy()), (D, P.astype(np.float64)), (C, C[:2].copy()), (U, U))],
    ("polyadd", (P, [1, 2])), ("polyadd", (P, 3)), ("polysub", (NONE, P)), ("polymul", (P, [2.0, 1])), ("polymul", (N, np.array([2**20, 2**20, 1], np.int32))), ("polymul", (D, D), {}, 4),
    ("polydiv", (P, Q), {}, 16), ("polydiv", (Q, P), {}, 4), ("polydiv", (P, P), {}, 4), ("polydiv", (D, D[:1].copy()), {}, 4), ("polydiv", (N.astype(np.float32), [1.0, 1]), {}, 8), ("polydiv", (C, C[:2].copy()), {}, 32),
    *[("polyder", (p, m), {}, 4) for p in (P, N, D, C, NONE) for m in (0, 1, 2, 9)],
    *[("polyint", (p, m), {}, 4) for p in (P, N, D, C) for m in (0, 1, 3)], ("polyint", (P, 2, [1.0, 2.0]), {}, 4), ("polyint", (P, 2, 5.0), {}, 4), ("polyint", (P, 1, 1j), {}, 4), ("polyint", (P, 1, np.array([2.0], np.float32)), {}, 4),
    ("polyval", (P, X), {}, 64), ("polyval", ([1.5, -2], X), {}, 16), ("polyval", (N, N)), ("polyval", (C, X), {}, 64), ("polyval", (P, 2.0), {}, 16), ("polyval", (D, X.astype(np.float64)), {}, 64), ("polyval", (P, X.reshape(4, 10)), {}, 64), ("polyval", ([1j, 2], X), {}, 16), ("polyval", (X[:20].copy(), X / 4), {}, 64), ("polyval", (list(range(-9, 9)), X / 4), {}, 64),
    ("poly", (P,), {}, 64), ("poly", (N,), {}, 16), ("poly", (C,), {}, 64), ("poly", (np.array([1j, -1j, 2], np.complex64),), {}, 16), ("poly", (D,), {}, 16),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=rows(CASES))
@pytest.mark.filterwarnings("ignore")
def test_beside_numpy(shared, case):
    name, arguments, *_ = case
    check(shared, *case, by_numpy=all(isinstance(one, np.ndarray) for one in arguments))


# A least-squares solution is as accurate as the condition of the scaled powers, below 10, times the errors of the SVD.
@pytest.mark.parametrize("y, options", [(Y, {}), (Z, {}), (Y, {"w": W}), (Z, {"w": W}), (Y, {"rcond": 1e-3})])
def test_polyfit(shared, y, options):
    given = {name: shared.array(one) if isinstance(one, np.ndarray) else one for name, one in options.items()}
    wide = {name: one.astype(np.float64) if isinstance(one, np.ndarray) else one for name, one in options.items()}
    expected = np.polyfit(X.astype(np.float64), y.astype(np.float64), 3, **wide)
    for way in (tuff.polyfit, np.polyfit):
        compare(way(shared.array(X), shared.array(y), 3, **given), expected, 2000)


def test_polyfit_says_more(shared):
    x, y = shared.array(X), shared.array(Y)
    wide = X.astype(np.float64), Y.astype(np.float64)
    expected = np.polyfit(*wide, 3, full=True)
    found = tuff.polyfit(x, y, 3, full=True)
    compare(found.coefficients, expected[0], 2000)
    compare(found.residuals, expected[1], 2000)
    assert found.rank == expected[2] and np.isclose(found.rcond, len(X) * 2.0**-23)
    compare(found.singular_values, expected[3], 2000)
    for cov in (True, "unscaled"):
        coefficients, covariances = tuff.polyfit(x, y, 3, cov=cov)
        compare(covariances, np.polyfit(*wide, 3, cov=cov)[1], 20000)
    assert tuff.polyfit(x, shared.array(Z), 3, cov=True)[1].shape == (4, 4, 2)


def test_polyfit_in_float64():
    """Its singular values are those of test_linalg.py on every device: here on the host alone."""
    with tuff.Context(backend="host") as context:
        x = context.array(X, np.float64)
        exact = tuff.polyfit(x, 3 * x * x, 2).numpy()
        np.testing.assert_allclose(exact, [3, 0, 0], atol=64 * 2.0**-53 * 3 * 10)
        assert exact.dtype == np.float64


POLYNOMIALS = [
    [1, -3, 2], [1, 0, -1], [2.5, 0, 0], [0, 0, 1, -5, 6, 0], [1, 0, 0, 0, -1], [5], [0, 0, 0], [], [3, 4.5], [1, 1e4, 1], [1, 2j, 3], [1, 1 + 1j, 0, -2j, 0],
    np.poly(np.arange(1, 9)), np.poly([1, 1, 1, 2]), np.poly([1e-3, 1, 1e3]), RNG.standard_normal(21), [1] + [0] * 39 + [-1],
]  # fmt: skip


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("row", range(len(POLYNOMIALS)))
def test_roots(shared, row, kind):
    p = np.array(POLYNOMIALS[row])
    kind = np.result_type(kind, np.complex64) if p.dtype.kind == "c" else kind
    p = p.astype(kind)
    expected = np.roots(p.astype(np.result_type(kind, np.float64)))
    found = tuff.roots(shared.array(p, kind))
    assert found.dtype == np.result_type(kind, np.complex64) and found.shape == expected.shape
    z, n = found.numpy().astype(np.complex128), len(p)
    # Each is a root of a polynomial whose coefficients differ by rounding errors.
    sizes = np.polyval(np.abs(p.astype(np.complex128)), np.abs(z))
    assert (np.abs(np.polyval(p.astype(np.complex128), z)) <= 16 * n * np.finfo(kind).eps * sizes).all()
    if row not in (12, 13):  # near others, where coefficients of the type do not tell roots from each other
        for one in expected:
            assert np.abs(z - one).min() <= 100 * n * np.finfo(kind).eps * max(abs(one), 1e-30)


def test_numpys_roots(shared):
    p = shared.array([1.0, -6, 11, -6])
    assert np.allclose(np.sort(np.roots(p).numpy().real), [1, 2, 3], atol=1e-4)


@pytest.mark.parametrize(
    "error, use",
    [
        (TypeError, lambda p: tuff.polyadd(p, P)),
        (TypeError, lambda p: tuff.polyadd([1], [2])),
        (ValueError, lambda p: tuff.polyadd(p, p.reshape(2, 2))),
        (ValueError, lambda p: tuff.polymul(p, [])),
        (ValueError, lambda p: tuff.polydiv(p, p[:0])),
        (ValueError, lambda p: tuff.polyder(p, -1)),
        (ValueError, lambda p: tuff.polyint(p, -1)),
        (ValueError, lambda p: tuff.polyint(p, 3, [1, 2])),
        (TypeError, lambda p: tuff.poly(p.astype(np.complex64).reshape(2, 2))),
        (TypeError, lambda p: tuff.polyval([1, 2], X)),
        (TypeError, lambda p: tuff.polyval(["a"], p)),
        (ValueError, lambda p: tuff.roots(p.reshape(2, 2))),
        (TypeError, lambda p: tuff.roots(P)),
        (np.linalg.LinAlgError, lambda p: tuff.roots(p * np.nan)),
        (ValueError, lambda p: tuff.polyfit(p, p, -1)),
        (TypeError, lambda p: tuff.polyfit(p.reshape(2, 2), p, 1)),
        (TypeError, lambda p: tuff.polyfit(p[:0], p[:0], 1)),
        (TypeError, lambda p: tuff.polyfit(p, p[:2], 1)),
        (TypeError, lambda p: tuff.polyfit(p, p, 1, w=p[:2])),
        (ValueError, lambda p: tuff.polyfit(p, p, 3, cov=True)),
        (TypeError, lambda p: tuff.polyfit(p, P, 1)),
    ],
)
def test_what_is_wrong(shared, error, use):
    with pytest.raises(error):
        use(shared.array(P))
