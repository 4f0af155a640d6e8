"""Formulas beside NumPy's arithmetic."""

import numpy as np
import pytest
import tuff


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
