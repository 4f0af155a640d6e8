"""The default context, and pickled arrays, which are restored in it."""

from __future__ import annotations

import copyreg
import threading
from typing import Optional, Tuple

import numpy as np

from ._array import Array
from ._context import Context
from ._views import Transposed

_lock = threading.Lock()
_default: Optional[Context] = None


def default_context() -> Context:
    """Returns the context of what names none: on the best device, created at the first call or after it was closed."""
    global _default
    with _lock:
        if _default is None or _default.closed:
            _default = Context()
        return _default


def _restore(values: np.ndarray) -> Array:
    return default_context().array(values, values.dtype)


def _reduce(array: Array) -> Tuple[object, ...]:
    return _restore, (array.numpy(),)


def _reduce_transposed(matrix: Transposed) -> Tuple[object, ...]:
    return Transposed, (matrix.base,)


copyreg.pickle(Array, _reduce)
copyreg.pickle(Transposed, _reduce_transposed)
