"""What functions of linear algebra share: stacks of matrices as they are given, and errors that depend on their values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Optional

import numpy as np

from . import _functions as functions
from ._operands import require_array
from ._planes import joined
from ._shape import concat
from ._storage import Storage
from ._types import is_complex
from ._views import broadcast_to

if TYPE_CHECKING:
    from ._array import Array

LinAlgError = np.linalg.LinAlgError

_TYPES = (np.dtype(np.float32), np.dtype(np.float64))


def floats(x: Array, name: str) -> Array:
    """An array of float32 or float64; integers and bools become float32."""
    require_array(x, name)
    if x.dtype.kind in "biu":
        return x.astype(np.float32)
    if x.dtype not in _TYPES:
        raise TypeError(f"{name} is {x.dtype}, and linear algebra takes float32 and float64; .astype() converts")
    return x


def has_complex(*operands: object) -> bool:
    """Whether an operand is an array of complex numbers."""
    return any(isinstance(one, Storage) and is_complex(one.dtype) for one in operands)


def embedded(x: Array) -> Array:
    """Complex m x n matrices X + iY as real ones of 2m x 2n, [[X, -Y], [Y, X]]: those of products, inverses and pseudo-inverses
    are products, inverses and pseudo-inverses. Each singular value is there twice."""
    re, im = x.real, x.imag
    return concat([concat([re, functions.neg(im)], x.ndim - 1), concat([im, re], x.ndim - 1)], x.ndim - 2)


def of_halves(x: Array, m: int) -> Array:
    """Real matrices of 2m rows as complex ones: the upper half has the real parts."""
    return joined(x[..., :m, :], x[..., m:, :])


def matrices(x: Array, name: str, square: bool = True) -> Array:
    x = floats(x, name)
    require_matrices(x, name, square)
    return x


def require_matrices(x: Array, name: str, square: bool = True) -> None:
    if x.ndim < 2:
        raise LinAlgError(f"{name} has shape {x.shape}, needs at least two axes")
    if square and x.shape[-1] != x.shape[-2]:
        raise LinAlgError(f"{name} has shape {x.shape}, needs square matrices")


def places(x: Array, length: int) -> Array:
    """0, 1 … length - 1, beside x."""
    return x.context.array(np.arange(length, dtype=np.int32))


def identity(x: Array, rows: int, columns: int) -> Array:
    """A stack of the identity's first columns, of x's type, for the matrices of x."""
    one = x.context.array(np.eye(rows, columns, dtype=x.dtype), x.dtype)
    return broadcast_to(one, (*x.shape[:-2], rows, columns)).copy()


def count(x: Array) -> int:
    return math.prod(x.shape[:-2])


def owned(x: Array, given: Array) -> Array:
    """An array that a factorisation may overwrite."""
    return x.copy() if x is given else x


def raise_if(info: Optional[Array], what: str) -> None:
    if info is None:
        return
    failures = info.numpy().ravel()
    first = np.flatnonzero(failures)
    if first.size:
        where = "the matrix" if failures.size == 1 else f"matrix {first[0]}"
        raise LinAlgError(f"{where} is {what.format(failures[first[0]])}")
