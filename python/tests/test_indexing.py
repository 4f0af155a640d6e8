"""Views with strides, masks, arrays of indices and what reads and writes through them, against NumPy."""

import numpy as np
import pytest

import tuff

F32 = np.float32


def same(got, want):
    assert got.shape == np.shape(want), (got.shape, np.shape(want))
    np.testing.assert_array_equal(got.numpy(), want)


@pytest.fixture
def grid(ctx):
    a = np.arange(4 * 6 * 5, dtype=F32).reshape(4, 6, 5)
    return a, ctx.array(a)


KEYS = [
    np.s_[::2],
    np.s_[::-1],
    np.s_[1:, ::3],
    np.s_[..., ::-2],
    np.s_[:, 5:0:-2, 1],
    np.s_[3, ::-1],
    np.s_[-1, :, 2:2],
    np.s_[::-1, ::-1, ::-1],
    np.s_[None],
    np.s_[:, None, 1:4],
    np.s_[..., None],
    np.s_[2, None, ..., None, ::2],
    np.s_[1:3],
    np.s_[2],
    np.s_[1, 2, 3],
    np.s_[...],
    (),
    np.s_[10:, 0],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_slices_are_views(grid, key):
    a, x = grid
    part, view = a[key], x[key]
    same(view, part)
    same(view + 1, part + 1)
    same(view.copy(), part)
    same(view.neg().abs() - (-view), part + part)
    same(view.sum(), part.sum()) if part.ndim and part.size else None
    # Writes through the view, and through the array, are seen by both.
    view.assign(7) if part.shape == () else view.__setitem__(..., 7)
    a[key] = 7
    same(x, a)
    x += 1
    same(view, a[key] + 1)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_assignment_and_arithmetic_in_place(grid, key):
    a, x = grid
    values = np.arange(a[key].size, dtype=F32).reshape(a[key].shape) * 3
    x[key] = x.context.array(values)
    a[key] = values
    same(x, a)
    view = x[key]
    view += 2
    view *= view
    a[key] = (a[key] + 2) * (a[key] + 2)
    same(x, a)
    x[key] = values[..., :1] if values.ndim and values.size else values
    a[key] = values[..., :1] if values.ndim and values.size else values
    same(x, a)


def test_views_of_views(grid):
    a, x = grid
    same(x[::-1][1:, ::2][..., -1], a[::-1][1:, ::2][..., -1])
    same(x[:, ::2][::2, 1][::-1], a[:, ::2][::2, 1][::-1])
    same(x[::2].reshape(2, 1, 6, 1, 5)[:, 0, ::3], a[::2].reshape(2, 1, 6, 1, 5)[:, 0, ::3])
    same(x[::2].reshape(-1), a[::2].reshape(-1))
    same(x[::2].ravel(), a[::2].ravel())
    assert type(x[1:3]) is tuff.Array and x[1:3].buffer.nbytes == 2 * 30 * 4
    for row, want in zip(x[:, ::2], a[:, ::2]):
        same(row, want)


def test_overlapping_copies_read_before_they_write(grid):
    a, x = grid
    x[1:], a[1:] = x[:-1], a[:-1].copy()
    same(x, a)
    x[:, ::-1], a[:, ::-1] = x, a.copy()
    same(x, a)
    part, want = x[..., 1:], a[..., 1:]
    part += x[..., :-1]
    want += a[..., :-1].copy()
    same(x, a)


def test_every_dtype(ctx):
    for dtype in (np.float16, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_):
        a = (np.arange(70).reshape(7, 10) % 5).astype(dtype)
        x = ctx.array(a, dtype)
        same(x[::-2, 1::3], a[::-2, 1::3])
        same(x[[6, -7, 3], [0, -1, 5]], a[[6, -7, 3], [0, -1, 5]])
        x[::3, [1, 1, -1]] = 1
        a[::3, [1, 1, -1]] = 1
        same(x, a)


def test_operations_that_need_dense_memory_get_it(ctx, rng):
    a = rng.integers(-3, 4, (8, 6)).astype(F32)
    x = ctx.array(a)
    same(x[::2] @ x[::2].T, a[::2] @ a[::2].T)
    same(x[:, ::-1] @ x.T, a[:, ::-1] @ a.T)
    same(x[::2].sum(1), a[::2].sum(1))
    same(x[:, ::2].cumsum(0), a[:, ::2].cumsum(0))
    same(tuff.concat([x[::2], x[1::2]]), np.concatenate([a[::2], a[1::2]]))
    same(x[::2].astype(np.int32), a[::2].astype(np.int32))
    same(x[::2].transpose(), a[::2].T)
    same(tuff.take(x[:, ::2], [0, 2], 1), a[:, ::2][:, [0, 2]])
    same(tuff.where(x[::2] > 0, x[::2], 0.0), np.where(a[::2] > 0, a[::2], 0))
    same(np.maximum(x[::2], x[1::2]), np.maximum(a[::2], a[1::2]))
    assert float(x[::2, 0][1]) == a[2, 0] and np.asarray(x[:, 1]).tolist() == a[:, 1].tolist()
    y = x[::2]
    first = y + 0
    x += 5
    same(y @ x.T, (a[::2] + 5) @ (a + 5).T)
    same(first, a[::2])


def test_what_cannot_write_a_view_says_so(ctx):
    x = ctx.ones((4, 4))
    for call in (
        lambda: tuff.matmul(x, x, out=x.T.copy()[:, ::-1]),
        lambda: tuff.softmax(x, out=x[:, ::-1]),
        lambda: x[:, ::-1].copy_from_async(np.ones((4, 4), F32)),
        lambda: tuff.Generator(ctx, 1).random(out=x[:, ::2]),
        lambda: tuff.broadcast_to(x, (2, 4, 4)).assign(1),
        lambda: tuff.broadcast_to(x, (2, 4, 4)).__setitem__(0, 1) or tuff.broadcast_to(x[0], (2, 4)).__setitem__(np.s_[:, 0], 1),
    ):
        with pytest.raises(ValueError):
            call()
    out = ctx.zeros((4, 8))
    tuff.exp(x * 0, out=out[:, ::2])
    tuff.add(x, 1, out=out[:, 1::2])
    same(out, np.tile(np.array([1, 2], F32), (4, 4)))


INDICES = [
    np.s_[[0, 3, -1]],
    np.s_[[[0, 1], [2, -4]]],
    np.s_[[0, 1], [2, -1]],
    np.s_[[0, 1], :, [2, -1]],
    np.s_[:, [5, 0, 0, -6]],
    np.s_[:, :, [1, 1]],
    np.s_[:, [[0], [1]], [2, 3, -1]],
    np.s_[1, :, [2, -1, 0]],
    np.s_[:, 1, [2, -1, 0]],
    np.s_[[0, 2], 1],
    np.s_[[0, 2], ..., 1],
    np.s_[None, [0, 2], ::2],
    np.s_[::-2, [4, 4, 1], 1:],
    np.s_[[0, 1], [2, -1], [3, 4]],
    np.s_[[]],
    np.s_[:, np.zeros((0, 3), np.int64)],
    np.s_[np.array(2)],
    np.s_[:, np.array([1, 5], np.uint8), None],
]


@pytest.mark.parametrize("key", INDICES, ids=str)
@pytest.mark.parametrize("where", ["host", "device"])
def test_arrays_of_indices(grid, key, where):
    a, x = grid
    keys = key if isinstance(key, tuple) else (key,)

    def there(index):
        if not isinstance(index, (list, np.ndarray)) or where == "host":
            return index
        data = np.asarray(index)
        return x.context.array(data if data.size else data.astype(np.int32), data.dtype if data.size else np.int32)

    device = tuple(there(index) for index in keys)
    same(x[device], a[key])
    values = np.arange(a[key].size, dtype=F32).reshape(a[key].shape) + 1000
    x[device] = x.context.array(values)
    # NumPy promises that the last of several values for one element remains.
    a[key] = values
    same(x, a)
    x[device] = -3
    a[key] = -3
    same(x, a)
    same(x[::-1][device], a[::-1][key])
    view = x[::-1]
    view[device] = 5
    a[::-1][key] = 5
    same(x, a)


def test_masks(grid, rng):
    a, x = grid
    ctx = x.context
    for shape in ((4,), (4, 6), (4, 6, 5)):
        for mask in (rng.random(shape) < 0.4, np.zeros(shape, bool), np.ones(shape, bool)):
            m = ctx.array(mask)
            same(x[m], a[mask])
            same(x[mask], a[mask])
            same(x[::-1][m[::-1]], a[::-1][mask[::-1]])
            values = np.arange(a[mask].size, dtype=F32).reshape(a[mask].shape)
            b, y = a.copy(), x.copy()
            y[m] = ctx.array(values)
            b[mask] = values
            same(y, b)
            y[m] = -1
            b[mask] = -1
            same(y, b)
            y[mask] = 8
            b[mask] = 8
            same(y, b)
    middle = rng.random(6) < 0.5
    same(x[:, ctx.array(middle)], a[:, middle])
    same(x[:, middle, ::2], a[:, middle, ::2])
    same(x[1, ctx.array(middle)], a[1, middle])
    pairs = rng.random((6, 5)) < 0.5
    same(x[:, ctx.array(pairs)], a[:, pairs])
    same(x[x > 50], a[a > 50])
    x[x > 50] = 0
    a[a > 50] = 0
    same(x, a)
    big = ctx.array(rng.random(300_000, F32))
    same(big[big < 0.5], big.numpy()[big.numpy() < 0.5])


def test_indices_out_of_range(grid):
    a, x = grid
    for key in (np.s_[4], np.s_[-5], np.s_[:, [6]], np.s_[[0], [-7]], np.s_[0, 0, 0, 0], np.s_[..., 0, ...]):
        with pytest.raises(IndexError):
            x[key]
        with pytest.raises(IndexError):
            x[key] = 0
    outside = x.context.array(np.array([0, 4, -5, 3], np.int64))
    same(x[outside], np.stack([a[0], 0 * a[0], 0 * a[0], a[3]]))
    x[outside] = 1
    a[[0, 3]] = 1
    same(x, a)


def test_wrong_keys(grid):
    _, x = grid
    for key in (True, np.True_, "a", 1.0, [0.5], np.ones((3,), bool), x, np.s_[:, x > 0], [True, False], {}):
        with pytest.raises((IndexError, TypeError)):
            x[key]
        with pytest.raises((IndexError, TypeError)):
            x[key] = 1
    with pytest.raises(ValueError):
        x[[0, 1]] = np.ones((3, 6, 5), F32)
    with pytest.raises(ValueError):
        x[::2] = np.ones((3, 6, 5), F32)
    with pytest.raises(ValueError):
        x[x > 5] = np.ones(3, F32)
    with pytest.raises(TypeError):
        x[::2] = x[::2].astype(np.int32)
    with pytest.raises(TypeError):
        x[[0]] = x[:1].astype(np.int32)
    with tuff.Context() as other, pytest.raises(ValueError, match="context"):
        x[other.array(np.array([0], np.int32))]


def test_along_axes(ctx, rng):
    a = rng.integers(0, 99, (4, 5, 6)).astype(F32)
    x = ctx.array(a)
    for axis in (0, 1, -1):
        shape = list(a.shape)
        shape[axis] = 7
        index = rng.integers(-a.shape[axis], a.shape[axis], shape)
        for given in (index, ctx.array(index), ctx.array(index.astype(np.int16))):
            same(tuff.take_along_axis(x, given, axis), np.take_along_axis(a, index, axis))
        same(np.take_along_axis(x, ctx.array(index), axis), np.take_along_axis(a, index, axis))
        order = np.argsort(a, axis)
        b, y = a.copy(), x.copy()
        tuff.put_along_axis(y, ctx.array(order), ctx.array(a * 2), axis)
        np.put_along_axis(b, order, a * 2, axis)
        same(y, b)
        one = np.expand_dims(a.argmax(axis), axis)
        np.put_along_axis(y, ctx.array(one), -1, axis)
        np.put_along_axis(b, one, -1, axis)
        same(y, b)
        tuff.put_along_axis(y[:, ::-1], one, 7, axis)
        np.put_along_axis(b[:, ::-1], one, 7, axis)
        same(y, b)
    same(tuff.take_along_axis(x[:1], ctx.array(np.zeros((4, 2, 6), np.int32)), 1), np.take_along_axis(a[:1], np.zeros((4, 2, 6), int), 1))
    with pytest.raises(ValueError):
        tuff.take_along_axis(x, [0, 1], 0)
    with pytest.raises(IndexError):
        tuff.take_along_axis(x, np.full((4, 5, 6), 9), 0)


def test_scatter_accumulates(ctx, rng):
    index, values = rng.integers(-50, 50, 3000), rng.integers(0, 9, 3000)
    for dtype in (F32, np.float16, np.int8, np.int32, np.int64, np.uint16):
        for name, numpy_way in (("add", np.add), ("maximum", np.maximum), ("minimum", np.minimum)):
            a = np.arange(50).astype(dtype)
            x = ctx.array(a, dtype)
            assert tuff.scatter(x, ctx.array(index), ctx.array(values.astype(dtype), dtype), name) is x
            numpy_way.at(a, index, values.astype(dtype))
            same(x, a)
    a = np.zeros((3, 4), F32)
    x = ctx.array(a)
    tuff.scatter(x, (slice(None), [0, 0, 3]), 2.0)
    np.add.at(a, (slice(None), [0, 0, 3]), 2.0)
    same(x, a)
    tuff.scatter(x[:, ::-1], ([0, 2, 0], [1, 1, 1]), 5.0, "multiply")
    np.multiply.at(a[:, ::-1], ([0, 2, 0], [1, 1, 1]), 5.0)
    same(x, a)
    tuff.scatter(x, np.s_[::2], 1.0)
    a[::2] += 1
    same(x, a)
    with pytest.raises(ValueError, match="op"):
        tuff.scatter(x, [0], 1.0, "divide")


def test_pad(ctx, rng):
    a = rng.integers(0, 99, (3, 4)).astype(F32)
    x = ctx.array(a)
    for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
        for width in (2, (1, 3), ((0, 2), (3, 0)), ((5, 0), (0, 9))):
            if mode == "wrap" and width == ((5, 0), (0, 9)):
                continue  # NumPy before 1.25 is wrong beyond a whole axis
            same(tuff.pad(x, width, mode), np.pad(a, width, mode))
            if mode != "wrap":
                same(np.pad(x[:, ::2], width, mode), np.pad(a[:, ::2], width, mode))
    same(tuff.pad(x, 1, constant_values=-2.5), np.pad(a, 1, constant_values=-2.5))
    whole = ctx.array(np.array([[2**63 + 1]], np.uint64))
    same(tuff.pad(whole, 1, constant_values=2**63 + 5), np.pad(np.array([[2**63 + 1]], np.uint64), 1, constant_values=2**63 + 5))
    same(tuff.pad(x, ((-1, 1), (0, -2))), np.pad(a, ((0, 1), (0, 0)))[1:, :-2])
    for wrong in (
        lambda: tuff.pad(x, 1, "mean"),
        lambda: tuff.pad(x, ((1, 2, 3),)),
        lambda: tuff.pad(x, ((-2, -2), (0, 0))),
        lambda: tuff.pad(x[:0], 1, "edge"),
        lambda: tuff.pad(x.astype(np.int8), 1, constant_values=300),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError):
        tuff.pad(x, 1.5)


def test_functions_that_give_views(grid):
    a, x = grid
    flipped = tuff.flip(x, 1)
    same(flipped, np.flip(a, 1))
    flipped[0] = 3
    np.flip(a, 1)[0] = 3
    same(x, a)
    for offset in (0, 2, -1, 9, -9):
        same(tuff.diagonal(x, offset, 1, 2), np.diagonal(a, offset, 1, 2))
        same(x.diagonal(offset), a.diagonal(offset))
        same(np.diagonal(x, offset, 2, 0), np.diagonal(a, offset, 2, 0))
    x[0].diagonal()[...] = 0
    np.fill_diagonal(a[0], 0)
    same(x, a)
    wide = tuff.broadcast_to(x[:, 1:2], (2, 4, 6, 5))
    same(wide, np.broadcast_to(a[:, 1:2], (2, 4, 6, 5)))
    same(wide + x, np.broadcast_to(a[:, 1:2], (2, 4, 6, 5)) + a)
    same(tuff.repeat(x[::2], 3, 1), np.repeat(a[::2], 3, 1))
    same(tuff.tile(x[:, ::-1], (2, 1, 1)), np.tile(a[:, ::-1], (2, 1, 1)))
    same(tuff.roll(x[..., ::2], 2, 1), np.roll(a[..., ::2], 2, 1))
    for got, want in zip(tuff.unstack(x, 1), np.moveaxis(a, 1, 0)):
        same(got, want)


def test_one_hot(ctx):
    index = np.array([[0, 2], [3, -1]])
    want = np.array([[[1, 0, 0], [0, 0, 1]], [[0, 0, 0], [0, 0, 0]]])
    same(tuff.one_hot(ctx.array(index), 3), want.astype(F32))
    got = tuff.one_hot(ctx.array(index.astype(np.int8), np.int8), 3, np.bool_)
    assert got.dtype == np.bool_
    same(got, want != 0)
    with pytest.raises(TypeError):
        tuff.one_hot(ctx.ones(3), 3)


def test_streams_have_copies_of_their_own(ctx, rng):
    a = rng.integers(-3, 4, (64, 64)).astype(F32)
    x = ctx.array(a)
    view = x[:, ::-1]
    results = []
    for _ in range(3):
        with ctx.stream():
            results.append((view @ x).numpy())
    results.append((view @ x).numpy())
    for result in results:
        np.testing.assert_array_equal(result, a[:, ::-1] @ a)


def test_at_of_ufuncs(ctx):
    for name in ("add", "multiply", "maximum", "minimum"):
        x = np.arange(6, dtype=np.float32)
        array, function = ctx.array(x), getattr(np, name)
        assert function.at(array, [0, 2, 2, -1], 3.0) is None
        function.at(x, [0, 2, 2, -1], 3.0)
        assert (array.numpy() == x).all()
    with pytest.raises(TypeError, match="subtract.at does not run"):
        np.subtract.at(array, [0], 1.0)
    with pytest.raises(TypeError, match="add.at does not run"):
        np.add.at(x, [0], ctx.array([1.0]))  # the array of the host would stay as it is
