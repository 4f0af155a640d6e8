"""Formulas beside NumPy's arithmetic."""

import numpy as np
import pytest
import tuff
from tuff._expression import reduction_of


def test_a_formula_of_arrays_and_numbers(ctx):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    row = np.array([1, -2, 0.5, 4], np.float32)
    y = tuff.expr("max(a * x + b, 0)", a=ctx.array(row), x=ctx.array(x), b=-3.5)
    assert y.dtype == np.float32 and y.shape == (3, 4)
    assert (y.numpy() == np.maximum(row * x + np.float32(-3.5), 0)).all()


def test_broadcasting_of_a_column_and_a_row(ctx):
    column, row = np.arange(5, dtype=np.int32)[:, None], np.arange(7, dtype=np.int32)
    y = tuff.expr("a * 10 + b", a=ctx.array(column), b=ctx.array(row))
    assert (y.numpy() == column * 10 + row).all()
    mask = tuff.expr("a == b", a=ctx.array(column), b=ctx.array(row), dtype=np.uint8)
    assert (mask.numpy() == (column == row)).all()


def test_integers_and_types(ctx):
    a = np.array([-7, 7, -1, 0, 2**31 - 1], np.int32)
    b = np.array([3, -3, 5, 0, 2], np.int32)
    array, other = ctx.array(a), ctx.array(b)
    with np.errstate(divide="ignore"):
        assert tuff.expr("a // b", a=array, b=other).numpy().tolist() == [-3, -3, -1, 0, 2**30 - 1]
        assert tuff.expr("a % b", a=array, b=other).numpy().tolist() == [2, -2, 4, 0, 1]
    assert tuff.expr("a & m", a=array, m=np.uint8(6)).numpy().tolist() == (a & 6).tolist()
    assert tuff.expr("a / b", a=array, b=other, dtype=np.float32).numpy()[0] == np.float32(-7) / np.float32(3)
    assert tuff.expr("where(flag, a, -a)", a=array, flag=False).numpy()[0] == 7


def test_out_and_in_place(ctx):
    x = ctx.array(np.arange(5, dtype=np.float32))
    assert tuff.expr("x * x", x=x, out=x) is x
    assert x.numpy().tolist() == [0, 1, 4, 9, 16]


def test_what_is_wrong_says_so(ctx):
    x = ctx.zeros((3, 4))
    with pytest.raises(tuff.TuffError, match='character 5: unknown name "y"'):
        tuff.expr("x + y", x=x)
    with pytest.raises(ValueError):
        tuff.expr("x + y", x=x, y=ctx.zeros((5,)))
    with pytest.raises(ValueError, match="out"):
        tuff.expr("x", x=x, out=ctx.zeros((4, 3)))
    with pytest.raises(TypeError, match="NumPy"):
        tuff.expr("x + y", x=x, y=np.zeros(4, np.float32))
    with pytest.raises(TypeError, match="number"):
        tuff.expr("x + y", x=x, y="3")
    with pytest.raises(TypeError, match="no input"):
        tuff.expr("1 + 1")
    with pytest.raises(OverflowError):
        tuff.expr("x + y", x=x, y=2**64)


def test_names_of_the_parts_of_complex_numbers(ctx):
    x = ctx.array(np.array([1, 2], np.complex64))
    assert tuff.expr("z * x + z_re", z=1j, z_re=2.0, x=x).numpy().tolist() == [2 + 1j, 2 + 2j]
    assert tuff.expr("z * x + z_im", z=1j, z_im=1j, x=x).numpy().tolist() == [2j, 3j]
    assert tuff.expr("z_re = z * x; z_re + w", z=1j, w=np.complex64(2), x=x).numpy().tolist() == [2 + 1j, 2 + 2j]


def test_the_type_of_complex_results_is_named(ctx):
    real, other = ctx.array(np.array([1, 2], np.float32)), ctx.array(np.array([1j, 2], np.complex64))
    for z in (1j, np.complex64(1j), other):
        with pytest.raises(TypeError, match="name dtype: operands are complex, and the first array is float32"):
            tuff.expr("x * z", x=real, z=z)
        assert tuff.expr("x * z", x=real, z=z, dtype=np.complex64).numpy()[0] == 1j
        assert tuff.expr("x * imag(z)", x=real, z=z, dtype=np.float32).numpy()[0] == 1
        assert tuff.expr("x * imag(z)", x=real, z=z, out=ctx.empty(2)).numpy()[0] == 1
    assert tuff.expr("z * x", z=other, x=real).numpy().tolist() == [1j, 4]


def _formula(random, depth):
    """A random formula over a, b and c that means the same in Python and in Tuff: brackets everywhere."""
    if depth == 0 or random.random() < 0.1:
        return random.choice(["a", "b", "c", str(random.randint(1, 100))])
    left, right = (_formula(random, depth - 1) for _ in range(2))
    if left.isdigit():
        left = "a"  # numbers alone have another type in NumPy
    kind = random.random()
    if kind < 0.6:
        return f"({left} {random.choice(['+', '-', '*', '//', '%', '&', '|', '<<', '>>'])} {right})"
    if kind < 0.75:
        return f"where(({left} {random.choice(['<', '<=', '==', '!='])} {right}), {left}, b)"
    return f"{random.choice(['xor', 'max', 'min', 'gcd'])}({left}, {right})"


@pytest.mark.parametrize("seed", range(12))
def test_random_formulas_are_numpys(ctx, seed):
    random = np.random.default_rng(seed)
    import random as choices

    choose = choices.Random(seed)
    kinds = [np.int32, np.uint8, np.int8]
    names = {}
    for name in "abc":
        kind = choose.choice(kinds)
        limits = np.iinfo(kind)
        names[name] = random.integers(limits.min, limits.max, (7, 13), dtype=kind, endpoint=True)
        names[name][random.random((7, 13)) < 0.3] = random.integers(0, 9)
    names["a"] = names["a"].astype(np.int32)  # so that formulas of numbers and one input are of a known type
    arrays = {name: ctx.array(value, dtype=value.dtype) for name, value in names.items()}
    functions = {"where": np.where, "xor": np.bitwise_xor, "max": np.maximum, "min": np.minimum, "gcd": np.gcd}
    for _ in range(4):
        formula = _formula(choose, 3)
        with np.errstate(all="ignore"):
            want = np.asarray(eval(formula, dict(functions), names))
        want = np.broadcast_to(want, (7, 13))
        got = tuff.expr(f"i32({formula})", **arrays, dtype=np.int32).numpy()
        assert (got == want.astype(np.int64)).all(), formula


# --- Formulas that end with a reduction


def of(ctx, shape, seed=0, dtype=np.float32):
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (-2,)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_of_formulas_over_axes(ctx, axis, keepdims):
    x, m = of(ctx, (5, 6, 7)), of(ctx, (6, 1), 1)
    text = "" if axis is None else f", axis={axis}"
    found = tuff.expr(f"d = x - m; sum(d ** 2{text})", x=ctx.array(x), m=ctx.array(m), keepdims=keepdims)
    wanted = ((x - m) ** 2).sum(axis, keepdims=keepdims)  # whole numbers: exact
    assert found.shape == wanted.shape and found.dtype == np.float32
    assert (found.numpy() == wanted).all()


def test_reductions_have_the_types_of_numpy(ctx):
    x, i = of(ctx, (4, 33)), of(ctx, (4, 33), 2, np.int16)
    a, b = ctx.array(x), ctx.array(i)
    rows = [
        ("sum(i * 3, axis=1)", (i * 3).sum(1, dtype=np.int64)),
        ("max(i - 1, axis=0)", (i - 1).max(0)),
        ("min(i, axis=(0,))", i.min(0)),
        ("prod(i % 3 + 1, axis=1)", (i % 3 + 1).prod(1, dtype=np.int64)),
        ("any(i > 7, axis=1)", (i > 7).any(1)),
        ("all(i < 8, axis=1)", (i < 8).all(1)),
        ("count_nonzero(i)", np.int64(np.count_nonzero(i))),
        ("mean(i, axis=0)", i.mean(0, dtype=np.float32)),
    ]
    for formula, wanted in rows:
        found = tuff.expr(formula, i=b)
        assert found.dtype == wanted.dtype and (found.numpy() == wanted).all(), formula
    assert tuff.expr("sum(x * 2, axis=1)", x=a.astype(np.float16)).dtype == np.float16
    assert tuff.expr("sum(x > 0)", x=a, dtype=np.int32).numpy() == (x > 0).sum()


def test_reductions_of_views_and_into_out(ctx):
    x = of(ctx, (8, 12))
    a = ctx.array(x)
    out = ctx.zeros((6, 8), np.float32)
    found = tuff.expr("sum(u * w, axis=-1)", u=a.T, w=a[0, :8])
    assert (found.numpy() == (x.T * x[0, :8]).sum(-1)).all()
    found = tuff.expr("sum(u * v, axis=0)", u=a[::2, ::-1], v=a[1, :])
    assert (found.numpy() == (x[::2, ::-1] * x[1]).sum(0)).all()
    column = out[:, 3]
    tuff.expr("sum(u, axis=1)", u=a[:6], out=column)
    assert (out.numpy()[:, 3] == x[:6].sum(1)).all() and out.numpy()[:, :3].sum() == 0


def test_reductions_that_are_refused(ctx):
    a = ctx.array(of(ctx, (3, 4)))
    with pytest.raises(tuff.TuffError, match=r"character 8: sum is an output"):
        tuff.expr("sum(a) + 1", a=a)
    with pytest.raises(IndexError, match="axis 2 is out of 2 axes"):
        tuff.expr("sum(a, axis=2)", a=a)
    with pytest.raises(ValueError, match="names one twice"):
        tuff.expr("sum(a, axis=(1, -1))", a=a)
    with pytest.raises(tuff.TuffError, match="takes axis=, not axes="):
        tuff.expr("sum(a, axes=1)", a=a)
    with pytest.raises(ValueError, match=r"out has shape \(4,\), the result \(3,\)"):
        tuff.expr("sum(a, axis=1)", a=a, out=ctx.zeros((4,), np.float32))
    with pytest.raises(TypeError, match="keepdims is for formulas that end with a reduction"):
        tuff.expr("a + 1", a=a, keepdims=True)
    with pytest.raises(tuff.TuffError, match="sum of bool gives"):
        tuff.expr("sum(a > 0)", a=a)


def test_reductions_of_more_than_one_running_value(ctx):
    rng = np.random.default_rng(4)
    x = (rng.integers(-6, 6, (5, 40)) + 1000).astype(np.float32)
    a = ctx.array(x)
    for name in ("argmax", "argmin"):
        for axis in (None, 0, 1, -1):
            text = "" if axis is None else f", axis={axis}"
            found = tuff.expr(f"{name}(a * 2{text})", a=a)
            assert found.dtype == np.int64
            assert (found.numpy() == getattr(np, name)(x, axis=axis)).all()
    # Every rounding of the elements, of squares and of their sum: far fewer than 100 of them.
    for name in ("var", "std"):
        found = tuff.expr(f"{name}(a, axis=0, correction=1.5)", a=a, keepdims=True)
        wanted = getattr(np, name)(x.astype(np.float64), axis=0, ddof=1.5, keepdims=True)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=100 * 2.0**-24)
        assert tuff.expr(f"{name}(i)", i=ctx.array([1, 2, 3], dtype=np.int32)).dtype == np.float32
    found = tuff.expr("logsumexp(a / 50, axis=(0, 1))", a=a).numpy()
    np.testing.assert_allclose(found, np.log(np.exp(x.astype(np.float64) / 50).sum()), rtol=30 * 2.0**-24)
    assert reduction_of("var(x, correction=-1.5, axis=(0, 1))").correction == -1.5
    with pytest.raises(tuff.TuffError, match="var takes axis= and correction=, not ddof="):
        tuff.expr("var(a, ddof=1)", a=a)


@pytest.mark.parametrize("formula", ["sum(w * x ** 2 + m, axis=1)", "mean(exp(x * w), axis=0)", "var(x * w, axis=1)", "logsumexp(x + w, axis=1)", "t = x - m; sum(t * t)",
                                     "max(x * w, axis=1)", "mean(m)"])  # fmt: skip
def test_gradients_of_reductions(ctx, formula):
    """The same as of the formula and of the reduction one after another."""
    arrays = [ctx.array(of(ctx, shape, seed) / 8) for seed, shape in enumerate([(4, 5), (5,), (4, 1)])]
    text, _, reduction = formula.rpartition(";")
    name, inside = reduction.strip().split("(", 1)
    value, _, axis = inside[:-1].partition(", axis=")

    def fused(x, w, m):
        return (tuff.expr(formula, x=x, w=w, m=m) ** 2).sum()

    def apart(x, w, m):
        y = tuff.expr(f"{text};{value}" if text else value, x=x, w=w, m=m)
        return (getattr(tuff, name)(y, axis=int(axis) if axis else None) ** 2).sum()

    found, wanted = (tuff.grad.grad(f, (0, 1, 2))(*arrays) for f in (fused, apart))
    for one, other in zip(found, wanted):
        assert np.allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6), formula


def test_axes_of_reductions():
    for written, axes in (
        ("1", (1,)), ("-1", (-1,)), ("- 1", (-1,)), ("-\t1", (-1,)), ("(0,)", (0,)), ("( 0 , -\n1 )", (0, -1)), ("(0,\t1,2,)", (0, 1, 2)), ("(12)", (12,)),
    ):  # fmt: skip
        assert reduction_of(f"sum(x, axis={written})").axes == axes
    # The last ones took a time that doubled with each digit.
    for wrong in ("(0 1)", "()", "(,)", "(0,,1)", "1 2", "(0", "0)", "\u0661", "(" + "1" * 200 + "x)", "(" + "1 " * 200 + "x)", "(" + "1," * 200 + "x)"):
        assert reduction_of(f"sum(x, axis={wrong})") is None


@pytest.mark.parametrize("shape", [(7, 12), (5, 3)])
def test_as_many_buffers_as_there_may_be(ctx, shape):
    """Nine inputs and a result, each accessed in another way: dense, repeated along either axis, in reverse, one element."""
    rng = np.random.default_rng(13)
    parts = [np.s_[:], np.s_[:1], np.s_[:, :1], np.s_[::-1], np.s_[:1, :1], np.s_[:, ::-1], np.s_[0], np.s_[-1, -1], np.s_[:, 1:2]]
    host, arrays = {}, {}
    for place, part in enumerate(parts):
        wide = rng.integers(-9, 9, shape).astype(np.float32)
        host[f"x{place}"], arrays[f"x{place}"] = wide[part], ctx.array(wide)[part]
    names = list(host)
    for order in (names, names[::-1], names[4:] + names[:4]):
        formula = " + ".join(f"{place + 1} * {name}" for place, name in enumerate(order))
        expected = sum((place + 1) * host[name] for place, name in enumerate(order))
        given = {name: arrays[name] for name in order}
        assert (tuff.expr(formula, **given, dtype=np.float32).numpy() == expected).all()
        for axis in (0, 1):
            assert (tuff.expr(f"sum({formula}, axis={axis})", **given, dtype=np.float32).numpy() == expected.sum(axis)).all()
