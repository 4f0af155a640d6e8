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


def _statistics(x, axis: int, epsilon: float, centred: bool):
    """Means and variances, and how far a device's means and, relatively, its 1 / sqrt(variance + epsilon) are off. A mean is
    off by E = gamma of its roundings times the largest |x| (docs/accuracy.md: four roundings for each step of the sum and
    its merges). A variance has as many roundings, and is taken about means that are off themselves: by Cauchy's inequality
    gamma Var + 12 E sigma + 12 E^2 (ibid.). 1 / sqrt is off by half of that, plus 8 u."""
    keep = {"axis": axis, "keepdims": True}
    mean = np.mean(x, **keep) if centred else np.zeros_like(np.sum(x, **keep))
    variance = np.mean((x - mean) ** 2, **keep)
    e = gamma(4 * sum_depth(x.shape[axis]) + 16)
    shift = e * np.max(np.abs(x), **keep, initial=0) if centred else np.zeros_like(variance)
    off = e * variance + 12 * shift * np.sqrt(variance) + 12 * shift**2
    ratio = np.where(variance + epsilon > 0, off / (variance + epsilon), 1.0)
    slack = np.where(ratio < 1, 1 / np.sqrt(1 - np.minimum(ratio, 0.999999)) - 1, np.inf) + 8 * U32
    return mean, variance, shift, slack


def _normal_bound(distance, scale, shift, slack):
    """How far (x - mean) * scale is off, for an x at this distance from the mean: it is rounded too."""
    return scale * (shift * (1 + slack) + distance * slack + 6 * U32 * (distance + shift) * (1 + slack))


def _mean_bound(x, w, b, axis: int, epsilon: float, centred: bool, y):
    """The error of y = (x - mean) * scale * weight + bias. Where the variance's own error may dominate,
    |x - mean| / sigma <= sqrt(n) bounds the result."""
    mean, variance, shift, slack = _statistics(x, axis, epsilon, centred)
    bound = np.abs(w) * _normal_bound(np.abs(x - mean), 1 / np.sqrt(variance + epsilon), shift, slack)
    bound = np.minimum(bound, np.abs(w) * 2 * (np.sqrt(x.shape[axis]) + 1)) + 2 * U32 * (np.abs(b) + np.abs(y)) + FLT_MIN
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
            bound = _mean_bound(x, w, b, 1, used, not rms, y)
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
            wide_w = np.broadcast_to(wide_w, shape).reshape(rows.shape)
            wide_b = np.broadcast_to(wide_b, shape).reshape(rows.shape)
            if library == "torch":
                y = libraries.torch.nn.functional.group_norm(
                    libraries.tensor(x), groups, libraries.tensor(w), libraries.tensor(b), eps=used).numpy()  # fmt: skip
                y = y.reshape(rows.shape)
            else:
                mean_, var = np.mean(rows, axis=2, keepdims=True), np.var(rows, axis=2, keepdims=True)
                y = (rows - mean_) / np.sqrt(var + used) * wide_w + wide_b
            bound = _mean_bound(rows, wide_w, wide_b, 2, used, True, y)
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


def _sets(kind: str, x: np.ndarray, groups: int) -> np.ndarray:
    """[batch][channels][inner] as [sets][elements that are normalised together]; _back() undoes it."""
    batch, channels, inner = x.shape
    if kind == "batch":
        return np.swapaxes(x, 0, 1).reshape(channels, batch * inner)
    return x.reshape(batch * groups, channels // groups * inner)


def _back(kind: str, rows: np.ndarray, shape) -> np.ndarray:
    batch, channels, inner = shape
    if kind == "batch":
        return np.swapaxes(rows.reshape(channels, batch, inner), 0, 1)
    return rows.reshape(shape)


def _finite(bound, value):
    return np.where(np.isfinite(value), np.nan_to_num(bound, nan=np.inf, posinf=np.finfo(np.float64).max), 0.0)


@oracle("norm_backward", ["tuff_norm_backward"], types_of("norm"), ("layer", "rms", "group", "batch", "frozen"))
def norm_backward(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    frozen = form == "frozen"
    norm = "batch" if frozen else form
    given = frozen or (norm == "batch" and draw.maybe(0.5))
    rows_only = norm in ("layer", "rms")
    groups = draw.between(1, 5) if norm == "group" else 1
    batch = draw.size(30 if rows_only else 5, 0.05)
    channels = draw.size(draw.pick([20, 300, 3000])) if rows_only else groups * draw.size(8)
    inner = 1 if rows_only else draw.size(draw.pick([1, 20, 300]), 0.02 if norm == "batch" else 0.0)
    if rows_only and batch * channels > 30_000:
        batch = max(1, 30_000 // channels)
    shape = [batch, channels, inner]
    epsilon = draw.pick([1e-5, 1e-3, 0.5])
    used = float(np.float32(epsilon))
    tw = TYPES["f32"] if draw.maybe(0.4) else t
    offset = draw.pick([0.0, 0.0, 100.0])
    x_values = draw.values(shape) + offset
    if draw.maybe(0.15):
        x_values = draw.sprinkled(x_values, [np.nan])
    operands = {"input": operand(draw, t, x_values), "output_gradient": operand(draw, t, draw.values(shape))}
    x, dy = (operands[name].values.astype(np.float64) for name in operands)
    w = np.ones(channels)
    used_channels = channels if x.size else 0
    if draw.maybe(0.7) and used_channels:
        operands["weight"] = operand(draw, tw, draw.values([channels]) + 1)
        w = operands["weight"].values.astype(np.float64)
    desc = {"dtype": t.code, "kind": {"layer": 0, "rms": 1, "group": 2, "batch": 3}[norm], "weight_type": tw.code if tw is not t else draw.pick([0, t.code]),
            "batch": batch, "channels": channels, "inner": inner, "epsilon": epsilon, "frozen": int(frozen),
            "groups": 0 if norm != "group" else groups}  # fmt: skip
    if given and used_channels:
        ts = TYPES["f32"] if draw.maybe(0.5) else tw
        desc["statistics_type"] = ts.code
        operands["mean"] = operand(draw, ts, draw.values([channels]) + offset)
        operands["variance"] = operand(draw, ts, np.abs(draw.values([channels])) + 0.05)
    wanted = [name for name in ("input_gradient", "weight_gradient", "bias_gradient") if draw.maybe(0.75)]
    if norm == "rms":
        wanted = [name for name in wanted if name != "bias_gradient"]
    wanted = wanted or ["input_gradient"]
    in_place = None
    if "input_gradient" in wanted and draw.maybe(0.3):
        in_place = draw.pick(["input", "output_gradient"])
        operands[in_place].output = True
    for name in wanted:
        if name != "input_gradient":
            operands[name] = operand(draw, tw, [channels], output=True)
        elif in_place is None:
            operands[name] = operand(draw, t, shape, output=True)

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            rows, of_output = _sets(norm, x, groups), _sets(norm, dy, groups)
            wide = _sets(norm, np.broadcast_to(w[None, :, None], shape), groups)
            n = rows.shape[1]
            h, size = of_output * wide, max(n, 1)
            if given and used_channels:
                mean, variance = (operands[name].values.astype(np.float64)[:, None] for name in ("mean", "variance"))
                shift, slack = np.zeros_like(mean), np.full_like(mean, 8 * U32)
            else:
                mean, variance, shift, slack = _statistics(rows, 1, used, norm != "rms") if rows.size else (np.zeros((len(rows), 1)),) * 4
            scale = 1 / np.sqrt(variance + used)
            normal = (rows - mean) * scale
            normal_off = _normal_bound(np.abs(rows - mean), scale, shift, slack)
            sums = gamma(4 * sum_depth(size) + 24)
            level = h.sum(1, keepdims=True) / size if norm != "rms" and not frozen else np.zeros((len(rows), 1))
            along = (h * normal).sum(1, keepdims=True) / size if not frozen else np.zeros((len(rows), 1))
            inside = h if frozen else h - level - normal * along
            off = sums * (np.abs(h * normal).sum(1, keepdims=True) / size) + (np.abs(h) * normal_off).sum(1, keepdims=True) / size
            off = np.zeros_like(off) if frozen else off
            terms = 6 * U32 * (np.abs(h) + (0.0 if frozen else np.abs(level) + np.abs(normal * along)))
            terms = terms + (sums * np.abs(h).sum(1, keepdims=True) / size if norm != "rms" and not frozen else 0.0)
            if not frozen:
                terms = terms + np.abs(normal) * off + normal_off * np.abs(along) + normal_off * off
            dx = _back(norm, inside * scale, shape)
            bound = _back(norm, scale * (1 + slack) * terms + np.abs(inside) * scale * (slack + 4 * U32) + FLT_MIN, shape)
            n_full, off_full = _back(norm, normal, shape), _back(norm, normal_off, shape)
            dw, db = (dy * n_full).sum((0, 2)), dy.sum((0, 2))
            sums = gamma(4 * sum_depth(max(batch * inner, 1)) + 24)
            of_dw = sums * np.abs(dy * n_full).sum((0, 2)) + (np.abs(dy) * off_full).sum((0, 2)) + FLT_MIN
            of_db = sums * np.abs(dy).sum((0, 2)) + FLT_MIN
            if library == "torch":
                dx, dw, db = _torch_gradients(norm, given, frozen, x, dy, w, operands, groups, used)
            found = {"weight_gradient": Near(dw, _finite(of_dw, dw)), "bias_gradient": Near(db, _finite(of_db, db))}
            found = {name: found[name] for name in wanted if name != "input_gradient"}
            if "input_gradient" in wanted:
                found[in_place or "input_gradient"] = Near(dx, _finite(bound, dx))
            return found

    references = {"numpy": lambda: reference("numpy")}
    # (PyTorch has no gradient for statistics that are given and not constant.)
    if libraries.torch is not None and x.size and (frozen or not given) and (norm != "batch" or frozen or batch * inner > 1):
        references["torch"] = lambda: reference("torch")
    desc |= {name: Handle(name) for name in operands}
    if in_place:
        desc["input_gradient"] = Handle(in_place)
    return Case("tuff_norm_backward", desc, operands, references)


def _torch_gradients(norm, given, frozen, x, dy, w, operands, groups, epsilon):
    torch = libraries.torch
    functions = torch.nn.functional
    leaf = libraries.tensor(x).clone().requires_grad_(True)
    weight = libraries.tensor(w).clone().requires_grad_(True)
    bias = torch.zeros_like(weight).requires_grad_(True)
    if norm in ("layer", "rms"):
        rows = leaf[:, :, 0]
        made = functions.layer_norm(rows, [len(w)], weight, bias, epsilon) if norm == "layer" else functions.rms_norm(rows, [len(w)], weight, epsilon)
        y = made[:, :, None]
    elif norm == "group":
        y = functions.group_norm(leaf, groups, weight, bias, epsilon)
    elif frozen:
        mean, variance = (libraries.tensor(operands[name].values.astype(np.float64)) for name in ("mean", "variance"))
        y = functions.batch_norm(leaf, mean, variance, weight, bias, False, 0.0, epsilon)
    else:
        y = functions.batch_norm(leaf, None, None, weight, bias, True, 0.0, epsilon)
    y.backward(libraries.tensor(dy))
    of_bias = bias.grad if bias.grad is not None else torch.zeros_like(weight)
    return leaf.grad.numpy(), weight.grad.numpy(), of_bias.numpy()


@oracle("batch_norm_training", ["tuff_batch_norm_training"], types_of("norm"))
def batch_norm_training(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    tw = TYPES["f32"] if draw.maybe(0.4) else t
    batch, channels, inner = draw.size(draw.pick([4, 200])) + 1, draw.size(20), draw.size(draw.pick([1, 20, 300]))
    if batch * channels * inner > 60_000:
        batch = max(2, 60_000 // (channels * inner))
    shape = [batch, channels, inner]
    epsilon, momentum = draw.pick([1e-5, 1e-3, 0.5]), draw.pick([0.1, 0.0, 1.0, 0.75])
    used, share = float(np.float32(epsilon)), float(np.float32(momentum))
    wanted = [name for name in ("output", "mean", "variance", "running_mean", "running_variance") if draw.maybe(0.7)] or ["output"]
    in_place = "output" in wanted and draw.maybe(0.3)
    operands = {"input": operand(draw, t, draw.values(shape) + draw.pick([0.0, 0.0, 100.0]), output=in_place)}
    x = operands["input"].values.astype(np.float64)
    w, b = np.ones(channels), np.zeros(channels)
    if "output" in wanted and draw.maybe(0.7):
        operands["weight"] = operand(draw, tw, draw.values([channels]) + 1)
        w = operands["weight"].values.astype(np.float64)
    if "output" in wanted and draw.maybe(0.7):
        operands["bias"] = operand(draw, tw, draw.values([channels]))
        b = operands["bias"].values.astype(np.float64)
    before = {}
    for name in wanted:
        if name.startswith("running"):
            values = draw.values([channels])
            operands[name] = operand(draw, tw, np.abs(values) if name.endswith("variance") else values, output=True)
            before[name] = operands[name].values.astype(np.float64).copy()
        elif name != "output":
            operands[name] = operand(draw, TYPES["f32"], [channels], output=True)
        elif not in_place:
            operands[name] = operand(draw, t, shape, output=True)

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            rows = _sets("batch", x, 1)
            n = rows.shape[1]
            mean, variance, shift, slack = _statistics(rows, 1, used, True)
            off = gamma(4 * sum_depth(n) + 20) * variance + 12 * shift * np.sqrt(variance) + 12 * shift**2 + FLT_MIN
            scale, by = 1 / np.sqrt(variance + used), n / (n - 1)
            normal = (rows - mean) * scale * w[:, None]
            y = normal + b[:, None]
            bound = np.abs(w)[:, None] * _normal_bound(np.abs(rows - mean), scale, shift, slack)
            bound = bound + 2 * U32 * (np.abs(b)[:, None] + np.abs(y)) + FLT_MIN
            y, bound = _back("batch", y, shape), _back("batch", bound, shape)
            mean, variance, shift, off = (one[:, 0] for one in (mean, variance, shift, off))
            follow = {name: before[name] + share * (value - before[name])
                      for name, value in (("running_mean", mean), ("running_variance", variance * by)) if name in before}  # fmt: skip
            if library == "torch":
                torch = libraries.torch
                running = {name: libraries.tensor(value.copy()) for name, value in before.items()}
                y = torch.nn.functional.batch_norm(
                    libraries.tensor(x), running.get("running_mean", torch.zeros(channels, dtype=torch.float64)),
                    running.get("running_variance", torch.ones(channels, dtype=torch.float64)), libraries.tensor(w), libraries.tensor(b), True, share, used,
                ).numpy()  # fmt: skip
                follow = {name: value.numpy() for name, value in running.items()}
            of_follow = {
                "running_mean": lambda: share * shift + 4 * U32 * (np.abs(before["running_mean"]) + np.abs(mean)) + FLT_MIN,
                "running_variance": lambda: share * off * by + 6 * U32 * (before["running_variance"] + variance * by) + FLT_MIN,
            }
            found = {"mean": Near(mean, shift + FLT_MIN), "variance": Near(variance, off)}
            found |= {name: Near(value, of_follow[name]()) for name, value in follow.items()}
            found["output"] = Near(y, bound)
            return {("input" if in_place and name == "output" else name): found[name] for name in wanted}

    references = {"numpy": lambda: reference("numpy")}
    if libraries.torch is not None:
        references["torch"] = lambda: reference("torch")
    desc = {"dtype": t.code, "weight_type": tw.code if tw is not t else draw.pick([0, t.code]), "batch": batch, "channels": channels, "inner": inner,
            "epsilon": epsilon, "momentum": momentum, **{name: Handle(name) for name in operands}}  # fmt: skip
    if in_place:
        desc["output"] = Handle("input")
    return Case("tuff_batch_norm_training", desc, operands, references)
