"""Tuff: arrays on any Vulkan device.

    import tuff
    with tuff.Context() as ctx:
        a = ctx.array([[1, 2], [3, 4]])
        print((a @ a.T).relu().numpy())

``tuff.raw`` has every function of the C ABI. Importing the package loads the library but needs no device.
"""

import builtins as _builtins

from . import raw
from ._array import Array, Transposed
from ._attention import attention
from ._buffer import Buffer
from ._context import Context, Device, device_count, device_refusals, devices, set_log, version
from ._convolution import conv1d, conv2d, conv3d, conv_transpose2d
from ._error import TuffError, check, last_error
from ._functions import *  # noqa: F403
from ._functions import __all__ as _function_names
from ._kernel import Kernel
from ._operations import (
    batch_norm,
    binary,
    broadcast_to,
    cumprod,
    cumsum,
    group_norm,
    instance_norm,
    layer_norm,
    log_softmax,
    matmul,
    reduce,
    rms_norm,
    softmax,
    unary,
)
from ._position import rope
from ._pool import adaptive_avg_pool, adaptive_max_pool, avg_pool, max_pool
from ._resize import resize
from ._profile import Profile
from ._stream import Event, Graph, Stream
from ._shape import cast, concat, embedding, gather, permute, section, take

lib = raw.lib
__version__ = "0.9.0"

for _public in (Array, Buffer, Context, Device, Event, Graph, Kernel, Profile, Stream, Transposed, TuffError):
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
    "Profile",
    "Stream",
    "Transposed",
    "TuffError",
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "attention",
    "avg_pool",
    "batch_norm",
    "binary",
    "broadcast_to",
    "cast",
    "check",
    "concat",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose2d",
    "cumprod",
    "cumsum",
    "device_count",
    "device_refusals",
    "devices",
    "embedding",
    "gather",
    "group_norm",
    "instance_norm",
    "last_error",
    "layer_norm",
    "lib",
    "log_softmax",
    "matmul",
    "max_pool",
    "permute",
    "raw",
    "reduce",
    "resize",
    "rms_norm",
    "rope",
    "section",
    "set_log",
    "softmax",
    "take",
    "unary",
    "version",
]
# Except those that would shadow Python's built-ins.
__all__ += [name for name in _function_names if not hasattr(_builtins, name)]
