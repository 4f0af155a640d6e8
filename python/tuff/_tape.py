"""What tuff.grad notes while a function runs."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable, Dict, List, NoReturn, Sequence, Tuple, Union

import numpy as np

from . import _functions as functions
from ._array import Array
from ._buffer import Buffer
from ._context import Context
from ._layout import dense
from ._tracing import RULES, Mark
from ._views import Transposed

#: From the result's gradient to that of one operand.
Pull = Callable[[Array], Array]


class Tape:
    """What was computed from the arguments, in order: for each value, the values that it depends on, and how its gradient
    reaches them. level: how many tapes of the thread are around this one."""

    def __init__(self) -> None:
        self.level = getattr(depth, "now", 0)
        self.notes: List[Sequence[Tuple[int, Pull]]] = []

    def add(self, value: Array, pulls: Sequence[Tuple[int, Pull]] = ()) -> Traced:
        self.notes.append(pulls)
        return Traced._made(self, value, len(self.notes) - 1)

    def gradients(self, last: int, seed: Array) -> Dict[int, Array]:
        found = {last: seed}
        for place in range(last, -1, -1):
            if place not in found or not self.notes[place]:
                continue
            gradient = found.pop(place)
            for operand, pull in self.notes[place]:
                part = pull(gradient)
                found[operand] = functions.add(found[operand], part) if operand in found else part
        return found


depth = threading.local()


class Traced(Mark, Array):
    """An array whose uses are noted. It has a value, and no buffer, so that no operation can use it unnoticed."""

    __slots__ = ("tape", "value", "place")

    @classmethod
    def _made(cls, tape: Tape, value: Array, place: int) -> Traced:
        made = object.__new__(cls)
        made.tape, made.value, made.place = tape, value, place
        made.shape, made.dtype = value.shape, value.dtype
        return made

    @property
    def buffer(self) -> Buffer:
        frame, name = sys._getframe(1), "this operation"
        while frame is not None and frame.f_globals.get("__package__") == __package__:
            if frame.f_globals["__name__"] != f"{__package__}._tracing":
                name = f"{frame.f_code.co_name}()"
            frame = frame.f_back
        raise TypeError(f"{name} has no rule for gradients; tuff.grad.constant(x) is x without one")

    @property
    def context(self) -> Context:
        return self.value.context

    def __repr__(self) -> str:
        return f"<tuff.grad of {self.value!r}>"

    def numpy(self) -> np.ndarray:
        return self.value.numpy()

    def reshape(self, *shape: Union[int, Sequence[int]]) -> Array:
        value = self.value.reshape(*shape)
        return noted(self, lambda x: value, lambda g: dense(g).reshape(self.shape))

    def ravel(self) -> Array:
        return self.reshape(self.size)

    def copy(self) -> Array:
        return noted(self, lambda x: x.copy(), lambda g: g)

    def assign(self, value: object) -> NoReturn:
        raise TypeError("an array that is being differentiated cannot be overwritten; compute a new one")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        self.assign(value)


def tape_of(*values: object) -> Tape:
    """The innermost tape of the operands: for it, the values of the others are constants."""
    bases = (value.base if isinstance(value, Transposed) else value for value in values)
    return max((value.tape for value in bases if isinstance(value, Traced)), key=lambda tape: tape.level)


def value_in(tape: Tape, x: Any) -> Any:
    """An operand without this tape."""
    if isinstance(x, Transposed):
        return Transposed(value_in(tape, x.base))
    return x.value if isinstance(x, Traced) and x.tape is tape else x


def noted(x: Traced, function: Callable[[Array], Array], pull: Pull) -> Array:
    """The result of a function of one array."""
    return x.tape.add(function(x.value), ((x.place, pull),))


def summed_to(gradient: Array, shape: Tuple[int, ...], dtype: np.dtype) -> Array:
    """A gradient of a value that was repeated to a shape, as that of the value."""
    if gradient.shape != shape:
        extra = gradient.ndim - len(shape)
        axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and gradient.shape[i + extra] != 1)
        gradient = (gradient.sum(axes) if axes else gradient).reshape(shape)
    return gradient if gradient.dtype == dtype else gradient.astype(dtype)


def pulls_of(tape: Tape, rules: Sequence[Tuple[Any, Pull]]) -> List[Tuple[int, Pull]]:
    """For operands and how a gradient reaches them: those that the tape notes."""
    return [(one.place, pull) for one, pull in rules if isinstance(one, Traced) and one.tape is tape]


def forgetting(pulls: Sequence[Tuple[int, Pull]], common: List[Any]) -> List[Tuple[int, Pull]]:
    """The same, the last of which empties `common`: what they have in common, which would otherwise be kept until the tape
    ends. Tape.gradients() calls them in this order."""
    if not pulls:
        return []
    *others, (place, final) = pulls

    def ending(g: Array) -> Array:
        found = final(g)
        common.clear()
        return found

    return [*others, (place, ending)]


def refuse_out(out: object, what: str) -> None:
    if out is not None:
        raise TypeError(f"{what} of an array that is being differentiated has no out, and does nothing in place")


def rule(name: str) -> Callable[[Callable], Callable]:
    def kept(function: Callable) -> Callable:
        RULES[name] = function
        return function

    return kept


def leaves_of(value: object, found: List[Array]) -> None:
    """The arrays in lists, tuples and dictionaries. A field of a named tuple may be None, as that of a layer without a bias."""
    if isinstance(value, Array):
        found.append(value)
    elif hasattr(value, "_fields"):
        for one in value:  # type: ignore[attr-defined]
            if one is not None:
                leaves_of(one, found)
    elif isinstance(value, (list, tuple)):
        for one in value:
            leaves_of(one, found)
    elif isinstance(value, dict):
        for one in value.values():
            leaves_of(one, found)
    else:
        raise TypeError(f"an argument to differentiate by is {type(value).__name__}: needs arrays, also in lists, tuples and dictionaries")


def with_leaves(value: object, leaves: Any) -> Any:
    """The same lists, tuples and dictionaries, with other arrays."""
    if isinstance(value, Array):
        return next(leaves)
    if value is None:
        return None
    if isinstance(value, dict):
        return {key: with_leaves(one, leaves) for key, one in value.items()}
    parts = [with_leaves(one, leaves) for one in value]
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def constant(x: Array) -> Array:
    """The array without its history: no gradient flows through it."""
    while isinstance(x, Traced):
        x = x.value
    return x


def wide_type(x: Array) -> np.dtype:
    return np.dtype(np.float64 if x.dtype == np.float64 else np.float32)


def widened(x: Array) -> Array:
    """Statistics are of float32 at least."""
    return x if x.dtype in (np.float32, np.float64) else x.astype(np.float32)
