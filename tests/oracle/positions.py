"""Rotary position embedding against NumPy's complex numbers in long double, and ONNX's RotaryEmbedding."""

from __future__ import annotations

import numpy as np

import libraries
from case import TYPES, Case, Draw, Handle, operand, oracle
from elements import U32, Near


@oracle("rope", ["tuff_rope", "tuff_rope_ex"], forms=("halves", "pairs"))
def rope(draw: Draw, kind: str, form: str) -> Case:
    t, interleaved = TYPES[kind], form == "pairs"
    plain = not interleaved and draw.maybe(0.3)
    way = "dense" if plain else draw.option(["dense", "dense", "rows first", "gaps"])
    stored = "none" if plain else draw.option(["none", "shared", "own"])
    batch, heads, seq = draw.size(3, 0.02), draw.size(5), draw.size(40)
    head_dim = 2 * draw.size(40)
    rotary = 0
    if not plain and draw.flip(0.5):
        rotary = 2 * draw.between(1, head_dim // 2)
        head_dim += draw.between(0, 1)
    shape = [batch, heads, seq, head_dim]

    def strides(gap: int) -> list[int]:
        width = head_dim + gap
        if way == "rows first":
            return [seq * heads * width, width, heads * width]
        return [heads * (seq * width + gap), seq * width + gap, width]

    in_place = draw.flip(0.25)
    gaps = [0, 0] if way == "dense" else [draw.between(0, 5), draw.between(0, 5)]
    in_strides = strides(gaps[0])
    out_strides = in_strides if in_place else strides(gaps[1])
    operands = {"input": operand(draw, t, draw.values(shape, "spread"), [*in_strides, 1], output=in_place)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, shape, [*out_strides, 1], output=True)
    out = "input" if in_place else "output"
    base = 0.0 if not plain and draw.flip(0.3) else draw.pick([10000.0, 500000.0, 1.5, 1e6])
    where = np.arange(seq)[None]
    offset = draw.pick([0, 0, 5, -3, draw.between(-(2**31), 2**31 - 1 - seq)])
    positions_stride = 0
    if stored != "none":
        positions_stride = seq + draw.between(0, 3) if stored == "own" else 0
        count = batch if stored == "own" else 1
        most = draw.pick([100, 2**31])
        operands["positions"] = operand(draw, TYPES["i32"], draw.data.integers(-most, most, [count, seq]),
                                        [positions_stride or seq, 1])  # fmt: skip
        where = operands["positions"].values
        offset = draw.pick([0, 7, -(2**31), 2**31 - 1])
    where = (where + offset + 2**31) % 2**32 - 2**31  # modulo 2^32
    pairs = (rotary or head_dim) // 2
    with np.errstate(all="ignore"):
        frequency = np.longdouble(base or 10000.0) ** (-np.arange(pairs, dtype=np.longdouble) / pairs)
        angle = where[:, None, :, None].astype(np.longdouble) * frequency
        angle = np.broadcast_to(angle, (batch, 1, seq, pairs))

    def parts(x):
        if interleaved:
            return x[..., 0 : 2 * pairs : 2], x[..., 1 : 2 * pairs : 2]
        return x[..., :pairs], x[..., pairs : 2 * pairs]

    def joined(p, q, like):
        y = like.copy()
        first, second = parts(y)
        first[...], second[...] = p, q
        return y

    def reference(library: str) -> dict:
        if library == "onnx":
            cosine, sine = (np.asarray(f(angle[:, 0]), np.float64) for f in (np.cos, np.sin))
            more = {"rotary_embedding_dim": rotary} if rotary else {}
            y = libraries.run_onnx("RotaryEmbedding", [x, cosine, sine], interleaved=int(interleaved), **more)[0]
        else:
            p, q = parts(x)
            turned = (p + 1j * q) * np.exp(1j * angle.astype(np.clongdouble))
            y = joined(turned.real, turned.imag, x)
        p, q = parts(x)
        # Sine and cosine to 4 ULP of at most 1 (2 u each), the angle's own error of 2^-32 turns, two products and a
        # sum.
        bound = (np.abs(p) + np.abs(q)) * (4 * 2 * U32 + 2.0**-29 + 3 * U32)
        return {out: Near(y, joined(bound, bound, np.zeros(shape)))}

    references = {"numpy": lambda: reference("numpy")}
    if libraries.onnx is not None and batch:
        references["onnx"] = lambda: reference("onnx")
    if plain:
        return Case("tuff_rope", [t.code, Handle("input"), Handle(out), *shape, offset, base], operands, references)
    desc = {"dtype": t.code, "input": Handle("input"), "output": Handle(out), "batch": batch, "heads": heads,
            "seq": seq, "head_dim": head_dim, "rotary_dim": rotary, "offset": offset, "base": base,
            "interleaved": int(interleaved), "positions_stride": positions_stride}  # fmt: skip
    if way != "dense":
        desc |= {"input_strides": in_strides, "output_strides": out_strides}
    if stored != "none":
        desc["positions"] = Handle("positions")
    return Case("tuff_rope_ex", desc, operands, references)
