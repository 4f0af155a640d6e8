"""Formulas that end with reductions, and such with several outputs, against NumPy.

The value that is reduced is an input, or one operation of two, which f32 rounds as IEEE 754 says: the oracle rounds it
likewise, and the bounds are those of the reduction alone (rows.py)."""

from __future__ import annotations

import numpy as np

from case import TYPES, Case, Draw, Formula, Handle, dense, operand, oracle
from elements import U32, U64, Near
from rows import ANY, ARGMAX, ARGMIN, COUNT_NONZERO, MAX, MIN, NAMES, PROD, STD, VAR, _outputs, _reduce_bound, _reduced, _wrapped

# What is reduced, of inputs x and y, in the type that the formula computes in.
ELEMENTS = {
    "x": lambda x, y: x,
    "x - y": lambda x, y: x - y,
    "abs(x * y)": lambda x, y: np.abs(x * y),
    "max(x, y)": np.maximum,
}
ELEMENTS_OF_BOOL = {"x": lambda x, y: x, "x && y": lambda x, y: x & y}
KINDS = tuple(kind for kind in TYPES if not kind.startswith("f8"))


def _input(draw: Draw, t, shape: list[int], values: str, least: int):
    """Elements of the given shape, some of which are repeated along an axis or lie in another order."""
    axes = list(range(len(shape)))
    order = draw.fast.sample(axes, len(axes)) if draw.flip(0.4) else axes
    strides = [0] * len(shape)
    for axis, stride in zip(order, dense([shape[axis] for axis in order])):
        strides[axis] = stride
    if draw.flip(0.3):
        strides[draw.pick(axes)] = 0
    if t.float:
        x = draw.values(shape, "normal" if values == "special" else values)
        if values == "special":
            x = draw.sprinkled(x, [np.nan, np.inf, -np.inf, 0.0, -0.0])
    elif t.name == "bool":
        x = draw.data.integers(0, 2, shape)
    else:
        # Differences of unsigned numbers do not wrap: as floats, numbers near 2^64 would not be exact.
        least = least if np.iinfo(t.storage).min == 0 else -50
        x = draw.data.integers(least, least + 50, shape, endpoint=True)
    return operand(draw, t, x, strides), strides


def _result(op: int, x: np.ndarray, kept: list[int], reduced: list[int], correction: float, to) -> Near:
    """The reduction of x along some axes: x is as the formula computes it."""
    integers = x.dtype.kind in "iu"
    at_once = np.transpose(x, kept + reduced).reshape([x.shape[a] for a in kept] + [-1])
    axis = len(kept)
    whole_result = not to.float and op not in (ARGMAX, ARGMIN)
    if integers and to.float:
        at_once = at_once.astype(np.float64)
    elif not integers and op not in (ARGMAX, ARGMIN, ANY, COUNT_NONZERO):
        at_once = at_once.astype(np.longdouble if x.dtype == np.float64 else np.float64)
    y = _reduced(op, at_once, axis, correction)
    if whole_result:
        return Near(_wrapped(to, y))
    if not to.float:
        return Near(y)
    u = U64 if to.name == "f64" else U32
    bound = _reduce_bound(op, at_once, axis, y, correction, u)
    if integers:  # converting the elements rounds them
        bound = bound + 4 * u * np.max(np.abs(at_once), axis=axis, initial=0.0) * (1 + (op == VAR))
    return Near(y, np.where(np.isfinite(y), bound, 0.0))


@oracle("expr", ["tuff_expr_run"], KINDS, ("one", "several"))
def expression(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    computed = TYPES["f32"] if kind in ("f16", "bf16") else t
    choices = ELEMENTS_OF_BOOL if kind == "bool" else ELEMENTS
    rank = draw.option([1, 2, 3])
    values = draw.pick(["whole", "normal", "spread", "special"])
    several = form == "several"
    names = draw.slow.sample(NAMES, draw.option([1, 2]) if several else 1)
    wants = [("reduction", name) for name in names] + ([("elements", "")] if several else [])
    draw.slow.shuffle(wants)
    small = any(NAMES.index(name) + 1 == PROD for name in names)
    shape = draw.sizes(rank, 12 if small else 60, 60 if small else 5000)
    x, x_strides = _input(draw, t, shape, "whole" if small else values, 50)
    y, y_strides = _input(draw, t, shape, "whole" if small else values, 0)
    operands, arguments = {"x": x, "y": y}, []
    formula = Formula([("x", t, x_strides), ("y", t, y_strides)], [], shape)
    for place, (want, name) in enumerate(wants):
        elements = draw.option(list(choices))
        output = f"out{place}"
        op = NAMES.index(name) + 1 if name else 0
        if want == "elements":
            formula.outputs.append((output, computed, f"{output} = {elements}"))
            operands[output] = operand(draw, computed, shape, output=True)
            arguments.append((output, op, elements, None, None, 0.0, computed))
            continue
        count = draw.option(list(range(1, rank + 1)))
        reduced = sorted(draw.slow.sample(range(rank), count))
        kept = [axis for axis in range(rank) if axis not in reduced]
        options = draw.option(_outputs(op, computed))
        to = TYPES[options]
        n = int(np.prod([shape[axis] for axis in reduced]))
        correction = float(draw.option([0, 1])) if op in (VAR, STD) else 0.0
        written = f", correction={int(correction)}" if op in (VAR, STD) else ""
        if n <= correction:  # 0 / 0 where x is exact, and anything where it is rounded
            written, correction = "", 0.0
        axes = ", ".join(str(axis - rank if draw.maybe(0.5) else axis) for axis in reduced)
        formula.outputs.append((output, to, f"{output} = {name}({elements}, axis=({axes},){written})"))
        operands[output] = operand(draw, to, [shape[axis] for axis in kept], output=True)
        arguments.append((output, op, elements, kept, reduced, correction, to))

    def reference() -> dict:
        results = {}
        a, b = (o.values.astype(np.dtype(np.float32) if t.float and kind != "f64" else t.storage) for o in (x, y))
        wide = np.float64 if t.float else np.uint64 if kind == "u64" else np.int64
        with np.errstate(all="ignore"):
            for output, op, elements, kept, reduced, correction, to in arguments:
                value = choices[elements](a, b)
                if op == 0:
                    results[output] = Near(value.astype(wide))
                else:
                    value = value if t.float else value.astype(wide)
                    results[output] = _result(op, value, kept, reduced, correction, to)
        return results

    call = [formula, [Handle("x"), Handle("y")], [Handle(name) for name, *_ in formula.outputs]]
    return Case("tuff_expr_run", call, operands, {"numpy": reference}, {"formula": formula.text, "shape": shape})
