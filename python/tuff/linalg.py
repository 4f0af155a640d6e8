"""Linear algebra on arrays, with the names of the array API's linalg and of SciPy: stacks of matrices in float32 or, where
the device computes it, float64.

Functions that can fail because of a matrix's values (a singular one) raise numpy.linalg.LinAlgError, for which they wait
for the device. With check=False they do not wait, and such matrices give NaN and infinities.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, List, NamedTuple, Tuple, Union

import numpy as np

from . import _functions as functions
from . import _reductions as reductions
from . import _protocol as protocol
from . import raw
from ._checked import choice, is_number, is_whole, sequence, whole
from ._chains import multi_dot
from ._eigenvalues import EigResult, eig, eigvals, numpys_eig, numpys_eigvals
from ._einsum import cross, diagonal, kron, matrix_transpose, outer, tensordot, trace, vecdot
from ._error import check as require
from ._expression import expr
from ._matrices import LinAlgError
from ._matrices import count as _count
from ._matrices import embedded, has_complex, identity, of_halves, places
from ._matrices import floats as _floats
from ._matrices import matrices as _matrices
from ._matrices import owned as _owned
from ._matrices import raise_if as _raise_if
from ._matrices import require_matrices
from ._operands import dtype_of, named_axes, require_array, same_kind, whole_axis
from ._layout import Strided
from ._operations import matmul
from ._planes import joined
from ._reflections import triangular
from ._spectra import EighResult, LstsqResult, QRResult, SVDResult, eigh, eigvalsh, lstsq, matrix_rank, pinv, qr, svd, svdvals
from ._shape import concat
from ._types import common_type
from ._views import broadcast_to
from ._tracing import differentiable

if TYPE_CHECKING:
    from ._array import Array, Axis

__all__ = [
    "EigResult",
    "EighResult",
    "LinAlgError",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "kron",
    "lstsq",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its magnitude."""

    sign: Array
    logabsdet: Array


@differentiable
def cholesky(x: Array, *, upper: bool = False, check: bool = True) -> Array:
    """The Cholesky factors of symmetric positive definite matrices: L with x = L @ L.mT, or U with x = U.mT @ U. Only that
    triangle of x is read. Those of Hermitian matrices have conjugates: L with x = L @ L.mT.conj()."""
    if has_complex(x):
        return _cholesky_complex(x, upper, check)
    return _cholesky(x, upper, check)


def _cholesky_complex(x: Array, upper: bool, check: bool) -> Array:
    """By the factors of the real matrices of twice the size in which each number is [[re, -im], [im, re]]. Those of the complex
    factors are triangular, with a positive diagonal, and have the given products: there is only one such factor."""
    require_matrices(x, "x")
    n = x.shape[-1]
    each = places(x, n)
    re, im = x.real, expr("i == j ? 0 : y", dtype=x.real.dtype, y=x.imag, i=each.reshape(n, 1), j=each)  # a diagonal is real
    first_row, second_row = protocol.stack([re, functions.neg(im)], -1), protocol.stack([im, re], -1)
    numbers = protocol.stack([first_row, second_row], -3)
    factors = _cholesky(numbers.reshape(*x.shape[:-2], 2 * n, 2 * n), upper, check, 2)
    return joined(factors[..., ::2, ::2], factors[..., 1::2, ::2])


def _cholesky(x: Array, upper: bool, check: bool, rows: int = 1) -> Array:
    """rows: of this matrix, for each of the one that an error speaks of."""
    given, x = x, _matrices(x, "x")
    result = _owned(x, given)
    info = x.context.empty((_count(x),), np.int32) if check else None
    n = x.shape[-1]
    desc = raw.CholeskyDesc(dtype=dtype_of(x), triangle=raw.TRIANGLE_UPPER if upper else raw.TRIANGLE_LOWER, n=n)
    desc.a, desc.stride_a, desc.batch_count = result.buffer.handle, n * n, _count(x)
    desc.info = info.buffer.handle if info is not None else 0
    require(raw.tuff_cholesky(x.context.stream_handle, desc))
    info = (info + (rows - 1)) // rows if info is not None and rows != 1 else info
    _raise_if(info, "not positive definite: its leading {0} x {0} part is not")
    return result


def _factor(x: Array, given: Array, check: bool) -> Tuple[Array, Array]:
    result = _owned(x, given)
    m, n = x.shape[-2:]
    pivots = x.context.empty((*x.shape[:-2], min(m, n)), np.int32)
    info = x.context.empty((_count(x),), np.int32) if check else None
    desc = raw.LuDesc(dtype=dtype_of(x), m=m, n=n, a=result.buffer.handle, stride_a=m * n, batch_count=_count(x))
    desc.pivots, desc.info = pivots.buffer.handle, info.buffer.handle if info is not None else 0
    require(raw.tuff_lu(x.context.stream_handle, desc))
    _raise_if(info, "singular: element {0} of U's diagonal, counted from 1, is 0")
    return result, pivots


def lu_factor(a: Array) -> Tuple[Array, Array]:
    """The LU factorisation with partial pivoting, as scipy.linalg.lu_factor: L below the diagonal and U on it and above, in
    one array, and the row that each row was exchanged with, one after another, as int32. A singular matrix has a 0 on U's
    diagonal; nothing is raised."""
    return _factor(_matrices(a, "a", square=False), a, False)


def _sides(a: Array, b: Array) -> Tuple[Array, Array, List[int]]:
    """a, a new array with the right sides as a stack of matrices, and the shape of the result."""
    same = _floats(b, "b")
    if a.dtype != same.dtype:
        a, same = (x if x.dtype == np.float64 else x.astype(np.float64) for x in (a, same))
    same_kind(a, same)
    n = a.shape[-1]
    if same.ndim == 0 or same.shape[max(same.ndim - 2, 0)] != n:
        raise ValueError(f"a has shape {a.shape} and b {b.shape}: needs {n} rows")
    vector = same.ndim == 1
    matrices = same.reshape(n, 1) if vector else same
    stack = np.broadcast_shapes(a.shape[:-2], matrices.shape[:-2])
    if math.prod(a.shape[:-2]) != 1 and a.shape[:-2] != stack:
        a = broadcast_to(a, (*stack, n, n))
    wide = broadcast_to(matrices, (*stack, *matrices.shape[-2:]))
    fresh = wide.copy() if isinstance(wide, Strided) or wide.buffer.same_range(b.buffer) else wide
    shape = [*stack, n] if vector else [*stack, n, matrices.shape[-1]]
    return a, fresh, shape


def _solve_factored(a: Array, pivots: Array, sides: Array, transpose: int) -> None:
    n, nrhs = sides.shape[-2:]
    single = _count(a) == 1
    desc = raw.LuSolveDesc(dtype=dtype_of(a), transpose=transpose, n=n, nrhs=nrhs)
    desc.a, desc.pivots, desc.b = a.buffer.handle, pivots.buffer.handle, sides.buffer.handle
    desc.stride_a, desc.stride_b, desc.batch_count = 0 if single else n * n, n * nrhs, _count(sides)
    require(raw.tuff_lu_solve(a.context.stream_handle, desc))


_TRANSPOSES = {0: raw.NO_TRANS, 1: raw.TRANS, 2: raw.CONJ_TRANS, "N": raw.NO_TRANS, "T": raw.TRANS, "C": raw.CONJ_TRANS}


def lu_solve(lu_and_pivots: Tuple[Array, Array], b: Array, trans: Union[int, str] = 0) -> Array:
    """Solves a @ x = b, or a.mT @ x = b if trans is 1, from the factors of lu_factor. b is a vector, or a stack of
    matrices that broadcasts with a."""
    try:
        factors, pivots = lu_and_pivots
    except (TypeError, ValueError):
        raise TypeError("lu_and_pivots is not the pair that lu_factor returns") from None
    transpose = choice(trans, "trans", _TRANSPOSES)
    lu = _matrices(factors, "lu")
    require_array(pivots, "pivots")
    if pivots.dtype != np.int32 or pivots.shape != lu.shape[:-1] or pivots.context is not lu.context:
        raise ValueError(f"pivots are {pivots.shape} {pivots.dtype}, need {lu.shape[:-1]} int32 of lu's context")
    a, sides, shape = _sides(lu, b)
    if a.shape != lu.shape:
        pivots = broadcast_to(pivots, a.shape[:-1])
    _solve_factored(a, pivots, sides, transpose)
    return sides.reshape(shape)


@differentiable
def solve(a: Array, b: Array, *, check: bool = True) -> Array:
    """Solves a @ x = b. b is a vector if it has one axis, otherwise a stack of matrices; stacks broadcast."""
    if has_complex(a, b):
        return _solve_complex(a, b, check)
    given, a = a, _matrices(a, "a")
    a, sides, shape = _sides(a, b)
    factors, pivots = _factor(a, given, check)
    _solve_factored(factors, pivots, sides, raw.NO_TRANS)
    return sides.reshape(shape)


def _solve_complex(a: Array, b: Array, check: bool) -> Array:
    require_array(a, "a")
    require_array(b, "b")
    kind = common_type(a.dtype, b.dtype)
    a, b = (x if x.dtype == kind else x.astype(kind) for x in (a, b))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f"a has shape {a.shape}, needs square matrices")
    n = a.shape[-1]
    if b.ndim == 0 or b.shape[max(b.ndim - 2, 0)] != n:
        raise ValueError(f"a has shape {a.shape} and b {b.shape}: needs {n} rows")
    sides = b.reshape(n, 1) if b.ndim == 1 else b
    x = of_halves(solve(embedded(a), concat([sides.real, sides.imag], sides.ndim - 2), check=check), n)
    return x.reshape(x.shape[:-1]) if b.ndim == 1 else x


def solve_triangular(
    a: Array, b: Array, *, lower: bool = False, trans: Union[int, str] = 0, unit_diagonal: bool = False
) -> Array:
    """Solves a @ x = b, or a.mT @ x = b if trans is 1, with a triangle of a: the upper one, or the lower. The other one is
    not read, nor is the diagonal if it consists of ones. A zero on the diagonal gives infinities and NaN."""
    transpose = choice(trans, "trans", _TRANSPOSES)
    a, sides, shape = _sides(_matrices(a, "a"), b)
    m, n = sides.shape[-2:]
    desc = raw.TriangularSolveDesc(dtype=dtype_of(a), transpose=transpose, unit_diagonal=int(bool(unit_diagonal)), m=m, n=n)
    desc.side, desc.triangle = raw.SIDE_LEFT, raw.TRIANGLE_LOWER if lower else raw.TRIANGLE_UPPER
    desc.a, desc.b, desc.batch_count = a.buffer.handle, sides.buffer.handle, _count(sides)
    desc.stride_a, desc.stride_b = 0 if _count(a) == 1 else m * m, m * n
    require(raw.tuff_triangular_solve(a.context.stream_handle, desc))
    return sides.reshape(shape)


@differentiable
def inv(x: Array, *, check: bool = True) -> Array:
    """The inverses of square matrices."""
    if has_complex(x):
        require_matrices(x, "x")
        n = x.shape[-1]
        return of_halves(inv(embedded(x), check=check)[..., :n], n)
    given, x = x, _matrices(x, "x")
    factors, pivots = _factor(x, given, check)
    result = identity(x, x.shape[-1], x.shape[-1])
    _solve_factored(factors, pivots, result, raw.NO_TRANS)
    return result


def tensorinv(a: Array, ind: int = 2) -> Array:
    """The inverse of tensordot(a, x, x.ndim) = b for the x of shape a.shape[ind:]: tensordot(tensorinv(a), b, ind) is x."""
    require_array(a, "a")
    if whole(ind, "ind", -(2**31), 2**31) <= 0:
        raise ValueError("Invalid ind argument.")
    rows = math.prod(a.shape[ind:])
    square = a.reshape((math.prod(a.shape[:ind]), rows))
    return inv(square).reshape((*a.shape[ind:], *a.shape[:ind]))


def tensorsolve(a: Array, b: Array, axes: Axis = None) -> Array:
    """The x with tensordot(a, x, x.ndim) = b. axes: of a, which are moved to its end first."""
    require_array(a, "a")
    require_array(b, "b")
    if axes is not None:
        last = [whole_axis(one, a.ndim) for one in ((axes,) if is_whole(axes) else sequence(axes, "axes", "axes of a"))]
        a = a.transpose([*(one for one in range(a.ndim) if one not in last), *last])
    shape = a.shape[b.ndim :]
    if math.prod(a.shape[: b.ndim]) != math.prod(shape) or b.size != math.prod(shape):
        raise LinAlgError(
            "Input arrays must satisfy the requirement prod(a.shape[b.ndim:]) == prod(a.shape[:b.ndim])"
            f": a has shape {a.shape} and b {b.shape}"
        )
    return solve(a.reshape((b.size, b.size)), b.ravel()).reshape(shape)


def _determinants(x: Array, names: Tuple[str, ...]) -> List[Array]:
    given, x = x, _matrices(x, "x")
    factors, pivots = _factor(x, given, False)
    results = [x.context.empty(x.shape[:-2], x.dtype) for _ in names]
    n = x.shape[-1]
    desc = raw.LuDeterminantDesc(dtype=dtype_of(x), n=n, a=factors.buffer.handle, pivots=pivots.buffer.handle)
    desc.stride_a, desc.batch_count = n * n, _count(x)
    for name, result in zip(names, results):
        setattr(desc, name, result.buffer.handle)
    require(raw.tuff_lu_determinant(x.context.stream_handle, desc))
    return results


def _factors_of_determinant(x: Array) -> Array:
    """Numbers whose products are the determinants of complex matrices: R's diagonals, each times its reflection's determinant, -1."""
    require_matrices(x, "x")
    return functions.neg(diagonal(triangular(x)[1]).copy())


def _slogdet_complex(x: Array) -> SlogdetResult:
    numbers = _factors_of_determinant(x)
    axis = numbers.ndim - 1
    return SlogdetResult(functions.sign(numbers).prod(axis=axis), functions.log(functions.abs(numbers)).sum(axis=axis))


@differentiable
def det(x: Array) -> Array:
    """The determinants of square matrices."""
    if has_complex(x):
        numbers = _factors_of_determinant(x)
        return numbers.prod(axis=numbers.ndim - 1)
    return _determinants(x, ("determinant",))[0]


@differentiable
def slogdet(x: Array) -> SlogdetResult:
    """The signs of determinants, and the natural logarithms of their magnitudes, which neither overflow nor underflow; 0
    and -inf of a singular matrix."""
    if has_complex(x):
        return _slogdet_complex(x)
    return SlogdetResult(*_determinants(x, ("sign", "log_magnitude")))


def matrix_power(x: Array, n: int) -> Array:
    """Square matrices to an integer power; of the inverses if n is negative."""
    power = whole(n, "n", -(2**62), 2**62)
    x = _matrices(x, "x") if power < 0 and not has_complex(x) else x
    require_array(x, "x")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"x has shape {x.shape}, needs square matrices")
    if power == 0:
        return identity(x, x.shape[-1], x.shape[-1])
    square, result = inv(x) if power < 0 else x, None
    power = abs(power)
    while power:
        if power & 1:
            result = square if result is None else matmul(result, square)
        power >>= 1
        square = matmul(square, square) if power else square
    return result.copy() if result is x else result


def vector_norm(x: Array, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Array:  # noqa: A002
    """The norm of order `ord` over axes, by default all: the sum of |x|**ord to the power 1 / ord; inf and -inf: the largest
    and the smallest |x|; 0: how many elements are not 0."""
    x = _floats(functions.abs(x) if has_complex(x) else x, "x")
    if not is_number(ord):
        raise TypeError(f"ord is {ord!r}, not a number")
    axes = list(range(x.ndim)) if axis is None else named_axes(axis, x.ndim, "an integer, several, or None")
    rest = [one for one in range(x.ndim) if one not in axes]
    moved = x if [*rest, *axes] == list(range(x.ndim)) else x.transpose([*rest, *axes])
    flat = moved.reshape((*(x.shape[one] for one in rest), math.prod(x.shape[one] for one in axes)))
    last = len(rest)
    if ord == 0:
        result = reductions.count_nonzero(flat, last).astype(x.dtype)
    elif math.isinf(ord):
        size = functions.abs(flat)
        result = size.max(axis=last) if ord > 0 else size.min(axis=last)
    elif ord in (1, 2):
        result = reductions.reduce(raw.REDUCE_L1 if ord == 1 else raw.REDUCE_L2, flat, last)
    else:
        result = functions.power(functions.power(functions.abs(flat), float(ord)).sum(axis=last), 1 / float(ord))
    return result.reshape([1 if one in axes else size for one, size in enumerate(x.shape)]) if keepdims else result


def matrix_norm(x: Array, *, keepdims: bool = False, ord: Union[str, float] = "fro") -> Array:  # noqa: A002
    """The norms of matrices: "fro", the root of the sum of squares; 1 and -1: the largest and the smallest sum of a column's
    magnitudes; inf and -inf: of a row's; 2 and -2: the largest and the smallest singular value; "nuc": their sum."""
    if has_complex(x) and (isinstance(ord, str) and ord != "nuc" or ord in (1, -1, math.inf, -math.inf)):
        x = functions.abs(x)
    x = x if has_complex(x) else _floats(x, "x")
    if x.ndim < 2:
        raise ValueError(f"x has shape {x.shape}, needs at least two axes")
    if ord == "fro":
        result = vector_norm(x, axis=(x.ndim - 2, x.ndim - 1))
    elif ord in (1, -1, math.inf, -math.inf):
        sums = reductions.reduce(raw.REDUCE_L1, x, x.ndim - (1 if math.isinf(ord) else 2))
        result = sums.max(axis=sums.ndim - 1) if ord > 0 else sums.min(axis=sums.ndim - 1)
    elif ord in (2, -2, "nuc"):
        values = svdvals(x)
        last = values.ndim - 1
        result = values.sum(axis=last) if ord == "nuc" else values.max(axis=last) if ord == 2 else values.min(axis=last)
    else:
        raise ValueError(f'ord is {ord!r}, not "fro", "nuc", 1, -1, 2, -2, inf or -inf')
    return result.reshape((*x.shape[:-2], 1, 1)) if keepdims else result


def cond(x: Array, p: Union[None, float, str] = None) -> Array:
    """The condition numbers of matrices: the quotient of the largest singular value and the smallest one (p is None or 2),
    the reverse (-2), or the product of the p-norms of x and its inverse."""
    x = x if has_complex(x) else _matrices(x, "x", square=False)
    if p is None or p in (2, -2):
        values = svdvals(x)
        if values.shape[-1] == 0:
            raise LinAlgError(f"x has shape {x.shape}, and no singular values")
        first, last = values[..., 0].copy(), values[..., -1].copy()
        return last / first if p == -2 else first / last
    return matrix_norm(x, ord=p) * matrix_norm(inv(x, check=False), ord=p)


def norm(x: Array, ord: Union[None, str, float] = None, axis: Axis = None, keepdims: bool = False) -> Array:  # noqa: A002
    """As numpy.linalg.norm: the norm of a vector along one axis, of matrices along two, of an array of one or two axes
    without axis; without ord the root of the sum of squares."""
    require_array(x, "x")
    axes = list(range(x.ndim)) if axis is None else [axis] if is_whole(axis) else sequence(axis, "axis", "an integer, two, or None")
    if ord is None and (axis is None or len(axes) == 2):
        return vector_norm(x, axis=tuple(axes), keepdims=keepdims)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"ord is {ord!r}, which vectors do not have")
        return vector_norm(x, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2:
        raise ValueError(f"ord is {ord!r} for {len(axes)} axes, needs one or two")
    rows, columns = (whole_axis(one, x.ndim) for one in axes)
    if rows == columns:
        raise ValueError(f"axis {axis} names one axis twice")
    rest = [one for one in range(x.ndim) if one not in (rows, columns)]
    order = [*rest, rows, columns]
    result = matrix_norm(x if order == list(range(x.ndim)) else x.transpose(order), ord=ord)
    return result.reshape([1 if one in (rows, columns) else size for one, size in enumerate(x.shape)]) if keepdims else result


def _numpys_rank(A: Array, tol: object = None, hermitian: bool = False, *, rtol: object = None) -> Array:  # noqa: N803
    """numpy.linalg.matrix_rank. hermitian changes nothing: singular values are those of any matrix."""
    return matrix_rank(A, rtol=rtol, tol=tol)


def _numpys_pinv(a: Array, rcond: object = None, hermitian: bool = False, *, rtol: object = None) -> Array:
    """numpy.linalg.pinv, of which rcond is another name of rtol. hermitian changes nothing."""
    if rcond is not None and rtol is not None:
        raise ValueError("`rtol` and `rcond` can't be both set.")
    return pinv(a, rtol=rtol if rcond is None else rcond)


def _numpys_svd(a: Array, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Union[SVDResult, Array]:
    """numpy.linalg.svd. hermitian changes nothing."""
    return svd(a, full_matrices) if compute_uv else svdvals(a)


protocol.FUNCTIONS.update({f"linalg.{name}": globals()[name] for name in __all__ if not isinstance(globals()[name], type)})
protocol.FUNCTIONS.update({"linalg.eig": numpys_eig, "linalg.eigvals": numpys_eigvals})
protocol.FUNCTIONS.update({"linalg.matrix_rank": _numpys_rank, "linalg.pinv": _numpys_pinv, "linalg.svd": _numpys_svd})
