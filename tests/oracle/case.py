"""The parts of a random case: operands, a call, and the expected results."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import numpy as np

from elements import TYPES, Type, decode, encode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "cmake"))
import tables  # noqa: E402


class Draw:
    """Random choices. Options come from `slow`, which is the same for all cases of a block, so that a device compiles
    few kernels. Sizes and values come from `fast` and `data`, which are new for each case."""

    def __init__(self, seed: str, block: int, index: int) -> None:
        self.slow = random.Random(f"{seed}/block {block}")
        self.fast = random.Random(f"{seed}/case {index}")
        self.data = np.random.default_rng([ord(c) for c in f"{seed}/data {index}"])

    # -- options
    def option(self, choices):
        return self.slow.choice(choices)

    def maybe(self, probability: float) -> bool:
        return self.slow.random() < probability

    # -- sizes
    def flip(self, probability: float) -> bool:
        return self.fast.random() < probability

    def pick(self, choices):
        return self.fast.choice(choices)

    def between(self, low: int, high: int) -> int:
        return self.fast.randint(low, high)

    def size(self, most: int, zero: float = 0.0) -> int:
        """1 to most: small sizes, odd ones, those around powers of two; 0 with the given probability."""
        if self.flip(zero):
            return 0
        way = self.fast.random()
        if way < 0.12:
            return 1
        if way < 0.4:
            return self.between(1, min(most, 9))
        if way < 0.65:
            power = 1 << self.between(1, max(1, most.bit_length() - 1))
            return min(most, max(1, power + self.between(-1, 1)))
        return self.between(1, most)

    def sizes(self, count: int, most: int, product: int, zero: float = 0.0) -> list[int]:
        """`count` sizes whose product is at most `product`."""
        result = [self.size(most, zero) for _ in range(count)]
        while np.prod([max(s, 1) for s in result], dtype=np.int64) > product:
            largest = result.index(max(result))
            result[largest] = max(1, result[largest] // 2)
        return result

    # -- values
    def whole(self, shape, most: int = 3) -> np.ndarray:
        return self.data.integers(-most, most, shape, endpoint=True).astype(np.float64)

    def values(self, shape, kind: str = "normal") -> np.ndarray:
        if kind == "whole":
            return self.whole(shape)
        if kind == "spread":  # magnitudes from 2^-6 to 2^6
            return self.data.choice([-1.0, 1.0], shape) * np.exp2(self.data.uniform(-6, 6, shape))
        return self.data.standard_normal(shape)

    def sprinkled(self, x: np.ndarray, numbers, most: int = 3) -> np.ndarray:
        """x with a few elements replaced."""
        for _ in range(self.between(1, most) if x.size else 0):
            x.flat[self.between(0, x.size - 1)] = self.pick(numbers)
        return x

    def bits(self, t: Type, count: int) -> np.ndarray:
        """Random bit patterns of the type."""
        return np.frombuffer(self.data.bytes(count * t.size), t.storage).copy()

    def gap(self, probability: float = 0.5) -> int:
        return self.between(1, 7) if self.flip(probability) else 0


@dataclass
class Operand:
    """Elements in a buffer. raw: the whole footprint as stored, including gaps; index: the position in it of each
    element of the logical array."""

    type: Type
    raw: np.ndarray
    index: np.ndarray
    output: bool = False

    @property
    def values(self) -> np.ndarray:
        return decode(self.type, self.raw[self.index])


def strided(shape, strides) -> np.ndarray:
    """The positions of a strided array's elements."""
    index = np.zeros(shape, np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides)):
        place = np.arange(size, dtype=np.int64) * stride
        index += place.reshape([-1 if a == axis else 1 for a in range(len(shape))])
    return index


def dense(shape) -> list[int]:
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return strides


def layout_strides(shape, last: bool) -> list[int]:
    """Strides of [N][C][spatial...] with the channels stored last or second."""
    if not last:
        return dense(shape)
    n, *space, c = dense([shape[0], *shape[2:], shape[1]])
    return [n, c, *space]


def operand(draw: Draw, t: Type, values, strides=None, output: bool = False, raw: bool = False) -> Operand:
    """An operand of these values (as stored if raw). An output given by its shape starts as garbage, NaN for floats,
    so that elements that are read, or not written, show. Gaps contain garbage."""
    shape = tuple(values) if output and not isinstance(values, np.ndarray) else np.shape(values)
    index = strided(shape, dense(shape) if strides is None else strides)
    storage = draw.bits(t, int(index.max()) + 1 if index.size else 0)
    if not isinstance(values, np.ndarray) and output:
        if t.float:
            storage[index] = encode(t, np.array(np.nan))
    else:
        storage[index] = values if raw else encode(t, values)
    return Operand(t, storage, index, output)


@dataclass(frozen=True)
class Handle:
    """A placeholder for an operand's buffer in a call's arguments."""

    name: str


@dataclass
class Formula:
    """An expression of tuff.h: inputs with their strides, and outputs with the statements that give them."""

    inputs: list[tuple[str, Type, list[int]]]
    outputs: list[tuple[str, Type, str]]
    shape: list[int]

    @property
    def text(self) -> str:
        return "; ".join(statement for _, _, statement in self.outputs)


@dataclass
class Case:
    """A call and its expected results. function: a name of tuff.h; arguments: a dictionary of the descriptor's fields,
    or a list of the arguments after the stream; for tuff_expr_run a formula and its operands. references: for each library a function that returns the expected
    outputs as {operand: Near or Bits}."""

    function: str
    arguments: Any
    operands: dict[str, Operand]
    references: dict[str, Callable[[], dict]]
    note: dict[str, Any] = field(default_factory=dict)  # options that the arguments do not show
    refusals: tuple[str, ...] = ()  # parts of messages: UNSUPPORTED that the header allows


@dataclass(frozen=True)
class Oracle:
    name: str
    functions: tuple[str, ...]
    draw: Callable[[Draw, str, str], Case]
    types: tuple[str, ...]
    forms: tuple[str, ...]  # variants, such as layouts and transposes, that each get as many cases
    # Fields of the descriptor that no call may set, or whose only legal value is zero.
    constant: tuple[str, ...] = ("reserved", "reserved2")
    # Whether a type has a form.
    has: Callable[[str, str], bool] = lambda kind, form: True

    def combinations(self) -> list[tuple[str, str]]:
        return [(kind, form) for kind in self.types for form in self.forms if self.has(kind, form)]


ORACLES: dict[str, Oracle] = {}
FLOATS = ("f32", "f16", "bf16")
ALL = tuple(TYPES)


def types_of(table: str) -> tuple[str, ...]:
    """The element types that a table of operations lists (kernels/*/*.def)."""
    return tuple(name.lower() for name in tables.type_names(ROOT, table))


def oracle(name: str, functions, types=FLOATS, forms=("",), **more):
    def register(draw):
        ORACLES[name] = Oracle(name, tuple(functions), draw, tuple(types), tuple(forms), **more)
        return draw

    return register


__all__ = [
    "ALL", "Case", "Draw", "FLOATS", "Formula", "Handle", "Operand", "Oracle", "ORACLES", "TYPES", "dense", "encode", "decode",
    "layout_strides", "operand", "oracle", "strided", "types_of",
]  # fmt: skip
