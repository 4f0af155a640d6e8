"""reduce, scans and softmax against NumPy, scipy.special.softmax and log_softmax, and PyTorch."""

from __future__ import annotations

import numpy as np
import scipy.special

import libraries
from case import TYPES, Case, Draw, Handle, operand, oracle, types_of
from elements import FLT_MIN, U32, Near, gamma, sum_depth

SUM, MAX, MIN, MEAN, PROD, ARGMAX, ARGMIN = range(1, 8)
NAMES = {SUM: "sum", MAX: "max", MIN: "min", MEAN: "mean", PROD: "prod", ARGMAX: "argmax", ARGMIN: "argmin"}


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


def _of_integers(kind: str, form: str) -> bool:
    return TYPES[kind].float or form in ("sum", "max", "min", "prod")


@oracle("reduce", ["tuff_reduce", "tuff_reduce_ex"], types_of("reduce"), tuple(NAMES.values()), has=_of_integers)
def reduce(draw: Draw, kind: str, form: str) -> Case:
    t, op = TYPES[kind], {name: number for number, name in NAMES.items()}[form]
    values = draw.pick(["whole", "normal", "spread", "special"])
    shape, axis = _shape(draw, 0.05 if op in (SUM, MEAN, PROD) else 0.0)
    n, out_shape = shape[axis], shape[:axis] + shape[axis + 1 :]
    if not t.float:
        most = draw.pick([5, 2**31])
        x = draw.data.integers(-most, most, shape)
    elif op == PROD:
        # Near 1, so that products stay in range: their logarithm is a random walk with small steps.
        spread = min(0.2, 2.0 / np.sqrt(max(n, 1)))
        x = draw.data.choice([-1.0, 1.0], shape) * np.exp(draw.data.standard_normal(shape) * spread)
    else:
        x = draw.values(shape, "normal" if values == "special" else values)
    if values == "special" and op != PROD and t.float:
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf, 0.0, -0.0])
    to = TYPES["u32"] if op in (ARGMAX, ARGMIN) else t
    operands = {"input": operand(draw, t, x), "output": operand(draw, to, out_shape, output=True)}
    x = operands["input"].values

    def value(library: str):
        if library == "torch":
            data = libraries.tensor(x)
            if op in (MAX, MIN):
                return getattr(libraries.torch, "a" + NAMES[op])(data, dim=axis).numpy()
            return getattr(libraries.torch, NAMES[op])(data, dim=axis).numpy()
        if op == MEAN and n == 0:
            return np.full(out_shape, np.nan)
        return np.asarray(getattr(np, NAMES[op])(x, axis=axis))

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            y = value(library)
            if not t.float:  # modulo 2^32, and int64 is modulo 2^64
                return {"output": Near(np.asarray(y).astype(np.uint32).astype(np.int32).astype(np.int64))}
            size = np.sum(np.abs(x), axis=axis)
            if op in (SUM, MEAN):
                exact = op == SUM and values == "whole"
                # docs/accuracy.md: gamma of the longest chain of additions; a mean adds a division or a product.
                bound = 0.0 if exact else gamma(sum_depth(n) + (2 if op == MEAN else 0)) * size
                bound = bound / max(n, 1) if op == MEAN else bound
            elif op == PROD:
                bound = gamma(n) * np.abs(y)  # n - 1 roundings, in any order
            else:
                bound = 0.0
            return {"output": Near(y, np.where(np.isfinite(y), bound, 0.0) if to is t else 0.0)}

    references = {"numpy": lambda: reference("numpy")}
    if libraries.torch is not None and n:
        references["torch"] = lambda: reference("torch")
    if draw.flip(0.5):
        return Case("tuff_reduce", [t.code, op, Handle("input"), Handle("output"), shape, len(shape), axis], operands,
                    references)  # fmt: skip
    desc = {"dtype": t.code, "op": op, "rank": len(shape), "input": Handle("input"), "output": Handle("output"),
            "shape": shape, "axis": axis}  # fmt: skip
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


def _scan(function: str, draw: Draw, kind: str) -> Case:
    t, product = TYPES[kind], function == "tuff_cumprod"
    exclusive, reverse, in_place = draw.maybe(0.5), draw.maybe(0.5), draw.flip(0.25)
    shape, axis = _shape(draw, 0.02)
    n = shape[axis]
    if not t.float:  # odd factors, whose products wrap but do not become 0
        x = draw.data.integers(-(2**31), 2**31, shape) | int(product)
    elif product:
        # Near 1, so that products stay in range in any order.
        spread = min(0.2, 2.0 / np.sqrt(max(n, 1)))
        x = draw.data.choice([-1.0, 1.0], shape) * np.exp(draw.data.standard_normal(shape) * spread)
    else:
        x = draw.values(shape, draw.pick(["whole", "normal", "spread"]))
    operands = {"input": operand(draw, t, x, output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, shape, output=True)

    def reference(library: str) -> dict:
        along = np.flip(x, axis) if reverse else x
        if library == "torch":
            run = libraries.torch.cumprod if product else libraries.torch.cumsum
            y = run(libraries.tensor(np.ascontiguousarray(along)), dim=axis).numpy()
        else:
            y = (np.cumprod if product else np.cumsum)(along, axis=axis)
        if not t.float:  # modulo 2^32, and int64 is modulo 2^64
            y = np.asarray(y).astype(np.uint32).astype(np.int32).astype(np.int64)
        # tuff.h: for sums min(n, 6000) roundings relative to the sum of magnitudes; for products n.
        count = np.arange(1, n + 1).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        if not t.float:
            bound = np.zeros(y.shape)
        elif product:
            bound = gamma(count) * np.abs(y)
        else:
            bound = gamma(np.minimum(count, 6000)) * np.cumsum(np.abs(along), axis=axis)
        if exclusive and n:
            first = np.full([1 if i == axis else size for i, size in enumerate(shape)], int(product), y.dtype)
            keep = tuple(slice(0, n - 1) if i == axis else slice(None) for i in range(len(shape)))
            y, bound = np.concatenate([first, y[keep]], axis), np.concatenate([0 * first, bound[keep]], axis)
        if reverse:
            y, bound = np.flip(y, axis), np.flip(bound, axis)
        return {"input" if in_place else "output": Near(y, np.where(np.isfinite(y), bound, 0.0))}

    references = {"numpy": lambda: reference("numpy")}
    if libraries.torch is not None and n:
        references["torch"] = lambda: reference("torch")
    target = Handle("input" if in_place else "output")
    desc = {"dtype": t.code, "input": Handle("input"), "output": target, "shape": shape, "rank": len(shape), "axis": axis,
            "exclusive": int(exclusive), "reverse": int(reverse)}  # fmt: skip
    return Case(function, desc, operands, references)
