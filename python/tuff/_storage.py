"""Memory with a shape and a dtype: what arrays are made of, and what operations need to know of them."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Callable, Dict, Iterator, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._buffer import Buffer, _require_context
from ._core import ArrayCore, know_dtype
from ._checked import OnDevice, host_array, sequence

if TYPE_CHECKING:
    from typing import TypeVar

    from ._context import Context

    Self = TypeVar("Self", bound="Storage")

Axis = Union[None, int, Sequence[int]]

#: The library's type for each NumPy dtype. Matrix multiplication takes float16, float32, float64 and int8. Operations
#: that move elements or convert them take every type. All others take float16 and float32; reductions and + - * maximum
#: minimum take int32 too. The types that NumPy lacks, EXTENSION_TYPES, are added when they are first used.
DTYPES = {
    np.dtype(np.float32): raw.F32,
    np.dtype(np.float16): raw.F16,
    np.dtype(np.float64): raw.F64,
    np.dtype(np.int32): raw.I32,
    np.dtype(np.uint32): raw.U32,
    np.dtype(np.int8): raw.I8,
    np.dtype(np.uint8): raw.U8,
    np.dtype(np.int64): raw.I64,
    np.dtype(np.uint64): raw.U64,
    np.dtype(np.int16): raw.I16,
    np.dtype(np.uint16): raw.U16,
    np.dtype(np.bool_): raw.BOOL,
    np.dtype(np.complex64): raw.C64,
    np.dtype(np.complex128): raw.C128,
}

for _dtype, _code in DTYPES.items():
    know_dtype(_dtype, _code, _dtype.itemsize)

#: The library's types that NumPy has only through the package ml_dtypes, by their names there.
EXTENSION_TYPES = {"bfloat16": raw.BF16, "float8_e4m3fn": raw.F8_E4M3, "float8_e5m2": raw.F8_E5M2}


#: __dlpack__() and __dlpack_device__() of arrays (_dlpack.py, which needs what is made of this module).
DLPACK: Dict[str, Callable[..., object]] = {}


def as_shape(shape: Union[int, Sequence[int]]) -> Tuple[int, ...]:
    """Converts a shape to a tuple of sizes from 0 to NumPy's maximum."""
    if type(shape) is tuple:  # the common case: a tuple of integers
        for size in shape:
            if type(size) is not int or not 0 <= size < 2**63:
                break
        else:
            return shape
    sizes = (shape,) if isinstance(shape, (int, np.integer)) else sequence(shape, "shape", "sizes")
    if not all(isinstance(size, (int, np.integer)) and 0 <= size < 2**63 for size in sizes):
        raise ValueError(f"{sizes} is not a shape: needs integers from 0 to 2**63 - 1")
    return tuple(int(size) for size in sizes)


def as_dtype(dtype: object) -> np.dtype:
    """Converts to a dtype that arrays support; others are a TypeError. "bfloat16", "float8_e4m3fn" and "float8_e5m2" are
    those of the package ml_dtypes, if it is installed."""
    if isinstance(dtype, str) and dtype in EXTENSION_TYPES:
        try:
            dtype = getattr(importlib.import_module("ml_dtypes"), dtype)
        except ImportError:
            raise TypeError(f"dtype {dtype} needs the package ml_dtypes, which is not installed") from None
    kind = np.dtype(dtype)
    if not _is_supported(kind):
        raise TypeError(f"dtype {kind} is not one of {', '.join([*map(str, _NUMPY_TYPES), *EXTENSION_TYPES])}")
    return kind


_NUMPY_TYPES = tuple(DTYPES)


def _is_supported(kind: np.dtype) -> bool:
    """Whether arrays support a dtype. Those of ml_dtypes are added to DTYPES."""
    if kind not in DTYPES and kind.type.__module__ == "ml_dtypes" and kind.type.__name__ in EXTENSION_TYPES:
        DTYPES[kind] = EXTENSION_TYPES[kind.type.__name__]
        know_dtype(kind, DTYPES[kind], kind.itemsize)
    return kind in DTYPES


def as_numpy(values: object, dtype: object) -> np.ndarray:
    """Converts anything that NumPy accepts to an array of the dtype, except complex numbers to a real one, which would drop
    their imaginary parts."""
    if getattr(getattr(values, "dtype", None), "kind", "") == "c" and np.dtype(dtype).kind != "c":
        raise TypeError(f"the values are {values.dtype}, and {np.dtype(dtype)} is real: .real and .imag are such")
    try:
        return np.asarray(values, dtype=dtype)
    except OverflowError as error:  # an integer out of range, which NumPy 2 does not wrap
        raise ValueError(f"a value is beyond {np.dtype(dtype)}: {error}") from None


def as_natural(values: object) -> np.ndarray:
    """Converts anything that NumPy accepts where no dtype is given. NumPy's arrays keep a type that arrays support, and
    True and False are bools; float64 and numbers in lists become float32, and complex128 and complex numbers in lists
    complex64. A ValueError says so if that would change an integer."""
    data = np.asarray(values)
    if data.dtype == np.bool_:
        return data
    kept = data.dtype.newbyteorder("=")  # files and networks may have the other order
    if isinstance(values, (np.ndarray, np.generic)) and _is_supported(kept) and kept not in (np.float64, np.complex128):
        return data.astype(kept, copy=False)
    if data.dtype.kind == "c":
        return data.astype(np.complex64)
    result = as_numpy(values, np.float32)
    if data.dtype.kind in "iu" and data.size != 0 and max(data.max(), -int(data.min())) > 2**24:
        changed = data[result.astype(np.longdouble) != data.astype(np.longdouble)]
        if changed.size != 0:
            raise ValueError(f"{changed[0]} is no float32; name the type that keeps it, such as dtype=numpy.int64")
    return result


class Storage(OnDevice, ArrayCore):
    """What an Array is made of: a Buffer with a shape and a dtype, its transfers and its views. Operations accept it; Array
    adds the operators and functions."""

    __slots__ = ()  # ArrayCore has buffer, shape and dtype

    def __init__(self, buffer: Buffer, shape: Union[int, Sequence[int]], dtype: object = np.float32) -> None:
        if not isinstance(buffer, Buffer):
            raise TypeError(f"buffer is {type(buffer).__name__}, not a tuff.Buffer")
        self.buffer = buffer
        self.shape = as_shape(shape)
        self.dtype = as_dtype(dtype)
        if buffer.nbytes < self.nbytes:
            raise ValueError(f"a buffer of {buffer.nbytes} bytes holds no {self.shape} {self.dtype}")

    @classmethod
    def _of(cls, buffer: Buffer, shape: Tuple[int, ...], dtype: np.dtype) -> Self:
        """Creates an array without checks, from arguments known to be consistent."""
        array = object.__new__(cls)
        array.buffer, array.shape, array.dtype = buffer, shape, dtype
        return array

    # Properties.

    @property
    def context(self) -> Context:
        return self.buffer.context

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a 0-d array has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<tuff.Array {self.shape} {self.dtype}>"

    # Transfers to and from the host.

    def numpy(self) -> np.ndarray:
        """Waits for the stream's work so far and copies the array to the host."""
        return self.buffer.download(np.empty(self.shape, self.dtype))

    def __array__(self, dtype: object = None, copy: Optional[bool] = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on a device reaches NumPy only as a copy")
        result = self.numpy()
        return result if dtype is None else result.astype(dtype, copy=False)

    def __dlpack_device__(self) -> Tuple[int, int]:
        return DLPACK["device"](self)

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: Optional[Tuple[int, int]] = None,
        dl_device: Optional[Tuple[int, int]] = None,
        copy: Optional[bool] = None,
    ) -> object:
        """A capsule for another library, such as numpy.from_dlpack(x): of the memory itself, without a copy, if it was
        allocated for the host (``tuff.Array(ctx.alloc(n, host_visible=True), shape, dtype)``) or if copy is False. Until the
        library lets go of it, operations on the array are TuffErrors. Others are copied, from a device that is no CPU if
        copy is True or dl_device is (1, 0). Waits for the work so far."""
        return DLPACK["export"](self, stream, max_version, dl_device, copy)

    def item(self) -> Union[float, int, complex]:
        """The value of an array with one element, as a Python number."""
        if self.size != 1:
            raise ValueError(f"item() of an array of shape {self.shape}")
        return self.numpy().item()

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        if self.dtype.kind not in "iu" or self.shape:
            raise TypeError(f"an array of shape {self.shape} and {self.dtype} is no index: needs one integer without axes")
        return int(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def copy_from_async(self, source: np.ndarray) -> Self:
        """Overwrites the elements with those of a NumPy array in pinned memory (``ctx.pinned()``) of the same shape and
        dtype, and returns at once. source must not be written before the copy is complete; wait for an event recorded
        after it."""
        self._require_like(source, "source")
        self.buffer.upload_async(source)
        return self

    def copy_to_async(self, target: np.ndarray) -> np.ndarray:
        """Copies to a NumPy array in pinned memory (``ctx.pinned()``) of the same shape and dtype, and returns at once.
        target holds the elements when the copy is complete; wait for an event recorded after it."""
        self._require_like(target, "target")
        return self.buffer.download_async(target)

    def _require_like(self, host: np.ndarray, name: str) -> None:
        host_array(host, name)
        if host.shape != self.shape or host.dtype != self.dtype:
            raise ValueError(f"{name} is {host.shape} {host.dtype}, the array {self.shape} {self.dtype}")

    def copy(self) -> Self:
        result = self.context.empty(self.shape, self.dtype)
        result.buffer.copy_from(self.buffer, nbytes=self.nbytes)
        return result

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    def to(self, context: Context) -> Self:
        """Returns a copy in another context, which may be on another device. For the same context it is copy()."""
        if isinstance(context, str):
            raise TypeError(f"context is {context!r}, not a tuff.Context; .numpy() copies to the host")
        _require_context(context)
        result = context.empty(self.shape, self.dtype)
        result.buffer.copy_from(self.buffer, nbytes=self.nbytes)
        return result

    # Views.

    def reshape(self, *shape: Union[int, Sequence[int]]) -> Self:
        """Returns a view with another shape of the same size; one size may be -1."""
        several = len(shape) == 1 and not isinstance(shape[0], (int, np.integer))
        sizes = list(sequence(shape[0], "shape", "sizes") if several else shape)
        if sizes.count(-1) == 1:
            known = math.prod(size for size in sizes if size != -1)
            sizes[sizes.index(-1)] = self.size // known if known else 0
        if math.prod(as_shape(sizes)) != self.size:
            raise ValueError(f"an array of shape {self.shape} cannot take shape {tuple(shape)}")
        return type(self)(self.buffer, sizes, self.dtype)

    def ravel(self) -> Self:
        """Returns a view with a single axis."""
        return self.reshape(self.size)

    def __iter__(self) -> Iterator[Self]:
        return (self[index] for index in range(len(self)))


class Strided:
    """Mark of arrays whose elements are not adjacent in memory (_views.View). Their buffer is a copy, for reading."""

    __slots__ = ()


class SparseStorage:
    """Mark of sparse matrices (sparse.py), which multiply arrays from either side."""

    __slots__ = ()


class TransposedStorage:
    """Mark of transposed matrices (_views.Transposed), which @ reads in place: `base` is what they are the transposed of."""

    __slots__ = ()
