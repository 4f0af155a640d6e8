"""bsr_array, compared with NumPy's dense matrices; with SciPy's bsr_array where it is installed."""

import numpy as np
import pytest

import tuff

RNG = np.random.default_rng(23)
sparse = tuff.sparse
BLOCKS = [(1, 1), (3, 5), (5, 1), (1, 4), (16, 16)]


def whole(rows, columns, share=0.1):
    """Small integers, of which all sums here are exact in float16."""
    return np.where(RNG.random((rows, columns)) < share, RNG.integers(-3, 4, (rows, columns)), 0).astype(np.float32)


def awkward(lines, across, blocks):
    """Empty rows of blocks, and one that is full."""
    dense = whole(lines * blocks[0], across * blocks[1])
    dense[: blocks[0]] = 0
    dense[blocks[0] * (lines // 2) : blocks[0] * (lines // 2 + 1)] = RNG.integers(1, 3, (blocks[0], across * blocks[1]))
    return dense


def same(got, wanted):
    got = got.todense() if sparse.issparse(got) else got
    assert got.shape == np.shape(wanted)
    np.testing.assert_array_equal(got.numpy(), wanted)


def blocks_of(dense, blocks):
    """What BSR has of a matrix: offsets, indices, and blocks."""
    r, c = blocks
    parts = dense.reshape(dense.shape[0] // r, r, dense.shape[1] // c, c).transpose(0, 2, 1, 3)
    line, column = np.nonzero(parts.any(axis=(2, 3)))
    return np.concatenate([[0], np.cumsum(np.bincount(line, minlength=parts.shape[0]))]), column, parts[line, column]


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_blocks_and_products(ctx, blocks, order, dtype, index):
    if dtype == np.float64 and not ctx.supports("spmm.f64"):
        pytest.skip("no f64 on this device")
    dense = awkward(7, 6, blocks).astype(dtype)
    a = sparse.from_dense(ctx.array(dense, dtype), index_dtype=index).tobsr(blocks, order=order)
    indptr, indices, data = blocks_of(dense, blocks)
    assert a.format == "bsr" and a.blocksize == blocks and a.order == order and a.dtype == dtype and a.shape == dense.shape
    assert a.indices.dtype == index and a.nnz == data.size
    np.testing.assert_array_equal(a.indptr.numpy(), indptr)
    np.testing.assert_array_equal(a.indices.numpy(), indices)
    np.testing.assert_array_equal(a.data.numpy(), data if order == "C" else data.transpose(0, 2, 1))
    same(a, dense)
    for n in (1, 3):
        x, y = whole(dense.shape[1], n, 0.5).astype(dtype), whole(n, dense.shape[0], 0.5).astype(dtype)
        same(a @ ctx.array(x, x.dtype), dense @ x)
        same(ctx.array(y, y.dtype) @ a, y @ dense)
    x = np.stack([whole(dense.shape[1], 2), whole(dense.shape[1], 2)]).astype(dtype)
    same(a @ ctx.array(x, x.dtype), dense @ x)
    same(a @ ctx.array(x[0, :, 0], dtype), dense @ x[0, :, 0])


@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_conversions(ctx, blocks):
    dense = awkward(6, 4, blocks)
    a = sparse.from_dense(ctx.array(dense)).tobsr(blocks)
    for b in (a.tocsr(), a.tocsc(), a.tocoo()):
        same(b, dense)
        assert b.nnz == a.nnz  # zeros in blocks are entries
        same(b.tobsr(blocks), dense)
    same(a.T, dense.T)
    assert a.T.blocksize == blocks[::-1] and a.T.format == "bsr"
    same(a.T.T, dense)
    other = a.tobsr((2 * blocks[0], blocks[1]), order="F")
    same(other, dense)
    assert other.blocksize == (2 * blocks[0], blocks[1])
    assert a.tobsr(blocks) is a and a.tobsr(blocks, order="F") is not a


def test_arithmetic_and_sums(ctx):
    x, y = awkward(5, 4, (3, 2)), awkward(5, 4, (3, 2))
    a, b = sparse.from_dense(ctx.array(x, x.dtype)).tobsr((3, 2)), sparse.from_dense(ctx.array(y, y.dtype)).tobsr((3, 2), order="F")
    assert (2 * a).format == "bsr" and (-a).blocksize == (3, 2) and (a / 2).format == "bsr"
    same(2 * a, 2 * x)
    same(a.astype(np.float16), x.astype(np.float16))
    same(a + b, x + y)
    same(a - b, x - y)
    same(a.multiply(b), x * y)
    same(a.maximum(b), np.maximum(x, y))
    same(a @ b.T, x @ y.T)
    same(a.sum(0), x.sum(0))
    same(a.sum(1), x.sum(1))
    same(a.sum(), x.sum())
    q, k = whole(15, 4, 0.9), whole(4, 8, 0.9)
    assert sparse.sampled_product(a, ctx.array(q), ctx.array(k)).format == "csr"


def test_duplicates_and_stray_blocks(ctx):
    data = np.arange(1, 21, dtype=np.float32).reshape(5, 2, 2)
    indices, indptr = np.array([1, 1, -1, 2, 9]), np.array([0, 2, 5])
    a = sparse.bsr_array((data, indices, indptr), (4, 6), context=ctx)
    dense = np.zeros((4, 6), np.float32)
    dense[:2, 2:4], dense[2:, 4:] = data[0] + data[1], data[3]
    same(a, dense)
    same(a @ ctx.ones((6,)), dense.sum(1))
    same(ctx.ones((4,)) @ a, dense.sum(0))
    b = a.sum_duplicates()
    assert b.nnz == 8 and b.indptr.numpy().tolist() == [0, 1, 2] and b.indices.numpy().tolist() == [1, 2, -1, -1, -1]
    same(b, dense)
    # The same numbers, as blocks that are stored by columns.
    by_columns = dense.reshape(2, 2, 3, 2).transpose(0, 3, 2, 1).reshape(4, 6)
    c = sparse.bsr_array((data, indices, indptr), (4, 6), order="F", context=ctx)
    same(c, by_columns)
    same(c.T, by_columns.T)


def test_empty_matrices(ctx):
    a = sparse.csr_array((np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(7, np.int32)), (6, 4), context=ctx).tobsr((3, 2))
    assert a.nnz == 0 and a.blocksize == (3, 2)
    same(a, np.zeros((6, 4)))
    same(a @ ctx.ones((4, 2)), np.zeros((6, 2)))
    same(a.T, np.zeros((4, 6)))


def test_wrong_arguments(ctx):
    a = sparse.from_dense(ctx.array(whole(6, 10)))
    for blocks in ((4, 5), (3, 4), (7, 1)):
        with pytest.raises(ValueError, match="divide"):
            a.tobsr(blocks)
    for blocks in (3, (3,), None, (1, 2, 3)):
        with pytest.raises(ValueError, match="blocksize"):
            a.tobsr(blocks)
    for blocks in ((0, 5), (-3, 5), (1.5, 5)):
        with pytest.raises((ValueError, TypeError), match="blocksize"):
            a.tobsr(blocks)
    with pytest.raises(ValueError, match="order"):
        a.tobsr((3, 5), order="A")
    data, indices, indptr = np.ones((2, 3, 5), np.float32), np.array([0, 1]), np.array([0, 1, 2])
    assert sparse.bsr_array((data, indices, indptr), (6, 10), context=ctx).nnz == 30
    with pytest.raises(ValueError, match="three axes"):
        sparse.bsr_array((data[0], indices, indptr), (6, 10), context=ctx)
    with pytest.raises(ValueError, match="indices"):
        sparse.bsr_array((data, indices[:1], indptr), (6, 10), context=ctx)
    with pytest.raises(ValueError, match="indptr"):
        sparse.bsr_array((data, indices, indptr[:2]), (6, 10), context=ctx)
    with pytest.raises(ValueError, match="divide"):
        sparse.bsr_array((data, indices, indptr), (6, 11), context=ctx)
    with pytest.raises(TypeError, match="indices"):
        sparse.bsr_array((data, indices.astype(np.float32), indptr), (6, 10), context=ctx)
    with pytest.raises(TypeError, match="data"):
        sparse.bsr_array((data.astype(np.int32), indices, indptr), (6, 10), context=ctx)
    with pytest.raises(TypeError, match="first argument"):
        sparse.bsr_array(whole(3, 3), (3, 3), context=ctx)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_beside_scipy(ctx, blocks, dtype):
    scipy = pytest.importorskip("scipy.sparse")
    if dtype == np.float64 and not ctx.supports("spmm.f64"):
        pytest.skip("no f64 on this device")
    dense = awkward(8, 5, blocks).astype(dtype)
    wanted = scipy.csr_matrix(dense).tobsr(blocks)
    wanted.sort_indices()
    a = sparse.from_scipy(wanted, context=ctx, dtype=dtype)
    assert a.format == "bsr" and a.blocksize == wanted.blocksize and a.nnz == wanted.nnz
    same(a, dense)
    b = sparse.from_scipy(scipy.csr_matrix(dense), context=ctx, dtype=dtype).tobsr(blocks)
    np.testing.assert_array_equal(b.data.numpy(), wanted.data)
    np.testing.assert_array_equal(b.indices.numpy(), wanted.indices)
    np.testing.assert_array_equal(b.indptr.numpy(), wanted.indptr)
    x = RNG.uniform(-1, 1, (dense.shape[1], 4)).astype(dtype)
    unit = np.finfo(dtype).eps / 2
    bound = (dense.shape[1] + 4) * unit * 1.01 * (np.abs(dense).astype(np.float64) @ np.abs(x).astype(np.float64)) * 2
    assert (np.abs((a @ ctx.array(x, x.dtype)).numpy() - wanted @ x) <= bound).all()  # both sums have this bound
    same(a.T, dense.T)
