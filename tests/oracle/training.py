"""Steps of optimisers against NumPy in float64 and PyTorch's optimisers in float64; norms of gradients, cross-entropy and the
gradient of softmax against NumPy's and PyTorch's."""

from __future__ import annotations

import numpy as np

import libraries
from case import TYPES, Case, Draw, Handle, operand, oracle
from elements import Near

U32 = 2.0**-24
TINY = 2.0**-126  # denormals of f32 may be flushed
SGD, ADAM, ADAMW, LAMB = range(4)
ALGORITHMS = {"sgd": SGD, "adam": ADAM, "adamw": ADAMW, "lamb": LAMB}


class Number:
    """Values, and how far the f32 computed for each may be off them."""

    def __init__(self, value, error=0.0, rounded=True) -> None:
        self.value = np.asarray(value, np.float64)
        error = np.asarray(error, np.float64)
        self.error = error + (U32 * (abs(self.value) + error) + TINY if rounded else 0.0)

    @staticmethod
    def exact(value) -> Number:
        return Number(value, rounded=False)

    def __add__(self, other: Number) -> Number:
        return Number(self.value + other.value, self.error + other.error)

    def __sub__(self, other: Number) -> Number:
        return Number(self.value - other.value, self.error + other.error)

    def __mul__(self, other: Number) -> Number:
        error = abs(self.value) * other.error + abs(other.value) * self.error + self.error * other.error
        return Number(self.value * other.value, error)

    def __truediv__(self, other: Number) -> Number:  # to one unit in the last place, two roundings
        value = self.value / other.value
        error = (self.error + abs(value) * other.error) / (abs(other.value) - other.error)
        return Number(value, error + U32 * abs(value))

    def root(self) -> Number:
        value = np.sqrt(self.value)
        low, high = np.sqrt(np.maximum(self.value - self.error, 0)), np.sqrt(self.value + self.error)
        return Number(value, np.maximum(high - value, value - low) + U32 * value)

    def norm(self) -> Number:
        """The Euclidean norm of all elements, by a sum with chains of at most 300 additions."""
        square = (self.value**2).sum()
        error = ((2 * abs(self.value) + self.error) * self.error).sum()
        return Number(square, error + 320 * U32 * (square + error)).root()


def _step(algorithm: int, d: dict, scale: float, rate: Number, t: int, momentum: bool, w, g, m, v) -> dict:
    """One tensor's step. d: the descriptor's numbers; m and v may be None."""
    decay = Number(d["weight_decay"])
    weight, g = Number.exact(w), Number.exact(g) * Number(scale)
    if d["weight_decay"] and algorithm in (SGD, ADAM):
        g = g + decay * weight
    if algorithm == SGD:
        if not momentum:
            return {"parameters": weight - rate * g}
        v = Number(d["momentum"]) * Number.exact(m) + g
        direction = g + Number(d["momentum"]) * v if d["nesterov"] else v
        return {"first_moments": v, "parameters": weight - rate * direction}
    m = Number.exact(m) + Number(1 - d["beta1"]) * (g - Number.exact(m))
    v = Number(d["beta2"]) * Number.exact(v) + Number(1 - d["beta2"]) * (g * g)
    # From a buffer's t, 1 - beta^t is correct to 4 ULP and two roundings of its argument.
    rests = [1 - d[beta] ** t for beta in ("beta1", "beta2")]
    rest1, rest2 = (Number(rest, 12 * U32 * rest) for rest in rests)
    one = Number.exact(1.0)
    u = m * (one / rest1) / (v.root() * (one / rest2.root()) + Number(d["epsilon"]))
    found = {"first_moments": m, "second_moments": v}
    if algorithm == LAMB:
        u = u + decay * weight if d["weight_decay"] else u
        a, b = weight.norm(), u.norm()
        ratio = a / b if a.value and b.value else one
        return {**found, "parameters": weight - rate * ratio * u}
    if algorithm == ADAMW and d["weight_decay"]:
        weight = weight * (one - rate * decay)
    return {**found, "parameters": weight - rate * u}


def _torch_step(algorithm: int, d: dict, scale: float, rate: float, t: int, w, g, m, v) -> dict:
    torch = libraries.torch
    parameter = torch.nn.Parameter(torch.from_numpy(np.array(w, np.float64)))
    parameter.grad = torch.from_numpy(np.array(g, np.float64) * scale)
    tensor = lambda x: torch.from_numpy(np.array(x, np.float64))  # noqa: E731
    if algorithm == SGD:
        optimiser = torch.optim.SGD([parameter], rate, momentum=d["momentum"], nesterov=bool(d["nesterov"]), weight_decay=d["weight_decay"])
        if d["momentum"]:
            optimiser.state[parameter]["momentum_buffer"] = tensor(m)
    else:
        kind = torch.optim.Adam if algorithm == ADAM else torch.optim.AdamW
        optimiser = kind([parameter], rate, (d["beta1"], d["beta2"]), d["epsilon"], d["weight_decay"])
        optimiser.state[parameter] = {"step": torch.tensor(float(t - 1)), "exp_avg": tensor(m), "exp_avg_sq": tensor(v)}
    optimiser.step()
    state = optimiser.state[parameter]
    found = {"parameters": parameter.detach().numpy()}
    for name, key in (("first_moments", "momentum_buffer" if algorithm == SGD else "exp_avg"), ("second_moments", "exp_avg_sq")):
        if state.get(key) is not None:
            found[name] = state[key].numpy()
    return found


def _sizes(draw: Draw) -> list[int]:
    return [draw.size(draw.pick([9, 300, 3000]), 0.1) for _ in range(draw.pick([1, 2, 3, 5, 90]))]


@oracle("optimizer_step", ["tuff_optimizer_step"], forms=tuple(ALGORITHMS))
def optimizer_step(draw: Draw, kind: str, form: str) -> Case:
    t, algorithm = TYPES[kind], ALGORITHMS[form]
    gradient = draw.option([t, TYPES["f32"]])
    masters, momentum = draw.maybe(0.3), algorithm == SGD and draw.maybe(0.6)
    has = {name: draw.maybe(0.4) for name in ("steps", "rate_factor", "gradient_factor", "skip")}
    decay = draw.option([0.0, 0.01, 0.3])
    d = {"rate": draw.pick([0.1, 1e-3, 0.0]), "weight_decay": decay, "momentum": draw.pick([0.9, 0.5]) if momentum else 0.0,
         "nesterov": int(momentum and draw.maybe(0.5)), "beta1": 0.0, "beta2": 0.0, "epsilon": 0.0}  # fmt: skip
    if algorithm != SGD:
        d |= {"beta1": draw.pick([0.9, 0.0, 0.5]), "beta2": draw.pick([0.999, 0.9]), "epsilon": draw.pick([1e-3, 0.1])}
    step, scale = draw.between(1, 40), draw.pick([1.0, 0.25, 16.0])
    sizes = _sizes(draw)
    f32, i32, some = TYPES["f32"], TYPES["i32"], sum(sizes) > 0
    arrays: dict = {"parameters": [], "gradients": []}
    operands: dict = {}

    def add(name, i, type_, values, output):
        key = f"{name}{i}"
        operands[key] = operand(draw, type_, values, output=output)
        arrays.setdefault(name, []).append(Handle(key))
        return operands[key].values

    tensors = []
    for i, n in enumerate(sizes):
        given = {"w": add("parameters", i, t, [n] if masters else draw.values([n]), True),
                 "g": add("gradients", i, gradient, draw.values([n]), False), "m": None, "v": None}  # fmt: skip
        if masters:
            given["w"] = add("masters", i, f32, draw.values([n]), True)
        if algorithm != SGD or momentum:
            given["m"] = add("first_moments", i, f32, draw.values([n]), True)
        if algorithm != SGD:
            given["v"] = add("second_moments", i, f32, draw.values([n]) ** 2, True)
        tensors.append({name: None if x is None else x.astype(np.float64) for name, x in given.items()})
    numbers = {"steps": (i32, step - 1), "rate_factor": (f32, 0.5), "gradient_factor": (f32, -0.75),
               "skip": (i32, int(has["skip"] and draw.flip(0.3)))}  # fmt: skip
    for name, (type_, value) in numbers.items():
        if has[name]:
            operands[name] = operand(draw, type_, np.full([1], value, np.float64), output=name == "steps")
    skips = has["skip"] and bool(numbers["skip"][1])
    rate, factor = d["rate"] * (0.5 if has["rate_factor"] else 1), scale * (-0.75 if has["gradient_factor"] else 1)
    names = {"w": "parameters", "m": "first_moments", "v": "second_moments"}

    def results(stepped) -> dict:
        """stepped(tensor) has for each name the values and the bounds."""
        found: dict = {}
        if has["steps"]:
            found["steps"] = Near(np.array([step if some and not skips else step - 1], np.float64), 0.0)
        for i, (n, tensor) in enumerate(zip(sizes, tensors)):
            if skips and masters:  # nothing has written it
                continue
            for name, number in ({} if skips or not n else stepped(tensor)).items():
                found[f"{name}{i}"] = Near(*number)
                if name == "parameters" and masters:
                    found[f"masters{i}"] = Near(*number)
            if skips or not n:
                for key, name in names.items():
                    if tensor[key] is not None:
                        found[f"{name}{i}"] = Near(tensor[key], 0.0)
                if masters:
                    found[f"masters{i}"] = found[f"parameters{i}"]
        return found

    def bounds(tensor) -> dict:
        every = _step(algorithm, d, factor, Number(d["rate"]) * Number.exact(0.5 if has["rate_factor"] else 1.0), step, momentum, *tensor.values())
        # The parameter is the rounded master, whose own rounding is in the bound.
        return {name: (number.value, number.error) for name, number in every.items()}

    references = {"numpy": lambda: results(bounds)}
    if libraries.torch is not None and algorithm != LAMB:
        def torch_step(tensor) -> dict:
            near = bounds(tensor)
            return {name: (value, near[name][1]) for name, value in _torch_step(algorithm, d, factor, rate, step, *tensor.values()).items()}

        references["torch"] = lambda: results(torch_step)
    desc = {"dtype": t.code, "algorithm": algorithm, "gradient_type": draw.pick([0, t.code]) if gradient is t else gradient.code,
            "count": len(sizes), "sizes": sizes, **d, **arrays, "gradient_scale": draw.pick([0.0, 1.0]) if scale == 1 else scale,
            "step": 0 if has["steps"] else step, **{name: Handle(name) for name in numbers if has[name]}}  # fmt: skip
    if skips and masters:  # parameters are outputs that stay as they are
        for i, n in enumerate(sizes):
            operands[f"parameters{i}"].output = False
    return Case("tuff_optimizer_step", desc, operands, references)


@oracle("gradient_norm", ["tuff_gradient_norm"])
def gradient_norm(draw: Draw, kind: str, form: str) -> Case:
    t, f32 = TYPES[kind], TYPES["f32"]
    accumulate = draw.maybe(0.3)
    wanted = [name for name in ("norm", "factor", "found") if draw.maybe(0.6) or (name == "norm" and accumulate)] or ["norm"]
    has_factor, sizes = draw.maybe(0.5), _sizes(draw)
    # Magnitudes whose squares f32 does not have, too.
    size = draw.pick([1.0, 1.0, 1e-25, 1e30] if kind != "f16" else [1.0, 1e-3, 100.0])
    odd = draw.flip(0.15)
    operands: dict = {}
    for i, n in enumerate(sizes):
        values = draw.values([n], "spread") * size
        if odd and n:
            draw.sprinkled(values, [np.inf, -np.inf, np.nan][: draw.between(1, 3)])
        operands[f"g{i}"] = operand(draw, t, values)
    before = {"norm": draw.pick([0.0, 3.0, size]), "found": float(draw.between(0, 1))}
    for name in wanted:
        type_ = TYPES["i32"] if name == "found" else f32
        operands[name] = operand(draw, type_, np.array([before[name]]) if accumulate and name in before else [1], output=True)
    factor, scale = draw.pick([0.5, 3.0]), draw.pick([1.0, 0.125, -2.0])
    if has_factor:
        operands["gradient_factor"] = operand(draw, f32, np.array([factor]))
    factor = factor if has_factor else 1.0
    limit = draw.pick([0.0, 1.0, 10.0 * size, 1e-3 * size])
    old = float(np.float32(before["norm"])) if accumulate else 0.0
    chosen = float(np.float32(limit))

    def results(length) -> dict:
        """length(values): their norm in float64."""
        values = np.concatenate([operands[f"g{i}"].values.astype(np.float64) for i in range(len(sizes))])
        with np.errstate(all="ignore"):
            norm = np.hypot(float(length(values)) * abs(scale * factor), old)
            if np.isnan(values).any():
                norm = np.nan
            clipped = factor if limit == 0 or norm <= chosen else factor * (chosen / norm)
            # Half a sum's error, and a few roundings of the root and the factors.
            bound = abs(norm) * (160 * U32 + 16 * U32) + TINY if np.isfinite(norm) else 0.0
            of_factor = abs(clipped) * (2 * 176 * U32 + 8 * U32) + TINY if np.isfinite(clipped) else 0.0
        flag = bool((~np.isfinite(values)).any()) or (accumulate and before["found"] != 0 and "found" in wanted)
        all_ = {"norm": Near(np.array([norm]), bound), "factor": Near(np.array([clipped]), of_factor),
                "found": Near(np.array([float(flag)]), 0.0)}  # fmt: skip
        return {name: all_[name] for name in wanted}

    references = {"numpy": lambda: results(lambda x: np.linalg.norm(x) if x.size else 0.0)}
    if libraries.torch is not None:
        references["torch"] = lambda: results(lambda x: libraries.torch.linalg.vector_norm(libraries.torch.from_numpy(x)).item())
    desc = {"dtype": t.code, "accumulate": int(accumulate), "count": len(sizes), "sizes": sizes,
            "gradients": [Handle(f"g{i}") for i in range(len(sizes))], "limit": limit,
            "gradient_scale": draw.pick([0.0, 1.0]) if scale == 1 else scale, **{name: Handle(name) for name in wanted}}  # fmt: skip
    if has_factor:
        desc["gradient_factor"] = Handle("gradient_factor")
    return Case("tuff_gradient_norm", desc, operands, references)


def _axis_shape(draw: Draw, least: int) -> tuple[list[int], int]:
    rank = draw.pick([1, 2, 2, 3, 4])
    shape = draw.sizes(rank, {1: 5000, 2: 600, 3: 40}.get(rank, 9), 6000, 0.03)
    axis = draw.between(0, rank - 1)
    shape[axis] = max(shape[axis], least)
    return shape, axis


def _depth(n: int) -> float:
    return 24 + min(n, 256 + np.log2(max(n, 1)))


@oracle("cross_entropy", ["tuff_cross_entropy"], ("f32", "f16", "bf16"), ("loss", "gradient", "both"))
def cross_entropy(draw: Draw, kind: str, form: str) -> Case:
    t, f32 = TYPES[kind], TYPES["f32"]
    label = TYPES[draw.option(["i32", "i64", "u32", "u64"])]
    shape, axis = _axis_shape(draw, 1)
    classes, rows = shape[axis], [n for a, n in enumerate(shape) if a != axis]
    smoothing = draw.option([0.0, 0.1, 0.5, 1.0])
    ignores, ignored = draw.maybe(0.5), draw.pick([-100, 0, 1, 2**40])
    x = draw.values(shape, "spread" if draw.flip(0.3) else "normal") * 2
    if draw.flip(0.1):
        draw.sprinkled(x, [np.inf, -np.inf, np.nan])
    labels = draw.data.integers(0, classes, rows, dtype=np.int64)
    if draw.flip(0.4):
        low = 0 if label.name.startswith("u") else -(2**31)
        draw.sprinkled(labels, [v for v in (ignored, classes, -1, 2**31 - 1) if low <= v < 2**31], 4)
    operands = {"logits": operand(draw, t, x), "labels": operand(draw, label, labels)}
    scale, factor = draw.pick([1.0, 0.25, -3.0]), 1.0
    desc: dict = {}
    if form != "gradient":
        operands["loss"] = operand(draw, f32, rows, output=True)
    if form != "loss":
        desc["gradient_scale"] = draw.pick([0.0, 1.0]) if scale == 1 else scale
        if draw.maybe(0.5):
            factor = 0.75
            operands["gradient_factor"] = operand(draw, f32, np.array([factor]))
        if draw.maybe(0.5):
            operands["loss_gradient"] = operand(draw, f32, draw.values(rows))
        operands["gradient"] = operand(draw, t, shape, output=True)
    given = operands["logits"].values.astype(np.float64)
    s = float(np.float32(smoothing))

    def bounds(z):
        """For what is relative to a sum: what a difference rounds, and the sums."""
        finite = np.isfinite(z)
        most = np.where(finite, z, -np.inf).max(-1, initial=-np.inf)
        least = np.where(finite, z, np.inf).min(-1, initial=np.inf)
        spread = np.where(most >= least, most - least, 0.0)
        return spread, (_depth(classes) + 4 * spread) * U32

    def reference(torch: bool) -> dict:
        z = np.moveaxis(given, axis, -1)
        places = labels[..., None]
        valid = (labels >= 0) & (labels < classes)
        counts = ~(ignores & (labels == ignored))
        each = np.where(valid[..., None], np.arange(classes) == places, False)
        q = each * (1 - s) + s / classes
        with np.errstate(all="ignore"):
            if torch:
                logs = libraries.torch.log_softmax(libraries.torch.from_numpy(np.ascontiguousarray(z)), -1).numpy()
            else:
                above = z - z.max(-1, keepdims=True)
                logs = above - np.log(np.exp(above).sum(-1, keepdims=True))
            p = np.exp(logs)
            loss = -np.where(q != 0, q * logs, 0.0).sum(-1)
            loss = np.where(np.isnan(logs).any(-1) | ~valid, np.nan, loss)
            spread, relative = bounds(z)
            size = abs(np.where(np.isfinite(loss), loss, 0)) + spread + np.log(classes)
            of_loss = relative + 12 * U32 * size + s * 4 * relative * spread
            up = operands["loss_gradient"].values.astype(np.float64) if "loss_gradient" in operands else np.ones(rows)
            f = scale * factor * up[..., None]
            slopes = np.where(valid[..., None], f * (p - q), np.nan)
            of_slopes = abs(f) * (p * (relative[..., None] + 8 * U32) + 8 * U32 * q) + TINY
        found = {}
        if "loss" in operands:
            found["loss"] = Near(np.where(counts, loss, 0.0), np.where(counts & np.isfinite(loss), of_loss + TINY, 0.0))
        if "gradient" in operands:
            near = np.where(counts[..., None], slopes, 0.0)
            bound = np.where(counts[..., None] & np.isfinite(near), of_slopes, 0.0)
            found["gradient"] = Near(np.moveaxis(near, -1, axis), np.moveaxis(bound, -1, axis))
        return found

    references = {"numpy": lambda: reference(False)}
    if libraries.torch is not None:
        references["torch"] = lambda: reference(True)
    desc |= {"dtype": t.code, "label_type": label.code, "shape": shape, "rank": len(shape), "axis": axis,
             "label_smoothing": smoothing, **{name: Handle(name) for name in operands}}  # fmt: skip
    if ignores:
        desc |= {"ignores": 1, "ignore_index": ignored}
    return Case("tuff_cross_entropy", desc, operands, references)


@oracle("softmax_backward", ["tuff_softmax_backward"], ("f32", "f16", "bf16"), ("softmax", "logarithm"))
def softmax_backward(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    shape, axis = _axis_shape(draw, 0)
    scale, logarithm = draw.pick([1.0, 0.5, -4.0]), form == "logarithm"
    x = draw.values(shape) * 2
    with np.errstate(all="ignore"):
        e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
        y = e / e.sum(axis, keepdims=True)
    operands = {"output": operand(draw, t, np.log(y) if logarithm else y), "output_gradient": operand(draw, t, draw.values(shape)),
                "gradient": operand(draw, t, shape, output=True)}  # fmt: skip
    y, dy = (operands[name].values.astype(np.float64) for name in ("output", "output_gradient"))

    def reference() -> dict:
        p = np.exp(y) if logarithm else y
        terms = dy if logarithm else dy * y
        sums, sizes = terms.sum(axis, keepdims=True), abs(terms).sum(axis, keepdims=True)
        value = dy - p * sums if logarithm else p * (dy - sums)
        bound = p * _depth(shape[axis]) * U32 * sizes + 12 * U32 * (p * abs(sums) + (1 if logarithm else p) * abs(dy))
        return {"gradient": Near(scale * value, abs(scale) * bound + TINY)}

    references = {"numpy": reference}
    if libraries.torch is not None and y.size:
        def of_torch() -> dict:
            torch = libraries.torch
            kernel = torch._log_softmax_backward_data if logarithm else torch._softmax_backward_data
            value = kernel(torch.from_numpy(dy.copy()), torch.from_numpy(y.copy()), axis, torch.float64).numpy()
            return {"gradient": Near(scale * value, reference()["gradient"].bound)}

        references["torch"] = of_torch
    desc = {"dtype": t.code, "shape": shape, "rank": len(shape), "axis": axis, "scale": draw.pick([0.0, 1.0]) if scale == 1 else scale,
            "logarithm": int(logarithm), **{name: Handle(name) for name in operands}}  # fmt: skip
    return Case("tuff_softmax_backward", desc, operands, references)
