"""sort against NumPy's stable argsort and PyTorch's sort. Results are compared bit for bit: elements are random bit
patterns, or few different ones, among which are zeros of both signs and NaNs."""

from __future__ import annotations

import numpy as np

import libraries
from case import ALL, TYPES, Case, Draw, Handle, operand, oracle
from elements import Bits, decode


def _places(numbers: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """The places of the sorted elements, by two stable sorts: of the numbers, and of what is no number to the end."""
    if not descending:
        return np.argsort(numbers, axis, kind="stable")  # NaN last
    # In reverse, a stable sort keeps the order of equal elements if both the input and the result are reversed.
    size = numbers.shape[axis]
    order = size - 1 - np.flip(np.argsort(np.flip(numbers, axis), axis, kind="stable"), axis)
    nan = np.take_along_axis(np.isnan(numbers) if numbers.dtype.kind == "f" else np.zeros(numbers.shape, bool), order, axis)
    return np.take_along_axis(order, np.argsort(nan, axis, kind="stable"), axis)


@oracle("sort", ["tuff_sort"], ALL)
def sort(draw: Draw, kind: str, form: str) -> Case:
    t, ti = TYPES[kind], TYPES[draw.pick(["i32", "u32", "i64", "u64"])]
    rank = draw.pick([1, 1, 2, 2, 3, 4, 8])
    shape = draw.sizes(rank, {1: 6000, 2: 3000, 3: 60}.get(rank, 7), 9000, 0.02)
    axis, descending = draw.between(0, rank - 1), draw.flip(0.5)
    size = shape[axis]
    k = draw.pick([0, 0, draw.between(0, size), min(size, draw.between(1, 9))])
    x = draw.bits(t, int(np.prod(shape))).reshape(shape)
    if draw.flip(0.5):
        x = draw.data.choice(draw.bits(t, 7), shape).astype(t.storage)
    if t.float and draw.flip(0.5):
        sign = np.array(1 << (8 * t.size - 1), f"u{t.size}").view(t.storage)
        draw.sprinkled(x, [t.storage.type(0), sign[()]], 40)
    operands = {"input": operand(draw, t, x, raw=True)}
    result = [(k or n) if a == axis else n for a, n in enumerate(shape)]
    wanted = draw.pick([("values", "indices"), ("values",), ("indices",)])
    for name in wanted:
        operands[name] = operand(draw, t if name == "values" else ti, result, output=True)
    first = tuple(slice(0, n) for n in result)

    def results(order: np.ndarray) -> dict:
        order = order[first]
        found = {"values": np.take_along_axis(x, order, axis), "indices": order.astype(ti.storage)}
        return {name: Bits(np.ascontiguousarray(found[name])) for name in wanted}

    references = {"numpy": lambda: results(_places(decode(t, x), axis, descending))}
    # PyTorch has NaN last in ascending order only, and no u64.
    if libraries.torch is not None and kind != "u64" and not (descending and t.float) and size:
        numbers = libraries.torch.from_numpy(np.ascontiguousarray(decode(t, x)))
        references["torch"] = lambda: results(
            libraries.torch.sort(numbers, dim=axis, descending=descending, stable=True).indices.numpy()
        )
    desc = {"dtype": t.code, "input": Handle("input"), "shape": shape, "rank": rank, "axis": axis, "k": k,
            "index_type": draw.pick([0, ti.code]) if ti.name == "i32" else ti.code, "descending": int(descending),
            **{name: Handle(name) for name in wanted}}  # fmt: skip
    return Case("tuff_sort", desc, operands, references)
