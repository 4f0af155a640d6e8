"""Orthogonal factors of matrices: QR, eigenvalues of symmetric matrices, singular values, and what follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _functions as functions
from . import raw
from ._checked import choice, is_number
from ._elementwise import common_type, where
from ._error import check as require
from ._expression import expr
from ._matrices import LinAlgError, count, embedded, floats, has_complex, identity, matrices, of_halves, owned, places, raise_if
from ._matrices import require_matrices
from ._operands import dtype_of, require_array, same_kind
from ._operations import matmul
from ._reductions import count_nonzero
from ._reflections import adjoint, bidiagonal, product_of, triangular, tridiagonal
from ._shape import concat
from ._types import is_complex, part_of

if TYPE_CHECKING:
    from ._array import Array


class QRResult(NamedTuple):
    """Orthonormal columns and an upper triangle."""

    Q: Array
    R: Array


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """Left vectors as columns, singular values in descending order, right vectors as rows."""

    U: Array
    S: Array
    Vh: Array


def _factor(x: Array, given: Array, columns: Optional[int]) -> Tuple[Optional[Array], Array]:
    """Q with so many columns (None: no Q) and all of R."""
    m, n = x.shape[-2:]
    r = owned(x, given)
    desc = raw.QrDesc(dtype=dtype_of(x), m=m, n=n, a=r.buffer.handle, stride_a=m * n, batch_count=count(x))
    q = None
    if columns is not None:
        q = x.context.empty((*x.shape[:-2], m, columns), x.dtype)
        desc.q, desc.columns_q, desc.stride_q = q.buffer.handle, columns, m * columns
    require(raw.tuff_qr(x.context.stream_handle, desc))
    return q, r


def qr(x: Array, mode: str = "reduced") -> Union[QRResult, Array]:
    """The QR factorisation x = Q @ R of stacks of m x n matrices, by Householder's method. mode "reduced": Q has
    k = min(m, n) columns and R k rows; "complete": m and m; "r": R of k rows alone. R's diagonal may be negative, or complex."""
    wanted = choice(mode, "mode", {"reduced": 0, "complete": 1, "r": 2})
    if has_complex(x):
        return _qr_complex(x, wanted)
    given, x = x, matrices(x, "x", square=False)
    m, n = x.shape[-2:]
    k = min(m, n)
    q, r = _factor(x, given, (k, m, None)[wanted])
    part = r if wanted == 1 or m == k else r[..., :k, :].copy()
    return part if q is None else QRResult(q, part)


def _qr_complex(x: Array, wanted: int) -> Union[QRResult, Array]:
    require_matrices(x, "x", square=False)
    m, k = x.shape[-2], min(x.shape[-2:])
    reflections, r = triangular(x)
    part = r if wanted == 1 or m == k else r[..., :k, :].copy()
    if wanted == 2:
        return part
    return QRResult(product_of(reflections, identity(x, m, m if wanted == 1 else k)), part)


_WHAT = "not finite, or its {0} did not converge"


def _eigh(x: Array, upper: bool, vectors: bool, check: bool) -> Tuple[Array, Optional[Array]]:
    x = matrices(x, "x")
    n = x.shape[-1]
    values = x.context.empty(x.shape[:-1], x.dtype)
    info = x.context.empty((count(x),), np.int32) if check else None
    result = x.context.empty(x.shape, x.dtype) if vectors else None
    desc = raw.EighDesc(dtype=dtype_of(x), triangle=raw.TRIANGLE_UPPER if upper else raw.TRIANGLE_LOWER, n=n)
    desc.a, desc.stride_a, desc.values, desc.batch_count = x.buffer.handle, n * n, values.buffer.handle, count(x)
    if result is not None:
        desc.vectors, desc.stride_vectors = result.buffer.handle, n * n
    desc.info = info.buffer.handle if info is not None else 0
    require(raw.tuff_eigh(x.context.stream_handle, desc))
    raise_if(info, _WHAT.format("eigenvalues"))
    return values, result


_TRIANGLES = {"L": False, "U": True, "l": False, "u": True}


def eigh(x: Array, UPLO: str = "L", *, check: bool = True) -> EighResult:  # noqa: N803
    """The eigenvalues of symmetric or Hermitian matrices in ascending order, and orthonormal eigenvectors as columns:
    x @ vectors = vectors * values. Only the lower triangle of x is read, or the upper one if UPLO is "U"."""
    upper = choice(UPLO, "UPLO", _TRIANGLES)
    if not has_complex(x):
        return EighResult(*_eigh(x, upper, True, check))
    q, real = tridiagonal(_hermitian(x, upper))
    values, vectors = _eigh(real, False, True, check)
    return EighResult(values, matmul(q, vectors))


def _hermitian(x: Array, upper: bool) -> Array:
    """Hermitian matrices of which a triangle is given. The imaginary parts of a diagonal are not read."""
    require_matrices(x, "x")
    n = x.shape[-1]
    j = places(x, n)
    i = j.reshape(n, 1)
    given = where(i < j if upper else j < i, x, 0)
    return given + adjoint(given) + where(i == j, x.real, 0.0)


def eigvalsh(x: Array, UPLO: str = "L", *, check: bool = True) -> Array:  # noqa: N803
    """The eigenvalues of symmetric or Hermitian matrices in ascending order, as eigh's."""
    if has_complex(x):
        return _eigh(tridiagonal(_hermitian(x, choice(UPLO, "UPLO", _TRIANGLES)))[1], False, False, check)[0]
    return _eigh(x, choice(UPLO, "UPLO", _TRIANGLES), False, check)[0]


def _svd(x: Array, vectors: bool, check: bool) -> Tuple[Optional[Array], Array, Optional[Array]]:
    x = matrices(x, "x", square=False)
    m, n = x.shape[-2:]
    k, stack = min(m, n), x.shape[:-2]
    values = x.context.empty((*stack, k), x.dtype)
    info = x.context.empty((count(x),), np.int32) if check else None
    desc = raw.SvdDesc(dtype=dtype_of(x), m=m, n=n, a=x.buffer.handle, stride_a=m * n, values=values.buffer.handle)
    desc.batch_count, desc.info = count(x), info.buffer.handle if info is not None else 0
    u = x.context.empty((*stack, m, k), x.dtype) if vectors else None
    vt = x.context.empty((*stack, k, n), x.dtype) if vectors else None
    if vectors:
        desc.u, desc.stride_u, desc.vt, desc.stride_vt = u.buffer.handle, m * k, vt.buffer.handle, k * n
    require(raw.tuff_svd(x.context.stream_handle, desc))
    raise_if(info, _WHAT.format("singular values"))
    return u, values, vt


def _completed(u: Array) -> Array:
    """Orthonormal columns and more of them, to a square matrix: those that its QR factorisation adds."""
    k = u.shape[-1]
    more = qr(u, mode="complete").Q[..., k:].copy()
    return concat([u, more], u.ndim - 1)


def svd(x: Array, full_matrices: bool = True, compute_uv: bool = True, *, check: bool = True) -> Union[SVDResult, Array]:
    """The singular value decomposition x = U @ diag(S) @ Vh of stacks of m x n matrices, with k = min(m, n) values in
    descending order. U is m x m and Vh n x n, or with full_matrices=False m x k and k x n. Without compute_uv only S."""
    if has_complex(x) and not compute_uv:
        return svdvals(x, check=check)
    u, values, vt = _svd_complex(x, check) if has_complex(x) else _svd(x, bool(compute_uv), check)
    if u is None or vt is None:
        return values
    if full_matrices and u.shape[-1] < u.shape[-2]:
        u = _completed(u)
    if full_matrices and vt.shape[-2] < vt.shape[-1]:
        vt = adjoint(_completed(adjoint(vt).copy())).copy()
    return SVDResult(u, values, vt)


def _svd_complex(x: Array, check: bool) -> Tuple[Array, Array, Array]:
    require_matrices(x, "x", square=False)
    m, n = x.shape[-2:]
    if m < n:
        u, values, vh = _svd_complex(adjoint(x), check)
        return adjoint(vh), values, adjoint(u)
    if n == 0:
        return identity(x, m, 0), x.context.zeros((*x.shape[:-2], 0), part_of(x.dtype)), identity(x, 0, 0)
    left, real, right = bidiagonal(x)
    u, values, vt = _svd(real, True, check)
    return matmul(left, u), values, matmul(vt, adjoint(right))


def svdvals(x: Array, *, check: bool = True) -> Array:
    """The singular values of matrices in descending order."""
    if has_complex(x):
        require_matrices(x, "x", square=False)
        return svdvals(embedded(x), check=check)[..., ::2].copy()
    return _svd(x, False, check)[1]


def _cut(values: Array, shape: Tuple[int, ...], rtol: Union[None, float, Array], name: str = "rtol") -> Array:
    """Which singular values are above rtol, an argument of this name, times the largest; by default the rounding errors of
    the matrices."""
    if rtol is None:
        rtol = max(shape[-2:]) * float(np.finfo(values.dtype).eps)
    elif is_number(rtol):
        rtol = float(rtol)
    else:
        rtol = floats(rtol, name).reshape((*rtol.shape, 1))
    return values > values.max(axis=values.ndim - 1, keepdims=True) * rtol


def matrix_rank(x: Array, *, rtol: Union[None, float, Array] = None, tol: Union[None, float, Array] = None) -> Array:
    """How many singular values of each matrix are above rtol times the largest one, by default max(m, n) * eps, or above tol."""
    if tol is not None and rtol is not None:
        raise ValueError("`tol` and `rtol` can't be both set.")
    x = x if has_complex(x) else matrices(x, "x", square=False)
    if x.ndim < 2:
        raise LinAlgError(f"x has shape {x.shape}, needs at least two axes")
    if 0 in x.shape[-2:]:
        return x.context.zeros(x.shape[:-2], np.int64)
    values = svdvals(x)
    if tol is None:
        return count_nonzero(_cut(values, x.shape, rtol), values.ndim - 1)
    limit = float(tol) if is_number(tol) else floats(tol, "tol").reshape((*tol.shape, 1))
    return count_nonzero(values > limit, values.ndim - 1)


def _inverse_values(values: Array, above: Array) -> Array:
    return where(above, 1 / values, 0.0)


def pinv(x: Array, *, rtol: Union[None, float, Array] = None) -> Array:
    """The pseudo-inverses of matrices: singular values that are not above rtol times the largest one, by default
    max(m, n) * eps, count as zero."""
    x = x if has_complex(x) else matrices(x, "x", square=False)
    if x.ndim < 2:
        raise LinAlgError(f"x has shape {x.shape}, needs at least two axes")
    if 0 in x.shape[-2:]:
        return x.context.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
    if has_complex(x):
        m, n = x.shape[-2:]
        rtol = max(m, n) * float(np.finfo(part_of(x.dtype)).eps) if rtol is None else rtol
        return of_halves(pinv(embedded(x), rtol=rtol)[..., :m], n)
    u, values, vt = svd(x, full_matrices=False)
    inverse = _inverse_values(values, _cut(values, x.shape, rtol))
    return matmul(vt.mT, (u * inverse.reshape((*values.shape[:-1], 1, values.shape[-1]))).mT)


class LstsqResult(NamedTuple):
    """A solution, the sums of squares of what remains (empty unless m > n and a has full rank), a's rank and its singular
    values."""

    x: Array
    residuals: Array
    rank: int
    s: Array


#: Rows of the blocks of a tall matrix that are factored side by side, from how many rows on, and up to how many columns.
_BLOCK_ROWS, _TALL, _NARROW = 1024, 4096, 128


def _shortened(a: Array, sides: Array) -> Tuple[Array, Array]:
    """R and Q.T @ sides of a tall matrix a = Q @ R: a problem with the same solutions and singular values. The triangular
    factors of blocks of rows, below each other, are factored again (Demmel, Grigori, Hoemmen and Langou,
    Communication-optimal parallel and sequential QR and LU factorizations, 2012)."""
    n, both = a.shape[1], concat([a, sides], 1)
    columns = both.shape[1]
    while both.shape[0] > _BLOCK_ROWS:
        missing = -both.shape[0] % _BLOCK_ROWS
        if missing:
            both = concat([both, both.context.zeros((missing, columns), both.dtype)], 0)
        factors = qr(both.reshape(-1, _BLOCK_ROWS, columns), "r")
        both = factors.reshape(-1, columns)
    r = qr(both, "r")
    return r[:n, :n].copy(), r[:n, n:].copy()


#: The least rcond for which a Gram matrix in float64 does: see _shortened_by_gram(). The default one is larger.
_GRAM_CUT = 3e-4
#: What is added to its diagonal, relative to the largest product: more than the rounding errors of the sums.
_GRAM_SHIFT = 1e-14


def _shortened_by_gram(a: Array, sides: Array) -> Tuple[Array, Array]:
    """_shortened() of a matrix of float32, by the Cholesky factor of the products of all columns in float64. It has NaN where
    a has, and for a matrix of zeros.

    The shift keeps it definite if columns depend on one another (Fukaya, Kannan, Nakatsukasa, Yamamoto and Yanagisawa,
    Shifted Cholesky QR for computing the QR factorization of ill-conditioned matrices, 2020). It moves the squares of the
    singular values by 1e-14 of that of the largest: a value above 3e-4 of the largest by less than 6e-8 of itself, a rounding
    error of float32. Rounding errors of the products, which are sums by trees, are smaller."""
    n, both = a.shape[1], concat([a, sides], 1).astype(np.float64)
    products = matmul(both.mT, both)
    each = places(products, both.shape[1])
    # Rows of the factor that belong to the sides are not used: a diagonal as large as this leaves them definite.
    shift = f"i != j ? 0 : i < n ? {_GRAM_SHIFT} * largest : own + 1"
    r = expr(
        f"p + ({shift})",
        dtype=np.float64,
        p=products,
        i=each.reshape(-1, 1),
        j=each,
        n=np.int32(n),
        largest=products[:n, :n].max(),
        own=products[n:, n:].max(),
    )
    desc = raw.CholeskyDesc(dtype=dtype_of(r), triangle=raw.TRIANGLE_UPPER, n=r.shape[0], batch_count=1)
    desc.a = r.buffer.handle
    require(raw.tuff_cholesky(r.context.stream_handle, desc))
    return r[:n, :n].astype(np.float32), r[:n, n:].astype(np.float32)


def _shortened_if_tall(a: Array, sides: Array, rcond: Optional[float]) -> Tuple[Array, Array]:
    if a.shape[0] < _TALL or a.shape[1] + sides.shape[1] > _NARROW or is_complex(a.dtype):
        return a, sides
    if a.dtype == np.float32 and (rcond is None or (is_number(rcond) and rcond >= _GRAM_CUT)) and a.context.supports("f64"):
        matrix, right = _shortened_by_gram(a, sides)
        if bool(np.isfinite(matrix.numpy()).all()):
            return matrix, right
    return _shortened(a, sides)


def lstsq(a: Array, b: Array, rcond: Optional[float] = None) -> LstsqResult:
    """The x for which the sum of squares of a @ x - b is least, and of several such the one that is least itself, by the
    singular values of the matrix a, of which those up to rcond times the largest count as zero, by default max(m, n) * eps.
    b is a vector or a matrix of right sides. As numpy.linalg.lstsq; it waits for the rank."""
    if has_complex(a, b):
        for value, name in ((a, "a"), (b, "b")):
            require_array(value, name)
        same = b
    else:
        a, same = matrices(a, "a", square=False), floats(b, "b")
    if a.ndim != 2 or same.ndim not in (1, 2) or same.shape[0] != a.shape[0]:
        raise LinAlgError(f"a has shape {a.shape} and b {same.shape}: needs a matrix, and {a.shape[0]} rows")
    kind = common_type(a.dtype, same.dtype)
    a, same = (x if x.dtype == kind else x.astype(kind) for x in (a, same))
    same_kind(a, same)
    m, n = a.shape
    sides = same.reshape(m, 1) if same.ndim == 1 else same
    if min(m, n) == 0:
        x, rank, values = a.context.zeros((n, sides.shape[1]), kind), 0, a.context.zeros((0,), part_of(kind))
    else:
        matrix, right = _shortened_if_tall(a, sides, rcond)
        u, values, vt = svd(matrix, full_matrices=False)
        above = _cut(values, a.shape, rcond, "rcond")
        rank = int(above.numpy().sum())
        x = matmul(adjoint(vt), matmul(adjoint(u), right) * _inverse_values(values, above).reshape(values.shape[0], 1))
    if rank == n and m > n:
        left = matmul(a, x) - sides
        residuals = functions.square(functions.abs(left)).sum(axis=0)
    else:
        residuals = a.context.zeros((0,), part_of(kind))
    return LstsqResult(x.reshape(n) if same.ndim == 1 else x, residuals, rank, values)
