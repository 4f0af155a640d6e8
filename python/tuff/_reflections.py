"""Complex matrices by Householder's reflections H = 1 - beta v v^H, a column at a time: QR factors, and the reduction of Hermitian
matrices to real tridiagonal ones and of others to real bidiagonal ones, whose eigenvalues and singular values the library computes.

The real matrix of twice the size, in which each number is [[re, -im], [im, re]], does for systems and inverses. Its vectors of equal
singular values do not tell which two of them are one complex vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List, NamedTuple, Tuple

from . import _functions as functions
from ._elementwise import where
from ._matrices import identity, places
from ._operations import matmul
from ._planes import cumulative_product
from ._shape import concat
from ._views import diagonal

if TYPE_CHECKING:
    from ._array import Array


class Reflection(NamedTuple):
    """H as v and beta v, both columns."""

    vector: Array
    scaled: Array

    def times(self, x: Array) -> Array:
        """H x."""
        return x - matmul(self.scaled, matmul(adjoint(self.vector), x))

    def after(self, x: Array) -> Array:
        """x H."""
        return x - matmul(matmul(x, self.scaled), adjoint(self.vector))


def adjoint(x: Array) -> Array:
    """The conjugates of transposed matrices; of real ones a view."""
    return x.mT.conj()


def reflection(x: Array, first: int, place: Array) -> Reflection:
    """The H that maps vectors (…, m) to ones with zeros behind `first`, and leaves what is before it. place: places(x, m)."""
    x, last = where(place >= first, x, 0), x.ndim - 1
    largest = functions.maximum(functions.abs(x.real), functions.abs(x.imag)).max(axis=last, keepdims=True)
    x = x / where(largest == 0, 1.0, largest)
    norm = functions.sqrt((x.real * x.real + x.imag * x.imag).sum(axis=last, keepdims=True))
    head = x[..., first : first + 1]
    # v = x + phase |x| e: adding numbers of one phase cancels nothing. |v|^2 = 2 |x| (|x| + |head|).
    vector = where(place == first, x + _phases(head) * norm, x)
    beta = where(norm == 0, 0.0, 1.0 / where(norm == 0, 1.0, norm * (norm + functions.abs(head))))
    columns = vector.reshape((*vector.shape, 1))
    return Reflection(columns, columns * beta.reshape((*beta.shape, 1)))


def product_of(reflections: List[Reflection], x: Array) -> Array:
    """H1 H2 … x."""
    for one in reversed(reflections):
        x = one.times(x)
    return x


def triangular(x: Array) -> Tuple[List[Reflection], Array]:
    """The H1, H2, … whose product Q gives x = Q R, and R."""
    m, n = x.shape[-2:]
    reflections, rows, columns = [], places(x, m), places(x, n)
    for k in range(min(m, n)):
        reflections.append(reflection(x[..., k], k, rows))
        x = reflections[-1].times(x)
    return reflections, where(rows.reshape(m, 1) <= columns, x, 0)


def _phases(x: Array) -> Array:
    """x / |x|, or 1 for 0."""
    return where(x == 0, 1.0, functions.sign(x))


def _running(x: Array) -> Array:
    """Running products of phases, of magnitude 1."""
    x = cumulative_product(x, x.ndim - 1)
    return x / functions.abs(x)


def _diagonal(x: Array, offset: int = 0) -> Array:
    return diagonal(x, offset, x.ndim - 2, x.ndim - 1).copy()


def tridiagonal(x: Array) -> Tuple[Array, Array]:
    """Unitary Q and real symmetric tridiagonal T with x = Q T Q^H, for Hermitian x."""
    n = x.shape[-1]
    reflections, rows = [], places(x, n)
    for k in range(n - 1):
        reflections.append(reflection(x[..., k], k + 1, rows))
        x = reflections[-1].after(reflections[-1].times(x))
    q = product_of(reflections, identity(x, n, n))
    beside = _diagonal(x, -1)
    if n > 1:
        turns = _running(concat([identity(x, 1, 1)[..., 0], _phases(beside)], beside.ndim - 1))
        q = q * turns.reshape((*turns.shape[:-1], 1, n))
    return q, _banded(_diagonal(x).real, functions.abs(beside), True)


def _banded(center: Array, beside: Array, symmetric: bool) -> Array:
    """Real square matrices with this diagonal and the one above it, and if symmetric the one below it."""
    n = center.shape[-1]
    j = places(center, n)
    i = j.reshape(n, 1)
    rows = center.reshape((*center.shape, 1))
    result = where(i == j, rows, 0.0)
    if n <= 1:
        return result
    zero = center.context.zeros((*center.shape[:-1], 1), center.dtype)
    above = concat([beside, zero], beside.ndim - 1)
    result = where(j == i + 1, above.reshape((*above.shape, 1)), result)
    return where(i == j + 1, above.reshape((*above.shape[:-1], 1, n)), result) if symmetric else result


def bidiagonal(x: Array) -> Tuple[Array, Array, Array]:
    """U with orthonormal columns, real upper bidiagonal B and unitary V with x = U B V^H, for m x n matrices with m >= n > 0."""
    m, n = x.shape[-2:]
    left, right, rows, columns = [], [], places(x, m), places(x, n)
    for k in range(n):
        left.append(reflection(x[..., k], k, rows))
        x = left[-1].times(x)
        if k + 2 <= n:
            right.append(reflection(x[..., k, :].conj(), k + 1, columns))
            x = right[-1].after(x)
    u, v = product_of(left, identity(x, m, n)), product_of(right, identity(x, n, n))
    center, beside = _diagonal(x), _diagonal(x[..., :n, :], 1)
    # Phases p of the rows and q of the columns that leave |B|: conj(p[k]) B[k, k] q[k] and conj(p[k]) B[k, k + 1] q[k + 1] are real.
    steps = _phases(center)
    if n > 1:
        steps = concat([steps[..., :1], steps[..., 1:] * _phases(beside).conj()], steps.ndim - 1)
    p = _running(steps)
    q = p * _phases(center).conj()
    u, v = u * p.reshape((*p.shape[:-1], 1, n)), v * q.reshape((*q.shape[:-1], 1, n))
    return u, _banded(functions.abs(center), functions.abs(beside), False), v
