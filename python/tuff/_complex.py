"""Complex arrays: their types, their parts, and what is composed of operations on those."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Tuple

import numpy as np

from . import raw
from ._expression import expr
from ._layout import Layout, layout_of

if TYPE_CHECKING:
    from ._array import Array

#: The types of the parts of complex types.
_PARTS = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
_WHOLES = {part: whole for whole, part in _PARTS.items()}


def is_complex(dtype: np.dtype) -> bool:
    return dtype in _PARTS


def part_of(dtype: np.dtype) -> np.dtype:
    """The type of the parts of a complex type; the type itself of a real one."""
    return _PARTS.get(dtype, dtype)


def complex_of(dtype: np.dtype) -> np.dtype:
    """The complex type of parts of a type: complex64 but for float64."""
    return _WHOLES.get(part_of(dtype), np.dtype(np.complex64))


def has_complex(dtype: np.dtype) -> bool:
    """Whether there is a complex type with parts of exactly this type."""
    return dtype in _WHOLES


def is_complex_number(value: object) -> bool:
    return isinstance(value, (complex, np.complexfloating))


def pairs_of(x: Array) -> Array:
    """The same memory as numbers whose last axis is (real part, imaginary part); of a view with strides, a copy."""
    from ._array import Array

    return Array(x.buffer, (*x.shape, 2), part_of(x.dtype))


def of_pairs(x: Array) -> Array:
    """The same memory as complex numbers."""
    from ._array import Array

    return Array(x.buffer, x.shape[:-1], complex_of(x.dtype))


def part(x: Array, index: int) -> Array:
    """The real parts (0) or the imaginary ones (1): a view, through which they can be written."""
    from ._views import viewed

    base, first, strides = layout_of(x)
    return viewed(Layout(base, 2 * first + index, tuple(2 * stride for stride in strides)), x.shape, part_of(x.dtype))


def joined(re: Array, im: Array) -> Array:
    return expr("complex(re, im)", dtype=complex_of(re.dtype), re=re, im=im)


def by_parts(function: Callable[[Array], Array], x: Array) -> Array:
    """A linear function of each part."""
    return joined(function(part(x, 0)), function(part(x, 1)))


def _along(x: Array, axis: int, begin: int, end: int) -> Array:
    return x[(slice(None),) * axis + (slice(begin, end),)]


def product(x: Array, axes: Tuple[int, ...]) -> Array:
    """The product over axes, which keep the size 1: a tree of products of halves."""
    from ._shape import concat

    for axis in axes:
        if x.shape[axis] == 0:
            x = x.context.ones((*x.shape[:axis], 1, *x.shape[axis + 1 :]), x.dtype)
        while x.shape[axis] > 1:
            n = x.shape[axis]
            half = n // 2
            y = _along(x, axis, 0, half) * _along(x, axis, half, 2 * half)
            x = concat([y, _along(x, axis, n - 1, n)], axis) if n % 2 else y
    return x


def cumulative_product(x: Array, axis: int) -> Array:
    """Running products along an axis, in steps that double the distance (Hillis and Steele)."""
    from ._shape import concat

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
    from ._storage import TransposedStorage

    if isinstance(x, TransposedStorage):
        return tuple(type(x)(plane) for plane in _planes(x.base))
    return part(x, 0).copy(), part(x, 1).copy()
