"""Covariances and correlations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Tuple, Union

import numpy as np

from . import _composed as composed
from . import _functions as functions
from . import _namespace as namespace
from . import _operations as operations
from . import _protocol as protocol
from . import _shape as shapes
from ._checked import is_whole
from ._expression import expr
from ._operands import given, require_array, same_context
from ._storage import as_dtype
from ._types import common_type, is_complex, is_float

if TYPE_CHECKING:
    from ._array import Array

__all__ = ["corrcoef", "cov"]

_F32 = np.dtype(np.float32)


def _weights(values: object, name: str, samples: int, like: Array) -> Array:
    weights = given(values, like, name)
    if name == "fweights" and weights.dtype.kind not in "iu":
        raise TypeError("fweights must be integer")
    if weights.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if weights.shape != (samples,):
        raise RuntimeError(f"incompatible numbers of samples and {name}: {samples} and {weights.size}")
    return weights


def _variables(m: Array, y: Optional[Array], rowvar: bool, dtype: object) -> Array:
    """The variables as rows of a matrix of floats; observations are columns."""
    parts = []
    for value, name in ((m, "m"), (y, "y")):
        if value is None:
            continue
        require_array(value, name)
        if value.ndim > 2:
            raise ValueError(f"{name} has more than 2 dimensions")
        rows = composed.atleast_2d(value)
        if not rowvar and rows.shape[0] != 1:
            rows = rows.T.copy()
        parts.append(rows)
    same_context(*(one.context for one in parts))
    kind = _F32
    for one in parts:
        kind = common_type(kind, one.dtype)
    if dtype is not None:
        kind = as_dtype(dtype)
        if not is_float(kind) and not is_complex(kind):
            raise TypeError(f"dtype is {kind}, needs floats or complex numbers")
    parts = [one if one.dtype == kind else one.astype(kind) for one in parts]
    return parts[0] if len(parts) == 1 else shapes.concat(parts, 0)


def cov(
    m: Array,
    y: Optional[Array] = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: Optional[int] = None,
    fweights: Optional[Array] = None,
    aweights: Optional[Array] = None,
    *,
    dtype: object = None,
) -> Array:
    """The covariance matrix of variables, which are the rows of m, and of y, or their columns if rowvar is False, as
    numpy.cov; of one variable an array without axes. Sums are divided by the number of observations less ddof: 1, or 0 if
    bias. fweights: how often each observation counts; aweights: how much. Weights are not looked at."""
    if ddof is not None and not is_whole(ddof):
        raise ValueError("ddof must be integer")
    x = _variables(m, y, rowvar, dtype)
    ddof = (0 if bias else 1) if ddof is None else int(ddof)
    if x.shape[0] == 0:
        return x.reshape((0, 0))
    weights, normalised = _weighted(x, fweights, aweights, ddof)
    if weights is None:
        centred = x - namespace.mean(x, 1, True)
        scaled: Array = centred
    else:
        centred = x - (x * weights).sum(1, True) / weights.sum()
        scaled = centred * weights
    product = operations.matmul(scaled, _conjugate_transposed(centred))
    if isinstance(normalised, (int, float)):
        result = product / float(normalised) if normalised else expr("x / z", x=product, z=x.context.zeros((), product.dtype))
    else:
        result = product / normalised
    return result.reshape(tuple(size for size in result.shape if size != 1))


def _conjugate_transposed(x: Array) -> Array:
    return x.conj().T if is_complex(x.dtype) else x.T


def _weighted(x: Array, fweights: object, aweights: object, ddof: int) -> Tuple[Optional[Array], Union[float, Array]]:
    """The weights of the observations, and what the sums of products are divided by, which is not negative."""
    samples, kind = x.shape[1], x.real.dtype
    times = None if fweights is None else _weights(fweights, "fweights", samples, x).astype(kind)
    sizes = None if aweights is None else _weights(aweights, "aweights", samples, x).astype(kind)
    if times is None and sizes is None:
        return None, max(samples - ddof, 0)
    weights = sizes if times is None else times if sizes is None else times * sizes
    total = weights.sum()
    if ddof == 0:
        return weights, total
    if sizes is None:
        return weights, expr("max(t - d, 0)", dtype=kind, t=total, d=float(ddof))
    squares = (weights * sizes).sum()
    return weights, expr("max(t - d * s / t, 0)", dtype=kind, t=total, s=squares, d=float(ddof))


def corrcoef(
    x: Array, y: Optional[Array] = None, rowvar: bool = True, bias: object = None, ddof: object = None, *, dtype: object = None
) -> Array:
    """The correlation coefficients of variables, from -1 to 1, as numpy.corrcoef: covariances divided by both standard
    deviations. The arguments are those of cov(); bias and ddof have no effect."""
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviations = functions.sqrt(c.diagonal().real.copy())
    columns, rows = deviations.reshape((-1, 1)), deviations
    if is_complex(c.dtype):
        formula = "complex(min(max(real(c) / a / b, -1), 1), min(max(imag(c) / a / b, -1), 1))"
        return expr(formula, dtype=c.dtype, c=c, a=columns, b=rows)
    return expr("min(max(c / a / b, -1), 1)", c=c, a=columns, b=rows)


protocol.FUNCTIONS.update(corrcoef=corrcoef, cov=cov)
