"""Convolutions against SciPy's correlate and convolve, NumPy's sliding windows, PyTorch's and ONNX's convolutions."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.signal

import libraries
from activations import NONE, RELU, RELU6, after_activation, numpy_activation, torch_activation
from case import TYPES, Case, Draw, Handle, layout_strides, operand, oracle
from elements import FLT_MIN, Near, gamma
from winograd import winograd_size

LAYOUTS = ("nchw", "nhwc")


def _spread(w: np.ndarray, dilation) -> np.ndarray:
    """The filter with zeros inserted between its taps."""
    out = np.zeros(w.shape[:2] + tuple((r - 1) * d + 1 for r, d in zip(w.shape[2:], dilation)))
    out[(slice(None), slice(None), *(slice(None, None, d) for d in dilation))] = w
    return out


def scipy_conv(x, w, stride, pads, dilation, groups):
    """One correlation for each image and filter: over the group's channels and the image at once."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    w, per = _spread(w, dilation), w.shape[0] // groups
    steps = tuple(slice(None, None, s) for s in stride)
    rows = []
    for n in range(x.shape[0]):
        for k in range(w.shape[0]):
            c = k // per * w.shape[1]
            y = scipy.signal.correlate(x[n, c : c + w.shape[1]], w[k], mode="valid", method="direct")
            rows.append(y[(0, *steps)])
    space = rows[0].shape if rows else _outputs(x.shape[2:], w.shape[2:], stride)
    return np.array(rows).reshape(x.shape[0], w.shape[0], *space)


def _outputs(padded, window, stride):
    return [(n - r) // s + 1 for n, r, s in zip(padded, window, stride)]


def numpy_conv(x, w, stride, pads, dilation, groups):
    """Windows of the padded image, using only every dilation-th element: the others are not read."""
    x = np.pad(x, [(0, 0), (0, 0), *pads])
    axes = tuple(range(2, x.ndim))
    windows = np.lib.stride_tricks.sliding_window_view(
        x, [(r - 1) * d + 1 for r, d in zip(w.shape[2:], dilation)], axis=axes
    )
    windows = windows[(..., *(slice(None, None, d) for d in dilation))]
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in stride))]
    per, channels = w.shape[0] // groups, w.shape[1]
    parts = []
    for g in range(groups):
        over = [1, *range(-len(axes), 0)]
        y = np.tensordot(windows[:, g * channels : (g + 1) * channels], w[g * per : (g + 1) * per], (over, [1, *axes]))
        parts.append(np.moveaxis(y, -1, 1))
    return np.concatenate(parts, axis=1)


def _torch_conv(x, w, stride, pads, dilation, groups):
    torch = libraries.torch
    function = getattr(torch.nn.functional, f"conv{len(stride)}d")
    flat = [n for pad in reversed(pads) for n in pad]
    x = torch.nn.functional.pad(libraries.tensor(x), flat)
    return function(x, libraries.tensor(w), stride=stride, dilation=dilation, groups=groups).numpy()


def _onnx_conv(x, w, stride, pads, dilation, groups):
    return libraries.run_onnx("Conv", [x, w], strides=list(stride), dilations=list(dilation), group=groups,
                              pads=[p[0] for p in pads] + [p[1] for p in pads], kernel_shape=list(w.shape[2:]))[0]  # fmt: skip


def _conv(draw: Draw, kind: str, form: str, spatial: int) -> Case:
    t, last = TYPES[kind], form == "nhwc"
    values = draw.option(["whole", "normal", "normal", "special"])
    plain = draw.maybe(0.15) and not last
    pointwise = draw.maybe(0.15)
    most = {1: 9, 2: 5, 3: 3}[spatial]
    window = [1 if pointwise else draw.option([1, 2, 3, 3, most, draw.slow.randint(1, most)]) for _ in range(spatial)]
    winograd = spatial == 2 and not plain and draw.maybe(0.15)
    stride = [draw.option([0, 1, 1, 2, 3]) for _ in range(spatial)]
    dilation = [draw.option([0, 1, 1, 2, 3]) for _ in range(spatial)]
    asymmetric = not plain and draw.maybe(0.3)
    groups = draw.option([0, 1, 1, 2, 3, "depthwise"])
    activation = NONE if plain else draw.option([NONE, NONE, 1, 2, 3, 4, 5])
    has_bias, residual_way = not plain and draw.maybe(0.5), draw.option(["none", "none", "apart", "output"])
    if plain:
        dilation, groups, residual_way = [1] * spatial, 1, "none"
        stride = [max(s, 1) for s in stride]
    if winograd:
        window, stride, dilation, groups = [3, 3], [1, 1], [1, 1], 1
        values = "normal" if values == "special" else values
    pads = []
    for _ in range(spatial):
        first = draw.between(0, 3)
        pads.append((first, draw.between(0, 3) if asymmetric else first))
    steps, spread = [s or 1 for s in stride], [d or 1 for d in dilation]

    n = draw.size(3, 0.02)
    if groups == "depthwise":
        groups = draw.size(33)
        channels, filters = groups, groups * draw.pick([1, 1, 2])
    else:
        g = groups or 1
        channels, filters = g * draw.size(40 // g, 0.0), g * draw.size(24 // g)
    extent = {1: 70, 2: 20, 3: 8}[spatial]
    space = []
    for r, d, (low, high) in zip(window, spread, pads):
        space.append(max(draw.size(extent), (r - 1) * d + 1 - low - high, 1))
    while n * filters * channels * np.prod(space) * np.prod(window) // (groups or 1) > 2**22 and channels > (groups or 1):
        channels = (groups or 1) * max(1, channels // (groups or 1) // 2)
    out_space = [
        (h + low + high - ((r - 1) * d + 1)) // s + 1
        for h, r, d, s, (low, high) in zip(space, window, spread, steps, pads)
    ]
    in_shape = [n, channels, *space]
    filter_shape = [filters, channels // (groups or 1), *window]
    out_shape = [n, filters, *out_space]
    kind_of_values = "normal" if values == "special" else values
    x, w = draw.values(in_shape, kind_of_values), draw.values(filter_shape, kind_of_values)
    if values == "special":
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf])
    operands = {
        "input": operand(draw, t, x, layout_strides(in_shape, last)),
        "filter": operand(draw, t, w, layout_strides(filter_shape, last)),
    }
    residual = None
    if residual_way == "output":
        residual = draw.values(out_shape, kind_of_values)
    operands["output"] = operand(draw, t, out_shape if residual is None else residual,
                                 layout_strides(out_shape, last), output=True)  # fmt: skip
    if residual_way == "apart":
        residual = draw.values(out_shape, kind_of_values)
        operands["residual"] = operand(draw, t, residual, layout_strides(out_shape, last))
    bias = None
    if has_bias:
        operands["bias"] = operand(draw, t, draw.values([filters], kind_of_values))
        bias = operands["bias"].values.reshape(-1, *[1] * spatial)
    if residual is not None:
        residual = operands["residual" if residual_way == "apart" else "output"].values
    x, w = operands["input"].values, operands["filter"].values

    direct = {"scipy": scipy_conv, "numpy": numpy_conv, "torch": _torch_conv, "onnx": _onnx_conv}
    arguments = (steps, pads, spread, groups or 1)

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            z = direct[library](x, w, *arguments)
            size = np.abs(numpy_conv(np.abs(x), np.abs(w), *arguments))
            for extra in (bias, residual):
                if extra is not None:
                    z, size = z + extra, size + np.abs(extra)
            terms = w[0].size if filters else 0
            finite = np.isfinite(size)
            exact = values == "whole" and float(np.max(size, initial=0)) < 2.0**22 and activation in (NONE, RELU, RELU6)
            error = np.zeros(z.shape) if exact and not winograd else gamma(terms + 5) * size + FLT_MIN
            if winograd:  # docs/convolution.md: gamma(C + 32) of a tile's transformed values
                error = error + gamma(channels + 32) * winograd_size(np.abs(x), np.abs(w), pads, out_space)
            error = np.where(finite, error, 0.0)
            if library == "torch":
                value = torch_activation(activation, z)
                error = error + 2.0**-49 * np.where(np.isfinite(z), np.abs(z), 0.0) * (activation in (2, 3))
            else:
                value = numpy_activation(activation, z)
            return {"output": Near(value, after_activation(activation, z, np.where(finite, error, 0.0)))}

    # SciPy and ONNX multiply the elements between dilated taps by zero, which gives NaN for non-finite elements.
    # Winograd's filtering does that with the other elements of a tile, which is allowed, so its cases have finite
    # values only.
    names = ["numpy"] if values == "special" else ["scipy", "numpy"]
    if libraries.torch is not None and n:
        names.append("torch")
    if libraries.onnx is not None and n and values != "special" and np.prod(out_shape) < 600:
        names.append("onnx")
    references = {name: lambda name=name: reference(name) for name in names}
    if plain and spatial == 1:
        arguments_ = [t.code, Handle("input"), in_shape, Handle("filter"), filter_shape, Handle("output"), out_shape,
                      steps[0], pads[0][0]]  # fmt: skip
        return Case("tuff_conv1d", arguments_, operands, references)
    if plain:
        arguments_ = [t.code, Handle("input"), in_shape, Handle("filter"), filter_shape, Handle("output"), out_shape,
                      steps, [p[0] for p in pads]]  # fmt: skip
        return Case(f"tuff_conv{spatial}d", arguments_, operands, references)
    desc = {"dtype": t.code, "input": Handle("input"), "filter": Handle("filter"), "output": Handle("output"),
            "in_shape": in_shape, "filter_shape": filter_shape, "out_shape": out_shape, "stride": stride,
            "padding": [p[0] for p in pads], "dilation": dilation, "groups": groups, "asymmetric": int(asymmetric),
            "padding_end": [p[1] if asymmetric else 0 for p in pads], "layout": int(last),
            "activation": activation}  # fmt: skip
    if winograd:
        desc["precision"] = 3
    if has_bias:
        desc["bias"] = Handle("bias")
    if residual is not None:
        desc["residual"] = Handle("residual" if residual_way == "apart" else "output")
    return Case(f"tuff_conv{spatial}d_ex", desc, operands, references, {"values": values})


for _spatial in (1, 2, 3):
    oracle(f"conv{_spatial}d", [f"tuff_conv{_spatial}d", f"tuff_conv{_spatial}d_ex"], forms=LAYOUTS)(
        lambda draw, kind, form, spatial=_spatial: _conv(draw, kind, form, spatial)
    )


def scipy_transpose(x, w, stride, padding, more, dilation, groups):
    """Full convolutions of the images with zeros inserted between their pixels, cropped by the padding."""
    per = w.shape[1]
    channels = w.shape[0] // groups
    full = [(h - 1) * s + 1 for h, s in zip(x.shape[2:], stride)]
    up = np.zeros((*x.shape[:2], *full))
    up[(slice(None), slice(None), *(slice(None, None, s) for s in stride))] = x
    w = _spread(w, dilation)
    size = [f + r - 1 for f, r in zip(full, w.shape[2:])]
    out = np.zeros((x.shape[0], groups * per, *(s + m for s, m in zip(size, more))))
    for n, k in itertools.product(range(x.shape[0]), range(groups * per)):
        for c in range(k // per * channels, k // per * channels + channels):
            y = scipy.signal.convolve(up[n, c], w[c, k % per], mode="full", method="direct")
            out[(n, k, *(slice(0, s) for s in size))] += y
    return out[(slice(None), slice(None), *(slice(p, n - p) for p, n in zip(padding, out.shape[2:])))]


@oracle("conv_transpose2d", ["tuff_conv_transpose2d", "tuff_conv_transpose2d_ex"], forms=LAYOUTS)
def conv_transpose2d(draw: Draw, kind: str, form: str) -> Case:
    t, last = TYPES[kind], form == "nhwc"
    values = draw.option(["whole", "normal"])
    plain = draw.maybe(0.15) and not last
    window = [draw.slow.randint(1, 5) for _ in "yx"]
    stride = [draw.option([0, 1, 2, 2, 3]) for _ in "yx"]
    dilation = [draw.option([0, 1, 1, 2, 3]) for _ in "yx"]
    groups = draw.option([0, 1, 1, 2, 3])
    activation = NONE if plain else draw.option([NONE, NONE, 1, 2, 3, 4, 5])
    has_bias = not plain and draw.maybe(0.5)
    if plain:
        dilation, groups = [1, 1], 1
        stride = [max(s, 1) for s in stride]
    steps, spread = [s or 1 for s in stride], [d or 1 for d in dilation]
    padding, more, space, out_space = [], [], [], []
    for r, s, d in zip(window, steps, spread):
        more.append(draw.between(0, max(s, d) - 1))
        space.append(draw.size(14))
        full = (space[-1] - 1) * s + (r - 1) * d + 1 + more[-1]
        padding.append(min(draw.between(0, 3), (full - 1) // 2))
        out_space.append(full - 2 * padding[-1])
    g = groups or 1
    n, channels, filters = draw.size(3, 0.02), g * draw.size(16 // g), g * draw.size(12 // g)
    in_shape, filter_shape = [n, channels, *space], [channels, filters // g, *window]
    out_shape = [n, filters, *out_space]
    operands = {
        "input": operand(draw, t, draw.values(in_shape, values), layout_strides(in_shape, last)),
        "filter": operand(draw, t, draw.values(filter_shape, values), layout_strides(filter_shape, last)),
        "output": operand(draw, t, out_shape, layout_strides(out_shape, last), output=True),
    }
    bias = None
    if has_bias:
        operands["bias"] = operand(draw, t, draw.values([filters], values))
        bias = operands["bias"].values.reshape(-1, 1, 1)
    x, w = operands["input"].values, operands["filter"].values

    def product(library: str, x, w):
        if library == "torch":
            # PyTorch crops the result itself; it rejects an output padding for which its own order of steps has no
            # room.
            return libraries.torch.nn.functional.conv_transpose2d(
                libraries.tensor(x), libraries.tensor(w), stride=steps, padding=padding, output_padding=more,
                groups=g, dilation=spread).numpy()  # fmt: skip
        if library == "onnx":
            return libraries.run_onnx("ConvTranspose", [x, w], strides=steps, dilations=spread, group=g,
                                      pads=padding * 2, output_padding=more, kernel_shape=window)[0]  # fmt: skip
        return scipy_transpose(x, w, steps, padding, more, spread, g)

    def reference(library: str) -> dict:
        z, size = product(library, x, w), np.abs(scipy_transpose(np.abs(x), np.abs(w), steps, padding, more, spread, g))
        if bias is not None:
            z, size = z + bias, size + np.abs(bias)
        exact = values == "whole" and activation in (NONE, RELU, RELU6)
        error = np.zeros(z.shape) if exact else gamma(channels // g * window[0] * window[1] + 5) * size + FLT_MIN
        if library == "torch":
            value = torch_activation(activation, z)
            error = error + 2.0**-49 * np.where(np.isfinite(z), np.abs(z), 0.0) * (activation in (2, 3))
        else:
            value = numpy_activation(activation, z)
        return {"output": Near(value, after_activation(activation, z, error))}

    names = ["scipy"]
    if libraries.torch is not None and n:
        names.append("torch")
    # (The evaluator does not support an output padding of a stride or more, which dilation allows.)
    if libraries.onnx is not None and n and g == 1 and np.prod(out_shape) < 400 and all(map(int.__lt__, more, steps)):
        names.append("onnx")
    references = {name: lambda name=name: reference(name) for name in names}
    if plain:
        return Case("tuff_conv_transpose2d", [t.code, Handle("input"), in_shape, Handle("filter"), filter_shape,
                    Handle("output"), out_shape, steps, padding, more], operands, references)  # fmt: skip
    desc = {"dtype": t.code, "input": Handle("input"), "filter": Handle("filter"), "output": Handle("output"),
            "in_shape": in_shape, "filter_shape": filter_shape, "out_shape": out_shape, "stride": stride,
            "padding": padding, "output_padding": more, "dilation": dilation, "groups": groups, "layout": int(last),
            "activation": activation}  # fmt: skip
    if has_bias:
        desc["bias"] = Handle("bias")
    return Case("tuff_conv_transpose2d_ex", desc, operands, references, {"values": values})


def _taps(window, dilation, stride, out):
    """Each tap, and the elements of the padded image that it reads for all outputs."""
    for tap in itertools.product(*map(range, window)):
        yield tap, tuple(slice(t * d, t * d + (o - 1) * s + 1, s) for t, d, s, o in zip(tap, dilation, stride, out))


def numpy_gradients(x, w, dy, pads, stride, dilation, groups):
    """The gradients of a convolution by x and by w: each tap's products at once."""
    n, filters, out = dy.shape[0], dy.shape[1], dy.shape[2:]
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    of_x, of_w = np.zeros(padded.shape), np.zeros(w.shape)
    slopes = dy.reshape(n, groups, filters // groups, *out)
    for tap, read in _taps(w.shape[2:], dilation, stride, out):
        here = (slice(None), slice(None), *read)
        images = padded[here].reshape(n, groups, x.shape[1] // groups, *out)
        weights = w[(..., *tap)].reshape(groups, filters // groups, x.shape[1] // groups)
        of_x[here] += np.einsum("ngk...,gkc->ngc...", slopes, weights).reshape(n, x.shape[1], *out)
        of_w[(..., *tap)] = np.einsum("ngkp,ngcp->gkc", slopes.reshape(*slopes.shape[:3], int(np.prod(out))),
                                      images.reshape(*images.shape[:3], int(np.prod(out)))).reshape(w.shape[:2])  # fmt: skip
    inside = tuple(slice(low, low + size) for (low, _), size in zip(pads, x.shape[2:]))
    return of_x[(slice(None), slice(None), *inside)], of_w


def _torch_gradients(x, w, dy, pads, stride, dilation, groups):
    torch = libraries.torch
    a, b = (libraries.tensor(one).requires_grad_() for one in (x, w))
    flat = [n for pad in reversed(pads) for n in pad]
    function = getattr(torch.nn.functional, f"conv{len(stride)}d")
    y = function(torch.nn.functional.pad(a, flat), b, stride=stride, dilation=dilation, groups=groups)
    y.backward(libraries.tensor(dy))
    return a.grad.numpy(), b.grad.numpy()


def _gradient(draw: Draw, kind: str, form: str, data: bool) -> Case:
    t, spatial, last = TYPES[kind], int(form[0]), form.endswith("nhwc")
    values = draw.option(["whole", "normal"])
    most = {1: 9, 2: 5, 3: 3}[spatial]
    window = [draw.option([1, 2, 3, 3, most]) for _ in range(spatial)]
    stride = [draw.option([0, 1, 1, 2, 3]) for _ in range(spatial)]
    dilation = [draw.option([0, 1, 1, 2, 3]) for _ in range(spatial)]
    asymmetric = draw.maybe(0.3)
    groups = draw.option([0, 1, 1, 2, 3, "depthwise"])
    wanted = draw.option(["both", "filter", "bias"])
    pads = []
    for _ in range(spatial):
        first = draw.between(0, 3)
        pads.append((first, draw.between(0, 3) if asymmetric else first))
    steps, spread = [s or 1 for s in stride], [d or 1 for d in dilation]
    n = draw.size(3, 0.02)
    if groups == "depthwise":
        groups = draw.size(33)
        channels, filters = groups, groups * draw.pick([1, 1, 2])
    else:
        g = groups or 1
        channels, filters = g * draw.size(40 // g), g * draw.size(24 // g)
    space = [max(draw.size({1: 70, 2: 20, 3: 8}[spatial]), (r - 1) * d + 1 - low - high, 1)
             for r, d, (low, high) in zip(window, spread, pads)]  # fmt: skip
    out_space = [(h + low + high - ((r - 1) * d + 1)) // s + 1
                 for h, r, d, s, (low, high) in zip(space, window, spread, steps, pads)]  # fmt: skip
    g = groups or 1
    in_shape, filter_shape, out_shape = [n, channels, *space], [filters, channels // g, *window], [n, filters, *out_space]

    def read(name: str, shape) -> None:
        operands[name] = operand(draw, t, draw.values(shape, values), layout_strides(shape, last))

    def written(name: str, shape) -> None:
        operands[name] = operand(draw, t, shape, layout_strides(shape, last), output=True)

    operands: dict = {}
    read("doutput", out_shape)
    if data:
        read("filter", filter_shape)
        written("dinput", in_shape)
    if not data and wanted != "bias":
        read("input", in_shape)
        written("dfilter", filter_shape)
    if not data and wanted != "filter":
        operands["dbias"] = operand(draw, t, [filters], output=True)
    dy = operands["doutput"].values
    # The operand that a gradient does not depend on has any values.
    x = operands["input"].values if "input" in operands else np.zeros(in_shape)
    w = operands["filter"].values if "filter" in operands else np.zeros(filter_shape)
    arguments = (pads, steps, spread, g)

    def near(value, size, terms) -> Near:
        exact = values == "whole" and float(np.max(size, initial=0)) < 2.0**22
        return Near(value, np.zeros(value.shape) if exact else gamma(terms + 5) * size + FLT_MIN)

    def reference(library: str) -> dict:
        of_x, of_w = (numpy_gradients if library == "numpy" else _torch_gradients)(x, w, dy, *arguments)
        size_x, size_w = numpy_gradients(np.abs(x), np.abs(w), np.abs(dy), *arguments)
        terms, over = n * int(np.prod(out_space)), (0, *range(2, 2 + spatial))
        results = {
            "dinput": near(of_x, size_x, filters // g * int(np.prod(window))),
            "dfilter": near(of_w, size_w, terms),
            "dbias": near(dy.sum(axis=over), np.abs(dy).sum(axis=over), terms),
        }
        return {name: results[name] for name, one in operands.items() if one.output}

    references = {"numpy": lambda: reference("numpy")}
    if libraries.torch is not None and n:
        references["torch"] = lambda: reference("torch")
    desc = {"dtype": t.code, **{name: Handle(name) for name in operands}, "in_shape": in_shape, "filter_shape": filter_shape,
            "out_shape": out_shape, "stride": stride, "padding": [p[0] for p in pads], "dilation": dilation, "groups": groups,
            "padding_end": [p[1] if asymmetric else 0 for p in pads], "asymmetric": int(asymmetric), "spatial": spatial,
            "layout": int(last)}  # fmt: skip
    return Case("tuff_conv_backward_data" if data else "tuff_conv_backward_filter", desc, operands, references, {"values": values})


FORMS = tuple(f"{d}d {layout}" for d in (1, 2, 3) for layout in LAYOUTS)


@oracle("conv_backward_data", ["tuff_conv_backward_data"], forms=FORMS, constant=("reserved", "input", "dfilter", "dbias"))
def conv_backward_data(draw: Draw, kind: str, form: str) -> Case:
    return _gradient(draw, kind, form, True)


@oracle("conv_backward_filter", ["tuff_conv_backward_filter"], forms=FORMS, constant=("reserved", "filter", "dinput"))
def conv_backward_filter(draw: Draw, kind: str, form: str) -> Case:
    return _gradient(draw, kind, form, False)
