"""reduce, scans and softmax against NumPy, scipy.special.softmax and log_softmax, and PyTorch."""

from __future__ import annotations

import numpy as np
import scipy.special

import libraries
from case import TYPES, Case, Draw, Handle, operand, oracle, types_of
from elements import FLT_MIN, U32, U64, Near, gamma, sum_depth

(SUM, MAX, MIN, MEAN, PROD, ARGMAX, ARGMIN, ANY, ALL, COUNT_NONZERO, SUM_SQUARES, L1, L2, VAR, STD,
 LOGSUMEXP) = range(1, 17)  # fmt: skip
NAMES = ("sum max min mean prod argmax argmin any all count_nonzero sum_squares l1 l2 var std logsumexp").split()
INTEGERS = "i8 u8 i16 u16 i32 u32 i64 u64".split()


def _shape(draw: Draw, zero_axis: float = 0.0) -> tuple[list[int], int]:
    """A shape of rank 1 to 8 and one of its axes, long or short."""
    rank = draw.pick([1, 2, 2, 3, 3, 4, 8])
    axis = draw.between(0, rank - 1)
    shape = draw.sizes(rank, 12 if rank > 3 else 60, 3000, 0.01)
    if draw.flip(0.3):
        room = max(1, 40_000 // max(1, int(np.prod(shape)) // max(1, shape[axis])))
        shape[axis] = draw.size(min(room, 9000))
    if draw.flip(zero_axis):
        shape[axis] = 0
    elif shape[axis] == 0:
        shape[axis] = 1
    return shape, axis


def _outputs(op: int, t) -> list[str]:
    """The types of results, the usual one first: the table of tuff_reduce() in tuff.h."""
    if op in (MAX, MIN):
        return [t.name]
    if op in (ARGMAX, ARGMIN):
        return ["u32", "i64"]
    if op in (ANY, ALL):
        return ["bool"]
    if op == COUNT_NONZERO:
        return ["i64", "i32", "u32", "u64"]
    if t.name == "f64":
        return ["f64"]
    if t.float:
        return [t.name, "f32", "f64"]
    if op in (SUM, PROD, SUM_SQUARES, L1):
        return ["i32" if t.name == "bool" else t.name, *INTEGERS]
    return ["f32", "f64"]


def _wrapped(t, y) -> np.ndarray:
    """Integers modulo 2^bits, as decode() gives them."""
    with np.errstate(all="ignore"):
        y = np.asarray(y).astype(np.uint64).astype(t.storage)
    return y if t.name == "u64" else y.astype(np.int64)


def _reduced(op: int, x: np.ndarray, axis: int, correction: float) -> np.ndarray:
    """In float64 (long double for f64), or in integers of 64 bits, which wrap."""
    n = x.shape[axis]
    if op in (ANY, ALL):
        return getattr(np, NAMES[op - 1])(x != 0, axis=axis).astype(np.int64)
    if op == COUNT_NONZERO:
        return np.asarray(np.count_nonzero(x, axis=axis))
    if op == SUM_SQUARES:
        return np.sum(x * x, axis=axis)
    if op == L1:
        return np.sum(x if x.dtype == np.uint64 else np.abs(x), axis=axis)
    if op == L2:
        return np.sqrt(np.sum(x * x, axis=axis))
    if op == LOGSUMEXP:
        return np.asarray(np.log(np.sum(np.exp(x - _top(x, axis)), axis=axis)) + np.squeeze(_top(x, axis), axis))
    if n == 0 and op in (MEAN, VAR, STD):
        return np.full(np.sum(x, axis=axis).shape, np.nan)
    if op in (VAR, STD):
        mean = np.mean(x, axis=axis, keepdims=True)
        total = np.sum((x - mean) ** 2, axis=axis)
        y = total / max(n - correction, 0) if n > correction else np.where(total > 0, np.inf, np.nan)
        return np.sqrt(y) if op == STD else y
    return np.asarray(getattr(np, NAMES[op - 1])(x, axis=axis))


def _top(x: np.ndarray, axis: int) -> np.ndarray:
    """The largest elements; 0 instead of infinities."""
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    return np.where(np.isinf(top), 0.0, top)


def _reduce_bound(op: int, x: np.ndarray, axis: int, y: np.ndarray, correction: float, u: float) -> np.ndarray | float:
    """docs/accuracy.md: gamma of the longest chain of additions, of the sum of magnitudes; and what the operation adds.
    x are the elements as the kernel computes with them."""
    n = x.shape[axis]
    depth = sum_depth(n)
    if op in (SUM, L1):
        return gamma(depth, u) * np.sum(np.abs(x), axis=axis)
    if op == MEAN:  # and a division or a product
        return gamma(depth + 2, u) * np.sum(np.abs(x), axis=axis) / max(n, 1)
    if op == PROD:  # n - 1 roundings, in any order
        return gamma(n, u) * np.abs(y)
    if op == SUM_SQUARES:
        return gamma(depth + 1, u) * np.abs(y)
    if op == L2:
        return gamma(depth + 4, u) * np.abs(y)
    if op == LOGSUMEXP:
        # The largest magnitude bounds what rounding a difference costs; exp has an error of 4 ULP.
        distance = np.abs(x - _top(x, axis))
        spread = np.max(np.where(np.isfinite(distance), distance, 0.0), axis=axis, initial=0.0)
        return 2 * gamma(depth + 10, u) + 2 * u * spread + 6 * u * np.abs(y)
    if op in (VAR, STD) and n:
        # One pass: the means of parts are relative to the first element. That of a part with the mean M is off by at most
        # g |M|, and so are the distances in it. Summed over the parts, products with the distances are at most
        # g sqrt(sum of M^2) sqrt(sum of distances^2), by Cauchy and Schwarz.
        g = gamma(depth + 2, u)
        total = np.sum((x - np.mean(x, axis=axis, keepdims=True)) ** 2, axis=axis)
        around = np.sum((x - np.take(x, [0], axis=axis)) ** 2, axis=axis)
        off = gamma(depth + 6, u) * total + 2 * g * np.sqrt(around * total) + 2 * g * g * around
        off = off / (n - correction)
        if op == VAR:
            return off + 4 * u * np.abs(y)
        return np.minimum(off / np.maximum(np.abs(y), 1e-300), np.sqrt(off)) + 6 * u * np.abs(y)
    return 0.0


@oracle("reduce", ["tuff_reduce", "tuff_reduce_ex"], types_of("reduce"), tuple(NAMES))
def reduce(draw: Draw, kind: str, form: str) -> Case:
    t, op = TYPES[kind], NAMES.index(form) + 1
    values = draw.pick(["whole", "normal", "spread", "special"])
    has_empty = op not in (MAX, MIN, ARGMAX, ARGMIN)
    shape, axis = _shape(draw, 0.05 if has_empty else 0.0)
    described = draw.flip(0.7)
    count = draw.between(1, len(shape) - axis) if described and draw.flip(0.3) else 1
    if not has_empty:
        shape[axis : axis + count] = [size or 2 for size in shape[axis : axis + count]]
    n, out_shape = int(np.prod(shape[axis : axis + count])), shape[:axis] + shape[axis + count :]
    outputs = _outputs(op, t)
    chosen = draw.option(outputs) if draw.maybe(0.6) else outputs[0]
    to = TYPES[chosen if described else outputs[0]]
    whole_result = not to.float and op not in (ARGMAX, ARGMIN)
    correction = 0.0
    if op in (VAR, STD) and described and n > 2:
        correction = draw.pick([0.0, 1.0, 0.5, -1.0])
    if t.name == "bool":
        x = draw.data.integers(0, 2, shape)
    elif not t.float:
        ends = np.iinfo(t.storage)
        small = not whole_result and op not in (ARGMAX, ARGMIN)
        low, high = (max(ends.min, -50), 50) if small or draw.flip(0.4) else (ends.min, ends.max)
        x = draw.data.integers(low, high, shape, dtype=t.storage, endpoint=True)
        if op == PROD:  # odd factors, whose products wrap but do not become 0
            x = x | t.storage.type(1)
        if draw.flip(0.3) and not small:
            x = draw.sprinkled(x, [ends.min, ends.max, 0])
    elif op == PROD:
        # Near 1, so that products stay in range: their logarithm is a random walk with small steps.
        spread = min(0.2, 2.0 / np.sqrt(max(n, 1)))
        x = draw.data.choice([-1.0, 1.0], shape) * np.exp(draw.data.standard_normal(shape) * spread)
    else:
        x = draw.values(shape, "normal" if values == "special" else values)
        if op == LOGSUMEXP and values == "normal" and draw.flip(0.5):
            x = x * 300.0  # exp would overflow
    if op in (ANY, ALL, COUNT_NONZERO):
        x = np.where(draw.data.random(shape) < draw.pick([0.01, 0.5, 0.99]), np.zeros_like(x), x)
    if values == "special" and op != PROD and t.float:
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf, 0.0, -0.0])
    operands = {"input": operand(draw, t, x), "output": operand(draw, to, out_shape, output=True)}
    x = operands["input"].values
    u = U64 if to.name == "f64" else U32

    def reference() -> dict:
        at_once = x.reshape(shape[:axis] + [n] + shape[axis + count :])
        if not t.float and not whole_result and op not in (ARGMAX, ARGMIN):
            at_once = at_once.astype(np.float64)
        if t.name == "f64" and op not in (ARGMAX, ARGMIN, ANY, ALL, COUNT_NONZERO):
            at_once = at_once.astype(np.longdouble)
        with np.errstate(all="ignore"):
            y = _reduced(op, at_once, axis, correction)
            if whole_result:
                return {"output": Near(_wrapped(to, y))}
            bound = 0.0 if op == SUM and values == "whole" else _reduce_bound(op, at_once, axis, y, correction, u)
            # Converting an integer to the type that is computed in rounds it.
            if not t.float and to.float:
                bound = bound + 4 * u * np.max(np.abs(at_once), axis=axis, initial=0.0) * (1 + (op in (VAR,)))
            return {"output": Near(y, np.where(np.isfinite(y), bound, 0.0) if to.float else 0.0)}

    def torch() -> dict:
        data, name = libraries.tensor(x), form
        if op in (MAX, MIN):
            name = "a" + form
        with np.errstate(all="ignore"):
            if op in (VAR, STD):
                y = getattr(libraries.torch, name)(data, dim=axis, correction=correction).numpy()
            else:
                y = getattr(libraries.torch, name)(data, dim=axis).numpy()
            bound = 0.0 if op == SUM and values == "whole" else _reduce_bound(op, x, axis, y, correction, u)
            return {"output": Near(y, np.where(np.isfinite(y), bound, 0.0) if to.float else 0.0)}

    references = {"numpy": reference}
    same = op <= ARGMIN or op in (VAR, STD, LOGSUMEXP)
    if libraries.torch is not None and n and count == 1 and t.float and t.name != "f64" and same and u == U32:
        references["torch"] = torch
    if not described:
        return Case("tuff_reduce", [t.code, op, Handle("input"), Handle("output"), shape, len(shape), axis], operands,
                    references)  # fmt: skip
    desc = {"dtype": t.code, "op": op, "rank": len(shape), "input": Handle("input"), "output": Handle("output"),
            "shape": shape, "axis": axis, "axis_count": 0 if count == 1 and draw.flip(0.5) else count,
            "output_type": 0 if to.name == outputs[0] and draw.flip(0.5) else to.code,
            "correction": correction}  # fmt: skip
    return Case("tuff_reduce_ex", desc, operands, references, {"values": values})


@oracle("softmax", ["tuff_softmax", "tuff_softmax_ex"], types_of("softmax"), forms=("exp", "log"))
def softmax(draw: Draw, kind: str, form: str) -> Case:
    t, logarithm = TYPES[kind], form == "log"
    masked = draw.option(["none", "none", "added", "bytes"])
    scaled = draw.maybe(0.5)
    shape, axis = _shape(draw)
    n, outer = shape[axis], int(np.prod(shape[:axis]))
    behind = shape[axis:]
    scale = draw.pick([0.125, -2.5, 3.0, draw.fast.uniform(-2, 2) or 1.0]) if scaled else 0.0
    values = draw.pick(["normal", "wide", "special"])
    x = draw.values(shape) * (30.0 if values == "wide" else 3.0)
    if values == "special":
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf, -np.inf])
        if x.size and draw.flip(0.3):
            np.moveaxis(x, axis, -1).reshape(-1, n)[draw.between(0, x.size // n - 1)] = -np.inf
    in_place = draw.flip(0.25)
    operands = {"input": operand(draw, t, x, output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, shape, output=True)
    rows = repeat = 0
    used = np.float64(np.float32(scale)) if scale else 1.0
    with np.errstate(invalid="ignore"):
        z = used * x
    hidden = np.zeros(shape, bool)
    error = U32 * np.abs(z) if scaled else np.zeros(shape)
    if masked != "none":
        # Rows of the mask: all, one, or several that repeat.
        rows, repeat = draw.pick([(0, 0), (1, 0), (draw.between(1, 4), draw.between(0, 3))])
        count = rows or outer
        mask = draw.values([count, *behind]) * 2
        take = np.arange(outer) // max(repeat, 1) % max(count, 1)
        if masked == "added":
            if n > 5:
                mask = draw.sprinkled(mask, [-np.inf])
            operands["mask"] = operand(draw, t, mask)
            added = operands["mask"].values[take].reshape(shape)
            with np.errstate(invalid="ignore"):
                z = z + added
                error = error + np.where(np.isfinite(z), U32 * np.abs(z), 0)
        else:
            seen = draw.data.integers(0, 3, mask.shape) * draw.data.integers(1, 100, mask.shape)
            if count and draw.flip(0.3):
                seen[draw.between(0, count - 1)] = 0
            operands["mask"] = operand(draw, TYPES["u8"], seen)
            hidden = (operands["mask"].values[take] == 0).reshape(shape)

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            seen = np.where(hidden, -np.inf, z)
            if library == "torch":
                function = libraries.torch.log_softmax if logarithm else libraries.torch.softmax
                y = function(libraries.tensor(seen), dim=axis).numpy()
            else:
                y = (scipy.special.log_softmax if logarithm else scipy.special.softmax)(seen, axis=axis)
            # As in tuff.h: NaN for a slice with an element that is NaN or infinite, or with minus infinity only; but 0
            # for a slice that the mask hides entirely.
            whole = hidden.all(axis=axis, keepdims=True)
            y = np.where(whole, -np.inf if logarithm else 0.0, y)
            highest = np.max(seen, axis=axis, keepdims=True, initial=-np.inf)
            y = np.where(~whole & ~np.isfinite(highest), np.nan, y)
            return {"input" if in_place else "output": Near(y, _bound(seen, y, np.where(hidden, 0, error)))}

    def _bound(s, y, error):
        """y = e^(z - m) / sum e^(z - m), or its logarithm. The argument is rounded (u |z - m|), exp has an error of at
        most 3 + 2 |x| ULP (Vulkan's precision of exp, which is within 4 ULP for terms that count), the sum one of
        gamma of its depth, the division 2.5 ULP. A single-pass kernel rescales at most once for each element that a
        lane reads, with arguments that add up to the range. Results below FLT_MIN may be zero."""
        s = np.where(np.isfinite(s), s, np.nan)
        if not s.size:
            return 0.0
        highest = np.nanmax(np.where(np.isnan(s), -1e300, s), axis=axis, keepdims=True)
        lowest = np.nanmin(np.where(np.isnan(s), 1e300, s), axis=axis, keepdims=True)
        depth, e = sum_depth(n), np.nan_to_num(np.where(np.isfinite(error), error, 0.0))
        below = np.nan_to_num(highest - s)
        exp_error = (3 + 2 * below) * 2 * U32
        span = np.clip(highest - lowest, 0, None)
        worst_error = np.max(e, axis=axis, keepdims=True)
        each = U32 * below + exp_error + depth * (6 * U32 + U32) + 5 * U32 * span + 2 * worst_error
        weight = np.nan_to_num(np.exp(s - highest))
        total = np.sum(weight, axis=axis, keepdims=True)
        worst = np.sum(weight * each, axis=axis, keepdims=True) / np.where(total > 0, total, 1)
        if logarithm:
            bound = (2 * worst_error + U32 * below + np.expm1(worst + gamma(depth + 5))
                     + 8 * U32 * np.abs(np.log(np.where(total > 0, total, 1))) + 2 * U32 * np.abs(y) + FLT_MIN)  # fmt: skip
        else:
            bound = np.abs(y) * np.expm1(np.minimum(each + worst + gamma(depth + 5), 50)) + FLT_MIN
        return np.where(np.isfinite(y), np.nan_to_num(bound), 0.0)

    references = {"scipy": lambda: reference("scipy")}
    if libraries.torch is not None:
        references["torch"] = lambda: reference("torch")
    out = Handle("input" if in_place else "output")
    if masked == "none" and not scaled and not logarithm and draw.flip(0.5):
        return Case("tuff_softmax", [t.code, Handle("input"), out, shape, len(shape), axis], operands, references)
    desc = {"dtype": t.code, "input": Handle("input"), "output": out, "shape": shape, "rank": len(shape),
            "axis": axis, "scale": scale, "logarithm": int(logarithm)}  # fmt: skip
    if masked != "none":
        mask_type = TYPES["u8"].code if masked == "bytes" else draw.pick([0, t.code])
        desc |= {"mask": Handle("mask"), "mask_type": mask_type, "mask_rows": rows, "mask_repeat": repeat}
    return Case("tuff_softmax_ex", desc, operands, references, {"values": values})


@oracle("cumsum", ["tuff_cumsum"], types_of("scan"))
def cumsum(draw: Draw, kind: str, form: str) -> Case:
    return _scan("tuff_cumsum", draw, kind)


@oracle("cumprod", ["tuff_cumprod"], types_of("scan"))
def cumprod(draw: Draw, kind: str, form: str) -> Case:
    return _scan("tuff_cumprod", draw, kind)


@oracle("cummax", ["tuff_cummax"], types_of("scan"))
def cummax(draw: Draw, kind: str, form: str) -> Case:
    return _scan("tuff_cummax", draw, kind)


@oracle("cummin", ["tuff_cummin"], types_of("scan"))
def cummin(draw: Draw, kind: str, form: str) -> Case:
    return _scan("tuff_cummin", draw, kind)


@oracle("cumlogsumexp", ["tuff_cumlogsumexp"], ("f32", "f16", "bf16", "f64"))
def cumlogsumexp(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    exclusive, reverse, in_place = draw.maybe(0.5), draw.maybe(0.5), draw.flip(0.25)
    shape, axis = _shape(draw, 0.02)
    n = shape[axis]
    x = draw.values(shape, draw.pick(["whole", "normal", "spread"]))
    if draw.flip(0.3):
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf, 0.0, -0.0])
    operands = {"input": operand(draw, t, x, output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, shape, output=True)

    def reference() -> dict:
        along = (np.flip(x, axis) if reverse else x).astype(np.longdouble)
        with np.errstate(all="ignore"):
            y = np.logaddexp.accumulate(along, axis=axis)
            most = np.maximum.accumulate(along, axis=axis)
        # tuff.h: 2^-20 (2^-49) for each of at most 6000 terms, and relative to the result and the largest element.
        count = np.arange(1, n + 1).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        with np.errstate(all="ignore"):
            bound = (2.0**-49 if t.name == "f64" else 2.0**-20) * (np.minimum(count, 6000) + np.abs(y) + np.abs(most))
        if exclusive and n:
            start = np.full([1 if i == axis else size for i, size in enumerate(shape)], -np.inf, y.dtype)
            keep = tuple(slice(0, n - 1) if i == axis else slice(None) for i in range(len(shape)))
            y, bound = np.concatenate([start, y[keep]], axis), np.concatenate([np.zeros(start.shape), bound[keep]], axis)
        if reverse:
            y, bound = np.flip(y, axis), np.flip(bound, axis)
        return {"input" if in_place else "output": Near(y, np.where(np.isfinite(y), bound, 0.0))}

    target = Handle("input" if in_place else "output")
    desc = {"dtype": t.code, "input": Handle("input"), "output": target, "shape": shape, "rank": len(shape), "axis": axis,
            "exclusive": int(exclusive), "reverse": int(reverse)}  # fmt: skip
    return Case("tuff_cumlogsumexp", desc, operands, {"numpy": reference})


def _scan(function: str, draw: Draw, kind: str) -> Case:
    t, product, best = TYPES[kind], function == "tuff_cumprod", function in ("tuff_cummax", "tuff_cummin")
    exclusive, reverse, in_place = draw.maybe(0.5), draw.maybe(0.5), draw.flip(0.25)
    shape, axis = _shape(draw, 0.02)
    n = shape[axis]
    run = {"tuff_cumsum": np.add, "tuff_cumprod": np.multiply, "tuff_cummax": np.maximum, "tuff_cummin": np.minimum}[function]
    first = int(product)
    if not t.float:  # odd factors, whose products wrap but do not become 0
        ends = np.iinfo(t.storage)
        x = draw.data.integers(ends.min, ends.max, shape, dtype=t.storage, endpoint=True) | t.storage.type(product)
        if best:
            first = ends.min if function == "tuff_cummax" else ends.max
    elif product:
        # Near 1, so that products stay in range in any order.
        spread = min(0.2, 2.0 / np.sqrt(max(n, 1)))
        x = draw.data.choice([-1.0, 1.0], shape) * np.exp(draw.data.standard_normal(shape) * spread)
    else:
        x = draw.values(shape, draw.pick(["whole", "normal", "spread"]))
        if best:
            first = -np.inf if function == "tuff_cummax" else np.inf
            if draw.flip(0.3):
                x = draw.sprinkled(x, [np.nan, np.inf, -np.inf, 0.0, -0.0])
    operands = {"input": operand(draw, t, x, output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, shape, output=True)

    def reference(library: str) -> dict:
        along = np.flip(x, axis) if reverse else x
        if t.name == "f64":
            along = along.astype(np.longdouble)
        if library == "torch":
            cumulative = libraries.torch.cumprod if product else libraries.torch.cumsum
            y = cumulative(libraries.tensor(np.ascontiguousarray(along)), dim=axis).numpy()
        else:
            with np.errstate(all="ignore"):
                y = run.accumulate(along, axis=axis, dtype=along.dtype)
        if not t.float:  # int64 and uint64 are modulo 2^64, of which narrower types keep their bits
            y = _wrapped(t, y)
        # tuff.h: for sums min(n, 6000) roundings relative to the sum of magnitudes; for products n.
        count = np.arange(1, n + 1).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        u = U64 if t.name == "f64" else U32
        if not t.float or best:
            bound = np.zeros(y.shape)
        elif product:
            bound = gamma(count, u) * np.abs(y)
        else:
            bound = gamma(np.minimum(count, 6000), u) * np.cumsum(np.abs(along), axis=axis)
        if exclusive and n:
            start = np.full([1 if i == axis else size for i, size in enumerate(shape)], first, y.dtype)
            keep = tuple(slice(0, n - 1) if i == axis else slice(None) for i in range(len(shape)))
            y, bound = np.concatenate([start, y[keep]], axis), np.concatenate([np.zeros(start.shape), bound[keep]], axis)
        if reverse:
            y, bound = np.flip(y, axis), np.flip(bound, axis)
        return {"input" if in_place else "output": Near(y, np.where(np.isfinite(y), bound, 0.0))}

    references = {"numpy": lambda: reference("numpy")}
    if libraries.torch is not None and n and t.float and t.name != "f64" and not best:
        references["torch"] = lambda: reference("torch")
    target = Handle("input" if in_place else "output")
    desc = {"dtype": t.code, "input": Handle("input"), "output": target, "shape": shape, "rank": len(shape), "axis": axis,
            "exclusive": int(exclusive), "reverse": int(reverse)}  # fmt: skip
    return Case(function, desc, operands, references)
