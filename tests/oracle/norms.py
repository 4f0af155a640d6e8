"""Normalisations against NumPy's means and variances, and PyTorch's functions."""

from __future__ import annotations

import numpy as np

import libraries
from case import TYPES, Case, Draw, Handle, operand, oracle, types_of
from elements import FLT_MIN, U32, Near, gamma, round_to, sum_depth


def _values(draw: Draw, kind: str, shape) -> np.ndarray:
    way = draw.pick(["normal", "normal", "offset", "spread", "special", "large", "small"])
    x = draw.values(shape, "spread" if way == "spread" else "normal")
    if way == "offset":
        x = x + draw.pick([100.0, -4096.0])
    if way == "special":
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf])
    if way in ("large", "small") and kind != "f16":
        # Their squares exceed the range of f32.
        x = x * 2.0 ** (draw.between(64, 120) * (1 if way == "large" else -1))
    return x


def _epsilon(draw: Draw) -> float:
    return draw.pick([1e-5, 1e-5, 1e-3, 1e-12, 0.5])


def _mean_bound(x, w, b, axes, n: int, epsilon: float, centred: bool, y):
    """A device's mean is off by E = gamma of its roundings times the largest |x| (docs/accuracy.md: four roundings for
    each step of the sum and its merges). Its variance has as many roundings, and is taken about means that are off
    themselves: by Cauchy's inequality gamma Var + 12 E sigma + 12 E^2 (ibid.). 1 / sqrt is off by half of that, plus 8
    u. The difference, the product with the weight and the bias round too. Where the variance's own error may dominate,
    |x - mean| / sigma <= sqrt(n) bounds the result."""
    keep = {"axis": axes, "keepdims": True}
    mean = np.mean(x, **keep) if centred else 0.0
    variance = np.mean((x - mean) ** 2, **keep)
    e = gamma(4 * sum_depth(n) + 16)
    shift = e * np.max(np.abs(x), **keep) if centred else np.zeros_like(variance)
    off = e * variance + 12 * shift * np.sqrt(variance) + 12 * shift**2
    scale = 1 / np.sqrt(variance + epsilon)
    ratio = np.where(variance + epsilon > 0, off / (variance + epsilon), 1.0)
    scale_error = np.where(ratio < 1, 1 / np.sqrt(1 - np.minimum(ratio, 0.999999)) - 1, np.inf) + 8 * U32
    d = np.abs(x - mean)
    normal = np.abs(w) * scale * (d + shift) * (1 + scale_error)
    bound = np.abs(w) * scale * (shift * (1 + scale_error) + d * scale_error) + 6 * U32 * normal
    bound = np.minimum(bound, np.abs(w) * 2 * (np.sqrt(n) + 1)) + 2 * U32 * (np.abs(b) + np.abs(y)) + FLT_MIN
    return np.where(np.isfinite(y), np.nan_to_num(bound, nan=0.0), 0.0)


def _row_norm(draw: Draw, kind: str, rms: bool) -> Case:
    t = TYPES[kind]
    plain = draw.maybe(0.3)
    wide = not plain and draw.maybe(0.4)  # f32 weights
    with_weight, with_bias = draw.maybe(0.7), not rms and draw.maybe(0.6)
    with_residual = not plain and draw.maybe(0.5)
    sum_way = draw.option(["none", "apart", "input", "residual"]) if with_residual else "none"
    rows, cols = draw.size(40, 0.02), draw.size(draw.pick([20, 300, 300, 5000]))
    if rows * cols > 40_000:
        rows = max(1, 40_000 // cols)
    epsilon = _epsilon(draw)
    used = float(np.float32(epsilon))
    in_place = sum_way != "input" and draw.flip(0.25)
    operands = {"input": operand(draw, t, _values(draw, kind, [rows, cols]),
                                 output=in_place or sum_way == "input")}  # fmt: skip
    given = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, [rows, cols], output=True)
    out = "input" if in_place else "output"
    tw = TYPES["f32"] if wide else t
    w, b = np.ones(cols), np.zeros(cols)
    if with_weight:
        operands["weight"] = operand(draw, tw, draw.values([cols]) + 1)
        w = operands["weight"].values
    if with_bias:
        operands["bias"] = operand(draw, tw, draw.values([cols]))
        b = operands["bias"].values
    total = None
    if with_residual:
        operands["residual"] = operand(draw, t, draw.values([rows, cols]) * np.nanmax(np.abs(np.where(
            np.isfinite(given), given, 0)), initial=1.0), output=sum_way == "residual")  # fmt: skip
        with np.errstate(invalid="ignore"):
            # (A sum of two f16 or bf16 numbers that f32 does not hold exactly is far from a tie in their type.)
            total = round_to(t, given + operands["residual"].values)
        if sum_way == "apart":
            operands["sum"] = operand(draw, t, [rows, cols], output=True)
    x = given if total is None else total

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            if library == "torch":
                torch = libraries.torch
                function = torch.nn.functional.rms_norm if rms else torch.nn.functional.layer_norm
                tensors = [libraries.tensor(a) for a in ((w,) if rms else (w, b))]
                y = function(libraries.tensor(x), [cols], *tensors, eps=used).numpy()
            elif rms:
                y = x / np.sqrt(np.mean(np.square(x), axis=1, keepdims=True) + used) * w
            else:
                y = (x - np.mean(x, axis=1, keepdims=True)) / np.sqrt(np.var(x, axis=1, keepdims=True) + used) * w + b
            bound = _mean_bound(x, w, b, 1, cols, used, not rms, y)
            result = {out: Near(y, bound)}
            if sum_way != "none":
                result["sum" if sum_way == "apart" else sum_way] = Near(total)
            return result

    references = {"numpy": lambda: reference("numpy")}
    if libraries.torch is not None and rows:
        references["torch"] = lambda: reference("torch")
    weight = Handle("weight") if with_weight else 0
    bias = Handle("bias") if with_bias else 0
    name = "tuff_rms_norm" if rms else "tuff_layer_norm"
    if plain:
        arguments = [t.code, Handle("input"), weight, *([] if rms else [bias]), Handle(out), rows, cols, epsilon]
        return Case(name, arguments, operands, references)
    desc = {"dtype": t.code, "input": Handle("input"), "weight": weight, "output": Handle(out), "rows": rows,
            "cols": cols, "epsilon": epsilon, "weight_type": tw.code if wide else draw.pick([0, t.code])}  # fmt: skip
    if not rms:
        desc["bias"] = bias
    if with_residual:
        desc["residual"] = Handle("residual")
    if sum_way != "none":
        desc["sum"] = Handle("sum" if sum_way == "apart" else sum_way)
    return Case(name + "_ex", desc, operands, references)


@oracle("layer_norm", ["tuff_layer_norm", "tuff_layer_norm_ex"], types_of("norm"))
def layer_norm(draw: Draw, kind: str, form: str) -> Case:
    return _row_norm(draw, kind, False)


@oracle("rms_norm", ["tuff_rms_norm", "tuff_rms_norm_ex"], types_of("norm"))
def rms_norm(draw: Draw, kind: str, form: str) -> Case:
    return _row_norm(draw, kind, True)


def _channel_norm(draw: Draw, kind: str, stored: bool) -> Case:
    t = TYPES[kind]
    plain = draw.maybe(0.3)
    wide = not plain and draw.maybe(0.4)
    with_weight, with_bias = draw.maybe(0.7), draw.maybe(0.6)
    batch = draw.size(4, 0.02)
    groups = draw.size(6)
    channels = draw.size(40) if stored else groups * draw.size(8)
    inner = draw.size(draw.pick([1, 20, 300, 900]), 0.02 if stored else 0.0)
    instance = not stored and not plain and draw.flip(0.2)
    if instance:
        groups = channels
    epsilon = _epsilon(draw)
    used = float(np.float32(epsilon))
    shape = [batch, channels, inner]
    in_place = draw.flip(0.25)
    operands = {"input": operand(draw, t, _values(draw, kind, shape), output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, shape, output=True)
    out = "input" if in_place else "output"
    tw = TYPES["f32"] if wide else t

    def of_channels(name: str, values):
        operands[name] = operand(draw, tw, values)
        return operands[name].values

    w = of_channels("weight", draw.values([channels]) + 1) if with_weight else np.ones(channels)
    b = of_channels("bias", draw.values([channels])) if with_bias else np.zeros(channels)
    size = float(np.max(np.abs(x[np.isfinite(x)]), initial=1e-30))
    if stored:
        size = min(size, 2.0**60) if kind != "f16" else min(size, 100.0)
        mean = of_channels("mean", draw.values([channels]) * min(size, 4.0))
        variance = of_channels("variance", np.abs(draw.values([channels])) + 0.01)

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            wide_w, wide_b = w[:, None], b[:, None]
            if stored:
                if library == "torch":
                    y = libraries.torch.nn.functional.batch_norm(
                        *map(libraries.tensor, (x, mean, variance, w, b)), eps=used).numpy()  # fmt: skip
                else:
                    y = (x - mean[:, None]) / np.sqrt(variance[:, None] + used) * wide_w + wide_b
                normal = np.abs((x - mean[:, None]) / np.sqrt(variance[:, None] + used) * wide_w)
                # A difference, a sum, a square root, a division and two products, each to at most 1 ULP (2 u), and the
                # root and the division together to 4 ULP (docs/accuracy.md: functions).
                if library == "torch":  # it multiplies before it subtracts the mean, in float64
                    scaled = np.abs(wide_w) / np.sqrt(variance[:, None] + used) * (np.abs(x) + np.abs(mean[:, None]))
                    slack = 2.0**-48 * scaled
                else:
                    slack = 0.0
                bound = 16 * U32 * normal + 2 * U32 * (np.abs(wide_b) + np.abs(y)) + FLT_MIN + slack
                return {out: Near(y, np.where(np.isfinite(y), bound, 0.0))}
            rows = x.reshape(batch, groups, channels // groups * inner)
            n = rows.shape[2]
            wide_w = np.broadcast_to(wide_w, shape).reshape(rows.shape)
            wide_b = np.broadcast_to(wide_b, shape).reshape(rows.shape)
            if library == "torch":
                y = libraries.torch.nn.functional.group_norm(
                    libraries.tensor(x), groups, libraries.tensor(w), libraries.tensor(b), eps=used).numpy()  # fmt: skip
                y = y.reshape(rows.shape)
            else:
                mean_, var = np.mean(rows, axis=2, keepdims=True), np.var(rows, axis=2, keepdims=True)
                y = (rows - mean_) / np.sqrt(var + used) * wide_w + wide_b
            bound = _mean_bound(rows, wide_w, wide_b, 2, n, used, True, y)
            return {out: Near(y.reshape(shape), bound.reshape(shape))}

    references = {"numpy": lambda: reference("numpy")}
    # (PyTorch rejects groups of a single element.)
    if libraries.torch is not None and x.size and (stored or x.size > groups):
        references["torch"] = lambda: reference("torch")
    weight = Handle("weight") if with_weight else 0
    bias = Handle("bias") if with_bias else 0
    statistics = [Handle("mean"), Handle("variance")] if stored else []
    name = "tuff_batch_norm" if stored else "tuff_group_norm"
    if plain:
        arguments = [t.code, Handle("input"), *statistics, weight, bias, Handle(out), *shape,
                     *([] if stored else [groups]), epsilon]  # fmt: skip
        return Case(name, arguments, operands, references)
    desc = {"dtype": t.code, "input": Handle("input"), "weight": weight, "bias": bias, "output": Handle(out),
            "batch": batch, "channels": channels, "inner": inner, "epsilon": epsilon,
            "weight_type": tw.code if wide else draw.pick([0, t.code])}  # fmt: skip
    if stored:
        desc |= {"mean": statistics[0], "variance": statistics[1]}
    else:
        desc["groups"] = 0 if instance and draw.flip(0.7) else groups
    return Case(name + "_ex", desc, operands, references)


@oracle("group_norm", ["tuff_group_norm", "tuff_group_norm_ex"], types_of("norm"))
def group_norm(draw: Draw, kind: str, form: str) -> Case:
    return _channel_norm(draw, kind, False)


@oracle("batch_norm", ["tuff_batch_norm", "tuff_batch_norm_ex"], types_of("norm"))
def batch_norm(draw: Draw, kind: str, form: str) -> Case:
    return _channel_norm(draw, kind, True)
