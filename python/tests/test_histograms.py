"""Histograms beside NumPy."""

import numpy as np
import pytest
from beside import check, compare, rows

import tuff

RNG = np.random.default_rng(8)
X = RNG.standard_normal(200).astype(np.float32)
Y = RNG.standard_normal(200).astype(np.float32)
W = RNG.integers(0, 5, 200).astype(np.float32)
N = RNG.integers(-20, 20, 60).astype(np.int16)
U = RNG.integers(0, 256, 40).astype(np.uint8)
D = RNG.standard_normal(50)
B = N > 0
H = X[:30].astype(np.float16)
NONE = np.zeros(0, np.float32)
SAMPLE = RNG.standard_normal((100, 3)).astype(np.float32)
DOWN = [2.0, 0.5, 0.0, -1.0]
EDGE = np.array([0.1, 0.2, 0.3, 0.7], np.float32)  # beside edges of float64 that they are not equal to

CASES = [
    *[("digitize", (x, bins, right)) for x in (X, N, U, D, B, H, NONE, np.array(0.25, np.float32)) for bins in ([-1.0, 0.0, 0.5, 2.0], DOWN) for right in (False, True)],
    ("digitize", (N, [-300, -3.5, 0, 2.5, 1e30])), ("digitize", (U, [-1.0, 3, 3, 300])), ("digitize", (U, [-1.0, 3, 300], True)), ("digitize", (EDGE, [0.1, 0.2, 0.3, 0.7])),
    ("digitize", (EDGE, [0.1, 0.2, 0.3, 0.7], True)), ("digitize", (X, np.array([-1, 0, 1], np.float32))), ("digitize", (N, np.array([5, 0, -5], np.int16))), ("digitize", (X, np.array([3.0], np.float32), True)),
    ("digitize", (np.array([np.nan, np.inf, -np.inf, 0], np.float32), [0.0, 1.0])), ("digitize", (N, np.array([-1, 0, 0, 4], np.int8))), ("digitize", (X, [])),
    ("histogram", (X,)), ("histogram", (X, 5, (-1, 1))), ("histogram", (X, [-1, 0, 0.5])), ("histogram", (N, 7)), ("histogram", (U, [-10, 3, 300])), ("histogram", (EDGE, [0.1, 0.2, 0.3, 0.7])),
    ("histogram", (X, 5), {"weights": W}), ("histogram", (X, 5, (-1, 1)), {"weights": W}), ("histogram", (N, 4), {"weights": U[:1].repeat(60).astype(np.int32)}), ("histogram", (NONE, 3)),
    ("histogram", (X, [-1, 0, 0.5]), {"weights": (W + 1j * W).astype(np.complex64)}), ("histogram", (EDGE, [0.1, 0.2, 0.3, 0.7]), {"weights": EDGE}, 4), ("histogram", (NONE, 3), {"weights": NONE}),
    ("histogram", (X, 6), {"density": True}, 8), ("histogram", (X, [-2, 0, 0.5]), {"density": True, "weights": W}, 8), ("histogram", (D, 6), {"density": True}, 8),
    *[("histogram_bin_edges", (X, rule)) for rule in ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")],
    ("histogram_bin_edges", (X, "auto", (-1, 1))), ("histogram_bin_edges", (X, 4)), ("histogram_bin_edges", (NONE, "auto")), ("histogram_bin_edges", (np.ones(5, np.float32), "fd")), ("histogram", (X, "sturges")),
    ("histogram2d", (X, Y)), ("histogram2d", (X, Y, 3)), ("histogram2d", (X, Y, [3, 4])), ("histogram2d", (X, Y, [-1, 0, 2.0])), ("histogram2d", (X, Y, [[-1, 0, 2.0], 4])), ("histogram2d", (N, N * 2, 4)),
    ("histogram2d", (X, Y, 4, [[-1, 1], [-2, 2]])), ("histogram2d", (X, Y, 4), {"density": True}, 16), ("histogram2d", (X, Y, 4), {"weights": W}), ("histogram2d", (NONE, NONE, 2)),
    ("histogram2d", (X, Y, 4), {"weights": W, "density": True}, 16), ("histogram2d", (EDGE, EDGE, [[0.1, 0.2, 0.71], [0.2, 0.3, 0.71]])),
    ("histogramdd", (SAMPLE, 4)), ("histogramdd", (SAMPLE, [2, 3, 4])), ("histogramdd", (SAMPLE, [[-1, 0, 1], 3, 4])), ("histogramdd", (X, 4)), ("histogramdd", ([X, Y, X], 3)), ("histogramdd", (SAMPLE, 3, [None, (-1, 1), None])),
    ("histogramdd", (SAMPLE, 3), {"density": True}, 16), ("histogramdd", (SAMPLE.astype(np.float64), 3), {"density": True, "weights": D.repeat(2)}, 400),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=rows(CASES))
@pytest.mark.filterwarnings("ignore")
def test_beside_numpy(shared, case):
    name, arguments, *rest = case
    options = rest[0] if rest else {}
    tolerance = rest[1] if len(rest) > 1 else 0
    check(shared, name, arguments, options, tolerance)


def test_bounds_of_every_rule_with_integers(shared):
    """NumPy 2: bins of integers are not narrower than 1."""
    counts, edges = tuff.histogram(shared.array(np.arange(10, dtype=np.int32)), "sqrt")
    assert len(edges) - 1 == 4 and counts.numpy().sum() == 10
    _, edges = tuff.histogram(shared.array(np.array([0, 1] * 500, np.int32)), "rice")
    assert len(edges) - 1 == 1


def test_numbers_between_float32s(shared):
    """An edge of float64 between two numbers of float32 parts them."""
    low = np.float32(0.1)
    near = np.array([np.nextafter(low, np.float32(0)), low, np.nextafter(low, np.float32(1))])
    for edge in (float(low), float(low) + 1e-12, float(low) - 1e-12):
        for right in (False, True):
            compare(tuff.digitize(shared.array(near), [edge], right), np.digitize(near, [edge], right))
        compare(tuff.histogram(shared.array(near), [0, edge, 1])[0], np.histogram(near, [0, edge, 1])[0])
        compare(tuff.histogram(shared.array(near), [0, edge])[0], np.histogram(near, [0, edge])[0])
        weights = np.float32([1, 2, 4])
        compare(tuff.histogram(shared.array(near), [0, edge], weights=shared.array(weights))[0], np.histogram(near, [0, edge], weights=weights)[0])


@pytest.mark.parametrize(
    "error, use",
    [
        (ValueError, lambda x: tuff.digitize(x, [1, 0, 2])),
        (ValueError, lambda x: tuff.digitize(x, x[:5])),
        (ValueError, lambda x: tuff.digitize(x, x[:4].reshape(2, 2))),
        (TypeError, lambda x: tuff.digitize(x.astype(np.complex64), [0, 1])),
        (TypeError, lambda x: tuff.digitize(X, [0, 1])),
        (TypeError, lambda x: tuff.digitize(x, 3)),
        (ValueError, lambda x: tuff.histogram(x, "best")),
        (TypeError, lambda x: tuff.histogram(x, "auto", weights=x)),
        (ValueError, lambda x: tuff.histogram(x, weights=x[:5])),
        (TypeError, lambda x: tuff.histogram(x, weights=W)),
        (ValueError, lambda x: tuff.histogram(x, [1])),
        (ValueError, lambda x: tuff.histogram(x, [1, 0])),
        (ValueError, lambda x: tuff.histogram(x / 0)),
        (ValueError, lambda x: tuff.histogram2d(x, x[:5])),
        (ValueError, lambda x: tuff.histogramdd(x.reshape(100, 2), [1, 2, 3])),
        (ValueError, lambda x: tuff.histogramdd(x.reshape(100, 2), 0)),
        (ValueError, lambda x: tuff.histogramdd(x.reshape(100, 2), 3, [(0, 1)])),
        (ValueError, lambda x: tuff.histogramdd(x.reshape(2, 2, 50))),
        (TypeError, lambda x: tuff.histogramdd([x, Y])),
    ],
)
def test_what_is_wrong(shared, error, use):
    with pytest.raises(error):
        use(shared.array(X))
