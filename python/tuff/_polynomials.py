"""Polynomials as vectors of their coefficients, that of the highest power first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _composed as composed
from . import _elementwise as elementwise
from . import _functions as functions
from . import _indexing as indexing
from . import _namespace as namespace
from . import _operations as operations
from . import _protocol as protocol
from . import _reductions as reductions
from . import _shape as shapes
from ._checked import is_complex_number, real, whole
from ._eigenvalues import eigvals
from ._expression import expr
from ._operands import given, require_array
from ._spectra import lstsq
from ._storage import Storage
from ._types import common_type, complex_of, is_complex, is_float, part_of

if TYPE_CHECKING:
    from ._array import Array

    Coefficients = Union[Array, float, Sequence[float]]

__all__ = ["PolyfitResult", "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval"]


def _vector(p: Coefficients, like: Array, name: str) -> Array:
    found = given(p, like, name)
    if found.ndim > 1:
        raise ValueError(f"{name} has shape {found.shape}, needs a vector of coefficients")
    return found.reshape(found.size)


def _pair(a: Coefficients, b: Coefficients, names: Tuple[str, str]) -> Tuple[Array, Array]:
    """Two polynomials of their common type; one of them is an array."""
    like = a if isinstance(a, Storage) else b
    require_array(like, names[0])
    a, b = (_vector(one, like, name) for one, name in zip((a, b), names))
    kind = common_type(a.dtype, b.dtype)
    return tuple(one if one.dtype == kind else one.astype(kind) for one in (a, b))


def _floats(p: Array) -> Array:
    return p if is_float(p.dtype) or is_complex(p.dtype) else p.astype(np.float32)


def _longer(p: Array, size: int) -> Array:
    return p if p.size >= size else indexing.pad(p, ((size - p.size, 0),))


def polyadd(a1: Coefficients, a2: Coefficients) -> Array:
    """The coefficients of the sum of two polynomials."""
    a, b = _pair(a1, a2, ("a1", "a2"))
    return functions.add(_longer(a, b.size), _longer(b, a.size))


def polysub(a1: Coefficients, a2: Coefficients) -> Array:
    """The coefficients of the difference of two polynomials."""
    a, b = _pair(a1, a2, ("a1", "a2"))
    return functions.subtract(_longer(a, b.size), _longer(b, a.size))


def _products(a: Array, b: Array) -> Array:
    """The convolution of two vectors of any type: sums along the diagonals of the products of all pairs. Rows that are one
    longer than the result have them as columns."""
    table = functions.multiply(a.reshape((a.size, 1)), b)
    wide = indexing.pad(table, ((0, 0), (0, a.size)))
    size = a.size + b.size
    return wide.reshape(a.size * size)[: a.size * (size - 1)].reshape((a.size, size - 1)).sum(0)


def polymul(a1: Coefficients, a2: Coefficients) -> Array:
    """The coefficients of the product of two polynomials; those of integers modulo 2**bits. Leading zeros remain."""
    a, b = _pair(a1, a2, ("a1", "a2"))
    if a.size == 0 or b.size == 0:
        raise ValueError("a polynomial has no coefficients")
    if a.dtype in (np.float32, np.float16):
        return composed.convolve(a, b)
    if a.dtype == np.bool_:
        return elementwise.not_equal(_products(a.astype(np.uint8), b.astype(np.uint8)), 0)
    return elementwise.wrapped(_products(a, b), a.dtype)


def polydiv(u: Coefficients, v: Coefficients) -> Tuple[Array, Array]:
    """The coefficients of the quotient and of the remainder of two polynomials, of the remainder without leading ones up to
    1e-8, for whose number it waits."""
    a, b = (_floats(one) for one in _pair(u, v, ("u", "v")))
    if b.size == 0 or a.size == 0:
        raise ValueError("a polynomial has no coefficients")
    degree, kind = b.size - 1, a.dtype
    rest = a.copy()
    steps = a.size - degree
    if steps <= 0:
        return a.context.zeros((1,), kind), _without_leading(rest)
    quotient = a.context.empty((steps,), kind)
    scale = 1.0 / b[:1]
    for k in range(steps):
        expr("s * r", out=quotient[k : k + 1], s=scale, r=rest[k : k + 1])
        part = rest[k : k + degree + 1]
        expr("r - q * v", out=part, r=part, q=quotient[k : k + 1], v=b)
    return quotient, _without_leading(rest)


def _without_leading(p: Array) -> Array:
    """From the first coefficient on that is more than 1e-8, or the last one."""
    large = expr("abs(p) > 1e-8", dtype=np.bool_, p=p)
    there, first = protocol.stack([reductions.any(large).astype(np.int64), large.argmax()]).numpy().tolist()
    return p[first if there else p.size - 1 :].copy()


def polyder(p: Array, m: int = 1) -> Array:
    """The coefficients of the m-th derivative; those of integers are int64."""
    require_array(p, "p")
    times = whole(m, "m", -(2**31), 2**31)
    if times < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    result = _vector(p, p, "p")
    if times and result.dtype.kind in "biu" and result.dtype != np.uint64:
        result = result.astype(np.int64)
    for _ in range(min(times, result.size)):
        n = result.size - 1
        powers = p.context.array(np.arange(n, 0, -1), result.dtype if result.dtype.kind in "iu" else part_of(result.dtype))
        result = result[:-1].copy() if n == 0 else expr("p * n", dtype=result.dtype, p=result[:-1], n=powers)
    return result.copy() if result.buffer.same_range(p.buffer) else result


def polyint(p: Array, m: int = 1, k: Union[None, float, Sequence[float], Array] = None) -> Array:
    """The coefficients of the m-th antiderivative, with constants of integration k, one for each order, or one if m is 1; by
    default 0. Integers give float32."""
    require_array(p, "p")
    times = whole(m, "m", -(2**31), 2**31)
    if times < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    result = _vector(p, p, "p")
    if times == 0:
        return result.copy()
    result = _floats(result)
    constants = given(0.0 if k is None else k, result, "k").ravel()
    if constants.size == 1 and times > 1:
        constants = namespace.repeat(constants, times)
    if constants.size < times:
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or >m.")
    kind = common_type(result.dtype, constants.dtype)
    constants, result = (one if one.dtype == kind else one.astype(kind) for one in (constants, result))
    for order in range(times):
        powers = p.context.array(np.arange(result.size, 0, -1), part_of(kind))
        quotients = result / powers if result.size else result
        result = shapes.concat([quotients, constants[order : order + 1]], 0)
    return result


def polyval(p: Coefficients, x: Union[Array, float]) -> Array:
    """The polynomial with these coefficients at x, by Horner's method."""
    like = x if isinstance(x, Storage) else p
    require_array(like, "x")
    x = given(x, like, "x")
    coefficients = [p[index] for index in range(p.size)] if isinstance(p, Storage) else list(p)
    kind = x.dtype
    for one in coefficients:
        if isinstance(one, Storage):
            kind = common_type(kind, one.dtype)
        elif is_complex_number(one):
            kind = complex_of(kind)
        elif not isinstance(p, Storage) and kind.kind in "biu":
            kind = np.dtype(np.float32)
    for place, one in enumerate(coefficients):
        if not isinstance(one, Storage):
            number = one if is_complex_number(one) else real(one, "a coefficient")
            coefficients[place] = elementwise.adopted(number, kind)
    if len(coefficients) < 2:
        result = x.context.zeros(x.shape, kind)
        for one in coefficients:
            result.assign(one.astype(kind) if isinstance(one, Storage) else one)
        return result
    return _horner(coefficients, x, kind)


#: Coefficients of one formula: it has ten buffers, of which three are x and the polynomial before and after.
_AT_ONCE = 7


def _horner(coefficients: Sequence[Union[Array, float, complex]], x: Array, kind: np.dtype) -> Array:
    first, *rest = coefficients
    result: Union[Array, float, complex] = first
    for begin in range(0, len(rest), _AT_ONCE):
        some = {f"c{place}": one for place, one in enumerate(rest[begin : begin + _AT_ONCE])}
        steps = [f"y{place + 1} = y{place} * x + c{place}" for place in range(len(some) - 1)]
        last = len(some) - 1
        result = expr("; ".join([*steps, f"y{last} * x + c{last}"]), dtype=kind, y0=result, x=x, **some)
    return result


def poly(seq_of_zeros: Array) -> Array:
    """The coefficients of the polynomial with these roots, of which the first is 1, or of the characteristic polynomial of a
    square matrix. Those of complex roots are real if the roots are conjugate pairs, for which it waits, as for a matrix."""
    require_array(seq_of_zeros, "seq_of_zeros")
    if seq_of_zeros.ndim == 2 and seq_of_zeros.shape[0] == seq_of_zeros.shape[1] and seq_of_zeros.size:
        seq_of_zeros = eigvals(seq_of_zeros)
    roots = _floats(_vector(seq_of_zeros, seq_of_zeros, "seq_of_zeros"))
    result = roots.context.full((roots.size + 1,), 0, roots.dtype)
    result[:1] = 1
    for index in range(roots.size):
        # Times x - root: each coefficient less the root times the one before.
        earlier = result[: index + 1].copy()
        part = result[1 : index + 2]
        expr("c - z * e", out=part, c=part, z=roots[index], e=earlier)
    if is_complex(roots.dtype) and roots.size:
        from ._sets import sort_complex

        if bool(reductions.all(elementwise.equal(sort_complex(roots), sort_complex(roots.conj())))):
            return result.real.copy()
    return result


class PolyfitResult(NamedTuple):
    """What polyfit() returns with full=True: the coefficients, and what lstsq() says of the problem."""

    coefficients: Array
    residuals: Array
    rank: int
    singular_values: Array
    rcond: float


def polyfit(
    x: Array,
    y: Array,
    deg: int,
    rcond: Optional[float] = None,
    full: bool = False,
    w: Optional[Array] = None,
    cov: Union[bool, str] = False,
) -> Union[Array, PolyfitResult, Tuple[Array, Array]]:
    """The coefficients of the polynomial of degree deg with the least squares of its distances from y at the places x, as
    numpy.polyfit, in float32 or float64; y may be a matrix, of which each column has a polynomial. w: weights of the distances.
    full: also residuals, rank, singular values and rcond; cov: also the covariances of the coefficients, scaled by chi2, or
    "unscaled". It waits for the rank."""
    order = whole(deg, "deg", -(2**31), 2**31) + 1
    if order < 1:
        raise ValueError("expected deg >= 0")
    require_array(x, "x")
    y = given(y, x, "y")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if x.size == 0:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if y.shape[0] != x.size:
        raise TypeError("expected x and y to have same length")
    kind = common_type(np.dtype(np.float32), common_type(x.dtype, y.dtype))
    x, y = (one if one.dtype == kind else one.astype(kind) for one in (x, y))
    if w is not None:
        weights = given(w, x, "w").astype(kind)
        if weights.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if weights.size != x.size:
            raise TypeError("expected w and y to have the same length")
    powers = composed.vander(x, order) if not is_complex(kind) else _vander(x, order)
    sides = y
    if w is not None:
        powers = powers * weights.reshape((-1, 1))
        sides = y * weights.reshape((-1, 1) if y.ndim == 2 else (-1,))
    cut = x.size * float(np.finfo(part_of(kind)).eps) if rcond is None else real(rcond, "rcond")
    lengths = functions.sqrt(functions.square(functions.abs(powers)).sum(0))
    scaled = powers / lengths
    solved = lstsq(scaled, sides, cut)
    coefficients = solved.x / (lengths if y.ndim == 1 else lengths.reshape((-1, 1)))
    if full:
        return PolyfitResult(coefficients, solved.residuals, solved.rank, solved.s, cut)
    return (coefficients, _covariances(scaled, lengths, solved.residuals, y, cov)) if cov else coefficients


def _vander(x: Array, order: int) -> Array:
    columns = [x.context.ones((x.size,), x.dtype)]
    for _ in range(order - 1):
        columns.append(columns[-1] * x)
    return protocol.stack(columns[::-1], 1)


def _covariances(scaled: Array, lengths: Array, residuals: Array, y: Array, cov: Union[bool, str]) -> Array:
    from .linalg import inv

    order, points = lengths.size, y.shape[0]
    base = inv(operations.matmul(scaled.mT.copy(), scaled)) / (lengths.reshape((-1, 1)) * lengths)
    if cov == "unscaled":
        return base
    if points <= order:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    factor = residuals / float(points - order)
    return base * factor if y.ndim == 1 else base.reshape((order, order, 1)) * factor


protocol.FUNCTIONS.update(
    poly=poly,
    polyadd=polyadd,
    polyder=polyder,
    polydiv=polydiv,
    polyfit=polyfit,
    polyint=polyint,
    polymul=polymul,
    polysub=polysub,
    polyval=polyval,
)
