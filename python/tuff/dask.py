"""Dask arrays whose chunks are on devices (docs/array-api.md, examples/dask/).

Importing this module, in the client and in each worker, tells Dask how to count elements and to take percentiles of a
device's arrays, which means, variances and percentiles need. to_device() sees to the workers.
"""

from __future__ import annotations

from typing import Any, Optional

import dask.array
import numpy as np
from dask.array import backends
from dask.array.dispatch import empty_lookup, nannumel_lookup, numel_lookup, percentile_lookup

from ._array import Array
from ._default import default_context
from ._sorting import percentile
from ._storage import as_dtype

__all__ = ["to_device", "to_host"]

numel_lookup.register(Array, backends._numel_arraylike)
nannumel_lookup.register(Array, backends._nannumel)


@empty_lookup.register(Array)
def _empty(shape: Any, dtype: object = None, **_: object) -> Array:
    return default_context().zeros(shape, np.float32 if dtype is None else dtype)


@percentile_lookup.register(Array)
def _percentile(chunk: Array, q: Any, method: str = "linear") -> Any:
    """Percentiles of a chunk, computed on the device. They are few, and Dask merges those of all chunks in NumPy."""
    places = q.numpy() if isinstance(q, Array) else np.asarray(q)
    if len(chunk) == 0:
        return None, 0
    return percentile(chunk, places.tolist(), method=method).numpy(), len(chunk)


def _uploaded(chunk: Any, dtype: Optional[np.dtype]) -> Array:
    return default_context().array(np.ascontiguousarray(chunk), dtype)


def _downloaded(chunk: Any) -> np.ndarray:
    return chunk.numpy() if isinstance(chunk, Array) else np.asarray(chunk)


def to_device(x: Any, dtype: object = None) -> Any:
    """A Dask array of NumPy's arrays as one whose chunks are tuff.Arrays: each on the default device of the process that
    computes it. dtype is by default the array's."""
    kind = as_dtype(x.dtype if dtype is None else dtype)
    empty = default_context().zeros((0,) * x.ndim, kind)
    return dask.array.map_blocks(_uploaded, x, kind, dtype=kind, meta=empty)


def to_host(x: Any) -> Any:
    """The same the other way: chunks become NumPy's arrays."""
    return dask.array.map_blocks(_downloaded, x, dtype=x.dtype, meta=np.zeros((0,) * x.ndim, x.dtype))
