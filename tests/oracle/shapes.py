"""permute, slice, concat and gather against NumPy's transpose, slicing, concatenate and take, and PyTorch's. Results
are compared bit for bit, so elements are random bit patterns."""

from __future__ import annotations

import numpy as np

import libraries
from case import ALL, TYPES, Case, Draw, Handle, operand, oracle
from elements import Bits


def _elements(draw: Draw, t, shape) -> np.ndarray:
    return draw.bits(t, int(np.prod(shape))).reshape(shape)


def _shape(draw: Draw, zero: float = 0.02) -> list[int]:
    rank = draw.pick([1, 2, 2, 3, 3, 4, 5, 6, 8])
    return draw.sizes(rank, {1: 3000, 2: 90, 3: 40}.get(rank, 9), 6000, zero)


def _tensor(x: np.ndarray):
    """The bits as PyTorch's signed integers of the same size."""
    return libraries.torch.from_numpy(np.ascontiguousarray(x).view(f"i{x.itemsize}"))


def _back(x, like: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.contiguous().numpy()).view(like.dtype)


def _references(name: str, numpy_way, torch_way, like) -> dict:
    references = {"numpy": lambda: {name: Bits(np.ascontiguousarray(numpy_way()))}}
    if libraries.torch is not None and torch_way is not None:
        references["torch"] = lambda: {name: Bits(_back(torch_way(), like))}
    return references


@oracle("permute", ["tuff_permute", "tuff_permute_ex"], ALL)
def permute(draw: Draw, kind: str, form: str) -> Case:
    t, shape = TYPES[kind], _shape(draw)
    order = list(range(len(shape)))
    draw.fast.shuffle(order)
    x = _elements(draw, t, shape)
    out_shape = [shape[i] for i in order]
    operands = {"input": operand(draw, t, x, raw=True), "output": operand(draw, t, out_shape, output=True)}
    references = _references("output", lambda: np.transpose(x, order), lambda: _tensor(x).permute(order), x)
    if draw.flip(0.5):
        return Case("tuff_permute", [t.code, Handle("input"), Handle("output"), shape, len(shape), order], operands,
                    references)  # fmt: skip
    desc = {"dtype": t.code, "input": Handle("input"), "output": Handle("output"), "shape": shape, "order": order,
            "rank": len(shape)}  # fmt: skip
    return Case("tuff_permute_ex", desc, operands, references)


@oracle("slice", ["tuff_slice", "tuff_slice_ex"], ALL)
def slice_(draw: Draw, kind: str, form: str) -> Case:
    t, shape = TYPES[kind], _shape(draw)
    start, step, out_shape = [], [], []
    steps = draw.pick(["ones", "forward", "any"])
    for n in shape:
        first = draw.between(0, max(n - 1, 0))
        by = 1 if steps == "ones" else draw.pick([1, 2, 3, 7]) * (-1 if steps == "any" and draw.flip(0.5) else 1)
        most = 0 if n == 0 else (first // -by if by < 0 else (n - 1 - first) // by) + 1
        start.append(first)
        step.append(by)
        out_shape.append(draw.pick([most, most, draw.between(0, most)]))
    x = _elements(draw, t, shape)
    operands = {"input": operand(draw, t, x, raw=True), "output": operand(draw, t, out_shape, output=True)}
    # Python's slices; a stop of None ends before index 0 for negative steps.
    stops = [s + n * d for s, n, d in zip(start, out_shape, step)]
    places = tuple(slice(s, None if e < 0 else e, d) if n else slice(0, 0) for s, e, d, n in
                   zip(start, stops, step, out_shape))  # fmt: skip

    def torch_way():
        y = _tensor(x)
        for axis, (s, n, d) in enumerate(zip(start, out_shape, step)):
            y = y.index_select(axis, libraries.torch.arange(n) * d + s)
        return y

    references = _references("output", lambda: x[places], torch_way, x)
    if draw.flip(0.5):
        arguments = [t.code, Handle("input"), Handle("output"), shape, len(shape), start,
                     None if steps == "ones" else step, out_shape]  # fmt: skip
        return Case("tuff_slice", arguments, operands, references)
    desc = {"dtype": t.code, "input": Handle("input"), "output": Handle("output"), "shape": shape, "start": start,
            "step": [0 if d == 1 and draw.flip(0.5) else d for d in step], "out_shape": out_shape,
            "rank": len(shape)}  # fmt: skip
    return Case("tuff_slice_ex", desc, operands, references)


@oracle("concat", ["tuff_concat", "tuff_concat_ex"], ALL)
def concat(draw: Draw, kind: str, form: str) -> Case:
    t, shape = TYPES[kind], _shape(draw)
    axis, count = draw.between(0, len(shape) - 1), draw.pick([1, 2, 2, 3, 5, 20])
    sizes = [draw.size(draw.pick([3, max(1, shape[axis])]), 0.1) for _ in range(count)]
    parts = [_elements(draw, t, shape[:axis] + [n] + shape[axis + 1 :]) for n in sizes]
    operands = {f"input{i}": operand(draw, t, x, raw=True) for i, x in enumerate(parts)}
    names = list(operands)
    if count > 1 and draw.flip(0.2):  # the same one twice
        parts[1], sizes[1], names[1] = parts[0], sizes[0], names[0]
        del operands["input1"]
    shape[axis] = sum(sizes)
    operands["output"] = operand(draw, t, shape, output=True)
    references = _references("output", lambda: np.concatenate(parts, axis),
                             lambda: libraries.torch.cat([_tensor(p) for p in parts], axis), parts[0])  # fmt: skip
    inputs = [Handle(n) for n in names]
    if draw.flip(0.5):
        return Case("tuff_concat", [t.code, inputs, sizes, count, Handle("output"), shape, len(shape), axis], operands,
                    references)  # fmt: skip
    desc = {"dtype": t.code, "inputs": inputs, "sizes": sizes, "count": count, "rank": len(shape),
            "output": Handle("output"), "shape": shape, "axis": axis}  # fmt: skip
    return Case("tuff_concat_ex", desc, operands, references)


@oracle("gather", ["tuff_gather", "tuff_gather_ex"], ALL, ("axis", "elements"))
def gather(draw: Draw, kind: str, form: str) -> Case:
    t, shape, elementwise = TYPES[kind], _shape(draw), form == "elements"
    axis = draw.between(0, len(shape) - 1)
    ti = TYPES[draw.pick(["u32", "i32", "i64", "u64"])]
    if elementwise:
        index_shape = [draw.size(9, 0.02) if a == axis else draw.between(min(n, 1), n) for a, n in enumerate(shape)]
    else:
        index_shape = [draw.size(max(1, min(60, 6000 * max(shape[axis], 1) // max(1, int(np.prod(shape))))), 0.02)]
    n = shape[axis]
    indices = draw.data.integers(0, max(n, 1), index_shape)
    if draw.flip(0.5):  # some out of range
        outside = [n, n + 1, 2**31 - 1, *([-1, -(2**31), -n - 1] if ti.name != "u32" else [2**32 - 1, 2**31])]
        if ti.size == 8:  # some whose lower 32 bits are in range; negative ones are the largest numbers of u64
            outside += [2**32, 2**32 + max(n - 1, 0), 2**63 - 1, -(2**63), -(2**32)]
        indices = draw.sprinkled(indices.astype(np.int64), outside)
    x = _elements(draw, t, shape)
    operands = {
        "input": operand(draw, t, x, raw=True),
        "indices": operand(draw, ti, indices.astype(ti.storage), raw=True),
    }
    out_shape = index_shape if elementwise else shape[:axis] + index_shape + shape[axis + 1 :]
    operands["output"] = operand(draw, t, out_shape, output=True)
    names_one = (indices >= 0) & (indices < n)
    wide = np.broadcast_to(names_one.reshape([-1 if a == axis else 1 for a in range(len(shape))]), out_shape) \
        if not elementwise else names_one  # fmt: skip

    def numpy_way():
        if n == 0:
            return np.zeros(out_shape, t.storage)
        safe = np.where(names_one, indices, 0)
        if not elementwise:
            return np.where(wide, np.take(x, safe, axis), t.storage.type(0))
        inside = x[tuple(slice(0, s) if a != axis else slice(None) for a, s in enumerate(index_shape))]
        return np.where(wide, np.take_along_axis(inside, safe, axis), t.storage.type(0))

    def torch_way():
        if n == 0:
            return _tensor(np.zeros(out_shape, t.storage))
        torch = libraries.torch
        safe = torch.from_numpy(np.where(names_one, indices, 0).astype(np.int64))
        y = torch.gather(_tensor(x), axis, safe) if elementwise else torch.index_select(_tensor(x), axis, safe)
        return torch.where(torch.from_numpy(wide.copy()), y, torch.zeros_like(y))

    references = _references("output", numpy_way, torch_way, x)
    if not elementwise and draw.flip(0.5):
        arguments = [t.code, ti.code, Handle("input"), Handle("indices"), Handle("output"), shape, len(shape), axis,
                     index_shape[0]]  # fmt: skip
        return Case("tuff_gather", arguments, operands, references)
    desc = {"dtype": t.code, "index_type": ti.code, "elementwise": int(elementwise), "input": Handle("input"),
            "indices": Handle("indices"), "output": Handle("output"), "shape": shape, "rank": len(shape), "axis": axis,
            "count": 0 if elementwise else index_shape[0]}  # fmt: skip
    if elementwise:
        desc["index_shape"] = index_shape
    return Case("tuff_gather_ex", desc, operands, references)
