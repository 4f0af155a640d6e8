"""What is called for nearly every operation: the objects behind contexts, buffers and arrays, and the shortest way to
the library. The compiled part of the package (python/fast) has it, if it is there; otherwise _plain, in Python alone.
The environment's TUFF_PYTHON=ctypes chooses the latter."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
from pathlib import Path
from types import ModuleType
from typing import Optional

from . import _plain, raw

#: The compiled part is built with the package's sources. One of another version is not used.
_VERSION = 3

_FUNCTIONS = ("tuff_alloc_ex", "tuff_free", "tuff_unary_ex", "tuff_binary_ex", "tuff_expr_run", "tuff_reduce_ex", "tuff_cast_ex",
              "tuff_batched_gemm_ex")  # fmt: skip


def _load(path: Path) -> Optional[ModuleType]:
    loader = importlib.machinery.ExtensionFileLoader("tuff._fast", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tuff._fast", loader))
    return module if module.VERSION == _VERSION else None


def _compiled() -> Optional[ModuleType]:
    """The compiled part: beside the package's modules, or beside the library that is used, as a build leaves it."""
    if os.environ.get("TUFF_PYTHON") == "ctypes" or ".abi3.so" not in importlib.machinery.EXTENSION_SUFFIXES:
        return None
    for folder in (Path(__file__).parent, Path(raw.lib._name).parent):
        path = folder / "_fast.abi3.so"
        if path.is_file():
            try:
                return _load(path)
            except (ImportError, AttributeError):
                return None
    return None


_fast = _compiled()
_used = _plain if _fast is None else _fast

#: Whether the compiled part is used.
COMPILED = _fast is not None

SessionCore, BufferCore, ArrayCore, Formula = _used.SessionCore, _used.BufferCore, _used.ArrayCore, _used.Formula
#: unary(op, x, alpha, out), binary(op, a, b, out), reduce(op, x, axis, keepdims, dtype), cast(x, dtype),
#: matmul(a, a is transposed, b, b is transposed) and allocate(context, session, shape, dtype, flags): the array, or None
#: where that is left to the general code, which does the same or raises the error.
unary, binary, reduce, cast, matmul, allocate = _used.unary, _used.binary, _used.reduce, _used.cast, _used.matmul, _used.allocate
#: export_tensor(release, address, shape, strides, code, bits, minor, flags): a capsule of DLPack over the host's memory, and
#: what to call when it is no longer used.
export_tensor = _used.export_tensor
#: Frees capsules that nobody took. Those of the compiled part free themselves.
collect_capsules = _plain.collect_capsules
#: To be called when a stream is entered: from then on, calls ask which stream is theirs.
streams_are_used = _used.streams_are_used
#: know_dtype(dtype, code, itemsize): arrays of this dtype are of this type of the library.
know_dtype = _used.know_dtype


def setup(array: type, buffer: type) -> None:
    """Names the classes of results."""
    _used.setup(array, buffer, tuple(ctypes.cast(getattr(raw.lib, name), ctypes.c_void_p).value for name in _FUNCTIONS))
