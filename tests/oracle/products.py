"""gemm and batched_gemm against NumPy's matmul (float64; long double for f64 products; int64 for i32) and PyTorch's."""

from __future__ import annotations

import numpy as np

import libraries
from activations import NONE, RELU, RELU6, after_activation, numpy_activation, torch_activation
from case import TYPES, Case, Draw, Handle, encode, operand, oracle
from elements import FLT_MIN, U32, U64, Near, gamma

FORMS = ("nn", "nt", "tn", "tt")
FLOATS8 = ("f8_e4m3", "f8_e5m2")
KINDS = ("f32", "f16", "bf16", "f64", "i8", "mixed", *FLOATS8)


def _types(draw: Draw, kind: str) -> tuple[str, str, str]:
    floats = ["f32", "f16", "bf16"]
    if kind == "mixed":
        return draw.option(floats), draw.option(floats), draw.option(floats)
    if kind in FLOATS8:
        return kind, draw.option(list(FLOATS8)), draw.option(floats)
    if kind == "i8":
        return "i8", "i8", draw.option(["i32", "i32"] + floats)
    return kind, kind, kind


def _scalars(draw: Draw, kind: str, integers: bool) -> tuple[float, float]:
    if integers:
        most = draw.pick([3, 3, 2**31 - 1])
        return tuple(float(draw.pick([0, 1, draw.between(-most - 1, most)])) for _ in "ab")
    if kind == "whole":
        return draw.pick([1.0, 1.0, -1.0, 2.0, 0.5, 0.0]), draw.pick([0.0, 0.0, 1.0, -2.0])
    return draw.pick([1.0, 1.0, 0.0, draw.fast.uniform(-2, 2)]), draw.pick([0.0, 0.0, 1.0, draw.fast.uniform(-2, 2)])


def _product(draw: Draw, kind: str, form: str, batched: bool) -> Case:
    types = [TYPES[name] for name in _types(draw, kind)]
    ta, tb, tc = types
    integers = tc.name == "i32"
    values = draw.option(["whole", "normal", "special"])
    conj = draw.option([1, 1, 1, 2])
    plain = draw.maybe(0.2) and kind not in ("mixed", *FLOATS8) and tc.name in (ta.name, "i32")
    activation = NONE if plain else draw.option([NONE, RELU] if integers else [NONE, NONE, 1, 2, 3, 4, 5])
    bias_axis = 0 if plain else draw.option([0, 0, 1, 2])
    residual_way = "none" if plain else draw.option(["none", "none", "apart", "apart", "c"])
    accumulate = 2 if not plain and kind == "f16" and draw.maybe(0.2) else 0
    precision = 0 if plain or ta.name != "f32" or tb.name != "f32" else draw.option([0, 0, 0, 1, 2, 4])
    arrays = batched and not plain and draw.maybe(0.25)

    batch = draw.size(5, 0.03) if batched else 1
    m, n, k = draw.sizes(3, 150, 2**17, 0.02)
    trans_a, trans_b = (conj if c == "t" else 0 for c in form)
    alpha, beta = _scalars(draw, values, integers)
    rounded = (float(alpha), float(beta)) if kind == "f64" else (float(np.float32(alpha)), float(np.float32(beta)))

    def matrix(t, rows, cols, repeats, give):
        """A stored rows x cols matrix, transposed or not; batch_count of them, or one that is repeated."""
        ld = cols + draw.gap()
        footprint = (rows - 1) * ld + cols if rows and cols else 0
        stride = draw.pick([footprint, footprint + draw.gap()]) if batch > 1 else draw.pick([0, footprint])
        if repeats and draw.flip(0.3):
            stride = draw.pick([0, 0, 1, ld])  # one matrix for the whole batch, or overlapping ones
        if arrays:
            stride = 0
        shape = (batch, rows, cols)
        return ld, stride, shape, give

    def numbers(t, shape):
        if not t.float:
            return draw.data.integers(-128, 127, shape, endpoint=True) if t.size == 1 else _i32(draw, shape)
        x = draw.values(shape, "normal" if values == "special" else values)
        return encode(t, x)

    # Powers of two, so that they add no rounding.
    scales = {name: draw.pick([0.5, 2.0, 4.0]) for name in ("scale_a", "scale_b", "scale_c")
              if not plain and kind != "f64" and not integers and draw.maybe(0.3)}  # fmt: skip
    factor = scales.get("scale_a", 1.0) * scales.get("scale_b", 1.0)
    rounded = (rounded[0] * factor, rounded[1])

    a_rows, a_cols = (k, m) if trans_a else (m, k)
    b_rows, b_cols = (n, k) if trans_b else (k, n)
    operands = {}
    fields = {"ta": trans_a, "tb": trans_b, "m": m, "n": n, "k": k, "alpha": alpha, "beta": beta}
    for name, value in scales.items():
        operands[name] = operand(draw, TYPES["f32"], np.array([value]))
        fields[name] = Handle(name)

    def add(name, t, rows, cols, repeats, output=False, unread=False):
        ld, stride, shape, _ = matrix(t, rows, cols, repeats, None)
        if arrays:
            places = []
            for i in range(batch):
                if repeats and i and draw.flip(0.3):
                    places.append(places[-1])
                    continue
                places.append(f"{name}{i}")
                operands[places[-1]] = _matrix(draw, t, (1, rows, cols), (0, ld, 1), numbers, output, unread, values)
            fields[f"{name}_array"] = [Handle(p) for p in places]
        else:
            places = [name]
            operands[name] = _matrix(draw, t, shape, (stride, ld, 1), numbers, output, unread, values)
            fields[name] = Handle(name)
            if batched:
                fields[f"stride_{name}"] = stride
        dense_ld = not plain and ld == cols and draw.flip(0.5)
        fields[f"ld{name}"] = 0 if dense_ld else ld
        return places, ld, stride

    a_places, _, _ = add("a", ta, a_rows, a_cols, True, unread=rounded[0] == 0)
    b_places, _, _ = add("b", tb, b_rows, b_cols, True, unread=rounded[0] == 0)
    c_places, ldc, stride_c = add("c", tc, m, n, False, output=True, unread=rounded[1] == 0 and residual_way != "c")
    if arrays and residual_way == "c" and batch != 1:
        residual_way = "none"  # with arrays, each C has its own buffer, so no single residual can be C

    if bias_axis:
        length = m if bias_axis == 1 else n
        stride = draw.pick([0, length, length + draw.gap()]) if batched else 0
        x = numbers(tc, (batch, length))
        operands["bias"] = operand(draw, tc, _repeated(x, stride), (stride, 1), raw=True)
        fields |= {"bias_axis": bias_axis, "bias": Handle("bias")}
        if batched:
            fields["stride_bias"] = stride
    if residual_way == "apart":
        ld = n + draw.gap()
        stride = draw.pick([0, m * ld]) if batched else 0
        x = _repeated(numbers(tc, (batch, m, n)), stride)
        operands["residual"] = operand(draw, tc, x, (stride, ld, 1), raw=True)
        fields |= {"residual": Handle("residual"), "ld_residual": 0 if ld == n and draw.flip(0.5) else ld}
        if batched:
            fields["stride_residual"] = stride
    elif residual_way == "c":
        fields |= {"residual": Handle(c_places[0] if c_places else "c"), "ld_residual": ldc}
        if batched:
            fields["stride_residual"] = stride_c
    if arrays and batch == 0:
        fields |= {f"{x}_array": [] for x in "abc"}

    def stacked(places, rows, cols):
        if not places:
            return np.zeros((batch, rows, cols))
        x = np.concatenate([operands[p].values for p in places]) if arrays else operands[places[0]].values
        return x

    a = stacked(a_places, a_rows, a_cols)
    b = stacked(b_places, b_rows, b_cols)
    a, b = np.swapaxes(a, 1, 2) if trans_a else a, np.swapaxes(b, 1, 2) if trans_b else b
    c = stacked(c_places, m, n)
    bias = operands["bias"].values if bias_axis else None
    if bias_axis:
        bias = bias[:, :, None] if bias_axis == 1 else bias[:, None, :]
    residual = c if residual_way == "c" else operands["residual"].values if residual_way == "apart" else None

    def split(near: Near) -> dict:
        if not arrays:
            return {"c": near}
        bound = np.broadcast_to(near.bound, near.value.shape)
        return {p: Near(near.value[i : i + 1], bound[i : i + 1]) for i, p in enumerate(c_places)}

    def in_integers(library: str):
        # Everything is modulo 2^32, and int64 is modulo 2^64.
        with np.errstate(over="ignore"):
            if rounded[0] == 0:
                z = np.zeros((batch, m, n), np.int64)
            elif library == "torch":
                z = libraries.torch.matmul(libraries.tensor(a), libraries.tensor(b)).numpy()
            else:
                z = np.matmul(a, b)
            z = z * np.int64(rounded_i(alpha))
            if rounded_i(beta):
                z = z + c * np.int64(rounded_i(beta))
            for extra in (bias, residual):
                z = z if extra is None else z + extra
            z = z.astype(np.uint32).astype(np.int32).astype(np.int64)
        return split(Near(np.maximum(z, 0) if activation == RELU else z))

    def reference(library: str):
        if integers:
            return in_integers(library)
        wide = np.longdouble if kind == "f64" and library == "numpy" else np.float64
        u = U64 if kind == "f64" else U32
        with np.errstate(all="ignore"):
            # With f16 accumulation, if allowed, sums are rounded to f16 (u = 2^-11). Inputs rounded to f16 or bf16, if
            # allowed, each have a relative error of 2^-11 or 2^-8.
            if library == "torch":
                z = libraries.torch.matmul(libraries.tensor(a * 1.0), libraries.tensor(b * 1.0)).numpy()
            else:
                z = np.matmul(a.astype(wide), b.astype(wide))
            size = np.matmul(np.abs(a * 1.0), np.abs(b * 1.0)) if rounded[0] else np.zeros((batch, m, n))
            z = rounded[0] * z if rounded[0] else np.zeros((batch, m, n), wide)
            coarse = gamma(k + 3, 2.0**-11) if accumulate else 0.0
            coarse += {0: 0.0, 1: 2.1 * 2.0**-11, 2: 2.1 * 2.0**-8, 4: 2.1 * 2.0**-10}[precision]
            # Tensor cores may cut a step of 32 products, and the sum before it, to 13 bits of the largest; four steps are
            # added up in f32 (docs/accuracy.md).
            coarse += 4 * 34 * 2.0**-13 if kind in FLOATS8 else 0.0
            size = abs(rounded[0]) * size
            error = coarse * size
            for factor, extra in ((rounded[1], c), (1.0, bias), (1.0, residual)):
                if extra is None or factor == 0:
                    continue
                z = z + factor * extra
                size = size + np.abs(factor * extra)
            # gamma(k + 3) as in docs/accuracy.md, and a rounding for each addition after the GEMM. Integers are exact
            # if even the sum of magnitudes is below 2^24 (docs/accuracy.md, exact tier).
            exact = values == "whole" and float(np.max(size, initial=0.0)) < 2.0**22 and not coarse
            exact = exact and activation in (NONE, RELU, RELU6)
            error = 0.0 if exact else error + gamma(k + 5, u) * size + FLT_MIN * (k > 0)
            error = np.broadcast_to(np.where(np.isfinite(error), error, 0.0), z.shape)
            if library == "torch" and not np.issubdtype(wide, np.integer):
                value = torch_activation(activation, z.astype(np.float64))
                # PyTorch's gelu loses digits of small results, in float64.
                error = error + 2.0**-49 * np.where(np.isfinite(z), np.abs(z), 0.0) * (activation in (2, 3))
            else:
                value = numpy_activation(activation, z.astype(np.float64))
            bound = after_activation(activation, z.astype(np.float64), error, "f64" if kind == "f64" else "f32")
            if kind == "f64":
                bound = bound + 2.0**-52 * np.abs(value)  # rounding of the reference itself
            value, bound = scales.get("scale_c", 1.0) * value, scales.get("scale_c", 1.0) * bound
        return split(Near(value, bound))

    desc = {"dtype": ta.code, **fields}
    if not plain:
        desc |= {"a_type": ta.code if kind == "mixed" or draw.flip(0.3) else 0}
        desc |= {"b_type": tb.code if kind in ("mixed", *FLOATS8) or draw.flip(0.3) else 0}
        desc |= {"c_type": tc.code if kind in ("mixed", "i8", *FLOATS8) and not (integers and draw.flip(0.5)) else 0}
        desc |= {"accumulate": accumulate, "precision": precision, "activation": activation}
    if batched:
        desc["batch_count"] = batch
    name = "tuff_batched_gemm" if batched else "tuff_gemm"
    references = {"numpy": lambda: reference("numpy")}
    # (PyTorch's float64 matmul comes from BLAS and is as accurate as Tuff's f64 GEMM, so it is no reference for that.)
    if libraries.torch is not None and kind != "f64":
        references["torch"] = lambda: reference("torch")
    if plain:
        order = ["ta", "tb", "m", "n", "k", "alpha", "a", "lda", "stride_a", "b", "ldb", "stride_b", "beta", "c",
                 "ldc", "stride_c", "batch_count"]  # fmt: skip
        return Case(name, [ta.code] + [desc[f] for f in order if f in desc], operands, references)
    return Case(name + "_ex", desc, operands, references, {"values": values})


def rounded_i(x: float) -> int:
    return int(x)


def _i32(draw: Draw, shape):
    most = draw.pick([5, 2**31 - 1])
    return draw.data.integers(-most - 1, most, shape, endpoint=True)


def _repeated(x: np.ndarray, stride: int) -> np.ndarray:
    """With stride 0, repeats the first one for the whole batch."""
    return np.broadcast_to(x[:1], x.shape) if stride == 0 and x.shape[0] else x


def _matrix(draw: Draw, t, shape, strides, numbers, output: bool, unread: bool, values: str):
    made = operand(draw, t, np.zeros(shape), strides, output=output)
    count = made.raw.size
    if unread and t.float:
        made.raw[:] = encode(t, np.array(np.nan))  # elements that are not read may have any value
        return made
    x = numbers(t, (count,))
    inside = np.zeros(count, bool)
    inside[made.index] = True
    made.raw[inside] = x[inside]
    if values == "special" and t.float and made.index.size and draw.flip(0.7):
        for _ in range(draw.between(1, 2)):
            made.raw[draw.pick(list(made.index.flat[:: max(1, made.index.size // 50)]))] = encode(
                t, np.array(draw.pick([np.nan, np.inf, -np.inf]))
            )
    return made


@oracle("gemm", ["tuff_gemm", "tuff_gemm_ex"], KINDS, FORMS)
def gemm(draw: Draw, kind: str, form: str) -> Case:
    return _product(draw, kind, form, False)


@oracle("batched_gemm", ["tuff_batched_gemm", "tuff_batched_gemm_ex"], KINDS, FORMS)
def batched_gemm(draw: Draw, kind: str, form: str) -> Case:
    return _product(draw, kind, form, True)
