"""Arrays of indices: of grids, diagonals and triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional, Sequence, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from . import _namespace as namespace
from . import _protocol as protocol
from . import _searching as searching
from . import _views as views
from ._checked import whole
from ._operands import given, require_array
from ._storage import Storage, as_dtype, as_shape

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context

__all__ = [
    "diag_indices",
    "diag_indices_from",
    "indices",
    "ix_",
    "mask_indices",
    "tril_indices",
    "tril_indices_from",
    "triu_indices",
    "triu_indices_from",
]


def _counted(n: int, dtype: object, device: Optional[Context]) -> Array:
    return namespace.arange(whole(n, "n", 0, 2**63 - 1), dtype=dtype, device=device)


def indices(
    dimensions: Sequence[int], dtype: object = np.int64, sparse: bool = False, *, device: Optional[Context] = None
) -> Union[Array, Tuple[Array, ...]]:
    """The indices of each element of a shape, along each axis: an array (axes, *dimensions), or if sparse one array for each
    axis, which broadcast to the shape."""
    shape, kind = as_shape(dimensions), as_dtype(dtype)
    rank = len(shape)
    along = [_counted(n, kind, device).reshape((1,) * axis + (n,) + (1,) * (rank - axis - 1)) for axis, n in enumerate(shape)]
    if sparse:
        return tuple(along)
    result = namespace.empty((rank, *shape), kind, device=device)
    for axis, one in enumerate(along):
        result[axis].assign(views.broadcast_to(one, shape))
    return result


def ix_(*args: Union[Array, Sequence[int]]) -> Tuple[Array, ...]:
    """Index arrays that select a grid: a[ix_(rows, columns)]. Each is a vector of indices, or a mask, whose true elements
    are counted on the device and waited for."""
    arrays = [one for one in args if isinstance(one, Storage)]
    found = []
    for place, one in enumerate(args):
        name = f"argument {place}"
        if isinstance(one, Storage) or arrays:
            vector = given(one, arrays[0], name)
        else:
            vector = namespace.asarray(one)
        if vector.ndim != 1:
            raise ValueError("Cross index must be 1 dimensional")
        if vector.dtype == np.bool_:
            vector = searching.flatnonzero(vector)
        elif vector.size == 0:
            vector = vector.astype(np.int64)
        found.append(vector.reshape((1,) * place + (vector.size,) + (1,) * (len(args) - place - 1)))
    return tuple(found)


def diag_indices(n: int, ndim: int = 2, *, device: Optional[Context] = None) -> Tuple[Array, ...]:
    """The indices of the main diagonal of an array of ndim axes of n elements, one array for each axis, as int64."""
    return (_counted(n, np.int64, device),) * whole(ndim, "ndim")


def diag_indices_from(arr: Array) -> Tuple[Array, ...]:
    """The indices of an array's main diagonal: diag_indices() on its device."""
    require_array(arr, "arr")
    if arr.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(arr.shape)) != 1:
        raise ValueError(f"All dimensions of input must be of equal length: the shape is {arr.shape}")
    return diag_indices(arr.shape[0], arr.ndim, device=arr.context)


def _triangle(
    function: Callable[..., Tuple[np.ndarray, np.ndarray]], n: int, k: int, m: Optional[int], device: Optional[Context]
) -> Tuple[Array, Array]:
    rows = whole(n, "n", 0, 2**63 - 1)
    columns = rows if m is None else whole(m, "m", 0, 2**63 - 1)
    rest = function(rows, whole(k, "k", -(2**63), 2**63 - 1), columns)
    return tuple(namespace.array(one, np.int64, device=device) for one in rest)


def tril_indices(n: int, k: int = 0, m: Optional[int] = None, *, device: Optional[Context] = None) -> Tuple[Array, Array]:
    """The rows and columns of the elements of an n x m matrix up to its k-th diagonal, as int64."""
    return _triangle(np.tril_indices, n, k, m, device)


def triu_indices(n: int, k: int = 0, m: Optional[int] = None, *, device: Optional[Context] = None) -> Tuple[Array, Array]:
    """The rows and columns of the elements of an n x m matrix from its k-th diagonal on, as int64."""
    return _triangle(np.triu_indices, n, k, m, device)


def _of_matrix(arr: Array, function: Callable[..., Tuple[Array, Array]], k: int) -> Tuple[Array, Array]:
    require_array(arr, "arr")
    if arr.ndim != 2:
        raise ValueError("input array must be 2-d")
    return function(arr.shape[0], k, arr.shape[1], device=arr.context)


def tril_indices_from(arr: Array, k: int = 0) -> Tuple[Array, Array]:
    """tril_indices() of a matrix's shape, on its device."""
    return _of_matrix(arr, tril_indices, k)


def triu_indices_from(arr: Array, k: int = 0) -> Tuple[Array, Array]:
    """triu_indices() of a matrix's shape, on its device."""
    return _of_matrix(arr, triu_indices, k)


def mask_indices(
    n: int, mask_func: Callable[..., Array], k: object = 0, *, device: Optional[Context] = None
) -> Tuple[Array, ...]:
    """The rows and columns of the elements that mask_func(matrix of ones, k), such as tuff.triu, leaves other than zero."""
    ones = namespace.ones((whole(n, "n"),) * 2, np.int64, device=device)
    return searching.nonzero(elementwise.not_equal(mask_func(ones, k), 0))


protocol.FUNCTIONS.update(
    diag_indices_from=diag_indices_from,
    ix_=ix_,
    tril_indices_from=tril_indices_from,
    triu_indices_from=triu_indices_from,
)
