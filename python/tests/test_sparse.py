"""Sparse matrices, compared with NumPy's dense ones; with SciPy's where it is installed."""

import types

import numpy as np
import pytest

import tuff

RNG = np.random.default_rng(5)
sparse = tuff.sparse


def whole(rows, columns, share=0.2):
    """Small integers, of which all sums here are exact in float16."""
    return np.where(RNG.random((rows, columns)) < share, RNG.integers(-3, 4, (rows, columns)), 0).astype(np.float32)


def places(dense):
    row, col = np.nonzero(dense)
    return dense[row, col], row.astype(np.int32), col.astype(np.int32)


def same(got, wanted):
    got = got.todense() if sparse.issparse(got) else got
    assert got.shape == np.shape(wanted)
    np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_products_from_both_sides(ctx, form, dtype, index):
    dense = whole(17, 23).astype(dtype)
    a = sparse.from_dense(ctx.array(dense), form, index_dtype=index)
    assert a.shape == (17, 23) and a.dtype == dtype and a.format == form and a.nnz == np.count_nonzero(dense)
    for x in (whole(23, 1)[:, 0], whole(23, 4), np.stack([whole(23, 3), whole(23, 3)])):
        same(a @ ctx.array(x.astype(dtype)), dense @ x.astype(dtype))
    for x in (whole(1, 17)[0], whole(5, 17), np.stack([whole(2, 17), whole(2, 17)])):
        same(ctx.array(x.astype(dtype)) @ a, x.astype(dtype) @ dense)
    x = whole(4, 23).astype(dtype)
    same(a @ ctx.array(x).T, dense @ x.T)
    same(a.T @ ctx.array(whole(17, 2).astype(dtype) * 0 + 1), dense.T @ np.ones((17, 2), dtype))
    assert a.dot(ctx.array(x[0])).shape == (17,)


def test_conversions(ctx):
    dense = whole(9, 31)
    a = sparse.from_dense(ctx.array(dense))
    for b in (a, a.tocsc(), a.tocoo(), a.tocsc().tocoo(), a.tocoo().tocsc(), a.T.T, a.T.tocsr().T, a.sum_duplicates()):
        same(b, dense)
        same(b.T, dense.T)
        same(b.transpose(), dense.T)
        assert b.nnz == np.count_nonzero(dense)
    assert a.tocsr() is a and (a.T).format == "csc" and a.T.data is a.data
    same(a.astype(np.float16), dense.astype(np.float16))


def test_duplicates_and_stray_entries(ctx):
    data = np.array([1, 2, 4, 8, 16, 32], np.float32)
    row, col = np.array([2, 0, 2, 1, 5, -1], np.int32), np.array([1, 0, 1, 9, 1, 0], np.int32)
    a = sparse.coo_array((data, (row, col)), (3, 2), context=ctx)
    assert a.nnz == 6
    wanted = np.array([[2, 0], [0, 0], [0, 5]], np.float32)
    same(a, wanted)
    csr = a.tocsr()
    assert csr.nnz == 2
    assert csr.indptr.numpy().tolist() == [0, 1, 1, 2] and csr.indices.numpy().tolist() == [0, 1, -1, -1, -1, -1]
    assert a.sum_duplicates().nnz == 2
    same(a @ ctx.ones((2,)), wanted.sum(1))
    # Unsorted rows with duplicates are multiplied as they are.
    b = sparse.csr_array((np.array([1, 2, 4], np.float32), np.array([1, 0, 1], np.int32), np.array([0, 3], np.int32)), (1, 2), context=ctx)
    same(b @ ctx.array(np.array([1, 10], np.float32)), [52])
    same(b.sum_duplicates(), [[2, 5]])


def test_arithmetic(ctx):
    x, y = whole(12, 8), whole(12, 8)
    a, b = sparse.from_dense(ctx.array(x)), sparse.from_dense(ctx.array(y), "csc", index_dtype=np.int64)
    same(a + b, x + y)
    same(a - b, x - y)
    same(2 * a, 2 * x)
    same(a * 0.5, x * 0.5)
    same(a / 2, x / 2)
    same(-a, -x)
    assert (a - a).nnz == np.count_nonzero(x)  # zeros that are stored
    for form in (a, b.tocoo(), b):
        dense = x if form is a else y
        same(form.sum(0), dense.sum(0))
        same(form.sum(-1), dense.sum(1))
        assert float(form.sum().numpy()) == dense.sum()
    same(sparse.eye(5, context=ctx), np.eye(5, dtype=np.float32))


def test_rows(ctx):
    dense = whole(20, 7)
    a = sparse.from_dense(ctx.array(dense))
    x = ctx.array(whole(7, 2))
    for key in (slice(None), slice(3, 11), slice(15, None), slice(4, 4), slice(9, 2), slice(-5, -1)):
        b = a[key]
        same(b, dense[key])
        same(b @ x, dense[key] @ x.numpy())
        assert b.nnz == np.count_nonzero(dense[key]) and b.data is a.data
    same(a[4], dense[4:5])
    same(a[-1] + a[0], dense[-1:] + dense[:1])
    same(a[5:9].T, dense[5:9].T)
    same(a[5:9].tocsc(), dense[5:9])


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (3, 5)])
def test_no_entries(ctx, shape):
    a = sparse.from_dense(ctx.zeros(shape))
    assert a.nnz == 0
    same(a, np.zeros(shape))
    same(a @ ctx.ones((shape[1],)), np.zeros(shape[0]))
    same(ctx.ones((2, shape[0])) @ a, np.zeros((2, shape[1])))
    same(a + a, np.zeros(shape))
    same(a.T.tocsr(), np.zeros(shape[::-1]))


def test_from_scipy_needs_no_scipy(ctx):
    dense = whole(6, 5)
    data, row, col = places(dense)
    given = types.SimpleNamespace(format="coo", data=data.astype(np.float64), row=row, col=col, shape=(6, 5))
    a = sparse.from_scipy(given, context=ctx)
    assert a.dtype == np.float32 and a.row.dtype == np.int32
    same(a, dense)
    with pytest.raises(TypeError, match="SimpleNamespace, needs one of SciPy's"):
        sparse.from_scipy(types.SimpleNamespace(format="dia"), context=ctx)


def test_like_scipy(ctx):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    matrix = scipy_sparse.random(300, 200, 0.05, "csr", np.float64, np.random.RandomState(3))
    x = RNG.uniform(-1, 1, 200)
    for given in (matrix, matrix.tocsc(), matrix.tocoo()):
        a = sparse.from_scipy(given, context=ctx)
        same(a, matrix.astype(np.float32).toarray())
        # 40 products of numbers below 1, in float32.
        np.testing.assert_allclose((a @ ctx.array(x)).numpy(), matrix @ x, rtol=0, atol=40 * 44 * 2.0**-24)
    assert a.nnz == matrix.nnz


def test_misuse(ctx):
    a = sparse.from_dense(ctx.array([[1.0, 0, 2], [0, 3, 0], [0, 0, 0], [4, 0, 5]]))
    x = ctx.ones((3,))
    for call, error, text in (
        (lambda: a @ a, ValueError, r"shapes \(4, 3\) and \(4, 3\)"),
        (lambda: a @ a.T.astype(np.float16), TypeError, "float32 and float16"),
        (lambda: a @ ctx.ones((4,)), ValueError, r"shapes \(4, 3\) and \(4,\)"),
        (lambda: x @ a, ValueError, r"shapes \(3,\) and \(4, 3\)"),
        (lambda: a @ x.astype(np.float16), TypeError, "float32 and float16"),
        (lambda: a @ np.ones(3, np.float32), TypeError, "NumPy array"),
        (lambda: np.ones(4, np.float32) @ a, TypeError, "NumPy array"),
        (lambda: a * x, TypeError, "multiplied by a number"),
        (lambda: a + 1, TypeError, "added to another"),
        (lambda: a + a.T, ValueError, "shapes"),
        (lambda: a + a.astype(np.float16), TypeError, "float32 and float16"),
        (lambda: a[::2], ValueError, "step 1"),
        (lambda: a[4], IndexError, "row 4"),
        (lambda: a[1, 2], TypeError, "slice of rows"),
        (lambda: len(a), TypeError, "ambiguous"),
        (lambda: bool(a), ValueError, "ambiguous"),
        (lambda: a.sum(2), ValueError, "axis is 2"),
        (lambda: a.astype(np.int32), TypeError, "int32"),
        (lambda: sparse.from_dense(x), ValueError, "two axes"),
        (lambda: sparse.from_dense(ctx.array(whole(2, 2)), "bsr"), ValueError, "bsr"),
        (lambda: sparse.csr_array(a.todense(), (4, 3)), TypeError, "from_dense"),
        (lambda: sparse.csr_array((a.data, a.indices, a.indptr), (5, 3)), ValueError, "needs 6"),
        (lambda: sparse.csr_array((a.data, a.indices, a.indptr), (4,)), ValueError, "rows, columns"),
        (lambda: sparse.csr_array((a.data, a.indices, a.indptr), (-1, 3)), ValueError, "at least 0"),
        (lambda: sparse.csr_array((a.data, a.indices[:1], a.indptr), (4, 3)), ValueError, "indices has shape"),
        (lambda: sparse.csr_array((a.data, a.indices.astype(np.int64), a.indptr), (4, 3)), TypeError, "other indices"),
        (lambda: sparse.csr_array((a.indices, a.indices, a.indptr), (4, 3)), TypeError, "data is int32"),
        (lambda: sparse.coo_array((a.data, (a.indices, a.data)), (4, 3)), TypeError, "col is float32"),
        (lambda: sparse.from_dense(ctx.array(whole(2, 2)), index_dtype=np.uint8), TypeError, "uint8"),
        (lambda: sparse.coo_array((a.data, (np.uint64([0, 1, 2, 3, 2**63]), a.indices)), (4, 3)), ValueError, "row has 9223372036854775808,"),
        (lambda: sparse.csr_array((a.data, a.indices, np.uint64([0, 1, 2, 3, 2**64 - 1])), (4, 3)), ValueError, "indptr has 18446744073709551615,"),
    ):
        with pytest.raises(error, match=text):
            call()
    with tuff.Context(backend="host") as other, pytest.raises(ValueError, match="different contexts"):
        a @ other.ones((3,))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_sampled_products(ctx, form, dtype):
    dense, x, y = whole(13, 21).astype(dtype), whole(13, 6).astype(dtype), whole(6, 21).astype(dtype)
    places = sparse.from_dense(ctx.array(dense), form)
    a, b, bt = ctx.array(x), ctx.array(y), ctx.array(np.ascontiguousarray(y.T))
    for got in (sparse.sampled_product(places, a, b), sparse.sampled_product(places, a, bt, transposed=True)):
        assert got.format == form and got.nnz == places.nnz
        same(got, np.where(dense != 0, x @ y, 0))
    same(sparse.sampled_product(places, a, b, weighted=True), dense * (x @ y))
    same(sparse.sampled_product(places, ctx.zeros((13, 0), dtype), ctx.zeros((0, 21), dtype)), np.zeros((13, 21), dtype))


def test_sampled_products_of_rows_and_of_nothing(ctx):
    dense, x, y = whole(9, 7), whole(9, 4), whole(4, 7)
    places = sparse.from_dense(ctx.array(dense))
    same(sparse.sampled_product(places[2:5], ctx.array(x[2:5]), ctx.array(y)), np.where(dense != 0, x @ y, 0)[2:5])
    empty = sparse.from_dense(ctx.zeros((3, 2)))
    same(sparse.sampled_product(empty, ctx.ones((3, 4)), ctx.ones((4, 2))), np.zeros((3, 2)))
    twice = sparse.coo_array((np.ones(3, np.float32), (np.array([1, 1, 9], np.int32), np.array([0, 0, 0], np.int32))), (3, 2), context=ctx)
    same(sparse.sampled_product(twice, ctx.ones((3, 4)), ctx.ones((4, 2))), [[0, 0], [8, 0], [0, 0]])


def test_misuse_of_sampled_products(ctx):
    places, x, y = sparse.eye(4, context=ctx), ctx.ones((4, 3)), ctx.ones((3, 4))
    with pytest.raises(TypeError, match="needs a sparse matrix"):
        sparse.sampled_product(x, x, y)
    with pytest.raises(ValueError, match=r"need \(4, 3\) and \(3, 4\)"):
        sparse.sampled_product(places, x, x)
    with pytest.raises(ValueError, match="two axes"):
        sparse.sampled_product(places, x[0], y)
    with pytest.raises(TypeError, match="float16"):
        sparse.sampled_product(places, x, y.astype(np.float16))
    with pytest.raises(TypeError):
        sparse.sampled_product(places, places, y)
    with tuff.Context(backend="host") as other, pytest.raises(ValueError, match="different contexts"):
        sparse.sampled_product(places, x, other.ones((3, 4)))


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_products_of_sparse_matrices(ctx, form, dtype, index):
    x, y = whole(17, 23).astype(dtype), whole(23, 11).astype(dtype)
    a = sparse.from_dense(ctx.array(x), form, index_dtype=index)
    b = sparse.from_dense(ctx.array(y), "csc" if form == "csc" else "csr")
    c = a @ b
    assert c.format == b.format and c.dtype == dtype and c.indptr.dtype == index
    same(c, x @ y)
    wanted = (x != 0).astype(int) @ (y != 0).astype(int) != 0
    assert c.nnz == c.data.size == wanted.sum()  # sums that cancel stay entries
    same(a @ a.T, x @ x.T)
    same(a @ a.T @ a, x @ x.T @ x)
    same(b.T.dot(b), y.T @ y)


def test_products_of_rows_and_of_nothing(ctx):
    x = whole(30, 20)
    a = sparse.from_dense(ctx.array(x))
    same(a[7:19] @ a.T, x[7:19] @ x.T)
    for rows, inner, columns in ((0, 4, 5), (4, 0, 5), (4, 5, 0), (4, 5, 6)):
        c = sparse.from_dense(ctx.zeros((rows, inner))) @ sparse.from_dense(ctx.zeros((inner, columns)))
        assert c.shape == (rows, columns) and c.nnz == 0
        same(c, np.zeros((rows, columns), np.float32))
    stray = sparse.coo_array(([1, 2, 4], ([0, 1, 0], [1, 9, 1])), (2, 3), context=ctx).astype(np.float32)
    same(stray @ sparse.eye(3, context=ctx), [[0, 5, 0], [0, 0, 0]])


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_triangular_systems(ctx, form, lower, unit):
    dense = RNG.uniform(-1, 1, (40, 40)) * (RNG.random((40, 40)) < 0.15) / 4 + np.diag(RNG.uniform(1, 2, 40))
    dense = dense.astype(np.float32)
    triangle = (np.tril if lower else np.triu)(dense).astype(np.float64)
    if unit:
        np.fill_diagonal(triangle, 1)
    a = sparse.from_dense(ctx.array(dense), form)
    solver = sparse.TriangularSolver(a, lower=lower, unit_diagonal=unit)
    for b in (RNG.uniform(-1, 1, 40), RNG.uniform(-1, 1, (40, 3))):
        wanted = np.linalg.solve(triangle, b.astype(np.float32))
        x = solver.solve(ctx.array(b, np.float32))
        # |x - x'| <= |T^-1| |T| |x| times gamma of at most 40 entries and 4.
        bound = np.abs(np.linalg.inv(triangle)) @ np.abs(triangle) @ np.abs(wanted) * 45 * 2.0**-23
        assert x.shape == b.shape and (np.abs(x.numpy() - wanted) <= bound + 1e-7).all()
        np.testing.assert_array_equal(sparse.spsolve_triangular(a, ctx.array(b, np.float32), lower, unit_diagonal=unit).numpy(), x.numpy())
    assert 1 < solver.levels <= 40


def test_triangular_systems_of_one_level_and_of_nothing(ctx):
    diagonal = sparse.eye(5, context=ctx) * 4
    solver = sparse.TriangularSolver(diagonal)
    assert solver.levels == 1
    same(solver.solve(ctx.array([4.0, 8, 0, -4, 2])), np.float32([1, 2, 0, -1, 0.5]))
    same(solver.solve(ctx.zeros((5, 0))), np.zeros((5, 0), np.float32))
    none = sparse.TriangularSolver(sparse.from_dense(ctx.zeros((0, 0))))
    assert none.levels == 0 and none.solve(ctx.zeros((0,))).shape == (0,)
    assert np.isinf(sparse.spsolve_triangular(sparse.from_dense(ctx.zeros((2, 2))), ctx.ones((2,))).numpy()).all()


def test_misuse_of_triangular_systems(ctx):
    a = sparse.eye(4, context=ctx)
    for call, error, text in (
        (lambda: sparse.TriangularSolver(a.todense()), TypeError, "sparse matrix"),
        (lambda: sparse.TriangularSolver(a[:3]), ValueError, "as many columns as rows"),
        (lambda: sparse.spsolve_triangular(a, ctx.ones((3,))), ValueError, r"needs \(4,\)"),
        (lambda: sparse.spsolve_triangular(a, ctx.ones((4, 1, 1))), ValueError, "needs"),
        (lambda: sparse.spsolve_triangular(a, ctx.ones((4,), np.float16)), TypeError, "float32 and float16"),
        (lambda: sparse.spsolve_triangular(a, np.ones(4, np.float32)), TypeError, "NumPy array"),
    ):
        with pytest.raises(error, match=text):
            call()
