"""Complex arrays, compared with NumPy's."""

import copy
import pickle

import numpy as np
import pytest

import tuff

RNG = np.random.default_rng(21)


def drawn(*shape, dtype=np.complex64):
    return (RNG.uniform(-3, 3, shape) + 1j * RNG.uniform(-3, 3, shape)).astype(dtype)


def near(got, wanted, ulps=64):
    """Within so many units in the last place of the largest result: docs/expressions.md has the bounds of functions, and
    NumPy's own errors are within 8."""
    assert got.dtype == wanted.dtype and got.shape == np.shape(wanted)
    unit = np.finfo(wanted.dtype).eps
    assert np.all(np.abs(got.numpy() - wanted) <= ulps * unit * np.max(np.abs(wanted), initial=1e-30))


@pytest.fixture(params=[np.complex64, np.complex128])
def dtype(request, ctx):
    if request.param is np.complex128 and not ctx.supports("expr.c128"):
        pytest.skip("no float64")
    return request.param


def test_arrays_of_numpy_and_back(ctx, dtype):
    host = drawn(3, 4, dtype=dtype)
    x = ctx.array(host, dtype)
    assert x.dtype == dtype and np.array_equal(x.numpy(), host) and x.nbytes == host.nbytes
    assert np.array_equal(np.asarray(x), host) and np.array_equal(x.T.numpy(), host.T)
    assert complex(x[1, 2]) == x[1, 2].item() == host[1, 2]
    assert np.array_equal(ctx.full((2, 2), 1 - 2j, dtype).numpy(), np.full((2, 2), 1 - 2j, dtype))
    assert np.array_equal(ctx.zeros(3, dtype).numpy(), np.zeros(3)) and np.array_equal(ctx.ones(3, dtype).numpy(), np.ones(3))
    assert str(dtype.__name__) in repr(x)
    for copied in (copy.copy(x), copy.deepcopy(x), x.copy()):
        assert np.array_equal(copied.numpy(), host)
    # Without a dtype, as float64 becomes float32.
    assert ctx.array(host).dtype == np.complex64 and ctx.array([1, 2j]).dtype == np.complex64
    assert ctx.full(2, 1j).dtype == np.complex64


def test_pickle():
    host = drawn(5)
    assert np.array_equal(pickle.loads(pickle.dumps(tuff.array(host))).numpy(), host)


def test_parts(ctx, dtype):
    host = drawn(4, 5, dtype=dtype)
    x = ctx.array(host, dtype)
    part = np.float32 if dtype is np.complex64 else np.float64
    for array, wanted in ((x, host), (x[1:, ::-2], host[1:, ::-2])):
        assert array.real.dtype == array.imag.dtype == part
        assert np.array_equal(array.real.numpy(), wanted.real) and np.array_equal(array.imag.numpy(), wanted.imag)
        assert np.array_equal(array.conj().numpy(), wanted.conj()) and np.array_equal(tuff.conj(array).numpy(), wanted.conj())
    # Views, through which parts are written.
    x.real, x.imag[2] = 7, ctx.array(np.arange(5), part)
    host.real, host.imag[2] = 7, np.arange(5)
    x[:, 1:3].imag = -1
    host[:, 1:3].imag = -1
    assert np.array_equal(x.numpy(), host)
    real = ctx.array(np.arange(3), part)
    assert real.real is real and real.conj() is real and real.imag.numpy().tolist() == [0, 0, 0]
    with pytest.raises(TypeError, match="imaginary"):
        real.imag = 1


@pytest.mark.parametrize("shape", [(2, 3), (1,), (1, 1), ()])
def test_imaginary_parts_of_a_real_array_are_for_reading(ctx, shape):
    x = ctx.ones(shape)
    zero, first = x.imag, (0,) * len(shape)
    for array in (zero, zero.copy(), zero[None][0], x * zero, zero.reshape(shape)):
        assert array.shape == shape and array.dtype == np.float32 and not array.numpy().any()

    def put(array, key):
        array[key] = 5

    uses = [lambda: put(zero, ...), lambda: put(zero, first), lambda: put(zero[None], 0), lambda: zero.assign(x), lambda: tuff.add(x, 1, out=zero),
            lambda: tuff.exp(x, out=zero), lambda: tuff.flip(zero).assign(1), lambda: tuff.broadcast_to(zero, (2, *shape)).assign(1),
            lambda: put(zero, ctx.ones(shape, np.bool_)), lambda: zero.reshape((1, *shape)).assign(1)]  # fmt: skip
    if shape:
        uses += [lambda: put(zero, [0]), lambda: put(zero[0], ...), lambda: tuff.scatter(zero, [0], 1.0)]
    for use in uses:
        with pytest.raises(ValueError, match="reading only"):
            use()
    assert not zero.numpy().any()
    assert ctx.ones((0, *shape)).imag.shape == (0, *shape)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "power"])
def test_operators(ctx, dtype, name):
    a, b = drawn(3, 4, dtype=dtype), drawn(4, dtype=dtype)
    x, y = ctx.array(a, dtype), ctx.array(b, dtype)
    bound = 2048 if name == "power" else 64  # |w log z| is up to 9
    function, wanted = getattr(tuff, name), getattr(np, name)
    near(function(x, y), wanted(a, b), bound)
    near(function(x, 1.5), wanted(a, dtype(1.5)), bound)
    near(function(2 - 1j, y), wanted(dtype(2 - 1j), b), bound)
    near(function(x[:, ::-1], y), wanted(a[:, ::-1], b), bound)
    x[...] = function(x, y)
    near(x, wanted(a, b).astype(dtype), bound)


def test_promotion(ctx):
    z = ctx.array([1j, 2])
    for other, wanted in ((np.float32, np.complex64), (np.int32, np.complex64), (np.bool_, np.complex64), (np.float16, np.complex64)):
        assert (z + ctx.ones(2, other)).dtype == (ctx.ones(2, other) * z).dtype == wanted
        assert (ctx.ones(2, other) * 1j).dtype == wanted
        assert tuff.result_type(z, other) == tuff.result_type(other, 1j) == wanted
    assert tuff.result_type(np.complex64, np.float64) == tuff.result_type(np.float64, 1j) == np.complex128
    assert tuff.can_cast(np.float32, np.complex64) and not tuff.can_cast(np.complex64, np.float32)
    if ctx.supports("expr.c128"):
        assert (z + ctx.ones(2, np.float64)).dtype == np.complex128
        assert (ctx.array([1 / 3], np.float64) * (0.1 + 0.7j)).item() == (1 / 3) * (0.1 + 0.7j)  # digits are kept
    near(z + ctx.array([1.5, 2]), np.array([1.5 + 1j, 4], np.complex64))


FUNCTIONS = ("sqrt exp log log2 log10 log1p expm1 sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh square reciprocal "
             "round neg abs").split()  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(ctx, dtype, name):
    host = drawn(61, dtype=dtype)
    known = {"neg": "negative", **{f"a{one}": f"arc{one}" for one in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}}
    near(getattr(tuff, name)(ctx.array(host, dtype)), getattr(np, known.get(name, name))(host), 128)


def test_sign(ctx, dtype):
    host = np.append(drawn(9, dtype=dtype), dtype(0))
    size = np.where(host == 0, 1, np.abs(host))
    near(tuff.sign(ctx.array(host, dtype)), host / size)


def test_truths(ctx):
    a = np.array([0, 1j, np.nan, complex(1, np.inf), -0.0], np.complex64)
    x = ctx.array(a)
    for name in ("isnan", "isinf", "isfinite", "logical_not"):
        assert np.array_equal(getattr(tuff, name)(x).numpy(), getattr(np, name)(a))
    assert (x == x).numpy().tolist() == [True, True, False, True, True]
    assert (x != 1j).numpy().tolist() == [True, False, True, True, True]
    assert np.array_equal(tuff.where(x == 0, 1j, x)[:2].numpy(), np.array([1j, 1j], np.complex64))
    assert x.any().item() and not x.all().item() and tuff.count_nonzero(x).item() == 3
    assert np.allclose(ctx.array(a[:2]).numpy(), a[:2]) and bool(tuff.isclose(x[:2], x[:2] + 1e-9j).all())


@pytest.mark.parametrize("axis", [None, 0, 2, (0, 2), (-1, 1, 0)])
def test_reductions(ctx, dtype, axis):
    host = drawn(5, 3, 7, dtype=dtype)
    x = ctx.array(host, dtype)
    for keepdims in (False, True):
        for name in ("sum", "prod", "mean"):
            # Of 105 factors up to 4.3: 105 products, each within 3 u, in either.
            near(getattr(x, name)(axis, keepdims), np.asarray(getattr(host, name)(axis, keepdims=keepdims)), 512)
    assert x[:0].sum().item() == 0 and x[:0].prod().item() == 1


def test_products_of_one_element_are_new_arrays(ctx):
    z = ctx.array([[1j, 2]])
    for product in (z.prod(0), z.prod((), True), z[:, ::-1].prod(0)):
        product[...] = 99
    assert z.numpy().tolist() == [[1j, 2]]


def test_contractions(ctx, dtype):
    if dtype is np.complex128 and not ctx.supports("gemm.f64"):
        pytest.skip("no float64")
    a, b = drawn(3, 4, dtype=dtype), drawn(5, 4, dtype=dtype)
    x, y = ctx.array(a, dtype), ctx.array(b, dtype)
    near(tuff.inner(x, y), np.inner(a, b))
    near(tuff.tensordot(x, y, ((1,), (1,))), a @ b.T)
    near(tuff.einsum("ij,kj->ki", x, y), b @ a.T)
    near(tuff.einsum("ij,ij->j", x, x), (a * a).sum(0))
    near(tuff.vecdot(x, y[0]), (a.conj() * b[0]).sum(-1))
    for got in (tuff.vdot(x, y[:3]), np.vdot(x, y[:3])):
        near(got, np.asarray(np.vdot(a, b[:3])))


def test_contractions_are_products_of_matrices(ctx):
    x = ctx.array(drawn(128, 128))
    ctx.synchronize()
    ctx.trim()
    ctx.reset_peak()
    tuff.inner(x, x)
    assert ctx.memory()["bytes_peak"] < 16 * x.nbytes  # the products of all pairs of elements are 128 * x.nbytes


def test_cumulative(ctx, dtype):
    host = drawn(4, 6, dtype=dtype)
    x = ctx.array(host, dtype)
    near(tuff.cumulative_sum(x, axis=0), host.cumsum(0))
    near(tuff.cumulative_prod(x, axis=1), host.cumprod(1))
    with pytest.raises(TypeError, match="scan"):
        tuff.cummax(x, 0)


@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 2)), ((2, 3, 4), (4, 2)), ((4,), (4,))])
def test_matmul(ctx, dtype, shapes):
    if dtype is np.complex128 and not ctx.supports("gemm.f64"):
        pytest.skip("no float64")
    a, b = (drawn(*shape, dtype=dtype) for shape in shapes)
    x, y = ctx.array(a, dtype), ctx.array(b, dtype)
    near(x @ y, np.asarray(a @ b))
    if x.ndim == y.ndim == 2:
        near(y.T @ x.T, b.T @ a.T)
    with pytest.raises(TypeError, match="options"):
        tuff.matmul(x, y, alpha=2.0)


def test_moving(ctx, dtype):
    host = drawn(4, 6, dtype=dtype)
    x = ctx.array(host, dtype)
    for got, wanted in (
        (x.transpose(), host.T),
        (tuff.concat([x, x[:2]]), np.concatenate([host, host[:2]])),
        (x[[3, 0]], host[[3, 0]]),
        (x[::-1, 1::2].copy(), host[::-1, 1::2]),
        (tuff.roll(x, 2, 1), np.roll(host, 2, 1)),
        (tuff.pad(x, 1), np.pad(host, 1)),
        (tuff.pad(x, 1, constant_values=2 - 1j), np.pad(host, 1, constant_values=2 - 1j)),
        (tuff.tril(x), np.tril(host)),
    ):
        assert np.array_equal(got.numpy(), wanted)
    x[host.real > 0] = 1j
    host[host.real > 0] = 1j
    x[1, ::2], host[1, ::2] = 5, 5
    assert np.array_equal(x.numpy(), host)
    assert np.array_equal(x.astype(np.bool_).numpy(), host.astype(bool))
    assert ctx.array([1, 2], np.int32).astype(dtype).numpy().tolist() == [1, 2]


def test_numpy_functions(ctx):
    host = drawn(3, 3)
    x = ctx.array(host)
    near(np.exp(x), np.exp(host))
    assert np.array_equal(np.real(x).numpy(), host.real) and np.array_equal(np.imag(x).numpy(), host.imag)
    assert np.array_equal(np.conjugate(x).numpy(), host.conj())
    near(np.sum(x), np.asarray(host.sum()))


def test_what_is_refused(ctx):
    x, real = ctx.array([1 + 1j, 2]), ctx.ones(2)
    for use in (lambda: x.max(), lambda: x.var(), lambda: x & x, lambda: tuff.atan2(x, real), lambda: ctx.full(2, 1j, np.float32),
                lambda: real.assign(1j), lambda: x.astype(np.float32), lambda: tuff.linalg.lu_factor(x.reshape(1, 2)),
                lambda: tuff.median(x), lambda: tuff.deg2rad(x), lambda: tuff.nan_to_num(x), lambda: tuff.nansum(x), lambda: tuff.vander(x), lambda: float(x[0]), lambda: ctx.array([1j], np.float32), lambda: x.argmax()):  # fmt: skip
        with pytest.raises(TypeError):
            use()
    for use in (lambda: x < x, lambda: tuff.sort(x), lambda: tuff.floor(x), lambda: tuff.maximum(x, x), lambda: x // 2):
        with pytest.raises(tuff.TuffError, match="c64"):
            use()
    with pytest.raises(TypeError, match="float32"):
        tuff.add(x, x, out=real)
    for use in (tuff.linalg.lu_factor, lambda y: tuff.linalg.solve_triangular(y, y)):
        with pytest.raises(TypeError, match="is complex64, and linear algebra takes float32 and float64"):
            use(x.reshape(1, 2) * x.reshape(2, 1))


@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (3, 8, 8), (2, 1, 33, 33), (0, 4, 4), (0, 0)])
def test_cholesky_factors_of_hermitian_matrices(ctx, rng, shape):
    n = shape[-1]
    z = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(np.complex64)
    x = z @ z.conj().swapaxes(-1, -2) + (n * np.eye(n)).astype(np.complex64)
    for upper in (False, True):
        # Only one triangle is read, and of the diagonal the real part.
        given = (np.triu if upper else np.tril)(x) + (np.tril if upper else np.triu)(np.full(shape, 9 + 9j), 1 - 2 * upper)
        given = given + 7j * np.eye(n)
        factor = tuff.linalg.cholesky(ctx.array(given.astype(np.complex64)), upper=upper)
        assert factor.dtype == np.complex64
        found = factor.numpy()
        assert (np.tril(found, -1) if upper else np.triu(found, 1)).any() == False  # noqa: E712
        turned = found.conj().swapaxes(-1, -2)
        product = turned @ found if upper else found @ turned
        # Of a real matrix of 2 n rows: (2 n + 1) u on each element of |L| |L|^T, of which the diagonal is x's.
        bound = (2 * n + 4) * 2.0**-24 * 2 * (np.abs(x).max() if x.size else 0)
        assert np.abs(product - x).max(initial=0) <= bound
    with pytest.raises(np.linalg.LinAlgError, match="its leading 2 x 2 part is not"):
        tuff.linalg.cholesky(ctx.array(np.array([[1, 2j], [-2j, 1]], np.complex64)))
    with pytest.raises(np.linalg.LinAlgError, match="needs square matrices"):
        tuff.linalg.cholesky(ctx.array(np.ones((2, 3), np.complex64)))
