"""Models in GGUF files, as llama.cpp and ggml write them: metadata, and tensors by name.

    with tuff.gguf.File("model.gguf") as model:
        print(model.metadata["general.architecture"], len(model))
        w = model["blk.0.ffn_up.weight"].to(ctx)        # an Array, or a Quantized for qmatmul()
        y = tuff.qmatmul(x, w)

The file is mapped: what is not used is not read. Quantised tensors stay in ggml's blocks, on the device too. Lengths, offsets
and types are checked when the file is opened, so that a damaged file raises a FormatError that says what is wrong, and where.
"""

from __future__ import annotations

import math
import mmap
import os
import struct
from typing import TYPE_CHECKING, Dict, Iterator, List, Mapping, Optional, Tuple, Union

import numpy as np

from ._default import default_context
from ._quantisation import _BLOCKS, Quantized
from ._storage import as_dtype

if TYPE_CHECKING:
    from ._array import Array
    from ._context import Context

__all__ = ["File", "FormatError", "Tensor"]

#: ggml's types: name, numbers in a block, bytes of a block.
_TYPES = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}
_PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}
#: The names that Quantized has for what it takes.
_QUANTIZED = {name.upper(): name for name in _BLOCKS}
_READ = (*_PLAIN, "BF16", *_QUANTIZED)

#: Types of metadata: how struct and NumPy name them. 7 is a bool, 8 a string, 9 an array.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
#: ggml has tensors of up to 4 axes.
_MOST_AXES = 4
_DEEPEST = 8

Value = Union[int, float, bool, str, np.ndarray, list]


class FormatError(ValueError):
    """The file is damaged, or of another format."""


class Tensor:
    """A tensor of a file. Its shape is NumPy's: the last axis is the one that is contiguous, which GGUF lists first.

    type is ggml's name ("F16", "Q4_K" …), or that of its number for a type that is not known.
    """

    __slots__ = ("name", "shape", "type", "offset", "nbytes", "_file")

    def __init__(self, file: File, name: str, shape: Tuple[int, ...], type: str, offset: int, nbytes: Optional[int]) -> None:  # noqa: A002
        self._file, self.name, self.shape, self.type = file, name, shape, type
        #: From the beginning of the file.
        self.offset = offset
        #: None for a type that is not known.
        self.nbytes = nbytes

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def data(self) -> np.ndarray:
        """The bytes as they lie in the file, which can't be written."""
        if self.nbytes is None:
            raise ValueError(f"{self.name} is of {self.type}, which is not known: nor is how many bytes it has")
        return self._file._mapped()[self.offset : self.offset + self.nbytes]

    def numpy(self) -> np.ndarray:
        """The numbers of a tensor that is not quantised, in the file's memory. BF16 needs the package ml_dtypes."""
        if self.type == "BF16":
            return self.data.view(as_dtype("bfloat16")).reshape(self.shape)
        if self.type not in _PLAIN:
            raise TypeError(f"{self.name} is of {self.type}, which NumPy lacks: to() takes {', '.join(_READ)}")
        return self.data.view(_PLAIN[self.type]).reshape(self.shape)

    def to(self, context: Optional[Context] = None, dtype: object = None) -> Union[Array, Quantized]:
        """The tensor on a device: an Array, or a Quantized of ggml's blocks; with a dtype an Array of that in any case."""
        if self.type not in _READ:
            raise TypeError(f"{self.name} is of {self.type}, and Tuff reads {', '.join(_READ)}")
        context = context or default_context()
        if self.type in _QUANTIZED:
            blocks = Quantized(_QUANTIZED[self.type], self.shape, self.data, context=context)
            return blocks if dtype is None else blocks.dequantize(dtype)
        if self.type == "BF16" and dtype is not None:  # also without ml_dtypes: a bf16 is the upper half of an f32
            values = (self.data.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(self.shape)
        else:
            values = self.numpy()
        loaded = context.array(values)
        return loaded if dtype is None or loaded.dtype == as_dtype(dtype) else loaded.astype(dtype)

    def __repr__(self) -> str:
        return f"<tuff.gguf.Tensor {self.name}: {self.type} {self.shape}>"


class File(Mapping[str, Tensor]):
    """An open GGUF file of version 2 or 3, a mapping of names to tensors in the order of the file.

    metadata has the file's values by their keys: numbers, bools, text, and arrays, of numbers as NumPy's and of others as
    lists. Text that is not UTF-8 keeps its bytes as surrogates. version and alignment are the file's.

    close(), or the end of a with statement, lets go of the file; NumPy arrays of its tensors stay valid. A program must not
    shorten a file that is open.
    """

    def __init__(self, path: Union[str, os.PathLike]) -> None:
        self.path = os.fspath(path)
        self._bytes: Optional[np.ndarray] = None
        with open(self.path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size == 0:  # which can't be mapped
                raise FormatError(f"{self.path}: the file is empty")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self.metadata: Dict[str, Value] = {}
        self._tensors: Dict[str, Tensor] = {}
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        read = _Reader(self.path, self._map)
        magic = read.bytes(4, "the magic number")
        if magic != b"GGUF":
            raise read.error(f"begins with {magic!r}, not with GGUF")
        self.version = read.number("I", "the version")
        if self.version not in (2, 3):
            if int.from_bytes(self.version.to_bytes(4, "little"), "big") in (2, 3):
                raise read.error("is big-endian, and Tuff reads little-endian files")
            raise read.error(f"has version {self.version}, and Tuff reads 2 and 3")
        tensors = read.number("Q", "the number of tensors")
        values = read.number("Q", "the number of values")
        # What a value and a tensor take at least: lengths, a type, and a byte, or an offset.
        read.require(values * (8 + 4 + 1), f"{values} values of metadata")
        for i in range(values):
            read.place = f"value {i} of metadata"
            key = read.text(strict=True)
            read.place = f'metadata "{key}"'
            if key in self.metadata:
                raise read.error("is there twice")
            self.metadata[key] = read.value(read.number("I", "the type"))
        read.place = ""
        alignment = self.metadata.get("general.alignment", 32)
        if type(alignment) is not int or alignment <= 0 or alignment & (alignment - 1):
            raise read.error(f"has general.alignment {alignment!r}, not a power of two")
        self.alignment = alignment
        read.require(tensors * (8 + 4 + 4 + 8), f"{tensors} tensors")
        found: List[Tuple[str, Tuple[int, ...], int, int]] = []
        for i in range(tensors):
            read.place = f"tensor {i}"
            name = read.text(strict=True)
            read.place = f'tensor "{name}"'
            axes = read.number("I", "the number of axes")
            if axes > _MOST_AXES:
                raise read.error(f"has {axes} axes, at most {_MOST_AXES} are allowed")
            shape = tuple(read.number("Q", f"size {axis}") for axis in range(axes))[::-1]
            found.append((name, shape, read.number("I", "the type"), read.number("Q", "the offset")))
        begin = -(-read.at // alignment) * alignment
        for name, shape, kind, offset in found:
            read.place = f'tensor "{name}"'
            if name in self._tensors:
                raise read.error("is there twice")
            if offset % alignment:
                raise read.error(f"has the offset {offset}, not a multiple of the alignment {alignment}")
            type_name, nbytes = f"type {kind}", None
            if kind in _TYPES:
                type_name, numbers, of_block = _TYPES[kind]
                row = shape[-1] if shape else 1
                if row % numbers:
                    raise read.error(f"has rows of {row} numbers, and {type_name} has blocks of {numbers}")
                nbytes = math.prod(shape) // numbers * of_block
                if begin + offset + nbytes > len(self._map):
                    raise read.error(
                        f"of {type_name} and shape {shape} has {nbytes} bytes from {begin + offset}, and the file has {len(self._map)}"
                    )
                # An axis of no numbers hides the others' sizes; NumPy refuses such arrays too. What it lacks becomes f32.
                of_number = of_block if type_name in _PLAIN else 4
                if math.prod(max(size, 1) for size in shape) * of_number >= 2**63:
                    raise read.error(f"of {type_name} has the shape {shape}, larger than an array can be")
            self._tensors[name] = Tensor(self, name, shape, type_name, begin + offset, nbytes)

    def _mapped(self) -> np.ndarray:
        if self._bytes is None:
            raise ValueError(f"{self.path} is closed")
        return self._bytes

    def close(self) -> None:
        """Lets go of the file. Tensors can't be read any more."""
        self._bytes = None
        try:
            self._map.close()
        except BufferError:  # arrays that refer to it keep it
            pass

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __repr__(self) -> str:
        return f"<tuff.gguf.File {self.path!r}: {len(self)} tensors>"


class _Reader:
    """Reads forwards, and never beyond the end."""

    def __init__(self, path: str, memory: mmap.mmap) -> None:
        self.path, self.memory, self.at = path, memory, 0
        self.place = ""  # what is being read

    def error(self, text: str) -> FormatError:
        return FormatError(f"{self.path}: {self.place}{' ' if self.place else ''}{text}")

    def require(self, count: int, what: str) -> None:
        left = len(self.memory) - self.at
        if count > left:
            where = f" of {self.place}" if self.place else ""
            raise FormatError(f"{self.path}: {what}{where} at {self.at} needs {count} bytes, the file has {left} from there")

    def bytes(self, count: int, what: str) -> bytes:
        self.require(count, what)
        self.at += count
        return self.memory[self.at - count : self.at]

    def number(self, code: str, what: str) -> Union[int, float]:
        return struct.unpack("<" + code, self.bytes(struct.calcsize("<" + code), what))[0]

    def text(self, *, strict: bool) -> str:
        length = self.number("Q", "the length of text")
        held = self.bytes(length, f"text of {length} bytes")
        try:
            return held.decode("utf-8", "strict" if strict else "surrogateescape")
        except UnicodeDecodeError:
            raise self.error(f"has a name that is not UTF-8: {held[:64]!r}") from None

    def value(self, kind: int, depth: int = 0) -> Value:
        if kind == _STRING:
            return self.text(strict=False)
        if kind == _ARRAY:
            return self._array(depth)
        if kind not in _NUMBERS:
            raise self.error(f"is of type {kind}, which is not known")
        if kind == 7:  # struct takes any byte for a bool
            flag = self.number("B", "a bool")
            if flag > 1:
                raise self.error(f"has a bool that is {flag}, neither 0 nor 1")
            return bool(flag)
        return self.number(_NUMBERS[kind], "a number")

    def _array(self, depth: int) -> Value:
        if depth == _DEEPEST:
            raise self.error(f"has arrays in arrays, deeper than {_DEEPEST}")
        kind, count = self.number("I", "the type of elements"), self.number("Q", "the number of elements")
        if kind in _NUMBERS:
            dtype = np.dtype("<" + _NUMBERS[kind])
            if kind != 7:
                return np.frombuffer(self.bytes(count * dtype.itemsize, f"an array of {count} numbers"), dtype)
            flags = np.frombuffer(self.bytes(count, f"an array of {count} bools"), np.uint8)
            if np.any(flags > 1):
                raise self.error("has a bool that is neither 0 nor 1")
            return flags.astype(bool)
        if kind not in (_STRING, _ARRAY):
            raise self.error(f"has elements of type {kind}, which is not known")
        self.require(count * (8 if kind == _STRING else 12), f"an array of {count} elements")
        return [self.value(kind, depth + 1) for _ in range(count)]
