"""Linear algebra and sums of products against NumPy in float64, on both backends."""

import functools

import numpy as np
import pytest
import tuff
from tuff import linalg


@pytest.fixture(params=[np.float32, np.float64])
def dtype(request, ctx):
    if request.param == np.float64 and not ctx.supports("lu.f64"):
        pytest.skip("the device does not compute float64")
    return request.param


@pytest.fixture
def near(dtype):
    """Whether an array has NumPy's shape, the dtype, and values that differ by little: the matrices here are well-conditioned
    and have up to 20 rows, so that errors are below some hundred roundings of the largest element."""

    def compare(got, wanted):
        wanted = np.asarray(wanted)
        assert got.shape == wanted.shape and got.dtype == dtype
        bound = 400 * np.finfo(dtype).eps * max(1.0, np.abs(wanted).max(initial=0.0))
        assert np.abs(got.numpy().astype(np.float64) - wanted).max(initial=0.0) <= bound

    return compare


@pytest.fixture
def problem(ctx, rng, dtype):
    """A stack of three matrices with right sides: on the host in float64, and on the device."""
    a = (rng.standard_normal((3, 20, 20)) + 10 * np.eye(20)).astype(dtype)
    b = rng.standard_normal((3, 20, 4)).astype(dtype)
    return a.astype(np.float64), b.astype(np.float64), ctx.array(a, dtype), ctx.array(b, dtype)


def test_cholesky(ctx, dtype, near, rng):
    a = rng.standard_normal((2, 3, 20, 20))
    s = (a @ a.swapaxes(-1, -2) / 20 + np.eye(20)).astype(dtype)
    wanted = np.linalg.cholesky(s.astype(np.float64))
    x = ctx.array(s, dtype)
    near(linalg.cholesky(x), wanted)
    near(linalg.cholesky(x, upper=True), wanted.swapaxes(-1, -2))
    near(linalg.cholesky(ctx.array(np.tril(s), dtype)), wanted)  # the other triangle is not read
    near(x, s)  # nor is x changed


def test_solve_in_all_shapes(problem, near):
    a, b, A, B = problem
    near(linalg.solve(A, B), np.linalg.solve(a, b))
    near(linalg.solve(A[0], B[0]), np.linalg.solve(a[0], b[0]))
    near(linalg.solve(A[0], B), np.linalg.solve(a[:1], b))
    near(linalg.solve(A, B[0]), np.linalg.solve(a, np.broadcast_to(b[0], b.shape)))
    vector = B[0].transpose().copy()[1]
    near(linalg.solve(A[0], vector), np.linalg.solve(a[0], b[0, :, 1]))
    near(linalg.solve(A, vector), np.linalg.inv(a) @ b[0, :, 1])
    near(A, a)
    near(B, b)


def test_factors_and_triangles(problem, near):
    a, b, A, B = problem
    factors, pivots = linalg.lu_factor(A)
    assert pivots.dtype == np.int32 and pivots.shape == (3, 20)
    near(linalg.lu_solve((factors, pivots), B), np.linalg.solve(a, b))
    near(linalg.lu_solve((factors, pivots), B, trans=1), np.linalg.solve(a.swapaxes(-1, -2), b))
    near(linalg.lu_solve((factors[1], pivots[1]), B, trans="T"), np.linalg.solve(a[1].T[None], b))
    lower, upper = np.tril(a), np.triu(a)
    near(linalg.solve_triangular(A, B), np.linalg.solve(upper, b))
    near(linalg.solve_triangular(A, B, trans=1), np.linalg.solve(upper.swapaxes(-1, -2), b))
    near(linalg.solve_triangular(A[2], B, lower=True), np.linalg.solve(lower[2:], b))
    tall = linalg.lu_factor(A.reshape(1, 60, 20))
    assert tall[0].shape == (1, 60, 20) and tall[1].shape == (1, 20)


def test_unit_diagonals(ctx, near, dtype):
    a = np.array([[9, 0], [0.5, 7]], dtype)
    near(linalg.solve_triangular(ctx.array(a, dtype), ctx.array(np.ones(2), dtype), lower=True, unit_diagonal=True), [1, 0.5])


def test_inverses_and_powers(problem, near):
    a, _, A, _ = problem
    near(linalg.inv(A), np.linalg.inv(a))
    small, S = a / 20, A / 20
    for power in (-2, -1, 0, 1, 2, 3, 7):
        near(linalg.matrix_power(S, power) * 0.01**abs(power), np.linalg.matrix_power(small, power) * 0.01**abs(power))
    assert not linalg.matrix_power(S, 1).buffer.same_range(S.buffer)


def test_determinants(problem, near, ctx, dtype):
    a, _, A, _ = problem
    near(linalg.det(A / 10), np.linalg.det(a / 10))
    sign, logabsdet = linalg.slogdet(A)
    near(sign, np.linalg.slogdet(a)[0])
    near(logabsdet, np.linalg.slogdet(a)[1])
    near(linalg.det(ctx.array([[0, 1], [1, 0]], dtype)), -1.0)
    near(linalg.det(ctx.zeros((2, 0, 0), dtype)), np.ones(2))
    assert linalg.slogdet(ctx.zeros((2, 2), dtype)).logabsdet.numpy() == -np.inf


def test_failures_are_linalg_errors(ctx):
    zeros = ctx.zeros((2, 3, 3))
    for function in (linalg.inv, lambda x: linalg.solve(x, x), lambda x: linalg.matrix_power(x, -1)):
        with pytest.raises(np.linalg.LinAlgError, match="matrix 0 is singular: element 1"):
            function(zeros)
    indefinite = ctx.array([[[1, 0], [0, 1]], [[1, 0], [0, -1]]])
    with pytest.raises(linalg.LinAlgError, match="matrix 1 is not positive definite: its leading 2 x 2"):
        linalg.cholesky(indefinite)
    unchecked = linalg.cholesky(indefinite, check=False).numpy()
    assert (unchecked[0] == np.eye(2)).all() and np.isnan(unchecked[1, 1, 1])
    assert not np.isfinite(linalg.inv(zeros, check=False).numpy()).all()
    assert linalg.det(zeros).numpy().tolist() == [0, 0]


def test_arguments_are_checked(ctx):
    x = ctx.ones((3, 4))
    for function in (linalg.cholesky, linalg.inv, linalg.det, linalg.slogdet, lambda x: linalg.solve(x, x)):
        with pytest.raises(np.linalg.LinAlgError, match=r"\(3, 4\), needs square"):
            function(x)
        with pytest.raises(np.linalg.LinAlgError, match="at least two axes"):
            function(x[0])
        with pytest.raises(TypeError, match="float16"):
            function(ctx.ones((2, 2), np.float16))
        with pytest.raises(TypeError, match="NumPy"):
            function(np.eye(2))
    square = ctx.ones((3, 3))
    for right in (ctx.ones((4, 3)), ctx.ones(4), ctx.ones(())):
        with pytest.raises(ValueError, match="needs 3 rows"):
            linalg.solve(square, right)
    with pytest.raises(ValueError):
        linalg.solve(ctx.ones((2, 3, 3)), ctx.ones((5, 3, 1)))
    with pytest.raises(ValueError, match="trans"):
        linalg.solve_triangular(square, square, trans="X")
    with pytest.raises(TypeError, match="lu_factor"):
        linalg.lu_solve(square, square)
    with pytest.raises(ValueError, match="pivots"):
        linalg.lu_solve((square, ctx.zeros(2, np.int32)), square)
    with pytest.raises(TypeError, match="n is"):
        linalg.matrix_power(square, 0.5)
    with pytest.raises(ValueError, match="ord"):
        linalg.matrix_norm(square, ord=3)
    with pytest.raises(TypeError, match="axis is 1.5, needs an integer, two, or None"):
        linalg.norm(square, axis=1.5)
    with pytest.raises(TypeError, match="axis is 1.5, needs an integer, several, or None"):
        linalg.vector_norm(square, axis=1.5)
    # Integers become float32.
    assert linalg.det(ctx.array(np.array([[2, 0], [0, 3]]))).numpy() == np.float32(6)


def test_empty_matrices(ctx):
    assert linalg.inv(ctx.zeros((0, 0))).shape == (0, 0)
    assert linalg.solve(ctx.zeros((0, 0)), ctx.zeros((0, 3))).shape == (0, 3)
    assert linalg.cholesky(ctx.zeros((0, 4, 4))).shape == (0, 4, 4)


def test_norms(ctx, dtype, near, rng):
    x = rng.standard_normal((2, 5, 7)).astype(dtype)
    x[0, 0, 0] = 0
    X, wide = ctx.array(x, dtype), x.astype(np.float64)
    for axis in (None, 0, -1, (0, 2), (2, 1)):
        for keepdims in (False, True):
            axes = tuple(range(3)) if axis is None else (axis,) if isinstance(axis, int) else axis
            size = np.abs(wide)
            near(linalg.vector_norm(X, axis=axis, keepdims=keepdims), np.sqrt(np.sum(wide**2, axes, keepdims=keepdims)))
            near(linalg.vector_norm(X, axis=axis, keepdims=keepdims, ord=1), np.sum(size, axes, keepdims=keepdims))
            near(linalg.vector_norm(X, axis=axis, keepdims=keepdims, ord=np.inf), np.max(size, axes, keepdims=keepdims))
            near(linalg.vector_norm(X, axis=axis, keepdims=keepdims, ord=-np.inf), np.min(size, axes, keepdims=keepdims))
            near(linalg.vector_norm(X, axis=axis, keepdims=keepdims, ord=0), np.sum(wide != 0, axes, keepdims=keepdims))
    if dtype == np.float32:
        near(linalg.vector_norm(X, ord=3), np.sum(np.abs(wide) ** 3) ** (1 / 3))
    for ord_ in ("fro", 1, -1, np.inf, -np.inf):
        for keepdims in (False, True):
            wanted = np.linalg.norm(wide, ord_, axis=(1, 2), keepdims=keepdims)
            near(linalg.matrix_norm(X, ord=ord_, keepdims=keepdims), wanted)


EINSUMS = [
    ("ij,jk->ik", [(4, 5), (5, 6)]),
    ("ij,jk", [(4, 5), (5, 6)]),
    ("ij,kj->ik", [(4, 5), (6, 5)]),
    ("ji,jk->ki", [(5, 4), (5, 6)]),
    ("bij,bjk->bik", [(3, 4, 5), (3, 5, 6)]),
    ("bij,bkj->bki", [(3, 4, 5), (3, 6, 5)]),
    ("ibj,bjk->kbi", [(4, 3, 5), (3, 5, 6)]),
    ("...ij,...jk->...ik", [(2, 3, 4, 5), (3, 5, 6)]),
    ("...ij,...jk", [(3, 4, 5), (5, 6)]),
    ("i,i->", [(7,), (7,)]),
    ("i,j->ji", [(4,), (5,)]),
    ("i,j->", [(4,), (5,)]),
    ("ij,ij->ij", [(4, 5), (4, 5)]),
    ("ij,ij->i", [(4, 5), (4, 5)]),
    ("ij->ji", [(4, 5)]),
    ("ij->", [(4, 5)]),
    ("ij->j", [(4, 5)]),
    ("ba", [(4, 5)]),
    ("ii->i", [(4, 4)]),
    ("ii", [(4, 4)]),
    ("bii->b", [(3, 4, 4)]),
    ("iji->j", [(4, 5, 4)]),
    ("iii->i", [(3, 3, 3)]),
    ("ij,jk,kl->il", [(4, 5), (5, 6), (6, 3)]),
    ("ab,ac,ad->bcd", [(3, 2), (3, 4), (3, 5)]),
    ("ij,j,i->", [(4, 5), (5,), (4,)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 4, 5)]),
    ("ij,kl->ijkl", [(2, 3), (4, 5)]),
    ("ij,ij->ij", [(1, 5), (4, 1)]),
    ("i,i->", [(1,), (6,)]),
    ("...->...", [(2, 3)]),
    (",ij->ij", [(), (2, 3)]),
    ("ij,jk->ik", [(4, 0), (0, 6)]),
    ("ij,jk->ik", [(0, 5), (5, 6)]),
    (" i j , j k -> i k ", [(4, 5), (5, 6)]),
]


def test_einsum(ctx, near, dtype, rng):
    for subscripts, shapes in EINSUMS:
        operands = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
        wanted = np.einsum(subscripts, *(x.astype(np.float64) for x in operands))
        arrays = [ctx.array(x, dtype) for x in operands]
        got = tuff.einsum(subscripts, *arrays)
        near(got, wanted)
        assert not any(got.size and got.buffer.same_range(x.buffer) for x in arrays)  # a new array, as all results
        out = ctx.empty(wanted.shape, dtype)
        assert tuff.einsum(subscripts, *arrays, out=out) is out
        near(out, wanted)


def test_einsum_of_integers_is_exact(ctx, rng):
    a, b = rng.integers(-99, 99, (4, 5)).astype(np.int8), rng.integers(0, 99, (5, 6)).astype(np.int32)
    got = tuff.einsum("ij,jk->ik", ctx.array(a), ctx.array(b))
    assert got.dtype == np.int64 and (got.numpy() == a.astype(int) @ b).all()
    small = tuff.einsum("ij->i", ctx.array(a))
    assert small.dtype == np.int64 and (small.numpy() == a.sum(axis=1)).all()


@pytest.fixture(params=[(20, 20), (30, 12), (12, 30), (45, 40), (1, 5)])
def rectangle(request, ctx, rng, dtype):
    a = rng.standard_normal((3, *request.param)).astype(dtype)
    return a.astype(np.float64), ctx.array(a, dtype)


def f64(x):
    return x.numpy().astype(np.float64)


def test_qr(rectangle, near):
    a, A = rectangle
    m, n = a.shape[-2:]
    for mode, width in (("reduced", min(m, n)), ("complete", m)):
        q, r = linalg.qr(A, mode=mode)
        assert q.shape == (3, m, width) and r.shape == (3, width, n)
        near(q.mT @ q, np.broadcast_to(np.eye(width), (3, width, width)))
        near(q @ r, a)
        assert (f64(r) == np.triu(f64(r))).all()
        near(q, np.linalg.qr(a, mode=mode)[0]) if m >= n else None  # the signs are LAPACK's
    near(linalg.qr(A, mode="r"), np.linalg.qr(a, mode="r"))
    near(A, a)  # unchanged
    with pytest.raises(ValueError, match="mode"):
        linalg.qr(A, mode="raw")


def test_eigh(ctx, near, dtype, rng):
    a = rng.standard_normal((2, 3, 20, 20)).astype(dtype)
    s = np.tril(a) + np.tril(a, -1).swapaxes(-1, -2)
    wanted = np.linalg.eigvalsh(s.astype(np.float64))
    values, vectors = linalg.eigh(ctx.array(a, dtype))  # only the lower triangle is read
    near(values, wanted)
    near(linalg.eigvalsh(ctx.array(a.swapaxes(-1, -2).copy(), dtype), UPLO="U"), wanted)
    near(ctx.array(s, dtype) @ vectors, f64(vectors) * f64(values)[..., None, :])
    near(vectors.mT @ vectors, np.broadcast_to(np.eye(20), s.shape))
    assert type(np.linalg.eigh(ctx.array(s, dtype))) is linalg.EighResult
    with pytest.raises(ValueError, match="UPLO"):
        linalg.eigh(ctx.array(s, dtype), UPLO="X")
    with pytest.raises(linalg.LinAlgError, match="square"):
        linalg.eigh(ctx.ones((2, 3)))


def _matched(got, wanted, near_by):
    """Values in any order, each within a distance of one that no other one has."""
    left = list(wanted)
    for one in got:
        nearest = min(range(len(left)), key=lambda place: abs(left[place] - one))
        assert abs(left.pop(nearest) - one) <= near_by


def test_eig(ctx, near, dtype, rng):
    a = (rng.standard_normal((2, 3, 12, 12)) + np.diag(3.0 * np.arange(12))).astype(dtype)
    a[..., 0, 1], a[..., 1, 0], a[..., 1, 1] = 5, -5, 0  # a conjugate pair
    x = ctx.array(a, dtype)
    values, vectors = linalg.eig(x)
    assert values.dtype == vectors.dtype == (np.complex128 if dtype == np.float64 else np.complex64)
    wanted = vectors.numpy() * values.numpy()[..., None, :]
    for part in ("real", "imag"):
        near(x @ getattr(vectors, part), getattr(wanted, part))
    near(tuff.square(tuff.abs(vectors)).sum(2), np.ones(values.shape))
    wide = a.astype(np.float64).reshape(-1, 12, 12)
    for one, other in zip(values.numpy().reshape(-1, 12), wide):
        of_numpy, basis = np.linalg.eig(other)
        # Bauer and Fike: an error E of the matrix moves a value by at most the vectors' condition number times |E|.
        _matched(one, of_numpy, np.linalg.cond(basis) * 30 * 12 * np.finfo(dtype).eps * np.linalg.norm(other))
    near(linalg.eigvals(x).sum(axis=2).real, np.trace(a, axis1=-2, axis2=-1))
    assert type(np.linalg.eig(x)) is linalg.EigResult and np.linalg.eigvals(x).shape == (2, 3, 12)
    near(x, a)  # unchanged


def test_eig_of_real_values_is_real_in_numpy(ctx, near, dtype, rng):
    a = np.triu(rng.standard_normal((4, 5, 5))).astype(dtype)
    x = ctx.array(a, dtype)
    values, vectors = np.linalg.eig(x)
    assert values.dtype == vectors.dtype == np.linalg.eigvals(x).dtype == np.linalg.eig(a)[0].dtype == dtype
    assert (values.numpy() == np.diagonal(a, axis1=1, axis2=2)).all()
    near(x @ vectors, f64(vectors) * f64(values)[..., None, :])
    for check in (True, False):
        wide = linalg.eig(x, check=check)
        assert wide.eigenvalues.dtype.kind == wide.eigenvectors.dtype.kind == "c"
        assert (wide.eigenvalues.numpy() == values.numpy()).all()
    rotated = a.copy()
    rotated[2, :2, :2] = [[0, 1], [-1, 0]]
    mixed = np.linalg.eig(ctx.array(rotated, dtype))
    assert mixed[0].dtype == mixed[1].dtype == np.linalg.eigvals(ctx.array(rotated, dtype)).dtype == wide.eigenvalues.dtype
    integers = linalg.eigvals(ctx.array(np.array([[0, 1], [-1, 0]], np.int32)))
    assert integers.dtype == np.complex64 and integers.numpy().tolist() == [1j, -1j]
    assert linalg.eigvals(ctx.zeros((0, 3, 3))).shape == (0, 3) and linalg.eig(ctx.zeros((2, 0, 0))).eigenvectors.shape == (2, 0, 0)


def test_eig_that_cannot_be(ctx):
    with pytest.raises(linalg.LinAlgError, match="square"):
        linalg.eig(ctx.ones((2, 3)))
    with pytest.raises(linalg.LinAlgError, match="two axes"):
        linalg.eigvals(ctx.ones((3,)))
    with pytest.raises(TypeError, match="complex64"):
        linalg.eig(ctx.ones((2, 2), np.complex64))
    with pytest.raises(TypeError, match="float16"):
        linalg.eigvals(ctx.ones((2, 2), np.float16))
    x = np.tile(np.eye(3, dtype=np.float32), (3, 1, 1))
    x[1, 0, 2] = np.inf
    for function in (linalg.eig, linalg.eigvals):
        with pytest.raises(linalg.LinAlgError, match="matrix 1 is not finite"):
            function(ctx.array(x))
    values, vectors = (part.numpy() for part in linalg.eig(ctx.array(x), check=False))
    assert np.isnan(values[1]).all() and np.isnan(vectors[1]).all()
    assert (values[[0, 2]] == 1).all() and not np.isnan(vectors[[0, 2]]).any()


def test_poly_of_a_matrix(ctx, rng):
    for a in (rng.integers(-3, 4, (4, 4)), np.array([[0, 1], [-1, 0]]), np.diag([1, 2, 3])):
        got = np.poly(ctx.array(a.astype(np.float32)))
        wanted = np.poly(a)
        # A coefficient is a sum of up to 2^n minors of up to n rows: an error E of the matrix changes each by n |A|^(n - 1) |E|.
        n, norm = len(a), max(np.linalg.norm(a), 1)
        assert got.dtype == np.float32 and got.shape == wanted.shape
        assert np.abs(got.numpy() - wanted).max() <= 30 * n**2 * 2**n * np.finfo(np.float32).eps * norm**n


def test_svd(rectangle, near):
    a, A = rectangle
    m, n = a.shape[-2:]
    k = min(m, n)
    wanted = np.linalg.svd(a, compute_uv=False)
    near(linalg.svdvals(A), wanted)
    near(linalg.svd(A, compute_uv=False), wanted)
    for full in (False, True):
        u, s, vh = linalg.svd(A, full_matrices=full)
        assert u.shape == (3, m, m if full else k) and vh.shape == (3, n if full else k, n)
        near(s, wanted)
        near(u.mT @ u, np.broadcast_to(np.eye(u.shape[-1]), (3, u.shape[-1], u.shape[-1])))
        near(vh @ vh.mT, np.broadcast_to(np.eye(vh.shape[-2]), (3, vh.shape[-2], vh.shape[-2])))
        near(u[..., :k].copy() * s.reshape(3, 1, k) @ vh[..., :k, :].copy(), a)


def test_what_is_made_of_singular_values(ctx, near, dtype, rng):
    a = (rng.standard_normal((3, 12, 8)) + 4 * np.eye(12, 8)).astype(dtype)
    A, x = ctx.array(a, dtype), a.astype(np.float64)
    near(linalg.pinv(A), np.linalg.pinv(x))
    near(linalg.cond(A), np.linalg.cond(x))
    near(linalg.cond(A, -2), np.linalg.cond(x, -2))
    square = A[:, :8].copy()
    near(linalg.cond(square, 1), np.linalg.cond(x[:, :8], 1))
    for order in (2, -2, "nuc"):
        near(linalg.matrix_norm(A, ord=order), np.linalg.norm(x, order, (1, 2)))
        near(linalg.matrix_norm(A, ord=order, keepdims=True), np.linalg.norm(x, order, (1, 2), keepdims=True))
        near(np.linalg.norm(A, order, (2, 0)), np.linalg.norm(x, order, (2, 0)))
    near(linalg.norm(A), np.linalg.norm(x))
    near(linalg.norm(A, axis=1), np.linalg.norm(x, axis=1))
    near(linalg.norm(A, 1, axis=(0, 1), keepdims=True), np.linalg.norm(x, 1, axis=(0, 1), keepdims=True))
    for bad in ({"ord": 1}, {"ord": "nuc", "axis": 0}, {"axis": (1, 1), "ord": 2}, {"ord": 7, "axis": (0, 1)}):
        with pytest.raises(ValueError):
            linalg.norm(A, **bad)


def test_rank(ctx, dtype, rng):
    for rank in (0, 1, 5, 10):
        a = rng.standard_normal((2, 15, rank)) @ rng.standard_normal((2, rank, 10))
        A = ctx.array(a.astype(dtype), dtype)
        assert linalg.matrix_rank(A, rtol=1e-4).numpy().tolist() == [rank, rank]
        assert linalg.matrix_rank(A, rtol=ctx.array([1e-4, 2.0], dtype)).numpy().tolist() == [rank, 0]
    assert linalg.matrix_rank(ctx.array(np.diag([1.0, 1e-3, 1e-9]), dtype)).numpy() == (2 if dtype == np.float32 else 3)
    assert linalg.matrix_rank(ctx.zeros((2, 0, 3))).numpy().tolist() == [0, 0]


def test_lstsq(ctx, near, dtype, rng):
    for m, n, rank in ((20, 6, 6), (6, 20, 6), (15, 10, 4)):
        a = (rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n)) if rank < min(m, n) else rng.standard_normal((m, n)))
        a, b = a.astype(dtype), rng.standard_normal((m, 3)).astype(dtype)
        for side in (b, b[:, 0].copy()):
            got = linalg.lstsq(ctx.array(a, dtype), ctx.array(side, dtype), rcond=1e-4)
            wanted = np.linalg.lstsq(a.astype(np.float64), side.astype(np.float64), rcond=1e-4)
            near(got.x, wanted[0])
            near(got.residuals, wanted[1])
            assert got.rank == wanted[2] == rank
            near(got.s, wanted[3])
    with pytest.raises(linalg.LinAlgError, match="rows"):
        linalg.lstsq(ctx.ones((3, 2)), ctx.ones(4))
    with pytest.raises(TypeError, match="rcond is str"):
        linalg.lstsq(ctx.ones((3, 2)), ctx.ones(3), rcond="warn")
    with pytest.raises(TypeError, match="rtol is str"):
        linalg.pinv(ctx.ones((3, 2)), rtol="warn")
    assert {"LstsqResult", "SlogdetResult"} <= set(linalg.__all__)


def test_matrices_that_are_not_finite(ctx, dtype):
    x = ctx.array([[1.0, np.nan], [np.nan, 1.0]], dtype)
    for function in (linalg.eigh, linalg.svd, linalg.svdvals, linalg.eigvalsh):
        with pytest.raises(linalg.LinAlgError, match="not finite"):
            function(x)
    assert np.isnan(linalg.svdvals(x, check=False).numpy()).all()
    assert np.isnan(linalg.eigh(x, check=False).eigenvectors.numpy()).all()


def test_einsum_refuses(ctx):
    x = ctx.ones((4, 5))
    for subscripts, operands in (
        ("ij,jk->ik", (x,)),
        ("i", (x,)),
        ("ijk", (x,)),
        ("ij,jk", (x, x)),
        ("ij->k", (x,)),
        ("ij->ii", (x,)),
        ("i1->i", (x,)),
        ("...", (ctx.ones((2, 2)), x)),
        ("i...j...", (x,)),
        ("...->", (x,)),
    ):
        with pytest.raises(ValueError):
            tuff.einsum(subscripts, *operands)
    with pytest.raises(TypeError, match="subscripts"):
        tuff.einsum(x, "ij")
    with pytest.raises(TypeError, match="NumPy"):
        tuff.einsum("ij", np.ones((4, 5)))
    with pytest.raises(ValueError, match="out"):
        tuff.einsum("ij", x, out=ctx.empty((5, 4)))


def test_inner_of_bfloat16_rounds_once(ctx):
    pytest.importorskip("ml_dtypes")
    x = ctx.full(1500, 1.0625).astype("bfloat16")
    assert tuff.inner(x, x).dtype == x.dtype
    # 1500 * 1.0625**2 is 1693.4, between 1688 and 1696; of squares rounded to 1.125 the sum would be 1687.5.
    assert float(tuff.inner(x, x).astype(np.float32)) == 1696


def test_products(ctx, near, dtype, rng):
    a, b = rng.standard_normal((3, 4, 5)).astype(dtype), rng.standard_normal((4, 3, 2)).astype(dtype)
    A, B, x, y = ctx.array(a, dtype), ctx.array(b, dtype), a.astype(np.float64), b.astype(np.float64)
    near(tuff.tensordot(A, B, axes=([1, 0], [0, 1])), np.tensordot(x, y, axes=([1, 0], [0, 1])))
    near(tuff.tensordot(A, A, axes=0), np.tensordot(x, x, axes=0))
    near(tuff.vecdot(A, A), (x * x).sum(-1))
    near(tuff.vecdot(A, A[0], axis=-2), (x * x[0]).sum(-2))
    near(tuff.outer(A[0], B[0]), np.outer(x[0], y[0]))
    near(tuff.kron(A, B), np.kron(x, y))
    near(tuff.kron(A[0], B), np.kron(x[0], y))
    near(tuff.matrix_transpose(A), x.swapaxes(-1, -2))
    for offset in (0, 1, -2, 4, -9, 9):
        near(linalg.diagonal(A, offset), np.diagonal(x, offset, 1, 2))
        near(tuff.trace(A, offset), np.trace(x, offset, 1, 2))
    for bad in (5, (0,), ([0], [0, 1]), ([0, 0], [0, 1]), ([2], [2])):
        with pytest.raises(ValueError):
            tuff.tensordot(A, B, axes=bad)
    with pytest.raises(ValueError):
        tuff.vecdot(A, B)
    with pytest.raises(ValueError):
        linalg.diagonal(A[0, 0])


def test_numpys_functions_run_on_the_device(ctx, near, dtype, problem):
    a, b, A, B = problem
    near(np.linalg.solve(A, B), np.linalg.solve(a, b))
    near(np.linalg.inv(A), np.linalg.inv(a))
    near(np.einsum("bij,bjk->bik", A, B), a @ b)
    near(np.kron(A[0], B[0]), np.kron(a[0], b[0]))
    near(np.tensordot(A[0], B[0], axes=1), a[0] @ b[0])
    with pytest.raises(TypeError, match="emath|scimath"):
        np.emath.sqrt(A)


def _complex(rng, *shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)


def test_complex_systems(ctx, rng):
    a, b, v = _complex(rng, 3, 4, 4) + 4 * np.eye(4, dtype=np.complex64), _complex(rng, 3, 4, 2), _complex(rng, 4)
    x, y = ctx.array(a), ctx.array(b)
    close = functools.partial(np.allclose, rtol=1e-4, atol=1e-4)
    assert close(tuff.linalg.solve(x, y).numpy(), np.linalg.solve(a, b)) and tuff.linalg.solve(x, y).dtype == np.complex64
    assert close(tuff.linalg.solve(x[0], ctx.array(v)).numpy(), np.linalg.solve(a[0], v))
    assert close(tuff.linalg.solve(x, ctx.array(b.real.copy())).numpy(), np.linalg.solve(a, b.real))
    assert close(tuff.linalg.solve(ctx.array(a.real.copy()), y).numpy(), np.linalg.solve(a.real, b))
    assert close(tuff.linalg.inv(x).numpy(), np.linalg.inv(a)) and close(np.linalg.inv(x.mT).numpy(), np.linalg.inv(a.swapaxes(-1, -2)))
    assert close(tuff.linalg.matrix_power(x[0], -2).numpy(), np.linalg.matrix_power(a[0], -2))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        tuff.linalg.inv(ctx.zeros((2, 2), np.complex64))
    for call in (lambda: tuff.linalg.inv(y), lambda: tuff.linalg.solve(y, y), lambda: tuff.linalg.solve(x, ctx.array(v[:3]))):
        with pytest.raises((ValueError, np.linalg.LinAlgError)):
            call()


def test_complex_singular_values_and_norms(ctx, rng):
    a = _complex(rng, 2, 5, 3)
    a[1, :, 2] = 1j * a[1, :, 0]  # of rank 2
    x = ctx.array(a)
    values = tuff.linalg.svdvals(x)
    wanted = np.linalg.svd(a, compute_uv=False)
    assert values.dtype == np.float32 and np.allclose(values.numpy(), wanted, atol=1e-5)
    assert tuff.linalg.matrix_rank(x, rtol=1e-5).numpy().tolist() == [3, 2]
    assert np.allclose(tuff.linalg.pinv(x, rtol=1e-5).numpy(), np.linalg.pinv(a, 1e-5), atol=1e-4)
    assert np.allclose(tuff.linalg.pinv(x[0].T).numpy(), np.linalg.pinv(a[0].T), atol=1e-4)
    assert np.allclose(tuff.linalg.cond(x[0]).numpy(), np.linalg.cond(a[0]), rtol=1e-4)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        got = tuff.linalg.matrix_norm(x, ord=order, keepdims=True)
        assert got.dtype == np.float32 and np.allclose(got.numpy(), np.linalg.norm(a, order, (-2, -1), True), rtol=1e-4, atol=1e-5)
    for order in (0, 1, 2, 3, -1, np.inf, -np.inf):
        got = tuff.linalg.vector_norm(x, axis=1, ord=order)
        assert got.dtype == np.float32 and np.allclose(got.numpy(), np.linalg.norm(a, order, 1), rtol=1e-4)
    with pytest.raises(TypeError, match="linear algebra takes"):
        tuff.linalg.lu_factor(x[0, :3])


def _adjoint(x):
    return x.conj().swapaxes(-1, -2)


def _complex_cases(rng):
    """Matrices whose columns depend on each other or whose singular values are equal, too."""
    for shape in ((1, 1), (3, 3), (7, 7), (5, 3), (3, 5), (1, 4), (4, 1), (2, 4, 4), (2, 6, 2), (0, 3), (3, 0), (2, 0, 0)):
        a = _complex(rng, *shape)
        yield a, False
        yield a, True
        yield 0 * a, False
        yield a[..., :1] @ a[..., :1, :] if a.size else a, False
        yield 1j * np.eye(*shape[-2:], dtype=np.complex64) + 0 * a, False


def _check_complex(got, wanted, of, steps=1):
    """Errors of at most `steps` times 50 roundings of each of the operations that a number takes, relative to the largest."""
    most = 50 * steps * max(*of.shape[-2:], 1) * np.finfo(np.float32).eps * max(1, np.abs(of).max(initial=0))
    assert got.shape == wanted.shape and np.abs(got - wanted).max(initial=0) <= most


def test_complex_qr(ctx, rng):
    for a, turned in _complex_cases(rng):
        x = ctx.array(a).mT if turned else ctx.array(a)
        a = a.swapaxes(-1, -2) if turned else a
        k = min(a.shape[-2:])
        for mode, columns, rows in (("reduced", k, k), ("complete", a.shape[-2], a.shape[-2])):
            q, r = (part.numpy() for part in tuff.linalg.qr(x, mode=mode))
            assert q.shape[-1] == columns and r.shape[-2] == rows and q.dtype == r.dtype == np.complex64
            _check_complex(q @ r, a, a)
            _check_complex(_adjoint(q) @ q, np.eye(columns) + 0 * (_adjoint(q) @ q), np.eye(*a.shape[-2:]))
            assert not np.tril(r, -1).any()
        assert (tuff.linalg.qr(x, mode="r").numpy() == np.asarray(tuff.linalg.qr(x).R.numpy())).all()


def test_complex_svd(ctx, rng):
    for a, turned in _complex_cases(rng):
        x = ctx.array(a).mT if turned else ctx.array(a)
        a = a.swapaxes(-1, -2) if turned else a
        k = min(a.shape[-2:])
        for full in (True, False):
            u, s, vh = (part.numpy() for part in tuff.linalg.svd(x, full_matrices=full))
            wanted = np.linalg.svd(a, full_matrices=full)
            assert u.shape == wanted[0].shape and vh.shape == wanted[2].shape and s.dtype == np.float32
            _check_complex(s, wanted[1], a, 4)
            _check_complex(u[..., :k] * s[..., None, :] @ vh[..., :k, :], a, a, 4)
            for q in (u, _adjoint(vh)):
                _check_complex(_adjoint(q) @ q, np.eye(q.shape[-1]) + 0 * (_adjoint(q) @ q), np.eye(*a.shape[-2:]), 2)
        assert (tuff.linalg.svd(x, compute_uv=False).numpy().shape) == (*a.shape[:-2], k)


def test_complex_eigenvalues(ctx, rng):
    for a, _ in _complex_cases(rng):
        if a.shape[-1] != a.shape[-2]:
            continue
        h = a + _adjoint(a)
        wanted = np.linalg.eigvalsh(h)
        for triangle in "LU":
            # Neither the other triangle nor imaginary parts of the diagonal are read.
            given = (np.tril(h) if triangle == "L" else np.triu(h)) + 5j * np.eye(h.shape[-1], dtype=np.complex64)
            x = ctx.array(given.astype(np.complex64))
            values, vectors = (part.numpy() for part in tuff.linalg.eigh(x, triangle))
            _check_complex(values, wanted, h, 2)
            _check_complex(tuff.linalg.eigvalsh(x, triangle).numpy(), wanted, h, 2)
            _check_complex(h @ vectors, vectors * values[..., None, :], h, 4)
            _check_complex(_adjoint(vectors) @ vectors, np.eye(h.shape[-1]) + 0 * h, h, 4)
    with pytest.raises(np.linalg.LinAlgError, match="not finite"):
        tuff.linalg.eigh(ctx.full((2, 2), complex(np.nan, 0)))


def test_complex_determinants(ctx, rng):
    for a, _ in _complex_cases(rng):
        if a.shape[-1] != a.shape[-2]:
            continue
        x = ctx.array(a)
        sign, size = (part.numpy() for part in tuff.linalg.slogdet(x))
        wanted = np.linalg.slogdet(a.astype(np.complex128))
        regular = wanted[1] > -5  # the rounding errors of others are what is left of them
        assert np.allclose(sign[regular], wanted[0][regular], atol=1e-4)
        assert np.allclose(size[regular], wanted[1][regular], atol=1e-4)
        most = 1e-4 * np.abs(a).max(initial=1) ** a.shape[-1]
        assert np.allclose(tuff.linalg.det(x).numpy(), np.linalg.det(a.astype(np.complex128)), rtol=1e-4, atol=most)
    sign, size = tuff.linalg.slogdet(ctx.zeros((2, 2), np.complex64))
    assert sign.numpy() == 0 and size.numpy() == -np.inf
    # Neither numbers whose squares overflow nor products beyond the range.
    large = ctx.array((1e30 * np.array([[1, 1j], [1j, 1]])).astype(np.complex64))
    assert np.allclose(tuff.linalg.slogdet(large).logabsdet.numpy(), 2 * np.log(1e30) + np.log(2), rtol=1e-5)


def test_complex_lstsq(ctx, rng):
    for m, n, rank in ((9, 4, 4), (4, 9, 4), (8, 6, 3)):
        a = _complex(rng, m, rank) @ _complex(rng, rank, n) if rank < min(m, n) else _complex(rng, m, n)
        for side in (_complex(rng, m, 2), _complex(rng, m), rng.standard_normal(m).astype(np.float32)):
            got = tuff.linalg.lstsq(ctx.array(a), ctx.array(side), rcond=1e-4)
            wanted = np.linalg.lstsq(a.astype(np.complex128), side, rcond=1e-4)
            assert got.rank == wanted[2] == rank and got.residuals.dtype == got.s.dtype == np.float32
            for one, other in ((got.x, wanted[0]), (got.residuals, wanted[1]), (got.s, wanted[3])):
                assert np.allclose(one.numpy(), other, rtol=1e-3, atol=1e-3)
    with pytest.raises(TypeError, match="a is a NumPy array"):
        tuff.linalg.lstsq(np.ones((3, 2)), ctx.array(_complex(rng, 3)))


def test_cross(ctx, rng):
    a, b = rng.integers(-9, 9, (4, 3, 2)), rng.integers(-9, 9, (4, 3, 2))
    for kind in (np.float32, np.int16, np.complex64):
        x, y = ctx.array(a, kind), ctx.array(b, kind)
        wanted = np.cross(a.astype(kind), b.astype(kind), axis=1)
        for got in (tuff.linalg.cross(x, y, axis=1), tuff.cross(x, y, axis=-2), np.cross(x, y, axis=1)):
            assert got.dtype == kind and (got.numpy() == wanted).all()
    flat = ctx.array(b[0, :, 0], np.float32)
    assert (tuff.cross(ctx.array(a.swapaxes(1, 2).copy(), np.float32), flat).numpy() == np.cross(a.swapaxes(1, 2), b[0, :, 0])).all()
    assert (np.cross(ctx.array(a, np.float32), flat, axisa=1, axisc=0).numpy() == np.cross(a, b[0, :, 0], axisa=1, axisc=0)).all()
    for call in (lambda: tuff.cross(x, y, axis=0), lambda: tuff.cross(x, y, axis=3), lambda: tuff.cross(flat, a)):
        with pytest.raises((ValueError, TypeError)):
            call()


def _chain(*shapes):
    rng = np.random.default_rng(21)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4, 5)), ((3, 40), (40, 2), (2, 7)), ((2,), (2, 5), (5, 3), (3, 4), (4,)), ((6, 2), (2, 9), (9, 1), (1, 8), (8, 3)), ((4,), (4,)), ((2, 0), (0, 3), (3, 1))]
)
def test_multi_dot(ctx, shapes):
    host = _chain(*shapes)
    expected = np.linalg.multi_dot([one.astype(np.float64) for one in host])
    arrays = [ctx.array(one) for one in host]
    for way in (tuff.linalg.multi_dot, np.linalg.multi_dot):
        found = way(arrays)
        assert found.shape == expected.shape and found.dtype == np.float32
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)
    out = ctx.empty(expected.shape)
    assert tuff.linalg.multi_dot(arrays, out=out) is out
    np.testing.assert_array_equal(out.numpy(), found.numpy())
    whole = [one.astype(np.int32) for one in host]
    assert tuff.linalg.multi_dot([ctx.array(one) for one in whole]).numpy().tolist() == np.linalg.multi_dot(whole).tolist()


def test_multi_dot_takes_the_cheapest_order():
    from tuff._chains import _splits

    def cost(sizes, split, i, j):
        if i == j:
            return 0
        k = split[i][j]
        return cost(sizes, split, i, k) + cost(sizes, split, k + 1, j) + sizes[i] * sizes[k + 1] * sizes[j + 1]

    # Cormen, Leiserson, Rivest and Stein, chapter 15.2.
    sizes = (30, 35, 15, 5, 10, 20, 25)
    assert cost(sizes, _splits(sizes), 0, 5) == 15125


def test_tensor_equations(ctx):
    rng = np.random.default_rng(22)
    a = rng.standard_normal((4, 6, 8, 3)).astype(np.float32)
    found = tuff.linalg.tensorinv(ctx.array(a))
    assert found.shape == (8, 3, 4, 6)
    np.testing.assert_allclose(np.linalg.tensorinv(ctx.array(a)).numpy(), np.linalg.tensorinv(a.astype(np.float64)), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(tuff.linalg.tensorinv(ctx.array(a.reshape(24, 8, 3)), 1).numpy(), found.numpy().reshape(8, 3, 24), rtol=1e-4, atol=1e-4)
    b = rng.standard_normal((4, 6)).astype(np.float32)
    for way in (tuff.linalg.tensorsolve, np.linalg.tensorsolve):
        np.testing.assert_allclose(way(ctx.array(a), ctx.array(b)).numpy(), np.linalg.tensorsolve(a.astype(np.float64), b), rtol=1e-3, atol=1e-3)
    turned = ctx.array(np.ascontiguousarray(np.moveaxis(a, (2, 3), (0, 2))))
    np.testing.assert_allclose(tuff.linalg.tensorsolve(turned, ctx.array(b), axes=(0, 2)).numpy(), np.linalg.tensorsolve(a.astype(np.float64), b), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "error, use",
    [
        (ValueError, lambda x: tuff.linalg.multi_dot([x])),
        (np.linalg.LinAlgError, lambda x: tuff.linalg.multi_dot([x, x[0], x])),
        (ValueError, lambda x: tuff.linalg.multi_dot([x, x])),
        (TypeError, lambda x: tuff.linalg.multi_dot([x, np.eye(3)])),
        (ValueError, lambda x: tuff.linalg.multi_dot([x, x.T], out=x)),
        (ValueError, lambda x: tuff.linalg.tensorinv(x, 0)),
        (np.linalg.LinAlgError, lambda x: tuff.linalg.tensorinv(x, 1)),
        (np.linalg.LinAlgError, lambda x: tuff.linalg.tensorsolve(x, x[0])),
        (TypeError, lambda x: tuff.linalg.tensorsolve(x, np.eye(2))),
    ],
)
def test_wrong_chains_and_tensors(ctx, error, use):
    with pytest.raises(error):
        use(ctx.array(np.arange(6, dtype=np.float32).reshape(2, 3)))


def test_products_of_matrices_and_vectors(ctx):
    m, v, w = _chain((2, 3, 4), (4,), (2, 3))
    x, y, z = (ctx.array(one) for one in (m, v, w))
    np.testing.assert_allclose(tuff.matvec(x, y).numpy(), m @ v, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(tuff.vecmat(z, x).numpy(), np.einsum("im,imn->in", w, m), rtol=1e-5, atol=1e-5)
    c = (v + 1j).astype(np.complex64)
    np.testing.assert_allclose(tuff.vecmat(ctx.array(c), ctx.array(m[0].T.copy())).numpy(), c.conj() @ m[0].T, rtol=1e-5, atol=1e-5)
    for use in (lambda: tuff.matvec(x, z), lambda: tuff.matvec(y, y), lambda: tuff.vecmat(y, x), lambda: tuff.vecmat(y, y)):
        with pytest.raises(ValueError):
            use()
    if hasattr(np, "matvec"):  # of NumPy 2.2
        np.testing.assert_array_equal(np.matvec(x, y).numpy(), tuff.matvec(x, y).numpy())


@pytest.mark.parametrize("shape, sides", [((4096, 3), ()), ((5000, 7), (2,)), ((70000, 2), (1,)), ((4100, 1), ())])
def test_least_squares_of_tall_matrices(ctx, shape, sides):
    """Their blocks of rows are factored by themselves."""
    rng = np.random.default_rng(23)
    a = rng.standard_normal(shape).astype(np.float32)
    b = rng.standard_normal((shape[0], *sides)).astype(np.float32)
    found = tuff.linalg.lstsq(ctx.array(a), ctx.array(b))
    expected = np.linalg.lstsq(a.astype(np.float64), b.astype(np.float64), rcond=None)
    # Errors of Householder's method grow with the roots of the sizes: here below 2**-24 * 64 of the norms.
    scale = np.linalg.norm(b) / np.linalg.norm(a, 2)
    np.testing.assert_allclose(found.x.numpy(), expected[0], atol=64 * 2.0**-24 * scale)
    np.testing.assert_allclose(found.s.numpy(), expected[3], rtol=64 * 2.0**-24)
    assert found.rank == expected[2] == shape[1]
    np.testing.assert_allclose(found.residuals.numpy(), expected[1], rtol=1e-4)


def test_tall_matrices_of_less_than_full_rank(ctx):
    rng = np.random.default_rng(24)
    columns = rng.standard_normal((5000, 2)).astype(np.float32)
    a = np.concatenate([columns, columns[:, :1] + columns[:, 1:]], 1)
    b = rng.standard_normal(5000).astype(np.float32)
    found = tuff.linalg.lstsq(ctx.array(a), ctx.array(b), 1e-5)
    expected = np.linalg.lstsq(a.astype(np.float64), b.astype(np.float64), rcond=1e-5)
    assert found.rank == expected[2] == 2 and found.residuals.shape == (0,)
    np.testing.assert_allclose(found.x.numpy(), expected[0], atol=1e-5)
    with pytest.raises(np.linalg.LinAlgError):
        tuff.linalg.lstsq(ctx.array(a * np.float32(np.nan)), ctx.array(b))


def test_einsum_of_lists_of_axes(ctx):
    a, b = _chain((3, 4), (2, 4, 5))
    x, y = ctx.array(a), ctx.array(b)
    for lists in (lambda m, n: (m, [0, 1], n, [7, 1, 3], [7, 0, 3]), lambda m, n: (m, [0, 1], n, [2, 1, 3]), lambda m, n: (n, [..., 0, 1], [..., 1, 0]), lambda m, n: (m, (0, 1))):
        for way in (tuff.einsum, np.einsum):
            found, expected = way(*lists(x, y)), np.einsum(*lists(a, b))
            assert found.shape == expected.shape
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
    for error, use in ((ValueError, lambda: tuff.einsum(x, [0, 1, 2])), (TypeError, lambda: tuff.einsum(x, 3)), (ValueError, lambda: tuff.einsum(x, [0, 99])), (TypeError, lambda: tuff.einsum(x, ["i", "j"])), (TypeError, lambda: tuff.einsum(x, [0, 1], a, [0, 1]))):
        with pytest.raises(error):
            use()


def test_numpys_names_of_tolerances(ctx):
    a = np.diag([3, 1, 1e-3]).astype(np.float32)
    x = ctx.array(a)
    assert np.linalg.matrix_rank(x, tol=0.5).item() == np.linalg.matrix_rank(a, tol=0.5) == 2
    assert np.linalg.matrix_rank(x, 2, True).item() == 1 and np.linalg.matrix_rank(x, hermitian=True).item() == 3
    assert tuff.linalg.matrix_rank(ctx.array(np.stack([a, 2 * a])), tol=ctx.array([2.0, 1.0])).numpy().tolist() == [1, 2]
    np.testing.assert_allclose(np.linalg.pinv(x, 0.01).numpy(), np.linalg.pinv(a, 0.01), atol=1e-6)
    np.testing.assert_allclose(np.linalg.svd(x, hermitian=True)[1].numpy(), [3, 1, 1e-3], rtol=1e-5)
    np.testing.assert_allclose(np.linalg.svd(x, compute_uv=False, hermitian=True).numpy(), [3, 1, 1e-3], rtol=1e-5)
    with pytest.raises(ValueError, match="both"):
        tuff.linalg.matrix_rank(x, tol=1.0, rtol=1.0)
    with pytest.raises(TypeError):
        tuff.linalg.matrix_rank(x, tol="small")


def _with_condition(rng, m, n, condition):
    q, _ = np.linalg.qr(rng.standard_normal((m, n)))
    v, _ = np.linalg.qr(rng.standard_normal((n, n)))
    return (q * np.geomspace(1, 1 / condition, n)) @ v


@pytest.mark.parametrize("scale, of_sides", [(1, 1), (1e-18, 1e10), (1e15, 1e-3)])
def test_least_squares_of_tall_matrices_of_a_condition(ctx, scale, of_sides):
    # x is as good as of a backward stable method: its error is at most n * eps * condition of its size and that of b.
    rng, m, n = np.random.default_rng(8), 5000, 9
    for condition in (1, 100, 1000):
        a = (_with_condition(rng, m, n, condition) * scale).astype(np.float32)
        b = (rng.standard_normal((m, 2)) * of_sides).astype(np.float32)
        x, _, rank, s = np.linalg.lstsq(a.astype(np.float64), b.astype(np.float64), rcond=None)
        got = tuff.linalg.lstsq(ctx.array(a), ctx.array(b))
        eps = float(np.finfo(np.float32).eps)
        assert got.rank == rank == n
        bound = n * eps * condition * (np.linalg.norm(x, 2) + np.linalg.norm(b.astype(np.float64)) / s[0])
        assert np.abs(got.x.numpy() - x).max() <= bound
        assert np.abs(got.s.numpy() - s).max() <= n * eps * s[0]


def test_least_squares_of_tall_matrices_of_less_than_full_rank(ctx):
    rng = np.random.default_rng(9)
    a, b = rng.standard_normal((5000, 6)).astype(np.float32), rng.standard_normal((5000, 2)).astype(np.float32)
    a[:, 3], a[:, 5] = a[:, 1], 0
    for matrix, sides in ((a, b), (a, 0 * b), (0 * a, b), (1e-30 * a, b)):
        x, residuals, rank, s = np.linalg.lstsq(matrix.astype(np.float64), sides.astype(np.float64), rcond=5000 * 2.0**-23)
        for cut in (None, 0.01):
            got = tuff.linalg.lstsq(ctx.array(matrix), ctx.array(sides), cut)
            assert got.rank == rank and got.residuals.size == 0
            np.testing.assert_allclose(got.x.numpy(), x, atol=1e-5 * max(np.abs(x).max(), 1e-30))
            np.testing.assert_allclose(got.s.numpy(), s, atol=6 * 2.0**-23 * s[0])
    for cut in (1e-6, 1e-5):  # below what products in float64 are used for
        got = tuff.linalg.lstsq(ctx.array(_with_condition(rng, 5000, 4, 3e4).astype(np.float32)), ctx.array(b), cut)
        assert got.rank == 4
    a[7, 2] = np.nan
    with pytest.raises(np.linalg.LinAlgError):
        tuff.linalg.lstsq(ctx.array(a), ctx.array(b))
