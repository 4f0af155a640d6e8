"""Streams, events and graphs."""

from __future__ import annotations

import contextvars
import ctypes
from typing import TYPE_CHECKING, NamedTuple, Optional, Union

from . import raw
from ._operands import require_dense
from ._array import Array
from ._buffer import Buffer, _require_context
from ._checked import OnDevice, text
from ._core import streams_are_used
from ._error import check
from ._handle import own

if TYPE_CHECKING:
    from ._context import Context


class _Entered(NamedTuple):
    stream: Stream
    before: Optional[_Entered]


# The stack of stream with blocks that this thread or task is in.
_entered: contextvars.ContextVar[Optional[_Entered]] = contextvars.ContextVar("tuff_stream", default=None)


def current_stream(context: Context) -> Optional[Stream]:
    """Returns the stream of the innermost with block for this context, or None."""
    entered = _entered.get()
    while entered is not None:
        if entered.stream.context is context:
            return entered.stream
        entered = entered.before
    return None


def stream_handle(stream: Optional[Stream], context: Context) -> int:
    """Returns the stream's handle; for None, that of the stream that this thread's operations use."""
    if stream is None:
        return context.stream_handle
    if not isinstance(stream, Stream):
        raise TypeError(f"{type(stream).__name__} is not a tuff.Stream")
    return stream.handle


def _event_handle(event: Event) -> int:
    if not isinstance(event, Event):
        raise TypeError(f"{type(event).__name__} is not a tuff.Event")
    return event.handle


class Stream(OnDevice):
    """A stream of work on a device. ``ctx.stream(name)`` creates one. Inside ``with stream:`` the arrays, buffers and
    kernels of its context use it, for the thread or asyncio task that is in the block:

        upload = ctx.stream("upload")
        with upload:
            x.copy_from_async(pinned)
        ctx.current_stream.wait(upload.record())
        y = x @ w

    Blocks may be nested, and several threads may enter the same stream. Only events order the work of different
    streams: before a stream reads what another computed, it must ``wait(event)``. Two things need no event: the zeros
    of new arrays, and data uploaded by ``ctx.array()``, ``upload()`` or ``assign(numpy_array)``. When the object is
    freed, its work continues to the end.

    context  the Context that it belongs to and keeps alive
    handle   the tuff_stream, for tuff.raw
    """

    __slots__ = ("context", "handle", "_finalizer", "__weakref__")

    def __init__(self, context: Context, name: Optional[str] = None) -> None:
        _require_context(context)
        desc = raw.StreamDesc(name=None if name is None else text(name, "name"))
        handle = ctypes.c_uint64()
        check(raw.tuff_stream_create(context.handle, desc, handle))
        self.context = context
        self.handle = handle.value
        self._finalizer = own(self, context._session, raw.tuff_stream_destroy, handle.value)

    @classmethod
    def _default(cls, context: Context) -> Stream:
        """Returns the stream that the context's handle stands for."""
        stream = object.__new__(cls)
        stream.context, stream.handle, stream._finalizer = context, context.handle, None
        return stream

    def record(self, event: Optional[Event] = None, *, timing: bool = True) -> Event:
        """Records event, or a new one with the given timing, and returns it. It completes when the stream's work so far
        has completed."""
        event = Event(self.context, timing) if event is None else event
        check(raw.tuff_event_record(self.handle, _event_handle(event)))
        return event

    def wait(self, event: Event) -> None:
        """Makes later work of the stream wait for the event. The call itself does not wait."""
        check(raw.tuff_stream_wait_event(self.handle, _event_handle(event)))

    def synchronize(self) -> None:
        """Blocks until the stream's work so far has finished. For the default stream, this includes all streams."""
        check(raw.tuff_synchronize(self.handle))

    def free(self) -> None:
        """Frees the stream now instead of with the object; its work continues to the end. No effect on the default
        stream."""
        if self._finalizer is not None:
            self._finalizer()

    def __enter__(self) -> Stream:
        streams_are_used()
        _entered.set(_Entered(self, _entered.get()))
        return self

    def __exit__(self, *_: object) -> None:
        entered = _entered.get()
        if entered is None or entered.stream is not self:
            raise RuntimeError("with blocks of streams must end in the reverse of the order in which they began")
        _entered.set(entered.before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.handle == other.handle

    def __hash__(self) -> int:
        return hash(self.handle)

    def __repr__(self) -> str:
        return f"<tuff.Stream {self.handle:#x}{', the default' if self._finalizer is None else ''}>"


class Event(OnDevice):
    """A point in a stream. ``stream.record()`` creates one.

    context  the Context that it belongs to and keeps alive
    handle   the tuff_event, for tuff.raw
    """

    __slots__ = ("context", "handle", "_finalizer", "__weakref__")

    def __init__(self, context: Context, timing: bool = True) -> None:
        """timing enables elapsed(); without it, recording costs less."""
        _require_context(context)
        handle = ctypes.c_uint64()
        desc = raw.EventDesc(flags=0 if timing else raw.EVENT_NO_TIMING)
        check(raw.tuff_event_create(context.handle, desc, handle))
        self.context = context
        self.handle = handle.value
        self._finalizer = own(self, context._session, raw.tuff_event_destroy, handle.value)

    @property
    def done(self) -> bool:
        """Whether the event is complete or was never recorded. Never waits."""
        done = ctypes.c_int32()
        check(raw.tuff_event_query(self.handle, done))
        return bool(done.value)

    def wait(self) -> None:
        """Blocks until the event is complete."""
        check(raw.tuff_event_wait(self.handle))

    def elapsed(self, end: Event) -> float:
        """Returns the milliseconds from this event to `end` on the device's clock, after waiting for both."""
        milliseconds = ctypes.c_double()
        check(raw.tuff_event_elapsed(self.handle, _event_handle(end), milliseconds))
        return milliseconds.value

    def free(self) -> None:
        """Frees the event now instead of with the object; existing waits for it continue."""
        self._finalizer()


class Graph(OnDevice):
    """A captured sequence of operations that can be launched repeatedly:

        with ctx.capture() as graph:
            y = (x @ w).relu()      # checked and planned, not executed
        for batch in batches:
            x.assign(batch)
            graph.launch()
            print(y.numpy())

    Arrays created in the block are results or intermediates of every launch; the graph keeps all memory that it uses.
    The zeros of a new array are not part of the graph: they are written once, before the first launch. Calls that
    involve the host (``numpy()``, ``ctx.array()``, events, waiting) are UNSUPPORTED in the block. An exception that
    leaves the block ends the capture without a graph.

    context  the Context that it belongs to and keeps alive
    handle   the tuff_graph, for tuff.raw; raw.NULL_HANDLE until the block has ended
    """

    __slots__ = ("context", "handle", "_stream", "_finalizer", "__weakref__")

    def __init__(self, context: Context, stream: Optional[Stream] = None) -> None:
        """stream: the stream that captures; by default a new one for this purpose."""
        if stream is not None and not isinstance(stream, Stream):
            raise TypeError(f"{type(stream).__name__} is not a tuff.Stream")
        _require_context(context)
        self.context = context
        self.handle = raw.NULL_HANDLE
        self._stream = Stream(context, "capture") if stream is None else stream
        self._finalizer = None

    def __enter__(self) -> Graph:
        if self._stream is None:
            raise RuntimeError("the graph is already captured")
        check(raw.tuff_graph_begin(self._stream.handle))
        self._stream.__enter__()
        return self

    def __exit__(self, exception: object, *_: object) -> None:
        stream, self._stream = self._stream, None
        stream.__exit__()
        handle = ctypes.c_uint64()
        if exception is not None:
            if raw.tuff_graph_end(stream.handle, handle) == raw.OK:
                raw.tuff_graph_destroy(handle)
            return
        check(raw.tuff_graph_end(stream.handle, handle))
        self.handle = handle.value
        self._finalizer = own(self, self.context._session, raw.tuff_graph_destroy, handle.value)

    def launch(self, stream: Optional[Stream] = None) -> None:
        """Executes the graph in the order of the stream's other work. The default is the with block's stream, or the
        default stream."""
        check(raw.tuff_graph_launch(stream_handle(stream, self.context), self.handle))

    def bind(self, captured: Union[Array, Buffer], replacement: Union[Array, Buffer]) -> None:
        """Uses replacement in place of captured in later launches; bind(captured, captured) undoes it."""
        for value in (captured, replacement):
            if not isinstance(value, (Array, Buffer)):
                raise TypeError(f"a graph binds arrays and buffers, not {type(value).__name__}")
            require_dense(value, "an operand")
        if isinstance(captured, Array) and isinstance(replacement, Array):
            if (captured.shape, captured.dtype) != (replacement.shape, replacement.dtype):
                raise ValueError(
                    f"{replacement.shape} {replacement.dtype} in place of {captured.shape} {captured.dtype}"
                )
        buffers = [value.buffer if isinstance(value, Array) else value for value in (captured, replacement)]
        check(raw.tuff_graph_bind(self.handle, buffers[0].handle, buffers[1].handle))

    def free(self) -> None:
        """Frees the graph now instead of with the object; its launches continue to the end."""
        if self._finalizer is not None:
            self._finalizer()
