"""Elements that are replaced, left out, inserted and chosen, beside NumPy."""

import numpy as np
import pytest
from beside import check, rows

import tuff

RNG = np.random.default_rng(3)
V = RNG.integers(-9, 9, 12).astype(np.int32)
M = RNG.standard_normal((4, 6)).astype(np.float32)
S = RNG.integers(0, 100, (2, 3, 4)).astype(np.uint8)
H = RNG.standard_normal(9).astype(np.float16)
D = RNG.standard_normal((3, 4))
C = (RNG.standard_normal(6) + 1j * RNG.standard_normal(6)).astype(np.complex64)
B = M > 0
NONE = np.zeros((0, 3), np.float32)
POINT = np.array(5, np.int64)

IN_PLACE = [
    ("copyto", (M, 2.5)), ("copyto", (M, M[1].copy())), ("copyto", (M, M * 2), {"where": B}), ("copyto", (V, 7), {"where": V > 0}),
    ("copyto", (M, [1, 2, 3, 4, 5, 6])), ("copyto", (V, 1.5), {"casting": "unsafe"}), ("copyto", (D, M[:3, :4].copy())), ("copyto", (C, 1j)),
    ("copyto", (M, 0), {"where": False}), ("copyto", (M, 1.5), {"where": B[0].copy()}), ("copyto", (NONE, 3)), ("copyto", (POINT, 3)),
    ("putmask", (M, B, 0)), ("putmask", (M, B, [1.0, 2.0, 3.0])), ("putmask", (V, V, V[::-1].copy())), ("putmask", (M, B, M.ravel() * 3)),
    ("putmask", (C, C.real > 0, [1, 2])), ("putmask", (NONE, NONE > 0, 1)),
    ("place", (M, B, [1.0, 2.0, 3.0])), ("place", (V, V > 0, [44])), ("place", (V, V > 100, [44])), ("place", (S, S > 50, V.astype(np.uint8))), ("place", (H, H > 0, [0.5, 2])),
    ("put", (M, [0, -1, 7], [1.5, 2.5, 3.5])), ("put", (V, [1, 2, 3], 9)), ("put", (V, 3, [5, 6])), ("put", (V, [20, -30], [1, 2], "wrap")), ("put", (V, [20, -30], [1, 2], "clip")),
    ("put", (M, np.array([3, 3, 5]), [1.0, 2.0, 3.0])), ("put", (V, np.array([20, -30]), [1, 2], "wrap")), ("put", (V, np.array([20, -30], np.int8), [1, 2], "clip")), ("put", (S, [], [])),
    ("fill_diagonal", (M, 5)), ("fill_diagonal", (M.T.copy(), [1, 2, 3])), ("fill_diagonal", (S[:, :2, :2].copy(), 9)), ("fill_diagonal", (np.zeros((8, 3), np.float32), 4, True)),
    ("fill_diagonal", (np.zeros((8, 3)), [1.0, 2.0], True)), ("fill_diagonal", (np.zeros((3, 3), bool), True)), ("fill_diagonal", (NONE, 1)),
]  # fmt: skip

CASES = [
    ("delete", (V, 3)), ("delete", (V, -1)), ("delete", (V, [0, 0, 5, -2])), ("delete", (V, slice(None, None, 2))), ("delete", (V, slice(8, 2, -1))), ("delete", (M, 1, 0)),
    ("delete", (M, [0, 2, 4], 1)), ("delete", (S, slice(1, 3), -1)), ("delete", (M, 2)), ("delete", (M, np.array([1, 3]), 0)), ("delete", (V, V > 0)), ("delete", (V, list(V > 0))),
    ("delete", (M, B[0].copy(), 1)), ("delete", (V, [])), ("delete", (C, 1)), ("delete", (NONE, 1, 1)), ("delete", (V, list(range(12)))), ("delete", (V, list(range(0, 12, 2)) + [11])),
    ("delete", (np.arange(40), list(range(0, 40, 2)))),
    ("insert", (V, 3, 99)), ("insert", (V, -1, [1, 2, 3])), ("insert", (V, [1, 4, 4], [7, 8, 9])), ("insert", (V, [4, 1], 5)), ("insert", (V, 12, 1)), ("insert", (V, 2, 1.75)),
    ("insert", (M, 1, 0.5, 0)), ("insert", (M, 2, M[:, 0].copy(), 1)), ("insert", (M, [0, 6], [[1.0, 2.0]], 1)), ("insert", (M, [2], M[:, :2].copy(), 1)),
    ("insert", (S, 1, S[:, 0].copy(), 1)), ("insert", (V, slice(0, 3), [5, 6, 7])), ("insert", (V, np.array([1, -2]), [7, 8])), ("insert", (V, np.array([5, 5, 0]), V[:3].copy())),
    ("insert", (V, [], [])), ("insert", (C, 2, 1j)), ("insert", (NONE, 0, 1, 0)), ("insert", (M, 3, 1)),
    ("trim_zeros", (np.array([0, 0, 1, 0, 2, 0], np.int8),)), ("trim_zeros", (np.array([0, 3.5, 0], np.float32), "f")), ("trim_zeros", (np.array([0, 3.5, 0], np.float32), "B")),
    ("trim_zeros", (np.zeros(3, np.float32),)), ("trim_zeros", (np.zeros(0, np.float32),)), ("trim_zeros", (np.array([np.nan, 0.0], np.float32),)), ("trim_zeros", (np.array([0, 1j], np.complex64),)),
    ("choose", (np.array([[0, 1, 2], [2, 0, 1]]), [M[:2, :3].copy(), 9, M[2, :3].copy()])), ("choose", (np.array([0, 1, 1], np.uint8), V[:6].reshape(2, 3))),
    ("choose", (np.array([5, -1]), [V[:2].copy(), V[2:4].copy()], None, "wrap")), ("choose", (np.array([5, -1]), [V[:2].copy(), V[2:4].copy()], None, "clip")),
    ("choose", (np.arange(10), [np.full(10, 3 * n, np.int32) for n in range(10)])), ("choose", (B[0].copy(), [C, V[:6].astype(np.complex64)])), ("choose", (np.array(2), [M, M + 1, M + 2])),
    ("piecewise", (M, [M < -0.5, M > 0.5], [-1, 1])), ("piecewise", (M, [M < 0, M >= 0], [lambda x: -x, lambda x: x * x])), ("piecewise", (V, [V < 0], [lambda x: -x, 3.75])),
    ("piecewise", (V, V < 0, [7, lambda x: x + 1])), ("piecewise", (M, [M > 9], [lambda x: x * 0])), ("piecewise", (np.array(2.0, np.float32), [True], [lambda x: x + 5])),
    ("piecewise", (H, [H > 0], [lambda x, k, shift=0: x * k + shift, 0], 2), {"shift": 1}), ("piecewise", (NONE, [NONE > 0], [1])),
]  # fmt: skip


@pytest.mark.parametrize("case", IN_PLACE, ids=rows(IN_PLACE))
def test_in_place(shared, case):
    check(shared, *case, in_place=True)


@pytest.mark.parametrize("case", CASES, ids=rows(CASES))
@pytest.mark.filterwarnings("ignore")
def test_beside_numpy(shared, case):
    check(shared, *case)


def test_views_are_written(ctx):
    host = np.arange(24, dtype=np.float32).reshape(4, 6)
    x = ctx.array(host)
    for edit in (
        lambda a, m: m.putmask(a[:, ::2], a[:, ::2] > 9, [1.0, 2.0]),
        lambda a, m: m.place(a[::2, 1:], a[::2, 1:] > 5, [3.0, 4.0]),
        lambda a, m: m.put(a[:, ::-1], [0, 7], [50.0, 60.0]),
        lambda a, m: m.fill_diagonal(a.T[:4, :4], 70),
        lambda a, m: m.fill_diagonal(a[:, ::3], 80, True),
        lambda a, m: m.copyto(a[1:, 1:], a[:-1, :-1]),
        lambda a, m: m.copyto(a[:, ::-1], a, where=a > 20),
    ):
        edit(host, np)
        edit(x, tuff)
        assert x.numpy().tolist() == host.tolist()


def test_trimmed_axes(ctx):
    host = np.zeros((4, 5), np.int32)
    host[1, 2] = host[2, 1] = 7
    x = ctx.array(host)
    assert tuff.trim_zeros(x).numpy().tolist() == host[1:3, 1:3].tolist()
    assert tuff.trim_zeros(x, "f", 1).numpy().tolist() == host[:, 1:].tolist()
    assert tuff.trim_zeros(x, "b", (0,)).numpy().tolist() == host[:3].tolist()
    assert tuff.trim_zeros(x * 0).shape == (0, 0)


def test_what_is_out_of_range_on_the_device(ctx):
    x = ctx.array(V)
    assert tuff.delete(x, ctx.array([0, 99], np.int64)).numpy().tolist() == V[1:].tolist()
    tuff.put(x, ctx.array([99, 1], np.int64), [5, 6])
    assert x.numpy().tolist() == [V[0], 6, *V[2:]]
    assert tuff.choose(ctx.array([0, 5], np.int64), [x[:2].copy(), 3]).numpy().tolist() == [V[0], 0]


def test_out_of_choose(ctx):
    x, out = ctx.array(V[:3].copy()), ctx.empty(3, np.int32)
    assert tuff.choose(ctx.array([1, 0, 1], np.int64), [x, x * 2], out) is out
    assert out.numpy().tolist() == [2 * V[0], V[1], 2 * V[2]]


@pytest.mark.parametrize(
    "error, use",
    [
        (TypeError, lambda x, v: tuff.copyto(v, 1.5)),
        (TypeError, lambda x, v: tuff.copyto(x, V)),
        (TypeError, lambda x, v: tuff.copyto(x, 1, where=v[:6])),
        (ValueError, lambda x, v: tuff.copyto(x, v)),
        (ValueError, lambda x, v: tuff.copyto(v, 1, where=x > 0)),
        (TypeError, lambda x, v: np.copyto(v, V)),
        (ValueError, lambda x, v: tuff.putmask(x, v, 1)),
        (ValueError, lambda x, v: tuff.place(x, v, [1])),
        (ValueError, lambda x, v: tuff.place(v, v * 0 + 1, [])),
        (IndexError, lambda x, v: tuff.put(v, [12], 1)),
        (TypeError, lambda x, v: tuff.put(v, [1.5], 1)),
        (ValueError, lambda x, v: tuff.put(v, [1], 1, "around")),
        (IndexError, lambda x, v: tuff.put(v[:0], [0], 1)),
        (ValueError, lambda x, v: tuff.fill_diagonal(v, 1)),
        (ValueError, lambda x, v: tuff.fill_diagonal(x.reshape(2, 2, 6), 1)),
        (IndexError, lambda x, v: tuff.delete(v, 12)),
        (IndexError, lambda x, v: tuff.delete(v, [1.5])),
        (ValueError, lambda x, v: tuff.delete(v, [True, False])),
        (ValueError, lambda x, v: tuff.delete(v, x[0] > 0)),
        (IndexError, lambda x, v: tuff.delete(v, x[0])),
        (IndexError, lambda x, v: tuff.delete(x, 0, 2)),
        (IndexError, lambda x, v: tuff.insert(v, 13, 1)),
        (ValueError, lambda x, v: tuff.insert(v, [1, 2], [1, 2, 3])),
        (TypeError, lambda x, v: tuff.insert(v, 1, V)),
        (ValueError, lambda x, v: tuff.trim_zeros(v, "x")),
        (TypeError, lambda x, v: tuff.choose(x, [1, 2])),
        (ValueError, lambda x, v: tuff.choose(v, [])),
        (ValueError, lambda x, v: tuff.choose(v, [1, 2], None, "around")),
        (ValueError, lambda x, v: tuff.piecewise(v, [v > 0], [1, 2, 3])),
        (IndexError, lambda x, v: tuff.piecewise(v, [x > 0], [1])),
        (TypeError, lambda x, v: tuff.piecewise(v, [V > 0], [1])),
    ],
)
def test_what_is_wrong(shared, error, use):
    x, v = shared.array(M), shared.array(V)
    with pytest.raises(error):
        use(x, v)
    assert (x.numpy() == M).all() and (v.numpy() == V).all()
