"""What ignores NaN, and quantiles over several axes, beside NumPy."""

import numpy as np
import pytest
from beside import check, rows

import tuff

RNG = np.random.default_rng(10)
M = RNG.standard_normal((4, 6)).astype(np.float32)
HOLES = np.where(RNG.random((4, 6)) < 0.4, np.nan, M).astype(np.float32)
HOLES[0, 0] = HOLES[1, 1] = 1.0
INFINITE = np.array([-np.inf, 1, 2, np.inf], np.float32)
EMPTY_ROW = HOLES.copy()
EMPTY_ROW[2] = np.nan
S = np.where(RNG.random((3, 4, 5)) < 0.3, np.nan, RNG.standard_normal((3, 4, 5)))
N = RNG.integers(-9, 9, (4, 5)).astype(np.int32)
H = HOLES.astype(np.float16)
C = (HOLES + 1j * M).astype(np.complex64)
POINT = np.array(2.5, np.float32)
LONG = np.where(RNG.random(1003) < 0.2, np.nan, RNG.standard_normal(1003)).astype(np.float32)
METHODS = ("linear", "lower", "higher", "midpoint", "nearest")

CASES = [
    *[(name, (x, axis)) for name in ("nanargmax", "nanargmin") for x in (M, N, H) for axis in (None, 0, -1) if x is not H or axis is None],
    ("nanargmax", (HOLES,)), ("nanargmin", (np.nan_to_num(HOLES, nan=np.inf),)), ("nanargmax", (S,)), ("nanargmax", (M, 1), {"keepdims": True}), ("nanargmin", (POINT,)),
    *[(name, (x, axis), {}, 16) for name in ("nancumsum", "nancumprod") for x in (HOLES, S, C) for axis in (None, 0, -1)],
    ("nancumsum", (N,)), ("nancumsum", (N > 0, 1)), ("nancumprod", (N,)), ("nancumsum", (HOLES, 0, np.float64), {}, 16),
    *[("nanmedian", (x, axis), {}, 4) for x in (HOLES, EMPTY_ROW, S) for axis in (None, 0, -1, (0, 1))],
    ("nanmedian", (S, (0, 2)), {"keepdims": True}, 4), ("nanmedian", (N, 0), {}, 4), ("nanmedian", (H, 0), {}, 2.0**13), ("nanmedian", (POINT,)), ("nanmedian", (np.zeros((0, 3), np.float32),)), ("nanmedian", (np.zeros((0, 3), np.float32), 0)), ("nanmedian", (np.zeros((2, 0), np.uint8), 1)), ("nanmedian", (np.zeros((2, 0), np.int64), 0)),
    ("nanmedian", (HOLES, 1), {"keepdims": True}, 4),
    *[("nanquantile", (LONG, [0.0, 0.1, 0.25, 0.7, 0.9, 1.0]), {"method": method}, 8) for method in METHODS],
    *[("nanquantile", (EMPTY_ROW, 0.3, 1), {"method": method}, 8) for method in METHODS],
    ("nanquantile", (S, [0.2, 0.5], (0, 2)), {"keepdims": True}, 8), ("nanquantile", (HOLES, [0.5], 0), {}, 8), ("nanpercentile", (HOLES, [10, 50, 99.5], 1), {}, 8), ("nanpercentile", (HOLES, 30), {}, 8),
    ("nanpercentile", (N, 30, 0), {}, 8), ("nanquantile", (np.arange(11, dtype=np.float32), [n / 10 for n in range(11)]), {"method": "lower"}), ("nanquantile", (np.arange(11, dtype=np.float32), [n / 10 for n in range(11)]), {"method": "higher"}),
    ("nanquantile", (np.arange(6, dtype=np.float32), [0.1, 0.3, 0.5, 0.7]), {"method": "nearest"}),
    ("median", (S * 0 + 1, (0, 2)), {}, 4), ("median", (M, (0, 1)), {}, 4), ("quantile", (np.nan_to_num(S), [0.25, 0.5], (0, -1)), {"keepdims": True}, 8), ("percentile", (M, 30, (1, 0)), {}, 8),
    ("quantile", (np.nan_to_num(S), 0.25, (2,)), {}, 8), ("quantile", (INFINITE, [0.2, 0.3, 0.9]), {}, 8), ("nanquantile", (INFINITE, [0.2, 0.3, 0.9]), {}, 8),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=rows(CASES))
@pytest.mark.filterwarnings("ignore")
def test_beside_numpy(shared, case):
    check(shared, *case)


def test_outputs(shared):
    x, out = shared.array(HOLES), shared.empty(4)
    assert tuff.nanmedian(x, 1, out) is out
    np.testing.assert_array_equal(out.numpy(), np.nanmedian(HOLES, 1))
    assert tuff.nanquantile(x, 0.0, 1, out=out) is out
    np.testing.assert_array_equal(out.numpy(), np.nanmin(HOLES, 1))
    sums = shared.empty((4, 6))
    assert tuff.nancumsum(x, 1, out=sums) is sums


@pytest.mark.parametrize(
    "error, use",
    [
        (ValueError, lambda x: tuff.nanargmax(x, 1)),
        (ValueError, lambda x: tuff.nanargmin(x * np.nan)),
        (ValueError, lambda x: tuff.nanquantile(x, 1.5)),
        (ValueError, lambda x: tuff.nanquantile(x, 0.5, method="weibull")),
        (ValueError, lambda x: tuff.nanmedian(x, (0, 0))),
        (IndexError, lambda x: tuff.nanmedian(x, 2)),
        (TypeError, lambda x: tuff.nanmedian(M)),
        (TypeError, lambda x: tuff.nanmedian(x.astype(np.complex64))),
        (ValueError, lambda x: tuff.nanmedian(x, 0, x)),
        (TypeError, lambda x: tuff.nanpercentile(x, "half")),
        (ValueError, lambda x: tuff.median(x, (0, 0))),
        (TypeError, lambda x: tuff.nancumsum(M)),
    ],
)
def test_what_is_wrong(shared, error, use):
    with pytest.raises(error):
        use(shared.array(EMPTY_ROW))
