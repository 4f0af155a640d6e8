"""Element-wise functions of two sparse matrices, compared with NumPy's of the dense ones; with SciPy's where it is installed."""

import numpy as np
import pytest

import tuff

RNG = np.random.default_rng(17)
sparse = tuff.sparse
FORMS = ["csr", "csc", "coo"]
METHODS = {"multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def whole(rows, columns, share=0.3):
    return np.where(RNG.random((rows, columns)) < share, RNG.integers(-4, 5, (rows, columns)), 0).astype(np.float32)


def same(got, wanted):
    """The elements, and entries where they are not zero only, sorted."""
    np.testing.assert_array_equal(got.todense().numpy(), wanted)
    assert got.format == "csr" and got.nnz == np.count_nonzero(wanted)
    row, col = np.nonzero(wanted)
    np.testing.assert_array_equal(got.indptr.numpy(), np.concatenate([[0], np.cumsum(np.bincount(row, minlength=wanted.shape[0]))]))
    np.testing.assert_array_equal(got.indices.numpy()[: len(col)], col)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_of_each_format(ctx, name, dtype):
    x, y = whole(13, 21).astype(dtype), whole(13, 21).astype(dtype)
    for i, first in enumerate(FORMS):
        for j, second in enumerate(FORMS):
            a = sparse.from_dense(ctx.array(x), first, index_dtype=(np.int32, np.int64)[i % 2])
            b = sparse.from_dense(ctx.array(y), second, index_dtype=(np.int32, np.int64)[j % 2])
            same(getattr(a, name)(b), METHODS[name](x, y))
            same(getattr(a.T, name)(b.T), METHODS[name](x.T, y.T))


@pytest.mark.parametrize("name", METHODS)
def test_shapes_and_empty_matrices(ctx, name):
    for rows, columns in [(1, 1), (1, 400), (300, 2), (64, 64)]:
        for shares in [(0, 0.4), (0.4, 0), (0, 0), (1, 1), (0.02, 0.9)]:
            x, y = whole(rows, columns, shares[0]), whole(rows, columns, shares[1])
            a, b = (sparse.from_dense(ctx.array(z)) for z in (x, y))
            same(getattr(a, name)(b), METHODS[name](x, y))
            same(getattr(a, name)(a), METHODS[name](x, x))
    a = sparse.csr_array((np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(1, np.int32)), (0, 5), context=ctx)
    assert getattr(a, name)(a).shape == (0, 5)


@pytest.mark.parametrize("name", METHODS)
def test_duplicates_stray_entries_and_rows(ctx, name):
    # Entries of one place count as their sum; those out of range are none, though both matrices have many of them.
    data = np.array([1, 2, 4, -8, 16, 32, 64], np.float32)
    a = sparse.coo_array((data, (np.array([2, 0, 2, 1, 5, -1, 2]), np.array([1, 0, 1, 1, 1, 0, -7]))), (3, 2), context=ctx)
    b = sparse.coo_array((data, (np.array([0, 2, 2, 2, -1, -1, 9]), np.array([1, 1, 0, 0, 0, 0, 1]))), (3, 2), context=ctx)
    x, y = np.array([[2, 0], [0, -8], [0, 5]], np.float32), np.array([[0, 1], [0, 0], [-4, 2]], np.float32)
    same(getattr(a, name)(b), METHODS[name](x, y))
    same(getattr(b, name)(a), METHODS[name](y, x))
    # Rows are views, with entries of other rows in the arrays.
    p, q = whole(30, 8), whole(30, 8)
    c, d = sparse.from_dense(ctx.array(p)), sparse.from_dense(ctx.array(q))
    same(getattr(c[5:17], name)(d[6:18]), METHODS[name](p[5:17], q[6:18]))


def test_places_beyond_32_bits(ctx):
    # Numbers of places are those of rows times columns.
    rows, columns = 2**31 - 9, 2**31 - 9
    row, col = np.array([0, rows - 1, rows - 1, 1]), np.array([columns - 1, columns - 1, 0, 3])
    a = sparse.coo_array((np.array([1, 2, 3, 4], np.float32), (row, col)), (rows, columns), context=ctx)
    b = sparse.coo_array((np.array([5, 7], np.float32), (row[[1, 3]], col[[1, 3]])), (rows, columns), context=ctx)
    first, second = (x.sum_duplicates() for x in (a, b))
    from tuff._sparse_places import combined

    data, row, col = combined(lambda x, y: x * y, *((z.data, z.row, z.col) for z in (first, second)), columns, True)
    found = row.numpy() >= 0
    assert sorted(zip(row.numpy()[found], col.numpy()[found], data.numpy()[found])) == [(1, 3, 28), (rows - 1, columns - 1, 10)]


def test_infinities_and_nan(ctx):
    x = np.array([[np.inf, np.nan, 2, 0]], np.float32)
    y = np.array([[0, 0, np.nan, 3]], np.float32)
    a, b = sparse.from_dense(ctx.array(x)), sparse.from_dense(ctx.array(y))
    got = a.multiply(b)
    assert got.nnz == 1
    np.testing.assert_array_equal(got.todense().numpy(), [[0, 0, np.nan, 0]])
    np.testing.assert_array_equal(a.maximum(b).todense().numpy(), [[np.inf, np.nan, np.nan, 3]])
    np.testing.assert_array_equal(a.minimum(b).todense().numpy(), [[0, np.nan, np.nan, 0]])


def test_products_with_numbers(ctx):
    x = whole(5, 6)
    a = sparse.from_dense(ctx.array(x), "csc")
    assert a.multiply(3).format == "csc"
    np.testing.assert_array_equal(a.multiply(3).todense().numpy(), 3 * x)


@pytest.mark.parametrize("name", METHODS)
def test_wrong_operands(ctx, name):
    a = sparse.from_dense(ctx.array(whole(4, 6)))
    with pytest.raises(ValueError, match="shapes"):
        getattr(a, name)(a.T)
    with pytest.raises(TypeError, match="float16"):
        getattr(a, name)(a.astype(np.float16))
    with pytest.raises(TypeError, match="Array"):
        getattr(a, name)(a.todense())
    with pytest.raises(TypeError, match="ndarray"):
        getattr(a, name)(np.ones((4, 6), np.float32))
    with pytest.raises(TypeError, match="str"):
        getattr(a, name)("2")


@pytest.mark.parametrize("name", METHODS)
def test_beside_scipy(ctx, name):
    scipy = pytest.importorskip("scipy.sparse")
    for density in (0.01, 0.3):
        x, y = (scipy.random(70, 40, density, "csr", np.float32, np.random.RandomState(i)) for i in (3, 4))
        wanted = getattr(x, name)(y)
        got = getattr(sparse.from_scipy(x, context=ctx), name)(sparse.from_scipy(y, context=ctx))
        same(got, wanted.toarray())
        assert got.nnz == wanted.count_nonzero()
