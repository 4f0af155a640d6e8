"""unary, binary and cast against NumPy, scipy.special and PyTorch."""

from __future__ import annotations

import numpy as np
import scipy.special

import libraries
from activations import gelu, gelu_tanh, gelu_tanh_ulps, silu
from case import ALL, TYPES, Case, Draw, Handle, decode, encode, operand, oracle, types_of
from device import raw
from elements import FLT_MIN, Bits, Near, round_to, ulp

F32 = TYPES["f32"]


def _hardswish(x, alpha):
    with np.errstate(invalid="ignore"):
        return np.where(x == -np.inf, 0.0, x * np.clip(x + 3, 0, 6) / 6)


# name: number, function of (x, alpha), ULP promised (docs/accuracy.md; 0: exact), PyTorch's function
def _torch_unary(name: str):
    torch = libraries.torch
    functional = torch.nn.functional
    return {
        "relu": lambda x, a: functional.relu(x),
        "sigmoid": lambda x, a: torch.sigmoid(x),
        "tanh": lambda x, a: torch.tanh(x),
        "exp": lambda x, a: torch.exp(x),
        "log": lambda x, a: torch.log(x),
        "sqrt": lambda x, a: torch.sqrt(x),
        "abs": lambda x, a: torch.abs(x),
        "neg": lambda x, a: torch.neg(x),
        "gelu": lambda x, a: functional.gelu(x),
        "gelu_tanh": lambda x, a: functional.gelu(x, approximate="tanh"),
        "silu": lambda x, a: functional.silu(x),
        "leaky_relu": lambda x, a: functional.leaky_relu(x, a),
        "elu": lambda x, a: functional.elu(x, a),
        "hardswish": lambda x, a: functional.hardswish(x),
        "softplus": lambda x, a: torch.logaddexp(x, torch.zeros_like(x)),
        "sin": lambda x, a: torch.sin(x),
        "cos": lambda x, a: torch.cos(x),
        "erf": lambda x, a: torch.erf(x),
        "square": lambda x, a: torch.square(x),
        "cube": lambda x, a: x * x * x,
        "sign": lambda x, a: torch.where(torch.isnan(x), x, torch.sign(x)),
        "floor": lambda x, a: torch.floor(x),
        "ceil": lambda x, a: torch.ceil(x),
        "round": lambda x, a: torch.round(x),
        "trunc": lambda x, a: torch.trunc(x),
        "reciprocal": lambda x, a: torch.reciprocal(x),
        "rsqrt": lambda x, a: torch.rsqrt(x),
        "cbrt": lambda x, a: torch.copysign(torch.abs(x) ** (1 / 3), x),
        "exp2": lambda x, a: torch.exp2(x),
        "expm1": lambda x, a: torch.expm1(x),
        "log2": lambda x, a: torch.log2(x),
        "log10": lambda x, a: torch.log10(x),
        "log1p": lambda x, a: torch.log1p(x),
        "tan": lambda x, a: torch.tan(x),
        "asin": lambda x, a: torch.asin(x),
        "acos": lambda x, a: torch.acos(x),
        "atan": lambda x, a: torch.atan(x),
        "sinh": lambda x, a: torch.sinh(x),
        "cosh": lambda x, a: torch.cosh(x),
        "asinh": lambda x, a: torch.asinh(x),
        "acosh": lambda x, a: torch.acosh(x),
        "atanh": lambda x, a: torch.atanh(x),
        "erfc": lambda x, a: torch.erfc(x),
        "selu": lambda x, a: functional.selu(x),
        "softsign": lambda x, a: torch.where(torch.isinf(x), torch.sign(x), functional.softsign(x)),
        "hardsigmoid": lambda x, a: functional.hardsigmoid(x),
        "mish": lambda x, a: functional.mish(x),
        "erfinv": lambda x, a: torch.erfinv(x),
        "lgamma": lambda x, a: torch.lgamma(x),
        "digamma": lambda x, a: torch.digamma(x),
        "log_sigmoid": lambda x, a: functional.logsigmoid(x),
    }[name]


def _selu(x):
    scale, alpha = 1.0507009873554804934, 1.6732632423543772848
    return scale * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _softsign(x):
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


def _mish(x):
    with np.errstate(invalid="ignore"):
        return np.where(x == -np.inf, 0.0, x * np.tanh(np.logaddexp(x, 0)))


def _lgamma(x):
    return np.where(x == -np.inf, np.inf, scipy.special.gammaln(x))  # as in C; SciPy's is -inf


def _reflected(function, least: float):
    """docs/accuracy.md: for negative x further 4 ULP of f(|x|), or of `least`."""

    def ulps(x):
        with np.errstate(all="ignore"):
            y = function(x)
            more = 4 * ulp(F32, np.maximum(np.abs(function(np.abs(x))), least)) / ulp(F32, y)
            return np.where((x < 0) & np.isfinite(y), 2 + more, 2)

    return ulps


UNARY = {
    "relu": (1, lambda x, a: np.maximum(x, 0), 0),
    "sigmoid": (2, lambda x, a: scipy.special.expit(x), 4),
    "tanh": (3, lambda x, a: np.tanh(x), 2),
    "exp": (4, lambda x, a: np.exp(x), 2),
    "log": (5, lambda x, a: np.log(x), 2),
    "sqrt": (6, lambda x, a: np.sqrt(x), 2),
    "abs": (7, lambda x, a: np.abs(x), 0),
    "neg": (8, lambda x, a: -x, 0),
    "gelu": (9, lambda x, a: gelu(x), 8),
    "gelu_tanh": (10, lambda x, a: gelu_tanh(x), gelu_tanh_ulps),
    "silu": (11, lambda x, a: silu(x), 8),
    "leaky_relu": (12, lambda x, a: np.where(x > 0, x, a * x), 2),
    "elu": (13, lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0))), 2),
    "hardswish": (14, _hardswish, 2),
    "softplus": (15, lambda x, a: np.logaddexp(x, 0), 2),
    "sin": (16, lambda x, a: np.sin(x), 2),
    "cos": (17, lambda x, a: np.cos(x), 2),
    "erf": (18, lambda x, a: scipy.special.erf(x), 2),
    "square": (19, lambda x, a: np.square(x), 0),
    "cube": (20, lambda x, a: x * x * x, 2),
    "sign": (21, lambda x, a: np.sign(x), 0),
    "floor": (22, lambda x, a: np.floor(x), 0),
    "ceil": (23, lambda x, a: np.ceil(x), 0),
    "round": (24, lambda x, a: np.round(x), 0),
    "trunc": (25, lambda x, a: np.trunc(x), 0),
    "reciprocal": (26, lambda x, a: 1 / x, 2),
    "rsqrt": (27, lambda x, a: 1 / np.sqrt(x), 2),
    "cbrt": (28, lambda x, a: np.cbrt(x), 2),
    "exp2": (29, lambda x, a: np.exp2(x), 2),
    "expm1": (30, lambda x, a: np.expm1(x), 2),
    "log2": (31, lambda x, a: np.log2(x), 2),
    "log10": (32, lambda x, a: np.log10(x), 2),
    "log1p": (33, lambda x, a: np.log1p(x), 2),
    "tan": (34, lambda x, a: np.tan(x), 2),
    "asin": (35, lambda x, a: np.arcsin(x), 2),
    "acos": (36, lambda x, a: np.arccos(x), 2),
    "atan": (37, lambda x, a: np.arctan(x), 2),
    "sinh": (38, lambda x, a: np.sinh(x), 2),
    "cosh": (39, lambda x, a: np.cosh(x), 2),
    "asinh": (40, lambda x, a: np.arcsinh(x), 2),
    "acosh": (41, lambda x, a: np.arccosh(x), 2),
    "atanh": (42, lambda x, a: np.arctanh(x), 2),
    "erfc": (43, lambda x, a: scipy.special.erfc(x), 2),
    "selu": (44, lambda x, a: _selu(x), 2),
    "softsign": (45, lambda x, a: _softsign(x), 2),
    "hardsigmoid": (46, lambda x, a: np.clip(x + 3, 0, 6) / 6, 2),
    "mish": (47, lambda x, a: _mish(x), 2),
    "erfinv": (48, lambda x, a: scipy.special.erfinv(x), 2),
    "lgamma": (49, lambda x, a: _lgamma(x), _reflected(_lgamma, 1.0)),
    "digamma": (50, lambda x, a: scipy.special.psi(x), _reflected(scipy.special.psi, 4.0)),
    "log_sigmoid": (51, lambda x, a: -np.logaddexp(-x, 0), 2),
}
# Functions that are real on [-1, 1] only.
NARROW = ("asin", "acos", "atanh", "erfinv")
# Only those in the header.
UNARY = {name: row for name, row in UNARY.items() if hasattr(raw, f"UNARY_{name.upper()}")}
assert all(getattr(raw, f"UNARY_{name.upper()}") == row[0] for name, row in UNARY.items())
# Functions for whose infinite arguments PyTorch computes 0 * infinity; tuff.h gives the limit.
LIMITS = ("gelu", "gelu_tanh", "silu", "hardswish", "mish")


def _near(values: np.ndarray, ulps) -> Near:
    with np.errstate(all="ignore"):
        return Near(values, np.where(np.isfinite(values), ulps * ulp(F32, values), 0.0))


def _flushed(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < FLT_MIN, np.copysign(0.0, x), x)


def _arguments(draw: Draw, t, shape, most: float = 12.0) -> np.ndarray:
    """As stored: moderate numbers (up to `most`), numbers of any magnitude, random bit patterns."""
    count = int(np.prod(shape))
    way = draw.pick(["moderate", "moderate", "any", "special"])
    if way == "any" or not t.float:
        return draw.bits(t, count).reshape(shape)
    x = draw.data.uniform(-most, most, shape)
    if way == "special":
        x = draw.sprinkled(x, [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38, 1e-30, 88.8, -104.0, 1e6], 12)
    return encode(t, x)


@oracle("unary", ["tuff_unary", "tuff_unary_ex"], types_of("unary"), forms=tuple(UNARY))
def unary(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    number, function, ulps = UNARY[form]
    takes_alpha = form in ("leaky_relu", "elu")
    alpha = draw.pick([0.0, 0.2, 1.5, draw.fast.uniform(-2, 3) or 1.0]) if takes_alpha and draw.flip(0.7) else 0.0
    n = draw.size(3000, 0.02)
    in_place = draw.flip(0.25)
    operands = {"input": operand(draw, t, _arguments(draw, t, [n], 1.0 if form in NARROW else 12.0), output=in_place, raw=True)}
    x = operands["input"].values
    if not in_place:
        operands["output"] = operand(draw, t, [n], output=True)
    used = float(np.float32(alpha)) if alpha else {"leaky_relu": float(np.float32(0.01))}.get(form, 1.0)

    def evaluated(library: str, x):
        with np.errstate(all="ignore"):
            if library == "numpy":
                return function(x, used)
            y = _torch_unary(form)(libraries.tensor(x), used).numpy()
            return np.where(x == -np.inf, 0.0, y) if form in LIMITS else y

    def reference(library: str) -> dict:
        with np.errstate(all="ignore"):
            near = _near(evaluated(library, x), ulps(x) if callable(ulps) else ulps)
            if library == "torch" and form in ("gelu", "gelu_tanh"):
                # digits that PyTorch loses, in float64
                near.bound = near.bound + np.where(np.isfinite(x), 2.0**-49 * np.abs(x), 0)
            flushed = _near(evaluated(library, _flushed(x)), ulps(x) if callable(ulps) else ulps)
            near.others.append((flushed.value, flushed.bound))
            return {"input" if in_place else "output": near}

    references = {"numpy": lambda: reference("numpy")}
    # PyTorch rejects an ELU with a negative factor; in all other cases its leaky ReLU and ELU match Tuff's.
    if libraries.torch is not None and not (form == "elu" and used < 0):
        references["torch"] = lambda: reference("torch")
    if form in ("abs", "neg"):
        sign = np.array(1 << (8 * t.size - 1), f"u{t.size}")
        stored = np.ascontiguousarray(operands["input"].raw).view(f"u{t.size}")
        stored = (stored & ~sign if form == "abs" else stored ^ sign).view(t.storage)
        name = "input" if in_place else "output"
        references["bits"] = lambda: {name: _or_flushed(t, stored)}
    out = Handle("input" if in_place else "output")
    if not takes_alpha and draw.flip(0.5):
        return Case("tuff_unary", [t.code, number, Handle("input"), out, n], operands, references)
    desc = {"dtype": t.code, "op": number, "input": Handle("input"), "output": out, "n": n, "alpha": alpha}
    return Case("tuff_unary_ex", desc, operands, references)


class _or_flushed(Bits):
    """Exact bits, or zero of the same sign for a denormal number."""

    def __init__(self, t, raw):
        super().__init__(raw, nan=True)

    def wrong(self, t, raw):
        different, used = super().wrong(t, raw)
        with np.errstate(all="ignore"):
            want, got = decode(t, self.raw), decode(t, raw)
            small = (got == 0) & (np.signbit(got) == np.signbit(want)) & (np.abs(want) < 2.0**t.least)
        return different & ~small, used


BINARY = {
    "add": (1, np.add, 0),
    "sub": (2, np.subtract, 0),
    "mul": (3, np.multiply, 0),
    "div": (4, np.divide, 4),
    "max": (5, np.maximum, 0),
    "min": (6, np.minimum, 0),
    "pow": (7, np.power, 4),
}


def _torch_binary(name: str):
    torch = libraries.torch
    return {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "max": torch.maximum,
            "min": torch.minimum, "pow": torch.pow}[name]  # fmt: skip


def _of_integers(kind: str, form: str) -> bool:
    return TYPES[kind].float or form not in ("div", "pow")


@oracle("binary", ["tuff_binary", "tuff_binary_ex"], types_of("binary"), forms=tuple(BINARY), has=_of_integers)
def binary(draw: Draw, kind: str, form: str) -> Case:
    t = TYPES[kind]
    number, function, ulps = BINARY[form]
    rank = draw.pick([0, 0, 1, 2, 3, 4, 8])
    if rank:
        shape = draw.sizes(rank, 9 if rank > 3 else 40, 4000, 0.02)
        a_shape = [1 if draw.flip(0.25) else s for s in shape]
        b_shape = [1 if a != 1 and draw.flip(0.3) else s for a, s in zip(a_shape, shape)]
    else:
        a_shape = b_shape = [draw.size(3000, 0.02)]
    shape = list(np.broadcast_shapes(tuple(a_shape), tuple(b_shape)))
    way = draw.pick(["apart", "apart", "a", "b", "same"])
    if (way == "a" and a_shape != shape) or (way == "b" and b_shape != shape) or (way == "same" and a_shape != b_shape):
        way = "apart"
    operands = {"a": operand(draw, t, _arguments(draw, t, a_shape), output=way == "a", raw=True)}
    if way != "same":
        operands["b"] = operand(draw, t, _arguments(draw, t, b_shape), output=way == "b", raw=True)
    out = way if way in ("a", "b") else "output"
    if out == "output":
        operands["output"] = operand(draw, t, shape, output=True)
    a, b = operands["a"].values, operands["a" if way == "same" else "b"].values

    def evaluated(library: str, a, b) -> Near:
        with np.errstate(all="ignore"):
            if not t.float:  # modulo 2^32, as NumPy's and PyTorch's integers
                a, b = np.asarray(a).astype(np.int32), np.asarray(b).astype(np.int32)
                if library == "numpy":
                    return Near(function(a, b).astype(np.int64))
                torch = libraries.torch
                y = _torch_binary(form)(torch.from_numpy(np.array(a)), torch.from_numpy(np.array(b)))
                return Near(y.numpy().astype(np.int64))
            if library == "numpy":
                return _near(function(a, b), ulps)
            return _near(_torch_binary(form)(libraries.tensor(a), libraries.tensor(b)).numpy(), ulps)

    def reference(library: str) -> dict:
        near = evaluated(library, a, b)
        for x, y in ((_flushed(a), b), (a, _flushed(b)), (_flushed(a), _flushed(b))) if t.float else ():
            other = evaluated(library, x, y)
            near.others.append((other.value, other.bound))
        return {out: near}

    references = {"numpy": lambda: reference("numpy")}
    if libraries.torch is not None:
        references["torch"] = lambda: reference("torch")
    handles = [Handle("a"), Handle("a" if way == "same" else "b"), Handle(out)]
    if not rank and draw.flip(0.5):
        return Case("tuff_binary", [t.code, number, *handles, shape[0]], operands, references)
    desc = {"dtype": t.code, "op": number, "a": handles[0], "b": handles[1], "output": handles[2], "rank": rank}
    desc["n"] = int(np.prod(shape)) if not rank or draw.flip(0.3) else 0
    if rank:
        desc |= {"a_shape": a_shape, "b_shape": b_shape}
    return Case("tuff_binary_ex", desc, operands, references)


@oracle("cast", ["tuff_cast", "tuff_cast_ex"], ALL, ALL)
def cast(draw: Draw, kind: str, form: str) -> Case:
    """Converts from kind to form."""
    t, to = TYPES[kind], TYPES[form]
    n = draw.size(3000, 0.02)
    stored = draw.bits(t, n)
    if t.float and draw.flip(0.5):
        # Numbers around the limits of integers, and halves between the other type's numbers.
        x = draw.data.choice([-1.0, 1.0], n) * np.exp2(draw.data.uniform(-3, 8 * to.size + 1, n))
        x = np.where(draw.data.random(n) < 0.5, np.rint(x), x)
        if to.float:
            near = round_to(to, draw.data.standard_normal(n) * np.exp2(draw.data.integers(-30, 30, n)))
            with np.errstate(all="ignore"):
                x = np.where(draw.data.random(n) < 0.5, near + ulp(to, near) / 2, x)
        stored = encode(t, x)
    elif to.float and t.size == 8 and draw.flip(0.5):
        # Integers with few ones, many of which are half way between two numbers of the other type.
        x = np.uint64(1) << draw.data.integers(1, 64, (3, n)).astype(np.uint64)
        stored = (x[0] + x[1] - (x[2] >> np.uint64(1))).view(t.storage)
    in_place = t.size == to.size and draw.flip(0.2)
    operands = {"input": operand(draw, t, stored, raw=True)}
    if in_place:
        # One buffer, read as one type and written as the other.
        made = operand(draw, to, np.ascontiguousarray(stored).view(to.storage), output=True, raw=True)
        operands = {"output": made}
    else:
        operands["output"] = operand(draw, to, [n], output=True)
    x = decode(t, stored)

    def numpy_cast() -> np.ndarray:
        if t is to:
            return stored
        if to.float:
            return encode(to, x)
        if to.name == "bool":
            return encode(to, x)
        limits = np.iinfo(to.storage)
        numbers = np.where(np.isnan(x), 0.0, np.clip(x, -(2.0**70), 2.0**70)) if t.float else x
        # Python's integers, because neither float64 nor int64 holds every result.
        return np.array([min(max(int(number), limits.min), limits.max) for number in numbers], to.storage)

    references = {"numpy": lambda: {"output": Bits(numpy_cast(), nan=t is not to)}}
    if libraries.torch is not None and t.float and to.float and min(t.size, to.size) > 1 and n:
        # (PyTorch's conversions to integers do not saturate, and their results are unspecified.)
        references["torch"] = lambda: {"output": Bits(_torch_cast(x, stored, t, to), nan=True)}
    name = "output" if in_place else "input"
    if draw.flip(0.5):
        return Case("tuff_cast", [t.code, to.code, Handle(name), Handle("output"), n], operands, references)
    desc = {"input_type": t.code, "output_type": to.code, "input": Handle(name), "output": Handle("output"), "n": n}
    return Case("tuff_cast_ex", desc, operands, references)


def _torch_cast(x, stored, t, to) -> np.ndarray:
    torch = libraries.torch
    kinds = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}
    source = torch.from_numpy(stored.view(np.int16).copy()).view(torch.bfloat16) if t.name == "bf16" \
        else torch.from_numpy(stored.copy())  # fmt: skip
    if t.name == "f64" and to.name in ("f16", "bf16"):
        # PyTorch converts through f32, rounding twice, so it is no reference here.
        return encode(to, x)
    result = source.to(kinds[to.name])
    return result.view(torch.int16).numpy().view(np.uint16) if to.name == "bf16" else result.numpy()
