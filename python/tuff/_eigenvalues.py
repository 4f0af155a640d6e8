"""Eigenvalues of general square matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Optional, Tuple

import numpy as np

from . import raw
from ._elementwise import not_equal
from ._error import check as require
from ._matrices import count, has_complex, matrices, raise_if
from ._operands import dtype_of
from ._reductions import any as any_of
from ._types import complex_of

if TYPE_CHECKING:
    from ._array import Array


class EigResult(NamedTuple):
    """Eigenvalues in no order, and the eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


def _eig(x: Array, vectors: bool, check: bool) -> Tuple[Array, Optional[Array]]:
    if has_complex(x):
        raise TypeError(f"x is {x.dtype}, and the eigenvalues of general matrices are those of real ones; eigh() takes Hermitian ones")
    x = matrices(x, "x")
    n = x.shape[-1]
    kind = complex_of(x.dtype)
    values = x.context.empty(x.shape[:-1], kind)
    result = x.context.empty(x.shape, kind) if vectors else None
    info = x.context.empty((count(x),), np.int32) if check else None
    desc = raw.EigDesc(dtype=dtype_of(x), n=n, a=x.buffer.handle, stride_a=n * n, values=values.buffer.handle, batch_count=count(x))
    if result is not None:
        desc.vectors, desc.stride_vectors = result.buffer.handle, n * n
    desc.info = info.buffer.handle if info is not None else 0
    require(raw.tuff_eig(x.context.stream_handle, desc))
    raise_if(info, "not finite, or its eigenvalues did not converge")
    return values, result


def eig(x: Array, *, check: bool = True) -> EigResult:
    """The eigenvalues of real square matrices, in no order, and eigenvectors of length 1 as columns, so that
    x @ vectors = vectors * values. Both are complex; values that are not real are conjugate pairs. numpy.linalg.eig of an array
    gives real ones if all values are real, as NumPy does."""
    values, vectors = _eig(x, True, check)
    return EigResult(values, vectors)


def eigvals(x: Array, *, check: bool = True) -> Array:
    """The eigenvalues of real square matrices, in no order and complex, as eig's."""
    return _eig(x, False, check)[0]


def _all_real(values: Array) -> bool:
    return not bool(any_of(not_equal(values.imag, 0)))


def numpys_eig(a: Array) -> EigResult:
    """numpy.linalg.eig: real if all values are."""
    result = eig(a)
    return EigResult(*(part.real.copy() for part in result)) if _all_real(result.eigenvalues) else result


def numpys_eigvals(a: Array) -> Array:
    """numpy.linalg.eigvals: real if all values are."""
    values = eigvals(a)
    return values.real.copy() if _all_real(values) else values
