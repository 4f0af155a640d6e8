"""Gradients against central differences in float64."""

import gc
import math
import os
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest

import tuff
from tuff import grad
from tuff._derivative import derivative
from tuff._slopes import SLOPES

F64 = np.float64


@pytest.fixture
def host():
    """The host backend computes every formula at once, without compiling it."""
    with tuff.Context(backend="host") as context:
        yield context


def numeric(function, arguments, weights, h):
    """The slopes of sum(weights * function) by central differences of NumPy arrays' elements."""
    found = []
    for at, argument in enumerate(arguments):
        slopes = np.zeros(argument.shape, F64)
        for place in np.ndindex(argument.shape):
            ends = []
            for sign in (1, -1):
                moved = [one.copy() for one in arguments]
                moved[at][place] += sign * h
                ends.append(np.sum(function(*moved) * weights, dtype=F64))
            slopes[place] = (ends[0] - ends[1]) / (2 * h)
        found.append(slopes)
    return found


def check(context, function, *arguments, h=1e-5, rtol=2e-7, atol=2e-8):
    """A central difference of f is off by h^2 / 6 of its third derivative, 2e-11 of it, and by f's rounding over h, 1e-11:
    functions whose derivatives are within 1e3 agree to 2e-8."""
    rng = np.random.default_rng(3)
    arguments = [np.asarray(one, F64) for one in arguments]
    on_device = [context.array(one, F64) for one in arguments]
    value, pull = grad.vjp(function, *on_device)
    weights = rng.uniform(0.5, 1.5, value.shape)
    gradients = pull(context.array(weights, F64))
    plain = function(*on_device)
    np.testing.assert_allclose(value.numpy(), plain.numpy(), rtol=1e-13, atol=1e-300)

    def of_numpy(*values):
        return function(*(context.array(one, F64) for one in values)).numpy()

    for gradient, argument, expected in zip(gradients, arguments, numeric(of_numpy, arguments, weights, h)):
        assert gradient.shape == argument.shape and gradient.dtype == F64
        np.testing.assert_allclose(gradient.numpy(), expected, rtol=rtol, atol=atol)


def test_every_function_of_one_number_has_the_slope_of_its_table(host, rng):
    narrow = {"asin": (-0.8, 0.8), "acos": (-0.8, 0.8), "atanh": (-0.8, 0.8), "erfinv": (-0.8, 0.8), "acosh": (1.2, 3),
              **{name: (0.4, 3) for name in ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "cbrt")}}  # fmt: skip
    narrow.update(tan=(-1.2, 1.2), log1p=(-0.8, 2))
    checked = 0
    for name in SLOPES:
        if name in ("lgamma", "digamma"):
            continue  # they take no float64: the test below
        x = rng.uniform(*narrow.get(name, (-2.5, 2.5)), 12) + 0.0123  # off the steps and kinks
        check(host, getattr(tuff, name), x)
        checked += 1
    assert checked >= 45


def test_lgamma(host):
    x = host.array([0.5, 1.5, 3.0, 7.25])
    slopes = grad.grad(lambda x: tuff.lgamma(x).sum())(x).numpy()
    np.testing.assert_allclose(slopes, tuff.digamma(x).numpy(), rtol=1e-6)


def test_kinks_are_pytorchs(host):
    zero = host.zeros(1)
    for function, slope in ((tuff.relu, 0), (abs, 0), (lambda x: tuff.leaky_relu(x, 0.25), 0.25), (tuff.hardsigmoid, 1 / 6)):
        assert grad.grad(lambda x, f=function: f(x).sum())(zero).item() == pytest.approx(slope)
    a, b = host.ones(1), host.ones(1)
    assert [one.item() for one in grad.grad(lambda a, b: tuff.maximum(a, b).sum(), (0, 1))(a, b)] == [1, 0]
    assert grad.grad(lambda x: tuff.clip(x, -1.0, 1.0).sum())(host.array([-1.0, 1.0, 2.0])).numpy().tolist() == [1, 1, 0]


def test_formulas(host, rng):
    a, b, c = rng.uniform(0.5, 2, (3, 4)), rng.uniform(0.5, 2, 4), rng.uniform(0.5, 2, (3, 1))
    formulas = [
        "a * b + c", "a / b - c", "(a - b) ** 3 + a ** -2", "a ** b", "pow(a, b) * 2", "-a ^ 2 * c", "a % b + fmod(a, b)",
        "a > b ? a * b : c / a", "where(a > c, b, a)", "max(a, b) * min(b, c)", "fma(a, b, c)", "lerp(a, b, c)", "clamp(a, b - 0.3, b + 0.3)",
        "atan2(a, b) + hypot(b, c)", "copysign(a, b - 1) * c", "exp(-square(a - b) / (2 * c * c))",
        "t = a * b; u = t * t; u + sin(t) * c", "t = a; s = floor(b) * 2; t * s + c", "f64(a) * abs(b - c)", "neg(a) + add(b, mul(a, sub(c, div(a, b))))",
    ]  # fmt: skip
    for formula in formulas:
        names = sorted(set(re.findall(r"\b[abc]\b", formula)))
        values = dict(a=a, b=b, c=c)
        check(host, lambda *xs, f=formula, n=names: tuff.expr(f, dtype=F64, **dict(zip(n, xs))), *(values[name] for name in names))


def test_a_formula_of_its_derivative_is_read_back():
    assert derivative("floor(x)", "x", "g") is None
    assert derivative("a + b", "b", "g") == ("g", frozenset("g"))
    with pytest.raises(TypeError, match="digamma"):
        derivative("digamma(x)", "x", "g")
    for formula in ("0x10 * x", ".5e-1*x", "x?x:x", "!x ? 2*x : x", "x**-x", "~i + x", "x << 2 >> 1 <= x || x && i | i & i"):
        derivative(formula, "x", "g")


def test_operators_and_broadcasting(host, rng):
    a, b = rng.uniform(0.5, 2, (2, 1, 3)), rng.uniform(0.5, 2, (4, 1))
    check(host, lambda a, b: (a + b) * a / b - 2.0 / a + 3 - b**2.0 + 2.0**a - (-a), a, b)
    check(host, lambda a, b: tuff.where(a > b, a * 3.0, b) + tuff.logaddexp(a, b), a, b)


def test_a_value_used_twice_adds_up(host, rng):
    check(host, lambda x: x * x * x + x, rng.uniform(0.5, 2, 5))


def test_products_of_matrices(host, rng):
    def m(*shape):
        return rng.uniform(-1, 1, shape)

    check(host, lambda a, b: a @ b, m(3, 4), m(4, 2))
    check(host, lambda a, b: a.T @ b, m(4, 3), m(4, 2))
    check(host, lambda a, b: a @ b.T, m(3, 4), m(2, 4))
    check(host, lambda a, b: a.T @ b.T, m(4, 3), m(2, 4))
    check(host, lambda a, b: a @ b, m(5, 3, 4), m(4, 2))
    check(host, lambda a, b: a @ b, m(5, 3, 4), m(5, 4, 2))
    check(host, lambda a, b: a @ b.mT, m(2, 1, 3, 4), m(5, 2, 4))
    check(host, lambda a, b: a @ b, m(4), m(4, 2))
    check(host, lambda a, b: a @ b, m(3, 4), m(4))
    check(host, lambda a, b: a @ b, m(4), m(4))
    check(host, lambda a, b, c, d: tuff.matmul(a, b, alpha=0.5, bias=c, residual=d, activation="gelu"), m(3, 4), m(4, 2), m(2), m(3, 2))
    constant = host.array(m(4, 2), F64)
    check(host, lambda a: a @ constant, m(3, 4))
    check(host, lambda a: constant.T @ a, m(4, 3))


def test_reductions(host, rng):
    x = rng.uniform(0.5, 2, (3, 4, 2))
    for name in ("sum", "mean", "max", "min", "prod", "sum_squares", "l1", "l2", "logsumexp"):
        for axis in (None, 1, -1, (0, 2)):
            check(host, lambda x, n=name, a=axis: getattr(x, n)(a), x)
    for axis in (None, 0, (1, 2)):
        check(host, lambda x, a=axis: x.var(a, 1.0) + x.std(a), x)
        check(host, lambda x, a=axis: x / x.sum(a, True), x)
    assert grad.grad(lambda x: x.prod())(host.array([2.0, 0.0, 3.0])).numpy().tolist() == [0, 6, 0]
    assert grad.grad(lambda x: x.max())(host.array([2.0, 5.0, 5.0])).numpy().tolist() == [0, 0.5, 0.5]


def test_scans(host, rng):
    x = rng.uniform(0.5, 2, (3, 4))
    check(host, lambda x: tuff.cumsum(x, 1) * x, x)
    check(host, lambda x: tuff.cumsum(x), x)
    check(host, lambda x: tuff.cumsum(x, 0, exclusive=True, reverse=True), x)


def test_shapes_and_indices(host, rng):
    x = rng.uniform(0.5, 2, (3, 4, 2))
    mask = host.array(np.array([True, False, True]))
    functions = [
        lambda x: x.reshape(4, -1), lambda x: x.ravel(), lambda x: x.transpose(2, 0, 1), lambda x: x.swapaxes(0, 2), lambda x: x.copy(),
        lambda x: x[1], lambda x: x[:, ::-2], lambda x: x[..., None, 0], lambda x: x[[0, 2, 0]], lambda x: x[:, [3, 3], [1, 0]],
        lambda x: x[mask], lambda x: tuff.flip(x, 1), lambda x: tuff.roll(x, 1, 0), lambda x: tuff.concat([x, x * 2.0], 1),
        lambda x: tuff.stack([x, x], 0), lambda x: tuff.concat([x, x], None), lambda x: tuff.take(x, [1, 1, 3], 1),
        lambda x: tuff.pad(x, ((1, 0), (0, 2), (0, 0))), lambda x: tuff.diagonal(x), lambda x: tuff.tril(x) + tuff.triu(x, 1),
        lambda x: tuff.broadcast_to(x, (2, 3, 4, 2)), lambda x: tuff.tile(x, (2, 1, 1)), lambda x: tuff.repeat(x, 2, 1),
        lambda x: tuff.expand_dims(x, 1), lambda x: tuff.moveaxis(x, 0, 2), lambda x: tuff.section(x, np.s_[1:, ::2]),
        lambda x: tuff.take_along_axis(x, np.array([[[0, 1]], [[3, 2]], [[1, 1]]]), 1),
        lambda x: tuff.gather(x, np.array([[[0, 1]], [[3, 2]]]), 1),
    ]  # fmt: skip
    for function in functions:
        check(host, lambda x, f=function: tuff.square(f(x)), x)


def test_rows_of_a_table_that_are_used_twice_add_up(host):
    table = host.array(np.arange(6.0).reshape(3, 2))
    rows = host.array(np.array([0, 2, 0]), np.int32)
    slopes = grad.grad(lambda t: (tuff.embedding(t, rows) * host.array([[1.0], [10.0], [100.0]])).sum())(table)
    assert slopes.numpy().tolist() == [[101, 101], [0, 0], [10, 10]]


def test_softmax_and_normalisations(ctx, host, rng):
    # These operations take float32: slopes are compared with those of the same formula in float64.
    x, w, b = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((3, 6, 4), (4,), (4,)))
    v, u, m, s = (rng.uniform(low, 1, 6).astype(np.float32) for low in (-1, -1, -1, 0.5))
    weights = rng.uniform(0.5, 1.5, x.shape).astype(np.float32)

    def norm(x, axes, e):
        return (x - x.mean(axes, True)) * tuff.rsqrt(x.var(axes, 0.0, True) + e)

    def column(w):
        return w.reshape(6, 1)

    def by_channel(x):
        return norm(x.swapaxes(0, 1).reshape(6, 12), -1, 1e-5).reshape(6, 3, 4).swapaxes(0, 1)

    pairs = [
        (lambda x: tuff.softmax(x, 1, scale=0.5), lambda x: tuff.exp(x * 0.5 - (x * 0.5).logsumexp(1, True)), (x,)),
        (lambda x: tuff.log_softmax(x), lambda x: x - x.logsumexp(-1, True), (x,)),
        (lambda x, w, b: tuff.layer_norm(x, w, b), lambda x, w, b: norm(x, -1, 1e-5) * w + b, (x, w, b)),
        (lambda x, w: tuff.rms_norm(x, w), lambda x, w: x * tuff.rsqrt((x * x).mean(-1, True) + 1e-5) * w, (x, w)),
        (lambda x: tuff.group_norm(x, 3), lambda x: norm(x.reshape(9, 8), -1, 1e-5).reshape(3, 6, 4), (x,)),
        (lambda x, w, b: tuff.group_norm(x, 2, w, b), lambda x, w, b: norm(x.reshape(6, 12), -1, 1e-5).reshape(3, 6, 4) * column(w) + column(b), (x, v, u)),
        (lambda x, b: tuff.instance_norm(x, None, b), lambda x, b: norm(x, -1, 1e-5) + column(b), (x, v)),
        (lambda x, w: tuff.batch_norm(x, x.context.array(m), x.context.array(s), w),
         lambda x, w: (x - column(x.context.array(m, F64))) * tuff.rsqrt(column(x.context.array(s, F64)) + 1e-5) * column(w), (x, v)),
        (lambda x, w, b: tuff.batch_norm_training(x, w, b), lambda x, w, b: by_channel(x) * column(w) + column(b), (x, v, u)),
    ]
    for function, same, values in pairs:
        found = []
        for which, dtype in ((function, np.float32), (same, F64)):
            device = ctx if dtype == np.float32 else host
            value, pull = grad.vjp(which, *(device.array(one, dtype) for one in values))
            found.append([value, *pull(device.array(weights, dtype))])
        for one, other in zip(*found):
            # A slope is a sum of at most 24 products of numbers near 1: 24 roundings of float32 of each.
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=3e-5, atol=24 * 2**-23)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_normalisations_of_16_bits(ctx, rng, dtype):
    """Weights of float32, and of the type itself: slopes have their types, and are those of float32 but for the rounding."""
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x, g = (ctx.array(rng.uniform(-1, 1, (5, 8, 6)).astype(np.float32)).astype(dtype) for _ in range(2))
    for function, size in (
        (lambda x, w, b: tuff.layer_norm(x, w, b), 6),
        (lambda x, w, b: tuff.group_norm(x, 4, w, b), 8),
        (lambda x, w, b: tuff.batch_norm_training(x, w, b), 8),
    ):
        w, b = (ctx.array(rng.uniform(0.5, 1, size).astype(np.float32)) for _ in range(2))
        wide = grad.vjp(function, x.astype(np.float32), w, b)[1](g.astype(np.float32))
        for kind in ("float32", dtype):
            slopes = grad.vjp(function, x, w.astype(kind), b.astype(kind))[1](g)
            assert [str(one.dtype) for one in slopes] == [dtype, kind, kind]
            # A slope is of at most 40 terms, each off by the rounding of a weight and of the result.
            for one, other in zip(slopes, wide):
                np.testing.assert_allclose(one.astype(np.float32).numpy(), other.numpy(), rtol=2**-6, atol=40 * 2**-8)


def test_batch_norm_for_training(ctx, rng):
    x = rng.normal(2, 3, (4, 3, 5)).astype(np.float32)
    on_device, mean, variance = ctx.array(x), ctx.zeros(3), ctx.ones(3)
    w = ctx.array(np.array([1.0, 2.0, -1.0], np.float32))

    def loss(x, w):
        y, m, v = tuff.batch_norm_training(x, w, running_mean=mean, running_variance=variance, momentum=0.25, statistics=True)
        np.testing.assert_allclose(m.numpy(), x.numpy().mean((0, 2)), rtol=1e-5)
        np.testing.assert_allclose(v.numpy(), x.numpy().var((0, 2)), rtol=1e-5)
        return (y * y * y).sum()

    slopes = grad.grad(loss, (0, 1))(on_device, w)
    assert [one.shape for one in slopes] == [(4, 3, 5), (3,)]
    # Once, not again by the backward pass; PyTorch's momentum, and the unbiased variance.
    np.testing.assert_allclose(mean.numpy(), 0.25 * x.mean((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(variance.numpy(), 0.75 + 0.25 * x.var((0, 2), ddof=1), rtol=1e-5)
    # A function of what does not change when x does by a constant, or a factor but for epsilon.
    assert abs(slopes[0].numpy().sum((0, 2))).max() < 1e-3
    assert abs((slopes[0].numpy() * x).sum((0, 2))).max() < 1e-2
    plain = tuff.batch_norm_training(on_device, w)
    inverse = 1 / np.sqrt(x.var((0, 2), keepdims=True) + 1e-5)
    np.testing.assert_allclose(plain.numpy(), (x - x.mean((0, 2), keepdims=True)) * inverse * w.numpy()[:, None], rtol=1e-4, atol=1e-5)
    with pytest.raises(TypeError, match="running_mean"):
        grad.grad(lambda m: tuff.batch_norm_training(on_device, running_mean=m).sum())(mean)
    with pytest.raises(ValueError, match="running_variance has shape"):
        tuff.batch_norm_training(on_device, running_variance=ctx.ones(5))
    with pytest.raises(tuff.TuffError, match="momentum is 2"):
        tuff.batch_norm_training(on_device, momentum=2)
    with pytest.raises(tuff.TuffError, match="variance of 2 or more elements"):
        tuff.batch_norm_training(ctx.ones((1, 3)), running_variance=ctx.ones(3))


def attention_in_double(q, k, v, causal, mask):
    scores = (q @ k.mT) * (1 / math.sqrt(q.shape[-1]))
    if causal:
        rows, columns = np.mgrid[: q.shape[-2], : k.shape[-2]]
        scores = tuff.where(q.context.array(columns <= rows), scores, -math.inf)
    if mask is not None:
        scores = tuff.where(mask, scores, -math.inf)
    return tuff.exp(scores - scores.logsumexp(-1, True)) @ v


def test_attention(host, rng):
    shapes = ((2, 4, 5, 8), (2, 2, 6, 8), (2, 2, 6, 3))
    values = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    seen = rng.uniform(size=(5, 6)) < 0.7
    seen[:, 0] = True
    for options in ({"softcap": 2.0}, {"bias": host.array(rng.uniform(-1, 1, (5, 6)).astype(np.float32))}, {"scale": 0.3, "layout": "bshd"}):
        q, k, v = (host.array(one[:, :2].swapaxes(1, 2).copy() if "layout" in options else one[:, :2].copy()) for one in values)
        bias = options.get("bias")

        def same(q, k, v, o=options, bias=bias):
            if "layout" in o:
                q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
            s = q @ k.mT * o.get("scale", 1 / math.sqrt(8))
            s = tuff.tanh(s / 2.0) * 2.0 if "softcap" in o else s if bias is None else s + bias
            found = tuff.softmax(s) @ v
            return (found.swapaxes(1, 2) if "layout" in o else found).sum_squares()

        one = grad.grad(lambda q, k, v, o=options: tuff.attention(q, k, v, **o).sum_squares(), (0, 1, 2))(q, k, v)
        for a, b in zip(one, grad.grad(same, (0, 1, 2))(q, k, v)):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=48 * 2**-23)
        if bias is not None:
            one = grad.grad(lambda b, a=(q, k, v): tuff.attention(*a, bias=b).sum_squares())(bias)
            other = grad.grad(lambda b, a=(q, k, v): same(*a, bias=b))(bias)
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=48 * 2**-23)
    mask = host.array(seen)
    for causal, given in ((False, None), (True, None), (False, mask)):
        found = []
        for dtype in (np.float32, F64):
            arrays = [host.array(one, dtype) for one in values]
            if dtype == np.float32:
                function = lambda q, k, v: tuff.attention(q, k, v, causal=causal, mask=given)  # noqa: E731
            else:
                function = lambda q, k, v: attention_in_double(q, tuff.repeat(k, 2, 1), tuff.repeat(v, 2, 1), causal, given)  # noqa: E731
            value, pull = grad.vjp(function, *arrays)
            found.append([value, *pull(host.ones(value.shape, dtype))])
        for one, other in zip(*found):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=48 * 2**-23)


def test_attention_hides_keys(host, rng):
    """Windows, lengths, and keys of a cache: as masks that hide the same keys."""
    batch, heads, rows, keys, size = 2, 4, 6, 7, 8
    shapes = ((batch, heads, rows, size), (batch, 2, keys, size), (batch, 2, keys, 3))
    q, k, v = (host.array(rng.uniform(-1, 1, shape).astype(np.float32)) for shape in shapes)
    i, j = np.mgrid[:rows, :keys]
    lengths = host.array(np.array([4, 9], np.int32)), host.array(np.array([7, 3], np.int32))
    seen = {"window": np.broadcast_to((j > i - 3) & (j < i + 2), (batch, heads, rows, keys)).copy()}
    seen["keys"] = np.broadcast_to(j < 5, seen["window"].shape).copy()
    seen["q_lengths"] = np.stack([(i < a) & (j < b) for a, b in ((4, 7), (9, 3))])[:, None].repeat(heads, 1)
    options = {"window": {"window": (3, 2)}, "keys": {"keys": 5}, "q_lengths": {"q_lengths": lengths[0], "kv_lengths": lengths[1]}}
    for name, given in options.items():
        for layout in ("bhsd", "bshd"):
            swapped = [x.swapaxes(1, 2).copy() if layout == "bshd" else x for x in (q, k, v)]
            one = grad.grad(lambda q, k, v, o=given, s=layout: tuff.attention(q, k, v, layout=s, **o).sum_squares(), (0, 1, 2))(*swapped)
            mask = host.array(seen[name])
            other = grad.grad(lambda q, k, v, m=mask: tuff.attention(q, k, v, mask=m).sum_squares(), (0, 1, 2))(q, k, v)
            for a, b in zip(one, other):
                a = a.swapaxes(1, 2) if layout == "bshd" else a
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=2**-20)


@pytest.mark.parametrize("shape", [(6, 7), (4, 1, 7), (1, 4, 6, 7), (2, 1, 6, 7), (2, 1, 1, 7), (2, 4, 6, 7), (1, 7)])
def test_attention_by_its_bias(host, rng, shape):
    """What broadcasts is added up; with a window and lengths, as with a mask that hides the same keys."""
    sizes = ((2, 4, 6, 8), (2, 2, 7, 8), (2, 2, 7, 3), shape)
    values = [rng.uniform(-1, 1, size).astype(np.float32) for size in sizes]
    i, j = np.mgrid[:6, :7]
    seen = np.stack([(i < a) & (j < b) & (j > i - 3) for a, b in ((4, 7), (6, 3))])[:, None].repeat(4, 1)
    lengths = {"q_lengths": host.array(np.array([4, 9], np.int32)), "kv_lengths": host.array(np.array([7, 3], np.int32))}

    def in_double(q, k, v, bias):
        scores = (q @ tuff.repeat(k, 2, 1).mT) * (1 / math.sqrt(8))
        weights = tuff.where(host.array(seen), tuff.exp(tuff.tanh(scores / 1.5) * 1.5 + bias), 0.0)
        total = weights.sum(-1, True)
        return ((weights / tuff.where(total > 0.0, total, 1.0)) @ tuff.repeat(v, 2, 1)).sum_squares()

    arrays = [host.array(one) for one in values]
    found = grad.grad(lambda *x: tuff.attention(*x[:3], bias=x[3], softcap=1.5, window=(3, None), **lengths).sum_squares(), (0, 1, 2, 3))(*arrays)
    exact = grad.grad(in_double, (0, 1, 2, 3))(*(host.array(one, F64) for one in values))
    for one, other in zip(found, exact):
        assert one.shape == other.shape
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=96 * 2**-23)
    alone = grad.grad(lambda b: tuff.attention(*arrays[:3], bias=b, softcap=1.5, window=(3, None), **lengths).sum_squares())(arrays[3])
    np.testing.assert_array_equal(alone.numpy(), found[3].numpy())


def test_attention_keeps_no_scores(rng):
    """Of 2048 rows and keys: 4 heads' scores would be 64 MiB, and the gradients take no more than that of everything."""
    context = tuff.Context(backend="host", memory_limit_bytes=48 << 20)
    x = context.array(rng.uniform(-1, 1, (1, 4, 2048, 4)).astype(np.float32))
    found = grad.grad(lambda x: tuff.attention(x, x, x, causal=True).sum())(x)
    assert np.isfinite(found.numpy()).all()


def test_attention_by_its_gradient(host, rng):
    """The gradients of attention are linear in the one that they are given, and have a gradient by it."""
    q, k, v, w = (host.array(rng.uniform(-1, 1, (2, 3, 4)).astype(np.float32)) for _ in range(4))

    def pulled(g):
        _, pull = grad.vjp(lambda q, k, v: tuff.attention(q, k, v, causal=True), q, k, v)
        return sum((one * w).sum() for one in pull(g))

    g = host.array(rng.uniform(-1, 1, (2, 3, 4)).astype(np.float32))
    slope = grad.grad(pulled)(g).numpy()
    # The function is linear: its value is the product of the gradient and the argument.
    assert float(pulled(g)) == pytest.approx(float((slope * g.numpy()).sum()), rel=1e-4, abs=1e-5)


def test_attention_without_a_rule(host, rng):
    x = host.array(rng.uniform(-1, 1, (2, 3, 4)).astype(np.float32))
    with pytest.raises(TypeError, match="return_lse"):
        grad.grad(lambda x: tuff.attention(x, x, x, return_lse=True)[0].sum())(x)
    with pytest.raises(TypeError, match="window has no gradients of gradients"):
        grad.grad(lambda x: grad.grad(lambda x: tuff.attention(x, x, x, window=2).sum())(x).sum())(x)


def test_rope(host, rng):
    """A rotation is linear: its gradient is its transpose, which the rotations of all units are."""
    for heads_last in (False, True):
        shape = (2, 3, 2, 6) if heads_last else (2, 2, 3, 6)
        positions = host.array(rng.integers(-50, 50, (2, 3)).astype(np.int32))
        for options in ({}, {"offset": 7, "interleaved": True}, {"positions": positions, "rotary_dim": 4, "base": 100.0, "offset": -3}):
            x, w = (host.array(rng.uniform(-1, 1, shape).astype(np.float32)) for _ in range(2))
            found = grad.grad(lambda x, o=options, h=heads_last, w=w: (tuff.rope(x, heads_last=h, **o) * w).sum())(x).numpy()
            units = np.eye(x.size, dtype=np.float32).reshape(-1, *shape)
            right = [(tuff.rope(host.array(unit), heads_last=heads_last, **options).numpy() * w.numpy()).sum() for unit in units]
            np.testing.assert_allclose(found.ravel(), right, rtol=1e-5, atol=2**-20)
    # Twice, and in 16 bits.
    x = host.array(rng.uniform(-1, 1, (1, 1, 4, 4)).astype(np.float16))
    twice = grad.grad(lambda x: grad.grad(lambda x: tuff.square(tuff.rope(x)).sum())(x).sum())(x)
    assert twice.dtype == np.float16
    np.testing.assert_allclose(twice.numpy(), 2.0, rtol=2**-8)  # the length of a vector does not change


def test_resize(host, rng):
    cases = (((2, 2, 5), (8,), {}), ((1, 2, 4, 6), (7, 3), {"align_corners": True}), ((1, 2, 4, 6), (9, 5), {"mode": "nearest"}))
    cases += (((1, 4, 6, 2), (3, 9), {"layout": "nhwc", "scale": (0.7, 1.5)}), ((1, 1, 3, 2, 4), (2, 5, 3), {"mode": "nearest_exact"}))
    for shape, sizes, options in cases:
        x = host.array(rng.uniform(-1, 1, shape).astype(np.float32))
        y = tuff.resize(x, sizes, **options)
        w = host.array(rng.uniform(-1, 1, y.shape).astype(np.float32))
        found = grad.grad(lambda x, s=sizes, o=options, w=w: (tuff.resize(x, s, **o) * w).sum())(x).numpy()
        units = np.eye(x.size, dtype=np.float32).reshape(-1, *shape)
        right = [(tuff.resize(host.array(unit), sizes, **options).numpy() * w.numpy()).sum() for unit in units]
        np.testing.assert_allclose(found.ravel(), right, rtol=1e-5, atol=2**-20)


def convolved(x, w, stride, padding, dilation, groups):
    """conv2d by its definition, of operations that have rules of their own."""
    x = tuff.pad(x, ((0, 0), (0, 0), *padding))
    k, each, r, s = w.shape
    p = (x.shape[2] - dilation[0] * (r - 1) - 1) // stride[0] + 1
    q = (x.shape[3] - dilation[1] * (s - 1) - 1) // stride[1] + 1
    parts = []
    for group in range(groups):
        total = None
        for i in range(r):
            for j in range(s):
                rows = slice(i * dilation[0], i * dilation[0] + stride[0] * (p - 1) + 1, stride[0])
                columns = slice(j * dilation[1], j * dilation[1] + stride[1] * (q - 1) + 1, stride[1])
                taken = x[:, group * each : (group + 1) * each, rows, columns].copy().reshape(x.shape[0], each, p * q)
                term = w[group * k // groups : (group + 1) * k // groups, :, i, j].copy() @ taken
                total = term if total is None else total + term
        parts.append(total.reshape(x.shape[0], k // groups, p, q))
    return tuff.concat(parts, 1)


def test_linear_algebra(host, rng):
    a, b, c = rng.uniform(-1, 1, (2, 4, 4)) + 3 * np.eye(4), rng.uniform(-1, 1, (2, 4, 3)), rng.uniform(-1, 1, 4)
    check(host, lambda a: tuff.linalg.inv(a), a)
    check(host, lambda a, b: tuff.linalg.solve(a, b), a, b)
    check(host, lambda a, b: tuff.linalg.solve(a, b), a[0], c)
    check(host, lambda a, b: tuff.linalg.solve(a, b), a[0], b)
    check(host, lambda a: tuff.linalg.det(a) * 0.1, a)
    check(host, lambda a: tuff.linalg.slogdet(a).logabsdet, a)
    eye = host.array(np.eye(4), F64)
    for upper in (False, True):
        check(host, lambda a, u=upper: tuff.linalg.cholesky(a @ a.mT + eye, upper=u), a)
    check(host, lambda a, b: tuff.einsum("bij,bjk->ik", a, b) + tuff.tensordot(a, b, ((0, 1), (0, 1))), a, b)


def test_dropout(host):
    x = host.ones((40, 25))
    for p in (0.0, 0.4, 1.0):
        y, pull = grad.vjp(lambda x, p=p: tuff.Generator(host, 3).dropout(x, p), x)
        slopes = pull(host.full(x.shape, 2.0))[0].numpy()
        assert np.array_equal(slopes, 2 * y.numpy())  # of ones, the result is the slope
        assert (slopes == 0).mean() == pytest.approx(p, abs=0.06)  # four standard deviations of 1000 draws
    kept = grad.grad(lambda x: (tuff.Generator(host, 3).dropout(x, 0.4, mask=True)[1]).astype(np.float32).sum())(x).numpy()
    assert not kept.any()


def test_sorting(host, rng):
    x = rng.permutation(24).reshape(3, 8).astype(F64)
    check(host, lambda x: tuff.square(tuff.sort(x)), x, rtol=1e-6, atol=1e-6)
    check(host, lambda x: tuff.square(tuff.sort(x, None, descending=True)), x, rtol=1e-6, atol=1e-6)
    check(host, lambda x: tuff.square(tuff.topk(x, 3)[0]), x, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("stride, padding, more, dilation, groups", [(1, 0, 0, 1, 1), (2, 1, 1, 1, 2), ((3, 2), (0, 1), (2, 0), (1, 2), 1)])
def test_transposed_convolutions(host, rng, stride, padding, more, dilation, groups):
    """A convolution's transposed one is linear in both operands: its gradients are dot products with unit vectors."""
    form = dict(stride=stride, padding=padding, output_padding=more, dilation=dilation, groups=groups)
    x, w = (host.array(rng.uniform(-1, 1, shape).astype(np.float32)) for shape in ((2, 4, 5, 4), (4, 6 // groups, 3, 2)))
    y, pull = grad.vjp(lambda x, w: tuff.conv_transpose2d(x, w, **form), x, w)
    weights = rng.uniform(-1, 1, y.shape).astype(np.float32)
    slopes = [one.numpy() for one in pull(host.array(weights))]
    for at, (operand, slope) in enumerate(zip((x, w), slopes)):
        assert slope.shape == operand.shape
        for place in [tuple(rng.integers(0, n) for n in operand.shape) for _ in range(12)]:
            unit = np.zeros(operand.shape, np.float32)
            unit[place] = 1
            operands = [host.array(unit), w] if at == 0 else [x, host.array(unit)]
            assert slope[place] == pytest.approx((tuff.conv_transpose2d(*operands, **form).numpy() * weights).sum(), rel=1e-5, abs=1e-5)
    bias = host.array(rng.uniform(-1, 1, 6).astype(np.float32))
    for layout in ("nchw", "nhwc"):
        def loss(x, w, b, layout=layout):  # noqa: E306
            if layout == "nhwc":
                x, w = x.transpose(0, 2, 3, 1), w.transpose(0, 2, 3, 1)
            return tuff.conv_transpose2d(x, w, bias=b, activation="gelu", layout=layout, **form).sum()

        found = grad.grad(loss, (0, 1, 2))(x, w, bias)
        plain = grad.grad(lambda x, w, b: tuff.gelu(tuff.conv_transpose2d(x, w, **form) + b.reshape(6, 1, 1)).sum(), (0, 1, 2))(x, w, bias)
        for one, other in zip(found, plain):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "size, filters, stride, padding, dilation, groups",
    [
        ((2, 3, 7, 6), (4, 3, 3, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
        ((2, 4, 9, 8), (6, 2, 3, 3), (2, 3), ((1, 1), (1, 1)), (1, 1), 2),
        ((1, 2, 11, 9), (2, 2, 3, 2), (3, 2), ((2, 0), (1, 3)), (2, 1), 1),
        ((2, 4, 8, 8), (4, 1, 3, 3), (1, 2), ((1, 1), (1, 1)), (1, 2), 4),
        ((1, 1, 5, 5), (1, 1, 1, 1), (3, 3), ((0, 0), (0, 0)), (1, 1), 1),
    ],
)
def test_convolutions(host, rng, size, filters, stride, padding, dilation, groups):
    x, w = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in (size, filters))
    found = []
    for dtype in (np.float32, F64):
        if dtype == np.float32:
            function = lambda x, w: tuff.conv2d(x, w, stride=stride, padding=padding, dilation=dilation, groups=groups)  # noqa: E731
        else:
            function = lambda x, w: convolved(x, w, stride, padding, dilation, groups)  # noqa: E731
        value, pull = grad.vjp(function, host.array(x, dtype), host.array(w, dtype))
        found.append([value, *pull(host.array(np.random.default_rng(1).uniform(-1, 1, value.shape), dtype))])
    for one, other in zip(*found):
        # Sums of at most 2 * 9 * 8 products below 1.
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=144 * 2**-24)


def test_forms_of_convolutions(host, rng):
    x, w = (host.array(rng.uniform(-1, 1, shape).astype(np.float32)) for shape in ((2, 3, 6, 5), (4, 3, 3, 3)))
    bias = host.array(rng.uniform(-1, 1, 4).astype(np.float32))

    def plain(x, w, b):
        return tuff.silu(tuff.conv2d(x, w, padding=1) + b.reshape(4, 1, 1)).sum()

    def fused(x, w, b):
        return tuff.conv2d(x, w, padding=1, bias=b, activation="silu").sum()

    def turned(x, w, b):
        images, filters = (one.transpose(0, 2, 3, 1) for one in (x, w))
        return tuff.conv2d(images, filters, padding=1, bias=b, activation="silu", layout="nhwc").sum()

    expected = grad.grad(plain, (0, 1, 2))(x, w, bias)
    for function in (fused, turned):
        for one, other in zip(grad.grad(function, (0, 1, 2))(x, w, bias), expected):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-5)
    line, taps = x[:, :, 0].copy(), w[:, :, 0].copy()
    one = grad.grad(lambda x, w: tuff.square(tuff.conv1d(x, w, stride=2, padding=1)).sum(), (0, 1))(line, taps)
    same = grad.grad(
        lambda x, w: tuff.square(tuff.conv2d(x.reshape(2, 3, 1, 5), w.reshape(4, 3, 1, 3), stride=(1, 2), padding=(0, 1))).sum(), (0, 1)
    )(line, taps)
    for a, b in zip(one, same):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6)


def test_pooling(host, rng):
    x = rng.permutation(2 * 3 * 6 * 8).reshape(2, 3, 6, 8).astype(np.float32)
    slopes = grad.grad(lambda x: (tuff.max_pool(x, 2) * 2.0).sum())(host.array(x)).numpy()
    largest = x.reshape(2, 3, 3, 2, 4, 2).max((3, 5), keepdims=True)
    assert np.array_equal(slopes, np.broadcast_to(2.0 * (x.reshape(2, 3, 3, 2, 4, 2) == largest), (2, 3, 3, 2, 4, 2)).reshape(x.shape))
    overlapping = grad.grad(lambda x: tuff.max_pool(x, 3, stride=1, padding=1).sum())(host.array(x)).numpy()
    assert overlapping.sum() == x.size and overlapping.max() > 1
    for options in ({}, {"stride": 1, "padding": 1}, {"stride": 2, "padding": 1, "count_include_pad": True}):
        y, pull = grad.vjp(lambda x, o=options: tuff.avg_pool(x, 3, **o), host.array(x))
        weights = rng.uniform(size=y.shape).astype(np.float32)
        slopes = pull(host.array(weights))[0].numpy()
        # The mean is linear: its gradient by the element e is what the weights give of an image that is 1 at e.
        for place in ((0, 0, 0, 0), (1, 2, 5, 7), (0, 1, 3, 4)):
            one = np.zeros_like(x)
            one[place] = 1
            assert slopes[place] == pytest.approx((tuff.avg_pool(host.array(one), 3, **options).numpy() * weights).sum(), rel=1e-5, abs=1e-6)
    mean = grad.grad(lambda x: tuff.adaptive_avg_pool(x, 1).sum())(host.array(x)).numpy()
    assert np.allclose(mean, 1 / 48)


def adjoint(host, rng, function, *shapes):
    """A function that is linear in each operand: its gradients are its transposed maps, <f(u), g> = <u, f'(g)>."""
    operands = [host.array(rng.uniform(-1, 1, shape).astype(np.float32)) for shape in shapes]
    y, pull = grad.vjp(function, *operands)
    weights = host.array(rng.uniform(-1, 1, y.shape).astype(np.float32))
    for at, slope in enumerate(pull(weights)):
        assert slope.shape == operands[at].shape
        for _ in range(3):
            other = host.array(rng.uniform(-1, 1, slope.shape).astype(np.float32))
            moved = [other if i == at else one for i, one in enumerate(operands)]
            sums = [(a.numpy().astype(F64) * b.numpy()).sum() for a, b in ((function(*moved), weights), (other, slope))]
            assert sums[0] == pytest.approx(sums[1], rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_convolutions_of_all_dimensions(host, rng, layout):
    def stored(shape):
        return shape if layout == "nchw" else (shape[0], *shape[2:], shape[1])

    rows = [
        (tuff.conv1d, (2, 4, 11), (6, 2, 3), dict(stride=2, padding=2, dilation=2, groups=2)),
        (tuff.conv2d, (2, 3, 7, 6), (4, 3, 3, 2), dict(stride=(1, 2), padding=((2, 0), 1))),
        (tuff.conv3d, (2, 4, 5, 6, 4), (6, 2, 3, 2, 2), dict(stride=(2, 1, 3), padding=((1, 0), 1, 1), groups=2)),
        (tuff.conv3d, (1, 3, 4, 4, 5), (3, 1, 2, 3, 3), dict(padding=1, dilation=(2, 1, 1), groups=3)),
        (tuff.conv_transpose2d, (2, 4, 5, 4), (4, 3, 3, 2), dict(stride=(2, 3), padding=(1, 0), output_padding=(1, 2), groups=2)),
        (tuff.conv_transpose2d, (1, 2, 3, 4), (2, 2, 2, 3), dict(dilation=(3, 2), padding=(0, 1), output_padding=(2, 1))),
    ]
    for function, x, w, form in rows:
        adjoint(host, rng, lambda x, w, f=function, o=form: f(x, w, layout=layout, **o), stored(x), stored(w))
    form = dict(stride=(2, 1, 1), padding=(1, 1, 0), layout=layout)
    x, w, dy = (stored(shape) for shape in ((2, 3, 5, 4, 6), (4, 3, 3, 3, 2), (2, 4, 3, 4, 5)))
    adjoint(host, rng, lambda g, w: tuff.conv_backward_data(g, w, x, **form), dy, w)
    adjoint(host, rng, lambda x, g: tuff.conv_backward_filter(x, g, (3, 3, 2), **form), x, dy)


def test_convolutions_twice(host, rng):
    x, w = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((1, 2, 5, 4), (4, 1, 3, 2)))
    found = []
    for dtype in (np.float32, F64):
        def once(x, w, dtype=dtype):  # noqa: E306
            form = ((2, 1), ((1, 0), (1, 1)), (1, 2), 2)
            if dtype == np.float32:
                return tuff.square(tuff.conv2d(x, w, stride=form[0], padding=form[1], dilation=form[2], groups=form[3])).sum()
            return tuff.square(convolved(x, w, *form)).sum()

        def twice(x, w, once=once):
            return sum((tuff.square(one) * one).sum() for one in grad.grad(once, (0, 1))(x, w))

        found.append([one.numpy() for one in grad.grad(twice, (0, 1))(host.array(x, dtype), host.array(w, dtype))])
    for one, other in zip(*found):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4 * np.abs(other).max())


def test_pooling_of_all_dimensions(host, rng):
    for shape, layout in (((2, 3, 11), "nchw"), ((2, 3, 7, 6), "nchw"), ((1, 2, 5, 6, 4), "nchw"), ((2, 7, 6, 3), "nhwc"), ((2, 11, 3), "nhwc")):
        axes = len(shape) - 2
        for options in ({}, {"stride": 1, "padding": 1}, {"stride": 2, "padding": 1, "count_include_pad": True, "ceil_mode": True}):
            adjoint(host, rng, lambda x, o=options: tuff.avg_pool(x, 3, layout=layout, **o), shape)
            y = tuff.avg_pool(host.ones(shape), 3, layout=layout, **options)
            adjoint(host, rng, lambda g, o=options: tuff.avg_pool_backward(g, shape, 3, layout=layout, **o), y.shape)
        for parts in (1, 2, (3, 2, 5)[:axes]):
            adjoint(host, rng, lambda x, n=parts: tuff.adaptive_avg_pool(x, n, layout=layout), shape)
        x = host.array(rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32))
        for function in (lambda x: tuff.max_pool(x, 3, stride=2, padding=1, layout=layout), lambda x: tuff.adaptive_max_pool(x, 2, layout=layout)):
            # Between neighbouring integers a maximum is linear: a step of 1/4 moves it by its slopes.
            step = rng.uniform(-0.25, 0.25, shape).astype(np.float32)
            y, pull = grad.vjp(function, x)
            weights = rng.uniform(-1, 1, y.shape).astype(np.float32)
            moved = ((function(x + host.array(step)).numpy() - y.numpy()) * weights).sum()
            assert moved == pytest.approx((pull(host.array(weights))[0].numpy() * step).sum(), rel=1e-3, abs=1e-3)
            cubes = grad.grad(lambda x, f=function: tuff.square(grad.grad(lambda x: (f(x) * f(x)).sum())(x)).sum())(x).numpy()
            slopes = grad.grad(lambda x, f=function: (f(x) * f(x)).sum())(x).numpy()
            # The slope of an element that is the largest of c windows is 2 c x; that of its square 8 c^2 x.
            counts = slopes / (2 * np.maximum(x.numpy(), 1))
            np.testing.assert_allclose(cubes, 8 * counts**2 * x.numpy(), rtol=1e-5, atol=1e-3)
    with pytest.raises(ValueError, match="indices"):
        grad.grad(lambda x: tuff.max_pool(x, 2, indices=True, layout="nhwc")[0].sum())(host.ones((1, 4, 4, 2)))


def test_indices_of_no_tap(host, rng):
    """An index that is of no tap of its window has no effect, and neither has it on gradients of gradients."""
    for shape, layout, options in (
        ((1, 1, 2), "nchw", {"kernel": 2, "stride": 1, "padding": 2, "dilation": 4}),  # windows without taps
        ((2, 3, 8), "nchw", {"kernel": 2}),
        ((1, 2, 6, 5), "nchw", {"kernel": (3, 2), "stride": 2, "padding": 1, "dilation": (1, 2)}),
        ((1, 2, 3, 4, 5), "nchw", {"kernel": 2, "stride": 1}),
        ((2, 5, 4, 3), "nhwc", {"kernel": 2, "stride": (2, 1)}),
        ((2, 5, 7), "nchw", {"kernel": None}),
    ):
        x = host.array(rng.permutation(int(np.prod(shape))).reshape(shape).astype(np.float32))
        if options["kernel"] is None:
            y, places = tuff.adaptive_max_pool(x, 3, indices=True)
        elif layout == "nhwc":
            y, places = tuff.max_pool(x, layout=layout, **options), None
        else:
            y, places = tuff.max_pool(x, indices=True, **options)
        plane = int(np.prod(shape[2 if layout == "nchw" else 1 :]))
        rows = [rng.integers(0, plane, y.shape), rng.integers(0, plane + 3, y.shape), np.full(y.shape, 2**32 - 1)]
        for indices in [places] * (places is not None) + [host.array(row.astype(np.uint32)) for row in rows]:
            adjoint(host, rng, lambda g, i=indices, s=shape, o=options, a=layout: tuff.max_pool_backward(g, i, s, layout=a, **o), y.shape)


def test_losses(host, rng):
    logits, labels = rng.uniform(-2, 2, (5, 4)), np.array([0, 3, 1, 2, 2])
    on_device = host.array(labels)

    def expected(x, smoothing, kept):
        logs = x - np.log(np.exp(x).sum(-1, keepdims=True))
        weight = np.eye(4)[labels] * (1 - smoothing) + smoothing / 4
        return -(logs * weight).sum(-1)[kept].mean()

    x = logits.astype(np.float32)
    for smoothing, ignored in ((0.0, None), (0.2, None), (0.1, 2)):
        kept = labels != (-1 if ignored is None else ignored)
        value, slopes = grad.value_and_grad(
            lambda x, s=smoothing, i=ignored: grad.cross_entropy(x, on_device, label_smoothing=s, ignore_index=i)
        )(host.array(x))
        assert value.item() == pytest.approx(expected(x.astype(F64), smoothing, kept), rel=1e-5)
        differences = numeric(lambda x, s=smoothing, k=kept: expected(x, s, k), [x.astype(F64)], 1, 1e-5)[0]
        np.testing.assert_allclose(slopes.numpy(), differences, rtol=1e-4, atol=1e-6)
    check(host, grad.mean_squared_error, logits, logits + 0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("labelled", [np.int32, np.int64, np.uint8, np.uint64])
def test_cross_entropy_of_every_type(ctx, rng, dtype, labelled):
    """Labels of narrow types are widened first. Nothing waits."""
    logits, labels = rng.uniform(-2, 2, (2, 30, 7)).astype(dtype), rng.integers(0, 7, (2, 30)).astype(labelled)
    x, on_device = ctx.array(logits, dtype), ctx.array(labels, labelled)
    logs = logits.astype(F64) - np.log(np.exp(logits.astype(F64)).sum(-1, keepdims=True))
    for smoothing, ignored in ((0.0, None), (0.1, 3), (1.0, 3)):
        kept = np.ones(labels.shape, bool) if ignored is None else labels != ignored
        weight = (np.eye(7)[labels.astype(int)] * (1 - smoothing) + smoothing / 7) * kept[..., None]
        value, slopes = grad.value_and_grad(
            lambda x, s=smoothing, i=ignored: 3.0 * grad.cross_entropy(x, on_device, label_smoothing=s, ignore_index=i)
        )(x)
        tolerance = 2e-3 if dtype == np.float16 else 1e-5
        assert value.dtype == dtype and value.item() == pytest.approx(-3 * (logs * weight).sum() / kept.sum(), rel=tolerance)
        wanted = 3 * (np.exp(logs) * kept[..., None] - weight) / kept.sum()
        np.testing.assert_allclose(slopes.numpy().astype(F64), wanted, rtol=tolerance, atol=tolerance / 50)


def test_cross_entropy_of_transposed_arrays(ctx, rng):
    """As of a copy in that order: .T and .mT, differentiated once and twice."""
    values, labels = rng.uniform(-2, 2, (7, 5)).astype(np.float32), ctx.array([0, 6, 2, 3, 6], np.int32)
    x, y = ctx.array(values), ctx.array(values.T.copy())
    assert grad.cross_entropy(x.T, labels).item() == grad.cross_entropy(y, labels).item()
    value, slopes = grad.value_and_grad(lambda y: grad.cross_entropy(y, labels))(y)
    twice = grad.grad(lambda y: (grad.grad(lambda y: grad.cross_entropy(y, labels))(y) * y).sum())(y).numpy()
    for transposed in (lambda x: x.T, lambda x: x.mT):
        of_x = grad.value_and_grad(lambda x, t=transposed: grad.cross_entropy(t(x), labels))
        assert of_x(x)[0].item() == value.item()
        np.testing.assert_array_equal(of_x(x)[1].numpy(), slopes.numpy().T)
        again = grad.grad(lambda x, f=of_x: (f(x)[1] * x).sum())(x).numpy()
        np.testing.assert_allclose(again, twice.T, rtol=1e-5, atol=1e-7)
    # Labels too, of logits with three axes.
    wide, many = ctx.array(rng.uniform(-2, 2, (3, 4, 2)), np.float32), ctx.array(rng.integers(0, 4, (2, 3)), np.int32)
    value, slopes = grad.value_and_grad(lambda x: grad.cross_entropy(x.mT, many.T))(wide)
    dense = [ctx.array(one.numpy().copy()) for one in (wide.mT, many.T)]
    expected = grad.value_and_grad(lambda x: grad.cross_entropy(x, dense[1]))(dense[0])
    assert value.item() == expected[0].item()
    np.testing.assert_array_equal(slopes.mT.numpy(), expected[1].numpy())


def test_cross_entropy_of_labels_without_a_class(ctx):
    for dtype in (np.float32, np.float16):
        x = ctx.array([[1.0, 2.0], [3.0, 4.0]], dtype)
        for labels, ignored, finite in (([0, 2], None, False), ([0, -1], None, False), ([0, -1], -1, True), ([2, 1], 2, True), ([5, 5], 5, False)):
            value, slopes = grad.value_and_grad(lambda x, l=labels, i=ignored: grad.cross_entropy(x, ctx.array(l, np.int64), ignore_index=i))(x)
            assert np.isfinite(value.item()) == finite, (dtype, labels)
            if finite:
                row = labels.index(ignored)
                assert (slopes.numpy()[row] == 0).all() and (slopes.numpy()[1 - row] != 0).all()


def test_second_derivatives_of_losses_and_softmax(ctx, rng):
    logits = rng.uniform(-1, 1, (3, 4))
    x, labels = ctx.array(logits, np.float32), ctx.array([0, 2, 3], np.int64)
    # By the first class of each row, the slope of the slope: p (1 - p) / rows.
    second = grad.grad(lambda x: grad.grad(lambda y: grad.cross_entropy(y, labels))(x)[:, 0].sum())(x).numpy()
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(second, p * (np.eye(4)[0] - p[:, :1]) / 3, rtol=1e-4, atol=1e-6)
    outer = grad.grad(lambda a: grad.grad(lambda y: (a * grad.cross_entropy(y, labels)))(x)[0, 0])(ctx.array(2.0, np.float32))
    assert outer.item() == pytest.approx((p[0, 0] - 1) / 3, rel=1e-4)
    for function in (tuff.softmax, tuff.log_softmax):
        for axis in (0, 1):
            slopes = grad.grad(lambda x, f=function, a=axis: (f(x, a, scale=0.5) * x).sum())(x).numpy()
            wide = grad.grad(lambda x, f=function, a=axis: (f(x * 0.5, a) * x).sum())(x).numpy()
            np.testing.assert_allclose(slopes, wide, rtol=1e-4, atol=1e-5)


def test_arguments_in_lists_and_dictionaries(host):
    parameters = {"w": [host.array([1.0, 2.0]), host.array([3.0])], "b": (host.array(4.0),)}
    value, slopes = grad.value_and_grad(lambda p, x: ((p["w"][0] * x).sum() + p["w"][1].sum() * 2.0 + p["b"][0] * p["b"][0]).reshape(1))(
        parameters, host.array([5.0, 6.0])
    )
    assert value.item() == 5 + 12 + 6 + 16
    assert slopes["w"][0].numpy().tolist() == [5, 6] and slopes["w"][1].item() == 2 and slopes["b"][0].item() == 8
    assert isinstance(slopes["b"], tuple)


def test_second_derivatives(host):
    x = host.array([0.5, 1.5], F64)
    second = grad.grad(lambda x: grad.grad(lambda y: (tuff.sin(y) * y).sum())(x).sum())(x).numpy()
    expected = 2 * np.cos(x.numpy()) - x.numpy() * np.sin(x.numpy())
    np.testing.assert_allclose(second, expected, rtol=1e-12)
    # The inner function's outer variable is a constant to it, and not to the outer one.
    mixed = grad.grad(lambda a: grad.grad(lambda b: (a * a * b).sum())(x).sum())(x).numpy()
    np.testing.assert_allclose(mixed, 2 * x.numpy(), rtol=1e-12)


def test_second_derivatives_of_operations_with_their_own_backward_pass(host, rng):
    """Their gradients are computed by formulas of the inner values; an outer gradient takes the definitions instead."""
    values = {"x": rng.uniform(-1, 1, (2, 3, 4)), "w": rng.uniform(0.5, 1, 4)}
    x, w = (host.array(one.astype(np.float32)) for one in values.values())
    for function in (
        lambda x: tuff.layer_norm(x, w) * tuff.layer_norm(x),
        lambda x: tuff.rms_norm(x, w) * tuff.rms_norm(x),
        lambda x: tuff.group_norm(x, 1) * x,
        lambda x: tuff.batch_norm(x, x.context.zeros(3), x.context.ones(3)) * x,
        lambda x: tuff.batch_norm_training(x) * x,
        lambda x: tuff.attention(x, x * 2.0, x, causal=True),
    ):
        inner = grad.grad(lambda x, f=function: tuff.square(f(x)).sum())
        slopes = grad.grad(lambda x, g=inner: (g(x) * x).sum())(x).numpy().astype(F64)
        # The slope along one direction, of float32 gradients: their rounding over h, and h^2.
        direction, h = rng.uniform(-1, 1, x.shape).astype(np.float32), 1e-2
        ends = [(inner(host.array(x.numpy() + s * h * direction)).numpy().astype(F64) * (x.numpy() + s * h * direction)).sum() for s in (1, -1)]
        assert (slopes * direction).sum() == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-2, abs=2e-2)


def test_second_derivatives_of_places(host, rng):
    """What selects elements is linear: the slope of sum(x * f(x)) by x, twice, at the elements that were selected."""
    x = host.array(rng.permutation(48).reshape(2, 4, 6), F64)
    for function in (
        lambda x: x[1, 1:, ::2],
        lambda x: x[np.array([1, 0, 1])],
        lambda x: tuff.sort(x),
        lambda x: tuff.topk(x, 2)[0],
        lambda x: tuff.diagonal(x, 1, 1, 2),
        lambda x: tuff.max_pool(x.astype(np.float32).reshape(1, 2, 4, 6), 2),
    ):
        # The sum of cubes has the slope 3 x^2 and the second slope 6 x, once for each time that an element is selected.
        times = grad.grad(lambda x, f=function: f(x).sum())(x).numpy()
        slope = grad.grad(lambda x, f=function: (f(x) * f(x) * f(x)).sum())
        np.testing.assert_allclose(slope(x).numpy(), 3 * times * x.numpy() ** 2, rtol=1e-6)
        np.testing.assert_allclose(grad.grad(lambda x, s=slope: s(x).sum())(x).numpy(), 6 * times * x.numpy(), rtol=1e-6)


def test_transposed_arrays(host, rng):
    x = rng.uniform(-1, 1, (3, 4))
    check(host, lambda x: tuff.square(x).T.sum(0), x)
    check(host, lambda x: (x.T * x.T).sum(), x)
    found = grad.grad(lambda x: (tuff.square(x).T.astype(np.float32)).sum())(host.array(x, F64))
    np.testing.assert_allclose(found.numpy(), 2 * x, rtol=1e-6)


def test_formulas_with_limits_in_the_wrong_order(host, rng):
    """min(max(x, low), high) is high wherever low is above it."""
    x, high, low = rng.uniform(-2, 2, 8), np.full(8, -1.0), np.full(8, 1.0)
    check(host, lambda x, low, high: tuff.expr("clamp(x, low, high)", x=x, low=low, high=high), x, low, high)
    check(host, lambda x, low, high: tuff.expr("clamp(x, low, high)", x=x, low=low, high=high), x, high, low)


def test_gradients_are_matched_to_parameters_by_their_keys(host):
    parameters = {"w": host.array([1.0, 2.0]), "b": host.array([3.0, 4.0]), "more": [host.array([5.0])]}
    gradients = {"more": (host.array([1.0]),), "b": host.array([10.0, 10.0]), "w": host.array([20.0, 20.0])}
    grad.SGD(parameters, 0.1).step(gradients)
    assert np.allclose(parameters["w"].numpy(), [-1, 0]) and np.allclose(parameters["b"].numpy(), [2, 3])
    assert np.allclose(parameters["more"][0].numpy(), 4.9)
    for wrong in ({**gradients, "c": gradients["b"]}, {"w": gradients["w"]}, [gradients], {**gradients, "more": []}):
        with pytest.raises((TypeError, ValueError), match="gradient"):
            grad.SGD(parameters, 0.1).step(wrong)


def test_constants_and_unused_arguments(host):
    x = host.array([2.0])
    assert grad.grad(lambda x: (grad.constant(x) * x).sum())(x).item() == 2
    assert grad.grad(lambda x: host.ones(1))(x).item() == 0
    assert grad.grad(lambda x: (x > 1).astype(np.float32).sum())(x).item() == 0
    used, unused = grad.grad(lambda x, y: x.sum(), (0, 1))(x, host.ones((2, 3)))
    assert used.item() == 1 and unused.numpy().tolist() == [[0] * 3] * 2


def test_half_precision(host):
    x = host.array(np.array([0.5, 2.0], np.float16))
    slopes = grad.grad(lambda x: (tuff.exp(x) * x).astype(np.float32).sum())(x)
    assert slopes.dtype == np.float16
    assert slopes.numpy() == pytest.approx(np.exp([0.5, 2.0]) * [1.5, 3.0], rel=2e-3)


def test_misuse(host):
    x, whole = host.array([1.0, 2.0]), host.array(np.array([1, 2]))
    for function, name in ((lambda x: tuff.linalg.qr(x.reshape(1, 2))[1].sum(), "qr"), (lambda x: tuff.cumprod(x).sum(), "cumprod")):
        with pytest.raises(TypeError, match=f"{name}\\(\\) has no rule for gradients"):
            grad.grad(function)(x)
    with pytest.raises(TypeError, match="overwritten"):
        grad.grad(lambda x: x.__setitem__(0, 1.0))(x)
    with pytest.raises(TypeError, match="in place"):
        grad.grad(lambda x: x.__iadd__(1.0).sum())(x)
    with pytest.raises(TypeError, match="in place"):
        grad.grad(lambda x: tuff.exp(x, out=host.empty(2)).sum())(x)
    with pytest.raises(TypeError, match="of int64"):
        grad.grad(lambda x: x.sum())(whole)
    with pytest.raises(TypeError, match="is float: needs arrays"):
        grad.grad(lambda x: x)(1.0)
    with pytest.raises(ValueError, match="one real number"):
        grad.grad(lambda x: x * 2.0)(x)
    with pytest.raises(TypeError, match="returned float"):
        grad.grad(lambda x: float(x.sum()))(x)
    with pytest.raises(ValueError, match="argnums"):
        grad.grad(lambda x: x.sum(), 1)(x)
    with pytest.raises(ValueError, match="twice"):
        grad.grad(lambda x: x.sum(), (0, 0))(x)
    with pytest.raises(ValueError, match="the gradient is"):
        grad.vjp(lambda x: x * 2.0, x)[1](host.ones(3))
    with pytest.raises(ValueError, match="labels"):
        grad.cross_entropy(x, whole)
    with pytest.raises(ValueError, match="a gradient of shape"):
        grad.SGD([x], 0.1).step([host.ones(3)])
    with pytest.raises(ValueError, match="betas"):
        grad.Adam([x], betas=(1.0, 0.5))


def test_an_error_in_the_function_leaves_nothing_behind(host):
    x = host.array([1.0])

    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError):
        grad.grad(fails)(x)
    assert grad.grad(lambda x: (x * x).sum())(x).item() == 2


def test_optimisers_take_the_steps_of_their_formulas(host):
    w, g = np.array([1.0, -2.0, 3.0], np.float32), np.array([0.5, 0.25, -1.0], np.float32)
    plain, heavy, adam = (host.array(w) for _ in range(3))
    grad.SGD([plain], 0.1, weight_decay=0.01).step([host.array(g)])
    np.testing.assert_allclose(plain.numpy(), w - 0.1 * (g + 0.01 * w), rtol=1e-6)
    sgd, steps = grad.SGD([heavy], 0.1, momentum=0.9), grad.Adam([adam], 0.01, weight_decay=0.1)
    v, m, s, by_hand, by_adam = 0.0, 0.0, 0.0, w.astype(F64), w.astype(F64)
    for step in range(1, 4):
        sgd.step([host.array(g * step)])
        steps.step([host.array(g * step)])
        v = 0.9 * v + g * step
        by_hand = by_hand - 0.1 * v
        m, s = 0.9 * m + 0.1 * g * step, 0.999 * s + 0.001 * (g * step) ** 2
        by_adam = by_adam - 0.01 * 0.1 * by_adam - 0.01 * (m / (1 - 0.9**step)) / (np.sqrt(s / (1 - 0.999**step)) + 1e-8)
    np.testing.assert_allclose(heavy.numpy(), by_hand, rtol=1e-6)
    np.testing.assert_allclose(adam.numpy(), by_adam, rtol=1e-5)
    clipped = grad.clip_norm({"a": host.array([3.0]), "b": host.array([4.0])}, 1.0)
    assert clipped["a"].item() == pytest.approx(0.6) and clipped["b"].item() == pytest.approx(0.8)
    assert grad.clip_norm([host.array([3.0])], 5.0)[0].item() == 3


def _formulas(kind, w, gradients, rate, decay):
    """Steps by the formulas of tuff.h in float64."""
    m, v, momentum = np.zeros_like(w), np.zeros_like(w), 0.9
    for t, g in enumerate(gradients, 1):
        if kind in ("momentum", "nesterov"):
            g = g + decay * w
            v = momentum * v + g
            w = w - rate * (g + momentum * v if kind == "nesterov" else v)
            continue
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-6)
        if kind == "adam":
            w = w - rate * decay * w - rate * u
        else:
            u = u + decay * w
            w = w - rate * np.linalg.norm(w) / np.linalg.norm(u) * u
    return w


@pytest.mark.parametrize("kind", ["momentum", "nesterov", "adam", "lamb"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_optimisers_of_every_type(ctx, rng, kind, dtype):
    """float64 is computed by formulas, the others by lists, and both are the same steps. A formula's numbers are f32, and the
    first moments cancel. 16-bit parameters lose digits of each step: a unit of theirs."""
    shapes = [(5, 3), (1,), (4099,)]
    values = [rng.uniform(0.5, 2, shape).astype(dtype) for shape in shapes]
    slopes = [[rng.uniform(-1, 1, shape).astype(dtype) for shape in shapes] for _ in range(3)]
    parameters = {"first": ctx.array(values[0], dtype), "rest": [ctx.array(one, dtype) for one in values[1:]]}
    optimiser = {"momentum": lambda: grad.SGD(parameters, 0.1, momentum=0.9, weight_decay=0.1),
                 "nesterov": lambda: grad.SGD(parameters, 0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
                 "adam": lambda: grad.Adam(parameters, 0.1, epsilon=1e-6, weight_decay=0.1),
                 "lamb": lambda: grad.LAMB(parameters, 0.1, weight_decay=0.1)}[kind]()  # fmt: skip
    for of_step in slopes:
        arrays = [ctx.array(2 * one, dtype) for one in of_step]
        optimiser.step({"rest": arrays[1:], "first": arrays[0]}, scale=0.5)
    tolerance = 4e-3 if dtype == np.float16 else 1e-5
    for at, one in enumerate([parameters["first"], *parameters["rest"]]):
        wanted = _formulas(kind, values[at].astype(F64), [s[at].astype(F64) for s in slopes], 0.1, 0.1)
        np.testing.assert_allclose(one.numpy().astype(F64), wanted, rtol=tolerance, atol=tolerance)


def test_a_parameter_that_is_listed_twice_takes_both_steps(ctx):
    shared = ctx.array([1.0, 2.0], np.float32)
    grad.SGD([shared, shared], 0.5).step([ctx.array([1.0, 0.0], np.float32), ctx.array([0.0, 1.0], np.float32)])
    assert shared.numpy().tolist() == [0.5, 1.5]


def test_norms_of_gradients(ctx):
    """Of arrays of several types, and what a step does with them."""
    parts = {"a": ctx.array([3.0], np.float32), "b": [ctx.array([4.0], np.float16)], "c": ctx.array([12.0, 0.0], np.float32)}
    norm, factor, found = grad.gradient_norm(parts)
    assert (norm.item(), factor.item(), found.item()) == (13, 1, 0)
    norm, factor, found = grad.gradient_norm(parts, 6.5, scale=2, factor=ctx.array([0.5], np.float32))
    assert (norm.item(), factor.item(), found.item()) == (13, 0.25, 0)
    w = ctx.array([1.0, 1.0], np.float32)
    grad.SGD([w], 1.0).step([parts["c"]], factor=factor)
    assert w.numpy().tolist() == [-2, 1]
    parts["b"] = [ctx.array([np.inf], np.float16)]
    found = grad.gradient_norm(parts)[2]
    assert found.item() == 1
    grad.SGD([w], 1.0).step([parts["c"]], skip=found)
    assert w.numpy().tolist() == [-2, 1]
    huge = grad.clip_norm([ctx.array([3e30, 4e30], np.float32)], 1.0)[0].numpy()
    np.testing.assert_allclose(huge, [0.6, 0.8], rtol=1e-6)


def test_misuse_of_optimisers(ctx):
    w, g, wide = ctx.ones(2), ctx.ones(2), ctx.array([1.0, 2.0], F64)
    other = tuff.Context(backend="host")
    rows = [
        (ValueError, "nesterov needs a momentum", lambda: grad.SGD([w], 0.1, nesterov=True)),
        (ValueError, "factor has shape .2,.", lambda: grad.SGD([w], 0.1).step([g], factor=g)),
        (TypeError, "skip is int, not a tuff.Array", lambda: grad.SGD([w], 0.1).step([g], skip=1)),
        (ValueError, "skip has shape .1,. and is of float32", lambda: grad.SGD([w], 0.1).step([g], skip=ctx.ones(1))),
        (TypeError, "factor and skip are for dense parameters of float32",
         lambda: grad.SGD([wide], 0.1).step([wide], factor=ctx.ones(1))),
        (TypeError, "with gradients of that type or float32", lambda: grad.SGD([w, wide], 0.1).step([g, wide], factor=ctx.ones(1))),
        (TypeError, "factor and skip are for", lambda: grad.SGD([w, wide], 0.1).step([g, wide], skip=ctx.array([0], np.int32))),
        (TypeError, "a gradient is of float64", lambda: grad.gradient_norm([wide])),
        (ValueError, "hold no array", lambda: grad.gradient_norm([])),
        (ValueError, "betas are", lambda: grad.LAMB([w], betas=(0.9, 1.0))),
        (ValueError, "rate is -1", lambda: grad.SGD([w], -1.0).step([g])),
        (ValueError, "rate is -1", lambda: grad.SGD([wide], -1.0).step([wide])),
        (ValueError, "weight_decay is nan", lambda: grad.Adam([wide], weight_decay=math.nan).step([wide])),
        (ValueError, "weight_decay is -0.1", lambda: grad.Adam([w], weight_decay=-0.1).step([g])),
        (ValueError, "momentum is -1", lambda: grad.SGD([wide], 0.1, momentum=-1.0).step([wide])),
        (ValueError, "epsilon is -1", lambda: grad.LAMB([wide], epsilon=-1.0).step([wide])),
        (ValueError, "scale is 0", lambda: grad.SGD([w], 0.1).step([g], scale=0)),
        (ValueError, "scale is 0", lambda: grad.SGD([wide], 0.1).step([wide], scale=0)),
        (ValueError, "scale is inf", lambda: grad.SGD([wide], 0.1).step([wide], scale=math.inf)),
        (ValueError, "scale is 0", lambda: grad.gradient_norm([g], scale=0)),
        (ValueError, "of different contexts", lambda: grad.SGD([w, wide], 0.1).step([g, other.array([1.0, 2.0], F64)])),
        (tuff.TuffError, "overlaps gradients", lambda: grad.SGD([w], 0.1).step([w])),
    ]  # fmt: skip
    for error, text, call in rows:
        with pytest.raises(error, match=text):
            call()
        assert w.numpy().tolist() == [1, 1] and wide.numpy().tolist() == [1, 2], text
    other.close()


def test_a_refused_step_does_not_count(ctx):
    """Adam's step after it is the first: of the length of the rate, but for 1 - beta in f32."""
    w, wide = ctx.ones(2), ctx.array([1.0, 2.0], F64)
    adam, sgd = grad.Adam([w, wide], 0.25, epsilon=0), grad.SGD([w], 0.1)
    for options in (dict(scale=0), dict(scale="1"), dict(factor=ctx.ones(2)), dict(skip=ctx.ones(1)), dict(factor=ctx.ones(1))):
        with pytest.raises((ValueError, TypeError)):
            adam.step([ctx.ones(2), wide], **options)
    with pytest.raises(tuff.TuffError, match="overlaps"):
        sgd.step([w])
    assert adam.steps == sgd.steps == 0
    adam.step([ctx.array([3.0, -3.0], np.float32), wide])
    assert adam.steps == 1
    np.testing.assert_allclose(w.numpy(), [0.75, 1.25], rtol=1e-4)
    np.testing.assert_allclose(wide.numpy(), [0.75, 1.75], rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, F64])
def test_momentum_may_change_between_steps(ctx, dtype):
    """At 0 the velocity stays as it is; above 0 it begins with zeros."""
    w, g = ctx.array([1.0], dtype), ctx.array([1.0], dtype)
    sgd = grad.SGD([w], 0.5, momentum=0.5)
    for momentum, wanted in ((0.5, 0.5), (0.0, 0.0), (0.5, -0.75), (0.0, -1.25)):
        sgd.momentum = momentum
        sgd.step([g])
        assert w.item() == wanted
    late = grad.SGD([w], 0.5)
    late.step([g])
    late.momentum, late.nesterov = 0.5, True
    late.step([g])
    assert w.item() == -2.5
    late.momentum = 0.0
    with pytest.raises(ValueError, match="nesterov needs a momentum above 0"):
        late.step([g])


def test_steps_follow_parameters_and_types(ctx):
    """What a step keeps for the next one is of these parameters and gradients."""
    one, two = ctx.array([1.0, 1.0], np.float32), ctx.array([4.0, 4.0], np.float32)
    half = ctx.array([8.0, 8.0], np.float16)
    sgd = grad.SGD([one, half], 1.0)
    ones = {dtype: ctx.array([1.0, 1.0], dtype) for dtype in (np.float16, np.float32, F64)}
    for of_one, of_half in ((np.float32, np.float16), (np.float32, np.float32), (F64, np.float16)):
        sgd.step([ones[of_one], ones[of_half]])
    assert one.numpy().tolist() == [-2, -2] and half.numpy().tolist() == [5, 5]
    sgd.parameters[0] = two
    sgd.step([ones[np.float32], ones[np.float16]])
    assert one.numpy().tolist() == [-2, -2] and two.numpy().tolist() == [3, 3] and half.numpy().tolist() == [4, 4]
    sgd.step([ctx.array([[1.0, 0.0], [2.0, 0.0]], np.float32)[:, 0], ones[np.float16]])  # a view with strides
    assert two.numpy().tolist() == [2, 1]


def test_a_network_learns(host, rng):
    """Two moons, which no line divides."""
    angle = rng.uniform(0, math.pi, 200)
    which = np.arange(200) % 2
    x = np.stack([np.cos(angle) + which * 1.0, np.sin(angle) * (1 - 2 * which) + which * 0.4], 1) + rng.normal(0, 0.05, (200, 2))
    points, labels = host.array(x.astype(np.float32)), host.array(which)
    layers = [[host.array(rng.normal(0, 0.7, (2, 16)).astype(np.float32)), host.zeros(16)],
              [host.array(rng.normal(0, 0.3, (16, 2)).astype(np.float32)), host.zeros(2)]]  # fmt: skip

    def logits(layers):
        (w1, b1), (w2, b2) = layers
        return tuff.tanh(points @ w1 + b1) @ w2 + b2

    adam = grad.Adam(layers, 0.03)
    step = grad.value_and_grad(lambda layers: grad.cross_entropy(logits(layers), labels))
    first = step(layers)[0].item()
    for _ in range(150):
        adam.step(step(layers)[1])
    assert step(layers)[0].item() < 0.05 < first
    assert (logits(layers).numpy().argmax(1) == which).mean() > 0.98


def test_a_device_gives_the_hosts_gradients(vulkan, host, rng):
    values = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((2, 3, 8, 8), (4, 3, 3, 3), (4,), (64, 5))]

    def loss(x, w, b, v):
        hidden = tuff.max_pool(tuff.conv2d(x, w, padding=1, bias=b, activation="gelu"), 2)
        return grad.cross_entropy(tuff.rms_norm(hidden.reshape(2, 64)) @ v, x.context.array(np.array([1, 4])))

    found = [grad.grad(loss, (0, 1, 2, 3))(*map(context.array, values)) for context in (vulkan, host)]
    for one, other in zip(*found):
        # Sums of up to 128 products below 1, after functions with errors of a few ULP.
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=2e-5, atol=256 * 2**-24)


def test_what_python_runs_and_what_is_compiled_agree():
    """The compiled part of the package sends these arrays to the general code, as ctypes does."""
    program = (
        "import tuff; from tuff import grad\n"
        "with tuff.Context(backend='host') as c:\n"
        "    f = lambda a, b: ((a @ b).relu() + a.sum(0).reshape(-1, 1).astype('float32')).sum()\n"
        "    print([g.numpy().tolist() for g in grad.grad(f, (0, 1))(c.array([[1., -2.], [3., 4.]]), c.array([[1., 2.], [0.5, -1.]]))])\n"
    )
    texts = {
        subprocess.run([sys.executable, "-c", program], env={**os.environ, "TUFF_PYTHON": way}, capture_output=True, text=True, check=True).stdout
        for way in ("", "ctypes")
    }
    assert len(texts) == 1 and "[[" in texts.pop()


def recurrent(cell, x, layers, h, c, before):
    """Layers in float64 NumPy, forwards and backwards in time if their weights have two directions: y, and the last h."""
    def sigma(s):
        return 1 / (1 + np.exp(-s))

    last = []
    for number, (w, r, bias_w, bias_r) in enumerate(layers):
        outputs = []
        for d in range(w.shape[0]):
            state, memory = h[number * w.shape[0] + d], c[number * w.shape[0] + d]
            steps = []
            for at in range(x.shape[0])[:: -1 if d else 1]:
                of_x, of_h = x[at] @ w[d].T + bias_w[d], state @ r[d].T + bias_r[d]
                parts = [np.split(one, w.shape[1] // state.shape[-1], -1) for one in (of_x, of_h)]
                sums = [a + b for a, b in zip(*parts)]
                if cell == "lstm":
                    memory = sigma(sums[1]) * memory + sigma(sums[0]) * np.tanh(sums[2])
                    state = sigma(sums[3]) * np.tanh(memory)
                elif cell == "gru":
                    reset, z = sigma(sums[0]), sigma(sums[1])
                    if before:
                        inner = reset * parts[1][2]
                    else:
                        inner = np.split((reset * state) @ r[d].T + bias_r[d], 3, -1)[2]
                    state = (1 - z) * np.tanh(parts[0][2] + inner) + z * state
                else:
                    state = np.tanh(sums[0]) if cell == "tanh" else np.maximum(sums[0], 0)
                steps.append(state)
            outputs.append(np.stack(steps[:: -1 if d else 1]))
            last.append(state)
        x = np.concatenate(outputs, -1)
    return x, np.stack(last)


@pytest.mark.parametrize("cell", ["lstm", "gru", "gru before", "tanh", "relu"])
@pytest.mark.parametrize("directions, count", [(1, 1), (2, 2)])
def test_recurrent(ctx, cell, directions, count):
    """In float32 against differences in float64. A gradient is a sum of a few hundred products below 1, whose factors have a
    few dozen roundings each: 1e-5 of the largest."""
    rng = np.random.default_rng(5)
    kind, before = cell.split()[0], cell == "gru before"
    gates, hidden, inputs, steps, batch = {"lstm": 4, "gru": 3}.get(kind, 1), 4, 3, 3, 2
    layers = []
    for number in range(count):
        columns = inputs if number == 0 else directions * hidden
        shapes = [(directions, gates * hidden, columns), (directions, gates * hidden, hidden)] + [(directions, gates * hidden)] * 2
        layers.append([rng.uniform(-0.6, 0.6, shape) for shape in shapes])
    x, h = rng.uniform(-1, 1, (steps, batch, inputs)), rng.uniform(-1, 1, (count * directions, batch, hidden))
    c, of_y = np.zeros(h.shape), rng.uniform(0.5, 1.5, (steps, batch, directions * hidden))
    of_h = rng.uniform(0.5, 1.5, h.shape)

    def loss(x, h, *flat):
        given = [flat[4 * i : 4 * i + 4] for i in range(count)]
        y, last = recurrent(kind, x, given, h, c, before)
        return (y * of_y).sum() + (last * of_h).sum()

    flat = [one for layer in layers for one in layer]
    expected = numeric(loss, [x, h, *flat], 1, 1e-5)

    def traced(x, h, layers):
        if kind == "lstm":
            y, (last, _) = tuff.lstm(x, layers, h0=h)
        elif kind == "gru":
            y, last = tuff.gru(x, layers, h0=h, linear_before_reset=before)
        else:
            y, last = tuff.rnn(x, layers, activation=kind, h0=h)
        return (y * ctx.array(of_y, np.float32)).sum() + (last * ctx.array(of_h, np.float32)).sum()

    on_device = [[ctx.array(one, np.float32) for one in layer] for layer in layers]
    of_x, of_state, of_layers = grad.grad(traced, (0, 1, 2))(
        ctx.array(x, np.float32), ctx.array(h, np.float32), [tuff.RnnLayer(*layer) for layer in on_device]
    )
    found = [of_x, of_state, *(one for layer in of_layers for one in layer if one is not None)]
    assert len(found) == len(expected)
    for gradient, wanted in zip(found, expected):
        np.testing.assert_allclose(gradient.numpy(), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


def test_recurrent_gradients_are_not_kept(host, rng, monkeypatch):
    """Those by all operands are computed at once, and freed when each has been passed on, though the tape lives."""
    from tuff import _recurrent_gradients

    made = []

    def noting(*arguments):
        found = layer_gradients(*arguments)
        made.extend(weakref.ref(one.buffer) for one in found.values())
        return found

    layer_gradients = _recurrent_gradients.layer_gradients
    monkeypatch.setattr(_recurrent_gradients, "layer_gradients", noting)
    x, w, r = (host.array(rng.uniform(-1, 1, shape), np.float32) for shape in ((4, 2, 3), (1, 8, 3), (1, 8, 2)))
    value, pull = grad.vjp(lambda x, w, r: tuff.lstm(x, tuff.RnnLayer(w, r))[0], x, w, r)
    seed = host.ones(value.shape)
    first = [one.numpy() for one in pull(seed)]
    assert len(made) == 3
    gc.collect()
    assert [one() for one in made] == [None] * 3
    for one, again in zip(first, pull(seed)):  # computed anew
        np.testing.assert_array_equal(one, again.numpy())


def test_recurrent_c_and_lengths(ctx, rng):
    """Beyond a sequence's length x has no gradient; c0 and cn are differentiated too."""
    x, w = ctx.array(rng.uniform(-1, 1, (4, 2, 3)), np.float32), ctx.array(rng.uniform(-1, 1, (1, 8, 3)), np.float32)
    r, c0 = ctx.array(rng.uniform(-1, 1, (1, 8, 2)), np.float32), ctx.array(rng.uniform(-1, 1, (1, 2, 2)), np.float32)
    lengths = ctx.array([4, 2], np.int32)
    of_x, of_c = grad.grad(lambda x, c: tuff.lstm(x, tuff.RnnLayer(w, r), c0=c, lengths=lengths)[1][1].sum(), (0, 1))(x, c0)
    assert (of_x.numpy()[2:, 1] == 0).all() and (of_x.numpy()[:2, 1] != 0).all() and (of_x.numpy()[:, 0] != 0).all()
    assert (of_c.numpy() != 0).all()
    with pytest.raises(TypeError, match="no gradients of gradients"):
        grad.grad(lambda x: grad.grad(lambda x: tuff.lstm(x, tuff.RnnLayer(w, r))[0].sum())(x).sum())(x)


@pytest.mark.parametrize("optimiser", [grad.SGD, grad.Adam])
def test_optimisers_of_layers_without_biases(ctx, rng, optimiser):
    """Named tuples have fields that are None, and so have their gradients."""
    layer = tuff.RnnLayer(ctx.array(rng.uniform(-1, 1, (1, 8, 3)), np.float32), ctx.array(rng.uniform(-1, 1, (1, 8, 2)), np.float32))
    x = ctx.array(rng.uniform(-1, 1, (4, 2, 3)), np.float32)

    def loss(layers):
        return tuff.lstm(x, layers)[0].sum()

    gradients = grad.grad(loss)([layer])
    before = [layer.w.numpy(), layer.r.numpy()]
    optimiser([layer], 0.1).step(gradients)
    for one, was, gradient in zip(layer[:2], before, gradients[0][:2]):
        assert (np.sign(was - one.numpy()) == np.sign(gradient.numpy())).all() and (one.numpy() != was).all()
    with pytest.raises(ValueError, match="a parameter that is None"):
        optimiser([layer], 0.1).step([gradients[0]._replace(bias_w=layer.w)])


def test_recurrent_misuse(ctx):
    """Under grad as without: a call is refused with the same words."""
    def zeros(*shape):
        return ctx.zeros(shape)

    x, layer = zeros(5, 2, 4), tuff.RnnLayer(zeros(1, 16, 4), zeros(1, 16, 4))
    rows = [
        (TypeError, "layer 0 is int, not an RnnLayer", lambda x: tuff.lstm(x, [3])),
        (TypeError, "layer 1 is list, not an RnnLayer", lambda x: tuff.lstm(x, [layer, list(layer)])),
        (TypeError, "layers is 3, needs an RnnLayer", lambda x: tuff.lstm(x, 3)),
        (ValueError, "layers is empty", lambda x: tuff.lstm(x, [])),
        (TypeError, "h0 is int, not a tuff.Array", lambda x: tuff.lstm(x, layer, h0=3)),
        (TypeError, "h0 is int, not a tuff.Array", lambda x: tuff.lstm(x, [layer, layer], h0=3)),
        (TypeError, "c0 is float, not a tuff.Array", lambda x: tuff.lstm(x, [layer, layer], c0=0.5)),
        (ValueError, r"h0 has shape \(1, 2, 4\), needs", lambda x: tuff.lstm(x, [layer, layer], h0=zeros(1, 2, 4))),
        (ValueError, r"h0 has shape \(\), needs", lambda x: tuff.lstm(x, [layer, layer], h0=zeros())),
        (ValueError, r"h0 has shape \(1, 3, 4\), needs \(1, 2, 4\)", lambda x: tuff.lstm(x, layer, h0=zeros(1, 3, 4))),
        (ValueError, "dropout is 2.0, needs 0 to 1", lambda x: tuff.lstm(x, layer, dropout=2.0)),
        (ValueError, "dropout is -0.5, needs 0 to 1", lambda x: tuff.lstm(x, [layer, layer], dropout=-0.5, generator=tuff.Generator(ctx))),
        (TypeError, "dropout needs a generator", lambda x: tuff.lstm(x, layer, dropout=0.5)),
        (ValueError, r"w of layer 1 has shape \(1, 16, 5\)", lambda x: tuff.lstm(x, [layer, layer._replace(w=zeros(1, 16, 5))])),
        (ValueError, r"bias_w of layer 1 has shape \(1, 5\)", lambda x: tuff.lstm(x, [layer, layer._replace(bias_w=zeros(1, 5))])),
        (ValueError, "w of layer 1 has shape .* not a multiple of 4", lambda x: tuff.lstm(x, [layer, layer._replace(w=zeros(1, 15, 4))])),
        (ValueError, "layer 1 has other sizes than layer 0", lambda x: tuff.lstm(x, [layer, tuff.RnnLayer(zeros(1, 8, 4), zeros(1, 8, 2))])),
        (ValueError, "w of layer 0 has shape", lambda x: tuff.lstm(x, layer._replace(w=zeros(1, 16, 5)))),
    ]  # fmt: skip
    for error, says, call in rows:
        for use in (lambda: call(x), lambda: grad.grad(lambda x: call(x)[0].sum())(x)):
            with pytest.raises(error, match=says):
                use()
