"""Sets and orders by several keys, beside NumPy."""

import numpy as np
import pytest
from beside import check, rows

import tuff

RNG = np.random.default_rng(4)
A = RNG.integers(-5, 9, 30).astype(np.int32)
B = RNG.integers(0, 20, 25).astype(np.int32)
BYTES = RNG.integers(0, 9, (3, 5)).astype(np.uint8)
F = np.array([1.5, np.nan, -2, 0.0, -0.0, np.inf, 1.5, np.nan], np.float32)
G = np.array([np.nan, -2, 7, np.inf, 0.0], np.float32)
D = np.array([0.1, 0.2, 0.3])
C = np.array([1 + 2j, 1 - 2j, 0, 1 + 2j, complex(np.nan, 0), 3], np.complex64)
E = np.array([3, 1 - 2j, complex(np.nan, 0)], np.complex64)
T = np.array([True, False, True])
NONE = np.zeros(0, np.float32)
PAIRS = [(A, B), (A, BYTES), (F, G), (D, D[1:].copy()), (T, np.array([True])), (NONE, F), (F, NONE), (NONE, NONE), (A, NONE.astype(np.int32)), (A.astype(np.int64), B), (F.astype(np.float16), G)]

CASES = [
    *[(name, pair) for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin", "in1d") for pair in PAIRS],
    *[(name, (C, E)) for name in ("intersect1d", "setdiff1d", "isin", "in1d")],
    ("isin", (A, [1, 2, 30])), ("isin", (A, 3)), ("isin", (A, [1.0, 2.5, np.inf])), ("isin", (A, [])), ("isin", (F, [np.nan, 1.5])), ("isin", (F, [0, 7], False, True)),
    ("isin", (A, list(range(20)))), ("isin", (BYTES, [-1, 300, 4])), ("isin", (BYTES, B, False, True)), ("isin", (A, B), {"kind": "sort"}), ("isin", (A, B), {"kind": "table", "invert": True}),
    ("isin", (np.array(3, np.int32), B)), ("isin", (C, [3, 0])), ("in1d", (BYTES, [3, 4])), ("setdiff1d", (B, A, True)), ("union1d", (A.astype(np.int64), [1, 100])), ("isin", (T, [0])),
    ("intersect1d", (A, B), {"return_indices": True}), ("intersect1d", (F, G), {"return_indices": True}), ("intersect1d", (C, E), {"return_indices": True}),
    ("lexsort", ((A[:25], B),)), ("lexsort", ((B, A[:25], B % 3),)), ("lexsort", (BYTES,)), ("lexsort", ((F, F[::-1].copy()),)), ("lexsort", ((BYTES, BYTES % 2), 0)),
    ("lexsort", ((BYTES, BYTES % 2), -2)), ("lexsort", ((T, T),)), ("lexsort", ((NONE, NONE),)), ("lexsort", ((np.array(1.0, np.float32),),)),
    ("sort_complex", (C,)), ("sort_complex", (A,)), ("sort_complex", (D,)), ("sort_complex", (C.reshape(2, 3),)), ("sort_complex", (NONE,)), ("sort_complex", (F.astype(np.float16),)),
    ("sort_complex", (np.array([complex(1, np.nan), complex(np.nan, 1), 2, complex(np.nan, 0), complex(0, np.nan), complex(np.nan, np.nan)], np.complex64),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=rows(CASES))
@pytest.mark.filterwarnings("ignore")
def test_beside_numpy(shared, case):
    name, arguments, *_ = case
    check(shared, *case, by_numpy=isinstance(arguments[0], np.ndarray) or name == "lexsort")


def test_ties_keep_their_order(shared):
    keys = [RNG.integers(0, 3, 500).astype(np.int8) for _ in range(3)]
    assert np.lexsort(tuple(shared.array(one) for one in keys)).numpy().tolist() == np.lexsort(keys).tolist()


def test_integers_are_not_rounded(shared):
    """float32 has neither of these numbers."""
    x = shared.array(np.array([2**24 + 1, 2**53 + 1], np.int64))
    assert tuff.isin(x, [2.0**24, 2.0**53]).numpy().tolist() == [False, False]
    assert tuff.isin(x, [2**24 + 1, 2**53]).numpy().tolist() == [True, False]


@pytest.mark.parametrize(
    "error, use",
    [
        (TypeError, lambda x: tuff.isin(A, x)),
        (TypeError, lambda x: tuff.union1d(x, B)),
        (TypeError, lambda x: tuff.isin([1], [2])),
        (ValueError, lambda x: tuff.isin(x, x, kind="hash")),
        (TypeError, lambda x: tuff.setdiff1d(x, "text")),
        (TypeError, lambda x: tuff.intersect1d(x, [x, x])),
        (TypeError, lambda x: tuff.lexsort(())),
        (ValueError, lambda x: tuff.lexsort((x, x[1:]))),
        (TypeError, lambda x: tuff.lexsort((x, A))),
        (IndexError, lambda x: tuff.lexsort((x, x), 1)),
        (TypeError, lambda x: tuff.sort_complex(A)),
        (ValueError, lambda x: tuff.sort_complex(x[0])),
    ],
)
def test_what_is_wrong(shared, error, use):
    x = shared.array(A)
    with pytest.raises(error):
        use(x)


def test_two_contexts(shared):
    with tuff.Context(backend="host") as other, pytest.raises(ValueError, match="context"):
        tuff.union1d(shared.array(A), other.array(B))


@pytest.mark.parametrize("types", [(np.bool_, np.bool_), (np.int8, np.int8), (np.uint8, np.int32), (np.uint16, np.uint16), (np.int32, np.int64), (np.int64, np.int64), (np.uint32, np.int32), (np.uint64, np.uint64)])  # fmt: skip
def test_isin_by_a_table(ctx, types):
    # Elements at both ends of their type, among tests at both ends of theirs and in its middle.
    rng = np.random.default_rng(9)
    a, b = (np.iinfo(np.uint8 if kind == np.bool_ else kind) for kind in types)

    def drawn(begin, kind, n):
        return (rng.integers(0, 200, n).astype(np.uint64) * np.uint64(kind != np.bool_) + np.array(begin % 2**64, np.uint64)).astype(kind)

    x = np.concatenate([drawn(begin, types[0], 2000) for begin in (a.min, 0, a.max - 200)])
    for begin in (b.min, 0, b.max - 200):
        for n in (1, 300, 5000):
            tests = drawn(begin, types[1], n)
            for invert in (False, True):
                got = tuff.isin(ctx.array(x, dtype=x.dtype).reshape(2, -1), ctx.array(tests, dtype=tests.dtype), invert=invert)
                np.testing.assert_array_equal(got.numpy().ravel(), np.isin(x, tests, invert=invert))
    apart = np.array([b.min, b.max], types[1])  # too far apart for a table, but of the small types
    got = tuff.isin(ctx.array(x, dtype=x.dtype), ctx.array(apart, dtype=apart.dtype))
    np.testing.assert_array_equal(got.numpy(), np.isin(x, apart))
