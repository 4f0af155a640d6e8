"""Blocks, diagonals, arrays of indices, functions along axes and shared memory, beside NumPy."""

import numpy as np
import pytest
from beside import check, compare, rows

import tuff

RNG = np.random.default_rng(12)
V = RNG.standard_normal(4).astype(np.float32)
M = RNG.standard_normal((3, 4)).astype(np.float32)
S = RNG.integers(0, 99, (2, 3, 4)).astype(np.int16)
B = np.array([True, False, True])
C = (V + 1j).astype(np.complex64)
NONE = np.zeros(0, np.float32)
SQUARE = np.zeros((3, 3, 3), np.float32)
CASES = [
    ("block", ([M, M],)), ("block", ([[M, M], [M, M]],)), ("block", ([[M, 1.0 + M], [V, V * 2]],)), ("block", ([V, V, 3.0],)), ("block", ([[[S]], [[S]]],)), ("block", ([[M], [V]],)), ("block", (M,)),
    *[("diag", (v, k)) for v in (V, M, M[:, :2].copy(), B, C, NONE) for k in (0, 1, -2)], ("diag", (M, 7)), ("diag", (np.array([5], np.uint8),)),
    *[("diagflat", (x, k)) for x in (V, M, np.array(3.0, np.float32), NONE) for k in (0, -1)],
    ("apply_over_axes", (np.sum, S, (0, 2))), ("apply_over_axes", (np.sum, M, [1]), {}, 4), ("apply_over_axes", (np.cumsum, S, 0)), ("apply_over_axes", (np.max, S, -1)),
    ("diag_indices_from", (SQUARE,)), ("tril_indices_from", (M,)), ("tril_indices_from", (M, -1)), ("triu_indices_from", (M, 1)), ("ix_", (np.array([0, 2]), np.array([1, 3, 0], np.int32))), ("ix_", (B, np.array([True, False, False, True]))),
    ("ix_", (np.array([1]), [0, 2], [True, False])), ("ix_", (np.array([], np.int64), np.array([2]))),
    ("flip", (S, (0, 2))), ("roll", (S, (1, -2), (0, 2))), ("tile", (M, (2, 1, 2))), ("tril", (M, 1)), ("triu", (M, -1)), ("repeat", (S, 3, 1)), ("repeat", (V, np.array([1, 0, 2, 3]))), ("moveaxis", (S, 0, -1)),
    ("meshgrid", (V, V[:2].copy())), ("broadcast_arrays", (M, V)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=rows(CASES))
@pytest.mark.filterwarnings("ignore")
def test_beside_numpy(shared, case):
    check(shared, *case)


def test_numpys_own(shared):
    compare(np.fix(shared.array(M * 3)), np.fix(M * 3))
    compare(np.resize(shared.array(M), (2, 3, 4)), np.resize(M, (2, 3, 4)))
    compare(np.resize(shared.array(M), 5), np.resize(M, 5))
    compare(np.resize(shared.array(NONE), 3), np.resize(NONE, 3))
    compare(np.meshgrid(shared.array(V), shared.array(V[:2]), sparse=True), np.meshgrid(V, V[:2], sparse=True))
    compare(np.meshgrid(shared.array(V), shared.array(V[:2]), sparse=True, indexing="ij"), np.meshgrid(V, V[:2], sparse=True, indexing="ij"))
    assert np.can_cast(shared.array(S), np.int32) and np.result_type(shared.array(S), np.float32) == np.float32


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_apply_along_axis(shared, axis):
    for function in (lambda v: v.sum(), lambda v: v[:2] * 2, lambda v: v[None, :2] + v[:2, None]):
        for way in (tuff.apply_along_axis, np.apply_along_axis):
            compare(way(function, axis, shared.array(M)), np.apply_along_axis(function, axis, M), 4)
        compare(tuff.apply_along_axis(function, axis, shared.array(S.astype(np.int64))), np.apply_along_axis(function, axis, S.astype(np.int64)))
    compare(tuff.apply_along_axis(lambda v, k, plus: v.size * k + plus, axis, shared.array(M), 2, plus=0.5), np.apply_along_axis(lambda v, k, plus: v.size * k + plus, axis, M, 2, plus=0.5))
    compare(tuff.apply_along_axis(tuff.sort, 0, shared.array(V)), np.sort(V))


def test_index_arrays(shared):
    for name, arguments in (
        ("indices", ((2, 3),)), ("indices", ((2, 0, 3),)), ("indices", ((),)), ("indices", ((2, 3), np.int32)), ("indices", ((2, 3, 4), np.int64, True)), ("diag_indices", (4,)), ("diag_indices", (3, 3)), ("diag_indices", (0,)),
        ("tril_indices", (4,)), ("tril_indices", (3, 1, 5)), ("triu_indices", (4, -1)), ("triu_indices", (3, 0, 2)), ("triu_indices", (0,)),
    ):  # fmt: skip
        compare(getattr(tuff, name)(*arguments, device=shared), getattr(np, name)(*arguments))
    compare(tuff.mask_indices(4, tuff.triu, 1, device=shared), np.mask_indices(4, np.triu, 1))
    compare(tuff.mask_indices(3, np.tril, device=shared), np.mask_indices(3, np.tril))
    x = shared.array(M)
    compare(x[tuff.ix_(shared.array([0, 2], np.int64), [3, 1])], M[np.ix_([0, 2], [3, 1])])
    x[tuff.tril_indices_from(x)] = 0
    compare(x, np.triu(M, 1))


def test_shared_memory(shared):
    x, y = shared.array(np.zeros((4, 6), np.float32)), shared.array(V)
    host = np.zeros((4, 6), np.float32)
    for first in (np.s_[:], np.s_[::2], np.s_[:, ::2], np.s_[1:3, 1::3], np.s_[::-1, ::-2], np.s_[:0]):
        for second in (np.s_[:], np.s_[1::2], np.s_[:, 1::2], np.s_[0], np.s_[2:, ::4], np.s_[:, 1::3]):
            for name in ("shares_memory", "may_share_memory"):
                expected = getattr(np, name)(host[first], host[second])
                for way in (getattr(tuff, name), getattr(np, name)):
                    found = way(x[first], x[second])
                    assert found is expected or (name == "may_share_memory" and type(found) is bool), (name, first, second)
    assert not tuff.shares_memory(x, y) and not tuff.may_share_memory(x, y) and not tuff.shares_memory(x, x.copy())
    assert tuff.shares_memory(x, x.T) and tuff.shares_memory(x, x.reshape(24)[3:]) and tuff.shares_memory(x.T[1], x[:, 1])


@pytest.mark.parametrize(
    "error, use",
    [
        (TypeError, lambda x, v: tuff.block([[x], (x,)])),
        (ValueError, lambda x, v: tuff.block([[x], x])),
        (ValueError, lambda x, v: tuff.block([[x], []])),
        (ValueError, lambda x, v: tuff.block([[x, v]])),
        (TypeError, lambda x, v: tuff.block([1, 2])),
        (TypeError, lambda x, v: tuff.block([x, M])),
        (ValueError, lambda x, v: tuff.diag(x.reshape(3, 2, 2))),
        (ValueError, lambda x, v: tuff.diag(v.max())),
        (TypeError, lambda x, v: tuff.diag(v, 0.5)),
        (TypeError, lambda x, v: tuff.diagflat(V)),
        (ValueError, lambda x, v: tuff.apply_along_axis(lambda y: y, 0, x[:, :0])),
        (TypeError, lambda x, v: tuff.apply_along_axis(lambda y: y.numpy(), 0, x)),
        (IndexError, lambda x, v: tuff.apply_along_axis(lambda y: y, 2, x)),
        (ValueError, lambda x, v: tuff.apply_over_axes(lambda y, axis: y.sum(), x, (0, 1))),
        (ValueError, lambda x, v: tuff.ix_(x)),
        (ValueError, lambda x, v: tuff.diag_indices_from(v)),
        (ValueError, lambda x, v: tuff.diag_indices_from(x)),
        (ValueError, lambda x, v: tuff.tril_indices_from(v)),
        (ValueError, lambda x, v: tuff.indices((2, -1))),
        (TypeError, lambda x, v: tuff.shares_memory(x, M)),
        (TypeError, lambda x, v: tuff.may_share_memory(x, M)),
    ],
)
def test_what_is_wrong(shared, error, use):
    with pytest.raises(error):
        use(shared.array(M), shared.array(V))


def test_names_of_numpy_2(shared):
    x, v = shared.array(M), shared.array(np.array([3, 1, 3], np.int32))
    for name, use in {
        "astype": lambda m, x, v: m.astype(x, np.float16),
        "cumulative_sum": lambda m, x, v: m.cumulative_sum(x, axis=1, include_initial=True),
        "matrix_transpose": lambda m, x, v: m.matrix_transpose(x),
        "unique_values": lambda m, x, v: m.unique_values(v),
        "unique_counts": lambda m, x, v: m.unique_counts(v),
        "unstack": lambda m, x, v: m.unstack(x, axis=1),
        "concat": lambda m, x, v: m.concat([x, x], axis=1),
        "permute_dims": lambda m, x, v: m.permute_dims(x, (1, 0)),
    }.items():
        mine = use(tuff, x, v)
        if hasattr(np, name):
            compare(mine, use(np, M, v.numpy()), 4)
            compare(use(np, x, v), use(np, M, v.numpy()), 4)
