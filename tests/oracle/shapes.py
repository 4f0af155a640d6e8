"""permute, slice, concat, gather, scatter, select, pad and strided copies against NumPy's transpose, slicing, concatenate, take,
ufunc.at, pad and as_strided, and PyTorch's. Where nothing is computed results are compared bit for bit, so elements are
random bit patterns."""

from __future__ import annotations

import numpy as np

import libraries
from case import ALL, TYPES, Case, Draw, Handle, decode, encode, operand, oracle
from elements import U32, U64, Bits, Near


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


@oracle("gather", ["tuff_gather", "tuff_gather_ex"], ALL, ("axis", "elements", "places"))
def gather(draw: Draw, kind: str, form: str) -> Case:
    if form == "places":
        return _gather_places(draw, kind)
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


def _gather_places(draw: Draw, kind: str) -> Case:
    """The forms of 0.9.0: coordinates and negative indices."""
    t, shape = TYPES[kind], _shape(draw)
    ti, stored, fields, place, good, numbers = _index_form(draw, shape, draw.pick(["rows", "elements", "tuples"]))
    outer, places, inner = _viewed(shape, fields, numbers)
    x = _elements(draw, t, [outer, places, inner])
    operands = {
        "input": operand(draw, t, x, raw=True),
        "indices": operand(draw, ti, stored, raw=True),
        "output": operand(draw, t, [outer, place.size, inner], output=True),
    }
    named, at = good.reshape(-1), place.reshape(-1)

    def reference() -> dict:
        y = np.zeros([outer, place.size, inner], t.storage)
        y[:, named] = x[:, at[named]]
        return {"output": Bits(y)}

    desc = {"dtype": t.code, "input": Handle("input"), "indices": Handle("indices"), "output": Handle("output"), **fields}
    return Case("tuff_gather_ex", desc, operands, {"numpy": reference})


OPS = {"set": 1, "add": 2, "mul": 3, "max": 4, "min": 5}
PADS = {"constant": 0, "edge": 1, "reflect": 2, "symmetric": 3, "wrap": 4}


def _index_form(draw: Draw, shape: list[int], kind: str):
    """An index type, indices of a form ("rows", "elements" or "tuples") and their fields; for each index the place that
    it names in the flattened axes of the form (elements: of the whole shape), and whether it is in range."""
    axis, rank = draw.between(0, len(shape) - 1), len(shape)
    ti, negative = TYPES[draw.pick(["u32", "i32", "i64", "u64"])], draw.flip(0.5)
    numbers = draw.between(1, rank - axis) if kind == "tuples" else 1
    if kind == "elements":
        index_shape = [draw.size(9, 0.02) if a == axis else draw.between(min(n, 1), n) for a, n in enumerate(shape)]
    else:
        indexed = int(np.prod(shape[axis : axis + numbers]))
        others = int(np.prod(shape)) // max(1, indexed)
        index_shape = [draw.size(max(1, min(300, 6000 // max(1, others))), 0.02)]
    extents = np.array(shape[axis : axis + numbers], np.int64)
    drawn = draw.data.integers(0, np.maximum(extents, 1), [*index_shape, numbers])
    if ti.name[0] == "i" and draw.flip(0.6):
        drawn = np.where(draw.data.random(drawn.shape) < 0.4, drawn - extents, drawn)
    if draw.flip(0.5):
        n = int(extents[draw.between(0, numbers - 1)])
        outside = [n, n + 1, 2**31 - 1, *([-1, -(2**31), -n, -n - 1] if ti.name != "u32" else [2**32 - 1, 2**31])]
        if ti.size == 8:
            outside += [2**32, 2**32 + max(n - 1, 0), 2**63 - 1, -(2**63), -(2**32), 2**32 - n]
        drawn = draw.sprinkled(drawn.astype(np.int64), outside)
    stored = drawn.astype(ti.storage)
    exact = stored.astype(object)  # whole numbers of any size
    if negative:
        exact = np.where(exact < 0, exact + extents.astype(object), exact)
    good = np.all((exact >= 0) & (exact < extents.astype(object)), axis=-1).astype(bool)
    at = np.where(good[..., None], exact, 0).astype(np.int64)
    if kind == "elements":
        grid = list(np.indices(index_shape))
        grid[axis] = at[..., 0]
        place = np.ravel_multi_index(grid, shape) if good.any() else np.zeros(index_shape, np.int64)
    else:
        place = np.ravel_multi_index(list(np.moveaxis(at, -1, 0)), tuple(extents)) if good.any() else at[..., 0]
    fields = {"index_type": ti.code, "negative": int(negative), "axis": axis, "rank": rank, "shape": shape,
              "elementwise": int(kind == "elements"), "count": 0 if kind == "elements" else index_shape[0]}  # fmt: skip
    if kind == "elements":
        fields["index_shape"] = index_shape
    if kind == "tuples":
        fields["coordinates"] = numbers
    return ti, stored if kind == "tuples" else stored[..., 0], fields, place, good, numbers


def _viewed(shape: list[int], fields: dict, numbers: int) -> tuple[int, int, int]:
    """[outer][places][inner], of which indices name places."""
    axis = fields["axis"]
    if fields["elementwise"]:
        return 1, int(np.prod(shape)), 1
    return int(np.prod(shape[:axis])), int(np.prod(shape[axis : axis + numbers])), int(np.prod(shape[axis + numbers :]))


@oracle("scatter", ["tuff_scatter"], ALL, tuple(f"{op} {form}" for op in OPS for form in ("rows", "elements", "tuples")),
        has=lambda kind, form: form.startswith("set") or not kind.startswith("f8"))  # fmt: skip
def scatter(draw: Draw, kind: str, form: str) -> Case:
    t, shape = TYPES[kind], _shape(draw)
    op, how = form.split()
    ti, stored, fields, place, good, numbers = _index_form(draw, shape, how)
    outer, places, inner = _viewed(shape, fields, numbers)
    count = place.size
    # Products of floats stay near 1. Sums of 64-bit integers wrap, those of floats round.
    def elements(*of):  # fmt: skip
        if op == "set" or not t.float:
            return draw.bits(t, int(np.prod(of))).reshape(of)
        x = draw.values(of, draw.option(["normal", "spread", "whole"]))
        if op == "mul":
            x = 1 + x / 64
        elif draw.flip(0.2):
            x = draw.sprinkled(x, [np.nan, np.inf, -np.inf, 0.0, -0.0])
        return encode(t, x)

    before, updates = elements(outer, places, inner), elements(outer, count, inner)
    in_place = draw.option(["input", "in place", "same"])
    operands = {
        "indices": operand(draw, ti, stored, raw=True),
        "updates": operand(draw, t, updates, raw=True),
        "output": operand(draw, t, before if in_place != "input" else [outer, places, inner],
                          output=True, raw=in_place != "input"),
    }  # fmt: skip
    desc = {"dtype": t.code, "op": OPS[op], "indices": Handle("indices"), "updates": Handle("updates"),
            "output": Handle("output"), **fields}  # fmt: skip
    if in_place == "input":
        operands["input"] = operand(draw, t, before, raw=True)
        desc["input"] = Handle("input")
    elif in_place == "same":
        desc["input"] = Handle("output")
    names, rows = place.reshape(-1)[good.reshape(-1)], updates[:, good.reshape(-1)]

    def reference() -> dict:
        if op == "set":
            y = before.copy()
            for o in range(outer):
                y[o][names] = rows[o]  # the last of several wins
            return {"output": Bits(y)}
        if t.name == "bool":
            y, rows_ = before != 0, rows != 0
        elif t.float:
            y, rows_ = decode(t, before), decode(t, rows)
        else:
            y, rows_ = before.copy(), rows
        ways = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
        magnitude, terms = np.abs(y.astype(np.float64)), np.zeros(y.shape)
        untouched = np.ones(places, bool)
        untouched[names] = False
        with np.errstate(all="ignore"):
            for o in range(outer):
                ways[op].at(y[o], names, rows_[o])
                if t.float:
                    ways[op].at(magnitude[o], names, np.abs(rows_[o]))
                    np.add.at(terms[o], names, np.ones(rows_[o].shape))
        if not t.float:
            return {"output": Bits(np.where(untouched[None, :, None], before, y.astype(t.storage)))}
        # A tree of some depth, at most the number of updates: each addition or product rounds once.
        unit = U32 if t.size < 8 else U64
        bound = np.zeros(y.shape) if op in ("max", "min") else (terms + 1) * unit * magnitude * (1 + 1e-9 * (op == "add"))
        if op == "mul":
            bound *= 1.0 + (terms + 1) * unit
        return {"output": Near(y, np.where(untouched[None, :, None] | ~np.isfinite(bound), 0.0, bound))}

    return Case("tuff_scatter", desc, operands, {"numpy": reference})


@oracle("select", ["tuff_select"], ALL, ("mask", "runs"))
def select(draw: Draw, kind: str, form: str) -> Case:
    t, ti, n = TYPES[kind], TYPES[draw.pick(["i32", "u32", "i64", "u64"])], draw.size(9000, 0.03)
    tm = t if form == "runs" else TYPES[draw.option(["bool", "u8", kind])]
    few = draw.flip(0.7)
    # Few different elements, of which some are 0.
    judged = draw.bits(tm, n)
    if few:
        some = np.concatenate([draw.bits(tm, 2), np.zeros(1, tm.storage), encode(tm, np.array([np.nan if tm.float else 1.0]))])
        judged = draw.data.choice(some, n)
    x = judged if form == "runs" else draw.bits(t, n)
    capacity, equal_nan = draw.pick([n, n, draw.between(0, n + 5)]), draw.flip(0.5)
    names = draw.option([("output", "indices", "count"), ("output",), ("indices", "count"), ("count",), ("output", "count")])
    before = {"output": draw.bits(t, capacity), "indices": draw.bits(ti, capacity), "count": draw.bits(TYPES["u64"], 1)}
    types = {"output": t, "indices": ti, "count": TYPES["u64"]}
    operands = {name: operand(draw, types[name], before[name], output=True, raw=True) for name in names}
    if form == "runs" or "output" in names:
        operands["input"] = operand(draw, t, x, raw=True)
    if form == "mask":
        operands["mask"] = operand(draw, tm, judged, raw=True)

    def reference() -> dict:
        numbers = decode(tm, judged)
        if form == "mask":
            chosen = numbers != 0
        else:
            chosen = np.ones(n, bool)
            same = numbers[1:] == numbers[:-1]
            if equal_nan and numbers.dtype.kind in "fc":
                same |= np.isnan(numbers[1:]) & np.isnan(numbers[:-1])
            chosen[1:] = ~same
        places = np.flatnonzero(chosen)
        found, room = {name: before[name].copy() for name in names}, min(capacity, places.size)
        if "output" in names:
            found["output"][:room] = x[places[:room]]
        if "indices" in names:
            found["indices"][:room] = places[:room]
        if "count" in names:
            found["count"][0] = places.size
        return {name: Bits(values) for name, values in found.items()}

    desc = {"dtype": t.code, "op": 2 if form == "runs" else 1, "mask_type": 0 if tm is t else tm.code, "n": n,
            "index_type": draw.pick([0, ti.code]) if ti.name == "i32" else ti.code, "capacity": capacity,
            "equal_nan": int(equal_nan), **{name: Handle(name) for name in operands}}  # fmt: skip
    return Case("tuff_select", desc, operands, {"numpy": reference})


@oracle("pad", ["tuff_pad"], ALL, tuple(PADS))
def pad(draw: Draw, kind: str, form: str) -> Case:
    t, shape = TYPES[kind], _shape(draw)
    while form != "constant" and 0 in shape:
        shape[shape.index(0)] = 1
    before, after, crops = [], [], draw.flip(0.4)
    for n in shape:
        most = draw.pick([0, 1, 3, 2 * n if n < 6 and len(shape) < 4 else 1])
        before.append(draw.between(-min(n // 2, 4) if crops else 0, most))
        after.append(draw.between(-min(n // 2, 4) if crops else 0, most))
    out_shape = [n + b + a for n, b, a in zip(shape, before, after)]
    x = _elements(draw, t, shape)
    value = draw.pick([0.0, -1.5, 1e9, float("nan"), float("-inf"), 0.1])
    integer = 0
    if not t.float:
        info = np.iinfo(t.storage)
        integer = draw.pick([0, 1] if kind == "bool" else [0, 1, int(info.min), int(info.max)])
    operands = {"input": operand(draw, t, x, raw=True), "output": operand(draw, t, out_shape, output=True)}
    desc = {"dtype": t.code, "mode": PADS[form], "rank": len(shape), "input": Handle("input"),
            "output": Handle("output"), "shape": shape, "before": before, "after": after}  # fmt: skip
    if form == "constant":
        desc["value"] = value if t.float else 0.0
        desc["integer"] = integer if integer < 2**63 else integer - 2**64

    def reference() -> dict:
        # Padded as if nothing were removed, then cropped.
        widths = [(max(b, 0), max(a, 0)) for b, a in zip(before, after)]
        if form == "constant":
            fill = encode(t, np.array(value)) if t.float else np.array(integer).astype(t.storage)
            y = np.pad(x, widths, constant_values=fill[()])
        elif form == "wrap":  # NumPy's own is wrong beyond a whole axis before 1.25
            y = x
            for axis, (n, (b, a)) in enumerate(zip(shape, widths)):
                y = np.take(y, np.arange(-b, n + a), axis, mode="wrap")
        else:
            y = np.pad(x, widths, mode=form)
        y = y[tuple(slice(max(-b, 0), size - max(-a, 0)) for b, a, size in zip(before, after, y.shape))]
        return {"output": Bits(np.ascontiguousarray(y))}

    return Case("tuff_pad", desc, operands, {"numpy": reference})


@oracle("copy_strided", ["tuff_copy_strided"], ALL)
def copy_strided(draw: Draw, kind: str, form: str) -> Case:
    t, shape = TYPES[kind], _shape(draw)
    if draw.flip(0.03):
        shape = []
    rank = len(shape)

    def places(repeats: bool) -> tuple[int, list[int], int]:
        """The element at index 0, strides, and how many elements they reach."""
        order = list(range(rank))
        draw.fast.shuffle(order)
        strides, reach, first = [0] * rank, 1, 0
        for axis in order:
            n = shape[axis]
            if repeats and draw.flip(0.2):
                continue
            stride = reach * draw.pick([1, 1, 1, 2, 3] if reach < 20000 else [1]) + draw.pick([0, 0, 1])
            if n == 1:
                stride = draw.pick([stride, 0, 2**62, -(2**62)])
            elif draw.flip(0.3):
                stride = -stride
            strides[axis] = stride
            if n > 1:
                reach += abs(stride) * (n - 1)
                first += abs(stride) * (n - 1) if stride < 0 else 0
        return first, strides, reach

    (in_first, in_strides, in_reach), (out_first, out_strides, out_reach) = places(True), places(False)
    in_first, out_first = in_first + draw.between(0, 3), out_first + draw.between(0, 3)
    x = draw.bits(t, in_reach + 6)
    before = draw.bits(t, out_reach + 6)
    operands = {"input": operand(draw, t, x, raw=True), "output": operand(draw, t, before, raw=True, output=True)}
    desc = {"dtype": t.code, "input": Handle("input"), "output": Handle("output"), "input_first": in_first,
            "output_first": out_first, "input_strides": in_strides, "output_strides": out_strides, "shape": shape,
            "rank": rank}  # fmt: skip

    def reference() -> dict:
        def view(whole, first, strides):
            steps = [s * t.size if n > 1 else 0 for s, n in zip(strides, shape)]
            return np.lib.stride_tricks.as_strided(whole[first:], shape, steps)

        y = before.copy()
        if 0 not in shape:
            view(y, out_first, out_strides)[...] = view(x, in_first, in_strides)
        return {"output": Bits(y)}

    return Case("tuff_copy_strided", desc, operands, {"numpy": reference})
