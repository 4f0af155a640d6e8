"""Array against NumPy: what it computes. Values that are exact in float32 are compared bit for bit."""

import math

import numpy as np
import pytest
from conftest import UNIT, gamma

import tuff

F32 = np.float32


def exact(array, wanted):
    """The same shape and, NaN included, the same values."""
    result = array.numpy()
    assert result.dtype == F32 and result.shape == np.shape(wanted)
    np.testing.assert_array_equal(result, np.asarray(wanted, F32))


def integers(rng, *shape):
    return rng.integers(-8, 9, shape).astype(F32)


def test_round_trip(ctx, rng):
    for shape in [(), (0,), (1,), (5,), (3, 4), (2, 0, 3), (2, 3, 4, 5)]:
        host = rng.standard_normal(shape).astype(F32)
        array = ctx.array(host)
        exact(array, host)
        assert (array.shape, array.ndim, array.size, array.nbytes) == (host.shape, host.ndim, host.size, host.nbytes)
        exact(array.copy(), host)
    assert np.asarray(ctx.array([[1, 2]])).tolist() == [[1, 2]]
    assert np.asarray(ctx.array([1.5]), dtype=np.float64).dtype == np.float64
    assert float(ctx.array(2.5)) == 2.5 and int(ctx.array([3])) == 3 and bool(ctx.array(0)) is False


def test_any_layout_uploads(ctx):
    host = np.arange(24, dtype=np.float64).reshape(4, 6)
    exact(ctx.array(host.T), host.T)
    exact(ctx.array(host[::2, ::-3]), host[::2, ::-3])
    exact(ctx.array(range(4)), np.arange(4))


def test_arrays_of_the_other_byte_order_keep_their_type(ctx):
    for dtype in (np.float16, np.float32, np.int32, np.uint32):
        host = np.array([1, 2, 300], dtype).astype(np.dtype(dtype).newbyteorder())
        array = ctx.array(host)
        assert array.dtype == dtype and array.numpy().tolist() == [1, 2, 300]
    assert ctx.array(np.array([1, 2], ">i8")).numpy().tolist() == [1, 2]


def test_complex_numbers_are_no_real_ones(ctx):
    for values in (np.array([1 + 2j]), np.complex64(1j), np.array([1 + 0j], np.complex64)):
        with pytest.raises(TypeError, match="complex"):
            ctx.array(values, np.float32)
    array = ctx.ones(2)
    with pytest.raises(TypeError, match="complex"):
        array.assign(np.array([1j, 2]))
    assert array.numpy().tolist() == [1, 1]


@pytest.mark.parametrize(
    "dtype",
    [np.float16, np.float32, np.int64, np.uint64, np.int32, np.uint32, np.int16, np.uint16, np.int8, np.uint8, np.bool_],
)
def test_numpy_s_arrays_keep_their_type(ctx, dtype):
    values = np.array([0, 1, 100], dtype)
    assert ctx.array(values).dtype == dtype
    assert ctx.array(values[1]).dtype == dtype
    np.testing.assert_array_equal(ctx.array(values).numpy(), values)
    assert ctx.array(values, np.float32).dtype == np.float32


def test_other_numbers_become_float32_or_say_so(ctx):
    for values in ([1, 2], [0.5], 3, np.array([0.1]), [], [2**24, -(2**24), 2**40]):
        result = ctx.array(values)
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result.numpy(), np.asarray(values, np.float32))
    for values in ([2**24 + 1], [[0, -(2**24) - 1]], [2**63 - 1], 2**64 - 1):
        with pytest.raises(ValueError, match="is no float32; name the type"):
            ctx.array(values)
    for values, dtype in (([2**24 + 1], np.int32), ([-(2**63), 2**63 - 1], np.int64), ([2**64 - 1], np.uint64)):
        for stored in (ctx.array(np.array(values, dtype)), ctx.array(values, dtype)):
            assert stored.dtype == dtype and stored.numpy().tolist() == values
    for values in ([True, False], True, [[np.True_]]):
        truth = ctx.array(values)
        assert truth.dtype == np.bool_ and truth.numpy().tolist() == np.asarray(values).tolist()
    assert ctx.array([2**24 + 1], np.float32).numpy()[0] == 2**24, "an explicit type rounds"


def test_making(ctx):
    exact(ctx.zeros((2, 3)), np.zeros((2, 3)))
    exact(ctx.ones(4), np.ones(4))
    exact(ctx.full((3, 2), -2.5), np.full((3, 2), -2.5))
    exact(ctx.full((), np.inf), np.inf)
    assert ctx.empty((0, 3)).numpy().shape == (0, 3)
    integers_ = ctx.array([1, 2, 3], dtype=np.int32)
    assert integers_.dtype == np.int32 and integers_[1:].numpy().tolist() == [2, 3]


@pytest.mark.parametrize("shape", [(), (1,), (7,), (5, 3), (2, 3, 4), (0, 3)])
def test_binary_operators(ctx, rng, shape):
    a, b = integers(rng, *shape), integers(rng, *shape)
    x, y = ctx.array(a), ctx.array(b)
    exact(x + y, a + b)
    exact(x - y, a - b)
    exact(x * y, a * b)
    exact(tuff.maximum(x, y), np.maximum(a, b))
    exact(tuff.minimum(x, y), np.minimum(a, b))
    powers = np.exp2(integers(rng, *shape)).astype(F32)
    exact(x / ctx.array(powers), a / powers)
    exact(-x, -a)
    exact(+x, a)
    exact(abs(x), np.abs(a))


def test_operators_with_numbers(ctx, rng):
    a = integers(rng, 4, 5)
    x = ctx.array(a)
    exact(x + 1, a + 1)
    exact(1 - x, 1 - a)
    exact(2 * x, 2 * a)
    exact(x / 4, a / 4)
    exact(8 / ctx.full(3, 2), [4, 4, 4])
    exact(np.float32(3) * x, 3 * a)
    exact(np.int64(3) - x, 3 - a)
    exact(tuff.maximum(x, 0), np.maximum(a, 0))
    exact(tuff.minimum(1.5, x), np.minimum(1.5, a))
    exact(x * float("inf") * 0, np.full(a.shape, np.nan))


def test_rounding_is_numpy_s(ctx, rng):
    a, b = (rng.standard_normal(1000).astype(F32) for _ in range(2))
    x, y = ctx.array(a), ctx.array(b)
    exact(x + y, a + b)  # add, subtract and multiply are correctly rounded
    exact(x - y, a - b)
    exact(x * y, a * b)
    quotient = a.astype(np.float64) / b  # divisions may be 2.5 ULP off in Vulkan, one more for rounding this one
    assert np.all(np.abs((x / y).numpy() - quotient) <= 3.5 * np.spacing(np.abs(quotient).astype(F32)))


@pytest.mark.parametrize(
    "left, right",
    [
        ((4, 5), (5,)),
        ((4, 5), (1, 5)),
        ((4, 5), (4, 1)),
        ((4, 5), ()),
        ((4, 5), (1, 1)),
        ((4, 1), (1, 5)),
        ((3,), (4, 1)),
        ((2, 3, 4, 5), (3, 1, 1)),
        ((2, 3, 4, 5), (1, 3, 1, 5)),
        ((2, 3, 4, 5), (2, 1, 4, 1)),
        ((2, 1, 4, 1), (1, 3, 1, 5)),
        ((1, 3), (0, 3)),
        ((2, 1), (2, 0)),
        ((1, 1), (1,)),
        ((2000,), (3, 1)),
    ],
)
def test_broadcasting(ctx, rng, left, right):
    a, b = integers(rng, *left), integers(rng, *right)
    x, y = ctx.array(a), ctx.array(b)
    exact(x + y, a + b)
    exact(y - x, b - a)
    exact(tuff.broadcast_to(x, np.broadcast_shapes(left, right)), np.broadcast_to(a, np.broadcast_shapes(left, right)))


def test_broadcasting_keeps_nan_and_infinity_in_their_place(ctx):
    row = np.array([1, np.nan, np.inf, -np.inf], F32)
    exact(ctx.zeros((3, 4)) + ctx.array(row), np.tile(row, (3, 1)))
    exact(ctx.zeros((4, 3)) + ctx.array(row.reshape(4, 1)), np.tile(row.reshape(4, 1), (1, 3)))


def test_in_place_operators_write_to_the_same_memory(ctx, rng):
    a, row = integers(rng, 4, 5), integers(rng, 5)
    x = ctx.array(a)
    handle = x.buffer.handle
    x += ctx.array(row)
    x *= 2
    x -= x
    x += 6
    x /= 4
    exact(x, np.full((4, 5), 1.5))
    assert x.buffer.handle == handle
    with pytest.raises(ValueError, match="out has shape"):
        x[0] += x


def test_products(ctx, rng):
    a, b = integers(rng, 6, 7), integers(rng, 7, 5)
    x, y = ctx.array(a), ctx.array(b)
    exact(x @ y, a @ b)
    exact(x.T @ x, a.T @ a)
    exact(x @ x.T, a @ a.T)
    exact(y.T @ x.T, b.T @ a.T)
    exact(x.T.T @ y, a @ b)
    v, w = integers(rng, 7), integers(rng, 6)
    exact(x @ ctx.array(v), a @ v)
    exact(ctx.array(w) @ x, w @ a)
    exact(x.T @ ctx.array(w), a.T @ w)
    exact(ctx.array(v) @ ctx.array(v), v @ v)
    assert x.T.shape == (7, 6) and np.array_equal(x.T.numpy(), a.T) and np.array_equal(np.asarray(x.T), a.T)


def test_stacked_products(ctx, rng):
    a, b, m = integers(rng, 3, 2, 4, 5), integers(rng, 3, 2, 5, 6), integers(rng, 5, 6)
    x, y, z = ctx.array(a), ctx.array(b), ctx.array(m)
    exact(x @ y, a @ b)
    exact(x @ z, a @ m)
    exact(y.mT @ x.mT, np.swapaxes(b, -1, -2) @ np.swapaxes(a, -1, -2))
    exact(z.T @ x.mT, m.T @ np.swapaxes(a, -1, -2))
    exact(x.mT @ ctx.array(np.ones((4, 2), F32)), np.swapaxes(a, -1, -2) @ np.ones((4, 2), F32))
    exact(x @ ctx.array(range(5)), a @ np.arange(5, dtype=F32))


@pytest.mark.parametrize("m, k, n", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_products_of_nothing(ctx, m, k, n):
    exact(ctx.ones((m, k)) @ ctx.ones((k, n)), np.ones((m, k)) @ np.ones((k, n)))


def test_matmul_with_a_permission_keeps_its_bound(ctx, rng):
    a, b = (rng.standard_normal((70, 70)).astype(np.float32) for _ in range(2))
    x, y = ctx.array(a), ctx.array(b)
    scale = np.abs(a).astype(np.float64) @ np.abs(b)
    exactly = a.astype(np.float64) @ b
    for precision, unit in ((None, 2**-24), ("tf32", 2**-10), ("f16", 2**-11), ("bf16", 2**-8)):
        bound = (2 * unit * (1 + unit) + 70 * 2**-23) * scale  # two inputs, and sums in float32
        assert np.all(np.abs(tuff.matmul(x, y, precision=precision).numpy() - exactly) <= bound), precision


def test_matmul_scales_and_accumulates(ctx, rng):
    a, b, c = integers(rng, 4, 3), integers(rng, 3, 5), integers(rng, 4, 5)
    x, y, z = ctx.array(a), ctx.array(b), ctx.array(c)
    result = tuff.matmul(x, y, out=z, alpha=2, beta=-0.5)
    assert result is z
    exact(z, 2 * (a @ b) - c / 2)
    with pytest.raises(ValueError, match="beta needs out"):
        tuff.matmul(x, y, beta=1)


def test_matmul_takes_scales_of_its_tensors(ctx, rng):
    a, b = integers(rng, 4, 3), integers(rng, 3, 5)
    x, y, half = ctx.array(a), ctx.array(b), ctx.array([0.5])
    exact(tuff.matmul(x, y, scale_a=2, scale_b=half, scale_out=4.0), 4 * (a @ b))
    exact(tuff.matmul(x, y, alpha=2, scale_b=half), a @ b)
    for wrong, message in (
        (ctx.array([1, 2]), "scale_a has shape"),
        (ctx.array([1], np.float16), "needs one float32"),
        (np.ones(1, F32), "scale_a"),
        ("2", "scale_a"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            tuff.matmul(x, y, scale_a=wrong)
    small = ctx.array(np.ones((2, 2), np.int8))
    with pytest.raises(tuff.TuffError, match="scale_b"):
        tuff.matmul(small, small, scale_b=half)  # int32 results take none
    with tuff.Context(backend="host") as other, pytest.raises(ValueError, match="different contexts"):
        tuff.matmul(x, y, scale_out=other.array([1.0]))


def test_products_stay_within_the_bound(ctx, rng):
    a, b = rng.standard_normal((65, 130)).astype(F32), rng.standard_normal((130, 33)).astype(F32)
    wanted = a.astype(np.float64) @ b
    bound = gamma(130 + 3) * (np.abs(a).astype(np.float64) @ np.abs(b))
    assert np.all(np.abs((ctx.array(a) @ ctx.array(b)).numpy() - wanted) <= bound)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, (0, 1), (0, 2), (1, 2), (2, 0, 1), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions(ctx, rng, axis, keepdims):
    a = integers(rng, 4, 3, 8)
    x = ctx.array(a)
    for name in ("sum", "max", "min"):
        exact(getattr(x, name)(axis=axis, keepdims=keepdims), getattr(a, name)(axis=axis, keepdims=keepdims))
    exact((x * 3).mean(axis=(0, 2)), (a * 3).mean(axis=(0, 2)))
    signs = np.sign(a) + (a == 0)
    exact(ctx.array(signs).prod(axis=axis, keepdims=keepdims), signs.prod(axis=axis, keepdims=keepdims))


def test_reductions_of_nothing_and_of_nan(ctx):
    nothing = ctx.empty((0, 3))
    exact(nothing.sum(axis=0), [0, 0, 0])
    exact(nothing.prod(axis=0), [1, 1, 1])
    exact(nothing.mean(axis=0), [np.nan] * 3)
    exact(nothing.sum(axis=1), np.zeros(0))
    with pytest.raises(tuff.TuffError):
        nothing.max(axis=0)
    x = ctx.array([[1, np.nan], [3, 4]])
    exact(x.max(axis=0), [3, np.nan])
    exact(x.min(axis=1), [np.nan, 3])
    exact(ctx.array(5).sum(), 5)


@pytest.mark.parametrize("name", ["sigmoid", "tanh", "exp", "log", "sqrt"])
def test_functions(ctx, rng, name):
    a = rng.uniform(0.01, 8, 1000).astype(F32)
    if name in ("sigmoid", "tanh", "exp"):
        a *= rng.choice([-1, 1], a.shape).astype(F32)
    wide = a.astype(np.float64)
    wanted = 1 / (1 + np.exp(-wide)) if name == "sigmoid" else getattr(np, name)(wide)
    result = getattr(ctx.array(a), name)().numpy()
    assert np.all(np.abs(result - wanted) <= 4.5 * np.spacing(np.abs(wanted).astype(F32)))


def test_functions_at_the_ends(ctx):
    nan, inf = np.nan, np.inf
    exact(ctx.array([-1, 0, 2, nan, inf, -inf]).relu(), [0, 0, 2, nan, inf, 0])
    exact(ctx.array([100, -100]).tanh(), [1, -1])
    exact(ctx.array([200, -200]).exp(), [inf, 0])
    exact(ctx.array([-200, 200]).sigmoid(), [0, 1])
    exact(ctx.array([-1, 0, 1, inf]).log(), [nan, -inf, 0, inf])
    exact(ctx.array([-1, 0, 4]).sqrt(), [nan, 0, 2])


def test_float16(ctx, rng):
    half = np.float16
    a, b = rng.uniform(-4, 4, (7, 33)).astype(half), rng.uniform(-4, 4, (7, 33)).astype(half)
    x, y = ctx.array(a, half), ctx.array(b, half)
    equal = np.testing.assert_array_equal
    sums = ((x + y, a + b), (x * 2, a * half(2)), (-x, -a), (abs(x), abs(a)), (x.relu(), np.maximum(a, 0)))
    for result, wanted in sums:
        assert result.dtype == half
        equal(result.numpy(), wanted)
    # f32 within half a unit of f16, then one rounding.
    for result, wanted in ((x.exp(), np.exp(a.astype(np.float64))), (x.sum(axis=1), a.astype(np.float64).sum(axis=1))):
        assert result.dtype == half
        assert np.all(np.abs(result.numpy() - wanted) <= 0.51 * np.spacing(np.abs(wanted).astype(half)) + 1e-5)
    equal(x.max(axis=0).numpy(), a.max(axis=0))
    equal((x[1:].ravel()[3:] + 1).numpy(), a[1:].ravel()[3:] + half(1))  # from an even element on
    equal((x.ravel()[3:] + 1).numpy(), a.ravel()[3:] + half(1))  # from an odd one


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(ctx, rng, axis):
    a = rng.standard_normal((5, 7, 3)).astype(F32) * 4
    wide = np.exp(a.astype(np.float64) - a.max(axis=axis, keepdims=True))
    wanted = wide / wide.sum(axis=axis, keepdims=True)
    x = ctx.array(a)
    # The exponent's rounding (|score| u), 4 ULP of exp, the sum and the division.
    bound = wanted * (UNIT * 2 * np.ptp(a) + gamma(2 * 4 + a.shape[axis] + 4)) + np.finfo(F32).tiny
    assert np.all(np.abs(x.softmax(axis).numpy() - wanted) <= bound)
    assert tuff.softmax(x, axis, out=x) is x
    assert np.all(np.abs(x.numpy() - wanted) <= bound)


def test_activations(ctx, rng):
    a = rng.uniform(-6, 6, 999).astype(F32)
    x, wide = ctx.array(a), a.astype(np.float64)
    sigmoid = 1 / (1 + np.exp(-wide))
    erf = np.array([math.erf(value / math.sqrt(2)) for value in wide])
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    pairs = [
        (x.silu(), wide * sigmoid),
        (x.leaky_relu(0.25), np.where(wide < 0, 0.25 * wide, wide)),
        (x.elu(0.5), np.where(wide < 0, 0.5 * np.expm1(wide), wide)),
        (x.leaky_relu(0), np.maximum(wide, 0)),
        (x.hardswish(), wide * np.clip(wide + 3, 0, 6) / 6),
        (x.softplus(), np.log1p(np.exp(wide))),
        (x.sin(), np.sin(wide)),
        (x.cos(), np.cos(wide)),
        (abs(x) ** 1.5, np.abs(wide) ** 1.5),
    ]
    for result, wanted in pairs:
        assert np.all(np.abs(result.numpy() - wanted) <= 8 * np.spacing(np.abs(wanted).astype(F32)))
    # erf and tanh of the reference cancel on the left, within 1e-15 of x. An error of the tanh's argument, seven
    # roundings of it, is one of the result relative to it.
    for result, wanted, argument in (
        (x.gelu(), wide * (1 + erf) / 2, 0),
        (x.gelu(tanh=True), wide * (1 + np.tanh(inner)) / 2, 2 * np.abs(inner)),
    ):
        bound = (16 + 7 * argument) * UNIT * np.abs(wanted) + 1e-14
        assert np.all(np.abs(result.numpy() - wanted) <= bound)
    exact(2 ** ctx.array([0, 1, -1, 10]), [1, 2, 0.5, 1024])


def test_softmax_with_mask(ctx, rng):
    a = rng.standard_normal((2, 3, 4, 5)).astype(F32)
    seen = rng.integers(0, 2, (4, 5)).astype(np.uint8)
    seen[:, 0] = 1
    added = rng.standard_normal((3, 4, 5)).astype(F32)

    def wanted(scores):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True)

    x, wide = ctx.array(a), a.astype(np.float64)
    hidden = np.where(seen != 0, 0.5 * wide, -np.inf)
    close = dict(rtol=64 * UNIT, atol=1e-30)
    result = tuff.softmax(x, scale=0.5, mask=ctx.array(seen, np.uint8)).numpy()
    np.testing.assert_allclose(result, wanted(hidden), **close)
    assert np.all(result[..., seen == 0] == 0)
    assert np.array_equal(tuff.softmax(x, scale=0.5, mask=ctx.array(seen != 0)).numpy(), result)
    np.testing.assert_allclose(tuff.softmax(x, mask=ctx.array(added)).numpy(), wanted(wide + added), **close)
    logarithm = tuff.log_softmax(x, mask=ctx.array(added)).numpy()
    np.testing.assert_allclose(logarithm, np.log(wanted(wide + added)), rtol=64 * UNIT, atol=64 * UNIT)
    np.testing.assert_allclose(x.log_softmax(1).numpy(), np.log(wanted(np.moveaxis(wide, 1, -1))).transpose(0, 3, 1, 2),
                               rtol=64 * UNIT, atol=64 * UNIT)


def test_normalisations(ctx, rng):
    a, r = (rng.standard_normal((2, 6, 5, 4)).astype(F32) for _ in range(2))
    w, b = rng.standard_normal(4).astype(F32), rng.standard_normal(4).astype(F32)
    x, weight, bias = ctx.array(a), ctx.array(w), ctx.array(b)

    def normal(values, axes):
        wide = values.astype(np.float64)
        mean = wide.mean(axes, keepdims=True)
        return (wide - mean) / np.sqrt(((wide - mean) ** 2).mean(axes, keepdims=True) + 1e-5)

    def close(result, wanted):
        np.testing.assert_allclose(result.numpy(), wanted, rtol=200 * UNIT, atol=200 * UNIT)

    close(x.layer_norm(weight, bias), normal(a, -1) * w + b)
    mean_square = (a.astype(np.float64) ** 2).mean(-1, keepdims=True)
    close(x.rms_norm(weight), a / np.sqrt(mean_square + 1e-5) * w)
    total = ctx.empty(a.shape)
    close(tuff.layer_norm(x, residual=ctx.array(r), sum_out=total), normal(a + r, -1))
    exact(total, a + r)
    channel_w, channel_b = (rng.standard_normal(6).astype(F32) for _ in range(2))
    by_channel = lambda values: values.reshape(6, 1, 1)
    grouped = normal(a.reshape(2, 3, 2, 5, 4), (2, 3, 4)).reshape(a.shape)
    result = tuff.group_norm(x, 3, ctx.array(channel_w), ctx.array(channel_b))
    close(result, grouped * by_channel(channel_w) + by_channel(channel_b))
    close(tuff.instance_norm(x), normal(a, (2, 3)))
    variance = rng.uniform(0.5, 2, 6).astype(F32)
    stored = (a - by_channel(channel_w)) / np.sqrt(by_channel(variance).astype(np.float64) + 1e-5)
    close(tuff.batch_norm(x, ctx.array(channel_w), ctx.array(variance), bias=ctx.array(channel_b)),
          stored + by_channel(channel_b))
    half = ctx.array(a, np.float16)
    result = half.layer_norm(weight, bias)  # float32 weights
    assert result.dtype == np.float16
    wanted = normal(half.numpy(), -1) * w + b
    assert np.all(np.abs(result.numpy() - wanted) <= 0.51 * np.spacing(np.abs(wanted).astype(np.float16)) + 1e-5)
    for misuse in (
        lambda: x.layer_norm(ctx.ones(3)),
        lambda: tuff.layer_norm(x, sum_out=total),
        lambda: tuff.layer_norm(x, residual=ctx.ones(4)),
        lambda: tuff.group_norm(x, 0),
        lambda: tuff.group_norm(ctx.ones(4), 1),
        lambda: tuff.softmax(x, scale=0),
        lambda: tuff.softmax(x, mask=ctx.ones((5, 5))),
    ):
        with pytest.raises(ValueError):
            misuse()
    with pytest.raises(TypeError):
        x.layer_norm(ctx.ones(4, np.float16))
    with pytest.raises(tuff.TuffError):
        tuff.group_norm(x, 4)


def test_reshape_is_a_view(ctx, rng):
    a = integers(rng, 4, 6)
    x = ctx.array(a)
    exact(x.reshape(2, 12), a.reshape(2, 12))
    exact(x.reshape((3, -1)), a.reshape(3, -1))
    exact(x.ravel(), a.ravel())
    x.reshape(24)[5] = 100
    assert x.numpy()[0, 5] == 100
    exact(ctx.empty((0, 3)).reshape(-1, 3), np.empty((0, 3)))
    for shape in [(5, 5), (-1, 7), (-1, -1)]:
        with pytest.raises(ValueError):
            x.reshape(shape)


def test_slices_are_views(ctx, rng):
    a = integers(rng, 6, 4, 3)
    x = ctx.array(a)
    for key in (0, -1, slice(1, 4), slice(None), slice(-2, None), slice(4, 2), slice(99), (2, 1), (2, slice(1, 3))):
        exact(x[key], a[key])
    exact(x[3, 2, 1], a[3, 2, 1])
    exact(x[1, ...], a[1])
    exact(x[2:5][1][2], a[2:5][1][2])
    x[1:3] += 10
    a[1:3] += 10
    x[0] = 7
    a[0] = 7
    x[4] = x[1]
    a[4] = a[1]
    x[5] = np.arange(12).reshape(4, 3)
    a[5] = np.arange(12).reshape(4, 3)
    x[3] = ctx.array([1, 2, 3])
    a[3] = [1, 2, 3]
    exact(x, a)
    assert len(x) == 6 and [part.sum().item() for part in x] == a.sum(axis=(1, 2)).tolist()
    exact(x[2] @ x[3].T, a[2] @ a[3].T)  # GEMM of operands at an offset


def naive_conv2d(x, w, stride, padding, dilation):
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2])
    rows, columns = (
        (x.shape[2 + i] - dilation[i] * (w.shape[2 + i] - 1) - 1) // stride[i] + 1 for i in range(2)
    )
    out = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for r in range(w.shape[2]):
        for s in range(w.shape[3]):
            top, left = r * dilation[0], s * dilation[1]
            part = x[:, :, top : top + stride[0] * rows : stride[0], left : left + stride[1] * columns : stride[1]]
            out += np.einsum("nchw,kc->nkhw", part[:, :, :rows, :columns], w[:, :, r, s])
    return out


@pytest.mark.parametrize("stride", [1, (2, 3)])
@pytest.mark.parametrize("padding", [0, (2, 1)])
@pytest.mark.parametrize("dilation", [1, (1, 2)])
def test_conv2d(ctx, rng, stride, padding, dilation):
    x, w = integers(rng, 2, 3, 9, 11), integers(rng, 4, 3, 3, 2)
    pairs = [value if isinstance(value, tuple) else (value, value) for value in (stride, padding, dilation)]
    result = tuff.conv2d(ctx.array(x), ctx.array(w), stride=stride, padding=padding, dilation=dilation)
    exact(result, naive_conv2d(x, w, *pairs))


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_conv2d_groups_bias_and_more(ctx, rng, layout):
    x, w, b = integers(rng, 2, 6, 9, 11), integers(rng, 4, 3, 3, 2), integers(rng, 4)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 2), (0, 1)])
    halves = [
        naive_conv2d(padded[:, 3 * g : 3 * g + 3], w[2 * g : 2 * g + 2], (1, 2), (0, 0), (1, 1)) for g in range(2)
    ]
    expected = np.concatenate(halves, axis=1) + b[:, None, None]
    added = integers(rng, *expected.shape)
    expected = np.maximum(expected + added, 0)
    stored = (lambda a: a) if layout == "nchw" else (lambda a: np.ascontiguousarray(np.moveaxis(a, 1, -1)))
    result = tuff.conv2d(
        ctx.array(stored(x)),
        ctx.array(stored(w)),
        stride=(1, 2),
        padding=((1, 2), (0, 1)),
        groups=2,
        bias=ctx.array(b),
        residual=ctx.array(stored(added)),
        activation="relu",
        layout=layout,
    )
    exact(result, stored(expected))


def winograd_sizes(x, w, tile):
    """What the roundings of Winograd's filtering are relative to: |A|^T ((|G||g||G|^T) . (|B|^T|d||B|)) |A|."""
    if tile == 2:
        a = np.array([[1, 1, 1, 0], [0, 1, 1, 1]])
        b = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [0, 1, 1, 0], [0, 1, 0, 1]])
        g = np.array([[2, 0, 0], [1, 1, 1], [1, 1, 1], [0, 0, 2]]) / 2
    else:
        a = np.array([[1, 1, 1, 1, 1, 0], [0, 1, 1, 2, 2, 0], [0, 1, 1, 4, 4, 0], [0, 1, 1, 8, 8, 1]])
        b = np.array([[4, 0, 5, 0, 1, 0], [0, 4, 4, 1, 1, 0], [0, 4, 4, 1, 1, 0], [0, 2, 1, 2, 1, 0], [0, 2, 1, 2, 1, 0],
                      [0, 4, 0, 5, 0, 1]])
        g = np.array([[6, 0, 0], [4, 4, 4], [4, 4, 4], [1, 2, 4], [1, 2, 4], [0, 0, 24]]) / 24
    n, c, height, width = x.shape
    down, across = -(-height // tile), -(-width // tile)
    padded = np.zeros((n, c, down * tile + 2, across * tile + 2))
    padded[:, :, 1 : height + 1, 1 : width + 1] = abs(x)
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (tile + 2, tile + 2), axis=(2, 3))[:, :, ::tile, ::tile]
    inputs = np.einsum("ia,ncyxab,jb->ncyxij", b, tiles, b)
    filters = np.einsum("ia,kcab,jb->kcij", g, abs(w), g)
    outputs = np.einsum("ai,nkyxij,bj->nkyaxb", a, np.einsum("kcij,ncyxij->nkyxij", filters, inputs), a)
    return outputs.reshape(n, len(w), down * tile, across * tile)[:, :, :height, :width]


def test_conv2d_winograd(ctx, rng):
    x, w = rng.standard_normal((2, 32, 13, 18)).astype(np.float32), rng.standard_normal((24, 32, 3, 3)).astype(np.float32)
    y = tuff.conv2d(ctx.array(x), ctx.array(w), padding=1, winograd=True).numpy()
    expected = naive_conv2d(x.astype(np.float64), w.astype(np.float64), (1, 1), (1, 1), (1, 1))
    sizes = np.maximum(winograd_sizes(x, w, 2), winograd_sizes(x, w, 4))
    roundings = 32 + 3 + 2 * (3 + 6 + 3)  # the sums' and the transforms', each along two axes
    assert (abs(y - expected) <= roundings * 2**-24 / (1 - roundings * 2**-24) * sizes).all()
    # A window that Winograd does not support: the result is unchanged.
    x, w = integers(rng, 1, 32, 9, 9), integers(rng, 16, 32, 3, 2)
    exact(tuff.conv2d(ctx.array(x), ctx.array(w), winograd=True), naive_conv2d(x, w, (1, 1), (0, 0), (1, 1)))


def test_conv1d_and_conv3d(ctx, rng):
    x, w = integers(rng, 2, 3, 20), integers(rng, 4, 3, 5)
    flat = naive_conv2d(x[:, :, None], w[:, :, None], (1, 2), (0, 2), (1, 1))[:, :, 0]
    exact(tuff.conv1d(ctx.array(x), ctx.array(w), stride=2, padding=2), flat)
    x, w = integers(rng, 2, 3, 4, 6, 5), integers(rng, 4, 3, 2, 3, 3)
    # Depth by hand: each output plane is the sum of two convolutions.
    planes = [sum(naive_conv2d(x[:, :, o + t], w[:, :, t], (1, 1), (1, 1), (1, 1)) for t in range(2)) for o in range(3)]
    exact(tuff.conv3d(ctx.array(x), ctx.array(w), padding=(0, 1, 1)), np.stack(planes, axis=2))


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_conv_transpose2d(ctx, rng, layout):
    x, w, b = integers(rng, 2, 3, 4, 5), integers(rng, 3, 4, 3, 2), integers(rng, 4)
    out = np.zeros((2, 4, 3 * 2 + 3 + 1, 4 * 3 + 2))
    for r in range(3):
        for s in range(2):
            out[:, :, r : r + 7 : 2, s : s + 13 : 3] += np.einsum("nchw,ck->nkhw", x, w[:, :, r, s])
    expected = out[:, :, 1:-1] + b[:, None, None]
    stored = (lambda a: a) if layout == "nchw" else (lambda a: np.ascontiguousarray(np.moveaxis(a, 1, -1)))
    result = tuff.conv_transpose2d(
        ctx.array(stored(x)), ctx.array(stored(w)), stride=(2, 3), padding=(1, 0), output_padding=(1, 0),
        bias=ctx.array(b), layout=layout,
    )
    exact(result, stored(expected))


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_gradients_of_convolutions(ctx, rng, layout):
    x, w, dy = integers(rng, 2, 4, 5, 6, 4), integers(rng, 6, 2, 3, 2, 3), integers(rng, 2, 6, 3, 5, 2)
    of_x, of_w = np.zeros((2, 4, 7, 6, 6)), np.zeros(w.shape)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (0, 0), (2, 0)])
    for t, r, s, g in np.ndindex(3, 2, 3, 2):
        read = np.s_[:, 2 * g : 2 * g + 2, t : t + 5 : 2, r : r + 5, s : s + 3 : 2]
        slopes = dy[:, 3 * g : 3 * g + 3]
        of_x[read] += np.einsum("nkopq,kc->ncopq", slopes, w[3 * g : 3 * g + 3, :, t, r, s])
        of_w[3 * g : 3 * g + 3, :, t, r, s] = np.einsum("nkopq,ncopq->kc", slopes, padded[read])
    stored = (lambda a: a) if layout == "nchw" else (lambda a: np.ascontiguousarray(np.moveaxis(a, 1, -1)))
    form = dict(stride=(2, 1, 2), padding=(1, 0, (2, 0)), groups=2, layout=layout)
    images, filters, gradient = (ctx.array(stored(one)) for one in (x, w, dy))
    exact(tuff.conv_backward_data(gradient, filters, images.shape, **form), stored(of_x[:, :, 1:-1, :, 2:]))
    exact(tuff.conv_backward_filter(images, gradient, (3, 2, 3), **form), stored(of_w))
    for wrong in (
        lambda: tuff.conv_backward_data(gradient, filters, (2, 4), **form),
        lambda: tuff.conv_backward_data(ctx.ones((2, 2)), filters, images.shape, **form),
        lambda: tuff.conv_backward_filter(images, ctx.ones((2, 2, 2)), (3, 2, 3), **form),
        lambda: tuff.conv_backward_filter(images, gradient, (3, 2), **form),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(tuff.TuffError, match="out_shape"):
        tuff.conv_backward_filter(images, gradient, (3, 2, 5), **form)


@pytest.mark.parametrize("causal", [False, True, "bottom_right"])
def test_attention(ctx, rng, causal):
    q, k, v = (rng.standard_normal((2, 3, rows, 8)).astype(F32) for rows in (5, 7, 7))
    score = (q.astype(np.float64) @ np.swapaxes(k, -1, -2)) / np.sqrt(8)
    last = {False: 7, True: 0, "bottom_right": 2}[causal]
    score[..., np.arange(7)[None, :] > np.arange(5)[:, None] + last] = -np.inf
    weight = np.exp(score - score.max(-1, keepdims=True))
    weight /= weight.sum(-1, keepdims=True)
    wanted = weight @ v
    result = tuff.attention(ctx.array(q), ctx.array(k), ctx.array(v), causal=causal)
    # Scores off by s change weights by a factor exp(2 s); then a weighted sum of seq_kv terms.
    s = gamma(8 + 3) * (np.abs(q).astype(np.float64) @ np.abs(np.swapaxes(k, -1, -2))).max() / np.sqrt(8)
    bound = (2 * s + gamma(2 * 7 + 16)) * (weight @ np.abs(v)) * 2
    assert np.all(np.abs(result.numpy() - wanted) <= bound)
    if causal is False:
        flat = tuff.attention(*(ctx.array(part[0, 0]) for part in (q, k, v)))
        assert np.all(np.abs(flat.numpy() - wanted[0, 0]) <= bound[0, 0])


def test_attention_with_one_hot_values_gives_the_weights(ctx):
    keys = ctx.array(np.eye(4) * 8)
    weights = tuff.attention(keys, keys, ctx.array(np.eye(4)), scale=1.0).numpy()
    wanted = np.exp(64 * np.eye(4) - 64)
    np.testing.assert_allclose(weights, wanted / wanted.sum(1, keepdims=True), rtol=1e-5, atol=1e-30)


def attention_in_doubles(q, k, v, score_of=lambda s: s):
    k, v = (np.repeat(x.astype(np.float64), q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    score = score_of((q.astype(np.float64) @ np.swapaxes(k, -1, -2)) / np.sqrt(q.shape[-1]))
    weight = np.exp(score - score.max(-1, keepdims=True))
    total = weight.sum(-1, keepdims=True)
    return (weight / total) @ v, (np.log(total) + score.max(-1, keepdims=True))[..., 0]


def test_attention_with_options(ctx, rng):
    # 4 heads on 2, values of another size, a cache of 12 rows of which 9 are there.
    q, k, v = (rng.standard_normal(s).astype(F32) for s in ((2, 4, 5, 8), (2, 2, 12, 8), (2, 2, 12, 6)))
    bias = rng.standard_normal((4, 1, 9)).astype(F32)
    mask = rng.integers(0, 2, (2, 1, 5, 9)).astype(np.uint8)
    mask[..., 0] = 1

    def score_of(s):
        s = 3 * np.tanh(s / 3) + bias
        row, key = np.arange(5)[:, None], np.arange(9)[None, :]
        seen = (key <= row + 4) & (key > row + 4 - 6) & (mask != 0)
        return np.where(seen | (key == row + 4), s, -np.inf)

    mask[:, :, np.arange(5), np.arange(5) + 4] = 1  # every row sees a key
    wanted, lse = attention_in_doubles(q, k[:, :, :9], v[:, :, :9], score_of)
    options = {"causal": "bottom_right", "keys": 9, "softcap": 3.0, "window": 6, "return_lse": True}
    options.update(bias=ctx.array(bias), mask=ctx.array(mask, np.uint8))
    result, sums = tuff.attention(ctx.array(q), ctx.array(k), ctx.array(v), **options)
    np.testing.assert_allclose(result.numpy(), wanted, rtol=0, atol=1e-5)
    np.testing.assert_allclose(sums.numpy(), lse, rtol=0, atol=1e-5)
    options.update(mask=ctx.array(mask != 0))
    same, _ = tuff.attention(ctx.array(q), ctx.array(k), ctx.array(v), **options)
    assert np.array_equal(same.numpy(), result.numpy())


def blocks_of_q8(x):
    """q8_0 blocks as ggml makes them, and the numbers that they stand for."""
    groups = x.reshape(-1, 32)
    scales = (np.abs(groups).max(1) / 127).astype(np.float16)
    numbers = np.clip(np.rint(groups / scales.astype(F32)[:, None]), -128, 127).astype(np.int8)
    data = np.concatenate([scales.view(np.uint8).reshape(-1, 2), numbers.view(np.uint8)], axis=1)
    return data.reshape(-1), (numbers * scales.astype(F32)[:, None]).reshape(x.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_attention_with_quantised_keys_and_values(ctx, rng, dtype):
    # 4 heads on 2, a cache of 12 rows of which 9 are there.
    q = rng.standard_normal((2, 4, 1, 32)).astype(dtype)
    k, v = (rng.standard_normal((2, 2, 12, 32)).astype(F32) for _ in range(2))
    (k_data, k_numbers), (v_data, v_numbers) = blocks_of_q8(k), blocks_of_q8(v)
    keys, values = (tuff.Quantized("q8_0", k.shape, data, context=ctx) for data in (k_data, v_data))
    result = tuff.attention(ctx.array(q), keys, values, keys=9)
    wanted, _ = attention_in_doubles(q.astype(F32), k_numbers[:, :, :9], v_numbers[:, :, :9])
    tolerance = 1e-5 if dtype is np.float32 else 2.0**-10  # f16 rounds numbers below 2
    np.testing.assert_allclose(result.numpy(), wanted, rtol=0, atol=tolerance)
    assert result.dtype == dtype
    same = tuff.attention(ctx.array(q), ctx.array(k_numbers.astype(dtype)), values, keys=9).numpy()
    np.testing.assert_allclose(same, wanted, rtol=0, atol=1e-5 if dtype is np.float32 else 2.0**-8)


def test_attention_with_keys_of_8_bits(ctx, rng):
    pytest.importorskip("ml_dtypes")
    q = rng.standard_normal((2, 4, 3, 8)).astype(F32)
    k, v = (rng.standard_normal((2, 2, 5, 8)).astype(F32) for _ in range(2))
    small = [tuff.cast(ctx.array(x), name) for x, name in ((k, "float8_e4m3fn"), (v, "float8_e5m2"))]
    k_scales, v_scales = rng.uniform(0.5, 2, (2, 2, 5)).astype(F32), rng.uniform(0.5, 2, (2, 1)).astype(F32)
    result = tuff.attention(ctx.array(q), *small, k_scales=ctx.array(k_scales), v_scales=ctx.array(v_scales))
    k, v = (tuff.cast(x, np.float32).numpy() for x in small)
    wanted, _ = attention_in_doubles(q, k * k_scales[..., None], v * v_scales[..., None])
    np.testing.assert_allclose(result.numpy(), wanted, rtol=0, atol=1e-5)
    with pytest.raises(ValueError, match="k_scales"):
        tuff.attention(ctx.array(q), ctx.array(k), small[1], k_scales=ctx.array(k_scales))
    with pytest.raises(ValueError, match="v_scales"):
        tuff.attention(ctx.array(q), *small, v_scales=ctx.array(v_scales[:, :, None].repeat(3, 2)))
    with pytest.raises(ValueError, match="q4_K"):
        wrong = tuff.Quantized("q4_K", (2, 2, 5, 256), np.zeros(20 * 144, np.uint8), context=ctx)
        tuff.attention(ctx.array(rng.standard_normal((2, 4, 3, 256)).astype(F32)), wrong, wrong)


def test_attention_layouts_and_lengths(ctx, rng):
    q, k, v = (rng.standard_normal((3, 7, 2, 8)).astype(F32) for _ in range(3))
    first = [np.ascontiguousarray(np.swapaxes(x, 1, 2)) for x in (q, k, v)]
    result = tuff.attention(ctx.array(q), ctx.array(k), ctx.array(v), layout="bshd").numpy()
    wanted, _ = attention_in_doubles(*first)
    np.testing.assert_allclose(np.swapaxes(result, 1, 2), wanted, rtol=0, atol=1e-5)
    lengths = ctx.array(np.array([7, 3, 0], np.int32), np.int32)
    result = tuff.attention(*(ctx.array(x) for x in first), kv_lengths=lengths).numpy()
    for i, length in ((0, 7), (1, 3)):
        wanted, _ = attention_in_doubles(first[0][i : i + 1], *(x[i : i + 1, :, :length] for x in first[1:]))
        np.testing.assert_allclose(result[i], wanted[0], rtol=0, atol=1e-5)
    assert np.all(result[2] == 0)
    half = [ctx.array(x, np.float16) for x in first]
    wanted, _ = attention_in_doubles(*(x.numpy() for x in half))
    result = tuff.attention(*half)
    assert result.dtype == np.float16
    np.testing.assert_allclose(result.numpy(), wanted, rtol=2**-9, atol=2**-9)


@pytest.mark.parametrize(
    "left, right, result",
    [
        (np.float16, np.float16, np.float16),
        (np.float16, np.float32, np.float32),
        (np.float32, np.float16, np.float32),
        (np.float64, np.float64, np.float64),
        (np.int8, np.int8, np.int32),
    ],
)
def test_products_of_other_types(ctx, rng, left, right, result):
    a, b = rng.integers(-4, 5, (3, 6, 20)), rng.integers(-4, 5, (20, 9))
    x, y = ctx.array(a.astype(left), dtype=left), ctx.array(b.astype(right), dtype=right)
    product = x @ y
    assert product.dtype == result and np.array_equal(product.numpy(), a @ b)
    assert np.array_equal((y.T @ x.mT).numpy(), np.swapaxes(a @ b, -1, -2))
    vector = x[0] @ ctx.array(b[:, 0].astype(right), dtype=right)
    assert vector.dtype == result and np.array_equal(vector.numpy(), a[0] @ b[:, 0])


def test_products_finish_in_one_call(ctx, rng):
    a, b = integers(rng, 2, 5, 8), integers(rng, 8, 7)
    rows, columns, residual = integers(rng, 5, 1), integers(rng, 7), integers(rng, 2, 5, 7)
    x, y = ctx.array(a), ctx.array(b)
    relu = tuff.matmul(x, y, bias=ctx.array(columns), residual=ctx.array(residual), activation="relu")
    exact(relu, np.maximum(a @ b + columns + residual, 0))
    exact(tuff.matmul(x, y, bias=ctx.array(rows)), a @ b + rows)
    for own in (integers(rng, 2, 1, 7), integers(rng, 2, 5, 1)):  # a bias for each GEMM of the stack
        exact(tuff.matmul(x, y, bias=ctx.array(own)), a @ b + own)
        exact(tuff.matmul(x[0], ctx.array(np.stack([b, -b])), bias=ctx.array(own)), np.stack([a[0] @ b, -a[0] @ b]) + own)
    exact(tuff.matmul(x, y, activation="relu6"), np.clip(a @ b, 0, 6))
    silu = tuff.matmul(x, y, alpha=0.125, activation="silu").numpy()
    wanted = (a @ b).astype(np.float64) / 8
    wanted /= 1 + np.exp(-wanted)
    assert np.all(np.abs(silu - wanted) <= (np.abs(wanted) + 1) * 100 * 2.0**-24)
    halves = ctx.array(a[0].astype(np.float16), dtype=np.float16)
    out = ctx.empty((5, 5), np.float32)
    assert tuff.matmul(halves, halves.T, out=out) is out
    exact(out, a[0] @ a[0].T)


def test_other_types_broadcast(ctx):
    for dtype in (np.float16, np.float64):
        x = ctx.array(np.arange(6).reshape(2, 3).astype(dtype), dtype=dtype)
        assert np.array_equal(tuff.broadcast_to(x, (4, 2, 3)).numpy(), np.broadcast_to(x.numpy(), (4, 2, 3)))
        assert np.array_equal(
            tuff.broadcast_to(x.reshape(2, 3, 1), (2, 3, 5)).numpy(), np.repeat(x.numpy()[:, :, None], 5, 2)
        )
