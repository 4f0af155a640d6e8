"""Functions of the array API standard beside NumPy's."""

import numpy as np
import pytest
import tuff


@pytest.fixture
def grid(ctx):
    a = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)
    return a, ctx.array(a)


def same(got, want):
    assert isinstance(got, tuff.Array) and got.shape == want.shape and got.dtype == want.dtype
    assert (got.numpy() == want).all()


def test_creation(ctx):
    same(tuff.zeros((2, 3), device=ctx), np.zeros((2, 3), np.float32))
    same(tuff.ones(4, np.int16, device=ctx), np.ones(4, np.int16))
    same(tuff.full((2,), 7, np.uint8, device=ctx), np.full(2, 7, np.uint8))
    same(tuff.arange(5, device=ctx), np.arange(5))
    same(tuff.arange(5, 1, -2, device=ctx), np.arange(5, 1, -2))
    same(tuff.arange(0, 1, 0.25, device=ctx), np.arange(0, 1, 0.25, np.float32))
    same(tuff.linspace(0, 1, 5, device=ctx), np.linspace(0, 1, 5, dtype=np.float32))
    same(tuff.eye(3, device=ctx), np.eye(3, dtype=np.float32))
    same(tuff.eye(3, 5, -1, np.int32, device=ctx), np.eye(3, 5, -1, np.int32))
    x = ctx.array(np.arange(3, dtype=np.int32))
    same(tuff.zeros_like(x), np.zeros(3, np.int32))
    same(tuff.ones_like(x, np.float32), np.ones(3, np.float32))
    assert tuff.empty_like(x).shape == (3,) and tuff.empty((2, 0), device=ctx).size == 0
    assert tuff.asarray(x) is x and tuff.array(x) is not x
    same(tuff.asarray(x, np.float32), np.arange(3, dtype=np.float32))
    with pytest.raises(ValueError, match="copy"):
        tuff.asarray([1, 2], copy=False, device=ctx)
    with pytest.raises(ValueError, match="step"):
        tuff.arange(1, 5, 0)
    with pytest.raises(TypeError, match="Context"):
        tuff.zeros(3, device="gpu")
    for got, want in zip(tuff.meshgrid(x, x[:2]), np.meshgrid(np.arange(3, dtype=np.int32), np.arange(2, dtype=np.int32))):
        same(got, want)
    for got, want in zip(tuff.meshgrid(x, x[:2], x, indexing="ij"), np.meshgrid(np.arange(3), np.arange(2), np.arange(3), indexing="ij")):
        same(got, want.astype(np.int32))


def test_the_default_context_is_used_if_none_is_named():
    x = tuff.ones(3)
    assert x.context is tuff.default_context()
    assert (x + tuff.arange(3, dtype=np.float32)).numpy().tolist() == [1, 2, 3]


def test_shapes(grid):
    a, x = grid
    same(tuff.flip(x), np.flip(a))
    same(tuff.flip(x, (0, 2)), np.flip(a, (0, 2)))
    same(tuff.roll(x, 2), np.roll(a, 2))
    same(tuff.roll(x, (1, -7), (0, 2)), np.roll(a, (1, -7), (0, 2)))
    same(tuff.moveaxis(x, 0, -1), np.moveaxis(a, 0, -1))
    same(tuff.moveaxis(x, (0, 1), (2, 0)), np.moveaxis(a, (0, 1), (2, 0)))
    same(tuff.permute_dims(x, (2, 0, 1)), a.transpose(2, 0, 1))
    same(tuff.expand_dims(x, -1), np.expand_dims(a, -1))
    same(tuff.squeeze(x[:1]), a[0])
    same(tuff.stack([x, x], -1), np.stack([a, a], -1))
    for got, want in zip(tuff.unstack(x, 1), [a[:, i] for i in range(4)]):
        same(got, want)
    same(tuff.repeat(x, 3, 1), np.repeat(a, 3, 1))
    same(tuff.repeat(x, 2), np.repeat(a, 2))
    for times in (2, (2, 1, 3), (2, 3, 1, 1), (1, 1, 1), 0):
        same(tuff.tile(x, times), np.tile(a, times))
    same(tuff.tril(x, 1), np.tril(a, 1))
    same(tuff.triu(x, -1), np.triu(a, -1))
    for got, want in zip(tuff.broadcast_arrays(x, x[0, 0]), np.broadcast_arrays(a, a[0, 0])):
        same(got, want)
    with pytest.raises(ValueError, match="not 1"):
        tuff.squeeze(x, 0)
    with pytest.raises(ValueError, match="two axes"):
        tuff.tril(x[0, 0])
    with pytest.raises(ValueError, match="twice"):
        tuff.flip(x, (1, 1))


def test_statistics(grid):
    a, x = grid
    wide = a.astype(np.float64)
    for axis in (None, 1, (0, 2)):
        for name in ("sum", "prod", "mean", "max", "min", "var", "std"):
            got = getattr(tuff, name)(x, axis=axis, keepdims=True)
            want = getattr(np, name)(wide, axis=axis, keepdims=True)
            assert got.shape == want.shape and got.dtype == np.float32
            np.testing.assert_allclose(got.numpy(), want, rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(tuff.var(x, axis=0, correction=1).numpy(), wide.var(0, ddof=1), rtol=1e-5)
    offset = x + 1000
    np.testing.assert_allclose(tuff.var(offset).numpy(), offset.numpy().astype(np.float64).var(), rtol=1e-4)


def test_types(ctx):
    assert tuff.result_type(np.int8, np.uint8) == np.int16 and tuff.result_type(np.float16, np.int32) == np.float16
    assert tuff.result_type(ctx.zeros(1, np.int8), 1.5) == np.float32 and tuff.result_type(np.int8, 1) == np.int8
    assert tuff.can_cast(np.int8, np.int32) and not tuff.can_cast(np.int32, np.int8) and not tuff.can_cast(np.uint64, np.int64)
    x = ctx.ones(3)
    assert tuff.astype(x, np.float32, copy=False) is x and tuff.astype(x, np.int8).dtype == np.int8
    with pytest.raises(TypeError):
        tuff.result_type(1, 2)


def test_transposed_matrices_stay_on_the_device(ctx, monkeypatch):
    x = ctx.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    wanted = np.arange(6).reshape(2, 3).T
    with tuff.Context(backend="host") as other:
        with monkeypatch.context() as patched:
            patched.setattr(tuff.Transposed, "numpy", None)  # nothing is downloaded
            made = [make(x.T, dtype) for make in (tuff.asarray, tuff.array) for dtype in (None, np.float32, np.int16)]
            moved = tuff.asarray(x.T, device=other)
        assert [one.dtype for one in made] == 2 * [np.float32, np.float32, np.int16]
        assert all((one.numpy() == wanted).all() and one.context is ctx for one in made)
        assert moved.context is other and (moved.numpy() == wanted).all()
    tuff.asarray(x.T, copy=False)[0, 1] = 9  # a view
    assert x.numpy()[1, 0] == 9


def test_transposed_matrices_are_arrays(ctx, rng):
    """Once only @ read them."""
    host = rng.standard_normal((2, 3, 4)).astype(np.float32)
    x = ctx.array(host)
    m, turned = x[0], host[0].T
    for y, wanted in ((m.T, turned), (x.mT, host.swapaxes(-1, -2))):
        assert isinstance(y, tuff.Array) and y.shape == wanted.shape and y.ndim == wanted.ndim and y.size == wanted.size
        assert (y + y).numpy().tolist() == (wanted + wanted).tolist()
        assert (y > 0).numpy().tolist() == (wanted > 0).tolist()
        assert np.allclose(tuff.softmax(y, -1).numpy(), np.exp(wanted) / np.exp(wanted).sum(-1, keepdims=True))
        assert np.allclose(y.sum(-1).numpy(), wanted.sum(-1), atol=1e-6) and y.argmax(0).numpy().tolist() == wanted.argmax(0).tolist()
        assert (y[..., 1:, ::2].numpy() == wanted[..., 1:, ::2]).all() and (y[y > 0].numpy() == wanted[wanted > 0]).all()
        assert (y.reshape(-1).numpy() == wanted.reshape(-1)).all() and (tuff.concat([y, y], 0).numpy() == np.concatenate([wanted, wanted])).all()
        assert (tuff.sort(y, -1).numpy() == np.sort(wanted, -1)).all() and (y.astype(np.int32).numpy() == wanted.astype(np.int32)).all()
        assert [part.numpy().tolist() for part in y] == [part.tolist() for part in wanted]
        assert y.mT.mT is not None and (y.copy().numpy() == wanted).all() and (np.asarray(y) == wanted).all()
    assert m.T.T is m and (m.T @ m).shape == (4, 4)
    assert np.allclose((m.T @ m).numpy(), turned @ host[0], atol=1e-5)
    assert np.allclose((m.T[1:] @ m).numpy(), turned[1:] @ host[0], atol=1e-5)
    assert np.allclose(tuff.linalg.svdvals(m.T).numpy(), np.linalg.svd(turned, compute_uv=False), atol=1e-5)
    # Writing to the view writes to the array, as in NumPy.
    m.T[0] = 7
    y = m.T
    y += 1
    assert (m.numpy()[:, 0] == 8).all() and np.allclose(m.numpy()[:, 1:], host[0][:, 1:] + 1)
    assert (x.numpy()[1] == host[1]).all()
    # Of a view, and of what overlaps.
    s = ctx.array(np.arange(9, dtype=np.float32).reshape(3, 3))
    s += s.T
    assert s.numpy().tolist() == [[0, 4, 8], [4, 8, 12], [8, 12, 16]]
    z = ctx.array(np.arange(12, dtype=np.float32).reshape(3, 4))[:, ::2].T
    assert z.numpy().tolist() == [[0, 4, 8], [2, 6, 10]] and (z @ z.T).numpy().tolist() == [[80, 104], [104, 140]]
    with pytest.raises(ValueError, match="needs a matrix"):
        x.T


def test_gradients_of_transposed_matrices(ctx):
    x = ctx.array(np.arange(6, dtype=np.float32).reshape(2, 3))
    w = ctx.array(np.arange(6, dtype=np.float32).reshape(3, 2) - 2)
    for function in (lambda x: (x.T * w).sum(), lambda x: (w * x.T).sum(), lambda x: (x.T[1:] * w[1:]).sum() + (x.T[0] * w[0]).sum(),
                     lambda x: (x.T.reshape(-1) * w.reshape(-1)).sum(), lambda x: tuff.concat([x.T, w])[:3].reshape(6) @ w.reshape(6)):  # fmt: skip
        value, gradient = tuff.grad.value_and_grad(function)(x)
        assert float(value) == float((x.numpy().T * w.numpy()).sum()) and (gradient.numpy() == w.numpy().T).all()


def test_ranges_end_where_arrays_of_one_number_say(ctx):
    n = ctx.array(np.float32([2, 5])).max()
    assert tuff.arange(1, 2 * n, 2, device=ctx).numpy().tolist() == [1, 3, 5, 7, 9]
    assert tuff.linspace(0, n, 6, device=ctx).numpy().tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(TypeError, match="stop is .* not a number"):
        tuff.arange(0, ctx.array(np.float32([2, 5])))


def test_numpys_round_with_decimals(ctx):
    x = np.float32([1.25, -2.345, 1234.5678, 0.5, 1.5])
    a = ctx.array(x)
    for decimals in (0, 1, 2, -2):
        assert np.array_equal(np.round(a, decimals).numpy(), np.round(x, decimals))
    assert np.array_equal(np.round(a.astype(np.int32), 1).numpy(), x.astype(np.int32))


def test_grids_of_more_axes_than_are_copied_at_once(ctx):
    vectors = [np.array([axis, -1], np.float32) for axis in range(9)]
    for got, want in zip(tuff.meshgrid(*(ctx.array(one) for one in vectors)), np.meshgrid(*vectors)):
        np.testing.assert_array_equal(got.numpy(), want)
