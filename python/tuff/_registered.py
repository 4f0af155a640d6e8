"""Operations that a program or a library adds to a context, by name."""

from __future__ import annotations

import ctypes
import re
import threading
from typing import TYPE_CHECKING, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import raw
from ._array import Array
from ._buffer import Buffer, _require_context
from ._checked import OnDevice, is_whole, real, sequence, text
from ._error import check
from ._handle import own
from ._kernel import handle_of, kernel_desc
from ._storage import DTYPES
from ._stream import stream_handle

if TYPE_CHECKING:
    from ._context import Context
    from ._stream import Stream

_NAMES = "f32 f16 bf16 f64 i32 u32 i8 u8 i64 u64 i16 u16 bool f8_e4m3 f8_e5m2 c64 c128".split()
_TYPES = {name: getattr(raw, name.upper()) for name in _NAMES}
_TYPE_NAMES = {code: name for name, code in _TYPES.items()}
_ACCESSES = {"read": raw.OP_READ, "write": raw.OP_WRITE, "read_write": raw.OP_READ_WRITE}
_REALS = (raw.F32, raw.F64)
_UNSIGNED = {raw.BF16: np.dtype(np.uint16), raw.F8_E4M3: np.dtype(np.uint8), raw.F8_E5M2: np.dtype(np.uint8)}

# "x: read f32[n]", "width: u32 1..256", "a: f32"
_BUFFER = re.compile(r"\s*(\w+)\s*:\s*(read|write|read_write)\s+(\w+)\s*(?:\[(.*)\])?\s*")
_SCALAR = re.compile(r"\s*(\w+)\s*:\s*(\w+)(?:\s+(\S+?)\.\.(\S+))?\s*")

Value = Union[None, int, float, np.generic, Array, Buffer]
Formulas = Union[None, str, Sequence[str]]


def _argument(declared: str) -> raw.OpArgument:
    """An argument as tuff_op_list writes it."""
    if not isinstance(declared, str):
        raise TypeError(f"an argument is {declared!r}, needs a str such as 'x: read f32[n]' or 'n: u32 1..100'")
    found = _BUFFER.fullmatch(declared)
    if found:
        name, access, type_name, elements = found.groups()
        argument = raw.OpArgument(kind=raw.OP_BUFFER, access=_ACCESSES[access])
        if elements is not None:
            argument.elements = text(elements, f"the elements of {name}")
    else:
        found = _SCALAR.fullmatch(declared)
        if not found:
            raise ValueError(f"an argument is {declared!r}, needs something like 'x: read f32[n]' or 'n: u32 1..100'")
        name, type_name, least, most = found.groups()
        argument = raw.OpArgument(kind=raw.OP_SCALAR)
        if least is not None:
            try:
                argument.minimum, argument.maximum = float(least), float(most)
            except ValueError:
                raise ValueError(f"the range of {name} is {least}..{most}, needs two numbers") from None
    if type_name not in _TYPES:
        raise ValueError(f"the type of {name} is {type_name!r}, needs one of {', '.join(_TYPES)}")
    argument.name, argument.dtype = text(name, "an argument's name"), _TYPES[type_name]
    return argument


def _formulas(given: Formulas, name: str) -> Optional[bytes]:
    """One formula, or up to three, for x, y and z, as the library takes them."""
    if given is None or isinstance(given, str):
        return None if given is None else text(given, name)
    return b", ".join(text(one, name) for one in sequence(given, name, "formulas"))


class Operation(OnDevice):
    """An operation of a context, by its name. ``ctx.operation(name, arguments, …)`` adds one; calling it runs it:

        scale = ctx.operation("acme.scale", ["n: u32", "a: f32", "x: read_write f32[n]"], kernel=source, invocations="n")
        scale(x.size, 2.0, x)

    name     as it is registered
    context  the Context that it belongs to and keeps alive
    handle   the tuff_op, for tuff.raw
    """

    __slots__ = ("context", "handle", "name", "_kinds", "_finalizer", "_failed", "__weakref__")

    def __init__(
        self,
        context: Context,
        name: str,
        arguments: Sequence[str],
        *,
        kernel: Union[None, str, bytes, np.ndarray] = None,
        groups: Formulas = None,
        invocations: Formulas = None,
        flops: Optional[str] = None,
        host: Optional[Callable[..., None]] = None,
        **options: object,
    ) -> None:
        """arguments: as in the line that ``ctx.operations()`` has for it: "name: access type[elements]" for a buffer,
        where the access is read, write or read_write and elements a formula for the least size; "name: type" or "name: type
        least..most" for a scalar. kernel: as for ``ctx.kernel``, with its options. groups, invocations: a formula for
        the number of workgroups or invocations, or several, for x, y and z. flops: a formula, for profiles. host: a
        function that computes it in contexts without kernels, of the same arguments; it gets buffers as flat NumPy
        arrays, which it may use during the call only, and must not call Tuff."""
        _require_context(context)
        if isinstance(arguments, str):
            raise TypeError(f"arguments is {arguments!r}, needs a list of texts")
        declared = [_argument(one) for one in sequence(arguments, "arguments", "texts")]
        if host is not None and not callable(host):
            raise TypeError(f"host is {host!r}, which cannot be called")
        desc = raw.OpDesc(
            name=text(name, "name"),
            arguments=(raw.OpArgument * len(declared))(*declared),
            argument_count=len(declared),
            groups=_formulas(groups, "groups"),
            invocations=_formulas(invocations, "invocations"),
            flops=None if flops is None else text(flops, "flops"),
        )
        source = None
        if kernel is not None:
            source = kernel_desc(kernel, **options)
            desc.kernel = ctypes.pointer(source)
        elif options:
            raise TypeError(f"{', '.join(options)}: there is no kernel")
        self._kinds: List[Tuple[str, bool, int]] = [
            (one.name.decode(), one.kind == raw.OP_BUFFER, one.dtype) for one in declared
        ]
        self._failed = threading.local()  # a host function runs on the thread that calls the operation
        function = _host_function(host, self._kinds, self._failed)
        handle = ctypes.c_uint64()
        check(raw.tuff_op_register(context.handle, desc, function, None, handle))
        self.context = context
        self.handle = handle.value
        self.name = name
        self._finalizer = own(self, context._session, raw.tuff_op_destroy, handle.value)
        if host is not None:
            context._callbacks.append(function)  # another thread may still be in it when the operation is freed

    def __call__(self, *arguments: Value, stream: Optional[Stream] = None) -> None:
        """Calls the operation, on the context's current stream unless one is given."""
        if len(arguments) != len(self._kinds):
            names = ", ".join(name for name, _, _ in self._kinds)
            raise TypeError(f"{self.name} takes {len(self._kinds)} arguments ({names}), not {len(arguments)}")
        values = (raw.OpValue * len(arguments))()
        for to, given, (name, is_buffer, dtype) in zip(values, arguments, self._kinds):
            if is_buffer:
                to.buffer = _buffer_of(given, name, dtype)
            elif dtype in _REALS:
                to.real = real(given, name)
            else:
                to.integer = _integer(given, name, dtype)
        status = raw.tuff_op_run(stream_handle(stream, self.context), self.handle, values, len(values))
        failure = self._failed.__dict__.pop("error", None)
        if failure is not None:
            raise failure
        check(status)

    def free(self) -> None:
        """Removes the operation now instead of with the object; calls continue to the end."""
        self._finalizer()

    def __repr__(self) -> str:
        return f"<tuff.Operation {self.name}({', '.join(name for name, _, _ in self._kinds)})>"


def _integer(value: object, name: str, dtype: int) -> int:
    """The bits of an integer as a signed 64-bit number; the library checks it against its type and range."""
    if not is_whole(value):
        raise TypeError(f"{name} is {value!r}, not an integer")
    number = int(value)
    if dtype == raw.U64 and 0 <= number < 2**64:
        return number - 2**64 if number >= 2**63 else number
    if dtype == raw.U64 or not -(2**63) <= number < 2**63:
        raise ValueError(f"{name} is {number}, beyond its type")
    return number


def _buffer_of(value: object, name: str, dtype: int) -> int:
    handle = handle_of(value, name)
    if isinstance(value, Array) and DTYPES[value.dtype] != dtype:
        raise TypeError(f"{name} is an array of {value.dtype}, needs {_TYPE_NAMES[dtype]}")
    return handle


#: NumPy's dtype for each of the library's types that NumPy has.
_KINDS = {code: kind for kind, code in DTYPES.items()}


def _kind_of(code: int) -> np.dtype:
    """The dtype in which a host function sees elements: of those that NumPy lacks, ml_dtypes' if one has been used,
    otherwise the bits."""
    kind = _KINDS.get(code)
    if kind is not None:
        return kind
    return next((kind for kind, known in DTYPES.items() if known == code), _UNSIGNED[code])


def _host_function(
    host: Optional[Callable[..., None]], kinds: Sequence[Tuple[str, bool, int]], failed: threading.local
) -> raw.OpHost:
    if host is None:
        return raw.OpHost()

    def forward(_user: object, operands: object, count: int, status: object) -> None:
        try:
            arguments = []
            for i in range(count):
                _, is_buffer, dtype = kinds[i]
                operand = operands[i]
                if not is_buffer:
                    integer = operand.integer + 2**64 if dtype == raw.U64 and operand.integer < 0 else operand.integer
                    arguments.append(operand.real if dtype in _REALS else integer)
                    continue
                kind = _kind_of(dtype)
                length = operand.bytes // kind.itemsize
                memory = (ctypes.c_char * (length * kind.itemsize)).from_address(operand.data) if operand.data else b""
                arguments.append(np.frombuffer(memory, kind))
            host(*arguments)
        except BaseException as error:  # it must not leave the function: raised again where the operation was called
            failed.error = error
            status[0] = raw.ERROR_INTERNAL

    return raw.OpHost(forward)
