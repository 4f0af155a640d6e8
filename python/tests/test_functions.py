"""Every unary and binary operation of the library as Python has it, against definitions in float64. The promises are those
of the tables (kernels/elementwise/*.def)."""

import builtins
import math
import statistics
import sys

import numpy as np
import pytest
from conftest import CHECKOUT

import tuff
from tuff import raw

sys.path.insert(0, str(CHECKOUT / "cmake"))
import tables  # noqa: E402

UNARY = {row["name"]: row for row in tables.read(CHECKOUT, "unary")}
BINARY = {row["python"]: row for row in tables.read(CHECKOUT, "binary")}


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def gelu_argument(x):
    return math.sqrt(8 / math.pi) * (x + 0.044715 * x**3)


def digamma(x):
    below = 0.0
    while x < 20:
        below, x = below + 1 / x, x + 1
    return math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4) - 1 / (252 * x**6) - below


# What the module math has by the same name is not here.
DEFINITIONS = {
    "relu": lambda x: max(x, 0),
    "sigmoid": sigmoid,
    "abs": abs,
    "neg": lambda x: -x,
    "gelu": lambda x: x * math.erfc(-x / math.sqrt(2)) / 2,
    "gelu_tanh": lambda x: x * sigmoid(gelu_argument(x)),
    "silu": lambda x: x * sigmoid(x),
    "leaky_relu": lambda x: x if x > 0 else float(np.float32(0.01)) * x,
    "elu": lambda x: x if x > 0 else math.expm1(x),
    "hardswish": lambda x: x * min(max(x + 3, 0), 6) / 6,
    "softplus": lambda x: max(x, 0) + math.log1p(math.exp(-abs(x))),
    "square": lambda x: x * x,
    "cube": lambda x: x * x * x,
    "sign": np.sign,
    "round": round,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "cbrt": np.cbrt,
    "exp2": np.exp2,
    "selu": lambda x: 1.0507009873554804934 * (x if x > 0 else 1.6732632423543772848 * math.expm1(x)),
    "softsign": lambda x: x / (1 + abs(x)),
    "hardsigmoid": lambda x: min(max(x + 3, 0), 6) / 6,
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "erfinv": lambda x: statistics.NormalDist().inv_cdf((1 + x) / 2) / math.sqrt(2),
    "digamma": digamma,
    "log_sigmoid": lambda x: math.log(sigmoid(x)) if x < 0 else -math.log1p(math.exp(-x)),
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "power": np.power,
}


def within(got, wanted, ulps):
    """All of got are float32, and as far from wanted as is promised; exact: rounded once."""
    assert got.dtype == np.float32
    if np.all(np.asarray(ulps) == 0):
        np.testing.assert_array_equal(got, wanted.astype(np.float32))
    else:
        assert np.all(np.abs(got - wanted) <= ulps * np.spacing(np.abs(wanted).astype(np.float32)))


def test_python_has_every_operation_of_the_library():
    for kind, table in (("UNARY", UNARY), ("BINARY", BINARY)):
        named = {name for name in vars(raw) if name.startswith(kind + "_") and not name.endswith("_INVALID")}
        assert named == {f"{kind}_{row['NAME']}" for row in table.values()}
        for name, row in table.items():
            assert getattr(raw, f"{kind}_{row['NAME']}") == int(row["number"])
            assert callable(getattr(tuff, name))
            assert (name in tuff.__all__) != hasattr(builtins, name)  # "from tuff import *" leaves Python's own


@pytest.mark.parametrize("name", UNARY)
def test_unary(ctx, rng, name):
    row = UNARY[name]
    host = rng.uniform(max(float(row["low"]), -12), min(float(row["high"]), 12), 1003).astype(np.float32)
    definition = getattr(math, name, None) or DEFINITIONS[name]
    wanted = np.array([definition(value) for value in host.astype(np.float64)])
    ulps = np.full(host.shape, float(row["ulps"]))
    if name == "gelu_tanh":  # docs/accuracy.md
        t = [gelu_argument(value) for value in host.astype(np.float64)]
        ulps += [7 * abs(value) * sigmoid(-value) for value in t]
    x = ctx.array(host)
    method = getattr(x, name)()
    within(method.numpy(), wanted, ulps)
    out = ctx.empty(host.shape)
    function = getattr(tuff, name)
    assert function(x, out=out) is out
    np.testing.assert_array_equal(out.numpy(), method.numpy())
    assert function(x, out=x) is x
    np.testing.assert_array_equal(x.numpy(), method.numpy())
    half = ctx.array(host, dtype=np.float16)
    assert getattr(half, name)().dtype == np.float16
    whole = getattr(ctx.ones(3, dtype=np.int32), name)()
    of_integers = name in ("abs", "neg", "sign", "square", "floor", "ceil", "round", "trunc")
    assert whole.dtype == (np.int32 if of_integers else np.float32)
    np.testing.assert_array_equal(whole.numpy(), getattr(ctx.ones(3), name)().numpy())
    with pytest.raises(TypeError, match="out"):
        function(x, out=host)


@pytest.mark.parametrize("name", BINARY)
def test_binary(ctx, rng, name):
    row = BINARY[name]
    a, b = (rng.uniform(float(row["low"]), float(row["high"]), (31, 33)).astype(np.float32) for _ in range(2))
    wanted = DEFINITIONS[name](a.astype(np.float64), b.astype(np.float64))
    x, y = ctx.array(a), ctx.array(b)
    function = getattr(tuff, name)
    within(function(x, y).numpy(), wanted, float(row["ulps"]))
    assert function(x, y, out=y) is y
    within(y.numpy(), wanted, float(row["ulps"]))
