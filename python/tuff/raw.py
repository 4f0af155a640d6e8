"""The C ABI unchanged: every function, structure and constant of tuff.h.

Functions have the arguments and results of C: they return a status and raise no exception; ``tuff.check`` converts a
status to an exception. Handles are plain integers. ``tuff.h`` is the documentation. The tables in ``_abi.py`` are
generated from it.
"""

from __future__ import annotations

from . import _library
from ._abi import *  # noqa: F403
from ._abi import FUNCTIONS

#: The loaded library.
lib = _library.load()

for _name, (_result, _arguments) in FUNCTIONS.items():
    try:
        _function = getattr(lib, _name)
    except AttributeError as _error:
        raise ImportError(f"{lib._name} lacks {_name}: it is older than this package") from _error
    _function.restype = _result
    _function.argtypes = _arguments
    globals()[_name] = _function
