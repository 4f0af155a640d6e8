"""The C ABI as it is: every function, structure and constant of tuff.h.

Functions take and return what they do in C: they give a status and raise nothing; ``tuff.check`` turns a
status into an exception. Handles are plain integers. ``tuff.h`` is the documentation. The tables of all this are
generated from it, in ``_abi.py``.
"""

from __future__ import annotations

from . import _library
from ._abi import *  # noqa: F403
from ._abi import FUNCTIONS

#: The library itself.
lib = _library.load()

for _name, (_result, _arguments) in FUNCTIONS.items():
    try:
        _function = getattr(lib, _name)
    except AttributeError as _error:
        raise ImportError(f"{lib._name} lacks {_name}: it is older than this package") from _error
    _function.restype = _result
    _function.argtypes = _arguments
    globals()[_name] = _function
