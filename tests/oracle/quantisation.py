"""quantize, dequantize and qgemm against NumPy in the arithmetic of ONNX's QuantizeLinear and DequantizeLinear, and ggml's blocks as NumPy arrays"""

from __future__ import annotations

import numpy as np

from activations import NONE, after_activation, numpy_activation
from case import FLOATS, TYPES, Case, Draw, Handle, encode, operand, oracle
from elements import U32, Bits, Near, gamma, round_to

# Number, bits and least value of the formats of integers.
INTEGERS = {"i8": (1, 8, -128), "u8": (2, 8, 0), "i4": (3, 4, -8), "u4": (4, 4, 0)}
# Number, numbers and bytes of a block.
BLOCKS = {"q4_0": (16, 32, 18), "q4_1": (17, 32, 20), "q5_0": (18, 32, 22), "q5_1": (19, 32, 24), "q8_0": (20, 32, 34),
          "q4_K": (24, 256, 144), "q5_K": (25, 256, 176), "q6_K": (26, 256, 210)}  # fmt: skip
TENSOR, AXIS, BLOCK = range(3)


def _unpacked(format: str, raw: np.ndarray, count: int) -> np.ndarray:
    _, bits, least = INTEGERS[format]
    if bits == 4:
        raw = np.stack([raw & 15, raw >> 4], -1).ravel()
    q = raw[:count].astype(np.int64)
    return np.where(q >= 1 << (bits - 1), q - (1 << bits), q) if least < 0 else q


def _packed(format: str, q: np.ndarray) -> np.ndarray:
    if INTEGERS[format][1] == 8:
        return q.astype(np.int64).astype(np.uint8)
    q = np.concatenate([q & 15, np.zeros(q.size % 2, np.int64)])
    return (q[::2] | q[1::2] << 4).astype(np.uint8)


def _spread(values: np.ndarray, shape: list[int], granularity: int, axis: int, block: int) -> np.ndarray:
    """Scales or zero points, one for each element of the shape."""
    if granularity == TENSOR:
        return np.broadcast_to(values, shape)
    if granularity == AXIS:
        return np.broadcast_to(values.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)
    several = [-(-n // block) if i == axis else n for i, n in enumerate(shape)]
    each = np.repeat(values.reshape(several), block, axis)
    return np.take(each, np.arange(shape[axis]), axis)


def _scales(shape: list[int], granularity: int, axis: int, block: int) -> int:
    if granularity == TENSOR:
        return 1
    if granularity == AXIS:
        return shape[axis]
    return int(np.prod([-(-n // block) if i == axis else n for i, n in enumerate(shape)]))


def _block_size(draw: Draw, granularity: int) -> int:
    return draw.pick([8, 16, 32, 64, draw.between(1, 40)]) if granularity == BLOCK else 0


def _scale_values(draw: Draw, count: int) -> np.ndarray:
    scale = draw.data.choice([0.25, 0.5, 1.0, 2.0, -0.5], count) * np.where(
        draw.data.random(count) < 0.5, 1.0, draw.data.uniform(1, 2, count)
    )
    if count > 1 or draw.flip(0.2):
        draw.sprinkled(scale, [0.0, -0.0, np.nan, np.inf, 1e-45, 3e-39, 6e-8, 3e38])
    return scale


@oracle("quantize", ["tuff_quantize"], FLOATS, tuple(INTEGERS))
def quantize(draw: Draw, kind: str, form: str) -> Case:
    number, bits, least = INTEGERS[form]
    t, st = TYPES[kind], TYPES[draw.option(FLOATS)]
    qt = TYPES[draw.option(FLOATS)]
    granularity = draw.option([TENSOR, AXIS, BLOCK])
    shape = draw.sizes(draw.option([1, 2, 3, 5]), 60, 5000, 0.02)
    axis = draw.between(0, len(shape) - 1)
    block = _block_size(draw, granularity)
    count, scales = int(np.prod(shape)), _scales(shape, granularity, axis, block)
    x = np.where(draw.data.random(count) < 0.4, (draw.whole(count, 300) + 0.5) * 0.25, 40 * draw.values(count))
    draw.sprinkled(x, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-40, 3e38], 9)
    operands = {
        "input": operand(draw, t, x),
        "scales": operand(draw, st, _scale_values(draw, scales)),
        "output": operand(draw, TYPES["u8"], [-(-count * bits // 8)], output=True),
    }
    arguments = dict(format=number, dtype=t.code, scale_type=draw.pick([0, st.code]) if st == t else st.code,
                     quotient_type=draw.pick([0, qt.code]) if qt == st else qt.code, granularity=granularity,
                     input=Handle("input"), scales=Handle("scales"), output=Handle("output"), shape=shape,
                     rank=len(shape), axis=axis, block_size=block)  # fmt: skip
    zeros = draw.maybe(0.5)
    if zeros:
        stored = draw.bits(TYPES["u8"], -(-scales * bits // 8))
        operands["zero_points"] = operand(draw, TYPES["u8"], stored, raw=True)
        arguments["zero_points"] = Handle("zero_points")

    def reference() -> dict:
        value, scale = operands["input"].values, operands["scales"].values
        divisor = _spread(round_to(qt, scale), shape, granularity, axis, block).ravel()
        with np.errstate(all="ignore"):
            # NumPy's f32 division is IEEE 754's; that of the shorter types is the f32 quotient rounded once more.
            quotient = round_to(qt, value).astype(np.float32) / divisor.astype(np.float32)
            whole = np.rint(round_to(qt, quotient.astype(np.float64)))
        whole = np.clip(np.where(np.isnan(whole), 0, whole), -1000, 1000).astype(np.int64)
        if zeros:
            zero = _unpacked(form, stored, scales)
            whole = whole + _spread(zero, shape, granularity, axis, block).ravel()
        q = np.clip(whole, least, least + (1 << bits) - 1)
        return {"output": Near(_packed(form, q).astype(np.int64))}

    return Case("tuff_quantize", arguments, operands, {"numpy": reference})


def _halves(raw: np.ndarray, at: int) -> np.ndarray:
    return raw[:, at : at + 2].copy().view(np.float16).astype(np.float32)


def _decoded(format: str, raw: np.ndarray) -> np.ndarray:
    """The numbers of blocks, as f32."""
    number, numbers, size = BLOCKS[format]
    b = raw.reshape(-1, size)
    n = len(b)
    if format == "q8_0":
        return (_halves(b, 0) * b[:, 2:].view(np.int8).astype(np.float32)).ravel()
    if numbers == 32:
        minimum, five = format.endswith("1"), format.startswith("q5")
        at = 4 if minimum else 2
        q = b[:, -16:]
        q = np.concatenate([q & 15, q >> 4], 1).astype(np.int64)
        if five:
            q = q | np.unpackbits(b[:, at : at + 4], axis=1, bitorder="little").astype(np.int64) << 4
        if minimum:
            return (q.astype(np.float32) * _halves(b, 0) + _halves(b, 2)).ravel()
        return ((q - (16 if five else 8)).astype(np.float32) * _halves(b, 0)).ravel()
    if format == "q6_K":
        low, high = b[:, :128].reshape(n, 2, 2, 32), b[:, 128:192].reshape(n, 2, 1, 32)
        low = np.concatenate([low & 15, low >> 4], 2)
        high = high >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1) & 3
        q = (low | high << 4).astype(np.int64).reshape(n, 256) - 32
        scale = _halves(b, 208) * b[:, 192:208].view(np.int8).astype(np.float32)
        return (np.repeat(scale, 16, 1) * q.astype(np.float32)).ravel()
    packed = b[:, 4:16].astype(np.int64)
    first, second, third = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scale = np.concatenate([first & 63, third & 15 | first >> 6 << 4], 1)
    least = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], 1)
    q = b[:, -128:].reshape(n, 4, 1, 32)
    q = np.concatenate([q & 15, q >> 4], 2).astype(np.int64).reshape(n, 8, 32)
    if format == "q5_K":
        q = q | (b[:, 16:48].reshape(n, 1, 32) >> np.arange(8, dtype=np.uint8).reshape(1, 8, 1) & 1).astype(np.int64) << 4
    d, m = _halves(b, 0) * scale.astype(np.float32), _halves(b, 2) * least.astype(np.float32)
    return (d[:, :, None] * q.astype(np.float32) - m[:, :, None]).ravel()


@oracle("dequantize", ["tuff_dequantize"], FLOATS, (*INTEGERS, *BLOCKS))
def dequantize(draw: Draw, kind: str, form: str) -> Case:
    t, st, blocks = TYPES[kind], TYPES[draw.option(FLOATS)], form in BLOCKS
    granularity = TENSOR if blocks else draw.option([TENSOR, AXIS, BLOCK])
    shape = draw.sizes(draw.option([1, 2, 3, 5]), 60, 5000, 0.02)
    if blocks:
        shape[-1] = BLOCKS[form][1] * draw.between(1, 3)
        shape[:-1] = [min(n, 7) for n in shape[:-1]]
    axis = draw.between(0, len(shape) - 1)
    block = _block_size(draw, granularity)
    count, scales = int(np.prod(shape)), _scales(shape, granularity, axis, block)
    arguments = dict(dtype=t.code, granularity=granularity, input=Handle("input"), output=Handle("output"), shape=shape,
                     rank=len(shape), axis=axis, block_size=block)  # fmt: skip
    operands = {"output": operand(draw, t, [count], output=True)}
    zeros = not blocks and draw.maybe(0.5)
    if blocks:
        number, numbers, size = BLOCKS[form]
        quantised = np.frombuffer(draw.data.bytes(count // numbers * size), np.uint16).copy()
        operands["input"] = operand(draw, TYPES["u16"], quantised, raw=True)
    else:
        number, bits, _ = INTEGERS[form]
        quantised = draw.bits(TYPES["u8"], -(-count * bits // 8))
        operands["input"] = operand(draw, TYPES["u8"], quantised, raw=True)
        operands["scales"] = operand(draw, st, _scale_values(draw, scales))
        arguments |= dict(scales=Handle("scales"), scale_type=draw.pick([0, st.code]) if st == t else st.code)
        if zeros:
            stored = draw.bits(TYPES["u8"], -(-scales * bits // 8))
            operands["zero_points"] = operand(draw, TYPES["u8"], stored, raw=True)
            arguments["zero_points"] = Handle("zero_points")
    arguments["format"] = number

    def reference() -> dict:
        with np.errstate(all="ignore"):
            if blocks:
                value = _decoded(form, quantised.view(np.uint8))
            else:
                q = _unpacked(form, quantised, count)
                if zeros:
                    q = q - _spread(_unpacked(form, stored, scales), shape, granularity, axis, block).ravel()
                scale = _spread(operands["scales"].values, shape, granularity, axis, block).ravel()
                value = q.astype(np.float32) * scale.astype(np.float32)
            return {"output": Bits(encode(t, value.astype(np.float64)), nan=True)}

    return Case("tuff_dequantize", arguments, operands, {"numpy": reference})


@oracle("qgemm", ["tuff_qgemm"], (*FLOATS, "i8", "u8"), (*INTEGERS, *BLOCKS))
def qgemm(draw: Draw, kind: str, form: str) -> Case:
    if kind not in FLOATS:
        return _of_integers(draw, kind, form if form in ("i8", "u8") else draw.option(["i8", "u8"]))
    t, ct, st, blocks = TYPES[kind], TYPES[draw.option(FLOATS)], TYPES[draw.option(FLOATS)], form in BLOCKS
    m, n = draw.pick([draw.between(1, 4), draw.size(30, 0.02)]), draw.size(40, 0.02)
    k = BLOCKS[form][1] * draw.between(1, 3) if blocks else draw.pick([draw.size(200, 0.02), 8 * draw.between(1, 60)])
    granularity = TENSOR if blocks else draw.option([TENSOR, AXIS, BLOCK])
    block = _block_size(draw, granularity)
    along = 1 if granularity == BLOCK else 0
    scales = _scales([n, k], granularity, along, block)
    activation = draw.option([NONE, NONE, 1, 2, 3, 4, 5])
    alpha = draw.pick([0.0, 1.0, -0.75, 3.0])
    arguments = dict(a_type=t.code, c_type=draw.pick([0, ct.code]) if ct == t else ct.code, granularity=granularity,
                     activation=activation, m=m, n=n, k=k, alpha=alpha, block_size=block, a=Handle("a"),
                     weights=Handle("weights"), c=Handle("c"))  # fmt: skip
    operands = {}

    def matrix(name: str, type_, columns: int, leading: str, output: bool = False) -> None:
        ld = max(columns, 1) + draw.gap(0.3)
        arguments[leading] = ld if ld != columns or draw.flip(0.5) else 0
        values = [m, columns] if output else draw.values([m, columns])
        operands[name] = operand(draw, type_, values, [ld, 1], output=output)

    matrix("a", t, k, "lda")
    matrix("c", ct, n, "ldc", True)
    if draw.maybe(0.3):
        matrix("residual", ct, n, "ld_residual")
        arguments["residual"] = Handle("residual")
    if draw.maybe(0.5):
        operands["bias"] = operand(draw, ct, draw.values([n]))
        arguments["bias"] = Handle("bias")
    zeros = not blocks and draw.maybe(0.5)
    if blocks:
        number, numbers, size = BLOCKS[form]
        raw = np.frombuffer(draw.data.bytes(n * k // numbers * size), np.uint8).copy().reshape(-1, size)
        for at in (208,) if form == "q6_K" else (0, 2) if form[-1] in "1K" else (0,):
            raw[:, at : at + 2] = draw.data.uniform(0.001, 0.02, (len(raw), 1)).astype(np.float16).view(np.uint8)
        quantised = raw.ravel().view(np.uint16)
        operands["weights"] = operand(draw, TYPES["u16"], quantised, raw=True)
    else:
        number, bits, _ = INTEGERS[form]
        quantised = draw.bits(TYPES["u8"], -(-n * k * bits // 8))
        operands["weights"] = operand(draw, TYPES["u8"], quantised, raw=True)
        operands["scales"] = operand(draw, st, draw.data.uniform(0.001, 0.02, scales))
        arguments |= dict(scales=Handle("scales"), scale_type=draw.pick([0, st.code]) if st == t else st.code)
        if zeros:
            stored = draw.bits(TYPES["u8"], -(-scales * bits // 8))
            operands["zero_points"] = operand(draw, TYPES["u8"], stored, raw=True)
            arguments["zero_points"] = Handle("zero_points")
    arguments["format"] = number

    def reference() -> dict:
        if blocks:
            weights = _decoded(form, quantised.view(np.uint8))
        else:
            q = _unpacked(form, quantised, n * k)
            if zeros:
                q = q - _spread(_unpacked(form, stored, scales), [n, k], granularity, along, block).ravel()
            scale = _spread(operands["scales"].values, [n, k], granularity, along, block).ravel()
            weights = q.astype(np.float32) * scale.astype(np.float32)
        a, w = operands["a"].values, weights.astype(np.float64).reshape(n, k)
        factor = alpha or 1.0
        z, size = factor * (a @ w.T), abs(factor) * (np.abs(a) @ np.abs(w).T)
        # The header's bound: k + 3 roundings, and one of each weight to a 16-bit type of A.
        error = size * (gamma(k + 3) + (0 if kind == "f32" else 2.0 ** -t.digits))
        for name in ("bias", "residual"):
            if name in operands:
                more = operands[name].values
                z, error = z + more, error + 2 * U32 * (size + np.abs(z) + np.abs(more))
        return {"c": Near(numpy_activation(activation, z), after_activation(activation, z, error))}

    return Case("tuff_qgemm", arguments, operands, {"numpy": reference})


def _of_integers(draw: Draw, kind: str, form: str) -> Case:
    """Both operands are quantised: sums in NumPy's integers of 64 bits, which are exact."""
    t, ct, st = TYPES[kind], TYPES[draw.option(FLOATS)], TYPES[draw.option(FLOATS)]
    m, n = draw.pick([draw.between(1, 4), draw.size(40, 0.02)]), draw.size(40, 0.02)
    k = draw.pick([draw.size(300, 0.02), 8 * draw.between(1, 60)])
    granularity, rows = draw.option([TENSOR, AXIS, BLOCK]), draw.option([TENSOR, AXIS])
    block = _block_size(draw, granularity)
    along = 1 if granularity == BLOCK else 0
    scales, a_scales = _scales([n, k], granularity, along, block), m if rows == AXIS else 1
    activation, alpha = draw.option([NONE, NONE, 1, 2, 3, 4, 5]), draw.pick([0.0, 1.0, -0.75, 3.0])
    lda, ldc = max(k, 1) + draw.gap(0.3), max(n, 1) + draw.gap(0.3)
    arguments = dict(format=INTEGERS[form][0], a_type=t.code, c_type=draw.pick([0, ct.code]) if ct.code == 1 else ct.code,
                     scale_type=draw.pick([0, st.code]) if st.code == 1 else st.code, granularity=granularity,
                     activation=activation, m=m, n=n, k=k, alpha=alpha, block_size=block, a=Handle("a"),
                     weights=Handle("weights"), scales=Handle("scales"), a_scales=Handle("a_scales"), a_granularity=rows,
                     c=Handle("c"), lda=lda, ldc=ldc)  # fmt: skip
    operands = {
        "a": operand(draw, t, draw.bits(t, m * k).reshape(m, k), [lda, 1], raw=True),
        "weights": operand(draw, TYPES["u8"], draw.bits(TYPES["u8"], n * k), raw=True),
        "scales": operand(draw, st, draw.data.uniform(0.001, 0.02, scales)),
        "a_scales": operand(draw, st, draw.data.uniform(0.001, 0.02, a_scales)),
        "c": operand(draw, ct, [m, n], [ldc, 1], output=True),
    }
    if draw.maybe(0.5):
        operands["zero_points"] = operand(draw, TYPES["u8"], draw.bits(TYPES["u8"], scales), raw=True)
        arguments["zero_points"] = Handle("zero_points")
    if draw.maybe(0.5):
        operands["a_zero_points"] = operand(draw, t, draw.bits(t, a_scales), raw=True)
        arguments["a_zero_points"] = Handle("a_zero_points")
    if draw.maybe(0.5):
        operands["bias"] = operand(draw, ct, draw.values([n]))
        arguments["bias"] = Handle("bias")
    if draw.maybe(0.3):
        ld = max(n, 1) + draw.gap(0.3)
        operands["residual"] = operand(draw, ct, draw.values([m, n]), [ld, 1])
        arguments |= dict(residual=Handle("residual"), ld_residual=ld)

    def reference() -> dict:
        a = operands["a"].values.astype(np.int64)
        if "a_zero_points" in operands:
            a = a - operands["a_zero_points"].values.astype(np.int64).reshape(-1, 1)
        w = _unpacked(form, operands["weights"].raw, n * k)
        if "zero_points" in operands:
            w = w - _spread(_unpacked(form, operands["zero_points"].raw, scales), [n, k], granularity, along, block).ravel()
        w, each = w.reshape(n, k), block or max(k, 1)
        blocks = -(-k // each)
        by = operands["scales"].values.reshape(-1, max(blocks, 1) if granularity == BLOCK else 1)
        z, size = np.zeros((m, n)), np.zeros((m, n))
        for b in range(blocks):
            part = slice(b * each, (b + 1) * each)
            sums = (a[:, part] @ w[:, part].T) * by[:, b][None, :]
            z, size = z + sums, size + np.abs(sums)
        factor = (alpha or 1.0) * operands["a_scales"].values.reshape(-1, 1)
        z, size = factor * z, np.abs(factor) * size
        error = size * gamma(blocks + 4)  # the header's bound
        for name in ("bias", "residual"):
            if name in operands:
                more = operands[name].values
                z, error = z + more, error + 2 * U32 * (size + np.abs(z) + np.abs(more))
        return {"c": Near(numpy_activation(activation, z), after_activation(activation, z, error))}

    return Case("tuff_qgemm", arguments, operands, {"numpy": reference})
