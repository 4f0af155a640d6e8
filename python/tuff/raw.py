"""The C ABI unchanged: every function, structure and constant of tuff.h.

Functions have the arguments and results of C: they return a status; ``tuff.check`` converts one to an exception. Only
an argument that C's type cannot hold is an exception, a ``ctypes.ArgumentError``. The fields of structures are not
checked: ctypes reduces integers there. Handles are plain integers. ``tuff.h`` is the documentation. The tables in ``_abi.py`` are
generated from it.
"""

from __future__ import annotations

import ctypes as _ctypes

from . import _library
from ._abi import *  # noqa: F403
from ._abi import FUNCTIONS
from ._checked import checked_integer as _checked_integer

#: ctypes reduces an integer argument modulo 2**64 (or 2**32); these refuse it instead.
_INTEGERS = {kind: _checked_integer(kind) for kind in (_ctypes.c_int32, _ctypes.c_uint32, _ctypes.c_int64, _ctypes.c_uint64)}

#: The loaded library.
lib = _library.load()

for _name, (_result, _arguments) in FUNCTIONS.items():
    try:
        _function = getattr(lib, _name)
    except AttributeError as _error:
        raise ImportError(f"{lib._name} lacks {_name}: it is older than this package") from _error
    _function.restype = _result
    _function.argtypes = [_INTEGERS.get(_kind, _kind) for _kind in _arguments]
    globals()[_name] = _function
