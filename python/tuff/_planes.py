"""What operations of complex arrays are composed of: operations on the real and the imaginary parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Tuple

import numpy as np

from . import raw
from ._types import complex_of, part_of
from ._expression import expr
from ._shape import concat
from ._storage import TransposedStorage

if TYPE_CHECKING:
    from ._array import Array


def joined(re: Array, im: Array) -> Array:
    return expr("complex(re, im)", dtype=complex_of(re.dtype), re=re, im=im)


def by_parts(function: Callable[[Array], Array], x: Array) -> Array:
    """A linear function of each part."""
    return joined(function(x.real), function(x.imag))


def _along(x: Array, axis: int, begin: int, end: int) -> Array:
    return x[(slice(None),) * axis + (slice(begin, end),)]


def product(x: Array, axes: Tuple[int, ...]) -> Array:
    """The product over axes, which keep the size 1, in a new array: a tree of products of halves."""
    given = x
    for axis in axes:
        if x.shape[axis] == 0:
            x = x.context.ones((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
        while x.shape[axis] > 1:
            n = x.shape[axis]
            half = n // 2
            y = _along(x, axis, 0, half) * _along(x, axis, half, 2 * half)
            x = concat([y, _along(x, axis, n - 1, n)], axis) if n % 2 else y
    return x.copy() if x is given else x


def cumulative_product(x: Array, axis: int) -> Array:
    """Running products along an axis, in steps that double the distance (Hillis and Steele)."""
    result, distance, n = x.copy(), 1, x.shape[axis]
    while distance < n:
        later = _along(result, axis, 0, n - distance) * _along(result, axis, distance, n)
        result = concat([_along(result, axis, 0, distance).copy(), later], axis)
        distance *= 2
    return result


#: Reductions of the parts; of magnitudes; and of whether a number is not zero.
_OF_PARTS = (raw.REDUCE_SUM, raw.REDUCE_MEAN)
_OF_SIZES = (raw.REDUCE_SUM_SQUARES, raw.REDUCE_L1, raw.REDUCE_L2)
_OF_TRUTHS = (raw.REDUCE_ANY, raw.REDUCE_ALL, raw.REDUCE_COUNT_NONZERO)


def reduced(op: int, x: Array, axes: Tuple[int, ...], reduce: Callable[[Array], Array]) -> Array:
    """A reduction over axes; reduce does it for real arrays."""
    if op in _OF_PARTS:
        return by_parts(reduce, x)
    if op in _OF_SIZES:
        return reduce(expr("abs(x)", dtype=part_of(x.dtype), x=x))
    if op in _OF_TRUTHS:
        return reduce(expr("x != 0", dtype=np.bool_, x=x))
    if op == raw.REDUCE_PROD:
        return product(x, axes)
    raise TypeError(f"{x.dtype} has no such reduction: complex numbers have no order, and no variance here")


def matmul(a: Array, b: Array, multiply: Callable[..., Array]) -> Array:
    """a @ b by four products of parts. Three would do, but lose digits of the smaller part (Higham, Stability of a method
    for multiplying complex matrices with three real matrix multiplications, 1992). multiply is matmul of real ones."""
    (a_re, a_im), (b_re, b_im) = _planes(a), _planes(b)
    re, im = multiply(a_re, b_re), multiply(a_re, b_im)
    multiply(a_im, b_im, out=re, alpha=-1.0, beta=1.0)
    multiply(a_im, b_re, out=im, beta=1.0)
    return joined(re, im)


def _planes(x: Array) -> Tuple[Array, Array]:
    if isinstance(x, TransposedStorage):
        return tuple(type(x)(plane) for plane in _planes(x.base))
    return x.real.copy(), x.imag.copy()
