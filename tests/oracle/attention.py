"""Attention against scipy.special.softmax and logsumexp, PyTorch's scaled_dot_product_attention and ONNX's Attention."""

from __future__ import annotations

import numpy as np
import scipy.special

import libraries
import quantisation
from case import TYPES, Case, Draw, Handle, dense, operand, oracle
from elements import FLT_MIN, U32, Near, gamma

FLT_MAX = float(np.finfo(np.float32).max)
NONE, TOP_LEFT, BOTTOM_RIGHT = range(3)


def _extra(draw: Draw, shape, way: str) -> list[int]:
    """Strides of bias and mask: 0 along axes that share one."""
    batch, heads, rows, keys = shape
    width = keys + draw.gap(0.3)
    full = [heads * rows * width, rows * width, width]
    return {"own": full, "all": [0, 0, 0], "heads": [rows * width, 0, width], "batches": [0, rows * width, width],
            "rows": [heads * width, width, 0]}[way]  # fmt: skip


def _strides(draw: Draw, form: str, batch: int, heads: int, rows: int, width: int) -> list[int]:
    """Elements from one batch element, head and row to the next."""
    if form == "rows first":
        row = heads * width
        return [rows * row, width, row]
    if form == "cache":
        gap = draw.between(0, 5)
        row = width + draw.pick([0, 4, 1])
        head = (rows + gap) * row
        return [heads * head + draw.pick([0, 8]), head, row]
    return dense([batch, heads, rows, width])[:3]


def _by_position(shape, causal: int, left: int, right: int, q_ends, kv_ends):
    """The pairs of a row and a key that causal mask, windows and lengths let through."""
    batch, _, rows, keys = shape
    seen = np.ones(shape, bool)
    for b in range(batch):
        shift = int(kv_ends[b] - q_ends[b]) if causal == BOTTOM_RIGHT else 0
        of = np.ones((rows, keys), bool)
        if causal != NONE:
            of = np.tril(of, shift)
        if left:
            of = np.triu(of, shift - left + 1)
        if right:
            of = np.tril(of, shift + right - 1)
        of[q_ends[b] :], of[:, kv_ends[b] :] = False, False
        seen[b] = of
    return seen


def _repeated(values, strides):
    """Repeats the first element along axes with stride 0."""
    for axis, step in enumerate(strides):
        if step == 0:
            values = np.take(values, [0] * values.shape[axis], axis) if values.shape[axis] else values
    return values


def _quantised(draw: Draw, stored: str, name: str, values, strides: list[int], scaled: bool):
    """Keys or values that are quantised: operands, fields of the descriptor, and the numbers that they stand for."""
    batch, heads, rows, width = values.shape
    if stored in quantisation.BLOCKS:
        number, numbers, size = quantisation.BLOCKS[stored]
        index = np.zeros(values.shape, np.int64) + np.arange(width)
        for axis, step in enumerate(strides):
            index += (np.arange(values.shape[axis]) * step).reshape([-1 if a == axis else 1 for a in range(4)])
        data = draw.bits(TYPES["u8"], (int(index.max()) // 32 + 1) * size if index.size else 0).reshape(-1, size)
        data[:, 1] = data[:, 1] & 0x83 | 0x1C  # scales from 2^-8 on, below 2^-7
        operands = {name: operand(draw, TYPES["u16"], data.reshape(-1).view(np.uint16).copy(), raw=True)}
        return operands, {f"{name}_format": number}, quantisation._decoded(stored, data).astype(np.float64)[index]
    t = TYPES[stored]
    operands, fields = {name: operand(draw, t, values, [*strides, 1])}, {f"{name}_type": t.code}
    numbers = operands[name].values
    if scaled:
        own = [draw.flip(0.5) for _ in range(3)]
        shape = [size if is_own else 1 for size, is_own in zip(values.shape, own)]
        scales = draw.values(shape) + 1.5
        steps = [step if is_own else 0 for step, is_own in zip(dense(shape), own)]
        operands[f"{name}_scales"] = operand(draw, TYPES["f32"], scales)
        fields |= {f"{name}_scales": Handle(f"{name}_scales"), f"{name}_scale_strides": steps}
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = (numbers * operands[f"{name}_scales"].values[..., None]).astype(np.float32).astype(np.float64)
    return operands, fields, numbers


@oracle("attention", ["tuff_attention", "tuff_attention_ex"], forms=("heads first", "rows first", "cache"))
def attention(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    plain = form == "heads first" and draw.maybe(0.3)
    causal = draw.option([NONE, TOP_LEFT, BOTTOM_RIGHT])
    softcap = 0.0 if plain or draw.maybe(0.7) else draw.slow.choice([5.0, 30.0])
    has_bias, has_mask = not plain and draw.maybe(0.3), not plain and draw.maybe(0.3)
    windowed, has_lengths = not plain and draw.maybe(0.3), not plain and draw.maybe(0.3)
    wants_lse = not plain and draw.maybe(0.4)
    bias_f32 = draw.maybe(0.5)
    same = [draw.option(["own", "all", "heads", "batches", "rows"]) for _ in "bm"]
    head_dim = draw.option([1, 3, 8, 13, 16, 32, 40, 64, 64, 80])
    head_dim_v = 0 if plain or draw.maybe(0.6) else draw.slow.choice([4, 7, 24, 64])
    sharing = 1 if plain else draw.option([1, 1, 2, 4])
    few = draw.maybe(0.25)
    wide_scores = draw.maybe(0.25)
    poisoned = not plain and draw.maybe(0.3)
    special = draw.option(["", "", "", "q", "k", "v"])  # which operand has non-finite values
    stored = {name: "" if plain or draw.maybe(0.5) else draw.option(["f8_e4m3", "f8_e5m2", "q8_0", "q4_0"]) for name in "kv"}
    scaled = draw.maybe(0.5)
    if stored["k"] in quantisation.BLOCKS:
        head_dim, head_dim_v = -(-head_dim // 32) * 32, head_dim_v or head_dim
    if stored["v"] in quantisation.BLOCKS:
        head_dim_v = -(-(head_dim_v or head_dim) // 32) * 32
    if stored[special if special in ("k", "v") else "k"]:
        special = "" if special in ("k", "v") else special

    batch, kv_heads = draw.size(3, 0.02), draw.size(3)
    heads, dv = kv_heads * sharing, head_dim_v or head_dim
    rows, keys = draw.size(8 if few else 70), draw.size(90)
    while batch * heads * rows * keys * max(head_dim, dv) > 2**20 and rows * keys > 1:
        rows, keys = max(1, rows // 2), max(1, keys // 2)
    scale = draw.pick([1.0 / np.sqrt(head_dim), draw.fast.uniform(0.05, 1.0)])
    if not plain and draw.flip(0.3):
        scale = 0.0
    used = float(np.float32(scale or 1 / np.sqrt(head_dim)))
    left = draw.between(0, keys) if windowed else 0
    right = draw.between(0, keys) if windowed else 0

    def strides(n_heads: int, n_rows: int, width: int) -> list[int]:
        return _strides(draw, form, batch, n_heads, n_rows, width)

    operands, stride, quantised, numbers = {}, {}, {}, {}
    spread = 3.0 if wide_scores and special != "v" else 1.0
    for name, n_heads, n_rows, width in (("q", heads, rows, head_dim), ("k", kv_heads, keys, head_dim),
                                         ("v", kv_heads, keys, dv), ("o", heads, rows, dv)):  # fmt: skip
        shape, stride[name] = [batch, n_heads, n_rows, width], strides(n_heads, n_rows, width)
        if name == "o":
            operands["o"] = operand(draw, t, shape, [*stride["o"], 1], output=True)
            continue
        values = draw.values(shape) * (spread if name != "v" else 1.0)
        if name == special:
            values = draw.sprinkled(values, [np.nan, np.inf, -np.inf], 2)
        if name != "q" and stored[name]:
            if stored[name] in quantisation.BLOCKS:  # gaps are whole blocks
                stride[name] = _strides(draw, "rows first" if form == "rows first" else "", batch, n_heads, n_rows, width)
            more, fields, numbers[name] = _quantised(draw, stored[name], name, values, stride[name], scaled)
            operands |= more
            quantised |= fields
            continue
        operands[name] = operand(draw, t, values, [*stride[name], 1])

    # The keys that each row may see.
    q_ends, kv_ends = np.full(batch, rows), np.full(batch, keys)
    if has_lengths:
        which = draw.pick(["both", "q", "kv"])
        for name, ends, most in (("q_lengths", q_ends, rows), ("kv_lengths", kv_ends, keys)):
            if which in ("both", name[: name.index("_")]):
                given = draw.data.integers(-1, most + 2, batch)
                operands[name] = operand(draw, TYPES[draw.pick(["i32", "i32"])], given)
                ends[:] = np.clip(given, 0, most)
    seen = _by_position((batch, heads, rows, keys), causal, left, right, q_ends, kv_ends)
    shape = (batch, heads, rows, keys)
    bias = None
    bias_strides, mask_strides = [0, 0, 0], [0, 0, 0]

    if has_bias:
        bias_strides = _extra(draw, shape, same[0])
        values = draw.values(shape)
        values = np.where(draw.data.random(shape) < draw.pick([0.0, 0.2]), -np.inf, values)
        tb = TYPES["f32"] if bias_f32 else t
        operands["bias"] = operand(draw, tb, _repeated(values, bias_strides), [*bias_strides, 1])
        bias = operands["bias"].values
        seen &= bias != -np.inf
    if has_mask:
        mask_strides = _extra(draw, shape, same[1])
        values = draw.data.integers(0, 3, shape) * draw.data.integers(1, 100, shape)
        operands["mask"] = operand(draw, TYPES["u8"], _repeated(values, mask_strides), [*mask_strides, 1])
        seen &= operands["mask"].values != 0
    if wants_lse:
        operands["lse"] = operand(draw, TYPES["f32"], [batch, heads, rows], output=True)
    if poisoned and seen.size:
        # Keys and values that no row sees may have any value.
        unseen = ~seen.reshape(batch, kv_heads, sharing, rows, keys).any(axis=(2, 3))
        for name in "kv":
            if stored[name]:
                continue
            places = operands[name].index[unseen]
            operands[name].raw[places] = draw.bits(t, 1)[0] if t.name == "bf16" else np.nan
            if t.name == "bf16":
                operands[name].raw[places] = 0x7FC1
    q, k, v = (numbers[name] if name in numbers else operands[name].values for name in "qkv")
    k, v = np.repeat(k, sharing, axis=1), np.repeat(v, sharing, axis=1)
    any_seen = seen.any(axis=3)

    def scores(a, b):
        with np.errstate(invalid="ignore"):
            return np.einsum("bhid,bhjd->bhij", a, b)

    def scipy_way():
        s = used * scores(q, k)
        if softcap:
            s = softcap * np.tanh(s / softcap)
        if bias is not None:
            s = s + bias
        # A score of infinity counts as the largest number; one of minus infinity has no weight (tuff.h).
        s = np.where(seen, np.minimum(s, FLT_MAX), -np.inf)
        some = (s != -np.inf).any(axis=3)
        p = np.where(some[..., None], scipy.special.softmax(np.where(some[..., None], s, 0.0), axis=3), 0.0)
        lse = np.where(some, scipy.special.logsumexp(np.where(some[..., None], s, 0.0), axis=3), -np.inf)
        return s, p, np.einsum("bhij,bhjd->bhid", p, np.where(np.isfinite(v), v, 0.0)), lse

    def with_values(y, counts):
        """The outputs, with the effect of non-finite values that these weights let through."""
        nan, plus, minus = (np.einsum("bhij,bhjd->bhid", counts * 1.0, is_ * 1.0) > 0 for is_ in
                            (np.isnan(v), v == np.inf, v == -np.inf))  # fmt: skip
        y = np.where(plus, np.inf, np.where(minus, -np.inf, y))
        return np.where(nan | (plus & minus), np.nan, y)

    def bound(s, p, lse):
        """A score in f32 is off by at most d = gamma(head_dim + 3) scale sum |q k| (products, sums, the scaling), plus
        the roundings of the soft cap (a division, tanh to 4 ULP, a product; its slope is at most 1) and the bias. Its
        weight is the exact one times e^t, |t| <= d + u |s - max| + the error of exp (3 + 2 |x| ULP, from Vulkan) +
        that of rescaling: an online softmax multiplies by exp(old - new maximum) once for each block of at least eight
        keys, with arguments that add up to the range of the scores. With cooperative matrices, weights are rounded to
        the type of v. Sums over keys and the division add gamma(2 n + 2). Weights below FLT_MIN (and those rounded to
        f16, 2^-25) may vanish."""
        finite_q, finite_k = np.where(np.isfinite(q), q, 0.0), np.where(np.isfinite(k), k, 0.0)
        d = gamma(head_dim + 3) * used * scores(np.abs(finite_q), np.abs(finite_k))
        flat = used * scores(finite_q, finite_k)
        if softcap:
            d = d + U32 * np.abs(flat) + 10 * U32 * softcap
        if bias is not None:
            d = d + U32 * np.clip(np.abs(np.where(np.isfinite(s), s, 0.0)), 0, 1e4)
        # (Scores 200 below the maximum have no weight left: neither they nor their rescaling count.)
        counts = np.isfinite(s)
        highest = np.max(np.where(counts, s, -1e300), axis=3, keepdims=True, initial=-1e300)
        lowest = np.min(np.where(counts, s, 1e300), axis=3, keepdims=True, initial=1e300)
        below = np.clip(np.where(counts, highest - s, 0.0), 0.0, 200.0)
        blocks, n = -(-keys // 8), np.sum(counts, axis=3, keepdims=True)
        span = np.clip(np.where(n > 0, highest - lowest, 0.0), 0.0, 200.0)
        t_ = d + U32 * below + (3 + 2 * below) * 2 * U32 + blocks * 7 * U32 + 4 * U32 * span
        largest = np.max(np.where(seen, t_, 0.0), axis=3, keepdims=True, initial=0.0)
        of_weights = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}[t.name]
        vanishing = FLT_MIN + (2.0**-25 if t.name == "f16" else 0.0)
        allowed = p * (np.expm1(np.minimum(t_ + largest, 50)) + gamma(2 * n + 2) + of_weights) + vanishing
        allowed = np.where(counts & np.isfinite(allowed), allowed, 0.0)
        of_o = np.einsum("bhij,bhjd->bhid", allowed, np.abs(np.where(np.isfinite(v), v, 0.0)))
        # max + log(sum): the error of the sum, a logarithm to 4 ULP (2^-21 near 1), products and a sum.
        some = n[..., 0] > 0
        total = np.where(some, np.where(np.isfinite(lse), lse, 0.0) - highest[..., 0], 0.0)
        of_lse = (largest[..., 0] + np.expm1(gamma(2 * n[..., 0] + 2)) + 8 * U32 * np.abs(total) + 2.0**-21
                  + 8 * U32 * np.abs(np.where(some, highest[..., 0], 0.0)))  # fmt: skip
        return of_o, np.where(some, of_lse, 0.0)

    def torch_way():
        torch = libraries.torch
        mask = np.where(seen, 0.0 if bias is None else np.where(np.isfinite(bias), bias, 0.0), -np.inf)
        y = torch.nn.functional.scaled_dot_product_attention(
            *map(libraries.tensor, (q, np.nan_to_num(k), np.nan_to_num(v), mask)), scale=used).numpy()  # fmt: skip
        return np.where(any_seen[..., None], y, 0.0)

    def onnx_way():
        mask = np.where(seen, 0.0 if bias is None else np.where(np.isfinite(bias), bias, 0.0), -np.inf)
        y = libraries.run_onnx("Attention", [q, np.nan_to_num(k), np.nan_to_num(v), mask], scale=used)[0]
        return np.where(any_seen[..., None], y, 0.0)

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            s, p, y, lse = scipy_way()
            of_o, of_lse = bound(s, p, lse)
            if library == "torch":
                y = torch_way()
            if library == "onnx":
                y = onnx_way()
            near = Near(y, of_o)
            if special == "v":
                # A NaN value whose weight rounds to 0 may or may not reach the result (docs/accuracy.md).
                near = Near(with_values(y, p > 2.0**-20), of_o, [(with_values(y, p > 0), of_o)])
            result = {"o": near}
            if wants_lse:
                result["lse"] = Near(lse, of_lse)
            return result

    references = {"scipy": lambda: reference("scipy")}
    if batch and not softcap and not special:
        if libraries.torch is not None:
            references["torch"] = lambda: reference("torch")
        if libraries.onnx is not None:
            references["onnx"] = lambda: reference("onnx")
    names = [Handle(name) for name in "qkvo"]
    if plain:
        arguments = [t.code, *names, batch, heads, rows, keys, head_dim, used, causal]
        return Case("tuff_attention", arguments, operands, references)
    desc = {"dtype": t.code, **dict(zip("qkvo", names)), "batch": batch, "heads": heads, "seq_q": rows,
            "seq_kv": keys, "head_dim": head_dim, "scale": scale, "causal": causal, "head_dim_v": head_dim_v,
            "kv_heads": 0 if sharing == 1 and draw.flip(0.5) else kv_heads, "softcap": softcap,
            "window_left": left, "window_right": right, **quantised}  # fmt: skip
    if form != "heads first":
        desc |= {f"{name}_strides": s for name, s in stride.items()}
    if has_bias:
        desc |= {"bias": Handle("bias"), "bias_strides": bias_strides,
                 "bias_type": TYPES["f32"].code if bias_f32 else draw.pick([0, t.code])}  # fmt: skip
    if has_mask:
        desc |= {"mask": Handle("mask"), "mask_strides": mask_strides}
    for name in ("q_lengths", "kv_lengths", "lse"):
        if name in operands:
            desc[name] = Handle(name)
    refusals = ("at most five of them",) if "k_scales" in desc or "v_scales" in desc else ()
    return Case("tuff_attention_ex", desc, operands, references, refusals=refusals)


@oracle("attention_backward", ["tuff_attention_backward"], forms=("heads first", "rows first", "cache"))
def attention_backward(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    causal = draw.option([NONE, TOP_LEFT, BOTTOM_RIGHT])
    native = t.name != "f32" and draw.maybe(0.4)  # what kernels in PTX take
    softcap = 0.0 if native or draw.maybe(0.7) else draw.slow.choice([5.0, 30.0])
    has_bias, has_mask, windowed, has_lengths = (draw.maybe(0.3) for _ in range(4))
    has_bias, has_mask = has_bias and not native, has_mask and not native
    bias_f32 = draw.maybe(0.5)
    same = [draw.option(["own", "all", "heads", "batches", "rows"]) for _ in "bm"]
    head_dim = draw.option([8, 40, 64, 128] if native else [1, 3, 8, 13, 16, 32, 40, 64, 64, 80])
    head_dim_v = 0 if draw.maybe(0.6) else draw.slow.choice([24, 64] if native else [4, 7, 24, 64])
    sharing = draw.option([1, 1, 2, 4])
    few = draw.maybe(0.25)
    wanted = draw.option(["qkv", "qkv", "q", "k", "v", "qk", "kv"])
    batch, kv_heads = draw.size(3, 0.02), draw.size(3)
    heads, dv = kv_heads * sharing, head_dim_v or head_dim
    rows, keys = draw.size(8 if few else 70), draw.size(90)
    if native:
        rows, keys, batch, kv_heads, heads = rows + 140, keys + 120, min(batch, 1), 1, sharing
    while batch * heads * rows * keys * max(head_dim, dv) > 2**(23 if native else 20) and rows * keys > 1:
        rows, keys = max(1, rows // 2), max(1, keys // 2)
    scale = draw.pick([1.0 / np.sqrt(head_dim), draw.fast.uniform(0.05, 1.0), 0.0])
    used = float(np.float32(scale or 1 / np.sqrt(head_dim)))
    left = draw.between(0, keys) if windowed else 0
    right = draw.between(0, keys) if windowed else 0
    desc, operands = {}, {}

    def tensor(name: str, n_heads: int, n_rows: int, width: int, values=None) -> None:
        shape, strides = [batch, n_heads, n_rows, width], _strides(draw, form, batch, n_heads, n_rows, width)
        output = values is None
        operands[name] = operand(draw, t, shape if output else values, [*strides, 1], output=output)
        desc[name] = Handle(name)
        if form != "heads first":
            desc[f"{name}_strides"] = strides

    for name, n_heads, n_rows, width in (("q", heads, rows, head_dim), ("k", kv_heads, keys, head_dim),
                                         ("v", kv_heads, keys, dv), ("d_o", heads, rows, dv)):  # fmt: skip
        tensor(name, n_heads, n_rows, width, draw.values([batch, n_heads, n_rows, width]))
    for name in wanted:
        n_heads, n_rows, width = {"q": (heads, rows, head_dim), "k": (kv_heads, keys, head_dim), "v": (kv_heads, keys, dv)}[name]
        tensor(f"d{name}", n_heads, n_rows, width)

    q_ends, kv_ends = np.full(batch, rows), np.full(batch, keys)
    if has_lengths:
        which = draw.pick(["both", "q", "kv"])
        for name, ends, most in (("q_lengths", q_ends, rows), ("kv_lengths", kv_ends, keys)):
            if which in ("both", name[: name.index("_")]):
                given = draw.data.integers(-1, most + 2, batch)
                operands[name], desc[name] = operand(draw, TYPES["i32"], given), Handle(name)
                ends[:] = np.clip(given, 0, most)
    shape = (batch, heads, rows, keys)
    seen = _by_position(shape, causal, left, right, q_ends, kv_ends)
    bias, by_bias, shared = np.zeros(shape), False, ()
    if has_bias:
        strides = _extra(draw, shape, same[0])
        values = np.where(draw.data.random(shape) < draw.pick([0.0, 0.2]), -np.inf, draw.values(shape))
        operands["bias"] = operand(draw, TYPES["f32"] if bias_f32 else t, _repeated(values, strides), [*strides, 1])
        seen &= operands["bias"].values != -np.inf
        bias = np.where(seen, operands["bias"].values, 0.0)
        desc |= {"bias": Handle("bias"), "bias_strides": strides,
                 "bias_type": TYPES["f32"].code if bias_f32 else draw.pick([0, t.code])}  # fmt: skip
        by_bias = draw.maybe(0.6)
        shared = tuple(axis for axis in range(3) if strides[axis] == 0)
        if by_bias:
            small = [1 if axis in shared else size for axis, size in enumerate(shape)]
            own = _extra(draw, small, "own") if draw.maybe(0.5) else strides
            operands["dbias"] = operand(draw, TYPES["f32"] if bias_f32 else t, small, [*own, 1], output=True)
            desc["dbias"] = Handle("dbias")
            if own is not strides:
                desc["dbias_strides"] = own
    if has_mask:
        strides = _extra(draw, shape, same[1])
        values = draw.data.integers(0, 3, shape) * draw.data.integers(1, 100, shape)
        operands["mask"] = operand(draw, TYPES["u8"], _repeated(values, strides), [*strides, 1])
        seen &= operands["mask"].values != 0
        desc |= {"mask": Handle("mask"), "mask_strides": strides}

    q, k, v, d_o = (operands[name].values for name in ("q", "k", "v", "d_o"))
    wide_k, wide_v = np.repeat(k, sharing, axis=1), np.repeat(v, sharing, axis=1)

    def pairs(a, b):
        return np.einsum("bhid,bhjd->bhij", a, b)

    # The forward pass: what the call is given as o and lse.
    flat = used * pairs(q, wide_k)
    ratio = np.tanh(flat / softcap) if softcap else np.zeros(shape)
    s = np.where(seen, (softcap * ratio if softcap else flat) + bias, -np.inf)
    some = seen.any(axis=3)
    lse = np.where(some, scipy.special.logsumexp(np.where(some[..., None], s, 0.0), axis=3), -np.inf)
    exact = np.where(seen, np.exp(np.where(seen, s, 0.0) - np.where(some, lse, 0.0)[..., None]), 0.0)
    tensor("o", heads, rows, dv, np.einsum("bhij,bhjd->bhid", exact, wide_v))
    operands["lse"], desc["lse"] = operand(draw, TYPES["f32"], lse), Handle("lse")

    def by_kv_head(x):
        return x.reshape(batch, kv_heads, sharing, keys, x.shape[-1]).sum(axis=2)

    def numpy_way():
        """The gradients by the formulas of tuff.h from o and lse as they were rounded, and their bounds: a weight is off by
        what the error of its score (as in attention()), the difference from lse, its product and exp (3 + 2 |x| ULP) make of
        it; sums of n terms have gamma(n + 4). Matrix units take weights and slopes of the type of q; those of f16 are multiplied
        by powers of two, so that weights are held to 2^-40, and slopes to 2^-38 of their bound."""
        o, sums = operands["o"].values, np.where(some, operands["lse"].values, 0.0)[..., None]
        power = np.where(seen, s, 0.0) - sums
        p = np.where(seen, np.minimum(np.exp(power), 1.0), 0.0)
        e_s = gamma(head_dim + 3) * used * pairs(np.abs(q), np.abs(wide_k)) + U32 * np.abs(flat)
        slope, e_slope = 1 - ratio * ratio, 0.0
        if softcap:
            e_s = e_s + 10 * U32 * softcap
            e_ratio = e_s / softcap + U32
            e_slope = 2 * np.abs(ratio) * e_ratio + e_ratio**2 + 2 * U32
        size = np.abs(np.where(seen, s, 0.0))
        e_p = p * np.expm1(e_s + U32 * (4 * size + 3 * np.abs(power)) + (3 + 2 * np.abs(power)) * 2 * U32) + seen * FLT_MIN
        inner = np.einsum("bhid,bhid->bhi", d_o, o)[..., None]
        difference = pairs(d_o, wide_v) - inner
        e_difference = gamma(dv + 5) * (pairs(np.abs(d_o), np.abs(wide_v)) + np.einsum("bhid,bhid->bhi", np.abs(d_o), np.abs(o))[..., None])
        biased = p * difference
        e_biased = e_p * (np.abs(difference) + e_difference) + p * e_difference + 3 * U32 * np.abs(biased)
        ds = p * difference * slope
        e_ds = (e_p * (np.abs(difference) + e_difference) + p * e_difference) * (slope + e_slope)
        e_ds = e_ds + p * np.abs(difference) * e_slope + 4 * U32 * np.abs(ds)
        unit = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}[t.name]
        vanishing, of_slopes = seen * (2.0**-40 if t.name == "f16" else FLT_MIN), FLT_MIN
        if t.name == "f16":
            longest = [np.sqrt((x**2).sum(-1)).max(initial=0) for x in (d_o, v, o)]
            of_slopes = 2.0**-37 * longest[0] * max(longest[1:])
        e_p = e_p + (unit + 21 * U32 * (t.name == "f16")) * (p + e_p) + vanishing
        e_ds = e_ds + (unit + 21 * U32 * (t.name == "f16")) * (np.abs(ds) + e_ds) + seen * of_slopes

        def product(form: str, factor, error, x, terms):
            value = np.einsum(form, factor, x)
            return value, np.einsum(form, error + gamma(terms + 4) * (np.abs(factor) + error), np.abs(x))

        found = {"q": product("bhij,bhjd->bhid", used * ds, used * e_ds, wide_k, keys),
                 "k": map(by_kv_head, product("bhij,bhid->bhjd", used * ds, used * e_ds, q, rows * sharing)),
                 "v": map(by_kv_head, product("bhij,bhid->bhjd", p, e_p, d_o, rows * sharing))}  # fmt: skip
        near = {f"d{name}": Near(*found[name]) for name in wanted}
        if by_bias:
            terms = np.prod([shape[axis] for axis in shared], initial=1)
            near["dbias"] = Near(biased.sum(shared, keepdims=True),
                                 (e_biased + gamma(terms + 4) * (np.abs(biased) + e_biased)).sum(shared, keepdims=True))  # fmt: skip
        return near

    def torch_way():
        """PyTorch's own gradients, in double. They know neither how o and lse were rounded: D is off by what o is, and a
        weight by what lse is."""
        torch = libraries.torch
        leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (q, k, v)]
        a, b, c = leaves[0], leaves[1].repeat_interleave(sharing, 1), leaves[2].repeat_interleave(sharing, 1)
        scores = used * (a @ b.transpose(-1, -2))
        scores = softcap * torch.tanh(scores / softcap) if softcap else scores
        added = torch.tensor(bias, requires_grad=True)
        scores = (scores + added).masked_fill(~torch.tensor(seen), -torch.inf)
        weights = torch.softmax(scores.masked_fill(~torch.tensor(some)[..., None], 0.0), -1) * torch.tensor(seen)
        (weights @ c).backward(torch.tensor(d_o))
        unit = {"f32": U32, "f16": 2.0**-11, "bf16": 2.0**-8}[t.name]
        of_lse = 2 * U32 * np.abs(np.where(some, lse, 0.0))[..., None]
        of_d = unit * np.einsum("bhid,bhid->bhi", np.abs(d_o), np.abs(operands["o"].values) + 2.0**-24)[..., None]
        off = used * exact * (of_d + of_lse * np.abs(pairs(d_o, wide_v) - np.einsum("bhid,bhid->bhi", d_o, operands["o"].values)[..., None]))
        more = {"q": np.einsum("bhij,bhjd->bhid", off, np.abs(wide_k)),
                "k": by_kv_head(np.einsum("bhij,bhid->bhjd", off, np.abs(q))),
                "v": by_kv_head(np.einsum("bhij,bhid->bhjd", exact * of_lse, np.abs(d_o)))}  # fmt: skip
        near = numpy_way()
        found = {f"d{name}": Near(leaves["qkv".index(name)].grad.numpy(), near[f"d{name}"].bound + 2 * more[name]) for name in wanted}
        if by_bias:
            found["dbias"] = Near(added.grad.numpy().sum(shared, keepdims=True), near["dbias"].bound + 2 * (off / used).sum(shared, keepdims=True))
        return found

    references = {"numpy": numpy_way}
    if batch and libraries.torch is not None:
        references["torch"] = torch_way
    desc |= {"dtype": t.code, "batch": batch, "heads": heads, "seq_q": rows, "seq_kv": keys, "head_dim": head_dim,
             "scale": scale, "causal": causal, "head_dim_v": head_dim_v,
             "kv_heads": 0 if sharing == 1 and draw.flip(0.5) else kv_heads, "softcap": softcap,
             "window_left": left, "window_right": right}  # fmt: skip
    return Case("tuff_attention_backward", desc, operands, references)
