"""Tuff: arrays on any Vulkan device.

    import tuff
    with tuff.Context() as ctx:
        a = ctx.array([[1, 2], [3, 4]])
        print((a @ a.T).relu().numpy())

``tuff.raw`` has every function of the C ABI. Importing the package loads the library but needs no device.
"""

import builtins as _builtins

from . import _attention, _convolution, _dlpack, _einsum, _elementwise, _expression, _functions, _indexing, _namespace, _norms, _operations, _pool, _position, _quantisation, _random, _recurrent, _reductions, _resize, _searching, _shape, _sorting, _views, fft, gguf, linalg, raw, sparse
from ._array import Array
from ._attention import *  # noqa: F403
from ._buffer import Buffer
from ._context import (
    Context,
    Device,
    backend_refusals,
    backend_register,
    backends,
    device_count,
    device_refusals,
    devices,
    sensors,
    set_log,
    version,
)
from ._convolution import *  # noqa: F403
from ._default import default_context
from ._dlpack import *  # noqa: F403
from ._einsum import *  # noqa: F403
from ._elementwise import *  # noqa: F403
from ._error import TuffError, check, last_error
from ._expression import *  # noqa: F403
from ._functions import *  # noqa: F403
from ._indexing import *  # noqa: F403
from ._kernel import Kernel
from ._namespace import *  # noqa: F403
from ._norms import *  # noqa: F403
from ._operations import *  # noqa: F403
from ._position import *  # noqa: F403
from ._pool import *  # noqa: F403
from ._quantisation import *  # noqa: F403
from ._registered import Operation
from ._random import *  # noqa: F403
from ._recurrent import *  # noqa: F403
from ._reductions import *  # noqa: F403
from ._resize import *  # noqa: F403
from ._profile import Profile
from ._stream import Event, Graph, Stream
from ._searching import *  # noqa: F403
from ._shape import *  # noqa: F403
from ._sorting import *  # noqa: F403
from ._views import *  # noqa: F403
from ._views import Transposed

lib = raw.lib
__version__ = "0.9.0"

for _public in (Array, Buffer, Context, Device, Event, Graph, Kernel, Operation, Profile, Stream, Transposed, TuffError):
    _public.__module__ = "tuff"  # the name that tracebacks and pickles show
del _public

__all__ = [
    "Array",
    "Buffer",
    "Context",
    "Device",
    "Event",
    "Graph",
    "Kernel",
    "Operation",
    "Profile",
    "Stream",
    "Transposed",
    "TuffError",
    "check",
    "default_context",
    "backend_refusals",
    "backend_register",
    "backends",
    "device_count",
    "device_refusals",
    "devices",
    "sensors",
    "fft",
    "gguf",
    "grad",  # noqa: F405 (__getattr__ loads it)
    "last_error",
    "lib",
    "linalg",
    "raw",
    "set_log",
    "sparse",
    "version",
]
for _module in (_attention, _convolution, _dlpack, _einsum, _elementwise, _expression, _functions, _indexing, _namespace, _norms, _operations, _pool, _position, _quantisation, _random, _recurrent, _reductions, _resize, _searching, _shape, _sorting, _views):
    # Except those that would shadow Python's built-ins.
    __all__ += [name for name in _module.__all__ if not hasattr(_builtins, name)]
del _module

# These are made of the others.
from . import _bits, _blocks, _calculus, _composed, _edits, _histograms, _index_arrays, _nans, _polynomials, _roots, _sets, _sharing, _standard, _statistics, _windows  # noqa: E402
from ._bits import *  # noqa: E402, F403
from ._blocks import *  # noqa: E402, F403
from ._calculus import *  # noqa: E402, F403
from ._composed import *  # noqa: E402, F403
from ._edits import *  # noqa: E402, F403
from ._histograms import *  # noqa: E402, F403
from ._index_arrays import *  # noqa: E402, F403
from ._nans import *  # noqa: E402, F403
from ._polynomials import *  # noqa: E402, F403
from ._roots import *  # noqa: E402, F403
from ._sets import *  # noqa: E402, F403
from ._sharing import *  # noqa: E402, F403
from ._standard import *  # noqa: E402, F403
from ._statistics import *  # noqa: E402, F403
from ._windows import *  # noqa: E402, F403

for _module in (_bits, _blocks, _calculus, _composed, _edits, _histograms, _index_arrays, _nans, _polynomials, _roots, _sets, _sharing, _standard, _statistics, _windows):
    __all__ += [name for name in _module.__all__ if not hasattr(_builtins, name)]
del _module


def __getattr__(name: str) -> object:
    """tuff.grad is loaded when it is first used."""
    if name == "grad":
        import importlib

        return importlib.import_module(".grad", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list:
    return sorted({*globals(), "grad"})
