"""Pooling against NumPy's sliding windows and PyTorch; resizing against NumPy's take, scipy.ndimage and PyTorch."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import scipy.ndimage

import libraries
from case import TYPES, Case, Draw, Handle, layout_strides, operand, oracle
from elements import FLT_MIN, U32, Near, gamma

SPATIAL = ("1d", "2d", "3d")


def _extents(draw: Draw, spatial: int) -> list[int]:
    return draw.sizes(spatial, {1: 200, 2: 24, 3: 9}[spatial], 700)


def _adaptive_taps(n: int, out: int) -> list[range]:
    return [range(o * n // out, -(-(o + 1) * n // out)) for o in range(out)]


def _windows(x, kernel, stride, padding, dilation, out, fill):
    """[batch][channels][out...][kernel...], with `fill` outside the input."""
    spatial = len(kernel)
    more = [max(0, (o - 1) * s + (k - 1) * d + 1 - n - p) for n, k, s, p, d, o in
            zip(x.shape[2:], kernel, stride, padding, dilation, out)]  # fmt: skip
    x = np.pad(x, [(0, 0), (0, 0), *zip(padding, more)], constant_values=fill)
    axes = tuple(range(2, 2 + spatial))
    w = np.lib.stride_tricks.sliding_window_view(x, [(k - 1) * d + 1 for k, d in zip(kernel, dilation)], axes)
    w = w[(..., *(slice(None, None, d) for d in dilation))]
    return w[(slice(None), slice(None), *(slice(0, (o - 1) * s + 1, s) for o, s in zip(out, stride)))]


def _pool(draw: Draw, kind: str, form: str, maximum: bool) -> Case:
    t, spatial = TYPES[kind], int(form[0])
    adaptive, ceil = draw.maybe(0.25), draw.maybe(0.4)
    include = not maximum and not adaptive and draw.maybe(0.5)
    wanted = maximum and draw.maybe(0.5)
    kernel = [draw.slow.randint(1, {1: 9, 2: 5, 3: 3}[spatial]) for _ in range(spatial)]
    stride = [draw.option([0, 1, 2, 3]) for _ in range(spatial)]
    dilation = [draw.option([0, 1, 1, 2, 3]) if maximum else draw.option([0, 1]) for _ in range(spatial)]
    batch, channels = draw.size(3, 0.02), draw.size(9, 0.02)
    space = _extents(draw, spatial)
    if adaptive:
        ceil, kernel, stride, dilation, padding = False, [0] * spatial, [0] * spatial, [0] * spatial, [0] * spatial
        out = [draw.between(1, n) if draw.flip(0.8) else draw.size(12) for n in space]
    else:
        steps, spread = [s or k for s, k in zip(stride, kernel)], [d or 1 for d in dilation]
        padding, out = [], []
        for i, (k, s, d) in enumerate(zip(kernel, steps, spread)):
            span = d * (k - 1) + 1
            padding.append(draw.between(0, span // 2))
            space[i] = max(space[i], span - 2 * padding[-1], 1)
            room = space[i] + 2 * padding[-1] - span
            size = (-(-room // s) if ceil else room // s) + 1
            if ceil and (size - 1) * s >= space[i] + padding[-1]:
                size -= 1
            out.append(size)
    values = draw.pick(["normal", "whole", "special"])
    x = draw.values([batch, channels, *space], "normal" if values == "special" else values)
    if values == "special":
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf] if maximum else [np.nan, np.inf], 5)
        if maximum and draw.flip(0.2):
            x[:] = -np.inf
    operands = {"input": operand(draw, t, x), "output": operand(draw, t, [batch, channels, *out], output=True)}
    if wanted:
        operands["indices"] = operand(draw, TYPES["u32"], [batch, channels, *out], output=True)
    x = operands["input"].values
    over = tuple(range(-spatial, 0))
    places = np.broadcast_to(np.arange(int(np.prod(space))).reshape(space), x.shape)

    def adaptive_numpy() -> tuple:
        shape = [batch, channels, *out]
        y, size, at = np.zeros(shape), np.zeros(shape), np.zeros(shape, np.int64)
        count = np.zeros(shape)
        taps = [_adaptive_taps(n, o) for n, o in zip(space, out)]
        for place in itertools.product(*map(range, out)):
            box = tuple(slice(r.start, r.stop) for r in (taps[a][o] for a, o in enumerate(place)))
            part = x[(slice(None), slice(None), *box)]
            part = part.reshape(batch, channels, int(np.prod(part.shape[2:])))
            here = (slice(None), slice(None), *place)
            count[here] = part.shape[2]
            if maximum and part.size:
                y[here] = np.max(part, axis=2)
                first = np.argmax(part, axis=2)
                at[here] = places[(0, 0, *box)].reshape(-1)[first] if places.size else 0
            elif part.size:
                y[here], size[here] = np.mean(part, axis=2), np.mean(np.abs(part), axis=2)
        return y, size, at, count

    def windows_numpy() -> tuple:
        w = _windows(x, kernel, steps, padding, spread, out, -np.inf if maximum else 0.0)
        inside = _windows(np.ones(x.shape), kernel, steps, padding, spread, out, 0.0)
        count = np.sum(inside, axis=over)
        if not maximum:
            if include:  # the padding on each side counts, anything beyond it does not
                sides = np.pad(np.ones(x.shape), [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=1.0)
                count = np.sum(_windows(sides, kernel, steps, [0] * spatial, spread, out, 0.0), axis=over)
            return np.sum(w, axis=over) / count, np.sum(np.abs(w), axis=over) / count, None, count
        y = np.max(w, axis=over)
        same = (inside > 0) & ((w == y[(..., *[None] * spatial)]) | np.isnan(w))
        same = same.reshape(*y.shape, int(np.prod(kernel)))
        first = np.argmax(same, axis=-1)
        at = _windows(places, kernel, steps, padding, spread, out, 0).reshape(same.shape)
        at = np.take_along_axis(at, first[..., None], -1)[..., 0]
        return y, None, np.where(same.any(axis=-1), at, 0), count

    def torch_way() -> np.ndarray:
        functional = libraries.torch.nn.functional
        data = libraries.tensor(x)
        name = ("max" if maximum else "avg") + f"_pool{spatial}d"
        if adaptive:
            return getattr(functional, "adaptive_" + name)(data, out).numpy()
        more = {"dilation": spread} if maximum else {"count_include_pad": include}
        return getattr(functional, name)(data, kernel, steps, padding, ceil_mode=ceil, **more).numpy()

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            y, size, at, count = adaptive_numpy() if adaptive else windows_numpy()
            if library == "torch":
                y, at = torch_way(), None
            # A serial sum, the product of its divisor, and a division to 4 ULP.
            terms = int(np.max(count, initial=1))
            bound = 0.0 if maximum else gamma(terms + 2) * size + 8 * U32 * np.abs(y) + FLT_MIN
            result = {"output": Near(y, np.where(np.isfinite(y), bound, 0.0))}
            if wanted and at is not None:
                result["indices"] = Near(at)
            return result

    references = {"numpy": lambda: reference("numpy")}
    # PyTorch limits padding to half of the kernel, ignoring dilation; its avg_pool3d needs images of at least the
    # kernel's size.
    takes = all(2 * p <= k for p, k in zip(padding, kernel)) and (
        maximum or adaptive or spatial < 3 or all(n >= k for n, k in zip(space, kernel))
    )
    if libraries.torch is not None and x.size and takes:
        references["torch"] = lambda: reference("torch")
    desc = {"dtype": t.code, "input": Handle("input"), "output": Handle("output"), "batch": batch,
            "channels": channels, "in_shape": space, "out_shape": out, "kernel": kernel, "stride": stride,
            "padding": padding, "dilation": dilation, "spatial": spatial, "ceil_mode": int(ceil),
            "count_include_pad": int(include), "adaptive": int(adaptive)}  # fmt: skip
    if wanted:
        desc["indices"] = Handle("indices")
    return Case("tuff_max_pool" if maximum else "tuff_avg_pool", desc, operands, references, {"values": values})


@oracle("max_pool", ["tuff_max_pool"], forms=SPATIAL, constant=("count_include_pad",))
def max_pool(draw: Draw, kind: str, form: str) -> Case:
    return _pool(draw, kind, form, True)


@oracle("avg_pool", ["tuff_avg_pool"], forms=SPATIAL, constant=("indices",))
def avg_pool(draw: Draw, kind: str, form: str) -> Case:
    return _pool(draw, kind, form, False)


def _boxes(space, out, adaptive, kernel, steps, padding, spread, include):
    """For each window its place in the output, the elements of the input that it has along each axis, and its divisor."""
    along = []
    for a, (n, o) in enumerate(zip(space, out)):
        rows = []
        for w in range(o):
            if adaptive:
                taps = list(_adaptive_taps(n, o)[w])
                rows.append((taps, len(taps)))
                continue
            padded = [w * steps[a] - padding[a] + k * spread[a] for k in range(kernel[a])]
            taps = [p for p in padded if 0 <= p < n]
            rows.append((taps, sum(p < n + padding[a] for p in padded) if include else len(taps)))
        along.append(rows)
    for place in itertools.product(*map(range, out)):
        each = [along[a][o] for a, o in enumerate(place)]
        yield place, [taps for taps, _ in each], int(np.prod([count for _, count in each]))


@oracle("pool_backward", ["tuff_pool_backward"], forms=SPATIAL)
def pool_backward(draw: Draw, kind: str, form: str) -> Case:
    t, spatial = TYPES[kind], int(form[0])
    way = draw.option(["input", "indices", "mean", "mean"])
    maximum = way != "mean"
    adaptive, ceil = draw.maybe(0.25), draw.maybe(0.4)
    include = not maximum and not adaptive and draw.maybe(0.5)
    kernel = [draw.slow.randint(1, {1: 9, 2: 4, 3: 3}[spatial]) for _ in range(spatial)]
    stride = [draw.option([0, 1, 2, 3]) for _ in range(spatial)]
    dilation = [draw.option([0, 1, 1, 2, 3]) if maximum else draw.option([0, 1]) for _ in range(spatial)]
    batch, channels = draw.size(3, 0.02), draw.size(9, 0.02)
    space = draw.sizes(spatial, {1: 60, 2: 14, 3: 7}[spatial], 250)
    steps, spread, padding, out = [s or k for s, k in zip(stride, kernel)], [d or 1 for d in dilation], [], []
    if adaptive:
        ceil, kernel, stride, dilation, padding = False, [0] * spatial, [0] * spatial, [0] * spatial, [0] * spatial
        out = [draw.between(1, n) if draw.flip(0.8) else draw.size(9) for n in space]
    else:
        for i, (k, s, d) in enumerate(zip(kernel, steps, spread)):
            span = d * (k - 1) + 1
            padding.append(draw.between(0, span // 2))
            space[i] = max(space[i], span - 2 * padding[-1], 1)
            room = space[i] + 2 * padding[-1] - span
            size = (-(-room // s) if ceil else room // s) + 1
            out.append(size - 1 if ceil and (size - 1) * s >= space[i] + padding[-1] else size)
    values = draw.pick(["normal", "whole", "special"])
    x = draw.values([batch, channels, *space], "whole" if values == "special" else values)  # with equal elements
    if values == "special":
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf], 5)
    operands = {"doutput": operand(draw, t, draw.values([batch, channels, *out], "whole" if values == "whole" else "normal")),
                "dinput": operand(draw, t, [batch, channels, *space], output=True)}  # fmt: skip
    if way == "input":
        operands["input"] = operand(draw, t, x)
        x = operands["input"].values
    dy = operands["doutput"].values
    places = np.arange(int(np.prod(space))).reshape(space)
    boxes = list(_boxes(space, out, adaptive, kernel, steps, padding, spread, include))
    # The index of the first largest element, or of the first NaN, of each window.
    first = np.zeros(dy.shape, np.int64)
    for place, taps, _ in boxes:
        if maximum and all(taps) and x.size:
            part = x[(slice(None), slice(None), *np.ix_(*taps))].reshape(batch, channels, -1)
            first[(slice(None), slice(None), *place)] = places[np.ix_(*taps)].reshape(-1)[np.argmax(part, axis=2)]
    if way == "indices":
        operands["indices"] = operand(draw, TYPES["u32"], first)

    def reference() -> dict:
        dx, size, terms = np.zeros(x.shape), np.zeros(x.shape), np.zeros(x.shape)
        for place, taps, count in boxes:
            if not all(taps):
                continue
            box, here = (slice(None), slice(None), *np.ix_(*taps)), (slice(None), slice(None), *place)
            slope = dy[here].reshape(batch, channels, *[1] * spatial)
            if maximum:
                chosen = places[np.ix_(*taps)] == first[here].reshape(batch, channels, *[1] * spatial)
                slope = np.where(chosen, slope, 0.0)
            else:
                slope, chosen = np.broadcast_to(slope / count, dx[box].shape), np.ones(dx[box].shape)
            dx[box] += slope
            size[box] += np.abs(slope)
            terms[box] += chosen
        # A share is a quotient of 2.5 ULP by a product of sizes; whole numbers of maxima are exact.
        bound = gamma(float(np.max(terms, initial=0)) + 6) * size + FLT_MIN
        return {"dinput": Near(dx, np.zeros(dx.shape) if maximum and values == "whole" else bound)}

    def torch_way() -> dict:
        functional = libraries.torch.nn.functional
        data = libraries.tensor(x).requires_grad_()
        name = ("max" if maximum else "avg") + f"_pool{spatial}d"
        if adaptive:
            y = getattr(functional, "adaptive_" + name)(data, out)
        else:
            more = {"dilation": spread} if maximum else {"count_include_pad": include}
            y = getattr(functional, name)(data, kernel, steps, padding, ceil_mode=ceil, **more)
        y.backward(libraries.tensor(dy))
        return {"dinput": Near(data.grad.numpy(), reference()["dinput"].bound)}

    references = {"numpy": reference}
    takes = all(2 * p <= k for p, k in zip(padding, kernel)) and (
        maximum or adaptive or spatial < 3 or all(n >= k for n, k in zip(space, kernel))
    )
    # PyTorch takes the last of several NaNs, and of no others.
    if libraries.torch is not None and x.size and takes and values != "special":
        references["torch"] = torch_way
    desc = {"dtype": t.code, **{name: Handle(name) for name in operands}, "maximum": int(maximum), "batch": batch,
            "channels": channels, "in_shape": space, "out_shape": out, "kernel": kernel, "stride": stride,
            "padding": padding, "dilation": dilation, "spatial": spatial, "ceil_mode": int(ceil),
            "count_include_pad": int(include), "adaptive": int(adaptive)}  # fmt: skip
    return Case("tuff_pool_backward", desc, operands, references, {"values": values})


NEAREST, EXACT, LINEAR = range(3)


def _positions(n: int, out: int, scale: Fraction, mode: int, align: bool) -> list[Fraction]:
    """The exact position of each output in the input: the coordinates of ONNX's Resize."""
    if mode == LINEAR and align:
        return [Fraction(o * (n - 1), out - 1) if out > 1 else Fraction(0) for o in range(out)]
    if mode == NEAREST:
        return [Fraction(o) / scale for o in range(out)]
    return [Fraction(2 * o + 1, 2) / scale - (Fraction(1, 2) if mode == LINEAR else 0) for o in range(out)]


@oracle("resize", ["tuff_resize"], forms=tuple(f"{d} {way}" for d in SPATIAL for way in ("nchw", "nhwc")))
def resize(draw: Draw, kind: str, form: str) -> Case:
    t, spatial, last = TYPES[kind], int(form[0]), form.endswith("nhwc")
    mode = draw.option([NEAREST, EXACT, LINEAR, LINEAR])
    align = mode == LINEAR and draw.maybe(0.4)
    scaled = not align and draw.maybe(0.4)
    batch, channels = draw.size(3), draw.size(9)
    space, out, scale = _extents(draw, spatial), [], []
    for n in space:
        by = draw.pick([0.3, 0.5, 1.5, 2.0, 1.25, 3.7, 1.0]) if scaled and draw.flip(0.9) else 0.0
        scale.append(by)
        size = draw.pick([n, draw.size(2 * n)])
        if by:
            exact = int(n * Fraction(str(by)))
            size = max(1, exact if draw.flip(0.7) else draw.size(2 * n))
        out.append(size)
    while np.prod(out) > 2500:
        out[out.index(max(out))] //= 2
    factors = [Fraction(str(by)) if by else Fraction(o, n) for by, o, n in zip(scale, out, space)]

    in_shape, out_shape = [batch, channels, *space], [batch, channels, *out]
    x = draw.values(in_shape)
    if mode != LINEAR and draw.flip(0.3):
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf])
    operands = {"input": operand(draw, t, x, layout_strides(in_shape, last)),
                "output": operand(draw, t, out_shape, layout_strides(out_shape, last), output=True)}  # fmt: skip
    x = operands["input"].values
    exact = [_positions(n, o, f, mode, align) for n, o, f in zip(space, out, factors)]

    def linear(x):
        """scipy.ndimage between the elements around each position, clamped to the first and the last one."""
        axes = [np.clip(np.array([float(p) for p in ps]), 0, n - 1) for ps, n in zip(exact, space)]
        grid = np.meshgrid(*axes, indexing="ij")
        planes = x.reshape(-1, *space)
        return np.array([scipy.ndimage.map_coordinates(p, grid, order=1, mode="nearest") for p in planes])

    def around(x):
        """The sum of the elements with a weight."""
        for axis, (ps, n) in enumerate(zip(exact, space), 2):
            at = [min(max(p, Fraction(0)), Fraction(n - 1)) for p in ps]
            low, high = [int(p) for p in at], [-int(-p // 1) for p in at]
            one = np.array([a != b for a, b in zip(low, high)], float).reshape([-1 if i == axis else 1 for i in
                                                                               range(x.ndim)])  # fmt: skip
            x = np.take(x, low, axis) + one * np.take(x, high, axis)
        return x

    def reference(library: str) -> dict:
        if mode == LINEAR:
            y = linear(x).reshape(out_shape) if library == "numpy" else torch_way()
            # A weight is a quotient (2.5 ULP) of two rounded numbers, 8 u of itself; its complement to 1 is off by as
            # much, and rounded; then a product and a sum: 12 u of either element, along each axis.
            return {"output": Near(y, gamma(12.0 * spatial) * around(np.abs(x)) + FLT_MIN)}
        y = x
        for axis, (ps, n) in enumerate(zip(exact, space), 2):
            y = np.take(y, [min(int(p), n - 1) for p in ps], axis)
        if library == "torch":
            # PyTorch computes positions in float32: near an integer it may select the neighbour.
            sure = np.ones(out_shape, bool)
            for axis, ps in enumerate(exact, 2):
                off = np.array([abs(float(p - round(p))) > 1e-4 for p in ps])
                sure &= off.reshape([-1 if i == axis else 1 for i in range(y.ndim)])
            y = np.where(sure, torch_way(), y)
        return {"output": Near(y)}

    def torch_way():
        name = {NEAREST: "nearest", EXACT: "nearest-exact"}.get(mode, {1: "linear", 2: "bilinear", 3: "trilinear"}[spatial])
        more = {"scale_factor": scale} if scaled else {"size": out}
        corners = {"align_corners": align} if mode == LINEAR else {}
        return libraries.torch.nn.functional.interpolate(libraries.tensor(x), mode=name, **more, **corners).numpy()

    references = {"numpy": lambda: reference("numpy")}
    # PyTorch derives the output's size from the scale.
    fits = all(by and int(n * Fraction(str(by))) == o for by, n, o in zip(scale, space, out))
    # It copies along an axis whose size stays, whatever the scale; ONNX and Tuff use the given scale.
    fits = fits and not any(by != 1 and n == o for by, n, o in zip(scale, space, out))
    if libraries.torch is not None and (fits if scaled else True):
        references["torch"] = lambda: reference("torch")
    desc = {"dtype": t.code, "input": Handle("input"), "output": Handle("output"), "batch": batch,
            "channels": channels, "in_shape": space, "out_shape": out, "scale": scale, "spatial": spatial,
            "mode": mode, "align_corners": int(align), "layout": int(last)}  # fmt: skip
    return Case("tuff_resize", desc, operands, references)
