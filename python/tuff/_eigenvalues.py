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


def _all_real(values: Array) -> bool:
    return not bool(any_of(not_equal(values.imag, 0)))


def eig(x: Array, *, check: bool = True) -> EigResult:
    """The eigenvalues of real square matrices, in no order, and eigenvectors of length 1 as columns: x @ vectors = vectors *
    values. They are complex, those that are not real as conjugate pairs; if all values of all matrices are real, both are
    real, for which it waits. With check=False it does not wait, and they are always complex."""
    values, vectors = _eig(x, True, check)
    if check and _all_real(values):
        return EigResult(values.real.copy(), vectors.real.copy())
    return EigResult(values, vectors)


def eigvals(x: Array, *, check: bool = True) -> Array:
    """The eigenvalues of real square matrices, in no order, as eig's."""
    values, _ = _eig(x, False, check)
    return values.real.copy() if check and _all_real(values) else values
