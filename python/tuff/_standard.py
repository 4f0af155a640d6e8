"""What the array API standard (2024.12) asks of a namespace besides functions of arrays: types by their names, what is
known of them, and the namespace's description of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _elementwise as elementwise
from ._types import is_complex, part_of
from ._context import Context
from ._default import default_context
from ._operands import MAX_AXES, require_array
from ._storage import DTYPES, Storage, as_dtype

if TYPE_CHECKING:
    from ._array import Array

__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "bool",
    "complex128",
    "complex64",
    "conj",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "imag",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "real",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
]

__array_api_version__ = "2024.12"

bool = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(kind) for kind in (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = (np.dtype(kind) for kind in (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = (np.dtype(kind) for kind in (np.float16, np.float32, np.float64))
complex64, complex128 = (np.dtype(kind) for kind in (np.complex64, np.complex128))

_KINDS: Dict[str, Tuple[np.dtype, ...]] = {
    "bool": (bool,),
    "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8, uint16, uint32, uint64),
    "real floating": (float32, float64),
    "complex floating": (complex64, complex128),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"]


def _dtype_of(value: object) -> np.dtype:
    return value.dtype if isinstance(value, Storage) else as_dtype(value)


class _FloatLimits(NamedTuple):
    """What finfo() returns, as numbers of Python."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype


def finfo(value: Union[object, Array]) -> _FloatLimits:
    """The limits of a dtype of floats, or of an array's: bits, eps, max, min, smallest_normal. A complex type has
    those of its parts."""
    dtype = _dtype_of(value)
    if not elementwise.is_float(dtype) and not is_complex(dtype):
        raise TypeError(f"{dtype} is no type of floats")
    known = np.finfo(part_of(dtype))
    return _FloatLimits(known.bits, *map(float, (known.eps, known.max, known.min, known.smallest_normal)), known.dtype)


def iinfo(value: Union[object, Array]) -> np.iinfo:
    """The limits of a dtype of integers, or of an array's: bits, max, min."""
    dtype = _dtype_of(value)
    if dtype.kind not in "iu":
        raise TypeError(f"{dtype} is no type of integers")
    return np.iinfo(dtype)


def isdtype(dtype: object, kind: Union[object, str, Tuple[object, ...]]) -> bool:
    """Whether a dtype is of a kind: another dtype, "bool", "signed integer", "unsigned integer", "integral", "real
    floating", "complex floating" or "numeric", or any of several. float16 and the types of ml_dtypes are real floating."""
    own = as_dtype(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, one) for one in kind)
    if not isinstance(kind, str):
        return own == as_dtype(kind)
    if kind not in _KINDS:
        raise ValueError(f"kind is {kind!r}, not one of {list(_KINDS)}")
    if kind in ("real floating", "numeric") and own.kind not in "biuc":
        return True
    return own in _KINDS[kind]


def conj(x: Array) -> Array:
    """The complex conjugates; a real array itself."""
    require_array(x, "x")
    return x.conj()


def real(x: Array) -> Array:
    """The real parts, as a view; a real array itself."""
    require_array(x, "x")
    return x.real


def imag(x: Array) -> Array:
    """The imaginary parts, as a view; zeros of a real array."""
    require_array(x, "x")
    return x.imag


class _Info:
    """What __array_namespace_info__() returns."""

    def capabilities(self) -> Dict[str, object]:
        """Which optional behaviours there are. Functions with results of a size that depends on the data wait for it."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_AXES}

    def default_device(self) -> Context:
        return default_context()

    def devices(self) -> List[Context]:
        """The contexts that are known without being named: the default one."""
        return [default_context()]

    def default_dtypes(self, *, device: Optional[Context] = None) -> Dict[str, np.dtype]:
        """Types of new arrays where none is named."""
        return {"real floating": float32, "complex floating": complex64, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Optional[Context] = None, kind: Union[None, str, Tuple[str, ...]] = None) -> Dict[str, np.dtype]:
        """The standard's types that are there, by their names: those of a kind, or of several. float64 is there if the
        device computes it, and so is complex128."""
        context = default_context() if device is None else device
        found = [dtype for kinds in _KINDS.values() for dtype in kinds]
        lacking = () if context.supports("f64") else (float64, complex128)
        return {str(one): one for one in dict.fromkeys(found) if one not in lacking and (kind is None or isdtype(one, kind))}


def __array_namespace_info__() -> _Info:
    """Describes the namespace: capabilities(), default_device(), default_dtypes(), devices(), dtypes()."""
    return _Info()


assert all(dtype in DTYPES for dtype in _KINDS["numeric"])
