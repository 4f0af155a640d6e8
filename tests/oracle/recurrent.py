"""Recurrent networks against NumPy in float64, PyTorch's modules in float64, and ONNX's LSTM, GRU and RNN."""

from __future__ import annotations

import numpy as np

import libraries
from case import TYPES, Case, Draw, Handle, dense, operand, oracle
from elements import U32, Near, gamma

LSTM, GRU, TANH, RELU = range(4)
CELLS = {"lstm": LSTM, "gru": GRU, "tanh": TANH, "relu": RELU}
GATES = {LSTM: 4, GRU: 3, TANH: 1, RELU: 1}
ORDERS = {(LSTM, 0): "ifgo", (LSTM, 1): "iofg", (GRU, 0): "rzn", (GRU, 1): "zrn"}
F = 8 * U32  # 4 ULP of a function whose values are at most 1


def _sigma(x):
    return 1 / (1 + np.exp(-x))


def _linear(weights, v, error):
    """weights @ v for each row of v, with the error of a product and that of v."""
    size = np.abs(v) + error
    return v @ weights.T, error @ np.abs(weights).T + gamma(weights.shape[1] + 6) * (size @ np.abs(weights).T)


def _times(a, ea, b, eb):
    return a * b, np.abs(a) * eb + np.abs(b) * ea + ea * eb + U32 * (np.abs(a * b) + ea + eb)


def _step(cell, order, before, clip, p, x, h, eh, c, ec):
    """One step of one direction, with first-order bounds of the errors."""
    hidden = p["w"].shape[0] // GATES[cell]
    names = ORDERS.get((cell, order), "s")
    part = {name: slice(i * hidden, (i + 1) * hidden) for i, name in enumerate(names)}
    wx, ex = _linear(p["w"], x, np.zeros_like(x))
    rh, er = _linear(p["r"], h, eh)
    wx, rh = wx + p["bias_w"], rh + p["bias_r"]

    def total(name, extra=0.0, error=0.0):
        s = part[name]
        value = wx[:, s] + rh[:, s] + extra
        size = np.abs(wx[:, s]) + np.abs(rh[:, s]) + np.abs(extra)
        error = ex[:, s] + er[:, s] + error + 6 * U32 * size
        return (np.clip(value, -clip, clip) if clip else value), error

    def sigma(value, error):
        return _sigma(value), error / 4 + F

    def tanh(value, error):
        return np.tanh(value), error + F

    if cell == LSTM:
        q = p["peepholes"].reshape(3, hidden)
        i, ei = sigma(*total("i", q[0] * c, np.abs(q[0]) * ec))
        f, ef = sigma(*total("f", q[2] * c, np.abs(q[2]) * ec))
        g, eg = tanh(*total("g"))
        kept, ekept = _times(f, ef, c, ec)
        new, enew = _times(i, ei, g, eg)
        c = kept + new
        ec = ekept + enew + U32 * np.abs(c)
        o, eo = sigma(*total("o", q[1] * c, np.abs(q[1]) * ec))
        h, eh = _times(o, eo, *tanh(c, ec))
        if p["projection"] is not None:
            h, eh = _linear(p["projection"], h, eh)
        return h, eh, c, ec
    if cell == GRU:
        r, e_r = sigma(*total("r"))
        z, ez = sigma(*total("z"))
        s = part["n"]
        if before:
            inner, einner = _times(r, e_r, rh[:, s], er[:, s] + 2 * U32 * np.abs(rh[:, s]))
        else:
            inner, einner = _linear(p["r"][s], *_times(r, e_r, h, eh))
            inner = inner + p["bias_r"][s]
        value = wx[:, s] + inner
        n, en = tanh(np.clip(value, -clip, clip) if clip else value,
                     ex[:, s] + einner + 6 * U32 * (np.abs(wx[:, s]) + np.abs(inner)))  # fmt: skip
        first, efirst = _times(1 - z, ez + U32, n, en)
        second, esecond = _times(z, ez, h, eh)
        return first + second, efirst + esecond + U32 * np.abs(first + second), c, ec
    value, error = total("s")
    if cell == TANH:
        return *tanh(value, error), c, ec
    return np.maximum(value, 0), error, c, ec


def _draw_strides(draw, way, steps, batch, directions, inputs, width, rows):
    """The strides of x, of y and of biases, with gaps unless `way` is "default". rows: of a direction's weights."""
    row, out = inputs + draw.gap(0.3), width + draw.gap(0.3)
    if way == "default":
        row, out = inputs, width
    x_strides = [row, steps * row] if way == "batch" else [batch * row, row]
    y_strides = {"batch": [directions * out, steps * directions * out, out],
                 "onnx": [directions * batch * out, out, batch * out]}.get(
                     way, [batch * directions * out, directions * out, out])  # fmt: skip
    return x_strides, y_strides, rows + (0 if way == "default" else draw.gap(0.3))


@oracle("rnn", ["tuff_rnn"], forms=tuple(CELLS))
def rnn(draw: Draw, kind: str, form: str) -> Case:
    t, cell = TYPES[kind], CELLS[form]
    gates = GATES[cell]
    direction, order = draw.option([0, 1, 2]), draw.option([0, 1])
    before = int(cell == GRU and draw.maybe(0.5))
    clip = draw.option([0.0, 0.0, 0.7])
    has = {name: draw.maybe(0.6) for name in ("bias_w", "bias_r", "lengths", "h0", "y", "hn")}
    has["peepholes"], has["c0"], has["cn"] = (cell == LSTM and draw.maybe(p) for p in (0.3, 0.6, 0.6))
    projected, way = cell == LSTM and draw.maybe(0.3), draw.option(["steps", "batch", "onnx", "default"])
    if not (has["y"] or has["hn"]):
        has["y"] = True
    directions = 2 if direction == 2 else 1
    batch, steps, inputs, hidden = draw.size(9, 0.03), draw.size(7, 0.03), draw.size(20), draw.size(24)
    proj = draw.size(12) if projected else 0
    width = proj or hidden
    runs = batch and steps

    x_strides, y_strides, bias_stride = _draw_strides(draw, way, steps, batch, directions, inputs, width, gates * hidden)
    scale = 1.0 / np.sqrt(max(inputs, hidden))
    operands = {"x": operand(draw, t, draw.values([steps, batch, inputs]), [*x_strides, 1])}

    def add(name, shape, by=1.0, strides=None):
        operands[name] = operand(draw, t, draw.values(shape) * by, strides)

    add("w", [directions, gates * hidden, inputs], scale)
    add("r", [directions, gates * hidden, width], scale)
    for name in ("bias_w", "bias_r"):
        if has[name]:
            add(name, [directions, gates * hidden], 0.3, [bias_stride, 1])
    if has["peepholes"]:
        add("peepholes", [directions, 3 * hidden], 0.5)
    if proj:
        add("projection", [directions, proj, hidden], scale)
    if has["lengths"]:
        operands["lengths"] = operand(draw, TYPES["i32"], draw.data.integers(-2, steps + 3, [batch]), [1])
    if has["h0"]:
        add("h0", [directions, batch, width])
    if has["c0"]:
        add("c0", [directions, batch, hidden])
    if has["y"]:
        operands["y"] = operand(draw, t, [steps, batch, directions, width], [*y_strides, 1], output=True)
    if has["hn"]:
        operands["hn"] = operand(draw, t, [directions, batch, width], output=True)
    if has["cn"]:
        operands["cn"] = operand(draw, t, [directions, batch, hidden], output=True)
    values = {name: each.values.astype(np.float64) for name, each in operands.items() if not each.output}
    lengths = np.clip(values["lengths"], 0, steps).astype(int) if has["lengths"] else np.full(batch, steps)
    start = {"h": values.get("h0", np.zeros((directions, batch, width))),
             "c": values.get("c0", np.zeros((directions, batch, hidden)))}  # fmt: skip

    def weights(d: int) -> dict:
        zeros = {"bias_w": gates * hidden, "bias_r": gates * hidden, "peepholes": 3 * hidden}
        found = {name: values[name][d] if name in values else np.zeros(size) for name, size in zeros.items()}
        return {**found, "w": values["w"][d], "r": values["r"][d],
                "projection": values["projection"][d] if proj else None}  # fmt: skip

    def backwards(d: int) -> bool:
        return direction == 1 or d == 1

    def run() -> dict:
        y, ey = np.zeros((steps, batch, directions, width)), np.zeros((steps, batch, directions, width))
        last = {name: (np.zeros_like(start[name[0]]), np.zeros_like(start[name[0]])) for name in ("hn", "cn")}
        for d in range(directions):
            h, c = start["h"][d], start["c"][d]
            eh, ec = np.zeros_like(h), np.zeros_like(c)
            for at in range(steps):
                now = steps - 1 - at if backwards(d) else at
                new = _step(cell, order, before, clip, weights(d), values["x"][now], h, eh, c, ec)
                active = (now < lengths)[:, None]
                h, eh, c, ec = (np.where(active, a, b) for a, b in zip(new, (h, eh, c, ec)))
                y[now, :, d], ey[now, :, d] = np.where(active, h, 0), np.where(active, eh, 0)
            for name, value, error in (("hn", h, eh), ("cn", c, ec)):
                last[name][0][d], last[name][1][d] = value, error
        results = {"y": (y, ey), **last}
        return results

    def reference() -> dict:
        results = run()
        return {name: Near(*results[name]) for name in ("y", "hn", "cn") if has[name]}

    def torch_reference() -> dict:
        """The modules of PyTorch in float64, with the bounds of NumPy's run."""
        torch = libraries.torch
        options = {"bidirectional": directions == 2}
        if cell == LSTM:
            module = torch.nn.LSTM(inputs, hidden, proj_size=proj, **options)
        elif cell == GRU:
            module = torch.nn.GRU(inputs, hidden, **options)
        else:
            module = torch.nn.RNN(inputs, hidden, nonlinearity=form, **options)
        module = module.double()
        with torch.no_grad():
            for d, suffix in enumerate(("", "_reverse")[:directions]):
                for name, field in (("weight_ih", "w"), ("weight_hh", "r"), ("bias_ih", "bias_w"),
                                    ("bias_hh", "bias_r"), ("weight_hr", "projection")):  # fmt: skip
                    if field != "projection" or proj:
                        getattr(module, f"{name}_l0{suffix}").copy_(torch.from_numpy(weights(d)[field]))
            h0 = torch.from_numpy(start["h"])
            state = (h0, torch.from_numpy(start["c"])) if cell == LSTM else h0
            x = torch.from_numpy(values["x"])
            if has["lengths"]:
                packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.from_numpy(lengths), enforce_sorted=False)
                y, state = module(packed, state)
                y = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=steps)[0]
            else:
                y, state = module(x, state)
        hn, cn = state if cell == LSTM else (state, None)
        bounds = run()
        got = {"y": y.numpy().reshape(steps, batch, directions, width), "hn": hn.numpy(), "cn": cn.numpy() if cn is not None else None}
        return {name: Near(got[name], bounds[name][1]) for name in ("y", "hn", "cn") if has[name]}

    def onnx_reference() -> dict:
        x = values["x"]
        bias = np.concatenate([weights(0)["bias_w"], weights(0)["bias_r"]])[None]
        operator = {LSTM: "LSTM", GRU: "GRU"}.get(cell, "RNN")
        more = {"linear_before_reset": before} if cell == GRU else {}
        given = [x, values["w"], values["r"], bias, None, start["h"]]
        if cell == LSTM:
            given += [start["c"], weights(0)["peepholes"][None]]
        got = libraries.run_onnx(operator, given, 2, opset=14, hidden_size=hidden, **more)
        bounds = run()
        found = {"y": got[0].transpose(0, 2, 1, 3), "hn": got[1]}
        return {name: Near(found[name], bounds[name][1]) for name in ("y", "hn") if has[name]}

    references = {"numpy": reference}
    plain = not clip and direction != 1
    if libraries.torch is not None and plain and order == 0 and (cell != GRU or before) and not has["peepholes"] and runs and (
            proj < hidden) and lengths.min() > 0:  # fmt: skip
        references["torch"] = torch_reference
    # ONNX's reference evaluator knows one direction, no lengths, and one activation for RNN.
    if libraries.onnx is not None and direction == 0 and not clip and cell != RELU and runs and not proj and (
            order == 1 or cell == TANH) and not has["lengths"] and not has["cn"]:  # fmt: skip
        references["onnx"] = onnx_reference
    desc = {"dtype": t.code, "cell": cell, "direction": direction, "gate_order": order, "linear_before_reset": before,
            "batch": batch, "steps": steps, "input_size": inputs, "hidden_size": hidden, "proj_size": proj,
            "clip": clip, **{name: Handle(name) for name in operands}}  # fmt: skip
    if way != "default":
        desc |= {"x_strides": x_strides, "y_strides": y_strides, "bias_stride": bias_stride}
    return Case("tuff_rnn", desc, operands, references)


def _slopes_bound(cell, p, steps, most_h, most_c, given):
    """Bounds of the errors of gradients by a layer's operands, by the largest magnitudes. Sums of gates and c are wrong by
    what _step() says of some 40 roundings a step; the slopes of sigma and tanh are at most 1 / 4 and 1 and change with a
    sum by less than it does. given: the largest gradients by y, hn and cn. Returns the largest gradients, and their errors, by
    sums, h, c and what a projection gives."""
    r, q = np.abs(p["r"]).max(initial=0), np.abs(p["peepholes"]).max(initial=0)
    hidden, width = p["w"].shape[-2] // GATES[cell], p["r"].shape[-1]
    proj = np.abs(p["projection"]).max(initial=0) if p["projection"] is not None else 0.0
    rows = hidden * GATES[cell]
    size = p["size"]  # of a gate's sum
    e_h = e_c = e_s = 0.0
    for _ in range(steps):  # forwards
        e_s = gamma(p["w"].shape[-1] + width + 10) * size + width * r * e_h + q * e_c
        e_c = e_c + (e_s + F) * (2 * most_c + 2)
        e_h = e_c + e_s + F if cell == LSTM else e_s * (2 + most_h + width * r * most_h) + e_h + F * (2 + most_h) if cell == GRU else e_s + F
        if proj:
            e_h = hidden * proj * (e_h + gamma(hidden + 3))
    slope = 2 * (e_s + F + e_c)
    (gy, gh, gc), e_gh, e_gc = given, 0.0, 0.0
    top = {"s": (0.0, 0.0), "h": (gh, 0.0), "c": (gc, 0.0), "p": (0.0, 0.0)}

    def keep(name, most, error):
        top[name] = (max(top[name][0], most), max(top[name][1], error))

    for _ in range(steps):  # backwards
        gh = gh + gy
        keep("p", gh, e_gh)
        du, e_du = (width * proj * gh, width * proj * (e_gh + gamma(width + 3) * gh)) if proj else (gh, e_gh)
        more = 1.0
        if cell == LSTM:
            gc, e_gc = gc + du * (1 + q), e_gc + e_du * (1 + q) + (gc + du * (1 + q)) * (slope + 8 * U32)
            s, e = gc * max(1.0, most_c), e_gc * max(1.0, most_c) + gc * (slope * (1 + most_c) + e_c)
            s, e = max(s, du), max(e, e_du + du * slope)
            gc, e_gc = gc + 2 * q * s, e_gc + gc * slope + 2 * q * e + 8 * U32 * (gc + 2 * q * s)
        elif cell == GRU:
            factor = max(1.0 + most_h, p["inner"], hidden * r * most_h)
            s, e = du * factor, e_du * factor + du * (factor * (2 * slope + gamma(hidden + 8)) + e_s + e_h * (1 + hidden * r))
            more = 1 + hidden * r
        else:
            s, e = du, e_du + du * (slope if cell == TANH else 8 * U32)
        keep("s", s, e)
        direct = du * more if cell == GRU else 0.0
        e_gh = (e_du * more + du * more * (slope + gamma(hidden + 8)) if cell == GRU else 0.0) + rows * r * (e + gamma(rows + 10) * s)
        gh = direct + rows * r * s
        gh, e_gh = max(gh, top["h"][0]), max(e_gh, top["h"][1])
        gc, e_gc = max(gc, top["c"][0]), max(e_gc, top["c"][1])
        keep("h", gh, e_gh), keep("c", gc, e_gc)
    return top, e_h, e_c


@oracle("rnn_backward", ["tuff_rnn_backward"], forms=tuple(CELLS))
def rnn_backward(draw: Draw, kind: str, form: str) -> Case:
    """Against central differences of NumPy's steps in float64, of a few operands of small layers."""
    t, cell = TYPES[kind], CELLS[form]
    gates = GATES[cell]
    direction, order = draw.option([0, 1, 2]), draw.option([0, 1])
    before = int(cell == GRU and draw.maybe(0.5))
    # A limit that no sum of these comes near: that it has no slope beyond it, the library's own tests say.
    clip = draw.option([0.0, 0.0, 50.0])
    has = {name: draw.maybe(0.6) for name in ("bias_w", "bias_r", "lengths", "h0", "dy", "dhn")}
    has["peepholes"], has["c0"], has["dcn"] = (cell == LSTM and draw.maybe(p) for p in (0.3, 0.6, 0.6))
    projected, way = cell == LSTM and draw.maybe(0.3), draw.option(["steps", "batch", "default"])
    if not (has["dhn"] or has["dcn"]):
        has["dy"] = True
    directions = 2 if direction == 2 else 1
    batch, steps, inputs, hidden = draw.size(3, 0.03), draw.size(3, 0.03), draw.size(4), draw.size(4)
    proj = draw.size(3) if projected else 0
    width, runs = proj or hidden, batch and steps
    x_strides, y_strides, bias_stride = _draw_strides(draw, way, steps, batch, directions, inputs, width, gates * hidden)
    operands: dict = {}

    def add(name, shape, by=0.4, strides=None, output=False):
        values = shape if output else np.clip(draw.values(shape), -2, 2) * by
        operands[name] = operand(draw, t, values, strides, output=output)

    shapes = {"w": [directions, gates * hidden, inputs], "r": [directions, gates * hidden, width],
              "bias_w": [directions, gates * hidden], "bias_r": [directions, gates * hidden],
              "peepholes": [directions, 3 * hidden], "projection": [directions, proj, hidden],
              "h0": [directions, batch, width], "c0": [directions, batch, hidden]}  # fmt: skip
    add("x", [steps, batch, inputs], 0.5, [*x_strides, 1])
    for name, shape in shapes.items():
        if name in ("w", "r") or has.get(name) or (name == "projection" and proj):
            add(name, shape, strides=[bias_stride, 1] if name.startswith("bias") else None)
    if has["lengths"]:
        operands["lengths"] = operand(draw, TYPES["i32"], draw.data.integers(-2, steps + 3, [batch]), [1])
    if has["dy"]:
        add("dy", [steps, batch, directions, width], strides=[*y_strides, 1])
    for name, size in (("dhn", width), ("dcn", hidden)):
        if has[name]:
            add(name, [directions, batch, size])
    wanted = [name for name in ("x", *shapes)
              if (name not in ("peepholes", "c0") or cell == LSTM) and (name != "projection" or proj) and draw.maybe(0.4)]  # fmt: skip
    for name in wanted:
        strides = [*x_strides, 1] if name == "x" else [bias_stride, 1] if name.startswith("bias") else None
        add("d" + name, [steps, batch, inputs] if name == "x" else shapes[name], strides=strides, output=True)
    values = {name: each.values.astype(np.float64) for name, each in operands.items() if not each.output}
    lengths = np.clip(values["lengths"], 0, steps).astype(int) if has["lengths"] else np.full(batch, steps)
    full = {name: values.get(name, np.zeros(shape)) for name, shape in shapes.items()}
    full["x"] = values["x"]

    def loss(given: dict) -> float:
        total = 0.0
        for d in range(directions):
            p = {**{name: given[name][d] for name in shapes}, "projection": given["projection"][d] if proj else None}
            h, c = given["h0"][d], given["c0"][d]
            none_h, none_c = np.zeros_like(h), np.zeros_like(c)
            for at in range(steps):
                now = steps - 1 - at if direction == 1 or d == 1 else at
                new = _step(cell, order, before, clip, p, given["x"][now], h, none_h, c, none_c)
                active = (now < lengths)[:, None]
                h, c = np.where(active, new[0], h), np.where(active, new[2], c)
                if has["dy"]:
                    total += (np.where(active, h, 0) * values["dy"][now, :, d]).sum()
            total += (h * values["dhn"][d]).sum() if has["dhn"] else 0.0
            total += (c * values["dcn"][d]).sum() if has["dcn"] else 0.0
        return total

    def reference() -> dict:
        largest = {name: np.abs(value).max(initial=0) for name, value in {**full, **values}.items()}
        of_c = largest["c0"] + steps
        of_h = max(1.0, largest["h0"], hidden * largest["projection"] if proj else 0.0)
        if cell == RELU:
            for _ in range(steps):
                of_h = max(of_h, inputs * largest["w"] * largest["x"] + width * largest["r"] * of_h + largest["bias_w"] + largest["bias_r"])
        inner = width * largest["r"] * of_h + largest["bias_r"]
        p = {"w": full["w"], "r": full["r"], "peepholes": full["peepholes"], "projection": full["projection"] if proj else None,
             "inner": inner, "size": inputs * largest["w"] * largest["x"] + inner + largest["bias_w"] + largest["peepholes"] * of_c}  # fmt: skip
        given = [largest.get(name, 0.0) for name in ("dy", "dhn", "dcn")]
        top, e_h, e_c = _slopes_bound(cell, p, steps if runs else 0, of_h, of_c, given)
        (s, e_s), terms, results = top["s"], batch * steps, {}
        bounds = {
            "x": directions * gates * hidden * largest["w"] * (e_s + gamma(directions * gates * hidden + 4) * s),
            "w": terms * largest["x"] * (e_s + gamma(terms + 4) * s), "bias_w": terms * (e_s + gamma(terms + 4) * s),
            "r": terms * (of_h * (e_s + gamma(terms + 8) * s) + s * 2 * (e_h + e_c + F)),
            "peepholes": terms * (of_c * (e_s + gamma(terms + 8) * s) + s * e_c),
            "projection": terms * (top["p"][1] + top["p"][0] * (e_c + 2 * F + gamma(terms + 8))),
            "h0": top["h"][1], "c0": top["c"][1],
        }  # fmt: skip
        bounds["bias_r"] = bounds["bias_w"]
        # Of a difference: h^2 / 6 of the third derivative, which powers of the magnitudes bound, and the loss's rounding.
        h, scale = 1e-5, 1 + sum(given) * (1 + of_h + of_c) * max(1, terms) * directions * hidden
        for name in wanted:
            found = np.zeros(full[name].shape)
            for place in np.ndindex(found.shape):
                ends = []
                for sign in (1, -1):
                    moved = full[name].copy()
                    moved[place] += sign * h
                    ends.append(loss({**full, name: moved}))
                found[place] = (ends[0] - ends[1]) / (2 * h)
            results["d" + name] = Near(found, bounds[name] + 1e-9 * scale)
        return results

    desc = {"dtype": t.code, "cell": cell, "direction": direction, "gate_order": order, "linear_before_reset": before,
            "batch": batch, "steps": steps, "input_size": inputs, "hidden_size": hidden, "proj_size": proj,
            "clip": clip, **{name: Handle(name) for name in operands}}  # fmt: skip
    if way != "default":
        desc |= {"x_strides": x_strides, "dx_strides": x_strides, "dy_strides": y_strides, "bias_stride": bias_stride}
    return Case("tuff_rnn_backward", desc, operands, {"numpy": reference})
